/* Keeps a scrolled view where the person wants it while its content grows.
 *
 * At the bottom the view follows what is written. Whoever scrolls up or drags, as one does to select text, leaves that
 * state, and from then on nothing but the person moves the view. While older content is put in above, the distance from
 * the bottom stays the same, so that what is being read does not move.
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
  gboolean growing_above;
  double distance; /* of the view's top from the end of the content, when the person last moved it */
  gboolean moving; /* the change under way is our own */
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
  self->moving = TRUE;
  gtk_adjustment_set_value (self->adjustment, value);
  self->moving = FALSE;
}

static void
value_changed_cb (OxScrollFollow *self)
{
  self->distance = gtk_adjustment_get_upper (self->adjustment) - gtk_adjustment_get_value (self->adjustment);
  /* When the content shrinks or grows the value may be clamped: that is not the person's doing. */
  if (self->moving || gtk_adjustment_get_upper (self->adjustment) != self->upper)
    return;
  set_following (self, gtk_adjustment_get_value (self->adjustment) >= get_bottom (self) - NEAR);
}

static void
changed_cb (OxScrollFollow *self)
{
  double distance = self->distance;
  self->upper = gtk_adjustment_get_upper (self->adjustment);

  if (self->following)
    move_to (self, get_bottom (self));
  else if (self->growing_above)
    move_to (self, self->upper - distance);
  else if (get_bottom (self) <= NEAR)
    set_following (self, TRUE);
  self->distance = self->upper - gtk_adjustment_get_value (self->adjustment);
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
 * ox_scroll_follow_set_growing_above:
 * @self: the object
 * @growing_above: whether content is being put in above what is shown
 */
void
ox_scroll_follow_set_growing_above (OxScrollFollow *self, gboolean growing_above)
{
  self->growing_above = growing_above;
}
