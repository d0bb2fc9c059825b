/* What Gemma 4 and its drafters have in common: the halves of a layer.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "models/ox-network.h"
#include "models/ox-rope.h"

typedef struct {
  OxVector *input_layernorm;
  OxMatrix *q_proj, *o_proj;
  OxMatrix *k_proj, *v_proj; /* NULL: reads another layer's; v_proj NULL alone: values are the raw keys */
  OxVector *q_norm, *k_norm;
  OxVector *post_attention_layernorm;
  OxVector *pre_feedforward_layernorm;
  OxMatrix *gate_proj, *up_proj, *down_proj;
  OxVector *post_feedforward_layernorm;
  float layer_scalar;
  /* Per-layer embeddings */
  OxMatrix *per_layer_input_gate, *per_layer_projection;
  OxVector *post_per_layer_input_norm;
  /* Mixture of experts */
  OxMatrix *router_proj;
  OxVector *router_scale;
  OxExperts experts;
  OxVector *pre_feedforward_layernorm_2, *post_feedforward_layernorm_1, *post_feedforward_layernorm_2;
} OxGemma4Layer;

typedef struct {
  OxNetwork base;
  const OxConfig *config;
  OxEmbedding *embed_tokens;
  OxEmbedding *embed_tokens_per_layer; /* [vocab, layers · P], read row by row */
  OxMatrix *per_layer_model_projection;
  OxVector *per_layer_projection_norm;
  OxGemma4Layer *layers;
  OxVector *norm;
  OxMatrix *lm_head;
  float *frequencies;         /* [global_head_dim/2], full layers */
  float *frequencies_sliding; /* [head_dim/2], sliding layers */
} OxGemma4;

/* Which rows attention runs for and what they see. */
typedef struct {
  guint n;        /* rows */
  guint position; /* of the first row, where its key goes */
  guint
    last_key; /* the newest key that the first row sees: its own, or for a drafter the newest of the model it drafts for */
  guint window; /* keys that a sliding layer sees */
} OxGemma4Span;

void ox_gemma4_load_layer (OxLoader *loader, guint layer, gboolean has_kv, OxGemma4Layer *l);
void ox_gemma4_attention (
  const OxGemma4Layer *l, OxState *state, const OxConfig *config, guint layer, OxKv *kv, OxGemma4Span span);
void ox_gemma4_feed_forward (const OxGemma4Layer *l, OxState *state, const OxConfig *config, guint layer, guint n);
