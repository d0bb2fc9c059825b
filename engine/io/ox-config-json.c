/* config.json of Hugging Face's transformers, in its old and new spellings.
 *
 * Defaults for absent fields are those of the configuration classes of transformers 5; Gemma's and Qwen 3.5's files lean on them,
 * the other families' files name everything that has no obvious value.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "io/ox-config-fields.h"

#include <math.h>
#include <string.h>

#include "io/ox-quote.h"

typedef struct {
  const char *model_type;
  const char *architecture;
  OxFamily family;
  gboolean attention_bias; /* always on q, k and v, never on the output */
  gboolean qk_norm;
  gboolean unified; /* Gemma 4 without towers, whose defaults differ */
} Kind;

static const Kind kinds[] = {
  { "llama", "llama", OX_FAMILY_LLAMA, FALSE, FALSE, FALSE },
  { "mistral", "mistral", OX_FAMILY_LLAMA, FALSE, FALSE, FALSE },
  { "qwen2", "qwen2", OX_FAMILY_LLAMA, TRUE, FALSE, FALSE },
  { "qwen3", "qwen3", OX_FAMILY_LLAMA, FALSE, TRUE, FALSE },
  { "gemma3_text", "gemma3", OX_FAMILY_GEMMA3, FALSE, TRUE, FALSE },
  { "gemma3", "gemma3", OX_FAMILY_GEMMA3, FALSE, TRUE, FALSE },
  { "gemma4_text", "gemma4", OX_FAMILY_GEMMA4, FALSE, TRUE, FALSE },
  { "gemma4", "gemma4", OX_FAMILY_GEMMA4, FALSE, TRUE, FALSE },
  { "gemma4_unified_text", "gemma4", OX_FAMILY_GEMMA4, FALSE, TRUE, TRUE },
  { "gemma4_unified", "gemma4", OX_FAMILY_GEMMA4, FALSE, TRUE, TRUE },
  { "gemma4_assistant", "gemma4-assistant", OX_FAMILY_GEMMA4_ASSISTANT, FALSE, TRUE, FALSE },
  { "gemma4_unified_assistant", "gemma4-assistant", OX_FAMILY_GEMMA4_ASSISTANT, FALSE, TRUE, TRUE },
  { "qwen3_5_text", "qwen35", OX_FAMILY_QWEN35, FALSE, TRUE, FALSE },
  { "qwen3_5", "qwen35", OX_FAMILY_QWEN35, FALSE, TRUE, FALSE },
};

#define ROPES (OX_ROPE_BIT (OX_ROPE_DEFAULT) | OX_ROPE_BIT (OX_ROPE_LINEAR) | OX_ROPE_BIT (OX_ROPE_LLAMA3))

static const OxConfigNames names = {
  .vocab = "vocab_size",
  .n_layers = "num_hidden_layers",
  .layers = "layer_types",
  .heads = "num_attention_heads",
  .kv_heads = "num_key_value_heads",
  .head_dim = "head_dim",
  .global_kv_heads = "num_global_key_value_heads",
  .global_head_dim = "global_head_dim",
  .rotated = "rope_parameters",
  .rotated_sliding = "rope_parameters",
  .shared_layers = "num_kv_shared_layers",
  .experts = "num_experts",
  .top_k_experts = "top_k_experts",
  .expert_width = "moe_intermediate_size",
  .ple_size = "hidden_size_per_layer_input",
  .ple_vocab = "vocab_size_per_layer_input",
  .linear_key_heads = "linear_num_key_heads",
  .linear_value_heads = "linear_num_value_heads",
  .linear_key_dim = "linear_key_head_dim",
  .linear_value_dim = "linear_value_head_dim",
};

/* Fields whose other values would change what the network computes, in ways that it has no code for. */
static gboolean
check_variants (const OxFields *fields, const Kind *kind, GError **error)
{
  static const char *const caps[] = { "attn_logit_softcapping", "final_logit_softcapping" };
  gboolean gemma = kind->family == OX_FAMILY_GEMMA3;

  /* Qwen 2 has its biases whatever the field says. */
  if (!kind->attention_bias && !ox_fields_check_bool (fields, "attention_bias", FALSE, error))
    return FALSE;
  for (guint i = 0; i < G_N_ELEMENTS (caps) && gemma; i++)
    if (ox_fields_get (fields, caps[i]))
      return ox_fields_unsupported (error, fields, caps[i], "set");
  return ox_fields_check_bool (fields, "mlp_bias", FALSE, error) &&
         ox_fields_check_bool (fields, "use_bidirectional_attention", FALSE, error) &&
         ox_fields_check_string (fields, gemma ? "hidden_activation" : "hidden_act",
                                 gemma ? "gelu_pytorch_tanh" : "silu", error);
}

static gboolean
read_sizes (const OxFields *fields, OxConfig *config, GError **error)
{
  gboolean gemma = config->family == OX_FAMILY_GEMMA3;
  guint default_head_dim;

  if (!ox_fields_read_uint (fields, "hidden_size", 1, OX_CONFIG_MAX_WIDTH, gemma ? 2304 : 0, &config->hidden_size,
                            error) ||
      !ox_fields_read_uint (fields, "intermediate_size", 1, OX_CONFIG_MAX_WIDTH, gemma ? 9216 : 0,
                            &config->intermediate_size, error) ||
      !ox_fields_read_uint (fields, "num_hidden_layers", 1, OX_CONFIG_MAX_LAYERS, gemma ? 26 : 0,
                            &config->num_hidden_layers, error) ||
      !ox_fields_read_uint (fields, "num_attention_heads", 1, OX_CONFIG_MAX_HEADS, gemma ? 8 : 0,
                            &config->num_attention_heads, error) ||
      !ox_fields_read_uint (fields, "num_key_value_heads", 1, OX_CONFIG_MAX_HEADS,
                            gemma ? 4 : config->num_attention_heads, &config->num_key_value_heads, error) ||
      !ox_fields_read_uint (fields, "vocab_size", 1, OX_CONFIG_MAX_VOCAB, gemma ? 262208 : 0, &config->vocab_size,
                            error) ||
      !ox_fields_read_uint (fields, "max_position_embeddings", 1, OX_CONFIG_MAX_POSITIONS, gemma ? 131072 : 2048,
                            &config->max_position_embeddings, error) ||
      !ox_fields_read_positive (fields, "rms_norm_eps", 1, 1e-6, &config->rms_norm_eps, error))
    return FALSE;
  default_head_dim = gemma ? 256 : config->hidden_size / config->num_attention_heads;
  if (!ox_fields_get (fields, "head_dim") && !gemma && config->hidden_size % config->num_attention_heads != 0) {
    g_set_error (
      error, OX_ERROR, OX_ERROR_DAMAGED,
      "%s: “%shidden_size” is %u, a multiple of “num_attention_heads” (%u) was expected, as there is no “head_dim”",
      fields->file, fields->prefix, config->hidden_size, config->num_attention_heads);
    return FALSE;
  }
  return ox_fields_read_uint (fields, "head_dim", 1, OX_CONFIG_MAX_HEAD_DIM, default_head_dim, &config->head_dim,
                              error);
}

/* The networks of these families rotate whole heads. */
static gboolean
check_whole (const OxFields *fields, const OxRopeConfig *rope, GError **error)
{
  if (rope->partial_rotary_factor == 1)
    return TRUE;
  g_set_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED,
               "%s: “%srope_parameters” has a “partial_rotary_factor” of %g, this version can run 1 only here",
               fields->file, fields->prefix, rope->partial_rotary_factor);
  return FALSE;
}

static gboolean
read_ropes (const OxFields *fields, OxConfig *config, GError **error)
{
  gboolean gemma = config->family == OX_FAMILY_GEMMA3;
  yyjson_val *parameters = ox_fields_get (fields, "rope_parameters");
  OxRopeConfig rope = { .type = OX_ROPE_DEFAULT, .factor = 1 };
  OxRopeConfig local = { .type = OX_ROPE_DEFAULT, .factor = 1, .partial_rotary_factor = 1 };

  if (!ox_fields_read_positive (fields, "rope_theta", 1e12, gemma ? 1e6 : 1e4, &rope.theta, error) ||
      !ox_fields_read_positive (fields, "rope_local_base_freq", 1e12, gemma ? 1e4 : rope.theta, &local.theta, error) ||
      !ox_fields_read_positive (fields, "partial_rotary_factor", 1, 1, &rope.partial_rotary_factor, error))
    return FALSE;
  if (parameters && !yyjson_is_obj (parameters))
    return ox_fields_damaged (error, fields, "rope_parameters", parameters, "an object");
  if (yyjson_obj_get (parameters, "full_attention") || yyjson_obj_get (parameters, "sliding_attention")) {
    g_autofree char *prefix = g_strdup_printf ("%srope_parameters.", fields->prefix);
    OxFields inner = { fields->file, prefix, parameters };

    return ox_fields_read_rope (&inner, ox_fields_get (&inner, "full_attention"), "full_attention", &rope, ROPES,
                                &config->rope, error) &&
           ox_fields_read_rope (&inner, ox_fields_get (&inner, "sliding_attention"), "sliding_attention", &local, ROPES,
                                &config->rope_sliding, error) &&
           check_whole (fields, &config->rope, error) && check_whole (fields, &config->rope_sliding, error);
  }
  if (!ox_fields_read_rope (fields, parameters ? parameters : ox_fields_get (fields, "rope_scaling"),
                            parameters ? "rope_parameters" : "rope_scaling", &rope, ROPES, &config->rope, error))
    return FALSE;
  /* Gemma 3 scales full layers only; elsewhere all layers rotate alike. */
  config->rope_sliding = gemma ? local : config->rope;
  return check_whole (fields, &config->rope, error);
}

/* Which layers look at a window only. */
static gboolean
read_layers (const OxFields *fields, OxConfig *config, GError **error)
{
  yyjson_val *list = ox_fields_get (fields, "layer_types");
  guint first = config->num_hidden_layers; /* layers from here on slide, each @pattern-th excepted */
  guint pattern = G_MAXUINT;
  gboolean any = FALSE;
  gboolean use_sliding;

  config->layer_kinds = g_new0 (OxLayerKind, config->num_hidden_layers);
  if (list) {
    if (!ox_fields_read_layer_types (fields, list, "sliding_attention", OX_LAYER_SLIDING, config, error))
      return FALSE;
  } else if (config->family == OX_FAMILY_GEMMA3) {
    const char *name =
      ox_fields_get (fields, "sliding_window_pattern") ? "sliding_window_pattern" : "_sliding_window_pattern";

    first = 0;
    if (!ox_fields_read_uint (fields, name, 1, OX_CONFIG_MAX_LAYERS, 6, &pattern, error))
      return FALSE;
  } else if (strcmp (config->architecture, "mistral") == 0) {
    if (ox_fields_get (fields, "sliding_window"))
      first = 0;
  } else if (g_str_has_prefix (config->architecture, "qwen")) {
    if (!ox_fields_read_bool (fields, "use_sliding_window", FALSE, &use_sliding, error))
      return FALSE;
    if (use_sliding && ox_fields_get (fields, "sliding_window") &&
        !ox_fields_read_uint (fields, "max_window_layers", 0, G_MAXUINT, 28, &first, error))
      return FALSE;
  }
  for (guint i = 0; i < config->num_hidden_layers; i++) {
    if (!list)
      config->layer_kinds[i] = i >= first && (i + 1) % pattern != 0 ? OX_LAYER_SLIDING : OX_LAYER_FULL;
    any = any || config->layer_kinds[i] == OX_LAYER_SLIDING;
  }
  if (any)
    return ox_fields_read_uint (fields, "sliding_window", 1, OX_CONFIG_MAX_POSITIONS,
                                config->family == OX_FAMILY_GEMMA3 ? 4096 : 0, &config->sliding_window, error);
  return TRUE;
}

/* An id or a list of ids. @suppress: ids never to be sampled; else ids that end a turn. */
static gboolean
read_ids (const OxFields *fields, const char *name, gboolean suppress, OxConfig *config, GError **error)
{
  yyjson_val *val = ox_fields_get (fields, name);
  gsize n = yyjson_is_arr (val) ? yyjson_arr_size (val) : val ? 1 : 0;

  if (n > 1000)
    return ox_fields_damaged (error, fields, name, val, "a list of at most 1000 ids");
  for (gsize i = 0; i < n; i++) {
    yyjson_val *item = yyjson_is_arr (val) ? yyjson_arr_get (val, i) : val;
    guint64 id = yyjson_get_uint (item);

    if (!yyjson_is_uint (item))
      return ox_fields_damaged (error, fields, name, item, "a token id or a list of them");
    if (suppress)
      ox_config_add_suppressed (config, id);
    else if (id < config->vocab_size)
      ox_config_add_eos (config, (guint32) id);
    else if (!ox_config_has_distant_ids (config) && !ox_config_check_id (config, id, fields->file, name, error))
      return FALSE;
  }
  return TRUE;
}

static gboolean
read_bos (const OxFields *fields, OxConfig *config, GError **error)
{
  yyjson_val *val = ox_fields_get (fields, "bos_token_id");

  if (!val)
    return TRUE;
  if (!yyjson_is_uint (val))
    return ox_fields_damaged (error, fields, "bos_token_id", val, "a token id");
  config->bos_token_id = (gint64) yyjson_get_uint (val);
  return ox_config_check_id (config, yyjson_get_uint (val), fields->file, "bos_token_id", error);
}

static const Kind *
find_kind (const OxFields *fields, GError **error)
{
  yyjson_val *val = ox_fields_get (fields, "model_type");

  if (!yyjson_is_str (val)) {
    ox_fields_damaged (error, fields, "model_type", val, "a string");
    return NULL;
  }
  for (guint i = 0; i < G_N_ELEMENTS (kinds); i++) {
    if (yyjson_equals_str (val, kinds[i].model_type))
      return &kinds[i];
  }
  ox_config_set_unknown_kind (error, fields->file, yyjson_get_str (val));
  return NULL;
}

/* The text's part, which is the whole where the configuration is flat; its own kind must belong to the model's. */
static gboolean
find_text (const OxFields *root, const Kind *kind, OxFields *text, GError **error)
{
  yyjson_val *val = ox_fields_get (root, "text_config");
  const Kind *inner;

  *text = *root;
  if (!val)
    return TRUE;
  if (!yyjson_is_obj (val))
    return ox_fields_damaged (error, root, "text_config", val, "an object");
  text->prefix = "text_config.";
  text->object = val;
  if (!ox_fields_get (text, "model_type"))
    return TRUE;
  inner = find_kind (text, error);
  if (!inner)
    return FALSE;
  if (inner->family == kind->family ||
      (inner->family == OX_FAMILY_GEMMA4 && kind->family == OX_FAMILY_GEMMA4_ASSISTANT))
    return TRUE;
  g_set_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED,
               "%s: “text_config.model_type” is “%s” in a model of kind “%s”, which this version cannot run",
               root->file, inner->model_type, kind->model_type);
  return FALSE;
}

/* Weights quantised by other programs have layouts of their own. */
static gboolean
check_quantization (const OxFields *root, GError **error)
{
  yyjson_val *val = ox_fields_get (root, "quantization_config");
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
read_name (const OxFields *root)
{
  const char *text = yyjson_get_str (ox_fields_get (root, "_name_or_path"));
  g_autofree char *base = NULL;

  if (!text || *text == '\0')
    return NULL;
  base = g_path_get_basename (text);
  return *base == '.' || *base == '/' ? NULL : ox_quote (base, -1);
}

static gboolean
read_family (const OxFields *root, const OxFields *text, const Kind *kind, OxConfig *config, GError **error)
{
  switch (kind->family) {
  case OX_FAMILY_GEMMA4:
  case OX_FAMILY_GEMMA4_ASSISTANT:
    return ox_config_read_gemma4 (root, text, kind->unified, config, error);
  case OX_FAMILY_QWEN35:
    return ox_config_read_qwen35 (text, config, error);
  case OX_FAMILY_LLAMA:
  case OX_FAMILY_GEMMA3:
  default:
    break;
  }
  if (!check_variants (text, kind, error) || !read_sizes (text, config, error) || !read_ropes (text, config, error) ||
      !read_layers (text, config, error))
    return FALSE;
  config->norm_plus_one = kind->family == OX_FAMILY_GEMMA3;
  config->query_pre_attn_scalar = config->head_dim;
  return kind->family != OX_FAMILY_GEMMA3 ||
         ox_fields_read_positive (text, "query_pre_attn_scalar", 1e6, 256, &config->query_pre_attn_scalar, error);
}

static gboolean
tied_by_default (const Kind *kind)
{
  return kind->family != OX_FAMILY_LLAMA && kind->family != OX_FAMILY_QWEN35;
}

OxConfig *
ox_config_from_json (OxJson *json, const char *file_name, GError **error)
{
  g_autoptr (OxConfig) config = ox_config_new ();
  OxFields root = { file_name, "", ox_json_get_root (json) };
  OxFields text = root;
  OxConfigNames checked = names;
  const Kind *kind;
  gboolean tie;

  if (!yyjson_is_obj (root.object)) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: is %s, an object was expected", file_name,
                 ox_json_describe (root.object));
    return NULL;
  }
  kind = find_kind (&root, error);
  if (!kind || !find_text (&root, kind, &text, error) || !check_quantization (&root, error))
    return NULL;
  config->family = kind->family;
  config->architecture = g_strdup (kind->architecture);
  config->name = read_name (&root);
  config->attention_bias = kind->attention_bias;
  config->qk_norm = kind->qk_norm;
  if (!read_family (&root, &text, kind, config, error))
    return NULL;
  checked.prefix = text.prefix;
  if (!ox_config_check (config, file_name, &checked, error) ||
      !ox_fields_read_bool (&root, "tie_word_embeddings", tied_by_default (kind), &tie, error) ||
      !ox_fields_read_bool (&text, "tie_word_embeddings", tie, &config->tie_word_embeddings, error))
    return NULL;
  if (!read_bos (&text, config, error) || (config->bos_token_id < 0 && !read_bos (&root, config, error)) ||
      !read_ids (&text, "eos_token_id", FALSE, config, error) ||
      !read_ids (&root, "eos_token_id", FALSE, config, error))
    return NULL;
  ox_config_add_family_eos (config);
  return g_steal_pointer (&config);
}

gboolean
ox_config_add_generation (OxConfig *config, OxJson *json, const char *file_name, GError **error)
{
  OxFields root = { file_name, "", ox_json_get_root (json) };

  if (!yyjson_is_obj (root.object)) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: is %s, an object was expected", file_name,
                 ox_json_describe (root.object));
    return FALSE;
  }
  return read_ids (&root, "eos_token_id", FALSE, config, error) &&
         read_ids (&root, "suppress_tokens", TRUE, config, error);
}
