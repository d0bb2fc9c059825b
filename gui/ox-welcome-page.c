/* What is shown while there is no model yet.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-welcome-page.h"

#include "ox-widget.h"

#include <glib/gi18n.h>

struct _OxWelcomePage {
  AdwBin parent_instance;

  AdwBanner *banner;
  GtkMenuButton *menu_button;
  GtkButton *import_button;
};

G_DEFINE_FINAL_TYPE (OxWelcomePage, ox_welcome_page, ADW_TYPE_BIN)

static gboolean
ox_welcome_page_grab_focus (GtkWidget *widget)
{
  return gtk_widget_grab_focus (GTK_WIDGET (OX_WELCOME_PAGE (widget)->import_button));
}

static void
ox_welcome_page_dispose (GObject *object)
{
  gtk_widget_dispose_template (GTK_WIDGET (object), OX_TYPE_WELCOME_PAGE);
  G_OBJECT_CLASS (ox_welcome_page_parent_class)->dispose (object);
}

static void
ox_welcome_page_class_init (OxWelcomePageClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);

  G_OBJECT_CLASS (klass)->dispose = ox_welcome_page_dispose;
  widget_class->grab_focus = ox_welcome_page_grab_focus;
  gtk_widget_class_set_template_from_resource (widget_class, "/org/oxinfer/App/ui/ox-welcome-page.ui");
  gtk_widget_class_bind_template_child (widget_class, OxWelcomePage, banner);
  gtk_widget_class_bind_template_child (widget_class, OxWelcomePage, menu_button);
  gtk_widget_class_bind_template_child (widget_class, OxWelcomePage, import_button);
}

static void
ox_welcome_page_init (OxWelcomePage *self)
{
  gtk_widget_init_template (GTK_WIDGET (self));
  ox_menu_button_set_name (self->menu_button, _ ("Main Menu"));
}

/**
 * ox_welcome_page_new:
 *
 * Returns: the page
 */
GtkWidget *
ox_welcome_page_new (void)
{
  return g_object_new (OX_TYPE_WELCOME_PAGE, NULL);
}

/**
 * ox_welcome_page_set_problem:
 * @self: the page
 * @problem: (nullable): why the models that were found cannot be used
 */
void
ox_welcome_page_set_problem (OxWelcomePage *self, const char *problem)
{
  adw_banner_set_title (self->banner, problem != NULL ? problem : "");
  adw_banner_set_revealed (self->banner, problem != NULL);
}
