/* Float panels and BF16 activations: how they are laid out and rounded, whatever the instruction set. Products are test-linear.c's.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "kernel-test.h"

#include <string.h>

#include "ox-attention-convert.h"
#include "ox-panel.h"

/* Floats whose rounding to BF16 is a matter of their lower bits: ties to either side, carries into the exponent, infinity, NaN with its
 * bits in the lower half only, subnormal numbers. */
static const uint32_t special[] = {
  0x00000000, 0x80000000, 0x3f808000, 0x3f818000, 0x3f807fff, 0x3f808001, 0x3fffffff,
  0x7f7fffff, 0xff7f8000, 0x7f7f7fff, 0x7f800000, 0xff800000, 0x7f800001, 0xff80ffff,
  0x7fc00000, 0x7fffffff, 0xffffffff, 0x00000001, 0x00008000, 0x807fffff,
};

static void
test_round_bf16 (gconstpointer data)
{
  const KernelLevel *level = data;
  KernelRandom random = { 5 };

  for (size_t n = 1; n <= 130; n++) {
    size_t bytes = ox_activation_row_bytes (OX_ACTIVATION_BF16, n);
    float *x = guarded_new (n * sizeof (float), sizeof (float));
    uint16_t *row = guarded_new (bytes, 4);

    g_assert_cmpuint (bytes % 64, ==, 0);
    for (size_t i = 0; i < n; i++) {
      uint32_t bits = i % 3 == 0 ? special[kernel_random (&random) % G_N_ELEMENTS (special)] : kernel_random (&random);
      memcpy (&x[i], &bits, sizeof bits);
    }
    level->kernels.round_bf16 (x, row, n);
    for (size_t i = 0; i < bytes / sizeof *row; i++)
      g_assert_cmphex (row[i], ==, i < n ? ox_f32_to_bf16 (x[i]) : 0);
    guarded_free (x);
    guarded_free (row);
  }
}

/* Every element is where ox-panel.h says, and what fills up a panel is zero. */
static void
test_bf16_panel (gconstpointer data)
{
  const KernelLevel *level = data;
  static const size_t shapes[][2] = { { 1, 1 }, { 16, 2 }, { 17, 31 }, { 15, 32 }, { 32, 33 }, { 33, 70 } };

  for (size_t s = 0; s < G_N_ELEMENTS (shapes); s++) {
    size_t rows = shapes[s][0], cols = shapes[s][1], bytes, padded = (cols + 31) / 32 * 32;
    const OxLinearKernel *kernel = ox_linear_kernel (&level->kernels, OX_TYPE_BF16, OX_PRECISION_FAST, rows, cols);
    uint16_t *source = guarded_new (rows * cols * 2, 2), *packed;
    OxPackedMatrix w = { kernel, OX_TYPE_BF16, rows, cols, NULL };

    for (size_t i = 0; i < rows * cols; i++)
      source[i] = (uint16_t) (i + 1);
    g_assert_true (kernel->packed_bytes (OX_TYPE_BF16, rows, cols, &bytes));
    g_assert_cmpuint (bytes, ==, (rows + 15) / 16 * 16 * padded * 2);
    packed = w.data = guarded_new (bytes, 64);
    kernel->pack (&w, source, 0, rows);
    for (size_t r = 0; r < (rows + 15) / 16 * 16; r++)
      for (size_t c = 0; c < padded; c++)
        g_assert_cmphex (packed[r / 16 * 16 * padded + (c / 2 * 16 + r % 16) * 2 + c % 2], ==,
                         r < rows && c < cols ? source[r * cols + c] : 0);
    guarded_free (source);
    guarded_free (packed);
  }
}

int
main (int argc, char **argv)
{
  static const KernelLevelTest tests[] = { { "round-bf16", test_round_bf16 }, { "bf16-panel", test_bf16_panel } };
  size_t n_levels;
  const KernelLevel *levels = kernel_levels (&n_levels);

  g_test_init (&argc, &argv, NULL);
  kernel_add_tests ("float", levels, n_levels, tests, G_N_ELEMENTS (tests));
  return g_test_run ();
}
