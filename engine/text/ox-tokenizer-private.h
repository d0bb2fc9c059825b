/* What the tokenizer's parts share: filled by the readers of tokenizer.json and GGUF, used by the coder.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "text/ox-added-tokens.h"
#include "text/ox-bpe.h"
#include "text/ox-pretokenizer.h"
#include "text/ox-token-trie.h"
#include "text/ox-tokenizer.h"
#include "text/ox-vocab.h"

typedef struct _OxWordCache OxWordCache;

struct _OxTokenizer {
  gatomicrefcount refs;
  OxVocab *vocab;
  OxBpe *bpe;
  OxAddedTokens *added;            /* found in the text as it is */
  OxAddedTokens *added_normalized; /* found after normalisation; NULL: none */
  OxPreTokenizer *pre;             /* byte level */
  gboolean nfc;                    /* byte level: normalise first */
  gboolean
    add_space_prefix; /* SentencePiece style: a space before each stretch of text; decoding takes the first one away */
  gint64 bos;
  gboolean add_bos;
  char *chat_template;
  gboolean is_instruct; /* the file's name for the model says that it is made for conversation */
  GMutex cache_lock;
  OxWordCache *cache;
  GMutex trie_lock;
  OxTokenTrie *trie; /* made when first asked for */
};

OxTokenizer *ox_tokenizer_new (void);
/* The rest of a folder beside tokenizer.json: BOS, chat template. */
gboolean ox_tokenizer_read_companions (OxTokenizer *tokenizer, const char *json_path, GError **error);
/* Owned by the tokenizer; NULL with OX_ERROR_NO_MEMORY. */
const OxTokenTrie *ox_tokenizer_get_trie (OxTokenizer *tokenizer, GError **error);
/* Added tokens by their flags in the vocabulary: see the definition. */
gboolean ox_token_name_is_control (const char *name);
/* Whether @name is one of the marks that Gemma 4 has beside <bos> and the like. */
gboolean ox_token_name_is_gemma4_mark (const char *name);

/* As ox_tokenizer_encode(), with control tokens found only within @ranges of the text, which is encoded as one and is valid UTF-8.
 * FALSE when cancelled or when there is no memory for so long a text. */
gboolean ox_tokenizer_encode_ranges (OxTokenizer *tokenizer,
                                     const char *text,
                                     gsize len,
                                     const OxTextRange *ranges,
                                     gsize n_ranges,
                                     GArray *ids,
                                     GCancellable *cancellable,
                                     GError **error);
