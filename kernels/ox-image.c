/* Group norm, enlarging, and the C reference of what networks for pictures need beside convolutions. Sums in float64.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-image.h"

#include <math.h>
#include <string.h>

#include "ox-conv-layout.h"
#include "ox-internal.h"

/* ---- Group norm -------------------------------------------------------------------------------------------------------------- */

#define BLOCK_FLOATS 16384
#define MOST_PIXELS 256

size_t
ox_group_norm_block (size_t channels)
{
  size_t pixels = BLOCK_FLOATS / (channels != 0 ? channels : 1);

  return pixels == 0 ? 1 : pixels < MOST_PIXELS ? pixels : MOST_PIXELS;
}

size_t
ox_group_norm_blocks (size_t pixels, size_t channels)
{
  size_t block = ox_group_norm_block (channels);

  return pixels / block + (pixels % block != 0);
}

/* The moments of @n_a and @n_b numbers together. */
static OxMoments
merge (OxMoments a, double n_a, OxMoments b, double n_b)
{
  double apart = b.mean - a.mean, n = n_a + n_b;

  return (OxMoments) { a.mean + apart * (n_b / n), a.squares + b.squares + apart * apart * (n_a * (n_b / n)) };
}

void
ox_group_norm_merge (OxMoments *moments,
                     size_t pixels,
                     size_t channels,
                     size_t groups,
                     const float *gain,
                     const float *bias,
                     float eps,
                     float *scale,
                     float *shift)
{
  size_t block = ox_group_norm_block (channels), size = channels / groups;

  for (size_t g = 0; g < groups; g++) {
    OxMoments all = moments[g];
    size_t done = pixels < block ? pixels : block;
    double factor;

    for (size_t b = 1; done < pixels; b++) {
      size_t n = pixels - done < block ? pixels - done : block;

      all = merge (all, (double) done * (double) size, moments[b * groups + g], (double) n * (double) size);
      done += n;
    }
    moments[g] = all;
    factor = 1 / sqrt (all.squares / ((double) pixels * (double) size) + (double) eps);
    for (size_t c = g * size; c < (g + 1) * size; c++) {
      double by = gain != NULL ? factor * (double) gain[c] : factor;

      scale[c] = (float) by;
      shift[c] = (float) ((bias != NULL ? (double) bias[c] : 0) - all.mean * by);
    }
  }
}

void
ox_image_resize_nearest (float *y,
                         size_t y_height,
                         size_t y_width,
                         const float *x,
                         size_t height,
                         size_t width,
                         size_t channels,
                         size_t row_begin,
                         size_t row_end)
{
  for (size_t r = row_begin; r < row_end; r++) {
    const float *row = x + ox_conv_source (r, height, y_height) * width * channels;

    for (size_t c = 0; c < y_width; c++)
      memcpy (y + (r * y_width + c) * channels, row + ox_conv_source (c, width, y_width) * channels,
              channels * sizeof (float));
  }
}

/* ---- C reference -------------------------------------------------------------------------------------------------------------- */

static void
moments_c (const float *x, size_t x_stride, size_t pixels, size_t channels, size_t groups, OxMoments *moments)
{
  size_t size = channels / groups;

  for (size_t g = 0; g < groups; g++) {
    OxMoments m = { 0, 0 };

    for (size_t p = 0; p < pixels; p++)
      for (size_t c = g * size; c < (g + 1) * size; c++)
        m.mean += (double) x[p * x_stride + c];
    m.mean /= (double) pixels * (double) size;
    for (size_t p = 0; p < pixels; p++)
      for (size_t c = g * size; c < (g + 1) * size; c++) {
        double d = (double) x[p * x_stride + c] - m.mean;
        m.squares += d * d;
      }
    moments[g] = m;
  }
}

static void
layer_norm_c (float *y, const float *x, const float *w, const float *b, float eps, size_t n)
{
  double mean = 0, squares = 0, factor;

  for (size_t i = 0; i < n; i++)
    mean += (double) x[i] / (double) n;
  for (size_t i = 0; i < n; i++)
    squares += ((double) x[i] - mean) * ((double) x[i] - mean);
  factor = 1 / sqrt (squares / (double) n + (double) eps);
  for (size_t i = 0; i < n; i++)
    y[i] =
      (float) (((double) x[i] - mean) * factor * (w != NULL ? (double) w[i] : 1) + (b != NULL ? (double) b[i] : 0));
}

static double
swish (double x, double u)
{
  return x / (1 + exp (-u));
}

static void
silu_c (float *y, const float *x, size_t n)
{
  for (size_t i = 0; i < n; i++)
    y[i] = (float) swish (x[i], x[i]);
}

/* x · Φ(x); erfc() loses nothing where Φ is small. */
static double
gelu (double x)
{
  return x / 2 * erfc (-x * 0.70710678118654752440);
}

static void
gelu_erf_c (float *y, const float *x, size_t n)
{
  for (size_t i = 0; i < n; i++)
    y[i] = (float) gelu (x[i]);
}

/* See gelu_tanh_mul_c(). */
static void
gelu_tanh_c (float *y, const float *x, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    double v = x[i];
    y[i] = (float) swish (v, 1.5957691216057308 * (v + 0.044715 * v * v * v));
  }
}

static void
gelu_quick_c (float *y, const float *x, size_t n)
{
  for (size_t i = 0; i < n; i++)
    y[i] = (float) swish (x[i], 1.702 * x[i]);
}

static void
gelu_erf_mul_c (float *y, const float *gate, const float *up, size_t n)
{
  for (size_t i = 0; i < n; i++)
    y[i] = (float) (gelu (gate[i]) * up[i]);
}

static void
scale_shift_c (float *y, const float *x, const float *scale, const float *shift, bool silu, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    double v = (double) x[i] * scale[i] + shift[i];
    y[i] = (float) (silu ? swish (v, v) : v);
  }
}

static void
init_c (OxKernels *table)
{
  table->moments = moments_c;
  table->layer_norm = layer_norm_c;
  table->scale_shift = scale_shift_c;
  table->silu = silu_c;
  table->gelu_erf = gelu_erf_c;
  table->gelu_tanh = gelu_tanh_c;
  table->gelu_quick = gelu_quick_c;
  table->gelu_erf_mul = gelu_erf_mul_c;
}

void
ox_image_init (OxKernels *table, uint32_t flags)
{
  ox_conv_init_c (table);
  init_c (table);
#if defined(__x86_64__)
  if (flags & OX_CPU_AVX2)
    ox_image_init_avx2 (table);
  if (flags & OX_CPU_AVX512)
    ox_image_init_avx512 (table);
  if ((flags & OX_CPU_AVX512_BF16) && (flags & OX_CPU_FAST_BF16))
    ox_image_init_avx512bf16 (table);
  if ((flags & OX_CPU_AVX512_BF16) && (flags & OX_CPU_AMX_BF16))
    table->conv_pairs = &ox_conv_amx;
#elif defined(__aarch64__)
  if (flags & OX_CPU_NEON)
    ox_image_init_neon (table);
#endif
}
