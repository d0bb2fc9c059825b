/* Rounding of float weights to blocks, when a model is loaded.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-blocks.h"
#include "ox-quantize-weights.h"

#include <glib.h>
#include <math.h>
#include <string.h>

#define BLOCK 32

static float
random_normal (GRand *rand)
{
  double u = g_rand_double_range (rand, 1e-12, 1), v = g_rand_double (rand);

  return (float) (sqrt (-2 * log (u)) * cos (2 * G_PI * v));
}

/* A scale that a half float holds. */
static float
random_scale (GRand *rand)
{
  guint16 exponent = (guint16) g_rand_int_range (rand, 5, 26), mantissa = (guint16) g_rand_int_range (rand, 0, 1024);

  return ox_f16_to_f32 ((guint16) (exponent << 10 | mantissa));
}

static void
round_trip (guint32 type, const float *x, float *y)
{
  guint8 block[sizeof (OxBlockQ8_0)];

  ox_quantize_weights (ox_kernels ()->flags, type, x, block, BLOCK);
  ox_kernels ()->dequantize (type, block, y, BLOCK);
}

/* Weighted by the root mean square of the block and the weight's own magnitude. */
static double
squared_error (const float *x, const float *y)
{
  double sum = 0, squares = 0;

  for (guint i = 0; i < BLOCK; i++)
    squares += (double) x[i] * x[i];
  for (guint i = 0; i < BLOCK; i++)
    sum += (sqrt (squares / BLOCK) + fabs ((double) x[i])) * ((double) x[i] - y[i]) * ((double) x[i] - y[i]);
  return sum;
}

/* The rounding that everybody does: the greatest becomes -8. */
static double
naive_q4_error (const float *x)
{
  float y[BLOCK], greatest = 0, d;

  for (guint i = 0; i < BLOCK; i++)
    if (fabsf (x[i]) > fabsf (greatest))
      greatest = x[i];
  d = ox_f16_to_f32 (ox_f32_to_f16 (greatest / -8));
  for (guint i = 0; i < BLOCK; i++)
    y[i] = d != 0 ? d * CLAMP (rintf (x[i] / d), -8, 7) : 0;
  return squared_error (x, y);
}

static void
test_q4_beats_naive (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (7);
  double ours = 0, naive = 0, energy = 0;

  for (guint n = 0; n < 4000; n++) {
    float x[BLOCK], y[BLOCK];
    float sigma = random_scale (rand);

    for (guint i = 0; i < BLOCK; i++)
      x[i] = sigma * random_normal (rand);
    round_trip (OX_TYPE_Q4_0, x, y);
    ours += squared_error (x, y) / pow (sigma, 3);
    naive += naive_q4_error (x) / pow (sigma, 3);
    for (guint i = 0; i < BLOCK; i++)
      energy += pow (x[i] / sigma, 2);
    /* Never worse: what everybody does is among the trials. The scale's own rounding may go either way. */
    g_assert_cmpfloat (squared_error (x, y), <=, 1.003 * naive_q4_error (x));
  }
  g_test_message ("relative error %.4f, naively %.4f", sqrt (ours / energy), sqrt (naive / energy));
  g_assert_cmpfloat (ours, <, 0.9 * naive);
}

/* Weights that lie on a Q4_0 grid already come out as they are, however much of the grid they use. */
static void
test_q4_grid_is_exact (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (3);

  for (guint n = 0; n < 16000; n++) {
    int most = 1 + (int) (n % 8);
    float d = random_scale (rand) * (n & 8 ? -1.0f : 1.0f);
    float x[BLOCK], y[BLOCK];

    for (guint i = 0; i < BLOCK; i++)
      x[i] = d * (float) g_rand_int_range (rand, -most, MIN (most, 7) + 1);
    x[g_rand_int_range (rand, 0, BLOCK)] = d * (float) -most;
    round_trip (OX_TYPE_Q4_0, x, y);
    for (guint i = 0; i < BLOCK; i++)
      if (x[i] != y[i])
        g_error ("grid to %d, step %g: %.9g became %.9g", most, d, x[i], y[i]);
  }
}

/* Half the distance of two steps and what the scale's own rounding adds. */
static void
test_q8_error (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (5);

  for (guint n = 0; n < 4000; n++) {
    float x[BLOCK], y[BLOCK], greatest = 0;
    float sigma = random_scale (rand);

    for (guint i = 0; i < BLOCK; i++) {
      x[i] = sigma * random_normal (rand);
      greatest = MAX (greatest, fabsf (x[i]));
    }
    round_trip (OX_TYPE_Q8_0, x, y);
    for (guint i = 0; i < BLOCK; i++)
      g_assert_cmpfloat (fabsf (x[i] - y[i]), <=, greatest / 127 * 0.5625f);
  }
}

static void
test_q8_grid_is_exact (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (9);

  for (guint n = 0; n < 4000; n++) {
    float d = random_scale (rand), x[BLOCK], y[BLOCK];

    for (guint i = 0; i < BLOCK; i++)
      x[i] = d * (float) g_rand_int_range (rand, -127, 128);
    x[n % BLOCK] = d * (n & 1 ? -127 : 127);
    round_trip (OX_TYPE_Q8_0, x, y);
    for (guint i = 0; i < BLOCK; i++)
      g_assert_cmpfloat (x[i], ==, y[i]);
  }
}

static void
test_extremes (void)
{
  static const guint32 types[] = { OX_TYPE_Q8_0, OX_TYPE_Q4_0 };

  for (guint t = 0; t < 2; t++) {
    float x[BLOCK] = { 0 }, y[BLOCK];

    round_trip (types[t], x, y);
    for (guint i = 0; i < BLOCK; i++)
      g_assert_cmpfloat (y[i], ==, 0);
    /* Too small for a half float as a scale: nothing, but not nonsense. */
    for (guint i = 0; i < BLOCK; i++)
      x[i] = i % 2 ? 1e-38f : -0x1p-149f;
    round_trip (types[t], x, y);
    for (guint i = 0; i < BLOCK; i++)
      g_assert_cmpfloat (fabsf (y[i]), <=, 1e-6f);
    /* Scales near the smallest half float, of 2^-24: off by up to half of that. */
    for (guint i = 0; i < BLOCK; i++)
      x[i] = i % 2 ? 3e-5f : -1e-5f;
    round_trip (types[t], x, y);
    for (guint i = 0; i < BLOCK; i++)
      g_assert_cmpfloat (fabsf (x[i] - y[i]), <=, 127 * 0x1p-25f + 1e-7f);
    for (guint i = 0; i < BLOCK; i++)
      x[i] = i % 2 ? 200000 : -100000;
    round_trip (types[t], x, y);
    for (guint i = 0; i < BLOCK; i++)
      g_assert_cmpfloat (fabsf (x[i] - y[i]), <=, 16000);
    /* What is not finite spoils its block visibly, and only that. */
    for (guint bad = 0; bad < BLOCK; bad++) {
      const float values[] = { NAN, INFINITY, -INFINITY };
      for (guint v = 0; v < 3; v++) {
        memset (x, 0, sizeof x);
        x[(bad + 1) % BLOCK] = 3e38f;
        x[bad] = values[v];
        round_trip (types[t], x, y);
        for (guint i = 0; i < BLOCK; i++)
          g_assert_true (isnan (y[i]));
      }
    }
  }
}

/* The same blocks on every instruction set. */
static void
test_levels (void)
{
  static const guint32 masks[] = { 0, OX_CPU_AVX2, OX_CPU_AVX2 | OX_CPU_AVX512 };
  static const guint32 types[] = { OX_TYPE_Q8_0, OX_TYPE_Q4_0 };
  g_autoptr (GRand) rand = g_rand_new_with_seed (11);
  gsize n = 4096;
  g_autofree float *x = g_new (float, n);
  g_autofree guint8 *expected = g_malloc0 (2 * n);
  g_autofree guint8 *found = g_malloc0 (2 * n);

  for (guint round = 0; round < 20; round++) {
    for (gsize i = 0; i < n; i++)
      x[i] =
        round % 3 == 0 ? random_normal (rand) : (float) ldexp (random_normal (rand), g_rand_int_range (rand, -40, 10));
    for (guint t = 0; t < 2; t++) {
      memset (expected, 0, 2 * n);
      ox_quantize_weights (masks[0], types[t], x, expected, n);
      for (guint m = 1; m < G_N_ELEMENTS (masks); m++) {
        if ((ox_cpu_flags () & masks[m]) != masks[m])
          continue;
        memset (found, 0, 2 * n);
        ox_quantize_weights (masks[m], types[t], x, found, n);
        g_assert_cmpmem (expected, 2 * n, found, 2 * n);
      }
    }
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/quantize/q4/beats-naive", test_q4_beats_naive);
  g_test_add_func ("/quantize/q4/grid-is-exact", test_q4_grid_is_exact);
  g_test_add_func ("/quantize/q8/error", test_q8_error);
  g_test_add_func ("/quantize/q8/grid-is-exact", test_q8_grid_is_exact);
  g_test_add_func ("/quantize/extremes", test_extremes);
  g_test_add_func ("/quantize/levels", test_levels);
  return g_test_run ();
}
