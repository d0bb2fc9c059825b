/* Linear layers, C reference: exact, integer panels, float panels. Written for reading; shapes as in ox-kernels.h.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

#include "ox-decode.h"
#include "ox-quantize.h"
#include "ox-tile.h"

/* Columns that are expanded at a time: a whole number of blocks of every format, and small enough for the stack. */
#define CHUNK 1024

/* ---- Exact: expand to float32, sum in float64 --------------------------------------------------------------------- */

static void
exact_matmul (
  const OxPackedMatrix *w, const void *x, size_t m, float *y, size_t y_stride, size_t row_begin, size_t row_end)
{
  const float *in = x;
  uint64_t row_bytes = 0, chunk_bytes = 0;

  ox_type_row_bytes (w->type, w->cols, &row_bytes);
  ox_type_row_bytes (w->type, CHUNK, &chunk_bytes);

  for (size_t r = row_begin; r < row_end; r++) {
    const uint8_t *row = (const uint8_t *) w->data + r * row_bytes;
    for (size_t i = 0; i < m; i++)
      y[i * y_stride + r] = 0;
    for (size_t c = 0; c < w->cols; c += CHUNK) {
      float expanded[CHUNK];
      size_t n = w->cols - c < CHUNK ? w->cols - c : CHUNK;

      ox_dequantize_row (w->type, row + c / CHUNK * chunk_bytes, expanded, n);
      for (size_t i = 0; i < m; i++) {
        double sum = 0;
        for (size_t j = 0; j < n; j++)
          sum += (double) expanded[j] * in[i * w->cols + c + j];
        y[i * y_stride + r] += (float) sum;
      }
    }
  }
}

static void
exact_matvec (const OxPackedMatrix *w, const void *x, float *y, size_t row_begin, size_t row_end)
{
  exact_matmul (w, x, 1, y, 0, row_begin, row_end);
}

static const OxLinearKernel exact_kernel = {
  .name = "exact-c",
  .activation = OX_ACTIVATION_F32,
  .row_step = 1,
  .packed_bytes = ox_exact_packed_bytes,
  .pack = ox_exact_pack,
  .matvec = exact_matvec,
  .matmul = exact_matmul,
};

/* ---- Integer panels ------------------------------------------------------------------------------------------------ */

/* Adds the products of elements [first, first + 16) of a group to the 16 sums of a panel. */
static inline void
dot_half (OxPanelFormat f, const uint8_t *quants, const int8_t *x, unsigned first, int32_t sums[OX_PANEL_ROWS])
{
  for (unsigned step = 0; step < 4; step++) {
    const uint8_t *q = quants + (f.bits == 8 ? step + first / 4 : step) * 64;
    for (unsigned row = 0; row < OX_PANEL_ROWS; row++)
      for (unsigned j = 0; j < 4; j++) {
        int value = f.bits == 8 ? q[row * 4 + j] : first == 0 ? q[row * 4 + j] & 15 : q[row * 4 + j] >> 4;
        sums[row] += (value - (int) f.zero_point) * x[first + step * 4 + j];
      }
  }
}

static inline void
panel_dot (OxPanelFormat f, const uint8_t *panel, const OxBlockQ8 *x, size_t cols, float out[OX_PANEL_ROWS])
{
  const float *scale = (const float *) (const void *) panel;
  float sums[OX_PANEL_ROWS] = { 0 };

  for (size_t g = 0; g < cols / 32; g++, x++) {
    const uint8_t *quants = panel + ox_panel_quants_offset (f, g);
    const uint16_t *dm = (const uint16_t *) (const void *) (panel + ox_panel_scales_offset (f, g));

    for (unsigned first = 0; first < 32; first += f.group) {
      int32_t products[OX_PANEL_ROWS] = { 0 };
      float x_sum = x->scale * (float) (f.group == 32 ? x->sum[0] + x->sum[1] : x->sum[first / 16]);

      dot_half (f, quants, x->q, first, products);
      if (f.group == 32)
        dot_half (f, quants, x->q, 16, products);
      for (unsigned row = 0; row < OX_PANEL_ROWS; row++)
        sums[row] += x->scale * (float) products[row] * ox_f16_to_f32 (dm[row]);
      dm += OX_PANEL_ROWS;
      if (f.affine) {
        for (unsigned row = 0; row < OX_PANEL_ROWS; row++)
          sums[row] += x_sum * ox_f16_to_f32 (dm[row]);
        dm += OX_PANEL_ROWS;
      }
    }
  }
  for (unsigned row = 0; row < OX_PANEL_ROWS; row++)
    out[row] = sums[row] * scale[row];
}

ALWAYS_INLINE void
panel_matmul (OxPanelFormat f,
              const OxPackedMatrix *w,
              const void *x,
              size_t m,
              float *y,
              size_t y_stride,
              size_t row_begin,
              size_t row_end)
{
  size_t x_bytes = ox_activation_row_bytes (OX_ACTIVATION_Q8, w->cols), bytes = ox_panel_bytes (f, w->cols);

  for (size_t r = row_begin; r < row_end; r += OX_PANEL_ROWS)
    for (size_t i = 0; i < m; i++) {
      float out[OX_PANEL_ROWS];
      size_t n = row_end - r < OX_PANEL_ROWS ? row_end - r : OX_PANEL_ROWS;

      panel_dot (f, (const uint8_t *) w->data + r / OX_PANEL_ROWS * bytes,
                 (const OxBlockQ8 *) (const void *) ((const uint8_t *) x + i * x_bytes), w->cols, out);
      memcpy (y + i * y_stride + r, out, n * sizeof (float));
    }
}

#define PANEL_LEVEL "c"
#include "ox-panel-kernels.h"

/* ---- Float panels ---------------------------------------------------------------------------------------------------- */

static inline float
float_at (uint32_t type, const void *panel, size_t row, size_t c)
{
  return type == OX_TYPE_F32   ? ((const float *) panel)[c * OX_PANEL_ROWS + row]
         : type == OX_TYPE_F16 ? ox_f16_to_f32 (((const uint16_t *) panel)[c * OX_PANEL_ROWS + row])
                               : ox_bf16_to_f32 (((const uint16_t *) panel)[(c / 2 * OX_PANEL_ROWS + row) * 2 + c % 2]);
}

static void
float_matmul (
  const OxPackedMatrix *w, const void *x, size_t m, float *y, size_t y_stride, size_t row_begin, size_t row_end)
{
  size_t bytes = ox_float_panel_bytes (w->type, w->cols);

  for (size_t r = row_begin; r < row_end; r += OX_PANEL_ROWS)
    for (size_t i = 0; i < m; i++) {
      const void *panel = (const uint8_t *) w->data + r / OX_PANEL_ROWS * bytes;
      const float *in = (const float *) x + i * w->cols;
      size_t n = row_end - r < OX_PANEL_ROWS ? row_end - r : OX_PANEL_ROWS;
      float sums[OX_PANEL_ROWS] = { 0 };

      for (size_t c = 0; c < w->cols; c++)
        for (unsigned row = 0; row < OX_PANEL_ROWS; row++)
          sums[row] += in[c] * float_at (w->type, panel, row, c);
      memcpy (y + i * y_stride + r, sums, n * sizeof (float));
    }
}

static void
float_matvec (const OxPackedMatrix *w, const void *x, float *y, size_t row_begin, size_t row_end)
{
  float_matmul (w, x, 1, y, 0, row_begin, row_end);
}

#define FLOAT_ENTRY(NAME)                                                                                                \
  {                                                                                                                      \
    NAME, OX_ACTIVATION_F32, OX_PANEL_ROWS, ox_float_panel_packed_bytes, ox_float_panel_pack, float_matvec, float_matmul \
  }

static const OxLinearKernel float_kernels[] = { FLOAT_ENTRY ("f32-c"), FLOAT_ENTRY ("f16-c"),
                                                FLOAT_ENTRY ("bf16x2-c") };

const OxLinearSet ox_linear_c = { &exact_kernel, panel_kernels, float_kernels };
