/* Attention for Arm's BF16 extension, whose BFDOT does twice the work of a float32 FMA: with BF16 keys and values and where queries and
 * weights may be rounded; otherwise that of Advanced SIMD.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

#if defined(__aarch64__) && defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)

#include "ox-simd-neon.h"

#define HAS_DOT

/* In each lane the sum of the products of two pairs, and @sum; for how it is rounded see ox-linear-neon-bf16.c. */
static inline VF
vf_dot (VF a, VF b, VF sum)
{
  return vbfdotq_f32 (sum, vreinterpretq_bf16_f32 (a), vreinterpretq_bf16_f32 (b));
}

/* To nearest, ties to even; what was stored, as floats. */
static inline VF
vf_store_bf16 (uint16_t *p, VF v)
{
  uint16x4_t rounded = vreinterpret_u16_bf16 (vcvt_bf16_f32 (v));

  vst1_u16 (p, rounded);
  return vreinterpretq_f32_u32 (vshll_n_u16 (rounded, 16));
}

/* As for Advanced SIMD. */
#define TILES(X) X (6, 1) X (4, 1) X (2, 2) X (1, 4)

#include "ox-attention-template.h"

static void
add_blocks_or_float (
  const OxAttention *a, const OxAttentionRows *rows, size_t block_begin, size_t block_end, float *state, float *scratch)
{
  if (a->fast && a->kv->type == OX_TYPE_BF16)
    add_blocks (a, rows, block_begin, block_end, state, scratch);
  else
    ox_attention_neon.add_blocks (a, rows, block_begin, block_end, state, scratch);
}

static const OxAttentionKernel ox_attention_neon_bf16 = { store_row, add_blocks_or_float, merge, finish, OX_TYPE_BF16 };

void
ox_attention_init_neon_bf16 (OxKernels *table)
{
  table->attention = &ox_attention_neon_bf16;
}

#else

void
ox_attention_init_neon_bf16 (OxKernels *table)
{
}

#endif
