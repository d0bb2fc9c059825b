/* What the parts of the reader of JSON schemas share.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "text/ox-json-schema.h"

/* A oneOf, which can be looked at once all is known. */
typedef struct {
  guint32 first, n; /* members */
  char *path;
} OxSchemaOneOf;

/* Sets the error and returns FALSE. @path: a JSON pointer. */
gboolean ox_json_schema_fail (GError **error, OxError code, const char *path, const char *format, ...)
  G_GNUC_PRINTF (4, 5);
/* Valid until a node is added. */
OxSchemaNode *ox_json_schema_node (OxJsonSchema *schema, guint32 node);
/* Makes unions flat, finds the heights, and refuses what has no value and what oneOf (OxSchemaOneOf) cannot tell apart. */
gboolean ox_json_schema_check (OxJsonSchema *schema, const GArray *one_ofs, GError **error);
