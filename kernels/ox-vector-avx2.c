/* Norms, rope, gates, attention and quantisation of activations for AVX2, FMA and F16C.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)

#include "ox-simd-avx2.h"

#include "ox-exp-double.h"
#include "ox-vector-template.h"

#include "ox-recurrent-template.h"
#include "ox-vector-table.h"

/* The float whose bits are the greatest integer of the vector; see ox_q8_larger(). */
static inline float
greatest_bits (__m256i v)
{
  __m128i best = _mm_max_epi32 (_mm256_castsi256_si128 (v), _mm256_extracti128_si256 (v, 1));

  best = _mm_max_epi32 (best, _mm_shuffle_epi32 (best, _MM_SHUFFLE (1, 0, 3, 2)));
  best = _mm_max_epi32 (best, _mm_shuffle_epi32 (best, _MM_SHUFFLE (2, 3, 0, 1)));
  return _mm_cvtss_f32 (_mm_castsi128_ps (best));
}

/* The 32 quants are rounded in four vectors of eight and narrowed; packs work within 128-bit halves, hence the permutation. */
static void
quantize_q8 (const float *x, void *dst, size_t n)
{
  OxBlockQ8 *block = dst;
  const __m256i order = _mm256_setr_epi32 (0, 4, 1, 5, 2, 6, 3, 7), ones = _mm256_set1_epi16 (1);
  const VF limit = vf_set1 (127);

  for (size_t i = 0; i < n; i += 32, block++) {
    VF v[4];
    __m256i q[4], low, high, sums, most = _mm256_setzero_si256 ();
    __m128i halves;
    float inverse;

    for (unsigned j = 0; j < 4; j++) {
      v[j] = vf_load (x + i + j * 8);
      most = _mm256_max_epi32 (_mm256_castps_si256 (vf_abs (v[j])), most);
    }
    block->scale = ox_q8_scale (greatest_bits (most), &inverse);
    for (unsigned j = 0; j < 4; j++) {
      VF scaled = vf_mul (v[j], vf_set1 (inverse));
      q[j] = _mm256_cvtps_epi32 (vf_max (vf_min (scaled, limit), vf_sub (vf_set1 (0), limit)));
    }
    low = _mm256_packs_epi32 (q[0], q[1]);
    high = _mm256_packs_epi32 (q[2], q[3]);
    _mm256_storeu_si256 ((__m256i *) (void *) block->q,
                         _mm256_permutevar8x32_epi32 (_mm256_packs_epi16 (low, high), order));
    /* Eight 32-bit sums; the two of `low` belong to elements 0 … 15. */
    sums = _mm256_hadd_epi32 (_mm256_madd_epi16 (low, ones), _mm256_madd_epi16 (high, ones));
    halves = _mm_add_epi32 (_mm256_castsi256_si128 (sums), _mm256_extracti128_si256 (sums, 1));
    halves = _mm_hadd_epi32 (halves, halves);
    block->sum[0] = (int16_t) _mm_extract_epi32 (halves, 0);
    block->sum[1] = (int16_t) _mm_extract_epi32 (halves, 1);
  }
}

/* 8 floats to BF16 in words; see ox_f32_to_bf16(). */
static inline __m256i
to_bf16 (VF v)
{
  __m256i bits = _mm256_castps_si256 (v), half = _mm256_srli_epi32 (bits, 16);
  __m256i odd = _mm256_and_si256 (half, _mm256_set1_epi32 (1));
  __m256i rounded = _mm256_srli_epi32 (_mm256_add_epi32 (_mm256_add_epi32 (bits, _mm256_set1_epi32 (0x7fff)), odd), 16);
  __m256i nan = _mm256_castps_si256 (_mm256_cmp_ps (v, v, _CMP_UNORD_Q));

  return _mm256_blendv_epi8 (rounded, _mm256_or_si256 (half, _mm256_set1_epi32 (0x40)), nan);
}

static void
round_bf16 (const float *x, void *dst, size_t n)
{
  size_t all = ox_activation_row_bytes (OX_ACTIVATION_BF16, n) / sizeof (uint16_t);
  uint16_t *out = dst;

  for (size_t i = 0; i < all; i += 16) {
    __m256i v[2];

    for (size_t j = 0; j < 2; j++) {
      size_t first = i + j * VF_LANES;
      v[j] = to_bf16 (first + VF_LANES <= n ? vf_load (x + first)
                      : first < n           ? vf_load_n (x + first, n - first)
                                            : vf_set1 (0));
    }
    /* Packs work within 128-bit halves. */
    _mm256_storeu_si256 ((__m256i *) (void *) (out + i),
                         _mm256_permute4x64_epi64 (_mm256_packus_epi32 (v[0], v[1]), _MM_SHUFFLE (3, 1, 2, 0)));
  }
}

void
ox_vector_init_avx2 (OxKernels *table)
{
  table->dequantize = dequantize;
  table->quantize_q8 = quantize_q8;
  table->round_bf16 = round_bf16;
  table->attention = &ox_attention_avx2;
  init_from_templates (table);
}

#else

void
ox_vector_init_avx2 (OxKernels *table)
{
}

#endif
