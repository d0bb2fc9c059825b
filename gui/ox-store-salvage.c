/* The store's tables through the versions, and saving what can be saved from a damaged file.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-store-db.h"

#include "ox-log.h"

#include <glib/gstdio.h>

/* Step N brings a file of version N to N + 1. Steps are never changed once released; a new form of the tables is a new step. No
 * column but ids has a constraint: a row with a hole in it is better kept. Times are microseconds since 1970, UTC. */
static const char *const migrations[OX_STORE_DB_VERSION] = {
  /* 0: an empty file */
  "CREATE TABLE conversations ("
  "  n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, title TEXT, title_is_custom INTEGER, pinned INTEGER,"
  "  created INTEGER, updated INTEGER, draft TEXT, model_path TEXT, settings TEXT, deleted INTEGER);"
  "CREATE TABLE messages ("
  "  n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, conversation_id TEXT NOT NULL, position INTEGER,"
  "  role TEXT, text TEXT, thinking TEXT, state TEXT, error_code INTEGER, error TEXT, error_details TEXT,"
  "  model_name TEXT, created INTEGER, end_reason INTEGER, prompt_tokens INTEGER, reused_tokens INTEGER,"
  "  answer_tokens INTEGER, context_length INTEGER, prefill_seconds REAL, decode_seconds REAL,"
  "  first_token_seconds REAL);"
  "CREATE INDEX messages_by_conversation ON messages (conversation_id, position);",

  /* 1: full-text search. An answer enters the index when it is finished: indexing each half second of it would cost the square
   * of its length. The index's content is a view for the same reason: so that 'rebuild' leaves out the same rows. */
  "CREATE VIEW message_texts AS SELECT n, text FROM messages WHERE state IS NOT 'writing';"
  "CREATE VIRTUAL TABLE message_index USING fts5 ("
  "  text, content = 'message_texts', content_rowid = 'n', tokenize = 'unicode61 remove_diacritics 2', prefix = '2 3');"
  "CREATE TRIGGER message_inserted AFTER INSERT ON messages WHEN new.state IS NOT 'writing' BEGIN"
  "  INSERT INTO message_index (rowid, text) VALUES (new.n, new.text); END;"
  "CREATE TRIGGER message_deleted AFTER DELETE ON messages WHEN old.state IS NOT 'writing' BEGIN"
  "  INSERT INTO message_index (message_index, rowid, text) VALUES ('delete', old.n, old.text); END;"
  "CREATE TRIGGER message_left AFTER UPDATE OF text, state ON messages WHEN old.state IS NOT 'writing' BEGIN"
  "  INSERT INTO message_index (message_index, rowid, text) VALUES ('delete', old.n, old.text); END;"
  "CREATE TRIGGER message_came AFTER UPDATE OF text, state ON messages WHEN new.state IS NOT 'writing' BEGIN"
  "  INSERT INTO message_index (rowid, text) VALUES (new.n, new.text); END;"
  "CREATE VIRTUAL TABLE title_index USING fts5 ("
  "  title, content = 'conversations', content_rowid = 'n', tokenize = 'unicode61 remove_diacritics 2', prefix = '2 "
  "3');"
  "CREATE TRIGGER title_inserted AFTER INSERT ON conversations BEGIN"
  "  INSERT INTO title_index (rowid, title) VALUES (new.n, new.title); END;"
  "CREATE TRIGGER title_deleted AFTER DELETE ON conversations BEGIN"
  "  INSERT INTO title_index (title_index, rowid, title) VALUES ('delete', old.n, old.title); END;"
  "CREATE TRIGGER title_changed AFTER UPDATE OF title ON conversations WHEN old.title IS NOT new.title BEGIN"
  "  INSERT INTO title_index (title_index, rowid, title) VALUES ('delete', old.n, old.title);"
  "  INSERT INTO title_index (rowid, title) VALUES (new.n, new.title); END;"
  /* As PRAGMA secure_delete for the rest: words of what is deleted do not stay behind. */
  "INSERT INTO message_index (message_index, rank) VALUES ('secure-delete', 1);"
  "INSERT INTO title_index (title_index, rank) VALUES ('secure-delete', 1);"
  "INSERT INTO message_index (message_index) VALUES ('rebuild');"
  "INSERT INTO title_index (title_index) VALUES ('rebuild');",

  /* 2: calls of tools, as JSON, and what else is told of an answer */
  "ALTER TABLE messages ADD COLUMN drafted_tokens INTEGER;"
  "ALTER TABLE messages ADD COLUMN accepted_tokens INTEGER;"
  "ALTER TABLE messages ADD COLUMN tools TEXT;"
  "ALTER TABLE messages ADD COLUMN thinking_seconds REAL;"
  "ALTER TABLE messages ADD COLUMN dropped_messages INTEGER;"
  /* A reason has come in between. */
  "UPDATE messages SET end_reason = end_reason + 1 WHERE end_reason >= 3;",
};

int
ox_store_read_version (sqlite3 *db)
{
  sqlite3_stmt *statement = NULL;
  int version = 0;

  if (sqlite3_prepare_v2 (db, "PRAGMA user_version", -1, &statement, NULL) == SQLITE_OK &&
      sqlite3_step (statement) == SQLITE_ROW)
    version = sqlite3_column_int (statement, 0);
  sqlite3_finalize (statement);
  return version;
}

gboolean
ox_store_migrate (sqlite3 *db, GError **error)
{
  for (int version = MAX (ox_store_read_version (db), 0); version < OX_STORE_DB_VERSION; version++) {
    g_autofree char *sql =
      g_strdup_printf ("BEGIN IMMEDIATE; %s PRAGMA user_version = %d; COMMIT", migrations[version], version + 1);

    ox_debug ("store", "Bringing the library from form %d to %d", version, version + 1);
    if (!ox_store_exec (db, sql, error)) {
      sqlite3_exec (db, "ROLLBACK", NULL, NULL, NULL);
      return FALSE;
    }
  }
  return TRUE;
}

/* ---- Salvage ---- */

/* Row numbers to leap over when a page cannot be read: one by one at first, so that no good row behind it is missed, then 2, 4, 8 … */
#define SINGLE_STEPS 200
#define MAX_LEAPS 40

typedef struct {
  sqlite3 *from;
  OxStoreDb to;
  GHashTable *deleted; /* ids of conversations that the user deleted */
  guint n_conversations;
  guint n_messages;
} Salvage;

static void
save_row (Salvage *salvage, sqlite3_stmt *statement, gboolean conversations)
{
  if (conversations) {
    g_autoptr (OxConversationRecord) record = ox_store_read_conversation (statement);
    if (record != NULL && sqlite3_column_type (statement, 10) != SQLITE_NULL)
      g_hash_table_add (salvage->deleted, g_strdup (record->id));
    else if (record != NULL && ox_store_db_save (&salvage->to, record, NULL, FALSE, NULL))
      salvage->n_conversations++;
  } else {
    OxMessageRecord *record = ox_store_read_message (statement);
    g_autoptr (GPtrArray) messages = g_ptr_array_new_with_free_func ((GDestroyNotify) ox_message_record_free);
    g_autofree char *title = NULL;
    OxConversationRecord conversation = { 0 };
    sqlite3_stmt *exists;

    if (record == NULL)
      return;
    g_ptr_array_add (messages, record);
    if (g_hash_table_contains (salvage->deleted, record->conversation_id))
      return;
    /* A message whose conversation is lost makes a new one. */
    exists = ox_store_db_prepare (&salvage->to, "SELECT 1 FROM conversations WHERE id = ?1", NULL);
    if (exists == NULL)
      return;
    sqlite3_bind_text (exists, 1, record->conversation_id, -1, SQLITE_STATIC);
    if (sqlite3_step (exists) != SQLITE_ROW) {
      conversation.id = record->conversation_id;
      conversation.title = title = ox_title_from_text (record->text);
      conversation.created = conversation.updated = record->created;
      salvage->n_conversations++;
    }
    sqlite3_reset (exists);
    if (ox_store_db_save (&salvage->to, conversation.id != NULL ? &conversation : NULL, messages, FALSE, NULL))
      salvage->n_messages++;
  }
}

/* Goes through a table by its own tree alone, without indices, and leaps over places that cannot be read. */
static void
salvage_table (Salvage *salvage, const char *sql, int n_column, gboolean conversations)
{
  gint64 next = G_MININT64;

  for (guint leaps = 0; leaps < SINGLE_STEPS + MAX_LEAPS;) {
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2 (salvage->from, sql, -1, &statement, NULL);

    if (rc == SQLITE_OK) {
      sqlite3_bind_int64 (statement, 1, next);
      while ((rc = sqlite3_step (statement)) == SQLITE_ROW) {
        next = sqlite3_column_int64 (statement, n_column) + 1;
        leaps = 0;
        save_row (salvage, statement, conversations);
      }
    }
    sqlite3_finalize (statement);
    if (rc == SQLITE_DONE || rc == SQLITE_NOTADB)
      return;
    if (next == G_MININT64)
      next = 1;
    else if (next > G_MAXINT64 - (G_GINT64_CONSTANT (1) << MAX_LEAPS))
      return;
    next += leaps < SINGLE_STEPS ? 1 : G_GINT64_CONSTANT (1) << (leaps - SINGLE_STEPS);
    leaps++;
  }
}

static gboolean
copy_rows (const char *from, const char *to, Salvage *salvage, GError **error)
{
  gboolean ok = FALSE;
  int rc = sqlite3_open_v2 (to, &salvage->to.db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);

  salvage->deleted = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  salvage->to.statements = ox_store_statements_new ();
  if (rc != SQLITE_OK) {
    ox_store_set_error (salvage->to.db, rc, error);
  } else if (ox_store_migrate (salvage->to.db, error) &&
             ox_store_exec (salvage->to.db, "PRAGMA synchronous = OFF", error)) {
    if (sqlite3_open_v2 (from, &salvage->from, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK) {
      /* With this, SQLite reads a file that is shorter than its header says. Nothing is written. */
      sqlite3_exec (salvage->from, "PRAGMA writable_schema = ON", NULL, NULL, NULL);
      salvage_table (salvage,
                     "SELECT " OX_STORE_CONVERSATION_COLUMNS
                     ", n, deleted FROM conversations NOT INDEXED WHERE n >= ?1 ORDER BY n",
                     9, TRUE);
      /* The page that tells the file's form may be damaged, too: columns that are not there tell as well. */
      if (sqlite3_table_column_metadata (salvage->from, NULL, "messages", "tools", NULL, NULL, NULL, NULL, NULL) ==
          SQLITE_OK)
        salvage_table (salvage,
                       "SELECT " OX_STORE_MESSAGE_COLUMNS ", n FROM messages NOT INDEXED WHERE n >= ?1 ORDER BY n", 25,
                       FALSE);
      else
        salvage_table (salvage,
                       "SELECT " OX_STORE_OLD_MESSAGE_COLUMNS ", n FROM messages NOT INDEXED WHERE n >= ?1 ORDER BY n",
                       25, FALSE);
    }
    sqlite3_close_v2 (salvage->from);
    /* Any write would do: with FULL it takes all of the file to the disk. */
    ok = ox_store_exec (salvage->to.db,
                        "PRAGMA synchronous = FULL; PRAGMA user_version = " G_STRINGIFY (OX_STORE_DB_VERSION), error);
  }
  g_hash_table_unref (salvage->deleted);
  g_hash_table_unref (salvage->to.statements);
  sqlite3_close_v2 (salvage->to.db);
  return ok;
}

static char *
free_name (const char *path)
{
  g_autoptr (GDateTime) now = g_date_time_new_now_local ();
  g_autofree char *date = g_date_time_format (now, "%Y-%m-%d");
  g_autofree char *name = g_strdup_printf ("%s.damaged-%s", path, date);

  for (guint i = 2; g_file_test (name, G_FILE_TEST_EXISTS); i++) {
    g_free (name);
    name = g_strdup_printf ("%s.damaged-%s-%u", path, date, i);
  }
  return g_steal_pointer (&name);
}

gboolean
ox_store_salvage (const char *path, guint *n_saved, char **aside, GError **error)
{
  static const char *const companions[] = { "-wal", "-shm" };
  g_autofree char *fresh = g_strconcat (path, ".new", NULL);
  g_autofree char *damaged = free_name (path);
  Salvage salvage = { 0 };

  g_unlink (fresh);
  if (!copy_rows (path, fresh, &salvage, error)) {
    g_unlink (fresh);
    return FALSE;
  }
  if (g_rename (path, damaged) != 0) {
    g_set_error (error, OX_STORE_ERROR, OX_STORE_ERROR_READ_ONLY,
                 "The library of conversations is damaged, and it cannot be moved aside");
    g_unlink (fresh);
    return FALSE;
  }
  for (guint i = 0; i < G_N_ELEMENTS (companions); i++) {
    g_autofree char *old_name = g_strconcat (path, companions[i], NULL);
    g_autofree char *new_name = g_strconcat (damaged, companions[i], NULL);
    g_rename (old_name, new_name);
  }
  if (g_rename (fresh, path) != 0) {
    g_set_error (error, OX_STORE_ERROR, OX_STORE_ERROR_OPEN, "The new library of conversations cannot be put in place");
    return FALSE;
  }
  ox_info ("store", "Saved %u conversations and %u messages from a damaged library", salvage.n_conversations,
           salvage.n_messages);
  *n_saved = salvage.n_conversations;
  *aside = g_steal_pointer (&damaged);
  return TRUE;
}
