/* Character classes and normalisation form C, on top of GLib's tables.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "text/ox-unicode.h"

#include "text/ox-utf8.h"

/* g_utf8_normalize() sorts combining marks in quadratic time; text that people write has a handful in a row (the Stream-Safe Text
 * Format of UAX #15 allows 30), so longer runs are normalised in parts. */
#define MAX_RUN 256

static OxClass
class_of (gunichar c)
{
  if (ox_unicode_is_space (c))
    return OX_CLASS_SPACE;
  switch (g_unichar_type (c)) {
  case G_UNICODE_UPPERCASE_LETTER:
  case G_UNICODE_LOWERCASE_LETTER:
  case G_UNICODE_TITLECASE_LETTER:
  case G_UNICODE_MODIFIER_LETTER:
  case G_UNICODE_OTHER_LETTER:
    return OX_CLASS_LETTER;
  case G_UNICODE_NON_SPACING_MARK:
  case G_UNICODE_SPACING_MARK:
  case G_UNICODE_ENCLOSING_MARK:
    return OX_CLASS_MARK;
  case G_UNICODE_DECIMAL_NUMBER:
  case G_UNICODE_LETTER_NUMBER:
  case G_UNICODE_OTHER_NUMBER:
    return OX_CLASS_NUMBER;
  default:
    return OX_CLASS_OTHER;
  }
}

OxClass
ox_unicode_class (gunichar c)
{
  static guint8 low[0x800]; /* what most text is made of */
  static gsize once = 0;

  if (g_once_init_enter (&once)) {
    for (gunichar i = 0; i < G_N_ELEMENTS (low); i++)
      low[i] = (guint8) class_of (i);
    g_once_init_leave (&once, 1);
  }
  return c < G_N_ELEMENTS (low) ? (OxClass) low[c] : class_of (c);
}

/* Whether @c never changes in form C and never joins with what stands before it. FALSE also for many characters of which that is
 * true: they only cost time. */
static gboolean
is_inert (gunichar c)
{
  if (c < 0x300)
    return TRUE;
  if (c < 0x1100)
    return (c >= 0x400 && c <= 0x482) || (c >= 0x48a && c <= 0x590) || (c >= 0x5d0 && c <= 0x60f) ||
           (c >= 0x620 && c <= 0x64a) || (c >= 0x388 && c <= 0x3ff) || (c >= 0xe01 && c <= 0xe37) ||
           (c >= 0xe3f && c <= 0xe47);
  if (c < 0x2000)
    return c >= 0x1e00 && c <= 0x1eff;
  return (c >= 0x2010 && c <= 0x20cf) || (c >= 0x2190 && c <= 0x2328) || (c >= 0x2460 && c <= 0x2adb) ||
         (c >= 0x3003 && c <= 0x3029) || (c >= 0x3041 && c <= 0x3098) || (c >= 0x309b && c <= 0x31ff) ||
         (c >= 0x3400 && c <= 0xa48f) || (c >= 0xac00 && c <= 0xd7a3) || (c >= 0xfe30 && c <= 0xffef) ||
         (c >= 0x1f000 && c <= 0x2f7ff);
}

/* @text is one character that is_inert() tells of, or anything, and then characters of which it does not. */
static void
append_nfc (GString *out, const char *text, gsize len)
{
  g_autofree char *normal = NULL;

  if (len == 0)
    return;
  if (is_inert (ox_utf8_get (text)) && (*text == '\0' || len == ox_utf8_length ((guint8) *text))) {
    /* Nothing to do; and GLib's function ends at NUL, which joins with nothing. */
    gsize first = ox_utf8_length ((guint8) *text);

    g_string_append_len (out, text, (gssize) first);
    append_nfc (out, text + first, len - first);
    return;
  }
  normal = g_utf8_normalize (text, (gssize) len, G_NORMALIZE_NFC);
  if (normal)
    g_string_append (out, normal);
  else
    g_string_append_len (out, text, (gssize) len);
}

GString *
ox_unicode_nfc (const char *text, gsize len)
{
  gsize i = 0, part = 0;
  guint run = 0;
  GString *out;

  while (i < len && is_inert (ox_utf8_get (text + i))) {
    part = i;
    i += ox_utf8_length ((guint8) text[i]);
  }
  if (i == len)
    return NULL;
  out = g_string_sized_new (len + 16);
  g_string_append_len (out, text, (gssize) part);
  /* Each part is an inert character, which may join with what follows it, and all others up to the next. */
  for (i = part; i < len; i += ox_utf8_length ((guint8) text[i])) {
    if (i > part && (is_inert (ox_utf8_get (text + i)) || run == MAX_RUN)) {
      append_nfc (out, text + part, i - part);
      part = i;
      run = 0;
    }
    run++;
  }
  append_nfc (out, text + part, len - part);
  return out;
}
