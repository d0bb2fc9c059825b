/* Convolutions, and what else networks for pictures need, for Arm's Advanced SIMD.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

#if defined(__aarch64__) && defined(__ARM_NEON)

#include "ox-simd-neon.h"

/* Of 32 registers 24 are sums. */
#define CONV_TILE_VECTORS 4
#define CONV_TILE_PIXELS 6

#include "ox-conv-template.h"

#include "ox-image-template.h"

CONV_FUNCTIONS (F32)
CONV_FUNCTIONS (F16)
CONV_FUNCTIONS (BF16)

static const OxConvKernel kernels[] = { CONV_ENTRY (F32, "conv-f32-neon"), CONV_ENTRY (F16, "conv-f16-neon"),
                                        CONV_ENTRY (BF16, "conv-bf16-neon") };

void
ox_image_init_neon (OxKernels *table)
{
  table->conv = kernels;
  init_image (table);
}

#else

void
ox_image_init_neon (OxKernels *table)
{
}

#endif
