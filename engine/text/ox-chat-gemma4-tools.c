/* Gemma 4's notation for tools: declarations, calls and results. Keys are bare, strings stand between <|"|> marks, objects are
 * sorted by key.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <string.h>

#include "text/ox-chat-render.h"

#define QUOTE "<|\"|>"

static gboolean
is_true (yyjson_val *val)
{
  switch (yyjson_get_type (val)) {
  case YYJSON_TYPE_BOOL:
    return yyjson_get_bool (val);
  case YYJSON_TYPE_STR:
    return yyjson_get_len (val) > 0;
  case YYJSON_TYPE_ARR:
  case YYJSON_TYPE_OBJ:
    return yyjson_get_len (val) > 0;
  case YYJSON_TYPE_RAW:
    return g_ascii_strtod (yyjson_get_raw (val), NULL) != 0;
  default:
    return FALSE;
  }
}

/* As the template prints a value; nothing for one that is absent. */
static void
render_value (OxRenderer *renderer, yyjson_val *val, gboolean upper)
{
  g_autoptr (GString) text = g_string_new (NULL);
  g_autofree char *raised = NULL;

  if (!val)
    return;
  ox_value_append_python (text, val);
  if (upper)
    raised = g_utf8_strup (text->str, (gssize) text->len);
  ox_render_text (renderer, raised ? raised : text->str, raised ? strlen (raised) : text->len);
}

static void
render_quoted (OxRenderer *renderer, yyjson_val *val, gboolean upper)
{
  ox_render_control (renderer, QUOTE);
  render_value (renderer, val, upper);
  ox_render_control (renderer, QUOTE);
}

static void
render_argument (OxRenderer *renderer, yyjson_val *val, gboolean quote_keys)
{
  yyjson_val *child;
  gsize i, max;

  if (yyjson_is_str (val)) {
    render_quoted (renderer, val, FALSE);
  } else if (yyjson_is_bool (val)) {
    ox_render_control (renderer, yyjson_get_bool (val) ? "true" : "false");
  } else if (yyjson_is_arr (val)) {
    ox_render_control (renderer, "[");
    ox_json_foreach_item (val, i, max, child) {
      ox_render_control (renderer, i > 0 ? "," : "");
      render_argument (renderer, child, quote_keys);
    }
    ox_render_control (renderer, "]");
  } else if (yyjson_is_obj (val)) {
    g_autoptr (GPtrArray) keys = ox_value_sorted_keys (val);

    ox_render_control (renderer, "{");
    for (guint k = 0; k < keys->len; k++) {
      yyjson_val *key = g_ptr_array_index (keys, k);

      ox_render_control (renderer, k > 0 ? "," : "");
      if (quote_keys)
        render_quoted (renderer, key, FALSE);
      else
        render_value (renderer, key, FALSE);
      ox_render_control (renderer, ":");
      render_argument (renderer, yyjson_obj_iter_get_val (key), quote_keys);
    }
    ox_render_control (renderer, "}");
  } else if (yyjson_is_null (val)) {
    ox_render_control (renderer, "null");
  } else {
    render_value (renderer, val, FALSE);
  }
}

/* ---- Declarations ---- */

/* "[<|"|>a<|"|>,<|"|>b<|"|>]" */
static void
render_names (OxRenderer *renderer, yyjson_val *names, gboolean upper)
{
  yyjson_val *name;
  gsize i, max;

  ox_render_control (renderer, "[");
  ox_json_foreach_item (names, i, max, name) {
    ox_render_control (renderer, i > 0 ? "," : "");
    render_quoted (renderer, name, upper);
  }
  ox_render_control (renderer, "]");
}

static void render_properties (OxRenderer *renderer, yyjson_val *properties, gboolean only_own);

static void
render_items (OxRenderer *renderer, yyjson_val *items)
{
  g_autoptr (GPtrArray) keys = ox_value_sorted_keys (items);
  gboolean is_first = TRUE;

  ox_render_control (renderer, "items:{");
  for (guint i = 0; i < keys->len; i++) {
    yyjson_val *key = g_ptr_array_index (keys, i), *val = yyjson_obj_iter_get_val (key);

    if (yyjson_is_null (val))
      continue;
    ox_render_control (renderer, is_first ? "" : ",");
    is_first = FALSE;
    render_value (renderer, key, FALSE);
    ox_render_control (renderer, ":");
    if (yyjson_equals_str (key, "properties")) {
      ox_render_control (renderer, "{");
      if (yyjson_is_obj (val))
        render_properties (renderer, val, FALSE);
      ox_render_control (renderer, "}");
    } else if (yyjson_equals_str (key, "required")) {
      render_names (renderer, val, FALSE);
    } else if (yyjson_equals_str (key, "type")) {
      if (yyjson_is_str (val))
        render_quoted (renderer, val, TRUE);
      else
        render_names (renderer, val, TRUE);
    } else {
      render_argument (renderer, val, TRUE);
    }
  }
  ox_render_control (renderer, "}");
}

static gboolean
is_type (yyjson_val *schema, const char *name)
{
  const char *type = yyjson_get_str (yyjson_obj_get (schema, "type"));

  return type && g_ascii_strcasecmp (type, name) == 0;
}

/* "{description:…,…,type:…}", in the template's order; other keys of a schema are left out. */
static void
render_property (OxRenderer *renderer, yyjson_val *schema)
{
  yyjson_val *properties = yyjson_obj_get (schema, "properties"), *items = yyjson_obj_get (schema, "items");
  const char *comma = "";

  ox_render_control (renderer, "{");
  if (is_true (yyjson_obj_get (schema, "description"))) {
    ox_render_control (renderer, "description:");
    render_quoted (renderer, yyjson_obj_get (schema, "description"), FALSE);
    comma = ",";
  }
  if (is_type (schema, "string") && is_true (yyjson_obj_get (schema, "enum"))) {
    ox_render_control (renderer, comma);
    ox_render_control (renderer, "enum:");
    render_argument (renderer, yyjson_obj_get (schema, "enum"), TRUE);
    comma = ",";
  }
  if (is_type (schema, "array") && yyjson_is_obj (items) && is_true (items)) {
    ox_render_control (renderer, comma);
    render_items (renderer, items);
    comma = ",";
  }
  if (is_true (yyjson_obj_get (schema, "nullable"))) {
    ox_render_control (renderer, comma);
    ox_render_control (renderer, "nullable:true");
    comma = ",";
  }
  if (is_type (schema, "object")) {
    ox_render_control (renderer, comma);
    ox_render_control (renderer, "properties:{");
    /* An object without properties: whatever it has beside the standard keys. */
    render_properties (renderer, yyjson_is_obj (properties) ? properties : schema, !yyjson_is_obj (properties));
    ox_render_control (renderer, "}");
    comma = ",";
    if (is_true (yyjson_obj_get (schema, "required"))) {
      ox_render_control (renderer, ",required:");
      render_names (renderer, yyjson_obj_get (schema, "required"), FALSE);
    }
  }
  ox_render_control (renderer, comma);
  ox_render_control (renderer, "type:");
  render_quoted (renderer, yyjson_obj_get (schema, "type"), TRUE);
  ox_render_control (renderer, "}");
}

static gboolean
is_standard_key (yyjson_val *key)
{
  static const char *const names[] = { "description", "type", "properties", "required", "nullable" };

  for (gsize i = 0; i < G_N_ELEMENTS (names); i++) {
    if (yyjson_equals_str (key, names[i]))
      return TRUE;
  }
  return FALSE;
}

static void
render_properties (OxRenderer *renderer, yyjson_val *properties, gboolean only_own)
{
  g_autoptr (GPtrArray) keys = ox_value_sorted_keys (properties);
  gboolean is_first = TRUE;

  for (guint i = 0; i < keys->len; i++) {
    yyjson_val *key = g_ptr_array_index (keys, i);

    if (only_own && is_standard_key (key))
      continue;
    ox_render_control (renderer, is_first ? "" : ",");
    is_first = FALSE;
    render_value (renderer, key, FALSE);
    ox_render_control (renderer, ":");
    render_property (renderer, yyjson_obj_iter_get_val (key));
  }
}

void
ox_gemma4_render_declaration (OxRenderer *renderer, yyjson_val *tool)
{
  yyjson_val *function = yyjson_obj_get (tool, "function"), *parameters = yyjson_obj_get (function, "parameters");
  yyjson_val *response = yyjson_obj_get (function, "response");

  ox_render_control (renderer, "<|tool>declaration:");
  render_value (renderer, yyjson_obj_get (function, "name"), FALSE);
  ox_render_control (renderer, "{description:");
  render_quoted (renderer, yyjson_obj_get (function, "description"), FALSE);
  if (is_true (parameters)) {
    yyjson_val *properties = yyjson_obj_get (parameters, "properties");

    ox_render_control (renderer, ",parameters:{");
    if (is_true (properties)) {
      ox_render_control (renderer, "properties:{");
      render_properties (renderer, properties, FALSE);
      ox_render_control (renderer, "},");
    }
    if (is_true (yyjson_obj_get (parameters, "required"))) {
      ox_render_control (renderer, "required:");
      render_names (renderer, yyjson_obj_get (parameters, "required"), FALSE);
      ox_render_control (renderer, ",");
    }
    if (is_true (yyjson_obj_get (parameters, "type"))) {
      ox_render_control (renderer, "type:");
      render_quoted (renderer, yyjson_obj_get (parameters, "type"), TRUE);
      ox_render_control (renderer, "}");
    }
  }
  if (response) {
    ox_render_control (renderer, ",response:{");
    if (is_true (yyjson_obj_get (response, "description"))) {
      ox_render_control (renderer, "description:");
      render_quoted (renderer, yyjson_obj_get (response, "description"), FALSE);
      ox_render_control (renderer, ",");
    }
    if (is_type (response, "object")) {
      ox_render_control (renderer, "type:");
      render_quoted (renderer, yyjson_obj_get (response, "type"), TRUE);
      ox_render_control (renderer, "}");
    }
  }
  ox_render_control (renderer, "}<tool|>");
}

/* ---- Calls and results ---- */

/* An object without the braces around it. */
static void
render_members (OxRenderer *renderer, yyjson_val *object)
{
  g_autoptr (GPtrArray) keys = ox_value_sorted_keys (object);

  for (guint i = 0; i < keys->len; i++) {
    yyjson_val *key = g_ptr_array_index (keys, i);

    ox_render_control (renderer, i > 0 ? "," : "");
    render_value (renderer, key, FALSE);
    ox_render_control (renderer, ":");
    render_argument (renderer, yyjson_obj_iter_get_val (key), FALSE);
  }
}

void
ox_gemma4_render_call (OxRenderer *renderer, const OxToolCall *call)
{
  ox_render_control (renderer, "<|tool_call>call:");
  ox_render_string (renderer, call->name);
  ox_render_control (renderer, "{");
  render_members (renderer, ox_value_get_root (call->arguments));
  ox_render_control (renderer, "}<tool_call|>");
}

void
ox_gemma4_render_response (OxRenderer *renderer, const char *name, yyjson_val *val, const char *text)
{
  ox_render_control (renderer, "<|tool_response>response:");
  ox_render_string (renderer, name);
  ox_render_control (renderer, "{");
  if (yyjson_is_obj (val)) {
    render_members (renderer, val);
  } else {
    ox_render_control (renderer, "value:");
    if (val) {
      render_argument (renderer, val, FALSE);
    } else if (text) {
      ox_render_control (renderer, QUOTE);
      ox_render_string (renderer, text);
      ox_render_control (renderer, QUOTE);
    } else {
      ox_render_control (renderer, "null");
    }
  }
  ox_render_control (renderer, "}<tool_response|>");
}
