/* oxinfer-cli chat: a conversation, with tools and attached files.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-cli-answer.h"

#include <string.h>
#include <unistd.h>

/* Calls of tools in a row, before a person is asked again. */
#define MAX_ROUNDS 10

typedef struct {
  OxCli *cli;
  char *system_text;
  char *thinking_name;
  char **attached; /* paths */
  gboolean tools;
  gboolean drop_oldest;

  OxThinking thinking;
  gboolean interactive;
  GString *pending;   /* input that was read beyond the last line */
  GPtrArray *names;   /* of the attached files */
  GPtrArray *texts;   /* what is in them */
  OxToolbox *toolbox; /* or NULL */
  OxChat *chat;
  gboolean has_attached; /* the conversation knows of the files */
} Chat;

static void
chat_clear (Chat *chat)
{
  g_free (chat->system_text);
  g_free (chat->thinking_name);
  g_strfreev (chat->attached);
  if (chat->pending != NULL)
    g_string_free (chat->pending, TRUE);
  g_clear_pointer (&chat->names, g_ptr_array_unref);
  g_clear_pointer (&chat->texts, g_ptr_array_unref);
  g_clear_pointer (&chat->toolbox, ox_toolbox_unref);
  g_clear_pointer (&chat->chat, ox_chat_free);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Chat, chat_clear)

/* ---- Tools and files ---- */

static gboolean
read_attached (Chat *chat, GError **error)
{
  chat->names = g_ptr_array_new_with_free_func (g_free);
  chat->texts = g_ptr_array_new_with_free_func (g_free);
  for (char **path = chat->attached; path != NULL && *path != NULL; path++) {
    char *text = ox_cli_read_file (chat->cli, *path, error);

    if (text == NULL)
      return FALSE;
    g_ptr_array_add (chat->names, g_filename_display_basename (*path));
    g_ptr_array_add (chat->texts, text);
  }
  return TRUE;
}

/* Asks a person whether a tool may do what it is about to. */
static gboolean
ask (const char *name, const char *arguments, gpointer user_data, GCancellable *cancellable)
{
  Chat *chat = user_data;
  g_autofree char *line = NULL;

  if (!chat->interactive)
    return FALSE;
  fprintf (stderr, "Allow %s %s? [y/N] ", name, arguments);
  line = ox_cli_read_line (chat->cli, chat->pending, NULL);
  return line != NULL && (g_ascii_strcasecmp (g_strstrip (line), "y") == 0 || g_ascii_strcasecmp (line, "yes") == 0);
}

static gboolean
set_up_tools (Chat *chat, OxModel *model, OxSession *session, GError **error)
{
  if (!chat->tools)
    return TRUE;
  if ((ox_model_get_plan (model)->capabilities & OX_CAPABILITY_TOOLS) == 0) {
    g_set_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED, "%s: this model was not made to call tools",
                 ox_model_get_plan (model)->name);
    return FALSE;
  }
  chat->toolbox = ox_toolbox_new ();
  ox_toolbox_add_builtin (chat->toolbox);
  for (guint i = 0; i < chat->names->len; i++)
    ox_toolbox_add_attachment (chat->toolbox, g_ptr_array_index (chat->names, i), g_ptr_array_index (chat->texts, i));
  ox_toolbox_set_permission (chat->toolbox, ask, chat);
  ox_session_set_toolbox (session, chat->toolbox, MAX_ROUNDS);
  return TRUE;
}

/* ---- The conversation ---- */

/* Rebuilt from the texts, since a chat only grows. */
static void
start_chat (Chat *chat)
{
  g_clear_pointer (&chat->chat, ox_chat_free);
  chat->chat = ox_chat_new ();
  chat->has_attached = FALSE;
  if (chat->system_text != NULL)
    ox_chat_append (chat->chat, OX_ROLE_SYSTEM, chat->system_text);
  ox_chat_set_thinking (chat->chat, chat->thinking);
}

/* The first message tells of the files: with tools their names, which the model can read them by, else all that is in them. */
static void
append_message (Chat *chat, const char *message)
{
  g_autoptr (GString) text = g_string_new (NULL);

  for (guint i = 0; i < chat->names->len && !chat->has_attached; i++) {
    const char *name = g_ptr_array_index (chat->names, i);

    if (chat->toolbox != NULL)
      g_string_append_printf (text, "[Attached file: %s]\n", name);
    else
      g_string_append_printf (text, "[Attached file: %s]\n%s\n[End of %s]\n", name,
                              (const char *) g_ptr_array_index (chat->texts, i), name);
  }
  chat->has_attached = TRUE;
  if (text->len > 0)
    g_string_append_c (text, '\n');
  g_string_append (text, message);
  ox_chat_append (chat->chat, OX_ROLE_USER, text->str);
}

/* A message, which may be of several lines; NULL at the end of input or with an error. */
static char *
read_message (Chat *chat, GError **error)
{
  g_autoptr (GString) message = g_string_new (NULL);
  g_autoptr (GError) local_error = NULL;
  char *line;

  while ((line = ox_cli_read_line (chat->cli, chat->pending, &local_error)) != NULL) {
    gsize len = strlen (line);
    gboolean goes_on = len > 0 && line[len - 1] == '\\';

    g_string_append_len (message, line, (gssize) (goes_on ? len - 1 : len));
    g_free (line);
    if (!goes_on)
      return g_strstrip (g_string_free (g_steal_pointer (&message), FALSE));
    g_string_append_c (message, '\n');
  }
  if (local_error != NULL) {
    g_propagate_error (error, g_steal_pointer (&local_error));
    return NULL;
  }
  return message->len > 0 ? g_strstrip (g_string_free (g_steal_pointer (&message), FALSE)) : NULL;
}

/* FALSE when the program is to end with @exit_code. */
static gboolean
answer_message (Chat *chat, OxSession *session, const OxSampling *sampling, int *exit_code)
{
  OxCli *cli = chat->cli;
  g_auto (OxCliAnswer) answer = { 0 };
  g_autoptr (GError) error = NULL;

  ox_cli_answer_init (&answer, cli);
  if (!ox_session_generate (session, chat->chat, sampling, ox_cli_answer_on_event, &answer, cli->cancellable, &error)) {
    gboolean stopped = g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED) && cli->output_error == 0;

    if (answer.text->len > 0)
      ox_cli_answer_finish (&answer);
    if (!stopped || !chat->interactive || ox_cli_terminated ()) {
      *exit_code = ox_cli_fail (cli, error);
      return FALSE;
    }
    /* Stopped by the person, who stays in the conversation. What was said stands. */
    g_clear_error (&error);
    g_cancellable_reset (cli->cancellable);
  } else {
    ox_cli_answer_finish (&answer);
  }
  if (cli->output_error != 0 || !ox_cli_answer_append (&answer, chat->chat, &error)) {
    *exit_code = ox_cli_fail (cli, error);
    return FALSE;
  }
  return TRUE;
}

static int
talk (Chat *chat, OxSession *session, const OxSampling *sampling)
{
  int exit_code;

  start_chat (chat);
  if (chat->interactive && !chat->cli->quiet)
    fputs ("Type a message. /reset forgets the conversation, /quit ends it, Ctrl+C stops an answer.\n", stderr);
  for (;;) {
    g_autoptr (GError) error = NULL;
    g_autofree char *message = NULL;

    if (chat->interactive)
      fputs ("> ", stderr);
    message = read_message (chat, &error);
    if (message == NULL) {
      if (chat->interactive)
        fputc ('\n', stderr);
      return error != NULL ? ox_cli_fail (chat->cli, error) : OX_CLI_OK;
    }
    if (*message == '\0')
      continue;
    if (strcmp (message, "/quit") == 0)
      return OX_CLI_OK;
    if (strcmp (message, "/reset") == 0) {
      start_chat (chat);
      continue;
    }
    append_message (chat, message);
    if (!answer_message (chat, session, sampling, &exit_code))
      return exit_code;
  }
}

/* ---- The command ---- */

static int
run (Chat *chat)
{
  OxCli *cli = chat->cli;
  g_autoptr (OxModel) model = NULL;
  g_autoptr (OxSession) session = NULL;
  g_autoptr (GError) error = NULL;
  OxSampling sampling;

  chat->interactive = isatty (STDIN_FILENO);
  chat->pending = g_string_new (NULL);
  if (!read_attached (chat, &error) || (model = ox_cli_load (cli, &error)) == NULL ||
      (session = ox_cli_open_session (cli, model, &error)) == NULL || !set_up_tools (chat, model, session, &error))
    return ox_cli_fail (cli, error);
  if (ox_model_get_plan (model)->note != NULL && !cli->quiet && isatty (STDERR_FILENO))
    fprintf (stderr, "%s\n", ox_model_get_plan (model)->note);
  if (chat->drop_oldest)
    ox_session_set_context_policy (session, OX_CONTEXT_DROP_OLDEST);
  ox_cli_get_sampling (cli, model, &sampling);
  return talk (chat, session, &sampling);
}

int
ox_cli_chat (OxCli *cli, int argc, char **argv)
{
  g_auto (Chat) chat = { .cli = cli };
  const GOptionEntry entries[] = {
    { "system", 's', 0, G_OPTION_ARG_FILENAME, &chat.system_text, "What the model is told before the conversation",
      "TEXT" },
    { "thinking", 0, 0, G_OPTION_ARG_FILENAME, &chat.thinking_name,
      "Whether to think before answering (default: as the model was made)", "on|off|default" },
    { "tools", 0, 0, G_OPTION_ARG_NONE, &chat.tools,
      "The model may ask for the date, calculate, convert units and read attached files", NULL },
    { "attach", 'a', 0, G_OPTION_ARG_FILENAME_ARRAY, &chat.attached, "A text file to talk about; may be given again",
      "FILE" },
    { "drop-oldest", 0, 0, G_OPTION_ARG_NONE, &chat.drop_oldest,
      "When the context is full, leave out the oldest messages", NULL },
    { "json", 0, 0, G_OPTION_ARG_NONE, &cli->json, "One JSON object a line for each event", NULL },
    { "quiet", 'q', 0, G_OPTION_ARG_NONE, &cli->quiet, "No progress and no statistics", NULL },
    { NULL },
  };
  int exit_code;

  if (!ox_cli_parse (
        cli, argc, argv, OX_CLI_OPTIONS_MODEL | OX_CLI_OPTIONS_LOAD | OX_CLI_OPTIONS_AHEAD | OX_CLI_OPTIONS_SAMPLE,
        entries, "--model PATH",
        "Every line is a message; a line that ends with \\ goes on in the next one. /reset forgets the conversation,\n"
        "/quit or Ctrl+D ends it. Ctrl+C stops an answer; at the prompt it ends the program. Attached files are part\n"
        "of the first message; with --tools the model reads them by lines instead.\n\n"
        "Examples:\n"
        "  oxinfer-cli chat --model model.gguf\n"
        "  oxinfer-cli chat --model model.gguf --system \"You answer in one sentence.\" --temperature 0.7\n"
        "  oxinfer-cli chat --model Qwen3.5-2B --weights q8 --tools --attach notes.txt --thinking off\n"
        "  printf 'My name is Ada.\\nWhat is my name?\\n' | oxinfer-cli chat --model model.gguf --json",
        NULL, &exit_code))
    return exit_code;
  if (cli->model_path == NULL)
    return ox_cli_usage (cli, "which model? --model is missing");
  if (!ox_cli_parse_thinking (chat.thinking_name, &chat.thinking))
    return ox_cli_usage (cli, "--thinking is “on”, “off” or “default”");
  ox_cli_catch_signals (cli);
  return run (&chat);
}
