/* The models on this computer: a GListModel of OxModelEntry, by name. Main thread only; the looking is done on another thread.
 *
 * Looks for .gguf files and for folders with config.json and *.safetensors in
 *  - the paths of OXINFER_MODELS (colon-separated folders or files),
 *  - the Hugging Face cache: HF_HUB_CACHE, else HF_HOME/hub, else ~/.cache/huggingface/hub,
 *  - $XDG_DATA_HOME/models inside Flatpak,
 *  - the paths of the setting model-folders: folders or single files that the user added.
 * Folders are watched. A file that cannot be used is listed with the reason.
 *
 * Properties: ready (looked everywhere once), scanning, selected (rw).
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-engine.h"
#include "ox-model-entry.h"

G_BEGIN_DECLS

#define OX_TYPE_MODEL_LIBRARY (ox_model_library_get_type ())
G_DECLARE_FINAL_TYPE (OxModelLibrary, ox_model_library, OX, MODEL_LIBRARY, GObject)

/* @engine: its model is shown as loaded. @settings: with the keys model-path (s) and model-folders (as); NULL: nothing is
 * remembered. */
OxModelLibrary *ox_model_library_new (OxEngine *engine, GSettings *settings);

/* Looks again, everywhere. Entries come as they are found. Also call it once at the start. */
void ox_model_library_scan (OxModelLibrary *self);
/* Looks at all models again, those too whose files are as they were: the engine's options have changed. */
void ox_model_library_scan_anew (OxModelLibrary *self);
gboolean ox_model_library_get_ready (OxModelLibrary *self);
gboolean ox_model_library_get_scanning (OxModelLibrary *self);

/* Not owned by the caller. */
OxModelEntry *ox_model_library_find (OxModelLibrary *self, const char *path);

/* The model for new conversations: the last one chosen, else the largest that chats and fits in memory; NULL when there is no
 * usable model. Setting it is remembered. */
OxModelEntry *ox_model_library_get_selected (OxModelLibrary *self);
void ox_model_library_set_selected (OxModelLibrary *self, OxModelEntry *entry);

/* Adds a folder or a file to the setting model-folders and looks there. The first usable model found in it is selected. */
void ox_model_library_add (OxModelLibrary *self, GFile *file);
/* Takes the setting's path back out. The file itself stays. */
void ox_model_library_remove (OxModelLibrary *self, const char *path);
/* Whether @path is in the setting itself. */
gboolean ox_model_library_is_added (OxModelLibrary *self, const char *path);

G_END_DECLS
