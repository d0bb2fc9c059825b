/* What an answer is made of beside its text: thinking, calls of tools, permission, messages left out; and counting beforehand.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-chat-builder.h"
#include "ox-chat-job.h"
#include "ox-context-meter.h"
#include "support.h"

#include <string.h>
#include <time.h>

#define CAPABLE (OX_CAPABILITY_THINK | OX_CAPABILITY_TOOLS)

typedef struct {
  char *folder;
  OxStore *store;
  OxEngine *engine;
  OxConversation *conversation;
} Fixture;

static void
set_up (Fixture *fixture, gconstpointer unused)
{
  g_autofree char *path = NULL;
  g_autoptr (OxToolbox) toolbox = ox_toolbox_new ();

  fixture->folder = make_temporary_folder ();
  path = g_build_filename (fixture->folder, "library.db", NULL);
  fixture->store = open_store (path);
  fixture->engine = ox_engine_new (fake_engine_get_backend ());
  fixture->conversation = ox_conversation_new (fixture->store, FALSE);
  ox_toolbox_add_builtin (toolbox);
  ox_engine_set_toolbox (fixture->engine, toolbox);
}

static void
tear_down (Fixture *fixture, gconstpointer unused)
{
  g_assert_true (ox_engine_shutdown (fixture->engine, 5 * G_USEC_PER_SEC));
  run_for (40);
  g_assert_finalize_object (fixture->engine);
  g_assert_cmpint (fake_engine_count_alive (), ==, 0);
  g_assert_finalize_object (fixture->conversation);
  close_store (fixture->store);
  remove_folder (fixture->folder);
  g_free (fixture->folder);
}

static OxMessage *
send (Fixture *fixture, const char *text)
{
  OxChatJob *job = ox_chat_job_send (fixture->engine, fixture->conversation, text, "/models/fake.gguf", "Fake");
  OxMessage *message = ox_chat_job_get_message (job);

  g_object_unref (job);
  return message;
}

static OxMessage *
ask (Fixture *fixture, const char *text)
{
  OxMessage *message = send (fixture, text);

  run_until (!ox_conversation_get_answering (fixture->conversation));
  settle ();
  return message;
}

static OxMessageRecord *
stored_at (Fixture *fixture, GPtrArray **messages, guint i)
{
  *messages = list_messages (fixture->store, ox_conversation_get_id (fixture->conversation));
  g_assert_cmpuint (i, <, (*messages)->len);
  return (*messages)->pdata[i];
}

static void
count_cb (guint *n)
{
  (*n)++;
}

static void
count_tool_cb (guint *n, guint index)
{
  (*n)++;
}

static void
test_thinking (Fixture *fixture, gconstpointer unused)
{
  g_autoptr (GPtrArray) stored = NULL;
  OxMessage *answer;

  fake_engine_set_script (
    &(FakeScript) { .n_thoughts = 4, .n_pieces = 2, .piece_delay = 50000, .capabilities = CAPABLE });
  answer = send (fixture, "Why?");
  run_until (ox_message_is_thinking (answer));
  g_assert_cmpint (ox_message_get_state (answer), ==, OX_MESSAGE_WRITING);
  g_assert_cmpstr (ox_message_get_text (answer), ==, "");
  run_until (!ox_conversation_get_answering (fixture->conversation));
  g_assert_false (ox_message_is_thinking (answer));
  g_assert_cmpstr (ox_message_get_thinking (answer), ==, "thought0 thought1 thought2 thought3 ");
  g_assert_cmpstr (ox_message_get_text (answer), ==, "word0 word1 ");
  g_test_message ("thought for %.3f s", ox_message_get_thinking_seconds (answer));
  g_assert_cmpfloat (ox_message_get_thinking_seconds (answer), >=, 0.2);
  g_assert_cmpfloat (ox_message_get_thinking_seconds (answer), <, 10);
  g_assert_cmpfloat (stored_at (fixture, &stored, 1)->thinking_seconds, ==, ox_message_get_thinking_seconds (answer));
}

/* Time stands still once it is stopped, and what it was is kept. */
static void
test_stop_thinking (Fixture *fixture, gconstpointer unused)
{
  g_autoptr (GPtrArray) stored = NULL;
  OxMessage *answer;
  double seconds;

  fake_engine_set_script (&(FakeScript) { .n_thoughts = 2, .endless = STAGE_THINK, .capabilities = CAPABLE });
  answer = send (fixture, "Why?");
  run_until (ox_message_get_thinking_seconds (answer) > 0.1);
  ox_conversation_stop (fixture->conversation);
  seconds = ox_message_get_thinking_seconds (answer);
  g_assert_false (ox_message_is_thinking (answer));
  g_assert_cmpfloat (seconds, >, 0.1);
  run_for (60);
  g_assert_cmpfloat (ox_message_get_thinking_seconds (answer), ==, seconds);
  g_assert_cmpint (ox_message_get_state (answer), ==, OX_MESSAGE_STOPPED);
  g_assert_cmpfloat (stored_at (fixture, &stored, 1)->thinking_seconds, ==, seconds);
}

static void
test_tools (Fixture *fixture, gconstpointer unused)
{
  static const char *const calls[] = { "calculate", "fly", NULL };
  g_autoptr (GPtrArray) stored = NULL;
  g_autofree char *chat = NULL;
  const OxToolEntry *entry;
  OxMessageRecord *record;
  OxMessage *answer;
  guint n_changes = 0;

  fake_engine_set_script (
    &(FakeScript) { .n_thoughts = 1, .calls = calls, .malformed = TRUE, .n_pieces = 2, .capabilities = CAPABLE });
  answer = send (fixture, "37 times 12?");
  g_signal_connect_swapped (answer, "tool-changed", G_CALLBACK (count_tool_cb), &n_changes);
  run_until (!ox_conversation_get_answering (fixture->conversation));
  g_assert_cmpuint (fake_engine_get_n_tools (), ==, 3);
  g_assert_cmpuint (n_changes, >=, 3);
  g_assert_cmpuint (ox_message_get_n_tools (answer), ==, 3);
  g_assert_null (ox_message_get_tool (answer, 3));

  entry = ox_message_get_tool (answer, 0);
  g_assert_null (entry->name);
  g_assert_cmpstr (entry->arguments, ==, "calculate(37*");
  g_assert_true (entry->failed);
  entry = ox_message_get_tool (answer, 1);
  g_assert_cmpstr (entry->name, ==, "calculate");
  g_assert_cmpstr (entry->arguments, ==, "{\"expression\":\"37*12\"}");
  g_assert_nonnull (strstr (entry->result, "444"));
  g_assert_false (entry->failed);
  g_assert_cmpuint (entry->thinking_offset, ==, strlen ("thought0 "));
  entry = ox_message_get_tool (answer, 2);
  g_assert_cmpstr (entry->name, ==, "fly");
  g_assert_true (entry->failed);
  g_test_message ("%s", entry->result);
  g_assert_cmpuint (entry->round, ==, 1);

  record = stored_at (fixture, &stored, 1);
  g_assert_cmpuint (record->tools->len, ==, 3);
  g_assert_true (ox_tool_entry_equal (record->tools->pdata[2], entry));

  /* The next question goes with what was called and what that gave, in the order in which the model had it. */
  fake_engine_set_script (&(FakeScript) { .n_pieces = 1, .capabilities = CAPABLE });
  ask (fixture, "And twice that?");
  chat = fake_engine_dup_chat ();
  g_test_message ("%s", chat);
  g_assert_true (g_str_has_prefix (chat, "user: 37 times 12?\nassistant: \ntool: {"));
  g_assert_true (g_str_has_suffix (chat, "\nassistant: word0 word1 \nuser: And twice that?\n"));
  g_assert_nonnull (strstr (chat, "\nassistant: \ntool: "));
}

/* A model that cannot call tools gets no tools, and no calls of one that could; nor does a chat in which they are switched off. */
static void
test_without_tools (Fixture *fixture, gconstpointer unused)
{
  static const char *const calls[] = { "calculate", NULL };
  g_autofree char *chat = NULL;

  fake_engine_set_script (&(FakeScript) { .calls = calls, .n_pieces = 1, .capabilities = CAPABLE });
  ask (fixture, "One");
  g_assert_cmpuint (fake_engine_get_n_tools (), ==, 3);
  ox_conversation_set_flag (fixture->conversation, "tools", FALSE);
  ask (fixture, "Two");
  g_assert_cmpuint (fake_engine_get_n_tools (), ==, 0);
  ox_conversation_set_flag (fixture->conversation, "tools", TRUE);
  ox_engine_set_toolbox (fixture->engine, NULL);
  ask (fixture, "Three");
  g_assert_cmpuint (fake_engine_get_n_tools (), ==, 0);

  g_object_unref (ox_engine_unload (fixture->engine));
  fake_engine_set_script (&(FakeScript) { .n_pieces = 1 });
  ask (fixture, "Four");
  chat = fake_engine_dup_chat ();
  g_assert_cmpstr (chat, ==,
                   "user: One\nassistant: word0 \nuser: Two\nassistant: word0 \nuser: Three\n"
                   "assistant: word0 \nuser: Four\n");
}

/* Text before a call and after it are two parts, for the reader and for the model. */
static void
test_parts (Fixture *fixture, gconstpointer unused)
{
  g_autoptr (OxMessage) question = ox_message_new (OX_ROLE_USER, "Q");
  g_autoptr (OxMessage) answer = ox_message_new (OX_ROLE_ASSISTANT, "Let me see.\n\nIt is 444.");
  OxToolEntry entry = { .id = (char *) "call_1",
                        .name = (char *) "calculate",
                        .arguments = (char *) "{}",
                        .result = (char *) "444",
                        .text_offset = strlen ("Let me see.") };
  OxToolEntry pending = {
    .id = (char *) "call_2", .name = (char *) "calculate", .arguments = (char *) "{", .round = 1, .text_offset = 9999
  };
  g_autofree char *chat = NULL;

  ox_message_put_tool (answer, 0, &entry);
  ox_message_put_tool (answer, 1, &pending);
  ox_conversation_append (fixture->conversation, (OxMessage *[]) { question, answer }, 2, NULL, NULL);
  fake_engine_set_script (&(FakeScript) { .n_pieces = 1, .capabilities = CAPABLE });
  ask (fixture, "Next");
  chat = fake_engine_dup_chat ();
  g_assert_cmpstr (chat, ==, "user: Q\nassistant: Let me see.\ntool: 444\nassistant: It is 444.\nuser: Next\n");
}

static void
test_settings (Fixture *fixture, gconstpointer unused)
{
  OxMessage *answer;
  guint n_notified = 0;

  g_signal_connect_swapped (fixture->conversation, "notify::settings", G_CALLBACK (count_cb), &n_notified);
  g_assert_true (ox_conversation_get_flag (fixture->conversation, "tools", TRUE));
  fake_engine_set_script (&(FakeScript) { .n_pieces = 1 });
  ask (fixture, "One");
  g_assert_cmpint (fake_engine_get_policy (), ==, OX_CONTEXT_STOP);
  g_assert_cmpint (fake_engine_get_speculation (), ==, OX_SPECULATION_AUTO);
  ox_conversation_set_flag (fixture->conversation, "drop-oldest", TRUE);
  ox_conversation_set_flag (fixture->conversation, "drop-oldest", TRUE);
  g_assert_cmpuint (n_notified, ==, 1);
  ox_engine_set_speculation (fixture->engine, OX_SPECULATION_OFF);
  fake_engine_set_script (&(FakeScript) { .n_pieces = 1, .dropped = 12 });
  answer = ask (fixture, "Two");
  g_assert_cmpint (fake_engine_get_policy (), ==, OX_CONTEXT_DROP_OLDEST);
  g_assert_cmpint (fake_engine_get_speculation (), ==, OX_SPECULATION_OFF);
  g_assert_cmpuint (ox_message_get_dropped_messages (answer), ==, 12);
}

/* ---- Permission ---- */

static char *
effect_cb (const char *arguments, gpointer user_data, GCancellable *cancellable, GError **error)
{
  g_atomic_int_inc ((int *) user_data);
  return g_strdup ("done");
}

typedef struct {
  gboolean allow;
  gboolean keep;
  guint n_asked;
  guint n_withdrawn;
  OxPermission *permission;
} Asked;

static gboolean
permission_cb (OxEngine *engine, OxPermission *permission, Asked *asked)
{
  asked->n_asked++;
  g_assert_cmpstr (ox_permission_get_tool_name (permission), ==, "send_mail");
  g_assert_nonnull (strstr (ox_permission_get_arguments (permission), "37*12"));
  g_signal_connect_swapped (permission, "withdrawn", G_CALLBACK (count_cb), &asked->n_withdrawn);
  if (asked->keep)
    asked->permission = g_object_ref (permission);
  else
    ox_permission_answer (permission, asked->allow);
  return TRUE;
}

static void
test_permission (Fixture *fixture, gconstpointer unused)
{
  static const char *const calls[] = { "send_mail", NULL };
  g_autoptr (OxToolbox) toolbox = ox_toolbox_new ();
  g_autoptr (GError) error = NULL;
  Asked asked = { .allow = TRUE };
  OxMessage *answer;
  int n_effects = 0;

  ox_toolbox_add (toolbox,
                  "{\"type\":\"function\",\"function\":{\"name\":\"send_mail\",\"description\":\"Sends\","
                  "\"parameters\":{\"type\":\"object\",\"properties\":{\"expression\":{\"type\":\"string\"}},"
                  "\"required\":[]}}}",
                  OX_TOOL_HAS_EFFECTS, effect_cb, &n_effects, NULL, &error);
  g_assert_no_error (error);
  ox_engine_set_toolbox (fixture->engine, toolbox);
  fake_engine_set_script (&(FakeScript) { .calls = calls, .n_pieces = 1, .capabilities = CAPABLE });

  /* Nobody is there to ask. */
  answer = ask (fixture, "Send it");
  g_assert_cmpint (g_atomic_int_get (&n_effects), ==, 0);
  g_assert_true (ox_message_get_tool (answer, 0)->failed);

  g_signal_connect (fixture->engine, "permission", G_CALLBACK (permission_cb), &asked);
  answer = ask (fixture, "Send it");
  g_assert_cmpuint (asked.n_asked, ==, 1);
  g_assert_cmpint (g_atomic_int_get (&n_effects), ==, 1);
  g_assert_cmpstr (ox_message_get_tool (answer, 0)->result, ==, "done");

  asked.allow = FALSE;
  answer = ask (fixture, "Send it");
  g_assert_cmpuint (asked.n_asked, ==, 2);
  g_assert_cmpint (g_atomic_int_get (&n_effects), ==, 1);
  g_assert_true (ox_message_get_tool (answer, 0)->failed);
  g_test_message ("%s", ox_message_get_tool (answer, 0)->result);

  /* Stopped while the question is on the screen: it goes away, and nothing runs. */
  asked.keep = TRUE;
  answer = send (fixture, "Send it");
  run_until (asked.permission != NULL);
  ox_conversation_stop (fixture->conversation);
  run_until (asked.n_withdrawn == 1);
  ox_permission_answer (asked.permission, TRUE);
  g_clear_object (&asked.permission);
  g_assert_cmpint (ox_message_get_state (answer), ==, OX_MESSAGE_STOPPED);
  run_for (40);
  g_assert_cmpint (g_atomic_int_get (&n_effects), ==, 1);
}

/* ---- Counting beforehand ---- */

static void
test_meter (Fixture *fixture, gconstpointer unused)
{
  g_autoptr (OxContextMeter) meter = ox_context_meter_new (fixture->engine);
  OxContextUse use;
  guint n_changed = 0;
  guint n_measures;
  guint pauses;
  gint64 start;

  fake_engine_set_script (&(FakeScript) { .n_pieces = 3 });
  g_signal_connect_swapped (meter, "changed", G_CALLBACK (count_cb), &n_changed);
  ox_context_meter_set_model_path (meter, "/models/fake.gguf");
  ox_context_meter_set_conversation (meter, fixture->conversation);
  /* No model in memory: counting would have to load one, so it does not. */
  ox_conversation_set_draft (fixture->conversation, "Hello");
  run_for (450);
  g_assert_false (ox_context_meter_get_use (meter, &use));
  g_assert_cmpuint (fake_engine_count_loads (), ==, 0);

  /* Once there is one, it counts by itself, without a session, so that none has to go for it. */
  g_object_unref (ox_engine_load (fixture->engine, "/models/fake.gguf"));
  run_until (ox_context_meter_get_use (meter, &use));
  g_assert_cmpuint (use.prompt_tokens, ==, 5);
  g_assert_cmpuint (use.context_length, ==, 1000);
  g_assert_cmpuint (fake_engine_count_sessions (), ==, 0);

  /* Keys in quick succession are one count. */
  n_measures = fake_engine_count_measures ();
  start = g_get_monotonic_time ();
  for (guint i = 0; i < 10; i++) {
    ox_conversation_set_draft (fixture->conversation, i % 2 == 0 ? "Hello w" : "Hello world");
    run_for (20);
  }
  run_until (fake_engine_count_measures () > n_measures);
  run_until (ox_context_meter_get_use (meter, &use) && use.prompt_tokens == strlen ("Hello world"));
  run_for (350);
  /* A machine that stands still for a moment makes pauses of its own. */
  pauses = (guint) ((g_get_monotonic_time () - start) / 300000);
  g_assert_cmpuint (fake_engine_count_measures (), <=, n_measures + MAX (pauses, 1));

  /* Nothing is counted while an answer is on its way; then with the session. */
  ask (fixture, "Hello world");
  run_until (ox_context_meter_get_use (meter, &use) && use.reused_tokens == 5);
  g_assert_cmpuint (use.prompt_tokens, ==, strlen ("Hello world") + strlen ("word0 word1 word2 "));

  /* Too long; then with the oldest messages left out. */
  fake_engine_set_script (&(FakeScript) { .n_pieces = 1, .measured = 1200 });
  ox_conversation_set_draft (fixture->conversation, "More");
  run_until (ox_context_meter_get_use (meter, &use) && use.prompt_tokens == 1200);
  g_assert_cmpuint (use.dropped_messages, ==, 0);
  ox_conversation_set_flag (fixture->conversation, "drop-oldest", TRUE);
  run_until (ox_context_meter_get_use (meter, &use) && use.dropped_messages == 2);
  g_assert_cmpuint (use.dropped_tokens, ==, 700);
  g_assert_cmpuint (n_changed, >, 4);

  ox_context_meter_set_conversation (meter, NULL);
  g_assert_false (ox_context_meter_get_use (meter, &use));
}

/* What the main thread does for a count, on two megabytes in 1,000 messages, takes less than a few frames. */
static void
test_long_chat (Fixture *fixture, gconstpointer unused)
{
  g_autoptr (GPtrArray) messages = g_ptr_array_new_with_free_func (g_object_unref);
  g_autoptr (GAsyncResult) result = NULL;
  g_autofree char *text = g_strnfill (2000, 'x');
  OxToolEntry entry = { .name = (char *) "calculate", .arguments = (char *) "{}", .result = (char *) "1" };
  struct timespec before;
  struct timespec after;
  OxChat *chat;
  double took;

  for (guint i = 0; i < 1000; i++) {
    g_ptr_array_add (messages, ox_message_new (i % 2 == 0 ? OX_ROLE_USER : OX_ROLE_ASSISTANT, text));
    if (i % 2 == 1)
      ox_message_put_tool (messages->pdata[i], 0, &entry);
  }
  ox_conversation_append (fixture->conversation, (OxMessage *const *) messages->pdata, messages->len, keep_result,
                          &result);
  run_until (result != NULL);
  clock_gettime (CLOCK_THREAD_CPUTIME_ID, &before);
  chat = ox_chat_builder_build (fixture->conversation, "Draft", TRUE);
  clock_gettime (CLOCK_THREAD_CPUTIME_ID, &after);
  took = (double) (after.tv_sec - before.tv_sec) * 1000 + (double) (after.tv_nsec - before.tv_nsec) / 1e6;
  g_test_message ("%.1f ms", took);
  g_assert_cmpuint (ox_chat_get_length (chat), ==, 500 + 500 * 3 + 1);
#ifndef __SANITIZE_ADDRESS__
  g_assert_cmpfloat (took, <, 50);
#endif
  ox_chat_free (chat);
  g_clear_object (&result);
}

/* An answer that begins gives up a count that waits. */
static void
test_meter_in_the_way (Fixture *fixture, gconstpointer unused)
{
  g_autoptr (OxContextMeter) meter = ox_context_meter_new (fixture->engine);
  g_autoptr (OxConversation) other = ox_conversation_new (fixture->store, FALSE);
  guint n_measures;

  fake_engine_set_script (&(FakeScript) { .n_pieces = 1 });
  ask (fixture, "Hi");
  ox_context_meter_set_model_path (meter, "/models/fake.gguf");
  ox_context_meter_set_conversation (meter, fixture->conversation);
  run_until (fake_engine_count_measures () == 1);
  settle ();

  /* Behind the answer of another conversation. */
  fake_engine_set_script (&(FakeScript) { .endless = STAGE_DECODE, .n_pieces = 1 });
  g_object_unref (ox_chat_job_send (fixture->engine, other, "Long", "/models/fake.gguf", "Fake"));
  run_until (fake_engine_get_stage () == STAGE_DECODE);
  ox_conversation_set_draft (fixture->conversation, "typing");
  run_for (400);
  n_measures = fake_engine_count_measures ();
  g_assert_cmpuint (n_measures, ==, 0);
  fake_engine_set_script (&(FakeScript) { .n_pieces = 1 });
  send (fixture, "sent");
  ox_conversation_stop (other);
  run_until (!ox_conversation_get_answering (fixture->conversation));
  g_assert_cmpuint (fake_engine_count_measures (), ==, 0);
  run_until (fake_engine_count_measures () == 1);
  settle ();
}

static void
test_cache (Fixture *fixture, gconstpointer unused)
{
  g_autoptr (GAsyncResult) result = NULL;
  g_autoptr (GAsyncResult) cleared = NULL;
  g_autoptr (GAsyncResult) again = NULL;
  g_autoptr (GError) error = NULL;

  ox_engine_get_cache_bytes (fixture->engine, keep_result, &result);
  run_until (result != NULL);
  g_assert_cmpuint (ox_engine_get_cache_bytes_finish (fixture->engine, result), ==, 3200000000);
  ox_engine_clear_cache (fixture->engine, keep_result, &cleared);
  run_until (cleared != NULL);
  g_assert_true (ox_engine_clear_cache_finish (fixture->engine, cleared, &error));
  g_assert_no_error (error);
  ox_engine_get_cache_bytes (fixture->engine, keep_result, &again);
  run_until (again != NULL);
  g_assert_cmpuint (ox_engine_get_cache_bytes_finish (fixture->engine, again), ==, 0);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, G_TEST_OPTION_ISOLATE_DIRS, NULL);
#define ADD(name, function) g_test_add ("/answers/" name, Fixture, NULL, set_up, function, tear_down)
  ADD ("thinking", test_thinking);
  ADD ("stop-thinking", test_stop_thinking);
  ADD ("tools", test_tools);
  ADD ("without-tools", test_without_tools);
  ADD ("parts", test_parts);
  ADD ("settings", test_settings);
  ADD ("permission", test_permission);
  ADD ("meter", test_meter);
  ADD ("meter-in-the-way", test_meter_in_the_way);
  ADD ("long-chat", test_long_chat);
  ADD ("cache", test_cache);
  return g_test_run ();
}
