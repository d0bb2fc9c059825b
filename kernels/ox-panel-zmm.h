/* What integer panels are multiplied with on x86, in 512-bit registers: a whole panel each, 16 outputs of four columns.
 * ox-panel-ymm.h has the same names for 256 bits.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-simd-avx512.h"
#include "ox-tile.h"

typedef __m512i VI;

ALWAYS_INLINE VI
vi_load (const void *p)
{
  return _mm512_loadu_si512 (p);
}

ALWAYS_INLINE void
vi_store (void *p, VI v)
{
  _mm512_storeu_si512 (p, v);
}

ALWAYS_INLINE VI
vi_zero (void)
{
  return _mm512_setzero_si512 ();
}

/* The same four bytes in all lanes. */
ALWAYS_INLINE VI
vi_set4 (const void *p)
{
  int32_t four;
  memcpy (&four, p, sizeof four);
  return _mm512_set1_epi32 (four);
}

/* The same number in all lanes. */
ALWAYS_INLINE VI
vi_set32 (int32_t x)
{
  return _mm512_set1_epi32 (x);
}

ALWAYS_INLINE VI
vi_ones16 (void)
{
  return _mm512_set1_epi16 (1);
}

ALWAYS_INLINE VI
vi_low_halves (VI v)
{
  return _mm512_and_si512 (v, _mm512_set1_epi8 (15));
}

ALWAYS_INLINE VI
vi_high_halves (VI v)
{
  return _mm512_and_si512 (_mm512_srli_epi16 (v, 4), _mm512_set1_epi8 (15));
}

/* Bytes with an offset of 128 to signed ones. */
ALWAYS_INLINE VI
vi_to_signed (VI v)
{
  return _mm512_xor_si512 (v, _mm512_set1_epi8 ((char) 0x80));
}

/* |v|, -128 becomes an unsigned 128. */
ALWAYS_INLINE VI
vi_abs8 (VI v)
{
  return _mm512_abs_epi8 (v);
}

/* @v with the sign of @by; where @by is 0 the result does not matter. There is no vpsignb of 512 bits. */
ALWAYS_INLINE VI
vi_sign8 (VI v, VI by)
{
  return _mm512_mask_sub_epi8 (v, _mm512_movepi8_mask (by), vi_zero (), v);
}

/* Sums of a tile are written in an order that needs few registers. gcc would add up the products pairwise, all of which it
 * keeps on the stack until then; that it may not look through the sum stops it. */
ALWAYS_INLINE VI
vi_add16 (VI a, VI b)
{
  VI sum = _mm512_add_epi16 (a, b);
  __asm__ ("" : "+v"(sum));
  return sum;
}

/* Likewise. */
ALWAYS_INLINE VI
vi_add32 (VI a, VI b)
{
  VI sum = _mm512_add_epi32 (a, b);
  __asm__ ("" : "+v"(sum));
  return sum;
}

/* Sums of two u8·s8 products in 16 bits. */
ALWAYS_INLINE VI
vi_maddubs (VI u8, VI s8)
{
  return _mm512_maddubs_epi16 (u8, s8);
}

/* Sums of two s16·s16 products. */
ALWAYS_INLINE VI
vi_madd16 (VI a, VI b)
{
  return _mm512_madd_epi16 (a, b);
}

ALWAYS_INLINE VF
vf_from_int (VI v)
{
  return _mm512_cvtepi32_ps (v);
}

#if PANEL_VNNI
/* sum + Σ of four u8·s8 products a lane. With gcc 12 the intrinsic copies accumulators around, which halves the speed of a
 * tile; with gcc 14 both are the same. */
ALWAYS_INLINE VI
vi_dot4 (VI sum, VI u8, VI s8)
{
  __asm__ ("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(u8), "v"(s8));
  return sum;
}
#endif
