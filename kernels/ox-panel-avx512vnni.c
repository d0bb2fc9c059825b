/* Integer panels for AVX-512 with VNNI: 16 outputs a register, four products an instruction and lane.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

#if defined(__AVX512F__) && defined(__AVX512VL__) && defined(__AVX512VNNI__)

#define PANEL_LEVEL "avx512vnni"
#define PANEL_VNNI 1
#define TILE_PANELS 4
#define TILE_ROWS 3
#define FEW_ROWS 8

#include "ox-panel-zmm.h"

#include "ox-panel-tile.h"

#include "ox-panel-template.h"

const OxLinearSet ox_panel_avx512_vnni = { .integer = panel_kernels };

#else

const OxLinearSet ox_panel_avx512_vnni = { NULL, NULL, NULL };

#endif
