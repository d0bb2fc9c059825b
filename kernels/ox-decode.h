/* Decoding of GGUF's weight blocks, once for every use: each format is an unsigned integer q for every element and, for
 * every group of 16 or 32 elements, a scale d and, in some formats, a minimum m:
 *
 *     w = d · (q - zero_point)         symmetric formats
 *     w = d · q + m                    affine formats
 *
 * Dequantisation and the packing of panels are built on these two functions a format. The header is included by several
 * files that are compiled for different instruction sets, so everything here is static.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-blocks.h"
#include "ox-kernels.h"

/* The 16 values of the non-linear 4-bit formats, as the format defines them. */
static const int8_t ox_iq4_values[16] = { -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113 };

#define OX_BLOCK_MAX 256

/* Six-bit scale and minimum number @j of Q4_K and Q5_K. */
static inline void
ox_scale_min_k (const uint8_t *scales, unsigned j, float *scale, float *min)
{
  if (j < 4) {
    *scale = scales[j] & 63;
    *min = scales[j + 4] & 63;
  } else {
    *scale = (scales[j + 4] & 15) | (scales[j - 4] >> 6) << 4;
    *min = scales[j + 4] >> 4 | (scales[j] >> 6) << 4;
  }
}

/* ---- Scales: d[groups of the block], and m[] for affine formats ------------------------------------------------- */

static inline void
ox_scales_super_k (OxU16 d16, OxU16 dmin16, const uint8_t *scales, float *d, float *m)
{
  float super = ox_f16_to_f32 (ox_u16 (d16)), super_min = ox_f16_to_f32 (ox_u16 (dmin16));

  for (unsigned g = 0; g < 8; g++) {
    float scale, min;
    ox_scale_min_k (scales, g, &scale, &min);
    d[g] = super * scale;
    m[g] = -(super_min * min);
  }
}

static inline void
ox_decode_scales (uint32_t type, const void *block, float *d, float *m)
{
  switch (type) {
  case OX_TYPE_Q4_0:
  case OX_TYPE_Q5_0:
  case OX_TYPE_Q8_0:
  case OX_TYPE_IQ4_NL:
    *d = ox_f16_to_f32 (ox_u16 (*(const OxU16 *) block));
    break;
  case OX_TYPE_Q4_1:
  case OX_TYPE_Q5_1:
    *d = ox_f16_to_f32 (ox_u16 (((const OxU16 *) block)[0]));
    *m = ox_f16_to_f32 (ox_u16 (((const OxU16 *) block)[1]));
    break;
  case OX_TYPE_Q2_K: {
    const OxBlockQ2_K *b = block;
    float super = ox_f16_to_f32 (ox_u16 (b->d)), super_min = ox_f16_to_f32 (ox_u16 (b->dmin));
    for (unsigned g = 0; g < 16; g++) {
      d[g] = super * (float) (b->scales[g] & 15);
      m[g] = -(super_min * (float) (b->scales[g] >> 4));
    }
    break;
  }
  case OX_TYPE_Q3_K: {
    const OxBlockQ3_K *b = block;
    float super = ox_f16_to_f32 (ox_u16 (b->d));
    for (unsigned g = 0; g < 16; g++) {
      int low = g < 8 ? b->scales[g] & 15 : b->scales[g - 8] >> 4;
      int high = b->scales[8 + g % 4] >> 2 * (g / 4) & 3;
      d[g] = super * (float) ((low | high << 4) - 32);
    }
    break;
  }
  case OX_TYPE_Q4_K: {
    const OxBlockQ4_K *b = block;
    ox_scales_super_k (b->d, b->dmin, b->scales, d, m);
    break;
  }
  case OX_TYPE_Q5_K: {
    const OxBlockQ5_K *b = block;
    ox_scales_super_k (b->d, b->dmin, b->scales, d, m);
    break;
  }
  case OX_TYPE_Q6_K: {
    const OxBlockQ6_K *b = block;
    float super = ox_f16_to_f32 (ox_u16 (b->d));
    for (unsigned g = 0; g < 16; g++)
      d[g] = super * (float) b->scales[g];
    break;
  }
  case OX_TYPE_IQ4_XS: {
    const OxBlockIQ4_XS *b = block;
    float super = ox_f16_to_f32 (ox_u16 (b->d));
    for (unsigned g = 0; g < 8; g++) {
      int low = b->scales_l[g / 2] >> 4 * (g % 2) & 15;
      int high = ox_u16 (b->scales_h) >> 2 * g & 3;
      d[g] = super * (float) ((low | high << 4) - 32);
    }
    break;
  }
  default:
    break;
  }
}

/* ---- Quants: q[elements of the block] --------------------------------------------------------------------------- */

static inline void
ox_quants_nibbles (const uint8_t *restrict qs, uint8_t *restrict q)
{
  for (unsigned j = 0; j < 16; j++) {
    q[j] = qs[j] & 15;
    q[j + 16] = qs[j] >> 4;
  }
}

static inline void
ox_quants_5bit (const uint8_t *restrict qh, const uint8_t *restrict qs, uint8_t *restrict q)
{
  uint32_t high = qh[0] | (uint32_t) qh[1] << 8 | (uint32_t) qh[2] << 16 | (uint32_t) qh[3] << 24;

  for (unsigned j = 0; j < 16; j++) {
    q[j] = (uint8_t) ((qs[j] & 15) | (high >> j & 1) << 4);
    q[j + 16] = (uint8_t) (qs[j] >> 4 | (high >> (j + 16) & 1) << 4);
  }
}

static inline void
ox_quants_iq4 (const uint8_t *restrict qs, uint8_t *restrict q)
{
  for (unsigned j = 0; j < 16; j++) {
    q[j] = (uint8_t) (ox_iq4_values[qs[j] & 15] + 128);
    q[j + 16] = (uint8_t) (ox_iq4_values[qs[j] >> 4] + 128);
  }
}

static inline void
ox_quants_q2_k (const OxBlockQ2_K *restrict b, uint8_t *restrict q)
{
  for (unsigned half = 0; half < 2; half++)
    for (unsigned j = 0; j < 4; j++)
      for (unsigned l = 0; l < 32; l++)
        q[half * 128 + j * 32 + l] = b->qs[half * 32 + l] >> 2 * j & 3;
}

static inline void
ox_quants_q3_k (const OxBlockQ3_K *restrict b, uint8_t *restrict q)
{
  for (unsigned half = 0; half < 2; half++)
    for (unsigned j = 0; j < 4; j++)
      for (unsigned l = 0; l < 32; l++)
        q[half * 128 + j * 32 + l] =
          (uint8_t) ((b->qs[half * 32 + l] >> 2 * j & 3) | (b->hmask[l] >> (half * 4 + j) & 1) << 2);
}

static inline void
ox_quants_q4_k (const OxBlockQ4_K *restrict b, uint8_t *restrict q)
{
  for (unsigned c = 0; c < 4; c++)
    for (unsigned l = 0; l < 32; l++) {
      q[c * 64 + l] = b->qs[c * 32 + l] & 15;
      q[c * 64 + 32 + l] = b->qs[c * 32 + l] >> 4;
    }
}

static inline void
ox_quants_q5_k (const OxBlockQ5_K *restrict b, uint8_t *restrict q)
{
  for (unsigned c = 0; c < 4; c++)
    for (unsigned l = 0; l < 32; l++) {
      q[c * 64 + l] = (uint8_t) ((b->qs[c * 32 + l] & 15) | (b->qh[l] >> 2 * c & 1) << 4);
      q[c * 64 + 32 + l] = (uint8_t) (b->qs[c * 32 + l] >> 4 | (b->qh[l] >> (2 * c + 1) & 1) << 4);
    }
}

static inline void
ox_quants_q6_k (const OxBlockQ6_K *restrict b, uint8_t *restrict q)
{
  for (unsigned half = 0; half < 2; half++) {
    const uint8_t *ql = b->ql + half * 64, *qh = b->qh + half * 32;
    uint8_t *out = q + half * 128;
    for (unsigned l = 0; l < 32; l++) {
      out[l] = (uint8_t) ((ql[l] & 15) | (qh[l] & 3) << 4);
      out[l + 32] = (uint8_t) ((ql[l + 32] & 15) | (qh[l] >> 2 & 3) << 4);
      out[l + 64] = (uint8_t) (ql[l] >> 4 | (qh[l] >> 4 & 3) << 4);
      out[l + 96] = (uint8_t) (ql[l + 32] >> 4 | (qh[l] >> 6) << 4);
    }
  }
}

static inline void
ox_decode_quants (uint32_t type, const void *block, uint8_t *restrict q)
{
  switch (type) {
  case OX_TYPE_Q4_0:
    ox_quants_nibbles (((const OxBlockQ4_0 *) block)->qs, q);
    break;
  case OX_TYPE_Q4_1:
    ox_quants_nibbles (((const OxBlockQ4_1 *) block)->qs, q);
    break;
  case OX_TYPE_Q5_0:
    ox_quants_5bit (((const OxBlockQ5_0 *) block)->qh, ((const OxBlockQ5_0 *) block)->qs, q);
    break;
  case OX_TYPE_Q5_1:
    ox_quants_5bit (((const OxBlockQ5_1 *) block)->qh, ((const OxBlockQ5_1 *) block)->qs, q);
    break;
  case OX_TYPE_Q8_0: {
    const uint8_t *qs = (const uint8_t *) ((const OxBlockQ8_0 *) block)->qs;
    for (unsigned j = 0; j < 32; j++)
      q[j] = qs[j] ^ 0x80;
    break;
  }
  case OX_TYPE_Q2_K:
    ox_quants_q2_k (block, q);
    break;
  case OX_TYPE_Q3_K:
    ox_quants_q3_k (block, q);
    break;
  case OX_TYPE_Q4_K:
    ox_quants_q4_k (block, q);
    break;
  case OX_TYPE_Q5_K:
    ox_quants_q5_k (block, q);
    break;
  case OX_TYPE_Q6_K:
    ox_quants_q6_k (block, q);
    break;
  case OX_TYPE_IQ4_NL:
    ox_quants_iq4 (((const OxBlockIQ4_NL *) block)->qs, q);
    break;
  case OX_TYPE_IQ4_XS:
    for (unsigned g = 0; g < 8; g++)
      ox_quants_iq4 (((const OxBlockIQ4_XS *) block)->qs + g * 16, q + g * 32);
    break;
  default:
    break;
  }
}

/* ---- Whole rows ------------------------------------------------------------------------------------------------- */

static inline void
ox_dequantize_symmetric (uint32_t type,
                         unsigned elements,
                         unsigned bytes,
                         unsigned group,
                         int zero_point,
                         const uint8_t *src,
                         float *restrict dst,
                         size_t n)
{
  for (size_t i = 0; i < n; i += elements, src += bytes) {
    uint8_t q[OX_BLOCK_MAX];
    float d[16];
    ox_decode_scales (type, src, d, NULL);
    ox_decode_quants (type, src, q);
    for (unsigned g = 0; g < elements / group; g++)
      for (unsigned j = 0; j < group; j++)
        dst[i + g * group + j] = d[g] * (float) (q[g * group + j] - zero_point);
  }
}

static inline void
ox_dequantize_affine (
  uint32_t type, unsigned elements, unsigned bytes, unsigned group, const uint8_t *src, float *restrict dst, size_t n)
{
  for (size_t i = 0; i < n; i += elements, src += bytes) {
    uint8_t q[OX_BLOCK_MAX];
    float d[16], m[16];
    ox_decode_scales (type, src, d, m);
    ox_decode_quants (type, src, q);
    for (unsigned g = 0; g < elements / group; g++)
      for (unsigned j = 0; j < group; j++)
        dst[i + g * group + j] = d[g] * (float) q[g * group + j] + m[g];
  }
}

/* @n elements of whole blocks at @src to float. The constants let the compiler specialise each case. */
static inline void
ox_dequantize_row (uint32_t type, const void *src, float *restrict dst, size_t n)
{
  switch (type) {
  case OX_TYPE_F32:
    memcpy (dst, src, n * sizeof (float));
    break;
  case OX_TYPE_F16:
    for (size_t i = 0; i < n; i++)
      dst[i] = ox_f16_to_f32 (ox_u16 (((const OxU16 *) src)[i]));
    break;
  case OX_TYPE_BF16:
    for (size_t i = 0; i < n; i++)
      dst[i] = ox_bf16_to_f32 (ox_u16 (((const OxU16 *) src)[i]));
    break;
  case OX_TYPE_Q4_0:
    ox_dequantize_symmetric (OX_TYPE_Q4_0, 32, 18, 32, 8, src, dst, n);
    break;
  case OX_TYPE_Q4_1:
    ox_dequantize_affine (OX_TYPE_Q4_1, 32, 20, 32, src, dst, n);
    break;
  case OX_TYPE_Q5_0:
    ox_dequantize_symmetric (OX_TYPE_Q5_0, 32, 22, 32, 16, src, dst, n);
    break;
  case OX_TYPE_Q5_1:
    ox_dequantize_affine (OX_TYPE_Q5_1, 32, 24, 32, src, dst, n);
    break;
  case OX_TYPE_Q8_0:
    ox_dequantize_symmetric (OX_TYPE_Q8_0, 32, 34, 32, 128, src, dst, n);
    break;
  case OX_TYPE_Q2_K:
    ox_dequantize_affine (OX_TYPE_Q2_K, 256, 84, 16, src, dst, n);
    break;
  case OX_TYPE_Q3_K:
    ox_dequantize_symmetric (OX_TYPE_Q3_K, 256, 110, 16, 4, src, dst, n);
    break;
  case OX_TYPE_Q4_K:
    ox_dequantize_affine (OX_TYPE_Q4_K, 256, 144, 32, src, dst, n);
    break;
  case OX_TYPE_Q5_K:
    ox_dequantize_affine (OX_TYPE_Q5_K, 256, 176, 32, src, dst, n);
    break;
  case OX_TYPE_Q6_K:
    ox_dequantize_symmetric (OX_TYPE_Q6_K, 256, 210, 16, 32, src, dst, n);
    break;
  case OX_TYPE_IQ4_NL:
    ox_dequantize_symmetric (OX_TYPE_IQ4_NL, 32, 18, 32, 128, src, dst, n);
    break;
  case OX_TYPE_IQ4_XS:
    ox_dequantize_symmetric (OX_TYPE_IQ4_XS, 256, 136, 32, 128, src, dst, n);
    break;
  default:
    break;
  }
}
