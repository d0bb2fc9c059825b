/* Convolutions: every instruction set × every kind of weights × shapes, paddings and what is fused, against float64, between
 * guard zones; and that the result does not depend on how the work is cut.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "kernel-test.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "ox-attention-convert.h"
#include "ox-conv.h"

#ifdef OX_AMX_EMULATED
#include "ox-amx.h"

/* Tiles in plain C stand for the processor's. */
OxEmulatedTiles ox_emulated_tiles;
extern const OxConvKernel ox_conv_amx_emulated;
#endif

typedef struct {
  OxConvShape shape; /* in, out, height and width of the kernel */
  size_t images, height, width;
  size_t stride, pad[4]; /* top, left, bottom, right */
  size_t resized[2];
  bool norm, silu, bias, residual;
  size_t gap; /* floats between pixels of x and y that belong to nobody */
} Case;

static const Case cases[] = {
  /* The shapes that Stable Diffusion has, small. */
  { { 320, 320, 3, 3 }, 1, 2, 3, 1, { 1, 1, 1, 1 }, .norm = true, .silu = true, .bias = true, .residual = true },
  { { 4, 320, 3, 3 }, 2, 9, 7, 1, { 1, 1, 1, 1 }, .bias = true },
  { { 320, 4, 3, 3 }, 2, 7, 5, 1, { 1, 1, 1, 1 }, .norm = true, .silu = true, .bias = true },
  { { 128, 3, 3, 3 }, 1, 17, 19, 1, { 1, 1, 1, 1 }, .norm = true, .silu = true, .bias = true },
  { { 64, 48, 3, 3 }, 2, 10, 8, 2, { 1, 1, 1, 1 }, .bias = true },
  { { 64, 80, 3, 3 }, 1, 9, 12, 2, { 0, 0, 1, 1 }, .bias = true },
  { { 96, 20, 3, 3 }, 1, 4, 5, 1, { 1, 1, 1, 1 }, .resized = { 8, 10 }, .bias = true },
  { { 96, 33, 3, 3 }, 1, 4, 5, 1, { 1, 1, 1, 1 }, .resized = { 7, 9 }, .norm = true, .silu = true, .bias = true },
  { { 641, 37, 3, 3 }, 1, 2, 3, 1, { 1, 1, 1, 1 }, .norm = true, .residual = true, .gap = 3 },
  { { 641, 641, 1, 1 }, 1, 2, 3, 1, { 0 }, .bias = true, .residual = true },
  { { 1300, 20, 1, 1 }, 1, 5, 3, 1, { 0 }, .silu = true, .gap = 1 },
  { { 320, 640, 1, 1 }, 1, 1, 1, 1, { 0 }, .norm = true, .bias = true },
  /* Towers for pictures and sound. */
  { { 3, 65, 14, 14 }, 1, 42, 28, 14, { 0 }, .bias = true },
  { { 3, 17, 16, 16 }, 1, 32, 50, 16, { 0 } },
  { { 1, 128, 3, 3 }, 1, 13, 16, 2, { 1, 1, 1, 1 } },
  { { 128, 32, 3, 3 }, 1, 7, 8, 2, { 1, 1, 1, 1 } },
  /* Odd ones. */
  { { 1, 1, 1, 1 }, 1, 1, 1, 1, { 0 } },
  { { 1, 1, 3, 3 }, 1, 1, 1, 1, { 1, 1, 1, 1 }, .silu = true },
  { { 7, 5, 3, 3 }, 3, 1, 1, 1, { 1, 1, 1, 1 }, .norm = true, .silu = true, .bias = true, .residual = true },
  { { 17, 31, 5, 2 }, 1, 11, 9, 3, { 4, 0, 2, 1 }, .norm = true, .bias = true, .gap = 5 },
  { { 33, 15, 1, 7 }, 1, 3, 20, 2, { 0, 6, 0, 6 }, .silu = true },
  { { 16, 16, 2, 2 }, 1, 2, 2, 1, { 5, 5, 5, 5 }, .bias = true },
  { { 40, 70, 9, 8 }, 1, 9, 9, 1, { 1, 1, 1, 1 } },
};

/* ---- Reference --------------------------------------------------------------------------------------------------------------- */

#define U 0x1p-24
#define U_BF16 0x1p-8

/* What kind of arithmetic a kernel has, and from and to what it packs. */
typedef struct {
  uint32_t source, held; /* held: the type of weights whose kernel is asked for */
  OxPrecision precision;
} Mode;

static const Mode modes[] = {
  { OX_TYPE_F32, OX_TYPE_F32, OX_PRECISION_EXACT },   { OX_TYPE_F16, OX_TYPE_F16, OX_PRECISION_EXACT },
  { OX_TYPE_BF16, OX_TYPE_BF16, OX_PRECISION_EXACT }, { OX_TYPE_F32, OX_TYPE_F16, OX_PRECISION_EXACT },
  { OX_TYPE_F16, OX_TYPE_F32, OX_PRECISION_EXACT },   { OX_TYPE_F32, OX_TYPE_F32, OX_PRECISION_FAST },
  { OX_TYPE_F16, OX_TYPE_F16, OX_PRECISION_FAST },    { OX_TYPE_BF16, OX_TYPE_BF16, OX_PRECISION_FAST },
  { OX_TYPE_F32, OX_TYPE_BF16, OX_PRECISION_FAST },
};

static bool
is_pairs (const OxConvKernel *kernel)
{
  return kernel->step_channels == 2;
}

/* Weight @i as the kernel has it. The C reference holds everything in float32. */
static double
weight (const OxConvKernel *kernel, const Mode *mode, const void *weights, size_t i)
{
  float value = mode->source == OX_TYPE_F32   ? ((const float *) weights)[i]
                : mode->source == OX_TYPE_F16 ? ox_f16_to_f32 (((const uint16_t *) weights)[i])
                                              : ox_bf16_to_f32 (((const uint16_t *) weights)[i]);

  if (is_pairs (kernel) || (kernel->weight_bytes == 2 && mode->held == OX_TYPE_BF16))
    return ox_bf16_to_f32 (ox_f32_to_bf16 (value));
  if (kernel->weight_bytes == 2)
    return ox_f16_to_f32 (ox_f32_to_f16 (value));
  return value;
}

/* What an output is the sum of: weights [out, taps, in], activated inputs [images, padded height, padded width, in] and how
 * far a kernel's may be from them. */
typedef struct {
  double *weights, *values, *errors;
  size_t height, width; /* padded */
} Terms;

static void
activate (const OxConv *conv, size_t image, size_t y, size_t x, size_t c, double *value, double *error)
{
  size_t row = conv->resized_height != 0 ? y * conv->height / conv->resized_height : y;
  size_t column = conv->resized_width != 0 ? x * conv->width / conv->resized_width : x;
  double v = conv->x[((image * conv->height + row) * conv->width + column) * conv->x_stride + c], e = 0;
  bool pairs = is_pairs (conv->w->kernel), changed = conv->norm_scale != NULL || conv->silu;

  if (conv->norm_scale != NULL) {
    size_t i = image * conv->w->shape.in_channels + c;
    v = v * (double) conv->norm_scale[i] + (double) conv->norm_shift[i];
    e = fabs (v) * U;
  }
  if (conv->silu) {
    /* |silu'| < 1.1; exp() and what rounding its argument and three operations do, as for gates (test-vector.c). */
    double silu = v / (1 + exp (-v));
    e = 1.1 * e + fabs (silu) * (2e-7 + (6 + 4 * fmin (fabs (v), 104)) * U) + FLT_MIN * 2;
    e += v < -88.7 ? fabs (silu) : 0;
    v = silu;
  }
  if (pairs && changed)
    e += (fabs (v) + e) * U_BF16;
  else if (pairs)
    v = ox_bf16_to_f32 (ox_f32_to_bf16 ((float) v));
  *value = v;
  *error = e;
}

static Terms
terms_new (const OxConv *conv, const Mode *mode, const void *weights)
{
  const OxConvShape *s = &conv->w->shape;
  size_t height = conv->resized_height != 0 ? conv->resized_height : conv->height;
  size_t width = conv->resized_width != 0 ? conv->resized_width : conv->width;
  size_t taps = s->kernel_height * s->kernel_width, in = s->in_channels, n;
  Terms t = { .height = conv->pad_top + height + conv->pad_bottom, .width = conv->pad_left + width + conv->pad_right };

  t.weights = g_new (double, s->out_channels *taps *in);
  for (size_t o = 0; o < s->out_channels; o++)
    for (size_t c = 0; c < in; c++)
      for (size_t k = 0; k < taps; k++)
        t.weights[(o * taps + k) * in + c] = weight (conv->w->kernel, mode, weights, (o * in + c) * taps + k);
  n = conv->images * t.height * t.width * in;
  t.values = g_new0 (double, n);
  t.errors = g_new0 (double, n);
  for (size_t image = 0; image < conv->images; image++)
    for (size_t y = 0; y < height; y++)
      for (size_t x = 0; x < width; x++)
        for (size_t c = 0; c < in; c++) {
          size_t to = ((image * t.height + y + conv->pad_top) * t.width + x + conv->pad_left) * in + c;
          activate (conv, image, y, x, c, &t.values[to], &t.errors[to]);
        }
  return t;
}

static void
terms_free (Terms *t)
{
  g_free (t->weights);
  g_free (t->values);
  g_free (t->errors);
}

static void
check_output (const OxConv *conv, const Terms *t, size_t pixel, size_t o, double before, const char *what)
{
  const OxConvShape *s = &conv->w->shape;
  size_t image = pixel / (conv->out_height * conv->out_width), y = pixel / conv->out_width % conv->out_height;
  size_t x = pixel % conv->out_width, row = s->kernel_width * s->in_channels;
  double sum = conv->bias != NULL ? (double) conv->bias[image * conv->bias_stride + o] : 0, magnitude = fabs (sum);
  double terms = (double) (s->kernel_height * row), error = 0, smallest = 0;
  double got = (double) conv->y[pixel * conv->y_stride + o];

  for (size_t ky = 0; ky < s->kernel_height; ky++) {
    size_t from = ((image * t->height + y * conv->stride + ky) * t->width + x * conv->stride) * s->in_channels;
    const double *w = t->weights + (o * s->kernel_height + ky) * row, *v = t->values + from, *e = t->errors + from;

    for (size_t i = 0; i < row; i++) {
      sum += w[i] * v[i];
      magnitude += fabs (w[i]) * (fabs (v[i]) + e[i]);
      error += fabs (w[i]) * e[i];
      smallest += 1 + fabs (w[i]) + fabs (v[i]);
    }
  }
  if (conv->residual != NULL) {
    sum += before;
    magnitude += fabs (before);
  }
  /* A float32 sum of n terms, each product rounded at most once more (that of pairs is exact), errs by at most (n + 2) u / (1
   * - (n + 2) u) of the sum of magnitudes. Instructions on pairs take numbers below FLT_MIN for 0, in factors and in results. */
  error += magnitude * (terms + 2) * U / (1 - (terms + 2) * U);
  error += is_pairs (conv->w->kernel) ? 2 * smallest * FLT_MIN : terms * 0x1p-149;
  if (!(fabs (got - sum) <= error))
    g_error ("%s: image %zu, y %zu, x %zu, channel %zu is %.9g, expected %.9g ± %.3g", what, image, y, x, o, got, sum,
             error);
}

/* ---- One case ------------------------------------------------------------------------------------------------------------------ */

static float *
floats (KernelRandom *random, KernelInput input, size_t n)
{
  float *data = guarded_new (n * sizeof (float), sizeof (float));

  kernel_fill_floats (random, input, data, n);
  return data;
}

static size_t
weight_bytes (uint32_t type)
{
  return type == OX_TYPE_F32 ? 4 : 2;
}

/* Packed in two pieces where there are two panels, so that pieces are tried, too. */
static void
pack (OxPackedConv *w, const void *weights)
{
  size_t bytes, out = w->shape.out_channels, panel = w->kernel->panel_channels;
  size_t half = out > panel ? (out / 2 + panel - 1) / panel * panel : out;
  size_t row = w->shape.in_channels * w->shape.kernel_height * w->shape.kernel_width * weight_bytes (w->type);

  g_assert_true (w->kernel->packed_bytes (&w->shape, &bytes));
  w->data = guarded_new (bytes, 64);
  memset (w->data, 0xff, bytes);
  if (half < out)
    w->kernel->pack (w, (const uint8_t *) weights + half * row, half, out);
  w->kernel->pack (w, weights, 0, half);
}

/* Runs all items for so many threads, the last first where @backwards. */
static void
run (OxConv *conv, unsigned n_threads, bool backwards)
{
  void *scratch;

  g_assert_true (ox_conv_plan (conv, n_threads));
  scratch = guarded_new (conv->scratch_bytes, 64);
  memset (scratch, 0xff, conv->scratch_bytes);
  for (size_t i = 0; i < conv->n_items; i++)
    conv->w->kernel->run (conv, backwards ? conv->n_items - 1 - i : i, scratch);
  guarded_free (scratch);
}

static void
check_case (const KernelLevel *level, const Case *test, const Mode *mode, KernelInput input, KernelRandom *random)
{
  const OxConvShape *s = &test->shape;
  size_t n_weights = s->out_channels * s->in_channels * s->kernel_height * s->kernel_width, pixels, n_y;
  size_t n_x = test->images * test->height * test->width * (s->in_channels + test->gap);
  void *weights = guarded_new (n_weights * weight_bytes (mode->source), 2);
  OxPackedConv w = { ox_conv_kernel (&level->kernels, mode->held, mode->precision), mode->source, *s };
  g_autofree char *what = g_strdup_printf ("%s, %s from %s, case %td, %s", level->name, w.kernel->name,
                                           ox_type_info (mode->source)->name, test - cases, kernel_input_names[input]);
  OxConv conv = { .w = &w,
                  .x = floats (random, input, n_x),
                  .x_stride = s->in_channels + test->gap,
                  .images = test->images,
                  .height = test->height,
                  .width = test->width,
                  .resized_height = test->resized[0],
                  .resized_width = test->resized[1],
                  .silu = test->silu,
                  .pad_top = test->pad[0],
                  .pad_left = test->pad[1],
                  .pad_bottom = test->pad[2],
                  .pad_right = test->pad[3],
                  .stride = test->stride,
                  .y_stride = s->out_channels + test->gap };
  g_autofree float *before = NULL, *first = NULL;
  Terms terms;
  float *y;

  kernel_fill_weights (random, mode->source, input, weights, n_weights);
  pack (&w, weights);
  if (test->norm) {
    conv.norm_scale = floats (random, INPUT_NORMAL, test->images * s->in_channels);
    conv.norm_shift = floats (random, INPUT_NORMAL, test->images * s->in_channels);
  }
  if (test->bias) {
    conv.bias = floats (random, input, test->images * s->out_channels);
    conv.bias_stride = test->images > 1 ? s->out_channels : 0;
  }
  g_assert_true (ox_conv_plan (&conv, 1));
  pixels = conv.images * conv.out_height * conv.out_width;
  n_y = pixels * conv.y_stride;
  y = floats (random, input, n_y);
  conv.y = y;
  before = g_memdup2 (y, n_y * sizeof (float));
  if (test->residual) {
    conv.residual = y;
    conv.residual_stride = conv.y_stride;
  }

  run (&conv, 1, false);
  terms = terms_new (&conv, mode, weights);
  for (size_t i = 0; i < pixels; i++) {
    for (size_t o = 0; o < s->out_channels; o++)
      check_output (&conv, &terms, i, o, (double) before[i * conv.y_stride + o], what);
    g_assert_cmpmem (y + i * conv.y_stride + s->out_channels, test->gap * sizeof (float),
                     before + i * conv.y_stride + s->out_channels, test->gap * sizeof (float));
  }
  terms_free (&terms);

  /* However it is cut: the same bits. */
  first = g_memdup2 (y, n_y * sizeof (float));
  for (unsigned n_threads = 3; n_threads < 1000; n_threads *= 17) {
    memcpy (y, before, n_y * sizeof (float));
    run (&conv, n_threads, n_threads == 3);
    g_assert_cmpmem (y, n_y * sizeof (float), first, n_y * sizeof (float));
  }

  guarded_free (weights);
  guarded_free (w.data);
  guarded_free ((void *) conv.x);
  guarded_free (y);
  if (test->norm) {
    guarded_free ((void *) conv.norm_scale);
    guarded_free ((void *) conv.norm_shift);
  }
  if (test->bias)
    guarded_free ((void *) conv.bias);
}

static void
test_shapes (gconstpointer data)
{
  /* A third of all pairs, where an emulator runs them. */
#ifdef OX_AMX_EMULATED
  bool quick = true;
#else
  bool quick = g_getenv ("OX_TEST_QUICK") != NULL;
#endif
  KernelRandom random = { 11 };

  for (size_t m = 0; m < G_N_ELEMENTS (modes); m++)
    for (size_t c = 0; c < G_N_ELEMENTS (cases); c++)
      if ((c < 5 || modes[m].source == modes[m].held) && (!quick || (c + m) % 3 == 0))
        check_case (data, &cases[c], &modes[m], INPUT_NORMAL, &random);
}

/* Extreme numbers; without SiLU and norm of them, whose results would be beyond the floats. */
static void
test_inputs (gconstpointer data)
{
  static const Case few[] = {
    { { 70, 70, 3, 3 }, 1, 4, 3, 1, { 1, 1, 1, 1 }, .bias = true, .residual = true },
    { { 130, 5, 1, 1 }, 1, 3, 3, 1, { 0 }, .bias = true },
    { { 3, 16, 4, 4 }, 1, 8, 8, 4, { 0 } },
  };
  KernelRandom random = { 12 };

  for (size_t m = 0; m < G_N_ELEMENTS (modes); m++)
    for (size_t c = 0; c < G_N_ELEMENTS (few); c++)
      for (int input = INPUT_ZERO; input < N_INPUTS; input++) {
        /* Weights up to 1e18 do not fit half floats. */
        if (input == INPUT_HUGE && modes[m].source != modes[m].held)
          continue;
        check_case (data, &few[c], &modes[m], input, &random);
      }
}

/* A pixel that is no number makes those that see it none, and no other. */
static void
test_not_finite (gconstpointer data)
{
  const KernelLevel *level = data;
  KernelRandom random = { 13 };

  for (size_t m = 0; m < G_N_ELEMENTS (modes); m++)
    for (int infinite = 0; infinite < 2; infinite++) {
      OxConvShape shape = { 21, 19, 3, 3 };
      g_autofree char *weights = g_malloc (21 * 19 * 9 * 4);
      g_autofree float *x = g_new (float, 8 * 9 * 21), *y = g_new (float, 8 * 9 * 19);
      OxPackedConv w = { ox_conv_kernel (&level->kernels, modes[m].held, modes[m].precision), modes[m].source, shape };
      OxConv conv = {
        .w = &w, .x = x, .x_stride = 21, .images = 1, .height = 8, .width = 9, .stride = 1, .y = y, .y_stride = 19
      };

      conv.pad_top = conv.pad_left = conv.pad_bottom = conv.pad_right = 1;
      kernel_fill_weights (&random, modes[m].source, INPUT_EXTREME, weights, 21 * 19 * 9);
      kernel_fill_floats (&random, INPUT_NORMAL, x, 8 * 9 * 21);
      x[(3 * 9 + 4) * 21 + 20] = infinite ? INFINITY : NAN;
      pack (&w, weights);
      run (&conv, 2, false);
      for (size_t i = 0; i < 8 * 9 * 19; i++) {
        size_t row = i / 19 / 9, column = i / 19 % 9;
        bool sees = row >= 2 && row <= 4 && column >= 3 && column <= 5;
        g_assert_cmpint (isfinite (y[i]), ==, !sees);
      }
      guarded_free (w.data);
    }
}

/* ---- Plans ---------------------------------------------------------------------------------------------------------------------- */

/* The largest shapes of Stable Diffusion are cut into items of 5 ms at 100 GFLOPS or less and need little memory; there are
 * enough items for many threads. */
static void
test_plans (gconstpointer data)
{
  static const struct {
    OxConvShape shape;
    size_t size, stride;
  } shapes[] = {
    { { 320, 320, 3, 3 }, 64, 1 },    { { 640, 640, 3, 3 }, 32, 1 },   { { 1280, 1280, 3, 3 }, 16, 1 },
    { { 2560, 1280, 3, 3 }, 16, 1 },  { { 1280, 1280, 3, 3 }, 8, 1 },  { { 2560, 1280, 3, 3 }, 8, 1 },
    { { 512, 512, 3, 3 }, 64, 1 },    { { 256, 256, 3, 3 }, 256, 1 },  { { 128, 128, 3, 3 }, 512, 1 },
    { { 512, 256, 3, 3 }, 256, 1 },   { { 256, 128, 3, 3 }, 512, 1 },  { { 128, 3, 3, 3 }, 512, 1 },
    { { 320, 4, 3, 3 }, 96, 1 },      { { 1920, 640, 1, 1 }, 32, 1 },  { { 320, 320, 3, 3 }, 64, 2 },
    { { 3, 1152, 14, 14 }, 896, 14 }, { { 128, 128, 3, 3 }, 2048, 1 }, { { 64, 3, 3, 3 }, 4096, 1 },
  };
  const KernelLevel *level = data;

  for (size_t i = 0; i < G_N_ELEMENTS (shapes); i++)
    for (size_t m = 0; m < G_N_ELEMENTS (modes); m++)
      for (unsigned n_threads = 1; n_threads <= 64; n_threads *= 4) {
        const OxConvShape *s = &shapes[i].shape;
        OxPackedConv w = { ox_conv_kernel (&level->kernels, modes[m].held, modes[m].precision), modes[m].source, *s };
        OxConv conv = {
          .w = &w, .x_stride = s->in_channels, .images = 1, .height = shapes[i].size, .width = shapes[i].size
        };
        double operations, all;

        conv.y_stride = s->out_channels;
        conv.silu = true;
        conv.stride = shapes[i].stride;
        conv.pad_top = conv.pad_left = conv.pad_bottom = conv.pad_right = s->kernel_height == 3;
        g_assert_true (ox_conv_plan (&conv, n_threads));
        operations = 2.0 * (double) (conv.tile_height * conv.tile_width * conv.item_panels * w.kernel->panel_channels) *
                     (double) (s->in_channels * s->kernel_height * s->kernel_width);
        all = 2.0 * (double) (conv.out_height * conv.out_width * s->out_channels) *
              (double) (s->in_channels * s->kernel_height * s->kernel_width);
        g_assert_cmpfloat (operations, <=, 0.5e9 * (double) w.kernel->step_channels);
        g_assert_cmpuint (conv.scratch_bytes, <=, 1 << 20);
        g_assert_cmpuint (conv.n_items, >=, 1);
        /* With more than 20 MFLOP for each, at least two thirds of the threads have something to do. */
        if (all > 20e6 * n_threads && s->out_channels > 64)
          g_assert_cmpuint (conv.n_items * 3, >=, n_threads * 2);
      }
}

static void
test_impossible (gconstpointer data)
{
  const KernelLevel *level = data;
  OxPackedConv w = { ox_conv_kernel (&level->kernels, OX_TYPE_F32, OX_PRECISION_FAST), OX_TYPE_F32, { 4, 4, 3, 3 } };
  const OxConv good = { .w = &w, .x_stride = 4, .images = 1, .height = 5, .width = 5, .stride = 1, .y_stride = 4 };
  OxConv bad;
  size_t bytes;

#define REFUSED(MEMBER, VALUE)                                                                                         \
  bad = good;                                                                                                          \
  bad.MEMBER = VALUE;                                                                                                  \
  g_assert_false (ox_conv_plan (&bad, 1))

  bad = good;
  g_assert_true (ox_conv_plan (&bad, 1));
  g_assert_false (ox_conv_plan (&bad, 0));
  REFUSED (images, 0);
  REFUSED (height, 0);
  REFUSED (width, 0);
  REFUSED (height, 2);
  REFUSED (width, 2);
  REFUSED (stride, 0);
  REFUSED (x_stride, 3);
  REFUSED (y_stride, 3);
  REFUSED (images, SIZE_MAX / 2);
  REFUSED (x_stride, SIZE_MAX / 8);
  REFUSED (y_stride, SIZE_MAX / 8);
  REFUSED (height, SIZE_MAX / 2);
  REFUSED (width, (size_t) UINT32_MAX + 1);
  REFUSED (pad_top, SIZE_MAX);
  REFUSED (pad_right, SIZE_MAX - 5);
  REFUSED (resized_height, SIZE_MAX);
  for (size_t i = 0; i < 4; i++) {
    static const OxConvShape shapes[] = { { 0, 4, 3, 3 }, { 4, 0, 3, 3 }, { 4, 4, 0, 3 }, { 4, 4, 3, 0 } };
    g_assert_false (w.kernel->packed_bytes (&shapes[i], &bytes));
    w.shape = shapes[i];
    bad = good;
    g_assert_false (ox_conv_plan (&bad, 1));
  }
  w.shape = (OxConvShape) { SIZE_MAX / 4, SIZE_MAX / 4, 3, 3 };
  g_assert_false (w.kernel->packed_bytes (&w.shape, &bytes));
  w.shape = (OxConvShape) { (size_t) 1 << 32, (size_t) 1 << 32, 1, 1 };
  g_assert_false (w.kernel->packed_bytes (&w.shape, &bytes));
  g_assert_null (ox_conv_kernel (&level->kernels, OX_TYPE_Q8_0, OX_PRECISION_FAST));
  g_assert_null (ox_conv_kernel (&level->kernels, 77, OX_PRECISION_EXACT));
}

#ifdef OX_AMX_EMULATED

/* The level to test: what multiplies pairs, and the C reference. */
static const KernelLevel *
tested_levels (size_t *n)
{
  static KernelLevel level = { .name = "amx-emulated" };

  ox_kernels_init (&level.kernels, 0);
  level.kernels.conv_pairs = &ox_conv_amx_emulated;
  *n = 1;
  return &level;
}

static void
test_tiles (void)
{
  g_assert_cmpuint (ox_emulated_tiles.configurations, >, 0);
  g_assert_cmpuint (ox_emulated_tiles.faults, ==, 0);
  g_assert_cmpuint (ox_emulated_tiles.config.palette, ==, 0);
}

#else

#define tested_levels kernel_levels

#endif

int
main (int argc, char **argv)
{
  static const KernelLevelTest tests[] = {
    { "shapes", test_shapes }, { "inputs", test_inputs },         { "not-finite", test_not_finite },
    { "plans", test_plans },   { "impossible", test_impossible },
  };
  size_t n_levels;
  const KernelLevel *levels = tested_levels (&n_levels);

  g_test_init (&argc, &argv, NULL);
  kernel_add_tests ("conv", levels, n_levels, tests, G_N_ELEMENTS (tests));
#ifdef OX_AMX_EMULATED
  g_test_add_func ("/conv/amx-emulated/tiles", test_tiles);
#endif
  return g_test_run ();
}
