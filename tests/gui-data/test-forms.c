/* The store's file in the forms of other versions: older ones are brought up to date, newer ones only read.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-store-db.h"
#include "support.h"

#include <string.h>

typedef struct {
  char *folder;
  char *path;
} Fixture;

static void
set_up (Fixture *fixture, gconstpointer unused)
{
  fixture->folder = make_temporary_folder ();
  fixture->path = g_build_filename (fixture->folder, "data", "library.db", NULL);
}

static void
tear_down (Fixture *fixture, gconstpointer unused)
{
  remove_folder (fixture->folder);
  g_free (fixture->folder);
  g_free (fixture->path);
}

static OxMessageRecord *
message_at (GPtrArray *messages, guint i)
{
  g_assert_cmpuint (i, <, messages->len);
  return messages->pdata[i];
}

/* From the third form on. */
#define DROP_NEW_COLUMNS                                                                                               \
  "ALTER TABLE messages DROP COLUMN drafted_tokens; ALTER TABLE messages DROP COLUMN accepted_tokens;"                 \
  "ALTER TABLE messages DROP COLUMN tools; ALTER TABLE messages DROP COLUMN thinking_seconds;"                         \
  "ALTER TABLE messages DROP COLUMN dropped_messages;"

/* A file of the first form, with content, gets all later forms, and what is in it can be searched. */
static void
test_migration (Fixture *fixture, gconstpointer unused)
{
  OxStore *store = open_store (fixture->path);
  g_autoptr (GPtrArray) hits = NULL;
  g_autoptr (GPtrArray) messages = NULL;

  close_store (store);
  run_sql (fixture->path, "DROP TABLE title_index; DROP TABLE message_index; DROP VIEW message_texts;"
                          "DROP TRIGGER message_inserted; DROP TRIGGER message_deleted; DROP TRIGGER message_left;"
                          "DROP TRIGGER message_came; DROP TRIGGER title_inserted; DROP TRIGGER title_deleted; DROP "
                          "TRIGGER title_changed;" DROP_NEW_COLUMNS "PRAGMA user_version = 1;"
                          "INSERT INTO conversations (id, title, updated) VALUES ('old', 'From before', 5);"
                          "INSERT INTO messages (id, conversation_id, position, role, text, state, end_reason)"
                          "  VALUES ('m', 'old', 0, 'user', 'a walrus', 'complete', 3);");
  store = open_store (fixture->path);
  g_assert_cmpint (ox_store_get_state (store), ==, OX_STORE_OPEN);
  hits = search (store, "walr");
  g_assert_cmpuint (hits->len, ==, 1);
  messages = list_messages (store, "old");
  g_assert_cmpint (message_at (messages, 0)->end_reason, ==, OX_END_CANCELLED);
  g_assert_null (message_at (messages, 0)->tools);
  close_store (store);
  g_assert_cmpint (query_int (fixture->path, "PRAGMA user_version"), ==, OX_STORE_DB_VERSION);
}

/* Damage is found before the tables are brought up to date: rows of the second form come through, too. */
static void
test_damaged_old_form (Fixture *fixture, gconstpointer unused)
{
  OxStore *store = open_store (fixture->path);
  g_autoptr (GPtrArray) messages = NULL;
  g_autofree char *content = NULL;
  g_autofree char *long_text = g_strnfill (3000, 'x');
  gsize length;

  for (guint i = 0; i < 60; i++) {
    g_autofree char *id = g_strdup_printf ("m%u", i);
    g_assert_true (add_message (store, "c1", id, long_text, NULL));
  }
  close_store (store);
  run_sql (fixture->path, DROP_NEW_COLUMNS "PRAGMA user_version = 2; UPDATE messages SET end_reason = 4");
  g_assert_true (g_file_get_contents (fixture->path, &content, &length, NULL));
  g_assert_true (g_file_set_contents (fixture->path, content, (gssize) length / 2, NULL));
  store = open_store (fixture->path);
  g_assert_cmpint (ox_store_get_state (store), ==, OX_STORE_OPEN);
  messages = list_messages (store, "c1");
  g_test_message ("%u of 60 messages saved", messages->len);
  g_assert_cmpuint (messages->len, >, 10);
  g_assert_cmpint (message_at (messages, 0)->end_reason, ==, OX_END_ERROR);
  close_store (store);
}

static void
test_newer_version (Fixture *fixture, gconstpointer unused)
{
  OxStore *store = open_store (fixture->path);
  g_autoptr (GPtrArray) conversations = NULL;
  g_autoptr (GError) error = NULL;

  g_assert_true (add_message (store, "c1", "m1", "hello", NULL));
  close_store (store);
  run_sql (fixture->path, "ALTER TABLE messages ADD COLUMN wings INTEGER; PRAGMA user_version = 999");

  store = open_store (fixture->path);
  g_assert_cmpint (ox_store_get_state (store), ==, OX_STORE_READ_ONLY);
  g_assert_nonnull (strstr (ox_store_get_notice (store), "newer"));
  conversations = list_conversations (store);
  g_assert_cmpuint (conversations->len, ==, 1);
  g_assert_false (add_message (store, "c1", "m2", "more", &error));
  g_assert_error (error, OX_STORE_ERROR, OX_STORE_ERROR_READ_ONLY);
  close_store (store);
  g_assert_cmpint (query_int (fixture->path, "SELECT count(*) FROM messages"), ==, 1);
  g_assert_cmpint (query_int (fixture->path, "PRAGMA user_version"), ==, 999);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, G_TEST_OPTION_ISOLATE_DIRS, NULL);
#define ADD(name, function) g_test_add ("/forms/" name, Fixture, NULL, set_up, function, tear_down)
  ADD ("older", test_migration);
  ADD ("older-and-damaged", test_damaged_old_form);
  ADD ("newer", test_newer_version);
  return g_test_run ();
}
