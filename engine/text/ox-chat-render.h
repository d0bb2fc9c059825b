/* What the chat formats share: writing a prompt piece by piece.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "text/ox-added-tokens.h"
#include "text/ox-chat-format.h"
#include "text/ox-chat-private.h"

/* How a model writes thoughts and calls. */
typedef enum {
  OX_SYNTAX_PLAIN,  /* it has no marks for them */
  OX_SYNTAX_GEMMA4, /* <|channel>thought … <channel|>, <|tool_call>call:NAME{…}<tool_call|> */
  OX_SYNTAX_QWEN,   /* <think> … </think>, <tool_call> with <function=…> or JSON in it */
} OxOutputSyntax;

typedef struct {
  const OxChatFormat *format;
  const OxChat *chat;
  OxTokenizer *tokenizer; /* may be NULL */
  guint n_messages;       /* that are to be rendered */
  gboolean add_generation_prompt;
  gboolean continue_last;
  OxPrompt *prompt;
} OxRenderer;

struct _OxChatFormat {
  const char *name;
  gboolean (*render) (OxRenderer *renderer, GError **error);
  OxOutputSyntax syntax;
  OxCapabilities capabilities;
  int variant; /* the renderer's own */
  const char *stop_tokens[4];
};

gboolean ox_render_plain (OxRenderer *renderer, GError **error);
gboolean ox_render_chatml (OxRenderer *renderer, GError **error);
gboolean ox_render_llama3 (OxRenderer *renderer, GError **error);
gboolean ox_render_gemma3 (OxRenderer *renderer, GError **error);
gboolean ox_render_gemma4 (OxRenderer *renderer, GError **error);
gboolean ox_render_qwen3 (OxRenderer *renderer, GError **error);
gboolean ox_render_qwen35 (OxRenderer *renderer, GError **error);

/* Variants of ox_render_gemma4(): whether an answer without thinking begins with an empty thought. */
enum { OX_GEMMA4_SMALL, OX_GEMMA4_LARGE };
/* Variants of ox_render_qwen3(). */
enum { OX_QWEN3_MAY_THINK, OX_QWEN3_ALWAYS_THINKS };
/* Variants of ox_render_qwen35(). */
enum { OX_QWEN35_THINK, OX_QWEN35_NOTHINK, OX_QWEN36, OX_QWEN38 };

/* ---- Pieces ---- */

/* Template text. Neighbours make one piece, so that no control token is cut in two. */
void ox_render_control (OxRenderer *renderer, const char *text);
/* What people, models and tools wrote. */
void ox_render_text (OxRenderer *renderer, const char *text, gsize len);
void ox_render_string (OxRenderer *renderer, const char *text);
/* The string of the tokenizer's BOS, "<bos>" without a tokenizer. */
void ox_render_bos (OxRenderer *renderer);

const OxMessage *ox_render_message (const OxRenderer *renderer, guint index);
gboolean ox_render_is_last (const OxRenderer *renderer, guint index);
/* Whether the message stays open, for the answer to go on. */
gboolean ox_render_stays_open (const OxRenderer *renderer, guint index);
gboolean ox_render_wants_answer (const OxRenderer *renderer);
gboolean ox_render_refuse (GError **error, const char *reason);

/* ---- Text with placeholders of pictures and sounds in it ---- */

typedef struct {
  GString *text;
  GArray *marks; /* OxTextRange: template text */
} OxRichText;

OxRichText *ox_rich_text_new (void);
void ox_rich_text_free (OxRichText *rich);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (OxRichText, ox_rich_text_free)
void ox_rich_text_add_mark (OxRichText *rich, const char *mark);
/* The part from @begin to @end, which are not within a mark. */
void ox_render_rich (OxRenderer *renderer, const OxRichText *rich, gsize begin, gsize end);

/* ---- White space as Python has it: U+001C to U+001F too ---- */

gboolean ox_python_is_space (gunichar c);
/* Takes it away from both ends of text[*begin … *end). */
void ox_python_trim (const char *text, gsize *begin, gsize *end);
void ox_render_trimmed (OxRenderer *renderer, const char *text);

/* ---- Gemma 4's own notation: ox-chat-gemma4-tools.c ---- */

void ox_gemma4_render_declaration (OxRenderer *renderer, yyjson_val *tool);
void ox_gemma4_render_call (OxRenderer *renderer, const OxToolCall *call);
/* @text: when the result is no JSON value; @val NULL and @text NULL: none. */
void ox_gemma4_render_response (OxRenderer *renderer, const char *name, yyjson_val *val, const char *text);
