/* One message of a conversation. Main thread only.
 *
 * Properties (read-only for views, all with notify): id, role, text, thinking, state, error, error-details, error-code,
 * model-name, created, load-progress, prefill-done, prefill-total, answer-tokens, decode-rate, first-token-seconds, end-reason,
 * thinking-seconds, dropped-messages.
 * Notifications of an answer that is being written come at most once a frame.
 *
 * Signals: appended (const char *piece), after text grew by @piece; thinking-appended (const char *piece), likewise;
 * tool-changed (guint index), when a call of a tool is new or has its result; finished (), once, when an answer reached its last state. notify::text comes after appended too, but reading the whole text
 * for each piece costs a copy-free pointer only: the text is one GString.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-tool-entry.h"
#include "oxinfer.h"
#include <glib-object.h>

G_BEGIN_DECLS

/**
 * OxMessageState:
 * @OX_MESSAGE_COMPLETE: whole; messages of the user always are
 * @OX_MESSAGE_WAITING: an answer in the queue: being saved, or another job runs
 * @OX_MESSAGE_LOADING: the model is being loaded; see load-progress
 * @OX_MESSAGE_READING: the model reads the conversation; see prefill-done and prefill-total
 * @OX_MESSAGE_WRITING: text is coming
 * @OX_MESSAGE_STOPPED: stopped by the user; text so far stands
 * @OX_MESSAGE_INTERRUPTED: the app ended in mid-answer; text so far stands
 * @OX_MESSAGE_FAILED: see error; text so far stands
 */
typedef enum {
  OX_MESSAGE_COMPLETE,
  OX_MESSAGE_WAITING,
  OX_MESSAGE_LOADING,
  OX_MESSAGE_READING,
  OX_MESSAGE_WRITING,
  OX_MESSAGE_STOPPED,
  OX_MESSAGE_INTERRUPTED,
  OX_MESSAGE_FAILED,
} OxMessageState;

#define OX_TYPE_MESSAGE_STATE (ox_message_state_get_type ())
GType ox_message_state_get_type (void);

#define OX_TYPE_MESSAGE_ROLE (ox_message_role_get_type ())
GType ox_message_role_get_type (void);

#define OX_TYPE_MESSAGE (ox_message_get_type ())
G_DECLARE_FINAL_TYPE (OxMessage, ox_message, OX, MESSAGE, GObject)

/* A complete message of now, with a new id. */
OxMessage *ox_message_new (OxRole role, const char *text);
/* An empty answer in state WAITING. */
OxMessage *ox_message_new_answer (const char *model_name);

/* A random UUID. */
const char *ox_message_get_id (OxMessage *self);
OxRole ox_message_get_role (OxMessage *self);
/* Never NULL, always valid UTF-8. Valid until the text changes. */
const char *ox_message_get_text (OxMessage *self);
gsize ox_message_get_text_length (OxMessage *self);
const char *ox_message_get_thinking (OxMessage *self);
OxMessageState ox_message_get_state (OxMessage *self);
/* WAITING, LOADING, READING or WRITING. */
gboolean ox_message_is_live (OxMessage *self);
/* Microseconds since 1970, UTC. */
gint64 ox_message_get_created (OxMessage *self);
/* The name for people of the model that answered, or NULL. */
const char *ox_message_get_model_name (OxMessage *self);

/* What went wrong, in one or two sentences for the user: what, why, what to do. NULL unless FAILED. */
const char *ox_message_get_error (OxMessage *self);
/* The engine's own words: file, field, what was expected. May be NULL. */
const char *ox_message_get_error_details (OxMessage *self);
/* An #OxError, or -1. */
int ox_message_get_error_code (OxMessage *self);

/* 0…1. */
double ox_message_get_load_progress (OxMessage *self);
/* Tokens of the prompt read so far, and in all. */
void ox_message_get_prefill (OxMessage *self, guint *done, guint *total);
/* All zero while unknown. Never NULL. Also kept for answers of earlier days. */
const OxStatistics *ox_message_get_statistics (OxMessage *self);
/* Tokens a second of writing; 0 while unknown. */
double ox_message_get_decode_rate (OxMessage *self);
/* Why a COMPLETE answer ended: OX_END_STOP, or OX_END_LENGTH or OX_END_CONTEXT, which mean that it was cut off, or
 * OX_END_TOOL_ROUNDS. */
OxEndReason ox_message_get_end_reason (OxMessage *self);
/* Calls of tools, in turn. */
guint ox_message_get_n_tools (OxMessage *self);
const OxToolEntry *ox_message_get_tool (OxMessage *self, guint index);
/* Seconds that the model thought so far. */
double ox_message_get_thinking_seconds (OxMessage *self);
/* It thinks just now. */
gboolean ox_message_is_thinking (OxMessage *self);
/* Older messages that the model did not see, for want of room. */
guint ox_message_get_dropped_messages (OxMessage *self);

/* ---- For jobs and the store; views only read ---- */

void ox_message_set_text (OxMessage *self, const char *text);
void ox_message_append (OxMessage *self, const char *piece);
void ox_message_append_thinking (OxMessage *self, const char *piece);
/* An end state emits finished. */
void ox_message_set_state (OxMessage *self, OxMessageState state);
void ox_message_set_model_name (OxMessage *self, const char *model_name);
void ox_message_set_load_progress (OxMessage *self, double fraction);
void ox_message_set_prefill (OxMessage *self, guint done, guint total);
void ox_message_set_statistics (OxMessage *self, const OxStatistics *statistics);
void ox_message_set_end_reason (OxMessage *self, OxEndReason reason);
/* Puts a copy of @entry at @index, which is at most the number of calls so far. */
void ox_message_put_tool (OxMessage *self, guint index, const OxToolEntry *entry);
/* @seconds: in finished pieces of thinking; @since: of ox_clock_now(), when the piece in the works began, or 0. */
void ox_message_set_thinking_time (OxMessage *self, double seconds, gint64 since);
void ox_message_set_dropped_messages (OxMessage *self, guint n);
/* State FAILED, with what ox_message_get_error() etc. are to give. */
void ox_message_fail (OxMessage *self, int code, const char *error, const char *details);

G_END_DECLS
