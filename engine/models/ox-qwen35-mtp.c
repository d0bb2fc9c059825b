/* Qwen 3.5's MTP layer ("multi-token prediction"): one more layer of full attention that guesses the token after the next one.
 *
 * Its input at position p is the pair of the token at p + 1 and the network's row at p after the final norm:
 * x = fc · [RMS(embedding) | RMS(hidden)]; a layer with keys and values of its own; RMS; the network's own head. From the second guess
 * on its own row stands in for the network's. DeepSeek-AI 2024, "DeepSeek-V3 Technical Report", 2.2, as Qwen uses it.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "models/ox-drafter.h"
#include "models/ox-qwen35.h"

typedef struct {
  OxDrafter base;
  OxQwen35Layer layer;
  OxMatrix *fc; /* [hidden, 2 · hidden] */
  OxVector *pre_fc_norm_embedding, *pre_fc_norm_hidden, *norm;
} Mtp;

typedef struct {
  OxDraftState base;
  OxKv *kv;
  OxTensor embedded, normed; /* [chunk, hidden] */
  OxTensor pair;             /* [chunk, 2 · hidden] */
  OxTensor last;             /* [1, hidden]: the network's row before the newest token */
  guint last_position;       /* of `last` */
  gboolean has_last;
} MtpState;

static void
mtp_free (OxDrafter *drafter)
{
  g_free (drafter);
}

static void
mtp_state_free (OxDraftState *state)
{
  MtpState *self = (MtpState *) state;
  OxOps *ops = state->target->ops;
  OxTensor *tensors[] = { &self->embedded, &self->normed, &self->pair, &self->last, &self->base.hidden };

  for (gsize i = 0; i < G_N_ELEMENTS (tensors); i++)
    ops->tensor_clear (ops, tensors[i]);
  if (self->kv != NULL)
    ops->kv_free (ops, self->kv);
  g_free (state->logits);
  g_free (self);
}

static OxDraftState *
mtp_state_new (OxDrafter *drafter, OxState *target, GError **error)
{
  const OxConfig *c = target->config;
  OxOps *ops = target->ops;
  MtpState *self = g_new0 (MtpState, 1);
  guint chunk = target->options.chunk, hidden = c->hidden_size;

  self->base.drafter = drafter;
  self->base.target = target;
  self->base.logits = g_new (float, c->vocab_size);
  self->kv = ops->kv_new (ops, c->num_key_value_heads, c->head_dim, target->options.context_length,
                          target->options.kv_type, error);
  if (self->kv == NULL || !ops->tensor_init (ops, &self->embedded, chunk, hidden, error) ||
      !ops->tensor_init (ops, &self->normed, chunk, hidden, error) ||
      !ops->tensor_init (ops, &self->pair, chunk, 2 * hidden, error) ||
      !ops->tensor_init (ops, &self->last, 1, hidden, error) ||
      !ops->tensor_init (ops, &self->base.hidden, 1, hidden, error)) {
    mtp_state_free (&self->base);
    return NULL;
  }
  return &self->base;
}

/* Rows [first, first + hidden.rows) of the layer's input on the network's side. */
static void
set_hidden (MtpState *self, guint first, const OxTensor *hidden)
{
  Mtp *mtp = (Mtp *) self->base.drafter;
  OxState *state = self->base.target;
  OxTensor normed = ox_tensor_view (&self->normed, first, hidden->rows);

  state->ops->rms_norm (state->ops, &normed, hidden, mtp->pre_fc_norm_hidden, normed.cols,
                        (float) state->config->rms_norm_eps);
}

/* Runs the layer over @n pairs of what set_hidden() was given and the tokens @next, the first at @position. The rows come out after the
 * norm in the working tensor h. */
static void
run_layer (MtpState *self, const guint32 *next, guint n, guint position)
{
  Mtp *mtp = (Mtp *) self->base.drafter;
  OxQwen35 *target = (OxQwen35 *) mtp->base.target;
  const OxConfig *c = target->config;
  OxState *state = self->base.target;
  OxOps *ops = state->ops;
  float eps = (float) c->rms_norm_eps;
  OxTensor embedded = ox_tensor_view (&self->embedded, 0, n);
  OxTensor normed = ox_tensor_view (&self->normed, 0, n);
  OxTensor pair = ox_tensor_view (&self->pair, 0, n);
  OxTensor x = ox_tensor_view (&state->work.x, 0, n);
  OxTensor h = ox_tensor_view (&state->work.h, 0, n);

  ox_rope_angles (target->frequencies, ox_rope_rotary_dim (&c->rope, c->head_dim) / 2, position, n, state->cos,
                  state->sin);
  ops->embed (ops, &embedded, target->embed_tokens, next, 1);
  ops->rms_norm (ops, &embedded, &embedded, mtp->pre_fc_norm_embedding, embedded.cols, eps);
  ops->concat (ops, &pair, &embedded, &normed);
  ops->linear (ops, &pair, 1, &mtp->fc, (OxTensor *[]) { &x });
  ops->rms_norm (ops, &h, &x, mtp->layer.input_layernorm, h.cols, eps);
  ox_qwen35_attention (&mtp->layer, state, c, self->kv, n, position);
  ops->add (ops, &x, &h);
  ox_qwen35_feed_forward (&mtp->layer, state, c, n);
  ops->add (ops, &x, &h);
  ops->rms_norm (ops, &h, &x, mtp->norm, h.cols, eps);
}

/* Fills in the keys and values of the pairs that are known by now. The row of the last token waits for the one that follows. */
static gboolean
mtp_observe (
  OxDraftState *state, const guint32 *ids, guint n, guint position, GCancellable *cancellable, GError **error)
{
  MtpState *self = (MtpState *) state;
  OxOps *ops = state->target->ops;
  gboolean continues = self->has_last && self->last_position + 1 == position;
  OxTensor known = ox_tensor_view (&state->target->work.h, 0, n - 1);
  OxTensor newest = ox_tensor_view (&state->target->work.h, n - 1, 1);

  ops->begin (ops, cancellable);
  ops->copy (ops, &self->base.hidden, &newest);
  if (continues)
    set_hidden (self, 0, &self->last);
  if (n > 1)
    set_hidden (self, continues ? 1 : 0, &known);
  if (continues)
    run_layer (self, ids, n, position - 1);
  else if (n > 1)
    run_layer (self, ids + 1, n - 1, position);
  ops->copy (ops, &self->last, &self->base.hidden);
  self->last_position = position + n - 1;
  self->has_last = ops->finish (ops, error);
  return self->has_last;
}

static void
mtp_forget (OxDraftState *state)
{
  ((MtpState *) state)->has_last = FALSE;
}

static guint
mtp_draft (
  OxDraftState *state, guint32 newest, guint position, guint n, guint32 *ids, GCancellable *cancellable, GError **error)
{
  MtpState *self = (MtpState *) state;
  OxQwen35 *target = (OxQwen35 *) state->drafter->target;
  OxOps *ops = state->target->ops;
  OxTensor h = ox_tensor_view (&state->target->work.h, 0, 1);
  const OxTensor *hidden = &self->last;

  if (!self->has_last || self->last_position + 1 != position)
    return 0;
  n = MIN (n, state->target->options.context_length - position);
  for (guint i = 0; i < n; i++) {
    ops->begin (ops, cancellable);
    set_hidden (self, 0, hidden);
    run_layer (self, &newest, 1, position - 1 + i);
    ops->copy (ops, &self->base.hidden, &h);
    ops->linear_read (ops, &h, target->lm_head, 0, state->logits);
    if (!ops->finish (ops, error))
      return 0;
    hidden = &self->base.hidden;
    newest = (guint32) ox_kernels ()->argmax (state->logits, target->config->vocab_size);
    ids[i] = newest;
  }
  return n;
}

static const OxDrafterClass mtp_class = {
  .free = mtp_free,
  .state_new = mtp_state_new,
  .state_free = mtp_state_free,
  .observe = mtp_observe,
  .forget = mtp_forget,
  .draft = mtp_draft,
};

OxDrafter *
ox_qwen35_mtp_load (OxLoader *loader, OxNetwork *target, GError **error)
{
  guint hidden = loader->config->hidden_size;
  Mtp *self;

  if (ox_loader_find (loader, "mtp.fc.weight", 0) == NULL)
    return NULL;
  self = g_new0 (Mtp, 1);
  self->base.drafter_class = &mtp_class;
  self->base.target = target;
  ox_loader_begin (loader);
  self->fc = ox_loader_matrix (loader, "mtp.fc.weight", 0, hidden, 2 * hidden);
  self->pre_fc_norm_embedding = ox_loader_norm (loader, "mtp.pre_fc_norm_embedding.weight", 0, hidden);
  self->pre_fc_norm_hidden = ox_loader_norm (loader, "mtp.pre_fc_norm_hidden.weight", 0, hidden);
  self->norm = ox_loader_norm (loader, "mtp.norm.weight", 0, hidden);
  ox_qwen35_load_layer (loader, "mtp.layers.%u.", 0, FALSE, &self->layer);
  if (ox_loader_end (loader, &self->base.handles, error))
    return &self->base;
  ox_drafter_free (&self->base, loader->ops);
  return NULL;
}
