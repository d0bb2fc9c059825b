/* JSON schemas: from text to a graph. Every keyword is either understood or refused by name.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "text/ox-json-schema-private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io/ox-json.h"
#include "io/ox-quote.h"

#define MAX_BYTES (1u << 20)
#define MAX_NODES 20000
#define MAX_LETTERS (2u << 20)
#define MAX_PROPERTIES 2000 /* of one object */
#define MAX_NESTING 128
/* More than this has to be written at least: nobody means that. */
#define MAX_MIN_ITEMS 10000
#define MAX_MIN_LENGTH 100000

typedef enum {
  IS_STRING = 1 << 0,
  IS_NUMBER = 1 << 1,
  IS_INTEGER = 1 << 2,
  IS_OBJECT = 1 << 3,
  IS_ARRAY = 1 << 4,
  IS_BOOLEAN = 1 << 5,
  IS_NULL = 1 << 6,
} Types;

static const struct {
  const char *name;
  Types type;
} type_names[] = { { "string", IS_STRING }, { "number", IS_NUMBER }, { "integer", IS_INTEGER },
                   { "object", IS_OBJECT }, { "array", IS_ARRAY },   { "boolean", IS_BOOLEAN },
                   { "null", IS_NULL } };

typedef struct {
  OxJsonSchema *schema;
  yyjson_val *root;
  GHashTable *node_of; /* yyjson_val → node + 1 */
  GArray *one_ofs;
  guint32 any; /* the node of any value, or OX_SCHEMA_NONE: not made yet */
  guint nesting;
  GError **error;
} Parser;

static gboolean parse (Parser *parser, yyjson_val *val, const char *path, guint32 *node);

gboolean
ox_json_schema_fail (GError **error, OxError code, const char *path, const char *format, ...)
{
  g_autofree char *message = NULL;
  g_autofree char *place = ox_quote (*path ? path : "/", -1);
  va_list args;

  va_start (args, format);
  message = g_strdup_vprintf (format, args);
  va_end (args);
  g_set_error (error, OX_ERROR, code, "JSON schema: %s: %s", place, message);
  return FALSE;
}

#define fail(parser, ...) ox_json_schema_fail ((parser)->error, __VA_ARGS__)

/* ---- The graph ---- */

OxSchemaNode *
ox_json_schema_node (OxJsonSchema *schema, guint32 node)
{
  return &g_array_index (schema->nodes, OxSchemaNode, node);
}

static guint32
add_node (Parser *parser, OxSchemaKind kind)
{
  OxSchemaNode node = { .kind = kind, .height = OX_SCHEMA_NONE, .max = OX_SCHEMA_NONE, .child = OX_SCHEMA_NONE };

  g_array_append_val (parser->schema->nodes, node);
  return parser->schema->nodes->len - 1;
}

guint32
ox_json_schema_next_letter (const OxJsonSchema *schema, guint32 letter, guint8 byte)
{
  guint32 next = g_array_index (schema->letters, OxSchemaLetter, letter).child;

  while (next != 0 && g_array_index (schema->letters, OxSchemaLetter, next).byte != byte)
    next = g_array_index (schema->letters, OxSchemaLetter, next).next;
  return next;
}

static guint32
add_letter (OxJsonSchema *schema, OxSchemaLetter letter)
{
  g_array_append_val (schema->letters, letter);
  return schema->letters->len - 1;
}

static void
add_text (OxJsonSchema *schema, guint32 trie, const char *text, gsize len)
{
  guint32 at = trie;

  for (gsize i = 0; i < len; i++) {
    guint32 next = ox_json_schema_next_letter (schema, at, (guint8) text[i]);

    if (next == 0) {
      next =
        add_letter (schema, (OxSchemaLetter) { .byte = (guint8) text[i],
                                               .next = g_array_index (schema->letters, OxSchemaLetter, at).child });
      g_array_index (schema->letters, OxSchemaLetter, at).child = next;
    }
    at = next;
  }
  g_array_index (schema->letters, OxSchemaLetter, at).is_end = TRUE;
}

/* A union of @members, which are gathered while others may be, so they are copied. */
static guint32
add_union (Parser *parser, const GArray *members)
{
  guint32 node = add_node (parser, OX_SCHEMA_UNION);
  OxSchemaNode *self = ox_json_schema_node (parser->schema, node);

  self->first = parser->schema->members->len;
  self->n = members->len;
  g_array_append_vals (parser->schema->members, members->data, members->len);
  return node;
}

static guint32
add_literals (Parser *parser, const char *const *texts)
{
  guint32 node = add_node (parser, OX_SCHEMA_LITERALS), trie = add_letter (parser->schema, (OxSchemaLetter) { 0 });

  ox_json_schema_node (parser->schema, node)->trie = trie;
  for (; *texts; texts++)
    add_text (parser->schema, trie, *texts, strlen (*texts));
  return node;
}

/* Any value at all. */
static guint32
any_node (Parser *parser)
{
  static const char *const words[] = { "true", "false", "null", NULL };
  g_autoptr (GArray) members = NULL;
  guint32 parts[5], list, object;

  if (parser->any != OX_SCHEMA_NONE)
    return parser->any;
  members = g_array_new (FALSE, FALSE, sizeof (guint32));
  parts[0] = add_literals (parser, words);
  parts[1] = add_node (parser, OX_SCHEMA_STRING);
  parts[2] = add_node (parser, OX_SCHEMA_NUMBER);
  parts[3] = list = add_node (parser, OX_SCHEMA_ARRAY);
  parts[4] = object = add_node (parser, OX_SCHEMA_OBJECT);
  g_array_append_vals (members, parts, G_N_ELEMENTS (parts));
  parser->any = add_union (parser, members);
  ox_json_schema_node (parser->schema, list)->child = ox_json_schema_node (parser->schema, object)->child = parser->any;
  ox_json_schema_node (parser->schema, object)->trie = add_letter (parser->schema, (OxSchemaLetter) { 0 });
  return parser->any;
}

/* ---- Keywords ---- */

static gboolean
is_one_of (const char *name, const char *const *names)
{
  return g_strv_contains (names, name);
}

/* What says nothing about values. */
static const char *const annotations[] = { "title",       "description", "default",  "examples",  "example",
                                           "$schema",     "$id",         "$comment", "$anchor",   "$defs",
                                           "definitions", "deprecated",  "readOnly", "writeOnly", NULL };
static const char *const keywords[] = { "type",      "properties", "required", "additionalProperties",
                                        "items",     "minItems",   "maxItems", "minLength",
                                        "maxLength", "enum",       "const",    "anyOf",
                                        "oneOf",     "allOf",      "$ref",     NULL };

static gboolean
check_keywords (Parser *parser, yyjson_val *val, const char *path)
{
  yyjson_obj_iter iter = yyjson_obj_iter_with (val);
  yyjson_val *key;

  while ((key = yyjson_obj_iter_next (&iter))) {
    const char *name = yyjson_get_str (key);
    g_autofree char *quoted = NULL;

    if (is_one_of (name, annotations) || is_one_of (name, keywords))
      continue;
    quoted = ox_quote (name, -1);
    if (strcmp (name, "pattern") == 0)
      return fail (
        parser, OX_ERROR_UNSUPPORTED, path,
        "“pattern” is not supported: strings cannot be held to a regular expression; use “enum” or a description");
    return fail (parser, OX_ERROR_UNSUPPORTED, path, "the keyword “%s” is not supported", quoted);
  }
  return TRUE;
}

/* Refuses keywords other than @name, descriptions and those of @also. */
static gboolean
check_alone (Parser *parser, yyjson_val *val, const char *path, const char *name, const char *const *also)
{
  for (gsize i = 0; keywords[i]; i++) {
    if (yyjson_obj_get (val, keywords[i]) && strcmp (keywords[i], name) != 0 && !is_one_of (keywords[i], also))
      return fail (parser, OX_ERROR_UNSUPPORTED, path, "“%s” beside “%s” is not supported", keywords[i], name);
  }
  return TRUE;
}

static gboolean
read_count (Parser *parser, yyjson_val *val, const char *path, const char *name, guint32 most, guint32 *count)
{
  yyjson_val *number = yyjson_obj_get (val, name);
  double x = yyjson_get_num (number);

  if (!number)
    return TRUE;
  if (!yyjson_is_num (number) || !(x >= 0) || floor (x) != x)
    return fail (parser, OX_ERROR_INVALID, path, "“%s” is not a whole number of 0 or more", name);
  if (x > most)
    return fail (parser, OX_ERROR_UNSUPPORTED, path, "“%s” is %.0f; at most %u is supported", name, x, most);
  *count = (guint32) x;
  return TRUE;
}

static gboolean
read_range (Parser *parser,
            yyjson_val *val,
            const char *path,
            const char *min_name,
            const char *max_name,
            guint32 most,
            guint32 node)
{
  guint32 min = 0, max = OX_SCHEMA_NONE;

  if (!read_count (parser, val, path, min_name, most, &min) ||
      !read_count (parser, val, path, max_name, OX_SCHEMA_NONE - 1, &max))
    return FALSE;
  if (min > max)
    return fail (parser, OX_ERROR_INVALID, path, "“%s” is more than “%s”", min_name, max_name);
  ox_json_schema_node (parser->schema, node)->min = min;
  ox_json_schema_node (parser->schema, node)->max = max;
  return TRUE;
}

static gboolean
read_types (Parser *parser, yyjson_val *val, const char *path, Types *types)
{
  yyjson_val *type = yyjson_obj_get (val, "type"), *item;
  gboolean is_list = yyjson_is_arr (type);
  gsize n = is_list ? yyjson_arr_size (type) : 1;

  *types = 0;
  for (gsize i = 0; i < n; i++) {
    gsize k = 0;

    item = is_list ? yyjson_arr_get (type, i) : type;
    while (k < G_N_ELEMENTS (type_names) && !yyjson_equals_str (item, type_names[k].name))
      k++;
    if (k == G_N_ELEMENTS (type_names)) {
      g_autofree char *quoted = ox_quote (yyjson_is_str (item) ? yyjson_get_str (item) : ox_json_describe (item), -1);

      return fail (parser, OX_ERROR_INVALID, path, "“type” is “%s”, which is no type", quoted);
    }
    *types |= type_names[k].type;
  }
  if (*types == 0)
    return fail (parser, OX_ERROR_INVALID, path, "“type” is an empty list");
  return TRUE;
}

/* ---- Literals ---- */

static Types
types_of_value (yyjson_val *val)
{
  if (yyjson_is_str (val))
    return IS_STRING;
  if (yyjson_is_real (val))
    return floor (yyjson_get_real (val)) == yyjson_get_real (val) ? IS_NUMBER | IS_INTEGER : IS_NUMBER;
  if (yyjson_is_num (val))
    return IS_NUMBER | IS_INTEGER;
  if (yyjson_is_obj (val))
    return IS_OBJECT;
  if (yyjson_is_arr (val))
    return IS_ARRAY;
  return yyjson_is_bool (val) ? IS_BOOLEAN : IS_NULL;
}

/* As JSON; whole numbers without a point, so that equal ones have equal texts. */
static char *
write_value (yyjson_val *val)
{
  double x = yyjson_get_real (val);
  char *written, *copy;

  if (yyjson_is_real (val) && floor (x) == x && fabs (x) < 1e15)
    return g_strdup_printf ("%.0f", x == 0 ? 0 : x);
  written = yyjson_val_write (val, YYJSON_WRITE_NOFLAG, NULL);
  copy = g_strdup (written ? written : "null");
  free (written);
  return copy;
}

static gboolean
parse_literals (Parser *parser, yyjson_val *val, const char *path, guint32 *node)
{
  static const char *const also[] = { "type", "enum", "const", NULL };
  yyjson_val *list = yyjson_obj_get (val, "enum"), *constant = yyjson_obj_get (val, "const"), *item;
  g_autoptr (GPtrArray) texts = g_ptr_array_new_with_free_func (g_free);
  Types types = ~0u;
  gsize n;

  if (list && !yyjson_is_arr (list))
    return fail (parser, OX_ERROR_INVALID, path, "“enum” is %s, a list was expected", ox_json_describe (list));
  if (!check_alone (parser, val, path, list ? "enum" : "const", also) ||
      (yyjson_obj_get (val, "type") && !read_types (parser, val, path, &types)))
    return FALSE;
  n = list ? yyjson_arr_size (list) : 1;
  for (gsize i = 0; i < n; i++) {
    item = list ? yyjson_arr_get (list, i) : constant;
    if (types_of_value (item) & types && (!list || !constant || yyjson_equals (item, constant)))
      g_ptr_array_add (texts, write_value (item));
  }
  if (texts->len == 0)
    return fail (parser, OX_ERROR_INVALID, path, "no value of “%s” fits the other keywords", list ? "enum" : "const");
  g_ptr_array_add (texts, NULL);
  *node = add_literals (parser, (const char *const *) texts->pdata);
  return TRUE;
}

/* ---- Arrays and objects ---- */

static gboolean
parse_at (Parser *parser, yyjson_val *val, const char *path, const char *name, guint32 *node)
{
  g_autofree char *place = g_strdup_printf ("%s/%s", path, name);

  return parse (parser, val, place, node);
}

static gboolean
parse_array (Parser *parser, yyjson_val *val, const char *path, guint32 *node)
{
  yyjson_val *items = yyjson_obj_get (val, "items");
  guint32 self = *node = add_node (parser, OX_SCHEMA_ARRAY), child;

  if (!read_range (parser, val, path, "minItems", "maxItems", MAX_MIN_ITEMS, self))
    return FALSE;
  if (!items)
    child = any_node (parser);
  else if (!parse_at (parser, items, path, "items", &child))
    return FALSE;
  ox_json_schema_node (parser->schema, self)->child = child;
  return TRUE;
}

static void
add_property (Parser *parser, GArray *properties, yyjson_val *name, guint32 node)
{
  g_autofree char *text = write_value (name);
  OxSchemaProperty property = { .node = node };

  property.text = g_strdup (text + 1);
  property.len = strlen (property.text);
  g_ptr_array_add (parser->schema->texts, (gpointer) property.text);
  g_array_append_val (properties, property);
}

/* Marks what is required; names that are not among the properties become some, with the schema of additional ones. */
static gboolean
read_required (Parser *parser, yyjson_val *val, const char *path, GArray *properties, guint32 trie, guint32 additional)
{
  yyjson_val *required = yyjson_obj_get (val, "required"), *declared = yyjson_obj_get (val, "properties"), *name;
  gsize i, max;

  if (required && !yyjson_is_arr (required))
    return fail (parser, OX_ERROR_INVALID, path, "“required” is %s, a list of names was expected",
                 ox_json_describe (required));
  if (yyjson_arr_size (required) > MAX_PROPERTIES)
    return fail (parser, OX_ERROR_UNSUPPORTED, path, "“required” names more than %u members", MAX_PROPERTIES);
  ox_json_foreach_item (required, i, max, name) {
    g_autofree char *text = yyjson_is_str (name) ? write_value (name) : NULL;
    guint k = 0;

    if (!text)
      return fail (parser, OX_ERROR_INVALID, path, "“required” has %s, names were expected", ox_json_describe (name));
    while (k < properties->len && strcmp (g_array_index (properties, OxSchemaProperty, k).text, text + 1) != 0)
      k++;
    if (k == properties->len) {
      guint32 node = yyjson_obj_get (val, "additionalProperties") || !declared ? additional : any_node (parser);

      if (node == OX_SCHEMA_NONE) {
        g_autofree char *quoted = ox_quote (yyjson_get_str (name), -1);

        return fail (parser, OX_ERROR_INVALID, path, "“required” names “%s”, which “properties” does not have", quoted);
      }
      add_property (parser, properties, name, node);
      add_text (parser->schema, trie, yyjson_get_str (name), yyjson_get_len (name));
    }
    g_array_index (properties, OxSchemaProperty, k).required = TRUE;
  }
  return TRUE;
}

static gboolean
parse_object (Parser *parser, yyjson_val *val, const char *path, guint32 *node)
{
  yyjson_val *declared = yyjson_obj_get (val, "properties"), *key,
             *other = yyjson_obj_get (val, "additionalProperties");
  g_autoptr (GArray) properties = g_array_new (FALSE, TRUE, sizeof (OxSchemaProperty));
  yyjson_obj_iter iter = yyjson_obj_iter_with (declared);
  guint32 self = *node = add_node (parser, OX_SCHEMA_OBJECT), additional = OX_SCHEMA_NONE;
  guint32 trie = add_letter (parser->schema, (OxSchemaLetter) { 0 });

  if (declared && !yyjson_is_obj (declared))
    return fail (parser, OX_ERROR_INVALID, path, "“properties” is %s, an object was expected",
                 ox_json_describe (declared));
  while ((key = yyjson_obj_iter_next (&iter))) {
    g_autofree char *name = g_strdup_printf ("properties/%s", yyjson_get_str (key));
    guint32 child;

    if (!parse_at (parser, yyjson_obj_iter_get_val (key), path, name, &child))
      return FALSE;
    add_property (parser, properties, key, child);
    add_text (parser->schema, trie, yyjson_get_str (key), yyjson_get_len (key));
  }
  if (other ? yyjson_is_true (other) : !declared)
    additional = any_node (parser);
  else if (other && !yyjson_is_false (other) && !parse_at (parser, other, path, "additionalProperties", &additional))
    return FALSE;
  if (!read_required (parser, val, path, properties, trie, additional))
    return FALSE;
  if (properties->len > MAX_PROPERTIES)
    return fail (parser, OX_ERROR_UNSUPPORTED, path, "has %u properties; at most %u are supported", properties->len,
                 MAX_PROPERTIES);
  ox_json_schema_node (parser->schema, self)->child = additional;
  ox_json_schema_node (parser->schema, self)->trie = trie;
  ox_json_schema_node (parser->schema, self)->first = parser->schema->properties->len;
  ox_json_schema_node (parser->schema, self)->n = properties->len;
  g_array_append_vals (parser->schema->properties, properties->data, properties->len);
  return TRUE;
}

/* ---- Choices and references ---- */

static gboolean
parse_choice (Parser *parser, yyjson_val *val, const char *path, const char *name, guint32 *node)
{
  static const char *const none[] = { NULL };
  g_autoptr (GArray) members = g_array_new (FALSE, FALSE, sizeof (guint32));
  yyjson_val *list = yyjson_obj_get (val, name), *item;
  gsize i, max;

  if (!yyjson_is_arr (list) || yyjson_arr_size (list) == 0)
    return fail (parser, OX_ERROR_INVALID, path, "“%s” is %s, a list of schemas was expected", name,
                 yyjson_is_arr (list) ? "empty" : ox_json_describe (list));
  if (!check_alone (parser, val, path, name, none))
    return FALSE;
  if (strcmp (name, "allOf") == 0 && yyjson_arr_size (list) > 1)
    return fail (parser, OX_ERROR_UNSUPPORTED, path, "“allOf” of several schemas is not supported");
  ox_json_foreach_item (list, i, max, item) {
    g_autofree char *place = g_strdup_printf ("%s/%" G_GSIZE_FORMAT, name, i);
    guint32 member;

    if (!parse_at (parser, item, path, place, &member))
      return FALSE;
    g_array_append_val (members, member);
  }
  *node = add_union (parser, members);
  if (strcmp (name, "oneOf") == 0) {
    OxSchemaOneOf one_of = { ox_json_schema_node (parser->schema, *node)->first, members->len, g_strdup (path) };

    g_array_append_val (parser->one_ofs, one_of);
  }
  return TRUE;
}

static gboolean
parse_ref (Parser *parser, yyjson_val *val, const char *path, guint32 *node)
{
  static const char *const none[] = { NULL };
  const char *ref = yyjson_get_str (yyjson_obj_get (val, "$ref"));
  yyjson_val *target = NULL;

  if (!check_alone (parser, val, path, "$ref", none))
    return FALSE;
  if (ref && strcmp (ref, "#") == 0)
    target = parser->root;
  else if (ref && g_str_has_prefix (ref, "#/"))
    target = yyjson_ptr_get (parser->root, ref + 1);
  if (!target) {
    g_autofree char *quoted = ox_quote (ref ? ref : "", -1);

    return fail (parser, OX_ERROR_INVALID, path, "“$ref” is “%s”, which is no place in this schema", quoted);
  }
  return parse (parser, target, ref + 1, node);
}

/* ---- One schema ---- */

static Types
guess_types (yyjson_val *val)
{
  if (yyjson_obj_get (val, "properties") || yyjson_obj_get (val, "required") ||
      yyjson_obj_get (val, "additionalProperties"))
    return IS_OBJECT;
  if (yyjson_obj_get (val, "items") || yyjson_obj_get (val, "minItems") || yyjson_obj_get (val, "maxItems"))
    return IS_ARRAY;
  if (yyjson_obj_get (val, "minLength") || yyjson_obj_get (val, "maxLength"))
    return IS_STRING;
  return 0;
}

static gboolean
parse_type (Parser *parser, yyjson_val *val, const char *path, Types type, guint32 *node)
{
  static const char *const booleans[] = { "true", "false", NULL }, *const null[] = { "null", NULL };

  switch (type) {
  case IS_STRING:
    *node = add_node (parser, OX_SCHEMA_STRING);
    return read_range (parser, val, path, "minLength", "maxLength", MAX_MIN_LENGTH, *node);
  case IS_NUMBER:
    *node = add_node (parser, OX_SCHEMA_NUMBER);
    return TRUE;
  case IS_INTEGER:
    *node = add_node (parser, OX_SCHEMA_INTEGER);
    return TRUE;
  case IS_OBJECT:
    return parse_object (parser, val, path, node);
  case IS_ARRAY:
    return parse_array (parser, val, path, node);
  case IS_BOOLEAN:
  case IS_NULL:
    break;
  }
  *node = add_literals (parser, type == IS_BOOLEAN ? booleans : null);
  return TRUE;
}

static gboolean
parse_types (Parser *parser, yyjson_val *val, const char *path, guint32 *node)
{
  g_autoptr (GArray) members = g_array_new (FALSE, FALSE, sizeof (guint32));
  Types types = 0;

  if (!yyjson_obj_get (val, "type"))
    types = guess_types (val);
  else if (!read_types (parser, val, path, &types))
    return FALSE;
  if (types == 0) {
    *node = any_node (parser);
    return TRUE;
  }
  if (types & IS_NUMBER)
    types &= ~(Types) IS_INTEGER;
  for (gsize i = 0; i < G_N_ELEMENTS (type_names); i++) {
    guint32 member;

    if (!(types & type_names[i].type))
      continue;
    if (!parse_type (parser, val, path, type_names[i].type, &member))
      return FALSE;
    g_array_append_val (members, member);
  }
  *node = add_union (parser, members);
  return TRUE;
}

static gboolean
parse_object_schema (Parser *parser, yyjson_val *val, const char *path, guint32 *node)
{
  if (!check_keywords (parser, val, path))
    return FALSE;
  if (yyjson_obj_get (val, "$ref"))
    return parse_ref (parser, val, path, node);
  if (yyjson_obj_get (val, "enum") || yyjson_obj_get (val, "const"))
    return parse_literals (parser, val, path, node);
  for (const char *const *name = (const char *const[]) { "anyOf", "oneOf", "allOf", NULL }; *name; name++) {
    if (yyjson_obj_get (val, *name))
      return parse_choice (parser, val, path, *name, node);
  }
  return parse_types (parser, val, path, node);
}

/* Each schema has a union as its entry that is there before its content is read, so that it can refer to itself. */
static gboolean
parse (Parser *parser, yyjson_val *val, const char *path, guint32 *node)
{
  OxJsonSchema *schema = parser->schema;
  gpointer known = g_hash_table_lookup (parser->node_of, val);
  guint32 content;
  gboolean ok;

  if (known) {
    *node = GPOINTER_TO_UINT (known) - 1;
    return TRUE;
  }
  if (schema->nodes->len > MAX_NODES || schema->letters->len > MAX_LETTERS)
    return fail (parser, OX_ERROR_UNSUPPORTED, path, "the schema is too large");
  if (parser->nesting >= MAX_NESTING)
    return fail (parser, OX_ERROR_UNSUPPORTED, path, "the schema is nested more than %d deep", MAX_NESTING);
  *node = add_node (parser, OX_SCHEMA_UNION);
  g_hash_table_insert (parser->node_of, val, GUINT_TO_POINTER (*node + 1));
  if (yyjson_is_false (val)) {
    ox_json_schema_node (schema, *node)->kind = OX_SCHEMA_NOTHING;
    return TRUE;
  }
  if (!yyjson_is_obj (val) && !yyjson_is_true (val))
    return fail (parser, OX_ERROR_INVALID, path, "is %s, a schema was expected", ox_json_describe (val));
  parser->nesting++;
  content = yyjson_is_true (val) ? any_node (parser) : 0;
  ok = yyjson_is_true (val) || parse_object_schema (parser, val, path, &content);
  parser->nesting--;
  ox_json_schema_node (schema, *node)->first = schema->members->len;
  ox_json_schema_node (schema, *node)->n = 1;
  g_array_append_val (schema->members, content);
  return ok;
}

/* ---- Life ---- */

static void
one_of_clear (gpointer one_of)
{
  g_free (((OxSchemaOneOf *) one_of)->path);
}

OxJsonSchema *
ox_json_schema_parse (const char *text, GError **error)
{
  g_autoptr (OxJsonSchema) schema = g_new0 (OxJsonSchema, 1);
  g_autoptr (GHashTable) node_of = g_hash_table_new (NULL, NULL);
  g_autoptr (GArray) one_ofs = g_array_new (FALSE, FALSE, sizeof (OxSchemaOneOf));
  g_autoptr (GError) local = NULL;
  g_autoptr (OxJson) json = NULL;
  Parser parser = { schema, NULL, node_of, one_ofs, OX_SCHEMA_NONE, 0, error };
  gsize len = strlen (text);

  schema->nodes = g_array_new (FALSE, FALSE, sizeof (OxSchemaNode));
  schema->properties = g_array_new (FALSE, FALSE, sizeof (OxSchemaProperty));
  schema->members = g_array_new (FALSE, FALSE, sizeof (guint32));
  schema->letters = g_array_new (FALSE, FALSE, sizeof (OxSchemaLetter));
  schema->texts = g_ptr_array_new_with_free_func (g_free);
  g_array_set_clear_func (one_ofs, one_of_clear);
  add_letter (schema, (OxSchemaLetter) { 0 });
  if (len > MAX_BYTES) {
    fail (&parser, OX_ERROR_UNSUPPORTED, "", "has %" G_GSIZE_FORMAT " bytes; at most %u are supported", len, MAX_BYTES);
    return NULL;
  }
  json = ox_json_parse (text, len, "JSON schema", &local);
  if (!json) {
    g_set_error_literal (error, OX_ERROR, OX_ERROR_INVALID, local->message);
    return NULL;
  }
  parser.root = ox_json_get_root (json);
  if (!parse (&parser, parser.root, "", &schema->root) || !ox_json_schema_check (schema, one_ofs, error))
    return NULL;
  return g_steal_pointer (&schema);
}

void
ox_json_schema_free (OxJsonSchema *schema)
{
  if (!schema)
    return;
  g_clear_pointer (&schema->nodes, g_array_unref);
  g_clear_pointer (&schema->properties, g_array_unref);
  g_clear_pointer (&schema->members, g_array_unref);
  g_clear_pointer (&schema->letters, g_array_unref);
  g_clear_pointer (&schema->texts, g_ptr_array_unref);
  g_free (schema);
}
