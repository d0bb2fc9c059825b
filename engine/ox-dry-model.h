/* Models without weights: the shapes of published ones with random numbers in them, made as they are read. For finding out how much
 * memory and time a model takes before anybody has downloaded it.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "io/ox-config.h"

/* Names of the shapes that are known; NULL-terminated. */
const char *const *ox_dry_model_get_names (void);
/* The config.json of a shape; NULL when there is none of that name. Free with g_free(). */
char *ox_dry_model_make_config (const char *name);

/* All tensors that a checkpoint of @config has, in BF16, as one safetensors file that is nowhere. Matrices are random, with variances
 * that keep activations near 1; norms do nothing. The same each time. */
OxWeights *ox_dry_model_weights (const OxConfig *config, const char *name, GError **error);
