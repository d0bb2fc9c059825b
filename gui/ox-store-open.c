/* Opening and closing the store's file.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-store-db.h"

#include "ox-log.h"

#include <glib/gi18n.h>
#include <glib/gstdio.h>
#include <string.h>

/* Milliseconds to wait for another program that has the file locked: long at the start, where giving up means a whole run without
 * conversations, and short for a single write, which the next one makes good. */
#define OPEN_TIMEOUT_MS 30000
#define BUSY_TIMEOUT_MS 2000

typedef enum {
  CHECK_GOOD,
  CHECK_INDEX_DAMAGED, /* only the full-text index, which can be made anew */
  CHECK_DAMAGED,
} Check;

static Check
check (sqlite3 *db)
{
  sqlite3_stmt *statement = NULL;
  Check result = CHECK_GOOD;
  int rc = sqlite3_prepare_v2 (db, "PRAGMA quick_check", -1, &statement, NULL);

  while (rc == SQLITE_OK || rc == SQLITE_ROW) {
    const char *text;

    rc = sqlite3_step (statement);
    if (rc != SQLITE_ROW)
      break;
    text = (const char *) sqlite3_column_text (statement, 0);
    if (text == NULL || strcmp (text, "ok") == 0)
      continue;
    ox_info ("store", "Check of the library: %s", text);
    if (strstr (text, "FTS5") == NULL)
      result = CHECK_DAMAGED;
    else if (result == CHECK_GOOD)
      result = CHECK_INDEX_DAMAGED;
  }
  sqlite3_finalize (statement);
  /* A file that is busy or that may not be read is not therefore damaged. */
  if ((rc & 0xff) == SQLITE_CORRUPT || (rc & 0xff) == SQLITE_NOTADB)
    result = CHECK_DAMAGED;
  return result;
}

static int
read_int (sqlite3 *db, const char *sql)
{
  sqlite3_stmt *statement = NULL;
  int value = -1;

  if (sqlite3_prepare_v2 (db, sql, -1, &statement, NULL) == SQLITE_OK && sqlite3_step (statement) == SQLITE_ROW)
    value = sqlite3_column_int (statement, 0);
  sqlite3_finalize (statement);
  return value;
}

static sqlite3 *
open_file (const char *path, gboolean *read_only, GError **error)
{
  sqlite3 *db = NULL;
  int rc = sqlite3_open_v2 (path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);

  /* sqlite3_open_v2() does not touch the file yet. */
  if (rc == SQLITE_OK) {
    sqlite3_extended_result_codes (db, TRUE);
    sqlite3_busy_timeout (db, OPEN_TIMEOUT_MS);
    rc = sqlite3_exec (db, "PRAGMA schema_version", NULL, NULL, NULL);
  }
  *read_only = FALSE;
  /* In a folder that cannot be written to, a file in WAL mode can only be read as one that does not change. */
  if (((rc & 0xff) == SQLITE_CANTOPEN || (rc & 0xff) == SQLITE_READONLY) && g_file_test (path, G_FILE_TEST_EXISTS)) {
    g_autofree char *escaped = g_uri_escape_string (path, "/", TRUE);
    g_autofree char *uri = g_strdup_printf ("file:%s?immutable=1", escaped);

    sqlite3_close_v2 (db);
    db = NULL;
    rc = sqlite3_open_v2 (uri, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, NULL);
    *read_only = TRUE;
  }
  if (rc != SQLITE_OK && (rc & 0xff) != SQLITE_CORRUPT && (rc & 0xff) != SQLITE_NOTADB) {
    ox_store_set_error (db, rc, error);
    sqlite3_close_v2 (db);
    return NULL;
  }
  if (db != NULL && sqlite3_db_readonly (db, "main") == 1)
    *read_only = TRUE;
  return db;
}

static gboolean
prepare_for_writing (OxStoreDb *self, gboolean index_damaged, GError **error)
{
  /* secure_delete: what the user deletes is overwritten. */
  return ox_store_exec (self->db,
                        "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 500; "
                        "PRAGMA journal_size_limit = 4194304; PRAGMA secure_delete = ON; PRAGMA temp_store = MEMORY",
                        error) &&
         ox_store_migrate (self->db, error) &&
         (!index_damaged || ox_store_exec (self->db,
                                           "INSERT INTO message_index (message_index) VALUES ('rebuild'); "
                                           "INSERT INTO title_index (title_index) VALUES ('rebuild')",
                                           error)) &&
         /* What earlier runs left: answers cut off, deletions without undo any more, conversations in which nothing was written. */
         ox_store_exec (self->db,
                        "BEGIN IMMEDIATE;"
                        "UPDATE messages SET state = 'interrupted' WHERE state = 'writing';"
                        "DELETE FROM messages WHERE conversation_id IN"
                        "  (SELECT id FROM conversations WHERE deleted IS NOT NULL);"
                        "DELETE FROM conversations WHERE deleted IS NOT NULL;"
                        "DELETE FROM conversations WHERE coalesce(draft, '') = ''"
                        "  AND NOT EXISTS (SELECT 1 FROM messages WHERE conversation_id = conversations.id);"
                        "COMMIT",
                        error);
}

static OxStoreDb *
open_and_check (const char *path, gboolean may_salvage, GError **error)
{
  OxStoreDb *self = g_new0 (OxStoreDb, 1);
  Check result;

  self->statements = ox_store_statements_new ();
  self->db = open_file (path, &self->read_only, error);
  if (self->db == NULL) {
    ox_store_db_close (self);
    return NULL;
  }
  result = check (self->db);
  if (result == CHECK_DAMAGED && may_salvage && !self->read_only) {
    g_autofree char *aside = NULL;
    g_autofree char *name = NULL;
    guint n_saved = 0;

    ox_store_db_close (self);
    if (!ox_store_salvage (path, &n_saved, &aside, error))
      return NULL;
    self = open_and_check (path, FALSE, error);
    if (self == NULL)
      return NULL;
    name = g_filename_display_basename (aside);
    if (n_saved > 0)
      self->notice = g_strdup_printf (
        ngettext (
          "The library of conversations was damaged. %u conversation could be saved. The damaged file was kept as %s.",
          "The library of conversations was damaged. %u conversations could be saved. The damaged file was kept as %s.",
          n_saved),
        n_saved, name);
    else
      self->notice = g_strdup_printf (_ ("The library of conversations was damaged, and nothing in it could be read. "
                                         "The damaged file was kept as %s."),
                                      name);
    return self;
  }

  if (read_int (self->db, "PRAGMA user_version") > OX_STORE_DB_VERSION) {
    self->read_only = TRUE;
    self->notice =
      g_strdup (_ ("The library of conversations was made by a newer version of Oxinfer. It can be read, but "
                   "new messages will not be saved. Update Oxinfer to write to it."));
  } else if (self->read_only) {
    self->notice = g_strdup (_ ("The library of conversations cannot be written to. New messages will not be saved."));
  } else if (!prepare_for_writing (self, result == CHECK_INDEX_DAMAGED, error)) {
    ox_store_db_close (self);
    return NULL;
  }
  self->version = ox_store_read_version (self->db);
  sqlite3_busy_timeout (self->db, BUSY_TIMEOUT_MS);
  return self;
}

OxStoreDb *
ox_store_db_open (const char *path, GError **error)
{
  g_autofree char *folder = g_path_get_dirname (path);

  /* Private: what people write to a model is nobody else's business. A folder that cannot be made shows when opening. */
  g_mkdir_with_parents (folder, 0700);
  return open_and_check (path, TRUE, error);
}

void
ox_store_db_close (OxStoreDb *self)
{
  if (self == NULL)
    return;
  g_hash_table_unref (self->statements);
  sqlite3_close_v2 (self->db);
  g_free (self->notice);
  g_free (self);
}
