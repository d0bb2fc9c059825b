/* JSON from files, through yyjson, which neither recurses nor copies strings.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "io/ox-json.h"

#include <stdlib.h>
#include <string.h>

/* yyjson keeps all values in one block of 16 bytes a value, so a file of nothing but brackets would take 24 times its size.
 * This bound allows 33 million values; the largest tokenizer.json in use has 2 million. */
#define MAX_BLOCK ((size_t) 512 << 20)

struct _OxJson {
  yyjson_doc *doc;
  char *text;
};

static void *
bounded_malloc (void *ctx, size_t size)
{
  return size > MAX_BLOCK ? NULL : malloc (size);
}

static void *
bounded_realloc (void *ctx, void *ptr, size_t old_size, size_t size)
{
  return size > MAX_BLOCK ? NULL : realloc (ptr, size);
}

static void
bounded_free (void *ctx, void *ptr)
{
  free (ptr);
}

static const yyjson_alc bounded_alc = { bounded_malloc, bounded_realloc, bounded_free, NULL };

/* Room for @len bytes and the padding that parsing in place needs. */
static char *
text_alloc (gsize len, const char *file_name, GError **error)
{
  char *text = len > G_MAXSIZE - YYJSON_PADDING_SIZE ? NULL : g_try_malloc (len + YYJSON_PADDING_SIZE);

  if (!text)
    g_set_error (error, OX_ERROR, OX_ERROR_NO_MEMORY, "%s: no memory for %" G_GSIZE_FORMAT " bytes of JSON", file_name,
                 len);
  else
    memset (text + len, 0, YYJSON_PADDING_SIZE);
  return text;
}

/* Takes @text. */
static OxJson *
parse_in_place (char *text, gsize len, const char *file_name, GError **error)
{
  yyjson_read_err err = { 0 };
  yyjson_doc *doc = yyjson_read_opts (text, len, YYJSON_READ_INSITU, &bounded_alc, &err);
  OxJson *json;

  if (!doc) {
    if (len == 0)
      g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: is empty, JSON was expected", file_name);
    else if (err.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION)
      g_set_error (error, OX_ERROR, OX_ERROR_NO_MEMORY, "%s: its JSON has too many values to be held in memory",
                   file_name);
    else
      g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: is not valid JSON: %s at byte %" G_GSIZE_FORMAT, file_name,
                   err.msg ? err.msg : "error", (gsize) err.pos);
    g_free (text);
    return NULL;
  }
  json = g_new0 (OxJson, 1);
  json->doc = doc;
  json->text = text;
  return json;
}

OxJson *
ox_json_read (OxFile *file, guint64 offset, gsize len, GError **error)
{
  g_autofree char *text = text_alloc (len, ox_file_get_name (file), error);

  if (!text || !ox_file_read (file, offset, text, len, error))
    return NULL;
  return parse_in_place (g_steal_pointer (&text), len, ox_file_get_name (file), error);
}

OxJson *
ox_json_read_all (OxFile *file, guint64 max_bytes, GError **error)
{
  guint64 size = ox_file_get_size (file);

  if (size > max_bytes || size > G_MAXSIZE) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED,
                 "%s: has %" G_GUINT64_FORMAT " bytes, at most %" G_GUINT64_FORMAT " were expected",
                 ox_file_get_name (file), size, max_bytes);
    return NULL;
  }
  return ox_json_read (file, 0, (gsize) size, error);
}

OxJson *
ox_json_parse (const char *text, gsize len, const char *file_name, GError **error)
{
  char *copy = text_alloc (len, file_name, error);

  if (!copy)
    return NULL;
  if (len > 0)
    memcpy (copy, text, len);
  return parse_in_place (copy, len, file_name, error);
}

void
ox_json_free (OxJson *json)
{
  if (!json)
    return;
  yyjson_doc_free (json->doc);
  g_free (json->text);
  g_free (json);
}

yyjson_val *
ox_json_get_root (OxJson *json)
{
  return yyjson_doc_get_root (json->doc);
}

const char *
ox_json_describe (yyjson_val *val)
{
  if (!val)
    return "missing";
  switch (yyjson_get_type (val)) {
  case YYJSON_TYPE_NULL:
    return "null";
  case YYJSON_TYPE_BOOL:
    return yyjson_get_bool (val) ? "true" : "false";
  case YYJSON_TYPE_NUM:
    return yyjson_is_uint (val)  ? "a non-negative integer"
           : yyjson_is_int (val) ? "a negative integer"
                                 : "a number that is no integer";
  case YYJSON_TYPE_STR:
    return "a string";
  case YYJSON_TYPE_ARR:
    return "an array";
  case YYJSON_TYPE_OBJ:
    return "an object";
  default:
    return "of an unknown kind";
  }
}
