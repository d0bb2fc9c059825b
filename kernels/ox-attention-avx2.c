/* Attention for AVX2, FMA and F16C.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)

#include "ox-simd-avx2.h"

/* Of 16 registers 12 are sums. */
#define TILES(X) X (6, 1) X (4, 1) X (3, 2) X (2, 2) X (1, 4)

#include "ox-attention-template.h"

const OxAttentionKernel ox_attention_avx2 = { store_row, add_blocks, merge, finish, OX_TYPE_F32 };

#else

const OxAttentionKernel ox_attention_avx2 = { NULL, NULL, NULL, NULL, OX_TYPE_F32 };

#endif
