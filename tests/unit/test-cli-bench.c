/* oxinfer-cli bench: which names come out, what belongs to each, and how it is stopped. Speeds are not looked at.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "cli-test.h"

#include <glib/gstdio.h>
#include <math.h>
#include <signal.h>
#include <string.h>

#include "ox-kernels.h"

/* The best level that this machine has. */
static const char *
best_level (void)
{
  const char *level, *best = NULL;
  uint32_t mask;

  for (gsize i = 0; (level = ox_cpu_level (i, &mask)) != NULL; i++)
    best = level;
  return best;
}

/* Every key of the entry, with a sensible value: the fraction is of the limit, and less than nothing is no limit. */
static void
check_entry (yyjson_val *entry)
{
  double value = yyjson_get_num (yyjson_obj_get (entry, "value"));
  yyjson_val *limit = yyjson_obj_get (entry, "limit"), *fraction = yyjson_obj_get (entry, "fraction");

  g_assert_cmpuint (strlen (string_of (entry, "name")), >, 0);
  g_assert_cmpuint (strlen (string_of (entry, "unit")), >, 0);
  g_assert_cmpuint (strlen (string_of (entry, "level")), >, 0);
  g_assert_cmpuint (yyjson_get_uint (yyjson_obj_get (entry, "threads")), >, 0);
  g_assert_cmpfloat (value, >, 0);
  g_assert_nonnull (limit);
  g_assert_nonnull (fraction);
  if (yyjson_is_null (limit)) {
    g_assert_true (yyjson_is_null (fraction));
  } else {
    double of_limit = value / yyjson_get_num (limit);

    g_assert_cmpfloat (yyjson_get_num (limit), >, 0);
    g_assert_true (isfinite (yyjson_get_num (fraction)));
    g_assert_true (fabs (yyjson_get_num (fraction) / of_limit - 1) < 1e-9 ||
                   fabs (yyjson_get_num (fraction) * of_limit - 1) < 1e-9);
  }
}

/* Runs bench with what is in @line; the entries of its JSON are checked. Free with ox_json_free(). */
static yyjson_doc *
bench (const char *line, int exit_code)
{
  g_autofree char *full = g_strconcat ("bench --json --quiet ", line, NULL);
  g_auto (Result) result;
  yyjson_doc *doc;
  yyjson_val *entry;
  size_t i, n;

  cli (&result, NULL, full);
  g_test_message ("%s", full);
  g_assert_cmpstr (result.err, ==, "");
  g_assert_cmpint (result.exit_code, ==, exit_code);
  doc = yyjson_read (result.out, strlen (result.out), 0);
  g_assert_true (yyjson_is_arr (yyjson_doc_get_root (doc)));
  yyjson_arr_foreach (yyjson_doc_get_root (doc), i, n, entry) check_entry (entry);
  return doc;
}

static yyjson_val *
find (yyjson_doc *doc, const char *name)
{
  yyjson_val *entry;
  size_t i, n;

  yyjson_arr_foreach (yyjson_doc_get_root (doc), i, n,
                      entry) if (strcmp (string_of (entry, "name"), name) == 0) return entry;
  return NULL;
}

static void
test_model (void)
{
  static const char *const names[] = { "prefill128/", "prefill512/", "decode/", "prefill2048/",
                                       "decode@2k/",  "verify4/",    "load/",   "load-again/" };
  yyjson_doc *doc = bench ("--model MODEL --decode 4 --repeat 1 --threads 1", 0);
  const char *model = strchr (string_of (yyjson_arr_get_first (yyjson_doc_get_root (doc)), "name"), '/') + 1;

  for (gsize i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autofree char *name = g_strconcat (names[i], model, NULL);
    yyjson_val *entry = find (doc, name);

    g_assert_nonnull (entry);
    g_assert_true (yyjson_is_num (yyjson_obj_get (entry, "limit")));
    g_assert_cmpstr (string_of (entry, "level"), ==, best_level ());
    g_assert_cmpuint (yyjson_get_uint (yyjson_obj_get (entry, "threads")), ==, 1);
    g_assert_null (yyjson_obj_get (entry, "peer"));
    g_assert_null (yyjson_obj_get (entry, "profile"));
  }
  yyjson_doc_free (doc);
}

static void
test_kernels (void)
{
  g_autofree char *line = g_strdup_printf ("--all --quick --threads 2 --level %s --only peak/* --only gemm/q8 --only "
                                           "norm --only delta_rule --only pool/dispatch --only attention/decode*",
                                           best_level ());
  static const char *const names[] = { "peak/f32",   "peak/bf16",     "peak/int8",
                                       "peak/read",  "gemm/q8",       "norm",
                                       "delta_rule", "pool/dispatch", "attention/decode@8k/d512" };
  yyjson_doc *doc = bench (line, 0);

  for (gsize i = 0; i < G_N_ELEMENTS (names); i++) {
    yyjson_val *entry = find (doc, names[i]);

    g_test_message ("%s", names[i]);
    g_assert_nonnull (entry);
    g_assert_true (yyjson_is_num (yyjson_obj_get (entry, "limit")));
    g_assert_cmpstr (string_of (entry, "level"), ==, best_level ());
    g_assert_cmpuint (yyjson_get_uint (yyjson_obj_get (entry, "threads")), ==, 2);
  }
  g_assert_cmpuint (yyjson_arr_size (yyjson_doc_get_root (doc)), ==,
                    G_N_ELEMENTS (names) + 1); /* two shapes of attention */
  yyjson_doc_free (doc);
}

/* Every level that this machine has, the best one with one thread and with all. */
static void
test_levels (void)
{
  yyjson_doc *doc = bench ("--all --quick --only peak/int8", 0);
  const char *level;
  uint32_t mask;

  for (gsize i = 0; (level = ox_cpu_level (i, &mask)) != NULL; i++) {
    gboolean found = FALSE;
    yyjson_val *entry;
    size_t j, n;

    yyjson_arr_foreach (yyjson_doc_get_root (doc), j, n, entry) found |=
      strcmp (string_of (entry, "level"), level) == 0;
    g_assert_true (found);
  }
  yyjson_doc_free (doc);
}

static void
test_nothing (void)
{
  yyjson_doc *doc = bench ("--all --model MODEL --only nothing/of/that/name", 0);

  g_assert_cmpuint (yyjson_arr_size (yyjson_doc_get_root (doc)), ==, 0);
  yyjson_doc_free (doc);
}

static void
test_profile (void)
{
  yyjson_doc *doc = bench ("--model MODEL --only prefill512/* --repeat 1 --profile", 0);
  yyjson_val *profile = yyjson_obj_get (yyjson_arr_get_first (yyjson_doc_get_root (doc)), "profile");

  g_assert_cmpfloat (yyjson_get_num (yyjson_obj_get (profile, "matmul")), >, 0);
  g_assert_cmpfloat (yyjson_get_num (yyjson_obj_get (profile, "attention")), >, 0);
  yyjson_doc_free (doc);
}

/* A program that says what llama-bench would. */
static void
test_compare (void)
{
  char *path = make_path ("llama-bench");
  g_autofree char *line = g_strdup_printf ("--model MODEL --only decode/* --repeat 1 --compare %s", path);
  g_auto (Result) failed;
  g_autofree char *failing = g_strdup_printf ("bench --json --quiet %s", line);
  yyjson_doc *doc;
  yyjson_val *entry;

  g_assert_true (g_file_set_contents (path, "#!/bin/sh\necho '[{\"n_gen\": 64, \"avg_ts\": 12.5}]'\n", -1, NULL));
  g_assert_cmpint (g_chmod (path, 0700), ==, 0);
  doc = bench (line, 0);
  entry = yyjson_arr_get_first (yyjson_doc_get_root (doc));
  g_assert_cmpfloat (yyjson_get_num (yyjson_obj_get (entry, "peer")), ==, 12.5);
  g_assert_cmpfloat_with_epsilon (yyjson_get_num (yyjson_obj_get (entry, "ratio")),
                                  yyjson_get_num (yyjson_obj_get (entry, "value")) / 12.5, 1e-9);
  yyjson_doc_free (doc);

  g_assert_true (g_file_set_contents (path, "#!/bin/sh\necho 'cannot load' >&2\nexit 1\n", -1, NULL));
  g_assert_cmpint (g_chmod (path, 0700), ==, 0);
  cli (&failed, NULL, failing);
  g_assert_cmpint (failed.exit_code, ==, 1);
  g_assert_nonnull (strstr (failed.err, "gave no figure for"));
  g_assert_nonnull (strstr (failed.err, "cannot load"));
  delete_path (path);
  g_free (path);
}

static void
test_output (void)
{
  char *path = make_path ("results.json");
  g_autofree char *folder = g_path_get_dirname (path);
  g_autofree char *to_file = g_strdup_printf ("--model MODEL --only decode/* --repeat 1 --output %s", path);
  g_autofree char *to_folder = g_strdup_printf ("--model MODEL --only decode/* --repeat 1 --output %s", folder);
  g_autofree char *text = NULL;
  g_autoptr (GDir) dir = NULL;
  const char *name;
  yyjson_doc *doc = bench (to_file, 0), *written;
  guint n = 0;

  g_assert_true (g_file_get_contents (path, &text, NULL, NULL));
  written = yyjson_read (text, strlen (text), 0);
  g_assert_true (yyjson_equals (yyjson_doc_get_root (doc), yyjson_doc_get_root (written)));
  yyjson_doc_free (written);
  yyjson_doc_free (doc);

  /* In a folder each run has a file of its own. */
  g_assert_cmpint (g_unlink (path), ==, 0);
  yyjson_doc_free (bench (to_folder, 0));
  yyjson_doc_free (bench (to_folder, 0));
  dir = g_dir_open (folder, 0, NULL);
  for (; (name = g_dir_read_name (dir)) != NULL; n++) {
    g_autofree char *full = g_build_filename (folder, name, NULL);

    g_assert_true (g_str_has_suffix (name, ".json"));
    g_assert_cmpint (g_unlink (full), ==, 0);
  }
  g_assert_cmpuint (n, ==, 2);
  delete_path (path);
  g_free (path);
}

/* What was measured until then is written. */
static void
test_interrupt (void)
{
  g_autoptr (GSubprocess) process = NULL;
  g_autoptr (GError) error = NULL;
  g_autoptr (GDataInputStream) progress = NULL;
  g_autofree char *line = NULL;
  g_autofree char *out = NULL;
  g_auto (Result) result = { 0 };
  yyjson_doc *doc;

  process =
    g_subprocess_new (G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_PIPE, &error, program ("OX_TEST_CLI"),
                      "bench", "--all", "--json", "--only", "peak/*", "--only", "matvec/*", NULL);
  g_assert_no_error (error);
  progress = g_data_input_stream_new (g_subprocess_get_stderr_pipe (process));
  do {
    g_clear_pointer (&line, g_free);
    line = g_data_input_stream_read_line (progress, NULL, NULL, NULL);
    g_assert_nonnull (line);
  } while (strstr (line, "peak/f32") == NULL);
  g_subprocess_send_signal (process, SIGINT);
  g_assert_true (g_subprocess_communicate_utf8 (process, NULL, NULL, &out, NULL, NULL));
  finish (process, &result);
  g_assert_cmpint (result.exit_code, ==, 130);
  doc = yyjson_read (out, strlen (out), 0);
  g_assert_nonnull (find (doc, "peak/f32"));
  yyjson_doc_free (doc);
}

static void
test_usage (void)
{
  static const char *const lines[] = {
    "bench",
    "bench --quick",
    "bench --all --level nonsense",
    "bench --all --decode 0",
    "bench --all --repeat 0",
    "bench --all --threads -1",
    "bench --all too much",
  };

  for (gsize i = 0; i < G_N_ELEMENTS (lines); i++) {
    g_auto (Result) result;

    cli (&result, NULL, lines[i]);
    g_test_message ("%s: %s", lines[i], result.err);
    g_assert_cmpint (result.exit_code, ==, 2);
    g_assert_cmpstr (result.out, ==, "");
    g_assert_true (g_str_has_prefix (result.err, "oxinfer-cli: "));
  }
}

int
main (int argc, char **argv)
{
  int result;

  cli_test_init (&argc, &argv);
  /* The levels are all of this machine's. */
  g_unsetenv ("OXINFER_CPU");
  g_test_add_func ("/bench/model", test_model);
  g_test_add_func ("/bench/kernels", test_kernels);
  g_test_add_func ("/bench/levels", test_levels);
  g_test_add_func ("/bench/nothing", test_nothing);
  g_test_add_func ("/bench/profile", test_profile);
  g_test_add_func ("/bench/compare", test_compare);
  g_test_add_func ("/bench/output", test_output);
  g_test_add_func ("/bench/interrupt", test_interrupt);
  g_test_add_func ("/bench/usage", test_usage);
  result = g_test_run ();
  cli_test_clear ();
  return result;
}
