/* Options that subcommands share, and what follows from them.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-cli.h"

#include <math.h>
#include <string.h>

#define MAX_THREADS 1024

/* Doubles and integers that nobody gave. */
#define UNSET_INT G_MININT
#define UNSET_DOUBLE (-G_MAXDOUBLE) /* no NaN: that can be given, and is refused */
#define UNSET_SEED G_MININT64

static const char exit_codes[] = "Exit codes:\n"
                                 "  0  fine\n"
                                 "  1  failed: the message is on standard error\n"
                                 "  2  wrong usage\n"
                                 "  130  interrupted (Ctrl+C, or SIGTERM)";

static void
add_groups (OxCli *cli, GOptionContext *context, OxCliOptions groups)
{
  const GOptionEntry model[] = {
    { "model", 'm', 0, G_OPTION_ARG_FILENAME, &cli->model_path,
      "A .gguf file, a .safetensors file or a Hugging Face folder", "PATH" },
    { NULL },
  };
  const GOptionEntry load[] = {
    { "precision", 0, 0, G_OPTION_ARG_FILENAME, &cli->precision,
      "exact: float32 activations; fast: as small as the weights (default: auto)", "auto|exact|fast" },
    { "weights", 0, 0, G_OPTION_ARG_FILENAME, &cli->weights,
      "How float weights are held (default: auto; files that are quantised already stay as they are)",
      "auto|stored|q8|q4" },
    { "kv", 0, 0, G_OPTION_ARG_FILENAME, &cli->kv, "How keys and values are held (default: auto)",
      "auto|f32|f16|bf16|q8" },
    { "threads", 't', 0, G_OPTION_ARG_INT, &cli->threads, "Worker threads (default: every core allowed)", "N" },
    { "context", 'c', 0, G_OPTION_ARG_INT, &cli->context,
      "Tokens a conversation may have (default: the model's, at most 8192)", "N" },
    { "ignore-memory", 0, 0, G_OPTION_ARG_NONE, &cli->ignore_memory, "Load even when it does not seem to fit in memory",
      NULL },
    { NULL },
  };
  const GOptionEntry ahead[] = {
    { "drafter", 0, 0, G_OPTION_ARG_FILENAME, &cli->drafter, "A smaller model, made for this one, that guesses ahead",
      "PATH" },
    { "no-speculation", 0, 0, G_OPTION_ARG_NONE, &cli->no_speculation, "Do not guess tokens ahead", NULL },
    { NULL },
  };
  const GOptionEntry sample[] = {
    { "greedy", 0, 0, G_OPTION_ARG_NONE, &cli->greedy, "Always the likeliest token, as with --temperature 0", NULL },
    { "temperature", 0, 0, G_OPTION_ARG_DOUBLE, &cli->temperature,
      "0: always the likeliest token; higher: freer (default: the model's, as for those below)", "X" },
    { "top-k", 0, 0, G_OPTION_ARG_INT, &cli->top_k, "Choose among the N likeliest (0: all)", "N" },
    { "top-p", 0, 0, G_OPTION_ARG_DOUBLE, &cli->top_p, "Choose among the likeliest that have probability X together",
      "X" },
    { "min-p", 0, 0, G_OPTION_ARG_DOUBLE, &cli->min_p, "Leave out what is less likely than X times the likeliest",
      "X" },
    { "repetition-penalty", 0, 0, G_OPTION_ARG_DOUBLE, &cli->repetition_penalty, "Above 1: repeat less", "X" },
    { "frequency-penalty", 0, 0, G_OPTION_ARG_DOUBLE, &cli->frequency_penalty, "Above 0: less of what was often said",
      "X" },
    { "presence-penalty", 0, 0, G_OPTION_ARG_DOUBLE, &cli->presence_penalty, "Above 0: less of what was said at all",
      "X" },
    { "seed", 0, 0, G_OPTION_ARG_INT64, &cli->seed, "The same seed gives the same answer (0: a new one each time)",
      "N" },
    { "max-tokens", 'n', 0, G_OPTION_ARG_INT, &cli->max_tokens, "Longest answer (0: up to the end of the context)",
      "N" },
    { "stop", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &cli->stop, "End the answer before this text; may be given again",
      "TEXT" },
    { "json-schema", 0, 0, G_OPTION_ARG_FILENAME, &cli->json_schema_path, "Only JSON that this schema allows", "FILE" },
    { NULL },
  };

  cli->temperature = cli->top_p = cli->min_p = cli->repetition_penalty = UNSET_DOUBLE;
  cli->frequency_penalty = cli->presence_penalty = UNSET_DOUBLE;
  cli->top_k = cli->max_tokens = UNSET_INT;
  cli->seed = UNSET_SEED;
  if (groups & OX_CLI_OPTIONS_MODEL)
    g_option_context_add_main_entries (context, model, NULL);
  if (groups & OX_CLI_OPTIONS_LOAD)
    g_option_context_add_main_entries (context, load, NULL);
  if (groups & OX_CLI_OPTIONS_AHEAD)
    g_option_context_add_main_entries (context, ahead, NULL);
  if (groups & OX_CLI_OPTIONS_SAMPLE)
    g_option_context_add_main_entries (context, sample, NULL);
}

static const struct {
  const char *name;
  OxModelPrecision precision;
} precisions[] = {
  { "auto", OX_MODEL_PRECISION_AUTO },
  { "exact", OX_MODEL_PRECISION_EXACT },
  { "fast", OX_MODEL_PRECISION_FAST },
};

static const struct {
  const char *name;
  OxModelWeights weights;
} weights_names[] = {
  { "auto", OX_MODEL_WEIGHTS_AUTO },
  { "stored", OX_MODEL_WEIGHTS_STORED },
  { "q8", OX_MODEL_WEIGHTS_Q8 },
  { "q4", OX_MODEL_WEIGHTS_Q4 },
};

static const struct {
  const char *name;
  OxModelKv kv;
} kv_names[] = {
  { "auto", OX_MODEL_KV_AUTO }, { "f32", OX_MODEL_KV_F32 }, { "f16", OX_MODEL_KV_F16 },
  { "bf16", OX_MODEL_KV_BF16 }, { "q8", OX_MODEL_KV_Q8 },
};

static gboolean
parse_precision (const char *text, OxModelPrecision *precision)
{
  for (gsize i = 0; i < G_N_ELEMENTS (precisions); i++) {
    if (strcmp (text, precisions[i].name) == 0) {
      *precision = precisions[i].precision;
      return TRUE;
    }
  }
  return FALSE;
}

static gboolean
parse_weights (const char *text, OxModelWeights *weights)
{
  for (gsize i = 0; i < G_N_ELEMENTS (weights_names); i++) {
    if (strcmp (text, weights_names[i].name) == 0) {
      *weights = weights_names[i].weights;
      return TRUE;
    }
  }
  return FALSE;
}

static gboolean
parse_kv (const char *text, OxModelKv *kv)
{
  for (gsize i = 0; i < G_N_ELEMENTS (kv_names); i++) {
    if (strcmp (text, kv_names[i].name) == 0) {
      *kv = kv_names[i].kv;
      return TRUE;
    }
  }
  return FALSE;
}

gboolean
ox_cli_parse_variant (const char *text, OxModelOptions *options)
{
  g_auto (GStrv) parts = g_strsplit (text, "/", -1);
  gboolean has_precision = FALSE, has_weights = FALSE;

  options->precision = OX_MODEL_PRECISION_AUTO;
  options->weights = OX_MODEL_WEIGHTS_AUTO;
  for (char **part = parts; *part != NULL; part++) {
    if (!has_precision && parse_precision (*part, &options->precision))
      has_precision = TRUE;
    else if (!has_weights && parse_weights (*part, &options->weights))
      has_weights = TRUE;
    else
      return FALSE;
  }
  return has_precision || has_weights;
}

gboolean
ox_cli_parse_thinking (const char *text, OxThinking *thinking)
{
  static const char *const names[] = { "default", "off", "on" };

  *thinking = OX_THINKING_DEFAULT;
  for (gsize i = 0; i < G_N_ELEMENTS (names); i++) {
    if (text == NULL || strcmp (text, names[i]) == 0) {
      *thinking = (OxThinking) i;
      return TRUE;
    }
  }
  return FALSE;
}

void
ox_cli_clear (OxCli *cli)
{
  g_free (cli->model_path);
  g_free (cli->precision);
  g_free (cli->weights);
  g_free (cli->kv);
  g_free (cli->drafter);
  g_strfreev (cli->stop);
  g_free (cli->json_schema_path);
  g_free (cli->json_schema);
}

/* NULL when all that was given makes sense. */
static const char *
find_nonsense (OxCli *cli)
{
  OxModelOptions options;

  if (cli->precision != NULL && !parse_precision (cli->precision, &options.precision))
    return "--precision is “auto”, “exact” or “fast”";
  if (cli->weights != NULL && !parse_weights (cli->weights, &options.weights))
    return "--weights is “auto”, “stored”, “q8” or “q4”";
  if (cli->kv != NULL && !parse_kv (cli->kv, &options.kv))
    return "--kv is “auto”, “f32”, “f16”, “bf16” or “q8”";
  if (cli->threads < 0 || cli->threads > MAX_THREADS)
    return "--threads is between 0 and 1024";
  if (cli->context < 0)
    return "--context cannot be negative";
  if (cli->greedy && cli->temperature != UNSET_DOUBLE)
    return "--greedy is a temperature already, of 0";
  if (cli->temperature != UNSET_DOUBLE && !(cli->temperature >= 0 && cli->temperature < INFINITY))
    return "--temperature is a number of 0 or more";
  if (cli->top_k != UNSET_INT && cli->top_k < 0)
    return "--top-k cannot be negative";
  if (cli->top_p != UNSET_DOUBLE && !(cli->top_p > 0 && cli->top_p <= 1))
    return "--top-p is above 0 and at most 1";
  if (cli->min_p != UNSET_DOUBLE && !(cli->min_p >= 0 && cli->min_p <= 1))
    return "--min-p is between 0 and 1";
  if (cli->repetition_penalty != UNSET_DOUBLE && !(cli->repetition_penalty > 0 && cli->repetition_penalty < INFINITY))
    return "--repetition-penalty is above 0";
  if (!isfinite (cli->frequency_penalty) || !isfinite (cli->presence_penalty))
    return "--frequency-penalty and --presence-penalty are finite";
  if (cli->seed != UNSET_SEED && cli->seed < 0)
    return "--seed cannot be negative";
  if (cli->max_tokens != UNSET_INT && cli->max_tokens < 0)
    return "--max-tokens cannot be negative";
  return NULL;
}

gboolean
ox_cli_parse (OxCli *cli,
              int argc,
              char **argv,
              OxCliOptions groups,
              const GOptionEntry *entries,
              const char *parameters,
              const char *description,
              char ***rest,
              int *exit_code)
{
  g_autoptr (GOptionContext) context = g_option_context_new (parameters);
  g_autofree char *full = g_strdup_printf ("%s\n\n%s", description, exit_codes);
  g_auto (GStrv) left = NULL;
  g_autoptr (GError) error = NULL;
  g_autoptr (GStrvBuilder) builder = g_strv_builder_new ();
  g_auto (GStrv) strv = NULL;
  gboolean help = FALSE;
  const GOptionEntry common[] = {
    { "help", 'h', 0, G_OPTION_ARG_NONE, &help, "This text", NULL },
    { G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &left, NULL, NULL },
    { NULL },
  };
  g_autofree char *program = g_strdup_printf ("oxinfer-cli %s", argv[0]);

  /* Our own --help, since GOption's would leave by exit(). */
  g_option_context_set_help_enabled (context, FALSE);
  g_option_context_set_description (context, full);
  add_groups (cli, context, groups);
  g_option_context_add_main_entries (context, entries, NULL);
  g_option_context_add_main_entries (context, common, NULL);

  g_strv_builder_add (builder, program);
  g_strv_builder_addv (builder, (const char **) argv + 1);
  strv = g_strv_builder_end (builder);
  if (!g_option_context_parse_strv (context, &strv, &error)) {
    *exit_code = ox_cli_usage (cli, "%s", error->message);
    return FALSE;
  }
  if (help) {
    g_autofree char *text = NULL;

    g_set_prgname (program);
    text = g_option_context_get_help (context, TRUE, NULL);
    fputs (text, stdout);
    *exit_code = OX_CLI_OK;
    return FALSE;
  }
  if (find_nonsense (cli) != NULL) {
    *exit_code = ox_cli_usage (cli, "%s", find_nonsense (cli));
    return FALSE;
  }
  if (rest == NULL && left != NULL) {
    *exit_code = ox_cli_usage (cli, "“%s” is one argument too many", left[0]);
    return FALSE;
  }
  if (rest != NULL)
    *rest = g_steal_pointer (&left);
  return TRUE;
}

int
ox_cli_usage (OxCli *cli, const char *format, ...)
{
  g_autofree char *message = NULL;
  va_list args;

  va_start (args, format);
  message = g_strdup_vprintf (format, args);
  va_end (args);
  fprintf (stderr, "oxinfer-cli: %s. Try “oxinfer-cli %s%s--help”.\n", message,
           cli->command != NULL ? cli->command : "", cli->command != NULL ? " " : "");
  return OX_CLI_USAGE;
}

void
ox_cli_get_model_options (OxCli *cli, OxModelOptions *options)
{
  *options = (OxModelOptions) {
    .threads = (guint) cli->threads,
    .context_length = (guint) cli->context,
    .ignore_memory = cli->ignore_memory,
    .drafter = cli->drafter,
  };
  if (cli->precision != NULL)
    parse_precision (cli->precision, &options->precision);
  if (cli->weights != NULL)
    parse_weights (cli->weights, &options->weights);
  if (cli->kv != NULL)
    parse_kv (cli->kv, &options->kv);
}

void
ox_cli_get_sampling (OxCli *cli, OxModel *model, OxSampling *sampling)
{
  ox_model_get_default_sampling (model, sampling);
  if (cli->greedy)
    sampling->temperature = 0;
  if (cli->temperature != UNSET_DOUBLE)
    sampling->temperature = (float) cli->temperature;
  if (cli->top_k != UNSET_INT)
    sampling->top_k = (guint) cli->top_k;
  if (cli->top_p != UNSET_DOUBLE)
    sampling->top_p = (float) cli->top_p;
  if (cli->min_p != UNSET_DOUBLE)
    sampling->min_p = (float) cli->min_p;
  if (cli->repetition_penalty != UNSET_DOUBLE)
    sampling->repetition_penalty = (float) cli->repetition_penalty;
  if (cli->frequency_penalty != UNSET_DOUBLE)
    sampling->frequency_penalty = (float) cli->frequency_penalty;
  if (cli->presence_penalty != UNSET_DOUBLE)
    sampling->presence_penalty = (float) cli->presence_penalty;
  if (cli->stop != NULL)
    sampling->stop = (const char *const *) cli->stop;
  sampling->json_schema = cli->json_schema;
  if (cli->seed != UNSET_SEED)
    sampling->seed = (guint64) cli->seed;
  if (cli->max_tokens != UNSET_INT)
    sampling->max_tokens = (guint) cli->max_tokens;
}
