/* See ox-conversation.h.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-conversation.h"

#include "ox-thread-checks.h"

#include <glib/gi18n.h>

/* Milliseconds after the last change of a draft. */
#define DRAFT_SAVE_MS 600

struct _OxConversation {
  GObject parent_instance;

  OxStore *store;
  char *id;
  char *title;
  gboolean title_is_custom;
  gboolean pinned;
  gint64 created;
  gint64 updated;
  char *draft;
  guint draft_source;
  char *model_path;
  GVariant *settings;
  char *snippet;
  gboolean temporary;
  gboolean loaded;
  GPtrArray *load_tasks; /* GTask, while loading */
  gboolean stored;       /* the store has been told of it */
  gboolean saved;

  GPtrArray *messages; /* OxMessage */
  GArray *positions;   /* gint64, of each message in the store */
  gint64 next_position;

  gpointer job;
  void (*stop) (gpointer job);
};

static void list_model_iface_init (GListModelInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE (OxConversation,
                               ox_conversation,
                               G_TYPE_OBJECT,
                               G_IMPLEMENT_INTERFACE (G_TYPE_LIST_MODEL, list_model_iface_init))

enum {
  PROP_0,
  PROP_ID,
  PROP_TITLE,
  PROP_PINNED,
  PROP_UPDATED,
  PROP_DRAFT,
  PROP_MODEL_PATH,
  PROP_ANSWERING,
  PROP_TEMPORARY,
  PROP_LOADED,
  PROP_SNIPPET,
  PROP_SAVED,
  PROP_SETTINGS,
  N_PROPS
};

static GParamSpec *props[N_PROPS];

static GType
get_item_type (GListModel *model)
{
  return OX_TYPE_MESSAGE;
}

static guint
get_n_items (GListModel *model)
{
  return OX_CONVERSATION (model)->messages->len;
}

static gpointer
get_item (GListModel *model, guint position)
{
  OxMessage *message = ox_conversation_get_message (OX_CONVERSATION (model), position);

  return message != NULL ? g_object_ref (message) : NULL;
}

static void
list_model_iface_init (GListModelInterface *iface)
{
  iface->get_item_type = get_item_type;
  iface->get_n_items = get_n_items;
  iface->get_item = get_item;
}

static void
ox_conversation_get_property (GObject *object, guint prop_id, GValue *value, GParamSpec *pspec)
{
  OxConversation *self = OX_CONVERSATION (object);

  switch (prop_id) {
  case PROP_ID:
    g_value_set_string (value, self->id);
    break;
  case PROP_TITLE:
    g_value_set_string (value, ox_conversation_get_title (self));
    break;
  case PROP_PINNED:
    g_value_set_boolean (value, self->pinned);
    break;
  case PROP_UPDATED:
    g_value_set_int64 (value, self->updated);
    break;
  case PROP_DRAFT:
    g_value_set_string (value, self->draft);
    break;
  case PROP_MODEL_PATH:
    g_value_set_string (value, self->model_path);
    break;
  case PROP_ANSWERING:
    g_value_set_boolean (value, self->job != NULL);
    break;
  case PROP_TEMPORARY:
    g_value_set_boolean (value, self->temporary);
    break;
  case PROP_LOADED:
    g_value_set_boolean (value, self->loaded);
    break;
  case PROP_SNIPPET:
    g_value_set_string (value, self->snippet);
    break;
  case PROP_SAVED:
    g_value_set_boolean (value, self->saved);
    break;
  case PROP_SETTINGS:
    g_value_set_variant (value, self->settings);
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, prop_id, pspec);
  }
}

static void
ox_conversation_set_property (GObject *object, guint prop_id, const GValue *value, GParamSpec *pspec)
{
  OxConversation *self = OX_CONVERSATION (object);

  switch (prop_id) {
  case PROP_PINNED:
    ox_conversation_set_pinned (self, g_value_get_boolean (value));
    break;
  case PROP_DRAFT:
    ox_conversation_set_draft (self, g_value_get_string (value));
    break;
  case PROP_MODEL_PATH:
    ox_conversation_set_model_path (self, g_value_get_string (value));
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, prop_id, pspec);
  }
}

static void
ox_conversation_dispose (GObject *object)
{
  ox_conversation_flush (OX_CONVERSATION (object));
  G_OBJECT_CLASS (ox_conversation_parent_class)->dispose (object);
}

static void
ox_conversation_finalize (GObject *object)
{
  OxConversation *self = OX_CONVERSATION (object);

  g_clear_object (&self->store);
  g_free (self->id);
  g_free (self->title);
  g_free (self->draft);
  g_free (self->model_path);
  g_free (self->snippet);
  g_variant_unref (self->settings);
  g_ptr_array_unref (self->load_tasks);
  g_ptr_array_unref (self->messages);
  g_array_unref (self->positions);
  G_OBJECT_CLASS (ox_conversation_parent_class)->finalize (object);
}

static void
ox_conversation_class_init (OxConversationClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GParamFlags read = G_PARAM_READABLE | G_PARAM_STATIC_STRINGS | G_PARAM_EXPLICIT_NOTIFY;
  GParamFlags read_write = read | G_PARAM_WRITABLE;

  object_class->get_property = ox_conversation_get_property;
  object_class->set_property = ox_conversation_set_property;
  object_class->dispose = ox_conversation_dispose;
  object_class->finalize = ox_conversation_finalize;

  props[PROP_ID] = g_param_spec_string ("id", NULL, NULL, NULL, read);
  props[PROP_TITLE] = g_param_spec_string ("title", NULL, NULL, NULL, read);
  props[PROP_PINNED] = g_param_spec_boolean ("pinned", NULL, NULL, FALSE, read_write);
  props[PROP_UPDATED] = g_param_spec_int64 ("updated", NULL, NULL, G_MININT64, G_MAXINT64, 0, read);
  props[PROP_DRAFT] = g_param_spec_string ("draft", NULL, NULL, "", read_write);
  props[PROP_MODEL_PATH] = g_param_spec_string ("model-path", NULL, NULL, NULL, read_write);
  props[PROP_ANSWERING] = g_param_spec_boolean ("answering", NULL, NULL, FALSE, read);
  props[PROP_TEMPORARY] = g_param_spec_boolean ("temporary", NULL, NULL, FALSE, read);
  props[PROP_LOADED] = g_param_spec_boolean ("loaded", NULL, NULL, FALSE, read);
  props[PROP_SNIPPET] = g_param_spec_string ("snippet", NULL, NULL, NULL, read);
  props[PROP_SAVED] = g_param_spec_boolean ("saved", NULL, NULL, TRUE, read);
  props[PROP_SETTINGS] = g_param_spec_variant ("settings", NULL, NULL, G_VARIANT_TYPE_VARDICT, NULL, read);
  g_object_class_install_properties (object_class, N_PROPS, props);
}

static void
ox_conversation_init (OxConversation *self)
{
  self->messages = g_ptr_array_new_with_free_func (g_object_unref);
  self->positions = g_array_new (FALSE, FALSE, sizeof (gint64));
  self->load_tasks = g_ptr_array_new_with_free_func (g_object_unref);
  self->draft = g_strdup ("");
  self->settings = g_variant_ref_sink (g_variant_new ("a{sv}", NULL));
  self->saved = TRUE;
}

OxConversation *
ox_conversation_new (OxStore *store, gboolean temporary)
{
  OxConversation *self = g_object_new (OX_TYPE_CONVERSATION, NULL);

  OX_ASSERT_MAIN_THREAD ();
  self->store = temporary || store == NULL ? NULL : g_object_ref (store);
  self->temporary = temporary;
  self->id = g_uuid_string_random ();
  self->created = self->updated = g_get_real_time ();
  self->loaded = TRUE;
  return self;
}

OxConversation *
ox_conversation_new_from_record (OxStore *store, const OxConversationRecord *record)
{
  OxConversation *self = g_object_new (OX_TYPE_CONVERSATION, NULL);

  OX_ASSERT_MAIN_THREAD ();
  self->store = g_object_ref (store);
  self->stored = TRUE;
  self->id = g_strdup (record->id);
  self->title = g_strdup (record->title);
  self->title_is_custom = record->title_is_custom;
  self->pinned = record->pinned;
  self->created = record->created;
  self->updated = record->updated;
  self->model_path = g_strdup (record->model_path);
  g_set_str (&self->draft, record->draft != NULL ? record->draft : "");
  if (record->settings != NULL) {
    /* Settings that cannot be read are as good as none. */
    GVariant *settings = g_variant_parse (G_VARIANT_TYPE_VARDICT, record->settings, NULL, NULL, NULL);
    if (settings != NULL) {
      g_variant_unref (self->settings);
      self->settings = settings;
    }
  }
  return self;
}

OxStore *
ox_conversation_get_store (OxConversation *self)
{
  return self->store;
}

const char *
ox_conversation_get_id (OxConversation *self)
{
  return self->id;
}

/* ---- Saving ---- */

static void
fill_record (OxConversation *self, OxConversationRecord *record, char **settings)
{
  *settings = g_variant_n_children (self->settings) > 0 ? g_variant_print (self->settings, TRUE) : NULL;
  *record = (OxConversationRecord) {
    .id = self->id,
    .title = self->title,
    .title_is_custom = self->title_is_custom,
    .pinned = self->pinned,
    .created = self->created,
    .updated = self->updated,
    .draft = *self->draft != '\0' ? self->draft : NULL,
    .model_path = self->model_path,
    .settings = *settings,
  };
}

static void
set_saved (OxConversation *self, gboolean saved)
{
  if (self->saved == saved)
    return;
  self->saved = saved;
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_SAVED]);
}

/* The row of the conversation itself. An empty conversation is no business of the store, but what was typed into it is. */
static void
save_row (OxConversation *self)
{
  g_autofree char *settings = NULL;
  OxConversationRecord record;

  if (self->store == NULL || (!self->stored && *self->draft == '\0'))
    return;
  fill_record (self, &record, &settings);
  ox_store_save_conversation (self->store, &record, NULL, NULL);
  self->stored = TRUE;
}

static gboolean
draft_timeout_cb (gpointer user_data)
{
  OxConversation *self = user_data;

  self->draft_source = 0;
  save_row (self);
  return G_SOURCE_REMOVE;
}

void
ox_conversation_flush (OxConversation *self)
{
  OX_ASSERT_MAIN_THREAD ();
  if (self->draft_source != 0) {
    g_clear_handle_id (&self->draft_source, g_source_remove);
    save_row (self);
  }
}

/* ---- Facts ---- */

const char *
ox_conversation_get_title (OxConversation *self)
{
  return self->title != NULL && *self->title != '\0' ? self->title : _ ("New Chat");
}

static void
update_title (OxConversation *self)
{
  g_autofree char *title = NULL;

  if (self->title_is_custom)
    return;
  for (guint i = 0; i < self->messages->len && (title == NULL || *title == '\0'); i++)
    if (ox_message_get_role (self->messages->pdata[i]) == OX_ROLE_USER) {
      g_free (title);
      title = ox_title_from_text (ox_message_get_text (self->messages->pdata[i]));
    }
  if (g_set_str (&self->title, title))
    g_object_notify_by_pspec (G_OBJECT (self), props[PROP_TITLE]);
}

void
ox_conversation_rename (OxConversation *self, const char *title)
{
  g_autofree char *stripped = g_strstrip (g_strdup (title != NULL ? title : ""));

  OX_ASSERT_MAIN_THREAD ();
  self->title_is_custom = *stripped != '\0';
  if (self->title_is_custom) {
    if (!g_set_str (&self->title, stripped))
      return;
    g_object_notify_by_pspec (G_OBJECT (self), props[PROP_TITLE]);
  } else if (self->loaded) {
    update_title (self);
  }
  save_row (self);
}

gboolean
ox_conversation_get_pinned (OxConversation *self)
{
  return self->pinned;
}

void
ox_conversation_set_pinned (OxConversation *self, gboolean pinned)
{
  OX_ASSERT_MAIN_THREAD ();
  pinned = !!pinned;
  if (self->pinned == pinned)
    return;
  self->pinned = pinned;
  save_row (self);
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_PINNED]);
}

gint64
ox_conversation_get_updated (OxConversation *self)
{
  return self->updated;
}

const char *
ox_conversation_get_draft (OxConversation *self)
{
  return self->draft;
}

void
ox_conversation_set_draft (OxConversation *self, const char *draft)
{
  OX_ASSERT_MAIN_THREAD ();
  if (!g_set_str (&self->draft, draft != NULL ? draft : ""))
    return;
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_DRAFT]);
  if (self->store == NULL)
    return;
  g_clear_handle_id (&self->draft_source, g_source_remove);
  self->draft_source = g_timeout_add (DRAFT_SAVE_MS, draft_timeout_cb, self);
}

const char *
ox_conversation_get_model_path (OxConversation *self)
{
  return self->model_path;
}

void
ox_conversation_set_model_path (OxConversation *self, const char *path)
{
  OX_ASSERT_MAIN_THREAD ();
  if (!g_set_str (&self->model_path, path))
    return;
  save_row (self);
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_MODEL_PATH]);
}

gboolean
ox_conversation_get_temporary (OxConversation *self)
{
  return self->temporary;
}

gboolean
ox_conversation_get_saved (OxConversation *self)
{
  return self->saved;
}

const char *
ox_conversation_get_snippet (OxConversation *self)
{
  return self->snippet;
}

void
ox_conversation_set_snippet (OxConversation *self, const char *markup)
{
  OX_ASSERT_MAIN_THREAD ();
  if (g_set_str (&self->snippet, markup))
    g_object_notify_by_pspec (G_OBJECT (self), props[PROP_SNIPPET]);
}

GVariant *
ox_conversation_get_settings (OxConversation *self)
{
  return self->settings;
}

void
ox_conversation_set_settings (OxConversation *self, GVariant *settings)
{
  OX_ASSERT_MAIN_THREAD ();
  g_return_if_fail (g_variant_is_of_type (settings, G_VARIANT_TYPE_VARDICT));
  g_variant_ref_sink (settings);
  g_variant_unref (self->settings);
  self->settings = settings;
  save_row (self);
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_SETTINGS]);
}

gboolean
ox_conversation_get_flag (OxConversation *self, const char *key, gboolean fallback)
{
  gboolean value = fallback;

  g_variant_lookup (self->settings, key, "b", &value);
  return value;
}

void
ox_conversation_set_flag (OxConversation *self, const char *key, gboolean value)
{
  g_auto (GVariantDict) dict = G_VARIANT_DICT_INIT (self->settings);

  if (g_variant_dict_contains (&dict, key) && ox_conversation_get_flag (self, key, FALSE) == !!value)
    return;
  g_variant_dict_insert (&dict, key, "b", value);
  ox_conversation_set_settings (self, g_variant_dict_end (&dict));
}

/* ---- Loading ---- */

static void
loaded_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr (OxConversation) self = user_data;
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) records = ox_store_list_finish (OX_STORE (source), result, &error);
  g_autoptr (GPtrArray) tasks = g_steal_pointer (&self->load_tasks);

  self->load_tasks = g_ptr_array_new_with_free_func (g_object_unref);
  if (records != NULL) {
    for (guint i = 0; i < records->len; i++) {
      OxMessageRecord *record = records->pdata[i];

      if (record->damaged && record->error == NULL) {
        record->state = OX_MESSAGE_FAILED;
        record->error = g_strdup (_ ("A part of this message was damaged on the disk and could not be read."));
      }
      g_ptr_array_add (self->messages, ox_message_new_from_record (record));
      g_array_append_val (self->positions, record->position);
      self->next_position = MAX (self->next_position, record->position + 1);
    }
    self->loaded = TRUE;
    g_list_model_items_changed (G_LIST_MODEL (self), 0, 0, self->messages->len);
    g_object_notify_by_pspec (G_OBJECT (self), props[PROP_LOADED]);
  }
  for (guint i = 0; i < tasks->len; i++)
    if (error != NULL)
      g_task_return_error (tasks->pdata[i], g_error_copy (error));
    else
      g_task_return_boolean (tasks->pdata[i], TRUE);
}

void
ox_conversation_load (OxConversation *self, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
  GTask *task = g_task_new (self, cancellable, callback, user_data);

  OX_ASSERT_MAIN_THREAD ();
  g_task_set_source_tag (task, ox_conversation_load);
  if (self->loaded) {
    g_task_return_boolean (task, TRUE);
    g_object_unref (task);
    return;
  }
  g_ptr_array_add (self->load_tasks, task);
  /* The caller may give up waiting; others may still wait. */
  if (self->load_tasks->len == 1)
    ox_store_list_messages (self->store, self->id, NULL, loaded_cb, g_object_ref (self));
}

gboolean
ox_conversation_load_finish (OxConversation *self, GAsyncResult *result, GError **error)
{
  return g_task_propagate_boolean (G_TASK (result), error);
}

gboolean
ox_conversation_get_loaded (OxConversation *self)
{
  return self->loaded;
}

/* ---- Messages ---- */

guint
ox_conversation_get_length (OxConversation *self)
{
  return self->messages->len;
}

OxMessage *
ox_conversation_get_message (OxConversation *self, guint index)
{
  return index < self->messages->len ? self->messages->pdata[index] : NULL;
}

OxMessage *
ox_conversation_find_message (OxConversation *self, const char *id)
{
  for (guint i = 0; i < self->messages->len; i++)
    if (g_str_equal (ox_message_get_id (self->messages->pdata[i]), id))
      return self->messages->pdata[i];
  return NULL;
}

gboolean
ox_conversation_find_position (OxConversation *self, OxMessage *message, guint *position)
{
  return g_ptr_array_find (self->messages, message, position);
}

gboolean
ox_conversation_get_usage (OxConversation *self, guint *used, guint *total)
{
  for (guint i = self->messages->len; i-- > 0;) {
    const OxStatistics *statistics = ox_message_get_statistics (self->messages->pdata[i]);

    if (statistics->context_length > 0) {
      *used = statistics->prompt_tokens + statistics->answer_tokens;
      *total = statistics->context_length;
      return TRUE;
    }
  }
  return FALSE;
}

static OxMessageRecord *
message_record (OxConversation *self, guint i)
{
  return ox_message_to_record (self->messages->pdata[i], self->id, g_array_index (self->positions, gint64, i));
}

static void
written_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr (GTask) task = user_data;
  OxConversation *self = g_task_get_source_object (task);
  g_autoptr (GError) error = NULL;

  if (ox_store_write_finish (OX_STORE (source), result, &error)) {
    /* Set by whoever wrote all of it. */
    if (g_task_get_task_data (task) != NULL)
      set_saved (self, TRUE);
    g_task_return_boolean (task, TRUE);
  } else {
    set_saved (self, FALSE);
    g_task_return_error (task, g_steal_pointer (&error));
  }
}

/* Writes the conversation with its messages from @first on. */
static void
write_messages (OxConversation *self, guint first, GTask *task)
{
  GPtrArray *records = g_ptr_array_new_with_free_func ((GDestroyNotify) ox_message_record_free);
  g_autofree char *settings = NULL;
  OxConversationRecord record;

  /* What could not be saved before goes along. */
  if (!self->saved)
    first = 0;
  g_task_set_task_data (task, GINT_TO_POINTER (first == 0), NULL);
  for (guint i = first; i < self->messages->len; i++)
    g_ptr_array_add (records, message_record (self, i));
  fill_record (self, &record, &settings);
  g_clear_handle_id (&self->draft_source, g_source_remove);
  self->stored = TRUE;
  ox_store_add_messages (self->store, &record, records, written_cb, task);
}

void
ox_conversation_append (
  OxConversation *self, OxMessage *const *messages, guint n, GAsyncReadyCallback callback, gpointer user_data)
{
  GTask *task = g_task_new (self, NULL, callback, user_data);
  guint first = self->messages->len;

  OX_ASSERT_MAIN_THREAD ();
  g_task_set_source_tag (task, ox_conversation_append);
  for (guint i = 0; i < n; i++) {
    g_ptr_array_add (self->messages, g_object_ref (messages[i]));
    g_array_append_val (self->positions, self->next_position);
    self->next_position++;
  }
  self->updated = g_get_real_time ();
  if (self->title == NULL)
    update_title (self);
  if (self->store != NULL) {
    write_messages (self, first, task);
  } else {
    g_task_return_boolean (task, TRUE);
    g_object_unref (task);
  }
  g_list_model_items_changed (G_LIST_MODEL (self), first, 0, n);
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_UPDATED]);
}

gboolean
ox_conversation_append_finish (OxConversation *self, GAsyncResult *result, GError **error)
{
  return g_task_propagate_boolean (G_TASK (result), error);
}

void
ox_conversation_save_message (OxConversation *self,
                              OxMessage *message,
                              GAsyncReadyCallback callback,
                              gpointer user_data)
{
  GTask *task = g_task_new (self, NULL, callback, user_data);
  guint i;

  OX_ASSERT_MAIN_THREAD ();
  g_task_set_source_tag (task, ox_conversation_save_message);
  if (self->store == NULL || !ox_conversation_find_position (self, message, &i)) {
    g_task_return_boolean (task, TRUE);
    g_object_unref (task);
  } else if (!self->saved) {
    write_messages (self, i, task);
  } else {
    ox_store_save_message (self->store, message_record (self, i), written_cb, task);
  }
}

gboolean
ox_conversation_save_message_finish (OxConversation *self, GAsyncResult *result, GError **error)
{
  return g_task_propagate_boolean (G_TASK (result), error);
}

static void
remove_range (OxConversation *self, guint first, guint n)
{
  g_autoptr (GStrvBuilder) ids = g_strv_builder_new ();
  g_auto (GStrv) strv = NULL;

  ox_conversation_stop (self);
  for (guint i = first; i < first + n; i++)
    g_strv_builder_add (ids, ox_message_get_id (self->messages->pdata[i]));
  strv = g_strv_builder_end (ids);
  g_ptr_array_remove_range (self->messages, first, n);
  g_array_remove_range (self->positions, first, n);
  if (self->store != NULL)
    ox_store_remove_messages (self->store, (const char *const *) strv, NULL, NULL);
  g_list_model_items_changed (G_LIST_MODEL (self), first, n, 0);
}

void
ox_conversation_remove_message (OxConversation *self, OxMessage *message)
{
  guint i;

  OX_ASSERT_MAIN_THREAD ();
  if (ox_conversation_find_position (self, message, &i))
    remove_range (self, i, 1);
}

void
ox_conversation_remove_from (OxConversation *self, OxMessage *message)
{
  guint i;

  OX_ASSERT_MAIN_THREAD ();
  if (ox_conversation_find_position (self, message, &i))
    remove_range (self, i, self->messages->len - i);
}

/* ---- Answering ---- */

gboolean
ox_conversation_get_answering (OxConversation *self)
{
  return self->job != NULL;
}

void
ox_conversation_stop (OxConversation *self)
{
  OX_ASSERT_MAIN_THREAD ();
  /* The job ends with ox_conversation_set_job (NULL). */
  if (self->job != NULL)
    self->stop (self->job);
}

void
ox_conversation_set_job (OxConversation *self, gpointer job, void (*stop) (gpointer job))
{
  gboolean was_answering = self->job != NULL;

  OX_ASSERT_MAIN_THREAD ();
  self->job = job;
  self->stop = stop;
  if (was_answering != (job != NULL))
    g_object_notify_by_pspec (G_OBJECT (self), props[PROP_ANSWERING]);
}
