/* How fast attention is, through the CPU table as a network calls it: a prompt in chunks, chunks and single queries at a depth, and rows of
 * towers and UNets. Best of several; GFLOPS count what the visible keys need, beside the peak of the instructions used, measured in the
 * same run; GB/s the keys and values that are read.
 *
 *     bench-attention [THREADS [LEVEL|all [TYPE [prompts|depths|rows]]]]      TYPE: of keys and values; F32 if not given
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
#include "ox-peak.h"

#define CHUNK 512

typedef struct {
  const char *name;
  guint n_heads, n_kv_heads, head_dim, window;
} Shape;

static const Shape shapes[] = {
  { "smollm2 9/3", 9, 3, 64, 0 },           { "qwen3 16/8", 16, 8, 128, 0 },  { "gemma3 270m 4/1", 4, 1, 256, 0 },
  { "gemma3 sliding 4/1", 4, 1, 256, 512 }, { "e2b full 8/1", 8, 1, 512, 0 }, { "e2b sliding 8/1", 8, 1, 256, 512 },
};

typedef struct {
  const char *name;
  guint m, n, n_heads, head_dim;
} RowsShape;

static const RowsShape rows_shapes[] = {
  { "unet 64x64", 4096, 4096, 8, 40 },    { "unet 32x32", 1024, 1024, 8, 80 },
  { "unet 16x16", 256, 256, 8, 160 },     { "unet 2.x 64x64", 4096, 4096, 5, 64 },
  { "unet text 64x64", 4096, 77, 8, 40 }, { "unet text 16x16", 256, 77, 8, 160 },
  { "vae", 4096, 4096, 1, 512 },          { "vision tower", 2520, 2520, 12, 64 },
  { "vision tower", 2520, 2520, 16, 72 },
};

typedef struct {
  OxOps *ops;
  OxKv *kv;
  OxTensor q, k, v, y;
  const Shape *shape;
  unsigned threads;
  double peak; /* GFLOPS */
} Bench;

/* With one thread the processor's time, which other programs disturb less. */
static double
now (const Bench *b)
{
  return b->threads == 1 ? (double) clock () / CLOCKS_PER_SEC : (double) g_get_monotonic_time () * 1e-6;
}

static void
run (const Bench *b, guint rows, guint position)
{
  OxTensor q = ox_tensor_view (&b->q, 0, rows), y = ox_tensor_view (&b->y, 0, rows);

  b->ops->begin (b->ops, NULL);
  b->ops->attention (b->ops, &y, &q, b->kv, position, b->shape->window, 1 / sqrtf ((float) b->shape->head_dim));
  b->ops->finish (b->ops, NULL);
}

static void
run_rows (const Bench *b, guint head_dim, guint unused)
{
  OxAttentionParams params = { .visible = &(OxKeySpan) { 0, b->k.rows }, .n_visible = 1, .scale = 0.1f };
  OxTensor y = b->y;

  b->ops->begin (b->ops, NULL);
  b->ops->attention_rows (b->ops, &y, &b->q, &b->k, &b->v, head_dim, &params);
  b->ops->finish (b->ops, NULL);
}

/* Seconds of the best of some calls, for half a second at most once there are three. */
static double
best (const Bench *b, void (*call) (const Bench *b, guint x, guint y), guint x, guint y)
{
  gint64 start = g_get_monotonic_time ();
  double seconds = 1e9;

  for (guint i = 0; i < 200 && (i < 3 || g_get_monotonic_time () - start < 500000); i++) {
    double begin = now (b);
    call (b, x, y);
    seconds = MIN (seconds, now (b) - begin);
  }
  return seconds;
}

static void
fill (OxOps *ops, OxTensor *t, guint rows, guint cols)
{
  KernelRandom random = { 1 };

  ops->tensor_init (ops, t, rows, cols, NULL);
  kernel_fill_floats (&random, INPUT_NORMAL, t->data, (size_t) rows * cols);
}

static void
clear (Bench *b)
{
  b->ops->tensor_clear (b->ops, &b->q);
  b->ops->tensor_clear (b->ops, &b->y);
  b->ops->tensor_clear (b->ops, &b->k);
  b->ops->tensor_clear (b->ops, &b->v);
}

/* Keys that @rows queries see together. */
static double
visible_keys (const Shape *shape, double position, double rows)
{
  double end = position + rows, w = shape->window, all = end * (end + 1) / 2 - position * (position + 1) / 2;

  if (w == 0 || end <= w)
    return all;
  if (position >= w)
    return rows * w;
  return w * (w + 1) / 2 - position * (position + 1) / 2 + (end - w) * w;
}

static void
bench_prompts (Bench *b)
{
  double prefill = 0;

  for (guint position = 0; position < 8192; position += CHUNK) {
    guint end = position + CHUNK;
    prefill += best (b, run, CHUNK, position);
    if (end == 512 || end == 2048 || end == 8192) {
      double gflops = visible_keys (b->shape, 0, end) * b->q.cols * 4 / prefill * 1e-9;
      printf ("  %u: %.1f ms, %.0f GFLOPS (%.0f %%)", end, prefill * 1e3, gflops, 100 * gflops / b->peak);
      fflush (stdout);
    }
  }
}

static void
bench_depths (Bench *b, OxType type)
{
  static const guint depths[] = { 0, 2048, 8192, 16384 };

  for (guint i = 0; i < G_N_ELEMENTS (depths); i++) {
    guint keys = depths[i] + 1;
    double chunk = best (b, run, CHUNK, depths[i]), single = best (b, run, 1, depths[i]);

    if (b->shape->window != 0)
      keys = MIN (keys, b->shape->window);
    printf ("  %u: %.4f ms a token of a prompt, %.1f µs a query (%.1f GB/s)", depths[i], chunk * 1e3 / CHUNK,
            single * 1e6, (double) ox_kv_bytes (b->shape->n_kv_heads, b->shape->head_dim, type, keys) / single * 1e-9);
    fflush (stdout);
  }
}

static void
bench_shape (Bench *b, const char *level, const Shape *shape, OxType type, gboolean prompts, gboolean depths)
{
  const guint context = 16384 + CHUNK;
  OxOps *ops = b->ops;

  b->shape = shape;
  b->kv = ops->kv_new (ops, shape->n_kv_heads, shape->head_dim, context, type, NULL);
  fill (ops, &b->q, CHUNK, shape->n_heads * shape->head_dim);
  fill (ops, &b->y, CHUNK, shape->n_heads * shape->head_dim);
  fill (ops, &b->k, CHUNK, shape->n_kv_heads * shape->head_dim);
  fill (ops, &b->v, CHUNK, shape->n_kv_heads * shape->head_dim);
  ops->begin (ops, NULL);
  for (guint position = 0; position < context; position += CHUNK)
    ops->kv_write (ops, b->kv, &b->k, &b->v, position);
  ops->finish (ops, NULL);

  printf ("%-10s %-4s %-18s head %3u", level, ox_type_info (type)->name, shape->name, shape->head_dim);
  if (prompts)
    bench_prompts (b);
  if (depths)
    bench_depths (b, type);
  printf ("\n");
  clear (b);
  ops->kv_free (ops, b->kv);
}

static void
bench_rows (Bench *b, const char *level, const RowsShape *shape)
{
  guint cols = shape->n_heads * shape->head_dim;
  double seconds, gflops;

  fill (b->ops, &b->q, shape->m, cols);
  fill (b->ops, &b->y, shape->m, cols);
  fill (b->ops, &b->k, shape->n, cols);
  fill (b->ops, &b->v, shape->n, cols);
  seconds = best (b, run_rows, shape->head_dim, 0);
  gflops = 4.0 * shape->m * shape->n * cols / seconds * 1e-9;
  printf ("%-10s %-16s %4u x %4u, %2u heads of %3u: %.2f ms, %.0f GFLOPS (%.0f %%)\n", level, shape->name, shape->m,
          shape->n, shape->n_heads, shape->head_dim, seconds * 1e3, gflops, 100 * gflops / b->peak);
  fflush (stdout);
  clear (b);
}

/* The peak as it would be without other programs: by the processor's time with one thread. */
static double
peak_gflops (OxPeakKind kind, uint32_t flags, unsigned threads, const char **name)
{
  const uint64_t rounds = 1 << 20;
  double best = 0;
  const OxPeak *peak;

  if (threads > 1)
    return ox_peak_best (kind, flags, threads, 0.02, 10, name) * 1e-9;
  for (size_t i = 0; (peak = ox_peak (i)) != NULL; i++)
    for (guint n = 0; n < 20 && peak->kind == kind && ox_peak_runs (peak, flags); n++) {
      clock_t begin = clock ();
      double gflops;

      peak->run (rounds);
      gflops = (double) rounds * peak->operations / ((double) (clock () - begin) / CLOCKS_PER_SEC) * 1e-9;
      if (gflops > best) {
        best = gflops;
        *name = peak->name;
      }
    }
  return best;
}

static void
bench_level (OxOps *ops, const KernelLevel *level, unsigned threads, OxType type, const char *what)
{
  const OxAttentionKernel *kernel = level->kernels.attention;
  gboolean all = strcmp (what, "all") == 0;
  const char *f32_name = "none", *fast_name;
  double f32 = peak_gflops (OX_PEAK_F32, level->kernels.flags, threads, &f32_name), fast = f32;
  Bench b = { .ops = ops, .threads = threads };

  fast_name = f32_name;
  if (kernel->fast_type == OX_TYPE_BF16)
    fast = peak_gflops (OX_PEAK_BF16, level->kernels.flags, threads, &fast_name);
  printf ("%-10s peaks: %.0f GFLOPS (%s), %.0f (%s)\n", level->name, f32, f32_name, fast, fast_name);
  b.peak = type == OX_TYPE_BF16 ? fast : f32;
  for (size_t i = 0; i < G_N_ELEMENTS (shapes) && strcmp (what, "rows") != 0; i++)
    bench_shape (&b, level->name, &shapes[i], type, all || strcmp (what, "prompts") == 0,
                 all || strcmp (what, "depths") == 0);
  b.peak = fast;
  for (size_t i = 0; i < G_N_ELEMENTS (rows_shapes) && (all || strcmp (what, "rows") == 0); i++)
    bench_rows (&b, level->name, &rows_shapes[i]);
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
    bench_level (ops, &levels[l], ox_pool_threads (pool), type, argc > 4 ? argv[4] : "all");
    ops->free (ops);
  }
  ox_pool_free (pool);
  return 0;
}
