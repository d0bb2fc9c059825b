/* Sessions in files: what comes back is what was saved, and nothing else ever does.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-talk.h"

#include <string.h>
#include <glib/gstdio.h>

static char *folder;

static char *
new_path (void)
{
  static guint n;
  g_autofree char *name = g_strdup_printf ("session-%u", n++);

  return g_build_filename (folder, name, NULL);
}

/* Files in the folder: none but the saved ones may be left there. */
static guint
count_files (void)
{
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  guint n = 0;

  while (g_dir_read_name (dir) != NULL)
    n++;
  return n;
}

static void
read_tokens (OxSession *session, guint n, guint seed, float *logits)
{
  g_autoptr (GRand) random = g_rand_new_with_seed (seed);
  g_autofree guint32 *ids = g_new (guint32, n);
  g_autoptr (GError) error = NULL;

  for (guint i = 0; i < n; i++)
    ids[i] = (guint32) g_rand_int_range (random, 0, 256);
  g_assert_true (
    ox_session_eval (session, ids, n, logits != NULL ? OX_LOGITS_LAST : OX_LOGITS_NONE, logits, NULL, &error));
  g_assert_no_error (error);
}

static void
assert_same_tokens (OxSession *a, OxSession *b)
{
  g_assert_cmpmem (a->tokens->data, a->tokens->len * sizeof (guint32), b->tokens->data,
                   b->tokens->len * sizeof (guint32));
}

/* After a restart the conversation goes on, to the bit, and can still be gone back in. */
static void
test_round_trip (gconstpointer data)
{
  static const OxModelKv formats[] = { OX_MODEL_KV_F32, OX_MODEL_KV_F16, OX_MODEL_KV_BF16, OX_MODEL_KV_Q8 };
  OxTalkKind kind = (OxTalkKind) GPOINTER_TO_INT (data);

  for (guint format = 0; format < G_N_ELEMENTS (formats); format++) {
    static const guint lengths[] = { 0, 1, 700, 2500 };
    OxModelOptions options = { .kv = formats[format] };
    g_autoptr (OxModel) model = NULL;

    /* The heads of the others are too narrow for blocks of 32. */
    if (formats[format] == OX_MODEL_KV_Q8 && kind != OX_TALK_HYBRID)
      continue;
    model = ox_talk_model (kind, &options);
    if (model == NULL)
      return;
    for (guint i = 0; i < G_N_ELEMENTS (lengths); i++) {
      g_autoptr (OxSession) session = ox_session_new (model, NULL);
      g_autoptr (OxSession) other = ox_session_new (model, NULL);
      gsize n_bytes = model->config->vocab_size * sizeof (float);
      g_autofree float *logits = g_malloc (n_bytes);
      g_autofree float *expected = g_malloc (n_bytes);
      g_autofree char *path = new_path ();
      g_autoptr (GError) error = NULL;

      read_tokens (session, lengths[i], 3, NULL);
      g_assert_true (ox_session_save (session, path, NULL, &error));
      g_assert_no_error (error);
      /* What the other one held is forgotten. */
      read_tokens (other, 100, 4, NULL);
      g_assert_true (ox_session_restore (other, path, NULL, &error));
      g_assert_no_error (error);
      assert_same_tokens (session, other);

      read_tokens (session, 20, 5, expected);
      read_tokens (other, 20, 5, logits);
      g_assert_cmpmem (logits, n_bytes, expected, n_bytes);
      if (lengths[i] > 1000) {
        guint back = ox_session_get_reusable (other, lengths[i] - 500);

        g_assert_cmpuint (back, >, 0);
        ox_session_truncate (other, back);
        ox_session_truncate (session, back);
        g_assert_cmpuint (ox_session_get_length (other), ==, back);
        g_assert_cmpuint (ox_session_get_length (session), ==, back);
        read_tokens (session, 20, 6, expected);
        read_tokens (other, 20, 6, logits);
        g_assert_cmpmem (logits, n_bytes, expected, n_bytes);
      }
      g_unlink (path);
    }
  }
  g_assert_cmpuint (count_files (), ==, 0);
}

static void
assert_refused (OxSession *session, const char *path, const char *content, gsize length, OxError code)
{
  g_autoptr (GError) error = NULL;

  g_assert_true (g_file_set_contents_full (path, content, (gssize) length, G_FILE_SET_CONTENTS_NONE, 0600, NULL));
  read_tokens (session, 3, 9, NULL);
  g_assert_false (ox_session_restore (session, path, NULL, &error));
  g_assert_error (error, OX_ERROR, (int) code);
  g_assert_nonnull (strstr (error->message, path));
  g_assert_cmpuint (ox_session_get_length (session), ==, 0);
  g_assert_cmpuint (ox_snapshots_get_length (session->snapshots), ==, 0);
}

/* A file that is damaged in any byte, or cut anywhere, is refused and leaves an empty session that works. */
static void
test_damaged (gconstpointer data)
{
  OxTalkKind kind = (OxTalkKind) GPOINTER_TO_INT (data);
  g_autoptr (OxModel) model = ox_talk_model (kind, NULL);
  g_autoptr (OxSession) session = NULL;
  g_autoptr (OxSession) fresh = NULL;
  g_autofree char *path = new_path ();
  g_autofree char *content = NULL;
  g_autofree char *longer = NULL;
  g_autofree float *logits = NULL;
  g_autofree float *expected = NULL;
  g_autoptr (GRand) random = g_rand_new_with_seed (1);
  gsize length, n_bytes;

  if (model == NULL)
    return;
  session = ox_session_new (model, NULL);
  read_tokens (session, 30, 1, NULL);
  ox_session_note_turn (session, 30);
  read_tokens (session, 2, 2, NULL);
  g_assert_true (ox_session_save (session, path, NULL, NULL));
  g_assert_true (g_file_get_contents (path, &content, &length, NULL));
  ox_session_reset (session);

  /* Each byte of the beginning and of the end, and some of all others. */
  for (gsize i = 0; i < length; i += i < 400 || i + 64 > length ? 1 : (gsize) g_rand_int_range (random, 1, 997)) {
    char whole = content[i];

    content[i] = (char) (whole ^ (1 << g_rand_int_range (random, 0, 8)));
    assert_refused (session, path, content, length, OX_ERROR_DAMAGED);
    content[i] = whole;
  }
  for (gsize n = 0; n < length; n += n < 400 || n + 64 > length ? 1 : (gsize) g_rand_int_range (random, 1, 2999))
    assert_refused (session, path, content, n, OX_ERROR_DAMAGED);
  longer = g_malloc0 (length + 1);
  memcpy (longer, content, length);
  assert_refused (session, path, longer, length + 1, OX_ERROR_DAMAGED);

  fresh = ox_session_new (model, NULL);
  n_bytes = model->config->vocab_size * sizeof (float);
  logits = g_malloc (n_bytes);
  expected = g_malloc (n_bytes);
  read_tokens (session, 40, 8, logits);
  read_tokens (fresh, 40, 8, expected);
  g_assert_cmpmem (logits, n_bytes, expected, n_bytes);
  g_unlink (path);
}

/* Neither another model's, nor this one's with keys and values of another format, nor a longer one than fits, nor none at all. */
static void
test_other (void)
{
  g_autoptr (OxModel) model = ox_talk_model (OX_TALK_FULL, NULL);
  g_autoptr (OxModel) gemma = ox_talk_model (OX_TALK_SLIDING, NULL);
  g_autoptr (OxModel) f32 = ox_talk_model (OX_TALK_FULL, &(OxModelOptions) { .kv = OX_MODEL_KV_F32 });
  g_autoptr (OxModel) small = ox_talk_model (OX_TALK_FULL, &(OxModelOptions) { .context_length = 64 });
  char *toy_path = ox_toy_model_make (&(OxToyModel) { .layers = 3, .seed = 1 });
  g_autoptr (OxModel) weights = ox_model_load (toy_path, NULL, NULL, NULL, NULL, NULL);
  OxModel *others[] = { gemma, f32, small, weights };
  g_autoptr (OxSession) session = ox_session_new (model, NULL);
  g_autofree char *path = new_path ();
  g_autofree char *absent = new_path ();
  g_autofree char *content = NULL;
  g_autoptr (GError) error = NULL;
  gsize length;

  ox_toy_model_delete (toy_path);
  read_tokens (session, 100, 1, NULL);
  g_assert_true (ox_session_save (session, path, NULL, NULL));
  g_assert_true (g_file_get_contents (path, &content, &length, NULL));
  for (guint i = 0; i < G_N_ELEMENTS (others); i++) {
    g_autoptr (OxSession) other = ox_session_new (others[i], NULL);

    assert_refused (other, path, content, length, OX_ERROR_UNSUPPORTED);
  }
  g_assert_false (ox_session_restore (session, absent, NULL, &error));
  g_assert_error (error, OX_ERROR, OX_ERROR_NOT_FOUND);
  g_assert_cmpuint (ox_session_get_length (session), ==, 0);
  g_unlink (path);
}

/* Nothing that is in the way leaves half a file, or takes the last one away. */
static void
test_atomic (void)
{
  g_autoptr (OxModel) model = ox_talk_model (OX_TALK_FULL, NULL);
  g_autoptr (OxSession) session = ox_session_new (model, NULL);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autofree char *path = new_path ();
  g_autofree char *nowhere = g_build_filename (folder, "no", "such", "folder", NULL);
  g_autofree char *before = NULL;
  g_autofree char *after = NULL;
  g_autoptr (GError) error = NULL;
  gsize n_before, n_after;

  read_tokens (session, 50, 1, NULL);
  g_assert_true (ox_session_save (session, path, NULL, NULL));
  g_assert_true (g_file_get_contents (path, &before, &n_before, NULL));
  read_tokens (session, 50, 2, NULL);
  g_cancellable_cancel (cancellable);
  g_assert_false (ox_session_save (session, path, cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (&error);
  g_assert_cmpuint (count_files (), ==, 1);
  g_assert_true (g_file_get_contents (path, &after, &n_after, NULL));
  g_assert_cmpmem (before, n_before, after, n_after);
  g_assert_cmpuint (ox_session_get_length (session), ==, 100);

  g_assert_false (ox_session_restore (session, path, cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (&error);
  g_assert_cmpuint (ox_session_get_length (session), ==, 0);

  g_assert_false (ox_session_save (session, nowhere, NULL, &error));
  g_assert_error (error, OX_ERROR, OX_ERROR_IO);
  g_assert_nonnull (strstr (error->message, nowhere));
  g_unlink (path);
  g_assert_cmpuint (count_files (), ==, 0);
}

int
main (int argc, char **argv)
{
  int result;

  g_test_init (&argc, &argv, NULL);
  folder = g_dir_make_tmp ("ox-session-XXXXXX", NULL);
  for (int kind = 0; kind < OX_TALK_N_KINDS; kind++) {
    g_autofree char *round_trip = g_strconcat ("/session/file/round-trip/", ox_talk_kind_names[kind], NULL);
    g_autofree char *damaged = g_strconcat ("/session/file/damaged/", ox_talk_kind_names[kind], NULL);

    g_test_add_data_func (round_trip, GINT_TO_POINTER (kind), test_round_trip);
    g_test_add_data_func (damaged, GINT_TO_POINTER (kind), test_damaged);
  }
  g_test_add_func ("/session/file/other", test_other);
  g_test_add_func ("/session/file/atomic", test_atomic);
  result = g_test_run ();
  g_rmdir (folder);
  g_free (folder);
  return result;
}
