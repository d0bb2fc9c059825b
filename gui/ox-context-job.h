/* Counting what a message would take, before it is sent. Loads nothing, and takes no conversation's state away.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-conversation.h"
#include "ox-engine.h"

G_BEGIN_DECLS

#define OX_TYPE_CONTEXT_JOB (ox_context_job_get_type ())
G_DECLARE_FINAL_TYPE (OxContextJob, ox_context_job, OX, CONTEXT_JOB, OxJob)

/* For the conversation with its draft. Main thread. To be pushed in the background. */
OxContextJob *ox_context_job_new (OxEngine *engine, OxConversation *conversation, const char *model_path);
/* Once it has finished without an error. FALSE: the model is not in memory. */
gboolean ox_context_job_get_use (OxContextJob *self, OxContextUse *use);

G_END_DECLS
