/* The header of one safetensors file, read against hostile files.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "io/ox-weights.h"

/* Appends an OxTensorInfo for each tensor of @file to @tensors; names are kept in @names. */
gboolean ox_safetensors_read (OxFile *file, GArray *tensors, GStringChunk *names, GError **error);
