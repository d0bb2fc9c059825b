/* A conversation as the model is to see it.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "oxinfer.h"

typedef struct {
  OxRole role;
  char *text;
} Message;

struct _OxChat {
  GArray *messages;
};

static void
message_clear (gpointer message)
{
  g_free (((Message *) message)->text);
}

OxChat *
ox_chat_new (void)
{
  OxChat *chat = g_new0 (OxChat, 1);

  chat->messages = g_array_new (FALSE, TRUE, sizeof (Message));
  g_array_set_clear_func (chat->messages, message_clear);
  return chat;
}

void
ox_chat_free (OxChat *chat)
{
  if (!chat)
    return;
  g_array_unref (chat->messages);
  g_free (chat);
}

void
ox_chat_append (OxChat *chat, OxRole role, const char *text)
{
  Message message;

  g_return_if_fail (chat != NULL && text != NULL);
  message = (Message) { role, g_utf8_make_valid (text, -1) };
  g_array_append_val (chat->messages, message);
}

guint
ox_chat_get_length (const OxChat *chat)
{
  g_return_val_if_fail (chat != NULL, 0);
  return chat->messages->len;
}

OxRole
ox_chat_get_role (const OxChat *chat, guint index)
{
  g_return_val_if_fail (chat != NULL && index < chat->messages->len, OX_ROLE_USER);
  return g_array_index (chat->messages, Message, index).role;
}

const char *
ox_chat_get_text (const OxChat *chat, guint index)
{
  g_return_val_if_fail (chat != NULL && index < chat->messages->len, NULL);
  return g_array_index (chat->messages, Message, index).text;
}
