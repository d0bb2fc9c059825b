/* Names from files, made fit for an error message.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "io/ox-quote.h"

#include <string.h>

#define MAX_CHARS 100

char *
ox_quote (const char *text, gssize len)
{
  gsize n = len < 0 ? strlen (text) : (gsize) len;
  g_autofree char *valid = g_utf8_make_valid (text, (gssize) MIN (n, MAX_CHARS * 6));
  GString *out = g_string_new (NULL);
  const char *p = valid;
  guint chars = 0;

  for (; *p != '\0' && chars < MAX_CHARS; p = g_utf8_next_char (p), chars++) {
    gunichar c = g_utf8_get_char (p);

    g_string_append_unichar (out, g_unichar_iscntrl (c) ? 0xfffd : c);
  }
  if (*p != '\0' || n > MAX_CHARS * 6)
    g_string_append (out, "…");
  return g_string_free (out, FALSE);
}
