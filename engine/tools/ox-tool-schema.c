/* What a tool's declaration says about the arguments of a call, and whether a call keeps to it.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "tools/ox-tool-schema.h"

#include <stdlib.h>
#include <string.h>

#include "oxinfer.h"
#include "text/ox-utf8.h"

#define MAX_NAME 64
/* A document to put arguments into tools, not a limit that people should meet. */
#define MAX_ARGUMENTS (4u << 20)
/* Of a value, in messages. */
#define MAX_SHOWN 60

/* ---- Declarations ---- */

static gboolean invalid (GError **error, const char *format, ...) G_GNUC_PRINTF (2, 3);

static gboolean
invalid (GError **error, const char *format, ...)
{
  va_list args;

  va_start (args, format);
  if (error)
    *error = g_error_new_valist (OX_ERROR, OX_ERROR_INVALID, format, args);
  va_end (args);
  return FALSE;
}

static yyjson_val *
get_function (const OxValue *declaration)
{
  return yyjson_obj_get (ox_value_get_root (declaration), "function");
}

/* The characters that every chat format can write as a name. */
static gboolean
name_is_good (yyjson_val *name)
{
  const char *text = yyjson_get_str (name);
  gsize len = yyjson_get_len (name);

  if (!text || len == 0 || len > MAX_NAME)
    return FALSE;
  for (gsize i = 0; i < len; i++)
    if (!g_ascii_isalnum (text[i]) && text[i] != '_' && text[i] != '-' && text[i] != '.')
      return FALSE;
  return TRUE;
}

static gboolean
check_parameters (const char *name, yyjson_val *parameters, GError **error)
{
  yyjson_val *properties = yyjson_obj_get (parameters, "properties");
  yyjson_val *required = yyjson_obj_get (parameters, "required");
  yyjson_val *key, *val;
  size_t i, n;

  if (!yyjson_is_obj (parameters) || !yyjson_equals_str (yyjson_obj_get (parameters, "type"), "object"))
    return invalid (error, "Tool “%s”: “parameters” has to be a schema with “type”: “object”", name);
  if (properties && !yyjson_is_obj (properties))
    return invalid (error, "Tool “%s”: “properties” has to be an object", name);
  ox_json_foreach_member (properties, i, n, key, val) {
    if (!yyjson_is_obj (val))
      return invalid (error, "Tool “%s”: the schema of “%s” has to be an object", name, yyjson_get_str (key));
  }
  if (required && !yyjson_is_arr (required))
    return invalid (error, "Tool “%s”: “required” has to be an array of names", name);
  ox_json_foreach_item (required, i, n, val) {
    if (!yyjson_is_str (val) || !yyjson_obj_getn (properties, yyjson_get_str (val), yyjson_get_len (val)))
      return invalid (error, "Tool “%s”: “required” has to name properties, and number %" G_GSIZE_FORMAT " is none",
                      name, (gsize) i + 1);
  }
  return TRUE;
}

gboolean
ox_tool_declaration_check (const OxValue *declaration, GError **error)
{
  yyjson_val *root = ox_value_get_root (declaration);
  yyjson_val *function = get_function (declaration);
  yyjson_val *name = yyjson_obj_get (function, "name");
  yyjson_val *description = yyjson_obj_get (function, "description");
  yyjson_val *parameters = yyjson_obj_get (function, "parameters");

  if (!yyjson_equals_str (yyjson_obj_get (root, "type"), "function") || !yyjson_is_obj (function))
    return invalid (error,
                    "A tool's declaration has to be a JSON object with “type”: “function” and an object “function”");
  if (!name_is_good (name))
    return invalid (error, "A tool's “name” has to be a string of 1 to %d letters, digits, “_”, “-” and “.” of ASCII",
                    MAX_NAME);
  if (description && !yyjson_is_str (description))
    return invalid (error, "Tool “%s”: “description” has to be a string", yyjson_get_str (name));
  return !parameters || check_parameters (yyjson_get_str (name), parameters, error);
}

const char *
ox_tool_declaration_get_name (const OxValue *declaration)
{
  return yyjson_get_str (yyjson_obj_get (get_function (declaration), "name"));
}

/* ---- Calls ---- */

/* What a message says about a value: its JSON, cut when long. */
static char *
show (yyjson_val *val)
{
  g_autoptr (GString) text = g_string_new (NULL);
  gsize end = MAX_SHOWN;

  ox_value_append_json (text, val);
  if (text->len > MAX_SHOWN) {
    while (end > 0 && ((guint8) text->str[end] & 0xc0) == 0x80)
      end--;
    g_string_truncate (text, end);
    g_string_append (text, "…");
  }
  return g_string_free (g_steal_pointer (&text), FALSE);
}

static gboolean
type_allows (yyjson_val *type, const char *name)
{
  yyjson_val *val;
  size_t i, n;

  if (yyjson_is_str (type))
    return yyjson_equals_str (type, name);
  ox_json_foreach_item (type, i, n, val) {
    if (yyjson_equals_str (val, name))
      return TRUE;
  }
  return FALSE;
}

static gboolean
type_is_known (yyjson_val *type)
{
  static const char *const names[] = { "string", "number", "integer", "boolean", "array", "object", "null" };

  for (gsize i = 0; i < G_N_ELEMENTS (names); i++)
    if (type_allows (type, names[i]))
      return TRUE;
  return FALSE;
}

static char *
type_to_text (yyjson_val *type)
{
  g_autoptr (GString) text = g_string_new (yyjson_get_str (type));
  yyjson_val *val;
  size_t i, n;

  ox_json_foreach_item (type, i, n, val) {
    if (yyjson_is_str (val))
      g_string_append_printf (text, "%s%s", text->len > 0 ? " or " : "", yyjson_get_str (val));
  }
  return g_string_free (g_steal_pointer (&text), FALSE);
}

/* Length of the JSON number that is all of @text but white space around it, and where it begins; 0 when it is none. */
static gsize
find_number (const char *text, gsize len, gsize *begin)
{
  gsize i, first;

  while (len > 0 && g_ascii_isspace (text[len - 1]))
    len--;
  for (i = 0; i < len && g_ascii_isspace (text[i]); i++)
    ;
  *begin = i;
  if (i < len && text[i] == '-')
    i++;
  first = i;
  while (i < len && g_ascii_isdigit (text[i]))
    i++;
  if (i == first || (text[first] == '0' && i > first + 1))
    return 0;
  if (i < len && text[i] == '.') {
    first = ++i;
    while (i < len && g_ascii_isdigit (text[i]))
      i++;
    if (i == first)
      return 0;
  }
  if (i < len && (text[i] == 'e' || text[i] == 'E')) {
    i++;
    if (i < len && (text[i] == '+' || text[i] == '-'))
      i++;
    first = i;
    while (i < len && g_ascii_isdigit (text[i]))
      i++;
    if (i == first)
      return 0;
  }
  return i == len ? i - *begin : 0;
}

/* Length of the part of a number that is an integer: "3", "3.0", "-7"; 0 when it has a fraction or an exponent. */
static gsize
integer_length (const char *number, gsize len)
{
  gsize end = 0;

  while (end < len && number[end] != '.')
    end++;
  for (gsize i = 0; i < end; i++)
    if (number[i] == 'e' || number[i] == 'E')
      return 0;
  for (gsize i = end + 1; i < len; i++)
    if (number[i] != '0')
      return 0;
  return end;
}

/* JSON text allows U+0000 in strings, C's strings do not. */
static yyjson_mut_val *
copy_string (yyjson_mut_doc *doc, const char *text, gsize len)
{
  g_autoptr (GString) clean = NULL;

  if (!memchr (text, '\0', len))
    return yyjson_mut_strncpy (doc, text, len);
  clean = g_string_sized_new (len + 16);
  for (gsize i = 0; i < len; i++) {
    if (text[i] == '\0')
      g_string_append (clean, "\357\277\275");
    else
      g_string_append_c (clean, text[i]);
  }
  return yyjson_mut_strncpy (doc, clean->str, clean->len);
}

static yyjson_mut_val *check_object (
  yyjson_mut_doc *doc, yyjson_val *schema, yyjson_val *object, const char *where, guint depth, GError **error);
static yyjson_mut_val *check_value (
  yyjson_mut_doc *doc, yyjson_val *schema, yyjson_val *val, const char *where, guint depth, GError **error);

static yyjson_mut_val *
check_array (yyjson_mut_doc *doc, yyjson_val *schema, yyjson_val *array, const char *where, guint depth, GError **error)
{
  yyjson_mut_val *copy = yyjson_mut_arr (doc);
  yyjson_val *val;
  size_t i, n;

  ox_json_foreach_item (array, i, n, val) {
    g_autofree char *place = g_strdup_printf ("%s[%" G_GSIZE_FORMAT "]", where, (gsize) i);
    yyjson_mut_val *item = check_value (doc, yyjson_obj_get (schema, "items"), val, place, depth + 1, error);

    if (!item)
      return NULL;
    yyjson_mut_arr_append (copy, item);
  }
  return copy;
}

/* The value as it is, or as what @type wants when it can mean only one thing; NULL when it cannot. */
static yyjson_mut_val *
convert_scalar (yyjson_mut_doc *doc, yyjson_val *type, yyjson_val *val)
{
  gboolean any = !type_is_known (type);
  const char *text = yyjson_is_raw (val) ? yyjson_get_raw (val) : yyjson_get_str (val);
  gsize len = yyjson_get_len (val);
  gsize begin = 0, n;

  if (yyjson_is_null (val))
    return any || type_allows (type, "null") ? yyjson_mut_null (doc) : NULL;
  if (yyjson_is_bool (val))
    return any || type_allows (type, "boolean") ? yyjson_mut_bool (doc, yyjson_get_bool (val)) : NULL;
  if (!text)
    return NULL;
  if (yyjson_is_str (val) && (any || type_allows (type, "string")))
    return copy_string (doc, text, len);
  n = yyjson_is_raw (val) ? len : find_number (text, len, &begin);
  if (n > 0 && (type_allows (type, "number") || (any && yyjson_is_raw (val))))
    return yyjson_mut_rawncpy (doc, text + begin, n);
  if (n > 0 && type_allows (type, "integer") && (n = integer_length (text + begin, n)) > 0)
    return yyjson_mut_rawncpy (doc, text + begin, n);
  if (yyjson_is_raw (val))
    return type_allows (type, "string") ? yyjson_mut_strncpy (doc, text, len) : NULL;
  if (type_allows (type, "boolean") &&
      (g_ascii_strcasecmp (text, "true") == 0 || g_ascii_strcasecmp (text, "false") == 0))
    return yyjson_mut_bool (doc, g_ascii_strcasecmp (text, "true") == 0);
  return NULL;
}

/* @converted, or the value of @choices that it means; NULL when it means none. */
static yyjson_mut_val *
match_enum (yyjson_mut_doc *doc, yyjson_val *choices, yyjson_mut_val *converted)
{
  const char *text = yyjson_mut_get_str (converted);
  const char *raw = yyjson_mut_get_raw (converted);
  yyjson_val *val;
  size_t i, n;

  ox_json_foreach_item (choices, i, n, val) {
    if (yyjson_is_str (val) && text && g_ascii_strcasecmp (text, yyjson_get_str (val)) == 0)
      return yyjson_mut_strncpy (doc, yyjson_get_str (val), yyjson_get_len (val));
    if (yyjson_is_raw (val) && raw && strtod (raw, NULL) == strtod (yyjson_get_raw (val), NULL))
      return converted;
    if ((yyjson_is_null (val) && yyjson_mut_is_null (converted)) ||
        (yyjson_is_bool (val) && yyjson_mut_is_bool (converted) &&
         yyjson_get_bool (val) == yyjson_mut_get_bool (converted)))
      return converted;
  }
  return NULL;
}

static yyjson_mut_val *
check_value (yyjson_mut_doc *doc, yyjson_val *schema, yyjson_val *val, const char *where, guint depth, GError **error)
{
  yyjson_val *type = yyjson_obj_get (schema, "type");
  yyjson_val *choices = yyjson_obj_get (schema, "enum");
  yyjson_mut_val *converted = NULL;
  gboolean any = !type_is_known (type);

  /* OxValue bounds the depth of what is given; this keeps the recursion safe by itself. */
  if (depth > OX_VALUE_MAX_DEPTH) {
    invalid (error, "%s is nested too deeply", where);
    return NULL;
  }
  if (yyjson_is_obj (val) && (any || type_allows (type, "object")))
    return check_object (doc, schema, val, where, depth, error);
  if (yyjson_is_arr (val) && (any || type_allows (type, "array")))
    return check_array (doc, schema, val, where, depth, error);
  converted = convert_scalar (doc, type, val);
  if (!converted) {
    g_autofree char *wanted = type_to_text (type);
    g_autofree char *found = show (val);

    invalid (error, "%s has to be of type %s, not %s", where, wanted, found);
    return NULL;
  }
  if (yyjson_is_arr (choices)) {
    g_autofree char *found = show (val);
    g_autoptr (GString) list = g_string_new (NULL);

    converted = match_enum (doc, choices, converted);
    if (!converted) {
      ox_value_append_json (list, choices);
      invalid (error, "%s has to be one of %s, not %s", where, list->str, found);
      return NULL;
    }
  }
  return converted;
}

static gboolean
is_required (yyjson_val *schema, const char *key, gsize len)
{
  yyjson_val *val;
  size_t i, n;

  ox_json_foreach_item (yyjson_obj_get (schema, "required"), i, n, val) {
    if (yyjson_equals_strn (val, key, len))
      return TRUE;
  }
  return FALSE;
}

static void
append_names (GString *list, yyjson_val *schema)
{
  yyjson_val *key, *val;
  size_t i, n;

  ox_json_foreach_member (yyjson_obj_get (schema, "properties"), i, n, key, val) {
    g_string_append_printf (list, "%s“%s”", i > 0 ? ", " : "", yyjson_get_str (key));
  }
}

/* Refuses a property that the schema does not have. */
static yyjson_mut_val *
refuse_unknown (yyjson_val *schema, yyjson_val *key, const char *where, GError **error)
{
  g_autofree char *found = show (key);
  g_autoptr (GString) list = g_string_new (NULL);

  append_names (list, schema);
  if (list->len == 0)
    invalid (error, "%s takes nothing, but %s was given", where, found);
  else
    invalid (error, "%s: there is no %s. There is: %s", where, found, list->str);
  return NULL;
}

static yyjson_mut_val *
check_object (
  yyjson_mut_doc *doc, yyjson_val *schema, yyjson_val *object, const char *where, guint depth, GError **error)
{
  yyjson_val *properties = yyjson_obj_get (schema, "properties");
  yyjson_val *additional = yyjson_obj_get (schema, "additionalProperties");
  /* A schema without properties says nothing about them, unless it says that there are no others. */
  gboolean open = additional ? !yyjson_is_false (additional) : schema && !properties && depth > 0;
  yyjson_mut_val *copy = yyjson_mut_obj (doc);
  yyjson_val *key, *val;
  size_t i, n;

  ox_json_foreach_member (object, i, n, key, val) {
    const char *name = yyjson_get_str (key);
    yyjson_val *property = yyjson_obj_getn (properties, name, yyjson_get_len (key));
    g_autofree char *shown = show (key);
    g_autofree char *place = depth > 0 ? g_strdup_printf ("%s.%s", where, shown) : g_strdup (shown);
    yyjson_mut_val *checked;

    if (!property && !open && schema)
      return refuse_unknown (schema, key, where, error);
    if (property && yyjson_is_null (val) && !type_allows (yyjson_obj_get (property, "type"), "null") &&
        !is_required (schema, name, yyjson_get_len (key)))
      continue;
    checked = check_value (doc,
                           property                     ? property
                           : yyjson_is_obj (additional) ? additional
                                                        : NULL,
                           val, place, depth + 1, error);
    if (!checked)
      return NULL;
    yyjson_mut_obj_add (copy, copy_string (doc, name, yyjson_get_len (key)), checked);
  }
  ox_json_foreach_item (yyjson_obj_get (schema, "required"), i, n, val) {
    if (yyjson_is_str (val) && !yyjson_mut_obj_getn (copy, yyjson_get_str (val), yyjson_get_len (val))) {
      g_autoptr (GString) list = g_string_new (NULL);

      append_names (list, schema);
      invalid (error, "%s: “%s” is missing. There is: %s", where, yyjson_get_str (val), list->str);
      return NULL;
    }
  }
  return copy;
}

char *
ox_tool_arguments_check (const OxValue *declaration, const char *arguments, GError **error)
{
  yyjson_val *parameters = yyjson_obj_get (get_function (declaration), "parameters");
  gsize len = arguments ? strlen (arguments) : 0;
  const char *name = ox_tool_declaration_get_name (declaration);
  g_autoptr (OxValue) value = NULL;
  g_autoptr (GString) repaired = NULL;
  yyjson_mut_doc *doc;
  yyjson_mut_val *checked;
  char *written = NULL, *text = NULL;

  if (len > MAX_ARGUMENTS) {
    invalid (error, "%s: the arguments are longer than %u MB", name, MAX_ARGUMENTS >> 20);
    return NULL;
  }
  if (len > 0)
    repaired = ox_utf8_repair (arguments, len);
  if (repaired) {
    arguments = repaired->str;
    len = repaired->len;
  }
  /* A call without arguments is written in several ways. */
  if (len == 0 || strcmp (arguments, "null") == 0) {
    arguments = "{}";
    len = 2;
  }
  value = ox_value_parse (arguments, len, "arguments", error);
  if (!value)
    return NULL;
  if (!yyjson_is_obj (ox_value_get_root (value))) {
    g_autofree char *found = show (ox_value_get_root (value));

    invalid (error, "%s: the arguments have to be a JSON object, not %s", name, found);
    return NULL;
  }
  doc = yyjson_mut_doc_new (NULL);
  /* Without parameters in its declaration a tool takes none. */
  if (parameters) {
    checked = check_object (doc, parameters, ox_value_get_root (value), name, 0, error);
  } else if (yyjson_obj_size (ox_value_get_root (value)) == 0) {
    checked = yyjson_mut_obj (doc);
  } else {
    invalid (error, "%s takes no arguments", name);
    checked = NULL;
  }
  if (checked) {
    written = yyjson_mut_val_write (checked, YYJSON_WRITE_NOFLAG, NULL);
    /* Only without memory: what was parsed can be written. */
    if (written)
      text = g_strdup (written);
    else
      invalid (error, "%s: no memory for the arguments", name);
    free (written);
  }
  yyjson_mut_doc_free (doc);
  return text;
}
