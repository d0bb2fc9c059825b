/* The window: the library beside a chat, or the welcome page while there is no model.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-window.h"

#include "ox-models-dialog.h"
#include "ox-permission-dialog.h"
#include "ox-welcome-page.h"

#include <glib/gi18n.h>
#include <math.h>

/* How long a deleted conversation can be brought back, in seconds. */
#define UNDO_SECONDS 10
#define ZOOM_STEP 0.1
#define ZOOM_MIN 0.5
#define ZOOM_MAX 3.0

struct _OxWindow {
  AdwApplicationWindow parent_instance;

  GtkStack *pages;
  AdwNavigationSplitView *split_view;
  OxSidebar *sidebar;
  OxChatView *chat_view;
  OxWelcomePage *welcome;
  GtkRevealer *drop_revealer;

  OxApplication *application; /* borrowed: it owns the window */
  gboolean restored;
  gboolean hidden_sidebar; /* by F9, and not for lack of room */
  AdwToast *undo_toast;
  OxConversation *deleted;
};

G_DEFINE_FINAL_TYPE (OxWindow, ox_window, ADW_TYPE_APPLICATION_WINDOW)

/* Which page */

/* What the welcome page says of models that were found and cannot be used. */
static char *
dup_problem (GListModel *library)
{
  g_autoptr (OxModelEntry) entry = g_list_model_get_item (library, 0);
  const char *reason = entry != NULL ? ox_model_entry_get_reason (entry) : NULL;
  if (entry == NULL)
    return NULL;
  if (reason == NULL)
    return g_strdup_printf (_ ("%s cannot be used."), ox_model_entry_get_name (entry));
  /* Translators: a model's name, then why it cannot be used. */
  return g_strdup_printf (_ ("%s cannot be used: %s"), ox_model_entry_get_name (entry), reason);
}

/* The chat is there as soon as there is something to answer, or something to read. */
static void
update_page (OxWindow *self)
{
  OxModelLibrary *library = ox_application_get_library (self->application);
  OxConversationList *conversations = ox_application_get_conversations (self->application);
  gboolean usable = ox_model_library_get_selected (library) != NULL;
  gboolean has_chats = g_list_model_get_n_items (G_LIST_MODEL (conversations)) > 0;
  const char *page = ox_window_get_page (self);

  if (usable || has_chats) {
    if (!g_str_equal (page, "main")) {
      gtk_stack_set_visible_child_name (self->pages, "main");
      gtk_widget_grab_focus (GTK_WIDGET (ox_chat_view_get_composer (self->chat_view)));
    }
    return;
  }
  /* A library that was emptied later, by a search or a delete, is no first run. */
  if (g_str_equal (page, "main") || !ox_model_library_get_ready (library) ||
      !ox_conversation_list_get_loaded (conversations))
    return;
  g_autofree char *problem = dup_problem (G_LIST_MODEL (library));
  ox_welcome_page_set_problem (self->welcome, problem);
  if (!g_str_equal (page, "welcome")) {
    gtk_stack_set_visible_child_name (self->pages, "welcome");
    gtk_widget_grab_focus (GTK_WIDGET (self->welcome));
  }
}

/* Once all conversations are known, the one that was open last is shown again. */
static void
restore_conversation (OxWindow *self)
{
  OxConversationList *conversations = ox_application_get_conversations (self->application);
  if (self->restored || !ox_conversation_list_get_loaded (conversations))
    return;
  self->restored = TRUE;

  GSettings *settings = ox_application_get_settings (self->application);
  g_autofree char *id = g_settings_get_string (settings, "last-conversation");
  OxConversation *conversation = id[0] != '\0' ? ox_conversation_list_find (conversations, id) : NULL;
  if (conversation != NULL)
    ox_window_open_conversation (self, conversation);
  else
    ox_window_new_chat (self);
  update_page (self);
}

/* The conversation shown is the one to start with next time, once it is in the library. */
static void
remember_conversation (OxWindow *self)
{
  OxConversation *conversation = ox_chat_view_get_conversation (self->chat_view);
  OxConversationList *conversations = ox_application_get_conversations (self->application);
  const char *id = conversation != NULL ? ox_conversation_get_id (conversation) : NULL;

  if (!self->restored)
    return;
  if (id == NULL || ox_conversation_list_find (conversations, id) == NULL)
    id = "";
  g_settings_set_string (ox_application_get_settings (self->application), "last-conversation", id);
}

/* Sidebar */

static void
open_conversation_cb (OxWindow *self, OxConversation *conversation)
{
  ox_window_open_conversation (self, conversation);
}

static void
open_place_cb (OxWindow *self, const char *id)
{
  if (g_str_equal (id, "new-chat"))
    ox_window_new_chat (self);
}

static void
delete_conversation_cb (OxWindow *self, OxConversation *conversation)
{
  ox_window_delete_conversation (self, conversation);
}

static void
show_content_cb (OxWindow *self)
{
  /* Back from a chat that F9 had to itself shows the library beside it again. */
  if (self->hidden_sidebar && !adw_navigation_split_view_get_show_content (self->split_view)) {
    self->hidden_sidebar = FALSE;
    adw_navigation_split_view_set_collapsed (self->split_view, FALSE);
    adw_navigation_split_view_set_show_content (self->split_view, TRUE);
  }
}

static void
collapsed_cb (OxWindow *self)
{
  if (!adw_navigation_split_view_get_collapsed (self->split_view))
    self->hidden_sidebar = FALSE;
}

/* Deleting, with a way back */

static void
purge_deleted (OxWindow *self)
{
  g_autoptr (OxConversation) deleted = g_steal_pointer (&self->deleted);
  if (deleted != NULL && ox_application_get_conversations (self->application) != NULL)
    ox_conversation_list_purge (ox_application_get_conversations (self->application), deleted);
}

static void
toast_dismissed_cb (OxWindow *self, AdwToast *toast)
{
  if (toast != self->undo_toast)
    return;
  self->undo_toast = NULL;
  gtk_widget_action_set_enabled (GTK_WIDGET (self), "win.undo-delete", FALSE);
  purge_deleted (self);
}

static void
undo_delete_action (GtkWidget *widget, const char *name, GVariant *parameter)
{
  OxWindow *self = OX_WINDOW (widget);
  g_autoptr (OxConversation) conversation = g_steal_pointer (&self->deleted);
  AdwToast *toast = g_steal_pointer (&self->undo_toast);

  gtk_widget_action_set_enabled (widget, "win.undo-delete", FALSE);
  if (conversation == NULL)
    return;
  ox_conversation_list_undelete (ox_application_get_conversations (self->application), conversation);
  ox_window_open_conversation (self, conversation);
  if (toast != NULL)
    adw_toast_dismiss (toast);
}

/* Files */

static void
import_done_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr (OxWindow) self = user_data;
  g_autoptr (GError) error = NULL;
  g_autoptr (GFile) file = gtk_file_dialog_open_finish (GTK_FILE_DIALOG (source), result, &error);
  if (file != NULL && ox_application_get_library (self->application) != NULL)
    ox_model_library_add (ox_application_get_library (self->application), file);
}

static void
import_action (GtkWidget *widget, const char *name, GVariant *parameter)
{
  g_autoptr (GtkFileDialog) dialog = gtk_file_dialog_new ();
  g_autoptr (GtkFileFilter) models = gtk_file_filter_new ();
  g_autoptr (GListStore) filters = g_list_store_new (GTK_TYPE_FILE_FILTER);

  gtk_file_filter_set_name (models, _ ("Models (GGUF)"));
  gtk_file_filter_add_suffix (models, "gguf");
  g_list_store_append (filters, models);
  gtk_file_dialog_set_title (dialog, _ ("Import a Model"));
  gtk_file_dialog_set_accept_label (dialog, _ ("_Import"));
  gtk_file_dialog_set_filters (dialog, G_LIST_MODEL (filters));
  gtk_file_dialog_open (dialog, GTK_WINDOW (widget), NULL, import_done_cb, g_object_ref (widget));
}

static void
folder_done_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr (OxWindow) self = user_data;
  g_autoptr (GError) error = NULL;
  g_autoptr (GFile) folder = gtk_file_dialog_select_folder_finish (GTK_FILE_DIALOG (source), result, &error);
  if (folder != NULL && ox_application_get_library (self->application) != NULL)
    ox_model_library_add (ox_application_get_library (self->application), folder);
}

static void
folder_action (GtkWidget *widget, const char *name, GVariant *parameter)
{
  g_autoptr (GtkFileDialog) dialog = gtk_file_dialog_new ();
  gtk_file_dialog_set_title (dialog, _ ("Choose a Folder with Models"));
  gtk_file_dialog_set_accept_label (dialog, _ ("_Choose"));
  gtk_file_dialog_select_folder (dialog, GTK_WINDOW (widget), NULL, folder_done_cb, g_object_ref (widget));
}

/* A folder is as good as a file; anything else is not for us. */
static void
dropped_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr (OxWindow) self = user_data;
  g_autoptr (GFileInfo) info = g_file_query_info_finish (G_FILE (source), result, NULL);
  OxModelLibrary *library = ox_application_get_library (self->application);

  if (info != NULL && g_file_info_get_file_type (info) == G_FILE_TYPE_DIRECTORY && library != NULL)
    ox_model_library_add (library, G_FILE (source));
  else
    ox_chat_view_add_toast (self->chat_view, adw_toast_new (_ ("Only model files (.gguf) can be dropped here")));
}

static gboolean
drop_cb (GtkDropTarget *target, const GValue *value, double x, double y, gpointer user_data)
{
  OxWindow *self = user_data;
  g_autoptr (GSList) files = gdk_file_list_get_files (g_value_get_boxed (value));

  for (GSList *l = files; l != NULL; l = l->next) {
    g_autofree char *name = g_file_get_basename (l->data);
    if (name != NULL && g_str_has_suffix (name, ".gguf"))
      ox_model_library_add (ox_application_get_library (self->application), l->data);
    else
      g_file_query_info_async (l->data, G_FILE_ATTRIBUTE_STANDARD_TYPE, G_FILE_QUERY_INFO_NONE, G_PRIORITY_DEFAULT,
                               NULL, dropped_cb, g_object_ref (self));
  }
  return TRUE;
}

static void
drop_state_cb (GtkDropTarget *target, GParamSpec *pspec, OxWindow *self)
{
  gtk_revealer_set_reveal_child (self->drop_revealer, gtk_drop_target_get_current_drop (target) != NULL);
}

/* Other actions */

static void
new_chat_action (GtkWidget *widget, const char *name, GVariant *parameter)
{
  ox_window_new_chat (OX_WINDOW (widget));
}

static void
choose_model_action (GtkWidget *widget, const char *name, GVariant *parameter)
{
  ox_chat_view_choose_model (OX_WINDOW (widget)->chat_view);
}

static void
focus_composer_action (GtkWidget *widget, const char *name, GVariant *parameter)
{
  OxWindow *self = OX_WINDOW (widget);
  adw_navigation_split_view_set_show_content (self->split_view, TRUE);
  gtk_widget_grab_focus (GTK_WIDGET (ox_chat_view_get_composer (self->chat_view)));
}

static void
search_action (GtkWidget *widget, const char *name, GVariant *parameter)
{
  OxWindow *self = OX_WINDOW (widget);
  ox_window_show_library (self);
  ox_sidebar_search (self->sidebar);
}

static void
rename_action (GtkWidget *widget, const char *name, GVariant *parameter)
{
  ox_chat_view_rename (OX_WINDOW (widget)->chat_view);
}

static void
delete_action (GtkWidget *widget, const char *name, GVariant *parameter)
{
  OxWindow *self = OX_WINDOW (widget);
  OxConversation *conversation = ox_chat_view_get_conversation (self->chat_view);
  if (conversation != NULL && ox_conversation_get_length (conversation) > 0)
    ox_window_delete_conversation (self, conversation);
}

static void
regenerate_action (GtkWidget *widget, const char *name, GVariant *parameter)
{
  ox_chat_view_regenerate (OX_WINDOW (widget)->chat_view);
}

static void
copy_answer_action (GtkWidget *widget, const char *name, GVariant *parameter)
{
  ox_chat_view_copy_answer (OX_WINDOW (widget)->chat_view);
}

static void
toast_action (GtkWidget *widget, const char *name, GVariant *parameter)
{
  AdwToast *toast = adw_toast_new (g_variant_get_string (parameter, NULL));
  adw_toast_set_use_markup (toast, FALSE);
  adw_toast_set_timeout (toast, 2);
  ox_chat_view_add_toast (OX_WINDOW (widget)->chat_view, toast);
}

static void
think_action (GtkWidget *widget, const char *name, GVariant *parameter)
{
  ox_composer_toggle_think (ox_chat_view_get_composer (OX_WINDOW (widget)->chat_view));
}

static void
neighbour_action (GtkWidget *widget, const char *name, GVariant *parameter)
{
  OxWindow *self = OX_WINDOW (widget);
  int direction = g_str_equal (name, "win.previous-chat") ? -1 : 1;
  g_autoptr (OxConversation) conversation =
    ox_sidebar_get_neighbour (self->sidebar, ox_chat_view_get_conversation (self->chat_view), direction);
  if (conversation != NULL)
    ox_window_open_conversation (self, conversation);
}

static void
message_action (GtkWidget *widget, const char *name, GVariant *parameter)
{
  ox_chat_view_move_focus (OX_WINDOW (widget)->chat_view, g_str_equal (name, "win.previous-message") ? -1 : 1);
}

static void
toggle_sidebar_action (GtkWidget *widget, const char *name, GVariant *parameter)
{
  OxWindow *self = OX_WINDOW (widget);

  if (!adw_navigation_split_view_get_collapsed (self->split_view)) {
    adw_navigation_split_view_set_show_content (self->split_view, TRUE);
    adw_navigation_split_view_set_collapsed (self->split_view, TRUE);
    self->hidden_sidebar = TRUE;
  } else if (self->hidden_sidebar) {
    adw_navigation_split_view_set_collapsed (self->split_view, FALSE);
  } else {
    adw_navigation_split_view_set_show_content (self->split_view,
                                                !adw_navigation_split_view_get_show_content (self->split_view));
  }
}

static void
zoom_action (GtkWidget *widget, const char *name, GVariant *parameter)
{
  GSettings *settings = ox_application_get_settings (OX_WINDOW (widget)->application);
  double zoom = g_settings_get_double (settings, "text-zoom");
  if (g_str_equal (name, "win.zoom-reset"))
    zoom = 1;
  else
    zoom += g_str_equal (name, "win.zoom-in") ? ZOOM_STEP : -ZOOM_STEP;
  g_settings_set_double (settings, "text-zoom", CLAMP (round (zoom * 100) / 100, ZOOM_MIN, ZOOM_MAX));
}

static void
models_action (GtkWidget *widget, const char *name, GVariant *parameter)
{
  OxWindow *self = OX_WINDOW (widget);
  adw_dialog_present (ox_models_dialog_new (ox_application_get_library (self->application),
                                            ox_application_get_engine (self->application)),
                      widget);
}

static gboolean
escape_cb (GtkWidget *widget, GVariant *arguments, gpointer user_data)
{
  OxWindow *self = OX_WINDOW (widget);
  OxConversation *conversation = ox_chat_view_get_conversation (self->chat_view);
  if (conversation == NULL || !ox_conversation_get_answering (conversation))
    return GDK_EVENT_PROPAGATE;
  ox_chat_view_stop (self->chat_view);
  return GDK_EVENT_STOP;
}

/* The store tells what it could not do. */

static void
store_notice_cb (OxWindow *self, const char *sentence)
{
  AdwToast *toast = adw_toast_new (sentence);
  adw_toast_set_use_markup (toast, FALSE);
  adw_toast_set_timeout (toast, 0);
  ox_chat_view_add_toast (self->chat_view, toast);
}

/* Wherever the answer is being written: the window is what there is to ask in. */
static gboolean
permission_cb (OxWindow *self, OxPermission *permission)
{
  adw_dialog_present (ox_permission_dialog_new (permission), GTK_WIDGET (self));
  return TRUE;
}

static void
remember_size (OxWindow *self)
{
  GSettings *settings = ox_application_get_settings (self->application);
  int width, height;

  gtk_window_get_default_size (GTK_WINDOW (self), &width, &height);
  g_settings_set_int (settings, "window-width", width);
  g_settings_set_int (settings, "window-height", height);
  g_settings_set_boolean (settings, "window-maximized", gtk_window_is_maximized (GTK_WINDOW (self)));
}

static gboolean
ox_window_close_request (GtkWindow *window)
{
  OxWindow *self = OX_WINDOW (window);

  remember_size (self);
  purge_deleted (self);
  return GTK_WINDOW_CLASS (ox_window_parent_class)->close_request (window);
}

static void
ox_window_dispose (GObject *object)
{
  OxWindow *self = OX_WINDOW (object);

  self->undo_toast = NULL;
  g_clear_object (&self->deleted);
  gtk_widget_dispose_template (GTK_WIDGET (object), OX_TYPE_WINDOW);
  G_OBJECT_CLASS (ox_window_parent_class)->dispose (object);
}

static void
ox_window_class_init (OxWindowClass *klass)
{
  static const struct {
    const char *name;
    const char *parameter;
    GtkWidgetActionActivateFunc activate;
  } window_actions[] = {
    { "win.new-chat", NULL, new_chat_action },
    { "win.choose-model", NULL, choose_model_action },
    { "win.focus-composer", NULL, focus_composer_action },
    { "win.search", NULL, search_action },
    { "win.rename-chat", NULL, rename_action },
    { "win.delete-chat", NULL, delete_action },
    { "win.undo-delete", NULL, undo_delete_action },
    { "win.regenerate", NULL, regenerate_action },
    { "win.copy-answer", NULL, copy_answer_action },
    { "win.toast", "s", toast_action },
    { "win.think", NULL, think_action },
    { "win.previous-chat", NULL, neighbour_action },
    { "win.next-chat", NULL, neighbour_action },
    { "win.previous-message", NULL, message_action },
    { "win.next-message", NULL, message_action },
    { "win.toggle-sidebar", NULL, toggle_sidebar_action },
    { "win.zoom-in", NULL, zoom_action },
    { "win.zoom-out", NULL, zoom_action },
    { "win.zoom-reset", NULL, zoom_action },
    { "win.models", NULL, models_action },
    { "win.import-model", NULL, import_action },
    { "win.add-model-folder", NULL, folder_action },
  };
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);

  G_OBJECT_CLASS (klass)->dispose = ox_window_dispose;
  GTK_WINDOW_CLASS (klass)->close_request = ox_window_close_request;

  g_type_ensure (OX_TYPE_SIDEBAR);
  g_type_ensure (OX_TYPE_CHAT_VIEW);
  g_type_ensure (OX_TYPE_WELCOME_PAGE);
  gtk_widget_class_set_template_from_resource (widget_class, "/org/oxinfer/App/ui/ox-window.ui");
  gtk_widget_class_bind_template_child (widget_class, OxWindow, pages);
  gtk_widget_class_bind_template_child (widget_class, OxWindow, split_view);
  gtk_widget_class_bind_template_child (widget_class, OxWindow, sidebar);
  gtk_widget_class_bind_template_child (widget_class, OxWindow, chat_view);
  gtk_widget_class_bind_template_child (widget_class, OxWindow, welcome);
  gtk_widget_class_bind_template_child (widget_class, OxWindow, drop_revealer);
  gtk_widget_class_bind_template_callback (widget_class, open_conversation_cb);
  gtk_widget_class_bind_template_callback (widget_class, open_place_cb);
  gtk_widget_class_bind_template_callback (widget_class, delete_conversation_cb);
  gtk_widget_class_bind_template_callback (widget_class, show_content_cb);
  gtk_widget_class_bind_template_callback (widget_class, collapsed_cb);

  for (guint i = 0; i < G_N_ELEMENTS (window_actions); i++)
    gtk_widget_class_install_action (widget_class, window_actions[i].name, window_actions[i].parameter,
                                     window_actions[i].activate);
  gtk_widget_class_add_binding (widget_class, GDK_KEY_Escape, 0, escape_cb, NULL);
}

static void
ox_window_init (OxWindow *self)
{
  gtk_widget_init_template (GTK_WIDGET (self));
  gtk_widget_action_set_enabled (GTK_WIDGET (self), "win.undo-delete", FALSE);

  GtkDropTarget *drop = gtk_drop_target_new (GDK_TYPE_FILE_LIST, GDK_ACTION_COPY);
  g_signal_connect_object (drop, "drop", G_CALLBACK (drop_cb), self, G_CONNECT_DEFAULT);
  g_signal_connect_object (drop, "notify::current-drop", G_CALLBACK (drop_state_cb), self, G_CONNECT_DEFAULT);
  gtk_widget_add_controller (GTK_WIDGET (self), GTK_EVENT_CONTROLLER (drop));
}

/**
 * ox_window_new:
 * @application: the app, which has started
 *
 * Returns: (transfer none): a window on the app's conversations
 */
OxWindow *
ox_window_new (OxApplication *application)
{
  OxWindow *self = g_object_new (OX_TYPE_WINDOW, "application", application, NULL);
  OxModelLibrary *library = ox_application_get_library (application);
  OxConversationList *conversations = ox_application_get_conversations (application);
  OxStore *store = ox_application_get_store (application);
  GSettings *settings = ox_application_get_settings (application);

  self->application = application;
  gtk_window_set_default_size (GTK_WINDOW (self), CLAMP (g_settings_get_int (settings, "window-width"), 1, G_MAXINT16),
                               CLAMP (g_settings_get_int (settings, "window-height"), 1, G_MAXINT16));
  if (g_settings_get_boolean (settings, "window-maximized"))
    gtk_window_maximize (GTK_WINDOW (self));

  ox_chat_view_set_context (self->chat_view, ox_application_get_engine (application), library, store, settings);
  ox_sidebar_set_context (self->sidebar, conversations, ox_application_get_engine (application));
  g_signal_connect_object (library, "items-changed", G_CALLBACK (update_page), self, G_CONNECT_SWAPPED);
  g_signal_connect_object (library, "notify::ready", G_CALLBACK (update_page), self, G_CONNECT_SWAPPED);
  g_signal_connect_object (library, "notify::selected", G_CALLBACK (update_page), self, G_CONNECT_SWAPPED);
  g_signal_connect_object (conversations, "notify::loaded", G_CALLBACK (restore_conversation), self, G_CONNECT_SWAPPED);
  g_signal_connect_object (conversations, "items-changed", G_CALLBACK (remember_conversation), self,
                           G_CONNECT_SWAPPED | G_CONNECT_AFTER);
  g_signal_connect_object (conversations, "items-changed", G_CALLBACK (update_page), self, G_CONNECT_SWAPPED);
  g_signal_connect_object (ox_application_get_engine (application), "permission", G_CALLBACK (permission_cb), self,
                           G_CONNECT_SWAPPED);
  g_signal_connect_object (store, "notice", G_CALLBACK (store_notice_cb), self, G_CONNECT_SWAPPED);
  g_signal_connect_object (store, "write-failed", G_CALLBACK (store_notice_cb), self, G_CONNECT_SWAPPED);
  restore_conversation (self);
  update_page (self);
  return self;
}

/**
 * ox_window_open_conversation:
 * @self: a window
 * @conversation: what is shown from now on
 */
void
ox_window_open_conversation (OxWindow *self, OxConversation *conversation)
{
  ox_chat_view_set_conversation (self->chat_view, conversation);
  ox_sidebar_select (self->sidebar, conversation);
  adw_navigation_split_view_set_show_content (self->split_view, TRUE);
  remember_conversation (self);
}

/**
 * ox_window_new_chat:
 * @self: a window
 *
 * Shows an empty conversation.
 */
void
ox_window_new_chat (OxWindow *self)
{
  OxConversation *current = ox_chat_view_get_conversation (self->chat_view);

  if (current == NULL || ox_conversation_get_length (current) > 0 || !ox_conversation_get_loaded (current)) {
    g_autoptr (OxConversation) conversation =
      ox_conversation_list_create (ox_application_get_conversations (self->application));
    ox_window_open_conversation (self, conversation);
  } else {
    ox_window_open_conversation (self, current);
  }
  gtk_widget_grab_focus (GTK_WIDGET (ox_chat_view_get_composer (self->chat_view)));
}

/**
 * ox_window_delete_conversation:
 * @self: a window
 * @conversation: what is deleted
 *
 * Deletes at once, and offers to undo that for a while.
 */
void
ox_window_delete_conversation (OxWindow *self, OxConversation *conversation)
{
  OxConversationList *conversations = ox_application_get_conversations (self->application);
  g_autoptr (OxConversation) kept = g_object_ref (conversation);
  gboolean shown = conversation == ox_chat_view_get_conversation (self->chat_view);

  /* Only the last one can be brought back. */
  if (self->undo_toast != NULL)
    adw_toast_dismiss (self->undo_toast);

  /* Translators: a chat's title. */
  AdwToast *toast = adw_toast_new_format (_ ("“%s” deleted"), ox_conversation_get_title (conversation));
  adw_toast_set_use_markup (toast, FALSE);
  adw_toast_set_button_label (toast, _ ("Undo"));
  adw_toast_set_action_name (toast, "win.undo-delete");
  adw_toast_set_timeout (toast, UNDO_SECONDS);
  adw_toast_set_priority (toast, ADW_TOAST_PRIORITY_HIGH);
  g_signal_connect_object (toast, "dismissed", G_CALLBACK (toast_dismissed_cb), self, G_CONNECT_SWAPPED);

  ox_conversation_list_delete (conversations, conversation);
  if (shown)
    ox_window_new_chat (self);
  self->deleted = g_steal_pointer (&kept);
  self->undo_toast = toast;
  gtk_widget_action_set_enabled (GTK_WIDGET (self), "win.undo-delete", TRUE);
  ox_chat_view_add_toast (self->chat_view, toast);
}

/**
 * ox_window_show_library:
 * @self: a window
 *
 * Shows the sidebar, as a page of its own where there is little room.
 */
void
ox_window_show_library (OxWindow *self)
{
  if (self->hidden_sidebar)
    adw_navigation_split_view_set_collapsed (self->split_view, FALSE);
  else if (adw_navigation_split_view_get_collapsed (self->split_view))
    adw_navigation_split_view_set_show_content (self->split_view, FALSE);
}

OxChatView *
ox_window_get_chat_view (OxWindow *self)
{
  return self->chat_view;
}

OxSidebar *
ox_window_get_sidebar (OxWindow *self)
{
  return self->sidebar;
}

/**
 * ox_window_get_page:
 * @self: a window
 *
 * Returns: "starting", "welcome" or "main"
 */
const char *
ox_window_get_page (OxWindow *self)
{
  return gtk_stack_get_visible_child_name (self->pages);
}
