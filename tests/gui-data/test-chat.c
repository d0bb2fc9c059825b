/* A message on its way: saved, queued, loaded, read, answered, stopped, failed, with a scripted engine.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-chat-job.h"
#include "ox-conversation-list.h"
#include "support.h"

#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

typedef struct {
  char *folder;
  char *path;
  OxStore *store;
  OxEngine *engine;
  OxConversation *conversation;
} Fixture;

static void
set_up (Fixture *fixture, gconstpointer unused)
{
  fake_engine_set_script (&(FakeScript) { .n_pieces = 3 });
  fixture->folder = make_temporary_folder ();
  fixture->path = g_build_filename (fixture->folder, "library.db", NULL);
  fixture->store = open_store (fixture->path);
  fixture->engine = ox_engine_new (fake_engine_get_backend ());
  fixture->conversation = ox_conversation_new (fixture->store, FALSE);
}

static void
tear_down (Fixture *fixture, gconstpointer unused)
{
  if (fixture->engine != NULL) {
    g_assert_true (ox_engine_shutdown (fixture->engine, 5 * G_USEC_PER_SEC));
    run_for (40);
    g_assert_finalize_object (fixture->engine);
  }
  g_assert_cmpint (fake_engine_count_alive (), ==, 0);
  g_assert_finalize_object (fixture->conversation);
  if (fixture->store != NULL)
    close_store (fixture->store);
  remove_folder (fixture->folder);
  g_free (fixture->folder);
  g_free (fixture->path);
}

static void
count_cb (guint *n)
{
  (*n)++;
}

static OxMessage *
message_at (Fixture *fixture, guint i)
{
  return ox_conversation_get_message (fixture->conversation, i);
}

static OxMessage *
send (Fixture *fixture, const char *text)
{
  OxChatJob *job = ox_chat_job_send (fixture->engine, fixture->conversation, text, "/models/fake.gguf", "Fake");
  OxMessage *message;

  g_assert_nonnull (job);
  message = ox_chat_job_get_message (job);
  g_object_unref (job);
  return message;
}

static void
wait_for_answer (Fixture *fixture)
{
  run_until (!ox_conversation_get_answering (fixture->conversation));
  settle ();
}

/* What the store has of the message at @i, as a new start would find it. */
static OxMessageRecord *
stored_at (Fixture *fixture, GPtrArray **messages, guint i)
{
  *messages = list_messages (fixture->store, ox_conversation_get_id (fixture->conversation));
  g_assert_cmpuint (i, <, (*messages)->len);
  return (*messages)->pdata[i];
}

static void
test_answer (Fixture *fixture, gconstpointer unused)
{
  g_autoptr (GPtrArray) stored = NULL;
  g_autofree char *chat = NULL;
  guint n_answering = 0;
  guint n_finished = 0;
  OxMessage *answer;
  OxMessageRecord *record;
  OxSampling sampling;
  guint used;
  guint total;

  g_assert_null (ox_chat_job_send (fixture->engine, fixture->conversation, " \n ", "/models/fake.gguf", "Fake"));
  ox_conversation_set_draft (fixture->conversation, "Hello?");
  g_signal_connect_swapped (fixture->conversation, "notify::answering", G_CALLBACK (count_cb), &n_answering);
  answer = send (fixture, "Hello?\n");
  g_signal_connect_swapped (answer, "finished", G_CALLBACK (count_cb), &n_finished);
  g_assert_true (ox_conversation_get_answering (fixture->conversation));
  g_assert_cmpint (ox_message_get_state (answer), ==, OX_MESSAGE_WAITING);
  g_assert_cmpstr (ox_conversation_get_draft (fixture->conversation), ==, "");
  g_assert_cmpstr (ox_conversation_get_title (fixture->conversation), ==, "Hello?");
  /* One answer at a time. */
  g_assert_null (ox_chat_job_send (fixture->engine, fixture->conversation, "More", "/models/fake.gguf", "Fake"));

  wait_for_answer (fixture);
  g_assert_cmpuint (n_answering, ==, 2);
  g_assert_cmpuint (n_finished, ==, 1);
  g_assert_cmpuint (ox_conversation_get_length (fixture->conversation), ==, 2);
  g_assert_cmpstr (ox_message_get_text (message_at (fixture, 0)), ==, "Hello?");
  g_assert_cmpstr (ox_message_get_text (answer), ==, "word0 word1 word2 ");
  g_assert_cmpint (ox_message_get_state (answer), ==, OX_MESSAGE_COMPLETE);
  g_assert_cmpuint (ox_message_get_statistics (answer)->answer_tokens, ==, 3);
  g_assert_cmpfloat (ox_message_get_statistics (answer)->first_token_seconds, ==, 0.25);
  g_assert_true (ox_conversation_get_usage (fixture->conversation, &used, &total));
  g_assert_cmpuint (used, ==, 15);
  g_assert_cmpuint (total, ==, 1000);
  chat = fake_engine_dup_chat ();
  g_assert_cmpstr (chat, ==, "user: Hello?\n");
  sampling = fake_engine_get_sampling ();
  g_assert_cmpfloat (sampling.temperature, ==, 0.5f);

  record = stored_at (fixture, &stored, 1);
  g_assert_cmpstr (record->text, ==, "word0 word1 word2 ");
  g_assert_cmpint (record->state, ==, OX_MESSAGE_COMPLETE);
  g_assert_cmpstr (record->model_name, ==, "Fake");
  g_assert_cmpuint (record->statistics.answer_tokens, ==, 3);

  /* The engine's side of it. */
  g_assert_cmpint (ox_engine_get_state (fixture->engine), ==, OX_ENGINE_READY);
  g_assert_cmpstr (ox_engine_get_model_name (fixture->engine), ==, "Fake");
  g_assert_cmpuint (ox_engine_get_weight_bytes (fixture->engine), ==, 12345);
  g_assert_cmpuint (ox_engine_get_session_bytes (fixture->engine), ==, 150);
  g_assert_cmpuint (ox_engine_get_memory_available (fixture->engine), ==, 1000);
  g_assert_false (ox_engine_get_busy (fixture->engine));
}

/* The question is in the file when the engine first hears of it. */
static void
test_saved_before_inference (Fixture *fixture, gconstpointer unused)
{
  g_autoptr (GPtrArray) stored = NULL;

  fake_engine_set_script (&(FakeScript) { .endless = STAGE_LOAD });
  send (fixture, "Remember me");
  while (fake_engine_get_stage () == STAGE_NONE)
    iterate ();
  g_assert_cmpstr (stored_at (fixture, &stored, 0)->text, ==, "Remember me");
  g_assert_cmpuint (stored->len, ==, 2);
  g_assert_cmpint (((OxMessageRecord *) stored->pdata[1])->state, ==, OX_MESSAGE_WRITING);
  ox_conversation_stop (fixture->conversation);
}

/* While it is being written, what is in the file is never more than half a second old. */
static void
test_saved_while_writing (Fixture *fixture, gconstpointer unused)
{
  OxMessage *answer;
  gint64 behind_since = 0;
  gint64 worst = 0;
  guint n_looks = 0;

  fake_engine_set_script (&(FakeScript) { .n_pieces = 400, .piece_delay = 5000 });
  answer = send (fixture, "Go on");
  while (ox_conversation_get_answering (fixture->conversation)) {
    g_autofree char *text = g_strdup (ox_message_get_text (answer));
    gint64 start = g_get_monotonic_time ();

    /* Until what was there at @start has arrived. */
    behind_since = 0;
    while (*text != '\0' && ox_conversation_get_answering (fixture->conversation)) {
      g_autoptr (GPtrArray) stored = NULL;
      if (strlen (stored_at (fixture, &stored, 1)->text) >= strlen (text)) {
        behind_since = g_get_monotonic_time () - start;
        break;
      }
    }
    worst = MAX (worst, behind_since);
    n_looks++;
    iterate ();
  }
  g_test_message ("at most %.0f ms behind, %u looks", (double) worst / 1000, n_looks);
  g_assert_cmpuint (n_looks, >, 2);
  g_assert_cmpint (worst, <, 500000);
}

static void
test_stop (Fixture *fixture, gconstpointer data)
{
  Stage stage = GPOINTER_TO_UINT (data);
  g_autoptr (GPtrArray) stored = NULL;
  OxMessage *answer;
  gint64 start;
  guint n_finished = 0;

  fake_engine_set_script (&(FakeScript) { .endless = stage, .n_pieces = 3, .deaf = 80 });
  answer = send (fixture, "Never mind");
  g_signal_connect_swapped (answer, "finished", G_CALLBACK (count_cb), &n_finished);
  if (stage != STAGE_NONE)
    run_until (fake_engine_get_stage () == stage);
  if (stage == STAGE_LOAD) {
    run_until (ox_message_get_load_progress (answer) == 0.25);
    g_assert_cmpint (ox_message_get_state (answer), ==, OX_MESSAGE_LOADING);
    g_assert_cmpint (ox_engine_get_state (fixture->engine), ==, OX_ENGINE_LOADING);
  } else if (stage == STAGE_PREFILL) {
    guint done;
    guint total;

    run_until (ox_message_get_state (answer) == OX_MESSAGE_READING);
    ox_message_get_prefill (answer, &done, &total);
    g_assert_cmpuint (done, ==, 3);
    g_assert_cmpuint (total, ==, 12);
  } else if (stage == STAGE_DECODE) {
    run_until (ox_message_get_text_length (answer) == strlen ("word0 word1 word2 "));
    g_assert_cmpint (ox_message_get_state (answer), ==, OX_MESSAGE_WRITING);
  }

  start = g_get_monotonic_time ();
  ox_conversation_stop (fixture->conversation);
  g_assert_cmpint (g_get_monotonic_time () - start, <, 50000);
  g_assert_false (ox_conversation_get_answering (fixture->conversation));
  g_assert_cmpint (ox_message_get_state (answer), ==, OX_MESSAGE_STOPPED);
  g_assert_cmpuint (n_finished, ==, 1);
  g_assert_cmpstr (ox_message_get_text (answer), ==, stage == STAGE_DECODE ? "word0 word1 word2 " : "");
  g_assert_cmpint (stored_at (fixture, &stored, 1)->state, ==, OX_MESSAGE_STOPPED);
  g_assert_cmpstr (((OxMessageRecord *) stored->pdata[1])->text, ==, ox_message_get_text (answer));

  /* The next question goes through, behind the one that still has to come back. */
  fake_engine_set_script (&(FakeScript) { .n_pieces = 1 });
  answer = send (fixture, "Again");
  wait_for_answer (fixture);
  g_assert_cmpint (ox_message_get_state (answer), ==, OX_MESSAGE_COMPLETE);
  g_assert_cmpuint (n_finished, ==, 1);
}

static void
test_failure (Fixture *fixture, gconstpointer data)
{
  static const struct {
    Stage stage;
    OxError code;
    const char *words;
  } cases[] = {
    { STAGE_LOAD, OX_ERROR_DAMAGED, "damaged" },
    { STAGE_LOAD, OX_ERROR_UNSUPPORTED, "cannot run" },
    { STAGE_LOAD, OX_ERROR_NO_MEMORY, "memory" },
    { STAGE_LOAD, OX_ERROR_NOT_FOUND, "missing" },
    { STAGE_LOAD, OX_ERROR_IO, "disk" },
    { STAGE_SESSION, OX_ERROR_NO_MEMORY, "memory" },
    { STAGE_PREFILL, OX_ERROR_CONTEXT_FULL, "longer" },
    { STAGE_DECODE, OX_ERROR_NUMERIC, "make no sense" },
    { STAGE_DECODE, OX_ERROR_INVALID, "could not answer" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GPtrArray) stored = NULL;
    OxMessageRecord *record;
    OxMessage *answer;
    guint position;

    fake_engine_set_script (&(FakeScript) { .fail = cases[i].stage, .fail_code = cases[i].code, .n_pieces = 2 });
    answer = send (fixture, "Try");
    wait_for_answer (fixture);
    g_assert_cmpint (ox_message_get_state (answer), ==, OX_MESSAGE_FAILED);
    g_assert_cmpint (ox_message_get_error_code (answer), ==, cases[i].code);
    g_test_message ("%s", ox_message_get_error (answer));
    g_assert_nonnull (strstr (ox_message_get_error (answer), cases[i].words));
    g_assert_nonnull (strstr (ox_message_get_error (answer), "Fake"));
    g_assert_nonnull (strstr (ox_message_get_error_details (answer), "fake.gguf"));
    g_assert_cmpstr (ox_message_get_text (answer), ==, cases[i].stage == STAGE_DECODE ? "word0 word1 " : "");
    g_assert_true (ox_conversation_find_position (fixture->conversation, answer, &position));
    record = stored_at (fixture, &stored, position);
    g_assert_cmpint (record->state, ==, OX_MESSAGE_FAILED);
    g_assert_cmpint (record->error_code, ==, cases[i].code);
    g_assert_cmpstr (record->error, ==, ox_message_get_error (answer));
  }
}

/* What the model gets to see: no failed or empty answers, roles that take turns, the system prompt. */
static void
test_chat_content (Fixture *fixture, gconstpointer unused)
{
  g_autofree char *chat = NULL;
  OxSampling sampling;
  GVariantDict settings;

  g_variant_dict_init (&settings, NULL);
  g_variant_dict_insert (&settings, "system-prompt", "s", "Be brief.");
  g_variant_dict_insert (&settings, "temperature", "d", 0.25);
  g_variant_dict_insert (&settings, "max-tokens", "u", 7);
  g_variant_dict_insert (&settings, "seed", "t", G_GUINT64_CONSTANT (99));
  ox_conversation_set_settings (fixture->conversation, g_variant_dict_end (&settings));

  fake_engine_set_script (&(FakeScript) { .n_pieces = 1 });
  send (fixture, "One");
  wait_for_answer (fixture);
  fake_engine_set_script (&(FakeScript) { .fail = STAGE_DECODE, .fail_code = OX_ERROR_NUMERIC, .n_pieces = 1 });
  send (fixture, "Two");
  wait_for_answer (fixture);
  fake_engine_set_script (&(FakeScript) { .endless = STAGE_PREFILL });
  send (fixture, "Three");
  run_until (fake_engine_get_stage () == STAGE_PREFILL);
  ox_conversation_stop (fixture->conversation);
  fake_engine_set_script (&(FakeScript) { .n_pieces = 2, .no_sampling = TRUE });
  send (fixture, "Four");
  wait_for_answer (fixture);
  chat = fake_engine_dup_chat ();
  g_assert_cmpstr (chat, ==, "system: Be brief.\nuser: One\nassistant: word0 \nuser: Two\n\nThree\n\nFour\n");

  /* A model that recommends nothing gets something that works; what the user set stands. */
  sampling = fake_engine_get_sampling ();
  g_assert_cmpfloat (sampling.temperature, ==, 0.25f);
  g_assert_cmpuint (sampling.max_tokens, ==, 7);
  g_assert_cmpuint (sampling.seed, ==, 99);
  g_assert_cmpfloat (sampling.top_p, ==, 0.95f);
  g_assert_cmpfloat (sampling.repetition_penalty, ==, 1);
  g_assert_cmpuint (sampling.top_k, ==, 40);
}

static void
test_retry_and_continue (Fixture *fixture, gconstpointer unused)
{
  g_autoptr (GPtrArray) stored = NULL;
  g_autofree char *chat = NULL;
  g_autofree char *longer_chat = NULL;
  g_autoptr (OxChatJob) job = NULL;
  OxMessage *answer;

  fake_engine_set_script (&(FakeScript) { .fail = STAGE_LOAD, .fail_code = OX_ERROR_NO_MEMORY });
  answer = send (fixture, "Question");
  wait_for_answer (fixture);
  fake_engine_set_script (&(FakeScript) { .n_pieces = 1, .end_reason = OX_END_LENGTH });
  job = ox_chat_job_retry (fixture->engine, fixture->conversation, answer, "/models/other.gguf", "Other");
  g_assert_nonnull (job);
  wait_for_answer (fixture);
  g_assert_cmpuint (ox_conversation_get_length (fixture->conversation), ==, 2);
  answer = message_at (fixture, 1);
  g_assert_cmpstr (ox_message_get_text (answer), ==, "word0 ");
  g_assert_cmpint (ox_message_get_end_reason (answer), ==, OX_END_LENGTH);
  g_assert_cmpstr (ox_message_get_model_name (answer), ==, "Other");
  chat = fake_engine_dup_chat ();
  g_assert_cmpstr (chat, ==, "user: Question\n");

  fake_engine_set_script (&(FakeScript) { .n_pieces = 2 });
  g_clear_object (&job);
  job = ox_chat_job_continue (fixture->engine, fixture->conversation, answer, "/models/other.gguf", "Other");
  g_assert_nonnull (job);
  wait_for_answer (fixture);
  g_assert_cmpstr (ox_message_get_text (answer), ==, "word0 word0 word1 ");
  g_assert_cmpint (ox_message_get_end_reason (answer), ==, OX_END_STOP);
  longer_chat = fake_engine_dup_chat ();
  g_assert_cmpstr (longer_chat, ==, "user: Question\nassistant: word0 \n");
  g_assert_cmpstr (stored_at (fixture, &stored, 1)->text, ==, "word0 word0 word1 ");
  g_assert_cmpuint (stored->len, ==, 2);
  g_assert_null (ox_chat_job_continue (fixture->engine, fixture->conversation, message_at (fixture, 0), "x", "x"));
  g_assert_null (ox_chat_job_retry (fixture->engine, fixture->conversation, message_at (fixture, 0), "x", "x"));
}

static void
test_memory (Fixture *fixture, gconstpointer unused)
{
  g_assert_cmpuint (ox_engine_get_memory_total (fixture->engine), ==, 0);
  ox_engine_refresh_memory (fixture->engine);
  run_until (ox_engine_get_memory_total (fixture->engine) == 4000);
  g_assert_cmpuint (ox_engine_get_memory_available (fixture->engine), ==, 1000);
  run_for (40);
}

/* A job for each of several conversations: one thread, in order; the last two sessions are kept, and the model is loaded once. */
static void
test_several_conversations (Fixture *fixture, gconstpointer unused)
{
  OxConversation *conversations[3];

  for (guint i = 0; i < G_N_ELEMENTS (conversations); i++) {
    conversations[i] = ox_conversation_new (fixture->store, FALSE);
    g_object_unref (ox_chat_job_send (fixture->engine, conversations[i], "Hi", "/models/fake.gguf", "Fake"));
  }
  for (guint i = 0; i < G_N_ELEMENTS (conversations); i++)
    run_until (!ox_conversation_get_answering (conversations[i]));
  g_assert_cmpuint (fake_engine_count_loads (), ==, 1);
  g_assert_cmpuint (fake_engine_count_sessions (), ==, 3);
  g_object_unref (ox_chat_job_send (fixture->engine, conversations[1], "Hi", "/models/fake.gguf", "Fake"));
  run_until (!ox_conversation_get_answering (conversations[1]));
  g_assert_cmpuint (fake_engine_count_sessions (), ==, 3);
  g_object_unref (ox_chat_job_send (fixture->engine, conversations[0], "Hi", "/models/fake.gguf", "Fake"));
  run_until (!ox_conversation_get_answering (conversations[0]));
  g_assert_cmpuint (fake_engine_count_sessions (), ==, 4);
  /* A model and two sessions. */
  g_assert_cmpint (fake_engine_count_alive (), ==, 3);
  ox_engine_forget_conversation (fixture->engine, ox_conversation_get_id (conversations[0]));
  run_until (fake_engine_count_alive () == 2);
  g_object_unref (ox_engine_unload (fixture->engine));
  run_until (fake_engine_count_alive () == 0);
  run_until (ox_engine_get_state (fixture->engine) == OX_ENGINE_EMPTY);
  g_assert_null (ox_engine_get_model_path (fixture->engine));
  g_object_unref (ox_engine_load (fixture->engine, "/models/fake.gguf"));
  run_until (ox_engine_get_state (fixture->engine) == OX_ENGINE_READY);
  for (guint i = 0; i < G_N_ELEMENTS (conversations); i++)
    g_object_unref (conversations[i]);
}

/* The end of the app in mid-answer: bounded, and what was said is in the file. */
static void
test_quit_while_answering (Fixture *fixture, gconstpointer unused)
{
  g_autoptr (OxConversationList) list = NULL;
  g_autoptr (GPtrArray) messages = NULL;
  OxMessage *answer;
  gint64 start;

  fake_engine_set_script (&(FakeScript) { .endless = STAGE_DECODE, .n_pieces = 50, .piece_delay = 100, .deaf = 90 });
  answer = send (fixture, "Tell me everything");
  run_until (ox_message_get_text_length (answer) > 300);
  ox_conversation_set_draft (fixture->conversation, "not sent yet");

  start = g_get_monotonic_time ();
  ox_conversation_stop (fixture->conversation);
  ox_conversation_flush (fixture->conversation);
  g_assert_true (ox_engine_shutdown (fixture->engine, 2 * G_USEC_PER_SEC));
  g_assert_true (ox_store_close (fixture->store, 5 * G_USEC_PER_SEC));
  g_test_message ("%.0f ms", (double) (g_get_monotonic_time () - start) / 1000);
  g_assert_cmpint (g_get_monotonic_time () - start, <, 1000000);
  run_for (40);
  g_object_unref (fixture->store);

  fixture->store = open_store (fixture->path);
  messages = list_messages (fixture->store, ox_conversation_get_id (fixture->conversation));
  g_assert_cmpuint (messages->len, ==, 2);
  g_assert_cmpstr (((OxMessageRecord *) messages->pdata[1])->text, ==, ox_message_get_text (answer));
  g_assert_cmpint (((OxMessageRecord *) messages->pdata[1])->state, ==, OX_MESSAGE_STOPPED);
  list = ox_conversation_list_new (fixture->store);
  ox_conversation_list_load (list, NULL, NULL, NULL);
  run_until (ox_conversation_list_get_loaded (list));
  g_autoptr (OxConversation) again = g_list_model_get_item (G_LIST_MODEL (list), 0);
  g_assert_cmpstr (ox_conversation_get_draft (again), ==, "not sent yet");
}

/* With a full disk the question is answered all the same, the user is told, and the next message saves all of it. */
static void
test_disk_full (Fixture *fixture, gconstpointer unused)
{
  g_autofree char *long_text = g_strnfill (100000, 'z');
  g_autoptr (GPtrArray) stored = NULL;
  struct rlimit limit;
  struct rlimit small;
  GStatBuf info;
  OxMessage *answer;
  guint n_told = 0;

  g_signal_connect_swapped (fixture->store, "write-failed", G_CALLBACK (count_cb), &n_told);
  g_stat (fixture->path, &info);
  signal (SIGXFSZ, SIG_IGN);
  getrlimit (RLIMIT_FSIZE, &limit);
  small = limit;
  small.rlim_cur = info.st_size + 20000;
  setrlimit (RLIMIT_FSIZE, &small);
  answer = send (fixture, long_text);
  wait_for_answer (fixture);
  /* The last saving of it has been tried as well. */
  g_clear_pointer (&stored, g_ptr_array_unref);
  stored = list_messages (fixture->store, ox_conversation_get_id (fixture->conversation));
  setrlimit (RLIMIT_FSIZE, &limit);
  g_assert_cmpint (ox_message_get_state (answer), ==, OX_MESSAGE_COMPLETE);
  g_assert_cmpuint (n_told, >=, 1);
  g_assert_false (ox_conversation_get_saved (fixture->conversation));
  g_assert_cmpuint (stored->len, ==, 0);

  send (fixture, "And now?");
  wait_for_answer (fixture);
  g_clear_pointer (&stored, g_ptr_array_unref);
  g_assert_cmpuint (strlen (stored_at (fixture, &stored, 0)->text), ==, 100000);
  g_assert_cmpuint (stored->len, ==, 4);
  g_assert_true (ox_conversation_get_saved (fixture->conversation));
}

static void
count_appended_cb (guint *n, const char *piece)
{
  g_assert_cmpstr (piece, !=, "");
  (*n)++;
}

/* 2000 tokens a second are no more work for the window than 60 frames. */
static void
test_fast_tokens (Fixture *fixture, gconstpointer unused)
{
  OxMessage *answer;
  guint n_appended = 0;
  gint64 start = g_get_monotonic_time ();
  double frames;

  fake_engine_set_script (&(FakeScript) { .n_pieces = 2000, .piece_delay = 300 });
  answer = send (fixture, "Quick");
  g_signal_connect_swapped (answer, "appended", G_CALLBACK (count_appended_cb), &n_appended);
  wait_for_answer (fixture);
  frames = (double) (g_get_monotonic_time () - start) / 16000;
  g_test_message ("2000 tokens, %.0f frames, %u appends", frames, n_appended);
  g_assert_cmpuint (n_appended, <=, (guint) frames + 3);
  g_assert_true (g_str_has_suffix (ox_message_get_text (answer), "word1999 "));
}

static void
test_temporary (Fixture *fixture, gconstpointer unused)
{
  g_autoptr (OxConversation) temporary = ox_conversation_new (fixture->store, TRUE);
  g_autoptr (GPtrArray) conversations = NULL;

  g_object_unref (ox_chat_job_send (fixture->engine, temporary, "Secret", "/models/fake.gguf", "Fake"));
  ox_conversation_set_draft (temporary, "Secret too");
  ox_conversation_set_pinned (temporary, TRUE);
  run_until (!ox_conversation_get_answering (temporary));
  ox_conversation_flush (temporary);
  g_assert_cmpuint (ox_conversation_get_length (temporary), ==, 2);
  conversations = list_conversations (fixture->store);
  g_assert_cmpuint (conversations->len, ==, 0);
}

/* Erased while its answer is on the way. */
static void
test_delete_while_answering (Fixture *fixture, gconstpointer unused)
{
  OxConversationList *list = ox_conversation_list_new (fixture->store);
  g_autoptr (OxConversation) conversation = ox_conversation_list_create (list);
  g_autoptr (GPtrArray) conversations = NULL;

  fake_engine_set_script (&(FakeScript) { .endless = STAGE_DECODE, .n_pieces = 5 });
  g_object_unref (ox_chat_job_send (fixture->engine, conversation, "Hi", "/models/fake.gguf", "Fake"));
  g_assert_cmpuint (g_list_model_get_n_items (G_LIST_MODEL (list)), ==, 1);
  run_until (fake_engine_get_stage () == STAGE_DECODE);
  ox_conversation_list_delete (list, conversation);
  g_assert_false (ox_conversation_get_answering (conversation));
  g_assert_cmpuint (g_list_model_get_n_items (G_LIST_MODEL (list)), ==, 0);
  ox_conversation_list_purge (list, conversation);
  run_for (100);
  conversations = list_messages (fixture->store, ox_conversation_get_id (conversation));
  g_assert_cmpuint (conversations->len, ==, 0);
  g_assert_finalize_object (list);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, G_TEST_OPTION_ISOLATE_DIRS, NULL);
#define ADD(name, data, function)                                                                                      \
  g_test_add ("/chat/" name, Fixture, GUINT_TO_POINTER (data), set_up, function, tear_down)
  ADD ("answer", 0, test_answer);
  ADD ("saved/before-inference", 0, test_saved_before_inference);
  ADD ("saved/while-writing", 0, test_saved_while_writing);
  ADD ("stop/waiting", STAGE_NONE, test_stop);
  ADD ("stop/load", STAGE_LOAD, test_stop);
  ADD ("stop/prefill", STAGE_PREFILL, test_stop);
  ADD ("stop/decode", STAGE_DECODE, test_stop);
  ADD ("failure", 0, test_failure);
  ADD ("chat-content", 0, test_chat_content);
  ADD ("retry-and-continue", 0, test_retry_and_continue);
  ADD ("memory", 0, test_memory);
  ADD ("several-conversations", 0, test_several_conversations);
  ADD ("quit-while-answering", 0, test_quit_while_answering);
  ADD ("disk-full", 0, test_disk_full);
  ADD ("fast-tokens", 0, test_fast_tokens);
  ADD ("temporary", 0, test_temporary);
  ADD ("delete-while-answering", 0, test_delete_while_answering);
  return g_test_run ();
}
