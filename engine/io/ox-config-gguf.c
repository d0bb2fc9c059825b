/* Hyper-parameters from GGUF metadata: keys “ARCHITECTURE.…” as llama.cpp's converters write them.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "io/ox-config-keys.h"

#include <math.h>
#include <string.h>

#include "io/ox-quote.h"

typedef struct {
  const char *architecture;
  OxFamily family;
  gboolean attention_bias;
  gboolean qk_norm;
  gboolean permuted_qk; /* the converter reorders q and k for interleaved rotation */
} Kind;

static const Kind kinds[] = {
  { "llama", OX_FAMILY_LLAMA, FALSE, FALSE, TRUE },   { "qwen2", OX_FAMILY_LLAMA, TRUE, FALSE, FALSE },
  { "qwen3", OX_FAMILY_LLAMA, FALSE, TRUE, FALSE },   { "gemma3", OX_FAMILY_GEMMA3, FALSE, TRUE, FALSE },
  { "gemma4", OX_FAMILY_GEMMA4, FALSE, TRUE, FALSE }, { "qwen35", OX_FAMILY_QWEN35, FALSE, TRUE, FALSE },
};

static const OxConfigNames names = {
  .vocab = "vocab_size",
  .n_layers = "block_count",
  .layers = "attention.sliding_window_pattern",
  .heads = "attention.head_count",
  .kv_heads = "attention.head_count_kv",
  .head_dim = "attention.key_length",
  .global_kv_heads = "attention.head_count_kv",
  .global_head_dim = "attention.key_length",
  .rotated = "rope.dimension_count",
  .rotated_sliding = "rope.dimension_count_swa",
  .shared_layers = "attention.shared_kv_layers",
  .experts = "expert_count",
  .top_k_experts = "expert_used_count",
  .expert_width = "expert_feed_forward_length",
  .ple_size = "embedding_length_per_layer_input",
  .ple_vocab = "vocab_size",
  .linear_key_heads = "ssm.group_count",
  .linear_value_heads = "ssm.time_step_rank",
  .linear_key_dim = "ssm.state_size",
  .linear_value_dim = "ssm.inner_size",
};

static gboolean
check_variants (const OxKeys *keys, const OxConfig *config, GError **error)
{
  static const char *const caps[] = { "attn_logit_softcapping", "final_logit_softcapping" };
  guint experts, rope_dims, value_dims;

  if (!ox_keys_read_uint (keys, "expert_count", 0, G_MAXUINT, G_MAXUINT, &experts, error) ||
      !ox_keys_read_uint (keys, "rope.dimension_count", 0, G_MAXUINT, config->head_dim, &rope_dims, error) ||
      !ox_keys_read_uint (keys, "attention.value_length", 0, G_MAXUINT, config->head_dim, &value_dims, error))
    return FALSE;
  if (experts > 0 && experts < G_MAXUINT)
    return ox_keys_unsupported (error, keys, "expert_count", "the model is a mixture of experts");
  if (rope_dims != config->head_dim)
    return ox_keys_differ (error, keys, "rope.dimension_count", "attention.key_length");
  if (value_dims != config->head_dim)
    return ox_keys_differ (error, keys, "attention.value_length", "attention.key_length");
  for (guint i = 0; i < G_N_ELEMENTS (caps); i++) {
    g_autofree char *key = ox_keys_full (keys, caps[i]);
    double cap;

    if (ox_gguf_get_float (keys->gguf, key, &cap) && cap != 0)
      return ox_keys_unsupported (error, keys, caps[i], "scores are capped");
  }
  if (keys->weights && !config->attention_bias && ox_weights_find (keys->weights, "blk.0.attn_q.bias")) {
    g_set_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED,
                 "%s: has tensor “blk.0.attn_q.bias”, which this version cannot use in a model of kind “%s”",
                 keys->file, keys->architecture);
    return FALSE;
  }
  return TRUE;
}

/* The vocabulary is as large as the embedding; what the metadata says must agree. */
static gboolean
read_vocab (const OxKeys *keys, OxConfig *config, GError **error)
{
  const OxTensorInfo *embedding = keys->weights ? ox_weights_find (keys->weights, "token_embd.weight") : NULL;
  gsize n_tokens = ox_gguf_get_array_length (keys->gguf, "tokenizer.ggml.tokens");
  g_autofree char *key = ox_keys_full (keys, "vocab_size");
  guint rows = (guint) MIN (n_tokens, G_MAXUINT);

  if (embedding) {
    if (embedding->n_dims != 2 || embedding->dims[0] == 0 || embedding->dims[0] > OX_CONFIG_MAX_VOCAB ||
        embedding->dims[1] != config->hidden_size) {
      g_autofree char *shape = ox_tensor_describe (embedding);

      g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED,
                   "%s: tensor “token_embd.weight” is %s, but “%s.embedding_length” is %u", keys->file, shape,
                   keys->architecture, config->hidden_size);
      return FALSE;
    }
    rows = (guint) embedding->dims[0];
    if (n_tokens > rows) {
      g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED,
                   "%s: metadata key “tokenizer.ggml.tokens” has %" G_GSIZE_FORMAT
                   " tokens, but tensor “token_embd.weight” has %u rows",
                   keys->file, n_tokens, rows);
      return FALSE;
    }
  }
  if (!ox_keys_read_uint (keys, "vocab_size", 1, OX_CONFIG_MAX_VOCAB, rows, &config->vocab_size, error))
    return FALSE;
  if (embedding && config->vocab_size != rows) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED,
                 "%s: metadata key “%s” is %u, but tensor “token_embd.weight” has %u rows", keys->file, key,
                 config->vocab_size, rows);
    return FALSE;
  }
  if (config->vocab_size > OX_CONFIG_MAX_VOCAB) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED,
                 "%s: metadata key “tokenizer.ggml.tokens” has %u tokens, at most %u were expected", keys->file,
                 config->vocab_size, OX_CONFIG_MAX_VOCAB);
    return FALSE;
  }
  return TRUE;
}

/* What every family has. */
static gboolean
read_common (const OxKeys *keys, OxConfig *config, GError **error)
{
  return ox_keys_read_uint (keys, "embedding_length", 1, OX_CONFIG_MAX_WIDTH, 0, &config->hidden_size, error) &&
         ox_keys_read_uint (keys, "block_count", 1, OX_CONFIG_MAX_LAYERS, 0, &config->num_hidden_layers, error) &&
         ox_keys_read_uint (keys, "attention.head_count", 1, OX_CONFIG_MAX_HEADS, 0, &config->num_attention_heads,
                            error) &&
         ox_keys_read_uint (keys, "context_length", 1, OX_CONFIG_MAX_POSITIONS, 0, &config->max_position_embeddings,
                            error) &&
         ox_keys_read_positive (keys, "attention.layer_norm_rms_epsilon", 1, NAN, &config->rms_norm_eps, error);
}

static gboolean
read_sizes (const OxKeys *keys, OxConfig *config, GError **error)
{
  guint head_dim = config->hidden_size / config->num_attention_heads;

  if (!ox_keys_has (keys, "attention.key_length") && config->hidden_size % config->num_attention_heads != 0) {
    g_autofree char *expected =
      g_strdup_printf ("a multiple of “%s.attention.head_count” (%u), as there is no “%s.attention.key_length”,",
                       keys->architecture, config->num_attention_heads, keys->architecture);

    return ox_keys_damaged (error, keys, "embedding_length", config->hidden_size, expected);
  }
  return ox_keys_read_uint (keys, "feed_forward_length", 1, OX_CONFIG_MAX_WIDTH, 0, &config->intermediate_size,
                            error) &&
         ox_keys_read_uint (keys, "attention.head_count_kv", 1, OX_CONFIG_MAX_HEADS, config->num_attention_heads,
                            &config->num_key_value_heads, error) &&
         ox_keys_read_uint (keys, "attention.key_length", 1, OX_CONFIG_MAX_HEAD_DIM, head_dim, &config->head_dim,
                            error);
}

static gboolean
read_ropes (const OxKeys *keys, OxConfig *config, GError **error)
{
  gboolean gemma = config->family == OX_FAMILY_GEMMA3;
  g_autofree char *type_key = ox_keys_full (keys, "rope.scaling.type");
  g_autofree char *old_key = ox_keys_full (keys, "rope.scale_linear");
  const char *type = ox_gguf_get_string (keys->gguf, type_key);
  double local_theta;

  config->rope = (OxRopeConfig) { .type = OX_ROPE_DEFAULT, .factor = 1, .partial_rotary_factor = 1 };
  if (!ox_keys_read_positive (keys, "rope.freq_base", 1e12, gemma ? 1e6 : 1e4, &config->rope.theta, error) ||
      !ox_keys_read_positive (keys, "rope.freq_base_swa", 1e12, gemma ? 1e4 : config->rope.theta, &local_theta, error))
    return FALSE;
  if (type && strcmp (type, "linear") == 0) {
    config->rope.type = OX_ROPE_LINEAR;
    if (!ox_keys_read_positive (keys, "rope.scaling.factor", 1e6, NAN, &config->rope.factor, error))
      return FALSE;
  } else if (type && strcmp (type, "none") != 0) {
    g_autofree char *quoted = ox_quote (type, -1);
    g_autofree char *what = g_strdup_printf ("positions are scaled by “%s”", quoted);

    return ox_keys_unsupported (error, keys, "rope.scaling.type", what);
  } else if (!type && ox_gguf_has (keys->gguf, old_key)) {
    config->rope.type = OX_ROPE_LINEAR;
    if (!ox_keys_read_positive (keys, "rope.scale_linear", 1e6, NAN, &config->rope.factor, error))
      return FALSE;
  }
  /* Gemma 3 scales full layers only; elsewhere all layers rotate alike. */
  config->rope_sliding = config->rope;
  if (gemma)
    config->rope_sliding =
      (OxRopeConfig) { .type = OX_ROPE_DEFAULT, .theta = local_theta, .factor = 1, .partial_rotary_factor = 1 };
  /* Llama 3's bands. */
  return ox_keys_read_rope_factors (keys, config->head_dim / 2, &config->rope, error);
}

/* Gemma 3: all layers slide but each @pattern-th; newer files may list the layers instead. */
static gboolean
read_layers (const OxKeys *keys, OxConfig *config, GError **error)
{
  static const char name[] = "attention.sliding_window_pattern";
  g_autofree char *key = ox_keys_full (keys, name);
  guint n = config->num_hidden_layers;
  g_autofree gboolean *sliding = g_new0 (gboolean, n);
  gboolean listed = ox_gguf_get_array_length (keys->gguf, key) > 0;
  guint pattern = 6;

  config->layer_kinds = g_new0 (OxLayerKind, n);
  if (config->family != OX_FAMILY_GEMMA3)
    return TRUE;
  if (!ox_keys_read_uint (keys, "attention.sliding_window", 1, OX_CONFIG_MAX_POSITIONS, 0, &config->sliding_window,
                          error) ||
      !(listed ? ox_keys_read_flags (keys, name, sliding, n, &listed, error)
               : ox_keys_read_uint (keys, name, 1, OX_CONFIG_MAX_LAYERS, 6, &pattern, error)))
    return FALSE;
  for (guint i = 0; i < n; i++)
    config->layer_kinds[i] = (listed ? sliding[i] : (i + 1) % pattern != 0) ? OX_LAYER_SLIDING : OX_LAYER_FULL;
  return TRUE;
}

/* @value -1: the key is missing. */
static gboolean
read_id (const OxKeys *keys, const OxConfig *config, const char *key, gint64 *value, GError **error)
{
  guint64 id;

  *value = -1;
  if (!ox_gguf_has (keys->gguf, key))
    return TRUE;
  if (!ox_gguf_get_uint (keys->gguf, key, &id)) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: metadata key “%s” is not a token id", keys->file, key);
    return FALSE;
  }
  if (!ox_config_check_id (config, id, keys->file, key, error))
    return FALSE;
  *value = (gint64) id;
  return TRUE;
}

/* Files name one id that ends a text and seldom the one that ends a turn, so the usual control tokens are looked for, too. */
static gboolean
read_special_ids (const OxKeys *keys, OxConfig *config, GError **error)
{
  static const char *const id_keys[] = { "tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                         "tokenizer.ggml.eom_token_id" };
  /* Gemma 4 ends its turn to wait for a tool's answer, too. */
  static const char *const texts[] = { "<|im_end|>",      "<end_of_turn>", "<|eot_id|>",      "<|endoftext|>",
                                       "<|end_of_text|>", "<turn|>",       "<|tool_response>" };
  static const char *const placeholders[] = { "<|image>", "<|audio>", "<|image|>", "<|audio|>",
                                              "<image|>", "<audio|>", "<|video|>" };
  gsize n = MIN (ox_gguf_get_array_length (keys->gguf, "tokenizer.ggml.tokens"), config->vocab_size);
  g_autofree gint64 *types = g_new (gint64, MAX (n, 1));
  gint64 id;

  if (!read_id (keys, config, "tokenizer.ggml.bos_token_id", &config->bos_token_id, error))
    return FALSE;
  for (guint i = 0; i < G_N_ELEMENTS (id_keys); i++) {
    if (!read_id (keys, config, id_keys[i], &id, error))
      return FALSE;
    if (id >= 0)
      ox_config_add_eos (config, (guint32) id);
  }
  ox_config_add_family_eos (config);
  if (!ox_gguf_get_array_int (keys->gguf, "tokenizer.ggml.token_type", types, n))
    return TRUE;
  for (gsize i = 0; i < n; i++) {
    g_autofree char *text = NULL;
    const char *bytes;
    gsize len;

    if (types[i] != 3 && types[i] != 4) /* control, user-defined */
      continue;
    bytes = ox_gguf_get_array_string (keys->gguf, "tokenizer.ggml.tokens", i, &len);
    text = bytes && len < 32 ? g_strndup (bytes, len) : NULL;
    for (guint j = 0; text && j < G_N_ELEMENTS (texts); j++)
      if ((types[i] == 3 || config->family == OX_FAMILY_GEMMA4) && strcmp (text, texts[j]) == 0)
        ox_config_add_eos (config, (guint32) i);
    for (guint j = 0; text && config->family == OX_FAMILY_GEMMA4 && j < G_N_ELEMENTS (placeholders); j++)
      if (strcmp (text, placeholders[j]) == 0)
        ox_config_add_suppressed (config, i);
  }
  return TRUE;
}

static gboolean
read_family (const OxKeys *keys, OxConfig *config, GError **error)
{
  switch (config->family) {
  case OX_FAMILY_GEMMA4:
    return ox_config_read_gguf_gemma4 (keys, config, error);
  case OX_FAMILY_QWEN35:
    return ox_config_read_gguf_qwen35 (keys, config, error);
  case OX_FAMILY_LLAMA:
  case OX_FAMILY_GEMMA3:
  case OX_FAMILY_GEMMA4_ASSISTANT:
  default:
    break;
  }
  if (!read_sizes (keys, config, error) || !read_layers (keys, config, error))
    return FALSE;
  config->query_pre_attn_scalar = config->head_dim;
  /* Only the 27B, told by its 62 layers, has a scale that is not its head size's. */
  if (config->family == OX_FAMILY_GEMMA3 && config->num_hidden_layers == 62)
    config->query_pre_attn_scalar = (double) config->hidden_size / config->num_attention_heads;
  return TRUE;
}

OxConfig *
ox_config_from_gguf (OxGguf *gguf, OxWeights *weights, const char *file_name, GError **error)
{
  g_autoptr (OxConfig) config = ox_config_new ();
  OxKeys keys = { gguf, weights, file_name, ox_gguf_get_string (gguf, "general.architecture") };
  OxConfigNames checked = names;
  g_autofree char *prefix = NULL;
  const Kind *kind = NULL;

  if (!keys.architecture) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: metadata key “general.architecture” is missing or no string",
                 file_name);
    return NULL;
  }
  for (guint i = 0; i < G_N_ELEMENTS (kinds); i++) {
    if (strcmp (keys.architecture, kinds[i].architecture) == 0)
      kind = &kinds[i];
  }
  if (!kind) {
    ox_config_set_unknown_kind (error, file_name, keys.architecture);
    return NULL;
  }
  config->from_gguf = TRUE;
  config->family = kind->family;
  config->architecture = g_strdup (kind->architecture);
  config->name = g_strdup (ox_gguf_get_string (gguf, "general.name"));
  config->attention_bias = kind->attention_bias;
  config->qk_norm = kind->qk_norm;
  config->permuted_qk = kind->permuted_qk;
  checked.prefix = prefix = g_strconcat (kind->architecture, ".", NULL);
  if (!read_common (&keys, config, error) || !read_vocab (&keys, config, error) ||
      !read_family (&keys, config, error) || !ox_config_check (config, file_name, &checked, error))
    return NULL;
  if ((config->family == OX_FAMILY_LLAMA || config->family == OX_FAMILY_GEMMA3) &&
      (!check_variants (&keys, config, error) || !read_ropes (&keys, config, error)))
    return NULL;
  if (!read_special_ids (&keys, config, error))
    return NULL;
  config->tie_word_embeddings = weights && !ox_weights_find (weights, "output.weight");
  return g_steal_pointer (&config);
}
