/* What a hostile or unlucky user does to sessions: goes back, stops, saves, restores and guesses ahead in any order, with every
 * network, and is to find what a session that never did any of it would hold.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-session-private.h"

#include <string.h>
#include <glib/gstdio.h>

static const char *const names[] = { "gemma3",     "gemma4-12b", "gemma4-26b",   "gemma4-31b",
                                     "gemma4-e2b", "gemma4-e4b", "qwen35-small", "qwen35-large" };

static OxModel *
load (const char *name, const OxModelOptions *options)
{
  g_autofree char *path = g_build_filename (g_getenv ("OX_TEST_DATA"), "golden", "text", name, "model", NULL);
  g_autoptr (GError) error = NULL;
  OxModel *model;

  if (!g_file_test (path, G_FILE_TEST_IS_DIR)) {
    g_test_skip ("the golden checkpoint is not there");
    return NULL;
  }
  model = ox_model_load_full (path, options, FALSE, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  return model;
}

/* Logits of token @next behind the tokens of @session, as a session that has read them from the beginning gives them. */
static void
assert_like_fresh (OxSession *session, guint chunk, guint32 next, const char *story)
{
  OxModel *model = session->model;
  guint n_vocab = model->config->vocab_size;
  g_autoptr (OxSession) fresh = ox_session_new_full (model, chunk, NULL, NULL, NULL);
  g_autofree float *expected = g_new (float, n_vocab);
  g_autofree float *found = g_new (float, n_vocab);
  g_autoptr (GError) error = NULL;
  float largest = 0, off = 0;

  if (session->tokens->len > 0)
    ox_session_eval (fresh, (const guint32 *) session->tokens->data, session->tokens->len, OX_LOGITS_NONE, NULL, NULL,
                     &error);
  g_assert_no_error (error);
  ox_session_eval (fresh, &next, 1, OX_LOGITS_LAST, expected, NULL, &error);
  g_assert_no_error (error);
  ox_session_eval (session, &next, 1, OX_LOGITS_LAST, found, NULL, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < n_vocab; i++) {
    largest = MAX (largest, ABS (expected[i]));
    off = MAX (off, ABS (expected[i] - found[i]));
  }
  if (!(off <= 1e-4f * MAX (largest, 1)))
    g_error ("logits are off by %g of %g after %s", (double) off, (double) largest, story);
}

static gpointer
cancel_soon (gpointer data)
{
  g_usleep ((gulong) g_random_int_range (0, 1500));
  g_cancellable_cancel (data);
  return NULL;
}

static void
test_anything (gconstpointer data)
{
  static const guint chunks[] = { 1, 7, 64, 0 };
  static const guint contexts[] = { 40, 300, 1000 };
  const char *name = data;
  g_autoptr (GRand) random = g_rand_new_with_seed ((guint32) g_test_rand_int ());
  g_autofree char *folder = g_dir_make_tmp ("ox-break-XXXXXX", NULL);
  g_autofree char *path = g_build_filename (folder, "session", NULL);

  for (guint c = 0; c < G_N_ELEMENTS (contexts); c++) {
    OxModelOptions options = { .precision = OX_MODEL_PRECISION_EXACT, .context_length = contexts[c], .threads = 2 };
    g_autoptr (OxModel) model = load (name, &options);
    guint n_vocab;

    if (model == NULL)
      return;
    n_vocab = model->config->vocab_size;
    for (guint k = 0; k < G_N_ELEMENTS (chunks); k++) {
      g_autoptr (OxSession) session = ox_session_new_full (model, chunks[k], NULL, NULL, NULL);
      g_autoptr (GString) story = g_string_new (NULL);
      g_autofree float *logits = g_new (float, (gsize) n_vocab *OX_LOGIT_ROWS);
      gboolean saved = FALSE;

      g_string_append_printf (story, "%s context %u chunk %u:", name, contexts[c], chunks[k]);
      if (g_rand_boolean (random))
        ox_session_set_snapshot_limit (session, (guint64) g_rand_int_range (random, 0, 1 << 20));
      if (g_rand_boolean (random)) {
        struct _OxLookahead *lookahead;

        g_assert_true (ox_session_get_lookahead (session, &lookahead, NULL));
      }
      for (guint step = 0; step < 30; step++) {
        guint held = session->tokens->len;
        guint room = contexts[c] - held;
        g_autofree guint32 *ids = g_new (guint32, contexts[c]);
        g_autoptr (GError) error = NULL;

        for (guint i = 0; i < contexts[c]; i++)
          ids[i] = (guint32) g_rand_int_range (random, 0, (gint32) n_vocab);
        switch (g_rand_int_range (random, 0, 9)) {
        case 0:
        case 1:
        case 2: {
          guint n = (guint) g_rand_int_range (random, 0, (gint32) MIN (room, 200) + 1);

          g_string_append_printf (story, " +%u", n);
          ox_session_eval (session, ids, n, OX_LOGITS_NONE, NULL, NULL, &error);
          g_assert_no_error (error);
          break;
        }
        case 3: {
          g_autoptr (GCancellable) cancellable = g_cancellable_new ();
          GThread *thread = g_thread_new ("cancel", cancel_soon, cancellable);
          guint n = MIN (room, 150);

          ox_session_eval (session, ids, n, OX_LOGITS_NONE, NULL, cancellable, &error);
          g_thread_join (thread);
          g_string_append_printf (story, " cancelled+%u/%u", session->tokens->len - held, n);
          break;
        }
        case 4: {
          guint length = (guint) g_rand_int_range (random, 0, (gint32) held + 1);
          guint reusable = ox_session_get_reusable (session, length);

          g_string_append_printf (story, " cut%u>%u", length, reusable);
          ox_session_truncate (session, length);
          g_assert_cmpuint (session->tokens->len, ==, reusable);
          break;
        }
        case 5:
          g_string_append (story, " turn");
          ox_session_note_turn (session, held);
          break;
        case 6: {
          guint wanted = (guint) g_rand_int_range (random, 1, OX_LOGIT_ROWS + 1);
          guint n = MIN (room, wanted);
          guint keep = (guint) g_rand_int_range (random, 0, (gint32) n + 1);

          if (n == 0)
            break;
          g_string_append_printf (story, " try%u-%u", n, keep);
          if (n > session->state->options.chunk) {
            g_assert_false (ox_session_try (session, ids, n, logits, NULL, &error));
            g_assert_error (error, OX_ERROR, OX_ERROR_INVALID);
            break;
          }
          ox_session_try (session, ids, n, logits, NULL, &error);
          g_assert_no_error (error);
          ox_session_keep (session, keep, &error);
          g_assert_no_error (error);
          g_assert_cmpuint (session->tokens->len, ==, held + keep);
          break;
        }
        case 7:
          if (!saved || g_rand_boolean (random)) {
            g_string_append (story, " save");
            ox_session_save (session, path, NULL, &error);
            saved = TRUE;
          } else {
            ox_session_restore (session, path, NULL, &error);
            g_string_append_printf (story, " restore%u", session->tokens->len);
          }
          g_assert_no_error (error);
          break;
        default:
          if (room == 0)
            break;
          g_string_append (story, " look");
          assert_like_fresh (session, chunks[k], ids[0], story->str);
          break;
        }
      }
    }
  }
  g_unlink (path);
  g_rmdir (folder);
}

/* ---- Threads ---- */

typedef struct {
  OxModel *model;
  const char *folder;
  guint number;
} Worker;

/* Reads, is cancelled, goes back, saves and restores, and looks now and then whether it is still right. */
static gpointer
work (gpointer data)
{
  Worker *worker = data;
  g_autoptr (GRand) random = g_rand_new_with_seed (worker->number);
  g_autofree char *name = g_strdup_printf ("session-%u", worker->number);
  g_autofree char *path = g_build_filename (worker->folder, name, NULL);
  g_autoptr (OxSession) session = ox_session_new (worker->model, NULL);
  gint32 n_vocab = (gint32) worker->model->config->vocab_size;

  for (guint round = 0; round < 12; round++) {
    g_autoptr (GCancellable) cancellable = g_cancellable_new ();
    g_autoptr (GError) error = NULL;
    GThread *thread = g_thread_new ("cancel", cancel_soon, cancellable);
    guint32 ids[60];

    for (guint i = 0; i < G_N_ELEMENTS (ids); i++)
      ids[i] = (guint32) g_rand_int_range (random, 0, n_vocab);
    if (session->tokens->len > 200)
      ox_session_truncate (session, (guint) g_rand_int_range (random, 0, 200));
    ox_session_eval (session, ids, G_N_ELEMENTS (ids), OX_LOGITS_NONE, NULL, cancellable, &error);
    g_thread_join (thread);
    g_clear_error (&error);
    ox_session_save (session, path, NULL, &error);
    g_assert_no_error (error);
    ox_session_restore (session, path, NULL, &error);
    g_assert_no_error (error);
    assert_like_fresh (session, 0, ids[0], "work beside others");
  }
  g_unlink (path);
  return NULL;
}

static void
test_beside_others (gconstpointer data)
{
  g_autoptr (OxModel) model =
    load (data, &(OxModelOptions) { .precision = OX_MODEL_PRECISION_EXACT, .context_length = 400, .threads = 2 });
  g_autofree char *folder = g_dir_make_tmp ("ox-break-XXXXXX", NULL);
  Worker workers[4];
  GThread *threads[G_N_ELEMENTS (workers)];

  if (model == NULL)
    return;
  for (guint i = 0; i < G_N_ELEMENTS (workers); i++) {
    workers[i] = (Worker) { model, folder, i };
    threads[i] = g_thread_new ("worker", work, &workers[i]);
  }
  for (guint i = 0; i < G_N_ELEMENTS (workers); i++)
    g_thread_join (threads[i]);
  g_rmdir (folder);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autofree char *path = g_strconcat ("/break-sessions/anything/", names[i], NULL);

    g_test_add_data_func (path, names[i], test_anything);
  }
  for (gsize i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autofree char *path = g_strconcat ("/break-sessions/beside-others/", names[i], NULL);

    g_test_add_data_func (path, names[i], test_beside_others);
  }
  return g_test_run ();
}
