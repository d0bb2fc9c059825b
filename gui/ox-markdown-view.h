/* The text of a message as widgets, one a block.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <gtk/gtk.h>

G_BEGIN_DECLS

#define OX_TYPE_MARKDOWN_VIEW (ox_markdown_view_get_type ())
G_DECLARE_FINAL_TYPE (OxMarkdownView, ox_markdown_view, OX, MARKDOWN_VIEW, GtkWidget)

GtkWidget *ox_markdown_view_new (gboolean plain, int max_width_chars);

void ox_markdown_view_set_text (OxMarkdownView *self, const char *text, gboolean writing);

gboolean ox_markdown_view_is_settled (OxMarkdownView *self);

G_END_DECLS
