/* Linear layers on BF16 weights and activations for AVX-512 with BF16: vdpbf16ps multiplies two columns at once. It rounds after each of the
 * two products and takes subnormal numbers for zero.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__) &&                 \
  defined(__AVX512BF16__)

#define OX_NAME(NAME) NAME##_avx512bf16
#define OX_LEVEL "avx512bf16"
#include "ox-simd-avx512.h"
#include "ox-tile.h"

ALWAYS_INLINE VF
vf_dot_bf16 (VF sum, VF weights, uint32_t pair)
{
  return _mm512_dpbf16_ps (sum, (__m512bh) weights, (__m512bh) _mm512_set1_epi32 ((int32_t) pair));
}

#define FLOAT_DOT_BF16
#include "ox-float-panel-template.h"

const OxLinearSet ox_linear_avx512_bf16 = { .floating = float_kernels };

#else

const OxLinearSet ox_linear_avx512_bf16 = { NULL, NULL, NULL };

#endif
