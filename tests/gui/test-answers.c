/* Thinking, tools, the length of a conversation and permission, in the whole window with a scripted engine.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "window-test.h"

#include "ox-disclosure.h"
#include "ox-message-view.h"
#include "ox-permission-dialog.h"
#include "ox-preferences.h"

#define CAPABLE "Gemma 4 Test.gguf"
#define THINK "Have the model think before it answers"

static OxDisclosure *
find_row (GtkWidget *widget, const char *title)
{
  if (OX_IS_DISCLOSURE (widget) && g_strcmp0 (ox_disclosure_get_title (OX_DISCLOSURE (widget)), title) == 0 &&
      gtk_widget_get_mapped (widget))
    return OX_DISCLOSURE (widget);
  for (GtkWidget *child = gtk_widget_get_first_child (widget); child != NULL;
       child = gtk_widget_get_next_sibling (child)) {
    OxDisclosure *row = find_row (child, title);
    if (row != NULL)
      return row;
  }
  return NULL;
}

static void
activate (Test *test, const char *action)
{
  g_assert_true (gtk_widget_activate_action (GTK_WIDGET (test->window), action, NULL));
}

/* Remembered by the conversation; a new one begins as it was chosen last. */
static void
test_think (Test *test)
{
  GtkWidget *button = find (test, GTK_TYPE_TOGGLE_BUTTON, "tooltip-text", THINK);
  g_autoptr (OxConversation) first = g_object_ref (ox_chat_view_get_conversation (test->chat));

  gui_test_wait (gtk_widget_get_visible (button), 5);
  g_assert_false (gtk_toggle_button_get_active (GTK_TOGGLE_BUTTON (button)));
  activate (test, "win.think");
  g_assert_true (gtk_toggle_button_get_active (GTK_TOGGLE_BUTTON (button)));
  send (test, "A question?");
  gui_test_wait (!is_answering (test), 10);
  g_assert_true (ox_conversation_get_flag (first, "thinking", FALSE));

  activate (test, "win.new-chat");
  g_assert_true (gtk_toggle_button_get_active (GTK_TOGGLE_BUTTON (button)));
  activate (test, "win.think");
  send (test, "Another?");
  gui_test_wait (!is_answering (test), 10);
  g_assert_false (ox_conversation_get_flag (ox_chat_view_get_conversation (test->chat), "thinking", TRUE));
  ox_window_open_conversation (test->window, first);
  g_assert_true (gtk_toggle_button_get_active (GTK_TOGGLE_BUTTON (button)));
}

static void
test_cannot_think (Test *test)
{
  GtkWidget *button = find (test, GTK_TYPE_TOGGLE_BUTTON, "tooltip-text", THINK);

  send (test, "A question?");
  gui_test_wait (!is_answering (test), 10);
  g_assert_false (gtk_widget_get_visible (button));
  activate (test, "win.think");
  g_assert_false (ox_conversation_get_flag (ox_chat_view_get_conversation (test->chat), "thinking", FALSE));
}

static void
test_rows (Test *test)
{
  ox_scene_engine_set_script (OX_SCENE_TOOLS, "So it is.");
  send (test, "A question?");
  gui_test_wait (g_strcmp0 (ox_message_get_text (last_message (test)), "So it is.") == 0, 10);
  gui_test_wait (ox_chat_view_is_settled (test->chat), 5);
  gui_test_run_for (200);
  g_assert_nonnull (find_row (GTK_WIDGET (test->window), "Looked up the time"));
  g_assert_nonnull (find_row (GTK_WIDGET (test->window), "Could not read tides.txt"));
  g_assert_nonnull (find_row (GTK_WIDGET (test->window), "A tool call could not be read"));
  OxDisclosure *row = find_row (GTK_WIDGET (test->window), "Calculated 37 × 12");
  GtkWidget *button = gui_test_find (GTK_WIDGET (row), GTK_TYPE_TOGGLE_BUTTON, NULL, NULL);
  gtk_test_accessible_assert_property (GTK_ACCESSIBLE (button), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                       "Calculated 37 × 12 = 444");

  /* By keyboard: the row takes the focus, and Space opens it. */
  g_assert_true (gtk_widget_grab_focus (button));
  g_assert_true (gtk_widget_activate (button));
  gui_test_wait (ox_disclosure_get_open (row), 5);
  g_assert_nonnull (gui_test_find (GTK_WIDGET (row), GTK_TYPE_LABEL, "label", "calculate(expression=\"37*12\")"));

  ox_chat_view_stop (test->chat);
  gui_test_wait (!is_answering (test), 5);
  g_assert_true (ox_disclosure_get_open (row));
}

static GtkRevealer *
find_full (Test *test)
{
  return GTK_REVEALER (
    gtk_widget_get_ancestor (find (test, GTK_TYPE_BUTTON, "label", "Leave Out _Oldest"), GTK_TYPE_REVEALER));
}

/* Counting runs beside typing; a full chat says so before anything is sent. */
static void
test_full (Test *test)
{
  GtkWidget *ring = gui_test_find (GTK_WIDGET (test->composer), GTK_TYPE_MENU_BUTTON, NULL, NULL);
  OxConversation *conversation = ox_chat_view_get_conversation (test->chat);
  GtkRevealer *full = find_full (test);

  send (test, "A question?");
  gui_test_wait (!is_answering (test), 10);
  gui_test_wait (gtk_widget_get_visible (ring), 5);
  g_assert_false (gtk_revealer_get_reveal_child (full));
  ox_scene_engine_set_script (OX_SCENE_FULL, "An answer.");
  ox_composer_set_text (test->composer, "typing");
  gui_test_wait (gtk_revealer_get_reveal_child (full), 5);
  g_assert_true (gtk_widget_has_css_class (ring, "warning"));

  g_signal_emit_by_name (find (test, GTK_TYPE_BUTTON, "label", "Leave Out _Oldest"), "clicked");
  g_assert_true (ox_conversation_get_flag (conversation, "drop-oldest", FALSE));
  g_assert_false (gtk_revealer_get_reveal_child (full));
  gui_test_wait (!gtk_widget_has_css_class (ring, "warning"), 5);
  ox_composer_activate (test->composer);
  gui_test_wait (!is_answering (test), 10);
  g_assert_cmpuint (ox_message_get_dropped_messages (last_message (test)), ==, 12);
  gui_test_run_for (200);
  g_assert_nonnull (find (test, GTK_TYPE_LABEL, "label", "The 12 oldest messages were left out"));

  /* Another chat is its own. */
  activate (test, "win.new-chat");
  g_assert_false (ox_conversation_get_flag (ox_chat_view_get_conversation (test->chat), "drop-oldest", FALSE));
}

static gboolean
ask (OxEngine *engine, OxPermission *permission)
{
  gboolean handled = FALSE;
  g_signal_emit_by_name (engine, "permission", permission, &handled);
  return handled;
}

static void
test_permission (Test *test)
{
  static const struct {
    const char *response; /* NULL: closed */
    gboolean allowed;
  } answers[] = { { "allow", TRUE }, { "deny", FALSE }, { NULL, FALSE } };
  OxEngine *engine = ox_application_get_engine (test->application);
  AdwApplicationWindow *window = ADW_APPLICATION_WINDOW (test->window);

  for (guint i = 0; i < G_N_ELEMENTS (answers); i++) {
    g_autoptr (OxPermission) permission = ox_permission_new ("send_mail", "{\"to\":\"a@b.c\"}");

    g_assert_true (ask (engine, permission));
    gui_test_wait (adw_application_window_get_visible_dialog (window) != NULL, 5);
    AdwDialog *dialog = adw_application_window_get_visible_dialog (window);
    g_assert_cmpstr (adw_alert_dialog_get_heading (ADW_ALERT_DIALOG (dialog)), ==, "Allow “send_mail”?");
    g_assert_nonnull (gui_test_find (GTK_WIDGET (dialog), GTK_TYPE_LABEL, "label", "send_mail(to=\"a@b.c\")"));
    if (answers[i].response != NULL) {
      g_signal_emit_by_name (dialog, "response", answers[i].response);
      adw_dialog_force_close (dialog);
    } else {
      adw_dialog_close (dialog);
    }
    gui_test_wait (adw_application_window_get_visible_dialog (window) == NULL, 5);
    g_assert_cmpint (ox_permission_is_allowed (permission), ==, answers[i].allowed);
  }

  /* The answer was stopped: the question goes away. */
  g_autoptr (OxPermission) permission = ox_permission_new ("send_mail", "{}");
  ask (engine, permission);
  gui_test_wait (adw_application_window_get_visible_dialog (window) != NULL, 5);
  g_signal_emit_by_name (permission, "withdrawn");
  gui_test_wait (adw_application_window_get_visible_dialog (window) == NULL, 5);
  g_assert_false (ox_permission_is_allowed (permission));
}

static void
test_preferences (Test *test)
{
  GSettings *settings = ox_application_get_settings (test->application);
  OxEngine *engine = ox_application_get_engine (test->application);
  AdwDialog *dialog = ox_preferences_new (settings, engine);

  adw_dialog_present (dialog, GTK_WIDGET (test->window));
  gui_test_run_for (300);
  adw_preferences_dialog_set_visible_page_name (ADW_PREFERENCES_DIALOG (dialog), "performance");
  gui_test_wait (gui_test_find (GTK_WIDGET (dialog), GTK_TYPE_LABEL, "label", "3.2\302\240GB") != NULL, 5);

  GtkWidget *weights = gui_test_find (GTK_WIDGET (dialog), ADW_TYPE_COMBO_ROW, "title", "Precision of _Weights");
  adw_combo_row_set_selected (ADW_COMBO_ROW (weights), 1);
  g_autofree char *value = g_settings_get_string (settings, "weights");
  g_assert_cmpstr (value, ==, "balanced");
  g_assert_cmpint (ox_engine_get_options (engine).weights, ==, OX_MODEL_WEIGHTS_Q4);
  g_settings_set_string (settings, "weights", "original");
  g_assert_cmpuint (adw_combo_row_get_selected (ADW_COMBO_ROW (weights)), ==, 3);
  g_assert_cmpint (ox_engine_get_options (engine).weights, ==, OX_MODEL_WEIGHTS_STORED);
  g_settings_set_string (settings, "weights", "automatic");

  GtkWidget *guess = gui_test_find (GTK_WIDGET (dialog), ADW_TYPE_SWITCH_ROW, "title", "_Guess Ahead");
  g_assert_cmpint (ox_engine_get_speculation (engine), ==, OX_SPECULATION_AUTO);
  adw_switch_row_set_active (ADW_SWITCH_ROW (guess), FALSE);
  g_assert_cmpint (ox_engine_get_speculation (engine), ==, OX_SPECULATION_OFF);
  adw_switch_row_set_active (ADW_SWITCH_ROW (guess), TRUE);

  GtkWidget *threads = gui_test_find (GTK_WIDGET (dialog), ADW_TYPE_SPIN_ROW, "title", "_Threads");
  g_assert_cmpstr (gtk_editable_get_text (GTK_EDITABLE (threads)), ==, "Automatic");
  adw_spin_row_set_value (ADW_SPIN_ROW (threads), 1);
  g_assert_cmpstr (gtk_editable_get_text (GTK_EDITABLE (threads)), ==, "1");
  g_assert_cmpint (g_settings_get_int (settings, "threads"), ==, 1);
  gtk_editable_set_text (GTK_EDITABLE (threads), "Automatic");
  adw_spin_row_update (ADW_SPIN_ROW (threads));
  g_assert_cmpint (g_settings_get_int (settings, "threads"), ==, 0);

  g_autoptr (OxToolbox) toolbox = ox_engine_ref_toolbox (engine);
  g_assert_cmpuint (ox_toolbox_get_length (toolbox), ==, 3);
  GtkWidget *tools = gui_test_find (GTK_WIDGET (dialog), ADW_TYPE_SWITCH_ROW, "title", "Too_ls");
  adw_switch_row_set_active (ADW_SWITCH_ROW (tools), FALSE);
  g_assert_null (ox_engine_ref_toolbox (engine));
  adw_switch_row_set_active (ADW_SWITCH_ROW (tools), TRUE);

  GtkWidget *clear = gui_test_find (GTK_WIDGET (dialog), GTK_TYPE_BUTTON, "label", "_Clear");
  g_assert_true (gtk_widget_get_sensitive (clear));
  g_signal_emit_by_name (clear, "clicked");
  g_assert_false (gtk_widget_get_sensitive (clear));
  gui_test_wait (gui_test_find (GTK_WIDGET (dialog), GTK_TYPE_LABEL, "label", "3.2\302\240GB freed") != NULL, 5);
  gui_test_wait (gui_test_find (GTK_WIDGET (dialog), GTK_TYPE_LABEL, "label", "None") != NULL, 5);
  adw_dialog_force_close (dialog);
  gui_test_run_for (300);
}

/* A chat may do without tools while others have them. */
static void
test_chat_tools (Test *test)
{
  OxConversation *conversation = ox_chat_view_get_conversation (test->chat);
  GSettings *settings = ox_application_get_settings (test->application);

  g_assert_true (ox_conversation_get_flag (conversation, "tools", TRUE));
  g_assert_true (gtk_widget_activate_action (GTK_WIDGET (test->chat), "chat.tools", NULL));
  g_assert_false (ox_conversation_get_flag (conversation, "tools", TRUE));
  gtk_widget_activate_action (GTK_WIDGET (test->chat), "chat.tools", NULL);
  g_assert_true (ox_conversation_get_flag (conversation, "tools", FALSE));
  g_settings_set_boolean (settings, "tools", FALSE);
  gtk_widget_activate_action (GTK_WIDGET (test->chat), "chat.tools", NULL);
  g_assert_true (ox_conversation_get_flag (conversation, "tools", FALSE));
  g_settings_set_boolean (settings, "tools", TRUE);
}

static const Case cases[] = {
  { "/answers/think", test_think, FALSE, CAPABLE },
  { "/answers/cannot-think", test_cannot_think, FALSE, NULL },
  { "/answers/rows", test_rows, FALSE, CAPABLE },
  { "/answers/full", test_full, FALSE, CAPABLE },
  { "/answers/permission", test_permission, FALSE, CAPABLE },
  { "/answers/preferences", test_preferences, FALSE, CAPABLE },
  { "/answers/chat-tools", test_chat_tools, FALSE, CAPABLE },
};

int
main (int argc, char *argv[])
{
  gui_test_init (&argc, &argv);
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    g_test_add_data_func (cases[i].path, &cases[i], run_case);
  return g_test_run ();
}
