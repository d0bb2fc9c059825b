/* Formats that only name the speaker: ChatML (SmolLM2, Qwen 2.5), Llama 3's, and plain words.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <string.h>

#include "text/ox-chat-render.h"

/* ---- ChatML ---- */

static void
begin_chatml (OxRenderer *renderer, const char *role)
{
  ox_render_control (renderer, "<|im_start|>");
  ox_render_control (renderer, role);
  ox_render_control (renderer, "\n");
}

/* A line break in a template's string: the character, or its escape. */
static gsize
line_break (const char *text)
{
  return *text == '\n' ? 1 : g_str_has_prefix (text, "\\n") ? 2 : 0;
}

/* The system text that a ChatML template has for conversations without one: a whole system turn in one of its strings. */
static char *
default_system (const char *template)
{
  static const char head[] = "<|im_start|>system";

  while (template && (template = strstr (template, head))) {
    const char *text, *end;
    gsize skip;

    template += strlen (head);
    skip = line_break (template);
    text = template + skip;
    end = skip > 0 ? strstr (text, "<|im_end|>") : NULL;
    /* A quotation mark or brace: the string ended before, and something computed follows. */
    if (end && end > text && strcspn (text, "'\"{}<") == (gsize) (end - text)) {
      GString *plain = g_string_new_len (text, end - text);

      g_string_replace (plain, "\\n", "\n", 0);
      return g_string_free (plain, FALSE);
    }
  }
  return NULL;
}

static const char *
role_name (const OxMessage *message)
{
  static const char *const names[] = {
    [OX_ROLE_SYSTEM] = "system",
    [OX_ROLE_USER] = "user",
    [OX_ROLE_ASSISTANT] = "assistant",
    [OX_ROLE_TOOL] = "tool",
  };

  return names[message->role];
}

gboolean
ox_render_chatml (OxRenderer *renderer, GError **error)
{
  if ((renderer->n_messages == 0 || ox_render_message (renderer, 0)->role != OX_ROLE_SYSTEM) && renderer->tokenizer) {
    g_autofree char *system = default_system (ox_tokenizer_get_chat_template (renderer->tokenizer));

    if (system) {
      begin_chatml (renderer, "system");
      ox_render_string (renderer, system);
      ox_render_control (renderer, "<|im_end|>\n");
    }
  }
  for (guint i = 0; i < renderer->n_messages; i++) {
    const OxMessage *message = ox_render_message (renderer, i);

    begin_chatml (renderer, role_name (message));
    ox_render_string (renderer, message->text);
    if (!ox_render_stays_open (renderer, i))
      ox_render_control (renderer, "<|im_end|>\n");
  }
  if (ox_render_wants_answer (renderer))
    begin_chatml (renderer, "assistant");
  return TRUE;
}

/* ---- Llama 3 ---- */

static void
begin_llama3 (OxRenderer *renderer, const char *role)
{
  ox_render_control (renderer, "<|start_header_id|>");
  ox_render_control (renderer, role);
  ox_render_control (renderer, "<|end_header_id|>\n\n");
}

gboolean
ox_render_llama3 (OxRenderer *renderer, GError **error)
{
  ox_render_control (renderer, "<|begin_of_text|>");
  for (guint i = 0; i < renderer->n_messages; i++) {
    const OxMessage *message = ox_render_message (renderer, i);

    begin_llama3 (renderer, message->role == OX_ROLE_TOOL ? "ipython" : role_name (message));
    ox_render_trimmed (renderer, message->text);
    if (!ox_render_stays_open (renderer, i))
      ox_render_control (renderer, "<|eot_id|>");
  }
  if (ox_render_wants_answer (renderer))
    begin_llama3 (renderer, "assistant");
  return TRUE;
}

/* ---- Plain words, for models of which nothing is known ---- */

gboolean
ox_render_plain (OxRenderer *renderer, GError **error)
{
  static const char *const names[] = {
    [OX_ROLE_SYSTEM] = "System: ",
    [OX_ROLE_USER] = "User: ",
    [OX_ROLE_ASSISTANT] = "Assistant: ",
    [OX_ROLE_TOOL] = "Result: ",
  };

  for (guint i = 0; i < renderer->n_messages; i++) {
    const OxMessage *message = ox_render_message (renderer, i);

    ox_render_control (renderer, names[message->role]);
    ox_render_trimmed (renderer, message->text);
    if (!ox_render_stays_open (renderer, i))
      ox_render_control (renderer, "\n\n");
  }
  if (ox_render_wants_answer (renderer))
    ox_render_control (renderer, "Assistant:");
  return TRUE;
}
