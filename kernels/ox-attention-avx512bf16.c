/* Attention for AVX-512 with BF16, where vdpbf16ps does twice the work of a float32 FMA: with BF16 keys and values and where queries and
 * weights may be rounded; otherwise that of AVX-512.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__) &&                 \
  defined(__AVX512BF16__)

#include "ox-simd-avx512.h"

#define HAS_DOT

/* In each lane the sum of the products of two pairs, and @sum. */
static inline VF
vf_dot (VF a, VF b, VF sum)
{
  return _mm512_dpbf16_ps (sum, (__m512bh) a, (__m512bh) b);
}

/* To nearest, ties to even; what was stored, as floats. */
static inline VF
vf_store_bf16 (uint16_t *p, VF v)
{
  __m256i rounded = (__m256i) _mm512_cvtneps_pbh (v);

  _mm256_storeu_si256 ((__m256i *) (void *) p, rounded);
  return _mm512_castsi512_ps (_mm512_slli_epi32 (_mm512_cvtepu16_epi32 (rounded), 16));
}

/* Of 32 registers 24 are sums. */
#define TILES(X) X (12, 2) X (8, 2) X (6, 4) X (4, 4) X (3, 4) X (2, 4) X (1, 4)

#include "ox-attention-template.h"

static void
add_blocks_or_float (
  const OxAttention *a, const OxAttentionRows *rows, size_t block_begin, size_t block_end, float *state, float *scratch)
{
  if (a->fast && a->kv->type == OX_TYPE_BF16)
    add_blocks (a, rows, block_begin, block_end, state, scratch);
  else
    ox_attention_avx512.add_blocks (a, rows, block_begin, block_end, state, scratch);
}

static const OxAttentionKernel ox_attention_avx512bf16 = { store_row, add_blocks_or_float, merge, finish,
                                                           OX_TYPE_BF16 };

void
ox_attention_init_avx512bf16 (OxKernels *table)
{
  table->attention = &ox_attention_avx512bf16;
}

#else

void
ox_attention_init_avx512bf16 (OxKernels *table)
{
}

#endif
