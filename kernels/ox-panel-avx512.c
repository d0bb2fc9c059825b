/* Integer panels for AVX-512 without VNNI, as in Skylake-X: vpmaddubsw on 512 bits.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)

#define PANEL_LEVEL "avx512"
#define PANEL_VNNI 0
#define TILE_PANELS 2
#define TILE_ROWS 4
#define FEW_ROWS 8

#include "ox-panel-zmm.h"

#include "ox-panel-tile.h"

#include "ox-panel-template.h"

const OxLinearSet ox_panel_avx512 = { .integer = panel_kernels };

#else

const OxLinearSet ox_panel_avx512 = { NULL, NULL, NULL };

#endif
