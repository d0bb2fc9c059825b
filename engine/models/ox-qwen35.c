/* Qwen 3.5, 3.6 and 3.8, text: three layers of gated delta rule for each layer of gated full attention.
 *
 * The network as transformers' Qwen3_5TextModel computes it; the delta rule is that of Yang, Kautz & Hatamizadeh 2024, "Gated Delta
 * Networks". Norms multiply by 1 + w, except the one inside linear attention.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "models/ox-qwen35.h"

#include <math.h>

static void
qwen35_free (OxNetwork *network)
{
  OxQwen35 *self = (OxQwen35 *) network;

  g_free (self->frequencies);
  g_free (self->layers);
  g_free (self);
}

static void
load_linear_attention (OxLoader *loader, guint i, OxQwen35Layer *l)
{
  const OxConfig *c = loader->config;
  OxDeltaShape shape = ox_config_delta_shape (c);
  guint hidden = c->hidden_size;
  guint heads = shape.value_heads;
  guint values = heads * shape.value_dim;
  guint channels = ox_delta_channels (&shape);
  /* GGUF files hold -exp(A_log) already. */
  OxVectorForm decay = c->from_gguf ? OX_VECTOR_AS_STORED : OX_VECTOR_MINUS_EXP;

  l->in_proj_qkv = ox_loader_matrix (loader, "layers.%u.linear_attn.in_proj_qkv.weight", i, channels, hidden);
  l->in_proj_z = ox_loader_matrix (loader, "layers.%u.linear_attn.in_proj_z.weight", i, values, hidden);
  l->in_proj_b =
    ox_loader_matrix_for (loader, "layers.%u.linear_attn.in_proj_b.weight", i, OX_MATRIX_SMALL, heads, hidden);
  l->in_proj_a =
    ox_loader_matrix_for (loader, "layers.%u.linear_attn.in_proj_a.weight", i, OX_MATRIX_SMALL, heads, hidden);
  l->conv1d = ox_loader_vector (loader, "layers.%u.linear_attn.conv1d.weight", i, OX_VECTOR_AS_STORED, channels,
                                shape.conv_kernel);
  l->decay = ox_loader_vector (loader, "layers.%u.linear_attn.A_log", i, decay, heads, 0);
  l->dt_bias = ox_loader_vector (loader, "layers.%u.linear_attn.dt_bias", i, OX_VECTOR_AS_STORED, heads, 0);
  l->linear_norm =
    ox_loader_vector (loader, "layers.%u.linear_attn.norm.weight", i, OX_VECTOR_AS_STORED, shape.value_dim, 0);
  l->out_proj = ox_loader_matrix (loader, "layers.%u.linear_attn.out_proj.weight", i, hidden, values);
}

static void
load_attention (OxLoader *loader, const char *prefix, guint i, OxQwen35Layer *l)
{
  const OxConfig *c = loader->config;
  guint hidden = c->hidden_size;
  guint q_rows = c->num_attention_heads * c->head_dim;
  guint kv_rows = c->num_key_value_heads * c->head_dim;
  g_autofree char *q_proj = g_strconcat (prefix, "self_attn.q_proj.weight", NULL);
  g_autofree char *k_proj = g_strconcat (prefix, "self_attn.k_proj.weight", NULL);
  g_autofree char *v_proj = g_strconcat (prefix, "self_attn.v_proj.weight", NULL);
  g_autofree char *o_proj = g_strconcat (prefix, "self_attn.o_proj.weight", NULL);
  g_autofree char *q_norm = g_strconcat (prefix, "self_attn.q_norm.weight", NULL);
  g_autofree char *k_norm = g_strconcat (prefix, "self_attn.k_norm.weight", NULL);

  /* q_proj holds for each head its query and then its gate. */
  l->q_proj = ox_loader_paired_matrix (loader, q_proj, i, FALSE, c->head_dim, q_rows, hidden);
  l->q_gate = ox_loader_paired_matrix (loader, q_proj, i, TRUE, c->head_dim, q_rows, hidden);
  l->k_proj = ox_loader_matrix (loader, k_proj, i, kv_rows, hidden);
  l->v_proj = ox_loader_matrix (loader, v_proj, i, kv_rows, hidden);
  l->o_proj = ox_loader_matrix (loader, o_proj, i, hidden, q_rows);
  l->q_norm = ox_loader_norm (loader, q_norm, i, c->head_dim);
  l->k_norm = ox_loader_norm (loader, k_norm, i, c->head_dim);
}

void
ox_qwen35_load_layer (OxLoader *loader, const char *prefix, guint i, gboolean linear, OxQwen35Layer *l)
{
  const OxConfig *c = loader->config;
  guint hidden = c->hidden_size;
  g_autofree char *input_norm = g_strconcat (prefix, "input_layernorm.weight", NULL);
  g_autofree char *post_norm = g_strconcat (prefix, "post_attention_layernorm.weight", NULL);
  g_autofree char *gate = g_strconcat (prefix, "mlp.gate_proj.weight", NULL);
  g_autofree char *up = g_strconcat (prefix, "mlp.up_proj.weight", NULL);
  g_autofree char *down = g_strconcat (prefix, "mlp.down_proj.weight", NULL);

  l->input_layernorm = ox_loader_norm (loader, input_norm, i, hidden);
  if (linear)
    load_linear_attention (loader, i, l);
  else
    load_attention (loader, prefix, i, l);
  l->post_attention_layernorm = ox_loader_norm (loader, post_norm, i, hidden);
  l->gate_proj = ox_loader_matrix (loader, gate, i, c->intermediate_size, hidden);
  l->up_proj = ox_loader_matrix (loader, up, i, c->intermediate_size, hidden);
  l->down_proj = ox_loader_matrix (loader, down, i, hidden, c->intermediate_size);
}

static OxNetwork *
qwen35_load (OxLoader *loader)
{
  const OxConfig *c = loader->config;
  OxQwen35 *self = g_new0 (OxQwen35, 1);

  self->config = c;
  self->layers = g_new0 (OxQwen35Layer, c->num_hidden_layers);
  self->frequencies = ox_rope_frequencies (&c->rope, c->head_dim);
  self->embed_tokens = ox_loader_embedding (loader, "embed_tokens.weight", c->vocab_size, c->hidden_size);
  for (guint i = 0; i < c->num_hidden_layers && loader->error == NULL; i++)
    ox_qwen35_load_layer (loader, "layers.%u.", i, c->layer_kinds[i] == OX_LAYER_LINEAR, &self->layers[i]);
  self->norm = ox_loader_norm (loader, "norm.weight", 0, c->hidden_size);
  self->lm_head = ox_loader_head (loader);
  return &self->base;
}

/* h = out_proj · (RMS(delta_rule(silu(conv(qkv)), a, b)) · silu(z)) */
static void
linear_attention (const OxQwen35Layer *l, OxState *state, const OxConfig *c, guint i, guint n)
{
  OxOps *ops = state->ops;
  OxDeltaShape shape = ox_config_delta_shape (c);
  guint values = shape.value_heads * shape.value_dim;
  OxTensor h = ox_tensor_view (&state->work.h, 0, n);
  OxTensor qkv = ox_tensor_view (&state->work.qkv, 0, n);    /* [n, channels] */
  OxTensor conv = ox_tensor_view (&state->work.conv, 0, n);  /* [n, channels] */
  OxTensor z = ox_tensor_shaped (&state->work.z, n, values); /* [n, value_heads · value_dim] */
  OxTensor b = ox_tensor_view (&state->work.beta, 0, n);     /* [n, value_heads] */
  OxTensor a = ox_tensor_view (&state->work.alpha, 0, n);    /* [n, value_heads] */
  OxTensor o = ox_tensor_shaped (&state->work.a, n, values); /* [n, value_heads · value_dim] */

  ops->linear (ops, &h, 4, (OxMatrix *[]) { l->in_proj_qkv, l->in_proj_z, l->in_proj_b, l->in_proj_a },
               (OxTensor *[]) { &qkv, &z, &b, &a });
  ops->causal_conv (ops, &conv, &qkv, l->conv1d, state->recurrent[i]);
  ops->delta_rule (ops, &o, &conv, &b, &a, l->decay, l->dt_bias, state->recurrent[i]);
  ops->rms_norm (ops, &o, &o, l->linear_norm, shape.value_dim, (float) c->rms_norm_eps);
  ops->gated (ops, &o, &z, &o, OX_GATE_SILU);
  ops->linear (ops, &o, 1, &l->out_proj, (OxTensor *[]) { &h });
}

/* h = o_proj · (attention(RoPE(RMS(q)), RoPE(RMS(k)), v) · sigmoid(gate)) */
void
ox_qwen35_attention (const OxQwen35Layer *l, OxState *state, const OxConfig *c, OxKv *kv, guint n, guint position)
{
  OxOps *ops = state->ops;
  float eps = (float) c->rms_norm_eps;
  guint q_cols = c->num_attention_heads * c->head_dim;
  guint rotary_dim = ox_rope_rotary_dim (&c->rope, c->head_dim);
  OxTensor h = ox_tensor_view (&state->work.h, 0, n);
  OxTensor q = ox_tensor_shaped (&state->work.q, n, q_cols);    /* [n, heads · head_dim] */
  OxTensor gate = ox_tensor_shaped (&state->work.z, n, q_cols); /* [n, heads · head_dim] */
  OxTensor a = ox_tensor_shaped (&state->work.a, n, q_cols);    /* [n, heads · head_dim] */
  OxTensor k = ox_tensor_view (&state->work.k, 0, n);           /* [n, kv_heads · head_dim] */
  OxTensor v = ox_tensor_view (&state->work.v, 0, n);           /* [n, kv_heads · head_dim] */

  ops->linear (ops, &h, 4, (OxMatrix *[]) { l->q_proj, l->q_gate, l->k_proj, l->v_proj },
               (OxTensor *[]) { &q, &gate, &k, &v });
  ops->rms_norm (ops, &q, &q, l->q_norm, c->head_dim, eps);
  ops->rms_norm (ops, &k, &k, l->k_norm, c->head_dim, eps);
  ops->rope (ops, &q, state->cos, state->sin, c->head_dim, rotary_dim);
  ops->rope (ops, &k, state->cos, state->sin, c->head_dim, rotary_dim);
  ops->kv_write (ops, kv, &k, &v, position);
  ops->attention (ops, &a, &q, kv, position, 0, (float) (1.0 / sqrt (c->query_pre_attn_scalar)));
  ops->gated (ops, &a, &gate, &a, OX_GATE_SIGMOID);
  ops->linear (ops, &a, 1, &l->o_proj, (OxTensor *[]) { &h });
}

/* h = down(silu(gate · RMS(x)) · (up · RMS(x))) */
void
ox_qwen35_feed_forward (const OxQwen35Layer *l, OxState *state, const OxConfig *c, guint n)
{
  OxOps *ops = state->ops;
  OxTensor x = ox_tensor_view (&state->work.x, 0, n);
  OxTensor h = ox_tensor_view (&state->work.h, 0, n);
  OxTensor gate = ox_tensor_view (&state->work.gate, 0, n); /* [n, intermediate] */
  OxTensor up = ox_tensor_view (&state->work.up, 0, n);     /* [n, intermediate] */

  ops->rms_norm (ops, &h, &x, l->post_attention_layernorm, h.cols, (float) c->rms_norm_eps);
  ops->linear (ops, &h, 2, (OxMatrix *[]) { l->gate_proj, l->up_proj }, (OxTensor *[]) { &gate, &up });
  ops->gated (ops, &gate, &gate, &up, OX_GATE_SILU);
  ops->linear (ops, &gate, 1, &l->down_proj, (OxTensor *[]) { &h });
}

static gboolean
qwen35_forward (OxNetwork *network,
                OxState *state,
                const guint32 *ids,
                guint n,
                guint position,
                OxLogits logits,
                float *logits_out,
                GCancellable *cancellable,
                GError **error)
{
  OxQwen35 *self = (OxQwen35 *) network;
  const OxConfig *c = self->config;
  OxOps *ops = state->ops;
  float eps = (float) c->rms_norm_eps;
  OxTensor x = ox_tensor_view (&state->work.x, 0, n); /* [n, hidden], the residual stream */
  OxTensor h = ox_tensor_view (&state->work.h, 0, n); /* [n, hidden] */

  ox_rope_angles (self->frequencies, ox_rope_rotary_dim (&c->rope, c->head_dim) / 2, position, n, state->cos,
                  state->sin);
  ops->begin (ops, cancellable);
  ops->embed (ops, &x, self->embed_tokens, ids, 1);
  ox_state_trace (state, "hidden", 0, &x);

  for (guint i = 0; i < c->num_hidden_layers; i++) {
    const OxQwen35Layer *l = &self->layers[i];

    ops->rms_norm (ops, &h, &x, l->input_layernorm, h.cols, eps);
    if (c->layer_kinds[i] == OX_LAYER_LINEAR)
      linear_attention (l, state, c, i, n);
    else
      ox_qwen35_attention (l, state, c, state->kv[i], n, position);
    ops->add (ops, &x, &h);
    ox_qwen35_feed_forward (l, state, c, n);
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

const OxNetworkClass ox_qwen35_class = {
  .load = qwen35_load,
  .free = qwen35_free,
  .forward = qwen35_forward,
};
