/* A vocabulary.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "text/ox-vocab.h"

#include <string.h>

#include "io/ox-memory.h"
#include "text/ox-utf8.h"

/* No token of a real vocabulary is longer than some hundred bytes. */
#define MAX_TOKEN_BYTES (1u << 16)
/* Entry, slots, name and bytes of a usual token; arrays grow by doubling. */
#define MEMORY_PER_TOKEN 128

/* GPT-2's alphabet: bytes that print stand for themselves, the others for U+0100 and on, in order. */
typedef struct {
  gint16 byte_of[0x144]; /* character → byte, -1: none */
} ByteAlphabet;

static const ByteAlphabet *
byte_alphabet (void)
{
  static ByteAlphabet alphabet;
  static gsize once = 0;

  if (g_once_init_enter (&once)) {
    int next = 0x100;

    memset (&alphabet, 0xff, sizeof alphabet);
    for (int b = 0; b < 256; b++) {
      gboolean prints = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;

      alphabet.byte_of[prints ? b : next++] = (gint16) b;
    }
    g_once_init_leave (&once, 1);
  }
  return &alphabet;
}

OxVocab *
ox_vocab_new (guint n_tokens, gboolean byte_level, GError **error)
{
  OxVocab *vocab;

  if (!ox_memory_check ((guint64) n_tokens * MEMORY_PER_TOKEN, "the tokenizer", error))
    return NULL;
  vocab = g_new0 (OxVocab, 1);
  vocab->byte_level = byte_level;
  vocab->n_tokens = n_tokens;
  vocab->tokens = g_new0 (OxToken, MAX (n_tokens, 1));
  vocab->arena = g_byte_array_sized_new (MIN (n_tokens, OX_VOCAB_MAX_SIZE) * 12 + 16);
  for (guint b = 0; b < 256; b++)
    vocab->byte_ids[b] = OX_NO_TOKEN;
  return vocab;
}

void
ox_vocab_free (OxVocab *vocab)
{
  if (!vocab)
    return;
  g_byte_array_unref (vocab->arena);
  g_free (vocab->tokens);
  g_free (vocab->slots);
  g_free (vocab);
}

/* U+2581 → space. */
static void
unspell_spaces (const char *name, gsize len, GByteArray *out)
{
  gsize i = 0;

  while (i < len) {
    const char *mark = memchr (name + i, 0xe2, len - i);
    gsize until = mark ? (gsize) (mark - name) : len;

    g_byte_array_append (out, (const guint8 *) name + i, (guint) (until - i));
    i = until;
    if (i == len)
      break;
    if (len - i >= 3 && memcmp (name + i, "\342\226\201", 3) == 0) {
      g_byte_array_append (out, (const guint8 *) " ", 1);
      i += 3;
    } else {
      g_byte_array_append (out, (const guint8 *) name + i, 1);
      i++;
    }
  }
}

static gboolean
unspell_alphabet (const char *name, gsize len, GByteArray *out)
{
  const ByteAlphabet *alphabet = byte_alphabet ();
  guint begin = out->len;

  for (gsize i = 0; i < len;) {
    gunichar c = ox_utf8_get (name + i);

    if (c >= G_N_ELEMENTS (alphabet->byte_of) || alphabet->byte_of[c] < 0) {
      g_byte_array_set_size (out, begin);
      g_byte_array_append (out, (const guint8 *) name, (guint) len);
      return FALSE;
    }
    g_byte_array_append (out, &(guint8) { (guint8) alphabet->byte_of[c] }, 1);
    i += ox_utf8_length ((guint8) name[i]);
  }
  return TRUE;
}

gboolean
ox_vocab_unspell (const OxVocab *vocab, const char *name, gsize len, GByteArray *out)
{
  if (vocab->byte_level)
    return unspell_alphabet (name, len, out);
  unspell_spaces (name, len, out);
  return TRUE;
}

/* The byte of a spelling "<0x0A>", or -1. */
static int
byte_of_name (const char *name, gsize len)
{
  int high, low;

  if (len != 6 || memcmp (name, "<0x", 3) != 0 || name[5] != '>')
    return -1;
  high = g_ascii_xdigit_value (name[3]);
  low = g_ascii_xdigit_value (name[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

gboolean
ox_vocab_set (OxVocab *vocab, guint32 id, const char *name, gsize len, guint32 flags)
{
  OxToken *token = vocab->tokens + id;
  int byte = vocab->byte_level ? -1 : byte_of_name (name, len);

  if (token->flags & OX_TOKEN_PRESENT || len > MAX_TOKEN_BYTES || vocab->arena->len > G_MAXUINT32 - 4 * MAX_TOKEN_BYTES)
    return FALSE;
  token->flags = flags | OX_TOKEN_PRESENT;
  token->name = vocab->arena->len;
  token->name_len = (guint32) len;
  g_byte_array_append (vocab->arena, (const guint8 *) name, (guint) len);
  g_byte_array_append (vocab->arena, (const guint8 *) "", 1);
  token->bytes = vocab->arena->len;
  if (byte >= 0 && !(flags & OX_TOKEN_CONTROL)) {
    token->flags |= OX_TOKEN_BYTE | OX_TOKEN_WHOLE;
    g_byte_array_append (vocab->arena, &(guint8) { (guint8) byte }, 1);
    vocab->byte_ids[byte] = id;
  } else if (vocab->byte_level && flags & OX_TOKEN_WHOLE) {
    /* Added tokens of byte-level files are spelled plainly. */
    g_byte_array_append (vocab->arena, (const guint8 *) name, (guint) len);
  } else if (!ox_vocab_unspell (vocab, name, len, vocab->arena)) {
    token->flags |= OX_TOKEN_WHOLE;
  } else if (!vocab->byte_level && memchr (name, ' ', len)) {
    /* Text never has a plain space once it is spelled, so such a token is out of reach of the merges. */
    token->flags |= OX_TOKEN_WHOLE;
  }
  token->n_bytes = (guint32) (vocab->arena->len - token->bytes);
  return TRUE;
}

/* The slot of these bytes, or the free one where they would go. Comparing the hash's other half first spares nearly all looks at
 * the tokens themselves, which are all over the memory. */
static guint64 *
find_slot (const OxVocab *vocab, const char *bytes, gsize n, guint64 hash)
{
  gsize slot = hash & vocab->mask;

  for (; (guint32) vocab->slots[slot] != OX_NO_TOKEN; slot = (slot + 1) & vocab->mask) {
    guint32 id = (guint32) vocab->slots[slot];

    if (vocab->slots[slot] >> 32 == hash >> 32 && vocab->tokens[id].n_bytes == n &&
        memcmp (ox_vocab_bytes (vocab, id), bytes, n) == 0)
      break;
  }
  return vocab->slots + slot;
}

void
ox_vocab_index (OxVocab *vocab)
{
  gsize capacity = 16;

  while (capacity < (gsize) vocab->n_tokens + vocab->n_tokens / 2)
    capacity *= 2;
  g_free (vocab->slots);
  vocab->slots = g_new (guint64, capacity);
  vocab->mask = capacity - 1;
  memset (vocab->slots, 0xff, capacity * sizeof *vocab->slots);
  for (guint32 id = 0; id < vocab->n_tokens; id++) {
    const OxToken *token = vocab->tokens + id;
    const char *bytes = ox_vocab_bytes (vocab, id);
    guint64 hash = ox_hash_bytes (bytes, token->n_bytes), *slot;

    if (!(token->flags & OX_TOKEN_PRESENT) || token->flags & OX_TOKEN_WHOLE || token->n_bytes == 0)
      continue;
    slot = find_slot (vocab, bytes, token->n_bytes, hash);
    if ((guint32) *slot == OX_NO_TOKEN)
      *slot = hash >> 32 << 32 | id;
    if (vocab->byte_level && token->n_bytes == 1 && !(token->flags & OX_TOKEN_CONTROL))
      vocab->byte_ids[(guint8) bytes[0]] = id;
  }
}

guint32
ox_vocab_find_bytes (const OxVocab *vocab, const char *bytes, gsize n)
{
  return (guint32) *find_slot (vocab, bytes, n, ox_hash_bytes (bytes, n));
}

guint32
ox_vocab_find_name (const OxVocab *vocab, const char *name, gsize len)
{
  g_autoptr (GByteArray) bytes = g_byte_array_new ();
  int byte = vocab->byte_level ? -1 : byte_of_name (name, len);
  guint32 id;

  if (byte >= 0 && vocab->byte_ids[byte] != OX_NO_TOKEN)
    return vocab->byte_ids[byte];
  ox_vocab_unspell (vocab, name, len, bytes);
  id = ox_vocab_find_bytes (vocab, (const char *) bytes->data, bytes->len);
  if (id != OX_NO_TOKEN && vocab->tokens[id].name_len == len && memcmp (ox_vocab_name (vocab, id), name, len) == 0)
    return id;
  return OX_NO_TOKEN;
}
