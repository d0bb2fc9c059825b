/* Answering in a conversation. Main thread only.
 *
 * Sending goes: the message of the user and an empty answer enter the conversation; both are saved; when the store has confirmed
 * that, the job enters the engine's queue; the model is loaded if need be; text streams into the answer and is saved several
 * times a second; the answer gets its last state and is saved whole. If the store cannot save, it tells so by its own signal, and
 * the question is answered all the same.
 *
 * Each function returns at once; watch the answer, or ox_conversation_get_answering(). ox_conversation_stop() stops it. While one
 * is being answered, a conversation takes no second one: the functions return NULL then. Results are owned by the caller.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-conversation.h"
#include "ox-engine.h"

G_BEGIN_DECLS

#define OX_TYPE_CHAT_JOB (ox_chat_job_get_type ())
G_DECLARE_FINAL_TYPE (OxChatJob, ox_chat_job, OX, CHAT_JOB, OxJob)

/* Sends @text. @model_path, @model_name: the model that is to answer. Clears the draft. */
OxChatJob *ox_chat_job_send (
  OxEngine *engine, OxConversation *conversation, const char *text, const char *model_path, const char *model_name);
/* Puts a new answer in the place of @answer (failed, stopped or unwanted) and of all that follows it; with @answer NULL, answers
 * the last message of the user. */
OxChatJob *ox_chat_job_retry (
  OxEngine *engine, OxConversation *conversation, OxMessage *answer, const char *model_path, const char *model_name);
/* Goes on with an answer that was stopped or cut off; it must be the last message. */
OxChatJob *ox_chat_job_continue (
  OxEngine *engine, OxConversation *conversation, OxMessage *answer, const char *model_path, const char *model_name);

OxConversation *ox_chat_job_get_conversation (OxChatJob *self);
/* The answer being written. */
OxMessage *ox_chat_job_get_message (OxChatJob *self);

G_END_DECLS
