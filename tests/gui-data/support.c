/* See support.h.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "support.h"

#include <glib/gstdio.h>
#include <sqlite3.h>
#include <string.h>

static gboolean
wake_cb (gpointer unused)
{
  return G_SOURCE_REMOVE;
}

void
iterate (void)
{
  guint source = g_timeout_add (10, wake_cb, NULL);

  g_main_context_iteration (NULL, TRUE);
  /* It may be gone already. */
  if (g_main_context_find_source_by_id (NULL, source) != NULL)
    g_source_remove (source);
}

void
run_for (guint milliseconds)
{
  gint64 end = g_get_monotonic_time () + milliseconds * 1000;

  while (g_get_monotonic_time () < end)
    iterate ();
}

void
settle (void)
{
  while (g_main_context_iteration (NULL, FALSE))
    ;
}

void
keep_result (GObject *source, GAsyncResult *result, gpointer user_data)
{
  *(GAsyncResult **) user_data = g_object_ref (result);
}

char *
make_temporary_folder (void)
{
  g_autoptr (GError) error = NULL;
  char *folder = g_dir_make_tmp ("oxinfer-XXXXXX", &error);

  g_assert_no_error (error);
  return folder;
}

void
remove_folder (const char *path)
{
  g_autoptr (GDir) dir = g_dir_open (path, 0, NULL);
  const char *name;

  while (dir != NULL && (name = g_dir_read_name (dir)) != NULL) {
    g_autofree char *child = g_build_filename (path, name, NULL);
    if (g_file_test (child, G_FILE_TEST_IS_DIR) && !g_file_test (child, G_FILE_TEST_IS_SYMLINK))
      remove_folder (child);
    else
      g_unlink (child);
  }
  g_rmdir (path);
}

/* ---- Store ---- */

OxStore *
open_store (const char *path)
{
  OxStore *store = ox_store_new (path);
  g_autoptr (GAsyncResult) result = NULL;

  ox_store_open (store, keep_result, &result);
  run_until (result != NULL);
  ox_store_open_finish (store, result, NULL);
  return store;
}

void
close_store (OxStore *store)
{
  g_assert_true (ox_store_close (store, -1));
  settle ();
  g_assert_finalize_object (store);
}

static GPtrArray *
finish_list (OxStore *store, GAsyncResult **result)
{
  g_autoptr (GError) error = NULL;
  GPtrArray *list;

  run_until (*result != NULL);
  list = ox_store_list_finish (store, *result, &error);
  g_assert_no_error (error);
  g_clear_object (result);
  return list;
}

GPtrArray *
list_conversations (OxStore *store)
{
  GAsyncResult *result = NULL;

  ox_store_list_conversations (store, NULL, keep_result, &result);
  return finish_list (store, &result);
}

GPtrArray *
list_messages (OxStore *store, const char *conversation_id)
{
  GAsyncResult *result = NULL;

  ox_store_list_messages (store, conversation_id, NULL, keep_result, &result);
  return finish_list (store, &result);
}

GPtrArray *
search (OxStore *store, const char *text)
{
  GAsyncResult *result = NULL;

  ox_store_search (store, text, 100, NULL, keep_result, &result);
  return finish_list (store, &result);
}

gboolean
wait_for_write (OxStore *store, GAsyncResult **result, GError **error)
{
  gboolean ok;

  run_until (*result != NULL);
  ok = ox_store_write_finish (store, *result, error);
  g_clear_object (result);
  return ok;
}

gboolean
add_message (OxStore *store, const char *conversation_id, const char *message_id, const char *text, GError **error)
{
  OxConversationRecord conversation = { .id = (char *) conversation_id, .created = 1, .updated = g_get_real_time () };
  GPtrArray *messages = g_ptr_array_new_with_free_func ((GDestroyNotify) ox_message_record_free);
  OxMessageRecord *record = g_new0 (OxMessageRecord, 1);
  GAsyncResult *result = NULL;

  record->id = g_strdup (message_id);
  record->conversation_id = g_strdup (conversation_id);
  record->position = g_get_monotonic_time ();
  record->role = text != NULL ? OX_ROLE_USER : OX_ROLE_ASSISTANT;
  record->text = g_strdup (text != NULL ? text : "");
  record->state = text != NULL ? OX_MESSAGE_COMPLETE : OX_MESSAGE_WRITING;
  record->error_code = -1;
  g_ptr_array_add (messages, record);
  ox_store_add_messages (store, &conversation, messages, keep_result, &result);
  return wait_for_write (store, &result, error);
}

void
run_sql (const char *path, const char *sql)
{
  char *message = NULL;
  sqlite3 *db = NULL;

  g_assert_cmpint (sqlite3_open (path, &db), ==, SQLITE_OK);
  if (sqlite3_exec (db, sql, NULL, NULL, &message) != SQLITE_OK)
    g_error ("%s: %s", sql, message);
  sqlite3_close (db);
}

int
query_int (const char *path, const char *sql)
{
  sqlite3_stmt *statement = NULL;
  sqlite3 *db = NULL;
  int value;

  g_assert_cmpint (sqlite3_open (path, &db), ==, SQLITE_OK);
  g_assert_cmpint (sqlite3_prepare_v2 (db, sql, -1, &statement, NULL), ==, SQLITE_OK);
  g_assert_cmpint (sqlite3_step (statement), ==, SQLITE_ROW);
  value = sqlite3_column_int (statement, 0);
  sqlite3_finalize (statement);
  sqlite3_close (db);
  return value;
}
