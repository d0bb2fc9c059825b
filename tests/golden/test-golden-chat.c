/* A real conversation, end to end: a tiny Gemma 4 that was trained to chat a little answers in the reference's words. Its tokenizer, its
 * chat format, its network and its stop tokens all have to be right for that.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "io/ox-json.h"
#include "ox-session-private.h"

#include <string.h>

typedef struct {
  char *path;
  OxModel *model;
  OxJson *json;
} Fixture;

static void
set_up (Fixture *fixture, gconstpointer data)
{
  OxModelOptions options = { .precision = (OxModelPrecision) GPOINTER_TO_INT (data), .no_packed_cache = TRUE };
  g_autofree char *expected = NULL;
  g_autoptr (OxFile) file = NULL;
  g_autoptr (GError) error = NULL;

  fixture->path = g_build_filename (g_getenv ("OX_TEST_DATA"), "models/tiny-gemma4-mm", NULL);
  expected = g_build_filename (fixture->path, "expected/expected.json", NULL);
  fixture->model = ox_model_load (fixture->path, &options, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  file = ox_file_open (expected, &error);
  g_assert_no_error (error);
  fixture->json = ox_json_read_all (file, 1 << 20, &error);
  g_assert_no_error (error);
}

static void
tear_down (Fixture *fixture, gconstpointer data)
{
  ox_model_unref (fixture->model);
  ox_json_free (fixture->json);
  g_free (fixture->path);
}

static GArray *
ids_of (yyjson_val *list)
{
  GArray *ids = g_array_new (FALSE, FALSE, sizeof (guint32));
  yyjson_val *val;
  gsize i, n;

  ox_json_foreach_item (list, i, n, val) {
    guint32 id = (guint32) yyjson_get_uint (val);

    g_array_append_val (ids, id);
  }
  return ids;
}

static void
append_text (const OxEvent *event, gpointer user_data)
{
  if (event->type == OX_EVENT_TEXT)
    g_string_append (user_data, event->text);
}

static void
test_answers (Fixture *fixture, gconstpointer data)
{
  yyjson_val *cases = yyjson_obj_get (ox_json_get_root (fixture->json), "cases");
  OxSampling greedy = { .top_p = 1, .repetition_penalty = 1 };
  yyjson_val *val;
  guint n_texts = 0;
  gsize i, n;

  ox_json_foreach_item (cases, i, n, val) {
    yyjson_val *turns = yyjson_obj_get (val, "turns");
    g_autoptr (OxChat) chat = ox_chat_new ();
    g_autoptr (GArray) expected = ids_of (yyjson_obj_get (val, "prompt_ids"));
    g_autoptr (GArray) ids = NULL;
    g_autoptr (GString) text = g_string_new (NULL);
    g_autoptr (OxSession) session = NULL;
    g_autoptr (GError) error = NULL;
    yyjson_val *turn;
    gsize j, n_turns;

    if (!g_str_has_prefix (yyjson_get_str (yyjson_obj_get (val, "name")), "text"))
      continue;
    n_texts++;
    ox_json_foreach_item (turns, j, n_turns, turn) {
      ox_chat_append (chat, j % 2 == 0 ? OX_ROLE_USER : OX_ROLE_ASSISTANT, yyjson_get_str (turn));
    }
    ids = ox_model_encode_chat (fixture->model, chat, NULL, NULL, &error);
    g_assert_no_error (error);
    g_assert_cmpmem (ids->data, ids->len * sizeof (guint32), expected->data, expected->len * sizeof (guint32));

    session = ox_session_new (fixture->model, &error);
    g_assert_no_error (error);
    ox_session_generate (session, chat, &greedy, append_text, text, NULL, &error);
    g_assert_no_error (error);
    g_test_message ("%s → %s", ox_chat_get_text (chat, ox_chat_get_length (chat) - 1), text->str);
    g_assert_cmpstr (text->str, ==, yyjson_get_str (yyjson_obj_get (val, "text")));
  }
  g_assert_cmpuint (n_texts, ==, 10);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add ("/golden/chat/exact", Fixture, GINT_TO_POINTER (OX_MODEL_PRECISION_EXACT), set_up, test_answers,
              tear_down);
  /* What the app uses: weights in Q8, activations too. A model this small says the same. */
  g_test_add ("/golden/chat/fast", Fixture, GINT_TO_POINTER (OX_MODEL_PRECISION_FAST), set_up, test_answers, tear_down);
  return g_test_run ();
}
