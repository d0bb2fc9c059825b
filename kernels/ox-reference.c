/* The C reference of everything that is not a linear layer. Sums are kept in float64, so that faster versions are compared
 * with something better than themselves.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

#include <math.h>

#include "ox-attention-convert.h"
#include "ox-decode.h"
#include "ox-quantize.h"

static void
dequantize_c (uint32_t type, const void *src, float *dst, size_t n)
{
  ox_dequantize_row (type, src, dst, n);
}

static void
quantize_q8_c (const float *x, void *dst, size_t n)
{
  OxBlockQ8 *block = dst;

  for (size_t i = 0; i < n; i += 32, block++) {
    float largest = 0, inverse;
    int sum[2] = { 0, 0 };

    for (unsigned j = 0; j < 32; j++)
      largest = ox_q8_larger (largest, x[i + j]);
    block->scale = ox_q8_scale (largest, &inverse);
    for (unsigned j = 0; j < 32; j++) {
      /* The limits only matter for infinities and NaN, which no integer can hold. */
      float q = nearbyintf (fmaxf (fminf (x[i + j] * inverse, 127), -127));
      block->q[j] = (int8_t) q;
      sum[j / 16] += block->q[j];
    }
    block->sum[0] = (int16_t) sum[0];
    block->sum[1] = (int16_t) sum[1];
  }
}

static void
round_bf16_c (const float *x, void *dst, size_t n)
{
  uint16_t *out = dst;
  size_t all = ox_activation_row_bytes (OX_ACTIVATION_BF16, n) / sizeof (uint16_t);

  for (size_t i = 0; i < all; i++)
    out[i] = i < n ? ox_f32_to_bf16 (x[i]) : 0;
}

static void
rms_norm_c (float *y, const float *x, const float *w, float weight_offset, float eps, size_t n)
{
  double sum = 0, factor;

  for (size_t i = 0; i < n; i++)
    sum += (double) x[i] * x[i];
  factor = 1 / sqrt (sum / (double) n + eps);
  for (size_t i = 0; i < n; i++)
    y[i] = (float) (x[i] * factor * (w != NULL ? (double) w[i] + weight_offset : 1.0));
}

static void
rope_c (float *x, const float *cos, const float *sin, size_t n_heads, size_t head_dim, size_t rotary_dim)
{
  size_t half = rotary_dim / 2;

  for (size_t h = 0; h < n_heads; h++, x += head_dim)
    for (size_t i = 0; i < half; i++) {
      double a = x[i], b = x[i + half];
      x[i] = (float) (a * cos[i] - b * sin[i]);
      x[i + half] = (float) (b * cos[i] + a * sin[i]);
    }
}

static void
silu_mul_c (float *y, const float *gate, const float *up, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    double g = gate[i];
    y[i] = (float) (g / (1 + exp (-g)) * up[i]);
  }
}

/* gelu(x) ≈ x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))) = x / (1 + exp(-2·√(2/π) · (x + 0.044715 x³))) (Hendrycks & Gimpel
 * 2016); the second form loses nothing where tanh is near -1. */
static void
gelu_tanh_mul_c (float *y, const float *gate, const float *up, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    double g = gate[i];
    double u = 1.5957691216057308 * (g + 0.044715 * g * g * g);
    y[i] = (float) (g / (1 + exp (-u)) * up[i]);
  }
}

static void
sigmoid_mul_c (float *y, const float *gate, const float *up, size_t n)
{
  for (size_t i = 0; i < n; i++)
    y[i] = (float) (up[i] / (1 + exp (-(double) gate[i])));
}

static void
softcap_c (float *x, float cap, size_t n)
{
  for (size_t i = 0; i < n; i++)
    x[i] = (float) (cap * tanh ((double) x[i] / cap));
}

static void
softmax_c (float *y, const float *x, size_t n)
{
  double largest = -INFINITY, sum = 0;

  for (size_t i = 0; i < n; i++)
    largest = x[i] > largest ? x[i] : largest;
  for (size_t i = 0; i < n; i++)
    sum += exp (x[i] - largest);
  for (size_t i = 0; i < n; i++)
    y[i] = (float) (exp (x[i] - largest) / sum);
}

static void
add_c (float *y, const float *x, size_t n)
{
  for (size_t i = 0; i < n; i++)
    y[i] += x[i];
}

static void
add_scaled_c (float *y, const float *x, float s, size_t n)
{
  for (size_t i = 0; i < n; i++)
    y[i] = (float) (y[i] + (double) s * x[i]);
}

static void
scale_c (float *y, float s, size_t n)
{
  for (size_t i = 0; i < n; i++)
    y[i] *= s;
}

static float
dot_c (const float *a, const float *b, size_t n)
{
  double sum = 0;

  for (size_t i = 0; i < n; i++)
    sum += (double) a[i] * b[i];
  return (float) sum;
}

static size_t
argmax_c (const float *x, size_t n)
{
  size_t best = 0;

  while (best < n && isnan (x[best]))
    best++;
  if (best == n)
    return 0;
  for (size_t i = best + 1; i < n; i++)
    if (x[i] > x[best])
      best = i;
  return best;
}

static void
exp_double_c (double *x, size_t n)
{
  for (size_t i = 0; i < n; i++)
    x[i] = exp (x[i]);
}

static bool
group_greatest_c (const float *x, size_t n, float *greatest)
{
  size_t bad = 0;

  for (size_t i = 0; i < n; i += OX_GREATEST_GROUP, greatest++) {
    *greatest = -INFINITY;
    for (size_t j = i; j < n && j < i + OX_GREATEST_GROUP; j++) {
      *greatest = x[j] > *greatest ? x[j] : *greatest;
      bad += !(x[j] < INFINITY);
    }
  }
  return bad == 0;
}

static void
conv_silu_c (float *y, const float *const *x, const float *w, size_t w_stride, size_t taps, size_t n)
{
  for (size_t c = 0; c < n; c++) {
    double sum = 0;

    for (size_t j = 0; j < taps; j++)
      sum += (double) w[j * w_stride + c] * x[j][c];
    y[c] = (float) (sum / (1 + exp (-sum)));
  }
}

static void
delta_rule_c (const OxDeltaRule *d)
{
  for (size_t t = 0; t < d->n; t++) {
    const float *q = d->q + t * d->qk_stride, *k = d->k + t * d->qk_stride, *v = d->v + t * d->v_stride;
    double beta = d->beta[t * d->gate_stride], decay = d->decay[t * d->gate_stride];

    for (size_t c = 0; c < d->value_dim; c++) {
      size_t first = c / OX_DELTA_STRIP * OX_DELTA_STRIP;
      size_t width = d->value_dim - first < OX_DELTA_STRIP ? d->value_dim - first : OX_DELTA_STRIP;
      const float *from = (t == 0 ? d->from : d->state) + d->key_dim * first + (c - first);
      float *state = d->state + d->key_dim * first + (c - first);
      double recalled = 0, change, y = 0;

      for (size_t i = 0; i < d->key_dim; i++)
        recalled += decay * from[i * width] * k[i];
      change = beta * (v[c] - recalled);
      for (size_t i = 0; i < d->key_dim; i++) {
        state[i * width] = (float) (decay * from[i * width] + k[i] * change);
        y += (double) state[i * width] * q[i];
      }
      d->y[t * d->y_stride + c] = (float) y;
    }
  }
}

void
ox_reference_init (OxKernels *table)
{
  table->dequantize = dequantize_c;
  table->quantize_q8 = quantize_q8_c;
  table->round_bf16 = round_bf16_c;
  table->rms_norm = rms_norm_c;
  table->rope = rope_c;
  table->silu_mul = silu_mul_c;
  table->gelu_tanh_mul = gelu_tanh_mul_c;
  table->sigmoid_mul = sigmoid_mul_c;
  table->softcap = softcap_c;
  table->softmax = softmax_c;
  table->add = add_c;
  table->add_scaled = add_scaled_c;
  table->scale = scale_c;
  table->dot = dot_c;
  table->argmax = argmax_c;
  table->group_greatest = group_greatest_c;
  table->exp_double = exp_double_c;
  table->conv_silu = conv_silu_c;
  table->delta_rule = delta_rule_c;
  table->attention = &ox_attention_c;
}
