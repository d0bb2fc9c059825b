/* Attention for Arm's Advanced SIMD.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

#if defined(__aarch64__) && defined(__ARM_NEON)

#include "ox-simd-neon.h"

/* A unit is four vectors: of 32 registers 16 to 24 are sums. */
#define TILES(X) X (6, 1) X (4, 1) X (2, 2) X (1, 4)

#include "ox-attention-template.h"

const OxAttentionKernel ox_attention_neon = { store_row, add_blocks, merge, finish, OX_TYPE_F32 };

#else

const OxAttentionKernel ox_attention_neon = { NULL, NULL, NULL, NULL, OX_TYPE_F32 };

#endif
