/* Kernels over float panels (ox-panel.h), written once over the vectors of ox-simd-*.h. The including file has included ox-internal.h,
 * one of ox-simd-*.h and ox-tile.h. Where FLOAT_DOT_BF16 is defined the file is about BF16 alone: weights and activations are taken two
 * columns at a time by its vf_dot_bf16 (sum, weights, pair).
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <string.h>

#define VECTORS_PER_PANEL (OX_PANEL_ROWS / VF_LANES)
#define MOST_PANELS 4
/* Activation rows of the largest tile: of two vectors, so that each load serves several multiplications, and at least one panel. */
#define FLOAT_TILE_ROWS (FLOAT_TILE_SUMS / (VECTORS_PER_PANEL > 2 ? VECTORS_PER_PANEL : 2))
/* Weights that all activation rows are multiplied with before the next columns: with the activations of a tile they stay in a first cache
 * of 32 KiB, and these columns of several hundred activation rows stay in the second. */
#define BLOCK_BYTES 24576
/* Activations that share a second cache of half a megabyte or more with the weights and the outputs. */
#define ACTIVATION_BYTES (256u << 10)

#define MANY_PANELS (FLOAT_TILE_SUMS / (FLOAT_TILE_ROWS * VECTORS_PER_PANEL))
/* Panels that are worked on at once. Few activation rows want many, or else each sum would wait for the one before. */
#define PANELS_FOR(M)                                                                                                  \
  ((M) >= FLOAT_TILE_ROWS / 2                       ? MANY_PANELS                                                      \
   : (M) * VECTORS_PER_PANEL * 4 <= FLOAT_TILE_SUMS ? 4                                                                \
   : (M) * VECTORS_PER_PANEL * 2 <= FLOAT_TILE_SUMS ? 2                                                                \
                                                    : 1)

#ifdef FLOAT_DOT_BF16
typedef uint32_t Activation; /* a pair of BF16 */
#else
typedef float Activation;
#endif

/* What a vector of weights holds: whole columns, or one half of pairs of columns. */
typedef enum { COLUMN_F32, COLUMN_F16, COLUMN_EVEN, COLUMN_ODD } Column;

ALWAYS_INLINE VF
load_weights (const Column column, const uint8_t *p)
{
#ifndef FLOAT_DOT_BF16
  if (column == COLUMN_F16)
    return vf_load_f16 (p);
  if (column == COLUMN_EVEN)
    return vf_load_bf16_even (p);
  if (column == COLUMN_ODD)
    return vf_load_bf16_odd (p);
#endif
  return vf_load ((const float *) (const void *) p);
}

/* sums += weights · activations of a column; @x: that of activation row 0. */
ALWAYS_INLINE void
float_column (const Column column,
              const uint8_t *panel,
              size_t panel_bytes,
              const Activation *x,
              size_t x_stride,
              VF sums[MOST_PANELS * VECTORS_PER_PANEL][FLOAT_TILE_ROWS],
              const size_t P,
              const size_t M)
{
  const size_t vector_bytes = VF_LANES * (column == COLUMN_F16 ? 2 : 4), V = P * VECTORS_PER_PANEL;
  VF weights[MOST_PANELS * VECTORS_PER_PANEL];

  UNROLL_ROWS
  for (size_t v = 0; v < V; v++)
    weights[v] =
      load_weights (column, panel + v / VECTORS_PER_PANEL * panel_bytes + v % VECTORS_PER_PANEL * vector_bytes);
  UNROLL_ROWS
  for (size_t i = 0; i < M; i++) {
#ifdef FLOAT_DOT_BF16
    const Activation in = x[i * x_stride];
#else
    const VF in = vf_set1 (x[i * x_stride]);
#endif
    UNROLL_ROWS
    for (size_t v = 0; v < V; v++) {
#ifdef FLOAT_DOT_BF16
      sums[v][i] = vf_dot_bf16 (sums[v][i], weights[v], in);
#else
      sums[v][i] = vf_fma (weights[v], in, sums[v][i]);
#endif
    }
  }
}

/* @P panels × @M activation rows: outer products, the sum of each output in the order of the columns. It goes on from what is in y
 * when @goes_on, so that columns may come in several calls. */
ALWAYS_INLINE void
float_tile (const uint32_t type,
            const uint8_t *panel,
            size_t panel_bytes,
            const Activation *x,
            size_t x_stride,
            size_t cols,
            float *y,
            size_t y_stride,
            size_t rows,
            bool goes_on,
            size_t ahead,
            const size_t P,
            const size_t M)
{
  /* What a step of the loop reads: one column, or two. */
#ifdef FLOAT_DOT_BF16
  const Column column = COLUMN_F32;
#else
  const Column column = type == OX_TYPE_F32 ? COLUMN_F32 : type == OX_TYPE_F16 ? COLUMN_F16 : COLUMN_EVEN;
#endif
  const size_t step = column == COLUMN_EVEN ? 2 : 1, step_bytes = OX_PANEL_ROWS * (column == COLUMN_F16 ? 2 : 4);
  const size_t V = P * VECTORS_PER_PANEL;
  VF sums[MOST_PANELS * VECTORS_PER_PANEL][FLOAT_TILE_ROWS];
  size_t c = 0;

  UNROLL_ROWS
  for (size_t v = 0; v < V; v++) {
    size_t first = v * VF_LANES, left = rows > first ? rows - first : 0;
    UNROLL_ROWS
    for (size_t i = 0; i < M; i++) {
      sums[v][i] = vf_set1 (0);
      if (goes_on)
        sums[v][i] = left >= VF_LANES ? vf_load (y + i * y_stride + first)
                                      : vf_load_n (y + i * y_stride + (left ? first : 0), left);
    }
  }
  for (; c + step <= cols; c += step, panel += step_bytes) {
    if (ahead != 0 && (step_bytes >= LINE_BYTES || c % 2 == 0)) {
      UNROLL
      for (size_t p = 0; p < P; p++)
        prefetch_lines (panel + p * panel_bytes, ahead, LINE_BYTES);
    }
    float_column (column, panel, panel_bytes, x + c, x_stride, sums, P, M);
    if (column == COLUMN_EVEN)
      float_column (COLUMN_ODD, panel, panel_bytes, x + c + 1, x_stride, sums, P, M);
  }
  if (c < cols)
    float_column (column, panel, panel_bytes, x + c, x_stride, sums, P, M);
  UNROLL_ROWS
  for (size_t v = 0; v < V; v++) {
    size_t first = v * VF_LANES;
    UNROLL_ROWS
    for (size_t i = 0; i < M; i++) {
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
           const Activation *x,
           size_t x_stride,
           size_t cols,
           float *y,
           size_t y_stride,
           size_t rows,
           bool goes_on,
           size_t ahead,
           const bool wide,
           size_t m)
{
#define FLOAT_FEW(M)                                                                                                   \
  case M:                                                                                                              \
    if (M <= FLOAT_TILE_ROWS)                                                                                          \
      float_tile (type, panel, panel_bytes, x, x_stride, cols, y, y_stride, rows, goes_on, ahead,                      \
                  wide ? PANELS_FOR (M) : 1, M <= FLOAT_TILE_ROWS ? M : 1);                                            \
    break;

  if (TILES_ARE_LOOPS) {
    float_tile (type, panel, panel_bytes, x, x_stride, cols, y, y_stride, rows, goes_on, ahead,
                wide ? (size_t) PANELS_FOR (m) : 1, m);
    return;
  }
  switch (m) {
    FLOAT_FEW (1)
    FLOAT_FEW (2)
    FLOAT_FEW (3)
    FLOAT_FEW (4)
    FLOAT_FEW (5)
    FLOAT_FEW (6)
    FLOAT_FEW (7)
    FLOAT_FEW (8)
    FLOAT_FEW (9)
    FLOAT_FEW (10)
    FLOAT_FEW (11)
    FLOAT_FEW (12)
  }
#undef FLOAT_FEW
}
_Static_assert (FLOAT_TILE_ROWS <= 12, "a case for every number of rows");

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
  size_t bytes = ox_float_panel_bytes (type, w->cols);
#ifdef FLOAT_DOT_BF16
  size_t cols = (w->cols + 1) / 2,
         x_stride = ox_activation_row_bytes (OX_ACTIVATION_BF16, w->cols) / sizeof (Activation);
  const size_t column_bytes = OX_PANEL_ROWS * 4;
#else
  size_t cols = w->cols, x_stride = cols;
  const size_t column_bytes = OX_PANEL_ROWS * (type == OX_TYPE_F32 ? 4 : 2);
#endif
  /* Tiles of many activation rows all have at least half of the most, and so the same number of panels. */
  const size_t most = FLOAT_TILE_ROWS, panels = PANELS_FOR (m < most ? m : most);
  const size_t block = m > most ? BLOCK_BYTES / (panels * column_bytes) / 2 * 2 : cols;
  /* Columns that some panels are multiplied with before the next panels: all, which reads the weights in the order of memory, unless
   * so many activations would leave the second cache meanwhile. */
  const size_t span = m * cols * sizeof (Activation) <= ACTIVATION_BYTES ? cols : block;
  const size_t far = m == 1 || span < cols ? 0 : PREFETCH_BYTES;
  size_t from = 0, to;

  do {
    size_t row = row_begin;

    to = cols - from < span ? cols : from + span;
    while (row < row_end) {
      const uint8_t *panel = (const uint8_t *) w->data + row / OX_PANEL_ROWS * bytes;
      size_t rows = row_end - row, c = from, n_cols, n;
      bool wide = panels > 1 && rows > OX_PANEL_ROWS * (panels - 1);

      do {
        const uint8_t *weights = panel + c * column_bytes;

        n_cols = to - c < block ? to - c : block;
        for (size_t i = 0; i < m; i += n) {
          const Activation *in = (const Activation *) x + i * x_stride + c;
          float *out = y + i * y_stride + row;
          size_t ahead = i == 0 ? far : 0, left = m - i;

          /* Two of about the same size rather than a full tile and a small one. */
          n = left >= 2 * most || left == most ? most : left > most ? (left + 1) / 2 : left;
          if (wide)
            float_few (type, weights, bytes, in, x_stride, n_cols, out, y_stride, rows, c > 0, ahead, true, n);
          else
            float_few (type, weights, bytes, in, x_stride, n_cols, out, y_stride, rows, c > 0, ahead, false, n);
        }
        c += n_cols;
      } while (c < to);
      row += wide ? panels * OX_PANEL_ROWS : OX_PANEL_ROWS;
    }
    from = to;
  } while (from < cols);
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

#define FLOAT_ENTRY(TYPE, ACTIVATION, NAME)                                                                            \
  { .name = NAME,                                                                                                      \
    .activation = ACTIVATION,                                                                                          \
    .row_step = OX_PANEL_ROWS,                                                                                         \
    .packed_bytes = ox_float_panel_packed_bytes,                                                                       \
    .pack = ox_float_panel_pack,                                                                                       \
    .matvec = TYPE##_matvec,                                                                                           \
    .matmul = TYPE##_matmul }

FLOAT_KERNEL (BF16)

/* F32, F16, BF16. */
#ifdef FLOAT_DOT_BF16
static const OxLinearKernel float_kernels[] = {
  { .name = NULL },
  { .name = NULL },
  FLOAT_ENTRY (BF16, OX_ACTIVATION_BF16, "bf16x2-" OX_LEVEL),
};
#else
FLOAT_KERNEL (F32)
FLOAT_KERNEL (F16)

static const OxLinearKernel float_kernels[] = {
  FLOAT_ENTRY (F32, OX_ACTIVATION_F32, "f32-" OX_LEVEL),
  FLOAT_ENTRY (F16, OX_ACTIVATION_F32, "f16-" OX_LEVEL),
  FLOAT_ENTRY (BF16, OX_ACTIVATION_F32, "bf16x2-" OX_LEVEL),
};
#endif
