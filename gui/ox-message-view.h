/* One message: what a person wrote, or an answer with all that belongs to it.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-message.h"

#include <gtk/gtk.h>

G_BEGIN_DECLS

#define OX_TYPE_MESSAGE_VIEW (ox_message_view_get_type ())
G_DECLARE_FINAL_TYPE (OxMessageView, ox_message_view, OX, MESSAGE_VIEW, GtkWidget)

GtkWidget *ox_message_view_new (OxMessage *message);

OxMessage *ox_message_view_get_message (OxMessageView *self);
void ox_message_view_set_last (OxMessageView *self, gboolean last);
void ox_message_view_set_narrow (OxMessageView *self, gboolean narrow);
void ox_message_view_set_show_statistics (OxMessageView *self, gboolean show_statistics);
gboolean ox_message_view_is_settled (OxMessageView *self);
void ox_message_view_copy (OxMessageView *self);

G_END_DECLS
