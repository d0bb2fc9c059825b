/* What of a conversation fits into the context, told before it is sent: a chat as the tokens of a prompt, with the oldest turns left out
 * where the session's policy allows.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-session-private.h"
#include "text/ox-chat-private.h"

/* The part of the context that is kept free for the answer. */
#define ROOM_PART 4

void
ox_session_prompt_clear (OxSessionPrompt *prompt)
{
  g_clear_pointer (&prompt->ids, g_array_unref);
}

void
ox_session_set_context_policy (OxSession *session, OxContextPolicy policy)
{
  session->policy = policy;
}

guint
ox_session_common (OxSession *session, const GArray *ids)
{
  guint n = MIN (ids->len, session->tokens->len), common = 0;

  while (common < n && g_array_index (ids, guint32, common) == g_array_index (session->tokens, guint32, common))
    common++;
  return common;
}

/* ---- Rendering ---- */

static gboolean
has_tool (const OxChat *chat, const char *name)
{
  for (guint i = 0; i < chat->tools->len; i++) {
    yyjson_val *root = ox_value_get_root (g_ptr_array_index (chat->tools, i));

    if (yyjson_equals_str (yyjson_obj_get (yyjson_obj_get (root, "function"), "name"), name))
      return TRUE;
  }
  return FALSE;
}

OxChat *
ox_session_add_tools (OxSession *session, const OxChat *chat)
{
  OxChat *copy = ox_chat_copy (chat);

  /* The toolbox has checked its declarations. */
  for (guint i = 0; session->toolbox != NULL && i < ox_toolbox_get_length (session->toolbox); i++)
    if (!has_tool (copy, ox_toolbox_get_name (session->toolbox, i)))
      ox_chat_add_tool (copy, ox_toolbox_get_declaration (session->toolbox, i), NULL);
  return copy;
}

/* ---- Leaving out ---- */

/* Where turns begin that may be left out: each is a question with all that follows up to the next one, calls and their results too. The
 * last element is where the last question begins, which always stays, as do system messages at the beginning. */
static GArray *
find_turns (const OxChat *chat)
{
  GArray *turns = g_array_new (FALSE, FALSE, sizeof (guint));
  guint n = ox_chat_get_length (chat), first = 0;

  while (first < n && ox_chat_get_role (chat, first) == OX_ROLE_SYSTEM)
    first++;
  for (guint i = first; i < n; i++)
    if (i == first || ox_chat_get_role (chat, i) == OX_ROLE_USER)
      g_array_append_val (turns, i);
  return turns;
}

/* @chat without its first @n_turns turns. */
static OxChat *
without_turns (const OxChat *chat, const GArray *turns, guint n_turns)
{
  OxChat *rest = ox_chat_copy_settings (chat);
  guint begin = g_array_index (turns, guint, 0), end = g_array_index (turns, guint, n_turns);

  for (guint i = 0; i < ox_chat_get_length (chat); i++)
    if (i < begin || i >= end)
      ox_chat_append_message (rest, ox_chat_get_message (chat, i));
  return rest;
}

/* Replaces the ids in @prompt by those without @n_turns turns. */
static gboolean
encode_without (OxSession *session,
                const OxChat *chat,
                const GArray *turns,
                guint n_turns,
                OxSessionPrompt *prompt,
                GCancellable *cancellable,
                GError **error)
{
  g_autoptr (OxChat) rest = without_turns (chat, turns, n_turns);
  GArray *ids = ox_model_encode_chat (session->model, rest, &prompt->in_thinking, cancellable, error);

  if (ids == NULL)
    return FALSE;
  g_clear_pointer (&prompt->ids, g_array_unref);
  prompt->ids = ids;
  prompt->n_dropped = g_array_index (turns, guint, n_turns) - g_array_index (turns, guint, 0);
  return TRUE;
}

/* The fewest turns to leave out for at most @limit tokens; all that may be when these do not suffice. */
static gboolean
drop_down_to (OxSession *session,
              const OxChat *chat,
              const GArray *turns,
              guint limit,
              OxSessionPrompt *prompt,
              GCancellable *cancellable,
              GError **error)
{
  guint low = 1, high = turns->len - 1;

  while (low < high) {
    guint middle = low + (high - low) / 2;

    if (!encode_without (session, chat, turns, middle, prompt, cancellable, error))
      return FALSE;
    if (prompt->ids->len <= limit)
      high = middle;
    else
      low = middle + 1;
  }
  return encode_without (session, chat, turns, low, prompt, cancellable, error);
}

/* How many turns make up @n_dropped messages; 0: none do. */
static guint
turns_dropped (const GArray *turns, guint n_dropped)
{
  for (guint i = 1; i < turns->len; i++)
    if (g_array_index (turns, guint, i) - g_array_index (turns, guint, 0) == n_dropped)
      return i;
  return 0;
}

gboolean
ox_session_make_prompt (
  OxSession *session, const OxChat *chat, OxSessionPrompt *prompt, GCancellable *cancellable, GError **error)
{
  guint context_length = session->state->options.context_length;
  guint limit = context_length - context_length / ROOM_PART;
  g_autoptr (GArray) turns = NULL;
  guint again;

  *prompt = (OxSessionPrompt) { 0 };
  prompt->ids = ox_model_encode_chat (session->model, chat, &prompt->in_thinking, cancellable, error);
  if (prompt->ids == NULL)
    return FALSE;
  prompt->n_whole = prompt->ids->len;
  if (session->policy != OX_CONTEXT_DROP_OLDEST || prompt->ids->len <= limit)
    return TRUE;
  turns = find_turns (chat);
  if (turns->len < 2)
    return TRUE;
  /* What was left out last time stays out: otherwise every turn would have to be read anew. */
  again = turns_dropped (turns, session->n_dropped);
  if (again > 0) {
    if (!encode_without (session, chat, turns, again, prompt, cancellable, error))
      return FALSE;
    if (prompt->ids->len <= limit)
      return TRUE;
  }
  /* For the same reason more goes than has to, so that the next turns find room; unless the last question leaves none anyway. */
  if (!drop_down_to (session, chat, turns, limit - limit / 4, prompt, cancellable, error))
    return FALSE;
  return prompt->ids->len <= limit - limit / 4 ||
         drop_down_to (session, chat, turns, limit, prompt, cancellable, error);
}

gboolean
ox_session_measure (
  OxSession *session, const OxChat *chat, OxContextUse *use, GCancellable *cancellable, GError **error)
{
  g_autoptr (OxChat) whole = ox_session_add_tools (session, chat);
  g_auto (OxSessionPrompt) prompt = { 0 };

  *use = (OxContextUse) { .context_length = session->state->options.context_length };
  if (!ox_session_make_prompt (session, whole, &prompt, cancellable, error))
    return FALSE;
  use->prompt_tokens = prompt.n_whole;
  use->dropped_messages = prompt.n_dropped;
  use->dropped_tokens = prompt.n_whole - MIN (prompt.ids->len, prompt.n_whole);
  if (prompt.ids->len > 0)
    use->reused_tokens =
      ox_session_get_reusable (session, MIN (ox_session_common (session, prompt.ids), prompt.ids->len - 1));
  return TRUE;
}
