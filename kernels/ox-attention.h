/* Attention of new queries against a ring of keys and values, and how those lie in memory.
 *
 * The sums of a query are cut at absolute positions: the keys of each block of OX_KV_BLOCK positions are weighed and summed by
 * themselves, from zero, and the blocks are merged in the order of their positions. So a result does not depend on which queries
 * are computed together, nor on which blocks go to which thread, to the bit.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Keys whose elements lie side by side. */
#define OX_KV_GROUP 16
/* Keys that are summed apart from others. */
#define OX_KV_BLOCK 256
/* Rows (a query of one head) that an item of work is best made of, and most that are computed at once. */
#define OX_ATTENTION_ROWS 48
#define OX_ATTENTION_TILE 12
/* Bytes from a row of queries to the next, of as many elements as that is, and from a row of scores to the next: constant, so that
 * a tile's rows are reached from one pointer. */
#define OX_ATTENTION_STRIDE 1024

/* Keys and values of a layer: position p is at slot p % capacity. Rows are of OX_TYPE_F32, F16, BF16 or Q8_0.
 *
 * Keys are transposed in groups, so that 16 scores are computed at once without a sum across a vector: k is
 * [n_heads][capacity / 16][head_dim][16]; for Q8_0 [n_heads][capacity / 16][head_dim / 32], each 16 half-float scales and then
 * int8 [32][16]. Values lie in columns of 16 elements, so that what a tile reads is one stream: v is
 * [n_heads][head_dim / 16 rounded up][capacity][16]; for Q8_0 [n_heads][head_dim / 32][capacity] blocks.
 *
 * BF16 keeps pairs together that are multiplied and added at once: keys [n_heads][capacity / 16][head_dim / 2 rounded up][16][2] and
 * values [n_heads][head_dim / 16 rounded up][capacity / 2][16][2], pairs of positions. */
typedef struct {
  uint8_t *k, *v; /* set by the owner; any content before positions are written, as long as it is finite */
  uint32_t type;
  size_t n_heads, head_dim;
  size_t capacity;     /* a multiple of OX_KV_GROUP */
  size_t row_bytes;    /* of a key or a value by itself */
  size_t key_bytes;    /* of a key with what it is rounded up by */
  size_t cell_bytes;   /* of a value's elements in a column */
  size_t column_bytes; /* of a column: capacity cells */
  size_t columns;      /* of a head */
  size_t k_bytes;      /* of all keys, a multiple of 64 */
  size_t v_bytes;      /* of all values */
} OxKvRing;

/* Everything but k and v. @capacity is rounded up. False on overflow, for other types, and for heads that are not a multiple of 32 in
 * Q8_0. */
bool ox_kv_ring_init (OxKvRing *kv, uint32_t type, size_t n_heads, size_t head_dim, size_t capacity);
/* The rows of a position as they are stored, row_bytes each, in the usual order of elements. */
void ox_kv_ring_get (const OxKvRing *kv, size_t head, size_t position, void *k_row, void *v_row);
void ox_kv_ring_put (const OxKvRing *kv, size_t head, size_t position, const void *k_row, const void *v_row);

/* Keys that a query sees, by position: at least one, none of them overwritten in the ring. */
typedef struct {
  size_t begin, end;
} OxKeySpan;

/* Attention of @m queries. Grouped queries: query head h reads key head h / (n_heads / kv->n_heads). */
typedef struct {
  const OxKvRing *kv;
  const float *q; /* [m][n_heads][head_dim] */
  float *out;     /* [m][n_heads][head_dim] */
  size_t m, n_heads;
  size_t position; /* absolute position of query 0; query i sees keys up to position + i */
  size_t window;   /* query at p sees keys p - window + 1 … p; 0: all from 0 */
  /* What query i sees instead of that: visible[i · visible_step]. A step of 0: all the same. NULL: causal. */
  const OxKeySpan *visible;
  size_t visible_step;
  float scale;   /* multiplies the scores */
  float softcap; /* scores become softcap · tanh(score / softcap); 0: they stay as they are */
  /* Queries and the weights of keys may be rounded to what keys and values are stored as, where an instruction set gains by it: BF16. */
  bool fast;
} OxAttention;

/* The queries [query_begin, query_end) and all query heads of key head @kv_head: rows of a state, a query's heads together. */
typedef struct {
  size_t kv_head, query_begin, query_end;
} OxAttentionRows;

/* The blocks that any of the rows sees: [*begin, *end). */
void ox_attention_blocks (const OxAttention *a, const OxAttentionRows *rows, size_t *begin, size_t *end);

/* The keys that a query sees. */
static inline OxKeySpan
ox_attention_visible (const OxAttention *a, size_t query)
{
  size_t end = a->position + query + 1;

  if (a->visible != NULL)
    return a->visible[query * a->visible_step];
  return (OxKeySpan) { a->window != 0 && end > a->window ? end - a->window : 0, end };
}

/* The state of @n rows: weighted sums of values [n][head_dim rounded up], then the greatest score (in the units of the instruction
 * set) and the sum of weights of each. In floats, a multiple of 16. */
size_t ox_attention_state_floats (const OxAttention *a, size_t n);
/* Makes it that of no keys at all. */
void ox_attention_clear (const OxAttention *a, size_t n, float *state);
/* Floats of scratch that a worker needs for items of at most @n rows, a multiple of 16. */
size_t ox_attention_scratch_floats (const OxAttention *a, size_t n);

static inline size_t
ox_attention_group (const OxAttention *a)
{
  return a->n_heads / a->kv->n_heads;
}

static inline size_t
ox_attention_n_rows (const OxAttention *a, const OxAttentionRows *rows)
{
  return (rows->query_end - rows->query_begin) * ox_attention_group (a);
}

/* head_dim as values and sums have it. */
static inline size_t
ox_attention_padded (const OxAttention *a)
{
  return (a->kv->head_dim + 15) & ~(size_t) 15;
}

/* What an instruction set computes attention with. */
typedef struct {
  /* @n floats to a row of @type, to nearest, ties to even; what half floats cannot hold becomes the greatest that they can. */
  void (*store_row) (uint32_t type, const float *x, void *row, size_t n);
  /* Merges blocks [block_begin, block_end) into @state. */
  void (*add_blocks) (const OxAttention *a,
                      const OxAttentionRows *rows,
                      size_t block_begin,
                      size_t block_end,
                      float *state,
                      float *scratch);
  /* Merges the state of a block, @part, into @state, with the same sums as if add_blocks() had done it; rows
   * [row_begin, row_end) of @n. */
  void (*merge) (const OxAttention *a, size_t n, size_t row_begin, size_t row_end, float *state, const float *part);
  /* Divides by the sums of weights and writes a->out. */
  void (*finish) (const OxAttention *a, const OxAttentionRows *rows, const float *state);
  /* What keys and values are best stored as for an attention that may be fast; OX_TYPE_F32: nothing is gained. */
  uint32_t fast_type;
} OxAttentionKernel;

/* Floats become the key and the value of a position. */
void ox_kv_ring_store (
  const OxKvRing *kv, const OxAttentionKernel *kernel, size_t head, size_t position, const float *k, const float *v);

#ifdef __cplusplus
}
#endif
