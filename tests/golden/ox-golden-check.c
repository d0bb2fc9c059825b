/* Golden cases as tests.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-golden-check.h"

void
ox_golden_check_message (const OxGoldenResult *result, gpointer user_data)
{
  static const char *const verdicts[] = { "info", "ok", "OVER", "NOT COMPUTED" };

  if (result->verdict != OX_GOLDEN_INPUT || result->note != NULL)
    g_test_message ("%s %s: %g of %g %s", verdicts[result->verdict], result->name, result->difference,
                    result->tolerance, result->note != NULL ? result->note : "");
}

void
ox_golden_check (const char *path, guint n_least)
{
  g_autofree char *full = g_build_filename (g_getenv ("OX_TEST_DATA"), "golden", path, NULL);
  OxGoldenReport report = { .func = ox_golden_check_message };
  g_autoptr (GError) error = NULL;

  g_assert_true (ox_golden_run (full, g_getenv ("OX_TEST_MODELS"), &report, NULL, &error));
  g_assert_no_error (error);
  g_assert_cmpuint (report.n_over, ==, 0);
  g_assert_cmpuint (report.n_not_computed, ==, 0);
  g_assert_cmpuint (report.n_ok, >=, n_least);
}
