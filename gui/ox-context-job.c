/* See ox-context-job.h.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-context-job.h"

#include "ox-chat-builder.h"
#include "ox-session-setup.h"
#include "ox-thread-checks.h"

struct _OxContextJob {
  OxJob parent_instance;

  OxEngine *engine;
  char *conversation_id;
  char *model_path;
  GVariant *settings;
  OxChat *chat;
  OxChat *plain_chat;

  /* Written by the engine thread, read once the job has ended. */
  gboolean known;
  OxContextUse use;
};

G_DEFINE_FINAL_TYPE (OxContextJob, ox_context_job, OX_TYPE_JOB)

static gboolean
ox_context_job_run (OxJob *job, GCancellable *cancellable, GError **error)
{
  OxContextJob *self = OX_CONTEXT_JOB (job);
  const OxEngineBackend *backend = ox_engine_get_backend (self->engine);
  gpointer model = ox_engine_find_model (self->engine, self->model_path);
  gpointer session = ox_engine_find_session (self->engine, self->conversation_id);
  const OxChat *chat = self->chat;

  OX_ASSERT_ENGINE_THREAD ();
  if (model == NULL)
    return TRUE;
  if (!ox_session_setup (self->engine, model, session, self->settings, self->chat) && self->plain_chat != NULL) {
    ox_session_setup (self->engine, model, session, self->settings, self->plain_chat);
    chat = self->plain_chat;
  }
  if (session != NULL) {
    self->known = backend->session_measure (session, chat, &self->use, cancellable, error);
  } else {
    self->use.context_length = backend->get_plan (model)->context_length;
    self->known = backend->count_tokens (model, chat, &self->use.prompt_tokens, cancellable, error);
  }
  return self->known;
}

static void
ox_context_job_finalize (GObject *object)
{
  OxContextJob *self = OX_CONTEXT_JOB (object);

  g_clear_object (&self->engine);
  g_free (self->conversation_id);
  g_free (self->model_path);
  g_variant_unref (self->settings);
  ox_chat_free (self->chat);
  g_clear_pointer (&self->plain_chat, ox_chat_free);
  G_OBJECT_CLASS (ox_context_job_parent_class)->finalize (object);
}

static void
ox_context_job_class_init (OxContextJobClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = ox_context_job_finalize;
  OX_JOB_CLASS (klass)->run = ox_context_job_run;
}

static void
ox_context_job_init (OxContextJob *self)
{
}

OxContextJob *
ox_context_job_new (OxEngine *engine, OxConversation *conversation, const char *model_path)
{
  OxContextJob *self = g_object_new (OX_TYPE_CONTEXT_JOB, NULL);
  const char *draft = ox_conversation_get_draft (conversation);

  self->engine = g_object_ref (engine);
  self->conversation_id = g_strdup (ox_conversation_get_id (conversation));
  self->model_path = g_strdup (model_path);
  self->settings = g_variant_ref (ox_conversation_get_settings (conversation));
  self->chat = ox_chat_builder_build (conversation, draft, TRUE);
  if (ox_chat_builder_has_tools (conversation))
    self->plain_chat = ox_chat_builder_build (conversation, draft, FALSE);
  return self;
}

gboolean
ox_context_job_get_use (OxContextJob *self, OxContextUse *use)
{
  if (!self->known)
    return FALSE;
  *use = self->use;
  return TRUE;
}
