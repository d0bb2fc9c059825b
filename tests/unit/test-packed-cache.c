/* Packed matrices kept on disk: found again, never believed when they are not what they should be, and never in the way.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-packed-cache.h"
#include "ox-packed-folder.h"
#include "ox-session-private.h"
#include "ox-toy-model.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <glib/gstdio.h>

#define N_IDS 12

typedef struct {
  float logits[OX_TOY_VOCAB];
} Answer;

static OxModel *
load (const char *path, OxModelWeights weights, GCancellable *cancellable, GError **error)
{
  OxModelOptions options = { .weights = weights, .threads = 2, .context_length = 64 };

  return ox_model_load (path, &options, NULL, NULL, cancellable, error);
}

static void
ask (OxModel *model, Answer *answer)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (OxSession) session = ox_session_new (model, &error);
  guint32 ids[N_IDS];

  g_assert_no_error (error);
  for (guint i = 0; i < N_IDS; i++)
    ids[i] = (i * 29 + 3) % 256;
  ox_session_eval (session, ids, N_IDS, OX_LOGITS_LAST, answer->logits, NULL, &error);
  g_assert_no_error (error);
}

static void
load_and_ask (const char *path, OxModelWeights weights, Answer *answer)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (OxModel) model = load (path, weights, NULL, &error);

  g_assert_no_error (error);
  ask (model, answer);
}

static void
assert_same (const Answer *a, const Answer *b)
{
  g_assert_cmpmem (a->logits, sizeof a->logits, b->logits, sizeof b->logits);
}

/* Names of all files in the folder, kept and half-written. */
static GPtrArray *
list_folder (void)
{
  GPtrArray *names = g_ptr_array_new_with_free_func (g_free);
  g_autofree char *folder = ox_packed_folder_get_path (NULL);
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  const char *name;

  while (dir != NULL && (name = g_dir_read_name (dir)) != NULL)
    g_ptr_array_add (names, g_strdup (name));
  return names;
}

/* The only file there. */
static char *
only_file (void)
{
  g_autoptr (GPtrArray) names = list_folder ();

  g_assert_cmpuint (names->len, ==, 1);
  g_assert_true (g_str_has_suffix (names->pdata[0], OX_PACKED_SUFFIX));
  return ox_packed_folder_get_path (names->pdata[0]);
}

static void
assert_empty (void)
{
  g_autoptr (GPtrArray) names = list_folder ();

  g_assert_cmpuint (names->len, ==, 0);
}

/* Every test begins with an empty folder and keeps even small models. */
static void
begin (void)
{
  ox_packed_cache_set_least_bytes (0);
  ox_packed_cache_set_limit (G_GUINT64_CONSTANT (20000000000));
  g_assert_true (ox_packed_cache_clear (NULL));
}

static const OxToyModel middling = { .hidden = 256, .feed_forward = 1024, .layers = 3, .heads = 8, .seed = 4 };
/* Half a gigabyte to read, in a file that takes no space. */
static const OxToyModel large = {
  .sparse = TRUE, .f16 = TRUE, .layers = 4, .hidden = 2048, .feed_forward = 8192, .heads = 16
};

/* Bytes that this process has read from files so far. */
static guint64
bytes_read (void)
{
  g_autofree char *text = NULL;

  if (!g_file_get_contents ("/proc/self/io", &text, NULL, NULL))
    return 0;
  g_assert_true (g_str_has_prefix (text, "rchar: "));
  return g_ascii_strtoull (text + strlen ("rchar: "), NULL, 10);
}

static void
test_second_start (void)
{
  char *path = ox_toy_model_make (&middling);

  for (guint w = 0; w < 2; w++) {
    OxModelWeights weights = w == 0 ? OX_MODEL_WEIGHTS_Q8 : OX_MODEL_WEIGHTS_Q4;
    Answer first, second;
    g_autofree char *kept = NULL;
    guint64 start, cold, warm;

    begin ();
    start = bytes_read ();
    load_and_ask (path, weights, &first);
    cold = bytes_read () - start;
    kept = only_file ();
    g_assert_cmpuint (ox_packed_cache_get_bytes (), >, 0);
    start = bytes_read ();
    load_and_ask (path, weights, &second);
    warm = bytes_read () - start;
    assert_same (&first, &second);
    g_test_message ("read %" G_GUINT64_FORMAT " bytes, then %" G_GUINT64_FORMAT, cold, warm);
    if (start > 0)
      g_assert_cmpuint (warm, <, cold - (guint64) 5 * 1000 * 1000);
  }
  ox_toy_model_delete (path);
}

/* Known again under another name; not taken for another, nor for itself as it was before a change. */
static void
test_content_decides (void)
{
  char *path = ox_toy_model_make (&middling);
  g_autofree char *moved = g_strconcat (path, "-moved.gguf", NULL);
  g_autofree char *kept = NULL, *kept_then = NULL;
  Answer first, second;
  struct stat before, after;

  begin ();
  load_and_ask (path, OX_MODEL_WEIGHTS_Q8, &first);
  kept = only_file ();
  g_assert_no_errno (stat (kept, &before));
  g_assert_no_errno (rename (path, moved));
  g_free (path);
  load_and_ask (moved, OX_MODEL_WEIGHTS_Q8, &second);
  assert_same (&first, &second);
  kept_then = only_file ();
  g_assert_cmpstr (kept, ==, kept_then);
  g_assert_no_errno (stat (kept, &after));
  g_assert_cmpuint (before.st_ino, ==, after.st_ino);

  /* Another rounding is kept beside it. */
  load_and_ask (moved, OX_MODEL_WEIGHTS_Q4, &second);
  {
    g_autoptr (GPtrArray) names = list_folder ();
    g_assert_cmpuint (names->len, ==, 2);
  }

  /* Another content of the same size and shape in the same place. */
  {
    OxToyModel other = middling;
    other.seed = 5;
    ox_toy_model_write (&other, moved);
  }
  load_and_ask (moved, OX_MODEL_WEIGHTS_Q8, &second);
  g_assert_cmpint (memcmp (&first, &second, sizeof first), !=, 0);
  ox_toy_model_delete (g_steal_pointer (&moved));
}

static void
flip (const char *path, goffset offset)
{
  int fd = open (path, O_RDWR);
  guint8 byte;

  g_assert_cmpint (fd, >=, 0);
  g_assert_cmpint (pread (fd, &byte, 1, offset), ==, 1);
  byte ^= 0x10;
  g_assert_cmpint (pwrite (fd, &byte, 1, offset), ==, 1);
  close (fd);
}

static guint64
size_of (const char *path)
{
  struct stat st;

  return stat (path, &st) == 0 ? (guint64) st.st_size : 0;
}

/* A wrong byte anywhere gives the same answers as the model's own file, and is gone after two starts. */
static void
test_damaged (void)
{
  OxToyModel toy = { .layers = 1, .seed = 9 };
  char *path = ox_toy_model_make (&toy);
  g_autofree char *kept = NULL;
  g_autofree char *whole = NULL;
  gsize whole_size;
  Answer expected;
  guint64 size;

  begin ();
  load_and_ask (path, OX_MODEL_WEIGHTS_Q8, &expected);
  kept = only_file ();
  size = size_of (kept);
  g_assert_true (g_file_get_contents (kept, &whole, &whole_size, NULL));
  for (guint64 offset = 0; offset < size; offset += offset < 160 || offset + 200 > size ? 1 : 397) {
    Answer answer;

    flip (kept, (goffset) offset);
    load_and_ask (path, OX_MODEL_WEIGHTS_Q8, &answer);
    assert_same (&expected, &answer);
    load_and_ask (path, OX_MODEL_WEIGHTS_Q8, &answer);
    assert_same (&expected, &answer);
    g_assert_cmpuint (size_of (kept), ==, size);
    if (offset % 97 == 0) {
      g_autofree char *content = NULL;
      gsize content_size;

      g_assert_true (g_file_get_contents (kept, &content, &content_size, NULL));
      /* But for a flip in the gaps between matrices, which hold nothing. */
      if (memcmp (content, whole, whole_size) != 0)
        g_assert_true (g_file_set_contents (kept, whole, (gssize) whole_size, NULL));
    }
  }
  ox_toy_model_delete (path);
}

/* Cut short, longer, empty, somebody else's. */
static void
test_wrong_size (void)
{
  char *path = ox_toy_model_make (&(OxToyModel) { .seed = 9 });
  g_autofree char *kept = NULL;
  Answer expected, answer;
  guint64 size;

  begin ();
  load_and_ask (path, OX_MODEL_WEIGHTS_Q8, &expected);
  kept = only_file ();
  size = size_of (kept);
  {
    const guint64 sizes[] = { 0, 1, 60, 127, 128, 4095, 4096, 10000, size / 2, size - 1, size + 1, 2 * size };

    for (gsize i = 0; i < G_N_ELEMENTS (sizes); i++) {
      g_assert_no_errno (truncate (kept, (off_t) sizes[i]));
      load_and_ask (path, OX_MODEL_WEIGHTS_Q8, &answer);
      assert_same (&expected, &answer);
      g_assert_cmpuint (size_of (kept), ==, size);
    }
  }
  g_assert_true (g_file_set_contents (kept, "something else altogether", -1, NULL));
  load_and_ask (path, OX_MODEL_WEIGHTS_Q8, &answer);
  assert_same (&expected, &answer);
  /* A folder or a pipe with that name is nobody's cache. */
  g_assert_no_errno (unlink (kept));
  g_assert_no_errno (mkfifo (kept, 0600));
  load_and_ask (path, OX_MODEL_WEIGHTS_Q8, &answer);
  assert_same (&expected, &answer);
  g_unlink (kept);
  g_assert_no_errno (mkdir (kept, 0700));
  load_and_ask (path, OX_MODEL_WEIGHTS_Q8, &answer);
  assert_same (&expected, &answer);
  g_assert_no_errno (rmdir (kept));
  ox_toy_model_delete (path);
}

/* Removed or replaced while a model is read from it: whoever has it open keeps reading what it was. */
static gpointer
clear_again_and_again (gpointer user_data)
{
  gint *stop = user_data;

  while (!g_atomic_int_get (stop)) {
    ox_packed_cache_clear (NULL);
    g_usleep (1000);
  }
  return NULL;
}

static void
test_cleared_in_use (void)
{
  char *path = ox_toy_model_make (&middling);
  gint stop = 0;
  Answer expected, answer;
  GThread *thread;

  begin ();
  load_and_ask (path, OX_MODEL_WEIGHTS_Q4, &expected);
  thread = g_thread_new ("clear", clear_again_and_again, &stop);
  for (guint i = 0; i < 20; i++) {
    load_and_ask (path, OX_MODEL_WEIGHTS_Q4, &answer);
    assert_same (&expected, &answer);
  }
  g_atomic_int_set (&stop, 1);
  g_thread_join (thread);
  ox_toy_model_delete (path);
}

/* ---- Size ---- */

static void
test_limit (void)
{
  char *paths[3];
  guint64 one;
  Answer answer;

  begin ();
  for (guint i = 0; i < 3; i++) {
    OxToyModel toy = middling;
    toy.seed = 20 + i;
    paths[i] = ox_toy_model_make (&toy);
  }
  load_and_ask (paths[0], OX_MODEL_WEIGHTS_Q8, &answer);
  one = ox_packed_cache_get_bytes ();
  g_assert_cmpuint (one, >, 0);
  load_and_ask (paths[1], OX_MODEL_WEIGHTS_Q8, &answer);
  g_assert_cmpuint (ox_packed_cache_get_bytes (), ==, 2 * one);

  /* The first is used again; so the second goes when the third comes. */
  {
    g_autoptr (GPtrArray) before = list_folder ();
    g_autoptr (GPtrArray) after = NULL;
    guint left = 0;

    g_usleep (20000);
    load_and_ask (paths[0], OX_MODEL_WEIGHTS_Q8, &answer);
    ox_packed_cache_set_limit (2 * one + one / 2);
    g_usleep (20000);
    load_and_ask (paths[2], OX_MODEL_WEIGHTS_Q8, &answer);
    g_assert_cmpuint (ox_packed_cache_get_bytes (), ==, 2 * one);
    after = list_folder ();
    for (guint i = 0; i < before->len; i++)
      left += g_ptr_array_find_with_equal_func (after, before->pdata[i], g_str_equal, NULL);
    g_assert_cmpuint (left, ==, 1);
  }
  {
    guint64 bytes = bytes_read (), first, second;

    load_and_ask (paths[0], OX_MODEL_WEIGHTS_Q8, &answer);
    first = bytes_read () - bytes;
    bytes = bytes_read ();
    load_and_ask (paths[1], OX_MODEL_WEIGHTS_Q8, &answer);
    second = bytes_read () - bytes;
    if (bytes > 0)
      g_assert_cmpuint (first, <, second);
  }

  /* Lowered, it holds at once. */
  ox_packed_cache_set_limit (one + one / 2);
  g_assert_cmpuint (ox_packed_cache_get_bytes (), ==, one);
  /* Less than a model takes: it is not even begun. */
  ox_packed_cache_set_limit (one / 2);
  assert_empty ();
  load_and_ask (paths[0], OX_MODEL_WEIGHTS_Q8, &answer);
  assert_empty ();
  ox_packed_cache_set_limit (0);
  load_and_ask (paths[0], OX_MODEL_WEIGHTS_Q8, &answer);
  assert_empty ();
  g_assert_cmpuint (ox_packed_cache_get_bytes (), ==, 0);
  for (guint i = 0; i < 3; i++)
    ox_toy_model_delete (paths[i]);
}

/* What is not worth it, and what is not wanted. */
static void
test_not_kept (void)
{
  char *path = ox_toy_model_make (&middling);
  OxModelOptions options = { .weights = OX_MODEL_WEIGHTS_Q8, .no_packed_cache = TRUE };
  OxModel *model;
  Answer answer;

  begin ();
  model = ox_model_load (path, &options, NULL, NULL, NULL, NULL);
  g_assert_nonnull (model);
  ox_model_unref (model);
  assert_empty ();
  /* Floats as they are are read as quickly from their own file. */
  load_and_ask (path, OX_MODEL_WEIGHTS_STORED, &answer);
  assert_empty ();
  ox_packed_cache_set_least_bytes ((guint64) 64 << 20);
  load_and_ask (path, OX_MODEL_WEIGHTS_Q8, &answer);
  assert_empty ();
  ox_toy_model_delete (path);
}

/* ---- What can go wrong ---- */

/* No folder can be made. */
static void
test_no_folder (void)
{
  char *path = ox_toy_model_make (&middling);
  g_autofree char *folder = ox_packed_folder_get_path (NULL);
  g_autofree char *parent = g_path_get_dirname (folder);
  Answer expected, answer;

  begin ();
  load_and_ask (path, OX_MODEL_WEIGHTS_Q8, &expected);
  g_assert_true (ox_packed_cache_clear (NULL));
  g_assert_no_errno (rmdir (folder));
  g_assert_no_errno (rmdir (parent));
  g_assert_true (g_file_set_contents (parent, "in the way", -1, NULL));
  load_and_ask (path, OX_MODEL_WEIGHTS_Q8, &answer);
  assert_same (&expected, &answer);
  g_assert_cmpuint (ox_packed_cache_get_bytes (), ==, 0);
  g_assert_true (ox_packed_cache_clear (NULL));
  g_assert_no_errno (unlink (parent));
  ox_toy_model_delete (path);
}

/* Writing fails in the middle, as on a full disk. */
static void
test_disk_full_subprocess (void)
{
  char *path = ox_toy_model_make (&middling);
  struct rlimit limit = { 1 << 20, 1 << 20 };
  Answer expected, answer;

  begin ();
  ox_packed_cache_set_limit (0);
  load_and_ask (path, OX_MODEL_WEIGHTS_Q8, &expected);
  begin ();
  signal (SIGXFSZ, SIG_IGN);
  g_assert_no_errno (setrlimit (RLIMIT_FSIZE, &limit));
  load_and_ask (path, OX_MODEL_WEIGHTS_Q8, &answer);
  assert_same (&expected, &answer);
  assert_empty ();
  ox_toy_model_delete (path);
}

static void
test_disk_full (void)
{
  g_test_trap_subprocess ("/packed-cache/disk-full/subprocess", 0, G_TEST_SUBPROCESS_DEFAULT);
  g_test_trap_assert_passed ();
}

typedef struct {
  GCancellable *cancellable;
  gint64 when;
} Cancel;

static gpointer
cancel_soon (gpointer user_data)
{
  Cancel *cancel = user_data;

  g_usleep (60000);
  cancel->when = g_get_monotonic_time ();
  g_cancellable_cancel (cancel->cancellable);
  return NULL;
}

/* Stopped in the middle, nothing is left; and it stops in time while it writes or reads what is kept. */
static void
test_cancelled (void)
{
  char *path = ox_toy_model_make (&large);
  g_autoptr (GError) error = NULL;
  OxModel *whole;

  /* Other programs can take the processor away, so the best of some tries counts. */
  for (guint i = 0; i < 2; i++) {
    gint64 best = G_MAXINT64;

    begin ();
    if (i == 1) {
      whole = load (path, OX_MODEL_WEIGHTS_Q8, NULL, &error);
      g_assert_no_error (error);
      ox_model_unref (whole);
    }
    for (guint try = 0; try < 5 && best > 100000; try++) {
      g_autoptr (GCancellable) cancellable = g_cancellable_new ();
      Cancel cancel = { .cancellable = cancellable };
      GThread *thread = g_thread_new ("cancel", cancel_soon, &cancel);
      g_autoptr (OxModel) model = load (path, OX_MODEL_WEIGHTS_Q8, cancellable, &error);
      gint64 end = g_get_monotonic_time ();

      g_thread_join (thread);
      if (model != NULL) {
        g_test_message ("loading was over before it could be stopped");
        break;
      }
      g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
      g_clear_error (&error);
      best = MIN (best, end - cancel.when);
      if (i == 0)
        assert_empty ();
      else
        g_free (only_file ());
    }
    if (best != G_MAXINT64) {
      g_test_message ("%s: stopped after %.1f ms", i == 0 ? "writing" : "reading", (double) best / 1000);
      g_assert_cmpint (best, <=, 100000);
    }
  }
  ox_toy_model_delete (path);
}

static gpointer
load_in_thread (gpointer path)
{
  Answer *answer = g_new (Answer, 1);

  load_and_ask (path, OX_MODEL_WEIGHTS_Q4, answer);
  return answer;
}

/* Several at once, in this process and in others: all get the same, and one file stays. */
static void
test_at_once (void)
{
  char *path = ox_toy_model_make (&middling);
  GThread *threads[4];
  pid_t children[3];
  g_autofree char *kept = NULL;
  Answer expected;

  begin ();
  ox_packed_cache_set_limit (0);
  load_and_ask (path, OX_MODEL_WEIGHTS_Q4, &expected);
  begin ();
  /* Children first: a fork takes no threads along. */
  for (guint i = 0; i < G_N_ELEMENTS (children); i++) {
    children[i] = fork ();
    g_assert_cmpint (children[i], >=, 0);
    if (children[i] == 0) {
      Answer answer;

      load_and_ask (path, OX_MODEL_WEIGHTS_Q4, &answer);
      _exit (memcmp (&answer, &expected, sizeof answer) == 0 ? 0 : 1);
    }
  }
  for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
    threads[i] = g_thread_new ("load", load_in_thread, path);
  for (guint i = 0; i < G_N_ELEMENTS (threads); i++) {
    g_autofree Answer *answer = g_thread_join (threads[i]);
    assert_same (&expected, answer);
  }
  for (guint i = 0; i < G_N_ELEMENTS (children); i++) {
    int status;

    g_assert_cmpint (waitpid (children[i], &status, 0), ==, children[i]);
    g_assert_true (WIFEXITED (status) && WEXITSTATUS (status) == 0);
  }
  kept = only_file ();
  ox_toy_model_delete (path);
}

/* Killed while it writes: what is left is not believed, and cleaned away by the next one. */
static void
test_killed (void)
{
  char *path = ox_toy_model_make (&large);
  g_autoptr (GError) error = NULL;
  gboolean found = FALSE;
  pid_t child;
  OxModel *model;

  begin ();
  child = fork ();
  g_assert_cmpint (child, >=, 0);
  if (child == 0) {
    model = load (path, OX_MODEL_WEIGHTS_Q8, NULL, NULL);
    _exit (model != NULL ? 0 : 1);
  }
  for (guint i = 0; i < 20000 && !found; i++) {
    g_autoptr (GPtrArray) names = list_folder ();

    for (guint j = 0; j < names->len; j++) {
      g_autofree char *file = ox_packed_folder_get_path (names->pdata[j]);
      found = found || size_of (file) > 1 << 20;
    }
    g_usleep (1000);
  }
  g_assert_no_errno (kill (child, SIGKILL));
  g_assert_cmpint (waitpid (child, NULL, 0), ==, child);
  g_assert_true (found);
  {
    g_autoptr (GPtrArray) names = list_folder ();

    g_assert_cmpuint (names->len, ==, 1);
    if (g_str_has_suffix (names->pdata[0], OX_PACKED_SUFFIX)) {
      g_test_skip ("it was done before it could be killed");
      ox_toy_model_delete (path);
      return;
    }
  }
  g_assert_cmpuint (ox_packed_cache_get_bytes (), ==, 0);
  model = load (path, OX_MODEL_WEIGHTS_Q8, NULL, &error);
  if (g_error_matches (error, OX_ERROR, OX_ERROR_NO_MEMORY)) {
    g_test_skip ("half a gigabyte of memory is not free");
  } else {
    g_autofree char *kept = only_file ();
    g_assert_no_error (error);
    ox_model_unref (model);
  }
  g_assert_true (ox_packed_cache_clear (NULL));
  assert_empty ();
  ox_toy_model_delete (path);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, G_TEST_OPTION_ISOLATE_DIRS, NULL);
  g_test_add_func ("/packed-cache/second-start", test_second_start);
  g_test_add_func ("/packed-cache/content-decides", test_content_decides);
  g_test_add_func ("/packed-cache/damaged", test_damaged);
  g_test_add_func ("/packed-cache/wrong-size", test_wrong_size);
  g_test_add_func ("/packed-cache/cleared-in-use", test_cleared_in_use);
  g_test_add_func ("/packed-cache/limit", test_limit);
  g_test_add_func ("/packed-cache/not-kept", test_not_kept);
  g_test_add_func ("/packed-cache/no-folder", test_no_folder);
  g_test_add_func ("/packed-cache/disk-full", test_disk_full);
  g_test_add_func ("/packed-cache/disk-full/subprocess", test_disk_full_subprocess);
  g_test_add_func ("/packed-cache/cancelled", test_cancelled);
  g_test_add_func ("/packed-cache/at-once", test_at_once);
  g_test_add_func ("/packed-cache/killed", test_killed);
  return g_test_run ();
}
