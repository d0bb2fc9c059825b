/* Fields of a config.json.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "io/ox-config-fields.h"

#include <math.h>

#include "io/ox-quote.h"

yyjson_val *
ox_fields_get (const OxFields *fields, const char *name)
{
  yyjson_val *val = yyjson_obj_get (fields->object, name);

  return yyjson_is_null (val) ? NULL : val;
}

gboolean
ox_fields_damaged (GError **error, const OxFields *fields, const char *name, yyjson_val *val, const char *expected)
{
  g_autofree char *found = NULL;

  if (yyjson_is_int (val) || yyjson_is_real (val))
    found = g_strdup_printf ("%.17g", yyjson_get_num (val));
  else if (yyjson_is_str (val)) {
    g_autofree char *quoted = ox_quote (yyjson_get_str (val), (gssize) yyjson_get_len (val));

    found = g_strdup_printf ("“%s”", quoted);
  } else
    found = g_strdup (ox_json_describe (val));
  g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: “%s%s” is %s, %s was expected", fields->file, fields->prefix,
               name, found, expected);
  return FALSE;
}

gboolean
ox_fields_unsupported (GError **error, const OxFields *fields, const char *name, const char *found)
{
  g_set_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED, "%s: “%s%s” is %s, which this version cannot run", fields->file,
               fields->prefix, name, found);
  return FALSE;
}

gboolean
ox_fields_read_uint (
  const OxFields *fields, const char *name, guint min, guint max, guint default_value, guint *value, GError **error)
{
  yyjson_val *val = ox_fields_get (fields, name);
  g_autofree char *expected = NULL;

  if (!val && default_value > 0) {
    *value = default_value;
    return TRUE;
  }
  if (yyjson_is_uint (val) && yyjson_get_uint (val) >= min && yyjson_get_uint (val) <= max) {
    *value = (guint) yyjson_get_uint (val);
    return TRUE;
  }
  expected = g_strdup_printf ("an integer from %u to %u", min, max);
  return ox_fields_damaged (error, fields, name, val, expected);
}

gboolean
ox_fields_read_count (
  const OxFields *fields, const char *name, guint max, guint default_value, guint *value, GError **error)
{
  *value = default_value;
  return !ox_fields_get (fields, name) || ox_fields_read_uint (fields, name, 0, max, 0, value, error);
}

gboolean
ox_fields_read_positive (
  const OxFields *fields, const char *name, double max, double default_value, double *value, GError **error)
{
  yyjson_val *val = ox_fields_get (fields, name);
  g_autofree char *expected = NULL;

  if (!val && !isnan (default_value)) {
    *value = default_value;
    return TRUE;
  }
  if (yyjson_is_num (val) && yyjson_get_num (val) > 0 && yyjson_get_num (val) <= max) {
    *value = yyjson_get_num (val);
    return TRUE;
  }
  expected = g_strdup_printf ("a number above 0 and at most %g", max);
  return ox_fields_damaged (error, fields, name, val, expected);
}

gboolean
ox_fields_read_bool (const OxFields *fields, const char *name, gboolean default_value, gboolean *value, GError **error)
{
  yyjson_val *val = ox_fields_get (fields, name);

  if (val && !yyjson_is_bool (val))
    return ox_fields_damaged (error, fields, name, val, "true or false");
  *value = val ? yyjson_get_bool (val) : default_value;
  return TRUE;
}

gboolean
ox_fields_check_string (const OxFields *fields, const char *name, const char *wanted, GError **error)
{
  yyjson_val *val = ox_fields_get (fields, name);
  g_autofree char *quoted = NULL;
  g_autofree char *found = NULL;

  if (!val || yyjson_equals_str (val, wanted))
    return TRUE;
  if (!yyjson_is_str (val))
    return ox_fields_damaged (error, fields, name, val, "a string");
  quoted = ox_quote (yyjson_get_str (val), (gssize) yyjson_get_len (val));
  found = g_strdup_printf ("“%s”", quoted);
  return ox_fields_unsupported (error, fields, name, found);
}

gboolean
ox_fields_check_bool (const OxFields *fields, const char *name, gboolean wanted, GError **error)
{
  gboolean value;

  if (!ox_fields_read_bool (fields, name, wanted, &value, error))
    return FALSE;
  return value == wanted || ox_fields_unsupported (error, fields, name, value ? "true" : "false");
}

typedef struct {
  const char *name;
  OxRopeType type;
} RopeName;

static const RopeName rope_names[] = {
  { "default", OX_ROPE_DEFAULT },
  { "linear", OX_ROPE_LINEAR },
  { "llama3", OX_ROPE_LLAMA3 },
  { "proportional", OX_ROPE_PROPORTIONAL },
};

/* “rope_type”, in old files “type”, must be one of @types. */
static gboolean
read_rope_type (const OxFields *fields, guint types, double partial, OxRopeType *type, GError **error)
{
  const char *name = ox_fields_get (fields, "rope_type") || !ox_fields_get (fields, "type") ? "rope_type" : "type";
  yyjson_val *val = ox_fields_get (fields, name);
  g_autofree char *quoted = NULL;
  g_autoptr (GString) known = NULL;

  *type = OX_ROPE_DEFAULT;
  if (!val)
    return TRUE;
  if (!yyjson_is_str (val))
    return ox_fields_damaged (error, fields, name, val, "a string");
  for (guint i = 0; i < G_N_ELEMENTS (rope_names); i++) {
    *type = rope_names[i].type;
    if ((types & OX_ROPE_BIT (*type)) && yyjson_equals_str (val, rope_names[i].name))
      return TRUE;
  }
  quoted = ox_quote (yyjson_get_str (val), (gssize) yyjson_get_len (val));
  known = g_string_new (NULL);
  for (guint i = 0; i < G_N_ELEMENTS (rope_names); i++)
    if (types & OX_ROPE_BIT (rope_names[i].type))
      g_string_append_printf (known, "%s“%s”", known->len > 0 ? ", " : "", rope_names[i].name);
  g_set_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED,
               "%s: “%s%s” is “%s” (over %g of the head), this version can run %s here", fields->file, fields->prefix,
               name, quoted, partial, known->str);
  return FALSE;
}

gboolean
ox_fields_read_rope (const OxFields *parent,
                     yyjson_val *object,
                     const char *name,
                     const OxRopeConfig *defaults,
                     guint types,
                     OxRopeConfig *rope,
                     GError **error)
{
  g_autofree char *prefix = g_strdup_printf ("%s%s.", parent->prefix, name);
  OxFields fields = { parent->file, prefix, object };
  guint original;

  *rope = *defaults;
  if (!object)
    return TRUE;
  if (!yyjson_is_obj (object))
    return ox_fields_damaged (error, parent, name, object, "an object");
  if (!ox_fields_read_positive (&fields, "rope_theta", 1e12, defaults->theta, &rope->theta, error) ||
      !ox_fields_read_positive (&fields, "partial_rotary_factor", 1, defaults->partial_rotary_factor,
                                &rope->partial_rotary_factor, error) ||
      !read_rope_type (&fields, types, rope->partial_rotary_factor, &rope->type, error))
    return FALSE;
  rope->factor = 1;
  if (rope->type == OX_ROPE_DEFAULT)
    return TRUE;
  /* A proportional rotation may go without a factor. */
  if (!ox_fields_read_positive (&fields, "factor", 1e6, rope->type == OX_ROPE_PROPORTIONAL ? 1 : NAN, &rope->factor,
                                error))
    return FALSE;
  if (rope->type != OX_ROPE_LLAMA3)
    return TRUE;
  if (!ox_fields_read_positive (&fields, "low_freq_factor", 1e6, NAN, &rope->low_freq_factor, error) ||
      !ox_fields_read_positive (&fields, "high_freq_factor", 1e6, NAN, &rope->high_freq_factor, error) ||
      !ox_fields_read_uint (&fields, "original_max_position_embeddings", 1, OX_CONFIG_MAX_POSITIONS, 0, &original,
                            error))
    return FALSE;
  rope->original_max_position_embeddings = original;
  if (rope->high_freq_factor <= rope->low_freq_factor)
    return ox_fields_damaged (error, &fields, "high_freq_factor", ox_fields_get (&fields, "high_freq_factor"),
                              "a number above “low_freq_factor”");
  return TRUE;
}

gboolean
ox_fields_read_layer_types (
  const OxFields *fields, yyjson_val *list, const char *other, OxLayerKind other_kind, OxConfig *config, GError **error)
{
  yyjson_val *val;
  size_t idx, max;

  if (!yyjson_is_arr (list) || yyjson_arr_size (list) != config->num_hidden_layers) {
    g_set_error (
      error, OX_ERROR, OX_ERROR_DAMAGED,
      "%s: “%slayer_types” is %s of %" G_GSIZE_FORMAT ", an array of “num_hidden_layers” (%u) names was expected",
      fields->file, fields->prefix, ox_json_describe (list), (gsize) yyjson_arr_size (list), config->num_hidden_layers);
    return FALSE;
  }
  ox_json_foreach_item (list, idx, max, val) {
    config->layer_kinds[idx] = yyjson_equals_str (val, other) ? other_kind : OX_LAYER_FULL;
    if (config->layer_kinds[idx] == OX_LAYER_FULL && !yyjson_equals_str (val, "full_attention")) {
      g_autofree char *quoted = yyjson_is_str (val) ? ox_quote (yyjson_get_str (val), (gssize) yyjson_get_len (val))
                                                    : g_strdup (ox_json_describe (val));

      g_set_error (error, OX_ERROR, yyjson_is_str (val) ? OX_ERROR_UNSUPPORTED : OX_ERROR_DAMAGED,
                   "%s: “%slayer_types” has “%s” for layer %" G_GSIZE_FORMAT
                   ", this version can run “full_attention” and “%s” here",
                   fields->file, fields->prefix, quoted, (gsize) idx, other);
      return FALSE;
    }
  }
  return TRUE;
}
