/* The gated delta rule, one value head at a time (Yang, Kautz & Hatamizadeh 2024).
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <stddef.h>

/* Columns of a strip of the state: what fits into the first level of cache beside a few tokens. */
#define OX_DELTA_STRIP 32

/* One value head over @n tokens. For each: S *= decay; d = beta · (v - Sᵀ k); S += k dᵀ; y = Sᵀ q.
 * S is [key_dim, value_dim], held in strips of OX_DELTA_STRIP columns (the last may be narrower), each of them [key_dim, columns] in
 * row-major order, one after the other. A strip can be computed without the others: it is a head of that many values. */
typedef struct {
  const float *from; /* S before the first token; may be @state */
  float *state;      /* S afterwards */
  const float *q, *k, *v;
  const float *beta, *decay;
  float *y;
  size_t qk_stride, v_stride, gate_stride, y_stride; /* floats from a token to the next */
  size_t n, key_dim, value_dim;
} OxDeltaRule;
