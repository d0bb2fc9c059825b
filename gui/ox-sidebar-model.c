/* The sidebar's one list: places, such as New Chat, and then the conversations in sections by day.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-sidebar-model.h"

struct _OxSidebarPlace {
  GObject parent_instance;

  char *id;
  char *title;
  char *icon_name;
};

G_DEFINE_FINAL_TYPE (OxSidebarPlace, ox_sidebar_place, G_TYPE_OBJECT)

static void
ox_sidebar_place_finalize (GObject *object)
{
  OxSidebarPlace *self = OX_SIDEBAR_PLACE (object);
  g_free (self->id);
  g_free (self->title);
  g_free (self->icon_name);
  G_OBJECT_CLASS (ox_sidebar_place_parent_class)->finalize (object);
}

static void
ox_sidebar_place_class_init (OxSidebarPlaceClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = ox_sidebar_place_finalize;
}

static void
ox_sidebar_place_init (OxSidebarPlace *self)
{
}

const char *
ox_sidebar_place_get_id (OxSidebarPlace *self)
{
  return self->id;
}

const char *
ox_sidebar_place_get_title (OxSidebarPlace *self)
{
  return self->title;
}

const char *
ox_sidebar_place_get_icon_name (OxSidebarPlace *self)
{
  return self->icon_name;
}

struct _OxSidebarModel {
  GObject parent_instance;

  GPtrArray *places;
  gboolean show_places;
  GListModel *conversations;
};

/**
 * ox_sidebar_model_get_n_places:
 * @self: a model
 *
 * Returns: how many places are shown, all before the first conversation
 */
guint
ox_sidebar_model_get_n_places (OxSidebarModel *self)
{
  return self->show_places ? self->places->len : 0;
}

static GType
get_item_type (GListModel *model)
{
  return G_TYPE_OBJECT;
}

static guint
get_n_items (GListModel *model)
{
  OxSidebarModel *self = OX_SIDEBAR_MODEL (model);
  return ox_sidebar_model_get_n_places (self) + g_list_model_get_n_items (self->conversations);
}

static gpointer
get_item (GListModel *model, guint position)
{
  OxSidebarModel *self = OX_SIDEBAR_MODEL (model);
  guint n_places = ox_sidebar_model_get_n_places (self);
  if (position < n_places)
    return g_object_ref (self->places->pdata[position]);
  return g_list_model_get_item (self->conversations, position - n_places);
}

static void
list_model_iface_init (GListModelInterface *iface)
{
  iface->get_item_type = get_item_type;
  iface->get_n_items = get_n_items;
  iface->get_item = get_item;
}

static void
get_section (GtkSectionModel *model, guint position, guint *start, guint *end)
{
  OxSidebarModel *self = OX_SIDEBAR_MODEL (model);
  guint n_places = ox_sidebar_model_get_n_places (self);

  if (position < n_places) {
    *start = 0;
    *end = n_places;
  } else if (position >= n_places + g_list_model_get_n_items (self->conversations)) {
    *start = n_places + g_list_model_get_n_items (self->conversations);
    *end = G_MAXUINT;
  } else if (GTK_IS_SECTION_MODEL (self->conversations)) {
    gtk_section_model_get_section (GTK_SECTION_MODEL (self->conversations), position - n_places, start, end);
    *start += n_places;
    *end += n_places;
  } else {
    *start = n_places;
    *end = n_places + g_list_model_get_n_items (self->conversations);
  }
}

static void
section_model_iface_init (GtkSectionModelInterface *iface)
{
  iface->get_section = get_section;
}

G_DEFINE_FINAL_TYPE_WITH_CODE (OxSidebarModel,
                               ox_sidebar_model,
                               G_TYPE_OBJECT,
                               G_IMPLEMENT_INTERFACE (G_TYPE_LIST_MODEL, list_model_iface_init)
                                 G_IMPLEMENT_INTERFACE (GTK_TYPE_SECTION_MODEL, section_model_iface_init))

static void
items_changed_cb (OxSidebarModel *self, guint position, guint removed, guint added)
{
  g_list_model_items_changed (G_LIST_MODEL (self), ox_sidebar_model_get_n_places (self) + position, removed, added);
}

static void
sections_changed_cb (OxSidebarModel *self, guint position, guint n_items)
{
  gtk_section_model_sections_changed (GTK_SECTION_MODEL (self), ox_sidebar_model_get_n_places (self) + position,
                                      n_items);
}

static void
ox_sidebar_model_finalize (GObject *object)
{
  OxSidebarModel *self = OX_SIDEBAR_MODEL (object);
  g_ptr_array_unref (self->places);
  g_clear_object (&self->conversations);
  G_OBJECT_CLASS (ox_sidebar_model_parent_class)->finalize (object);
}

static void
ox_sidebar_model_class_init (OxSidebarModelClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = ox_sidebar_model_finalize;
}

static void
ox_sidebar_model_init (OxSidebarModel *self)
{
  self->places = g_ptr_array_new_with_free_func (g_object_unref);
  self->show_places = TRUE;
}

/**
 * ox_sidebar_model_new:
 * @conversations: a list, with sections if it is a #GtkSectionModel
 *
 * Returns: a model without places
 */
OxSidebarModel *
ox_sidebar_model_new (GListModel *conversations)
{
  OxSidebarModel *self = g_object_new (OX_TYPE_SIDEBAR_MODEL, NULL);
  self->conversations = g_object_ref (conversations);
  g_signal_connect_object (conversations, "items-changed", G_CALLBACK (items_changed_cb), self, G_CONNECT_SWAPPED);
  if (GTK_IS_SECTION_MODEL (conversations))
    g_signal_connect_object (conversations, "sections-changed", G_CALLBACK (sections_changed_cb), self,
                             G_CONNECT_SWAPPED);
  return self;
}

/**
 * ox_sidebar_model_add_place:
 * @self: a model
 * @id: name of the place in the program
 * @title: name of the place for people
 * @icon_name: its symbolic icon
 *
 * Adds a place below those there are.
 */
void
ox_sidebar_model_add_place (OxSidebarModel *self, const char *id, const char *title, const char *icon_name)
{
  OxSidebarPlace *place = g_object_new (OX_TYPE_SIDEBAR_PLACE, NULL);
  place->id = g_strdup (id);
  place->title = g_strdup (title);
  place->icon_name = g_strdup (icon_name);
  g_ptr_array_add (self->places, place);
  g_list_model_items_changed (G_LIST_MODEL (self), self->places->len - 1, 0, 1);
}

/**
 * ox_sidebar_model_set_show_places:
 * @self: a model
 * @show_places: whether places are in the list; a search shows conversations only
 */
void
ox_sidebar_model_set_show_places (OxSidebarModel *self, gboolean show_places)
{
  if (self->show_places == show_places)
    return;
  self->show_places = show_places;
  g_list_model_items_changed (G_LIST_MODEL (self), 0, show_places ? 0 : self->places->len,
                              show_places ? self->places->len : 0);
}
