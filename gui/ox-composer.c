/* Where a message is written: text, what is at hand for it, and one button that sends or stops.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-composer.h"

#include "ox-widget.h"

#include <adwaita.h>
#include <glib/gi18n.h>
#include <math.h>

struct _OxComposer {
  GtkWidget parent_instance;

  GtkRevealer *hint_revealer;
  GtkLabel *placeholder_label;
  GtkTextView *text_view;
  GtkScrolledWindow *scroller;
  GtkBox *tools;
  GtkRevealer *full_revealer;
  GtkLabel *full_label;
  GtkToggleButton *think_button;
  GtkLabel *think_label;
  GtkMenuButton *usage_button;
  GtkDrawingArea *usage_ring;
  GtkLabel *usage_label;
  GtkLabel *usage_title;
  GtkLabel *usage_details;
  GtkCheckButton *drop_check;
  GtkButton *send_button;

  gboolean busy;
  gboolean can_send;
  gboolean enter_sends;
  gboolean queued;
  gboolean preedit;
  gboolean setting; /* what changes is not by the person's hand */
  double usage;
  guint send_id;
};

G_DEFINE_FINAL_TYPE (OxComposer, ox_composer, GTK_TYPE_WIDGET)

enum { SEND, STOP, CHANGED, THINK_TOGGLED, DROP_OLDEST_TOGGLED, N_SIGNALS };

static guint signals[N_SIGNALS];

static gboolean
has_text (OxComposer *self)
{
  GtkTextBuffer *buffer = gtk_text_view_get_buffer (self->text_view);
  GtkTextIter at;
  gtk_text_buffer_get_start_iter (buffer, &at);
  while (!gtk_text_iter_is_end (&at)) {
    if (!g_unichar_isspace (gtk_text_iter_get_char (&at)))
      return TRUE;
    gtk_text_iter_forward_char (&at);
  }
  return FALSE;
}

static void
update_state (OxComposer *self)
{
  const char *label = self->busy ? _ ("Stop") : _ ("Send");
  gboolean text = has_text (self);

  gtk_button_set_icon_name (self->send_button, self->busy ? "ox-stop-symbolic" : "ox-send-symbolic");
  gtk_widget_set_tooltip_text (GTK_WIDGET (self->send_button), label);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->send_button), GTK_ACCESSIBLE_PROPERTY_LABEL, label, -1);
  if (self->busy)
    gtk_widget_remove_css_class (GTK_WIDGET (self->send_button), "suggested-action");
  else
    gtk_widget_add_css_class (GTK_WIDGET (self->send_button), "suggested-action");
  gtk_widget_set_sensitive (GTK_WIDGET (self->send_button), self->busy || (text && self->can_send));

  GtkTextBuffer *buffer = gtk_text_view_get_buffer (self->text_view);
  gtk_widget_set_visible (GTK_WIDGET (self->placeholder_label),
                          gtk_text_buffer_get_char_count (buffer) == 0 && !self->preedit);
}

static void
preedit_changed_cb (OxComposer *self, const char *preedit)
{
  self->preedit = preedit[0] != '\0';
  update_state (self);
}

static void
buffer_changed_cb (OxComposer *self)
{
  update_state (self);
  if (self->queued && !has_text (self))
    ox_composer_unqueue (self);
  g_signal_emit (self, signals[CHANGED], 0);
}

/* What Enter does: sends, or has the message wait for the end of the answer that is being written. */
static void
send_or_queue (OxComposer *self)
{
  if (!has_text (self) || !self->can_send)
    return;
  if (!self->busy) {
    g_signal_emit (self, signals[SEND], 0);
  } else if (!self->queued) {
    self->queued = TRUE;
    gtk_revealer_set_reveal_child (self->hint_revealer, TRUE);
    gtk_accessible_announce (GTK_ACCESSIBLE (self), _ ("Sent when this answer ends"),
                             GTK_ACCESSIBLE_ANNOUNCEMENT_PRIORITY_MEDIUM);
  }
}

/**
 * ox_composer_handle_key:
 * @self: a composer
 * @keyval: the key
 * @state: modifiers
 *
 * Does what a key means here, once the input method did not want it.
 *
 * Returns: whether the key was used
 */
gboolean
ox_composer_handle_key (OxComposer *self, guint keyval, GdkModifierType state)
{
  gboolean shift = (state & GDK_SHIFT_MASK) != 0;
  gboolean control = (state & GDK_CONTROL_MASK) != 0;

  if (keyval == GDK_KEY_Escape && self->busy) {
    g_signal_emit (self, signals[STOP], 0);
    return TRUE;
  }
  if (keyval != GDK_KEY_Return && keyval != GDK_KEY_KP_Enter && keyval != GDK_KEY_ISO_Enter)
    return FALSE;
  if (shift || (state & GDK_ALT_MASK) != 0)
    return FALSE;
  if (control || self->enter_sends) {
    send_or_queue (self);
    return TRUE;
  }
  return FALSE;
}

static gboolean
key_pressed_cb (
  GtkEventControllerKey *controller, guint keyval, guint keycode, GdkModifierType state, gpointer user_data)
{
  OxComposer *self = OX_COMPOSER (
    gtk_widget_get_ancestor (gtk_event_controller_get_widget (GTK_EVENT_CONTROLLER (controller)), OX_TYPE_COMPOSER));

  if (keyval != GDK_KEY_Return && keyval != GDK_KEY_KP_Enter && keyval != GDK_KEY_ISO_Enter && keyval != GDK_KEY_Escape)
    return FALSE;
  /* An input method that is composing uses Enter to accept its text. */
  GdkEvent *event = gtk_event_controller_get_current_event (GTK_EVENT_CONTROLLER (controller));
  if (event != NULL && gtk_text_view_im_context_filter_keypress (self->text_view, event))
    return TRUE;
  return ox_composer_handle_key (self, keyval, state);
}

static void
think_toggled_cb (OxComposer *self)
{
  if (!self->setting)
    g_signal_emit (self, signals[THINK_TOGGLED], 0, gtk_toggle_button_get_active (self->think_button));
}

static void
drop_toggled_cb (OxComposer *self)
{
  if (!self->setting)
    g_signal_emit (self, signals[DROP_OLDEST_TOGGLED], 0, gtk_check_button_get_active (self->drop_check));
}

static void
shorten_cb (OxComposer *self)
{
  gtk_widget_grab_focus (GTK_WIDGET (self));
  g_signal_emit (self, signals[DROP_OLDEST_TOGGLED], 0, TRUE);
}

static void
draw_usage_cb (GtkDrawingArea *area, cairo_t *cr, int width, int height, gpointer user_data)
{
  OxComposer *self = OX_COMPOSER (user_data);
  double radius = MIN (width, height) / 2.0 - 1.5;
  GdkRGBA color;

  gtk_widget_get_color (GTK_WIDGET (area), &color);
  cairo_set_line_width (cr, 2.5);
  color.alpha *= 0.2f;
  gdk_cairo_set_source_rgba (cr, &color);
  cairo_arc (cr, width / 2.0, height / 2.0, radius, 0, 2 * G_PI);
  cairo_stroke (cr);

  if (self->usage < 0.8) {
    g_autoptr (GdkRGBA) accent = adw_style_manager_get_accent_color_rgba (adw_style_manager_get_default ());
    color = *accent;
  } else {
    color.alpha *= 5;
  }
  gdk_cairo_set_source_rgba (cr, &color);
  cairo_arc (cr, width / 2.0, height / 2.0, radius, -G_PI / 2, -G_PI / 2 + 2 * G_PI * MIN (self->usage, 1));
  cairo_stroke (cr);
}

static void
ox_composer_dispose (GObject *object)
{
  g_clear_handle_id (&OX_COMPOSER (object)->send_id, g_source_remove);
  ox_widget_dispose_children (GTK_WIDGET (object), OX_TYPE_COMPOSER);
  G_OBJECT_CLASS (ox_composer_parent_class)->dispose (object);
}

static gboolean
ox_composer_grab_focus (GtkWidget *widget)
{
  return gtk_widget_grab_focus (GTK_WIDGET (OX_COMPOSER (widget)->text_view));
}

/* The text grows up to eight lines of whatever size the person reads. */
static void
ox_composer_map (GtkWidget *widget)
{
  OxComposer *self = OX_COMPOSER (widget);
  GTK_WIDGET_CLASS (ox_composer_parent_class)->map (widget);

  PangoContext *context = gtk_widget_get_pango_context (GTK_WIDGET (self->text_view));
  PangoFontMetrics *metrics = pango_context_get_metrics (context, NULL, NULL);
  int line = PANGO_PIXELS_CEIL (pango_font_metrics_get_height (metrics));
  pango_font_metrics_unref (metrics);
  int margins = gtk_text_view_get_top_margin (self->text_view) + gtk_text_view_get_bottom_margin (self->text_view);
  gtk_scrolled_window_set_max_content_height (self->scroller, 8 * line + margins);
  gtk_scrolled_window_set_min_content_height (self->scroller, line + margins);
}

static void
ox_composer_class_init (OxComposerClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);

  object_class->dispose = ox_composer_dispose;
  widget_class->grab_focus = ox_composer_grab_focus;
  widget_class->map = ox_composer_map;

  /**
   * OxComposer::send:
   *
   * The person wants the text to be sent. The receiver takes it and empties the composer.
   */
  signals[SEND] = g_signal_new ("send", OX_TYPE_COMPOSER, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
  /**
   * OxComposer::stop:
   *
   * The person wants the answer to stop.
   */
  signals[STOP] = g_signal_new ("stop", OX_TYPE_COMPOSER, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
  /**
   * OxComposer::changed:
   *
   * The text is another one, for the draft.
   */
  signals[CHANGED] = g_signal_new ("changed", OX_TYPE_COMPOSER, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);

  /**
   * OxComposer::think-toggled:
   * @think: whether the model is to think before it answers
   */
  signals[THINK_TOGGLED] = g_signal_new ("think-toggled", OX_TYPE_COMPOSER, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                         G_TYPE_NONE, 1, G_TYPE_BOOLEAN);
  /**
   * OxComposer::drop-oldest-toggled:
   * @drop: whether the oldest messages are to be left out when the conversation is too long
   */
  signals[DROP_OLDEST_TOGGLED] = g_signal_new ("drop-oldest-toggled", OX_TYPE_COMPOSER, G_SIGNAL_RUN_LAST, 0, NULL,
                                               NULL, NULL, G_TYPE_NONE, 1, G_TYPE_BOOLEAN);

  gtk_widget_class_set_template_from_resource (widget_class, "/org/oxinfer/App/ui/ox-composer.ui");
  gtk_widget_class_bind_template_child (widget_class, OxComposer, hint_revealer);
  gtk_widget_class_bind_template_child (widget_class, OxComposer, placeholder_label);
  gtk_widget_class_bind_template_child (widget_class, OxComposer, text_view);
  gtk_widget_class_bind_template_child (widget_class, OxComposer, scroller);
  gtk_widget_class_bind_template_child (widget_class, OxComposer, tools);
  gtk_widget_class_bind_template_child (widget_class, OxComposer, full_revealer);
  gtk_widget_class_bind_template_child (widget_class, OxComposer, full_label);
  gtk_widget_class_bind_template_child (widget_class, OxComposer, think_button);
  gtk_widget_class_bind_template_child (widget_class, OxComposer, think_label);
  gtk_widget_class_bind_template_child (widget_class, OxComposer, usage_title);
  gtk_widget_class_bind_template_child (widget_class, OxComposer, drop_check);
  gtk_widget_class_bind_template_callback (widget_class, think_toggled_cb);
  gtk_widget_class_bind_template_callback (widget_class, drop_toggled_cb);
  gtk_widget_class_bind_template_callback (widget_class, shorten_cb);
  gtk_widget_class_bind_template_child (widget_class, OxComposer, usage_button);
  gtk_widget_class_bind_template_child (widget_class, OxComposer, usage_ring);
  gtk_widget_class_bind_template_child (widget_class, OxComposer, usage_label);
  gtk_widget_class_bind_template_child (widget_class, OxComposer, usage_details);
  gtk_widget_class_bind_template_child (widget_class, OxComposer, send_button);
  gtk_widget_class_bind_template_callback (widget_class, preedit_changed_cb);
  gtk_widget_class_bind_template_callback (widget_class, key_pressed_cb);
  gtk_widget_class_bind_template_callback (widget_class, ox_composer_activate);
  gtk_widget_class_bind_template_callback (widget_class, ox_composer_unqueue);
}

static void
ox_composer_init (OxComposer *self)
{
  self->enter_sends = TRUE;
  gtk_widget_init_template (GTK_WIDGET (self));
  g_signal_connect_object (gtk_text_view_get_buffer (self->text_view), "changed", G_CALLBACK (buffer_changed_cb), self,
                           G_CONNECT_SWAPPED);
  /* "12 %" reads the same in every language. */
  gtk_widget_set_direction (GTK_WIDGET (self->usage_label), GTK_TEXT_DIR_LTR);
  gtk_drawing_area_set_draw_func (self->usage_ring, draw_usage_cb, self, NULL);
  update_state (self);
}

/**
 * ox_composer_new:
 *
 * Returns: an empty composer
 */
GtkWidget *
ox_composer_new (void)
{
  return g_object_new (OX_TYPE_COMPOSER, NULL);
}

/**
 * ox_composer_dup_text:
 * @self: a composer
 *
 * Returns: (transfer full): the text
 */
char *
ox_composer_dup_text (OxComposer *self)
{
  GtkTextIter start, end;
  GtkTextBuffer *buffer = gtk_text_view_get_buffer (self->text_view);
  gtk_text_buffer_get_bounds (buffer, &start, &end);
  return gtk_text_buffer_get_text (buffer, &start, &end, FALSE);
}

/**
 * ox_composer_set_text:
 * @self: a composer
 * @text: (nullable): the text
 *
 * Replaces the text and puts the cursor behind it.
 */
void
ox_composer_set_text (OxComposer *self, const char *text)
{
  GtkTextIter end;
  GtkTextBuffer *buffer = gtk_text_view_get_buffer (self->text_view);
  gtk_text_view_reset_im_context (self->text_view);
  gtk_text_buffer_set_text (buffer, text != NULL ? text : "", -1);
  gtk_text_buffer_get_end_iter (buffer, &end);
  gtk_text_buffer_place_cursor (buffer, &end);
}

gboolean
ox_composer_get_busy (OxComposer *self)
{
  return self->busy;
}

/* Not at once, for whoever told that the answer ended may still be at work on it. */
static gboolean
send_queued_cb (gpointer user_data)
{
  OxComposer *self = user_data;
  self->send_id = 0;
  if (self->queued && !self->busy) {
    ox_composer_unqueue (self);
    send_or_queue (self);
  }
  return G_SOURCE_REMOVE;
}

/**
 * ox_composer_set_busy:
 * @self: a composer
 * @busy: whether an answer is being made for this conversation
 *
 * The button stops while @busy. When that ends, a message that waits is sent.
 */
void
ox_composer_set_busy (OxComposer *self, gboolean busy)
{
  if (self->busy == busy)
    return;
  self->busy = busy;
  update_state (self);
  if (!busy && self->queued && self->send_id == 0)
    self->send_id = g_idle_add (send_queued_cb, self);
}

/**
 * ox_composer_set_can_send:
 * @self: a composer
 * @can_send: whether there is a model that could answer
 */
void
ox_composer_set_can_send (OxComposer *self, gboolean can_send)
{
  self->can_send = can_send;
  update_state (self);
}

/**
 * ox_composer_set_enter_sends:
 * @self: a composer
 * @enter_sends: whether Enter alone sends; Ctrl+Enter always does
 */
void
ox_composer_set_enter_sends (OxComposer *self, gboolean enter_sends)
{
  self->enter_sends = enter_sends;
}

/**
 * ox_composer_set_placeholder:
 * @self: a composer
 * @placeholder: what is shown while there is no text
 */
void
ox_composer_set_placeholder (OxComposer *self, const char *placeholder)
{
  gtk_label_set_label (self->placeholder_label, placeholder);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->text_view), GTK_ACCESSIBLE_PROPERTY_PLACEHOLDER, placeholder,
                                  -1);
}

/* What the numbers mean, a sentence each. */
static char *
dup_usage_details (const OxContextUse *use, guint used)
{
  g_autoptr (GString) text = g_string_new (NULL);

  if (used < use->context_length)
    /* Translators: tokens used, tokens that fit, tokens left. */
    g_string_append_printf (text, _ ("%'u of %'u tokens, %'u are left."), used, use->context_length,
                            use->context_length - used);
  else
    g_string_append_printf (text, _ ("%'u of %'u tokens: there is no room for an answer."), used, use->context_length);
  g_string_append_c (text, '\n');
  g_string_append (text, _ ("A token is about three quarters of a word."));
  if (use->dropped_messages > 0) {
    g_string_append_c (text, '\n');
    g_string_append_printf (
      text, ngettext ("The oldest message is left out.", "The %u oldest messages are left out.", use->dropped_messages),
      use->dropped_messages);
    g_string_append_c (text, ' ');
    g_string_append_printf (text, _ ("That makes room for %'u tokens."), use->dropped_tokens);
  }
  return g_string_free (g_steal_pointer (&text), FALSE);
}

/**
 * ox_composer_set_usage:
 * @self: a composer
 * @use: (nullable): what sending would take; NULL if that is not known, which hides the ring
 * @drop_oldest: whether the oldest messages are left out of a conversation that is too long
 */
void
ox_composer_set_usage (OxComposer *self, const OxContextUse *use, gboolean drop_oldest)
{
  gboolean known = use != NULL && use->context_length > 0;
  gboolean was_full = gtk_revealer_get_reveal_child (self->full_revealer);

  gtk_widget_set_visible (GTK_WIDGET (self->usage_button), known);
  self->setting = TRUE;
  gtk_check_button_set_active (self->drop_check, drop_oldest);
  self->setting = FALSE;
  if (!known) {
    gtk_revealer_set_reveal_child (self->full_revealer, FALSE);
    return;
  }

  guint used = use->prompt_tokens - MIN (use->dropped_tokens, use->prompt_tokens);
  self->usage = (double) used / use->context_length;
  int percent = (int) round (MIN (self->usage, 1) * 100);
  /* Translators: how much of the conversation length is used, in percent. */
  g_autofree char *text = g_strdup_printf (_ ("%d %%"), percent);
  g_autofree char *name = g_strdup_printf (_ ("%d percent of the conversation length used"), percent);
  g_autofree char *title = g_strdup_printf (_ ("%d %% of this chat’s length used"), percent);
  g_autofree char *details = dup_usage_details (use, used);
  gtk_label_set_label (self->usage_label, text);
  gtk_label_set_label (self->usage_title, title);
  gtk_label_set_label (self->usage_details, details);
  ox_menu_button_set_name (self->usage_button, name);
  gtk_widget_set_tooltip_text (GTK_WIDGET (self->usage_button), name);
  if (self->usage >= 0.8)
    gtk_widget_add_css_class (GTK_WIDGET (self->usage_button), "warning");
  else
    gtk_widget_remove_css_class (GTK_WIDGET (self->usage_button), "warning");
  gtk_widget_queue_draw (GTK_WIDGET (self->usage_ring));

  gboolean full = used >= use->context_length && !drop_oldest;
  if (full) {
    /* Translators: tokens of the conversation, tokens that fit. */
    g_autofree char *words = g_strdup_printf (_ ("This chat is full: %'u of %'u tokens"), used, use->context_length);
    gtk_label_set_label (self->full_label, words);
    if (!was_full)
      gtk_accessible_announce (GTK_ACCESSIBLE (self), words, GTK_ACCESSIBLE_ANNOUNCEMENT_PRIORITY_MEDIUM);
  }
  gtk_revealer_set_reveal_child (self->full_revealer, full);
}

/**
 * ox_composer_set_think:
 * @self: a composer
 * @can_think: whether there is a choice, else the button is hidden
 * @think: whether the model is to think before it answers
 */
void
ox_composer_set_think (OxComposer *self, gboolean can_think, gboolean think)
{
  self->setting = TRUE;
  gtk_widget_set_visible (GTK_WIDGET (self->think_button), can_think);
  gtk_toggle_button_set_active (self->think_button, think);
  self->setting = FALSE;
}

/**
 * ox_composer_toggle_think:
 * @self: a composer
 *
 * As a click on the button, if it is there.
 */
void
ox_composer_toggle_think (OxComposer *self)
{
  if (!gtk_widget_get_visible (GTK_WIDGET (self->think_button)))
    return;
  gboolean think = !gtk_toggle_button_get_active (self->think_button);
  gtk_toggle_button_set_active (self->think_button, think);
  gtk_accessible_announce (GTK_ACCESSIBLE (self), think ? _ ("Thinking on") : _ ("Thinking off"),
                           GTK_ACCESSIBLE_ANNOUNCEMENT_PRIORITY_MEDIUM);
}

/**
 * ox_composer_set_narrow:
 * @self: a composer
 * @narrow: whether there is little room, so that ring and Think have no text
 */
void
ox_composer_set_narrow (OxComposer *self, gboolean narrow)
{
  gtk_widget_set_visible (GTK_WIDGET (self->usage_label), !narrow);
  gtk_widget_set_visible (GTK_WIDGET (self->think_label), !narrow);
}

/**
 * ox_composer_unqueue:
 * @self: a composer
 *
 * A message that waits for the end of an answer is not sent then; its text stays.
 */
void
ox_composer_unqueue (OxComposer *self)
{
  self->queued = FALSE;
  gtk_revealer_set_reveal_child (self->hint_revealer, FALSE);
}

/**
 * ox_composer_add_tool:
 * @self: a composer
 * @widget: a button, such as the model chooser, for the end of the tool row
 */
void
ox_composer_add_tool (OxComposer *self, GtkWidget *widget)
{
  gtk_box_insert_child_after (self->tools, widget, GTK_WIDGET (self->usage_button));
}

/**
 * ox_composer_activate:
 * @self: a composer
 *
 * Sends or stops, as a click on the button does.
 */
void
ox_composer_activate (OxComposer *self)
{
  if (self->busy)
    g_signal_emit (self, signals[STOP], 0);
  else
    send_or_queue (self);
}

/**
 * ox_composer_get_text_view:
 * @self: a composer
 *
 * Returns: (transfer none): where the text is written
 */
GtkTextView *
ox_composer_get_text_view (OxComposer *self)
{
  return self->text_view;
}
