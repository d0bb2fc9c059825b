/* See ox-job.h.
 *
 * The main thread alone decides that a job has ended: by ox_job_cancel(), or when the queue hands over the result of run. What comes
 * second finds the job done and is dropped. So a job is its own generation: nothing of an old one can reach a new one.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-job.h"

#include "ox-job-private.h"
#include "ox-log.h"
#include "ox-thread-checks.h"

/* Microseconds between two drains: a frame at 60 Hz. */
#define DRAIN_INTERVAL 16000

typedef struct {
  OxJobState state;
  GCancellable *cancellable;
  OxJobQueue *queue; /* from pushing until done; not owned: the queue cancels its jobs before it goes */

  int wake_pending; /* atomic */
  GMutex mutex;
  gint64 last_drain; /* of the monotonic clock; under mutex */
} OxJobPrivate;

G_DEFINE_ENUM_TYPE (OxJobState,
                    ox_job_state,
                    G_DEFINE_ENUM_VALUE (OX_JOB_NEW, "new"),
                    G_DEFINE_ENUM_VALUE (OX_JOB_QUEUED, "queued"),
                    G_DEFINE_ENUM_VALUE (OX_JOB_RUNNING, "running"),
                    G_DEFINE_ENUM_VALUE (OX_JOB_DONE, "done"))

G_DEFINE_ABSTRACT_TYPE_WITH_PRIVATE (OxJob, ox_job, G_TYPE_OBJECT)

enum { PROP_0, PROP_STATE, N_PROPS };
enum { FINISHED, N_SIGNALS };

static GParamSpec *props[N_PROPS];
static guint signals[N_SIGNALS];

static void
ox_job_get_property (GObject *object, guint prop_id, GValue *value, GParamSpec *pspec)
{
  switch (prop_id) {
  case PROP_STATE:
    g_value_set_enum (value, ox_job_get_state (OX_JOB (object)));
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, prop_id, pspec);
  }
}

static void
ox_job_finalize (GObject *object)
{
  OxJobPrivate *priv = ox_job_get_instance_private (OX_JOB (object));

  OX_ASSERT_MAIN_THREAD ();
  g_clear_object (&priv->cancellable);
  g_mutex_clear (&priv->mutex);
  G_OBJECT_CLASS (ox_job_parent_class)->finalize (object);
}

static void
ox_job_class_init (OxJobClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->get_property = ox_job_get_property;
  object_class->finalize = ox_job_finalize;

  props[PROP_STATE] = g_param_spec_enum ("state", NULL, NULL, OX_TYPE_JOB_STATE, OX_JOB_NEW,
                                         G_PARAM_READABLE | G_PARAM_STATIC_STRINGS | G_PARAM_EXPLICIT_NOTIFY);
  g_object_class_install_properties (object_class, N_PROPS, props);

  signals[FINISHED] = g_signal_new ("finished", OX_TYPE_JOB, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1,
                                    G_TYPE_ERROR | G_SIGNAL_TYPE_STATIC_SCOPE);
}

static void
ox_job_init (OxJob *self)
{
  OxJobPrivate *priv = ox_job_get_instance_private (self);

  priv->cancellable = g_cancellable_new ();
  g_mutex_init (&priv->mutex);
}

OxJobState
ox_job_get_state (OxJob *self)
{
  OxJobPrivate *priv = ox_job_get_instance_private (self);

  return priv->state;
}

GCancellable *
ox_job_get_cancellable (OxJob *self)
{
  OxJobPrivate *priv = ox_job_get_instance_private (self);

  return priv->cancellable;
}

static void
set_state (OxJob *self, OxJobState state)
{
  OxJobPrivate *priv = ox_job_get_instance_private (self);

  priv->state = state;
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_STATE]);
}

void
ox_job_set_queued (OxJob *self, OxJobQueue *queue)
{
  OxJobPrivate *priv = ox_job_get_instance_private (self);

  priv->queue = queue;
  set_state (self, OX_JOB_QUEUED);
}

void
ox_job_set_running (OxJob *self)
{
  if (ox_job_get_state (self) == OX_JOB_QUEUED)
    set_state (self, OX_JOB_RUNNING);
}

static void
drain (OxJob *self)
{
  if (OX_JOB_GET_CLASS (self)->drain != NULL)
    OX_JOB_GET_CLASS (self)->drain (self);
}

void
ox_job_finish (OxJob *self, const GError *error)
{
  OxJobPrivate *priv = ox_job_get_instance_private (self);
  g_autoptr (OxJob) keep = g_object_ref (self);

  OX_ASSERT_MAIN_THREAD ();
  if (priv->state == OX_JOB_DONE)
    return;
  ox_debug ("jobs", "%s %p: %s", G_OBJECT_TYPE_NAME (self), self, error != NULL ? error->message : "done");
  drain (self);
  set_state (self, OX_JOB_DONE);
  if (priv->queue != NULL)
    ox_job_queue_remove (g_steal_pointer (&priv->queue), self);
  if (OX_JOB_GET_CLASS (self)->done != NULL)
    OX_JOB_GET_CLASS (self)->done (self, error);
  g_signal_emit (self, signals[FINISHED], 0, error);
}

void
ox_job_cancel (OxJob *self)
{
  OxJobPrivate *priv = ox_job_get_instance_private (self);
  g_autoptr (GError) error = NULL;

  OX_ASSERT_MAIN_THREAD ();
  if (priv->state == OX_JOB_DONE)
    return;
  g_cancellable_cancel (priv->cancellable);
  g_cancellable_set_error_if_cancelled (priv->cancellable, &error);
  ox_job_finish (self, error);
}

static gboolean
drain_cb (gpointer user_data)
{
  OxJob *self = user_data;
  OxJobPrivate *priv = ox_job_get_instance_private (self);

  g_mutex_lock (&priv->mutex);
  priv->last_drain = g_get_monotonic_time ();
  g_mutex_unlock (&priv->mutex);
  /* Cleared first: what comes while draining wakes again. */
  g_atomic_int_set (&priv->wake_pending, 0);
  if (priv->state != OX_JOB_DONE)
    drain (self);
  return G_SOURCE_REMOVE;
}

void
ox_job_wake (OxJob *self)
{
  OxJobPrivate *priv = ox_job_get_instance_private (self);
  g_autoptr (GSource) source = NULL;
  gint64 wait;

  if (!g_atomic_int_compare_and_exchange (&priv->wake_pending, 0, 1))
    return;
  g_mutex_lock (&priv->mutex);
  wait = priv->last_drain + DRAIN_INTERVAL - g_get_monotonic_time ();
  g_mutex_unlock (&priv->mutex);
  source = g_timeout_source_new ((guint) ((CLAMP (wait, 0, DRAIN_INTERVAL) + 999) / 1000));
  g_source_set_callback (source, drain_cb, g_object_ref (self), g_object_unref);
  g_source_set_static_name (source, "ox-job-drain");
  g_source_attach (source, NULL);
}

gboolean
ox_job_run (OxJob *self, GError **error)
{
  OxJobPrivate *priv = ox_job_get_instance_private (self);

  OX_ASSERT_ENGINE_THREAD ();
  if (g_cancellable_set_error_if_cancelled (priv->cancellable, error))
    return FALSE;
  return OX_JOB_GET_CLASS (self)->run (self, priv->cancellable, error);
}
