/* oxinfer-cli bench: speed, and the fraction of what this computer could do, measured in the same run.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-cli-bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <glib/gstdio.h>

/* A quick run ends then, with what it has: five minutes less what stopping may take. */
#define QUICK_SECONDS 285

typedef struct {
  char **models, **only;
  char *level, *peer, *output;
  gboolean all, quick, no_amx, profile;
  int repeat, decode;
} Options;

static void
options_clear (Options *options)
{
  g_strfreev (options->models);
  g_strfreev (options->only);
  g_free (options->level);
  g_free (options->peer);
  g_free (options->output);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Options, options_clear)

/* ---- What is measured ------------------------------------------------------------------------------------------- */

/* The levels that this machine has, up to the one that is wanted. Models run at the last one: the choice is made for the whole process,
 * before anything asks for kernels. */
static gboolean
choose_levels (OxBench *bench, const Options *options)
{
  const char *wanted = options->level != NULL ? options->level : g_getenv ("OXINFER_CPU");
  g_autoptr (GString) names = g_string_new (NULL);
  gboolean found = FALSE, cut = FALSE;
  OxBenchLevel level;

  for (gsize i = 0; (level.name = ox_cpu_level (i, &level.mask)) != NULL; i++) {
    gboolean is_wanted = g_strcmp0 (level.name, wanted) == 0;

    g_string_append_printf (names, "%s“%s”", i > 0 ? ", " : "", level.name);
    if (found || (options->no_amx && strcmp (level.name, "amx") == 0)) {
      cut = TRUE;
      continue;
    }
    found = is_wanted;
    if (options->level == NULL || is_wanted)
      g_array_append_val (bench->levels, level);
  }
  if (bench->levels->len == 0) {
    ox_cli_usage (bench->cli, "--level is one of what this computer has: %s", names->str);
    return FALSE;
  }
  if (cut)
    g_setenv ("OXINFER_CPU", g_array_index (bench->levels, OxBenchLevel, bench->levels->len - 1).name, TRUE);
  return TRUE;
}

/* One, two, four … and all. */
static void
choose_threads (OxBench *bench)
{
  guint all = bench->cli->threads > 0 ? (guint) bench->cli->threads : ox_cpu_allowed_cores ();

  for (guint n = 1; n < all && bench->cli->threads == 0; n *= 2)
    g_array_append_val (bench->threads, n);
  g_array_append_val (bench->threads, all);
}

/* What is asked about most comes first: a run may be stopped. */
static gboolean
run_bench (OxBench *bench, GError **error)
{
  g_autoptr (GPtrArray) subjects = ox_bench_find_subjects (bench, error);

  if (subjects == NULL || (bench->all && !ox_bench_kernels (bench, TRUE, error)))
    return FALSE;
  for (guint i = 0; i < subjects->len && ox_bench_goes_on (bench); i++)
    if (!ox_bench_text (bench, g_ptr_array_index (subjects, i), error))
      return FALSE;
  for (guint i = 0; i < subjects->len && ox_bench_goes_on (bench); i++) {
    const OxBenchSubject *subject = g_ptr_array_index (subjects, i);

    if ((!bench->quick || subject->whole) && !ox_bench_starts (bench, subject, error))
      return FALSE;
  }
  if (bench->all && !ox_bench_kernels (bench, FALSE, error))
    return FALSE;
  return !g_cancellable_set_error_if_cancelled (bench->cli->cancellable, error);
}

/* ---- An end to quick runs --------------------------------------------------------------------------------------- */

typedef struct {
  OxBench *bench;
  GMutex mutex;
  GCond changed;
  gboolean done;
  GThread *thread;
} Alarm;

static gpointer
alarm_thread (gpointer data)
{
  Alarm *alarm = data;
  gint64 end = g_get_monotonic_time () + QUICK_SECONDS * G_USEC_PER_SEC;

  g_mutex_lock (&alarm->mutex);
  while (!alarm->done && g_cond_wait_until (&alarm->changed, &alarm->mutex, end))
    ;
  if (!alarm->done && !g_cancellable_is_cancelled (alarm->bench->cli->cancellable)) {
    alarm->bench->timed_out = TRUE;
    g_cancellable_cancel (alarm->bench->cli->cancellable);
  }
  g_mutex_unlock (&alarm->mutex);
  return NULL;
}

static void
alarm_start (Alarm *alarm, OxBench *bench)
{
  *alarm = (Alarm) { .bench = bench };
  g_mutex_init (&alarm->mutex);
  g_cond_init (&alarm->changed);
  alarm->thread = g_thread_new ("alarm", alarm_thread, alarm);
}

static void
alarm_stop (Alarm *alarm)
{
  g_mutex_lock (&alarm->mutex);
  alarm->done = TRUE;
  g_cond_signal (&alarm->changed);
  g_mutex_unlock (&alarm->mutex);
  g_thread_join (alarm->thread);
  g_mutex_clear (&alarm->mutex);
  g_cond_clear (&alarm->changed);
}

/* ---- A place for packed weights ---------------------------------------------------------------------------------- */

/* First starts are measured with nothing kept, and what people have kept is not touched: the process gets a cache of its own, beside the
 * usual one, since that may be on another disk. Has to come before anything asks for the usual one. */
static char *
make_cache (GError **error)
{
  const char *given = g_getenv ("XDG_CACHE_HOME");
  g_autofree char *usual =
    given != NULL && *given != '\0' ? g_strdup (given) : g_build_filename (g_get_home_dir (), ".cache", NULL);
  g_autofree char *parent = g_build_filename (usual, "oxinfer", NULL);
  g_autofree char *folder = g_build_filename (parent, "bench-XXXXXX", NULL);

  if (g_mkdir_with_parents (parent, 0700) != 0 || g_mkdtemp (folder) == NULL) {
    g_set_error (error, OX_ERROR, OX_ERROR_IO, "%s: no folder can be made there for packed weights: %s", parent,
                 g_strerror (errno));
    return NULL;
  }
  g_setenv ("XDG_CACHE_HOME", folder, TRUE);
  return g_steal_pointer (&folder);
}

static void
remove_folder (const char *path)
{
  g_autoptr (GDir) dir = g_dir_open (path, 0, NULL);
  const char *name;

  while (dir != NULL && (name = g_dir_read_name (dir)) != NULL) {
    g_autofree char *child = g_build_filename (path, name, NULL);

    if (g_unlink (child) != 0)
      remove_folder (child);
  }
  g_rmdir (path);
}

/* ---- Output ------------------------------------------------------------------------------------------------------ */

/* "2026-11-30-AMD-EPYC-9R45.json", or with a number behind it when that is there. */
static char *
make_output_path (const char *folder)
{
  g_autoptr (GDateTime) now = g_date_time_new_now_utc ();
  g_autofree char *date = g_date_time_format (now, "%Y-%m-%d");
  g_autofree char *cpu = g_strdup (ox_cpu_name ());
  char *path = NULL;

  g_strcanon (cpu, G_CSET_a_2_z G_CSET_A_2_Z G_CSET_DIGITS, '-');
  for (guint i = 1; path == NULL || g_file_test (path, G_FILE_TEST_EXISTS); i++) {
    g_autofree char *number = i > 1 ? g_strdup_printf ("-%u", i) : g_strdup ("");
    g_autofree char *name = g_strdup_printf ("%s-%s%s.json", date, cpu, number);

    g_free (path);
    path = g_build_filename (folder, name, NULL);
  }
  return path;
}

/* An array with a line for each result, which is easy to compare. */
static gboolean
write_file (OxBench *bench, const char *output, GError **error)
{
  yyjson_mut_doc *doc = ox_bench_to_json (bench);
  g_autoptr (GString) text = g_string_new ("[");
  g_autofree char *path = g_file_test (output, G_FILE_TEST_IS_DIR) ? make_output_path (output) : g_strdup (output);
  yyjson_mut_arr_iter iter = yyjson_mut_arr_iter_with (yyjson_mut_doc_get_root (doc));
  yyjson_mut_val *object;

  for (gboolean first = TRUE; (object = yyjson_mut_arr_iter_next (&iter)) != NULL; first = FALSE) {
    char *line = yyjson_mut_val_write (object, 0, NULL);

    g_string_append_printf (text, "%s\n%s", first ? "" : ",", line);
    free (line);
  }
  g_string_append (text, "\n]\n");
  yyjson_mut_doc_free (doc);
  if (!g_file_set_contents (path, text->str, (gssize) text->len, error))
    return FALSE;
  ox_bench_say (bench, "Written: %s", path);
  return TRUE;
}

static void
write_results (OxBench *bench)
{
  if (bench->cli->json) {
    ox_cli_write_json (bench->cli, ox_bench_to_json (bench));
  } else {
    g_autofree char *line = g_strdup_printf ("%s, %u cores\n", ox_cpu_name (), ox_cpu_allowed_cores ());

    ox_bench_write_text (bench);
    ox_cli_write (bench->cli, line);
  }
}

/* Measures, and writes what there is also when it was stopped or a part failed. */
static int
measure_and_write (OxBench *bench, const Options *options)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GError) write_error = NULL;
  g_autofree char *cache = make_cache (&error);
  Alarm alarm;
  int exit_code = OX_CLI_OK;

  if (cache == NULL)
    return ox_cli_fail (bench->cli, error);
  if (bench->quick)
    alarm_start (&alarm, bench);
  run_bench (bench, &error);
  if (bench->quick)
    alarm_stop (&alarm);
  ox_bench_limits_release (bench);
  remove_folder (cache);

  if (bench->results->len > 0 || error == NULL) {
    write_results (bench);
    if (options->output != NULL && !write_file (bench, options->output, &write_error))
      exit_code = ox_cli_fail (bench->cli, write_error);
  }
  if (error != NULL && bench->timed_out)
    ox_bench_say (bench, "The time is up: the rest was not measured.");
  else if (error != NULL)
    exit_code = ox_cli_fail (bench->cli, error);
  if (exit_code == OX_CLI_OK && bench->cli->output_error != 0)
    exit_code = ox_cli_fail (bench->cli, NULL);
  return exit_code;
}

int
ox_cli_bench (OxCli *cli, int argc, char **argv)
{
  g_auto (Options) options = { .repeat = 3, .decode = 64 };
  OxBench bench = { .cli = cli };
  const GOptionEntry entries[] = {
    { "model", 'm', 0, G_OPTION_ARG_FILENAME_ARRAY, &options.models,
      "A .gguf file, a .safetensors file or a Hugging Face folder; may be given again", "PATH" },
    { "all", 0, 0, G_OPTION_ARG_NONE, &options.all, "Kernels, and models of published shapes with random weights, too",
      NULL },
    { "quick", 0, 0, G_OPTION_ARG_NONE, &options.quick, "Fewer, and at most five minutes", NULL },
    { "only", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &options.only, "Only what has such a name; may be given again",
      "GLOB" },
    { "level", 0, 0, G_OPTION_ARG_FILENAME, &options.level, "Instruction sets up to this level alone: “avx2”, “avx512”",
      "NAME" },
    { "no-amx", 0, 0, G_OPTION_ARG_NONE, &options.no_amx, "Without AMX", NULL },
    { "compare", 0, 0, G_OPTION_ARG_FILENAME, &options.peer,
      "A llama-bench of llama.cpp, which takes turns on the same .gguf files", "PROGRAM" },
    { "profile", 0, 0, G_OPTION_ARG_NONE, &options.profile, "Where the time of models goes", NULL },
    { "decode", 0, 0, G_OPTION_ARG_INT, &options.decode, "Tokens to write (default: 64)", "N" },
    { "repeat", 0, 0, G_OPTION_ARG_INT, &options.repeat, "Runs, of which the best counts (default: 3)", "N" },
    { "json", 0, 0, G_OPTION_ARG_NONE, &cli->json,
      "A JSON array of {name, value, unit, limit, fraction, threads, level}; peer and ratio when compared", NULL },
    { "output", 'o', 0, G_OPTION_ARG_FILENAME, &options.output,
      "The same array to a file; in a folder, one named after the day and the processor", "FILE" },
    { "quiet", 'q', 0, G_OPTION_ARG_NONE, &cli->quiet, "No progress", NULL },
    { NULL },
  };
  int exit_code;

  if (!ox_cli_parse (
        cli, argc, argv, OX_CLI_OPTIONS_LOAD, entries, "--model PATH | --all",
        "Measures, and says how far it is from what this computer can do: arithmetic of each kind by each instruction\n"
        "set, and reads from memory, measured beside it.\n\n"
        "Names: peak/…, gemm/…, matvec/…, attention/…, delta_rule, norm, pool/dispatch; for each model prefill128/…\n"
        "to prefill8192/…, decode/…, decode@8k/… (behind 8192 tokens), verify4/… (what checking four tokens at once\n"
        "costs, in passes), load/…, load-again/… and peak-memory/….\n\n"
        "Examples:\n"
        "  oxinfer-cli bench --model model.gguf\n"
        "  oxinfer-cli bench --all --quick --json\n"
        "  oxinfer-cli bench --all --only 'gemm/*' --level avx2\n"
        "  oxinfer-cli bench --model model.gguf --only 'decode*' --threads 1",
        NULL, &exit_code))
    return exit_code;
  if (options.models == NULL && !options.all)
    return ox_cli_usage (cli, "which model? --model or --all is missing");
  if (options.decode < 1 || options.decode > 1024 || options.repeat < 1)
    return ox_cli_usage (cli, "--decode is between 1 and 1024, --repeat at least 1");
  bench.quick = options.quick;
  bench.profile = options.profile;
  bench.repeat = options.quick ? MIN (options.repeat, 2) : options.repeat;
  bench.decode_tokens = options.quick ? MIN (options.decode, 32) : options.decode;
  bench.only = options.only;
  bench.models = options.models;
  bench.all = options.all;
  bench.peer = options.peer;
  bench.levels = g_array_new (FALSE, FALSE, sizeof (OxBenchLevel));
  bench.threads = g_array_new (FALSE, FALSE, sizeof (guint));
  bench.results = g_ptr_array_new_with_free_func (ox_bench_result_free);
  exit_code = OX_CLI_USAGE;
  if (choose_levels (&bench, &options)) {
    choose_threads (&bench);
    ox_cli_catch_signals (cli);
    exit_code = measure_and_write (&bench, &options);
  }
  g_array_unref (bench.levels);
  g_array_unref (bench.threads);
  g_ptr_array_unref (bench.results);
  return exit_code;
}
