/* Files and folders: what can be opened, sharded models, and files that change while they are open.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-io-check.h"
#include "ox-pieces.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A new folder for each test. */
typedef struct {
  char *folder;
} Fixture;

static void
set_up (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;

  fixture->folder = g_dir_make_tmp ("ox-files-XXXXXX", &error);
  g_assert_no_error (error);
}

static void
remove_tree (const char *path)
{
  g_autoptr (GDir) dir = g_dir_open (path, 0, NULL);
  const char *name;

  while (dir && (name = g_dir_read_name (dir)) != NULL) {
    g_autofree char *child = g_build_filename (path, name, NULL);

    if (g_file_test (child, G_FILE_TEST_IS_DIR) && !g_file_test (child, G_FILE_TEST_IS_SYMLINK))
      remove_tree (child);
    else
      g_unlink (child);
  }
  g_rmdir (path);
}

static void
tear_down (Fixture *fixture, gconstpointer data)
{
  remove_tree (fixture->folder);
  g_free (fixture->folder);
}

static char *
path_of (Fixture *fixture, const char *name)
{
  return g_build_filename (fixture->folder, name, NULL);
}

static void
write_bytes (Fixture *fixture, const char *name, const void *data, gsize len)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = path_of (fixture, name);

  g_file_set_contents (path, data, (gssize) len, &error);
  g_assert_no_error (error);
}

static void
write_text (Fixture *fixture, const char *name, const char *text)
{
  write_bytes (fixture, name, text, strlen (text));
}

/* A safetensors file with tensors of one byte each, named by the letters of @letters. */
static void
write_shard (Fixture *fixture, const char *name, const char *letters)
{
  g_autoptr (GString) header = g_string_new ("{");
  g_autoptr (GBytes) bytes = NULL;

  for (gsize i = 0; letters[i] != '\0'; i++)
    g_string_append_printf (header, "%s\"%c\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%u,%u]}",
                            i > 0 ? "," : "", letters[i], (guint) i, (guint) i + 1);
  g_string_append_c (header, '}');
  bytes = ox_build_safetensors (header->str, -1, strlen (letters));
  write_bytes (fixture, name, g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes));
}

/* Opens @name (NULL: the folder). */
static OxWeights *
open_weights (Fixture *fixture, const char *name, GError **error)
{
  g_autofree char *path = name ? path_of (fixture, name) : g_strdup (fixture->folder);

  return ox_weights_open (path, NULL, error);
}

#define INDEX "model.safetensors.index.json"
#define MAP(x) "{\"metadata\":{\"total_size\":3},\"weight_map\":{" x "}}"

static void
test_file (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (OxFile) file = NULL;
  g_autoptr (GBytes) all = NULL;
  g_autofree char *path = path_of (fixture, "x");
  g_autofree char *absent = path_of (fixture, "absent");
  g_autofree char *below = path_of (fixture, "x/y");
  g_autofree char *pipe_path = path_of (fixture, "pipe");
  char buffer[8];

  write_text (fixture, "x", "hello");
  file = ox_file_open (path, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (ox_file_get_size (file), ==, 5);
  g_assert_cmpstr (ox_file_get_name (file), ==, path);
  g_assert_true (ox_file_read (file, 1, buffer, 4, &error));
  g_assert_cmpmem (buffer, 4, "ello", 4);
  g_assert_true (ox_file_read (file, 5, buffer, 0, &error));
  g_assert_false (ox_file_read (file, 2, buffer, 4, &error));
  ox_check_error (&error, OX_ERROR_DAMAGED, path, "too early");
  g_assert_false (ox_file_read (file, G_MAXUINT64, buffer, 2, &error));
  ox_check_error (&error, OX_ERROR_DAMAGED, path, "too early");
  g_assert_null (ox_file_read_all (file, 4, &error));
  ox_check_error (&error, OX_ERROR_DAMAGED, path, "at most 4");
  all = ox_file_read_all (file, 5, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (g_bytes_get_size (all), ==, 5);
  g_assert_cmpstr (g_bytes_get_data (all, NULL), ==, "hello");

  g_assert_null (ox_file_open (absent, &error));
  ox_check_error (&error, OX_ERROR_NOT_FOUND, absent, "no such file");
  g_assert_null (ox_file_open (below, &error));
  ox_check_error (&error, OX_ERROR_NOT_FOUND, below, "no such file");
  g_assert_null (ox_file_open (fixture->folder, &error));
  ox_check_error (&error, OX_ERROR_INVALID, fixture->folder, "folder");
  /* Must not wait for someone to write into it. */
  g_assert_cmpint (mkfifo (pipe_path, 0600), ==, 0);
  g_assert_null (ox_file_open (pipe_path, &error));
  ox_check_error (&error, OX_ERROR_INVALID, pipe_path, "pipe");
}

static void
test_kinds (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) gguf = ox_build_llama_gguf (NULL, NULL, 0);
  g_autoptr (OxWeights) nameless = NULL;
  g_autoptr (OxWeights) folder = NULL;
  g_autoptr (OxWeights) shard = NULL;

  g_assert_null (open_weights (fixture, NULL, &error));
  ox_check_error (&error, OX_ERROR_NOT_FOUND, fixture->folder, "model.safetensors");
  write_text (fixture, "pytorch_model.bin", "x");
  g_assert_null (open_weights (fixture, NULL, &error));
  ox_check_error (&error, OX_ERROR_NOT_FOUND, fixture->folder, "pickle");
  g_assert_null (open_weights (fixture, "pytorch_model.bin", &error));
  ox_check_error (&error, OX_ERROR_UNSUPPORTED, "pytorch_model.bin", "neither");
  write_text (fixture, "empty", "");
  g_assert_null (open_weights (fixture, "empty", &error));
  ox_check_error (&error, OX_ERROR_UNSUPPORTED, "empty", "neither");
  write_text (fixture, "fake.gguf", "hello");
  g_assert_null (open_weights (fixture, "fake.gguf", &error));
  ox_check_error (&error, OX_ERROR_DAMAGED, "fake.gguf", "no GGUF file");
  write_text (fixture, "fake.safetensors", "hello");
  g_assert_null (open_weights (fixture, "fake.safetensors", &error));
  ox_check_error (&error, OX_ERROR_DAMAGED, "fake.safetensors", "too few");
  g_assert_null (open_weights (fixture, "absent.gguf", &error));
  ox_check_error (&error, OX_ERROR_NOT_FOUND, "absent.gguf", "no such file");

  /* Files of a download cache have no endings. */
  write_bytes (fixture, "blob", g_bytes_get_data (gguf, NULL), g_bytes_get_size (gguf));
  nameless = open_weights (fixture, "blob", &error);
  g_assert_no_error (error);
  g_assert_nonnull (ox_weights_get_gguf (nameless));

  write_shard (fixture, "model.safetensors", "ab");
  folder = open_weights (fixture, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (ox_weights_get_n_tensors (folder), ==, 2);
  write_shard (fixture, "blob2", "abc");
  shard = open_weights (fixture, "blob2", &error);
  g_assert_no_error (error);
  g_assert_cmpuint (ox_weights_get_n_tensors (shard), ==, 3);
}

static void
test_folder_choice (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) gguf = ox_build_llama_gguf (NULL, NULL, 0);
  g_autoptr (OxWeights) one = NULL;
  g_autoptr (OxWeights) other = NULL;

  write_bytes (fixture, "m.gguf", g_bytes_get_data (gguf, NULL), g_bytes_get_size (gguf));
  one = open_weights (fixture, NULL, &error);
  g_assert_no_error (error);
  g_assert_nonnull (ox_weights_get_gguf (one));
  write_bytes (fixture, "n.gguf", g_bytes_get_data (gguf, NULL), g_bytes_get_size (gguf));
  g_assert_null (open_weights (fixture, NULL, &error));
  ox_check_error (&error, OX_ERROR_INVALID, fixture->folder, "several");
  write_shard (fixture, "text.safetensors", "a");
  other = open_weights (fixture, NULL, &error);
  g_assert_no_error (error);
  g_assert_null (ox_weights_get_gguf (other));
  write_shard (fixture, "text2.safetensors", "a");
  g_assert_null (open_weights (fixture, NULL, &error));
  ox_check_error (&error, OX_ERROR_INVALID, fixture->folder, "several *.safetensors");
}

static void
test_sharded (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (OxWeights) folder = NULL;
  g_autoptr (OxWeights) index = NULL;

  write_shard (fixture, "s-1.safetensors", "bd");
  write_shard (fixture, "s-2.safetensors", "ac");
  write_text (
    fixture, INDEX,
    MAP ("\"a\":\"s-2.safetensors\",\"b\":\"s-1.safetensors\",\"c\":\"s-2.safetensors\",\"d\":\"s-1.safetensors\""));
  folder = open_weights (fixture, NULL, &error);
  g_assert_no_error (error);
  index = open_weights (fixture, INDEX, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (ox_weights_get_n_tensors (index), ==, 4);
  for (guint i = 0; i < 4; i++) {
    const char name[2] = { (char) ('a' + i), '\0' };
    const OxTensorInfo *tensor = ox_weights_get_tensor (folder, i);

    g_assert_cmpstr (tensor->name, ==, name);
    g_assert_true (ox_weights_find (folder, name) == tensor);
    g_assert_true (
      g_str_has_suffix (ox_file_get_name (tensor->file), i % 2 == 0 ? "s-2.safetensors" : "s-1.safetensors"));
  }
  g_cancellable_cancel (cancellable);
  g_assert_null (ox_weights_open (fixture->folder, cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
}

typedef struct {
  const char *name;
  int code;
  const char *file; /* whose name the message has */
  const char *text;
  const char *index;
} IndexCase;

static const IndexCase bad_indexes[] = {
  { "empty", OX_ERROR_DAMAGED, INDEX, "empty", "" },
  { "not-json", OX_ERROR_DAMAGED, INDEX, "JSON", "{" },
  { "bom", OX_ERROR_DAMAGED, INDEX, "JSON", "\xef\xbb\xbf" MAP ("\"a\":\"s-1.safetensors\"") },
  { "array", OX_ERROR_DAMAGED, INDEX, "weight_map", "[]" },
  { "no-map", OX_ERROR_DAMAGED, INDEX, "weight_map", "{}" },
  { "map-array", OX_ERROR_DAMAGED, INDEX, "weight_map", "{\"weight_map\":[]}" },
  { "map-empty", OX_ERROR_DAMAGED, INDEX, "empty", MAP ("") },
  { "file-number", OX_ERROR_DAMAGED, INDEX, "tensor “a”", MAP ("\"a\":1") },
  { "file-empty", OX_ERROR_DAMAGED, INDEX, "plain name", MAP ("\"a\":\"\"") },
  { "file-parent", OX_ERROR_DAMAGED, INDEX, "plain name", MAP ("\"a\":\"../s-1.safetensors\"") },
  { "file-dots", OX_ERROR_DAMAGED, INDEX, "plain name", MAP ("\"a\":\"x..safetensors\"") },
  { "file-absolute", OX_ERROR_DAMAGED, INDEX, "plain name", MAP ("\"a\":\"/etc/s-1.safetensors\"") },
  { "file-below", OX_ERROR_DAMAGED, INDEX, "plain name", MAP ("\"a\":\"sub/s-1.safetensors\"") },
  { "file-backslash", OX_ERROR_DAMAGED, INDEX, "plain name", MAP ("\"a\":\"sub\\\\s-1.safetensors\"") },
  { "file-nul", OX_ERROR_DAMAGED, INDEX, "plain name", MAP ("\"a\":\"s-1.safetensors\\u0000.safetensors\"") },
  { "file-hidden", OX_ERROR_DAMAGED, INDEX, "plain name", MAP ("\"a\":\".s.safetensors\"") },
  { "file-pickle", OX_ERROR_DAMAGED, INDEX, "plain name", MAP ("\"a\":\"s-1.bin\"") },
  { "file-is-the-index", OX_ERROR_DAMAGED, INDEX, "plain name", MAP ("\"a\":\"" INDEX "\"") },
  { "file-missing", OX_ERROR_NOT_FOUND, "s-9.safetensors", INDEX, MAP ("\"a\":\"s-9.safetensors\"") },
  { "file-loop", OX_ERROR_IO, "loop.safetensors", INDEX, MAP ("\"a\":\"loop.safetensors\"") },
  { "file-folder", OX_ERROR_INVALID, "folder.safetensors", "folder", MAP ("\"a\":\"folder.safetensors\"") },
  { "file-index-by-another-name", OX_ERROR_DAMAGED, "again.safetensors", "", MAP ("\"a\":\"again.safetensors\"") },
  { "tensor-nowhere", OX_ERROR_DAMAGED, INDEX, "tensor “z”",
    MAP ("\"a\":\"s-1.safetensors\",\"z\":\"s-1.safetensors\"") },
  { "tensor-nul", OX_ERROR_DAMAGED, INDEX, "no such tensor", MAP ("\"a\\u0000\":\"s-1.safetensors\"") },
  { "tensor-in-another", OX_ERROR_DAMAGED, INDEX, "“c” in “s-1.safetensors”, but it is in",
    MAP ("\"a\":\"s-1.safetensors\",\"c\":\"s-1.safetensors\",\"d\":\"s-2.safetensors\"") },
  { "tensor-named-twice", OX_ERROR_DAMAGED, INDEX, "“a” twice",
    MAP ("\"a\":\"s-1.safetensors\",\"a\":\"s-1.safetensors\"") },
  { "tensor-in-two-files", OX_ERROR_DAMAGED, ".safetensors", "tensor “a” is in",
    MAP ("\"a\":\"s-1.safetensors\",\"e\":\"s-3.safetensors\"") },
  { "damaged-shard", OX_ERROR_DAMAGED, "bad.safetensors", "",
    MAP ("\"a\":\"s-1.safetensors\",\"x\":\"bad.safetensors\"") },
};

static void
test_bad_index (Fixture *fixture, gconstpointer data)
{
  const IndexCase *c = data;
  g_autoptr (GError) error = NULL;
  g_autofree char *loop = path_of (fixture, "loop.safetensors");
  g_autofree char *folder = path_of (fixture, "folder.safetensors");
  g_autofree char *again = path_of (fixture, "again.safetensors");

  write_shard (fixture, "s-1.safetensors", "ab");
  write_shard (fixture, "s-2.safetensors", "cd");
  write_shard (fixture, "s-3.safetensors", "ae");
  write_text (fixture, "bad.safetensors", "{}{}{}{}{}");
  write_text (fixture, INDEX, c->index);
  g_assert_cmpint (symlink ("loop.safetensors", loop), ==, 0);
  g_assert_cmpint (symlink (INDEX, again), ==, 0);
  g_assert_cmpint (g_mkdir (folder, 0700), ==, 0);
  g_assert_null (open_weights (fixture, INDEX, &error));
  ox_check_error (&error, c->code, c->file, c->text);
}

/* The index may list a great many tensors, but not a great many files. */
static void
test_many_shards (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GString) index = g_string_new ("{\"weight_map\":{");

  for (guint i = 0; i < 600; i++)
    g_string_append_printf (index, "%s\"%u\":\"%u.safetensors\"", i > 0 ? "," : "", i, i);
  g_string_append (index, "}}");
  write_text (fixture, INDEX, index->str);
  g_assert_null (open_weights (fixture, NULL, &error));
  ox_check_error (&error, OX_ERROR_UNSUPPORTED, INDEX, "over 512 files");
}

/* A file cut short while it is open: an error, no SIGBUS and no stale data. */
static void
test_cut_while_open (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) gguf = ox_build_llama_gguf (NULL, NULL, 0);
  g_autoptr (OxWeights) weights = NULL;
  g_autofree char *path = path_of (fixture, "m.gguf");
  g_autofree float *before = NULL;
  const OxTensorInfo *tensor;
  guint8 row[64];

  write_bytes (fixture, "m.gguf", g_bytes_get_data (gguf, NULL), g_bytes_get_size (gguf));
  weights = open_weights (fixture, "m.gguf", &error);
  g_assert_no_error (error);
  tensor = ox_weights_find (weights, "blk.1.ffn_down.weight");
  before = ox_tensor_read_f32 (tensor, &error);
  g_assert_no_error (error);
  g_assert_cmpint (truncate (path, (off_t) tensor->offset + 10), ==, 0);
  g_assert_null (ox_tensor_read_f32 (tensor, &error));
  ox_check_error (&error, OX_ERROR_IO, path, "cut short");
  g_assert_false (ox_tensor_read_rows (tensor, 0, 1, row, &error));
  ox_check_error (&error, OX_ERROR_IO, path, "cut short");
  g_assert_cmpint (truncate (path, 0), ==, 0);
  g_assert_false (ox_tensor_read_rows (ox_weights_get_tensor (weights, 0), 0, 1, row, &error));
  ox_check_error (&error, OX_ERROR_IO, path, "cut short");
}

/* Tensors beyond 4 GB, of a file of which only the header is on the disk. */
static void
test_large_file (Fixture *fixture, gconstpointer data)
{
  static const OxPiece pieces[] = {
    GGUF (3, 2, 0), STR ("large"), U32 (2), U64 (1 << 20), U64 (1280), U32 (0),
    U64 (0),        STR ("last"),  U32 (1), U64 (2),       U32 (0),    U64 (5368709120),
  };
  static const float numbers[2] = { 0.5f, -3 };
  g_autoptr (GError) error = NULL;
  g_autoptr (GByteArray) header = g_byte_array_new ();
  g_autoptr (OxWeights) weights = NULL;
  g_autofree char *path = path_of (fixture, "large.gguf");
  g_autofree float *last = NULL;
  OxPiece align[] = { ALIGN (32) };
  off_t start;
  int fd;

  ox_pieces_append (header, pieces, G_N_ELEMENTS (pieces));
  ox_pieces_append (header, align, 1);
  start = (off_t) header->len;
  fd = g_open (path, O_CREAT | O_WRONLY, 0600);
  g_assert_cmpint (fd, >=, 0);
  if (ftruncate (fd, start + 5368709120 + 8) != 0) {
    g_test_skip ("the temporary folder cannot hold a sparse file of 5 GB");
    close (fd);
    return;
  }
  g_assert_cmpint (pwrite (fd, header->data, header->len, 0), ==, header->len);
  g_assert_cmpint (pwrite (fd, numbers, 8, start + 5368709120), ==, 8);
  close (fd);
  weights = open_weights (fixture, "large.gguf", &error);
  g_assert_no_error (error);
  g_assert_cmpuint (ox_weights_find (weights, "large")->n_bytes, ==, 5368709120);
  last = ox_tensor_read_f32 (ox_weights_find (weights, "last"), &error);
  g_assert_no_error (error);
  g_assert_true (last[0] == 0.5f && last[1] == -3);
}

#define ADD(name, func) g_test_add ("/io/files/" name, Fixture, NULL, set_up, func, tear_down)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD ("file", test_file);
  ADD ("kinds", test_kinds);
  ADD ("folder-choice", test_folder_choice);
  ADD ("sharded", test_sharded);
  for (gsize i = 0; i < G_N_ELEMENTS (bad_indexes); i++) {
    g_autofree char *path = g_strconcat ("/io/files/bad-index/", bad_indexes[i].name, NULL);

    g_test_add (path, Fixture, &bad_indexes[i], set_up, test_bad_index, tear_down);
  }
  ADD ("many-shards", test_many_shards);
  ADD ("cut-while-open", test_cut_while_open);
  ADD ("large-file", test_large_file);
  return g_test_run ();
}
