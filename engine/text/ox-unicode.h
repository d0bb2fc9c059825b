/* Character classes as the pre-tokenizers' regular expressions mean them, and normalisation form C.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <glib.h>

typedef enum {
  OX_CLASS_OTHER,
  OX_CLASS_LETTER, /* \p{L} */
  OX_CLASS_MARK,   /* \p{M} */
  OX_CLASS_NUMBER, /* \p{N} */
  OX_CLASS_SPACE,  /* \s: the White_Space property */
} OxClass;

OxClass ox_unicode_class (gunichar c);

static inline gboolean
ox_unicode_is_space (gunichar c)
{
  return (c >= 9 && c <= 13) || c == ' ' || c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) ||
         c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

/* @len bytes of valid UTF-8 in normalisation form C. NULL when they are already: the usual case, found out quickly. */
GString *ox_unicode_nfc (const char *text, gsize len);
