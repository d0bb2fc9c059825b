/* The app's data layer on the real engine and a real model, when OX_TEST_MODELS names a folder that has it.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-chat-job.h"
#include "ox-context-meter.h"
#include "ox-model-library.h"
#include "support.h"

#include <string.h>

#define MODEL "SmolLM2-135M-Instruct.Q4_1.gguf"

static void
test_answer_and_stop (void)
{
  const char *models = g_getenv ("OX_TEST_MODELS");
  g_autofree char *path = models != NULL ? g_build_filename (models, MODEL, NULL) : NULL;
  g_autofree char *folder = NULL;
  g_autofree char *damaged = NULL;
  g_autofree char *database = NULL;
  g_autofree char *content = NULL;
  g_autofree char *roots = NULL;
  g_autofree char *first_text = NULL;
  g_autoptr (OxModelLibrary) library = NULL;
  g_autoptr (OxConversation) conversation = NULL;
  OxModelEntry *entry;
  OxStore *store;
  OxEngine *engine;
  OxChatJob *job;
  OxMessage *answer;
  gint64 start;
  gsize size;

  if (path == NULL || !g_file_test (path, G_FILE_TEST_EXISTS)) {
    g_test_skip ("OX_TEST_MODELS names no folder with " MODEL);
    return;
  }
  folder = make_temporary_folder ();
  damaged = g_build_filename (folder, "cut.gguf", NULL);
  g_assert_true (g_file_get_contents (path, &content, &size, NULL));
  g_assert_true (g_file_set_contents (damaged, content, (gssize) size / 2, NULL));
  roots = g_strconcat (path, ":", folder, NULL);
  g_setenv ("OXINFER_MODELS", roots, TRUE);
  database = g_build_filename (folder, "library.db", NULL);
  store = open_store (database);
  engine = ox_engine_new (NULL);
  /* The exact numbers are known from the reference; the fast ones depend on the processor. */
  ox_engine_set_options (engine, &(OxModelOptions) { .precision = OX_MODEL_PRECISION_EXACT });
  library = ox_model_library_new (engine, NULL);
  ox_model_library_scan (library);
  run_until (ox_model_library_get_ready (library));

  entry = ox_model_library_get_selected (library);
  g_assert_nonnull (entry);
  g_assert_cmpstr (ox_model_entry_get_name (entry), ==, "SmolLM2 135M Instruct");
  g_assert_cmpint (ox_model_entry_get_state (ox_model_library_find (library, damaged)), ==, OX_MODEL_ENTRY_DAMAGED);
  g_test_message ("%s (%s)", ox_model_entry_get_reason (ox_model_library_find (library, damaged)),
                  ox_model_entry_get_details (ox_model_library_find (library, damaged)));

  /* One answer to its end. */
  conversation = ox_conversation_new (store, FALSE);
  ox_conversation_set_settings (conversation,
                                g_variant_new_parsed ("{'temperature': <0.0>, 'max-tokens': <uint32 12>}"));
  job = ox_chat_job_send (engine, conversation, "What is the capital of France?", path, "SmolLM2");
  answer = ox_chat_job_get_message (job);
  g_object_unref (job);
  run_until (!ox_conversation_get_answering (conversation));
  g_assert_cmpint (ox_message_get_state (answer), ==, OX_MESSAGE_COMPLETE);
  g_test_message ("%s (%.0f tokens a second)", ox_message_get_text (answer), ox_message_get_decode_rate (answer));
  g_assert_nonnull (strstr (ox_message_get_text (answer), "Paris"));
  g_assert_true (ox_model_entry_get_loaded (entry));
  first_text = g_strdup (ox_message_get_text (answer));

  /* One that would be long, stopped: the engine thread is free again within 100 ms, and more for a busy machine. */
  ox_conversation_set_settings (conversation, g_variant_new_parsed ("{'seed': <uint64 1>}"));
  job = ox_chat_job_send (engine, conversation, "Tell me a very long story about a whale.", path, "SmolLM2");
  answer = ox_chat_job_get_message (job);
  g_object_unref (job);
  run_until (ox_message_get_text_length (answer) > 20);
  ox_conversation_stop (conversation);
  start = g_get_monotonic_time ();
  g_assert_cmpint (ox_message_get_state (answer), ==, OX_MESSAGE_STOPPED);
  g_assert_true (ox_engine_shutdown (engine, 2 * G_USEC_PER_SEC));
  g_test_message ("stopped after %.1f ms", (double) (g_get_monotonic_time () - start) / 1000);
  g_assert_cmpuint (ox_message_get_statistics (answer)->reused_tokens, >, 0);

  g_clear_object (&conversation);
  g_clear_object (&library);
  run_for (40);
  g_assert_finalize_object (engine);
  close_store (store);
  remove_folder (folder);
}

/* A small Gemma 4 of our own: what was counted before sending is what sending took. */
static void
test_counted_before (void)
{
  g_autofree char *path = g_build_filename (g_getenv ("OX_TEST_DATA"), "models", "tiny-gemma4-mm", NULL);
  g_autofree char *folder = make_temporary_folder ();
  g_autofree char *database = g_build_filename (folder, "library.db", NULL);
  g_autoptr (GString) long_text = g_string_new (NULL);
  g_autoptr (OxToolbox) toolbox = ox_toolbox_new ();
  OxStore *store = open_store (database);
  OxEngine *engine = ox_engine_new (NULL);
  OxConversation *conversation = ox_conversation_new (store, FALSE);
  OxContextMeter *meter = ox_context_meter_new (engine);
  OxContextUse use;
  OxChatJob *job;
  OxMessage *answer;
  guint counted;

  ox_engine_set_options (engine, &(OxModelOptions) { .precision = OX_MODEL_PRECISION_EXACT, .no_packed_cache = TRUE });
  ox_toolbox_add_builtin (toolbox);
  ox_engine_set_toolbox (engine, toolbox);
  ox_conversation_set_settings (conversation,
                                g_variant_new_parsed ("{'temperature': <0.0>, 'max-tokens': <uint32 24>}"));
  ox_context_meter_set_model_path (meter, path);
  ox_context_meter_set_conversation (meter, conversation);
  ox_conversation_set_draft (conversation, "What is the capital of France?");
  g_object_unref (ox_engine_load (engine, path));
  run_until (ox_context_meter_get_use (meter, &use));
  counted = use.prompt_tokens;
  g_test_message ("%u of %u tokens", counted, use.context_length);

  /* Without a session, then with one. */
  for (guint i = 0; i < 2; i++) {
    job = ox_chat_job_send (engine, conversation, ox_conversation_get_draft (conversation), path, "Tiny");
    answer = ox_chat_job_get_message (job);
    g_object_unref (job);
    run_until (!ox_conversation_get_answering (conversation));
    g_test_message ("%s", ox_message_get_text (answer));
    g_assert_cmpint (ox_message_get_state (answer), ==, OX_MESSAGE_COMPLETE);
    g_assert_cmpuint (ox_message_get_statistics (answer)->prompt_tokens, ==, counted);
    g_assert_cmpuint (ox_message_get_statistics (answer)->context_length, ==, use.context_length);
    g_assert_cmpuint (ox_message_get_n_tools (answer), ==, 0);
    if (i == 0) {
      g_assert_nonnull (strstr (ox_message_get_text (answer), "Paris"));
      ox_conversation_set_draft (conversation, "What is the opposite of big?");
      run_until (ox_context_meter_get_use (meter, &use) && use.reused_tokens > 0);
      g_assert_cmpuint (use.prompt_tokens, >, counted);
      g_assert_cmpuint (use.reused_tokens, >=, counted);
      counted = use.prompt_tokens;
    }
  }

  /* A long chat: it says so, and then what would be left out, and that is left out. */
  for (guint i = 0; i < 2; i++) {
    OxMessage *messages[2];

    g_string_truncate (long_text, 0);
    for (guint n = 0; n < use.context_length / 6; n++)
      g_string_append (long_text, "moon is moon ");
    messages[0] = ox_message_new (OX_ROLE_USER, long_text->str);
    messages[1] = ox_message_new (OX_ROLE_ASSISTANT, "Yes.");
    ox_conversation_append (conversation, messages, 2, NULL, NULL);
    g_object_unref (messages[0]);
    g_object_unref (messages[1]);
  }
  ox_conversation_set_draft (conversation, "What is the capital of France?");
  run_until (ox_context_meter_get_use (meter, &use) && use.prompt_tokens > use.context_length);
  g_assert_cmpuint (use.dropped_messages, ==, 0);
  ox_conversation_set_flag (conversation, "drop-oldest", TRUE);
  run_until (ox_context_meter_get_use (meter, &use) && use.dropped_messages > 0);
  g_test_message ("%u of %u tokens, %u messages with %u tokens left out", use.prompt_tokens, use.context_length,
                  use.dropped_messages, use.dropped_tokens);
  job = ox_chat_job_send (engine, conversation, ox_conversation_get_draft (conversation), path, "Tiny");
  answer = ox_chat_job_get_message (job);
  g_object_unref (job);
  run_until (!ox_conversation_get_answering (conversation));
  g_assert_cmpint (ox_message_get_state (answer), ==, OX_MESSAGE_COMPLETE);
  g_assert_cmpuint (ox_message_get_dropped_messages (answer), ==, use.dropped_messages);
  g_assert_cmpuint (ox_message_get_statistics (answer)->prompt_tokens, ==, use.prompt_tokens - use.dropped_tokens);

  g_object_unref (meter);
  g_assert_true (ox_engine_shutdown (engine, 2 * G_USEC_PER_SEC));
  g_object_unref (conversation);
  run_for (40);
  g_assert_finalize_object (engine);
  close_store (store);
  remove_folder (folder);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, G_TEST_OPTION_ISOLATE_DIRS, NULL);
  g_test_add_func ("/real/answer-and-stop", test_answer_and_stop);
  g_test_add_func ("/real/counted-before", test_counted_before);
  return g_test_run ();
}
