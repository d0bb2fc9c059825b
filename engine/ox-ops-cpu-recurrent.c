/* The CPU table's linear attention: the state of a layer, its convolution and the gated delta rule.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-ops-cpu.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TAPS 16
/* Channels of a convolution that are handed out together, and elements below which one thread does all. */
#define CONV_BLOCK 1024
#define MIN_PARALLEL_CONV 16384
/* Rows that are made ready by one thread, and products of a delta rule below which one thread does all. */
#define PREPARE_ROWS 4
/* Rows that all heads work on before any goes on to the next ones: what they need of them stays in a cache. */
#define RULE_ROWS 64
#define MIN_PARALLEL_RULE 65536

/* Since the last mark: what the state was, and what has come in. */
typedef struct {
  gboolean set;
  guint max_rows;
  guint conv_rows, rule_rows; /* that came in, logged or not */
  gsize conv_floats, rule_floats, inputs_floats;
  float *conv; /* [max_rows, channels]: inputs of the convolution */
  float *
    rule; /* [max_rows, rule_cols]: rows made ready for the rule, then their values; and a row for results nobody wants */
  float *inputs; /* as they were */
} Mark;

struct _OxRecurrent {
  OxDeltaShape shape;
  gsize channels, keys, values; /* of a row: all, those of the keys (and as many of the queries), those of the values */
  gsize state_floats;
  float *state; /* [value_heads], each as OxDeltaRule has it */
  float *
    before; /* while rule_rows > 0 after a mark: the state at the mark; else room for one. NULL until the first mark. */
  float *inputs; /* [conv_kernel - 1, channels], the oldest first */
  Mark mark;
};

/* A row made ready for the rule: queries and keys after their norms, then beta and decay of every value head. */
static gsize
ready_cols (const OxRecurrent *recurrent)
{
  return 2 * recurrent->keys + 2 * (gsize) recurrent->shape.value_heads;
}

static gsize
history_floats (const OxRecurrent *recurrent)
{
  return (recurrent->shape.conv_kernel - 1) * recurrent->channels;
}

static float *
zeros_new (gsize n, GError **error)
{
  gsize bytes;
  float *zeros;

  if (!g_size_checked_mul (&bytes, n, sizeof (float))) {
    g_set_error_literal (error, OX_ERROR, OX_ERROR_NO_MEMORY, "Not enough memory for the conversation's state");
    return NULL;
  }
  zeros = ox_cpu_alloc (bytes, "the conversation's state", error);
  if (zeros != NULL)
    memset (zeros, 0, bytes);
  return zeros;
}

static void
cpu_recurrent_free (OxOps *ops, OxRecurrent *recurrent)
{
  if (recurrent == NULL)
    return;
  free (recurrent->state);
  free (recurrent->before);
  free (recurrent->inputs);
  free (recurrent->mark.conv);
  free (recurrent->mark.rule);
  free (recurrent->mark.inputs);
  g_free (recurrent);
}

static OxRecurrent *
cpu_recurrent_new (OxOps *ops, const OxDeltaShape *shape, GError **error)
{
  OxRecurrent *recurrent;
  gsize keys, values, state_floats, channels, history;

  if (shape->key_heads == 0 || shape->key_dim == 0 || shape->value_dim == 0 || shape->value_heads == 0 ||
      shape->value_heads % shape->key_heads != 0 || shape->conv_kernel == 0 || shape->conv_kernel > MAX_TAPS) {
    g_set_error (
      error, OX_ERROR, OX_ERROR_UNSUPPORTED,
      "A linear attention of %u key heads of %u, %u value heads of %u and a convolution over %u rows is of no "
      "known kind",
      shape->key_heads, shape->key_dim, shape->value_heads, shape->value_dim, shape->conv_kernel);
    return NULL;
  }
  if (!g_size_checked_mul (&keys, shape->key_heads, shape->key_dim) ||
      !g_size_checked_mul (&values, shape->value_heads, shape->value_dim) || keys > G_MAXUINT32 ||
      values > G_MAXUINT32 || !g_size_checked_mul (&state_floats, values, shape->key_dim) ||
      !g_size_checked_mul (&history, channels = 2 * keys + values, shape->conv_kernel - 1)) {
    g_set_error_literal (error, OX_ERROR, OX_ERROR_NO_MEMORY, "Not enough memory for the conversation's state");
    return NULL;
  }

  recurrent = g_new0 (OxRecurrent, 1);
  recurrent->shape = *shape;
  recurrent->keys = keys;
  recurrent->values = values;
  recurrent->channels = channels;
  recurrent->state_floats = state_floats;
  if ((recurrent->state = zeros_new (state_floats, error)) == NULL ||
      (recurrent->inputs = zeros_new (history, error)) == NULL) {
    cpu_recurrent_free (ops, recurrent);
    return NULL;
  }
  return recurrent;
}

static void
cpu_recurrent_reset (OxOps *ops, OxRecurrent *recurrent)
{
  memset (recurrent->state, 0, recurrent->state_floats * sizeof (float));
  memset (recurrent->inputs, 0, history_floats (recurrent) * sizeof (float));
  recurrent->mark.set = FALSE;
}

static void
cpu_recurrent_save (OxOps *ops, OxRecurrent *recurrent, gpointer bytes)
{
  float *saved = bytes;

  memcpy (saved, recurrent->state, recurrent->state_floats * sizeof (float));
  memcpy (saved + recurrent->state_floats, recurrent->inputs, history_floats (recurrent) * sizeof (float));
}

static void
cpu_recurrent_restore (OxOps *ops, OxRecurrent *recurrent, gconstpointer bytes)
{
  const float *saved = bytes;

  memcpy (recurrent->state, saved, recurrent->state_floats * sizeof (float));
  memcpy (recurrent->inputs, saved + recurrent->state_floats, history_floats (recurrent) * sizeof (float));
  recurrent->mark.set = FALSE;
}

/* ---- The convolution ---- */

typedef struct {
  OxOpsCpu *self;
  const OxRecurrent *recurrent;
  float *y;
  const float *x;
  const float *w; /* [taps, channels] */
  gsize blocks;   /* of a row */
} ConvWork;

static void
conv_blocks (void *data, size_t begin, size_t end, unsigned worker)
{
  ConvWork *work = data;
  gsize channels = work->recurrent->channels, taps = work->recurrent->shape.conv_kernel;
  const float *inputs[MAX_TAPS];

  for (gsize i = begin; i < end && ox_ops_cpu_running (work->self); i++) {
    gsize row = i / work->blocks, first = i % work->blocks * CONV_BLOCK;

    for (gsize j = 0; j < taps; j++) {
      const float *input = row + j + 1 >= taps ? work->x + (row + j + 1 - taps) * channels
                                               : work->recurrent->inputs + (row + j) * channels;
      inputs[j] = input + first;
    }
    work->self->kernels->conv_silu (work->y + row * channels + first, inputs, work->w + first, channels, taps,
                                    MIN (CONV_BLOCK, channels - first));
  }
}

/* The weights with the channels of a tap side by side; once, as a vector belongs to one layer. The sessions of a model share its vectors
 * and may come here at the same time. */
static const float *
arrange_by_tap (OxOpsCpu *self, OxVector *w, gsize channels, gsize taps)
{
  static GMutex lock;
  GError *error = NULL;
  float *by_tap = g_atomic_pointer_get (&w->by_tap);

  if (by_tap != NULL)
    return by_tap;
  g_mutex_lock (&lock);
  by_tap = w->by_tap;
  if (by_tap == NULL)
    by_tap = ox_cpu_alloc (channels * taps * sizeof (float), "the weights of a convolution", &error);
  if (by_tap != NULL && by_tap != w->by_tap) {
    for (gsize c = 0; c < channels; c++)
      for (gsize j = 0; j < taps; j++)
        by_tap[j * channels + c] = w->data[c * taps + j];
    g_atomic_pointer_set (&w->by_tap, by_tap);
  }
  g_mutex_unlock (&lock);
  if (by_tap == NULL)
    ox_ops_cpu_fail (self, error);
  return by_tap;
}

/* @inputs becomes the last @history rows of @inputs followed by @n rows of @x. */
static void
push_inputs (float *inputs, gsize history, const float *x, gsize n, gsize channels)
{
  gsize kept = history > n ? history - n : 0;

  memmove (inputs, inputs + (history - kept) * channels, kept * channels * sizeof (float));
  memcpy (inputs + kept * channels, x + (n - (history - kept)) * channels,
          (history - kept) * channels * sizeof (float));
}

static void
cpu_causal_conv (OxOps *ops, OxTensor *y, const OxTensor *x, OxVector *w, OxRecurrent *recurrent)
{
  OxOpsCpu *self = (OxOpsCpu *) ops;
  ConvWork work = { .self = self, .recurrent = recurrent, .y = ox_cpu_rows (y), .x = ox_cpu_rows (x) };
  gsize channels = recurrent->channels;
  Mark *mark = &recurrent->mark;

  if (!ox_ops_cpu_enter (self, OX_PROFILE_RECURRENT) ||
      (work.w = arrange_by_tap (self, w, channels, recurrent->shape.conv_kernel)) == NULL)
    return;
  work.blocks = (channels + CONV_BLOCK - 1) / CONV_BLOCK;
  if (x->rows * channels < MIN_PARALLEL_CONV)
    conv_blocks (&work, 0, x->rows * work.blocks, 0);
  else
    ox_pool_run (self->pool, conv_blocks, &work, x->rows * work.blocks, 4);
  if (mark->set) {
    if (mark->conv_rows < mark->max_rows)
      memcpy (mark->conv + mark->conv_rows * channels, work.x,
              MIN (x->rows, mark->max_rows - mark->conv_rows) * channels * sizeof (float));
    mark->conv_rows += x->rows;
  }
  push_inputs (recurrent->inputs, recurrent->shape.conv_kernel - 1, work.x, x->rows, channels);
}

/* ---- The delta rule ---- */

typedef struct {
  OxOpsCpu *self;
  gboolean replay; /* nobody may stop it */
  const OxRecurrent *recurrent;
  const float *from;
  float *state;
  const float *ready; /* rows of ready_cols() */
  gsize ready_stride;
  const float *v;
  gsize v_stride;
  float *y;
  gsize y_stride;
  gsize n;
} RuleWork;

static gsize
strips_of_head (const OxRecurrent *recurrent)
{
  return (recurrent->shape.value_dim + OX_DELTA_STRIP - 1) / OX_DELTA_STRIP;
}

/* Work items are strips of heads: each over all tokens, so that its part of the state stays in the cache. */
static void
rule_strips (void *data, size_t begin, size_t end, unsigned worker)
{
  RuleWork *work = data;
  const OxRecurrent *recurrent = work->recurrent;
  const OxDeltaShape *shape = &recurrent->shape;
  gsize strips = strips_of_head (recurrent), key_dim = shape->key_dim, value_dim = shape->value_dim;

  for (gsize i = begin; i < end && (work->replay || ox_ops_cpu_running (work->self)); i++) {
    gsize head = i / strips, first = i % strips * OX_DELTA_STRIP;
    gsize key_head = shape->heads_tiled ? head % shape->key_heads : head / (shape->value_heads / shape->key_heads);
    gsize at = (head * value_dim + first) * key_dim;
    OxDeltaRule rule = {
      .from = work->from + at,
      .state = work->state + at,
      .q = work->ready + key_head * key_dim,
      .k = work->ready + recurrent->keys + key_head * key_dim,
      .v = work->v + head * value_dim + first,
      .beta = work->ready + 2 * recurrent->keys + head,
      .decay = work->ready + 2 * recurrent->keys + shape->value_heads + head,
      .y = work->y + head * value_dim + first,
      .qk_stride = work->ready_stride,
      .v_stride = work->v_stride,
      .gate_stride = work->ready_stride,
      .y_stride = work->y_stride,
      .n = work->n,
      .key_dim = key_dim,
      .value_dim = MIN (OX_DELTA_STRIP, value_dim - first),
    };

    work->self->kernels->delta_rule (&rule);
  }
}

static void
run_rule (RuleWork *work)
{
  gsize strips = strips_of_head (work->recurrent) * work->recurrent->shape.value_heads;

  if (work->recurrent->state_floats * work->n < MIN_PARALLEL_RULE)
    rule_strips (work, 0, strips, 0);
  else
    ox_pool_run (work->self->pool, rule_strips, work, strips, 1);
}

typedef struct {
  OxOpsCpu *self;
  const OxRecurrent *recurrent;
  const float *qkv, *b, *a;
  const float *a_scale, *dt_bias;
  float *ready;
} PrepareWork;

/* x · rsqrt(Σ x² + 1e-6) · factor, for each head */
static void
normalize_heads (const PrepareWork *work, float *y, const float *x, gsize heads, gsize dim, float factor)
{
  const OxKernels *kernels = work->self->kernels;

  memcpy (y, x, heads * dim * sizeof (float));
  for (gsize h = 0; h < heads; h++, y += dim)
    kernels->scale (y, factor / sqrtf (kernels->dot (y, y, dim) + 1e-6f), dim);
}

static void
prepare_rows (void *data, size_t begin, size_t end, unsigned worker)
{
  PrepareWork *work = data;
  const OxRecurrent *recurrent = work->recurrent;
  const OxDeltaShape *shape = &recurrent->shape;

  for (gsize i = begin; i < end; i++) {
    const float *qkv = work->qkv + i * recurrent->channels;
    float *ready = work->ready + i * ready_cols (recurrent), *beta = ready + 2 * recurrent->keys;
    float *decay = beta + shape->value_heads;

    normalize_heads (work, ready, qkv, shape->key_heads, shape->key_dim, 1 / sqrtf ((float) shape->key_dim));
    normalize_heads (work, ready + recurrent->keys, qkv + recurrent->keys, shape->key_heads, shape->key_dim, 1);
    for (gsize h = 0; h < shape->value_heads; h++) {
      double b = work->b[i * shape->value_heads + h];
      double a = (double) work->a[i * shape->value_heads + h] + work->dt_bias[h];
      double softplus = a > 30 ? a : log1p (exp (a));

      beta[h] = (float) (1 / (1 + exp (-b)));
      decay[h] = (float) exp (work->a_scale[h] * softplus);
    }
  }
}

/* Remembers what comes in after a mark. Returns the state from which to go on, to recurrent->state: the one at the mark is left as it
 * is, and the first rows after it are computed from there into the other one. */
static const float *
log_rows (OxRecurrent *recurrent, const float *ready, const float *v, gsize rows)
{
  Mark *mark = &recurrent->mark;
  gsize cols = ready_cols (recurrent), log_cols = cols + recurrent->values;
  const float *from = recurrent->state;

  if (!mark->set)
    return from;
  for (gsize i = 0; i < rows && mark->rule_rows + i < mark->max_rows; i++) {
    float *out = mark->rule + (mark->rule_rows + i) * log_cols;

    memcpy (out, ready + i * cols, cols * sizeof (float));
    memcpy (out + cols, v + i * recurrent->channels, recurrent->values * sizeof (float));
  }
  if (mark->rule_rows == 0) {
    float *other = recurrent->before;

    recurrent->before = recurrent->state;
    recurrent->state = other;
  }
  mark->rule_rows += rows;
  return from;
}

static void
cpu_delta_rule (OxOps *ops,
                OxTensor *y,
                const OxTensor *qkv,
                const OxTensor *b,
                const OxTensor *a,
                OxVector *a_scale,
                OxVector *dt_bias,
                OxRecurrent *recurrent)
{
  OxOpsCpu *self = (OxOpsCpu *) ops;
  gsize cols = ready_cols (recurrent), heads = recurrent->shape.value_heads;
  gsize block = MIN (qkv->rows, RULE_ROWS);

  if (!ox_ops_cpu_enter (self, OX_PROFILE_RECURRENT) ||
      !ox_ops_cpu_reserve (self, (void **) &self->delta_scratch, &self->delta_bytes, cols * block * sizeof (float)))
    return;
  for (gsize first = 0; first < qkv->rows && ox_ops_cpu_running (self); first += block) {
    PrepareWork prepare = {
      .self = self,
      .recurrent = recurrent,
      .qkv = ox_cpu_rows (qkv) + first * recurrent->channels,
      .b = ox_cpu_rows (b) + first * heads,
      .a = ox_cpu_rows (a) + first * heads,
      .a_scale = a_scale->data,
      .dt_bias = dt_bias->data,
      .ready = self->delta_scratch,
    };
    RuleWork rule = {
      .self = self,
      .recurrent = recurrent,
      .ready = prepare.ready,
      .ready_stride = cols,
      .v = prepare.qkv + 2 * recurrent->keys,
      .v_stride = recurrent->channels,
      .y = ox_cpu_rows (y) + first * y->cols,
      .y_stride = y->cols,
      .n = MIN (block, qkv->rows - first),
    };

    if (rule.n <= PREPARE_ROWS)
      prepare_rows (&prepare, 0, rule.n, 0);
    else
      ox_pool_run (self->pool, prepare_rows, &prepare, rule.n, PREPARE_ROWS);
    rule.from = log_rows (recurrent, rule.ready, rule.v, rule.n);
    rule.state = recurrent->state;
    run_rule (&rule);
  }
}

/* ---- Going back ---- */

/* Grows @buffer, whose content is not kept, to @n floats. */
static gboolean
grow (float **buffer, gsize *size, gsize n, GError **error)
{
  float *larger;

  if (n <= *size)
    return TRUE;
  larger = zeros_new (n, error);
  if (larger == NULL)
    return FALSE;
  free (*buffer);
  *buffer = larger;
  *size = n;
  return TRUE;
}

static gboolean
cpu_recurrent_mark (OxOps *ops, OxRecurrent *recurrent, guint max_rows, GError **error)
{
  Mark *mark = &recurrent->mark;
  gsize conv, rule;

  mark->set = FALSE;
  if (!g_size_checked_mul (&conv, recurrent->channels, max_rows) ||
      !g_size_checked_mul (&rule, ready_cols (recurrent) + recurrent->values, max_rows) ||
      !g_size_checked_add (&rule, rule, recurrent->values)) {
    g_set_error_literal (error, OX_ERROR, OX_ERROR_NO_MEMORY, "Not enough memory for the conversation's state");
    return FALSE;
  }
  if (!grow (&mark->conv, &mark->conv_floats, conv, error) || !grow (&mark->rule, &mark->rule_floats, rule, error) ||
      !grow (&mark->inputs, &mark->inputs_floats, MAX (history_floats (recurrent), 1), error))
    return FALSE;
  if (recurrent->before == NULL && (recurrent->before = zeros_new (recurrent->state_floats, error)) == NULL)
    return FALSE;
  memcpy (mark->inputs, recurrent->inputs, history_floats (recurrent) * sizeof (float));
  mark->set = TRUE;
  mark->max_rows = max_rows;
  mark->conv_rows = mark->rule_rows = 0;
  return TRUE;
}

static void
cpu_recurrent_rewind (OxOps *ops, OxRecurrent *recurrent, guint n)
{
  Mark *mark = &recurrent->mark;
  gsize cols = ready_cols (recurrent), log_cols = cols + recurrent->values;

  if (!mark->set)
    return;
  mark->set = FALSE;
  if (n < mark->conv_rows) {
    memcpy (recurrent->inputs, mark->inputs, history_floats (recurrent) * sizeof (float));
    push_inputs (recurrent->inputs, recurrent->shape.conv_kernel - 1, mark->conv, MIN (n, mark->max_rows),
                 recurrent->channels);
  }
  if (n < mark->rule_rows) {
    float *state = recurrent->before;
    RuleWork rule = {
      .self = (OxOpsCpu *) ops,
      .replay = TRUE,
      .recurrent = recurrent,
      .from = state,
      .state = state,
      .ready = mark->rule,
      .ready_stride = log_cols,
      .v = mark->rule + cols,
      .v_stride = log_cols,
      .y = mark->rule + mark->max_rows * log_cols,
      .n = MIN (n, mark->max_rows),
    };

    recurrent->before = recurrent->state;
    recurrent->state = state;
    run_rule (&rule);
  }
}

void
ox_ops_cpu_init_recurrent (OxOpsCpu *self)
{
  self->base.recurrent_new = cpu_recurrent_new;
  self->base.recurrent_free = cpu_recurrent_free;
  self->base.recurrent_reset = cpu_recurrent_reset;
  self->base.recurrent_save = cpu_recurrent_save;
  self->base.recurrent_restore = cpu_recurrent_restore;
  self->base.recurrent_mark = cpu_recurrent_mark;
  self->base.recurrent_rewind = cpu_recurrent_rewind;
  self->base.causal_conv = cpu_causal_conv;
  self->base.delta_rule = cpu_delta_rule;
}
