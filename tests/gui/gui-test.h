/* Help for tests that need a display.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <adwaita.h>
#include <gtksourceview/gtksource.h>
#include <ftw.h>
#include <stdio.h>
#include <time.h>

G_BEGIN_DECLS

static char *gui_test_folder;

static inline int
gui_test_remove_cb (const char *path, const struct stat *info, int flag, struct FTW *ftw)
{
  return remove (path);
}

static inline void
gui_test_remove_folder (void)
{
  nftw (gui_test_folder, gui_test_remove_cb, 16, FTW_DEPTH | FTW_PHYS);
}

/* Starts GTK, with warnings fatal and folders of the test's own; the exit status 77 tells meson that there is no display.
 * G_TEST_OPTION_ISOLATE_DIRS would take away the system's data, too, by which GTK knows what an icon file is. */
static inline void
gui_test_init (int *argc, char ***argv)
{
  static const char *const folders[] = { "HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME",
                                         "XDG_STATE_HOME" };
  gui_test_folder = g_dir_make_tmp ("ox-gui-test-XXXXXX", NULL);
  g_assert_nonnull (gui_test_folder);
  atexit (gui_test_remove_folder);
  for (guint i = 0; i < G_N_ELEMENTS (folders); i++)
    g_setenv (folders[i], gui_test_folder, TRUE);
  g_setenv ("GTK_A11Y", "test", FALSE);
  g_setenv ("GSK_RENDERER", "cairo", FALSE);
  g_setenv ("GDK_DISABLE", "vulkan", FALSE);
  g_setenv ("GDK_DEBUG", "no-portals", FALSE);
  g_setenv ("GTK_IM_MODULE", "none", FALSE);
  g_setenv ("GSETTINGS_BACKEND", "memory", TRUE);
  g_test_init (argc, argv, NULL);
  if (!gtk_init_check ()) {
    g_print ("1..0 # SKIP no display\n");
    exit (77);
  }
  adw_init ();
  gtk_source_init ();
}

/* Processor time of this thread, in milliseconds: waiting for other programs does not count. */
static inline double
gui_test_thread_ms (void)
{
  struct timespec now;
  clock_gettime (CLOCK_THREAD_CPUTIME_ID, &now);
  return (double) now.tv_sec * 1000 + (double) now.tv_nsec / 1e6;
}

/* Runs the main loop until @condition holds; fails after @seconds. */
#define gui_test_wait(condition, seconds)                                                                              \
  G_STMT_START                                                                                                         \
  {                                                                                                                    \
    gint64 gui_test_end = g_get_monotonic_time () + (gint64) (seconds) * G_USEC_PER_SEC;                               \
    while (!(condition)) {                                                                                             \
      if (g_get_monotonic_time () > gui_test_end)                                                                      \
        g_error ("%s: waited in vain for: %s", G_STRLOC, #condition);                                                  \
      if (!g_main_context_iteration (NULL, FALSE))                                                                     \
        g_usleep (1000);                                                                                               \
    }                                                                                                                  \
  }                                                                                                                    \
  G_STMT_END

/* Runs the main loop for a while. */
static inline void
gui_test_run_for (guint ms)
{
  gint64 end = g_get_monotonic_time () + (gint64) ms * 1000;
  while (g_get_monotonic_time () < end)
    if (!g_main_context_iteration (NULL, FALSE))
      g_usleep (1000);
}

/* The first widget of a type below @widget whose property has the value; NULL for @property: the first one. */
static inline GtkWidget *
gui_test_find (GtkWidget *widget, GType type, const char *property, const char *value)
{
  if (G_TYPE_CHECK_INSTANCE_TYPE (widget, type)) {
    g_autofree char *found = NULL;
    if (property == NULL)
      return widget;
    g_object_get (widget, property, &found, NULL);
    if (g_strcmp0 (found, value) == 0)
      return widget;
  }
  for (GtkWidget *child = gtk_widget_get_first_child (widget); child != NULL;
       child = gtk_widget_get_next_sibling (child)) {
    GtkWidget *found = gui_test_find (child, type, property, value);
    if (found != NULL)
      return found;
  }
  return NULL;
}

G_END_DECLS
