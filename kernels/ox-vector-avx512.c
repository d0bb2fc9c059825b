/* Norms, rope, gates, attention and quantisation of activations for AVX-512 (F, BW, DQ, VL).
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)

#include "ox-simd-avx512.h"

#include "ox-exp-double.h"
#include "ox-vector-template.h"

#include "ox-recurrent-template.h"
#include "ox-vector-table.h"

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

/* 16 floats to BF16; see ox_f32_to_bf16(). */
static inline __m256i
to_bf16 (VF v)
{
  __m512i bits = _mm512_castps_si512 (v), half = _mm512_srli_epi32 (bits, 16);
  __m512i odd = _mm512_and_si512 (half, _mm512_set1_epi32 (1));
  __m512i rounded = _mm512_add_epi32 (_mm512_add_epi32 (bits, _mm512_set1_epi32 (0x7fff)), odd);

  rounded = _mm512_srli_epi32 (rounded, 16);
  rounded = _mm512_mask_or_epi32 (rounded, _mm512_cmp_ps_mask (v, v, _CMP_UNORD_Q), half, _mm512_set1_epi32 (0x40));
  return _mm512_cvtepi32_epi16 (rounded);
}

static void
round_bf16 (const float *x, void *dst, size_t n)
{
  size_t all = ox_activation_row_bytes (OX_ACTIVATION_BF16, n) / sizeof (uint16_t), i = 0;
  uint16_t *out = dst;

  for (; i + VF_LANES <= n; i += VF_LANES)
    _mm256_storeu_si256 ((__m256i *) (void *) (out + i), to_bf16 (vf_load (x + i)));
  for (; i < all; i += VF_LANES)
    _mm256_storeu_si256 ((__m256i *) (void *) (out + i), to_bf16 (i < n ? vf_load_n (x + i, n - i) : vf_set1 (0)));
}

void
ox_vector_init_avx512 (OxKernels *table)
{
  table->dequantize = dequantize;
  table->quantize_q8 = quantize_q8;
  table->round_bf16 = round_bf16;
  table->attention = &ox_attention_avx512;
  init_from_templates (table);
}

#else

void
ox_vector_init_avx512 (OxKernels *table)
{
}

#endif
