/* What the integer panel kernels of Arm's instruction sets share: how weights and scales are read, and turned into bytes with a sign
 * once for many activation rows. The including file defines OX_USE_USDOT.
 *
 * A step of a panel (ox-panel.h) is four registers of four outputs × four columns. Quants below 128 are signed bytes as they are, and
 * their zero point is paid for by the sums of the activations, as on x86; whole bytes change their sign bit unless an instruction takes
 * them without a sign (OX_USE_USDOT).
 *
 * The float operations and their order are those of the x86 kernels, so that results are the same on both, bit for bit.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <arm_neon.h>
#include <string.h>

#include "ox-panel.h"
#include "ox-quantize.h"
#include "ox-tile.h"

#define VECTORS 4     /* registers of four outputs in a step of a panel */
#define STEP_BYTES 64 /* from a step to the next */
#define TILE_ROWS 4   /* activation rows of the largest tile */
#define HALF_ROWS 8   /* outputs of a tile, where all 16 of a panel have no room */

/* ---- Integer sums to float ---------------------------------------------------------------------------------------- */

/* Integer sums start at the bits of 1.5 · 2^23: read as a float that is 1.5 · 2^23 + sum while |sum| < 2^22, and the difference is
 * exact. The sum of a group is at most 32 · 255 · 127 < 2^20. A subtraction has all vector pipes, a conversion often one, and twice
 * as long (Cortex-A76 and Neoverse N1). */
#define SUM_START 0x4b400000

ALWAYS_INLINE float32x4_t
sums_to_float (int32x4_t sums)
{
  return vsubq_f32 (vreinterpretq_f32_s32 (sums), vdupq_n_f32 (0x1.8p23f));
}

/* ---- Reading panels ---------------------------------------------------------------------------------------------- */

/* Whether load_quants() leaves bytes that have no sign. */
ALWAYS_INLINE bool
is_unsigned (const OxPanelFormat f, const bool unpacked)
{
  return OX_USE_USDOT && !unpacked && f.max_quant >= 128;
}

/* Four outputs × four columns: elements 16 · @half + 4 · @step … of a group. */
ALWAYS_INLINE int8x16_t
load_quants (const OxPanelFormat f, const bool unpacked, const uint8_t *quants, const size_t half, const size_t step)
{
  uint8x16_t q;

  if (unpacked || f.bits == 8) {
    q = vld1q_u8 (quants + (half * 4 + step) * STEP_BYTES);
    if (!unpacked && !OX_USE_USDOT && f.max_quant >= 128)
      q = veorq_u8 (q, vdupq_n_u8 (0x80));
  } else {
    q = vld1q_u8 (quants + step * STEP_BYTES);
    q = half == 0 ? vandq_u8 (q, vdupq_n_u8 (15)) : vshrq_n_u8 (q, 4);
  }
  return vreinterpretq_s8_u8 (q);
}

/* What load_quants() leaves to subtract from a quant. */
ALWAYS_INLINE int32_t
quant_offset (const OxPanelFormat f, const bool unpacked)
{
  return unpacked || f.affine || (f.max_quant >= 128 && !OX_USE_USDOT) ? 0 : (int32_t) f.zero_point;
}

/* The weights themselves, with their sign, but for the minima of affine formats. */
ALWAYS_INLINE int8x16_t
load_signed (const OxPanelFormat f, const uint8_t *quants, const size_t half, const size_t step)
{
  int8x16_t q = load_quants (f, false, quants, half, step);
  const int32_t offset = quant_offset (f, false);

  return offset == 0 ? q : offset == 128 ? veorq_s8 (q, vdupq_n_s8 (-128)) : vsubq_s8 (q, vdupq_n_s8 ((int8_t) offset));
}

ALWAYS_INLINE float32x4_t
load_halfs (const uint16_t *p)
{
  return vcvt_f32_f16 (vreinterpret_f16_u16 (vld1_u16 (p)));
}

ALWAYS_INLINE int32_t
block_sum (const OxPanelFormat f, const OxBlockQ8 *x, const size_t half)
{
  return f.group == 32 ? x->sum[0] + x->sum[1] : x->sum[half];
}

/* Four scales or minima: number @value of the group, of outputs @row …; floats where they were unpacked. */
ALWAYS_INLINE float32x4_t
load_scale (const bool unpacked, const void *scales, const size_t value, const size_t row)
{
  return unpacked ? vld1q_f32 ((const float *) scales + value * OX_PANEL_ROWS + row)
                  : load_halfs ((const uint16_t *) scales + value * OX_PANEL_ROWS + row);
}

/* ---- Outputs ---------------------------------------------------------------------------------------------------------- */

/* The first @n of four. */
ALWAYS_INLINE void
store_part (float *y, float32x4_t v, size_t n)
{
  if (n >= 4) {
    vst1q_f32 (y, v);
  } else {
    float lanes[4];
    vst1q_f32 (lanes, v);
    memcpy (y, lanes, n * sizeof (float));
  }
}

ALWAYS_INLINE float32x4_t
load_part (const float *y, size_t n)
{
  float lanes[4] = { 0 };

  if (n >= 4)
    return vld1q_f32 (y);
  memcpy (lanes, y, n * sizeof (float));
  return vld1q_f32 (lanes);
}

/* ---- Parts of panels that are unpacked for many activation rows ------------------------------------------------------ */

/* How many are many: unpacking a panel costs what four to eight rows save by it. */
#define MANY_ROWS 8

/* Two panels · 512 columns: with their activations they stay in a first-level cache of 32 KiB. */
#define PART_PANELS 2
#define PART_ROWS (PART_PANELS * OX_PANEL_ROWS)
#define PART_GROUPS 16

typedef struct {
  bool begins, ends; /* whether it is the first, the last part of the rows */
} Part;
