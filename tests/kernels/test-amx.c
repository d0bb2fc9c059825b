/* Kernels for AMX: compiled against tiles in plain C on any processor, and the real ones where there are some.
 *
 * Their promise is that of all kernels, made harder: the same bits as without tiles, whatever the number of activation rows. What "the
 * same" is for integer panels is written down here once more, as plain as it can be.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "kernel-test.h"

#include <math.h>
#include <string.h>

#include "ox-internal.h"
#include "ox-decode.h"
#include "ox-quantize.h"

#define OX_AMX_EMULATED
#include "ox-amx.h"

OxEmulatedTiles ox_emulated_tiles;

extern const OxLinearSet ox_panel_amx_emulated;
extern const OxLinearSet ox_linear_amx_emulated;

typedef struct {
  size_t rows, cols, m;
} Shape;

/* cols in blocks of 256. One tile and less, a panel left over, activation rows left over, more columns than a block of them. */
static const Shape shapes[] = {
  { 1, 1, 1 }, { 16, 1, 16 }, { 17, 1, 7 }, { 64, 1, 17 }, { 65, 3, 33 }, { 100, 5, 48 }, { 32, 2, 15 }, { 48, 4, 31 },
};

static const uint32_t types[] = {
  OX_TYPE_Q4_0, OX_TYPE_Q4_1, OX_TYPE_Q5_0, OX_TYPE_Q5_1, OX_TYPE_Q8_0,   OX_TYPE_Q2_K,
  OX_TYPE_Q3_K, OX_TYPE_Q4_K, OX_TYPE_Q5_K, OX_TYPE_Q6_K, OX_TYPE_IQ4_NL, OX_TYPE_IQ4_XS,
};

/* ---- Integer panels ----------------------------------------------------------------------------------------------------- */

/* Quant @c of row @row of a panel. */
static int
quant_at (OxPanelFormat f, const uint8_t *panel, size_t row, size_t c)
{
  const uint8_t *q = panel + ox_panel_quants_offset (f, c / 32);
  size_t element = c % 32, step = element / 4;

  if (f.bits == 8)
    return q[(step * 16 + row) * 4 + element % 4];
  return q[(step % 4 * 16 + row) * 4 + element % 4] >> (step < 4 ? 0 : 4) & 15;
}

static float
panel_product (OxPanelFormat f, const uint8_t *panel, size_t row, const OxBlockQ8 *x, size_t cols)
{
  const size_t parts = 32 / f.group, values = f.affine ? 2 : 1;
  float total = 0, row_scale;

  for (size_t c = 0; c < cols; c += f.group) {
    const OxBlockQ8 *block = &x[c / 32];
    const uint8_t *scales = panel + ox_panel_scales_offset (f, c / 32) + c / f.group % parts * values * 32;
    uint16_t half[2];
    int sum = 0, x_sum = 0;

    for (size_t j = 0; j < f.group; j++) {
      int in = block->q[(c + j) % 32];
      sum += (quant_at (f, panel, row, c + j) - (int) f.zero_point) * in;
      x_sum += in;
    }
    memcpy (&half[0], scales + row * 2, 2);
    memcpy (&half[1], scales + (values - 1) * 32 + row * 2, 2);
    total = fmaf (block->scale * (float) sum, ox_f16_to_f32 (half[0]), total);
    if (f.affine)
      total = fmaf (ox_f16_to_f32 (half[1]), block->scale * (float) x_sum, total);
  }
  memcpy (&row_scale, panel + row * 4, 4);
  return total * row_scale;
}

/* y [m][stride] by @kernel, in two parts of the outputs; nothing else of y is touched. */
static float *
multiply (const OxLinearKernel *kernel, const OxPackedMatrix *w, const void *x, size_t m, size_t stride)
{
  const float untouched = -12345;
  size_t n = (m - 1) * stride + w->rows, split = w->rows / 2 / kernel->row_step * kernel->row_step;
  float *y = guarded_new (n * sizeof (float), sizeof (float));

  for (size_t i = 0; i < n; i++)
    y[i] = untouched;
  kernel->matmul (w, x, m, y, stride, split, w->rows);
  if (split > 0)
    kernel->matmul (w, x, m, y, stride, 0, split);
  for (size_t i = 0; i + 1 < m; i++)
    for (size_t r = w->rows; r < stride; r++)
      g_assert_cmpfloat (y[i * stride + r], ==, untouched);
  return y;
}

static void
check_panel (const OxLinearKernel *kernel, uint32_t type, Shape shape, KernelInput input, KernelRandom *random)
{
  OxPanelFormat f = ox_panel_formats[ox_panel_kind (type)];
  size_t cols = shape.cols * 256 - (type == OX_TYPE_Q8_0 || type == OX_TYPE_Q4_0 ? 32 : 0), bytes,
         n = shape.rows * cols;
  size_t x_bytes = ox_activation_row_bytes (OX_ACTIVATION_Q8, cols), stride = shape.rows + 3;
  OxPackedMatrix w = { kernel, type, shape.rows, cols, NULL };
  uint64_t row_bytes;
  g_autofree uint8_t *source = NULL;
  g_autofree float *floats = g_new (float, cols);
  uint8_t *x = guarded_new (shape.m * x_bytes, 4);
  float *y;
  OxKernels reference;

  ox_kernels_init (&reference, 0);
  g_assert_true (ox_type_row_bytes (type, cols, &row_bytes));
  source = g_malloc (shape.rows * row_bytes);
  kernel_fill_weights (random, type, input, source, n);
  for (size_t i = 0; i < shape.m; i++) {
    kernel_fill_floats (random, input, floats, cols);
    reference.quantize_q8 (floats, x + i * x_bytes, cols);
  }
  g_assert_true (kernel->packed_bytes (type, shape.rows, cols, &bytes));
  w.data = guarded_new (bytes, 64);
  kernel->pack (&w, source, 0, shape.rows);
  y = multiply (kernel, &w, x, shape.m, stride);

  for (size_t i = 0; i < shape.m; i++)
    for (size_t r = 0; r < shape.rows; r++) {
      const uint8_t *panel = (const uint8_t *) w.data + r / 16 * ox_panel_bytes (f, cols);
      float expected = panel_product (f, panel, r % 16, (const OxBlockQ8 *) (const void *) (x + i * x_bytes), cols);

      if (memcmp (&expected, &y[i * stride + r], sizeof expected) != 0)
        g_error ("%s %s, %s input, %zu×%zu, m %zu: output [%zu][%zu] is %.9g, expected %.9g", kernel->name,
                 ox_type_info (type)->name, kernel_input_names[input], shape.rows, cols, shape.m, i, r,
                 y[i * stride + r], expected);
    }
  guarded_free (x);
  guarded_free (y);
  guarded_free (w.data);
}

static void
test_panel (gconstpointer data)
{
  const OxLinearSet *set = data;
  KernelRandom random = { 77 };

  for (size_t t = 0; t < G_N_ELEMENTS (types); t++)
    for (size_t s = 0; s < G_N_ELEMENTS (shapes); s++)
      for (KernelInput input = 0; input < N_INPUTS; input++) {
        const OxLinearKernel *kernel = &set->integer[ox_panel_kind (types[t])];

        if (input == INPUT_HUGE ||
            input == INPUT_SUBNORMAL) /* left to test-linear.c: whether NaN is equal is not the question */
          continue;
        check_panel (kernel, types[t], shapes[s], input, &random);
      }
}

/* ---- BF16 --------------------------------------------------------------------------------------------------------------- */

/* As TDPBF16PS is described; for numbers that are far from subnormal. */
static float
bf16_product (const uint16_t *panel, size_t row, const uint16_t *x, size_t cols)
{
  float total = 0;

  for (size_t first = 0; first < cols; first += 32) {
    float sums[2] = { 0 };

    for (size_t c = first; c < first + 32; c++)
      sums[c % 2] = fmaf (ox_bf16_to_f32 (x[c]), ox_bf16_to_f32 (panel[(c / 2 * 16 + row) * 2 + c % 2]), sums[c % 2]);
    total += sums[0] + sums[1];
  }
  return total;
}

static void
check_bf16 (const OxLinearKernel *kernel, Shape shape, KernelRandom *random)
{
  size_t cols = shape.cols * 256 - shape.rows % 40, padded = (cols + 31) / 32 * 32, bytes, stride = shape.rows + 1;
  size_t x_bytes = ox_activation_row_bytes (OX_ACTIVATION_BF16, cols);
  OxPackedMatrix w = { kernel, OX_TYPE_BF16, shape.rows, cols, NULL };
  g_autofree uint8_t *source = g_malloc (shape.rows * cols * 2);
  g_autofree float *floats = g_new (float, cols);
  float *one = guarded_new (shape.rows * sizeof (float), sizeof (float)), *y;
  uint8_t *x = guarded_new (shape.m * x_bytes, 64);
  OxKernels reference;

  ox_kernels_init (&reference, 0);
  kernel_fill_weights (random, OX_TYPE_BF16, INPUT_NORMAL, source, shape.rows * cols);
  for (size_t i = 0; i < shape.m; i++) {
    kernel_fill_floats (random, INPUT_NORMAL, floats, cols);
    reference.round_bf16 (floats, x + i * x_bytes, cols);
  }
  g_assert_true (kernel->packed_bytes (OX_TYPE_BF16, shape.rows, cols, &bytes));
  w.data = guarded_new (bytes, 64);
  kernel->pack (&w, source, 0, shape.rows);
  y = multiply (kernel, &w, x, shape.m, stride);
  for (size_t i = 0; i < shape.m; i++) {
    const uint16_t *in = (const uint16_t *) (const void *) (x + i * x_bytes);

    kernel->matvec (&w, in, one, 0, shape.rows);
    for (size_t r = 0; r < shape.rows; r++) {
      float expected = bf16_product ((const uint16_t *) w.data + r / 16 * 16 * padded, r % 16, in, padded);

      g_assert_cmpfloat (y[i * stride + r], ==, expected);
      g_assert_cmpfloat (one[r], ==, expected);
    }
  }
  guarded_free (one);
  guarded_free (x);
  guarded_free (y);
  guarded_free (w.data);
}

static void
test_bf16 (gconstpointer data)
{
  const OxLinearSet *set = data;
  KernelRandom random = { 78 };

  for (size_t s = 0; s < G_N_ELEMENTS (shapes); s++)
    check_bf16 (&set->floating[2], shapes[s], &random);
}

/* ---- Emulated, real --------------------------------------------------------------------------------------------------------- */

/* Nothing that a processor would refuse, and no tile is left configured. */
static void
check_tiles (void)
{
  g_assert_cmpuint (ox_emulated_tiles.configurations, >, 0);
  g_assert_cmpuint (ox_emulated_tiles.faults, ==, 0);
  g_assert_cmpuint (ox_emulated_tiles.config.palette, ==, 0);
}

static void
test_emulated_panel (void)
{
  test_panel (&ox_panel_amx_emulated);
  check_tiles ();
}

static void
test_emulated_bf16 (void)
{
  test_bf16 (&ox_linear_amx_emulated);
  check_tiles ();
}

/* The kernels without tiles that AMX is to agree with, where this processor has them: what is expected here is what they compute. */
static void
test_vnni_panel (void)
{
  if ((ox_cpu_flags () & OX_CPU_AVX512_VNNI) == 0)
    g_test_skip ("this processor has no AVX-512 VNNI");
  else
    test_panel (&ox_panel_avx512_vnni);
}

static void
test_real_panel (void)
{
  if ((ox_cpu_flags () & OX_CPU_AMX_INT8) == 0)
    g_test_skip ("this processor has no AMX for bytes, or it may not be used");
  else
    test_panel (&ox_panel_amx);
}

static void
test_real_bf16 (void)
{
  if ((ox_cpu_flags () & OX_CPU_AMX_BF16) == 0)
    g_test_skip ("this processor has no AMX for BF16, or it may not be used");
  else
    test_bf16 (&ox_linear_amx);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/amx/emulated/panel", test_emulated_panel);
  g_test_add_func ("/amx/emulated/bf16", test_emulated_bf16);
  g_test_add_func ("/amx/vnni/panel", test_vnni_panel);
  g_test_add_func ("/amx/real/panel", test_real_panel);
  g_test_add_func ("/amx/real/bf16", test_real_bf16);
  return g_test_run ();
}
