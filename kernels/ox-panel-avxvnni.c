/* Integer panels for AVX-VNNI: vpdpbusd on 256 bits, which processors without AVX-512 have.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__) && defined(__AVXVNNI__)

#define PANEL_LEVEL "avxvnni"
#define PANEL_VNNI 1
#define TILE_PANELS 1
#define TILE_ROWS 5
#define FEW_ROWS 4

#include "ox-panel-ymm.h"

#include "ox-panel-tile.h"

#include "ox-panel-template.h"

const OxLinearSet ox_panel_avx_vnni = { .integer = panel_kernels };

#else

const OxLinearSet ox_panel_avx_vnni = { NULL, NULL, NULL };

#endif
