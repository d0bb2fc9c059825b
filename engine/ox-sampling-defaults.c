/* How a model wants to be sampled: its generation_config.json or its GGUF metadata, else what its makers recommend for the family
 * (Gemma 4's generation_config.json; the cards of Qwen 3.5).
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

/* Qwen 3.5's cards: general use, by size and mode. Those of 3.6 and 3.8 have the values of the first row but for the penalty. */
static OxSampling
qwen35_sampling (const OxConfig *config, gboolean thinks)
{
  gboolean is_small = config->hidden_size <= 2048; /* 0.8B and 2B */

  if (thinks)
    return (
      OxSampling) { .temperature = 1, .top_k = 20, .top_p = 0.95f, .repetition_penalty = 1, .presence_penalty = 1.5f };
  if (is_small)
    return (OxSampling) { .temperature = 1, .top_k = 20, .top_p = 1, .repetition_penalty = 1, .presence_penalty = 2 };
  return (
    OxSampling) { .temperature = 0.7f, .top_k = 20, .top_p = 0.8f, .repetition_penalty = 1, .presence_penalty = 1.5f };
}

static gboolean
same_sampling (const OxSampling *a, const OxSampling *b)
{
  return a->temperature == b->temperature && a->top_k == b->top_k && a->top_p == b->top_p && a->min_p == b->min_p &&
         a->repetition_penalty == b->repetition_penalty && a->frequency_penalty == b->frequency_penalty &&
         a->presence_penalty == b->presence_penalty;
}

void
ox_model_adapt_sampling (const OxConfig *config, gboolean thinks, OxSampling *sampling)
{
  OxSampling other, wanted;

  if (config->family != OX_FAMILY_QWEN35)
    return;
  other = qwen35_sampling (config, !thinks);
  wanted = qwen35_sampling (config, thinks);
  if (same_sampling (sampling, &other)) {
    wanted.seed = sampling->seed;
    wanted.max_tokens = sampling->max_tokens;
    wanted.stop = sampling->stop;
    wanted.json_schema = sampling->json_schema;
    *sampling = wanted;
  }
}

/* What the makers recommend where no file says anything. */
static OxSampling
family_sampling (const OxConfig *config)
{
  switch (config->family) {
  case OX_FAMILY_GEMMA3:
  case OX_FAMILY_GEMMA4:
  case OX_FAMILY_GEMMA4_ASSISTANT:
    return (OxSampling) { .temperature = 1, .top_k = 64, .top_p = 0.95f, .repetition_penalty = 1 };
  case OX_FAMILY_QWEN35:
    /* The small ones do not think unless told to. */
    return qwen35_sampling (config, config->hidden_size > 2048);
  case OX_FAMILY_LLAMA:
    break;
  }
  return (OxSampling) { .temperature = 0.6f, .top_p = 0.9f, .repetition_penalty = 1 };
}

/* A file that recommends a temperature means all of its makers' settings, and a presence penalty that it does not name is none. */
static void
read_generation_config (yyjson_val *root, OxSampling *sampling)
{
  float top_k = (float) sampling->top_k;

  if (yyjson_is_num (yyjson_obj_get (root, "temperature")))
    sampling->presence_penalty = 0;
  read_number (root, "temperature", 0, 100, &sampling->temperature);
  read_number (root, "top_p", 1e-6, 1, &sampling->top_p);
  read_number (root, "min_p", 0, 1, &sampling->min_p);
  read_number (root, "repetition_penalty", 1e-6, 100, &sampling->repetition_penalty);
  read_number (root, "presence_penalty", -100, 100, &sampling->presence_penalty);
  read_number (root, "frequency_penalty", -100, 100, &sampling->frequency_penalty);
  read_number (root, "top_k", 0, 1 << 24, &top_k);
  sampling->top_k = (guint) top_k;
}

static void
read_key (OxGguf *gguf, const char *key, double low, double high, float *value)
{
  double x;

  if (ox_gguf_get_float (gguf, key, &x) && isfinite (x) && x >= low && x <= high)
    *value = (float) x;
}

void
ox_model_read_gguf_sampling (OxGguf *gguf, OxSampling *sampling)
{
  float top_k = (float) sampling->top_k;

  if (ox_gguf_has (gguf, "general.sampling.temp"))
    sampling->presence_penalty = 0;
  read_key (gguf, "general.sampling.temp", 0, 100, &sampling->temperature);
  read_key (gguf, "general.sampling.top_p", 1e-6, 1, &sampling->top_p);
  read_key (gguf, "general.sampling.min_p", 0, 1, &sampling->min_p);
  read_key (gguf, "general.sampling.penalty_repeat", 1e-6, 100, &sampling->repetition_penalty);
  read_key (gguf, "general.sampling.top_k", 0, 1 << 24, &top_k);
  sampling->top_k = (guint) top_k;
}

void
ox_model_read_sampling (const char *path, const OxConfig *config, OxSampling *sampling)
{
  g_autofree char *folder = g_file_test (path, G_FILE_TEST_IS_DIR) ? g_strdup (path) : g_path_get_dirname (path);
  g_autofree char *file_name = g_build_filename (folder, "generation_config.json", NULL);
  g_autoptr (OxFile) file = NULL;
  g_autoptr (GBytes) bytes = NULL;
  yyjson_doc *doc;

  *sampling = family_sampling (config);
  /* A single GGUF file lies among other models: what is beside it is not about it. The file is a recommendation, so one that is
   * missing or unreadable changes nothing. */
  if (config->from_gguf || (file = ox_file_open (file_name, NULL)) == NULL ||
      (bytes = ox_file_read_all (file, MAX_GENERATION_CONFIG_BYTES, NULL)) == NULL)
    return;
  doc = yyjson_read (g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes), 0);
  if (doc == NULL)
    return;
  read_generation_config (yyjson_doc_get_root (doc), sampling);
  yyjson_doc_free (doc);
}
