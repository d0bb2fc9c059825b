/* Prepared scenes for screenshots and tests: the real app with an invented library and a scripted engine.
 *
 * OXINFER_SCENE names the scene; OXINFER_SCENE_READY a file that is made when the window has settled; OXINFER_SCENE_RTL=1
 * shows it from right to left; OXINFER_SCENE_TEXT_SCALE=2 with larger text. Without OXINFER_SCENE all this does nothing.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-application.h"
#include "ox-window.h"

G_BEGIN_DECLS

void ox_scene_prepare_data (void);
void ox_scene_prepare_display (void);
const OxEngineBackend *ox_scene_get_backend (void);
void ox_scene_fill_store (OxStore *store);
void ox_scene_play (OxApplication *application, OxWindow *window);
void ox_scene_clean_up (void);

G_END_DECLS
