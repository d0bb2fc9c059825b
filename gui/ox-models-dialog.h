/* The models on this computer, with what there is to know of each.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-engine.h"
#include "ox-model-library.h"

#include <adwaita.h>

G_BEGIN_DECLS

AdwDialog *ox_models_dialog_new (OxModelLibrary *library, OxEngine *engine);

G_END_DECLS
