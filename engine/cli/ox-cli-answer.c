/* An answer as it comes: shown to a person or written as JSON, and kept so that the conversation can go on.
 *
 * The answer's text goes to standard output. Thinking does, too, dimmed, when that is a terminal; a file or a pipe gets the answer alone.
 * Calls of tools are told on standard error.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-cli-answer.h"

#include <string.h>
#include <unistd.h>

#define DIM "\033[2m"
#define PLAIN "\033[0m"
/* Of arguments and results, on a terminal. */
#define MAX_SHOWN 300

/* ---- Rounds ---- */

typedef struct {
  char *id, *name, *arguments;
  char *result; /* NULL while it runs */
} Call;

typedef struct {
  GString *text, *reasoning;
  GArray *calls; /* Call */
} Round;

static void
call_clear (gpointer data)
{
  Call *call = data;

  g_free (call->id);
  g_free (call->name);
  g_free (call->arguments);
  g_free (call->result);
}

static void
round_free (gpointer data)
{
  Round *round = data;

  g_string_free (round->text, TRUE);
  g_string_free (round->reasoning, TRUE);
  g_array_unref (round->calls);
  g_free (round);
}

/* The round that goes on. Calls end one: what is said after them belongs to the next. */
static Round *
current_round (OxCliAnswer *answer, gboolean after_calls)
{
  Round *round = answer->rounds->len > 0 ? g_ptr_array_index (answer->rounds, answer->rounds->len - 1) : NULL;

  if (round != NULL && !(after_calls && round->calls->len > 0))
    return round;
  round = g_new0 (Round, 1);
  round->text = g_string_new (NULL);
  round->reasoning = g_string_new (NULL);
  round->calls = g_array_new (FALSE, FALSE, sizeof (Call));
  g_array_set_clear_func (round->calls, call_clear);
  g_ptr_array_add (answer->rounds, round);
  return round;
}

void
ox_cli_answer_init (OxCliAnswer *answer, OxCli *cli)
{
  *answer = (OxCliAnswer) { .cli = cli };
  answer->text = g_string_new (NULL);
  answer->rounds = g_ptr_array_new_with_free_func (round_free);
}

void
ox_cli_answer_clear (OxCliAnswer *answer)
{
  if (answer->text == NULL)
    return;
  g_string_free (answer->text, TRUE);
  g_ptr_array_unref (answer->rounds);
  answer->text = NULL;
}

static void
keep (OxCliAnswer *answer, const OxEvent *event)
{
  Round *round;

  switch (event->type) {
  case OX_EVENT_TEXT:
    g_string_append (current_round (answer, TRUE)->text, event->text);
    g_string_append (answer->text, event->text);
    break;
  case OX_EVENT_THINKING:
    g_string_append (current_round (answer, TRUE)->reasoning, event->text);
    break;
  case OX_EVENT_TOOL_CALL: {
    Call call = { g_strdup (event->tool_id), g_strdup (event->tool_name), g_strdup (event->tool_arguments), NULL };
    guint n;

    round = current_round (answer, FALSE);
    n = round->calls->len;
    /* A call that comes after a result without a word between may be of a new round; the conversation means the same. */
    if (n > 0 && g_array_index (round->calls, Call, n - 1).result != NULL)
      round = current_round (answer, TRUE);
    g_array_append_val (round->calls, call);
    break;
  }
  case OX_EVENT_TOOL_RESULT:
    round = current_round (answer, FALSE);
    if (round->calls->len > 0) {
      Call *call = &g_array_index (round->calls, Call, round->calls->len - 1);

      g_free (call->result);
      call->result = g_strdup (event->text);
    }
    break;
  case OX_EVENT_END:
    answer->reason = event->reason;
    answer->statistics = event->statistics;
    break;
  case OX_EVENT_CONTEXT:
  case OX_EVENT_PREFILL:
  case OX_EVENT_TOOL_MALFORMED:
  default:
    break;
  }
}

gboolean
ox_cli_answer_append (const OxCliAnswer *answer, OxChat *chat, GError **error)
{
  for (guint i = 0; i < answer->rounds->len; i++) {
    const Round *round = g_ptr_array_index (answer->rounds, i);

    ox_chat_append (chat, OX_ROLE_ASSISTANT, round->text->str);
    if (round->reasoning->len > 0)
      ox_chat_set_reasoning (chat, round->reasoning->str);
    /* A call that was stopped has not happened. */
    for (guint j = 0; j < round->calls->len; j++) {
      const Call *call = &g_array_index (round->calls, Call, j);

      if (call->result != NULL && !ox_chat_add_tool_call (chat, call->id, call->name, call->arguments, error))
        return FALSE;
    }
    for (guint j = 0; j < round->calls->len; j++) {
      const Call *call = &g_array_index (round->calls, Call, j);

      if (call->result != NULL)
        ox_chat_append_tool_result (chat, call->id, call->name, call->result);
    }
  }
  /* Turns alternate, also when nothing was said. */
  if (ox_chat_get_length (chat) == 0 || ox_chat_get_role (chat, ox_chat_get_length (chat) - 1) != OX_ROLE_ASSISTANT)
    ox_chat_append (chat, OX_ROLE_ASSISTANT, "");
  return TRUE;
}

/* ---- JSON ---- */

static const char *
reason_name (OxEndReason reason)
{
  static const char *const names[] = {
    [OX_END_STOP] = "stop",           [OX_END_LENGTH] = "length",
    [OX_END_CONTEXT] = "context",     [OX_END_TOOL_ROUNDS] = "tool_rounds",
    [OX_END_CANCELLED] = "cancelled", [OX_END_ERROR] = "error",
  };

  return names[reason];
}

static void
add_text (yyjson_mut_doc *doc, yyjson_mut_val *root, const char *key, const char *text)
{
  if (text != NULL)
    yyjson_mut_obj_add_strcpy (doc, root, key, text);
}

static void
write_event (OxCliAnswer *answer, const OxEvent *event)
{
  static const char *const names[] = {
    [OX_EVENT_CONTEXT] = "context",
    [OX_EVENT_PREFILL] = "prefill",
    [OX_EVENT_THINKING] = "thinking",
    [OX_EVENT_TEXT] = "text",
    [OX_EVENT_TOOL_CALL] = "tool_call",
    [OX_EVENT_TOOL_RESULT] = "tool_result",
    [OX_EVENT_TOOL_MALFORMED] = "tool_malformed",
    [OX_EVENT_END] = "end",
  };
  yyjson_mut_doc *doc = yyjson_mut_doc_new (NULL);
  yyjson_mut_val *root = yyjson_mut_obj (doc);

  yyjson_mut_doc_set_root (doc, root);
  yyjson_mut_obj_add_str (doc, root, "event", names[event->type]);
  if (event->type == OX_EVENT_CONTEXT || event->type == OX_EVENT_PREFILL) {
    yyjson_mut_obj_add_uint (doc, root, "done", event->done);
    yyjson_mut_obj_add_uint (doc, root, "total", event->total);
  } else if (event->type == OX_EVENT_TOOL_CALL || event->type == OX_EVENT_TOOL_RESULT) {
    add_text (doc, root, "id", event->tool_id);
    add_text (doc, root, "name", event->tool_name);
    if (event->tool_arguments != NULL)
      yyjson_mut_obj_add_val (doc, root, "arguments", yyjson_mut_rawcpy (doc, event->tool_arguments));
    if (event->type == OX_EVENT_TOOL_RESULT)
      yyjson_mut_obj_add_bool (doc, root, "failed", event->failed);
    add_text (doc, root, "text", event->text);
  } else if (event->type == OX_EVENT_END) {
    yyjson_mut_obj_add_str (doc, root, "reason", reason_name (event->reason));
    yyjson_mut_obj_add_strcpy (doc, root, "text", answer->text->str);
    ox_cli_json_statistics (doc, root, &event->statistics);
  } else {
    add_text (doc, root, "text", event->text);
  }
  ox_cli_write_json (answer->cli, doc);
}

/* ---- For people ---- */

/* On a terminal, control characters are commands to it, which a model is not to give. */
static void
write_text (OxCliAnswer *answer, const char *text)
{
  g_autoptr (GString) safe = NULL;

  if (!isatty (STDOUT_FILENO)) {
    ox_cli_write (answer->cli, text);
    return;
  }
  safe = g_string_new (NULL);
  for (const char *p = text; *p != '\0'; p = g_utf8_next_char (p)) {
    gunichar c = g_utf8_get_char (p);

    if (c != '\n' && c != '\t' && g_unichar_iscntrl (c))
      g_string_append (safe, "\357\277\275");
    else
      g_string_append_unichar (safe, c);
  }
  ox_cli_write (answer->cli, safe->str);
}

static void
set_dim (OxCliAnswer *answer, gboolean is_dim)
{
  if (answer->is_dim == is_dim)
    return;
  answer->is_dim = is_dim;
  ox_cli_write (answer->cli, is_dim ? DIM : PLAIN "\n\n");
}

/* One line about what goes on, cut and without line ends. */
static void
tell (OxCliAnswer *answer, const char *name, const char *text)
{
  g_autoptr (GString) line = g_string_new (NULL);
  guint n = 0;

  if (answer->cli->quiet)
    return;
  for (const char *p = text; *p != '\0' && n < MAX_SHOWN; p = g_utf8_next_char (p), n++) {
    gunichar c = g_utf8_get_char (p);

    g_string_append_unichar (line, g_unichar_iscntrl (c) ? ' ' : c);
  }
  fprintf (stderr, "[%s%s%s%s]\n", name, *text != '\0' ? " " : "", line->str, n == MAX_SHOWN ? "…" : "");
}

static void
show (OxCliAnswer *answer, const OxEvent *event)
{
  switch (event->type) {
  case OX_EVENT_TEXT:
    set_dim (answer, FALSE);
    write_text (answer, event->text);
    break;
  case OX_EVENT_THINKING:
    if (isatty (STDOUT_FILENO)) {
      set_dim (answer, TRUE);
      write_text (answer, event->text);
    }
    break;
  case OX_EVENT_TOOL_CALL:
    set_dim (answer, FALSE);
    if (event->tool_name != NULL)
      tell (answer, event->tool_name, event->tool_arguments != NULL ? event->tool_arguments : "");
    break;
  case OX_EVENT_TOOL_RESULT:
    tell (answer, event->failed ? "failed:" : "→", event->text);
    break;
  case OX_EVENT_TOOL_MALFORMED:
    set_dim (answer, FALSE);
    tell (answer, "a call that cannot be read:", event->text);
    break;
  case OX_EVENT_CONTEXT:
    if (!answer->cli->quiet)
      fprintf (stderr, "[the context is full: the first %u of %u messages are left out]\n", event->done, event->total);
    break;
  case OX_EVENT_END:
    set_dim (answer, FALSE);
    break;
  case OX_EVENT_PREFILL:
  default:
    break;
  }
}

void
ox_cli_answer_on_event (const OxEvent *event, gpointer user_data)
{
  OxCliAnswer *answer = user_data;

  keep (answer, event);
  if (answer->cli->json)
    write_event (answer, event);
  else
    show (answer, event);
}

void
ox_cli_answer_finish (OxCliAnswer *answer)
{
  const OxStatistics *s = &answer->statistics;
  g_autofree char *ahead = NULL;

  if (!answer->cli->json && (answer->text->len == 0 || answer->text->str[answer->text->len - 1] != '\n'))
    ox_cli_write (answer->cli, "\n");
  if (answer->cli->quiet || answer->cli->json || !isatty (STDERR_FILENO))
    return;
  if (s->drafted_tokens > 0)
    ahead = g_strdup_printf ("; %u of %u guessed right", s->accepted_tokens, s->drafted_tokens);
  fprintf (stderr, "[%u tokens read, %u of them known, %.1f/s; %u written, %.1f/s; first after %.2f s%s%s]\n",
           s->prompt_tokens, s->reused_tokens, ox_statistics_get_prefill_rate (s), s->answer_tokens,
           ox_statistics_get_decode_rate (s), s->first_token_seconds, ahead != NULL ? ahead : "",
           answer->reason == OX_END_LENGTH        ? "; stopped at --max-tokens"
           : answer->reason == OX_END_CONTEXT     ? "; the context is full"
           : answer->reason == OX_END_TOOL_ROUNDS ? "; too many calls of tools in a row"
                                                  : "");
}
