/* What a hostile or unlucky user does to the engine: stops it at every moment, shares a model between threads, talks nonsense.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-toy-model.h"
#include "ox-session-private.h"
#include "text/ox-bpe.h"
#include "text/ox-sampler.h"

#include <string.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>
#include <glib/gstdio.h>

/* ---- A cancellable that is cancelled at the k-th look at it ---- */

/* The engine's looks come here: these take the place of GIO's in this program. */
static GCancellable *counted;
static gint looks_left; /* atomic */

static gboolean
look (GCancellable *cancellable)
{
  return cancellable != NULL && cancellable == counted && g_atomic_int_add (&looks_left, -1) <= 0;
}

gboolean
g_cancellable_is_cancelled (GCancellable *cancellable)
{
  return look (cancellable);
}

gboolean
g_cancellable_set_error_if_cancelled (GCancellable *cancellable, GError **error)
{
  if (!look (cancellable))
    return FALSE;
  g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_CANCELLED, "Operation was cancelled");
  return TRUE;
}

typedef struct {
  guint n_ends;
  OxEndReason reason;
  GString *text;
  double progress;
} Seen;

static void
on_progress (double fraction, gpointer user_data)
{
  Seen *seen = user_data;

  g_assert_cmpfloat (fraction, >=, seen->progress);
  g_assert_cmpfloat (fraction, <=, 1);
  seen->progress = fraction;
}

static void
on_event (const OxEvent *event, gpointer user_data)
{
  Seen *seen = user_data;

  g_assert_cmpuint (seen->n_ends, ==, 0);
  if (event->type == OX_EVENT_TEXT)
    g_string_append (seen->text, event->text);
  if (event->type == OX_EVENT_END) {
    seen->n_ends++;
    seen->reason = event->reason;
  }
}

static const OxSampling greedy = { .top_p = 1, .repetition_penalty = 1, .max_tokens = 8 };

/* The greedy answer of @session to @question. */
static char *
answer (OxSession *session, const char *question)
{
  g_autoptr (OxChat) chat = ox_chat_new ();
  g_autoptr (GError) error = NULL;
  g_autoptr (GString) text = g_string_new (NULL);
  Seen seen = { .text = text };

  ox_chat_append (chat, OX_ROLE_USER, question);
  g_assert_true (ox_session_generate (session, chat, &greedy, on_event, &seen, NULL, &error));
  g_assert_no_error (error);
  return g_strdup (text->str);
}

static void
test_cancel_load (gconstpointer data)
{
  const OxToyModel *toy = data;
  char *path = ox_toy_model_make (toy);
  OxModelOptions options = { .threads = 2 };

  counted = g_cancellable_new ();
  for (int k = 0;; k++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (OxModel) model = NULL;
    Seen seen = { 0 };

    g_atomic_int_set (&looks_left, k);
    model = ox_model_load (path, &options, on_progress, &seen, counted, &error);
    if (model != NULL) {
      g_assert_no_error (error);
      g_assert_cmpfloat (seen.progress, ==, 1);
      g_assert_cmpint (k, >, 5);
      break;
    }
    g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  }
  for (int k = 0; k < 10; k++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (OxModelPlan) plan = NULL;

    g_atomic_int_set (&looks_left, k);
    plan = ox_model_plan (path, &options, counted, &error);
    g_assert_true ((plan != NULL) == (error == NULL));
    if (plan == NULL)
      g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  }
  g_clear_object (&counted);
  ox_toy_model_delete (path);
}

/* Wherever it is stopped, the session answers afterwards as a new one does. */
static void
test_cancel_answer (gconstpointer data)
{
  const OxToyModel *toy = data;
  char *path = ox_toy_model_make (toy);
  OxModelOptions options = { .threads = 2 };
  g_autoptr (OxModel) model = ox_model_load (path, &options, NULL, NULL, NULL, NULL);
  g_autoptr (OxSession) fresh = ox_session_new_full (model, 16, NULL, NULL, NULL);
  g_autoptr (OxSession) session = ox_session_new_full (model, 16, NULL, NULL, NULL);
  g_autofree char *expected = answer (fresh, "the sea and the user");
  g_autofree char *expected_other = NULL;
  g_autoptr (OxSession) fresh_other = ox_session_new_full (model, 16, NULL, NULL, NULL);
  guint stops = 0;
  gboolean done = FALSE;

  expected_other = answer (fresh_other, "the sea and then something else");
  counted = g_cancellable_new ();
  for (int k = 0; !done; k += k < 200 ? 1 : 37) {
    g_autoptr (OxChat) chat = ox_chat_new ();
    g_autoptr (GError) error = NULL;
    g_autoptr (GString) text = g_string_new (NULL);
    Seen seen = { .text = text };

    ox_chat_append (chat, OX_ROLE_USER, "the sea and the user");
    g_atomic_int_set (&looks_left, k);
    done = ox_session_generate (session, chat, &greedy, on_event, &seen, counted, &error);
    g_assert_cmpuint (seen.n_ends, ==, 1);
    if (done) {
      g_assert_no_error (error);
      g_assert_cmpstr (text->str, ==, expected);
    } else {
      g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
      g_assert_cmpint (seen.reason, ==, OX_END_CANCELLED);
      g_assert_true (g_str_has_prefix (expected, text->str));
      stops++;
    }
    if (k % 7 == 0) {
      g_autofree char *other = answer (session, "the sea and then something else");
      g_assert_cmpstr (other, ==, expected_other);
    }
  }
  g_test_message ("stopped at %u different moments", stops);
  g_assert_cmpuint (stops, >, 100);
  g_clear_object (&counted);
  ox_toy_model_delete (path);
}

/* A message that takes long to cut into tokens is stopped there, too. */
static void
test_cancel_long_text (gconstpointer data)
{
  const OxToyModel *toy = data;
  char *path = ox_toy_model_make (toy);
  g_autoptr (OxModel) model = ox_model_load (path, NULL, NULL, NULL, NULL, NULL);
  g_autoptr (OxSession) session = ox_session_new (model, NULL);
  g_autofree char *one_word = g_strnfill (4 << 20, 'h');
  g_autofree char *words = g_strnfill (4 << 20, 'x');
  const char *texts[] = { one_word, words };

  /* "he" is a pair that merges. */
  for (gsize i = 1; i < 4 << 20; i += 2)
    one_word[i] = 'e';
  for (gsize i = 7; i < 4 << 20; i += 11)
    words[i] = ' ';
  counted = g_cancellable_new ();
  for (gsize i = 0; i < G_N_ELEMENTS (texts); i++)
    for (guint raw = 0; raw < 2; raw++) {
      g_autoptr (OxChat) chat = ox_chat_new ();
      g_autoptr (GError) error = NULL;
      g_autoptr (GString) text = g_string_new (NULL);
      Seen seen = { .text = text };

      ox_chat_append (chat, OX_ROLE_USER, texts[i]);
      /* The second look is well inside of the text. */
      g_atomic_int_set (&looks_left, 2);
      g_assert_false (raw ? ox_session_complete (session, texts[i], &greedy, on_event, &seen, counted, &error)
                          : ox_session_generate (session, chat, &greedy, on_event, &seen, counted, &error));
      g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
      g_assert_cmpint (seen.reason, ==, OX_END_CANCELLED);
      g_assert_cmpuint (seen.n_ends, ==, 1);
    }
  g_clear_object (&counted);
  ox_toy_model_delete (path);
}

/* ---- Memory ---- */

/* An address space with little room left: errors, where GLib would end the program. */
static void
test_no_memory (void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  g_test_skip ("sanitizers need the address space for themselves");
#else
  if (g_test_subprocess ()) {
    const OxSampling sampling = { .temperature = 1, .top_p = 1, .repetition_penalty = 1 };
    char *path = ox_toy_model_make (&(OxToyModel) { 0 });
    g_autoptr (OxModel) model = ox_model_load (path, &(OxModelOptions) { .threads = 1 }, NULL, NULL, NULL, NULL);
    g_autoptr (OxSession) session = ox_session_new (model, NULL);
    g_autofree char *text = g_strnfill (10 << 20, 'x');
    g_autofree char *status = NULL;
    g_autoptr (GError) error = NULL;
    OxSampler *sampler;
    struct rlimit limit;
    guint64 now;

    ox_toy_model_delete (path);
    g_assert_true (g_file_get_contents ("/proc/self/status", &status, NULL, NULL));
    now = g_ascii_strtoull (strstr (status, "VmSize:") + strlen ("VmSize:"), NULL, 10) << 10;
    limit = (struct rlimit) { now + (100 << 20), now + (100 << 20) };
    g_assert_no_errno (setrlimit (RLIMIT_AS, &limit));

    sampler = ox_sampler_new (&sampling, 1 << 24, NULL, 0, &error);
    g_assert_null (sampler);
    g_assert_error (error, OX_ERROR, OX_ERROR_NO_MEMORY);
    g_clear_error (&error);
    g_assert_null (ox_vocab_new (1 << 24, TRUE, &error));
    g_assert_error (error, OX_ERROR, OX_ERROR_NO_MEMORY);
    g_clear_error (&error);
    g_assert_null (ox_bpe_new (NULL, &(OxBpeOptions) { 0 }, 1 << 24, &error));
    g_assert_error (error, OX_ERROR, OX_ERROR_NO_MEMORY);
    g_clear_error (&error);
    g_assert_false (ox_session_complete (session, text, &greedy, NULL, NULL, NULL, &error));
    g_assert_error (error, OX_ERROR, OX_ERROR_NO_MEMORY);
    return;
  }
  g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_DEFAULT);
  g_test_trap_assert_passed ();
#endif
}

/* ---- Threads ---- */

static void
test_threads (void)
{
  static const guint counts[] = { 1, 2, 3, 64, 4096, G_MAXUINT };
  char *path = ox_toy_model_make (&(OxToyModel) { .hidden = 96, .feed_forward = 200 });
  g_autofree char *expected = NULL;

  for (gsize i = 0; i < G_N_ELEMENTS (counts); i++) {
    OxModelOptions options = { .threads = counts[i] };
    g_autoptr (GError) error = NULL;
    g_autoptr (OxModel) model = ox_model_load (path, &options, NULL, NULL, NULL, &error);
    g_autoptr (OxSession) session = NULL;
    g_autofree char *text = NULL;

    g_assert_no_error (error);
    session = ox_session_new (model, &error);
    g_assert_no_error (error);
    text = answer (session, "hello");
    if (expected == NULL)
      expected = g_steal_pointer (&text);
    else
      g_assert_cmpstr (text, ==, expected);
  }
  ox_toy_model_delete (path);
}

typedef struct {
  OxModel *model;
  const char *expected;
  gint *stop;
  gint64 rounds;
} Talker;

static gpointer
talk (gpointer data)
{
  Talker *talker = data;
  g_autoptr (OxSession) session = ox_session_new (talker->model, NULL);

  while (!g_atomic_int_get (talker->stop)) {
    g_autofree char *text = answer (session, "hello");

    g_assert_cmpstr (text, ==, talker->expected);
    talker->rounds++;
  }
  return NULL;
}

/* Sessions of one model take turns: none waits while another answers ten times as often. */
static void
test_two_sessions (void)
{
  char *path = ox_toy_model_make (&(OxToyModel) { .hidden = 512, .feed_forward = 1024, .layers = 4 });
  OxModelOptions options = { .threads = 2 };
  g_autoptr (OxModel) model = ox_model_load (path, &options, NULL, NULL, NULL, NULL);
  g_autoptr (OxSession) session = ox_session_new (model, NULL);
  g_autofree char *expected = answer (session, "hello");
  gint stop = 0;
  Talker talkers[2] = { { model, expected, &stop, 0 }, { model, expected, &stop, 0 } };
  GThread *threads[2];

  for (guint i = 0; i < 2; i++)
    threads[i] = g_thread_new ("talker", talk, &talkers[i]);
  g_usleep (2 * G_USEC_PER_SEC);
  g_atomic_int_set (&stop, 1);
  for (guint i = 0; i < 2; i++)
    g_thread_join (threads[i]);
  g_test_message ("answers: %d and %d", (int) talkers[0].rounds, (int) talkers[1].rounds);
  g_assert_cmpint (talkers[0].rounds + 1, >=, talkers[1].rounds / 10);
  g_assert_cmpint (talkers[1].rounds + 1, >=, talkers[0].rounds / 10);
  ox_toy_model_delete (path);
}

/* ---- The file goes away ---- */

static void
test_file_goes_away (void)
{
  char *path = ox_toy_model_make (&(OxToyModel) { 0 });
  g_autoptr (OxModel) model = ox_model_load (path, NULL, NULL, NULL, NULL, NULL);
  g_autoptr (OxSession) session = ox_session_new (model, NULL);
  g_autofree char *before = answer (session, "hello");
  g_autofree char *after = NULL;
  g_autoptr (OxChat) chat = ox_chat_new ();
  g_autoptr (GError) error = NULL;
  g_autoptr (GString) text = g_string_new (NULL);
  Seen seen = { .text = text };
  g_autofree char *content = NULL;
  gsize len;

  g_assert_true (g_file_get_contents (path, &content, &len, NULL));
  /* Cut short under the running model, an error; whole again, the session goes on. */
  g_assert_no_errno (truncate (path, 100));
  ox_chat_append (chat, OX_ROLE_USER, "hello you");
  g_assert_false (ox_session_generate (session, chat, &greedy, on_event, &seen, NULL, &error));
  g_assert_error (error, OX_ERROR, OX_ERROR_IO);
  g_assert_nonnull (strstr (error->message, "toy-"));
  g_assert_cmpint (seen.reason, ==, OX_END_ERROR);
  {
    int fd = g_open (path, O_WRONLY, 0);

    g_assert_cmpint (write (fd, content, len), ==, len);
    close (fd);
  }
  after = answer (session, "hello");
  g_assert_cmpstr (before, ==, after);
  g_unlink (path);
  g_free (g_steal_pointer (&after));
  after = answer (session, "hello");
  g_assert_cmpstr (before, ==, after);
  g_free (path);
}

/* File names are bytes. What people get to read is UTF-8 all the same. */
static void
test_odd_names (void)
{
  static const char *const names[] = { "\xff\xfe.gguf", "a\377b\n\001.gguf",      ".gguf",
                                       "-.gguf",        "\xe2\x80\xae-Q4_1.gguf", "\xd7\xa9\xd7\x9c.gguf" };
  g_autofree char *folder = g_dir_make_tmp ("odd-\xff-XXXXXX", NULL);

  g_assert_nonnull (folder);
  for (gsize i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autofree char *path = g_build_filename (folder, names[i], NULL);
    g_autoptr (OxModelPlan) plan = NULL;
    g_autoptr (GError) error = NULL;

    ox_toy_model_write (&(OxToyModel) { .sparse = TRUE }, path);
    plan = ox_model_plan (path, NULL, NULL, &error);
    g_assert_no_error (error);
    g_assert_cmpstr (plan->path, ==, path);
    g_assert_true (g_utf8_validate (plan->name, -1, NULL));
    g_assert_cmpuint (strlen (plan->name), >, 0);
    ox_toy_model_write (&(OxToyModel) { .missing = "output_norm.weight" }, path);
    g_assert_null (ox_model_plan (path, NULL, NULL, &error));
    g_assert_error (error, OX_ERROR, OX_ERROR_DAMAGED);
    g_assert_true (g_utf8_validate (error->message, -1, NULL));
    g_assert_no_errno (g_unlink (path));
  }
  g_assert_no_errno (g_rmdir (folder));
}

/* ---- Odd conversations ---- */

static void
test_odd_chats (gconstpointer data)
{
  const OxToyModel *toy = data;
  char *path = ox_toy_model_make (toy);
  g_autoptr (OxModel) model = ox_model_load (path, NULL, NULL, NULL, NULL, NULL);
  g_autoptr (OxSession) session = ox_session_new (model, NULL);
  g_autofree char *megabyte = g_strnfill (1 << 20, 'x');
  static const char *const texts[] = { "",
                                       "\n",
                                       " ",
                                       "\xff\xfe\x80",
                                       "\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d \xe2\x80\xae abc",
                                       "<|im_start|><|im_end|><start_of_turn><end_of_turn><bos>",
                                       "\xed\xa0\x80\xf4\x90\x80\x80",
                                       "<0x00><0xFF>",
                                       "\x01\x1b[31m\x7f" };
  static const OxRole orders[][3] = {
    { OX_ROLE_SYSTEM, OX_ROLE_SYSTEM, OX_ROLE_SYSTEM },    { OX_ROLE_ASSISTANT, OX_ROLE_ASSISTANT, OX_ROLE_ASSISTANT },
    { OX_ROLE_USER, OX_ROLE_ASSISTANT, OX_ROLE_USER },     { OX_ROLE_SYSTEM, OX_ROLE_USER, OX_ROLE_ASSISTANT },
    { OX_ROLE_USER, OX_ROLE_USER, OX_ROLE_USER },          { OX_ROLE_USER, OX_ROLE_SYSTEM, OX_ROLE_USER },
    { OX_ROLE_ASSISTANT, OX_ROLE_USER, OX_ROLE_ASSISTANT }
  };

  for (gsize t = 0; t < G_N_ELEMENTS (texts) + 1; t++)
    for (gsize o = 0; o < G_N_ELEMENTS (orders); o++)
      for (guint n = 0; n <= 3; n++) {
        g_autoptr (OxChat) chat = ox_chat_new ();
        g_autoptr (GError) error = NULL;
        g_autoptr (GString) text = g_string_new (NULL);
        Seen seen = { .text = text };
        gboolean ok;

        for (guint i = 0; i < n; i++)
          ox_chat_append (chat, orders[o][i], t < G_N_ELEMENTS (texts) ? texts[t] : megabyte);
        ok = ox_session_generate (session, chat, &greedy, on_event, &seen, NULL, &error);
        g_assert_cmpuint (seen.n_ends, ==, 1);
        g_assert_true (ok == (error == NULL));
        g_assert_true (g_utf8_validate (text->str, -1, NULL));
        if (!ok) {
          g_assert_cmpint (seen.reason, ==, OX_END_ERROR);
          g_assert_true (g_error_matches (error, OX_ERROR, OX_ERROR_INVALID) ||
                         g_error_matches (error, OX_ERROR, OX_ERROR_CONTEXT_FULL));
        }
      }
  ox_toy_model_delete (path);
}

static void
test_many_messages (gconstpointer data)
{
  const OxToyModel *toy = data;
  char *path = ox_toy_model_make (toy);
  g_autoptr (OxModel) model = ox_model_load (path, NULL, NULL, NULL, NULL, NULL);
  g_autoptr (OxSession) session = ox_session_new (model, NULL);
  g_autoptr (OxChat) chat = ox_chat_new ();
  g_autoptr (GError) error = NULL;
  g_autoptr (GString) text = g_string_new (NULL);
  Seen seen = { .text = text };
  gint64 start = g_get_monotonic_time ();

  for (guint i = 0; i < 10001; i++)
    ox_chat_append (chat, i % 2 == 0 ? OX_ROLE_USER : OX_ROLE_ASSISTANT, "hello you");
  g_assert_false (ox_session_generate (session, chat, &greedy, on_event, &seen, NULL, &error));
  g_assert_error (error, OX_ERROR, OX_ERROR_CONTEXT_FULL);
  g_assert_cmpint (g_get_monotonic_time () - start, <, 5 * G_USEC_PER_SEC);
  ox_toy_model_delete (path);
}

int
main (int argc, char **argv)
{
  static const OxToyModel llama = { 0 };
  static const OxToyModel gemma = { .gemma = TRUE, .layers = 3 };

  g_test_init (&argc, &argv, NULL);
  g_test_add_data_func ("/break/cancel-load/llama", &llama, test_cancel_load);
  g_test_add_data_func ("/break/cancel-load/gemma", &gemma, test_cancel_load);
  g_test_add_data_func ("/break/cancel-answer/llama", &llama, test_cancel_answer);
  g_test_add_data_func ("/break/cancel-answer/gemma", &gemma, test_cancel_answer);
  g_test_add_data_func ("/break/cancel-long-text/llama", &llama, test_cancel_long_text);
  g_test_add_data_func ("/break/cancel-long-text/gemma", &gemma, test_cancel_long_text);
  g_test_add_func ("/break/no-memory", test_no_memory);
  g_test_add_func ("/break/threads", test_threads);
  g_test_add_func ("/break/two-sessions", test_two_sessions);
  g_test_add_func ("/break/file-goes-away", test_file_goes_away);
  g_test_add_func ("/break/odd-names", test_odd_names);
  g_test_add_data_func ("/break/odd-chats/llama", &llama, test_odd_chats);
  g_test_add_data_func ("/break/odd-chats/gemma", &gemma, test_odd_chats);
  g_test_add_data_func ("/break/many-messages/llama", &llama, test_many_messages);
  g_test_add_data_func ("/break/many-messages/gemma", &gemma, test_many_messages);
  return g_test_run ();
}
