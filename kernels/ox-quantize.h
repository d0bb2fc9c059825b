/* The activation format OX_ACTIVATION_Q8.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

/* 32 activations x ≈ scale · q, q in [-127, 127]. A scale of its own for each 32 keeps the error of a product lower than
 * formats with one scale for 256. The sums serve weights that have a minimum or are stored with an offset. */
typedef struct {
  float scale;
  int16_t sum[2]; /* Σ q of the first and of the second half */
  int8_t q[32];
} OxBlockQ8;

static_assert (sizeof (OxBlockQ8) == 40, "activation block");

/* A block whose greatest magnitude is below this is all zeros: the reciprocal of its scale would leave the range of a float. */
#define OX_Q8_SMALLEST 0x1p-119f

/* The magnitude that decides the scale of a block, of @largest and @x. Compared as integers, where NaN is the largest of all: a block
 * with a number that is not finite must not become one of harmless numbers. */
static inline float
ox_q8_larger (float largest, float x)
{
  uint32_t a, b;

  memcpy (&a, &largest, sizeof a);
  memcpy (&b, &x, sizeof b);
  b &= 0x7fffffffu;
  a = a > b ? a : b;
  memcpy (&largest, &a, sizeof a);
  return largest;
}

/* The scale of a block whose greatest magnitude is @largest, and what its numbers are multiplied by. NaN when one was not finite: no
 * integer can hold that, and so it goes on to every sum that the block is part of. */
static inline float
ox_q8_scale (float largest, float *inverse)
{
  *inverse = 0;
  if (largest < OX_Q8_SMALLEST)
    return 0;
  if (!(largest < INFINITY))
    return NAN;
  *inverse = 127 / largest;
  return largest / 127;
}
