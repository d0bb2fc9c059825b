/* The output of Qwen 3 and later: <think> … </think>, and calls within <tool_call> … </tool_call>, as JSON {"name", "arguments"} or as
 * <function=NAME> with <parameter=KEY> … </parameter> in it, whose values are texts that the tool's schema gives a type.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <math.h>
#include <string.h>

#include "text/ox-output-parser-private.h"

enum {
  BEGIN,         /* nothing but white space so far */
  BEGIN_THOUGHT, /* likewise, within a thought */
  THOUGHT,
  CONTENT,
  OPEN,     /* behind <tool_call> */
  NAME,     /* behind <function= */
  BODY,     /* behind <function=NAME> */
  KEY,      /* behind <parameter= */
  VALUE,    /* behind <parameter=KEY> */
  CLOSED,   /* behind a </parameter> that may be part of the value */
  FINISHED, /* behind </function>: the call is told */
  JSON,
  BROKEN, /* up to </tool_call> */
  ENDED,
};

static const char *const think_tag[] = { "<think>" };
static const char *const function_tag[] = { "<function=" };
static const char *const close_value_tag[] = { "</parameter>" };
static const char *const close_call_tags[] = { "</tool_call>", "<|im_end|>", "<|endoftext|>" };
static const char *const content_tags[] = { "<tool_call>", "<|im_end|>", "<|endoftext|>" };
static const char *const thought_tags[] = { "</think>", "<tool_call>", "<|im_end|>", "<|endoftext|>" };
static const char *const body_tags[] = { "<parameter=", "</function>", "</tool_call>", "<|im_end|>", "<|endoftext|>" };

void
ox_parser_start_qwen (OxOutputParser *parser, gboolean in_thinking)
{
  parser->state = in_thinking ? BEGIN_THOUGHT : BEGIN;
}

/* ---- Values by the tool's schema ---- */

typedef enum {
  TYPE_BOOLEAN = 1 << 0,
  TYPE_INTEGER = 1 << 1,
  TYPE_NUMBER = 1 << 2,
  TYPE_ARRAY = 1 << 3,
  TYPE_OBJECT = 1 << 4,
  TYPE_STRING = 1 << 5,
} Types;

static Types
type_named (yyjson_val *name)
{
  static const char *const names[] = { "boolean", "integer", "number", "array", "object", "string" };

  for (gsize i = 0; i < G_N_ELEMENTS (names); i++) {
    if (yyjson_equals_str (name, names[i]))
      return 1u << i;
  }
  return 0;
}

/* "type" is a name or a list of names. */
static Types
types_of (yyjson_val *schema)
{
  yyjson_val *type = yyjson_obj_get (schema, "type"), *val;
  Types types = type_named (type);
  gsize i, max;

  ox_json_foreach_item (type, i, max, val) {
    types |= type_named (val);
  }
  return types;
}

static Types
parameter_types (const OxOutputParser *parser)
{
  for (guint i = 0; parser->chat && i < parser->chat->tools->len; i++) {
    yyjson_val *function = yyjson_obj_get (ox_value_get_root (g_ptr_array_index (parser->chat->tools, i)), "function");
    yyjson_val *properties, *schema, *val;
    Types types;
    gsize k, max;

    if (!yyjson_equals_strn (yyjson_obj_get (function, "name"), parser->name->str, parser->name->len))
      continue;
    properties = yyjson_obj_get (yyjson_obj_get (function, "parameters"), "properties");
    schema = yyjson_obj_getn (properties, parser->key->str, parser->key->len);
    types = types_of (schema);
    ox_json_foreach_item (yyjson_obj_get (schema, "anyOf"), k, max, val) {
      types |= types_of (val);
    }
    return types;
  }
  return 0;
}

/* Digits with a sign that fit in 64 bits. */
static gboolean
append_integer (GString *json, const char *text)
{
  const char *digits = text + (*text == '-' || *text == '+');
  guint64 number;

  if (!g_ascii_isdigit (*digits) || digits[strspn (digits, "0123456789")] != '\0' ||
      !g_ascii_string_to_unsigned (digits, 10, 0, (guint64) G_MAXINT64 + (*text == '-'), &number, NULL))
    return FALSE;
  g_string_append_printf (json, "%s%" G_GUINT64_FORMAT, *text == '-' && number > 0 ? "-" : "", number);
  return TRUE;
}

/* A finite number; one without a fraction becomes an integer. */
static gboolean
append_number (GString *json, const char *text)
{
  char *end;
  double number;

  if (text[strspn (text, "0123456789+-.eE")] != '\0')
    return FALSE;
  number = g_ascii_strtod (text, &end);
  if (end == text || *end != '\0' || !isfinite (number))
    return FALSE;
  if (number == floor (number) && fabs (number) < 9.2e18)
    g_string_append_printf (json, "%" G_GINT64_FORMAT, (gint64) number);
  else
    ox_value_append_double (json, number);
  return TRUE;
}

static gboolean
append_container (GString *json, const char *text, Types types)
{
  g_autoptr (OxValue) value = NULL;
  yyjson_val *root;

  if (!(types & (TYPE_ARRAY | TYPE_OBJECT)))
    return FALSE;
  value = ox_value_parse (text, strlen (text), "value", NULL);
  root = value ? ox_value_get_root (value) : NULL;
  if (!(yyjson_is_arr (root) && (types & TYPE_ARRAY)) && !(yyjson_is_obj (root) && (types & TYPE_OBJECT)))
    return FALSE;
  if (!ox_value_is_finite (root))
    return FALSE;
  ox_value_append_json (json, root);
  return TRUE;
}

/* The value that stands between value_begin and value_end, as a member of the arguments. */
static void
add_member (OxOutputParser *parser)
{
  const char *begin = parser->buffer->str + parser->value_begin, *end = parser->buffer->str + parser->value_end;
  Types types = parameter_types (parser);
  GString *json = parser->members;
  g_autofree char *text = NULL;

  if (begin < end && *begin == '\n')
    begin++;
  if (begin < end && end[-1] == '\n')
    end--;
  text = g_strndup (begin, (gsize) (end - begin));
  g_string_append (json, json->len > 0 ? ", " : "");
  ox_value_append_json_string (json, parser->key->str, parser->key->len);
  g_string_append (json, ": ");
  if (g_ascii_strcasecmp (text, "null") == 0) {
    g_string_append (json, "null");
    return;
  }
  if (types & TYPE_BOOLEAN) {
    gboolean is_true = g_ascii_strcasecmp (text, "true") == 0;

    if (is_true || types == TYPE_BOOLEAN || g_ascii_strcasecmp (text, "false") == 0) {
      g_string_append (json, is_true ? "true" : "false");
      return;
    }
  }
  if (!((types & TYPE_INTEGER) && append_integer (json, text)) &&
      !((types & TYPE_NUMBER) && append_number (json, text)) && !append_container (json, text, types))
    ox_value_append_json_string (json, text, strlen (text));
}

/* ---- Calls ---- */

static void
tell_function (OxOutputParser *parser)
{
  g_autofree char *arguments = g_strconcat ("{", parser->members->str, "}", NULL);

  ox_parser_tell_call (parser, parser->name->str, arguments, strlen (arguments));
}

/* Up to the first mark that ends a call, from the call's beginning unless that has happened too often. */
static gboolean
break_call (OxOutputParser *parser)
{
  if (parser->rewinds++ < OX_PARSER_MAX_REWINDS)
    parser->scan = parser->at;
  parser->state = BROKEN;
  return TRUE;
}

/* Name or key up to ">", into @word. */
static gboolean
step_word (OxOutputParser *parser, GString *word, int next_state)
{
  const char *text = parser->buffer->str;

  while (parser->scan < parser->buffer->len && !strchr (">\n<", text[parser->scan]))
    g_string_append_c (word, text[parser->scan++]);
  if (parser->scan == parser->buffer->len)
    return parser->is_final ? break_call (parser) : FALSE;
  if (text[parser->scan] != '>' || word->len == 0)
    return break_call (parser);
  parser->scan++;
  parser->value_begin = parser->scan;
  parser->state = next_state;
  return TRUE;
}

static gboolean
step_open (OxOutputParser *parser)
{
  int tag;

  ox_parser_skip_space (parser);
  if (parser->scan == parser->buffer->len)
    return parser->is_final ? break_call (parser) : FALSE;
  g_string_truncate (parser->name, 0);
  g_string_truncate (parser->members, 0);
  if (parser->buffer->str[parser->scan] == '{') {
    parser->state = JSON;
    return TRUE;
  }
  tag = ox_parser_match (parser, parser->scan, function_tag, 1);
  if (tag == OX_TAG_MORE)
    return FALSE;
  if (tag == OX_TAG_NONE)
    return break_call (parser);
  parser->scan += strlen (function_tag[0]);
  parser->state = NAME;
  return TRUE;
}

/* Goes on at tag number @tag of body_tags, where scan is. */
static gboolean
step_body_tag (OxOutputParser *parser, int tag)
{
  gsize behind = parser->scan + strlen (body_tags[tag]);

  if (tag == 0) {
    parser->scan = behind;
    g_string_truncate (parser->key, 0);
    parser->state = KEY;
  } else {
    tell_function (parser);
    ox_parser_go (parser, behind, tag == 1 ? FINISHED : tag == 2 ? CONTENT : ENDED);
  }
  return TRUE;
}

static gboolean
step_body (OxOutputParser *parser)
{
  int tag = ox_parser_find (parser, body_tags, G_N_ELEMENTS (body_tags));

  if (tag >= 0)
    return step_body_tag (parser, tag);
  if (!parser->is_final)
    return FALSE;
  /* A call without arguments may lack its end; not so one that breaks off within something. */
  parser->scan = parser->value_begin;
  ox_parser_skip_space (parser);
  if (parser->scan < parser->buffer->len)
    return break_call (parser);
  tell_function (parser);
  ox_parser_go (parser, parser->buffer->len, ENDED);
  return TRUE;
}

static gboolean
step_value (OxOutputParser *parser)
{
  if (ox_parser_find (parser, close_value_tag, 1) < 0)
    return parser->is_final ? break_call (parser) : FALSE;
  parser->value_end = parser->scan;
  parser->scan += strlen (close_value_tag[0]);
  parser->state = CLOSED;
  return TRUE;
}

/* Whether what comes behind </parameter> says that the value is over. */
static gboolean
step_closed (OxOutputParser *parser)
{
  int tag;

  ox_parser_skip_space (parser);
  if (parser->scan == parser->buffer->len) {
    if (!parser->is_final)
      return FALSE;
    add_member (parser);
    tell_function (parser);
    ox_parser_go (parser, parser->buffer->len, ENDED);
    return TRUE;
  }
  tag = ox_parser_match (parser, parser->scan, body_tags, G_N_ELEMENTS (body_tags));
  if (tag == OX_TAG_MORE)
    return FALSE;
  if (tag == OX_TAG_NONE) {
    parser->state = VALUE;
    return TRUE;
  }
  add_member (parser);
  return step_body_tag (parser, tag);
}

static gboolean
step_finished (OxOutputParser *parser)
{
  int tag;

  ox_parser_skip_space (parser);
  parser->at = parser->scan;
  if (parser->scan == parser->buffer->len)
    return FALSE;
  tag = ox_parser_match (parser, parser->scan, close_call_tags, 1);
  if (tag == OX_TAG_MORE)
    return FALSE;
  ox_parser_go (parser, parser->scan + (tag == 0 ? strlen (close_call_tags[0]) : 0), CONTENT);
  return TRUE;
}

/* {"name": …, "arguments": {…}}, where the arguments may be absent or a string that holds JSON. */
static gboolean
tell_json (OxOutputParser *parser, gsize end)
{
  g_autoptr (OxValue) value = ox_value_parse (parser->buffer->str + parser->at, end - parser->at, "call", NULL);
  yyjson_val *root = value ? ox_value_get_root (value) : NULL, *arguments = yyjson_obj_get (root, "arguments");
  const char *name = yyjson_get_str (yyjson_obj_get (root, "name"));
  g_autoptr (GString) json = g_string_new (NULL);

  if (!name || *name == '\0')
    return FALSE;
  if (!arguments)
    return ox_parser_tell_call (parser, name, "{}", 2);
  if (yyjson_is_str (arguments))
    return ox_parser_tell_call (parser, name, yyjson_get_str (arguments), yyjson_get_len (arguments));
  ox_value_append_json (json, arguments);
  return ox_parser_tell_call (parser, name, json->str, json->len);
}

/* A call that ends at the first mark: JSON, or one that cannot be read. */
static gboolean
step_to_end (OxOutputParser *parser)
{
  int tag = ox_parser_find (parser, close_call_tags, G_N_ELEMENTS (close_call_tags));

  if (tag < 0 && !parser->is_final)
    return FALSE;
  if (parser->state != JSON || !tell_json (parser, parser->scan))
    ox_parser_tell_malformed (parser, parser->scan);
  if (tag < 0)
    ox_parser_go (parser, parser->buffer->len, ENDED);
  else
    ox_parser_go (parser, parser->scan + strlen (close_call_tags[tag]), tag == 0 ? CONTENT : ENDED);
  return TRUE;
}

/* ---- The text ---- */

static gboolean
step_begin (OxOutputParser *parser)
{
  gboolean in_thought = parser->state == BEGIN_THOUGHT;
  int tag;

  ox_parser_skip_space (parser);
  parser->at = parser->scan;
  if (parser->scan == parser->buffer->len)
    return FALSE;
  tag = ox_parser_match (parser, parser->scan, think_tag, 1);
  if (tag == OX_TAG_MORE)
    return FALSE;
  ox_parser_go (parser, parser->scan + (tag == 0 ? strlen (think_tag[0]) : 0),
                in_thought || tag == 0 ? THOUGHT : CONTENT);
  return TRUE;
}

static gboolean
step_text (OxOutputParser *parser)
{
  gboolean in_thought = parser->state == THOUGHT;
  const char *const *tags = in_thought ? thought_tags : content_tags;
  int tag = ox_parser_next_tag (parser, in_thought ? OX_OUTPUT_THINKING : OX_OUTPUT_TEXT, tags,
                                in_thought ? G_N_ELEMENTS (thought_tags) : G_N_ELEMENTS (content_tags));

  if (tag < 0)
    return FALSE;
  ox_parser_end_segment (parser);
  if (strcmp (tags[tag], "</think>") == 0)
    parser->state = CONTENT;
  else
    parser->state = strcmp (tags[tag], "<tool_call>") == 0 ? OPEN : ENDED;
  return TRUE;
}

/* FALSE: more has to come. */
static gboolean
step (OxOutputParser *parser)
{
  switch (parser->state) {
  case BEGIN:
  case BEGIN_THOUGHT:
    return step_begin (parser);
  case THOUGHT:
  case CONTENT:
    return step_text (parser);
  case OPEN:
    return step_open (parser);
  case NAME:
    return step_word (parser, parser->name, BODY);
  case BODY:
    return step_body (parser);
  case KEY:
    return step_word (parser, parser->key, VALUE);
  case VALUE:
    return step_value (parser);
  case CLOSED:
    return step_closed (parser);
  case FINISHED:
    return step_finished (parser);
  case JSON:
  case BROKEN:
    return step_to_end (parser);
  default:
    ox_parser_go (parser, parser->buffer->len, ENDED);
    return FALSE;
  }
}

void
ox_parser_run_qwen (OxOutputParser *parser)
{
  while (step (parser))
    ;
}
