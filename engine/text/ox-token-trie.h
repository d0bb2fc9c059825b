/* The tokens of a vocabulary by their bytes: what a walk over all that may come next needs. And what each token is within a JSON
 * string, where nearly all may come, so that no walk is needed there.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "text/ox-vocab.h"

/* ---- JSON strings ---- */

/* Where in a JSON string's text one is. */
typedef enum {
  OX_STRING_PLAIN,
  OX_STRING_ESCAPE, /* behind a backslash */
  OX_STRING_U0,     /* behind \u and 0 to 3 digits */
  OX_STRING_U1,
  OX_STRING_U1D, /* the digit was D: what follows may be a surrogate */
  OX_STRING_U2,
  OX_STRING_U3,
  OX_STRING_HIGH2, /* of a high surrogate: \uD8 */
  OX_STRING_HIGH3,
  OX_STRING_LOW_BACKSLASH, /* the low one has to follow: \uDC00 to \uDFFF */
  OX_STRING_LOW_U,
  OX_STRING_LOW0,
  OX_STRING_LOW1,
  OX_STRING_LOW2,
  OX_STRING_LOW3,
  OX_STRING_BYTES1, /* 1 to 3 bytes of a character are left */
  OX_STRING_BYTES2,
  OX_STRING_BYTES3,
  OX_STRING_E0, /* behind that byte, which leaves less choice */
  OX_STRING_ED,
  OX_STRING_F0,
  OX_STRING_F4,
  OX_STRING_END, /* behind the closing quotation mark */
  OX_STRING_WRONG,
} OxStringState;

OxStringState ox_string_step (OxStringState state, guint8 byte);

/* ---- Tokens ---- */

/* In the order of a walk: a node's descendants follow it, up to @skip. */
typedef struct {
  guint32 skip;
  guint32 token; /* the first with these bytes, or OX_NO_TOKEN */
  guint16 depth; /* bytes, from 1 */
  guint8 byte;
} OxTrieNode;

/* A token that ends a string that is plain before it. */
typedef struct {
  guint32 token;
  guint32 rest;    /* index of what is behind the quotation mark */
  guint16 n_bytes; /* before it */
  guint16 n_chars;
  gboolean has_escape;
} OxClosingToken;

typedef struct {
  const char *bytes;
  guint32 n;
} OxRest;

typedef struct {
  const OxVocab *vocab;
  guint n_tokens;
  OxTrieNode *nodes;
  gsize n_nodes;
  guint max_depth;
  guint32 *same;        /* [n_tokens]: the next with the same bytes, or OX_NO_TOKEN */
  gboolean single[256]; /* some token is this one byte */

  /* From plain text of a string on */
  guint32 *inside;           /* bits: tokens that stay within the string */
  guint32 *inside_no_escape; /* of these, those without a backslash */
  guint16 *chars;            /* [n_tokens]: characters that such a token begins */
  GArray *closing;           /* OxClosingToken */
  GArray *rests;             /* OxRest, each once */
} OxTokenTrie;

/* Without control tokens and those that are longer than any word is. @vocab has to live as long. NULL with OX_ERROR_NO_MEMORY. */
OxTokenTrie *ox_token_trie_new (const OxVocab *vocab, GError **error);
void ox_token_trie_free (OxTokenTrie *trie);
