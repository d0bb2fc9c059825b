/* What integer panels are multiplied with on x86, in 256-bit registers: half a panel each, eight outputs of four columns.
 * ox-panel-zmm.h has the same names for 512 bits.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <string.h>

#include "ox-simd-avx2.h"
#include "ox-tile.h"

typedef __m256i VI;

ALWAYS_INLINE VI
vi_load (const void *p)
{
  return _mm256_loadu_si256 (p);
}

ALWAYS_INLINE void
vi_store (void *p, VI v)
{
  _mm256_storeu_si256 (p, v);
}

ALWAYS_INLINE VI
vi_zero (void)
{
  return _mm256_setzero_si256 ();
}

/* The same four bytes in all lanes. */
ALWAYS_INLINE VI
vi_set4 (const void *p)
{
  int32_t four;
  memcpy (&four, p, sizeof four);
  return _mm256_set1_epi32 (four);
}

/* The same number in all lanes. */
ALWAYS_INLINE VI
vi_set32 (int32_t x)
{
  return _mm256_set1_epi32 (x);
}

ALWAYS_INLINE VI
vi_ones16 (void)
{
  return _mm256_set1_epi16 (1);
}

ALWAYS_INLINE VI
vi_low_halves (VI v)
{
  return _mm256_and_si256 (v, _mm256_set1_epi8 (15));
}

ALWAYS_INLINE VI
vi_high_halves (VI v)
{
  return _mm256_and_si256 (_mm256_srli_epi16 (v, 4), _mm256_set1_epi8 (15));
}

/* Bytes with an offset of 128 to signed ones. */
ALWAYS_INLINE VI
vi_to_signed (VI v)
{
  return _mm256_xor_si256 (v, _mm256_set1_epi8 ((char) 0x80));
}

/* |v|, -128 becomes an unsigned 128. */
ALWAYS_INLINE VI
vi_abs8 (VI v)
{
  return _mm256_abs_epi8 (v);
}

/* @v with the sign of @by; where @by is 0 the result does not matter. */
ALWAYS_INLINE VI
vi_sign8 (VI v, VI by)
{
  return _mm256_sign_epi8 (v, by);
}

/* Sums of a tile are written in an order that needs few registers. gcc would add up the products pairwise, all of which it
 * keeps on the stack until then; that it may not look through the sum stops it. */
ALWAYS_INLINE VI
vi_add16 (VI a, VI b)
{
  VI sum = _mm256_add_epi16 (a, b);
  __asm__ ("" : "+x"(sum));
  return sum;
}

/* Likewise. */
ALWAYS_INLINE VI
vi_add32 (VI a, VI b)
{
  VI sum = _mm256_add_epi32 (a, b);
  __asm__ ("" : "+x"(sum));
  return sum;
}

/* Sums of two u8·s8 products in 16 bits. */
ALWAYS_INLINE VI
vi_maddubs (VI u8, VI s8)
{
  return _mm256_maddubs_epi16 (u8, s8);
}

/* Sums of two s16·s16 products. */
ALWAYS_INLINE VI
vi_madd16 (VI a, VI b)
{
  return _mm256_madd_epi16 (a, b);
}

ALWAYS_INLINE VF
vf_from_int (VI v)
{
  return _mm256_cvtepi32_ps (v);
}

#if PANEL_VNNI
/* sum + Σ of four u8·s8 products a lane. */
ALWAYS_INLINE VI
vi_dot4 (VI sum, VI u8, VI s8)
{
  __asm__ ("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(u8), "x"(s8));
  return sum;
}
#endif
