/* Tokenizers: byte-pair encoding in its two dresses, SentencePiece style with byte fallback (Gemma, Llama 2) and byte level with a
 * pre-tokenizer (GPT-2, Llama 3, Qwen, SmolLM2). What oxinfer.h has is not repeated here.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "io/ox-gguf.h"

/* @names_only: as ox_tokenizer_load_names() below. */
OxTokenizer *ox_tokenizer_new_from_json (OxFile *file, gboolean names_only, GCancellable *cancellable, GError **error);
OxTokenizer *ox_tokenizer_new_from_gguf (
  OxGguf *gguf, const char *file_name, gboolean names_only, GCancellable *cancellable, GError **error);

/* As ox_tokenizer_load(), but without what it takes to encode, which is most of the work: names, control tokens, BOS and chat template are
 * there, and decoding works. For looking through many models. */
OxTokenizer *ox_tokenizer_load_names (const char *path, GCancellable *cancellable, GError **error);

/* As ox_tokenizer_encode(), for text of any length: FALSE when cancelled or when there is no memory for it. */
gboolean ox_tokenizer_encode_text (OxTokenizer *tokenizer,
                                   const char *text,
                                   gsize len,
                                   gboolean parse_control,
                                   GArray *ids,
                                   GCancellable *cancellable,
                                   GError **error);
/* The id of exactly this token string, or -1. */
gint64 ox_tokenizer_find (OxTokenizer *tokenizer, const char *token);
/* The token as it is in the vocabulary (owned), or NULL. */
const char *ox_tokenizer_get_token (OxTokenizer *tokenizer, guint32 id);
gboolean ox_tokenizer_is_control (OxTokenizer *tokenizer, guint32 id);
/* -1: none. add_bos: whether plain text is to start with it. */
gint64 ox_tokenizer_get_bos (OxTokenizer *tokenizer);
gboolean ox_tokenizer_get_add_bos (OxTokenizer *tokenizer);
/* Template text that came with the tokenizer, or NULL (owned). Only to recognise which chat format a model wants. */
const char *ox_tokenizer_get_chat_template (OxTokenizer *tokenizer);

/* Streaming decode: text of complete characters as soon as they are sure (see golden/README: emit every complete character and
 * one U+FFFD for every part that can no longer become valid; hold back at most 3 bytes). */
typedef struct _OxDetokenizer OxDetokenizer;
OxDetokenizer *ox_detokenizer_new (OxTokenizer *tokenizer, gboolean show_control);
void ox_detokenizer_free (OxDetokenizer *detokenizer);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (OxDetokenizer, ox_detokenizer_free)
/* Appends to @out what may be shown after @id. */
void ox_detokenizer_push (OxDetokenizer *detokenizer, guint32 id, GString *out);
/* Appends what is still held back. */
void ox_detokenizer_finish (OxDetokenizer *detokenizer, GString *out);
