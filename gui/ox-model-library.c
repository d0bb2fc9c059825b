/* See ox-model-library.h.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-model-library.h"

#include "ox-log.h"
#include "ox-model-scan.h"
#include "ox-thread-checks.h"

#include <string.h>

#define KEY_PATH "model-path"
#define KEY_FOLDERS "model-folders"
/* Milliseconds after the last change in a folder: a copy of many files is looked at once. */
#define RESCAN_DELAY_MS 1000

typedef struct _Look Look;

struct _OxModelLibrary {
  GObject parent_instance;

  OxEngine *engine;
  GSettings *settings;
  GPtrArray *entries; /* OxModelEntry, by name */
  GHashTable *stamps; /* path → stamp of the last look */
  OxModelEntry *selected;
  char *added; /* path just added by the user, from which a model is to be selected */
  gboolean ready;

  Look *look; /* while scanning */
  gboolean scan_again;
  guint rescan_source;
  GPtrArray *monitors; /* GFileMonitor */
};

/* One look, shared with the scanning thread and counted by both. */
struct _Look {
  int ref_count; /* atomic */
  const OxEngineBackend *backend;
  GStrv roots;
  GHashTable *known; /* a copy of stamps */
  OxModelOptions options;
  GCancellable *cancellable;

  OxModelLibrary *library; /* main thread only; NULL: nobody wants the results any more */
  GHashTable *paths;       /* main thread only: all that were found */

  GMutex mutex;
  GQueue findings; /* OxModelFinding, not taken over yet */
  GStrv folders;   /* at the end: those to watch */
  gboolean ended;
  gboolean wake_pending;
};

static void list_model_iface_init (GListModelInterface *iface);

/* Settings hold UTF-8 only, paths any bytes: what is not UTF-8 is kept as a URI. */
static char *
path_to_setting (const char *path)
{
  return g_utf8_validate (path, -1, NULL) ? g_strdup (path) : g_filename_to_uri (path, NULL, NULL);
}

static char *
path_from_setting (const char *text)
{
  char *path = g_str_has_prefix (text, "file://") ? g_filename_from_uri (text, NULL, NULL) : NULL;

  return path != NULL ? path : g_strdup (text);
}

/* The user's own files and folders; NULL without settings. */
static char **
get_added_paths (OxModelLibrary *self)
{
  char **paths;

  if (self->settings == NULL)
    return NULL;
  paths = g_settings_get_strv (self->settings, KEY_FOLDERS);
  for (guint i = 0; paths[i] != NULL; i++) {
    char *path = path_from_setting (paths[i]);
    g_free (paths[i]);
    paths[i] = path;
  }
  return paths;
}

static void
set_added_paths (OxModelLibrary *self, GStrvBuilder *builder)
{
  g_auto (GStrv) paths = g_strv_builder_end (builder);

  for (guint i = 0; paths[i] != NULL; i++) {
    char *text = path_to_setting (paths[i]);
    g_free (paths[i]);
    paths[i] = text;
  }
  g_settings_set_strv (self->settings, KEY_FOLDERS, (const char *const *) paths);
}

G_DEFINE_FINAL_TYPE_WITH_CODE (OxModelLibrary,
                               ox_model_library,
                               G_TYPE_OBJECT,
                               G_IMPLEMENT_INTERFACE (G_TYPE_LIST_MODEL, list_model_iface_init))

enum { PROP_0, PROP_READY, PROP_SCANNING, PROP_SELECTED, N_PROPS };

static GParamSpec *props[N_PROPS];

static GType
get_item_type (GListModel *model)
{
  return OX_TYPE_MODEL_ENTRY;
}

static guint
get_n_items (GListModel *model)
{
  return OX_MODEL_LIBRARY (model)->entries->len;
}

static gpointer
get_item (GListModel *model, guint position)
{
  OxModelLibrary *self = OX_MODEL_LIBRARY (model);

  return position < self->entries->len ? g_object_ref (self->entries->pdata[position]) : NULL;
}

static void
list_model_iface_init (GListModelInterface *iface)
{
  iface->get_item_type = get_item_type;
  iface->get_n_items = get_n_items;
  iface->get_item = get_item;
}

static void
ox_model_library_get_property (GObject *object, guint prop_id, GValue *value, GParamSpec *pspec)
{
  OxModelLibrary *self = OX_MODEL_LIBRARY (object);

  switch (prop_id) {
  case PROP_READY:
    g_value_set_boolean (value, self->ready);
    break;
  case PROP_SCANNING:
    g_value_set_boolean (value, self->look != NULL);
    break;
  case PROP_SELECTED:
    g_value_set_object (value, self->selected);
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, prop_id, pspec);
  }
}

static void
ox_model_library_set_property (GObject *object, guint prop_id, const GValue *value, GParamSpec *pspec)
{
  switch (prop_id) {
  case PROP_SELECTED:
    ox_model_library_set_selected (OX_MODEL_LIBRARY (object), g_value_get_object (value));
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, prop_id, pspec);
  }
}

static void
finding_free (const OxEngineBackend *backend, OxModelFinding *finding)
{
  g_free (finding->path);
  g_free (finding->stamp);
  g_clear_pointer (&finding->plan, backend->plan_free);
  g_clear_error (&finding->error);
  g_free (finding);
}

static void
look_unref (Look *look)
{
  OxModelFinding *finding;

  if (!g_atomic_int_dec_and_test (&look->ref_count))
    return;
  while ((finding = g_queue_pop_head (&look->findings)) != NULL)
    finding_free (look->backend, finding);
  g_strfreev (look->roots);
  g_strfreev (look->folders);
  g_hash_table_unref (look->known);
  g_hash_table_unref (look->paths);
  g_object_unref (look->cancellable);
  g_mutex_clear (&look->mutex);
  g_free (look);
}

static void
ox_model_library_dispose (GObject *object)
{
  OxModelLibrary *self = OX_MODEL_LIBRARY (object);

  g_clear_handle_id (&self->rescan_source, g_source_remove);
  if (self->look != NULL) {
    g_cancellable_cancel (self->look->cancellable);
    self->look->library = NULL;
    g_clear_pointer (&self->look, look_unref);
  }
  g_ptr_array_set_size (self->monitors, 0);
  g_clear_object (&self->selected);
  g_clear_object (&self->engine);
  g_clear_object (&self->settings);
  G_OBJECT_CLASS (ox_model_library_parent_class)->dispose (object);
}

static void
ox_model_library_finalize (GObject *object)
{
  OxModelLibrary *self = OX_MODEL_LIBRARY (object);

  g_ptr_array_unref (self->entries);
  g_ptr_array_unref (self->monitors);
  g_hash_table_unref (self->stamps);
  g_free (self->added);
  G_OBJECT_CLASS (ox_model_library_parent_class)->finalize (object);
}

static void
ox_model_library_class_init (OxModelLibraryClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GParamFlags flags = G_PARAM_READABLE | G_PARAM_STATIC_STRINGS | G_PARAM_EXPLICIT_NOTIFY;

  object_class->get_property = ox_model_library_get_property;
  object_class->set_property = ox_model_library_set_property;
  object_class->dispose = ox_model_library_dispose;
  object_class->finalize = ox_model_library_finalize;

  props[PROP_READY] = g_param_spec_boolean ("ready", NULL, NULL, FALSE, flags);
  props[PROP_SCANNING] = g_param_spec_boolean ("scanning", NULL, NULL, FALSE, flags);
  props[PROP_SELECTED] = g_param_spec_object ("selected", NULL, NULL, OX_TYPE_MODEL_ENTRY, flags | G_PARAM_WRITABLE);
  g_object_class_install_properties (object_class, N_PROPS, props);
}

static void
monitor_free (gpointer monitor)
{
  g_file_monitor_cancel (monitor);
  g_object_unref (monitor);
}

static void
ox_model_library_init (OxModelLibrary *self)
{
  self->entries = g_ptr_array_new_with_free_func (g_object_unref);
  self->monitors = g_ptr_array_new_with_free_func (monitor_free);
  self->stamps = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
}

/* ---- What the engine does ---- */

static void
show_engine_state (OxModelLibrary *self, OxModelEntry *entry)
{
  gboolean current = g_strcmp0 (ox_engine_get_model_path (self->engine), ox_model_entry_get_path (entry)) == 0;
  OxEngineState state = ox_engine_get_state (self->engine);

  ox_model_entry_set_load_state (entry, current && state == OX_ENGINE_READY, current && state == OX_ENGINE_LOADING,
                                 current ? ox_engine_get_load_progress (self->engine) : 0);
}

static void
engine_state_cb (OxModelLibrary *self)
{
  for (guint i = 0; i < self->entries->len; i++)
    show_engine_state (self, self->entries->pdata[i]);
}

static void
engine_memory_cb (OxModelLibrary *self)
{
  /* What is loaded makes room for what is to come. */
  guint64 available = ox_engine_get_memory_available (self->engine) + ox_engine_get_weight_bytes (self->engine) +
                      ox_engine_get_session_bytes (self->engine);

  for (guint i = 0; i < self->entries->len; i++)
    ox_model_entry_set_memory_available (self->entries->pdata[i], available);
}

OxModelLibrary *
ox_model_library_new (OxEngine *engine, GSettings *settings)
{
  OxModelLibrary *self = g_object_new (OX_TYPE_MODEL_LIBRARY, NULL);

  OX_ASSERT_MAIN_THREAD ();
  self->engine = g_object_ref (engine);
  g_signal_connect_object (engine, "notify::state", G_CALLBACK (engine_state_cb), self, G_CONNECT_SWAPPED);
  g_signal_connect_object (engine, "notify::model-path", G_CALLBACK (engine_state_cb), self, G_CONNECT_SWAPPED);
  g_signal_connect_object (engine, "notify::load-progress", G_CALLBACK (engine_state_cb), self, G_CONNECT_SWAPPED);
  g_signal_connect_object (engine, "notify::memory-available", G_CALLBACK (engine_memory_cb), self, G_CONNECT_SWAPPED);
  g_signal_connect_object (engine, "notify::weight-bytes", G_CALLBACK (engine_memory_cb), self, G_CONNECT_SWAPPED);
  if (settings != NULL) {
    self->settings = g_object_ref (settings);
    g_signal_connect_object (settings, "changed::" KEY_FOLDERS, G_CALLBACK (ox_model_library_scan), self,
                             G_CONNECT_SWAPPED);
  }
  return self;
}

gboolean
ox_model_library_get_ready (OxModelLibrary *self)
{
  return self->ready;
}

gboolean
ox_model_library_get_scanning (OxModelLibrary *self)
{
  return self->look != NULL;
}

OxModelEntry *
ox_model_library_find (OxModelLibrary *self, const char *path)
{
  for (guint i = 0; path != NULL && i < self->entries->len; i++)
    if (g_str_equal (ox_model_entry_get_path (self->entries->pdata[i]), path))
      return self->entries->pdata[i];
  return NULL;
}

/* ---- Which model ---- */

OxModelEntry *
ox_model_library_get_selected (OxModelLibrary *self)
{
  return self->selected;
}

static void
select_entry (OxModelLibrary *self, OxModelEntry *entry)
{
  if (self->selected == entry)
    return;
  if (self->selected != NULL)
    ox_model_entry_set_selected (self->selected, FALSE);
  g_set_object (&self->selected, entry);
  if (entry != NULL)
    ox_model_entry_set_selected (entry, TRUE);
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_SELECTED]);
}

void
ox_model_library_set_selected (OxModelLibrary *self, OxModelEntry *entry)
{
  OX_ASSERT_MAIN_THREAD ();
  select_entry (self, entry);
  if (self->settings != NULL && entry != NULL) {
    g_autofree char *text = path_to_setting (ox_model_entry_get_path (entry));
    g_settings_set_string (self->settings, KEY_PATH, text);
  }
}

/* How good an entry is when the user has chosen none. A model for chat that fits, then any that fits; the larger the better. */
static guint64
rank (OxModelEntry *entry)
{
  const OxModelPlan *plan = ox_model_entry_get_plan (entry);

  if (plan == NULL || ox_model_entry_get_state (entry) != OX_MODEL_ENTRY_OK)
    return 0;
  return (MIN (plan->weight_bytes, G_MAXUINT64 / 4) + 1) |
         (plan->capabilities & OX_CAPABILITY_CHAT ? G_GUINT64_CONSTANT (1) << 63 : 0);
}

static void
select_default (OxModelLibrary *self)
{
  g_autofree char *setting = self->settings != NULL ? g_settings_get_string (self->settings, KEY_PATH) : NULL;
  g_autofree char *chosen = setting != NULL ? path_from_setting (setting) : NULL;
  OxModelEntry *entry = ox_model_library_find (self, chosen);

  if (entry != NULL && ox_model_entry_get_usable (entry)) {
    select_entry (self, entry);
  } else if (self->ready && (self->selected == NULL || !ox_model_entry_get_usable (self->selected))) {
    OxModelEntry *best = NULL;

    for (guint i = 0; i < self->entries->len; i++)
      if (rank (self->entries->pdata[i]) > (best != NULL ? rank (best) : 0))
        best = self->entries->pdata[i];
    /* Better one that may be too large than none: it can be tried. */
    for (guint i = 0; best == NULL && i < self->entries->len; i++)
      if (ox_model_entry_get_usable (self->entries->pdata[i]))
        best = self->entries->pdata[i];
    select_entry (self, best);
  }
}

/* ---- Looking ---- */

static int
compare (gconstpointer a, gconstpointer b)
{
  OxModelEntry *first = *(OxModelEntry *const *) a;
  OxModelEntry *second = *(OxModelEntry *const *) b;
  int order = g_utf8_collate (ox_model_entry_get_name (first), ox_model_entry_get_name (second));

  return order != 0 ? order : strcmp (ox_model_entry_get_path (first), ox_model_entry_get_path (second));
}

static void
remove_entry (OxModelLibrary *self, guint i)
{
  g_autoptr (OxModelEntry) entry = g_object_ref (self->entries->pdata[i]);

  g_hash_table_remove (self->stamps, ox_model_entry_get_path (entry));
  g_ptr_array_remove_index (self->entries, i);
  g_list_model_items_changed (G_LIST_MODEL (self), i, 1, 0);
  if (entry == self->selected)
    select_entry (self, NULL);
}

static void
take_finding (OxModelLibrary *self, OxModelFinding *finding)
{
  OxModelEntry *entry = ox_model_library_find (self, finding->path);

  if (finding->plan == NULL && finding->error == NULL)
    return;
  if (g_error_matches (finding->error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
    return;
  g_hash_table_insert (self->stamps, g_strdup (finding->path), g_strdup (finding->stamp));
  if (entry != NULL) {
    ox_model_entry_update (entry, finding->plan, finding->error);
  } else {
    guint i = 0;

    entry = ox_model_entry_new (finding->path, finding->plan, finding->error);
    while (i < self->entries->len && compare (&self->entries->pdata[i], &entry) < 0)
      i++;
    g_ptr_array_insert (self->entries, i, entry);
    show_engine_state (self, entry);
    g_list_model_items_changed (G_LIST_MODEL (self), i, 0, 1);
  }
  if (self->added != NULL && ox_model_entry_get_usable (entry) && g_str_has_prefix (finding->path, self->added)) {
    g_clear_pointer (&self->added, g_free);
    ox_model_library_set_selected (self, entry);
  } else {
    select_default (self);
  }
}

static gboolean
rescan_timeout_cb (gpointer user_data)
{
  OxModelLibrary *self = user_data;

  self->rescan_source = 0;
  ox_model_library_scan (self);
  return G_SOURCE_REMOVE;
}

static void
rescan_soon_cb (GFileMonitor *monitor, GFile *file, GFile *other, GFileMonitorEvent event, gpointer user_data)
{
  OxModelLibrary *self = user_data;

  /* A file that is being written is looked at when that is over. */
  if (event == G_FILE_MONITOR_EVENT_CHANGED || event == G_FILE_MONITOR_EVENT_ATTRIBUTE_CHANGED)
    return;
  g_clear_handle_id (&self->rescan_source, g_source_remove);
  self->rescan_source = g_timeout_add (RESCAN_DELAY_MS, rescan_timeout_cb, self);
}

static void
watch_folders (OxModelLibrary *self, GStrv folders)
{
  g_autoptr (GHashTable) wanted = g_hash_table_new (g_str_hash, g_str_equal);

  for (guint i = 0; folders != NULL && folders[i] != NULL; i++)
    g_hash_table_add (wanted, folders[i]);
  for (guint i = self->monitors->len; i-- > 0;) {
    const char *path = g_object_get_data (self->monitors->pdata[i], "ox-path");
    if (!g_hash_table_remove (wanted, path))
      g_ptr_array_remove_index (self->monitors, i);
  }
  for (guint i = 0; folders != NULL && folders[i] != NULL; i++) {
    g_autoptr (GFile) file = NULL;
    GFileMonitor *monitor;

    if (!g_hash_table_remove (wanted, folders[i]))
      continue;
    file = g_file_new_for_path (folders[i]);
    /* Where folders cannot be watched, a change shows at the next start. */
    monitor = g_file_monitor_directory (file, G_FILE_MONITOR_WATCH_MOVES, NULL, NULL);
    if (monitor == NULL)
      continue;
    g_object_set_data_full (G_OBJECT (monitor), "ox-path", g_strdup (folders[i]), g_free);
    g_signal_connect (monitor, "changed", G_CALLBACK (rescan_soon_cb), self);
    g_ptr_array_add (self->monitors, monitor);
  }
}

/* Which drafter helps which model: the one with its name and "-assistant". */
static void
match_drafters (OxModelLibrary *self)
{
  g_autoptr (GHashTable) drafters = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);

  for (guint i = 0; i < self->entries->len; i++) {
    OxModelEntry *drafter = self->entries->pdata[i];
    const char *helped = NULL;

    if (!ox_model_entry_is_drafter (drafter))
      continue;
    for (guint m = 0; m < self->entries->len; m++) {
      OxModelEntry *model = self->entries->pdata[m];
      g_autofree char *name = g_strconcat (ox_model_entry_get_file_name (model), "-assistant", NULL);

      if (!ox_model_entry_get_usable (model) || g_ascii_strcasecmp (name, ox_model_entry_get_file_name (drafter)) != 0)
        continue;
      helped = ox_model_entry_get_name (model);
      g_hash_table_insert (drafters, g_strdup (ox_model_entry_get_path (model)),
                           g_strdup (ox_model_entry_get_path (drafter)));
    }
    ox_model_entry_set_helped (drafter, helped);
  }
  ox_engine_set_drafters (self->engine, drafters);
}

static void
end_look (OxModelLibrary *self)
{
  Look *look = g_steal_pointer (&self->look);
  gboolean was_ready = self->ready;

  look->library = NULL;
  for (guint i = self->entries->len; i-- > 0;)
    if (!g_hash_table_contains (look->paths, ox_model_entry_get_path (self->entries->pdata[i])))
      remove_entry (self, i);
  watch_folders (self, look->folders);
  look_unref (look);
  g_clear_pointer (&self->added, g_free);
  self->ready = TRUE;
  match_drafters (self);
  select_default (self);
  ox_info ("models", "Looked for models: %u there", self->entries->len);
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_SCANNING]);
  if (!was_ready)
    g_object_notify_by_pspec (G_OBJECT (self), props[PROP_READY]);
  if (self->scan_again)
    ox_model_library_scan (self);
}

static gboolean
take_findings_cb (gpointer user_data)
{
  Look *look = user_data;
  OxModelLibrary *self = look->library;
  g_autoptr (OxModelLibrary) keep = self != NULL ? g_object_ref (self) : NULL;
  OxModelFinding *finding;
  gboolean ended;

  OX_ASSERT_MAIN_THREAD ();
  g_mutex_lock (&look->mutex);
  look->wake_pending = FALSE;
  while (look->library != NULL && (finding = g_queue_pop_head (&look->findings)) != NULL) {
    g_mutex_unlock (&look->mutex);
    g_hash_table_add (look->paths, g_strdup (finding->path));
    take_finding (self, finding);
    finding_free (look->backend, finding);
    g_mutex_lock (&look->mutex);
  }
  ended = look->ended;
  g_mutex_unlock (&look->mutex);
  if (ended && look->library != NULL)
    end_look (self);
  return G_SOURCE_REMOVE;
}

/* With the mutex held. */
static void
wake (Look *look)
{
  if (look->wake_pending)
    return;
  look->wake_pending = TRUE;
  g_atomic_int_inc (&look->ref_count);
  g_idle_add_full (G_PRIORITY_DEFAULT, take_findings_cb, look, (GDestroyNotify) look_unref);
}

static void
found_cb (OxModelFinding *finding, gpointer user_data)
{
  Look *look = user_data;

  g_mutex_lock (&look->mutex);
  g_queue_push_tail (&look->findings, finding);
  wake (look);
  g_mutex_unlock (&look->mutex);
}

static gpointer
look_thread (gpointer user_data)
{
  Look *look = user_data;
  GStrv folders = ox_model_scan (look->backend, (const char *const *) look->roots, look->known, &look->options,
                                 found_cb, look, look->cancellable);

  g_mutex_lock (&look->mutex);
  look->folders = folders;
  look->ended = TRUE;
  wake (look);
  g_mutex_unlock (&look->mutex);
  look_unref (look);
  return NULL;
}

void
ox_model_library_scan (OxModelLibrary *self)
{
  g_auto (GStrv) added = NULL;
  GHashTableIter iter;
  gpointer path;
  gpointer stamp;
  Look *look;

  OX_ASSERT_MAIN_THREAD ();
  self->scan_again = self->look != NULL;
  if (self->scan_again)
    return;
  g_clear_handle_id (&self->rescan_source, g_source_remove);
  added = get_added_paths (self);

  look = g_new0 (Look, 1);
  look->ref_count = 2;
  look->backend = ox_engine_get_backend (self->engine);
  look->options = ox_engine_get_options (self->engine);
  look->library = self;
  look->roots = ox_model_scan_get_roots ((const char *const *) added);
  look->cancellable = g_cancellable_new ();
  look->paths = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  look->known = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  g_hash_table_iter_init (&iter, self->stamps);
  while (g_hash_table_iter_next (&iter, &path, &stamp))
    g_hash_table_insert (look->known, g_strdup (path), g_strdup (stamp));
  g_mutex_init (&look->mutex);
  g_queue_init (&look->findings);
  self->look = look;
  g_thread_unref (g_thread_new ("ox-models", look_thread, look));
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_SCANNING]);
}

void
ox_model_library_scan_anew (OxModelLibrary *self)
{
  OX_ASSERT_MAIN_THREAD ();
  g_hash_table_remove_all (self->stamps);
  ox_model_library_scan (self);
}

/* ---- The user's own paths ---- */

gboolean
ox_model_library_is_added (OxModelLibrary *self, const char *path)
{
  g_auto (GStrv) paths = get_added_paths (self);

  return paths != NULL && g_strv_contains ((const char *const *) paths, path);
}

void
ox_model_library_add (OxModelLibrary *self, GFile *file)
{
  g_auto (GStrv) paths = NULL;
  g_autofree char *path = g_file_get_path (file);
  OxModelEntry *entry;

  OX_ASSERT_MAIN_THREAD ();
  if (path == NULL || self->settings == NULL)
    return;
  entry = ox_model_library_find (self, path);
  if (entry != NULL && ox_model_entry_get_usable (entry))
    ox_model_library_set_selected (self, entry);
  if (ox_model_library_is_added (self, path)) {
    ox_model_library_scan (self);
  } else {
    g_autoptr (GStrvBuilder) builder = g_strv_builder_new ();

    paths = get_added_paths (self);
    g_strv_builder_addv (builder, (const char **) paths);
    g_strv_builder_add (builder, path);
    g_set_str (&self->added, path);
    /* Tells of the change, and so scans. */
    set_added_paths (self, builder);
  }
}

void
ox_model_library_remove (OxModelLibrary *self, const char *path)
{
  g_auto (GStrv) paths = NULL;
  g_autoptr (GStrvBuilder) builder = g_strv_builder_new ();

  OX_ASSERT_MAIN_THREAD ();
  if (self->settings == NULL)
    return;
  paths = get_added_paths (self);
  for (guint i = 0; paths[i] != NULL; i++)
    if (!g_str_equal (paths[i], path))
      g_strv_builder_add (builder, paths[i]);
  set_added_paths (self, builder);
}
