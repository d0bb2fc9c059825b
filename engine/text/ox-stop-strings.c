/* Stop strings: one Knuth-Morris-Pratt automaton for each. The longest beginning of any that the text ends with is held back.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "text/ox-stop-strings.h"

#include <string.h>

typedef struct {
  char *text;
  gsize len;
  gsize *
    borders; /* [len]: of the head of i + 1 bytes, how long its longest border is (a proper head that is also its tail) */
  gsize matched; /* bytes of the string that the text ends with; < len */
} Needle;

struct _OxStopStrings {
  GArray *needles;
  gboolean begins[256]; /* a string begins with this byte */
  GString *held;        /* what may be the beginning of a stop string */
  gboolean is_complete;
};

static void
needle_clear (gpointer data)
{
  Needle *needle = data;

  g_free (needle->text);
  g_free (needle->borders);
}

static gsize
step (const Needle *needle, gsize matched, char byte)
{
  while (matched > 0 && needle->text[matched] != byte)
    matched = needle->borders[matched - 1];
  return needle->text[matched] == byte ? matched + 1 : 0;
}

OxStopStrings *
ox_stop_strings_new (const char *const *stop)
{
  OxStopStrings *self = g_new0 (OxStopStrings, 1);

  self->needles = g_array_new (FALSE, FALSE, sizeof (Needle));
  g_array_set_clear_func (self->needles, needle_clear);
  self->held = g_string_new (NULL);
  for (; stop && *stop; stop++) {
    Needle needle = { .len = strlen (*stop) };

    if (needle.len == 0)
      continue;
    needle.text = g_strdup (*stop);
    needle.borders = g_new0 (gsize, needle.len);
    for (gsize i = 1; i < needle.len; i++)
      needle.borders[i] = step (&needle, needle.borders[i - 1], needle.text[i]);
    self->begins[(guint8) needle.text[0]] = TRUE;
    g_array_append_val (self->needles, needle);
  }
  return self;
}

void
ox_stop_strings_free (OxStopStrings *stop)
{
  if (!stop)
    return;
  g_array_unref (stop->needles);
  g_string_free (stop->held, TRUE);
  g_free (stop);
}

/* Takes one byte. Returns the length of the stop string that it completes, or 0; @longest: of the beginning to hold back. */
static gsize
take (OxStopStrings *stop, char byte, gsize *longest)
{
  gsize complete = 0;

  *longest = 0;
  for (guint i = 0; i < stop->needles->len; i++) {
    Needle *needle = &g_array_index (stop->needles, Needle, i);

    needle->matched = step (needle, needle->matched, byte);
    if (needle->matched == needle->len) {
      complete = MAX (complete, needle->len);
      needle->matched = 0;
    }
    *longest = MAX (*longest, needle->matched);
  }
  return complete;
}

/* Lets go of all that is held but the last @keep bytes. */
static void
release (OxStopStrings *stop, gsize keep, GString *out)
{
  gsize n = stop->held->len - keep;

  g_string_append_len (out, stop->held->str, (gssize) n);
  g_string_erase (stop->held, 0, (gssize) n);
}

gboolean
ox_stop_strings_push (OxStopStrings *stop, const char *text, gsize len, GString *out)
{
  gsize longest = stop->held->len;

  for (gsize i = 0; i < len && !stop->is_complete; i++) {
    gsize plain = i, complete;

    if (stop->held->len == 0) {
      while (i < len && !stop->begins[(guint8) text[i]])
        i++;
      g_string_append_len (out, text + plain, (gssize) (i - plain));
      if (i == len)
        break;
    }
    g_string_append_c (stop->held, text[i]);
    complete = take (stop, text[i], &longest);
    if (complete > 0) {
      stop->is_complete = TRUE;
      release (stop, complete, out);
      longest = 0;
      g_string_truncate (stop->held, 0);
    } else if (longest == 0) {
      release (stop, 0, out);
    }
  }
  release (stop, longest, out);
  return stop->is_complete;
}

void
ox_stop_strings_finish (OxStopStrings *stop, GString *out)
{
  g_string_append_len (out, stop->held->str, (gssize) stop->held->len);
  ox_stop_strings_reset (stop);
}

void
ox_stop_strings_reset (OxStopStrings *stop)
{
  g_string_truncate (stop->held, 0);
  stop->is_complete = FALSE;
  for (guint i = 0; i < stop->needles->len; i++)
    g_array_index (stop->needles, Needle, i).matched = 0;
}
