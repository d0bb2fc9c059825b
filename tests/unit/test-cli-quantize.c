/* oxinfer-cli quantize and dry-run, as a shell would run them.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "cli-test.h"

#include <string.h>
#include <sys/stat.h>

/* Half a gigabyte to read, in a file that takes no space. */
static const OxToyModel large = {
  .sparse = TRUE, .f16 = TRUE, .layers = 4, .hidden = 2048, .feed_forward = 8192, .heads = 16
};

static guint64
uint_of (yyjson_val *object, const char *key)
{
  return yyjson_get_uint (yyjson_obj_get (object, key));
}

/* What it says is kept is there, as large as it says, and is there at once when asked for again. */
static void
test_quantize (void)
{
  char *path = ox_toy_model_make (&large);
  g_autofree char *line = g_strdup_printf ("quantize %s --weights q4 --json", path);
  g_autofree char *plain = g_strdup_printf ("quantize --model %s --weights q4", path);
  g_autofree char *kept = NULL;

  for (guint i = 0; i < 2; i++) {
    g_auto (Result) result;
    g_autoptr (GPtrArray) lines = NULL;
    yyjson_val *root;
    struct stat st;

    cli (&result, NULL, line);
    if (strstr (result.err, "memory") != NULL) {
      g_test_skip ("there is not enough memory free");
      ox_toy_model_delete (path);
      return;
    }
    assert_ok (&result);
    lines = parse_lines (result.out);
    root = root_of (lines, 0);
    g_assert_cmpstr (string_of (root, "format"), ==, "F16 as Q4");
    g_assert_nonnull (string_of (root, "path"));
    g_assert_no_errno (stat (string_of (root, "path"), &st));
    g_assert_cmpuint ((guint64) st.st_size, ==, uint_of (root, "file_bytes"));
    g_assert_cmpuint (uint_of (root, "file_bytes"), >, uint_of (root, "weight_bytes") / 10 * 9);
    if (i == 0)
      kept = g_strdup (string_of (root, "path"));
    else
      g_assert_cmpstr (string_of (root, "path"), ==, kept);
  }
  {
    g_auto (Result) result;

    cli (&result, NULL, plain);
    assert_ok (&result);
    g_assert_nonnull (strstr (result.out, kept));
  }
  {
    g_auto (Result) result;

    cli (&result, NULL, "quantize --clear");
    assert_ok (&result);
    g_assert_true (g_str_has_prefix (result.out, "Removed: "));
    g_assert_false (g_file_test (kept, G_FILE_TEST_EXISTS));
  }
  ox_toy_model_delete (path);
}

/* Small models are not worth it, and it says so. */
static void
test_nothing_kept (void)
{
  g_auto (Result) result;

  cli (&result, NULL, "quantize MODEL");
  assert_ok (&result);
  g_assert_nonnull (strstr (result.out, "nothing is kept"));
}

static void
test_usage (void)
{
  static const char *const lines[] = {
    "quantize",
    "quantize MODEL MODEL",
    "quantize --model MODEL MODEL",
    "quantize MODEL --weights q5",
    "quantize MODEL --clear",
    "dry-run",
    "dry-run gemma-5",
    "dry-run gemma-4-e2b qwen3.5-2b",
    "dry-run gemma-4-e2b --tokens 0",
    "dry-run gemma-4-e2b --tokens 100000",
  };
  static const char *const helps[] = { "quantize --help", "dry-run --help" };

  for (gsize i = 0; i < G_N_ELEMENTS (lines); i++) {
    g_auto (Result) result;

    cli (&result, NULL, lines[i]);
    g_assert_cmpint (result.exit_code, ==, 2);
    g_assert_cmpstr (result.out, ==, "");
    g_assert_nonnull (strstr (result.err, "--help"));
  }
  for (gsize i = 0; i < G_N_ELEMENTS (helps); i++) {
    g_auto (Result) result;

    cli (&result, NULL, helps[i]);
    assert_ok (&result);
    g_assert_nonnull (strstr (result.out, "Examples:\n  "));
  }
}

/* The smallest published shape, end to end. */
static void
test_dry_run (void)
{
  g_auto (Result) result = { 0 };
  g_autoptr (GPtrArray) lines = NULL;
  double planned, peak;

#if defined(__SANITIZE_ADDRESS__)
  g_test_skip ("sanitizers take memory of their own");
  return;
#endif
  cli (&result, NULL, "dry-run qwen3.5-0.8b --tokens 2 --json");
  if (strstr (result.err, "memory") != NULL) {
    g_test_skip ("there is not enough memory free");
    return;
  }
  assert_ok (&result);
  lines = parse_lines (result.out);
  planned = (double) uint_of (root_of (lines, 0), "memory_needed");
  peak = (double) uint_of (root_of (lines, 0), "memory_peak");
  g_test_message ("planned %.0f, took %.0f", planned, peak);
  g_assert_cmpfloat (peak, >, 0.95 * planned);
  g_assert_cmpfloat (peak, <, 1.05 * planned);
}

int
main (int argc, char **argv)
{
  int status;

  cli_test_init (&argc, &argv);
  g_test_add_func ("/cli/quantize/kept", test_quantize);
  g_test_add_func ("/cli/quantize/nothing-kept", test_nothing_kept);
  g_test_add_func ("/cli/quantize/usage", test_usage);
  g_test_add_func ("/cli/dry-run", test_dry_run);
  status = g_test_run ();
  cli_test_clear ();
  return status;
}
