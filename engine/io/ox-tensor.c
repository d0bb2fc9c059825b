/* Reading and describing single tensors.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "io/ox-weights.h"

#include <stdarg.h>

#include "io/ox-dtype.h"
#include "io/ox-quote.h"

/* Elements converted at a time; a multiple of every block size. */
#define CHUNK_ELEMENTS 65536

gboolean
ox_tensor_read_rows (const OxTensorInfo *tensor, guint64 row_begin, guint64 row_end, void *buffer, GError **error)
{
  guint64 n_rows = tensor->n_dims > 0 ? tensor->dims[0] : 1;
  guint64 row_bytes = n_rows > 0 ? tensor->n_bytes / n_rows : 0;
  guint64 len;

  if (row_begin > row_end || row_end > n_rows || !g_uint64_checked_mul (&len, row_bytes, row_end - row_begin) ||
      len > G_MAXSIZE) {
    g_autofree char *quoted = ox_quote (tensor->name, -1);

    g_set_error (error, OX_ERROR, OX_ERROR_INVALID,
                 "%s: rows %" G_GUINT64_FORMAT "…%" G_GUINT64_FORMAT
                 " of tensor “%s” were asked for, it has %" G_GUINT64_FORMAT,
                 ox_file_get_name (tensor->file), row_begin, row_end, quoted, n_rows);
    return FALSE;
  }
  return ox_file_read (tensor->file, tensor->offset + row_begin * row_bytes, buffer, (gsize) len, error);
}

float *
ox_tensor_read_f32 (const OxTensorInfo *tensor, GError **error)
{
  g_autofree float *values = NULL;
  g_autofree guint8 *chunk = NULL;
  guint64 chunk_bytes;
  guint64 done = 0;

  if (!ox_dtype_row_bytes (tensor->type, CHUNK_ELEMENTS, &chunk_bytes)) {
    g_autofree char *quoted = ox_quote (tensor->name, -1);

    g_set_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED, "%s: tensor “%s” is of type %u, which this version cannot read",
                 ox_file_get_name (tensor->file), quoted, tensor->type);
    return NULL;
  }
  /* One element at least: no allocation would look like an error. */
  if (tensor->n_elements < G_MAXSIZE / sizeof (float))
    values = g_try_new (float, MAX ((gsize) tensor->n_elements, 1));
  chunk = g_try_malloc (MIN (chunk_bytes, MAX (tensor->n_bytes, 1)));
  if (!values || !chunk) {
    g_autofree char *quoted = ox_quote (tensor->name, -1);

    g_set_error (error, OX_ERROR, OX_ERROR_NO_MEMORY,
                 "%s: no memory for the %" G_GUINT64_FORMAT " elements of tensor “%s”", ox_file_get_name (tensor->file),
                 tensor->n_elements, quoted);
    return NULL;
  }
  while (done < tensor->n_elements) {
    gsize n = (gsize) MIN (CHUNK_ELEMENTS, tensor->n_elements - done);
    guint64 bytes;

    if (!ox_dtype_row_bytes (tensor->type, n, &bytes) ||
        !ox_file_read (tensor->file, tensor->offset + done / CHUNK_ELEMENTS * chunk_bytes, chunk, (gsize) bytes, error))
      return NULL;
    ox_dtype_to_f32 (tensor->type, chunk, values + done, n);
    done += n;
  }
  return g_steal_pointer (&values);
}

static void
append_shape (GString *out, guint n_dims, const guint64 *dims)
{
  g_string_append_c (out, '[');
  for (guint d = 0; d < n_dims; d++)
    g_string_append_printf (out, "%s%" G_GUINT64_FORMAT, d > 0 ? ", " : "", dims[d]);
  g_string_append_c (out, ']');
}

char *
ox_tensor_describe (const OxTensorInfo *tensor)
{
  GString *out = g_string_new (ox_dtype_name (tensor->type));

  g_string_append_c (out, ' ');
  append_shape (out, tensor->n_dims, tensor->dims);
  return g_string_free (out, FALSE);
}

gboolean
ox_tensor_check_shape (const OxTensorInfo *tensor, GError **error, guint n_dims, ...)
{
  guint64 expected[OX_WEIGHTS_MAX_DIMS] = { 0 };
  gboolean same = tensor->n_dims == n_dims;
  va_list args;

  g_return_val_if_fail (n_dims <= OX_WEIGHTS_MAX_DIMS, FALSE);
  va_start (args, n_dims);
  for (guint d = 0; d < n_dims; d++) {
    expected[d] = va_arg (args, guint64);
    same = same && tensor->dims[d] == expected[d];
  }
  va_end (args);
  if (!same) {
    g_autofree char *quoted = ox_quote (tensor->name, -1);
    g_autofree char *found = ox_tensor_describe (tensor);
    g_autoptr (GString) wanted = g_string_new (NULL);

    append_shape (wanted, n_dims, expected);
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: tensor “%s” is %s, the shape %s was expected",
                 ox_file_get_name (tensor->file), quoted, found, wanted->str);
  }
  return same;
}
