/* Integer panels for AVX-512 with VNNI: 16 outputs a register, four products an instruction and lane.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

#if defined(__AVX512F__) && defined(__AVX512VL__) && defined(__AVX512VNNI__)

#include <immintrin.h>
#include <string.h>

#include "ox-quantize.h"
#include "ox-tile.h"

#define PANEL_LEVEL "avx512vnni"
#define TILE_PANELS 2
#define TILE_ROWS 6
#define FEW_ROWS 8

/* sum + Σ of four u8·s8 products a lane. With gcc 12 the intrinsic copies accumulators around, which halves the speed of a
 * tile; with gcc 14 both are the same. */
ALWAYS_INLINE __m512i
dot4 (__m512i sum, __m512i u8, __m512i s8)
{
  __asm__ ("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(u8), "v"(s8));
  return sum;
}

/* Quants of the elements 16·@half + 4·@step … + 3 of 16 rows. */
ALWAYS_INLINE __m512i
load_quants (const OxPanelFormat f, const uint8_t *quants, const size_t half, const size_t step)
{
  const __m512i low = _mm512_set1_epi8 (15);
  __m512i q;

  if (f.bits == 8)
    return _mm512_loadu_si512 (quants + (half * 4 + step) * 64);
  q = _mm512_loadu_si512 (quants + step * 64);
  return _mm512_and_si512 (half == 0 ? q : _mm512_srli_epi16 (q, 4), low);
}

ALWAYS_INLINE __m512
load_halfs (const uint16_t *p)
{
  return _mm512_cvtph_ps (_mm256_loadu_si256 ((const __m256i *) (const void *) p));
}

ALWAYS_INLINE __m512i
broadcast4 (const int8_t *p)
{
  int32_t four;
  memcpy (&four, p, sizeof four);
  return _mm512_set1_epi32 (four);
}

/* Integer sums of a group start at -zero_point · Σ q_x, so that the offset of symmetric formats costs nothing. */
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
  const size_t bytes = ox_panel_bytes (f, groups * 32), half_values = f.affine ? 2 : 1;
  const size_t scale_bytes = ox_panel_scales_bytes (f) > LINE_BYTES ? ox_panel_scales_bytes (f) : LINE_BYTES;
  __m512 totals[TILE_PANELS][FEW_ROWS];

  UNROLL
  for (size_t p = 0; p < P; p++) {
    UNROLL
    for (size_t i = 0; i < M; i++)
      totals[p][i] = _mm512_setzero_ps ();
  }

  for (size_t g = 0; g < groups; g++) {
    const uint8_t *quants = panel + ox_panel_quants_offset (f, g);
    const uint8_t *dm = panel + ox_panel_scales_offset (f, g);
    __m512i sums[TILE_PANELS][FEW_ROWS];

    /* A line is asked for where one is read: those of a pair of groups all at once would hold up the loads behind them. */
    if (P == 1 && (g % 2 == 0 || ox_panel_scales_bytes (f) >= LINE_BYTES))
      prefetch_lines (dm, ahead, scale_bytes);

    UNROLL
    for (size_t half = 0; half < 2; half++) {
      const bool starts = half == 0 || f.group == 16, ends = half == 1 || f.group == 16;

      UNROLL
      for (size_t i = 0; i < M && starts; i++) {
        const OxBlockQ8 *block = x + i * groups + g;
        int32_t x_sum = f.group == 32 ? block->sum[0] + block->sum[1] : block->sum[half];
        __m512i start = f.affine ? _mm512_setzero_si512 () : _mm512_set1_epi32 (-(int32_t) f.zero_point * x_sum);
        UNROLL
        for (size_t p = 0; p < P; p++)
          sums[p][i] = start;
      }

      UNROLL
      for (size_t step = 0; step < 4; step++) {
        __m512i q[TILE_PANELS];
        if (P == 1 && (f.bits == 8 || half == 0))
          prefetch_lines (quants + (half * 4 + step) * LINE_BYTES, ahead, LINE_BYTES);
        UNROLL
        for (size_t p = 0; p < P; p++)
          q[p] = load_quants (f, quants + p * bytes, half, step);
        UNROLL
        for (size_t i = 0; i < M; i++) {
          __m512i in = broadcast4 (x[i * groups + g].q + half * 16 + step * 4);
          UNROLL
          for (size_t p = 0; p < P; p++)
            sums[p][i] = dot4 (sums[p][i], q[p], in);
        }
      }

      UNROLL
      for (size_t p = 0; p < P && ends; p++) {
        const uint16_t *scales = (const uint16_t *) (const void *) ((const uint8_t *) dm + p * bytes) +
                                 (f.group == 16 ? half * half_values * OX_PANEL_ROWS : 0);
        __m512 d = load_halfs (scales);
        UNROLL
        for (size_t i = 0; i < M; i++) {
          const OxBlockQ8 *block = x + i * groups + g;
          __m512 scaled = _mm512_mul_ps (_mm512_cvtepi32_ps (sums[p][i]), _mm512_set1_ps (block->scale));
          totals[p][i] = _mm512_fmadd_ps (scaled, d, totals[p][i]);
        }
        if (f.affine) {
          __m512 min = load_halfs (scales + OX_PANEL_ROWS);
          UNROLL
          for (size_t i = 0; i < M; i++) {
            const OxBlockQ8 *block = x + i * groups + g;
            int32_t x_sum = f.group == 32 ? block->sum[0] + block->sum[1] : block->sum[half];
            totals[p][i] = _mm512_fmadd_ps (min, _mm512_set1_ps (block->scale * (float) x_sum), totals[p][i]);
          }
        }
      }
    }
  }

  UNROLL
  for (size_t p = 0; p < P; p++) {
    size_t first = p * OX_PANEL_ROWS, left = rows > first ? rows - first : 0;
    __mmask16 mask = left >= OX_PANEL_ROWS ? 0xffff : (__mmask16) ((1u << left) - 1);
    __m512 row_scale = _mm512_loadu_ps (panel + p * bytes);
    UNROLL
    for (size_t i = 0; i < M; i++)
      _mm512_mask_storeu_ps (y + i * y_stride + first, mask, _mm512_mul_ps (totals[p][i], row_scale));
  }
}

#include "ox-panel-template.h"

const OxLinearSet ox_panel_avx512_vnni = { .integer = panel_kernels };

#else

const OxLinearSet ox_panel_avx512_vnni = { NULL, NULL, NULL };

#endif
