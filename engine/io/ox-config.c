/* A model's hyper-parameters: where they come from, and what they must agree with.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "io/ox-config-private.h"

#include "io/ox-quote.h"

#define MAX_CONFIG_BYTES (16u << 20)

OxConfig *
ox_config_new (void)
{
  OxConfig *config = g_new0 (OxConfig, 1);

  config->eos_token_ids = g_array_new (FALSE, FALSE, sizeof (guint32));
  config->suppress_token_ids = g_array_new (FALSE, FALSE, sizeof (guint32));
  config->bos_token_id = -1;
  config->rope.partial_rotary_factor = config->rope_sliding.partial_rotary_factor = 1;
  return config;
}

void
ox_config_free (OxConfig *config)
{
  if (!config)
    return;
  g_free (config->name);
  g_free (config->architecture);
  g_free (config->layer_kinds);
  g_free (config->rope.freq_factors);
  g_free (config->rope_sliding.freq_factors);
  g_array_unref (config->eos_token_ids);
  g_array_unref (config->suppress_token_ids);
  g_free (config);
}

static void
add_id (GArray *ids, guint32 id)
{
  for (guint i = 0; i < ids->len; i++)
    if (g_array_index (ids, guint32, i) == id)
      return;
  g_array_append_val (ids, id);
}

void
ox_config_add_eos (OxConfig *config, guint32 id)
{
  add_id (config->eos_token_ids, id);
}

void
ox_config_add_suppressed (OxConfig *config, guint64 id)
{
  if (id < config->vocab_size)
    add_id (config->suppress_token_ids, (guint32) id);
}

gboolean
ox_config_has_distant_ids (const OxConfig *config)
{
  return config->family == OX_FAMILY_GEMMA4 || config->family == OX_FAMILY_GEMMA4_ASSISTANT ||
         config->family == OX_FAMILY_QWEN35;
}

void
ox_config_add_family_eos (OxConfig *config)
{
  static const guint32 qwen35[] = { 248046, 248044 }; /* <|im_end|>, <|endoftext|> */

  for (guint i = 0; config->family == OX_FAMILY_QWEN35 && i < G_N_ELEMENTS (qwen35); i++)
    if (qwen35[i] < config->vocab_size)
      ox_config_add_eos (config, qwen35[i]);
}

void
ox_config_set_unknown_kind (GError **error, const char *file_name, const char *kind)
{
  g_autofree char *quoted = ox_quote (kind, -1);

  g_set_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED,
               "%s is a model of kind “%s”, which this version cannot run; it can run Llama-style, Gemma 3, Gemma 4 "
               "and dense Qwen 3.5 models",
               file_name, quoted);
}

gboolean
ox_config_check_id (const OxConfig *config, guint64 id, const char *file_name, const char *field, GError **error)
{
  if (id < config->vocab_size)
    return TRUE;
  g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED,
               "%s: “%s” is %" G_GUINT64_FORMAT ", a token id below the vocabulary's size of %u%s was expected",
               file_name, field, id, config->vocab_size, config->from_gguf ? "" : " (“vocab_size”)");
  return FALSE;
}

/* ---- By layer ---- */

gboolean
ox_config_is_sliding (const OxConfig *config, guint layer)
{
  return config->layer_kinds[layer] == OX_LAYER_SLIDING;
}

/* Whether Gemma 4's numbers for full layers apply. */
static gboolean
is_global (const OxConfig *config, guint layer)
{
  return (config->family == OX_FAMILY_GEMMA4 || config->family == OX_FAMILY_GEMMA4_ASSISTANT) &&
         config->layer_kinds[layer] == OX_LAYER_FULL;
}

guint
ox_config_head_dim (const OxConfig *config, guint layer)
{
  return is_global (config, layer) ? config->global_head_dim : config->head_dim;
}

guint
ox_config_kv_heads (const OxConfig *config, guint layer)
{
  return is_global (config, layer) ? config->num_global_key_value_heads : config->num_key_value_heads;
}

guint
ox_config_intermediate_size (const OxConfig *config, guint layer)
{
  gboolean shared = layer >= config->num_hidden_layers - config->num_kv_shared_layers;

  return shared && config->use_double_wide_mlp ? 2 * config->intermediate_size : config->intermediate_size;
}

guint
ox_config_kv_layer (const OxConfig *config, guint layer)
{
  guint first_shared = config->num_hidden_layers - config->num_kv_shared_layers;

  if (layer < first_shared)
    return layer;
  for (guint i = first_shared; i-- > 0;)
    if (config->layer_kinds[i] == config->layer_kinds[layer])
      return i;
  return layer;
}

/* The embedding has a row for each token and a column for each hidden unit. A missing one is for the loader to report. */
static gboolean
check_embedding (const OxConfig *config, OxWeights *weights, const char *file_name, GError **error)
{
  static const char *const names[] = { "model.embed_tokens.weight", "embed_tokens.weight",
                                       "language_model.model.embed_tokens.weight",
                                       "model.language_model.embed_tokens.weight",
                                       "language_model.embed_tokens.weight" };

  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    const OxTensorInfo *tensor = ox_weights_find (weights, names[i]);

    if (!tensor)
      continue;
    if (tensor->n_dims != 2 || tensor->dims[0] != config->vocab_size || tensor->dims[1] != config->hidden_size) {
      g_autofree char *shape = ox_tensor_describe (tensor);

      g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED,
                   "%s: “vocab_size” is %u and “hidden_size” is %u, but tensor “%s” in %s is %s", file_name,
                   config->vocab_size, config->hidden_size, names[i], ox_file_get_name (tensor->file), shape);
      return FALSE;
    }
    return TRUE;
  }
  return TRUE;
}

OxConfig *
ox_config_parse_json (const char *json, gsize len, const char *file_name, GError **error)
{
  g_autoptr (OxJson) parsed = ox_json_parse (json, len, file_name, error);

  return parsed ? ox_config_from_json (parsed, file_name, error) : NULL;
}

gboolean
ox_config_add_generation_json (OxConfig *config, const char *json, gsize len, const char *file_name, GError **error)
{
  g_autoptr (OxJson) parsed = ox_json_parse (json, len, file_name, error);

  return parsed && ox_config_add_generation (config, parsed, file_name, error);
}

/* JSON file @name of @folder. With @optional, NULL without an error when there is none. */
static OxJson *
load_json (const char *folder, const char *name, gboolean optional, char **file_name, GError **error)
{
  g_autoptr (GError) local_error = NULL;
  g_autofree char *path = g_build_filename (folder, name, NULL);
  g_autoptr (OxFile) file = ox_file_open (path, &local_error);

  *file_name = g_filename_display_name (path);
  if (file)
    return ox_json_read_all (file, MAX_CONFIG_BYTES, error);
  if (!g_error_matches (local_error, OX_ERROR, OX_ERROR_NOT_FOUND))
    g_propagate_error (error, g_steal_pointer (&local_error));
  else if (!optional)
    g_set_error (error, OX_ERROR, OX_ERROR_NOT_FOUND, "%s: is missing; it tells what kind of model the weights are",
                 *file_name);
  return NULL;
}

OxConfig *
ox_config_load (const char *path, OxWeights *weights, GError **error)
{
  g_autoptr (GError) local_error = NULL;
  g_autoptr (OxConfig) config = NULL;
  g_autoptr (OxJson) json = NULL;
  g_autoptr (OxJson) generation = NULL;
  g_autofree char *folder = NULL;
  g_autofree char *file_name = NULL;
  g_autofree char *generation_name = NULL;

  if (ox_weights_get_gguf (weights)) {
    const OxTensorInfo *first = ox_weights_get_tensor (weights, 0);
    g_autofree char *shown = g_filename_display_name (path);

    return ox_config_from_gguf (ox_weights_get_gguf (weights), weights, first ? ox_file_get_name (first->file) : shown,
                                error);
  }
  folder = g_file_test (path, G_FILE_TEST_IS_DIR) ? g_strdup (path) : g_path_get_dirname (path);
  json = load_json (folder, "config.json", FALSE, &file_name, error);
  if (!json)
    return NULL;
  config = ox_config_from_json (json, file_name, error);
  if (!config || !check_embedding (config, weights, file_name, error))
    return NULL;
  generation = load_json (folder, "generation_config.json", TRUE, &generation_name, &local_error);
  if (local_error) {
    g_propagate_error (error, g_steal_pointer (&local_error));
    return NULL;
  }
  if (generation && !ox_config_add_generation (config, generation, generation_name, error))
    return NULL;
  return g_steal_pointer (&config);
}
