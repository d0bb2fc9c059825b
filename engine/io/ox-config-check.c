/* What the fields of a configuration must be to one another, whatever file they came from.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "io/ox-config-private.h"

typedef struct {
  const OxConfig *config;
  const OxConfigNames *names;
  const char *file;
} Check;

G_GNUC_PRINTF (5, 6)
static gboolean
wrong (const Check *check, GError **error, const char *name, guint found, const char *expected, ...)
{
  g_autofree char *text = NULL;
  va_list args;

  va_start (args, expected);
  text = g_strdup_vprintf (expected, args);
  va_end (args);
  g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: “%s%s” is %u, %s was expected", check->file,
               check->names->prefix, name, found, text);
  return FALSE;
}

/* @heads query heads over @kv_heads of @head_dim. */
static gboolean
check_heads (
  const Check *check, guint kv_heads, const char *kv_name, guint head_dim, const char *dim_name, GError **error)
{
  guint heads = check->config->num_attention_heads;

  if (heads % kv_heads != 0)
    return wrong (check, error, check->names->heads, heads, "a multiple of “%s%s” (%u)", check->names->prefix, kv_name,
                  kv_heads);
  if (head_dim == 0 || head_dim % 2 != 0 || head_dim > OX_CONFIG_MAX_HEAD_DIM)
    return wrong (check, error, dim_name, head_dim, "an even number from 2 to %u", OX_CONFIG_MAX_HEAD_DIM);
  if (heads > OX_CONFIG_MAX_WIDTH / head_dim)
    return wrong (check, error, check->names->heads, heads, "at most %u heads of “%s%s” (%u)",
                  OX_CONFIG_MAX_WIDTH / head_dim, check->names->prefix, dim_name, head_dim);
  return TRUE;
}

/* A rotation turns pairs: the first ones of a head, or, if it is proportional, some of all of them. @whole: the network can do
 * nothing else with a part of a head. */
static gboolean
check_rope (const Check *check,
            const OxRopeConfig *rope,
            gboolean whole,
            const char *name,
            const char *dim_name,
            guint head_dim,
            GError **error)
{
  gboolean proportional = rope->type == OX_ROPE_PROPORTIONAL;
  guint rotated = (guint) (rope->partial_rotary_factor * (proportional ? head_dim / 2 : head_dim));

  if (rotated == 0 || (!proportional && (rotated % 2 != 0 || (whole && rotated != head_dim)))) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED,
                 "%s: “%s%s” says that %g of “%s%s” (%u) is rotated, %s was expected", check->file,
                 check->names->prefix, name, rope->partial_rotary_factor, check->names->prefix, dim_name, head_dim,
                 whole ? "all of it, or a proportional part," : "an even number of values");
    return FALSE;
  }
  return TRUE;
}

/* Each layer without keys and values of its own reads those of an earlier one of its kind. A drafter's are its target's. */
static gboolean
check_sharing (const Check *check, GError **error)
{
  const OxConfig *config = check->config;
  guint shared = config->num_kv_shared_layers;

  if (config->family == OX_FAMILY_GEMMA4_ASSISTANT)
    return TRUE;
  if (shared >= config->num_hidden_layers && shared > 0)
    return wrong (check, error, check->names->shared_layers, shared, "less than “%s%s” (%u)", check->names->prefix,
                  check->names->n_layers, config->num_hidden_layers);
  for (guint i = config->num_hidden_layers - shared; i < config->num_hidden_layers; i++)
    if (ox_config_kv_layer (config, i) == i)
      return wrong (check, error, check->names->shared_layers, shared,
                    "fewer, so that layer %u finds an earlier one of its kind (“%s%s”) with keys and values,", i,
                    check->names->prefix, check->names->layers);
  return TRUE;
}

static gboolean
check_experts (const Check *check, GError **error)
{
  const OxConfig *config = check->config;

  if (config->num_experts == 0)
    return TRUE;
  if (config->top_k_experts > config->num_experts)
    return wrong (check, error, check->names->top_k_experts, config->top_k_experts, "at most “%s%s” (%u)",
                  check->names->prefix, check->names->experts, config->num_experts);
  if (config->moe_intermediate_size > OX_CONFIG_MAX_EXPERT_ROWS / config->num_experts)
    return wrong (check, error, check->names->expert_width, config->moe_intermediate_size,
                  "at most %u for each of “%s%s” (%u)", OX_CONFIG_MAX_EXPERT_ROWS / config->num_experts,
                  check->names->prefix, check->names->experts, config->num_experts);
  return TRUE;
}

static gboolean
check_per_layer_input (const Check *check, GError **error)
{
  const OxConfig *config = check->config;

  if (config->hidden_size_per_layer_input == 0)
    return TRUE;
  if (config->hidden_size_per_layer_input > OX_CONFIG_MAX_WIDTH / config->num_hidden_layers)
    return wrong (check, error, check->names->ple_size, config->hidden_size_per_layer_input,
                  "at most %u for each of “%s%s” (%u)", OX_CONFIG_MAX_WIDTH / config->num_hidden_layers,
                  check->names->prefix, check->names->n_layers, config->num_hidden_layers);
  if (config->vocab_size_per_layer_input < config->vocab_size)
    return wrong (check, error, check->names->ple_vocab, config->vocab_size_per_layer_input, "at least “%s%s” (%u)",
                  check->names->prefix, check->names->vocab, config->vocab_size);
  return TRUE;
}

static gboolean
check_centroids (const Check *check, GError **error)
{
  const OxConfig *config = check->config;

  if (!config->use_ordered_embeddings)
    return TRUE;
  if (config->vocab_size % config->num_centroids != 0)
    return wrong (check, error, "num_centroids", config->num_centroids, "a divisor of “%s%s” (%u)",
                  check->names->prefix, check->names->vocab, config->vocab_size);
  if (config->centroid_intermediate_top_k > config->num_centroids)
    return wrong (check, error, "centroid_intermediate_top_k", config->centroid_intermediate_top_k,
                  "at most “num_centroids” (%u)", config->num_centroids);
  return TRUE;
}

static gboolean
check_gemma4 (const Check *check, GError **error)
{
  const OxConfig *config = check->config;
  const OxConfigNames *names = check->names;

  return check_heads (check, config->num_global_key_value_heads, names->global_kv_heads, config->global_head_dim,
                      names->global_head_dim, error) &&
         check_rope (check, &config->rope, TRUE, names->rotated, names->global_head_dim, config->global_head_dim,
                     error) &&
         check_rope (check, &config->rope_sliding, TRUE, names->rotated_sliding, names->head_dim, config->head_dim,
                     error) &&
         check_sharing (check, error) && check_experts (check, error) && check_per_layer_input (check, error) &&
         check_centroids (check, error);
}

static gboolean
check_qwen35 (const Check *check, GError **error)
{
  const OxConfig *config = check->config;
  const OxConfigNames *names = check->names;

  if (!check_rope (check, &config->rope, FALSE, names->rotated, names->head_dim, config->head_dim, error))
    return FALSE;
  if (config->linear_num_value_heads % config->linear_num_key_heads != 0)
    return wrong (check, error, names->linear_value_heads, config->linear_num_value_heads, "a multiple of “%s%s” (%u)",
                  names->prefix, names->linear_key_heads, config->linear_num_key_heads);
  if (config->linear_num_key_heads > OX_CONFIG_MAX_WIDTH / config->linear_key_head_dim)
    return wrong (check, error, names->linear_key_heads, config->linear_num_key_heads,
                  "at most %u heads of “%s%s” (%u)", OX_CONFIG_MAX_WIDTH / config->linear_key_head_dim, names->prefix,
                  names->linear_key_dim, config->linear_key_head_dim);
  if (config->linear_num_value_heads > OX_CONFIG_MAX_WIDTH / config->linear_value_head_dim)
    return wrong (check, error, names->linear_value_heads, config->linear_num_value_heads,
                  "at most %u heads of “%s%s” (%u)", OX_CONFIG_MAX_WIDTH / config->linear_value_head_dim, names->prefix,
                  names->linear_value_dim, config->linear_value_head_dim);
  return TRUE;
}

gboolean
ox_config_check (const OxConfig *config, const char *file_name, const OxConfigNames *names, GError **error)
{
  Check check = { config, names, file_name };

  if (!check_heads (&check, config->num_key_value_heads, names->kv_heads, config->head_dim, names->head_dim, error))
    return FALSE;
  switch (config->family) {
  case OX_FAMILY_GEMMA4:
  case OX_FAMILY_GEMMA4_ASSISTANT:
    return check_gemma4 (&check, error);
  case OX_FAMILY_QWEN35:
    return check_qwen35 (&check, error);
  case OX_FAMILY_LLAMA:
  case OX_FAMILY_GEMMA3:
  default:
    return TRUE;
  }
}
