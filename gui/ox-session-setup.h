/* What a session is to do, from the settings of a conversation and what the model can. Engine thread.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-engine.h"

G_BEGIN_DECLS

/* Tools, policy and guessing of @session, and thinking of @chat. With @session NULL, to count tokens, @chat gets the tools itself.
 * FALSE: the model cannot call tools, and wants a chat without calls. */
gboolean ox_session_setup (OxEngine *engine, gpointer model, gpointer session, GVariant *settings, OxChat *chat);

G_END_DECLS
