/* Answers held to a JSON schema: whatever is chosen among the allowed tokens, the end is JSON that the schema allows (as a validator
 * says that shares nothing with the engine); what is allowed is just what is accepted; good answers are allowed; what is not
 * understood is refused in words.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <math.h>
#include <string.h>
#include <yyjson.h>

#include <glib/gstdio.h>

#include "golden/ox-golden-text.h"
#include "text/ox-grammar.h"
#include "text/ox-tokenizer.h"

static OxTokenizer *gemma4, *qwen35;

static OxTokenizer *
load_packed (const char *name)
{
  g_autofree char *path = g_build_filename (g_getenv ("OX_TEST_DATA"), "golden", "tokenizers", name, NULL);
  g_autoptr (GError) error = NULL;
  g_autofree char *unpacked = ox_golden_unpack (path, &error);
  OxTokenizer *tokenizer;

  g_assert_no_error (error);
  tokenizer = ox_tokenizer_load (unpacked, NULL, &error);
  g_assert_no_error (error);
  g_unlink (unpacked);
  return tokenizer;
}

/* ---- The validator ---- */

static gboolean valid (yyjson_val *root, yyjson_val *schema, yyjson_val *val);

static gboolean
has_type (yyjson_val *val, const char *type)
{
  if (strcmp (type, "string") == 0)
    return yyjson_is_str (val);
  if (strcmp (type, "object") == 0)
    return yyjson_is_obj (val);
  if (strcmp (type, "array") == 0)
    return yyjson_is_arr (val);
  if (strcmp (type, "boolean") == 0)
    return yyjson_is_bool (val);
  if (strcmp (type, "null") == 0)
    return yyjson_is_null (val);
  if (strcmp (type, "number") == 0)
    return yyjson_is_num (val);
  return yyjson_is_num (val) && floor (yyjson_get_num (val)) == yyjson_get_num (val);
}

static gboolean
valid_type (yyjson_val *type, yyjson_val *val)
{
  if (!type)
    return TRUE;
  if (yyjson_is_str (type))
    return has_type (val, yyjson_get_str (type));
  for (gsize i = 0; i < yyjson_arr_size (type); i++) {
    if (has_type (val, yyjson_get_str (yyjson_arr_get (type, i))))
      return TRUE;
  }
  return FALSE;
}

static guint
count_valid (yyjson_val *root, yyjson_val *list, yyjson_val *val)
{
  guint n = 0;

  for (gsize i = 0; i < yyjson_arr_size (list); i++)
    n += valid (root, yyjson_arr_get (list, i), val) ? 1 : 0;
  return n;
}

static gboolean
in_range (yyjson_val *schema, const char *min, const char *max, double x)
{
  yyjson_val *low = yyjson_obj_get (schema, min), *high = yyjson_obj_get (schema, max);

  return (!low || x >= yyjson_get_num (low)) && (!high || x <= yyjson_get_num (high));
}

static gboolean
valid_object (yyjson_val *root, yyjson_val *schema, yyjson_val *val)
{
  yyjson_val *properties = yyjson_obj_get (schema, "properties"), *required = yyjson_obj_get (schema, "required");
  yyjson_val *others = yyjson_obj_get (schema, "additionalProperties"), *key;
  yyjson_obj_iter iter = yyjson_obj_iter_with (val);

  for (gsize i = 0; i < yyjson_arr_size (required); i++) {
    yyjson_val *name = yyjson_arr_get (required, i);

    if (!yyjson_obj_getn (val, yyjson_get_str (name), yyjson_get_len (name)))
      return FALSE;
  }
  while ((key = yyjson_obj_iter_next (&iter))) {
    yyjson_val *member = yyjson_obj_iter_get_val (key);
    yyjson_val *declared = yyjson_obj_getn (properties, yyjson_get_str (key), yyjson_get_len (key));

    if (declared ? !valid (root, declared, member) : others && !valid (root, others, member))
      return FALSE;
  }
  return TRUE;
}

/* 2 and 2.0 are the same number. */
static gboolean
equal (yyjson_val *a, yyjson_val *b)
{
  return yyjson_is_num (a) && yyjson_is_num (b) ? yyjson_get_num (a) == yyjson_get_num (b) : yyjson_equals (a, b);
}

static gboolean
valid (yyjson_val *root, yyjson_val *schema, yyjson_val *val)
{
  const char *ref = yyjson_get_str (yyjson_obj_get (schema, "$ref"));
  yyjson_val *constant = yyjson_obj_get (schema, "const"), *list = yyjson_obj_get (schema, "enum"), *items;
  gboolean in_enum = list == NULL;

  if (yyjson_is_bool (schema))
    return yyjson_get_bool (schema);
  if (ref)
    return valid (root, strcmp (ref, "#") == 0 ? root : yyjson_ptr_get (root, ref + 1), val);
  if (!valid_type (yyjson_obj_get (schema, "type"), val) || (constant && !equal (constant, val)))
    return FALSE;
  for (gsize i = 0; i < yyjson_arr_size (list); i++)
    in_enum |= equal (yyjson_arr_get (list, i), val);
  if (!in_enum)
    return FALSE;
  if (((list = yyjson_obj_get (schema, "anyOf")) && count_valid (root, list, val) == 0) ||
      ((list = yyjson_obj_get (schema, "oneOf")) && count_valid (root, list, val) != 1) ||
      ((list = yyjson_obj_get (schema, "allOf")) && count_valid (root, list, val) != yyjson_arr_size (list)))
    return FALSE;
  if (yyjson_is_str (val))
    return in_range (schema, "minLength", "maxLength",
                     (double) g_utf8_strlen (yyjson_get_str (val), (gssize) yyjson_get_len (val)));
  if (yyjson_is_obj (val))
    return valid_object (root, schema, val);
  if (!yyjson_is_arr (val))
    return TRUE;
  items = yyjson_obj_get (schema, "items");
  for (gsize i = 0; i < yyjson_arr_size (val) && items; i++) {
    if (!valid (root, items, yyjson_arr_get (val, i)))
      return FALSE;
  }
  return in_range (schema, "minItems", "maxItems", (double) yyjson_arr_size (val));
}

static void
assert_valid (const char *schema, const char *text, gsize len)
{
  g_autoptr (GError) error = NULL;
  yyjson_doc *rules = yyjson_read (schema, strlen (schema), 0), *doc = yyjson_read (text, len, 0);

  if (!doc || !valid (yyjson_doc_get_root (rules), yyjson_doc_get_root (rules), yyjson_doc_get_root (doc)))
    g_test_message ("%s\n%s", schema, text);
  g_assert_nonnull (doc);
  g_assert_true (valid (yyjson_doc_get_root (rules), yyjson_doc_get_root (rules), yyjson_doc_get_root (doc)));
  yyjson_doc_free (rules);
  yyjson_doc_free (doc);
}

/* ---- Random walks ---- */

static const char *const schemas[] = {
  "{}",
  "true",
  "{\"type\": \"string\"}",
  "{\"type\": \"string\", \"minLength\": 3, \"maxLength\": 5}",
  "{\"type\": \"string\", \"maxLength\": 0}",
  "{\"type\": [\"integer\", \"null\"]}",
  "{\"type\": [\"number\", \"integer\", \"boolean\"]}",
  "{\"enum\": [1, 12, 120, 1.5, \"a\", \"ab\", \"é\\\"\\n😀\", null, true, [1, \"x\"], {\"k\": [{}]}, 2.0, -0.5, "
  "1e300]}",
  "{\"enum\": [1, 2, \"x\", 3.5, 4.0], \"type\": \"integer\"}",
  "{\"const\": \"only\\u0000this\"}",
  "{\"type\": \"array\", \"items\": {\"type\": \"integer\"}, \"minItems\": 2, \"maxItems\": 4}",
  "{\"type\": \"array\", \"items\": {\"type\": \"integer\"}, \"minItems\": 3}",
  "{\"type\": \"array\", \"items\": false}",
  "{\"type\": \"array\", \"maxItems\": 0}",
  "{\"type\": \"object\"}",
  "{\"type\": \"object\", \"properties\": {}}",
  "{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\", \"minLength\": 1}, \"age\": {\"type\": "
  "\"integer\"}, "
  "\"tags\": {\"type\": \"array\", \"items\": {\"enum\": [\"a\", \"b\"]}}, \"é\\\"\\\\x\\n\": {\"type\": "
  "\"boolean\"}}, "
  "\"required\": [\"age\"], \"additionalProperties\": false}",
  "{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"integer\"}, \"names\": {\"type\": \"null\"}, \"é\": "
  "{\"type\": \"null\"}}, "
  "\"required\": [\"names\", \"more\"], \"additionalProperties\": {\"type\": \"boolean\"}}",
  "{\"type\": \"object\", \"additionalProperties\": {\"type\": \"number\"}}",
  "{\"anyOf\": [{\"type\": \"object\", \"properties\": {\"kind\": {\"const\": \"a\"}, \"x\": {\"type\": \"integer\"}}, "
  "\"required\": "
  "[\"kind\", \"x\"]}, {\"type\": \"object\", \"properties\": {\"kind\": {\"const\": \"ab\"}, \"y\": {\"type\": "
  "\"string\"}}, "
  "\"required\": [\"kind\", \"y\"]}, {\"type\": \"string\", \"maxLength\": 3}, {\"type\": \"string\", \"minLength\": "
  "6}]}",
  "{\"oneOf\": [{\"type\": \"object\", \"properties\": {\"kind\": {\"const\": \"a\"}, \"x\": {\"type\": \"integer\"}}, "
  "\"required\": "
  "[\"kind\", \"x\"]}, {\"type\": \"object\", \"properties\": {\"kind\": {\"enum\": [\"b\", \"c\"]}}, \"required\": "
  "[\"kind\"]}, "
  "{\"type\": [\"string\", \"null\"]}, {\"enum\": [1, 2]}, {\"const\": 3}]}",
  "{\"$defs\": {\"tree\": {\"type\": \"object\", \"properties\": {\"value\": {\"type\": \"integer\"}, \"children\": "
  "{\"type\": \"array\", "
  "\"items\": {\"$ref\": \"#/$defs/tree\"}}}, \"required\": [\"value\", \"children\"], \"additionalProperties\": "
  "false}}, "
  "\"$ref\": \"#/$defs/tree\"}",
  "{\"type\": \"object\", \"properties\": {\"next\": {\"anyOf\": [{\"type\": \"null\"}, {\"$ref\": \"#\"}]}}, "
  "\"required\": [\"next\"], "
  "\"description\": \"a list\", \"title\": \"List\", \"$schema\": \"x\"}",
  "{\"type\": \"array\", \"items\": {\"anyOf\": [{\"type\": \"array\", \"items\": {\"type\": \"null\"}, \"maxItems\": "
  "1}, {\"type\": "
  "\"array\", \"items\": {\"type\": [\"null\", \"boolean\"]}, \"minItems\": 1}]}, \"maxItems\": 3}",
};

typedef enum {
  CHOOSE_ANY,
  CHOOSE_BYTES, /* tokens of one byte, where there are some */
  CHOOSE_DEEP,  /* open whatever can be opened */
  N_CHOICES,
} Choice;

static gboolean
is_wanted (OxTokenizer *tokenizer, guint32 id, Choice choice, gboolean hurry)
{
  g_autofree char *text = ox_tokenizer_decode (tokenizer, &id, 1, FALSE);
  const char *token = ox_tokenizer_get_token (tokenizer, id);

  if (hurry)
    return strchr ("\"]}", text[0]) != NULL;
  switch (choice) {
  case CHOOSE_BYTES:
    /* What a token of an incomplete character decodes to is U+FFFD. */
    return strlen (text) == 1 || g_str_has_prefix (token, "<0x") || strcmp (text, "\357\277\275") == 0;
  case CHOOSE_DEEP:
    return text[0] == '[' || text[0] == '{';
  case CHOOSE_ANY:
  case N_CHOICES:
    break;
  }
  return TRUE;
}

/* One of the ids whose bits are set: of some tried the first that is wanted, else any. */
static guint32
choose (OxTokenizer *tokenizer, const guint32 *bits, guint n, Choice choice, gboolean hurry)
{
  guint n_set = 0, tries = choice == CHOOSE_ANY && !hurry ? 1 : 200;
  g_autofree guint32 *ids = g_new (guint32, n);

  for (guint32 id = 0; id < n; id++) {
    if (bits[id / 32] >> id % 32 & 1)
      ids[n_set++] = id;
  }
  g_assert_cmpuint (n_set, >, 0);
  for (guint i = 0; i < tries; i++) {
    guint32 id = ids[g_test_rand_int_range (0, (gint32) n_set)];

    if (is_wanted (tokenizer, id, choice, hurry))
      return id;
  }
  return ids[g_test_rand_int_range (0, (gint32) n_set)];
}

/* A few tokens at random are accepted just when their bit is set. */
static void
check_mask (OxTokenizer *tokenizer, OxGrammar *grammar, const guint32 *bits, guint n)
{
  for (guint i = 0; i < 20; i++) {
    guint32 id = (guint32) g_test_rand_int_range (0, (gint32) n);
    gboolean is_set = bits[id / 32] >> id % 32 & 1;

    g_assert_cmpint (ox_grammar_accept (grammar, id), ==, is_set);
    if (is_set)
      g_assert_true (ox_grammar_rewind (grammar, 1));
    if (ox_tokenizer_is_control (tokenizer, id))
      g_assert_false (is_set);
  }
}

static void
random_walk (OxTokenizer *tokenizer, const char *schema, Choice choice, double *most_seconds)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (OxGrammar) grammar = ox_grammar_new (tokenizer, schema, &error);
  g_autoptr (OxDetokenizer) detokenizer = ox_detokenizer_new (tokenizer, FALSE);
  guint n = ox_tokenizer_get_size (tokenizer), steps, patience = (guint) g_test_rand_int_range (0, 60);
  g_autofree guint32 *bits = g_new0 (guint32, n / 32 + 1);
  GString *text = g_string_new (NULL);

  g_assert_no_error (error);
  for (steps = 0; steps < 20000; steps++) {
    gint64 begin = g_get_monotonic_time ();
    gboolean more = ox_grammar_mask (grammar, bits);
    guint32 id;

    *most_seconds = MAX (*most_seconds, (double) (g_get_monotonic_time () - begin) * 1e-6);
    if (ox_grammar_is_complete (grammar) && (!more || g_test_rand_bit ()))
      break;
    /* There is always a way on. */
    g_assert_true (more);
    if (steps % 8 == 0)
      check_mask (tokenizer, grammar, bits, n);
    id = choose (tokenizer, bits, n, choice, steps > (choice == CHOOSE_DEEP ? 300 : patience) && steps % 8 != 0);
    g_assert_true (ox_grammar_accept (grammar, id));
    ox_detokenizer_push (detokenizer, id, text);
  }
  ox_detokenizer_finish (detokenizer, text);
  g_assert_cmpuint (steps, <, 20000);
  assert_valid (schema, text->str, text->len);
  g_string_free (text, TRUE);
}

static void
test_random (gconstpointer data)
{
  OxTokenizer *tokenizer = *(OxTokenizer *const *) data;
  double most = 0;

  for (gsize s = 0; s < G_N_ELEMENTS (schemas); s++) {
    for (Choice choice = CHOOSE_ANY; choice < N_CHOICES; choice++) {
      for (guint round = 0; round < 3; round++)
        random_walk (tokenizer, schemas[s], choice, &most);
    }
  }
  g_test_message ("the slowest step: %.1f ms", most * 1e3);
}

/* ---- All of the vocabulary ---- */

/* At places of every kind, each token is accepted just when the mask has it. */
static void
test_whole_mask (void)
{
  static const char *const begins[] = { "",
                                        "{",
                                        "{\"",
                                        "{\"na",
                                        "{\"name\"",
                                        "{\"name\":",
                                        "{\"name\": \"",
                                        "{\"name\": \"ab\\",
                                        "{\"name\": \"a\\ud83",
                                        "{\"name\": \"abcd",
                                        "{\"name\": \"abcd\"",
                                        "{\"name\": \"abcd\", \"oth",
                                        "{\"name\": \"abcd\", \"other\": [1" };
  const char *schema = "{\"properties\": {\"name\": {\"type\": \"string\", \"minLength\": 2, \"maxLength\": 9}}, "
                       "\"required\": [\"name\"], "
                       "\"additionalProperties\": {\"items\": {\"type\": [\"number\", \"string\"]}}}";
  OxTokenizer *tokenizers[] = { gemma4, qwen35 };

  for (gsize t = 0; t < G_N_ELEMENTS (tokenizers); t++) {
    guint n = ox_tokenizer_get_size (tokenizers[t]);
    g_autofree guint32 *bits = g_new0 (guint32, n / 32 + 1);
    g_autoptr (GError) error = NULL;
    g_autoptr (OxGrammar) grammar = ox_grammar_new (tokenizers[t], schema, &error);

    g_assert_no_error (error);
    for (gsize b = 0; b < G_N_ELEMENTS (begins); b++) {
      guint n_set = 0;

      ox_grammar_reset (grammar);
      for (const char *c = begins[b]; *c; c++) {
        g_autoptr (GArray) ids = g_array_new (FALSE, FALSE, sizeof (guint32));

        ox_tokenizer_encode (tokenizers[t], c, 1, FALSE, ids);
        g_assert_cmpuint (ids->len, ==, 1);
        g_assert_true (ox_grammar_accept (grammar, g_array_index (ids, guint32, 0)));
      }
      g_assert_true (ox_grammar_mask (grammar, bits));
      for (guint32 id = 0; id < n; id++) {
        gboolean is_set = bits[id / 32] >> id % 32 & 1;

        n_set += is_set ? 1 : 0;
        if (ox_grammar_accept (grammar, id) != is_set)
          g_test_message ("“%s” behind “%s”", ox_tokenizer_get_token (tokenizers[t], id), begins[b]);
        if (is_set)
          g_assert_true (ox_grammar_rewind (grammar, 1));
        g_assert_cmpint (ox_grammar_accept (grammar, id), ==, is_set);
        if (is_set)
          g_assert_true (ox_grammar_rewind (grammar, 1));
      }
      g_test_message ("%u tokens may follow “%s”", n_set, begins[b]);
    }
  }
}

/* ---- Given texts ---- */

/* Whether the schema lets the tokens of @text come, and the text end. */
static gboolean
allows (const char *schema, const char *text)
{
  OxTokenizer *tokenizers[] = { gemma4, qwen35 };
  gboolean result[2];

  for (gsize t = 0; t < G_N_ELEMENTS (tokenizers); t++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (OxGrammar) grammar = ox_grammar_new (tokenizers[t], schema, &error);
    g_autoptr (GArray) ids = g_array_new (FALSE, FALSE, sizeof (guint32));

    g_assert_no_error (error);
    ox_tokenizer_encode (tokenizers[t], text, -1, FALSE, ids);
    result[t] = TRUE;
    for (guint i = 0; i < ids->len && result[t]; i++)
      result[t] = ox_grammar_accept (grammar, g_array_index (ids, guint32, i));
    result[t] = result[t] && ox_grammar_is_complete (grammar);
  }
  g_assert_cmpint (result[0], ==, result[1]);
  return result[0];
}

static void
test_texts (void)
{
  const char *person =
    "{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\"}, \"age\": {\"type\": \"integer\"}, "
    "\"tags\": {\"type\": \"array\", \"items\": {\"type\": \"string\"}}}, \"required\": [\"name\"]}";

  g_assert_true (allows (person, "{\"name\":\"Ada\",\"age\":36,\"tags\":[\"x\",\"y\"]}"));
  g_assert_true (
    allows (person, "{\n  \"name\": \"Ada\",\n  \"age\": 36,\n  \"tags\": [\n    \"x\",\n    \"y\"\n  ]\n}"));
  g_assert_true (allows (person, "{\"name\": \"Åda 😀 \\u00e9 \\ud83d\\ude00\\n\"}"));
  g_assert_true (allows (person, "{ \"name\": \"\", \"tags\": [] }"));
  g_assert_false (allows (person, "{\"age\":36}"));
  g_assert_false (allows (person, "{\"age\":36,\"name\":\"x\"}"));
  g_assert_false (allows (person, "{\"name\":3}"));
  g_assert_false (allows (person, "{\"name\":\"a\\x\"}"));
  g_assert_false (allows (person, "{\"name\":\"\\ud83d\"}"));
  g_assert_false (allows (person, "{\"name\":\"a\nb\"}"));
  g_assert_false (allows (person, "{\"name\":\"a\",\"color\":1}"));
  g_assert_false (allows (person, "{\"name\":\"a\""));
  g_assert_false (allows (person, "{\"name\":\"a\" ,\"age\":1}"));
  g_assert_false (allows (person, "{\"name\":\"a\"} "));
  g_assert_false (allows (person, " {\"name\":\"a\"}"));

  g_assert_true (allows ("{\"type\": \"number\"}", "-12.5e-3"));
  g_assert_true (allows ("{\"type\": \"number\"}", "0"));
  g_assert_false (allows ("{\"type\": \"number\"}", "01"));
  g_assert_false (allows ("{\"type\": \"number\"}", "1."));
  g_assert_false (allows ("{\"type\": \"number\"}", "-"));
  g_assert_false (allows ("{\"type\": \"integer\"}", "1.0"));
  g_assert_true (allows ("{}", "{\"a\": [1, true, null, {\"b\": {}}], \"c\": \"d\"}"));
  g_assert_true (allows ("{\"enum\": [1, 12]}", "1"));
  g_assert_true (allows ("{\"enum\": [1, 12]}", "12"));
  g_assert_false (allows ("{\"enum\": [1, 12]}", "2"));
  g_assert_true (
    allows ("{\"definitions\": {\"loop\": {\"anyOf\": [{\"$ref\": \"#/definitions/loop\"}, {\"type\": \"null\"}]}}, "
            "\"allOf\": [{\"$ref\": \"#/definitions/loop\"}]}",
            "null"));
  g_assert_true (allows ("{\"type\": \"string\", \"maxLength\": 3}", "\"äö😀\""));
  g_assert_false (allows ("{\"type\": \"string\", \"maxLength\": 3}", "\"äö😀x\""));
  g_assert_false (allows ("{\"type\": \"string\", \"minLength\": 4}", "\"äö😀\""));
  g_assert_true (allows ("{\"type\": \"string\", \"maxLength\": 1}", "\"\\ud83d\\ude00\""));
}

static void
test_rewind (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (OxGrammar) grammar =
    ox_grammar_new (qwen35, "{\"type\": \"array\", \"items\": {\"type\": \"integer\"}}", &error);
  guint n = ox_tokenizer_get_size (qwen35);
  g_autofree guint32 *a = g_new0 (guint32, n / 32 + 1), *b = g_new0 (guint32, n / 32 + 1);
  g_autoptr (GArray) ids = g_array_new (FALSE, FALSE, sizeof (guint32));

  g_assert_no_error (error);
  ox_tokenizer_encode (qwen35, "[1, 2, 34]", -1, FALSE, ids);
  ox_grammar_mask (grammar, a);
  for (guint i = 0; i < ids->len; i++)
    g_assert_true (ox_grammar_accept (grammar, g_array_index (ids, guint32, i)));
  g_assert_true (ox_grammar_is_complete (grammar));
  g_assert_false (ox_grammar_mask (grammar, b));
  g_assert_false (ox_grammar_rewind (grammar, ids->len + 1));
  g_assert_true (ox_grammar_rewind (grammar, ids->len));
  g_assert_true (ox_grammar_mask (grammar, b));
  g_assert_cmpmem (a, (n / 32 + 1) * 4, b, (n / 32 + 1) * 4);
  g_assert_false (ox_grammar_accept (grammar, G_MAXUINT32));
  for (guint i = 0; i < ids->len; i++)
    g_assert_true (ox_grammar_accept (grammar, g_array_index (ids, guint32, i)));
  ox_grammar_reset (grammar);
  g_assert_false (ox_grammar_is_complete (grammar));
}

/* ---- What is refused ---- */

static void
test_refused (void)
{
  static const struct {
    const char *schema;
    OxError code;
    const char *says;
  } cases[] = {
    { "", OX_ERROR_INVALID, "" },
    { "{", OX_ERROR_INVALID, "" },
    { "3", OX_ERROR_INVALID, "a schema was expected" },
    { "false", OX_ERROR_INVALID, "no value" },
    { "{\"type\": \"text\"}", OX_ERROR_INVALID, "“text”" },
    { "{\"type\": []}", OX_ERROR_INVALID, "“type”" },
    { "{\"type\": 3}", OX_ERROR_INVALID, "“type”" },
    { "{\"type\": \"string\", \"pattern\": \"a*\"}", OX_ERROR_UNSUPPORTED, "regular expression" },
    { "{\"properties\": {\"a\": {\"format\": \"date\"}}}", OX_ERROR_UNSUPPORTED,
      "/properties/a: the keyword “format”" },
    { "{\"type\": \"number\", \"minimum\": 3}", OX_ERROR_UNSUPPORTED, "“minimum”" },
    { "{\"if\": {}, \"then\": {}}", OX_ERROR_UNSUPPORTED, "“if”" },
    { "{\"enum\": []}", OX_ERROR_INVALID, "“enum”" },
    { "{\"enum\": [\"a\"], \"type\": \"integer\"}", OX_ERROR_INVALID, "fits" },
    { "{\"enum\": [\"a\"], \"maxLength\": 1}", OX_ERROR_UNSUPPORTED, "beside" },
    { "{\"anyOf\": []}", OX_ERROR_INVALID, "“anyOf” is empty" },
    { "{\"anyOf\": [{}], \"type\": \"string\"}", OX_ERROR_UNSUPPORTED, "“type” beside “anyOf”" },
    { "{\"allOf\": [{}, {}]}", OX_ERROR_UNSUPPORTED, "“allOf”" },
    { "{\"oneOf\": [{\"type\": \"integer\"}, {\"type\": \"number\"}]}", OX_ERROR_UNSUPPORTED, "“oneOf” 0 and 1" },
    { "{\"oneOf\": [{\"enum\": [1, 2]}, {\"enum\": [3, 2.0]}]}", OX_ERROR_UNSUPPORTED, "may both match" },
    { "{\"oneOf\": [{\"type\": \"object\"}, {\"properties\": {\"a\": {}}}]}", OX_ERROR_UNSUPPORTED, "may both match" },
    { "{\"minLength\": 4, \"maxLength\": 3}", OX_ERROR_INVALID, "“minLength” is more than “maxLength”" },
    { "{\"minLength\": -1}", OX_ERROR_INVALID, "“minLength”" },
    { "{\"minItems\": 1e9}", OX_ERROR_UNSUPPORTED, "“minItems”" },
    { "{\"$ref\": \"#/nowhere\"}", OX_ERROR_INVALID, "“#/nowhere”" },
    { "{\"$ref\": \"other.json\"}", OX_ERROR_INVALID, "“other.json”" },
    { "{\"$ref\": \"#\"}", OX_ERROR_INVALID, "no value" },
    { "{\"properties\": {\"a\": {\"$ref\": \"#\"}}, \"required\": [\"a\"]}", OX_ERROR_INVALID, "none that ends" },
    { "{\"properties\": {}, \"required\": [\"a\"], \"additionalProperties\": false}", OX_ERROR_INVALID, "“a”" },
    { "{\"required\": \"a\"}", OX_ERROR_INVALID, "“required”" },
    { "{\"properties\": []}", OX_ERROR_INVALID, "“properties”" },
    { "{\"properties\": {\"a\": 1}}", OX_ERROR_INVALID, "/properties/a" },
    { "{\"items\": [{}]}", OX_ERROR_INVALID, "/items" },
    { "{\"items\": false, \"minItems\": 1}", OX_ERROR_INVALID, "no value" },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = NULL;

    g_assert_null (ox_grammar_new (qwen35, cases[i].schema, &error));
    if (error->code != (int) cases[i].code || !strstr (error->message, cases[i].says))
      g_test_message ("%s: %s", cases[i].schema, error->message);
    g_assert_error (error, OX_ERROR, (int) cases[i].code);
    g_assert_nonnull (strstr (error->message, cases[i].says));
  }
}

/* Schemas made to take long or much. */
static void
test_hostile (void)
{
  GString *deep = g_string_new (NULL), *wide = g_string_new ("{\"anyOf\": [");
  g_autoptr (GError) error = NULL;
  double most = 0;

  for (guint i = 0; i < 5000; i++)
    g_string_append (deep, "{\"items\": ");
  g_string_append (deep, "{}");
  for (guint i = 0; i < 5000; i++)
    g_string_append_c (deep, '}');
  g_assert_null (ox_grammar_new (qwen35, deep->str, &error));
  g_assert_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED);
  g_clear_error (&error);

  /* 60 kinds of object that differ only at their ends, each within each, through a reference. */
  for (guint i = 0; i < 60; i++)
    g_string_append_printf (
      wide,
      "%s{\"type\": \"object\", \"properties\": {\"a\": {\"anyOf\": [{\"type\": \"null\"}, {\"$ref\": \"#\"}]}, "
      "\"z%u\": {\"type\": \"integer\"}}, \"required\": [\"a\", \"z%u\"], \"additionalProperties\": false}",
      i ? ", " : "", i, i);
  g_string_append (wide, "]}");
  for (guint i = 0; i < 3; i++)
    random_walk (qwen35, wide->str, i % 2 ? CHOOSE_DEEP : CHOOSE_ANY, &most);
  g_test_message ("the slowest step: %.1f ms", most * 1e3);
  g_string_free (deep, TRUE);
  g_string_free (wide, TRUE);
}

/* Schemas with parts changed at random: refused in words, or such that there is always a way on. */
static void
test_mutations (void)
{
  static const char *const bits[] = {
    "{}",       "[]",    "true",      "false",     "null",      "0",        "-1", "1e99",         "\"string\"",
    "\"$ref\"", "\"#\"", "\"anyOf\"", "\"oneOf\"", "\"items\"", "\"enum\"", "3",  "\"required\"", "\"minItems\""
  };
  guint n = ox_tokenizer_get_size (qwen35), n_good = 0;
  g_autofree guint32 *mask = g_new0 (guint32, n / 32 + 1);

  for (guint round = 0; round < 3000; round++) {
    const char *base = schemas[g_test_rand_int_range (0, G_N_ELEMENTS (schemas))];
    g_autoptr (GString) text = g_string_new (base);
    g_autoptr (GError) error = NULL;
    g_autoptr (OxGrammar) grammar = NULL;

    for (int changes = g_test_rand_int_range (1, 4); changes > 0 && text->len > 0; changes--) {
      gsize at = (gsize) g_test_rand_int_range (0, (gint32) text->len);
      const char *bit = bits[g_test_rand_int_range (0, G_N_ELEMENTS (bits))], *quote;

      switch (g_test_rand_int_range (0, 3)) {
      case 0:
        text->str[at] = (char) g_test_rand_int_range (1, 128);
        break;
      case 1:
        g_string_erase (text, (gssize) at, 1);
        break;
      default:
        /* A word or a value in place of another. */
        quote = strchr (text->str + at, '"');
        if (quote && strchr (quote + 1, '"')) {
          at = (gsize) (quote - text->str);
          g_string_erase (text, (gssize) at, strchr (quote + 1, '"') - quote + 1);
          g_string_insert (text, (gssize) at, bit);
        }
      }
    }
    grammar = ox_grammar_new (qwen35, text->str, &error);
    if (!grammar) {
      g_assert_true (g_str_has_prefix (error->message, "JSON schema") && g_utf8_validate (error->message, -1, NULL));
      continue;
    }
    n_good++;
    for (guint step = 0; step < 12; step++) {
      if (!ox_grammar_mask (grammar, mask)) {
        g_assert_true (ox_grammar_is_complete (grammar));
        break;
      }
      g_assert_true (ox_grammar_accept (grammar, choose (qwen35, mask, n, CHOOSE_ANY, FALSE)));
    }
  }
  g_test_message ("%u of 3000 were schemas", n_good);
  g_assert_cmpuint (n_good, >, 100);
}

/* A vocabulary that cannot write everything is refused, rather than end in a place without a way on. */
static void
test_poor_vocabulary (void)
{
  g_autofree char *folder = g_dir_make_tmp ("oxinfer-test-XXXXXX", NULL);
  g_autofree char *path = g_build_filename (folder, "tokenizer.json", NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (OxTokenizer) tokenizer = NULL;

  g_assert_true (
    g_file_set_contents (path,
                         "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"{\": 1, \"}\": 2}, \"merges\": []}, "
                         "\"decoder\": {\"type\": \"ByteLevel\"}}",
                         -1, NULL));
  tokenizer = ox_tokenizer_load (path, NULL, &error);
  g_assert_no_error (error);
  g_assert_null (ox_grammar_new (tokenizer, "{}", &error));
  g_assert_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED);
  g_unlink (path);
  g_rmdir (folder);
}

int
main (int argc, char **argv)
{
  int result;

  g_test_init (&argc, &argv, NULL);
  gemma4 = load_packed ("gemma4.tokenizer.json.xz");
  qwen35 = load_packed ("qwen3_5.tokenizer.json.xz");
  g_test_add_data_func ("/grammar/random/gemma4", &gemma4, test_random);
  g_test_add_data_func ("/grammar/random/qwen3.5", &qwen35, test_random);
  g_test_add_func ("/grammar/whole-mask", test_whole_mask);
  g_test_add_func ("/grammar/texts", test_texts);
  g_test_add_func ("/grammar/rewind", test_rewind);
  g_test_add_func ("/grammar/refused", test_refused);
  g_test_add_func ("/grammar/hostile", test_hostile);
  g_test_add_func ("/grammar/mutations", test_mutations);
  g_test_add_func ("/grammar/poor-vocabulary", test_poor_vocabulary);
  result = g_test_run ();
  ox_tokenizer_unref (gemma4);
  ox_tokenizer_unref (qwen35);
  return result;
}
