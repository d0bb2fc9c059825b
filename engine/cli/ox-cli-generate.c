/* oxinfer-cli generate: one prompt, one answer; also token by token, with the logits of each step.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-cli-answer.h"

#include <string.h>
#include <unistd.h>

#include "ox-cli-logits.h"
#include "ox-session-private.h"
#include "text/ox-sampler.h"
#include "text/ox-tokenizer.h"

typedef struct {
  OxCli *cli;
  char *system_text;
  char *thinking_name;
  char *logits_path;
  char *ids_text;
  gboolean raw;
  OxThinking thinking;
} Generate;

static void
generate_clear (Generate *generate)
{
  g_free (generate->system_text);
  g_free (generate->thinking_name);
  g_free (generate->logits_path);
  g_free (generate->ids_text);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Generate, generate_clear)

/* ---- Prompts ---- */

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

static OxChat *
make_chat (const Generate *generate, const char *prompt)
{
  OxChat *chat = ox_chat_new ();

  if (generate->system_text != NULL)
    ox_chat_append (chat, OX_ROLE_SYSTEM, generate->system_text);
  ox_chat_append (chat, OX_ROLE_USER, prompt);
  ox_chat_set_thinking (chat, generate->thinking);
  return chat;
}

/* ---- Token by token ---- */

/* "1, 2 3" */
static gboolean
parse_ids (const char *text, guint vocab_size, GArray *ids, GError **error)
{
  for (const char *p = text; *p != '\0';) {
    char *end;
    guint64 id;
    guint32 id32;

    if (strchr (" \t\r\n,[]", *p) != NULL) {
      p++;
      continue;
    }
    id = g_ascii_strtoull (p, &end, 10);
    if (!g_ascii_isdigit (*p) || id >= vocab_size) {
      g_set_error (error, OX_ERROR, OX_ERROR_INVALID, "--ids are numbers below %u, and “%.20s” is none", vocab_size, p);
      return FALSE;
    }
    id32 = (guint32) id;
    g_array_append_val (ids, id32);
    p = end;
  }
  if (ids->len > 0)
    return TRUE;
  g_set_error_literal (error, OX_ERROR, OX_ERROR_INVALID, "--ids names no token");
  return FALSE;
}

/* The tokens of the prompt, as ox_session_generate() or ox_session_complete() would have them. */
static gboolean
encode_prompt (const Generate *generate, OxSession *session, const char *prompt, GArray *ids, GError **error)
{
  OxModel *model = ox_session_get_model (session);
  g_auto (OxSessionPrompt) encoded = { 0 };
  g_autoptr (OxChat) chat = NULL;
  guint32 bos;

  if (generate->ids_text != NULL)
    return parse_ids (generate->ids_text, model->config->vocab_size, ids, error);
  if (generate->raw) {
    if (ox_tokenizer_get_add_bos (model->tokenizer) && ox_tokenizer_get_bos (model->tokenizer) >= 0) {
      bos = (guint32) ox_tokenizer_get_bos (model->tokenizer);
      g_array_append_val (ids, bos);
    }
    ox_tokenizer_encode (model->tokenizer, prompt, -1, TRUE, ids);
    return TRUE;
  }
  chat = make_chat (generate, prompt);
  if (!ox_session_make_prompt (session, chat, &encoded, generate->cli->cancellable, error))
    return FALSE;
  g_array_append_vals (ids, encoded.ids->data, encoded.ids->len);
  return TRUE;
}

static gboolean
is_stop_id (const OxModel *model, guint32 id)
{
  for (guint i = 0; i < model->stop_ids->len; i++)
    if (g_array_index (model->stop_ids, guint32, i) == id)
      return TRUE;
  return FALSE;
}

/* Tells of one more token: its text, or its id in a line of ids. */
static void
tell_token (OxCliAnswer *answer, OxDetokenizer *detokenizer, guint32 id, gboolean is_first)
{
  g_autoptr (GString) text = g_string_new (NULL);
  OxEvent event = { .type = OX_EVENT_TEXT, .statistics = answer->statistics };

  if (detokenizer != NULL)
    ox_detokenizer_push (detokenizer, id, text);
  else
    g_string_append_printf (text, "%s%u", is_first ? "" : " ", id);
  event.text = text->str;
  if (text->len > 0)
    ox_cli_answer_on_event (&event, answer);
}

/* Without look-ahead and without a parser between the network and what is told. @ids gets the answer, stop token left out. */
static gboolean
write_tokens (Generate *generate,
              OxSession *session,
              const OxSampling *sampling,
              const GArray *prompt,
              OxCliLogits *file,
              OxCliAnswer *answer,
              GArray *ids,
              GError **error)
{
  OxModel *model = ox_session_get_model (session);
  const GArray *suppressed = model->config->suppress_token_ids;
  OxStatistics *statistics = &answer->statistics;
  g_autoptr (OxSampler) sampler = ox_sampler_new (
    sampling, model->config->vocab_size, (const guint32 *) (gconstpointer) suppressed->data, suppressed->len, error);
  g_autoptr (OxDetokenizer) detokenizer =
    generate->ids_text == NULL ? ox_detokenizer_new (model->tokenizer, FALSE) : NULL;
  g_autofree float *logits = g_new (float, model->config->vocab_size);
  gint64 start = ox_clock_now ();
  const guint32 *next = (const guint32 *) (gconstpointer) prompt->data;
  guint n = prompt->len;

  if (sampler == NULL)
    return FALSE;
  statistics->prompt_tokens = prompt->len;
  statistics->context_length = model->plan->context_length;
  for (guint i = 0; i < prompt->len; i++)
    ox_sampler_accept (sampler, next[i], FALSE);
  for (;;) {
    guint32 id;

    if (!ox_session_eval (session, next, n, OX_LOGITS_LAST, logits, generate->cli->cancellable, error))
      return FALSE;
    if (ids->len == 0) {
      statistics->prefill_seconds = statistics->first_token_seconds =
        (double) (ox_clock_now () - start) / G_USEC_PER_SEC;
      start = ox_clock_now ();
    }
    if (file != NULL && !ox_cli_logits_add (file, logits, error))
      return FALSE;
    if (!ox_sampler_sample (sampler, logits, &id, error))
      return FALSE;
    answer->reason = OX_END_STOP;
    if (is_stop_id (model, id))
      return TRUE;
    ox_sampler_accept (sampler, id, TRUE);
    g_array_append_val (ids, id);
    statistics->answer_tokens = ids->len;
    statistics->decode_seconds = (double) (ox_clock_now () - start) / G_USEC_PER_SEC;
    tell_token (answer, detokenizer, id, ids->len == 1);
    answer->reason = OX_END_LENGTH;
    if (sampling->max_tokens > 0 && ids->len >= sampling->max_tokens)
      return TRUE;
    answer->reason = OX_END_CONTEXT;
    if (prompt->len + ids->len >= statistics->context_length)
      return TRUE;
    next = &g_array_index (ids, guint32, ids->len - 1);
    n = 1;
  }
}

static gboolean
generate_tokens (Generate *generate,
                 OxSession *session,
                 const OxSampling *sampling,
                 const char *prompt,
                 OxCliAnswer *answer,
                 GError **error)
{
  OxModel *model = ox_session_get_model (session);
  g_autoptr (GArray) prompt_ids = g_array_new (FALSE, FALSE, sizeof (guint32));
  g_autoptr (GArray) ids = g_array_new (FALSE, FALSE, sizeof (guint32));
  g_autoptr (OxCliLogits) file = NULL;
  GError *local_error = NULL;
  OxEvent end = { .type = OX_EVENT_END };
  gboolean ok;

  if (!encode_prompt (generate, session, prompt, prompt_ids, error))
    return FALSE;
  if (prompt_ids->len >= model->plan->context_length) {
    g_set_error (error, OX_ERROR, OX_ERROR_CONTEXT_FULL,
                 "The prompt takes %u tokens of a context of %u, which leaves no room for an answer", prompt_ids->len,
                 model->plan->context_length);
    return FALSE;
  }
  if (generate->logits_path != NULL &&
      (file = ox_cli_logits_new (generate->logits_path, model->config->vocab_size, error)) == NULL)
    return FALSE;
  ok = write_tokens (generate, session, sampling, prompt_ids, file, answer, ids, &local_error) &&
       (file == NULL || ox_cli_logits_finish (file, prompt_ids, ids, &local_error));
  end.reason = ok                                                                ? answer->reason
               : g_error_matches (local_error, G_IO_ERROR, G_IO_ERROR_CANCELLED) ? OX_END_CANCELLED
                                                                                 : OX_END_ERROR;
  end.statistics = answer->statistics;
  ox_cli_answer_on_event (&end, answer);
  if (local_error != NULL)
    g_propagate_error (error, local_error);
  return ok;
}

/* ---- The command ---- */

/* With ids in the place of text no tokenizer is needed. */
static OxModel *
load (Generate *generate, GError **error)
{
  OxModelOptions options;

  if (generate->ids_text == NULL)
    return ox_cli_load (generate->cli, error);
  ox_cli_get_model_options (generate->cli, &options);
  return ox_model_load_full (generate->cli->model_path, &options, FALSE, NULL, NULL, generate->cli->cancellable, error);
}

static int
run (Generate *generate, const char *prompt)
{
  OxCli *cli = generate->cli;
  g_autoptr (OxModel) model = NULL;
  g_autoptr (OxSession) session = NULL;
  g_auto (OxCliAnswer) answer = { 0 };
  g_autoptr (GError) error = NULL;
  OxSampling sampling;
  gboolean ok;

  model = load (generate, &error);
  session = model != NULL ? ox_cli_open_session (cli, model, &error) : NULL;
  if (session == NULL)
    return ox_cli_fail (cli, error);
  if (ox_model_get_plan (model)->note != NULL && !cli->quiet && isatty (STDERR_FILENO))
    fprintf (stderr, "%s\n", ox_model_get_plan (model)->note);
  ox_cli_get_sampling (cli, model, &sampling);
  ox_cli_answer_init (&answer, cli);
  if (generate->ids_text != NULL || generate->logits_path != NULL) {
    ok = generate_tokens (generate, session, &sampling, prompt, &answer, &error);
  } else if (generate->raw) {
    ok = ox_session_complete (session, prompt, &sampling, ox_cli_answer_on_event, &answer, cli->cancellable, &error);
  } else {
    g_autoptr (OxChat) chat = make_chat (generate, prompt);

    ok = ox_session_generate (session, chat, &sampling, ox_cli_answer_on_event, &answer, cli->cancellable, &error);
  }
  if (ok || answer.text->len > 0)
    ox_cli_answer_finish (&answer);
  return !ok || cli->output_error != 0 ? ox_cli_fail (cli, error) : OX_CLI_OK;
}

int
ox_cli_generate (OxCli *cli, int argc, char **argv)
{
  g_auto (Generate) generate = { .cli = cli };
  g_auto (GStrv) rest = NULL;
  const GOptionEntry entries[] = {
    { "system", 's', 0, G_OPTION_ARG_FILENAME, &generate.system_text, "What the model is told before the conversation",
      "TEXT" },
    { "thinking", 0, 0, G_OPTION_ARG_FILENAME, &generate.thinking_name,
      "Whether to think before answering (default: as the model was made)", "on|off|default" },
    { "raw", 0, 0, G_OPTION_ARG_NONE, &generate.raw,
      "Continue the text as it is, without the chat format; control tokens count", NULL },
    { "ids", 0, 0, G_OPTION_ARG_FILENAME, &generate.ids_text, "Token ids in the place of text; the answer is ids, too",
      "1,2,…" },
    { "logits", 0, 0, G_OPTION_ARG_FILENAME, &generate.logits_path,
      "Write what the network says before each token to a .npy or .safetensors file", "FILE" },
    { "json", 0, 0, G_OPTION_ARG_NONE, &cli->json,
      "One JSON object a line for each event; the last has all of the text", NULL },
    { "quiet", 'q', 0, G_OPTION_ARG_NONE, &cli->quiet, "No progress and no statistics", NULL },
    { NULL },
  };
  g_autofree char *prompt = NULL;
  g_autoptr (GError) error = NULL;
  int exit_code;

  if (!ox_cli_parse (
        cli, argc, argv, OX_CLI_OPTIONS_MODEL | OX_CLI_OPTIONS_LOAD | OX_CLI_OPTIONS_AHEAD | OX_CLI_OPTIONS_SAMPLE,
        entries, "--model PATH [PROMPT]",
        "The prompt is the argument, in which - stands for standard input, or standard input alone. With --ids or\n"
        "--logits the answer is written token by token as the network says it, thinking and calls included.\n\n"
        "Examples:\n"
        "  oxinfer-cli generate --model model.gguf \"Why is the sky blue?\"\n"
        "  oxinfer-cli generate --model model.gguf \"Summarise:\" - < letter.txt\n"
        "  oxinfer-cli generate --model model.gguf --raw --max-tokens 40 \"Once upon a time\"\n"
        "  oxinfer-cli generate --model model.gguf --json-schema person.json \"Who wrote Faust?\"\n"
        "  oxinfer-cli generate --model folder --precision exact --greedy --ids 2,5,7 -n 8 --logits out.npy\n"
        "  oxinfer-cli generate --model model.gguf --json \"Hello\" | jq -r 'select(.event == \"end\").text'",
        &rest, &exit_code))
    return exit_code;
  if (cli->model_path == NULL)
    return ox_cli_usage (cli, "which model? --model is missing");
  if (generate.raw && generate.system_text != NULL)
    return ox_cli_usage (cli, "--system belongs to the chat format, which --raw leaves out");
  if (!ox_cli_parse_thinking (generate.thinking_name, &generate.thinking))
    return ox_cli_usage (cli, "--thinking is “on”, “off” or “default”");
  if (generate.ids_text != NULL && (rest != NULL || generate.raw || generate.system_text != NULL))
    return ox_cli_usage (cli, "--ids stands in the place of a prompt");
  if ((generate.ids_text != NULL || generate.logits_path != NULL) &&
      (cli->stop != NULL || cli->json_schema_path != NULL))
    return ox_cli_usage (cli, "--stop and --json-schema do not go with --ids and --logits");

  if (generate.logits_path != NULL && !ox_cli_logits_knows (generate.logits_path))
    return ox_cli_usage (cli, "--logits is a .npy or a .safetensors file");

  ox_cli_catch_signals (cli);
  if (generate.ids_text == NULL) {
    prompt = make_prompt (cli, rest, &error);
    if (prompt == NULL)
      return ox_cli_fail (cli, error);
    /* The end of the last line of a file or of echo is not part of what was asked. */
    if (!generate.raw && *g_strchomp (prompt) == '\0')
      return ox_cli_usage (cli, "the prompt is empty");
  }
  return run (&generate, prompt);
}
