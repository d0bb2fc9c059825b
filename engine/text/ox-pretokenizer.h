/* Pre-tokenizers: cut text into the words that byte-level BPE works on. Models say how with a regular expression; those in use are
 * matched by hand (several times as fast, and without the limits of a regex engine), others by GRegex.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "oxinfer.h"

typedef struct _OxPreTokenizer OxPreTokenizer;

/* Cuts nothing. */
OxPreTokenizer *ox_pre_tokenizer_new (void);
void ox_pre_tokenizer_free (OxPreTokenizer *pre);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (OxPreTokenizer, ox_pre_tokenizer_free)

/* Steps work one after the other on the pieces that the one before has left. */
typedef enum {
  OX_SPLIT_GPT2,   /* 's|'t|…| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
  OX_SPLIT_LLAMA3, /* (?i:'s|…)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+ */
  OX_SPLIT_QWEN2,  /* the same with single digits */
  OX_SPLIT_QWEN35,     /* the same, and marks go with letters */
  OX_SPLIT_DIGITS,     /* every \p{N} alone */
  OX_SPLIT_DIGIT_RUNS, /* \p{N}+ together */
} OxSplit;

/* What becomes of a match of a pattern. */
typedef enum {
  OX_SPLIT_ISOLATED,
  OX_SPLIT_REMOVED,
  OX_SPLIT_MERGED_WITH_PREVIOUS,
  OX_SPLIT_MERGED_WITH_NEXT,
} OxSplitBehavior;

void ox_pre_tokenizer_add (OxPreTokenizer *pre, OxSplit split);
/* A pattern; one of the above is recognised. FALSE with OX_ERROR_UNSUPPORTED when GRegex cannot compile it. */
gboolean ox_pre_tokenizer_add_regex (OxPreTokenizer *pre,
                                     const char *pattern,
                                     OxSplitBehavior behavior,
                                     GError **error);

/* One piece, [begin, end) of the text. */
typedef void (*OxPieceFunc) (const char *piece, gsize len, gpointer user_data);
void ox_pre_tokenizer_run (
  const OxPreTokenizer *pre, const char *text, gsize len, OxPieceFunc func, gpointer user_data);
