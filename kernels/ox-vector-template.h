/* Everything of the table that is not a linear layer, written once over the vectors of ox-simd-*.h. The including file has
 * included one of those first; all functions here are static but the initialiser.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

#include <math.h>

#include "ox-decode.h"
#include "ox-exp.h"
#include "ox-quantize.h"

static void
dequantize (uint32_t type, const void *src, float *dst, size_t n)
{
  ox_dequantize_row (type, src, dst, n);
}

static float
dot (const float *a, const float *b, size_t n)
{
  VF s0 = vf_set1 (0), s1 = s0, s2 = s0, s3 = s0;
  size_t i = 0;

  for (; i + 4 * VF_LANES <= n; i += 4 * VF_LANES) {
    s0 = vf_fma (vf_load (a + i), vf_load (b + i), s0);
    s1 = vf_fma (vf_load (a + i + VF_LANES), vf_load (b + i + VF_LANES), s1);
    s2 = vf_fma (vf_load (a + i + 2 * VF_LANES), vf_load (b + i + 2 * VF_LANES), s2);
    s3 = vf_fma (vf_load (a + i + 3 * VF_LANES), vf_load (b + i + 3 * VF_LANES), s3);
  }
  for (; i + VF_LANES <= n; i += VF_LANES)
    s0 = vf_fma (vf_load (a + i), vf_load (b + i), s0);
  if (i < n)
    s1 = vf_fma (vf_load_n (a + i, n - i), vf_load_n (b + i, n - i), s1);
  return vf_sum (vf_add (vf_add (s0, s1), vf_add (s2, s3)));
}

static void
rms_norm (float *y, const float *x, const float *w, float weight_offset, float eps, size_t n)
{
  float factor = 1 / sqrtf (dot (x, x, n) / (float) n + eps);
  VF f = vf_set1 (factor), offset = vf_set1 (weight_offset);
  size_t i = 0;

  if (w == NULL) {
    for (; i + VF_LANES <= n; i += VF_LANES)
      vf_store (y + i, vf_mul (vf_load (x + i), f));
    if (i < n)
      vf_store_n (y + i, vf_mul (vf_load_n (x + i, n - i), f), n - i);
    return;
  }
  for (; i + VF_LANES <= n; i += VF_LANES)
    vf_store (y + i, vf_mul (vf_mul (vf_load (x + i), f), vf_add (vf_load (w + i), offset)));
  if (i < n) {
    VF weight = vf_add (vf_load_n (w + i, n - i), offset);
    vf_store_n (y + i, vf_mul (vf_mul (vf_load_n (x + i, n - i), f), weight), n - i);
  }
}

static void
rope (float *x, const float *cos, const float *sin, size_t n_heads, size_t head_dim, size_t rotary_dim)
{
  size_t half = rotary_dim / 2;

  for (size_t h = 0; h < n_heads; h++, x += head_dim) {
    size_t i = 0;
    for (; i + VF_LANES <= half; i += VF_LANES) {
      VF a = vf_load (x + i), b = vf_load (x + half + i), c = vf_load (cos + i), s = vf_load (sin + i);
      vf_store (x + i, vf_sub (vf_mul (a, c), vf_mul (b, s)));
      vf_store (x + half + i, vf_fma (b, c, vf_mul (a, s)));
    }
    for (; i < half; i++) {
      float a = x[i], b = x[half + i];
      x[i] = a * cos[i] - b * sin[i];
      x[half + i] = b * cos[i] + a * sin[i];
    }
  }
}

/* g / (1 + exp(-u)) · up */
static inline VF
gate (VF g, VF u, VF up)
{
  VF one = vf_set1 (1);
  return vf_mul (vf_div (g, vf_add (one, vf_exp (vf_sub (vf_set1 (0), u)))), up);
}

static void
silu_mul (float *y, const float *g, const float *up, size_t n)
{
  size_t i = 0;

  for (; i + VF_LANES <= n; i += VF_LANES)
    vf_store (y + i, gate (vf_load (g + i), vf_load (g + i), vf_load (up + i)));
  if (i < n) {
    VF v = vf_load_n (g + i, n - i);
    vf_store_n (y + i, gate (v, v, vf_load_n (up + i, n - i)), n - i);
  }
}

/* 2·√(2/π) · (g + 0.044715 g³); see gelu_tanh_mul_c(). */
static inline VF
gelu_argument (VF g)
{
  VF square = vf_mul (g, g);
  return vf_mul (g, vf_fma (square, vf_set1 (1.5957691216057308f * 0.044715f), vf_set1 (1.5957691216057308f)));
}

static void
gelu_tanh_mul (float *y, const float *g, const float *up, size_t n)
{
  size_t i = 0;

  for (; i + VF_LANES <= n; i += VF_LANES) {
    VF v = vf_load (g + i);
    vf_store (y + i, gate (v, gelu_argument (v), vf_load (up + i)));
  }
  if (i < n) {
    VF v = vf_load_n (g + i, n - i);
    vf_store_n (y + i, gate (v, gelu_argument (v), vf_load_n (up + i, n - i)), n - i);
  }
}

static void
sigmoid_mul (float *y, const float *g, const float *up, size_t n)
{
  VF one = vf_set1 (1);
  size_t i = 0;

  for (; i + VF_LANES <= n; i += VF_LANES)
    vf_store (y + i, gate (one, vf_load (g + i), vf_load (up + i)));
  if (i < n)
    vf_store_n (y + i, gate (one, vf_load_n (g + i, n - i), vf_load_n (up + i, n - i)), n - i);
}

static void
softcap (float *x, float cap, size_t n)
{
  VF c = vf_set1 (cap);
  size_t i = 0;

  for (; i + VF_LANES <= n; i += VF_LANES)
    vf_store (x + i, vf_mul (vf_tanh (vf_div (vf_load (x + i), c)), c));
  if (i < n)
    vf_store_n (x + i, vf_mul (vf_tanh (vf_div (vf_load_n (x + i, n - i), c)), c), n - i);
}

static void
softmax (float *y, const float *x, size_t n)
{
  VF best = vf_set1 (-INFINITY), total = vf_set1 (0), factor;
  float rest = 0, largest;
  size_t i = 0;

  for (; i + VF_LANES <= n; i += VF_LANES)
    best = vf_max (vf_load (x + i), best);
  largest = vf_greatest (best);
  for (; i < n; i++)
    largest = x[i] > largest ? x[i] : largest;

  best = vf_set1 (largest);
  for (i = 0; i + VF_LANES <= n; i += VF_LANES) {
    VF p = vf_exp (vf_sub (vf_load (x + i), best));
    vf_store (y + i, p);
    total = vf_add (total, p);
  }
  if (i < n) {
    vf_store_n (y + i, vf_exp (vf_sub (vf_load_n (x + i, n - i), best)), n - i);
    for (size_t j = i; j < n; j++)
      rest += y[j];
  }
  factor = vf_set1 (1 / (vf_sum (total) + rest));
  for (i = 0; i + VF_LANES <= n; i += VF_LANES)
    vf_store (y + i, vf_mul (vf_load (y + i), factor));
  if (i < n)
    vf_store_n (y + i, vf_mul (vf_load_n (y + i, n - i), factor), n - i);
}

static void
add (float *y, const float *x, size_t n)
{
  for (size_t i = 0; i < n; i++)
    y[i] += x[i];
}

static void
add_scaled (float *y, const float *x, float s, size_t n)
{
  VF factor = vf_set1 (s);
  size_t i = 0;

  for (; i + VF_LANES <= n; i += VF_LANES)
    vf_store (y + i, vf_fma (vf_load (x + i), factor, vf_load (y + i)));
  if (i < n)
    vf_store_n (y + i, vf_fma (vf_load_n (x + i, n - i), factor, vf_load_n (y + i, n - i)), n - i);
}

static void
scale (float *y, float s, size_t n)
{
  for (size_t i = 0; i < n; i++)
    y[i] *= s;
}

static size_t
argmax (const float *x, size_t n)
{
  VF best = vf_set1 (-INFINITY);
  float greatest;
  size_t i = 0;

  for (; i + VF_LANES <= n; i += VF_LANES)
    best = vf_max (vf_load (x + i), best);
  greatest = vf_greatest (best);
  for (; i < n; i++)
    greatest = x[i] > greatest ? x[i] : greatest;

  best = vf_set1 (greatest);
  for (i = 0; i + VF_LANES <= n; i += VF_LANES) {
    unsigned found = vf_equal (vf_load (x + i), best);
    if (found != 0)
      return i + (size_t) __builtin_ctz (found);
  }
  for (; i < n; i++)
    if (x[i] == greatest)
      return i;
  return 0;
}

/* NaN loses against everything: vf_max() gives its second operand where either is one. */
static bool
group_greatest (const float *x, size_t n, float *greatest)
{
  VF limit = vf_set1 (INFINITY), zero = vf_set1 (0), one = vf_set1 (1), bad = zero;
  size_t i = 0, wrong = 0;

  for (; i + OX_GREATEST_GROUP <= n; i += OX_GREATEST_GROUP, greatest++) {
    VF best = vf_set1 (-INFINITY);

    for (size_t j = i; j < i + OX_GREATEST_GROUP; j += VF_LANES) {
      VF v = vf_load (x + j);
      best = vf_max (v, best);
      bad = vf_max (vf_less (v, limit, zero, one), bad);
    }
    *greatest = vf_greatest (best);
  }
  if (i < n)
    *greatest = -INFINITY;
  for (; i < n; i++) {
    *greatest = x[i] > *greatest ? x[i] : *greatest;
    wrong += !(x[i] < INFINITY);
  }
  return wrong == 0 && vf_greatest (bad) == 0;
}
