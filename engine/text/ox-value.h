/* JSON values that models see and write: arguments of tool calls, schemas, results. Key order and numbers are kept as written.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "io/ox-json.h"

/* How deep arrays and objects may lie in each other: what goes through a tree here may recurse. */
#define OX_VALUE_MAX_DEPTH 64

/* A parsed value with its text; immutable, shared by reference. Numbers are raw: see ox_value_append_number(). In an object no key
 * comes twice: the last of equal ones has won, at the place of the first, as in a Python dictionary. */
typedef struct {
  char *text; /* as it was given */
  yyjson_doc *doc;
} OxValue;

/* OX_ERROR_INVALID when @text is no JSON or too deep; @what says what it is, for the message. */
OxValue *ox_value_parse (const char *text, gsize len, const char *what, GError **error);
OxValue *ox_value_ref (const OxValue *value);
void ox_value_unref (OxValue *value);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (OxValue, ox_value_unref)
yyjson_val *ox_value_get_root (const OxValue *value);

/* A raw number's value as Python prints it after json.loads(): 1.0, 1e-07, 1e+22, -0.0; integers digit by digit. */
void ox_value_append_number (GString *out, yyjson_val *number);
/* Whether all numbers are: JSON has no others, but 1e999 is valid JSON that no double holds. */
gboolean ox_value_is_finite (yyjson_val *val);
/* As Python's json.dumps(ensure_ascii=False): ", " and ": " between parts. */
void ox_value_append_json (GString *out, yyjson_val *val);
void ox_value_append_json_string (GString *out, const char *text, gsize len);
/* As Python's str(): True, None, {'a': 'b'}; a string at the top is itself. */
void ox_value_append_python (GString *out, yyjson_val *val);
/* The keys of an object, sorted as jinja's dictsort does: without regard to case, equal ones in their order. */
GPtrArray *ox_value_sorted_keys (yyjson_val *object);
/* A double as Python's repr() has it. */
void ox_value_append_double (GString *out, double number);
