/* What a model's output means: the golden cases, whole and cut everywhere; how soon text is told; output that wants to do harm.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <string.h>

#include "io/ox-json.h"
#include "text/ox-chat-private.h"
#include "text/ox-output-parser.h"

/* ---- Collecting ---- */

typedef struct {
  GString *thinking, *content, *calls, *malformed;
  guint n_outputs;
} Result;

static void
on_output (const OxOutput *output, gpointer user_data)
{
  Result *result = user_data;

  result->n_outputs++;
  switch (output->type) {
  case OX_OUTPUT_THINKING:
    g_assert_cmpuint (strlen (output->text), >, 0);
    g_assert_true (g_utf8_validate (output->text, -1, NULL));
    g_string_append (result->thinking, output->text);
    break;
  case OX_OUTPUT_TEXT:
    g_assert_cmpuint (strlen (output->text), >, 0);
    g_assert_true (g_utf8_validate (output->text, -1, NULL));
    g_string_append (result->content, output->text);
    break;
  case OX_OUTPUT_TOOL_CALL: {
    g_autoptr (OxValue) arguments = ox_value_parse (output->arguments, strlen (output->arguments), "arguments", NULL);

    g_assert_nonnull (arguments);
    g_assert_true (yyjson_is_obj (ox_value_get_root (arguments)));
    g_assert_cmpuint (strlen (output->name), >, 0);
    g_string_append_printf (result->calls, "%s ", output->name);
    ox_value_append_json (result->calls, ox_value_get_root (arguments));
    g_string_append_c (result->calls, '\n');
    break;
  }
  case OX_OUTPUT_MALFORMED_CALL:
    g_assert_true (g_utf8_validate (output->text, -1, NULL));
    g_string_append_printf (result->malformed, "%s\n--\n", output->text);
    break;
  }
}

static Result *
result_new (void)
{
  Result *result = g_new0 (Result, 1);

  result->thinking = g_string_new (NULL);
  result->content = g_string_new (NULL);
  result->calls = g_string_new (NULL);
  result->malformed = g_string_new (NULL);
  return result;
}

static void
result_free (Result *result)
{
  g_string_free (result->thinking, TRUE);
  g_string_free (result->content, TRUE);
  g_string_free (result->calls, TRUE);
  g_string_free (result->malformed, TRUE);
  g_free (result);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Result, result_free)

/* Pieces of @first bytes, then of @rest bytes each. */
static Result *
parse (
  const char *format, gboolean in_thinking, const OxChat *chat, const char *text, gsize len, gsize first, gsize rest)
{
  Result *result = result_new ();
  g_autoptr (OxOutputParser) parser =
    ox_output_parser_new (ox_chat_format_find (format), in_thinking, chat, on_output, result);

  for (gsize at = 0; at < len;) {
    gsize n = MIN (at == 0 ? first : rest, len - at);

    ox_output_parser_push (parser, text + at, n);
    at += n;
  }
  ox_output_parser_finish (parser);
  return result;
}

static gboolean
is_same (const Result *one, const Result *other)
{
  return g_string_equal (one->thinking, other->thinking) && g_string_equal (one->content, other->content) &&
         g_string_equal (one->calls, other->calls) && g_string_equal (one->malformed, other->malformed);
}

static void
assert_same (const Result *one, const Result *other)
{
  g_assert_cmpstr (one->thinking->str, ==, other->thinking->str);
  g_assert_cmpstr (one->content->str, ==, other->content->str);
  g_assert_cmpstr (one->calls->str, ==, other->calls->str);
  g_assert_cmpstr (one->malformed->str, ==, other->malformed->str);
}

/* ---- Golden cases ---- */

static Result *
expected_result (yyjson_val *one)
{
  Result *result = result_new ();
  yyjson_val *val;
  gsize i, max;

  g_string_append (result->thinking, yyjson_get_str (yyjson_obj_get (one, "thinking")));
  g_string_append (result->content, yyjson_get_str (yyjson_obj_get (one, "content")));
  ox_json_foreach_item (yyjson_obj_get (one, "tool_calls"), i, max, val) {
    g_string_append_printf (result->calls, "%s ", yyjson_get_str (yyjson_obj_get (val, "name")));
    ox_value_append_json (result->calls, yyjson_obj_get (val, "arguments"));
    g_string_append_c (result->calls, '\n');
  }
  ox_json_foreach_item (yyjson_obj_get (one, "malformed"), i, max, val) {
    g_string_append_printf (result->malformed, "%s\n--\n", yyjson_get_str (val));
  }
  return result;
}

static OxValue *
read_golden (const char *name)
{
  g_autofree char *path = g_build_filename (g_getenv ("OX_TEST_DATA"), "golden", "chat", name, NULL);
  g_autofree char *text = NULL;
  g_autoptr (GError) error = NULL;
  OxValue *json;
  gsize len;

  g_file_get_contents (path, &text, &len, &error);
  g_assert_no_error (error);
  json = ox_value_parse (text, len, name, &error);
  g_assert_no_error (error);
  return json;
}

static OxChat *
chat_with_tools (yyjson_val *tools)
{
  OxChat *chat = ox_chat_new ();
  yyjson_val *val;
  gsize i, max;

  ox_json_foreach_item (tools, i, max, val) {
    g_autoptr (GString) json = g_string_new (NULL);

    ox_value_append_json (json, val);
    g_assert_true (ox_chat_add_tool (chat, json->str, NULL));
  }
  return chat;
}

static void
run_golden (const char *name, const char *format, guint n_expected)
{
  g_autoptr (OxValue) json = read_golden (name);
  yyjson_val *root = ox_value_get_root (json), *one;
  g_autoptr (OxChat) chat = chat_with_tools (yyjson_obj_get (root, "tools"));
  guint n = 0;
  gsize i, max;

  ox_json_foreach_item (yyjson_obj_get (root, "cases"), i, max, one) {
    const char *text = yyjson_get_str (yyjson_obj_get (one, "text"));
    gsize len = strlen (text);
    gboolean in_thinking = yyjson_equals_str (yyjson_obj_get (one, "start"), "thinking");
    g_autoptr (Result) expected = expected_result (one);

    for (gsize cut = 0; cut <= len; cut++) {
      g_autoptr (Result) result = parse (format, in_thinking, chat, text, len, cut > 0 ? cut : 1, cut > 0 ? len : 1);

      if (!is_same (result, expected))
        g_test_message ("case %s, cut at %" G_GSIZE_FORMAT, yyjson_get_str (yyjson_obj_get (one, "name")), cut);
      assert_same (result, expected);
    }
    n++;
  }
  g_assert_cmpuint (n, ==, n_expected);
}

static void
test_golden_gemma4 (void)
{
  run_golden ("parse_gemma4.json", "gemma4-small", 86);
  run_golden ("parse_gemma4.json", "gemma4-large", 86);
}

static void
test_golden_qwen35 (void)
{
  run_golden ("parse_qwen3_5.json", "qwen3.5-think", 102);
  run_golden ("parse_qwen3_5.json", "qwen3.8", 102);
}

/* ---- Other formats ---- */

#define ASSERT_PARSED(format, in_thinking, text, thinking_, content_, calls_, malformed_)                              \
  G_STMT_START                                                                                                         \
  {                                                                                                                    \
    g_autoptr (Result) whole = parse (format, in_thinking, NULL, text, strlen (text), strlen (text), 1);               \
    g_autoptr (Result) bytes = parse (format, in_thinking, NULL, text, strlen (text), 1, 1);                           \
    assert_same (whole, bytes);                                                                                        \
    g_assert_cmpstr (whole->thinking->str, ==, thinking_);                                                             \
    g_assert_cmpstr (whole->content->str, ==, content_);                                                               \
    g_assert_cmpstr (whole->calls->str, ==, calls_);                                                                   \
    g_assert_cmpstr (whole->malformed->str, ==, malformed_);                                                           \
  }                                                                                                                    \
  G_STMT_END

static void
test_qwen3 (void)
{
  ASSERT_PARSED ("qwen3", FALSE,
                 "<think>\nWeather: a tool.\n</think>\n\nLet me see.\n<tool_call>\n"
                 "{\"name\": \"get_weather\", \"arguments\": {\"location\": \"Oslo\", \"days\": 2.0}}\n</tool_call>\n"
                 "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>",
                 "Weather: a tool.", "Let me see.", "get_weather {\"location\": \"Oslo\", \"days\": 2.0}\nnow {}\n",
                 "");
  ASSERT_PARSED ("qwen3", FALSE, "<tool_call>{\"name\": \"f\", \"arguments\": {\"x\": 1e999}}</tool_call>", "", "", "",
                 "{\"name\": \"f\", \"arguments\": {\"x\": 1e999}}\n--\n");
  ASSERT_PARSED ("qwen3", FALSE, "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1, \"b\": 2, \"a\": 3}}", "", "",
                 "f {\"a\": 3, \"b\": 2}\n", "");
}

static void
test_plain (void)
{
  static const char text[] = " <think>no\xff mark</think> <|tool_call>call:f{}<tool_call|>\n";
  static const char *const names[] = { "chatml", "gemma3", "llama3", "plain", "no format" };

  for (gsize i = 0; i < G_N_ELEMENTS (names); i++) {
    ASSERT_PARSED (names[i], FALSE, text, "", " <think>no\357\277\275 mark</think> <|tool_call>call:f{}<tool_call|>\n",
                   "", "");
    g_assert_false (ox_output_parser_wants_control (ox_chat_format_find (names[i])));
  }
  g_assert_true (ox_output_parser_wants_control (ox_chat_format_find ("gemma4-large")));
  g_assert_true (ox_output_parser_wants_control (ox_chat_format_find ("qwen3")));
  ASSERT_PARSED ("qwen3.6", FALSE, "a\xf0\x9f", "", "a\357\277\275", "", "");
}

/* U+0000 is a character that a model can write. */
static void
test_nul (void)
{
  g_autoptr (Result) result = parse ("gemma4-small", FALSE, NULL, "a\0b", 3, 2, 1);

  g_assert_cmpstr (result->content->str, ==, "a\357\277\275b");
}

static void
test_calls_of_no_kind (void)
{
  ASSERT_PARSED ("gemma4-small", FALSE, "<|tool_call>call:f{x:1e999}<tool_call|>", "", "", "", "call:f{x:1e999}\n--\n");
  ASSERT_PARSED ("gemma4-small", FALSE, "<|tool_call>call:f{x:1}}<tool_call|>", "", "", "", "call:f{x:1}}\n--\n");
  ASSERT_PARSED ("gemma4-small", FALSE, "<|tool_call>call:f{x:\"a\\\"}<tool_call|>b", "", "b", "",
                 "call:f{x:\"a\\\"}\n--\n");
  ASSERT_PARSED ("gemma4-small", FALSE, "<|tool_call>call:f{x:<|\"|>a<tool_call|>b<eos>c", "", "b", "",
                 "call:f{x:<|\"|>a\n--\n");
  /* A call that breaks off within something does not run. */
  ASSERT_PARSED ("qwen3.6", FALSE, "<tool_call>\n<function=f>\n<par", "", "", "", "\n<function=f>\n<par\n--\n");
  ASSERT_PARSED ("qwen3.6", FALSE, "<tool_call>\n<function=f>\n", "", "", "f {}\n", "");
  ASSERT_PARSED ("qwen3.6", FALSE, "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n</func", "", "", "",
                 "\n<function=f>\n<parameter=a>\n1\n</parameter>\n</func\n--\n");
  ASSERT_PARSED ("qwen3.6", FALSE, "<tool_call><function=f><parameter=\n></tool_call>x", "", "x", "",
                 "<function=f><parameter=\n>\n--\n");
}

/* ---- As soon as it is sure ---- */

static void
assert_told (OxOutputParser *parser, Result *result, const char *piece, const char *thinking, const char *content)
{
  ox_output_parser_push (parser, piece, strlen (piece));
  g_assert_cmpstr (result->thinking->str, ==, thinking);
  g_assert_cmpstr (result->content->str, ==, content);
}

static void
test_streaming (void)
{
  g_autoptr (Result) result = result_new ();
  g_autoptr (OxOutputParser) gemma =
    ox_output_parser_new (ox_chat_format_find ("gemma4-small"), FALSE, NULL, on_output, result);
  g_autoptr (Result) other = result_new ();
  g_autoptr (OxOutputParser) qwen =
    ox_output_parser_new (ox_chat_format_find ("qwen3.6"), TRUE, NULL, on_output, other);

  assert_told (gemma, result, "<|channel>", "", "");
  assert_told (gemma, result, "thought", "", "");
  assert_told (gemma, result, "\nLet", "Let", "");
  assert_told (gemma, result, " me", "Let me", "");
  assert_told (gemma, result, " ", "Let me", "");
  assert_told (gemma, result, "see<", "Let me see", "");
  assert_told (gemma, result, "3", "Let me see<3", "");
  assert_told (gemma, result, "<channel|>\n", "Let me see<3", "");
  assert_told (gemma, result, "a\xc3", "Let me see<3", "a");
  assert_told (gemma, result, "\xa9\n", "Let me see<3", "a\xc3\xa9");
  assert_told (gemma, result, "<|tool_cal", "Let me see<3", "a\xc3\xa9");
  assert_told (gemma, result, "k", "Let me see<3", "a\xc3\xa9\n<|tool_calk");
  assert_told (gemma, result, "<|tool_call>call:f{}", "Let me see<3", "a\xc3\xa9\n<|tool_calk");
  g_assert_cmpstr (result->calls->str, ==, "");
  assert_told (gemma, result, "<tool_call|>", "Let me see<3", "a\xc3\xa9\n<|tool_calk");
  g_assert_cmpstr (result->calls->str, ==, "f {}\n");

  assert_told (qwen, other, "\nHm", "Hm", "");
  assert_told (qwen, other, "</think", "Hm", "");
  assert_told (qwen, other, "> \n\n yes", "Hm", "yes");
  assert_told (qwen, other, "<tool_call>\n<function=f>\n</function>", "Hm", "yes");
  g_assert_cmpstr (other->calls->str, ==, "f {}\n");
}

/* ---- Output that wants to do harm ---- */

#define MEGABYTE ((gsize) 1 << 20)

/* 1 MB of @unit again and again, behind @begin and before @end. */
static char *
repeat (const char *begin, const char *unit, const char *end)
{
  GString *text = g_string_new (begin);

  while (text->len < MEGABYTE)
    g_string_append (text, unit);
  g_string_append (text, end);
  return g_string_free (text, FALSE);
}

/* Time that is linear takes under a second each; quadratic time would be minutes. */
static void
test_linear (void)
{
  static const struct {
    const char *format, *begin, *unit, *end;
  } cases[] = {
    { "gemma4-small", "", "<", "" },
    { "gemma4-small", "", "<|", "" },
    { "gemma4-small", "", " ", "x" },
    { "gemma4-small", "", "<|tool_call>", "" },
    { "gemma4-small", "", "<|channel>", "" },
    { "gemma4-small", "", "<|channel>thought<channel|>", "" },
    { "gemma4-small", "<|tool_call>call:f{a:", "[", "" },
    { "gemma4-small", "<|tool_call>call:f{a:", "{a:", "<tool_call|>" },
    { "gemma4-small", "<|tool_call>call:f{a:<|\"|>", "<|", "" },
    { "gemma4-small", "", "<|tool_call><|\"|><tool_call|><|\"|>", "<|\"|>" },
    { "gemma4-small", "", "<|tool_call>call:f{a:1}<tool_call|>", "" },
    { "gemma4-small", "<|tool_call>call:f{", "a:1,", "b:2}<tool_call|>" },
    { "qwen3.6", "", "<", "" },
    { "qwen3.6", "", "<tool_call>", "" },
    { "qwen3.6", "<think>", "</think", "" },
    { "qwen3.6", "", "<tool_call><function=f><parameter=s></tool_call>", "" },
    { "qwen3.6", "", "<tool_call><function=f><parameter=s></tool_call>", "</parameter><parameter=\n" },
    { "qwen3.6", "<tool_call><function=f><parameter=s>", "</parameter> ", "" },
    { "qwen3.6", "<tool_call><function=f>", "<parameter=s>1</parameter>", "</function></tool_call>" },
    { "qwen3.6", "<tool_call><function=f><parameter=s></parameter>", " ", "" },
    { "qwen3.6", "<tool_call>", "{\"name\":", "</tool_call>" },
    { "qwen3.6", "<tool_call>", "[", "" },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *text = repeat (cases[i].begin, cases[i].unit, cases[i].end);
    gint64 begin = g_get_monotonic_time ();
    g_autoptr (Result) pieces = parse (cases[i].format, FALSE, NULL, text, strlen (text), 16, 16);
    double seconds = (double) (g_get_monotonic_time () - begin) / 1e6;
    g_autoptr (Result) whole = parse (cases[i].format, FALSE, NULL, text, strlen (text), strlen (text), 1);

    assert_same (pieces, whole);
    g_test_message ("%s %s%s…%s: %.2f s", cases[i].format, cases[i].begin, cases[i].unit, cases[i].end, seconds);
    g_assert_cmpfloat (seconds, <, 10);
  }
}

/* Golden texts cut up, doubled, mixed: whatever comes out, it does not depend on the pieces. */
static void
run_mutations (const char *name, const char *format)
{
  static const char *const parts[] = {
    "<|tool_call>", "<tool_call|>", "<|\"|>",      "<|channel>",       "<channel|>",  "<turn|>", "<tool_call>",
    "</tool_call>", "<function=",   "<parameter=", "</parameter>",     "</function>", "<think>", "</think>",
    "<|im_end|>",   "call:f{",      "}",           "{\"name\":\"f\"}", ",a:1",        " \n",     "\xff",
  };
  g_autoptr (OxValue) json = read_golden (name);
  yyjson_val *cases = yyjson_obj_get (ox_value_get_root (json), "cases");
  g_autoptr (OxChat) chat = chat_with_tools (yyjson_obj_get (ox_value_get_root (json), "tools"));
  gint n_cases = (gint) yyjson_arr_size (cases);
  gint n = g_test_quick () ? 3000 : 100000;

  for (gint i = 0; i < n; i++) {
    g_autoptr (GString) text = g_string_new (NULL);
    g_autoptr (Result) whole = NULL, pieces = NULL, bytes = NULL;
    gboolean in_thinking = g_test_rand_bit ();

    for (gint k = g_test_rand_int_range (1, 4); k > 0; k--) {
      const char *one =
        yyjson_get_str (yyjson_obj_get (yyjson_arr_get (cases, (gsize) g_test_rand_int_range (0, n_cases)), "text"));
      gint len = (gint) strlen (one);
      gint from = g_test_rand_int_range (0, len + 1), to = g_test_rand_int_range (from, len + 1);

      g_string_append_len (text, one + from, to - from);
      g_string_insert (text, g_test_rand_int_range (0, (gint) text->len + 1),
                       parts[g_test_rand_int_range (0, G_N_ELEMENTS (parts))]);
    }
    whole = parse (format, in_thinking, chat, text->str, text->len, text->len, 1);
    pieces = parse (format, in_thinking, chat, text->str, text->len, 5, 7);
    bytes = parse (format, in_thinking, chat, text->str, text->len, 1, 1);
    if (!is_same (whole, bytes) || !is_same (whole, pieces)) {
      g_autofree char *quoted = g_strescape (text->str, NULL);

      g_test_message ("%s", quoted);
    }
    assert_same (whole, bytes);
    assert_same (whole, pieces);
  }
}

static void
test_mutations_gemma4 (void)
{
  run_mutations ("parse_gemma4.json", "gemma4-small");
}

static void
test_mutations_qwen (void)
{
  run_mutations ("parse_qwen3_5.json", "qwen3.5-think");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/output-parser/golden/gemma4", test_golden_gemma4);
  g_test_add_func ("/output-parser/golden/qwen3.5", test_golden_qwen35);
  g_test_add_func ("/output-parser/qwen3", test_qwen3);
  g_test_add_func ("/output-parser/plain", test_plain);
  g_test_add_func ("/output-parser/nul", test_nul);
  g_test_add_func ("/output-parser/calls-of-no-kind", test_calls_of_no_kind);
  g_test_add_func ("/output-parser/streaming", test_streaming);
  g_test_add_func ("/output-parser/linear", test_linear);
  g_test_add_func ("/output-parser/mutations/gemma4", test_mutations_gemma4);
  g_test_add_func ("/output-parser/mutations/qwen", test_mutations_qwen);
  return g_test_run ();
}
