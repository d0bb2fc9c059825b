/* The direction in which a text is read.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <gtk/gtk.h>

G_BEGIN_DECLS

GtkTextDirection ox_text_direction (const char *text, gsize length);

G_END_DECLS
