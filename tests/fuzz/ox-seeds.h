/* Small valid files that fuzzing starts from.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-io-check.h"

typedef struct {
  const char *name;
  gboolean (*exercise) (GBytes *bytes);
  gboolean is_text;
  GPtrArray *seeds; /* GBytes, each accepted */
} OxFuzzFormat;

/* "gguf", "safetensors" and "config"; NULL when @index is beyond the last. */
OxFuzzFormat *ox_fuzz_format_new (guint index);
void ox_fuzz_format_free (OxFuzzFormat *format);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (OxFuzzFormat, ox_fuzz_format_free)
