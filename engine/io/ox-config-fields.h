/* Fields of a config.json, read with bounds. Absent and null are the same. An error names the file, the field, what was found and
 * what was expected.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "io/ox-config-private.h"

/* An object of the file and the way to it, for messages. */
typedef struct {
  const char *file;
  const char *prefix; /* "text_config." or "" */
  yyjson_val *object;
} OxFields;

/* NULL when absent or null. */
yyjson_val *ox_fields_get (const OxFields *fields, const char *name);

/* These set an error and return FALSE. @expected: "a string". @found: "false". */
gboolean ox_fields_damaged (
  GError **error, const OxFields *fields, const char *name, yyjson_val *val, const char *expected);
gboolean ox_fields_unsupported (GError **error, const OxFields *fields, const char *name, const char *found);

/* From @min to @max. @default_value 0: the field is required. */
gboolean ox_fields_read_uint (
  const OxFields *fields, const char *name, guint min, guint max, guint default_value, guint *value, GError **error);
/* From 0 to @max; never required. */
gboolean ox_fields_read_count (
  const OxFields *fields, const char *name, guint max, guint default_value, guint *value, GError **error);
/* A finite number above 0 and at most @max. NaN as @default_value: the field is required. */
gboolean ox_fields_read_positive (
  const OxFields *fields, const char *name, double max, double default_value, double *value, GError **error);
gboolean ox_fields_read_bool (
  const OxFields *fields, const char *name, gboolean default_value, gboolean *value, GError **error);
/* Refuses anything but @wanted (a string), which is also what an absent field means. */
gboolean ox_fields_check_string (const OxFields *fields, const char *name, const char *wanted, GError **error);
/* Refuses anything but @wanted, which is also what an absent field means. */
gboolean ox_fields_check_bool (const OxFields *fields, const char *name, gboolean wanted, GError **error);

/* One set of rotary parameters: @object may be NULL, then @rope keeps @defaults. @types: what the family's network can run. */
#define OX_ROPE_BIT(type) (1u << (type))
gboolean ox_fields_read_rope (const OxFields *parent,
                              yyjson_val *object,
                              const char *name,
                              const OxRopeConfig *defaults,
                              guint types,
                              OxRopeConfig *rope,
                              GError **error);

/* config->layer_kinds from a list of names, of which “full_attention” and @other are known. */
gboolean ox_fields_read_layer_types (const OxFields *fields,
                                     yyjson_val *list,
                                     const char *other,
                                     OxLayerKind other_kind,
                                     OxConfig *config,
                                     GError **error);

/* The families' own parts: sizes, layers, rotation. @root differs from @text where the configuration is nested. */
gboolean ox_config_read_gemma4 (
  const OxFields *root, const OxFields *text, gboolean unified, OxConfig *config, GError **error);
gboolean ox_config_read_qwen35 (const OxFields *text, OxConfig *config, GError **error);
