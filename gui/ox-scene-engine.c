/* A scripted engine in place of the real one, for prepared scenes and for tests of the window.
 *
 * Any file is a model, named after the file. A name that contains "damaged" or "unsupported" is one of those, so that the
 * window can be seen to say so.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-scene-engine.h"

#include <string.h>

#define CONTEXT_LENGTH 8192
#define TOKENS_PER_SECOND 18.4
#define PIECE_BYTES 12

static GMutex mutex;
static OxSceneScript current_script;
static char *current_answer;

/**
 * ox_scene_engine_set_script:
 * @script: what the next jobs do
 * @answer: (nullable): what they answer, as far as they come
 */
void
ox_scene_engine_set_script (OxSceneScript script, const char *answer)
{
  g_mutex_lock (&mutex);
  current_script = script;
  g_free (current_answer);
  current_answer = g_strdup (answer);
  g_mutex_unlock (&mutex);
}

static OxSceneScript
get_script (char **answer)
{
  g_mutex_lock (&mutex);
  OxSceneScript script = current_script;
  if (answer != NULL)
    *answer = g_strdup (current_answer != NULL ? current_answer : "Yes.");
  g_mutex_unlock (&mutex);
  return script;
}

static gboolean
stay (GCancellable *cancellable, GError **error)
{
  while (!g_cancellable_is_cancelled (cancellable))
    g_usleep (5000);
  return !g_cancellable_set_error_if_cancelled (cancellable, error);
}

static OxModelPlan *
plan (const char *path, const OxModelOptions *options, GCancellable *cancellable, GError **error)
{
  g_autofree char *name = g_filename_display_basename (path);
  g_autofree char *lower = g_ascii_strdown (name, -1);

  if (strstr (lower, "damaged") != NULL) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED,
                 "%s: tensor “blk.3.ffn_up.weight” ends at byte 812646400, but the file has 402653184 bytes", name);
    return NULL;
  }
  if (strstr (lower, "unsupported") != NULL) {
    g_set_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED,
                 "%s: general.architecture is “mamba”, expected “llama” or “gemma3”", name);
    return NULL;
  }
  if (g_str_has_suffix (lower, ".gguf"))
    name[strlen (name) - strlen (".gguf")] = '\0';

  OxModelPlan *result = g_new0 (OxModelPlan, 1);
  gboolean large = strstr (lower, "27b") != NULL;
  guint64 parameters = large ? 27000000000 : strstr (lower, "4b") != NULL ? 3880000000 : 999900000;
  result->path = g_strdup (path);
  result->name = g_strdup (name);
  result->architecture = g_strdup ("gemma3");
  result->format = g_strdup ("Q4_K_M");
  result->chat_format = "gemma3";
  result->capabilities = OX_CAPABILITY_CHAT;
  result->parameters = parameters;
  result->file_bytes = parameters * 64 / 100;
  result->weight_bytes = result->file_bytes;
  result->kv_bytes_per_token = 26624;
  result->state_bytes = result->kv_bytes_per_token * CONTEXT_LENGTH;
  result->context_length = CONTEXT_LENGTH;
  result->context_length_max = 32768;
  result->memory_needed = result->weight_bytes + result->state_bytes;
  result->memory_available = 6300000000;
  result->fit = large ? OX_FIT_NOT : OX_FIT_WELL;
  return result;
}

static void
plan_free (OxModelPlan *self)
{
  g_free (self->path);
  g_free (self->name);
  g_free (self->architecture);
  g_free (self->format);
  g_free (self->note);
  g_free (self);
}

static gpointer
load (const char *path,
      const OxModelOptions *options,
      OxProgressFunc progress,
      gpointer user_data,
      GCancellable *cancellable,
      GError **error)
{
  if (progress != NULL)
    progress (0.42, user_data);
  if (get_script (NULL) == OX_SCENE_LOADING) {
    stay (cancellable, error);
    return NULL;
  }
  return plan (path, options, cancellable, error);
}

static void
unload (gpointer model)
{
  plan_free (model);
}

static const OxModelPlan *
get_plan (gpointer model)
{
  return model;
}

static void
get_default_sampling (gpointer model, OxSampling *sampling)
{
  *sampling = (OxSampling) { .temperature = 1, .top_p = 1, .repetition_penalty = 1 };
}

static gpointer
session_new (gpointer model, GError **error)
{
  return g_new0 (char, 1);
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
  g_autofree char *answer = NULL;
  OxSceneScript script = get_script (&answer);
  OxEvent event = {
    .type = OX_EVENT_PREFILL,
    .statistics = { .prompt_tokens = 980, .context_length = CONTEXT_LENGTH, .first_token_seconds = 0.6 },
  };
  gboolean ok = TRUE;

  if (script == OX_SCENE_FAILING) {
    g_set_error (error, OX_ERROR, OX_ERROR_NO_MEMORY,
                 "the conversation state needs 812 MB, but only 204 MB of memory are available");
    event.reason = OX_END_ERROR;
    ok = FALSE;
  } else if (script == OX_SCENE_READING) {
    event.done = 2410;
    event.total = 6512;
    on_event (&event, user_data);
    ok = stay (cancellable, error);
  } else {
    event.done = event.total = 980;
    on_event (&event, user_data);
    event.type = OX_EVENT_TEXT;
    for (const char *at = answer; *at != '\0' && ok;) {
      gsize n = MIN (strlen (at), PIECE_BYTES);
      while (((guchar) at[n] & 0xc0) == 0x80)
        n++;
      g_autofree char *piece = g_strndup (at, n);
      event.text = piece;
      event.statistics.answer_tokens += 3;
      event.statistics.decode_seconds = event.statistics.answer_tokens / TOKENS_PER_SECOND;
      on_event (&event, user_data);
      at += n;
      ok = !g_cancellable_set_error_if_cancelled (cancellable, error);
      g_usleep (1000);
    }
    if (ok && script == OX_SCENE_WRITING)
      ok = stay (cancellable, error);
  }

  event.type = OX_EVENT_END;
  event.text = NULL;
  if (!ok && event.reason != OX_END_ERROR)
    event.reason = OX_END_CANCELLED;
  on_event (&event, user_data);
  return ok;
}

static void
get_memory (guint64 *available, guint64 *total)
{
  *available = 6300000000;
  *total = 16000000000;
}

/**
 * ox_scene_engine_get_backend:
 *
 * Returns: the scripted engine
 */
const OxEngineBackend *
ox_scene_engine_get_backend (void)
{
  static const OxEngineBackend backend = {
    .plan = plan,
    .plan_free = plan_free,
    .load = load,
    .unload = unload,
    .get_plan = get_plan,
    .get_default_sampling = get_default_sampling,
    .session_new = session_new,
    .session_free = g_free,
    .generate = generate,
    .get_memory = get_memory,
  };
  return &backend;
}
