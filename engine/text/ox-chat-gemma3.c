/* Gemma 3's chat format.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <string.h>

#include "text/ox-chat-render.h"

/* The format has no system turn: such text stands before the first message, untrimmed; of several parts only the first. */
static void
render_system (OxRenderer *renderer)
{
  const OxMessage *system = ox_render_message (renderer, 0);

  if (system->content == OX_CONTENT_PARTS) {
    const OxPart *part = system->parts->len > 0 ? &g_array_index (system->parts, OxPart, 0) : NULL;

    ox_render_string (renderer, part && part->text ? part->text : "");
  } else {
    ox_render_string (renderer, system->text);
  }
  ox_render_control (renderer, "\n\n");
}

static void
render_content (OxRenderer *renderer, const OxMessage *message)
{
  if (message->content != OX_CONTENT_PARTS) {
    ox_render_trimmed (renderer, message->text);
    return;
  }
  for (guint i = 0; i < message->parts->len; i++) {
    const OxPart *part = &g_array_index (message->parts, OxPart, i);

    if (part->kind == OX_PART_IMAGE && strcmp (part->type, "image") == 0)
      ox_render_control (renderer, "<start_of_image>");
    else if (part->kind == OX_PART_TEXT)
      ox_render_trimmed (renderer, part->text);
  }
}

gboolean
ox_render_gemma3 (OxRenderer *renderer, GError **error)
{
  guint first = renderer->n_messages > 0 && strcmp (ox_render_message (renderer, 0)->role_name, "system") == 0 ? 1 : 0;

  ox_render_bos (renderer);
  for (guint i = first; i < renderer->n_messages; i++) {
    const OxMessage *message = ox_render_message (renderer, i);

    if ((strcmp (message->role_name, "user") == 0) != ((i - first) % 2 == 0)) {
      g_set_error (
        error, OX_ERROR, OX_ERROR_INVALID,
        "Messages of the user and of the assistant have to alternate in this model's chat format, beginning with the "
        "user's: message %u is out of turn",
        i + 1);
      return FALSE;
    }
    if (message->content == OX_CONTENT_OTHER)
      return ox_render_refuse (error, "A message's content is neither a text nor a list of parts");
    ox_render_control (renderer, "<start_of_turn>");
    ox_render_string (renderer, message->role == OX_ROLE_ASSISTANT ? "model" : message->role_name);
    ox_render_control (renderer, "\n");
    if (i == first && first == 1)
      render_system (renderer);
    render_content (renderer, message);
    if (!ox_render_stays_open (renderer, i))
      ox_render_control (renderer, "<end_of_turn>\n");
  }
  if (ox_render_wants_answer (renderer))
    ox_render_control (renderer, "<start_of_turn>model\n");
  return TRUE;
}
