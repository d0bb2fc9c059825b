/* The preferences dialog.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-engine.h"

#include <adwaita.h>

G_BEGIN_DECLS

#define OX_TYPE_PREFERENCES (ox_preferences_get_type ())
G_DECLARE_FINAL_TYPE (OxPreferences, ox_preferences, OX, PREFERENCES, AdwPreferencesDialog)

AdwDialog *ox_preferences_new (GSettings *settings, OxEngine *engine);

G_END_DECLS
