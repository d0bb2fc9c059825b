/* Convolutions, and what else networks for pictures need, for AVX2, FMA and F16C.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)

#include "ox-simd-avx2.h"

/* Of 16 registers 12 are sums. */
#define CONV_TILE_VECTORS 2
#define CONV_TILE_PIXELS 6

#include "ox-conv-template.h"

#include "ox-image-template.h"

CONV_FUNCTIONS (F32)
CONV_FUNCTIONS (F16)
CONV_FUNCTIONS (BF16)

static const OxConvKernel kernels[] = { CONV_ENTRY (F32, "conv-f32-avx2"), CONV_ENTRY (F16, "conv-f16-avx2"),
                                        CONV_ENTRY (BF16, "conv-bf16-avx2") };

void
ox_image_init_avx2 (OxKernels *table)
{
  table->conv = kernels;
  init_image (table);
}

#else

void
ox_image_init_avx2 (OxKernels *table)
{
}

#endif
