/* See ox-store-record.h.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-store-record.h"

#include <string.h>

#define TITLE_CHARS 60

OxConversationRecord *
ox_conversation_record_copy (const OxConversationRecord *record)
{
  OxConversationRecord *copy = g_memdup2 (record, sizeof *record);

  copy->id = g_strdup (record->id);
  copy->title = g_strdup (record->title);
  copy->draft = g_strdup (record->draft);
  copy->model_path = g_strdup (record->model_path);
  copy->settings = g_strdup (record->settings);
  return copy;
}

void
ox_conversation_record_free (OxConversationRecord *record)
{
  if (record == NULL)
    return;
  g_free (record->id);
  g_free (record->title);
  g_free (record->draft);
  g_free (record->model_path);
  g_free (record->settings);
  g_free (record);
}

void
ox_message_record_free (OxMessageRecord *record)
{
  if (record == NULL)
    return;
  g_free (record->id);
  g_free (record->conversation_id);
  g_free (record->text);
  g_free (record->thinking);
  g_free (record->error);
  g_free (record->error_details);
  g_free (record->model_name);
  g_clear_pointer (&record->tools, g_ptr_array_unref);
  g_free (record);
}

void
ox_search_hit_free (OxSearchHit *hit)
{
  if (hit == NULL)
    return;
  g_free (hit->conversation_id);
  g_free (hit->message_id);
  g_free (hit->markup);
  g_free (hit);
}

char *
ox_title_from_text (const char *text)
{
  const char *start = text + strspn (text, " \t\r\n#>*-`");
  gsize length = strcspn (start, "\r\n");
  g_autofree char *line = g_strstrip (g_strndup (start, length));
  char *end;
  char *cut;

  if (g_utf8_strlen (line, -1) <= TITLE_CHARS)
    return g_steal_pointer (&line);
  end = g_utf8_offset_to_pointer (line, TITLE_CHARS);
  *end = '\0';
  cut = strrchr (line, ' ');
  /* A text without spaces is cut where it must be. */
  if (cut != NULL && cut - line > (end - line) / 2)
    *cut = '\0';
  return g_strconcat (g_strchomp (line), "…", NULL);
}
