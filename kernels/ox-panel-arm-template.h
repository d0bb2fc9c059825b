/* The kernels over integer panels that an instruction set of Arm offers. The including file has included ox-panel-arm.h and defines
 * PANEL_LEVEL, OX_USE_MATRICES, and
 *
 *     dot_halves (format, unpacked, quants, x, groups, h0, h1, starts, sums, V, M)
 *
 * which makes sums[v][i] of starts[i] and the products of halves @h0 … @h1 of a group: V registers of four outputs whose quants begin
 * at @quants, and M activation blocks @groups apart. With OX_USE_MATRICES it has also defined what many activation rows
 * need: UnpackedGroup, unpack_group(), TileRows, prepare_rows() and many_tile().
 *
 * Up to MANY_ROWS - 1 activation rows read panels as they are, up to four rows at a time. For more, parts of two panels are unpacked
 * on the stack: quants with their sign and scales as floats, which then serve all activation rows. Float sums travel between the
 * parts in y. Both do the same operations in the same order.
 *
 * Scales by 32 on both sides cost four instructions beside the products: a start, a difference, and the two multiplications by scales,
 * for every four outputs × 32 columns × one row, where sdot needs 8 and smmla 4. So tiles of many rows reach at most 8/12 of the
 * peak of sdot, and 4/8 of that of smmla. Instructions for a product of one weight and one activation, counted in what gcc 14 makes of
 * the loops over groups; the first number is that of one row, the second of four, the third of many:
 *
 *                      neon                dotprod             i8mm
 *     u4-g32           0.36  0.33  0.28    0.22  0.17  0.12    0.23  0.17  0.080
 *     u4-g32-affine    0.38  0.34  0.31    0.26  0.19  0.16    0.26  0.19  0.093
 *     s8-g32           0.45  0.39  0.35    0.24  0.16  0.12    0.18  0.15  0.080
 *     u6-g16           0.37  0.39  0.34    0.22  0.20  0.17    0.22  0.20  0.115
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */

/* Adds a group to the totals of V · 4 outputs, from @first. @scales, @quants: of the group. */
ALWAYS_INLINE void
add_group (const OxPanelFormat f,
           const bool unpacked,
           const void *scales,
           const uint8_t *quants,
           const size_t first,
           const OxBlockQ8 *x,
           size_t groups,
           float32x4_t totals[VECTORS][TILE_ROWS],
           const size_t V,
           const size_t M)
{
  const size_t parts = 32 / f.group, values = f.affine ? 2 : 1;

  UNROLL
  for (size_t part = 0; part < parts; part++) {
    const int32_t offset = quant_offset (f, unpacked);
    int32x4_t sums[VECTORS][TILE_ROWS];
    int32_t starts[TILE_ROWS];

    UNROLL
    for (size_t i = 0; i < M; i++)
      starts[i] = SUM_START - (offset != 0 ? offset * block_sum (f, x + i * groups, part) : 0);
    /* Lest what was loaded for the first part stays in registers until the second. */
    if (part == 1)
      __asm__ ("" : "+r"(quants));
    dot_halves (f, unpacked, quants + first * 4, x, groups, f.group == 16 ? part : 0, f.group == 16 ? part : 1, starts,
                sums, V, M);

    UNROLL
    for (size_t v = 0; v < V; v++) {
      float32x4_t d = load_scale (unpacked, scales, part * values, first + v * 4);
      UNROLL
      for (size_t i = 0; i < M; i++)
        totals[v][i] = vfmaq_f32 (totals[v][i], vmulq_n_f32 (sums_to_float (sums[v][i]), x[i * groups].scale), d);
      if (f.affine) {
        float32x4_t min = load_scale (unpacked, scales, part * values + 1, first + v * 4);
        UNROLL
        for (size_t i = 0; i < M; i++)
          totals[v][i] =
            vfmaq_n_f32 (totals[v][i], min, x[i * groups].scale * (float) block_sum (f, x + i * groups, part));
      }
    }
  }
}

/* ---- Few activation rows -------------------------------------------------------------------------------------------- */

/* V · 4 outputs, from @first, of which @rows are stored. */
ALWAYS_INLINE void
few_tile (const OxPanelFormat f,
          const uint8_t *panel,
          const size_t first,
          const OxBlockQ8 *x,
          size_t groups,
          float *y,
          size_t y_stride,
          size_t rows,
          size_t ahead,
          const size_t V,
          const size_t M)
{
  float32x4_t totals[VECTORS][TILE_ROWS];

  UNROLL
  for (size_t v = 0; v < V; v++) {
    UNROLL
    for (size_t i = 0; i < M; i++)
      totals[v][i] = vdupq_n_f32 (0);
  }
  for (size_t g = 0; g < groups; g++) {
    if (ahead != 0 && g % 2 == 0)
      prefetch_lines (panel + ox_panel_scales_offset (f, g), ahead, ox_panel_pair_bytes (f));
    add_group (f, false, panel + ox_panel_scales_offset (f, g), panel + ox_panel_quants_offset (f, g), first, x + g,
               groups, totals, V, M);
  }
  UNROLL
  for (size_t v = 0; v < V; v++) {
    float32x4_t row_scale = vld1q_f32 ((const float *) (const void *) panel + first + v * 4);
    UNROLL
    for (size_t i = 0; i < M; i++)
      store_part (y + i * y_stride + v * 4, vmulq_f32 (totals[v][i], row_scale), rows > v * 4 ? rows - v * 4 : 0);
  }
}

/* One to four activation rows times a panel. With one or two all outputs have room, and weights are read in the order of memory. */
ALWAYS_INLINE void
few_rows (const OxPanelFormat f,
          const uint8_t *panel,
          const OxBlockQ8 *x,
          size_t groups,
          float *y,
          size_t y_stride,
          size_t rows,
          size_t ahead,
          size_t m)
{
  switch (TILES_ARE_LOOPS ? 0 : m) {
  case 1:
    few_tile (f, panel, 0, x, groups, y, y_stride, rows, ahead, VECTORS, 1);
    break;
  case 2:
    few_tile (f, panel, 0, x, groups, y, y_stride, rows, ahead, VECTORS, 2);
    break;
  default:
    for (size_t first = 0; first < OX_PANEL_ROWS && first < rows; first += HALF_ROWS) {
      size_t left = rows - first, half_ahead = first == 0 ? ahead : 0;
      if (TILES_ARE_LOOPS)
        few_tile (f, panel, first, x, groups, y + first, y_stride, left, half_ahead, 2, m);
      else if (m == 3)
        few_tile (f, panel, first, x, groups, y + first, y_stride, left, half_ahead, 2, 3);
      else
        few_tile (f, panel, first, x, groups, y + first, y_stride, left, half_ahead, 2, 4);
    }
  }
}

/* ---- Many activation rows ------------------------------------------------------------------------------------------- */

#if !OX_USE_MATRICES

typedef struct {
  float scales[4 * OX_PANEL_ROWS];
  int8_t quants[32 * OX_PANEL_ROWS];
} UnpackedGroup;

ALWAYS_INLINE void
unpack_group (const OxPanelFormat f, const uint8_t *panel, size_t g, UnpackedGroup *out)
{
  const uint8_t *scales = panel + ox_panel_scales_offset (f, g);

  UNROLL
  for (size_t value = 0; value < ox_panel_values (f); value++) {
    UNROLL
    for (size_t v = 0; v < VECTORS; v++)
      vst1q_f32 (out->scales + value * OX_PANEL_ROWS + v * 4, load_scale (false, scales, value, v * 4));
  }
  UNROLL
  for (size_t half = 0; half < 2; half++) {
    UNROLL
    for (size_t step = 0; step < 4; step++) {
      UNROLL
      for (size_t v = 0; v < VECTORS; v++)
        vst1q_s8 (out->quants + (half * 4 + step) * STEP_BYTES + v * 16,
                  load_signed (f, panel + ox_panel_quants_offset (f, g) + v * 16, half, step));
    }
  }
}

/* Four activation rows as many_tile() reads them. */
typedef struct {
  const OxBlockQ8 *x;
  size_t groups;
} TileRows;

ALWAYS_INLINE void
prepare_rows (const OxPanelFormat f, const OxBlockQ8 *x, size_t groups, size_t n, TileRows *rows)
{
  *rows = (TileRows) { x, groups };
}

/* Adds @n groups of eight outputs, from @first, to four rows of sums that begin at @y. */
ALWAYS_INLINE void
many_tile (const OxPanelFormat f,
           const UnpackedGroup *unpacked,
           size_t n,
           const size_t first,
           const TileRows *in,
           float *y,
           size_t y_stride,
           size_t rows,
           const float *row_scale,
           Part part)
{
  float32x4_t totals[VECTORS][TILE_ROWS];

  UNROLL
  for (size_t v = 0; v < 2; v++) {
    UNROLL
    for (size_t i = 0; i < TILE_ROWS; i++)
      totals[v][i] =
        part.begins ? vdupq_n_f32 (0) : load_part (y + i * y_stride + v * 4, rows > v * 4 ? rows - v * 4 : 0);
  }
  for (size_t g = 0; g < n; g++)
    add_group (f, true, unpacked[g].scales, (const uint8_t *) unpacked[g].quants, first, in->x + g, in->groups, totals,
               2, TILE_ROWS);
  UNROLL
  for (size_t v = 0; v < 2; v++) {
    float32x4_t scale = part.ends ? vld1q_f32 (row_scale + v * 4) : vdupq_n_f32 (1);
    UNROLL
    for (size_t i = 0; i < TILE_ROWS; i++)
      store_part (y + i * y_stride + v * 4, vmulq_f32 (totals[v][i], scale), rows > v * 4 ? rows - v * 4 : 0);
  }
}

#endif

/* @m activation rows, a multiple of four, times one or two panels, which have @rows outputs. */
ALWAYS_INLINE void
many_rows (const OxPanelFormat f,
           const uint8_t *panel,
           const OxBlockQ8 *x,
           size_t m,
           size_t groups,
           float *y,
           size_t y_stride,
           size_t rows)
{
  const size_t bytes = ox_panel_bytes (f, groups * 32);
  UnpackedGroup unpacked[PART_PANELS][PART_GROUPS];
  TileRows in;

  for (size_t begin = 0; begin < groups; begin += PART_GROUPS) {
    size_t n = groups - begin < PART_GROUPS ? groups - begin : PART_GROUPS;
    Part part = { begin == 0, begin + n == groups };

    for (size_t p = 0; p * OX_PANEL_ROWS < rows; p++)
      for (size_t g = 0; g < n; g++)
        unpack_group (f, panel + p * bytes, begin + g, &unpacked[p][g]);
    for (size_t i = 0; i < m; i += TILE_ROWS) {
      prepare_rows (f, x + i * groups + begin, groups, n, &in);
      for (size_t row = 0; row < rows; row += HALF_ROWS) {
        size_t p = row / OX_PANEL_ROWS, first = row % OX_PANEL_ROWS;
        many_tile (f, unpacked[p], n, first, &in, y + i * y_stride + row, y_stride, rows - row,
                   (const float *) (const void *) (panel + p * bytes) + first, part);
      }
    }
  }
}

/* ---- Any number ------------------------------------------------------------------------------------------------------ */

ALWAYS_INLINE void
panel_matmul (const OxPanelFormat f,
              const OxPackedMatrix *w,
              const void *x,
              size_t m,
              float *y,
              size_t y_stride,
              size_t row_begin,
              size_t row_end)
{
  const size_t bytes = ox_panel_bytes (f, w->cols), groups = w->cols / 32;
  const size_t many = m < MANY_ROWS || groups == 0 ? 0 : m / TILE_ROWS * TILE_ROWS;

  for (size_t row = row_begin; row < row_end; row += PART_ROWS) {
    const uint8_t *panel = (const uint8_t *) w->data + row / OX_PANEL_ROWS * bytes;
    size_t rows = row_end - row < PART_ROWS ? row_end - row : PART_ROWS, n;

    if (many != 0)
      many_rows (f, panel, x, many, groups, y + row, y_stride, rows);
    for (size_t first = 0; first < rows; first += OX_PANEL_ROWS)
      for (size_t i = many; i < m; i += n) {
        n = m - i < TILE_ROWS ? m - i : TILE_ROWS;
        few_rows (f, panel + first / OX_PANEL_ROWS * bytes, (const OxBlockQ8 *) x + i * groups, groups,
                  y + i * y_stride + row + first, y_stride, rows - first, i == 0 ? PREFETCH_BYTES : 0, n);
      }
  }
}

#include "ox-panel-kernels.h"
