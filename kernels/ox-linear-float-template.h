/* Linear layers on float activations, written once over the vectors of ox-simd-*.h: exact precision for all formats here, and float
 * panels (F32, F16, BF16) for fast precision. The including file has included ox-internal.h and one of ox-simd-*.h.
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

#include "ox-float-panel-template.h"
