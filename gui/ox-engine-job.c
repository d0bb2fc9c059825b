/* See ox-engine-job.h.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-engine-job.h"

typedef enum { LOAD, UNLOAD, FORGET } Kind;

struct _OxEngineJob {
  OxJob parent_instance;

  OxEngine *engine;
  Kind kind;
  char *text; /* a path or an id */
};

G_DEFINE_FINAL_TYPE (OxEngineJob, ox_engine_job, OX_TYPE_JOB)

static void
ox_engine_job_finalize (GObject *object)
{
  OxEngineJob *self = OX_ENGINE_JOB (object);

  g_clear_object (&self->engine);
  g_free (self->text);
  G_OBJECT_CLASS (ox_engine_job_parent_class)->finalize (object);
}

static gboolean
ox_engine_job_run (OxJob *job, GCancellable *cancellable, GError **error)
{
  OxEngineJob *self = OX_ENGINE_JOB (job);

  switch (self->kind) {
  case LOAD:
    return ox_engine_take_model (self->engine, self->text, NULL, NULL, cancellable, error) != NULL;
  case UNLOAD:
    ox_engine_drop_model (self->engine);
    break;
  case FORGET:
    ox_engine_drop_session (self->engine, self->text);
    break;
  }
  return TRUE;
}

static void
ox_engine_job_class_init (OxEngineJobClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = ox_engine_job_finalize;
  OX_JOB_CLASS (klass)->run = ox_engine_job_run;
}

static void
ox_engine_job_init (OxEngineJob *self)
{
}

static OxJob *
job_new (OxEngine *engine, Kind kind, const char *text)
{
  OxEngineJob *self = g_object_new (OX_TYPE_ENGINE_JOB, NULL);

  self->engine = g_object_ref (engine);
  self->kind = kind;
  self->text = g_strdup (text);
  return OX_JOB (self);
}

OxJob *
ox_engine_job_new_load (OxEngine *engine, const char *path)
{
  return job_new (engine, LOAD, path);
}

OxJob *
ox_engine_job_new_unload (OxEngine *engine)
{
  return job_new (engine, UNLOAD, NULL);
}

OxJob *
ox_engine_job_new_forget (OxEngine *engine, const char *conversation_id)
{
  return job_new (engine, FORGET, conversation_id);
}
