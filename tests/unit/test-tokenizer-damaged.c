/* Tokenizer files that break the rules, in tokenizer.json and in GGUF: each is an error that names the file and the field, none a
 * crash. And small good ones that show what the rarer settings do.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <string.h>

#include "ox-io-check.h"
#include "ox-pieces.h"
#include "text/ox-tokenizer.h"

/* A byte-level file in parts, so that a case can replace one. */
typedef struct {
  const char *vocab, *merges, *added, *normalizer, *pre_tokenizer, *post_processor, *decoder, *model;
} Json;

#define VOCAB "{\"a\":0,\"b\":1,\"ab\":2,\"abab\":3,\"\304\240\":4}"
#define MERGES "[[\"a\",\"b\"],[\"ab\",\"ab\"]]"
#define ADDED "[{\"id\":5,\"content\":\"<x>\",\"special\":true}]"
#define BYTE_LEVEL "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":true}"

static const Json good = { VOCAB, MERGES, ADDED, "null", BYTE_LEVEL, "null", BYTE_LEVEL, "\"type\":\"BPE\"" };

static char *
write_json (const Json *json)
{
#define PART(name) (json->name ? json->name : good.name)
  return g_strdup_printf (
    "{\"added_tokens\":%s,\"normalizer\":%s,\"pre_tokenizer\":%s,\"post_processor\":%s,\"decoder\":%s,"
    "\"model\":{%s,\"vocab\":%s,\"merges\":%s}}",
    PART (added), PART (normalizer), PART (pre_tokenizer), PART (post_processor), PART (decoder), PART (model),
    PART (vocab), PART (merges));
#undef PART
}

static OxTokenizer *
parse_json (const char *text, gsize len, GError **error)
{
  g_autoptr (GBytes) bytes = g_bytes_new (text, len);
  g_autoptr (OxFile) file = ox_file_new_for_bytes (bytes, OX_CHECK_FILE_NAME);

  return ox_tokenizer_new_from_json (file, FALSE, NULL, error);
}

static OxTokenizer *
parse_parts (const Json *json, GError **error)
{
  g_autofree char *text = write_json (json);

  return parse_json (text, strlen (text), error);
}

static OxTokenizer *
parse_gguf (GBytes *bytes, GError **error)
{
  g_autoptr (OxFile) file = ox_file_new_for_bytes (bytes, OX_CHECK_FILE_NAME);
  g_autoptr (OxGguf) gguf = ox_gguf_parse (file, error);

  return gguf ? ox_tokenizer_new_from_gguf (gguf, OX_CHECK_FILE_NAME, FALSE, NULL, error) : NULL;
}

typedef struct {
  const char *name;
  int code;
  const char *text; /* expected in the message */
  Json json;
} JsonCase;

#define D OX_ERROR_DAMAGED
#define U OX_ERROR_UNSUPPORTED

static const JsonCase bad_json[] = {
  { "id-negative", D, "model.vocab “a”", { .vocab = "{\"a\":-1}" } },
  { "id-huge", D, "model.vocab “a”", { .vocab = "{\"a\":4194304}" } },
  { "id-2^64", D, "model.vocab “a”", { .vocab = "{\"a\":18446744073709551615}" } },
  { "id-string", D, "model.vocab “a”", { .vocab = "{\"a\":\"1\"}" } },
  { "id-float", D, "model.vocab “a”", { .vocab = "{\"a\":1.5}" } },
  { "id-null", D, "model.vocab “a”", { .vocab = "{\"a\":null}" } },
  { "id-twice", D, "another token", { .vocab = "{\"a\":0,\"b\":0,\"ab\":2,\"abab\":3}" } },
  { "name-twice", D, "model.vocab “b”", { .vocab = "{\"a\":0,\"b\":1,\"b\":1,\"ab\":2,\"abab\":3}" } },
  { "id-far", D, "an id 4000000", { .vocab = "{\"a\":0,\"b\":4000000,\"ab\":2,\"abab\":3}" } },
  { "vocab-empty", D, "model.vocab is empty", { .vocab = "{}", .merges = "[]", .added = "[]" } },
  { "vocab-array", D, "model.vocab is an array", { .vocab = "[]" } },
  { "vocab-null", D, "model.vocab is null", { .vocab = "null" } },
  { "merge-missing-left", D, "model.merges[0]", { .merges = "[[\"q\",\"b\"]]" } },
  { "merge-missing-right", D, "model.merges[0]", { .merges = "[[\"a\",\"q\"]]" } },
  { "merge-missing-result", D, "model.merges[1]", { .merges = "[[\"a\",\"b\"],[\"b\",\"a\"]]" } },
  { "merge-one", D, "model.merges[0] is not a pair", { .merges = "[[\"a\"]]" } },
  { "merge-three", D, "model.merges[0] is not a pair", { .merges = "[[\"a\",\"b\",\"a\"]]" } },
  { "merge-numbers", D, "model.merges[0] is not a pair", { .merges = "[[0,1]]" } },
  { "merge-no-space", D, "model.merges[0] is not a pair", { .merges = "[\"ab\"]" } },
  { "merge-empty-side", D, "model.merges[0] is not a pair", { .merges = "[[\"\",\"b\"]]" } },
  { "merge-null", D, "model.merges[0] is not a pair", { .merges = "[null]" } },
  { "merges-object", D, "model.merges is an object", { .merges = "{}" } },
  { "added-empty", D, "added_tokens[0].content is empty", { .added = "[{\"id\":5,\"content\":\"\"}]" } },
  { "added-no-content", D, "added_tokens[0].content is missing", { .added = "[{\"id\":5}]" } },
  { "added-negative", D, "added_tokens[0].id is -5", { .added = "[{\"id\":-5,\"content\":\"x\"}]" } },
  { "added-no-id", D, "added_tokens[0].id is missing", { .added = "[{\"content\":\"x\"}]" } },
  { "added-huge", D, "added_tokens[0].id", { .added = "[{\"id\":99999999,\"content\":\"x\"}]" } },
  { "added-taken", D, "added_tokens[0].id is 2", { .added = "[{\"id\":2,\"content\":\"x\"}]" } },
  { "added-twice", D, "there twice", { .added = "[{\"id\":5,\"content\":\"x\"},{\"id\":6,\"content\":\"x\"}]" } },
  { "added-id-twice",
    D,
    "added_tokens[1].id is 5",
    { .added = "[{\"id\":5,\"content\":\"x\"},{\"id\":5,\"content\":\"y\"}]" } },
  { "added-text", D, "added_tokens[0].id is missing", { .added = "[\"x\"]" } },
  { "added-object", D, "added_tokens is an object", { .added = "{}" } },
  { "added-single-word",
    U,
    "added_tokens[0].single_word",
    { .added = "[{\"id\":5,\"content\":\"x\",\"single_word\":true}]" } },
  { "normalizer-lowercase", U, "normalizer of type “Lowercase”", { .normalizer = "{\"type\":\"Lowercase\"}" } },
  { "normalizer-nested",
    U,
    "normalizer of type “Sequence”",
    { .normalizer = "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Sequence\",\"normalizers\":[]}]}" } },
  { "normalizer-text", D, "normalizer is a string", { .normalizer = "\"NFC\"" } },
  { "pre-bert", U, "pre_tokenizer of type “BertPreTokenizer”", { .pre_tokenizer = "{\"type\":\"BertPreTokenizer\"}" } },
  { "pre-prefix-space",
    U,
    "pre_tokenizer.add_prefix_space",
    { .pre_tokenizer = "{\"type\":\"ByteLevel\",\"add_prefix_space\":true}" } },
  { "pre-bad-regex",
    U,
    "pre_tokenizer",
    { .pre_tokenizer = "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(((\"},\"behavior\":\"Isolated\"}" } },
  { "pre-behavior",
    U,
    "pre_tokenizer of type “Split”",
    { .pre_tokenizer = "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a\"},\"behavior\":\"Contiguous\"}" } },
  { "pre-sequence-number", D, "pre_tokenizer", { .pre_tokenizer = "{\"type\":\"Sequence\",\"pretokenizers\":7}" } },
  { "pre-sequence-of-numbers",
    D,
    "pre_tokenizer",
    { .pre_tokenizer = "{\"type\":\"Sequence\",\"pretokenizers\":[7]}" } },
  { "post-bert", U, "post_processor of type “BertProcessing”", { .post_processor = "{\"type\":\"BertProcessing\"}" } },
  { "post-no-such-token",
    D,
    "post_processor.special_tokens",
    { .post_processor = "{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"<s>\"}}],"
                        "\"special_tokens\":{\"<s>\":{\"ids\":[999]}}}" } },
  { "decoder-wordpiece", U, "decoder", { .decoder = "{\"type\":\"WordPiece\"}" } },
  { "decoder-null", U, "decoder", { .decoder = "null" } },
  { "model-wordpiece", U, "model of type “WordPiece”", { .model = "\"type\":\"WordPiece\"" } },
  { "model-unigram", U, "model of type “Unigram”", { .model = "\"type\":\"Unigram\"" } },
  { "model-suffix", U, "model.end_of_word_suffix", { .model = "\"type\":\"BPE\",\"end_of_word_suffix\":\"</w>\"" } },
  { "model-unk", D, "model.unk_token", { .model = "\"type\":\"BPE\",\"unk_token\":\"<unk>\"" } },
};

static void
test_bad_json (gconstpointer data)
{
  const JsonCase *one = data;
  g_autoptr (GError) error = NULL;

  g_assert_null (parse_parts (&one->json, &error));
  ox_check_error (&error, one->code, OX_CHECK_FILE_NAME, one->text);
}

static void
test_not_json (void)
{
  static const char *const texts[] = { "",        "{", "[]", "null", "\"x\"", "{}", "{\"model\":[]}", "{\"model\":{}}",
                                       "\xff\xfe" };
  g_autoptr (GError) error = NULL;
  GString *deep = g_string_new (NULL);

  for (gsize i = 0; i < G_N_ELEMENTS (texts); i++) {
    g_assert_null (parse_json (texts[i], strlen (texts[i]), &error));
    g_assert_nonnull (error);
    g_assert_true (error->domain == OX_ERROR && strstr (error->message, OX_CHECK_FILE_NAME));
    g_clear_error (&error);
  }
  for (guint i = 0; i < 1000000; i++)
    g_string_append (deep, "[");
  g_assert_null (parse_json (deep->str, deep->len, &error));
  ox_check_error (&error, OX_ERROR_DAMAGED, OX_CHECK_FILE_NAME, "JSON");
  g_string_free (deep, TRUE);
}

/* Whatever was accepted has to work. */
static void
exercise (OxTokenizer *tokenizer)
{
  static const char text[] = "abab ba <x>\n\n  a\xff\xe2\x96\x81 it's 12 \xc3\xa9\0b";
  g_autoptr (GArray) ids = g_array_new (FALSE, FALSE, sizeof (guint32));
  guint32 all[64];
  g_autofree char *back = NULL;
  g_autofree char *decoded = NULL;

  ox_tokenizer_encode (tokenizer, text, sizeof text - 1, TRUE, ids);
  ox_tokenizer_encode (tokenizer, text, sizeof text - 1, FALSE, ids);
  for (guint i = 0; i < ids->len; i++)
    g_assert_nonnull (ox_tokenizer_get_token (tokenizer, g_array_index (ids, guint32, i)));
  for (guint32 i = 0; i < G_N_ELEMENTS (all); i++)
    all[i] = i;
  back = ox_tokenizer_decode (tokenizer, (const guint32 *) (gpointer) ids->data, ids->len, FALSE);
  decoded = ox_tokenizer_decode (tokenizer, all, G_N_ELEMENTS (all), TRUE);
  g_assert_true (g_utf8_validate (back, -1, NULL) && g_utf8_validate (decoded, -1, NULL));
}

/* Random damage to @bytes, many times. */
static void
damage (const char *bytes, gsize len, guint rounds, gboolean is_json)
{
  guint n_accepted = 0;

  for (guint round = 0; round < rounds; round++) {
    g_autofree char *copy = g_memdup2 (bytes, len);
    gsize n = g_test_rand_int_range (0, 8) == 0 ? (gsize) g_test_rand_int_range (0, (gint32) len) : len;
    g_autoptr (GError) error = NULL;
    g_autoptr (OxTokenizer) tokenizer = NULL;
    g_autoptr (GBytes) damaged = NULL;

    for (gint32 k = g_test_rand_int_range (1, 4); k > 0 && n > 0; k--)
      copy[g_test_rand_int_range (0, (gint32) n)] = is_json && g_test_rand_bit ()
                                                      ? "0123456789\"[]{},:-<>ab"[g_test_rand_int_range (0, 22)]
                                                      : (char) g_test_rand_int_range (0, 256);
    damaged = g_bytes_new (copy, n);
    tokenizer = is_json ? parse_json (copy, n, &error) : parse_gguf (damaged, &error);
    g_assert_true ((tokenizer == NULL) == (error != NULL));
    if (tokenizer) {
      exercise (tokenizer);
      n_accepted++;
    } else {
      g_assert_true (g_utf8_validate (error->message, -1, NULL));
    }
  }
  g_test_message ("%u of %u damaged files were still readable", n_accepted, rounds);
}

static void
test_random_json (void)
{
  g_autofree char *text = write_json (&good);

  damage (text, strlen (text), 4000, TRUE);
}

/* ---- GGUF ---- */

#define KEYS(n) GGUF (3, 0, n)
#define STRING_KEY(key, value) STR (key), U32 (8), STR (value)
#define MODEL(value) STRING_KEY ("tokenizer.ggml.model", value)
#define PRE(value) STRING_KEY ("tokenizer.ggml.pre", value)
#define TOKENS                                                                                                         \
  STR ("tokenizer.ggml.tokens"), U32 (9), U32 (8), U64 (5), STR ("a"), STR ("b"), STR ("ab"), STR ("<x>"),             \
    STR ("\342\226\201a")
#define TYPES STR ("tokenizer.ggml.token_type"), U32 (9), U32 (5), U64 (5), U32 (1), U32 (1), U32 (1), U32 (3), U32 (1)
#define SCORES STR ("tokenizer.ggml.scores"), U32 (9), U32 (6), U64 (5), F32 (0), F32 (0), F32 (-1), F32 (0), F32 (-2)
#define ONE_MERGE(text) STR ("tokenizer.ggml.merges"), U32 (9), U32 (8), U64 (1), STR (text)
#define MAX_PIECES 64

typedef struct {
  const char *name;
  int code; /* -1: good */
  const char *text;
  OxPiece pieces[MAX_PIECES];
} GgufCase;

static const GgufCase gguf_cases[] = {
  { "good-llama", -1, NULL, { KEYS (4), MODEL ("llama"), TOKENS, TYPES, SCORES } },
  { "good-gpt2", -1, NULL, { KEYS (5), MODEL ("gpt2"), PRE ("smollm"), TOKENS, TYPES, ONE_MERGE ("a b") } },
  { "good-gemma4", -1, NULL, { KEYS (4), MODEL ("gemma4"), TOKENS, TYPES, ONE_MERGE ("a b") } },
  { "good-no-types", -1, NULL, { KEYS (3), MODEL ("llama"), TOKENS, SCORES } },
  { "no-model", D, "tokenizer.ggml.model: is missing", { KEYS (1), TOKENS } },
  { "model-bert", U, "tokenizer.ggml.model: is “bert”", { KEYS (2), MODEL ("bert"), TOKENS } },
  { "model-number", D, "tokenizer.ggml.model", { KEYS (1), STR ("tokenizer.ggml.model"), U32 (4), U32 (7) } },
  { "no-tokens", D, "tokenizer.ggml.tokens", { KEYS (1), MODEL ("llama") } },
  { "tokens-empty",
    D,
    "tokenizer.ggml.tokens",
    { KEYS (2), MODEL ("llama"), STR ("tokenizer.ggml.tokens"), U32 (9), U32 (8), U64 (0) } },
  { "tokens-numbers",
    D,
    "tokenizer.ggml.tokens",
    { KEYS (2), MODEL ("llama"), STR ("tokenizer.ggml.tokens"), U32 (9), U32 (4), U64 (1), U32 (1) } },
  { "tokens-not-utf8",
    D,
    "UTF-8",
    { KEYS (2), MODEL ("llama"), STR ("tokenizer.ggml.tokens"), U32 (9), U32 (8), U64 (1), STR ("\xe2\x96") } },
  { "types-short",
    D,
    "tokenizer.ggml.token_type",
    { KEYS (3), MODEL ("llama"), TOKENS, STR ("tokenizer.ggml.token_type"), U32 (9), U32 (5), U64 (1), U32 (1) } },
  { "types-strings",
    D,
    "tokenizer.ggml.token_type",
    { KEYS (3), MODEL ("llama"), TOKENS, STRING_KEY ("tokenizer.ggml.token_type", "1") } },
  { "no-scores", D, "tokenizer.ggml.scores", { KEYS (2), MODEL ("llama"), TOKENS } },
  { "scores-short",
    D,
    "tokenizer.ggml.scores",
    { KEYS (3), MODEL ("llama"), TOKENS, STR ("tokenizer.ggml.scores"), U32 (9), U32 (6), U64 (1), F32 (1) } },
  { "scores-nan",
    D,
    "tokenizer.ggml.scores",
    { KEYS (3), MODEL ("llama"), TOKENS, STR ("tokenizer.ggml.scores"), U32 (9), U32 (6), U64 (5), U32 (0x7fc00000),
      F32 (0), F32 (0), F32 (0), F32 (0) } },
  { "pre-unknown",
    U,
    "tokenizer.ggml.pre: the pre-tokenizer “tekken”",
    { KEYS (3), MODEL ("gpt2"), PRE ("tekken"), TOKENS } },
  { "merge-missing",
    D,
    "tokenizer.ggml.merges",
    { KEYS (4), MODEL ("gpt2"), PRE ("smollm"), TOKENS, ONE_MERGE ("b a") } },
  { "merge-one", D, "tokenizer.ggml.merges", { KEYS (4), MODEL ("gpt2"), PRE ("smollm"), TOKENS, ONE_MERGE ("ab") } },
  { "merge-empty", D, "tokenizer.ggml.merges", { KEYS (4), MODEL ("gpt2"), PRE ("smollm"), TOKENS, ONE_MERGE ("") } },
  { "merge-space", D, "tokenizer.ggml.merges", { KEYS (4), MODEL ("gpt2"), PRE ("smollm"), TOKENS, ONE_MERGE (" ") } },
  { "gemma4-no-merges", D, "tokenizer.ggml.merges: is missing", { KEYS (3), MODEL ("gemma4"), TOKENS, SCORES } },
  { "gemma4-merge-missing", D, "tokenizer.ggml.merges", { KEYS (3), MODEL ("gemma4"), TOKENS, ONE_MERGE ("b a") } },
  { "bos-out-of-range",
    D,
    "tokenizer.ggml.bos_token_id",
    { KEYS (4), MODEL ("llama"), TOKENS, SCORES, STR ("tokenizer.ggml.bos_token_id"), U32 (4), U32 (5) } },
};

static void
test_gguf (gconstpointer data)
{
  const GgufCase *one = data;
  g_autoptr (GByteArray) array = g_byte_array_new ();
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) bytes = NULL;
  g_autoptr (OxTokenizer) tokenizer = NULL;

  ox_pieces_append (array, one->pieces, MAX_PIECES);
  bytes = g_bytes_new (array->data, array->len);
  tokenizer = parse_gguf (bytes, &error);
  if (one->code < 0) {
    g_assert_no_error (error);
    exercise (tokenizer);
  } else {
    g_assert_null (tokenizer);
    ox_check_error (&error, one->code, OX_CHECK_FILE_NAME, one->text);
  }
}

static void
test_random_gguf (void)
{
  for (gsize i = 0; i < 3; i++) {
    g_autoptr (GByteArray) array = g_byte_array_new ();

    ox_pieces_append (array, gguf_cases[i].pieces, MAX_PIECES);
    damage ((const char *) array->data, array->len, 3000, FALSE);
  }
}

/* ---- Small good files ---- */

static void
assert_ids (OxTokenizer *tokenizer, const char *text, gboolean parse_control, guint n, const guint32 *expected)
{
  g_autoptr (GArray) ids = g_array_new (FALSE, FALSE, sizeof (guint32));

  ox_tokenizer_encode (tokenizer, text, -1, parse_control, ids);
  g_assert_cmpmem (ids->data, ids->len * sizeof (guint32), expected, n * sizeof (guint32));
}

#define ASSERT_IDS(tokenizer, text, parse, ...)                                                                        \
  assert_ids (tokenizer, text, parse, G_N_ELEMENTS (((guint32[]) { __VA_ARGS__ })), (guint32[]) { __VA_ARGS__ })

static void
test_small (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (OxTokenizer) plain = parse_parts (&good, &error);
  Json json = good;
  g_autoptr (OxTokenizer) split = NULL, stripping = NULL, lists = NULL;

  g_assert_no_error (error);
  ASSERT_IDS (plain, "ababab", FALSE, 3, 2);
  ASSERT_IDS (plain, "ab <x>", TRUE, 2, 4, 5);
  /* Bytes that the vocabulary has no token for are left out, as the reference does. */
  ASSERT_IDS (plain, "<x>ab", FALSE, 2);

  json.pre_tokenizer = "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"ab\"},\"behavior\":\"Isolated\"}";
  split = parse_parts (&json, &error);
  g_assert_no_error (error);
  ASSERT_IDS (split, "ababa", FALSE, 2, 2, 0);

  json = good;
  json.added = "[{\"id\":5,\"content\":\"<x>\",\"special\":true,\"lstrip\":true,\"rstrip\":true}]";
  stripping = parse_parts (&json, &error);
  g_assert_no_error (error);
  ASSERT_IDS (stripping, "a <x> \n b", TRUE, 0, 5, 1);

  json = good;
  json.merges = "[\"a b\",\"ab ab\"]";
  lists = parse_parts (&json, &error);
  g_assert_no_error (error);
  ASSERT_IDS (lists, "ababab", FALSE, 3, 2);
}

/* SentencePiece style with a space before the text, as Llama 2 has it; no byte tokens, so unknown characters fuse. */
static void
test_space_prefix (void)
{
  static const char text[] =
    "{\"added_tokens\":[{\"id\":0,\"content\":\"<unk>\",\"special\":true},{\"id\":1,\"content\":\"<s>\",\"special\":"
    "true}],"
    "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":\"\342\226\201\"},"
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\342\226\201\"}]},\"pre_tokenizer\":null,"
    "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"<s>\",\"type_id\":0}}]"
    ","
    "\"special_tokens\":{\"<s>\":{\"id\":\"<s>\",\"ids\":[1],\"tokens\":[\"<s>\"]}}},"
    "\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":\"\342\226\201\"},"
    "\"content\":\" \"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},{\"type\":\"Strip\",\"content\":\" "
    "\",\"start\":1,"
    "\"stop\":0}]},\"model\":{\"type\":\"BPE\",\"unk_token\":\"<unk>\",\"fuse_unk\":true,\"byte_fallback\":true,"
    "\"vocab\":{\"<unk>\":0,\"<s>\":1,\"\342\226\201\":2,\"a\":3,\"\342\226\201a\":4},\"merges\":[\"\342\226\201 "
    "a\"]}}";
  g_autoptr (GError) error = NULL;
  g_autoptr (OxTokenizer) tokenizer = parse_json (text, sizeof text - 1, &error);
  g_autofree char *back = NULL;

  g_assert_no_error (error);
  ASSERT_IDS (tokenizer, "a a", FALSE, 4, 4);
  ASSERT_IDS (tokenizer, "xyza", FALSE, 2, 0, 3);
  ASSERT_IDS (tokenizer, "<s>a", TRUE, 1, 4);
  g_assert_true (ox_tokenizer_get_add_bos (tokenizer));
  g_assert_cmpint (ox_tokenizer_get_bos (tokenizer), ==, 1);
  back = ox_tokenizer_decode (tokenizer, (guint32[]) { 4, 4 }, 2, FALSE);
  g_assert_cmpstr (back, ==, "a a");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (bad_json); i++) {
    g_autofree char *path = g_strconcat ("/tokenizer-damaged/json/", bad_json[i].name, NULL);

    g_test_add_data_func (path, bad_json + i, test_bad_json);
  }
  for (gsize i = 0; i < G_N_ELEMENTS (gguf_cases); i++) {
    g_autofree char *path = g_strconcat ("/tokenizer-damaged/gguf/", gguf_cases[i].name, NULL);

    g_test_add_data_func (path, gguf_cases + i, test_gguf);
  }
  g_test_add_func ("/tokenizer-damaged/not-json", test_not_json);
  g_test_add_func ("/tokenizer-damaged/random-json", test_random_json);
  g_test_add_func ("/tokenizer-damaged/random-gguf", test_random_gguf);
  g_test_add_func ("/tokenizer-damaged/small", test_small);
  g_test_add_func ("/tokenizer-damaged/space-prefix", test_space_prefix);
  return g_test_run ();
}
