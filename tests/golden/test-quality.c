/* What fast precision costs a real model, on over 2,000 positions of text.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-eval.h"
#include "golden/ox-golden-gguf.h"

#define POSITIONS 2200

static void
check (const char *sha256, double most_kl, double least_top1)
{
  const char *models = g_getenv ("OX_TEST_MODELS");
  OxEvalOptions options = { .max_positions = POSITIONS };
  OxModelOptions exact = { .precision = OX_MODEL_PRECISION_EXACT }, fast = { .precision = OX_MODEL_PRECISION_FAST };
  g_autofree char *text_path = g_test_build_filename (G_TEST_DIST, "golden", "eval", "prose.txt", NULL);
  g_autofree char *path = models != NULL ? ox_golden_gguf_find_model (models, sha256) : NULL;
  g_autofree char *text = NULL;
  g_autoptr (GError) error = NULL;
  g_autoptr (OxModel) reference = NULL;
  g_autoptr (OxModel) model = NULL;
  OxEvalResult result;

  if (path == NULL) {
    g_test_skip ("OX_TEST_MODELS names no folder with this model");
    return;
  }
  g_assert_true (g_file_get_contents (text_path, &text, NULL, NULL));
  reference = ox_model_load (path, &exact, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  model = ox_model_load (path, &fast, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  ox_eval_text (model, reference, text, -1, &options, &result, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  g_test_message (
    "%u positions: KL %.5f, 99 %% of them at most %.4f, the same token at %.2f %%; perplexity %.3f, exactly %.3f",
    result.positions, result.kl_mean, result.kl_99, 100 * result.top1, result.perplexity, result.reference_perplexity);
  g_assert_cmpuint (result.positions, >=, 2000);
  g_assert_cmpfloat (result.kl_mean, >, 0);
  g_assert_cmpfloat (result.kl_mean, <=, most_kl);
  g_assert_cmpfloat (result.top1, >=, least_top1);
  /* A model that predicts nothing would agree with itself, too. */
  g_assert_cmpfloat (result.reference_perplexity, <, 60);
}

static void
test_gemma3 (void)
{
  check ("a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818", 0.005, 0.965);
}

static void
test_smollm2 (void)
{
  check ("b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53", 0.005, 0.95);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/quality/fast/gemma3-270m", test_gemma3);
  g_test_add_func ("/quality/fast/smollm2-135m", test_smollm2);
  return g_test_run ();
}
