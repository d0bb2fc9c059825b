/* Norms, rope, gates, attention and quantisation of activations for Arm's Advanced SIMD.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

#if defined(__aarch64__) && defined(__ARM_NEON)

#include "ox-simd-neon.h"

#include "ox-exp-double.h"
#include "ox-vector-template.h"

#include "ox-recurrent-template.h"
#include "ox-vector-table.h"

/* Rounded in eight vectors of four and narrowed. The scale keeps quants within ±127. */
static void
quantize_q8 (const float *x, void *dst, size_t n)
{
  OxBlockQ8 *block = dst;

  for (size_t i = 0; i < n; i += 32, block++) {
    uint32x4_t most = vdupq_n_u32 (0);
    uint32_t bits;
    VF v[8];
    float largest, inverse;

    /* As integers: see ox_q8_larger(). */
    for (unsigned j = 0; j < 8; j++) {
      v[j] = vf_load (x + i + j * 4);
      most = vmaxq_u32 (most, vreinterpretq_u32_f32 (vf_abs (v[j])));
    }
    bits = vmaxvq_u32 (most);
    memcpy (&largest, &bits, sizeof largest);
    block->scale = ox_q8_scale (largest, &inverse);
    for (unsigned half = 0; half < 2; half++) {
      int16x8_t words[2];
      int8x16_t q;

      for (unsigned j = 0; j < 2; j++) {
        const VF *from = v + half * 4 + j * 2;
        int32x4_t low = vcvtnq_s32_f32 (vf_mul (from[0], vf_set1 (inverse)));
        int32x4_t high = vcvtnq_s32_f32 (vf_mul (from[1], vf_set1 (inverse)));
        words[j] = vcombine_s16 (vqmovn_s32 (low), vqmovn_s32 (high));
      }
      q = vcombine_s8 (vqmovn_s16 (words[0]), vqmovn_s16 (words[1]));
      vst1q_s8 (block->q + half * 16, q);
      block->sum[half] = vaddlvq_s8 (q);
    }
  }
}

/* The upper halves are the four numbers; see ox_f32_to_bf16(). */
static inline uint16x8_t
to_bf16 (VF v)
{
  uint32x4_t bits = vreinterpretq_u32_f32 (v), odd = vandq_u32 (vshrq_n_u32 (bits, 16), vdupq_n_u32 (1));
  uint32x4_t rounded = vaddq_u32 (vaddq_u32 (bits, vdupq_n_u32 (0x7fff)), odd);
  uint32x4_t quiet = vorrq_u32 (bits, vdupq_n_u32 (0x400000));

  return vreinterpretq_u16_u32 (vbslq_u32 (vceqq_f32 (v, v), rounded, quiet));
}

/* Halves are taken by UZP2: a sum that is narrowed by a shift becomes RADDHN with gcc 14, which adds one more. */
static void
round_bf16 (const float *x, void *dst, size_t n)
{
  size_t all = ox_activation_row_bytes (OX_ACTIVATION_BF16, n) / sizeof (uint16_t);
  uint16_t *out = dst;

  for (size_t i = 0; i < all; i += 2 * VF_LANES) {
    uint16x8_t v[2];

    for (size_t j = 0; j < 2; j++) {
      size_t first = i + j * VF_LANES;
      v[j] = to_bf16 (first + VF_LANES <= n ? vf_load (x + first)
                      : first < n           ? vf_load_n (x + first, n - first)
                                            : vf_set1 (0));
    }
    vst1q_u16 (out + i, vuzp2q_u16 (v[0], v[1]));
  }
}

void
ox_vector_init_neon (OxKernels *table)
{
  table->dequantize = dequantize;
  table->quantize_q8 = quantize_q8;
  table->round_bf16 = round_bf16;
  table->attention = &ox_attention_neon;
  init_from_templates (table);
}

#else

void
ox_vector_init_neon (OxKernels *table)
{
}

#endif
