/* How fast attention is, through the CPU table as a network calls it: a prompt in chunks, and single queries at a depth. Best of
 * several; GFLOPS count what a causal window needs, GB/s the keys and values that are read.
 *
 *     bench-attention [THREADS [LEVEL|all [TYPE]]]      TYPE: of keys and values; F32 if not given
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "kernel-test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ox-ops.h"

#define CHUNK 512

typedef struct {
  const char *name;
  guint n_heads, n_kv_heads, head_dim, window;
} Shape;

static const Shape shapes[] = {
  { "smollm2 9/3", 9, 3, 64, 0 },           { "qwen3 16/8", 16, 8, 128, 0 },  { "gemma3 270m 4/1", 4, 1, 256, 0 },
  { "gemma3 sliding 4/1", 4, 1, 256, 512 }, { "e2b full 8/1", 8, 1, 512, 0 },
};

typedef struct {
  OxOps *ops;
  OxKv *kv;
  OxTensor q, k, v, y;
  const Shape *shape;
  unsigned threads;
} Bench;

/* With one thread the processor's time, which other programs disturb less. */
static double
now (const Bench *b)
{
  return b->threads == 1 ? (double) clock () / CLOCKS_PER_SEC : (double) g_get_monotonic_time () * 1e-6;
}

static void
run (Bench *b, guint rows, guint position)
{
  OxTensor q = ox_tensor_view (&b->q, 0, rows), y = ox_tensor_view (&b->y, 0, rows);

  b->ops->begin (b->ops, NULL);
  b->ops->attention (b->ops, &y, &q, b->kv, position, b->shape->window, 1 / sqrtf ((float) b->shape->head_dim));
  b->ops->finish (b->ops, NULL);
}

/* Seconds of the best of some calls, for half a second at most once there are three. */
static double
best (Bench *b, guint rows, guint position)
{
  gint64 start = g_get_monotonic_time ();
  double seconds = 1e9;

  for (guint i = 0; i < 200 && (i < 3 || g_get_monotonic_time () - start < 500000); i++) {
    double begin = now (b);
    run (b, rows, position);
    seconds = MIN (seconds, now (b) - begin);
  }
  return seconds;
}

static void
bench_shape (OxOps *ops, unsigned threads, const char *level, const Shape *shape, OxType type)
{
  const guint context = 8192 + CHUNK;
  KernelRandom random = { 1 };
  Bench b = { .ops = ops, .shape = shape, .threads = threads };
  guint q_cols = shape->n_heads * shape->head_dim, kv_cols = shape->n_kv_heads * shape->head_dim;
  double prefill = 0;

  b.kv = ops->kv_new (ops, shape->n_kv_heads, shape->head_dim, context, type, NULL);
  ops->tensor_init (ops, &b.q, CHUNK, q_cols, NULL);
  ops->tensor_init (ops, &b.y, CHUNK, q_cols, NULL);
  ops->tensor_init (ops, &b.k, CHUNK, kv_cols, NULL);
  ops->tensor_init (ops, &b.v, CHUNK, kv_cols, NULL);
  kernel_fill_floats (&random, INPUT_NORMAL, b.q.data, (size_t) CHUNK * q_cols);
  kernel_fill_floats (&random, INPUT_NORMAL, b.k.data, (size_t) CHUNK * kv_cols);
  kernel_fill_floats (&random, INPUT_NORMAL, b.v.data, (size_t) CHUNK * kv_cols);
  ops->begin (ops, NULL);
  for (guint position = 0; position < context; position += CHUNK)
    ops->kv_write (ops, b.kv, &b.k, &b.v, position);
  ops->finish (ops, NULL);

  printf ("%-11s %-5s %-19s head %3u  prefill", level, ox_type_info (type)->name, shape->name, shape->head_dim);
  for (guint position = 0; position < 8192; position += CHUNK) {
    guint end = position + CHUNK;
    prefill += best (&b, CHUNK, position);
    if (end == 512 || end == 2048 || end == 8192) {
      double keys = (double) end * (end + 1) / 2, w = shape->window;
      if (w != 0 && end > w)
        keys = w * (w + 1) / 2 + (end - w) * w;
      printf (" %u: %7.1f ms (%4.0f GFLOPS)", end, prefill * 1e3, keys * q_cols * 4 / prefill * 1e-9);
      fflush (stdout);
    }
  }
  printf ("  decode");
  for (guint i = 0; i < 3; i++) {
    guint depth = ((guint[]) { 0, 2048, 8192 })[i], keys = depth + 1;
    double seconds = best (&b, 1, depth);
    if (shape->window != 0)
      keys = MIN (keys, shape->window);
    printf (" %u: %.1f µs (%.1f GB/s)", depth, seconds * 1e6,
            (double) ox_kv_bytes (shape->n_kv_heads, shape->head_dim, type, keys) / seconds * 1e-9);
  }
  printf ("  four at 8192: %.1f µs\n", best (&b, 4, 8192) * 1e6);
  fflush (stdout);
  ops->tensor_clear (ops, &b.q);
  ops->tensor_clear (ops, &b.y);
  ops->tensor_clear (ops, &b.k);
  ops->tensor_clear (ops, &b.v);
  ops->kv_free (ops, b.kv);
}

int
main (int argc, char **argv)
{
  OxPool *pool = ox_pool_new (argc > 1 ? (unsigned) atoi (argv[1]) : 0);
  size_t n_levels;
  const KernelLevel *levels = kernel_levels (&n_levels);

  for (size_t l = 0; l < n_levels; l++) {
    OxOpsCpuOptions options = { .kernels = &levels[l].kernels, .pool = pool, .precision = OX_PRECISION_FAST };
    OxType type = OX_TYPE_F32;
    OxOps *ops;

    if (argc > 2 && strcmp (argv[2], "all") != 0 && strcmp (argv[2], levels[l].name) != 0)
      continue;
    for (size_t t = 0; t < kernel_n_types && argc > 3; t++)
      if (strcmp (argv[3], ox_type_info (kernel_types[t])->name) == 0)
        type = kernel_types[t];
    ops = ox_ops_cpu_new (&options);
    for (size_t i = 0; i < G_N_ELEMENTS (shapes); i++)
      bench_shape (ops, ox_pool_threads (pool), levels[l].name, &shapes[i], type);
    ops->free (ops);
  }
  ox_pool_free (pool);
  return 0;
}
