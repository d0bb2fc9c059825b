/* The engine takes half the threads while the computer saves power.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-engine.h"

G_BEGIN_DECLS

/* From now on and for as long as @engine lives, it saves power when @monitor says so. */
void ox_power_saver_follow (OxEngine *engine, GPowerProfileMonitor *monitor);
/* The same with the system's monitor, a little later: finding it asks other programs over D-Bus, which may take its time. */
void ox_power_saver_follow_system (OxEngine *engine);

G_END_DECLS
