/* config.json of Qwen 3.5, 3.6 and 3.8: dense models of gated delta rule and full attention in turn.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "io/ox-config-fields.h"

#include <math.h>

#define ROPES (OX_ROPE_BIT (OX_ROPE_DEFAULT) | OX_ROPE_BIT (OX_ROPE_LINEAR))

static gboolean
check_variants (const OxFields *text, GError **error)
{
  guint experts;

  if (!ox_fields_read_count (text, "num_experts", G_MAXUINT, 0, &experts, error))
    return FALSE;
  if (experts > 0)
    return ox_fields_unsupported (error, text, "num_experts", "set (the model is a mixture of experts)");
  return ox_fields_check_string (text, "hidden_act", "silu", error) &&
         ox_fields_check_bool (text, "attention_bias", FALSE, error) &&
         ox_fields_check_bool (text, "attn_output_gate", TRUE, error);
}

static gboolean
read_sizes (const OxFields *text, OxConfig *config, GError **error)
{
  return ox_fields_read_uint (text, "hidden_size", 1, OX_CONFIG_MAX_WIDTH, 4096, &config->hidden_size, error) &&
         ox_fields_read_uint (text, "intermediate_size", 1, OX_CONFIG_MAX_WIDTH, 12288, &config->intermediate_size,
                              error) &&
         ox_fields_read_uint (text, "num_hidden_layers", 1, OX_CONFIG_MAX_LAYERS, 32, &config->num_hidden_layers,
                              error) &&
         ox_fields_read_uint (text, "num_attention_heads", 1, OX_CONFIG_MAX_HEADS, 16, &config->num_attention_heads,
                              error) &&
         ox_fields_read_uint (text, "num_key_value_heads", 1, OX_CONFIG_MAX_HEADS, 4, &config->num_key_value_heads,
                              error) &&
         ox_fields_read_uint (text, "head_dim", 1, OX_CONFIG_MAX_HEAD_DIM, 256, &config->head_dim, error) &&
         ox_fields_read_uint (text, "vocab_size", 1, OX_CONFIG_MAX_VOCAB, 248320, &config->vocab_size, error) &&
         ox_fields_read_uint (text, "max_position_embeddings", 1, OX_CONFIG_MAX_POSITIONS, 32768,
                              &config->max_position_embeddings, error) &&
         ox_fields_read_positive (text, "rms_norm_eps", 1, 1e-6, &config->rms_norm_eps, error) &&
         ox_fields_read_uint (text, "linear_num_key_heads", 1, OX_CONFIG_MAX_HEADS, 16, &config->linear_num_key_heads,
                              error) &&
         ox_fields_read_uint (text, "linear_num_value_heads", 1, OX_CONFIG_MAX_HEADS, 32,
                              &config->linear_num_value_heads, error) &&
         ox_fields_read_uint (text, "linear_key_head_dim", 1, OX_CONFIG_MAX_LINEAR_HEAD_DIM, 128,
                              &config->linear_key_head_dim, error) &&
         ox_fields_read_uint (text, "linear_value_head_dim", 1, OX_CONFIG_MAX_LINEAR_HEAD_DIM, 128,
                              &config->linear_value_head_dim, error) &&
         ox_fields_read_uint (text, "linear_conv_kernel_dim", 1, OX_CONFIG_MAX_CONV_KERNEL, 4,
                              &config->linear_conv_kernel_dim, error);
}

/* Each “full_attention_interval”-th layer has full attention unless they are listed. */
static gboolean
read_layers (const OxFields *text, OxConfig *config, GError **error)
{
  yyjson_val *list = ox_fields_get (text, "layer_types");
  guint interval;

  config->layer_kinds = g_new0 (OxLayerKind, config->num_hidden_layers);
  if (list)
    return ox_fields_read_layer_types (text, list, "linear_attention", OX_LAYER_LINEAR, config, error);
  if (!ox_fields_read_uint (text, "full_attention_interval", 1, OX_CONFIG_MAX_LAYERS, 4, &interval, error))
    return FALSE;
  for (guint i = 0; i < config->num_hidden_layers; i++)
    config->layer_kinds[i] = (i + 1) % interval != 0 ? OX_LAYER_LINEAR : OX_LAYER_FULL;
  return TRUE;
}

/* The three axes of positions of pictures (“mrope_section”) are one for text. */
static gboolean
read_rope (const OxFields *text, OxConfig *config, GError **error)
{
  OxRopeConfig defaults = { .type = OX_ROPE_DEFAULT, .factor = 1 };
  const char *name = ox_fields_get (text, "rope_parameters") ? "rope_parameters" : "rope_scaling";

  if (!ox_fields_read_positive (text, "rope_theta", 1e12, 1e4, &defaults.theta, error) ||
      !ox_fields_read_positive (text, "partial_rotary_factor", 1, 0.25, &defaults.partial_rotary_factor, error) ||
      !ox_fields_read_rope (text, ox_fields_get (text, name), name, &defaults, ROPES, &config->rope, error))
    return FALSE;
  config->rope_sliding = config->rope;
  return TRUE;
}

gboolean
ox_config_read_qwen35 (const OxFields *text, OxConfig *config, GError **error)
{
  gboolean dedicated;

  config->qk_norm = TRUE;
  config->norm_plus_one = TRUE;
  if (!check_variants (text, error) || !read_sizes (text, config, error) || !read_layers (text, config, error) ||
      !read_rope (text, config, error) ||
      !ox_fields_read_count (text, "mtp_num_hidden_layers", OX_CONFIG_MAX_LAYERS, 0, &config->mtp_num_hidden_layers,
                             error) ||
      !ox_fields_read_bool (text, "mtp_use_dedicated_embeddings", FALSE, &dedicated, error))
    return FALSE;
  /* No published model has that; without it the model answers the same, only not ahead of itself. */
  if (dedicated)
    config->mtp_num_hidden_layers = 0;
  config->query_pre_attn_scalar = config->head_dim;
  return TRUE;
}
