/* Looking for models on the disk: the half of the library that blocks.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-engine-backend.h"

G_BEGIN_DECLS

/**
 * OxModelFinding:
 * @path: file or folder
 * @stamp: changes when a file of the model does
 * @plan, @error: one of them; neither when @stamp is as it was known
 */
typedef struct {
  char *path;
  char *stamp;
  OxModelPlan *plan;
  GError *error;
} OxModelFinding;

/* Called on the scanning thread; takes @finding. */
typedef void (*OxModelFindingFunc) (OxModelFinding *finding, gpointer user_data);

/* Where to look, from the environment and from @added (the user's paths). */
GStrv ox_model_scan_get_roots (const char *const *added);

/* Looks in @roots. @known: path → stamp. Returns the folders seen, at most some hundred, for watching. Any thread but the main one. */
GStrv ox_model_scan (const OxEngineBackend *backend,
                     const char *const *roots,
                     GHashTable *known,
                     OxModelFindingFunc found,
                     gpointer user_data,
                     GCancellable *cancellable);

G_END_DECLS
