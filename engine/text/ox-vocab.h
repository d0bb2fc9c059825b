/* A vocabulary: tokens by id and ids by the bytes that tokens stand for.
 *
 * Files spell tokens in one of two ways, and both are undone here once, so that the rest works on plain bytes:
 *  - SentencePiece style writes a space as U+2581 and single bytes as "<0x0A>";
 *  - byte level writes each byte as one character of GPT-2's alphabet (a space as "Ġ").
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "oxinfer.h"

#define OX_NO_TOKEN G_MAXUINT32
/* Ids above this are damage, not a vocabulary. */
#define OX_VOCAB_MAX_SIZE (1u << 22)

typedef enum {
  OX_TOKEN_PRESENT = 1 << 0,
  OX_TOKEN_CONTROL = 1 << 1, /* never made from what people write */
  OX_TOKEN_HIDDEN = 1 << 2,  /* left out of decoded text unless asked for */
  OX_TOKEN_WHOLE = 1 << 3,   /* not part of byte-pair encoding: only found by its bytes elsewhere, if at all */
  OX_TOKEN_BYTE = 1 << 4,    /* stands for one byte of a character that has no token */
} OxTokenFlags;

typedef struct {
  gsize name;  /* as in the file, NUL-terminated, in the arena */
  gsize bytes; /* what it stands for, in the arena */
  guint32 name_len;
  guint32 n_bytes;
  guint32 flags;
} OxToken;

typedef struct {
  gboolean byte_level;
  OxToken *tokens;
  guint n_tokens;
  GByteArray *arena;
  guint64 *slots; /* hash of bytes → upper half of the hash and id; OX_NO_TOKEN: free */
  gsize mask;
  guint32 byte_ids[256];
} OxVocab;

/* NULL with OX_ERROR_NO_MEMORY when there is not enough for so many. */
OxVocab *ox_vocab_new (guint n_tokens, gboolean byte_level, GError **error);
void ox_vocab_free (OxVocab *vocab);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (OxVocab, ox_vocab_free)

/* Fills @id, which must be free and below n_tokens. @flags without OX_TOKEN_PRESENT. FALSE: it was taken, or the token is longer
 * than any can be. */
gboolean ox_vocab_set (OxVocab *vocab, guint32 id, const char *name, gsize len, guint32 flags);
/* After all are set: the hash and the byte tokens. */
void ox_vocab_index (OxVocab *vocab);

/* The token of byte-pair encoding that stands for these bytes, or OX_NO_TOKEN. */
guint32 ox_vocab_find_bytes (const OxVocab *vocab, const char *bytes, gsize n);
/* By its spelling in the file. */
guint32 ox_vocab_find_name (const OxVocab *vocab, const char *name, gsize len);
/* Appends the bytes that a spelling stands for. FALSE: not a spelling of this kind; appended as it is. */
gboolean ox_vocab_unspell (const OxVocab *vocab, const char *name, gsize len, GByteArray *out);

static inline gboolean
ox_vocab_has (const OxVocab *vocab, guint32 id)
{
  return id < vocab->n_tokens && (vocab->tokens[id].flags & OX_TOKEN_PRESENT);
}

static inline const char *
ox_vocab_name (const OxVocab *vocab, guint32 id)
{
  return (const char *) vocab->arena->data + vocab->tokens[id].name;
}

static inline const char *
ox_vocab_bytes (const OxVocab *vocab, guint32 id)
{
  return (const char *) vocab->arena->data + vocab->tokens[id].bytes;
}

/* Fast, and good enough on short strings; hostile collisions cost time only. */
static inline guint64
ox_hash_bytes (const char *bytes, gsize n)
{
  guint64 h = n * G_GUINT64_CONSTANT (0x9e3779b97f4a7c15), word;

  for (; n >= 8; bytes += 8, n -= 8) {
    __builtin_memcpy (&word, bytes, 8);
    h = (h ^ word) * G_GUINT64_CONSTANT (0xff51afd7ed558ccd);
    h ^= h >> 32;
  }
  word = 0;
  for (gsize i = 0; i < n; i++)
    word |= (guint64) (guint8) bytes[i] << (8 * i);
  h = (h ^ word) * G_GUINT64_CONSTANT (0xff51afd7ed558ccd);
  return h ^ h >> 32;
}
