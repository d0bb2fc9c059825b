/* The models that are measured: files, and published shapes with random weights, which take the same time as the real ones.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-cli-bench.h"

#include <string.h>

#include "ox-dry-model.h"

static void
subject_free (gpointer data)
{
  OxBenchSubject *subject = data;

  g_free (subject->name);
  g_free (subject);
}

/* "Gemma 3 270m" → "gemma3-270m": a number that stands alone belongs to the word before it. */
static char *
short_name (const char *name)
{
  g_autofree char *lower = g_ascii_strdown (name, -1);
  g_auto (GStrv) words = g_strsplit_set (lower, " -", -1);
  GString *result = g_string_new (NULL);

  for (char **word = words; *word != NULL; word++) {
    gboolean is_number = **word != '\0' && strspn (*word, "0123456789.") == strlen (*word);

    if (result->len > 0 && !is_number)
      g_string_append_c (result, '-');
    g_string_append (result, *word);
  }
  return g_string_free (result, FALSE);
}

/* "gemma3-270m/q4_k_m"; for floats that are rounded at load, what they are rounded to. */
static char *
file_name (const OxModelPlan *plan)
{
  g_autofree char *name = short_name (plan->name);
  const char *as = strstr (plan->format, " as ");
  g_autofree char *format = g_ascii_strdown (as != NULL ? as + strlen (" as ") : plan->format, -1);

  return g_strdup_printf ("%s/%s", name, format);
}

static gboolean
add_file (OxBench *bench, GPtrArray *subjects, const char *path, GError **error)
{
  OxBenchSubject *subject;
  OxModelOptions options;
  g_autoptr (OxModelPlan) plan = NULL;

  ox_cli_get_model_options (bench->cli, &options);
  plan = ox_model_plan (path, &options, bench->cli->cancellable, error);
  if (plan == NULL)
    return FALSE;
  subject = g_new0 (OxBenchSubject, 1);
  subject->name = file_name (plan);
  subject->path = path;
  subject->weights = options.weights;
  subject->whole = TRUE;
  g_ptr_array_add (subjects, subject);
  return TRUE;
}

static const struct {
  const char *shape, *name;
  OxModelWeights weights;
  gboolean quick, whole;
} shapes[] = {
  { "gemma-4-e2b", "e2b/q8", OX_MODEL_WEIGHTS_Q8, TRUE, TRUE },
  { "gemma-4-e2b", "e2b/q4", OX_MODEL_WEIGHTS_Q4, TRUE, FALSE },
  { "gemma-4-e2b", "e2b/bf16", OX_MODEL_WEIGHTS_STORED, TRUE, FALSE },
  { "qwen3.5-0.8b", "qwen3.5-0.8b/q8", OX_MODEL_WEIGHTS_Q8, TRUE, FALSE },
  { "qwen3.5-0.8b", "qwen3.5-0.8b/q4", OX_MODEL_WEIGHTS_Q4, FALSE, FALSE },
  { "qwen3.5-0.8b", "qwen3.5-0.8b/bf16", OX_MODEL_WEIGHTS_STORED, FALSE, FALSE },
  { "qwen3.5-2b", "qwen3.5-2b/q8", OX_MODEL_WEIGHTS_Q8, TRUE, FALSE },
  { "qwen3.5-2b", "qwen3.5-2b/q4", OX_MODEL_WEIGHTS_Q4, FALSE, FALSE },
  { "qwen3.5-2b", "qwen3.5-2b/bf16", OX_MODEL_WEIGHTS_STORED, FALSE, FALSE },
};

GPtrArray *
ox_bench_find_subjects (OxBench *bench, GError **error)
{
  g_autoptr (GPtrArray) subjects = g_ptr_array_new_with_free_func (subject_free);

  for (char **path = bench->models; path != NULL && *path != NULL; path++)
    if (!add_file (bench, subjects, *path, error))
      return NULL;
  for (gsize i = 0; i < G_N_ELEMENTS (shapes) && bench->all; i++) {
    OxBenchSubject *subject;

    if (bench->quick && !shapes[i].quick)
      continue;
    subject = g_new0 (OxBenchSubject, 1);
    subject->name = g_strdup (shapes[i].name);
    subject->shape = shapes[i].shape;
    subject->weights = shapes[i].weights;
    subject->whole = shapes[i].whole;
    g_ptr_array_add (subjects, subject);
  }
  return g_steal_pointer (&subjects);
}

OxModel *
ox_bench_load (
  OxBench *bench, const OxBenchSubject *subject, guint threads, guint most_tokens, gboolean keeps, GError **error)
{
  g_autofree char *json = NULL;
  OxModelOptions options;
  OxConfig *config;
  OxWeights *weights;

  ox_cli_get_model_options (bench->cli, &options);
  options.weights = subject->weights;
  options.threads = threads;
  options.context_length = most_tokens;
  options.no_packed_cache = !keeps;
  if (subject->path != NULL)
    return ox_model_load (subject->path, &options, NULL, NULL, bench->cli->cancellable, error);
  json = ox_dry_model_make_config (subject->shape);
  config = ox_config_parse_json (json, strlen (json), subject->shape, error);
  weights = config != NULL ? ox_dry_model_weights (config, subject->shape, error) : NULL;
  if (weights == NULL) {
    g_clear_pointer (&config, ox_config_free);
    return NULL;
  }
  return ox_model_load_opened (subject->shape, weights, config, &options, FALSE, NULL, NULL, bench->cli->cancellable,
                               error);
}
