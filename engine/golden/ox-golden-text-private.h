/* Shared by the runners of the text groups.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "io/ox-json.h"

/* JSON, packed or not. */
OxJson *ox_golden_read_json (const char *path, GError **error);
