/* The library: New Chat, all conversations by day, search, and how the memory is used.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-sidebar.h"

#include "ox-memory-bar.h"
#include "ox-sidebar-model.h"
#include "ox-sidebar-row.h"
#include "ox-widget.h"

#include <glib/gi18n.h>

struct _OxSidebar {
  AdwBin parent_instance;

  GtkToggleButton *search_button;
  GtkMenuButton *menu_button;
  GtkSearchBar *search_bar;
  GtkSearchEntry *search_entry;
  GtkStack *stack;
  GtkListView *list_view;
  GtkWidget *memory_button;
  GtkLabel *memory_label;
  OxMemoryBar *memory_bar;

  OxConversationList *conversations;
  OxEngine *engine;
  OxSidebarModel *model;
  GtkSingleSelection *selection;
  OxConversation *current; /* NULL: a new chat */
  gboolean selecting;
};

G_DEFINE_FINAL_TYPE (OxSidebar, ox_sidebar, ADW_TYPE_BIN)

enum { OPEN_CONVERSATION, OPEN_PLACE, DELETE_CONVERSATION, N_SIGNALS };

static guint signals[N_SIGNALS];

static void
open_item (OxSidebar *self, GObject *item)
{
  if (OX_IS_CONVERSATION (item))
    g_signal_emit (self, signals[OPEN_CONVERSATION], 0, item);
  else if (OX_IS_SIDEBAR_PLACE (item))
    g_signal_emit (self, signals[OPEN_PLACE], 0, ox_sidebar_place_get_id (OX_SIDEBAR_PLACE (item)));
}

/* Selection: it always shows what the content shows, also when rows move. */

static void
show_selection (OxSidebar *self)
{
  guint position = GTK_INVALID_LIST_POSITION;
  guint n_places = ox_sidebar_model_get_n_places (self->model);
  guint index;

  if (self->current != NULL && ox_conversation_list_find_position (self->conversations, self->current, &index))
    position = n_places + index;
  else if (n_places > 0 && (self->current == NULL || ox_conversation_get_length (self->current) == 0))
    position = 0;
  self->selecting = TRUE;
  gtk_single_selection_set_selected (self->selection, position);
  self->selecting = FALSE;
}

static void
selected_cb (OxSidebar *self)
{
  if (self->selecting)
    return;
  GObject *item = gtk_single_selection_get_selected_item (self->selection);
  if (item != NULL && item != G_OBJECT (self->current))
    open_item (self, item);
}

static void
items_changed_cb (OxSidebar *self)
{
  const char *search = ox_conversation_list_get_search (self->conversations);
  gboolean found =
    search == NULL || search[0] == '\0' || g_list_model_get_n_items (G_LIST_MODEL (self->conversations)) > 0;
  gtk_stack_set_visible_child_name (self->stack, found ? "list" : "no-results");
  show_selection (self);
}

/* Rows */

static void
row_open_cb (OxSidebar *self, GObject *item)
{
  open_item (self, item);
}

static void
row_delete_cb (OxSidebar *self, OxConversation *conversation)
{
  g_signal_emit (self, signals[DELETE_CONVERSATION], 0, conversation);
}

static void
setup_cb (GtkListItemFactory *factory, GtkListItem *list_item, OxSidebar *self)
{
  GtkWidget *row = ox_sidebar_row_new (list_item);
  g_signal_connect_object (row, "open", G_CALLBACK (row_open_cb), self, G_CONNECT_SWAPPED);
  g_signal_connect_object (row, "delete", G_CALLBACK (row_delete_cb), self, G_CONNECT_SWAPPED);
  gtk_list_item_set_child (list_item, row);
}

static void
bind_cb (GtkListItemFactory *factory, GtkListItem *list_item)
{
  ox_sidebar_row_set_item (OX_SIDEBAR_ROW (gtk_list_item_get_child (list_item)), gtk_list_item_get_item (list_item));
}

static void
unbind_cb (GtkListItemFactory *factory, GtkListItem *list_item)
{
  ox_sidebar_row_set_item (OX_SIDEBAR_ROW (gtk_list_item_get_child (list_item)), NULL);
}

static void
setup_header_cb (GtkListItemFactory *factory, GtkListHeader *header)
{
  GtkWidget *label = g_object_new (GTK_TYPE_LABEL, "xalign", 0.0f, "ellipsize", PANGO_ELLIPSIZE_END, NULL);
  gtk_widget_add_css_class (label, "caption-heading");
  gtk_widget_add_css_class (label, "dimmed");
  gtk_widget_add_css_class (label, "ox-day");
  gtk_list_header_set_child (header, label);
}

static void
bind_header_cb (GtkListItemFactory *factory, GtkListHeader *header, OxSidebar *self)
{
  GtkWidget *label = gtk_list_header_get_child (header);
  GObject *item = gtk_list_header_get_item (header);
  g_autofree char *title = OX_IS_CONVERSATION (item)
                             ? ox_conversation_list_dup_section_title (self->conversations, OX_CONVERSATION (item))
                             : NULL;
  gtk_label_set_label (GTK_LABEL (label), title != NULL ? title : "");
  gtk_widget_set_visible (label, title != NULL);
}

static void
activate_cb (OxSidebar *self, guint position)
{
  g_autoptr (GObject) item = g_list_model_get_item (G_LIST_MODEL (self->model), position);
  if (item != NULL)
    open_item (self, item);
}

/* Keys go to the row that has the focus; nothing is deleted from anywhere else. */
static gboolean
key_pressed_cb (GtkEventControllerKey *controller, guint keyval, guint keycode, GdkModifierType state, OxSidebar *self)
{
  GtkRoot *root = gtk_widget_get_root (GTK_WIDGET (self));
  GtkWidget *focus = root != NULL ? gtk_root_get_focus (root) : NULL;
  GtkWidget *row = focus != NULL ? gtk_widget_get_first_child (focus) : NULL;
  return OX_IS_SIDEBAR_ROW (row) && ox_sidebar_row_handle_key (OX_SIDEBAR_ROW (row), keyval, state);
}

/* Search */

static void
search_changed_cb (OxSidebar *self)
{
  const char *text = gtk_editable_get_text (GTK_EDITABLE (self->search_entry));
  ox_sidebar_model_set_show_places (self->model, text[0] == '\0');
  ox_conversation_list_set_search (self->conversations, text);
  items_changed_cb (self);
}

static void
search_mode_cb (OxSidebar *self)
{
  if (!gtk_search_bar_get_search_mode (self->search_bar) && self->conversations != NULL) {
    gtk_editable_set_text (GTK_EDITABLE (self->search_entry), "");
    search_changed_cb (self);
  }
}

static void
search_activate_cb (OxSidebar *self)
{
  g_autoptr (GObject) item = g_list_model_get_item (G_LIST_MODEL (self->conversations), 0);
  if (item != NULL)
    open_item (self, item);
}

/* Memory */

static void
memory_cb (OxSidebar *self)
{
  guint64 total = ox_engine_get_memory_total (self->engine);
  guint64 available = ox_engine_get_memory_available (self->engine);
  gboolean ready = ox_engine_get_state (self->engine) == OX_ENGINE_READY && total > 0;

  gtk_widget_set_visible (self->memory_button, ready);
  if (!ready)
    return;
  /* Translators: memory used of the memory there is, in GB. */
  g_autofree char *text =
    g_strdup_printf (_ ("%.1f of %.0f GB"), (double) (total - MIN (available, total)) / 1e9, (double) total / 1e9);
  gtk_label_set_label (self->memory_label, text);
  ox_memory_bar_set_values (self->memory_bar, ox_engine_get_weight_bytes (self->engine),
                            ox_engine_get_session_bytes (self->engine), available, total);
  g_autofree char *name = g_strdup_printf (_ ("Memory, %s"), text);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->memory_button), GTK_ACCESSIBLE_PROPERTY_LABEL, name, -1);
}

static void
ox_sidebar_dispose (GObject *object)
{
  OxSidebar *self = OX_SIDEBAR (object);

  if (self->list_view != NULL)
    gtk_list_view_set_model (self->list_view, NULL);
  g_clear_object (&self->selection);
  g_clear_object (&self->model);
  g_clear_object (&self->current);
  g_clear_object (&self->conversations);
  g_clear_object (&self->engine);
  gtk_widget_dispose_template (GTK_WIDGET (object), OX_TYPE_SIDEBAR);
  G_OBJECT_CLASS (ox_sidebar_parent_class)->dispose (object);
}

static void
ox_sidebar_class_init (OxSidebarClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);

  G_OBJECT_CLASS (klass)->dispose = ox_sidebar_dispose;

  /**
   * OxSidebar::open-conversation:
   * @conversation: what is to be shown
   */
  signals[OPEN_CONVERSATION] = g_signal_new ("open-conversation", OX_TYPE_SIDEBAR, G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                                             NULL, G_TYPE_NONE, 1, OX_TYPE_CONVERSATION);
  /**
   * OxSidebar::open-place:
   * @id: "new-chat"
   */
  signals[OPEN_PLACE] =
    g_signal_new ("open-place", OX_TYPE_SIDEBAR, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1, G_TYPE_STRING);
  /**
   * OxSidebar::delete-conversation:
   * @conversation: what is to be deleted
   */
  signals[DELETE_CONVERSATION] = g_signal_new ("delete-conversation", OX_TYPE_SIDEBAR, G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                                               NULL, G_TYPE_NONE, 1, OX_TYPE_CONVERSATION);

  g_type_ensure (OX_TYPE_MEMORY_BAR);
  gtk_widget_class_set_template_from_resource (widget_class, "/org/oxinfer/App/ui/ox-sidebar.ui");
  gtk_widget_class_bind_template_child (widget_class, OxSidebar, search_button);
  gtk_widget_class_bind_template_child (widget_class, OxSidebar, search_bar);
  gtk_widget_class_bind_template_child (widget_class, OxSidebar, search_entry);
  gtk_widget_class_bind_template_child (widget_class, OxSidebar, menu_button);
  gtk_widget_class_bind_template_child (widget_class, OxSidebar, stack);
  gtk_widget_class_bind_template_child (widget_class, OxSidebar, list_view);
  gtk_widget_class_bind_template_child (widget_class, OxSidebar, memory_button);
  gtk_widget_class_bind_template_child (widget_class, OxSidebar, memory_label);
  gtk_widget_class_bind_template_child (widget_class, OxSidebar, memory_bar);
  gtk_widget_class_bind_template_callback (widget_class, search_mode_cb);
  gtk_widget_class_bind_template_callback (widget_class, search_changed_cb);
  gtk_widget_class_bind_template_callback (widget_class, search_activate_cb);
  gtk_widget_class_bind_template_callback (widget_class, activate_cb);
}

static void
ox_sidebar_init (OxSidebar *self)
{
  gtk_widget_init_template (GTK_WIDGET (self));
  ox_menu_button_set_name (self->menu_button, _ ("Main Menu"));
  gtk_search_bar_connect_entry (self->search_bar, GTK_EDITABLE (self->search_entry));
  gtk_search_bar_set_key_capture_widget (self->search_bar, GTK_WIDGET (self->list_view));

  GtkListItemFactory *rows = gtk_signal_list_item_factory_new ();
  g_signal_connect_object (rows, "setup", G_CALLBACK (setup_cb), self, G_CONNECT_DEFAULT);
  g_signal_connect (rows, "bind", G_CALLBACK (bind_cb), NULL);
  g_signal_connect (rows, "unbind", G_CALLBACK (unbind_cb), NULL);
  gtk_list_view_set_factory (self->list_view, rows);
  g_object_unref (rows);

  GtkListItemFactory *headers = gtk_signal_list_item_factory_new ();
  g_signal_connect (headers, "setup", G_CALLBACK (setup_header_cb), NULL);
  g_signal_connect_object (headers, "bind", G_CALLBACK (bind_header_cb), self, G_CONNECT_DEFAULT);
  gtk_list_view_set_header_factory (self->list_view, headers);
  g_object_unref (headers);

  GtkEventController *keys = gtk_event_controller_key_new ();
  gtk_event_controller_set_propagation_phase (keys, GTK_PHASE_CAPTURE);
  g_signal_connect_object (keys, "key-pressed", G_CALLBACK (key_pressed_cb), self, G_CONNECT_DEFAULT);
  gtk_widget_add_controller (GTK_WIDGET (self->list_view), keys);
}

/**
 * ox_sidebar_set_context:
 * @self: a sidebar
 * @conversations: what is listed
 * @engine: whose use of memory is shown
 *
 * To be called once.
 */
void
ox_sidebar_set_context (OxSidebar *self, OxConversationList *conversations, OxEngine *engine)
{
  self->conversations = g_object_ref (conversations);
  self->engine = g_object_ref (engine);
  self->model = ox_sidebar_model_new (G_LIST_MODEL (conversations));
  ox_sidebar_model_add_place (self->model, "new-chat", _ ("New Chat"), "chat-message-new-symbolic");

  self->selection = gtk_single_selection_new (NULL);
  gtk_single_selection_set_autoselect (self->selection, FALSE);
  gtk_single_selection_set_can_unselect (self->selection, TRUE);
  gtk_single_selection_set_model (self->selection, G_LIST_MODEL (self->model));
  self->selecting = TRUE;
  gtk_list_view_set_model (self->list_view, GTK_SELECTION_MODEL (self->selection));
  self->selecting = FALSE;
  g_signal_connect_object (self->selection, "notify::selected-item", G_CALLBACK (selected_cb), self, G_CONNECT_SWAPPED);
  g_signal_connect_object (conversations, "items-changed", G_CALLBACK (items_changed_cb), self,
                           G_CONNECT_SWAPPED | G_CONNECT_AFTER);

  g_signal_connect_object (engine, "notify::state", G_CALLBACK (memory_cb), self, G_CONNECT_SWAPPED);
  g_signal_connect_object (engine, "notify::memory-available", G_CALLBACK (memory_cb), self, G_CONNECT_SWAPPED);
  g_signal_connect_object (engine, "notify::session-bytes", G_CALLBACK (memory_cb), self, G_CONNECT_SWAPPED);
  memory_cb (self);
  show_selection (self);
}

/**
 * ox_sidebar_select:
 * @self: a sidebar
 * @conversation: (nullable): what the content shows
 */
void
ox_sidebar_select (OxSidebar *self, OxConversation *conversation)
{
  g_set_object (&self->current, conversation);
  show_selection (self);
}

/**
 * ox_sidebar_get_neighbour:
 * @self: a sidebar
 * @conversation: a conversation
 * @direction: -1 for the one above, 1 for the one below
 *
 * Returns: (transfer full) (nullable): the next conversation in that direction, or the first when @conversation is not
 *   in the list
 */
OxConversation *
ox_sidebar_get_neighbour (OxSidebar *self, OxConversation *conversation, int direction)
{
  guint position;
  if (conversation == NULL || !ox_conversation_list_find_position (self->conversations, conversation, &position))
    return g_list_model_get_item (G_LIST_MODEL (self->conversations), 0);
  if (direction < 0 && position == 0)
    return NULL;
  return g_list_model_get_item (G_LIST_MODEL (self->conversations), position + direction);
}

/**
 * ox_sidebar_search:
 * @self: a sidebar
 *
 * Opens the search and puts the focus there.
 */
void
ox_sidebar_search (OxSidebar *self)
{
  gtk_search_bar_set_search_mode (self->search_bar, TRUE);
  gtk_widget_grab_focus (GTK_WIDGET (self->search_entry));
  gtk_editable_select_region (GTK_EDITABLE (self->search_entry), 0, -1);
}
