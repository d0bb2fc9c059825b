/* What a tool's declaration says about the arguments of a call, and whether a call keeps to it.
 *
 * The part of JSON Schema that declarations use: type, properties, required, enum, items, additionalProperties. What else a schema
 * says is for the model to read. Unlike a validator's, the check forgives what small models get wrong and what can mean only one thing:
 * "3" for a number, 3 for a string, "true" for a boolean, another case of an enum's value, null for what may be left out.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "text/ox-value.h"

/* Whether @declaration is OpenAI-like JSON of a function whose parameters are an object. OX_ERROR_INVALID. */
gboolean ox_tool_declaration_check (const OxValue *declaration, GError **error);
/* The function's name, owned by @declaration, which has been checked. */
const char *ox_tool_declaration_get_name (const OxValue *declaration);

/* The arguments of a call as a JSON object that keeps to @declaration, or NULL with a message that tells a model what to write
 * instead. Free with g_free(). */
char *ox_tool_arguments_check (const OxValue *declaration, const char *arguments, GError **error);
