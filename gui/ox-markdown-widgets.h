/* Widgets for the blocks of Markdown text, and how they change while the text is written.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-markdown.h"

#include <gtk/gtk.h>

G_BEGIN_DECLS

GtkWidget *ox_markdown_widget_new (const OxMdBlock *block, int max_width_chars);

gboolean ox_markdown_widget_update (GtkWidget *widget,
                                    const OxMdBlock *old,
                                    const OxMdBlock *block,
                                    int max_width_chars);

G_END_DECLS
