/* Integer panels in 256-bit registers: the two halves of a panel are eight outputs each. Compiled twice, for AVX2 and, with
 * OX_USE_AVX_VNNI set to 1, for AVX-VNNI.
 *
 * AVX2 has only vpmaddubsw, which adds two u8·s8 products in 16 bits and saturates. Small quants leave room: sums of several
 * steps are collected in 16 bits before they are widened. Whole bytes do not, so for them the sign of the weight is moved to
 * the activation: |w| ≤ 128 times 127, twice, still fits.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <immintrin.h>
#include <string.h>

#include "ox-quantize.h"
#include "ox-tile.h"

#define TILE_PANELS 1
#define TILE_ROWS 4
#define FEW_ROWS 6
#define HALF_ROWS 8

/* Quants of the elements 16·@half + 4·@step … + 3 of 8 rows. */
ALWAYS_INLINE __m256i
load_quants (const OxPanelFormat f, const uint8_t *quants, const size_t half, const size_t step)
{
  const __m256i low = _mm256_set1_epi8 (15);
  __m256i q;

  if (f.bits == 8)
    return _mm256_loadu_si256 ((const __m256i *) (const void *) (quants + (half * 4 + step) * 64));
  q = _mm256_loadu_si256 ((const __m256i *) (const void *) (quants + step * 64));
  return _mm256_and_si256 (half == 0 ? q : _mm256_srli_epi16 (q, 4), low);
}

ALWAYS_INLINE __m256
load_halfs (const uint16_t *p)
{
  return _mm256_cvtph_ps (_mm_loadu_si128 ((const __m128i *) (const void *) p));
}

ALWAYS_INLINE __m256i
broadcast4 (const int8_t *p)
{
  int32_t four;
  memcpy (&four, p, sizeof four);
  return _mm256_set1_epi32 (four);
}

/* Whether products carry the zero point along: not where the weight was made signed. */
ALWAYS_INLINE bool
has_offset (const OxPanelFormat f)
{
  return !f.affine && (OX_USE_AVX_VNNI || f.max_quant < 128);
}

#if OX_USE_AVX_VNNI

ALWAYS_INLINE void
dot_steps (const OxPanelFormat f,
           const uint8_t *quants,
           const OxBlockQ8 *x,
           size_t groups,
           const size_t half,
           __m256i *sums,
           const size_t M)
{
  UNROLL
  for (size_t step = 0; step < 4; step++) {
    __m256i q = load_quants (f, quants, half, step);
    UNROLL
    for (size_t i = 0; i < M; i++) {
      __m256i in = broadcast4 (x[i * groups].q + half * 16 + step * 4);
      __asm__ ("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sums[i]) : "x"(q), "x"(in));
    }
  }
}

#else

ALWAYS_INLINE void
dot_steps (const OxPanelFormat f,
           const uint8_t *quants,
           const OxBlockQ8 *x,
           size_t groups,
           const size_t half,
           __m256i *sums,
           const size_t M)
{
  /* Steps whose sums fit in 16 bits together: a pair of products is at most 2 · max_quant · 127. */
  const size_t room = f.max_quant < 128 ? 32767 / (2 * f.max_quant * 127) : 1;
  const size_t together = room >= 4 ? 4 : room >= 2 ? 2 : 1;
  const __m256i ones = _mm256_set1_epi16 (1), top = _mm256_set1_epi8 ((char) 0x80);

  UNROLL
  for (size_t step = 0; step < 4; step += together) {
    __m256i pairs[FEW_ROWS];
    UNROLL
    for (size_t s = 0; s < together; s++) {
      __m256i q = load_quants (f, quants, half, step + s), magnitude = q;
      if (f.max_quant >= 128) {
        q = _mm256_xor_si256 (q, top);
        magnitude = _mm256_abs_epi8 (q);
      }
      UNROLL
      for (size_t i = 0; i < M; i++) {
        __m256i in = broadcast4 (x[i * groups].q + half * 16 + (step + s) * 4), products;
        products = _mm256_maddubs_epi16 (magnitude, f.max_quant >= 128 ? _mm256_sign_epi8 (in, q) : in);
        pairs[i] = s == 0 ? products : _mm256_add_epi16 (pairs[i], products);
      }
    }
    UNROLL
    for (size_t i = 0; i < M; i++)
      sums[i] = _mm256_add_epi32 (sums[i], _mm256_madd_epi16 (pairs[i], ones));
  }
}

#endif

/* Adds group @g of rows @first … @first + 7 to their totals, one for each activation row. */
ALWAYS_INLINE void
add_group (const OxPanelFormat f,
           const uint8_t *panel,
           size_t g,
           size_t first,
           const OxBlockQ8 *x,
           size_t groups,
           __m256 *totals,
           const size_t M)
{
  const size_t half_values = f.affine ? 2 : 1;
  const uint8_t *quants = panel + ox_panel_quants_offset (f, g) + first * 4;
  const uint16_t *dm = (const uint16_t *) (const void *) (panel + ox_panel_scales_offset (f, g)) + first;
  __m256i sums[FEW_ROWS];

  UNROLL
  for (size_t half = 0; half < 2; half++) {
    const bool starts = half == 0 || f.group == 16, ends = half == 1 || f.group == 16;
    const uint16_t *scales = dm + (f.group == 16 ? half * half_values * OX_PANEL_ROWS : 0);

    UNROLL
    for (size_t i = 0; i < M && starts; i++) {
      const OxBlockQ8 *block = x + i * groups + g;
      int32_t x_sum = f.group == 32 ? block->sum[0] + block->sum[1] : block->sum[half];
      sums[i] = has_offset (f) ? _mm256_set1_epi32 (-(int32_t) f.zero_point * x_sum) : _mm256_setzero_si256 ();
    }
    dot_steps (f, quants, x + g, groups, half, sums, M);

    UNROLL
    for (size_t i = 0; i < M && ends; i++) {
      const OxBlockQ8 *block = x + i * groups + g;
      __m256 scaled = _mm256_mul_ps (_mm256_cvtepi32_ps (sums[i]), _mm256_set1_ps (block->scale));
      totals[i] = _mm256_fmadd_ps (scaled, load_halfs (scales), totals[i]);
      if (f.affine) {
        int32_t x_sum = f.group == 32 ? block->sum[0] + block->sum[1] : block->sum[half];
        totals[i] = _mm256_fmadd_ps (load_halfs (scales + OX_PANEL_ROWS), _mm256_set1_ps (block->scale * (float) x_sum),
                                     totals[i]);
      }
    }
  }
}

/* @V times eight rows, from @first, of which @rows are stored. */
ALWAYS_INLINE void
panel_part (const OxPanelFormat f,
            const uint8_t *panel,
            size_t first,
            const OxBlockQ8 *x,
            size_t groups,
            float *y,
            size_t y_stride,
            size_t rows,
            size_t ahead,
            const size_t V,
            const size_t M)
{
  __m256 totals[2][FEW_ROWS];

  UNROLL
  for (size_t v = 0; v < V; v++) {
    UNROLL
    for (size_t i = 0; i < M; i++)
      totals[v][i] = _mm256_setzero_ps ();
  }
  for (size_t g = 0; g < groups; g++) {
    if (ahead != 0 && g % 2 == 0)
      prefetch_lines (panel + ox_panel_scales_offset (f, g), ahead, ox_panel_pair_bytes (f));
    UNROLL
    for (size_t v = 0; v < V; v++)
      add_group (f, panel, g, first + v * HALF_ROWS, x, groups, totals[v], M);
  }

  for (size_t v = 0; v < V; v++) {
    const float *row_scale = (const float *) (const void *) panel + first + v * HALF_ROWS;
    size_t left = rows > v * HALF_ROWS ? rows - v * HALF_ROWS : 0;

    UNROLL
    for (size_t i = 0; i < M; i++) {
      float lanes[HALF_ROWS];
      _mm256_storeu_ps (lanes, _mm256_mul_ps (totals[v][i], _mm256_loadu_ps (row_scale)));
      memcpy (y + i * y_stride + v * HALF_ROWS, lanes, (left < HALF_ROWS ? left : HALF_ROWS) * sizeof (float));
    }
  }
}

/* With few activation rows the weights come from memory and are read in order; with many the sums need the registers. */
ALWAYS_INLINE void
panel_tile (const OxPanelFormat f,
            const uint8_t *panel,
            const OxBlockQ8 *x,
            size_t groups,
            float *y,
            size_t y_stride,
            size_t rows,
            size_t ahead,
            const size_t P,
            const size_t M)
{
  if (M <= 2)
    panel_part (f, panel, 0, x, groups, y, y_stride, rows, ahead, 2, M);
  else
    for (size_t first = 0; first < OX_PANEL_ROWS && first < rows; first += HALF_ROWS)
      panel_part (f, panel, first, x, groups, y + first, y_stride, rows - first, ahead, 1, M);
}
