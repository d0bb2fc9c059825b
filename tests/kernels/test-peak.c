/* The loops that limits are measured with: all that this processor has run, and give figures that a machine can have. How fast they are
 * is not looked at; that they do what they count is, as far as it shows.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "kernel-test.h"

#include <time.h>

#include "ox-peak.h"

/* Operations or bytes a second that no thread of any machine of today reaches. */
#define TOO_MUCH 1e15

static void
test_loops (void)
{
  const OxPeak *peak;
  size_t n = 0;

  for (; (peak = ox_peak (n)) != NULL; n++) {
    g_test_message ("%s", peak->name);
    g_assert_cmpuint (peak->operations, >, 0);
    /* No rounds are none. */
    if (ox_peak_runs (peak, OX_CPU_ALL))
      peak->run (0);
    for (unsigned threads = 1; threads <= 3; threads++) {
      double speed = ox_peak_measure (peak, threads, 1e-4);

      if (!ox_peak_runs (peak, OX_CPU_ALL)) {
        g_assert_cmpfloat (speed, ==, 0);
        continue;
      }
      g_assert_cmpfloat (speed, >, 0);
      g_assert_cmpfloat (speed, <, threads * TOO_MUCH);
    }
    g_assert_false (peak->flags != 0 && ox_peak_runs (peak, 0));
    for (size_t other = 0; other < n; other++)
      g_assert_cmpstr (ox_peak (other)->name, !=, peak->name);
  }
  g_assert_null (ox_peak (n + 1000));
}

/* This thread's own time: other programs do not count. */
static gint64
thread_ns (void)
{
  struct timespec t;

  clock_gettime (CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * G_GINT64_CONSTANT (1000000000) + t.tv_nsec;
}

/* A loop takes as long as it has rounds: it is not left out, nor done once for all. */
static void
test_rounds (void)
{
  const OxPeak *peak;

  for (size_t i = 0; (peak = ox_peak (i)) != NULL; i++) {
    uint64_t few = 20000, many = 20 * few;
    gint64 least[2] = { G_MAXINT64, G_MAXINT64 };

    if (!ox_peak_runs (peak, OX_CPU_ALL))
      continue;
    for (unsigned r = 0; r < 5; r++)
      for (unsigned k = 0; k < 2; k++) {
        gint64 begin = thread_ns ();

        peak->run (k == 0 ? few : many);
        least[k] = MIN (least[k], MAX (thread_ns () - begin, 1));
      }
    g_test_message ("%s: %d and %d ns", peak->name, (int) least[0], (int) least[1]);
    g_assert_cmpint (least[1], >, 4 * least[0]);
  }
}

static void
test_best (void)
{
  for (unsigned kind = 0; kind < OX_N_PEAK_KINDS; kind++) {
    const char *name = NULL;
    double speed = ox_peak_best (kind, OX_CPU_ALL, 1, 1e-4, 2, &name);

#if defined(__x86_64__) || defined(__aarch64__)
    g_assert_cmpfloat (speed, >, 0);
    g_assert_nonnull (name);
#else
    g_assert_cmpfloat (speed, ==, 0);
#endif
  }
  g_assert_cmpfloat (ox_peak_best (OX_PEAK_INT8, OX_CPU_ALL, 0, 1e-4, 1, NULL), ==, 0);
  g_assert_cmpfloat (ox_peak_best (OX_PEAK_INT8, OX_CPU_ALL, 5000, 1e-4, 1, NULL), ==, 0);
}

static void
test_read (void)
{
  OxReadProbe probe;
  double mean;
  const uint64_t *words;

  for (unsigned threads = 1; threads <= 3; threads++) {
    size_t tried = 0;

    g_assert_true (ox_read_probe_init (&probe, 30 << 20, threads));
    g_assert_cmpuint (probe.bytes, >, 0);
    g_assert_cmpuint (probe.bytes % threads, ==, 0);
    /* Words differ, or pages might be one page; and reading leaves them as they are. */
    words = (const uint64_t *) (const void *) probe.data;
    for (size_t way = 0; way < ox_read_probe_ways (); way++) {
      double speed = ox_read_probe_pass (&probe, way);

      g_assert_cmpfloat (speed, >=, 0);
      g_assert_cmpfloat (speed, <, threads * TOO_MUCH);
      tried += speed > 0;
    }
    g_assert_cmpuint (tried, >, 0);
    for (size_t i = 0; i < probe.bytes / 8; i++)
      g_assert_cmphex (words[i], ==, (i + 1) * 0x9e3779b97f4a7c15u);
    g_assert_cmpfloat (ox_read_probe_best (&probe, 2, &mean), >, 0);
    g_assert_cmpfloat (mean, >, 0);
    g_assert_cmpfloat (ox_read_probe_pass (&probe, ox_read_probe_ways ()), ==, 0);
    ox_read_probe_clear (&probe);
    g_assert_cmpfloat (ox_read_probe_pass (&probe, 0), ==, 0);
  }
  g_assert_cmpuint (ox_read_probe_bytes (), >=, 256 << 20);
  g_assert_false (ox_read_probe_init (&probe, 30 << 20, 0));
  g_assert_false (ox_read_probe_init (&probe, SIZE_MAX, 1));
}

static void
test_round_trip (void)
{
  double seconds = ox_peak_round_trip (100);

  g_assert_cmpfloat (seconds, >, 0);
  g_assert_cmpfloat (seconds, <, 10);
  g_assert_cmpfloat (ox_peak_round_trip (0), ==, 0);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/peak/loops", test_loops);
  g_test_add_func ("/peak/rounds", test_rounds);
  g_test_add_func ("/peak/best", test_best);
  g_test_add_func ("/peak/read", test_read);
  g_test_add_func ("/peak/round-trip", test_round_trip);
  return g_test_run ();
}
