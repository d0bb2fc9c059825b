/* From what a model writes to what it means: what all notations have in common.
 *
 * Text is told as soon as it is sure; held back are the start of a possible tag, white space that may be at the end, and calls. The
 * state depends on the characters that have come, never on how they were cut.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "text/ox-output-parser-private.h"

#include <string.h>

OxOutputParser *
ox_output_parser_new (
  const OxChatFormat *format, gboolean in_thinking, const OxChat *chat, OxOutputFunc func, gpointer user_data)
{
  OxOutputParser *parser = g_new0 (OxOutputParser, 1);

  parser->syntax = format ? format->syntax : OX_SYNTAX_PLAIN;
  parser->chat = chat;
  parser->func = func;
  parser->user_data = user_data;
  parser->arrived = g_string_new (NULL);
  parser->buffer = g_string_new (NULL);
  parser->held = g_string_new (NULL);
  parser->told = g_string_new (NULL);
  parser->name = g_string_new (NULL);
  parser->key = g_string_new (NULL);
  parser->members = g_string_new (NULL);
  if (parser->syntax == OX_SYNTAX_GEMMA4)
    ox_parser_start_gemma4 (parser, in_thinking);
  else if (parser->syntax == OX_SYNTAX_QWEN)
    ox_parser_start_qwen (parser, in_thinking);
  return parser;
}

void
ox_output_parser_free (OxOutputParser *parser)
{
  if (!parser)
    return;
  g_string_free (parser->arrived, TRUE);
  g_string_free (parser->buffer, TRUE);
  g_string_free (parser->held, TRUE);
  g_string_free (parser->told, TRUE);
  g_string_free (parser->name, TRUE);
  g_string_free (parser->key, TRUE);
  g_string_free (parser->members, TRUE);
  g_free (parser);
}

gboolean
ox_output_parser_wants_control (const OxChatFormat *format)
{
  return format && format->syntax != OX_SYNTAX_PLAIN;
}

/* ---- Telling ---- */

static void
tell (OxOutputParser *parser, OxOutputType type, const char *text)
{
  OxOutput output = { .type = type, .text = text };

  parser->func (&output, parser->user_data);
}

/* The buffer's text from @begin to @end, but for white space at the ends of the stretch. */
static void
tell_text (OxOutputParser *parser, OxOutputType type, gsize begin, gsize end)
{
  const char *text = parser->buffer->str;
  gsize first = begin, last = end;

  ox_python_trim (text, &first, &last);
  if (first == last) {
    if (parser->has_begun)
      g_string_append_len (parser->held, text + begin, (gssize) (end - begin));
    return;
  }
  g_string_truncate (parser->told, 0);
  if (parser->has_begun) {
    g_string_append_len (parser->told, parser->held->str, (gssize) parser->held->len);
    first = begin;
  }
  g_string_append_len (parser->told, text + first, (gssize) (last - first));
  g_string_truncate (parser->held, 0);
  g_string_append_len (parser->held, text + last, (gssize) (end - last));
  parser->has_begun = TRUE;
  tell (parser, type, parser->told->str);
}

void
ox_parser_end_segment (OxOutputParser *parser)
{
  g_string_truncate (parser->held, 0);
  parser->has_begun = FALSE;
}

gboolean
ox_parser_tell_call (OxOutputParser *parser, const char *name, const char *arguments, gsize len)
{
  g_autoptr (OxValue) value = ox_value_parse (arguments, len, name, NULL);
  g_autoptr (GString) json = NULL;
  OxOutput output = { .type = OX_OUTPUT_TOOL_CALL, .name = name };

  if (!value || !yyjson_is_obj (ox_value_get_root (value)) || !ox_value_is_finite (ox_value_get_root (value)))
    return FALSE;
  json = g_string_new (NULL);
  ox_value_append_json (json, ox_value_get_root (value));
  output.arguments = json->str;
  parser->func (&output, parser->user_data);
  return TRUE;
}

void
ox_parser_tell_malformed (OxOutputParser *parser, gsize end)
{
  g_autofree char *text = g_strndup (parser->buffer->str + parser->at, end - parser->at);

  tell (parser, OX_OUTPUT_MALFORMED_CALL, text);
}

/* ---- Tags ---- */

int
ox_parser_match (const OxOutputParser *parser, gsize place, const char *const *tags, gsize n_tags)
{
  const char *text = parser->buffer->str + place;
  gsize len = parser->buffer->len - place;
  int result = OX_TAG_NONE;

  for (gsize i = 0; i < n_tags; i++) {
    gsize n = strlen (tags[i]);

    if (len >= n && memcmp (text, tags[i], n) == 0)
      return (int) i;
    if (len < n && !parser->is_final && memcmp (text, tags[i], len) == 0)
      result = OX_TAG_MORE;
  }
  return result;
}

int
ox_parser_find (OxOutputParser *parser, const char *const *tags, gsize n_tags)
{
  while (parser->scan < parser->buffer->len) {
    const char *text = parser->buffer->str, *found;
    int tag;

    found = memchr (text + parser->scan, '<', parser->buffer->len - parser->scan);
    parser->scan = found ? (gsize) (found - text) : parser->buffer->len;
    tag = found ? ox_parser_match (parser, parser->scan, tags, n_tags) : OX_TAG_NONE;
    if (tag >= 0)
      return tag;
    if (tag == OX_TAG_MORE)
      break;
    if (found)
      parser->scan++;
  }
  return OX_TAG_NONE;
}

int
ox_parser_next_tag (OxOutputParser *parser, OxOutputType type, const char *const *tags, gsize n_tags)
{
  int tag = ox_parser_find (parser, tags, n_tags);

  tell_text (parser, type, parser->at, parser->scan);
  parser->scan += tag >= 0 ? strlen (tags[tag]) : 0;
  parser->at = parser->scan;
  return tag;
}

void
ox_parser_skip_space (OxOutputParser *parser)
{
  const char *text = parser->buffer->str;

  while (parser->scan < parser->buffer->len && ox_python_is_space (ox_utf8_get (text + parser->scan)))
    parser->scan += ox_utf8_length ((guint8) text[parser->scan]);
}

void
ox_parser_go (OxOutputParser *parser, gsize place, int state)
{
  parser->at = parser->scan = place;
  parser->state = state;
}

/* ---- Pieces ---- */

static void
run (OxOutputParser *parser)
{
  if (parser->syntax == OX_SYNTAX_GEMMA4) {
    ox_parser_run_gemma4 (parser);
  } else if (parser->syntax == OX_SYNTAX_QWEN) {
    ox_parser_run_qwen (parser);
  } else {
    if (parser->buffer->len > 0)
      tell (parser, OX_OUTPUT_TEXT, parser->buffer->str);
    parser->at = parser->scan = parser->buffer->len;
  }
  g_string_erase (parser->buffer, 0, (gssize) parser->at);
  parser->scan -= parser->at;
  parser->value_begin -= MIN (parser->at, parser->value_begin);
  parser->value_end -= MIN (parser->at, parser->value_end);
  parser->at = 0;
}

/* Moves what has arrived into the buffer; U+0000 would end a text. */
static void
take_arrived (OxOutputParser *parser)
{
  const char *text = parser->arrived->str, *end = text + parser->arrived->len;

  while (text < end) {
    gsize n = strlen (text);

    g_string_append_len (parser->buffer, text, (gssize) n);
    text += n;
    if (text < end) {
      g_string_append (parser->buffer, "\357\277\275");
      text++;
    }
  }
  g_string_truncate (parser->arrived, 0);
}

void
ox_output_parser_push (OxOutputParser *parser, const char *text, gsize len)
{
  ox_utf8_stream_push (&parser->utf8, text, len, parser->arrived);
  take_arrived (parser);
  run (parser);
}

void
ox_output_parser_finish (OxOutputParser *parser)
{
  ox_utf8_stream_finish (&parser->utf8, parser->arrived);
  take_arrived (parser);
  parser->is_final = TRUE;
  run (parser);
}
