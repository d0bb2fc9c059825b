/* The card that stands in place of an answer which failed.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-error-card.h"

#include "ox-widget.h"

#include <adwaita.h>

struct _OxErrorCard {
  GtkWidget parent_instance;

  GtkLabel *title_label;
  GtkLabel *text_label;
  GtkLabel *details_label;
  GtkToggleButton *details_button;
};

G_DEFINE_FINAL_TYPE (OxErrorCard, ox_error_card, GTK_TYPE_WIDGET)

enum { RETRY, N_SIGNALS };

static guint signals[N_SIGNALS];

static void
retry_cb (OxErrorCard *self)
{
  g_signal_emit (self, signals[RETRY], 0);
}

static void
ox_error_card_dispose (GObject *object)
{
  ox_widget_dispose_children (GTK_WIDGET (object), OX_TYPE_ERROR_CARD);
  G_OBJECT_CLASS (ox_error_card_parent_class)->dispose (object);
}

static void
ox_error_card_class_init (OxErrorCardClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);

  G_OBJECT_CLASS (klass)->dispose = ox_error_card_dispose;

  /**
   * OxErrorCard::retry:
   *
   * The person wants the answer to be tried again.
   */
  signals[RETRY] = g_signal_new ("retry", OX_TYPE_ERROR_CARD, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);

  g_type_ensure (ADW_TYPE_WRAP_BOX);
  gtk_widget_class_set_template_from_resource (widget_class, "/org/oxinfer/App/ui/ox-error-card.ui");
  gtk_widget_class_bind_template_child (widget_class, OxErrorCard, title_label);
  gtk_widget_class_bind_template_child (widget_class, OxErrorCard, text_label);
  gtk_widget_class_bind_template_child (widget_class, OxErrorCard, details_label);
  gtk_widget_class_bind_template_child (widget_class, OxErrorCard, details_button);
  gtk_widget_class_bind_template_callback (widget_class, retry_cb);
}

static void
ox_error_card_init (OxErrorCard *self)
{
  gtk_widget_init_template (GTK_WIDGET (self));
}

/**
 * ox_error_card_new:
 *
 * Returns: an empty card
 */
GtkWidget *
ox_error_card_new (void)
{
  return g_object_new (OX_TYPE_ERROR_CARD, NULL);
}

/**
 * ox_error_card_set_error:
 * @self: a card
 * @title: what happened
 * @text: why, and what can be done
 * @details: (nullable): the engine's own words, shown on demand
 */
void
ox_error_card_set_error (OxErrorCard *self, const char *title, const char *text, const char *details)
{
  gtk_label_set_label (self->title_label, title);
  gtk_label_set_label (self->text_label, text);
  gtk_label_set_label (self->details_label, details != NULL ? details : "");
  gtk_widget_set_visible (GTK_WIDGET (self->details_button), details != NULL && details[0] != '\0');
  gtk_accessible_update_property (GTK_ACCESSIBLE (self), GTK_ACCESSIBLE_PROPERTY_LABEL, title,
                                  GTK_ACCESSIBLE_PROPERTY_DESCRIPTION, text, -1);
}

/**
 * ox_error_card_get_title:
 * @self: a card
 *
 * Returns: what happened
 */
const char *
ox_error_card_get_title (OxErrorCard *self)
{
  return gtk_label_get_label (self->title_label);
}
