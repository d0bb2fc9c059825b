/* OXINFER_LOG: what is shown at which level.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-log.h"

/* Logs a line of each kind in a process of its own. */
static void
log_in_child (const char *setting)
{
  g_auto (GStrv) environment = g_environ_unsetenv (g_get_environ (), "OXINFER_LOG");

  if (setting != NULL)
    environment = g_environ_setenv (environment, "OXINFER_LOG", setting, TRUE);
  g_test_trap_subprocess_with_envp ("/log/child", (const char *const *) environment, 0, 0);
  g_test_trap_assert_passed ();
}

static void
test_child (void)
{
  if (!g_test_subprocess ())
    return;
  ox_log_init ();
  ox_debug ("store", "store-debug %d", 1);
  ox_info ("store", "store-info");
  ox_debug ("jobs", "jobs-debug");
  ox_info ("jobs", "jobs-info");
  g_message ("plain-message");
  g_log_structured (G_LOG_DOMAIN, G_LOG_LEVEL_WARNING, "OXINFER_CATEGORY", "jobs", "MESSAGE", "jobs-warning");
  g_assert_cmpint (ox_log_enabled ("store", G_LOG_LEVEL_WARNING), ==,
                   g_strcmp0 (g_getenv ("OXINFER_LOG"), "none") != 0);
}

static void
test_levels (void)
{
  log_in_child (NULL);
  g_test_trap_assert_stderr ("*warning jobs: jobs-warning*");
  g_test_trap_assert_stderr_unmatched ("*-info*");
  g_test_trap_assert_stderr_unmatched ("*plain-message*");

  log_in_child ("debug");
  g_test_trap_assert_stderr (
    "*debug   store: store-debug 1\n*info    store: store-info\n*jobs-debug\n*jobs-info\n*plain-message\n*");

  log_in_child ("info, store:debug");
  g_test_trap_assert_stderr ("*store-debug 1\n*store-info\n*jobs-info\n*plain-message\n*jobs-warning\n*");
  g_test_trap_assert_stderr_unmatched ("*jobs-debug*");

  log_in_child ("jobs:none,store:info");
  g_test_trap_assert_stderr ("*store-info*");
  g_test_trap_assert_stderr_unmatched ("*jobs-*");
  g_test_trap_assert_stderr_unmatched ("*store-debug*");

  log_in_child ("loud");
  g_test_trap_assert_stderr ("*“loud” is not a level*jobs-warning*");
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/log/child", test_child);
  g_test_add_func ("/log/levels", test_levels);
  return g_test_run ();
}
