/* config.json of Hugging Face's transformers, in its old and new spellings.
 *
 * Defaults for absent fields are those of the configuration classes of transformers 5; Gemma 3's files lean on them, the other
 * families' files name everything that has no obvious value.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "io/ox-config-private.h"

#include <math.h>
#include <string.h>

#include "io/ox-quote.h"

typedef struct {
  const char *model_type;
  const char *architecture;
  OxFamily family;
  gboolean attention_bias; /* always on q, k and v, never on the output */
  gboolean qk_norm;
} Kind;

static const Kind kinds[] = {
  { "llama", "llama", OX_FAMILY_LLAMA, FALSE, FALSE },        { "mistral", "mistral", OX_FAMILY_LLAMA, FALSE, FALSE },
  { "qwen2", "qwen2", OX_FAMILY_LLAMA, TRUE, FALSE },         { "qwen3", "qwen3", OX_FAMILY_LLAMA, FALSE, TRUE },
  { "gemma3_text", "gemma3", OX_FAMILY_GEMMA3, FALSE, TRUE }, { "gemma3", "gemma3", OX_FAMILY_GEMMA3, FALSE, TRUE },
};

/* An object of the file and the way to it, for messages. */
typedef struct {
  const char *file;
  const char *prefix; /* "text_config." or "" */
  yyjson_val *object;
} Fields;

/* Absent and null are the same. */
static yyjson_val *
get (const Fields *fields, const char *name)
{
  yyjson_val *val = yyjson_obj_get (fields->object, name);

  return yyjson_is_null (val) ? NULL : val;
}

static gboolean
damaged (GError **error, const Fields *fields, const char *name, yyjson_val *val, const char *expected)
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

/* @default_value 0: the field is required. */
static gboolean
read_uint (
  const Fields *fields, const char *name, guint min, guint max, guint default_value, guint *value, GError **error)
{
  yyjson_val *val = get (fields, name);
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
  return damaged (error, fields, name, val, expected);
}

/* A finite number above 0 and at most @max. NaN as @default_value: the field is required. */
static gboolean
read_positive (const Fields *fields, const char *name, double max, double default_value, double *value, GError **error)
{
  yyjson_val *val = get (fields, name);
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
  return damaged (error, fields, name, val, expected);
}

static gboolean
read_bool (const Fields *fields, const char *name, gboolean default_value, gboolean *value, GError **error)
{
  yyjson_val *val = get (fields, name);

  if (val && !yyjson_is_bool (val))
    return damaged (error, fields, name, val, "true or false");
  *value = val ? yyjson_get_bool (val) : default_value;
  return TRUE;
}

/* Fields whose other values would change what the network computes, in ways that it has no code for. */
static gboolean
check_variants (const Fields *fields, const Kind *kind, GError **error)
{
  static const char *const flags[] = { "attention_bias", "mlp_bias", "use_bidirectional_attention" };
  static const char *const caps[] = { "attn_logit_softcapping", "final_logit_softcapping" };
  const char *name = kind->family == OX_FAMILY_GEMMA3 ? "hidden_activation" : "hidden_act";
  yyjson_val *val = get (fields, name);

  for (guint i = 0; i < G_N_ELEMENTS (flags); i++) {
    gboolean on;

    /* Qwen 2 has its biases whatever the field says. */
    if (i == 0 && kind->attention_bias)
      continue;
    if (!read_bool (fields, flags[i], FALSE, &on, error))
      return FALSE;
    if (on) {
      g_set_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED, "%s: “%s%s” is true, which this version cannot run",
                   fields->file, fields->prefix, flags[i]);
      return FALSE;
    }
  }
  for (guint i = 0; i < G_N_ELEMENTS (caps) && kind->family == OX_FAMILY_GEMMA3; i++) {
    if (get (fields, caps[i])) {
      g_set_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED, "%s: “%s%s” is set, which this version cannot run",
                   fields->file, fields->prefix, caps[i]);
      return FALSE;
    }
  }
  if (val && !yyjson_is_str (val))
    return damaged (error, fields, name, val, "a string");
  if (val && !yyjson_equals_str (val, kind->family == OX_FAMILY_GEMMA3 ? "gelu_pytorch_tanh" : "silu")) {
    g_autofree char *quoted = ox_quote (yyjson_get_str (val), (gssize) yyjson_get_len (val));

    g_set_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED, "%s: “%s%s” is “%s”, which this version cannot run",
                 fields->file, fields->prefix, name, quoted);
    return FALSE;
  }
  return TRUE;
}

static gboolean
read_sizes (const Fields *fields, OxConfig *config, GError **error)
{
  gboolean gemma = config->family == OX_FAMILY_GEMMA3;
  guint default_head_dim;

  if (!read_uint (fields, "hidden_size", 1, OX_CONFIG_MAX_WIDTH, gemma ? 2304 : 0, &config->hidden_size, error) ||
      !read_uint (fields, "intermediate_size", 1, OX_CONFIG_MAX_WIDTH, gemma ? 9216 : 0, &config->intermediate_size,
                  error) ||
      !read_uint (fields, "num_hidden_layers", 1, OX_CONFIG_MAX_LAYERS, gemma ? 26 : 0, &config->num_hidden_layers,
                  error) ||
      !read_uint (fields, "num_attention_heads", 1, OX_CONFIG_MAX_HEADS, gemma ? 8 : 0, &config->num_attention_heads,
                  error) ||
      !read_uint (fields, "num_key_value_heads", 1, OX_CONFIG_MAX_HEADS, gemma ? 4 : config->num_attention_heads,
                  &config->num_key_value_heads, error) ||
      !read_uint (fields, "vocab_size", 1, OX_CONFIG_MAX_VOCAB, gemma ? 262208 : 0, &config->vocab_size, error) ||
      !read_uint (fields, "max_position_embeddings", 1, OX_CONFIG_MAX_POSITIONS, gemma ? 131072 : 2048,
                  &config->max_position_embeddings, error) ||
      !read_positive (fields, "rms_norm_eps", 1, 1e-6, &config->rms_norm_eps, error))
    return FALSE;
  default_head_dim = gemma ? 256 : config->hidden_size / config->num_attention_heads;
  if (!get (fields, "head_dim") && !gemma && config->hidden_size % config->num_attention_heads != 0) {
    g_set_error (
      error, OX_ERROR, OX_ERROR_DAMAGED,
      "%s: “%shidden_size” is %u, a multiple of “num_attention_heads” (%u) was expected, as there is no “head_dim”",
      fields->file, fields->prefix, config->hidden_size, config->num_attention_heads);
    return FALSE;
  }
  if (!read_uint (fields, "head_dim", 1, OX_CONFIG_MAX_HEAD_DIM, default_head_dim, &config->head_dim, error))
    return FALSE;
  return ox_config_check_heads (config, fields->file, "num_attention_heads", "num_key_value_heads", "head_dim", error);
}

/* One set of rotary parameters: @object may be NULL. The type is “rope_type”, in old files “type”. */
static gboolean
read_rope (
  const Fields *parent, yyjson_val *object, const char *name, double default_theta, OxRopeConfig *rope, GError **error)
{
  g_autofree char *prefix = g_strdup_printf ("%s%s.", parent->prefix, name);
  Fields fields = { parent->file, prefix, object };
  yyjson_val *type;
  double partial;
  guint original;

  rope->type = OX_ROPE_DEFAULT;
  rope->theta = default_theta;
  rope->factor = 1;
  rope->partial_rotary_factor = 1;
  if (!object)
    return TRUE;
  if (!yyjson_is_obj (object))
    return damaged (error, parent, name, object, "an object");
  if (!read_positive (&fields, "rope_theta", 1e12, default_theta, &rope->theta, error) ||
      !read_positive (&fields, "partial_rotary_factor", 1, 1, &partial, error))
    return FALSE;
  type = get (&fields, "rope_type") ? get (&fields, "rope_type") : get (&fields, "type");
  if (type && !yyjson_is_str (type))
    return damaged (error, &fields, "rope_type", type, "a string");
  if (yyjson_equals_str (type, "linear"))
    rope->type = OX_ROPE_LINEAR;
  else if (yyjson_equals_str (type, "llama3"))
    rope->type = OX_ROPE_LLAMA3;
  else if ((type && !yyjson_equals_str (type, "default")) || partial != 1) {
    g_autofree char *quoted =
      type ? ox_quote (yyjson_get_str (type), (gssize) yyjson_get_len (type)) : g_strdup ("partial");

    g_set_error (
      error, OX_ERROR, OX_ERROR_UNSUPPORTED,
      "%s: “%srope_type” is “%s” (over %g of the head), this version can run “default”, “linear” and “llama3”",
      fields.file, prefix, quoted, partial);
    return FALSE;
  }
  if (rope->type == OX_ROPE_DEFAULT)
    return TRUE;
  if (!read_positive (&fields, "factor", 1e6, NAN, &rope->factor, error))
    return FALSE;
  if (rope->type == OX_ROPE_LINEAR)
    return TRUE;
  if (!read_positive (&fields, "low_freq_factor", 1e6, NAN, &rope->low_freq_factor, error) ||
      !read_positive (&fields, "high_freq_factor", 1e6, NAN, &rope->high_freq_factor, error) ||
      !read_uint (&fields, "original_max_position_embeddings", 1, OX_CONFIG_MAX_POSITIONS, 0, &original, error))
    return FALSE;
  rope->original_max_position_embeddings = original;
  if (rope->high_freq_factor <= rope->low_freq_factor)
    return damaged (error, &fields, "high_freq_factor", get (&fields, "high_freq_factor"),
                    "a number above “low_freq_factor”");
  return TRUE;
}

static gboolean
read_ropes (const Fields *fields, OxConfig *config, GError **error)
{
  gboolean gemma = config->family == OX_FAMILY_GEMMA3;
  yyjson_val *parameters = get (fields, "rope_parameters");
  double theta, local_theta, partial;

  if (!read_positive (fields, "rope_theta", 1e12, gemma ? 1e6 : 1e4, &theta, error) ||
      !read_positive (fields, "rope_local_base_freq", 1e12, gemma ? 1e4 : theta, &local_theta, error) ||
      !read_positive (fields, "partial_rotary_factor", 1, 1, &partial, error))
    return FALSE;
  if (partial != 1) {
    g_set_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED,
                 "%s: “%spartial_rotary_factor” is %g, this version can run 1 only", fields->file, fields->prefix,
                 partial);
    return FALSE;
  }
  if (parameters && !yyjson_is_obj (parameters))
    return damaged (error, fields, "rope_parameters", parameters, "an object");
  if (yyjson_obj_get (parameters, "full_attention") || yyjson_obj_get (parameters, "sliding_attention")) {
    g_autofree char *prefix = g_strdup_printf ("%srope_parameters.", fields->prefix);
    Fields inner = { fields->file, prefix, parameters };

    return read_rope (&inner, get (&inner, "full_attention"), "full_attention", theta, &config->rope, error) &&
           read_rope (&inner, get (&inner, "sliding_attention"), "sliding_attention", local_theta,
                      &config->rope_sliding, error);
  }
  if (!(parameters ? read_rope (fields, parameters, "rope_parameters", theta, &config->rope, error)
                   : read_rope (fields, get (fields, "rope_scaling"), "rope_scaling", theta, &config->rope, error)))
    return FALSE;
  /* Gemma 3 scales full layers only; elsewhere all layers rotate alike. */
  config->rope_sliding = config->rope;
  if (gemma)
    config->rope_sliding =
      (OxRopeConfig) { .type = OX_ROPE_DEFAULT, .theta = local_theta, .factor = 1, .partial_rotary_factor = 1 };
  return TRUE;
}

/* From a list of names. */
static gboolean
read_layer_types (const Fields *fields, OxConfig *config, yyjson_val *list, GError **error)
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
  yyjson_arr_foreach (list, idx, max, val)
  {
    config->layer_kinds[idx] = yyjson_equals_str (val, "sliding_attention") ? OX_LAYER_SLIDING : OX_LAYER_FULL;
    if (config->layer_kinds[idx] == OX_LAYER_FULL && !yyjson_equals_str (val, "full_attention")) {
      g_autofree char *quoted = yyjson_is_str (val) ? ox_quote (yyjson_get_str (val), (gssize) yyjson_get_len (val))
                                                    : g_strdup (ox_json_describe (val));

      g_set_error (error, OX_ERROR, yyjson_is_str (val) ? OX_ERROR_UNSUPPORTED : OX_ERROR_DAMAGED,
                   "%s: “%slayer_types” has “%s” for layer %" G_GSIZE_FORMAT
                   ", this version can run “full_attention” and “sliding_attention”",
                   fields->file, fields->prefix, quoted, (gsize) idx);
      return FALSE;
    }
  }
  return TRUE;
}

/* Which layers look at a window only. */
static gboolean
read_layers (const Fields *fields, OxConfig *config, GError **error)
{
  yyjson_val *list = get (fields, "layer_types");
  guint first = config->num_hidden_layers; /* layers from here on slide, each @pattern-th excepted */
  guint pattern = G_MAXUINT;
  gboolean any = FALSE;
  gboolean use_sliding;

  config->layer_kinds = g_new0 (OxLayerKind, config->num_hidden_layers);
  if (list) {
    if (!read_layer_types (fields, config, list, error))
      return FALSE;
  } else if (config->family == OX_FAMILY_GEMMA3) {
    const char *name = get (fields, "sliding_window_pattern") ? "sliding_window_pattern" : "_sliding_window_pattern";

    first = 0;
    if (!read_uint (fields, name, 1, OX_CONFIG_MAX_LAYERS, 6, &pattern, error))
      return FALSE;
  } else if (strcmp (config->architecture, "mistral") == 0) {
    if (get (fields, "sliding_window"))
      first = 0;
  } else if (g_str_has_prefix (config->architecture, "qwen")) {
    if (!read_bool (fields, "use_sliding_window", FALSE, &use_sliding, error))
      return FALSE;
    if (use_sliding && get (fields, "sliding_window") &&
        !read_uint (fields, "max_window_layers", 0, G_MAXUINT, 28, &first, error))
      return FALSE;
  }
  for (guint i = 0; i < config->num_hidden_layers; i++) {
    if (!list)
      config->layer_kinds[i] = i >= first && (i + 1) % pattern != 0 ? OX_LAYER_SLIDING : OX_LAYER_FULL;
    any = any || config->layer_kinds[i] == OX_LAYER_SLIDING;
  }
  if (any)
    return read_uint (fields, "sliding_window", 1, OX_CONFIG_MAX_POSITIONS,
                      config->family == OX_FAMILY_GEMMA3 ? 4096 : 0, &config->sliding_window, error);
  return TRUE;
}

/* “eos_token_id”: an id or a list of ids. */
static gboolean
read_eos (const Fields *fields, OxConfig *config, GError **error)
{
  yyjson_val *val = get (fields, "eos_token_id");
  gsize n = yyjson_is_arr (val) ? yyjson_arr_size (val) : val ? 1 : 0;

  if (n > 1000)
    return damaged (error, fields, "eos_token_id", val, "a list of at most 1000 ids");
  for (gsize i = 0; i < n; i++) {
    yyjson_val *id = yyjson_is_arr (val) ? yyjson_arr_get (val, i) : val;

    if (!yyjson_is_uint (id))
      return damaged (error, fields, "eos_token_id", id, "a token id or a list of them");
    if (!ox_config_check_id (config, yyjson_get_uint (id), fields->file, "eos_token_id", error))
      return FALSE;
    ox_config_add_eos (config, (guint32) yyjson_get_uint (id));
  }
  return TRUE;
}

static gboolean
read_bos (const Fields *fields, OxConfig *config, GError **error)
{
  yyjson_val *val = get (fields, "bos_token_id");

  if (!val)
    return TRUE;
  if (!yyjson_is_uint (val))
    return damaged (error, fields, "bos_token_id", val, "a token id");
  config->bos_token_id = (gint64) yyjson_get_uint (val);
  return ox_config_check_id (config, yyjson_get_uint (val), fields->file, "bos_token_id", error);
}

static const Kind *
find_kind (const Fields *root, GError **error)
{
  yyjson_val *val = get (root, "model_type");

  if (!yyjson_is_str (val)) {
    damaged (error, root, "model_type", val, "a string");
    return NULL;
  }
  for (guint i = 0; i < G_N_ELEMENTS (kinds); i++) {
    if (yyjson_equals_str (val, kinds[i].model_type))
      return &kinds[i];
  }
  ox_config_set_unknown_kind (error, root->file, yyjson_get_str (val));
  return NULL;
}

/* Weights quantised by other programs have layouts of their own. */
static gboolean
check_quantization (const Fields *root, GError **error)
{
  yyjson_val *val = get (root, "quantization_config");
  yyjson_val *method = yyjson_obj_get (val, "quant_method");
  g_autofree char *quoted = NULL;

  if (!val)
    return TRUE;
  quoted = yyjson_is_str (method) ? ox_quote (yyjson_get_str (method), (gssize) yyjson_get_len (method))
                                  : g_strdup ("unknown");
  g_set_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED,
               "%s: the weights are quantised by “%s”, which this version cannot read; use the original or a GGUF file",
               root->file, quoted);
  return FALSE;
}

/* The last part of “_name_or_path”, which may be a repository or a folder on its maker's disk. */
static char *
read_name (const Fields *root)
{
  const char *text = yyjson_get_str (get (root, "_name_or_path"));
  g_autofree char *base = NULL;

  if (!text || *text == '\0')
    return NULL;
  base = g_path_get_basename (text);
  return *base == '.' || *base == '/' ? NULL : ox_quote (base, -1);
}

OxConfig *
ox_config_from_json (OxJson *json, const char *file_name, GError **error)
{
  g_autoptr (OxConfig) config = ox_config_new ();
  Fields root = { file_name, "", ox_json_get_root (json) };
  Fields text = root;
  const Kind *kind;
  gboolean tie;

  if (!yyjson_is_obj (root.object)) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: is %s, an object was expected", file_name,
                 ox_json_describe (root.object));
    return NULL;
  }
  kind = find_kind (&root, error);
  if (!kind || !check_quantization (&root, error))
    return NULL;
  if (get (&root, "text_config")) {
    text.prefix = "text_config.";
    text.object = get (&root, "text_config");
    if (!yyjson_is_obj (text.object)) {
      damaged (error, &root, "text_config", text.object, "an object");
      return NULL;
    }
  }
  config->family = kind->family;
  config->architecture = g_strdup (kind->architecture);
  config->name = read_name (&root);
  config->attention_bias = kind->attention_bias;
  config->qk_norm = kind->qk_norm;
  config->norm_plus_one = kind->family == OX_FAMILY_GEMMA3;
  if (!check_variants (&text, kind, error) || !read_sizes (&text, config, error) ||
      !read_ropes (&text, config, error) || !read_layers (&text, config, error) ||
      !read_bool (&root, "tie_word_embeddings", kind->family == OX_FAMILY_GEMMA3, &tie, error) ||
      !read_bool (&text, "tie_word_embeddings", tie, &config->tie_word_embeddings, error))
    return NULL;
  config->query_pre_attn_scalar = config->head_dim;
  if (kind->family == OX_FAMILY_GEMMA3 &&
      !read_positive (&text, "query_pre_attn_scalar", 1e6, 256, &config->query_pre_attn_scalar, error))
    return NULL;
  if (!read_bos (&text, config, error) || (config->bos_token_id < 0 && !read_bos (&root, config, error)) ||
      !read_eos (&text, config, error) || !read_eos (&root, config, error))
    return NULL;
  return g_steal_pointer (&config);
}

gboolean
ox_config_add_generation (OxConfig *config, OxJson *json, const char *file_name, GError **error)
{
  Fields root = { file_name, "", ox_json_get_root (json) };

  if (!yyjson_is_obj (root.object)) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: is %s, an object was expected", file_name,
                 ox_json_describe (root.object));
    return FALSE;
  }
  return read_eos (&root, config, error);
}
