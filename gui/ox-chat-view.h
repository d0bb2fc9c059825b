/* A conversation: its messages, and the composer below them.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-composer.h"
#include "ox-conversation-list.h"
#include "ox-engine.h"
#include "ox-model-library.h"

#include <adwaita.h>

G_BEGIN_DECLS

#define OX_TYPE_CHAT_VIEW (ox_chat_view_get_type ())
G_DECLARE_FINAL_TYPE (OxChatView, ox_chat_view, OX, CHAT_VIEW, AdwBin)

void ox_chat_view_set_context (
  OxChatView *self, OxEngine *engine, OxModelLibrary *library, OxStore *store, GSettings *settings);

OxConversation *ox_chat_view_get_conversation (OxChatView *self);
void ox_chat_view_set_conversation (OxChatView *self, OxConversation *conversation);

void ox_chat_view_send (OxChatView *self, const char *text);
void ox_chat_view_stop (OxChatView *self);
void ox_chat_view_regenerate (OxChatView *self);
void ox_chat_view_copy_answer (OxChatView *self);
void ox_chat_view_choose_model (OxChatView *self);
void ox_chat_view_rename (OxChatView *self);
void ox_chat_view_move_focus (OxChatView *self, int direction);
void ox_chat_view_add_toast (OxChatView *self, AdwToast *toast);

OxComposer *ox_chat_view_get_composer (OxChatView *self);
gboolean ox_chat_view_is_settled (OxChatView *self);

G_END_DECLS
