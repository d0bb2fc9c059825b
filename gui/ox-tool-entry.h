/* One call of a tool in an answer, as the app keeps and shows it.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/**
 * OxToolEntry:
 * @id: by which the result belongs to the call; may be NULL
 * @name: of the tool; NULL when the call could not be read
 * @arguments: a JSON object; or, when the call could not be read, what the model wrote
 * @result: text or JSON; NULL while there is none
 * @failed: @result says what went wrong
 * @round: calls of one round were made at once, those of the next one after their results
 * @text_offset, @thinking_offset: bytes of the answer's text and thinking that were there before the call
 */
typedef struct {
  char *id;
  char *name;
  char *arguments;
  char *result;
  gboolean failed;
  guint round;
  gsize text_offset;
  gsize thinking_offset;
} OxToolEntry;

OxToolEntry *ox_tool_entry_copy (const OxToolEntry *entry);
void ox_tool_entry_free (OxToolEntry *entry);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (OxToolEntry, ox_tool_entry_free)
gboolean ox_tool_entry_equal (const OxToolEntry *a, const OxToolEntry *b);

/* Arrays of entries, which own them. */
GPtrArray *ox_tool_entries_new (void);
GPtrArray *ox_tool_entries_copy (GPtrArray *entries);

/* The form in which the store keeps them; NULL for no entries. */
char *ox_tool_entries_to_json (GPtrArray *entries);
/* NULL when @json is not what ox_tool_entries_to_json() gives. */
GPtrArray *ox_tool_entries_from_json (const char *json);

/* The text at @key of the JSON object @json, numbers in their JSON form; NULL when there is none. */
char *ox_tool_json_lookup (const char *json, const char *key);
/* The members of the JSON object @json as key=value, or its one member "result" as it is; NULL when it is no object. */
char *ox_tool_json_to_list (const char *json);

G_END_DECLS
