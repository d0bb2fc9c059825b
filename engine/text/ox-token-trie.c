/* Tokens by their bytes.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "text/ox-token-trie.h"

#include <stdlib.h>
#include <string.h>

#include "io/ox-memory.h"

#define MAX_TOKEN_BYTES 1024

/* ---- JSON strings ---- */

static OxStringState
hex_step (OxStringState state, guint8 byte)
{
  static const OxStringState next[] = {
    [OX_STRING_U0] = OX_STRING_U1,     [OX_STRING_U1] = OX_STRING_U2,       [OX_STRING_U2] = OX_STRING_U3,
    [OX_STRING_U3] = OX_STRING_PLAIN,  [OX_STRING_HIGH2] = OX_STRING_HIGH3, [OX_STRING_HIGH3] = OX_STRING_LOW_BACKSLASH,
    [OX_STRING_LOW2] = OX_STRING_LOW3, [OX_STRING_LOW3] = OX_STRING_PLAIN,
  };
  int digit = g_ascii_xdigit_value ((char) byte);

  if (digit < 0)
    return OX_STRING_WRONG;
  switch (state) {
  case OX_STRING_U0:
    return digit == 13 ? OX_STRING_U1D : OX_STRING_U1;
  case OX_STRING_U1D:
    return digit < 8 ? OX_STRING_U2 : digit < 12 ? OX_STRING_HIGH2 : OX_STRING_WRONG;
  case OX_STRING_LOW0:
    return digit == 13 ? OX_STRING_LOW1 : OX_STRING_WRONG;
  case OX_STRING_LOW1:
    return digit >= 12 ? OX_STRING_LOW2 : OX_STRING_WRONG;
  default:
    return next[state];
  }
}

static OxStringState
continuation (guint8 byte, guint8 low, guint8 high, OxStringState next)
{
  return byte >= low && byte <= high ? next : OX_STRING_WRONG;
}

static OxStringState
plain_step (guint8 byte)
{
  if (byte < 0x80)
    return byte == '"'    ? OX_STRING_END
           : byte == '\\' ? OX_STRING_ESCAPE
           : byte < 0x20  ? OX_STRING_WRONG
                          : OX_STRING_PLAIN;
  if (byte < 0xc2 || byte > 0xf4)
    return OX_STRING_WRONG;
  if (byte < 0xe0)
    return OX_STRING_BYTES1;
  if (byte < 0xf0)
    return byte == 0xe0 ? OX_STRING_E0 : byte == 0xed ? OX_STRING_ED : OX_STRING_BYTES2;
  return byte == 0xf0 ? OX_STRING_F0 : byte == 0xf4 ? OX_STRING_F4 : OX_STRING_BYTES3;
}

OxStringState
ox_string_step (OxStringState state, guint8 byte)
{
  switch (state) {
  case OX_STRING_PLAIN:
    return plain_step (byte);
  case OX_STRING_ESCAPE:
    return byte == 'u' ? OX_STRING_U0 : byte != 0 && strchr ("\"\\/bfnrt", byte) ? OX_STRING_PLAIN : OX_STRING_WRONG;
  case OX_STRING_LOW_BACKSLASH:
    return byte == '\\' ? OX_STRING_LOW_U : OX_STRING_WRONG;
  case OX_STRING_LOW_U:
    return byte == 'u' ? OX_STRING_LOW0 : OX_STRING_WRONG;
  case OX_STRING_BYTES1:
    return continuation (byte, 0x80, 0xbf, OX_STRING_PLAIN);
  case OX_STRING_BYTES2:
    return continuation (byte, 0x80, 0xbf, OX_STRING_BYTES1);
  case OX_STRING_BYTES3:
    return continuation (byte, 0x80, 0xbf, OX_STRING_BYTES2);
  case OX_STRING_E0:
    return continuation (byte, 0xa0, 0xbf, OX_STRING_BYTES1);
  case OX_STRING_ED:
    return continuation (byte, 0x80, 0x9f, OX_STRING_BYTES1);
  case OX_STRING_F0:
    return continuation (byte, 0x90, 0xbf, OX_STRING_BYTES2);
  case OX_STRING_F4:
    return continuation (byte, 0x80, 0x8f, OX_STRING_BYTES2);
  case OX_STRING_END:
  case OX_STRING_WRONG:
    return OX_STRING_WRONG;
  default:
    return hex_step (state, byte);
  }
}

/* ---- Building ---- */

typedef struct {
  const char *bytes;
  guint32 n, id;
} Entry;

static int
compare (gconstpointer pa, gconstpointer pb)
{
  const Entry *a = pa, *b = pb;
  int order = memcmp (a->bytes, b->bytes, MIN (a->n, b->n));

  if (order != 0)
    return order;
  if (a->n != b->n)
    return a->n < b->n ? -1 : 1;
  return a->id < b->id ? -1 : a->id > b->id;
}

static gsize
common_bytes (const Entry *a, const Entry *b)
{
  gsize n = MIN (a->n, b->n), i = 0;

  while (i < n && a->bytes[i] == b->bytes[i])
    i++;
  return i;
}

static Entry *
sorted_entries (const OxVocab *vocab, gsize *n)
{
  Entry *entries = g_new (Entry, MAX (vocab->n_tokens, 1));

  *n = 0;
  for (guint32 id = 0; id < vocab->n_tokens; id++) {
    const OxToken *token = vocab->tokens + id;

    if (token->flags & OX_TOKEN_PRESENT && !(token->flags & (OX_TOKEN_CONTROL | OX_TOKEN_HIDDEN)) &&
        token->n_bytes > 0 && token->n_bytes <= MAX_TOKEN_BYTES)
      entries[(*n)++] = (Entry) { ox_vocab_bytes (vocab, id), token->n_bytes, id };
  }
  qsort (entries, *n, sizeof *entries, compare);
  return entries;
}

static void
build_nodes (OxTokenTrie *trie, const Entry *entries, gsize n)
{
  gsize n_nodes = 0, last = 0;
  g_autofree guint32 *path = NULL; /* node at each depth */

  for (gsize i = 0; i < n; i++) {
    n_nodes += entries[i].n - (i > 0 ? common_bytes (entries + i - 1, entries + i) : 0);
    trie->max_depth = MAX (trie->max_depth, entries[i].n);
  }
  trie->nodes = g_new (OxTrieNode, MAX (n_nodes, 1));
  path = g_new (guint32, trie->max_depth + 1);
  for (gsize i = 0; i < n; i++) {
    gsize shared = i > 0 ? common_bytes (entries + i - 1, entries + i) : 0;

    if (i > 0 && shared == entries[i].n && entries[i - 1].n == shared) {
      trie->same[entries[last].id] = entries[i].id;
      last = i;
      continue;
    }
    for (gsize depth = shared; i > 0 && depth < entries[i - 1].n; depth++)
      trie->nodes[path[depth]].skip = (guint32) trie->n_nodes;
    for (gsize depth = shared; depth < entries[i].n; depth++) {
      path[depth] = (guint32) trie->n_nodes;
      trie->nodes[trie->n_nodes++] =
        (OxTrieNode) { 0, OX_NO_TOKEN, (guint16) (depth + 1), (guint8) entries[i].bytes[depth] };
    }
    trie->nodes[path[entries[i].n - 1]].token = entries[i].id;
    if (entries[i].n == 1)
      trie->single[(guint8) entries[i].bytes[0]] = TRUE;
    last = i;
  }
  for (gsize depth = 0; n > 0 && depth < entries[n - 1].n; depth++)
    trie->nodes[path[depth]].skip = (guint32) trie->n_nodes;
}

static void
set_bit (guint32 *bits, guint32 id)
{
  bits[id / 32] |= 1u << id % 32;
}

static guint32
rest_index (OxTokenTrie *trie, GHashTable *index, const char *bytes, guint32 n)
{
  g_autoptr (GBytes) key = g_bytes_new_static (bytes, n);
  gpointer known = g_hash_table_lookup (index, key);
  OxRest rest = { bytes, n };

  if (known)
    return GPOINTER_TO_UINT (known) - 1;
  g_array_append_val (trie->rests, rest);
  g_hash_table_insert (index, g_steal_pointer (&key), GUINT_TO_POINTER (trie->rests->len));
  return trie->rests->len - 1;
}

/* What each token is to a string that is plain before it. */
static void
classify (OxTokenTrie *trie, const Entry *entries, gsize n)
{
  g_autoptr (GHashTable) index =
    g_hash_table_new_full (g_bytes_hash, g_bytes_equal, (GDestroyNotify) g_bytes_unref, NULL);

  for (gsize i = 0; i < n; i++) {
    const Entry *entry = entries + i;
    OxStringState state = OX_STRING_PLAIN;
    gboolean has_escape = FALSE;
    guint chars = 0;
    guint32 k;

    for (k = 0; k < entry->n && state != OX_STRING_END; k++) {
      OxStringState next = ox_string_step (state, (guint8) entry->bytes[k]);

      if (next == OX_STRING_WRONG)
        break;
      chars += state == OX_STRING_PLAIN && next != OX_STRING_END;
      has_escape |= next == OX_STRING_ESCAPE;
      state = next;
    }
    if (state == OX_STRING_END) {
      OxClosingToken closing = { entry->id, rest_index (trie, index, entry->bytes + k, entry->n - k), (guint16) (k - 1),
                                 (guint16) MIN (chars, G_MAXUINT16), has_escape };

      g_array_append_val (trie->closing, closing);
    } else if (k == entry->n) {
      set_bit (trie->inside, entry->id);
      if (!has_escape)
        set_bit (trie->inside_no_escape, entry->id);
      trie->chars[entry->id] = (guint16) MIN (chars, G_MAXUINT16);
    }
  }
}

OxTokenTrie *
ox_token_trie_new (const OxVocab *vocab, GError **error)
{
  gsize n, n_words = vocab->n_tokens / 32 + 1;
  g_autofree Entry *entries = NULL;
  OxTokenTrie *trie;

  /* The arena has each token's name, too, so it is more than all their bytes. */
  if (!ox_memory_check ((guint64) vocab->arena->len * sizeof (OxTrieNode) + (guint64) vocab->n_tokens * 64,
                        "the tokens of the vocabulary by their bytes", error))
    return NULL;
  entries = sorted_entries (vocab, &n);
  trie = g_new0 (OxTokenTrie, 1);
  trie->vocab = vocab;
  trie->n_tokens = vocab->n_tokens;
  trie->same = g_new (guint32, MAX (vocab->n_tokens, 1));
  memset (trie->same, 0xff, MAX (vocab->n_tokens, 1) * sizeof *trie->same);
  trie->inside = g_new0 (guint32, n_words);
  trie->inside_no_escape = g_new0 (guint32, n_words);
  trie->chars = g_new0 (guint16, MAX (vocab->n_tokens, 1));
  trie->closing = g_array_new (FALSE, FALSE, sizeof (OxClosingToken));
  trie->rests = g_array_new (FALSE, FALSE, sizeof (OxRest));
  build_nodes (trie, entries, n);
  classify (trie, entries, n);
  return trie;
}

void
ox_token_trie_free (OxTokenTrie *trie)
{
  if (!trie)
    return;
  g_free (trie->nodes);
  g_free (trie->same);
  g_free (trie->inside);
  g_free (trie->inside_no_escape);
  g_free (trie->chars);
  g_array_unref (trie->closing);
  g_array_unref (trie->rests);
  g_free (trie);
}
