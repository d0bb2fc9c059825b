/* The library: New Chat, all conversations by day, search, and how the memory is used.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-conversation-list.h"
#include "ox-engine.h"

#include <adwaita.h>

G_BEGIN_DECLS

#define OX_TYPE_SIDEBAR (ox_sidebar_get_type ())
G_DECLARE_FINAL_TYPE (OxSidebar, ox_sidebar, OX, SIDEBAR, AdwBin)

void ox_sidebar_set_context (OxSidebar *self, OxConversationList *conversations, OxEngine *engine);

void ox_sidebar_select (OxSidebar *self, OxConversation *conversation);
OxConversation *ox_sidebar_get_neighbour (OxSidebar *self, OxConversation *conversation, int direction);
void ox_sidebar_search (OxSidebar *self);

G_END_DECLS
