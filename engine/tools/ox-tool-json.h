/* Reading the checked arguments of a call, and writing small results.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "text/ox-value.h"

/* A string or a number as its text; NULL when absent. */
static inline const char *
ox_tool_get_text (const OxValue *arguments, const char *name)
{
  yyjson_val *val = yyjson_obj_get (ox_value_get_root (arguments), name);

  return yyjson_is_raw (val) ? yyjson_get_raw (val) : yyjson_get_str (val);
}

/* Takes @doc. NULL only without memory, or when a string is no UTF-8. */
static inline char *
ox_tool_write_json (yyjson_mut_doc *doc)
{
  char *written = yyjson_mut_write (doc, YYJSON_WRITE_NOFLAG, NULL);
  char *text = g_strdup (written);

  free (written);
  yyjson_mut_doc_free (doc);
  return text;
}
