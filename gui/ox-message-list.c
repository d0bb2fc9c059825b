/* The messages of a conversation, one below the other: the last ones at once, older ones as one scrolls up.
 *
 * Views exist for the messages from "first" to the end. They are built from the end upwards, a few milliseconds at a time,
 * until "wanted" is reached; scrolling near the top wants another page.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-message-list.h"

#include "ox-scroll-follow.h"

#include <adwaita.h>
#include <glib/gi18n.h>

#define PAGE 60
/* In one frame: what is built has to be laid out in it as well. */
#define FRAME_MS 16
#define SLICE_US 4000
#define SLICE_VIEWS 3
#define WIDTH 796
#define SPACING 10
/* A new first child has the styles of all its siblings looked at again, so messages stand in boxes of so many. */
#define CHUNK 8
#define MAX_PASSES 5

struct _OxMessageList {
  GtkWidget parent_instance;

  GtkWidget *scroller;
  GtkWidget *box;
  OxScrollFollow *follow;

  OxConversation *conversation;
  GPtrArray *views; /* of OxMessageView, borrowed: messages from first on */
  guint first;
  guint wanted;
  guint build_id;
  GtkWidget *anchor; /* borrowed, one of the views: the first one in view */
  double anchor_top; /* its place in the content */
  gboolean allocating;
  double laid_out_value; /* where the view was when the content was laid out last */
  gboolean narrow;
  gboolean show_statistics;
};

G_DEFINE_FINAL_TYPE (OxMessageList, ox_message_list, GTK_TYPE_WIDGET)

enum { PROP_0, PROP_FOLLOWING, N_PROPS };

static GParamSpec *properties[N_PROPS];

enum { RETRY, CONTINUE, N_SIGNALS };

static guint signals[N_SIGNALS];

static void
retry_cb (OxMessageView *view, OxMessageList *self)
{
  g_signal_emit (self, signals[RETRY], 0, ox_message_view_get_message (view));
}

static void
continue_cb (OxMessageView *view, OxMessageList *self)
{
  g_signal_emit (self, signals[CONTINUE], 0, ox_message_view_get_message (view));
}

static GtkWidget *
view_new (OxMessageList *self, guint position)
{
  GtkWidget *view = ox_message_view_new (ox_conversation_get_message (self->conversation, position));
  ox_message_view_set_narrow (OX_MESSAGE_VIEW (view), self->narrow);
  ox_message_view_set_show_statistics (OX_MESSAGE_VIEW (view), self->show_statistics);
  g_signal_connect_object (view, "retry", G_CALLBACK (retry_cb), self, G_CONNECT_DEFAULT);
  g_signal_connect_object (view, "continue", G_CALLBACK (continue_cb), self, G_CONNECT_DEFAULT);
  return view;
}

static GtkWidget *
chunk_new (void)
{
  return gtk_box_new (GTK_ORIENTATION_VERTICAL, SPACING);
}

static gboolean
chunk_has_room (GtkWidget *chunk)
{
  guint n = 0;
  for (GtkWidget *child = gtk_widget_get_first_child (chunk); child != NULL;
       child = gtk_widget_get_next_sibling (child))
    n++;
  return n < CHUNK;
}

static void
insert_view (OxMessageList *self, guint position)
{
  GtkWidget *view = view_new (self, position);
  guint index = position - self->first;
  GtkWidget *before = index > 0 ? self->views->pdata[index - 1] : NULL;
  GtkWidget *chunk;

  if (before == NULL) {
    chunk = gtk_widget_get_first_child (self->box);
    if (chunk == NULL || !chunk_has_room (chunk)) {
      chunk = chunk_new ();
      gtk_box_prepend (GTK_BOX (self->box), chunk);
    }
  } else {
    chunk = gtk_widget_get_parent (before);
    if (index == self->views->len && !chunk_has_room (chunk)) {
      chunk = chunk_new ();
      gtk_box_append (GTK_BOX (self->box), chunk);
      before = NULL;
    }
  }
  gtk_box_insert_child_after (GTK_BOX (chunk), view, before);
  g_ptr_array_insert (self->views, (int) index, view);
}

static void
remove_view (OxMessageList *self, guint index)
{
  GtkWidget *view = self->views->pdata[index];
  GtkWidget *chunk = gtk_widget_get_parent (view);

  if (self->anchor == view)
    self->anchor = NULL;
  g_ptr_array_remove_index (self->views, index);
  gtk_box_remove (GTK_BOX (chunk), view);
  if (gtk_widget_get_first_child (chunk) == NULL)
    gtk_box_remove (GTK_BOX (self->box), chunk);
}

static void
mark_last (OxMessageList *self)
{
  for (guint i = 0; i < self->views->len; i++)
    ox_message_view_set_last (self->views->pdata[i], i + 1 == self->views->len);
}

static gboolean
views_settled (OxMessageList *self)
{
  for (guint i = 0; i < self->views->len; i++)
    if (!ox_message_view_is_settled (self->views->pdata[i]))
      return FALSE;
  return TRUE;
}

static gboolean
build_cb (gpointer user_data)
{
  OxMessageList *self = user_data;
  gint64 deadline = g_get_monotonic_time () + SLICE_US;

  for (guint n = 0; self->first > self->wanted; n++) {
    if (n == SLICE_VIEWS || g_get_monotonic_time () >= deadline)
      return G_SOURCE_CONTINUE;
    self->first--;
    insert_view (self, self->first);
  }
  if (!views_settled (self))
    return G_SOURCE_CONTINUE;
  self->build_id = 0;
  return G_SOURCE_REMOVE;
}

static void
build (OxMessageList *self)
{
  if (self->build_id == 0)
    self->build_id = g_timeout_add (FRAME_MS, build_cb, self);
}

static gboolean
get_place (OxMessageList *self, GtkWidget *view, double *top, double *bottom)
{
  graphene_rect_t bounds;

  if (!gtk_widget_compute_bounds (view, self->scroller, &bounds))
    return FALSE;
  *top = bounds.origin.y + self->laid_out_value;
  *bottom = bounds.origin.y + bounds.size.height + self->laid_out_value;
  return TRUE;
}

static void
choose_anchor (OxMessageList *self)
{
  double value = gtk_adjustment_get_value (ox_message_list_get_adjustment (self));
  double bottom;

  self->anchor = NULL;
  for (guint i = 0; i < self->views->len && self->anchor == NULL; i++)
    if (get_place (self, self->views->pdata[i], &self->anchor_top, &bottom) && bottom > value)
      self->anchor = self->views->pdata[i];
}

static void
value_changed_cb (OxMessageList *self)
{
  GtkAdjustment *adjustment = ox_message_list_get_adjustment (self);

  if (!self->allocating)
    choose_anchor (self);
  if (self->build_id != 0 || self->wanted == 0 ||
      gtk_adjustment_get_value (adjustment) > gtk_adjustment_get_page_size (adjustment))
    return;
  self->wanted = self->wanted > PAGE ? self->wanted - PAGE : 0;
  build (self);
}

static void
items_changed_cb (OxMessageList *self, guint position, guint removed, guint added)
{
  guint end = position + removed;

  /* Views from the end downwards, so that their index stays right. */
  for (guint i = end; i > MAX (position, self->first); i--)
    remove_view (self, i - 1 - self->first);

  guint n_items = ox_conversation_get_length (self->conversation);
  if (self->views->len == 0) {
    /* All at once, as when a conversation was loaded: from the end. */
    self->first = n_items;
    self->wanted = n_items > PAGE ? n_items - PAGE : 0;
    build_cb (self);
    if (self->first > self->wanted || !views_settled (self))
      build (self);
  } else if (position < self->first) {
    guint above = MIN (removed, self->first - position);
    self->first = self->first - above + added;
    self->wanted = MIN (self->wanted, self->first);
  } else {
    for (guint i = 0; i < added; i++)
      insert_view (self, position + i);
  }
  mark_last (self);
}

static void
following_cb (OxMessageList *self)
{
  g_object_notify_by_pspec (G_OBJECT (self), properties[PROP_FOLLOWING]);
}

static void
ox_message_list_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  if (id == PROP_FOLLOWING)
    g_value_set_boolean (value, ox_message_list_get_following (OX_MESSAGE_LIST (object)));
  else
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
}

static void
ox_message_list_measure (GtkWidget *widget,
                         GtkOrientation orientation,
                         int for_size,
                         int *minimum,
                         int *natural,
                         int *minimum_baseline,
                         int *natural_baseline)
{
  gtk_widget_measure (OX_MESSAGE_LIST (widget)->scroller, orientation, for_size, minimum, natural, NULL, NULL);
}

/* Whatever comes or grows above what is read, what is read stays where it is. */
static void
keep_anchor (OxMessageList *self)
{
  double top, bottom;

  if (self->anchor == NULL || ox_message_list_get_following (self) || !get_place (self, self->anchor, &top, &bottom))
    return;
  if (top != self->anchor_top)
    ox_scroll_follow_shift (self->follow, top - self->anchor_top);
  self->anchor_top = top;
}

/* Once more whenever that moved the view, so that no frame shows the old place. Text views have another height once they
 * are where they can be seen, so that this may take a few passes. */
static void
ox_message_list_size_allocate (GtkWidget *widget, int width, int height, int baseline)
{
  OxMessageList *self = OX_MESSAGE_LIST (widget);

  GtkAdjustment *adjustment = ox_message_list_get_adjustment (self);

  self->allocating = TRUE;
  ox_scroll_follow_take_moved (self->follow);
  gtk_widget_allocate (self->scroller, width, height, baseline, NULL);
  for (guint i = 0; i < MAX_PASSES; i++) {
    self->laid_out_value = gtk_adjustment_get_value (adjustment);
    if (!ox_scroll_follow_take_moved (self->follow)) {
      keep_anchor (self);
      if (!ox_scroll_follow_take_moved (self->follow))
        break;
    }
    gtk_widget_queue_allocate (gtk_scrolled_window_get_child (GTK_SCROLLED_WINDOW (self->scroller)));
    gtk_widget_allocate (self->scroller, width, height, baseline, NULL);
  }
  choose_anchor (self);
  self->allocating = FALSE;
}

static void
ox_message_list_dispose (GObject *object)
{
  OxMessageList *self = OX_MESSAGE_LIST (object);

  g_clear_handle_id (&self->build_id, g_source_remove);
  if (self->conversation != NULL)
    g_signal_handlers_disconnect_by_data (self->conversation, self);
  g_clear_object (&self->conversation);
  g_clear_object (&self->follow);
  g_ptr_array_set_size (self->views, 0);
  self->anchor = NULL;
  g_clear_pointer (&self->scroller, gtk_widget_unparent);
  G_OBJECT_CLASS (ox_message_list_parent_class)->dispose (object);
}

static void
ox_message_list_finalize (GObject *object)
{
  g_ptr_array_unref (OX_MESSAGE_LIST (object)->views);
  G_OBJECT_CLASS (ox_message_list_parent_class)->finalize (object);
}

static void
ox_message_list_class_init (OxMessageListClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);

  object_class->get_property = ox_message_list_get_property;
  object_class->dispose = ox_message_list_dispose;
  object_class->finalize = ox_message_list_finalize;
  widget_class->measure = ox_message_list_measure;
  widget_class->size_allocate = ox_message_list_size_allocate;

  /**
   * OxMessageList:following:
   *
   * Whether the view stays at the newest message.
   */
  properties[PROP_FOLLOWING] =
    g_param_spec_boolean ("following", NULL, NULL, TRUE, G_PARAM_READABLE | G_PARAM_STATIC_STRINGS);
  g_object_class_install_properties (object_class, N_PROPS, properties);

  /**
   * OxMessageList::retry:
   * @message: an answer in whose place another one is wanted
   */
  signals[RETRY] = g_signal_new ("retry", OX_TYPE_MESSAGE_LIST, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1,
                                 OX_TYPE_MESSAGE);
  /**
   * OxMessageList::continue:
   * @message: an answer that is to go on
   */
  signals[CONTINUE] = g_signal_new ("continue", OX_TYPE_MESSAGE_LIST, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                    G_TYPE_NONE, 1, OX_TYPE_MESSAGE);
}

static void
ox_message_list_init (OxMessageList *self)
{
  self->views = g_ptr_array_new ();
  self->show_statistics = TRUE;

  self->box = g_object_new (GTK_TYPE_BOX, "orientation", GTK_ORIENTATION_VERTICAL, "spacing", SPACING,
                            "accessible-role", GTK_ACCESSIBLE_ROLE_LOG, "margin-start", 18, "margin-end", 18,
                            "margin-top", 12, "margin-bottom", 18, NULL);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->box), GTK_ACCESSIBLE_PROPERTY_LABEL, _ ("Messages"), -1);

  GtkWidget *clamp = adw_clamp_new ();
  adw_clamp_set_maximum_size (ADW_CLAMP (clamp), WIDTH);
  adw_clamp_set_tightening_threshold (ADW_CLAMP (clamp), WIDTH);
  adw_clamp_set_child (ADW_CLAMP (clamp), self->box);

  self->scroller = gtk_scrolled_window_new ();
  gtk_scrolled_window_set_policy (GTK_SCROLLED_WINDOW (self->scroller), GTK_POLICY_NEVER, GTK_POLICY_AUTOMATIC);
  gtk_scrolled_window_set_child (GTK_SCROLLED_WINDOW (self->scroller), clamp);
  gtk_widget_add_css_class (self->scroller, "ox-conversation");
  gtk_widget_set_parent (self->scroller, GTK_WIDGET (self));

  self->follow = ox_scroll_follow_new (GTK_SCROLLED_WINDOW (self->scroller));
  g_signal_connect_object (self->follow, "notify::following", G_CALLBACK (following_cb), self, G_CONNECT_SWAPPED);
  g_signal_connect_object (ox_message_list_get_adjustment (self), "value-changed", G_CALLBACK (value_changed_cb), self,
                           G_CONNECT_SWAPPED);
}

/**
 * ox_message_list_set_conversation:
 * @self: a list
 * @conversation: (nullable): whose messages are shown
 *
 * Shows the end of @conversation.
 */
void
ox_message_list_set_conversation (OxMessageList *self, OxConversation *conversation)
{
  if (self->conversation == conversation)
    return;
  g_clear_handle_id (&self->build_id, g_source_remove);
  if (self->conversation != NULL)
    g_signal_handlers_disconnect_by_data (self->conversation, self);
  while (self->views->len > 0)
    remove_view (self, self->views->len - 1);
  self->first = 0;
  self->wanted = 0;
  g_set_object (&self->conversation, conversation);
  ox_scroll_follow_jump (self->follow);
  if (conversation == NULL)
    return;

  g_signal_connect_swapped (conversation, "items-changed", G_CALLBACK (items_changed_cb), self);
  items_changed_cb (self, 0, 0, ox_conversation_get_length (conversation));
}

/**
 * ox_message_list_set_narrow:
 * @self: a list
 * @narrow: whether there is little room
 */
void
ox_message_list_set_narrow (OxMessageList *self, gboolean narrow)
{
  self->narrow = narrow;
  gtk_widget_set_margin_start (self->box, narrow ? 14 : 18);
  gtk_widget_set_margin_end (self->box, narrow ? 14 : 18);
  for (guint i = 0; i < self->views->len; i++)
    ox_message_view_set_narrow (self->views->pdata[i], narrow);
}

/**
 * ox_message_list_set_show_statistics:
 * @self: a list
 * @show_statistics: whether speed and timing stand below answers
 */
void
ox_message_list_set_show_statistics (OxMessageList *self, gboolean show_statistics)
{
  self->show_statistics = show_statistics;
  for (guint i = 0; i < self->views->len; i++)
    ox_message_view_set_show_statistics (self->views->pdata[i], show_statistics);
}

gboolean
ox_message_list_get_following (OxMessageList *self)
{
  return self->follow == NULL || ox_scroll_follow_get_following (self->follow);
}

/**
 * ox_message_list_jump:
 * @self: a list
 *
 * Goes to the newest message, and stays with what comes.
 */
void
ox_message_list_jump (OxMessageList *self)
{
  ox_scroll_follow_jump (self->follow);
}

/**
 * ox_message_list_move_focus:
 * @self: a list
 * @direction: -1 for the message before, 1 for the one after
 *
 * Moves the keyboard focus from message to message, beginning with the last one.
 */
void
ox_message_list_move_focus (OxMessageList *self, int direction)
{
  GtkRoot *root = gtk_widget_get_root (GTK_WIDGET (self));
  GtkWidget *focus = root != NULL ? gtk_root_get_focus (root) : NULL;
  int next = direction < 0 ? (int) self->views->len - 1 : -1;

  for (guint i = 0; i < self->views->len; i++)
    if (focus != NULL && (focus == self->views->pdata[i] || gtk_widget_is_ancestor (focus, self->views->pdata[i])))
      next = (int) i + direction;
  if (next >= 0 && next < (int) self->views->len)
    gtk_widget_grab_focus (self->views->pdata[next]);
}

/**
 * ox_message_list_is_settled:
 * @self: a list
 *
 * Returns: whether all widgets that are wanted now have been built
 */
gboolean
ox_message_list_is_settled (OxMessageList *self)
{
  return self->build_id == 0 && self->first == self->wanted;
}

guint
ox_message_list_get_n_views (OxMessageList *self)
{
  return self->views->len;
}

GtkAdjustment *
ox_message_list_get_adjustment (OxMessageList *self)
{
  return gtk_scrolled_window_get_vadjustment (GTK_SCROLLED_WINDOW (self->scroller));
}
