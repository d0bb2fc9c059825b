/* What networks for pictures need beside convolutions, over the vectors of ox-simd-*.h: moments of a group norm, layer norm, SiLU
 * and the kinds of GELU. Everything is static.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

#include <math.h>
#include <string.h>

#include "ox-exp.h"

/* ---- Norms ------------------------------------------------------------------------------------------------------------------ */

/* Channels that are summed side by side. */
#define STRIP_VECTORS 4
#define STRIP (STRIP_VECTORS * VF_LANES)

/* sums[c] = Σ x[c] - from[c], or of the squares of it, over the pixels, for @n ≤ STRIP channels. */
static inline void
strip_sums (const float *x,
            size_t x_stride,
            size_t pixels,
            size_t n,
            const float from[STRIP],
            const bool squares,
            float sums[STRIP])
{
  VF base[STRIP_VECTORS], sum[STRIP_VECTORS];

  for (size_t v = 0; v < STRIP_VECTORS; v++) {
    base[v] = vf_load (from + v * VF_LANES);
    sum[v] = vf_set1 (0);
  }
  if (n == STRIP)
    for (size_t p = 0; p < pixels; p++, x += x_stride)
      for (size_t v = 0; v < STRIP_VECTORS; v++) {
        VF d = vf_sub (vf_load (x + v * VF_LANES), base[v]);
        sum[v] = squares ? vf_fma (d, d, sum[v]) : vf_add (d, sum[v]);
      }
  else
    for (size_t p = 0; p < pixels; p++, x += x_stride)
      for (size_t v = 0; v < STRIP_VECTORS && v * VF_LANES < n; v++) {
        size_t left = n - v * VF_LANES;
        VF d = left < VF_LANES ? vf_load_n (x + v * VF_LANES, left) : vf_load (x + v * VF_LANES);
        d = vf_sub (d, base[v]);
        sum[v] = squares ? vf_fma (d, d, sum[v]) : vf_add (d, sum[v]);
      }
  for (size_t v = 0; v < STRIP_VECTORS; v++)
    vf_store (sums + v * VF_LANES, sum[v]);
}

/* Sums begin from the first pixel, so that a mean far from zero costs no precision. */
static void
moments (const float *x, size_t x_stride, size_t pixels, size_t channels, size_t groups, OxMoments *moments)
{
  const size_t size = channels / groups;
  float from[STRIP] = { 0 }, sums[STRIP];

  for (size_t g = 0; g < groups; g++)
    moments[g] = (OxMoments) { 0, 0 };
  for (size_t c = 0; c < channels; c += STRIP) {
    size_t n = channels - c < STRIP ? channels - c : STRIP;

    memcpy (from, x + c, n * sizeof (float));
    strip_sums (x + c, x_stride, pixels, n, from, false, sums);
    for (size_t i = 0; i < n; i++)
      moments[(c + i) / size].mean += (double) from[i] + (double) sums[i] / (double) pixels;
  }
  for (size_t g = 0; g < groups; g++)
    moments[g].mean /= (double) size;
  for (size_t c = 0; c < channels; c += STRIP) {
    size_t n = channels - c < STRIP ? channels - c : STRIP;

    for (size_t i = 0; i < n; i++)
      from[i] = (float) moments[(c + i) / size].mean;
    strip_sums (x + c, x_stride, pixels, n, from, true, sums);
    for (size_t i = 0; i < n; i++)
      moments[(c + i) / size].squares += (double) sums[i];
  }
}

/* The sum of x - @from, or of its squares, in four sums side by side. */
static inline float
row_sum (const float *x, float from, const bool squares, size_t n)
{
  VF sum[4], mean = vf_set1 (from);
  float rest = 0;
  size_t i = 0;

  for (size_t v = 0; v < 4; v++)
    sum[v] = vf_set1 (0);
  for (; i + 4 * VF_LANES <= n; i += 4 * VF_LANES)
    for (size_t v = 0; v < 4; v++) {
      VF d = vf_sub (vf_load (x + i + v * VF_LANES), mean);
      sum[v] = squares ? vf_fma (d, d, sum[v]) : vf_add (d, sum[v]);
    }
  for (; i + VF_LANES <= n; i += VF_LANES) {
    VF d = vf_sub (vf_load (x + i), mean);
    sum[0] = squares ? vf_fma (d, d, sum[0]) : vf_add (d, sum[0]);
  }
  for (; i < n; i++)
    rest += squares ? (x[i] - from) * (x[i] - from) : x[i] - from;
  return vf_sum (vf_add (vf_add (sum[0], sum[1]), vf_add (sum[2], sum[3]))) + rest;
}

/* (x - mean) · factor · w + b */
static inline VF
normalised (VF x, VF mean, VF factor, VF w, VF b)
{
  return vf_fma (vf_mul (vf_sub (x, mean), factor), w, b);
}

static void
layer_norm (float *y, const float *x, const float *w, const float *b, float eps, size_t n)
{
  float mean = row_sum (x, 0, false, n) / (float) n, variance = row_sum (x, mean, true, n) / (float) n;
  VF m = vf_set1 (mean), f = vf_set1 (1 / sqrtf (variance + eps)), one = vf_set1 (1), none = vf_set1 (0);
  size_t i = 0;

  for (; i + VF_LANES <= n; i += VF_LANES)
    vf_store (
      y + i, normalised (vf_load (x + i), m, f, w != NULL ? vf_load (w + i) : one, b != NULL ? vf_load (b + i) : none));
  if (i < n)
    vf_store_n (y + i,
                normalised (vf_load_n (x + i, n - i), m, f, w != NULL ? vf_load_n (w + i, n - i) : one,
                            b != NULL ? vf_load_n (b + i, n - i) : none),
                n - i);
}

/* ---- Activations ------------------------------------------------------------------------------------------------------------ */

/* x · sigmoid(u) */
static inline VF
swish (VF x, VF u)
{
  return vf_div (x, vf_add (vf_set1 (1), vf_exp (vf_sub (vf_set1 (0), u))));
}

static inline VF
silu_of (VF x)
{
  return swish (x, x);
}

/* x · sigmoid(1.702 x) (Hendrycks & Gimpel 2016) */
static inline VF
gelu_quick_of (VF x)
{
  return swish (x, vf_mul (x, vf_set1 (1.702f)));
}

/* See gelu_tanh_mul_c(). */
static inline VF
gelu_tanh_of (VF x)
{
  VF factor = vf_fma (vf_mul (x, x), vf_set1 (1.5957691216057308f * 0.044715f), vf_set1 (1.5957691216057308f));
  return swish (x, vf_mul (x, factor));
}

/* x · Φ(x) with the normal distribution Φ(-u) = exp(-u²/2) · G(u) for u ≥ 0; G, which falls from 1/2 as slowly as 1/u, is a
 * polynomial in t = 1 / (1 + 0.35 u) (minimax on [0, 14.5], relative error 3.2e-8). What u² loses when it is rounded is known
 * exactly and put back, since exp makes a relative error of it. */
static inline VF
gelu_erf_of (VF x)
{
  VF u = vf_abs (x), one = vf_set1 (1), square, lost, t, p;

  u = vf_min (u, vf_set1 (20));
  square = vf_mul (u, u);
  lost = vf_fma (u, u, vf_sub (vf_set1 (0), square));
  t = vf_div (one, vf_fma (u, vf_set1 (0.35f), one));
  p = vf_set1 (-2.915802971e-02f);
  p = vf_fma (p, t, vf_set1 (1.440316141e-01f));
  p = vf_fma (p, t, vf_set1 (-2.558403909e-01f));
  p = vf_fma (p, t, vf_set1 (1.593212485e-01f));
  p = vf_fma (p, t, vf_set1 (-2.321339399e-02f));
  p = vf_fma (p, t, vf_set1 (1.055529267e-01f));
  p = vf_fma (p, t, vf_set1 (1.198211834e-01f));
  p = vf_fma (p, t, vf_set1 (1.398635358e-01f));
  p = vf_fma (p, t, vf_set1 (1.396213025e-01f));
  p = vf_mul (vf_mul (p, t), vf_exp (vf_mul (square, vf_set1 (-0.5f))));
  p = vf_fma (vf_mul (p, vf_set1 (-0.5f)), lost, p);
  return vf_mul (x, vf_less (x, vf_set1 (0), p, vf_sub (one, p)));
}

/* y = OF(x) */
#define UNARY(NAME)                                                                                                    \
  static void NAME (float *y, const float *x, size_t n)                                                                \
  {                                                                                                                    \
    size_t i = 0;                                                                                                      \
                                                                                                                       \
    for (; i + VF_LANES <= n; i += VF_LANES)                                                                           \
      vf_store (y + i, NAME##_of (vf_load (x + i)));                                                                   \
    if (i < n)                                                                                                         \
      vf_store_n (y + i, NAME##_of (vf_load_n (x + i, n - i)), n - i);                                                 \
  }

UNARY (silu)
UNARY (gelu_erf)
UNARY (gelu_tanh)
UNARY (gelu_quick)

static void
gelu_erf_mul (float *y, const float *gate, const float *up, size_t n)
{
  size_t i = 0;

  for (; i + VF_LANES <= n; i += VF_LANES)
    vf_store (y + i, vf_mul (gelu_erf_of (vf_load (gate + i)), vf_load (up + i)));
  if (i < n)
    vf_store_n (y + i, vf_mul (gelu_erf_of (vf_load_n (gate + i, n - i)), vf_load_n (up + i, n - i)), n - i);
}

static void
scale_shift (float *y, const float *x, const float *scale, const float *shift, bool silu, size_t n)
{
  size_t i = 0;

  for (; i + VF_LANES <= n; i += VF_LANES) {
    VF v = vf_fma (vf_load (x + i), vf_load (scale + i), vf_load (shift + i));
    vf_store (y + i, silu ? silu_of (v) : v);
  }
  if (i < n) {
    VF v = vf_fma (vf_load_n (x + i, n - i), vf_load_n (scale + i, n - i), vf_load_n (shift + i, n - i));
    vf_store_n (y + i, silu ? silu_of (v) : v, n - i);
  }
}

static void
init_image (OxKernels *table)
{
  table->moments = moments;
  table->layer_norm = layer_norm;
  table->scale_shift = scale_shift;
  table->silu = silu;
  table->gelu_erf = gelu_erf;
  table->gelu_tanh = gelu_tanh;
  table->gelu_quick = gelu_quick;
  table->gelu_erf_mul = gelu_erf_mul;
}
