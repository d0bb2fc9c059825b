/* Names from files, made fit for an error message.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <glib.h>

/* At most 100 characters of @text (@len bytes, -1: up to NUL), valid UTF-8 whatever came in, control characters replaced. */
char *ox_quote (const char *text, gssize len);
