/* The levels and numbers of threads that kernels are measured at, one after the other.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-cli-bench-place.h"

#define RUN_SECONDS 0.3
#define QUICK_RUN_SECONDS 0.1
#define LEAST_RUNS 3

double
ox_bench_place_best (OxBenchPlace *place, void (*run) (gpointer data), gpointer data)
{
  double most = place->bench->quick ? QUICK_RUN_SECONDS : RUN_SECONDS, best = G_MAXDOUBLE;
  gint64 begin = g_get_monotonic_time ();

  for (guint i = 0; i < LEAST_RUNS || (double) (g_get_monotonic_time () - begin) < most * 1e6; i++) {
    gint64 start = g_get_monotonic_time ();

    run (data);
    best = MIN (best, MAX ((double) (g_get_monotonic_time () - start), 1) / 1e6);
  }
  return best;
}

double
ox_bench_place_best_of (OxBenchPlace *place, void (*run) (gpointer data), gpointer data, guint what)
{
  double seconds;

  ox_bench_limits_init (&place->limits, place->threads, place->level->mask);
  ox_bench_limits_measure (place->bench, &place->limits, what);
  seconds = ox_bench_place_best (place, run, data);
  ox_bench_limits_measure (place->bench, &place->limits, what);
  return seconds;
}

OxBenchResult *
ox_bench_place_add (OxBenchPlace *place, const char *name, const char *unit, double value, const OxBenchWork *work)
{
  OxBenchResult *result = ox_bench_add (place->bench, name, unit, value, work, place->threads, place->level->name);

  ox_bench_limits_apply (place->bench, &place->limits);
  return result;
}

void
ox_bench_fill (OxTensor *tensor)
{
  float *values = ox_cpu_rows (tensor);

  for (gsize i = 0; i < (gsize) tensor->rows * tensor->cols; i++)
    values[i] = (float) (gint32) ((guint32) i * 2654435761u) * 0x1p-31f;
}

OxPeakKind
ox_bench_kind (const OxPackedMatrix *w)
{
  if (w->kernel->activation == OX_ACTIVATION_Q8)
    return OX_PEAK_INT8;
  /* Whether its kernel expands them or not: what is faster is the limit. */
  if (w->kernel->activation == OX_ACTIVATION_BF16 || w->type == OX_TYPE_BF16)
    return OX_PEAK_BF16;
  return OX_PEAK_F32;
}

/* The limits themselves, as results. */
static void
bench_peaks (OxBenchPlace *place)
{
  static const char *const names[OX_N_PEAK_KINDS] = { "peak/f32", "peak/bf16", "peak/int8" };
  OxBench *bench = place->bench;

  for (guint kind = 0; kind < OX_N_PEAK_KINDS; kind++) {
    OxBenchResult *result;

    if (!ox_bench_wants (bench, names[kind]))
      continue;
    ox_bench_limits_measure (bench, &place->limits, 1u << kind);
    if (place->limits.peaks[kind] <= 0)
      continue;
    result = ox_bench_place_add (place, names[kind], "GOPS", place->limits.peaks[kind] / 1e9, NULL);
    result->limit = result->value;
    ox_bench_say (bench, "    by %s", place->limits.names[kind]);
  }
}

/* Reading does not depend on the level; the mean of several passes tells how quiet the machine is. */
static void
bench_read (OxBenchPlace *place)
{
  OxBench *bench = place->bench;
  OxBenchResult *result;

  if (!ox_bench_wants (bench, "peak/read"))
    return;
  for (guint i = 0; i < 3; i++)
    ox_bench_limits_measure (bench, &place->limits, OX_BENCH_READ);
  if (place->limits.read <= 0)
    return;
  result = ox_bench_place_add (place, "peak/read", "GB/s", place->limits.read / 1e9, NULL);
  result->limit = result->value;
  ox_bench_say (bench, "    the mean is %.2f GB/s", place->limits.read_mean / 1e9);
}

static gboolean
bench_place (OxBench *bench, const OxBenchLevel *level, guint threads, gboolean best, GError **error)
{
  OxBenchPlace place = { .bench = bench, .level = level, .threads = threads, .brief = bench->quick };
  OxOpsCpuOptions options = { .kernels = &place.kernels, .precision = OX_PRECISION_FAST };
  gboolean ok;

  place.pool = ox_pool_new (threads);
  if (place.pool == NULL) {
    g_set_error (error, OX_ERROR, OX_ERROR_NO_MEMORY, "there is not enough memory for %u threads", threads);
    return FALSE;
  }
  ox_bench_say (bench, "Kernels: %s, %u threads", level->name, threads);
  ox_kernels_init (&place.kernels, level->mask);
  options.pool = place.pool;
  place.ops = ox_ops_cpu_new (&options);
  /* Half of what reads are measured in is still four times the last cache. */
  place.read_bytes = bench->quick ? ox_read_probe_bytes () / 2 : ox_read_probe_bytes ();
  ox_bench_limits_init (&place.limits, threads, level->mask);
  if (best)
    bench_read (&place);
  bench_peaks (&place);
  ok =
    ox_bench_products (&place, error) && ox_bench_convolutions (&place, error) && ox_bench_operations (&place, error);
  place.ops->free (place.ops);
  ox_pool_free (place.pool);
  return ok;
}

gboolean
ox_bench_kernels (OxBench *bench, gboolean best, GError **error)
{
  for (guint t = bench->threads->len; t-- > 0;) {
    for (guint l = bench->levels->len; l-- > 0;) {
      if ((l + 1 == bench->levels->len) != best)
        continue;
      /* Fewer threads than all, and levels that this machine has better than: not in a quick run. */
      if (bench->quick && t + 1 < bench->threads->len && !best)
        continue;
      if (!ox_bench_goes_on (bench))
        return TRUE;
      if (!bench_place (bench, &g_array_index (bench->levels, OxBenchLevel, l),
                        g_array_index (bench->threads, guint, t), best, error))
        return FALSE;
    }
  }
  return TRUE;
}
