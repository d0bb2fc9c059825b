/* The CPU table: each operation runs at once, on the kernels, spread over the pool.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-ops-cpu.h"

#include <stdlib.h>
#include <string.h>

/* Products between two looks at the cancellable: some 50 ms on a processor for which we have nothing but the C reference. */
#define MAX_PRODUCTS (1u << 26)
/* Elements below which handing work to other threads costs more than it saves. */
#define MIN_PARALLEL_ELEMENTS 16384

void
ox_ops_cpu_fail (OxOpsCpu *self, GError *error)
{
  g_mutex_lock (&self->error_lock);
  if (self->error == NULL)
    self->error = error;
  else
    g_clear_error (&error);
  g_mutex_unlock (&self->error_lock);
  g_atomic_int_set (&self->failed, 1);
}

gboolean
ox_ops_cpu_running (OxOpsCpu *self)
{
  if (g_atomic_int_get (&self->failed))
    return FALSE;
  if (self->cancellable != NULL && g_cancellable_is_cancelled (self->cancellable)) {
    g_atomic_int_set (&self->failed, 1);
    return FALSE;
  }
  return TRUE;
}

gboolean
ox_ops_cpu_reserve (OxOpsCpu *self, void **buffer, gsize *size, gsize needed)
{
  g_autoptr (GError) error = NULL;

  if (needed <= *size)
    return TRUE;
  free (*buffer);
  *size = 0;
  *buffer = ox_cpu_alloc (needed, "working memory", &error);
  if (*buffer == NULL) {
    ox_ops_cpu_fail (self, g_steal_pointer (&error));
    return FALSE;
  }
  *size = needed;
  return TRUE;
}

/* ---- Activations and state ---- */

static gboolean
cpu_tensor_init (OxOps *ops, OxTensor *tensor, guint rows, guint cols, GError **error)
{
  gsize n;

  if (!g_size_checked_mul (&n, rows, cols) || !g_size_checked_mul (&n, n, sizeof (float))) {
    g_set_error_literal (error, OX_ERROR, OX_ERROR_NO_MEMORY, "Not enough memory for the working state of the model");
    return FALSE;
  }
  tensor->data = ox_cpu_alloc (n, "the working state of the model", error);
  if (tensor->data == NULL)
    return FALSE;
  memset (tensor->data, 0, n);
  tensor->row = 0;
  tensor->rows = rows;
  tensor->cols = cols;
  return TRUE;
}

static void
cpu_tensor_clear (OxOps *ops, OxTensor *tensor)
{
  free (tensor->data);
  memset (tensor, 0, sizeof *tensor);
}

/* ---- Computing ---- */

static void
cpu_begin (OxOps *ops, GCancellable *cancellable)
{
  OxOpsCpu *self = (OxOpsCpu *) ops;

  g_clear_error (&self->error);
  self->cancellable = cancellable;
  g_atomic_int_set (&self->failed, 0);
}

static gboolean
cpu_finish (OxOps *ops, GError **error)
{
  OxOpsCpu *self = (OxOpsCpu *) ops;
  GCancellable *cancellable = self->cancellable;

  self->cancellable = NULL;
  if (self->error != NULL) {
    g_propagate_error (error, g_steal_pointer (&self->error));
    return FALSE;
  }
  if (g_atomic_int_get (&self->failed)) {
    if (!g_cancellable_set_error_if_cancelled (cancellable, error))
      g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_CANCELLED, "The computation was stopped");
    return FALSE;
  }
  return TRUE;
}

static void
cpu_embed (OxOps *ops, OxTensor *y, OxEmbedding *embedding, const guint32 *ids, float scale)
{
  OxOpsCpu *self = (OxOpsCpu *) ops;
  g_autofree guint8 *row = NULL;
  float *out = ox_cpu_rows (y);

  if (!ox_ops_cpu_running (self))
    return;
  row = g_try_malloc (embedding->row_bytes);
  if (row == NULL) {
    ox_ops_cpu_fail (self,
                     g_error_new_literal (OX_ERROR, OX_ERROR_NO_MEMORY, "Not enough memory to read an embedding"));
    return;
  }
  for (guint i = 0; i < y->rows; i++, out += y->cols) {
    GError *error = NULL;

    if (!ox_tensor_read_rows (&embedding->tensor, ids[i], (guint64) ids[i] + 1, row, &error)) {
      ox_ops_cpu_fail (self, error);
      return;
    }
    if (embedding->tensor.type == OX_TYPE_F32)
      memcpy (out, row, y->cols * sizeof (float));
    else
      self->kernels->dequantize (embedding->tensor.type, row, out, y->cols);
    if (scale != 1.0f)
      self->kernels->scale (out, scale, y->cols);
  }
}

/* ---- linear ---- */

typedef struct {
  OxOpsCpu *self;
  const float *x;
  guint8 *quantized;
  gsize quantized_row;
  gsize cols;
} QuantizeWork;

static void
quantize_rows (void *data, size_t begin, size_t end, unsigned worker)
{
  QuantizeWork *work = data;

  for (gsize i = begin; i < end; i++)
    work->self->kernels->quantize_q8 (work->x + i * work->cols, work->quantized + i * work->quantized_row, work->cols);
}

typedef struct {
  OxOpsCpu *self;
  OxMatrix *const *w;
  OxTensor *const *y;
  gsize m;
  const float *x;
  const guint8 *quantized;
  gsize steps_before[17]; /* row steps of the matrices before the i-th */
} LinearWork;

static void
linear_steps (void *data, size_t begin, size_t end, unsigned worker)
{
  LinearWork *work = data;
  guint i = 0;

  while (begin < end && ox_ops_cpu_running (work->self)) {
    const OxPackedMatrix *w;
    const void *x;
    gsize row_begin, row_end, stop, most;
    float *y;

    while (begin >= work->steps_before[i + 1])
      i++;
    w = &work->w[i]->packed;
    most = MAX (MAX_PRODUCTS / (w->kernel->row_step * w->cols * work->m), 1);
    stop = MIN (MIN (end, begin + most), work->steps_before[i + 1]);
    row_begin = (begin - work->steps_before[i]) * w->kernel->row_step;
    row_end = MIN ((stop - work->steps_before[i]) * w->kernel->row_step, w->rows);
    x = w->kernel->activation == OX_ACTIVATION_Q8 ? (const void *) work->quantized : (const void *) work->x;
    y = ox_cpu_rows (work->y[i]);
    if (work->m == 1)
      w->kernel->matvec (w, x, y, row_begin, row_end);
    else
      w->kernel->matmul (w, x, work->m, y, work->y[i]->cols, row_begin, row_end);
    begin = stop;
  }
}

static void
cpu_linear (OxOps *ops, const OxTensor *x, guint n, OxMatrix *const *w, OxTensor *const *y)
{
  OxOpsCpu *self = (OxOpsCpu *) ops;
  LinearWork work = { .self = self, .w = w, .y = y, .m = x->rows, .x = ox_cpu_rows (x) };
  gboolean quantized = FALSE;
  gsize total;

  if (!ox_ops_cpu_running (self) || n > G_N_ELEMENTS (work.steps_before) - 1)
    return;
  for (guint i = 0; i < n; i++) {
    const OxPackedMatrix *p = &w[i]->packed;
    work.steps_before[i + 1] = work.steps_before[i] + (p->rows + p->kernel->row_step - 1) / p->kernel->row_step;
    quantized |= p->kernel->activation == OX_ACTIVATION_Q8;
  }
  total = work.steps_before[n];

  if (quantized) {
    QuantizeWork q = { .self = self, .x = work.x, .cols = x->cols };

    q.quantized_row = ox_activation_row_bytes (OX_ACTIVATION_Q8, x->cols);
    if (!ox_ops_cpu_reserve (self, (void **) &self->quantized, &self->quantized_bytes, q.quantized_row * x->rows))
      return;
    q.quantized = self->quantized;
    if (x->rows == 1)
      quantize_rows (&q, 0, 1, 0);
    else
      ox_pool_run (self->pool, quantize_rows, &q, x->rows, 4);
    work.quantized = self->quantized;
  }
  ox_pool_run (self->pool, linear_steps, &work, total, MAX (total / (ox_pool_threads (self->pool) * 8u), 1));
}

/* ---- norms, rotations, sums ---- */

typedef struct {
  OxOpsCpu *self;
  float *y;
  const float *x;
  const float *w;
  gsize group;
  float eps;
} NormWork;

static void
norm_groups (void *data, size_t begin, size_t end, unsigned worker)
{
  NormWork *work = data;

  for (gsize i = begin; i < end; i++)
    work->self->kernels->rms_norm (work->y + i * work->group, work->x + i * work->group, work->w, 0, work->eps,
                                   work->group);
}

static void
cpu_rms_norm (OxOps *ops, OxTensor *y, const OxTensor *x, OxVector *w, guint group, float eps)
{
  OxOpsCpu *self = (OxOpsCpu *) ops;
  NormWork work = { self, ox_cpu_rows (y), ox_cpu_rows (x), w != NULL ? w->data : NULL, group, eps };
  gsize groups = (gsize) x->rows * (x->cols / group);

  if (!ox_ops_cpu_running (self))
    return;
  if (groups * group < MIN_PARALLEL_ELEMENTS)
    norm_groups (&work, 0, groups, 0);
  else
    ox_pool_run (self->pool, norm_groups, &work, groups, MAX (MIN_PARALLEL_ELEMENTS / 4 / group, 1));
}

static void
cpu_add_bias (OxOps *ops, OxTensor *x, OxVector *bias)
{
  OxOpsCpu *self = (OxOpsCpu *) ops;

  if (!ox_ops_cpu_running (self))
    return;
  for (guint i = 0; i < x->rows; i++)
    self->kernels->add (ox_cpu_rows (x) + (gsize) i * x->cols, bias->data, x->cols);
}

typedef struct {
  OxOpsCpu *self;
  OxTensor *x;
  const float *cos, *sin;
  guint head_dim, rotary_dim;
} RopeWork;

static void
rope_rows (void *data, size_t begin, size_t end, unsigned worker)
{
  RopeWork *work = data;
  guint half = work->rotary_dim / 2;

  for (gsize i = begin; i < end; i++)
    work->self->kernels->rope (ox_cpu_rows (work->x) + i * work->x->cols, work->cos + i * half, work->sin + i * half,
                               work->x->cols / work->head_dim, work->head_dim, work->rotary_dim);
}

static void
cpu_rope (OxOps *ops, OxTensor *x, const float *cos, const float *sin, guint head_dim, guint rotary_dim)
{
  OxOpsCpu *self = (OxOpsCpu *) ops;
  RopeWork work = { self, x, cos, sin, head_dim, rotary_dim };

  if (!ox_ops_cpu_running (self))
    return;
  if ((gsize) x->rows * x->cols < MIN_PARALLEL_ELEMENTS)
    rope_rows (&work, 0, x->rows, 0);
  else
    ox_pool_run (self->pool, rope_rows, &work, x->rows, 4);
}

typedef struct {
  OxOpsCpu *self;
  float *y;
  const float *a, *b;
  gsize cols;
  OxGate gate;
} ElementWork;

static void
gate_rows (void *data, size_t begin, size_t end, unsigned worker)
{
  ElementWork *work = data;
  gsize from = begin * work->cols;
  gsize n = (end - begin) * work->cols;

  if (work->gate == OX_GATE_SILU)
    work->self->kernels->silu_mul (work->y + from, work->a + from, work->b + from, n);
  else
    work->self->kernels->gelu_tanh_mul (work->y + from, work->a + from, work->b + from, n);
}

static void
cpu_gated (OxOps *ops, OxTensor *y, const OxTensor *gate, const OxTensor *up, OxGate gate_kind)
{
  OxOpsCpu *self = (OxOpsCpu *) ops;
  ElementWork work = { self, ox_cpu_rows (y), ox_cpu_rows (gate), ox_cpu_rows (up), y->cols, gate_kind };

  if (!ox_ops_cpu_running (self))
    return;
  if ((gsize) y->rows * y->cols < MIN_PARALLEL_ELEMENTS)
    gate_rows (&work, 0, y->rows, 0);
  else
    ox_pool_run (self->pool, gate_rows, &work, y->rows, 1);
}

static void
cpu_add (OxOps *ops, OxTensor *y, const OxTensor *x)
{
  OxOpsCpu *self = (OxOpsCpu *) ops;

  if (ox_ops_cpu_running (self))
    self->kernels->add (ox_cpu_rows (y), ox_cpu_rows (x), (gsize) y->rows * y->cols);
}

static void
cpu_read (OxOps *ops, const OxTensor *x, float *values)
{
  if (ox_ops_cpu_running ((OxOpsCpu *) ops))
    memcpy (values, ox_cpu_rows (x), (gsize) x->rows * x->cols * sizeof (float));
}

static void
cpu_free (OxOps *ops)
{
  OxOpsCpu *self = (OxOpsCpu *) ops;

  free (self->quantized);
  free (self->attention_scratch);
  g_clear_error (&self->error);
  g_mutex_clear (&self->error_lock);
  g_free (self);
}

OxOps *
ox_ops_cpu_new (const OxOpsCpuOptions *options)
{
  OxOpsCpu *self = g_new0 (OxOpsCpu, 1);

  self->kernels = options->kernels;
  self->pool = options->pool;
  self->precision = options->precision;
  self->quantize = options->quantize;
  self->cache = options->cache;
  g_mutex_init (&self->error_lock);
  self->base = (OxOps) {
    .free = cpu_free,
    .tensor_init = cpu_tensor_init,
    .tensor_clear = cpu_tensor_clear,
    .begin = cpu_begin,
    .finish = cpu_finish,
    .embed = cpu_embed,
    .linear = cpu_linear,
    .rms_norm = cpu_rms_norm,
    .add_bias = cpu_add_bias,
    .rope = cpu_rope,
    .gated = cpu_gated,
    .add = cpu_add,
    .read = cpu_read,
  };
  ox_ops_cpu_init_weights (self);
  ox_ops_cpu_init_attention (self);
  return &self->base;
}
