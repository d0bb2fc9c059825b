/* Asking the user whether a tool with effects may run. The engine thread asks and waits; the window answers.
 *
 * Signal: withdrawn (), on the main thread: the answer is not wanted any more.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

#define OX_TYPE_PERMISSION (ox_permission_get_type ())
G_DECLARE_FINAL_TYPE (OxPermission, ox_permission, OX, PERMISSION, GObject)

OxPermission *ox_permission_new (const char *tool_name, const char *arguments);
/* Any thread. */
const char *ox_permission_get_tool_name (OxPermission *self);
const char *ox_permission_get_arguments (OxPermission *self);

/* Main thread. The first answer counts. */
void ox_permission_answer (OxPermission *self, gboolean allow);
/* Answered, and with yes. Any thread. */
gboolean ox_permission_is_allowed (OxPermission *self);
/* Engine thread: until there is an answer; FALSE when cancelled. */
gboolean ox_permission_wait (OxPermission *self, GCancellable *cancellable);

G_END_DECLS
