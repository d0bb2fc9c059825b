/* Rounding of float weights to Q8_0 and Q4_0.
 *
 * Written once in vectors of sixteen floats, which the compiler turns into whatever the instruction set has; no sum depends on how wide
 * that is, so every processor gets the same blocks.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-quantize-weights.h"

#include <math.h>

#include "ox-blocks.h"

#define BLOCK 32
#define LANES 16
#define PARTS (BLOCK / LANES)

typedef float Floats __attribute__ ((vector_size (LANES * sizeof (float))));
typedef int32_t Ints __attribute__ ((vector_size (LANES * sizeof (int32_t))));
typedef uint8_t Bytes __attribute__ ((vector_size (LANES)));

#define INLINE static inline __attribute__ ((always_inline))

/* What the weight of largest magnitude may become in units of the scale. First those on the grid: -8, and on the short side, where
 * signs make no difference, 7 to 4, of which 3, 2 and 1 are parts; so a block that was rounded to such a grid before, whatever part of
 * it was in use, comes out as it is. Then some between: values beyond the grid are cut off at its ends, which loses on one weight and may
 * gain on all others. */
static const float q4_targets[] = { -8,   7,     6,     5,    4,    -8.4f, -7.6f, 7.4f,
                                    6.6f, -8.8f, -7.2f, 7.8f, 8.2f, -9.3f, -6.8f, 6.3f };
#define N_TARGETS (sizeof q4_targets / sizeof *q4_targets)

/* To the nearest integer, ties to even, by letting the adder round: |x| < 2^22. */
INLINE void
round_all (Floats *x)
{
  const float magic = 0x1.8p23f;

  *x = (*x + magic) - magic;
}

/* In the form that compilers know as one instruction. */
INLINE void
limit (Floats *x, float least, float most)
{
  float v[LANES];

  memcpy (v, x, sizeof v);
  for (unsigned i = 0; i < LANES; i++)
    v[i] = v[i] < most ? v[i] : most;
  for (unsigned i = 0; i < LANES; i++)
    v[i] = v[i] > least ? v[i] : least;
  memcpy (x, v, sizeof v);
}

/* The weight of largest magnitude, the first of them; NaN counts as the largest of all. */
INLINE float
find_greatest (const float *x)
{
  uint32_t greatest = 0;
  float value = 0;

  for (unsigned i = 0; i < BLOCK; i++) {
    uint32_t bits = ox_f32_to_bits (x[i]) & 0x7fffffffu;

    greatest = bits > greatest ? bits : greatest;
  }
  for (unsigned i = BLOCK; i-- > 0;)
    value = (ox_f32_to_bits (x[i]) & 0x7fffffffu) == greatest ? x[i] : value;
  return value;
}

INLINE void
put_u16 (OxU16 *out, uint16_t value)
{
  out->b[0] = (uint8_t) value;
  out->b[1] = (uint8_t) (value >> 8);
}

/* ---- Q8_0 ------------------------------------------------------------------------------------------------------------ */

INLINE void
quantize_q8_block (const float *x, OxBlockQ8_0 *out)
{
  float greatest = fabsf (find_greatest (x));
  uint16_t d = ox_f32_to_f16 (greatest < INFINITY ? greatest / 127 : NAN);
  float scale = ox_f16_to_f32 (d);
  /* By the scale as it is stored, so that its own rounding is made up for. A scale of 0 (all weights below 2^-25 · 127) or NaN leaves
   * no more to say. */
  float inverse = scale > 0 && scale < INFINITY ? 1 / scale : 0;

  put_u16 (&out->d, d);
  for (unsigned p = 0; p < PARTS; p++) {
    Floats v;
    Bytes q;

    memcpy (&v, x + p * LANES, sizeof v);
    v *= inverse;
    limit (&v, -127, 127);
    round_all (&v);
    q = __builtin_convertvector (__builtin_convertvector (v, Ints), Bytes);
    memcpy (out->qs + p * LANES, &q, sizeof q);
  }
}

/* ---- Q4_0 ------------------------------------------------------------------------------------------------------------ */

/* @x to 11 bits, what the scale will have as a half float. (Dekker 1971) */
INLINE void
half_precision (Floats *x)
{
  Floats t = *x * 8193;

  *x = t - (t - *x);
}

/* How much an error of each weight counts: the root mean square of the block and the weight's own magnitude. Large weights were found
 * to matter more than their number: with this, the divergence of models of 135 and 270 million parameters rounded to 4 bits is a tenth
 * less than with plain squares (docs/quality.md). */
INLINE void
error_weights (const float *x, float *weights)
{
  float squares = 0, root;

  for (unsigned i = 0; i < BLOCK; i++)
    squares += x[i] * x[i];
  root = sqrtf (squares / BLOCK);
  for (unsigned i = 0; i < BLOCK; i++)
    weights[i] = root + fabsf (x[i]);
}

/* The scale of least squared error, weighted by w. With the steps q of a trial given, Σ w(x - d·q)² is least for d = Σwxq / Σwq²; what is
 * left then is Σwx² - (Σwxq)² / Σwq², and rounding d by e adds e² Σwq². All trials at once, a lane each. @x: scaled so that its
 * magnitudes are below 2 and no sum leaves the range of a float; @unit: 1 / the greatest of them, with its sign. */
INLINE float
best_q4_scale (const float *x, float unit)
{
  float all = 0, least = INFINITY, scale = 0;
  float w[BLOCK];

  error_weights (x, w);
  for (unsigned i = 0; i < BLOCK; i++)
    all += w[i] * x[i] * x[i];
  for (unsigned first = 0; first < N_TARGETS; first += LANES) {
    Floats inverse, xq = { 0 }, qq = { 0 }, ratio, left, rounding;

    memcpy (&inverse, q4_targets + first, sizeof inverse);
    inverse *= unit;
    for (unsigned i = 0; i < BLOCK; i++) {
      Floats q = x[i] * inverse, wq;

      limit (&q, -8, 7);
      round_all (&q);
      wq = w[i] * q;
      xq += x[i] * wq;
      qq += q * wq;
    }
    ratio = xq / qq;
    rounding = ratio;
    half_precision (&rounding);
    rounding -= ratio;
    left = all - xq * ratio;
    /* That little is what these sums themselves have rounded: the weights are on this grid. Of several such grids the one is wanted
     * whose scale is a half float. */
    left = (Floats) ((Ints) left & (left > all * 0x1p-17f));
    left += rounding * rounding * qq;
    for (unsigned t = 0; t < LANES; t++) {
      int better = left[t] < least;

      least = better ? left[t] : least;
      scale = better ? ratio[t] : scale;
    }
  }
  return scale;
}

/* @greatest: of @src, finite and not 0 */
INLINE float
q4_scale (const float *src, float greatest)
{
  /* Divided by a power of two, so that nothing is lost; a subnormal exponent counts as the least normal one. */
  uint32_t exponent = ox_f32_to_bits (greatest) >> 23 & 0xff;
  float unit = ox_bits_to_f32 ((254 - (exponent < 1 ? 1 : exponent > 253 ? 253 : exponent)) << 23);
  float x[BLOCK];

  for (unsigned i = 0; i < BLOCK; i++)
    x[i] = src[i] * unit;
  return best_q4_scale (x, 1 / (greatest * unit)) / unit;
}

INLINE void
quantize_q4_block (const float *src, OxBlockQ4_0 *out)
{
  float greatest = find_greatest (src), magnitude = fabsf (greatest);
  Bytes steps[PARTS];
  uint16_t d;
  float scale, inverse;

  if (!(magnitude < INFINITY)) {
    put_u16 (&out->d, ox_f32_to_f16 (NAN));
    memset (out->qs, 0x88, sizeof out->qs);
    return;
  }
  scale = magnitude > 0 ? q4_scale (src, greatest) : 0;
  d = ox_f32_to_f16 (scale);
  scale = ox_f16_to_f32 (d);
  inverse = scale != 0 && fabsf (scale) < INFINITY ? 1 / scale : 0;
  put_u16 (&out->d, d);
  for (unsigned p = 0; p < PARTS; p++) {
    Floats v;

    memcpy (&v, src + p * LANES, sizeof v);
    v *= inverse;
    limit (&v, -8, 7);
    round_all (&v);
    steps[p] = __builtin_convertvector (__builtin_convertvector (v, Ints), Bytes) + 8;
  }
  /* One part is the low halves, the other the high ones. */
  steps[0] |= steps[1] << 4;
  memcpy (out->qs, &steps[0], sizeof out->qs);
}

static_assert (PARTS == 2, "halves of a Q4_0 block");

/* ---- Rows ------------------------------------------------------------------------------------------------------------ */

INLINE void
quantize (uint32_t type, const float *src, void *dst, size_t n)
{
  if (type == OX_TYPE_Q8_0)
    for (size_t b = 0; b < n / BLOCK; b++)
      quantize_q8_block (src + b * BLOCK, (OxBlockQ8_0 *) dst + b);
  else if (type == OX_TYPE_Q4_0)
    for (size_t b = 0; b < n / BLOCK; b++)
      quantize_q4_block (src + b * BLOCK, (OxBlockQ4_0 *) dst + b);
}

static void
quantize_baseline (uint32_t type, const float *src, void *dst, size_t n)
{
  quantize (type, src, dst, n);
}

#if defined(__x86_64__)

__attribute__ ((target ("avx2,fma,f16c"))) static void
quantize_avx2 (uint32_t type, const float *src, void *dst, size_t n)
{
  quantize (type, src, dst, n);
}

__attribute__ ((target ("avx512f,avx512bw,avx512dq,avx512vl,fma,f16c"))) static void
quantize_avx512 (uint32_t type, const float *src, void *dst, size_t n)
{
  quantize (type, src, dst, n);
}

#endif

void
ox_quantize_weights (uint32_t flags, uint32_t type, const float *src, void *dst, size_t n)
{
#if defined(__x86_64__)
  if (flags & OX_CPU_AVX512) {
    quantize_avx512 (type, src, dst, n);
    return;
  }
  if (flags & OX_CPU_AVX2) {
    quantize_avx2 (type, src, dst, n);
    return;
  }
#endif
  quantize_baseline (type, src, dst, n);
}
