/* Conversations and their list: titles, drafts, order, days, deletion with undo, search.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-conversation-list.h"
#include "support.h"

#include <glib/gstdio.h>
#include <sqlite3.h>

typedef struct {
  char *folder;
  char *path;
  OxStore *store;
  OxConversationList *list;
} Fixture;

static OxConversationList *
load_list (OxStore *store)
{
  OxConversationList *list = ox_conversation_list_new (store);

  ox_conversation_list_load (list, NULL, NULL, NULL);
  run_until (ox_conversation_list_get_loaded (list));
  return list;
}

static void
set_up (Fixture *fixture, gconstpointer unused)
{
  fixture->folder = make_temporary_folder ();
  fixture->path = g_build_filename (fixture->folder, "library.db", NULL);
  fixture->store = open_store (fixture->path);
  fixture->list = load_list (fixture->store);
}

static void
tear_down (Fixture *fixture, gconstpointer unused)
{
  g_assert_finalize_object (fixture->list);
  close_store (fixture->store);
  remove_folder (fixture->folder);
  g_free (fixture->folder);
  g_free (fixture->path);
}

static void
reopen (Fixture *fixture)
{
  ox_conversation_list_flush (fixture->list);
  g_assert_finalize_object (fixture->list);
  close_store (fixture->store);
  fixture->store = open_store (fixture->path);
  fixture->list = load_list (fixture->store);
}

static guint
length (Fixture *fixture)
{
  return g_list_model_get_n_items (G_LIST_MODEL (fixture->list));
}

/* Owned by the list. */
static OxConversation *
at (Fixture *fixture, guint i)
{
  g_autoptr (OxConversation) conversation = g_list_model_get_item (G_LIST_MODEL (fixture->list), i);

  g_assert_nonnull (conversation);
  return conversation;
}

static void
append (OxConversation *conversation, OxRole role, const char *text)
{
  g_autoptr (OxMessage) message = ox_message_new (role, text);
  g_autoptr (GAsyncResult) result = NULL;

  ox_conversation_append (conversation, &message, 1, keep_result, &result);
  run_until (result != NULL);
  g_assert_true (ox_conversation_append_finish (conversation, result, NULL));
}

/* A conversation with one message. Owned by the list. */
static OxConversation *
add (Fixture *fixture, const char *text)
{
  g_autoptr (OxConversation) conversation = ox_conversation_list_create (fixture->list);

  append (conversation, OX_ROLE_USER, text);
  return conversation;
}

static void
assert_titles (Fixture *fixture, const char *expected)
{
  g_autoptr (GString) titles = g_string_new (NULL);

  for (guint i = 0; i < length (fixture); i++)
    g_string_append_printf (titles, "%s%s", i > 0 ? ", " : "", ox_conversation_get_title (at (fixture, i)));
  g_assert_cmpstr (titles->str, ==, expected);
}

static void
test_title (Fixture *fixture, gconstpointer unused)
{
  static const struct {
    const char *text;
    const char *title;
  } cases[] = {
    { "Short", "Short" },
    { "\n\n  # Heading of it \nand more", "Heading of it" },
    { "Why does the moon seem larger near the horizon than it does high in the sky?",
      "Why does the moon seem larger near the horizon than it does…" },
    { "日本語の文章は単語の間に空白がないので、六十文字を超える題名は文字の途中ではなく文字の境目で切らなければならない"
      "。そうしないと壊れる。おわり。",
      NULL },
    { " \n\t ", "New Chat" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    const char *title = ox_conversation_get_title (add (fixture, cases[i].text));

    g_assert_true (g_utf8_validate (title, -1, NULL));
    g_assert_cmpint (g_utf8_strlen (title, -1), <=, 61);
    if (cases[i].title != NULL)
      g_assert_cmpstr (title, ==, cases[i].title);
  }
}

static void
test_rename (Fixture *fixture, gconstpointer unused)
{
  OxConversation *conversation = add (fixture, "The first words");

  ox_conversation_rename (conversation, "  My name ");
  append (conversation, OX_ROLE_USER, "More words");
  assert_titles (fixture, "My name");
  reopen (fixture);
  assert_titles (fixture, "My name");
  conversation = at (fixture, 0);
  ox_conversation_load (conversation, NULL, NULL, NULL);
  run_until (ox_conversation_get_loaded (conversation));
  ox_conversation_rename (conversation, "");
  assert_titles (fixture, "The first words");
  reopen (fixture);
  assert_titles (fixture, "The first words");
}

static void
check_model_cb (GListModel *model, guint position, guint removed, guint added, GPtrArray *mirror)
{
  /* A mirror kept by the signals alone is what the model is. */
  g_assert_cmpuint (position + removed, <=, mirror->len);
  if (removed > 0)
    g_ptr_array_remove_range (mirror, position, removed);
  for (guint i = 0; i < added; i++)
    g_ptr_array_insert (mirror, position + i, g_list_model_get_item (model, position + i));
  g_assert_cmpuint (mirror->len, ==, g_list_model_get_n_items (model));
  for (guint i = 0; i < mirror->len; i++) {
    g_autoptr (GObject) item = g_list_model_get_item (model, i);
    g_assert_true (item == mirror->pdata[i]);
  }
}

static void
test_order (Fixture *fixture, gconstpointer unused)
{
  g_autoptr (GPtrArray) mirror = g_ptr_array_new_with_free_func (g_object_unref);
  gulong handler = g_signal_connect (fixture->list, "items-changed", G_CALLBACK (check_model_cb), mirror);
  g_autoptr (OxConversation) fresh = ox_conversation_list_create (fixture->list);
  g_autoptr (OxConversation) same = ox_conversation_list_create (fixture->list);
  OxConversation *a;
  OxConversation *b;

  /* A new chat is not in the list, and there is only one. */
  g_assert_true (fresh == same);
  g_assert_cmpuint (length (fixture), ==, 0);
  a = add (fixture, "a");
  g_assert_true (a == fresh);
  b = add (fixture, "b");
  add (fixture, "c");
  assert_titles (fixture, "c, b, a");
  append (a, OX_ROLE_USER, "again");
  assert_titles (fixture, "a, c, b");
  ox_conversation_set_pinned (b, TRUE);
  assert_titles (fixture, "b, a, c");
  add (fixture, "d");
  assert_titles (fixture, "b, d, a, c");
  ox_conversation_set_pinned (a, TRUE);
  assert_titles (fixture, "a, b, d, c");
  ox_conversation_list_delete (fixture->list, b);
  assert_titles (fixture, "a, d, c");
  g_signal_handler_disconnect (fixture->list, handler);
  g_ptr_array_set_size (mirror, 0);
  g_clear_object (&fresh);
  g_clear_object (&same);
  reopen (fixture);
  assert_titles (fixture, "a, d, c");
}

static void
test_sections (Fixture *fixture, gconstpointer unused)
{
  static const struct {
    const char *id;
    int days_ago;
    gboolean pinned;
    const char *section;
  } rows[] = {
    { "pinned", 400, TRUE, "Pinned" },      { "future", -3, FALSE, "Today" },
    { "today", 0, FALSE, "Today" },         { "yesterday", 1, FALSE, "Yesterday" },
    { "two", 2, FALSE, "Previous 7 Days" }, { "seven", 7, FALSE, "Previous 7 Days" },
    { "month", 45, FALSE, NULL },           { "year", 400, FALSE, NULL },
  };
  g_autoptr (GDateTime) now = g_date_time_new_now_local ();
  g_autoptr (GDateTime) noon = g_date_time_new_local (g_date_time_get_year (now), g_date_time_get_month (now),
                                                      g_date_time_get_day_of_month (now), 12, 0, 0);
  guint start;
  guint end;

  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autoptr (GDateTime) time = g_date_time_add_days (noon, -rows[i].days_ago);
    OxConversationRecord record = { .id = (char *) rows[i].id,
                                    .title = (char *) rows[i].id,
                                    .pinned = rows[i].pinned,
                                    .updated = g_date_time_to_unix_usec (time) };
    GPtrArray *messages = g_ptr_array_new_with_free_func ((GDestroyNotify) ox_message_record_free);
    g_autoptr (OxMessage) message = ox_message_new (OX_ROLE_USER, "x");
    g_ptr_array_add (messages, ox_message_to_record (message, rows[i].id, 0));
    ox_store_add_messages (fixture->store, &record, messages, NULL, NULL);
  }
  reopen (fixture);
  g_assert_cmpuint (length (fixture), ==, G_N_ELEMENTS (rows));
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autofree char *title = ox_conversation_list_dup_section_title (fixture->list, at (fixture, i));
    g_autoptr (GDateTime) time = g_date_time_add_days (noon, -rows[i].days_ago);
    g_autofree char *month =
      g_date_time_format (time, g_date_time_get_year (time) == g_date_time_get_year (now) ? "%OB" : "%OB %Y");

    g_assert_cmpstr (ox_conversation_get_id (at (fixture, i)), ==, rows[i].id);
    g_assert_cmpstr (title, ==, rows[i].section != NULL ? rows[i].section : month);
  }
  gtk_section_model_get_section (GTK_SECTION_MODEL (fixture->list), 2, &start, &end);
  g_assert_cmpuint (start, ==, 1);
  g_assert_cmpuint (end, ==, 3);
  gtk_section_model_get_section (GTK_SECTION_MODEL (fixture->list), 0, &start, &end);
  g_assert_cmpuint (start, ==, 0);
  g_assert_cmpuint (end, ==, 1);
  gtk_section_model_get_section (GTK_SECTION_MODEL (fixture->list), 8, &start, &end);
  g_assert_cmpuint (start, ==, 8);
  g_assert_cmpuint (end, ==, G_MAXUINT);
}

static void
test_draft (Fixture *fixture, gconstpointer unused)
{
  g_autofree char *id = NULL;
  OxConversation *conversation = ox_conversation_list_create (fixture->list);
  sqlite3_stmt *statement;
  sqlite3 *db;

  ox_conversation_set_draft (conversation, "A thou");
  ox_conversation_set_draft (conversation, "A thought");
  /* Saved by itself within a second: a crash loses no more. */
  run_for (1000);
  id = g_strdup (ox_conversation_get_id (conversation));
  g_object_unref (conversation);
  reopen (fixture);
  g_assert_cmpuint (length (fixture), ==, 0);
  conversation = ox_conversation_list_create (fixture->list);
  g_assert_cmpstr (ox_conversation_get_id (conversation), ==, id);
  g_assert_cmpstr (ox_conversation_get_draft (conversation), ==, "A thought");
  run_until (ox_conversation_get_loaded (conversation));
  ox_conversation_set_draft (conversation, "");
  g_object_unref (conversation);
  reopen (fixture);
  /* Nothing of an empty chat stays. */
  g_assert_cmpint (sqlite3_open (fixture->path, &db), ==, SQLITE_OK);
  g_assert_cmpint (sqlite3_prepare_v2 (db, "SELECT 1 FROM conversations", -1, &statement, NULL), ==, SQLITE_OK);
  g_assert_cmpint (sqlite3_step (statement), ==, SQLITE_DONE);
  sqlite3_finalize (statement);
  sqlite3_close (db);
}

static void
test_settings (Fixture *fixture, gconstpointer unused)
{
  OxConversation *conversation = add (fixture, "x");
  const char *prompt;
  double temperature;

  ox_conversation_set_model_path (conversation, "/models/m.gguf");
  ox_conversation_set_settings (conversation,
                                g_variant_new_parsed ("{'system-prompt': <'It\\'s “so”\\n'>, 'temperature': <0.1>}"));
  reopen (fixture);
  conversation = at (fixture, 0);
  g_assert_cmpstr (ox_conversation_get_model_path (conversation), ==, "/models/m.gguf");
  g_assert_true (g_variant_lookup (ox_conversation_get_settings (conversation), "system-prompt", "&s", &prompt));
  g_assert_cmpstr (prompt, ==, "It's “so”\n");
  g_assert_true (g_variant_lookup (ox_conversation_get_settings (conversation), "temperature", "d", &temperature));
  g_assert_cmpfloat (temperature, ==, 0.1);
}

static void
test_load (Fixture *fixture, gconstpointer unused)
{
  OxConversation *conversation = add (fixture, "one");
  g_autoptr (GAsyncResult) first = NULL;
  g_autoptr (GAsyncResult) second = NULL;

  append (conversation, OX_ROLE_ASSISTANT, "two");
  append (conversation, OX_ROLE_USER, "three");
  ox_conversation_remove_message (conversation, ox_conversation_get_message (conversation, 1));
  append (conversation, OX_ROLE_ASSISTANT, "four");
  append (conversation, OX_ROLE_USER, "five");
  ox_conversation_remove_from (conversation, ox_conversation_get_message (conversation, 3));
  reopen (fixture);

  conversation = at (fixture, 0);
  g_assert_false (ox_conversation_get_loaded (conversation));
  g_assert_cmpuint (ox_conversation_get_length (conversation), ==, 0);
  ox_conversation_load (conversation, NULL, keep_result, &first);
  ox_conversation_load (conversation, NULL, keep_result, &second);
  run_until (first != NULL && second != NULL);
  g_assert_true (ox_conversation_load_finish (conversation, first, NULL));
  g_assert_true (ox_conversation_load_finish (conversation, second, NULL));
  g_assert_cmpuint (ox_conversation_get_length (conversation), ==, 3);
  g_assert_cmpstr (ox_message_get_text (ox_conversation_get_message (conversation, 0)), ==, "one");
  g_assert_cmpstr (ox_message_get_text (ox_conversation_get_message (conversation, 1)), ==, "three");
  g_assert_cmpstr (ox_message_get_text (ox_conversation_get_message (conversation, 2)), ==, "four");
}

static void
test_deletion (Fixture *fixture, gconstpointer unused)
{
  g_autoptr (OxConversation) a = g_object_ref (add (fixture, "a"));
  g_autoptr (OxConversation) b = g_object_ref (add (fixture, "b"));

  ox_conversation_list_delete (fixture->list, a);
  ox_conversation_list_undelete (fixture->list, a);
  ox_conversation_list_undelete (fixture->list, a);
  /* The toast goes after its button was pressed. */
  ox_conversation_list_purge (fixture->list, a);
  assert_titles (fixture, "b, a");
  ox_conversation_list_delete (fixture->list, b);
  ox_conversation_list_purge (fixture->list, b);
  assert_titles (fixture, "a");
  g_clear_object (&a);
  g_clear_object (&b);
  reopen (fixture);
  assert_titles (fixture, "a");
  ox_conversation_list_delete (fixture->list, at (fixture, 0));
  reopen (fixture);
  assert_titles (fixture, "");
}

static gboolean
get_searching (OxConversationList *list)
{
  gboolean searching;

  g_object_get (list, "searching", &searching, NULL);
  return searching;
}

static void
test_search (Fixture *fixture, gconstpointer unused)
{
  OxConversation *gull;

  gull = add (fixture, "The herring gull & its habits");
  append (gull, OX_ROLE_ASSISTANT, "It eats chips.");
  add (fixture, "Something else");
  add (fixture, "Gulls, again");

  ox_conversation_list_set_search (fixture->list, "gull");
  g_assert_true (get_searching (fixture->list));
  ox_conversation_list_set_search (fixture->list, "chips");
  ox_conversation_list_set_search (fixture->list, "gul");
  run_until (!get_searching (fixture->list));
  assert_titles (fixture, "Gulls, again, The herring gull & its habits");
  g_assert_cmpstr (ox_conversation_get_snippet (gull), ==, "The herring <b>gull</b> &amp; its habits");
  ox_conversation_list_set_search (fixture->list, "chips");
  run_until (!get_searching (fixture->list));
  assert_titles (fixture, "The herring gull & its habits");
  ox_conversation_list_set_search (fixture->list, "walrus");
  run_until (!get_searching (fixture->list));
  g_assert_cmpuint (length (fixture), ==, 0);
  ox_conversation_list_set_search (fixture->list, "  ");
  g_assert_cmpuint (length (fixture), ==, 3);
  g_assert_null (ox_conversation_get_snippet (gull));
}

/* Thousands of conversations and a long one: the window stays alive while they come. */
static void
test_large (Fixture *fixture, gconstpointer unused)
{
  sqlite3 *db;
  gint64 longest = 0;
  gint64 last = g_get_monotonic_time ();
  OxConversation *conversation;

  g_assert_cmpint (sqlite3_open (fixture->path, &db), ==, SQLITE_OK);
  g_assert_cmpint (
    sqlite3_exec (
      db,
      "BEGIN;"
      "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 2999)"
      " INSERT INTO conversations (id, title, updated) SELECT 'c' || i, 'Title ' || i, i * 10000000000 FROM n;"
      "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 5999)"
      " INSERT INTO messages (id, conversation_id, position, role, text, state)"
      " SELECT 'm' || i, 'c' || min(i, 2999), i, 'user', 'text of ' || i, 'complete' FROM n;"
      "COMMIT",
      NULL, NULL, NULL),
    ==, SQLITE_OK);
  sqlite3_close (db);
  g_assert_finalize_object (fixture->list);
  fixture->list = ox_conversation_list_new (fixture->store);
  ox_conversation_list_load (fixture->list, NULL, NULL, NULL);
  while (!ox_conversation_list_get_loaded (fixture->list)) {
    last = g_get_monotonic_time ();
    iterate ();
    longest = MAX (longest, g_get_monotonic_time () - last);
  }
  g_assert_cmpuint (length (fixture), ==, 3000);
  conversation = ox_conversation_list_find (fixture->list, "c2999");
  ox_conversation_load (conversation, NULL, NULL, NULL);
  while (!ox_conversation_get_loaded (conversation)) {
    last = g_get_monotonic_time ();
    iterate ();
    longest = MAX (longest, g_get_monotonic_time () - last);
  }
  g_assert_cmpuint (ox_conversation_get_length (conversation), ==, 3001);
  g_test_message ("longest turn of the main loop: %.1f ms", (double) longest / 1000);
#ifndef __SANITIZE_ADDRESS__
  g_assert_cmpint (longest, <, 250000);
#endif
}

/* A library that cannot be opened, because a folder has its name: the list is empty and ready, and conversations can be begun. */
static void
test_unreadable (Fixture *fixture, gconstpointer unused)
{
  g_autofree char *path = g_build_filename (fixture->folder, "folder.db", NULL);
  OxStore *store;
  OxConversationList *list;
  OxConversation *conversation;

  g_assert_no_errno (g_mkdir (path, 0700));
  store = ox_store_new (path);
  ox_store_open (store, NULL, NULL);
  list = load_list (store);
  g_assert_cmpuint (g_list_model_get_n_items (G_LIST_MODEL (list)), ==, 0);
  conversation = ox_conversation_list_create (list);
  g_assert_nonnull (conversation);
  g_object_unref (conversation);
  g_object_unref (list);
  ox_store_close (store, -1);
  g_object_unref (store);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, G_TEST_OPTION_ISOLATE_DIRS, NULL);
#define ADD(name, function) g_test_add ("/conversations/" name, Fixture, NULL, set_up, function, tear_down)
  ADD ("title", test_title);
  ADD ("rename", test_rename);
  ADD ("order", test_order);
  ADD ("sections", test_sections);
  ADD ("draft", test_draft);
  ADD ("settings", test_settings);
  ADD ("load", test_load);
  ADD ("deletion", test_deletion);
  ADD ("search", test_search);
  ADD ("large", test_large);
  ADD ("unreadable", test_unreadable);
  return g_test_run ();
}
