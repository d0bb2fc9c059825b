/* Whether there is memory for what comes next.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "oxinfer.h"

/* FALSE with OX_ERROR_NO_MEMORY, naming @what, when @bytes cannot be had now. GLib's arrays and strings end the program when they
 * cannot grow, so whoever fills one with as much as a file or a person says asks here first. */
gboolean ox_memory_check (guint64 bytes, const char *what, GError **error);
