/* The vocabulary that the shared templates are written in, for Arm's Advanced SIMD: vectors of 4 floats.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define VF_LANES 4
#ifndef OX_NAME
#define OX_NAME(NAME) NAME##_neon
#define OX_LEVEL "neon"
#endif
/* Sums of a float tile that stay in registers, 24 of 32. */
#define FLOAT_TILE_SUMS 24

typedef float32x4_t VF;

static inline VF
vf_load (const float *p)
{
  return vld1q_f32 (p);
}

static inline void
vf_store (float *p, VF v)
{
  vst1q_f32 (p, v);
}

/* The first @n ≤ VF_LANES lanes; the others are zero. */
static inline VF
vf_load_n (const float *p, size_t n)
{
  const float32x2_t none = vdup_n_f32 (0);

  switch (n) {
  case 0:
    return vcombine_f32 (none, none);
  case 1:
    return vcombine_f32 (vld1_lane_f32 (p, none, 0), none);
  case 2:
    return vcombine_f32 (vld1_f32 (p), none);
  case 3:
    return vcombine_f32 (vld1_f32 (p), vld1_lane_f32 (p + 2, none, 0));
  default:
    return vld1q_f32 (p);
  }
}

static inline void
vf_store_n (float *p, VF v, size_t n)
{
  if (n >= 4) {
    vst1q_f32 (p, v);
    return;
  }
  if (n >= 2)
    vst1_f32 (p, vget_low_f32 (v));
  if (n == 3)
    vst1q_lane_f32 (p + 2, v, 2);
  if (n == 1)
    vst1q_lane_f32 (p, v, 0);
}

static inline VF
vf_set1 (float x)
{
  return vdupq_n_f32 (x);
}

static inline VF
vf_add (VF a, VF b)
{
  return vaddq_f32 (a, b);
}

static inline VF
vf_sub (VF a, VF b)
{
  return vsubq_f32 (a, b);
}

static inline VF
vf_mul (VF a, VF b)
{
  return vmulq_f32 (a, b);
}

static inline VF
vf_div (VF a, VF b)
{
  return vdivq_f32 (a, b);
}

/* a · b + c */
static inline VF
vf_fma (VF a, VF b, VF c)
{
  return vfmaq_f32 (c, a, b);
}

/* The greater of each lane; @b where either is NaN (FMAX would make that NaN). */
static inline VF
vf_max (VF a, VF b)
{
  return vbslq_f32 (vcgtq_f32 (a, b), a, b);
}

static inline VF
vf_min (VF a, VF b)
{
  return vbslq_f32 (vcltq_f32 (a, b), a, b);
}

static inline VF
vf_abs (VF a)
{
  return vabsq_f32 (a);
}

static inline float
vf_sum (VF v)
{
  return vaddvq_f32 (v);
}

static inline float
vf_greatest (VF v)
{
  return vmaxvq_f32 (v);
}

/* A bit for every lane where a == b. */
static inline unsigned
vf_equal (VF a, VF b)
{
  static const uint32_t bits[4] = { 1, 2, 4, 8 };
  return vaddvq_u32 (vandq_u32 (vceqq_f32 (a, b), vld1q_u32 (bits)));
}

/* In each lane @x where a < b, @y elsewhere; NaN is not less than anything. */
static inline VF
vf_less (VF a, VF b, VF x, VF y)
{
  return vbslq_f32 (vcltq_f32 (a, b), x, y);
}

static inline VF
vf_round (VF a)
{
  return vrndnq_f32 (a);
}

/* a · 2^n for whole n in [-252, 254]: in two steps, so that the result may overflow or be subnormal. */
static inline VF
vf_scale_exponent (VF a, VF n)
{
  int32x4_t whole = vcvtnq_s32_f32 (n), half = vshrq_n_s32 (whole, 1), bias = vdupq_n_s32 (127);
  int32x4_t rest = vsubq_s32 (whole, half);
  VF first = vreinterpretq_f32_s32 (vshlq_n_s32 (vaddq_s32 (half, bias), 23));
  VF second = vreinterpretq_f32_s32 (vshlq_n_s32 (vaddq_s32 (rest, bias), 23));
  return vmulq_f32 (vmulq_f32 (a, first), second);
}

/* Four 16-bit elements, of any alignment. */
static inline uint16x4_t
vf_load_u16 (const void *p)
{
  uint16x4_t v;

  memcpy (&v, p, sizeof v);
  return v;
}

static inline VF
vf_load_f16 (const void *p)
{
  return vcvt_f32_f16 (vreinterpret_f16_u16 (vf_load_u16 (p)));
}

/* One half float, in all lanes. */
static inline VF
vf_set1_f16 (const void *p)
{
  uint16_t half;

  memcpy (&half, p, sizeof half);
  return vcvt_f32_f16 (vreinterpret_f16_u16 (vdup_n_u16 (half)));
}

static inline VF
vf_load_bf16 (const void *p)
{
  return vreinterpretq_f32_u32 (vshll_n_u16 (vf_load_u16 (p), 16));
}

/* Of pairs of BF16 the first each, and the second. */
static inline VF
vf_load_bf16_even (const void *p)
{
  return vreinterpretq_f32_u32 (vshlq_n_u32 (vreinterpretq_u32_u16 (vld1q_u16 (p)), 16));
}

static inline VF
vf_load_bf16_odd (const void *p)
{
  return vreinterpretq_f32_u32 (vandq_u32 (vreinterpretq_u32_u16 (vld1q_u16 (p)), vdupq_n_u32 (0xffff0000)));
}

static inline VF
vf_load_i8 (const void *p)
{
  uint32_t bytes;

  memcpy (&bytes, p, sizeof bytes);
  return vcvtq_f32_s32 (vmovl_s16 (vget_low_s16 (vmovl_s8 (vcreate_s8 (bytes)))));
}

/* To nearest, ties to even. */
static inline void
vf_store_f16 (void *p, VF v)
{
  uint16x4_t half = vreinterpret_u16_f16 (vcvt_f16_f32 (v));

  memcpy (p, &half, sizeof half);
}
