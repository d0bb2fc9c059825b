/* Integer panels for Arm's 8-bit matrix instructions (Armv8.6 FEAT_I8MM).
 *
 * smmla multiplies two outputs × eight columns by two activation rows × eight columns: twice the products of sdot, which runs as
 * often. Two neighbouring steps of a panel, zipped in words, are what it takes. Zipping them for each four activation rows would cost
 * half as many instructions as smmla itself, so panels are zipped where they are unpacked anyway, once for many activation rows, and
 * so are the rows, once for two panels. Few rows use products by element, of which usdot takes whole bytes without a sign.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

#if defined(__ARM_FEATURE_MATMUL_INT8) && defined(__ARM_FEATURE_DOTPROD)

#define PANEL_LEVEL "i8mm"
#define OX_USE_USDOT 1
#define OX_USE_MATRICES 1
#define TILE_PAIRS (TILE_ROWS / 2)

#include "ox-panel-arm-dot.h"

/* Pair p of outputs, columns 8 · k …: quants[k][p]; scales of the pair, twice. */
typedef struct {
  float scales[4][OX_PANEL_ROWS / 2][4];
  int8_t quants[4][OX_PANEL_ROWS / 2][16];
} UnpackedGroup;

ALWAYS_INLINE void
unpack_group (const OxPanelFormat f, const uint8_t *panel, size_t g, UnpackedGroup *out)
{
  const uint8_t *quants = panel + ox_panel_quants_offset (f, g), *scales = panel + ox_panel_scales_offset (f, g);

  UNROLL
  for (size_t value = 0; value < ox_panel_values (f); value++) {
    UNROLL
    for (size_t v = 0; v < VECTORS; v++) {
      float64x2_t four = vreinterpretq_f64_f32 (load_scale (false, scales, value, v * 4));
      vst1q_f32 (out->scales[value][v * 2], vreinterpretq_f32_f64 (vdupq_laneq_f64 (four, 0)));
      vst1q_f32 (out->scales[value][v * 2 + 1], vreinterpretq_f32_f64 (vdupq_laneq_f64 (four, 1)));
    }
  }
  UNROLL
  for (size_t k = 0; k < 4; k++) {
    UNROLL
    for (size_t v = 0; v < VECTORS; v++) {
      int32x4_t a = vreinterpretq_s32_s8 (load_signed (f, quants + v * 16, k / 2, k % 2 * 2));
      int32x4_t b = vreinterpretq_s32_s8 (load_signed (f, quants + v * 16, k / 2, k % 2 * 2 + 1));
      vst1q_s8 (out->quants[k][v * 2], vreinterpretq_s8_s32 (vzip1q_s32 (a, b)));
      vst1q_s8 (out->quants[k][v * 2 + 1], vreinterpretq_s8_s32 (vzip2q_s32 (a, b)));
    }
  }
}

/* Four activation rows as pairs: columns 8 · k … of both, what both are multiplied by, and that times the sums of either half or, for
 * scales of 32, of both. */
typedef struct {
  struct {
    float scale[TILE_PAIRS][4];
    float sums[2][TILE_PAIRS][4];
    int8_t q[4][TILE_PAIRS][16];
  } groups[PART_GROUPS];
} TileRows;

ALWAYS_INLINE float32x4_t
two_each (float a, float b)
{
  return vcombine_f32 (vdup_n_f32 (a), vdup_n_f32 (b));
}

ALWAYS_INLINE void
prepare_rows (const OxPanelFormat f, const OxBlockQ8 *x, size_t groups, size_t n, TileRows *rows)
{
  for (size_t g = 0; g < n; g++) {
    UNROLL
    for (size_t pair = 0; pair < TILE_PAIRS; pair++) {
      const OxBlockQ8 *a = x + pair * 2 * groups + g, *b = a + groups;

      UNROLL
      for (size_t half = 0; half < 2; half++) {
        int64x2_t qa = vreinterpretq_s64_s8 (vld1q_s8 (a->q + half * 16)),
                  qb = vreinterpretq_s64_s8 (vld1q_s8 (b->q + half * 16));
        vst1q_s8 (rows->groups[g].q[half * 2][pair], vreinterpretq_s8_s64 (vzip1q_s64 (qa, qb)));
        vst1q_s8 (rows->groups[g].q[half * 2 + 1][pair], vreinterpretq_s8_s64 (vzip2q_s64 (qa, qb)));
      }
      vst1q_f32 (rows->groups[g].scale[pair], two_each (a->scale, b->scale));
      UNROLL
      for (size_t part = 0; part < 32 / f.group && f.affine; part++)
        vst1q_f32 (rows->groups[g].sums[part][pair],
                   two_each (a->scale * (float) block_sum (f, a, part), b->scale * (float) block_sum (f, b, part)));
    }
  }
}

/* Of two rows and two pairs of outputs: the four outputs of the first row and of the second. */
ALWAYS_INLINE float32x4_t
row_of_pairs (float32x4_t p, float32x4_t q, const size_t row)
{
  float64x2_t a = vreinterpretq_f64_f32 (p), b = vreinterpretq_f64_f32 (q);

  return vreinterpretq_f32_f64 (row == 0 ? vzip1q_f64 (a, b) : vzip2q_f64 (a, b));
}

/* Adds @n groups of eight outputs, from @first, to four rows of sums that begin at @y. */
ALWAYS_INLINE void
many_tile (const OxPanelFormat f,
           const UnpackedGroup *unpacked,
           size_t n,
           const size_t first,
           const TileRows *in,
           float *y,
           size_t y_stride,
           size_t rows,
           const float *row_scale,
           Part whole)
{
  const size_t parts = 32 / f.group, values = f.affine ? 2 : 1;
  float32x4_t totals[HALF_ROWS / 2][TILE_PAIRS];

  UNROLL
  for (size_t v = 0; v < 2; v++) {
    UNROLL
    for (size_t i = 0; i < TILE_PAIRS; i++) {
      size_t left = rows > v * 4 ? rows - v * 4 : 0;
      float32x4_t a = whole.begins ? vdupq_n_f32 (0) : load_part (y + i * 2 * y_stride + v * 4, left);
      float32x4_t b = whole.begins ? vdupq_n_f32 (0) : load_part (y + (i * 2 + 1) * y_stride + v * 4, left);
      totals[v * 2][i] = row_of_pairs (a, b, 0);
      totals[v * 2 + 1][i] = row_of_pairs (a, b, 1);
    }
  }

  for (size_t g = 0; g < n; g++) {
    UNROLL
    for (size_t part = 0; part < parts; part++) {
      int32x4_t sums[HALF_ROWS / 2][TILE_PAIRS];

      UNROLL
      for (size_t p = 0; p < HALF_ROWS / 2; p++) {
        UNROLL
        for (size_t i = 0; i < TILE_PAIRS; i++)
          sums[p][i] = vdupq_n_s32 (SUM_START);
      }
      UNROLL
      for (size_t k = part * 4 / parts; k < (part + 1) * 4 / parts; k++) {
        int8x16_t x[TILE_PAIRS];
        UNROLL
        for (size_t i = 0; i < TILE_PAIRS; i++)
          x[i] = vld1q_s8 (in->groups[g].q[k][i]);
        UNROLL
        for (size_t p = 0; p < HALF_ROWS / 2; p++) {
          int8x16_t q = vld1q_s8 (unpacked[g].quants[k][first / 2 + p]);
          UNROLL
          for (size_t i = 0; i < TILE_PAIRS; i++)
            sums[p][i] = vmmlaq_s32 (sums[p][i], x[i], q);
        }
      }
      UNROLL
      for (size_t p = 0; p < HALF_ROWS / 2; p++) {
        float32x4_t d = vld1q_f32 (unpacked[g].scales[part * values][first / 2 + p]);
        UNROLL
        for (size_t i = 0; i < TILE_PAIRS; i++)
          totals[p][i] =
            vfmaq_f32 (totals[p][i], vmulq_f32 (sums_to_float (sums[p][i]), vld1q_f32 (in->groups[g].scale[i])), d);
        if (f.affine) {
          float32x4_t min = vld1q_f32 (unpacked[g].scales[part * values + 1][first / 2 + p]);
          UNROLL
          for (size_t i = 0; i < TILE_PAIRS; i++)
            totals[p][i] = vfmaq_f32 (totals[p][i], min, vld1q_f32 (in->groups[g].sums[part][i]));
        }
      }
    }
  }

  UNROLL
  for (size_t v = 0; v < 2; v++) {
    float32x4_t scale = whole.ends ? vld1q_f32 (row_scale + v * 4) : vdupq_n_f32 (1);
    UNROLL
    for (size_t i = 0; i < TILE_ROWS; i++)
      store_part (y + i * y_stride + v * 4,
                  vmulq_f32 (row_of_pairs (totals[v * 2][i / 2], totals[v * 2 + 1][i / 2], i % 2), scale),
                  rows > v * 4 ? rows - v * 4 : 0);
  }
}

#include "ox-panel-arm-template.h"

const OxLinearSet ox_panel_i8mm = { .integer = panel_kernels };

#else

const OxLinearSet ox_panel_i8mm = { NULL, NULL, NULL };

#endif
