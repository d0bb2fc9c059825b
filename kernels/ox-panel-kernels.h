/* The table of an instruction set's kernels over integer panels. The including file defines PANEL_LEVEL, the name of the
 * instruction set, and
 *
 *     panel_matmul (format, w, x, m, y, y_stride, row_begin, row_end)
 *
 * which is compiled once for each kind of panel, with the format as a constant.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */

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
