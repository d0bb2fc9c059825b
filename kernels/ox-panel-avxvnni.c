/* Integer panels for AVX-VNNI: vpdpbusd on 256 bits, which processors without AVX-512 have.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__) && defined(__AVXVNNI__)

#define OX_USE_AVX_VNNI 1
#define PANEL_LEVEL "avxvnni"

#include "ox-panel-ymm.h"

#include "ox-panel-template.h"

const OxLinearSet ox_panel_avx_vnni = { .integer = panel_kernels };

#else

const OxLinearSet ox_panel_avx_vnni = { NULL, NULL, NULL };

#endif
