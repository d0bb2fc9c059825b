/* What the thread pool costs and brings: starting and joining a job, parking, nothing while idle, the work of a second core.
 *
 * Times mean something only while nobody else wants the cores. So where wall time is compared, two plain threads are timed before
 * and after, and a machine that does not give them two whole cores is a reason to skip, not to pass.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <glib.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "ox-kernels.h"

/* Trying for a quiet moment, in each test. */
#define PATIENCE_US (6 * G_USEC_PER_SEC)

static guint64
clock_ns (clockid_t clock)
{
  struct timespec t;

  g_assert_cmpint (clock_gettime (clock, &t), ==, 0);
  return (guint64) t.tv_sec * 1000000000u + (guint64) t.tv_nsec;
}

/* Arithmetic of some 10 µs for @n = 1, in registers. */
static guint64
compute (guint64 x, size_t n)
{
  for (size_t i = 0; i < n * 5000; i++) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
  }
  return x;
}

/* ---- Whether there are two cores ---- */

#define PROBE_ITEMS 1000

static guint64 sink;

static void
probe_alone (guint64 *wall)
{
  guint64 begin = clock_ns (CLOCK_MONOTONIC);

  __atomic_store_n (&sink, compute (begin | 1, PROBE_ITEMS), __ATOMIC_RELAXED);
  *wall = clock_ns (CLOCK_MONOTONIC) - begin;
}

static gpointer
probe_thread (gpointer data)
{
  probe_alone (data);
  return NULL;
}

/* Two threads do in the same time what one does alone. */
static gboolean
has_two_cores (void)
{
  guint64 alone, together[2];
  GThread *other;

  probe_alone (&alone);
  other = g_thread_new ("probe", probe_thread, &together[1]);
  probe_alone (&together[0]);
  g_thread_join (other);
  return MAX (together[0], together[1]) < alone * 1.1 && alone < MIN (together[0], together[1]) * 1.1;
}

/* ---- Threads of the pool, and their processor time ---- */

typedef struct {
  atomic_uint arrived;
  atomic_bool failed;
  clockid_t clocks[2]; /* of the threads, by worker */
} Meeting;

/* Two items, each done when the other has begun: both threads have come. */
static void
meet (void *data, size_t begin, size_t end, unsigned worker)
{
  Meeting *meeting = data;
  guint64 deadline = clock_ns (CLOCK_MONOTONIC) + 20000000;

  if (end - begin != 1)
    atomic_store (&meeting->failed, true);
  if (worker < 2 && meeting->clocks[worker] == 0)
    pthread_getcpuclockid (pthread_self (), &meeting->clocks[worker]);
  atomic_fetch_add (&meeting->arrived, 1);
  for (guint i = 1; atomic_load (&meeting->arrived) < 2 && !atomic_load (&meeting->failed); i++)
    if (i % 1024 == 0 && clock_ns (CLOCK_MONOTONIC) > deadline)
      atomic_store (&meeting->failed, true);
}

static gboolean
run_meeting (OxPool *pool, Meeting *meeting)
{
  meeting->arrived = 0;
  meeting->failed = false;
  ox_pool_run (pool, meet, meeting, 2, 1);
  return !meeting->failed;
}

/* A pool of two threads of which both have worked. */
static OxPool *
pool_of_two (Meeting *meeting)
{
  OxPool *pool = ox_pool_new (2);
  gint64 deadline = g_get_monotonic_time () + 20 * G_USEC_PER_SEC;

  g_assert_nonnull (pool);
  if (ox_pool_get_limit (pool) < 2) {
    g_test_skip ("this process may use one core only");
    ox_pool_free (pool);
    return NULL;
  }
  while (!run_meeting (pool, meeting))
    g_assert_cmpint (g_get_monotonic_time (), <, deadline);
  return pool;
}

/* ---- Tests ---- */

/* From the call until both threads are at work, and until it returns. */
static void
test_start_and_join (void)
{
  Meeting meeting = { 0 };
  OxPool *pool = pool_of_two (&meeting);
  gint64 deadline = g_get_monotonic_time () + PATIENCE_US;
  guint64 best = G_MAXUINT64;
  const guint jobs = 50;

  if (pool == NULL)
    return;
  for (guint attempt = 0; attempt < 300 && g_get_monotonic_time () < deadline; attempt++) {
    gboolean all = TRUE;
    guint64 begin = clock_ns (CLOCK_MONOTONIC);

    for (guint i = 0; i < jobs && all; i++)
      all = run_meeting (pool, &meeting);
    if (all)
      best = MIN (best, (clock_ns (CLOCK_MONOTONIC) - begin) / jobs);
  }
  ox_pool_free (pool);
  if (best > 2000 && !has_two_cores ()) {
    g_test_skip ("two cores are not free");
    return;
  }
  g_test_message ("%" G_GUINT64_FORMAT " ns", best);
  g_assert_cmpuint (best, <=, 2000);
}

/* The time that a worker spins behind its last job is processor time of its thread. */
static void
test_parks (void)
{
  Meeting meeting = { 0 };
  OxPool *pool = pool_of_two (&meeting);
  guint64 worst = 0;

  if (pool == NULL)
    return;
  for (guint i = 0; i < 20; i++) {
    guint64 after;

    while (!run_meeting (pool, &meeting))
      ;
    after = clock_ns (meeting.clocks[1]);
    g_usleep (5000);
    worst = MAX (worst, clock_ns (meeting.clocks[1]) - after);
  }
  g_test_message ("%" G_GUINT64_FORMAT " ns until parked, at most", worst);
  g_assert_cmpuint (worst, <, 100000);
  ox_pool_free (pool);
}

static void
test_idle_costs_nothing (void)
{
  Meeting meeting = { 0 };
  OxPool *pool = pool_of_two (&meeting);
  guint64 begin, used;

  if (pool == NULL)
    return;
  begin = clock_ns (CLOCK_PROCESS_CPUTIME_ID);
  g_usleep (G_USEC_PER_SEC);
  used = clock_ns (CLOCK_PROCESS_CPUTIME_ID) - begin;
  g_test_message ("%" G_GUINT64_FORMAT " ns of processor time in a quiet second", used);
  g_assert_cmpuint (used, <, 1000000);
  /* And it wakes again. */
  while (!run_meeting (pool, &meeting))
    ;
  ox_pool_free (pool);
}

typedef struct {
  guint64 results[16];
} Computing;

static void
compute_items (void *data, size_t begin, size_t end, unsigned worker)
{
  Computing *computing = data;

  for (size_t i = begin; i < end; i++)
    computing->results[i] = compute (i + 1, 1);
}

/* A worker beyond the limit sleeps while the others work. */
static void
test_limit_saves_power (void)
{
  Meeting meeting = { 0 };
  OxPool *pool = pool_of_two (&meeting);
  Computing computing;
  guint64 before;

  if (pool == NULL)
    return;
  ox_pool_set_limit (pool, 1);
  g_usleep (5000);
  before = clock_ns (meeting.clocks[1]);
  for (guint i = 0; i < 200; i++)
    ox_pool_run (pool, compute_items, &computing, G_N_ELEMENTS (computing.results), 1);
  g_assert_cmpuint (clock_ns (meeting.clocks[1]) - before, <, 100000);
  ox_pool_set_limit (pool, 0);
  while (!run_meeting (pool, &meeting))
    ;
  ox_pool_free (pool);
}

/* @jobs jobs of some 160 µs of work each. */
static guint64
time_jobs (OxPool *pool, guint jobs)
{
  Computing computing;
  guint64 begin = clock_ns (CLOCK_MONOTONIC);

  for (guint i = 0; i < jobs; i++)
    ox_pool_run (pool, compute_items, &computing, G_N_ELEMENTS (computing.results), 1);
  return clock_ns (CLOCK_MONOTONIC) - begin;
}

/* Over a long sequence of jobs, the second thread is worth having: it is not given up by accident. */
static void
test_second_core (void)
{
  Meeting meeting = { 0 };
  OxPool *pool = pool_of_two (&meeting);
  gint64 deadline = g_get_monotonic_time () + PATIENCE_US;
  guint quiet = 0;
  double best = 0;

  if (pool == NULL)
    return;
  while (best < 1.6 && g_get_monotonic_time () < deadline) {
    guint64 with_one = 0, with_two = 0;

    if (!has_two_cores ())
      continue;
    for (guint round = 0; round < 4; round++) {
      ox_pool_set_limit (pool, 1);
      with_one += time_jobs (pool, 150);
      ox_pool_set_limit (pool, 2);
      with_two += time_jobs (pool, 300);
    }
    g_test_message ("%.2f times the speed of one thread", 2.0 * with_one / with_two);
    if (2.0 * with_one / with_two < 1.6 && !has_two_cores ())
      continue;
    quiet++;
    best = MAX (best, 2.0 * with_one / with_two);
  }
  ox_pool_free (pool);
  if (quiet == 0) {
    g_test_skip ("two cores are not free");
    return;
  }
  g_assert_cmpfloat (best, >=, 1.6);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/pool-time/start-and-join", test_start_and_join);
  g_test_add_func ("/pool-time/parks", test_parks);
  g_test_add_func ("/pool-time/idle-costs-nothing", test_idle_costs_nothing);
  g_test_add_func ("/pool-time/limit-saves-power", test_limit_saves_power);
  g_test_add_func ("/pool-time/second-core", test_second_core);
  return g_test_run ();
}
