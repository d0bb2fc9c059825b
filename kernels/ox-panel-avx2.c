/* Integer panels for AVX2.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)

#define PANEL_LEVEL "avx2"
#define PANEL_VNNI 0
#define TILE_PANELS 1
#define TILE_ROWS 4
#define FEW_ROWS 4

#include "ox-panel-ymm.h"

#include "ox-panel-tile.h"

#include "ox-panel-template.h"

const OxLinearSet ox_panel_avx2 = { .integer = panel_kernels };

#else

const OxLinearSet ox_panel_avx2 = { NULL, NULL, NULL };

#endif
