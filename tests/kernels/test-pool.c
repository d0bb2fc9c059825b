/* The thread pool does every item once: nested calls, several callers, cores and limits that change under way, workers that stall.
 * Built a second time with ThreadSanitizer (test-kernels-pool-tsan). What it costs: test-pool-time.c.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <glib.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "ox-internal.h"

#define ITEMS 10000
#define MOST_THREADS 16

#ifdef OX_TEST_TSAN
#define STRESS_US 1500000
#else
#define STRESS_US 1000000
#endif

/* ---- One job ---- */

typedef struct {
  OxPool *pool;
  _Atomic uint8_t visits[ITEMS];
  atomic_uint busy[MOST_THREADS]; /* by worker */
  atomic_uint at_once, most_at_once;
  atomic_uint errors;
  size_t grain, n;
  atomic_size_t sum;
} PoolTest;

static void
visit (void *data, size_t begin, size_t end, unsigned worker)
{
  PoolTest *test = data;
  unsigned at_once = atomic_fetch_add (&test->at_once, 1) + 1, most = atomic_load (&test->most_at_once);

  while (at_once > most && !atomic_compare_exchange_weak (&test->most_at_once, &most, at_once))
    ;
  if (worker >= ox_pool_threads (test->pool) || atomic_fetch_add (&test->busy[worker], 1) != 0)
    atomic_fetch_add (&test->errors, 1);
  if (begin % test->grain != 0 || begin >= end || end > test->n)
    atomic_fetch_add (&test->errors, 1);
  if (end - begin < test->grain && end != test->n)
    atomic_fetch_add (&test->errors, 1);
  for (size_t i = begin; i < end; i++)
    atomic_fetch_add (&test->visits[i], 1);
  atomic_fetch_sub (&test->busy[worker], 1);
  atomic_fetch_sub (&test->at_once, 1);
}

static void
check_visits (PoolTest *test, size_t n, size_t grain)
{
  memset (test->visits, 0, sizeof test->visits);
  test->grain = grain;
  test->n = n;
  ox_pool_run (test->pool, visit, test, n, grain);
  for (size_t i = 0; i < ITEMS; i++)
    if (test->visits[i] != (i < n))
      g_error ("%u threads, %zu items by %zu: item %zu was done %u times", ox_pool_threads (test->pool), n, grain, i,
               test->visits[i]);
}

/* As many cores as a test wants, whatever this computer has. */
static unsigned
told_cores (void *data)
{
  return (unsigned) g_atomic_int_get ((gint *) data);
}

static gint many_cores = MOST_THREADS;

static OxPool *
pool_new (unsigned n_threads)
{
  OxPool *pool = ox_pool_new (n_threads);

  g_assert_nonnull (pool);
  ox_pool_set_core_source (pool, told_cores, &many_cores);
  return pool;
}

static void
test_every_item_once (void)
{
  static const unsigned threads[] = { 1, 2, 3, 7 };
  static const size_t counts[] = { 0, 1, 2, 15, 16, 17, 1000, ITEMS }, grains[] = { 1, 16, 100, 20000 };
  g_autofree PoolTest *test = g_new0 (PoolTest, 1);

  for (size_t t = 0; t < G_N_ELEMENTS (threads); t++) {
    test->pool = pool_new (threads[t]);
    g_assert_cmpuint (ox_pool_threads (test->pool), ==, threads[t]);
    g_assert_cmpuint (ox_pool_get_limit (test->pool), ==, threads[t]);
    for (unsigned round = 0; round < 10; round++)
      for (size_t c = 0; c < G_N_ELEMENTS (counts); c++)
        for (size_t g = 0; g < G_N_ELEMENTS (grains); g++)
          check_visits (test, counts[c], grains[g]);
    g_assert_cmpuint (test->errors, ==, 0);
    ox_pool_free (test->pool);
  }
}

static void
test_own_number (void)
{
  OxPool *pool = ox_pool_new (0);

  g_assert_cmpuint (ox_pool_threads (pool), ==, ox_cpu_allowed_cores ());
  g_assert_cmpuint (ox_pool_get_limit (pool), ==, ox_cpu_allowed_cores ());
  ox_pool_free (pool);
  /* More were asked for than may work. */
  pool = ox_pool_new (MOST_THREADS);
  g_assert_cmpuint (ox_pool_threads (pool), ==, MOST_THREADS);
  g_assert_cmpuint (ox_pool_get_limit (pool), <=, (unsigned) sysconf (_SC_NPROCESSORS_ONLN));
  ox_pool_free (pool);
}

static void
add_range (void *data, size_t begin, size_t end, unsigned worker)
{
  PoolTest *test = data;

  for (size_t i = begin; i < end; i++)
    atomic_fetch_add (&test->sum, i);
}

/* ---- Calls inside calls, and from several threads ---- */

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

  test->pool = pool_new (3);
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

  test->pool = pool_new (2);
  other = g_thread_new ("caller", call_often, test);
  call_often (test);
  g_thread_join (other);
  g_assert_cmpuint (test->errors, ==, 0);
  ox_pool_free (test->pool);
}

typedef struct {
  OxPool *pool;
  atomic_bool begun, other_done, timed_out;
} LongJob;

/* Lasts until the other caller's job is done. */
static void
wait_for_other (void *data, size_t begin, size_t end, unsigned worker)
{
  LongJob *job = data;
  gint64 deadline = g_get_monotonic_time () + 10 * G_USEC_PER_SEC;

  atomic_store (&job->begun, true);
  while (!atomic_load (&job->other_done)) {
    if (g_get_monotonic_time () > deadline) {
      atomic_store (&job->timed_out, true);
      return;
    }
    g_usleep (100);
  }
}

static gpointer
call_during_long_job (gpointer data)
{
  LongJob *job = data;
  g_autofree PoolTest *test = g_new0 (PoolTest, 1);

  while (!atomic_load (&job->begun))
    g_usleep (100);
  ox_pool_run (job->pool, add_range, test, 1000, 10);
  g_assert_cmpuint (test->sum, ==, 499500);
  atomic_store (&job->other_done, true);
  return NULL;
}

static void
test_nobody_waits (void)
{
  LongJob job = { .pool = pool_new (2) };
  GThread *other = g_thread_new ("caller", call_during_long_job, &job);

  ox_pool_run (job.pool, wait_for_other, &job, 16, 1);
  g_thread_join (other);
  g_assert_false (job.timed_out);
  ox_pool_free (job.pool);
}

/* ---- Fewer and more threads ---- */

static void
sleep_briefly (void *data, size_t begin, size_t end, unsigned worker)
{
  PoolTest *test = data;
  unsigned at_once = atomic_fetch_add (&test->at_once, 1) + 1, most = atomic_load (&test->most_at_once);

  while (at_once > most && !atomic_compare_exchange_weak (&test->most_at_once, &most, at_once))
    ;
  g_usleep (100);
  atomic_fetch_sub (&test->at_once, 1);
}

/* The most threads that were at work at once in @jobs jobs. */
static unsigned
most_at_once (PoolTest *test, unsigned jobs)
{
  test->most_at_once = 0;
  for (unsigned i = 0; i < jobs; i++)
    ox_pool_run (test->pool, sleep_briefly, test, 32, 1);
  return test->most_at_once;
}

/* Runs jobs until @threads were at work at once. */
static void
wait_for_threads (PoolTest *test, unsigned threads)
{
  gint64 deadline = g_get_monotonic_time () + 20 * G_USEC_PER_SEC;

  while (most_at_once (test, 1) != threads)
    g_assert_cmpint (g_get_monotonic_time (), <, deadline);
}

static void
test_limit (void)
{
  g_autofree PoolTest *test = g_new0 (PoolTest, 1);

  test->pool = pool_new (4);
  wait_for_threads (test, 4);
  for (unsigned limit = 3; limit > 0; limit--) {
    ox_pool_set_limit (test->pool, limit);
    g_assert_cmpuint (ox_pool_get_limit (test->pool), ==, limit);
    g_assert_cmpuint (most_at_once (test, 20), <=, limit);
    wait_for_threads (test, limit);
  }
  ox_pool_set_limit (test->pool, 100);
  g_assert_cmpuint (ox_pool_get_limit (test->pool), ==, 4);
  ox_pool_set_limit (test->pool, 2);
  ox_pool_set_limit (test->pool, 0);
  g_assert_cmpuint (ox_pool_get_limit (test->pool), ==, 4);
  wait_for_threads (test, 4);
  ox_pool_free (test->pool);
}

typedef struct {
  gint cores;
  atomic_uint asked;
} Cores;

static unsigned
count_told (void *data)
{
  Cores *cores = data;

  atomic_fetch_add (&cores->asked, 1);
  return (unsigned) g_atomic_int_get (&cores->cores);
}

/* Cores come and go: seen within a second or so of work, and asked for no more often. */
static void
test_cores_change (void)
{
  static const gint counts[] = { 4, 2, 1, 3 };
  g_autofree PoolTest *test = g_new0 (PoolTest, 1);
  Cores cores = { .cores = 3 };

  test->pool = ox_pool_new (3);
  ox_pool_set_core_source (test->pool, count_told, &cores);
  for (size_t i = 0; i < G_N_ELEMENTS (counts); i++) {
    unsigned expected = (unsigned) MIN (counts[i], 3);
    gint64 start = g_get_monotonic_time ();

    atomic_store (&cores.asked, 0);
    g_atomic_int_set (&cores.cores, counts[i]);
    while (atomic_load (&cores.asked) == 0 && g_get_monotonic_time () - start < 20 * G_USEC_PER_SEC)
      ox_pool_run (test->pool, add_range, test, 100, 1);
    g_assert_cmpuint (cores.asked, ==, 1);
    g_assert_cmpuint (ox_pool_get_limit (test->pool), ==, expected);
    g_assert_cmpuint (most_at_once (test, 20), <=, expected);
    wait_for_threads (test, expected);
    g_assert_cmpuint (cores.asked, <=, 2 + (g_get_monotonic_time () - start) / G_USEC_PER_SEC);
  }
  ox_pool_free (test->pool);
}

/* The same with the real affinity mask of the calling thread. */
static void
test_affinity_changes (void)
{
  g_autofree PoolTest *test = g_new0 (PoolTest, 1);
  cpu_set_t before, one;
  unsigned cores;

  g_assert_cmpint (sched_getaffinity (0, sizeof before, &before), ==, 0);
  test->pool = ox_pool_new (0);
  cores = ox_pool_threads (test->pool);
  if (cores == 1) {
    g_test_skip ("there is only one core");
    ox_pool_free (test->pool);
    return;
  }
  CPU_ZERO (&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT (&one) == 0; cpu++)
    if (CPU_ISSET (cpu, &before))
      CPU_SET (cpu, &one);
  for (int round = 0; round < 2; round++) {
    unsigned expected = round == 0 ? 1 : cores;
    gint64 deadline = g_get_monotonic_time () + 20 * G_USEC_PER_SEC;

    g_assert_cmpint (sched_setaffinity (0, sizeof one, round == 0 ? &one : &before), ==, 0);
    while (ox_pool_get_limit (test->pool) != expected && g_get_monotonic_time () < deadline)
      ox_pool_run (test->pool, add_range, test, 100, 1);
    g_assert_cmpuint (ox_pool_get_limit (test->pool), ==, expected);
  }
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

  test->pool = pool_new (2);
  for (unsigned i = 0; i < jobs; i++)
    ox_pool_run (test->pool, sleep_unless_caller, test, 16, 1);
  g_test_message ("%zu chunks by the worker in %u jobs", test->sum, jobs);
  g_assert_cmpuint (test->sum, <, jobs / 8);
  g_usleep (512000);
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
    test->pool = ox_pool_new (1 + i % 4);
    if (i % 3 == 0)
      ox_pool_set_core_source (test->pool, told_cores, &many_cores);
    if (i % 2 == 0)
      ox_pool_run (test->pool, add_range, test, 100, 1);
    ox_pool_free (test->pool);
  }
  ox_pool_free (NULL);
}

/* ---- Everything at once ---- */

typedef struct {
  OxPool *pool;
  atomic_bool stop;
  atomic_uint errors;
  atomic_ulong jobs;
  pid_t main_thread;
  cpu_set_t mask;
  gint cores;
} Stress;

typedef struct {
  Stress *stress;
  guint seed;
} Caller;

static gpointer
call_at_random (gpointer data)
{
  Caller *caller = data;
  Stress *stress = caller->stress;
  g_autofree PoolTest *test = g_new0 (PoolTest, 1);
  g_autoptr (GRand) rand = g_rand_new_with_seed (caller->seed);

  test->pool = stress->pool;
  while (!atomic_load (&stress->stop)) {
    size_t n = (size_t) g_rand_int_range (rand, 0, g_rand_boolean (rand) ? 40 : ITEMS);
    size_t grain = (size_t) g_rand_int_range (rand, 1, g_rand_boolean (rand) ? 4 : 2000);

    if (g_rand_int_range (rand, 0, 4) == 0) {
      test->sum = 0;
      ox_pool_run (test->pool, outer, test, n % 50, grain);
      if (test->sum != n % 50 * 4950)
        atomic_fetch_add (&stress->errors, 1);
    } else {
      check_visits (test, n, grain);
    }
    atomic_fetch_add (&stress->jobs, 1);
    if (g_rand_int_range (rand, 0, 50) == 0)
      g_usleep ((gulong) g_rand_int_range (rand, 0, 300));
  }
  atomic_fetch_add (&stress->errors, test->errors);
  return NULL;
}

/* Changes the limit, what is told about cores, and the affinity of a caller. */
static gpointer
change_at_random (gpointer data)
{
  Stress *stress = data;
  g_autoptr (GRand) rand = g_rand_new_with_seed (7);

  while (!atomic_load (&stress->stop)) {
    cpu_set_t mask;
    int cpu = g_rand_int_range (rand, 0, CPU_SETSIZE);

    ox_pool_set_limit (stress->pool, (unsigned) g_rand_int_range (rand, 0, MOST_THREADS + 1));
    g_atomic_int_set (&stress->cores, g_rand_int_range (rand, 0, MOST_THREADS + 1));
    ox_pool_set_core_source (stress->pool, g_rand_int_range (rand, 0, 3) > 0 ? told_cores : NULL, &stress->cores);
    while (!CPU_ISSET (cpu, &stress->mask))
      cpu = (cpu + 1) % CPU_SETSIZE;
    CPU_ZERO (&mask);
    CPU_SET (cpu, &mask);
    sched_setaffinity (stress->main_thread, sizeof mask, g_rand_boolean (rand) ? &mask : &stress->mask);
    g_usleep ((gulong) g_rand_int_range (rand, 0, 2000));
  }
  sched_setaffinity (stress->main_thread, sizeof stress->mask, &stress->mask);
  return NULL;
}

static gpointer
stop_later (gpointer data)
{
  g_usleep (STRESS_US);
  atomic_store (&((Stress *) data)->stop, true);
  return NULL;
}

static void
test_stress (gconstpointer data)
{
  Stress stress = { .main_thread = gettid (), .cores = MOST_THREADS };
  Caller callers[3] = { { &stress, 1 }, { &stress, 2 }, { &stress, 3 } };
  GThread *threads[4];

  g_assert_cmpint (sched_getaffinity (0, sizeof stress.mask, &stress.mask), ==, 0);
  stress.pool = pool_new (GPOINTER_TO_UINT (data));
  threads[0] = g_thread_new ("stop", stop_later, &stress);
  threads[1] = g_thread_new ("changes", change_at_random, &stress);
  threads[2] = g_thread_new ("caller", call_at_random, &callers[1]);
  threads[3] = g_thread_new ("caller", call_at_random, &callers[2]);
  call_at_random (&callers[0]);
  for (size_t i = 0; i < G_N_ELEMENTS (threads); i++)
    g_thread_join (threads[i]);
  g_test_message ("%lu jobs", stress.jobs);
  g_assert_cmpuint (stress.errors, ==, 0);
  ox_pool_free (stress.pool);
}

int
main (int argc, char **argv)
{
  static const guint stress[] = { 1, 2, 3, 5, MOST_THREADS };

  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/pool/every-item-once", test_every_item_once);
  g_test_add_func ("/pool/own-number", test_own_number);
  g_test_add_func ("/pool/nested", test_nested);
  g_test_add_func ("/pool/two-callers", test_two_callers);
  g_test_add_func ("/pool/nobody-waits", test_nobody_waits);
  g_test_add_func ("/pool/limit", test_limit);
  g_test_add_func ("/pool/cores-change", test_cores_change);
  g_test_add_func ("/pool/affinity-changes", test_affinity_changes);
  g_test_add_func ("/pool/stalled-worker", test_stalled_worker);
  g_test_add_func ("/pool/short-lives", test_short_lives);
  for (size_t i = 0; i < G_N_ELEMENTS (stress); i++) {
    g_autofree char *path = g_strdup_printf ("/pool/stress/%u", stress[i]);
    g_test_add_data_func (path, GUINT_TO_POINTER (stress[i]), test_stress);
  }
  return g_test_run ();
}
