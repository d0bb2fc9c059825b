/* How the computer's memory is used: a bar with the model, the conversation and other programs.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <gtk/gtk.h>

G_BEGIN_DECLS

#define OX_TYPE_MEMORY_BAR (ox_memory_bar_get_type ())
G_DECLARE_FINAL_TYPE (OxMemoryBar, ox_memory_bar, OX, MEMORY_BAR, GtkWidget)

void ox_memory_bar_set_values (
  OxMemoryBar *self, guint64 model, guint64 conversation, guint64 available, guint64 total);

G_END_DECLS
