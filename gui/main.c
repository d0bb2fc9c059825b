/* Where the app starts.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-application.h"
#include "ox-log.h"
#include "ox-scene.h"

#include <glib/gi18n.h>
#include <locale.h>

int
main (int argc, char *argv[])
{
  ox_log_init ();
  setlocale (LC_ALL, "");
  bindtextdomain (GETTEXT_PACKAGE, OXINFER_LOCALEDIR);
  bind_textdomain_codeset (GETTEXT_PACKAGE, "UTF-8");
  textdomain (GETTEXT_PACKAGE);
  g_set_application_name ("Oxinfer");

  ox_scene_prepare_data ();
  g_autoptr (OxApplication) application = ox_application_new (ox_scene_get_backend ());
  int status = g_application_run (G_APPLICATION (application), argc, argv);
  ox_scene_clean_up ();
  return status;
}
