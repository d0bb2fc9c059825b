/* Loading a model, and what it tells about itself.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-model-private.h"

#include "ox-packed-cache.h"

/* Progress reaches the caller at most this often. */
#define PROGRESS_INTERVAL_US 33000

typedef struct {
  OxProgressFunc func;
  gpointer user_data;
  GCancellable *cancellable;
  GThread *thread; /* the caller's: progress is told on it alone */
  guint64 total;   /* source bytes */
  gint64 last;     /* clock of the last call */
  guint64 done;    /* atomic */
} LoadProgress;

static gboolean
load_progress (guint64 bytes, gpointer user_data)
{
  LoadProgress *progress = user_data;
  guint64 done = __atomic_add_fetch (&progress->done, bytes, __ATOMIC_RELAXED);

  if (progress->func != NULL && g_thread_self () == progress->thread) {
    gint64 now = ox_clock_now ();

    if (now - progress->last >= PROGRESS_INTERVAL_US) {
      progress->last = now;
      progress->func (progress->total > 0 ? MIN ((double) done / progress->total, 1.0) : 1.0, progress->user_data);
    }
  }
  return progress->cancellable == NULL || !g_cancellable_is_cancelled (progress->cancellable);
}

/* Whether the model may be tried at all. A number and a way out in every refusal. */
static gboolean
check_memory (const OxModelPlan *plan, const OxModelOptions *options, GError **error)
{
  g_autofree char *needed = g_format_size (plan->memory_needed);
  g_autofree char *available = g_format_size (plan->memory_available);

  if (plan->fit != OX_FIT_NOT || (options != NULL && options->ignore_memory))
    return TRUE;
  g_set_error (
    error, OX_ERROR, OX_ERROR_NO_MEMORY,
    "%s needs %s of memory, and %s is free now. Close other programs, choose a shorter context or a smaller model",
    plan->name, needed, available);
  return FALSE;
}

OxModel *
ox_model_load (const char *path,
               const OxModelOptions *options,
               OxProgressFunc progress,
               gpointer user_data,
               GCancellable *cancellable,
               GError **error)
{
  return ox_model_load_full (path, options, TRUE, progress, user_data, cancellable, error);
}

OxModel *
ox_model_load_full (const char *path,
                    const OxModelOptions *options,
                    gboolean with_tokenizer,
                    OxProgressFunc progress,
                    gpointer user_data,
                    GCancellable *cancellable,
                    GError **error)
{
  g_autoptr (OxWeights) weights = ox_weights_open (path, cancellable, error);
  OxConfig *config = weights != NULL ? ox_config_load (path, weights, error) : NULL;

  if (config == NULL)
    return NULL;
  return ox_model_load_opened (path, g_steal_pointer (&weights), config, options, with_tokenizer, progress, user_data,
                               cancellable, error);
}

/* Tokenizer, chat format, and what ends a turn. */
static gboolean
load_text (OxModel *model, const char *path, gboolean with_tokenizer, GCancellable *cancellable, GError **error)
{
  for (guint i = 0; i < model->config->eos_token_ids->len; i++)
    g_array_append_val (model->stop_ids, g_array_index (model->config->eos_token_ids, guint32, i));
  if (!with_tokenizer)
    return TRUE;
  model->tokenizer = ox_tokenizer_load (path, cancellable, error);
  if (model->tokenizer == NULL)
    return FALSE;
  if (ox_tokenizer_get_size (model->tokenizer) > model->config->vocab_size) {
    g_autofree char *shown = g_filename_display_name (path);

    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: the tokenizer has %u tokens, but the model only %u", shown,
                 ox_tokenizer_get_size (model->tokenizer), model->config->vocab_size);
    return FALSE;
  }
  model->chat_format = ox_model_plan_set_tokenizer (model->plan, model->tokenizer, model->config);
  if (model->chat_format != NULL)
    ox_chat_format_add_stop_ids (model->chat_format, model->tokenizer, model->stop_ids);
  return TRUE;
}

/* What was kept of this model, or where it is to be kept; NULL when that is not wanted or not worth it. */
static OxPackedCache *
open_cache (OxModel *model, const OxModelSetup *setup, const OxModelOptions *options)
{
  OxPackedLayout layout = { model->kernels, setup->precision, setup->quantize };
  /* Packing alone is nearly as quick as reading what was packed, unless there is much of it. */
  guint64 least = setup->quantize != OX_QUANTIZE_NONE ? 1 : 16;

  if ((options != NULL && options->no_packed_cache) || setup->packed_bytes / least < ox_packed_cache_get_least_bytes ())
    return NULL;
  return ox_packed_cache_open (model->weights, &layout, setup->packed_bytes);
}

/* Network, and with it all that takes time. */
static gboolean
load_networks (
  OxModel *model, const OxModelSetup *setup, const OxModelOptions *options, LoadProgress *state, GError **error)
{
  OxLoader loader = {
    .weights = model->weights, .config = model->config, .progress = load_progress, .user_data = state
  };

  /* Sessions have operations of their own, which load nothing: so the cache is known to these alone, and only for now. */
  OxOpsCpuOptions ops_options = model->ops_options;
  OxPackedCache *cache = open_cache (model, setup, options);
  gboolean ok;

  ops_options.cache = cache;
  model->ops = loader.ops = ox_ops_cpu_new (&ops_options);
  for (guint i = 0; i < ox_weights_get_n_tensors (model->weights); i++)
    state->total += ox_weights_get_tensor (model->weights, i)->n_bytes;
  model->network = ox_network_load (&loader, error);
  ok = model->network != NULL &&
       ox_model_load_drafter (model, &loader, options != NULL ? options->drafter : NULL, state->cancellable, error);
  model->packed_path = ox_packed_cache_close (cache, ok);
  return ok;
}

OxModel *
ox_model_load_opened (const char *path,
                      OxWeights *weights,
                      OxConfig *config,
                      const OxModelOptions *options,
                      gboolean with_tokenizer,
                      OxProgressFunc progress,
                      gpointer user_data,
                      GCancellable *cancellable,
                      GError **error)
{
  g_autoptr (OxModel) model = g_new0 (OxModel, 1);
  LoadProgress state = {
    .func = progress, .user_data = user_data, .cancellable = cancellable, .thread = g_thread_self ()
  };
  OxProfileClock clock = { .profiler = &model->profiler };
  OxModelSetup setup;

  g_atomic_ref_count_init (&model->ref_count);
  model->stop_ids = g_array_new (FALSE, FALSE, sizeof (guint32));
  model->kernels = ox_kernels ();
  model->weights = weights;
  model->config = config;
  ox_profile_start (&clock, OX_PROFILE_LOAD);
  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return NULL;
  model->plan = ox_model_plan_weights (path, weights, config, options, &setup, error);
  if (model->plan == NULL || !check_memory (model->plan, options, error))
    return NULL;
  ox_profile_lap (&clock, OX_PROFILE_TOKENIZER);
  if (!load_text (model, path, with_tokenizer, cancellable, error))
    return NULL;
  ox_profile_lap (&clock, OX_PROFILE_LOAD);
  model->state_options = setup.state;
  ox_model_read_sampling (path, config, &model->default_sampling);
  if (ox_weights_get_gguf (weights) != NULL)
    ox_model_read_gguf_sampling (ox_weights_get_gguf (weights), &model->default_sampling);

  model->pool = ox_pool_new (options != NULL ? options->threads : 0);
  if (model->pool == NULL) {
    g_set_error_literal (error, OX_ERROR, OX_ERROR_NO_MEMORY, "Not enough memory for worker threads");
    return NULL;
  }
  model->ops_options = (OxOpsCpuOptions) {
    .kernels = model->kernels,
    .pool = model->pool,
    .precision = setup.precision,
    .quantize = setup.quantize,
    .profiler = &model->profiler,
  };
  if (!load_networks (model, &setup, options, &state, error))
    return NULL;
  if (progress != NULL)
    progress (1.0, user_data);
  ox_profile_stop (&clock);
  return g_steal_pointer (&model);
}

OxModel *
ox_model_ref (OxModel *model)
{
  g_atomic_ref_count_inc (&model->ref_count);
  return model;
}

void
ox_model_unref (OxModel *model)
{
  if (model == NULL || !g_atomic_ref_count_dec (&model->ref_count))
    return;
  ox_model_free_drafter (model);
  ox_network_free (model->network, model->ops);
  if (model->ops != NULL)
    model->ops->free (model->ops);
  g_clear_pointer (&model->pool, ox_pool_free);
  g_clear_pointer (&model->tokenizer, ox_tokenizer_unref);
  g_clear_pointer (&model->weights, ox_weights_free);
  g_clear_pointer (&model->config, ox_config_free);
  ox_model_plan_free (model->plan);
  g_array_unref (model->stop_ids);
  g_free (model->packed_path);
  g_free (model);
}

const OxModelPlan *
ox_model_get_plan (OxModel *model)
{
  return model->plan;
}

OxTokenizer *
ox_model_get_tokenizer (OxModel *model)
{
  return model->tokenizer;
}

void
ox_model_get_default_sampling (OxModel *model, OxSampling *sampling)
{
  *sampling = model->default_sampling;
}

void
ox_model_set_power_saving (OxModel *model, gboolean power_saving)
{
  ox_pool_set_limit (model->pool, power_saving ? MAX (ox_pool_threads (model->pool) / 2, 1) : 0);
}

void
ox_model_get_profile (OxModel *model, OxProfile *profile)
{
  ox_profiler_read (&model->profiler, profile);
}

void
ox_model_reset_profile (OxModel *model)
{
  ox_profiler_reset (&model->profiler);
}

GArray *
ox_model_encode_text (
  OxModel *model, const char *text, gsize len, gboolean parse_control, GCancellable *cancellable, GError **error)
{
  g_autoptr (GArray) ids = g_array_new (FALSE, FALSE, sizeof (guint32));
  gint64 bos = ox_tokenizer_get_bos (model->tokenizer);

  if (ox_tokenizer_get_add_bos (model->tokenizer) && bos >= 0) {
    guint32 id = (guint32) bos;
    g_array_append_val (ids, id);
  }
  if (!ox_tokenizer_encode_text (model->tokenizer, text, len, parse_control, ids, cancellable, error))
    return NULL;
  return g_steal_pointer (&ids);
}

/* A base model sees the texts themselves, one after the other, and continues the last. */
static GArray *
encode_plain (OxModel *model, const OxChat *chat, GCancellable *cancellable, GError **error)
{
  g_autoptr (GString) text = g_string_new (NULL);

  for (guint i = 0; i < ox_chat_get_length (chat); i++) {
    const char *message = ox_chat_get_text (chat, i);

    /* An answer follows its prompt directly, since it continued it. */
    if (text->len > 0 && ox_chat_get_role (chat, i) != OX_ROLE_ASSISTANT)
      g_string_append (text, "\n\n");
    g_string_append (text, message);
  }
  return ox_model_encode_text (model, text->str, text->len, FALSE, cancellable, error);
}

GArray *
ox_model_encode_chat (
  OxModel *model, const OxChat *chat, gboolean *in_thinking, GCancellable *cancellable, GError **error)
{
  guint n = ox_chat_get_length (chat);
  gboolean continues = n > 0 && ox_chat_get_role (chat, n - 1) == OX_ROLE_ASSISTANT;
  g_autoptr (OxPrompt) prompt = NULL;
  g_autoptr (GArray) ids = NULL;

  if (in_thinking != NULL)
    *in_thinking = FALSE;
  if (model->chat_format == NULL)
    return encode_plain (model, chat, cancellable, error);
  prompt = ox_chat_format_render (model->chat_format, chat, model->tokenizer, !continues, continues, error);
  if (prompt == NULL)
    return NULL;
  ids = g_array_new (FALSE, FALSE, sizeof (guint32));
  if (!ox_prompt_encode (prompt, model->tokenizer, ids, cancellable, error))
    return NULL;
  if (in_thinking != NULL)
    *in_thinking = prompt->in_thinking;
  return g_steal_pointer (&ids);
}

gboolean
ox_model_count_tokens (OxModel *model, const OxChat *chat, guint *n_tokens, GCancellable *cancellable, GError **error)
{
  g_autoptr (GArray) ids = ox_model_encode_chat (model, chat, NULL, cancellable, error);

  if (ids == NULL)
    return FALSE;
  *n_tokens = ids->len;
  return TRUE;
}
