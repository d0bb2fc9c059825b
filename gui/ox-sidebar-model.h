/* The sidebar's one list: places, such as New Chat, and then the conversations in sections by day.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <gtk/gtk.h>

G_BEGIN_DECLS

#define OX_TYPE_SIDEBAR_PLACE (ox_sidebar_place_get_type ())
G_DECLARE_FINAL_TYPE (OxSidebarPlace, ox_sidebar_place, OX, SIDEBAR_PLACE, GObject)

const char *ox_sidebar_place_get_id (OxSidebarPlace *self);
const char *ox_sidebar_place_get_title (OxSidebarPlace *self);
const char *ox_sidebar_place_get_icon_name (OxSidebarPlace *self);

#define OX_TYPE_SIDEBAR_MODEL (ox_sidebar_model_get_type ())
G_DECLARE_FINAL_TYPE (OxSidebarModel, ox_sidebar_model, OX, SIDEBAR_MODEL, GObject)

OxSidebarModel *ox_sidebar_model_new (GListModel *conversations);

void ox_sidebar_model_add_place (OxSidebarModel *self, const char *id, const char *title, const char *icon_name);
void ox_sidebar_model_set_show_places (OxSidebarModel *self, gboolean show_places);
guint ox_sidebar_model_get_n_places (OxSidebarModel *self);

G_END_DECLS
