/* Byte-pair encoding.
 *
 * Short pieces, nearly all there are, are merged in place by looking for the best pair again after each merge. Long ones keep
 * their pairs in a heap, with the symbols in a linked list; a pair that has changed since it was put in is skipped when it comes
 * out. Both take the leftmost of equal pairs, as the reference does.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "text/ox-bpe.h"

#include <string.h>

#include "io/ox-memory.h"
#include "text/ox-utf8.h"

#define SHORT_PIECE 48
#define NO_RANK G_MAXUINT32
/* The table is at most three quarters empty, and twice there while it grows. */
#define MEMORY_PER_MERGE (6 * sizeof (Merge))
/* Pairs taken out of the heap between two looks at the cancellable. */
#define PAIRS_PER_LOOK 4096

typedef struct {
  guint32 left, right;
  guint32 rank; /* NO_RANK: a free slot */
  guint32 result;
} Merge;

struct _OxBpe {
  const OxVocab *vocab;
  OxBpeOptions options;
  Merge *merges;
  gsize mask, n_merges;
  gboolean can_cut;
  guint8 joins[65536 / 8]; /* [last byte of a character][first byte of the next]: some token has the two side by side */
};

static gsize
pair_slot (guint32 left, guint32 right)
{
  guint64 h = ((guint64) left << 32 | right) * G_GUINT64_CONSTANT (0x9e3779b97f4a7c15);

  return (gsize) (h >> 20 ^ h >> 44);
}

static Merge *
new_table (gsize capacity)
{
  Merge *table = g_new (Merge, capacity);

  memset (table, 0xff, capacity * sizeof *table);
  return table;
}

OxBpe *
ox_bpe_new (const OxVocab *vocab, const OxBpeOptions *options, gsize n_merges, GError **error)
{
  OxBpe *bpe;
  gsize capacity = 64;

  if (!ox_memory_check ((guint64) n_merges * MEMORY_PER_MERGE, "the tokenizer", error))
    return NULL;
  bpe = g_new0 (OxBpe, 1);
  bpe->vocab = vocab;
  bpe->options = *options;
  while (capacity < (gsize) (1 << 24) && capacity - capacity / 4 < n_merges)
    capacity *= 2;
  bpe->merges = new_table (capacity);
  bpe->mask = capacity - 1;
  return bpe;
}

void
ox_bpe_free (OxBpe *bpe)
{
  if (!bpe)
    return;
  g_free (bpe->merges);
  g_free (bpe);
}

static Merge *
find_slot (Merge *table, gsize mask, guint32 left, guint32 right)
{
  gsize slot = pair_slot (left, right) & mask;

  while (table[slot].rank != NO_RANK && (table[slot].left != left || table[slot].right != right))
    slot = (slot + 1) & mask;
  return table + slot;
}

/* NULL: the two do not merge. */
static inline const Merge *
find_merge (const OxBpe *bpe, guint32 left, guint32 right)
{
  const Merge *merge = find_slot (bpe->merges, bpe->mask, left, right);

  return merge->rank == NO_RANK ? NULL : merge;
}

static void
grow (OxBpe *bpe)
{
  gsize capacity = (bpe->mask + 1) * 2;
  Merge *table = new_table (capacity);

  for (gsize i = 0; i <= bpe->mask; i++) {
    if (bpe->merges[i].rank != NO_RANK)
      *find_slot (table, capacity - 1, bpe->merges[i].left, bpe->merges[i].right) = bpe->merges[i];
  }
  g_free (bpe->merges);
  bpe->merges = table;
  bpe->mask = capacity - 1;
}

void
ox_bpe_add_merge (OxBpe *bpe, guint32 left, guint32 right, guint32 result, guint32 rank)
{
  Merge *merge;

  if (bpe->vocab->tokens[result].flags & OX_TOKEN_CONTROL)
    return;
  if (bpe->n_merges >= bpe->mask + 1 - (bpe->mask + 1) / 8)
    grow (bpe);
  merge = find_slot (bpe->merges, bpe->mask, left, right);
  if (merge->rank == NO_RANK)
    bpe->n_merges++;
  *merge = (Merge) { left, right, rank, result };
}

void
ox_bpe_finish (OxBpe *bpe)
{
  const OxVocab *vocab = bpe->vocab;

  /* Unknown characters that fuse would reach across a cut. */
  bpe->can_cut = TRUE;
  if (bpe->options.fuse_unk && bpe->options.unk != OX_NO_TOKEN) {
    for (guint b = 0; b < 256; b++)
      bpe->can_cut &= bpe->options.byte_fallback && vocab->byte_ids[b] != OX_NO_TOKEN;
  }
  for (guint32 id = 0; id < vocab->n_tokens; id++) {
    const OxToken *token = vocab->tokens + id;
    const guint8 *bytes = (const guint8 *) ox_vocab_bytes (vocab, id);

    if (!(token->flags & OX_TOKEN_PRESENT) || token->flags & (OX_TOKEN_WHOLE | OX_TOKEN_CONTROL))
      continue;
    for (guint32 i = 1; i < token->n_bytes; i++) {
      guint pair = (guint) bytes[i - 1] << 8 | bytes[i];

      bpe->joins[pair / 8] |= (guint8) (1 << pair % 8);
    }
  }
}

gsize
ox_bpe_find_cut (const OxBpe *bpe, const char *text, gsize n)
{
  const guint8 *bytes = (const guint8 *) text;
  gsize i;

  if (!bpe->can_cut || n == 0)
    return n;
  for (i = ox_utf8_length (bytes[0]); i < n; i += ox_utf8_length (bytes[i])) {
    guint pair = (guint) bytes[i - 1] << 8 | bytes[i];

    if (!(bpe->joins[pair / 8] & 1 << pair % 8))
      break;
  }
  return i;
}

/* ---- The first symbols ---- */

static gboolean
is_usable (const OxVocab *vocab, guint32 id)
{
  return id != OX_NO_TOKEN && !(vocab->tokens[id].flags & OX_TOKEN_CONTROL);
}

/* One symbol for each byte, or each character with its fallbacks. @symbols has room for @n. Returns how many. */
static gsize
first_symbols (const OxBpe *bpe, const char *text, gsize n, guint32 *symbols)
{
  const OxVocab *vocab = bpe->vocab;
  gsize n_symbols = 0, length;
  gboolean was_unk = FALSE;

  for (gsize i = 0; i < n; i += length) {
    guint32 id;
    gboolean all_bytes = bpe->options.byte_fallback;

    length = vocab->byte_level ? 1 : ox_utf8_length ((guint8) text[i]);
    id = vocab->byte_level ? vocab->byte_ids[(guint8) text[i]] : ox_vocab_find_bytes (vocab, text + i, length);
    if (is_usable (vocab, id)) {
      symbols[n_symbols++] = id;
      was_unk = FALSE;
      continue;
    }
    for (gsize k = 0; k < length && all_bytes; k++)
      all_bytes = vocab->byte_ids[(guint8) text[i + k]] != OX_NO_TOKEN;
    if (all_bytes) {
      for (gsize k = 0; k < length; k++)
        symbols[n_symbols++] = vocab->byte_ids[(guint8) text[i + k]];
      was_unk = FALSE;
    } else if (bpe->options.unk != OX_NO_TOKEN) {
      if (!was_unk || !bpe->options.fuse_unk)
        symbols[n_symbols++] = bpe->options.unk;
      was_unk = TRUE;
    }
  }
  return n_symbols;
}

/* ---- Merging ---- */

/* Returns how many symbols are left. */
static gsize
merge_short (const OxBpe *bpe, guint32 *symbols, gsize n)
{
  const Merge *merges[SHORT_PIECE]; /* of symbol i and the next */

  for (gsize i = 0; i + 1 < n; i++)
    merges[i] = find_merge (bpe, symbols[i], symbols[i + 1]);
  for (;;) {
    gsize best = 0;
    guint32 rank = NO_RANK;

    for (gsize i = 0; i + 1 < n; i++) {
      if (merges[i] && merges[i]->rank < rank) {
        rank = merges[i]->rank;
        best = i;
      }
    }
    if (rank == NO_RANK)
      return n;
    symbols[best] = merges[best]->result;
    memmove (symbols + best + 1, symbols + best + 2, (n - best - 2) * sizeof *symbols);
    if (n - best > 2)
      memmove (merges + best + 1, merges + best + 2, (n - best - 3) * sizeof *merges);
    n--;
    if (best > 0)
      merges[best - 1] = find_merge (bpe, symbols[best - 1], symbols[best]);
    if (best + 1 < n)
      merges[best] = find_merge (bpe, symbols[best], symbols[best + 1]);
  }
}

/* A pair in the heap; @key orders by rank, then by place. */
typedef struct {
  guint64 key;
  guint32 left, right, result;
} Pair;

typedef struct {
  Pair *pairs;
  gsize n;
} Heap;

static void
heap_sift_down (Heap *heap, gsize i)
{
  Pair pair = heap->pairs[i];

  for (;;) {
    gsize child = 2 * i + 1;

    if (child >= heap->n)
      break;
    if (child + 1 < heap->n && heap->pairs[child + 1].key < heap->pairs[child].key)
      child++;
    if (heap->pairs[child].key >= pair.key)
      break;
    heap->pairs[i] = heap->pairs[child];
    i = child;
  }
  heap->pairs[i] = pair;
}

static void
heap_push (Heap *heap, Pair pair)
{
  gsize i = heap->n++;

  while (i > 0 && heap->pairs[(i - 1) / 2].key > pair.key) {
    heap->pairs[i] = heap->pairs[(i - 1) / 2];
    i = (i - 1) / 2;
  }
  heap->pairs[i] = pair;
}

static Pair
heap_pop (Heap *heap)
{
  Pair top = heap->pairs[0];

  heap->pairs[0] = heap->pairs[--heap->n];
  if (heap->n > 0)
    heap_sift_down (heap, 0);
  return top;
}

typedef struct {
  guint32 previous, next; /* OX_NO_TOKEN: none */
} Link;

static gboolean
make_pair (const OxBpe *bpe, const guint32 *symbols, guint32 at, guint32 next, Pair *pair)
{
  const Merge *merge = find_merge (bpe, symbols[at], symbols[next]);

  if (!merge)
    return FALSE;
  *pair = (Pair) { (guint64) merge->rank << 32 | at, symbols[at], symbols[next], merge->result };
  return TRUE;
}

static gsize
merge_long (const OxBpe *bpe, guint32 *symbols, gsize n, GCancellable *cancellable)
{
  g_autofree Link *links = g_new (Link, n);
  /* Every merge takes one pair out and puts at most two in: room for n first pairs and one more for each merge. */
  g_autofree Pair *pairs = g_new (Pair, 2 * n);
  Heap heap = { pairs, 0 };
  Pair pair;
  gsize left = 0;
  guint looks = 0;

  for (gsize i = 0; i < n; i++) {
    links[i].previous = i > 0 ? (guint32) (i - 1) : OX_NO_TOKEN;
    links[i].next = i + 1 < n ? (guint32) (i + 1) : OX_NO_TOKEN;
    if (i + 1 < n && make_pair (bpe, symbols, (guint32) i, (guint32) (i + 1), &pair))
      heap.pairs[heap.n++] = pair;
  }
  for (gsize i = heap.n / 2; i-- > 0;)
    heap_sift_down (&heap, i);

  while (heap.n > 0) {
    Pair top = heap_pop (&heap);
    guint32 at = (guint32) top.key, next = links[at].next;

    if (++looks % PAIRS_PER_LOOK == 0 && g_cancellable_is_cancelled (cancellable))
      break;
    if (symbols[at] != top.left || next == OX_NO_TOKEN || symbols[next] != top.right)
      continue;
    symbols[at] = top.result;
    symbols[next] = OX_NO_TOKEN;
    links[at].next = links[next].next;
    if (links[at].next != OX_NO_TOKEN)
      links[links[at].next].previous = at;
    if (links[at].previous != OX_NO_TOKEN && make_pair (bpe, symbols, links[at].previous, at, &pair))
      heap_push (&heap, pair);
    if (links[at].next != OX_NO_TOKEN && make_pair (bpe, symbols, at, links[at].next, &pair))
      heap_push (&heap, pair);
  }
  for (gsize i = 0; i < n; i++) {
    if (symbols[i] != OX_NO_TOKEN)
      symbols[left++] = symbols[i];
  }
  return left;
}

void
ox_bpe_encode (OxBpe *bpe, const char *text, gsize n, GCancellable *cancellable, GArray *ids)
{
  guint begin = ids->len;
  guint32 *symbols;

  if (n == 0)
    return;
  if (bpe->options.ignore_merges) {
    guint32 id = ox_vocab_find_bytes (bpe->vocab, text, n);

    if (is_usable (bpe->vocab, id)) {
      g_array_append_val (ids, id);
      return;
    }
  }
  g_array_set_size (ids, (guint) (begin + n));
  symbols = &g_array_index (ids, guint32, begin);
  n = first_symbols (bpe, text, n, symbols);
  n = n <= SHORT_PIECE ? merge_short (bpe, symbols, n) : merge_long (bpe, symbols, n, cancellable);
  g_array_set_size (ids, (guint) (begin + n));
}
