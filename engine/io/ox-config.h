/* A model's hyper-parameters, read from config.json or from GGUF metadata and checked for sense. Names are those of Hugging
 * Face's config.json.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "io/ox-weights.h"

typedef enum {
  OX_FAMILY_LLAMA,
  OX_FAMILY_GEMMA3,
} OxFamily;

typedef enum {
  OX_ROPE_DEFAULT,
  OX_ROPE_LINEAR, /* frequencies divided by factor */
  OX_ROPE_LLAMA3, /* frequency bands: see ox-rope.c */
} OxRopeType;

typedef struct {
  OxRopeType type;
  double theta;
  double factor;
  double low_freq_factor, high_freq_factor; /* llama3 */
  guint64 original_max_position_embeddings; /* llama3 */
  float *freq_factors; /* GGUF's rope_freqs.weight [head_dim/2] or NULL: frequencies are divided by these */
} OxRopeConfig;

typedef struct {
  OxFamily family;
  char *name;         /* for people, or NULL */
  char *architecture; /* "llama", "gemma3" as plan shows it */
  guint hidden_size;
  guint intermediate_size;
  guint num_hidden_layers;
  guint num_attention_heads;
  guint num_key_value_heads;
  guint head_dim;
  guint vocab_size;
  guint max_position_embeddings;
  double rms_norm_eps;
  gboolean tie_word_embeddings;
  gboolean attention_bias;      /* q, k, v have biases (Qwen 2) */
  gboolean qk_norm;             /* per-head norms on q and k (Gemma 3, Qwen 3) */
  gboolean norm_plus_one;       /* RMS norm multiplies by 1 + w (Gemma 3 safetensors; GGUF files hold 1 + w already) */
  gboolean permuted_qk;         /* q and k rows are in GGUF's interleaved-rope order (Llama GGUF) */
  double query_pre_attn_scalar; /* attention scale is its ^-0.5; head_dim unless the model says otherwise */
  guint sliding_window;         /* 0: none */
  gboolean *is_sliding;         /* [num_hidden_layers]; NULL: none is */
  OxRopeConfig rope;            /* full-attention layers */
  OxRopeConfig rope_sliding;    /* sliding layers */
  gint64 bos_token_id;          /* -1: none */
  GArray *eos_token_ids;        /* guint32: all that end a turn */
  gboolean from_gguf;
} OxConfig;

/* @path: as given to ox_weights_open(); config.json and generation_config.json are looked for beside the weights. Errors name the
 * file and the field. Unknown model types: OX_ERROR_UNSUPPORTED with the type's name. */
OxConfig *ox_config_load (const char *path, OxWeights *weights, GError **error);
/* The parts, for tests: one from JSON text, one from a GGUF header. */
OxConfig *ox_config_parse_json (const char *json, gsize len, const char *file_name, GError **error);
/* @weights may be NULL: then nothing is compared with the tensors and rope_freqs.weight is not read. */
OxConfig *ox_config_from_gguf (OxGguf *gguf, OxWeights *weights, const char *file_name, GError **error);
/* Adds the end-of-turn ids of a generation_config.json. */
gboolean ox_config_add_generation_json (
  OxConfig *config, const char *json, gsize len, const char *file_name, GError **error);
void ox_config_free (OxConfig *config);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (OxConfig, ox_config_free)
