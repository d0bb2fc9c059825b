/* Attention over the vectors of ox-simd-*.h; see ox-attention.h for the order of sums. The including file has included ox-internal.h
 * and one of ox-simd-*.h, and defines which tiles fit its registers.
 *
 * A tile is some rows (queries of heads) against the keys of one block: scores of 16 keys a vector (keys are transposed), each the
 * sum over the elements of a head in order; a softmax within the block; sums of values, 16 elements a vector, over the keys in order;
 * these are merged into the state. The size of a tile decides what is done at once, never the order of a sum. All tiles of a block are
 * scored before the first sums values, so that only the block's keys or its values need to stay in the second cache.
 *
 * An instruction set that multiplies pairs of BF16 and adds both to a float defines HAS_DOT, vf_dot() and vf_store_bf16(). Then pairs
 * of elements, and pairs of keys, take the place of floats.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "ox-attention-convert.h"
#include "ox-exp.h"
#include "ox-tile.h"

/* Keys of a group, elements of a cell: what is computed at once is a whole number of these. */
#define UNIT 16
#define UNIT_VECTORS (UNIT / VF_LANES)
#define MAX_UNITS 4
/* Floats from row to row of queries and scores. */
#define STRIDE ((size_t) OX_ATTENTION_STRIDE / sizeof (float))
/* Tiles of at most so many rows wait for memory; so does the first of several, which brings what the others then find in the second
 * cache. */
#define PREFETCH_ROWS 8
/* Scores are powers of 2 inside. */
#define LOG2_E 1.44269504f

_Static_assert (STRIDE == OX_KV_BLOCK, "a row of scores is a block of keys");

/* How keys and values are read; in the order of the tables of tiles. DOT: BF16, two at once. */
enum { READ_F32, READ_F16, READ_BF16, READ_Q8_0, READ_DOT, N_READS };

/* What add_blocks() was called with, and its scratch. */
typedef struct {
  const OxAttention *a;
  const OxAttentionRows *rows;
  size_t n;    /* rows */
  size_t dims; /* of a head; pairs of elements for READ_DOT */
  size_t block;
  float *state, *largest, *total;
  float *scores; /* [n][STRIDE] */
  float *q;      /* of each tile [dims / STRIDE][rows][STRIDE], times the scale and log2(e) */
  float *shrink, *weight,
    *totals; /* what the state and the block count in the merged state; the block's sums of weights */
} Work;

typedef struct {
  size_t first_row;
  /* Keys of the block: that each row sees, and all rows together. */
  size_t begin[OX_ATTENTION_TILE], end[OX_ATTENTION_TILE];
  size_t first_key, last_key;
} Tile;

/* ---- Rows as they are stored -------------------------------------------------------------------------------------------- */

/* VF_LANES elements that begin @lane elements into what is at @p: a vector of floats or pairs, halves or quants; for READ_BF16 the even
 * or the odd ones of pairs. */
ALWAYS_INLINE VF
load_elements (const int read, const uint8_t *p, size_t lane, const size_t odd)
{
  switch (read) {
  case READ_F16:
    return vf_load_f16 (p + 2 * lane);
  case READ_BF16:
    return odd != 0 ? vf_load_bf16_odd (p + 4 * lane) : vf_load_bf16_even (p + 4 * lane);
  case READ_Q8_0:
    return vf_load_i8 (p + lane);
  default:
    return vf_load ((const float *) (const void *) p + lane);
  }
}

ALWAYS_INLINE VF
multiply_add (const int read, VF x, VF v, VF sum)
{
#ifdef HAS_DOT
  if (read == READ_DOT)
    return vf_dot (x, v, sum);
#endif
  return vf_fma (x, v, sum);
}

/* Bytes of UNIT elements, of the pairs for READ_BF16 and READ_DOT. */
ALWAYS_INLINE size_t
unit_bytes (const int read)
{
  return read == READ_F16 ? 32 : read == READ_Q8_0 ? 16 : 64;
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
#ifdef HAS_DOT
    for (; i + VF_LANES <= n; i += VF_LANES)
      vf_store_bf16 ((uint16_t *) row + i, vf_load (x + i));
#endif
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
score_groups (const int read, const size_t R, const size_t N, const Work *work, const Tile *tile, size_t first)
{
  const OxKvRing *kv = work->a->kv;
  const size_t vectors = N * UNIT_VECTORS, step = read == READ_BF16 ? 2 : 1, bytes = unit_bytes (read);
  const float *q_rows = work->q + tile->first_row * ((work->dims + STRIDE - 1) / STRIDE * STRIDE);
  const uint8_t *k[MAX_UNITS];
  VF sums[OX_ATTENTION_TILE][MAX_UNITS * UNIT_VECTORS];
  /* What the tile reads after the groups at hand, far enough ahead. */
  size_t ahead = N * UNIT * kv->key_bytes, chunk;

  ahead *= (PREFETCH_BYTES + ahead - 1) / ahead;
  UNROLL
  for (size_t n = 0; n < N; n++) {
    size_t slot = (work->block * OX_KV_BLOCK + (first + n) * UNIT) % kv->capacity;
    k[n] = kv->k + (work->rows->kv_head * kv->capacity + slot) * kv->key_bytes;
  }
  UNROLL_ROWS
  for (size_t r = 0; r < R; r++) {
    UNROLL
    for (size_t n = 0; n < vectors; n++)
      sums[r][n] = vf_set1 (0);
  }

  for (size_t done = 0; done < work->dims; done += chunk) {
    const float *q = q_rows + done / STRIDE * STRIDE * R + done % STRIDE;
    VF scale[MAX_UNITS * UNIT_VECTORS];

    chunk = read == READ_Q8_0 ? 32 : work->dims - done < STRIDE ? work->dims - done : STRIDE;
    if (read == READ_Q8_0) {
      UNROLL
      for (size_t n = 0; n < vectors; n++)
        scale[n] = vf_load_f16 (k[n / UNIT_VECTORS] + n % UNIT_VECTORS * VF_LANES * sizeof (uint16_t));
      UNROLL
      for (size_t n = 0; n < N; n++)
        k[n] += UNIT * sizeof (uint16_t);
    }

    for (size_t i = 0; i < chunk; i += step, q += step) {
      if ((R <= PREFETCH_ROWS || tile->first_row == 0) && i * bytes / step % LINE_BYTES == 0) {
        UNROLL
        for (size_t n = 0; n < N; n++)
          prefetch_lines (k[n], ahead, 1);
      }
      UNROLL
      for (size_t s = 0; s < step; s++) {
        VF v[MAX_UNITS * UNIT_VECTORS];

        UNROLL
        for (size_t n = 0; n < vectors; n++) {
          v[n] = load_elements (read, k[n / UNIT_VECTORS], n % UNIT_VECTORS * VF_LANES, s);
          if (read == READ_Q8_0)
            v[n] = vf_mul (v[n], scale[n]);
        }
        UNROLL_ROWS
        for (size_t r = 0; r < R; r++) {
          VF x = vf_set1 (q[r * STRIDE + s]);
          UNROLL
          for (size_t n = 0; n < vectors; n++)
            sums[r][n] = multiply_add (read, x, v[n], sums[r][n]);
        }
      }
      UNROLL
      for (size_t n = 0; n < N; n++)
        k[n] += bytes;
    }
  }

  UNROLL_ROWS
  for (size_t r = 0; r < R; r++) {
    UNROLL
    for (size_t n = 0; n < vectors; n++)
      vf_store (work->scores + (tile->first_row + r) * STRIDE + first * UNIT + n * VF_LANES, sums[r][n]);
  }
}

/* ---- Softmax ------------------------------------------------------------------------------------------------------------- */

/* What a state with @old as its greatest score and one with @top count when they are merged, as powers of 2. Both may be -INFINITY:
 * nothing seen. */
static float
merged_shares (float old, float top, float *shrink, float *weight)
{
  float greatest = top > old ? top : old, from = greatest == -INFINITY ? 0 : greatest;

  *shrink = old - from;
  *weight = top - from;
  return greatest;
}

static void
cap_scores (const OxAttention *a, float *scores, size_t first, size_t last)
{
  VF cap = vf_set1 (a->softcap * LOG2_E), inverse = vf_set1 (1 / (a->softcap * LOG2_E));

  for (size_t j = first; j < last; j += VF_LANES)
    vf_store (scores + j, vf_mul (vf_tanh (vf_mul (vf_load (scores + j), inverse)), cap));
}

/* The greatest score of row @r; the scores of keys that it does not see become -INFINITY. Vectors are those of the block, so that a sum is
 * the same whatever keys the tile has beside those of the row. */
ALWAYS_INLINE float
greatest_score (const Work *work, const Tile *tile, size_t r, size_t first, size_t last)
{
  float *scores = work->scores + (tile->first_row + r) * STRIDE;
  VF best[4];

  if (work->a->softcap != 0)
    cap_scores (work->a, scores, tile->begin[r] / UNIT * UNIT, tile->end[r]);
  for (size_t j = first; j < tile->begin[r] && j < last; j++)
    scores[j] = -INFINITY;
  for (size_t j = tile->end[r] > first ? tile->end[r] : first; j < last; j++)
    scores[j] = -INFINITY;
  for (size_t i = 0; i < 4; i++)
    best[i] = vf_set1 (-INFINITY);
  for (size_t j = first; j < last; j += 4 * VF_LANES) {
    UNROLL
    for (size_t i = 0; i < 4; i++)
      if (j + i * VF_LANES < last)
        best[i] = vf_max (vf_load (scores + j + i * VF_LANES), best[i]);
  }
  return vf_greatest (vf_max (vf_max (best[0], best[1]), vf_max (best[2], best[3])));
}

/* Scores of row @r become weights, whose sum is returned. */
ALWAYS_INLINE float
weigh_row (const bool dot, const Work *work, const Tile *tile, size_t r, float top, size_t first, size_t last)
{
  float *scores = work->scores + (tile->first_row + r) * STRIDE;
  /* Without any key all scores are -INFINITY. */
  VF sum[4], from = vf_set1 (top > -FLT_MAX ? top : -FLT_MAX);

  for (size_t i = 0; i < 4; i++)
    sum[i] = vf_set1 (0);
  for (size_t j = first; j < last; j += 4 * VF_LANES) {
    UNROLL
    for (size_t i = 0; i < 4; i++) {
      VF p;

      if (j + i * VF_LANES >= last)
        break;
      p = vf_exp2 (vf_sub (vf_load (scores + j + i * VF_LANES), from));
#ifdef HAS_DOT
      /* Weights are written where scores were read before; what is summed is what values are multiplied with. */
      if (dot)
        p = vf_store_bf16 ((uint16_t *) (void *) scores + j + i * VF_LANES, p);
      else
#endif
        vf_store (scores + j + i * VF_LANES, p);
      sum[i] = vf_add (sum[i], p);
    }
  }
  return vf_sum (vf_add (vf_add (sum[0], sum[1]), vf_add (sum[2], sum[3])));
}

/* All rows' greatest scores first: nothing then waits for what a row's vectors have in common. */
ALWAYS_INLINE void
weigh_rows (const bool dot, const size_t R, const Work *work, const Tile *tile)
{
  const size_t chunk = 4 * VF_LANES;
  size_t first = tile->first_key / chunk * chunk, last = (tile->last_key + UNIT - 1) / UNIT * UNIT;
  float top[OX_ATTENTION_TILE];

  for (size_t r = 0; r < R; r++)
    top[r] = greatest_score (work, tile, r, first, last);
  for (size_t r = 0; r < R; r++) {
    size_t row = tile->first_row + r;

    work->totals[row] = weigh_row (dot, work, tile, r, top[r], first, last);
    work->largest[row] = merged_shares (work->largest[row], top[r], &work->shrink[row], &work->weight[row]);
  }
}

/* After all rows have been weighed. */
static void
merge_totals (const Work *work)
{
  for (size_t i = 0; i < work->n; i += VF_LANES) {
    vf_store (work->shrink + i, vf_exp2 (vf_load (work->shrink + i)));
    vf_store (work->weight + i, vf_exp2 (vf_load (work->weight + i)));
  }
  for (size_t i = 0; i < work->n; i++)
    work->total[i] = work->total[i] * work->shrink[i] + work->totals[i] * work->weight[i];
}

/* ---- Values -------------------------------------------------------------------------------------------------------------- */

/* Sums of @N units of the values from unit @first on, merged into the state. */
ALWAYS_INLINE void
sum_values (const int read, const size_t R, const size_t N, const Work *work, const Tile *tile, size_t first)
{
  const OxKvRing *kv = work->a->kv;
  const size_t vectors = N * UNIT_VECTORS;
  /* Keys at once, and how many of those a float of the weights stands for. */
  const size_t step = read == READ_BF16 || read == READ_DOT ? 2 : 1, pair = read == READ_DOT ? 2 : 1;
  size_t padded = ox_attention_padded (work->a), begin = tile->first_key / step * step;
  size_t slot = (work->block * OX_KV_BLOCK + begin) % kv->capacity,
         ahead = (read == READ_Q8_0 ? N / 2 : N) * kv->column_bytes;
  const float *p = work->scores + tile->first_row * STRIDE + begin / pair;
  float *state = work->state + tile->first_row * padded + first * UNIT;
  const uint8_t *v[MAX_UNITS];
  size_t at = slot * kv->cell_bytes, wrap = kv->column_bytes, cell = step * kv->cell_bytes;
  VF sums[OX_ATTENTION_TILE][MAX_UNITS * UNIT_VECTORS];

  UNROLL
  for (size_t n = 0; n < N; n++) {
    size_t column = read == READ_Q8_0 ? (first + n) / 2 : first + n;
    v[n] = kv->v + (work->rows->kv_head * kv->columns + column) * kv->column_bytes;
  }
  UNROLL_ROWS
  for (size_t r = 0; r < R; r++) {
    UNROLL
    for (size_t n = 0; n < vectors; n++)
      sums[r][n] = vf_set1 (0);
  }

  for (size_t j = begin; j < tile->last_key; j += step, p += step / pair) {
    if ((R <= PREFETCH_ROWS || tile->first_row == 0) && at % LINE_BYTES < cell) {
      UNROLL
      for (size_t n = 0; n < N; n++)
        prefetch_lines (v[n] + at, ahead, 1);
    }
    UNROLL
    for (size_t s = 0; s < step / pair; s++) {
      VF x[MAX_UNITS * UNIT_VECTORS];

      UNROLL
      for (size_t n = 0; n < vectors; n++) {
        const size_t unit = n / UNIT_VECTORS, lane = n % UNIT_VECTORS * VF_LANES;
        const uint8_t *elements = v[unit] + at;

        if (read != READ_Q8_0) {
          x[n] = load_elements (read, elements, lane, s);
          continue;
        }
        /* Two units a block. */
        x[n] = load_elements (read, elements + sizeof (OxU16) + (first + unit) % 2 * UNIT, lane, s);
        x[n] = vf_mul (x[n], vf_set1_f16 (elements));
      }
      UNROLL_ROWS
      for (size_t r = 0; r < R; r++) {
        VF share = vf_set1 (p[r * STRIDE + s]);
        UNROLL
        for (size_t n = 0; n < vectors; n++)
          sums[r][n] = multiply_add (read, share, x[n], sums[r][n]);
      }
    }
    at += cell;
    if (at == wrap)
      at = 0;
  }

  UNROLL_ROWS
  for (size_t r = 0; r < R; r++) {
    VF shrink = vf_set1 (work->shrink[tile->first_row + r]), weight = vf_set1 (work->weight[tile->first_row + r]);
    UNROLL
    for (size_t n = 0; n < vectors; n++) {
      float *to = state + r * padded + n * VF_LANES;
      vf_store (to, vf_fma (sums[r][n], weight, vf_mul (vf_load (to), shrink)));
    }
  }
}

/* ---- Tiles ----------------------------------------------------------------------------------------------------------------- */

ALWAYS_INLINE void
weigh_tile (const int read, const size_t R, const size_t N, const Work *work, const Tile *tile)
{
  size_t group = tile->first_key / UNIT, last_group = (tile->last_key + UNIT - 1) / UNIT;

  for (; group + N <= last_group; group += N)
    score_groups (read, R, N, work, tile, group);
  for (; group < last_group; group++)
    score_groups (read, R, 1, work, tile, group);
  weigh_rows (read == READ_DOT, R, work, tile);
}

ALWAYS_INLINE void
sum_tile (const int read, const size_t R, const size_t N, const Work *work, const Tile *tile)
{
  size_t unit = 0, units = ox_attention_padded (work->a) / UNIT;

  for (; unit + N <= units; unit += N)
    sum_values (read, R, N, work, tile, unit);
  for (; unit < units; unit++)
    sum_values (read, R, 1, work, tile, unit);
}

/* TILES (X) says X (rows, units) for each size of a tile, the largest first. */
#define DEFINE_TILE(READ, ROWS, UNITS)                                                                                 \
  static void weigh_##READ##_##ROWS (const Work *work, const Tile *tile)                                               \
  {                                                                                                                    \
    weigh_tile (READ, ROWS, UNITS, work, tile);                                                                        \
  }                                                                                                                    \
  static void sum_##READ##_##ROWS (const Work *work, const Tile *tile)                                                 \
  {                                                                                                                    \
    sum_tile (READ, ROWS, UNITS, work, tile);                                                                          \
  }
#define TILE_ENTRY(READ, ROWS) [READ] = { weigh_##READ##_##ROWS, sum_##READ##_##ROWS }

#ifdef HAS_DOT
#define DEFINE_TILES(ROWS, UNITS) DEFINE_TILE (READ_DOT, ROWS, UNITS)
#define TILE_ENTRIES(ROWS, UNITS) { ROWS, { TILE_ENTRY (READ_DOT, ROWS) } },
#else
#define DEFINE_TILES(ROWS, UNITS)                                                                                      \
  DEFINE_TILE (READ_F32, ROWS, UNITS)                                                                                  \
  DEFINE_TILE (READ_F16, ROWS, UNITS)                                                                                  \
  DEFINE_TILE (READ_BF16, ROWS, UNITS)                                                                                 \
  DEFINE_TILE (READ_Q8_0, ROWS, UNITS)
#define TILE_ENTRIES(ROWS, UNITS)                                                                                      \
  { ROWS,                                                                                                              \
    { TILE_ENTRY (READ_F32, ROWS), TILE_ENTRY (READ_F16, ROWS), TILE_ENTRY (READ_BF16, ROWS),                          \
      TILE_ENTRY (READ_Q8_0, ROWS) } },
#endif

TILES (DEFINE_TILES)

static const struct {
  size_t rows;
  struct {
    void (*weigh) (const Work *work, const Tile *tile);
    void (*sum) (const Work *work, const Tile *tile);
  } reads[N_READS];
} tiles[] = { TILES (TILE_ENTRIES) };

/* The largest tile of at most @rows. */
static size_t
choose_tile (size_t rows)
{
  size_t i = 0;

  while (tiles[i].rows > rows)
    i++;
  return i;
}

/* The rows' queries times the scale, as tiles read them. */
static void
pack_queries (const Work *work, const int read)
{
  const OxAttention *a = work->a;
  size_t group = ox_attention_group (a), dim = a->kv->head_dim, tile_rows;
  size_t floats = (work->dims + STRIDE - 1) / STRIDE * STRIDE, chunk = read == READ_DOT ? 2 * STRIDE : STRIDE;
  size_t query = work->rows->query_begin, head = 0;
  VF scale = vf_set1 (a->scale * LOG2_E);

  for (size_t first = 0; first < work->n; first += tile_rows) {
    tile_rows = tiles[choose_tile (work->n - first)].rows;
    for (size_t r = 0; r < tile_rows; r++) {
      const float *q = a->q + (query * a->n_heads + work->rows->kv_head * group + head) * dim;

      for (size_t i = 0; i < dim; i += VF_LANES) {
        float *to = work->q + first * floats + (i / chunk * tile_rows + r) * STRIDE;
        VF x = vf_mul (i + VF_LANES <= dim ? vf_load (q + i) : vf_load_n (q + i, dim - i), scale);

#ifdef HAS_DOT
        if (read == READ_DOT) {
          vf_store_bf16 ((uint16_t *) (void *) to + i % chunk, x);
          continue;
        }
#endif
        vf_store (to + i % chunk, x);
      }
      if (++head == group) {
        head = 0;
        query++;
      }
    }
  }
}

/* Which keys of the block each row of the tile sees. False when there are none. */
static bool
set_keys (const Work *work, size_t first_row, size_t rows, Tile *tile)
{
  size_t group = ox_attention_group (work->a), from = work->block * OX_KV_BLOCK;
  size_t query = work->rows->query_begin + first_row / group, head = first_row % group;
  OxKeySpan keys = ox_attention_visible (work->a, query);

  tile->first_row = first_row;
  tile->first_key = OX_KV_BLOCK;
  tile->last_key = 0;
  for (size_t r = 0; r < rows; r++, head++) {
    size_t begin, end;

    if (head == group) {
      head = 0;
      keys = ox_attention_visible (work->a, ++query);
    }
    begin = keys.begin > from ? keys.begin - from : 0;
    end = keys.end > from ? keys.end - from : 0;
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
  size_t n = ox_attention_n_rows (a, rows), padded = ox_attention_padded (a), numbers = (n + 15) & ~(size_t) 15;
#ifdef HAS_DOT
  const int read = READ_DOT;
  size_t dims = (a->kv->head_dim + 1) / 2;
#else
  uint32_t type = a->kv->type;
  const int read = type == OX_TYPE_F32    ? READ_F32
                   : type == OX_TYPE_F16  ? READ_F16
                   : type == OX_TYPE_BF16 ? READ_BF16
                                          : READ_Q8_0;
  size_t dims = type == OX_TYPE_BF16 ? (a->kv->head_dim + 1) & ~(size_t) 1 : a->kv->head_dim;
#endif
  Work work = { .a = a, .rows = rows, .n = n, .dims = dims, .state = state };
  Tile tile;

  work.largest = state + n * padded;
  work.total = work.largest + n;
  work.scores = scratch;
  work.shrink = work.scores + n * STRIDE;
  work.weight = work.shrink + numbers;
  work.totals = work.weight + numbers;
  work.q = work.totals + numbers;
  pack_queries (&work, read);
  for (work.block = block_begin; work.block < block_end; work.block++) {
    memset (work.shrink, 0, 3 * numbers * sizeof (float));
    for (size_t row = 0, i; row < n; row += tiles[i].rows) {
      i = choose_tile (n - row);
      if (set_keys (&work, row, tiles[i].rows, &tile))
        tiles[i].reads[read].weigh (&work, &tile);
    }
    merge_totals (&work);
    for (size_t row = 0, i; row < n; row += tiles[i].rows) {
      i = choose_tile (n - row);
      if (set_keys (&work, row, tiles[i].rows, &tile))
        tiles[i].reads[read].sum (&work, &tile);
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
    old = vf_exp2 (vf_set1 (shrink));
    new = vf_exp2 (vf_set1 (weight));
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
