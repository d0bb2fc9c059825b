/* The question whether a tool with effects may run.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-permission-dialog.h"

#include "ox-tool-row.h"

#include <glib/gi18n.h>

#define MAX_HEIGHT 240

static void
response_cb (OxPermission *permission, const char *response)
{
  ox_permission_answer (permission, g_str_equal (response, "allow"));
}

static void
withdrawn_cb (AdwDialog *dialog)
{
  adw_dialog_force_close (dialog);
}

/**
 * ox_permission_dialog_new:
 * @permission: what is asked
 *
 * Returns: (transfer floating): a dialog that answers @permission, and goes by itself when the answer is not wanted any more
 */
AdwDialog *
ox_permission_dialog_new (OxPermission *permission)
{
  const char *name = ox_permission_get_tool_name (permission);
  g_autofree char *call = ox_tool_row_dup_call (name, ox_permission_get_arguments (permission));
  /* Translators: name of a tool. */
  g_autofree char *heading = g_strdup_printf (_ ("Allow “%s”?"), name);
  AdwDialog *dialog = adw_alert_dialog_new (
    heading, _ ("The model wants to use a tool that changes something outside of this chat. It asks for:"));
  AdwAlertDialog *alert = ADW_ALERT_DIALOG (dialog);

  GtkWidget *label = g_object_new (GTK_TYPE_LABEL, "label", call, "xalign", 0.0f, "wrap", TRUE, "wrap-mode",
                                   PANGO_WRAP_WORD_CHAR, "selectable", TRUE, NULL);
  gtk_widget_add_css_class (label, "monospace");
  gtk_widget_add_css_class (label, "ox-details");
  gtk_widget_set_direction (label, GTK_TEXT_DIR_LTR);
  GtkWidget *scroller =
    g_object_new (GTK_TYPE_SCROLLED_WINDOW, "hscrollbar-policy", GTK_POLICY_NEVER, "propagate-natural-height", TRUE,
                  "max-content-height", MAX_HEIGHT, "child", label, NULL);
  adw_alert_dialog_set_extra_child (alert, scroller);

  adw_alert_dialog_add_responses (alert, "deny", _ ("_Don’t Allow"), "allow", _ ("_Allow"), NULL);
  adw_alert_dialog_set_response_appearance (alert, "allow", ADW_RESPONSE_SUGGESTED);
  /* Enter, Escape and a closed window do nothing that cannot be undone. */
  adw_alert_dialog_set_default_response (alert, "deny");
  adw_alert_dialog_set_close_response (alert, "deny");
  g_signal_connect_object (dialog, "response", G_CALLBACK (response_cb), permission, G_CONNECT_SWAPPED);
  g_signal_connect_object (permission, "withdrawn", G_CALLBACK (withdrawn_cb), dialog, G_CONNECT_SWAPPED);
  g_object_set_data_full (G_OBJECT (dialog), "ox-permission", g_object_ref (permission), g_object_unref);
  return dialog;
}
