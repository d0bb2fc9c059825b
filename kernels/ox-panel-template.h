/* The kernels over integer panels (ox-panel.h) that an instruction set offers, all made of its panel_tile(). The including
 * file has included ox-tile.h and defines PANEL_LEVEL, TILE_PANELS and TILE_ROWS and
 *
 *     panel_tile (format, panel, x, groups, y, y_stride, rows, P, M)
 *
 * for @P panels (one, or TILE_PANELS) and @M ≤ TILE_ROWS activation rows of @groups blocks; it stores the first @rows outputs.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */

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
    size_t rows = row_end - row, n;
    bool wide = TILE_PANELS == 1 || rows > OX_PANEL_ROWS * (TILE_PANELS - 1);

    for (size_t i = 0; i < m; i += n) {
      const OxBlockQ8 *in = (const OxBlockQ8 *) x + i * groups;
      float *out = y + i * y_stride + row;

      /* A few sizes are enough: what is left over finds its weights in the cache. A single activation row is bound by memory,
       * which is read fastest as one stream: panel by panel. */
      n = wide && m - i >= TILE_ROWS ? TILE_ROWS : m - i >= 2 ? 2 : 1;
      if (n == TILE_ROWS)
        panel_tile (f, panel, in, groups, out, y_stride, rows, TILE_PANELS, TILE_ROWS);
      else if (n == 2 && wide)
        panel_tile (f, panel, in, groups, out, y_stride, rows, TILE_PANELS, 2);
      else if (n == 2)
        panel_tile (f, panel, in, groups, out, y_stride, rows, 1, 2);
      else
        for (size_t p = 0; p < (wide ? TILE_PANELS : 1); p++)
          panel_tile (f, panel + p * bytes, in, groups, out + p * OX_PANEL_ROWS, y_stride, rows - p * OX_PANEL_ROWS, 1,
                      1);
    }
    row += wide ? OX_PANEL_ROWS * TILE_PANELS : OX_PANEL_ROWS;
  }
}

#include "ox-panel-kernels.h"
