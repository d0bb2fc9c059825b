/* How much of the model's context a conversation takes, with what is being typed. Main thread only.
 *
 * Signal: changed (), when ox_context_meter_get_use() has something new to say.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-conversation.h"
#include "ox-engine.h"

G_BEGIN_DECLS

#define OX_TYPE_CONTEXT_METER (ox_context_meter_get_type ())
G_DECLARE_FINAL_TYPE (OxContextMeter, ox_context_meter, OX, CONTEXT_METER, GObject)

OxContextMeter *ox_context_meter_new (OxEngine *engine);
/* Either may be NULL. */
void ox_context_meter_set_conversation (OxContextMeter *self, OxConversation *conversation);
void ox_context_meter_set_model_path (OxContextMeter *self, const char *model_path);
/* Measured, or what the last answer took while that is not known better. FALSE while nothing is known. */
gboolean ox_context_meter_get_use (OxContextMeter *self, OxContextUse *use);

G_END_DECLS
