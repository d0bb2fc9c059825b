/* read_attachment: texts that the user attached, a piece at a time.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "tools/ox-tools-private.h"

#include <stdlib.h>
#include <string.h>

#include "text/ox-utf8.h"
#include "tools/ox-tool-json.h"

/* Bytes of text in one result; what is left is asked for by line. */
#define MAX_BYTES 12000
#define MAX_MATCHES 50
/* Bytes on each side of a match that are shown of a long line. */
#define MATCH_CONTEXT 200
#define LINES_PER_CHECK 4096

const char ox_tool_attachment_declaration[] =
  "{\"type\":\"function\",\"function\":{\"name\":\"read_attachment\","
  "\"description\":\"Reads the files that the user attached. Lines come with their numbers. "
  "Without arguments: tells which files there are.\","
  "\"parameters\":{\"type\":\"object\",\"properties\":{"
  "\"name\":{\"type\":\"string\",\"description\":\"Which file\"},"
  "\"from\":{\"type\":\"integer\",\"description\":\"First line to read, counted from 1\"},"
  "\"to\":{\"type\":\"integer\",\"description\":\"Last line to read\"},"
  "\"search\":{\"type\":\"string\",\"description\":\"Only lines that contain this text\"}"
  "},\"required\":[]}}}";

typedef struct {
  char *name;
  char *text;
  GArray *lines; /* gsize: where each begins; the last entry is where one more would */
  glong length;  /* in characters */
} Attachment;

struct _OxAttachments {
  GArray *items; /* Attachment */
};

static void
attachment_clear (gpointer data)
{
  Attachment *attachment = data;

  g_free (attachment->name);
  g_free (attachment->text);
  g_array_unref (attachment->lines);
}

OxAttachments *
ox_attachments_new (void)
{
  OxAttachments *attachments = g_new0 (OxAttachments, 1);

  attachments->items = g_array_new (FALSE, TRUE, sizeof (Attachment));
  g_array_set_clear_func (attachments->items, attachment_clear);
  return attachments;
}

void
ox_attachments_free (gpointer data)
{
  OxAttachments *attachments = data;

  if (!attachments)
    return;
  g_array_unref (attachments->items);
  g_free (attachments);
}

static const Attachment *
find_exact (const OxAttachments *attachments, const char *name)
{
  for (guint i = 0; i < attachments->items->len; i++)
    if (strcmp (g_array_index (attachments->items, Attachment, i).name, name) == 0)
      return &g_array_index (attachments->items, Attachment, i);
  return NULL;
}

void
ox_attachments_add (OxAttachments *attachments, const char *name, const char *text)
{
  Attachment item = { g_utf8_make_valid (name, -1), g_utf8_make_valid (text, -1),
                      g_array_new (FALSE, FALSE, sizeof (gsize)), 0 };
  const char *p = item.text;
  gsize at = 0;

  for (guint n = 2; find_exact (attachments, item.name); n++) {
    g_free (item.name);
    item.name = g_strdup_printf ("%s (%u)", name, n);
  }
  g_array_append_val (item.lines, at);
  while ((p = strchr (p, '\n')) != NULL) {
    at = (gsize) (++p - item.text);
    g_array_append_val (item.lines, at);
  }
  at = strlen (item.text);
  /* A last line without an end is one, too; an empty one is none. */
  if (g_array_index (item.lines, gsize, item.lines->len - 1) < at)
    g_array_append_val (item.lines, at);
  item.length = g_utf8_strlen (item.text, -1);
  g_array_append_val (attachments->items, item);
}

static guint
count_lines (const Attachment *attachment)
{
  return attachment->lines->len - 1;
}

/* Line @number, from 1, without its end. */
static const char *
get_line (const Attachment *attachment, guint number, gsize *len)
{
  gsize begin = g_array_index (attachment->lines, gsize, number - 1);
  gsize end = g_array_index (attachment->lines, gsize, number);

  if (end > begin && attachment->text[end - 1] == '\n')
    end--;
  if (end > begin && attachment->text[end - 1] == '\r')
    end--;
  *len = end - begin;
  return attachment->text + begin;
}

static char *
list (const OxAttachments *attachments)
{
  g_autoptr (GString) out = g_string_new (NULL);

  for (guint i = 0; i < attachments->items->len; i++) {
    const Attachment *item = &g_array_index (attachments->items, Attachment, i);

    g_string_append_printf (out, "%s: %u %s, %ld characters\n", item->name, count_lines (item),
                            count_lines (item) == 1 ? "line" : "lines", item->length);
  }
  return g_string_free (g_steal_pointer (&out), FALSE);
}

/* By name, without regard to case and folders where that is clear; the only one when no name is given. */
static const Attachment *
find (const OxAttachments *attachments, const char *name, GError **error)
{
  const Attachment *found;
  g_autofree char *names = NULL;

  if (!name && attachments->items->len == 1)
    return &g_array_index (attachments->items, Attachment, 0);
  found = name ? find_exact (attachments, name) : NULL;
  for (guint i = 0; name && !found && i < attachments->items->len; i++) {
    const Attachment *item = &g_array_index (attachments->items, Attachment, i);
    g_autofree char *base = g_path_get_basename (name);
    g_autofree char *wanted = g_utf8_casefold (base, -1);
    g_autofree char *folded = g_utf8_casefold (item->name, -1);

    if (strcmp (wanted, folded) == 0)
      found = item;
  }
  if (found)
    return found;
  names = list (attachments);
  if (name)
    g_set_error (error, OX_ERROR, OX_ERROR_NOT_FOUND, "there is no attached file “%s”. There is:\n%s", name, names);
  else
    g_set_error (error, OX_ERROR, OX_ERROR_INVALID, "which file? “name” is missing. There is:\n%s", names);
  return NULL;
}

/* Appends at most @room bytes of @text, whole characters. */
static void
append_cut (GString *out, const char *text, gsize len, gsize room)
{
  gsize end = MIN (len, room);

  while (end < len && end > 0 && ((guint8) text[end] & 0xc0) == 0x80)
    end--;
  g_string_append_len (out, text, (gssize) end);
  if (end < len)
    g_string_append_printf (out, " [%ld more characters in this line]",
                            g_utf8_strlen (text + end, (gssize) (len - end)));
}

static char *
read_lines (const Attachment *item, guint from, guint to)
{
  g_autoptr (GString) out = g_string_new (NULL);
  guint next = from;

  g_string_append_printf (out, "%s has %u %s.\n", item->name, count_lines (item),
                          count_lines (item) == 1 ? "line" : "lines");
  for (; next <= to && out->len < MAX_BYTES; next++) {
    gsize len;
    const char *line = get_line (item, next, &len);

    /* A line that does not fit begins the next piece, unless it is the only one. */
    if (next > from && out->len + len > MAX_BYTES)
      break;
    g_string_append_printf (out, "%u: ", next);
    append_cut (out, line, len, MAX_BYTES);
    g_string_append_c (out, '\n');
  }
  if (next <= to)
    g_string_append_printf (out, "[lines %u to %u were left out; go on with from = %u]\n", next, to, next);
  return g_string_free (g_steal_pointer (&out), FALSE);
}

/* Of a long line only what is around the match. @at: in bytes. */
static void
append_match (GString *out, guint number, const char *line, gsize len, gsize at)
{
  gsize begin = len > 2 * MATCH_CONTEXT && at > MATCH_CONTEXT ? at - MATCH_CONTEXT : 0;

  while (begin > 0 && ((guint8) line[begin] & 0xc0) == 0x80)
    begin--;
  g_string_append_printf (out, "%u: %s", number, begin > 0 ? "… " : "");
  append_cut (out, line + begin, len - begin, 2 * MATCH_CONTEXT);
  g_string_append_c (out, '\n');
}

static char *
search (const Attachment *item, guint from, guint to, const char *wanted, GCancellable *cancellable, GError **error)
{
  g_autoptr (GString) out = g_string_new (NULL);
  g_autofree char *folded_wanted = g_utf8_casefold (wanted, -1);
  guint matches = 0;

  for (guint number = from; number <= to; number++) {
    gsize len;
    const char *line = get_line (item, number, &len);
    g_autofree char *folded = g_utf8_casefold (line, (gssize) len);
    const char *match = strstr (folded, folded_wanted);

    if (number % LINES_PER_CHECK == 0 && g_cancellable_set_error_if_cancelled (cancellable, error))
      return NULL;
    if (!match)
      continue;
    /* Folding may change lengths a little; the place is only where the excerpt begins. */
    if (++matches <= MAX_MATCHES && out->len < MAX_BYTES)
      append_match (out, number, line, len, MIN ((gsize) (match - folded), len));
  }
  g_string_prepend (out, matches == 1 ? " line contains the text.\n" : " lines contain the text.\n");
  {
    g_autofree char *count = g_strdup_printf ("%u", matches);

    g_string_prepend (out, count);
  }
  if (matches > MAX_MATCHES)
    g_string_append_printf (out, "[only the first are shown]\n");
  return g_string_free (g_steal_pointer (&out), FALSE);
}

/* A line number, kept in 1…@last: models count past the end. */
static guint
get_line_number (const OxValue *arguments, const char *name, guint absent, guint last)
{
  const char *text = ox_tool_get_text (arguments, name);
  double number = text ? g_ascii_strtod (text, NULL) : absent;

  return (guint) CLAMP (number, 1, MAX (last, 1));
}

char *
ox_tool_attachment (const char *arguments, gpointer user_data, GCancellable *cancellable, GError **error)
{
  const OxAttachments *attachments = user_data;
  g_autoptr (OxValue) value = ox_value_parse (arguments, strlen (arguments), "arguments", error);
  const Attachment *item;
  const char *wanted;
  guint last, from, to;

  if (!value)
    return NULL;
  if (yyjson_obj_size (ox_value_get_root (value)) == 0)
    return list (attachments);
  item = find (attachments, ox_tool_get_text (value, "name"), error);
  if (!item)
    return NULL;
  last = count_lines (item);
  if (last == 0)
    return g_strdup_printf ("%s is empty.\n", item->name);
  from = get_line_number (value, "from", 1, last);
  to = get_line_number (value, "to", last, last);
  if (from > to) {
    g_set_error (error, OX_ERROR, OX_ERROR_INVALID, "“from” is %u and has to be at most “to”, which is %u", from, to);
    return NULL;
  }
  wanted = ox_tool_get_text (value, "search");
  if (wanted && wanted[0] != '\0')
    return search (item, from, to, wanted, cancellable, error);
  return read_lines (item, from, to);
}
