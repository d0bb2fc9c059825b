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
      "exact: float32 activations; fast: as small as the weights (default: auto)", "exact|fast" },
    { "threads", 't', 0, G_OPTION_ARG_INT, &cli->threads, "Worker threads (default: every core allowed)", "N" },
    { "context", 'c', 0, G_OPTION_ARG_INT, &cli->context,
      "Tokens a conversation may have (default: the model's, at most 8192)", "N" },
    { "ignore-memory", 0, 0, G_OPTION_ARG_NONE, &cli->ignore_memory, "Load even when it does not seem to fit in memory",
      NULL },
    { NULL },
  };
  const GOptionEntry sample[] = {
    { "temperature", 0, 0, G_OPTION_ARG_DOUBLE, &cli->temperature, "0: always the likeliest token", "X" },
    { "top-k", 0, 0, G_OPTION_ARG_INT, &cli->top_k, "Choose among the N likeliest (0: all)", "N" },
    { "top-p", 0, 0, G_OPTION_ARG_DOUBLE, &cli->top_p, "Choose among the likeliest that have probability X together",
      "X" },
    { "min-p", 0, 0, G_OPTION_ARG_DOUBLE, &cli->min_p, "Leave out what is less likely than X times the likeliest",
      "X" },
    { "repetition-penalty", 0, 0, G_OPTION_ARG_DOUBLE, &cli->repetition_penalty, "Above 1: repeat less", "X" },
    { "seed", 0, 0, G_OPTION_ARG_INT64, &cli->seed, "The same seed gives the same answer (0: a new one each time)",
      "N" },
    { "max-tokens", 'n', 0, G_OPTION_ARG_INT, &cli->max_tokens, "Longest answer (0: up to the end of the context)",
      "N" },
    { NULL },
  };

  cli->temperature = cli->top_p = cli->min_p = cli->repetition_penalty = NAN;
  cli->top_k = cli->max_tokens = UNSET_INT;
  cli->seed = UNSET_SEED;
  if (groups & OX_CLI_OPTIONS_MODEL)
    g_option_context_add_main_entries (context, model, NULL);
  if (groups & OX_CLI_OPTIONS_LOAD)
    g_option_context_add_main_entries (context, load, NULL);
  if (groups & OX_CLI_OPTIONS_SAMPLE)
    g_option_context_add_main_entries (context, sample, NULL);
}

/* NULL when all that was given makes sense. */
static const char *
find_nonsense (OxCli *cli)
{
  if (cli->precision != NULL && strcmp (cli->precision, "exact") != 0 && strcmp (cli->precision, "fast") != 0)
    return "--precision is “exact” or “fast”";
  if (cli->threads < 0 || cli->threads > MAX_THREADS)
    return "--threads is between 0 and 1024";
  if (cli->context < 0)
    return "--context cannot be negative";
  if (cli->temperature < 0)
    return "--temperature cannot be negative";
  if (cli->top_k != UNSET_INT && cli->top_k < 0)
    return "--top-k cannot be negative";
  if (cli->top_p <= 0 || cli->top_p > 1)
    return "--top-p is above 0 and at most 1";
  if (cli->min_p < 0 || cli->min_p > 1)
    return "--min-p is between 0 and 1";
  if (cli->repetition_penalty <= 0)
    return "--repetition-penalty is above 0";
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
  };
  if (cli->precision != NULL)
    options->precision = strcmp (cli->precision, "exact") == 0 ? OX_MODEL_PRECISION_EXACT : OX_MODEL_PRECISION_FAST;
}

void
ox_cli_get_sampling (OxCli *cli, OxModel *model, OxSampling *sampling)
{
  ox_model_get_default_sampling (model, sampling);
  if (!isnan (cli->temperature))
    sampling->temperature = (float) cli->temperature;
  if (cli->top_k != UNSET_INT)
    sampling->top_k = (guint) cli->top_k;
  if (!isnan (cli->top_p))
    sampling->top_p = (float) cli->top_p;
  if (!isnan (cli->min_p))
    sampling->min_p = (float) cli->min_p;
  if (!isnan (cli->repetition_penalty))
    sampling->repetition_penalty = (float) cli->repetition_penalty;
  if (cli->seed != UNSET_SEED)
    sampling->seed = (guint64) cli->seed;
  if (cli->max_tokens != UNSET_INT)
    sampling->max_tokens = (guint) cli->max_tokens;
}
