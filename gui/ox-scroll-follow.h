/* Keeps a scrolled view where the person wants it while its content grows.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <gtk/gtk.h>

G_BEGIN_DECLS

#define OX_TYPE_SCROLL_FOLLOW (ox_scroll_follow_get_type ())
G_DECLARE_FINAL_TYPE (OxScrollFollow, ox_scroll_follow, OX, SCROLL_FOLLOW, GObject)

OxScrollFollow *ox_scroll_follow_new (GtkScrolledWindow *window);

gboolean ox_scroll_follow_get_following (OxScrollFollow *self);
void ox_scroll_follow_jump (OxScrollFollow *self);
void ox_scroll_follow_leave (OxScrollFollow *self);
gboolean ox_scroll_follow_take_moved (OxScrollFollow *self);
void ox_scroll_follow_shift (OxScrollFollow *self, double distance);

G_END_DECLS
