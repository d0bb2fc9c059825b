/* Where a message is written: text, what is at hand for it, and one button that sends or stops.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "oxinfer.h"

#include <gtk/gtk.h>

G_BEGIN_DECLS

#define OX_TYPE_COMPOSER (ox_composer_get_type ())
G_DECLARE_FINAL_TYPE (OxComposer, ox_composer, OX, COMPOSER, GtkWidget)

GtkWidget *ox_composer_new (void);

char *ox_composer_dup_text (OxComposer *self);
void ox_composer_set_text (OxComposer *self, const char *text);

gboolean ox_composer_get_busy (OxComposer *self);
void ox_composer_set_busy (OxComposer *self, gboolean busy);
void ox_composer_set_can_send (OxComposer *self, gboolean can_send);
void ox_composer_set_enter_sends (OxComposer *self, gboolean enter_sends);
void ox_composer_set_placeholder (OxComposer *self, const char *placeholder);
void ox_composer_set_usage (OxComposer *self, const OxContextUse *use, gboolean drop_oldest);
void ox_composer_set_think (OxComposer *self, gboolean can_think, gboolean think);
void ox_composer_toggle_think (OxComposer *self);
void ox_composer_set_narrow (OxComposer *self, gboolean narrow);

void ox_composer_unqueue (OxComposer *self);
void ox_composer_add_tool (OxComposer *self, GtkWidget *widget);
void ox_composer_activate (OxComposer *self);
GtkTextView *ox_composer_get_text_view (OxComposer *self);
gboolean ox_composer_handle_key (OxComposer *self, guint keyval, GdkModifierType state);

G_END_DECLS
