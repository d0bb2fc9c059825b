/* Linear layers on BF16 weights and activations for AMX. 32 columns of a panel are a tile as they lie there, and so are those of 16
 * activation rows.
 *
 * A tile product sums the even columns and the odd ones of its 32, each from zero, adds the two, and adds that to the total. A few activation
 * rows are bound by memory; they are multiplied without tiles, in the same order, so that their sums are the same to the bit. These are
 * products and sums of float32, since two BF16 have an exact product there; like the instruction it takes subnormal numbers for zero.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

#if defined(OX_AMX_EMULATED) || (defined(__AMX_TILE__) && defined(__AMX_BF16__) && defined(__AVX512F__))

#include "ox-amx.h"

#include "ox-tile.h"

/* Columns that are multiplied with all activation rows before the next: those of two panels fill 32 KiB of the first cache of 48, whose
 * bandwidth the tiles need; activations come from the second. */
#define STEP_COLS 32
#define STEP_BYTES (STEP_COLS * OX_PANEL_ROWS * 2)
#define BLOCK_STEPS 16
#define MAX_FEW 4
/* Fewer activation rows are as fast without tiles. */
#ifdef OX_AMX_EMULATED
#define FEW_ROWS_DEFAULT 0
#else
#define FEW_ROWS_DEFAULT MAX_FEW
#endif

/* ---- Few activation rows: vectors ------------------------------------------------------------------------------------ */

/* @P panels × @M ≤ MAX_FEW activation rows, @x_bytes apart. */
ALWAYS_INLINE void
few_tile (const uint8_t *panel,
          size_t panel_bytes,
          const uint8_t *x,
          size_t x_bytes,
          size_t steps,
          float *y,
          size_t y_stride,
          size_t rows,
          size_t ahead,
          const size_t P,
          const size_t M)
{
  VF totals[4][MAX_FEW];

  UNROLL
  for (size_t p = 0; p < P; p++) {
    UNROLL
    for (size_t i = 0; i < M; i++)
      totals[p][i] = vf_set1 (0);
  }
  for (size_t s = 0; s < steps; s++, panel += STEP_BYTES, x += STEP_COLS * 2) {
    float even[MAX_FEW][16], odd[MAX_FEW][16];
    VF sums[4][MAX_FEW][2];

    UNROLL
    for (size_t i = 0; i < M; i++) {
      vf_store (even[i], vf_load_bf16_even (x + i * x_bytes));
      vf_store (odd[i], vf_load_bf16_odd (x + i * x_bytes));
      UNROLL
      for (size_t p = 0; p < P; p++)
        sums[p][i][0] = sums[p][i][1] = vf_set1 (0);
    }
    for (size_t k = 0; k < STEP_COLS / 2; k++) {
      UNROLL
      for (size_t p = 0; p < P; p++) {
        const uint8_t *pairs = panel + p * panel_bytes + k * LINE_BYTES;
        VF w_even = vf_load_bf16_even (pairs), w_odd = vf_load_bf16_odd (pairs);

        if (ahead != 0)
          prefetch_lines (pairs, ahead, LINE_BYTES);
        UNROLL
        for (size_t i = 0; i < M; i++) {
          sums[p][i][0] = vf_fma (w_even, vf_set1 (even[i][k]), sums[p][i][0]);
          sums[p][i][1] = vf_fma (w_odd, vf_set1 (odd[i][k]), sums[p][i][1]);
        }
      }
    }
    UNROLL
    for (size_t p = 0; p < P; p++) {
      UNROLL
      for (size_t i = 0; i < M; i++)
        totals[p][i] = vf_add (totals[p][i], vf_add (sums[p][i][0], sums[p][i][1]));
    }
  }
  UNROLL
  for (size_t p = 0; p < P; p++) {
    size_t first = p * OX_PANEL_ROWS;
    UNROLL
    for (size_t i = 0; i < M; i++) {
      if (first + OX_PANEL_ROWS <= rows)
        vf_store (y + i * y_stride + first, totals[p][i]);
      else if (first < rows)
        vf_store_n (y + i * y_stride + first, totals[p][i], rows - first);
    }
  }
}

/* Not inlined: the state of the vector unit that the caller sets must hold for all of it. */
static __attribute__ ((noinline)) void
few_rows (
  const OxPackedMatrix *w, const uint8_t *x, size_t m, float *y, size_t y_stride, size_t row_begin, size_t row_end)
{
  size_t bytes = ox_float_panel_bytes (OX_TYPE_BF16, w->cols), steps = bytes / STEP_BYTES;
  size_t x_bytes = ox_activation_row_bytes (OX_ACTIVATION_BF16, w->cols), n;

  for (size_t i = 0; i < m; i += n, x += n * x_bytes, y += n * y_stride) {
    /* Three sums of each output and row have to fit in the registers. */
    const size_t most = m - i <= 2 ? 4 : 2;
    size_t panels;

    n = m - i < MAX_FEW ? m - i : MAX_FEW;
    for (size_t row = row_begin; row < row_end; row += panels * OX_PANEL_ROWS) {
      const uint8_t *panel = (const uint8_t *) w->data + row / OX_PANEL_ROWS * bytes;
      size_t rows = row_end - row, ahead = n > 1 ? PREFETCH_BYTES : 0;

      panels = rows > OX_PANEL_ROWS * (most - 1) ? most : 1;
#define FEW(P, M)                                                                                                      \
  if (panels == P && n == M)                                                                                           \
    few_tile (panel, bytes, x, x_bytes, steps, y + row, y_stride, rows, ahead, P, M);
      FEW (4, 1)
      FEW (4, 2)
      FEW (2, 3)
      FEW (2, 4)
      FEW (1, 1)
      FEW (1, 2)
      FEW (1, 3)
      FEW (1, 4)
#undef FEW
    }
  }
}

static void
multiply_few (
  const OxPackedMatrix *w, const void *x, size_t m, float *y, size_t y_stride, size_t row_begin, size_t row_end)
{
#ifdef OX_AMX_EMULATED
  few_rows (w, x, m, y, y_stride, row_begin, row_end);
#else
  /* Intel SDM vol. 1, 10.2.3: subnormal results and operands become zero. */
  const unsigned flush = 1u << 15 | 1u << 6, before = _mm_getcsr ();

  _mm_setcsr (before | flush);
  few_rows (w, x, m, y, y_stride, row_begin, row_end);
  _mm_setcsr (before);
#endif
}

/* ---- Many: tiles ------------------------------------------------------------------------------------------------------- */

/* 16 activation rows for one operand. */
typedef struct {
  const uint8_t *x;
  size_t stride; /* bytes */
  size_t rows;   /* of which results are wanted; 0: there is no such operand */
} Rows;

/* Some columns of one or two panels. */
typedef struct {
  const uint8_t *panel;
  size_t panel_bytes, steps;
  bool goes_on; /* there were columns before, whose sums are in y */
} Columns;

/* The 16 × 16 results of a tile, of which [@m][@n] are in y. */
typedef struct {
  float *y;
  size_t y_stride, m, n;
} Results;

static inline Results
results_at (float *y, size_t y_stride, size_t m, size_t rows, size_t panel)
{
  size_t first = panel * OX_PANEL_ROWS, left = rows - first;

  return (Results) { y + first, y_stride, m, left < OX_PANEL_ROWS ? left : OX_PANEL_ROWS };
}

static inline bool
is_whole (const Results *r)
{
  return r->m == OX_TILE_ROWS && r->n == OX_PANEL_ROWS;
}

#define LOAD_RESULTS(T, R)                                                                                             \
  do {                                                                                                                 \
    const Results *results = (R);                                                                                      \
    float tile[OX_TILE_ROWS][OX_PANEL_ROWS] = { 0 };                                                                   \
    if (!columns->goes_on) {                                                                                           \
      OX_TILE_ZERO (T);                                                                                                \
    } else if (is_whole (results)) {                                                                                   \
      OX_TILE_LOAD (T, results->y, results->y_stride * sizeof (float));                                                \
    } else {                                                                                                           \
      for (size_t i = 0; i < results->m; i++)                                                                          \
        memcpy (tile[i], results->y + i * results->y_stride, results->n * sizeof (float));                             \
      OX_TILE_LOAD (T, tile, OX_TILE_BYTES);                                                                           \
    }                                                                                                                  \
  } while (0)

#define STORE_RESULTS(T, R)                                                                                            \
  do {                                                                                                                 \
    const Results *results = (R);                                                                                      \
    float tile[OX_TILE_ROWS][OX_PANEL_ROWS];                                                                           \
    if (is_whole (results)) {                                                                                          \
      OX_TILE_STORE (T, results->y, results->y_stride * sizeof (float));                                               \
    } else {                                                                                                           \
      OX_TILE_STORE (T, tile, OX_TILE_BYTES);                                                                          \
      for (size_t i = 0; i < results->m; i++)                                                                          \
        memcpy (results->y + i * results->y_stride, tile[i], results->n * sizeof (float));                             \
    }                                                                                                                  \
  } while (0)

/* @A · 16 activation rows × @P panels. Tiles 0 to 3: sums; 4 and 5: activations; 6 and 7: weights. */
ALWAYS_INLINE void
tile_block (
  const Rows rows[2], const Columns *columns, float *y, size_t y_stride, size_t outputs, const size_t A, const size_t P)
{
  const uint8_t *x0 = rows[0].x, *x1 = rows[1].x, *w0 = columns->panel, *w1 = w0 + columns->panel_bytes;
  float *y1 = y + OX_TILE_ROWS * y_stride;
  const Results r00 = results_at (y, y_stride, rows[0].rows, outputs, 0);
  const Results r01 = results_at (y, y_stride, rows[0].rows, outputs, P - 1);
  const Results r10 = results_at (y1, y_stride, rows[1].rows, outputs, 0);
  const Results r11 = results_at (y1, y_stride, rows[1].rows, outputs, P - 1);

  LOAD_RESULTS (0, &r00);
  if (P > 1)
    LOAD_RESULTS (1, &r01);
  if (A > 1)
    LOAD_RESULTS (2, &r10);
  if (A > 1 && P > 1)
    LOAD_RESULTS (3, &r11);
  for (size_t s = 0; s < columns->steps; s++) {
    OX_TILE_LOAD (6, w0 + s * STEP_BYTES, OX_TILE_BYTES);
    OX_TILE_LOAD (4, x0 + s * STEP_COLS * 2, rows[0].stride);
    OX_TILE_DOT_BF16 (0, 4, 6);
    if (P > 1) {
      OX_TILE_LOAD (7, w1 + s * STEP_BYTES, OX_TILE_BYTES);
      OX_TILE_DOT_BF16 (1, 4, 7);
    }
    if (A > 1) {
      OX_TILE_LOAD (5, x1 + s * STEP_COLS * 2, rows[1].stride);
      OX_TILE_DOT_BF16 (2, 5, 6);
    }
    if (A > 1 && P > 1)
      OX_TILE_DOT_BF16 (3, 5, 7);
  }
  STORE_RESULTS (0, &r00);
  if (P > 1)
    STORE_RESULTS (1, &r01);
  if (A > 1)
    STORE_RESULTS (2, &r10);
  if (A > 1 && P > 1)
    STORE_RESULTS (3, &r11);
}

static void
multiply_many (
  const OxPackedMatrix *w, const uint8_t *x, size_t m, float *y, size_t y_stride, size_t row_begin, size_t row_end)
{
  static const OxTileConfig config = {
    .palette = 1,
    .row_bytes = { 64, 64, 64, 64, 64, 64, 64, 64 },
    .rows = { 16, 16, 16, 16, 16, 16, 16, 16 },
  };
  const size_t bytes = ox_float_panel_bytes (OX_TYPE_BF16, w->cols), steps = bytes / STEP_BYTES;
  const size_t x_bytes = ox_activation_row_bytes (OX_ACTIVATION_BF16, w->cols);
  _Alignas (64) uint8_t filled[OX_TILE_ROWS][BLOCK_STEPS * STEP_COLS * 2];
  size_t panels;

  OX_TILE_CONFIGURE (&config);
  for (size_t row = row_begin; row < row_end; row += panels * OX_PANEL_ROWS) {
    panels = row_end - row > OX_PANEL_ROWS ? 2 : 1;
    for (size_t s = 0; s < steps; s += BLOCK_STEPS) {
      const Columns columns = {
        .panel = (const uint8_t *) w->data + row / OX_PANEL_ROWS * bytes + s * STEP_BYTES,
        .panel_bytes = bytes,
        .steps = steps - s < BLOCK_STEPS ? steps - s : BLOCK_STEPS,
        .goes_on = s > 0,
      };

      for (size_t i = 0; i < m; i += 2 * OX_TILE_ROWS) {
        float *out = y + i * y_stride + row;
        size_t outputs = row_end - row;
        Rows rows[2];

        for (size_t a = 0; a < 2; a++) {
          size_t first = i + a * OX_TILE_ROWS, left = m > first ? m - first : 0;

          rows[a] =
            (Rows) { x + first * x_bytes + s * STEP_COLS * 2, x_bytes, left < OX_TILE_ROWS ? left : OX_TILE_ROWS };
          /* Only one can be neither whole nor empty. */
          if (left > 0 && left < OX_TILE_ROWS) {
            memset (filled, 0, sizeof filled);
            for (size_t j = 0; j < left; j++)
              memcpy (filled[j], rows[a].x + j * x_bytes, columns.steps * STEP_COLS * 2);
            rows[a].x = filled[0];
            rows[a].stride = sizeof filled[0];
          }
        }
        if (rows[1].rows > 0 && panels == 2)
          tile_block (rows, &columns, out, y_stride, outputs, 2, 2);
        else if (rows[1].rows > 0)
          tile_block (rows, &columns, out, y_stride, outputs, 2, 1);
        else if (panels == 2)
          tile_block (rows, &columns, out, y_stride, outputs, 1, 2);
        else
          tile_block (rows, &columns, out, y_stride, outputs, 1, 1);
      }
    }
  }
  OX_TILE_RELEASE ();
}

/* ---- The kernel ----------------------------------------------------------------------------------------------------------- */

static void
bf16_matmul (
  const OxPackedMatrix *w, const void *x, size_t m, float *y, size_t y_stride, size_t row_begin, size_t row_end)
{
  if (m <= FEW_ROWS_DEFAULT)
    multiply_few (w, x, m, y, y_stride, row_begin, row_end);
  else
    multiply_many (w, x, m, y, y_stride, row_begin, row_end);
}

static void
bf16_matvec (const OxPackedMatrix *w, const void *x, float *y, size_t row_begin, size_t row_end)
{
  multiply_few (w, x, 1, y, 0, row_begin, row_end);
}

/* F32, F16, BF16. A range begins with a pair of panels, so that all of it can be multiplied in pairs. */
static const OxLinearKernel float_kernels[] = {
  { .name = NULL },
  { .name = NULL },
  {
    .name = "bf16x2-amx",
    .activation = OX_ACTIVATION_BF16,
    .row_step = 2 * OX_PANEL_ROWS,
    .packed_bytes = ox_float_panel_packed_bytes,
    .pack = ox_float_panel_pack,
    .matvec = bf16_matvec,
    .matmul = bf16_matmul,
  },
};

const OxLinearSet OX_AMX_NAME (ox_linear_amx) = { .floating = float_kernels };

#else

const OxLinearSet ox_linear_amx = { NULL, NULL, NULL };

#endif
