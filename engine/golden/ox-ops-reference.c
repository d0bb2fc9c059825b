/* A second table of operations: float64 and plain loops, for tests.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "golden/ox-ops-reference-private.h"

#include <math.h>
#include <string.h>

typedef struct {
  OxOps base;
  OxKernels c; /* the C reference: what the formats of files mean */
  GCancellable *cancellable;
  GError *error;
} RefOps;

struct _OxMatrix {
  guint rows, cols;
  double *w; /* [rows, cols] */
};

struct _OxEmbedding {
  OxTensorInfo tensor; /* name and file kept alive */
};

struct _OxKv {
  guint n_heads, head_dim, capacity;
  OxType type;
  double *k, *v; /* [n_heads, capacity, head_dim] */
};

static gsize
elements (const OxTensor *t)
{
  return (gsize) t->rows * t->cols;
}

gboolean
ox_reference_running (OxOps *ops)
{
  RefOps *self = (RefOps *) ops;

  return self->error == NULL && !g_cancellable_set_error_if_cancelled (self->cancellable, &self->error);
}

double *
ox_reference_zeros (guint64 a, guint64 b, guint64 c, GError **error)
{
  guint64 n;
  double *zeros = NULL;

  if (g_uint64_checked_mul (&n, a, b) && g_uint64_checked_mul (&n, n, c) && n <= G_MAXSIZE / sizeof (double))
    zeros = g_try_new0 (double, MAX (n, 1));
  if (zeros == NULL)
    g_set_error_literal (error, OX_ERROR, OX_ERROR_NO_MEMORY, "Not enough memory for the reference table");
  return zeros;
}

/* ---- Weights ---- */

/* One row of @tensor, [rows, cols]. */
static gboolean
read_row (RefOps *self, const OxTensorInfo *tensor, guint row, double *values, GError **error)
{
  guint cols = (guint) tensor->dims[1];
  guint64 bytes;
  g_autofree guint8 *stored = NULL;
  g_autofree float *floats = g_new (float, cols);

  if (!ox_type_row_bytes (tensor->type, cols, &bytes)) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: tensor “%s” has rows that are no whole number of blocks",
                 ox_file_get_name (tensor->file), tensor->name);
    return FALSE;
  }
  stored = g_malloc (bytes);
  if (!ox_tensor_read_rows (tensor, row, (guint64) row + 1, stored, error))
    return FALSE;
  self->c.dequantize (tensor->type, stored, floats, cols);
  for (guint i = 0; i < cols; i++)
    values[i] = floats[i];
  return TRUE;
}

static void
ref_matrix_free (OxOps *ops, OxMatrix *matrix)
{
  if (matrix == NULL)
    return;
  g_free (matrix->w);
  g_free (matrix);
}

static OxMatrix *
ref_matrix_load (OxOps *ops,
                 const OxTensorInfo *tensor,
                 const OxRowMap *map,
                 OxMatrixRole role,
                 OxLoadFunc progress,
                 gpointer user_data,
                 GError **error)
{
  OxMatrix *matrix;

  if (!ox_ops_check_matrix (tensor, map, error))
    return NULL;
  matrix = g_new0 (OxMatrix, 1);
  matrix->rows = map != NULL ? map->n_rows : (guint) tensor->dims[0];
  matrix->cols = (guint) tensor->dims[1];
  matrix->w = ox_reference_zeros (matrix->rows, matrix->cols, 1, error);
  for (guint i = 0; matrix->w != NULL && i < matrix->rows; i++)
    if (!read_row ((RefOps *) ops, tensor, map != NULL ? map->source[i] : i, matrix->w + (gsize) i * matrix->cols,
                   error))
      g_clear_pointer (&matrix->w, g_free);
  if (matrix->w != NULL && progress != NULL && !progress (tensor->n_bytes, user_data)) {
    g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_CANCELLED, "Loading was stopped");
    g_clear_pointer (&matrix->w, g_free);
  }
  if (matrix->w == NULL)
    g_clear_pointer (&matrix, g_free);
  return matrix;
}

static void
ref_vector_free (OxOps *ops, OxVector *vector)
{
  if (vector == NULL)
    return;
  g_free (vector->w);
  g_free (vector);
}

static OxVector *
ref_vector_load (OxOps *ops, const OxTensorInfo *tensor, OxVectorForm form, GError **error)
{
  g_autofree float *values = NULL;
  OxVector *vector;

  if (!ox_ops_check_vector (tensor, error) || (values = ox_tensor_read_f32 (tensor, error)) == NULL)
    return NULL;
  vector = g_new0 (OxVector, 1);
  vector->n = (guint) tensor->n_elements;
  vector->w = g_new (double, vector->n);
  for (guint i = 0; i < vector->n; i++)
    vector->w[i] = form == OX_VECTOR_PLUS_ONE    ? 1 + (double) values[i]
                   : form == OX_VECTOR_MINUS_EXP ? -exp (values[i])
                                                 : values[i];
  return vector;
}

static float
ref_vector_get (OxOps *ops, OxVector *vector, guint index)
{
  return index < vector->n ? (float) vector->w[index] : 0;
}

static OxEmbedding *
ref_embedding_open (OxOps *ops, const OxTensorInfo *tensor, GError **error)
{
  OxEmbedding *embedding;

  if (!ox_ops_check_matrix (tensor, NULL, error))
    return NULL;
  embedding = g_new0 (OxEmbedding, 1);
  embedding->tensor = *tensor;
  embedding->tensor.name = g_strdup (tensor->name);
  embedding->tensor.file = ox_file_ref (tensor->file);
  return embedding;
}

static void
ref_embedding_free (OxOps *ops, OxEmbedding *embedding)
{
  if (embedding == NULL)
    return;
  g_free ((char *) embedding->tensor.name);
  ox_file_unref (embedding->tensor.file);
  g_free (embedding);
}

/* ---- Activations, keys and values ---- */

static gboolean
ref_tensor_init (OxOps *ops, OxTensor *tensor, guint rows, guint cols, GError **error)
{
  *tensor = (OxTensor) { ox_reference_zeros (rows, cols, 1, error), 0, rows, cols };
  return tensor->data != NULL;
}

static void
ref_tensor_clear (OxOps *ops, OxTensor *tensor)
{
  g_free (tensor->data);
  memset (tensor, 0, sizeof *tensor);
}

static void
ref_kv_free (OxOps *ops, OxKv *kv)
{
  if (kv == NULL)
    return;
  g_free (kv->k);
  g_free (kv->v);
  g_free (kv);
}

static OxKv *
ref_kv_new (OxOps *ops, guint n_kv_heads, guint head_dim, guint capacity, OxType type, GError **error)
{
  OxKv *kv;

  if (type == OX_TYPE_Q8_0 && head_dim % 32 != 0) {
    g_set_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED,
                 "Keys and values of %u elements cannot be kept in Q8_0, whose blocks have 32", head_dim);
    return NULL;
  }
  kv = g_new0 (OxKv, 1);
  *kv =
    (OxKv) { n_kv_heads, head_dim, capacity, type, ox_reference_zeros (n_kv_heads, capacity, head_dim, error), NULL };
  if (kv->k == NULL || (kv->v = ox_reference_zeros (n_kv_heads, capacity, head_dim, error)) == NULL) {
    ref_kv_free (ops, kv);
    return NULL;
  }
  return kv;
}

/* The place of a position's elements in kv->k and kv->v. */
static gsize
kv_at (const OxKv *kv, guint head, gsize position)
{
  return ((gsize) head * kv->capacity + position % kv->capacity) * kv->head_dim;
}

static void
to_stored (RefOps *self, const OxKv *kv, const double *x, guint8 *row)
{
  g_autofree float *floats = g_new (float, kv->head_dim);

  for (guint i = 0; i < kv->head_dim; i++)
    floats[i] = (float) x[i];
  self->c.attention->store_row (kv->type, floats, row, kv->head_dim);
}

static void
from_stored (RefOps *self, const OxKv *kv, const guint8 *row, double *x)
{
  g_autofree float *floats = g_new (float, kv->head_dim);

  self->c.dequantize (kv->type, row, floats, kv->head_dim);
  for (guint i = 0; i < kv->head_dim; i++)
    x[i] = floats[i];
}

static void
ref_kv_write (OxOps *ops, OxKv *kv, const OxTensor *k, const OxTensor *v, guint position)
{
  RefOps *self = (RefOps *) ops;
  g_autofree guint8 *row = g_malloc (ox_kv_bytes (1, kv->head_dim, kv->type, 1));

  if (!ox_reference_running (ops))
    return;
  for (guint i = 0; i < k->rows; i++)
    for (guint h = 0; h < kv->n_heads; h++)
      for (guint part = 0; part < 2; part++) {
        const OxTensor *from = part == 0 ? k : v;
        double *to = (part == 0 ? kv->k : kv->v) + kv_at (kv, h, (gsize) position + i);

        memcpy (to, ox_reference_rows (from) + (gsize) i * from->cols + h * kv->head_dim,
                kv->head_dim * sizeof (double));
        if (kv->type == OX_TYPE_F32)
          continue;
        to_stored (self, kv, to, row);
        from_stored (self, kv, row, to);
      }
}

/* [head][position][row] of the keys, then of the values. What has been rounded to a format is not changed by that format again. */
static void
ref_kv_save (OxOps *ops, OxKv *kv, guint position, guint n, gpointer bytes)
{
  gsize row = ox_kv_bytes (1, kv->head_dim, kv->type, 1) / 2;
  guint8 *to = bytes;

  for (guint part = 0; part < 2; part++)
    for (guint h = 0; h < kv->n_heads; h++)
      for (guint i = 0; i < n; i++, to += row)
        to_stored ((RefOps *) ops, kv, (part == 0 ? kv->k : kv->v) + kv_at (kv, h, (gsize) position + i), to);
}

static void
ref_kv_restore (OxOps *ops, OxKv *kv, guint position, guint n, gconstpointer bytes)
{
  gsize row = ox_kv_bytes (1, kv->head_dim, kv->type, 1) / 2;
  const guint8 *from = bytes;

  for (guint part = 0; part < 2; part++)
    for (guint h = 0; h < kv->n_heads; h++)
      for (guint i = 0; i < n; i++, from += row)
        from_stored ((RefOps *) ops, kv, from, (part == 0 ? kv->k : kv->v) + kv_at (kv, h, (gsize) position + i));
}

/* ---- Computing ---- */

static void
ref_begin (OxOps *ops, GCancellable *cancellable)
{
  RefOps *self = (RefOps *) ops;

  g_clear_error (&self->error);
  self->cancellable = cancellable;
}

static gboolean
ref_finish (OxOps *ops, GError **error)
{
  RefOps *self = (RefOps *) ops;

  self->cancellable = NULL;
  if (self->error == NULL)
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&self->error));
  return FALSE;
}

static void
ref_embed (OxOps *ops, OxTensor *y, OxEmbedding *embedding, const guint32 *ids, float scale)
{
  RefOps *self = (RefOps *) ops;

  for (guint i = 0; i < y->rows && ox_reference_running (ops); i++) {
    double *out = ox_reference_rows (y) + (gsize) i * y->cols;

    if (!read_row (self, &embedding->tensor, ids[i], out, &self->error))
      return;
    for (guint j = 0; j < y->cols; j++)
      out[j] *= scale;
  }
}

/* y = w · x */
static void
multiply (const OxMatrix *w, const double *x, double *y)
{
  for (guint r = 0; r < w->rows; r++) {
    double sum = 0;

    for (guint c = 0; c < w->cols; c++)
      sum += w->w[(gsize) r * w->cols + c] * x[c];
    y[r] = sum;
  }
}

static void
ref_linear (OxOps *ops, const OxTensor *x, guint n, OxMatrix *const *w, OxTensor *const *y)
{
  for (guint j = 0; j < n && ox_reference_running (ops); j++)
    for (guint i = 0; i < x->rows; i++)
      multiply (w[j], ox_reference_rows (x) + (gsize) i * x->cols, ox_reference_rows (y[j]) + (gsize) i * y[j]->cols);
}

/* Zhang & Sennrich 2019 */
static void
ref_rms_norm (OxOps *ops, OxTensor *y, const OxTensor *x, OxVector *w, guint group, float eps)
{
  if (!ox_reference_running (ops))
    return;
  for (gsize at = 0; at < elements (x); at += group) {
    const double *in = ox_reference_rows (x) + at;
    double *out = ox_reference_rows (y) + at, sum = 0, factor;

    for (guint i = 0; i < group; i++)
      sum += in[i] * in[i];
    factor = 1 / sqrt (sum / group + eps);
    for (guint i = 0; i < group; i++)
      out[i] = in[i] * factor * (w != NULL ? w->w[i] : 1);
  }
}

static void
ref_add_bias (OxOps *ops, OxTensor *x, OxVector *bias)
{
  if (!ox_reference_running (ops))
    return;
  for (gsize i = 0; i < elements (x); i++)
    ox_reference_rows (x)[i] += bias->w[i % x->cols];
}

/* Su et al. 2021 */
static void
ref_rope (OxOps *ops, OxTensor *x, const float *cos, const float *sin, guint head_dim, guint rotary_dim)
{
  guint half = rotary_dim / 2;

  if (!ox_reference_running (ops))
    return;
  for (guint i = 0; i < x->rows; i++)
    for (guint h = 0; h < x->cols / head_dim; h++)
      for (guint j = 0; j < half; j++) {
        double *a = ox_reference_rows (x) + (gsize) i * x->cols + (gsize) h * head_dim + j, *b = a + half, first = *a;
        double c = cos[(gsize) i * half + j], s = sin[(gsize) i * half + j];

        *a = first * c - *b * s;
        *b = *b * c + first * s;
      }
}

static void
softmax (double *p, gsize n)
{
  double largest = -INFINITY, sum = 0;

  for (gsize i = 0; i < n; i++)
    largest = fmax (largest, p[i]);
  for (gsize i = 0; i < n; i++)
    sum += p[i] = exp (p[i] - largest);
  for (gsize i = 0; i < n; i++)
    p[i] /= sum;
}

/* Keys and values of a head: position p lies at p % capacity. */
typedef struct {
  const double *k, *v;
  gsize stride, capacity;
} RefKeys;

static void
attend_head (
  const double *q, double *y, guint dim, const RefKeys *keys, OxKeySpan span, const OxAttentionParams *params)
{
  g_autofree double *p = g_new (double, span.end - span.begin);

  for (gsize t = span.begin; t < span.end; t++) {
    const double *k = keys->k + t % keys->capacity * keys->stride;
    double sum = 0;

    for (guint j = 0; j < dim; j++)
      sum += q[j] * k[j];
    sum *= params->scale;
    p[t - span.begin] = params->softcap != 0 ? params->softcap * tanh (sum / params->softcap) : sum;
  }
  softmax (p, span.end - span.begin);
  for (guint j = 0; j < dim; j++) {
    y[j] = 0;
    for (gsize t = span.begin; t < span.end; t++)
      y[j] += p[t - span.begin] * keys->v[t % keys->capacity * keys->stride + j];
  }
}

static OxKeySpan
visible (const OxAttentionParams *params, guint row)
{
  gsize end = (gsize) params->position + row + 1;

  if (params->n_visible > 0)
    return params->visible[params->n_visible > 1 ? row : 0];
  return (OxKeySpan) { params->window != 0 && end > params->window ? end - params->window : 0, end };
}

static void
ref_attention_with (OxOps *ops, OxTensor *y, const OxTensor *q, OxKv *kv, const OxAttentionParams *params)
{
  guint dim = kv->head_dim, n_heads = q->cols / dim;

  for (guint i = 0; i < q->rows && ox_reference_running (ops); i++)
    for (guint h = 0; h < n_heads; h++) {
      gsize first = kv_at (kv, h / (n_heads / kv->n_heads), 0), at = (gsize) i * q->cols + (gsize) h * dim;
      RefKeys keys = { kv->k + first, kv->v + first, dim, kv->capacity };

      attend_head (ox_reference_rows (q) + at, ox_reference_rows (y) + at, dim, &keys, visible (params, i), params);
    }
}

static void
ref_attention (OxOps *ops, OxTensor *y, const OxTensor *q, OxKv *kv, guint position, guint window, float scale)
{
  ref_attention_with (ops, y, q, kv, &(OxAttentionParams) { .position = position, .window = window, .scale = scale });
}

static void
ref_attention_rows (OxOps *ops,
                    OxTensor *y,
                    const OxTensor *q,
                    const OxTensor *k,
                    const OxTensor *v,
                    guint head_dim,
                    const OxAttentionParams *params)
{
  guint n_heads = q->cols / head_dim, group = n_heads / (k->cols / head_dim);

  for (guint i = 0; i < q->rows && ox_reference_running (ops); i++)
    for (guint h = 0; h < n_heads; h++) {
      gsize first = (gsize) (h / group) * head_dim, at = (gsize) i * q->cols + (gsize) h * head_dim;
      RefKeys keys = { ox_reference_rows (k) + first, ox_reference_rows (v) + first, k->cols, k->rows };

      attend_head (ox_reference_rows (q) + at, ox_reference_rows (y) + at, head_dim, &keys, visible (params, i),
                   params);
    }
}

double
ox_reference_activate (double x, OxGate kind)
{
  switch (kind) {
  case OX_GATE_SILU:
    return x / (1 + exp (-x));
  case OX_GATE_SIGMOID:
    return 1 / (1 + exp (-x));
  default: /* Hendrycks & Gimpel 2016 */
    return x / 2 * (1 + tanh (sqrt (2 / G_PI) * (x + 0.044715 * x * x * x)));
  }
}

static void
ref_gated_columns (OxOps *ops, OxTensor *y, const OxTensor *gate, const OxTensor *up, guint first, OxGate gate_kind)
{
  if (!ox_reference_running (ops))
    return;
  for (guint i = 0; i < y->rows; i++)
    for (guint j = 0; j < y->cols; j++)
      ox_reference_rows (y)[(gsize) i * y->cols + j] =
        ox_reference_activate (ox_reference_rows (gate)[(gsize) i * gate->cols + j], gate_kind) *
        ox_reference_rows (up)[(gsize) i * up->cols + first + j];
}

static void
ref_gated (OxOps *ops, OxTensor *y, const OxTensor *gate, const OxTensor *up, OxGate gate_kind)
{
  ref_gated_columns (ops, y, gate, up, 0, gate_kind);
}

static void
ref_add (OxOps *ops, OxTensor *y, const OxTensor *x)
{
  if (!ox_reference_running (ops))
    return;
  for (gsize i = 0; i < elements (y); i++)
    ox_reference_rows (y)[i] += ox_reference_rows (x)[i];
}

static void
ref_copy (OxOps *ops, OxTensor *y, const OxTensor *x)
{
  if (ox_reference_running (ops))
    memmove (ox_reference_rows (y), ox_reference_rows (x), elements (y) * sizeof (double));
}

static void
ref_concat (OxOps *ops, OxTensor *y, const OxTensor *a, const OxTensor *b)
{
  if (!ox_reference_running (ops))
    return;
  for (guint i = 0; i < y->rows; i++) {
    double *out = ox_reference_rows (y) + (gsize) i * y->cols;

    memcpy (out, ox_reference_rows (a) + (gsize) i * a->cols, a->cols * sizeof (double));
    memcpy (out + a->cols, ox_reference_rows (b) + (gsize) i * b->cols, b->cols * sizeof (double));
  }
}

static void
ref_scale (OxOps *ops, OxTensor *x, float s)
{
  if (!ox_reference_running (ops))
    return;
  for (gsize i = 0; i < elements (x); i++)
    ox_reference_rows (x)[i] *= s;
}

static void
ref_softcap (OxOps *ops, OxTensor *x, float cap)
{
  if (!ox_reference_running (ops))
    return;
  for (gsize i = 0; i < elements (x); i++)
    ox_reference_rows (x)[i] = cap * tanh (ox_reference_rows (x)[i] / cap);
}

static void
ref_linear_read (OxOps *ops, const OxTensor *x, OxMatrix *w, float cap, float *values)
{
  g_autofree double *y = g_new (double, w->rows);

  for (guint i = 0; i < x->rows && ox_reference_running (ops); i++, values += w->rows) {
    multiply (w, ox_reference_rows (x) + (gsize) i * x->cols, y);
    for (guint j = 0; j < w->rows; j++)
      values[j] = (float) (cap > 0 ? cap * tanh (y[j] / cap) : y[j]);
  }
}

static void
ref_read (OxOps *ops, const OxTensor *x, float *values)
{
  if (!ox_reference_running (ops))
    return;
  for (gsize i = 0; i < elements (x); i++)
    values[i] = (float) ox_reference_rows (x)[i];
}

/* ---- Choices ---- */

/* Which of @n scores are among the @k greatest; ties go to the lower number. */
static gboolean *
choose (const double *scores, guint n, guint k)
{
  gboolean *chosen = g_new0 (gboolean, n);

  for (guint i = 0; i < k; i++) {
    guint best = n;

    for (guint j = 0; j < n; j++)
      if (!chosen[j] && (best == n || scores[j] > scores[best]))
        best = j;
    if (best < n)
      chosen[best] = TRUE;
  }
  return chosen;
}

/* y += weight · down(act(gate · x) · (up · x)) */
static void
add_expert (const OxExperts *experts, guint expert, double weight, const double *x, double *y)
{
  const OxMatrix *down = experts->down[expert];
  g_autofree double *gate = g_new (double, experts->width), *up = g_new (double, experts->width),
                    *out = g_new (double, down->rows);

  multiply (experts->gate[expert], x, gate);
  multiply (experts->up[expert], x, up);
  for (guint j = 0; j < experts->width; j++)
    gate[j] = ox_reference_activate (gate[j], experts->gate_kind) * up[j];
  multiply (down, gate, out);
  for (guint j = 0; j < down->rows; j++)
    y[j] += weight * out[j];
}

static void
ref_moe (OxOps *ops, OxTensor *y, const OxTensor *x, const OxTensor *router, const OxExperts *experts)
{
  for (guint i = 0; i < x->rows && ox_reference_running (ops); i++) {
    double *out = ox_reference_rows (y) + (gsize) i * y->cols, total = 0;
    g_autofree double *p =
      g_memdup2 (ox_reference_rows (router) + (gsize) i * router->cols, experts->n_experts * sizeof (double));
    g_autofree gboolean *chosen = NULL;

    softmax (p, experts->n_experts);
    chosen = choose (p, experts->n_experts, experts->top_k);
    for (guint e = 0; e < experts->n_experts; e++)
      total += chosen[e] ? p[e] : 0;
    memset (out, 0, y->cols * sizeof (double));
    for (guint e = 0; e < experts->n_experts; e++)
      if (chosen[e])
        add_expert (experts, e, p[e] / total * (experts->scale != NULL ? experts->scale->w[e] : 1),
                    ox_reference_rows (x) + (gsize) i * x->cols, out);
  }
}

static void
ref_centroid_logits (OxOps *ops,
                     OxTensor *y,
                     const OxTensor *x,
                     const OxTensor *centroids,
                     guint top_k,
                     OxMatrix *head,
                     const guint32 *ordering)
{
  guint size = head->rows / centroids->cols; /* of a cluster */
  g_autofree double *logits = g_new (double, head->rows);

  for (guint i = 0; i < x->rows && ox_reference_running (ops); i++) {
    double *out = ox_reference_rows (y) + (gsize) i * y->cols, least = INFINITY;
    g_autofree gboolean *chosen =
      choose (ox_reference_rows (centroids) + (gsize) i * centroids->cols, centroids->cols, top_k);

    multiply (head, ox_reference_rows (x) + (gsize) i * x->cols, logits);
    for (guint r = 0; r < centroids->cols * size; r++)
      if (chosen[r / size])
        least = fmin (least, logits[r]);
    for (guint j = 0; j < y->cols; j++)
      out[j] = least - 1;
    for (guint r = 0; r < centroids->cols * size; r++)
      if (chosen[r / size])
        out[ordering[r]] = logits[r];
  }
}

/* ---- The table ---- */

static void
ref_free (OxOps *ops)
{
  RefOps *self = (RefOps *) ops;

  g_clear_error (&self->error);
  g_free (self);
}

OxOps *
ox_ops_reference_new (void)
{
  RefOps *self = g_new0 (RefOps, 1);

  ox_kernels_init (&self->c, 0);
  self->base = (OxOps) {
    .free = ref_free,
    .matrix_load = ref_matrix_load,
    .matrix_free = ref_matrix_free,
    .vector_load = ref_vector_load,
    .vector_get = ref_vector_get,
    .vector_free = ref_vector_free,
    .embedding_open = ref_embedding_open,
    .embedding_free = ref_embedding_free,
    .tensor_init = ref_tensor_init,
    .tensor_clear = ref_tensor_clear,
    .kv_new = ref_kv_new,
    .kv_free = ref_kv_free,
    .kv_save = ref_kv_save,
    .kv_restore = ref_kv_restore,
    .begin = ref_begin,
    .finish = ref_finish,
    .embed = ref_embed,
    .linear = ref_linear,
    .rms_norm = ref_rms_norm,
    .add_bias = ref_add_bias,
    .rope = ref_rope,
    .kv_write = ref_kv_write,
    .attention = ref_attention,
    .attention_with = ref_attention_with,
    .attention_rows = ref_attention_rows,
    .gated = ref_gated,
    .gated_columns = ref_gated_columns,
    .add = ref_add,
    .copy = ref_copy,
    .concat = ref_concat,
    .scale = ref_scale,
    .softcap = ref_softcap,
    .moe = ref_moe,
    .centroid_logits = ref_centroid_logits,
    .linear_read = ref_linear_read,
    .read = ref_read,
  };
  ox_reference_init_recurrent (&self->base);
  return &self->base;
}
