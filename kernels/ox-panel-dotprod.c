/* Integer panels for Arm's dot product instructions (Armv8.2 FEAT_DotProd).
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

#if defined(__ARM_FEATURE_DOTPROD)

#define PANEL_LEVEL "dotprod"
#define OX_USE_USDOT 0
#define OX_USE_MATRICES 0

#include "ox-panel-arm-dot.h"

#include "ox-panel-arm-template.h"

const OxLinearSet ox_panel_dotprod = { .integer = panel_kernels };

#else

const OxLinearSet ox_panel_dotprod = { NULL, NULL, NULL };

#endif
