/* The drafter of a model: an assistant from files of its own, or the MTP layer in the model's.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-model-private.h"

/* Gemma 4's assistant, as the options name it. */
static gboolean
load_assistant (OxModel *model, OxLoader *loader, const char *path, GCancellable *cancellable, GError **error)
{
  g_autoptr (GError) local_error = NULL;
  g_autofree char *shown = g_filename_display_name (path);

  model->drafter_weights = ox_weights_open (path, cancellable, error);
  if (model->drafter_weights == NULL ||
      (model->drafter_config = ox_config_load (path, model->drafter_weights, error)) == NULL)
    return FALSE;
  if (model->config->family != OX_FAMILY_GEMMA4) {
    g_set_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED,
                 "%s cannot be used: only Gemma 4 takes a drafter of its own files, and %s is none", shown,
                 model->plan->name);
    return FALSE;
  }
  if (model->drafter_config->family != OX_FAMILY_GEMMA4_ASSISTANT) {
    g_set_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED,
                 "%s is no drafter: it holds a model of another kind, a Gemma 4 assistant was expected", shown);
    return FALSE;
  }
  loader->weights = model->drafter_weights;
  loader->config = model->drafter_config;
  model->drafter = ox_gemma4_drafter_load (loader, model->network, &local_error);
  if (model->drafter != NULL)
    return TRUE;
  if (g_error_matches (local_error, OX_ERROR, OX_ERROR_UNSUPPORTED))
    g_prefix_error (&local_error, "%s: ", shown);
  g_propagate_error (error, g_steal_pointer (&local_error));
  return FALSE;
}

gboolean
ox_model_load_drafter (
  OxModel *model, const OxLoader *target, const char *path, GCancellable *cancellable, GError **error)
{
  OxLoader loader = *target;
  g_autoptr (GError) local_error = NULL;

  if (path != NULL)
    return load_assistant (model, &loader, path, cancellable, error);
  if (model->config->family != OX_FAMILY_QWEN35)
    return TRUE;
  model->drafter = ox_qwen35_mtp_load (&loader, model->network, &local_error);
  if (local_error == NULL)
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&local_error));
  return FALSE;
}

void
ox_model_free_drafter (OxModel *model)
{
  if (model->drafter != NULL)
    ox_drafter_free (g_steal_pointer (&model->drafter), model->ops);
  g_clear_pointer (&model->drafter_weights, ox_weights_free);
  g_clear_pointer (&model->drafter_config, ox_config_free);
}

gboolean
ox_model_plan_mtp (
  const OxLoader *target, OxPlanCount *count, const OxStateOptions *options, guint64 *state_bytes, GError **error)
{
  const OxConfig *c = target->config;
  OxLoader loader = *target;
  GError *local_error = NULL;
  guint64 parameters = count->parameters;
  OxDrafter *drafter;

  *state_bytes = 0;
  if (c->family != OX_FAMILY_QWEN35)
    return TRUE;
  drafter = ox_qwen35_mtp_load (&loader, NULL, &local_error);
  if (local_error != NULL) {
    g_propagate_error (error, local_error);
    return FALSE;
  }
  /* How large a model is called is told without it. */
  count->parameters = parameters;
  if (drafter == NULL)
    return TRUE;
  ox_drafter_free (drafter, target->ops);
  *state_bytes = ox_kv_bytes (c->num_key_value_heads, c->head_dim, options->kv_type, options->context_length) +
                 (guint64) options->chunk * c->hidden_size * 4 * sizeof (float);
  return TRUE;
}
