/* Writing a prompt piece by piece.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "text/ox-chat-render.h"

#include <string.h>

#include "text/ox-unicode.h"
#include "text/ox-utf8.h"

void
ox_render_control (OxRenderer *renderer, const char *text)
{
  GArray *pieces = renderer->prompt->pieces;
  OxPromptPiece *last = pieces->len > 0 ? &g_array_index (pieces, OxPromptPiece, pieces->len - 1) : NULL;

  if (*text == '\0')
    return;
  if (last && last->is_control) {
    char *joined = g_strconcat (last->text, text, NULL);

    g_free (last->text);
    last->text = joined;
  } else {
    OxPromptPiece piece = { g_strdup (text), TRUE };

    g_array_append_val (pieces, piece);
  }
}

void
ox_render_text (OxRenderer *renderer, const char *text, gsize len)
{
  OxPromptPiece piece = { NULL, FALSE };

  if (len == 0)
    return;
  if (memchr (text, '\0', len)) {
    GString *whole = g_string_new (NULL);

    /* A prompt's pieces end with U+0000. */
    for (gsize i = 0; i < len; i++)
      if (text[i])
        g_string_append_c (whole, text[i]);
      else
        g_string_append (whole, "\357\277\275");
    piece.text = g_string_free (whole, FALSE);
  } else {
    piece.text = g_strndup (text, len);
  }
  g_array_append_val (renderer->prompt->pieces, piece);
}

void
ox_render_string (OxRenderer *renderer, const char *text)
{
  ox_render_text (renderer, text, strlen (text));
}

void
ox_render_bos (OxRenderer *renderer)
{
  gint64 bos = renderer->tokenizer ? ox_tokenizer_get_bos (renderer->tokenizer) : -1;

  ox_render_control (renderer, bos >= 0 ? ox_tokenizer_get_token (renderer->tokenizer, (guint32) bos) : "<bos>");
}

const OxMessage *
ox_render_message (const OxRenderer *renderer, guint index)
{
  return ox_chat_get_message (renderer->chat, index);
}

gboolean
ox_render_is_last (const OxRenderer *renderer, guint index)
{
  return index + 1 == renderer->n_messages;
}

gboolean
ox_render_stays_open (const OxRenderer *renderer, guint index)
{
  return renderer->continue_last && ox_render_is_last (renderer, index) &&
         ox_render_message (renderer, index)->role == OX_ROLE_ASSISTANT;
}

gboolean
ox_render_wants_answer (const OxRenderer *renderer)
{
  return renderer->add_generation_prompt &&
         (renderer->n_messages == 0 || !ox_render_stays_open (renderer, renderer->n_messages - 1));
}

gboolean
ox_render_refuse (GError **error, const char *reason)
{
  g_set_error_literal (error, OX_ERROR, OX_ERROR_INVALID, reason);
  return FALSE;
}

/* ---- Text with placeholders ---- */

OxRichText *
ox_rich_text_new (void)
{
  OxRichText *rich = g_new (OxRichText, 1);

  rich->text = g_string_new (NULL);
  rich->marks = g_array_new (FALSE, FALSE, sizeof (OxTextRange));
  return rich;
}

void
ox_rich_text_free (OxRichText *rich)
{
  if (!rich)
    return;
  g_string_free (rich->text, TRUE);
  g_array_unref (rich->marks);
  g_free (rich);
}

void
ox_rich_text_add_mark (OxRichText *rich, const char *mark)
{
  OxTextRange range = { rich->text->len, rich->text->len + strlen (mark) };

  g_string_append (rich->text, mark);
  g_array_append_val (rich->marks, range);
}

void
ox_render_rich (OxRenderer *renderer, const OxRichText *rich, gsize begin, gsize end)
{
  for (guint i = 0; i < rich->marks->len; i++) {
    const OxTextRange *mark = &g_array_index (rich->marks, OxTextRange, i);
    g_autofree char *text = NULL;

    if (mark->begin < begin || mark->end > end)
      continue;
    ox_render_text (renderer, rich->text->str + begin, mark->begin - begin);
    text = g_strndup (rich->text->str + mark->begin, mark->end - mark->begin);
    ox_render_control (renderer, text);
    begin = mark->end;
  }
  if (begin < end)
    ox_render_text (renderer, rich->text->str + begin, end - begin);
}

/* ---- White space ---- */

gboolean
ox_python_is_space (gunichar c)
{
  return ox_unicode_is_space (c) || (c >= 0x1c && c <= 0x1f);
}

void
ox_python_trim (const char *text, gsize *begin, gsize *end)
{
  while (*begin < *end && ox_python_is_space (ox_utf8_get (text + *begin)))
    *begin += ox_utf8_length ((guint8) text[*begin]);
  while (*end > *begin) {
    const char *last = g_utf8_prev_char (text + *end);

    if (!ox_python_is_space (ox_utf8_get (last)))
      break;
    *end = (gsize) (last - text);
  }
}

void
ox_render_trimmed (OxRenderer *renderer, const char *text)
{
  gsize begin = 0, end = strlen (text);

  ox_python_trim (text, &begin, &end);
  ox_render_text (renderer, text + begin, end - begin);
}
