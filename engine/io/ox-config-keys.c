/* Metadata keys of a GGUF file.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "io/ox-config-keys.h"

#include <math.h>

#include "io/ox-quote.h"

/* "llama.block_count" */
char *
ox_keys_full (const OxKeys *keys, const char *name)
{
  return g_strconcat (keys->architecture, ".", name, NULL);
}

gboolean
ox_keys_has (const OxKeys *keys, const char *name)
{
  g_autofree char *key = ox_keys_full (keys, name);

  return ox_gguf_has (keys->gguf, key);
}

gboolean
ox_keys_damaged (GError **error, const OxKeys *keys, const char *name, guint64 found, const char *expected)
{
  g_autofree char *key = ox_keys_full (keys, name);

  g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: metadata key “%s” is %" G_GUINT64_FORMAT ", %s was expected",
               keys->file, key, found, expected);
  return FALSE;
}

gboolean
ox_keys_unsupported (GError **error, const OxKeys *keys, const char *name, const char *what)
{
  g_autofree char *key = ox_keys_full (keys, name);

  g_set_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED, "%s: metadata key “%s”: %s, which this version cannot run",
               keys->file, key, what);
  return FALSE;
}

gboolean
ox_keys_differ (GError **error, const OxKeys *keys, const char *name, const char *other)
{
  g_autofree char *what = g_strdup_printf ("it differs from “%s.%s”", keys->architecture, other);

  return ox_keys_unsupported (error, keys, name, what);
}

static gboolean
missing (GError **error, const OxKeys *keys, const char *name)
{
  g_autofree char *key = ox_keys_full (keys, name);

  g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: metadata key “%s” is missing", keys->file, key);
  return FALSE;
}

static gboolean
check_range (const OxKeys *keys, const char *name, gboolean valid, guint64 found, guint min, guint max, GError **error)
{
  g_autofree char *key = ox_keys_full (keys, name);

  if (!valid) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: metadata key “%s” is not a non-negative integer", keys->file,
                 key);
    return FALSE;
  }
  if (found < min || found > max) {
    g_autofree char *expected = g_strdup_printf ("an integer from %u to %u", min, max);

    return ox_keys_damaged (error, keys, name, found, expected);
  }
  return TRUE;
}

gboolean
ox_keys_read_uint (
  const OxKeys *keys, const char *name, guint min, guint max, guint default_value, guint *value, GError **error)
{
  g_autofree char *key = ox_keys_full (keys, name);
  guint64 found = 0;
  gboolean valid;

  if (!ox_gguf_has (keys->gguf, key)) {
    *value = default_value;
    return default_value > 0 || missing (error, keys, name);
  }
  if (ox_gguf_get_array_length (keys->gguf, key) > 0)
    return ox_keys_unsupported (error, keys, name, "it differs from layer to layer");
  valid = ox_gguf_get_uint (keys->gguf, key, &found);
  if (!check_range (keys, name, valid, found, min, max, error))
    return FALSE;
  *value = (guint) found;
  return TRUE;
}

gboolean
ox_keys_read_count (const OxKeys *keys, const char *name, guint max, guint default_value, guint *value, GError **error)
{
  *value = default_value;
  return !ox_keys_has (keys, name) || ox_keys_read_uint (keys, name, 0, max, 0, value, error);
}

gboolean
ox_keys_read_layers (const OxKeys *keys,
                     const char *name,
                     guint min,
                     guint max,
                     guint default_value,
                     guint *values,
                     guint n,
                     GError **error)
{
  g_autofree char *key = ox_keys_full (keys, name);
  gsize len = ox_gguf_get_array_length (keys->gguf, key);
  g_autofree gint64 *list = NULL;
  guint value;

  if (len == 0) {
    if (!ox_keys_read_uint (keys, name, min, max, default_value, &value, error))
      return FALSE;
    for (guint i = 0; i < n; i++)
      values[i] = value;
    return TRUE;
  }
  list = g_new (gint64, n);
  if (len != n || !ox_gguf_get_array_int (keys->gguf, key, list, n)) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED,
                 "%s: metadata key “%s” is not a number or a list of %u integers, one for each of “%s.block_count”",
                 keys->file, key, n, keys->architecture);
    return FALSE;
  }
  for (guint i = 0; i < n; i++) {
    if (!check_range (keys, name, list[i] >= 0, (guint64) list[i], min, max, error))
      return FALSE;
    values[i] = (guint) list[i];
  }
  return TRUE;
}

gboolean
ox_keys_read_flags (const OxKeys *keys, const char *name, gboolean *flags, guint n, gboolean *found, GError **error)
{
  g_autofree char *key = ox_keys_full (keys, name);
  gsize len = ox_gguf_get_array_length (keys->gguf, key);
  g_autofree gint64 *list = NULL;

  *found = ox_gguf_has (keys->gguf, key);
  if (!*found)
    return TRUE;
  if (len >= n && len <= OX_CONFIG_MAX_LAYERS) {
    list = g_new (gint64, len);
    if (ox_gguf_get_array_int (keys->gguf, key, list, len)) {
      for (guint i = 0; i < n; i++)
        flags[i] = list[i] != 0;
      return TRUE;
    }
  }
  g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED,
               "%s: metadata key “%s” is not a list of %u booleans, one for each of “%s.block_count”", keys->file, key,
               n, keys->architecture);
  return FALSE;
}

gboolean
ox_keys_read_positive (
  const OxKeys *keys, const char *name, double max, double default_value, double *value, GError **error)
{
  g_autofree char *key = ox_keys_full (keys, name);

  if (!ox_gguf_has (keys->gguf, key)) {
    *value = default_value;
    return !isnan (default_value) || missing (error, keys, name);
  }
  if (!ox_gguf_get_float (keys->gguf, key, value)) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: metadata key “%s” is not a number", keys->file, key);
    return FALSE;
  }
  if (!(*value > 0 && *value <= max)) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED,
                 "%s: metadata key “%s” is %g, a number above 0 and at most %g was expected", keys->file, key, *value,
                 max);
    return FALSE;
  }
  return TRUE;
}

gboolean
ox_keys_check_unscaled (const OxKeys *keys, GError **error)
{
  g_autofree char *key = ox_keys_full (keys, "rope.scaling.type");
  const char *type = ox_gguf_get_string (keys->gguf, key);
  g_autofree char *quoted = NULL;
  g_autofree char *what = NULL;

  if (!ox_gguf_has (keys->gguf, key) || g_strcmp0 (type, "none") == 0)
    return TRUE;
  quoted = type ? ox_quote (type, -1) : g_strdup ("?");
  what = g_strdup_printf ("positions are scaled by “%s”", quoted);
  return ox_keys_unsupported (error, keys, "rope.scaling.type", what);
}

gboolean
ox_keys_read_rope_factors (const OxKeys *keys, guint half, OxRopeConfig *rope, GError **error)
{
  const OxTensorInfo *tensor = keys->weights ? ox_weights_find (keys->weights, "rope_freqs.weight") : NULL;

  if (!tensor)
    return TRUE;
  if (!ox_tensor_check_shape (tensor, error, 1, (guint64) half))
    return FALSE;
  rope->freq_factors = ox_tensor_read_f32 (tensor, error);
  if (!rope->freq_factors)
    return FALSE;
  for (guint i = 0; i < half; i++) {
    float factor = rope->freq_factors[i];

    if (!(factor > 0 && isfinite (factor))) {
      g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED,
                   "%s: tensor “rope_freqs.weight” has %g at %u, a number above 0 was expected", keys->file,
                   (double) factor, i);
      return FALSE;
    }
  }
  return TRUE;
}
