/* Widgets that stand alone: the composer's keys, Markdown as it is written, code, scrolling.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "gui-test.h"

#include "ox-code-block.h"
#include "ox-composer.h"
#include "ox-disclosure.h"
#include "ox-markdown-view.h"
#include "ox-message-view.h"
#include "ox-scroll-follow.h"
#include "ox-tool-row.h"

#include <string.h>

static void
count_cb (guint *n)
{
  ++*n;
}

/* Composer */

typedef struct {
  GtkWindow *window;
  OxComposer *composer;
  guint sent;
  guint stopped;
} ComposerTest;

static void
composer_set_up (ComposerTest *test, gconstpointer data)
{
  test->window = GTK_WINDOW (gtk_window_new ());
  test->composer = OX_COMPOSER (ox_composer_new ());
  gtk_window_set_child (test->window, GTK_WIDGET (test->composer));
  ox_composer_set_can_send (test->composer, TRUE);
  g_signal_connect_swapped (test->composer, "send", G_CALLBACK (count_cb), &test->sent);
  g_signal_connect_swapped (test->composer, "stop", G_CALLBACK (count_cb), &test->stopped);
  gtk_window_present (test->window);
  gui_test_wait (gtk_widget_get_mapped (GTK_WIDGET (test->composer)), 5);
}

static void
composer_tear_down (ComposerTest *test, gconstpointer data)
{
  gtk_window_destroy (test->window);
}

static gboolean
press (ComposerTest *test, guint keyval, GdkModifierType state)
{
  return ox_composer_handle_key (test->composer, keyval, state);
}

static void
test_composer_keys (ComposerTest *test, gconstpointer data)
{
  /* Nothing to send. */
  g_assert_true (press (test, GDK_KEY_Return, 0));
  g_assert_cmpuint (test->sent, ==, 0);
  ox_composer_set_text (test->composer, "  \n ");
  press (test, GDK_KEY_Return, 0);
  g_assert_cmpuint (test->sent, ==, 0);

  ox_composer_set_text (test->composer, "hello");
  g_assert_false (press (test, GDK_KEY_Return, GDK_SHIFT_MASK));
  g_assert_false (press (test, GDK_KEY_a, 0));
  g_assert_false (press (test, GDK_KEY_Tab, 0));
  g_assert_false (press (test, GDK_KEY_Escape, 0));
  g_assert_cmpuint (test->sent, ==, 0);
  g_assert_true (press (test, GDK_KEY_Return, 0));
  g_assert_true (press (test, GDK_KEY_KP_Enter, 0));
  g_assert_true (press (test, GDK_KEY_Return, GDK_CONTROL_MASK));
  g_assert_cmpuint (test->sent, ==, 3);

  ox_composer_set_enter_sends (test->composer, FALSE);
  g_assert_false (press (test, GDK_KEY_Return, 0));
  g_assert_true (press (test, GDK_KEY_Return, GDK_CONTROL_MASK));
  g_assert_cmpuint (test->sent, ==, 4);

  ox_composer_set_can_send (test->composer, FALSE);
  press (test, GDK_KEY_Return, GDK_CONTROL_MASK);
  g_assert_cmpuint (test->sent, ==, 4);
}

static void
test_composer_busy (ComposerTest *test, gconstpointer data)
{
  GtkWidget *button = gui_test_find (GTK_WIDGET (test->composer), GTK_TYPE_BUTTON, "tooltip-text", "Send");
  g_assert_nonnull (button);
  g_assert_false (gtk_widget_get_sensitive (button));
  ox_composer_set_text (test->composer, "next question");
  g_assert_true (gtk_widget_get_sensitive (button));

  /* One button, which stops now; the text stays. */
  ox_composer_set_busy (test->composer, TRUE);
  gtk_test_accessible_assert_property (GTK_ACCESSIBLE (button), GTK_ACCESSIBLE_PROPERTY_LABEL, "Stop");
  g_assert_true (gtk_widget_get_sensitive (button));
  ox_composer_activate (test->composer);
  g_assert_true (press (test, GDK_KEY_Escape, 0));
  g_assert_cmpuint (test->stopped, ==, 2);
  g_assert_cmpuint (test->sent, ==, 0);
  g_autofree char *text = ox_composer_dup_text (test->composer);
  g_assert_cmpstr (text, ==, "next question");

  /* Enter has the message wait, and it is sent once. */
  press (test, GDK_KEY_Return, 0);
  press (test, GDK_KEY_Return, 0);
  g_assert_cmpuint (test->sent, ==, 0);
  ox_composer_set_busy (test->composer, FALSE);
  gui_test_run_for (50);
  g_assert_cmpuint (test->sent, ==, 1);
  gtk_test_accessible_assert_property (GTK_ACCESSIBLE (button), GTK_ACCESSIBLE_PROPERTY_LABEL, "Send");

  /* Waiting can be taken back. */
  ox_composer_set_busy (test->composer, TRUE);
  press (test, GDK_KEY_Return, 0);
  ox_composer_unqueue (test->composer);
  ox_composer_set_busy (test->composer, FALSE);
  gui_test_run_for (50);
  g_assert_cmpuint (test->sent, ==, 1);
}

static int
height_of (ComposerTest *test)
{
  int natural;
  gtk_widget_measure (GTK_WIDGET (test->composer), GTK_ORIENTATION_VERTICAL, 400, NULL, &natural, NULL, NULL);
  return natural;
}

static void
test_composer_grows (ComposerTest *test, gconstpointer data)
{
  int one = height_of (test);
  ox_composer_set_text (test->composer, "1\n2\n3\n4");
  gui_test_run_for (100);
  int four = height_of (test);
  ox_composer_set_text (test->composer, "1\n2\n3\n4\n5\n6\n7\n8");
  gui_test_run_for (100);
  int eight = height_of (test);
  ox_composer_set_text (test->composer, "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17\n18");
  gui_test_run_for (100);
  int more = height_of (test);
  g_test_message ("heights: %d %d %d %d", one, four, eight, more);
  g_assert_cmpint (four, >, one);
  g_assert_cmpint (eight, >, four);
  /* Eight lines is the end, give or take the room of one. */
  g_assert_cmpint (more - eight, <, (eight - four) / 4 + 8);
}

static void
test_composer_usage (ComposerTest *test, gconstpointer data)
{
  GtkWidget *ring = gui_test_find (GTK_WIDGET (test->composer), GTK_TYPE_MENU_BUTTON, NULL, NULL);
  OxContextUse use = { .prompt_tokens = 983, .context_length = 8192 };

  ox_composer_set_usage (test->composer, NULL, FALSE);
  g_assert_false (gtk_widget_get_visible (ring));
  ox_composer_set_usage (test->composer, &use, FALSE);
  g_assert_true (gtk_widget_get_visible (ring));
  gtk_test_accessible_assert_property (GTK_ACCESSIBLE (ring), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                       "12 percent of the conversation length used");
  g_assert_false (gtk_widget_has_css_class (ring, "warning"));
  use.prompt_tokens = 6600;
  ox_composer_set_usage (test->composer, &use, FALSE);
  g_assert_true (gtk_widget_has_css_class (ring, "warning"));
}

static void
get_drop_cb (int *value, gboolean drop)
{
  *value = drop;
}

/* Full: what to do is offered, and goes away with it. */
static void
test_composer_full (ComposerTest *test, gconstpointer data)
{
  GtkWidget *shorten = gui_test_find (GTK_WIDGET (test->composer), GTK_TYPE_BUTTON, "label", "Leave Out _Oldest");
  GtkWidget *revealer = gtk_widget_get_ancestor (shorten, GTK_TYPE_REVEALER);
  OxContextUse use = { .prompt_tokens = 8191, .context_length = 8192 };
  int drop = -1;

  g_signal_connect_swapped (test->composer, "drop-oldest-toggled", G_CALLBACK (get_drop_cb), &drop);
  ox_composer_set_usage (test->composer, &use, FALSE);
  g_assert_false (gtk_revealer_get_reveal_child (GTK_REVEALER (revealer)));
  use.prompt_tokens = 9000;
  ox_composer_set_usage (test->composer, &use, FALSE);
  g_assert_true (gtk_revealer_get_reveal_child (GTK_REVEALER (revealer)));
  g_assert_nonnull (
    gui_test_find (GTK_WIDGET (test->composer), GTK_TYPE_LABEL, "label", "This chat is full: 9000 of 8192 tokens"));
  g_assert_cmpint (drop, ==, -1);
  g_signal_emit_by_name (shorten, "clicked");
  g_assert_cmpint (drop, ==, TRUE);

  use.dropped_messages = 3;
  use.dropped_tokens = 4000;
  ox_composer_set_usage (test->composer, &use, TRUE);
  g_assert_false (gtk_revealer_get_reveal_child (GTK_REVEALER (revealer)));
  GtkWidget *ring = gui_test_find (GTK_WIDGET (test->composer), GTK_TYPE_MENU_BUTTON, NULL, NULL);
  gtk_test_accessible_assert_property (GTK_ACCESSIBLE (ring), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                       "61 percent of the conversation length used");
  GtkWidget *check = gui_test_find (GTK_WIDGET (gtk_menu_button_get_popover (GTK_MENU_BUTTON (ring))),
                                    GTK_TYPE_CHECK_BUTTON, NULL, NULL);
  g_assert_true (gtk_check_button_get_active (GTK_CHECK_BUTTON (check)));
  gtk_check_button_set_active (GTK_CHECK_BUTTON (check), FALSE);
  g_assert_cmpint (drop, ==, FALSE);
}

static void
test_composer_think (ComposerTest *test, gconstpointer data)
{
  GtkWidget *button = gui_test_find (GTK_WIDGET (test->composer), GTK_TYPE_TOGGLE_BUTTON, "tooltip-text",
                                     "Have the model think before it answers");
  GtkWidget *label = gui_test_find (button, GTK_TYPE_LABEL, "label", "Think");
  int think = -1;

  g_signal_connect_swapped (test->composer, "think-toggled", G_CALLBACK (get_drop_cb), &think);
  g_assert_false (gtk_widget_get_visible (button));
  ox_composer_toggle_think (test->composer);
  g_assert_cmpint (think, ==, -1);
  ox_composer_set_think (test->composer, TRUE, FALSE);
  g_assert_true (gtk_widget_get_visible (button));
  gtk_test_accessible_assert_property (GTK_ACCESSIBLE (button), GTK_ACCESSIBLE_PROPERTY_LABEL, "Think");
  gtk_test_accessible_assert_state (GTK_ACCESSIBLE (button), GTK_ACCESSIBLE_STATE_PRESSED,
                                    GTK_ACCESSIBLE_TRISTATE_FALSE);
  g_assert_cmpint (think, ==, -1);
  ox_composer_toggle_think (test->composer);
  g_assert_cmpint (think, ==, TRUE);
  gtk_test_accessible_assert_state (GTK_ACCESSIBLE (button), GTK_ACCESSIBLE_STATE_PRESSED,
                                    GTK_ACCESSIBLE_TRISTATE_TRUE);
  g_assert_true (gtk_widget_get_visible (label));
  ox_composer_set_narrow (test->composer, TRUE);
  g_assert_false (gtk_widget_get_visible (label));
}

/* Messages */

static OxToolEntry
tool (const char *name, const char *arguments, const char *result, gboolean failed)
{
  return (OxToolEntry) { .id = (char *) "call_1",
                         .name = (char *) name,
                         .arguments = (char *) arguments,
                         .result = (char *) result,
                         .failed = failed };
}

static void
test_tool_rows (void)
{
  static const struct {
    const char *name;
    const char *arguments;
    const char *result;
    gboolean failed;
    const char *running;
    const char *title;
    const char *shown;
  } cases[] = {
    { "calculate", "{\"expression\":\"37*12\"}", "{\"result\":\"444\"}", FALSE, "Calculating 37 × 12",
      "Calculated 37 × 12", "calculate(expression=\"37*12\")" },
    { "get_date_time", "{}", "{\"weekday\":\"Monday\"}", FALSE, "Looking up the time", "Looked up the time",
      "weekday=\"Monday\"" },
    { "convert_units", "{\"value\":3,\"from\":\"ft\",\"to\":\"m\"}", "{\"result\":\"0.9144 m\"}", FALSE,
      "Converting units", "Converted units", "3 ft = 0.9144 m" },
    { "read_attachment", "{\"name\":\"notes.txt\"}", "1 one", FALSE, "Reading notes.txt", "Read notes.txt", "1 one" },
    { "fly", "{\"to\":\"Rome\"}", "done", FALSE, "Using fly", "Used fly", "fly(to=\"Rome\")" },
    { "fly", "{\"to\":\"Rome\"}", "no wings", TRUE, "Using fly", "fly failed", "no wings" },
    { "calculate", "{\"expression\":\"1/0\"}", "division by zero", TRUE, "Calculating 1/0", "Could not calculate 1/0",
      "division by zero" },
    { NULL, "calculate(37*", NULL, TRUE, "A tool call could not be read", "A tool call could not be read",
      "calculate(37*" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    OxDisclosure *row = g_object_ref_sink (OX_DISCLOSURE (ox_tool_row_new ()));
    GtkWidget *button = gui_test_find (GTK_WIDGET (row), GTK_TYPE_TOGGLE_BUTTON, NULL, NULL);
    OxToolEntry entry = tool (cases[i].name, cases[i].arguments, NULL, cases[i].name == NULL);

    ox_tool_row_update (row, &entry, TRUE);
    g_assert_cmpstr (ox_disclosure_get_title (row), ==, cases[i].running);
    ox_tool_row_update (row, &entry, FALSE);
    if (cases[i].name != NULL)
      g_assert_true (g_str_has_suffix (ox_disclosure_get_title (row), " was not run"));
    entry = tool (cases[i].name, cases[i].arguments, cases[i].result, cases[i].failed);
    ox_tool_row_update (row, &entry, TRUE);
    g_assert_cmpstr (ox_disclosure_get_title (row), ==, cases[i].title);
    g_assert_cmpint (gtk_widget_has_css_class (button, "error"), ==, cases[i].failed);
    gtk_test_accessible_assert_state (GTK_ACCESSIBLE (button), GTK_ACCESSIBLE_STATE_EXPANDED, FALSE);
    ox_disclosure_set_open (row, TRUE);
    g_assert_nonnull (gui_test_find (GTK_WIDGET (row), GTK_TYPE_LABEL, "label", cases[i].shown));
    gtk_test_accessible_assert_state (GTK_ACCESSIBLE (button), GTK_ACCESSIBLE_STATE_EXPANDED, TRUE);
    g_object_unref (row);
  }
}

/* A text as long as a book, read by a tool, is no work for the window. */
static void
test_tool_row_long (void)
{
  OxDisclosure *row = g_object_ref_sink (OX_DISCLOSURE (ox_tool_row_new ()));
  g_autofree char *text = g_strnfill (2000000, 'w');
  OxToolEntry entry = tool ("read_attachment", "{\"name\":\"book.txt\"}", text, FALSE);
  int height;

  /* The font of code is looked for once. */
  GtkWidget *other = g_object_ref_sink (ox_tool_row_new ());
  OxToolEntry short_entry = tool ("read_attachment", "{}", "short", FALSE);
  ox_tool_row_update (OX_DISCLOSURE (other), &short_entry, FALSE);
  ox_disclosure_set_open (OX_DISCLOSURE (other), TRUE);
  gtk_widget_measure (other, GTK_ORIENTATION_VERTICAL, 600, NULL, &height, NULL, NULL);
  g_object_unref (other);

  double start = gui_test_thread_ms ();
  ox_tool_row_update (row, &entry, FALSE);
  ox_disclosure_set_open (row, TRUE);
  gtk_widget_measure (GTK_WIDGET (row), GTK_ORIENTATION_VERTICAL, 600, NULL, &height, NULL, NULL);
  double took = gui_test_thread_ms () - start;
  g_test_message ("a book: %.1f ms", took);
#ifndef __SANITIZE_ADDRESS__
  g_assert_cmpfloat (took, <, 50);
#endif
  g_object_unref (row);
}

static gint64 now;

static gint64
clock_cb (gpointer user_data)
{
  return now;
}

static void
test_message_thinking (void)
{
  g_autoptr (OxMessage) message = ox_message_new_answer ("M");
  g_autoptr (GtkWidget) view = g_object_ref_sink (ox_message_view_new (message));
  OxStatistics statistics = {
    .answer_tokens = 412, .drafted_tokens = 300, .accepted_tokens = 213, .decode_seconds = 9
  };

  now = 100 * G_USEC_PER_SEC;
  ox_clock_set_source (clock_cb, NULL);
  g_assert_null (gui_test_find (view, OX_TYPE_DISCLOSURE, NULL, NULL));
  ox_message_set_state (message, OX_MESSAGE_WRITING);
  ox_message_append_thinking (message, "Let me **see**");
  ox_message_set_thinking_time (message, 0, now);
  gui_test_run_for (50);
  OxDisclosure *row = OX_DISCLOSURE (gui_test_find (view, OX_TYPE_DISCLOSURE, NULL, NULL));
  GtkWidget *spinner = gui_test_find (GTK_WIDGET (row), ADW_TYPE_SPINNER, NULL, NULL);
  g_assert_cmpstr (ox_disclosure_get_title (row), ==, "Thinking… 0 s");
  now += 4 * G_USEC_PER_SEC;
  gui_test_wait (g_str_equal (ox_disclosure_get_title (row), "Thinking… 4 s"), 5);
  g_assert_cmpstr (gtk_stack_get_visible_child_name (GTK_STACK (gtk_widget_get_parent (spinner))), ==, "spinner");
  GtkWidget *button = gui_test_find (GTK_WIDGET (row), GTK_TYPE_TOGGLE_BUTTON, NULL, NULL);
  gtk_test_accessible_assert_property (GTK_ACCESSIBLE (button), GTK_ACCESSIBLE_PROPERTY_LABEL, "Thinking");
  /* Closed unless the person opens it; then the thoughts are there, and go on. */
  g_assert_false (ox_disclosure_get_open (row));
  g_assert_null (gui_test_find (GTK_WIDGET (row), OX_TYPE_MARKDOWN_VIEW, NULL, NULL));
  ox_disclosure_set_open (row, TRUE);
  gui_test_wait (gui_test_find (GTK_WIDGET (row), GTK_TYPE_LABEL, "label", "Let me <b>see</b>") != NULL, 5);

  ox_message_set_thinking_time (message, 12.4, 0);
  ox_message_append (message, "Text");
  ox_message_set_statistics (message, &statistics);
  ox_message_set_state (message, OX_MESSAGE_COMPLETE);
  g_assert_cmpstr (ox_disclosure_get_title (row), ==, "Thought for 12 s");
  gtk_test_accessible_assert_property (GTK_ACCESSIBLE (button), GTK_ACCESSIBLE_PROPERTY_LABEL, "Thought for 12 s");
  g_assert_true (ox_disclosure_get_open (row));
  g_assert_cmpstr (gtk_stack_get_visible_child_name (GTK_STACK (gtk_widget_get_parent (spinner))), ==, "icon");
  GtkWidget *label = gui_test_find (view, GTK_TYPE_LABEL, "tooltip-text", "213 of 412 tokens were guessed ahead");
  g_assert_nonnull (label);

  g_assert_null (gui_test_find (view, GTK_TYPE_LABEL, "label", "The 12 oldest messages were left out"));
  ox_message_set_dropped_messages (message, 12);
  label = gui_test_find (view, GTK_TYPE_LABEL, "label", "The 12 oldest messages were left out");
  g_assert_nonnull (label);
  g_assert_true (gtk_widget_get_visible (gtk_widget_get_parent (label)));
  ox_clock_set_source (NULL, NULL);
}

/* Markdown */

static guint
count_children (GtkWidget *widget)
{
  guint n = 0;
  for (GtkWidget *child = gtk_widget_get_first_child (widget); child != NULL;
       child = gtk_widget_get_next_sibling (child))
    n++;
  return n;
}

/* What all labels and code blocks say. */
static void
collect_text (GtkWidget *widget, GString *out)
{
  if (OX_IS_CODE_BLOCK (widget)) {
    g_string_append_printf (out, "{%s}", ox_code_block_get_code (OX_CODE_BLOCK (widget)));
    return;
  }
  if (GTK_IS_LABEL (widget))
    g_string_append_printf (out, "[%s]", gtk_label_get_text (GTK_LABEL (widget)));
  for (GtkWidget *child = gtk_widget_get_first_child (widget); child != NULL;
       child = gtk_widget_get_next_sibling (child))
    collect_text (child, out);
}

static char *
dup_shown (GtkWidget *view)
{
  GString *out = g_string_new (NULL);
  collect_text (view, out);
  return g_string_free (out, FALSE);
}

static const char streamed[] = "# Title\n\nOne **two** three, and `code`.\n\n- a\n- b\n  1. c\n  2. d\n\n> quote\n\n"
                               "```python\nprint(1)\n\nprint(2)\n```\n\n| x | y |\n|---|--:|\n| 1 | 2 |\n| 3 | 4 |\n\n"
                               "The end, with 5 $ & <b>.\n";

/* However a text comes in, the result is the one of the whole text. */
static void
test_markdown_streaming (void)
{
  GtkWidget *whole = g_object_ref_sink (ox_markdown_view_new (FALSE, -1));
  GtkWidget *pieces = g_object_ref_sink (ox_markdown_view_new (FALSE, -1));

  ox_markdown_view_set_text (OX_MARKDOWN_VIEW (whole), streamed, FALSE);
  gui_test_wait (ox_markdown_view_is_settled (OX_MARKDOWN_VIEW (whole)), 5);
  g_autofree char *expected = dup_shown (whole);

  for (gsize n = 1; n < sizeof streamed; n++) {
    g_autofree char *text = g_strndup (streamed, n);
    ox_markdown_view_set_text (OX_MARKDOWN_VIEW (pieces), text, TRUE);
    while (!ox_markdown_view_is_settled (OX_MARKDOWN_VIEW (pieces)))
      g_main_context_iteration (NULL, FALSE);
  }
  g_autofree char *before = dup_shown (pieces);
  g_assert_cmpstr (before, ==, expected);
  ox_markdown_view_set_text (OX_MARKDOWN_VIEW (pieces), streamed, FALSE);
  g_autofree char *after = dup_shown (pieces);
  g_assert_cmpstr (after, ==, expected);
  g_object_unref (whole);
  g_object_unref (pieces);
}

/* What was finished keeps its widgets, so that a selection in it stays. */
static void
test_markdown_keeps_widgets (void)
{
  GtkWidget *view = g_object_ref_sink (ox_markdown_view_new (FALSE, -1));
  ox_markdown_view_set_text (OX_MARKDOWN_VIEW (view), "First.\n\n```c\nint a;\n```\n\nSec", TRUE);
  gui_test_wait (ox_markdown_view_is_settled (OX_MARKDOWN_VIEW (view)), 5);
  GtkWidget *first = gtk_widget_get_first_child (view);
  GtkWidget *code = gtk_widget_get_next_sibling (first);
  GtkWidget *last = gtk_widget_get_last_child (view);
  g_assert_cmpuint (count_children (view), ==, 3);
  ox_markdown_view_set_text (OX_MARKDOWN_VIEW (view), "First.\n\n```c\nint a;\n```\n\nSecond **part** grows", TRUE);
  ox_markdown_view_set_text (OX_MARKDOWN_VIEW (view), "First.\n\n```c\nint a;\n```\n\nSecond **part** grows.", FALSE);
  g_assert_true (gtk_widget_get_first_child (view) == first);
  g_assert_true (gtk_widget_get_next_sibling (first) == code);
  g_assert_true (gtk_widget_get_last_child (view) == last);
  g_assert_cmpstr (gtk_label_get_text (GTK_LABEL (last)), ==, "Second part grows.");
  g_object_unref (view);
}

static void
test_markdown_direction (void)
{
  GtkWidget *view = g_object_ref_sink (ox_markdown_view_new (FALSE, -1));
  ox_markdown_view_set_text (OX_MARKDOWN_VIEW (view), "שלום\n\nhello\n\n```\nx\n```", FALSE);
  gui_test_wait (ox_markdown_view_is_settled (OX_MARKDOWN_VIEW (view)), 5);
  GtkWidget *hebrew = gtk_widget_get_first_child (view);
  GtkWidget *english = gtk_widget_get_next_sibling (hebrew);
  GtkWidget *code = gui_test_find (view, GTK_SOURCE_TYPE_VIEW, NULL, NULL);
  g_assert_cmpint (gtk_widget_get_direction (hebrew), ==, GTK_TEXT_DIR_RTL);
  g_assert_cmpint (gtk_widget_get_direction (english), ==, GTK_TEXT_DIR_LTR);
  g_assert_cmpint (gtk_widget_get_direction (code), ==, GTK_TEXT_DIR_LTR);
  g_object_unref (view);
}

/* A million bytes: neither all at once nor never, and no turn of the main loop is long. */
static void
test_markdown_long (void)
{
  GtkWindow *window = GTK_WINDOW (gtk_window_new ());
  GtkWidget *view = ox_markdown_view_new (FALSE, -1);
  GtkWidget *scroller = gtk_scrolled_window_new ();
  g_autoptr (GString) text = g_string_new (NULL);
  for (guint i = 0; i < 200000; i++)
    g_string_append (text, "word ");
  gtk_scrolled_window_set_child (GTK_SCROLLED_WINDOW (scroller), view);
  gtk_window_set_child (window, scroller);
  gtk_window_set_default_size (window, 800, 600);
  gtk_window_present (window);

  gint64 start = g_get_monotonic_time ();
  ox_markdown_view_set_text (OX_MARKDOWN_VIEW (view), text->str, FALSE);
  double ms = (double) (g_get_monotonic_time () - start) / 1000;
  g_test_message ("set_text: %.1f ms", ms);
  gui_test_wait (ox_markdown_view_is_settled (OX_MARKDOWN_VIEW (view)), 20);
  guint page = count_children (view);
  GtkWidget *more = gtk_widget_get_last_child (view);
  g_assert_true (GTK_IS_BUTTON (more));
  g_assert_cmpuint (page, <, 60);
  g_signal_emit_by_name (more, "clicked");
  gui_test_wait (ox_markdown_view_is_settled (OX_MARKDOWN_VIEW (view)), 20);
  g_assert_cmpuint (count_children (view), >, page);
  gtk_window_destroy (window);
}

/* Words without a place where a line may end, as small models like to write them: laid out in a moment all the same. */
static void
test_markdown_words (void)
{
  static const char *const words[] = { "x", "[", "*a_", "ж", "!", "漢" };

  for (guint w = 0; w < G_N_ELEMENTS (words); w++) {
    GtkWidget *view = g_object_ref_sink (ox_markdown_view_new (w % 2 == 0, -1));
    g_autoptr (GString) text = g_string_new (NULL);
    while (text->len < 50000)
      g_string_append (text, words[w]);
    double start = gui_test_thread_ms ();
    ox_markdown_view_set_text (OX_MARKDOWN_VIEW (view), text->str, FALSE);
    gui_test_wait (ox_markdown_view_is_settled (OX_MARKDOWN_VIEW (view)), 20);
    int minimum, natural;
    gtk_widget_measure (view, GTK_ORIENTATION_VERTICAL, 600, &minimum, &natural, NULL, NULL);
    double took = gui_test_thread_ms () - start;
    g_test_message ("50 kB of “%s”: %.0f ms", words[w], took);
    g_assert_cmpint (natural, >, 100);
#ifndef __SANITIZE_ADDRESS__
    g_assert_cmpfloat (took, <, 200);
#endif
    g_object_unref (view);
  }
}

/* Code */

static void
test_code (void)
{
  GtkWidget *block = g_object_ref_sink (ox_code_block_new ());
  GtkWidget *view = gui_test_find (block, GTK_SOURCE_TYPE_VIEW, NULL, NULL);
  GtkTextBuffer *buffer = gtk_text_view_get_buffer (GTK_TEXT_VIEW (view));

  ox_code_block_set_code (OX_CODE_BLOCK (block), "py", "a = 1");
  gtk_test_accessible_assert_property (GTK_ACCESSIBLE (block), GTK_ACCESSIBLE_PROPERTY_LABEL, "Code, Python, 1 line");
  ox_code_block_set_code (OX_CODE_BLOCK (block), "py", "a = 1\nb = 2");
  gtk_test_accessible_assert_property (GTK_ACCESSIBLE (block), GTK_ACCESSIBLE_PROPERTY_LABEL, "Code, Python, 2 lines");
  g_assert_cmpint (gtk_text_buffer_get_line_count (buffer), ==, 2);

  /* A line that is too long to be laid out at once is shown in parts, and copied whole. */
  g_autofree char *line = g_strnfill (1000000, 'x');
  ox_code_block_set_code (OX_CODE_BLOCK (block), NULL, line);
  g_assert_cmpint (gtk_text_buffer_get_line_count (buffer), ==, 500);
  g_assert_cmpuint (strlen (ox_code_block_get_code (OX_CODE_BLOCK (block))), ==, 1000000);
  g_assert_false (gtk_text_view_get_editable (GTK_TEXT_VIEW (view)));
  g_assert_false (gtk_text_view_get_accepts_tab (GTK_TEXT_VIEW (view)));
  g_object_unref (block);
}

/* Scrolling */

typedef struct {
  GtkWindow *window;
  GtkWidget *scroller;
  GtkWidget *box;
  GtkAdjustment *adjustment;
  OxScrollFollow *follow;
} ScrollTest;

static void
scroll_add (ScrollTest *test, int height)
{
  GtkWidget *widget = gtk_drawing_area_new ();
  gtk_widget_set_size_request (widget, 100, height);
  gtk_box_append (GTK_BOX (test->box), widget);
  double upper = gtk_adjustment_get_upper (test->adjustment);
  gui_test_wait (gtk_adjustment_get_upper (test->adjustment) != upper, 5);
}

static double
bottom (ScrollTest *test)
{
  return gtk_adjustment_get_upper (test->adjustment) - gtk_adjustment_get_page_size (test->adjustment);
}

static void
scroll_set_up (ScrollTest *test, gconstpointer data)
{
  test->window = GTK_WINDOW (gtk_window_new ());
  test->scroller = gtk_scrolled_window_new ();
  test->box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 0);
  gtk_scrolled_window_set_child (GTK_SCROLLED_WINDOW (test->scroller), test->box);
  test->adjustment = gtk_scrolled_window_get_vadjustment (GTK_SCROLLED_WINDOW (test->scroller));
  test->follow = ox_scroll_follow_new (GTK_SCROLLED_WINDOW (test->scroller));
  gtk_window_set_child (test->window, test->scroller);
  gtk_window_set_default_size (test->window, 300, 300);
  gtk_window_present (test->window);
  gui_test_wait (gtk_adjustment_get_page_size (test->adjustment) > 0, 5);
  for (guint i = 0; i < 4; i++)
    scroll_add (test, 400);
}

static void
scroll_tear_down (ScrollTest *test, gconstpointer data)
{
  g_object_unref (test->follow);
  gtk_window_destroy (test->window);
}

static void
test_scroll_follows (ScrollTest *test, gconstpointer data)
{
  g_assert_true (ox_scroll_follow_get_following (test->follow));
  g_assert_cmpfloat (bottom (test), >, 500);
  g_assert_cmpfloat (gtk_adjustment_get_value (test->adjustment), ==, bottom (test));

  /* Whoever scrolls up stays where he is, whatever comes. */
  gtk_adjustment_set_value (test->adjustment, 300);
  g_assert_false (ox_scroll_follow_get_following (test->follow));
  scroll_add (test, 500);
  g_assert_cmpfloat (gtk_adjustment_get_value (test->adjustment), ==, 300);

  /* Back at the end, or by the button, the view follows again. */
  gtk_adjustment_set_value (test->adjustment, bottom (test));
  g_assert_true (ox_scroll_follow_get_following (test->follow));
  gtk_adjustment_set_value (test->adjustment, 0);
  ox_scroll_follow_jump (test->follow);
  g_assert_true (ox_scroll_follow_get_following (test->follow));
  g_assert_cmpfloat (gtk_adjustment_get_value (test->adjustment), ==, bottom (test));
  scroll_add (test, 200);
  g_assert_cmpfloat (gtk_adjustment_get_value (test->adjustment), ==, bottom (test));
}

/* Content that gets shorter is not a person who scrolls. */
static void
test_scroll_shrinks (ScrollTest *test, gconstpointer data)
{
  gtk_adjustment_set_value (test->adjustment, 600);
  double upper = gtk_adjustment_get_upper (test->adjustment);
  gtk_box_remove (GTK_BOX (test->box), gtk_widget_get_last_child (test->box));
  gui_test_wait (gtk_adjustment_get_upper (test->adjustment) != upper, 5);
  g_assert_cmpfloat (gtk_adjustment_get_value (test->adjustment), ==, 600);
  g_assert_false (ox_scroll_follow_get_following (test->follow));

  ox_scroll_follow_jump (test->follow);
  upper = gtk_adjustment_get_upper (test->adjustment);
  gtk_box_remove (GTK_BOX (test->box), gtk_widget_get_last_child (test->box));
  gui_test_wait (gtk_adjustment_get_upper (test->adjustment) != upper, 5);
  g_assert_true (ox_scroll_follow_get_following (test->follow));
}

int
main (int argc, char *argv[])
{
  gui_test_init (&argc, &argv);
#define COMPOSER(name, func)                                                                                           \
  g_test_add ("/composer/" name, ComposerTest, NULL, composer_set_up, func, composer_tear_down)
#define SCROLL(name, func) g_test_add ("/scroll/" name, ScrollTest, NULL, scroll_set_up, func, scroll_tear_down)
  COMPOSER ("keys", test_composer_keys);
  COMPOSER ("busy", test_composer_busy);
  COMPOSER ("grows", test_composer_grows);
  COMPOSER ("usage", test_composer_usage);
  COMPOSER ("full", test_composer_full);
  COMPOSER ("think", test_composer_think);
  g_test_add_func ("/message/tool-rows", test_tool_rows);
  g_test_add_func ("/message/tool-row-long", test_tool_row_long);
  g_test_add_func ("/message/thinking", test_message_thinking);
  g_test_add_func ("/markdown-view/streaming", test_markdown_streaming);
  g_test_add_func ("/markdown-view/keeps-widgets", test_markdown_keeps_widgets);
  g_test_add_func ("/markdown-view/direction", test_markdown_direction);
  g_test_add_func ("/markdown-view/long", test_markdown_long);
  g_test_add_func ("/markdown-view/words", test_markdown_words);
  g_test_add_func ("/code", test_code);
  SCROLL ("follows", test_scroll_follows);
  SCROLL ("shrinks", test_scroll_shrinks);
  return g_test_run ();
}
