/* See ox-tool-entry.h.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-tool-entry.h"

#include <string.h>
#include <yyjson.h>

OxToolEntry *
ox_tool_entry_copy (const OxToolEntry *entry)
{
  OxToolEntry *copy = g_memdup2 (entry, sizeof *entry);

  copy->id = g_strdup (entry->id);
  copy->name = g_strdup (entry->name);
  copy->arguments = g_strdup (entry->arguments);
  copy->result = g_strdup (entry->result);
  return copy;
}

void
ox_tool_entry_free (OxToolEntry *entry)
{
  if (entry == NULL)
    return;
  g_free (entry->id);
  g_free (entry->name);
  g_free (entry->arguments);
  g_free (entry->result);
  g_free (entry);
}

gboolean
ox_tool_entry_equal (const OxToolEntry *a, const OxToolEntry *b)
{
  return g_strcmp0 (a->id, b->id) == 0 && g_strcmp0 (a->name, b->name) == 0 &&
         g_strcmp0 (a->arguments, b->arguments) == 0 && g_strcmp0 (a->result, b->result) == 0 &&
         a->failed == b->failed && a->round == b->round && a->text_offset == b->text_offset &&
         a->thinking_offset == b->thinking_offset;
}

GPtrArray *
ox_tool_entries_new (void)
{
  return g_ptr_array_new_with_free_func ((GDestroyNotify) ox_tool_entry_free);
}

GPtrArray *
ox_tool_entries_copy (GPtrArray *entries)
{
  GPtrArray *copy = ox_tool_entries_new ();

  for (guint i = 0; i < entries->len; i++)
    g_ptr_array_add (copy, ox_tool_entry_copy (entries->pdata[i]));
  return copy;
}

static void
add_text (yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key, const char *text)
{
  if (text != NULL)
    yyjson_mut_obj_add_str (doc, object, key, text);
}

char *
ox_tool_entries_to_json (GPtrArray *entries)
{
  yyjson_mut_doc *doc;
  yyjson_mut_val *array;
  char *json;

  if (entries->len == 0)
    return NULL;
  doc = yyjson_mut_doc_new (NULL);
  array = yyjson_mut_arr (doc);
  yyjson_mut_doc_set_root (doc, array);
  for (guint i = 0; i < entries->len; i++) {
    const OxToolEntry *entry = entries->pdata[i];
    yyjson_mut_val *object = yyjson_mut_arr_add_obj (doc, array);

    add_text (doc, object, "id", entry->id);
    add_text (doc, object, "name", entry->name);
    add_text (doc, object, "arguments", entry->arguments);
    add_text (doc, object, "result", entry->result);
    yyjson_mut_obj_add_bool (doc, object, "failed", entry->failed);
    yyjson_mut_obj_add_uint (doc, object, "round", entry->round);
    yyjson_mut_obj_add_uint (doc, object, "text-offset", entry->text_offset);
    yyjson_mut_obj_add_uint (doc, object, "thinking-offset", entry->thinking_offset);
  }
  json = yyjson_mut_write (doc, YYJSON_WRITE_NOFLAG, NULL);
  yyjson_mut_doc_free (doc);
  /* Memory of malloc(), which g_free() frees, too. */
  return json;
}

static char *
dup_text (yyjson_val *object, const char *key)
{
  yyjson_val *value = yyjson_obj_get (object, key);

  return yyjson_is_str (value) ? g_strdup (yyjson_get_str (value)) : NULL;
}

GPtrArray *
ox_tool_entries_from_json (const char *json)
{
  g_autoptr (GPtrArray) entries = ox_tool_entries_new ();
  yyjson_doc *doc = yyjson_read (json, strlen (json), YYJSON_READ_NOFLAG);
  yyjson_val *root = yyjson_doc_get_root (doc);
  gboolean ok = yyjson_is_arr (root);
  yyjson_arr_iter iter;
  yyjson_val *object;

  if (ok) {
    yyjson_arr_iter_init (root, &iter);
    while (ok && (object = yyjson_arr_iter_next (&iter)) != NULL) {
      OxToolEntry *entry = g_new0 (OxToolEntry, 1);

      entry->id = dup_text (object, "id");
      entry->name = dup_text (object, "name");
      entry->arguments = dup_text (object, "arguments");
      entry->result = dup_text (object, "result");
      entry->failed = yyjson_get_bool (yyjson_obj_get (object, "failed"));
      entry->round = (guint) MIN (yyjson_get_uint (yyjson_obj_get (object, "round")), G_MAXUINT);
      entry->text_offset = yyjson_get_uint (yyjson_obj_get (object, "text-offset"));
      entry->thinking_offset = yyjson_get_uint (yyjson_obj_get (object, "thinking-offset"));
      ok = yyjson_is_obj (object) && entry->arguments != NULL;
      g_ptr_array_add (entries, entry);
    }
  }
  yyjson_doc_free (doc);
  return ok ? g_steal_pointer (&entries) : NULL;
}

char *
ox_tool_json_lookup (const char *json, const char *key)
{
  yyjson_doc *doc = yyjson_read (json, strlen (json), YYJSON_READ_NOFLAG);
  yyjson_val *value = yyjson_obj_get (yyjson_doc_get_root (doc), key);
  char *text = NULL;

  if (yyjson_is_str (value))
    text = g_strdup (yyjson_get_str (value));
  else if (yyjson_is_num (value))
    text = yyjson_val_write (value, YYJSON_WRITE_NOFLAG, NULL);
  yyjson_doc_free (doc);
  return text;
}

char *
ox_tool_json_to_list (const char *json)
{
  yyjson_doc *doc = yyjson_read (json, strlen (json), YYJSON_READ_NOFLAG);
  yyjson_val *root = yyjson_doc_get_root (doc);
  g_autoptr (GString) list = g_string_new (NULL);
  gboolean ok = yyjson_is_obj (root);
  yyjson_val *only = yyjson_obj_size (root) == 1 ? yyjson_obj_get (root, "result") : NULL;
  yyjson_obj_iter iter;
  yyjson_val *key;

  if (ok && yyjson_is_str (only)) {
    g_string_assign (list, yyjson_get_str (only));
  } else if (ok) {
    yyjson_obj_iter_init (root, &iter);
    while ((key = yyjson_obj_iter_next (&iter)) != NULL) {
      g_autofree char *value = yyjson_val_write (yyjson_obj_iter_get_val (key), YYJSON_WRITE_NOFLAG, NULL);

      g_string_append_printf (list, "%s%s=%s", list->len > 0 ? ", " : "", yyjson_get_str (key),
                              value != NULL ? value : "?");
    }
  }
  yyjson_doc_free (doc);
  return ok ? g_string_free (g_steal_pointer (&list), FALSE) : NULL;
}
