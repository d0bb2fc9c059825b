/* Tokenizers from Hugging Face's tokenizer.json.
 *
 * The file is a chain of general parts: normalizer, pre_tokenizer, model, post_processor, decoder. Models in use need few of the
 * many kinds; any other is refused by name rather than run nearly right.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "text/ox-tokenizer.h"

#include <string.h>

#include "io/ox-json.h"
#include "io/ox-quote.h"
#include "text/ox-tokenizer-private.h"
#include "text/ox-unicode.h"
#include "text/ox-utf8.h"

/* The largest in use has 33 MB. */
#define MAX_FILE (256u << 20)
/* Parts of a Sequence; and Sequences do not nest deeper than one. */
#define MAX_PARTS 16

typedef struct {
  const char *file_name;
  GCancellable *cancellable;
  OxTokenizer *tokenizer;
  yyjson_val *root, *model, *vocab, *merges, *added;
  gboolean names_only;
  gboolean has_normalizer;
  gboolean byte_level;
} Reader;

static gboolean fail (Reader *reader, OxError code, GError **error, const char *format, ...) G_GNUC_PRINTF (4, 5);

static gboolean
fail (Reader *reader, OxError code, GError **error, const char *format, ...)
{
  g_autofree char *message = NULL;
  va_list args;

  va_start (args, format);
  message = g_strdup_vprintf (format, args);
  va_end (args);
  g_set_error (error, OX_ERROR, code, "%s: %s", reader->file_name, message);
  return FALSE;
}

static gboolean
expected (Reader *reader, const char *field, yyjson_val *found, const char *what, GError **error)
{
  return fail (reader, OX_ERROR_DAMAGED, error, "%s is %s, %s was expected", field, ox_json_describe (found), what);
}

/* The "type" of a part, or "" . */
static const char *
type_of (yyjson_val *part)
{
  const char *type = yyjson_get_str (yyjson_obj_get (part, "type"));

  return type ? type : "";
}

static gboolean
unsupported (Reader *reader, const char *field, yyjson_val *part, GError **error)
{
  g_autofree char *quoted = ox_quote (type_of (part), -1);

  return fail (reader, OX_ERROR_UNSUPPORTED, error, "%s of type “%s” (or its settings) is not supported", field,
               quoted);
}

/* An absent or false flag is fine, a true one is not. */
static gboolean
refuse_true (Reader *reader, yyjson_val *part, const char *field, const char *key, GError **error)
{
  if (yyjson_is_true (yyjson_obj_get (part, key)))
    return fail (reader, OX_ERROR_UNSUPPORTED, error, "%s.%s is true, which is not supported", field, key);
  return TRUE;
}

static gboolean
is_absent (yyjson_val *val)
{
  return !val || yyjson_is_null (val);
}

/* ---- Vocabulary ---- */

static gboolean
find_parts (Reader *reader, GError **error)
{
  yyjson_val *prefix, *suffix;

  if (!yyjson_is_obj (reader->root))
    return expected (reader, "the document", reader->root, "an object", error);
  reader->model = yyjson_obj_get (reader->root, "model");
  if (!yyjson_is_obj (reader->model))
    return expected (reader, "model", reader->model, "an object", error);
  if (strcmp (type_of (reader->model), "BPE") != 0 &&
      !(is_absent (yyjson_obj_get (reader->model, "type")) && yyjson_obj_get (reader->model, "merges")))
    return unsupported (reader, "model", reader->model, error);
  reader->vocab = yyjson_obj_get (reader->model, "vocab");
  if (!yyjson_is_obj (reader->vocab))
    return expected (reader, "model.vocab", reader->vocab, "an object", error);
  reader->merges = yyjson_obj_get (reader->model, "merges");
  if (!yyjson_is_arr (reader->merges))
    return expected (reader, "model.merges", reader->merges, "an array", error);
  reader->added = yyjson_obj_get (reader->root, "added_tokens");
  if (!is_absent (reader->added) && !yyjson_is_arr (reader->added))
    return expected (reader, "added_tokens", reader->added, "an array", error);
  prefix = yyjson_obj_get (reader->model, "continuing_subword_prefix");
  suffix = yyjson_obj_get (reader->model, "end_of_word_suffix");
  if ((!is_absent (prefix) && yyjson_get_len (prefix) > 0) || (!is_absent (suffix) && yyjson_get_len (suffix) > 0))
    return fail (reader, OX_ERROR_UNSUPPORTED, error,
                 "model.continuing_subword_prefix or model.end_of_word_suffix is set, which is not supported");
  return TRUE;
}

/* @val as an id; FALSE with the error set. */
static gboolean
read_id (Reader *reader, yyjson_val *val, const char *field, guint32 *id, GError **error)
{
  if (!yyjson_is_uint (val) || yyjson_get_uint (val) >= OX_VOCAB_MAX_SIZE) {
    if (yyjson_is_int (val))
      return fail (reader, OX_ERROR_DAMAGED, error, "%s is %" G_GINT64_FORMAT ", 0 to %u were expected", field,
                   (gint64) yyjson_get_sint (val), OX_VOCAB_MAX_SIZE - 1);
    return expected (reader, field, val, "an id", error);
  }
  *id = (guint32) yyjson_get_uint (val);
  return TRUE;
}

/* What an added token's entry says. */
static gboolean
read_added_entry (
  Reader *reader, yyjson_val *entry, gsize index, guint32 *id, const char **content, gsize *len, GError **error)
{
  g_autofree char *field = g_strdup_printf ("added_tokens[%" G_GSIZE_FORMAT "].id", index);
  yyjson_val *text = yyjson_obj_get (entry, "content");

  if (!read_id (reader, yyjson_obj_get (entry, "id"), field, id, error))
    return FALSE;
  *content = yyjson_get_str (text);
  *len = yyjson_get_len (text);
  if (!*content || *len == 0)
    return fail (reader, OX_ERROR_DAMAGED, error,
                 "added_tokens[%" G_GSIZE_FORMAT "].content is %s, some text was expected", index,
                 *content ? "empty" : ox_json_describe (text));
  return TRUE;
}

static gboolean
check_cancelled (Reader *reader, gsize i, GError **error)
{
  return i % 4096 != 0 || !g_cancellable_set_error_if_cancelled (reader->cancellable, error);
}

static gboolean
count_ids (Reader *reader, guint *n_tokens, GError **error)
{
  yyjson_obj_iter iter = yyjson_obj_iter_with (reader->vocab);
  yyjson_val *key, *entry;
  guint32 id = 0, most = 0;
  gsize i, max;
  const char *content;
  gsize len;

  while ((key = yyjson_obj_iter_next (&iter))) {
    yyjson_val *val = yyjson_obj_iter_get_val (key);

    /* Spelled out only for the error: formatting a quarter of a million names takes longer than the rest. */
    if (!yyjson_is_uint (val) || yyjson_get_uint (val) >= OX_VOCAB_MAX_SIZE) {
      g_autofree char *quoted = ox_quote (yyjson_get_str (key), (gssize) yyjson_get_len (key));
      g_autofree char *field = g_strdup_printf ("model.vocab “%s”", quoted);

      return read_id (reader, val, field, &id, error);
    }
    most = MAX (most, (guint32) yyjson_get_uint (val));
  }
  ox_json_foreach_item (reader->added, i, max, entry) {
    if (!read_added_entry (reader, entry, i, &id, &content, &len, error))
      return FALSE;
    most = MAX (most, id);
  }
  if (yyjson_obj_size (reader->vocab) == 0)
    return fail (reader, OX_ERROR_DAMAGED, error, "model.vocab is empty");
  /* Holes are allowed, but not so many that the file could take memory out of all proportion. */
  if (most / 4 > yyjson_obj_size (reader->vocab) + yyjson_arr_size (reader->added) + 4096)
    return fail (reader, OX_ERROR_DAMAGED, error, "model.vocab has %" G_GSIZE_FORMAT " tokens and an id %u",
                 (gsize) yyjson_obj_size (reader->vocab), most);
  *n_tokens = most + 1;
  return TRUE;
}

/* Flags for an added token. All of a byte-level file are marks of a format; SentencePiece style has text among them ("<table>",
 * runs of line breaks), so there those that count are marked special, or known by name. */
static guint32
added_flags (Reader *reader, yyjson_val *entry, const char *content, gsize len)
{
  gboolean special = yyjson_is_true (yyjson_obj_get (entry, "special"));
  gboolean mark = reader->byte_level && len > 2 && content[0] == '<' && content[len - 1] == '>';

  return (special ? OX_TOKEN_HIDDEN : 0) |
         (special || mark || ox_token_name_is_control (content) ? OX_TOKEN_CONTROL : 0);
}

static gboolean
read_vocab (Reader *reader, GError **error)
{
  g_autoptr (GHashTable) by_content = g_hash_table_new (g_str_hash, g_str_equal); /* added content → its entry */
  yyjson_val *key, *entry;
  yyjson_obj_iter iter;
  OxVocab *vocab;
  guint n_tokens = 0;
  gsize i, max, len;
  const char *content;
  guint32 id;

  if (!count_ids (reader, &n_tokens, error))
    return FALSE;
  vocab = reader->tokenizer->vocab = ox_vocab_new (n_tokens, reader->byte_level, error);
  if (!vocab)
    return FALSE;
  ox_json_foreach_item (reader->added, i, max, entry) {
    if (!g_hash_table_insert (by_content, (gpointer) yyjson_get_str (yyjson_obj_get (entry, "content")), entry)) {
      g_autofree char *quoted = ox_quote (yyjson_get_str (yyjson_obj_get (entry, "content")), -1);

      return fail (reader, OX_ERROR_DAMAGED, error, "added_tokens[%" G_GSIZE_FORMAT "].content “%s” is there twice", i,
                   quoted);
    }
  }

  yyjson_obj_iter_init (reader->vocab, &iter);
  for (i = 0; (key = yyjson_obj_iter_next (&iter)); i++) {
    const char *name = yyjson_get_str (key);
    guint32 flags = 0;

    if (!check_cancelled (reader, i, error))
      return FALSE;
    len = yyjson_get_len (key);
    id = (guint32) yyjson_get_uint (yyjson_obj_iter_get_val (key));
    if (g_hash_table_size (by_content) > 0 && (entry = g_hash_table_lookup (by_content, name)))
      flags = added_flags (reader, entry, name, len);
    if (!ox_vocab_set (vocab, id, name, len, flags)) {
      g_autofree char *quoted = ox_quote (name, (gssize) len);

      return fail (reader, OX_ERROR_DAMAGED, error, "model.vocab “%s” has the id %u of another token, or is too long",
                   quoted, id);
    }
  }

  ox_json_foreach_item (reader->added, i, max, entry) {
    if (!check_cancelled (reader, i, error) || !read_added_entry (reader, entry, i, &id, &content, &len, error))
      return FALSE;
    if (ox_vocab_has (vocab, id)) {
      if (vocab->tokens[id].name_len != len || memcmp (ox_vocab_name (vocab, id), content, len) != 0)
        return fail (reader, OX_ERROR_DAMAGED, error,
                     "added_tokens[%" G_GSIZE_FORMAT "].id is %u, which is another token", i, id);
    } else if (!ox_vocab_set (vocab, id, content, len, added_flags (reader, entry, content, len) | OX_TOKEN_WHOLE)) {
      return fail (reader, OX_ERROR_DAMAGED, error, "added_tokens[%" G_GSIZE_FORMAT "].content is too long", i);
    }
  }
  ox_vocab_index (vocab);
  return TRUE;
}

static gboolean
collect_added (Reader *reader, GError **error)
{
  OxTokenizer *tokenizer = reader->tokenizer;
  g_autoptr (GArray) raw = g_array_new (FALSE, TRUE, sizeof (OxAddedToken));
  g_autoptr (GArray) normalized = g_array_new (FALSE, TRUE, sizeof (OxAddedToken));
  yyjson_val *entry;
  gsize i, max;

  ox_json_foreach_item (reader->added, i, max, entry) {
    guint32 id = (guint32) yyjson_get_uint (yyjson_obj_get (entry, "id"));
    const OxToken *token = tokenizer->vocab->tokens + id;
    OxAddedToken added = { ox_vocab_name (tokenizer->vocab, id),
                           token->name_len,
                           id,
                           (token->flags & OX_TOKEN_CONTROL) != 0,
                           yyjson_is_true (yyjson_obj_get (entry, "lstrip")),
                           yyjson_is_true (yyjson_obj_get (entry, "rstrip")) };

    if (yyjson_is_true (yyjson_obj_get (entry, "single_word")))
      return fail (reader, OX_ERROR_UNSUPPORTED, error,
                   "added_tokens[%" G_GSIZE_FORMAT "].single_word is true, which is not supported", i);
    /* Control tokens are the same before and after normalisation, and are found before. */
    if (reader->has_normalizer && !added.is_control && yyjson_is_true (yyjson_obj_get (entry, "normalized"))) {
      added.text = ox_vocab_bytes (tokenizer->vocab, id);
      added.len = token->n_bytes;
      g_array_append_val (normalized, added);
    } else {
      g_array_append_val (raw, added);
    }
  }
  tokenizer->added = ox_added_tokens_new ((const OxAddedToken *) (gpointer) raw->data, raw->len);
  if (normalized->len > 0)
    tokenizer->added_normalized =
      ox_added_tokens_new ((const OxAddedToken *) (gpointer) normalized->data, normalized->len);
  return TRUE;
}

/* ---- Merges ---- */

static gboolean
read_merge (yyjson_val *val, const char *parts[2], gsize lens[2])
{
  if (yyjson_is_str (val)) {
    const char *text = yyjson_get_str (val), *space = strchr (text, ' ');

    if (!space)
      return FALSE;
    parts[0] = text;
    lens[0] = (gsize) (space - text);
    parts[1] = space + 1;
    lens[1] = yyjson_get_len (val) - lens[0] - 1;
  } else {
    yyjson_val *left = yyjson_arr_get_first (val), *right = yyjson_arr_get_last (val);

    if (yyjson_arr_size (val) != 2 || !yyjson_is_str (left) || !yyjson_is_str (right))
      return FALSE;
    parts[0] = yyjson_get_str (left);
    lens[0] = yyjson_get_len (left);
    parts[1] = yyjson_get_str (right);
    lens[1] = yyjson_get_len (right);
  }
  return lens[0] > 0 && lens[1] > 0;
}

static gboolean
read_merges (Reader *reader, GError **error)
{
  OxTokenizer *tokenizer = reader->tokenizer;
  OxVocab *vocab = tokenizer->vocab;
  g_autoptr (GByteArray) bytes = g_byte_array_new ();
  yyjson_val *unk = yyjson_obj_get (reader->model, "unk_token"), *merge;
  OxBpeOptions options = { yyjson_is_true (yyjson_obj_get (reader->model, "byte_fallback")),
                           yyjson_is_true (yyjson_obj_get (reader->model, "fuse_unk")),
                           yyjson_is_true (yyjson_obj_get (reader->model, "ignore_merges")), OX_NO_TOKEN };
  gsize i, max;

  if (!is_absent (unk)) {
    gint64 id = yyjson_is_str (unk) ? ox_tokenizer_find (tokenizer, yyjson_get_str (unk)) : -1;

    if (id < 0)
      return fail (reader, OX_ERROR_DAMAGED, error, "model.unk_token is not in the vocabulary");
    options.unk = (guint32) id;
  }
  tokenizer->bpe = ox_bpe_new (vocab, &options, yyjson_arr_size (reader->merges), error);
  if (!tokenizer->bpe)
    return FALSE;
  ox_json_foreach_item (reader->merges, i, max, merge) {
    const char *parts[2];
    gsize lens[2], left_len;
    guint32 left, right, result;

    if (!check_cancelled (reader, i, error))
      return FALSE;
    if (!read_merge (merge, parts, lens))
      return fail (reader, OX_ERROR_DAMAGED, error, "model.merges[%" G_GSIZE_FORMAT "] is not a pair of tokens", i);
    g_byte_array_set_size (bytes, 0);
    ox_vocab_unspell (vocab, parts[0], lens[0], bytes);
    left_len = bytes->len;
    ox_vocab_unspell (vocab, parts[1], lens[1], bytes);
    left = ox_vocab_find_bytes (vocab, (const char *) bytes->data, left_len);
    right = ox_vocab_find_bytes (vocab, (const char *) bytes->data + left_len, bytes->len - left_len);
    result = ox_vocab_find_bytes (vocab, (const char *) bytes->data, bytes->len);
    if (left == OX_NO_TOKEN || right == OX_NO_TOKEN || result == OX_NO_TOKEN) {
      g_autofree char *first = ox_quote (parts[0], (gssize) lens[0]);
      g_autofree char *second = ox_quote (parts[1], (gssize) lens[1]);

      return fail (reader, OX_ERROR_DAMAGED, error,
                   "model.merges[%" G_GSIZE_FORMAT "] (“%s”, “%s”) names a token that model.vocab does not have", i,
                   first, second);
    }
    ox_bpe_add_merge (tokenizer->bpe, left, right, result, (guint32) i);
  }
  ox_bpe_finish (tokenizer->bpe);
  return TRUE;
}

/* ---- The chain ---- */

typedef gboolean (*PartFunc) (Reader *reader, yyjson_val *part, GError **error);

/* Calls @func for a part, or for each of a Sequence's (whose list is at @list). */
static gboolean
for_each_part (Reader *reader, const char *field, const char *list, PartFunc func, GError **error)
{
  yyjson_val *part = yyjson_obj_get (reader->root, field), *parts, *item;
  gsize i, max;

  if (is_absent (part))
    return TRUE;
  if (!yyjson_is_obj (part))
    return expected (reader, field, part, "an object", error);
  if (strcmp (type_of (part), "Sequence") != 0)
    return func (reader, part, error);
  parts = yyjson_obj_get (part, list);
  if (!yyjson_is_arr (parts) || yyjson_arr_size (parts) > MAX_PARTS)
    return fail (reader, OX_ERROR_DAMAGED, error, "%s.%s is no array of at most %d parts", field, list, MAX_PARTS);
  ox_json_foreach_item (parts, i, max, item) {
    if (!yyjson_is_obj (item))
      return expected (reader, field, item, "an array of objects", error);
    if (!func (reader, item, error))
      return FALSE;
  }
  return TRUE;
}

static gboolean
string_equals (yyjson_val *val, const char *text)
{
  return g_strcmp0 (yyjson_get_str (val), text) == 0;
}

static gboolean
read_normalizer (Reader *reader, yyjson_val *part, GError **error)
{
  const char *type = type_of (part);

  reader->has_normalizer = TRUE;
  if (strcmp (type, "NFC") == 0 && reader->byte_level) {
    reader->tokenizer->nfc = TRUE;
    return TRUE;
  }
  if (!reader->byte_level && strcmp (type, "Replace") == 0 &&
      string_equals (yyjson_obj_get (part, "content"), "\342\226\201") &&
      string_equals (yyjson_obj_get (yyjson_obj_get (part, "pattern"), "String"), " "))
    return TRUE;
  if (!reader->byte_level && strcmp (type, "Prepend") == 0 &&
      string_equals (yyjson_obj_get (part, "prepend"), "\342\226\201")) {
    reader->tokenizer->add_space_prefix = TRUE;
    return TRUE;
  }
  return unsupported (reader, "normalizer", part, error);
}

static gboolean
read_behavior (yyjson_val *part, OxSplitBehavior *behavior)
{
  static const char *const names[] = { "Isolated", "Removed", "MergedWithPrevious", "MergedWithNext" };

  for (gsize i = 0; i < G_N_ELEMENTS (names); i++) {
    if (string_equals (yyjson_obj_get (part, "behavior"), names[i])) {
      *behavior = (OxSplitBehavior) i;
      return TRUE;
    }
  }
  return FALSE;
}

static gboolean
read_split (Reader *reader, yyjson_val *part, GError **error)
{
  yyjson_val *pattern = yyjson_obj_get (part, "pattern");
  const char *regex = yyjson_get_str (yyjson_obj_get (pattern, "Regex"));
  const char *string = yyjson_get_str (yyjson_obj_get (pattern, "String"));
  g_autofree char *escaped = NULL;
  g_autoptr (GError) local = NULL;
  OxSplitBehavior behavior;

  if ((!regex && !string) || !read_behavior (part, &behavior))
    return unsupported (reader, "pre_tokenizer", part, error);
  /* Spaces are spelled U+2581 by then, so that a split at " " does nothing. */
  if (!reader->byte_level && string && strcmp (string, " ") == 0)
    return TRUE;
  if (!reader->byte_level)
    return unsupported (reader, "pre_tokenizer", part, error);
  if (!regex)
    regex = escaped = g_regex_escape_string (string, -1);
  if (!ox_pre_tokenizer_add_regex (reader->tokenizer->pre, regex, behavior, &local))
    return fail (reader, OX_ERROR_UNSUPPORTED, error, "pre_tokenizer: %s", local->message);
  return TRUE;
}

static gboolean
read_pre_tokenizer (Reader *reader, yyjson_val *part, GError **error)
{
  const char *type = type_of (part);
  OxPreTokenizer *pre = reader->tokenizer->pre;

  if (strcmp (type, "Split") == 0)
    return refuse_true (reader, part, "pre_tokenizer", "invert", error) && read_split (reader, part, error);
  if (strcmp (type, "ByteLevel") == 0) {
    if (!yyjson_is_false (yyjson_obj_get (part, "use_regex")))
      ox_pre_tokenizer_add (pre, OX_SPLIT_GPT2);
    return refuse_true (reader, part, "pre_tokenizer", "add_prefix_space", error);
  }
  if (strcmp (type, "Digits") == 0 && reader->byte_level) {
    ox_pre_tokenizer_add (pre, yyjson_is_true (yyjson_obj_get (part, "individual_digits")) ? OX_SPLIT_DIGITS
                                                                                           : OX_SPLIT_DIGIT_RUNS);
    return TRUE;
  }
  return unsupported (reader, "pre_tokenizer", part, error);
}

static gboolean
read_post_processor (Reader *reader, yyjson_val *part, GError **error)
{
  const char *type = type_of (part);
  yyjson_val *first, *token, *info;
  OxTokenizer *tokenizer = reader->tokenizer;

  if (strcmp (type, "ByteLevel") == 0)
    return TRUE;
  if (strcmp (type, "TemplateProcessing") != 0)
    return unsupported (reader, "post_processor", part, error);
  first = yyjson_arr_get_first (yyjson_obj_get (part, "single"));
  token = yyjson_obj_get (yyjson_obj_get (first, "SpecialToken"), "id");
  if (!token)
    return TRUE;
  if (!yyjson_is_str (token))
    return expected (reader, "post_processor.single[0].SpecialToken.id", token, "a string", error);
  info = yyjson_obj_get (yyjson_obj_get (part, "special_tokens"), yyjson_get_str (token));
  info = yyjson_arr_get_first (yyjson_obj_get (info, "ids"));
  if (!yyjson_is_uint (info) || !ox_vocab_has (tokenizer->vocab, (guint32) MIN (yyjson_get_uint (info), OX_NO_TOKEN)))
    return expected (reader, "post_processor.special_tokens[…].ids[0]", info, "the id of a token", error);
  tokenizer->bos = (gint64) yyjson_get_uint (info);
  tokenizer->add_bos = TRUE;
  return TRUE;
}

static gboolean
read_decoder (Reader *reader, yyjson_val *part, GError **error)
{
  const char *type = type_of (part);

  if (reader->byte_level ? strcmp (type, "ByteLevel") == 0
                         : strcmp (type, "ByteFallback") == 0 || strcmp (type, "Fuse") == 0)
    return TRUE;
  if (!reader->byte_level && strcmp (type, "Replace") == 0 &&
      string_equals (yyjson_obj_get (yyjson_obj_get (part, "pattern"), "String"), "\342\226\201") &&
      string_equals (yyjson_obj_get (part, "content"), " "))
    return TRUE;
  /* What undoes the Prepend of the normalizer. */
  if (strcmp (type, "Strip") == 0 && reader->tokenizer->add_space_prefix &&
      string_equals (yyjson_obj_get (part, "content"), " "))
    return TRUE;
  return unsupported (reader, "decoder", part, error);
}

/* Whether the decoder, or one of its parts, is @type. */
static gboolean
decoder_has (Reader *reader, const char *type)
{
  yyjson_val *decoder = yyjson_obj_get (reader->root, "decoder"), *item;
  gsize i, max;

  if (strcmp (type_of (decoder), type) == 0)
    return TRUE;
  ox_json_foreach_item (yyjson_obj_get (decoder, "decoders"), i, max, item) {
    if (strcmp (type_of (item), type) == 0)
      return TRUE;
  }
  return FALSE;
}

static gboolean
read_all (Reader *reader, GError **error)
{
  OxTokenizer *tokenizer = reader->tokenizer;

  if (!find_parts (reader, error))
    return FALSE;
  reader->byte_level = decoder_has (reader, "ByteLevel");
  if (!reader->byte_level && !decoder_has (reader, "ByteFallback"))
    return fail (reader, OX_ERROR_UNSUPPORTED, error,
                 "decoder has neither a part ByteLevel nor ByteFallback; others are not supported");
  tokenizer->pre = ox_pre_tokenizer_new ();
  if (!for_each_part (reader, "normalizer", "normalizers", read_normalizer, error) ||
      !for_each_part (reader, "pre_tokenizer", "pretokenizers", read_pre_tokenizer, error) ||
      !for_each_part (reader, "decoder", "decoders", read_decoder, error))
    return FALSE;
  if (!reader->byte_level && !reader->has_normalizer)
    return fail (reader, OX_ERROR_UNSUPPORTED, error,
                 "normalizer is missing: without it spaces are not spelled as the decoder reads them");
  return read_vocab (reader, error) && collect_added (reader, error) &&
         (reader->names_only || read_merges (reader, error)) &&
         for_each_part (reader, "post_processor", "processors", read_post_processor, error);
}

OxTokenizer *
ox_tokenizer_new_from_json (OxFile *file, gboolean names_only, GCancellable *cancellable, GError **error)
{
  g_autoptr (OxJson) json = NULL;
  g_autoptr (OxTokenizer) tokenizer = NULL;
  Reader reader = { .file_name = ox_file_get_name (file), .cancellable = cancellable, .names_only = names_only };

  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return NULL;
  json = ox_json_read_all (file, MAX_FILE, error);
  if (!json)
    return NULL;
  reader.root = ox_json_get_root (json);
  reader.tokenizer = tokenizer = ox_tokenizer_new ();
  return read_all (&reader, error) ? g_steal_pointer (&tokenizer) : NULL;
}
