/* oxinfer-cli chat and generate: text from a model.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-cli.h"

#include <string.h>
#include <unistd.h>

typedef struct {
  OxCli *cli;
  GString *text; /* the answer so far */
  OxEndReason reason;
  OxStatistics statistics;
} Answer;

static const char *
reason_name (OxEndReason reason)
{
  static const char *const names[] = { "stop", "length", "context", "cancelled", "error" };

  return names[reason];
}

static void
write_event (Answer *answer, const OxEvent *event)
{
  yyjson_mut_doc *doc = yyjson_mut_doc_new (NULL);
  yyjson_mut_val *root = yyjson_mut_obj (doc);

  yyjson_mut_doc_set_root (doc, root);
  switch (event->type) {
  case OX_EVENT_PREFILL:
    yyjson_mut_obj_add_str (doc, root, "event", "prefill");
    yyjson_mut_obj_add_uint (doc, root, "done", event->done);
    yyjson_mut_obj_add_uint (doc, root, "total", event->total);
    break;
  case OX_EVENT_THINKING:
    yyjson_mut_obj_add_str (doc, root, "event", "thinking");
    yyjson_mut_obj_add_strcpy (doc, root, "text", event->text);
    break;
  case OX_EVENT_TEXT:
    yyjson_mut_obj_add_str (doc, root, "event", "text");
    yyjson_mut_obj_add_strcpy (doc, root, "text", event->text);
    break;
  case OX_EVENT_END:
  default:
    yyjson_mut_obj_add_str (doc, root, "event", "end");
    yyjson_mut_obj_add_str (doc, root, "reason", reason_name (event->reason));
    yyjson_mut_obj_add_strcpy (doc, root, "text", answer->text->str);
    ox_cli_json_statistics (doc, root, &event->statistics);
    break;
  }
  ox_cli_write_json (answer->cli, doc);
}

static void
on_event (const OxEvent *event, gpointer user_data)
{
  Answer *answer = user_data;

  if (event->type == OX_EVENT_TEXT) {
    g_string_append (answer->text, event->text);
    if (!answer->cli->json)
      ox_cli_write (answer->cli, event->text);
  } else if (event->type == OX_EVENT_END) {
    answer->reason = event->reason;
    answer->statistics = event->statistics;
  }
  if (answer->cli->json)
    write_event (answer, event);
}

/* Ends the answer's last line, and tells a person at a terminal how fast it was. */
static void
finish_answer (Answer *answer)
{
  const OxStatistics *s = &answer->statistics;

  if (!answer->cli->json && (answer->text->len == 0 || answer->text->str[answer->text->len - 1] != '\n'))
    ox_cli_write (answer->cli, "\n");
  if (!answer->cli->quiet && !answer->cli->json && isatty (STDERR_FILENO))
    fprintf (stderr, "[%u tokens read, %u of them known, %.1f/s; %u written, %.1f/s; first after %.2f s%s]\n",
             s->prompt_tokens, s->reused_tokens, ox_statistics_get_prefill_rate (s), s->answer_tokens,
             ox_statistics_get_decode_rate (s), s->first_token_seconds,
             answer->reason == OX_END_LENGTH    ? "; stopped at --max-tokens"
             : answer->reason == OX_END_CONTEXT ? "; the context is full"
                                                : "");
}

/* Opens what both subcommands need. */
static OxSession *
open_session (OxCli *cli, OxModel **model, OxSampling *sampling, GError **error)
{
  *model = ox_cli_load (cli, error);
  if (*model == NULL)
    return NULL;
  ox_cli_get_sampling (cli, *model, sampling);
  if (ox_model_get_plan (*model)->note != NULL && !cli->quiet && isatty (STDERR_FILENO))
    fprintf (stderr, "%s\n", ox_model_get_plan (*model)->note);
  return ox_session_new (*model, error);
}

/* ---- generate ---- */

/* The arguments in one, with standard input in the place of “-”, or standard input alone. It is not read unless it is asked for: in a
 * script it may be a pipe that nobody ever closes. */
static char *
make_prompt (OxCli *cli, char **arguments, GError **error)
{
  g_autoptr (GString) prompt = g_string_new (NULL);

  if (arguments == NULL)
    return ox_cli_read_all (cli, error);
  for (char **argument = arguments; *argument != NULL; argument++) {
    g_autofree char *input = NULL;

    if (strcmp (*argument, "-") == 0) {
      input = ox_cli_read_all (cli, error);
      if (input == NULL)
        return NULL;
    }
    if (argument != arguments)
      g_string_append (prompt, input != NULL ? "\n\n" : " ");
    g_string_append (prompt, input != NULL ? input : *argument);
  }
  return g_string_free (g_steal_pointer (&prompt), FALSE);
}

int
ox_cli_generate (OxCli *cli, int argc, char **argv)
{
  g_autofree char *system_text = NULL;
  g_auto (GStrv) rest = NULL;
  gboolean raw = FALSE;
  const GOptionEntry entries[] = {
    { "system", 's', 0, G_OPTION_ARG_FILENAME, &system_text, "What the model is told before the conversation", "TEXT" },
    { "raw", 0, 0, G_OPTION_ARG_NONE, &raw, "Continue the text as it is, without the chat format; control tokens count",
      NULL },
    { "json", 0, 0, G_OPTION_ARG_NONE, &cli->json,
      "One JSON object a line for each event; the last has all of the text", NULL },
    { "quiet", 'q', 0, G_OPTION_ARG_NONE, &cli->quiet, "No progress and no statistics", NULL },
    { NULL },
  };
  g_autofree char *prompt = NULL;
  g_autoptr (OxModel) model = NULL;
  g_autoptr (OxSession) session = NULL;
  g_autoptr (OxChat) chat = ox_chat_new ();
  g_autoptr (GString) text = g_string_new (NULL);
  g_autoptr (GError) error = NULL;
  Answer answer = { .cli = cli, .text = text };
  OxSampling sampling;
  int exit_code;
  gboolean ok;

  if (!ox_cli_parse (
        cli, argc, argv, OX_CLI_OPTIONS_MODEL | OX_CLI_OPTIONS_LOAD | OX_CLI_OPTIONS_SAMPLE, entries, "[PROMPT]",
        "The prompt is the argument, in which - stands for standard input, or standard input alone.\n\n"
        "Examples:\n"
        "  oxinfer-cli generate --model model.gguf \"Why is the sky blue?\"\n"
        "  oxinfer-cli generate --model model.gguf \"Summarise:\" - < letter.txt\n"
        "  oxinfer-cli generate --model model.gguf --raw --max-tokens 40 \"Once upon a time\"\n"
        "  oxinfer-cli generate --model model.gguf --json \"Hello\" | jq -r 'select(.event == \"end\").text'",
        &rest, &exit_code))
    return exit_code;
  if (cli->model_path == NULL)
    return ox_cli_usage (cli, "which model? --model is missing");
  if (raw && system_text != NULL)
    return ox_cli_usage (cli, "--system belongs to the chat format, which --raw leaves out");

  ox_cli_catch_signals (cli);
  prompt = make_prompt (cli, rest, &error);
  if (prompt == NULL)
    return ox_cli_fail (cli, error);
  if (!raw) {
    /* The end of the last line of a file or of echo is not part of what was asked. */
    g_strchomp (prompt);
    if (*prompt == '\0')
      return ox_cli_usage (cli, "the prompt is empty");
  }

  session = open_session (cli, &model, &sampling, &error);
  if (session == NULL)
    return ox_cli_fail (cli, error);
  if (raw) {
    ok = ox_session_complete (session, prompt, &sampling, on_event, &answer, cli->cancellable, &error);
  } else {
    if (system_text != NULL)
      ox_chat_append (chat, OX_ROLE_SYSTEM, system_text);
    ox_chat_append (chat, OX_ROLE_USER, prompt);
    ok = ox_session_generate (session, chat, &sampling, on_event, &answer, cli->cancellable, &error);
  }
  if (ok || text->len > 0)
    finish_answer (&answer);
  if (!ok || cli->output_error != 0)
    return ox_cli_fail (cli, error);
  return OX_CLI_OK;
}

/* ---- chat ---- */

/* Rebuilt from the texts, since a chat only grows. */
static void
start_chat (OxChat **chat, const char *system_text)
{
  g_clear_pointer (chat, ox_chat_free);
  *chat = ox_chat_new ();
  if (system_text != NULL)
    ox_chat_append (*chat, OX_ROLE_SYSTEM, system_text);
}

int
ox_cli_chat (OxCli *cli, int argc, char **argv)
{
  g_autofree char *system_text = NULL;
  const GOptionEntry entries[] = {
    { "system", 's', 0, G_OPTION_ARG_FILENAME, &system_text, "What the model is told before the conversation", "TEXT" },
    { "json", 0, 0, G_OPTION_ARG_NONE, &cli->json, "One JSON object a line for each event", NULL },
    { "quiet", 'q', 0, G_OPTION_ARG_NONE, &cli->quiet, "No progress and no statistics", NULL },
    { NULL },
  };
  g_autoptr (OxModel) model = NULL;
  g_autoptr (OxSession) session = NULL;
  g_autoptr (OxChat) chat = NULL;
  g_autoptr (GString) pending = g_string_new (NULL);
  g_autoptr (GError) error = NULL;
  gboolean interactive = isatty (STDIN_FILENO);
  OxSampling sampling;
  int exit_code;

  if (!ox_cli_parse (
        cli, argc, argv, OX_CLI_OPTIONS_MODEL | OX_CLI_OPTIONS_LOAD | OX_CLI_OPTIONS_SAMPLE, entries, NULL,
        "Every line is a message; a line that ends with \\ goes on in the next one. /reset forgets the conversation,\n"
        "/quit or Ctrl+D ends it. Ctrl+C stops an answer; at the prompt it ends the program.\n\n"
        "Examples:\n"
        "  oxinfer-cli chat --model model.gguf\n"
        "  oxinfer-cli chat --model model.gguf --system \"You answer in one sentence.\" --temperature 0.7\n"
        "  printf 'My name is Ada.\\nWhat is my name?\\n' | oxinfer-cli chat --model model.gguf --json",
        NULL, &exit_code))
    return exit_code;
  if (cli->model_path == NULL)
    return ox_cli_usage (cli, "which model? --model is missing");

  ox_cli_catch_signals (cli);
  session = open_session (cli, &model, &sampling, &error);
  if (session == NULL)
    return ox_cli_fail (cli, error);
  start_chat (&chat, system_text);

  for (;;) {
    g_autoptr (GString) message = g_string_new (NULL);
    g_autoptr (GString) text = g_string_new (NULL);
    Answer answer = { .cli = cli, .text = text };
    char *line;

    if (interactive)
      fputs ("> ", stderr);
    while ((line = ox_cli_read_line (cli, pending, &error)) != NULL) {
      gsize len = strlen (line);
      gboolean goes_on = len > 0 && line[len - 1] == '\\';

      g_string_append_len (message, line, (gssize) (goes_on ? len - 1 : len));
      g_free (line);
      if (!goes_on)
        break;
      g_string_append_c (message, '\n');
    }
    if (error != NULL || (line == NULL && message->len == 0)) {
      if (interactive)
        fputc ('\n', stderr);
      return error != NULL ? ox_cli_fail (cli, error) : OX_CLI_OK;
    }
    g_strstrip (message->str);
    if (*message->str == '\0')
      continue;
    if (strcmp (message->str, "/quit") == 0)
      return OX_CLI_OK;
    if (strcmp (message->str, "/reset") == 0) {
      start_chat (&chat, system_text);
      continue;
    }

    ox_chat_append (chat, OX_ROLE_USER, message->str);
    if (!ox_session_generate (session, chat, &sampling, on_event, &answer, cli->cancellable, &error)) {
      gboolean stopped = g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED) && cli->output_error == 0;

      if (text->len > 0)
        finish_answer (&answer);
      if (!stopped || !interactive || ox_cli_terminated ())
        return ox_cli_fail (cli, error);
      /* Stopped by the person, who stays in the conversation. What was said stands. */
      g_clear_error (&error);
      g_cancellable_reset (cli->cancellable);
    } else {
      finish_answer (&answer);
    }
    if (cli->output_error != 0)
      return ox_cli_fail (cli, NULL);
    ox_chat_append (chat, OX_ROLE_ASSISTANT, text->str);
  }
}
