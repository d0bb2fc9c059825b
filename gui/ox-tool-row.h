/* A call of a tool, as a row that opens.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-disclosure.h"
#include "ox-tool-entry.h"

G_BEGIN_DECLS

GtkWidget *ox_tool_row_new (void);
void ox_tool_row_update (OxDisclosure *row, const OxToolEntry *entry, gboolean live);

/* The call as a program would write it: calculate(expression="37*12"). */
char *ox_tool_row_dup_call (const char *name, const char *arguments);

G_END_DECLS
