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

      /* A few sizes are enough: what is left over finds its weights in the cache. */
      n = m - i >= TILE_ROWS ? TILE_ROWS : m - i >= 2 ? 2 : 1;
      if (wide && n == TILE_ROWS)
        panel_tile (f, panel, in, groups, out, y_stride, rows, TILE_PANELS, TILE_ROWS);
      else if (wide && n == 2)
        panel_tile (f, panel, in, groups, out, y_stride, rows, TILE_PANELS, 2);
      else if (wide)
        panel_tile (f, panel, in, groups, out, y_stride, rows, TILE_PANELS, 1);
      else {
        n = n >= 2 ? 2 : 1;
        if (n == 2)
          panel_tile (f, panel, in, groups, out, y_stride, rows, 1, 2);
        else
          panel_tile (f, panel, in, groups, out, y_stride, rows, 1, 1);
      }
    }
    row += wide ? OX_PANEL_ROWS * TILE_PANELS : OX_PANEL_ROWS;
  }
}

#define PANEL_KERNEL(KIND)                                                                                             \
  static void KIND##_matmul (const OxPackedMatrix *w, const void *x, size_t m, float *y, size_t y_stride,              \
                             size_t row_begin, size_t row_end)                                                         \
  {                                                                                                                    \
    panel_matmul (OX_PANEL_FORMAT_##KIND, w, x, m, y, y_stride, row_begin, row_end);                                   \
  }                                                                                                                    \
  static void KIND##_matvec (const OxPackedMatrix *w, const void *x, float *y, size_t row_begin, size_t row_end)       \
  {                                                                                                                    \
    panel_matmul (OX_PANEL_FORMAT_##KIND, w, x, 1, y, 0, row_begin, row_end);                                          \
  }

PANEL_KERNEL (U4_G32)
PANEL_KERNEL (U4_G32_AFFINE)
PANEL_KERNEL (U4_G16)
PANEL_KERNEL (U4_G16_AFFINE)
PANEL_KERNEL (S8_G32)
PANEL_KERNEL (U5_G32)
PANEL_KERNEL (U5_G32_AFFINE)
PANEL_KERNEL (U6_G16)

#define PANEL_ENTRY(KIND, NAME)                                                                                        \
  {                                                                                                                    \
    .name = NAME "-" PANEL_LEVEL,                                                                                      \
    .activation = OX_ACTIVATION_Q8,                                                                                    \
    .row_step = OX_PANEL_ROWS,                                                                                         \
    .packed_bytes = ox_panel_packed_bytes,                                                                             \
    .pack = ox_panel_pack,                                                                                             \
    .matvec = KIND##_matvec,                                                                                           \
    .matmul = KIND##_matmul,                                                                                           \
  }

/* In the order of OxPanelKind. */
static const OxLinearKernel panel_kernels[] = {
  PANEL_ENTRY (U4_G32, "u4-g32"),
  PANEL_ENTRY (U4_G32_AFFINE, "u4-g32-affine"),
  PANEL_ENTRY (U4_G16, "u4-g16"),
  PANEL_ENTRY (U4_G16_AFFINE, "u4-g16-affine"),
  PANEL_ENTRY (S8_G32, "s8-g32"),
  PANEL_ENTRY (U5_G32, "u5-g32"),
  PANEL_ENTRY (U5_G32_AFFINE, "u5-g32-affine"),
  PANEL_ENTRY (U6_G16, "u6-g16"),
};
_Static_assert (sizeof panel_kernels == OX_N_PANELS * sizeof (OxLinearKernel), "a kernel for each kind of panel");
