/* A JSON schema as a graph of what values may look like.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "oxinfer.h"

typedef enum {
  OX_SCHEMA_NOTHING,  /* no value */
  OX_SCHEMA_LITERALS, /* one of the texts in the trie at @trie */
  OX_SCHEMA_STRING,   /* @min to @max characters */
  OX_SCHEMA_NUMBER,
  OX_SCHEMA_INTEGER,
  OX_SCHEMA_OBJECT, /* @n properties at @first; others of @child with names that are not in the trie at @trie */
  OX_SCHEMA_ARRAY,  /* @min to @max items of @child */
  OX_SCHEMA_UNION,  /* one of @n members at @first, none of which is a union */
} OxSchemaKind;

#define OX_SCHEMA_NONE G_MAXUINT32

typedef struct {
  OxSchemaKind kind;
  guint32
    height; /* arrays and objects that a value has at least within each other; OX_SCHEMA_NONE: there is no finite value */
  guint32 min, max; /* max OX_SCHEMA_NONE: no limit */
  guint32 child;    /* or OX_SCHEMA_NONE */
  guint32 trie;
  guint32 first, n;
} OxSchemaNode;

typedef struct {
  const char *text; /* the name as JSON, without the first quotation mark: name" */
  gsize len;
  guint32 node;
  gboolean required;
} OxSchemaProperty;

/* A letter of a text; children are a list. Node 0 is none. */
typedef struct {
  guint8 byte;
  gboolean is_end; /* a text ends with it */
  guint32 child, next;
} OxSchemaLetter;

typedef struct {
  GArray *nodes;      /* OxSchemaNode */
  GArray *properties; /* OxSchemaProperty */
  GArray *members;    /* guint32 */
  GArray *letters;    /* OxSchemaLetter */
  GPtrArray *texts;   /* of properties */
  guint32 root;
} OxJsonSchema;

/* Messages name the place as a JSON pointer. */
OxJsonSchema *ox_json_schema_parse (const char *text, GError **error);
void ox_json_schema_free (OxJsonSchema *schema);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (OxJsonSchema, ox_json_schema_free)

/* The letter @byte among those that may follow @letter, or 0. */
guint32 ox_json_schema_next_letter (const OxJsonSchema *schema, guint32 letter, guint8 byte);
