/* The CPU table's attention: the same bits with any number of threads and however queries come in; spans of keys, soft caps, and keys and
 * values that are plain rows, against the float64 table; keys and values saved and restored across the end of a ring; a cancel takes
 * effect.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "golden/ox-ops-reference.h"
#include "ox-ops.h"

#include <math.h>
#include <string.h>

#define MAX_THREADS 8

typedef struct {
  guint n_heads, n_kv_heads, head_dim, window, capacity, position, m;
  OxType type;
} Case;

static const Case cases[] = {
  { 4, 1, 64, 0, 2100, 2000, 1, OX_TYPE_F32 },     /* one key head: blocks of keys are spread */
  { 8, 2, 32, 0, 1300, 1200, 4, OX_TYPE_F16 },     /* tokens that are tried together */
  { 4, 1, 64, 300, 600, 1500, 150, OX_TYPE_BF16 }, /* a prompt's chunk in a window, the ring has wrapped */
  { 16, 1, 32, 0, 1024, 700, 3, OX_TYPE_Q8_0 },    /* sixteen heads a key head */
  { 6, 6, 48, 0, 700, 500, 100, OX_TYPE_F32 },     /* no grouped heads, more items than threads */
  { 2, 1, 512, 0, 2064, 2000, 49, OX_TYPE_Q8_0 },  /* wide heads */
  { 32, 2, 16, 40, 300, 5000, 60, OX_TYPE_F16 },   /* a short window */
};

typedef struct {
  OxPool *pool;
  OxOps *ops;
} Table;

static Table
table_new (guint threads)
{
  OxOpsCpuOptions options = { .kernels = ox_kernels (), .precision = OX_PRECISION_FAST };

  options.pool = ox_pool_new (threads);
  return (Table) { options.pool, ox_ops_cpu_new (&options) };
}

static void
table_clear (Table *table)
{
  table->ops->free (table->ops);
  ox_pool_free (table->pool);
}

static void
fill (OxTensor *t, GRand *random)
{
  for (gsize i = 0; i < (gsize) t->rows * t->cols; i++)
    ((float *) t->data)[i] = (float) g_rand_double_range (random, -1.5, 1.5);
}

static OxTensor
tensor_new (OxOps *ops, guint rows, guint cols)
{
  OxTensor t;

  g_assert_true (ops->tensor_init (ops, &t, rows, cols, NULL));
  return t;
}

/* All positions that the queries see, written in uneven pieces; the same for the same case. */
static OxKv *
kv_new (OxOps *ops, const Case *c)
{
  g_autoptr (GError) error = NULL;
  OxKv *kv = ops->kv_new (ops, c->n_kv_heads, c->head_dim, c->capacity, c->type, &error);
  GRand *random = g_rand_new_with_seed (7);
  OxTensor k = tensor_new (ops, 333, c->n_kv_heads * c->head_dim);
  OxTensor v = tensor_new (ops, 333, c->n_kv_heads * c->head_dim);

  g_assert_no_error (error);
  ops->begin (ops, NULL);
  for (guint position = 0; position < c->position + c->m;) {
    guint n = MIN (c->position + c->m - position, position % 2 == 0 ? 333 : 10);
    OxTensor k_rows = ox_tensor_view (&k, 0, n), v_rows = ox_tensor_view (&v, 0, n);

    fill (&k, random);
    fill (&v, random);
    ops->kv_write (ops, kv, &k_rows, &v_rows, position);
    position += n;
  }
  g_assert_true (ops->finish (ops, NULL));
  ops->tensor_clear (ops, &k);
  ops->tensor_clear (ops, &v);
  g_rand_free (random);
  return kv;
}

/* The rows of @q in calls of @at_once. */
static float *
attend (OxOps *ops, OxKv *kv, const Case *c, guint at_once)
{
  GRand *random = g_rand_new_with_seed (8);
  OxTensor q = tensor_new (ops, c->m, c->n_heads * c->head_dim), y = tensor_new (ops, c->m, c->n_heads * c->head_dim);
  float *result = g_new0 (float, (gsize) y.rows *y.cols);

  fill (&q, random);
  ops->begin (ops, NULL);
  for (guint i = 0; i < c->m; i += at_once) {
    OxTensor q_rows = ox_tensor_view (&q, i, MIN (at_once, c->m - i));
    OxTensor y_rows = ox_tensor_view (&y, i, MIN (at_once, c->m - i));
    ops->attention (ops, &y_rows, &q_rows, kv, c->position + i, c->window, 1 / sqrtf ((float) c->head_dim));
  }
  ops->read (ops, &y, result);
  g_assert_true (ops->finish (ops, NULL));
  ops->tensor_clear (ops, &q);
  ops->tensor_clear (ops, &y);
  g_rand_free (random);
  return result;
}

static void
test_same_bits (gconstpointer data)
{
  const Case *c = data;
  gsize bytes = (gsize) c->m * c->n_heads * c->head_dim * sizeof (float);
  g_autofree float *expected = NULL;

  for (guint threads = 1; threads <= MAX_THREADS; threads++) {
    Table table = table_new (threads);
    OxKv *kv = kv_new (table.ops, c);
    g_autofree float *single = attend (table.ops, kv, c, 1), *four = attend (table.ops, kv, c, 4),
                     *all = attend (table.ops, kv, c, c->m);

    if (expected == NULL)
      expected = g_memdup2 (all, bytes);
    g_assert_cmpmem (expected, bytes, all, bytes);
    g_assert_cmpmem (expected, bytes, four, bytes);
    g_assert_cmpmem (expected, bytes, single, bytes);
    table.ops->kv_free (table.ops, kv);
    table_clear (&table);
  }
}

/* What is saved from a ring that has wrapped goes into one of another size, and gives the same bits. */
static void
test_save (gconstpointer data)
{
  const Case *c = data;
  Case other = *c;
  Table table = table_new (2);
  OxOps *ops = table.ops;
  OxKv *kv = kv_new (ops, c), *copy;
  guint end = c->position + c->m, seen = c->window != 0 ? MIN (end, c->window + c->m) : end;
  gsize bytes = (gsize) c->m * c->n_heads * c->head_dim * sizeof (float);
  gsize saved_bytes = ox_kv_bytes (c->n_kv_heads, c->head_dim, c->type, seen);
  g_autofree guint8 *saved = g_malloc (saved_bytes), *again = g_malloc (saved_bytes), *part = NULL;
  g_autofree float *expected = attend (ops, kv, c, c->m), *got = NULL;

  other.capacity = c->capacity + 123;
  copy = ops->kv_new (ops, c->n_kv_heads, c->head_dim, other.capacity, c->type, NULL);
  ops->kv_save (ops, kv, end - seen, seen, saved);
  ops->kv_restore (ops, copy, end - seen, seen, saved);
  ops->kv_save (ops, copy, end - seen, seen, again);
  g_assert_cmpmem (saved, saved_bytes, again, saved_bytes);
  got = attend (ops, copy, c, c->m);
  g_assert_cmpmem (expected, bytes, got, bytes);

  /* [head][position][row] of the keys, then of the values. */
  part = g_malloc (ox_kv_bytes (c->n_kv_heads, c->head_dim, c->type, 1));
  ops->kv_save (ops, kv, end - 3, 1, part);
  for (guint h = 0; h < 2 * c->n_kv_heads; h++) {
    gsize row = ox_kv_bytes (c->n_kv_heads, c->head_dim, c->type, 1) / (2 * c->n_kv_heads);
    g_assert_cmpmem (part + h * row, row, saved + ((gsize) h * seen + seen - 3) * row, row);
  }
  ops->kv_free (ops, kv);
  ops->kv_free (ops, copy);
  table_clear (&table);
}

/* ---- Against the float64 table ---- */

typedef struct {
  guint m, n, n_heads, n_kv_heads, head_dim;
  guint n_visible, window; /* of the parameters; more than one: every row sees up to 20 keys on either side */
  float softcap;
} RowsCase;

static const RowsCase rows_cases[] = {
  { 130, 130, 2, 2, 40, 1, 0, 0 },   /* a UNet's self-attention */
  { 65, 77, 3, 3, 80, 1, 0, 0 },     /* its text */
  { 40, 300, 1, 1, 512, 1, 0, 0 },   /* an image decoder */
  { 50, 50, 4, 4, 72, 1, 0, 0 },     /* a vision tower */
  { 77, 77, 2, 2, 64, 0, 0, 0 },     /* a text encoder: causal */
  { 60, 60, 2, 1, 128, 0, 12, 50 },  /* an audio tower: a window, a cap */
  { 90, 90, 2, 1, 160, 90, 0, 1.5 }, /* spans */
  { 1, 1, 1, 1, 8, 1, 0, 0 },
};

static float *
random_rows (GRand *random, gsize n)
{
  float *values = g_new (float, n);

  for (gsize i = 0; i < n; i++)
    values[i] = (float) g_rand_double_range (random, -1.5, 1.5);
  return values;
}

/* A tensor of @values; float64 in the float64 table. */
static OxTensor
tensor_of (OxOps *ops, gboolean reference, guint rows, guint cols, const float *values)
{
  OxTensor t = tensor_new (ops, rows, cols);

  for (gsize i = 0; i < (gsize) rows * cols; i++)
    if (reference)
      ((double *) t.data)[i] = values[i];
    else
      ((float *) t.data)[i] = values[i];
  return t;
}

/* As rows, or written to a cache. */
static float *
attend_rows (OxOps *ops, gboolean reference, const RowsCase *c, gboolean cached, OxType type)
{
  GRand *random = g_rand_new_with_seed (9);
  guint cols = c->n_heads * c->head_dim, kv_cols = c->n_kv_heads * c->head_dim;
  g_autofree float *q_values = random_rows (random, (gsize) c->m * cols);
  g_autofree float *k_values = random_rows (random, (gsize) c->n * kv_cols);
  g_autofree float *v_values = random_rows (random, (gsize) c->n * kv_cols);
  g_autofree OxKeySpan *spans = g_new (OxKeySpan, c->m);
  OxTensor q = tensor_of (ops, reference, c->m, cols, q_values), y = tensor_new (ops, c->m, cols);
  OxTensor k = tensor_of (ops, reference, c->n, kv_cols, k_values);
  OxTensor v = tensor_of (ops, reference, c->n, kv_cols, v_values);
  OxAttentionParams params = { .window = c->window,
                               .visible = spans,
                               .n_visible = c->n_visible,
                               .scale = 1 / sqrtf ((float) c->head_dim),
                               .softcap = c->softcap };
  float *result = g_new0 (float, (gsize) c->m *cols);

  for (guint i = 0; i < c->m; i++)
    spans[i] = c->n_visible > 1 ? (OxKeySpan) { i > 20 ? i - 20 : 0, MIN (i + 21, c->n) } : (OxKeySpan) { 0, c->n };
  ops->begin (ops, NULL);
  if (cached) {
    OxKv *kv = ops->kv_new (ops, c->n_kv_heads, c->head_dim, c->n, type, NULL);

    ops->kv_write (ops, kv, &k, &v, 0);
    ops->attention_with (ops, &y, &q, kv, &params);
    ops->kv_free (ops, kv);
  } else {
    ops->attention_rows (ops, &y, &q, &k, &v, c->head_dim, &params);
  }
  ops->read (ops, &y, result);
  g_assert_true (ops->finish (ops, NULL));
  ops->tensor_clear (ops, &q);
  ops->tensor_clear (ops, &k);
  ops->tensor_clear (ops, &v);
  ops->tensor_clear (ops, &y);
  g_rand_free (random);
  return result;
}

/* What a result in [-1.5, 1.5] may be off by: exactly computed, float32's sums; else what keys, values, queries and weights rounded to 8 bits
 * bring. A score is a sum of head_dim products of 0.75 (their root mean square) times head_dim^-0.5, each off by up to 2^-8 twice, with
 * random signs: a standard deviation of 0.75 · 2^-8 · √(2/3), of which four are allowed, for it and for the greatest score. */
static void
assert_rows (const RowsCase *c, const float *got, const float *expected, gboolean fast)
{
  double tolerance = fast ? 1.5 * 0x1p-8 * (2 + 2 * 4 * 0.75 * 0.82) : 2e-5;

  for (gsize i = 0; i < (gsize) c->m * c->n_heads * c->head_dim; i++)
    if (!(fabs ((double) got[i] - expected[i]) <= tolerance))
      g_error ("element %" G_GSIZE_FORMAT " is %.9g, expected %.9g ± %.3g", i, got[i], expected[i], tolerance);
}

static void
test_rows (gconstpointer data)
{
  const RowsCase *c = data;
  gsize bytes = (gsize) c->m * c->n_heads * c->head_dim * sizeof (float);
  OxOps *reference = ox_ops_reference_new ();
  g_autofree float *expected = attend_rows (reference, TRUE, c, FALSE, OX_TYPE_F32);
  g_autofree float *expected_cached = attend_rows (reference, TRUE, c, TRUE, OX_TYPE_F32);
  const char *name;
  guint32 mask;

  g_assert_cmpmem (expected, bytes, expected_cached, bytes);
  for (gsize level = 0; (name = ox_cpu_level (level, &mask)) != NULL; level++)
    for (guint fast = 0; fast < 2; fast++) {
      g_autofree float *first = NULL;

      for (guint threads = 1; threads <= 3; threads++) {
        OxKernels kernels;
        OxOpsCpuOptions options = { .kernels = &kernels,
                                    .precision = fast != 0 ? OX_PRECISION_FAST : OX_PRECISION_EXACT };
        OxPool *pool = options.pool = ox_pool_new (threads);
        OxOps *ops;
        g_autofree float *rows = NULL, *cached = NULL;
        OxType type;

        ox_kernels_init (&kernels, mask);
        type = fast != 0 ? (OxType) kernels.attention->fast_type : OX_TYPE_F32;
        ops = ox_ops_cpu_new (&options);
        rows = attend_rows (ops, FALSE, c, FALSE, OX_TYPE_F32);
        cached = attend_rows (ops, FALSE, c, TRUE, type);
        assert_rows (c, rows, expected, type != OX_TYPE_F32);
        g_assert_cmpmem (rows, bytes, cached, bytes);
        if (first == NULL)
          first = g_memdup2 (rows, bytes);
        g_assert_cmpmem (rows, bytes, first, bytes);
        ops->free (ops);
        ox_pool_free (pool);
      }
    }
  reference->free (reference);
}

static void
test_cancelled (void)
{
  const Case *c = &cases[0];
  Table table = table_new (2);
  OxKv *kv = kv_new (table.ops, c);
  OxTensor q = tensor_new (table.ops, 1, c->n_heads * c->head_dim), y = tensor_new (table.ops, 1, q.cols);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;

  memset (y.data, 0x41, y.cols * sizeof (float));
  g_cancellable_cancel (cancellable);
  table.ops->begin (table.ops, cancellable);
  table.ops->attention (table.ops, &y, &q, kv, c->position, 0, 1);
  g_assert_false (table.ops->finish (table.ops, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  for (guint i = 0; i < y.cols * sizeof (float); i++)
    g_assert_cmphex (((guint8 *) y.data)[i], ==, 0x41);
  table.ops->tensor_clear (table.ops, &q);
  table.ops->tensor_clear (table.ops, &y);
  table.ops->kv_free (table.ops, kv);
  table_clear (&table);
}

static void
test_refused (void)
{
  Table table = table_new (1);
  g_autoptr (GError) error = NULL;

  g_assert_null (table.ops->kv_new (table.ops, 1, 80, 10, OX_TYPE_Q8_0, &error));
  g_assert_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED);
  g_clear_error (&error);
  g_assert_null (table.ops->kv_new (table.ops, G_MAXUINT, G_MAXUINT, G_MAXUINT, OX_TYPE_F32, &error));
  g_assert_error (error, OX_ERROR, OX_ERROR_NO_MEMORY);
  table_clear (&table);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *same = g_strdup_printf ("/ops/attention/same-bits/%" G_GSIZE_FORMAT, i);
    g_autofree char *save = g_strdup_printf ("/ops/attention/save/%" G_GSIZE_FORMAT, i);
    g_test_add_data_func (same, &cases[i], test_same_bits);
    g_test_add_data_func (save, &cases[i], test_save);
  }
  for (gsize i = 0; i < G_N_ELEMENTS (rows_cases); i++) {
    g_autofree char *rows = g_strdup_printf ("/ops/attention/rows/%" G_GSIZE_FORMAT, i);
    g_test_add_data_func (rows, &rows_cases[i], test_rows);
  }
  g_test_add_func ("/ops/attention/cancelled", test_cancelled);
  g_test_add_func ("/ops/attention/refused", test_refused);
  return g_test_run ();
}
