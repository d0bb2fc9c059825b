/* The direction in which a text is read.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-text-direction.h"

static gboolean
is_rtl_script (GUnicodeScript script)
{
  switch ((int) script) {
  case G_UNICODE_SCRIPT_ARABIC:
  case G_UNICODE_SCRIPT_HEBREW:
  case G_UNICODE_SCRIPT_SYRIAC:
  case G_UNICODE_SCRIPT_THAANA:
  case G_UNICODE_SCRIPT_NKO:
  case G_UNICODE_SCRIPT_SAMARITAN:
  case G_UNICODE_SCRIPT_MANDAIC:
  case G_UNICODE_SCRIPT_ADLAM:
  case G_UNICODE_SCRIPT_HANIFI_ROHINGYA:
    return TRUE;
  default:
    return FALSE;
  }
}

/**
 * ox_text_direction:
 * @text: valid UTF-8
 * @length: bytes of @text
 *
 * The direction of the first letter decides, as rule P2 of the Unicode bidirectional algorithm says.
 *
 * Returns: the direction, or %GTK_TEXT_DIR_NONE when there is no letter
 */
GtkTextDirection
ox_text_direction (const char *text, gsize length)
{
  for (const char *at = text; at < text + length; at = g_utf8_next_char (at)) {
    gunichar c = g_utf8_get_char (at);
    if (g_unichar_isalpha (c))
      return is_rtl_script (g_unichar_get_script (c)) ? GTK_TEXT_DIR_RTL : GTK_TEXT_DIR_LTR;
  }
  return GTK_TEXT_DIR_NONE;
}
