/* From what a model writes to what it means: thinking, answer, tool calls. The result does not depend on how the text is cut.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "text/ox-chat-format.h"

typedef enum {
  OX_OUTPUT_THINKING,       /* text: a piece of reasoning */
  OX_OUTPUT_TEXT,           /* text: a piece of the answer */
  OX_OUTPUT_TOOL_CALL,      /* name and arguments: a whole call */
  OX_OUTPUT_MALFORMED_CALL, /* text: a call that could not be read, without its outer tags */
} OxOutputType;

/* Valid during the callback only. */
typedef struct {
  OxOutputType type;
  const char *text;      /* whole UTF-8 characters; only a malformed call may be empty */
  const char *name;      /* of the tool */
  const char *arguments; /* a JSON object */
} OxOutput;

typedef void (*OxOutputFunc) (const OxOutput *output, gpointer user_data);

typedef struct _OxOutputParser OxOutputParser;

/* @format NULL: everything is answer. @in_thinking: the prompt ended inside a thought (OxPrompt.in_thinking). @chat: its tools tell the
 * types of arguments; kept by reference until the parser is freed. */
OxOutputParser *ox_output_parser_new (
  const OxChatFormat *format, gboolean in_thinking, const OxChat *chat, OxOutputFunc func, gpointer user_data);
void ox_output_parser_free (OxOutputParser *parser);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (OxOutputParser, ox_output_parser_free)
/* Whether the format has marks at all: then control tokens have to be decoded visibly. */
gboolean ox_output_parser_wants_control (const OxChatFormat *format);
/* More text; control tokens are written as their strings. White space at either end of the answer and of the thinking is dropped, so the
 * last of it is held back until more comes. */
void ox_output_parser_push (OxOutputParser *parser, const char *text, gsize len);
/* Nothing more will come: what was held back is told. */
void ox_output_parser_finish (OxOutputParser *parser);
