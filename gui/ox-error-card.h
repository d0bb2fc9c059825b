/* The card that stands in place of an answer which failed.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <gtk/gtk.h>

G_BEGIN_DECLS

#define OX_TYPE_ERROR_CARD (ox_error_card_get_type ())
G_DECLARE_FINAL_TYPE (OxErrorCard, ox_error_card, OX, ERROR_CARD, GtkWidget)

GtkWidget *ox_error_card_new (void);

void ox_error_card_set_error (OxErrorCard *self, const char *title, const char *text, const char *details);
const char *ox_error_card_get_title (OxErrorCard *self);

G_END_DECLS
