/* Answers that a JSON schema allows: which tokens may come next.
 *
 * What is written is a subset of what the schema allows, such that every choice of allowed tokens can be brought to an end:
 *  - members of objects come in the order of "properties", optional ones may be left out; others come last, and only where
 *    "additionalProperties" asks for them (or neither it nor "properties" is there);
 *  - white space is at most one space or one line break with indentation, after "[", "{", ",", ":" (there
 *    a space only) and before "]", "}";
 *  - numbers have at most 15 digits before and behind the point, and exponents at most 2;
 *  - nesting is at most 64 deep, unless the schema requires more.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "oxinfer.h"

typedef struct _OxGrammar OxGrammar;

/* Supported keywords: type (also lists), properties, required, additionalProperties, items, minItems, maxItems, minLength, maxLength, enum,
 * const, anyOf, oneOf (where no two can match at once), allOf (of one), $ref within the schema, and those that only describe.
 * OX_ERROR_INVALID: no schema, or one that nothing matches; OX_ERROR_UNSUPPORTED: another keyword, which the message names along with its
 * place, or a tokenizer that cannot write some byte. */
OxGrammar *ox_grammar_new (OxTokenizer *tokenizer, const char *json_schema, GError **error);
void ox_grammar_free (OxGrammar *grammar);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (OxGrammar, ox_grammar_free)

/* Sets bit id % 32 of word id / 32 for each token that may come next and clears the others; @bits has room for every id of the tokenizer.
 * FALSE: nothing may follow, the answer is complete. Control tokens, such as the end of a turn, are never among them: they may come
 * when ox_grammar_is_complete(). */
gboolean ox_grammar_mask (OxGrammar *grammar, guint32 *bits);
/* The token was chosen. FALSE: it may not come here, and nothing changes. */
gboolean ox_grammar_accept (OxGrammar *grammar, guint32 id);
/* Whether the text so far is an answer. It may still be possible to go on: "12" after "1". */
gboolean ox_grammar_is_complete (OxGrammar *grammar);
/* Takes back the last @n tokens, at most 64: guesses that were not right. FALSE: fewer are known. */
gboolean ox_grammar_rewind (OxGrammar *grammar, guint n);
/* Back to the beginning. */
void ox_grammar_reset (OxGrammar *grammar);
