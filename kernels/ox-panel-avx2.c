/* Integer panels for AVX2.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)

#define OX_USE_AVX_VNNI 0
#define PANEL_LEVEL "avx2"

#include "ox-panel-ymm.h"

#include "ox-panel-template.h"

const OxLinearSet ox_panel_avx2 = { .integer = panel_kernels };

#else

const OxLinearSet ox_panel_avx2 = { NULL, NULL, NULL };

#endif
