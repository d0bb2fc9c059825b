/* How long the operations of linear attention and of experts take at the shapes of real models, beside plain products of the same
 * size: Qwen 3.5 0.8B's delta rule, Gemma 4 26B's experts. Best of several.
 *
 *     bench-ops-cpu [THREADS]
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPEATS 7
#define HIDDEN 2816
#define WIDTH 704
#define EXPERTS 64 /* half of them: still far more than a cache holds */
#define TOP_K 8

static OxPool *pool;

static OxOps *
ops_new (OxQuantize quantize)
{
  OxOpsCpuOptions options = {
    .kernels = ox_kernels (), .pool = pool, .precision = OX_PRECISION_FAST, .quantize = quantize
  };

  return ox_ops_cpu_new (&options);
}

static OxTensor
tensor_new (OxOps *ops, GRand *rand, guint rows, guint cols)
{
  OxTensor t;

  if (!ops->tensor_init (ops, &t, rows, cols, NULL))
    exit (1);
  for (gsize i = 0; i < (gsize) rows * cols; i++)
    ((float *) t.data)[i] = (float) g_rand_double_range (rand, -1, 1);
  return t;
}

/* Matrices of random weights, [rows, cols]. */
static OxMatrix **
matrices_new (OxOps *ops, GRand *rand, guint n, guint rows, guint cols)
{
  OxMatrix **matrices = g_new (OxMatrix *, n);
  float *values = g_new (float, (gsize) rows *cols);
  g_autoptr (GBytes) bytes = g_bytes_new_take (values, (gsize) rows * cols * sizeof (float));
  g_autoptr (OxFile) file = ox_file_new_for_bytes (bytes, "random weights");
  OxTensorInfo tensor = { .name = "w",
                          .type = OX_TYPE_F32,
                          .n_dims = 2,
                          .dims = { rows, cols },
                          .n_elements = (guint64) rows * cols,
                          .file = file,
                          .n_bytes = g_bytes_get_size (bytes) };

  for (gsize i = 0; i < tensor.n_elements; i++)
    values[i] = (float) g_rand_double_range (rand, -0.05, 0.05);
  for (guint i = 0; i < n; i++)
    matrices[i] = ops->matrix_load (ops, &tensor, NULL, OX_MATRIX_LINEAR, NULL, NULL, NULL);
  return matrices;
}

static OxVector *
vector_new (OxOps *ops, GRand *rand, guint n)
{
  g_autofree float *values = g_new (float, n);
  g_autoptr (GBytes) bytes = NULL;
  g_autoptr (OxFile) file = NULL;
  OxTensorInfo tensor = { .name = "v", .type = OX_TYPE_F32, .n_dims = 1, .dims = { n }, .n_elements = n };

  for (guint i = 0; i < n; i++)
    values[i] = (float) g_rand_double_range (rand, -1, 0);
  bytes = g_bytes_new (values, n * sizeof (float));
  file = ox_file_new_for_bytes (bytes, "random weights");
  tensor.file = file;
  tensor.n_bytes = n * sizeof (float);
  return ops->vector_load (ops, &tensor, OX_VECTOR_AS_STORED, NULL);
}

/* As many layers as the model has, so that no state is still in a cache when its turn comes. */
static void
bench_delta (guint rows)
{
  enum { LAYERS = 18 };
  OxDeltaShape shape = { 16, 16, 128, 128, 4, FALSE };
  OxOps *ops = ops_new (OX_QUANTIZE_NONE);
  g_autoptr (GRand) rand = g_rand_new_with_seed (1);
  guint channels = ox_delta_channels (&shape);
  OxTensor x = tensor_new (ops, rand, rows, channels), u = tensor_new (ops, rand, rows, channels);
  OxTensor y = tensor_new (ops, rand, rows, 2048);
  OxTensor b = tensor_new (ops, rand, rows, 16), a = tensor_new (ops, rand, rows, 16);
  OxVector *w = vector_new (ops, rand, channels * 4), *scale = vector_new (ops, rand, 16);
  OxRecurrent *layers[LAYERS];
  gint64 conv = G_MAXINT64, rule = G_MAXINT64, marked = G_MAXINT64, rewind = G_MAXINT64;

  for (guint i = 0; i < LAYERS; i++)
    layers[i] = ops->recurrent_new (ops, &shape, NULL);
  for (guint r = 0; r < REPEATS; r++) {
    gint64 start = g_get_monotonic_time (), middle;

    ops->begin (ops, NULL);
    for (guint i = 0; i < LAYERS; i++)
      ops->causal_conv (ops, &u, &x, w, layers[i]);
    middle = g_get_monotonic_time ();
    conv = MIN (conv, middle - start);
    for (guint i = 0; i < LAYERS; i++)
      ops->delta_rule (ops, &y, &u, &b, &a, scale, scale, layers[i]);
    start = g_get_monotonic_time ();
    rule = MIN (rule, start - middle);
    for (guint i = 0; i < LAYERS; i++) {
      ops->recurrent_mark (ops, layers[i], rows, NULL);
      ops->causal_conv (ops, &u, &x, w, layers[i]);
      ops->delta_rule (ops, &y, &u, &b, &a, scale, scale, layers[i]);
    }
    middle = g_get_monotonic_time ();
    marked = MIN (marked, middle - start);
    for (guint i = 0; i < LAYERS; i++)
      ops->recurrent_rewind (ops, layers[i], rows - 1);
    rewind = MIN (rewind, g_get_monotonic_time () - middle);
    ops->finish (ops, NULL);
  }
  printf ("linear attention, %4u rows, %u layers: convolution %7.2f ms, rule %7.2f ms; both after a mark %7.2f ms, "
          "back by one row "
          "%7.2f ms\n",
          rows, LAYERS, (double) conv / 1e3, (double) rule / 1e3, (double) marked / 1e3, (double) rewind / 1e3);
  for (guint i = 0; i < LAYERS; i++)
    ops->recurrent_free (ops, layers[i]);
  ops->vector_free (ops, w);
  ops->vector_free (ops, scale);
  ops->tensor_clear (ops, &x);
  ops->tensor_clear (ops, &u);
  ops->tensor_clear (ops, &y);
  ops->tensor_clear (ops, &b);
  ops->tensor_clear (ops, &a);
  ops->free (ops);
}

static void
matrices_free (OxOps *ops, OxMatrix **matrices, guint n)
{
  for (guint i = 0; i < n; i++)
    ops->matrix_free (ops, matrices[i]);
  g_free (matrices);
}

/* Beside it: one matrix as large as all that a token needs, over as many rows. */
static void
bench_moe (OxQuantize quantize, const char *name)
{
  static const guint rows[] = { 1, 4, 16, 128, 512 };
  OxOps *ops = ops_new (quantize);
  g_autoptr (GRand) rand = g_rand_new_with_seed (2);
  enum { PLAIN = 6 };
  OxMatrix **plain = matrices_new (ops, rand, PLAIN, WIDTH * 3 * TOP_K, HIDDEN);
  OxExperts experts = { .n_experts = EXPERTS,
                        .top_k = TOP_K,
                        .gate = matrices_new (ops, rand, EXPERTS, WIDTH, HIDDEN),
                        .up = matrices_new (ops, rand, EXPERTS, WIDTH, HIDDEN),
                        .down = matrices_new (ops, rand, EXPERTS, HIDDEN, WIDTH),
                        .gate_kind = OX_GATE_GELU_TANH,
                        .width = WIDTH };

  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    OxTensor x = tensor_new (ops, rand, rows[i], HIDDEN), y = tensor_new (ops, rand, rows[i], HIDDEN);
    OxTensor router = tensor_new (ops, rand, rows[i], EXPERTS);
    OxTensor wide = tensor_new (ops, rand, rows[i], WIDTH * 3 * TOP_K), *out = &wide;
    gint64 best = G_MAXINT64, best_plain = G_MAXINT64;
    double products = 2.0 * rows[i] * TOP_K * 3 * WIDTH * HIDDEN;

    for (guint r = 0; r < REPEATS; r++) {
      gint64 start, middle;

      for (gsize j = 0; j < (gsize) rows[i] * EXPERTS; j++)
        ((float *) router.data)[j] = (float) g_rand_double_range (rand, -1, 1);
      start = g_get_monotonic_time ();
      ops->begin (ops, NULL);
      ops->moe (ops, &y, &x, &router, &experts);
      middle = g_get_monotonic_time ();
      ops->linear (ops, &x, 1, &plain[r % PLAIN], &out);
      best = MIN (best, middle - start);
      best_plain = MIN (best_plain, g_get_monotonic_time () - middle);
      ops->finish (ops, NULL);
    }
    printf ("experts, %s, %4u rows: %8.2f ms, %6.1f GOPS; one matrix of a token's size: %8.2f ms, %6.1f GOPS\n", name,
            rows[i], (double) best / 1e3, products / (double) best / 1e3, (double) best_plain / 1e3,
            products / (double) best_plain / 1e3);
    ops->tensor_clear (ops, &x);
    ops->tensor_clear (ops, &y);
    ops->tensor_clear (ops, &router);
    ops->tensor_clear (ops, &wide);
  }
  matrices_free (ops, plain, PLAIN);
  matrices_free (ops, experts.gate, EXPERTS);
  matrices_free (ops, experts.up, EXPERTS);
  matrices_free (ops, experts.down, EXPERTS);
  ops->free (ops);
}

int
main (int argc, char **argv)
{
  static const guint rows[] = { 1, 5, 64, 512 };

  pool = ox_pool_new (argc > 1 ? (unsigned) atoi (argv[1]) : 0);
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    bench_delta (rows[i]);
  bench_moe (OX_QUANTIZE_Q8, "Q8");
  bench_moe (OX_QUANTIZE_Q4, "Q4");
  ox_pool_free (pool);
  return 0;
}
