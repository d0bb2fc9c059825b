/* The store: what is written is there, whatever happens to the app, the file or the disk.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-store-db.h"
#include "support.h"

#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

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

static void
test_round_trip (Fixture *fixture, gconstpointer unused)
{
  OxConversationRecord conversation = { .id = (char *) "c1",
                                        .title = (char *) "Über “Zitate” und 🦊",
                                        .title_is_custom = TRUE,
                                        .pinned = TRUE,
                                        .created = 100,
                                        .updated = 200,
                                        .draft = (char *) "half a thought",
                                        .model_path = (char *) "/models/a.gguf",
                                        .settings = (char *) "{'seed': <uint64 7>}" };
  OxMessageRecord answer = { .id = g_strdup ("m2"),
                             .conversation_id = g_strdup ("c1"),
                             .position = 1,
                             .role = OX_ROLE_ASSISTANT,
                             .text = g_strdup ("العربية\n```c\nint x;\n```"),
                             .thinking = g_strdup ("hm"),
                             .state = OX_MESSAGE_FAILED,
                             .error_code = OX_ERROR_NUMERIC,
                             .error = g_strdup ("It broke."),
                             .error_details = g_strdup ("layer 3"),
                             .model_name = g_strdup ("A"),
                             .created = 201,
                             .end_reason = OX_END_ERROR,
                             .statistics = { .prompt_tokens = 10,
                                             .reused_tokens = 5,
                                             .answer_tokens = 7,
                                             .drafted_tokens = 6,
                                             .accepted_tokens = 4,
                                             .context_length = 4096,
                                             .prefill_seconds = 0.5,
                                             .decode_seconds = 2.5,
                                             .first_token_seconds = 0.75 },
                             .tools = ox_tool_entries_new (),
                             .thinking_seconds = 12.5,
                             .dropped_messages = 3 };
  OxToolEntry call = { .id = (char *) "call_1",
                       .name = (char *) "calculate",
                       .arguments = (char *) "{\"expression\": \"37 × 12\"}",
                       .result = (char *) "{\"result\":\"444\"}",
                       .round = 1,
                       .text_offset = 7,
                       .thinking_offset = 2 };
  OxToolEntry unread = { .arguments = (char *) "calculate(“37\n", .failed = TRUE };
  GPtrArray *messages = g_ptr_array_new_with_free_func ((GDestroyNotify) ox_message_record_free);
  OxStore *store = open_store (fixture->path);
  g_autoptr (GPtrArray) conversations = NULL;
  g_autoptr (GPtrArray) loaded = NULL;
  GAsyncResult *result = NULL;
  OxConversationRecord *first;
  OxMessageRecord *second;
  GStatBuf info;

  g_assert_cmpint (ox_store_get_state (store), ==, OX_STORE_OPEN);
  g_assert_null (ox_store_get_notice (store));
  g_ptr_array_add (answer.tools, ox_tool_entry_copy (&call));
  g_ptr_array_add (answer.tools, ox_tool_entry_copy (&unread));
  g_ptr_array_add (messages, g_memdup2 (&answer, sizeof answer));
  ox_store_add_messages (store, &conversation, messages, keep_result, &result);
  g_assert_true (wait_for_write (store, &result, NULL));
  close_store (store);

  /* Nobody else may read along. */
  g_stat (fixture->folder, &info);
  g_assert_cmpint (info.st_mode & 0077, ==, 0);

  store = open_store (fixture->path);
  conversations = list_conversations (store);
  g_assert_cmpuint (conversations->len, ==, 1);
  first = conversations->pdata[0];
  g_assert_cmpstr (first->id, ==, conversation.id);
  g_assert_cmpstr (first->title, ==, conversation.title);
  g_assert_true (first->title_is_custom && first->pinned);
  g_assert_cmpint (first->created, ==, 100);
  g_assert_cmpint (first->updated, ==, 200);
  g_assert_cmpstr (first->draft, ==, conversation.draft);
  g_assert_cmpstr (first->model_path, ==, conversation.model_path);
  g_assert_cmpstr (first->settings, ==, conversation.settings);
  g_assert_cmpuint (first->n_messages, ==, 1);
  loaded = list_messages (store, "c1");
  second = message_at (loaded, 0);
  g_assert_cmpstr (second->text, ==, "العربية\n```c\nint x;\n```");
  g_assert_cmpstr (second->thinking, ==, "hm");
  g_assert_cmpint (second->role, ==, OX_ROLE_ASSISTANT);
  g_assert_cmpint (second->state, ==, OX_MESSAGE_FAILED);
  g_assert_cmpint (second->error_code, ==, OX_ERROR_NUMERIC);
  g_assert_cmpstr (second->error, ==, "It broke.");
  g_assert_cmpstr (second->error_details, ==, "layer 3");
  g_assert_cmpstr (second->model_name, ==, "A");
  g_assert_cmpint (second->end_reason, ==, OX_END_ERROR);
  g_assert_cmpmem (&second->statistics, sizeof second->statistics, &answer.statistics, sizeof answer.statistics);
  g_assert_cmpfloat (second->thinking_seconds, ==, 12.5);
  g_assert_cmpuint (second->dropped_messages, ==, 3);
  g_assert_cmpuint (second->tools->len, ==, 2);
  g_assert_true (ox_tool_entry_equal (second->tools->pdata[0], &call));
  g_assert_true (ox_tool_entry_equal (second->tools->pdata[1], &unread));
  g_assert_false (second->damaged);
  close_store (store);
}

/* Requests made before the file is open wait for it, and none overtakes another. */
static void
test_order (Fixture *fixture, gconstpointer unused)
{
  OxStore *store = ox_store_new (fixture->path);
  OxConversationRecord conversation = { .id = (char *) "c1", .draft = (char *) "x" };
  g_autoptr (GPtrArray) conversations = NULL;

  ox_store_open (store, NULL, NULL);
  for (guint i = 0; i < 100; i++) {
    g_autofree char *title = g_strdup_printf ("%u", i);
    conversation.title = title;
    ox_store_save_conversation (store, &conversation, NULL, NULL);
  }
  conversations = list_conversations (store);
  g_assert_cmpuint (conversations->len, ==, 1);
  g_assert_cmpstr (((OxConversationRecord *) conversations->pdata[0])->title, ==, "99");
  close_store (store);
}

/* All that was asked for is written when closing returns. */
static void
test_close_writes_all (Fixture *fixture, gconstpointer unused)
{
  OxStore *store = open_store (fixture->path);
  OxConversationRecord conversation = { .draft = (char *) "x" };

  for (guint i = 0; i < 200; i++) {
    g_autofree char *id = g_strdup_printf ("c%u", i);
    conversation.id = id;
    ox_store_save_conversation (store, &conversation, NULL, NULL);
  }
  close_store (store);
  g_assert_cmpint (query_int (fixture->path, "SELECT count(*) FROM conversations"), ==, 200);
}

static char *
find_aside (const char *path)
{
  g_autofree char *folder = g_path_get_dirname (path);
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  const char *name;

  while ((name = g_dir_read_name (dir)) != NULL)
    if (strstr (name, ".damaged-") != NULL && !g_str_has_suffix (name, "-wal") && !g_str_has_suffix (name, "-shm"))
      return g_build_filename (folder, name, NULL);
  return NULL;
}

typedef enum { ZEROS, OTHER_FILE, CUT } WholeDamage;

/* A file of zeros, as a power cut leaves it; a file that is something else; one cut off in the middle. */
static void
test_damaged_whole (Fixture *fixture, gconstpointer data)
{
  g_autofree char *content = NULL;
  g_autofree char *aside = NULL;
  g_autofree char *kept = NULL;
  OxStore *store = open_store (fixture->path);
  gsize length;
  gsize kept_length;

  for (guint i = 0; i < 200; i++) {
    g_autofree char *id = g_strdup_printf ("m%u", i);
    g_autofree char *text = g_strnfill (1000, 'w');
    g_assert_true (add_message (store, "c1", id, text, NULL));
  }
  close_store (store);
  g_assert_true (g_file_get_contents (fixture->path, &content, &length, NULL));
  switch ((WholeDamage) GPOINTER_TO_INT (data)) {
  case ZEROS:
    memset (content, 0, length);
    break;
  case OTHER_FILE:
    memcpy (content, "not a database at all", 21);
    break;
  case CUT:
    length /= 2;
    break;
  }
  g_assert_true (g_file_set_contents (fixture->path, content, length, NULL));

  store = open_store (fixture->path);
  g_assert_cmpint (ox_store_get_state (store), ==, OX_STORE_OPEN);
  g_assert_nonnull (ox_store_get_notice (store));
  g_test_message ("%s", ox_store_get_notice (store));
  /* What was there is still there, for those who can do more. */
  aside = find_aside (fixture->path);
  g_assert_nonnull (aside);
  g_assert_true (g_file_get_contents (aside, &kept, &kept_length, NULL));
  g_assert_cmpmem (kept, kept_length, content, length);
  g_assert_true (add_message (store, "c9", "m9", "life goes on", NULL));
  close_store (store);
  g_assert_cmpint (query_int (fixture->path, "SELECT count(*) FROM messages WHERE id = 'm9'"), ==, 1);
  if (GPOINTER_TO_INT (data) == CUT)
    g_assert_cmpint (query_int (fixture->path, "SELECT count(*) FROM messages WHERE id <> 'm9'"), >=, 60);
}

/* Overwrites pages in the middle; all that lies in others must come through. */
static void
test_damaged_pages (Fixture *fixture, gconstpointer unused)
{
  OxStore *store = open_store (fixture->path);
  g_autoptr (GPtrArray) conversations = NULL;
  g_autoptr (GPtrArray) hits = NULL;
  g_autofree char *long_text = g_strnfill (600, 'x');
  g_autofree char *content = NULL;
  g_autofree char *aside = NULL;
  gsize length;
  guint n_messages = 0;
  int root;

  for (guint i = 0; i < 300; i++) {
    g_autofree char *conversation_id = g_strdup_printf ("c%u", i / 10);
    g_autofree char *id = g_strdup_printf ("m%u", i);
    g_autofree char *text = g_strdup_printf ("otter%u %s", i, long_text);
    g_assert_true (add_message (store, conversation_id, id, text, NULL));
  }
  close_store (store);

  /* A leaf of the messages' tree: the 40th page after its root is one of them, or of the index, or both kinds in a row. */
  root = query_int (fixture->path, "SELECT rootpage FROM sqlite_master WHERE name = 'messages'");
  g_assert_true (g_file_get_contents (fixture->path, &content, &length, NULL));
  g_assert_cmpuint (length, >, (root + 46) * 4096);
  memset (content + (root + 40) * 4096, 0xa5, 4 * 4096);
  g_assert_true (g_file_set_contents (fixture->path, content, length, NULL));

  store = open_store (fixture->path);
  g_assert_cmpint (ox_store_get_state (store), ==, OX_STORE_OPEN);
  g_assert_nonnull (strstr (ox_store_get_notice (store), "damaged"));
  aside = find_aside (fixture->path);
  g_assert_nonnull (aside);
  conversations = list_conversations (store);
  for (guint i = 0; i < conversations->len; i++)
    n_messages += ((OxConversationRecord *) conversations->pdata[i])->n_messages;
  g_test_message ("%u conversations, %u of 300 messages saved", conversations->len, n_messages);
  /* Four pages hold 24 of these messages at most, and so no more than two conversations whole. */
  g_assert_cmpuint (conversations->len, >=, 28);
  g_assert_cmpuint (n_messages, >=, 276);
  hits = search (store, "otter299");
  g_assert_cmpuint (hits->len, ==, 1);
  close_store (store);

  /* The next start finds nothing to say. */
  store = open_store (fixture->path);
  g_assert_null (ox_store_get_notice (store));
  close_store (store);
}

/* A row with holes, wrong types, broken UTF-8 or an unknown role hides neither itself nor others. */
static void
test_damaged_rows (Fixture *fixture, gconstpointer unused)
{
  OxStore *store = open_store (fixture->path);
  g_autoptr (GPtrArray) conversations = NULL;
  g_autoptr (GPtrArray) messages = NULL;
  guint n_damaged = 0;

  g_assert_true (add_message (store, "c1", "first", "before", NULL));
  close_store (store);
  run_sql (
    fixture->path,
    "INSERT INTO conversations (id, title, updated, settings) VALUES ('c2', NULL, NULL, NULL),"
    "  ('c3', x'ff4142', 'soon', 'no variant'), ('', 'no id', 4, NULL), (x'c0', 'odd id', 4, NULL);"
    "INSERT INTO messages (id, conversation_id, position, role, text, state) VALUES"
    "  ('null text', 'c1', 1e300, 'user', NULL, 'complete'), ('bad utf-8', 'c1', NULL, 'assistant', x'41ff42', "
    "'complete'),"
    "  ('role', 'c1', 'x', 'wizard', 'abra', 'complete'), ('no role', 'c1', 7, NULL, 'cadabra', NULL),"
    "  ('number', 'c1', 8, 'user', 42, 'dancing'), ('nul', 'c1', 9, 'user', x'410042', 'complete');"
    "UPDATE messages SET created = 'never', decode_seconds = 'x', answer_tokens = -5, end_reason = 77;"
    "INSERT INTO messages (id, conversation_id, position, role, text, state) VALUES"
    "  ('last', 'c1', 9e18, 'user', 'after', 'complete'), ('orphan', 'nowhere', 0, 'user', 'lost', 'complete');"
    "INSERT INTO messages (id, conversation_id, position, role, text, state, tools, thinking_seconds) VALUES"
    "  ('tools 1', 'c1', 10, 'assistant', 'a', 'complete', '[{\"name\":', -3),"
    "  ('tools 2', 'c1', 11, 'assistant', 'b', 'complete', '{\"name\":1}', 'long'),"
    "  ('tools 3', 'c1', 12, 'assistant', 'c', 'complete', '[{\"name\":7,\"arguments\":\"{}\",\"round\":-1}]', 1e300),"
    "  ('tools 4', 'c1', 13, 'assistant', 'd', 'complete', x'5b00ff', NULL),"
    "  ('tools 5', 'c1', 14, 'assistant', 'e', 'complete', 17, NULL)");

  store = open_store (fixture->path);
  g_assert_cmpint (ox_store_get_state (store), ==, OX_STORE_OPEN);
  conversations = list_conversations (store);
  for (guint i = 0; i < conversations->len; i++) {
    OxConversationRecord *record = conversations->pdata[i];
    g_assert_true (record->title == NULL || g_utf8_validate (record->title, -1, NULL));
    g_assert_true (g_utf8_validate (record->id, -1, NULL));
  }
  messages = list_messages (store, "c1");
  g_assert_cmpuint (messages->len, ==, 13);
  for (guint i = 0; i < messages->len; i++) {
    OxMessageRecord *record = messages->pdata[i];
    g_assert_true (g_utf8_validate (record->text, -1, NULL));
    g_assert_cmpfloat (record->thinking_seconds, ==, 0);
    n_damaged += record->damaged;
  }
  /* Five of old, and the calls of four. */
  g_assert_cmpuint (n_damaged, ==, 9);
  close_store (store);
}

/* Answers that were being written when the app ended keep their text. */
static void
test_interrupted (Fixture *fixture, gconstpointer unused)
{
  OxStore *store = open_store (fixture->path);
  g_autoptr (GPtrArray) messages = NULL;
  g_autoptr (GPtrArray) hits = NULL;
  OxMessageRecord *record = g_new0 (OxMessageRecord, 1);
  GAsyncResult *result = NULL;

  g_assert_true (add_message (store, "c1", "question", "why", NULL));
  g_assert_true (add_message (store, "c1", "answer", NULL, NULL));
  record->id = g_strdup ("answer");
  record->conversation_id = g_strdup ("c1");
  record->position = G_MAXINT64;
  record->role = OX_ROLE_ASSISTANT;
  record->text = g_strdup ("because of the gulls");
  record->state = OX_MESSAGE_READING;
  ox_store_save_message (store, record, keep_result, &result);
  g_assert_true (wait_for_write (store, &result, NULL));
  /* Not in the index while it is being written. */
  hits = search (store, "gulls");
  g_assert_cmpuint (hits->len, ==, 0);
  close_store (store);

  store = open_store (fixture->path);
  messages = list_messages (store, "c1");
  g_assert_cmpuint (messages->len, ==, 2);
  g_assert_cmpint (message_at (messages, 1)->state, ==, OX_MESSAGE_INTERRUPTED);
  g_assert_cmpstr (message_at (messages, 1)->text, ==, "because of the gulls");
  g_ptr_array_unref (hits);
  hits = search (store, "gulls");
  g_assert_cmpuint (hits->len, ==, 1);
  close_store (store);
}

static void
test_deletion (Fixture *fixture, gconstpointer unused)
{
  OxStore *store = open_store (fixture->path);
  g_autoptr (GPtrArray) list = NULL;
  g_autofree char *content = NULL;
  gsize length;
  GAsyncResult *result = NULL;

  g_assert_true (add_message (store, "c1", "m1", "heron", NULL));
  g_assert_true (add_message (store, "c2", "m2", "heron", NULL));
  g_assert_true (add_message (store, "c3", "m3", "xylophonesecret", NULL));
  ox_store_set_deleted (store, "c1", TRUE, NULL, NULL);
  list = list_conversations (store);
  g_assert_cmpuint (list->len, ==, 2);
  g_ptr_array_unref (list);
  list = search (store, "heron");
  g_assert_cmpuint (list->len, ==, 1);

  /* Undo */
  ox_store_set_deleted (store, "c1", FALSE, NULL, NULL);
  g_ptr_array_unref (list);
  list = search (store, "heron");
  g_assert_cmpuint (list->len, ==, 2);

  ox_store_set_deleted (store, "c2", TRUE, NULL, NULL);
  ox_store_set_deleted (store, "c3", TRUE, NULL, NULL);
  ox_store_purge (store, "c3", keep_result, &result);
  g_assert_true (wait_for_write (store, &result, NULL));
  ox_store_remove_messages (store, (const char *const[]) { "m1", "nonexistent", NULL }, keep_result, &result);
  g_assert_true (wait_for_write (store, &result, NULL));
  /* An answer that comes late to an erased conversation does not bring it back. */
  g_ptr_array_unref (list);
  list = list_messages (store, "c3");
  g_assert_cmpuint (list->len, ==, 0);
  close_store (store);

  /* What was not undone is gone with the next start. */
  store = open_store (fixture->path);
  close_store (store);
  g_assert_cmpint (query_int (fixture->path, "SELECT count(*) FROM messages"), ==, 0);
  g_assert_cmpint (query_int (fixture->path, "SELECT count(*) FROM conversations WHERE id IN ('c2', 'c3')"), ==, 0);
  g_assert_cmpint (query_int (fixture->path, "SELECT count(*) FROM message_index WHERE message_index MATCH 'heron'"),
                   ==, 0);
  /* And no trace of the text is left in the file. */
  g_assert_true (g_file_get_contents (fixture->path, &content, &length, NULL));
  g_assert_null (memmem (content, length, "xylophonesecret", strlen ("xylophonesecret")));
}

static void
test_late_answer (Fixture *fixture, gconstpointer unused)
{
  OxStore *store = open_store (fixture->path);
  OxMessageRecord *record = g_new0 (OxMessageRecord, 1);
  GAsyncResult *result = NULL;

  g_assert_true (add_message (store, "c1", "m1", "q", NULL));
  ox_store_purge (store, "c1", NULL, NULL);
  record->id = g_strdup ("m2");
  record->conversation_id = g_strdup ("c1");
  record->role = OX_ROLE_ASSISTANT;
  record->text = g_strdup ("a");
  ox_store_save_message (store, record, keep_result, &result);
  g_assert_true (wait_for_write (store, &result, NULL));
  close_store (store);
  g_assert_cmpint (query_int (fixture->path, "SELECT count(*) FROM messages"), ==, 0);
}

static void
assert_found (OxStore *store, const char *text, const char *expected_id, const char *expected_markup)
{
  g_autoptr (GPtrArray) hits = search (store, text);
  OxSearchHit *hit;

  if (expected_id == NULL) {
    g_assert_cmpuint (hits->len, ==, 0);
    return;
  }
  g_assert_cmpuint (hits->len, ==, 1);
  hit = hits->pdata[0];
  g_assert_cmpstr (hit->conversation_id, ==, expected_id);
  if (expected_markup != NULL)
    g_assert_cmpstr (hit->markup, ==, expected_markup);
}

static void
test_search (Fixture *fixture, gconstpointer unused)
{
  OxStore *store = open_store (fixture->path);
  OxConversationRecord titled = { .id = (char *) "c9", .title = (char *) "Baking & bread", .draft = (char *) "x" };
  g_autoptr (GPtrArray) hits = NULL;

  g_assert_true (add_message (store, "c1", "m1", "The naïve <fox> jumps\nover “dogs” & 100% of x_y", NULL));
  g_assert_true (add_message (store, "c1", "m1b", "another fox in the same conversation", NULL));
  g_assert_true (add_message (store, "c2", "m2", "我想学习中文和日本語を話す", NULL));
  g_assert_true (add_message (store, "c3", "m3", "nothing to see \002bold\003", NULL));
  ox_store_save_conversation (store, &titled, NULL, NULL);

  assert_found (store, "naiv", "c1", "The <b>naïve</b> &lt;fox&gt; jumps over “dogs” &amp; 100% of x_y");
  assert_found (store, "FOX jump", "c1", NULL);
  assert_found (store, "  fox\t", "c1", NULL);
  assert_found (store, "fox missing", NULL, NULL);
  assert_found (store, "bread", "c9", "Baking &amp; <b>bread</b>");
  assert_found (store, "学习", "c2", "我想<b>学习</b>中文和日本語を話す");
  assert_found (store, "100%", "c1", NULL);
  assert_found (store, "%", "c1", NULL);
  assert_found (store, "“", "c1", NULL);
  assert_found (store, "nothing", "c3", "<b>nothing</b> to see <b>bold</b>");
  assert_found (store, "\" OR text : NEAR(", NULL, NULL);
  assert_found (store, "fox\" OR \"see", NULL, NULL);
  assert_found (store, "", NULL, NULL);
  hits = search (store, "-");
  g_assert_cmpuint (hits->len, ==, 0);
  close_store (store);
}

/* Damage in the index alone is no reason to lose a message, nor to alarm anybody. */
static void
test_damaged_index (Fixture *fixture, gconstpointer unused)
{
  OxStore *store = open_store (fixture->path);
  g_autoptr (GPtrArray) hits = NULL;

  g_assert_true (add_message (store, "c1", "m1", "puffin", NULL));
  close_store (store);
  run_sql (fixture->path, "UPDATE message_index_data SET block = x'00112233' WHERE id > 10; "
                          "DELETE FROM message_index_idx");
  store = open_store (fixture->path);
  g_assert_cmpint (ox_store_get_state (store), ==, OX_STORE_OPEN);
  g_assert_true (add_message (store, "c1", "m2", "kittiwake", NULL));
  hits = search (store, "kittiwake");
  g_assert_cmpuint (hits->len, ==, 1);
  close_store (store);
  g_assert_cmpint (query_int (fixture->path, "SELECT count(*) FROM messages"), ==, 2);
}

/* ---- Kill ---- */

/* In the child: adds messages for ever, and says which are confirmed. */
static int
write_for_ever (const char *path)
{
  OxStore *store = open_store (path);

  for (guint i = 0;; i++) {
    g_autofree char *conversation_id = g_strdup_printf ("c%u", i % 5);
    g_autofree char *id = g_strdup_printf ("m%u", i);
    g_autofree char *text = g_strdup_printf ("confirmed%u %0*d", i, (int) (i % 7) * 900, 0);

    if (!add_message (store, conversation_id, id, text, NULL))
      return 1;
    g_print ("%u\n", i);
  }
}

static guint
kill_in_mid_write (const char *path, guint milliseconds)
{
  g_autofree char *self = g_file_read_link ("/proc/self/exe", NULL);
  const char *argv[] = { self, "--write-for-ever", path, NULL };
  g_autoptr (GError) error = NULL;
  g_autoptr (GString) output = g_string_new (NULL);
  const char *last;
  char buffer[4096];
  gssize n;
  GPid pid;
  int fd;

  g_assert_true (g_spawn_async_with_pipes (NULL, (char **) argv, NULL, G_SPAWN_DO_NOT_REAP_CHILD, NULL, NULL, &pid,
                                           NULL, &fd, NULL, &error));
  g_assert_no_error (error);
  g_usleep (milliseconds * 1000);
  kill (pid, SIGKILL);
  while ((n = read (fd, buffer, sizeof buffer)) > 0)
    g_string_append_len (output, buffer, n);
  close (fd);
  waitpid (pid, NULL, 0);
  g_spawn_close_pid (pid);

  /* Whole lines only. */
  while (output->len > 0 && output->str[output->len - 1] != '\n')
    g_string_truncate (output, output->len - 1);
  if (output->len == 0)
    return 0;
  g_string_truncate (output, output->len - 1);
  last = strrchr (output->str, '\n');
  return (guint) g_ascii_strtoull (last != NULL ? last + 1 : output->str, NULL, 10) + 1;
}

static void
test_kill (Fixture *fixture, gconstpointer unused)
{
  guint total = 0;

  for (guint run = 0; run < 6; run++) {
    g_autofree char *path = g_strdup_printf ("%s-%u", fixture->path, run);
    guint n_confirmed = kill_in_mid_write (path, 300 + 37 * run);
    OxStore *store = open_store (path);
    g_autofree char *query = NULL;

    g_assert_cmpint (ox_store_get_state (store), ==, OX_STORE_OPEN);
    g_assert_null (ox_store_get_notice (store));
    close_store (store);
    query = g_strdup_printf ("SELECT count(*) FROM messages WHERE CAST(substr(id, 2) AS INTEGER) < %u AND text LIKE "
                             "'confirmed' || substr(id, 2) || ' %%'",
                             n_confirmed);
    g_assert_cmpint (query_int (path, query), ==, (int) n_confirmed);
    total += n_confirmed;
  }
  g_test_message ("%u confirmed messages, all there", total);
  g_assert_cmpuint (total, >, 6);
}

/* ---- The disk ---- */

static void
count_cb (guint *n)
{
  (*n)++;
}

/* No file of the process may grow: what the store then says is that the disk is full, and when there is space again all is well. */
static void
test_disk_full (Fixture *fixture, gconstpointer unused)
{
  OxStore *store = open_store (fixture->path);
  g_autofree char *long_text = g_strnfill (100000, 'y');
  g_autoptr (GPtrArray) messages = NULL;
  g_autoptr (GError) error = NULL;
  struct rlimit limit;
  struct rlimit small;
  GStatBuf info;
  guint n_told = 0;

  g_signal_connect_swapped (store, "write-failed", G_CALLBACK (count_cb), &n_told);
  g_assert_true (add_message (store, "c1", "m1", "kept", NULL));
  g_stat (fixture->path, &info);
  signal (SIGXFSZ, SIG_IGN);
  getrlimit (RLIMIT_FSIZE, &limit);
  small = limit;
  small.rlim_cur = info.st_size + 20000;
  setrlimit (RLIMIT_FSIZE, &small);
  g_assert_false (add_message (store, "c1", "m2", long_text, &error));
  setrlimit (RLIMIT_FSIZE, &limit);
  g_assert_error (error, OX_STORE_ERROR, OX_STORE_ERROR_FULL);
  g_assert_cmpuint (n_told, ==, 1);

  g_assert_true (add_message (store, "c1", "m2", long_text, NULL));
  messages = list_messages (store, "c1");
  g_assert_cmpuint (messages->len, ==, 2);
  close_store (store);
}

static void
test_cannot_open (Fixture *fixture, gconstpointer unused)
{
  g_autofree char *path = g_build_filename (fixture->folder, "file", "library.db", NULL);
  g_autofree char *file = g_build_filename (fixture->folder, "file", NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (GError) close_error = NULL;
  OxStore *store;

  /* A file where the folder should be: so it is for root too. */
  g_assert_true (g_file_set_contents (file, "x", 1, NULL));
  store = open_store (path);
  g_assert_cmpint (ox_store_get_state (store), ==, OX_STORE_FAILED);
  g_assert_nonnull (ox_store_get_notice (store));
  g_assert_false (add_message (store, "c1", "m1", "x", &error));
  g_assert_error (error, OX_STORE_ERROR, OX_STORE_ERROR_OPEN);
  g_assert_true (ox_store_close (store, -1));
  g_assert_false (add_message (store, "c1", "m1", "x", &close_error));
  g_assert_error (close_error, OX_STORE_ERROR, OX_STORE_ERROR_CLOSED);
  settle ();
  g_assert_finalize_object (store);
}

static void
test_read_only_file (Fixture *fixture, gconstpointer unused)
{
  OxStore *store = open_store (fixture->path);
  g_autofree char *folder = g_path_get_dirname (fixture->path);
  g_autoptr (GPtrArray) conversations = NULL;

  g_assert_true (add_message (store, "c1", "m1", "x", NULL));
  close_store (store);
  g_chmod (fixture->path, 0400);
  g_chmod (folder, 0500);
  if (g_access (fixture->path, W_OK) == 0) {
    g_test_skip ("this user may write everywhere");
    return;
  }
  store = open_store (fixture->path);
  g_assert_cmpint (ox_store_get_state (store), ==, OX_STORE_READ_ONLY);
  conversations = list_conversations (store);
  g_assert_cmpuint (conversations->len, ==, 1);
  close_store (store);
  g_chmod (folder, 0700);
}

static void
test_cancelled_search (Fixture *fixture, gconstpointer unused)
{
  OxStore *store = open_store (fixture->path);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GAsyncResult) result = NULL;
  g_autoptr (GError) error = NULL;

  ox_store_search (store, "x", 10, cancellable, keep_result, &result);
  g_cancellable_cancel (cancellable);
  run_until (result != NULL);
  g_assert_null (ox_store_list_finish (store, result, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_object (&result);
  close_store (store);
}

int
main (int argc, char *argv[])
{
  if (argc == 3 && g_str_equal (argv[1], "--write-for-ever"))
    return write_for_ever (argv[2]);

  g_test_init (&argc, &argv, G_TEST_OPTION_ISOLATE_DIRS, NULL);
#define ADD(name, function) g_test_add ("/store/" name, Fixture, NULL, set_up, function, tear_down)
  ADD ("round-trip", test_round_trip);
  ADD ("order", test_order);
  ADD ("close-writes-all", test_close_writes_all);
  g_test_add ("/store/damaged/zeros", Fixture, GINT_TO_POINTER (ZEROS), set_up, test_damaged_whole, tear_down);
  g_test_add ("/store/damaged/other-file", Fixture, GINT_TO_POINTER (OTHER_FILE), set_up, test_damaged_whole,
              tear_down);
  g_test_add ("/store/damaged/cut", Fixture, GINT_TO_POINTER (CUT), set_up, test_damaged_whole, tear_down);
  ADD ("damaged/pages", test_damaged_pages);
  ADD ("damaged/rows", test_damaged_rows);
  ADD ("damaged/index", test_damaged_index);
  ADD ("interrupted", test_interrupted);
  ADD ("deletion", test_deletion);
  ADD ("late-answer", test_late_answer);
  ADD ("search", test_search);
  ADD ("cancelled-search", test_cancelled_search);
  ADD ("kill", test_kill);
  ADD ("disk-full", test_disk_full);
  ADD ("cannot-open", test_cannot_open);
  ADD ("read-only-file", test_read_only_file);
  return g_test_run ();
}
