/* Tokens that are found in text by their whole string before anything else is done: control tokens such as "<|im_end|>", and
 * others that files list as added. Of two that begin at the same place the longer one is taken.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <glib.h>

typedef struct {
  const char *text; /* borrowed */
  gsize len;        /* > 0 */
  guint32 id;
  gboolean is_control;
  gboolean lstrip, rstrip; /* white space on that side is swallowed */
} OxAddedToken;

typedef struct _OxAddedTokens OxAddedTokens;

/* Copies @n tokens. */
OxAddedTokens *ox_added_tokens_new (const OxAddedToken *tokens, gsize n);
void ox_added_tokens_free (OxAddedTokens *tokens);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (OxAddedTokens, ox_added_tokens_free)

const OxAddedToken *ox_added_tokens_find (const OxAddedTokens *tokens, const char *text, gsize len);

/* Stretches of text, in order, in which control tokens may be found. */
typedef struct {
  gsize begin, end;
} OxTextRange;

/* The first token in @text at or after @from. Control tokens count only wholly within one of the @n_ranges. NULL: none. */
const OxAddedToken *ox_added_tokens_search (const OxAddedTokens *tokens,
                                            const char *text,
                                            gsize len,
                                            gsize from,
                                            const OxTextRange *ranges,
                                            gsize n_ranges,
                                            gsize *begin,
                                            gsize *end);
