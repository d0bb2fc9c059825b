/* The activation format OX_ACTIVATION_Q8.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <assert.h>
#include <stdint.h>

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
