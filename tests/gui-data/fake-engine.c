/* See support.h: the engine that does as it is told.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "support.h"

#include <string.h>

#define CONTEXT_LENGTH 1000

typedef struct {
  OxModelPlan plan;
} FakeModel;

typedef struct {
  OxToolbox *toolbox;
  OxContextPolicy policy;
  OxSpeculation speculation;
} FakeSession;

static GMutex mutex;
static FakeScript script;
static Stage stage;
static guint n_loads;
static guint n_sessions;
static guint n_generates;
static guint n_plans;
static int n_alive;
static guint n_measures;
static char *last_chat;
static char *last_drafter;
static OxModelOptions last_options;
static guint last_n_tools;
static OxContextPolicy last_policy;
static OxSpeculation last_speculation;
static OxSampling last_sampling;
static gboolean last_power_saving;

void
fake_engine_set_script (const FakeScript *new_script)
{
  g_mutex_lock (&mutex);
  script = *new_script;
  stage = STAGE_NONE;
  n_loads = n_sessions = n_generates = n_plans = n_measures = 0;
  last_power_saving = FALSE;
  g_clear_pointer (&last_chat, g_free);
  g_mutex_unlock (&mutex);
}

Stage
fake_engine_get_stage (void)
{
  g_mutex_lock (&mutex);
  Stage value = stage;
  g_mutex_unlock (&mutex);
  return value;
}

guint
fake_engine_count_loads (void)
{
  g_mutex_lock (&mutex);
  guint value = n_loads;
  g_mutex_unlock (&mutex);
  return value;
}

guint
fake_engine_count_sessions (void)
{
  g_mutex_lock (&mutex);
  guint value = n_sessions;
  g_mutex_unlock (&mutex);
  return value;
}

guint
fake_engine_count_generates (void)
{
  g_mutex_lock (&mutex);
  guint value = n_generates;
  g_mutex_unlock (&mutex);
  return value;
}

guint
fake_engine_count_plans (void)
{
  g_mutex_lock (&mutex);
  guint value = n_plans;
  g_mutex_unlock (&mutex);
  return value;
}

guint
fake_engine_count_measures (void)
{
  g_mutex_lock (&mutex);
  guint value = n_measures;
  g_mutex_unlock (&mutex);
  return value;
}

char *
fake_engine_dup_drafter (void)
{
  g_mutex_lock (&mutex);
  char *value = g_strdup (last_drafter);
  g_mutex_unlock (&mutex);
  return value;
}

OxModelOptions
fake_engine_get_options (void)
{
  g_mutex_lock (&mutex);
  OxModelOptions value = last_options;
  g_mutex_unlock (&mutex);
  return value;
}

guint
fake_engine_get_n_tools (void)
{
  g_mutex_lock (&mutex);
  guint value = last_n_tools;
  g_mutex_unlock (&mutex);
  return value;
}

OxContextPolicy
fake_engine_get_policy (void)
{
  g_mutex_lock (&mutex);
  OxContextPolicy value = last_policy;
  g_mutex_unlock (&mutex);
  return value;
}

OxSpeculation
fake_engine_get_speculation (void)
{
  g_mutex_lock (&mutex);
  OxSpeculation value = last_speculation;
  g_mutex_unlock (&mutex);
  return value;
}

char *
fake_engine_dup_chat (void)
{
  g_mutex_lock (&mutex);
  char *value = g_strdup (last_chat);
  g_mutex_unlock (&mutex);
  return value;
}

OxSampling
fake_engine_get_sampling (void)
{
  g_mutex_lock (&mutex);
  OxSampling value = last_sampling;
  g_mutex_unlock (&mutex);
  return value;
}

int
fake_engine_count_alive (void)
{
  return g_atomic_int_get (&n_alive);
}

/* Enters a stage; FALSE when the script says that it fails there, or when it was cancelled in an endless one. */
static gboolean
enter (Stage new_stage, GCancellable *cancellable, GError **error)
{
  FakeScript now;

  g_mutex_lock (&mutex);
  stage = new_stage;
  now = script;
  g_mutex_unlock (&mutex);
  if (now.fail == new_stage) {
    g_set_error (error, OX_ERROR, now.fail_code, "fake.gguf: failed in stage %d", new_stage);
    return FALSE;
  }
  if (now.endless == new_stage) {
    while (!g_cancellable_is_cancelled (cancellable))
      g_usleep (1000);
    g_usleep (now.deaf * 1000);
  }
  return !g_cancellable_set_error_if_cancelled (cancellable, error);
}

static OxModelPlan *
plan (const char *path, const OxModelOptions *options, GCancellable *cancellable, GError **error)
{
  g_autofree char *content = NULL;
  g_autofree char *file =
    g_file_test (path, G_FILE_TEST_IS_DIR) ? g_build_filename (path, "config.json", NULL) : g_strdup (path);
  OxModelPlan *result;

  g_mutex_lock (&mutex);
  n_plans++;
  last_options = options != NULL ? *options : (OxModelOptions) { 0 };
  g_mutex_unlock (&mutex);
  if (!g_file_get_contents (file, &content, NULL, NULL)) {
    g_set_error (error, OX_ERROR, OX_ERROR_NOT_FOUND, "%s: no such file", path);
    return NULL;
  }
  if (g_str_has_prefix (content, "unsupported")) {
    g_set_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED, "%s: architecture: found “odd”", path);
    return NULL;
  }
  if (g_str_has_prefix (content, "drafter")) {
    g_set_error (error, OX_ERROR, OX_ERROR_DRAFTER, "%s: This is a drafter: it cannot answer by itself", path);
    return NULL;
  }
  if (!g_str_has_prefix (content, "ok") && !g_str_has_prefix (content, "base")) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: magic: found “%.4s”, expected “GGUF”", path, content);
    return NULL;
  }
  result = g_new0 (OxModelPlan, 1);
  result->path = g_strdup (path);
  result->name = g_path_get_basename (path);
  result->format = g_strdup ("Q8_0");
  result->capabilities = g_str_has_prefix (content, "ok") ? OX_CAPABILITY_CHAT : 0;
  result->weight_bytes = g_ascii_strtoull (strchr (content, ' ') != NULL ? strchr (content, ' ') : "100", NULL, 10);
  result->memory_needed = result->weight_bytes;
  result->memory_available = 1000;
  result->fit = result->memory_needed > result->memory_available ? OX_FIT_NOT : OX_FIT_WELL;
  return result;
}

static void
plan_free (OxModelPlan *result)
{
  g_free (result->path);
  g_free (result->name);
  g_free (result->format);
  g_free (result);
}

static gpointer
load (const char *path,
      const OxModelOptions *options,
      OxProgressFunc progress,
      gpointer user_data,
      GCancellable *cancellable,
      GError **error)
{
  FakeModel *model;

  g_mutex_lock (&mutex);
  n_loads++;
  last_options = *options;
  g_free (last_drafter);
  last_drafter = g_strdup (options->drafter != NULL ? options->drafter : "");
  g_mutex_unlock (&mutex);
  if (script.bad_drafter && options->drafter != NULL) {
    g_set_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED, "%s is no drafter that %s can use", options->drafter, path);
    return NULL;
  }
  if (progress != NULL)
    progress (0.25, user_data);
  if (!enter (STAGE_LOAD, cancellable, error))
    return NULL;
  if (progress != NULL)
    progress (1, user_data);
  model = g_new0 (FakeModel, 1);
  model->plan.name = (char *) "Fake";
  model->plan.weight_bytes = 12345;
  model->plan.kv_bytes_per_token = 10;
  model->plan.context_length = CONTEXT_LENGTH;
  g_mutex_lock (&mutex);
  model->plan.capabilities = OX_CAPABILITY_CHAT | script.capabilities;
  g_mutex_unlock (&mutex);
  g_atomic_int_inc (&n_alive);
  return model;
}

static void
unload (gpointer model)
{
  g_free (model);
  g_atomic_int_add (&n_alive, -1);
}

static const OxModelPlan *
get_plan (gpointer model)
{
  return &((FakeModel *) model)->plan;
}

static void
set_power_saving (gpointer model, gboolean power_saving)
{
  g_assert_nonnull (model);
  g_mutex_lock (&mutex);
  last_power_saving = power_saving;
  g_mutex_unlock (&mutex);
}

gboolean
fake_engine_get_power_saving (void)
{
  g_mutex_lock (&mutex);
  gboolean value = last_power_saving;
  g_mutex_unlock (&mutex);
  return value;
}

static void
get_default_sampling (gpointer model, OxSampling *sampling)
{
  if (!script.no_sampling)
    *sampling = (OxSampling) { .temperature = 0.5f, .top_k = 20, .top_p = 0.8f, .repetition_penalty = 1.1f };
}

static gpointer
session_new (gpointer model, GError **error)
{
  g_mutex_lock (&mutex);
  n_sessions++;
  g_mutex_unlock (&mutex);
  if (!enter (STAGE_SESSION, NULL, error))
    return NULL;
  g_atomic_int_inc (&n_alive);
  return g_new0 (FakeSession, 1);
}

static void
session_free (gpointer data)
{
  FakeSession *session = data;

  g_clear_pointer (&session->toolbox, ox_toolbox_unref);
  g_free (session);
  g_atomic_int_add (&n_alive, -1);
}

static void
session_set_toolbox (gpointer data, OxToolbox *toolbox, guint max_rounds)
{
  FakeSession *session = data;

  g_clear_pointer (&session->toolbox, ox_toolbox_unref);
  session->toolbox = toolbox != NULL ? ox_toolbox_ref (toolbox) : NULL;
}

static void
session_set_context_policy (gpointer session, OxContextPolicy policy)
{
  ((FakeSession *) session)->policy = policy;
}

static void
session_set_speculation (gpointer session, OxSpeculation speculation)
{
  ((FakeSession *) session)->speculation = speculation;
}

static guint
measure (const OxChat *chat)
{
  guint value = 0;

  for (guint i = 0; i < ox_chat_get_length (chat); i++)
    value += (guint) strlen (ox_chat_get_text (chat, i));
  g_mutex_lock (&mutex);
  n_measures++;
  if (script.measured > 0)
    value = script.measured;
  g_mutex_unlock (&mutex);
  return value;
}

static gboolean
session_measure (gpointer session, const OxChat *chat, OxContextUse *use, GCancellable *cancellable, GError **error)
{
  *use = (OxContextUse) { .prompt_tokens = measure (chat), .reused_tokens = 5, .context_length = CONTEXT_LENGTH };
  if (((FakeSession *) session)->policy == OX_CONTEXT_DROP_OLDEST && use->prompt_tokens > CONTEXT_LENGTH) {
    use->dropped_messages = 2;
    use->dropped_tokens = use->prompt_tokens - CONTEXT_LENGTH / 2;
  }
  return !g_cancellable_set_error_if_cancelled (cancellable, error);
}

static gboolean
count_tokens (gpointer model, const OxChat *chat, guint *n_tokens, GCancellable *cancellable, GError **error)
{
  *n_tokens = measure (chat);
  return !g_cancellable_set_error_if_cancelled (cancellable, error);
}

static void
tell (OxEvent *event, OxEventType type, const char *text, OxEventFunc on_event, gpointer user_data)
{
  event->type = type;
  event->text = text;
  on_event (event, user_data);
  event->text = NULL;
}

static gboolean
call_tools (const FakeScript *now,
            FakeSession *session,
            OxEvent *event,
            OxEventFunc on_event,
            gpointer user_data,
            GCancellable *cancellable,
            GError **error)
{
  if (now->malformed)
    tell (event, OX_EVENT_TOOL_MALFORMED, "calculate(37*", on_event, user_data);
  for (guint i = 0; now->calls != NULL && now->calls[i] != NULL; i++) {
    g_autofree char *id = g_strdup_printf ("call_%u", i + 1);
    g_autofree char *result = NULL;

    event->tool_id = id;
    event->tool_name = now->calls[i];
    event->tool_arguments = "{\"expression\":\"37*12\"}";
    tell (event, OX_EVENT_TOOL_CALL, NULL, on_event, user_data);
    event->failed = session->toolbox == NULL;
    result = session->toolbox != NULL ? ox_toolbox_call (session->toolbox, event->tool_name, event->tool_arguments,
                                                         &event->failed, cancellable, error)
                                      : g_strdup ("no such tool");
    if (result == NULL)
      return FALSE;
    event->tool_arguments = NULL;
    tell (event, OX_EVENT_TOOL_RESULT, result, on_event, user_data);
    event->tool_id = event->tool_name = NULL;
    event->failed = FALSE;
    tell (event, OX_EVENT_PREFILL, NULL, on_event, user_data);
  }
  return TRUE;
}

static gboolean
answer (FakeSession *session,
        OxEvent *event,
        OxEventFunc on_event,
        gpointer user_data,
        GCancellable *cancellable,
        GError **error)
{
  FakeScript now;

  g_mutex_lock (&mutex);
  now = script;
  g_mutex_unlock (&mutex);
  event->done = now.dropped;
  event->statistics.context_length = CONTEXT_LENGTH;
  event->statistics.prompt_tokens = 12;
  if (now.dropped > 0)
    tell (event, OX_EVENT_CONTEXT, NULL, on_event, user_data);
  event->done = 3;
  event->total = 12;
  tell (event, OX_EVENT_PREFILL, NULL, on_event, user_data);
  if (!enter (STAGE_PREFILL, cancellable, error))
    return FALSE;
  for (guint i = 0; i < now.n_thoughts; i++) {
    g_autofree char *piece = g_strdup_printf ("thought%u ", i);

    tell (event, OX_EVENT_THINKING, piece, on_event, user_data);
    g_usleep (now.piece_delay);
  }
  if (!enter (STAGE_THINK, cancellable, error) ||
      !call_tools (&now, session, event, on_event, user_data, cancellable, error))
    return FALSE;
  for (guint i = 0; i < now.n_pieces; i++) {
    g_autofree char *piece = g_strdup_printf ("word%u ", i);

    if (now.piece_delay > 0)
      g_usleep (now.piece_delay);
    if (g_cancellable_set_error_if_cancelled (cancellable, error))
      return FALSE;
    event->statistics.answer_tokens = i + 1;
    event->statistics.decode_seconds = (i + 1) * 0.01;
    event->statistics.first_token_seconds = 0.25;
    tell (event, OX_EVENT_TEXT, piece, on_event, user_data);
  }
  return enter (STAGE_DECODE, cancellable, error);
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
  static const char *const roles[] = { "system", "user", "assistant", "tool" };
  FakeSession *fake = session;
  g_autoptr (GString) text = g_string_new (NULL);
  OxEvent event = { .type = OX_EVENT_PREFILL };
  gboolean ok;

  for (guint i = 0; i < ox_chat_get_length (chat); i++)
    g_string_append_printf (text, "%s: %s\n", roles[ox_chat_get_role (chat, i)], ox_chat_get_text (chat, i));
  g_mutex_lock (&mutex);
  n_generates++;
  g_free (last_chat);
  last_chat = g_strdup (text->str);
  last_sampling = *sampling;
  last_n_tools = fake->toolbox != NULL ? ox_toolbox_get_length (fake->toolbox) : 0;
  last_policy = fake->policy;
  last_speculation = fake->speculation;
  g_mutex_unlock (&mutex);

  ok = answer (fake, &event, on_event, user_data, cancellable, error);
  event.type = OX_EVENT_END;
  g_mutex_lock (&mutex);
  event.reason = ok ? script.end_reason : g_cancellable_is_cancelled (cancellable) ? OX_END_CANCELLED : OX_END_ERROR;
  g_mutex_unlock (&mutex);
  on_event (&event, user_data);
  return ok;
}

static void
get_memory (guint64 *available, guint64 *total)
{
  *available = 1000;
  *total = 4000;
}

static guint64 cache_bytes = 3200000000;

static guint64
packed_cache_get_bytes (void)
{
  g_mutex_lock (&mutex);
  guint64 value = cache_bytes;
  g_mutex_unlock (&mutex);
  return value;
}

static gboolean
packed_cache_clear (GError **error)
{
  g_mutex_lock (&mutex);
  cache_bytes = 0;
  g_mutex_unlock (&mutex);
  return TRUE;
}

const OxEngineBackend *
fake_engine_get_backend (void)
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
    .session_free = session_free,
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
