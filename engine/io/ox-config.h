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
  OX_FAMILY_GEMMA4,           /* text of E2B, E4B, 12B (unified), 26B-A4B, 31B */
  OX_FAMILY_GEMMA4_ASSISTANT, /* their drafters */
  OX_FAMILY_QWEN35,           /* Qwen 3.5, 3.6, 3.8 dense hybrids */
} OxFamily;

typedef enum {
  OX_LAYER_FULL,    /* attention over everything */
  OX_LAYER_SLIDING, /* attention over the last sliding_window positions */
  OX_LAYER_LINEAR,  /* gated delta rule */
} OxLayerKind;

typedef enum {
  OX_ROPE_DEFAULT,
  OX_ROPE_LINEAR,       /* frequencies divided by factor */
  OX_ROPE_LLAMA3,       /* frequency bands: see ox-rope.c */
  OX_ROPE_PROPORTIONAL, /* Gemma 4: frequencies of the whole head, all but the first partial_rotary_factor of them 0 */
} OxRopeType;

typedef struct {
  OxRopeType type;
  double theta;
  double factor;
  /* 1: the whole head. DEFAULT type with less: the first head_dim · this rotate, as a head of that size. */
  double partial_rotary_factor;
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
  OxLayerKind *layer_kinds;     /* [num_hidden_layers] */
  OxRopeConfig rope;            /* full-attention layers */
  OxRopeConfig rope_sliding;    /* sliding layers */
  double final_logit_softcapping; /* 0: none */

  /* Gemma 4. num_key_value_heads and head_dim are those of sliding layers. */
  guint global_head_dim;             /* of full layers */
  guint num_global_key_value_heads;  /* of full layers */
  gboolean attention_k_eq_v;         /* full layers have no v_proj: values are the keys before norm and rotation */
  guint num_kv_shared_layers;        /* the last ones, which read the keys and values of an earlier layer */
  gboolean use_double_wide_mlp;      /* those have an MLP of twice the width */
  guint hidden_size_per_layer_input; /* PLE; 0: none */
  guint vocab_size_per_layer_input;  /* rows of its table */
  guint num_experts, top_k_experts;  /* 0: no mixture of experts */
  guint moe_intermediate_size;
  /* Gemma 4 assistant */
  guint backbone_hidden_size;      /* of the model it drafts for */
  gboolean use_ordered_embeddings; /* centroid head */
  guint num_centroids, centroid_intermediate_top_k;

  /* Qwen 3.5 */
  guint linear_num_key_heads, linear_num_value_heads;
  guint linear_key_head_dim, linear_value_head_dim;
  guint linear_conv_kernel_dim;
  /* GGUF: value head j belongs to key head j % key heads and not to j / (value heads / key heads). */
  gboolean linear_heads_tiled;
  guint mtp_num_hidden_layers; /* of the file; its weights may still be absent */

  gint64 bos_token_id;        /* -1: none */
  GArray *eos_token_ids;      /* guint32: all that end a turn */
  GArray *suppress_token_ids; /* guint32: never to be sampled (generation_config.json) */
  gboolean from_gguf;
} OxConfig;

/* ---- What follows from these, by layer ---- */

gboolean ox_config_is_sliding (const OxConfig *config, guint layer);
guint ox_config_head_dim (const OxConfig *config, guint layer);
guint ox_config_kv_heads (const OxConfig *config, guint layer);
guint ox_config_intermediate_size (const OxConfig *config, guint layer);
/* The layer whose keys and values @layer reads: itself, or for Gemma 4's shared layers the last one of its kind that has its own. */
guint ox_config_kv_layer (const OxConfig *config, guint layer);

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
