/* A row that opens: an icon, a title and more behind it, such as what a model thought.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-disclosure.h"

#include "ox-widget.h"

#include <adwaita.h>

struct _OxDisclosure {
  GtkWidget parent_instance;

  GtkToggleButton *button;
  GtkStack *icon_stack;
  GtkImage *icon;
  GtkLabel *title_label;
  GtkLabel *detail_label;
  GtkImage *arrow;
  AdwBin *bin;
};

G_DEFINE_FINAL_TYPE (OxDisclosure, ox_disclosure, GTK_TYPE_WIDGET)

enum { PROP_0, PROP_OPEN, N_PROPS };

static GParamSpec *properties[N_PROPS];

static void
toggled_cb (OxDisclosure *self)
{
  gboolean open = ox_disclosure_get_open (self);

  gtk_image_set_from_icon_name (self->arrow, open ? "go-down-symbolic" : "go-next-symbolic");
  gtk_accessible_update_state (GTK_ACCESSIBLE (self->button), GTK_ACCESSIBLE_STATE_EXPANDED, open, -1);
  g_object_notify_by_pspec (G_OBJECT (self), properties[PROP_OPEN]);
}

static void
ox_disclosure_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  if (id == PROP_OPEN)
    g_value_set_boolean (value, ox_disclosure_get_open (OX_DISCLOSURE (object)));
  else
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
}

static void
ox_disclosure_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  if (id == PROP_OPEN)
    ox_disclosure_set_open (OX_DISCLOSURE (object), g_value_get_boolean (value));
  else
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
}

static void
ox_disclosure_dispose (GObject *object)
{
  ox_widget_dispose_children (GTK_WIDGET (object), OX_TYPE_DISCLOSURE);
  G_OBJECT_CLASS (ox_disclosure_parent_class)->dispose (object);
}

static void
ox_disclosure_class_init (OxDisclosureClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);

  object_class->get_property = ox_disclosure_get_property;
  object_class->set_property = ox_disclosure_set_property;
  object_class->dispose = ox_disclosure_dispose;

  properties[PROP_OPEN] = g_param_spec_boolean ("open", NULL, NULL, FALSE,
                                                G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | G_PARAM_EXPLICIT_NOTIFY);
  g_object_class_install_properties (object_class, N_PROPS, properties);

  gtk_widget_class_set_template_from_resource (widget_class, "/org/oxinfer/App/ui/ox-disclosure.ui");
  gtk_widget_class_bind_template_child (widget_class, OxDisclosure, button);
  gtk_widget_class_bind_template_child (widget_class, OxDisclosure, icon_stack);
  gtk_widget_class_bind_template_child (widget_class, OxDisclosure, icon);
  gtk_widget_class_bind_template_child (widget_class, OxDisclosure, title_label);
  gtk_widget_class_bind_template_child (widget_class, OxDisclosure, detail_label);
  gtk_widget_class_bind_template_child (widget_class, OxDisclosure, arrow);
  gtk_widget_class_bind_template_child (widget_class, OxDisclosure, bin);
  gtk_widget_class_bind_template_callback (widget_class, toggled_cb);
}

static void
ox_disclosure_init (OxDisclosure *self)
{
  gtk_widget_init_template (GTK_WIDGET (self));
  /* "= 444" reads the same in every language. */
  gtk_widget_set_direction (GTK_WIDGET (self->detail_label), GTK_TEXT_DIR_LTR);
  gtk_accessible_update_state (GTK_ACCESSIBLE (self->button), GTK_ACCESSIBLE_STATE_EXPANDED, FALSE, -1);
}

/**
 * ox_disclosure_new:
 *
 * Returns: a closed row
 */
GtkWidget *
ox_disclosure_new (void)
{
  return g_object_new (OX_TYPE_DISCLOSURE, NULL);
}

void
ox_disclosure_set_icon_name (OxDisclosure *self, const char *icon_name)
{
  gtk_image_set_from_icon_name (self->icon, icon_name);
}

/**
 * ox_disclosure_set_title:
 * @self: a row
 * @title: what was done
 * @detail: (nullable): what came of it, paler
 */
void
ox_disclosure_set_title (OxDisclosure *self, const char *title, const char *detail)
{
  g_autofree char *name = detail != NULL ? g_strdup_printf ("%s %s", title, detail) : g_strdup (title);

  gtk_label_set_label (self->title_label, title);
  gtk_label_set_label (self->detail_label, detail != NULL ? detail : "");
  gtk_widget_set_visible (GTK_WIDGET (self->detail_label), detail != NULL);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->button), GTK_ACCESSIBLE_PROPERTY_LABEL, name, -1);
}

/**
 * ox_disclosure_set_running_title:
 * @self: a row
 * @title: a title that changes every second, which those who listen are spared
 */
void
ox_disclosure_set_running_title (OxDisclosure *self, const char *title)
{
  gtk_label_set_label (self->title_label, title);
}

/**
 * ox_disclosure_set_busy:
 * @self: a row
 * @busy: whether it is still being done, which a spinner in place of the icon shows
 */
void
ox_disclosure_set_busy (OxDisclosure *self, gboolean busy)
{
  gtk_stack_set_visible_child_name (self->icon_stack, busy ? "spinner" : "icon");
}

void
ox_disclosure_set_failed (OxDisclosure *self, gboolean failed)
{
  if (failed)
    gtk_widget_add_css_class (GTK_WIDGET (self->button), "error");
  else
    gtk_widget_remove_css_class (GTK_WIDGET (self->button), "error");
}

void
ox_disclosure_set_child (OxDisclosure *self, GtkWidget *child)
{
  adw_bin_set_child (self->bin, child);
}

gboolean
ox_disclosure_get_open (OxDisclosure *self)
{
  return gtk_toggle_button_get_active (self->button);
}

void
ox_disclosure_set_open (OxDisclosure *self, gboolean open)
{
  gtk_toggle_button_set_active (self->button, open);
}

const char *
ox_disclosure_get_title (OxDisclosure *self)
{
  return gtk_label_get_label (self->title_label);
}
