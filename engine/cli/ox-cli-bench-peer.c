/* The program that is compared with: llama.cpp's llama-bench, run for one figure at a time, in turns with ours.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-cli-bench.h"

#include <math.h>
#include <string.h>

/* The figure in its JSON: [{"avg_ts": tokens a second, …}]; NAN when it is not there. */
static double
read_rate (const char *text)
{
  yyjson_doc *doc = yyjson_read (text, strlen (text), 0);
  yyjson_val *rate = yyjson_obj_get (yyjson_arr_get_first (yyjson_doc_get_root (doc)), "avg_ts");
  double value = yyjson_is_num (rate) ? yyjson_get_num (rate) : NAN;

  yyjson_doc_free (doc);
  return value;
}

double
ox_bench_peer_run (
  OxBench *bench, const char *model, guint threads, guint prompt, guint written, guint depth, GError **error)
{
  g_autofree char *n_threads = g_strdup_printf ("%u", threads);
  g_autofree char *n_prompt = g_strdup_printf ("%u", prompt);
  g_autofree char *n_written = g_strdup_printf ("%u", written);
  g_autofree char *n_depth = g_strdup_printf ("%u", depth);
  const char *argv[] = { bench->peer, "-m", model,   "-t", n_threads, "-p", n_prompt, "-n",
                         n_written,   "-d", n_depth, "-r", "1",       "-o", "json",   NULL };
  g_autofree char *out = NULL;
  g_autofree char *err = NULL;
  g_autoptr (GSubprocess) process =
    g_subprocess_newv (argv, G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_PIPE, error);
  double rate;

  if (process == NULL)
    return NAN;
  if (!g_subprocess_communicate_utf8 (process, NULL, bench->cli->cancellable, &out, &err, error)) {
    g_subprocess_force_exit (process);
    return NAN;
  }
  rate = g_subprocess_get_successful (process) ? read_rate (out) : NAN;
  if (!(rate > 0)) {
    g_strchomp (err);
    g_set_error (error, OX_ERROR, OX_ERROR_IO, "%s gave no figure for %s%s%s", bench->peer, model,
                 *err != '\0' ? ": " : "", err);
    return NAN;
  }
  return rate;
}
