/* The inference engine as the window sees it: which model is in memory, what it is doing, and the queue of its jobs.
 *
 * Properties, all with notify on the main thread: state, model-path, model-name, load-progress, weight-bytes, session-bytes,
 * memory-available, memory-total, busy.
 *
 * Signal: permission (OxPermission *), on the main thread: a tool with effects is to run. A handler that sees to it returns TRUE; without
 * one, the tool does not run.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-engine-backend.h"
#include "ox-job-queue.h"
#include "ox-permission.h"

G_BEGIN_DECLS

/**
 * OxEngineState:
 * @OX_ENGINE_EMPTY: no model in memory
 * @OX_ENGINE_LOADING: model-path is on its way; see load-progress
 * @OX_ENGINE_READY: model-path is in memory
 */
typedef enum {
  OX_ENGINE_EMPTY,
  OX_ENGINE_LOADING,
  OX_ENGINE_READY,
} OxEngineState;

#define OX_TYPE_ENGINE_STATE (ox_engine_state_get_type ())
GType ox_engine_state_get_type (void);

#define OX_TYPE_ENGINE (ox_engine_get_type ())
G_DECLARE_FINAL_TYPE (OxEngine, ox_engine, OX, ENGINE, GObject)

/* @backend: NULL for the real engine; must outlive the engine. */
OxEngine *ox_engine_new (const OxEngineBackend *backend);

const OxEngineBackend *ox_engine_get_backend (OxEngine *self);
OxEngineState ox_engine_get_state (OxEngine *self);
/* A job waits or runs. */
gboolean ox_engine_get_busy (OxEngine *self);
/* Of the model that is loaded or being loaded, else NULL. */
const char *ox_engine_get_model_path (OxEngine *self);
const char *ox_engine_get_model_name (OxEngine *self);
double ox_engine_get_load_progress (OxEngine *self);

/* Bytes: weights in memory, state of the conversations held, free memory and all memory of the computer. */
guint64 ox_engine_get_weight_bytes (OxEngine *self);
guint64 ox_engine_get_session_bytes (OxEngine *self);
guint64 ox_engine_get_memory_available (OxEngine *self);
guint64 ox_engine_get_memory_total (OxEngine *self);
/* Measures free memory now; otherwise that is done when a model comes or goes and when a job ends. */
void ox_engine_refresh_memory (OxEngine *self);

/* Options for loading; take effect with the next load. */
void ox_engine_set_options (OxEngine *self, const OxModelOptions *options);

/* Half the threads that the options give work, from now on, also in an answer that is being written. */
void ox_engine_set_power_saving (OxEngine *self, gboolean power_saving);

/* A copy; any thread. */
OxModelOptions ox_engine_get_options (OxEngine *self);
/* Paths of models → paths of their drafters; takes effect with the next load. */
void ox_engine_set_drafters (OxEngine *self, GHashTable *drafters);
/* The tools of the answers to come, or NULL for none. Its permission function is set. */
void ox_engine_set_toolbox (OxEngine *self, OxToolbox *toolbox);
void ox_engine_set_speculation (OxEngine *self, OxSpeculation speculation);

/* Bytes of prepared weights on the disk, and removing them. */
void ox_engine_get_cache_bytes (OxEngine *self, GAsyncReadyCallback callback, gpointer user_data);
guint64 ox_engine_get_cache_bytes_finish (OxEngine *self, GAsyncResult *result);
void ox_engine_clear_cache (OxEngine *self, GAsyncReadyCallback callback, gpointer user_data);
gboolean ox_engine_clear_cache_finish (OxEngine *self, GAsyncResult *result, GError **error);

/* Puts a job into the engine's queue. */
void ox_engine_push (OxEngine *self, OxJob *job, OxJobPriority priority);
/* Loads a model, instead of the one in memory, without asking it anything. The job tells by "finished" how that went. */
OxJob *ox_engine_load (OxEngine *self, const char *path);
/* Frees the model and all sessions, after the jobs that wait. */
OxJob *ox_engine_unload (OxEngine *self);
/* The state of this conversation is not needed any more. */
void ox_engine_forget_conversation (OxEngine *self, const char *conversation_id);

/* Cancels all jobs and waits for the engine thread at most @timeout microseconds. */
gboolean ox_engine_shutdown (OxEngine *self, gint64 timeout);

/* ---- For jobs, on the engine thread ---- */

/* The model, loaded now if another one or none is in memory. @progress is called only if loading is needed. */
gpointer ox_engine_take_model (OxEngine *self,
                               const char *path,
                               OxProgressFunc progress,
                               gpointer user_data,
                               GCancellable *cancellable,
                               GError **error);
/* The session of a conversation on the model in memory. Sessions of the last two conversations are kept. Valid until the next call. */
gpointer ox_engine_take_session (OxEngine *self, const char *conversation_id, GError **error);

/* The model in memory when it is that of @path, else NULL: nothing is loaded. */
gpointer ox_engine_find_model (OxEngine *self, const char *path);
/* The session when it is held, else NULL. */
gpointer ox_engine_find_session (OxEngine *self, const char *conversation_id);
/* What ox_engine_set_toolbox() set; unref it. NULL: none. */
OxToolbox *ox_engine_ref_toolbox (OxEngine *self);
OxSpeculation ox_engine_get_speculation (OxEngine *self);

/* Says how many tokens a session holds, for session-bytes. */
void ox_engine_set_session_tokens (OxEngine *self, const char *conversation_id, guint n_tokens);

/* A sentence or two for the user about an error of the engine: what, why, what to do. @model_name may be NULL. Any thread. */
char *ox_engine_describe_error (const GError *error, const char *model_name);

G_END_DECLS
