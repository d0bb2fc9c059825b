/* A conversation as a model is to see it. Main thread only.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-conversation.h"

G_BEGIN_DECLS

/* Some answer in @conversation called a tool. */
gboolean ox_chat_builder_has_tools (OxConversation *conversation);
/* All messages but answers that failed or have nothing in them, then @draft as the user's, unless that is NULL or blank. With
 * @with_tools, answers come with their calls and results, else with their text alone. */
OxChat *ox_chat_builder_build (OxConversation *conversation, const char *draft, gboolean with_tools);

G_END_DECLS
