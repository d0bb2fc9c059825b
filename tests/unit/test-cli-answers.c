/* oxinfer-cli generate, eval and chat: what models say, and what is measured of it.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "cli-test.h"

#include <string.h>
#include <unistd.h>

/* ---- generate ---- */

static void
test_generate (void)
{
  g_auto (Result) argument;
  g_auto (Result) input;
  g_auto (Result) both;
  g_auto (Result) joined;
  g_auto (Result) raw;
  g_auto (Result) system;

  cli (&argument, NULL, "generate --model MODEL --temperature 0 -n 30 hello there");
  assert_ok (&argument);
  g_assert_cmpuint (strlen (argument.out), >, 20);
  g_assert_true (g_str_has_suffix (argument.out, "\n"));
  g_assert_null (strchr (argument.out, '\033'));
  cli (&input, "hello there\n", "generate --model MODEL --temperature 0 -n 30");
  g_assert_cmpstr (input.out, ==, argument.out);
  cli (&both, "and more", "generate --model MODEL --temperature 0 -n 30 hello there -");
  assert_ok (&both);
  cli (&joined, "hello there\n\nand more", "generate --model MODEL --temperature 0 -n 30");
  g_assert_cmpstr (both.out, ==, joined.out);
  g_assert_cmpstr (both.out, !=, argument.out);
  cli (&raw, NULL, "generate --model MODEL --temperature 0 -n 30 --raw hello there");
  assert_ok (&raw);
  g_assert_cmpstr (raw.out, !=, argument.out);
  cli (&system, NULL, "generate --model MODEL --temperature 0 -n 30 --system Be-brief hello there");
  assert_ok (&system);
  g_assert_cmpstr (system.out, !=, argument.out);
}

static void
test_generate_json (void)
{
  g_auto (Result) text;
  g_auto (Result) json;
  g_autoptr (GPtrArray) lines = NULL;
  g_autoptr (GString) all = g_string_new (NULL);
  yyjson_val *end;

  cli (&text, NULL, "generate --model MODEL --temperature 0 -n 25 hello");
  cli (&json, NULL, "generate --model MODEL --temperature 0 -n 25 --json hello");
  assert_ok (&json);
  lines = parse_lines (json.out);
  g_assert_cmpstr (string_of (root_of (lines, 0), "event"), ==, "prefill");
  for (guint i = 0; i + 1 < lines->len; i++) {
    const char *event = string_of (root_of (lines, i), "event");

    g_assert_cmpstr (event, !=, "end");
    if (strcmp (event, "text") == 0)
      g_string_append (all, string_of (root_of (lines, i), "text"));
  }
  end = root_of (lines, lines->len - 1);
  g_assert_cmpstr (string_of (end, "event"), ==, "end");
  g_assert_cmpstr (string_of (end, "reason"), ==, "length");
  g_assert_cmpstr (string_of (end, "text"), ==, all->str);
  g_assert_cmpuint (yyjson_get_uint (yyjson_obj_get (end, "answer_tokens")), ==, 25);
  g_assert_cmpfloat (yyjson_get_num (yyjson_obj_get (end, "decode_rate")), >, 0);
  g_string_append_c (all, '\n');
  g_assert_cmpstr (all->str, ==, text.out);
}

static void
test_generate_seed (void)
{
  g_auto (Result) a;
  g_auto (Result) b;
  g_auto (Result) c;

  cli (&a, NULL, "generate --model MODEL --temperature 1 --top-k 0 --top-p 1 --seed 5 -n 30 hello");
  cli (&b, NULL, "generate --model MODEL --temperature 1 --top-k 0 --top-p 1 --seed 5 -n 30 hello");
  cli (&c, NULL, "generate --model MODEL --temperature 1 --top-k 0 --top-p 1 --seed 6 -n 30 hello");
  assert_ok (&a);
  g_assert_cmpstr (a.out, ==, b.out);
  g_assert_cmpstr (a.out, !=, c.out);
}

/* ---- Token by token ---- */

/* The likeliest entry of a row. */
static guint
argmax (const float *row)
{
  guint best = 0;

  for (guint i = 1; i < OX_TOY_VOCAB; i++)
    if (row[i] > row[best])
      best = i;
  return best;
}

/* The ids of a greedy answer are the likeliest entries of the logits, in either format, and the same from text and from ids. */
static void
test_generate_logits (void)
{
  g_autofree char *npy = make_path ("out.npy");
  g_autofree char *tensors = make_path ("out.safetensors");
  g_autofree char *npy_line = g_strconcat ("generate --model MODEL --greedy -n 6 --ids 104,105 --logits ", npy, NULL);
  g_autofree char *text_line = g_strconcat ("generate --model MODEL --greedy -n 6 --raw hi --logits ", tensors, NULL);
  g_auto (Result) ids;
  g_auto (Result) text;
  g_auto (Result) plain;
  g_auto (Result) json;
  g_autofree char *array = NULL;
  g_autofree char *both = NULL;
  g_autoptr (GString) decoded = g_string_new (NULL);
  g_autoptr (GPtrArray) lines = NULL;
  g_auto (GStrv) words = NULL;
  gsize len, header = 512, row = OX_TOY_VOCAB * sizeof (float);

  cli (&ids, NULL, npy_line);
  assert_ok (&ids);
  words = g_strsplit (g_strchomp (ids.out), " ", -1);
  g_assert_cmpuint (g_strv_length (words), ==, 6);
  g_assert_true (g_file_get_contents (npy, &array, &len, NULL));
  g_assert_cmpuint (len, ==, header + 6 * row);
  g_assert_cmpmem (array, 8, "\x93NUMPY\x01\x00", 8);
  g_assert_nonnull (strstr (array + 10, "{'descr': '<f4', 'fortran_order': False, 'shape': (6, 272), }"));
  for (guint i = 0; i < 6; i++) {
    guint id = argmax ((const float *) (gconstpointer) (array + header + i * row));

    g_assert_cmpuint (id, ==, (guint) g_ascii_strtoull (words[i], NULL, 10));
    g_string_append_c (decoded, (char) id);
  }
  g_string_append_c (decoded, '\n');

  /* The model's words are bytes, and it has no BOS: "hi" is 104, 105. */
  cli (&text, NULL, text_line);
  assert_ok (&text);
  g_assert_cmpstr (text.out, ==, decoded->str);
  g_assert_true (g_file_get_contents (tensors, &both, &len, NULL));
  g_assert_cmpuint (len, ==, header + 6 * row + 2 * 8 + 6 * 8);
  g_assert_cmpmem (both + header, 6 * row, array + header, 6 * row);
  g_assert_cmpint (((const gint64 *) (gconstpointer) (both + header + 6 * row))[1], ==, 105);
  cli (&plain, NULL, "generate --model MODEL --greedy -n 6 --raw hi --no-speculation");
  g_assert_cmpstr (plain.out, ==, decoded->str);

  cli (&json, NULL, "generate --model MODEL --greedy -n 6 --ids 104,105 --json");
  assert_ok (&json);
  lines = parse_lines (json.out);
  g_assert_cmpstr (string_of (root_of (lines, lines->len - 1), "text"), ==, ids.out);
  g_assert_cmpstr (string_of (root_of (lines, lines->len - 1), "reason"), ==, "length");
  delete_path (npy);
  delete_path (tensors);
}

/* What could not be finished leaves no file. */
static void
test_generate_logits_failure (void)
{
  g_autofree char *path = make_path ("out.npy");
  g_autofree char *line =
    g_strconcat ("generate --model MODEL --greedy --context 20 --ids 1 --top-p 0.5 --logits ", path, NULL);
  static const char *const bad[] = { "1,x", "1000", ",", "-1" };
  g_auto (Result) full;

  for (gsize i = 0; i < G_N_ELEMENTS (bad); i++) {
    g_autofree char *bad_line = g_strdup_printf ("generate --model MODEL --ids=%s --logits %s", bad[i], path);
    g_auto (Result) failed;

    cli (&failed, NULL, bad_line);
    g_assert_cmpint (failed.exit_code, ==, 2);
    g_assert_nonnull (strstr (failed.err, "--ids"));
    g_assert_false (g_file_test (path, G_FILE_TEST_EXISTS));
  }
  cli (&full, NULL, line);
  assert_ok (&full);
  g_assert_true (g_file_test (path, G_FILE_TEST_EXISTS));
  delete_path (path);
}

static void
test_generate_options (void)
{
  g_auto (Result) greedy;
  g_auto (Result) zero;
  g_auto (Result) stopped;
  g_auto (Result) half;
  g_autofree char *line = NULL;
  g_autofree char *stop = NULL;
  char *at;

  cli (&greedy, NULL, "generate --model MODEL --greedy -n 30 hello");
  assert_ok (&greedy);
  cli (&zero, NULL, "generate --model MODEL --temperature 0 -n 30 hello");
  g_assert_cmpstr (greedy.out, ==, zero.out);
  /* A stop string that is no option and holds no space. */
  for (at = greedy.out + 10; strchr (" -\n", at[0]) != NULL || strchr (" \n", at[1]) != NULL; at++)
    ;
  stop = g_strndup (at, 2);
  line = g_strconcat ("generate --model MODEL --greedy -n 30 --stop ", stop, " --stop nonsense hello", NULL);
  cli (&stopped, NULL, line);
  assert_ok (&stopped);
  *strstr (greedy.out, stop) = '\0';
  g_assert_true (g_str_has_prefix (stopped.out, greedy.out));
  g_assert_cmpuint (strlen (stopped.out), <=, strlen (greedy.out) + 1);
  cli (&half, NULL, "generate --model MODEL --greedy -n 5 --weights stored --kv bf16 --precision exact hello");
  assert_ok (&half);
}

/* Whatever a model would say, it says what the schema allows. */
static void
test_generate_schema (void)
{
  g_autofree char *path = make_path ("schema.json");
  g_autofree char *line = g_strconcat ("generate --model MODEL -n 20 --json-schema ", path, " hello", NULL);
  g_auto (Result) result;
  g_auto (Result) bad;

  g_assert_true (g_file_set_contents (path, "{\"enum\": [\"red\", \"green\"]}", -1, NULL));
  cli (&result, NULL, line);
  assert_ok (&result);
  g_assert_true (strcmp (result.out, "\"red\"\n") == 0 || strcmp (result.out, "\"green\"\n") == 0);
  g_assert_true (g_file_set_contents (path, "{\"enum\":", -1, NULL));
  cli (&bad, NULL, line);
  g_assert_cmpint (bad.exit_code, !=, 0);
  g_assert_true (g_str_has_prefix (bad.err, "oxinfer-cli: "));
  delete_path (path);
}

/* ---- eval ---- */

static void
test_eval (void)
{
  g_autofree char *path = make_path ("text.txt");
  g_autofree char *line = g_strconcat ("eval --model MODEL --window 32 --positions 100 --json ", path, NULL);
  g_autofree char *against =
    g_strconcat ("eval --model MODEL --precision exact --window 32 --against exact/stored --json ", path, NULL);
  g_autofree char *rounded =
    g_strconcat ("eval --model MODEL --precision fast --weights q4 --against exact/stored ", path, NULL);
  g_autoptr (GString) text = g_string_new (NULL);
  g_auto (Result) alone;
  g_auto (Result) same;
  g_auto (Result) table;
  g_auto (Result) input;
  g_auto (Result) empty;
  g_autoptr (GPtrArray) lines = NULL;
  g_autoptr (GPtrArray) same_lines = NULL;
  yyjson_val *root;

  for (guint i = 0; i < 40; i++)
    g_string_append_printf (text, "Sentence %u is not like number %u.\n", i, i * i);
  g_assert_true (g_file_set_contents (path, text->str, -1, NULL));
  cli (&alone, NULL, line);
  assert_ok (&alone);
  lines = parse_lines (alone.out);
  root = root_of (lines, 0);
  g_assert_cmpuint (yyjson_get_uint (yyjson_obj_get (root, "positions")), ==, 100);
  /* Weights that know nothing: not far from as many as there are tokens. */
  g_assert_cmpfloat (yyjson_get_num (yyjson_obj_get (root, "perplexity")), >, 20);
  g_assert_null (yyjson_obj_get (root, "kl_mean"));

  cli (&same, NULL, against);
  assert_ok (&same);
  same_lines = parse_lines (same.out);
  root = root_of (same_lines, 0);
  g_assert_cmpuint (yyjson_get_uint (yyjson_obj_get (root, "positions")), >, 1000);
  g_assert_cmpfloat (yyjson_get_num (yyjson_obj_get (root, "kl_max")), ==, 0);
  g_assert_cmpfloat (yyjson_get_num (yyjson_obj_get (root, "top1")), ==, 1);
  g_assert_cmpfloat (yyjson_get_num (yyjson_obj_get (root, "perplexity")), ==,
                     yyjson_get_num (yyjson_obj_get (root, "reference_perplexity")));

  cli (&table, NULL, rounded);
  assert_ok (&table);
  g_assert_nonnull (strstr (table.out, "KL divergence "));
  g_assert_nonnull (strstr (table.out, ", exact\n"));
  cli (&input, text->str, "eval --model MODEL --window 32 --positions 100 --json -");
  g_assert_cmpstr (input.out, ==, alone.out);
  cli (&empty, "", "eval --model MODEL -");
  g_assert_cmpint (empty.exit_code, !=, 0);
  g_assert_true (g_str_has_prefix (empty.err, "oxinfer-cli: "));
  delete_path (path);
}

/* An error in the middle is an event, too, and then a sentence and an exit code. */
static void
test_generate_error_json (void)
{
  g_auto (Result) result;
  g_autoptr (GPtrArray) lines = NULL;

  cli (&result, NULL, "generate --model MODEL --context 8 --json hello");
  g_assert_cmpint (result.exit_code, ==, 1);
  g_assert_true (g_str_has_prefix (result.err, "oxinfer-cli: "));
  lines = parse_lines (result.out);
  g_assert_cmpstr (string_of (root_of (lines, lines->len - 1), "reason"), ==, "error");
}

/* ---- chat ---- */

static guint64
end_number (GPtrArray *lines, guint turn, const char *key)
{
  for (guint i = 0; i < lines->len; i++)
    if (strcmp (string_of (root_of (lines, i), "event"), "end") == 0 && turn-- == 0)
      return yyjson_get_uint (yyjson_obj_get (root_of (lines, i), key));
  g_assert_not_reached ();
}

static void
test_chat (void)
{
  g_auto (Result) text;
  g_auto (Result) one;
  g_auto (Result) json;
  g_autoptr (GPtrArray) lines = NULL;

  cli (&one, "hello\n", "generate --model MODEL --temperature 0 -n 12");
  cli (&text, "hello\n\nhow are\\\nyou?\n/quit\nnot asked\n", "chat --model MODEL --temperature 0 -n 12");
  assert_ok (&text);
  /* The first answer is that of generate; a blank line asks nothing. */
  g_assert_true (g_str_has_prefix (text.out, one.out));
  g_assert_cmpuint (strlen (text.out), >, strlen (one.out) + 5);
  g_assert_null (strchr (text.out, '\033'));

  cli (&json, "hello\nhow are you?\n/reset\nhow are you?", "chat --model MODEL --temperature 0 -n 12 --json");
  assert_ok (&json);
  lines = parse_lines (json.out);
  g_assert_cmpuint (end_number (lines, 0, "reused_tokens"), ==, 0);
  g_assert_cmpuint (end_number (lines, 1, "reused_tokens"), >=, end_number (lines, 0, "prompt_tokens"));
  g_assert_cmpuint (end_number (lines, 2, "reused_tokens"), <, end_number (lines, 0, "prompt_tokens"));
  g_assert_cmpuint (end_number (lines, 2, "prompt_tokens"), <, end_number (lines, 1, "prompt_tokens"));
}

/* An attached file is part of the first message of each conversation. */
static void
test_chat_attach (void)
{
  g_autofree char *path = make_path ("notes.txt");
  g_autofree char *line = g_strconcat ("chat --model MODEL --greedy -n 4 --json --attach ", path, NULL);
  g_auto (Result) attached;
  g_auto (Result) plain;
  g_autoptr (GPtrArray) lines = NULL;
  g_autoptr (GPtrArray) plain_lines = NULL;
  guint64 extra;

  g_assert_true (g_file_set_contents (path, "A file of some words.\n", -1, NULL));
  cli (&attached, "hello\nhow are you?\n/reset\nhello\n", line);
  assert_ok (&attached);
  cli (&plain, "hello\nhow are you?\n/reset\nhello\n", "chat --model MODEL --greedy -n 4 --json");
  assert_ok (&plain);
  lines = parse_lines (attached.out);
  plain_lines = parse_lines (plain.out);
  extra = end_number (lines, 0, "prompt_tokens") - end_number (plain_lines, 0, "prompt_tokens");
  /* Most words are bytes to this model. */
  g_assert_cmpuint (extra, >, 30);
  g_assert_cmpuint (end_number (lines, 1, "prompt_tokens"), <,
                    end_number (plain_lines, 1, "prompt_tokens") + extra + 20);
  g_assert_cmpuint (end_number (lines, 2, "prompt_tokens"), ==, end_number (lines, 0, "prompt_tokens"));
  delete_path (path);
}

static void
test_chat_drop_oldest (void)
{
  g_autoptr (GString) input = g_string_new (NULL);
  g_auto (Result) stops;
  g_auto (Result) drops;

  for (guint i = 0; i < 8; i++)
    g_string_append (input, "Something to say that has a number of tokens in it\n");
  cli (&stops, input->str, "chat --model MODEL --greedy -n 4 --context 300 --json");
  g_assert_cmpint (stops.exit_code, ==, 1);
  cli (&drops, input->str, "chat --model MODEL --greedy -n 4 --context 300 --json --drop-oldest");
  assert_ok (&drops);
  g_assert_nonnull (strstr (drops.out, "\"event\":\"context\""));
}

int
main (int argc, char **argv)
{
  int status;

  cli_test_init (&argc, &argv);
  g_test_add_func ("/cli/generate", test_generate);
  g_test_add_func ("/cli/generate/json", test_generate_json);
  g_test_add_func ("/cli/generate/seed", test_generate_seed);
  g_test_add_func ("/cli/generate/error-json", test_generate_error_json);
  g_test_add_func ("/cli/generate/logits", test_generate_logits);
  g_test_add_func ("/cli/generate/logits-failure", test_generate_logits_failure);
  g_test_add_func ("/cli/generate/options", test_generate_options);
  g_test_add_func ("/cli/generate/schema", test_generate_schema);
  g_test_add_func ("/cli/eval", test_eval);
  g_test_add_func ("/cli/chat", test_chat);
  g_test_add_func ("/cli/chat/attach", test_chat_attach);
  g_test_add_func ("/cli/chat/drop-oldest", test_chat_drop_oldest);
  status = g_test_run ();
  cli_test_clear ();
  return status;
}
