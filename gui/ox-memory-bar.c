/* How the computer's memory is used: a bar with the model, the conversation and other programs.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-memory-bar.h"

#include <adwaita.h>
#include <glib/gi18n.h>

#define HEIGHT 6
#define GAP 1.5f

struct _OxMemoryBar {
  GtkWidget parent_instance;

  guint64 model;
  guint64 conversation;
  guint64 other;
  guint64 total;
};

G_DEFINE_FINAL_TYPE (OxMemoryBar, ox_memory_bar, GTK_TYPE_WIDGET)

static void
ox_memory_bar_measure (GtkWidget *widget,
                       GtkOrientation orientation,
                       int for_size,
                       int *minimum,
                       int *natural,
                       int *minimum_baseline,
                       int *natural_baseline)
{
  *minimum = orientation == GTK_ORIENTATION_VERTICAL ? HEIGHT : 40;
  *natural = orientation == GTK_ORIENTATION_VERTICAL ? HEIGHT : 200;
}

static void
ox_memory_bar_snapshot (GtkWidget *widget, GtkSnapshot *snapshot)
{
  OxMemoryBar *self = OX_MEMORY_BAR (widget);
  float width = (float) gtk_widget_get_width (widget);
  float height = (float) gtk_widget_get_height (widget);
  gboolean rtl = gtk_widget_get_direction (widget) == GTK_TEXT_DIR_RTL;
  g_autoptr (GdkRGBA) accent = adw_style_manager_get_accent_color_rgba (adw_style_manager_get_default ());
  GskRoundedRect outline;
  GdkRGBA text;

  gtk_widget_get_color (widget, &text);
  gsk_rounded_rect_init_from_rect (&outline, &GRAPHENE_RECT_INIT (0, 0, width, height), height / 2);
  gtk_snapshot_push_rounded_clip (snapshot, &outline);
  const struct {
    guint64 bytes;
    GdkRGBA color;
  } parts[] = {
    { self->model, { accent->red, accent->green, accent->blue, 1 } },
    { self->conversation, { accent->red, accent->green, accent->blue, 0.5f } },
    { self->other, { text.red, text.green, text.blue, text.alpha * 0.4f } },
  };
  float at = 0;
  for (guint i = 0; i < G_N_ELEMENTS (parts); i++) {
    float length = self->total > 0 ? (float) ((double) parts[i].bytes / (double) self->total) * width : 0;
    length = MIN (length, width - at);
    if (length > GAP) {
      float x = rtl ? width - at - length + GAP : at;
      gtk_snapshot_append_color (snapshot, &parts[i].color, &GRAPHENE_RECT_INIT (x, 0, length - GAP, height));
    }
    at += length;
  }
  text.alpha *= 0.12f;
  gtk_snapshot_append_color (snapshot, &text, &GRAPHENE_RECT_INIT (rtl ? 0 : at, 0, width - at, height));
  gtk_snapshot_pop (snapshot);
}

static void
ox_memory_bar_class_init (OxMemoryBarClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);
  widget_class->measure = ox_memory_bar_measure;
  widget_class->snapshot = ox_memory_bar_snapshot;
  gtk_widget_class_set_accessible_role (widget_class, GTK_ACCESSIBLE_ROLE_METER);
}

static void
ox_memory_bar_init (OxMemoryBar *self)
{
  gtk_accessible_update_property (GTK_ACCESSIBLE (self), GTK_ACCESSIBLE_PROPERTY_LABEL, _ ("Memory"), -1);
}

/**
 * ox_memory_bar_set_values:
 * @self: a bar
 * @model: bytes of the loaded model's weights
 * @conversation: bytes of its conversation state
 * @available: bytes that are free
 * @total: bytes of the whole memory
 */
void
ox_memory_bar_set_values (OxMemoryBar *self, guint64 model, guint64 conversation, guint64 available, guint64 total)
{
  guint64 used = total > available ? total - available : 0;
  guint64 ours = model + conversation;

  self->model = model;
  self->conversation = conversation;
  self->other = used > ours ? used - ours : 0;
  self->total = total;

  g_autofree char *model_size = g_format_size (model);
  g_autofree char *conversation_size = g_format_size (conversation);
  g_autofree char *other_size = g_format_size (self->other);
  g_autofree char *free_size = g_format_size (available);
  g_autofree char *value = g_strdup_printf (_ ("Model %s, conversation %s, other programs %s, free %s"), model_size,
                                            conversation_size, other_size, free_size);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self), GTK_ACCESSIBLE_PROPERTY_VALUE_MIN, 0.0,
                                  GTK_ACCESSIBLE_PROPERTY_VALUE_MAX, (double) total, GTK_ACCESSIBLE_PROPERTY_VALUE_NOW,
                                  (double) (ours + self->other), GTK_ACCESSIBLE_PROPERTY_VALUE_TEXT, value, -1);
  gtk_widget_set_tooltip_text (GTK_WIDGET (self), value);
  gtk_widget_queue_draw (GTK_WIDGET (self));
}
