/* Strings that end an answer, looked for in text that comes in pieces.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <glib.h>

typedef struct _OxStopStrings OxStopStrings;

/* @stop: NULL-terminated, or NULL; empty strings end nothing. Copied. */
OxStopStrings *ox_stop_strings_new (const char *const *stop);
void ox_stop_strings_free (OxStopStrings *stop);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (OxStopStrings, ox_stop_strings_free)

/* Appends to @out what of the text so far can no longer be part of a stop string. TRUE once one is complete: @out then ends right
 * before it, and whatever is pushed later is dropped. Of several the one that is complete first counts, of those that end together
 * the longest. The result does not depend on how the text is cut. Whole characters in give whole characters out. */
gboolean ox_stop_strings_push (OxStopStrings *stop, const char *text, gsize len, GString *out);
/* The text is over: appends what was held back. */
void ox_stop_strings_finish (OxStopStrings *stop, GString *out);
/* Forgets the text; the strings stay. */
void ox_stop_strings_reset (OxStopStrings *stop);
