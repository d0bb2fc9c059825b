/* oxinfer-cli eval: how well a model predicts a text, and how far rounding takes it from another version of itself.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-cli.h"

#include <string.h>
#include <unistd.h>

#include "ox-eval.h"
#include "ox-model-private.h"

typedef struct {
  char *against;
  char *reference_path;
  int window;
  int positions;
  OxModelOptions reference_options;
} Eval;

static void
eval_clear (Eval *eval)
{
  g_free (eval->against);
  g_free (eval->reference_path);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Eval, eval_clear)

static void
on_progress (double fraction, gpointer user_data)
{
  fprintf (stderr, "\rReading … %3d %%", (int) (fraction * 100));
  fflush (stderr);
}

static const char *
precision_name (const OxModel *model)
{
  return model->ops_options.precision == OX_PRECISION_EXACT ? "exact" : "fast";
}

static void
write_table (OxCli *cli, const Eval *eval, OxModel *model, OxModel *reference, const OxEvalResult *result)
{
  ox_cli_write_line (cli, "Model", "%s, %s, %s", model->plan->name, model->plan->format, precision_name (model));
  if (reference != NULL)
    ox_cli_write_line (cli, "Against", "%s, %s, %s", reference->plan->name, reference->plan->format,
                       precision_name (reference));
  ox_cli_write_line (cli, "Text", "%u predictions in windows of %d tokens", result->positions, eval->window);
  ox_cli_write_line (cli, "Perplexity", "%.4f (%.4f nats a token)", result->perplexity, result->nll);
  if (reference == NULL)
    return;
  ox_cli_write_line (cli, "of the other", "%.4f", result->reference_perplexity);
  ox_cli_write_line (cli, "KL divergence", "%.6f nats on average, 99 of 100 at most %.6f, at most %.6f",
                     result->kl_mean, result->kl_99, result->kl_max);
  ox_cli_write_line (cli, "Same choice", "%.2f %% of the time", 100 * result->top1);
}

static void
add_model (yyjson_mut_doc *doc, yyjson_mut_val *root, const char *key, OxModel *model)
{
  const OxModelPlan *plan = ox_model_get_plan (model);
  yyjson_mut_val *object = yyjson_mut_obj_add_obj (doc, root, key);
  g_autofree char *path = g_utf8_make_valid (plan->path, -1);

  yyjson_mut_obj_add_strcpy (doc, object, "path", path);
  yyjson_mut_obj_add_strcpy (doc, object, "name", plan->name);
  yyjson_mut_obj_add_strcpy (doc, object, "format", plan->format);
  yyjson_mut_obj_add_str (doc, object, "precision", precision_name (model));
}

static void
write_json (OxCli *cli, const Eval *eval, OxModel *model, OxModel *reference, const OxEvalResult *result)
{
  yyjson_mut_doc *doc = yyjson_mut_doc_new (NULL);
  yyjson_mut_val *root = yyjson_mut_obj (doc);

  yyjson_mut_doc_set_root (doc, root);
  add_model (doc, root, "model", model);
  yyjson_mut_obj_add_uint (doc, root, "positions", result->positions);
  yyjson_mut_obj_add_int (doc, root, "window", eval->window);
  ox_cli_json_real (doc, root, "nll", result->nll);
  ox_cli_json_real (doc, root, "perplexity", result->perplexity);
  if (reference != NULL) {
    add_model (doc, root, "reference", reference);
    ox_cli_json_real (doc, root, "reference_perplexity", result->reference_perplexity);
    ox_cli_json_real (doc, root, "kl_mean", result->kl_mean);
    ox_cli_json_real (doc, root, "kl_99", result->kl_99);
    ox_cli_json_real (doc, root, "kl_max", result->kl_max);
    ox_cli_json_real (doc, root, "top1", result->top1);
  }
  ox_cli_write_json (cli, doc);
}

static int
run (OxCli *cli, const Eval *eval, const char *path)
{
  const OxEvalOptions options = { (guint) eval->window, (guint) eval->positions };
  gboolean shows = isatty (STDERR_FILENO) && !cli->quiet;
  g_autoptr (OxModel) model = NULL;
  g_autoptr (OxModel) reference = NULL;
  g_autoptr (GError) error = NULL;
  g_autofree char *text = NULL;
  OxEvalResult result;
  gboolean ok;

  text = strcmp (path, "-") == 0 ? ox_cli_read_all (cli, &error) : ox_cli_read_file (cli, path, &error);
  if (text == NULL || (model = ox_cli_load (cli, &error)) == NULL)
    return ox_cli_fail (cli, error);
  if (eval->against != NULL || eval->reference_path != NULL) {
    reference = ox_cli_load_with (cli, eval->reference_path != NULL ? eval->reference_path : cli->model_path,
                                  &eval->reference_options, &error);
    if (reference == NULL)
      return ox_cli_fail (cli, error);
  }
  ok = ox_eval_text (model, reference, text, -1, &options, &result, shows ? on_progress : NULL, NULL, cli->cancellable,
                     &error);
  if (shows)
    fputs ("\r                \r", stderr);
  if (!ok)
    return ox_cli_fail (cli, error);
  if (cli->json)
    write_json (cli, eval, model, reference, &result);
  else
    write_table (cli, eval, model, reference, &result);
  return cli->output_error != 0 ? ox_cli_fail (cli, NULL) : OX_CLI_OK;
}

int
ox_cli_eval (OxCli *cli, int argc, char **argv)
{
  g_auto (Eval) eval = { .window = 512 };
  g_auto (GStrv) rest = NULL;
  const GOptionEntry entries[] = {
    { "against", 0, 0, G_OPTION_ARG_FILENAME, &eval.against,
      "Compare with the same model in another precision, or with its weights held in another way",
      "PRECISION/WEIGHTS" },
    { "reference", 0, 0, G_OPTION_ARG_FILENAME, &eval.reference_path, "Compare with another model of the same tokens",
      "PATH" },
    { "window", 0, 0, G_OPTION_ARG_INT, &eval.window,
      "Tokens that are read together, and that predictions can see (default: 512)", "N" },
    { "positions", 0, 0, G_OPTION_ARG_INT, &eval.positions, "Predictions at most (default: all of the text)", "N" },
    { "json", 0, 0, G_OPTION_ARG_NONE, &cli->json, "One JSON object", NULL },
    { "quiet", 'q', 0, G_OPTION_ARG_NONE, &cli->quiet, "No progress", NULL },
    { NULL },
  };
  int exit_code;

  if (!ox_cli_parse (
        cli, argc, argv, OX_CLI_OPTIONS_MODEL | OX_CLI_OPTIONS_LOAD, entries, "--model PATH FILE",
        "Perplexity is how many tokens the model wavers between: less is better, of texts cut into the same tokens.\n"
        "Against another version of a model: how far its predictions are from it, over the whole vocabulary, and how\n"
        "often both hold the same token likeliest. FILE is UTF-8 text; - is standard input.\n\n"
        "Examples:\n"
        "  oxinfer-cli eval --model model.gguf book.txt\n"
        "  oxinfer-cli eval --model gemma-3-270m-it --weights q4 --against exact/stored --positions 2000 book.txt\n"
        "  oxinfer-cli eval --model model-q4.gguf --reference model-bf16 --against exact book.txt --json",
        &rest, &exit_code))
    return exit_code;
  if (cli->model_path == NULL)
    return ox_cli_usage (cli, "which model? --model is missing");
  if (rest == NULL || g_strv_length (rest) != 1)
    return ox_cli_usage (cli, "which text? One file is to be named");
  if (eval.window < 2)
    return ox_cli_usage (cli, "--window is at least 2");
  if (eval.positions < 0)
    return ox_cli_usage (cli, "--positions cannot be negative");
  ox_cli_get_model_options (cli, &eval.reference_options);
  if (eval.against != NULL && !ox_cli_parse_variant (eval.against, &eval.reference_options))
    return ox_cli_usage (
      cli, "--against is a precision (exact, fast), weights (stored, q8, q4), or both like “exact/stored”");
  ox_cli_catch_signals (cli);
  return run (cli, &eval, rest[0]);
}
