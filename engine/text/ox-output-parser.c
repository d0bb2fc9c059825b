/* From what a model writes to what it means.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "text/ox-output-parser.h"

#include "text/ox-utf8.h"

struct _OxOutputParser {
  const OxChatFormat *format;
  OxOutputFunc func;
  gpointer user_data;
  OxUtf8Stream utf8;
  GString *pending; /* whole characters that are not told yet */
};

OxOutputParser *
ox_output_parser_new (
  const OxChatFormat *format, gboolean in_thinking, const OxChat *chat, OxOutputFunc func, gpointer user_data)
{
  OxOutputParser *parser = g_new0 (OxOutputParser, 1);

  parser->format = format;
  parser->func = func;
  parser->user_data = user_data;
  parser->pending = g_string_new (NULL);
  return parser;
}

void
ox_output_parser_free (OxOutputParser *parser)
{
  if (!parser)
    return;
  g_string_free (parser->pending, TRUE);
  g_free (parser);
}

gboolean
ox_output_parser_wants_control (const OxChatFormat *format)
{
  return FALSE;
}

static void
tell (OxOutputParser *parser)
{
  OxOutput output = { .type = OX_OUTPUT_TEXT, .text = parser->pending->str };

  if (parser->pending->len > 0)
    parser->func (&output, parser->user_data);
  g_string_truncate (parser->pending, 0);
}

void
ox_output_parser_push (OxOutputParser *parser, const char *text, gsize len)
{
  ox_utf8_stream_push (&parser->utf8, text, len, parser->pending);
  tell (parser);
}

void
ox_output_parser_finish (OxOutputParser *parser)
{
  ox_utf8_stream_finish (&parser->utf8, parser->pending);
  tell (parser);
}
