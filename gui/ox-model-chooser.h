/* The button in the composer that says who answers next, and the list behind it.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-engine.h"
#include "ox-model-library.h"

#include <gtk/gtk.h>

G_BEGIN_DECLS

#define OX_TYPE_MODEL_CHOOSER (ox_model_chooser_get_type ())
G_DECLARE_FINAL_TYPE (OxModelChooser, ox_model_chooser, OX, MODEL_CHOOSER, GtkWidget)

GtkWidget *ox_model_chooser_new (void);

void ox_model_chooser_set_library (OxModelChooser *self, OxModelLibrary *library, OxEngine *engine);
void ox_model_chooser_set_entry (OxModelChooser *self, OxModelEntry *entry);
void ox_model_chooser_set_narrow (OxModelChooser *self, gboolean narrow);
void ox_model_chooser_popup (OxModelChooser *self);

GListModel *ox_model_list_new (OxModelLibrary *library);
char *ox_model_entry_dup_status (OxModelEntry *entry);
GtkWidget *ox_model_capabilities_new (OxModelEntry *entry);
char *ox_model_entry_dup_capabilities (OxModelEntry *entry);

G_END_DECLS
