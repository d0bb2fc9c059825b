/* Linear layers on BF16 weights and activations for Arm's BF16 extension: BFDOT multiplies two columns at once.
 *
 * It takes subnormal numbers for zero. The two products are exact; their sum and then the sum with what was there are rounded to odd (Arm
 * ARM, BFDotAdd with FPCR.EBF = 0), each off by less than 2^-23 of itself. A product goes through half as many of these roundings as
 * there are columns, and one more: as much as through twice as many roundings to nearest.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

#if defined(__aarch64__) && defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)

#define OX_NAME(NAME) NAME##_neon_bf16
#define OX_LEVEL "neonbf16"
#include "ox-simd-neon.h"
#include "ox-tile.h"

ALWAYS_INLINE VF
vf_dot_bf16 (VF sum, VF weights, uint32_t pair)
{
  return vbfdotq_f32 (sum, vreinterpretq_bf16_f32 (weights), vreinterpretq_bf16_u32 (vdupq_n_u32 (pair)));
}

#define FLOAT_DOT_BF16
#include "ox-float-panel-template.h"

const OxLinearSet ox_linear_neon_bf16 = { .floating = float_kernels };

#else

const OxLinearSet ox_linear_neon_bf16 = { NULL, NULL, NULL };

#endif
