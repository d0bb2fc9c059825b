/* The tools that come with the engine.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "oxinfer.h"

extern const char ox_tool_time_declaration[];
extern const char ox_tool_calculate_declaration[];
extern const char ox_tool_units_declaration[];
extern const char ox_tool_attachment_declaration[];

/* OxToolFuncs; they need no user data. */
char *ox_tool_time (const char *arguments, gpointer user_data, GCancellable *cancellable, GError **error);
char *ox_tool_calculate (const char *arguments, gpointer user_data, GCancellable *cancellable, GError **error);
char *ox_tool_units (const char *arguments, gpointer user_data, GCancellable *cancellable, GError **error);
/* @user_data: OxAttachments. */
char *ox_tool_attachment (const char *arguments, gpointer user_data, GCancellable *cancellable, GError **error);

/* Texts that the user attached. */
typedef struct _OxAttachments OxAttachments;

OxAttachments *ox_attachments_new (void);
void ox_attachments_free (gpointer attachments);
void ox_attachments_add (OxAttachments *attachments, const char *name, const char *text);
