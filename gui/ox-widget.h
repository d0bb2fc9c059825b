/* Small help for widgets.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <gtk/gtk.h>

G_BEGIN_DECLS

/* For dispose: lets go of all children, those too that the template names and those that it does not. */
static inline void
ox_widget_dispose_children (GtkWidget *widget, GType type)
{
  GtkWidget *child;

  gtk_widget_dispose_template (widget, type);
  while ((child = gtk_widget_get_first_child (widget)) != NULL)
    gtk_widget_unparent (child);
}

/* The name of a menu button for screen readers. The focus is on the toggle button inside, so that has to have it, too. */
static inline void
ox_menu_button_set_name (GtkMenuButton *button, const char *name)
{
  GtkWidget *toggle = gtk_widget_get_first_child (GTK_WIDGET (button));

  gtk_accessible_update_property (GTK_ACCESSIBLE (button), GTK_ACCESSIBLE_PROPERTY_LABEL, name, -1);
  gtk_accessible_update_property (GTK_ACCESSIBLE (toggle), GTK_ACCESSIBLE_PROPERTY_LABEL, name, -1);
}

G_END_DECLS
