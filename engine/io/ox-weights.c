/* The tensors of a model, wherever they lie.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "io/ox-weights.h"

#include <stdlib.h>
#include <string.h>

#include "io/ox-dtype.h"
#include "io/ox-json.h"
#include "io/ox-quote.h"
#include "io/ox-safetensors.h"

#define MAX_INDEX_BYTES 100000000
/* Each shard keeps a file descriptor; 1024 is a usual limit of those. */
#define MAX_SHARDS 512
#define INDEX_SUFFIX ".safetensors.index.json"

struct _OxWeights {
  GPtrArray *files; /* OxFile */
  GArray *tensors;  /* OxTensorInfo, by name once finished */
  GStringChunk *names;
  OxGguf *gguf;
};

static OxWeights *
weights_new (void)
{
  OxWeights *weights = g_new0 (OxWeights, 1);

  weights->files = g_ptr_array_new_with_free_func ((GDestroyNotify) ox_file_unref);
  weights->tensors = g_array_new (FALSE, FALSE, sizeof (OxTensorInfo));
  weights->names = g_string_chunk_new (4096);
  return weights;
}

void
ox_weights_free (OxWeights *weights)
{
  if (!weights)
    return;
  g_clear_pointer (&weights->gguf, ox_gguf_unref);
  g_string_chunk_free (weights->names);
  g_array_unref (weights->tensors);
  g_ptr_array_unref (weights->files);
  g_free (weights);
}

static int
compare_names (const void *a, const void *b)
{
  return strcmp (((const OxTensorInfo *) a)->name, ((const OxTensorInfo *) b)->name);
}

/* Sorts the tensors; refuses names that two shards have. */
static gboolean
weights_finish (OxWeights *weights, GError **error)
{
  g_array_sort (weights->tensors, compare_names);
  for (guint i = 1; i < weights->tensors->len; i++) {
    const OxTensorInfo *a = &g_array_index (weights->tensors, OxTensorInfo, i - 1);
    const OxTensorInfo *b = &g_array_index (weights->tensors, OxTensorInfo, i);

    if (strcmp (a->name, b->name) == 0) {
      g_autofree char *quoted = ox_quote (a->name, -1);

      g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: tensor “%s” is in %s, too", ox_file_get_name (b->file),
                   quoted, ox_file_get_name (a->file));
      return FALSE;
    }
  }
  return TRUE;
}

static gboolean
add_safetensors (OxWeights *weights, OxFile *file, GError **error)
{
  g_ptr_array_add (weights->files, ox_file_ref (file));
  if (!ox_safetensors_read (file, weights->tensors, weights->names, error))
    return FALSE;
  if (weights->tensors->len > OX_WEIGHTS_MAX_TENSORS) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: with this file the model has over %u tensors",
                 ox_file_get_name (file), OX_WEIGHTS_MAX_TENSORS);
    return FALSE;
  }
  return TRUE;
}

OxWeights *
ox_weights_open_safetensors (OxFile *file, GError **error)
{
  g_autoptr (OxWeights) weights = weights_new ();

  if (!add_safetensors (weights, file, error) || !weights_finish (weights, error))
    return NULL;
  return g_steal_pointer (&weights);
}

OxWeights *
ox_weights_open_gguf (OxFile *file, GError **error)
{
  g_autoptr (OxWeights) weights = weights_new ();

  weights->gguf = ox_gguf_parse (file, error);
  if (!weights->gguf)
    return NULL;
  g_ptr_array_add (weights->files, ox_file_ref (file));
  for (gsize i = 0; i < ox_gguf_get_n_tensors (weights->gguf); i++) {
    const OxGgufTensor *tensor = ox_gguf_get_tensor (weights->gguf, i);
    OxTensorInfo info = {
      .name = tensor->name,
      .type = ox_dtype_from_gguf (tensor->type),
      .n_dims = tensor->n_dims,
      .n_elements = 1,
      .file = file,
      .offset = tensor->offset,
      .n_bytes = tensor->n_bytes,
    };

    for (guint d = 0; d < tensor->n_dims; d++)
      info.dims[d] = tensor->dims[tensor->n_dims - 1 - d];
    /* The parser has checked that the product of all but the zeros fits. */
    for (guint d = 0; d < tensor->n_dims && info.n_elements > 0; d++)
      info.n_elements = tensor->dims[d] == 0 ? 0 : info.n_elements * tensor->dims[d];
    g_array_append_val (weights->tensors, info);
  }
  if (!weights_finish (weights, error))
    return NULL;
  return g_steal_pointer (&weights);
}

/* A plain file name ending in .safetensors: nothing that leads out of the index's folder or back to the index. */
static gboolean
check_shard_name (const char *name, gsize len)
{
  return len <= 255 && strlen (name) == len && g_str_has_suffix (name, ".safetensors") && name[0] != '.' &&
         strchr (name, '/') == NULL && strchr (name, '\\') == NULL && strstr (name, "..") == NULL;
}

/* Reads weight_map: @shards gets each shard's name once. */
static gboolean
collect_shards (yyjson_val *map, const char *index_name, GPtrArray *shards, GError **error)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);
  yyjson_val *key, *val;
  size_t idx, max;

  ox_json_foreach_member (map, idx, max, key, val) {
    g_autofree char *tensor = ox_quote (yyjson_get_str (key), (gssize) yyjson_get_len (key));
    char *name = (char *) yyjson_get_str (val);

    if (!name) {
      g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED,
                   "%s: “weight_map”: the file of tensor “%s” is %s, a string was expected", index_name, tensor,
                   ox_json_describe (val));
      return FALSE;
    }
    if (g_hash_table_contains (seen, name))
      continue;
    if (!check_shard_name (name, yyjson_get_len (val))) {
      g_autofree char *quoted = ox_quote (name, -1);

      g_set_error (
        error, OX_ERROR, OX_ERROR_DAMAGED,
        "%s: “weight_map”: tensor “%s” is said to be in “%s”, the plain name of a .safetensors file was expected",
        index_name, tensor, quoted);
      return FALSE;
    }
    g_hash_table_add (seen, name);
    g_ptr_array_add (shards, name);
    if (shards->len > MAX_SHARDS) {
      g_set_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED, "%s: names over %u files", index_name, MAX_SHARDS);
      return FALSE;
    }
  }
  if (shards->len == 0) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: “weight_map” is empty", index_name);
    return FALSE;
  }
  return TRUE;
}

/* Every tensor that the index names must be in the shard that it names. */
static gboolean
check_map (OxWeights *weights, yyjson_val *map, GHashTable *file_of_shard, const char *index_name, GError **error)
{
  g_autofree gboolean *seen = g_new0 (gboolean, MAX (weights->tensors->len, 1));
  yyjson_val *key, *val;
  size_t idx, max;

  ox_json_foreach_member (map, idx, max, key, val) {
    const char *name = yyjson_get_str (key);
    const char *shard = yyjson_get_str (val);
    const OxTensorInfo *tensor = strlen (name) == yyjson_get_len (key) ? ox_weights_find (weights, name) : NULL;
    g_autofree char *quoted = NULL;

    if (tensor && tensor->file == g_hash_table_lookup (file_of_shard, shard)) {
      gsize index = (gsize) (tensor - (const OxTensorInfo *) (gpointer) weights->tensors->data);

      if (!seen[index]) {
        seen[index] = TRUE;
        continue;
      }
    }
    quoted = ox_quote (name, (gssize) yyjson_get_len (key));
    if (!tensor)
      g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED,
                   "%s: “weight_map” names tensor “%s” in “%s”, which has no such tensor", index_name, quoted, shard);
    else if (tensor->file != g_hash_table_lookup (file_of_shard, shard))
      g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: “weight_map” names tensor “%s” in “%s”, but it is in %s",
                   index_name, quoted, shard, ox_file_get_name (tensor->file));
    else
      g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: “weight_map” names tensor “%s” twice", index_name, quoted);
    return FALSE;
  }
  return TRUE;
}

static OxWeights *
open_index (const char *path, GCancellable *cancellable, GError **error)
{
  g_autoptr (OxWeights) weights = weights_new ();
  g_autoptr (OxFile) index = ox_file_open (path, error);
  g_autoptr (OxJson) json = index ? ox_json_read_all (index, MAX_INDEX_BYTES, error) : NULL;
  g_autoptr (GPtrArray) shards = g_ptr_array_new ();
  g_autoptr (GHashTable) file_of_shard = g_hash_table_new (g_str_hash, g_str_equal);
  g_autofree char *folder = g_path_get_dirname (path);
  yyjson_val *map;

  if (!json)
    return NULL;
  map = yyjson_obj_get (ox_json_get_root (json), "weight_map");
  if (!yyjson_is_obj (map)) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: “weight_map” is %s, an object was expected",
                 ox_file_get_name (index), ox_json_describe (map));
    return NULL;
  }
  if (!collect_shards (map, ox_file_get_name (index), shards, error))
    return NULL;
  for (guint i = 0; i < shards->len; i++) {
    char *shard = g_ptr_array_index (shards, i);
    g_autofree char *shard_path = g_build_filename (folder, shard, NULL);
    g_autoptr (OxFile) file = NULL;

    if (g_cancellable_set_error_if_cancelled (cancellable, error))
      return NULL;
    file = ox_file_open (shard_path, error);
    if (!file) {
      g_prefix_error (error, "%s names a file that cannot be used: ", ox_file_get_name (index));
      return NULL;
    }
    if (!add_safetensors (weights, file, error))
      return NULL;
    g_hash_table_insert (file_of_shard, shard, file);
  }
  if (!weights_finish (weights, error) || !check_map (weights, map, file_of_shard, ox_file_get_name (index), error))
    return NULL;
  return g_steal_pointer (&weights);
}

/* By what the file holds; the name only decides what an unrecognisable file is blamed for. */
static OxWeights *
open_single (const char *path, GError **error)
{
  g_autoptr (OxFile) file = ox_file_open (path, error);
  char head[9] = { 0 };

  if (!file)
    return NULL;
  if (!ox_file_read (file, 0, head, (gsize) MIN (sizeof head, ox_file_get_size (file)), error))
    return NULL;
  if (memcmp (head, "GGUF", 4) == 0 || memcmp (head, "FUGG", 4) == 0 || g_str_has_suffix (path, ".gguf"))
    return ox_weights_open_gguf (file, error);
  if (head[8] == '{' || g_str_has_suffix (path, ".safetensors"))
    return ox_weights_open_safetensors (file, error);
  g_set_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED, "%s: is neither a GGUF nor a safetensors file",
               ox_file_get_name (file));
  return NULL;
}

/* The weights of a folder: model.safetensors, else its index, else the only file that could be meant. */
static char *
find_in_folder (const char *folder, GError **error)
{
  static const char *const usual[] = { "model.safetensors", "model" INDEX_SUFFIX };
  static const char *const suffixes[] = { INDEX_SUFFIX, ".safetensors", ".gguf" };
  g_autofree char *shown = g_filename_display_name (folder);
  gboolean pickled = FALSE;

  for (guint i = 0; i < G_N_ELEMENTS (usual); i++) {
    g_autofree char *path = g_build_filename (folder, usual[i], NULL);

    if (g_file_test (path, G_FILE_TEST_EXISTS))
      return g_steal_pointer (&path);
  }
  for (guint i = 0; i < G_N_ELEMENTS (suffixes); i++) {
    g_autoptr (GError) local_error = NULL;
    g_autoptr (GDir) dir = g_dir_open (folder, 0, &local_error);
    g_autofree char *found = NULL;
    const char *entry;

    if (!dir) {
      g_set_error (error, OX_ERROR, OX_ERROR_IO, "%s: cannot be listed: %s", shown, local_error->message);
      return NULL;
    }
    while ((entry = g_dir_read_name (dir)) != NULL) {
      pickled = pickled || g_str_has_suffix (entry, ".bin") || g_str_has_suffix (entry, ".pt") ||
                g_str_has_suffix (entry, ".pth");
      if (!g_str_has_suffix (entry, suffixes[i]))
        continue;
      if (found) {
        if (i == 1 && strstr (entry, "-of-") != NULL)
          g_set_error (error, OX_ERROR, OX_ERROR_NOT_FOUND,
                       "%s: has parts of a model, as %s, but no model" INDEX_SUFFIX " that tells of all of them", shown,
                       entry);
        else
          g_set_error (error, OX_ERROR, OX_ERROR_INVALID, "%s: has several *%s files; name the one that is meant",
                       shown, suffixes[i]);
        return NULL;
      }
      found = g_strdup (entry);
    }
    if (found)
      return g_build_filename (folder, found, NULL);
  }
  g_set_error (error, OX_ERROR, OX_ERROR_NOT_FOUND, "%s: has no model.safetensors, %s", shown,
               pickled ? "only weights in Python's pickle format, which can run code and are never read"
                       : "no model" INDEX_SUFFIX " and no GGUF file");
  return NULL;
}

OxWeights *
ox_weights_open (const char *path, GCancellable *cancellable, GError **error)
{
  g_autofree char *found = NULL;

  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return NULL;
  if (g_file_test (path, G_FILE_TEST_IS_DIR)) {
    found = find_in_folder (path, error);
    if (!found)
      return NULL;
    path = found;
  }
  if (g_str_has_suffix (path, ".json"))
    return open_index (path, cancellable, error);
  return open_single (path, error);
}

guint
ox_weights_get_n_tensors (OxWeights *weights)
{
  return weights->tensors->len;
}

const OxTensorInfo *
ox_weights_get_tensor (OxWeights *weights, guint index)
{
  return index < weights->tensors->len ? &g_array_index (weights->tensors, OxTensorInfo, index) : NULL;
}

const OxTensorInfo *
ox_weights_find (OxWeights *weights, const char *name)
{
  OxTensorInfo key = { .name = name };

  if (weights->tensors->len == 0)
    return NULL;
  return bsearch (&key, weights->tensors->data, weights->tensors->len, sizeof key, compare_names);
}

OxGguf *
ox_weights_get_gguf (OxWeights *weights)
{
  return weights->gguf;
}

guint64
ox_weights_get_file_bytes (OxWeights *weights)
{
  guint64 bytes = 0;

  for (guint i = 0; i < weights->files->len; i++)
    bytes += ox_file_get_size (g_ptr_array_index (weights->files, i));
  return bytes;
}
