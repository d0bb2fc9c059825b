/* What AMX computes, in plain C: what the instructions are compared with before they are used, and in tests what stands for them and for the
 * vectors of ox-simd-avx512.h.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "ox-blocks.h"

typedef struct {
  uint8_t row[16][64];
} OxTile;

/* tdpbssd: @rows of C and A, @columns of C, @steps rows of B. */
static inline void
ox_emulated_dot_s8 (OxTile *c, const OxTile *a, const OxTile *b, size_t rows, size_t columns, size_t steps)
{
  for (size_t i = 0; i < rows; i++)
    for (size_t j = 0; j < columns; j++) {
      uint32_t sum;

      memcpy (&sum, c->row[i] + j * 4, 4);
      for (size_t k = 0; k < steps * 4; k++)
        sum += (uint32_t) ((int8_t) a->row[i][k] * (int8_t) b->row[k / 4][j * 4 + k % 4]);
      memcpy (c->row[i] + j * 4, &sum, 4);
    }
}

/* Subnormal numbers count as zero, as factors and as results. */
static inline float
ox_emulated_flush (float x)
{
  return fabsf (x) < FLT_MIN ? copysignf (0, x) : x;
}

static inline float
ox_emulated_bf16 (const uint8_t *p)
{
  uint16_t half;

  memcpy (&half, p, sizeof half);
  return ox_emulated_flush (ox_bf16_to_f32 (half));
}

/* tdpbf16ps, likewise: sums of the even columns and of the odd ones begin at zero, each fused product is rounded, then their sum is, and
 * then that with what was there (Intel SDM vol. 2, TDPBF16PS). */
static inline void
ox_emulated_dot_bf16 (OxTile *c, const OxTile *a, const OxTile *b, size_t rows, size_t columns, size_t steps)
{
  for (size_t i = 0; i < rows; i++)
    for (size_t j = 0; j < columns; j++) {
      float total, sums[2] = { 0 };

      memcpy (&total, c->row[i] + j * 4, 4);
      for (size_t k = 0; k < steps * 2; k++)
        sums[k % 2] = ox_emulated_flush (fmaf (ox_emulated_bf16 (a->row[i] + k * 2),
                                               ox_emulated_bf16 (b->row[k / 2] + j * 4 + k % 2 * 2), sums[k % 2]));
      total = ox_emulated_flush (ox_emulated_flush (total) + ox_emulated_flush (sums[0] + sums[1]));
      memcpy (c->row[i] + j * 4, &total, 4);
    }
}

#ifdef OX_AMX_EMULATED

/* ---- Instructions --------------------------------------------------------------------------------------------------- */

typedef struct {
  OxTileConfig config; /* palette 0: released */
  OxTile tiles[8];
  unsigned configurations, faults; /* how often; what a processor would have raised an exception for */
} OxEmulatedTiles;

/* Defined by the test. */
extern OxEmulatedTiles ox_emulated_tiles;

static inline void
ox_emulated_configure (const OxTileConfig *config)
{
  OxEmulatedTiles *t = &ox_emulated_tiles;

  memset (t->tiles, 0, sizeof t->tiles);
  t->configurations++;
  if (config == NULL) {
    t->config.palette = 0;
    return;
  }
  t->config = *config;
  if (config->palette != 1 || config->start_row != 0)
    t->faults++;
  for (unsigned i = 0; i < 16; i++)
    if (config->rows[i] > (i < 8 ? OX_TILE_ROWS : 0) || config->row_bytes[i] > (i < 8 ? OX_TILE_BYTES : 0) ||
        (config->rows[i] == 0) != (config->row_bytes[i] == 0))
      t->faults++;
}

/* A configured tile. */
static inline OxTile *
ox_emulated_tile (unsigned i)
{
  OxEmulatedTiles *t = &ox_emulated_tiles;

  if (t->config.palette != 1 || t->config.rows[i] == 0)
    t->faults++;
  return &t->tiles[i];
}

/* Rows beyond those of the tile, and bytes beyond those of a row, become zero. */
static inline void
ox_emulated_load (unsigned i, const void *p, size_t stride)
{
  OxTile *tile = ox_emulated_tile (i);

  memset (tile, 0, sizeof *tile);
  for (size_t r = 0; r < ox_emulated_tiles.config.rows[i]; r++)
    memcpy (tile->row[r], (const uint8_t *) p + r * stride, ox_emulated_tiles.config.row_bytes[i]);
}

static inline void
ox_emulated_store (unsigned i, void *p, size_t stride)
{
  const OxTile *tile = ox_emulated_tile (i);

  for (size_t r = 0; r < ox_emulated_tiles.config.rows[i]; r++)
    memcpy ((uint8_t *) p + r * stride, tile->row[r], ox_emulated_tiles.config.row_bytes[i]);
}

static inline void
ox_emulated_dot (void (*dot) (OxTile *c, const OxTile *a, const OxTile *b, size_t rows, size_t columns, size_t steps),
                 unsigned c,
                 unsigned a,
                 unsigned b)
{
  const OxTileConfig *config = &ox_emulated_tiles.config;

  if (config->rows[c] != config->rows[a] || config->row_bytes[c] != config->row_bytes[b] ||
      config->row_bytes[a] != config->rows[b] * 4 || config->row_bytes[c] % 4 != 0 || c == a || a == b || b == c)
    ox_emulated_tiles.faults++;
  dot (ox_emulated_tile (c), ox_emulated_tile (a), ox_emulated_tile (b), config->rows[c], config->row_bytes[c] / 4,
       config->rows[b]);
}

#define OX_TILE_CONFIGURE(CONFIG) ox_emulated_configure (CONFIG)
#define OX_TILE_RELEASE() ox_emulated_configure (NULL)
#define OX_TILE_ZERO(T) memset (ox_emulated_tile (T), 0, sizeof (OxTile))
#define OX_TILE_LOAD(T, P, STRIDE) ox_emulated_load (T, P, STRIDE)
#define OX_TILE_STORE(T, P, STRIDE) ox_emulated_store (T, P, STRIDE)
#define OX_TILE_DOT_S8(C, A, B) ox_emulated_dot (ox_emulated_dot_s8, C, A, B)
#define OX_TILE_DOT_BF16(C, A, B) ox_emulated_dot (ox_emulated_dot_bf16, C, A, B)

/* ---- Vectors -------------------------------------------------------------------------------------------------------- */

#define VF_LANES 16
#define OX_LEVEL "amx-emulated"

typedef struct {
  float lane[VF_LANES];
} VF;

#define FOR_LANES for (unsigned i = 0; i < VF_LANES; i++)

static inline VF
vf_load_n (const float *p, size_t n)
{
  VF v = { { 0 } };
  memcpy (v.lane, p, n * sizeof (float));
  return v;
}

static inline VF
vf_load (const float *p)
{
  return vf_load_n (p, VF_LANES);
}

static inline void
vf_store_n (float *p, VF v, size_t n)
{
  memcpy (p, v.lane, n * sizeof (float));
}

static inline void
vf_store (float *p, VF v)
{
  vf_store_n (p, v, VF_LANES);
}

static inline VF
vf_set1 (float x)
{
  VF v;
  FOR_LANES v.lane[i] = x;
  return v;
}

static inline VF
vf_add (VF a, VF b)
{
  FOR_LANES a.lane[i] += b.lane[i];
  return a;
}

static inline VF
vf_sub (VF a, VF b)
{
  FOR_LANES a.lane[i] -= b.lane[i];
  return a;
}

static inline VF
vf_div (VF a, VF b)
{
  FOR_LANES a.lane[i] /= b.lane[i];
  return a;
}

static inline VF
vf_max (VF a, VF b)
{
  FOR_LANES a.lane[i] = a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i];
  return a;
}

static inline VF
vf_min (VF a, VF b)
{
  FOR_LANES a.lane[i] = a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i];
  return a;
}

static inline VF
vf_round (VF a)
{
  FOR_LANES a.lane[i] = nearbyintf (a.lane[i]);
  return a;
}

static inline VF
vf_scale_exponent (VF a, VF n)
{
  FOR_LANES a.lane[i] = ldexpf (a.lane[i], (int) n.lane[i]);
  return a;
}

static inline VF
vf_abs (VF a)
{
  FOR_LANES a.lane[i] = fabsf (a.lane[i]);
  return a;
}

static inline VF
vf_less (VF a, VF b, VF x, VF y)
{
  FOR_LANES a.lane[i] = a.lane[i] < b.lane[i] ? x.lane[i] : y.lane[i];
  return a;
}

static inline VF
vf_load_bf16 (const void *p)
{
  const uint16_t *half = p;
  VF v;
  FOR_LANES v.lane[i] = ox_bf16_to_f32 (half[i]);
  return v;
}

static inline VF
vf_mul (VF a, VF b)
{
  FOR_LANES a.lane[i] *= b.lane[i];
  return a;
}

static inline VF
vf_fma (VF a, VF b, VF c)
{
  FOR_LANES a.lane[i] = fmaf (a.lane[i], b.lane[i], c.lane[i]);
  return a;
}

static inline VF
vf_load_f16 (const void *p)
{
  const uint16_t *half = p;
  VF v;
  FOR_LANES v.lane[i] = ox_f16_to_f32 (half[i]);
  return v;
}

static inline VF
vf_load_bf16_even (const void *p)
{
  const uint16_t *half = p;
  VF v;
  FOR_LANES v.lane[i] = ox_bf16_to_f32 (half[i * 2]);
  return v;
}

static inline VF
vf_load_bf16_odd (const void *p)
{
  return vf_load_bf16_even ((const uint16_t *) p + 1);
}

static inline VF
vf_load_i32 (const int32_t *p)
{
  VF v;
  FOR_LANES v.lane[i] = (float) p[i];
  return v;
}

#undef FOR_LANES

#endif
