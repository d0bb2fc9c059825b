/* Llama and its kin: SmolLM2, Llama 3, Mistral, and with a flag each Qwen 2.5 (biases) and Qwen 3 (norms on q and k).
 *
 * Touvron et al. 2023; grouped queries, rotary positions, SwiGLU, RMS norm before each half of a layer.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "models/ox-network.h"
#include "models/ox-rope.h"

#include <math.h>

typedef struct {
  OxVector *input_layernorm;
  OxMatrix *q_proj, *k_proj, *v_proj, *o_proj;
  OxVector *q_bias, *k_bias, *v_bias; /* NULL: none */
  OxVector *q_norm, *k_norm;          /* NULL: none */
  OxVector *post_attention_layernorm;
  OxMatrix *gate_proj, *up_proj, *down_proj;
} Layer;

typedef struct {
  OxNetwork base;
  const OxConfig *config;
  OxEmbedding *embed_tokens;
  Layer *layers;
  OxVector *norm;
  OxMatrix *lm_head;
  float *frequencies; /* [head_dim/2] */
} Llama;

static void
llama_free (OxNetwork *network)
{
  Llama *self = (Llama *) network;

  g_free (self->frequencies);
  g_free (self->layers);
  g_free (self);
}

static void
load_layer (OxLoader *loader, guint i, Layer *l)
{
  const OxConfig *c = loader->config;
  guint hidden = c->hidden_size;
  guint q_rows = c->num_attention_heads * c->head_dim;
  guint kv_rows = c->num_key_value_heads * c->head_dim;

  l->input_layernorm = ox_loader_norm (loader, "layers.%u.input_layernorm.weight", i, hidden);
  l->q_proj = ox_loader_qk_matrix (loader, "layers.%u.self_attn.q_proj.weight", i, q_rows, hidden);
  l->k_proj = ox_loader_qk_matrix (loader, "layers.%u.self_attn.k_proj.weight", i, kv_rows, hidden);
  l->v_proj = ox_loader_matrix (loader, "layers.%u.self_attn.v_proj.weight", i, kv_rows, hidden);
  l->o_proj = ox_loader_matrix (loader, "layers.%u.self_attn.o_proj.weight", i, hidden, q_rows);
  if (c->attention_bias) {
    l->q_bias = ox_loader_vector (loader, "layers.%u.self_attn.q_proj.bias", i, OX_VECTOR_AS_STORED, q_rows, 0);
    l->k_bias = ox_loader_vector (loader, "layers.%u.self_attn.k_proj.bias", i, OX_VECTOR_AS_STORED, kv_rows, 0);
    l->v_bias = ox_loader_vector (loader, "layers.%u.self_attn.v_proj.bias", i, OX_VECTOR_AS_STORED, kv_rows, 0);
  }
  if (c->qk_norm) {
    l->q_norm = ox_loader_norm (loader, "layers.%u.self_attn.q_norm.weight", i, c->head_dim);
    l->k_norm = ox_loader_norm (loader, "layers.%u.self_attn.k_norm.weight", i, c->head_dim);
  }
  l->post_attention_layernorm = ox_loader_norm (loader, "layers.%u.post_attention_layernorm.weight", i, hidden);
  l->gate_proj = ox_loader_matrix (loader, "layers.%u.mlp.gate_proj.weight", i, c->intermediate_size, hidden);
  l->up_proj = ox_loader_matrix (loader, "layers.%u.mlp.up_proj.weight", i, c->intermediate_size, hidden);
  l->down_proj = ox_loader_matrix (loader, "layers.%u.mlp.down_proj.weight", i, hidden, c->intermediate_size);
}

static OxNetwork *
llama_load (OxLoader *loader)
{
  const OxConfig *c = loader->config;
  Llama *self = g_new0 (Llama, 1);

  self->config = c;
  self->layers = g_new0 (Layer, c->num_hidden_layers);
  self->frequencies = ox_rope_frequencies (&c->rope, c->head_dim);
  self->embed_tokens = ox_loader_embedding (loader, "embed_tokens.weight", c->vocab_size, c->hidden_size);
  for (guint i = 0; i < c->num_hidden_layers && loader->error == NULL; i++)
    load_layer (loader, i, &self->layers[i]);
  self->norm = ox_loader_norm (loader, "norm.weight", 0, c->hidden_size);
  self->lm_head = ox_loader_head (loader);
  return &self->base;
}

static gboolean
llama_forward (OxNetwork *network,
               OxState *state,
               const guint32 *ids,
               guint n,
               guint position,
               OxLogits logits,
               float *logits_out,
               GCancellable *cancellable,
               GError **error)
{
  Llama *self = (Llama *) network;
  const OxConfig *c = self->config;
  OxOps *ops = state->ops;
  float eps = (float) c->rms_norm_eps;
  float scale = (float) (1.0 / sqrt (c->query_pre_attn_scalar));
  OxTensor x = ox_tensor_view (&state->work.x, 0, n);       /* [n, hidden], the residual stream */
  OxTensor h = ox_tensor_view (&state->work.h, 0, n);       /* [n, hidden] */
  OxTensor q = ox_tensor_view (&state->work.q, 0, n);       /* [n, heads · head_dim] */
  OxTensor k = ox_tensor_view (&state->work.k, 0, n);       /* [n, kv_heads · head_dim] */
  OxTensor v = ox_tensor_view (&state->work.v, 0, n);       /* [n, kv_heads · head_dim] */
  OxTensor a = ox_tensor_view (&state->work.a, 0, n);       /* [n, heads · head_dim] */
  OxTensor gate = ox_tensor_view (&state->work.gate, 0, n); /* [n, intermediate] */
  OxTensor up = ox_tensor_view (&state->work.up, 0, n);     /* [n, intermediate] */

  ox_rope_angles (self->frequencies, c->head_dim / 2, position, n, state->cos, state->sin);
  ops->begin (ops, cancellable);
  ops->embed (ops, &x, self->embed_tokens, ids, 1);
  ox_state_trace (state, "hidden", 0, &x);

  for (guint i = 0; i < c->num_hidden_layers; i++) {
    Layer *l = &self->layers[i];
    guint window = ox_config_is_sliding (c, i) ? c->sliding_window : 0;

    /* Attention */
    ops->rms_norm (ops, &h, &x, l->input_layernorm, h.cols, eps);
    ops->linear (ops, &h, 3, (OxMatrix *[]) { l->q_proj, l->k_proj, l->v_proj }, (OxTensor *[]) { &q, &k, &v });
    if (l->q_bias != NULL) {
      ops->add_bias (ops, &q, l->q_bias);
      ops->add_bias (ops, &k, l->k_bias);
      ops->add_bias (ops, &v, l->v_bias);
    }
    if (l->q_norm != NULL) {
      ops->rms_norm (ops, &q, &q, l->q_norm, c->head_dim, eps);
      ops->rms_norm (ops, &k, &k, l->k_norm, c->head_dim, eps);
    }
    ops->rope (ops, &q, state->cos, state->sin, c->head_dim, c->head_dim);
    ops->rope (ops, &k, state->cos, state->sin, c->head_dim, c->head_dim);
    ops->kv_write (ops, state->kv[i], &k, &v, position);
    ops->attention (ops, &a, &q, state->kv[i], position, window, scale);
    ops->linear (ops, &a, 1, &l->o_proj, (OxTensor *[]) { &h });
    ops->add (ops, &x, &h);

    /* MLP: down(silu(gate · h) · (up · h)) */
    ops->rms_norm (ops, &h, &x, l->post_attention_layernorm, h.cols, eps);
    ops->linear (ops, &h, 2, (OxMatrix *[]) { l->gate_proj, l->up_proj }, (OxTensor *[]) { &gate, &up });
    ops->gated (ops, &gate, &gate, &up, OX_GATE_SILU);
    ops->linear (ops, &gate, 1, &l->down_proj, (OxTensor *[]) { &h });
    ops->add (ops, &x, &h);
    ox_state_trace (state, "hidden", i + 1, &x);
  }

  if (ox_state_wants_final_norm (state, logits)) {
    ops->rms_norm (ops, &h, &x, self->norm, h.cols, eps);
    ox_state_trace (state, "final_norm", 0, &h);
    ox_state_logits (state, self->lm_head, &h, logits, logits_out);
  }
  return ops->finish (ops, error);
}

const OxNetworkClass ox_llama_class = {
  .load = llama_load,
  .free = llama_free,
  .forward = llama_forward,
};
