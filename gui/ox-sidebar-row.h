/* A row of the sidebar: a place or a conversation.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-conversation.h"

#include <gtk/gtk.h>

G_BEGIN_DECLS

#define OX_TYPE_SIDEBAR_ROW (ox_sidebar_row_get_type ())
G_DECLARE_FINAL_TYPE (OxSidebarRow, ox_sidebar_row, OX, SIDEBAR_ROW, GtkWidget)

GtkWidget *ox_sidebar_row_new (GtkListItem *list_item);

void ox_sidebar_row_set_item (OxSidebarRow *self, GObject *item);
OxConversation *ox_sidebar_row_get_conversation (OxSidebarRow *self);
gboolean ox_sidebar_row_handle_key (OxSidebarRow *self, guint keyval, GdkModifierType state);

G_END_DECLS
