/* A row of the sidebar: a place or a conversation.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-sidebar-row.h"

#include "ox-rename-popover.h"
#include "ox-sidebar-model.h"
#include "ox-text-direction.h"

#include <adwaita.h>
#include <glib/gi18n.h>
#include <string.h>

struct _OxSidebarRow {
  GtkWidget parent_instance;

  GtkListItem *list_item; /* borrowed: outlives us */
  GtkWidget *icon;
  GtkWidget *title;
  GtkWidget *snippet;
  GtkWidget *spinner;
  GtkWidget *pin;

  GObject *item;
};

G_DEFINE_FINAL_TYPE (OxSidebarRow, ox_sidebar_row, GTK_TYPE_WIDGET)

enum { OPEN, DELETE, N_SIGNALS };

static guint signals[N_SIGNALS];

static void
update (OxSidebarRow *self)
{
  const char *title = "";
  g_autofree char *description = NULL;

  gtk_widget_set_visible (self->icon, OX_IS_SIDEBAR_PLACE (self->item));
  gtk_widget_set_visible (self->snippet, FALSE);
  gtk_widget_set_visible (self->spinner, FALSE);
  gtk_widget_set_visible (self->pin, FALSE);

  if (OX_IS_SIDEBAR_PLACE (self->item)) {
    OxSidebarPlace *place = OX_SIDEBAR_PLACE (self->item);
    title = ox_sidebar_place_get_title (place);
    gtk_image_set_from_icon_name (GTK_IMAGE (self->icon), ox_sidebar_place_get_icon_name (place));
  } else if (OX_IS_CONVERSATION (self->item)) {
    OxConversation *conversation = OX_CONVERSATION (self->item);
    const char *snippet = ox_conversation_get_snippet (conversation);
    gboolean answering = ox_conversation_get_answering (conversation);
    gboolean pinned = ox_conversation_get_pinned (conversation);
    title = ox_conversation_get_title (conversation);
    gtk_widget_set_visible (self->spinner, answering);
    gtk_widget_set_visible (self->pin, pinned && !answering);
    if (snippet != NULL) {
      gtk_label_set_markup (GTK_LABEL (self->snippet), snippet);
      gtk_widget_set_visible (self->snippet, TRUE);
    }
    description = answering ? g_strdup (_ ("Answer being written")) : pinned ? g_strdup (_ ("Pinned")) : NULL;
  }

  /* A title may have several lines when it comes from the first message. */
  g_autofree char *line = g_strdelimit (g_strdup (title), "\n\r", ' ');
  GtkTextDirection direction = ox_text_direction (line, strlen (line));
  gtk_widget_set_direction (self->title,
                            direction != GTK_TEXT_DIR_NONE ? direction : gtk_widget_get_direction (GTK_WIDGET (self)));
  gtk_label_set_label (GTK_LABEL (self->title), line);
  gtk_list_item_set_accessible_label (self->list_item, line);
  gtk_list_item_set_accessible_description (self->list_item, description != NULL ? description : "");
}

static void
open_cb (OxSidebarRow *self)
{
  g_signal_emit (self, signals[OPEN], 0, self->item);
}

static void
rename_cb (GObject *target, const char *title)
{
  ox_conversation_rename (OX_CONVERSATION (target), title);
}

static void
rename_action (GtkWidget *widget, const char *name, GVariant *parameter)
{
  OxConversation *conversation = ox_sidebar_row_get_conversation (OX_SIDEBAR_ROW (widget));
  if (conversation != NULL)
    ox_rename_popover_show (widget, NULL, G_OBJECT (conversation), ox_conversation_get_title (conversation), rename_cb);
}

static void
pin_action (GtkWidget *widget, const char *name, GVariant *parameter)
{
  OxConversation *conversation = ox_sidebar_row_get_conversation (OX_SIDEBAR_ROW (widget));
  if (conversation != NULL)
    ox_conversation_set_pinned (conversation, !ox_conversation_get_pinned (conversation));
}

static void
delete_action (GtkWidget *widget, const char *name, GVariant *parameter)
{
  OxConversation *conversation = ox_sidebar_row_get_conversation (OX_SIDEBAR_ROW (widget));
  if (conversation != NULL)
    g_signal_emit (widget, signals[DELETE], 0, conversation);
}

static gboolean
unparent_cb (gpointer popover)
{
  gtk_widget_unparent (popover);
  return G_SOURCE_REMOVE;
}

/* Not at once, for the action of the chosen item runs only after the menu has closed. */
static void
menu_closed_cb (GtkPopover *popover)
{
  g_idle_add_full (G_PRIORITY_DEFAULT_IDLE, unparent_cb, g_object_ref (popover), g_object_unref);
}

static void
show_menu (OxSidebarRow *self, double x, double y)
{
  OxConversation *conversation = ox_sidebar_row_get_conversation (self);
  if (conversation == NULL)
    return;

  g_autoptr (GMenu) menu = g_menu_new ();
  g_autoptr (GMenu) end = g_menu_new ();
  g_menu_append (menu, _ ("_Rename…"), "row.rename");
  g_menu_append (menu, ox_conversation_get_pinned (conversation) ? _ ("_Unpin") : _ ("_Pin"), "row.pin");
  g_menu_append (end, _ ("_Delete"), "row.delete");
  g_menu_append_section (menu, NULL, G_MENU_MODEL (end));

  GtkWidget *popover = gtk_popover_menu_new_from_model (G_MENU_MODEL (menu));
  gtk_popover_set_has_arrow (GTK_POPOVER (popover), FALSE);
  gtk_popover_set_pointing_to (GTK_POPOVER (popover), &(GdkRectangle) { (int) x, (int) y, 1, 1 });
  gtk_widget_set_halign (popover, GTK_ALIGN_START);
  g_signal_connect (popover, "closed", G_CALLBACK (menu_closed_cb), NULL);
  gtk_widget_set_parent (popover, GTK_WIDGET (self));
  g_signal_connect_object (self, "destroy", G_CALLBACK (gtk_widget_unparent), popover, G_CONNECT_SWAPPED);
  gtk_popover_popup (GTK_POPOVER (popover));
}

static void
secondary_cb (GtkGestureClick *gesture, int n_press, double x, double y, OxSidebarRow *self)
{
  gtk_gesture_set_state (GTK_GESTURE (gesture), GTK_EVENT_SEQUENCE_CLAIMED);
  show_menu (self, x, y);
}

static void
long_press_cb (GtkGestureLongPress *gesture, double x, double y, OxSidebarRow *self)
{
  show_menu (self, x, y);
}

static void
ox_sidebar_row_dispose (GObject *object)
{
  OxSidebarRow *self = OX_SIDEBAR_ROW (object);
  GtkWidget *child;

  ox_sidebar_row_set_item (self, NULL);
  while ((child = gtk_widget_get_first_child (GTK_WIDGET (self))) != NULL)
    gtk_widget_unparent (child);
  G_OBJECT_CLASS (ox_sidebar_row_parent_class)->dispose (object);
}

static void
ox_sidebar_row_class_init (OxSidebarRowClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);

  G_OBJECT_CLASS (klass)->dispose = ox_sidebar_row_dispose;
  gtk_widget_class_set_layout_manager_type (widget_class, GTK_TYPE_BOX_LAYOUT);

  /**
   * OxSidebarRow::open:
   * @item: what the row was clicked for
   */
  signals[OPEN] =
    g_signal_new ("open", OX_TYPE_SIDEBAR_ROW, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1, G_TYPE_OBJECT);
  /**
   * OxSidebarRow::delete:
   * @conversation: what is to be deleted
   */
  signals[DELETE] = g_signal_new ("delete", OX_TYPE_SIDEBAR_ROW, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1,
                                  OX_TYPE_CONVERSATION);

  gtk_widget_class_install_action (widget_class, "row.rename", NULL, rename_action);
  gtk_widget_class_install_action (widget_class, "row.pin", NULL, pin_action);
  gtk_widget_class_install_action (widget_class, "row.delete", NULL, delete_action);
}

static void
ox_sidebar_row_init (OxSidebarRow *self)
{
  GtkBoxLayout *layout = GTK_BOX_LAYOUT (gtk_widget_get_layout_manager (GTK_WIDGET (self)));
  gtk_box_layout_set_spacing (layout, 10);

  self->icon = gtk_image_new ();
  gtk_widget_set_parent (self->icon, GTK_WIDGET (self));

  GtkWidget *labels = gtk_box_new (GTK_ORIENTATION_VERTICAL, 0);
  gtk_widget_set_hexpand (labels, TRUE);
  gtk_widget_set_valign (labels, GTK_ALIGN_CENTER);
  gtk_widget_set_parent (labels, GTK_WIDGET (self));
  self->title = g_object_new (GTK_TYPE_LABEL, "xalign", 0.0f, "ellipsize", PANGO_ELLIPSIZE_END, NULL);
  gtk_box_append (GTK_BOX (labels), self->title);
  self->snippet =
    g_object_new (GTK_TYPE_LABEL, "xalign", 0.0f, "ellipsize", PANGO_ELLIPSIZE_END, "single-line-mode", TRUE, NULL);
  gtk_widget_add_css_class (self->snippet, "caption");
  gtk_widget_add_css_class (self->snippet, "dimmed");
  gtk_box_append (GTK_BOX (labels), self->snippet);

  self->spinner = adw_spinner_new ();
  gtk_widget_set_size_request (self->spinner, 16, 16);
  gtk_widget_set_parent (self->spinner, GTK_WIDGET (self));
  self->pin = gtk_image_new_from_icon_name ("ox-pin-symbolic");
  gtk_widget_add_css_class (self->pin, "dimmed");
  gtk_widget_set_parent (self->pin, GTK_WIDGET (self));

  GtkGesture *click = gtk_gesture_click_new ();
  g_signal_connect_swapped (click, "released", G_CALLBACK (open_cb), self);
  gtk_widget_add_controller (GTK_WIDGET (self), GTK_EVENT_CONTROLLER (click));

  GtkGesture *secondary = gtk_gesture_click_new ();
  gtk_gesture_single_set_button (GTK_GESTURE_SINGLE (secondary), GDK_BUTTON_SECONDARY);
  g_signal_connect (secondary, "pressed", G_CALLBACK (secondary_cb), self);
  gtk_widget_add_controller (GTK_WIDGET (self), GTK_EVENT_CONTROLLER (secondary));

  GtkGesture *long_press = gtk_gesture_long_press_new ();
  gtk_gesture_single_set_touch_only (GTK_GESTURE_SINGLE (long_press), TRUE);
  g_signal_connect (long_press, "pressed", G_CALLBACK (long_press_cb), self);
  gtk_widget_add_controller (GTK_WIDGET (self), GTK_EVENT_CONTROLLER (long_press));
}

/**
 * ox_sidebar_row_new:
 * @list_item: the list item that the row is for
 *
 * Returns: an empty row
 */
GtkWidget *
ox_sidebar_row_new (GtkListItem *list_item)
{
  OxSidebarRow *self = g_object_new (OX_TYPE_SIDEBAR_ROW, NULL);
  self->list_item = list_item;
  return GTK_WIDGET (self);
}

/**
 * ox_sidebar_row_set_item:
 * @self: a row
 * @item: (nullable): an #OxSidebarPlace or an #OxConversation
 */
void
ox_sidebar_row_set_item (OxSidebarRow *self, GObject *item)
{
  if (self->item == item)
    return;
  if (self->item != NULL)
    g_signal_handlers_disconnect_by_data (self->item, self);
  g_set_object (&self->item, item);
  if (item == NULL)
    return;
  if (OX_IS_CONVERSATION (item)) {
    g_signal_connect_swapped (item, "notify::title", G_CALLBACK (update), self);
    g_signal_connect_swapped (item, "notify::pinned", G_CALLBACK (update), self);
    g_signal_connect_swapped (item, "notify::answering", G_CALLBACK (update), self);
    g_signal_connect_swapped (item, "notify::snippet", G_CALLBACK (update), self);
  }
  update (self);
}

/**
 * ox_sidebar_row_get_conversation:
 * @self: a row
 *
 * Returns: (transfer none) (nullable): the conversation, if it is the row of one
 */
OxConversation *
ox_sidebar_row_get_conversation (OxSidebarRow *self)
{
  return OX_IS_CONVERSATION (self->item) ? OX_CONVERSATION (self->item) : NULL;
}

/**
 * ox_sidebar_row_handle_key:
 * @self: the row that has the focus
 * @keyval: a key
 * @state: modifiers
 *
 * Returns: whether the key was used
 */
gboolean
ox_sidebar_row_handle_key (OxSidebarRow *self, guint keyval, GdkModifierType state)
{
  GtkWidget *widget = GTK_WIDGET (self);
  GdkModifierType modifiers = state & gtk_accelerator_get_default_mod_mask ();

  if (ox_sidebar_row_get_conversation (self) == NULL)
    return FALSE;
  if (modifiers == 0 && keyval == GDK_KEY_F2)
    return gtk_widget_activate_action (widget, "row.rename", NULL);
  if (modifiers == 0 && (keyval == GDK_KEY_Delete || keyval == GDK_KEY_KP_Delete))
    return gtk_widget_activate_action (widget, "row.delete", NULL);
  if ((modifiers == 0 && keyval == GDK_KEY_Menu) || (modifiers == GDK_SHIFT_MASK && keyval == GDK_KEY_F10)) {
    show_menu (self, gtk_widget_get_width (widget) / 2.0, gtk_widget_get_height (widget));
    return TRUE;
  }
  return FALSE;
}
