/* One message: what a person wrote, or an answer with all that belongs to it.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-message-view.h"

#include "ox-error-card.h"
#include "ox-markdown-view.h"
#include "ox-widget.h"

#include <adwaita.h>
#include <glib/gi18n.h>
#include <math.h>
#include <string.h>

#define USER_WIDTH_CHARS 58
#define USER_START_MARGIN 72
/* Loading and reading are told in words only when they take longer, so that quick work does not flash. */
#define PATIENCE_MS 1000
/* An update that took long waits for so many times its duration until the next, so that the window stays free. */
#define REST_FACTOR 4

struct _OxMessageView {
  GtkWidget parent_instance;

  GtkWidget *thinking_box;
  GtkToggleButton *thinking_button;
  GtkLabel *thinking_label;
  GtkImage *thinking_arrow;
  AdwBin *thinking_bin;
  AdwBin *text_bin;
  GtkWidget *busy_box;
  GtkLabel *busy_title;
  GtkLabel *busy_numbers;
  GtkProgressBar *busy_bar;
  GtkWidget *stopped_box;
  GtkLabel *stopped_label;
  GtkWidget *continue_button;
  AdwBin *error_bin;
  GtkWidget *action_row;
  GtkWidget *copy_button;
  GtkWidget *regenerate_button;
  GtkLabel *statistics_label;

  OxMessage *message;
  OxMarkdownView *text_view;
  OxMarkdownView *thinking_view;
  gboolean last;
  gboolean show_statistics;
  gboolean announced_reading;

  OxMessageState phase;
  gint64 phase_start;
  guint patience_id;
  guint text_id;
  gint64 text_not_before;
};

G_DEFINE_FINAL_TYPE (OxMessageView, ox_message_view, GTK_TYPE_WIDGET)

enum { RETRY, CONTINUE, N_SIGNALS };

static guint signals[N_SIGNALS];

static void
announce (OxMessageView *self, const char *text)
{
  if (gtk_widget_get_mapped (GTK_WIDGET (self)))
    gtk_accessible_announce (GTK_ACCESSIBLE (self), text, GTK_ACCESSIBLE_ANNOUNCEMENT_PRIORITY_MEDIUM);
}

static void
regenerate_cb (OxMessageView *self)
{
  g_signal_emit (self, signals[RETRY], 0);
}

static void
continue_cb (OxMessageView *self)
{
  g_signal_emit (self, signals[CONTINUE], 0);
}

static void
thinking_toggled_cb (OxMessageView *self)
{
  gboolean open = gtk_toggle_button_get_active (self->thinking_button);
  gtk_image_set_from_icon_name (self->thinking_arrow, open ? "pan-down-symbolic" : "go-next-symbolic");
  gtk_accessible_update_state (GTK_ACCESSIBLE (self->thinking_button), GTK_ACCESSIBLE_STATE_EXPANDED, open, -1);
}

/* Text */

static void
show_text (OxMessageView *self)
{
  gboolean live = ox_message_is_live (self->message);
  const char *thinking = ox_message_get_thinking (self->message);

  ox_markdown_view_set_text (self->text_view, ox_message_get_text (self->message), live);
  gtk_widget_set_visible (GTK_WIDGET (self->text_bin), ox_message_get_text_length (self->message) > 0);

  gboolean has_thinking = thinking != NULL && thinking[0] != '\0';
  gtk_widget_set_visible (self->thinking_box, has_thinking);
  if (has_thinking) {
    if (self->thinking_view == NULL) {
      self->thinking_view = OX_MARKDOWN_VIEW (ox_markdown_view_new (FALSE, -1));
      adw_bin_set_child (self->thinking_bin, GTK_WIDGET (self->thinking_view));
    }
    gtk_label_set_label (self->thinking_label,
                         live && ox_message_get_text_length (self->message) == 0 ? _ ("Thinking…") : _ ("Thought"));
    ox_markdown_view_set_text (self->thinking_view, thinking, live);
  }
}

static gboolean
text_cb (gpointer user_data)
{
  OxMessageView *self = user_data;
  self->text_id = 0;
  gint64 start = g_get_monotonic_time ();
  show_text (self);
  gint64 end = g_get_monotonic_time ();
  self->text_not_before = end + REST_FACTOR * (end - start);
  return G_SOURCE_REMOVE;
}

/* Text comes at most once a frame; a text that is dear to show comes more rarely. */
static void
text_changed_cb (OxMessageView *self)
{
  if (self->text_id != 0)
    return;
  gint64 wait = self->text_not_before - g_get_monotonic_time ();
  if (wait <= 0)
    text_cb (self);
  else
    self->text_id = g_timeout_add ((guint) (wait / 1000) + 1, text_cb, self);
}

/* What is being done */

static char *
dup_reading_numbers (OxMessageView *self, double *fraction)
{
  guint done, total;
  double seconds = (double) (ox_clock_now () - self->phase_start) / G_USEC_PER_SEC;

  ox_message_get_prefill (self->message, &done, &total);
  *fraction = total > 0 ? (double) done / total : 0;
  if (total == 0)
    return g_strdup ("");
  if (done == 0 || done >= total || seconds < 1)
    /* Translators: tokens read of those in the message. */
    return g_strdup_printf (_ ("%'u of %'u tokens"), done, total);
  guint left = (guint) ceil (seconds * (total - done) / done);
  if (left < 90)
    /* Translators: tokens read, tokens in all, seconds. */
    return g_strdup_printf (_ ("%'u of %'u tokens · about %u s left"), done, total, left);
  /* Translators: tokens read, tokens in all, minutes. */
  return g_strdup_printf (_ ("%'u of %'u tokens · about %u min left"), done, total, (left + 30) / 60);
}

static void
show_busy (OxMessageView *self)
{
  OxMessageState state = ox_message_get_state (self->message);
  gboolean patient = ox_clock_now () - self->phase_start < (gint64) PATIENCE_MS * 1000;
  g_autofree char *title = NULL;
  g_autofree char *numbers = NULL;
  double fraction = -1;

  if (state == OX_MESSAGE_WRITING) {
    double rate = ox_message_get_decode_rate (self->message);
    /* Translators: speed of an answer in tokens per second. */
    title = rate > 0 ? g_strdup_printf (_ ("Writing · %.1f tok/s"), rate) : g_strdup (_ ("Writing"));
  } else if (patient) {
    title = g_strdup ("");
  } else if (state == OX_MESSAGE_LOADING) {
    const char *name = ox_message_get_model_name (self->message);
    title = name != NULL ? g_strdup_printf (_ ("Loading %s"), name) : g_strdup (_ ("Loading the model"));
    fraction = ox_message_get_load_progress (self->message);
    /* Translators: how much of a model is loaded, in percent. */
    numbers = g_strdup_printf (_ ("%d %%"), (int) (fraction * 100));
  } else if (state == OX_MESSAGE_READING) {
    title = g_strdup (_ ("Reading your message"));
    numbers = dup_reading_numbers (self, &fraction);
  } else {
    title = g_strdup (_ ("Waiting for another answer to end"));
  }

  gboolean writing = state == OX_MESSAGE_WRITING;
  gtk_label_set_label (self->busy_title, title);
  gtk_label_set_label (self->busy_numbers, numbers != NULL ? numbers : "");
  gtk_widget_set_visible (GTK_WIDGET (self->busy_bar), fraction >= 0);
  if (fraction >= 0) {
    gtk_progress_bar_set_fraction (self->busy_bar, CLAMP (fraction, 0, 1));
    gtk_accessible_update_property (GTK_ACCESSIBLE (self->busy_bar), GTK_ACCESSIBLE_PROPERTY_LABEL, title,
                                    GTK_ACCESSIBLE_PROPERTY_VALUE_TEXT, numbers, -1);
  }
  const char *const small[] = { "caption", "dimmed", "numeric", NULL };
  const char *const large[] = { "heading", NULL };
  gtk_widget_set_css_classes (GTK_WIDGET (self->busy_title), (const char **) (writing ? small : large));
}

static gboolean
patience_cb (gpointer user_data)
{
  OxMessageView *self = user_data;
  self->patience_id = 0;
  show_busy (self);
  if (self->phase == OX_MESSAGE_READING && !self->announced_reading) {
    self->announced_reading = TRUE;
    announce (self, _ ("Reading"));
  }
  return G_SOURCE_REMOVE;
}

static void
progress_cb (OxMessageView *self)
{
  if (ox_message_is_live (self->message))
    show_busy (self);
}

/* What came of it */

static void
retry_cb (OxMessageView *self)
{
  g_signal_emit (self, signals[RETRY], 0);
}

static void
show_error (OxMessageView *self)
{
  const char *error = ox_message_get_error (self->message);
  const char *details = ox_message_get_error_details (self->message);
  OxErrorCard *card = OX_ERROR_CARD (ox_error_card_new ());
  const char *title;

  switch (ox_message_get_error_code (self->message)) {
  case OX_ERROR_NO_MEMORY:
    title = _ ("No answer: not enough memory");
    break;
  case OX_ERROR_DAMAGED:
    title = _ ("No answer: the model is damaged");
    break;
  case OX_ERROR_UNSUPPORTED:
    title = _ ("No answer: this model is not supported");
    break;
  case OX_ERROR_NOT_FOUND:
  case OX_ERROR_IO:
    title = _ ("No answer: the model cannot be read");
    break;
  case OX_ERROR_CONTEXT_FULL:
    title = _ ("No answer: the conversation is full");
    break;
  default:
    title = _ ("No answer");
    break;
  }
  ox_error_card_set_error (card, title, error != NULL ? error : _ ("Something went wrong. Your message is saved."),
                           details);
  g_signal_connect_object (card, "retry", G_CALLBACK (retry_cb), self, G_CONNECT_SWAPPED);
  adw_bin_set_child (self->error_bin, GTK_WIDGET (card));
}

static void
show_statistics (OxMessageView *self)
{
  const OxStatistics *statistics = ox_message_get_statistics (self->message);
  guint tokens = statistics->answer_tokens;
  double rate = ox_statistics_get_decode_rate (statistics);
  double first = statistics->first_token_seconds;

  if (!self->show_statistics || tokens == 0) {
    gtk_label_set_label (self->statistics_label, "");
    return;
  }
  g_autofree char *count = g_strdup_printf (ngettext ("%u token", "%u tokens", tokens), tokens);
  g_autofree char *text = NULL;
  if (rate > 0)
    /* Translators: tokens per second, seconds, "412 tokens" */
    text = g_strdup_printf (_ ("%.1f tok/s · first token %.1f s · %s"), rate, first, count);
  gtk_label_set_label (self->statistics_label, text != NULL ? text : count);
}

static void
show_stopped (OxMessageView *self)
{
  OxMessageState state = ox_message_get_state (self->message);
  guint tokens = ox_message_get_statistics (self->message)->answer_tokens;
  gboolean has_text = ox_message_get_text_length (self->message) > 0;
  g_autofree char *text = NULL;
  gboolean can_continue = has_text && self->last;

  if (state == OX_MESSAGE_STOPPED && tokens > 0) {
    text =
      g_strdup_printf (ngettext ("Stopped by you after %u token", "Stopped by you after %u tokens", tokens), tokens);
  } else if (state == OX_MESSAGE_STOPPED) {
    text = g_strdup (_ ("Stopped by you"));
  } else if (state == OX_MESSAGE_INTERRUPTED) {
    text = g_strdup (_ ("Interrupted when Oxinfer closed"));
  } else if (state == OX_MESSAGE_COMPLETE && ox_message_get_end_reason (self->message) == OX_END_LENGTH) {
    text = g_strdup (_ ("Cut off at the answer limit"));
  } else if (state == OX_MESSAGE_COMPLETE && ox_message_get_end_reason (self->message) == OX_END_CONTEXT) {
    text = g_strdup (_ ("Cut off: the conversation is full. A new chat has room again."));
    can_continue = FALSE;
  }
  gtk_widget_set_visible (self->stopped_box, text != NULL);
  gtk_widget_set_visible (self->continue_button, can_continue);
  gtk_label_set_label (self->stopped_label, text != NULL ? text : "");
}

static void
state_changed_cb (OxMessageView *self)
{
  OxMessageState state = ox_message_get_state (self->message);
  gboolean user = ox_message_get_role (self->message) == OX_ROLE_USER;
  gboolean live = ox_message_is_live (self->message);

  if (state != self->phase) {
    self->phase = state;
    self->phase_start = ox_clock_now ();
    g_clear_handle_id (&self->patience_id, g_source_remove);
    if (live && state != OX_MESSAGE_WRITING)
      self->patience_id = g_timeout_add (PATIENCE_MS + 1, patience_cb, self);
  }

  gtk_widget_set_visible (self->busy_box, live);
  if (live)
    show_busy (self);
  gtk_accessible_update_state (GTK_ACCESSIBLE (self), GTK_ACCESSIBLE_STATE_BUSY, live, -1);

  if (user || live) {
    gtk_widget_set_visible (self->stopped_box, FALSE);
    gtk_widget_set_visible (GTK_WIDGET (self->error_bin), FALSE);
    gtk_widget_set_visible (self->action_row, FALSE);
    return;
  }
  show_stopped (self);
  gboolean failed = state == OX_MESSAGE_FAILED;
  if (failed)
    show_error (self);
  gtk_widget_set_visible (GTK_WIDGET (self->error_bin), failed);
  gtk_widget_set_visible (self->action_row, !failed);
  gtk_widget_set_visible (self->copy_button, ox_message_get_text_length (self->message) > 0);
  show_statistics (self);
}

/* The first sentence, for those who listen and want to know what kind of an answer came. */
static char *
dup_first_sentence (const char *text)
{
  const char *end = text;
  while (*end != '\0' && *end != '\n' && end - text < 200) {
    gboolean stop = strchr (".!?", *end) != NULL;
    end = g_utf8_next_char (end);
    if (stop && (*end == ' ' || *end == '\n' || *end == '\0'))
      break;
  }
  return g_strndup (text, end - text);
}

static void
finished_cb (OxMessageView *self)
{
  OxMessageState state = ox_message_get_state (self->message);

  g_clear_handle_id (&self->text_id, g_source_remove);
  show_text (self);
  state_changed_cb (self);

  if (state == OX_MESSAGE_COMPLETE) {
    guint tokens = ox_message_get_statistics (self->message)->answer_tokens;
    g_autofree char *sentence = dup_first_sentence (ox_message_get_text (self->message));
    g_autofree char *text = g_strdup_printf (
      ngettext ("%s Answer complete, %u token", "%s Answer complete, %u tokens", tokens), sentence, tokens);
    announce (self, text);
  } else if (state == OX_MESSAGE_STOPPED) {
    announce (self, _ ("Stopped"));
  } else if (state == OX_MESSAGE_FAILED && gtk_widget_get_mapped (GTK_WIDGET (self))) {
    OxErrorCard *card = OX_ERROR_CARD (adw_bin_get_child (self->error_bin));
    gtk_accessible_announce (GTK_ACCESSIBLE (self), ox_error_card_get_title (card),
                             GTK_ACCESSIBLE_ANNOUNCEMENT_PRIORITY_HIGH);
  }
}

static void
set_name (OxMessageView *self)
{
  gint64 created = ox_message_get_created (self->message);
  g_autoptr (GDateTime) utc = g_date_time_new_from_unix_utc_usec (created);
  g_autoptr (GDateTime) local = utc != NULL ? g_date_time_to_local (utc) : NULL;
  g_autofree char *time = local != NULL ? g_date_time_format (local, "%R") : g_strdup ("");
  const char *who;

  if (ox_message_get_role (self->message) == OX_ROLE_USER)
    who = _ ("You");
  else
    who = ox_message_get_model_name (self->message) != NULL ? ox_message_get_model_name (self->message) : _ ("Answer");
  /* Translators: name of a message for screen readers: who wrote it, and when. */
  g_autofree char *name = g_strdup_printf (_ ("%s, %s"), who, time);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self), GTK_ACCESSIBLE_PROPERTY_LABEL, name, -1);
}

static void
ox_message_view_dispose (GObject *object)
{
  OxMessageView *self = OX_MESSAGE_VIEW (object);

  g_clear_handle_id (&self->patience_id, g_source_remove);
  g_clear_handle_id (&self->text_id, g_source_remove);
  if (self->message != NULL)
    g_signal_handlers_disconnect_by_data (self->message, self);
  g_clear_object (&self->message);
  ox_widget_dispose_children (GTK_WIDGET (object), OX_TYPE_MESSAGE_VIEW);
  G_OBJECT_CLASS (ox_message_view_parent_class)->dispose (object);
}

static void
ox_message_view_class_init (OxMessageViewClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);

  G_OBJECT_CLASS (klass)->dispose = ox_message_view_dispose;

  /**
   * OxMessageView::retry:
   *
   * Another answer is wanted in place of this one.
   */
  signals[RETRY] = g_signal_new ("retry", OX_TYPE_MESSAGE_VIEW, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
  /**
   * OxMessageView::continue:
   *
   * This answer is to go on where it stopped.
   */
  signals[CONTINUE] =
    g_signal_new ("continue", OX_TYPE_MESSAGE_VIEW, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);

  gtk_widget_class_set_template_from_resource (widget_class, "/org/oxinfer/App/ui/ox-message-view.ui");
  gtk_widget_class_bind_template_child (widget_class, OxMessageView, thinking_box);
  gtk_widget_class_bind_template_child (widget_class, OxMessageView, thinking_button);
  gtk_widget_class_bind_template_child (widget_class, OxMessageView, thinking_label);
  gtk_widget_class_bind_template_child (widget_class, OxMessageView, thinking_arrow);
  gtk_widget_class_bind_template_child (widget_class, OxMessageView, thinking_bin);
  gtk_widget_class_bind_template_child (widget_class, OxMessageView, text_bin);
  gtk_widget_class_bind_template_child (widget_class, OxMessageView, busy_box);
  gtk_widget_class_bind_template_child (widget_class, OxMessageView, busy_title);
  gtk_widget_class_bind_template_child (widget_class, OxMessageView, busy_numbers);
  gtk_widget_class_bind_template_child (widget_class, OxMessageView, busy_bar);
  gtk_widget_class_bind_template_child (widget_class, OxMessageView, stopped_box);
  gtk_widget_class_bind_template_child (widget_class, OxMessageView, stopped_label);
  gtk_widget_class_bind_template_child (widget_class, OxMessageView, continue_button);
  gtk_widget_class_bind_template_child (widget_class, OxMessageView, error_bin);
  gtk_widget_class_bind_template_child (widget_class, OxMessageView, action_row);
  gtk_widget_class_bind_template_child (widget_class, OxMessageView, copy_button);
  gtk_widget_class_bind_template_child (widget_class, OxMessageView, regenerate_button);
  gtk_widget_class_bind_template_child (widget_class, OxMessageView, statistics_label);
  gtk_widget_class_bind_template_callback (widget_class, thinking_toggled_cb);
  gtk_widget_class_bind_template_callback (widget_class, ox_message_view_copy);
  gtk_widget_class_bind_template_callback (widget_class, regenerate_cb);
  gtk_widget_class_bind_template_callback (widget_class, continue_cb);
}

static void
ox_message_view_init (OxMessageView *self)
{
  self->show_statistics = TRUE;
  self->phase = OX_MESSAGE_COMPLETE;
  gtk_widget_init_template (GTK_WIDGET (self));
}

/**
 * ox_message_view_new:
 * @message: a message, which may still be written
 *
 * Returns: a view that follows @message
 */
GtkWidget *
ox_message_view_new (OxMessage *message)
{
  OxMessageView *self = g_object_new (OX_TYPE_MESSAGE_VIEW, NULL);
  gboolean user = ox_message_get_role (message) == OX_ROLE_USER;

  self->message = g_object_ref (message);
  self->text_view = OX_MARKDOWN_VIEW (ox_markdown_view_new (user, user ? USER_WIDTH_CHARS : -1));
  adw_bin_set_child (self->text_bin, GTK_WIDGET (self->text_view));
  if (user) {
    gtk_widget_add_css_class (GTK_WIDGET (self->text_bin), "ox-user-bubble");
    gtk_widget_set_halign (GTK_WIDGET (self->text_bin), GTK_ALIGN_END);
    gtk_widget_set_margin_start (GTK_WIDGET (self->text_bin), USER_START_MARGIN);
  }

  g_signal_connect_swapped (message, "notify::text", G_CALLBACK (text_changed_cb), self);
  g_signal_connect_swapped (message, "notify::thinking", G_CALLBACK (text_changed_cb), self);
  g_signal_connect_swapped (message, "notify::state", G_CALLBACK (state_changed_cb), self);
  g_signal_connect_swapped (message, "notify::load-progress", G_CALLBACK (progress_cb), self);
  g_signal_connect_swapped (message, "notify::prefill-done", G_CALLBACK (progress_cb), self);
  g_signal_connect_swapped (message, "notify::decode-rate", G_CALLBACK (progress_cb), self);
  g_signal_connect_swapped (message, "notify::model-name", G_CALLBACK (set_name), self);
  g_signal_connect_swapped (message, "finished", G_CALLBACK (finished_cb), self);
  show_text (self);
  state_changed_cb (self);
  set_name (self);
  return GTK_WIDGET (self);
}

/**
 * ox_message_view_get_message:
 * @self: a view
 *
 * Returns: (transfer none): its message
 */
OxMessage *
ox_message_view_get_message (OxMessageView *self)
{
  return self->message;
}

/**
 * ox_message_view_set_last:
 * @self: a view
 * @last: whether no message follows, so that the answer can go on
 */
void
ox_message_view_set_last (OxMessageView *self, gboolean last)
{
  if (self->last == last)
    return;
  self->last = last;
  if (!ox_message_is_live (self->message) && ox_message_get_role (self->message) != OX_ROLE_USER)
    show_stopped (self);
}

/**
 * ox_message_view_set_narrow:
 * @self: a view
 * @narrow: whether there is little room: statistics go below the buttons, what a person wrote may take the whole width
 */
void
ox_message_view_set_narrow (OxMessageView *self, gboolean narrow)
{
  gtk_orientable_set_orientation (GTK_ORIENTABLE (self->action_row),
                                  narrow ? GTK_ORIENTATION_VERTICAL : GTK_ORIENTATION_HORIZONTAL);
  gtk_label_set_xalign (self->statistics_label, narrow ? 0 : 1);
  if (ox_message_get_role (self->message) == OX_ROLE_USER)
    gtk_widget_set_margin_start (GTK_WIDGET (self->text_bin), narrow ? 0 : USER_START_MARGIN);
}

/**
 * ox_message_view_set_show_statistics:
 * @self: a view
 * @show_statistics: whether speed and timing stand below an answer
 */
void
ox_message_view_set_show_statistics (OxMessageView *self, gboolean show)
{
  self->show_statistics = show;
  show_statistics (self);
}

/**
 * ox_message_view_is_settled:
 * @self: a view
 *
 * Returns: whether the view shows all that it is going to show of the message as it is now
 */
gboolean
ox_message_view_is_settled (OxMessageView *self)
{
  return self->text_id == 0 && ox_markdown_view_is_settled (self->text_view) &&
         (self->thinking_view == NULL || ox_markdown_view_is_settled (self->thinking_view));
}

/**
 * ox_message_view_copy:
 * @self: a view
 *
 * Puts the text, as Markdown, on the clipboard.
 */
void
ox_message_view_copy (OxMessageView *self)
{
  gdk_clipboard_set_text (gtk_widget_get_clipboard (GTK_WIDGET (self)), ox_message_get_text (self->message));
  gtk_widget_activate_action (GTK_WIDGET (self), "win.toast", "s", _ ("Copied"));
}
