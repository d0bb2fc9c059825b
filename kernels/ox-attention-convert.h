/* Floats to what keys and values are stored as. Static, as files for several instruction sets include it.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <math.h>
#include <stdint.h>

#include "ox-blocks.h"

#define OX_F16_MAX 65504.0f

/* NaN stays NaN. */
static inline float
ox_f16_clamp (float x)
{
  return x > OX_F16_MAX ? OX_F16_MAX : x < -OX_F16_MAX ? -OX_F16_MAX : x;
}

static inline uint16_t
ox_f32_to_bf16 (float f)
{
  uint32_t bits = ox_f32_to_bits (f);

  if ((bits & 0x7fffffff) > 0x7f800000)
    return (uint16_t) (bits >> 16 | 0x40);
  return (uint16_t) ((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* 32 floats to a block: quants are to the scale as it is stored. A NaN makes the scale NaN, and so all of the block. */
static inline void
ox_store_q8_0 (const float *x, OxBlockQ8_0 *block)
{
  float largest = 0, scale, inverse;
  uint16_t half;

  for (unsigned i = 0; i < 32; i++) {
    float magnitude = fabsf (x[i]);
    largest = magnitude > largest || magnitude != magnitude ? magnitude : largest;
    if (magnitude != magnitude)
      break;
  }
  half = ox_f32_to_f16 (ox_f16_clamp (largest / 127));
  block->d = (OxU16) { { (uint8_t) half, (uint8_t) (half >> 8) } };
  scale = ox_f16_to_f32 (half);
  inverse = scale > 0 ? 1 / scale : 0;
  for (unsigned i = 0; i < 32; i++) {
    float q = x[i] * inverse;
    block->qs[i] = (int8_t) lrintf (q > 127 ? 127 : q > -127 ? q : -127);
  }
}
