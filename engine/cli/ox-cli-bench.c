/* oxinfer-cli bench: speed, and the fraction of what this computer could do, measured in the same run.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-cli.h"
#include "ox-lookahead.h"

#include <math.h>
#include <string.h>

#define BANDWIDTH_PASSES 9
#define DECODE_PROMPT 128
/* Tokens that a pass of speculation checks: the newest and the guesses. */
#define VERIFIED 4

typedef struct {
  const char *name; /* interned */
  const char *unit;
  double value;
  double limit; /* NAN: none is known */
} Result;

typedef struct {
  OxCli *cli;
  OxModel *model;
  OxSession *session;
  GArray *results;
  guint threads;
  int decode_tokens;
  int repeat;
} Bench;

static void
add_result (Bench *bench, const char *name, const char *unit, double value, double limit)
{
  g_array_append_val (bench->results, ((Result) { g_intern_string (name), unit, value, limit }));
}

/* Ids that mean nothing: a forward pass takes the same time whatever it reads. */
static guint32 *
make_ids (Bench *bench, guint n)
{
  guint32 *ids = g_new (guint32, n);

  for (guint i = 0; i < n; i++)
    ids[i] = (guint32) ((i + 1) * G_GUINT64_CONSTANT (7919) % bench->model->config->vocab_size);
  return ids;
}

static gboolean
bench_prefill (Bench *bench, guint n, GError **error)
{
  g_autofree guint32 *ids = make_ids (bench, n);
  g_autofree float *logits = g_new (float, bench->model->config->vocab_size);
  g_autofree char *name = g_strdup_printf ("prefill_%u", n);
  double best = 0;

  for (int i = 0; i < bench->repeat; i++) {
    gint64 start = ox_clock_now ();

    ox_session_reset (bench->session);
    if (!ox_session_eval (bench->session, ids, n, OX_LOGITS_LAST, logits, bench->cli->cancellable, error))
      return FALSE;
    best = MAX (best, n / ((double) (ox_clock_now () - start) / G_USEC_PER_SEC));
  }
  add_result (bench, name, "tok/s", best, NAN);
  return TRUE;
}

/* @rate: tokens a second; @bytes: what a token reads, weights and the conversation so far. */
static gboolean
bench_decode (Bench *bench, double *rate, double *bytes, GError **error)
{
  gsize vocab = bench->model->config->vocab_size;
  g_autofree guint32 *ids = make_ids (bench, DECODE_PROMPT);
  g_autofree float *logits = g_new (float, vocab);

  *rate = 0;
  for (int i = 0; i < bench->repeat; i++) {
    gint64 start;

    ox_session_reset (bench->session);
    if (!ox_session_eval (bench->session, ids, DECODE_PROMPT, OX_LOGITS_LAST, logits, bench->cli->cancellable, error))
      return FALSE;
    start = ox_clock_now ();
    for (int j = 0; j < bench->decode_tokens; j++) {
      guint32 id = (guint32) bench->model->kernels->argmax (logits, vocab);

      if (!ox_session_eval (bench->session, &id, 1, OX_LOGITS_LAST, logits, bench->cli->cancellable, error))
        return FALSE;
    }
    *rate = MAX (*rate, bench->decode_tokens / ((double) (ox_clock_now () - start) / G_USEC_PER_SEC));
  }
  *bytes = (double) bench->model->plan->weight_bytes +
           (double) bench->model->plan->kv_bytes_per_token * (DECODE_PROMPT + bench->decode_tokens / 2.0);
  return TRUE;
}

typedef struct {
  const guint32 *path; /* what will be said */
  guint length;
} Foresight;

static guint
foresee (const guint32 *tokens, guint n_tokens, guint32 newest, guint n, guint32 *ids, gpointer user_data)
{
  const Foresight *foresight = user_data;
  guint next = n_tokens - DECODE_PROMPT + 1;

  for (guint i = 0; i < n; i++)
    ids[i] = foresight->path[MIN (next + i, foresight->length - 1)];
  return n;
}

/* What a pass that checks VERIFIED tokens costs beside one for a single token, when every guess is right: plain and speculative decoding
 * take turns, so that both see the same machine. */
static gboolean
bench_verify (Bench *bench, GError **error)
{
  gsize vocab = bench->model->config->vocab_size;
  guint n = (guint) bench->decode_tokens / VERIFIED * VERIFIED;
  g_autofree guint32 *prompt = make_ids (bench, DECODE_PROMPT);
  g_autofree guint32 *path = g_new (guint32, n + 1);
  g_autofree float *first = g_new (float, vocab);
  Foresight foresight = { path, n };
  double plain = INFINITY, ahead = INFINITY;

  for (int i = 0; i < 2 * bench->repeat && n > 0; i++) {
    g_autoptr (OxLookahead) lookahead = ox_lookahead_new (bench->session, NULL);
    const float *logits = first;
    gint64 start;
    double seconds;

    ox_session_reset (bench->session);
    if (!ox_session_eval (bench->session, prompt, DECODE_PROMPT, OX_LOGITS_LAST, first, bench->cli->cancellable, error))
      return FALSE;
    if (i % 2 == 1)
      ox_lookahead_force (lookahead, VERIFIED - 1, foresee, &foresight);
    else
      ox_lookahead_off (lookahead);
    ox_lookahead_begin (lookahead, NULL, 0);
    start = ox_clock_now ();
    for (guint j = 0; j < n; j++) {
      path[j] = (guint32) bench->model->kernels->argmax (logits, vocab);
      if (!ox_lookahead_advance (lookahead, path[j], n - 1 - j, &logits, bench->cli->cancellable, error))
        return FALSE;
    }
    if (!ox_lookahead_settle (lookahead, error))
      return FALSE;
    seconds = (double) (ox_clock_now () - start) / G_USEC_PER_SEC;
    if (i % 2 == 1)
      ahead = MIN (ahead, seconds);
    else
      plain = MIN (plain, seconds);
  }
  /* n tokens plainly are n passes, ahead n / VERIFIED of them. */
  if (n > 0)
    add_result (bench, "verify_4", "passes", ahead * VERIFIED / plain, NAN);
  return TRUE;
}

static gboolean
run_bench (Bench *bench, const guint *prefills, gsize n_prefills, GError **error)
{
  OxCli *cli = bench->cli;
  gint64 start = ox_clock_now ();
  double bandwidth, rate, bytes;
  guint64 peak;

  bench->model = ox_cli_load (cli, error);
  if (bench->model == NULL)
    return FALSE;
  add_result (bench, "load", "s", (double) (ox_clock_now () - start) / G_USEC_PER_SEC, NAN);
  bench->threads = ox_pool_threads (bench->model->pool);
  bench->session = ox_session_new (bench->model, error);
  if (bench->session == NULL)
    return FALSE;
  for (gsize i = 0; i < n_prefills; i++)
    if (!bench_prefill (bench, prefills[i], error))
      return FALSE;
  peak = ox_cli_process_memory ("VmHWM:");
  /* The ceiling on both sides of what is measured against it: clocks and neighbours change. */
  bandwidth = ox_cli_read_bandwidth (bench->threads, BANDWIDTH_PASSES, cli->cancellable);
  if (!bench_decode (bench, &rate, &bytes, error) || !bench_verify (bench, error))
    return FALSE;
  bandwidth = MAX (bandwidth, ox_cli_read_bandwidth (bench->threads, BANDWIDTH_PASSES, cli->cancellable));
  if (g_cancellable_set_error_if_cancelled (cli->cancellable, error))
    return FALSE;
  add_result (bench, "decode", "tok/s", rate, bandwidth > 0 ? bandwidth / bytes : NAN);
  add_result (bench, "decode_read", "GB/s", rate * bytes / 1e9, bandwidth > 0 ? bandwidth / 1e9 : NAN);
  add_result (bench, "peak_memory", "MB", peak > 0 ? (double) peak / 1e6 : NAN, NAN);
  return TRUE;
}

static void
write_results (Bench *bench)
{
  const char *level = ox_cpu_level_name (bench->model->kernels->flags);
  yyjson_mut_doc *doc = yyjson_mut_doc_new (NULL);
  yyjson_mut_val *root = yyjson_mut_arr (doc);

  yyjson_mut_doc_set_root (doc, root);
  for (guint i = 0; i < bench->results->len; i++) {
    const Result *result = &g_array_index (bench->results, Result, i);
    g_autofree char *line = g_strdup_printf ("%-12s %10.2f %-6s", result->name, result->value, result->unit);
    g_autofree char *limit = g_strdup_printf ("  %.0f %% of %.2f", 100 * result->value / result->limit, result->limit);
    yyjson_mut_val *object = yyjson_mut_arr_add_obj (doc, root);

    yyjson_mut_obj_add_str (doc, object, "name", result->name);
    ox_cli_json_real (doc, object, "value", result->value);
    yyjson_mut_obj_add_str (doc, object, "unit", result->unit);
    ox_cli_json_real (doc, object, "limit", result->limit);
    ox_cli_json_real (doc, object, "fraction", result->value / result->limit);
    yyjson_mut_obj_add_uint (doc, object, "threads", bench->threads);
    yyjson_mut_obj_add_strcpy (doc, object, "level", level);
    if (!bench->cli->json) {
      ox_cli_write (bench->cli, line);
      ox_cli_write (bench->cli, isnan (result->limit) ? "\n" : limit);
      if (!isnan (result->limit))
        ox_cli_write (bench->cli, "\n");
    }
  }
  if (bench->cli->json) {
    ox_cli_write_json (bench->cli, doc);
  } else {
    g_autofree char *line = g_strdup_printf ("%u threads, %s, %s\n", bench->threads, level, ox_cpu_name ());

    ox_cli_write (bench->cli, line);
    yyjson_mut_doc_free (doc);
  }
}

int
ox_cli_bench (OxCli *cli, int argc, char **argv)
{
  static const guint prefills[] = { 128, 512 };
  Bench bench = { .cli = cli, .decode_tokens = 64, .repeat = 3 };
  const GOptionEntry entries[] = {
    { "decode", 0, 0, G_OPTION_ARG_INT, &bench.decode_tokens, "Tokens to write (default: 64)", "N" },
    { "repeat", 0, 0, G_OPTION_ARG_INT, &bench.repeat, "Runs, of which the best counts (default: 3)", "N" },
    { "json", 0, 0, G_OPTION_ARG_NONE, &cli->json,
      "A JSON array of {name, value, unit, limit, fraction, threads, level}", NULL },
    { "quiet", 'q', 0, G_OPTION_ARG_NONE, &cli->quiet, "No progress", NULL },
    { NULL },
  };
  g_autoptr (GError) error = NULL;
  int exit_code;

  if (!ox_cli_parse (
        cli, argc, argv, OX_CLI_OPTIONS_MODEL | OX_CLI_OPTIONS_LOAD, entries, "--model PATH",
        "Reads prompts of 128 and 512 tokens, writes behind one of 128, and measures the read bandwidth of this\n"
        "computer before and after: writing a token reads every weight, so that is its limit. verify_4: what checking\n"
        "four tokens at once, as speculation does, costs beside writing one.\n\n"
        "Examples:\n"
        "  oxinfer-cli bench --model model.gguf\n"
        "  oxinfer-cli bench --model model.gguf --threads 1 --json",
        NULL, &exit_code))
    return exit_code;
  if (cli->model_path == NULL)
    return ox_cli_usage (cli, "which model? --model is missing");
  if (bench.decode_tokens < 1 || bench.repeat < 1)
    return ox_cli_usage (cli, "--decode and --repeat are at least 1");
  ox_cli_catch_signals (cli);
  bench.results = g_array_new (FALSE, FALSE, sizeof (Result));
  exit_code = OX_CLI_OK;
  if (!run_bench (&bench, prefills, G_N_ELEMENTS (prefills), &error))
    exit_code = ox_cli_fail (cli, error);
  else
    write_results (&bench);
  if (exit_code == OX_CLI_OK && cli->output_error != 0)
    exit_code = ox_cli_fail (cli, NULL);
  ox_session_free (bench.session);
  ox_model_unref (bench.model);
  g_array_unref (bench.results);
  return exit_code;
}
