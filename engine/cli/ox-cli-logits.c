/* A file of logits: what the network said before each token of an answer.
 *
 * Both formats have their shapes in front, and the number of steps is known at the end: a header of fixed size is written again then.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-cli-logits.h"

#include <string.h>

/* Both formats allow spaces behind their header; NumPy wants a multiple of 64 and safetensors one of 8. */
#define HEADER_BYTES 512
#define NPY_MAGIC "\x93NUMPY\x01\x00"
#define NPY_MAGIC_BYTES 8

struct _OxCliLogits {
  GFile *file;
  GFileOutputStream *stream;
  gboolean is_new; /* nothing of that name was there */
  gboolean is_npy;
  guint vocab_size;
  guint64 n_rows;
};

gboolean
ox_cli_logits_knows (const char *path)
{
  return g_str_has_suffix (path, ".npy") || g_str_has_suffix (path, ".safetensors");
}

/* What the file system says about a write does not say where. */
static gboolean
write_all (OxCliLogits *logits, const void *bytes, gsize n, GError **error)
{
  g_autofree char *name = NULL;

  if (g_output_stream_write_all (G_OUTPUT_STREAM (logits->stream), bytes, n, NULL, NULL, error))
    return TRUE;
  name = g_file_get_parse_name (logits->file);
  g_prefix_error (error, "%s: ", name);
  return FALSE;
}

OxCliLogits *
ox_cli_logits_new (const char *path, guint vocab_size, GError **error)
{
  char header[HEADER_BYTES] = { 0 };
  g_autoptr (OxCliLogits) logits = NULL;

  logits = g_new0 (OxCliLogits, 1);
  logits->file = g_file_new_for_commandline_arg (path);
  logits->is_npy = g_str_has_suffix (path, ".npy");
  logits->vocab_size = vocab_size;
  logits->is_new = !g_file_query_exists (logits->file, NULL);
  logits->stream = g_file_replace (logits->file, NULL, FALSE, G_FILE_CREATE_REPLACE_DESTINATION, NULL, error);
  if (logits->stream == NULL || !write_all (logits, header, sizeof header, error))
    return NULL;
  return g_steal_pointer (&logits);
}

void
ox_cli_logits_free (OxCliLogits *logits)
{
  if (logits->stream != NULL && !g_output_stream_is_closed (G_OUTPUT_STREAM (logits->stream))) {
    g_autoptr (GCancellable) cancelled = g_cancellable_new ();

    /* Closed after having been cancelled, a replacement is dropped. */
    g_cancellable_cancel (cancelled);
    g_output_stream_close (G_OUTPUT_STREAM (logits->stream), cancelled, NULL);
    /* A new one is not. */
    if (logits->is_new)
      g_file_delete (logits->file, NULL, NULL);
  }
  g_clear_object (&logits->stream);
  g_clear_object (&logits->file);
  g_free (logits);
}

gboolean
ox_cli_logits_add (OxCliLogits *logits, const float *row, GError **error)
{
  g_autofree guint32 *words = g_new (guint32, logits->vocab_size);

  memcpy (words, row, logits->vocab_size * sizeof *words);
  for (guint i = 0; i < logits->vocab_size; i++)
    words[i] = GUINT32_TO_LE (words[i]);
  logits->n_rows++;
  return write_all (logits, words, logits->vocab_size * sizeof *words, error);
}

static gboolean
write_ids (OxCliLogits *logits, const GArray *ids, GError **error)
{
  g_autofree gint64 *words = g_new (gint64, MAX (ids->len, 1));

  for (guint i = 0; i < ids->len; i++)
    words[i] = GINT64_TO_LE ((gint64) g_array_index (ids, guint32, i));
  return write_all (logits, words, ids->len * sizeof *words, error);
}

/* The header's text, of which the rest is spaces. */
static void
fill_header (char *header, gsize begin, const char *text, char last)
{
  memset (header + begin, ' ', HEADER_BYTES - begin);
  memcpy (header + begin, text, strlen (text));
  header[HEADER_BYTES - 1] = last;
}

gboolean
ox_cli_logits_finish (OxCliLogits *logits, const GArray *prompt, const GArray *ids, GError **error)
{
  guint64 rows_end = logits->n_rows * logits->vocab_size * sizeof (float);
  guint64 prompt_end = rows_end + prompt->len * sizeof (gint64);
  guint64 end = prompt_end + ids->len * sizeof (gint64);
  g_autofree char *text = NULL;
  char header[HEADER_BYTES];

  if (logits->is_npy) {
    guint16 len = GUINT16_TO_LE (HEADER_BYTES - NPY_MAGIC_BYTES - sizeof len);

    text = g_strdup_printf ("{'descr': '<f4', 'fortran_order': False, 'shape': (%" G_GUINT64_FORMAT ", %u), }",
                            logits->n_rows, logits->vocab_size);
    memcpy (header, NPY_MAGIC, NPY_MAGIC_BYTES);
    memcpy (header + NPY_MAGIC_BYTES, &len, sizeof len);
    fill_header (header, NPY_MAGIC_BYTES + sizeof len, text, '\n');
  } else {
    guint64 len = GUINT64_TO_LE (HEADER_BYTES - sizeof len);

    text = g_strdup_printf (
      "{\"logits\":{\"dtype\":\"F32\",\"shape\":[%" G_GUINT64_FORMAT ",%u],\"data_offsets\":[0,%" G_GUINT64_FORMAT "]},"
      "\"prompt\":{\"dtype\":\"I64\",\"shape\":[%u],\"data_offsets\":[%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT "]},"
      "\"ids\":{\"dtype\":\"I64\",\"shape\":[%u],\"data_offsets\":[%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT "]}}",
      logits->n_rows, logits->vocab_size, rows_end, prompt->len, rows_end, prompt_end, ids->len, prompt_end, end);
    memcpy (header, &len, sizeof len);
    fill_header (header, sizeof len, text, ' ');
    if (!write_ids (logits, prompt, error) || !write_ids (logits, ids, error))
      return FALSE;
  }
  return g_seekable_seek (G_SEEKABLE (logits->stream), 0, G_SEEK_SET, NULL, error) &&
         write_all (logits, header, sizeof header, error) &&
         g_output_stream_close (G_OUTPUT_STREAM (logits->stream), NULL, error);
}
