/* The question whether a tool with effects may run.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-permission.h"

#include <adwaita.h>

G_BEGIN_DECLS

AdwDialog *ox_permission_dialog_new (OxPermission *permission);

G_END_DECLS
