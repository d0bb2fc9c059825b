/* JSON schemas: what follows from the whole graph. Unions are made flat; heights are a fixed point, which finds the values that have no
 * finite form; and alternatives of oneOf have to be told apart for sure.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "text/ox-json-schema-private.h"

#include <string.h>

#define MAX_MEMBERS 200000
#define MAX_HEIGHT 1000

/* ---- Unions and heights ---- */

/* Adds the members of @node that are no unions. @seen: the last union that was looked through for, by node. */
static void
gather (OxJsonSchema *schema, guint32 node, guint32 *seen, guint32 mark, GArray *out)
{
  g_autoptr (GArray) left = g_array_new (FALSE, FALSE, sizeof (guint32));

  g_array_append_val (left, node);
  while (left->len > 0) {
    guint32 at = g_array_index (left, guint32, left->len - 1);
    OxSchemaNode self = *ox_json_schema_node (schema, at);

    g_array_set_size (left, left->len - 1);
    if (seen[at] == mark)
      continue;
    seen[at] = mark;
    if (self.kind == OX_SCHEMA_UNION)
      g_array_append_vals (left, &g_array_index (schema->members, guint32, self.first), self.n);
    else if (self.kind != OX_SCHEMA_NOTHING)
      g_array_append_val (out, at);
  }
}

static gboolean
flatten (OxJsonSchema *schema, GError **error)
{
  g_autofree guint32 *seen = g_new0 (guint32, schema->nodes->len);
  g_autoptr (GArray) flat = g_array_new (FALSE, FALSE, sizeof (guint32));
  g_autoptr (GArray) firsts = g_array_new (FALSE, TRUE, sizeof (guint32));

  g_array_set_size (firsts, schema->nodes->len + 1);
  for (guint32 node = 0; node < schema->nodes->len; node++) {
    g_array_index (firsts, guint32, node) = flat->len;
    if (ox_json_schema_node (schema, node)->kind == OX_SCHEMA_UNION)
      gather (schema, node, seen, node + 1, flat);
    if (flat->len > MAX_MEMBERS)
      return ox_json_schema_fail (error, OX_ERROR_UNSUPPORTED, "", "the schema has too many alternatives");
  }
  g_array_index (firsts, guint32, schema->nodes->len) = flat->len;
  /* Those of oneOf are still needed as they were written. */
  for (guint32 node = 0; node < schema->nodes->len; node++) {
    OxSchemaNode *self = ox_json_schema_node (schema, node);

    if (self->kind != OX_SCHEMA_UNION)
      continue;
    self->first = schema->members->len + g_array_index (firsts, guint32, node);
    self->n = g_array_index (firsts, guint32, node + 1) - g_array_index (firsts, guint32, node);
  }
  g_array_append_vals (schema->members, flat->data, flat->len);
  return TRUE;
}

static guint32
height_of (OxJsonSchema *schema, const OxSchemaNode *node)
{
  guint32 height = 0;

  switch (node->kind) {
  case OX_SCHEMA_NOTHING:
    return OX_SCHEMA_NONE;
  case OX_SCHEMA_UNION:
    height = OX_SCHEMA_NONE;
    for (guint32 i = 0; i < node->n; i++)
      height =
        MIN (height, ox_json_schema_node (schema, g_array_index (schema->members, guint32, node->first + i))->height);
    return height;
  case OX_SCHEMA_OBJECT:
    for (guint32 i = 0; i < node->n; i++) {
      const OxSchemaProperty *property = &g_array_index (schema->properties, OxSchemaProperty, node->first + i);

      if (property->required)
        height = MAX (height, ox_json_schema_node (schema, property->node)->height);
    }
    return height == OX_SCHEMA_NONE ? height : height + 1;
  case OX_SCHEMA_ARRAY:
    height = node->min > 0 ? ox_json_schema_node (schema, node->child)->height : 0;
    return height == OX_SCHEMA_NONE ? height : height + 1;
  case OX_SCHEMA_LITERALS:
  case OX_SCHEMA_STRING:
  case OX_SCHEMA_NUMBER:
  case OX_SCHEMA_INTEGER:
    break;
  }
  return 0;
}

/* Heights only fall, each to the least that can be, so this ends. */
static gboolean
find_heights (OxJsonSchema *schema, GError **error)
{
  gboolean changed = TRUE;

  for (guint round = 0; changed && round <= MAX_HEIGHT + 1; round++) {
    changed = FALSE;
    for (guint32 node = schema->nodes->len; node-- > 0;) {
      guint32 height = height_of (schema, ox_json_schema_node (schema, node));

      changed |= height != ox_json_schema_node (schema, node)->height;
      ox_json_schema_node (schema, node)->height = height;
    }
  }
  if (ox_json_schema_node (schema, schema->root)->height > MAX_HEIGHT)
    return ox_json_schema_fail (error, OX_ERROR_INVALID, "", "there is no value that it allows, or none that ends");
  return TRUE;
}

/* ---- oneOf ---- */

static gboolean disjoint (OxJsonSchema *schema, guint32 a, guint32 b, guint depth);

static gboolean
share_text (OxJsonSchema *schema, guint32 a, guint32 b)
{
  g_autoptr (GArray) left = g_array_new (FALSE, FALSE, sizeof (guint32));

  g_array_append_val (left, a);
  g_array_append_val (left, b);
  while (left->len > 0) {
    guint32 x = g_array_index (left, guint32, left->len - 2), y = g_array_index (left, guint32, left->len - 1);

    g_array_set_size (left, left->len - 2);
    if (g_array_index (schema->letters, OxSchemaLetter, x).is_end &&
        g_array_index (schema->letters, OxSchemaLetter, y).is_end)
      return TRUE;
    for (guint32 child = g_array_index (schema->letters, OxSchemaLetter, x).child; child != 0;
         child = g_array_index (schema->letters, OxSchemaLetter, child).next) {
      guint32 other =
        ox_json_schema_next_letter (schema, y, g_array_index (schema->letters, OxSchemaLetter, child).byte);

      if (other != 0) {
        g_array_append_val (left, child);
        g_array_append_val (left, other);
      }
    }
  }
  return FALSE;
}

/* Whether some literal begins as values of @kind do. */
static gboolean
may_be (OxJsonSchema *schema, const OxSchemaNode *literals, OxSchemaKind kind)
{
  const char *begins = kind == OX_SCHEMA_STRING   ? "\""
                       : kind == OX_SCHEMA_OBJECT ? "{"
                       : kind == OX_SCHEMA_ARRAY  ? "["
                                                  : "-0123456789";

  for (; *begins; begins++) {
    if (ox_json_schema_next_letter (schema, literals->trie, (guint8) *begins) != 0)
      return TRUE;
  }
  return FALSE;
}

/* Two kinds of object are told apart by a member that both require and whose values differ. */
static gboolean
objects_disjoint (OxJsonSchema *schema, const OxSchemaNode *a, const OxSchemaNode *b, guint depth)
{
  for (guint32 i = 0; i < a->n; i++) {
    const OxSchemaProperty *p = &g_array_index (schema->properties, OxSchemaProperty, a->first + i);

    for (guint32 k = 0; k < b->n && p->required; k++) {
      const OxSchemaProperty *q = &g_array_index (schema->properties, OxSchemaProperty, b->first + k);

      if (q->required && strcmp (p->text, q->text) == 0 && disjoint (schema, p->node, q->node, depth + 1))
        return TRUE;
    }
  }
  return FALSE;
}

static gboolean
disjoint (OxJsonSchema *schema, guint32 a, guint32 b, guint depth)
{
  OxSchemaNode x = *ox_json_schema_node (schema, a), y = *ox_json_schema_node (schema, b);

  if (depth > 8)
    return FALSE;
  if (x.kind == OX_SCHEMA_UNION || y.kind == OX_SCHEMA_UNION) {
    const OxSchemaNode *choice = x.kind == OX_SCHEMA_UNION ? &x : &y;

    for (guint32 i = 0; i < choice->n; i++) {
      guint32 member = g_array_index (schema->members, guint32, choice->first + i);

      if (!disjoint (schema, member, choice == &x ? b : a, depth + 1))
        return FALSE;
    }
    return TRUE;
  }
  if (x.kind == OX_SCHEMA_NOTHING || y.kind == OX_SCHEMA_NOTHING)
    return TRUE;
  if (x.kind == OX_SCHEMA_LITERALS && y.kind == OX_SCHEMA_LITERALS)
    /* Equal arrays and objects may be written in several ways. */
    return !share_text (schema, x.trie, y.trie) &&
           !(may_be (schema, &x, OX_SCHEMA_ARRAY) && may_be (schema, &y, OX_SCHEMA_ARRAY)) &&
           !(may_be (schema, &x, OX_SCHEMA_OBJECT) && may_be (schema, &y, OX_SCHEMA_OBJECT));
  if (x.kind == OX_SCHEMA_LITERALS)
    return !may_be (schema, &x, y.kind);
  if (y.kind == OX_SCHEMA_LITERALS)
    return !may_be (schema, &y, x.kind);
  if (x.kind == OX_SCHEMA_OBJECT && y.kind == OX_SCHEMA_OBJECT)
    return objects_disjoint (schema, &x, &y, depth);
  return x.kind != y.kind && !(MIN (x.kind, y.kind) == OX_SCHEMA_NUMBER && MAX (x.kind, y.kind) == OX_SCHEMA_INTEGER);
}

static gboolean
check_one_ofs (OxJsonSchema *schema, const GArray *one_ofs, GError **error)
{
  for (guint i = 0; i < one_ofs->len; i++) {
    const OxSchemaOneOf *one_of = &g_array_index (one_ofs, OxSchemaOneOf, i);

    for (guint32 a = 0; a < one_of->n; a++) {
      for (guint32 b = a + 1; b < one_of->n; b++) {
        if (!disjoint (schema, g_array_index (schema->members, guint32, one_of->first + a),
                       g_array_index (schema->members, guint32, one_of->first + b), 0))
          return ox_json_schema_fail (
            error, OX_ERROR_UNSUPPORTED, one_of->path,
            "“oneOf” %u and %u may both match a value; “anyOf”, or a required member with another “const” "
            "in each, would be understood",
            a, b);
      }
    }
  }
  return TRUE;
}

gboolean
ox_json_schema_check (OxJsonSchema *schema, const GArray *one_ofs, GError **error)
{
  return flatten (schema, error) && find_heights (schema, error) && check_one_ofs (schema, one_ofs, error);
}
