/* Jobs of the engine itself: load a model, unload it, forget a conversation.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-engine.h"

G_BEGIN_DECLS

#define OX_TYPE_ENGINE_JOB (ox_engine_job_get_type ())
G_DECLARE_FINAL_TYPE (OxEngineJob, ox_engine_job, OX, ENGINE_JOB, OxJob)

OxJob *ox_engine_job_new_load (OxEngine *engine, const char *path);
OxJob *ox_engine_job_new_unload (OxEngine *engine);
OxJob *ox_engine_job_new_forget (OxEngine *engine, const char *conversation_id);

/* ---- ox-engine.c, engine thread ---- */

void ox_engine_drop_model (OxEngine *self);
void ox_engine_drop_session (OxEngine *self, const char *conversation_id);

G_END_DECLS
