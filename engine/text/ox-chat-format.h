/* Chat formats: how a conversation is written as tokens for a family of models.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "io/ox-config.h"
#include "text/ox-tokenizer.h"

/* A rendered prompt in pieces: control pieces are template text whose control tokens are parsed, the others are what people wrote
 * and can never become a control token. */
typedef struct {
  char *text;
  gboolean is_control;
} OxPromptPiece;

typedef struct {
  GArray *pieces;       /* OxPromptPiece */
  gboolean in_thinking; /* the text ends inside a thought: what follows is reasoning */
} OxPrompt;

void ox_prompt_free (OxPrompt *prompt);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (OxPrompt, ox_prompt_free)
/* All pieces joined: what the reference's template prints. */
char *ox_prompt_to_text (const OxPrompt *prompt);
/* Token ids. BOS comes from the template text, or is put first when the tokenizer wants it and the template has none. */
gboolean ox_prompt_encode (
  const OxPrompt *prompt, OxTokenizer *tokenizer, GArray *ids, GCancellable *cancellable, GError **error);

typedef struct _OxChatFormat OxChatFormat;

/* By what the model is: its chat template's features, else its control tokens, family and size (@config, may be NULL). NULL: a base
 * model without a format. @note (may be NULL): a sentence for the user when the model's own format is not known and another one
 * stands in; free with g_free(). */
const OxChatFormat *ox_chat_format_detect (OxTokenizer *tokenizer, const OxConfig *config, char **note);
/* "plain", "chatml", "llama3", "gemma3", "gemma4-small", "gemma4-large", "qwen3", "qwen3-think", "qwen3.5-think",
 * "qwen3.5-nothink", "qwen3.6", "qwen3.8"; NULL when unknown. */
const OxChatFormat *ox_chat_format_find (const char *name);
/* CHAT, and THINK and TOOLS where the format has marks for them and the model's template uses them. */
OxCapabilities ox_chat_format_get_capabilities (const OxChatFormat *format, OxTokenizer *tokenizer);
const char *ox_chat_format_get_name (const OxChatFormat *format);
/* NULL with OX_ERROR_INVALID when the format refuses the conversation (roles that do not alternate, …) as the reference does. With
 * @add_generation_prompt the text ends where the answer starts; with @continue_last a last message of the assistant is left open to
 * be continued, within its thought when it has no text yet. */
OxPrompt *ox_chat_format_render (const OxChatFormat *format,
                                 const OxChat *chat,
                                 OxTokenizer *tokenizer,
                                 gboolean add_generation_prompt,
                                 gboolean continue_last,
                                 GError **error);
/* Adds the ids that end a turn in this format to @ids (guint32), each once. */
void ox_chat_format_add_stop_ids (const OxChatFormat *format, OxTokenizer *tokenizer, GArray *ids);
