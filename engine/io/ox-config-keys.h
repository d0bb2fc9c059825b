/* Metadata keys of a GGUF file, read with bounds. An error names the file, the key, what was found and what was expected.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "io/ox-config-private.h"

typedef struct {
  OxGguf *gguf;
  OxWeights *weights; /* or NULL */
  const char *file;
  const char *architecture;
} OxKeys;

/* "llama.block_count" */
char *ox_keys_full (const OxKeys *keys, const char *name);
gboolean ox_keys_has (const OxKeys *keys, const char *name);

/* Set an error and return FALSE. @expected: "a string" */
gboolean ox_keys_damaged (GError **error, const OxKeys *keys, const char *name, guint64 found, const char *expected);
gboolean ox_keys_unsupported (GError **error, const OxKeys *keys, const char *name, const char *what);
/* As the last, because it is not what the key @other is. */
gboolean ox_keys_differ (GError **error, const OxKeys *keys, const char *name, const char *other);

/* From @min to @max. @default_value 0: the key is required. */
gboolean ox_keys_read_uint (
  const OxKeys *keys, const char *name, guint min, guint max, guint default_value, guint *value, GError **error);
/* From 0 to @max; @default_value when the key is missing. */
gboolean ox_keys_read_count (
  const OxKeys *keys, const char *name, guint max, guint default_value, guint *value, GError **error);
/* One number for all of @n layers or an array of @n. */
gboolean ox_keys_read_layers (const OxKeys *keys,
                              const char *name,
                              guint min,
                              guint max,
                              guint default_value,
                              guint *values,
                              guint n,
                              GError **error);
/* An array of at least @n booleans, of which the first @n are read, or nothing: then @found is FALSE. */
gboolean ox_keys_read_flags (
  const OxKeys *keys, const char *name, gboolean *flags, guint n, gboolean *found, GError **error);
/* Above 0 and at most @max. NaN as @default_value: the key is required. */
gboolean ox_keys_read_positive (
  const OxKeys *keys, const char *name, double max, double default_value, double *value, GError **error);

/* Refuses positions that are scaled. */
gboolean ox_keys_check_unscaled (const OxKeys *keys, GError **error);
/* rope_freqs.weight [@half], one divisor a frequency, into @rope; nothing when there is none. */
gboolean ox_keys_read_rope_factors (const OxKeys *keys, guint half, OxRopeConfig *rope, GError **error);

/* The families' own parts: sizes, layers, rotation; the vocabulary is known already. */
gboolean ox_config_read_gguf_gemma4 (const OxKeys *keys, OxConfig *config, GError **error);
gboolean ox_config_read_gguf_qwen35 (const OxKeys *keys, OxConfig *config, GError **error);
