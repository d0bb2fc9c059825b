/* Hyper-parameters from GGUF metadata: keys “ARCHITECTURE.…” as llama.cpp's converters write them.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "io/ox-config-private.h"

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
  { "llama", OX_FAMILY_LLAMA, FALSE, FALSE, TRUE },
  { "qwen2", OX_FAMILY_LLAMA, TRUE, FALSE, FALSE },
  { "qwen3", OX_FAMILY_LLAMA, FALSE, TRUE, FALSE },
  { "gemma3", OX_FAMILY_GEMMA3, FALSE, TRUE, FALSE },
};

typedef struct {
  OxGguf *gguf;
  OxWeights *weights; /* or NULL */
  const char *file;
  const char *architecture;
} Source;

/* "llama.block_count" */
static char *
key_of (const Source *source, const char *name)
{
  return g_strconcat (source->architecture, ".", name, NULL);
}

/* @default_value 0: the key is required. */
static gboolean
read_uint (
  const Source *source, const char *name, guint min, guint max, guint default_value, guint *value, GError **error)
{
  g_autofree char *key = key_of (source, name);
  guint64 found;

  if (!ox_gguf_has (source->gguf, key)) {
    if (default_value > 0) {
      *value = default_value;
      return TRUE;
    }
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: metadata key “%s” is missing", source->file, key);
    return FALSE;
  }
  if (ox_gguf_get_array_length (source->gguf, key) > 0) {
    g_set_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED,
                 "%s: metadata key “%s” differs from layer to layer, which this version cannot run", source->file, key);
    return FALSE;
  }
  if (!ox_gguf_get_uint (source->gguf, key, &found)) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: metadata key “%s” is not a non-negative integer", source->file,
                 key);
    return FALSE;
  }
  if (found < min || found > max) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED,
                 "%s: metadata key “%s” is %" G_GUINT64_FORMAT ", an integer from %u to %u was expected", source->file,
                 key, found, min, max);
    return FALSE;
  }
  *value = (guint) found;
  return TRUE;
}

/* Above 0 and at most @max. NaN as @default_value: the key is required. */
static gboolean
read_positive (const Source *source, const char *name, double max, double default_value, double *value, GError **error)
{
  g_autofree char *key = key_of (source, name);

  if (!ox_gguf_has (source->gguf, key)) {
    *value = default_value;
    if (!isnan (default_value))
      return TRUE;
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: metadata key “%s” is missing", source->file, key);
    return FALSE;
  }
  if (!ox_gguf_get_float (source->gguf, key, value)) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: metadata key “%s” is not a number", source->file, key);
    return FALSE;
  }
  if (!(*value > 0 && *value <= max)) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED,
                 "%s: metadata key “%s” is %g, a number above 0 and at most %g was expected", source->file, key, *value,
                 max);
    return FALSE;
  }
  return TRUE;
}

static gboolean
unsupported (GError **error, const Source *source, const char *name, const char *what)
{
  g_autofree char *key = key_of (source, name);

  g_set_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED, "%s: metadata key “%s”: %s, which this version cannot run",
               source->file, key, what);
  return FALSE;
}

static gboolean
check_variants (const Source *source, const OxConfig *config, GError **error)
{
  static const char *const caps[] = { "attn_logit_softcapping", "final_logit_softcapping" };
  guint experts, rope_dims, value_dims;

  if (!read_uint (source, "expert_count", 0, G_MAXUINT, G_MAXUINT, &experts, error) ||
      !read_uint (source, "rope.dimension_count", 0, G_MAXUINT, config->head_dim, &rope_dims, error) ||
      !read_uint (source, "attention.value_length", 0, G_MAXUINT, config->head_dim, &value_dims, error))
    return FALSE;
  if (experts > 0 && experts < G_MAXUINT)
    return unsupported (error, source, "expert_count", "the model is a mixture of experts");
  if (rope_dims != config->head_dim)
    return unsupported (error, source, "rope.dimension_count", "only a part of each head is rotated");
  if (value_dims != config->head_dim)
    return unsupported (error, source, "attention.value_length", "keys and values have different sizes");
  for (guint i = 0; i < G_N_ELEMENTS (caps); i++) {
    g_autofree char *key = key_of (source, caps[i]);
    double cap;

    if (ox_gguf_get_float (source->gguf, key, &cap) && cap != 0)
      return unsupported (error, source, caps[i], "scores are capped");
  }
  if (source->weights && !config->attention_bias && ox_weights_find (source->weights, "blk.0.attn_q.bias")) {
    g_set_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED,
                 "%s: has tensor “blk.0.attn_q.bias”, which this version cannot use in a model of kind “%s”",
                 source->file, source->architecture);
    return FALSE;
  }
  return TRUE;
}

/* The vocabulary is as large as the embedding; what the metadata says must agree. */
static gboolean
read_vocab (const Source *source, OxConfig *config, GError **error)
{
  const OxTensorInfo *embedding = source->weights ? ox_weights_find (source->weights, "token_embd.weight") : NULL;
  gsize n_tokens = ox_gguf_get_array_length (source->gguf, "tokenizer.ggml.tokens");
  g_autofree char *key = key_of (source, "vocab_size");
  guint rows = (guint) MIN (n_tokens, G_MAXUINT);

  if (embedding) {
    if (embedding->n_dims != 2 || embedding->dims[0] == 0 || embedding->dims[0] > OX_CONFIG_MAX_VOCAB ||
        embedding->dims[1] != config->hidden_size) {
      g_autofree char *shape = ox_tensor_describe (embedding);

      g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED,
                   "%s: tensor “token_embd.weight” is %s, but “%s.embedding_length” is %u", source->file, shape,
                   source->architecture, config->hidden_size);
      return FALSE;
    }
    rows = (guint) embedding->dims[0];
    if (n_tokens > rows) {
      g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED,
                   "%s: metadata key “tokenizer.ggml.tokens” has %" G_GSIZE_FORMAT
                   " tokens, but tensor “token_embd.weight” has %u rows",
                   source->file, n_tokens, rows);
      return FALSE;
    }
  }
  if (!read_uint (source, "vocab_size", 1, OX_CONFIG_MAX_VOCAB, rows, &config->vocab_size, error))
    return FALSE;
  if (embedding && config->vocab_size != rows) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED,
                 "%s: metadata key “%s” is %u, but tensor “token_embd.weight” has %u rows", source->file, key,
                 config->vocab_size, rows);
    return FALSE;
  }
  if (config->vocab_size > OX_CONFIG_MAX_VOCAB) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED,
                 "%s: metadata key “tokenizer.ggml.tokens” has %u tokens, at most %u were expected", source->file,
                 config->vocab_size, OX_CONFIG_MAX_VOCAB);
    return FALSE;
  }
  return TRUE;
}

static gboolean
read_sizes (const Source *source, OxConfig *config, GError **error)
{
  guint default_head_dim;
  g_autofree char *heads = key_of (source, "attention.head_count");
  g_autofree char *kv_heads = key_of (source, "attention.head_count_kv");
  g_autofree char *head_dim = key_of (source, "attention.key_length");

  if (!read_uint (source, "embedding_length", 1, OX_CONFIG_MAX_WIDTH, 0, &config->hidden_size, error) ||
      !read_uint (source, "feed_forward_length", 1, OX_CONFIG_MAX_WIDTH, 0, &config->intermediate_size, error) ||
      !read_uint (source, "block_count", 1, OX_CONFIG_MAX_LAYERS, 0, &config->num_hidden_layers, error) ||
      !read_uint (source, "attention.head_count", 1, OX_CONFIG_MAX_HEADS, 0, &config->num_attention_heads, error) ||
      !read_uint (source, "attention.head_count_kv", 1, OX_CONFIG_MAX_HEADS, config->num_attention_heads,
                  &config->num_key_value_heads, error) ||
      !read_uint (source, "context_length", 1, OX_CONFIG_MAX_POSITIONS, 0, &config->max_position_embeddings, error) ||
      !read_positive (source, "attention.layer_norm_rms_epsilon", 1, NAN, &config->rms_norm_eps, error))
    return FALSE;
  default_head_dim = config->hidden_size / config->num_attention_heads;
  if (!ox_gguf_has (source->gguf, head_dim) && config->hidden_size % config->num_attention_heads != 0) {
    g_set_error (
      error, OX_ERROR, OX_ERROR_DAMAGED,
      "%s: metadata key “%s.embedding_length” is %u, a multiple of “%s” (%u) was expected, as there is no “%s”",
      source->file, source->architecture, config->hidden_size, heads, config->num_attention_heads, head_dim);
    return FALSE;
  }
  if (!read_uint (source, "attention.key_length", 1, OX_CONFIG_MAX_HEAD_DIM, default_head_dim, &config->head_dim,
                  error))
    return FALSE;
  return ox_config_check_heads (config, source->file, heads, kv_heads, head_dim, error);
}

/* rope_freqs.weight: Llama 3's bands as one divisor a frequency. */
static gboolean
read_rope_factors (const Source *source, OxConfig *config, GError **error)
{
  const OxTensorInfo *tensor = source->weights ? ox_weights_find (source->weights, "rope_freqs.weight") : NULL;
  guint half = config->head_dim / 2;

  if (!tensor)
    return TRUE;
  if (!ox_tensor_check_shape (tensor, error, 1, (guint64) half))
    return FALSE;
  config->rope.freq_factors = ox_tensor_read_f32 (tensor, error);
  if (!config->rope.freq_factors)
    return FALSE;
  for (guint i = 0; i < half; i++) {
    float factor = config->rope.freq_factors[i];

    if (!(factor > 0 && isfinite (factor))) {
      g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED,
                   "%s: tensor “rope_freqs.weight” has %g at %u, a number above 0 was expected", source->file,
                   (double) factor, i);
      return FALSE;
    }
  }
  return TRUE;
}

static gboolean
read_ropes (const Source *source, OxConfig *config, GError **error)
{
  gboolean gemma = config->family == OX_FAMILY_GEMMA3;
  g_autofree char *type_key = key_of (source, "rope.scaling.type");
  g_autofree char *old_key = key_of (source, "rope.scale_linear");
  const char *type = ox_gguf_get_string (source->gguf, type_key);
  double local_theta;

  config->rope = (OxRopeConfig) { .type = OX_ROPE_DEFAULT, .factor = 1, .partial_rotary_factor = 1 };
  if (!read_positive (source, "rope.freq_base", 1e12, gemma ? 1e6 : 1e4, &config->rope.theta, error) ||
      !read_positive (source, "rope.freq_base_swa", 1e12, gemma ? 1e4 : config->rope.theta, &local_theta, error))
    return FALSE;
  if (type && strcmp (type, "linear") == 0) {
    config->rope.type = OX_ROPE_LINEAR;
    if (!read_positive (source, "rope.scaling.factor", 1e6, NAN, &config->rope.factor, error))
      return FALSE;
  } else if (type && strcmp (type, "none") != 0) {
    g_autofree char *quoted = ox_quote (type, -1);
    g_autofree char *what = g_strdup_printf ("positions are scaled by “%s”", quoted);

    return unsupported (error, source, "rope.scaling.type", what);
  } else if (!type && ox_gguf_has (source->gguf, old_key)) {
    config->rope.type = OX_ROPE_LINEAR;
    if (!read_positive (source, "rope.scale_linear", 1e6, NAN, &config->rope.factor, error))
      return FALSE;
  }
  /* Gemma 3 scales full layers only; elsewhere all layers rotate alike. */
  config->rope_sliding = config->rope;
  if (gemma)
    config->rope_sliding =
      (OxRopeConfig) { .type = OX_ROPE_DEFAULT, .theta = local_theta, .factor = 1, .partial_rotary_factor = 1 };
  return read_rope_factors (source, config, error);
}

/* Gemma 3: all layers slide but each @pattern-th; newer files may list the layers instead. */
static gboolean
read_layers (const Source *source, OxConfig *config, GError **error)
{
  g_autofree char *key = key_of (source, "attention.sliding_window_pattern");
  g_autofree gint64 *list = NULL;
  guint n = config->num_hidden_layers;
  guint pattern = 6;

  config->layer_kinds = g_new0 (OxLayerKind, n);
  if (config->family != OX_FAMILY_GEMMA3)
    return TRUE;
  if (!read_uint (source, "attention.sliding_window", 1, OX_CONFIG_MAX_POSITIONS, 0, &config->sliding_window, error))
    return FALSE;
  if (ox_gguf_get_array_length (source->gguf, key) > 0) {
    list = g_new (gint64, n);
    if (!ox_gguf_get_array_int (source->gguf, key, list, n)) {
      g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: metadata key “%s” is not a list of %u booleans",
                   source->file, key, n);
      return FALSE;
    }
  } else if (!read_uint (source, "attention.sliding_window_pattern", 1, OX_CONFIG_MAX_LAYERS, 6, &pattern, error))
    return FALSE;
  for (guint i = 0; i < n; i++)
    config->layer_kinds[i] = (list ? list[i] != 0 : (i + 1) % pattern != 0) ? OX_LAYER_SLIDING : OX_LAYER_FULL;
  return TRUE;
}

/* @value -1: the key is missing. */
static gboolean
read_id (const Source *source, const OxConfig *config, const char *key, gint64 *value, GError **error)
{
  guint64 id;

  *value = -1;
  if (!ox_gguf_has (source->gguf, key))
    return TRUE;
  if (!ox_gguf_get_uint (source->gguf, key, &id)) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: metadata key “%s” is not a token id", source->file, key);
    return FALSE;
  }
  if (!ox_config_check_id (config, id, source->file, key, error))
    return FALSE;
  *value = (gint64) id;
  return TRUE;
}

/* Files name one id that ends a text and seldom the one that ends a turn, so the usual control tokens are looked for, too. */
static gboolean
read_special_ids (const Source *source, OxConfig *config, GError **error)
{
  static const char *const keys[] = { "tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                      "tokenizer.ggml.eom_token_id" };
  static const char *const texts[] = { "<|im_end|>", "<end_of_turn>", "<|eot_id|>", "<|endoftext|>",
                                       "<|end_of_text|>" };
  gsize n = MIN (ox_gguf_get_array_length (source->gguf, "tokenizer.ggml.tokens"), config->vocab_size);
  g_autofree gint64 *types = g_new (gint64, MAX (n, 1));
  gint64 id;

  if (!read_id (source, config, "tokenizer.ggml.bos_token_id", &config->bos_token_id, error))
    return FALSE;
  for (guint i = 0; i < G_N_ELEMENTS (keys); i++) {
    if (!read_id (source, config, keys[i], &id, error))
      return FALSE;
    if (id >= 0)
      ox_config_add_eos (config, (guint32) id);
  }
  if (!ox_gguf_get_array_int (source->gguf, "tokenizer.ggml.token_type", types, n))
    return TRUE;
  for (gsize i = 0; i < n; i++) {
    const char *text;
    gsize len;

    if (types[i] != 3) /* control */
      continue;
    text = ox_gguf_get_array_string (source->gguf, "tokenizer.ggml.tokens", i, &len);
    for (guint j = 0; text && j < G_N_ELEMENTS (texts); j++) {
      if (len == strlen (texts[j]) && memcmp (text, texts[j], len) == 0)
        ox_config_add_eos (config, (guint32) i);
    }
  }
  return TRUE;
}

OxConfig *
ox_config_from_gguf (OxGguf *gguf, OxWeights *weights, const char *file_name, GError **error)
{
  g_autoptr (OxConfig) config = ox_config_new ();
  Source source = { gguf, weights, file_name, ox_gguf_get_string (gguf, "general.architecture") };
  const Kind *kind = NULL;

  if (!source.architecture) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: metadata key “general.architecture” is missing or no string",
                 file_name);
    return NULL;
  }
  for (guint i = 0; i < G_N_ELEMENTS (kinds); i++) {
    if (strcmp (source.architecture, kinds[i].architecture) == 0)
      kind = &kinds[i];
  }
  if (!kind) {
    ox_config_set_unknown_kind (error, file_name, source.architecture);
    return NULL;
  }
  config->from_gguf = TRUE;
  config->family = kind->family;
  config->architecture = g_strdup (kind->architecture);
  config->name = g_strdup (ox_gguf_get_string (gguf, "general.name"));
  config->attention_bias = kind->attention_bias;
  config->qk_norm = kind->qk_norm;
  config->permuted_qk = kind->permuted_qk;
  if (!read_sizes (&source, config, error) || !read_vocab (&source, config, error) ||
      !check_variants (&source, config, error) || !read_ropes (&source, config, error) ||
      !read_layers (&source, config, error) || !read_special_ids (&source, config, error))
    return NULL;
  config->tie_word_embeddings = weights && !ox_weights_find (weights, "output.weight");
  config->query_pre_attn_scalar = config->head_dim;
  /* Only the 27B, told by its 62 layers, has a scale that is not its head size's. */
  if (kind->family == OX_FAMILY_GEMMA3 && config->num_hidden_layers == 62)
    config->query_pre_attn_scalar = (double) config->hidden_size / config->num_attention_heads;
  return g_steal_pointer (&config);
}
