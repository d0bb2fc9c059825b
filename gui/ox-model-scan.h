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

/* The name of a model's file or folder for people; a folder in a Hugging Face cache has that of its repository. Free with g_free(). */
char *ox_model_scan_dup_name (const char *path);

/* Looks in @roots. @known: path → stamp. @options: as for loading. Returns the folders seen, at most some hundred, for watching. Any thread but the main one. */
GStrv ox_model_scan (const OxEngineBackend *backend,
                     const char *const *roots,
                     GHashTable *known,
                     const OxModelOptions *options,
                     OxModelFindingFunc found,
                     gpointer user_data,
                     GCancellable *cancellable);

G_END_DECLS
