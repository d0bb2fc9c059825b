/* A row that opens: an icon, a title and more behind it, such as what a model thought.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <gtk/gtk.h>

G_BEGIN_DECLS

#define OX_TYPE_DISCLOSURE (ox_disclosure_get_type ())
G_DECLARE_FINAL_TYPE (OxDisclosure, ox_disclosure, OX, DISCLOSURE, GtkWidget)

GtkWidget *ox_disclosure_new (void);

void ox_disclosure_set_icon_name (OxDisclosure *self, const char *icon_name);
void ox_disclosure_set_title (OxDisclosure *self, const char *title, const char *detail);
void ox_disclosure_set_running_title (OxDisclosure *self, const char *title);
void ox_disclosure_set_busy (OxDisclosure *self, gboolean busy);
void ox_disclosure_set_failed (OxDisclosure *self, gboolean failed);
void ox_disclosure_set_child (OxDisclosure *self, GtkWidget *child);
gboolean ox_disclosure_get_open (OxDisclosure *self);
void ox_disclosure_set_open (OxDisclosure *self, gboolean open);
const char *ox_disclosure_get_title (OxDisclosure *self);

G_END_DECLS
