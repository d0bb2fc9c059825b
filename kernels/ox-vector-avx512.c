/* Norms, rope, gates, attention and quantisation of activations for AVX-512 (F, BW, DQ, VL).
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)

#include "ox-simd-avx512.h"

#include "ox-vector-template.h"

#include "ox-recurrent-template.h"

static void
quantize_q8 (const float *x, void *dst, size_t n)
{
  OxBlockQ8 *block = dst;
  const VF limit = vf_set1 (127);

  for (size_t i = 0; i < n; i += 32, block++) {
    VF a = vf_load (x + i), b = vf_load (x + i + 16), factor;
    /* As integers: see ox_q8_larger(). */
    __m512i most = _mm512_max_epi32 (_mm512_castps_si512 (vf_abs (a)), _mm512_castps_si512 (vf_abs (b))), qa, qb;
    int32_t bits = _mm512_reduce_max_epi32 (most);
    float largest, inverse;

    memcpy (&largest, &bits, sizeof largest);
    block->scale = ox_q8_scale (largest, &inverse);
    factor = vf_set1 (inverse);
    qa = _mm512_cvtps_epi32 (vf_max (vf_min (vf_mul (a, factor), limit), vf_sub (vf_set1 (0), limit)));
    qb = _mm512_cvtps_epi32 (vf_max (vf_min (vf_mul (b, factor), limit), vf_sub (vf_set1 (0), limit)));
    _mm_storeu_si128 ((__m128i *) (void *) block->q, _mm512_cvtepi32_epi8 (qa));
    _mm_storeu_si128 ((__m128i *) (void *) (block->q + 16), _mm512_cvtepi32_epi8 (qb));
    block->sum[0] = (int16_t) _mm512_reduce_add_epi32 (qa);
    block->sum[1] = (int16_t) _mm512_reduce_add_epi32 (qb);
  }
}

void
ox_vector_init_avx512 (OxKernels *table)
{
  table->dequantize = dequantize;
  table->quantize_q8 = quantize_q8;
  table->attention = &ox_attention_avx512;
  table->rms_norm = rms_norm;
  table->rope = rope;
  table->silu_mul = silu_mul;
  table->gelu_tanh_mul = gelu_tanh_mul;
  table->sigmoid_mul = sigmoid_mul;
  table->softcap = softcap;
  table->softmax = softmax;
  table->add = add;
  table->add_scaled = add_scaled;
  table->scale = scale;
  table->dot = dot;
  table->argmax = argmax;
  table->conv_silu = conv_silu;
  table->delta_rule = delta_rule;
}

#else

void
ox_vector_init_avx512 (OxKernels *table)
{
}

#endif
