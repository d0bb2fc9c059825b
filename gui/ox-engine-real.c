/* The real engine behind the app's table of calls.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-engine-backend.h"

static gpointer
load (const char *path,
      const OxModelOptions *options,
      OxProgressFunc progress,
      gpointer user_data,
      GCancellable *cancellable,
      GError **error)
{
  return ox_model_load (path, options, progress, user_data, cancellable, error);
}

static void
unload (gpointer model)
{
  ox_model_unref (model);
}

static const OxModelPlan *
get_plan (gpointer model)
{
  return ox_model_get_plan (model);
}

static void
set_power_saving (gpointer model, gboolean power_saving)
{
  ox_model_set_power_saving (model, power_saving);
}

static void
get_default_sampling (gpointer model, OxSampling *sampling)
{
  ox_model_get_default_sampling (model, sampling);
}

static gpointer
session_new (gpointer model, GError **error)
{
  return ox_session_new (model, error);
}

static void
session_free (gpointer session)
{
  ox_session_free (session);
}

static void
session_set_toolbox (gpointer session, OxToolbox *toolbox, guint max_rounds)
{
  ox_session_set_toolbox (session, toolbox, max_rounds);
}

static void
session_set_context_policy (gpointer session, OxContextPolicy policy)
{
  ox_session_set_context_policy (session, policy);
}

static void
session_set_speculation (gpointer session, OxSpeculation speculation)
{
  ox_session_set_speculation (session, speculation);
}

static gboolean
session_measure (gpointer session, const OxChat *chat, OxContextUse *use, GCancellable *cancellable, GError **error)
{
  return ox_session_measure (session, chat, use, cancellable, error);
}

static gboolean
count_tokens (gpointer model, const OxChat *chat, guint *n_tokens, GCancellable *cancellable, GError **error)
{
  return ox_model_count_tokens (model, chat, n_tokens, cancellable, error);
}

static gboolean
generate (gpointer session,
          const OxChat *chat,
          const OxSampling *sampling,
          OxEventFunc on_event,
          gpointer user_data,
          GCancellable *cancellable,
          GError **error)
{
  return ox_session_generate (session, chat, sampling, on_event, user_data, cancellable, error);
}

static void
get_memory (guint64 *available, guint64 *total)
{
  g_autoptr (OxPlatform) platform = ox_platform_query ();

  *available = platform->memory_available;
  *total = platform->memory_total;
}

const OxEngineBackend *
ox_engine_backend_get_real (void)
{
  static const OxEngineBackend backend = {
    .plan = ox_model_plan,
    .plan_free = ox_model_plan_free,
    .load = load,
    .unload = unload,
    .get_plan = get_plan,
    .set_power_saving = set_power_saving,
    .get_default_sampling = get_default_sampling,
    .session_new = session_new,
    .session_free = session_free,
    .session_set_toolbox = session_set_toolbox,
    .session_set_context_policy = session_set_context_policy,
    .session_set_speculation = session_set_speculation,
    .session_measure = session_measure,
    .count_tokens = count_tokens,
    .generate = generate,
    .get_memory = get_memory,
    .packed_cache_get_bytes = ox_packed_cache_get_bytes,
    .packed_cache_clear = ox_packed_cache_clear,
  };

  return &backend;
}
