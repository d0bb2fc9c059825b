/* Linear layers on float activations, written once over the vectors of ox-simd-*.h: exact precision for all formats, and
 * float panels (F32, F16, BF16) for fast precision. The including file has included ox-internal.h and one of ox-simd-*.h.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-decode.h"
#include "ox-tile.h"

/* ---- Exact: rows expanded to float32, a dot product each -------------------------------------------------------------- */

/* Columns expanded at a time, a whole number of blocks of every format; with EXACT_ROWS rows 16 KiB of stack. */
#define EXACT_CHUNK 1024
#define EXACT_ROWS 4
#define EXACT_TILE 4

/* out[i][r] = Σ_j w[r][j]·x[i][j] over @n columns of @R rows and @M activations. The order of the sum depends on neither. */
ALWAYS_INLINE void
exact_tile (const float *w,
            size_t w_stride,
            const float *x,
            size_t x_stride,
            size_t n,
            float *out,
            const size_t R,
            const size_t M)
{
  VF sums[EXACT_ROWS][EXACT_TILE];
  size_t j = 0;

  for (size_t r = 0; r < R; r++)
    for (size_t i = 0; i < M; i++)
      sums[r][i] = vf_set1 (0);
  for (; j + VF_LANES <= n; j += VF_LANES) {
    VF v[EXACT_ROWS];
    for (size_t r = 0; r < R; r++)
      v[r] = vf_load (w + r * w_stride + j);
    for (size_t i = 0; i < M; i++) {
      VF in = vf_load (x + i * x_stride + j);
      for (size_t r = 0; r < R; r++)
        sums[r][i] = vf_fma (v[r], in, sums[r][i]);
    }
  }
  if (j < n)
    for (size_t i = 0; i < M; i++) {
      VF in = vf_load_n (x + i * x_stride + j, n - j);
      for (size_t r = 0; r < R; r++)
        sums[r][i] = vf_fma (vf_load_n (w + r * w_stride + j, n - j), in, sums[r][i]);
    }
  for (size_t i = 0; i < M; i++)
    for (size_t r = 0; r < R; r++)
      out[i * EXACT_ROWS + r] = vf_sum (sums[r][i]);
}

static void
exact_matmul (
  const OxPackedMatrix *w, const void *x, size_t m, float *y, size_t y_stride, size_t row_begin, size_t row_end)
{
  const float *in = x;
  uint64_t row_bytes = 0, chunk_bytes = 0;

  ox_type_row_bytes (w->type, w->cols, &row_bytes);
  ox_type_row_bytes (w->type, EXACT_CHUNK, &chunk_bytes);

  for (size_t row = row_begin; row < row_end; row += EXACT_ROWS) {
    size_t rows = row_end - row < EXACT_ROWS ? row_end - row : EXACT_ROWS;

    for (size_t c = 0; c < w->cols; c += EXACT_CHUNK) {
      _Alignas (64) float expanded[EXACT_ROWS * EXACT_CHUNK];
      size_t n = w->cols - c < EXACT_CHUNK ? w->cols - c : EXACT_CHUNK, tile;
      const float *weights = expanded;
      size_t w_stride = EXACT_CHUNK;

      if (w->type == OX_TYPE_F32 && rows == EXACT_ROWS) {
        weights = (const float *) w->data + row * w->cols + c;
        w_stride = w->cols;
      }
      for (size_t r = 0; r < EXACT_ROWS && weights == expanded; r++) {
        const uint8_t *src = (const uint8_t *) w->data + (row + (r < rows ? r : 0)) * row_bytes;
        ox_dequantize_row (w->type, src + c / EXACT_CHUNK * chunk_bytes, expanded + r * EXACT_CHUNK, n);
      }
      for (size_t i = 0; i < m; i += tile) {
        float out[EXACT_TILE * EXACT_ROWS];

        tile = m - i >= EXACT_TILE ? EXACT_TILE : 1;
        if (tile == EXACT_TILE)
          exact_tile (weights, w_stride, in + i * w->cols + c, w->cols, n, out, EXACT_ROWS, EXACT_TILE);
        else
          exact_tile (weights, w_stride, in + i * w->cols + c, w->cols, n, out, EXACT_ROWS, 1);
        for (size_t t = 0; t < tile; t++)
          for (size_t r = 0; r < rows; r++) {
            float *to = &y[(i + t) * y_stride + row + r];
            *to = c == 0 ? out[t * EXACT_ROWS + r] : *to + out[t * EXACT_ROWS + r];
          }
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
  .name = "exact-" OX_LEVEL,
  .activation = OX_ACTIVATION_F32,
  .row_step = EXACT_ROWS,
  .packed_bytes = ox_exact_packed_bytes,
  .pack = ox_exact_pack,
  .matvec = exact_matvec,
  .matmul = exact_matmul,
};

/* ---- Float panels -------------------------------------------------------------------------------------------------------- */

#define VECTORS_PER_PANEL (OX_PANEL_ROWS / VF_LANES)

ALWAYS_INLINE VF
load_weights (const uint32_t type, const uint8_t *p)
{
  return type == OX_TYPE_F32   ? vf_load ((const float *) (const void *) p)
         : type == OX_TYPE_F16 ? vf_load_f16 (p)
                               : vf_load_bf16 (p);
}

/* @V vectors of outputs × @M activation rows: outer products, the sum of each output in the order of the columns. */
ALWAYS_INLINE void
float_tile (const uint32_t type,
            const uint8_t *panel,
            size_t panel_bytes,
            const float *x,
            size_t cols,
            float *y,
            size_t y_stride,
            size_t rows,
            size_t ahead,
            const size_t V,
            const size_t M)
{
  const size_t element = type == OX_TYPE_F32 ? 4 : 2;
  VF sums[FLOAT_TILE_VECTORS][FLOAT_TILE_ROWS];

  UNROLL
  for (size_t v = 0; v < V; v++) {
    UNROLL
    for (size_t i = 0; i < M; i++)
      sums[v][i] = vf_set1 (0);
  }
  for (size_t c = 0; c < cols; c++) {
    VF weights[FLOAT_TILE_VECTORS];
    if (ahead != 0 && (element == 4 || c % 2 == 0)) {
      UNROLL
      for (size_t p = 0; p < V / VECTORS_PER_PANEL; p++)
        prefetch_lines (panel + p * panel_bytes + c * OX_PANEL_ROWS * element, ahead, LINE_BYTES);
    }
    UNROLL
    for (size_t v = 0; v < V; v++)
      weights[v] = load_weights (type, panel + v / VECTORS_PER_PANEL * panel_bytes +
                                         (c * OX_PANEL_ROWS + v % VECTORS_PER_PANEL * VF_LANES) * element);
    UNROLL
    for (size_t i = 0; i < M; i++) {
      VF in = vf_set1 (x[i * cols + c]);
      UNROLL
      for (size_t v = 0; v < V; v++)
        sums[v][i] = vf_fma (weights[v], in, sums[v][i]);
    }
  }
  UNROLL
  for (size_t v = 0; v < V; v++) {
    UNROLL
    for (size_t i = 0; i < M; i++) {
      size_t first = v * VF_LANES;
      if (first + VF_LANES <= rows)
        vf_store (y + i * y_stride + first, sums[v][i]);
      else if (first < rows)
        vf_store_n (y + i * y_stride + first, sums[v][i], rows - first);
    }
  }
}

/* Any number of activation rows up to FLOAT_TILE_ROWS has code of its own, so that each weight is read once. */
ALWAYS_INLINE void
float_few (const uint32_t type,
           const uint8_t *panel,
           size_t panel_bytes,
           const float *x,
           size_t cols,
           float *y,
           size_t y_stride,
           size_t rows,
           size_t ahead,
           const size_t V,
           size_t m)
{
#define FLOAT_FEW(M)                                                                                                   \
  case M:                                                                                                              \
    if (M <= FLOAT_TILE_ROWS)                                                                                          \
      float_tile (type, panel, panel_bytes, x, cols, y, y_stride, rows, ahead, V, M <= FLOAT_TILE_ROWS ? M : 1);       \
    break;

  if (TILES_ARE_LOOPS) {
    float_tile (type, panel, panel_bytes, x, cols, y, y_stride, rows, ahead, V, m);
    return;
  }
  switch (m) {
    FLOAT_FEW (1)
    FLOAT_FEW (2)
    FLOAT_FEW (3)
    FLOAT_FEW (4)
    FLOAT_FEW (5)
    FLOAT_FEW (6)
  }
#undef FLOAT_FEW
}

ALWAYS_INLINE void
float_matmul (const uint32_t type,
              const OxPackedMatrix *w,
              const void *x,
              size_t m,
              float *y,
              size_t y_stride,
              size_t row_begin,
              size_t row_end)
{
  const size_t tile_panels = FLOAT_TILE_VECTORS / VECTORS_PER_PANEL;
  size_t bytes = ox_float_panel_bytes (type == OX_TYPE_F32 ? 4 : 2, w->cols), cols = w->cols;
  size_t row = row_begin;

  while (row < row_end) {
    const uint8_t *panel = (const uint8_t *) w->data + row / OX_PANEL_ROWS * bytes;
    size_t rows = row_end - row, n;
    bool wide = rows > OX_PANEL_ROWS * (tile_panels - 1);

    for (size_t i = 0; i < m; i += n) {
      const float *in = (const float *) x + i * cols;
      float *out = y + i * y_stride + row;
      size_t ahead = i == 0 && m > 1 ? PREFETCH_BYTES : 0, left = m - i;

      /* Two of about the same size rather than a full tile and a small one. */
      n = left >= 2 * FLOAT_TILE_ROWS || left == FLOAT_TILE_ROWS ? FLOAT_TILE_ROWS
          : left > FLOAT_TILE_ROWS                               ? (left + 1) / 2
                                                                 : left;
      if (wide)
        float_few (type, panel, bytes, in, cols, out, y_stride, rows, ahead, FLOAT_TILE_VECTORS, n);
      else
        float_few (type, panel, bytes, in, cols, out, y_stride, rows, ahead, VECTORS_PER_PANEL, n);
    }
    row += wide ? tile_panels * OX_PANEL_ROWS : OX_PANEL_ROWS;
  }
}

#define FLOAT_KERNEL(TYPE)                                                                                             \
  static void TYPE##_matmul (const OxPackedMatrix *w, const void *x, size_t m, float *y, size_t y_stride,              \
                             size_t row_begin, size_t row_end)                                                         \
  {                                                                                                                    \
    float_matmul (OX_TYPE_##TYPE, w, x, m, y, y_stride, row_begin, row_end);                                           \
  }                                                                                                                    \
  static void TYPE##_matvec (const OxPackedMatrix *w, const void *x, float *y, size_t row_begin, size_t row_end)       \
  {                                                                                                                    \
    float_matmul (OX_TYPE_##TYPE, w, x, 1, y, 0, row_begin, row_end);                                                  \
  }

FLOAT_KERNEL (F32)
FLOAT_KERNEL (F16)
FLOAT_KERNEL (BF16)

#define FLOAT_ENTRY(TYPE, NAME)                                                                                        \
  { .name = NAME "-" OX_LEVEL,                                                                                         \
    .activation = OX_ACTIVATION_F32,                                                                                   \
    .row_step = OX_PANEL_ROWS,                                                                                         \
    .packed_bytes = ox_float_panel_packed_bytes,                                                                       \
    .pack = ox_float_panel_pack,                                                                                       \
    .matvec = TYPE##_matvec,                                                                                           \
    .matmul = TYPE##_matmul }

static const OxLinearKernel float_kernels[] = {
  FLOAT_ENTRY (F32, "f32"),
  FLOAT_ENTRY (F16, "f16"),
  FLOAT_ENTRY (BF16, "bf16"),
};
