/* The header of one safetensors file.
 *
 * The rules are those of the format's reference reader (https://github.com/huggingface/safetensors, README "Format" and
 * its validation): the header is at most 100 MB and begins with “{”; dimensions times element size is exactly the tensor's
 * byte range; ranges, sorted, tile the data from 0 to the end of the file. Beyond these: bounded counts, names and ranks,
 * and nothing may appear twice.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "io/ox-safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "io/ox-dtype.h"
#include "io/ox-json.h"
#include "io/ox-quote.h"

#define MAX_HEADER 100000000
#define MAX_NAME_LENGTH 1024

typedef struct {
  const char *name; /* of the file */
  guint64 data_size;
  guint64 data_start;
  OxFile *file;
} Context;

/* The members of a tensor's object, each exactly once; others are ignored, as the reference reader does. */
static gboolean
get_members (Context *context, const char *quoted, yyjson_val *object, yyjson_val *members[3], GError **error)
{
  static const char *const keys[3] = { "dtype", "shape", "data_offsets" };
  yyjson_val *key, *val;
  size_t idx, max;

  if (!yyjson_is_obj (object)) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: tensor “%s” is %s, an object was expected", context->name,
                 quoted, ox_json_describe (object));
    return FALSE;
  }
  memset (members, 0, 3 * sizeof *members);
  ox_json_foreach_member (object, idx, max, key, val) {
    for (guint i = 0; i < 3; i++) {
      if (!yyjson_equals_str (key, keys[i]))
        continue;
      if (members[i]) {
        g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: tensor “%s” has “%s” twice", context->name, quoted,
                     keys[i]);
        return FALSE;
      }
      members[i] = val;
    }
  }
  if (!yyjson_is_str (members[0]) || !yyjson_is_arr (members[1]) || !yyjson_is_arr (members[2])) {
    guint bad = !yyjson_is_str (members[0]) ? 0 : !yyjson_is_arr (members[1]) ? 1 : 2;

    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: tensor “%s”: “%s” is %s, %s was expected", context->name,
                 quoted, keys[bad], ox_json_describe (members[bad]), bad == 0 ? "a string" : "an array");
    return FALSE;
  }
  return TRUE;
}

static gboolean
read_dtype (Context *context, const char *quoted, yyjson_val *val, guint32 *dtype, GError **error)
{
  const char *text = yyjson_get_str (val);
  gboolean known = FALSE;

  *dtype = OX_DTYPE_UNKNOWN;
  if (strlen (text) == yyjson_get_len (val))
    *dtype = ox_dtype_from_safetensors (text, &known);
  if (*dtype == OX_DTYPE_UNKNOWN) {
    g_autofree char *dtype_quoted = ox_quote (text, -1);

    if (known)
      g_set_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED,
                   "%s: tensor “%s” is stored as %s, which this version cannot read", context->name, quoted,
                   dtype_quoted);
    else
      g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED,
                   "%s: tensor “%s”: “dtype” is “%s”, which is no type of the format", context->name, quoted,
                   dtype_quoted);
    return FALSE;
  }
  return TRUE;
}

static gboolean
read_shape (Context *context, const char *quoted, yyjson_val *val, OxTensorInfo *info, GError **error)
{
  guint64 product = 1;
  gboolean empty = FALSE;
  yyjson_val *dim;
  size_t idx, max;

  if (yyjson_arr_size (val) > OX_WEIGHTS_MAX_DIMS) {
    g_set_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED,
                 "%s: tensor “%s” has %" G_GSIZE_FORMAT " dimensions, at most %u can be read", context->name, quoted,
                 (gsize) yyjson_arr_size (val), OX_WEIGHTS_MAX_DIMS);
    return FALSE;
  }
  ox_json_foreach_item (val, idx, max, dim) {
    if (!yyjson_is_uint (dim)) {
      g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED,
                   "%s: tensor “%s”: dimension %" G_GSIZE_FORMAT " is %s, a non-negative integer was expected",
                   context->name, quoted, (gsize) idx, ox_json_describe (dim));
      return FALSE;
    }
    info->dims[idx] = yyjson_get_uint (dim);
    /* Zeros are left out of the product, so that it does not depend on their place. */
    if (info->dims[idx] == 0)
      empty = TRUE;
    else if (!g_uint64_checked_mul (&product, product, info->dims[idx]) || product > G_MAXINT64) {
      g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: tensor “%s” has impossibly large dimensions", context->name,
                   quoted);
      return FALSE;
    }
  }
  info->n_dims = (guint) yyjson_arr_size (val);
  info->n_elements = empty ? 0 : product;
  return TRUE;
}

static gboolean
read_offsets (Context *context, const char *quoted, yyjson_val *val, OxTensorInfo *info, GError **error)
{
  yyjson_val *first = yyjson_arr_get (val, 0);
  yyjson_val *second = yyjson_arr_get (val, 1);
  guint64 begin, end, expected;

  if (yyjson_arr_size (val) != 2 || !yyjson_is_uint (first) || !yyjson_is_uint (second)) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: tensor “%s”: “data_offsets” must be two non-negative integers",
                 context->name, quoted);
    return FALSE;
  }
  begin = yyjson_get_uint (first);
  end = yyjson_get_uint (second);
  if (begin > end || end > context->data_size) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED,
                 "%s: tensor “%s” lies at %" G_GUINT64_FORMAT "…%" G_GUINT64_FORMAT
                 ", but the file has %" G_GUINT64_FORMAT " bytes of data; it may be incomplete",
                 context->name, quoted, begin, end, context->data_size);
    return FALSE;
  }
  if (!ox_dtype_row_bytes (info->type, info->n_elements, &expected) || expected != end - begin) {
    g_autofree char *shape = ox_tensor_describe (info);

    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED,
                 "%s: tensor “%s” is %s, which does not fit its %" G_GUINT64_FORMAT " bytes of data", context->name,
                 quoted, shape, end - begin);
    return FALSE;
  }
  info->offset = context->data_start + begin;
  info->n_bytes = end - begin;
  return TRUE;
}

static gboolean
read_tensor (
  Context *context, yyjson_val *key, yyjson_val *object, GStringChunk *names, OxTensorInfo *info, GError **error)
{
  const char *name = yyjson_get_str (key);
  gsize len = yyjson_get_len (key);
  g_autofree char *quoted = ox_quote (name, (gssize) len);
  yyjson_val *members[3];

  if (len == 0 || len > MAX_NAME_LENGTH || strlen (name) != len) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED,
                 "%s: the tensor name “%s” is empty, over %u bytes long or has a NUL in it", context->name, quoted,
                 MAX_NAME_LENGTH);
    return FALSE;
  }
  if (!get_members (context, quoted, object, members, error) ||
      !read_dtype (context, quoted, members[0], &info->type, error) ||
      !read_shape (context, quoted, members[1], info, error) ||
      !read_offsets (context, quoted, members[2], info, error))
    return FALSE;
  info->name = g_string_chunk_insert (names, name);
  info->file = context->file;
  return TRUE;
}

/* An object of strings. */
static gboolean
check_metadata (Context *context, yyjson_val *metadata, GError **error)
{
  yyjson_val *key, *val;
  size_t idx, max;

  if (!yyjson_is_obj (metadata)) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: “__metadata__” is %s, an object was expected", context->name,
                 ox_json_describe (metadata));
    return FALSE;
  }
  ox_json_foreach_member (metadata, idx, max, key, val) {
    if (!yyjson_is_str (val)) {
      g_autofree char *quoted = ox_quote (yyjson_get_str (key), (gssize) yyjson_get_len (key));

      g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: “__metadata__”: “%s” is %s, a string was expected",
                   context->name, quoted, ox_json_describe (val));
      return FALSE;
    }
  }
  return TRUE;
}

static int
compare_places (const void *a, const void *b)
{
  const OxTensorInfo *x = *(const OxTensorInfo *const *) a;
  const OxTensorInfo *y = *(const OxTensorInfo *const *) b;

  if (x->offset != y->offset)
    return x->offset < y->offset ? -1 : 1;
  return x->n_bytes < y->n_bytes ? -1 : x->n_bytes > y->n_bytes;
}

static int
compare_names (const void *a, const void *b)
{
  return strcmp ((*(const OxTensorInfo *const *) a)->name, (*(const OxTensorInfo *const *) b)->name);
}

/* By sorting, not hashing: names made to collide would cost a hash table quadratic time. */
static gboolean
check_names (Context *context, const OxTensorInfo *tensors, gsize n, GError **error)
{
  g_autofree const OxTensorInfo **sorted = g_new (const OxTensorInfo *, MAX (n, 1));

  for (gsize i = 0; i < n; i++)
    sorted[i] = &tensors[i];
  qsort (sorted, n, sizeof *sorted, compare_names);
  for (gsize i = 1; i < n; i++) {
    if (compare_names (&sorted[i - 1], &sorted[i]) == 0) {
      g_autofree char *quoted = ox_quote (sorted[i]->name, -1);

      g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: tensor “%s” appears twice", context->name, quoted);
      return FALSE;
    }
  }
  return TRUE;
}

/* No gap, no overlap, nothing left over. */
static gboolean
check_tiling (Context *context, const OxTensorInfo *tensors, gsize n, GError **error)
{
  g_autofree const OxTensorInfo **sorted = g_new (const OxTensorInfo *, MAX (n, 1));
  guint64 end = context->data_start;

  for (gsize i = 0; i < n; i++)
    sorted[i] = &tensors[i];
  qsort (sorted, n, sizeof *sorted, compare_places);
  for (gsize i = 0; i < n; i++) {
    if (sorted[i]->offset != end) {
      g_autofree char *quoted = ox_quote (sorted[i]->name, -1);

      g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED,
                   "%s: tensor “%s” begins at %" G_GUINT64_FORMAT " of the data, %" G_GUINT64_FORMAT
                   " was expected (%s)",
                   context->name, quoted, sorted[i]->offset - context->data_start, end - context->data_start,
                   sorted[i]->offset < end ? "overlap" : "gap");
      return FALSE;
    }
    end += sorted[i]->n_bytes;
  }
  if (end - context->data_start != context->data_size) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED,
                 "%s: has %" G_GUINT64_FORMAT " bytes of data, its tensors take %" G_GUINT64_FORMAT, context->name,
                 context->data_size, end - context->data_start);
    return FALSE;
  }
  return TRUE;
}

/* The header's length, checked, and where the data is. */
static gboolean
read_length (Context *context, gsize *length, GError **error)
{
  guint64 size = ox_file_get_size (context->file);
  guint64 n;
  char first;

  if (size < 8) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED,
                 "%s: has %" G_GUINT64_FORMAT " bytes, too few for a safetensors file", context->name, size);
    return FALSE;
  }
  if (!ox_file_read (context->file, 0, &n, 8, error))
    return FALSE;
  n = GUINT64_FROM_LE (n);
  if (n > MAX_HEADER || n > size - 8) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED,
                 "%s: claims a header of %" G_GUINT64_FORMAT " bytes, at most %" G_GUINT64_FORMAT
                 " were expected; it may be incomplete or no safetensors file",
                 context->name, n, MIN ((guint64) MAX_HEADER, size - 8));
    return FALSE;
  }
  if (n < 2) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED,
                 "%s: claims a header of %" G_GUINT64_FORMAT " bytes, at least 2 were expected", context->name, n);
    return FALSE;
  }
  if (!ox_file_read (context->file, 8, &first, 1, error))
    return FALSE;
  if (first != '{') {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: its header does not begin with “{”", context->name);
    return FALSE;
  }
  *length = (gsize) n;
  context->data_start = 8 + n;
  context->data_size = size - 8 - n;
  return TRUE;
}

gboolean
ox_safetensors_read (OxFile *file, GArray *tensors, GStringChunk *names, GError **error)
{
  Context context = { .name = ox_file_get_name (file), .file = file };
  g_autoptr (OxJson) json = NULL;
  gboolean has_metadata = FALSE;
  guint first = tensors->len;
  const OxTensorInfo *added;
  yyjson_val *root, *key, *val;
  size_t idx, max;
  gsize length;

  if (!read_length (&context, &length, error))
    return FALSE;
  json = ox_json_read (file, 8, length, error);
  if (!json)
    return FALSE;
  root = ox_json_get_root (json);
  if (!yyjson_is_obj (root) || yyjson_obj_size (root) > OX_WEIGHTS_MAX_TENSORS) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: its header must be an object of at most %u tensors",
                 context.name, OX_WEIGHTS_MAX_TENSORS);
    return FALSE;
  }
  ox_json_foreach_member (root, idx, max, key, val) {
    OxTensorInfo info = { 0 };

    if (yyjson_equals_str (key, "__metadata__")) {
      if (has_metadata) {
        g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: “__metadata__” appears twice", context.name);
        return FALSE;
      }
      has_metadata = TRUE;
      if (!check_metadata (&context, val, error))
        return FALSE;
      continue;
    }
    if (!read_tensor (&context, key, val, names, &info, error))
      return FALSE;
    g_array_append_val (tensors, info);
  }
  /* Only now does the array stay where it is. */
  added = tensors->len > first ? &g_array_index (tensors, OxTensorInfo, first) : NULL;
  return check_names (&context, added, tensors->len - first, error) &&
         check_tiling (&context, added, tensors->len - first, error);
}
