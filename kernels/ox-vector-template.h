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
add (float *y, const float *x, size_t n)
{
  for (size_t i = 0; i < n; i++)
    y[i] += x[i];
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

/* ---- Attention: see attention_c() for the algorithm ------------------------------------------------------------------ */

/* Keys that are scored before their values are added up; as in ox_attention_scratch(). */
#define KEYS 64

/* scores[j] = scale · q·k[j] for @n rows of @k. */
static void
score_keys (float *scores, const float *q, const float *k, size_t n, size_t dim, float factor)
{
  size_t j = 0;

  for (; j + 4 <= n; j += 4) {
    const float *k0 = k + j * dim, *k1 = k0 + dim, *k2 = k1 + dim, *k3 = k2 + dim;
    VF s0 = vf_set1 (0), s1 = s0, s2 = s0, s3 = s0;
    size_t i = 0;
    for (; i + VF_LANES <= dim; i += VF_LANES) {
      VF v = vf_load (q + i);
      s0 = vf_fma (v, vf_load (k0 + i), s0);
      s1 = vf_fma (v, vf_load (k1 + i), s1);
      s2 = vf_fma (v, vf_load (k2 + i), s2);
      s3 = vf_fma (v, vf_load (k3 + i), s3);
    }
    if (i < dim) {
      VF v = vf_load_n (q + i, dim - i);
      s0 = vf_fma (v, vf_load_n (k0 + i, dim - i), s0);
      s1 = vf_fma (v, vf_load_n (k1 + i, dim - i), s1);
      s2 = vf_fma (v, vf_load_n (k2 + i, dim - i), s2);
      s3 = vf_fma (v, vf_load_n (k3 + i, dim - i), s3);
    }
    _mm_storeu_ps (scores + j, _mm_mul_ps (vf_sum4 (s0, s1, s2, s3), _mm_set1_ps (factor)));
  }
  for (; j < n; j++)
    scores[j] = dot (q, k + j * dim, dim) * factor;
}

/* Replaces @n scores by exp(score - largest) and returns their sum. */
static float
exponentiate (float *scores, size_t n, float largest)
{
  VF top = vf_set1 (largest), total = vf_set1 (0);
  size_t i = 0;
  float rest = 0;

  for (; i + VF_LANES <= n; i += VF_LANES) {
    VF p = vf_exp (vf_sub (vf_load (scores + i), top));
    vf_store (scores + i, p);
    total = vf_add (total, p);
  }
  if (i < n) {
    vf_store_n (scores + i, vf_exp (vf_sub (vf_load_n (scores + i, n - i), top)), n - i);
    for (; i < n; i++)
      rest += scores[i];
  }
  return vf_sum (total) + rest;
}

/* out = out · shrink + Σ_j p[j] · v[j] */
static void
add_values (float *out, float shrink, const float *p, const float *v, size_t n, size_t dim)
{
  VF s = vf_set1 (shrink);
  size_t i = 0;

  for (; i + 4 * VF_LANES <= dim; i += 4 * VF_LANES) {
    VF a0 = vf_mul (vf_load (out + i), s), a1 = vf_mul (vf_load (out + i + VF_LANES), s);
    VF a2 = vf_mul (vf_load (out + i + 2 * VF_LANES), s), a3 = vf_mul (vf_load (out + i + 3 * VF_LANES), s);
    for (size_t j = 0; j < n; j++) {
      const float *row = v + j * dim + i;
      VF weight = vf_set1 (p[j]);
      a0 = vf_fma (weight, vf_load (row), a0);
      a1 = vf_fma (weight, vf_load (row + VF_LANES), a1);
      a2 = vf_fma (weight, vf_load (row + 2 * VF_LANES), a2);
      a3 = vf_fma (weight, vf_load (row + 3 * VF_LANES), a3);
    }
    vf_store (out + i, a0);
    vf_store (out + i + VF_LANES, a1);
    vf_store (out + i + 2 * VF_LANES, a2);
    vf_store (out + i + 3 * VF_LANES, a3);
  }
  for (; i < dim; i += VF_LANES) {
    size_t lanes = dim - i < VF_LANES ? dim - i : VF_LANES;
    bool whole = lanes == VF_LANES;
    VF a = vf_mul (whole ? vf_load (out + i) : vf_load_n (out + i, lanes), s);
    for (size_t j = 0; j < n; j++) {
      const float *row = v + j * dim + i;
      a = vf_fma (vf_set1 (p[j]), whole ? vf_load (row) : vf_load_n (row, lanes), a);
    }
    if (whole)
      vf_store (out + i, a);
    else
      vf_store_n (out + i, a, lanes);
  }
}

static void
attention (const OxAttention *a, size_t query, size_t kv_head, float *scratch)
{
  size_t group = a->n_heads / a->n_kv_heads, dim = a->head_dim;
  size_t end = a->position + query + 1, begin = a->window != 0 && end > a->window ? end - a->window : 0;
  const float *k = a->k + kv_head * a->capacity * dim, *v = a->v + kv_head * a->capacity * dim;
  const float *q = a->q + (query * a->n_heads + kv_head * group) * dim;
  float *out = a->out + (query * a->n_heads + kv_head * group) * dim;
  float *largest = scratch + group * KEYS, *total = largest + group;
  size_t n;

  for (size_t i = 0; i < group * dim; i++)
    out[i] = 0;
  for (size_t h = 0; h < group; h++) {
    largest[h] = -INFINITY;
    total[h] = 0;
  }
  /* All heads of the group use a block of keys while it is in the cache. A block ends where the ring does. */
  for (size_t first = begin; first < end; first += n) {
    size_t row = first % a->capacity;

    n = end - first < KEYS ? end - first : KEYS;
    n = a->capacity - row < n ? a->capacity - row : n;
    for (size_t h = 0; h < group; h++) {
      float *scores = scratch + h * KEYS, top = largest[h], shrink;

      score_keys (scores, q + h * dim, k + row * dim, n, dim, a->scale);
      for (size_t j = 0; j < n; j++)
        top = scores[j] > top ? scores[j] : top;
      shrink = expf (largest[h] - top);
      largest[h] = top;
      total[h] = total[h] * shrink + exponentiate (scores, n, top);
      add_values (out + h * dim, shrink, scores, v + row * dim, n, dim);
    }
  }
  for (size_t h = 0; h < group; h++)
    scale (out + h * dim, 1 / total[h], dim);
}
