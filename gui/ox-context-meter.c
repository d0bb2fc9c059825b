/* See ox-context-meter.h.
 *
 * Counting waits until typing pauses, runs behind all other jobs, and is given up as soon as something newer is to be counted or an
 * answer begins.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-context-meter.h"

#include "ox-context-job.h"
#include "ox-thread-checks.h"

/* Milliseconds after the last key. */
#define DELAY_MS 300
/* While an answer is being written, what it takes is told so often. */
#define TICK_MS 500

struct _OxContextMeter {
  GObject parent_instance;

  OxEngine *engine;
  OxConversation *conversation;
  char *model_path;
  guint source;
  guint tick_source;
  OxContextJob *job;
  gboolean known;
  OxContextUse use;
};

G_DEFINE_FINAL_TYPE (OxContextMeter, ox_context_meter, G_TYPE_OBJECT)

enum { CHANGED, N_SIGNALS };

static guint signals[N_SIGNALS];

static void
give_up (OxContextMeter *self)
{
  g_clear_handle_id (&self->source, g_source_remove);
  if (self->job != NULL) {
    g_autoptr (OxContextJob) job = g_steal_pointer (&self->job);

    g_signal_handlers_disconnect_by_data (job, self);
    ox_job_cancel (OX_JOB (job));
  }
}

static void
finished_cb (OxContextMeter *self, const GError *error)
{
  g_autoptr (OxContextJob) job = g_steal_pointer (&self->job);

  g_signal_handlers_disconnect_by_data (job, self);
  /* One that cannot be counted cannot be sent either, which is told then. */
  self->known = error == NULL && ox_context_job_get_use (job, &self->use);
  g_signal_emit (self, signals[CHANGED], 0);
}

static gboolean
measure_cb (gpointer user_data)
{
  OxContextMeter *self = user_data;

  self->source = 0;
  self->job = ox_context_job_new (self->engine, self->conversation, self->model_path);
  g_signal_connect_swapped (self->job, "finished", G_CALLBACK (finished_cb), self);
  ox_engine_push (self->engine, OX_JOB (self->job), OX_JOB_BACKGROUND);
  return G_SOURCE_REMOVE;
}

static void
measure_soon (OxContextMeter *self)
{
  give_up (self);
  if (self->conversation == NULL || self->model_path == NULL || !ox_conversation_get_loaded (self->conversation) ||
      ox_conversation_get_answering (self->conversation))
    return;
  self->source = g_timeout_add (DELAY_MS, measure_cb, self);
}

static gboolean
tick_cb (gpointer user_data)
{
  g_signal_emit (user_data, signals[CHANGED], 0);
  return G_SOURCE_CONTINUE;
}

/* What the answer itself tells of is right until the next count. */
static void
follow_answer (OxContextMeter *self)
{
  g_clear_handle_id (&self->tick_source, g_source_remove);
  if (self->conversation == NULL || !ox_conversation_get_answering (self->conversation))
    return;
  self->tick_source = g_timeout_add (TICK_MS, tick_cb, self);
}

static void
answering_cb (OxContextMeter *self)
{
  self->known = FALSE;
  follow_answer (self);
  measure_soon (self);
}

static void
engine_cb (OxContextMeter *self)
{
  if (ox_engine_get_state (self->engine) == OX_ENGINE_READY)
    measure_soon (self);
}

static void
ox_context_meter_dispose (GObject *object)
{
  OxContextMeter *self = OX_CONTEXT_METER (object);

  give_up (self);
  g_clear_handle_id (&self->tick_source, g_source_remove);
  if (self->conversation != NULL)
    g_signal_handlers_disconnect_by_data (self->conversation, self);
  g_clear_object (&self->conversation);
  g_clear_object (&self->engine);
  g_clear_pointer (&self->model_path, g_free);
  G_OBJECT_CLASS (ox_context_meter_parent_class)->dispose (object);
}

static void
ox_context_meter_class_init (OxContextMeterClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = ox_context_meter_dispose;
  signals[CHANGED] =
    g_signal_new ("changed", OX_TYPE_CONTEXT_METER, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
}

static void
ox_context_meter_init (OxContextMeter *self)
{
}

OxContextMeter *
ox_context_meter_new (OxEngine *engine)
{
  OxContextMeter *self = g_object_new (OX_TYPE_CONTEXT_METER, NULL);

  OX_ASSERT_MAIN_THREAD ();
  self->engine = g_object_ref (engine);
  g_signal_connect_object (engine, "notify::state", G_CALLBACK (engine_cb), self, G_CONNECT_SWAPPED);
  g_signal_connect_object (engine, "notify::model-path", G_CALLBACK (engine_cb), self, G_CONNECT_SWAPPED);
  return self;
}

void
ox_context_meter_set_conversation (OxContextMeter *self, OxConversation *conversation)
{
  OX_ASSERT_MAIN_THREAD ();
  if (self->conversation == conversation)
    return;
  give_up (self);
  if (self->conversation != NULL)
    g_signal_handlers_disconnect_by_data (self->conversation, self);
  g_set_object (&self->conversation, conversation);
  self->known = FALSE;
  follow_answer (self);
  if (conversation != NULL) {
    g_signal_connect_swapped (conversation, "notify::draft", G_CALLBACK (measure_soon), self);
    g_signal_connect_swapped (conversation, "notify::answering", G_CALLBACK (answering_cb), self);
    g_signal_connect_swapped (conversation, "notify::loaded", G_CALLBACK (measure_soon), self);
    g_signal_connect_swapped (conversation, "notify::settings", G_CALLBACK (measure_soon), self);
    g_signal_connect_swapped (conversation, "items-changed", G_CALLBACK (measure_soon), self);
  }
  measure_soon (self);
  g_signal_emit (self, signals[CHANGED], 0);
}

void
ox_context_meter_set_model_path (OxContextMeter *self, const char *model_path)
{
  OX_ASSERT_MAIN_THREAD ();
  if (!g_set_str (&self->model_path, model_path))
    return;
  self->known = FALSE;
  measure_soon (self);
  g_signal_emit (self, signals[CHANGED], 0);
}

gboolean
ox_context_meter_get_use (OxContextMeter *self, OxContextUse *use)
{
  *use = (OxContextUse) { 0 };
  if (self->known)
    *use = self->use;
  return self->known || (self->conversation != NULL &&
                         ox_conversation_get_usage (self->conversation, &use->prompt_tokens, &use->context_length));
}
