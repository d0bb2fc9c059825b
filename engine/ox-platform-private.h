/* What the engine itself asks of the platform.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "oxinfer.h"

/* Bytes of memory in all and free now, the control group's limit respected. Cheap. */
void ox_platform_get_memory (guint64 *total, guint64 *available);
