/* How a model wants to be sampled: its generation_config.json, else what its makers recommend for the family.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-model-private.h"

#include <math.h>
#include <yyjson.h>

#define MAX_GENERATION_CONFIG_BYTES (1u << 20)

static void
read_number (yyjson_val *root, const char *key, double low, double high, float *value)
{
  yyjson_val *number = yyjson_obj_get (root, key);

  if (yyjson_is_num (number)) {
    double x = yyjson_get_num (number);
    if (isfinite (x) && x >= low && x <= high)
      *value = (float) x;
  }
}

void
ox_model_read_sampling (const char *path, const OxConfig *config, OxSampling *sampling)
{
  g_autofree char *folder = g_file_test (path, G_FILE_TEST_IS_DIR) ? g_strdup (path) : g_path_get_dirname (path);
  g_autofree char *file_name = g_build_filename (folder, "generation_config.json", NULL);
  g_autoptr (OxFile) file = NULL;
  g_autoptr (GBytes) bytes = NULL;
  yyjson_doc *doc;
  float top_k;

  *sampling = (OxSampling) { .temperature = 0.6f, .top_p = 0.9f, .repetition_penalty = 1 };
  if (config->family == OX_FAMILY_GEMMA3)
    *sampling = (OxSampling) { .temperature = 1, .top_k = 64, .top_p = 0.95f, .repetition_penalty = 1 };

  /* A single GGUF file lies among other models: what is beside it is not about it. The file is a recommendation, so one that is
   * missing or unreadable changes nothing. */
  if (config->from_gguf || (file = ox_file_open (file_name, NULL)) == NULL ||
      (bytes = ox_file_read_all (file, MAX_GENERATION_CONFIG_BYTES, NULL)) == NULL)
    return;
  doc = yyjson_read (g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes), 0);
  if (doc == NULL)
    return;
  read_number (yyjson_doc_get_root (doc), "temperature", 0, 100, &sampling->temperature);
  read_number (yyjson_doc_get_root (doc), "top_p", 1e-6, 1, &sampling->top_p);
  read_number (yyjson_doc_get_root (doc), "min_p", 0, 1, &sampling->min_p);
  read_number (yyjson_doc_get_root (doc), "repetition_penalty", 1e-6, 100, &sampling->repetition_penalty);
  top_k = (float) sampling->top_k;
  read_number (yyjson_doc_get_root (doc), "top_k", 0, 1 << 24, &top_k);
  sampling->top_k = (guint) top_k;
  yyjson_doc_free (doc);
}
