/* Gemma 4's chat format, template of July 2026. A turn of the model holds its thoughts, calls, their results and its text; it goes on
 * until the user's next message. The large models (12B and up) begin an answer without thinking with an empty thought.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <string.h>

#include "text/ox-chat-render.h"

typedef enum {
  LAST_OTHER,
  LAST_CALL,
  LAST_RESPONSE,
} Last;

static gboolean
is_role (const OxMessage *message, const char *role)
{
  return strcmp (message->role_name, role) == 0;
}

/* ---- Content ---- */

/* Without thoughts that stand in the text. */
static char *
strip_thoughts (const char *text)
{
  static const char open[] = "<|channel>", close[] = "<channel|>";
  GString *rest = g_string_new (NULL);

  while (text) {
    const char *end = strstr (text, close);
    gsize len = end ? (gsize) (end - text) : strlen (text);
    const char *thought = g_strstr_len (text, (gssize) len, open);

    g_string_append_len (rest, text, thought ? thought - text : (gssize) len);
    text = end ? end + strlen (close) : NULL;
  }
  return g_string_free (rest, FALSE);
}

static void
add_text (OxRichText *rich, const char *text, gboolean is_model)
{
  g_autofree char *stripped = is_model ? strip_thoughts (text) : NULL;
  const char *kept = stripped ? stripped : text;
  gsize begin = 0, end = strlen (kept);

  ox_python_trim (kept, &begin, &end);
  g_string_append_len (rich->text, kept + begin, (gssize) (end - begin));
}

static void
add_placeholder (OxRichText *rich, const OxPart *part)
{
  if (part->kind == OX_PART_IMAGE)
    ox_rich_text_add_mark (rich, "<|image|>");
  else if (part->kind == OX_PART_AUDIO)
    ox_rich_text_add_mark (rich, "<|audio|>");
  else if (part->kind == OX_PART_VIDEO)
    ox_rich_text_add_mark (rich, "<|video|>");
}

static OxRichText *
read_content (const OxMessage *message)
{
  gboolean is_model = message->role == OX_ROLE_ASSISTANT;
  OxRichText *rich = ox_rich_text_new ();

  if (message->content == OX_CONTENT_TEXT)
    add_text (rich, message->text, is_model);
  for (guint i = 0; message->content == OX_CONTENT_PARTS && i < message->parts->len; i++) {
    const OxPart *part = &g_array_index (message->parts, OxPart, i);

    if (part->kind == OX_PART_TEXT)
      add_text (rich, part->text, is_model);
    else
      add_placeholder (rich, part);
  }
  return rich;
}

static gboolean
has_text (const OxRichText *rich)
{
  gsize begin = 0, end = rich->text->len;

  ox_python_trim (rich->text->str, &begin, &end);
  return begin < end;
}

/* ---- The system turn ---- */

/* Whether the first message belongs to it. */
static gboolean
render_system (OxRenderer *renderer)
{
  const OxMessage *first = renderer->n_messages > 0 ? ox_render_message (renderer, 0) : NULL;
  gboolean thinks = renderer->chat->thinking == OX_THINKING_ON;
  const GPtrArray *tools = renderer->chat->tools;

  if (first && first->role != OX_ROLE_SYSTEM)
    first = NULL;
  if (!first && !thinks && tools->len == 0)
    return FALSE;
  ox_render_control (renderer, thinks ? "<|turn>system\n<|think|>\n" : "<|turn>system\n");
  if (first && first->content == OX_CONTENT_TEXT)
    ox_render_trimmed (renderer, first->text);
  for (guint i = 0; first && first->content == OX_CONTENT_PARTS && i < first->parts->len; i++) {
    const OxPart *part = &g_array_index (first->parts, OxPart, i);

    ox_render_trimmed (renderer, part->text ? part->text : "");
    ox_render_control (renderer, " ");
  }
  for (guint i = 0; i < tools->len; i++)
    ox_gemma4_render_declaration (renderer, ox_value_get_root (g_ptr_array_index (tools, i)));
  ox_render_control (renderer, "<turn|>\n");
  return first != NULL;
}

/* ---- Results ---- */

/* The tool that the @n-th result after @message answers. */
static const char *
tool_name (const OxMessage *message, const OxMessage *result, guint n)
{
  const char *name = result->tool_name ? result->tool_name : "unknown";

  if (!result->tool_call_id && !result->tool_name && n < message->tool_calls->len)
    return g_array_index (message->tool_calls, OxToolCall, n).name;
  for (guint i = 0; result->tool_call_id && i < message->tool_calls->len; i++) {
    const OxToolCall *call = &g_array_index (message->tool_calls, OxToolCall, i);

    if (g_strcmp0 (call->id, result->tool_call_id) == 0)
      name = call->name;
  }
  return name;
}

/* The results that stand within the message or follow it. FALSE: there are none. */
static gboolean
render_results (OxRenderer *renderer, guint index)
{
  const OxMessage *message = ox_render_message (renderer, index);
  gboolean found = FALSE;

  if (message->tool_responses) {
    yyjson_val *val;
    gsize i, max;

    ox_json_foreach_item (ox_value_get_root (message->tool_responses), i, max, val) {
      const char *name = yyjson_get_str (yyjson_obj_get (val, "name"));

      ox_gemma4_render_response (renderer, name && *name ? name : "unknown", yyjson_obj_get (val, "response"), NULL);
      found = TRUE;
    }
    return found;
  }
  for (guint i = index + 1; message->tool_calls && i < renderer->n_messages; i++) {
    const OxMessage *result = ox_render_message (renderer, i);

    if (result->role != OX_ROLE_TOOL)
      break;
    ox_gemma4_render_response (renderer, tool_name (message, result, i - index - 1), NULL,
                               result->content == OX_CONTENT_NONE ? NULL : result->text);
    for (guint k = 0; result->content == OX_CONTENT_PARTS && k < result->parts->len; k++) {
      g_autoptr (OxRichText) rich = ox_rich_text_new ();

      add_placeholder (rich, &g_array_index (result->parts, OxPart, k));
      ox_render_rich (renderer, rich, 0, rich->text->len);
    }
    found = TRUE;
  }
  return found;
}

/* ---- The conversation ---- */

typedef struct {
  int last_user;  /* index of the user's last message, -1: none */
  guint previous; /* index of the last message that was no result; n_messages: none */
  Last last;      /* what the prompt ends with so far */
} Turns;

static gboolean
shows_thought (const OxRenderer *renderer, guint index, const Turns *turns)
{
  const OxMessage *message = ox_render_message (renderer, index);

  return message->reasoning && *message->reasoning &&
         ((int) index > turns->last_user ||
          (renderer->chat->preserve_thinking == OX_THINKING_ON && message->tool_calls));
}

/* Index of the next message that is no result; n_messages: none. */
static guint
next_message (const OxRenderer *renderer, guint index)
{
  do
    index++;
  while (index < renderer->n_messages && ox_render_message (renderer, index)->role == OX_ROLE_TOOL);
  return index;
}

static void
render_message (OxRenderer *renderer, guint index, Turns *turns)
{
  const OxMessage *message = ox_render_message (renderer, index);
  gboolean is_model = message->role == OX_ROLE_ASSISTANT, stays_open = ox_render_stays_open (renderer, index);
  gboolean has_results, has_content, shows = shows_thought (renderer, index, turns);
  guint next = next_message (renderer, index);
  g_autoptr (OxRichText) content = read_content (message);

  if (!is_model || turns->previous >= renderer->n_messages ||
      ox_render_message (renderer, turns->previous)->role != OX_ROLE_ASSISTANT) {
    ox_render_control (renderer, "<|turn>");
    ox_render_string (renderer, is_model ? "model" : message->role_name);
    ox_render_control (renderer, "\n");
    /* An answer that goes on stands as it was begun. */
    if (stays_open && !shows && renderer->format->variant == OX_GEMMA4_LARGE &&
        renderer->chat->thinking != OX_THINKING_ON)
      ox_render_control (renderer, "<|channel>thought\n<channel|>");
  }
  has_content = has_text (content);
  if (shows) {
    ox_render_control (renderer, "<|channel>thought\n");
    ox_render_string (renderer, message->reasoning);
    if (stays_open && !has_content && !message->tool_calls) {
      renderer->prompt->in_thinking = TRUE;
      return;
    }
    ox_render_control (renderer, "\n<channel|>");
  }
  turns->last = LAST_OTHER;
  for (guint i = 0; message->tool_calls && i < message->tool_calls->len; i++) {
    ox_gemma4_render_call (renderer, &g_array_index (message->tool_calls, OxToolCall, i));
    turns->last = LAST_CALL;
  }
  has_results = render_results (renderer, index);
  if (has_results)
    turns->last = LAST_RESPONSE;
  ox_render_rich (renderer, content, 0, content->text->len);

  if (stays_open)
    ;
  else if (turns->last == LAST_CALL)
    ox_render_control (renderer, "<|tool_response>");
  else if (is_model && next < renderer->n_messages && ox_render_message (renderer, next)->role == OX_ROLE_ASSISTANT)
    ;
  else if (!has_results || has_content || next < renderer->n_messages)
    ox_render_control (renderer, "<turn|>\n");
  turns->previous = index;
}

gboolean
ox_render_gemma4 (OxRenderer *renderer, GError **error)
{
  gboolean thinks = renderer->chat->thinking == OX_THINKING_ON;
  Turns turns = { -1, renderer->n_messages, LAST_OTHER };
  guint first;

  for (guint i = 0; i < renderer->n_messages; i++) {
    if (ox_render_message (renderer, i)->content == OX_CONTENT_OTHER)
      return ox_render_refuse (error, "A message's content is neither a text nor a list of parts");
  }
  ox_render_bos (renderer);
  first = render_system (renderer) ? 1 : 0;
  for (guint i = first; i < renderer->n_messages; i++) {
    if (is_role (ox_render_message (renderer, i), "user"))
      turns.last_user = (int) i;
  }
  for (guint i = first; i < renderer->n_messages; i++) {
    if (ox_render_message (renderer, i)->role != OX_ROLE_TOOL)
      render_message (renderer, i, &turns);
  }
  if (!ox_render_wants_answer (renderer))
    return TRUE;
  if (turns.last == LAST_OTHER) {
    ox_render_control (renderer, renderer->format->variant == OX_GEMMA4_LARGE && !thinks
                                   ? "<|turn>model\n<|channel>thought\n<channel|>"
                                   : "<|turn>model\n");
  } else if (turns.last == LAST_RESPONSE && thinks) {
    ox_render_control (renderer, "<|channel>thought\n");
    renderer->prompt->in_thinking = TRUE;
  }
  return TRUE;
}
