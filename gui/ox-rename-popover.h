/* A popover in which a conversation gets another title.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <gtk/gtk.h>

G_BEGIN_DECLS

typedef void (*OxRenameFunc) (GObject *target, const char *title);

void ox_rename_popover_show (
  GtkWidget *at, const GdkRectangle *area, GObject *target, const char *title, OxRenameFunc rename);

G_END_DECLS
