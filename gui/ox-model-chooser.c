/* The button in the composer that says who answers next, and the list behind it.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-model-chooser.h"

#include "ox-widget.h"

#include <adwaita.h>
#include <glib/gi18n.h>

#define WIDTH 310
#define MAX_HEIGHT 360

struct _OxModelChooser {
  GtkWidget parent_instance;

  GtkWidget *button;
  GtkWidget *label;
  GtkWidget *popover;
  GtkWidget *list;
  GtkWidget *unload_button;

  OxModelLibrary *library;
  OxEngine *engine;
  OxModelEntry *entry;
};

G_DEFINE_FINAL_TYPE (OxModelChooser, ox_model_chooser, GTK_TYPE_WIDGET)

enum { CHOSEN, N_SIGNALS };

static guint signals[N_SIGNALS];

static int
compare_usable (gconstpointer a, gconstpointer b, gpointer user_data)
{
  return ox_model_entry_get_usable ((gpointer) b) - ox_model_entry_get_usable ((gpointer) a);
}

/**
 * ox_model_list_new:
 * @library: the models
 *
 * Returns: (transfer full): the same models, those at the end that cannot be used
 */
GListModel *
ox_model_list_new (OxModelLibrary *library)
{
  GtkSorter *sorter = GTK_SORTER (gtk_custom_sorter_new (compare_usable, NULL, NULL));
  return G_LIST_MODEL (gtk_sort_list_model_new (g_object_ref (G_LIST_MODEL (library)), sorter));
}

/**
 * ox_model_entry_dup_status:
 * @entry: a model
 *
 * Returns: (transfer full): what to know of it now, in a few words: "Loaded · 98 MB · Q4_1", or why it cannot be used
 */
char *
ox_model_entry_dup_status (OxModelEntry *entry)
{
  const OxModelPlan *plan = ox_model_entry_get_plan (entry);
  const char *reason = ox_model_entry_get_reason (entry);
  const char *state;

  switch (ox_model_entry_get_state (entry)) {
  case OX_MODEL_ENTRY_DAMAGED:
    return reason != NULL ? g_strdup_printf (_ ("Damaged: %s"), reason) : g_strdup (_ ("Damaged"));
  case OX_MODEL_ENTRY_UNSUPPORTED:
    if (ox_model_entry_is_drafter (entry))
      return g_strdup (reason);
    return reason != NULL ? g_strdup_printf (_ ("Not supported: %s"), reason) : g_strdup (_ ("Not supported"));
  case OX_MODEL_ENTRY_TOO_LARGE:
    state = _ ("Too large");
    break;
  case OX_MODEL_ENTRY_OK:
  default:
    state = plan != NULL && plan->fit == OX_FIT_TIGHT ? _ ("Tight") : _ ("Fits");
    break;
  }
  if (ox_model_entry_get_loaded (entry))
    state = _ ("Loaded");

  g_autofree char *loading =
    ox_model_entry_get_loading (entry)
      ? g_strdup_printf (_ ("Loading, %d %%"), (int) (ox_model_entry_get_load_progress (entry) * 100))
      : NULL;
  g_autofree char *size = g_format_size (ox_model_entry_get_file_bytes (entry));
  const char *format = ox_model_entry_get_format (entry);
  if (format == NULL)
    return g_strdup_printf ("%s · %s", loading != NULL ? loading : state, size);
  g_autofree char *status = g_strdup_printf ("%s · %s · %s", loading != NULL ? loading : state, size, format);
  if (plan == NULL || (plan->capabilities & OX_CAPABILITY_CHAT) != 0)
    return g_steal_pointer (&status);
  /* Translators: of a model that was not trained to talk, and adds to a text instead. */
  return g_strdup_printf ("%s\n%s", status, _ ("Not made for chat: it goes on with your text"));
}

/* What models can do, in the order in which it is shown. */
static const struct {
  OxCapabilities capability;
  const char *icon_name;
  const char *word;
} capabilities[] = {
  { OX_CAPABILITY_CHAT, "ox-chat-symbolic", N_ ("chats") },
  { OX_CAPABILITY_SEE, "view-reveal-symbolic", N_ ("sees") },
  { OX_CAPABILITY_HEAR, "ox-ear-symbolic", N_ ("hears") },
  { OX_CAPABILITY_THINK, "ox-think-symbolic", N_ ("thinks") },
  { OX_CAPABILITY_TOOLS, "ox-tool-symbolic", N_ ("uses tools") },
};

static gboolean
can (OxModelEntry *entry, OxCapabilities capability)
{
  const OxModelPlan *plan = ox_model_entry_get_plan (entry);
  return plan != NULL && (plan->capabilities & capability) != 0;
}

/**
 * ox_model_entry_dup_capabilities:
 * @entry: a model
 *
 * Returns: (transfer full): what it can do, in words: "chats, thinks, uses tools"
 */
char *
ox_model_entry_dup_capabilities (OxModelEntry *entry)
{
  g_autoptr (GString) words = g_string_new (NULL);
  for (guint i = 0; i < G_N_ELEMENTS (capabilities); i++)
    if (can (entry, capabilities[i].capability))
      g_string_append_printf (words, "%s%s", words->len > 0 ? ", " : "", _ (capabilities[i].word));
  return g_string_free (g_steal_pointer (&words), FALSE);
}

/**
 * ox_model_capabilities_new:
 * @entry: a model
 *
 * Returns: (transfer floating): small icons of what it can do, and words for those who listen
 */
GtkWidget *
ox_model_capabilities_new (OxModelEntry *entry)
{
  GtkWidget *box = g_object_new (GTK_TYPE_BOX, "spacing", 6, "accessible-role", GTK_ACCESSIBLE_ROLE_IMG, NULL);
  g_autofree char *words = ox_model_entry_dup_capabilities (entry);

  gtk_widget_set_valign (box, GTK_ALIGN_CENTER);
  gtk_widget_add_css_class (box, "dimmed");
  gtk_accessible_update_property (GTK_ACCESSIBLE (box), GTK_ACCESSIBLE_PROPERTY_LABEL, words, -1);
  gtk_widget_set_tooltip_text (box, words[0] != '\0' ? words : NULL);
  for (guint i = 0; i < G_N_ELEMENTS (capabilities); i++)
    if (can (entry, capabilities[i].capability))
      gtk_box_append (GTK_BOX (box), g_object_new (GTK_TYPE_IMAGE, "icon-name", capabilities[i].icon_name,
                                                   "accessible-role", GTK_ACCESSIBLE_ROLE_NONE, NULL));
  return box;
}

/* Rows */

static void
row_update (GtkWidget *row)
{
  OxModelEntry *entry = g_object_get_data (G_OBJECT (row), "ox-entry");
  OxModelChooser *self = g_object_get_data (G_OBJECT (row), "ox-chooser");
  g_autofree char *status = ox_model_entry_dup_status (entry);
  gboolean usable = ox_model_entry_get_usable (entry);
  gboolean chosen = entry == self->entry;

  gtk_label_set_label (g_object_get_data (G_OBJECT (row), "ox-name"), ox_model_entry_get_name (entry));
  gtk_label_set_label (g_object_get_data (G_OBJECT (row), "ox-status"), status);
  gtk_widget_set_opacity (g_object_get_data (G_OBJECT (row), "ox-check"), chosen ? 1 : 0);
  /* One that cannot be used is still reached by keyboard, so that the reason can be read. */
  gtk_list_box_row_set_activatable (GTK_LIST_BOX_ROW (row), usable);
  if (usable)
    gtk_widget_remove_css_class (row, "dimmed");
  else
    gtk_widget_add_css_class (row, "dimmed");

  /* Anew, for a plan may have changed. */
  AdwBin *icons = g_object_get_data (G_OBJECT (row), "ox-icons");
  adw_bin_set_child (icons, ox_model_capabilities_new (entry));

  const char *reason = ox_model_entry_get_reason (entry);
  g_autofree char *words = ox_model_entry_dup_capabilities (entry);
  g_autofree char *description = words[0] != '\0' ? g_strdup_printf ("%s, %s", status, words) : g_strdup (status);
  g_autofree char *name = g_strdup_printf (chosen ? _ ("%s, chosen") : "%s", ox_model_entry_get_name (entry));
  gtk_accessible_update_property (GTK_ACCESSIBLE (row), GTK_ACCESSIBLE_PROPERTY_LABEL, name,
                                  GTK_ACCESSIBLE_PROPERTY_DESCRIPTION, description, -1);
  gtk_widget_set_tooltip_text (row, reason);
}

static GtkWidget *
create_row (gpointer item, gpointer user_data)
{
  OxModelEntry *entry = item;
  GtkWidget *row = gtk_list_box_row_new ();
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 12);
  GtkWidget *labels = gtk_box_new (GTK_ORIENTATION_VERTICAL, 2);
  GtkWidget *name = g_object_new (GTK_TYPE_LABEL, "xalign", 0.0f, "ellipsize", PANGO_ELLIPSIZE_END, NULL);
  GtkWidget *status = g_object_new (GTK_TYPE_LABEL, "xalign", 0.0f, "wrap", TRUE, "wrap-mode", PANGO_WRAP_WORD_CHAR,
                                    "lines", 3, "ellipsize", PANGO_ELLIPSIZE_END, NULL);
  GtkWidget *check = gtk_image_new_from_icon_name ("object-select-symbolic");

  gtk_widget_add_css_class (status, "caption");
  gtk_widget_add_css_class (status, "dimmed");
  gtk_widget_add_css_class (status, "numeric");
  gtk_widget_add_css_class (check, "accent");
  gtk_widget_set_hexpand (labels, TRUE);
  gtk_box_append (GTK_BOX (labels), name);
  gtk_box_append (GTK_BOX (labels), status);
  gtk_box_append (GTK_BOX (box), labels);
  GtkWidget *icons = adw_bin_new ();
  gtk_box_append (GTK_BOX (box), icons);
  gtk_box_append (GTK_BOX (box), check);
  gtk_list_box_row_set_child (GTK_LIST_BOX_ROW (row), box);

  g_object_set_data_full (G_OBJECT (row), "ox-entry", g_object_ref (entry), g_object_unref);
  g_object_set_data (G_OBJECT (row), "ox-chooser", user_data);
  g_object_set_data (G_OBJECT (row), "ox-name", name);
  g_object_set_data (G_OBJECT (row), "ox-status", status);
  g_object_set_data (G_OBJECT (row), "ox-icons", icons);
  g_object_set_data (G_OBJECT (row), "ox-check", check);
  g_signal_connect_object (entry, "notify", G_CALLBACK (row_update), row, G_CONNECT_SWAPPED);
  row_update (row);
  return row;
}

static void
update_rows (OxModelChooser *self)
{
  for (GtkWidget *row = gtk_widget_get_first_child (self->list); row != NULL; row = gtk_widget_get_next_sibling (row))
    if (g_object_get_data (G_OBJECT (row), "ox-entry") != NULL)
      row_update (row);
}

/* The keyboard begins at the model that is chosen. */
static void
opened_cb (OxModelChooser *self)
{
  for (GtkWidget *row = gtk_widget_get_first_child (self->list); row != NULL; row = gtk_widget_get_next_sibling (row))
    if (self->entry != NULL && g_object_get_data (G_OBJECT (row), "ox-entry") == self->entry)
      gtk_widget_grab_focus (row);
}

static void
row_activated_cb (OxModelChooser *self, GtkListBoxRow *row)
{
  OxModelEntry *entry = g_object_get_data (G_OBJECT (row), "ox-entry");
  gtk_popover_popdown (GTK_POPOVER (self->popover));
  g_signal_emit (self, signals[CHOSEN], 0, entry);
}

static void
unload_cb (OxModelChooser *self)
{
  gtk_popover_popdown (GTK_POPOVER (self->popover));
  g_autoptr (OxJob) job = ox_engine_unload (self->engine);
}

static void
engine_state_cb (OxModelChooser *self)
{
  gtk_widget_set_sensitive (self->unload_button, ox_engine_get_state (self->engine) == OX_ENGINE_READY);
}

static void
popdown_cb (OxModelChooser *self)
{
  gtk_popover_popdown (GTK_POPOVER (self->popover));
}

static GtkWidget *
text_button_new (OxModelChooser *self, const char *label, const char *action)
{
  GtkWidget *button = gtk_button_new_with_mnemonic (label);
  gtk_widget_add_css_class (button, "flat");
  gtk_widget_add_css_class (button, "ox-text-button");
  if (action != NULL) {
    /* The popover goes first, so that a dialog can take the focus. */
    g_signal_connect_object (button, "clicked", G_CALLBACK (popdown_cb), self, G_CONNECT_SWAPPED);
    gtk_actionable_set_action_name (GTK_ACTIONABLE (button), action);
  }
  return button;
}

static void
ox_model_chooser_dispose (GObject *object)
{
  OxModelChooser *self = OX_MODEL_CHOOSER (object);

  if (self->list != NULL)
    gtk_list_box_bind_model (GTK_LIST_BOX (self->list), NULL, NULL, NULL, NULL);
  self->list = NULL;
  g_clear_object (&self->library);
  g_clear_object (&self->engine);
  g_clear_object (&self->entry);
  g_clear_pointer (&self->button, gtk_widget_unparent);
  G_OBJECT_CLASS (ox_model_chooser_parent_class)->dispose (object);
}

static void
ox_model_chooser_class_init (OxModelChooserClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);

  G_OBJECT_CLASS (klass)->dispose = ox_model_chooser_dispose;
  gtk_widget_class_set_layout_manager_type (widget_class, GTK_TYPE_BIN_LAYOUT);

  /**
   * OxModelChooser::chosen:
   * @entry: the model that is to answer from now on
   */
  signals[CHOSEN] = g_signal_new ("chosen", OX_TYPE_MODEL_CHOOSER, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE,
                                  1, OX_TYPE_MODEL_ENTRY);
}

static void
ox_model_chooser_init (OxModelChooser *self)
{
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 6);
  GtkWidget *heading = g_object_new (GTK_TYPE_LABEL, "label", _ ("Used from the next message on"), "xalign", 0.0f,
                                     "wrap", TRUE, "margin-start", 10, "margin-top", 6, NULL);
  gtk_widget_add_css_class (heading, "caption");
  gtk_widget_add_css_class (heading, "dimmed");
  gtk_box_append (GTK_BOX (box), heading);

  self->list = gtk_list_box_new ();
  gtk_list_box_set_selection_mode (GTK_LIST_BOX (self->list), GTK_SELECTION_NONE);
  gtk_widget_add_css_class (self->list, "ox-chooser-list");
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->list), GTK_ACCESSIBLE_PROPERTY_LABEL, _ ("Models"), -1);
  g_signal_connect_object (self->list, "row-activated", G_CALLBACK (row_activated_cb), self, G_CONNECT_SWAPPED);
  GtkWidget *empty =
    g_object_new (GTK_TYPE_LABEL, "label", _ ("No models yet"), "margin-top", 12, "margin-bottom", 12, NULL);
  gtk_widget_add_css_class (empty, "dimmed");
  gtk_list_box_set_placeholder (GTK_LIST_BOX (self->list), empty);

  GtkWidget *scroller =
    g_object_new (GTK_TYPE_SCROLLED_WINDOW, "hscrollbar-policy", GTK_POLICY_NEVER, "propagate-natural-height", TRUE,
                  "max-content-height", MAX_HEIGHT, "width-request", WIDTH, "child", self->list, NULL);
  gtk_box_append (GTK_BOX (box), scroller);
  gtk_box_append (GTK_BOX (box), gtk_separator_new (GTK_ORIENTATION_HORIZONTAL));

  GtkWidget *row = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 6);
  self->unload_button = text_button_new (self, _ ("_Unload"), NULL);
  g_signal_connect_object (self->unload_button, "clicked", G_CALLBACK (unload_cb), self, G_CONNECT_SWAPPED);
  gtk_box_append (GTK_BOX (row), self->unload_button);
  GtkWidget *import = text_button_new (self, _ ("_Import Model…"), "win.import-model");
  gtk_widget_set_hexpand (import, TRUE);
  gtk_widget_set_halign (import, GTK_ALIGN_END);
  gtk_box_append (GTK_BOX (row), import);
  gtk_box_append (GTK_BOX (row), text_button_new (self, _ ("_Manage"), "win.models"));
  gtk_box_append (GTK_BOX (box), row);

  self->popover = gtk_popover_new ();
  gtk_popover_set_child (GTK_POPOVER (self->popover), box);
  g_signal_connect_object (self->popover, "map", G_CALLBACK (opened_cb), self, G_CONNECT_SWAPPED);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->popover), GTK_ACCESSIBLE_PROPERTY_LABEL, _ ("Choose a Model"),
                                  -1);

  self->button = gtk_menu_button_new ();
  GtkWidget *content = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 6);
  self->label = g_object_new (GTK_TYPE_LABEL, "ellipsize", PANGO_ELLIPSIZE_END, "max-width-chars", 30, NULL);
  gtk_box_append (GTK_BOX (content), self->label);
  gtk_box_append (GTK_BOX (content), gtk_image_new_from_icon_name ("pan-down-symbolic"));
  gtk_menu_button_set_child (GTK_MENU_BUTTON (self->button), content);
  gtk_menu_button_set_popover (GTK_MENU_BUTTON (self->button), self->popover);
  gtk_widget_add_css_class (self->button, "flat");
  gtk_widget_add_css_class (self->button, "ox-pill-menu");
  gtk_widget_set_parent (self->button, GTK_WIDGET (self));
}

/**
 * ox_model_chooser_new:
 *
 * Returns: a chooser without models
 */
GtkWidget *
ox_model_chooser_new (void)
{
  return g_object_new (OX_TYPE_MODEL_CHOOSER, NULL);
}

/**
 * ox_model_chooser_set_library:
 * @self: a chooser
 * @library: the models to choose from
 * @engine: who has one of them loaded
 */
void
ox_model_chooser_set_library (OxModelChooser *self, OxModelLibrary *library, OxEngine *engine)
{
  self->library = g_object_ref (library);
  self->engine = g_object_ref (engine);
  g_autoptr (GListModel) models = ox_model_list_new (library);
  gtk_list_box_bind_model (GTK_LIST_BOX (self->list), models, create_row, self, NULL);
  g_signal_connect_object (engine, "notify::state", G_CALLBACK (engine_state_cb), self, G_CONNECT_SWAPPED);
  engine_state_cb (self);
}

/**
 * ox_model_chooser_set_entry:
 * @self: a chooser
 * @entry: (nullable): who answers the next message
 */
void
ox_model_chooser_set_entry (OxModelChooser *self, OxModelEntry *entry)
{
  const char *name = entry != NULL ? ox_model_entry_get_name (entry) : _ ("No Model");
  g_autofree char *label = g_strdup_printf (_ ("Model: %s"), name);

  g_set_object (&self->entry, entry);
  gtk_label_set_label (GTK_LABEL (self->label), name);
  ox_menu_button_set_name (GTK_MENU_BUTTON (self->button), label);
  gtk_widget_set_tooltip_text (self->button, _ ("Choose a Model"));
  update_rows (self);
}

/**
 * ox_model_chooser_set_narrow:
 * @self: a chooser
 * @narrow: whether there is little room for the name
 */
void
ox_model_chooser_set_narrow (OxModelChooser *self, gboolean narrow)
{
  gtk_label_set_max_width_chars (GTK_LABEL (self->label), narrow ? 18 : 30);
}

/**
 * ox_model_chooser_popup:
 * @self: a chooser
 *
 * Opens the list.
 */
void
ox_model_chooser_popup (OxModelChooser *self)
{
  gtk_menu_button_popup (GTK_MENU_BUTTON (self->button));
}
