/* The app: one instance, which owns the store, the engine and the libraries, and shows a window.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-conversation-list.h"
#include "ox-engine.h"
#include "ox-model-library.h"

#include <adwaita.h>

G_BEGIN_DECLS

#define OX_TYPE_APPLICATION (ox_application_get_type ())
G_DECLARE_FINAL_TYPE (OxApplication, ox_application, OX, APPLICATION, AdwApplication)

OxApplication *ox_application_new (const OxEngineBackend *backend);

GSettings *ox_application_get_settings (OxApplication *self);
OxStore *ox_application_get_store (OxApplication *self);
OxEngine *ox_application_get_engine (OxApplication *self);
OxModelLibrary *ox_application_get_library (OxApplication *self);
OxConversationList *ox_application_get_conversations (OxApplication *self);

G_END_DECLS
