/* How fast the linear kernels are beside what the machine can do: read bandwidth measured in the same run, matvec in GB/s of
 * packed weights, matmul in GOPS (a multiplication and an addition are two). Best of several; one line a kernel. After matvec
 * comes what a few activation rows at once cost, in times of matvec: reading the weights is the limit of both, so 1 is the aim.
 *
 *     bench-kernels [THREADS [LEVEL|all [MIB [TYPE]]]]      MIB: of weights in matvec; 256, far more than any cache, if not given
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "kernel-test.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define COLS 2048
#define MATMUL_ROWS 2048
#define MATMUL_M 128
#define REPEATS 7

/* Activation rows that are multiplied at once, the first by matvec. */
static const size_t batches[] = { 1, 2, 3, 4, 5, 6, 8 };
#define N_BATCHES G_N_ELEMENTS (batches)

typedef struct {
  const OxPackedMatrix *w;
  const void *source;
  const void *x;
  size_t m;
  float *y;
  const uint64_t *words;
  atomic_ulong sum;
} Job;

static void
run_pack (void *data, size_t begin, size_t end, unsigned worker)
{
  Job *job = data;
  uint64_t row_bytes = 0;

  ox_type_row_bytes (job->w->type, job->w->cols, &row_bytes);
  job->w->kernel->pack ((OxPackedMatrix *) job->w, (const uint8_t *) job->source, begin, end);
}

static void
run_matvec (void *data, size_t begin, size_t end, unsigned worker)
{
  Job *job = data;
  job->w->kernel->matvec (job->w, job->x, job->y, begin, end);
}

static void
run_matmul (void *data, size_t begin, size_t end, unsigned worker)
{
  Job *job = data;
  job->w->kernel->matmul (job->w, job->x, job->m, job->y, job->w->rows, begin, end);
}

/* What counts for the read bandwidth is how many lines are asked for at once, so: the widest vectors that the processor has,
 * and four streams 64 KiB apart, which is the best of what was tried. Words that differ, so that nothing can be skipped. */
typedef uint64_t Words __attribute__ ((vector_size (64)));

#define STREAM_WORDS 1024

#if defined(__x86_64__)
__attribute__ ((target_clones ("avx512f", "avx2", "default")))
#endif
static uint64_t
sum_words (const Words *words, size_t n)
{
  Words a = { 0 }, b = { 0 }, c = { 0 }, d = { 0 };

  for (const Words *end = words + n; words < end; words += 4 * STREAM_WORDS)
    for (size_t i = 0; i < STREAM_WORDS; i++) {
      a += words[i];
      b += words[i + STREAM_WORDS];
      c += words[i + 2 * STREAM_WORDS];
      d += words[i + 3 * STREAM_WORDS];
    }
  a ^= b ^ c ^ d;
  return a[0] ^ a[1] ^ a[2] ^ a[3] ^ a[4] ^ a[5] ^ a[6] ^ a[7];
}

/* An item is four streams. */
static void
run_read (void *data, size_t begin, size_t end, unsigned worker)
{
  Job *job = data;
  const Words *words = (const Words *) (const void *) job->words;

  atomic_fetch_add (&job->sum, sum_words (words + begin * 4 * STREAM_WORDS, (end - begin) * 4 * STREAM_WORDS));
}

/* With one thread its own time counts: what other programs take of the processor does not. */
static double
clock_seconds (OxPool *pool)
{
  struct timespec t;

  clock_gettime (ox_pool_threads (pool) == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return (double) t.tv_sec + (double) t.tv_nsec * 1e-9;
}

/* Seconds of one run over @n items. */
static double
once (OxPool *pool, OxPoolFunc func, Job *job, size_t n, size_t grain)
{
  double begin = clock_seconds (pool);

  ox_pool_run (pool, func, job, n, grain);
  return clock_seconds (pool) - begin;
}

/* Seconds of the best of several runs over @n items. */
static double
best (OxPool *pool, OxPoolFunc func, Job *job, size_t n, size_t grain)
{
  double seconds = 1e9;

  for (unsigned i = 0; i < REPEATS; i++)
    seconds = MIN (seconds, once (pool, func, job, n, grain));
  return seconds;
}

/* Seconds of the best runs of each of the batches, which take turns: what they are compared by must not change between them. Small
 * matrices have more turns, so that each lasts long enough to be measured. */
static void
best_batches (OxPool *pool, Job *job, size_t packed, double seconds[N_BATCHES])
{
  size_t turns = MIN (2 * REPEATS * MAX ((64u << 20) / packed, 1), 2000);

  for (size_t b = 0; b < N_BATCHES; b++)
    seconds[b] = 1e9;
  for (size_t i = 0; i < turns; i++)
    for (size_t b = 0; b < N_BATCHES; b++) {
      job->m = batches[b];
      seconds[b] = MIN (seconds[b], once (pool, job->m == 1 ? run_matvec : run_matmul, job, job->w->rows, 64));
    }
}

static double
read_bandwidth (OxPool *pool)
{
  size_t bytes = 512u << 20;
  uint64_t *words = aligned_alloc (64, bytes);
  Job job = { .words = words };
  double seconds;

  for (size_t i = 0; i < bytes / 8; i++)
    words[i] = i * 0x9e3779b97f4a7c15u;
  seconds = best (pool, run_read, &job, bytes / (4 * STREAM_WORDS * sizeof (Words)), 8);
  free (words);
  return (double) bytes / seconds * 1e-9;
}

static void
run_nothing (void *data, size_t begin, size_t end, unsigned worker)
{
}

/* Microseconds to start and join an empty job, with workers that still spin from the one before. */
static double
dispatch_us (OxPool *pool)
{
  const unsigned runs = 20000;
  double least = 1e9;

  for (unsigned i = 0; i < REPEATS; i++) {
    gint64 begin = g_get_monotonic_time ();
    for (unsigned r = 0; r < runs; r++)
      ox_pool_run (pool, run_nothing, NULL, ox_pool_threads (pool), 1);
    least = MIN (least, (double) (g_get_monotonic_time () - begin) / runs);
  }
  return least;
}

static void
bench_type (OxPool *pool, const KernelLevel *level, uint32_t type, OxPrecision precision, size_t mib, double bandwidth)
{
  const OxKernels *k = &level->kernels;
  const OxLinearKernel *kernel = ox_linear_kernel (k, type, precision, MATMUL_ROWS, COLS);
  size_t unit, rows, packed = 0, allocated = 0, x_bytes = ox_activation_row_bytes (kernel->activation, COLS),
                     m = MATMUL_M;
  uint64_t row_bytes = 0;
  KernelRandom random = { 1 };
  OxPackedMatrix w;
  Job job = { 0 };
  void *source;
  uint8_t *x;
  float *in = g_new (float, COLS);
  double pack_s, mul_s, batch_s[N_BATCHES];

  kernel->packed_bytes (type, 16, COLS, &unit);
  rows = MAX (MATMUL_ROWS, (mib << 20) / unit * 16);
  kernel->packed_bytes (type, rows, COLS, &allocated);
  rows = MAX (64, (mib << 20) / unit * 16);
  kernel->packed_bytes (type, rows, COLS, &packed);
  ox_type_row_bytes (type, COLS, &row_bytes);
  source = g_malloc (MAX (rows, MATMUL_ROWS) * row_bytes);
  kernel_fill_weights (&random, type, INPUT_NORMAL, source, 64 * COLS);
  for (size_t r = 64; r < rows; r += 64)
    memcpy ((uint8_t *) source + r * row_bytes, source, MIN (64, rows - r) * row_bytes);
  w = (OxPackedMatrix) { kernel, type, rows, COLS, aligned_alloc (64, (allocated + 63) / 64 * 64) };
  x = aligned_alloc (64, (m * x_bytes + 63) / 64 * 64);
  for (size_t i = 0; i < m; i++) {
    kernel_fill_floats (&random, INPUT_NORMAL, in, COLS);
    if (kernel->activation == OX_ACTIVATION_Q8)
      k->quantize_q8 (in, x + i * x_bytes, COLS);
    else
      memcpy (x + i * x_bytes, in, x_bytes);
  }
  job = (Job) {
    .w = &w, .source = source, .x = x, .m = m, .y = g_new (float, MAX (rows * batches[N_BATCHES - 1], m * MATMUL_ROWS))
  };

  /* The source repeats, so every part may read its beginning. */
  pack_s = best (pool, run_pack, &job, rows, 64);
  best_batches (pool, &job, packed, batch_s);
  w.rows = MATMUL_ROWS;
  job.m = m;
  mul_s = best (pool, run_matmul, &job, MATMUL_ROWS, 64);
  printf ("%-11s %-7s %-5s %-24s pack %5.2f GB/s   matvec %5.1f GB/s (%3.0f %%)", level->name,
          ox_type_info (type)->name, precision == OX_PRECISION_EXACT ? "exact" : "fast", kernel->name,
          (double) (rows * row_bytes) / pack_s * 1e-9, (double) packed / batch_s[0] * 1e-9,
          (double) packed / batch_s[0] * 1e-7 / bandwidth);
  for (size_t b = 1; b < N_BATCHES; b++)
    printf ("  %zu: %4.2f", batches[b], batch_s[b] / batch_s[0]);
  printf ("   matmul %7.1f GOPS\n", 2.0 * MATMUL_ROWS * COLS * (double) m / mul_s * 1e-9);
  fflush (stdout);
  free (w.data);
  free (x);
  g_free (source);
  g_free (in);
  g_free (job.y);
}

int
main (int argc, char **argv)
{
  OxPool *pool = ox_pool_new (argc > 1 ? (unsigned) atoi (argv[1]) : 0);
  size_t n_levels, mib = argc > 3 ? (size_t) atoi (argv[3]) : 256;
  const KernelLevel *levels = kernel_levels (&n_levels);
  double bandwidth = read_bandwidth (pool);

  printf ("%s, %u threads, read bandwidth %.1f GB/s, pool start and join %.2f µs\n", ox_cpu_name (),
          ox_pool_threads (pool), bandwidth, dispatch_us (pool));
  for (size_t l = 0; l < n_levels; l++) {
    if (argc > 2 && strcmp (argv[2], "all") != 0 && strcmp (argv[2], levels[l].name) != 0)
      continue;
    for (size_t t = 0; t < kernel_n_types; t++)
      if (argc < 5 || strcmp (argv[4], ox_type_info (kernel_types[t])->name) == 0)
        bench_type (pool, &levels[l], kernel_types[t], OX_PRECISION_FAST, mib, bandwidth);
    if (argc >= 5)
      continue;
    bench_type (pool, &levels[l], OX_TYPE_Q4_K, OX_PRECISION_EXACT, mib, bandwidth);
    bench_type (pool, &levels[l], OX_TYPE_F32, OX_PRECISION_EXACT, mib, bandwidth);
  }
  printf ("read bandwidth at the end %.1f GB/s\n", read_bandwidth (pool));
  ox_pool_free (pool);
  return 0;
}
