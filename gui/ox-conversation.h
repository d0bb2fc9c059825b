/* A conversation: a list of OxMessage, and what is known of it. Main thread only.
 *
 * It is a GListModel of OxMessage, oldest first. Messages of a stored conversation come with ox_conversation_load(); until then
 * the list is empty and "loaded" is FALSE.
 *
 * Properties, all with notify: id, title, pinned (rw), updated, draft (rw), model-path (rw), answering, temporary, loaded,
 * snippet, saved, settings.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-message.h"
#include "ox-store.h"
#include <gio/gio.h>

G_BEGIN_DECLS

#define OX_TYPE_CONVERSATION (ox_conversation_get_type ())
G_DECLARE_FINAL_TYPE (OxConversation, ox_conversation, OX, CONVERSATION, GObject)

/* A new, empty one, which the store learns of with the first message or draft; never if @temporary or @store is NULL. */
OxConversation *ox_conversation_new (OxStore *store, gboolean temporary);
/* One that the store told of; messages not loaded. */
OxConversation *ox_conversation_new_from_record (OxStore *store, const OxConversationRecord *record);

OxStore *ox_conversation_get_store (OxConversation *self);
const char *ox_conversation_get_id (OxConversation *self);
/* What the user called it, else the start of the first message of the user, else "New Chat". Never NULL. */
const char *ox_conversation_get_title (OxConversation *self);
/* NULL or empty: back to the title from the first message. */
void ox_conversation_rename (OxConversation *self, const char *title);
gboolean ox_conversation_get_pinned (OxConversation *self);
void ox_conversation_set_pinned (OxConversation *self, gboolean pinned);
/* Time of the last message: microseconds since 1970, UTC. */
gint64 ox_conversation_get_updated (OxConversation *self);
/* Text not sent yet. Saved within a second of the last change, or with ox_conversation_flush(). Never NULL. */
const char *ox_conversation_get_draft (OxConversation *self);
void ox_conversation_set_draft (OxConversation *self, const char *draft);
/* File of the model that answers here, or NULL for the one chosen in the app. */
const char *ox_conversation_get_model_path (OxConversation *self);
void ox_conversation_set_model_path (OxConversation *self, const char *path);
/* Never stored. */
gboolean ox_conversation_get_temporary (OxConversation *self);
/* FALSE while something of it could not be written to the disk; it is tried again with the next message. */
gboolean ox_conversation_get_saved (OxConversation *self);
/* In a search: Pango markup of the place found, with the words in <b>; else NULL. */
const char *ox_conversation_get_snippet (OxConversation *self);
void ox_conversation_set_snippet (OxConversation *self, const char *markup);

/* Settings of this conversation, a{sv}, empty at first, never NULL. Known keys: system-prompt (s), temperature (d), top-k (u),
 * top-p (d), min-p (d), repetition-penalty (d), frequency-penalty (d), presence-penalty (d), seed (t), max-tokens (u), thinking (b),
 * tools (b), drop-oldest (b). */
GVariant *ox_conversation_get_settings (OxConversation *self);
void ox_conversation_set_settings (OxConversation *self, GVariant *settings);
/* One of them that is TRUE or FALSE; @fallback when it is not set. */
gboolean ox_conversation_get_flag (OxConversation *self, const char *key, gboolean fallback);
void ox_conversation_set_flag (OxConversation *self, const char *key, gboolean value);

/* Fetches the messages, once; further calls are free and wait for the first. */
void ox_conversation_load (OxConversation *self,
                           GCancellable *cancellable,
                           GAsyncReadyCallback callback,
                           gpointer user_data);
gboolean ox_conversation_load_finish (OxConversation *self, GAsyncResult *result, GError **error);
gboolean ox_conversation_get_loaded (OxConversation *self);

guint ox_conversation_get_length (OxConversation *self);
/* Not owned by the caller. NULL when out of range. */
OxMessage *ox_conversation_get_message (OxConversation *self, guint index);
OxMessage *ox_conversation_find_message (OxConversation *self, const char *id);
/* TRUE and @position when @message is of this conversation. */
gboolean ox_conversation_find_position (OxConversation *self, OxMessage *message, guint *position);

/* Tokens that the conversation took in its last answer and how many it may take; FALSE while unknown. */
gboolean ox_conversation_get_usage (OxConversation *self, guint *used, guint *total);

/* An answer is being made: from sending until its last state. */
gboolean ox_conversation_get_answering (OxConversation *self);
/* Stops the answer at once: when it returns, its message is STOPPED and answering is FALSE. */
void ox_conversation_stop (OxConversation *self);

/* Removes a message, or it and all that follow, in memory and in the store. An answer in the works is stopped first. */
void ox_conversation_remove_message (OxConversation *self, OxMessage *message);
void ox_conversation_remove_from (OxConversation *self, OxMessage *message);

/* Writes what is not written yet (a draft). */
void ox_conversation_flush (OxConversation *self);

/* ---- For jobs ---- */

/* Puts messages at the end, in memory at once, and saves them and the conversation in one transaction that a power cut does
 * not undo. @callback comes when that is done or has failed; the messages stay in either case. */
void ox_conversation_append (
  OxConversation *self, OxMessage *const *messages, guint n, GAsyncReadyCallback callback, gpointer user_data);
gboolean ox_conversation_append_finish (OxConversation *self, GAsyncResult *result, GError **error);
/* Writes the message as it is now: quickly while it is live, with everything at the end. */
void ox_conversation_save_message (OxConversation *self,
                                   OxMessage *message,
                                   GAsyncReadyCallback callback,
                                   gpointer user_data);
gboolean ox_conversation_save_message_finish (OxConversation *self, GAsyncResult *result, GError **error);
/* Says which job answers, and how it is stopped; NULL: none does. Sets answering. No reference is taken. */
void ox_conversation_set_job (OxConversation *self, gpointer job, void (*stop) (gpointer job));

G_END_DECLS
