/* Attention for AVX-512 (F, BW, DQ, VL).
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)

#include "ox-simd-avx512.h"

/* Of 32 registers 24 are sums. */
#define TILES(X) X (12, 2) X (8, 2) X (6, 4) X (4, 4) X (3, 4) X (2, 4) X (1, 4)

#include "ox-attention-template.h"

const OxAttentionKernel ox_attention_avx512 = { store_row, add_blocks, merge, finish, OX_TYPE_F32 };

#else

const OxAttentionKernel ox_attention_avx512 = { NULL, NULL, NULL, NULL, OX_TYPE_F32 };

#endif
