/* JSON from files: strict (UTF-8, no comments, no lone surrogates, no BOM, nothing after the end), with bounded memory.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <yyjson.h>

#include "io/ox-file.h"

/* A parsed document together with the text that its strings point into. */
typedef struct _OxJson OxJson;

/* @len bytes at @offset of @file. Errors (OX_ERROR_DAMAGED) name the file and the place. */
OxJson *ox_json_read (OxFile *file, guint64 offset, gsize len, GError **error);
/* The whole of @file; refused when larger than @max_bytes. */
OxJson *ox_json_read_all (OxFile *file, guint64 max_bytes, GError **error);
/* @text is copied. @file_name is for messages. */
OxJson *ox_json_parse (const char *text, gsize len, const char *file_name, GError **error);
void ox_json_free (OxJson *json);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (OxJson, ox_json_free)

yyjson_val *ox_json_get_root (OxJson *json);

/* What @val is, for messages: "a string", "missing" for NULL. */
const char *ox_json_describe (yyjson_val *val);

/* Over the items of an array and the members of an object; over nothing when it is missing or something else. yyjson's own macros are
 * undefined for a value that is missing. */
static inline yyjson_val *
ox_json_or_nothing (yyjson_val *val)
{
  static yyjson_val nothing[2];

  return val != NULL ? val : nothing;
}

#define ox_json_foreach_item(array, i, n, val) yyjson_arr_foreach (ox_json_or_nothing (array), i, n, val)
#define ox_json_foreach_member(object, i, n, key, val) yyjson_obj_foreach (ox_json_or_nothing (object), i, n, key, val)
