/* The dialog that lists the keys.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <adwaita.h>

G_BEGIN_DECLS

AdwDialog *ox_shortcuts_dialog_new (void);

G_END_DECLS
