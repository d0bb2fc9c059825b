/* Where a model keeps its tokenizer: in the GGUF file, or in tokenizer.json and what lies beside it.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "text/ox-tokenizer.h"

#include <string.h>

#include "io/ox-json.h"
#include "text/ox-tokenizer-private.h"
#include "text/ox-utf8.h"

#define MAX_COMPANION (16u << 20)

/* The file @name beside @json_path. NULL without an error: there is none. */
static OxFile *
open_companion (const char *json_path, const char *name, GError **error)
{
  g_autofree char *folder = g_path_get_dirname (json_path);
  g_autofree char *path = g_build_filename (folder, name, NULL);

  return g_file_test (path, G_FILE_TEST_EXISTS) ? ox_file_open (path, error) : NULL;
}

/* A token in tokenizer_config.json is a string or an object with its content. */
static const char *
token_text (yyjson_val *val)
{
  return yyjson_get_str (yyjson_is_obj (val) ? yyjson_obj_get (val, "content") : val);
}

/* A template, or a list of named ones of which "default" counts. */
static const char *
template_text (yyjson_val *val)
{
  yyjson_val *item;
  gsize i, max;

  ox_json_foreach_item (val, i, max, item) {
    if (g_strcmp0 (yyjson_get_str (yyjson_obj_get (item, "name")), "default") == 0)
      return yyjson_get_str (yyjson_obj_get (item, "template"));
  }
  return yyjson_get_str (val);
}

static gboolean
read_config (OxTokenizer *tokenizer, OxFile *file, GError **error)
{
  g_autoptr (OxJson) json = ox_json_read_all (file, MAX_COMPANION, error);
  yyjson_val *root, *add_bos;
  const char *bos;
  gint64 id;

  if (!json)
    return FALSE;
  root = ox_json_get_root (json);
  if (!yyjson_is_obj (root)) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: the document is %s, an object was expected",
                 ox_file_get_name (file), ox_json_describe (root));
    return FALSE;
  }
  bos = token_text (yyjson_obj_get (root, "bos_token"));
  id = bos ? ox_tokenizer_find (tokenizer, bos) : -1;
  if (id >= 0)
    tokenizer->bos = id;
  add_bos = yyjson_obj_get (root, "add_bos_token");
  if (yyjson_is_bool (add_bos))
    tokenizer->add_bos = yyjson_get_bool (add_bos);
  g_free (tokenizer->chat_template);
  tokenizer->chat_template = g_strdup (template_text (yyjson_obj_get (root, "chat_template")));
  return TRUE;
}

static gboolean
read_template (OxTokenizer *tokenizer, OxFile *file, GError **error)
{
  g_autoptr (GBytes) bytes = ox_file_read_all (file, MAX_COMPANION, error);
  gsize len;
  const char *text;

  if (!bytes)
    return FALSE;
  text = g_bytes_get_data (bytes, &len);
  g_free (tokenizer->chat_template);
  tokenizer->chat_template = len == 0 ? NULL : g_utf8_make_valid (text, (gssize) len);
  return TRUE;
}

gboolean
ox_tokenizer_read_companions (OxTokenizer *tokenizer, const char *json_path, GError **error)
{
  static const struct {
    const char *name;
    gboolean (*read) (OxTokenizer *, OxFile *, GError **);
  } companions[] = { { "tokenizer_config.json", read_config }, { "chat_template.jinja", read_template } };

  for (gsize i = 0; i < G_N_ELEMENTS (companions); i++) {
    GError *local = NULL;
    g_autoptr (OxFile) file = open_companion (json_path, companions[i].name, &local);

    if (local) {
      g_propagate_error (error, local);
      return FALSE;
    }
    if (file && !companions[i].read (tokenizer, file, error))
      return FALSE;
  }
  /* Gemma 4's instruction-tuned files do not ask for BOS, since the template writes it; plain text needs it all the same. */
  if (ox_tokenizer_find (tokenizer, "<|turn>") >= 0 && ox_tokenizer_find (tokenizer, "<bos>") >= 0) {
    tokenizer->bos = ox_tokenizer_find (tokenizer, "<bos>");
    tokenizer->add_bos = TRUE;
  }
  return TRUE;
}

static OxTokenizer *
load_json (const char *path, gboolean names_only, GCancellable *cancellable, GError **error)
{
  g_autoptr (OxFile) file = ox_file_open (path, error);
  g_autoptr (OxTokenizer) tokenizer = file ? ox_tokenizer_new_from_json (file, names_only, cancellable, error) : NULL;

  if (!tokenizer || !ox_tokenizer_read_companions (tokenizer, path, error))
    return NULL;
  return g_steal_pointer (&tokenizer);
}

static OxTokenizer *
load_gguf (OxFile *file, gboolean names_only, GCancellable *cancellable, GError **error)
{
  g_autoptr (OxGguf) gguf = ox_gguf_parse (file, error);

  return gguf ? ox_tokenizer_new_from_gguf (gguf, ox_file_get_name (file), names_only, cancellable, error) : NULL;
}

static OxTokenizer *
load (const char *path, gboolean names_only, GCancellable *cancellable, GError **error)
{
  g_autofree char *folder = NULL;
  g_autofree char *json_path = NULL;

  if (g_file_test (path, G_FILE_TEST_IS_DIR)) {
    folder = g_strdup (path);
  } else if (g_str_has_suffix (path, ".safetensors") || g_str_has_suffix (path, ".index.json")) {
    folder = g_path_get_dirname (path);
  } else {
    g_autoptr (OxFile) file = ox_file_open (path, error);
    char magic[4];

    if (!file)
      return NULL;
    if (ox_file_get_size (file) >= sizeof magic) {
      if (!ox_file_read (file, 0, magic, sizeof magic, error))
        return NULL;
      if (memcmp (magic, "GGUF", sizeof magic) == 0)
        return load_gguf (file, names_only, cancellable, error);
    }
    return load_json (path, names_only, cancellable, error);
  }
  json_path = g_build_filename (folder, "tokenizer.json", NULL);
  return load_json (json_path, names_only, cancellable, error);
}

OxTokenizer *
ox_tokenizer_load (const char *path, GCancellable *cancellable, GError **error)
{
  g_return_val_if_fail (path != NULL, NULL);
  return load (path, FALSE, cancellable, error);
}

OxTokenizer *
ox_tokenizer_load_names (const char *path, GCancellable *cancellable, GError **error)
{
  g_return_val_if_fail (path != NULL, NULL);
  return load (path, TRUE, cancellable, error);
}
