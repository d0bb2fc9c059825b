/* Keys and values in memory, and the C reference of attention, with sums in float64.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-attention.h"

#include <math.h>
#include <string.h>

#include "ox-attention-convert.h"
#include "ox-decode.h"
#include "ox-internal.h"

/* ---- The ring ---- */

static bool
round_up (size_t n, size_t step, size_t *result)
{
  if (__builtin_add_overflow (n, step - 1, result))
    return false;
  *result -= *result % step;
  return true;
}

bool
ox_kv_ring_init (OxKvRing *kv, uint32_t type, size_t n_heads, size_t head_dim, size_t capacity)
{
  uint64_t row_bytes, key_bytes, cell_bytes;
  size_t even, padded, rows, columns, cell = type == OX_TYPE_Q8_0 ? 32 : 16;

  if (type != OX_TYPE_F32 && type != OX_TYPE_F16 && type != OX_TYPE_BF16 && type != OX_TYPE_Q8_0)
    return false;
  if (!round_up (head_dim, 2, &even) || !round_up (head_dim, cell, &padded) ||
      !round_up (capacity, OX_KV_GROUP, &capacity) || __builtin_mul_overflow (n_heads, capacity, &rows) ||
      !ox_type_row_bytes (type, head_dim, &row_bytes) ||
      !ox_type_row_bytes (type, type == OX_TYPE_BF16 ? even : head_dim, &key_bytes) ||
      !ox_type_row_bytes (type, cell, &cell_bytes))
    return false;
  *kv = (OxKvRing) {
    .type = type,
    .n_heads = n_heads,
    .head_dim = head_dim,
    .capacity = capacity,
    .row_bytes = row_bytes,
    .key_bytes = key_bytes,
    .cell_bytes = cell_bytes,
    .columns = padded / cell,
  };
  return !__builtin_mul_overflow (rows, kv->key_bytes, &kv->k_bytes) && round_up (kv->k_bytes, 64, &kv->k_bytes) &&
         !__builtin_mul_overflow (capacity, kv->cell_bytes, &kv->column_bytes) &&
         !__builtin_mul_overflow (n_heads, kv->columns, &columns) &&
         !__builtin_mul_overflow (columns, kv->column_bytes, &kv->v_bytes) &&
         !__builtin_add_overflow (kv->k_bytes, kv->v_bytes, &rows);
}

/* The group of keys that @slot belongs to. */
static uint8_t *
key_group (const OxKvRing *kv, size_t head, size_t slot)
{
  return kv->k + (head * kv->capacity + slot / OX_KV_GROUP * OX_KV_GROUP) * kv->key_bytes;
}

/* Where element @i of a value lies; for Q8_0 its block. */
static uint8_t *
value_at (const OxKvRing *kv, size_t head, size_t slot, size_t i)
{
  size_t cell = kv->type == OX_TYPE_Q8_0 ? 32 : 16;
  uint8_t *column = kv->v + (head * kv->columns + i / cell) * kv->column_bytes;

  switch (kv->type) {
  case OX_TYPE_F32:
    return column + (slot * cell + i % cell) * sizeof (float);
  case OX_TYPE_F16:
    return column + (slot * cell + i % cell) * sizeof (uint16_t);
  case OX_TYPE_BF16:
    return column + ((slot / 2 * cell + i % cell) * 2 + slot % 2) * sizeof (uint16_t);
  default:
    return column + slot * sizeof (OxBlockQ8_0);
  }
}

/* @n elements of @size bytes, at_step bytes apart, to a row, where they are row_step bytes apart; or from there when @in. */
static inline void
copy_elements (uint8_t *at, size_t at_step, uint8_t *row, size_t row_step, size_t n, size_t size, bool in)
{
  for (size_t i = 0; i < n; i++, at += at_step, row += row_step)
    if (size == sizeof (float))
      memcpy (in ? at : row, in ? row : at, sizeof (float));
    else
      memcpy (in ? at : row, in ? row : at, sizeof (uint16_t));
}

/* Elements [first, first + n) of a key, of which @row has those alone; @first is a multiple of 32, and so is @first + @n except at the
 * end. */
static void
copy_key (const OxKvRing *kv, size_t head, size_t slot, size_t first, size_t n, uint8_t *row, bool in)
{
  size_t lane = slot % OX_KV_GROUP;
  uint8_t *group = key_group (kv, head, slot);

  switch (kv->type) {
  case OX_TYPE_F32:
    copy_elements (group + (first * OX_KV_GROUP + lane) * sizeof (float), OX_KV_GROUP * sizeof (float), row,
                   sizeof (float), n, sizeof (float), in);
    break;
  case OX_TYPE_F16:
    copy_elements (group + (first * OX_KV_GROUP + lane) * 2, OX_KV_GROUP * 2, row, 2, n, 2, in);
    break;
  case OX_TYPE_BF16:
    group += (first * OX_KV_GROUP + 2 * lane) * 2;
    copy_elements (group, OX_KV_GROUP * 4, row, 4, n / 2, 4, in);
    if (n % 2 != 0) {
      group += n / 2 * OX_KV_GROUP * 4;
      copy_elements (group, 0, row + n / 2 * 4, 0, 1, 2, in);
      if (in)
        memset (group + 2, 0, 2);
    }
    break;
  default:
    group += first / 32 * OX_KV_GROUP * sizeof (OxBlockQ8_0);
    for (; n > 0; n -= 32, row += sizeof (OxBlockQ8_0), group += OX_KV_GROUP * sizeof (OxBlockQ8_0)) {
      uint8_t *quants = group + OX_KV_GROUP * 2 + lane;

      copy_elements (group + 2 * lane, 0, row, 0, 1, 2, in);
      for (size_t i = 0; i < 32; i++)
        if (in)
          quants[i * OX_KV_GROUP] = row[2 + i];
        else
          row[2 + i] = quants[i * OX_KV_GROUP];
    }
  }
}

/* Likewise of a value. */
static void
copy_value (const OxKvRing *kv, size_t head, size_t slot, size_t first, size_t n, uint8_t *row, bool in)
{
  size_t cell = kv->type == OX_TYPE_Q8_0 ? 32 : 16, size = kv->cell_bytes / cell, end = first + n;

  for (size_t i = first; i < end; i += cell, row += kv->cell_bytes) {
    uint8_t *at = value_at (kv, head, slot, i);
    size_t here = end - i < cell ? end - i : cell;

    if (kv->type == OX_TYPE_BF16)
      copy_elements (at, 4, row, 2, here, 2, in);
    else if (kv->type == OX_TYPE_Q8_0)
      memcpy (in ? at : row, in ? row : at, sizeof (OxBlockQ8_0));
    else
      memcpy (in ? at : row, in ? row : at, here * size);
  }
}

void
ox_kv_ring_get (const OxKvRing *kv, size_t head, size_t position, void *k_row, void *v_row)
{
  size_t slot = position % kv->capacity;

  copy_key (kv, head, slot, 0, kv->head_dim, k_row, false);
  copy_value (kv, head, slot, 0, kv->head_dim, v_row, false);
}

void
ox_kv_ring_put (const OxKvRing *kv, size_t head, size_t position, const void *k_row, const void *v_row)
{
  size_t slot = position % kv->capacity;

  copy_key (kv, head, slot, 0, kv->head_dim, (uint8_t *) k_row, true);
  copy_value (kv, head, slot, 0, kv->head_dim, (uint8_t *) v_row, true);
}

void
ox_kv_ring_store (
  const OxKvRing *kv, const OxAttentionKernel *kernel, size_t head, size_t position, const float *k, const float *v)
{
  enum { CHUNK = 32 };
  size_t slot = position % kv->capacity;
  float row[CHUNK]; /* or what else elements are stored as */

  for (size_t i = 0; i < kv->head_dim; i += CHUNK) {
    size_t n = kv->head_dim - i < CHUNK ? kv->head_dim - i : CHUNK;

    kernel->store_row (kv->type, k + i, row, n);
    copy_key (kv, head, slot, i, n, (uint8_t *) row, true);
    kernel->store_row (kv->type, v + i, row, n);
    copy_value (kv, head, slot, i, n, (uint8_t *) row, true);
  }
}

/* ---- Rows, states ---- */

void
ox_attention_blocks (const OxAttention *a, const OxAttentionRows *rows, size_t *begin, size_t *end)
{
  size_t first = SIZE_MAX, last = 0;

  for (size_t query = rows->query_begin; query < rows->query_end; query++) {
    OxKeySpan keys = ox_attention_visible (a, query);
    first = keys.begin < first ? keys.begin : first;
    last = keys.end > last ? keys.end : last;
  }
  *begin = first / OX_KV_BLOCK;
  *end = (last + OX_KV_BLOCK - 1) / OX_KV_BLOCK;
}

size_t
ox_attention_state_floats (const OxAttention *a, size_t n)
{
  return n * ox_attention_padded (a) + ((2 * n + 15) & ~(size_t) 15);
}

void
ox_attention_clear (const OxAttention *a, size_t n, float *state)
{
  size_t sums = n * ox_attention_padded (a);

  memset (state, 0, ox_attention_state_floats (a, n) * sizeof (float));
  for (size_t i = 0; i < n; i++)
    state[sums + i] = -INFINITY;
}

size_t
ox_attention_scratch_floats (const OxAttention *a, size_t n)
{
  /* Of each row the scores, the queries and three numbers; or what the reference needs: the sums of one row in float64. */
  const size_t stride = OX_ATTENTION_STRIDE / sizeof (float);
  size_t chunks = (a->kv->head_dim + stride - 1) / stride, numbers = 3 * ((n + 15) & ~(size_t) 15);
  size_t rows = n * stride * (1 + chunks) + numbers, sums = 2 * ox_attention_padded (a);

  return rows > sums ? rows : sums;
}

/* ---- The reference ---- */

static void
store_row_c (uint32_t type, const float *x, void *row, size_t n)
{
  for (size_t i = 0; i < n; i++)
    switch (type) {
    case OX_TYPE_F32:
      ((float *) row)[i] = x[i];
      break;
    case OX_TYPE_F16:
      ((uint16_t *) row)[i] = ox_f32_to_f16 (ox_f16_clamp (x[i]));
      break;
    case OX_TYPE_BF16:
      ((uint16_t *) row)[i] = ox_f32_to_bf16 (x[i]);
      break;
    default:
      if (i % 32 == 0)
        ox_store_q8_0 (x + i, (OxBlockQ8_0 *) row + i / 32);
    }
}

static double
key_element (const OxKvRing *kv, size_t head, size_t position, size_t i)
{
  size_t slot = position % kv->capacity, lane = slot % OX_KV_GROUP;
  const uint8_t *group = key_group (kv, head, slot);

  switch (kv->type) {
  case OX_TYPE_F32:
    return ((const float *) group)[i * OX_KV_GROUP + lane];
  case OX_TYPE_F16:
    return ox_f16_to_f32 (((const uint16_t *) group)[i * OX_KV_GROUP + lane]);
  case OX_TYPE_BF16:
    return ox_bf16_to_f32 (((const uint16_t *) group)[(i / 2 * OX_KV_GROUP + lane) * 2 + i % 2]);
  default:
    group += i / 32 * OX_KV_GROUP * sizeof (OxBlockQ8_0);
    return ox_f16_to_f32 (ox_u16 (((const OxU16 *) group)[lane])) *
           (float) ((const int8_t *) group)[OX_KV_GROUP * sizeof (OxU16) + i % 32 * OX_KV_GROUP + lane];
  }
}

static double
value_element (const OxKvRing *kv, size_t head, size_t position, size_t i)
{
  const uint8_t *at = value_at (kv, head, position % kv->capacity, i);

  switch (kv->type) {
  case OX_TYPE_F32:
    return *(const float *) at;
  case OX_TYPE_F16:
    return ox_f16_to_f32 (*(const uint16_t *) at);
  case OX_TYPE_BF16:
    return ox_bf16_to_f32 (*(const uint16_t *) at);
  default:
    return ox_f16_to_f32 (ox_u16 (((const OxBlockQ8_0 *) at)->d)) * (float) ((const OxBlockQ8_0 *) at)->qs[i % 32];
  }
}

/* Softmax of one block of keys for one row (Milakov & Gimelshein 2018; Dao et al. 2022): what was summed before is scaled down when a
 * greater score appears. */
static void
add_block_c (const OxAttention *a, const OxAttentionRows *rows, size_t block, size_t row, float *state, float *scratch)
{
  const OxKvRing *kv = a->kv;
  size_t group = ox_attention_group (a), n = ox_attention_n_rows (a, rows), padded = ox_attention_padded (a);
  size_t query = rows->query_begin + row / group, first = block * OX_KV_BLOCK, last = first + OX_KV_BLOCK;
  const float *q = a->q + (query * a->n_heads + rows->kv_head * group + row % group) * kv->head_dim;
  float *state_sums = state + row * padded, *state_largest = state + n * padded + row, *state_total = state_largest + n;
  double scores[OX_KV_BLOCK], top = -INFINITY, greatest, shrink, weight, total = 0, *sums = (double *) scratch;
  OxKeySpan keys = ox_attention_visible (a, query);

  first = keys.begin > first ? keys.begin : first;
  last = keys.end < last ? keys.end : last;
  if (first >= last)
    return;
  for (size_t p = first; p < last; p++) {
    double score = 0;
    for (size_t i = 0; i < kv->head_dim; i++)
      score += q[i] * key_element (kv, rows->kv_head, p, i);
    score *= a->scale;
    if (a->softcap != 0)
      score = a->softcap * tanh (score / a->softcap);
    scores[p - first] = score;
    top = fmax (top, score);
  }
  top = (float) top;
  for (size_t i = 0; i < padded; i++)
    sums[i] = 0;
  for (size_t p = first; p < last; p++) {
    double share = exp (scores[p - first] - top);
    total += share;
    for (size_t i = 0; i < kv->head_dim; i++)
      sums[i] += share * value_element (kv, rows->kv_head, p, i);
  }
  greatest = fmax (*state_largest, top);
  shrink = exp (*state_largest - greatest);
  weight = exp (top - greatest);
  *state_largest = (float) greatest;
  /* Rounded first, as a state of its own would be. */
  *state_total = (float) (*state_total * shrink + (float) total * weight);
  for (size_t i = 0; i < padded; i++)
    state_sums[i] = (float) (state_sums[i] * shrink + (float) sums[i] * weight);
}

static void
add_blocks_c (
  const OxAttention *a, const OxAttentionRows *rows, size_t block_begin, size_t block_end, float *state, float *scratch)
{
  for (size_t block = block_begin; block < block_end; block++)
    for (size_t row = 0; row < ox_attention_n_rows (a, rows); row++)
      add_block_c (a, rows, block, row, state, scratch);
}

static void
merge_c (const OxAttention *a, size_t n, size_t row_begin, size_t row_end, float *state, const float *part)
{
  size_t padded = ox_attention_padded (a);
  float *largest = state + n * padded, *total = largest + n;
  const float *part_largest = part + n * padded, *part_total = part_largest + n;

  for (size_t row = row_begin; row < row_end; row++) {
    double greatest = fmaxf (largest[row], part_largest[row]), shrink, weight;

    if (isinf (part_largest[row]) && part_largest[row] < 0)
      continue;
    shrink = exp (largest[row] - greatest);
    weight = exp (part_largest[row] - greatest);
    largest[row] = (float) greatest;
    total[row] = (float) (total[row] * shrink + part_total[row] * weight);
    for (size_t i = row * padded; i < (row + 1) * padded; i++)
      state[i] = (float) (state[i] * shrink + part[i] * weight);
  }
}

static void
finish_c (const OxAttention *a, const OxAttentionRows *rows, const float *state)
{
  size_t group = ox_attention_group (a), n = ox_attention_n_rows (a, rows), padded = ox_attention_padded (a);
  size_t dim = a->kv->head_dim;
  const float *total = state + n * padded + n;

  for (size_t row = 0; row < n; row++) {
    size_t query = rows->query_begin + row / group;
    float *out = a->out + (query * a->n_heads + rows->kv_head * group + row % group) * dim;
    for (size_t i = 0; i < dim; i++)
      out[i] = state[row * padded + i] / total[row];
  }
}

const OxAttentionKernel ox_attention_c = { store_row_c, add_blocks_c, merge_c, finish_c, OX_TYPE_F32 };
