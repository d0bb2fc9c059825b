/* ox-golden: compares the engine with what reference implementations computed.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "golden/ox-golden.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>

static void
print_result (const OxGoldenResult *result, gpointer user_data)
{
  static const char *const verdicts[] = { "info", "ok", "OVER", "NOT COMPUTED" };
  const char *note = result->note != NULL ? result->note : "";

  printf ("%-12s %-50s ", verdicts[result->verdict], result->name);
  if (!isnan (result->tolerance) && (!isnan (result->difference) || result->tolerance > 0))
    printf ("%.3g of %.3g  ", result->difference, result->tolerance);
  else if (!isnan (result->difference))
    printf ("%.3g  ", result->difference);
  puts (note);
}

int
main (int argc, char **argv)
{
  g_autofree char *models = NULL;
  g_auto (GStrv) paths = NULL;
  const GOptionEntry entries[] = {
    { "models", 0, 0, G_OPTION_ARG_FILENAME, &models,
      "Folders with model files that cases name by checksum (default: OX_TEST_MODELS)", "DIR[:DIR…]" },
    { G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &paths, NULL, NULL },
    { NULL },
  };
  g_autoptr (GOptionContext) context = g_option_context_new ("DIR|FILE…");
  g_autoptr (GError) error = NULL;
  OxGoldenReport report = { .func = print_result };
  gboolean broken = FALSE;

  setlocale (LC_ALL, "");
  setlocale (LC_NUMERIC, "C");
  g_option_context_set_summary (
    context, "Runs golden cases with exact precision and prints, for each tensor, the greatest absolute\n"
             "difference and the tolerance of its case.json.");
  g_option_context_set_description (context, "Examples:\n"
                                             "  ox-golden tests/golden/text/gemma3\n"
                                             "  ox-golden --models ~/models tests/golden/gguf\n\n"
                                             "Exit codes:\n"
                                             "  0  all was computed and is within tolerance\n"
                                             "  1  something is over, was not computed, or could not be read\n"
                                             "  2  wrong usage");
  g_option_context_add_main_entries (context, entries, NULL);
  if (!g_option_context_parse (context, &argc, &argv, &error)) {
    fprintf (stderr, "ox-golden: %s\n", error->message);
    return 2;
  }
  if (paths == NULL) {
    fputs ("ox-golden: which case? Try “ox-golden --help”.\n", stderr);
    return 2;
  }
  for (char **path = paths; *path != NULL; path++) {
    g_autoptr (GError) local_error = NULL;

    printf ("%s\n", *path);
    if (!ox_golden_run (*path, models != NULL ? models : g_getenv ("OX_TEST_MODELS"), &report, NULL, &local_error)) {
      fflush (stdout);
      fprintf (stderr, "ox-golden: %s\n", local_error->message);
      broken = TRUE;
    }
    fflush (stdout);
  }
  printf ("%u fine, %u over, %u not computed\n", report.n_ok, report.n_over, report.n_not_computed);
  return broken || report.n_over > 0 || report.n_not_computed > 0 || report.n_ok == 0 ? 1 : 0;
}
