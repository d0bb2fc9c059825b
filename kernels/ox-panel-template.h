/* The kernels over integer panels (ox-panel.h) that an instruction set offers, all made of its panel_tile(). The including
 * file has included ox-tile.h and defines PANEL_LEVEL, TILE_PANELS, TILE_ROWS, FEW_ROWS and
 *
 *     panel_tile (format, panel, x, groups, y, y_stride, rows, ahead, P, M)
 *
 * for @P panels and @M activation rows of @groups blocks: one panel and M ≤ FEW_ROWS ≤ 8, or TILE_PANELS and TILE_ROWS. It
 * stores the first @rows outputs. Unless @ahead is 0 it asks for the memory so many bytes ahead of what it reads.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */

/* Any number of activation rows up to FEW_ROWS has code of its own, so that each weight is read and unpacked once. */
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
#define PANEL_FEW(M)                                                                                                   \
  case M:                                                                                                              \
    if (M <= FEW_ROWS)                                                                                                 \
      panel_tile (f, panel, x, groups, y, y_stride, rows, ahead, 1, M <= FEW_ROWS ? M : 1);                            \
    break;

  if (TILES_ARE_LOOPS) {
    panel_tile (f, panel, x, groups, y, y_stride, rows, ahead, 1, m);
    return;
  }
  switch (m) {
    PANEL_FEW (1)
    PANEL_FEW (2)
    PANEL_FEW (3)
    PANEL_FEW (4)
    PANEL_FEW (5)
    PANEL_FEW (6)
    PANEL_FEW (7)
    PANEL_FEW (8)
  }
#undef PANEL_FEW
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
  size_t bytes = ox_panel_bytes (f, w->cols), groups = w->cols / 32;
  size_t row = row_begin;

  while (row < row_end) {
    const uint8_t *panel = (const uint8_t *) w->data + row / OX_PANEL_ROWS * bytes;
    size_t rows = row_end - row, panels = 1, i = 0, n;

    /* Few activation rows are bound by memory, which is read fastest as one stream: panel by panel. With many, weights come from
     * the cache all but once, and activations that are used for several panels are loaded less often. */
    if (TILE_PANELS > 1 && m > FEW_ROWS && rows > OX_PANEL_ROWS * (TILE_PANELS - 1))
      for (panels = TILE_PANELS; m - i >= TILE_ROWS; i += TILE_ROWS)
        panel_tile (f, panel, (const OxBlockQ8 *) x + i * groups, groups, y + i * y_stride + row, y_stride, rows, 0,
                    TILE_PANELS, TILE_ROWS);
    for (; i < m; i += n) {
      n = m - i > FEW_ROWS ? TILE_ROWS : m - i;
      for (size_t p = 0; p < panels; p++)
        panel_few (f, panel + p * bytes, (const OxBlockQ8 *) x + i * groups, groups,
                   y + i * y_stride + row + p * OX_PANEL_ROWS, y_stride, rows - p * OX_PANEL_ROWS,
                   i == 0 ? PREFETCH_BYTES : 0, n);
    }
    row += panels * OX_PANEL_ROWS;
  }
}

#include "ox-panel-kernels.h"
