/* The store's file and its statements. Store thread only: everything here blocks.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-store.h"
#include <sqlite3.h>

G_BEGIN_DECLS

/* The newest form of the tables that this version knows: PRAGMA user_version. */
#define OX_STORE_DB_VERSION 3

/**
 * OxStoreDb:
 * @read_only: of a newer version, or not writable
 * @notice: what the user must know about opening, or NULL
 * @statements: SQL text (by address) → sqlite3_stmt
 * @dirty: written since the last checkpoint
 * @version: form of the tables
 */
typedef struct {
  sqlite3 *db;
  gboolean read_only;
  char *notice;
  GHashTable *statements;
  gboolean dirty;
  int version;
} OxStoreDb;

/* ---- ox-store-open.c ---- */

OxStoreDb *ox_store_db_open (const char *path, GError **error);
void ox_store_db_close (OxStoreDb *self);

/* ---- ox-store-salvage.c ---- */

/* Moves a damaged file aside, with what belongs to it, and makes a new one from the rows that can still be read. Both
 * have no connection open. @n_saved: conversations brought over. @aside: where the damaged file is now. */
gboolean ox_store_salvage (const char *path, guint *n_saved, char **aside, GError **error);
/* Makes the tables of an empty file, or brings older ones up to date. */
gboolean ox_store_migrate (sqlite3 *db, GError **error);
int ox_store_read_version (sqlite3 *db);

/* ---- ox-store-db.c ---- */

/* The error of SQLite's last call on @db. FALSE always. */
gboolean ox_store_set_error (sqlite3 *db, int rc, GError **error);
gboolean ox_store_exec (sqlite3 *db, const char *sql, GError **error);

GPtrArray *ox_store_db_list_conversations (OxStoreDb *self, GError **error);
GPtrArray *ox_store_db_list_messages (OxStoreDb *self, const char *conversation_id, GError **error);

/* @durable: on the disk when this returns, else only safe from the app's own end. Either may be NULL. */
gboolean ox_store_db_save (
  OxStoreDb *self, const OxConversationRecord *conversation, GPtrArray *messages, gboolean durable, GError **error);
gboolean ox_store_db_set_deleted (OxStoreDb *self, const char *conversation_id, gboolean deleted, GError **error);
gboolean ox_store_db_purge (OxStoreDb *self, const char *conversation_id, GError **error);
gboolean ox_store_db_remove_messages (OxStoreDb *self, const char *const *ids, GError **error);

/* A row as a record; NULL when it has no id. Columns in the order of OX_STORE_..._COLUMNS. */
#define OX_STORE_CONVERSATION_COLUMNS                                                                                  \
  "id, title, title_is_custom, pinned, created, updated, draft, model_path, settings"
#define OX_STORE_MESSAGE_COLUMNS                                                                                       \
  "id, conversation_id, position, role, text, thinking, state, error_code, error, error_details, model_name, "         \
  "created, "                                                                                                          \
  "end_reason, prompt_tokens, reused_tokens, answer_tokens, context_length, prefill_seconds, decode_seconds, "         \
  "first_token_seconds, "                                                                                              \
  "drafted_tokens, accepted_tokens, tools, thinking_seconds, dropped_messages"
/* The same of a file of the forms 1 and 2, which cannot be brought up to date. */
#define OX_STORE_OLD_MESSAGE_COLUMNS                                                                                   \
  "id, conversation_id, position, role, text, thinking, state, error_code, error, error_details, model_name, "         \
  "created, "                                                                                                          \
  "end_reason + (end_reason >= 3), prompt_tokens, reused_tokens, answer_tokens, context_length, prefill_seconds, "     \
  "decode_seconds, "                                                                                                   \
  "first_token_seconds, NULL, NULL, NULL, NULL, NULL"
OxConversationRecord *ox_store_read_conversation (sqlite3_stmt *statement);
OxMessageRecord *ox_store_read_message (sqlite3_stmt *statement);

GHashTable *ox_store_statements_new (void);
/* A statement ready to be bound; kept for the next time. @sql is a literal. */
sqlite3_stmt *ox_store_db_prepare (OxStoreDb *self, const char *sql, GError **error);

/* ---- ox-store-search.c ---- */

GPtrArray *ox_store_db_search (
  OxStoreDb *self, const char *text, guint limit, GCancellable *cancellable, GError **error);

G_END_DECLS
