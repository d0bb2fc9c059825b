/* What the parsers of the models' notations share.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "text/ox-chat-render.h"
#include "text/ox-output-parser.h"
#include "text/ox-utf8.h"

/* A call that turns out to be broken late is read again from its first end mark on. More often than this, what follows counts as
 * part of the broken call, so that the time stays linear. */
#define OX_PARSER_MAX_REWINDS 16

struct _OxOutputParser {
  OxOutputSyntax syntax;
  const OxChat *chat;
  OxOutputFunc func;
  gpointer user_data;

  OxUtf8Stream utf8;
  GString *arrived; /* whole characters of one piece */
  GString *buffer;  /* whole characters */
  gsize at;         /* what is before it has been told; within a call: where the call begins, behind its opening tag */
  gsize scan;       /* what is before it has been looked at */
  gboolean is_final;

  /* The stretch of text between two tags, stripped of white space at both ends. */
  gboolean has_begun;
  GString *held; /* white space that may turn out to be inside */
  GString *told; /* scratch */

  int state; /* the notation's own */
  guint rewinds;
  gboolean in_string;            /* Gemma 4: within <|"|> marks */
  GString *name, *key, *members; /* Qwen: of the call */
  gsize value_begin, value_end;  /* Qwen: of the parameter, in the buffer */
};

void ox_parser_start_gemma4 (OxOutputParser *parser, gboolean in_thinking);
void ox_parser_run_gemma4 (OxOutputParser *parser);
void ox_parser_start_qwen (OxOutputParser *parser, gboolean in_thinking);
void ox_parser_run_qwen (OxOutputParser *parser);

enum {
  OX_TAG_NONE = -1,
  OX_TAG_MORE = -2, /* it depends on what comes */
};

/* Which of @n_tags begins at @place of the buffer, an index or one of the above. */
int ox_parser_match (const OxOutputParser *parser, gsize place, const char *const *tags, gsize n_tags);
/* Moves scan to the next tag and returns which it is. OX_TAG_NONE: there is none, and scan is where one may begin. */
int ox_parser_find (OxOutputParser *parser, const char *const *tags, gsize n_tags);
/* Tells the text up to the next tag as @type and goes behind the tag. OX_TAG_NONE: more has to come. */
int ox_parser_next_tag (OxOutputParser *parser, OxOutputType type, const char *const *tags, gsize n_tags);
/* A tag that text is stripped at. */
void ox_parser_end_segment (OxOutputParser *parser);
/* Moves scan over white space. */
void ox_parser_skip_space (OxOutputParser *parser);
/* Everything up to @place is done with. */
void ox_parser_go (OxOutputParser *parser, gsize place, int state);

/* @arguments: JSON text. FALSE: they are no object that JSON can hold, and nothing is told. */
gboolean ox_parser_tell_call (OxOutputParser *parser, const char *name, const char *arguments, gsize len);
/* The text from at to @end. */
void ox_parser_tell_malformed (OxOutputParser *parser, gsize end);
