/* A conversation from OpenAI-like JSON.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <string.h>

#include "text/ox-chat-private.h"

/* A member that is there and not null. */
static yyjson_val *
member (yyjson_val *object, const char *name)
{
  yyjson_val *val = yyjson_obj_get (object, name);

  return yyjson_is_null (val) ? NULL : val;
}

static OxValue *
copy_value (yyjson_val *val, GError **error)
{
  g_autoptr (GString) text = g_string_new (NULL);

  ox_value_append_json (text, val);
  return ox_value_parse (text->str, text->len, "A part of the conversation", error);
}

static void
add_part (GArray *parts, yyjson_val *val, GString *text)
{
  const char *type = yyjson_get_str (member (val, "type")), *part_text = yyjson_get_str (member (val, "text"));
  OxPart part = { .kind = OX_PART_UNKNOWN, .type = g_strdup (type ? type : "") };

  if (member (val, "image") || member (val, "image_url") || g_strcmp0 (type, "image") == 0)
    part.kind = OX_PART_IMAGE;
  else if (member (val, "video") || g_strcmp0 (type, "video") == 0)
    part.kind = OX_PART_VIDEO;
  else if (g_strcmp0 (type, "audio") == 0 || g_strcmp0 (type, "input_audio") == 0)
    part.kind = OX_PART_AUDIO;
  else if (part_text)
    part.kind = OX_PART_TEXT;
  if (part.kind == OX_PART_TEXT) {
    part.text = g_strdup (part_text);
    g_string_append (text, part_text);
  }
  g_array_append_val (parts, part);
}

static gboolean
read_content (OxMessage *message, yyjson_val *content, GError **error)
{
  yyjson_val *val;
  gsize i, max;

  if (!content) {
    message->content = OX_CONTENT_NONE;
  } else if (yyjson_is_str (content)) {
    message->content = OX_CONTENT_TEXT;
    g_free (message->text);
    message->text = g_strdup (yyjson_get_str (content));
  } else {
    if (yyjson_is_arr (content)) {
      g_autoptr (GString) text = g_string_new (NULL);

      message->content = OX_CONTENT_PARTS;
      message->parts = ox_parts_new ();
      ox_json_foreach_item (content, i, max, val) {
        add_part (message->parts, val, text);
      }
      g_free (message->text);
      message->text = g_strdup (text->str);
    } else {
      message->content = OX_CONTENT_OTHER;
    }
    message->other = copy_value (content, error);
    return message->other != NULL;
  }
  return TRUE;
}

/* The last message's calls. */
static gboolean
read_tool_calls (OxChat *chat, yyjson_val *calls, GError **error)
{
  yyjson_val *val;
  gsize i, max;

  ox_json_foreach_item (calls, i, max, val) {
    yyjson_val *function = member (val, "function"), *arguments = member (function, "arguments");
    const char *name = yyjson_get_str (member (function, "name"));
    g_autoptr (GString) text = g_string_new (yyjson_get_str (arguments));

    if (!name) {
      g_set_error_literal (error, OX_ERROR, OX_ERROR_INVALID, "A tool call has no “name”");
      return FALSE;
    }
    if (!arguments)
      g_string_assign (text, "{}");
    else if (!yyjson_is_str (arguments))
      ox_value_append_json (text, arguments);
    if (!ox_chat_add_tool_call (chat, yyjson_get_str (member (val, "id")), name, text->str, error))
      return FALSE;
  }
  return TRUE;
}

static gboolean
read_message (OxChat *chat, yyjson_val *val, GError **error)
{
  static const struct {
    const char *name;
    OxRole role;
  } roles[] = {
    { "system", OX_ROLE_SYSTEM },       { "developer", OX_ROLE_SYSTEM }, { "user", OX_ROLE_USER },
    { "assistant", OX_ROLE_ASSISTANT }, { "tool", OX_ROLE_TOOL },
  };
  const char *role = yyjson_get_str (member (val, "role"));
  yyjson_val *responses = member (val, "tool_responses"), *reasoning;
  OxMessage *message;

  if (!role) {
    g_set_error_literal (error, OX_ERROR, OX_ERROR_INVALID, "A message has no “role”");
    return FALSE;
  }
  /* Roles that nobody knows count as the user's. */
  ox_chat_append (chat, OX_ROLE_USER, "");
  message = &g_array_index (chat->messages, OxMessage, chat->messages->len - 1);
  for (gsize i = 0; i < G_N_ELEMENTS (roles); i++) {
    if (strcmp (role, roles[i].name) == 0)
      message->role = roles[i].role;
  }
  g_free (message->role_name);
  message->role_name = g_strdup (role);
  if (!read_content (message, member (val, "content"), error))
    return FALSE;
  reasoning = member (val, "reasoning_content");
  reasoning = reasoning ? reasoning : member (val, "reasoning");
  reasoning = reasoning ? reasoning : member (val, "thinking");
  message->reasoning = g_strdup (yyjson_get_str (reasoning));
  message->tool_call_id = g_strdup (yyjson_get_str (member (val, "tool_call_id")));
  message->tool_name = g_strdup (yyjson_get_str (member (val, "name")));
  if (responses && !(message->tool_responses = copy_value (responses, error)))
    return FALSE;
  return message->role != OX_ROLE_ASSISTANT || read_tool_calls (chat, member (val, "tool_calls"), error);
}

static OxThinking
read_switch (yyjson_val *options, const char *name)
{
  yyjson_val *val = member (options, name);

  return !val ? OX_THINKING_DEFAULT : yyjson_is_true (val) ? OX_THINKING_ON : OX_THINKING_OFF;
}

static gboolean
read_chat (OxChat *chat, yyjson_val *root, GError **error)
{
  yyjson_val *options = member (root, "options"), *messages = member (root, "messages"), *val;
  gsize i, max;

  if (!yyjson_is_arr (messages)) {
    g_set_error_literal (error, OX_ERROR, OX_ERROR_INVALID, "A conversation has to have an array “messages”");
    return FALSE;
  }
  ox_json_foreach_item (messages, i, max, val) {
    if (!read_message (chat, val, error))
      return FALSE;
  }
  ox_json_foreach_item (member (root, "tools"), i, max, val) {
    g_autoptr (GString) text = g_string_new (NULL);

    ox_value_append_json (text, val);
    if (!ox_chat_add_tool (chat, text->str, error))
      return FALSE;
  }
  chat->thinking = read_switch (options, "enable_thinking");
  chat->preserve_thinking = read_switch (options, "preserve_thinking");
  chat->add_vision_id = yyjson_is_true (member (options, "add_vision_id"));
  ox_chat_set_reasoning_effort (chat, yyjson_get_str (member (options, "reasoning_effort")));
  return TRUE;
}

OxChat *
ox_chat_new_from_json (const char *json, gsize len, GError **error)
{
  g_autoptr (OxValue) value = ox_value_parse (json, len, "The conversation", error);
  g_autoptr (OxChat) chat = NULL;

  if (!value)
    return NULL;
  chat = ox_chat_new ();
  return read_chat (chat, ox_value_get_root (value), error) ? g_steal_pointer (&chat) : NULL;
}
