/* The window: the library beside a chat, or the welcome page while there is no model.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-application.h"
#include "ox-chat-view.h"
#include "ox-sidebar.h"

#include <adwaita.h>

G_BEGIN_DECLS

#define OX_TYPE_WINDOW (ox_window_get_type ())
G_DECLARE_FINAL_TYPE (OxWindow, ox_window, OX, WINDOW, AdwApplicationWindow)

OxWindow *ox_window_new (OxApplication *application);

void ox_window_open_conversation (OxWindow *self, OxConversation *conversation);
void ox_window_new_chat (OxWindow *self);
void ox_window_delete_conversation (OxWindow *self, OxConversation *conversation);
void ox_window_show_library (OxWindow *self);

OxChatView *ox_window_get_chat_view (OxWindow *self);
OxSidebar *ox_window_get_sidebar (OxWindow *self);
const char *ox_window_get_page (OxWindow *self);

G_END_DECLS
