/* Attention over the vectors of ox-simd-*.h; see ox-attention.h for the order of sums. The including file has included ox-internal.h
 * and one of ox-simd-*.h, and defines which tiles fit its registers.
 *
 * A tile is some rows (queries of heads) against the keys of one block: scores of 16 keys a vector (keys are transposed), each the
 * sum over the elements of a head in order; a softmax within the block; sums of values, 16 elements a vector, over the keys in order;
 * these are merged into the state. The size of a tile decides what is done at once, never the order of a sum.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <math.h>
#include <string.h>

#include "ox-attention-convert.h"
#include "ox-exp.h"
#include "ox-tile.h"

/* Keys of a group, elements of a value: what is computed at once is a whole number of these. */
#define UNIT 16
#define UNIT_VECTORS (UNIT / VF_LANES)
#define MAX_UNITS 4

typedef struct {
  const OxAttention *a;
  size_t kv_head;
  size_t block;
  size_t first_row, rows, all_rows; /* of the state */
  const float *q;                   /* [head_dim][rows], times the scale */
  /* Of each row, in keys of the block, and of them all together. */
  size_t begin[OX_ATTENTION_TILE], end[OX_ATTENTION_TILE];
  size_t first_key, last_key;
  float *state;
  float *scores;                    /* [rows][OX_KV_BLOCK] */
  float shrink[UNIT], weight[UNIT]; /* what the state and the block count in the merged state */
} Tile;

/* ---- Rows as they are stored -------------------------------------------------------------------------------------------- */

/* VF_LANES elements from element @i of @p on; for Q8_0 the quants. */
ALWAYS_INLINE VF
load_elements (const uint32_t type, const uint8_t *p, size_t i)
{
  switch (type) {
  case OX_TYPE_F32:
    return vf_load ((const float *) (const void *) p + i);
  case OX_TYPE_F16:
    return vf_load_f16 (p + 2 * i);
  case OX_TYPE_BF16:
    return vf_load_bf16 (p + 2 * i);
  default:
    return vf_load_i8 (p + i);
  }
}

static void
store_row (uint32_t type, const float *x, void *row, size_t n)
{
  size_t i = 0;

  switch (type) {
  case OX_TYPE_F32:
    memcpy (row, x, n * sizeof (float));
    return;
  case OX_TYPE_F16:
    /* In this order so that a NaN survives. */
    for (; i + VF_LANES <= n; i += VF_LANES)
      vf_store_f16 ((uint16_t *) row + i,
                    vf_max (vf_set1 (-OX_F16_MAX), vf_min (vf_set1 (OX_F16_MAX), vf_load (x + i))));
    for (; i < n; i++)
      ((uint16_t *) row)[i] = ox_f32_to_f16 (ox_f16_clamp (x[i]));
    return;
  case OX_TYPE_BF16:
    for (; i < n; i++)
      ((uint16_t *) row)[i] = ox_f32_to_bf16 (x[i]);
    return;
  default:
    for (; i < n; i += 32)
      ox_store_q8_0 (x + i, (OxBlockQ8_0 *) row + i / 32);
  }
}

/* ---- Scores -------------------------------------------------------------------------------------------------------------- */

/* Scores of @N groups of keys from group @first of the block on. */
ALWAYS_INLINE void
score_groups (const uint32_t type, const size_t R, const size_t N, const Tile *tile, size_t first)
{
  const OxKvRing *kv = tile->a->kv;
  const size_t vectors = N * UNIT_VECTORS;
  const float *q = tile->q;
  const uint8_t *k[MAX_UNITS];
  VF sums[OX_ATTENTION_TILE][MAX_UNITS * UNIT_VECTORS];
  size_t chunk = type == OX_TYPE_Q8_0 ? 32 : kv->head_dim;

  UNROLL
  for (size_t n = 0; n < N; n++) {
    size_t slot = (tile->block * OX_KV_BLOCK + (first + n) * UNIT) % kv->capacity;
    k[n] = kv->k + (tile->kv_head * kv->capacity + slot) * kv->key_bytes;
  }
  UNROLL_ROWS
  for (size_t r = 0; r < R; r++) {
    UNROLL
    for (size_t n = 0; n < vectors; n++)
      sums[r][n] = vf_set1 (0);
  }

  for (size_t done = 0; done < kv->head_dim; done += chunk) {
    VF scale[MAX_UNITS * UNIT_VECTORS];

    if (type == OX_TYPE_Q8_0) {
      UNROLL
      for (size_t n = 0; n < vectors; n++)
        scale[n] = vf_load_f16 (k[n / UNIT_VECTORS] + n % UNIT_VECTORS * VF_LANES * sizeof (uint16_t));
      UNROLL
      for (size_t n = 0; n < N; n++)
        k[n] += UNIT * sizeof (uint16_t);
    }

    for (size_t i = 0; i < chunk; i++, q += R) {
      VF v[MAX_UNITS * UNIT_VECTORS];

      UNROLL
      for (size_t n = 0; n < vectors; n++) {
        v[n] = load_elements (type, k[n / UNIT_VECTORS], i * UNIT + n % UNIT_VECTORS * VF_LANES);
        if (type == OX_TYPE_Q8_0)
          v[n] = vf_mul (v[n], scale[n]);
      }
      UNROLL_ROWS
      for (size_t r = 0; r < R; r++) {
        VF x = vf_set1 (q[r]);
        UNROLL
        for (size_t n = 0; n < vectors; n++)
          sums[r][n] = vf_fma (x, v[n], sums[r][n]);
      }
    }
    if (type == OX_TYPE_Q8_0) {
      UNROLL
      for (size_t n = 0; n < N; n++)
        k[n] += 32 * UNIT;
    }
  }

  UNROLL_ROWS
  for (size_t r = 0; r < R; r++) {
    UNROLL
    for (size_t n = 0; n < vectors; n++)
      vf_store (tile->scores + r * OX_KV_BLOCK + first * UNIT + n * VF_LANES, sums[r][n]);
  }
}

/* ---- Softmax ------------------------------------------------------------------------------------------------------------- */

/* What a state with @old as its greatest score and one with @top count when they are merged. Both may be -INFINITY: nothing seen. */
static float
merged_shares (float old, float top, float *shrink, float *weight)
{
  float greatest = top > old ? top : old, from = greatest == -INFINITY ? 0 : greatest;

  *shrink = old - from;
  *weight = top - from;
  return greatest;
}

/* Scores become weights; keys that a row does not see weigh nothing. Lanes are those of the block, so that a sum is the same
 * whatever keys the tile has beside those of the row. */
static void
weigh_keys (Tile *tile)
{
  size_t first = tile->first_key / UNIT * UNIT, last = (tile->last_key + UNIT - 1) / UNIT * UNIT;
  float *largest = tile->state + tile->all_rows * ((tile->a->kv->head_dim + 15) & ~(size_t) 15) + tile->first_row;
  float *total = largest + tile->all_rows, totals[OX_ATTENTION_TILE];

  memset (tile->shrink, 0, sizeof tile->shrink);
  memset (tile->weight, 0, sizeof tile->weight);
  for (size_t r = 0; r < tile->rows; r++) {
    float *scores = tile->scores + r * OX_KV_BLOCK, top;
    VF best = vf_set1 (-INFINITY), sum = vf_set1 (0), from;

    for (size_t j = first; j < tile->begin[r] && j < last; j++)
      scores[j] = -INFINITY;
    for (size_t j = tile->end[r] > first ? tile->end[r] : first; j < last; j++)
      scores[j] = -INFINITY;
    for (size_t j = first; j < last; j += VF_LANES)
      best = vf_max (vf_load (scores + j), best);
    top = vf_greatest (best);
    from = vf_set1 (top == -INFINITY ? 0 : top);
    for (size_t j = first; j < last; j += VF_LANES) {
      VF p = vf_exp (vf_sub (vf_load (scores + j), from));
      vf_store (scores + j, p);
      sum = vf_add (sum, p);
    }
    totals[r] = vf_sum (sum);
    largest[r] = merged_shares (largest[r], top, &tile->shrink[r], &tile->weight[r]);
  }
  for (size_t i = 0; i < UNIT; i += VF_LANES) {
    vf_store (tile->shrink + i, vf_exp (vf_load (tile->shrink + i)));
    vf_store (tile->weight + i, vf_exp (vf_load (tile->weight + i)));
  }
  for (size_t r = 0; r < tile->rows; r++)
    total[r] = total[r] * tile->shrink[r] + totals[r] * tile->weight[r];
}

/* ---- Values -------------------------------------------------------------------------------------------------------------- */

/* Sums of @N units of the values from unit @first on, merged into the state. */
ALWAYS_INLINE void
sum_values (const uint32_t type, const size_t R, const size_t N, const Tile *tile, size_t first)
{
  const OxKvRing *kv = tile->a->kv;
  const size_t vectors = N * UNIT_VECTORS;
  size_t padded = (kv->head_dim + 15) & ~(size_t) 15;
  size_t slot = (tile->block * OX_KV_BLOCK + tile->first_key) % kv->capacity;
  size_t keys = tile->last_key - tile->first_key, before_end = kv->capacity - slot;
  const float *p = tile->scores + tile->first_key;
  const uint8_t *v = kv->v + (tile->kv_head * kv->capacity + slot) * kv->value_bytes;
  float *state = tile->state + tile->first_row * padded + first * UNIT;
  size_t at[MAX_UNITS]; /* of a unit's elements in a row */
  VF sums[OX_ATTENTION_TILE][MAX_UNITS * UNIT_VECTORS];

  UNROLL
  for (size_t n = 0; n < N; n++) {
    size_t unit = first + n;
    at[n] = type == OX_TYPE_Q8_0  ? unit / 2 * sizeof (OxBlockQ8_0) + sizeof (OxU16) + unit % 2 * UNIT
            : type == OX_TYPE_F32 ? unit * UNIT * sizeof (float)
                                  : unit * UNIT * sizeof (uint16_t);
  }
  UNROLL_ROWS
  for (size_t r = 0; r < R; r++) {
    UNROLL
    for (size_t n = 0; n < vectors; n++)
      sums[r][n] = vf_set1 (0);
  }

  for (size_t j = 0; j < keys; j++, p++) {
    VF x[MAX_UNITS * UNIT_VECTORS];

    if (j == before_end)
      v = kv->v + tile->kv_head * kv->capacity * kv->value_bytes;
    UNROLL
    for (size_t n = 0; n < vectors; n++) {
      const size_t unit = n / UNIT_VECTORS;
      x[n] = load_elements (type, v + at[unit], n % UNIT_VECTORS * VF_LANES);
      if (type == OX_TYPE_Q8_0) {
        /* Units of a block come in pairs. */
        x[n] = vf_mul (x[n], vf_set1_f16 (v + (first + unit) / 2 * sizeof (OxBlockQ8_0)));
      }
    }
    UNROLL_ROWS
    for (size_t r = 0; r < R; r++) {
      VF share = vf_set1 (p[r * OX_KV_BLOCK]);
      UNROLL
      for (size_t n = 0; n < vectors; n++)
        sums[r][n] = vf_fma (share, x[n], sums[r][n]);
    }
    v += kv->value_bytes;
  }

  UNROLL_ROWS
  for (size_t r = 0; r < R; r++) {
    VF shrink = vf_set1 (tile->shrink[r]), weight = vf_set1 (tile->weight[r]);
    UNROLL
    for (size_t n = 0; n < vectors; n++) {
      float *to = state + r * padded + n * VF_LANES;
      vf_store (to, vf_fma (sums[r][n], weight, vf_mul (vf_load (to), shrink)));
    }
  }
}

/* ---- Tiles ----------------------------------------------------------------------------------------------------------------- */

ALWAYS_INLINE void
add_tile (const uint32_t type, const size_t R, const size_t N, Tile *tile)
{
  size_t group = tile->first_key / UNIT, last_group = (tile->last_key + UNIT - 1) / UNIT;
  size_t unit = 0, units = (tile->a->kv->head_dim + UNIT - 1) / UNIT;

  for (; group + N <= last_group; group += N)
    score_groups (type, R, N, tile, group);
  for (; group < last_group; group++)
    score_groups (type, R, 1, tile, group);
  weigh_keys (tile);
  for (; unit + N <= units; unit += N)
    sum_values (type, R, N, tile, unit);
  for (; unit < units; unit++)
    sum_values (type, R, 1, tile, unit);
}

/* TILES (X) says X (rows, units) for each size of a tile, the largest first. */
#define DEFINE_TILE(TYPE, ROWS, UNITS)                                                                                 \
  static void add_tile_##TYPE##_##ROWS (Tile *tile)                                                                    \
  {                                                                                                                    \
    add_tile (OX_TYPE_##TYPE, ROWS, UNITS, tile);                                                                      \
  }
#define DEFINE_TILES(ROWS, UNITS)                                                                                      \
  DEFINE_TILE (F32, ROWS, UNITS)                                                                                       \
  DEFINE_TILE (F16, ROWS, UNITS)                                                                                       \
  DEFINE_TILE (BF16, ROWS, UNITS)                                                                                      \
  DEFINE_TILE (Q8_0, ROWS, UNITS)

TILES (DEFINE_TILES)

#define TILE_ENTRY(ROWS, UNITS)                                                                                        \
  { ROWS, { add_tile_F32_##ROWS, add_tile_F16_##ROWS, add_tile_BF16_##ROWS, add_tile_Q8_0_##ROWS } },

static const struct {
  size_t rows;
  void (*add[4]) (Tile *tile);
} tiles[] = { TILES (TILE_ENTRY) };

/* The largest tile of at most @rows. */
static size_t
choose_tile (size_t rows)
{
  size_t i = 0;

  while (tiles[i].rows > rows)
    i++;
  return i;
}

/* The queries of each tile, transposed, times the scale. */
static void
pack_queries (const OxAttention *a, const OxAttentionRows *rows, float *packed)
{
  size_t group = ox_attention_group (a), n = ox_attention_n_rows (a, rows), dim = a->kv->head_dim, tile_rows;

  for (size_t first = 0; first < n; first += tile_rows, packed += tile_rows * dim) {
    tile_rows = tiles[choose_tile (n - first)].rows;
    for (size_t r = 0; r < tile_rows; r++) {
      size_t query = rows->query_begin + (first + r) / group;
      const float *q = a->q + (query * a->n_heads + rows->kv_head * group + (first + r) % group) * dim;
      for (size_t i = 0; i < dim; i++)
        packed[i * tile_rows + r] = q[i] * a->scale;
    }
  }
}

/* Which keys of the block each row sees. False when there are none. */
static bool
set_keys (Tile *tile, const OxAttentionRows *rows)
{
  const OxAttention *a = tile->a;
  size_t group = ox_attention_group (a), from = tile->block * OX_KV_BLOCK;

  tile->first_key = OX_KV_BLOCK;
  tile->last_key = 0;
  for (size_t r = 0; r < tile->rows; r++) {
    size_t end = a->position + rows->query_begin + (tile->first_row + r) / group + 1;
    size_t begin = a->window != 0 && end > a->window ? end - a->window : 0;

    begin = begin > from ? begin - from : 0;
    end = end > from ? end - from : 0;
    end = end < OX_KV_BLOCK ? end : OX_KV_BLOCK;
    tile->begin[r] = begin < end ? begin : end;
    tile->end[r] = end;
    if (begin >= end)
      continue;
    tile->first_key = begin < tile->first_key ? begin : tile->first_key;
    tile->last_key = end > tile->last_key ? end : tile->last_key;
  }
  return tile->first_key < tile->last_key;
}

static void
add_blocks (
  const OxAttention *a, const OxAttentionRows *rows, size_t block_begin, size_t block_end, float *state, float *scratch)
{
  const OxKvRing *kv = a->kv;
  size_t type = kv->type == OX_TYPE_F32 ? 0 : kv->type == OX_TYPE_F16 ? 1 : kv->type == OX_TYPE_BF16 ? 2 : 3;
  Tile tile = { .a = a, .kv_head = rows->kv_head, .all_rows = ox_attention_n_rows (a, rows), .state = state };
  float *packed = scratch + OX_ATTENTION_TILE * OX_KV_BLOCK;

  tile.scores = scratch;
  pack_queries (a, rows, packed);
  for (tile.block = block_begin; tile.block < block_end; tile.block++) {
    tile.q = packed;
    for (tile.first_row = 0; tile.first_row < tile.all_rows; tile.first_row += tile.rows) {
      size_t i = choose_tile (tile.all_rows - tile.first_row);

      tile.rows = tiles[i].rows;
      if (set_keys (&tile, rows))
        tiles[i].add[type](&tile);
      tile.q += tile.rows * kv->head_dim;
    }
  }
}

/* ---- States ---------------------------------------------------------------------------------------------------------------- */

static void
merge (const OxAttention *a, size_t n, size_t row_begin, size_t row_end, float *state, const float *part)
{
  size_t padded = ox_attention_padded (a);
  float *largest = state + n * padded, *total = largest + n;
  const float *part_largest = part + n * padded, *part_total = part_largest + n;

  for (size_t row = row_begin; row < row_end; row++) {
    float shrink, weight;
    VF old, new;

    largest[row] = merged_shares (largest[row], part_largest[row], &shrink, &weight);
    old = vf_exp (vf_set1 (shrink));
    new = vf_exp (vf_set1 (weight));
    total[row] = total[row] * vf_greatest (old) + part_total[row] * vf_greatest (new);
    for (size_t i = row * padded; i < (row + 1) * padded; i += VF_LANES)
      vf_store (state + i, vf_fma (vf_load (part + i), new, vf_mul (vf_load (state + i), old)));
  }
}

static void
finish (const OxAttention *a, const OxAttentionRows *rows, const float *state)
{
  size_t group = ox_attention_group (a), n = ox_attention_n_rows (a, rows), padded = ox_attention_padded (a);
  size_t dim = a->kv->head_dim;
  const float *total = state + n * padded + n;

  for (size_t row = 0; row < n; row++, state += padded) {
    size_t query = rows->query_begin + row / group, i = 0;
    float *out = a->out + (query * a->n_heads + rows->kv_head * group + row % group) * dim;
    VF sum = vf_set1 (total[row]), zero = vf_set1 (0);

    /* The sum of nothing may be 0 or -0, depending on what was merged; adding 0 makes them one. */
    for (; i + VF_LANES <= dim; i += VF_LANES)
      vf_store (out + i, vf_add (vf_div (vf_load (state + i), sum), zero));
    if (i < dim)
      vf_store_n (out + i, vf_add (vf_div (vf_load (state + i), sum), zero), dim - i);
  }
}
