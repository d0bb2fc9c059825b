/* The models on this computer, with what there is to know of each.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-models-dialog.h"

#include "ox-model-chooser.h"

#include <glib/gi18n.h>

typedef struct {
  OxModelLibrary *library;
  OxEngine *engine;
} Context;

static void
context_free (Context *context)
{
  g_object_unref (context->library);
  g_object_unref (context->engine);
  g_free (context);
}

#define SEPARATOR "\302\240· "

/* What a person may want to know: size, form, parameters, length. */
static char *
dup_facts (OxModelEntry *entry)
{
  const OxModelPlan *plan = ox_model_entry_get_plan (entry);
  const char *reason = ox_model_entry_get_reason (entry);
  g_autoptr (GString) facts = g_string_new (NULL);
  g_autofree char *size = g_format_size (ox_model_entry_get_file_bytes (entry));

  if (!ox_model_entry_get_usable (entry) && reason != NULL)
    return g_strdup (reason);
  /* A dot ends a line, it does not begin one. */
  g_string_append (facts, size);
  if (ox_model_entry_get_format (entry) != NULL)
    g_string_append_printf (facts, SEPARATOR "%s", ox_model_entry_get_format (entry));
  if (plan != NULL) {
    g_string_append (facts, SEPARATOR);
    if (plan->parameters >= 950000000)
      /* Translators: number of a model's parameters, in thousand millions. */
      g_string_append_printf (facts, _ ("%.1f billion parameters"), (double) plan->parameters / 1e9);
    else
      g_string_append_printf (facts, _ ("%.0f million parameters"), (double) plan->parameters / 1e6);
    g_string_append (facts, SEPARATOR);
    g_string_append_printf (facts, _ ("chats of up to %'u tokens"), plan->context_length);
  }
  if (reason != NULL) {
    g_string_append_printf (facts, "\n%s", reason);
  } else if (plan != NULL) {
    g_autofree char *needed = g_format_size (plan->memory_needed);
    g_string_append (facts, SEPARATOR);
    /* Translators: an amount of memory. */
    g_string_append_printf (facts, _ ("needs %s of memory"), needed);
  }
  return g_string_free (g_steal_pointer (&facts), FALSE);
}

static void
set_chip (GtkWidget *chip, const char *text, const char *class)
{
  const char *classes[] = { "ox-chip", class, NULL };
  gtk_label_set_label (GTK_LABEL (chip), text);
  gtk_widget_set_css_classes (chip, classes);
}

static void
row_update (GtkWidget *row)
{
  OxModelEntry *entry = g_object_get_data (G_OBJECT (row), "ox-entry");
  GtkWidget *chip = g_object_get_data (G_OBJECT (row), "ox-chip");
  GtkWidget *button = g_object_get_data (G_OBJECT (row), "ox-button");
  GtkWidget *remove = g_object_get_data (G_OBJECT (row), "ox-remove");
  Context *context = g_object_get_data (G_OBJECT (row), "ox-context");
  const OxModelPlan *plan = ox_model_entry_get_plan (entry);
  const char *name = ox_model_entry_get_name (entry);
  gboolean loaded = ox_model_entry_get_loaded (entry);
  gboolean loading = ox_model_entry_get_loading (entry);
  g_autofree char *facts = dup_facts (entry);

  adw_preferences_row_set_title (ADW_PREFERENCES_ROW (row), name);
  adw_action_row_set_subtitle (ADW_ACTION_ROW (row), facts);
  adw_bin_set_child (g_object_get_data (G_OBJECT (row), "ox-icons"), ox_model_capabilities_new (entry));

  if (loading) {
    g_autofree char *text =
      g_strdup_printf (_ ("Loading, %d %%"), (int) (ox_model_entry_get_load_progress (entry) * 100));
    set_chip (chip, text, "accent");
  } else if (loaded) {
    set_chip (chip, _ ("Loaded"), "accent");
  } else {
    switch (ox_model_entry_get_state (entry)) {
    case OX_MODEL_ENTRY_DAMAGED:
      set_chip (chip, _ ("Damaged"), "error");
      break;
    case OX_MODEL_ENTRY_UNSUPPORTED:
      if (ox_model_entry_is_drafter (entry))
        set_chip (chip, _ ("Helper"), "accent");
      else
        set_chip (chip, _ ("Not supported"), "error");
      break;
    case OX_MODEL_ENTRY_TOO_LARGE:
      set_chip (chip, _ ("Too large"), "error");
      break;
    case OX_MODEL_ENTRY_OK:
    default:
      if (plan != NULL && plan->fit == OX_FIT_TIGHT)
        set_chip (chip, _ ("Tight"), "warning");
      else
        set_chip (chip, _ ("Fits"), "success");
      break;
    }
  }

  g_autofree char *button_name = g_strdup_printf (loaded ? _ ("Unload %s") : _ ("Load %s"), name);
  gtk_button_set_label (GTK_BUTTON (button), loaded ? _ ("Unload") : _ ("Load"));
  gtk_accessible_update_property (GTK_ACCESSIBLE (button), GTK_ACCESSIBLE_PROPERTY_LABEL, button_name, -1);
  gtk_widget_set_visible (button, ox_model_entry_get_usable (entry));
  gtk_widget_set_sensitive (button, !loading);

  g_autofree char *remove_name = g_strdup_printf (_ ("Remove %s from the List"), name);
  gtk_accessible_update_property (GTK_ACCESSIBLE (remove), GTK_ACCESSIBLE_PROPERTY_LABEL, remove_name, -1);
  gtk_widget_set_visible (remove,
                          ox_model_library_is_added (context->library, ox_model_entry_get_path (entry)) && !loaded);
}

static void
load_cb (GtkWidget *row)
{
  OxModelEntry *entry = g_object_get_data (G_OBJECT (row), "ox-entry");
  Context *context = g_object_get_data (G_OBJECT (row), "ox-context");
  g_autoptr (OxJob) job = ox_model_entry_get_loaded (entry)
                            ? ox_engine_unload (context->engine)
                            : ox_engine_load (context->engine, ox_model_entry_get_path (entry));
}

static void
remove_cb (GtkWidget *row)
{
  OxModelEntry *entry = g_object_get_data (G_OBJECT (row), "ox-entry");
  Context *context = g_object_get_data (G_OBJECT (row), "ox-context");
  ox_model_library_remove (context->library, ox_model_entry_get_path (entry));
}

static GtkWidget *
create_row (gpointer item, gpointer user_data)
{
  GtkWidget *row = adw_action_row_new ();
  GtkWidget *chip = gtk_label_new (NULL);
  GtkWidget *button = gtk_button_new ();
  GtkWidget *remove = gtk_button_new_from_icon_name ("edit-delete-symbolic");

  adw_preferences_row_set_use_markup (ADW_PREFERENCES_ROW (row), FALSE);
  gtk_widget_set_valign (chip, GTK_ALIGN_CENTER);
  gtk_widget_set_valign (button, GTK_ALIGN_CENTER);
  gtk_widget_set_valign (remove, GTK_ALIGN_CENTER);
  gtk_widget_add_css_class (remove, "flat");
  gtk_widget_set_tooltip_text (remove, _ ("Remove from the List; the file stays"));
  GtkWidget *icons = adw_bin_new ();
  adw_action_row_add_suffix (ADW_ACTION_ROW (row), icons);
  adw_action_row_add_suffix (ADW_ACTION_ROW (row), chip);
  adw_action_row_add_suffix (ADW_ACTION_ROW (row), button);
  adw_action_row_add_suffix (ADW_ACTION_ROW (row), remove);

  g_object_set_data_full (G_OBJECT (row), "ox-entry", g_object_ref (item), g_object_unref);
  g_object_set_data (G_OBJECT (row), "ox-context", user_data);
  g_object_set_data (G_OBJECT (row), "ox-icons", icons);
  g_object_set_data (G_OBJECT (row), "ox-chip", chip);
  g_object_set_data (G_OBJECT (row), "ox-button", button);
  g_object_set_data (G_OBJECT (row), "ox-remove", remove);
  g_signal_connect_object (button, "clicked", G_CALLBACK (load_cb), row, G_CONNECT_SWAPPED);
  g_signal_connect_object (remove, "clicked", G_CALLBACK (remove_cb), row, G_CONNECT_SWAPPED);
  g_signal_connect_object (item, "notify", G_CALLBACK (row_update), row, G_CONNECT_SWAPPED);
  row_update (row);
  return row;
}

static void
show_page (GtkWidget *stack)
{
  Context *context = g_object_get_data (G_OBJECT (stack), "ox-context");
  gboolean any = g_list_model_get_n_items (G_LIST_MODEL (context->library)) > 0;
  gtk_stack_set_visible_child_name (GTK_STACK (stack), any ? "list" : "empty");
}

static GtkWidget *
empty_new (void)
{
  GtkWidget *page = adw_status_page_new ();
  adw_status_page_set_icon_name (ADW_STATUS_PAGE (page), "ox-chip-symbolic");
  adw_status_page_set_title (ADW_STATUS_PAGE (page), _ ("No Models"));
  adw_status_page_set_description (ADW_STATUS_PAGE (page),
                                   _ ("Import a GGUF file of a Llama-style model, Gemma or Qwen."));
  GtkWidget *button = gtk_button_new_with_mnemonic (_ ("_Import a Model…"));
  gtk_widget_set_halign (button, GTK_ALIGN_CENTER);
  gtk_widget_add_css_class (button, "pill");
  gtk_widget_add_css_class (button, "suggested-action");
  gtk_actionable_set_action_name (GTK_ACTIONABLE (button), "win.import-model");
  adw_status_page_set_child (ADW_STATUS_PAGE (page), button);
  return page;
}

/**
 * ox_models_dialog_new:
 * @library: the models
 * @engine: who loads them
 *
 * Returns: (transfer floating): a dialog that lists them
 */
AdwDialog *
ox_models_dialog_new (OxModelLibrary *library, OxEngine *engine)
{
  AdwDialog *dialog = adw_dialog_new ();
  Context *context = g_new0 (Context, 1);
  context->library = g_object_ref (library);
  context->engine = g_object_ref (engine);
  g_object_set_data_full (G_OBJECT (dialog), "ox-context", context, (GDestroyNotify) context_free);

  adw_dialog_set_title (dialog, _ ("Models"));
  adw_dialog_set_content_width (dialog, 640);
  adw_dialog_set_content_height (dialog, 520);

  GtkWidget *header = adw_header_bar_new ();
  GtkWidget *import = gtk_button_new_from_icon_name ("list-add-symbolic");
  gtk_widget_set_tooltip_text (import, _ ("Import a Model"));
  gtk_accessible_update_property (GTK_ACCESSIBLE (import), GTK_ACCESSIBLE_PROPERTY_LABEL, _ ("Import a Model"), -1);
  gtk_actionable_set_action_name (GTK_ACTIONABLE (import), "win.import-model");
  adw_header_bar_pack_start (ADW_HEADER_BAR (header), import);

  GtkWidget *list = gtk_list_box_new ();
  gtk_list_box_set_selection_mode (GTK_LIST_BOX (list), GTK_SELECTION_NONE);
  gtk_widget_add_css_class (list, "boxed-list");
  gtk_accessible_update_property (GTK_ACCESSIBLE (list), GTK_ACCESSIBLE_PROPERTY_LABEL, _ ("Models"), -1);
  g_autoptr (GListModel) models = ox_model_list_new (library);
  gtk_list_box_bind_model (GTK_LIST_BOX (list), models, create_row, context, NULL);

  GtkWidget *group = adw_preferences_group_new ();
  adw_preferences_group_set_title (ADW_PREFERENCES_GROUP (group), _ ("Installed"));
  adw_preferences_group_set_description (ADW_PREFERENCES_GROUP (group),
                                         _ ("Files stay where they are. “Fits” is measured against free memory."));
  adw_preferences_group_add (ADW_PREFERENCES_GROUP (group), list);
  GtkWidget *page = adw_preferences_page_new ();
  adw_preferences_page_add (ADW_PREFERENCES_PAGE (page), ADW_PREFERENCES_GROUP (group));

  GtkWidget *stack = gtk_stack_new ();
  gtk_stack_add_named (GTK_STACK (stack), empty_new (), "empty");
  gtk_stack_add_named (GTK_STACK (stack), page, "list");
  g_signal_connect_object (library, "items-changed", G_CALLBACK (show_page), stack, G_CONNECT_SWAPPED);
  g_object_set_data (G_OBJECT (stack), "ox-context", context);
  show_page (stack);

  GtkWidget *view = adw_toolbar_view_new ();
  adw_toolbar_view_add_top_bar (ADW_TOOLBAR_VIEW (view), header);
  adw_toolbar_view_set_content (ADW_TOOLBAR_VIEW (view), stack);
  adw_dialog_set_child (dialog, view);
  return dialog;
}
