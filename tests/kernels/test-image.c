/* Group norm, layer norm, SiLU, the kinds of GELU and enlarging: every instruction set against float64, odd sizes, guard zones.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "kernel-test.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "ox-blocks.h"
#include "ox-image.h"

#define U 0x1p-24

static float *
random_row (KernelRandom *random, size_t n)
{
  float *row = guarded_new (n * sizeof (float), sizeof (float));

  kernel_fill_floats (random, INPUT_NORMAL, row, n);
  return row;
}

/* ---- Group norm ---------------------------------------------------------------------------------------------------------- */

typedef struct {
  size_t pixels, channels, groups, gap;
  float mean, spread; /* of the numbers */
} Norm;

static const Norm norms[] = {
  { 64, 320, 32, 0, 0, 1 },     { 1, 320, 32, 5, 0, 1 },       { 300, 32, 32, 0, 0.5f, 2 },
  { 1000, 4, 1, 3, -3, 0.1f },  { 77, 33, 3, 0, 1000, 1 },     { 259, 64, 4, 0, -1e6f, 10 },
  { 600, 640, 32, 0, 1e4f, 1 }, { 13, 1920, 32, 7, 0, 1e15f }, { 9, 641, 1, 0, 0, 1e-15f },
  { 5, 7, 7, 1, 0, 1 },         { 130, 20000, 32, 0, 100, 1 }, { 515, 128, 32, 0, 7, 0 },
};

/* What group @g should be, and how far from it the moments may be: each block's mean errs by the rounding of its sums, which
 * begin from a number of the block, so by what p + 2 roundings of at most the range R of the group do, and merging does not
 * add to that; squares by p + 4 roundings, by twice the distance D of a block's mean from that of all times the error of the
 * former, and by its square. */
static void
expected_moments (const Norm *norm,
                  const float *x,
                  size_t g,
                  double *mean,
                  double *variance,
                  double *mean_error,
                  double *variance_error)
{
  size_t stride = norm->channels + norm->gap, size = norm->channels / norm->groups;
  size_t block = ox_group_norm_block (norm->channels), longest = MIN (block, norm->pixels);
  double sum = 0, squares = 0, least = INFINITY, most = -INFINITY, apart = 0;

  for (size_t p = 0; p < norm->pixels; p++)
    for (size_t c = g * size; c < (g + 1) * size; c++) {
      double v = x[p * stride + c];
      sum += v;
      least = fmin (least, v);
      most = fmax (most, v);
    }
  *mean = sum / (double) (norm->pixels * size);
  for (size_t b = 0; b < norm->pixels; b += block) {
    size_t n = MIN (block, norm->pixels - b);
    double of_block = 0;

    for (size_t p = b; p < b + n; p++)
      for (size_t c = g * size; c < (g + 1) * size; c++) {
        double d = x[p * stride + c] - *mean;
        squares += d * d;
        of_block += d / (double) (n * size);
      }
    apart = fmax (apart, fabs (of_block));
  }
  *variance = squares / (double) (norm->pixels * size);
  *mean_error = ((double) longest + 2) * U * (most - least);
  *variance_error = ((double) longest + 4) * U * *variance + 2 * apart * *mean_error +
                    pow (*mean_error + fabs (*mean) * U, 2) * 2 + FLT_MIN;
}

static void
test_group_norm (gconstpointer data)
{
  const KernelLevel *level = data;
  KernelRandom random = { 21 };

  for (size_t t = 0; t < G_N_ELEMENTS (norms); t++) {
    const Norm *n = &norms[t];
    size_t stride = n->channels + n->gap, size = n->channels / n->groups, block = ox_group_norm_block (n->channels);
    size_t n_blocks = ox_group_norm_blocks (n->pixels, n->channels);
    float *x = random_row (&random, n->pixels * stride - n->gap), *gain = random_row (&random, n->channels);
    float *bias = random_row (&random, n->channels), *scale = random_row (&random, n->channels);
    float *shift = random_row (&random, n->channels);
    OxMoments *moments = guarded_new (n_blocks * n->groups * sizeof (OxMoments), 8);
    const float eps = 1e-5f;
    bool weighted = t % 3 != 0;

    for (size_t i = 0; i < n->pixels * stride - n->gap; i++)
      x[i] = x[i] * n->spread + n->mean;
    g_assert_cmpuint (n_blocks, ==, (n->pixels + block - 1) / block);
    for (size_t b = n_blocks; b-- > 0;)
      level->kernels.moments (x + b * block * stride, stride, MIN (block, n->pixels - b * block), n->channels,
                              n->groups, moments + b * n->groups);
    ox_group_norm_merge (moments, n->pixels, n->channels, n->groups, weighted ? gain : NULL, weighted ? bias : NULL,
                         eps, scale, shift);
    for (size_t g = 0; g < n->groups; g++) {
      double mean, variance, mean_error, variance_error, factor, relative;

      expected_moments (n, x, g, &mean, &variance, &mean_error, &variance_error);
      kernel_check (level->name, "mean", t, g, moments[g].mean, mean, mean_error + FLT_MIN);
      kernel_check (level->name, "variance", t, g, moments[g].squares / (double) (n->pixels * size), variance,
                    variance_error);
      factor = 1 / sqrt (variance + (double) eps);
      relative = 0.5 * variance_error / (variance + (double) eps - fmin (variance_error, variance)) + U;
      for (size_t c = g * size; c < (g + 1) * size; c++) {
        double by = weighted ? factor * (double) gain[c] : factor, add = weighted ? (double) bias[c] : 0;

        kernel_check (level->name, "scale", t, c, scale[c], by, fabs (by) * relative + FLT_MIN);
        kernel_check (level->name, "shift", t, c, shift[c], add - mean * by,
                      fabs (mean * by) * relative + mean_error * fabs (by) * (1 + relative) +
                        fabs (add - mean * by) * 2 * U + FLT_MIN);
      }
    }
    guarded_free (x);
    guarded_free (gain);
    guarded_free (bias);
    guarded_free (scale);
    guarded_free (shift);
    guarded_free (moments);
  }
}

/* ---- Rows ------------------------------------------------------------------------------------------------------------------ */

static const size_t sizes[] = { 1, 7, 8, 9, 15, 16, 17, 31, 33, 64, 100, 320, 641, 1280 };

/* The mean errs by n + 2 roundings of numbers of the mean magnitude, m; deviations by that and a rounding each; the variance
 * by n + 4 roundings and the square of the mean's error. */
static void
test_layer_norm (gconstpointer data)
{
  const KernelLevel *level = data;
  KernelRandom random = { 22 };

  for (size_t s = 0; s < G_N_ELEMENTS (sizes); s++)
    for (int variant = 0; variant < 4; variant++) {
      size_t n = sizes[s];
      float *x = random_row (&random, n), *w = random_row (&random, n), *b = random_row (&random, n),
            *y = random_row (&random, n);
      const float eps = variant == 3 ? 1e-6f : 1e-5f, *weight = variant & 1 ? w : NULL, *bias = variant & 2 ? b : NULL;
      double mean = 0, magnitude = 0, variance = 0, factor, off, relative;

      for (size_t i = 0; i < n; i++) {
        x[i] += variant == 3 ? 20 : 0;
        mean += (double) x[i] / (double) n;
        magnitude += fabs ((double) x[i]) / (double) n;
      }
      for (size_t i = 0; i < n; i++)
        variance += pow ((double) x[i] - mean, 2) / (double) n;
      factor = 1 / sqrt (variance + (double) eps);
      off = ((double) n + 2) * U * magnitude;
      relative = 0.5 * (((double) n + 4) * U * variance + 2 * off * off) * factor * factor + 5 * U;
      level->kernels.layer_norm (y, x, weight, bias, eps, n);
      for (size_t i = 0; i < n; i++) {
        double gain = weight != NULL ? (double) w[i] : 1, add = bias != NULL ? (double) b[i] : 0,
               d = (double) x[i] - mean;
        double expected = d * factor * gain + add;
        kernel_check (level->name, "layer_norm", n, i, y[i], expected,
                      fabs (gain) * factor * (off * (1 + relative) + (fabs (d) + off) * relative) +
                        fabs (expected) * 2 * U + FLT_MIN);
      }
      level->kernels.layer_norm (x, x, weight, bias, eps, n);
      g_assert_cmpmem (x, n * sizeof (float), y, n * sizeof (float));
      guarded_free (x);
      guarded_free (w);
      guarded_free (b);
      guarded_free (y);
    }
}

/* As for gates (test-vector.c): exp() errs by 2e-7, and by what its argument u errs; below FLT_MIN all bits are lost. */
static double
swish_bound (double expected, double u, double up)
{
  double bound = fabs (expected) * (2e-7 + (6 + 4 * fmin (fabs (u), 104)) * U) + FLT_MIN * (1 + fabs (up));
  return u < -88.7 ? bound + fabs (expected) : bound;
}

static double
gelu (double x)
{
  return x / 2 * erfc (-x * 0.70710678118654752440);
}

/* Good to 1e-6 relative while the result is a normal number. */
static double
gelu_bound (double expected, double up)
{
  return fabs (expected) * 1e-6 + FLT_MIN * 20 * (1 + fabs (up));
}

static void
check_activations (const KernelLevel *level, const float *x, size_t n)
{
  const OxKernels *k = &level->kernels;
  float *silu = guarded_new (n * sizeof (float), sizeof (float)),
        *quick = guarded_new (n * sizeof (float), sizeof (float));
  float *tanh_ = guarded_new (n * sizeof (float), sizeof (float)),
        *erf_ = guarded_new (n * sizeof (float), sizeof (float));

  k->silu (silu, x, n);
  k->gelu_quick (quick, x, n);
  k->gelu_tanh (tanh_, x, n);
  k->gelu_erf (erf_, x, n);
  for (size_t i = 0; i < n; i++) {
    double v = x[i], q = (double) 1.702f * v, t = 1.5957691216057308 * (v + 0.044715 * v * v * v);

    if (isnan (x[i])) {
      g_assert_true (isnan (silu[i]) && isnan (quick[i]) && isnan (tanh_[i]) && isnan (erf_[i]));
      continue;
    }
    kernel_check (level->name, "silu", n, i, silu[i], v / (1 + exp (-v)), swish_bound (v / (1 + exp (-v)), v, 0));
    kernel_check (level->name, "gelu_quick", n, i, quick[i], v / (1 + exp (-q)),
                  swish_bound (v / (1 + exp (-q)), q, 0) + 1e-7 * fabs (v / (1 + exp (-q))) * fmin (fabs (q), 104));
    kernel_check (level->name, "gelu_tanh", n, i, tanh_[i], v / (1 + exp (-t)), swish_bound (v / (1 + exp (-t)), t, 0));
    kernel_check (level->name, "gelu_erf", n, i, erf_[i], gelu (v), gelu_bound (gelu (v), 0));
  }
  /* In place. */
  memcpy (silu, x, n * sizeof (float));
  k->gelu_erf (silu, silu, n);
  g_assert_cmpmem (silu, n * sizeof (float), erf_, n * sizeof (float));
  guarded_free (silu);
  guarded_free (quick);
  guarded_free (tanh_);
  guarded_free (erf_);
}

static void
test_activations (gconstpointer data)
{
  static const float edges[] = { 0,      -0.0f, 1,    -1,  10,   -10, 80,    -80,    87.5f, -87.5f, 88.8f,
                                 -88.8f, 103,   -103, 200, -200, NAN, 1e10f, -1e10f, 12.9f, -12.9f, 1e-30f };
  const KernelLevel *level = data;
  KernelRandom random = { 23 };

  for (size_t s = 0; s < G_N_ELEMENTS (sizes); s++) {
    size_t n = sizes[s];
    float *x = random_row (&random, n);

    for (size_t i = 0; i < n; i++)
      x[i] = i % 3 == 0 ? edges[(i / 3 + s) % G_N_ELEMENTS (edges)] : x[i] * 5;
    check_activations (level, x, n);
    guarded_free (x);
  }
  /* All over the floats, both signs, from subnormal ones to 2^6. */
  for (uint32_t begin = 0; begin < 0x42800000;) {
    float x[1024];

    for (size_t i = 0; i < G_N_ELEMENTS (x); i++, begin += 8191)
      x[i] = ox_bits_to_f32 (begin | (uint32_t) (i & 1) << 31);
    check_activations (level, x, G_N_ELEMENTS (x));
  }
}

static void
test_gates (gconstpointer data)
{
  const KernelLevel *level = data;
  KernelRandom random = { 24 };

  for (size_t s = 0; s < G_N_ELEMENTS (sizes); s++) {
    size_t n = sizes[s];
    float *gate = random_row (&random, n), *up = random_row (&random, n), *y = random_row (&random, n);

    for (size_t i = 0; i < n; i++)
      gate[i] *= 4;
    level->kernels.gelu_erf_mul (y, gate, up, n);
    for (size_t i = 0; i < n; i++)
      kernel_check (level->name, "gelu_erf_mul", n, i, y[i], gelu (gate[i]) * up[i],
                    gelu_bound (gelu (gate[i]) * up[i], up[i]));
    level->kernels.gelu_erf_mul (gate, gate, up, n);
    g_assert_cmpmem (gate, n * sizeof (float), y, n * sizeof (float));
    guarded_free (gate);
    guarded_free (up);
    guarded_free (y);
  }
}

static void
test_scale_shift (gconstpointer data)
{
  const KernelLevel *level = data;
  KernelRandom random = { 25 };

  for (size_t s = 0; s < G_N_ELEMENTS (sizes); s++)
    for (int silu = 0; silu < 2; silu++) {
      size_t n = sizes[s];
      float *x = random_row (&random, n), *scale = random_row (&random, n), *shift = random_row (&random, n);
      float *y = random_row (&random, n);

      level->kernels.scale_shift (y, x, scale, shift, silu, n);
      for (size_t i = 0; i < n; i++) {
        double v = (double) x[i] * scale[i] + shift[i], expected = silu ? v / (1 + exp (-v)) : v;
        kernel_check (level->name, "scale_shift", n, i, y[i], expected,
                      silu ? swish_bound (expected, v, 0) + 1.1 * fabs (v) * U : fabs (v) * U + FLT_MIN);
      }
      level->kernels.scale_shift (x, x, scale, shift, silu, n);
      g_assert_cmpmem (x, n * sizeof (float), y, n * sizeof (float));
      guarded_free (x);
      guarded_free (scale);
      guarded_free (shift);
      guarded_free (y);
    }
}

/* ---- Enlarging -------------------------------------------------------------------------------------------------------------- */

static void
test_resize (void)
{
  static const size_t cases[][5] = {
    { 4, 6, 2, 3, 5 }, { 9, 7, 5, 4, 3 }, { 1, 1, 1, 1, 1 }, { 2, 3, 4, 6, 2 }, { 17, 2, 9, 1, 4 }
  };
  KernelRandom random = { 26 };

  for (size_t t = 0; t < G_N_ELEMENTS (cases); t++) {
    size_t height = cases[t][0], width = cases[t][1], from_height = cases[t][2], from_width = cases[t][3],
           n = cases[t][4];
    float *x = random_row (&random, from_height * from_width * n), *y = random_row (&random, height * width * n);

    ox_image_resize_nearest (y, height, width, x, from_height, from_width, n, height / 2, height);
    ox_image_resize_nearest (y, height, width, x, from_height, from_width, n, 0, height / 2);
    for (size_t r = 0; r < height; r++)
      for (size_t c = 0; c < width; c++)
        g_assert_cmpmem (y + (r * width + c) * n, n * sizeof (float),
                         x + (r * from_height / height * from_width + c * from_width / width) * n, n * sizeof (float));
    guarded_free (x);
    guarded_free (y);
  }
}

int
main (int argc, char **argv)
{
  static const KernelLevelTest tests[] = {
    { "group-norm", test_group_norm }, { "layer-norm", test_layer_norm },   { "activations", test_activations },
    { "gates", test_gates },           { "scale-shift", test_scale_shift },
  };
  size_t n_levels;
  const KernelLevel *levels = kernel_levels (&n_levels);

  g_test_init (&argc, &argv, NULL);
  kernel_add_tests ("image", levels, n_levels, tests, G_N_ELEMENTS (tests));
  g_test_add_func ("/image/resize", test_resize);
  return g_test_run ();
}
