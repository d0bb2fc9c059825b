/* The calls of the inference engine that the app makes, as a table, so that tests and prepared scenes can put scripted ones in
 * their place. All but the first run on the engine thread alone.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "oxinfer.h"

G_BEGIN_DECLS

/* Each is as its namesake in oxinfer.h; models and sessions are opaque. */
typedef struct {
  OxModelPlan *(*plan) (const char *path, const OxModelOptions *options, GCancellable *cancellable, GError **error);
  void (*plan_free) (OxModelPlan *plan);
  gpointer (*load) (const char *path,
                    const OxModelOptions *options,
                    OxProgressFunc progress,
                    gpointer user_data,
                    GCancellable *cancellable,
                    GError **error);
  void (*unload) (gpointer model);
  const OxModelPlan *(*get_plan) (gpointer model);
  /* Any thread. */
  void (*set_power_saving) (gpointer model, gboolean power_saving);
  void (*get_default_sampling) (gpointer model, OxSampling *sampling);
  gpointer (*session_new) (gpointer model, GError **error);
  void (*session_free) (gpointer session);
  void (*session_set_toolbox) (gpointer session, OxToolbox *toolbox, guint max_rounds);
  void (*session_set_context_policy) (gpointer session, OxContextPolicy policy);
  void (*session_set_speculation) (gpointer session, OxSpeculation speculation);
  gboolean (*session_measure) (
    gpointer session, const OxChat *chat, OxContextUse *use, GCancellable *cancellable, GError **error);
  gboolean (*count_tokens) (
    gpointer model, const OxChat *chat, guint *n_tokens, GCancellable *cancellable, GError **error);
  gboolean (*generate) (gpointer session,
                        const OxChat *chat,
                        const OxSampling *sampling,
                        OxEventFunc on_event,
                        gpointer user_data,
                        GCancellable *cancellable,
                        GError **error);
  /* Bytes of memory free and in all. Any thread. */
  void (*get_memory) (guint64 *available, guint64 *total);
  /* Any thread but the main one: they look at files. */
  guint64 (*packed_cache_get_bytes) (void);
  gboolean (*packed_cache_clear) (GError **error);
} OxEngineBackend;

/* The real engine. */
const OxEngineBackend *ox_engine_backend_get_real (void);

G_END_DECLS
