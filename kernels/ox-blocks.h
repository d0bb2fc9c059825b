/* The memory layout of GGUF's weight blocks, and the two 16-bit float formats in plain C.
 *
 * A block may lie at any address: no field asks for more than byte alignment.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <assert.h>
#include <stdint.h>
#include <string.h>

/* 16-bit values are kept as two bytes so that a block may lie at any address. */
typedef struct {
  uint8_t b[2];
} OxU16;

static inline uint16_t
ox_u16 (OxU16 v)
{
  return (uint16_t) (v.b[0] | v.b[1] << 8);
}

static inline float
ox_bits_to_f32 (uint32_t bits)
{
  float f;
  memcpy (&f, &bits, sizeof f);
  return f;
}

static inline uint32_t
ox_f32_to_bits (float f)
{
  uint32_t bits;
  memcpy (&bits, &f, sizeof bits);
  return bits;
}

/* IEEE 754 binary16 to binary32, exact, subnormals, infinities and NaN included. */
static inline float
ox_f16_to_f32 (uint16_t h)
{
  uint32_t sign = (uint32_t) (h & 0x8000) << 16;
  uint32_t rest = (uint32_t) (h & 0x7fff) << 13;

  if (rest >= 0x7c00u << 13)
    return ox_bits_to_f32 (sign | 0x7f800000 | rest);
  /* Below the exponent field the value is rest · 2^-149; multiplying by 2^112 rebiases the exponent and normalises. */
  return ox_bits_to_f32 (sign | ox_f32_to_bits (ox_bits_to_f32 (rest) * 0x1p112f));
}

/* binary32 to binary16, to nearest, ties to even; beyond the range gives infinity. */
static inline uint16_t
ox_f32_to_f16 (float f)
{
  uint32_t bits = ox_f32_to_bits (f);
  uint16_t sign = (uint16_t) (bits >> 16 & 0x8000);

  bits &= 0x7fffffff;
  if (bits > 0x7f800000)
    return sign | 0x7e00;
  if (bits >= 0x477ff000) /* 65520 and more round to infinity */
    return sign | 0x7c00;
  if (bits < 0x38800000) { /* subnormal: let the adder of the unit do the rounding, at 2^-24 a step */
    float t = ox_bits_to_f32 (bits) + 0.5f;
    return (uint16_t) (sign | (ox_f32_to_bits (t) - 0x3f000000));
  }
  bits += 0xfff + (bits >> 13 & 1);
  return (uint16_t) (sign | (bits - 0x38000000) >> 13);
}

static inline float
ox_bf16_to_f32 (uint16_t h)
{
  return ox_bits_to_f32 ((uint32_t) h << 16);
}

typedef struct {
  OxU16 d;
  uint8_t qs[16]; /* element j in the low half of byte j, element j + 16 in the high half */
} OxBlockQ4_0;

typedef struct {
  OxU16 d, m;
  uint8_t qs[16];
} OxBlockQ4_1;

typedef struct {
  OxU16 d;
  uint8_t qh[4]; /* bit j: the fifth bit of element j */
  uint8_t qs[16];
} OxBlockQ5_0;

typedef struct {
  OxU16 d, m;
  uint8_t qh[4];
  uint8_t qs[16];
} OxBlockQ5_1;

typedef struct {
  OxU16 d;
  int8_t qs[32];
} OxBlockQ8_0;

typedef struct {
  uint8_t scales[16]; /* low half: scale, high half: minimum */
  uint8_t qs[64];
  OxU16 d, dmin;
} OxBlockQ2_K;

typedef struct {
  uint8_t hmask[32];
  uint8_t qs[64];
  uint8_t scales[12];
  OxU16 d;
} OxBlockQ3_K;

typedef struct {
  OxU16 d, dmin;
  uint8_t scales[12]; /* eight pairs of 6-bit scale and minimum */
  uint8_t qs[128];
} OxBlockQ4_K;

typedef struct {
  OxU16 d, dmin;
  uint8_t scales[12];
  uint8_t qh[32];
  uint8_t qs[128];
} OxBlockQ5_K;

typedef struct {
  uint8_t ql[128];
  uint8_t qh[64];
  int8_t scales[16];
  OxU16 d;
} OxBlockQ6_K;

typedef struct {
  OxU16 d;
  uint8_t qs[16]; /* indices into ox_iq4_values */
} OxBlockIQ4_NL;

typedef struct {
  OxU16 d;
  OxU16 scales_h;
  uint8_t scales_l[4];
  uint8_t qs[128];
} OxBlockIQ4_XS;

static_assert (sizeof (OxBlockQ4_0) == 18, "Q4_0");
static_assert (sizeof (OxBlockQ4_1) == 20, "Q4_1");
static_assert (sizeof (OxBlockQ5_0) == 22, "Q5_0");
static_assert (sizeof (OxBlockQ5_1) == 24, "Q5_1");
static_assert (sizeof (OxBlockQ8_0) == 34, "Q8_0");
static_assert (sizeof (OxBlockQ2_K) == 84, "Q2_K");
static_assert (sizeof (OxBlockQ3_K) == 110, "Q3_K");
static_assert (sizeof (OxBlockQ4_K) == 144, "Q4_K");
static_assert (sizeof (OxBlockQ5_K) == 176, "Q5_K");
static_assert (sizeof (OxBlockQ6_K) == 210, "Q6_K");
static_assert (sizeof (OxBlockIQ4_NL) == 18, "IQ4_NL");
static_assert (sizeof (OxBlockIQ4_XS) == 136, "IQ4_XS");
