/* The preferences dialog.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-preferences.h"

#include "oxinfer.h"

#include <glib/gi18n.h>
#include <math.h>

struct _OxPreferences {
  AdwPreferencesDialog parent_instance;

  AdwSwitchRow *enter_row;
  AdwSwitchRow *tools_row;
  AdwSwitchRow *statistics_row;
  AdwSpinRow *zoom_row;
  AdwActionRow *cpu_row;
  AdwActionRow *memory_row;
  AdwComboRow *weights_row;
  AdwSwitchRow *guess_row;
  GtkLabel *cache_label;
  GtkButton *cache_button;
  AdwSpinRow *threads_row;
  GtkAdjustment *threads_adjustment;
  AdwPreferencesGroup *folders_group;

  GSettings *settings;
  OxEngine *engine;
  guint64 cache_bytes;
  GPtrArray *folder_rows; /* of GtkWidget, borrowed */
};

G_DEFINE_FINAL_TYPE (OxPreferences, ox_preferences, ADW_TYPE_PREFERENCES_DIALOG)

/* How weights may be held, in the order of the list. */
static const struct {
  const char *value;
  const char *title;
  const char *subtitle;
} weights[] = {
  { "automatic", N_ ("Automatic"), N_ ("High, or balanced where memory is short") },
  { "balanced", N_ ("Balanced"), N_ ("Least memory and quickest, but less exact: 4 bits a weight (Q4)") },
  { "high", N_ ("High"), N_ ("Nearly as good as the original: 8 bits a weight (Q8)") },
  { "original", N_ ("Original"), N_ ("As in the file (BF16, F16): most memory, slowest") },
};

static void
weights_selected_cb (OxPreferences *self)
{
  guint selected = adw_combo_row_get_selected (self->weights_row);
  if (selected < G_N_ELEMENTS (weights))
    adw_action_row_set_subtitle (ADW_ACTION_ROW (self->weights_row), _ (weights[selected].subtitle));
}

static gboolean
weights_to_selected (GValue *value, GVariant *variant, gpointer user_data)
{
  for (guint i = 0; i < G_N_ELEMENTS (weights); i++)
    if (g_str_equal (weights[i].value, g_variant_get_string (variant, NULL)))
      g_value_set_uint (value, i);
  return TRUE;
}

static GVariant *
selected_to_weights (const GValue *value, const GVariantType *type, gpointer user_data)
{
  return g_variant_new_string (weights[MIN (g_value_get_uint (value), G_N_ELEMENTS (weights) - 1)].value);
}

/* Threads: 0 is told in a word. */

static gboolean
threads_output_cb (AdwSpinRow *row)
{
  if (adw_spin_row_get_value (row) > 0)
    return FALSE;
  gtk_editable_set_text (GTK_EDITABLE (row), _ ("Automatic"));
  return TRUE;
}

static int
threads_input_cb (AdwSpinRow *row, double *value)
{
  if (!g_str_equal (gtk_editable_get_text (GTK_EDITABLE (row)), _ ("Automatic")))
    return FALSE;
  *value = 0;
  return TRUE;
}

/* Prepared models */

static void
cache_bytes_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr (OxPreferences) self = user_data;
  /* The dialog may have been closed in the meantime. */
  if (self->engine == NULL)
    return;
  self->cache_bytes = ox_engine_get_cache_bytes_finish (self->engine, result);
  g_autofree char *size = g_format_size (self->cache_bytes);
  gtk_label_set_label (self->cache_label, self->cache_bytes > 0 ? size : _ ("None"));
  gtk_widget_set_sensitive (GTK_WIDGET (self->cache_button), self->cache_bytes > 0);
}

static void
cleared_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr (OxPreferences) self = user_data;
  g_autoptr (GError) error = NULL;
  g_autofree char *text = NULL;
  if (self->engine == NULL)
    return;
  if (ox_engine_clear_cache_finish (self->engine, result, &error)) {
    g_autofree char *size = g_format_size (self->cache_bytes);
    /* Translators: an amount of disk space. */
    text = g_strdup_printf (_ ("%s freed"), size);
  } else {
    text = g_strdup_printf (_ ("Not cleared: %s"), error->message);
  }
  AdwToast *toast = adw_toast_new (text);
  adw_toast_set_use_markup (toast, FALSE);
  adw_preferences_dialog_add_toast (ADW_PREFERENCES_DIALOG (self), toast);
  ox_engine_get_cache_bytes (self->engine, cache_bytes_cb, g_object_ref (self));
}

static void
clear_cache_cb (OxPreferences *self)
{
  gtk_widget_set_sensitive (GTK_WIDGET (self->cache_button), FALSE);
  ox_engine_clear_cache (self->engine, cleared_cb, g_object_ref (self));
}

static gboolean
zoom_to_percent (GValue *value, GVariant *variant, gpointer user_data)
{
  g_value_set_double (value, round (g_variant_get_double (variant) * 100));
  return TRUE;
}

static GVariant *
percent_to_zoom (const GValue *value, const GVariantType *type, gpointer user_data)
{
  return g_variant_new_double (g_value_get_double (value) / 100);
}

static void
remove_folder_cb (GtkButton *button, OxPreferences *self)
{
  const char *folder = g_object_get_data (G_OBJECT (button), "ox-folder");
  g_auto (GStrv) folders = g_settings_get_strv (self->settings, "model-folders");
  g_autoptr (GStrvBuilder) left = g_strv_builder_new ();
  for (guint i = 0; folders[i] != NULL; i++)
    if (!g_str_equal (folders[i], folder))
      g_strv_builder_add (left, folders[i]);
  g_auto (GStrv) result = g_strv_builder_end (left);
  g_settings_set_strv (self->settings, "model-folders", (const char *const *) result);
}

static void
folders_changed_cb (OxPreferences *self)
{
  g_auto (GStrv) folders = g_settings_get_strv (self->settings, "model-folders");

  for (guint i = 0; i < self->folder_rows->len; i++)
    adw_preferences_group_remove (self->folders_group, self->folder_rows->pdata[i]);
  g_ptr_array_set_size (self->folder_rows, 0);

  for (guint i = 0; folders[i] != NULL; i++) {
    GtkWidget *row = adw_action_row_new ();
    g_autofree char *title = g_filename_display_name (folders[i]);
    adw_preferences_row_set_use_markup (ADW_PREFERENCES_ROW (row), FALSE);
    adw_preferences_row_set_title (ADW_PREFERENCES_ROW (row), title);
    GtkWidget *button = gtk_button_new_from_icon_name ("edit-delete-symbolic");
    g_autofree char *name = g_strdup_printf (_ ("Remove %s from the List"), title);
    gtk_widget_set_tooltip_text (button, _ ("Remove from the List"));
    gtk_accessible_update_property (GTK_ACCESSIBLE (button), GTK_ACCESSIBLE_PROPERTY_LABEL, name, -1);
    gtk_widget_add_css_class (button, "flat");
    gtk_widget_set_valign (button, GTK_ALIGN_CENTER);
    g_object_set_data_full (G_OBJECT (button), "ox-folder", g_strdup (folders[i]), g_free);
    g_signal_connect_object (button, "clicked", G_CALLBACK (remove_folder_cb), self, G_CONNECT_DEFAULT);
    adw_action_row_add_suffix (ADW_ACTION_ROW (row), button);
    adw_preferences_group_add (self->folders_group, row);
    g_ptr_array_add (self->folder_rows, row);
  }
}

static void
add_folder_cb (OxPreferences *self)
{
  gtk_widget_activate_action (GTK_WIDGET (self), "win.add-model-folder", NULL);
}

static void
show_platform (OxPreferences *self)
{
  g_autoptr (OxPlatform) platform = ox_platform_query ();
  g_autofree char *total = g_format_size (platform->memory_total);
  g_autofree char *available = g_format_size (platform->memory_available);
  /* Translators: a processor's name, then the number of its cores that are used. */
  g_autofree char *cpu =
    g_strdup_printf (ngettext ("%s, %u core", "%s, %u cores", platform->cores), platform->cpu, platform->cores);
  /* Translators: amounts of memory. */
  g_autofree char *memory = g_strdup_printf (_ ("%s, of which %s are free now"), total, available);
  /* Translators: the number of the processor's cores, the most threads that can be chosen. */
  g_autofree char *threads = g_strdup_printf (
    _ ("At most %u, one a core. Takes effect when a model is loaded. Half while Power Saver is on."), platform->cores);

  adw_preferences_row_set_use_markup (ADW_PREFERENCES_ROW (self->cpu_row), FALSE);
  adw_action_row_set_subtitle (self->cpu_row, cpu);
  adw_action_row_set_subtitle (self->memory_row, memory);
  adw_action_row_set_subtitle (ADW_ACTION_ROW (self->threads_row), threads);
  gtk_adjustment_set_upper (self->threads_adjustment, MAX (platform->cores, 1));
  gtk_editable_set_width_chars (GTK_EDITABLE (self->threads_row), (int) g_utf8_strlen (_ ("Automatic"), -1) + 1);
}

static void
ox_preferences_dispose (GObject *object)
{
  OxPreferences *self = OX_PREFERENCES (object);
  g_clear_object (&self->settings);
  g_clear_object (&self->engine);
  gtk_widget_dispose_template (GTK_WIDGET (object), OX_TYPE_PREFERENCES);
  G_OBJECT_CLASS (ox_preferences_parent_class)->dispose (object);
}

static void
ox_preferences_finalize (GObject *object)
{
  g_ptr_array_unref (OX_PREFERENCES (object)->folder_rows);
  G_OBJECT_CLASS (ox_preferences_parent_class)->finalize (object);
}

static void
ox_preferences_class_init (OxPreferencesClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);

  object_class->dispose = ox_preferences_dispose;
  object_class->finalize = ox_preferences_finalize;

  gtk_widget_class_set_template_from_resource (widget_class, "/org/oxinfer/App/ui/ox-preferences.ui");
  gtk_widget_class_bind_template_child (widget_class, OxPreferences, enter_row);
  gtk_widget_class_bind_template_child (widget_class, OxPreferences, tools_row);
  gtk_widget_class_bind_template_child (widget_class, OxPreferences, statistics_row);
  gtk_widget_class_bind_template_child (widget_class, OxPreferences, zoom_row);
  gtk_widget_class_bind_template_child (widget_class, OxPreferences, cpu_row);
  gtk_widget_class_bind_template_child (widget_class, OxPreferences, memory_row);
  gtk_widget_class_bind_template_child (widget_class, OxPreferences, weights_row);
  gtk_widget_class_bind_template_child (widget_class, OxPreferences, guess_row);
  gtk_widget_class_bind_template_child (widget_class, OxPreferences, cache_label);
  gtk_widget_class_bind_template_child (widget_class, OxPreferences, cache_button);
  gtk_widget_class_bind_template_child (widget_class, OxPreferences, threads_row);
  gtk_widget_class_bind_template_child (widget_class, OxPreferences, threads_adjustment);
  gtk_widget_class_bind_template_child (widget_class, OxPreferences, folders_group);
  gtk_widget_class_bind_template_callback (widget_class, add_folder_cb);
  gtk_widget_class_bind_template_callback (widget_class, weights_selected_cb);
  gtk_widget_class_bind_template_callback (widget_class, threads_input_cb);
  gtk_widget_class_bind_template_callback (widget_class, threads_output_cb);
  gtk_widget_class_bind_template_callback (widget_class, clear_cache_cb);
}

static void
ox_preferences_init (OxPreferences *self)
{
  self->folder_rows = g_ptr_array_new ();
  gtk_widget_init_template (GTK_WIDGET (self));
}

/**
 * ox_preferences_new:
 * @settings: the app's settings
 * @engine: whose prepared models are shown
 *
 * Returns: (transfer floating): a dialog that changes @settings at once
 */
AdwDialog *
ox_preferences_new (GSettings *settings, OxEngine *engine)
{
  OxPreferences *self = g_object_new (OX_TYPE_PREFERENCES, NULL);

  g_autoptr (GtkStringList) titles = gtk_string_list_new (NULL);

  self->settings = g_object_ref (settings);
  self->engine = g_object_ref (engine);
  for (guint i = 0; i < G_N_ELEMENTS (weights); i++)
    gtk_string_list_append (titles, _ (weights[i].title));
  adw_combo_row_set_model (self->weights_row, G_LIST_MODEL (titles));
  show_platform (self);
  ox_engine_get_cache_bytes (engine, cache_bytes_cb, g_object_ref (self));
  g_settings_bind (settings, "tools", self->tools_row, "active", G_SETTINGS_BIND_DEFAULT);
  g_settings_bind (settings, "guess-ahead", self->guess_row, "active", G_SETTINGS_BIND_DEFAULT);
  g_settings_bind_with_mapping (settings, "weights", self->weights_row, "selected", G_SETTINGS_BIND_DEFAULT,
                                weights_to_selected, selected_to_weights, NULL, NULL);
  weights_selected_cb (self);
  g_settings_bind (settings, "enter-sends", self->enter_row, "active", G_SETTINGS_BIND_DEFAULT);
  g_settings_bind (settings, "show-statistics", self->statistics_row, "active", G_SETTINGS_BIND_DEFAULT);
  g_settings_bind (settings, "threads", self->threads_row, "value", G_SETTINGS_BIND_DEFAULT);
  g_settings_bind_with_mapping (settings, "text-zoom", self->zoom_row, "value", G_SETTINGS_BIND_DEFAULT,
                                zoom_to_percent, percent_to_zoom, NULL, NULL);
  g_signal_connect_object (settings, "changed::model-folders", G_CALLBACK (folders_changed_cb), self,
                           G_CONNECT_SWAPPED);
  folders_changed_cb (self);
  return ADW_DIALOG (self);
}
