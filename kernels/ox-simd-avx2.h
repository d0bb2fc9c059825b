/* The vocabulary that the shared templates are written in, for AVX2 with FMA and F16C: vectors of 8 floats.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define VF_LANES 8
#define OX_NAME(NAME) NAME##_avx2
#define OX_LEVEL "avx2"
/* Sums of a float tile that stay in registers. */
#define FLOAT_TILE_SUMS 12

typedef __m256 VF;

static inline VF
vf_load (const float *p)
{
  return _mm256_loadu_ps (p);
}

static inline void
vf_store (float *p, VF v)
{
  _mm256_storeu_ps (p, v);
}

/* Ones in the first @n < 8 lanes. */
static inline __m256i
vf_mask (size_t n)
{
  static const int32_t ones[16] = { -1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0 };
  return _mm256_loadu_si256 ((const __m256i *) (const void *) (ones + 8 - n));
}

/* The first @n < VF_LANES lanes; the others are zero. */
static inline VF
vf_load_n (const float *p, size_t n)
{
  return _mm256_maskload_ps (p, vf_mask (n));
}

static inline void
vf_store_n (float *p, VF v, size_t n)
{
  _mm256_maskstore_ps (p, vf_mask (n), v);
}

static inline VF
vf_set1 (float x)
{
  return _mm256_set1_ps (x);
}

static inline VF
vf_add (VF a, VF b)
{
  return _mm256_add_ps (a, b);
}

static inline VF
vf_sub (VF a, VF b)
{
  return _mm256_sub_ps (a, b);
}

static inline VF
vf_mul (VF a, VF b)
{
  return _mm256_mul_ps (a, b);
}

static inline VF
vf_div (VF a, VF b)
{
  return _mm256_div_ps (a, b);
}

/* a · b + c */
static inline VF
vf_fma (VF a, VF b, VF c)
{
  return _mm256_fmadd_ps (a, b, c);
}

/* The greater of each lane; @b where either is NaN. */
static inline VF
vf_max (VF a, VF b)
{
  return _mm256_max_ps (a, b);
}

static inline VF
vf_min (VF a, VF b)
{
  return _mm256_min_ps (a, b);
}

static inline VF
vf_abs (VF a)
{
  return _mm256_andnot_ps (_mm256_set1_ps (-0.0f), a);
}

static inline float
vf_sum (VF v)
{
  __m128 sum = _mm_add_ps (_mm256_castps256_ps128 (v), _mm256_extractf128_ps (v, 1));
  sum = _mm_add_ps (sum, _mm_movehl_ps (sum, sum));
  return _mm_cvtss_f32 (_mm_add_ss (sum, _mm_movehdup_ps (sum)));
}

/* The sums of four vectors. */
static inline __m128
vf_sum4 (VF a, VF b, VF c, VF d)
{
  __m256 sums = _mm256_hadd_ps (_mm256_hadd_ps (a, b), _mm256_hadd_ps (c, d));
  return _mm_add_ps (_mm256_castps256_ps128 (sums), _mm256_extractf128_ps (sums, 1));
}

static inline float
vf_greatest (VF v)
{
  __m128 best = _mm_max_ps (_mm256_castps256_ps128 (v), _mm256_extractf128_ps (v, 1));
  best = _mm_max_ps (best, _mm_movehl_ps (best, best));
  return _mm_cvtss_f32 (_mm_max_ss (best, _mm_movehdup_ps (best)));
}

/* A bit for every lane where a == b. */
static inline unsigned
vf_equal (VF a, VF b)
{
  return (unsigned) _mm256_movemask_ps (_mm256_cmp_ps (a, b, _CMP_EQ_OQ));
}

/* In each lane @x where a < b, @y elsewhere; NaN is not less than anything. */
static inline VF
vf_less (VF a, VF b, VF x, VF y)
{
  return _mm256_blendv_ps (y, x, _mm256_cmp_ps (a, b, _CMP_LT_OQ));
}

static inline VF
vf_round (VF a)
{
  return _mm256_round_ps (a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* a · 2^n for whole n in [-252, 254]: in two steps, so that the result may overflow or be subnormal. */
static inline VF
vf_scale_exponent (VF a, VF n)
{
  __m256i whole = _mm256_cvtps_epi32 (n), half = _mm256_srai_epi32 (whole, 1), bias = _mm256_set1_epi32 (127);
  __m256i rest = _mm256_sub_epi32 (whole, half);
  VF first = _mm256_castsi256_ps (_mm256_slli_epi32 (_mm256_add_epi32 (half, bias), 23));
  VF second = _mm256_castsi256_ps (_mm256_slli_epi32 (_mm256_add_epi32 (rest, bias), 23));
  return _mm256_mul_ps (_mm256_mul_ps (a, first), second);
}

static inline VF
vf_load_f16 (const void *p)
{
  return _mm256_cvtph_ps (_mm_loadu_si128 (p));
}

/* One half float, in all lanes. */
static inline VF
vf_set1_f16 (const void *p)
{
  uint16_t half;

  memcpy (&half, p, sizeof half);
  return _mm256_set1_ps (_cvtsh_ss (half));
}

static inline VF
vf_load_bf16 (const void *p)
{
  return _mm256_castsi256_ps (_mm256_slli_epi32 (_mm256_cvtepu16_epi32 (_mm_loadu_si128 (p)), 16));
}

/* Of pairs of BF16 the first each, and the second. */
static inline VF
vf_load_bf16_even (const void *p)
{
  return _mm256_castsi256_ps (_mm256_slli_epi32 (_mm256_loadu_si256 (p), 16));
}

static inline VF
vf_load_bf16_odd (const void *p)
{
  return _mm256_castsi256_ps (_mm256_and_si256 (_mm256_loadu_si256 (p), _mm256_set1_epi32 ((int32_t) 0xffff0000)));
}

static inline VF
vf_load_i8 (const void *p)
{
  return _mm256_cvtepi32_ps (_mm256_cvtepi8_epi32 (_mm_loadl_epi64 (p)));
}

/* To nearest, ties to even. */
static inline void
vf_store_f16 (void *p, VF v)
{
  _mm_storeu_si128 (p, _mm256_cvtps_ph (v, _MM_FROUND_TO_NEAREST_INT));
}
