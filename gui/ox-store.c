/* See ox-store.h. Requests go to the store thread through a queue, and come back through another, with one wake of the main loop
 * for all that are ready.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-store.h"

#include "ox-log.h"
#include "ox-store-db.h"
#include "ox-thread-checks.h"

#include <glib/gi18n.h>

/* With nothing to do for so long, the store brings the write-ahead log into the file. */
#define IDLE_CHECKPOINT_SECONDS 5

typedef struct _Request Request;

/* On the store thread. The result is for ox_store_list_finish(), or NULL. */
typedef gboolean (*RequestFunc) (OxStore *self, Request *request, GError **error);

struct _Request {
  RequestFunc run;
  GTask *task;
  gboolean writes;
  gboolean quits;

  char *text; /* an id, or words to search for */
  char **ids;
  guint limit;
  gboolean flag;
  OxConversationRecord *conversation;
  GPtrArray *messages;

  gboolean ok;
  GPtrArray *result;
  GError *error;
};

struct _OxStore {
  GObject parent_instance;

  char *path;
  OxStoreState state;
  char *notice;
  gint64 last_write_failure;

  GThread *thread;
  GAsyncQueue *requests;
  OxStoreDb *db; /* store thread only */

  GMutex mutex;
  GCond exited_cond;
  gboolean exited;
  GQueue done; /* Request */
  gboolean wake_pending;
};

/* What opening found, for the main thread, which may not look into the file's structure. */
typedef struct {
  gboolean read_only;
  char *notice;
} Opened;

GQuark
ox_store_error_quark (void)
{
  return g_quark_from_static_string ("ox-store-error-quark");
}

G_DEFINE_ENUM_TYPE (OxStoreState,
                    ox_store_state,
                    G_DEFINE_ENUM_VALUE (OX_STORE_NEW, "new"),
                    G_DEFINE_ENUM_VALUE (OX_STORE_OPEN, "open"),
                    G_DEFINE_ENUM_VALUE (OX_STORE_READ_ONLY, "read-only"),
                    G_DEFINE_ENUM_VALUE (OX_STORE_FAILED, "failed"),
                    G_DEFINE_ENUM_VALUE (OX_STORE_CLOSED, "closed"))

G_DEFINE_FINAL_TYPE (OxStore, ox_store, G_TYPE_OBJECT)

enum { PROP_0, PROP_STATE, PROP_NOTICE, N_PROPS };
enum { NOTICE, WRITE_FAILED, N_SIGNALS };

static GParamSpec *props[N_PROPS];
static guint signals[N_SIGNALS];

static void
request_free (Request *request)
{
  g_clear_object (&request->task);
  g_free (request->text);
  g_strfreev (request->ids);
  ox_conversation_record_free (request->conversation);
  g_clear_pointer (&request->messages, g_ptr_array_unref);
  g_clear_pointer (&request->result, g_ptr_array_unref);
  g_clear_error (&request->error);
  g_free (request);
}

static void
opened_free (Opened *opened)
{
  g_free (opened->notice);
  g_free (opened);
}

static void
ox_store_get_property (GObject *object, guint prop_id, GValue *value, GParamSpec *pspec)
{
  OxStore *self = OX_STORE (object);

  switch (prop_id) {
  case PROP_STATE:
    g_value_set_enum (value, self->state);
    break;
  case PROP_NOTICE:
    g_value_set_string (value, self->notice);
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, prop_id, pspec);
  }
}

static void
ox_store_finalize (GObject *object)
{
  OxStore *self = OX_STORE (object);

  /* The thread holds a reference while it runs. */
  g_assert (self->thread == NULL);
  g_async_queue_unref (self->requests);
  g_queue_clear_full (&self->done, (GDestroyNotify) request_free);
  g_mutex_clear (&self->mutex);
  g_cond_clear (&self->exited_cond);
  g_free (self->path);
  g_free (self->notice);
  G_OBJECT_CLASS (ox_store_parent_class)->finalize (object);
}

static void
ox_store_class_init (OxStoreClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GParamFlags flags = G_PARAM_READABLE | G_PARAM_STATIC_STRINGS | G_PARAM_EXPLICIT_NOTIFY;

  object_class->get_property = ox_store_get_property;
  object_class->finalize = ox_store_finalize;

  props[PROP_STATE] = g_param_spec_enum ("state", NULL, NULL, OX_TYPE_STORE_STATE, OX_STORE_NEW, flags);
  props[PROP_NOTICE] = g_param_spec_string ("notice", NULL, NULL, NULL, flags);
  g_object_class_install_properties (object_class, N_PROPS, props);

  signals[NOTICE] = g_signal_new ("notice", OX_TYPE_STORE, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1,
                                  G_TYPE_STRING | G_SIGNAL_TYPE_STATIC_SCOPE);
  signals[WRITE_FAILED] = g_signal_new ("write-failed", OX_TYPE_STORE, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                        G_TYPE_NONE, 1, G_TYPE_STRING | G_SIGNAL_TYPE_STATIC_SCOPE);
}

static void
ox_store_init (OxStore *self)
{
  self->requests = g_async_queue_new_full ((GDestroyNotify) request_free);
  g_mutex_init (&self->mutex);
  g_cond_init (&self->exited_cond);
  g_queue_init (&self->done);
}

OxStore *
ox_store_new (const char *path)
{
  OxStore *self = g_object_new (OX_TYPE_STORE, NULL);

  OX_ASSERT_MAIN_THREAD ();
  self->path =
    path != NULL ? g_strdup (path) : g_build_filename (g_get_user_data_dir (), "oxinfer", "library.db", NULL);
  return self;
}

const char *
ox_store_get_path (OxStore *self)
{
  return self->path;
}

OxStoreState
ox_store_get_state (OxStore *self)
{
  return self->state;
}

const char *
ox_store_get_notice (OxStore *self)
{
  return self->notice;
}

static void
set_state (OxStore *self, OxStoreState state)
{
  if (self->state == state)
    return;
  self->state = state;
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_STATE]);
}

/* ---- Results, on the main thread ---- */

static void
report_write_failure (OxStore *self, const GError *error)
{
  gint64 now = g_get_monotonic_time ();

  if (self->last_write_failure != 0 && now - self->last_write_failure < G_USEC_PER_SEC)
    return;
  self->last_write_failure = now;
  if (g_error_matches (error, OX_STORE_ERROR, OX_STORE_ERROR_FULL)) {
    g_signal_emit (
      self, signals[WRITE_FAILED], 0,
      _ ("There is no space left on the disk, so this conversation is not saved. Make some space; it is saved "
         "with the next message."));
  } else if (g_error_matches (error, OX_STORE_ERROR, OX_STORE_ERROR_READ_ONLY)) {
    g_signal_emit (self, signals[WRITE_FAILED], 0,
                   _ ("The library of conversations cannot be written to, so this conversation is not saved."));
  } else {
    g_autofree char *sentence = g_strdup_printf (_ ("This conversation is not saved. %s."), error->message);
    g_signal_emit (self, signals[WRITE_FAILED], 0, sentence);
  }
}

static void
complete (OxStore *self, Request *request)
{
  if (request->error != NULL && request->writes) {
    ox_info ("store", "Not saved: %s", request->error->message);
    report_write_failure (self, request->error);
  }
  if (request->error != NULL)
    g_task_return_error (request->task, g_steal_pointer (&request->error));
  else if (request->result != NULL)
    g_task_return_pointer (request->task, g_steal_pointer (&request->result), (GDestroyNotify) g_ptr_array_unref);
  else
    g_task_return_boolean (request->task, TRUE);
}

static gboolean
complete_all (gpointer user_data)
{
  OxStore *self = user_data;
  Request *request;

  OX_ASSERT_MAIN_THREAD ();
  g_mutex_lock (&self->mutex);
  self->wake_pending = FALSE;
  while ((request = g_queue_pop_head (&self->done)) != NULL) {
    g_mutex_unlock (&self->mutex);
    complete (self, request);
    request_free (request);
    g_mutex_lock (&self->mutex);
  }
  g_mutex_unlock (&self->mutex);
  return G_SOURCE_REMOVE;
}

/* ---- The store thread ---- */

static void
run_request (OxStore *self, Request *request)
{
  GCancellable *cancellable = g_task_get_cancellable (request->task);

  if (!g_cancellable_set_error_if_cancelled (cancellable, &request->error))
    request->ok = request->run (self, request, &request->error);

  g_mutex_lock (&self->mutex);
  g_queue_push_tail (&self->done, request);
  if (!self->wake_pending) {
    self->wake_pending = TRUE;
    g_idle_add_full (G_PRIORITY_DEFAULT, complete_all, g_object_ref (self), g_object_unref);
  }
  g_mutex_unlock (&self->mutex);
}

static gpointer
store_thread (gpointer user_data)
{
  OxStore *self = user_data;
  gboolean quits = FALSE;

  while (!quits) {
    Request *request = self->db != NULL && self->db->dirty
                         ? g_async_queue_timeout_pop (self->requests, IDLE_CHECKPOINT_SECONDS * G_USEC_PER_SEC)
                         : g_async_queue_pop (self->requests);

    if (request == NULL) {
      sqlite3_wal_checkpoint_v2 (self->db->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
      self->db->dirty = FALSE;
      continue;
    }
    quits = request->quits;
    if (quits)
      request_free (request);
    else
      run_request (self, request);
  }
  g_clear_pointer (&self->db, ox_store_db_close);

  g_mutex_lock (&self->mutex);
  self->exited = TRUE;
  g_cond_signal (&self->exited_cond);
  g_mutex_unlock (&self->mutex);
  return NULL;
}

static gboolean
need_db (OxStore *self, GError **error)
{
  if (self->db != NULL)
    return TRUE;
  g_set_error_literal (error, OX_STORE_ERROR, OX_STORE_ERROR_OPEN, "The library of conversations is not open");
  return FALSE;
}

static gboolean
run_open (OxStore *self, Request *request, GError **error)
{
  Opened *opened = g_task_get_task_data (request->task);

  if (self->db == NULL)
    self->db = ox_store_db_open (self->path, error);
  if (self->db == NULL)
    return FALSE;
  opened->read_only = self->db->read_only;
  opened->notice = g_strdup (self->db->notice);
  return TRUE;
}

static gboolean
run_list_conversations (OxStore *self, Request *request, GError **error)
{
  return need_db (self, error) && (request->result = ox_store_db_list_conversations (self->db, error)) != NULL;
}

static gboolean
run_list_messages (OxStore *self, Request *request, GError **error)
{
  return need_db (self, error) &&
         (request->result = ox_store_db_list_messages (self->db, request->text, error)) != NULL;
}

static gboolean
run_search (OxStore *self, Request *request, GError **error)
{
  return need_db (self, error) &&
         (request->result = ox_store_db_search (self->db, request->text, request->limit,
                                                g_task_get_cancellable (request->task), error)) != NULL;
}

static gboolean
run_save (OxStore *self, Request *request, GError **error)
{
  return need_db (self, error) &&
         ox_store_db_save (self->db, request->conversation, request->messages, request->flag, error);
}

static gboolean
run_set_deleted (OxStore *self, Request *request, GError **error)
{
  return need_db (self, error) && ox_store_db_set_deleted (self->db, request->text, request->flag, error);
}

static gboolean
run_purge (OxStore *self, Request *request, GError **error)
{
  return need_db (self, error) && ox_store_db_purge (self->db, request->text, error);
}

static gboolean
run_remove_messages (OxStore *self, Request *request, GError **error)
{
  return need_db (self, error) && ox_store_db_remove_messages (self->db, (const char *const *) request->ids, error);
}

/* ---- Calls ---- */

static Request *
request_new (OxStore *self,
             RequestFunc run,
             gboolean writes,
             GCancellable *cancellable,
             GAsyncReadyCallback callback,
             gpointer user_data)
{
  Request *request = g_new0 (Request, 1);

  OX_ASSERT_MAIN_THREAD ();
  request->run = run;
  request->writes = writes;
  request->task = g_task_new (self, cancellable, callback, user_data);
  g_task_set_source_tag (request->task, (gpointer) run);
  return request;
}

static void
send (OxStore *self, Request *request)
{
  if (self->state == OX_STORE_CLOSED) {
    g_task_return_new_error (request->task, OX_STORE_ERROR, OX_STORE_ERROR_CLOSED,
                             "The library of conversations is closed");
    request_free (request);
    return;
  }
  if (self->thread == NULL)
    self->thread = g_thread_new ("ox-store", store_thread, g_object_ref (self));
  g_async_queue_push (self->requests, request);
}

static void
opened_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  OxStore *self = OX_STORE (source);
  g_autoptr (GTask) outer = user_data;
  g_autoptr (GError) error = NULL;
  Opened *opened = g_task_get_task_data (G_TASK (result));

  if (!g_task_propagate_boolean (G_TASK (result), &error)) {
    set_state (self, OX_STORE_FAILED);
    g_free (self->notice);
    self->notice = g_strdup_printf (_ ("Conversations cannot be saved. %s: %s"), error->message, self->path);
  } else {
    set_state (self, opened->read_only ? OX_STORE_READ_ONLY : OX_STORE_OPEN);
    g_set_str (&self->notice, opened->notice);
  }
  if (self->notice != NULL) {
    g_object_notify_by_pspec (G_OBJECT (self), props[PROP_NOTICE]);
    g_signal_emit (self, signals[NOTICE], 0, self->notice);
  }
  if (error != NULL)
    g_task_return_error (outer, g_steal_pointer (&error));
  else
    g_task_return_boolean (outer, TRUE);
}

void
ox_store_open (OxStore *self, GAsyncReadyCallback callback, gpointer user_data)
{
  GTask *outer = g_task_new (self, NULL, callback, user_data);
  Request *request = request_new (self, run_open, FALSE, NULL, opened_cb, outer);

  g_task_set_source_tag (outer, ox_store_open);
  g_task_set_task_data (request->task, g_new0 (Opened, 1), (GDestroyNotify) opened_free);
  send (self, request);
}

gboolean
ox_store_open_finish (OxStore *self, GAsyncResult *result, GError **error)
{
  return g_task_propagate_boolean (G_TASK (result), error);
}

gboolean
ox_store_close (OxStore *self, gint64 timeout)
{
  gboolean exited = TRUE;

  OX_ASSERT_MAIN_THREAD ();
  set_state (self, OX_STORE_CLOSED);
  if (self->thread != NULL) {
    gint64 deadline = timeout >= 0 ? g_get_monotonic_time () + timeout : G_MAXINT64;
    Request *request = g_new0 (Request, 1);

    request->quits = TRUE;
    g_async_queue_push (self->requests, request);
    g_mutex_lock (&self->mutex);
    while (!self->exited && g_cond_wait_until (&self->exited_cond, &self->mutex, deadline))
      ;
    exited = self->exited;
    g_mutex_unlock (&self->mutex);
    if (exited) {
      g_thread_join (g_steal_pointer (&self->thread));
      complete_all (self);
      g_object_unref (self);
    }
  }
  return exited;
}

void
ox_store_list_conversations (OxStore *self, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
  send (self, request_new (self, run_list_conversations, FALSE, cancellable, callback, user_data));
}

void
ox_store_list_messages (OxStore *self,
                        const char *conversation_id,
                        GCancellable *cancellable,
                        GAsyncReadyCallback callback,
                        gpointer user_data)
{
  Request *request = request_new (self, run_list_messages, FALSE, cancellable, callback, user_data);

  request->text = g_strdup (conversation_id);
  send (self, request);
}

void
ox_store_search (OxStore *self,
                 const char *text,
                 guint limit,
                 GCancellable *cancellable,
                 GAsyncReadyCallback callback,
                 gpointer user_data)
{
  Request *request = request_new (self, run_search, FALSE, cancellable, callback, user_data);

  request->text = g_strdup (text);
  request->limit = limit;
  send (self, request);
}

GPtrArray *
ox_store_list_finish (OxStore *self, GAsyncResult *result, GError **error)
{
  return g_task_propagate_pointer (G_TASK (result), error);
}

static void
send_save (OxStore *self,
           const OxConversationRecord *conversation,
           GPtrArray *messages,
           gboolean durable,
           GAsyncReadyCallback callback,
           gpointer user_data)
{
  Request *request = request_new (self, run_save, TRUE, NULL, callback, user_data);

  request->conversation = conversation != NULL ? ox_conversation_record_copy (conversation) : NULL;
  request->messages = messages;
  request->flag = durable;
  send (self, request);
}

void
ox_store_add_messages (OxStore *self,
                       const OxConversationRecord *conversation,
                       GPtrArray *messages,
                       GAsyncReadyCallback callback,
                       gpointer user_data)
{
  send_save (self, conversation, messages, TRUE, callback, user_data);
}

void
ox_store_save_message (OxStore *self, OxMessageRecord *message, GAsyncReadyCallback callback, gpointer user_data)
{
  GPtrArray *messages = g_ptr_array_new_with_free_func ((GDestroyNotify) ox_message_record_free);

  g_ptr_array_add (messages, message);
  send_save (self, NULL, messages, FALSE, callback, user_data);
}

void
ox_store_save_conversation (OxStore *self,
                            const OxConversationRecord *conversation,
                            GAsyncReadyCallback callback,
                            gpointer user_data)
{
  send_save (self, conversation, NULL, FALSE, callback, user_data);
}

void
ox_store_set_deleted (
  OxStore *self, const char *conversation_id, gboolean deleted, GAsyncReadyCallback callback, gpointer user_data)
{
  Request *request = request_new (self, run_set_deleted, TRUE, NULL, callback, user_data);

  request->text = g_strdup (conversation_id);
  request->flag = deleted;
  send (self, request);
}

void
ox_store_purge (OxStore *self, const char *conversation_id, GAsyncReadyCallback callback, gpointer user_data)
{
  Request *request = request_new (self, run_purge, TRUE, NULL, callback, user_data);

  request->text = g_strdup (conversation_id);
  send (self, request);
}

void
ox_store_remove_messages (OxStore *self, const char *const *ids, GAsyncReadyCallback callback, gpointer user_data)
{
  Request *request = request_new (self, run_remove_messages, TRUE, NULL, callback, user_data);

  request->ids = g_strdupv ((char **) ids);
  send (self, request);
}

gboolean
ox_store_write_finish (OxStore *self, GAsyncResult *result, GError **error)
{
  return g_task_propagate_boolean (G_TASK (result), error);
}
