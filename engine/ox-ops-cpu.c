/* The CPU table: each operation runs at once, on the kernels, spread over the pool.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-ops-cpu.h"

#include <stdlib.h>
#include <string.h>

/* Products between two looks at the cancellable: some 10 to 50 ms, also where we have nothing but the C reference. */
#define MAX_PRODUCTS (1u << 29)
#define MAX_PRODUCTS_C (1u << 26)

/* Steps of rows that kernels take at once when there are many rows of activations. */
#define TILE_STEPS 4
/* Activation rows up to which products wait for memory, and the part of the weights that is shared out beforehand then. */
#define FEW_ROWS 8
#define LARGE_PERCENT 75
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

typedef struct {
  OxOpsCpu *self;
  OxTensor *y;
  OxEmbedding *embedding;
  const guint32 *ids;
  float scale;
} EmbedWork;

static void
embed_rows (void *data, size_t begin, size_t end, unsigned worker)
{
  EmbedWork *work = data;
  OxEmbedding *embedding = work->embedding;
  gsize cols = work->y->cols;
  g_autofree guint8 *row = g_try_malloc (embedding->row_bytes);

  if (row == NULL)
    ox_ops_cpu_fail (work->self,
                     g_error_new_literal (OX_ERROR, OX_ERROR_NO_MEMORY, "Not enough memory to read an embedding"));
  for (gsize i = begin; i < end && ox_ops_cpu_running (work->self); i++) {
    float *out = ox_cpu_rows (work->y) + i * cols;
    GError *error = NULL;

    if (!ox_tensor_read_rows (&embedding->tensor, work->ids[i], (guint64) work->ids[i] + 1, row, &error)) {
      ox_ops_cpu_fail (work->self, error);
      return;
    }
    if (embedding->tensor.type == OX_TYPE_F32)
      memcpy (out, row, cols * sizeof (float));
    else
      work->self->kernels->dequantize (embedding->tensor.type, row, out, cols);
    if (work->scale != 1.0f)
      work->self->kernels->scale (out, work->scale, cols);
  }
}

/* Rows may come from a disk: many threads wait for it at once. */
static void
cpu_embed (OxOps *ops, OxTensor *y, OxEmbedding *embedding, const guint32 *ids, float scale)
{
  OxOpsCpu *self = (OxOpsCpu *) ops;
  EmbedWork work = { self, y, embedding, ids, scale };

  if (!ox_ops_cpu_enter (self, OX_PROFILE_IO))
    return;
  ox_pool_run (self->pool, embed_rows, &work, y->rows, 4);
}

/* ---- linear ---- */

gsize
ox_ops_cpu_coded_bytes (guint form_mask, gsize rows, gsize cols)
{
  gsize bytes = 0;

  for (OxActivation form = OX_ACTIVATION_F32 + 1; form < OX_N_ACTIVATIONS; form++)
    if (form_mask >> form & 1)
      bytes += (rows * ox_activation_row_bytes (form, cols) + 63) & ~(gsize) 63;
  return bytes;
}

typedef struct {
  const float *x;
  gsize cols;
  void (*code) (const float *x, void *row, size_t n);
  guint8 *coded;
  gsize row_bytes;
} CodeWork;

static void
code_rows (void *data, size_t begin, size_t end, unsigned worker)
{
  CodeWork *work = data;

  for (gsize i = begin; i < end; i++)
    work->code (work->x + i * work->cols, work->coded + i * work->row_bytes, work->cols);
}

OxCpuInput
ox_ops_cpu_code (OxOpsCpu *self, guint form_mask, const float *x, gsize rows, gsize cols, guint8 *memory)
{
  OxCpuInput input = { .rows[OX_ACTIVATION_F32] = (const guint8 *) x };

  for (OxActivation form = OX_ACTIVATION_F32 + 1; form < OX_N_ACTIVATIONS; form++) {
    CodeWork work = { .x = x, .cols = cols, .coded = memory, .row_bytes = ox_activation_row_bytes (form, cols) };

    if (!(form_mask >> form & 1))
      continue;
    work.code = form == OX_ACTIVATION_Q8 ? self->kernels->quantize_q8 : self->kernels->round_bf16;
    if (rows == 1)
      code_rows (&work, 0, 1, 0);
    else
      ox_pool_run (self->pool, code_rows, &work, rows, 4);
    input.rows[form] = memory;
    memory += ox_ops_cpu_coded_bytes (1u << form, rows, cols);
  }
  return input;
}

typedef struct {
  OxOpsCpu *self;
  const OxCpuProduct *products;
  guint n;
} ProductWork;

static gsize
product_steps (const OxCpuProduct *product)
{
  gsize step = product->w->kernel->row_step;

  return (product->w->rows + step - 1) / step;
}

/* About @steps steps, without leaving part of a tile; few of them as they are. */
static gsize
whole_tiles (gsize steps)
{
  return steps < TILE_STEPS - 1 ? steps : (steps + TILE_STEPS / 2) / TILE_STEPS * TILE_STEPS;
}

static void
product_range (void *data, size_t begin, size_t end, unsigned worker)
{
  ProductWork *work = data;
  guint i = 0;

  while (begin < end && ox_ops_cpu_running (work->self)) {
    const OxCpuProduct *product;
    const OxPackedMatrix *w;
    gsize row_begin, row_end, stop, most;

    while (i + 1 < work->n && begin >= work->products[i + 1].first_step)
      i++;
    product = &work->products[i];
    w = product->w;
    most =
      (work->self->kernels->flags != 0 ? MAX_PRODUCTS : MAX_PRODUCTS_C) / (w->kernel->row_step * w->cols * product->m);
    most = whole_tiles (MAX (most, 1));
    stop = MIN (MIN (end, begin + most), product->first_step + product_steps (product));
    row_begin = (begin - product->first_step) * w->kernel->row_step;
    row_end = MIN ((stop - product->first_step) * w->kernel->row_step, w->rows);
    if (product->m == 1)
      w->kernel->matvec (w, product->x, product->y, row_begin, row_end);
    else
      w->kernel->matmul (w, product->x, product->m, product->y, product->y_stride, row_begin, row_end);
    begin = stop;
  }
}

/* Products of few rows wait for memory, which is read fastest as one long stream a thread: each gets a large piece first, and what is left
 * goes in small ones to who comes first, so that nobody waits long in the end. */
typedef struct {
  ProductWork work;
  gsize total, large, n_large, small;
} PieceWork;

static void
product_pieces (void *data, size_t begin, size_t end, unsigned worker)
{
  PieceWork *pieces = data;

  for (gsize i = begin; i < end; i++) {
    gsize first =
      i < pieces->n_large ? i * pieces->large : pieces->n_large * pieces->large + (i - pieces->n_large) * pieces->small;
    gsize steps = i < pieces->n_large ? pieces->large : pieces->small;

    product_range (&pieces->work, MIN (first, pieces->total), MIN (first + steps, pieces->total), worker);
  }
}

void
ox_ops_cpu_products (OxOpsCpu *self, OxCpuProduct *products, guint n)
{
  PieceWork pieces = { .work = { self, products, n } };
  gsize threads = ox_pool_threads (self->pool), total = 0, rows = 0;

  for (guint i = 0; i < n; i++) {
    products[i].first_step = total;
    total += product_steps (&products[i]);
    rows = MAX (rows, products[i].m);
  }
  if (rows > FEW_ROWS || threads == 1) {
    ox_pool_run (self->pool, product_range, &pieces.work, total, whole_tiles (MAX (total / (threads * 8), 1)));
    return;
  }
  pieces.total = total;
  pieces.n_large = threads;
  pieces.large = total * LARGE_PERCENT / 100 / threads;
  pieces.small = MAX ((total - pieces.large * threads + threads * 8 - 1) / (threads * 8), 1);
  ox_pool_run (self->pool, product_pieces, &pieces,
               threads + (total - pieces.large * threads + pieces.small - 1) / pieces.small, 1);
}

static void
cpu_linear (OxOps *ops, const OxTensor *x, guint n, OxMatrix *const *w, OxTensor *const *y)
{
  OxOpsCpu *self = (OxOpsCpu *) ops;
  OxCpuProduct products[16];
  OxCpuInput input;
  guint forms = 0;

  if (!ox_ops_cpu_enter (self, OX_PROFILE_MATMUL))
    return;
  for (guint i = 0; i < n; i++)
    forms |= ox_cpu_form (w[i]);
  if (!ox_ops_cpu_reserve (self, (void **) &self->coded, &self->coded_bytes,
                           ox_ops_cpu_coded_bytes (forms, x->rows, x->cols)))
    return;
  input = ox_ops_cpu_code (self, forms, ox_cpu_rows (x), x->rows, x->cols, self->coded);
  for (guint first = 0; first < n; first += G_N_ELEMENTS (products)) {
    guint count = MIN (n - first, G_N_ELEMENTS (products));

    for (guint i = 0; i < count; i++)
      products[i] = (OxCpuProduct) {
        .w = &w[first + i]->packed,
        .x = ox_cpu_input (&input, w[first + i], 0),
        .m = x->rows,
        .y = ox_cpu_rows (y[first + i]),
        .y_stride = y[first + i]->cols,
      };
    ox_ops_cpu_products (self, products, count);
  }
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

  if (!ox_ops_cpu_enter (self, OX_PROFILE_NORM))
    return;
  if (groups * group < MIN_PARALLEL_ELEMENTS)
    norm_groups (&work, 0, groups, 0);
  else
    ox_pool_run (self->pool, norm_groups, &work, groups, MAX (MIN_PARALLEL_ELEMENTS / 4 / group, 1));
}

typedef struct {
  OxOpsCpu *self;
  OxTensor *x;
  OxVector *bias;
} BiasWork;

static void
bias_rows (void *data, size_t begin, size_t end, unsigned worker)
{
  BiasWork *work = data;

  for (gsize i = begin; i < end; i++)
    work->self->kernels->add (ox_cpu_rows (work->x) + i * work->x->cols, work->bias->data, work->x->cols);
}

static void
cpu_add_bias (OxOps *ops, OxTensor *x, OxVector *bias)
{
  OxOpsCpu *self = (OxOpsCpu *) ops;
  BiasWork work = { self, x, bias };

  if (ox_ops_cpu_enter (self, OX_PROFILE_ELEMENTWISE))
    ox_pool_run (self->pool, bias_rows, &work, x->rows, MAX (MIN_PARALLEL_ELEMENTS / 2 / x->cols, 1));
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

  if (!ox_ops_cpu_enter (self, OX_PROFILE_ELEMENTWISE))
    return;
  if ((gsize) x->rows * x->cols < MIN_PARALLEL_ELEMENTS)
    rope_rows (&work, 0, x->rows, 0);
  else
    ox_pool_run (self->pool, rope_rows, &work, x->rows, 4);
}

/* ---- elements ---- */

/* What happens to elements one by one, so that it may be cut anywhere. */
typedef struct {
  OxOpsCpu *self;
  void (*run) (const OxKernels *kernels, float *y, const float *a, const float *b, float s, gsize n);
  float *y;
  const float *a, *b;
  float s;
  gsize n;
} ElementWork;

/* Elements that are handed out together. */
#define ELEMENT_BLOCK 4096

static void
element_blocks (void *data, size_t begin, size_t end, unsigned worker)
{
  ElementWork *work = data;
  gsize first = begin * ELEMENT_BLOCK, n = MIN (end * ELEMENT_BLOCK, work->n) - first;

  work->run (work->self->kernels, work->y + first, work->a != NULL ? work->a + first : NULL,
             work->b != NULL ? work->b + first : NULL, work->s, n);
}

static void
run_elements (ElementWork work)
{
  if (work.n < MIN_PARALLEL_ELEMENTS)
    work.run (work.self->kernels, work.y, work.a, work.b, work.s, work.n);
  else
    ox_pool_run (work.self->pool, element_blocks, &work, (work.n + ELEMENT_BLOCK - 1) / ELEMENT_BLOCK, 1);
}

static gsize
n_elements (const OxTensor *t)
{
  return (gsize) t->rows * t->cols;
}

static void
run_silu (const OxKernels *kernels, float *y, const float *gate, const float *up, float s, gsize n)
{
  kernels->silu_mul (y, gate, up, n);
}

static void
run_gelu (const OxKernels *kernels, float *y, const float *gate, const float *up, float s, gsize n)
{
  kernels->gelu_tanh_mul (y, gate, up, n);
}

static void
run_sigmoid (const OxKernels *kernels, float *y, const float *gate, const float *up, float s, gsize n)
{
  kernels->sigmoid_mul (y, gate, up, n);
}

static void
run_copy (const OxKernels *kernels, float *y, const float *x, const float *b, float s, gsize n)
{
  memcpy (y, x, n * sizeof (float));
}

static void
run_add (const OxKernels *kernels, float *y, const float *x, const float *b, float s, gsize n)
{
  kernels->add (y, x, n);
}

static void
run_scale (const OxKernels *kernels, float *y, const float *a, const float *b, float s, gsize n)
{
  kernels->scale (y, s, n);
}

static void
run_softcap (const OxKernels *kernels, float *y, const float *a, const float *b, float cap, gsize n)
{
  kernels->softcap (y, cap, n);
}

typedef void (*GateFunc) (float *y, const float *gate, const float *up, size_t n);

static GateFunc
gate_func (const OxKernels *kernels, OxGate gate_kind)
{
  return gate_kind == OX_GATE_SILU        ? kernels->silu_mul
         : gate_kind == OX_GATE_GELU_TANH ? kernels->gelu_tanh_mul
                                          : kernels->sigmoid_mul;
}

void
ox_ops_cpu_gate (OxOpsCpu *self, float *y, const float *gate, const float *up, gsize n, OxGate gate_kind)
{
  ElementWork work = { .self = self, .y = y, .a = gate, .b = up, .n = n };

  work.run = gate_kind == OX_GATE_SILU ? run_silu : gate_kind == OX_GATE_GELU_TANH ? run_gelu : run_sigmoid;
  run_elements (work);
}

static void
cpu_gated (OxOps *ops, OxTensor *y, const OxTensor *gate, const OxTensor *up, OxGate gate_kind)
{
  OxOpsCpu *self = (OxOpsCpu *) ops;

  if (ox_ops_cpu_enter (self, OX_PROFILE_ELEMENTWISE))
    ox_ops_cpu_gate (self, ox_cpu_rows (y), ox_cpu_rows (gate), ox_cpu_rows (up), n_elements (y), gate_kind);
}

typedef struct {
  GateFunc run;
  OxTensor *y;
  const OxTensor *gate, *up;
  guint first;
} ColumnsWork;

static void
gate_rows (void *data, size_t begin, size_t end, unsigned worker)
{
  ColumnsWork *work = data;

  for (gsize i = begin; i < end; i++)
    work->run (ox_cpu_rows (work->y) + i * work->y->cols, ox_cpu_rows (work->gate) + i * work->gate->cols,
               ox_cpu_rows (work->up) + i * work->up->cols + work->first, work->y->cols);
}

static void
cpu_gated_columns (OxOps *ops, OxTensor *y, const OxTensor *gate, const OxTensor *up, guint first, OxGate gate_kind)
{
  OxOpsCpu *self = (OxOpsCpu *) ops;
  ColumnsWork work = { gate_func (self->kernels, gate_kind), y, gate, up, first };

  if (ox_ops_cpu_enter (self, OX_PROFILE_ELEMENTWISE))
    ox_pool_run (self->pool, gate_rows, &work, y->rows, MAX (MIN_PARALLEL_ELEMENTS / 2 / y->cols, 1));
}

static void
cpu_add (OxOps *ops, OxTensor *y, const OxTensor *x)
{
  OxOpsCpu *self = (OxOpsCpu *) ops;

  if (ox_ops_cpu_enter (self, OX_PROFILE_ELEMENTWISE))
    run_elements (
      (ElementWork) { .self = self, .run = run_add, .y = ox_cpu_rows (y), .a = ox_cpu_rows (x), .n = n_elements (y) });
}

static void
cpu_copy (OxOps *ops, OxTensor *y, const OxTensor *x)
{
  if (ox_ops_cpu_enter ((OxOpsCpu *) ops, OX_PROFILE_ELEMENTWISE))
    memmove (ox_cpu_rows (y), ox_cpu_rows (x), n_elements (y) * sizeof (float));
}

static void
cpu_concat (OxOps *ops, OxTensor *y, const OxTensor *a, const OxTensor *b)
{
  float *out = ox_cpu_rows (y);

  if (!ox_ops_cpu_enter ((OxOpsCpu *) ops, OX_PROFILE_ELEMENTWISE))
    return;
  for (guint i = 0; i < y->rows; i++, out += y->cols) {
    memcpy (out, ox_cpu_rows (a) + (gsize) i * a->cols, a->cols * sizeof (float));
    memcpy (out + a->cols, ox_cpu_rows (b) + (gsize) i * b->cols, b->cols * sizeof (float));
  }
}

static void
cpu_scale (OxOps *ops, OxTensor *x, float s)
{
  OxOpsCpu *self = (OxOpsCpu *) ops;

  if (ox_ops_cpu_enter (self, OX_PROFILE_ELEMENTWISE))
    run_elements ((ElementWork) { .self = self, .run = run_scale, .y = ox_cpu_rows (x), .s = s, .n = n_elements (x) });
}

static void
cpu_softcap (OxOps *ops, OxTensor *x, float cap)
{
  OxOpsCpu *self = (OxOpsCpu *) ops;

  if (ox_ops_cpu_enter (self, OX_PROFILE_ELEMENTWISE))
    run_elements (
      (ElementWork) { .self = self, .run = run_softcap, .y = ox_cpu_rows (x), .s = cap, .n = n_elements (x) });
}

/* Scores over a large vocabulary are megabytes: they are written where they are wanted. */
static void
cpu_linear_read (OxOps *ops, const OxTensor *x, OxMatrix *w, float cap, float *values)
{
  OxTensor y = { values, 0, x->rows, (guint) w->packed.rows };

  cpu_linear (ops, x, 1, &w, (OxTensor *[]) { &y });
  if (cap > 0)
    cpu_softcap (ops, &y, cap);
}

static void
cpu_read (OxOps *ops, const OxTensor *x, float *values)
{
  OxOpsCpu *self = (OxOpsCpu *) ops;

  /* Scores of several tokens over a large vocabulary are megabytes. */
  if (ox_ops_cpu_enter (self, OX_PROFILE_ELEMENTWISE))
    run_elements (
      (ElementWork) { .self = self, .run = run_copy, .y = values, .a = ox_cpu_rows (x), .n = n_elements (x) });
}

static void
cpu_free (OxOps *ops)
{
  OxOpsCpu *self = (OxOpsCpu *) ops;

  free (self->coded);
  free (self->attention_scratch);
  free (self->rows_scratch);
  free (self->delta_scratch);
  free (self->moe_scratch);
  free (self->centroid_scratch);
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
    .gated_columns = cpu_gated_columns,
    .add = cpu_add,
    .copy = cpu_copy,
    .concat = cpu_concat,
    .scale = cpu_scale,
    .softcap = cpu_softcap,
    .linear_read = cpu_linear_read,
    .read = cpu_read,
  };
  self->base.profile.profiler = options->profiler;
  ox_ops_cpu_init_weights (self);
  ox_ops_cpu_init_attention (self);
  ox_ops_cpu_init_recurrent (self);
  ox_ops_cpu_init_moe (self);
  return &self->base;
}
