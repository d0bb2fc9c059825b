/* Gemma 4's drafters ("assistants"): four layers with queries only, which read the keys and values that the model they draft for has
 * cached. They keep nothing of their own but the last hidden state.
 *
 * One step: x = pre_projection · [embedding of the newest token in the large model · √hidden | h]; four layers; n = RMS(x);
 * logits = embedding · n, by clusters of tokens in the small ones; h' = post_projection · n. The rotary position is that of the newest
 * token in every step of a draft. As transformers' Gemma4AssistantForCausalLM computes it.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "models/ox-drafter.h"
#include "models/ox-gemma4.h"

#include <math.h>
#include <string.h>

typedef struct {
  OxDrafter base;
  const OxConfig *config;
  OxGemma4Layer *layers;
  OxMatrix *pre_projection, *post_projection;
  OxVector *norm;
  OxMatrix *lm_head; /* with the centroid head: rows in the order of the clusters */
  OxMatrix *centroids;
  guint32 *token_ordering; /* [vocab], or NULL: no centroid head */
  float *frequencies, *frequencies_sliding;
  guint kv_sliding, kv_full; /* layers of the target whose keys and values are read */
} Gemma4Drafter;

typedef struct {
  OxDraftState base;
  OxState *work;      /* working tensors of the drafter's layers */
  OxTensor pair;      /* [1, 2 · backbone] */
  OxTensor embedded;  /* [1, backbone]: of the newest token */
  OxTensor first;     /* [1, backbone]: the target's state, kept for another draft from the same place */
  OxTensor centroids; /* [1, centroids] */
  OxTensor logits;    /* [1, vocab], where there are centroids */
  gboolean has_hidden;
} Gemma4DraftState;

static void
drafter_free (OxDrafter *drafter)
{
  Gemma4Drafter *self = (Gemma4Drafter *) drafter;

  g_free (self->layers);
  g_free (self->token_ordering);
  g_free (self->frequencies);
  g_free (self->frequencies_sliding);
  g_free (self);
}

/* token_ordering: the tokens of cluster 0, of cluster 1, … A permutation, or nothing that was read through it could be trusted. */
static guint32 *
load_ordering (OxLoader *loader)
{
  static const char name[] = "masked_embedding.token_ordering";
  guint vocab = loader->config->vocab_size;
  const OxTensorInfo *tensor = ox_loader_require (loader, name, 0);
  g_autofree gint64 *stored = NULL;
  g_autofree guint8 *seen = NULL;
  guint32 *ordering;

  if (tensor == NULL || !ox_tensor_check_shape (tensor, &loader->error, 1, (guint64) vocab))
    return NULL;
  if (tensor->type != OX_DTYPE_I64) {
    g_autofree char *what = ox_tensor_describe (tensor);

    g_set_error (&loader->error, OX_ERROR, OX_ERROR_DAMAGED, "%s: tensor “%s” is %s, expected I64",
                 ox_file_get_name (tensor->file), tensor->name, what);
    return NULL;
  }
  stored = g_new (gint64, vocab);
  if (!ox_tensor_read_rows (tensor, 0, vocab, stored, &loader->error))
    return NULL;
  ordering = g_new (guint32, vocab);
  seen = g_new0 (guint8, vocab);
  for (guint i = 0; i < vocab; i++) {
    gint64 id = GINT64_FROM_LE (stored[i]);

    if (id < 0 || id >= vocab || seen[id]) {
      g_set_error (&loader->error, OX_ERROR, OX_ERROR_DAMAGED,
                   "%s: tensor “%s” has %" G_GINT64_FORMAT " at %u, expected every token below %u once",
                   ox_file_get_name (tensor->file), tensor->name, id, i, vocab);
      g_free (ordering);
      return NULL;
    }
    seen[id] = 1;
    ordering[i] = (guint32) id;
  }
  return ordering;
}

/* The last layer of @kind in the target that has keys and values of its own. */
static gboolean
find_kv_layer (const OxConfig *target, OxLayerKind kind, guint *layer)
{
  for (guint i = target->num_hidden_layers; i-- > 0;)
    if (target->layer_kinds[i] == kind && ox_config_kv_layer (target, i) == i) {
      *layer = i;
      return TRUE;
    }
  return FALSE;
}

/* Whether the drafter's queries fit the target's keys. */
static gboolean
check_target (Gemma4Drafter *self, const OxConfig *target, OxLoader *loader)
{
  const OxConfig *c = self->config;
  const struct {
    const char *field;
    guint found, expected;
  } pairs[] = {
    { "backbone_hidden_size", c->backbone_hidden_size, target->hidden_size },
    { "vocab_size", c->vocab_size, target->vocab_size },
    { "head_dim", c->head_dim, target->head_dim },
    { "global_head_dim", c->global_head_dim, target->global_head_dim },
    { "sliding_window", c->sliding_window, target->sliding_window },
    { "num_key_value_heads", c->num_key_value_heads, target->num_key_value_heads },
    { "num_global_key_value_heads", c->num_global_key_value_heads, target->num_global_key_value_heads },
  };

  for (guint i = 0; i < G_N_ELEMENTS (pairs); i++)
    if (pairs[i].found != pairs[i].expected) {
      g_set_error (&loader->error, OX_ERROR, OX_ERROR_UNSUPPORTED,
                   "The drafter was made for another model: its “%s” is %u, and this model needs %u", pairs[i].field,
                   pairs[i].found, pairs[i].expected);
      return FALSE;
    }
  if (target->family != OX_FAMILY_GEMMA4 || !find_kv_layer (target, OX_LAYER_SLIDING, &self->kv_sliding) ||
      !find_kv_layer (target, OX_LAYER_FULL, &self->kv_full)) {
    g_set_error_literal (&loader->error, OX_ERROR, OX_ERROR_UNSUPPORTED,
                         "The drafter needs a Gemma 4 with a sliding and a full layer that have keys and values");
    return FALSE;
  }
  return TRUE;
}

/* ---- State ---- */

static void
draft_state_free (OxDraftState *state)
{
  Gemma4DraftState *self = (Gemma4DraftState *) state;
  OxOps *ops = state->target->ops;
  OxTensor *tensors[] = { &self->pair,  &self->embedded,  &self->base.hidden,
                          &self->first, &self->centroids, &self->logits };

  for (gsize i = 0; i < G_N_ELEMENTS (tensors); i++)
    ops->tensor_clear (ops, tensors[i]);
  if (self->work != NULL)
    ox_state_free (self->work);
  g_free (state->logits);
  g_free (self);
}

static OxDraftState *
draft_state_new (OxDrafter *drafter, OxState *target, GError **error)
{
  Gemma4Drafter *drafts = (Gemma4Drafter *) drafter;
  const OxConfig *c = drafts->config;
  OxOps *ops = target->ops;
  Gemma4DraftState *self = g_new0 (Gemma4DraftState, 1);
  OxStateOptions options = { .context_length = 1, .chunk = 1, .kv_type = OX_TYPE_F32 };
  guint backbone = c->backbone_hidden_size;

  self->base.drafter = drafter;
  self->base.target = target;
  self->base.logits = g_new (float, c->vocab_size);
  self->work = ox_state_new (ops, c, &options, error);
  if (self->work == NULL || !ops->tensor_init (ops, &self->pair, 1, 2 * backbone, error) ||
      !ops->tensor_init (ops, &self->embedded, 1, backbone, error) ||
      !ops->tensor_init (ops, &self->base.hidden, 1, backbone, error) ||
      !ops->tensor_init (ops, &self->first, 1, backbone, error) ||
      (drafts->centroids != NULL && (!ops->tensor_init (ops, &self->centroids, 1, c->num_centroids, error) ||
                                     !ops->tensor_init (ops, &self->logits, 1, c->vocab_size, error)))) {
    draft_state_free (&self->base);
    return NULL;
  }
  return &self->base;
}

static gboolean
draft_observe (
  OxDraftState *state, const guint32 *ids, guint n, guint position, GCancellable *cancellable, GError **error)
{
  Gemma4DraftState *self = (Gemma4DraftState *) state;
  OxOps *ops = state->target->ops;
  OxTensor last = ox_tensor_view (&state->target->work.h, n - 1, 1);

  ops->begin (ops, cancellable);
  ops->copy (ops, &self->first, &last);
  self->has_hidden = ops->finish (ops, error);
  return self->has_hidden;
}

static void
draft_forget (OxDraftState *state)
{
  ((Gemma4DraftState *) state)->has_hidden = FALSE;
}

/* ---- Drafting ---- */

static gboolean
draft_step (Gemma4DraftState *self, guint32 newest, guint position, GCancellable *cancellable, GError **error)
{
  Gemma4Drafter *drafter = (Gemma4Drafter *) self->base.drafter;
  OxGemma4 *target = (OxGemma4 *) drafter->base.target;
  const OxConfig *c = drafter->config;
  OxState *state = self->work;
  OxOps *ops = state->ops;
  OxTensor x = state->work.x; /* [1, hidden] */
  OxTensor h = state->work.h; /* [1, hidden] */
  /* The reference lets a sliding layer see the window and one key more, counted from the last key there is. */
  OxGemma4Span span = { .n = 1, .position = position, .last_key = position - 1, .window = c->sliding_window + 1 };

  ops->begin (ops, cancellable);
  ops->embed (ops, &self->embedded, target->embed_tokens, &newest, sqrtf ((float) c->backbone_hidden_size));
  ops->concat (ops, &self->pair, &self->embedded, &self->base.hidden);
  ops->linear (ops, &self->pair, 1, &drafter->pre_projection, (OxTensor *[]) { &x });
  for (guint i = 0; i < c->num_hidden_layers; i++) {
    guint kv = ox_config_is_sliding (c, i) ? drafter->kv_sliding : drafter->kv_full;

    ox_gemma4_attention (&drafter->layers[i], state, c, i, self->base.target->kv[kv], span);
    ox_gemma4_feed_forward (&drafter->layers[i], state, c, i, 1);
    ops->scale (ops, &x, drafter->layers[i].layer_scalar);
  }
  ops->rms_norm (ops, &h, &x, drafter->norm, h.cols, (float) c->rms_norm_eps);
  ops->linear (ops, &h, 1, &drafter->post_projection, (OxTensor *[]) { &self->base.hidden });
  if (drafter->token_ordering != NULL) {
    ops->linear (ops, &h, 1, &drafter->centroids, (OxTensor *[]) { &self->centroids });
    ops->centroid_logits (ops, &self->logits, &h, &self->centroids, c->centroid_intermediate_top_k, drafter->lm_head,
                          drafter->token_ordering);
    ops->read (ops, &self->logits, self->base.logits);
  } else {
    ops->linear_read (ops, &h, drafter->lm_head, 0, self->base.logits);
  }
  return ops->finish (ops, error);
}

static guint
draft_tokens (
  OxDraftState *state, guint32 newest, guint position, guint n, guint32 *ids, GCancellable *cancellable, GError **error)
{
  Gemma4DraftState *self = (Gemma4DraftState *) state;
  Gemma4Drafter *drafter = (Gemma4Drafter *) state->drafter;
  const OxConfig *c = drafter->config;
  OxOps *ops = state->target->ops;

  /* Without a key there is nothing to look at. */
  if (!self->has_hidden || position == 0)
    return 0;
  ox_rope_angles (drafter->frequencies, c->global_head_dim / 2, position, 1, self->work->cos, self->work->sin);
  ox_rope_angles (drafter->frequencies_sliding, c->head_dim / 2, position, 1, self->work->cos_sliding,
                  self->work->sin_sliding);
  ops->begin (ops, cancellable);
  ops->copy (ops, &self->base.hidden, &self->first);
  if (!ops->finish (ops, error))
    return 0;
  for (guint i = 0; i < n; i++) {
    if (!draft_step (self, newest, position, cancellable, error))
      return 0;
    newest = (guint32) ox_kernels ()->argmax (state->logits, c->vocab_size);
    ids[i] = newest;
  }
  return n;
}

/* ---- Loading ---- */

static const OxDrafterClass gemma4_drafter_class = {
  .free = drafter_free,
  .state_new = draft_state_new,
  .state_free = draft_state_free,
  .observe = draft_observe,
  .forget = draft_forget,
  .draft = draft_tokens,
};

OxDrafter *
ox_gemma4_drafter_load (OxLoader *loader, OxNetwork *target, GError **error)
{
  const OxConfig *c = loader->config;
  Gemma4Drafter *self = g_new0 (Gemma4Drafter, 1);
  guint backbone = c->backbone_hidden_size;

  self->base.drafter_class = &gemma4_drafter_class;
  self->base.target = target;
  self->config = c;
  self->layers = g_new0 (OxGemma4Layer, c->num_hidden_layers);
  ox_loader_begin (loader);
  if (target == NULL || check_target (self, ((OxGemma4 *) target)->config, loader)) {
    self->frequencies = ox_rope_frequencies (&c->rope, c->global_head_dim);
    self->frequencies_sliding = ox_rope_frequencies (&c->rope_sliding, c->head_dim);
    self->pre_projection = ox_loader_matrix (loader, "pre_projection.weight", 0, c->hidden_size, 2 * backbone);
    for (guint i = 0; i < c->num_hidden_layers && loader->error == NULL; i++)
      ox_gemma4_load_layer (loader, i, FALSE, &self->layers[i]);
    self->norm = ox_loader_norm (loader, "norm.weight", 0, c->hidden_size);
    self->post_projection = ox_loader_matrix (loader, "post_projection.weight", 0, backbone, c->hidden_size);
    if (c->use_ordered_embeddings) {
      self->centroids = ox_loader_matrix_for (loader, "masked_embedding.centroids.weight", 0, OX_MATRIX_HEAD,
                                              c->num_centroids, c->hidden_size);
      self->token_ordering = load_ordering (loader);
      if (self->token_ordering != NULL)
        self->lm_head = ox_loader_ordered_head (loader, self->token_ordering);
    } else {
      self->lm_head = ox_loader_head (loader);
    }
  }
  if (ox_loader_end (loader, &self->base.handles, error))
    return &self->base;
  ox_drafter_free (&self->base, loader->ops);
  return NULL;
}
