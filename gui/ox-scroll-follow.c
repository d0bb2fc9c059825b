/* Keeps a scrolled view where the person wants it while its content grows.
 *
 * At the bottom the view follows what is written. Whoever scrolls up or drags, as one does to select text, leaves that
 * state, and from then on nothing but the person moves the view.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-scroll-follow.h"

/* So near the bottom counts as at the bottom, in pixels. */
#define NEAR 4
/* A pointer that moves so far with its button held is selecting text. */
#define DRAG_DISTANCE 8

struct _OxScrollFollow {
  GObject parent_instance;

  GtkAdjustment *adjustment;
  gboolean following;
  gboolean moving; /* the change under way is our own */
  gboolean moved;
  double upper;
};

G_DEFINE_FINAL_TYPE (OxScrollFollow, ox_scroll_follow, G_TYPE_OBJECT)

enum { PROP_0, PROP_FOLLOWING, N_PROPS };

static GParamSpec *properties[N_PROPS];

static double
get_bottom (OxScrollFollow *self)
{
  return gtk_adjustment_get_upper (self->adjustment) - gtk_adjustment_get_page_size (self->adjustment);
}

static void
set_following (OxScrollFollow *self, gboolean following)
{
  if (self->following == following)
    return;
  self->following = following;
  g_object_notify_by_pspec (G_OBJECT (self), properties[PROP_FOLLOWING]);
}

static void
move_to (OxScrollFollow *self, double value)
{
  double before = gtk_adjustment_get_value (self->adjustment);
  self->moving = TRUE;
  gtk_adjustment_set_value (self->adjustment, value);
  self->moving = FALSE;
  self->moved = self->moved || gtk_adjustment_get_value (self->adjustment) != before;
}

static void
value_changed_cb (OxScrollFollow *self)
{
  /* When the content shrinks or grows the value may be clamped: that is not the person's doing. */
  if (self->moving || gtk_adjustment_get_upper (self->adjustment) != self->upper)
    return;
  set_following (self, gtk_adjustment_get_value (self->adjustment) >= get_bottom (self) - NEAR);
}

static void
changed_cb (OxScrollFollow *self)
{
  self->upper = gtk_adjustment_get_upper (self->adjustment);

  if (self->following)
    move_to (self, get_bottom (self));
  else if (get_bottom (self) <= NEAR)
    set_following (self, TRUE);
}

static void
drag_update_cb (GtkGestureDrag *gesture, double x, double y, OxScrollFollow *self)
{
  if (self->following && x * x + y * y > DRAG_DISTANCE * DRAG_DISTANCE && get_bottom (self) > NEAR)
    set_following (self, FALSE);
}

static void
ox_scroll_follow_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  OxScrollFollow *self = OX_SCROLL_FOLLOW (object);

  if (id == PROP_FOLLOWING)
    g_value_set_boolean (value, self->following);
  else
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
}

static void
ox_scroll_follow_class_init (OxScrollFollowClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->get_property = ox_scroll_follow_get_property;

  /**
   * OxScrollFollow:following:
   *
   * Whether the view stays at the end of its content.
   */
  properties[PROP_FOLLOWING] =
    g_param_spec_boolean ("following", NULL, NULL, TRUE, G_PARAM_READABLE | G_PARAM_STATIC_STRINGS);
  g_object_class_install_properties (object_class, N_PROPS, properties);
}

static void
ox_scroll_follow_init (OxScrollFollow *self)
{
  self->following = TRUE;
}

/**
 * ox_scroll_follow_new:
 * @window: a scrolled window, which has to outlive the object
 *
 * Returns: an object that follows the end of @window's content
 */
OxScrollFollow *
ox_scroll_follow_new (GtkScrolledWindow *window)
{
  OxScrollFollow *self = g_object_new (OX_TYPE_SCROLL_FOLLOW, NULL);
  self->adjustment = gtk_scrolled_window_get_vadjustment (window);
  g_signal_connect_object (self->adjustment, "value-changed", G_CALLBACK (value_changed_cb), self, G_CONNECT_SWAPPED);
  g_signal_connect_object (self->adjustment, "changed", G_CALLBACK (changed_cb), self, G_CONNECT_SWAPPED);

  GtkGesture *drag = gtk_gesture_drag_new ();
  gtk_event_controller_set_propagation_phase (GTK_EVENT_CONTROLLER (drag), GTK_PHASE_CAPTURE);
  g_signal_connect_object (drag, "drag-update", G_CALLBACK (drag_update_cb), self, G_CONNECT_DEFAULT);
  gtk_widget_add_controller (GTK_WIDGET (window), GTK_EVENT_CONTROLLER (drag));
  return self;
}

gboolean
ox_scroll_follow_get_following (OxScrollFollow *self)
{
  return self->following;
}

/**
 * ox_scroll_follow_jump:
 * @self: the object
 *
 * Goes to the end and follows it from now on.
 */
void
ox_scroll_follow_jump (OxScrollFollow *self)
{
  set_following (self, TRUE);
  move_to (self, get_bottom (self));
}

/**
 * ox_scroll_follow_leave:
 * @self: the object
 *
 * Stays here from now on.
 */
void
ox_scroll_follow_leave (OxScrollFollow *self)
{
  set_following (self, FALSE);
}

/**
 * ox_scroll_follow_take_moved:
 * @self: the object
 *
 * GtkViewport places its child before it tells the new size of the content, so a move that answers to that comes too
 * late for the frame. Whoever allocates the scrolled window asks here whether to do it once more.
 *
 * Returns: whether the object moved the view since this was asked last
 */
gboolean
ox_scroll_follow_take_moved (OxScrollFollow *self)
{
  gboolean moved = self->moved;
  self->moved = FALSE;
  return moved;
}

/**
 * ox_scroll_follow_shift:
 * @self: the object
 * @distance: pixels
 *
 * Moves the view along with content that got another place.
 */
void
ox_scroll_follow_shift (OxScrollFollow *self, double distance)
{
  move_to (self, gtk_adjustment_get_value (self->adjustment) + distance);
}
