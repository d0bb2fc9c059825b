/* See ox-chat-builder.h.
 *
 * An answer with calls of tools was several messages for the model: text and calls, their results, text and calls, and so on. It is
 * taken apart again at the places that its entries tell, so that the model finds what it has read already.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-chat-builder.h"

#include <string.h>

/* The last message, which is not in the chat yet. Chat formats want the roles to take turns, so messages of one role that follow each
 * other become one. */
typedef struct {
  OxChat *chat;
  gboolean open;
  OxRole role;
  GString *text;
  GString *reasoning;
} Builder;

static void
flush (Builder *self)
{
  if (!self->open)
    return;
  self->open = FALSE;
  ox_chat_append (self->chat, self->role, self->text->str);
  if (self->role == OX_ROLE_ASSISTANT && self->reasoning->len > 0)
    ox_chat_set_reasoning (self->chat, self->reasoning->str);
}

static void
append_part (GString *to, const char *text, gsize length)
{
  /* Where two parts were joined, there are lines between them. */
  while (length > 0 && *text == '\n') {
    text++;
    length--;
  }
  if (to->len > 0 && length > 0)
    g_string_append (to, "\n\n");
  g_string_append_len (to, text, length);
}

static void
add (Builder *self, OxRole role, const char *text, gsize length, const char *reasoning, gsize reasoning_length)
{
  if (!self->open || role != self->role) {
    flush (self);
    self->open = TRUE;
    self->role = role;
    g_string_truncate (self->text, 0);
    g_string_truncate (self->reasoning, 0);
  }
  append_part (self->text, text, length);
  append_part (self->reasoning, reasoning, reasoning_length);
}

/* The calls of the round that begins at @first, and their results. Returns where the next one begins. */
static guint
add_round (Builder *self, OxMessage *message, guint first)
{
  guint n = ox_message_get_n_tools (message);
  guint round = ox_message_get_tool (message, first)->round;
  guint end = first;

  flush (self);
  while (end < n && ox_message_get_tool (message, end)->round == round)
    end++;
  for (guint pass = 0; pass < 2; pass++)
    for (guint i = first; i < end; i++) {
      const OxToolEntry *entry = ox_message_get_tool (message, i);

      if (entry->name == NULL || entry->result == NULL)
        continue;
      if (pass == 1)
        ox_chat_append_tool_result (self->chat, entry->id, entry->name, entry->result);
      else if (!ox_chat_add_tool_call (self->chat, entry->id, entry->name, entry->arguments, NULL))
        /* It ran, so its arguments were JSON; a store that others wrote to may hold anything. */
        ox_chat_add_tool_call (self->chat, entry->id, entry->name, "{}", NULL);
    }
  return end;
}

static gboolean
has_result (OxMessage *message, guint first)
{
  for (guint i = first; i < ox_message_get_n_tools (message); i++)
    if (ox_message_get_tool (message, i)->name != NULL && ox_message_get_tool (message, i)->result != NULL)
      return TRUE;
  return FALSE;
}

static void
add_message (Builder *self, OxMessage *message, gboolean with_tools)
{
  const char *text = ox_message_get_text (message);
  const char *thinking = ox_message_get_thinking (message);
  gsize length = ox_message_get_text_length (message);
  gsize thinking_length = strlen (thinking);
  gsize at = 0;
  gsize thinking_at = 0;

  for (guint i = 0; with_tools && i < ox_message_get_n_tools (message) && has_result (message, i);) {
    const OxToolEntry *entry = ox_message_get_tool (message, i);
    gsize next = CLAMP (entry->text_offset, at, length);
    gsize thinking_next = CLAMP (entry->thinking_offset, thinking_at, thinking_length);

    add (self, OX_ROLE_ASSISTANT, text + at, next - at, thinking + thinking_at, thinking_next - thinking_at);
    i = add_round (self, message, i);
    at = next;
    thinking_at = thinking_next;
  }
  if (at < length)
    add (self, ox_message_get_role (message), text + at, length - at, thinking + thinking_at,
         thinking_length - thinking_at);
}

gboolean
ox_chat_builder_has_tools (OxConversation *conversation)
{
  for (guint i = 0; i < ox_conversation_get_length (conversation); i++)
    if (ox_message_get_n_tools (ox_conversation_get_message (conversation, i)) > 0)
      return TRUE;
  return FALSE;
}

OxChat *
ox_chat_builder_build (OxConversation *conversation, const char *draft, gboolean with_tools)
{
  Builder self = { .chat = ox_chat_new (), .text = g_string_new (NULL), .reasoning = g_string_new (NULL) };
  g_autofree char *question = draft != NULL ? g_strstrip (g_strdup (draft)) : NULL;
  const char *system_prompt;

  if (g_variant_lookup (ox_conversation_get_settings (conversation), "system-prompt", "&s", &system_prompt) &&
      *system_prompt != '\0')
    ox_chat_append (self.chat, OX_ROLE_SYSTEM, system_prompt);
  for (guint i = 0; i < ox_conversation_get_length (conversation); i++) {
    OxMessage *message = ox_conversation_get_message (conversation, i);

    if (ox_message_get_state (message) != OX_MESSAGE_FAILED)
      add_message (&self, message, with_tools);
  }
  if (question != NULL && *question != '\0')
    add (&self, OX_ROLE_USER, question, strlen (question), "", 0);
  flush (&self);
  g_string_free (self.text, TRUE);
  g_string_free (self.reasoning, TRUE);
  return self.chat;
}
