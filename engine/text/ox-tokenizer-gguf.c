/* Tokenizers from GGUF metadata.
 *
 * "llama" is SentencePiece style: the file has scores and no merges. As in SentencePiece, two neighbours join when together they
 * are a token, the one with the best score first. Written as merges (as the reference's converter does): all splits of every
 * token in two tokens, ordered by the score of the whole, then by the longer left part. "gpt2" is byte level, with merges and the
 * name of a pre-tokenizer. "gemma4" is SentencePiece style with merges; its scores mean nothing.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "text/ox-tokenizer.h"

#include <math.h>
#include <string.h>

#include "io/ox-quote.h"
#include "text/ox-tokenizer-private.h"
#include "text/ox-utf8.h"

#define KEY_TOKENS "tokenizer.ggml.tokens"
#define KEY_TYPES "tokenizer.ggml.token_type"
#define KEY_SCORES "tokenizer.ggml.scores"
#define KEY_MERGES "tokenizer.ggml.merges"
#define KEY_MODEL "tokenizer.ggml.model"
#define KEY_PRE "tokenizer.ggml.pre"
/* Tokens longer than this are not looked through for merges; Gemma 3's longest has 48. */
#define MAX_MERGED_BYTES 512

/* Values of tokenizer.ggml.token_type. */
enum {
  TYPE_NORMAL = 1,
  TYPE_UNKNOWN = 2,
  TYPE_CONTROL = 3,
  TYPE_USER_DEFINED = 4,
  TYPE_UNUSED = 5,
  TYPE_BYTE = 6,
};

typedef struct {
  OxGguf *gguf;
  const char *file_name;
  GCancellable *cancellable;
  OxTokenizer *tokenizer;
  gboolean is_gemma4;
  gint64 *types; /* NULL: all normal */
} Reader;

static gboolean damaged (Reader *reader, const char *key, GError **error, const char *format, ...) G_GNUC_PRINTF (4, 5);

static gboolean
damaged (Reader *reader, const char *key, GError **error, const char *format, ...)
{
  g_autofree char *message = NULL;
  va_list args;

  va_start (args, format);
  message = g_strdup_vprintf (format, args);
  va_end (args);
  g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: %s: %s", reader->file_name, key, message);
  return FALSE;
}

/* "<…>" and "[…]" are marks of a format; runs of white space and words, which byte-level files list too, are text. */
static gboolean
looks_like_mark (const char *name, gsize len)
{
  return len > 2 && ((name[0] == '<' && name[len - 1] == '>') || (name[0] == '[' && name[len - 1] == ']'));
}

static guint32
flags_of (Reader *reader, gsize id, const char *name, gsize len)
{
  g_autofree char *text = len > 0 && (*name == '<' || *name == '[') ? g_strndup (name, len) : g_strdup ("");

  /* Converters make seven of Gemma 4's marks visible and call one ordinary; its own file hides them all. */
  if (ox_token_name_is_gemma4_mark (text) && reader->is_gemma4)
    return OX_TOKEN_CONTROL | OX_TOKEN_HIDDEN | OX_TOKEN_WHOLE;
  switch (reader->types ? reader->types[id] : TYPE_NORMAL) {
  case TYPE_CONTROL:
    return OX_TOKEN_CONTROL | OX_TOKEN_HIDDEN | OX_TOKEN_WHOLE;
  case TYPE_UNKNOWN:
    return OX_TOKEN_CONTROL | OX_TOKEN_WHOLE;
  case TYPE_USER_DEFINED:
    if (ox_token_name_is_control (text) || (reader->tokenizer->vocab->byte_level && looks_like_mark (name, len)))
      return OX_TOKEN_CONTROL | OX_TOKEN_WHOLE;
    return OX_TOKEN_WHOLE;
  case TYPE_UNUSED:
    return OX_TOKEN_WHOLE;
  default:
    return ox_token_name_is_control (text) ? OX_TOKEN_CONTROL | OX_TOKEN_HIDDEN | OX_TOKEN_WHOLE : 0;
  }
}

static gboolean
read_vocab (Reader *reader, gboolean byte_level, GError **error)
{
  gsize n = ox_gguf_get_array_length (reader->gguf, KEY_TOKENS);
  OxTokenizer *tokenizer = reader->tokenizer;

  if (n == 0 || n > OX_VOCAB_MAX_SIZE)
    return damaged (reader, KEY_TOKENS, error, "has %" G_GSIZE_FORMAT " tokens, 1 to %u were expected", n,
                    OX_VOCAB_MAX_SIZE);
  if (ox_gguf_has (reader->gguf, KEY_TYPES)) {
    reader->types = g_new (gint64, n);
    if (!ox_gguf_get_array_int (reader->gguf, KEY_TYPES, reader->types, n))
      return damaged (reader, KEY_TYPES, error, "is not an array of %" G_GSIZE_FORMAT " integers, one for each token",
                      n);
  }
  tokenizer->vocab = ox_vocab_new ((guint) n, byte_level, error);
  if (!tokenizer->vocab)
    return FALSE;
  for (gsize i = 0; i < n; i++) {
    gsize len = 0;
    const char *name = ox_gguf_get_array_string (reader->gguf, KEY_TOKENS, i, &len);

    if (i % 4096 == 0 && g_cancellable_set_error_if_cancelled (reader->cancellable, error))
      return FALSE;
    if (!name)
      return damaged (reader, KEY_TOKENS, error, "is not an array of strings");
    if (ox_utf8_valid_prefix (name, len) != len)
      return damaged (reader, KEY_TOKENS, error, "entry %" G_GSIZE_FORMAT " is not valid UTF-8", i);
    if (!ox_vocab_set (tokenizer->vocab, (guint32) i, name, len, flags_of (reader, i, name, len)))
      return damaged (reader, KEY_TOKENS, error, "entry %" G_GSIZE_FORMAT " has %" G_GSIZE_FORMAT " bytes: too long", i,
                      len);
  }
  ox_vocab_index (tokenizer->vocab);
  return TRUE;
}

/* Control tokens are found in the text as it is. Others are spelled with plain spaces by the converter and so are found once
 * U+2581 has become one; unless each stretch of text gets a space in front, which must not come between. */
static void
collect_added (Reader *reader)
{
  OxTokenizer *tokenizer = reader->tokenizer;
  OxVocab *vocab = tokenizer->vocab;
  gboolean normalize = !vocab->byte_level && !tokenizer->add_space_prefix;
  g_autoptr (GArray) raw = g_array_new (FALSE, TRUE, sizeof (OxAddedToken));
  g_autoptr (GArray) normalized = g_array_new (FALSE, TRUE, sizeof (OxAddedToken));

  for (guint32 id = 0; id < vocab->n_tokens; id++) {
    const OxToken *token = vocab->tokens + id;
    gint64 type = reader->types ? reader->types[id] : TYPE_NORMAL;
    gboolean is_control = (token->flags & OX_TOKEN_CONTROL) != 0;
    OxAddedToken entry = { ox_vocab_name (vocab, id), token->name_len, id, is_control, FALSE, FALSE };

    if (token->name_len == 0 || (!is_control && type != TYPE_USER_DEFINED))
      continue;
    if (normalize && !is_control) {
      entry.text = ox_vocab_bytes (vocab, id);
      entry.len = token->n_bytes;
      g_array_append_val (normalized, entry);
    } else {
      g_array_append_val (raw, entry);
    }
  }
  tokenizer->added = ox_added_tokens_new ((const OxAddedToken *) (gpointer) raw->data, raw->len);
  if (normalized->len > 0)
    tokenizer->added_normalized =
      ox_added_tokens_new ((const OxAddedToken *) (gpointer) normalized->data, normalized->len);
}

/* ---- SentencePiece style ---- */

typedef struct {
  float score;
  guint32 id;
} Scored;

static int
compare_scored (gconstpointer pa, gconstpointer pb)
{
  const Scored *a = pa, *b = pb;

  if (a->score != b->score)
    return a->score > b->score ? -1 : 1;
  return a->id < b->id ? -1 : a->id > b->id;
}

/* All splits of @id; longer left parts rank first. Ranks go on from @rank. Tokens of equal score are taken in order of id, not by
 * the length of their left part: no vocabulary in use has equal scores among tokens that merge. */
static guint32
add_splits (OxTokenizer *tokenizer, guint32 id, guint32 rank)
{
  const OxVocab *vocab = tokenizer->vocab;
  const char *bytes = ox_vocab_bytes (vocab, id);
  gsize n = vocab->tokens[id].n_bytes;

  if (n > MAX_MERGED_BYTES)
    return rank;
  for (gsize i = n - 1; i > 0; i--) {
    guint32 left, right;

    if (((guint8) bytes[i] & 0xc0) == 0x80)
      continue;
    left = ox_vocab_find_bytes (vocab, bytes, i);
    right = left == OX_NO_TOKEN ? OX_NO_TOKEN : ox_vocab_find_bytes (vocab, bytes + i, n - i);
    if (right != OX_NO_TOKEN)
      ox_bpe_add_merge (tokenizer->bpe, left, right, id, rank++);
  }
  return rank;
}

/* Of characters that have neither a token nor tokens for their bytes. */
static guint32
unknown_token (Reader *reader)
{
  guint64 unk;

  if (ox_gguf_get_uint (reader->gguf, "tokenizer.ggml.unknown_token_id", &unk) && unk < OX_NO_TOKEN &&
      ox_vocab_has (reader->tokenizer->vocab, (guint32) unk))
    return (guint32) unk;
  return OX_NO_TOKEN;
}

static gboolean
read_scores (Reader *reader, GError **error)
{
  OxTokenizer *tokenizer = reader->tokenizer;
  OxVocab *vocab = tokenizer->vocab;
  g_autofree float *scores = g_new (float, vocab->n_tokens);
  g_autofree Scored *order = g_new (Scored, vocab->n_tokens);
  OxBpeOptions options = { TRUE, TRUE, FALSE, unknown_token (reader) };
  gsize n = 0;
  guint32 rank = 0;

  if (!ox_gguf_get_array_float (reader->gguf, KEY_SCORES, scores, vocab->n_tokens))
    return damaged (reader, KEY_SCORES, error, "is not an array of %u numbers, one for each token", vocab->n_tokens);
  for (guint32 id = 0; id < vocab->n_tokens; id++) {
    const OxToken *token = vocab->tokens + id;

    if (isnan (scores[id]))
      return damaged (reader, KEY_SCORES, error, "entry %u is not a number", id);
    if (!(token->flags & (OX_TOKEN_WHOLE | OX_TOKEN_CONTROL)) && token->n_bytes > 1)
      order[n++] = (Scored) { scores[id], id };
  }
  qsort (order, n, sizeof *order, compare_scored);
  tokenizer->bpe = ox_bpe_new (vocab, &options, n * 2, error);
  if (!tokenizer->bpe)
    return FALSE;
  for (gsize i = 0; i < n; i++) {
    if (i % 4096 == 0 && g_cancellable_set_error_if_cancelled (reader->cancellable, error))
      return FALSE;
    rank = add_splits (tokenizer, order[i].id, rank);
  }
  ox_bpe_finish (tokenizer->bpe);

  return TRUE;
}

/* ---- Merges ---- */

static gboolean
read_merges (Reader *reader, const OxBpeOptions *options, GError **error)
{
  OxTokenizer *tokenizer = reader->tokenizer;
  OxVocab *vocab = tokenizer->vocab;
  gsize n = ox_gguf_get_array_length (reader->gguf, KEY_MERGES);
  g_autoptr (GByteArray) bytes = g_byte_array_new ();

  if (n == 0)
    return damaged (reader, KEY_MERGES, error, "is missing or empty");
  tokenizer->bpe = ox_bpe_new (vocab, options, n, error);
  if (!tokenizer->bpe)
    return FALSE;
  for (gsize i = 0; i < n; i++) {
    gsize len = 0, left_len;
    const char *merge = ox_gguf_get_array_string (reader->gguf, KEY_MERGES, i, &len), *space;
    guint32 left, right, result;

    if (i % 4096 == 0 && g_cancellable_set_error_if_cancelled (reader->cancellable, error))
      return FALSE;
    space = merge && len > 2 ? memchr (merge + 1, ' ', len - 1) : NULL;
    if (!space || ox_utf8_valid_prefix (merge, len) != len)
      return damaged (reader, KEY_MERGES, error,
                      "entry %" G_GSIZE_FORMAT " is not two tokens with a space between them", i);
    g_byte_array_set_size (bytes, 0);
    ox_vocab_unspell (vocab, merge, (gsize) (space - merge), bytes);
    left_len = bytes->len;
    ox_vocab_unspell (vocab, space + 1, len - (gsize) (space - merge) - 1, bytes);
    left = ox_vocab_find_bytes (vocab, (const char *) bytes->data, left_len);
    right = ox_vocab_find_bytes (vocab, (const char *) bytes->data + left_len, bytes->len - left_len);
    result = ox_vocab_find_bytes (vocab, (const char *) bytes->data, bytes->len);
    if (left == OX_NO_TOKEN || right == OX_NO_TOKEN || result == OX_NO_TOKEN) {
      g_autofree char *quoted = ox_quote (merge, (gssize) len);

      return damaged (reader, KEY_MERGES, error,
                      "entry %" G_GSIZE_FORMAT " “%s” names a token that the vocabulary does not have", i, quoted);
    }
    ox_bpe_add_merge (tokenizer->bpe, left, right, result, (guint32) i);
  }
  ox_bpe_finish (tokenizer->bpe);
  return TRUE;
}

static gboolean
is_one_of (const char *name, const char *const *names)
{
  return g_strv_contains (names, name);
}

static gboolean
read_pre_tokenizer (Reader *reader, gboolean *ignore_merges, GError **error)
{
  static const char *const gpt2[] = { "gpt-2",   "phi-2",      "mpt",        "olmo", "jina-es",
                                      "jina-de", "jina-v1-en", "jina-v2-es", NULL };
  static const char *const digits[] = { "smollm",    "starcoder", "refact",     "command-r",
                                        "codeshell", "exaone",    "minerva-7b", NULL };
  static const char *const llama3[] = { "llama3", "llama-v3", "llama-bpe", "falcon3", "smaug-bpe", "dbrx", NULL };
  static const char *const qwen2[] = { "qwen2", "stablelm2", "deepseek-r1-qwen", "megrez", "hunyuan", NULL };
  const char *name = ox_gguf_get_string (reader->gguf, KEY_PRE);
  OxPreTokenizer *pre = ox_pre_tokenizer_new ();

  reader->tokenizer->pre = pre;
  *ignore_merges = FALSE;
  if (!name || strcmp (name, "default") == 0) {
    /* What llama.cpp does with files that do not say; they come from before the key existed. */
    if (!ox_pre_tokenizer_add_regex (pre, "[\\p{P}\\$\\+<=>\\^~\\|]+", OX_SPLIT_ISOLATED, error))
      return FALSE;
    ox_pre_tokenizer_add (pre, OX_SPLIT_GPT2);
    ox_pre_tokenizer_add (pre, OX_SPLIT_DIGIT_RUNS);
    return ox_pre_tokenizer_add_regex (pre, "[0-9][0-9][0-9]", OX_SPLIT_ISOLATED, error);
  }
  if (is_one_of (name, gpt2)) {
    ox_pre_tokenizer_add (pre, OX_SPLIT_GPT2);
  } else if (is_one_of (name, digits)) {
    ox_pre_tokenizer_add (pre, OX_SPLIT_DIGITS);
    ox_pre_tokenizer_add (pre, OX_SPLIT_GPT2);
  } else if (is_one_of (name, llama3)) {
    ox_pre_tokenizer_add (pre, OX_SPLIT_LLAMA3);
    *ignore_merges = g_str_has_prefix (name, "llama") || strcmp (name, "falcon3") == 0;
  } else if (is_one_of (name, qwen2)) {
    ox_pre_tokenizer_add (pre, OX_SPLIT_QWEN2);
    reader->tokenizer->nfc = TRUE;
  } else if (strcmp (name, "qwen35") == 0) {
    ox_pre_tokenizer_add (pre, OX_SPLIT_QWEN35);
    reader->tokenizer->nfc = TRUE;
  } else {
    g_autofree char *quoted = ox_quote (name, -1);

    g_set_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED, "%s: %s: the pre-tokenizer “%s” is not known",
                 reader->file_name, KEY_PRE, quoted);
    return FALSE;
  }
  return TRUE;
}

/* ---- The rest ---- */

/* Whether a name such as "Gemma 3 1b It" or "smollm2-instruct" tells of a model made for conversation. */
static gboolean
tells_of_chat (const char *name)
{
  static const char *const words[] = { "it", "instruct", "chat", NULL };
  g_auto (GStrv) parts = NULL;

  if (!name)
    return FALSE;
  parts = g_strsplit_set (name, " -_.", 64);
  for (gsize i = 0; parts[i]; i++) {
    g_autofree char *lower = g_ascii_strdown (parts[i], -1);

    if (is_one_of (lower, words))
      return TRUE;
  }
  return FALSE;
}

static gboolean
read_special (Reader *reader, gboolean byte_level, gboolean llama3, GError **error)
{
  OxTokenizer *tokenizer = reader->tokenizer;
  guint64 bos;

  if (ox_gguf_get_uint (reader->gguf, "tokenizer.ggml.bos_token_id", &bos)) {
    if (bos >= tokenizer->vocab->n_tokens)
      return damaged (reader, "tokenizer.ggml.bos_token_id", error,
                      "is %" G_GUINT64_FORMAT ", the vocabulary has %u tokens", bos, tokenizer->vocab->n_tokens);
    tokenizer->bos = (gint64) bos;
  }
  tokenizer->add_bos = !byte_level || llama3;
  /* Gemma 4 is lost without it, and some of its files say otherwise. */
  if (!reader->is_gemma4)
    ox_gguf_get_bool (reader->gguf, "tokenizer.ggml.add_bos_token", &tokenizer->add_bos);
  tokenizer->chat_template = g_strdup (ox_gguf_get_string (reader->gguf, "tokenizer.chat_template"));
  tokenizer->is_instruct = tells_of_chat (ox_gguf_get_string (reader->gguf, "general.name")) ||
                           tells_of_chat (ox_gguf_get_string (reader->gguf, "general.finetune")) ||
                           tells_of_chat (ox_gguf_get_string (reader->gguf, "general.basename"));
  return TRUE;
}

static gboolean
read_encoder (Reader *reader, gboolean byte_level, gboolean ignore_merges, GError **error)
{
  if (byte_level)
    return read_merges (reader, &(OxBpeOptions) { FALSE, FALSE, ignore_merges, OX_NO_TOKEN }, error);
  if (reader->is_gemma4)
    return read_merges (reader, &(OxBpeOptions) { TRUE, TRUE, FALSE, unknown_token (reader) }, error);
  return read_scores (reader, error);
}

OxTokenizer *
ox_tokenizer_new_from_gguf (
  OxGguf *gguf, const char *file_name, gboolean names_only, GCancellable *cancellable, GError **error)
{
  g_autoptr (OxTokenizer) tokenizer = ox_tokenizer_new ();
  g_autofree gint64 *types = NULL;
  Reader reader = { .gguf = gguf, .file_name = file_name, .cancellable = cancellable, .tokenizer = tokenizer };
  const char *model = ox_gguf_get_string (gguf, KEY_MODEL);
  gboolean byte_level = g_strcmp0 (model, "gpt2") == 0;
  gboolean ignore_merges = FALSE, ok;

  reader.is_gemma4 = g_strcmp0 (model, "gemma4") == 0;
  if (!model) {
    damaged (&reader, KEY_MODEL, error, "is missing");
    return NULL;
  }
  if (!byte_level && !reader.is_gemma4 && strcmp (model, "llama") != 0) {
    g_autofree char *quoted = ox_quote (model, -1);

    g_set_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED, "%s: %s: is “%s”, “llama”, “gemma4” or “gpt2” were expected",
                 file_name, KEY_MODEL, quoted);
    return NULL;
  }
  if (!byte_level) {
    tokenizer->add_space_prefix = !reader.is_gemma4;
    ox_gguf_get_bool (gguf, "tokenizer.ggml.add_space_prefix", &tokenizer->add_space_prefix);
  }
  ok = read_vocab (&reader, byte_level, error);
  types = reader.types;
  if (!ok)
    return NULL;
  collect_added (&reader);
  if (byte_level)
    ok = read_pre_tokenizer (&reader, &ignore_merges, error);
  if (ok && !names_only)
    ok = read_encoder (&reader, byte_level, ignore_merges, error);
  if (!ok || !read_special (&reader, byte_level, ignore_merges, error))
    return NULL;
  return g_steal_pointer (&tokenizer);
}
