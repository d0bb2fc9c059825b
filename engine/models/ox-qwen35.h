/* What Qwen 3.5 and its MTP layer have in common.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "models/ox-network.h"
#include "models/ox-rope.h"

typedef struct {
  OxVector *input_layernorm;
  /* Full attention */
  OxMatrix *q_proj, *q_gate, *k_proj, *v_proj, *o_proj;
  OxVector *q_norm, *k_norm;
  /* Linear attention */
  OxMatrix *in_proj_qkv, *in_proj_z, *in_proj_b, *in_proj_a, *out_proj;
  OxVector *conv1d; /* [channels, taps] */
  OxVector *decay;  /* [value_heads], -exp(A_log) */
  OxVector *dt_bias;
  OxVector *linear_norm;
  /* MLP */
  OxVector *post_attention_layernorm;
  OxMatrix *gate_proj, *up_proj, *down_proj;
} OxQwen35Layer;

typedef struct {
  OxNetwork base;
  const OxConfig *config;
  OxEmbedding *embed_tokens;
  OxQwen35Layer *layers;
  OxVector *norm;
  OxMatrix *lm_head;
  float *frequencies; /* of the rotated part of a head */
} OxQwen35;

/* @prefix: "layers.%u." or "mtp.layers.%u.". */
void ox_qwen35_load_layer (OxLoader *loader, const char *prefix, guint layer, gboolean linear, OxQwen35Layer *l);
/* From the working tensor h, after input_layernorm, to h. */
void ox_qwen35_attention (
  const OxQwen35Layer *l, OxState *state, const OxConfig *config, OxKv *kv, guint n, guint position);
/* From the working tensor x to h. */
void ox_qwen35_feed_forward (const OxQwen35Layer *l, OxState *state, const OxConfig *config, guint n);
