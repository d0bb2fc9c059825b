/* Full-text search in the store.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-store-db.h"

#include <string.h>

/* What snippet() puts around the words found, to be told from anything that people write. */
#define MARK_START "\002"
#define MARK_END "\003"
/* Characters shown before the place found, when it was not found by words. */
#define CONTEXT_CHARS 24
#define SNIPPET_CHARS 100

/* Scripts that put no spaces between words: the index holds whole sentences of them as one word. */
static gboolean
is_unspaced (gunichar c)
{
  switch (g_unichar_get_script (c)) {
  case G_UNICODE_SCRIPT_HAN:
  case G_UNICODE_SCRIPT_HIRAGANA:
  case G_UNICODE_SCRIPT_KATAKANA:
  case G_UNICODE_SCRIPT_THAI:
  case G_UNICODE_SCRIPT_LAO:
  case G_UNICODE_SCRIPT_KHMER:
  case G_UNICODE_SCRIPT_MYANMAR:
    return TRUE;
  default:
    return FALSE;
  }
}

/* The words of @text as an FTS5 query for rows that have words with all these beginnings. NULL when words do not help. */
static char *
make_query (const char *text)
{
  g_auto (GStrv) words = g_strsplit_set (text, " \t\n\r", -1);
  g_autoptr (GString) query = g_string_new (NULL);

  for (guint i = 0; words[i] != NULL; i++) {
    gboolean has_letter = FALSE;

    for (const char *p = words[i]; *p != '\0'; p = g_utf8_next_char (p)) {
      if (is_unspaced (g_utf8_get_char (p)))
        return NULL;
      has_letter |= g_unichar_isalnum (g_utf8_get_char (p));
    }
    if (!has_letter)
      continue;
    g_string_append (query, query->len > 0 ? " \"" : "\"");
    for (const char *p = words[i]; *p != '\0'; p++) {
      if (*p == '"')
        g_string_append_c (query, '"');
      g_string_append_c (query, *p);
    }
    g_string_append (query, "\"*");
  }
  return query->len > 0 ? g_string_free (g_steal_pointer (&query), FALSE) : NULL;
}

static char *
make_pattern (const char *text)
{
  GString *pattern = g_string_new ("%");

  for (const char *p = text; *p != '\0'; p++) {
    if (*p == '%' || *p == '_' || *p == '\\')
      g_string_append_c (pattern, '\\');
    g_string_append_c (pattern, *p);
  }
  g_string_append_c (pattern, '%');
  return g_string_free (pattern, FALSE);
}

/* One line of Pango markup from text with marks. */
static char *
make_markup (const char *marked)
{
  g_autofree char *valid = g_utf8_make_valid (marked, -1);
  g_autofree char *escaped = NULL;
  GString *markup = g_string_new (NULL);
  gboolean bold = FALSE;

  for (char *p = valid; *p != '\0'; p++)
    if (*p == '\n' || *p == '\r' || *p == '\t')
      *p = ' ';
  /* Text itself may hold the marks: each counts only where it makes sense, so that the markup is always balanced. */
  for (const char *p = valid; *p != '\0';) {
    gsize length = strcspn (p, MARK_START MARK_END);
    g_autofree char *piece = g_markup_escape_text (p, length);

    g_string_append (markup, piece);
    p += length;
    if (*p == MARK_START[0] && !bold) {
      g_string_append (markup, "<b>");
      bold = TRUE;
    } else if (*p == MARK_END[0] && bold) {
      g_string_append (markup, "</b>");
      bold = FALSE;
    }
    if (*p != '\0')
      p++;
  }
  if (bold)
    g_string_append (markup, "</b>");
  return g_string_free (markup, FALSE);
}

/* As FTS5's snippet(), for text found by its letters. */
static char *
make_snippet (const char *text, const char *needle)
{
  const char *found = strstr (text, needle);
  GString *marked = g_string_new (NULL);
  const char *start;
  const char *end;

  if (found == NULL) {
    /* LIKE ignores the case of ASCII letters. */
    g_autofree char *folded_text = g_ascii_strdown (text, -1);
    g_autofree char *folded_needle = g_ascii_strdown (needle, -1);
    const char *place = strstr (folded_text, folded_needle);
    found = place != NULL ? text + (place - folded_text) : text;
  }
  start = found;
  for (guint i = 0; i < CONTEXT_CHARS && start > text; i++)
    start = g_utf8_prev_char (start);
  if (start > text)
    g_string_append (marked, "…");
  g_string_append_len (marked, start, found - start);
  g_string_append (marked, MARK_START);
  g_string_append_len (marked, found, MIN (strlen (needle), strlen (found)));
  g_string_append (marked, MARK_END);
  start = end = found + MIN (strlen (needle), strlen (found));
  for (guint i = 0; i < SNIPPET_CHARS && *end != '\0'; i++)
    end = g_utf8_next_char (end);
  g_string_append_len (marked, start, end - start);
  if (*end != '\0')
    g_string_append (marked, "…");
  return g_string_free (marked, FALSE);
}

/* Adds rows (conversation, message or NULL, marked text or text) of conversations not yet in @seen. */
static gboolean
collect (OxStoreDb *self,
         const char *sql,
         const char *query,
         const char *needle,
         guint limit,
         GHashTable *seen,
         GPtrArray *hits,
         GCancellable *cancellable,
         GError **error)
{
  sqlite3_stmt *statement = ox_store_db_prepare (self, sql, error);
  int rc = SQLITE_DONE;

  if (statement == NULL)
    return FALSE;
  sqlite3_bind_text (statement, 1, query, -1, SQLITE_STATIC);
  while (hits->len < limit && !g_cancellable_is_cancelled (cancellable) &&
         (rc = sqlite3_step (statement)) == SQLITE_ROW) {
    const char *conversation_id = (const char *) sqlite3_column_text (statement, 0);
    const char *text = (const char *) sqlite3_column_text (statement, 2);
    g_autofree char *valid = NULL;
    g_autofree char *snippet = NULL;
    OxSearchHit *hit;

    if (conversation_id == NULL || text == NULL || g_hash_table_contains (seen, conversation_id))
      continue;
    valid = g_utf8_make_valid (text, -1);
    snippet = needle != NULL ? make_snippet (valid, needle) : g_strdup (valid);
    hit = g_new0 (OxSearchHit, 1);
    hit->conversation_id = g_strdup (conversation_id);
    hit->message_id = g_strdup ((const char *) sqlite3_column_text (statement, 1));
    hit->markup = make_markup (snippet);
    g_ptr_array_add (hits, hit);
    g_hash_table_add (seen, hit->conversation_id);
  }
  sqlite3_reset (statement);
  if (rc != SQLITE_DONE && rc != SQLITE_ROW)
    return ox_store_set_error (self->db, rc, error);
  return !g_cancellable_set_error_if_cancelled (cancellable, error);
}

GPtrArray *
ox_store_db_search (OxStoreDb *self, const char *text, guint limit, GCancellable *cancellable, GError **error)
{
  g_autoptr (GPtrArray) hits = g_ptr_array_new_with_free_func ((GDestroyNotify) ox_search_hit_free);
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);
  g_autofree char *valid = g_utf8_make_valid (text, -1);
  g_autofree char *query = NULL;
  g_autofree char *pattern = NULL;
  gboolean ok;

  g_strstrip (valid);
  if (*valid == '\0')
    return g_steal_pointer (&hits);
  query = make_query (valid);
  if (query != NULL) {
    ok = collect (self,
                  "SELECT m.conversation_id, m.id, snippet(message_index, 0, '" MARK_START "', '" MARK_END
                  "', '…', 16) FROM message_index JOIN messages m ON m.n = message_index.rowid "
                  "JOIN conversations c ON c.id = m.conversation_id "
                  "WHERE message_index MATCH ?1 AND c.deleted IS NULL ORDER BY c.updated DESC, rank",
                  query, NULL, limit, seen, hits, cancellable, error) &&
         collect (self,
                  "SELECT c.id, NULL, highlight(title_index, 0, '" MARK_START "', '" MARK_END
                  "') FROM title_index JOIN conversations c ON c.n = title_index.rowid "
                  "WHERE title_index MATCH ?1 AND c.deleted IS NULL ORDER BY c.updated DESC",
                  query, NULL, limit, seen, hits, cancellable, error);
  } else {
    pattern = make_pattern (valid);
    ok = collect (
           self,
           "SELECT m.conversation_id, m.id, m.text FROM messages m JOIN conversations c ON c.id = m.conversation_id "
           "WHERE m.text LIKE ?1 ESCAPE '\\' AND m.state IS NOT 'writing' AND c.deleted IS NULL "
           "ORDER BY c.updated DESC, m.n DESC",
           pattern, valid, limit, seen, hits, cancellable, error) &&
         collect (self,
                  "SELECT id, NULL, title FROM conversations WHERE title LIKE ?1 ESCAPE '\\' AND deleted IS NULL "
                  "ORDER BY updated DESC",
                  pattern, valid, limit, seen, hits, cancellable, error);
  }
  return ok ? g_steal_pointer (&hits) : NULL;
}
