/* What is shown while there is no model yet.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <adwaita.h>

G_BEGIN_DECLS

#define OX_TYPE_WELCOME_PAGE (ox_welcome_page_get_type ())
G_DECLARE_FINAL_TYPE (OxWelcomePage, ox_welcome_page, OX, WELCOME_PAGE, AdwBin)

GtkWidget *ox_welcome_page_new (void);

void ox_welcome_page_set_problem (OxWelcomePage *self, const char *problem);

G_END_DECLS
