/* Integer panels for Arm's Advanced SIMD without dot products (Cortex-A53, A72 …): smull and smlal give products of bytes in 16 bits,
 * two outputs × four columns a register, and sadalp adds neighbours in 32.
 *
 * Quants of at most six bits leave room for all products of a group in 16 bits. Whole bytes leave it for two, 2 · 128 · 127.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

#if defined(__aarch64__)

#define PANEL_LEVEL "neon"
#define OX_USE_USDOT 0
#define OX_USE_MATRICES 0

#include "ox-panel-arm.h"

/* Two outputs × four columns from either end of @q, times four activations in all lanes. */
ALWAYS_INLINE void
multiply (int16x8_t products[2], int8x16_t q, int8x16_t x, const bool first)
{
  if (first) {
    products[0] = vmull_s8 (vget_low_s8 (q), vget_low_s8 (x));
    products[1] = vmull_high_s8 (q, x);
  } else {
    products[0] = vmlal_s8 (products[0], vget_low_s8 (q), vget_low_s8 (x));
    products[1] = vmlal_high_s8 (products[1], q, x);
  }
}

/* Four activations in all lanes. The number of a lane has to be a literal. */
ALWAYS_INLINE int8x16_t
broadcast4 (int8x16_t x, const size_t step)
{
  int32x4_t words = vreinterpretq_s32_s8 (x);

  switch (step) {
  case 0:
    return vreinterpretq_s8_s32 (vdupq_laneq_s32 (words, 0));
  case 1:
    return vreinterpretq_s8_s32 (vdupq_laneq_s32 (words, 1));
  case 2:
    return vreinterpretq_s8_s32 (vdupq_laneq_s32 (words, 2));
  default:
    return vreinterpretq_s8_s32 (vdupq_laneq_s32 (words, 3));
  }
}

/* Of quants that leave room for all products. */
ALWAYS_INLINE void
dot_small (const OxPanelFormat f,
           const bool unpacked,
           const uint8_t *quants,
           const OxBlockQ8 *x,
           size_t groups,
           const size_t h0,
           const size_t h1,
           const int32_t starts[TILE_ROWS],
           int32x4_t sums[VECTORS][TILE_ROWS],
           const size_t V,
           const size_t M)
{
  const size_t largest = unpacked && !f.affine ? f.zero_point : f.max_quant, n = (h1 - h0 + 1) * 4;
  int16x8_t products[VECTORS][TILE_ROWS][2];

  UNROLL
  for (size_t h = h0; h <= h1; h++) {
    int8x16_t in[TILE_ROWS];
    /* Lest what was loaded for the low halves of bytes stays in registers until the high ones are wanted. */
    if (h != h0 && M > 1)
      __asm__ ("" : "+r"(quants));
    UNROLL
    for (size_t i = 0; i < M; i++)
      in[i] = vld1q_s8 (x[i * groups].q + h * 16);
    UNROLL
    for (size_t step = 0; step < 4; step++) {
      int8x16_t q[VECTORS];
      UNROLL
      for (size_t v = 0; v < V; v++)
        q[v] = load_quants (f, unpacked, quants + v * 16, h, step);
      UNROLL
      for (size_t i = 0; i < M; i++) {
        int8x16_t four = broadcast4 (in[i], step);
        UNROLL
        for (size_t v = 0; v < V; v++)
          multiply (products[v][i], q[v], four, step == 0 && h == h0);
      }
    }
  }
  UNROLL
  for (size_t v = 0; v < V; v++) {
    UNROLL
    for (size_t i = 0; i < M; i++) {
      int16x8_t *p = products[v][i];
      /* Whether two neighbours fit in 16 bits, too. */
      if (2 * n * largest * 127 <= INT16_MAX)
        sums[v][i] = vpadalq_s16 (vdupq_n_s32 (starts[i]), vpaddq_s16 (p[0], p[1]));
      else
        sums[v][i] = vaddq_s32 (vdupq_n_s32 (starts[i]), vpaddq_s32 (vpaddlq_s16 (p[0]), vpaddlq_s16 (p[1])));
    }
  }
}

/* Of whole bytes, which never share scales by 16. */
ALWAYS_INLINE void
dot_whole (const OxPanelFormat f,
           const bool unpacked,
           const uint8_t *quants,
           const OxBlockQ8 *x,
           size_t groups,
           const int32_t starts[TILE_ROWS],
           int32x4_t sums[VECTORS][TILE_ROWS],
           const size_t V,
           const size_t M)
{
  int32x4_t wide[VECTORS][TILE_ROWS][2];

  UNROLL
  for (size_t pair = 0; pair < 4; pair++) {
    const size_t half = pair / 2, step = pair % 2 * 2;
    int8x16_t q[VECTORS][2];
    UNROLL
    for (size_t v = 0; v < V; v++) {
      q[v][0] = load_quants (f, unpacked, quants + v * 16, half, step);
      q[v][1] = load_quants (f, unpacked, quants + v * 16, half, step + 1);
    }
    UNROLL
    for (size_t i = 0; i < M; i++) {
      int8x16_t in = vld1q_s8 (x[i * groups].q + half * 16);
      int8x16_t a = broadcast4 (in, step), b = broadcast4 (in, step + 1);
      UNROLL
      for (size_t v = 0; v < V; v++) {
        int16x8_t products[2];
        multiply (products, q[v][0], a, true);
        multiply (products, q[v][1], b, false);
        UNROLL
        for (size_t end = 0; end < 2; end++)
          wide[v][i][end] = pair == 0 ? vpaddlq_s16 (products[end]) : vpadalq_s16 (wide[v][i][end], products[end]);
      }
    }
  }
  UNROLL
  for (size_t v = 0; v < V; v++) {
    UNROLL
    for (size_t i = 0; i < M; i++)
      sums[v][i] = vaddq_s32 (vdupq_n_s32 (starts[i]), vpaddq_s32 (wide[v][i][0], wide[v][i][1]));
  }
}

ALWAYS_INLINE void
dot_halves (const OxPanelFormat f,
            const bool unpacked,
            const uint8_t *quants,
            const OxBlockQ8 *x,
            size_t groups,
            const size_t h0,
            const size_t h1,
            const int32_t starts[TILE_ROWS],
            int32x4_t sums[VECTORS][TILE_ROWS],
            const size_t V,
            const size_t M)
{
  if (f.max_quant >= 128)
    dot_whole (f, unpacked, quants, x, groups, starts, sums, V, M);
  else
    dot_small (f, unpacked, quants, x, groups, h0, h1, starts, sums, V, M);
}

#include "ox-panel-arm-template.h"

const OxLinearSet ox_panel_neon = { .integer = panel_kernels };

#else

const OxLinearSet ox_panel_neon = { NULL, NULL, NULL };

#endif
