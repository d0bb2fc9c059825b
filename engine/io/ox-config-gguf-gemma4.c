/* GGUF metadata of Gemma 4: “key_length” and “head_count_kv” are full layers', “…_swa” sliding layers'.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "io/ox-config-keys.h"

#include <math.h>

/* Five sliding layers to a full one unless they are listed; the last one is full. */
static gboolean
read_layers (const OxKeys *keys, OxConfig *config, GError **error)
{
  guint n = config->num_hidden_layers;
  g_autofree gboolean *sliding = g_new0 (gboolean, n);
  gboolean listed;
  gboolean any = FALSE;

  if (!ox_keys_read_flags (keys, "attention.sliding_window_pattern", sliding, n, &listed, error))
    return FALSE;
  config->layer_kinds = g_new0 (OxLayerKind, n);
  for (guint i = 0; i < n; i++) {
    if (listed ? sliding[i] : (i + 1) % 6 != 0 && i != n - 1)
      config->layer_kinds[i] = OX_LAYER_SLIDING;
    any = any || config->layer_kinds[i] == OX_LAYER_SLIDING;
  }
  return !any || ox_keys_read_uint (keys, "attention.sliding_window", 1, OX_CONFIG_MAX_POSITIONS, 0,
                                    &config->sliding_window, error);
}

/* Keys, values and rotations of a kind of layers have one size. */
static gboolean
read_head_dim (const OxKeys *keys, gboolean sliding, guint default_dim, guint *head_dim, GError **error)
{
  const char *key_name = sliding ? "attention.key_length_swa" : "attention.key_length";
  const char *value_name = sliding ? "attention.value_length_swa" : "attention.value_length";
  const char *rope_name = sliding ? "rope.dimension_count_swa" : "rope.dimension_count";
  guint values, rotated;

  if (!ox_keys_read_uint (keys, key_name, 1, OX_CONFIG_MAX_HEAD_DIM, default_dim, head_dim, error) ||
      !ox_keys_read_uint (keys, value_name, 1, OX_CONFIG_MAX_HEAD_DIM, *head_dim, &values, error) ||
      !ox_keys_read_uint (keys, rope_name, 1, OX_CONFIG_MAX_HEAD_DIM, *head_dim, &rotated, error))
    return FALSE;
  if (values != *head_dim)
    return ox_keys_differ (error, keys, value_name, key_name);
  if (rotated != *head_dim)
    return ox_keys_differ (error, keys, rope_name, key_name);
  return TRUE;
}

static gboolean
read_kv_heads (const OxKeys *keys, OxConfig *config, GError **error)
{
  static const char name[] = "attention.head_count_kv";
  guint n = config->num_hidden_layers;
  g_autofree guint *kv_heads = g_new0 (guint, n);

  if (!ox_keys_read_layers (keys, name, 1, OX_CONFIG_MAX_HEADS, config->num_attention_heads, kv_heads, n, error))
    return FALSE;
  for (guint i = 0; i < n; i++) {
    guint *of_kind =
      config->layer_kinds[i] == OX_LAYER_FULL ? &config->num_global_key_value_heads : &config->num_key_value_heads;

    if (*of_kind == 0)
      *of_kind = kv_heads[i];
    if (*of_kind != kv_heads[i])
      return ox_keys_unsupported (error, keys, name,
                                  "it differs between layers of one kind by “gemma4.attention.sliding_window_pattern”");
  }
  /* All layers are of one kind. */
  if (config->num_key_value_heads == 0)
    config->num_key_value_heads = config->num_global_key_value_heads;
  if (config->num_global_key_value_heads == 0)
    config->num_global_key_value_heads = config->num_key_value_heads;
  return TRUE;
}

/* Layers that share keys and values may have an MLP of twice the width. */
static gboolean
read_widths (const OxKeys *keys, OxConfig *config, GError **error)
{
  static const char name[] = "feed_forward_length";
  static const char shared_name[] = "attention.shared_kv_layers";
  guint n = config->num_hidden_layers;
  g_autofree guint *widths = g_new0 (guint, n);
  guint shared;

  if (!ox_keys_read_count (keys, shared_name, OX_CONFIG_MAX_LAYERS, 0, &shared, error) ||
      !ox_keys_read_layers (keys, name, 1, OX_CONFIG_MAX_WIDTH, 0, widths, n, error))
    return FALSE;
  if (shared >= n) {
    g_autofree char *expected = g_strdup_printf ("less than “%s.block_count” (%u)", keys->architecture, n);

    return ox_keys_damaged (error, keys, shared_name, shared, expected);
  }
  config->num_kv_shared_layers = shared;
  config->intermediate_size = widths[0];
  config->use_double_wide_mlp = shared > 0 && widths[n - 1] == 2 * widths[0];
  for (guint i = 0; i < n; i++)
    if (widths[i] != ox_config_intermediate_size (config, i)) {
      g_autofree char *what = g_strdup_printf ("its %u for layer %u is not twice the first for the last %u layers only "
                                               "(“%s.%s”)",
                                               widths[i], i, shared, keys->architecture, shared_name);

      return ox_keys_unsupported (error, keys, name, what);
    }
  return TRUE;
}

static gboolean
read_options (const OxKeys *keys, OxConfig *config, GError **error)
{
  const OxTensorInfo *table = keys->weights ? ox_weights_find (keys->weights, "per_layer_token_embd.weight") : NULL;
  g_autofree char *scores = ox_keys_full (keys, "attn_logit_softcapping");
  g_autofree char *logits = ox_keys_full (keys, "final_logit_softcapping");
  double cap;

  if (ox_gguf_get_float (keys->gguf, scores, &cap) && cap != 0)
    return ox_keys_unsupported (error, keys, "attn_logit_softcapping", "scores are capped");
  if (ox_gguf_get_float (keys->gguf, logits, &cap) && cap == 0)
    config->final_logit_softcapping = 0;
  else if (ox_gguf_has (keys->gguf, logits) &&
           !ox_keys_read_positive (keys, "final_logit_softcapping", 1e6, NAN, &config->final_logit_softcapping, error))
    return FALSE;
  if (!ox_keys_read_count (keys, "embedding_length_per_layer_input", OX_CONFIG_MAX_WIDTH, 0,
                           &config->hidden_size_per_layer_input, error) ||
      !ox_keys_read_count (keys, "expert_count", OX_CONFIG_MAX_EXPERTS, 0, &config->num_experts, error))
    return FALSE;
  if (config->hidden_size_per_layer_input > 0)
    config->vocab_size_per_layer_input =
      table && table->n_dims == 2 ? (guint) MIN (table->dims[0], OX_CONFIG_MAX_VOCAB) : config->vocab_size;
  return config->num_experts == 0 ||
         (ox_keys_read_uint (keys, "expert_used_count", 1, OX_CONFIG_MAX_EXPERTS, 0, &config->top_k_experts, error) &&
          ox_keys_read_uint (keys, "expert_feed_forward_length", 1, OX_CONFIG_MAX_WIDTH, 0,
                             &config->moe_intermediate_size, error));
}

/* Full layers without a matrix for values use the keys', which only the tensors tell. */
static void
find_missing_values (const OxKeys *keys, OxConfig *config)
{
  for (guint i = 0; keys->weights && i < config->num_hidden_layers; i++) {
    g_autofree char *name = g_strdup_printf ("blk.%u.attn_v.weight", i);

    if (config->layer_kinds[i] != OX_LAYER_FULL || ox_config_kv_layer (config, i) != i)
      continue;
    config->attention_k_eq_v = ox_weights_find (keys->weights, name) == NULL;
    return;
  }
}

/* The frequencies of full layers are in rope_freqs.weight: a divisor of 1 for those that turn and a huge one for the rest. */
static gboolean
read_ropes (const OxKeys *keys, OxConfig *config, GError **error)
{
  OxRopeConfig *full = &config->rope;
  OxRopeConfig *sliding = &config->rope_sliding;

  *full = (OxRopeConfig) { .type = OX_ROPE_PROPORTIONAL, .factor = 1, .partial_rotary_factor = 0.25 };
  *sliding = (OxRopeConfig) { .type = OX_ROPE_DEFAULT, .factor = 1, .partial_rotary_factor = 1 };
  if (!ox_keys_check_unscaled (keys, error) ||
      !ox_keys_read_positive (keys, "rope.freq_base", 1e12, 1e6, &full->theta, error) ||
      !ox_keys_read_positive (keys, "rope.freq_base_swa", 1e12, 1e4, &sliding->theta, error) ||
      !ox_keys_read_rope_factors (keys, config->global_head_dim / 2, full, error))
    return FALSE;
  if (full->freq_factors) {
    full->type = OX_ROPE_DEFAULT;
    full->partial_rotary_factor = 1;
  }
  return TRUE;
}

gboolean
ox_config_read_gguf_gemma4 (const OxKeys *keys, OxConfig *config, GError **error)
{
  config->query_pre_attn_scalar = 1;
  if (!read_layers (keys, config, error) || !read_head_dim (keys, FALSE, 512, &config->global_head_dim, error) ||
      !read_head_dim (keys, TRUE, 256, &config->head_dim, error) || !read_kv_heads (keys, config, error) ||
      !read_widths (keys, config, error) || !read_options (keys, config, error) || !read_ropes (keys, config, error))
    return FALSE;
  find_missing_values (keys, config);
  return TRUE;
}
