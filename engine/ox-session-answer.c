/* One round of an answer: the prompt is read, then token after token is drawn, made text, and told in events.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-session-answer.h"
#include "ox-lookahead.h"

#include <string.h>

/* Places to come back to lie at least so far apart, but for the last ones. */
#define TURN_DISTANCE 256
#define LAST_TURNS 2
/* A prompt that goes on so far after its last turn gets a place at its end. */
#define LONG_END 32

static void
call_clear (gpointer data)
{
  g_free (((OxAnswerCall *) data)->name);
  g_free (((OxAnswerCall *) data)->arguments);
}

gboolean
ox_answer_init (OxAnswer *answer, GError **error)
{
  const OxConfig *config = answer->session->model->config;

  answer->event.statistics.context_length = answer->session->state->options.context_length;
  answer->text = g_string_new (NULL);
  answer->reasoning = g_string_new (NULL);
  answer->calls = g_array_new (FALSE, FALSE, sizeof (OxAnswerCall));
  g_array_set_clear_func (answer->calls, call_clear);
  answer->stop = ox_stop_strings_new (answer->sampling->stop);
  answer->sampler =
    ox_sampler_new (answer->sampling, config->vocab_size, (const guint32 *) (gpointer) config->suppress_token_ids->data,
                    config->suppress_token_ids->len, error);
  if (answer->sampler == NULL || answer->sampling->json_schema == NULL)
    return answer->sampler != NULL;
  answer->grammar = ox_grammar_new (answer->session->model->tokenizer, answer->sampling->json_schema, error);
  answer->allowed = g_new0 (guint32, ox_tokenizer_get_size (answer->session->model->tokenizer) / 32 + 1);
  return answer->grammar != NULL;
}

void
ox_answer_clear (OxAnswer *answer)
{
  g_clear_pointer (&answer->sampler, ox_sampler_free);
  g_clear_pointer (&answer->stop, ox_stop_strings_free);
  g_clear_pointer (&answer->grammar, ox_grammar_free);
  g_clear_pointer (&answer->allowed, g_free);
  g_clear_pointer (&answer->calls, g_array_unref);
  if (answer->text != NULL)
    g_string_free (answer->text, TRUE);
  if (answer->reasoning != NULL)
    g_string_free (answer->reasoning, TRUE);
}

/* ---- Events ---- */

void
ox_answer_emit (OxAnswer *answer, OxEventType type)
{
  answer->event.type = type;
  if (answer->on_event == NULL)
    return;
  ox_profile_start (&answer->session->ops->profile, OX_PROFILE_OTHER);
  answer->on_event (&answer->event, answer->user_data);
  ox_profile_stop (&answer->session->ops->profile);
}

static double
seconds_since (gint64 start)
{
  return (double) (ox_clock_now () - start) / G_USEC_PER_SEC;
}

static void
emit_text (OxAnswer *answer, OxEventType type, const char *text)
{
  if (*text == '\0')
    return;
  if (answer->event.statistics.first_token_seconds == 0)
    answer->event.statistics.first_token_seconds = seconds_since (answer->start);
  answer->event.text = text;
  ox_answer_emit (answer, type);
  answer->event.text = NULL;
}

/* A piece of the answer that no stop string has a part in. */
static void
emit_answer (OxAnswer *answer, const char *text)
{
  g_string_append (answer->text, text);
  emit_text (answer, OX_EVENT_TEXT, text);
}

static void
on_output (const OxOutput *output, gpointer user_data)
{
  OxAnswer *answer = user_data;

  if (answer->stopped)
    return;
  if (output->type == OX_OUTPUT_THINKING) {
    g_string_append (answer->reasoning, output->text);
    emit_text (answer, OX_EVENT_THINKING, output->text);
  } else if (output->type == OX_OUTPUT_TEXT) {
    g_autoptr (GString) safe = g_string_new (NULL);

    answer->stopped = ox_stop_strings_push (answer->stop, output->text, strlen (output->text), safe);
    emit_answer (answer, safe->str);
  } else if (output->type == OX_OUTPUT_TOOL_CALL) {
    OxAnswerCall call = { g_strdup (output->name), g_strdup (output->arguments) };

    g_array_append_val (answer->calls, call);
  } else {
    answer->event.text = output->text;
    ox_answer_emit (answer, OX_EVENT_TOOL_MALFORMED);
    answer->event.text = NULL;
  }
}

/* Texts for callbacks end at a NUL, which a model may well write. */
static void
push_text (OxOutputParser *parser, GString *text)
{
  const char *rest = text->str, *end = text->str + text->len;

  while (rest < end) {
    gsize len = strnlen (rest, (gsize) (end - rest));

    ox_output_parser_push (parser, rest, len);
    rest += len;
    if (rest < end) {
      ox_output_parser_push (parser, "\357\277\275", 3);
      rest++;
    }
  }
  g_string_truncate (text, 0);
}

/* ---- Reading the prompt ---- */

static gboolean
is_stop_id (OxModel *model, guint32 id)
{
  for (guint i = 0; i < model->stop_ids->len; i++)
    if (g_array_index (model->stop_ids, guint32, i) == id)
      return TRUE;
  return FALSE;
}

/* Places in a prompt that it may be gone back to: where turns end. User text has no control tokens, so these tell. */
static GArray *
find_places (OxModel *model, const GArray *ids)
{
  GArray *places = g_array_new (FALSE, FALSE, sizeof (guint));
  guint last = 0, kept = 0;

  for (guint i = 0; i + 1 < ids->len; i++)
    if (is_stop_id (model, g_array_index (ids, guint32, i))) {
      last = i + 1;
      g_array_append_val (places, last);
    }
  if (ids->len > last + LONG_END) {
    last = ids->len - 1;
    g_array_append_val (places, last);
  }
  last = 0;
  for (guint i = 0; i < places->len; i++) {
    guint place = g_array_index (places, guint, i);

    if (place - last < TURN_DISTANCE && i + LAST_TURNS < places->len)
      continue;
    g_array_index (places, guint, kept++) = place;
    last = place;
  }
  g_array_set_size (places, kept);
  return places;
}

/* Reads the prompt: all but what the session holds already. Leaves the logits of its last token in the session. */
static gboolean
prefill (OxAnswer *answer, const GArray *ids, GError **error)
{
  OxSession *session = answer->session;
  OxStatistics *statistics = &answer->event.statistics;
  gboolean recurrent = ox_config_is_recurrent (session->model->config);
  guint chunk = session->state->options.chunk;
  g_autoptr (GArray) places = NULL;
  guint common, place = 0;
  double before = statistics->prefill_seconds;
  gint64 start = answer->told > 0 ? ox_clock_now () : answer->start;

  if (ids->len == 0) {
    g_set_error_literal (error, OX_ERROR, OX_ERROR_INVALID, "There is nothing to answer");
    return FALSE;
  }
  if (ids->len >= statistics->context_length) {
    g_set_error (error, OX_ERROR, OX_ERROR_CONTEXT_FULL,
                 "The conversation takes %u tokens of a context of %u, which leaves no room for an answer", ids->len,
                 statistics->context_length);
    return FALSE;
  }
  common = ox_session_common (session, ids);
  /* The last token is always run again, since its logits are wanted. */
  ox_session_truncate (session, MIN (common, ids->len - 1));
  answer->computed += ids->len - session->tokens->len;
  /* What was answered in earlier rounds is part of the prompt by now. */
  statistics->prompt_tokens = ids->len - MIN (ids->len, statistics->answer_tokens);
  statistics->reused_tokens = statistics->prompt_tokens - MIN (statistics->prompt_tokens, answer->computed);
  for (guint i = answer->told > 0 ? common : 0; i < ids->len; i++)
    ox_sampler_accept (answer->sampler, g_array_index (ids, guint32, i), FALSE);
  answer->told++;

  places = find_places (session->model, ids);
  while (place < places->len && g_array_index (places, guint, place) <= session->tokens->len)
    place++;
  answer->event.total = ids->len;
  answer->event.done = session->tokens->len;
  ox_answer_emit (answer, OX_EVENT_PREFILL);
  while (session->tokens->len < ids->len) {
    guint done = session->tokens->len;
    guint n = MIN (ids->len - done, chunk);

    /* A recurrent state can be copied only where it is. */
    if (recurrent && place < places->len)
      n = MIN (n, g_array_index (places, guint, place) - done);
    if (!ox_session_eval (session, &g_array_index (ids, guint32, done), n,
                          done + n == ids->len ? OX_LOGITS_LAST : OX_LOGITS_NONE, session->logits, answer->cancellable,
                          error))
      return FALSE;
    for (; place < places->len && g_array_index (places, guint, place) <= session->tokens->len; place++)
      ox_session_note_turn (session, g_array_index (places, guint, place));
    statistics->prefill_seconds = before + seconds_since (start);
    answer->event.done = session->tokens->len;
    ox_answer_emit (answer, OX_EVENT_PREFILL);
  }
  return TRUE;
}

/* ---- Writing ---- */

/* Whether the answer is at one of its bounds, which event.reason then tells. @pending: tokens of the session that were only guessed. */
static gboolean
is_at_end (OxAnswer *answer, guint pending)
{
  const OxStatistics *statistics = &answer->event.statistics;
  guint max_tokens = answer->sampling->max_tokens;

  if (answer->stopped)
    answer->event.reason = OX_END_STOP;
  else if (max_tokens > 0 && statistics->answer_tokens >= max_tokens)
    answer->event.reason = OX_END_LENGTH;
  else if (answer->session->tokens->len - pending >= statistics->context_length)
    answer->event.reason = OX_END_CONTEXT;
  else
    return FALSE;
  return TRUE;
}

/* The logits of the token after @id, which the answer goes on with. */
static gboolean
go_on (OxAnswer *answer, OxLookahead *lookahead, guint32 id, const float **logits, GError **error)
{
  OxSession *session = answer->session;
  guint max_tokens = answer->sampling->max_tokens;
  guint most = max_tokens > 0 ? max_tokens - answer->event.statistics.answer_tokens : G_MAXUINT;

  if (lookahead != NULL)
    return ox_lookahead_advance (lookahead, id, most, logits, answer->cancellable, error);
  *logits = session->logits;
  return ox_session_eval (session, &id, 1, OX_LOGITS_LAST, session->logits, answer->cancellable, error);
}

/* Limits the next token to what the schema allows. FALSE: nothing may follow. */
static gboolean
limit_next (OxAnswer *answer)
{
  OxModel *model = answer->session->model;
  guint n_ids = ox_tokenizer_get_size (model->tokenizer);

  if (!ox_grammar_mask (answer->grammar, answer->allowed))
    return FALSE;
  for (guint i = 0; i < model->stop_ids->len && ox_grammar_is_complete (answer->grammar); i++) {
    guint32 id = g_array_index (model->stop_ids, guint32, i);

    if (id < n_ids)
      answer->allowed[id / 32] |= 1u << id % 32;
  }
  ox_sampler_set_allowed (answer->sampler, answer->allowed, n_ids);
  return TRUE;
}

/* Whether a thought, which no schema limits, ends with @id. */
static gboolean
ends_thought (OxModel *model, guint32 id)
{
  const char *token = ox_tokenizer_get_token (model->tokenizer, id);

  return g_strcmp0 (token, "</think>") == 0 || g_strcmp0 (token, "<channel|>") == 0;
}

static gboolean
write_tokens (OxAnswer *answer,
              gboolean in_thinking,
              OxLookahead *lookahead,
              OxDetokenizer *detokenizer,
              OxOutputParser *parser,
              GError **error)
{
  OxSession *session = answer->session;
  OxProfileClock *clock = &session->ops->profile;
  OxStatistics *statistics = &answer->event.statistics;
  g_autoptr (GString) text = g_string_new (NULL);
  guint drafted = statistics->drafted_tokens, accepted = statistics->accepted_tokens;
  double before = statistics->decode_seconds;
  const float *logits = session->logits;
  gint64 start = ox_clock_now ();

  for (;;) {
    guint32 id;

    ox_profile_lap (clock, OX_PROFILE_SAMPLING);
    if (answer->grammar != NULL && !in_thinking && !limit_next (answer)) {
      answer->event.reason = OX_END_STOP;
      return TRUE;
    }
    if (g_cancellable_set_error_if_cancelled (answer->cancellable, error) ||
        !ox_sampler_sample (answer->sampler, logits, &id, error))
      return FALSE;
    if (is_stop_id (session->model, id)) {
      answer->event.reason = OX_END_STOP;
      return TRUE;
    }
    ox_sampler_accept (answer->sampler, id, TRUE);
    if (answer->grammar != NULL && !in_thinking)
      ox_grammar_accept (answer->grammar, id);
    in_thinking = in_thinking && !ends_thought (session->model, id);
    statistics->answer_tokens++;
    statistics->decode_seconds = before + seconds_since (start);
    ox_profile_lap (clock, OX_PROFILE_TOKENIZER);
    ox_detokenizer_push (detokenizer, id, text);
    push_text (parser, text);
    ox_profile_lap (clock, OX_PROFILE_OTHER);
    if (is_at_end (answer, lookahead != NULL ? ox_lookahead_get_pending (lookahead) : 0))
      return TRUE;
    if (!go_on (answer, lookahead, id, &logits, error))
      return FALSE;
    statistics->decode_seconds = before + seconds_since (start);
    if (lookahead != NULL) {
      statistics->drafted_tokens = drafted + ox_lookahead_get_drafted (lookahead);
      statistics->accepted_tokens = accepted + ox_lookahead_get_accepted (lookahead);
    }
  }
}

gboolean
ox_answer_run_round (OxAnswer *answer,
                     const GArray *ids,
                     const OxChatFormat *format,
                     gboolean in_thinking,
                     const OxChat *chat,
                     GError **error)
{
  OxTokenizer *tokenizer = answer->session->model->tokenizer;
  g_autoptr (OxOutputParser) parser = ox_output_parser_new (format, in_thinking, chat, on_output, answer);
  g_autoptr (OxDetokenizer) detokenizer =
    ox_detokenizer_new (tokenizer, format != NULL && ox_output_parser_wants_control (format));
  g_autoptr (GString) rest = g_string_new (NULL);
  const GArray *stop_ids = answer->session->model->stop_ids;
  OxLookahead *lookahead;
  gboolean ok;

  g_string_truncate (answer->text, 0);
  g_string_truncate (answer->reasoning, 0);
  g_array_set_size (answer->calls, 0);
  ox_stop_strings_reset (answer->stop);
  ox_sampler_set_allowed (answer->sampler, NULL, 0);
  if (answer->grammar != NULL)
    ox_grammar_reset (answer->grammar);
  if (!ox_session_get_lookahead (answer->session, &lookahead, error) || !prefill (answer, ids, error))
    return FALSE;
  if (lookahead != NULL)
    ox_lookahead_begin (lookahead, (const guint32 *) (gconstpointer) stop_ids->data, stop_ids->len);
  ok = write_tokens (answer, in_thinking, lookahead, detokenizer, parser, error);
  ox_profile_lap (&answer->session->ops->profile, OX_PROFILE_OTHER);
  if (lookahead != NULL)
    ok = ox_lookahead_settle (lookahead, ok ? error : NULL) && ok;

  /* Stopped or failed: what was decoded so far still counts, half a character too. */
  ox_detokenizer_finish (detokenizer, rest);
  push_text (parser, rest);
  ox_output_parser_finish (parser);
  if (!answer->stopped) {
    g_string_truncate (rest, 0);
    ox_stop_strings_finish (answer->stop, rest);
    emit_answer (answer, rest->str);
  }
  return ok;
}

/* ---- Statistics ---- */

double
ox_statistics_get_prefill_rate (const OxStatistics *statistics)
{
  guint computed = statistics->prompt_tokens - statistics->reused_tokens;

  return statistics->prefill_seconds > 0 ? computed / statistics->prefill_seconds : 0;
}

double
ox_statistics_get_decode_rate (const OxStatistics *statistics)
{
  /* The first token comes out of the prompt's own pass. */
  return statistics->decode_seconds > 0 && statistics->answer_tokens > 1
           ? (statistics->answer_tokens - 1) / statistics->decode_seconds
           : 0;
}
