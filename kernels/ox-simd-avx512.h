/* The vocabulary that the shared templates are written in, for AVX-512: vectors of 16 floats.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define VF_LANES 16
#ifndef OX_NAME
#define OX_NAME(NAME) NAME##_avx512
#define OX_LEVEL "avx512"
#endif
/* Sums of a float tile that stay in registers. */
#define FLOAT_TILE_SUMS 24

typedef __m512 VF;

static inline VF
vf_load (const float *p)
{
  return _mm512_loadu_ps (p);
}

static inline void
vf_store (float *p, VF v)
{
  _mm512_storeu_ps (p, v);
}

/* The first @n < VF_LANES lanes; the others are zero. */
static inline VF
vf_load_n (const float *p, size_t n)
{
  return _mm512_maskz_loadu_ps ((__mmask16) ((1u << n) - 1), p);
}

static inline void
vf_store_n (float *p, VF v, size_t n)
{
  _mm512_mask_storeu_ps (p, (__mmask16) ((1u << n) - 1), v);
}

static inline VF
vf_set1 (float x)
{
  return _mm512_set1_ps (x);
}

static inline VF
vf_add (VF a, VF b)
{
  return _mm512_add_ps (a, b);
}

static inline VF
vf_sub (VF a, VF b)
{
  return _mm512_sub_ps (a, b);
}

static inline VF
vf_mul (VF a, VF b)
{
  return _mm512_mul_ps (a, b);
}

static inline VF
vf_div (VF a, VF b)
{
  return _mm512_div_ps (a, b);
}

/* a · b + c */
static inline VF
vf_fma (VF a, VF b, VF c)
{
  return _mm512_fmadd_ps (a, b, c);
}

/* The greater of each lane; @b where either is NaN. */
static inline VF
vf_max (VF a, VF b)
{
  return _mm512_max_ps (a, b);
}

static inline VF
vf_min (VF a, VF b)
{
  return _mm512_min_ps (a, b);
}

static inline VF
vf_abs (VF a)
{
  return _mm512_abs_ps (a);
}

static inline float
vf_sum (VF v)
{
  return _mm512_reduce_add_ps (v);
}

/* The sums of four vectors. */
static inline __m128
vf_sum4 (VF a, VF b, VF c, VF d)
{
  __m512 ab = _mm512_add_ps (_mm512_unpacklo_ps (a, b), _mm512_unpackhi_ps (a, b));
  __m512 cd = _mm512_add_ps (_mm512_unpacklo_ps (c, d), _mm512_unpackhi_ps (c, d));
  __m512 low = _mm512_castpd_ps (_mm512_unpacklo_pd (_mm512_castps_pd (ab), _mm512_castps_pd (cd)));
  __m512 high = _mm512_castpd_ps (_mm512_unpackhi_pd (_mm512_castps_pd (ab), _mm512_castps_pd (cd)));
  __m512 sums = _mm512_add_ps (low, high);
  __m256 halves = _mm256_add_ps (_mm512_castps512_ps256 (sums), _mm512_extractf32x8_ps (sums, 1));
  return _mm_add_ps (_mm256_castps256_ps128 (halves), _mm256_extractf128_ps (halves, 1));
}

static inline float
vf_greatest (VF v)
{
  return _mm512_reduce_max_ps (v);
}

/* A bit for every lane where a == b. */
static inline unsigned
vf_equal (VF a, VF b)
{
  return _mm512_cmp_ps_mask (a, b, _CMP_EQ_OQ);
}

/* In each lane @x where a < b, @y elsewhere; NaN is not less than anything. */
static inline VF
vf_less (VF a, VF b, VF x, VF y)
{
  return _mm512_mask_blend_ps (_mm512_cmp_ps_mask (a, b, _CMP_LT_OQ), y, x);
}

static inline VF
vf_round (VF a)
{
  return _mm512_roundscale_ps (a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* a · 2^n for whole n. */
static inline VF
vf_scale_exponent (VF a, VF n)
{
  return _mm512_scalef_ps (a, n);
}

static inline VF
vf_load_f16 (const void *p)
{
  return _mm512_cvtph_ps (_mm256_loadu_si256 (p));
}

/* One half float, in all lanes. */
static inline VF
vf_set1_f16 (const void *p)
{
  uint16_t half;

  memcpy (&half, p, sizeof half);
  return _mm512_set1_ps (_cvtsh_ss (half));
}

static inline VF
vf_load_bf16 (const void *p)
{
  return _mm512_castsi512_ps (_mm512_slli_epi32 (_mm512_cvtepu16_epi32 (_mm256_loadu_si256 (p)), 16));
}

/* Of pairs of BF16 the first each, and the second. */
static inline VF
vf_load_bf16_even (const void *p)
{
  return _mm512_castsi512_ps (_mm512_slli_epi32 (_mm512_loadu_si512 (p), 16));
}

static inline VF
vf_load_bf16_odd (const void *p)
{
  return _mm512_castsi512_ps (_mm512_and_si512 (_mm512_loadu_si512 (p), _mm512_set1_epi32 ((int32_t) 0xffff0000)));
}

static inline VF
vf_load_i8 (const void *p)
{
  return _mm512_cvtepi32_ps (_mm512_cvtepi8_epi32 (_mm_loadu_si128 (p)));
}

/* To nearest, ties to even. */
static inline void
vf_store_f16 (void *p, VF v)
{
  _mm256_storeu_si256 (p, _mm512_cvtps_ph (v, _MM_FROUND_TO_NEAREST_INT));
}
