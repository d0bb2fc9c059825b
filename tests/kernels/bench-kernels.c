/* How fast the linear kernels are beside what the machine can do, which is measured in the same run: matvec in GB/s of packed
 * weights and of the read bandwidth, matmul in GOPS (a multiplication and an addition are two) and of the instruction that could
 * do most. Best of several; one line a kernel. After matvec comes what a few activation rows at once cost, in times of matvec:
 * reading the weights is the limit of both, so 1 is the aim.
 *
 *     bench-kernels [THREADS [LEVEL|all [MIB [TYPE|all [ROWS COLS M]]]]]
 *
 * MIB: of weights in matvec; 256, far more than any cache, if not given. The rest is the shape of matmul, 2048, 2048 and 128.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "kernel-test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "ox-peak.h"

#define REPEATS 7
#define LARGE_PAGE (2u << 20)
#define PEAK_OPERATIONS 50000000.0

/* What reads from memory as fast as possible, and the best of its ways. */
typedef struct {
  OxReadProbe probe;
  size_t way;
} Reader;

/* Of matmul; matvec has so many columns, too. */
typedef struct {
  size_t rows, cols, m;
} Shape;

/* Activation rows that are multiplied at once, the first by matvec. */
static const size_t batches[] = { 1, 2, 3, 4, 5, 6, 8, 12, 16 };
#define N_BATCHES G_N_ELEMENTS (batches)

typedef struct {
  const OxPackedMatrix *w;
  const void *source;
  const void *x;
  size_t m;
  float *y;
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

/* Seconds of the best runs of each of the batches, which take turns, and the read bandwidth is measured in between: what they are
 * compared by must not change between them. Small matrices have more turns, so that each lasts long enough to be measured. Returns
 * bytes a second, of as many passes as matvec has. */
static double
best_batches (OxPool *pool, Job *job, const Reader *reader, size_t packed, double seconds[N_BATCHES])
{
  double bandwidth = 0;
  size_t turns = MIN (2 * REPEATS * MAX ((64u << 20) / packed, 1), 2000);

  for (size_t b = 0; b < N_BATCHES; b++)
    seconds[b] = 1e9;
  for (size_t i = 0; i < turns; i++) {
    for (size_t b = 0; b < N_BATCHES; b++) {
      job->m = batches[b];
      seconds[b] = MIN (seconds[b], once (pool, job->m == 1 ? run_matvec : run_matmul, job, job->w->rows, 64));
    }
    if (i < 2 * REPEATS)
      bandwidth = MAX (bandwidth, ox_read_probe_pass (&reader->probe, reader->way));
  }
  return bandwidth;
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

/* An item is PEAK_OPERATIONS. */
static void
run_peak (void *data, size_t begin, size_t end, unsigned worker)
{
  const OxPeak *peak = data;

  peak->run ((uint64_t) ((double) (end - begin) * PEAK_OPERATIONS / peak->operations));
}

/* Seconds that the best loop takes for the operations of @n items. */
static double
peak_seconds (OxPool *pool, OxPeakKind kind, uint32_t flags, size_t n)
{
  const OxPeak *peak;
  double seconds = 1e9;

  for (size_t i = 0; (peak = ox_peak (i)) != NULL; i++)
    if (peak->kind == kind && ox_peak_runs (peak, flags)) {
      double begin = clock_seconds (pool);

      ox_pool_run (pool, run_peak, (void *) peak, n, 1);
      seconds = MIN (seconds, clock_seconds (pool) - begin);
    }
  return seconds;
}

/* Operations a second of a product with many activation rows, and in @peak what could be reached at most; they take turns. */
static double
matmul_speed (OxPool *pool, Job *job, Shape shape, OxPeakKind kind, uint32_t flags, double *peak)
{
  const size_t n = 32;
  double seconds = 1e9, peak_s = 1e9;

  for (unsigned i = 0; i < REPEATS; i++) {
    peak_s = MIN (peak_s, peak_seconds (pool, kind, flags, n));
    seconds = MIN (seconds, once (pool, run_matmul, job, shape.rows, 64));
  }
  *peak = (double) n * PEAK_OPERATIONS / peak_s;
  return 2.0 * (double) shape.rows * (double) shape.cols * (double) shape.m / seconds;
}

/* Large pages where they can be had, as the engine asks for. */
static void *
allocate_weights (size_t bytes)
{
  void *data = aligned_alloc (LARGE_PAGE, (bytes + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE);

  madvise (data, bytes, MADV_HUGEPAGE);
  return data;
}

static void
bench_type (OxPool *pool,
            const KernelLevel *level,
            uint32_t type,
            OxPrecision precision,
            size_t mib,
            Shape shape,
            const Reader *reader)
{
  const OxKernels *k = &level->kernels;
  const OxLinearKernel *kernel = ox_linear_kernel (k, type, precision, shape.rows, shape.cols);
  size_t unit, rows, packed = 0, allocated = 0, x_bytes = ox_activation_row_bytes (kernel->activation, shape.cols),
                     m = MAX (shape.m, batches[N_BATCHES - 1]);
  uint64_t row_bytes = 0;
  KernelRandom random = { 1 };
  OxPackedMatrix w;
  Job job = { 0 };
  void *source;
  uint8_t *x;
  float *in = g_new (float, shape.cols);
  double pack_s, speed, peak, bandwidth, batch_s[N_BATCHES];
  OxPeakKind kind = kernel->activation == OX_ACTIVATION_Q8     ? OX_PEAK_INT8
                    : kernel->activation == OX_ACTIVATION_BF16 ? OX_PEAK_BF16
                                                               : OX_PEAK_F32;

  kernel->packed_bytes (type, 16, shape.cols, &unit);
  rows = MAX (64, (mib << 20) / unit * 16);
  kernel->packed_bytes (type, rows, shape.cols, &packed);
  kernel->packed_bytes (type, MAX (rows, shape.rows), shape.cols, &allocated);
  ox_type_row_bytes (type, shape.cols, &row_bytes);
  source = g_malloc (MAX (rows, shape.rows) * row_bytes);
  kernel_fill_weights (&random, type, INPUT_NORMAL, source, 64 * shape.cols);
  for (size_t r = 64; r < MAX (rows, shape.rows); r += 64)
    memcpy ((uint8_t *) source + r * row_bytes, source, MIN (64, MAX (rows, shape.rows) - r) * row_bytes);
  w = (OxPackedMatrix) { kernel, type, MAX (rows, shape.rows), shape.cols, allocate_weights (allocated) };
  x = aligned_alloc (64, (m * x_bytes + 63) / 64 * 64);
  for (size_t i = 0; i < m; i++) {
    kernel_fill_floats (&random, INPUT_NORMAL, in, shape.cols);
    if (kernel->activation == OX_ACTIVATION_Q8)
      k->quantize_q8 (in, x + i * x_bytes, shape.cols);
    else if (kernel->activation == OX_ACTIVATION_BF16)
      k->round_bf16 (in, x + i * x_bytes, shape.cols);
    else
      memcpy (x + i * x_bytes, in, x_bytes);
  }
  job = (Job) {
    .w = &w, .source = source, .x = x, .m = m, .y = g_new (float, MAX (rows * batches[N_BATCHES - 1], m * shape.rows))
  };

  /* The source repeats, so every part may read its beginning. */
  pack_s = best (pool, run_pack, &job, w.rows, 64) / (double) w.rows * (double) rows;
  w.rows = rows;
  bandwidth = best_batches (pool, &job, reader, packed, batch_s);
  w.rows = shape.rows;
  job.m = shape.m;
  speed = matmul_speed (pool, &job, shape, kind, k->flags, &peak);
  printf ("%-11s %-7s %-5s %-24s pack %5.2f GB/s   matvec %5.1f GB/s (%3.0f %% of %.0f)", level->name,
          ox_type_info (type)->name, precision == OX_PRECISION_EXACT ? "exact" : "fast", kernel->name,
          (double) (rows * row_bytes) / pack_s * 1e-9, (double) packed / batch_s[0] * 1e-9,
          (double) packed / batch_s[0] * 100 / bandwidth, bandwidth * 1e-9);
  for (size_t b = 1; b < N_BATCHES; b++)
    printf ("  %zu: %4.2f", batches[b], batch_s[b] / batch_s[0]);
  printf ("   matmul %7.1f GOPS", speed * 1e-9);
  if (peak > 1)
    printf (" (%3.0f %% of %.0f)", speed / peak * 100, peak * 1e-9);
  printf ("\n");
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
  const char *type = argc > 4 && strcmp (argv[4], "all") != 0 ? argv[4] : NULL;
  Shape shape = { 2048, 2048, 128 };
  const KernelLevel *levels = kernel_levels (&n_levels);
  Reader reader = { .way = 0 };
  double fastest = 0;

  if (argc > 7)
    shape = (Shape) { (size_t) atoi (argv[5]), (size_t) atoi (argv[6]), (size_t) atoi (argv[7]) };
  if (!ox_read_probe_init (&reader.probe, ox_read_probe_bytes (), ox_pool_threads (pool)))
    return 1;
  for (size_t pass = 0; pass < REPEATS; pass++)
    for (size_t way = 0; way < ox_read_probe_ways (); way++) {
      double speed = ox_read_probe_pass (&reader.probe, way);

      if (speed > fastest) {
        fastest = speed;
        reader.way = way;
      }
    }
  printf ("%s, %u threads, pool start and join %.2f µs\n", ox_cpu_name (), ox_pool_threads (pool), dispatch_us (pool));
  for (size_t l = 0; l < n_levels; l++) {
    if (argc > 2 && strcmp (argv[2], "all") != 0 && strcmp (argv[2], levels[l].name) != 0)
      continue;
    for (size_t t = 0; t < kernel_n_types; t++)
      if (type == NULL || strcmp (type, ox_type_info (kernel_types[t])->name) == 0)
        bench_type (pool, &levels[l], kernel_types[t], OX_PRECISION_FAST, mib, shape, &reader);
    if (type != NULL)
      continue;
    bench_type (pool, &levels[l], OX_TYPE_Q4_K, OX_PRECISION_EXACT, mib, shape, &reader);
    bench_type (pool, &levels[l], OX_TYPE_F32, OX_PRECISION_EXACT, mib, shape, &reader);
  }
  ox_read_probe_clear (&reader.probe);
  ox_pool_free (pool);
  return 0;
}
