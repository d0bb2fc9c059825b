/* The limits of this machine, measured beside what they limit: clocks and neighbours change.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-cli-bench.h"

#include <math.h>

/* A call measures a peak so long and so often, and reads memory so often in each way. */
#define PEAK_SECONDS 0.003
#define PEAK_REPEATS 3
#define READ_PASSES 3

void
ox_bench_limits_init (OxBenchLimits *limits, guint threads, guint32 mask)
{
  *limits = (OxBenchLimits) { .threads = threads, .mask = mask };
}

/* As large as it should be, or as memory allows. */
static gboolean
open_probe (OxBench *bench, guint threads)
{
  gsize bytes = ox_read_probe_bytes ();
  guint64 total, available;

  if (bench->probe.data != NULL && bench->probe.threads == threads)
    return TRUE;
  ox_read_probe_clear (&bench->probe);
  ox_platform_get_memory (&total, &available);
  return ox_read_probe_init (&bench->probe, (gsize) MIN (bytes, MAX (available / 4, 64 << 20)), threads);
}

void
ox_bench_limits_release (OxBench *bench)
{
  ox_read_probe_clear (&bench->probe);
}

void
ox_bench_limits_measure (OxBench *bench, OxBenchLimits *limits, guint what)
{
  for (guint kind = 0; kind < OX_N_PEAK_KINDS; kind++) {
    const char *name = NULL;
    double peak;

    if (!(what & 1u << kind) || !ox_bench_goes_on (bench))
      continue;
    peak = ox_peak_best (kind, limits->mask, limits->threads, PEAK_SECONDS, PEAK_REPEATS, &name);
    if (peak > limits->peaks[kind]) {
      limits->peaks[kind] = peak;
      limits->names[kind] = name;
    }
  }
  if ((what & OX_BENCH_READ) && ox_bench_goes_on (bench) && open_probe (bench, limits->threads)) {
    double mean, read = ox_read_probe_best (&bench->probe, READ_PASSES, &mean);

    if (read > limits->read) {
      limits->read = read;
      limits->read_mean = mean;
    }
  }
}

/* Units a second when everything runs at its limit, one after the other; NAN where a limit that is needed was not measured. */
static double
limit_of (const OxBenchLimits *limits, const OxBenchWork *work)
{
  double seconds = 0;

  for (guint kind = 0; kind < OX_N_PEAK_KINDS; kind++)
    if (work->operations[kind] > 0)
      seconds += work->operations[kind] / limits->peaks[kind];
  if (work->bytes > 0)
    seconds += work->bytes / limits->read;
  return seconds > 0 && isfinite (seconds) ? 1 / seconds : NAN;
}

void
ox_bench_limits_apply (OxBench *bench, const OxBenchLimits *limits)
{
  for (; bench->limited < bench->results->len; bench->limited++) {
    OxBenchResult *result = g_ptr_array_index (bench->results, bench->limited);

    if (result->has_work)
      result->limit = limit_of (limits, &result->work);
  }
}
