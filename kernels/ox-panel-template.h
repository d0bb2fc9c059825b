/* The kernels over integer panels (ox-panel.h) that an x86 instruction set offers, all made of the tile of ox-panel-tile.h. The
 * including file has included that and defines PANEL_LEVEL, TILE_PANELS, TILE_ROWS and FEW_ROWS.
 *
 * Few activation rows wait for memory, which is read fastest as one stream: panel by panel, from its beginning to its end, each
 * weight read and unpacked once for all rows. FEW_ROWS is the greatest number whose sums fit in the registers.
 *
 * More rows wait for arithmetic. Then columns are cut twice. A block of some columns of TILE_PANELS panels stays in the first
 * cache while all activation rows are multiplied with it, and half bytes are unpacked once for all of them. Where the
 * activations are more than the second cache holds, all panels are multiplied with a part of their columns before the next part
 * is looked at. Totals lie in y meanwhile; a float that is stored and loaded is the same float, and so the sums are the same to
 * the bit whatever the cut.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */

#define TILE_VECTORS (TILE_PANELS * PANEL_VECTORS)

/* Groups of 32 columns that a block has, an even number: 10 or 5 KiB a panel, 20 KiB in all. */
#define BLOCK_GROUPS (TILE_PANELS > 2 ? 8 : 16)
/* Of a panel: rows' scales, quants and at most four half floats a row and group. */
#define BLOCK_BYTES (OX_PANEL_ROWS * (sizeof (float) + BLOCK_GROUPS * (32 + 4 * sizeof (uint16_t))))
/* Of activations, and rows of them: they share a second cache of half a megabyte or more with the weights and y. Weights are read
 * again for every so many rows, and y for every part of the columns. */
#define PART_BYTES (256u << 10)
#define PART_ROWS 256

/* ---- Totals -------------------------------------------------------------------------------------------------------- */

/* Of y [M][rows], beginning at row 0 of the tile. */
ALWAYS_INLINE void
load_totals (
  const float *y, size_t y_stride, size_t rows, VF totals[MAX_VECTORS][MAX_ROWS], const size_t V, const size_t M)
{
  UNROLL
  for (size_t v = 0; v < V; v++) {
    size_t first = v * VF_LANES, left = rows > first ? rows - first : 0;

    UNROLL
    for (size_t i = 0; i < M; i++)
      totals[v][i] = left >= VF_LANES ? vf_load (y + i * y_stride + first) : vf_load_n (y + i * y_stride + first, left);
  }
}

/* Multiplied with the rows' scales when the totals are complete. */
ALWAYS_INLINE void
store_totals (const uint8_t *panel,
              size_t bytes,
              bool complete,
              VF totals[MAX_VECTORS][MAX_ROWS],
              float *y,
              size_t y_stride,
              size_t rows,
              const size_t V,
              const size_t M)
{
  UNROLL
  for (size_t v = 0; v < V; v++) {
    size_t first = v * VF_LANES, left = rows > first ? rows - first : 0;
    VF scale = complete ? vf_load ((const float *) (const void *) (panel + vector_offset (v, bytes, sizeof (float))))
                        : vf_set1 (1);

    UNROLL
    for (size_t i = 0; i < M; i++) {
      VF total = vf_mul (totals[v][i], scale);

      if (left >= VF_LANES)
        vf_store (y + i * y_stride + first, total);
      else
        vf_store_n (y + i * y_stride + first, total, left);
    }
  }
}

ALWAYS_INLINE void
clear_totals (VF totals[MAX_VECTORS][MAX_ROWS], const size_t V, const size_t M)
{
  UNROLL
  for (size_t v = 0; v < V; v++) {
    UNROLL
    for (size_t i = 0; i < M; i++)
      totals[v][i] = vf_set1 (0);
  }
}

/* Calls TILE (M) with @m as a constant. Sanitised builds have one tile of loops for all. */
#define TILE_CASE(M, MOST, TILE)                                                                                       \
  case M:                                                                                                              \
    if (M <= MOST)                                                                                                     \
      TILE (M <= MOST ? M : 1);                                                                                        \
    break;
#define TILE_SWITCH(m, MOST, TILE)                                                                                     \
  do {                                                                                                                 \
    if (TILES_ARE_LOOPS) {                                                                                             \
      TILE (m);                                                                                                        \
      break;                                                                                                           \
    }                                                                                                                  \
    switch (m) {                                                                                                       \
      TILE_CASE (1, MOST, TILE)                                                                                        \
      TILE_CASE (2, MOST, TILE)                                                                                        \
      TILE_CASE (3, MOST, TILE)                                                                                        \
      TILE_CASE (4, MOST, TILE)                                                                                        \
      TILE_CASE (5, MOST, TILE)                                                                                        \
      TILE_CASE (6, MOST, TILE)                                                                                        \
      TILE_CASE (7, MOST, TILE)                                                                                        \
      TILE_CASE (8, MOST, TILE)                                                                                        \
    }                                                                                                                  \
  } while (0)

/* ---- Few activation rows -------------------------------------------------------------------------------------------- */

/* @m ≤ FEW_ROWS activation rows with one panel, of which @rows outputs are stored. Memory @ahead bytes ahead is asked for. */
ALWAYS_INLINE void
panel_few (const OxPanelFormat f,
           const uint8_t *panel,
           const OxBlockQ8 *x,
           size_t groups,
           float *y,
           size_t y_stride,
           size_t rows,
           size_t ahead,
           size_t m)
{
#define FEW_TILE(M)                                                                                                    \
  do {                                                                                                                 \
    VF totals[MAX_VECTORS][MAX_ROWS];                                                                                  \
    clear_totals (totals, PANEL_VECTORS, M);                                                                           \
    panel_tile (f, panel, 0, x, groups, groups, ahead, true, totals, PANEL_VECTORS, M);                                \
    store_totals (panel, 0, true, totals, y, y_stride, rows, PANEL_VECTORS, M);                                        \
  } while (0)

  TILE_SWITCH (m, FEW_ROWS, FEW_TILE);
#undef FEW_TILE
}

/* ---- Many ----------------------------------------------------------------------------------------------------------- */

/* What a block is like when its half bytes are unpacked: the same with 8 bits. */
ALWAYS_INLINE OxPanelFormat
unpacked_format (OxPanelFormat f)
{
  f.bits = 8;
  return f;
}

/* @groups groups of one panel with half bytes to @dst, as if both began with the first of them. */
ALWAYS_INLINE void
unpack_groups (const OxPanelFormat f, const uint8_t *panel, uint8_t *dst, size_t groups)
{
  const OxPanelFormat to = unpacked_format (f);

  for (size_t g = 0; g < groups; g++) {
    const uint8_t *quants = panel + ox_panel_quants_offset (f, g);
    uint8_t *out = dst + ox_panel_quants_offset (to, g);

    memcpy (dst + ox_panel_scales_offset (to, g), panel + ox_panel_scales_offset (f, g), ox_panel_scales_bytes (f));
    UNROLL
    for (size_t step = 0; step < 4; step++) {
      UNROLL
      for (size_t v = 0; v < PANEL_VECTORS; v++) {
        VI q = vi_load (quants + step * LINE_BYTES + vector_offset (v, 0, 4));
        vi_store (out + step * LINE_BYTES + vector_offset (v, 0, 4), vi_low_halves (q));
        vi_store (out + (step + 4) * LINE_BYTES + vector_offset (v, 0, 4), vi_high_halves (q));
      }
    }
  }
}

/* A range of columns of TILE_PANELS panels, unpacked where it has to be, with all activation rows. */
typedef struct {
  const uint8_t *panel; /* where the rows' scales are */
  const uint8_t *block; /* as if it began with the first of these columns */
  size_t panel_bytes, block_bytes;
  size_t groups;
  const uint8_t *next; /* the block after this one, about as long, or beyond the weights */
  size_t next_bytes;
  bool first, last; /* of all columns */
} PanelBlock;

/* @m activation rows from @x on, @x_stride blocks apart, TILE_ROWS at a time. */
ALWAYS_INLINE void
block_rows (const OxPanelFormat f,
            const PanelBlock *b,
            const OxBlockQ8 *x,
            size_t x_stride,
            size_t m,
            float *y,
            size_t y_stride,
            size_t rows)
{
#define BLOCK_TILE(M)                                                                                                  \
  do {                                                                                                                 \
    VF totals[MAX_VECTORS][MAX_ROWS];                                                                                  \
    if (b->first)                                                                                                      \
      clear_totals (totals, TILE_VECTORS, M);                                                                          \
    else                                                                                                               \
      load_totals (y, y_stride, rows, totals, TILE_VECTORS, M);                                                        \
    panel_tile (unpacked_format (f), b->block, b->block_bytes, x, x_stride, b->groups, 0, false, totals, TILE_VECTORS, \
                M);                                                                                                    \
    store_totals (b->panel, b->panel_bytes, b->last, totals, y, y_stride, rows, TILE_VECTORS, M);                      \
  } while (0)

  /* What is read next, asked for in as many parts as there are tiles. */
  size_t tiles = (m + TILE_ROWS - 1) / TILE_ROWS,
         share = (b->next_bytes / tiles + LINE_BYTES) / LINE_BYTES * LINE_BYTES;

  for (size_t t = 0; t < tiles; t++, x += TILE_ROWS * x_stride, y += TILE_ROWS * y_stride) {
    for (size_t p = 0; p < TILE_PANELS; p++)
      for (size_t n = t * share; n < (t + 1) * share && n < b->next_bytes; n += LINE_BYTES)
        __builtin_prefetch (b->next + p * b->panel_bytes + n, 0, 2);
    if (m - t * TILE_ROWS >= TILE_ROWS)
      BLOCK_TILE (TILE_ROWS);
    else
      TILE_SWITCH (m - t * TILE_ROWS, TILE_ROWS - 1, BLOCK_TILE);
  }
#undef BLOCK_TILE
}

/* Groups [g, end) of TILE_PANELS panels. */
ALWAYS_INLINE void
panels_part (const OxPanelFormat f,
             const uint8_t *panel,
             const OxBlockQ8 *x,
             size_t groups,
             size_t g,
             size_t end,
             size_t m,
             float *y,
             size_t y_stride,
             size_t rows)
{
  uint8_t unpacked[TILE_PANELS * BLOCK_BYTES] __attribute__ ((aligned (64)));
  PanelBlock block = { .panel = panel, .panel_bytes = ox_panel_bytes (f, groups * 32) };
  const uint8_t *next_panels = panel + TILE_PANELS * block.panel_bytes + g / 2 * ox_panel_pair_bytes (f);

  for (; g < end; g += block.groups) {
    const uint8_t *from = panel + g / 2 * ox_panel_pair_bytes (f);

    block.groups = end - g < BLOCK_GROUPS ? end - g : BLOCK_GROUPS;
    block.next_bytes = (block.groups + 1) / 2 * ox_panel_pair_bytes (f);
    block.next = g + block.groups < end ? from + block.next_bytes : next_panels;
    block.first = g == 0;
    block.last = g + block.groups == groups;
    block.block = f.bits == 8 ? from : unpacked;
    block.block_bytes = f.bits == 8 ? block.panel_bytes : BLOCK_BYTES;
    for (size_t p = 0; f.bits != 8 && p < TILE_PANELS; p++)
      unpack_groups (f, from + p * block.panel_bytes, unpacked + p * block.block_bytes, block.groups);
    block_rows (f, &block, x + g, groups, m, y, y_stride, rows);
  }
}

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
  const size_t groups = w->cols / 32, bytes = ox_panel_bytes (f, w->cols), tile_rows = TILE_PANELS * OX_PANEL_ROWS;
  const uint8_t *panels = (const uint8_t *) w->data;
  size_t row = row_begin, i, n;

  for (i = 0; m > 2 * FEW_ROWS && i < m; i += n) {
    const OxBlockQ8 *in = (const OxBlockQ8 *) x + i * groups;
    size_t part;

    n = m - i < PART_ROWS ? m - i : PART_ROWS;
    part = PART_BYTES / (n * sizeof (OxBlockQ8)) / BLOCK_GROUPS * BLOCK_GROUPS;
    part = part < BLOCK_GROUPS ? BLOCK_GROUPS : part;
    for (size_t g = 0; g < groups; g += part)
      for (row = row_begin; row < row_end && row_end - row > tile_rows - OX_PANEL_ROWS; row += tile_rows)
        panels_part (f, panels + row / OX_PANEL_ROWS * bytes, in, groups, g, groups - g < part ? groups : g + part, n,
                     y + i * y_stride + row, y_stride, row_end - row);
  }

  /* All with few activation rows, otherwise what is left over. Tiles of nearly the same number of rows are faster than a full one
   * and one of what remains. */
  for (; row < row_end; row += OX_PANEL_ROWS)
    for (i = 0; i < m; i += n) {
      size_t tiles = (m - i + FEW_ROWS - 1) / FEW_ROWS;

      n = (m - i + tiles - 1) / tiles;
      panel_few (f, panels + row / OX_PANEL_ROWS * bytes, (const OxBlockQ8 *) x + i * groups, groups,
                 y + i * y_stride + row, y_stride, row_end - row, i == 0 ? PREFETCH_BYTES : 0, n);
    }
}

#include "ox-panel-kernels.h"
