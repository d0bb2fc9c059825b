/* Statements of the store: what is read and written.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-store-db.h"

#include "ox-log.h"
#include "ox-thread-checks.h"

#include <errno.h>
#include <string.h>

gboolean
ox_store_set_error (sqlite3 *db, int rc, GError **error)
{
  int system_error = db != NULL ? sqlite3_system_errno (db) : 0;
  OxStoreError code = OX_STORE_ERROR_FAILED;
  const char *sentence = NULL;

  if ((rc & 0xff) == SQLITE_FULL ||
      ((rc & 0xff) == SQLITE_IOERR && (system_error == ENOSPC || system_error == EDQUOT || system_error == EFBIG))) {
    code = OX_STORE_ERROR_FULL;
    sentence = "There is no space left on the disk";
  } else if ((rc & 0xff) == SQLITE_READONLY || (rc & 0xff) == SQLITE_PERM) {
    code = OX_STORE_ERROR_READ_ONLY;
    sentence = "The library of conversations cannot be written to";
  } else if ((rc & 0xff) == SQLITE_CANTOPEN) {
    code = OX_STORE_ERROR_OPEN;
    sentence = "The library of conversations cannot be opened";
  } else if ((rc & 0xff) == SQLITE_CORRUPT || (rc & 0xff) == SQLITE_NOTADB) {
    code = OX_STORE_ERROR_DAMAGED;
    sentence = "The library of conversations is damaged";
  }
  if (sentence != NULL)
    g_set_error (error, OX_STORE_ERROR, code, "%s (%s)", sentence, sqlite3_errstr (rc));
  else
    g_set_error (error, OX_STORE_ERROR, code, "The library of conversations failed: %s",
                 db != NULL ? sqlite3_errmsg (db) : sqlite3_errstr (rc));
  return FALSE;
}

gboolean
ox_store_exec (sqlite3 *db, const char *sql, GError **error)
{
  int rc = sqlite3_exec (db, sql, NULL, NULL, NULL);

  return rc == SQLITE_OK || ox_store_set_error (db, rc, error);
}

static void
finalize_statement (gpointer statement)
{
  sqlite3_finalize (statement);
}

GHashTable *
ox_store_statements_new (void)
{
  return g_hash_table_new_full (NULL, NULL, NULL, finalize_statement);
}

sqlite3_stmt *
ox_store_db_prepare (OxStoreDb *self, const char *sql, GError **error)
{
  sqlite3_stmt *statement = g_hash_table_lookup (self->statements, sql);

  OX_ASSERT_ENGINE_THREAD ();
  if (statement == NULL) {
    int rc = sqlite3_prepare_v3 (self->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL);
    if (rc != SQLITE_OK) {
      ox_store_set_error (self->db, rc, error);
      return NULL;
    }
    g_hash_table_insert (self->statements, (gpointer) sql, statement);
  }
  sqlite3_reset (statement);
  sqlite3_clear_bindings (statement);
  return statement;
}

/* Runs a bound statement that gives no rows. */
static gboolean
step (OxStoreDb *self, sqlite3_stmt *statement, GError **error)
{
  int rc = sqlite3_step (statement);

  if (rc != SQLITE_DONE)
    ox_store_set_error (self->db, rc, error);
  sqlite3_reset (statement);
  return rc == SQLITE_DONE;
}

static void
bind_text (sqlite3_stmt *statement, int index, const char *text)
{
  sqlite3_bind_text (statement, index, text, -1, SQLITE_STATIC);
}

/* ---- Rows to records. Any column may hold anything: files get damaged, and other programs write them. ---- */

static char *
read_text (sqlite3_stmt *statement, int column, gboolean *damaged)
{
  const char *text;
  gsize length;
  char *valid;

  if (sqlite3_column_type (statement, column) == SQLITE_NULL)
    return NULL;
  text = (const char *) sqlite3_column_text (statement, column);
  length = sqlite3_column_bytes (statement, column);
  if (text == NULL)
    return NULL;
  if (damaged != NULL && !g_utf8_validate_len (text, length, NULL))
    *damaged = TRUE;
  valid = g_utf8_make_valid (text, length);
  return valid;
}

static guint
read_uint (sqlite3_stmt *statement, int column)
{
  return (guint) CLAMP (sqlite3_column_int64 (statement, column), 0, G_MAXUINT);
}

static double
read_seconds (sqlite3_stmt *statement, int column)
{
  double seconds = sqlite3_column_double (statement, column);

  return seconds >= 0 && seconds < 1e9 ? seconds : 0;
}

/* -1: unknown. */
static int
enum_from_nick (GType type, const char *nick)
{
  g_autoptr (GEnumClass) enum_class = g_type_class_ref (type);
  GEnumValue *value = nick != NULL ? g_enum_get_value_by_nick (enum_class, nick) : NULL;

  return value != NULL ? value->value : -1;
}

static const char *
enum_to_nick (GType type, int value)
{
  g_autoptr (GEnumClass) enum_class = g_type_class_ref (type);
  GEnumValue *enum_value = g_enum_get_value (enum_class, value);

  /* Nicks are literals. */
  return enum_value != NULL ? enum_value->value_nick : NULL;
}

OxConversationRecord *
ox_store_read_conversation (sqlite3_stmt *statement)
{
  g_autofree char *id = read_text (statement, 0, NULL);
  OxConversationRecord *record;

  if (id == NULL || *id == '\0')
    return NULL;
  record = g_new0 (OxConversationRecord, 1);
  record->id = g_steal_pointer (&id);
  record->title = read_text (statement, 1, NULL);
  record->title_is_custom = sqlite3_column_int (statement, 2) != 0;
  record->pinned = sqlite3_column_int (statement, 3) != 0;
  record->created = sqlite3_column_int64 (statement, 4);
  record->updated = sqlite3_column_int64 (statement, 5);
  record->draft = read_text (statement, 6, NULL);
  record->model_path = read_text (statement, 7, NULL);
  record->settings = read_text (statement, 8, NULL);
  return record;
}

OxMessageRecord *
ox_store_read_message (sqlite3_stmt *statement)
{
  g_autofree char *id = read_text (statement, 0, NULL);
  g_autofree char *conversation_id = read_text (statement, 1, NULL);
  g_autofree char *role = read_text (statement, 3, NULL);
  g_autofree char *state = read_text (statement, 6, NULL);
  g_autofree char *tools = NULL;
  OxMessageRecord *record;
  int value;

  if (id == NULL || *id == '\0' || conversation_id == NULL)
    return NULL;
  record = g_new0 (OxMessageRecord, 1);
  record->id = g_steal_pointer (&id);
  record->conversation_id = g_steal_pointer (&conversation_id);
  record->position = sqlite3_column_int64 (statement, 2);
  record->text = read_text (statement, 4, &record->damaged);
  record->thinking = read_text (statement, 5, &record->damaged);
  record->error = read_text (statement, 8, NULL);
  record->error_code = record->error != NULL ? sqlite3_column_int (statement, 7) : -1;
  record->error_details = read_text (statement, 9, NULL);
  record->model_name = read_text (statement, 10, NULL);
  record->created = sqlite3_column_int64 (statement, 11);
  value = sqlite3_column_int (statement, 12);
  record->end_reason = value > OX_END_STOP && value <= OX_END_ERROR ? (OxEndReason) value : OX_END_STOP;
  record->statistics.prompt_tokens = read_uint (statement, 13);
  record->statistics.reused_tokens = read_uint (statement, 14);
  record->statistics.answer_tokens = read_uint (statement, 15);
  record->statistics.context_length = read_uint (statement, 16);
  record->statistics.prefill_seconds = read_seconds (statement, 17);
  record->statistics.decode_seconds = read_seconds (statement, 18);
  record->statistics.first_token_seconds = read_seconds (statement, 19);
  record->statistics.drafted_tokens = read_uint (statement, 20);
  record->statistics.accepted_tokens = read_uint (statement, 21);
  tools = read_text (statement, 22, &record->damaged);
  if (tools != NULL) {
    record->tools = ox_tool_entries_from_json (tools);
    record->damaged |= record->tools == NULL;
  }
  record->thinking_seconds = read_seconds (statement, 23);
  record->dropped_messages = read_uint (statement, 24);

  value = enum_from_nick (OX_TYPE_MESSAGE_STATE, state);
  record->state = value >= 0 ? (OxMessageState) value : OX_MESSAGE_COMPLETE;
  if (record->text == NULL) {
    record->text = g_strdup ("");
    record->damaged = TRUE;
  }
  value = enum_from_nick (OX_TYPE_MESSAGE_ROLE, role);
  record->role = value >= 0 ? (OxRole) value : OX_ROLE_ASSISTANT;
  record->damaged |= value < 0;
  return record;
}

GPtrArray *
ox_store_db_list_conversations (OxStoreDb *self, GError **error)
{
  g_autoptr (GPtrArray) records = g_ptr_array_new_with_free_func ((GDestroyNotify) ox_conversation_record_free);
  sqlite3_stmt *statement = ox_store_db_prepare (self,
                                                 "SELECT " OX_STORE_CONVERSATION_COLUMNS
                                                 ", (SELECT count(*) FROM messages WHERE conversation_id = "
                                                 "conversations.id) FROM conversations WHERE deleted IS NULL "
                                                 "ORDER BY updated DESC",
                                                 error);
  int rc;

  if (statement == NULL)
    return NULL;
  while ((rc = sqlite3_step (statement)) == SQLITE_ROW) {
    OxConversationRecord *record = ox_store_read_conversation (statement);
    if (record != NULL) {
      record->n_messages = read_uint (statement, 9);
      g_ptr_array_add (records, record);
    }
  }
  sqlite3_reset (statement);
  /* Damage in the middle: what could be read is better than nothing. The next start puts the file in order. */
  if (rc != SQLITE_DONE && records->len == 0) {
    ox_store_set_error (self->db, rc, error);
    return NULL;
  }
  return g_steal_pointer (&records);
}

GPtrArray *
ox_store_db_list_messages (OxStoreDb *self, const char *conversation_id, GError **error)
{
  g_autoptr (GPtrArray) records = g_ptr_array_new_with_free_func ((GDestroyNotify) ox_message_record_free);
  sqlite3_stmt *statement = ox_store_db_prepare (
    self,
    self->version < 3
      ? "SELECT " OX_STORE_OLD_MESSAGE_COLUMNS " FROM messages WHERE conversation_id = ?1 ORDER BY position, n"
      : "SELECT " OX_STORE_MESSAGE_COLUMNS " FROM messages WHERE conversation_id = ?1 ORDER BY position, n",
    error);
  int rc;

  if (statement == NULL)
    return NULL;
  bind_text (statement, 1, conversation_id);
  while ((rc = sqlite3_step (statement)) == SQLITE_ROW) {
    OxMessageRecord *record = ox_store_read_message (statement);
    if (record != NULL)
      g_ptr_array_add (records, record);
  }
  sqlite3_reset (statement);
  if (rc != SQLITE_DONE && records->len == 0) {
    ox_store_set_error (self->db, rc, error);
    return NULL;
  }
  return g_steal_pointer (&records);
}

/* ---- Writing ---- */

static gboolean
save_conversation (OxStoreDb *self, const OxConversationRecord *record, GError **error)
{
  sqlite3_stmt *statement = ox_store_db_prepare (
    self,
    "INSERT INTO conversations (" OX_STORE_CONVERSATION_COLUMNS ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) "
    "ON CONFLICT (id) DO UPDATE SET title = excluded.title, title_is_custom = excluded.title_is_custom, "
    "pinned = excluded.pinned, updated = excluded.updated, draft = excluded.draft, model_path = excluded.model_path, "
    "settings = excluded.settings",
    error);

  if (statement == NULL)
    return FALSE;
  bind_text (statement, 1, record->id);
  bind_text (statement, 2, record->title);
  sqlite3_bind_int (statement, 3, record->title_is_custom);
  sqlite3_bind_int (statement, 4, record->pinned);
  sqlite3_bind_int64 (statement, 5, record->created);
  sqlite3_bind_int64 (statement, 6, record->updated);
  bind_text (statement, 7, record->draft);
  bind_text (statement, 8, record->model_path);
  bind_text (statement, 9, record->settings);
  return step (self, statement, error);
}

/* Only into a conversation that is there: it may have been erased while its answer was on its way. */
static gboolean
save_message (OxStoreDb *self, const OxMessageRecord *record, GError **error)
{
  /* How far a live answer got is of no use after the app's end. */
  OxMessageState state =
    record->state >= OX_MESSAGE_WAITING && record->state <= OX_MESSAGE_WRITING ? OX_MESSAGE_WRITING : record->state;
  const OxStatistics *statistics = &record->statistics;
  g_autofree char *tools = record->tools != NULL ? ox_tool_entries_to_json (record->tools) : NULL;
  sqlite3_stmt *statement = ox_store_db_prepare (
    self,
    "INSERT INTO messages (" OX_STORE_MESSAGE_COLUMNS ") "
    "SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, "
    "?21, ?22, ?23, ?24, ?25 "
    "WHERE EXISTS (SELECT 1 FROM conversations WHERE id = ?2) "
    "ON CONFLICT (id) DO UPDATE SET position = excluded.position, text = excluded.text, thinking = excluded.thinking, "
    "state = excluded.state, error_code = excluded.error_code, error = excluded.error, "
    "error_details = excluded.error_details, model_name = excluded.model_name, end_reason = excluded.end_reason, "
    "prompt_tokens = excluded.prompt_tokens, reused_tokens = excluded.reused_tokens, "
    "answer_tokens = excluded.answer_tokens, context_length = excluded.context_length, "
    "prefill_seconds = excluded.prefill_seconds, decode_seconds = excluded.decode_seconds, "
    "first_token_seconds = excluded.first_token_seconds, drafted_tokens = excluded.drafted_tokens, "
    "accepted_tokens = excluded.accepted_tokens, tools = excluded.tools, "
    "thinking_seconds = excluded.thinking_seconds, dropped_messages = excluded.dropped_messages",
    error);

  if (statement == NULL)
    return FALSE;
  bind_text (statement, 1, record->id);
  bind_text (statement, 2, record->conversation_id);
  sqlite3_bind_int64 (statement, 3, record->position);
  bind_text (statement, 4, enum_to_nick (OX_TYPE_MESSAGE_ROLE, record->role));
  bind_text (statement, 5, record->text);
  bind_text (statement, 6, record->thinking);
  bind_text (statement, 7, enum_to_nick (OX_TYPE_MESSAGE_STATE, state));
  if (record->error != NULL)
    sqlite3_bind_int (statement, 8, record->error_code);
  bind_text (statement, 9, record->error);
  bind_text (statement, 10, record->error_details);
  bind_text (statement, 11, record->model_name);
  sqlite3_bind_int64 (statement, 12, record->created);
  sqlite3_bind_int (statement, 13, record->end_reason);
  sqlite3_bind_int64 (statement, 14, statistics->prompt_tokens);
  sqlite3_bind_int64 (statement, 15, statistics->reused_tokens);
  sqlite3_bind_int64 (statement, 16, statistics->answer_tokens);
  sqlite3_bind_int64 (statement, 17, statistics->context_length);
  sqlite3_bind_double (statement, 18, statistics->prefill_seconds);
  sqlite3_bind_double (statement, 19, statistics->decode_seconds);
  sqlite3_bind_double (statement, 20, statistics->first_token_seconds);
  sqlite3_bind_int64 (statement, 21, statistics->drafted_tokens);
  sqlite3_bind_int64 (statement, 22, statistics->accepted_tokens);
  bind_text (statement, 23, tools);
  sqlite3_bind_double (statement, 24, record->thinking_seconds);
  sqlite3_bind_int64 (statement, 25, record->dropped_messages);
  return step (self, statement, error);
}

typedef gboolean (*WriteFunc) (OxStoreDb *self, gconstpointer data, GError **error);

static gboolean
try_transaction (OxStoreDb *self, WriteFunc func, gconstpointer data, GError **error)
{
  if (!ox_store_exec (self->db, "BEGIN IMMEDIATE", error))
    return FALSE;
  if (!func (self, data, error) || !ox_store_exec (self->db, "COMMIT", error)) {
    sqlite3_exec (self->db, "ROLLBACK", NULL, NULL, NULL);
    return FALSE;
  }
  self->dirty = TRUE;
  return TRUE;
}

static gboolean
transaction (OxStoreDb *self, WriteFunc func, gconstpointer data, GError **error)
{
  g_autoptr (GError) local_error = NULL;

  if (self->read_only) {
    g_set_error_literal (error, OX_STORE_ERROR, OX_STORE_ERROR_READ_ONLY,
                         "The library of conversations cannot be written to");
    return FALSE;
  }
  if (try_transaction (self, func, data, &local_error))
    return TRUE;
  /* The full-text index is only derived; damage in it must not keep a message from being saved. */
  if (sqlite3_extended_errcode (self->db) == SQLITE_CORRUPT_VTAB ||
      g_error_matches (local_error, OX_STORE_ERROR, OX_STORE_ERROR_DAMAGED)) {
    ox_info ("store", "Rebuilding the full-text index: %s", local_error->message);
    if (ox_store_exec (self->db,
                       "INSERT INTO message_index (message_index) VALUES ('rebuild'); "
                       "INSERT INTO title_index (title_index) VALUES ('rebuild')",
                       NULL) &&
        try_transaction (self, func, data, NULL))
      return TRUE;
  }
  g_propagate_error (error, g_steal_pointer (&local_error));
  return FALSE;
}

typedef struct {
  const OxConversationRecord *conversation;
  GPtrArray *messages;
} Save;

static gboolean
save (OxStoreDb *self, gconstpointer data, GError **error)
{
  const Save *args = data;

  if (args->conversation != NULL && !save_conversation (self, args->conversation, error))
    return FALSE;
  for (guint i = 0; args->messages != NULL && i < args->messages->len; i++)
    if (!save_message (self, args->messages->pdata[i], error))
      return FALSE;
  return TRUE;
}

gboolean
ox_store_db_save (
  OxStoreDb *self, const OxConversationRecord *conversation, GPtrArray *messages, gboolean durable, GError **error)
{
  Save args = { conversation, messages };
  gboolean ok;

  /* In WAL mode, NORMAL leaves a commit to the next checkpoint, FULL waits for the disk at each commit. */
  if (durable)
    ox_store_exec (self->db, "PRAGMA synchronous = FULL", NULL);
  ok = transaction (self, save, &args, error);
  if (durable)
    ox_store_exec (self->db, "PRAGMA synchronous = NORMAL", NULL);
  return ok;
}

typedef struct {
  const char *id;
  gint64 time;
} Deletion;

static gboolean
set_deleted (OxStoreDb *self, gconstpointer data, GError **error)
{
  const Deletion *deletion = data;
  sqlite3_stmt *statement =
    ox_store_db_prepare (self, "UPDATE conversations SET deleted = nullif(?2, 0) WHERE id = ?1", error);

  if (statement == NULL)
    return FALSE;
  bind_text (statement, 1, deletion->id);
  sqlite3_bind_int64 (statement, 2, deletion->time);
  return step (self, statement, error);
}

gboolean
ox_store_db_set_deleted (OxStoreDb *self, const char *conversation_id, gboolean deleted, GError **error)
{
  Deletion deletion = { conversation_id, deleted ? g_get_real_time () : 0 };

  return transaction (self, set_deleted, &deletion, error);
}

static gboolean
run_with_id (OxStoreDb *self, const char *sql, const char *id, GError **error)
{
  sqlite3_stmt *statement = ox_store_db_prepare (self, sql, error);

  if (statement == NULL)
    return FALSE;
  bind_text (statement, 1, id);
  return step (self, statement, error);
}

static gboolean
purge (OxStoreDb *self, gconstpointer id, GError **error)
{
  return run_with_id (self, "DELETE FROM messages WHERE conversation_id = ?1", id, error) &&
         run_with_id (self, "DELETE FROM conversations WHERE id = ?1", id, error);
}

gboolean
ox_store_db_purge (OxStoreDb *self, const char *conversation_id, GError **error)
{
  return transaction (self, purge, conversation_id, error);
}

static gboolean
remove_messages (OxStoreDb *self, gconstpointer ids, GError **error)
{
  for (const char *const *id = ids; *id != NULL; id++)
    if (!run_with_id (self, "DELETE FROM messages WHERE id = ?1", *id, error))
      return FALSE;
  return TRUE;
}

gboolean
ox_store_db_remove_messages (OxStoreDb *self, const char *const *ids, GError **error)
{
  return transaction (self, remove_messages, ids, error);
}
