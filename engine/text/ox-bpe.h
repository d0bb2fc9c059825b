/* Byte-pair encoding: a piece of text begins as single characters (or bytes) and the pair that stands first in the list of
 * merges is joined, again and again, until none is left.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "text/ox-vocab.h"

typedef struct _OxBpe OxBpe;

typedef struct {
  gboolean byte_fallback; /* a character without a token becomes its bytes' tokens, when all have one */
  gboolean fuse_unk;      /* several unknown characters in a row make one unknown token */
  gboolean ignore_merges; /* a piece that is a token is taken whole */
  guint32 unk;            /* or OX_NO_TOKEN: characters without a token are left out */
} OxBpeOptions;

/* @vocab is borrowed and has to be indexed. @n_merges is a hint. NULL with OX_ERROR_NO_MEMORY when there is not enough for so many. */
OxBpe *ox_bpe_new (const OxVocab *vocab, const OxBpeOptions *options, gsize n_merges, GError **error);
void ox_bpe_free (OxBpe *bpe);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (OxBpe, ox_bpe_free)

/* Joining @left and @right makes @result. The lowest rank goes first. Merges that would make a control token are left out, since
 * what people write must not become one. */
void ox_bpe_add_merge (OxBpe *bpe, guint32 left, guint32 right, guint32 result, guint32 rank);
/* After all merges: what is needed to cut text where no merge can reach across. */
void ox_bpe_finish (OxBpe *bpe);

/* Appends the ids of @n bytes of valid UTF-8 to @ids. O(n log n), whatever the text. When @cancellable is cancelled the ids are those
 * of a text that was not looked at to its end. */
void ox_bpe_encode (OxBpe *bpe, const char *text, gsize n, GCancellable *cancellable, GArray *ids);
/* Length of the longest head of @text that can be encoded by itself: no token reaches across its end. */
gsize ox_bpe_find_cut (const OxBpe *bpe, const char *text, gsize n);
