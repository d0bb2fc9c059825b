/* Convolutions, and what else networks for pictures need, for AVX-512 (F, BW, DQ, VL).
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)

#include "ox-simd-avx512.h"

/* Of 32 registers 24 are sums. */
#define CONV_TILE_VECTORS 4
#define CONV_TILE_PIXELS 6

#include "ox-conv-template.h"

#include "ox-image-template.h"

CONV_FUNCTIONS (F32)
CONV_FUNCTIONS (F16)
CONV_FUNCTIONS (BF16)

static const OxConvKernel kernels[] = { CONV_ENTRY (F32, "conv-f32-avx512"), CONV_ENTRY (F16, "conv-f16-avx512"),
                                        CONV_ENTRY (BF16, "conv-bf16-avx512") };

void
ox_image_init_avx512 (OxKernels *table)
{
  table->conv = kernels;
  init_image (table);
}

#else

void
ox_image_init_avx512 (OxKernels *table)
{
}

#endif
