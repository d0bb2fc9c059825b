/* Qwen 3's chat format (April 2025): ChatML with thinking and calls as JSON. The template takes texts only. The models that were made
 * for thinking alone (QwQ, Qwen 3 Thinking 2507) have the thought opened by the prompt.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <string.h>

#include "text/ox-chat-render.h"

static const char tools_head[] = "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
                                 "You are provided with function signatures within <tools></tools> XML tags:\n<tools>";
static const char tools_tail[] = "\n</tools>\n\nFor each function call, return a json object with function name and "
                                 "arguments within <tool_call></tool_call> XML tags:\n<tool_call>\n"
                                 "{\"name\": <function-name>, \"arguments\": <args-json-object>}\n</tool_call>";

static gboolean
is_role (const OxMessage *message, const char *role)
{
  return strcmp (message->role_name, role) == 0;
}

static void
render_json (OxRenderer *renderer, yyjson_val *val)
{
  g_autoptr (GString) json = g_string_new (NULL);

  ox_value_append_json (json, val);
  ox_render_text (renderer, json->str, json->len);
}

static void
render_system (OxRenderer *renderer)
{
  const OxMessage *system =
    is_role (ox_render_message (renderer, 0), "system") ? ox_render_message (renderer, 0) : NULL;
  const GPtrArray *tools = renderer->chat->tools;

  if (!system && tools->len == 0)
    return;
  ox_render_control (renderer, "<|im_start|>system\n");
  if (system)
    ox_render_string (renderer, system->text);
  if (tools->len > 0) {
    ox_render_control (renderer, system ? "\n\n" : "");
    ox_render_control (renderer, tools_head);
    for (guint i = 0; i < tools->len; i++) {
      ox_render_control (renderer, "\n");
      render_json (renderer, ox_value_get_root (g_ptr_array_index (tools, i)));
    }
    ox_render_control (renderer, tools_tail);
  }
  ox_render_control (renderer, "<|im_end|>\n");
}

/* Index of the last question: tool results come as messages of the user and do not count. */
static guint
last_query (const OxRenderer *renderer)
{
  for (guint i = renderer->n_messages; i-- > 0;) {
    const OxMessage *message = ox_render_message (renderer, i);

    if (is_role (message, "user") &&
        !(g_str_has_prefix (message->text, "<tool_response>") && g_str_has_suffix (message->text, "</tool_response>")))
      return i;
  }
  return renderer->n_messages - 1;
}

static void
strip_newlines (const char **text, gsize *len)
{
  while (*len > 0 && **text == '\n') {
    (*text)++;
    (*len)--;
  }
  while (*len > 0 && (*text)[*len - 1] == '\n')
    (*len)--;
}

static void
render_calls (OxRenderer *renderer, const OxMessage *message, gboolean has_content)
{
  for (guint i = 0; message->tool_calls && i < message->tool_calls->len; i++) {
    const OxToolCall *call = &g_array_index (message->tool_calls, OxToolCall, i);

    ox_render_control (renderer, i > 0 || has_content ? "\n<tool_call>\n{\"name\": \"" : "<tool_call>\n{\"name\": \"");
    ox_render_string (renderer, call->name);
    ox_render_control (renderer, "\", \"arguments\": ");
    render_json (renderer, ox_value_get_root (call->arguments));
    ox_render_control (renderer, "}\n</tool_call>");
  }
}

/* Reasoning of earlier turns is left out; that of the turn at work is kept in its block. */
static void
render_answer (OxRenderer *renderer, guint index, gboolean is_current)
{
  static const char open[] = "<think>", close[] = "</think>";
  const OxMessage *message = ox_render_message (renderer, index);
  gboolean stays_open = ox_render_stays_open (renderer, index);
  const char *content = message->text, *reasoning = message->reasoning ? message->reasoning : "", *mark;
  gsize n_reasoning = strlen (reasoning);

  ox_render_control (renderer, "<|im_start|>assistant\n");
  mark = message->reasoning ? NULL : strstr (content, close);
  if (mark) {
    reasoning = content;
    n_reasoning = (gsize) (mark - content);
    while ((mark = g_strstr_len (reasoning, (gssize) n_reasoning, open))) {
      n_reasoning -= (gsize) (mark - reasoning) + strlen (open);
      reasoning = mark + strlen (open);
    }
    for (mark = strstr (content, close); mark; mark = strstr (content, close))
      content = mark + strlen (close);
    content += strspn (content, "\n");
  }
  if (is_current && (ox_render_is_last (renderer, index) || n_reasoning > 0)) {
    strip_newlines (&reasoning, &n_reasoning);
    ox_render_control (renderer, "<think>\n");
    ox_render_text (renderer, reasoning, n_reasoning);
    if (stays_open && n_reasoning > 0 && *content == '\0' && !message->tool_calls) {
      renderer->prompt->in_thinking = TRUE;
      return;
    }
    ox_render_control (renderer, "\n</think>\n\n");
    content += strspn (content, "\n");
  }
  ox_render_string (renderer, content);
  render_calls (renderer, message, *content != '\0');
  if (!stays_open)
    ox_render_control (renderer, "<|im_end|>\n");
}

static void
render_result (OxRenderer *renderer, guint index)
{
  const OxMessage *message = ox_render_message (renderer, index);

  if (index == 0 || !is_role (ox_render_message (renderer, index - 1), "tool"))
    ox_render_control (renderer, "<|im_start|>user");
  ox_render_control (renderer, "\n<tool_response>\n");
  /* The template prints lists and objects as Python does. */
  if (message->other) {
    g_autoptr (GString) text = g_string_new (NULL);

    ox_value_append_python (text, ox_value_get_root (message->other));
    ox_render_text (renderer, text->str, text->len);
  } else {
    ox_render_string (renderer, message->text);
  }
  ox_render_control (renderer, "\n</tool_response>");
  if (ox_render_is_last (renderer, index) || !is_role (ox_render_message (renderer, index + 1), "tool"))
    ox_render_control (renderer, "<|im_end|>\n");
}

gboolean
ox_render_qwen3 (OxRenderer *renderer, GError **error)
{
  guint query = last_query (renderer);

  for (guint i = 0; i < renderer->n_messages; i++) {
    const OxMessage *message = ox_render_message (renderer, i);

    if (!is_role (message, "tool") && message->content != OX_CONTENT_TEXT)
      return ox_render_refuse (error, "This model's chat format takes texts only: a message is none");
  }
  render_system (renderer);
  for (guint i = 0; i < renderer->n_messages; i++) {
    const OxMessage *message = ox_render_message (renderer, i);

    if (is_role (message, "user") || (is_role (message, "system") && i > 0)) {
      ox_render_control (renderer, "<|im_start|>");
      ox_render_control (renderer, message->role_name);
      ox_render_control (renderer, "\n");
      ox_render_string (renderer, message->text);
      ox_render_control (renderer, "<|im_end|>\n");
    } else if (is_role (message, "assistant")) {
      render_answer (renderer, i, i > query);
    } else if (is_role (message, "tool")) {
      render_result (renderer, i);
    }
  }
  if (ox_render_wants_answer (renderer)) {
    ox_render_control (renderer, "<|im_start|>assistant\n");
    if (renderer->format->variant == OX_QWEN3_ALWAYS_THINKS) {
      ox_render_control (renderer, "<think>\n");
      renderer->prompt->in_thinking = TRUE;
    } else if (renderer->chat->thinking == OX_THINKING_OFF) {
      ox_render_control (renderer, "<think>\n\n</think>\n\n");
    }
  }
  return TRUE;
}
