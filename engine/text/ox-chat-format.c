/* Chat formats: prompts in pieces, and the table of formats.
 *
 * The formats are written down in C and not run from the models' jinja templates: a template is a program from a file. It only
 * tells which format a model wants (ox-chat-detect.c), and for ChatML the system text that stands in when a conversation has none.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "text/ox-chat-render.h"

#include <string.h>

#include "text/ox-tokenizer-private.h"

/* ---- Prompts ---- */

static void
piece_clear (gpointer piece)
{
  g_free (((OxPromptPiece *) piece)->text);
}

static OxPrompt *
prompt_new (void)
{
  OxPrompt *prompt = g_new0 (OxPrompt, 1);

  prompt->pieces = g_array_new (FALSE, TRUE, sizeof (OxPromptPiece));
  g_array_set_clear_func (prompt->pieces, piece_clear);
  return prompt;
}

void
ox_prompt_free (OxPrompt *prompt)
{
  if (!prompt)
    return;
  g_array_unref (prompt->pieces);
  g_free (prompt);
}

char *
ox_prompt_to_text (const OxPrompt *prompt)
{
  GString *text = g_string_new (NULL);

  for (guint i = 0; i < prompt->pieces->len; i++)
    g_string_append (text, g_array_index (prompt->pieces, OxPromptPiece, i).text);
  return g_string_free (text, FALSE);
}

/* The whole prompt is encoded as one text, as the reference does: what a piece begins with may join the end of the one before.
 * Only control tokens are kept to their pieces. */
gboolean
ox_prompt_encode (
  const OxPrompt *prompt, OxTokenizer *tokenizer, GArray *ids, GCancellable *cancellable, GError **error)
{
  g_autofree char *text = ox_prompt_to_text (prompt);
  g_autoptr (GArray) ranges = g_array_new (FALSE, FALSE, sizeof (OxTextRange));
  gint64 bos = ox_tokenizer_get_bos (tokenizer);
  guint begin = ids->len;
  gsize at = 0;

  for (guint i = 0; i < prompt->pieces->len; i++) {
    const OxPromptPiece *piece = &g_array_index (prompt->pieces, OxPromptPiece, i);
    OxTextRange range = { at, at + strlen (piece->text) };

    at = range.end;
    if (piece->is_control)
      g_array_append_val (ranges, range);
  }
  if (!ox_tokenizer_encode_ranges (tokenizer, text, at, (const OxTextRange *) (gpointer) ranges->data, ranges->len, ids,
                                   cancellable, error))
    return FALSE;
  if (ox_tokenizer_get_add_bos (tokenizer) &&
      (ids->len == begin || g_array_index (ids, guint32, begin) != (guint32) bos)) {
    guint32 id = (guint32) bos;

    g_array_insert_val (ids, begin, id);
  }
  return TRUE;
}

/* ---- The table ---- */

static const OxChatFormat formats[] = {
  { "plain", ox_render_plain, OX_SYNTAX_PLAIN, 0, 0, { NULL } },
  { "chatml", ox_render_chatml, OX_SYNTAX_PLAIN, 0, 0, { "<|im_end|>", "<|endoftext|>" } },
  { "llama3", ox_render_llama3, OX_SYNTAX_PLAIN, 0, 0, { "<|eot_id|>", "<|end_of_text|>", "<|eom_id|>" } },
  { "gemma3", ox_render_gemma3, OX_SYNTAX_PLAIN, 0, 0, { "<end_of_turn>", "<eos>" } },
  { "gemma4-small",
    ox_render_gemma4,
    OX_SYNTAX_GEMMA4,
    OX_CAPABILITY_THINK | OX_CAPABILITY_TOOLS,
    OX_GEMMA4_SMALL,
    { "<turn|>", "<eos>", "<|tool_response>" } },
  { "gemma4-large",
    ox_render_gemma4,
    OX_SYNTAX_GEMMA4,
    OX_CAPABILITY_THINK | OX_CAPABILITY_TOOLS,
    OX_GEMMA4_LARGE,
    { "<turn|>", "<eos>", "<|tool_response>" } },
  { "qwen3",
    ox_render_qwen3,
    OX_SYNTAX_QWEN,
    OX_CAPABILITY_THINK | OX_CAPABILITY_TOOLS,
    OX_QWEN3_MAY_THINK,
    { "<|im_end|>", "<|endoftext|>" } },
  { "qwen3-think",
    ox_render_qwen3,
    OX_SYNTAX_QWEN,
    OX_CAPABILITY_THINK | OX_CAPABILITY_TOOLS,
    OX_QWEN3_ALWAYS_THINKS,
    { "<|im_end|>", "<|endoftext|>" } },
  { "qwen3.5-think",
    ox_render_qwen35,
    OX_SYNTAX_QWEN,
    OX_CAPABILITY_THINK | OX_CAPABILITY_TOOLS,
    OX_QWEN35_THINK,
    { "<|im_end|>", "<|endoftext|>" } },
  { "qwen3.5-nothink",
    ox_render_qwen35,
    OX_SYNTAX_QWEN,
    OX_CAPABILITY_THINK | OX_CAPABILITY_TOOLS,
    OX_QWEN35_NOTHINK,
    { "<|im_end|>", "<|endoftext|>" } },
  { "qwen3.6",
    ox_render_qwen35,
    OX_SYNTAX_QWEN,
    OX_CAPABILITY_THINK | OX_CAPABILITY_TOOLS,
    OX_QWEN36,
    { "<|im_end|>", "<|endoftext|>" } },
  { "qwen3.8",
    ox_render_qwen35,
    OX_SYNTAX_QWEN,
    OX_CAPABILITY_THINK | OX_CAPABILITY_TOOLS,
    OX_QWEN38,
    { "<|im_end|>", "<|endoftext|>" } },
};

const OxChatFormat *
ox_chat_format_find (const char *name)
{
  for (gsize i = 0; i < G_N_ELEMENTS (formats); i++) {
    if (g_strcmp0 (name, formats[i].name) == 0)
      return formats + i;
  }
  return NULL;
}

const char *
ox_chat_format_get_name (const OxChatFormat *format)
{
  return format->name;
}

/* An answer that was begun without a word is begun anew. */
static gboolean
is_blank (const OxMessage *message)
{
  return message->role == OX_ROLE_ASSISTANT && !message->tool_calls && !message->tool_responses &&
         message->text[strspn (message->text, " \n\r\t")] == '\0' &&
         (message->content == OX_CONTENT_TEXT || message->content == OX_CONTENT_NONE) &&
         (!message->reasoning || message->reasoning[0] == '\0');
}

OxPrompt *
ox_chat_format_render (const OxChatFormat *format,
                       const OxChat *chat,
                       OxTokenizer *tokenizer,
                       gboolean add_generation_prompt,
                       gboolean continue_last,
                       GError **error)
{
  g_autoptr (OxPrompt) prompt = prompt_new ();
  OxRenderer renderer = { format,        chat,  tokenizer, ox_chat_get_length (chat), add_generation_prompt,
                          continue_last, prompt };

  if (renderer.n_messages == 0) {
    g_set_error_literal (error, OX_ERROR, OX_ERROR_INVALID, "The conversation is empty: there is nothing to answer");
    return NULL;
  }
  if (continue_last && renderer.n_messages > 1 && is_blank (ox_chat_get_message (chat, renderer.n_messages - 1))) {
    renderer.n_messages--;
    renderer.continue_last = FALSE;
    renderer.add_generation_prompt = TRUE;
  }
  return format->render (&renderer, error) ? g_steal_pointer (&prompt) : NULL;
}

void
ox_chat_format_add_stop_ids (const OxChatFormat *format, OxTokenizer *tokenizer, GArray *ids)
{
  for (gsize i = 0; i < G_N_ELEMENTS (format->stop_tokens) && format->stop_tokens[i]; i++) {
    gint64 found = ox_tokenizer_find (tokenizer, format->stop_tokens[i]);
    guint32 id = (guint32) found;
    gboolean is_new = found >= 0;

    for (guint k = 0; k < ids->len && is_new; k++)
      is_new = g_array_index (ids, guint32, k) != id;
    if (is_new)
      g_array_append_val (ids, id);
  }
}
