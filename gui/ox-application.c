/* The app: one instance, which owns the store, the engine and the libraries, and shows a window.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-application.h"

#include "ox-power-saver.h"
#include "ox-preferences.h"
#include "ox-scene.h"
#include "ox-shortcuts.h"
#include "ox-watchdog.h"
#include "ox-window.h"

#include <glib-unix.h>
#include <glib/gi18n.h>
#include <gtksourceview/gtksource.h>

/* How long quitting waits for the engine to let go, and for the store to write. */
#define ENGINE_TIMEOUT (2 * G_USEC_PER_SEC)
#define STORE_TIMEOUT (5 * G_USEC_PER_SEC)

struct _OxApplication {
  AdwApplication parent_instance;

  const OxEngineBackend *backend;
  GSettings *settings;
  OxStore *store;
  OxEngine *engine;
  OxModelLibrary *library;
  OxConversationList *conversations;
  GtkCssProvider *zoom_provider;
  guint signal_ids[3];
};

G_DEFINE_FINAL_TYPE (OxApplication, ox_application, ADW_TYPE_APPLICATION)

static GtkWindow *
get_window (OxApplication *self)
{
  GList *windows = gtk_application_get_windows (GTK_APPLICATION (self));
  for (GList *l = windows; l != NULL; l = l->next)
    if (OX_IS_WINDOW (l->data))
      return l->data;
  return NULL;
}

/* Actions */

static void
quit_action (GSimpleAction *action, GVariant *parameter, gpointer user_data)
{
  GtkWindow *window = get_window (user_data);
  /* Closing first, so that the window's size is remembered. */
  if (window != NULL)
    gtk_window_close (window);
  g_application_quit (user_data);
}

static void
preferences_action (GSimpleAction *action, GVariant *parameter, gpointer user_data)
{
  OxApplication *self = user_data;
  GtkWindow *window = get_window (self);
  if (window != NULL)
    adw_dialog_present (ox_preferences_new (self->settings, self->engine), GTK_WIDGET (window));
}

static void
shortcuts_action (GSimpleAction *action, GVariant *parameter, gpointer user_data)
{
  GtkWindow *window = get_window (user_data);
  if (window != NULL)
    adw_dialog_present (ox_shortcuts_dialog_new (), GTK_WIDGET (window));
}

static void
about_action (GSimpleAction *action, GVariant *parameter, gpointer user_data)
{
  GtkWindow *window = get_window (user_data);
  if (window == NULL)
    return;

  AdwDialog *dialog = adw_about_dialog_new ();
  g_object_set (dialog, "application-name", "Oxinfer", "application-icon", "org.oxinfer.App", "version",
                OXINFER_VERSION, "developer-name", _ ("The Oxinfer contributors"), "license-type", GTK_LICENSE_LGPL_2_1,
                "comments", _ ("Chat with models that run on this computer. Nothing you type leaves it."), NULL);
  adw_dialog_present (dialog, GTK_WIDGET (window));
}

static const GActionEntry actions[] = {
  { .name = "quit", .activate = quit_action },
  { .name = "preferences", .activate = preferences_action },
  { .name = "shortcuts", .activate = shortcuts_action },
  { .name = "about", .activate = about_action },
};

static const struct {
  const char *action;
  const char *accels[4];
} accels[] = {
  { "app.quit", { "<Control>q" } },
  { "app.preferences", { "<Control>comma" } },
  { "app.shortcuts", { "<Control>question" } },
  { "window.close", { "<Control>w" } },
  { "win.new-chat", { "<Control>n" } },
  { "win.choose-model", { "<Control>k" } },
  { "win.focus-composer", { "<Control>l" } },
  { "win.search", { "<Control>f", "<Control><Shift>f" } },
  { "win.think", { "<Control>t" } },
  { "win.regenerate", { "<Control>r" } },
  { "win.copy-answer", { "<Control><Shift>c" } },
  { "win.undo-delete", { "<Control>z" } },
  { "win.previous-chat", { "<Control>Page_Up" } },
  { "win.next-chat", { "<Control>Page_Down" } },
  { "win.previous-message", { "<Alt>Up" } },
  { "win.next-message", { "<Alt>Down" } },
  { "win.toggle-sidebar", { "F9" } },
  { "win.zoom-in", { "<Control>plus", "<Control>equal", "<Control>KP_Add" } },
  { "win.zoom-out", { "<Control>minus", "<Control>KP_Subtract" } },
  { "win.zoom-reset", { "<Control>0", "<Control>KP_0" } },
};

/* Settings */

static void
zoom_changed_cb (OxApplication *self)
{
  char number[G_ASCII_DTOSTR_BUF_SIZE];
  g_ascii_formatd (number, sizeof number, "%.2f", g_settings_get_double (self->settings, "text-zoom"));
  g_autofree char *css = g_strdup_printf (".ox-conversation { font-size: %sem; }", number);
  gtk_css_provider_load_from_string (self->zoom_provider, css);
}

static OxModelWeights
get_weights (GSettings *settings)
{
  g_autofree char *weights = g_settings_get_string (settings, "weights");

  return g_str_equal (weights, "balanced")   ? OX_MODEL_WEIGHTS_Q4
         : g_str_equal (weights, "high")     ? OX_MODEL_WEIGHTS_Q8
         : g_str_equal (weights, "original") ? OX_MODEL_WEIGHTS_STORED
                                             : OX_MODEL_WEIGHTS_AUTO;
}

static void
options_changed_cb (OxApplication *self)
{
  OxModelOptions options = { .threads = (guint) g_settings_get_int (self->settings, "threads"),
                             .weights = get_weights (self->settings) };

  ox_engine_set_options (self->engine, &options);
  ox_engine_set_speculation (self->engine, g_settings_get_boolean (self->settings, "guess-ahead") ? OX_SPECULATION_AUTO
                                                                                                  : OX_SPECULATION_OFF);
}

/* What fits depends on how weights are held. */
static void
weights_changed_cb (OxApplication *self)
{
  options_changed_cb (self);
  ox_model_library_scan_anew (self->library);
}

static void
tools_changed_cb (OxApplication *self)
{
  g_autoptr (OxToolbox) toolbox = NULL;

  if (g_settings_get_boolean (self->settings, "tools")) {
    toolbox = ox_toolbox_new ();
    ox_toolbox_add_builtin (toolbox);
  }
  ox_engine_set_toolbox (self->engine, toolbox);
}

/* Life */

/* Asked to end by the session or from a terminal: as with Quit, every last word is saved. */
static gboolean
terminated_cb (gpointer user_data)
{
  g_application_quit (G_APPLICATION (user_data));
  return G_SOURCE_CONTINUE;
}

static void
loaded_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr (GError) error = NULL;
  if (!ox_conversation_list_load_finish (OX_CONVERSATION_LIST (source), result, &error))
    g_message ("The library of conversations could not be read: %s", error->message);
}

static void
opened_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr (GError) error = NULL;
  if (!ox_store_open_finish (OX_STORE (source), result, &error))
    g_message ("The library of conversations could not be opened: %s", error->message);
}

static gboolean
signal_cb (gpointer user_data)
{
  g_action_group_activate_action (G_ACTION_GROUP (user_data), "quit", NULL);
  return G_SOURCE_CONTINUE;
}

static void
ox_application_startup (GApplication *application)
{
  OxApplication *self = OX_APPLICATION (application);

  G_APPLICATION_CLASS (ox_application_parent_class)->startup (application);
  gtk_source_init ();
  ox_watchdog_start ();
  g_unix_signal_add (SIGTERM, terminated_cb, self);
  g_unix_signal_add (SIGINT, terminated_cb, self);

  g_action_map_add_action_entries (G_ACTION_MAP (self), actions, G_N_ELEMENTS (actions), self);
  /* Whoever ends the app from outside, such as the end of a desktop session, loses nothing either. */
  self->signal_ids[0] = g_unix_signal_add (SIGTERM, signal_cb, self);
  self->signal_ids[1] = g_unix_signal_add (SIGINT, signal_cb, self);
  self->signal_ids[2] = g_unix_signal_add (SIGHUP, signal_cb, self);
  for (guint i = 0; i < G_N_ELEMENTS (accels); i++)
    gtk_application_set_accels_for_action (GTK_APPLICATION (self), accels[i].action, accels[i].accels);

  /* Focus that comes by keyboard must not select whole paragraphs. */
  g_object_set (gtk_settings_get_default (), "gtk-label-select-on-focus", FALSE, NULL);
  ox_scene_prepare_display ();

  self->settings = g_settings_new ("org.oxinfer.App");
  self->zoom_provider = gtk_css_provider_new ();
  gtk_style_context_add_provider_for_display (gdk_display_get_default (), GTK_STYLE_PROVIDER (self->zoom_provider),
                                              GTK_STYLE_PROVIDER_PRIORITY_APPLICATION);
  g_signal_connect_object (self->settings, "changed::text-zoom", G_CALLBACK (zoom_changed_cb), self, G_CONNECT_SWAPPED);
  zoom_changed_cb (self);

  self->engine = ox_engine_new (self->backend);
  g_signal_connect_object (self->settings, "changed::threads", G_CALLBACK (options_changed_cb), self,
                           G_CONNECT_SWAPPED);
  g_signal_connect_object (self->settings, "changed::guess-ahead", G_CALLBACK (options_changed_cb), self,
                           G_CONNECT_SWAPPED);
  g_signal_connect_object (self->settings, "changed::weights", G_CALLBACK (weights_changed_cb), self,
                           G_CONNECT_SWAPPED);
  g_signal_connect_object (self->settings, "changed::tools", G_CALLBACK (tools_changed_cb), self, G_CONNECT_SWAPPED);
  options_changed_cb (self);
  tools_changed_cb (self);
  ox_power_saver_follow_system (self->engine);

  self->store = ox_store_new (NULL);
  ox_store_open (self->store, opened_cb, NULL);
  ox_scene_fill_store (self->store);
  self->conversations = ox_conversation_list_new (self->store);
  ox_conversation_list_load (self->conversations, NULL, loaded_cb, NULL);
  self->library = ox_model_library_new (self->engine, self->settings);
  ox_model_library_scan (self->library);
}

static void
ox_application_activate (GApplication *application)
{
  OxApplication *self = OX_APPLICATION (application);
  GtkWindow *window = get_window (self);

  if (window == NULL) {
    window = GTK_WINDOW (ox_window_new (self));
    ox_scene_play (self, OX_WINDOW (window));
  }
  gtk_window_present (window);
}

static void
ox_application_open (GApplication *application, GFile **files, int n_files, const char *hint)
{
  OxApplication *self = OX_APPLICATION (application);

  g_application_activate (application);
  for (int i = 0; i < n_files; i++)
    ox_model_library_add (self->library, files[i]);
}

static void
ox_application_shutdown (GApplication *application)
{
  OxApplication *self = OX_APPLICATION (application);

  for (guint i = 0; i < G_N_ELEMENTS (self->signal_ids); i++)
    g_clear_handle_id (&self->signal_ids[i], g_source_remove);
  if (self->conversations != NULL) {
    ox_conversation_list_stop_all (self->conversations);
    ox_conversation_list_flush (self->conversations);
    if (!ox_engine_shutdown (self->engine, ENGINE_TIMEOUT))
      g_message ("The engine did not stop in time");
    if (!ox_store_close (self->store, STORE_TIMEOUT))
      g_message ("The library of conversations was not closed in time");
  }
  g_clear_object (&self->library);
  g_clear_object (&self->conversations);
  g_clear_object (&self->store);
  g_clear_object (&self->engine);
  g_clear_object (&self->zoom_provider);
  g_clear_object (&self->settings);
  G_APPLICATION_CLASS (ox_application_parent_class)->shutdown (application);
}

static int
ox_application_handle_local_options (GApplication *application, GVariantDict *options)
{
  if (g_variant_dict_contains (options, "version")) {
    g_print ("Oxinfer %s\n", OXINFER_VERSION);
    return 0;
  }
  return -1;
}

static void
ox_application_class_init (OxApplicationClass *klass)
{
  GApplicationClass *application_class = G_APPLICATION_CLASS (klass);

  application_class->startup = ox_application_startup;
  application_class->activate = ox_application_activate;
  application_class->open = ox_application_open;
  application_class->shutdown = ox_application_shutdown;
  application_class->handle_local_options = ox_application_handle_local_options;
}

static void
ox_application_init (OxApplication *self)
{
  g_application_add_main_option (G_APPLICATION (self), "version", 0, G_OPTION_FLAG_NONE, G_OPTION_ARG_NONE,
                                 N_ ("Show the version and quit"), NULL);
}

/**
 * ox_application_new:
 * @backend: (nullable): an engine in place of the real one
 *
 * Returns: the app
 */
OxApplication *
ox_application_new (const OxEngineBackend *backend)
{
  OxApplication *self =
    g_object_new (OX_TYPE_APPLICATION, "application-id", OXINFER_APPLICATION_ID, "resource-base-path",
                  "/org/oxinfer/App", "flags", G_APPLICATION_HANDLES_OPEN, NULL);
  self->backend = backend;
  return self;
}

GSettings *
ox_application_get_settings (OxApplication *self)
{
  return self->settings;
}

OxStore *
ox_application_get_store (OxApplication *self)
{
  return self->store;
}

OxEngine *
ox_application_get_engine (OxApplication *self)
{
  return self->engine;
}

OxModelLibrary *
ox_application_get_library (OxApplication *self)
{
  return self->library;
}

OxConversationList *
ox_application_get_conversations (OxApplication *self)
{
  return self->conversations;
}
