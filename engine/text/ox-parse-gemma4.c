/* Gemma 4's output: <|channel>thought … <channel|> and <|tool_call>call:NAME{key:value,…}<tool_call|>, where a value is
 * <|"|>text<|"|>, JSON, or a list or object of these.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <string.h>

#include "text/ox-output-parser-private.h"

#define QUOTE "<|\"|>"

enum {
  CONTENT,
  HEADER, /* a thought's first word, "thought" */
  THOUGHT,
  CALL,
  ENDED,
};

void
ox_parser_start_gemma4 (OxOutputParser *parser, gboolean in_thinking)
{
  parser->state = in_thinking ? THOUGHT : CONTENT;
}

/* ---- A call's arguments, as JSON ---- */

typedef struct {
  const char *p, *end;
  GString *json;
} Arguments;

static void
skip_space (Arguments *arguments)
{
  while (arguments->p < arguments->end && ox_python_is_space (ox_utf8_get (arguments->p)))
    arguments->p = g_utf8_next_char (arguments->p);
}

static gboolean
take (Arguments *arguments, const char *text)
{
  gsize n = strlen (text);

  if ((gsize) (arguments->end - arguments->p) < n || memcmp (arguments->p, text, n) != 0)
    return FALSE;
  arguments->p += n;
  return TRUE;
}

/* A text between <|"|> marks, in which nothing is escaped; the first mark has been taken. */
static gboolean
take_marked (Arguments *arguments)
{
  const char *end = memmem (arguments->p, (gsize) (arguments->end - arguments->p), QUOTE, strlen (QUOTE));

  if (!end)
    return FALSE;
  ox_value_append_json_string (arguments->json, arguments->p, (gsize) (end - arguments->p));
  arguments->p = end + strlen (QUOTE);
  return TRUE;
}

/* A JSON string, copied as it is: whoever reads the JSON checks it. */
static gboolean
take_json_string (Arguments *arguments)
{
  const char *p = arguments->p + 1;

  while (p < arguments->end && *p != '"')
    p += *p == '\\' ? 2 : 1;
  if (p >= arguments->end)
    return FALSE;
  g_string_append_len (arguments->json, arguments->p, p + 1 - arguments->p);
  arguments->p = p + 1;
  return TRUE;
}

static gboolean
take_key (Arguments *arguments)
{
  const char *begin = arguments->p;
  gsize first = 0, last;

  if (take (arguments, QUOTE))
    return take_marked (arguments);
  if (begin < arguments->end && *begin == '"')
    return take_json_string (arguments);
  while (arguments->p < arguments->end && !strchr (":,{}[]\"<", *arguments->p))
    arguments->p++;
  last = (gsize) (arguments->p - begin);
  ox_python_trim (begin, &first, &last);
  ox_value_append_json_string (arguments->json, begin + first, last - first);
  return first < last;
}

static gboolean take_value (Arguments *arguments, guint depth);

/* "key:value,…}"; the opening brace has been taken. */
static gboolean
take_object (Arguments *arguments, guint depth)
{
  g_string_append_c (arguments->json, '{');
  skip_space (arguments);
  if (!take (arguments, "}")) {
    do {
      skip_space (arguments);
      if (!take_key (arguments))
        return FALSE;
      skip_space (arguments);
      if (!take (arguments, ":"))
        return FALSE;
      g_string_append_c (arguments->json, ':');
      if (!take_value (arguments, depth + 1))
        return FALSE;
      if (arguments->p < arguments->end && *arguments->p == ',')
        g_string_append_c (arguments->json, ',');
    } while (take (arguments, ","));
    if (!take (arguments, "}"))
      return FALSE;
  }
  g_string_append_c (arguments->json, '}');
  return TRUE;
}

static gboolean
take_list (Arguments *arguments, guint depth)
{
  g_string_append_c (arguments->json, '[');
  skip_space (arguments);
  if (!take (arguments, "]")) {
    do {
      if (!take_value (arguments, depth + 1))
        return FALSE;
      if (arguments->p < arguments->end && *arguments->p == ',')
        g_string_append_c (arguments->json, ',');
    } while (take (arguments, ","));
    if (!take (arguments, "]"))
      return FALSE;
  }
  g_string_append_c (arguments->json, ']');
  return TRUE;
}

/* A value with white space around it. */
static gboolean
take_value (Arguments *arguments, guint depth)
{
  gboolean done;

  if (depth > OX_VALUE_MAX_DEPTH)
    return FALSE;
  skip_space (arguments);
  if (take (arguments, QUOTE)) {
    done = take_marked (arguments);
  } else if (take (arguments, "{")) {
    done = take_object (arguments, depth);
  } else if (take (arguments, "[")) {
    done = take_list (arguments, depth);
  } else if (arguments->p < arguments->end && *arguments->p == '"') {
    done = take_json_string (arguments);
  } else {
    const char *begin = arguments->p;

    /* A number, true, false or null; whoever reads the JSON checks it. */
    while (arguments->p < arguments->end && (g_ascii_isalnum (*arguments->p) || strchr ("+-.", *arguments->p)))
      arguments->p++;
    g_string_append_len (arguments->json, begin, arguments->p - begin);
    done = arguments->p > begin;
  }
  skip_space (arguments);
  return done;
}

/* Tells the call that ends at @end. */
static void
finish_call (OxOutputParser *parser, gsize end)
{
  g_autoptr (GString) json = g_string_new (NULL);
  Arguments arguments = { parser->buffer->str + parser->at, parser->buffer->str + end, json };
  const char *begin;
  gsize first = 0, last;

  skip_space (&arguments);
  if (take (&arguments, "call:")) {
    begin = arguments.p;
    while (arguments.p < arguments.end && !strchr ("{}()[]<>\"',:", *arguments.p))
      arguments.p++;
    last = (gsize) (arguments.p - begin);
    ox_python_trim (begin, &first, &last);
    if (first < last && take (&arguments, "{") && take_object (&arguments, 1)) {
      g_autofree char *name = g_strndup (begin + first, last - first);

      skip_space (&arguments);
      if (arguments.p == arguments.end && ox_parser_tell_call (parser, name, json->str, json->len))
        return;
    }
  }
  ox_parser_tell_malformed (parser, end);
}

/* ---- The text ---- */

static const char *const content_tags[] = { "<|channel>", "<|tool_call>", "<channel|>",      "<tool_call|>",
                                            "<turn|>",    "<eos>",        "<|tool_response>" };
static const char *const thought_tags[] = { "<|channel>", "<channel|>", "<|tool_call>",
                                            "<turn|>",    "<eos>",      "<|tool_response>" };
static const char *const call_tags[] = { QUOTE, "<tool_call|>", "<turn|>", "<eos>", "<|tool_response>" };

/* The text is over within a string: the call ends at the first mark that could end it, string or not. */
static void
give_up_call (OxOutputParser *parser)
{
  /* What follows a call is read again; not so when that has happened too often. */
  gsize skipped = parser->rewinds++ < OX_PARSER_MAX_REWINDS ? 1 : 2;
  int tag;

  parser->scan = parser->at;
  tag = ox_parser_find (parser, call_tags + skipped, G_N_ELEMENTS (call_tags) - skipped);
  ox_parser_tell_malformed (parser, parser->scan);
  if (skipped == 1 && tag == 0)
    ox_parser_go (parser, parser->scan + strlen (call_tags[1]), CONTENT);
  else
    ox_parser_go (parser, parser->buffer->len, ENDED);
}

/* FALSE: more has to come. */
static gboolean
step_call (OxOutputParser *parser)
{
  for (;;) {
    int tag = ox_parser_find (parser, call_tags, parser->in_string ? 1 : G_N_ELEMENTS (call_tags));

    if (tag == 0) {
      parser->in_string = !parser->in_string;
      parser->scan += strlen (QUOTE);
    } else if (tag > 0) {
      finish_call (parser, parser->scan);
      ox_parser_go (parser, parser->scan + strlen (call_tags[tag]), tag == 1 ? CONTENT : ENDED);
      return TRUE;
    } else if (!parser->is_final) {
      return FALSE;
    } else if (parser->in_string) {
      give_up_call (parser);
      return TRUE;
    } else {
      finish_call (parser, parser->buffer->len);
      ox_parser_go (parser, parser->buffer->len, ENDED);
      return TRUE;
    }
  }
}

/* FALSE: more has to come. */
static gboolean
step_header (OxOutputParser *parser)
{
  static const char *const words[] = { "thought" };
  int word = ox_parser_match (parser, parser->at, words, 1);

  if (word == OX_TAG_MORE)
    return FALSE;
  ox_parser_go (parser, parser->at + (word == 0 ? strlen (words[0]) : 0), THOUGHT);
  return TRUE;
}

/* Goes on behind @tag. */
static void
step_tag (OxOutputParser *parser, const char *tag)
{
  gboolean in_thought = parser->state == THOUGHT;

  /* Ends without a beginning are dropped. */
  if (!in_thought && (strcmp (tag, "<channel|>") == 0 || strcmp (tag, "<tool_call|>") == 0))
    return;
  ox_parser_end_segment (parser);
  parser->in_string = FALSE;
  if (strcmp (tag, "<|channel>") == 0)
    parser->state = HEADER;
  else if (strcmp (tag, "<|tool_call>") == 0)
    parser->state = CALL;
  else
    parser->state = strcmp (tag, "<channel|>") == 0 ? CONTENT : ENDED;
}

void
ox_parser_run_gemma4 (OxOutputParser *parser)
{
  for (;;) {
    int tag;

    switch (parser->state) {
    case CONTENT:
      tag = ox_parser_next_tag (parser, OX_OUTPUT_TEXT, content_tags, G_N_ELEMENTS (content_tags));
      if (tag < 0)
        return;
      step_tag (parser, content_tags[tag]);
      break;
    case THOUGHT:
      tag = ox_parser_next_tag (parser, OX_OUTPUT_THINKING, thought_tags, G_N_ELEMENTS (thought_tags));
      if (tag < 0)
        return;
      step_tag (parser, thought_tags[tag]);
      break;
    case HEADER:
      if (!step_header (parser))
        return;
      break;
    case CALL:
      if (!step_call (parser))
        return;
      break;
    default:
      ox_parser_go (parser, parser->buffer->len, ENDED);
      return;
    }
  }
}
