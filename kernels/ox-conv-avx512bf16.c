/* Convolutions on pairs of bf16 for AVX-512 with BF16.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__) && defined(__AVX512BF16__)

#include "ox-simd-avx512.h"

/* Of 32 registers 24 are sums. */
#define CONV_TILE_VECTORS 4
#define CONV_TILE_PIXELS 6
#define CONV_PAIRS

static inline VF
vf_dot_bf16 (VF a, VF b, VF sum)
{
  __asm__ ("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
  return sum;
}

static inline void
vf_store_bf16_n (uint16_t *p, VF v, size_t n)
{
  _mm256_mask_storeu_epi16 (p, (__mmask16) ((1u << n) - 1), (__m256i) _mm512_cvtneps_pbh (v));
}

#include "ox-conv-template.h"

CONV_FUNCTIONS (PAIRS)

static const OxConvKernel kernel = CONV_ENTRY (PAIRS, "conv-bf16-avx512bf16");

void
ox_image_init_avx512bf16 (OxKernels *table)
{
  table->conv_pairs = &kernel;
}

#else

void
ox_image_init_avx512bf16 (OxKernels *table)
{
}

#endif
