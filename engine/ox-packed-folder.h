/* The folder of packed matrices: its files, their size, and the limit of that.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "oxinfer.h"

#define OX_PACKED_SUFFIX ".oxpacked"

/* $XDG_CACHE_HOME/oxinfer/packed, or @name in it. Free with g_free(). */
char *ox_packed_folder_get_path (const char *name);
/* Whether the folder can take @bytes more, and if not, why. Makes it. */
gboolean ox_packed_folder_check (guint64 bytes, GError **error);
/* A new file to write @bytes to, with a name that nobody takes for a finished one; NULL when there can be none: the limit, no space,
 * no such folder. Whoever dies while writing leaves it to the next one who comes by. Free with g_free(). */
char *ox_packed_folder_create (guint64 bytes, int *fd);
/* Removes what was used longest ago until the rest is within the limit; @keep, if it is, goes last. */
void ox_packed_folder_trim (const char *keep);
guint64 ox_packed_folder_get_limit (void);
