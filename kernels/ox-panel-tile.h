/* A tile of integer panels on x86: some vectors of outputs times some activation rows, all sums in registers. Written for
 * registers of either width, and for both ways to multiply bytes. The including file defines PANEL_VNNI and includes
 * ox-panel-ymm.h or ox-panel-zmm.h.
 *
 * With VNNI one instruction adds four products to a 32-bit sum. Without, there is only vpmaddubsw, which adds two u8·s8 products
 * in 16 bits and saturates. Small quants leave room there: sums of several steps are collected before they are widened. Whole
 * bytes do not, so for them the sign of the weight is moved to the activation: |w| ≤ 128 times 127, twice, still fits.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-panel.h"
#include "ox-quantize.h"

/* Vectors that a panel has, and the most of either that a tile has. */
#define PANEL_VECTORS (OX_PANEL_ROWS / VF_LANES)
#define MAX_VECTORS 4
#define MAX_ROWS 8

/* Where vector @v of consecutive panels, each of @bytes, begins, at @per_row bytes a row. */
ALWAYS_INLINE size_t
vector_offset (size_t v, size_t bytes, const size_t per_row)
{
  return v / PANEL_VECTORS * bytes + v % PANEL_VECTORS * VF_LANES * per_row;
}

/* Quants of the elements 4·@step … 4·@step + 3 of the rows of a vector. */
ALWAYS_INLINE VI
load_quants (const OxPanelFormat f, const uint8_t *quants, const size_t step)
{
  if (f.bits == 8)
    return vi_load (quants + step * LINE_BYTES);
  return step < 4 ? vi_low_halves (vi_load (quants + step * LINE_BYTES))
                  : vi_high_halves (vi_load (quants + (step - 4) * LINE_BYTES));
}

/* Whole bytes are made signed when they are multiplied without VNNI. */
ALWAYS_INLINE bool
is_signed (const OxPanelFormat f)
{
  return !PANEL_VNNI && f.max_quant >= 128;
}

ALWAYS_INLINE bool
has_zero_point (const OxPanelFormat f)
{
  return !f.affine && !is_signed (f);
}

/* Σ q_x over part @part of a block: all of it where 32 elements share a scale, else a half. A scalar: in vectors it would take an
 * instruction of those that are scarce. */
ALWAYS_INLINE int32_t
part_sum (const OxPanelFormat f, const OxBlockQ8 *block, const size_t part)
{
  return f.group == 32 ? block->sum[0] + block->sum[1] : block->sum[part];
}

/* What the zero point adds to the sum of a part. */
ALWAYS_INLINE VI
zero_point_sum (const OxPanelFormat f, const OxBlockQ8 *block, const size_t part)
{
  return has_zero_point (f) ? vi_set32 (-(int32_t) f.zero_point * part_sum (f, block, part)) : vi_zero ();
}

#if PANEL_VNNI

/* @sums: of the products of @steps steps from @first, without the zero point. What that brings is where they start. */
ALWAYS_INLINE void
dot_steps (const OxPanelFormat f,
           const uint8_t *quants,
           size_t bytes,
           const OxBlockQ8 *x,
           size_t x_stride,
           const size_t first,
           const size_t steps,
           VI sums[MAX_VECTORS][MAX_ROWS],
           const size_t V,
           const size_t M)
{
  UNROLL
  for (size_t i = 0; i < M; i++) {
    VI start = zero_point_sum (f, x + i * x_stride, first / 4);

    UNROLL
    for (size_t v = 0; v < V; v++)
      sums[v][i] = start;
  }
  UNROLL
  for (size_t step = first; step < first + steps; step++) {
    VI q[MAX_VECTORS];

    UNROLL
    for (size_t v = 0; v < V; v++)
      q[v] = load_quants (f, quants + vector_offset (v, bytes, 4), step);
    UNROLL
    for (size_t i = 0; i < M; i++) {
      VI in = vi_set4 (x[i * x_stride].q + step * 4);

      UNROLL
      for (size_t v = 0; v < V; v++)
        sums[v][i] = vi_dot4 (sums[v][i], q[v], in);
    }
  }
}

#else

/* @sums: of the products of @steps steps from @first, without the zero point. */
ALWAYS_INLINE void
dot_steps (const OxPanelFormat f,
           const uint8_t *quants,
           size_t bytes,
           const OxBlockQ8 *x,
           size_t x_stride,
           const size_t first,
           const size_t steps,
           VI sums[MAX_VECTORS][MAX_ROWS],
           const size_t V,
           const size_t M)
{
  /* Steps whose sums fit in 16 bits together: a pair of products is at most 2 · max_quant · 127. */
  const size_t room = is_signed (f) ? 1 : 32767 / (2 * f.max_quant * 127);
  const size_t together = room >= steps ? steps : room >= 4 ? 4 : room >= 2 ? 2 : 1;

  UNROLL
  for (size_t begin = first; begin < first + steps; begin += together) {
    VI pairs[MAX_VECTORS][MAX_ROWS];

    UNROLL
    for (size_t step = begin; step < begin + together; step++) {
      VI q[MAX_VECTORS], magnitude[MAX_VECTORS];

      UNROLL
      for (size_t v = 0; v < V; v++) {
        q[v] = load_quants (f, quants + vector_offset (v, bytes, 4), step);
        if (is_signed (f))
          q[v] = vi_to_signed (q[v]);
        magnitude[v] = is_signed (f) ? vi_abs8 (q[v]) : q[v];
      }
      UNROLL
      for (size_t i = 0; i < M; i++) {
        VI in = vi_set4 (x[i * x_stride].q + step * 4);

        UNROLL
        for (size_t v = 0; v < V; v++) {
          VI products = vi_maddubs (magnitude[v], is_signed (f) ? vi_sign8 (in, q[v]) : in);
          pairs[v][i] = step == begin ? products : vi_add16 (pairs[v][i], products);
          if (together == 1) {
            pairs[v][i] = vi_madd16 (pairs[v][i], vi_ones16 ());
            sums[v][i] = step == first ? pairs[v][i] : vi_add32 (sums[v][i], pairs[v][i]);
          }
        }
      }
    }
    UNROLL
    for (size_t v = 0; v < V; v++) {
      UNROLL
      for (size_t i = 0; i < M && together > 1; i++) {
        pairs[v][i] = vi_madd16 (pairs[v][i], vi_ones16 ());
        sums[v][i] = begin == first ? pairs[v][i] : vi_add32 (sums[v][i], pairs[v][i]);
      }
    }
  }
  UNROLL
  for (size_t i = 0; i < M && has_zero_point (f); i++) {
    UNROLL
    for (size_t v = 0; v < V; v++)
      sums[v][i] = vi_add32 (sums[v][i], zero_point_sum (f, x + i * x_stride, first / 4));
  }
}

#endif

/* Adds @groups groups to the totals of @V vectors × @M activation rows, without the rows' scales. @panel: the first of V /
 * PANEL_VECTORS panels of @bytes each, as if it began with the first of these groups. @x: rows @x_stride blocks apart. With
 * @prefetch the memory @ahead bytes ahead of what is read is asked for, little by little: the lines of a pair of groups all at
 * once would hold up the loads behind them. */
ALWAYS_INLINE void
panel_tile (const OxPanelFormat f,
            const uint8_t *panel,
            size_t bytes,
            const OxBlockQ8 *x,
            size_t x_stride,
            size_t groups,
            size_t ahead,
            const bool prefetch,
            VF totals[MAX_VECTORS][MAX_ROWS],
            const size_t V,
            const size_t M)
{
  const size_t parts = 32 / f.group, steps = f.group / 4, part_halves = (f.affine ? 2 : 1) * OX_PANEL_ROWS;
  const size_t scale_lines = ox_panel_scales_bytes (f) > LINE_BYTES ? ox_panel_scales_bytes (f) : LINE_BYTES;

  for (size_t g = 0; g < groups; g++, x++) {
    const uint8_t *quants = panel + ox_panel_quants_offset (f, g);
    const uint8_t *scales = panel + ox_panel_scales_offset (f, g);

    if (prefetch && (g % 2 == 0 || ox_panel_scales_bytes (f) >= LINE_BYTES))
      prefetch_lines (scales, ahead, scale_lines);

    UNROLL
    for (size_t part = 0; part < parts; part++) {
      const uint8_t *part_scales = scales + part * part_halves * sizeof (uint16_t);
      VI sums[MAX_VECTORS][MAX_ROWS];
      VF d[MAX_VECTORS], min[MAX_VECTORS];

      if (prefetch && (f.bits == 8 || part == 0))
        prefetch_lines (quants + part * steps * LINE_BYTES, ahead,
                        ox_panel_quants_bytes (f) / (f.bits == 8 ? parts : 1));
      dot_steps (f, quants, bytes, x, x_stride, part * steps, steps, sums, V, M);

      UNROLL
      for (size_t v = 0; v < V; v++) {
        d[v] = vf_load_f16 (part_scales + vector_offset (v, bytes, 2));
        if (f.affine)
          min[v] = vf_load_f16 (part_scales + OX_PANEL_ROWS * 2 + vector_offset (v, bytes, 2));
      }
      /* The order of these operations is that of every processor's kernels: matvec and matmul of one matrix may be of two
       * instruction sets. */
      UNROLL
      for (size_t i = 0; i < M; i++) {
        const OxBlockQ8 *block = x + i * x_stride;
        VF scale = vf_set1 (block->scale);
        VF x_sum = f.affine ? vf_set1 (block->scale * (float) part_sum (f, block, part)) : scale;

        UNROLL
        for (size_t v = 0; v < V; v++) {
          totals[v][i] = vf_fma (vf_mul (vf_from_int (sums[v][i]), scale), d[v], totals[v][i]);
          if (f.affine)
            totals[v][i] = vf_fma (min[v], x_sum, totals[v][i]);
        }
      }
    }
  }
}
