/* Tokenizers: from text to ids and back.
 *
 * The way of a text: broken UTF-8 is repaired; added tokens are found; what lies between them is normalised, cut into pieces and
 * byte-pair encoded. Pieces are cut by the pre-tokenizer (byte level), or wherever no token reaches across (SentencePiece style,
 * where the rules know no pieces: there the cut only saves time). Words that were encoded before come out of a small cache.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "text/ox-tokenizer.h"

#include <string.h>

#include "io/ox-memory.h"
#include "text/ox-tokenizer-private.h"
#include "text/ox-unicode.h"
#include "text/ox-utf8.h"

/* ---- Word cache ---- */

#define CACHE_SLOTS 16384
#define CACHE_MAX_BYTES 22
#define CACHE_MAX_IDS 6
/* Shorter texts do not repay filling it. */
#define CACHE_MIN_TEXT 512

typedef struct {
  guint8 len; /* 0: free */
  guint8 n_ids;
  char bytes[CACHE_MAX_BYTES];
  guint32 ids[CACHE_MAX_IDS];
} CachedWord;

struct _OxWordCache {
  CachedWord words[CACHE_SLOTS];
};

/* ---- Life ---- */

OxTokenizer *
ox_tokenizer_new (void)
{
  OxTokenizer *tokenizer = g_new0 (OxTokenizer, 1);

  g_atomic_ref_count_init (&tokenizer->refs);
  g_mutex_init (&tokenizer->cache_lock);
  g_mutex_init (&tokenizer->trie_lock);
  tokenizer->bos = -1;
  return tokenizer;
}

OxTokenizer *
ox_tokenizer_ref (OxTokenizer *tokenizer)
{
  g_return_val_if_fail (tokenizer != NULL, NULL);
  g_atomic_ref_count_inc (&tokenizer->refs);
  return tokenizer;
}

void
ox_tokenizer_unref (OxTokenizer *tokenizer)
{
  if (!tokenizer || !g_atomic_ref_count_dec (&tokenizer->refs))
    return;
  ox_bpe_free (tokenizer->bpe);
  ox_added_tokens_free (tokenizer->added);
  ox_added_tokens_free (tokenizer->added_normalized);
  ox_pre_tokenizer_free (tokenizer->pre);
  ox_token_trie_free (tokenizer->trie);
  ox_vocab_free (tokenizer->vocab);
  g_free (tokenizer->chat_template);
  g_free (tokenizer->cache);
  g_mutex_clear (&tokenizer->cache_lock);
  g_mutex_clear (&tokenizer->trie_lock);
  g_free (tokenizer);
}

/* ---- Questions ---- */

guint
ox_tokenizer_get_size (OxTokenizer *tokenizer)
{
  return tokenizer->vocab->n_tokens;
}

gint64
ox_tokenizer_find (OxTokenizer *tokenizer, const char *token)
{
  gsize len = strlen (token);
  const OxAddedToken *added = ox_added_tokens_find (tokenizer->added, token, len);
  guint32 id;

  if (added)
    return added->id;
  id = ox_vocab_find_name (tokenizer->vocab, token, len);
  return id == OX_NO_TOKEN ? -1 : (gint64) id;
}

const char *
ox_tokenizer_get_token (OxTokenizer *tokenizer, guint32 id)
{
  return ox_vocab_has (tokenizer->vocab, id) ? ox_vocab_name (tokenizer->vocab, id) : NULL;
}

gboolean
ox_tokenizer_is_control (OxTokenizer *tokenizer, guint32 id)
{
  return ox_vocab_has (tokenizer->vocab, id) && tokenizer->vocab->tokens[id].flags & OX_TOKEN_CONTROL;
}

gint64
ox_tokenizer_get_bos (OxTokenizer *tokenizer)
{
  return tokenizer->bos;
}

gboolean
ox_tokenizer_get_add_bos (OxTokenizer *tokenizer)
{
  return tokenizer->add_bos && tokenizer->bos >= 0;
}

const char *
ox_tokenizer_get_chat_template (OxTokenizer *tokenizer)
{
  return tokenizer->chat_template;
}

const OxTokenTrie *
ox_tokenizer_get_trie (OxTokenizer *tokenizer, GError **error)
{
  const OxTokenTrie *trie;

  g_mutex_lock (&tokenizer->trie_lock);
  if (!tokenizer->trie)
    tokenizer->trie = ox_token_trie_new (tokenizer->vocab, error);
  trie = tokenizer->trie;
  g_mutex_unlock (&tokenizer->trie_lock);
  return trie;
}

/* Strings that mark turns wherever they occur. Files of converted models sometimes list them as ordinary tokens. */
gboolean
ox_token_name_is_control (const char *name)
{
  static const char *const names[] = {
    "<|im_start|>",    "<|im_end|>",        "<|endoftext|>",       "<start_of_turn>",
    "<end_of_turn>",   "<|eot_id|>",        "<|start_header_id|>", "<|end_header_id|>",
    "<|end_of_text|>", "<|begin_of_text|>", "<start_of_image>",    "<end_of_image>",
    "<mask>",          "[multimodal]"
  };

  if (*name != '<' && *name != '[')
    return FALSE;
  for (gsize i = 0; i < G_N_ELEMENTS (names); i++) {
    if (strcmp (name, names[i]) == 0)
      return TRUE;
  }
  return FALSE;
}

gboolean
ox_token_name_is_gemma4_mark (const char *name)
{
  static const char *const names[] = { "<|tool>",  "<tool|>",  "<|tool_call>", "<tool_call|>", "<|tool_response>",
                                       "<|\"|>",   "<|turn>",  "<turn|>",      "<|think|>",    "<tool_response|>",
                                       "<|image>", "<image|>", "<|image|>",    "<|channel>",   "<channel|>",
                                       "<|audio>", "<audio|>", "<|audio|>",    "<|video|>" };

  for (gsize i = 0; *name == '<' && i < G_N_ELEMENTS (names); i++) {
    if (strcmp (name, names[i]) == 0)
      return TRUE;
  }
  return FALSE;
}

/* ---- Encoding ---- */

/* Bytes between two looks at the cancellable. */
#define BYTES_PER_LOOK 16384
/* What encoding takes at most for a byte of text: its id, its place in the list of symbols, its pairs. Arrays grow by halves. */
#define MEMORY_PER_BYTE 72

typedef struct {
  OxTokenizer *tokenizer;
  GArray *ids;
  CachedWord *cache; /* NULL: not used */
  GCancellable *cancellable;
  gsize unlooked; /* bytes since the last look */
  gboolean stopped;
} Encoder;

/* Whether to go on, behind @len more bytes. */
static gboolean
running (Encoder *encoder, gsize len)
{
  encoder->unlooked += len;
  if (encoder->unlooked >= BYTES_PER_LOOK) {
    encoder->unlooked = 0;
    encoder->stopped = encoder->stopped || g_cancellable_is_cancelled (encoder->cancellable);
  }
  return !encoder->stopped;
}

static void
encode_piece (const char *piece, gsize len, gpointer user_data)
{
  Encoder *encoder = user_data;
  GArray *ids = encoder->ids;
  guint begin = ids->len;
  CachedWord *word = NULL;

  if (!running (encoder, len))
    return;
  if (encoder->cache && len <= CACHE_MAX_BYTES && len > 0) {
    word = encoder->cache + ox_hash_bytes (piece, len) % CACHE_SLOTS;
    if (word->len == len && memcmp (word->bytes, piece, len) == 0) {
      g_array_append_vals (ids, word->ids, word->n_ids);
      return;
    }
  }
  ox_bpe_encode (encoder->tokenizer->bpe, piece, len, encoder->cancellable, ids);
  if (word && ids->len - begin <= CACHE_MAX_IDS) {
    word->len = (guint8) len;
    word->n_ids = (guint8) (ids->len - begin);
    memcpy (word->bytes, piece, len);
    memcpy (word->ids, &g_array_index (ids, guint32, begin), word->n_ids * sizeof (guint32));
  }
}

/* A stretch of normalised text without added tokens. */
static void
encode_stretch (Encoder *encoder, const char *text, gsize len)
{
  OxTokenizer *tokenizer = encoder->tokenizer;

  if (tokenizer->vocab->byte_level) {
    ox_pre_tokenizer_run (tokenizer->pre, text, len, encode_piece, encoder);
    return;
  }
  for (gsize i = 0; i < len && !encoder->stopped;) {
    gsize cut = ox_bpe_find_cut (tokenizer->bpe, text + i, len - i);

    encode_piece (text + i, cut, encoder);
    i += cut;
  }
}

/* A stretch of text as it came. */
static void
encode_raw (Encoder *encoder, const char *text, gsize len)
{
  OxTokenizer *tokenizer = encoder->tokenizer;
  g_autoptr (GByteArray) bytes = NULL;
  GString *normal = NULL;
  gsize begin, end, done = 0;
  const OxAddedToken *token;

  if (len == 0)
    return;
  if (tokenizer->vocab->byte_level) {
    normal = tokenizer->nfc ? ox_unicode_nfc (text, len) : NULL;
    if (normal) {
      text = normal->str;
      len = normal->len;
    }
  } else if (tokenizer->add_space_prefix || memmem (text, len, "\342\226\201", 3)) {
    bytes = g_byte_array_sized_new ((guint) len + 1);
    if (tokenizer->add_space_prefix)
      g_byte_array_append (bytes, (const guint8 *) " ", 1);
    ox_vocab_unspell (tokenizer->vocab, text, len, bytes);
    text = (const char *) bytes->data;
    len = bytes->len;
  }
  while (tokenizer->added_normalized &&
         (token = ox_added_tokens_search (tokenizer->added_normalized, text, len, done, NULL, 0, &begin, &end))) {
    encode_stretch (encoder, text + done, begin - done);
    g_array_append_val (encoder->ids, token->id);
    done = end;
  }
  encode_stretch (encoder, text + done, len - done);
  if (normal)
    g_string_free (normal, TRUE);
}

/* Without a look at whether there is memory. */
static void
encode (Encoder *encoder, const char *text, gsize len, const OxTextRange *ranges, gsize n_ranges)
{
  OxTokenizer *tokenizer = encoder->tokenizer;
  gsize begin, end, done = 0;
  const OxAddedToken *token;
  gboolean locked = len >= CACHE_MIN_TEXT && g_mutex_trylock (&tokenizer->cache_lock);

  if (locked) {
    if (!tokenizer->cache)
      tokenizer->cache = g_new0 (OxWordCache, 1);
    encoder->cache = tokenizer->cache->words;
  }
  while (running (encoder, 0) &&
         (token = ox_added_tokens_search (tokenizer->added, text, len, done, ranges, n_ranges, &begin, &end))) {
    encode_raw (encoder, text + done, begin - done);
    g_array_append_val (encoder->ids, token->id);
    running (encoder, end - begin);
    done = end;
  }
  encode_raw (encoder, text + done, len - done);
  if (locked)
    g_mutex_unlock (&tokenizer->cache_lock);
}

gboolean
ox_tokenizer_encode_ranges (OxTokenizer *tokenizer,
                            const char *text,
                            gsize len,
                            const OxTextRange *ranges,
                            gsize n_ranges,
                            GArray *ids,
                            GCancellable *cancellable,
                            GError **error)
{
  Encoder encoder = { .tokenizer = tokenizer, .ids = ids, .cancellable = cancellable };

  g_return_val_if_fail (tokenizer->bpe != NULL, FALSE);
  /* Ids are counted in 32 bits. */
  if (!ox_memory_check (len < G_MAXINT32 ? (guint64) len * MEMORY_PER_BYTE : G_MAXUINT64,
                        "the text of the conversation", error))
    return FALSE;
  encode (&encoder, text, len, ranges, n_ranges);
  return !g_cancellable_set_error_if_cancelled (cancellable, error);
}

/* NULL: @text is valid as it is. */
static GString *
repair (const char **text, gsize *len)
{
  GString *repaired = ox_utf8_repair (*text, *len);

  if (repaired) {
    *text = repaired->str;
    *len = repaired->len;
  }
  return repaired;
}

gboolean
ox_tokenizer_encode_text (OxTokenizer *tokenizer,
                          const char *text,
                          gsize len,
                          gboolean parse_control,
                          GArray *ids,
                          GCancellable *cancellable,
                          GError **error)
{
  GString *repaired = repair (&text, &len);
  OxTextRange all = { 0, len };
  gboolean ok = ox_tokenizer_encode_ranges (tokenizer, text, len, &all, parse_control ? 1 : 0, ids, cancellable, error);

  if (repaired)
    g_string_free (repaired, TRUE);
  return ok;
}

void
ox_tokenizer_encode (OxTokenizer *tokenizer, const char *text, gssize len, gboolean parse_control, GArray *ids)
{
  gsize n = len < 0 ? strlen (text) : (gsize) len;
  Encoder encoder = { .tokenizer = tokenizer, .ids = ids };
  OxTextRange all = { 0 };
  GString *repaired;

  g_return_if_fail (tokenizer->bpe != NULL);
  repaired = repair (&text, &n);
  all.end = n;
  encode (&encoder, text, n, &all, parse_control ? 1 : 0);
  if (repaired)
    g_string_free (repaired, TRUE);
}

/* ---- Decoding ---- */

struct _OxDetokenizer {
  OxTokenizer *tokenizer;
  gboolean show_control;
  gboolean at_start;
  OxUtf8Stream stream;
};

static void
push (OxDetokenizer *detokenizer, guint32 id, GString *out)
{
  OxTokenizer *tokenizer = detokenizer->tokenizer;
  const OxToken *token;
  const char *bytes;
  gsize n;

  if (!ox_vocab_has (tokenizer->vocab, id)) {
    ox_utf8_stream_finish (&detokenizer->stream, out);
    g_string_append (out, "\357\277\275");
    detokenizer->at_start = FALSE;
    return;
  }
  token = tokenizer->vocab->tokens + id;
  if (token->flags & OX_TOKEN_HIDDEN && !detokenizer->show_control)
    return;
  bytes = ox_vocab_bytes (tokenizer->vocab, id);
  n = token->n_bytes;
  if (detokenizer->at_start && tokenizer->add_space_prefix && n > 0 && *bytes == ' ') {
    bytes++;
    n--;
  }
  detokenizer->at_start = FALSE;
  ox_utf8_stream_push (&detokenizer->stream, bytes, n, out);
}

OxDetokenizer *
ox_detokenizer_new (OxTokenizer *tokenizer, gboolean show_control)
{
  OxDetokenizer *detokenizer = g_new0 (OxDetokenizer, 1);

  detokenizer->tokenizer = ox_tokenizer_ref (tokenizer);
  detokenizer->show_control = show_control;
  detokenizer->at_start = TRUE;
  return detokenizer;
}

void
ox_detokenizer_free (OxDetokenizer *detokenizer)
{
  if (!detokenizer)
    return;
  ox_tokenizer_unref (detokenizer->tokenizer);
  g_free (detokenizer);
}

void
ox_detokenizer_push (OxDetokenizer *detokenizer, guint32 id, GString *out)
{
  push (detokenizer, id, out);
}

void
ox_detokenizer_finish (OxDetokenizer *detokenizer, GString *out)
{
  ox_utf8_stream_finish (&detokenizer->stream, out);
}

char *
ox_tokenizer_decode (OxTokenizer *tokenizer, const guint32 *ids, gsize n, gboolean show_control)
{
  OxDetokenizer detokenizer = { .tokenizer = tokenizer, .show_control = show_control, .at_start = TRUE };
  GString *out = g_string_new (NULL);
  GString *plain;

  for (gsize i = 0; i < n; i++)
    push (&detokenizer, ids[i], out);
  ox_utf8_stream_finish (&detokenizer.stream, out);
  if (strlen (out->str) == out->len)
    return g_string_free (out, FALSE);
  /* A C string cannot hold U+0000. */
  plain = g_string_sized_new (out->len);
  for (gsize i = 0; i < out->len; i++) {
    if (out->str[i] == '\0')
      g_string_append (plain, "\357\277\275");
    else
      g_string_append_c (plain, out->str[i]);
  }
  g_string_free (out, TRUE);
  return g_string_free (plain, FALSE);
}
