/* UTF-8 that may be broken.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "text/ox-utf8.h"

#include <string.h>

#define REPLACEMENT "\357\277\275"

/* Bytes of the character that @lead begins; 0 when no character begins with it. */
static guint
lead_length (guint8 lead)
{
  if (lead < 0x80)
    return 1;
  if (lead >= 0xc2 && lead <= 0xdf)
    return 2;
  if (lead >= 0xe0 && lead <= 0xef)
    return 3;
  if (lead >= 0xf0 && lead <= 0xf4)
    return 4;
  return 0;
}

/* Whether @byte may follow @held (table 3-7 of the Unicode Standard: no overlong forms, no surrogates, nothing above U+10FFFF). */
static gboolean
may_follow (const guint8 *held, guint n_held, guint8 byte)
{
  guint8 low = 0x80, high = 0xbf;

  if (n_held == 1) {
    if (held[0] == 0xe0)
      low = 0xa0;
    else if (held[0] == 0xed)
      high = 0x9f;
    else if (held[0] == 0xf0)
      low = 0x90;
    else if (held[0] == 0xf4)
      high = 0x8f;
  }
  return byte >= low && byte <= high;
}

void
ox_utf8_stream_push (OxUtf8Stream *stream, const char *bytes, gsize n, GString *out)
{
  gsize i = 0;

  while (i < n) {
    guint8 byte = (guint8) bytes[i];

    if (stream->n_held == 0) {
      gsize valid = ox_utf8_valid_prefix (bytes + i, n - i);

      g_string_append_len (out, bytes + i, (gssize) valid);
      i += valid;
      if (i == n)
        break;
      byte = (guint8) bytes[i++];
      stream->n_needed = (guint8) lead_length (byte);
      if (stream->n_needed == 0)
        g_string_append (out, REPLACEMENT);
      else
        stream->held[stream->n_held++] = byte;
    } else if (may_follow (stream->held, stream->n_held, byte)) {
      i++;
      stream->held[stream->n_held++] = byte;
      if (stream->n_held == stream->n_needed) {
        g_string_append_len (out, (const char *) stream->held, stream->n_held);
        stream->n_held = 0;
      }
    } else {
      /* The byte itself is looked at again: it may begin a character. */
      g_string_append (out, REPLACEMENT);
      stream->n_held = 0;
    }
  }
}

void
ox_utf8_stream_finish (OxUtf8Stream *stream, GString *out)
{
  if (stream->n_held > 0)
    g_string_append (out, REPLACEMENT);
  stream->n_held = 0;
}

gsize
ox_utf8_valid_prefix (const char *text, gsize len)
{
  const guint8 *b = (const guint8 *) text;
  gsize i = 0;

  while (i < len) {
    guint n;

    if (b[i] < 0x80) {
      guint64 word;

      while (i + 8 <= len && (memcpy (&word, b + i, 8), (word & G_GUINT64_CONSTANT (0x8080808080808080)) == 0))
        i += 8;
      while (i < len && b[i] < 0x80)
        i++;
      continue;
    }
    n = lead_length (b[i]);
    if (n == 0 || n > len - i)
      return i;
    for (guint k = 1; k < n; k++) {
      if (!may_follow (b + i, k, b[i + k]))
        return i;
    }
    i += n;
  }
  return len;
}

GString *
ox_utf8_repair (const char *text, gsize len)
{
  OxUtf8Stream stream = { 0 };
  gsize valid = ox_utf8_valid_prefix (text, len);
  GString *out;

  if (valid == len)
    return NULL;
  out = g_string_sized_new (len + 16);
  ox_utf8_stream_push (&stream, text, len, out);
  ox_utf8_stream_finish (&stream, out);
  return out;
}
