/* Linear kernels: every instruction set × every format × both precisions × shapes and inputs, against float64.
 *
 * The error of a fast product has two parts. That of quantising activations is not the kernel's: the reference here starts
 * from the quantised activations. What is left are half-float scales and float32 sums, and both have bounds that are derived
 * below for each output.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "kernel-test.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "ox-decode.h"
#include "ox-panel.h"
#include "ox-quantize.h"

typedef struct {
  size_t rows, cols, m;
} Shape;

/* cols in blocks of the format's size; for float formats an odd count is added. */
static const Shape shapes[] = {
  { 1, 1, 1 },  { 15, 2, 2 }, { 16, 1, 3 }, { 17, 3, 4 },  { 33, 1, 5 },  { 16, 2, 6 },
  { 32, 1, 7 }, { 48, 2, 8 }, { 31, 5, 9 }, { 65, 1, 17 }, { 49, 1, 33 },
};

typedef struct {
  uint32_t type;
  size_t rows, cols, m, row_bytes, x_bytes;
  void *source;      /* guarded */
  float *x;          /* [m][cols], guarded */
  void *activations; /* what the kernel reads, guarded */
  double *expected;  /* [m][rows] */
  double *bound;     /* [m][rows]: the greatest error allowed */
} Case;

/* Float rows: expected = Σ w·x, and no float32 summation in any order errs by more than n·ε·Σ|w·x| (Higham 2002, 4.2), with one
 * more for the product and one for the final rounding. Instructions that multiply BF16 take subnormal numbers for zero: factors, and what
 * comes out of any of these roundings. */
static void
expect_float (Case *c, const float *weights, size_t r, size_t i, OxActivation activation)
{
  double sum = 0, magnitude = 0, lost = FLT_MIN;

  for (size_t j = 0; j < c->cols; j++) {
    double p = (double) weights[j] * c->x[i * c->cols + j];
    sum += p;
    magnitude += fabs (p);
    if (activation == OX_ACTIVATION_BF16)
      lost += FLT_MIN * (2 + fmax (fabs (weights[j]), fabs (c->x[i * c->cols + j])));
  }
  c->expected[i * c->rows + r] = sum;
  c->bound[i * c->rows + r] = ((double) c->cols + 2) * 0x1p-24 * magnitude + lost;
}

/* Integer panels. A group contributes t = d·s·I and u = m·s·S, with I = Σ (q - zero)·x_q and S = Σ x_q exact integers. d and m
 * are rounded to half floats: relative 2^-11, or 2^-25 of the row's power of two (at most 4·largest/2^15) when they are
 * subnormal there. Then come at most four float32 roundings a term and one for each addition. */
static void
expect_integer (Case *c, size_t r, size_t i)
{
  const OxTypeInfo *info = ox_type_info (c->type);
  OxPanelFormat f = ox_panel_formats[ox_panel_kind (c->type)];
  const OxBlockQ8 *x = (const OxBlockQ8 *) (const void *) ((const uint8_t *) c->activations + i * c->x_bytes);
  double sum = 0, magnitude = 0, coarse = 0, largest = 0;
  size_t terms = 0;

  for (size_t b = 0; b < c->cols / info->block_elements; b++) {
    const uint8_t *block = (const uint8_t *) c->source + r * c->row_bytes + b * info->block_bytes;
    uint8_t q[OX_BLOCK_MAX];
    float d[16], m[16] = { 0 };

    ox_decode_scales (c->type, block, d, m);
    ox_decode_quants (c->type, block, q);
    for (unsigned g = 0; g < info->block_elements / f.group; g++) {
      size_t first = b * info->block_elements + g * f.group;
      const OxBlockQ8 *in = x + first / 32;
      int products = 0, total = 0;
      double t, u;

      for (unsigned j = 0; j < f.group; j++) {
        int value = in->q[(first + j) % 32];
        products += ((int) q[g * f.group + j] - (int) f.zero_point) * value;
        total += value;
      }
      t = (double) d[g] * in->scale * products;
      u = f.affine ? (double) m[g] * in->scale * total : 0;
      sum += t + u;
      magnitude += fabs (t) + fabs (u);
      coarse += fabs ((double) in->scale * products) + (f.affine ? fabs ((double) in->scale * total) : 0);
      largest = fmax (largest, fmax (fabs (d[g]), f.affine ? fabs (m[g]) : 0));
      terms += f.affine ? 2 : 1;
    }
  }
  c->expected[i * c->rows + r] = sum;
  c->bound[i * c->rows + r] =
    magnitude * (0x1p-11 + ((double) terms + 5) * 0x1p-24) + coarse * largest * 4 * 0x1p-15 * 0x1p-25 + FLT_MIN;
}

/* The kernel is not blamed for the rounding of activations: what is expected starts from those that it reads. */
static void
round_activations (Case *c, const OxKernels *kernels)
{
  for (size_t i = 0; i < c->m; i++) {
    float *x = c->x + i * c->cols;
    uint16_t *row = (uint16_t *) (void *) ((uint8_t *) c->activations + i * c->x_bytes);

    kernels->round_bf16 (x, row, c->cols);
    for (size_t j = 0; j < c->x_bytes / sizeof *row; j++)
      if (j < c->cols)
        x[j] = ox_bf16_to_f32 (row[j]);
      else
        g_assert_cmphex (row[j], ==, 0);
  }
}

static void
case_init (Case *c,
           const OxKernels *kernels,
           const OxLinearKernel *kernel,
           uint32_t type,
           Shape shape,
           KernelInput input,
           KernelRandom *random)
{
  const OxTypeInfo *info = ox_type_info (type);
  uint64_t row_bytes;
  g_autofree float *weights = NULL;

  c->type = type;
  c->rows = shape.rows;
  c->m = shape.m;
  c->cols = info->block_elements > 1 ? shape.cols * info->block_elements : shape.cols * 700 + shape.rows;
  g_assert_true (ox_type_row_bytes (type, c->cols, &row_bytes));
  c->row_bytes = row_bytes;
  c->source = guarded_new (c->rows * c->row_bytes, 1);
  kernel_fill_weights (random, type, input, c->source, c->rows * c->cols);
  c->x = guarded_new (c->m * c->cols * sizeof (float), sizeof (float));
  kernel_fill_floats (random, input, c->x, c->m * c->cols);
  c->x_bytes = ox_activation_row_bytes (kernel->activation, c->cols);
  c->activations = guarded_new (c->m * c->x_bytes, 4);
  if (kernel->activation == OX_ACTIVATION_Q8)
    for (size_t i = 0; i < c->m; i++)
      kernels->quantize_q8 (c->x + i * c->cols, (uint8_t *) c->activations + i * c->x_bytes, c->cols);
  else if (kernel->activation == OX_ACTIVATION_BF16)
    round_activations (c, kernels);
  else
    memcpy (c->activations, c->x, c->m * c->x_bytes);

  c->expected = g_new (double, c->rows * c->m);
  c->bound = g_new (double, c->rows * c->m);
  weights = g_new (float, c->cols);
  for (size_t r = 0; r < c->rows; r++) {
    kernels->dequantize (type, (const uint8_t *) c->source + r * c->row_bytes, weights, c->cols);
    for (size_t i = 0; i < c->m; i++)
      if (kernel->activation == OX_ACTIVATION_Q8)
        expect_integer (c, r, i);
      else
        expect_float (c, weights, r, i, kernel->activation);
  }
}

static void
case_clear (Case *c)
{
  guarded_free (c->source);
  guarded_free (c->x);
  guarded_free (c->activations);
  g_free (c->expected);
  g_free (c->bound);
}

static void
check_case (const char *level,
            const OxKernels *kernels,
            uint32_t type,
            OxPrecision precision,
            Shape shape,
            KernelInput input,
            KernelRandom *random)
{
  const OxLinearKernel *kernel = ox_linear_kernel (kernels, type, precision, shape.rows, shape.cols);
  const float untouched = -12345;
  OxPackedMatrix w;
  Case c;
  size_t packed, split, stride;
  float *many, *one;

  g_assert_nonnull (kernel);
  case_init (&c, kernels, kernel, type, shape, input, random);
  g_assert_true (kernel->packed_bytes (type, c.rows, c.cols, &packed));
  w = (OxPackedMatrix) { kernel, type, c.rows, c.cols, guarded_new (packed, 64) };

  /* Packing and multiplying in two parts, as two workers would. */
  split = c.rows / 2 / kernel->row_step * kernel->row_step;
  kernel->pack (&w, c.source, 0, split);
  kernel->pack (&w, (const uint8_t *) c.source + split * c.row_bytes, split, c.rows);

  stride = c.rows + 3;
  many = guarded_new (((c.m - 1) * stride + c.rows) * sizeof (float), sizeof (float));
  for (size_t i = 0; i < (c.m - 1) * stride + c.rows; i++)
    many[i] = untouched;
  kernel->matmul (&w, c.activations, c.m, many, stride, split, c.rows);
  kernel->matmul (&w, c.activations, c.m, many, stride, 0, split);

  one = guarded_new (c.rows * sizeof (float), sizeof (float));
  for (size_t i = 0; i < c.m; i++) {
    const void *x = (const uint8_t *) c.activations + i * c.x_bytes;
    for (size_t r = 0; r < c.rows; r++)
      one[r] = untouched;
    kernel->matvec (&w, x, one, 0, split);
    kernel->matvec (&w, x, one, split, c.rows);

    for (size_t r = 0; r < c.rows; r++) {
      double error = fabs (one[r] - c.expected[i * c.rows + r]);
      if (!(error <= c.bound[i * c.rows + r]))
        g_error ("%s %s %s, %s input, %zu×%zu, m %zu: output [%zu][%zu] is %.9g, expected %.9g ± %.3g", level,
                 kernel->name, ox_type_info (type)->name, kernel_input_names[input], c.rows, c.cols, c.m, i, r, one[r],
                 c.expected[i * c.rows + r], c.bound[i * c.rows + r]);
      if (memcmp (&one[r], &many[i * stride + r], sizeof (float)) != 0)
        g_error ("%s %s %s, %zu×%zu, m %zu: output [%zu][%zu] is %.9g by matmul, %.9g by matvec", level, kernel->name,
                 ox_type_info (type)->name, c.rows, c.cols, c.m, i, r, many[i * stride + r], one[r]);
    }
    for (size_t r = c.rows; r < stride && i + 1 < c.m; r++)
      g_assert_cmpfloat (many[i * stride + r], ==, untouched);
  }

  guarded_free (w.data);
  guarded_free (many);
  guarded_free (one);
  case_clear (&c);
}

typedef struct {
  const KernelLevel *level;
  uint32_t type;
  OxPrecision precision;
} LinearTest;

static void
test_linear (gconstpointer data)
{
  const LinearTest *test = data;
  KernelRandom random = { 20261130 + test->type };

  for (size_t s = 0; s < G_N_ELEMENTS (shapes); s++)
    for (int input = 0; input < N_INPUTS; input++)
      if (!kernel_quick () || (s + (size_t) input) % 3 == 0)
        check_case (test->level->name, &test->level->kernels, test->type, test->precision, shapes[s], input, &random);
}

/* Every number of activation rows that has a tile of its own, and those that take two tiles; panels in pairs and one left over. */
static void
test_few_rows (gconstpointer data)
{
  const KernelLevel *level = data;
  KernelRandom random = { 11 };

  for (size_t t = 0; t < kernel_n_types; t++)
    for (size_t m = 1; m <= 15; m++)
      check_case (level->name, &level->kernels, kernel_types[t], OX_PRECISION_FAST, (Shape) { 49, 2, m }, INPUT_NORMAL,
                  &random);
}

/* More columns than are expanded or unpacked at a time, so that sums are carried from one part to the next, for few and for many
 * activation rows. */
static void
test_long_rows (gconstpointer data)
{
  static const uint32_t types[] = { OX_TYPE_Q4_K, OX_TYPE_Q6_K, OX_TYPE_BF16 };
  static const Shape long_shapes[] = { { 18, 11, 5 }, { 35, 7, 13 } };
  const KernelLevel *level = data;
  KernelRandom random = { 7 };

  for (size_t s = 0; s < G_N_ELEMENTS (long_shapes); s++) {
    for (int precision = OX_PRECISION_EXACT; precision <= OX_PRECISION_FAST; precision++)
      for (size_t t = 0; t < G_N_ELEMENTS (types); t++)
        check_case (level->name, &level->kernels, types[t], precision, long_shapes[s], INPUT_NORMAL, &random);
    check_case (level->name, &level->kernels, OX_TYPE_Q8_0, OX_PRECISION_FAST,
                (Shape) { long_shapes[s].rows, 37, long_shapes[s].m }, INPUT_NORMAL, &random);
  }
}

/* As many columns as a large model has: sums of 512 groups, as large as they get. */
static void
test_many_columns (gconstpointer data)
{
  static const struct {
    uint32_t type;
    size_t blocks;
  } tests[] = { { OX_TYPE_Q8_0, 512 }, { OX_TYPE_Q4_0, 512 }, { OX_TYPE_Q4_K, 64 }, { OX_TYPE_Q6_K, 64 } };
  const KernelLevel *level = data;
  KernelRandom random = { 13 };

  for (size_t t = 0; t < G_N_ELEMENTS (tests) && (t == 0 || !kernel_quick ()); t++) {
    const Shape shape = { 17, tests[t].blocks, 3 };

    check_case (level->name, &level->kernels, tests[t].type, OX_PRECISION_FAST, shape, INPUT_NORMAL, &random);
    check_case (level->name, &level->kernels, tests[t].type, OX_PRECISION_FAST, shape, INPUT_EXTREME, &random);
  }
}

static void
test_refused_shapes (void)
{
  size_t n_levels, bytes;
  const KernelLevel *levels = kernel_levels (&n_levels);

  for (size_t l = 0; l < n_levels; l++) {
    const OxKernels *k = &levels[l].kernels;
    for (int precision = OX_PRECISION_EXACT; precision <= OX_PRECISION_FAST; precision++) {
      const OxLinearKernel *q8 = ox_linear_kernel (k, OX_TYPE_Q8_0, precision, 1, 32);
      const OxLinearKernel *q4_k = ox_linear_kernel (k, OX_TYPE_Q4_K, precision, 1, 256);
      const OxLinearKernel *f32 = ox_linear_kernel (k, OX_TYPE_F32, precision, 1, 1);

      g_assert_false (q8->packed_bytes (OX_TYPE_Q8_0, 1, 33, &bytes));
      g_assert_false (q4_k->packed_bytes (OX_TYPE_Q4_K, 1, 32, &bytes));
      g_assert_false (q8->packed_bytes (OX_TYPE_Q8_0, SIZE_MAX / 4, 64, &bytes));
      g_assert_false (q8->packed_bytes (OX_TYPE_Q8_0, 16, SIZE_MAX / 32 * 32, &bytes));
      g_assert_false (f32->packed_bytes (OX_TYPE_F32, 2, SIZE_MAX / 4, &bytes));
      g_assert_false (f32->packed_bytes (OX_TYPE_F32, SIZE_MAX, SIZE_MAX, &bytes));
      g_assert_true (q8->packed_bytes (OX_TYPE_Q8_0, 0, 32, &bytes));
      g_assert_cmpuint (bytes, ==, 0);
    }
    g_assert_null (ox_linear_kernel (k, 9, OX_PRECISION_FAST, 1, 32));
  }
}

int
main (int argc, char **argv)
{
  size_t n_levels;
  const KernelLevel *levels = kernel_levels (&n_levels);

  g_test_init (&argc, &argv, NULL);
  for (size_t l = 0; l < n_levels; l++) {
    g_autofree char *path = g_strdup_printf ("/linear/%s/long-rows", levels[l].name);
    g_autofree char *few = g_strdup_printf ("/linear/%s/few-rows", levels[l].name);
    g_autofree char *columns = g_strdup_printf ("/linear/%s/many-columns", levels[l].name);
    for (size_t t = 0; t < kernel_n_types; t++)
      for (int precision = OX_PRECISION_EXACT; precision <= OX_PRECISION_FAST; precision++) {
        LinearTest *test = g_new (LinearTest, 1);
        g_autofree char *name =
          g_strdup_printf ("/linear/%s/%s/%s", levels[l].name, ox_type_info (kernel_types[t])->name,
                           precision == OX_PRECISION_EXACT ? "exact" : "fast");
        *test = (LinearTest) { &levels[l], kernel_types[t], precision };
        g_test_add_data_func_full (name, test, test_linear, g_free);
      }
    g_test_add_data_func (path, &levels[l], test_long_rows);
    g_test_add_data_func (few, &levels[l], test_few_rows);
    g_test_add_data_func (columns, &levels[l], test_many_columns);
  }
  g_test_add_func ("/linear/refused-shapes", test_refused_shapes);
  return g_test_run ();
}
