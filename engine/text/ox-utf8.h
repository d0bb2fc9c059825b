/* UTF-8 that may be broken: every maximal part that cannot become a character counts as one U+FFFD (the Unicode Standard's
 * recommendation, chapter 3.9; what Python's errors="replace" does). U+0000 is a character like any other.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <glib.h>

/* Turns a stream of bytes, cut anywhere, into whole characters. Zero it to begin. */
typedef struct {
  guint8 held[4]; /* start of a character */
  guint8 n_held;
  guint8 n_needed; /* bytes that the character has in all */
} OxUtf8Stream;

/* Appends to @out every character that is complete, and U+FFFD for every part that can no longer become one. */
void ox_utf8_stream_push (OxUtf8Stream *stream, const char *bytes, gsize n, GString *out);
/* Appends one U+FFFD when the stream ends within a character. */
void ox_utf8_stream_finish (OxUtf8Stream *stream, GString *out);

/* Length of the prefix of @text that is valid UTF-8. */
gsize ox_utf8_valid_prefix (const char *text, gsize len);
/* @text with U+FFFD for what is broken. NULL when nothing is: then @text can be used as it is. */
GString *ox_utf8_repair (const char *text, gsize len);

/* Length in bytes of the character that starts with @lead, in valid UTF-8. */
static inline gsize
ox_utf8_length (guint8 lead)
{
  return lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

/* The character at @p, in valid UTF-8. */
static inline gunichar
ox_utf8_get (const char *p)
{
  const guint8 *b = (const guint8 *) p;

  if (b[0] < 0x80)
    return b[0];
  if (b[0] < 0xe0)
    return (gunichar) (b[0] & 0x1f) << 6 | (b[1] & 0x3f);
  if (b[0] < 0xf0)
    return (gunichar) (b[0] & 0x0f) << 12 | (gunichar) (b[1] & 0x3f) << 6 | (b[2] & 0x3f);
  return (gunichar) (b[0] & 0x07) << 18 | (gunichar) (b[1] & 0x3f) << 12 | (gunichar) (b[2] & 0x3f) << 6 |
         (b[3] & 0x3f);
}
