/* See ox-engine.h.
 *
 * The engine has two halves: Core belongs to the engine thread, and the properties belong to the main thread. What the first has to
 * tell the second lies in a Report behind a mutex, and one idle source at a time takes it over.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-engine.h"

#include "ox-engine-job.h"
#include "ox-log.h"
#include "ox-thread-checks.h"

/* Conversations whose state is kept, so that switching between two costs no second reading. */
#define MAX_SESSIONS 2

typedef struct {
  char *conversation_id;
  gpointer session;
  guint n_tokens;
} Session;

/* Engine thread only. */
typedef struct {
  char *path;
  gpointer model;
  GQueue sessions; /* Session, the last used first */
} Core;

typedef struct {
  OxEngineState state;
  char *path;
  char *name;
  double load_progress;
  guint64 weight_bytes;
  guint64 session_bytes;
  guint64 memory_available;
  guint64 memory_total;
} Report;

struct _OxEngine {
  GObject parent_instance;

  const OxEngineBackend *backend;
  OxJobQueue *queue;
  Core core;
  Report shown; /* main thread only: the properties */

  GMutex mutex;
  Report report;
  gboolean report_pending;
  OxModelOptions options;
  GHashTable *drafters;
  OxToolbox *toolbox;
  OxSpeculation speculation;
  gboolean power_saving;
  gpointer model; /* the core's, for the main thread to tell about power */
};

/* The report being loaded for, with what the caller wants to hear. */
typedef struct {
  OxEngine *engine;
  OxProgressFunc progress;
  gpointer user_data;
} Loading;

G_DEFINE_ENUM_TYPE (OxEngineState,
                    ox_engine_state,
                    G_DEFINE_ENUM_VALUE (OX_ENGINE_EMPTY, "empty"),
                    G_DEFINE_ENUM_VALUE (OX_ENGINE_LOADING, "loading"),
                    G_DEFINE_ENUM_VALUE (OX_ENGINE_READY, "ready"))

G_DEFINE_FINAL_TYPE (OxEngine, ox_engine, G_TYPE_OBJECT)

enum {
  PROP_0,
  PROP_STATE,
  PROP_BUSY,
  PROP_MODEL_PATH,
  PROP_MODEL_NAME,
  PROP_LOAD_PROGRESS,
  PROP_WEIGHT_BYTES,
  PROP_SESSION_BYTES,
  PROP_MEMORY_AVAILABLE,
  PROP_MEMORY_TOTAL,
  N_PROPS
};

enum { PERMISSION, N_SIGNALS };

static GParamSpec *props[N_PROPS];
static guint signals[N_SIGNALS];

static void
session_free (OxEngine *self, Session *session)
{
  self->backend->session_free (session->session);
  g_free (session->conversation_id);
  g_free (session);
}

static void
ox_engine_get_property (GObject *object, guint prop_id, GValue *value, GParamSpec *pspec)
{
  OxEngine *self = OX_ENGINE (object);

  switch (prop_id) {
  case PROP_STATE:
    g_value_set_enum (value, self->shown.state);
    break;
  case PROP_BUSY:
    g_value_set_boolean (value, ox_engine_get_busy (self));
    break;
  case PROP_MODEL_PATH:
    g_value_set_string (value, self->shown.path);
    break;
  case PROP_MODEL_NAME:
    g_value_set_string (value, self->shown.name);
    break;
  case PROP_LOAD_PROGRESS:
    g_value_set_double (value, self->shown.load_progress);
    break;
  case PROP_WEIGHT_BYTES:
    g_value_set_uint64 (value, self->shown.weight_bytes);
    break;
  case PROP_SESSION_BYTES:
    g_value_set_uint64 (value, self->shown.session_bytes);
    break;
  case PROP_MEMORY_AVAILABLE:
    g_value_set_uint64 (value, self->shown.memory_available);
    break;
  case PROP_MEMORY_TOTAL:
    g_value_set_uint64 (value, self->shown.memory_total);
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, prop_id, pspec);
  }
}

static void
ox_engine_finalize (GObject *object)
{
  OxEngine *self = OX_ENGINE (object);
  Session *session;

  /* No thread is left that could use these: jobs hold a reference. */
  while ((session = g_queue_pop_head (&self->core.sessions)) != NULL)
    session_free (self, session);
  g_clear_pointer (&self->core.model, self->backend->unload);
  g_free (self->core.path);
  g_free (self->shown.path);
  g_free (self->shown.name);
  g_free (self->report.path);
  g_free (self->report.name);
  g_clear_pointer (&self->drafters, g_hash_table_unref);
  g_clear_pointer (&self->toolbox, ox_toolbox_unref);
  g_clear_object (&self->queue);
  g_mutex_clear (&self->mutex);
  G_OBJECT_CLASS (ox_engine_parent_class)->finalize (object);
}

static void
ox_engine_class_init (OxEngineClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GParamFlags flags = G_PARAM_READABLE | G_PARAM_STATIC_STRINGS | G_PARAM_EXPLICIT_NOTIFY;

  object_class->get_property = ox_engine_get_property;
  object_class->finalize = ox_engine_finalize;

  props[PROP_STATE] = g_param_spec_enum ("state", NULL, NULL, OX_TYPE_ENGINE_STATE, OX_ENGINE_EMPTY, flags);
  props[PROP_BUSY] = g_param_spec_boolean ("busy", NULL, NULL, FALSE, flags);
  props[PROP_MODEL_PATH] = g_param_spec_string ("model-path", NULL, NULL, NULL, flags);
  props[PROP_MODEL_NAME] = g_param_spec_string ("model-name", NULL, NULL, NULL, flags);
  props[PROP_LOAD_PROGRESS] = g_param_spec_double ("load-progress", NULL, NULL, 0, 1, 0, flags);
  props[PROP_WEIGHT_BYTES] = g_param_spec_uint64 ("weight-bytes", NULL, NULL, 0, G_MAXUINT64, 0, flags);
  props[PROP_SESSION_BYTES] = g_param_spec_uint64 ("session-bytes", NULL, NULL, 0, G_MAXUINT64, 0, flags);
  props[PROP_MEMORY_AVAILABLE] = g_param_spec_uint64 ("memory-available", NULL, NULL, 0, G_MAXUINT64, 0, flags);
  props[PROP_MEMORY_TOTAL] = g_param_spec_uint64 ("memory-total", NULL, NULL, 0, G_MAXUINT64, 0, flags);
  g_object_class_install_properties (object_class, N_PROPS, props);

  signals[PERMISSION] =
    g_signal_new ("permission", OX_TYPE_ENGINE, G_SIGNAL_RUN_LAST, 0, g_signal_accumulator_true_handled, NULL, NULL,
                  G_TYPE_BOOLEAN, 1, OX_TYPE_PERMISSION);
}

static void
ox_engine_init (OxEngine *self)
{
  g_mutex_init (&self->mutex);
  g_queue_init (&self->core.sessions);
}

static void
queue_length_cb (OxEngine *self)
{
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_BUSY]);
}

OxEngine *
ox_engine_new (const OxEngineBackend *backend)
{
  OxEngine *self = g_object_new (OX_TYPE_ENGINE, NULL);

  OX_ASSERT_MAIN_THREAD ();
  self->backend = backend != NULL ? backend : ox_engine_backend_get_real ();
  self->queue = ox_job_queue_new ("ox-engine");
  g_signal_connect_object (self->queue, "notify::length", G_CALLBACK (queue_length_cb), self, G_CONNECT_SWAPPED);
  return self;
}

/* ---- From the report to the properties ---- */

#define SHOW(field, prop)                                                                                              \
  if (self->shown.field != report.field) {                                                                             \
    self->shown.field = report.field;                                                                                  \
    g_object_notify_by_pspec (G_OBJECT (self), props[prop]);                                                           \
  }

static gboolean
show_report (gpointer user_data)
{
  OxEngine *self = user_data;
  g_autofree char *path = NULL;
  g_autofree char *name = NULL;
  Report report;

  OX_ASSERT_MAIN_THREAD ();
  g_mutex_lock (&self->mutex);
  self->report_pending = FALSE;
  report = self->report;
  path = g_strdup (report.path);
  name = g_strdup (report.name);
  g_mutex_unlock (&self->mutex);

  g_object_freeze_notify (G_OBJECT (self));
  if (g_set_str (&self->shown.path, path))
    g_object_notify_by_pspec (G_OBJECT (self), props[PROP_MODEL_PATH]);
  if (g_set_str (&self->shown.name, name))
    g_object_notify_by_pspec (G_OBJECT (self), props[PROP_MODEL_NAME]);
  SHOW (state, PROP_STATE)
  SHOW (load_progress, PROP_LOAD_PROGRESS)
  SHOW (weight_bytes, PROP_WEIGHT_BYTES)
  SHOW (session_bytes, PROP_SESSION_BYTES)
  SHOW (memory_available, PROP_MEMORY_AVAILABLE)
  SHOW (memory_total, PROP_MEMORY_TOTAL)
  g_object_thaw_notify (G_OBJECT (self));
  return G_SOURCE_REMOVE;
}

/* With the mutex held. */
static void
report_changed (OxEngine *self)
{
  if (self->report_pending)
    return;
  self->report_pending = TRUE;
  g_idle_add_full (G_PRIORITY_DEFAULT, show_report, g_object_ref (self), g_object_unref);
}

/* Any thread but the main one: reading /proc may wait. */
static void
measure_memory (OxEngine *self)
{
  guint64 available = 0;
  guint64 total = 0;

  OX_ASSERT_ENGINE_THREAD ();
  self->backend->get_memory (&available, &total);
  g_mutex_lock (&self->mutex);
  self->report.memory_available = available;
  self->report.memory_total = total;
  report_changed (self);
  g_mutex_unlock (&self->mutex);
}

/* Engine thread: after the core has changed. */
static void
report_core (OxEngine *self)
{
  const OxModelPlan *plan = self->core.model != NULL ? self->backend->get_plan (self->core.model) : NULL;
  guint64 n_tokens = 0;

  for (GList *l = self->core.sessions.head; l != NULL; l = l->next)
    n_tokens += ((Session *) l->data)->n_tokens;
  g_mutex_lock (&self->mutex);
  self->report.state = self->core.model != NULL ? OX_ENGINE_READY : OX_ENGINE_EMPTY;
  g_set_str (&self->report.path, self->core.path);
  g_set_str (&self->report.name, plan != NULL ? plan->name : NULL);
  self->report.load_progress = self->core.model != NULL ? 1 : 0;
  self->report.weight_bytes = plan != NULL ? plan->weight_bytes : 0;
  self->report.session_bytes = plan != NULL ? n_tokens * plan->kv_bytes_per_token : 0;
  report_changed (self);
  g_mutex_unlock (&self->mutex);
  measure_memory (self);
}

/* ---- The core, on the engine thread ---- */

static void
clear_core (OxEngine *self)
{
  Session *session;

  g_mutex_lock (&self->mutex);
  self->model = NULL;
  g_mutex_unlock (&self->mutex);
  while ((session = g_queue_pop_head (&self->core.sessions)) != NULL)
    session_free (self, session);
  g_clear_pointer (&self->core.model, self->backend->unload);
  g_clear_pointer (&self->core.path, g_free);
}

void
ox_engine_drop_model (OxEngine *self)
{
  OX_ASSERT_ENGINE_THREAD ();
  clear_core (self);
  report_core (self);
}

void
ox_engine_drop_session (OxEngine *self, const char *conversation_id)
{
  OX_ASSERT_ENGINE_THREAD ();
  for (GList *l = self->core.sessions.head; l != NULL; l = l->next) {
    Session *session = l->data;
    if (g_str_equal (session->conversation_id, conversation_id)) {
      g_queue_delete_link (&self->core.sessions, l);
      session_free (self, session);
      report_core (self);
      break;
    }
  }
}

static void
load_progress_cb (double fraction, gpointer user_data)
{
  Loading *loading = user_data;
  OxEngine *self = loading->engine;

  g_mutex_lock (&self->mutex);
  self->report.load_progress = CLAMP (fraction, 0, 1);
  report_changed (self);
  g_mutex_unlock (&self->mutex);
  if (loading->progress != NULL)
    loading->progress (fraction, loading->user_data);
}

gpointer
ox_engine_take_model (OxEngine *self,
                      const char *path,
                      OxProgressFunc progress,
                      gpointer user_data,
                      GCancellable *cancellable,
                      GError **error)
{
  Loading loading = { self, progress, user_data };
  g_autofree char *base = NULL;
  g_autofree char *drafter = NULL;
  OxModelOptions options;

  OX_ASSERT_ENGINE_THREAD ();
  if (self->core.model != NULL && g_str_equal (self->core.path, path))
    return self->core.model;

  /* The old one goes first: there may be no room for two. */
  clear_core (self);
  base = g_filename_display_basename (path);
  g_mutex_lock (&self->mutex);
  options = self->options;
  if (self->drafters != NULL && self->speculation == OX_SPECULATION_AUTO)
    options.drafter = drafter = g_strdup (g_hash_table_lookup (self->drafters, path));
  self->report.state = OX_ENGINE_LOADING;
  g_set_str (&self->report.path, path);
  g_set_str (&self->report.name, base);
  self->report.load_progress = 0;
  self->report.weight_bytes = 0;
  self->report.session_bytes = 0;
  report_changed (self);
  g_mutex_unlock (&self->mutex);
  load_progress_cb (0, &loading);

  ox_info ("engine", "Loading %s", path);
  self->core.model =
    self->backend->load (path, &options, load_progress_cb, &loading, cancellable, drafter != NULL ? NULL : error);
  if (self->core.model == NULL && drafter != NULL) {
    /* Answers that come less soon are better than none. */
    ox_info ("engine", "Not loaded with the drafter %s", drafter);
    options.drafter = NULL;
    self->core.model = self->backend->load (path, &options, load_progress_cb, &loading, cancellable, error);
  }
  if (self->core.model != NULL) {
    self->core.path = g_strdup (path);
    g_mutex_lock (&self->mutex);
    self->model = self->core.model;
    self->backend->set_power_saving (self->model, self->power_saving);
    g_mutex_unlock (&self->mutex);
  }
  ox_info ("engine", self->core.model != NULL ? "Loaded %s" : "Not loaded: %s", path);
  report_core (self);
  return self->core.model;
}

gpointer
ox_engine_take_session (OxEngine *self, const char *conversation_id, GError **error)
{
  Session *session;
  gpointer handle;

  OX_ASSERT_ENGINE_THREAD ();
  g_return_val_if_fail (self->core.model != NULL, NULL);
  for (GList *l = self->core.sessions.head; l != NULL; l = l->next) {
    session = l->data;
    if (g_str_equal (session->conversation_id, conversation_id)) {
      g_queue_unlink (&self->core.sessions, l);
      g_queue_push_head_link (&self->core.sessions, l);
      return session->session;
    }
  }
  /* Room first, for the same reason as with models. */
  while (self->core.sessions.length >= MAX_SESSIONS)
    session_free (self, g_queue_pop_tail (&self->core.sessions));
  handle = self->backend->session_new (self->core.model, error);
  if (handle == NULL)
    return NULL;
  session = g_new0 (Session, 1);
  session->conversation_id = g_strdup (conversation_id);
  session->session = handle;
  g_queue_push_head (&self->core.sessions, session);
  return handle;
}

void
ox_engine_set_session_tokens (OxEngine *self, const char *conversation_id, guint n_tokens)
{
  OX_ASSERT_ENGINE_THREAD ();
  for (GList *l = self->core.sessions.head; l != NULL; l = l->next) {
    Session *session = l->data;
    if (g_str_equal (session->conversation_id, conversation_id))
      session->n_tokens = n_tokens;
  }
  report_core (self);
}

gpointer
ox_engine_find_model (OxEngine *self, const char *path)
{
  OX_ASSERT_ENGINE_THREAD ();
  return g_strcmp0 (self->core.path, path) == 0 ? self->core.model : NULL;
}

gpointer
ox_engine_find_session (OxEngine *self, const char *conversation_id)
{
  OX_ASSERT_ENGINE_THREAD ();
  for (GList *l = self->core.sessions.head; l != NULL; l = l->next) {
    Session *session = l->data;
    if (g_str_equal (session->conversation_id, conversation_id))
      return session->session;
  }
  return NULL;
}

OxToolbox *
ox_engine_ref_toolbox (OxEngine *self)
{
  OxToolbox *toolbox;

  g_mutex_lock (&self->mutex);
  toolbox = self->toolbox != NULL ? ox_toolbox_ref (self->toolbox) : NULL;
  g_mutex_unlock (&self->mutex);
  return toolbox;
}

OxSpeculation
ox_engine_get_speculation (OxEngine *self)
{
  OxSpeculation speculation;

  g_mutex_lock (&self->mutex);
  speculation = self->speculation;
  g_mutex_unlock (&self->mutex);
  return speculation;
}

/* ---- The main thread's side ---- */

const OxEngineBackend *
ox_engine_get_backend (OxEngine *self)
{
  return self->backend;
}

OxEngineState
ox_engine_get_state (OxEngine *self)
{
  OX_ASSERT_MAIN_THREAD ();
  return self->shown.state;
}

gboolean
ox_engine_get_busy (OxEngine *self)
{
  return ox_job_queue_get_length (self->queue) > 0;
}

const char *
ox_engine_get_model_path (OxEngine *self)
{
  OX_ASSERT_MAIN_THREAD ();
  return self->shown.path;
}

const char *
ox_engine_get_model_name (OxEngine *self)
{
  OX_ASSERT_MAIN_THREAD ();
  return self->shown.name;
}

double
ox_engine_get_load_progress (OxEngine *self)
{
  return self->shown.load_progress;
}

guint64
ox_engine_get_weight_bytes (OxEngine *self)
{
  return self->shown.weight_bytes;
}

guint64
ox_engine_get_session_bytes (OxEngine *self)
{
  return self->shown.session_bytes;
}

guint64
ox_engine_get_memory_available (OxEngine *self)
{
  return self->shown.memory_available;
}

guint64
ox_engine_get_memory_total (OxEngine *self)
{
  return self->shown.memory_total;
}

static gboolean
unref_cb (gpointer object)
{
  g_object_unref (object);
  return G_SOURCE_REMOVE;
}

/* A last reference is dropped on the main thread only. */
static void
unref_on_main_thread (gpointer object)
{
  g_idle_add (unref_cb, object);
}

static void
measure_in_thread (GTask *task, gpointer source, gpointer self, GCancellable *cancellable)
{
  measure_memory (self);
  g_task_return_boolean (task, TRUE);
}

void
ox_engine_refresh_memory (OxEngine *self)
{
  g_autoptr (GTask) task = g_task_new (NULL, NULL, NULL, NULL);

  OX_ASSERT_MAIN_THREAD ();
  g_task_set_source_tag (task, ox_engine_refresh_memory);
  g_task_set_task_data (task, g_object_ref (self), unref_on_main_thread);
  g_task_run_in_thread (task, measure_in_thread);
}

void
ox_engine_set_options (OxEngine *self, const OxModelOptions *options)
{
  g_mutex_lock (&self->mutex);
  self->options = *options;
  g_mutex_unlock (&self->mutex);
}

void
ox_engine_set_power_saving (OxEngine *self, gboolean power_saving)
{
  g_mutex_lock (&self->mutex);
  self->power_saving = power_saving;
  if (self->model != NULL)
    self->backend->set_power_saving (self->model, power_saving);
  g_mutex_unlock (&self->mutex);
}

OxModelOptions
ox_engine_get_options (OxEngine *self)
{
  OxModelOptions options;

  g_mutex_lock (&self->mutex);
  options = self->options;
  g_mutex_unlock (&self->mutex);
  return options;
}

void
ox_engine_set_drafters (OxEngine *self, GHashTable *drafters)
{
  g_autoptr (GHashTable) old = NULL;

  g_mutex_lock (&self->mutex);
  old = g_steal_pointer (&self->drafters);
  self->drafters = g_hash_table_ref (drafters);
  g_mutex_unlock (&self->mutex);
}

void
ox_engine_set_speculation (OxEngine *self, OxSpeculation speculation)
{
  g_mutex_lock (&self->mutex);
  self->speculation = speculation;
  g_mutex_unlock (&self->mutex);
}

/* What a tool asks, on its way to the main thread. */
typedef struct {
  OxEngine *engine;
  OxPermission *permission;
} Question;

static gboolean
ask_cb (gpointer user_data)
{
  Question *question = user_data;
  gboolean handled = FALSE;

  g_signal_emit (question->engine, signals[PERMISSION], 0, question->permission, &handled);
  if (!handled)
    ox_permission_answer (question->permission, FALSE);
  g_object_unref (question->permission);
  g_object_unref (question->engine);
  g_free (question);
  return G_SOURCE_REMOVE;
}

static gboolean
permission_cb (const char *name, const char *arguments, gpointer user_data, GCancellable *cancellable)
{
  OxEngine *self = user_data;
  g_autoptr (OxPermission) permission = ox_permission_new (name, arguments);
  Question *question = g_new0 (Question, 1);

  question->engine = g_object_ref (self);
  question->permission = g_object_ref (permission);
  g_idle_add_full (G_PRIORITY_DEFAULT, ask_cb, question, NULL);
  return ox_permission_wait (permission, cancellable);
}

void
ox_engine_set_toolbox (OxEngine *self, OxToolbox *toolbox)
{
  g_autoptr (OxToolbox) old = NULL;

  if (toolbox != NULL)
    ox_toolbox_set_permission (toolbox, permission_cb, self);
  g_mutex_lock (&self->mutex);
  old = g_steal_pointer (&self->toolbox);
  self->toolbox = toolbox != NULL ? ox_toolbox_ref (toolbox) : NULL;
  g_mutex_unlock (&self->mutex);
}

static void
cache_bytes_in_thread (GTask *task, gpointer source, gpointer backend, GCancellable *cancellable)
{
  guint64 *bytes = g_new (guint64, 1);

  *bytes = ((const OxEngineBackend *) backend)->packed_cache_get_bytes ();
  g_task_return_pointer (task, bytes, g_free);
}

void
ox_engine_get_cache_bytes (OxEngine *self, GAsyncReadyCallback callback, gpointer user_data)
{
  /* Without the engine, which may not be finalized on another thread. */
  g_autoptr (GTask) task = g_task_new (NULL, NULL, callback, user_data);

  g_task_set_source_tag (task, ox_engine_get_cache_bytes);
  g_task_set_task_data (task, (gpointer) self->backend, NULL);
  g_task_run_in_thread (task, cache_bytes_in_thread);
}

guint64
ox_engine_get_cache_bytes_finish (OxEngine *self, GAsyncResult *result)
{
  g_autofree guint64 *bytes = g_task_propagate_pointer (G_TASK (result), NULL);

  return bytes != NULL ? *bytes : 0;
}

static void
clear_cache_in_thread (GTask *task, gpointer source, gpointer backend, GCancellable *cancellable)
{
  GError *error = NULL;

  if (((const OxEngineBackend *) backend)->packed_cache_clear (&error))
    g_task_return_boolean (task, TRUE);
  else
    g_task_return_error (task, error);
}

void
ox_engine_clear_cache (OxEngine *self, GAsyncReadyCallback callback, gpointer user_data)
{
  g_autoptr (GTask) task = g_task_new (NULL, NULL, callback, user_data);

  g_task_set_source_tag (task, ox_engine_clear_cache);
  g_task_set_task_data (task, (gpointer) self->backend, NULL);
  g_task_run_in_thread (task, clear_cache_in_thread);
}

gboolean
ox_engine_clear_cache_finish (OxEngine *self, GAsyncResult *result, GError **error)
{
  return g_task_propagate_boolean (G_TASK (result), error);
}

void
ox_engine_push (OxEngine *self, OxJob *job, OxJobPriority priority)
{
  ox_job_queue_push (self->queue, job, priority);
}

static OxJob *
push_own (OxEngine *self, OxJob *job, OxJobPriority priority)
{
  ox_engine_push (self, job, priority);
  return job;
}

OxJob *
ox_engine_load (OxEngine *self, const char *path)
{
  return push_own (self, ox_engine_job_new_load (self, path), OX_JOB_NORMAL);
}

OxJob *
ox_engine_unload (OxEngine *self)
{
  return push_own (self, ox_engine_job_new_unload (self), OX_JOB_NORMAL);
}

void
ox_engine_forget_conversation (OxEngine *self, const char *conversation_id)
{
  g_object_unref (push_own (self, ox_engine_job_new_forget (self, conversation_id), OX_JOB_BACKGROUND));
}

gboolean
ox_engine_shutdown (OxEngine *self, gint64 timeout)
{
  return ox_job_queue_shutdown (self->queue, timeout);
}
