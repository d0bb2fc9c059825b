/* Gemma 4, text: E2B and E4B (per-layer embeddings, shared keys and values), 12B and 31B (keys that are values in full layers), 26B-A4B
 * (a mixture of experts beside the MLP).
 *
 * The network as transformers' Gemma4TextModel computes it. What sets it apart from Gemma 3: norms multiply by w and not by 1 + w,
 * attention scores are not scaled, values are normalised, full layers have heads of their own size, each layer ends with a factor.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "models/ox-gemma4.h"

#include <math.h>

static void
gemma4_free (OxNetwork *network)
{
  OxGemma4 *self = (OxGemma4 *) network;

  for (guint i = 0; i < self->config->num_hidden_layers; i++)
    ox_experts_clear (&self->layers[i].experts);
  g_free (self->frequencies);
  g_free (self->frequencies_sliding);
  g_free (self->layers);
  g_free (self);
}

static void
load_experts (OxLoader *loader, guint i, OxGemma4Layer *l)
{
  const OxConfig *c = loader->config;
  guint hidden = c->hidden_size;

  l->router_proj =
    ox_loader_matrix_for (loader, "layers.%u.router.proj.weight", i, OX_MATRIX_SMALL, c->num_experts, hidden);
  l->router_scale = ox_loader_vector (loader, "layers.%u.router.scale", i, OX_VECTOR_AS_STORED, hidden, 0);
  l->experts = (OxExperts) {
    .n_experts = c->num_experts,
    .top_k = c->top_k_experts,
    .gate_kind = OX_GATE_GELU_TANH,
    .width = c->moe_intermediate_size,
    .scale = ox_loader_vector (loader, "layers.%u.router.per_expert_scale", i, OX_VECTOR_AS_STORED, c->num_experts, 0),
  };
  ox_loader_experts (loader, i, &l->experts);
  l->pre_feedforward_layernorm_2 = ox_loader_norm (loader, "layers.%u.pre_feedforward_layernorm_2.weight", i, hidden);
  l->post_feedforward_layernorm_1 = ox_loader_norm (loader, "layers.%u.post_feedforward_layernorm_1.weight", i, hidden);
  l->post_feedforward_layernorm_2 = ox_loader_norm (loader, "layers.%u.post_feedforward_layernorm_2.weight", i, hidden);
}

void
ox_gemma4_load_layer (OxLoader *loader, guint i, gboolean has_kv, OxGemma4Layer *l)
{
  const OxConfig *c = loader->config;
  guint hidden = c->hidden_size;
  guint head_dim = ox_config_head_dim (c, i);
  guint q_rows = c->num_attention_heads * head_dim;
  guint kv_rows = ox_config_kv_heads (c, i) * head_dim;
  guint intermediate = ox_config_intermediate_size (c, i);
  guint ple = c->hidden_size_per_layer_input;

  l->input_layernorm = ox_loader_norm (loader, "layers.%u.input_layernorm.weight", i, hidden);
  l->q_proj = ox_loader_matrix (loader, "layers.%u.self_attn.q_proj.weight", i, q_rows, hidden);
  l->q_norm = ox_loader_norm (loader, "layers.%u.self_attn.q_norm.weight", i, head_dim);
  if (has_kv) {
    l->k_proj = ox_loader_matrix (loader, "layers.%u.self_attn.k_proj.weight", i, kv_rows, hidden);
    l->k_norm = ox_loader_norm (loader, "layers.%u.self_attn.k_norm.weight", i, head_dim);
    if (!c->attention_k_eq_v || ox_config_is_sliding (c, i))
      l->v_proj = ox_loader_matrix (loader, "layers.%u.self_attn.v_proj.weight", i, kv_rows, hidden);
  }
  l->o_proj = ox_loader_matrix (loader, "layers.%u.self_attn.o_proj.weight", i, hidden, q_rows);
  l->post_attention_layernorm = ox_loader_norm (loader, "layers.%u.post_attention_layernorm.weight", i, hidden);
  l->pre_feedforward_layernorm = ox_loader_norm (loader, "layers.%u.pre_feedforward_layernorm.weight", i, hidden);
  l->gate_proj = ox_loader_matrix (loader, "layers.%u.mlp.gate_proj.weight", i, intermediate, hidden);
  l->up_proj = ox_loader_matrix (loader, "layers.%u.mlp.up_proj.weight", i, intermediate, hidden);
  l->down_proj = ox_loader_matrix (loader, "layers.%u.mlp.down_proj.weight", i, hidden, intermediate);
  l->post_feedforward_layernorm = ox_loader_norm (loader, "layers.%u.post_feedforward_layernorm.weight", i, hidden);
  if (c->num_experts > 0)
    load_experts (loader, i, l);
  if (ple > 0) {
    l->per_layer_input_gate = ox_loader_matrix (loader, "layers.%u.per_layer_input_gate.weight", i, ple, hidden);
    l->per_layer_projection = ox_loader_matrix (loader, "layers.%u.per_layer_projection.weight", i, hidden, ple);
    l->post_per_layer_input_norm = ox_loader_norm (loader, "layers.%u.post_per_layer_input_norm.weight", i, hidden);
  }
  l->layer_scalar = ox_loader_scalar (loader, "layers.%u.layer_scalar", i);
}

static OxNetwork *
gemma4_load (OxLoader *loader)
{
  const OxConfig *c = loader->config;
  OxGemma4 *self = g_new0 (OxGemma4, 1);
  guint ple = c->hidden_size_per_layer_input * c->num_hidden_layers;

  self->config = c;
  self->layers = g_new0 (OxGemma4Layer, c->num_hidden_layers);
  self->frequencies = ox_rope_frequencies (&c->rope, c->global_head_dim);
  self->frequencies_sliding = ox_rope_frequencies (&c->rope_sliding, c->head_dim);
  self->embed_tokens = ox_loader_embedding (loader, "embed_tokens.weight", c->vocab_size, c->hidden_size);
  if (ple > 0) {
    self->embed_tokens_per_layer =
      ox_loader_embedding (loader, "embed_tokens_per_layer.weight", c->vocab_size_per_layer_input, ple);
    self->per_layer_model_projection =
      ox_loader_matrix (loader, "per_layer_model_projection.weight", 0, ple, c->hidden_size);
    self->per_layer_projection_norm =
      ox_loader_norm (loader, "per_layer_projection_norm.weight", 0, c->hidden_size_per_layer_input);
  }
  for (guint i = 0; i < c->num_hidden_layers && loader->error == NULL; i++)
    ox_gemma4_load_layer (loader, i, ox_config_kv_layer (c, i) == i, &self->layers[i]);
  self->norm = ox_loader_norm (loader, "norm.weight", 0, c->hidden_size);
  self->lm_head = ox_loader_head (loader);
  return &self->base;
}

/* The inputs of all layers that come from the tokens themselves: ple = (RMS(W·x / √hidden) + table[ids]·√P) / √2, [n, layers · P]. */
static void
per_layer_inputs (OxGemma4 *self, OxState *state, const guint32 *ids, const OxTensor *x)
{
  const OxConfig *c = self->config;
  OxOps *ops = state->ops;
  guint size = c->hidden_size_per_layer_input;
  OxTensor ple = ox_tensor_view (&state->work.ple, 0, x->rows);
  OxTensor table = ox_tensor_view (&state->work.ple_table, 0, x->rows);

  ops->embed (ops, &table, self->embed_tokens_per_layer, ids, sqrtf ((float) size));
  ops->linear (ops, x, 1, &self->per_layer_model_projection, (OxTensor *[]) { &ple });
  ops->scale (ops, &ple, 1 / sqrtf ((float) c->hidden_size));
  ops->rms_norm (ops, &ple, &ple, self->per_layer_projection_norm, size, (float) c->rms_norm_eps);
  ops->add (ops, &ple, &table);
  ops->scale (ops, &ple, (float) G_SQRT2 / 2);
  ox_state_trace (state, "ple", 0, &ple);
}

/* x += RMS(attention(RMS(x))) */
void
ox_gemma4_attention (const OxGemma4Layer *l, OxState *state, const OxConfig *c, guint i, OxKv *kv, OxGemma4Span span)
{
  OxOps *ops = state->ops;
  float eps = (float) c->rms_norm_eps;
  gboolean sliding = ox_config_is_sliding (c, i);
  guint head_dim = ox_config_head_dim (c, i);
  guint q_cols = c->num_attention_heads * head_dim;
  guint kv_cols = ox_config_kv_heads (c, i) * head_dim;
  const float *cos = sliding ? state->cos_sliding : state->cos;
  const float *sin = sliding ? state->sin_sliding : state->sin;
  OxTensor x = ox_tensor_view (&state->work.x, 0, span.n);
  OxTensor h = ox_tensor_view (&state->work.h, 0, span.n);
  OxTensor q = ox_tensor_shaped (&state->work.q, span.n, q_cols);  /* [n, heads · head_dim] */
  OxTensor a = ox_tensor_shaped (&state->work.a, span.n, q_cols);  /* [n, heads · head_dim] */
  OxTensor k = ox_tensor_shaped (&state->work.k, span.n, kv_cols); /* [n, kv_heads · head_dim] */
  OxTensor v = ox_tensor_shaped (&state->work.v, span.n, kv_cols); /* [n, kv_heads · head_dim] */

  ops->rms_norm (ops, &h, &x, l->input_layernorm, h.cols, eps);
  if (l->k_proj == NULL) {
    ops->linear (ops, &h, 1, &l->q_proj, (OxTensor *[]) { &q });
  } else {
    OxMatrix *projections[] = { l->q_proj, l->k_proj, l->v_proj };

    ops->linear (ops, &h, l->v_proj != NULL ? 3 : 2, projections, (OxTensor *[]) { &q, &k, &v });
    /* Values are normalised without a gain and never rotated; without a projection of their own they are the raw keys. */
    ops->rms_norm (ops, &v, l->v_proj != NULL ? &v : &k, NULL, head_dim, eps);
    ops->rms_norm (ops, &k, &k, l->k_norm, head_dim, eps);
    ops->rope (ops, &k, cos, sin, head_dim, head_dim);
    ops->kv_write (ops, kv, &k, &v, span.position);
  }
  ops->rms_norm (ops, &q, &q, l->q_norm, head_dim, eps);
  ops->rope (ops, &q, cos, sin, head_dim, head_dim);
  ops->attention (ops, &a, &q, kv, span.last_key, sliding ? span.window : 0, 1.0f);
  ops->linear (ops, &a, 1, &l->o_proj, (OxTensor *[]) { &h });
  ops->rms_norm (ops, &h, &h, l->post_attention_layernorm, h.cols, eps);
  ops->add (ops, &x, &h);
}

/* x += RMS(down(gelu(gate · RMS(x)) · (up · RMS(x)))), in a mixture of experts beside that of the chosen ones. */
void
ox_gemma4_feed_forward (const OxGemma4Layer *l, OxState *state, const OxConfig *c, guint i, guint n)
{
  OxOps *ops = state->ops;
  float eps = (float) c->rms_norm_eps;
  guint intermediate = ox_config_intermediate_size (c, i);
  OxTensor x = ox_tensor_view (&state->work.x, 0, n);
  OxTensor h = ox_tensor_view (&state->work.h, 0, n);
  OxTensor gate = ox_tensor_shaped (&state->work.gate, n, intermediate); /* [n, intermediate] */
  OxTensor up = ox_tensor_shaped (&state->work.up, n, intermediate);     /* [n, intermediate] */

  ops->rms_norm (ops, &h, &x, l->pre_feedforward_layernorm, h.cols, eps);
  ops->linear (ops, &h, 2, (OxMatrix *[]) { l->gate_proj, l->up_proj }, (OxTensor *[]) { &gate, &up });
  ops->gated (ops, &gate, &gate, &up, OX_GATE_GELU_TANH);
  ops->linear (ops, &gate, 1, &l->down_proj, (OxTensor *[]) { &h });
  if (c->num_experts > 0) {
    OxTensor router = ox_tensor_view (&state->work.router, 0, n); /* [n, experts] */
    OxTensor y = ox_tensor_view (&state->work.moe, 0, n);         /* [n, hidden] */
    OxTensor r = ox_tensor_view (&state->work.moe_input, 0, n);   /* [n, hidden] */

    ops->rms_norm (ops, &h, &h, l->post_feedforward_layernorm_1, h.cols, eps);
    ops->rms_norm (ops, &r, &x, l->router_scale, r.cols, eps);
    ops->scale (ops, &r, 1 / sqrtf ((float) c->hidden_size));
    ops->linear (ops, &r, 1, &l->router_proj, (OxTensor *[]) { &router });
    ops->rms_norm (ops, &r, &x, l->pre_feedforward_layernorm_2, r.cols, eps);
    ops->moe (ops, &y, &r, &router, &l->experts);
    ops->rms_norm (ops, &y, &y, l->post_feedforward_layernorm_2, y.cols, eps);
    ops->add (ops, &h, &y);
  }
  ops->rms_norm (ops, &h, &h, l->post_feedforward_layernorm, h.cols, eps);
  ops->add (ops, &x, &h);
}

/* x += RMS(projection · (gelu(gate · x) · ple[layer])) */
static void
add_per_layer_input (const OxGemma4Layer *l, OxState *state, const OxConfig *c, guint i, guint n)
{
  OxOps *ops = state->ops;
  guint size = c->hidden_size_per_layer_input;
  OxTensor x = ox_tensor_view (&state->work.x, 0, n);
  OxTensor h = ox_tensor_view (&state->work.h, 0, n);
  OxTensor ple = ox_tensor_view (&state->work.ple, 0, n);       /* [n, layers · P] */
  OxTensor gate = ox_tensor_view (&state->work.ple_gate, 0, n); /* [n, P] */

  ops->linear (ops, &x, 1, &l->per_layer_input_gate, (OxTensor *[]) { &gate });
  ops->gated_columns (ops, &gate, &gate, &ple, i * size, OX_GATE_GELU_TANH);
  ops->linear (ops, &gate, 1, &l->per_layer_projection, (OxTensor *[]) { &h });
  ops->rms_norm (ops, &h, &h, l->post_per_layer_input_norm, h.cols, (float) c->rms_norm_eps);
  ops->add (ops, &x, &h);
}

static gboolean
gemma4_forward (OxNetwork *network,
                OxState *state,
                const guint32 *ids,
                guint n,
                guint position,
                OxLogits logits,
                float *logits_out,
                GCancellable *cancellable,
                GError **error)
{
  OxGemma4 *self = (OxGemma4 *) network;
  const OxConfig *c = self->config;
  OxOps *ops = state->ops;
  OxTensor x = ox_tensor_view (&state->work.x, 0, n); /* [n, hidden], the residual stream */
  OxTensor h = ox_tensor_view (&state->work.h, 0, n); /* [n, hidden] */
  OxGemma4Span span = { .n = n, .position = position, .last_key = position, .window = c->sliding_window };

  ox_rope_angles (self->frequencies, c->global_head_dim / 2, position, n, state->cos, state->sin);
  ox_rope_angles (self->frequencies_sliding, c->head_dim / 2, position, n, state->cos_sliding, state->sin_sliding);
  ops->begin (ops, cancellable);
  ops->embed (ops, &x, self->embed_tokens, ids, sqrtf ((float) c->hidden_size));
  ox_state_trace (state, "hidden", 0, &x);
  if (c->hidden_size_per_layer_input > 0)
    per_layer_inputs (self, state, ids, &x);

  for (guint i = 0; i < c->num_hidden_layers; i++) {
    const OxGemma4Layer *l = &self->layers[i];

    ox_gemma4_attention (l, state, c, i, state->kv[ox_config_kv_layer (c, i)], span);
    ox_gemma4_feed_forward (l, state, c, i, n);
    if (c->hidden_size_per_layer_input > 0)
      add_per_layer_input (l, state, c, i, n);
    ops->scale (ops, &x, l->layer_scalar);
    ox_state_trace (state, "hidden", i + 1, &x);
  }

  if (ox_state_wants_final_norm (state, logits)) {
    ops->rms_norm (ops, &h, &x, self->norm, h.cols, (float) c->rms_norm_eps);
    ox_state_trace (state, "final_norm", 0, &h);
    ox_state_logits (state, self->lm_head, &h, logits, logits_out);
  }
  return ops->finish (ops, error);
}

const OxNetworkClass ox_gemma4_class = {
  .load = gemma4_load,
  .free = gemma4_free,
  .forward = gemma4_forward,
};
