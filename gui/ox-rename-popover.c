/* A popover in which a conversation gets another title.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-rename-popover.h"

#include <glib/gi18n.h>

typedef struct {
  GtkPopover *popover;
  GtkEditable *entry;
  GtkWidget *button;
  GObject *target;
  OxRenameFunc rename;
} Rename;

static void
rename_free (Rename *rename)
{
  g_object_unref (rename->target);
  g_free (rename);
}

static char *
dup_title (Rename *rename)
{
  return g_strstrip (g_strdup (gtk_editable_get_text (rename->entry)));
}

static void
changed_cb (Rename *rename)
{
  g_autofree char *title = dup_title (rename);
  gtk_widget_set_sensitive (rename->button, title[0] != '\0');
}

static void
apply_cb (Rename *rename)
{
  g_autofree char *title = dup_title (rename);
  if (title[0] == '\0')
    return;
  rename->rename (rename->target, title);
  gtk_popover_popdown (rename->popover);
}

static gboolean
unparent_cb (gpointer popover)
{
  gtk_widget_unparent (popover);
  return G_SOURCE_REMOVE;
}

/* Not at once, for the popover is still at work on its closing. */
static void
closed_cb (GtkPopover *popover)
{
  g_idle_add_full (G_PRIORITY_DEFAULT, unparent_cb, g_object_ref (popover), g_object_unref);
}

/**
 * ox_rename_popover_show:
 * @at: the widget that the popover belongs to
 * @area: (nullable): the part of it that the popover points to
 * @target: what is renamed; kept alive meanwhile
 * @title: its present title
 * @rename: called with the new one
 */
void
ox_rename_popover_show (
  GtkWidget *at, const GdkRectangle *area, GObject *target, const char *title, OxRenameFunc rename)
{
  Rename *data = g_new0 (Rename, 1);
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 6);
  GtkWidget *entry = gtk_entry_new ();

  data->popover = GTK_POPOVER (gtk_popover_new ());
  data->entry = GTK_EDITABLE (entry);
  data->button = gtk_button_new_with_mnemonic (_ ("_Rename"));
  data->target = g_object_ref (target);
  data->rename = rename;
  g_object_set_data_full (G_OBJECT (data->popover), "ox-rename", data, (GDestroyNotify) rename_free);

  gtk_editable_set_text (data->entry, title);
  gtk_editable_set_width_chars (data->entry, 24);
  gtk_entry_set_max_length (GTK_ENTRY (entry), 200);
  gtk_accessible_update_property (GTK_ACCESSIBLE (entry), GTK_ACCESSIBLE_PROPERTY_LABEL, _ ("Title"), -1);
  gtk_accessible_update_property (GTK_ACCESSIBLE (data->popover), GTK_ACCESSIBLE_PROPERTY_LABEL, _ ("Rename"), -1);
  gtk_widget_add_css_class (data->button, "suggested-action");
  gtk_box_append (GTK_BOX (box), entry);
  gtk_box_append (GTK_BOX (box), data->button);
  gtk_popover_set_child (data->popover, box);

  g_signal_connect_swapped (entry, "changed", G_CALLBACK (changed_cb), data);
  g_signal_connect_swapped (entry, "activate", G_CALLBACK (apply_cb), data);
  g_signal_connect_swapped (data->button, "clicked", G_CALLBACK (apply_cb), data);
  g_signal_connect (data->popover, "closed", G_CALLBACK (closed_cb), NULL);

  gtk_widget_set_parent (GTK_WIDGET (data->popover), at);
  gtk_popover_set_pointing_to (data->popover, area);
  g_signal_connect_object (at, "destroy", G_CALLBACK (gtk_widget_unparent), data->popover, G_CONNECT_SWAPPED);
  gtk_popover_popup (data->popover);
  gtk_widget_grab_focus (entry);
  gtk_editable_select_region (data->entry, 0, -1);
}
