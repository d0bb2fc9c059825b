/* A program to look at numbers with, not a test: what rounding costs a model in quality. Arguments: a text, then GGUF models.
 *
 * Each model is compared with itself in exact precision, first as its file has it, then seen as a BF16 checkpoint that is rounded to
 * 8 and to 4 bits at load. Prints rows of the tables in docs/quality.md.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-eval.h"
#include "ox-float-view.h"
#include "ox-model-private.h"

#include <string.h>

#define POSITIONS 2200

typedef struct {
  const char *name;
  OxModelPrecision precision;
  OxModelWeights weights;
  OxModelKv kv;
} Variant;

static const Variant of_file[] = {
  { "fast", OX_MODEL_PRECISION_FAST, OX_MODEL_WEIGHTS_STORED, OX_MODEL_KV_AUTO },
  { "fast, keys and values Q8", OX_MODEL_PRECISION_FAST, OX_MODEL_WEIGHTS_STORED, OX_MODEL_KV_Q8 },
};

static const Variant of_floats[] = {
  { "BF16, fast", OX_MODEL_PRECISION_FAST, OX_MODEL_WEIGHTS_STORED, OX_MODEL_KV_AUTO },
  { "Q8, exact", OX_MODEL_PRECISION_EXACT, OX_MODEL_WEIGHTS_Q8, OX_MODEL_KV_AUTO },
  { "Q8, fast", OX_MODEL_PRECISION_FAST, OX_MODEL_WEIGHTS_Q8, OX_MODEL_KV_AUTO },
  { "Q4, exact", OX_MODEL_PRECISION_EXACT, OX_MODEL_WEIGHTS_Q4, OX_MODEL_KV_AUTO },
  { "Q4, fast", OX_MODEL_PRECISION_FAST, OX_MODEL_WEIGHTS_Q4, OX_MODEL_KV_AUTO },
};

static OxModel *
load (const char *path, OxWeights *source, gboolean floats, const Variant *variant)
{
  OxModelOptions options = {
    .precision = variant->precision, .weights = variant->weights, .kv = variant->kv, .no_packed_cache = TRUE
  };
  g_autoptr (GError) error = NULL;
  OxModel *model;

  if (!floats) {
    model = ox_model_load (path, &options, NULL, NULL, NULL, &error);
  } else {
    OxWeights *weights = ox_float_view_new (source, &error);
    OxConfig *config = weights != NULL ? ox_config_load (path, source, &error) : NULL;

    model =
      config != NULL ? ox_model_load_opened (path, weights, config, &options, TRUE, NULL, NULL, NULL, &error) : NULL;
  }
  if (model == NULL)
    g_error ("%s", error->message);
  return model;
}

static void
compare (const char *path, gboolean floats, const Variant *variants, gsize n, const char *text)
{
  static const Variant exact = { "exact", OX_MODEL_PRECISION_EXACT, OX_MODEL_WEIGHTS_STORED, OX_MODEL_KV_AUTO };
  OxEvalOptions options = { .max_positions = POSITIONS };
  g_autoptr (GError) error = NULL;
  g_autoptr (OxWeights) source = ox_weights_open (path, NULL, &error);
  g_autoptr (OxModel) reference = source != NULL ? load (path, source, floats, &exact) : NULL;

  if (reference == NULL)
    g_error ("%s", error->message);
  for (gsize i = 0; i < n; i++) {
    g_autoptr (OxModel) model = load (path, source, floats, &variants[i]);
    OxEvalResult result;

    if (!ox_eval_text (model, reference, text, -1, &options, &result, NULL, NULL, NULL, &error))
      g_error ("%s", error->message);
    g_print ("| %s, %s | %s | %u | %.2f | %.2f | %.5f | %.4f | %.2f %% |\n", reference->plan->name,
             reference->plan->format, variants[i].name, result.positions, result.reference_perplexity,
             result.perplexity, result.kl_mean, result.kl_99, 100 * result.top1);
  }
}

int
main (int argc, char **argv)
{
  g_autofree char *text = NULL;

  if (argc < 3 || !g_file_get_contents (argv[1], &text, NULL, NULL)) {
    g_printerr ("usage: %s TEXT MODEL.gguf…\n", argv[0]);
    return 2;
  }
  g_print ("| model | held | positions | perplexity, exact | perplexity | mean KL | 99 %% of KL | same token |\n");
  for (int i = 2; i < argc; i++) {
    compare (argv[i], FALSE, of_file, G_N_ELEMENTS (of_file), text);
    compare (argv[i], TRUE, of_floats, G_N_ELEMENTS (of_floats), text);
  }
  return 0;
}
