/* One message: what a person wrote, or an answer with all that belongs to it.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-message-view.h"

#include "ox-disclosure.h"
#include "ox-error-card.h"
#include "ox-markdown-view.h"
#include "ox-tool-row.h"
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
/* Seconds of thinking are told so often. */
#define TICK_MS 500

struct _OxMessageView {
  GtkWidget parent_instance;

  GtkWidget *dropped_box;
  GtkLabel *dropped_label;
  GtkBox *steps_box;
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
  OxDisclosure *thinking_row;    /* once there is thinking, as most messages have none */
  OxMarkdownView *thinking_view; /* once the row has been opened */
  GPtrArray *tool_rows;          /* OxDisclosure, of the calls in turn */
  guint tick_id;
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

/* What was done before the text */

static char *
dup_thinking_title (OxMessageView *self)
{
  double seconds = ox_message_get_thinking_seconds (self->message);
  guint whole = (guint) CLAMP (round (seconds), 1, G_MAXINT);

  if (ox_message_is_thinking (self->message))
    /* Translators: seconds. */
    return g_strdup_printf (_ ("Thinking… %u s"), (guint) seconds);
  if (seconds <= 0)
    return g_strdup (_ ("Thought"));
  if (whole < 120)
    /* Translators: seconds. */
    return g_strdup_printf (_ ("Thought for %u s"), whole);
  /* Translators: minutes. */
  return g_strdup_printf (_ ("Thought for %u min"), (whole + 30) / 60);
}

static gboolean
tick_cb (gpointer user_data)
{
  OxMessageView *self = user_data;
  g_autofree char *title = dup_thinking_title (self);
  ox_disclosure_set_running_title (self->thinking_row, title);
  return G_SOURCE_CONTINUE;
}

/* The thoughts themselves are laid out only for those who want to see them. */
static void
show_thoughts (OxMessageView *self)
{
  if (!ox_disclosure_get_open (self->thinking_row))
    return;
  if (self->thinking_view == NULL) {
    GtkWidget *box = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 12);
    GtkWidget *rule = gtk_separator_new (GTK_ORIENTATION_VERTICAL);
    self->thinking_view = OX_MARKDOWN_VIEW (ox_markdown_view_new (FALSE, -1));
    gtk_widget_add_css_class (rule, "ox-rule");
    gtk_widget_set_margin_start (box, 8);
    gtk_widget_set_hexpand (GTK_WIDGET (self->thinking_view), TRUE);
    gtk_widget_add_css_class (GTK_WIDGET (self->thinking_view), "dimmed");
    gtk_box_append (GTK_BOX (box), rule);
    gtk_box_append (GTK_BOX (box), GTK_WIDGET (self->thinking_view));
    ox_disclosure_set_child (self->thinking_row, box);
  }
  ox_markdown_view_set_text (self->thinking_view, ox_message_get_thinking (self->message),
                             ox_message_is_live (self->message));
}

static void
show_thinking (OxMessageView *self)
{
  const char *thinking = ox_message_get_thinking (self->message);
  gboolean active = ox_message_is_thinking (self->message);
  g_autofree char *title = NULL;

  if (thinking[0] == '\0')
    return;
  if (self->thinking_row == NULL) {
    self->thinking_row = OX_DISCLOSURE (ox_disclosure_new ());
    ox_disclosure_set_icon_name (self->thinking_row, "ox-think-symbolic");
    g_signal_connect_object (self->thinking_row, "notify::open", G_CALLBACK (show_thoughts), self, G_CONNECT_SWAPPED);
    gtk_box_prepend (self->steps_box, GTK_WIDGET (self->thinking_row));
  }
  title = dup_thinking_title (self);
  gtk_widget_set_visible (GTK_WIDGET (self->steps_box), TRUE);
  ox_disclosure_set_busy (self->thinking_row, active);
  if (!active) {
    g_clear_handle_id (&self->tick_id, g_source_remove);
    ox_disclosure_set_title (self->thinking_row, title, NULL);
  } else if (self->tick_id == 0) {
    self->tick_id = g_timeout_add (TICK_MS, tick_cb, self);
    ox_disclosure_set_title (self->thinking_row, _ ("Thinking"), NULL);
    ox_disclosure_set_running_title (self->thinking_row, title);
    announce (self, _ ("Thinking"));
  }
  show_thoughts (self);
}

static void
show_tool (OxMessageView *self, guint index)
{
  gboolean live = ox_message_is_live (self->message);

  while (self->tool_rows->len <= index) {
    GtkWidget *row = ox_tool_row_new ();
    gtk_box_append (self->steps_box, row);
    g_ptr_array_add (self->tool_rows, row);
  }
  ox_tool_row_update (self->tool_rows->pdata[index], ox_message_get_tool (self->message, index), live);
  gtk_widget_set_visible (GTK_WIDGET (self->steps_box), TRUE);
}

static void
show_tools (OxMessageView *self)
{
  for (guint i = 0; i < ox_message_get_n_tools (self->message); i++)
    show_tool (self, i);
}

static void show_busy (OxMessageView *self);

static void
tool_changed_cb (OxMessageView *self, guint index)
{
  const OxToolEntry *entry = ox_message_get_tool (self->message, index);

  show_tool (self, index);
  if (entry->result == NULL)
    announce (self, ox_disclosure_get_title (self->tool_rows->pdata[index]));
  if (ox_message_is_live (self->message))
    show_busy (self);
}

static void
thinking_time_cb (OxMessageView *self)
{
  show_thinking (self);
  if (ox_message_is_live (self->message))
    show_busy (self);
}

static void
show_dropped (OxMessageView *self)
{
  guint n = ox_message_get_dropped_messages (self->message);
  g_autofree char *text =
    g_strdup_printf (ngettext ("The oldest message was left out", "The %u oldest messages were left out", n), n);

  gtk_widget_set_visible (self->dropped_box, n > 0);
  gtk_label_set_label (self->dropped_label, text);
}

/* Text */

static void
show_text (OxMessageView *self)
{
  ox_markdown_view_set_text (self->text_view, ox_message_get_text (self->message), ox_message_is_live (self->message));
  gtk_widget_set_visible (GTK_WIDGET (self->text_bin), ox_message_get_text_length (self->message) > 0);
  show_thinking (self);
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

  /* While it thinks or a tool runs, the row of that says so. */
  guint n_tools = ox_message_get_n_tools (self->message);
  gboolean running = n_tools > 0 && !ox_message_get_tool (self->message, n_tools - 1)->failed &&
                     ox_message_get_tool (self->message, n_tools - 1)->result == NULL;
  gtk_widget_set_visible (self->busy_box, !running && !ox_message_is_thinking (self->message));

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
    title = g_strdup (n_tools > 0 ? _ ("Reading the results") : _ ("Reading your message"));
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

  gtk_widget_set_tooltip_text (GTK_WIDGET (self->statistics_label), NULL);
  if (!self->show_statistics || tokens == 0) {
    gtk_label_set_label (self->statistics_label, "");
    return;
  }
  if (statistics->drafted_tokens > 0) {
    /* Translators: of the tokens of an answer, those that were guessed ahead and found right. */
    g_autofree char *guessed =
      g_strdup_printf (_ ("%u of %u tokens were guessed ahead"), MIN (statistics->accepted_tokens, tokens), tokens);
    gtk_widget_set_tooltip_text (GTK_WIDGET (self->statistics_label), guessed);
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
  } else if (state == OX_MESSAGE_COMPLETE && ox_message_get_end_reason (self->message) == OX_END_TOOL_ROUNDS) {
    text = g_strdup (_ ("Ended: the model kept asking for tools"));
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
  show_thinking (self);
  show_tools (self);
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
  g_clear_handle_id (&self->tick_id, g_source_remove);
  if (self->message != NULL)
    g_signal_handlers_disconnect_by_data (self->message, self);
  g_clear_object (&self->message);
  ox_widget_dispose_children (GTK_WIDGET (object), OX_TYPE_MESSAGE_VIEW);
  G_OBJECT_CLASS (ox_message_view_parent_class)->dispose (object);
}

static void
ox_message_view_finalize (GObject *object)
{
  g_ptr_array_unref (OX_MESSAGE_VIEW (object)->tool_rows);
  G_OBJECT_CLASS (ox_message_view_parent_class)->finalize (object);
}

static void
ox_message_view_class_init (OxMessageViewClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);

  G_OBJECT_CLASS (klass)->dispose = ox_message_view_dispose;
  G_OBJECT_CLASS (klass)->finalize = ox_message_view_finalize;

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
  gtk_widget_class_bind_template_child (widget_class, OxMessageView, steps_box);
  gtk_widget_class_bind_template_child (widget_class, OxMessageView, dropped_box);
  gtk_widget_class_bind_template_child (widget_class, OxMessageView, dropped_label);
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
  gtk_widget_class_bind_template_callback (widget_class, ox_message_view_copy);
  gtk_widget_class_bind_template_callback (widget_class, regenerate_cb);
  gtk_widget_class_bind_template_callback (widget_class, continue_cb);
}

static void
ox_message_view_init (OxMessageView *self)
{
  self->show_statistics = TRUE;
  self->phase = OX_MESSAGE_COMPLETE;
  self->tool_rows = g_ptr_array_new ();
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
  g_signal_connect_swapped (message, "notify::thinking-seconds", G_CALLBACK (thinking_time_cb), self);
  g_signal_connect_swapped (message, "notify::dropped-messages", G_CALLBACK (show_dropped), self);
  g_signal_connect_swapped (message, "tool-changed", G_CALLBACK (tool_changed_cb), self);
  g_signal_connect_swapped (message, "notify::state", G_CALLBACK (state_changed_cb), self);
  g_signal_connect_swapped (message, "notify::load-progress", G_CALLBACK (progress_cb), self);
  g_signal_connect_swapped (message, "notify::prefill-done", G_CALLBACK (progress_cb), self);
  g_signal_connect_swapped (message, "notify::decode-rate", G_CALLBACK (progress_cb), self);
  g_signal_connect_swapped (message, "notify::model-name", G_CALLBACK (set_name), self);
  g_signal_connect_swapped (message, "finished", G_CALLBACK (finished_cb), self);
  show_text (self);
  show_dropped (self);
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
