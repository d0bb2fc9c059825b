/* Linear layers on float activations for AVX-512 (F, BW, DQ, VL).
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)

#include "ox-simd-avx512.h"

#include "ox-linear-float-template.h"

const OxLinearSet ox_linear_avx512 = { .exact = &exact_kernel, .floating = float_kernels };

#else

const OxLinearSet ox_linear_avx512 = { NULL, NULL, NULL };

#endif
