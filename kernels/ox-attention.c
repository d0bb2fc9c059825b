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
  uint64_t key_bytes, value_bytes;
  size_t padded, rows;

  if (type != OX_TYPE_F32 && type != OX_TYPE_F16 && type != OX_TYPE_BF16 && type != OX_TYPE_Q8_0)
    return false;
  if (!round_up (head_dim, 16, &padded) || !round_up (capacity, OX_KV_GROUP, &capacity) ||
      __builtin_mul_overflow (n_heads, capacity, &rows) || !ox_type_row_bytes (type, head_dim, &key_bytes) ||
      !ox_type_row_bytes (type, padded, &value_bytes))
    return false;
  *kv = (OxKvRing) {
    .type = type,
    .n_heads = n_heads,
    .head_dim = head_dim,
    .capacity = capacity,
    .key_bytes = key_bytes,
    .value_bytes = value_bytes,
  };
  return !__builtin_mul_overflow (rows, kv->key_bytes, &kv->k_bytes) && round_up (kv->k_bytes, 64, &kv->k_bytes) &&
         !__builtin_mul_overflow (rows, kv->value_bytes, &kv->v_bytes) &&
         !__builtin_add_overflow (kv->k_bytes, kv->v_bytes, &rows);
}

/* Copies a key out of its group, or into it when @in. */
static void
copy_key (const OxKvRing *kv, size_t head, size_t slot, uint8_t *row, bool in)
{
  size_t lane = slot % OX_KV_GROUP;
  uint8_t *group = kv->k + (head * kv->capacity + slot - lane) * kv->key_bytes;

  if (kv->type == OX_TYPE_Q8_0) {
    for (size_t b = 0; b < kv->head_dim / 32; b++, group += OX_KV_GROUP * sizeof (OxBlockQ8_0)) {
      OxBlockQ8_0 *block = (OxBlockQ8_0 *) row + b;
      OxU16 *scale = (OxU16 *) group + lane;
      int8_t *quants = (int8_t *) (group + OX_KV_GROUP * sizeof (OxU16)) + lane;

      if (in)
        *scale = block->d;
      else
        block->d = *scale;
      for (size_t i = 0; i < 32; i++)
        if (in)
          quants[i * OX_KV_GROUP] = block->qs[i];
        else
          block->qs[i] = quants[i * OX_KV_GROUP];
    }
    return;
  }
  if (kv->type == OX_TYPE_F32) {
    for (size_t i = 0; i < kv->head_dim; i++) {
      uint8_t *element = group + (i * OX_KV_GROUP + lane) * sizeof (float);
      memcpy (in ? element : row + i * sizeof (float), in ? row + i * sizeof (float) : element, sizeof (float));
    }
    return;
  }
  for (size_t i = 0; i < kv->head_dim; i++) {
    OxU16 *element = (OxU16 *) group + i * OX_KV_GROUP + lane;
    if (in)
      *element = ((OxU16 *) row)[i];
    else
      ((OxU16 *) row)[i] = *element;
  }
}

void
ox_kv_ring_get (const OxKvRing *kv, size_t head, size_t position, void *k_row, void *v_row)
{
  size_t slot = position % kv->capacity;

  copy_key (kv, head, slot, k_row, false);
  memcpy (v_row, kv->v + (head * kv->capacity + slot) * kv->value_bytes, kv->key_bytes);
}

void
ox_kv_ring_put (const OxKvRing *kv, size_t head, size_t position, const void *k_row, const void *v_row)
{
  size_t slot = position % kv->capacity;

  copy_key (kv, head, slot, (uint8_t *) k_row, true);
  memcpy (kv->v + (head * kv->capacity + slot) * kv->value_bytes, v_row, kv->key_bytes);
}

void
ox_kv_ring_store (
  const OxKvRing *kv, const OxAttentionKernel *kernel, size_t head, size_t position, const float *k, const float *v)
{
  size_t slot = position % kv->capacity;
  uint8_t *value = kv->v + (head * kv->capacity + slot) * kv->value_bytes;

  /* A key is as large as a value: it is made where that will be. */
  kernel->store_row (kv->type, k, value, kv->head_dim);
  copy_key (kv, head, slot, value, true);
  kernel->store_row (kv->type, v, value, kv->head_dim);
}

/* ---- Rows, states ---- */

/* The keys that a query sees: [begin, end). */
static void
visible (const OxAttention *a, size_t query, size_t *begin, size_t *end)
{
  *end = a->position + query + 1;
  *begin = a->window != 0 && *end > a->window ? *end - a->window : 0;
}

void
ox_attention_blocks (const OxAttention *a, const OxAttentionRows *rows, size_t *begin, size_t *end)
{
  size_t first, last, unused;

  visible (a, rows->query_begin, &first, &unused);
  visible (a, rows->query_end - 1, &unused, &last);
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
  /* The queries and the scores of as many rows as an instruction set takes at once; or what the reference needs: the sums of one row in
   * float64 and a value. */
  return (n + 2) * ox_attention_padded (a) + OX_ATTENTION_TILE * OX_KV_BLOCK;
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

static float
key_element (const OxKvRing *kv, size_t head, size_t position, size_t i)
{
  size_t slot = position % kv->capacity, lane = slot % OX_KV_GROUP;
  const uint8_t *group = kv->k + (head * kv->capacity + slot - lane) * kv->key_bytes;

  switch (kv->type) {
  case OX_TYPE_F32:
    return ((const float *) group)[i * OX_KV_GROUP + lane];
  case OX_TYPE_F16:
    return ox_f16_to_f32 (((const uint16_t *) group)[i * OX_KV_GROUP + lane]);
  case OX_TYPE_BF16:
    return ox_bf16_to_f32 (((const uint16_t *) group)[i * OX_KV_GROUP + lane]);
  default:
    group += i / 32 * OX_KV_GROUP * sizeof (OxBlockQ8_0);
    return ox_f16_to_f32 (ox_u16 (((const OxU16 *) group)[lane])) *
           (float) ((const int8_t *) group)[OX_KV_GROUP * sizeof (OxU16) + i % 32 * OX_KV_GROUP + lane];
  }
}

/* Softmax of one block of keys for one row (Milakov & Gimelshein 2018; Dao et al. 2022): what was summed before is scaled down when a
 * greater score appears. */
static void
add_block_c (const OxAttention *a, const OxAttentionRows *rows, size_t block, size_t row, float *state, float *scratch)
{
  const OxKvRing *kv = a->kv;
  size_t group = ox_attention_group (a), n = ox_attention_n_rows (a, rows), padded = ox_attention_padded (a);
  size_t query = rows->query_begin + row / group, begin, end, first = block * OX_KV_BLOCK;
  const float *q = a->q + (query * a->n_heads + rows->kv_head * group + row % group) * kv->head_dim;
  float *state_sums = state + row * padded, *state_largest = state + n * padded + row, *state_total = state_largest + n;
  double scores[OX_KV_BLOCK], top = -INFINITY, greatest, shrink, weight, total = 0, *sums = (double *) scratch;
  float *value = scratch + 2 * padded;

  visible (a, query, &begin, &end);
  begin = begin > first ? begin : first;
  end = end < first + OX_KV_BLOCK ? end : first + OX_KV_BLOCK;
  if (begin >= end)
    return;
  for (size_t p = begin; p < end; p++) {
    double score = 0;
    for (size_t i = 0; i < kv->head_dim; i++)
      score += (double) q[i] * key_element (kv, rows->kv_head, p, i);
    scores[p - first] = score * a->scale;
    top = fmax (top, scores[p - first]);
  }
  top = (float) top;
  for (size_t i = 0; i < padded; i++)
    sums[i] = 0;
  for (size_t p = begin; p < end; p++) {
    double share = exp (scores[p - first] - top);
    ox_dequantize_row (kv->type, kv->v + (rows->kv_head * kv->capacity + p % kv->capacity) * kv->value_bytes, value,
                       kv->head_dim);
    total += share;
    for (size_t i = 0; i < kv->head_dim; i++)
      sums[i] += share * value[i];
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

const OxAttentionKernel ox_attention_c = { store_row_c, add_blocks_c, merge_c, finish_c };
