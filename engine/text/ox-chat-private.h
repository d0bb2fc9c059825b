/* What a conversation is made of, for the formats.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "oxinfer.h"
#include "text/ox-value.h"

typedef enum {
  OX_PART_TEXT,
  OX_PART_IMAGE,
  OX_PART_AUDIO,
  OX_PART_VIDEO,
  OX_PART_UNKNOWN,
} OxPartKind;

typedef struct {
  OxPartKind kind;
  char *type; /* as in OpenAI-like JSON: "image_url", "input_audio"; templates tell some of them apart */
  char *text; /* of a text part, else NULL */
} OxPart;

typedef struct {
  char *id; /* or NULL */
  char *name;
  OxValue *arguments; /* an object */
} OxToolCall;

typedef enum {
  OX_CONTENT_NONE, /* the message has none, which some templates tell from an empty text */
  OX_CONTENT_TEXT,
  OX_CONTENT_PARTS,
  OX_CONTENT_OTHER, /* JSON of another kind, which every format refuses or prints in its own way */
} OxContentKind;

typedef struct {
  OxRole role;
  char *role_name; /* as in OpenAI-like JSON: also "developer" and roles that OxRole does not have */
  OxContentKind content;
  char *text;         /* the text, or all text parts joined; "" for none */
  GArray *parts;      /* OxPart; for OX_CONTENT_PARTS */
  OxValue *other;     /* the content as JSON; for OX_CONTENT_PARTS and OX_CONTENT_OTHER */
  char *reasoning;    /* or NULL */
  GArray *tool_calls; /* OxToolCall, or NULL */
  char *tool_call_id; /* of a result, or NULL */
  char *tool_name;    /* of a result, or NULL */
  OxValue *
    tool_responses; /* results within the assistant's message, as Google writes them: [{"name", "response"}], or NULL */
} OxMessage;

struct _OxChat {
  GArray *messages; /* OxMessage */
  GPtrArray *tools; /* OxValue: declarations */
  OxThinking thinking;
  OxThinking preserve_thinking; /* reasoning of earlier turns is shown again: DEFAULT as the format has it */
  char *reasoning_effort;       /* or NULL */
  gboolean add_vision_id;       /* pictures are numbered, in formats that can */
};

/* An array of OxPart. */
GArray *ox_parts_new (void);
const OxMessage *ox_chat_get_message (const OxChat *chat, guint index);
/* A copy without its messages: tools and settings. */
OxChat *ox_chat_copy_settings (const OxChat *chat);
/* Appends a copy of @message. */
void ox_chat_append_message (OxChat *chat, const OxMessage *message);

/* A conversation from OpenAI-like JSON: {"messages": […], "tools": […], "options": {"enable_thinking", "preserve_thinking",
 * "reasoning_effort", "add_vision_id"}}; what is absent is left undefined, what is null counts as absent. */
OxChat *ox_chat_new_from_json (const char *json, gsize len, GError **error);
