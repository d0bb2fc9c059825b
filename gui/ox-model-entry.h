/* A model that was found on this computer. Main thread only.
 *
 * Properties, all with notify: path, name, format, file-bytes, state, reason, loaded, loading, load-progress, selected.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "oxinfer.h"
#include <glib-object.h>

G_BEGIN_DECLS

/**
 * OxModelEntryState:
 * @OX_MODEL_ENTRY_OK: can be loaded
 * @OX_MODEL_ENTRY_TOO_LARGE: needs more memory than was free when it was looked at; may be tried all the same
 * @OX_MODEL_ENTRY_DAMAGED: the file breaks the rules of its format, or cannot be read; see reason
 * @OX_MODEL_ENTRY_UNSUPPORTED: of a kind that this version cannot run; see reason
 */
typedef enum {
  OX_MODEL_ENTRY_OK,
  OX_MODEL_ENTRY_TOO_LARGE,
  OX_MODEL_ENTRY_DAMAGED,
  OX_MODEL_ENTRY_UNSUPPORTED,
} OxModelEntryState;

#define OX_TYPE_MODEL_ENTRY_STATE (ox_model_entry_state_get_type ())
GType ox_model_entry_state_get_type (void);

#define OX_TYPE_MODEL_ENTRY (ox_model_entry_get_type ())
G_DECLARE_FINAL_TYPE (OxModelEntry, ox_model_entry, OX, MODEL_ENTRY, GObject)

/* @plan or @error says what was found; @plan is copied. */
OxModelEntry *ox_model_entry_new (const char *path, const OxModelPlan *plan, const GError *error);
/* Takes over a new finding about the same path. */
void ox_model_entry_update (OxModelEntry *self, const OxModelPlan *plan, const GError *error);

/* A .gguf file, or a folder of safetensors. */
const char *ox_model_entry_get_path (OxModelEntry *self);
/* For people. Never NULL. */
const char *ox_model_entry_get_name (OxModelEntry *self);
/* "Q4_1", "BF16"; NULL when not known. */
const char *ox_model_entry_get_format (OxModelEntry *self);
guint64 ox_model_entry_get_file_bytes (OxModelEntry *self);
OxModelEntryState ox_model_entry_get_state (OxModelEntry *self);
/* OK or TOO_LARGE. */
gboolean ox_model_entry_get_usable (OxModelEntry *self);
/* Why it cannot be used, or what to know, for the user; or NULL. */
const char *ox_model_entry_get_reason (OxModelEntry *self);
/* The engine's own words about that: file, field, what was expected; or NULL. */
const char *ox_model_entry_get_details (OxModelEntry *self);
/* All that the engine told; NULL when DAMAGED or UNSUPPORTED. Valid until the next notify::state. */
const OxModelPlan *ox_model_entry_get_plan (OxModelEntry *self);

/* UNSUPPORTED by itself, but it helps another model: guesses its answers ahead. */
gboolean ox_model_entry_is_drafter (OxModelEntry *self);
/* The name by which files and folders tell models apart. */
const char *ox_model_entry_get_file_name (OxModelEntry *self);

gboolean ox_model_entry_get_loaded (OxModelEntry *self);
gboolean ox_model_entry_get_loading (OxModelEntry *self);
double ox_model_entry_get_load_progress (OxModelEntry *self);
/* The one that new conversations use. */
gboolean ox_model_entry_get_selected (OxModelEntry *self);

/* ---- For the library ---- */
void ox_model_entry_set_load_state (OxModelEntry *self, gboolean loaded, gboolean loading, double progress);
/* Judges anew whether it fits, with @available bytes of memory to be had for it. */
void ox_model_entry_set_memory_available (OxModelEntry *self, guint64 available);
/* Name of the model that a drafter helps, or NULL when that is not there. */
void ox_model_entry_set_helped (OxModelEntry *self, const char *name);
void ox_model_entry_set_selected (OxModelEntry *self, gboolean selected);

G_END_DECLS
