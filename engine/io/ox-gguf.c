/* Metadata of a parsed GGUF header: look-up and conversion.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "io/ox-gguf-private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

gsize
ox_gguf_value_size (guint32 type)
{
  switch (type) {
  case GGUF_U8:
  case GGUF_I8:
  case GGUF_BOOL:
    return 1;
  case GGUF_U16:
  case GGUF_I16:
    return 2;
  case GGUF_U32:
  case GGUF_I32:
  case GGUF_F32:
    return 4;
  case GGUF_U64:
  case GGUF_I64:
  case GGUF_F64:
    return 8;
  default:
    return 0;
  }
}

guint64
ox_gguf_read_le (const guint8 *p, gsize n_bytes)
{
  guint64 value = 0;

  for (gsize i = 0; i < n_bytes; i++)
    value |= (guint64) p[i] << (8 * i);
  return value;
}

OxGguf *
ox_gguf_ref (OxGguf *gguf)
{
  g_atomic_ref_count_inc (&gguf->ref_count);
  return gguf;
}

void
ox_gguf_unref (OxGguf *gguf)
{
  if (!g_atomic_ref_count_dec (&gguf->ref_count))
    return;
  for (gsize i = 0; gguf->entries && i < gguf->n_entries; i++)
    g_free (gguf->entries[i].strings);
  g_free (gguf->entries);
  g_free (gguf->tensors);
  g_free (gguf->header);
  g_free (gguf);
}

static int
compare_name (const void *key, const void *entry)
{
  return strcmp (key, ((const OxGgufEntry *) entry)->name);
}

static const OxGgufEntry *
lookup (OxGguf *gguf, const char *key)
{
  return bsearch (key, gguf->entries, gguf->n_entries, sizeof *gguf->entries, compare_name);
}

/* An integer or boolean at @p. FALSE when @type is none, or the value is above G_MAXINT64 (then only @value_u is set). */
static gboolean
read_int (const guint8 *p, guint32 type, gint64 *value, guint64 *value_u)
{
  guint64 raw = 0;

  if (type == GGUF_F32 || type == GGUF_F64 || ox_gguf_value_size (type) == 0)
    return FALSE;
  raw = ox_gguf_read_le (p, ox_gguf_value_size (type));
  *value_u = raw;
  switch (type) {
  case GGUF_I8:
    *value = (gint8) raw;
    return TRUE;
  case GGUF_I16:
    *value = (gint16) raw;
    return TRUE;
  case GGUF_I32:
    *value = (gint32) raw;
    return TRUE;
  case GGUF_I64:
    *value = (gint64) raw;
    return TRUE;
  default:
    *value = (gint64) raw;
    return raw <= G_MAXINT64;
  }
}

static gboolean
read_float (const guint8 *p, guint32 type, double *value)
{
  guint64 raw = 0;
  gint64 i;

  if (type == GGUF_F32) {
    guint32 bits = (guint32) ox_gguf_read_le (p, 4);
    float f;

    memcpy (&f, &bits, 4);
    *value = f;
    return TRUE;
  }
  if (type == GGUF_F64) {
    raw = ox_gguf_read_le (p, 8);
    memcpy (value, &raw, 8);
    return TRUE;
  }
  if (read_int (p, type, &i, &raw)) {
    *value = (double) i;
    return TRUE;
  }
  if (type == GGUF_U64) {
    *value = (double) raw;
    return TRUE;
  }
  return FALSE;
}

gboolean
ox_gguf_has (OxGguf *gguf, const char *key)
{
  return lookup (gguf, key) != NULL;
}

const char *
ox_gguf_get_string (OxGguf *gguf, const char *key)
{
  const OxGgufEntry *entry = lookup (gguf, key);

  return entry && entry->type == GGUF_STRING ? (const char *) gguf->header + entry->value : NULL;
}

gboolean
ox_gguf_get_uint (OxGguf *gguf, const char *key, guint64 *value)
{
  const OxGgufEntry *entry = lookup (gguf, key);
  guint64 raw = 0;
  gint64 i;

  if (!entry || entry->type == GGUF_BOOL)
    return FALSE;
  if (read_int (gguf->header + entry->value, entry->type, &i, &raw)) {
    if (i < 0)
      return FALSE;
    *value = (guint64) i;
    return TRUE;
  }
  if (entry->type != GGUF_U64)
    return FALSE;
  *value = raw;
  return TRUE;
}

gboolean
ox_gguf_get_float (OxGguf *gguf, const char *key, double *value)
{
  const OxGgufEntry *entry = lookup (gguf, key);

  return entry && entry->type != GGUF_BOOL && read_float (gguf->header + entry->value, entry->type, value);
}

gboolean
ox_gguf_get_bool (OxGguf *gguf, const char *key, gboolean *value)
{
  const OxGgufEntry *entry = lookup (gguf, key);

  if (!entry || entry->type != GGUF_BOOL)
    return FALSE;
  *value = gguf->header[entry->value] != 0;
  return TRUE;
}

gsize
ox_gguf_get_array_length (OxGguf *gguf, const char *key)
{
  const OxGgufEntry *entry = lookup (gguf, key);

  return entry && entry->type == GGUF_ARRAY ? (gsize) entry->n : 0;
}

const char *
ox_gguf_get_array_string (OxGguf *gguf, const char *key, gsize index, gsize *len)
{
  const OxGgufEntry *entry = lookup (gguf, key);

  if (!entry || !entry->strings || index >= entry->n)
    return NULL;
  *len = (gsize) ox_gguf_read_le (gguf->header + entry->strings[index] - 8, 8);
  return (const char *) gguf->header + entry->strings[index];
}

/* The entry of a numeric array of @n elements, or NULL. */
static const OxGgufEntry *
lookup_numbers (OxGguf *gguf, const char *key, gsize n)
{
  const OxGgufEntry *entry = lookup (gguf, key);

  return entry && entry->type == GGUF_ARRAY && entry->element_type != GGUF_STRING && entry->n == n ? entry : NULL;
}

gboolean
ox_gguf_get_array_float (OxGguf *gguf, const char *key, float *values, gsize n)
{
  const OxGgufEntry *entry = lookup_numbers (gguf, key, n);
  gsize size;

  if (!entry)
    return FALSE;
  size = ox_gguf_value_size (entry->element_type);
  for (gsize i = 0; i < n; i++) {
    double value;

    if (!read_float (gguf->header + entry->value + i * size, entry->element_type, &value))
      return FALSE;
    /* A double beyond float's range becomes an infinity here, not undefined behaviour. */
    values[i] = value > G_MAXFLOAT ? INFINITY : value < -G_MAXFLOAT ? -INFINITY : (float) value;
  }
  return TRUE;
}

gboolean
ox_gguf_get_array_int (OxGguf *gguf, const char *key, gint64 *values, gsize n)
{
  const OxGgufEntry *entry = lookup_numbers (gguf, key, n);
  gsize size;

  if (!entry)
    return FALSE;
  size = ox_gguf_value_size (entry->element_type);
  for (gsize i = 0; i < n; i++) {
    guint64 raw;

    if (!read_int (gguf->header + entry->value + i * size, entry->element_type, &values[i], &raw))
      return FALSE;
  }
  return TRUE;
}

gsize
ox_gguf_get_n_tensors (OxGguf *gguf)
{
  return gguf->n_tensors;
}

const OxGgufTensor *
ox_gguf_get_tensor (OxGguf *gguf, gsize index)
{
  return index < gguf->n_tensors ? &gguf->tensors[index] : NULL;
}
