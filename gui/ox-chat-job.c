/* See ox-chat-job.h.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-chat-job.h"

#include "ox-chat-builder.h"
#include "ox-log.h"
#include "ox-session-setup.h"
#include "ox-thread-checks.h"

#include <glib/gi18n.h>
#include <string.h>

/* Milliseconds between two savings of a live answer. */
#define SAVE_INTERVAL_MS 250

/* What the engine thread leaves for the main thread. */
typedef struct {
  OxMessageState state;
  double load_progress;
  guint prefill_done;
  guint prefill_total;
  OxStatistics statistics;
  OxEndReason end_reason;
  GString *text;
  GString *thinking;
  double thinking_seconds;
  gint64 thinking_since; /* of ox_clock_now(); 0: does not think just now */
  guint dropped_messages;
  GPtrArray *tools; /* OxToolEntry, all of this job */
  gboolean tools_changed;
} Progress;

struct _OxChatJob {
  OxJob parent_instance;

  /* Set before the job is pushed, then only read. */
  OxEngine *engine;
  char *conversation_id;
  char *model_path;
  GVariant *settings;
  OxChat *chat;
  OxChat *plain_chat; /* without calls, for a model that cannot make any; NULL when there are none */
  guint first_tool;   /* calls that the answer had before */

  /* Main thread only. */
  OxConversation *conversation;
  OxMessage *message;
  guint save_source;
  gboolean saving;
  gboolean unsaved_text;

  /* Engine thread only: bytes of the answer so far, and whether a call came since the last of them. */
  gsize text_length;
  gsize thinking_length;
  gboolean text_parted;
  gboolean thinking_parted;
  guint round;

  GMutex mutex;
  Progress progress;
};

G_DEFINE_FINAL_TYPE (OxChatJob, ox_chat_job, OX_TYPE_JOB)

/* ---- The engine thread ---- */

static void
progress_cb (double fraction, gpointer user_data)
{
  OxChatJob *self = user_data;

  g_mutex_lock (&self->mutex);
  self->progress.state = OX_MESSAGE_LOADING;
  self->progress.load_progress = fraction;
  g_mutex_unlock (&self->mutex);
  ox_job_wake (OX_JOB (self));
}

/* Appends what the model wrote. What came before and after a call are two parts. */
static void
append_piece (GString *to, const char *piece, gsize *length, gboolean *parted)
{
  if (*parted && *length > 0) {
    g_string_append (to, "\n\n");
    *length += 2;
  }
  *parted = FALSE;
  g_string_append (to, piece);
  *length += strlen (piece);
}

static void
stop_thinking (Progress *progress)
{
  if (progress->thinking_since != 0)
    progress->thinking_seconds += (double) MAX (ox_clock_now () - progress->thinking_since, 0) / G_USEC_PER_SEC;
  progress->thinking_since = 0;
}

static void
add_tool (OxChatJob *self, const OxEvent *event)
{
  OxToolEntry *entry = g_new0 (OxToolEntry, 1);

  entry->id = g_strdup (event->tool_id);
  entry->name = g_strdup (event->tool_name);
  entry->arguments = g_utf8_make_valid (event->tool_name != NULL ? event->tool_arguments : event->text, -1);
  entry->failed = event->tool_name == NULL;
  entry->round = self->round;
  entry->text_offset = self->text_length;
  entry->thinking_offset = self->thinking_length;
  g_ptr_array_add (self->progress.tools, entry);
  self->progress.tools_changed = TRUE;
  self->text_parted = self->thinking_parted = TRUE;
}

static void
set_tool_result (OxChatJob *self, const OxEvent *event)
{
  for (guint i = self->progress.tools->len; i-- > 0;) {
    OxToolEntry *entry = self->progress.tools->pdata[i];

    if (entry->result != NULL || g_strcmp0 (entry->id, event->tool_id) != 0)
      continue;
    entry->result = g_utf8_make_valid (event->text, -1);
    entry->failed = event->failed;
    self->progress.tools_changed = TRUE;
    break;
  }
}

static void
event_cb (const OxEvent *event, gpointer user_data)
{
  OxChatJob *self = user_data;
  Progress *progress = &self->progress;

  g_mutex_lock (&self->mutex);
  progress->statistics = event->statistics;
  if (event->type != OX_EVENT_THINKING)
    stop_thinking (progress);
  switch (event->type) {
  case OX_EVENT_CONTEXT:
    progress->dropped_messages = event->done;
    break;
  case OX_EVENT_PREFILL:
    /* Each round of calls is read before the next one. */
    if (self->text_parted)
      self->round = ((OxToolEntry *) progress->tools->pdata[progress->tools->len - 1])->round + 1;
    progress->state = OX_MESSAGE_READING;
    progress->prefill_done = event->done;
    progress->prefill_total = event->total;
    break;
  case OX_EVENT_THINKING:
    progress->state = OX_MESSAGE_WRITING;
    if (progress->thinking_since == 0)
      progress->thinking_since = ox_clock_now ();
    append_piece (progress->thinking, event->text, &self->thinking_length, &self->thinking_parted);
    break;
  case OX_EVENT_TEXT:
    progress->state = OX_MESSAGE_WRITING;
    append_piece (progress->text, event->text, &self->text_length, &self->text_parted);
    break;
  case OX_EVENT_TOOL_CALL:
  case OX_EVENT_TOOL_MALFORMED:
    progress->state = OX_MESSAGE_WRITING;
    add_tool (self, event);
    break;
  case OX_EVENT_TOOL_RESULT:
    set_tool_result (self, event);
    break;
  case OX_EVENT_END:
    progress->end_reason = event->reason;
    break;
  }
  g_mutex_unlock (&self->mutex);
  ox_job_wake (OX_JOB (self));
}

static void
lookup_float (GVariant *settings, const char *key, float *value)
{
  double number;

  if (g_variant_lookup (settings, key, "d", &number))
    *value = (float) number;
}

/* The model's own sampling, or, for one that has none, values that suit most; then what the user set. */
static void
choose_sampling (OxChatJob *self, gpointer model, OxSampling *sampling)
{
  *sampling = (OxSampling) { 0 };
  ox_engine_get_backend (self->engine)->get_default_sampling (model, sampling);
  if (sampling->top_p <= 0 || sampling->repetition_penalty <= 0)
    *sampling =
      (OxSampling) { .temperature = 0.7f, .top_k = 40, .top_p = 0.95f, .min_p = 0.05f, .repetition_penalty = 1 };
  lookup_float (self->settings, "temperature", &sampling->temperature);
  lookup_float (self->settings, "top-p", &sampling->top_p);
  lookup_float (self->settings, "min-p", &sampling->min_p);
  lookup_float (self->settings, "repetition-penalty", &sampling->repetition_penalty);
  lookup_float (self->settings, "frequency-penalty", &sampling->frequency_penalty);
  lookup_float (self->settings, "presence-penalty", &sampling->presence_penalty);
  g_variant_lookup (self->settings, "top-k", "u", &sampling->top_k);
  g_variant_lookup (self->settings, "seed", "t", &sampling->seed);
  g_variant_lookup (self->settings, "max-tokens", "u", &sampling->max_tokens);
}

static gboolean
ox_chat_job_run (OxJob *job, GCancellable *cancellable, GError **error)
{
  OxChatJob *self = OX_CHAT_JOB (job);
  const OxChat *chat = self->chat;
  OxSampling sampling;
  gpointer session;
  gpointer model;
  gboolean ok;

  OX_ASSERT_ENGINE_THREAD ();
  model = ox_engine_take_model (self->engine, self->model_path, progress_cb, self, cancellable, error);
  if (model == NULL)
    return FALSE;
  session = ox_engine_take_session (self->engine, self->conversation_id, error);
  if (session == NULL)
    return FALSE;
  choose_sampling (self, model, &sampling);
  if (!ox_session_setup (self->engine, model, session, self->settings, self->chat) && self->plain_chat != NULL) {
    ox_session_setup (self->engine, model, session, self->settings, self->plain_chat);
    chat = self->plain_chat;
  }
  ok = ox_engine_get_backend (self->engine)->generate (session, chat, &sampling, event_cb, self, cancellable, error);
  /* Nobody else writes the statistics. */
  ox_engine_set_session_tokens (self->engine, self->conversation_id,
                                self->progress.statistics.prompt_tokens + self->progress.statistics.answer_tokens);
  return ok;
}

/* ---- Saving the live answer ---- */

static void save_soon (OxChatJob *self);

static void
saved_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr (OxChatJob) self = user_data;

  /* The store has told of an error; the text is still here and goes with the next saving. */
  ox_conversation_save_message_finish (OX_CONVERSATION (source), result, NULL);
  self->saving = FALSE;
  if (self->unsaved_text)
    save_soon (self);
}

static gboolean
save_now (gpointer user_data)
{
  OxChatJob *self = user_data;

  self->save_source = 0;
  self->saving = TRUE;
  self->unsaved_text = FALSE;
  ox_conversation_save_message (self->conversation, self->message, saved_cb, g_object_ref (self));
  return G_SOURCE_REMOVE;
}

static void
save_soon (OxChatJob *self)
{
  self->unsaved_text = TRUE;
  /* One at a time: a slow disk makes fewer savings, not a queue of them. */
  if (self->saving || self->save_source != 0 || ox_job_get_state (OX_JOB (self)) == OX_JOB_DONE)
    return;
  self->save_source = g_timeout_add (SAVE_INTERVAL_MS, save_now, self);
}

/* ---- The main thread ---- */

static void
ox_chat_job_drain (OxJob *job)
{
  OxChatJob *self = OX_CHAT_JOB (job);
  g_autoptr (GString) text = g_string_new (NULL);
  g_autoptr (GString) thinking = g_string_new (NULL);
  g_autoptr (OxMessage) message = g_object_ref (self->message);
  g_autoptr (GPtrArray) tools = NULL;
  Progress progress;

  OX_ASSERT_MAIN_THREAD ();
  g_mutex_lock (&self->mutex);
  progress = self->progress;
  if (progress.text->len > 0) {
    self->progress.text = g_steal_pointer (&text);
    text = progress.text;
  }
  if (progress.thinking->len > 0) {
    self->progress.thinking = g_steal_pointer (&thinking);
    thinking = progress.thinking;
  }
  if (progress.tools_changed) {
    tools = ox_tool_entries_copy (progress.tools);
    self->progress.tools_changed = FALSE;
  }
  g_mutex_unlock (&self->mutex);

  if (progress.state != OX_MESSAGE_WAITING)
    ox_message_set_state (message, progress.state);
  ox_message_set_load_progress (message, progress.load_progress);
  ox_message_set_prefill (message, progress.prefill_done, progress.prefill_total);
  /* The first event brings the context's length. */
  if (progress.statistics.context_length > 0)
    ox_message_set_statistics (message, &progress.statistics);
  ox_message_set_dropped_messages (message, progress.dropped_messages);
  ox_message_append_thinking (message, thinking->str);
  ox_message_set_thinking_time (message, progress.thinking_seconds, progress.thinking_since);
  for (guint i = 0; tools != NULL && i < tools->len; i++)
    ox_message_put_tool (message, self->first_tool + i, tools->pdata[i]);
  ox_message_append (message, text->str);
  if (text->len > 0 || thinking->len > 0 || tools != NULL)
    save_soon (self);
}

static void
ox_chat_job_done (OxJob *job, const GError *error)
{
  OxChatJob *self = OX_CHAT_JOB (job);
  g_autoptr (OxMessage) message = g_object_ref (self->message);

  g_clear_handle_id (&self->save_source, g_source_remove);
  /* Stopped in mid-thought. */
  if (ox_message_is_thinking (message))
    ox_message_set_thinking_time (message, ox_message_get_thinking_seconds (message), 0);
  /* State and reason before listeners hear of either. */
  g_object_freeze_notify (G_OBJECT (message));
  if (error == NULL) {
    ox_message_set_end_reason (message, self->progress.end_reason);
    ox_message_set_state (message, OX_MESSAGE_COMPLETE);
  } else if (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED)) {
    ox_message_set_end_reason (message, OX_END_CANCELLED);
    ox_message_set_state (message, OX_MESSAGE_STOPPED);
  } else {
    g_autofree char *sentence = ox_engine_describe_error (error, ox_message_get_model_name (message));

    ox_info ("engine", "No answer: %s", error->message);
    ox_message_fail (message, error->domain == OX_ERROR ? error->code : -1, sentence, error->message);
  }
  g_object_thaw_notify (G_OBJECT (message));
  ox_conversation_set_job (self->conversation, NULL, NULL);
  ox_conversation_save_message (self->conversation, message, NULL, NULL);
}

static void
ox_chat_job_finalize (GObject *object)
{
  OxChatJob *self = OX_CHAT_JOB (object);

  g_clear_object (&self->engine);
  g_clear_object (&self->conversation);
  g_clear_object (&self->message);
  g_free (self->conversation_id);
  g_free (self->model_path);
  g_clear_pointer (&self->settings, g_variant_unref);
  g_clear_pointer (&self->chat, ox_chat_free);
  g_clear_pointer (&self->plain_chat, ox_chat_free);
  g_string_free (self->progress.text, TRUE);
  g_string_free (self->progress.thinking, TRUE);
  g_ptr_array_unref (self->progress.tools);
  g_mutex_clear (&self->mutex);
  G_OBJECT_CLASS (ox_chat_job_parent_class)->finalize (object);
}

static void
ox_chat_job_class_init (OxChatJobClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = ox_chat_job_finalize;
  OX_JOB_CLASS (klass)->run = ox_chat_job_run;
  OX_JOB_CLASS (klass)->drain = ox_chat_job_drain;
  OX_JOB_CLASS (klass)->done = ox_chat_job_done;
}

static void
ox_chat_job_init (OxChatJob *self)
{
  g_mutex_init (&self->mutex);
  self->progress.state = OX_MESSAGE_WAITING;
  self->progress.text = g_string_new (NULL);
  self->progress.thinking = g_string_new (NULL);
  self->progress.tools = ox_tool_entries_new ();
}

static void
stop_cb (gpointer job)
{
  ox_job_cancel (OX_JOB (job));
}

/* @answer may be new to the conversation or its last message. */
static OxChatJob *
job_new (OxEngine *engine, OxConversation *conversation, OxMessage *answer, const char *model_path)
{
  OxChatJob *self = g_object_new (OX_TYPE_CHAT_JOB, NULL);

  self->engine = g_object_ref (engine);
  self->conversation = g_object_ref (conversation);
  self->message = g_object_ref (answer);
  self->conversation_id = g_strdup (ox_conversation_get_id (conversation));
  self->model_path = g_strdup (model_path);
  self->settings = g_variant_ref (ox_conversation_get_settings (conversation));
  self->text_length = ox_message_get_text_length (answer);
  self->thinking_length = strlen (ox_message_get_thinking (answer));
  self->progress.thinking_seconds = ox_message_get_thinking_seconds (answer);
  self->first_tool = ox_message_get_n_tools (answer);
  if (self->first_tool > 0)
    self->round = ox_message_get_tool (answer, self->first_tool - 1)->round + 1;
  return self;
}

static void
push (OxChatJob *self)
{
  /* Stopped while it was being saved. */
  if (ox_job_get_state (OX_JOB (self)) == OX_JOB_DONE)
    return;
  self->chat = ox_chat_builder_build (self->conversation, NULL, TRUE);
  if (ox_chat_builder_has_tools (self->conversation))
    self->plain_chat = ox_chat_builder_build (self->conversation, NULL, FALSE);
  ox_engine_push (self->engine, OX_JOB (self), OX_JOB_INTERACTIVE);
}

/* Saved or not: if not, the store has told so, and an answer is worth more than none. */
static void
appended_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr (OxChatJob) self = user_data;

  ox_conversation_append_finish (OX_CONVERSATION (source), result, NULL);
  push (self);
}

static void
reopened_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr (OxChatJob) self = user_data;

  ox_conversation_save_message_finish (OX_CONVERSATION (source), result, NULL);
  push (self);
}

static OxChatJob *
start (OxEngine *engine, OxConversation *conversation, OxMessage *const *messages, guint n, const char *model_path)
{
  OxChatJob *self = job_new (engine, conversation, messages[n - 1], model_path);

  ox_conversation_set_job (conversation, self, stop_cb);
  ox_conversation_append (conversation, messages, n, appended_cb, g_object_ref (self));
  return self;
}

static gboolean
can_start (OxConversation *conversation)
{
  OX_ASSERT_MAIN_THREAD ();
  return ox_conversation_get_loaded (conversation) && !ox_conversation_get_answering (conversation);
}

OxChatJob *
ox_chat_job_send (
  OxEngine *engine, OxConversation *conversation, const char *text, const char *model_path, const char *model_name)
{
  g_autofree char *stripped = g_strstrip (g_strdup (text));
  g_autoptr (OxMessage) question = NULL;
  g_autoptr (OxMessage) answer = NULL;

  if (!can_start (conversation) || *stripped == '\0')
    return NULL;
  question = ox_message_new (OX_ROLE_USER, stripped);
  answer = ox_message_new_answer (model_name);
  ox_conversation_set_draft (conversation, "");
  return start (engine, conversation, (OxMessage *const[]) { question, answer }, 2, model_path);
}

OxChatJob *
ox_chat_job_retry (
  OxEngine *engine, OxConversation *conversation, OxMessage *answer, const char *model_path, const char *model_name)
{
  g_autoptr (OxMessage) new_answer = NULL;
  OxMessage *last;
  guint position = ox_conversation_get_length (conversation);

  if (!can_start (conversation) ||
      (answer != NULL && !ox_conversation_find_position (conversation, answer, &position)) || position == 0)
    return NULL;
  last = ox_conversation_get_message (conversation, position - 1);
  if (ox_message_get_role (last) != OX_ROLE_USER)
    return NULL;
  if (answer != NULL)
    ox_conversation_remove_from (conversation, answer);
  new_answer = ox_message_new_answer (model_name);
  return start (engine, conversation, (OxMessage *const[]) { new_answer }, 1, model_path);
}

OxChatJob *
ox_chat_job_continue (
  OxEngine *engine, OxConversation *conversation, OxMessage *answer, const char *model_path, const char *model_name)
{
  OxChatJob *self;
  guint length = ox_conversation_get_length (conversation);

  if (!can_start (conversation) || length == 0 || ox_conversation_get_message (conversation, length - 1) != answer ||
      ox_message_get_role (answer) != OX_ROLE_ASSISTANT)
    return NULL;
  self = job_new (engine, conversation, answer, model_path);
  ox_message_set_model_name (answer, model_name);
  ox_message_set_state (answer, OX_MESSAGE_WAITING);
  ox_conversation_set_job (conversation, self, stop_cb);
  ox_conversation_save_message (conversation, answer, reopened_cb, g_object_ref (self));
  return self;
}

OxConversation *
ox_chat_job_get_conversation (OxChatJob *self)
{
  return self->conversation;
}

OxMessage *
ox_chat_job_get_message (OxChatJob *self)
{
  return self->message;
}
