/* The thread pool: every item once, nested calls, two callers, no processor time when idle.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "kernel-test.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>

#define ITEMS 10000

typedef struct {
  OxPool *pool;
  _Atomic uint8_t visits[ITEMS];
  atomic_uint busy[64]; /* by worker */
  atomic_uint errors;
  size_t grain, n;
  atomic_size_t sum;
} PoolTest;

static void
visit (void *data, size_t begin, size_t end, unsigned worker)
{
  PoolTest *test = data;

  if (worker >= ox_pool_threads (test->pool) || atomic_fetch_add (&test->busy[worker], 1) != 0)
    atomic_fetch_add (&test->errors, 1);
  if (begin % test->grain != 0 || begin >= end || end > test->n)
    atomic_fetch_add (&test->errors, 1);
  if (end - begin < test->grain && end != test->n)
    atomic_fetch_add (&test->errors, 1);
  for (size_t i = begin; i < end; i++)
    atomic_fetch_add (&test->visits[i], 1);
  atomic_fetch_sub (&test->busy[worker], 1);
}

static void
test_every_item_once (void)
{
  static const unsigned threads[] = { 0, 1, 2, 3, 7 };
  static const size_t counts[] = { 0, 1, 2, 15, 16, 17, 1000, ITEMS }, grains[] = { 1, 16, 100, 20000 };
  g_autofree PoolTest *test = g_new0 (PoolTest, 1);

  for (size_t t = 0; t < G_N_ELEMENTS (threads); t++) {
    test->pool = ox_pool_new (threads[t]);
    g_assert_nonnull (test->pool);
    if (threads[t] == 0)
      g_assert_cmpuint (ox_pool_threads (test->pool), ==, ox_cpu_allowed_cores ());
    for (unsigned round = 0; round < 20; round++)
      for (size_t c = 0; c < G_N_ELEMENTS (counts); c++)
        for (size_t g = 0; g < G_N_ELEMENTS (grains); g++) {
          memset (test->visits, 0, sizeof test->visits);
          test->grain = grains[g];
          test->n = counts[c];
          ox_pool_run (test->pool, visit, test, test->n, test->grain);
          for (size_t i = 0; i < ITEMS; i++)
            if (test->visits[i] != (i < test->n))
              g_error ("%u threads, %zu items by %zu: item %zu was done %u times", threads[t], test->n, test->grain, i,
                       test->visits[i]);
        }
    g_assert_cmpuint (test->errors, ==, 0);
    ox_pool_free (test->pool);
  }
}

static void
add_range (void *data, size_t begin, size_t end, unsigned worker)
{
  PoolTest *test = data;

  for (size_t i = begin; i < end; i++)
    atomic_fetch_add (&test->sum, i);
}

typedef struct {
  PoolTest *test;
  unsigned outer_worker;
  atomic_uint calls;
} Nested;

static void
inner (void *data, size_t begin, size_t end, unsigned worker)
{
  Nested *nested = data;

  if (worker != nested->outer_worker || begin != 0)
    atomic_fetch_add (&nested->test->errors, 1);
  atomic_fetch_add (&nested->calls, 1);
  add_range (nested->test, begin, end, worker);
}

static void
outer (void *data, size_t begin, size_t end, unsigned worker)
{
  PoolTest *test = data;

  for (size_t i = begin; i < end; i++) {
    Nested nested = { test, worker };
    ox_pool_run (test->pool, inner, &nested, 100, 1);
    if (nested.calls != 1)
      atomic_fetch_add (&test->errors, 1);
  }
}

static void
test_nested (void)
{
  g_autofree PoolTest *test = g_new0 (PoolTest, 1);

  test->pool = ox_pool_new (3);
  ox_pool_run (test->pool, outer, test, 50, 1);
  g_assert_cmpuint (test->sum, ==, 50 * 4950);
  g_assert_cmpuint (test->errors, ==, 0);
  ox_pool_free (test->pool);
}

static gpointer
call_often (gpointer data)
{
  PoolTest *shared = data;
  g_autofree PoolTest *test = g_new0 (PoolTest, 1);

  for (unsigned i = 0; i < 500; i++) {
    test->sum = 0;
    ox_pool_run (shared->pool, add_range, test, 1000, 10);
    if (test->sum != 499500)
      atomic_fetch_add (&shared->errors, 1);
  }
  return NULL;
}

static void
test_two_callers (void)
{
  g_autofree PoolTest *test = g_new0 (PoolTest, 1);
  GThread *other;

  test->pool = ox_pool_new (2);
  other = g_thread_new ("caller", call_often, test);
  call_often (test);
  g_thread_join (other);
  g_assert_cmpuint (test->errors, ==, 0);
  ox_pool_free (test->pool);
}

static double
processor_ms (void)
{
  struct rusage usage;

  getrusage (RUSAGE_SELF, &usage);
  return (double) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3 +
         (double) (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-3;
}

static void
test_idle_costs_nothing (void)
{
  g_autofree PoolTest *test = g_new0 (PoolTest, 1);
  double before;

  test->pool = ox_pool_new (0);
  ox_pool_run (test->pool, add_range, test, 1000, 1);
  before = processor_ms ();
  g_usleep (200000);
  g_assert_cmpfloat (processor_ms () - before, <, 5);
  /* And it wakes again. */
  test->sum = 0;
  ox_pool_run (test->pool, add_range, test, 1000, 1);
  g_assert_cmpuint (test->sum, ==, 499500);
  ox_pool_free (test->pool);
}

static void
sleep_unless_caller (void *data, size_t begin, size_t end, unsigned worker)
{
  PoolTest *test = data;

  if (worker == 0) {
    gint64 until = g_get_monotonic_time () + 20;
    while (g_get_monotonic_time () < until)
      ;
  } else {
    atomic_fetch_add (&test->sum, 1);
    g_usleep (5000);
  }
}

/* A worker that lost its core in mid-chunk, here by sleeping: the pool must soon do without it, and come back to it later. */
static void
test_stalled_worker (void)
{
  g_autofree PoolTest *test = g_new0 (PoolTest, 1);
  const unsigned jobs = 400;

  test->pool = ox_pool_new (2);
  for (unsigned i = 0; i < jobs; i++)
    ox_pool_run (test->pool, sleep_unless_caller, test, 16, 1);
  g_test_message ("%zu chunks by the worker in %u jobs", test->sum, jobs);
  g_assert_cmpuint (test->sum, <, jobs / 8);
  g_usleep (70000);
  test->sum = 0;
  for (unsigned i = 0; i < 100 && test->sum == 0; i++) {
    ox_pool_run (test->pool, sleep_unless_caller, test, 16, 1);
    g_usleep (1000);
  }
  g_assert_cmpuint (test->sum, >, 0);
  ox_pool_free (test->pool);
}

/* Free right after new, and right after a call: workers that have not started yet must not be lost. */
static void
test_short_lives (void)
{
  g_autofree PoolTest *test = g_new0 (PoolTest, 1);

  for (unsigned i = 0; i < 100; i++) {
    test->pool = ox_pool_new (2);
    if (i % 2 == 0)
      ox_pool_run (test->pool, add_range, test, 100, 1);
    ox_pool_free (test->pool);
  }
  ox_pool_free (NULL);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/pool/every-item-once", test_every_item_once);
  g_test_add_func ("/pool/nested", test_nested);
  g_test_add_func ("/pool/two-callers", test_two_callers);
  g_test_add_func ("/pool/idle-costs-nothing", test_idle_costs_nothing);
  g_test_add_func ("/pool/stalled-worker", test_stalled_worker);
  g_test_add_func ("/pool/short-lives", test_short_lives);
  return g_test_run ();
}
