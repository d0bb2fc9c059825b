/* Models without weights: they have the tensors that real ones have, and run.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-dry-model.h"
#include "ox-session-private.h"

#include <malloc.h>
#include <math.h>
#include <string.h>

/* Sanitizers take memory of their own. */
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED TRUE
#else
#define SANITIZED FALSE
#endif

static const char *const folders[] = { "gemma3",     "gemma4-e2b", "gemma4-e4b",   "gemma4-12b",
                                       "gemma4-26b", "gemma4-31b", "qwen35-small", "qwen35-large" };

static char *
folder_of (const char *name)
{
  return g_build_filename (g_getenv ("OX_TEST_DATA"), "golden", "text", name, "model", NULL);
}

static OxConfig *
load_config (const char *name, OxWeights **weights)
{
  g_autofree char *folder = folder_of (name);
  g_autoptr (GError) error = NULL;
  OxConfig *config;

  *weights = ox_weights_open (folder, NULL, &error);
  g_assert_no_error (error);
  config = ox_config_load (folder, *weights, &error);
  g_assert_no_error (error);
  return config;
}

/* "model.language_model.layers.0.x" → "model.layers.0.x"; NULL for what is no part of the text network. */
static char *
plain_name (const char *name)
{
  static const char *const prefixes[] = { "model.language_model.", "language_model.model.", "model." };

  if (strstr (name, "vision") != NULL || strstr (name, "visual") != NULL || strstr (name, "audio") != NULL ||
      strstr (name, "mtp.") != NULL)
    return NULL;
  for (gsize i = 0; i < G_N_ELEMENTS (prefixes); i++)
    if (g_str_has_prefix (name, prefixes[i]))
      return g_strconcat ("model.", name + strlen (prefixes[i]), NULL);
  return g_strconcat ("model.", name, NULL);
}

/* Each tensor of a checkpoint that the reference wrote is there, in the same shape, and no other. */
static void
test_tensors (void)
{
  for (gsize f = 0; f < G_N_ELEMENTS (folders); f++) {
    g_autoptr (OxWeights) real = NULL;
    g_autoptr (OxWeights) dry = NULL;
    g_autoptr (OxConfig) config = load_config (folders[f], &real);
    g_autoptr (GError) error = NULL;
    guint n = 0;

    dry = ox_dry_model_weights (config, folders[f], &error);
    g_assert_no_error (error);
    for (guint i = 0; i < ox_weights_get_n_tensors (real); i++) {
      const OxTensorInfo *tensor = ox_weights_get_tensor (real, i);
      g_autofree char *name = plain_name (tensor->name);
      const OxTensorInfo *found = name != NULL ? ox_weights_find (dry, name) : NULL;

      if (name == NULL)
        continue;
      if (found == NULL)
        g_error ("%s: there is no %s", folders[f], name);
      n++;
      g_assert_cmpuint (found->n_dims, ==, tensor->n_dims);
      for (guint d = 0; d < tensor->n_dims; d++)
        g_assert_cmpuint (found->dims[d], ==, tensor->dims[d]);
    }
    /* Layers that share keys and values have projections for them all the same, or, as newer libraries write it, have not. */
    if (n != ox_weights_get_n_tensors (dry))
      g_assert_cmpuint (n + 3 * config->num_kv_shared_layers, ==, ox_weights_get_n_tensors (dry));
  }
}

/* Loads and runs, held in every way, with logits that are numbers and not all the same. */
static void
test_runs (void)
{
  static const OxModelWeights weights[] = { OX_MODEL_WEIGHTS_STORED, OX_MODEL_WEIGHTS_Q8, OX_MODEL_WEIGHTS_Q4 };

  for (gsize f = 0; f < G_N_ELEMENTS (folders); f++)
    for (guint w = 0; w < G_N_ELEMENTS (weights); w++) {
      OxModelOptions options = { .weights = weights[w], .context_length = 64, .no_packed_cache = TRUE };
      g_autoptr (OxWeights) real = NULL;
      OxConfig *config = load_config (folders[f], &real);
      g_autoptr (GError) error = NULL;
      OxWeights *dry = ox_dry_model_weights (config, folders[f], &error);
      g_autoptr (OxModel) model =
        ox_model_load_opened (folders[f], dry, config, &options, FALSE, NULL, NULL, NULL, &error);
      g_autoptr (OxSession) session = NULL;
      g_autofree float *logits = NULL;
      guint32 ids[24];
      double sum = 0, squares = 0;
      guint vocab;

      g_assert_no_error (error);
      session = ox_session_new (model, &error);
      g_assert_no_error (error);
      vocab = model->config->vocab_size;
      logits = g_new0 (float, vocab);
      for (guint i = 0; i < G_N_ELEMENTS (ids); i++)
        ids[i] = i * 7 % vocab;
      ox_session_eval (session, ids, G_N_ELEMENTS (ids), OX_LOGITS_LAST, logits, NULL, &error);
      g_assert_no_error (error);
      for (guint i = 0; i < vocab; i++) {
        g_assert_true (isfinite (logits[i]));
        sum += logits[i] / vocab;
        squares += logits[i] * logits[i] / vocab;
      }
      g_assert_cmpfloat (squares - sum * sum, >, 0.01);
      g_assert_cmpfloat (squares, <, 100);
    }
}

static guint64
process_memory (const char *key)
{
  g_autofree char *status = NULL;

  g_assert_true (g_file_get_contents ("/proc/self/status", &status, NULL, NULL));
  g_assert_nonnull (strstr (status, key));
  return g_ascii_strtoull (strstr (status, key) + strlen (key), NULL, 10) * 1024;
}

/* FALSE when the kernel cannot. */
static gboolean
forget_peak (void)
{
  FILE *file = fopen ("/proc/self/clear_refs", "w");
  gboolean ok;

  if (file == NULL)
    return FALSE;
  ok = fputs ("5", file) >= 0;
  return fclose (file) == 0 && ok;
}

/* Loading and running takes what the plan says, within a twentieth and at no time more, at the shapes of real models with fewer layers
 * and tokens. */
static void
check_memory (const char *name, guint layers, OxModelWeights weights)
{
  OxModelOptions options = { .weights = weights, .context_length = 160, .no_packed_cache = TRUE };
  g_autofree char *json = ox_dry_model_make_config (name);
  g_autoptr (GError) error = NULL;
  OxConfig *config = ox_config_parse_json (json, strlen (json), name, &error);
  g_autoptr (OxModel) model = NULL;
  g_autoptr (OxSession) session = NULL;
  g_autofree float *logits = NULL;
  OxWeights *dry;
  guint32 ids[150];
  guint64 before, needed, used, peak = 0;
  gboolean has_peak;

  g_assert_no_error (error);
  config->num_hidden_layers = layers;
  config->vocab_size = config->vocab_size_per_layer_input = 32768;
  dry = ox_dry_model_weights (config, name, &error);
  g_assert_no_error (error);
  malloc_trim (0);
  has_peak = forget_peak ();
  before = process_memory ("VmRSS:");
  model = ox_model_load_opened (name, dry, config, &options, FALSE, NULL, NULL, NULL, &error);
  if (g_error_matches (error, OX_ERROR, OX_ERROR_NO_MEMORY)) {
    g_test_skip ("there is not enough memory free");
    return;
  }
  g_assert_no_error (error);
  session = ox_session_new (model, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < G_N_ELEMENTS (ids); i++)
    ids[i] = i * 31;
  logits = g_new (float, config->vocab_size);
  ox_session_eval (session, ids, G_N_ELEMENTS (ids), OX_LOGITS_LAST, logits, NULL, &error);
  g_assert_no_error (error);
  used = process_memory ("VmRSS:") - before;
  if (has_peak)
    peak = process_memory ("VmHWM:") - before;
  needed = ox_model_get_plan (model)->memory_needed;
  g_test_message ("%s with %u layers: planned %" G_GUINT64_FORMAT ", took %" G_GUINT64_FORMAT
                  " (%.1f %%), at most %" G_GUINT64_FORMAT,
                  name, layers, needed, used, 100 * (double) used / (double) needed, peak);
  g_assert_cmpfloat ((double) used, >, 0.95 * (double) needed);
  g_assert_cmpfloat ((double) used, <, 1.05 * (double) needed);
  g_assert_cmpfloat ((double) peak, <, 1.05 * (double) needed);
}

static void
test_memory (void)
{
  if (SANITIZED) {
    g_test_skip ("sanitizers take memory of their own");
    return;
  }
  check_memory ("gemma-4-e2b", 10, OX_MODEL_WEIGHTS_STORED);
  check_memory ("qwen3.5-2b", 8, OX_MODEL_WEIGHTS_Q8);
  check_memory ("gemma-4-12b", 6, OX_MODEL_WEIGHTS_Q4);
}

/* Any part of the file is the same however it is read. */
static void
test_reads (void)
{
  g_autoptr (OxWeights) real = NULL;
  g_autoptr (OxConfig) config = load_config ("gemma4-e2b", &real);
  g_autoptr (GError) error = NULL;
  g_autoptr (OxWeights) dry = ox_dry_model_weights (config, "dry", &error);
  OxFile *file = ox_weights_get_tensor (dry, 0)->file;
  guint64 size = ox_file_get_size (file);
  g_autofree guint8 *whole = g_malloc (size);
  g_autofree guint8 *part = g_malloc (size);
  g_autoptr (GRand) rand = g_rand_new_with_seed (1);

  g_assert_true (ox_file_read (file, 0, whole, size, &error));
  for (guint i = 0; i < 400; i++) {
    guint64 offset = (guint64) (g_rand_double (rand) * (double) size);
    gsize len = (gsize) g_rand_int_range (rand, 0, i % 2 ? 100 : 30000);

    len = MIN (len, size - offset);
    g_assert_true (ox_file_read (file, offset, part, len, &error));
    g_assert_cmpmem (part, len, whole + offset, len);
  }
  g_assert_false (ox_file_read (file, size, part, 1, &error));
  g_assert_error (error, OX_ERROR, OX_ERROR_DAMAGED);
}

/* Every published shape can be planned, and has as many parameters as it is called by. */
static void
test_names (void)
{
  static const struct {
    const char *name;
    double billions; /* of the text network, from the repositories' headers */
  } expected[] = { { "qwen3.5-0.8b", 0.752393024 },
                   { "qwen3.5-2b", 1.881825088 },
                   { "qwen3.5-4b", 4.205751296 },
                   { "qwen3.5-9b", 8.953803264 },
                   { "qwen3.5-27b", 26.895998464 } };
  const char *const *names = ox_dry_model_get_names ();

  for (guint i = 0; names[i] != NULL; i++) {
    g_autofree char *json = ox_dry_model_make_config (names[i]);
    g_autoptr (GError) error = NULL;
    g_autoptr (OxConfig) config = ox_config_parse_json (json, strlen (json), names[i], &error);
    g_autoptr (OxWeights) weights = NULL;
    g_autoptr (OxModelPlan) plan = NULL;

    g_assert_no_error (error);
    weights = ox_dry_model_weights (config, names[i], &error);
    g_assert_no_error (error);
    plan = ox_model_plan_weights (names[i], weights, config, NULL, NULL, &error);
    g_assert_no_error (error);
    for (gsize e = 0; e < G_N_ELEMENTS (expected); e++)
      if (strcmp (expected[e].name, names[i]) == 0)
        g_assert_cmpuint (plan->parameters, ==, (guint64) llround (expected[e].billions * 1e9));
  }
  g_assert_null (ox_dry_model_make_config ("gemma-5"));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/dry-model/tensors", test_tensors);
  g_test_add_func ("/dry-model/runs", test_runs);
  g_test_add_func ("/dry-model/memory", test_memory);
  g_test_add_func ("/dry-model/reads", test_reads);
  g_test_add_func ("/dry-model/names", test_names);
  return g_test_run ();
}
