/* GGUF metadata of Qwen 3.5, 3.6 and 3.8: the delta rule's sizes are under “ssm.”, and layers that predict further tokens are
 * counted with the others.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "io/ox-config-keys.h"

#include <math.h>

static gboolean
read_layers (const OxKeys *keys, OxConfig *config, GError **error)
{
  guint n = config->num_hidden_layers;
  g_autofree gboolean *linear = g_new0 (gboolean, n);
  gboolean listed;
  guint interval = 4;

  if (!ox_keys_read_flags (keys, "attention.recurrent_layers", linear, n, &listed, error) ||
      !ox_keys_read_uint (keys, "full_attention_interval", 1, OX_CONFIG_MAX_LAYERS, 4, &interval, error))
    return FALSE;
  config->layer_kinds = g_new0 (OxLayerKind, n);
  for (guint i = 0; i < n; i++)
    config->layer_kinds[i] = (listed ? linear[i] : (i + 1) % interval != 0) ? OX_LAYER_LINEAR : OX_LAYER_FULL;
  return TRUE;
}

/* One number, or one a layer, which is 0 where there is no attention. */
static gboolean
read_kv_heads (const OxKeys *keys, guint n_blocks, OxConfig *config, GError **error)
{
  static const char name[] = "attention.head_count_kv";
  g_autofree guint *kv_heads = g_new0 (guint, n_blocks);

  if (!ox_keys_read_layers (keys, name, 0, OX_CONFIG_MAX_HEADS, config->num_attention_heads, kv_heads, n_blocks, error))
    return FALSE;
  for (guint i = 0; i < config->num_hidden_layers; i++) {
    if (config->layer_kinds[i] != OX_LAYER_FULL)
      continue;
    if (kv_heads[i] == 0)
      return ox_keys_damaged (error, keys, name, 0, "a number above 0 for layers with attention");
    if (config->num_key_value_heads == 0)
      config->num_key_value_heads = kv_heads[i];
    if (config->num_key_value_heads != kv_heads[i])
      return ox_keys_unsupported (error, keys, name, "it differs between layers with attention");
  }
  if (config->num_key_value_heads == 0)
    config->num_key_value_heads = config->num_attention_heads;
  return TRUE;
}

static gboolean
read_delta_rule (const OxKeys *keys, OxConfig *config, GError **error)
{
  guint inner;

  if (!ox_keys_read_uint (keys, "ssm.state_size", 1, OX_CONFIG_MAX_LINEAR_HEAD_DIM, 0, &config->linear_key_head_dim,
                          error) ||
      !ox_keys_read_uint (keys, "ssm.group_count", 1, OX_CONFIG_MAX_HEADS, 0, &config->linear_num_key_heads, error) ||
      !ox_keys_read_uint (keys, "ssm.time_step_rank", 1, OX_CONFIG_MAX_HEADS, 0, &config->linear_num_value_heads,
                          error) ||
      !ox_keys_read_uint (keys, "ssm.inner_size", 1, OX_CONFIG_MAX_WIDTH, 0, &inner, error) ||
      !ox_keys_read_uint (keys, "ssm.conv_kernel", 1, OX_CONFIG_MAX_CONV_KERNEL, 0, &config->linear_conv_kernel_dim,
                          error))
    return FALSE;
  config->linear_value_head_dim = inner / config->linear_num_value_heads;
  if (inner % config->linear_num_value_heads != 0 || config->linear_value_head_dim > OX_CONFIG_MAX_LINEAR_HEAD_DIM) {
    g_autofree char *expected =
      g_strdup_printf ("a multiple of “%s.ssm.time_step_rank” (%u) by at most %u", keys->architecture,
                       config->linear_num_value_heads, OX_CONFIG_MAX_LINEAR_HEAD_DIM);

    return ox_keys_damaged (error, keys, "ssm.inner_size", inner, expected);
  }
  config->linear_heads_tiled = TRUE;
  return TRUE;
}

static gboolean
read_heads (const OxKeys *keys, OxConfig *config, GError **error)
{
  guint values, rotated;
  double partial;

  if (!ox_keys_read_uint (keys, "attention.key_length", 1, OX_CONFIG_MAX_HEAD_DIM, 256, &config->head_dim, error) ||
      !ox_keys_read_uint (keys, "attention.value_length", 1, OX_CONFIG_MAX_HEAD_DIM, config->head_dim, &values,
                          error) ||
      !ox_keys_read_uint (keys, "rope.dimension_count", 1, OX_CONFIG_MAX_HEAD_DIM, MAX (config->head_dim / 4, 1),
                          &rotated, error))
    return FALSE;
  if (values != config->head_dim)
    return ox_keys_differ (error, keys, "attention.value_length", "attention.key_length");
  if (rotated > config->head_dim) {
    g_autofree char *expected =
      g_strdup_printf ("at most “%s.attention.key_length” (%u)", keys->architecture, config->head_dim);

    return ox_keys_damaged (error, keys, "rope.dimension_count", rotated, expected);
  }
  partial = (double) rotated / config->head_dim;
  /* Whoever multiplies and cuts off shall find the file's number again. */
  if ((guint) (config->head_dim * partial) < rotated)
    partial = nextafter (partial, 1);
  config->rope = (OxRopeConfig) { .type = OX_ROPE_DEFAULT, .factor = 1, .partial_rotary_factor = partial };
  if (!ox_keys_check_unscaled (keys, error) ||
      !ox_keys_read_positive (keys, "rope.freq_base", 1e12, 1e7, &config->rope.theta, error))
    return FALSE;
  config->rope_sliding = config->rope;
  config->query_pre_attn_scalar = config->head_dim;
  return TRUE;
}

gboolean
ox_config_read_gguf_qwen35 (const OxKeys *keys, OxConfig *config, GError **error)
{
  guint n_blocks = config->num_hidden_layers;
  guint experts;

  if (!ox_keys_read_count (keys, "expert_count", G_MAXUINT, 0, &experts, error))
    return FALSE;
  if (experts > 0)
    return ox_keys_unsupported (error, keys, "expert_count", "the model is a mixture of experts");
  if (!ox_keys_read_count (keys, "nextn_predict_layers", OX_CONFIG_MAX_LAYERS, 0, &config->mtp_num_hidden_layers,
                           error))
    return FALSE;
  if (config->mtp_num_hidden_layers >= n_blocks) {
    g_autofree char *expected = g_strdup_printf ("less than “%s.block_count” (%u)", keys->architecture, n_blocks);

    return ox_keys_damaged (error, keys, "nextn_predict_layers", config->mtp_num_hidden_layers, expected);
  }
  config->num_hidden_layers = n_blocks - config->mtp_num_hidden_layers;
  return ox_keys_read_uint (keys, "feed_forward_length", 1, OX_CONFIG_MAX_WIDTH, 0, &config->intermediate_size,
                            error) &&
         read_layers (keys, config, error) && read_heads (keys, config, error) &&
         read_kv_heads (keys, n_blocks, config, error) && read_delta_rule (keys, config, error);
}
