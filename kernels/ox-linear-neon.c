/* Linear layers on float activations for Arm's Advanced SIMD.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

#if defined(__aarch64__) && defined(__ARM_NEON)

#include "ox-simd-neon.h"

#include "ox-linear-float-template.h"

const OxLinearSet ox_linear_neon = { .exact = &exact_kernel, .floating = float_kernels };

#else

const OxLinearSet ox_linear_neon = { NULL, NULL, NULL };

#endif
