/* Rows of the store as plain data, to pass between its thread and the main thread.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-message.h"

G_BEGIN_DECLS

/**
 * OxConversationRecord:
 * @id: UUID
 * @title: from the user or from the first message; may be NULL
 * @title_is_custom: given by the user
 * @created, @updated: microseconds since 1970, UTC
 * @draft, @model_path: may be NULL
 * @settings: a{sv} in GVariant text form, or NULL
 * @n_messages: when listed
 */
typedef struct {
  char *id;
  char *title;
  gboolean title_is_custom;
  gboolean pinned;
  gint64 created;
  gint64 updated;
  char *draft;
  char *model_path;
  char *settings;
  guint n_messages;
} OxConversationRecord;

OxConversationRecord *ox_conversation_record_copy (const OxConversationRecord *record);
/* A title for a conversation that begins with @text: the first line with something in it, cut between words if it is long. Any
 * thread. Free with g_free(). */
char *ox_title_from_text (const char *text);

void ox_conversation_record_free (OxConversationRecord *record);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (OxConversationRecord, ox_conversation_record_free)

/**
 * OxMessageRecord:
 * @position: order in the conversation
 * @tools: of OxToolEntry, or NULL
 * @dropped_messages: older ones that the model did not see
 * @damaged: a part of the row could not be read; the rest is here
 */
typedef struct {
  char *id;
  char *conversation_id;
  gint64 position;
  OxRole role;
  char *text;
  char *thinking;
  OxMessageState state;
  int error_code;
  char *error;
  char *error_details;
  char *model_name;
  gint64 created;
  OxEndReason end_reason;
  OxStatistics statistics;
  GPtrArray *tools;
  double thinking_seconds;
  guint dropped_messages;
  gboolean damaged;
} OxMessageRecord;

void ox_message_record_free (OxMessageRecord *record);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (OxMessageRecord, ox_message_record_free)

/* A copy of @message as it is now. */
OxMessageRecord *ox_message_to_record (OxMessage *message, const char *conversation_id, gint64 position);
OxMessage *ox_message_new_from_record (const OxMessageRecord *record);

/**
 * OxSearchHit:
 * @message_id: NULL when the title was found
 * @markup: Pango markup of the place, words found in <b>
 */
typedef struct {
  char *conversation_id;
  char *message_id;
  char *markup;
} OxSearchHit;

void ox_search_hit_free (OxSearchHit *hit);

G_END_DECLS
