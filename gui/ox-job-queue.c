/* See ox-job-queue.h.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-job-queue.h"

#include "ox-job-private.h"
#include "ox-log.h"
#include "ox-thread-checks.h"

#include <sys/resource.h>

/* So that the window and the compositor come first when cores are short. */
#define WORKER_NICE 5

/* What the worker tells the main thread. */
typedef struct {
  OxJob *job; /* owned: a job's last reference is dropped on the main thread */
  gboolean ended;
  GError *error;
} Event;

struct _OxJobQueue {
  GObject parent_instance;

  char *thread_name;
  GThread *thread;
  GPtrArray *active; /* OxJob, pushed and not done; main thread only */

  GMutex mutex;
  GCond cond; /* a job waits, or quit */
  GCond exited_cond;
  GQueue waiting[OX_JOB_BACKGROUND + 1];
  GQueue events;
  gboolean wake_pending;
  gboolean quit;
  gboolean exited;
};

G_DEFINE_FINAL_TYPE (OxJobQueue, ox_job_queue, G_TYPE_OBJECT)

enum { PROP_0, PROP_LENGTH, N_PROPS };

static GParamSpec *props[N_PROPS];

static void
event_free (Event *event)
{
  g_object_unref (event->job);
  g_clear_error (&event->error);
  g_free (event);
}

static void
ox_job_queue_get_property (GObject *object, guint prop_id, GValue *value, GParamSpec *pspec)
{
  switch (prop_id) {
  case PROP_LENGTH:
    g_value_set_uint (value, ox_job_queue_get_length (OX_JOB_QUEUE (object)));
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, prop_id, pspec);
  }
}

static void
ox_job_queue_finalize (GObject *object)
{
  OxJobQueue *self = OX_JOB_QUEUE (object);

  /* The thread holds a reference while it runs. */
  g_assert (self->thread == NULL);
  for (guint i = 0; i < G_N_ELEMENTS (self->waiting); i++)
    g_queue_clear_full (&self->waiting[i], g_object_unref);
  g_queue_clear_full (&self->events, (GDestroyNotify) event_free);
  g_ptr_array_unref (self->active);
  g_mutex_clear (&self->mutex);
  g_cond_clear (&self->cond);
  g_cond_clear (&self->exited_cond);
  g_free (self->thread_name);
  G_OBJECT_CLASS (ox_job_queue_parent_class)->finalize (object);
}

static void
ox_job_queue_class_init (OxJobQueueClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->get_property = ox_job_queue_get_property;
  object_class->finalize = ox_job_queue_finalize;

  props[PROP_LENGTH] = g_param_spec_uint ("length", NULL, NULL, 0, G_MAXUINT, 0,
                                          G_PARAM_READABLE | G_PARAM_STATIC_STRINGS | G_PARAM_EXPLICIT_NOTIFY);
  g_object_class_install_properties (object_class, N_PROPS, props);
}

static void
ox_job_queue_init (OxJobQueue *self)
{
  self->active = g_ptr_array_new_with_free_func (g_object_unref);
  g_mutex_init (&self->mutex);
  g_cond_init (&self->cond);
  g_cond_init (&self->exited_cond);
  for (guint i = 0; i < G_N_ELEMENTS (self->waiting); i++)
    g_queue_init (&self->waiting[i]);
  g_queue_init (&self->events);
}

OxJobQueue *
ox_job_queue_new (const char *thread_name)
{
  OxJobQueue *self = g_object_new (OX_TYPE_JOB_QUEUE, NULL);

  self->thread_name = g_strdup (thread_name);
  return self;
}

guint
ox_job_queue_get_length (OxJobQueue *self)
{
  return self->active->len;
}

static gboolean
take_events (gpointer user_data)
{
  OxJobQueue *self = user_data;
  Event *event;

  OX_ASSERT_MAIN_THREAD ();
  g_mutex_lock (&self->mutex);
  self->wake_pending = FALSE;
  while ((event = g_queue_pop_head (&self->events)) != NULL) {
    g_mutex_unlock (&self->mutex);
    if (event->ended)
      ox_job_finish (event->job, event->error);
    else
      ox_job_set_running (event->job);
    event_free (event);
    g_mutex_lock (&self->mutex);
  }
  g_mutex_unlock (&self->mutex);
  return G_SOURCE_REMOVE;
}

/* With the mutex held. Takes @job and @error. */
static void
post (OxJobQueue *self, OxJob *job, gboolean ended, GError *error)
{
  Event *event = g_new0 (Event, 1);

  event->job = job;
  event->ended = ended;
  event->error = error;
  g_queue_push_tail (&self->events, event);
  if (!self->wake_pending) {
    self->wake_pending = TRUE;
    g_idle_add_full (G_PRIORITY_DEFAULT, take_events, g_object_ref (self), g_object_unref);
  }
}

static OxJob *
pop (OxJobQueue *self)
{
  for (guint i = 0; i < G_N_ELEMENTS (self->waiting); i++)
    if (!g_queue_is_empty (&self->waiting[i]))
      return g_queue_pop_head (&self->waiting[i]);
  return NULL;
}

static gpointer
worker (gpointer user_data)
{
  OxJobQueue *self = user_data;

  /* On Linux this is about the calling thread, and about threads that it starts. */
  if (getpriority (PRIO_PROCESS, 0) < WORKER_NICE)
    setpriority (PRIO_PROCESS, 0, WORKER_NICE);

  g_mutex_lock (&self->mutex);
  while (!self->quit) {
    OxJob *job = pop (self);
    GError *error = NULL;

    if (job == NULL) {
      g_cond_wait (&self->cond, &self->mutex);
      continue;
    }
    post (self, g_object_ref (job), FALSE, NULL);
    g_mutex_unlock (&self->mutex);
    ox_job_run (job, &error);
    g_mutex_lock (&self->mutex);
    post (self, job, TRUE, error);
  }
  self->exited = TRUE;
  g_cond_signal (&self->exited_cond);
  g_mutex_unlock (&self->mutex);
  return NULL;
}

void
ox_job_queue_push (OxJobQueue *self, OxJob *job, OxJobPriority priority)
{
  OX_ASSERT_MAIN_THREAD ();
  if (ox_job_get_state (job) == OX_JOB_DONE)
    return;
  g_return_if_fail (ox_job_get_state (job) == OX_JOB_NEW);
  if (self->quit) {
    ox_job_cancel (job);
    return;
  }
  ox_debug ("jobs", "%s %p: queued", G_OBJECT_TYPE_NAME (job), job);
  g_ptr_array_add (self->active, g_object_ref (job));
  ox_job_set_queued (job, self);
  g_mutex_lock (&self->mutex);
  g_queue_push_tail (&self->waiting[priority], g_object_ref (job));
  g_cond_signal (&self->cond);
  g_mutex_unlock (&self->mutex);
  if (self->thread == NULL)
    self->thread = g_thread_new (self->thread_name, worker, g_object_ref (self));
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_LENGTH]);
}

void
ox_job_queue_remove (OxJobQueue *self, OxJob *job)
{
  gboolean waited = FALSE;

  g_mutex_lock (&self->mutex);
  for (guint i = 0; i < G_N_ELEMENTS (self->waiting); i++)
    waited |= g_queue_remove (&self->waiting[i], job);
  g_mutex_unlock (&self->mutex);
  if (waited)
    g_object_unref (job);
  if (g_ptr_array_remove (self->active, job))
    g_object_notify_by_pspec (G_OBJECT (self), props[PROP_LENGTH]);
}

gboolean
ox_job_queue_shutdown (OxJobQueue *self, gint64 timeout)
{
  gint64 deadline = g_get_monotonic_time () + timeout;
  gboolean exited;

  OX_ASSERT_MAIN_THREAD ();
  g_mutex_lock (&self->mutex);
  self->quit = TRUE;
  g_cond_signal (&self->cond);
  g_mutex_unlock (&self->mutex);
  /* Each leaves the array as it ends. */
  while (self->active->len > 0)
    ox_job_cancel (self->active->pdata[self->active->len - 1]);
  if (self->thread == NULL)
    return TRUE;

  g_mutex_lock (&self->mutex);
  while (!self->exited && g_cond_wait_until (&self->exited_cond, &self->mutex, deadline))
    ;
  exited = self->exited;
  g_mutex_unlock (&self->mutex);
  if (exited) {
    g_thread_join (g_steal_pointer (&self->thread));
    take_events (self);
    g_object_unref (self);
  } else {
    ox_info ("jobs", "The worker did not come back in time");
  }
  return exited;
}
