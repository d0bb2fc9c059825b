/* Products of panels by Arm's dot product instructions by element: four outputs × four columns of a panel and four activations, which
 * need not be copied to all lanes. The including file defines OX_USE_USDOT to 1 where weights may be unsigned.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-panel-arm.h"

/* @q: unsigned if @whole. The number of a lane has to be a literal. */
ALWAYS_INLINE int32x4_t
dot4 (int32x4_t sums, int8x16_t q, int8x16_t x, const size_t step, const bool whole)
{
#if OX_USE_USDOT
#define DOT4(STEP)                                                                                                     \
  return whole ? vusdotq_laneq_s32 (sums, vreinterpretq_u8_s8 (q), x, STEP) : vdotq_laneq_s32 (sums, q, x, STEP)
#else
#define DOT4(STEP) return vdotq_laneq_s32 (sums, q, x, STEP)
#endif
  switch (step) {
  case 0:
    DOT4 (0);
  case 1:
    DOT4 (1);
  case 2:
    DOT4 (2);
  default:
    DOT4 (3);
  }
#undef DOT4
}

/* See ox-panel-arm-template.h. Weights are loaded a step ahead: processors that work in order would wait for them. */
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
  int8x16_t in[2][TILE_ROWS], q[VECTORS], next[VECTORS];

  UNROLL
  for (size_t h = h0; h <= h1; h++) {
    UNROLL
    for (size_t i = 0; i < M; i++)
      in[h][i] = vld1q_s8 (x[i * groups].q + h * 16);
  }
  UNROLL
  for (size_t i = 0; i < M; i++) {
    int32x4_t start = vdupq_n_s32 (starts[i]);
    UNROLL
    for (size_t v = 0; v < V; v++)
      sums[v][i] = start;
  }
  UNROLL
  for (size_t v = 0; v < V; v++)
    next[v] = load_quants (f, unpacked, quants + v * 16, h0, 0);
  UNROLL
  for (size_t step = 0; step < 4; step++) {
    UNROLL
    for (size_t h = h0; h <= h1; h++) {
      UNROLL
      for (size_t v = 0; v < V; v++)
        q[v] = next[v];
      UNROLL
      for (size_t v = 0; v < V && (step < 3 || h < h1); v++)
        next[v] = load_quants (f, unpacked, quants + v * 16, h < h1 ? h + 1 : h0, h < h1 ? step : step + 1);
      UNROLL
      for (size_t v = 0; v < V; v++) {
        UNROLL
        for (size_t i = 0; i < M; i++)
          sums[v][i] = dot4 (sums[v][i], q[v], in[h][i], step, is_unsigned (f, unpacked));
      }
    }
  }
}
