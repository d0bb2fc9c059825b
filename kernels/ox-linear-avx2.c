/* Linear layers for AVX2 with FMA and F16C.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)

#include "ox-simd-avx2.h"

#include "ox-linear-float-template.h"

const OxLinearSet ox_linear_avx2 = { .exact = &exact_kernel, .floating = float_kernels };

#else

const OxLinearSet ox_linear_avx2 = { NULL, NULL, NULL };

#endif
