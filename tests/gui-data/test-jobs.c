/* Jobs: exactly one end each, in every order of events; at most one wake a frame; first come, first served.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-job-queue.h"
#include "ox-thread-checks.h"
#include "support.h"

/* A job that does as its fields say, and counts what happens to it. */
#define TEST_TYPE_JOB (test_job_get_type ())
G_DECLARE_FINAL_TYPE (TestJob, test_job, TEST, JOB, OxJob)

struct _TestJob {
  OxJob parent_instance;

  /* How it runs. */
  int number;
  guint duration; /* milliseconds */
  gboolean deaf;  /* does not look at its cancellable */
  gboolean fails;
  guint n_wakes;
  guint wake_interval; /* microseconds */

  /* What happened. */
  int started;  /* atomic */
  int returned; /* atomic */
  int produced; /* atomic */
  int drained;  /* how much of produced the main thread has taken */
  guint n_drains;
  gint64 last_drain;
  gint64 shortest_interval;
  guint n_done;
  guint n_finished;
  GError *error;
};

G_DEFINE_FINAL_TYPE (TestJob, test_job, OX_TYPE_JOB)

static int n_alive;
static GString *order; /* main thread: numbers of jobs as they end */

static gboolean
test_job_run (OxJob *job, GCancellable *cancellable, GError **error)
{
  TestJob *self = TEST_JOB (job);
  gint64 end = g_get_monotonic_time () + self->duration * 1000;

  OX_ASSERT_ENGINE_THREAD ();
  g_atomic_int_set (&self->started, 1);
  for (guint i = 0; i < self->n_wakes; i++) {
    if (self->wake_interval > 0)
      g_usleep (self->wake_interval);
    g_atomic_int_inc (&self->produced);
    ox_job_wake (job);
  }
  while (g_get_monotonic_time () < end && (self->deaf || !g_cancellable_is_cancelled (cancellable)))
    g_usleep (500);
  g_atomic_int_set (&self->returned, 1);
  if (self->fails) {
    g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_FAILED, "as told");
    return FALSE;
  }
  return self->deaf || !g_cancellable_set_error_if_cancelled (cancellable, error);
}

static void
test_job_drain (OxJob *job)
{
  TestJob *self = TEST_JOB (job);
  gint64 now = g_get_monotonic_time ();

  OX_ASSERT_MAIN_THREAD ();
  g_assert_cmpuint (self->n_done, ==, 0);
  self->drained = g_atomic_int_get (&self->produced);
  /* The one before the end comes when it comes. */
  if (self->last_drain != 0 && !g_atomic_int_get (&self->returned))
    self->shortest_interval = MIN (self->shortest_interval, now - self->last_drain);
  self->last_drain = now;
  self->n_drains++;
}

static void
test_job_done (OxJob *job, const GError *error)
{
  TestJob *self = TEST_JOB (job);

  OX_ASSERT_MAIN_THREAD ();
  g_assert_cmpuint (self->n_finished, ==, 0);
  g_assert_cmpint (ox_job_get_state (job), ==, OX_JOB_DONE);
  self->n_done++;
}

static void
test_job_finalize (GObject *object)
{
  TestJob *self = TEST_JOB (object);

  OX_ASSERT_MAIN_THREAD ();
  g_clear_error (&self->error);
  n_alive--;
  G_OBJECT_CLASS (test_job_parent_class)->finalize (object);
}

static void
test_job_class_init (TestJobClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = test_job_finalize;
  OX_JOB_CLASS (klass)->run = test_job_run;
  OX_JOB_CLASS (klass)->drain = test_job_drain;
  OX_JOB_CLASS (klass)->done = test_job_done;
}

static void
test_job_init (TestJob *self)
{
  self->shortest_interval = G_MAXINT64;
  n_alive++;
}

static void
finished_cb (TestJob *self, GError *error, gpointer unused)
{
  OX_ASSERT_MAIN_THREAD ();
  g_assert_cmpuint (self->n_done, ==, 1);
  self->n_finished++;
  self->error = error != NULL ? g_error_copy (error) : NULL;
  g_string_append_printf (order, "%d ", self->number);
}

static TestJob *
new_job (int number, guint duration)
{
  TestJob *self = g_object_new (TEST_TYPE_JOB, NULL);

  self->number = number;
  self->duration = duration;
  g_signal_connect (self, "finished", G_CALLBACK (finished_cb), NULL);
  return self;
}

static OxJobQueue *
new_queue (void)
{
  g_assert_cmpint (n_alive, ==, 0);
  order = g_string_new (NULL);
  return ox_job_queue_new ("test-jobs");
}

static void
free_queue (OxJobQueue *queue)
{
  g_assert_true (ox_job_queue_shutdown (queue, 5 * G_USEC_PER_SEC));
  settle ();
  g_assert_cmpuint (ox_job_queue_get_length (queue), ==, 0);
  g_assert_finalize_object (queue);
  g_string_free (order, TRUE);
  /* Drains that were on their way hold jobs for a frame. */
  run_until (n_alive == 0);
}

static void
test_success_and_failure (void)
{
  OxJobQueue *queue = new_queue ();
  g_autoptr (TestJob) good = new_job (1, 5);
  g_autoptr (TestJob) bad = new_job (2, 0);

  bad->fails = TRUE;
  ox_job_queue_push (queue, OX_JOB (good), OX_JOB_NORMAL);
  ox_job_queue_push (queue, OX_JOB (bad), OX_JOB_NORMAL);
  g_assert_cmpint (ox_job_get_state (OX_JOB (good)), ==, OX_JOB_QUEUED);
  g_assert_cmpuint (ox_job_queue_get_length (queue), ==, 2);
  run_until (bad->n_finished > 0);
  g_assert_no_error (good->error);
  g_assert_error (bad->error, G_IO_ERROR, G_IO_ERROR_FAILED);
  g_assert_cmpuint (good->n_finished + good->n_done, ==, 2);
  g_clear_object (&good);
  g_clear_object (&bad);
  free_queue (queue);
}

static void
test_order (void)
{
  static const struct {
    int number;
    OxJobPriority priority;
  } pushed[] = { { 6, OX_JOB_BACKGROUND }, { 4, OX_JOB_NORMAL },      { 2, OX_JOB_INTERACTIVE },
                 { 7, OX_JOB_BACKGROUND }, { 3, OX_JOB_INTERACTIVE }, { 5, OX_JOB_NORMAL } };
  OxJobQueue *queue = new_queue ();
  TestJob *first = new_job (1, 1000);

  /* Holds the worker until all are in the queue. */
  ox_job_queue_push (queue, OX_JOB (first), OX_JOB_BACKGROUND);
  run_until (g_atomic_int_get (&first->started));
  for (guint i = 0; i < G_N_ELEMENTS (pushed); i++) {
    g_autoptr (TestJob) job = new_job (pushed[i].number, 1);
    ox_job_queue_push (queue, OX_JOB (job), pushed[i].priority);
  }
  ox_job_cancel (OX_JOB (first));
  g_object_unref (first);
  run_until (ox_job_queue_get_length (queue) == 0);
  g_assert_cmpstr (order->str, ==, "1 2 3 4 5 6 7 ");
  free_queue (queue);
}

/* Cancelled before it is pushed, while it waits, while it runs, while its result is on its way, when it is done. */
static void
test_cancel_in_each_state (void)
{
  OxJobQueue *queue = new_queue ();
  TestJob *jobs[6];

  for (guint i = 0; i < G_N_ELEMENTS (jobs); i++)
    jobs[i] = new_job (i, 0);

  ox_job_cancel (OX_JOB (jobs[0]));
  g_assert_cmpuint (jobs[0]->n_finished, ==, 1);
  ox_job_queue_push (queue, OX_JOB (jobs[0]), OX_JOB_NORMAL);

  jobs[1]->duration = 10000;
  ox_job_queue_push (queue, OX_JOB (jobs[1]), OX_JOB_NORMAL);
  ox_job_queue_push (queue, OX_JOB (jobs[2]), OX_JOB_NORMAL);
  run_until (g_atomic_int_get (&jobs[1]->started));
  ox_job_cancel (OX_JOB (jobs[2]));
  g_assert_cmpuint (jobs[2]->n_finished, ==, 1);
  ox_job_cancel (OX_JOB (jobs[1]));
  g_assert_cmpuint (jobs[1]->n_finished, ==, 1);

  /* It does not listen and returns success all the same: its end was the cancel. */
  jobs[3]->deaf = TRUE;
  jobs[3]->duration = 50;
  ox_job_queue_push (queue, OX_JOB (jobs[3]), OX_JOB_NORMAL);
  run_until (g_atomic_int_get (&jobs[3]->started));
  ox_job_cancel (OX_JOB (jobs[3]));
  g_assert_cmpuint (jobs[3]->n_finished, ==, 1);
  run_until (g_atomic_int_get (&jobs[3]->returned));

  /* The worker has returned, but the main loop has not run since. */
  ox_job_queue_push (queue, OX_JOB (jobs[4]), OX_JOB_NORMAL);
  while (!g_atomic_int_get (&jobs[4]->returned))
    g_usleep (1000);
  g_usleep (20000);
  ox_job_cancel (OX_JOB (jobs[4]));
  g_assert_cmpuint (jobs[4]->n_finished, ==, 1);

  ox_job_queue_push (queue, OX_JOB (jobs[5]), OX_JOB_NORMAL);
  run_until (jobs[5]->n_finished > 0);
  ox_job_cancel (OX_JOB (jobs[5]));

  run_for (50);
  g_assert_false (g_atomic_int_get (&jobs[0]->started));
  g_assert_false (g_atomic_int_get (&jobs[2]->started));
  for (guint i = 0; i < G_N_ELEMENTS (jobs); i++) {
    g_assert_cmpuint (jobs[i]->n_finished, ==, 1);
    g_assert_cmpuint (jobs[i]->n_done, ==, 1);
    if (i < 5)
      g_assert_error (jobs[i]->error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
    else
      g_assert_no_error (jobs[i]->error);
    g_object_unref (jobs[i]);
  }
  free_queue (queue);
}

/* Cancels at moments spread over the whole life of a short job. */
static void
test_cancel_race (void)
{
  OxJobQueue *queue = new_queue ();
  guint n_cancelled = 0;

  for (guint i = 0; i < 400; i++) {
    g_autoptr (TestJob) job = new_job (i, 0);
    gint64 moment = g_get_monotonic_time () + g_test_rand_int_range (0, 600);

    job->n_wakes = 20;
    ox_job_queue_push (queue, OX_JOB (job), OX_JOB_NORMAL);
    while (g_get_monotonic_time () < moment)
      g_main_context_iteration (NULL, FALSE);
    ox_job_cancel (OX_JOB (job));
    g_assert_cmpuint (job->n_finished, ==, 1);
    settle ();
    g_assert_cmpuint (job->n_finished, ==, 1);
    n_cancelled += job->error != NULL;
  }
  g_test_message ("%u of 400 were cancelled before they ended", n_cancelled);
  free_queue (queue);
}

/* However often a job wakes the main loop, it is drained at most once a frame, and nothing is forgotten. */
static void
test_coalescing (void)
{
  OxJobQueue *queue = new_queue ();
  g_autoptr (TestJob) job = new_job (1, 0);
  gint64 start = g_get_monotonic_time ();
  double frames;

  job->n_wakes = 5000;
  job->wake_interval = 100;
  ox_job_queue_push (queue, OX_JOB (job), OX_JOB_NORMAL);
  run_until (job->n_finished > 0);
  frames = (double) (g_get_monotonic_time () - start) / 16000;
  g_test_message ("%u wakes in %.0f frames: %u drains, shortest interval %.1f ms", job->n_wakes, frames, job->n_drains,
                  (double) job->shortest_interval / 1000);
  g_assert_cmpint (job->drained, ==, 5000);
  g_assert_cmpuint (job->n_drains, <=, (guint) frames + 3);
  g_assert_cmpuint (job->n_drains, >=, 5);
  /* GLib's timers are in milliseconds. */
  g_assert_cmpint (job->shortest_interval, >=, 15000);
  g_clear_object (&job);
  free_queue (queue);
}

/* One wake, long after the last: it comes at once. */
static void
test_single_wake (void)
{
  OxJobQueue *queue = new_queue ();
  g_autoptr (TestJob) job = new_job (1, 2000);
  gint64 start;

  job->n_wakes = 1;
  ox_job_queue_push (queue, OX_JOB (job), OX_JOB_NORMAL);
  run_until (g_atomic_int_get (&job->produced) == 1);
  start = g_get_monotonic_time ();
  run_until (job->drained == 1);
  g_assert_cmpint (g_get_monotonic_time () - start, <, 100000);
  ox_job_cancel (OX_JOB (job));
  g_clear_object (&job);
  free_queue (queue);
}

/* What a job makes after it was cancelled goes nowhere. */
static void
test_late_results (void)
{
  OxJobQueue *queue = new_queue ();
  g_autoptr (TestJob) job = new_job (1, 0);
  int drained;

  job->n_wakes = 300;
  job->wake_interval = 1000;
  ox_job_queue_push (queue, OX_JOB (job), OX_JOB_NORMAL);
  run_until (job->drained > 10);
  ox_job_cancel (OX_JOB (job));
  drained = job->drained;
  run_until (g_atomic_int_get (&job->returned));
  run_for (50);
  g_assert_cmpint (job->drained, ==, drained);
  g_assert_cmpint (g_atomic_int_get (&job->produced), ==, 300);
  g_clear_object (&job);
  free_queue (queue);
}

static void
test_shutdown (void)
{
  OxJobQueue *queue = new_queue ();
  TestJob *jobs[5];

  for (guint i = 0; i < G_N_ELEMENTS (jobs); i++) {
    jobs[i] = new_job (i, 10000);
    ox_job_queue_push (queue, OX_JOB (jobs[i]), OX_JOB_NORMAL);
  }
  run_until (g_atomic_int_get (&jobs[0]->started));
  g_assert_true (ox_job_queue_shutdown (queue, 2 * G_USEC_PER_SEC));
  for (guint i = 0; i < G_N_ELEMENTS (jobs); i++) {
    g_assert_cmpuint (jobs[i]->n_finished, ==, 1);
    g_object_unref (jobs[i]);
  }
  /* Too late: it ends at once. */
  g_autoptr (TestJob) late = new_job (9, 0);
  ox_job_queue_push (queue, OX_JOB (late), OX_JOB_NORMAL);
  g_assert_cmpuint (late->n_finished, ==, 1);
  g_clear_object (&late);
  free_queue (queue);
}

/* A worker that does not come back does not hold up the end of the app. */
static void
test_shutdown_deaf (void)
{
  OxJobQueue *queue = new_queue ();
  g_autoptr (TestJob) job = new_job (1, 1500);
  gint64 start;

  job->deaf = TRUE;
  ox_job_queue_push (queue, OX_JOB (job), OX_JOB_NORMAL);
  run_until (g_atomic_int_get (&job->started));
  start = g_get_monotonic_time ();
  g_assert_false (ox_job_queue_shutdown (queue, 200000));
  g_assert_cmpint (g_get_monotonic_time () - start, <, 1000000);
  g_assert_cmpuint (job->n_finished, ==, 1);
  /* For the sake of the leak checker, wait for it after all. */
  g_clear_object (&job);
  free_queue (queue);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/jobs/success-and-failure", test_success_and_failure);
  g_test_add_func ("/jobs/order", test_order);
  g_test_add_func ("/jobs/cancel/in-each-state", test_cancel_in_each_state);
  g_test_add_func ("/jobs/cancel/race", test_cancel_race);
  g_test_add_func ("/jobs/cancel/late-results", test_late_results);
  g_test_add_func ("/jobs/coalescing", test_coalescing);
  g_test_add_func ("/jobs/single-wake", test_single_wake);
  g_test_add_func ("/jobs/shutdown", test_shutdown);
  g_test_add_func ("/jobs/shutdown-deaf", test_shutdown_deaf);
  return g_test_run ();
}
