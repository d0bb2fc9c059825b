/* A watch on the main loop: how long was it ever away?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* With OXINFER_WATCHDOG=FILE in the environment, measures from now on how long the main thread stays away from its loop, and keeps in FILE
 * how many rounds it made, the longest stall in milliseconds, and a line for each one over 20 ms: when it ended (seconds of the monotonic
 * clock), how long it was, and how long with the time that the thread waited for a processor. Without the variable, does nothing. */
void ox_watchdog_start (void);

G_END_DECLS
