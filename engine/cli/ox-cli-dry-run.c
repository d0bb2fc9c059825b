/* oxinfer-cli dry-run: what a published model would take here, without its weights.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-cli.h"

#include <malloc.h>
#include <string.h>

#include "ox-dry-model.h"
#include "ox-session-private.h"

#define PROMPT 128
#define MOST_TOKENS 4096

typedef struct {
  guint64 planned, peak; /* bytes: as planned, and as measured over what the process had before */
  double load_seconds, prefill_rate, decode_rate;
} DryRun;

static void
forget_peak (void)
{
  FILE *file = fopen ("/proc/self/clear_refs", "w");

  if (file == NULL)
    return;
  fputs ("5", file);
  fclose (file);
}

/* A prompt of @prompt tokens, and as many more one by one. */
static gboolean
run_tokens (OxCli *cli, OxModel *model, guint prompt, guint more, DryRun *run, GError **error)
{
  g_autoptr (OxSession) session = ox_session_new (model, error);
  guint vocab = model->config->vocab_size;
  g_autofree float *logits = g_new (float, vocab);
  g_autofree guint32 *ids = g_new (guint32, prompt);
  gint64 start = ox_clock_now ();

  if (session == NULL)
    return FALSE;
  for (guint i = 0; i < prompt; i++)
    ids[i] = (guint32) ((guint64) i * 2654435761u % vocab);
  if (!ox_session_eval (session, ids, prompt, OX_LOGITS_LAST, logits, cli->cancellable, error))
    return FALSE;
  run->prefill_rate = prompt * 1e6 / (double) (ox_clock_now () - start);
  start = ox_clock_now ();
  for (guint i = 0; i < more; i++) {
    guint32 id = (guint32) model->kernels->argmax (logits, vocab);

    if (!ox_session_eval (session, &id, 1, OX_LOGITS_LAST, logits, cli->cancellable, error))
      return FALSE;
  }
  run->decode_rate = more * 1e6 / (double) (ox_clock_now () - start);
  return TRUE;
}

static gboolean
run_shape (OxCli *cli, const char *name, OxModelOptions *options, guint prompt, guint more, DryRun *run, GError **error)
{
  g_autofree char *json = ox_dry_model_make_config (name);
  OxConfig *config = ox_config_parse_json (json, strlen (json), name, error);
  OxWeights *weights = config != NULL ? ox_dry_model_weights (config, name, error) : NULL;
  g_autoptr (OxModel) model = NULL;
  guint64 before;
  gint64 start = ox_clock_now ();
  gboolean ok;

  if (weights == NULL) {
    g_clear_pointer (&config, ox_config_free);
    return FALSE;
  }
  malloc_trim (0);
  forget_peak ();
  before = ox_cli_process_memory ("VmRSS:");
  model = ox_model_load_opened (name, weights, config, options, FALSE, NULL, NULL, cli->cancellable, error);
  if (model == NULL)
    return FALSE;
  run->load_seconds = (double) (ox_clock_now () - start) / 1e6;
  run->planned = ox_model_get_plan (model)->memory_needed;
  ok = run_tokens (cli, model, prompt, more, run, error);
  run->peak = ox_cli_process_memory ("VmHWM:") - before;
  return ok;
}

static void
write_run (OxCli *cli, const char *name, guint prompt, guint more, const DryRun *run)
{
  g_autofree char *planned = g_format_size (run->planned);
  g_autofree char *peak = g_format_size (run->peak);
  g_autofree char *text =
    g_strdup_printf ("%s: %s planned, %s at most in use (%.1f %% of the plan)\n"
                     "loaded in %.1f s; %u tokens of a prompt at %.1f a second, %u more at %.2f a second\n",
                     name, planned, peak, 100 * (double) run->peak / (double) run->planned, run->load_seconds, prompt,
                     run->prefill_rate, more, run->decode_rate);

  ox_cli_write (cli, text);
}

static void
write_run_json (OxCli *cli, const char *name, const DryRun *run)
{
  yyjson_mut_doc *doc = yyjson_mut_doc_new (NULL);
  yyjson_mut_val *root = yyjson_mut_obj (doc);

  yyjson_mut_doc_set_root (doc, root);
  yyjson_mut_obj_add_strcpy (doc, root, "shape", name);
  yyjson_mut_obj_add_uint (doc, root, "memory_needed", run->planned);
  yyjson_mut_obj_add_uint (doc, root, "memory_peak", run->peak);
  ox_cli_json_real (doc, root, "load_seconds", run->load_seconds);
  ox_cli_json_real (doc, root, "prefill_tokens_per_second", run->prefill_rate);
  ox_cli_json_real (doc, root, "decode_tokens_per_second", run->decode_rate);
  ox_cli_write_json (cli, doc);
}

int
ox_cli_dry_run (OxCli *cli, int argc, char **argv)
{
  g_auto (GStrv) rest = NULL;
  int tokens = 16;
  const GOptionEntry entries[] = {
    { "tokens", 'n', 0, G_OPTION_ARG_INT, &tokens, "Tokens to write after a prompt of 128 (default: 16)", "N" },
    { "json", 0, 0, G_OPTION_ARG_NONE, &cli->json, "One JSON object", NULL },
    { NULL },
  };
  g_autofree char *names = g_strjoinv (", ", (char **) ox_dry_model_get_names ());
  g_autofree char *lines = g_strjoinv ("\n  ", (char **) ox_dry_model_get_names ());
  g_autofree char *description = g_strdup_printf (
    "Loads and runs a model of a published shape whose weights are random numbers, made as they are read. So it tells\n"
    "what the real one takes here before anybody has downloaded it.\n\n"
    "Shapes:\n  %s\n\n"
    "Examples:\n"
    "  oxinfer-cli dry-run gemma-4-e2b\n"
    "  oxinfer-cli dry-run gemma-4-12b --weights q4 --json",
    lines);
  OxModelOptions options;
  DryRun run = { 0 };
  g_autoptr (GError) error = NULL;
  int exit_code;

  if (!ox_cli_parse (cli, argc, argv, OX_CLI_OPTIONS_LOAD, entries, "SHAPE", description, &rest, &exit_code))
    return exit_code;
  if (rest == NULL || g_strv_length (rest) != 1 || !g_strv_contains (ox_dry_model_get_names (), rest[0]))
    return ox_cli_usage (cli, "which shape? There are %s", names);
  if (tokens < 1 || tokens > MOST_TOKENS)
    return ox_cli_usage (cli, "--tokens is between 1 and %d", MOST_TOKENS);
  ox_cli_get_model_options (cli, &options);
  options.no_packed_cache = TRUE;
  /* As long a context as is used: what is planned for it is then also taken. */
  if (options.context_length < PROMPT + (guint) tokens)
    options.context_length = PROMPT + (guint) tokens;
  ox_cli_catch_signals (cli);
  if (!run_shape (cli, rest[0], &options, PROMPT, (guint) tokens, &run, &error))
    return ox_cli_fail (cli, error);
  if (cli->json)
    write_run_json (cli, rest[0], &run);
  else
    write_run (cli, rest[0], PROMPT, (guint) tokens, &run);
  return cli->output_error != 0 ? ox_cli_fail (cli, NULL) : OX_CLI_OK;
}
