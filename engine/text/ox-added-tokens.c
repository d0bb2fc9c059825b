/* Tokens that are found in text by their whole string.
 *
 * The tokens are sorted, so those that share a beginning are neighbours: a match is the narrowing of a range, byte by byte. A set
 * of the first two bytes spares that nearly everywhere.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "text/ox-added-tokens.h"

#include <string.h>

#include "text/ox-unicode.h"
#include "text/ox-utf8.h"

struct _OxAddedTokens {
  OxAddedToken *tokens; /* sorted by text */
  gsize n;
  gboolean strips;
  guint8 single[256];       /* a token of this one byte exists */
  guint8 begins[65536 / 8]; /* a token begins with these two bytes */
};

static int
compare (gconstpointer pa, gconstpointer pb)
{
  const OxAddedToken *a = pa, *b = pb;
  int order = memcmp (a->text, b->text, MIN (a->len, b->len));

  if (order != 0)
    return order;
  return a->len < b->len ? -1 : a->len > b->len;
}

OxAddedTokens *
ox_added_tokens_new (const OxAddedToken *tokens, gsize n)
{
  OxAddedTokens *added = g_new0 (OxAddedTokens, 1);

  added->tokens = g_memdup2 (tokens, n * sizeof *tokens);
  added->n = n;
  if (n > 1)
    qsort (added->tokens, n, sizeof *tokens, compare);
  for (gsize i = 0; i < n; i++) {
    const guint8 *text = (const guint8 *) tokens[i].text;

    added->strips |= tokens[i].lstrip || tokens[i].rstrip;
    if (tokens[i].len == 1) {
      added->single[text[0]] = TRUE;
    } else {
      guint pair = (guint) text[0] << 8 | text[1];

      added->begins[pair / 8] |= (guint8) (1 << pair % 8);
    }
  }
  return added;
}

void
ox_added_tokens_free (OxAddedTokens *tokens)
{
  if (!tokens)
    return;
  g_free (tokens->tokens);
  g_free (tokens);
}

const OxAddedToken *
ox_added_tokens_find (const OxAddedTokens *tokens, const char *text, gsize len)
{
  OxAddedToken wanted = { .text = text, .len = len };

  return tokens->n == 0 ? NULL : bsearch (&wanted, tokens->tokens, tokens->n, sizeof wanted, compare);
}

/* First index in [low, high) whose byte at @depth is @byte or more. All are longer than @depth. */
static gsize
lower_bound (const OxAddedTokens *tokens, gsize low, gsize high, gsize depth, guint byte)
{
  while (low < high) {
    gsize middle = low + (high - low) / 2;

    if ((guint8) tokens->tokens[middle].text[depth] < byte)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static gboolean
in_ranges (const OxTextRange *ranges, gsize n_ranges, gsize begin, gsize end)
{
  gsize low = 0, high = n_ranges;

  while (low < high) {
    gsize middle = low + (high - low) / 2;

    if (ranges[middle].end < end)
      low = middle + 1;
    else
      high = middle;
  }
  return low < n_ranges && ranges[low].begin <= begin;
}

/* The longest token that begins at @at. */
static const OxAddedToken *
match_at (const OxAddedTokens *tokens, const char *text, gsize len, gsize at, const OxTextRange *ranges, gsize n_ranges)
{
  const OxAddedToken *best = NULL;
  gsize low = 0, high = tokens->n;

  for (gsize depth = 0; low < high; depth++) {
    const OxAddedToken *first = tokens->tokens + low;

    /* Sorted: what ends here stands before what goes on; several of the same text may. */
    if (first->len == depth) {
      if (!first->is_control || in_ranges (ranges, n_ranges, at, at + depth))
        best = first;
      while (low < high && tokens->tokens[low].len == depth)
        low++;
    }
    if (at + depth == len || low == high)
      break;
    low = lower_bound (tokens, low, high, depth, (guint8) text[at + depth]);
    high = lower_bound (tokens, low, high, depth, (guint) (guint8) text[at + depth] + 1);
  }
  return best;
}

const OxAddedToken *
ox_added_tokens_search (const OxAddedTokens *tokens,
                        const char *text,
                        gsize len,
                        gsize from,
                        const OxTextRange *ranges,
                        gsize n_ranges,
                        gsize *begin,
                        gsize *end)
{
  const guint8 *bytes = (const guint8 *) text;
  const OxAddedToken *token = NULL;
  gsize at;

  if (tokens->n == 0)
    return NULL;
  for (at = from; at < len; at++) {
    guint pair = (guint) bytes[at] << 8 | (at + 1 < len ? bytes[at + 1] : 0);

    if (!tokens->single[bytes[at]] && !(tokens->begins[pair / 8] & 1 << pair % 8))
      continue;
    token = match_at (tokens, text, len, at, ranges, n_ranges);
    if (token)
      break;
  }
  if (!token)
    return NULL;
  *begin = at;
  *end = at + token->len;
  if (token->lstrip) {
    while (*begin > from) {
      gsize before = *begin - 1;

      while (before > from && (bytes[before] & 0xc0) == 0x80)
        before--;
      if (!ox_unicode_is_space (ox_utf8_get (text + before)))
        break;
      *begin = before;
    }
  }
  if (token->rstrip) {
    while (*end < len && ox_unicode_is_space (ox_utf8_get (text + *end)))
      *end += ox_utf8_length (bytes[*end]);
  }
  return token;
}
