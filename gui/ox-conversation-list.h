/* All conversations: pinned ones first, then the newest first, in sections by day. Main thread only.
 *
 * A GListModel of OxConversation and a GtkSectionModel. With a search it holds only those found, in the same order, each with
 * its snippet. A conversation enters with its first message; temporary ones never do.
 *
 * Properties: loaded, search (rw), searching (the store looks).
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-conversation.h"
#include <gtk/gtk.h>

G_BEGIN_DECLS

#define OX_TYPE_CONVERSATION_LIST (ox_conversation_list_get_type ())
G_DECLARE_FINAL_TYPE (OxConversationList, ox_conversation_list, OX, CONVERSATION_LIST, GObject)

OxConversationList *ox_conversation_list_new (OxStore *store);

/* Fills the list from the store, which must have been opened or be about to. */
void ox_conversation_list_load (OxConversationList *self,
                                GCancellable *cancellable,
                                GAsyncReadyCallback callback,
                                gpointer user_data);
gboolean ox_conversation_list_load_finish (OxConversationList *self, GAsyncResult *result, GError **error);
gboolean ox_conversation_list_get_loaded (OxConversationList *self);

/* A conversation to start with: empty, or the one whose draft was never sent. Free with g_object_unref(). */
OxConversation *ox_conversation_list_create (OxConversationList *self);
/* Found or not by the search. Not owned by the caller. */
OxConversation *ox_conversation_list_find (OxConversationList *self, const char *id);
/* Position among those shown. */
gboolean ox_conversation_list_find_position (OxConversationList *self, OxConversation *conversation, guint *position);

/* "Pinned", "Today", "Yesterday", "Previous 7 Days", "October", "March 2025". Free with g_free(). */
char *ox_conversation_list_dup_section_title (OxConversationList *self, OxConversation *conversation);

/* Takes it out of the list and marks it in the store; an answer in the works is stopped. Until it is purged, or until the app
 * starts again, ox_conversation_list_undelete() brings it back. */
void ox_conversation_list_delete (OxConversationList *self, OxConversation *conversation);
void ox_conversation_list_undelete (OxConversationList *self, OxConversation *conversation);
/* Erases a deleted one for good: when the toast with Undo has gone. */
void ox_conversation_list_purge (OxConversationList *self, OxConversation *conversation);

/* Shows only conversations with all these words (their beginnings) in the title or in one message. NULL or "": all. */
void ox_conversation_list_set_search (OxConversationList *self, const char *text);
const char *ox_conversation_list_get_search (OxConversationList *self);

/* Stops every answer in the works. */
void ox_conversation_list_stop_all (OxConversationList *self);
/* Saves all that waits for saving (drafts). */
void ox_conversation_list_flush (OxConversationList *self);

G_END_DECLS
