/* A conversation as the model is to see it.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "text/ox-chat-private.h"

#include <string.h>

/* ---- Messages ---- */

static void
part_clear (gpointer part)
{
  g_free (((OxPart *) part)->type);
  g_free (((OxPart *) part)->text);
}

static void
tool_call_clear (gpointer call)
{
  g_free (((OxToolCall *) call)->id);
  g_free (((OxToolCall *) call)->name);
  ox_value_unref (((OxToolCall *) call)->arguments);
}

static void
message_clear (gpointer data)
{
  OxMessage *message = data;

  g_free (message->role_name);
  g_free (message->text);
  g_clear_pointer (&message->parts, g_array_unref);
  ox_value_unref (message->other);
  g_free (message->reasoning);
  g_clear_pointer (&message->tool_calls, g_array_unref);
  g_free (message->tool_call_id);
  g_free (message->tool_name);
  ox_value_unref (message->tool_responses);
}

GArray *
ox_parts_new (void)
{
  GArray *parts = g_array_new (FALSE, TRUE, sizeof (OxPart));

  g_array_set_clear_func (parts, part_clear);
  return parts;
}

static GArray *
tool_calls_new (void)
{
  GArray *calls = g_array_new (FALSE, TRUE, sizeof (OxToolCall));

  g_array_set_clear_func (calls, tool_call_clear);
  return calls;
}

static OxValue *
value_ref_maybe (const OxValue *value)
{
  return value ? ox_value_ref (value) : NULL;
}

void
ox_chat_append_message (OxChat *chat, const OxMessage *message)
{
  OxMessage copy = {
    .role = message->role,
    .role_name = g_strdup (message->role_name),
    .content = message->content,
    .text = g_strdup (message->text),
    .other = value_ref_maybe (message->other),
    .reasoning = g_strdup (message->reasoning),
    .tool_call_id = g_strdup (message->tool_call_id),
    .tool_name = g_strdup (message->tool_name),
    .tool_responses = value_ref_maybe (message->tool_responses),
  };

  if (message->parts) {
    copy.parts = ox_parts_new ();
    for (guint i = 0; i < message->parts->len; i++) {
      const OxPart *part = &g_array_index (message->parts, OxPart, i);
      OxPart one = { part->kind, g_strdup (part->type), g_strdup (part->text) };

      g_array_append_val (copy.parts, one);
    }
  }
  if (message->tool_calls) {
    copy.tool_calls = tool_calls_new ();
    for (guint i = 0; i < message->tool_calls->len; i++) {
      const OxToolCall *call = &g_array_index (message->tool_calls, OxToolCall, i);
      OxToolCall one = { g_strdup (call->id), g_strdup (call->name), ox_value_ref (call->arguments) };

      g_array_append_val (copy.tool_calls, one);
    }
  }
  g_array_append_val (chat->messages, copy);
}

/* ---- The conversation ---- */

OxChat *
ox_chat_new (void)
{
  OxChat *chat = g_new0 (OxChat, 1);

  chat->messages = g_array_new (FALSE, TRUE, sizeof (OxMessage));
  g_array_set_clear_func (chat->messages, message_clear);
  chat->tools = g_ptr_array_new_with_free_func ((GDestroyNotify) ox_value_unref);
  return chat;
}

OxChat *
ox_chat_copy_settings (const OxChat *chat)
{
  OxChat *copy = ox_chat_new ();

  for (guint i = 0; i < chat->tools->len; i++)
    g_ptr_array_add (copy->tools, ox_value_ref (g_ptr_array_index (chat->tools, i)));
  copy->thinking = chat->thinking;
  copy->preserve_thinking = chat->preserve_thinking;
  copy->reasoning_effort = g_strdup (chat->reasoning_effort);
  copy->add_vision_id = chat->add_vision_id;
  return copy;
}

OxChat *
ox_chat_copy (const OxChat *chat)
{
  OxChat *copy;

  g_return_val_if_fail (chat != NULL, NULL);
  copy = ox_chat_copy_settings (chat);
  for (guint i = 0; i < chat->messages->len; i++)
    ox_chat_append_message (copy, &g_array_index (chat->messages, OxMessage, i));
  return copy;
}

void
ox_chat_free (OxChat *chat)
{
  if (!chat)
    return;
  g_array_unref (chat->messages);
  g_ptr_array_unref (chat->tools);
  g_free (chat->reasoning_effort);
  g_free (chat);
}

static char *
valid_or_null (const char *text)
{
  return text ? g_utf8_make_valid (text, -1) : NULL;
}

void
ox_chat_append (OxChat *chat, OxRole role, const char *text)
{
  static const char *const names[] = {
    [OX_ROLE_SYSTEM] = "system",
    [OX_ROLE_USER] = "user",
    [OX_ROLE_ASSISTANT] = "assistant",
    [OX_ROLE_TOOL] = "tool",
  };
  OxMessage message = { .role = role, .content = OX_CONTENT_TEXT };

  g_return_if_fail (chat != NULL && text != NULL && (gsize) role < G_N_ELEMENTS (names));
  message.role_name = g_strdup (names[role]);
  message.text = g_utf8_make_valid (text, -1);
  g_array_append_val (chat->messages, message);
}

static OxMessage *
last_of_assistant (OxChat *chat)
{
  OxMessage *last =
    chat && chat->messages->len > 0 ? &g_array_index (chat->messages, OxMessage, chat->messages->len - 1) : NULL;

  return last && last->role == OX_ROLE_ASSISTANT ? last : NULL;
}

void
ox_chat_set_reasoning (OxChat *chat, const char *reasoning)
{
  OxMessage *message = last_of_assistant (chat);

  g_return_if_fail (message != NULL);
  g_free (message->reasoning);
  message->reasoning = valid_or_null (reasoning);
}

gboolean
ox_chat_add_tool_call (OxChat *chat, const char *id, const char *name, const char *arguments, GError **error)
{
  OxMessage *message = last_of_assistant (chat);
  g_autoptr (OxValue) value = NULL;
  OxToolCall call;

  g_return_val_if_fail (message != NULL && name != NULL && arguments != NULL, FALSE);
  value = ox_value_parse (arguments, strlen (arguments), "Arguments of a tool call", error);
  if (!value)
    return FALSE;
  if (!yyjson_is_obj (ox_value_get_root (value))) {
    g_set_error (error, OX_ERROR, OX_ERROR_INVALID, "Arguments of a call of “%s” have to be a JSON object", name);
    return FALSE;
  }
  if (!message->tool_calls)
    message->tool_calls = tool_calls_new ();
  call = (OxToolCall) { valid_or_null (id), g_utf8_make_valid (name, -1), g_steal_pointer (&value) };
  g_array_append_val (message->tool_calls, call);
  return TRUE;
}

void
ox_chat_append_tool_result (OxChat *chat, const char *id, const char *name, const char *text)
{
  OxMessage *message;

  g_return_if_fail (chat != NULL && text != NULL);
  ox_chat_append (chat, OX_ROLE_TOOL, text);
  message = &g_array_index (chat->messages, OxMessage, chat->messages->len - 1);
  message->tool_call_id = valid_or_null (id);
  message->tool_name = valid_or_null (name);
}

gboolean
ox_chat_add_tool (OxChat *chat, const char *declaration, GError **error)
{
  g_autoptr (OxValue) value = NULL;
  yyjson_val *root, *function;

  g_return_val_if_fail (chat != NULL && declaration != NULL, FALSE);
  value = ox_value_parse (declaration, strlen (declaration), "A tool's declaration", error);
  if (!value)
    return FALSE;
  root = ox_value_get_root (value);
  function = yyjson_obj_get (root, "function");
  if (!yyjson_equals_str (yyjson_obj_get (root, "type"), "function") ||
      !yyjson_is_str (yyjson_obj_get (function, "name")) || yyjson_get_len (yyjson_obj_get (function, "name")) == 0) {
    g_set_error_literal (
      error, OX_ERROR, OX_ERROR_INVALID,
      "A tool's declaration has to be a JSON object with “type”: “function” and an object “function” "
      "that has a “name”");
    return FALSE;
  }
  g_ptr_array_add (chat->tools, g_steal_pointer (&value));
  return TRUE;
}

void
ox_chat_set_thinking (OxChat *chat, OxThinking thinking)
{
  g_return_if_fail (chat != NULL);
  chat->thinking = thinking;
}

void
ox_chat_set_reasoning_effort (OxChat *chat, const char *effort)
{
  g_return_if_fail (chat != NULL);
  g_free (chat->reasoning_effort);
  chat->reasoning_effort = valid_or_null (effort);
}

guint
ox_chat_get_length (const OxChat *chat)
{
  g_return_val_if_fail (chat != NULL, 0);
  return chat->messages->len;
}

const OxMessage *
ox_chat_get_message (const OxChat *chat, guint index)
{
  g_return_val_if_fail (chat != NULL && index < chat->messages->len, NULL);
  return &g_array_index (chat->messages, OxMessage, index);
}

OxRole
ox_chat_get_role (const OxChat *chat, guint index)
{
  g_return_val_if_fail (chat != NULL && index < chat->messages->len, OX_ROLE_USER);
  return g_array_index (chat->messages, OxMessage, index).role;
}

const char *
ox_chat_get_text (const OxChat *chat, guint index)
{
  g_return_val_if_fail (chat != NULL && index < chat->messages->len, NULL);
  return g_array_index (chat->messages, OxMessage, index).text;
}
