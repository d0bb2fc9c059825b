/* The messages of a conversation, one below the other: the last ones at once, older ones as one scrolls up.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-conversation.h"
#include "ox-message-view.h"

#include <gtk/gtk.h>

G_BEGIN_DECLS

#define OX_TYPE_MESSAGE_LIST (ox_message_list_get_type ())
G_DECLARE_FINAL_TYPE (OxMessageList, ox_message_list, OX, MESSAGE_LIST, GtkWidget)

void ox_message_list_set_conversation (OxMessageList *self, OxConversation *conversation);
void ox_message_list_set_narrow (OxMessageList *self, gboolean narrow);
void ox_message_list_set_show_statistics (OxMessageList *self, gboolean show_statistics);

gboolean ox_message_list_get_following (OxMessageList *self);
void ox_message_list_jump (OxMessageList *self);
void ox_message_list_move_focus (OxMessageList *self, int direction);

gboolean ox_message_list_is_settled (OxMessageList *self);
guint ox_message_list_get_n_views (OxMessageList *self);
GtkAdjustment *ox_message_list_get_adjustment (OxMessageList *self);

G_END_DECLS
