/* A scripted engine in place of the real one, for prepared scenes and for tests of the window.
 *
 * Any file is a model, named after the file. A name that contains "damaged" or "unsupported" is one of those, so that the
 * window can be seen to say so.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-scene-engine.h"

#include "ox-scene-texts.h"

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
  if (g_str_has_suffix (lower, "-assistant.gguf")) {
    g_set_error (error, OX_ERROR, OX_ERROR_DRAFTER, "%s: This is a drafter: it cannot answer by itself", name);
    return NULL;
  }
  if (g_str_has_suffix (lower, ".gguf"))
    name[strlen (name) - strlen (".gguf")] = '\0';

  OxModelPlan *result = g_new0 (OxModelPlan, 1);
  gboolean large = strstr (lower, "27b") != NULL;
  guint64 parameters = large ? 27000000000 : strstr (lower, "4b") != NULL ? 3880000000 : 999900000;
  result->path = g_strdup (path);
  result->name = g_strdup (name);
  gboolean capable = strstr (lower, "gemma 4") != NULL;
  result->architecture = g_strdup (capable ? "gemma4" : "gemma3");
  result->format = g_strdup ("Q4_K_M");
  result->chat_format = capable ? "gemma4" : "gemma3";
  result->capabilities = OX_CAPABILITY_CHAT | (capable ? OX_CAPABILITY_THINK | OX_CAPABILITY_TOOLS : 0);
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
set_power_saving (gpointer model, gboolean power_saving)
{
}

static void
get_default_sampling (gpointer model, OxSampling *sampling)
{
  *sampling = (OxSampling) { .temperature = 1, .top_p = 1, .repetition_penalty = 1 };
}

/* A session knows no more than what is done with a conversation that is too long. */
static gpointer
session_new (gpointer model, GError **error)
{
  return g_new0 (OxContextPolicy, 1);
}

static void
session_set_toolbox (gpointer session, OxToolbox *toolbox, guint max_rounds)
{
}

static void
session_set_context_policy (gpointer session, OxContextPolicy policy)
{
  *(OxContextPolicy *) session = policy;
}

static void
session_set_speculation (gpointer session, OxSpeculation speculation)
{
}

static guint
count (const OxChat *chat)
{
  guint n = ox_chat_get_length (chat) > 1 ? 960 : 110;

  for (guint i = 0; i < ox_chat_get_length (chat); i++)
    n += (guint) strlen (ox_chat_get_text (chat, i)) / 4;
  return get_script (NULL) == OX_SCENE_FULL ? CONTEXT_LENGTH + n : n;
}

static gboolean
session_measure (gpointer session, const OxChat *chat, OxContextUse *use, GCancellable *cancellable, GError **error)
{
  *use = (OxContextUse) { .prompt_tokens = count (chat), .reused_tokens = 900, .context_length = CONTEXT_LENGTH };
  if (*(OxContextPolicy *) session == OX_CONTEXT_DROP_OLDEST && use->prompt_tokens > CONTEXT_LENGTH) {
    use->dropped_messages = 12;
    use->dropped_tokens = 3400;
  }
  return !g_cancellable_set_error_if_cancelled (cancellable, error);
}

static gboolean
count_tokens (gpointer model, const OxChat *chat, guint *n_tokens, GCancellable *cancellable, GError **error)
{
  *n_tokens = count (chat);
  return !g_cancellable_set_error_if_cancelled (cancellable, error);
}

/* An answer that is on its way. */
typedef struct {
  OxEvent event;
  OxEventFunc on_event;
  gpointer user_data;
  GCancellable *cancellable;
} Telling;

static void
tell (Telling *telling, OxEventType type, const char *text)
{
  telling->event.type = type;
  telling->event.text = text;
  telling->on_event (&telling->event, telling->user_data);
  telling->event.text = NULL;
}

static gboolean
tell_pieces (Telling *telling, OxEventType type, const char *text, GError **error)
{
  OxStatistics *statistics = &telling->event.statistics;

  for (const char *at = text; *at != '\0';) {
    gsize n = MIN (strlen (at), PIECE_BYTES);
    while (((guchar) at[n] & 0xc0) == 0x80)
      n++;
    g_autofree char *piece = g_strndup (at, n);
    statistics->answer_tokens += 3;
    statistics->drafted_tokens += 2;
    statistics->accepted_tokens += 1;
    statistics->decode_seconds = statistics->answer_tokens / TOKENS_PER_SECOND;
    tell (telling, type, piece);
    at += n;
    if (g_cancellable_set_error_if_cancelled (telling->cancellable, error))
      return FALSE;
    g_usleep (1000);
  }
  return TRUE;
}

static void
tell_call (
  Telling *telling, const char *id, const char *name, const char *arguments, const char *result, gboolean failed)
{
  telling->event.tool_id = id;
  telling->event.tool_name = name;
  telling->event.tool_arguments = arguments;
  tell (telling, OX_EVENT_TOOL_CALL, NULL);
  telling->event.tool_arguments = NULL;
  telling->event.failed = failed;
  if (result != NULL)
    tell (telling, OX_EVENT_TOOL_RESULT, result);
  telling->event.tool_id = telling->event.tool_name = NULL;
  telling->event.failed = FALSE;
}

static void
tell_tools (Telling *telling)
{
  tell_call (telling, "call_1", "get_date_time", "{\"date\": \"2026-12-01\", \"until\": \"2026-12-14\"}",
             "{\"weekday\": \"Tuesday\", \"days\": 13}", FALSE);
  tell_call (telling, "call_2", "calculate", "{\"expression\": \"37*12\"}", "{\"result\": \"444\"}", FALSE);
  tell_call (telling, "call_3", "convert_units", "{\"value\": 3, \"from\": \"ft\", \"to\": \"m\"}",
             "{\"result\": \"0.9144 m\"}", FALSE);
  tell_call (telling, "call_4", "read_attachment", "{\"name\": \"tides.txt\"}",
             "there is no file “tides.txt”; there are none", TRUE);
  tell_call (telling, "call_5", "lookup_tide", "{\"place\": \"lock\", \"days\": [7, 10, 14]}", "0.9, 0.2, 1.3", FALSE);
  tell (telling, OX_EVENT_TOOL_MALFORMED, "<tool_call>calculate(37*");
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
  Telling telling = {
    .event = { .statistics = { .prompt_tokens = 980, .context_length = CONTEXT_LENGTH, .first_token_seconds = 0.6 } },
    .on_event = on_event,
    .user_data = user_data,
    .cancellable = cancellable,
  };
  gboolean ok = TRUE;

  if (script == OX_SCENE_FAILING) {
    g_set_error (error, OX_ERROR, OX_ERROR_NO_MEMORY,
                 "the conversation state needs 812 MB, but only 204 MB of memory are available");
    telling.event.reason = OX_END_ERROR;
    ok = FALSE;
  } else if (script == OX_SCENE_READING) {
    telling.event.done = 2410;
    telling.event.total = 6512;
    tell (&telling, OX_EVENT_PREFILL, NULL);
    ok = stay (cancellable, error);
  } else {
    if (*(OxContextPolicy *) session == OX_CONTEXT_DROP_OLDEST && script == OX_SCENE_FULL) {
      telling.event.done = 12;
      telling.event.total = 40;
      tell (&telling, OX_EVENT_CONTEXT, NULL);
    }
    telling.event.done = telling.event.total = 980;
    tell (&telling, OX_EVENT_PREFILL, NULL);
    if (script == OX_SCENE_THINKING || script == OX_SCENE_TOOLS)
      ok = tell_pieces (&telling, OX_EVENT_THINKING, ox_scene_thinking, error);
    if (ok && script == OX_SCENE_THINKING)
      ok = stay (cancellable, error);
    if (ok && script == OX_SCENE_TOOLS)
      tell_tools (&telling);
    ok = ok && tell_pieces (&telling, OX_EVENT_TEXT, answer, error);
    if (ok && (script == OX_SCENE_WRITING || script == OX_SCENE_TOOLS))
      ok = stay (cancellable, error);
  }

  if (!ok && telling.event.reason != OX_END_ERROR)
    telling.event.reason = OX_END_CANCELLED;
  tell (&telling, OX_EVENT_END, NULL);
  return ok;
}

static int cache_cleared; /* atomic */

static guint64
packed_cache_get_bytes (void)
{
  return g_atomic_int_get (&cache_cleared) ? 0 : 3200000000;
}

static gboolean
packed_cache_clear (GError **error)
{
  g_atomic_int_set (&cache_cleared, TRUE);
  return TRUE;
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
    .set_power_saving = set_power_saving,
    .get_default_sampling = get_default_sampling,
    .session_new = session_new,
    .session_free = g_free,
    .session_set_toolbox = session_set_toolbox,
    .session_set_context_policy = session_set_context_policy,
    .session_set_speculation = session_set_speculation,
    .session_measure = session_measure,
    .count_tokens = count_tokens,
    .generate = generate,
    .get_memory = get_memory,
    .packed_cache_get_bytes = packed_cache_get_bytes,
    .packed_cache_clear = packed_cache_clear,
  };
  return &backend;
}
