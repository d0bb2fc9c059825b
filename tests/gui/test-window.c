/* The whole window with a scripted engine and a real library: sending, stopping, failing, deleting, long conversations,
 * and names for everything that takes the focus.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "window-test.h"

#include "ox-error-card.h"
#include "ox-message-list.h"
#include "ox-models-dialog.h"
#include "ox-permission-dialog.h"
#include "ox-preferences.h"
#include "ox-shortcuts.h"
#include "ox-sidebar-row.h"

#define N_LONG 1000
/* What one turn of the main loop may compute, of this thread's own time. The app's promise is 50 ms; this allows for tests
 * beside this one, and for builds with sanitizers. */
#ifdef __SANITIZE_ADDRESS__
#define TURN_MS 320
#else
#define TURN_MS 80
#endif

static void
test_send (Test *test)
{
  OxConversation *conversation = ox_chat_view_get_conversation (test->chat);
  GListModel *conversations = G_LIST_MODEL (ox_application_get_conversations (test->application));

  g_assert_cmpuint (g_list_model_get_n_items (conversations), ==, 0);
  send (test, "  A question?\n");
  g_autofree char *left = ox_composer_dup_text (test->composer);
  g_assert_cmpstr (left, ==, "");
  g_assert_cmpuint (ox_conversation_get_length (conversation), ==, 2);
  g_assert_cmpstr (ox_message_get_text (ox_conversation_get_message (conversation, 0)), ==, "A question?");

  gui_test_wait (!is_answering (test), 10);
  g_assert_cmpint (ox_message_get_state (last_message (test)), ==, OX_MESSAGE_COMPLETE);
  g_assert_cmpstr (ox_message_get_text (last_message (test)), ==, "An **answer** in words.");
  gui_test_wait (ox_chat_view_is_settled (test->chat), 5);
  g_assert_nonnull (find (test, GTK_TYPE_LABEL, "label", "An <b>answer</b> in words."));
  g_assert_nonnull (find (test, GTK_TYPE_LABEL, "label", "A question?"));
  g_assert_cmpuint (g_list_model_get_n_items (conversations), ==, 1);

  g_autofree char *last = g_settings_get_string (ox_application_get_settings (test->application), "last-conversation");
  g_assert_cmpstr (last, ==, ox_conversation_get_id (conversation));
}

static OxMessageState
state_of (Test *test)
{
  OxMessage *message = last_message (test);
  return message != NULL ? ox_message_get_state (message) : OX_MESSAGE_COMPLETE;
}

/* The same button, in each phase, and at once. */
static void
test_stop (Test *test)
{
  static const struct {
    OxSceneScript script;
    OxMessageState state;
  } phases[] = {
    { OX_SCENE_LOADING, OX_MESSAGE_LOADING },
    { OX_SCENE_READING, OX_MESSAGE_READING },
    { OX_SCENE_WRITING, OX_MESSAGE_WRITING },
  };

  for (guint i = 0; i < G_N_ELEMENTS (phases); i++) {
    GtkWidget *button = find (test, GTK_TYPE_BUTTON, "tooltip-text", "Send");
    ox_scene_engine_set_script (phases[i].script, "One two three");
    send (test, "A question?");
    gui_test_wait (state_of (test) == phases[i].state, 10);
    if (phases[i].state == OX_MESSAGE_WRITING)
      gui_test_wait (g_str_equal (ox_message_get_text (last_message (test)), "One two three"), 10);
    g_assert_cmpstr (gtk_widget_get_tooltip_text (button), ==, "Stop");

    gint64 start = g_get_monotonic_time ();
    g_signal_emit_by_name (button, "clicked");
    g_assert_false (is_answering (test));
    g_assert_cmpfloat ((double) (g_get_monotonic_time () - start) / 1000, <, 100);
    g_assert_cmpint (state_of (test), ==, OX_MESSAGE_STOPPED);
    g_assert_cmpstr (gtk_widget_get_tooltip_text (button), ==, "Send");
  }

  /* What was written stays, and goes on. */
  g_assert_cmpstr (ox_message_get_text (last_message (test)), ==, "One two three");
  ox_scene_engine_set_script (OX_SCENE_ANSWER, " four");
  gui_test_run_for (50);
  GtkWidget *list = find (test, OX_TYPE_MESSAGE_LIST, NULL, NULL);
  g_signal_emit_by_name (list, "continue", last_message (test));
  gui_test_wait (!is_answering (test), 10);
  g_assert_cmpstr (ox_message_get_text (last_message (test)), ==, "One two three four");
}

static void
test_fail (Test *test)
{
  ox_scene_engine_set_script (OX_SCENE_FAILING, NULL);
  send (test, "A question?");
  gui_test_wait (!is_answering (test), 10);
  g_assert_cmpint (state_of (test), ==, OX_MESSAGE_FAILED);
  GtkWidget *card = find (test, OX_TYPE_ERROR_CARD, NULL, NULL);
  g_assert_nonnull (card);
  g_assert_cmpstr (ox_error_card_get_title (OX_ERROR_CARD (card)), ==, "No answer: not enough memory");

  ox_scene_engine_set_script (OX_SCENE_ANSWER, "Now it works.");
  g_signal_emit_by_name (card, "retry");
  gui_test_wait (!is_answering (test) && state_of (test) == OX_MESSAGE_COMPLETE, 10);
  g_assert_cmpuint (ox_conversation_get_length (ox_chat_view_get_conversation (test->chat)), ==, 2);
  g_assert_cmpstr (ox_message_get_text (last_message (test)), ==, "Now it works.");
  gui_test_run_for (50);
  g_assert_null (find (test, OX_TYPE_ERROR_CARD, NULL, NULL));
}

/* Two chats: each has its own draft, and an answer goes on while the other one is shown. */
static void
test_switch (Test *test)
{
  g_autoptr (OxConversation) first = g_object_ref (ox_chat_view_get_conversation (test->chat));
  ox_scene_engine_set_script (OX_SCENE_WRITING, "One");
  send (test, "A question?");
  gui_test_wait (state_of (test) == OX_MESSAGE_WRITING, 10);
  ox_composer_set_text (test->composer, "later");

  gtk_widget_activate_action (GTK_WIDGET (test->window), "win.new-chat", NULL);
  g_assert_true (ox_chat_view_get_conversation (test->chat) != first);
  g_assert_true (ox_conversation_get_answering (first));
  g_assert_false (ox_composer_get_busy (test->composer));
  g_autofree char *empty = ox_composer_dup_text (test->composer);
  g_assert_cmpstr (empty, ==, "");

  ox_window_open_conversation (test->window, first);
  g_assert_true (ox_composer_get_busy (test->composer));
  g_autofree char *draft = ox_composer_dup_text (test->composer);
  g_assert_cmpstr (draft, ==, "later");
  ox_chat_view_stop (test->chat);
}

static void
test_delete (Test *test)
{
  GListModel *conversations = G_LIST_MODEL (ox_application_get_conversations (test->application));
  g_autoptr (OxConversation) conversation = g_object_ref (ox_chat_view_get_conversation (test->chat));

  send (test, "A question?");
  gui_test_wait (!is_answering (test), 10);
  gtk_widget_activate_action (GTK_WIDGET (test->window), "win.delete-chat", NULL);
  g_assert_cmpuint (g_list_model_get_n_items (conversations), ==, 0);
  g_assert_true (ox_chat_view_get_conversation (test->chat) != conversation);
  gtk_widget_activate_action (GTK_WIDGET (test->window), "win.undo-delete", NULL);
  g_assert_cmpuint (g_list_model_get_n_items (conversations), ==, 1);
  g_assert_true (ox_chat_view_get_conversation (test->chat) == conversation);
  g_assert_cmpuint (ox_conversation_get_length (conversation), ==, 2);
}

static OxSidebarRow *
find_row (GtkWidget *widget, OxConversation *conversation)
{
  if (OX_IS_SIDEBAR_ROW (widget) && ox_sidebar_row_get_conversation (OX_SIDEBAR_ROW (widget)) == conversation)
    return OX_SIDEBAR_ROW (widget);
  for (GtkWidget *child = gtk_widget_get_first_child (widget); child != NULL;
       child = gtk_widget_get_next_sibling (child)) {
    OxSidebarRow *row = find_row (child, conversation);
    if (row != NULL)
      return row;
  }
  return NULL;
}

/* The keys of a row of the library, and only those. */
static void
test_row (Test *test)
{
  GListModel *conversations = G_LIST_MODEL (ox_application_get_conversations (test->application));
  g_autoptr (OxConversation) conversation = g_object_ref (ox_chat_view_get_conversation (test->chat));

  send (test, "A question?");
  gui_test_wait (!is_answering (test), 10);
  gui_test_wait (find_row (GTK_WIDGET (test->window), conversation) != NULL, 10);
  OxSidebarRow *row = find_row (GTK_WIDGET (test->window), conversation);

  g_assert_false (ox_sidebar_row_handle_key (row, GDK_KEY_BackSpace, 0));
  g_assert_false (ox_sidebar_row_handle_key (row, GDK_KEY_Delete, GDK_SHIFT_MASK));
  g_assert_false (ox_sidebar_row_handle_key (row, GDK_KEY_w, GDK_CONTROL_MASK));

  g_assert_true (ox_sidebar_row_handle_key (row, GDK_KEY_F2, 0));
  GtkWidget *entry = gui_test_find (GTK_WIDGET (row), GTK_TYPE_ENTRY, NULL, NULL);
  g_assert_nonnull (entry);
  g_assert_cmpstr (gtk_editable_get_text (GTK_EDITABLE (entry)), ==, "A question?");
  gtk_editable_set_text (GTK_EDITABLE (entry), "  Another title ");
  g_signal_emit_by_name (entry, "activate");
  g_assert_cmpstr (ox_conversation_get_title (conversation), ==, "Another title");
  gui_test_run_for (300);
  g_assert_null (gui_test_find (GTK_WIDGET (row), GTK_TYPE_ENTRY, NULL, NULL));

  gtk_widget_activate_action (GTK_WIDGET (row), "row.pin", NULL);
  g_assert_true (ox_conversation_get_pinned (conversation));
  gui_test_run_for (100);
  row = find_row (GTK_WIDGET (test->window), conversation);
  g_assert_true (ox_sidebar_row_handle_key (row, GDK_KEY_Delete, 0));
  g_assert_cmpuint (g_list_model_get_n_items (conversations), ==, 0);
}

/* Search shows what was found, or says that nothing was, and gives the list back. */
static void
test_search (Test *test)
{
  GListModel *conversations = G_LIST_MODEL (ox_application_get_conversations (test->application));
  send (test, "Which owl is white?");
  gui_test_wait (!is_answering (test), 10);
  gtk_widget_activate_action (GTK_WIDGET (test->window), "win.new-chat", NULL);
  send (test, "How tall is a birch?");
  gui_test_wait (!is_answering (test), 10);
  gui_test_run_for (300);

  gtk_widget_activate_action (GTK_WIDGET (test->window), "win.search", NULL);
  GtkWidget *entry = find (test, GTK_TYPE_SEARCH_ENTRY, NULL, NULL);
  gtk_editable_set_text (GTK_EDITABLE (entry), "birch");
  gui_test_wait (g_list_model_get_n_items (conversations) == 1, 10);
  gtk_editable_set_text (GTK_EDITABLE (entry), "zebra");
  gui_test_wait (g_list_model_get_n_items (conversations) == 0, 10);
  GtkWidget *status = find (test, ADW_TYPE_STATUS_PAGE, "title", "No Chats Found");
  gui_test_wait (gtk_widget_get_mapped (status), 10);
  g_assert_cmpstr (ox_window_get_page (test->window), ==, "main");

  GtkWidget *bar = find (test, GTK_TYPE_SEARCH_BAR, NULL, NULL);
  gtk_search_bar_set_search_mode (GTK_SEARCH_BAR (bar), FALSE);
  gui_test_wait (g_list_model_get_n_items (conversations) == 2, 10);
}

/* Long conversations */

/* Runs the main loop until the view has settled; returns the longest turn, in milliseconds of this thread's own time. */
static double
longest_turn (Test *test, OxMessageList *list, guint n_views)
{
  double longest = 0;
  gint64 end = g_get_monotonic_time () + 60 * G_USEC_PER_SEC;
  gint64 quiet = 0;

  while (quiet == 0 || g_get_monotonic_time () < quiet) {
    g_assert_cmpint (g_get_monotonic_time (), <, end);
    double start = gui_test_thread_ms ();
    if (!g_main_context_iteration (NULL, FALSE))
      g_usleep (1000);
    longest = MAX (longest, gui_test_thread_ms () - start);
    if (quiet == 0 && ox_chat_view_is_settled (test->chat) && ox_message_list_get_n_views (list) >= n_views)
      quiet = g_get_monotonic_time () + G_USEC_PER_SEC / 4;
  }
  return longest;
}

static void
test_long (Test *test)
{
  OxStore *store = ox_application_get_store (test->application);
  GPtrArray *messages = g_ptr_array_new_with_free_func ((GDestroyNotify) ox_message_record_free);
  OxConversationRecord record = { .id = (char *) "long", .title = (char *) "Long", .created = 1, .updated = 1 };

  for (guint i = 0; i < N_LONG; i++) {
    OxMessageRecord *message = g_new0 (OxMessageRecord, 1);
    message->id = g_strdup_printf ("long-%u", i);
    message->conversation_id = g_strdup ("long");
    message->position = i;
    message->role = i % 2 == 0 ? OX_ROLE_USER : OX_ROLE_ASSISTANT;
    message->text =
      g_strdup_printf ("Message **%u**.\n\n- one item that is long enough to be wrapped in a window that is as "
                       "wide as this one is, or so one hopes\n- two\n\n```c\nint x = %u;\n```\n\nThe end.",
                       i, i);
    message->created = i + 1;
    g_ptr_array_add (messages, message);
  }
  ox_store_add_messages (store, &record, messages, NULL, NULL);

  g_autoptr (OxConversation) conversation = ox_conversation_new_from_record (store, &record);
  OxMessageList *list = OX_MESSAGE_LIST (find (test, OX_TYPE_MESSAGE_LIST, NULL, NULL));
  GtkAdjustment *adjustment = ox_message_list_get_adjustment (list);
  gtk_widget_queue_draw (GTK_WIDGET (test->window));
  g_test_message ("drawing alone: longest turn %.1f ms", longest_turn (test, list, 0));
  ox_window_open_conversation (test->window, conversation);
  double open_ms = longest_turn (test, list, 60);
  g_test_message ("opening: longest turn %.1f ms", open_ms);
  g_assert_cmpuint (ox_conversation_get_length (conversation), ==, N_LONG);
  g_assert_cmpuint (ox_message_list_get_n_views (list), ==, 60);
  g_assert_true (ox_message_list_get_following (list));
  g_assert_cmpfloat (gtk_adjustment_get_value (adjustment), ==,
                     gtk_adjustment_get_upper (adjustment) - gtk_adjustment_get_page_size (adjustment));

  /* The last message is in view, not only its number right. */
  GtkWidget *last = gui_test_find (GTK_WIDGET (list), OX_TYPE_MESSAGE_VIEW, NULL, NULL);
  last = gtk_widget_get_parent (gtk_widget_get_parent (last));
  last = gtk_widget_get_last_child (gtk_widget_get_last_child (last));
  graphene_rect_t bounds;
  g_assert_true (gtk_widget_compute_bounds (last, GTK_WIDGET (list), &bounds));
  g_assert_cmpfloat (bounds.origin.y + bounds.size.height, <=, gtk_widget_get_height (GTK_WIDGET (list)));

  /* Near the top another page comes in, and what is in view stays where it is. */
  GtkWidget *first = gui_test_find (GTK_WIDGET (list), OX_TYPE_MESSAGE_VIEW, NULL, NULL);
  gtk_adjustment_set_value (adjustment, 100);
  double page_ms = longest_turn (test, list, 120);
  g_test_message ("paging: longest turn %.1f ms", page_ms);
  g_assert_cmpuint (ox_message_list_get_n_views (list), ==, 120);
  graphene_rect_t after;
  g_assert_true (gtk_widget_compute_bounds (first, GTK_WIDGET (list), &after));
  g_assert_cmpfloat_with_epsilon (after.origin.y, -100 + 12, 2);
  g_assert_false (ox_message_list_get_following (list));
  g_assert_cmpfloat (open_ms, <, TURN_MS);
  g_assert_cmpfloat (page_ms, <, TURN_MS);
}

/* A long answer, with all kinds of blocks, as fast as it may come: no turn of the main loop is long, and the end is in view. */
static void
test_stream (Test *test)
{
  g_autoptr (GString) answer = g_string_new (NULL);
  for (guint i = 0; i < 40; i++)
    g_string_append_printf (
      answer,
      "## Part %u\n\nSome **bold** and `code` words that go on for a while, so that there is a line or two to "
      "be wrapped in the window, and again some more.\n\n- one\n- two\n\n```python\nprint(%u)\n```\n\n| a "
      "| b |\n|---|---|\n| %u | 2 |\n\n",
      i, i, i);
  OxMessageList *list = OX_MESSAGE_LIST (find (test, OX_TYPE_MESSAGE_LIST, NULL, NULL));
  GtkAdjustment *adjustment = ox_message_list_get_adjustment (list);
  ox_scene_engine_set_script (OX_SCENE_ANSWER, answer->str);
  send (test, "A question?");

  double longest = 0, total = gui_test_thread_ms ();
  guint n_turns = 0, n_away = 0;
  while (is_answering (test)) {
    double start = gui_test_thread_ms ();
    if (!g_main_context_iteration (NULL, FALSE))
      g_usleep (1000);
    longest = MAX (longest, gui_test_thread_ms () - start);
    n_turns++;
    n_away += !ox_message_list_get_following (list);
  }
  g_test_message ("%u bytes: longest turn %.1f ms, %u turns, %.0f ms in all", (guint) answer->len, longest, n_turns,
                  gui_test_thread_ms () - total);
  g_assert_cmpstr (ox_message_get_text (last_message (test)), ==, answer->str);
  g_assert_cmpuint (n_away, ==, 0);
  g_assert_cmpfloat (longest, <, TURN_MS);
  gui_test_wait (ox_chat_view_is_settled (test->chat), 10);
  gui_test_run_for (300);
  g_assert_cmpfloat (gtk_adjustment_get_value (adjustment), ==,
                     gtk_adjustment_get_upper (adjustment) - gtk_adjustment_get_page_size (adjustment));
}

/* Accessibility */

static gboolean
has_text (GtkWidget *widget)
{
  if (GTK_IS_LABEL (widget) && gtk_label_get_text (GTK_LABEL (widget))[0] != '\0')
    return TRUE;
  for (GtkWidget *child = gtk_widget_get_first_child (widget); child != NULL;
       child = gtk_widget_get_next_sibling (child))
    if (has_text (child))
      return TRUE;
  return FALSE;
}

static gboolean
has_name (GtkWidget *widget)
{
  if (gtk_test_accessible_has_property (GTK_ACCESSIBLE (widget), GTK_ACCESSIBLE_PROPERTY_LABEL) ||
      gtk_test_accessible_has_relation (GTK_ACCESSIBLE (widget), GTK_ACCESSIBLE_RELATION_LABELLED_BY))
    return TRUE;
  /* Buttons, rows and labels are named after their content. */
  return !GTK_IS_TEXT_VIEW (widget) && !GTK_IS_EDITABLE (widget) && has_text (widget);
}

/* What takes the focus by itself and not for its content. */
static gboolean
needs_name (GtkWidget *widget)
{
  if (!gtk_widget_get_mapped (widget) || !gtk_widget_get_focusable (widget))
    return FALSE;
  /* Inner parts of rows and entries, which pass on the name of the whole. */
  if (GTK_IS_SCROLLED_WINDOW (widget) || GTK_IS_VIEWPORT (widget) || GTK_IS_TEXT (widget) || GTK_IS_WINDOW (widget) ||
      GTK_IS_POPOVER (widget) || ADW_IS_DIALOG (widget))
    return FALSE;
  /* libadwaita's own search button of the preferences has a tooltip only. */
  if (gtk_widget_get_ancestor (widget, ADW_TYPE_PREFERENCES_DIALOG) != NULL &&
      gtk_widget_get_ancestor (widget, ADW_TYPE_HEADER_BAR) != NULL)
    return FALSE;
  return gtk_widget_get_ancestor (widget, ADW_TYPE_SPIN_ROW) == NULL &&
         gtk_widget_get_ancestor (widget, GTK_TYPE_WINDOW_CONTROLS) == NULL;
}

static guint
sweep (GtkWidget *widget, const char *page, guint *n_checked)
{
  guint nameless = 0;

  if (needs_name (widget)) {
    ++*n_checked;
    if (!has_name (widget)) {
      g_test_message ("%s: %s in %s has no name", page, G_OBJECT_TYPE_NAME (widget),
                      G_OBJECT_TYPE_NAME (gtk_widget_get_parent (widget)));
      nameless++;
    }
  }
  for (GtkWidget *child = gtk_widget_get_first_child (widget); child != NULL;
       child = gtk_widget_get_next_sibling (child))
    nameless += sweep (child, page, n_checked);
  return nameless;
}

static void
assert_names (Test *test, const char *page, guint at_least)
{
  guint n_checked = 0;
  g_assert_cmpuint (sweep (GTK_WIDGET (test->window), page, &n_checked), ==, 0);
  g_test_message ("%s: %u widgets", page, n_checked);
  g_assert_cmpuint (n_checked, >=, at_least);
}

static void
test_names_welcome (Test *test)
{
  gui_test_run_for (200);
  assert_names (test, "welcome", 3);
}

static void
test_names (Test *test)
{
  gui_test_run_for (200);
  assert_names (test, "new chat", 8);

  ox_scene_engine_set_script (OX_SCENE_FAILING, NULL);
  send (test, "A question?");
  gui_test_wait (!is_answering (test), 10);
  gui_test_run_for (200);
  assert_names (test, "error", 10);

  ox_scene_engine_set_script (OX_SCENE_ANSWER,
                              "Text, and\n\n```py\ncode\n```\n\n|a|b|\n|-|-|\n|1|2|\n\n[link](https://a.b)");
  ox_chat_view_regenerate (test->chat);
  gui_test_wait (!is_answering (test) && state_of (test) == OX_MESSAGE_COMPLETE, 10);
  gui_test_run_for (300);
  assert_names (test, "chat", 14);

  ox_scene_engine_set_script (OX_SCENE_TOOLS, "Text");
  send (test, "A question?");
  gui_test_wait (g_strcmp0 (ox_message_get_text (last_message (test)), "Text") == 0, 10);
  gui_test_run_for (300);
  assert_names (test, "tools", 18);
  ox_chat_view_stop (test->chat);
  gui_test_wait (!is_answering (test), 10);

  g_autoptr (OxPermission) permission = ox_permission_new ("send_mail", "{}");
  const struct {
    const char *page;
    AdwDialog *dialog;
  } dialogs[] = {
    { "permission", ox_permission_dialog_new (permission) },
    { "preferences", ox_preferences_new (ox_application_get_settings (test->application),
                                         ox_application_get_engine (test->application)) },
    { "shortcuts", ox_shortcuts_dialog_new () },
    { "models", ox_models_dialog_new (ox_application_get_library (test->application),
                                      ox_application_get_engine (test->application)) },
  };
  for (guint i = 0; i < G_N_ELEMENTS (dialogs); i++) {
    adw_dialog_present (dialogs[i].dialog, GTK_WIDGET (test->window));
    gui_test_run_for (500);
    assert_names (test, dialogs[i].page, 10);
    adw_dialog_force_close (dialogs[i].dialog);
    gui_test_run_for (500);
  }
}

static gboolean
is_of_user (GtkWidget *view)
{
  return view != NULL && ox_message_get_role (ox_message_view_get_message (OX_MESSAGE_VIEW (view))) == OX_ROLE_USER;
}

/* Messages are articles in a log, named after who wrote them. */
static void
test_roles (Test *test)
{
  send (test, "A question?");
  gui_test_wait (!is_answering (test), 10);
  GtkWidget *list = find (test, OX_TYPE_MESSAGE_LIST, NULL, NULL);
  /* Built from the last one up, in slices: on a busy machine the first one comes later. */
  gui_test_wait (is_of_user (gui_test_find (list, OX_TYPE_MESSAGE_VIEW, NULL, NULL)), 5);
  GtkWidget *message = gui_test_find (list, OX_TYPE_MESSAGE_VIEW, NULL, NULL);
  gtk_test_accessible_assert_role (GTK_ACCESSIBLE (gtk_widget_get_parent (gtk_widget_get_parent (message))),
                                   GTK_ACCESSIBLE_ROLE_LOG);
  gtk_test_accessible_assert_role (GTK_ACCESSIBLE (message), GTK_ACCESSIBLE_ROLE_ARTICLE);
  g_autoptr (GDateTime) now = g_date_time_new_from_unix_local (
    ox_message_get_created (ox_message_view_get_message (OX_MESSAGE_VIEW (message))) / G_USEC_PER_SEC);
  g_autofree char *name = g_date_time_format (now, "You, %R");
  gtk_test_accessible_assert_property (GTK_ACCESSIBLE (message), GTK_ACCESSIBLE_PROPERTY_LABEL, name);
}

/* Tab goes on from the composer, and around the whole window. */
static void
test_tab (Test *test)
{
  GtkWidget *text_view = GTK_WIDGET (ox_composer_get_text_view (test->composer));
  GtkWidget *window = GTK_WIDGET (test->window);
  gboolean left = FALSE, back = FALSE;

  gui_test_run_for (200);
  gtk_widget_grab_focus (text_view);
  for (guint i = 0; i < 40 && !back; i++) {
    gtk_widget_child_focus (window, GTK_DIR_TAB_FORWARD);
    GtkWidget *focus = gtk_root_get_focus (GTK_ROOT (window));
    left = left || focus != text_view;
    back = left && focus == text_view;
    if (focus == NULL)
      gtk_widget_child_focus (window, GTK_DIR_TAB_FORWARD);
  }
  g_assert_true (left);
  g_assert_true (back);
}

static const Case cases[] = {
  { "/window/send", test_send, FALSE },
  { "/window/stop", test_stop, FALSE },
  { "/window/fail", test_fail, FALSE },
  { "/window/switch", test_switch, FALSE },
  { "/window/delete", test_delete, FALSE },
  { "/window/row", test_row, FALSE },
  { "/window/search", test_search, FALSE },
  { "/window/long", test_long, FALSE },
  { "/window/stream", test_stream, FALSE },
  { "/window/names", test_names, FALSE },
  { "/window/names-welcome", test_names_welcome, TRUE },
  { "/window/roles", test_roles, FALSE },
  { "/window/tab", test_tab, FALSE },
};

int
main (int argc, char *argv[])
{
  gui_test_init (&argc, &argv);
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    g_test_add_data_func (cases[i].path, &cases[i], run_case);
  return g_test_run ();
}
