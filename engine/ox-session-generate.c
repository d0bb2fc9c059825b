/* Answering a conversation: the prompt within the context, rounds of answers and tool calls, and the one last event.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-session-answer.h"
#include "text/ox-chat-private.h"

#include <string.h>

void
ox_session_set_toolbox (OxSession *session, OxToolbox *toolbox, guint max_rounds)
{
  if (toolbox != NULL)
    ox_toolbox_ref (toolbox);
  if (session->toolbox != NULL)
    ox_toolbox_unref (session->toolbox);
  session->toolbox = toolbox;
  session->max_rounds = max_rounds;
}

/* ---- Tools ---- */

/* "call_3" when @chat has two already. */
static char *
new_call_id (const OxChat *chat, guint index)
{
  guint n = index + 1;

  for (guint i = 0; i < ox_chat_get_length (chat); i++)
    if (ox_chat_get_message (chat, i)->tool_calls != NULL)
      n += ox_chat_get_message (chat, i)->tool_calls->len;
  return g_strdup_printf ("call_%u", n);
}

static void
emit_call (OxAnswer *answer, const OxAnswerCall *call, const char *id)
{
  answer->event.tool_id = id;
  answer->event.tool_name = call->name;
  answer->event.tool_arguments = call->arguments;
  ox_answer_emit (answer, OX_EVENT_TOOL_CALL);
  answer->event.tool_id = answer->event.tool_name = answer->event.tool_arguments = NULL;
}

/* Calls that the caller is to see to. */
static void
emit_calls (OxAnswer *answer, const OxChat *chat)
{
  for (guint i = 0; i < answer->calls->len; i++) {
    g_autofree char *id = new_call_id (chat, i);

    emit_call (answer, &g_array_index (answer->calls, OxAnswerCall, i), id);
  }
}

/* @chat with what the model said in this round, which goes on with the last message when that is the assistant's already. */
static OxChat *
add_answer (const OxChat *chat, const OxAnswer *answer, char **ids, GError **error)
{
  g_autoptr (OxChat) longer = ox_chat_copy_settings (chat);
  g_autoptr (GString) text = g_string_new (NULL);
  g_autoptr (GString) reasoning = g_string_new (NULL);
  guint n = ox_chat_get_length (chat);

  if (n > 0 && ox_chat_get_role (chat, n - 1) == OX_ROLE_ASSISTANT) {
    const OxMessage *open = ox_chat_get_message (chat, --n);

    g_string_append (text, open->text);
    if (open->reasoning != NULL)
      g_string_append (reasoning, open->reasoning);
  }
  g_string_append (text, answer->text->str);
  g_string_append (reasoning, answer->reasoning->str);
  for (guint i = 0; i < n; i++)
    ox_chat_append_message (longer, ox_chat_get_message (chat, i));
  ox_chat_append (longer, OX_ROLE_ASSISTANT, text->str);
  if (reasoning->len > 0)
    ox_chat_set_reasoning (longer, reasoning->str);
  for (guint i = 0; i < answer->calls->len; i++) {
    const OxAnswerCall *call = &g_array_index (answer->calls, OxAnswerCall, i);

    if (!ox_chat_add_tool_call (longer, ids[i], call->name, call->arguments, error))
      return NULL;
  }
  return g_steal_pointer (&longer);
}

/* Runs the calls of this round. Returns @chat with them and with what they gave. */
static OxChat *
call_tools (OxAnswer *answer, const OxChat *chat, GError **error)
{
  guint n = answer->calls->len;
  /* A tool may take the toolbox from the session; what was called in this round still runs. */
  g_autoptr (OxToolbox) toolbox = ox_toolbox_ref (answer->session->toolbox);
  g_auto (GStrv) ids = g_new0 (char *, n + 1);
  g_autoptr (OxChat) longer = NULL;

  for (guint i = 0; i < n; i++)
    ids[i] = new_call_id (chat, i);
  longer = add_answer (chat, answer, ids, error);
  for (guint i = 0; i < n && longer != NULL; i++) {
    const OxAnswerCall *call = &g_array_index (answer->calls, OxAnswerCall, i);
    g_autofree char *result = NULL;
    gboolean failed = FALSE;

    emit_call (answer, call, ids[i]);
    result = ox_toolbox_call (toolbox, call->name, call->arguments, &failed, answer->cancellable, error);
    if (result == NULL)
      return NULL;
    ox_chat_append_tool_result (longer, ids[i], call->name, result);
    answer->event.tool_id = ids[i];
    answer->event.tool_name = call->name;
    answer->event.text = result;
    answer->event.failed = failed;
    ox_answer_emit (answer, OX_EVENT_TOOL_RESULT);
    answer->event.tool_id = answer->event.tool_name = answer->event.text = NULL;
    answer->event.failed = FALSE;
  }
  return g_steal_pointer (&longer);
}

/* ---- Rounds ---- */

/* One round on @chat. */
static gboolean
answer_chat (OxAnswer *answer, const OxChat *chat, guint round, GError **error)
{
  OxSession *session = answer->session;
  g_auto (OxSessionPrompt) prompt = { 0 };
  gboolean ok;

  ox_profile_start (&session->ops->profile, OX_PROFILE_TOKENIZER);
  ok = ox_session_make_prompt (session, chat, &prompt, answer->cancellable, error);
  ox_profile_stop (&session->ops->profile);
  if (!ok)
    return FALSE;
  if (round > 0 && prompt.ids->len >= answer->event.statistics.context_length) {
    /* Nothing that the caller has heard so far is wrong: the results of the tools are too long. */
    answer->event.reason = OX_END_CONTEXT;
    return TRUE;
  }
  if (prompt.n_dropped > 0 && prompt.ids->len >= answer->event.statistics.context_length) {
    g_set_error (
      error, OX_ERROR, OX_ERROR_CONTEXT_FULL,
      "Even without its first %u messages the conversation takes %u tokens of a context of %u, which leaves no "
      "room for an answer",
      prompt.n_dropped, prompt.ids->len, answer->event.statistics.context_length);
    return FALSE;
  }
  if (prompt.n_dropped > (round > 0 ? session->n_dropped : 0)) {
    answer->event.done = prompt.n_dropped;
    answer->event.total = ox_chat_get_length (chat);
    ox_answer_emit (answer, OX_EVENT_CONTEXT);
  }
  session->n_dropped = prompt.n_dropped;
  return ox_answer_run_round (answer, prompt.ids, session->model->chat_format, prompt.in_thinking, chat, error);
}

static gboolean
answer_in_rounds (OxAnswer *answer, const OxChat *question, GError **error)
{
  OxSession *session = answer->session;
  g_autoptr (OxChat) chat = ox_session_add_tools (session, question);

  /* A thought would be no JSON. */
  if (answer->grammar != NULL && chat->thinking == OX_THINKING_DEFAULT)
    ox_chat_set_thinking (chat, OX_THINKING_OFF);
  for (guint round = 0;; round++) {
    OxChat *longer;

    g_array_set_size (answer->calls, 0);
    if (!answer_chat (answer, chat, round, error))
      return FALSE;
    if (answer->calls->len == 0 || answer->stopped)
      return TRUE;
    if (session->toolbox == NULL) {
      emit_calls (answer, chat);
      return TRUE;
    }
    if (answer->event.reason != OX_END_STOP)
      return TRUE;
    if (round >= session->max_rounds) {
      answer->event.reason = OX_END_TOOL_ROUNDS;
      return TRUE;
    }
    longer = call_tools (answer, chat, error);
    if (longer == NULL)
      return FALSE;
    ox_chat_free (chat);
    chat = longer;
  }
}

/* Plain text, of which no part is anything else. */
static gboolean
continue_text (OxAnswer *answer, const char *text, GError **error)
{
  OxProfileClock *clock = &answer->session->ops->profile;
  g_autoptr (GArray) ids = NULL;

  ox_profile_start (clock, OX_PROFILE_TOKENIZER);
  ids = ox_model_encode_text (answer->session->model, text, strlen (text), TRUE, answer->cancellable, error);
  ox_profile_stop (clock);
  if (ids == NULL)
    return FALSE;
  return ox_answer_run_round (answer, ids, NULL, FALSE, NULL, error);
}

/* ---- The two ways in ---- */

/* Answers @chat, or @text when there is none. */
static gboolean
run (OxAnswer *answer, const OxChat *chat, const char *text, GError **error)
{
  OxModel *model = answer->session->model;
  OxProfileClock *clock = &answer->session->ops->profile;
  OxSampling own = model->default_sampling;
  GError *local_error = NULL;
  gboolean ok;

  ox_profile_start (clock, OX_PROFILE_OTHER);
  answer->start = ox_clock_now ();
  if (answer->sampling == NULL) {
    if (chat != NULL && chat->thinking != OX_THINKING_DEFAULT)
      ox_model_adapt_sampling (model->config, chat->thinking == OX_THINKING_ON, &own);
    answer->sampling = &own;
  }
  ok = ox_answer_init (answer, &local_error) &&
       (chat != NULL ? answer_in_rounds (answer, chat, &local_error) : continue_text (answer, text, &local_error));
  if (!ok)
    answer->event.reason =
      g_error_matches (local_error, G_IO_ERROR, G_IO_ERROR_CANCELLED) ? OX_END_CANCELLED : OX_END_ERROR;
  ox_answer_emit (answer, OX_EVENT_END);
  ox_answer_clear (answer);
  ox_profile_stop (clock);
  if (local_error != NULL)
    g_propagate_error (error, local_error);
  return ok;
}

gboolean
ox_session_generate (OxSession *session,
                     const OxChat *chat,
                     const OxSampling *sampling,
                     OxEventFunc on_event,
                     gpointer user_data,
                     GCancellable *cancellable,
                     GError **error)
{
  OxAnswer answer = {
    .session = session,
    .sampling = sampling,
    .on_event = on_event,
    .user_data = user_data,
    .cancellable = cancellable,
  };

  return run (&answer, chat, NULL, error);
}

gboolean
ox_session_complete (OxSession *session,
                     const char *text,
                     const OxSampling *sampling,
                     OxEventFunc on_event,
                     gpointer user_data,
                     GCancellable *cancellable,
                     GError **error)
{
  OxAnswer answer = {
    .session = session,
    .sampling = sampling,
    .on_event = on_event,
    .user_data = user_data,
    .cancellable = cancellable,
  };

  return run (&answer, NULL, text, error);
}
