/* Norms, rope, gates, softmax, quantisation of activations, argmax and the small vector operations: every instruction set against
 * float64, odd sizes, guard zones.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "kernel-test.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "ox-quantize.h"

static const size_t sizes[] = { 1, 7, 8, 9, 15, 16, 17, 31, 33, 64, 100, 640, 1031 };

static float *
random_row (KernelRandom *random, KernelInput input, size_t n)
{
  float *row = guarded_new (n * sizeof (float), sizeof (float));

  kernel_fill_floats (random, input, row, n);
  return row;
}

static float *
empty_row (size_t n)
{
  return guarded_new (n * sizeof (float), sizeof (float));
}

/* A float32 sum of squares errs by n·ε relative, the root by half of it; four more roundings for factor and products. */
static void
test_rms_norm (gconstpointer data)
{
  const KernelLevel *level = data;
  KernelRandom random = { 1 };

  for (size_t s = 0; s < G_N_ELEMENTS (sizes); s++)
    for (int variant = 0; variant < 3; variant++) {
      size_t n = sizes[s];
      float *x = random_row (&random, INPUT_NORMAL, n), *w = random_row (&random, INPUT_NORMAL, n), *y = empty_row (n);
      float offset = variant == 2 ? 1 : 0, eps = 1e-6f;
      double sum = 0, factor;

      for (size_t i = 0; i < n; i++)
        sum += (double) x[i] * x[i];
      factor = 1 / sqrt (sum / (double) n + (double) eps);
      level->kernels.rms_norm (y, x, variant == 0 ? NULL : w, offset, eps, n);
      for (size_t i = 0; i < n; i++) {
        double weight = variant == 0 ? 1 : (double) w[i] + offset, expected = x[i] * factor * weight;
        /* The sum w + offset is rounded on its own. */
        double bound = fabs (expected) * ((double) n / 2 + 6) * 0x1p-24 + fabs (x[i] * factor) * 2 * 0x1p-24;
        kernel_check (level->name, "rms_norm", n, i, y[i], expected, bound);
      }
      /* In place. */
      level->kernels.rms_norm (x, x, variant == 0 ? NULL : w, offset, eps, n);
      g_assert_cmpmem (x, n * sizeof (float), y, n * sizeof (float));
      guarded_free (x);
      guarded_free (w);
      guarded_free (y);
    }
}

/* Two products and a sum, each rounded. */
static void
test_rope (gconstpointer data)
{
  const KernelLevel *level = data;
  static const size_t dims[] = { 2, 10, 32, 64, 80, 256 };
  KernelRandom random = { 2 };

  for (size_t s = 0; s < G_N_ELEMENTS (dims); s++) {
    size_t dim = dims[s], half = dim / 2, heads = 3;
    float *x = random_row (&random, INPUT_NORMAL, heads * dim), *cosine = empty_row (half), *sine = empty_row (half);
    g_autofree float *before = g_memdup2 (x, heads * dim * sizeof (float));

    for (size_t i = 0; i < half; i++) {
      float angle = kernel_random_float (&random) * 3.1f;
      cosine[i] = cosf (angle);
      sine[i] = sinf (angle);
    }
    level->kernels.rope (x, cosine, sine, heads, dim, dim);
    for (size_t h = 0; h < heads; h++)
      for (size_t i = 0; i < half; i++) {
        double a = before[h * dim + i], b = before[h * dim + half + i];
        double bound = (fabs (a) + fabs (b)) * 3 * 0x1p-24;
        kernel_check (level->name, "rope", dim, i, x[h * dim + i], a * cosine[i] - b * sine[i], bound);
        kernel_check (level->name, "rope", dim, half + i, x[h * dim + half + i], b * cosine[i] + a * sine[i], bound);
      }
    guarded_free (x);
    guarded_free (cosine);
    guarded_free (sine);
  }
}

/* exp is good to 2e-7; its argument u is off by at most 4ε·|u|, which exp turns into a relative error of the same size. Where
 * exp(-u) is beyond the floats the result may be 0, and below the normal range an absolute bound is all there is. */
static double
gate_bound (double expected, double u, double up)
{
  double bound = fabs (expected) * (2e-7 + (6 + 4 * fmin (fabs (u), 104)) * 0x1p-24) + FLT_MIN * (1 + fabs (up));
  return u < -88.7 ? bound + fabs (expected) : bound;
}

static void
test_gates (gconstpointer data)
{
  const KernelLevel *level = data;
  static const float edges[] = { 0,      -0.0f, 1,      -1,  10,   -10, 80,   -80,   87.5f,
                                 -87.5f, 88.8f, -88.8f, 103, -103, 200, -200, 1e10f, -1e10f };
  KernelRandom random = { 3 };

  for (size_t s = 0; s < G_N_ELEMENTS (sizes); s++) {
    size_t n = sizes[s];
    float *gate = random_row (&random, INPUT_NORMAL, n), *up = random_row (&random, INPUT_NORMAL, n);
    float *silu = empty_row (n), *gelu = empty_row (n), *sigmoid = empty_row (n);

    for (size_t i = 0; i < n; i++)
      gate[i] = i % 3 == 0 ? edges[(i / 3 + s) % G_N_ELEMENTS (edges)] : gate[i] * 5;
    level->kernels.silu_mul (silu, gate, up, n);
    level->kernels.gelu_tanh_mul (gelu, gate, up, n);
    level->kernels.sigmoid_mul (sigmoid, gate, up, n);
    for (size_t i = 0; i < n; i++) {
      double g = gate[i], u = 1.5957691216057308 * (g + 0.044715 * g * g * g);
      double a = g / (1 + exp (-g)) * up[i], b = g / (1 + exp (-u)) * up[i];
      kernel_check (level->name, "silu_mul", n, i, silu[i], a, gate_bound (a, g, up[i]));
      kernel_check (level->name, "gelu_tanh_mul", n, i, gelu[i], b, gate_bound (b, u, up[i]));
      kernel_check (level->name, "sigmoid_mul", n, i, sigmoid[i], up[i] / (1 + exp (-g)),
                    gate_bound (up[i] / (1 + exp (-g)), g, up[i]));
    }
    /* The result may take the place of either input. */
    memcpy (gelu, up, n * sizeof (float));
    level->kernels.sigmoid_mul (gelu, gate, gelu, n);
    g_assert_cmpmem (gelu, n * sizeof (float), sigmoid, n * sizeof (float));
    level->kernels.silu_mul (gate, gate, up, n);
    g_assert_cmpmem (gate, n * sizeof (float), silu, n * sizeof (float));
    guarded_free (gate);
    guarded_free (up);
    guarded_free (silu);
    guarded_free (gelu);
    guarded_free (sigmoid);
  }
}

/* x / cap, tanh and the last product: some roundings and what exp errs by, relative, on both sides of where the formula changes. */
static void
test_softcap (gconstpointer data)
{
  const KernelLevel *level = data;
  static const float edges[] = { 0,       -0.0f, 1e-30f, -1e-4f,  18.74f,    18.76f, -18.74f,
                                 -18.76f, 1e4f,  -1e4f,  FLT_MAX, -INFINITY, NAN };
  KernelRandom random = { 7 };

  for (size_t s = 0; s < G_N_ELEMENTS (sizes); s++) {
    size_t n = sizes[s];
    float *x = random_row (&random, INPUT_NORMAL, n);
    g_autofree float *before = NULL;

    for (size_t i = 0; i < n; i++)
      x[i] = i % 3 == 0 ? edges[(i / 3 + s) % G_N_ELEMENTS (edges)] : x[i] * 30;
    before = g_memdup2 (x, n * sizeof (float));
    level->kernels.softcap (x, 30, n);
    for (size_t i = 0; i < n; i++) {
      double expected = 30 * tanh (before[i] / 30.0);

      if (isnan (before[i]))
        g_assert_true (isnan (x[i]));
      else
        kernel_check (level->name, "softcap", n, i, x[i], expected, fabs (expected) * 5e-7 + FLT_MIN);
    }
    guarded_free (x);
  }
}

/* The difference from the largest is rounded, and exp makes a relative error of that; the sum adds one for each element. */
static void
test_softmax (gconstpointer data)
{
  const KernelLevel *level = data;
  KernelRandom random = { 8 };

  for (size_t s = 0; s < G_N_ELEMENTS (sizes); s++)
    for (int spread = 0; spread < 3; spread++) {
      size_t n = sizes[s];
      float *x = random_row (&random, INPUT_NORMAL, n), *y = empty_row (n);
      double largest = -INFINITY, sum = 0;

      for (size_t i = 0; i < n; i++)
        x[i] = x[i] * (spread == 2 ? 60.0f : 3.0f) + (spread == 1 ? 1e3f : 0.0f);
      if (n > 1)
        x[n / 2] = -INFINITY;
      for (size_t i = 0; i < n; i++)
        largest = fmax (largest, x[i]);
      for (size_t i = 0; i < n; i++)
        sum += exp (x[i] - largest);
      level->kernels.softmax (y, x, n);
      for (size_t i = 0; i < n; i++) {
        double expected = exp (x[i] - largest) / sum, away = fmin (largest - x[i], 110);
        kernel_check (level->name, "softmax", n, i, y[i], expected,
                      expected * ((away + (double) n + 8) * 0x1p-24 + 2e-7) + FLT_MIN);
      }
      level->kernels.softmax (x, x, n);
      g_assert_cmpmem (x, n * sizeof (float), y, n * sizeof (float));
      /* One that is no number leaves none that is one. */
      x[n / 3] = NAN;
      level->kernels.softmax (y, x, n);
      for (size_t i = 0; i < n; i++)
        g_assert_true (isnan (y[i]));
      guarded_free (x);
      guarded_free (y);
    }
}

static void
test_small (gconstpointer data)
{
  const KernelLevel *level = data;
  KernelRandom random = { 4 };

  for (size_t s = 0; s < G_N_ELEMENTS (sizes); s++)
    for (int input = 0; input < N_INPUTS; input++) {
      size_t n = sizes[s];
      float *a = random_row (&random, input, n), *b = random_row (&random, input, n);
      g_autofree float *before = g_memdup2 (a, n * sizeof (float));
      double sum = 0, magnitude = 0;

      for (size_t i = 0; i < n; i++) {
        sum += (double) a[i] * b[i];
        magnitude += fabs ((double) a[i] * b[i]);
      }
      kernel_check (level->name, "dot", n, 0, level->kernels.dot (a, b, n), sum,
                    magnitude * (double) (n + 2) * 0x1p-24 + FLT_MIN);
      level->kernels.add (a, b, n);
      for (size_t i = 0; i < n; i++)
        g_assert_cmpfloat (a[i], ==, before[i] + b[i]);
      memcpy (a, before, n * sizeof (float));
      level->kernels.add_scaled (a, b, 0.3f, n);
      for (size_t i = 0; i < n; i++)
        kernel_check (level->name, "add_scaled", n, i, a[i], before[i] + (double) 0.3f * b[i],
                      (fabs ((double) before[i]) + fabs ((double) b[i])) * 0x1p-24 + FLT_MIN);
      memcpy (a, before, n * sizeof (float));
      level->kernels.scale (a, 0.3f, n);
      for (size_t i = 0; i < n; i++)
        g_assert_cmpfloat (a[i], ==, before[i] * 0.3f);
      guarded_free (a);
      guarded_free (b);
    }
}

static void
test_argmax (gconstpointer data)
{
  const KernelLevel *level = data;
  KernelRandom random = { 5 };

  for (size_t s = 0; s < G_N_ELEMENTS (sizes); s++) {
    size_t n = sizes[s];
    float *x = random_row (&random, INPUT_NORMAL, n);

    for (size_t at = 0; at < n; at += 1 + n / 37) {
      float before = x[at];
      x[at] = 100;
      g_assert_cmpuint (level->kernels.argmax (x, n), ==, at);
      x[n - 1] = 100;
      g_assert_cmpuint (level->kernels.argmax (x, n), ==, at);
      for (size_t i = 0; i < at; i++)
        if (i % 3 == 0)
          x[i] = NAN;
      g_assert_cmpuint (level->kernels.argmax (x, n), ==, at);
      kernel_fill_floats (&random, INPUT_NORMAL, x, n);
      x[at] = before;
    }
    for (size_t i = 0; i < n; i++)
      x[i] = -INFINITY;
    g_assert_cmpuint (level->kernels.argmax (x, n), ==, 0);
    for (size_t i = 0; i < n; i++)
      x[i] = NAN;
    g_assert_cmpuint (level->kernels.argmax (x, n), ==, 0);
    x[n - 1] = -INFINITY;
    g_assert_cmpuint (level->kernels.argmax (x, n), ==, n - 1);
    guarded_free (x);
  }
}

static void
test_group_greatest (gconstpointer data)
{
  const KernelLevel *level = data;
  KernelRandom random = { 6 };

  for (size_t s = 0; s < G_N_ELEMENTS (sizes); s++) {
    size_t n = sizes[s], groups = (n + OX_GREATEST_GROUP - 1) / OX_GREATEST_GROUP;
    float *x = random_row (&random, INPUT_NORMAL, n), *greatest = guarded_new (groups * sizeof (float), 4);

    x[0] = -INFINITY;
    for (size_t at = 0; at < n; at += 1 + n / 11) {
      static const float bad[] = { NAN, INFINITY };
      float before = x[at];

      g_assert_true (level->kernels.group_greatest (x, n, greatest));
      for (size_t g = 0; g < groups; g++) {
        float expected = -INFINITY;
        for (size_t i = g * OX_GREATEST_GROUP; i < n && i < (g + 1) * OX_GREATEST_GROUP; i++)
          expected = MAX (expected, x[i]);
        g_assert_cmpfloat (greatest[g], ==, expected);
      }
      for (size_t b = 0; b < G_N_ELEMENTS (bad); b++) {
        x[at] = bad[b];
        g_assert_false (level->kernels.group_greatest (x, n, greatest));
      }
      x[at] = before;
    }
    guarded_free (x);
    guarded_free (greatest);
  }
}

/* exp rounded to float64 from long double is at most half a unit off; the rest is ours. */
static void
test_exp_double (gconstpointer data)
{
  const KernelLevel *level = data;
  KernelRandom random = { 7 };

  for (size_t n = 1; n < 40; n++) {
    double *x = guarded_new (n * sizeof (double), 8), from[40];

    for (unsigned round = 0; round < 60; round++) {
      double range = round % 4 == 0 ? 750 : round % 4 == 1 ? 40 : round % 4 == 2 ? 1 : 1e-9;

      for (size_t i = 0; i < n; i++) {
        double v = range * (double) kernel_random_float (&random);
        x[i] = from[i] = v > 709 ? 709 : v;
      }
      level->kernels.exp_double (x, n);
      for (size_t i = 0; i < n; i++) {
        double expected = (double) expl ((long double) from[i]);
        g_assert_cmpfloat (fabs (x[i] - expected), <=, 2 * (nextafter (expected, INFINITY) - expected));
      }
    }
    guarded_free (x);
  }
  {
    double x[] = { 0, -0.0, -INFINITY, -1e300, -746, NAN, -745.13 };

    level->kernels.exp_double (x, G_N_ELEMENTS (x));
    g_assert_cmpfloat (x[0], ==, 1);
    g_assert_cmpfloat (x[1], ==, 1);
    for (size_t i = 2; i < 5; i++)
      g_assert_cmpfloat (x[i], ==, 0);
    g_assert_true (isnan (x[5]));
    g_assert_cmpfloat (x[6], ==, 0x1p-1074);
  }
}

/* Every level must give the reference's bytes: activations decide all sums that follow. */
static void
test_quantize (gconstpointer data)
{
  const KernelLevel *level = data;
  size_t n_levels;
  const OxKernels *reference = &kernel_levels (&n_levels)[0].kernels;
  KernelRandom random = { 6 };

  for (size_t blocks = 1; blocks < 9; blocks++)
    for (int input = 0; input < N_INPUTS; input++) {
      size_t n = blocks * 32, bytes = ox_activation_row_bytes (OX_ACTIVATION_Q8, n);
      float *x = random_row (&random, input, n);
      OxBlockQ8 *got = guarded_new (bytes, 4);
      g_autofree OxBlockQ8 *expected = g_malloc (bytes);

      if (input == INPUT_SUBNORMAL)
        for (size_t i = 0; i < n; i++)
          x[i] *= i < n / 2 ? 1e-18f : 1e-12f;
      reference->quantize_q8 (x, expected, n);
      level->kernels.quantize_q8 (x, got, n);
      g_assert_cmpmem (got, bytes, expected, bytes);
      for (size_t b = 0; b < blocks; b++) {
        int sum[2] = { 0, 0 };
        for (size_t j = 0; j < 32; j++) {
          double error = fabs ((double) got[b].scale * got[b].q[j] - x[b * 32 + j]);
          g_assert_cmpint (abs (got[b].q[j]), <=, 127);
          sum[j / 16] += got[b].q[j];
          /* Half a step, the roundings of scale and quotient, and what counts as zero. */
          g_assert_cmpfloat (error, <=, (double) got[b].scale * (0.5 + 127 * 3 * 0x1p-24) + (double) OX_Q8_SMALLEST);
        }
        g_assert_cmpint (got[b].sum[0], ==, sum[0]);
        g_assert_cmpint (got[b].sum[1], ==, sum[1]);
      }
      guarded_free (x);
      guarded_free (got);
    }
}

/* What no integer can hold must not be undefined, and must not come out as numbers that look fine: the scale tells. */
static void
test_quantize_not_finite (gconstpointer data)
{
  static const float values[] = { INFINITY, -INFINITY, NAN, -NAN };
  const KernelLevel *level = data;

  for (size_t v = 0; v < G_N_ELEMENTS (values); v++)
    for (size_t at = 0; at < 32; at++)
      for (int all = 0; all < 2; all++) {
        float x[64] = { 1, -1e30f, 0x1p-140f };
        OxBlockQ8 blocks[2];

        for (size_t i = 0; i < 32; i++)
          if (all || i == at)
            x[i] = values[v];
        level->kernels.quantize_q8 (x, blocks, 64);
        g_assert_true (isnan (blocks[0].scale));
        g_assert_cmpfloat (blocks[1].scale, ==, 0);
        for (size_t i = 0; i < 32; i++)
          g_assert_cmpint (abs (blocks[0].q[i]), <=, 127);
      }
}

int
main (int argc, char **argv)
{
  static const KernelLevelTest tests[] = {
    { "rms-norm", test_rms_norm },
    { "rope", test_rope },
    { "gates", test_gates },
    { "softcap", test_softcap },
    { "softmax", test_softmax },
    { "small", test_small },
    { "argmax", test_argmax },
    { "quantize", test_quantize },
    { "quantize-not-finite", test_quantize_not_finite },
    { "group-greatest", test_group_greatest },
    { "exp-double", test_exp_double },
  };
  size_t n_levels;
  const KernelLevel *levels = kernel_levels (&n_levels);

  g_test_init (&argc, &argv, NULL);
  kernel_add_tests ("vector", levels, n_levels, tests, G_N_ELEMENTS (tests));
  return g_test_run ();
}
