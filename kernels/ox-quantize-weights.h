/* Rounding of float weights to blocks of 32 with one scale, when a model is loaded.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-kernels.h"

/* @n float weights, a multiple of 32, to blocks of Q8_0 or Q4_0 at @dst; other types are left alone. @flags: the instruction sets that
 * may be used, OxKernels.flags; the result is the same with all.
 *
 * Q8_0: the largest magnitude of a block becomes ±127.
 * Q4_0: of some scales the one with the least squared error, in which large weights count more. Weights that lie on such a grid already
 * come out as they are.
 *
 * A block with a weight that is not finite becomes NaN altogether: no integer can hold that, and nobody is to take it for a number. */
void ox_quantize_weights (uint32_t flags, uint32_t type, const float *src, void *dst, size_t n);
