/* See ox-conversation-list.h.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-conversation-list.h"

#include "ox-log.h"
#include "ox-thread-checks.h"

#include <glib/gi18n.h>

#define MAX_HITS 500
/* A suspended computer's timers stand still, so the day is looked at again now and then. */
#define MAX_DAY_CHECK_SECONDS 600

/* Sections, and within "earlier" the months: year · 12 + month, counted backwards. */
enum { SECTION_PINNED, SECTION_TODAY, SECTION_YESTERDAY, SECTION_WEEK, SECTION_MONTHS };

struct _OxConversationList {
  GObject parent_instance;

  OxStore *store;
  GPtrArray *all;     /* OxConversation, in order */
  GPtrArray *visible; /* those shown: a part of all, in the same order */
  OxConversation *fresh;
  gboolean loaded;

  char *search;
  GHashTable *found; /* ids of conversations found, or NULL: no search */
  GCancellable *search_cancellable;

  gint64 today; /* day number of the sections shown */
  guint day_source;
};

static void list_model_iface_init (GListModelInterface *iface);
static void section_model_iface_init (GtkSectionModelInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE (OxConversationList,
                               ox_conversation_list,
                               G_TYPE_OBJECT,
                               G_IMPLEMENT_INTERFACE (G_TYPE_LIST_MODEL, list_model_iface_init)
                                 G_IMPLEMENT_INTERFACE (GTK_TYPE_SECTION_MODEL, section_model_iface_init))

enum { PROP_0, PROP_LOADED, PROP_SEARCH, PROP_SEARCHING, N_PROPS };

static GParamSpec *props[N_PROPS];

/* ---- Sections ---- */

static gint64
day_number (GDateTime *time)
{
  g_autoptr (GDateTime) midnight = g_date_time_new_utc (g_date_time_get_year (time), g_date_time_get_month (time),
                                                        g_date_time_get_day_of_month (time), 0, 0, 0);

  return g_date_time_to_unix (midnight) / (24 * 60 * 60);
}

static GDateTime *
local_time (gint64 microseconds)
{
  g_autoptr (GDateTime) utc = g_date_time_new_from_unix_utc_usec (microseconds);
  GDateTime *local = utc != NULL ? g_date_time_to_local (utc) : NULL;

  /* A damaged row may hold any number. */
  return local != NULL ? local : g_date_time_new_from_unix_local (0);
}

static gint64
current_day (void)
{
  g_autoptr (GDateTime) now = g_date_time_new_now_local ();

  return day_number (now);
}

static int
section_of (OxConversationList *self, OxConversation *conversation)
{
  g_autoptr (GDateTime) time = NULL;
  gint64 days_ago;

  if (ox_conversation_get_pinned (conversation))
    return SECTION_PINNED;
  time = local_time (ox_conversation_get_updated (conversation));
  days_ago = self->today - day_number (time);
  if (days_ago <= 0)
    return SECTION_TODAY;
  if (days_ago == 1)
    return SECTION_YESTERDAY;
  if (days_ago <= 7)
    return SECTION_WEEK;
  return SECTION_MONTHS + 12 * 10000 - (12 * g_date_time_get_year (time) + g_date_time_get_month (time));
}

char *
ox_conversation_list_dup_section_title (OxConversationList *self, OxConversation *conversation)
{
  g_autoptr (GDateTime) time = local_time (ox_conversation_get_updated (conversation));
  g_autoptr (GDateTime) now = g_date_time_new_now_local ();

  switch (section_of (self, conversation)) {
  case SECTION_PINNED:
    return g_strdup (_ ("Pinned"));
  case SECTION_TODAY:
    return g_strdup (_ ("Today"));
  case SECTION_YESTERDAY:
    return g_strdup (_ ("Yesterday"));
  case SECTION_WEEK:
    return g_strdup (_ ("Previous 7 Days"));
  default:
    return g_date_time_format (time, g_date_time_get_year (time) == g_date_time_get_year (now) ? "%OB" : "%OB %Y");
  }
}

static void
get_section (GtkSectionModel *model, guint position, guint *start, guint *end)
{
  OxConversationList *self = OX_CONVERSATION_LIST (model);
  int section;

  if (position >= self->visible->len) {
    *start = self->visible->len;
    *end = G_MAXUINT;
    return;
  }
  section = section_of (self, self->visible->pdata[position]);
  for (*start = position; *start > 0 && section_of (self, self->visible->pdata[*start - 1]) == section;)
    (*start)--;
  for (*end = position + 1; *end < self->visible->len && section_of (self, self->visible->pdata[*end]) == section;)
    (*end)++;
}

static void
section_model_iface_init (GtkSectionModelInterface *iface)
{
  iface->get_section = get_section;
}

static GType
get_item_type (GListModel *model)
{
  return OX_TYPE_CONVERSATION;
}

static guint
get_n_items (GListModel *model)
{
  return OX_CONVERSATION_LIST (model)->visible->len;
}

static gpointer
get_item (GListModel *model, guint position)
{
  OxConversationList *self = OX_CONVERSATION_LIST (model);

  return position < self->visible->len ? g_object_ref (self->visible->pdata[position]) : NULL;
}

static void
list_model_iface_init (GListModelInterface *iface)
{
  iface->get_item_type = get_item_type;
  iface->get_n_items = get_n_items;
  iface->get_item = get_item;
}

static gboolean
day_timeout_cb (gpointer user_data)
{
  OxConversationList *self = user_data;
  gint64 day = current_day ();

  if (day != self->today) {
    self->today = day;
    if (self->visible->len > 0)
      gtk_section_model_sections_changed (GTK_SECTION_MODEL (self), 0, self->visible->len);
  }
  return G_SOURCE_CONTINUE;
}

/* ---- Order ---- */

static int
compare (gconstpointer a, gconstpointer b)
{
  OxConversation *first = *(OxConversation *const *) a;
  OxConversation *second = *(OxConversation *const *) b;
  gint64 first_time = ox_conversation_get_updated (first);
  gint64 second_time = ox_conversation_get_updated (second);

  if (ox_conversation_get_pinned (first) != ox_conversation_get_pinned (second))
    return ox_conversation_get_pinned (first) ? -1 : 1;
  if (first_time != second_time)
    return first_time > second_time ? -1 : 1;
  return g_strcmp0 (ox_conversation_get_id (first), ox_conversation_get_id (second));
}

static gboolean
is_shown (OxConversationList *self, OxConversation *conversation)
{
  return self->found == NULL || g_hash_table_contains (self->found, ox_conversation_get_id (conversation));
}

/* Makes visible anew, and tells of the one range that differs. */
static void
refilter (OxConversationList *self)
{
  g_autoptr (GPtrArray) old = self->visible;
  guint before = 0;
  guint after = 0;

  self->visible = g_ptr_array_new_with_free_func (g_object_unref);
  for (guint i = 0; i < self->all->len; i++)
    if (is_shown (self, self->all->pdata[i]))
      g_ptr_array_add (self->visible, g_object_ref (self->all->pdata[i]));
  while (before < MIN (old->len, self->visible->len) && old->pdata[before] == self->visible->pdata[before])
    before++;
  while (after < MIN (old->len, self->visible->len) - before &&
         old->pdata[old->len - 1 - after] == self->visible->pdata[self->visible->len - 1 - after])
    after++;
  if (before + after < old->len || before + after < self->visible->len)
    g_list_model_items_changed (G_LIST_MODEL (self), before, old->len - before - after,
                                self->visible->len - before - after);
}

/* Two steps, so that a row that moves up takes no others with it. */
static void
changed_cb (OxConversationList *self, GParamSpec *pspec, OxConversation *conversation)
{
  g_autoptr (OxConversation) keep = g_object_ref (conversation);
  guint i;

  if (!g_ptr_array_find (self->all, conversation, &i))
    return;
  if ((i == 0 || compare (&self->all->pdata[i - 1], &conversation) < 0) &&
      (i + 1 == self->all->len || compare (&conversation, &self->all->pdata[i + 1]) < 0)) {
    guint position;

    /* In its place, but perhaps in another section. */
    if (ox_conversation_list_find_position (self, conversation, &position))
      gtk_section_model_sections_changed (GTK_SECTION_MODEL (self), 0, self->visible->len);
    return;
  }
  g_ptr_array_remove_index (self->all, i);
  refilter (self);
  g_ptr_array_add (self->all, g_object_ref (conversation));
  g_ptr_array_sort (self->all, compare);
  refilter (self);
}

static void
first_message_cb (OxConversationList *self, guint position, guint removed, guint added, OxConversation *conversation)
{
  if (conversation != self->fresh || ox_conversation_get_length (conversation) == 0)
    return;
  g_ptr_array_add (self->all, g_object_ref (conversation));
  g_ptr_array_sort (self->all, compare);
  g_clear_object (&self->fresh);
  refilter (self);
}

static void
watch (OxConversationList *self, OxConversation *conversation)
{
  g_signal_connect_object (conversation, "notify::updated", G_CALLBACK (changed_cb), self, G_CONNECT_SWAPPED);
  g_signal_connect_object (conversation, "notify::pinned", G_CALLBACK (changed_cb), self, G_CONNECT_SWAPPED);
}

/* ---- The object ---- */

static void
ox_conversation_list_get_property (GObject *object, guint prop_id, GValue *value, GParamSpec *pspec)
{
  OxConversationList *self = OX_CONVERSATION_LIST (object);

  switch (prop_id) {
  case PROP_LOADED:
    g_value_set_boolean (value, self->loaded);
    break;
  case PROP_SEARCH:
    g_value_set_string (value, self->search);
    break;
  case PROP_SEARCHING:
    g_value_set_boolean (value, self->search_cancellable != NULL);
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, prop_id, pspec);
  }
}

static void
ox_conversation_list_set_property (GObject *object, guint prop_id, const GValue *value, GParamSpec *pspec)
{
  switch (prop_id) {
  case PROP_SEARCH:
    ox_conversation_list_set_search (OX_CONVERSATION_LIST (object), g_value_get_string (value));
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, prop_id, pspec);
  }
}

static void
ox_conversation_list_dispose (GObject *object)
{
  OxConversationList *self = OX_CONVERSATION_LIST (object);

  g_cancellable_cancel (self->search_cancellable);
  g_clear_object (&self->search_cancellable);
  g_clear_handle_id (&self->day_source, g_source_remove);
  g_clear_object (&self->fresh);
  G_OBJECT_CLASS (ox_conversation_list_parent_class)->dispose (object);
}

static void
ox_conversation_list_finalize (GObject *object)
{
  OxConversationList *self = OX_CONVERSATION_LIST (object);

  g_clear_object (&self->store);
  g_ptr_array_unref (self->visible);
  g_ptr_array_unref (self->all);
  g_clear_pointer (&self->found, g_hash_table_unref);
  g_free (self->search);
  G_OBJECT_CLASS (ox_conversation_list_parent_class)->finalize (object);
}

static void
ox_conversation_list_class_init (OxConversationListClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GParamFlags flags = G_PARAM_READABLE | G_PARAM_STATIC_STRINGS | G_PARAM_EXPLICIT_NOTIFY;

  object_class->get_property = ox_conversation_list_get_property;
  object_class->set_property = ox_conversation_list_set_property;
  object_class->dispose = ox_conversation_list_dispose;
  object_class->finalize = ox_conversation_list_finalize;

  props[PROP_LOADED] = g_param_spec_boolean ("loaded", NULL, NULL, FALSE, flags);
  props[PROP_SEARCH] = g_param_spec_string ("search", NULL, NULL, NULL, flags | G_PARAM_WRITABLE);
  props[PROP_SEARCHING] = g_param_spec_boolean ("searching", NULL, NULL, FALSE, flags);
  g_object_class_install_properties (object_class, N_PROPS, props);
}

static void
ox_conversation_list_init (OxConversationList *self)
{
  self->all = g_ptr_array_new_with_free_func (g_object_unref);
  self->visible = g_ptr_array_new_with_free_func (g_object_unref);
  self->today = current_day ();
  self->day_source = g_timeout_add_seconds (MAX_DAY_CHECK_SECONDS, day_timeout_cb, self);
}

OxConversationList *
ox_conversation_list_new (OxStore *store)
{
  OxConversationList *self = g_object_new (OX_TYPE_CONVERSATION_LIST, NULL);

  OX_ASSERT_MAIN_THREAD ();
  self->store = g_object_ref (store);
  return self;
}

static void
listed_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr (GTask) task = user_data;
  OxConversationList *self = g_task_get_source_object (task);
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) records = ox_store_list_finish (OX_STORE (source), result, &error);
  g_autoptr (GHashTable) known = g_hash_table_new (g_str_hash, g_str_equal);

  /* Without its old conversations the app still makes new ones. */
  if (records == NULL) {
    ox_info ("store", "No list of conversations: %s", error->message);
    records = g_ptr_array_new ();
  }
  /* Those that were begun before the list came. */
  for (guint i = 0; i < self->all->len; i++)
    g_hash_table_add (known, (gpointer) ox_conversation_get_id (self->all->pdata[i]));
  if (self->fresh != NULL)
    g_hash_table_add (known, (gpointer) ox_conversation_get_id (self->fresh));
  for (guint i = 0; i < records->len; i++) {
    const OxConversationRecord *record = records->pdata[i];
    g_autoptr (OxConversation) conversation = NULL;

    if (g_hash_table_contains (known, record->id))
      continue;
    conversation = ox_conversation_new_from_record (self->store, record);
    if (record->n_messages > 0) {
      watch (self, conversation);
      g_ptr_array_add (self->all, g_steal_pointer (&conversation));
    } else if (self->fresh == NULL) {
      /* Something was typed in a new chat and not sent: the next new chat begins with it. Loading nothing makes it ready. */
      watch (self, conversation);
      g_signal_connect_object (conversation, "items-changed", G_CALLBACK (first_message_cb), self, G_CONNECT_SWAPPED);
      ox_conversation_load (conversation, NULL, NULL, NULL);
      self->fresh = g_steal_pointer (&conversation);
    }
  }
  g_ptr_array_sort (self->all, compare);
  self->loaded = TRUE;
  refilter (self);
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_LOADED]);
  if (error != NULL)
    g_task_return_error (task, g_steal_pointer (&error));
  else
    g_task_return_boolean (task, TRUE);
}

void
ox_conversation_list_load (OxConversationList *self,
                           GCancellable *cancellable,
                           GAsyncReadyCallback callback,
                           gpointer user_data)
{
  GTask *task = g_task_new (self, cancellable, callback, user_data);

  OX_ASSERT_MAIN_THREAD ();
  g_task_set_source_tag (task, ox_conversation_list_load);
  ox_store_list_conversations (self->store, cancellable, listed_cb, task);
}

gboolean
ox_conversation_list_load_finish (OxConversationList *self, GAsyncResult *result, GError **error)
{
  return g_task_propagate_boolean (G_TASK (result), error);
}

gboolean
ox_conversation_list_get_loaded (OxConversationList *self)
{
  return self->loaded;
}

OxConversation *
ox_conversation_list_create (OxConversationList *self)
{
  OX_ASSERT_MAIN_THREAD ();
  if (self->fresh == NULL) {
    self->fresh = ox_conversation_new (self->store, FALSE);
    watch (self, self->fresh);
    g_signal_connect_object (self->fresh, "items-changed", G_CALLBACK (first_message_cb), self, G_CONNECT_SWAPPED);
  }
  return g_object_ref (self->fresh);
}

OxConversation *
ox_conversation_list_find (OxConversationList *self, const char *id)
{
  if (self->fresh != NULL && g_str_equal (ox_conversation_get_id (self->fresh), id))
    return self->fresh;
  for (guint i = 0; i < self->all->len; i++)
    if (g_str_equal (ox_conversation_get_id (self->all->pdata[i]), id))
      return self->all->pdata[i];
  return NULL;
}

gboolean
ox_conversation_list_find_position (OxConversationList *self, OxConversation *conversation, guint *position)
{
  return g_ptr_array_find (self->visible, conversation, position);
}

/* ---- Deleting ---- */

void
ox_conversation_list_delete (OxConversationList *self, OxConversation *conversation)
{
  g_autoptr (OxConversation) keep = g_object_ref (conversation);

  OX_ASSERT_MAIN_THREAD ();
  ox_conversation_stop (conversation);
  ox_conversation_flush (conversation);
  ox_store_set_deleted (self->store, ox_conversation_get_id (conversation), TRUE, NULL, NULL);
  if (g_ptr_array_remove (self->all, conversation))
    refilter (self);
}

void
ox_conversation_list_undelete (OxConversationList *self, OxConversation *conversation)
{
  OX_ASSERT_MAIN_THREAD ();
  if (g_ptr_array_find (self->all, conversation, NULL))
    return;
  ox_store_set_deleted (self->store, ox_conversation_get_id (conversation), FALSE, NULL, NULL);
  g_ptr_array_add (self->all, g_object_ref (conversation));
  g_ptr_array_sort (self->all, compare);
  refilter (self);
}

void
ox_conversation_list_purge (OxConversationList *self, OxConversation *conversation)
{
  OX_ASSERT_MAIN_THREAD ();
  /* Undo came first. */
  if (g_ptr_array_find (self->all, conversation, NULL))
    return;
  ox_store_purge (self->store, ox_conversation_get_id (conversation), NULL, NULL);
}

/* ---- Searching ---- */

static void
found_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr (OxConversationList) self = user_data;
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) hits = ox_store_list_finish (OX_STORE (source), result, &error);

  /* A newer search is on its way, or none is wanted any more. */
  if (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
    return;
  g_clear_object (&self->search_cancellable);
  if (hits != NULL) {
    g_clear_pointer (&self->found, g_hash_table_unref);
    self->found = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
    for (guint i = 0; i < hits->len; i++) {
      const OxSearchHit *hit = hits->pdata[i];
      OxConversation *conversation = ox_conversation_list_find (self, hit->conversation_id);

      g_hash_table_add (self->found, g_strdup (hit->conversation_id));
      if (conversation != NULL)
        ox_conversation_set_snippet (conversation, hit->markup);
    }
    refilter (self);
  } else {
    ox_info ("store", "Search failed: %s", error->message);
  }
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_SEARCHING]);
}

void
ox_conversation_list_set_search (OxConversationList *self, const char *text)
{
  g_autofree char *stripped = g_strstrip (g_strdup (text != NULL ? text : ""));

  OX_ASSERT_MAIN_THREAD ();
  if (!g_set_str (&self->search, *stripped != '\0' ? stripped : NULL))
    return;
  g_cancellable_cancel (self->search_cancellable);
  g_clear_object (&self->search_cancellable);
  if (self->search != NULL) {
    self->search_cancellable = g_cancellable_new ();
    ox_store_search (self->store, self->search, MAX_HITS, self->search_cancellable, found_cb, g_object_ref (self));
  } else {
    g_clear_pointer (&self->found, g_hash_table_unref);
    for (guint i = 0; i < self->all->len; i++)
      ox_conversation_set_snippet (self->all->pdata[i], NULL);
    refilter (self);
  }
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_SEARCH]);
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_SEARCHING]);
}

const char *
ox_conversation_list_get_search (OxConversationList *self)
{
  return self->search;
}

/* ---- At the end ---- */

void
ox_conversation_list_stop_all (OxConversationList *self)
{
  OX_ASSERT_MAIN_THREAD ();
  for (guint i = 0; i < self->all->len; i++)
    ox_conversation_stop (self->all->pdata[i]);
}

void
ox_conversation_list_flush (OxConversationList *self)
{
  OX_ASSERT_MAIN_THREAD ();
  if (self->fresh != NULL)
    ox_conversation_flush (self->fresh);
  for (guint i = 0; i < self->all->len; i++)
    ox_conversation_flush (self->all->pdata[i]);
}
