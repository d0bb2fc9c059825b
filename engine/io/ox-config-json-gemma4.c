/* config.json of Gemma 4 and of its drafters.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "io/ox-config-fields.h"

#include <math.h>

#include "io/ox-quote.h"

#define ROPES (OX_ROPE_BIT (OX_ROPE_DEFAULT) | OX_ROPE_BIT (OX_ROPE_LINEAR) | OX_ROPE_BIT (OX_ROPE_PROPORTIONAL))

static gboolean
check_variants (const OxFields *text, GError **error)
{
  yyjson_val *direction = ox_fields_get (text, "use_bidirectional_attention");

  /* Between "vision" and none there is no difference for text. */
  if (direction && !yyjson_equals_str (direction, "vision") &&
      !ox_fields_check_string (text, "use_bidirectional_attention", "vision", error))
    return FALSE;
  return ox_fields_check_string (text, "hidden_activation", "gelu_pytorch_tanh", error) &&
         ox_fields_check_bool (text, "attention_bias", FALSE, error);
}

static gboolean
read_sizes (const OxFields *text, gboolean unified, OxConfig *config, GError **error)
{
  config->final_logit_softcapping = 0;
  return ox_fields_read_uint (text, "hidden_size", 1, OX_CONFIG_MAX_WIDTH, 2304, &config->hidden_size, error) &&
         ox_fields_read_uint (text, "intermediate_size", 1, OX_CONFIG_MAX_WIDTH, 9216, &config->intermediate_size,
                              error) &&
         ox_fields_read_uint (text, "num_hidden_layers", 1, OX_CONFIG_MAX_LAYERS, 30, &config->num_hidden_layers,
                              error) &&
         ox_fields_read_uint (text, "num_attention_heads", 1, OX_CONFIG_MAX_HEADS, 8, &config->num_attention_heads,
                              error) &&
         ox_fields_read_uint (text, "num_key_value_heads", 1, OX_CONFIG_MAX_HEADS, 4, &config->num_key_value_heads,
                              error) &&
         ox_fields_read_uint (text, "head_dim", 1, OX_CONFIG_MAX_HEAD_DIM, 256, &config->head_dim, error) &&
         ox_fields_read_uint (text, "vocab_size", 1, OX_CONFIG_MAX_VOCAB, 262144, &config->vocab_size, error) &&
         ox_fields_read_uint (text, "max_position_embeddings", 1, OX_CONFIG_MAX_POSITIONS, unified ? 262144 : 131072,
                              &config->max_position_embeddings, error) &&
         ox_fields_read_positive (text, "rms_norm_eps", 1, 1e-6, &config->rms_norm_eps, error) &&
         (!ox_fields_get (text, "final_logit_softcapping") ||
          ox_fields_read_positive (text, "final_logit_softcapping", 1e6, NAN, &config->final_logit_softcapping, error));
}

/* Five sliding layers to a full one unless they are listed; the last one is full whatever the list says. */
static gboolean
read_layers (const OxFields *text, gboolean unified, OxConfig *config, GError **error)
{
  yyjson_val *list = ox_fields_get (text, "layer_types");
  guint n = config->num_hidden_layers;
  gboolean any = FALSE;

  config->layer_kinds = g_new0 (OxLayerKind, n);
  if (list && !ox_fields_read_layer_types (text, list, "sliding_attention", OX_LAYER_SLIDING, config, error))
    return FALSE;
  for (guint i = 0; i < n; i++) {
    if (!list)
      config->layer_kinds[i] = (i + 1) % 6 != 0 ? OX_LAYER_SLIDING : OX_LAYER_FULL;
    if (i == n - 1)
      config->layer_kinds[i] = OX_LAYER_FULL;
    any = any || config->layer_kinds[i] == OX_LAYER_SLIDING;
  }
  return !any || ox_fields_read_uint (text, "sliding_window", 1, OX_CONFIG_MAX_POSITIONS, unified ? 1024 : 512,
                                      &config->sliding_window, error);
}

/* What “per_layer_config” says of one layer: only heads may differ, and only between the two kinds of layers. */
static gboolean
read_override (
  const OxFields *all, const char *layer, yyjson_val *object, guint *head_dim, guint *kv_heads, GError **error)
{
  g_autofree char *prefix = g_strdup_printf ("%s%s.", all->prefix, layer);
  OxFields fields = { all->file, prefix, object };
  yyjson_val *key;
  size_t idx, max;
  yyjson_val *val;

  if (object == NULL)
    return TRUE;
  if (!yyjson_is_obj (object))
    return ox_fields_damaged (error, all, layer, object, "an object");
  ox_json_foreach_member (object, idx, max, key, val) {
    if (!yyjson_equals_str (key, "head_dim") && !yyjson_equals_str (key, "num_key_value_heads")) {
      g_autofree char *quoted = ox_quote (yyjson_get_str (key), (gssize) yyjson_get_len (key));

      return ox_fields_unsupported (error, &fields, quoted, "set for a single layer");
    }
  }
  return ox_fields_read_uint (&fields, "head_dim", 1, OX_CONFIG_MAX_HEAD_DIM, *head_dim, head_dim, error) &&
         ox_fields_read_uint (&fields, "num_key_value_heads", 1, OX_CONFIG_MAX_HEADS, *kv_heads, kv_heads, error);
}

/* Newer files list what differs from the usual by layer, instead of “global_head_dim” and “num_global_key_value_heads”. */
static gboolean
read_per_layer (const OxFields *text, yyjson_val *object, OxConfig *config, GError **error)
{
  g_autofree char *prefix = g_strconcat (text->prefix, "per_layer_config.", NULL);
  OxFields all = { text->file, prefix, object };
  guint first_full = G_MAXUINT;

  if (!yyjson_is_obj (object))
    return ox_fields_damaged (error, text, "per_layer_config", object, "an object");
  for (guint i = 0; i < config->num_hidden_layers; i++) {
    g_autofree char *name = g_strdup_printf ("%u", i);
    yyjson_val *val = ox_fields_get (&all, name);
    gboolean full = config->layer_kinds[i] == OX_LAYER_FULL;
    guint head_dim = config->head_dim;
    guint kv_heads = config->num_key_value_heads;

    if (!read_override (&all, name, val, &head_dim, &kv_heads, error))
      return FALSE;
    if (full && first_full == G_MAXUINT) {
      config->global_head_dim = head_dim;
      config->num_global_key_value_heads = kv_heads;
      first_full = i;
    }
    if (head_dim != (full ? config->global_head_dim : config->head_dim) ||
        kv_heads != (full ? config->num_global_key_value_heads : config->num_key_value_heads)) {
      g_autofree char *other =
        full ? g_strdup_printf ("“%s%u”", prefix, first_full) : g_strdup ("the others of its kind");

      g_set_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED,
                   "%s: “%s%u” has a “num_key_value_heads” of %u and a “head_dim” of %u, which differs from %s (by "
                   "“layer_types” and “num_hidden_layers”); this version cannot run that",
                   text->file, prefix, i, kv_heads, head_dim, other);
      return FALSE;
    }
  }
  return TRUE;
}

static gboolean
read_global_heads (const OxFields *text, OxConfig *config, GError **error)
{
  yyjson_val *per_layer = ox_fields_get (text, "per_layer_config");
  guint kv_heads;

  if (!ox_fields_read_bool (text, "attention_k_eq_v", FALSE, &config->attention_k_eq_v, error))
    return FALSE;
  if (per_layer)
    return read_per_layer (text, per_layer, config, error);
  if (!ox_fields_read_uint (text, "global_head_dim", 1, OX_CONFIG_MAX_HEAD_DIM, 512, &config->global_head_dim, error) ||
      !ox_fields_read_uint (text, "num_global_key_value_heads", 1, OX_CONFIG_MAX_HEADS, config->num_key_value_heads,
                            &kv_heads, error))
    return FALSE;
  config->num_global_key_value_heads = config->attention_k_eq_v ? kv_heads : config->num_key_value_heads;
  return TRUE;
}

/* The network rotates whole heads, or a part as the proportional type has it. */
static gboolean
check_part (const OxFields *ropes, const char *kind, const OxRopeConfig *rope, GError **error)
{
  if (rope->type == OX_ROPE_PROPORTIONAL || rope->partial_rotary_factor == 1)
    return TRUE;
  g_set_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED,
               "%s: “%s%s.partial_rotary_factor” is %g, which this version can run only where “rope_type” is "
               "“proportional”",
               ropes->file, ropes->prefix, kind, rope->partial_rotary_factor);
  return FALSE;
}

static gboolean
read_ropes (const OxFields *text, OxConfig *config, GError **error)
{
  static const OxRopeConfig full = {
    .type = OX_ROPE_PROPORTIONAL, .theta = 1e6, .factor = 1, .partial_rotary_factor = 0.25
  };
  static const OxRopeConfig sliding = {
    .type = OX_ROPE_DEFAULT, .theta = 1e4, .factor = 1, .partial_rotary_factor = 1
  };
  /* What an object that is there leaves out has the general defaults, not the family's. */
  static const OxRopeConfig bare_full = {
    .type = OX_ROPE_DEFAULT, .theta = 1e6, .factor = 1, .partial_rotary_factor = 1
  };
  yyjson_val *parameters = ox_fields_get (text, "rope_parameters");
  g_autofree char *prefix = g_strconcat (text->prefix, "rope_parameters.", NULL);
  OxFields inner = { text->file, prefix, parameters };
  yyjson_val *full_val, *sliding_val;

  if (parameters && !yyjson_is_obj (parameters))
    return ox_fields_damaged (error, text, "rope_parameters", parameters, "an object");
  full_val = ox_fields_get (&inner, "full_attention");
  sliding_val = ox_fields_get (&inner, "sliding_attention");
  if (parameters && !full_val && !sliding_val)
    return ox_fields_damaged (error, &inner, "full_attention", NULL, "an object");
  return ox_fields_read_rope (&inner, full_val, "full_attention", full_val ? &bare_full : &full, ROPES, &config->rope,
                              error) &&
         ox_fields_read_rope (&inner, sliding_val, "sliding_attention", &sliding, ROPES, &config->rope_sliding,
                              error) &&
         check_part (&inner, "full_attention", &config->rope, error) &&
         check_part (&inner, "sliding_attention", &config->rope_sliding, error);
}

/* Shared layers and what else only some sizes have. */
static gboolean
read_options (const OxFields *text, gboolean has_ple, OxConfig *config, GError **error)
{
  gboolean moe;

  if (!ox_fields_read_count (text, "num_kv_shared_layers", OX_CONFIG_MAX_LAYERS, 0, &config->num_kv_shared_layers,
                             error) ||
      !ox_fields_read_bool (text, "use_double_wide_mlp", FALSE, &config->use_double_wide_mlp, error) ||
      !ox_fields_read_bool (text, "enable_moe_block", FALSE, &moe, error) ||
      !ox_fields_read_count (text, "hidden_size_per_layer_input", OX_CONFIG_MAX_WIDTH, has_ple ? 256 : 0,
                             &config->hidden_size_per_layer_input, error))
    return FALSE;
  if (config->hidden_size_per_layer_input > 0 &&
      !ox_fields_read_uint (text, "vocab_size_per_layer_input", 1, OX_CONFIG_MAX_VOCAB, 262144,
                            &config->vocab_size_per_layer_input, error))
    return FALSE;
  return !moe ||
         (ox_fields_read_uint (text, "num_experts", 1, OX_CONFIG_MAX_EXPERTS, 0, &config->num_experts, error) &&
          ox_fields_read_uint (text, "top_k_experts", 1, OX_CONFIG_MAX_EXPERTS, 0, &config->top_k_experts, error) &&
          ox_fields_read_uint (text, "moe_intermediate_size", 1, OX_CONFIG_MAX_WIDTH, 0, &config->moe_intermediate_size,
                               error));
}

/* Every layer of a drafter reads its target's keys and values. */
static gboolean
read_assistant (const OxFields *root, const OxFields *text, OxConfig *config, GError **error)
{
  if (config->num_kv_shared_layers == 0)
    config->num_kv_shared_layers = config->num_hidden_layers;
  if (config->num_kv_shared_layers != config->num_hidden_layers) {
    g_autofree char *expected =
      g_strdup_printf ("“num_hidden_layers” (%u), as in every drafter,", config->num_hidden_layers);

    return ox_fields_damaged (error, text, "num_kv_shared_layers", ox_fields_get (text, "num_kv_shared_layers"),
                              expected);
  }
  if (config->hidden_size_per_layer_input > 0)
    return ox_fields_damaged (error, text, "hidden_size_per_layer_input",
                              ox_fields_get (text, "hidden_size_per_layer_input"), "0, as in every drafter,");
  if (config->use_double_wide_mlp)
    return ox_fields_unsupported (error, text, "use_double_wide_mlp", "true in a drafter");
  if (config->num_experts > 0)
    return ox_fields_unsupported (error, text, "enable_moe_block", "true in a drafter");
  if (!ox_fields_read_uint (root, "backbone_hidden_size", 1, OX_CONFIG_MAX_WIDTH, 1536, &config->backbone_hidden_size,
                            error) ||
      !ox_fields_read_bool (root, "use_ordered_embeddings", FALSE, &config->use_ordered_embeddings, error))
    return FALSE;
  if (!config->use_ordered_embeddings)
    return TRUE;
  return ox_fields_read_uint (root, "num_centroids", 1, OX_CONFIG_MAX_VOCAB, 2048, &config->num_centroids, error) &&
         ox_fields_read_uint (root, "centroid_intermediate_top_k", 1, OX_CONFIG_MAX_VOCAB, 32,
                              &config->centroid_intermediate_top_k, error);
}

/* Placeholders of pictures and sounds are never an answer; some sizes' generation_config.json leaves them out. */
static gboolean
read_media_ids (const OxFields *root, OxConfig *config, GError **error)
{
  static const struct {
    const char *name;
    guint id;
  } ids[] = {
    { "boi_token_id", 255999 },   { "boa_token_id", 256000 }, { "image_token_id", 258880 },
    { "audio_token_id", 258881 }, { "eoi_token_id", 258882 }, { "eoa_token_index", 258883 },
    { "video_token_id", 258884 },
  };

  for (guint i = 0; i < G_N_ELEMENTS (ids); i++) {
    guint id;

    if (!ox_fields_read_count (root, ids[i].name, G_MAXUINT, ids[i].id, &id, error))
      return FALSE;
    ox_config_add_suppressed (config, id);
  }
  return TRUE;
}

gboolean
ox_config_read_gemma4 (const OxFields *root, const OxFields *text, gboolean unified, OxConfig *config, GError **error)
{
  gboolean assistant = config->family == OX_FAMILY_GEMMA4_ASSISTANT;

  config->qk_norm = TRUE;
  config->query_pre_attn_scalar = 1;
  return check_variants (text, error) && read_sizes (text, unified, config, error) &&
         read_layers (text, unified, config, error) && read_global_heads (text, config, error) &&
         read_ropes (text, config, error) && read_options (text, !unified && !assistant, config, error) &&
         (!assistant || read_assistant (root, text, config, error)) && read_media_ids (root, config, error);
}
