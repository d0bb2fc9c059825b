/* What linear kernels keep to the bit, on every instruction set: sums of integers are exact, however large; and a row of
 * activations has the same products by matvec and by matmul, whatever other rows it comes with and wherever rows of weights are
 * cut. Speculation relies on the second: what it checks in one pass must be what it would have said one by one.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "kernel-test.h"

#include <string.h>

#include "ox-internal.h"
#include "ox-quantize.h"

/* ---- Exact sums ----------------------------------------------------------------------------------------------------- */

/* A panel is written as it lies in memory, with all scales 1. Then each total is a whole number, at most 1024 · 128 · 127 <
 * 2^24 for so many columns, which float32 holds exactly, and so does every sum on the way: any other result means that integers
 * were saturated, wrapped or lost. */
#define EXACT_COLS 1024
#define EXACT_ROWS 43
#define EXACT_M 19

/* One of the ways in which 32 numbers of [least, most] may be: all at an end, both ends in turns, or any. */
static void
fill_pattern (KernelRandom *random, int least, int most, int values[32])
{
  unsigned pattern = kernel_random (random) % 6;

  for (unsigned i = 0; i < 32; i++)
    switch (pattern) {
    case 0:
      values[i] = least;
      break;
    case 1:
      values[i] = most;
      break;
    case 2:
      values[i] = i % 2 == 0 ? least : most;
      break;
    case 3:
      values[i] = i % 4 < 2 ? most : least;
      break;
    default:
      values[i] = least + (int) (kernel_random (random) % (unsigned) (most - least + 1));
    }
}

static void
fill_activations (KernelRandom *random, OxBlockQ8 *x, size_t blocks)
{
  for (size_t b = 0; b < blocks; b++) {
    int values[32];

    fill_pattern (random, -127, 127, values);
    x[b] = (OxBlockQ8) { .scale = 1 };
    for (unsigned i = 0; i < 32; i++) {
      x[b].q[i] = (int8_t) values[i];
      x[b].sum[i / 16] = (int16_t) (x[b].sum[i / 16] + values[i]);
    }
  }
}

/* Writes group @g of row @lane of a panel: quants @q, scales 1, minima 1. */
static void
put_group (OxPanelFormat f, uint8_t *panel, size_t g, unsigned lane, const int q[32])
{
  const uint16_t one = 0x3c00;
  uint8_t *quants = panel + ox_panel_quants_offset (f, g) + lane * 4;

  for (unsigned i = 0; i < ox_panel_values (f); i++)
    memcpy (panel + ox_panel_scales_offset (f, g) + (i * OX_PANEL_ROWS + lane) * sizeof one, &one, sizeof one);
  for (unsigned i = 0; i < 32; i++)
    if (f.bits == 8)
      quants[i / 4 * 64 + i % 4] = (uint8_t) q[i];
    else
      quants[i % 16 / 4 * 64 + i % 4] |= (uint8_t) (q[i] << (i < 16 ? 0 : 4));
}

static void
check_exact (const KernelLevel *level, uint32_t type, KernelRandom *random)
{
  const OxLinearKernel *kernel = ox_linear_kernel (&level->kernels, type, OX_PRECISION_FAST, EXACT_ROWS, EXACT_COLS);
  OxPanelFormat f = ox_panel_formats[ox_panel_kind (type)];
  size_t bytes = ox_panel_bytes (f, EXACT_COLS), groups = EXACT_COLS / 32, packed;
  size_t panels = (EXACT_ROWS + OX_PANEL_ROWS - 1) / OX_PANEL_ROWS;
  g_autofree int *q = g_new (int, EXACT_ROWS *EXACT_COLS);
  OxBlockQ8 *x = guarded_new (EXACT_M * groups * sizeof *x, 4);
  float *y = guarded_new (EXACT_M * EXACT_ROWS * sizeof (float), sizeof (float));
  OxPackedMatrix w;

  g_assert_true (kernel->packed_bytes (type, EXACT_ROWS, EXACT_COLS, &packed));
  g_assert_cmpuint (packed, ==, panels * bytes);
  w = (OxPackedMatrix) { kernel, type, EXACT_ROWS, EXACT_COLS, guarded_new (packed, 64) };
  memset (w.data, 0, packed);
  for (size_t r = 0; r < EXACT_ROWS; r++) {
    uint8_t *panel = (uint8_t *) w.data + r / OX_PANEL_ROWS * bytes;
    const float one = 1;

    memcpy (panel + r % OX_PANEL_ROWS * sizeof one, &one, sizeof one);
    for (size_t g = 0; g < groups; g++) {
      fill_pattern (random, 0, (int) f.max_quant, q + r * EXACT_COLS + g * 32);
      put_group (f, panel, g, r % OX_PANEL_ROWS, q + r * EXACT_COLS + g * 32);
    }
  }
  fill_activations (random, x, EXACT_M * groups);
  kernel->matmul (&w, x, EXACT_M, y, EXACT_ROWS, 0, EXACT_ROWS);

  for (size_t i = 0; i < EXACT_M; i++)
    for (size_t r = 0; r < EXACT_ROWS; r++) {
      int64_t expected = 0;

      for (size_t c = 0; c < EXACT_COLS; c++) {
        int value = q[r * EXACT_COLS + c] - (int) f.zero_point + (f.affine ? 1 : 0);
        expected += value * x[i * groups + c / 32].q[c % 32];
      }
      if (y[i * EXACT_ROWS + r] != (float) expected)
        g_error ("%s %s: output [%zu][%zu] is %.9g, expected exactly %.9g", level->name, kernel->name, i, r,
                 y[i * EXACT_ROWS + r], (double) expected);
    }
  guarded_free (w.data);
  guarded_free (x);
  guarded_free (y);
}

static void
test_exact_sums (gconstpointer data)
{
  const KernelLevel *level = data;
  KernelRandom random = { 41 };
  unsigned repeats = kernel_quick () ? 1 : 4, checked = 0;

  for (size_t t = 0; t < kernel_n_types; t++) {
    OxPanelKind kind = ox_panel_kind (kernel_types[t]);

    if (kind == OX_PANEL_NONE || checked >> kind & 1)
      continue;
    checked |= 1u << kind;
    for (unsigned i = 0; i < repeats; i++)
      check_exact (level, kernel_types[t], &random);
  }
  g_assert_cmpuint (checked, ==, (1u << OX_N_PANELS) - 1);
}

/* ---- Rows and cuts --------------------------------------------------------------------------------------------------- */

/* Fills whole activation rows from random floats. */
static void
code_rows (const OxKernels *kernels, OxActivation form, const float *x, uint8_t *coded, size_t m, size_t cols)
{
  size_t bytes = ox_activation_row_bytes (form, cols);

  for (size_t i = 0; i < m; i++)
    if (form == OX_ACTIVATION_Q8)
      kernels->quantize_q8 (x + i * cols, coded + i * bytes, cols);
    else if (form == OX_ACTIVATION_BF16)
      kernels->round_bf16 (x + i * cols, coded + i * bytes, cols);
    else
      memcpy (coded + i * bytes, x + i * cols, bytes);
}

/* Every count of @ms, the first rows of the same activations, with weights cut at random places. */
static void
check_cuts (const KernelLevel *level,
            uint32_t type,
            OxPrecision precision,
            size_t rows,
            size_t cols,
            const size_t *ms,
            size_t n_ms,
            KernelRandom *random)
{
  const OxKernels *k = &level->kernels;
  const OxLinearKernel *kernel = ox_linear_kernel (k, type, precision, rows, cols);
  size_t most = ms[n_ms - 1], stride = rows + 5, x_bytes = ox_activation_row_bytes (kernel->activation, cols), packed;
  uint64_t row_bytes;
  g_autofree float *x = g_new (float, most *cols);
  g_autofree float *one = g_new (float, most *rows);
  g_autofree uint8_t *source = NULL;
  uint8_t *coded = guarded_new (most * x_bytes, 4);
  OxPackedMatrix w;

  g_assert_true (ox_type_row_bytes (type, cols, &row_bytes));
  g_assert_true (kernel->packed_bytes (type, rows, cols, &packed));
  source = g_malloc (rows * row_bytes);
  kernel_fill_weights (random, type, INPUT_NORMAL, source, rows * cols);
  kernel_fill_floats (random, INPUT_NORMAL, x, most * cols);
  code_rows (k, kernel->activation, x, coded, most, cols);
  w = (OxPackedMatrix) { kernel, type, rows, cols, guarded_new (packed, 64) };
  kernel->pack (&w, source, 0, rows);
  for (size_t i = 0; i < most; i++)
    kernel->matvec (&w, coded + i * x_bytes, one + i * rows, 0, rows);

  for (size_t c = 0; c < n_ms; c++) {
    size_t m = ms[c], values = (m - 1) * stride + rows;
    float *many = guarded_new (values * sizeof (float), sizeof (float));

    for (size_t i = 0; i < values; i++)
      many[i] = -12345;
    for (size_t begin = 0, end; begin < rows; begin = end) {
      end = begin + (1 + kernel_random (random) % 7) * MAX (kernel->row_step, 16);
      end = MIN (end, rows);
      kernel->matmul (&w, coded, m, many, stride, begin, end);
    }
    for (size_t i = 0; i < m; i++) {
      for (size_t r = 0; r < rows; r++)
        if (memcmp (&many[i * stride + r], &one[i * rows + r], sizeof (float)) != 0)
          g_error ("%s %s, %zu×%zu: of %zu rows, output [%zu][%zu] is %.9g; alone it is %.9g", level->name,
                   kernel->name, rows, cols, m, i, r, many[i * stride + r], one[i * rows + r]);
      for (size_t r = rows; r < stride && i + 1 < m; r++)
        g_assert_cmpfloat (many[i * stride + r], ==, -12345);
    }
    guarded_free (many);
  }
  guarded_free (w.data);
  guarded_free (coded);
}

static const size_t all_counts[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 64, 100 };
static const size_t few_counts[] = { 3, 8, 13, 33 };

static void
test_cuts (gconstpointer data)
{
  const KernelLevel *level = data;
  KernelRandom random = { 43 };

  for (size_t t = 0; t < kernel_n_types; t++)
    for (int precision = OX_PRECISION_EXACT; precision <= OX_PRECISION_FAST; precision++)
      if (kernel_quick () || precision == OX_PRECISION_EXACT)
        check_cuts (level, kernel_types[t], precision, 83, 256, few_counts, G_N_ELEMENTS (few_counts), &random);
      else
        check_cuts (level, kernel_types[t], precision, 179, 512, all_counts, G_N_ELEMENTS (all_counts), &random);
}

/* So many columns and rows of activations that tiles, blocks and parts of both are left and taken up again; an odd number of groups. */
static void
test_large (gconstpointer data)
{
  static const size_t counts[] = { 7, 40, 301 };
  const KernelLevel *level = data;
  KernelRandom random = { 47 };
  size_t n = kernel_quick () ? 2 : G_N_ELEMENTS (counts);

  check_cuts (level, OX_TYPE_Q8_0, OX_PRECISION_FAST, 83, 32 * 37, counts, n, &random);
  check_cuts (level, OX_TYPE_Q4_0, OX_PRECISION_FAST, 83, 32 * 37, counts, n, &random);
  check_cuts (level, OX_TYPE_Q4_K, OX_PRECISION_FAST, 83, 256 * 9, counts, n, &random);
  check_cuts (level, OX_TYPE_Q6_K, OX_PRECISION_FAST, 83, 256 * 9, counts, n, &random);
  check_cuts (level, OX_TYPE_Q2_K, OX_PRECISION_FAST, 83, 256 * 9, counts, n, &random);
  check_cuts (level, OX_TYPE_BF16, OX_PRECISION_FAST, 83, 1187, counts, n, &random);
  check_cuts (level, OX_TYPE_Q8_0, OX_PRECISION_FAST, 67, 16384, counts, 2, &random);
  check_cuts (level, OX_TYPE_Q4_K, OX_PRECISION_FAST, 67, 16384, counts, 2, &random);
}

int
main (int argc, char **argv)
{
  static const KernelLevelTest tests[] = { { "exact-sums", test_exact_sums },
                                           { "cuts", test_cuts },
                                           { "large", test_large } };
  size_t n_levels;
  const KernelLevel *levels = kernel_levels (&n_levels);

  g_test_init (&argc, &argv, NULL);
  kernel_add_tests ("linear-bits", levels, n_levels, tests, G_N_ELEMENTS (tests));
  return g_test_run ();
}
