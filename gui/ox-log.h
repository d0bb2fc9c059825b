/* Messages for people who look for a fault: OXINFER_LOG.
 *
 * The variable holds a comma-separated list of LEVEL or CATEGORY:LEVEL. Levels: error, warning, message, info, debug, none.
 * Categories: app, store, jobs, engine, models, view. Examples:
 *   OXINFER_LOG=debug                everything
 *   OXINFER_LOG=info,store:debug     all of the store, the rest in brief
 * Lines go to stderr with the seconds since start. Text that people wrote or got is never logged.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Takes over GLib's log writer. Call first in main(). Without OXINFER_LOG, warnings and worse are shown. */
void ox_log_init (void);

/* Whether a line of @category at @level would be shown; for lines that are dear to make. Any thread. */
gboolean ox_log_enabled (const char *category, GLogLevelFlags level);

#define ox_log(category, level, ...)                                                                                   \
  g_log_structured (G_LOG_DOMAIN, (level), "OXINFER_CATEGORY", (category), "MESSAGE", __VA_ARGS__)
#define ox_debug(category, ...) ox_log (category, G_LOG_LEVEL_DEBUG, __VA_ARGS__)
#define ox_info(category, ...) ox_log (category, G_LOG_LEVEL_INFO, __VA_ARGS__)

G_END_DECLS
