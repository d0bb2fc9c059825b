/* The dialog that lists the keys. To be replaced by AdwShortcutsDialog once libadwaita 1.8 is the floor.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-shortcuts.h"

#include <glib/gi18n.h>

typedef struct {
  const char *title; /* of a group when keys is NULL */
  const char *keys;  /* accelerators, separated by spaces */
} Shortcut;

static const Shortcut start_column[] = {
  { N_ ("Chat"), NULL },
  { N_ ("New chat"), "<Control>n" },
  { N_ ("Send"), "Return" },
  { N_ ("New line"), "<Shift>Return" },
  { N_ ("Stop"), "Escape" },
  { N_ ("Think before answering"), "<Control>t" },
  { N_ ("Regenerate"), "<Control>r" },
  { N_ ("Copy last answer"), "<Control><Shift>c" },
  { N_ ("Write a message"), "<Control>l" },
  { N_ ("Conversations"), NULL },
  { N_ ("Rename"), "F2" },
  { N_ ("Delete"), "Delete" },
  { N_ ("Undo delete"), "<Control>z" },
};

static const Shortcut end_column[] = {
  { N_ ("Go To"), NULL },
  { N_ ("Previous chat"), "<Control>Page_Up" },
  { N_ ("Next chat"), "<Control>Page_Down" },
  { N_ ("Previous message"), "<Alt>Up" },
  { N_ ("Next message"), "<Alt>Down" },
  { N_ ("Search chats"), "<Control>f" },
  { N_ ("Application"), NULL },
  { N_ ("Choose model"), "<Control>k" },
  { N_ ("Hide sidebar"), "F9" },
  { N_ ("Main menu"), "F10" },
  { N_ ("Larger text"), "<Control>plus" },
  { N_ ("Smaller text"), "<Control>minus" },
  { N_ ("Normal text size"), "<Control>0" },
  { N_ ("Preferences"), "<Control>comma" },
  { N_ ("Keyboard shortcuts"), "<Control>question" },
  { N_ ("Close window"), "<Control>w" },
  { N_ ("Quit"), "<Control>q" },
};

static GtkWidget *
keys_new (const char *accelerator, char **spoken)
{
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 4);
  guint keyval;
  GdkModifierType modifiers;

  gtk_widget_set_valign (box, GTK_ALIGN_CENTER);
  /* Keys stand in the order in which they are pressed, in every language. */
  gtk_widget_set_direction (box, GTK_TEXT_DIR_LTR);
  gtk_accelerator_parse (accelerator, &keyval, &modifiers);
  *spoken = gtk_accelerator_get_label (keyval, modifiers);

  const struct {
    GdkModifierType modifier;
    const char *name;
  } names[] = {
    { GDK_CONTROL_MASK, C_ ("key", "Ctrl") },
    { GDK_ALT_MASK, C_ ("key", "Alt") },
    { GDK_SHIFT_MASK, C_ ("key", "Shift") },
  };
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    if ((modifiers & names[i].modifier) != 0) {
      GtkWidget *cap = gtk_label_new (names[i].name);
      gtk_widget_add_css_class (cap, "ox-keycap");
      gtk_box_append (GTK_BOX (box), cap);
    }

  g_autofree char *key = keyval == GDK_KEY_Return   ? g_strdup (C_ ("key", "Enter"))
                         : keyval == GDK_KEY_Escape ? g_strdup (C_ ("key", "Esc"))
                                                    : gtk_accelerator_get_label (keyval, (GdkModifierType) 0);
  GtkWidget *cap = gtk_label_new (key);
  gtk_widget_add_css_class (cap, "ox-keycap");
  gtk_box_append (GTK_BOX (box), cap);
  return box;
}

static GtkWidget *
column_new (const Shortcut *shortcuts, guint n)
{
  GtkWidget *column = gtk_box_new (GTK_ORIENTATION_VERTICAL, 24);
  AdwPreferencesGroup *group = NULL;

  for (guint i = 0; i < n; i++) {
    if (shortcuts[i].keys == NULL) {
      group = ADW_PREFERENCES_GROUP (adw_preferences_group_new ());
      adw_preferences_group_set_title (group, _ (shortcuts[i].title));
      gtk_box_append (GTK_BOX (column), GTK_WIDGET (group));
      continue;
    }
    g_autofree char *spoken = NULL;
    GtkWidget *row = adw_action_row_new ();
    adw_preferences_row_set_title (ADW_PREFERENCES_ROW (row), _ (shortcuts[i].title));
    adw_action_row_add_suffix (ADW_ACTION_ROW (row), keys_new (shortcuts[i].keys, &spoken));
    gtk_accessible_update_property (GTK_ACCESSIBLE (row), GTK_ACCESSIBLE_PROPERTY_LABEL, _ (shortcuts[i].title),
                                    GTK_ACCESSIBLE_PROPERTY_DESCRIPTION, spoken, -1);
    adw_preferences_group_add (group, row);
  }
  return column;
}

/**
 * ox_shortcuts_dialog_new:
 *
 * Returns: (transfer floating): a dialog with all keys, in two columns, or one where there is little room
 */
AdwDialog *
ox_shortcuts_dialog_new (void)
{
  AdwDialog *dialog = adw_dialog_new ();
  adw_dialog_set_title (dialog, _ ("Keyboard Shortcuts"));
  adw_dialog_set_content_width (dialog, 720);
  adw_dialog_set_content_height (dialog, 620);

  GtkWidget *columns = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 18);
  gtk_box_set_homogeneous (GTK_BOX (columns), TRUE);
  gtk_widget_set_margin_start (columns, 18);
  gtk_widget_set_margin_end (columns, 18);
  gtk_widget_set_margin_top (columns, 12);
  gtk_widget_set_margin_bottom (columns, 18);
  gtk_box_append (GTK_BOX (columns), column_new (start_column, G_N_ELEMENTS (start_column)));
  gtk_box_append (GTK_BOX (columns), column_new (end_column, G_N_ELEMENTS (end_column)));

  GtkWidget *scroller = gtk_scrolled_window_new ();
  gtk_scrolled_window_set_policy (GTK_SCROLLED_WINDOW (scroller), GTK_POLICY_NEVER, GTK_POLICY_AUTOMATIC);
  gtk_scrolled_window_set_child (GTK_SCROLLED_WINDOW (scroller), columns);

  GtkWidget *view = adw_toolbar_view_new ();
  adw_toolbar_view_add_top_bar (ADW_TOOLBAR_VIEW (view), adw_header_bar_new ());
  adw_toolbar_view_set_content (ADW_TOOLBAR_VIEW (view), scroller);
  adw_dialog_set_child (dialog, view);
  gtk_widget_set_size_request (GTK_WIDGET (dialog), 320, 200);

  AdwBreakpoint *breakpoint = adw_breakpoint_new (
    adw_breakpoint_condition_new_length (ADW_BREAKPOINT_CONDITION_MAX_WIDTH, 600, ADW_LENGTH_UNIT_SP));
  adw_breakpoint_add_setters (breakpoint, G_OBJECT (columns), "orientation", GTK_ORIENTATION_VERTICAL, NULL);
  adw_breakpoint_add_setters (breakpoint, G_OBJECT (columns), "homogeneous", FALSE, NULL);
  adw_dialog_add_breakpoint (dialog, breakpoint);
  return dialog;
}
