/* A session: the state of one conversation, and answering in it.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-session-private.h"
#include "text/ox-sampler.h"

#include <string.h>

struct _OxSession {
  OxModel *model;
  OxOps *ops;
  OxState *state;
  GArray *tokens;      /* guint32: those whose keys and values are held */
  guint high_water;    /* most tokens held since the last reset: what sliding rings may have overwritten */
  float *logits;       /* [vocab] of the last token */
  OxDraftState *draft; /* or NULL */
  guint tried;         /* tokens at the end that ox_session_keep() is to decide about */
};

OxSession *
ox_session_new_full (OxModel *model, guint chunk, OxTraceFunc trace, gpointer trace_data, GError **error)
{
  OxSession *session = g_new0 (OxSession, 1);
  OxStateOptions options = model->state_options;

  if (chunk > 0)
    options.chunk = MIN (chunk, options.context_length);
  options.trace = trace;
  options.trace_data = trace_data;
  session->model = ox_model_ref (model);
  session->tokens = g_array_new (FALSE, FALSE, sizeof (guint32));
  session->ops = ox_ops_cpu_new (&model->ops_options);
  session->state = ox_state_new (session->ops, model->config, &options, error);
  session->logits = g_try_new (float, model->config->vocab_size);
  if (session->state != NULL && session->logits == NULL)
    g_set_error_literal (error, OX_ERROR, OX_ERROR_NO_MEMORY, "Not enough memory for the working state of the model");
  if (session->state == NULL || session->logits == NULL) {
    ox_session_free (session);
    return NULL;
  }
  return session;
}

OxSession *
ox_session_new (OxModel *model, GError **error)
{
  return ox_session_new_full (model, 0, NULL, NULL, error);
}

void
ox_session_free (OxSession *session)
{
  if (session == NULL)
    return;
  if (session->draft != NULL)
    session->draft->drafter->drafter_class->state_free (session->draft);
  if (session->state != NULL)
    ox_state_free (session->state);
  session->ops->free (session->ops);
  g_array_unref (session->tokens);
  g_free (session->logits);
  ox_model_unref (session->model);
  g_free (session);
}

OxModel *
ox_session_get_model (OxSession *session)
{
  return session->model;
}

void
ox_session_reset (OxSession *session)
{
  g_array_set_size (session->tokens, 0);
  session->high_water = 0;
}

guint
ox_session_get_length (OxSession *session)
{
  return session->tokens->len;
}

void
ox_session_truncate (OxSession *session, guint length)
{
  guint slack = ox_state_get_slack (session->model->config, &session->state->options);

  if (length >= session->tokens->len)
    return;
  if (session->draft != NULL)
    session->draft->drafter->drafter_class->forget (session->draft);
  /* A ring holds the last window + slack positions ever written. Cut back further, and the window before the cut is gone. */
  if (slack != G_MAXUINT && session->high_water - length > slack)
    ox_session_reset (session);
  else
    g_array_set_size (session->tokens, length);
}

static gboolean observe (
  OxSession *session, const guint32 *ids, guint n, guint position, GCancellable *cancellable, GError **error);

gboolean
ox_session_eval (OxSession *session,
                 const guint32 *ids,
                 gsize n,
                 OxLogits logits,
                 float *logits_out,
                 GCancellable *cancellable,
                 GError **error)
{
  OxNetwork *network = session->model->network;
  guint held = session->tokens->len;
  guint context_length = session->state->options.context_length;
  guint vocab_size = session->model->config->vocab_size;

  if (n > context_length - held) {
    g_set_error (error, OX_ERROR, OX_ERROR_CONTEXT_FULL,
                 "The conversation has %" G_GSIZE_FORMAT " tokens, and this model can hold %u", held + n,
                 context_length);
    return FALSE;
  }
  for (gsize i = 0; i < n; i++)
    if (ids[i] >= vocab_size) {
      g_set_error (error, OX_ERROR, OX_ERROR_INVALID, "Token %u is outside of the vocabulary of %u", ids[i],
                   vocab_size);
      return FALSE;
    }

  for (gsize done = 0; done < n;) {
    guint chunk = (guint) MIN (n - done, session->state->options.chunk);
    OxLogits wanted = logits == OX_LOGITS_LAST && done + chunk < n ? OX_LOGITS_NONE : logits;

    /* Rings are written before an error can show. */
    session->high_water = MAX (session->high_water, session->tokens->len + chunk);
    if (!network->network_class->forward (network, session->state, ids + done, chunk, session->tokens->len, wanted,
                                          logits_out, cancellable, error)) {
      ox_session_truncate (session, held);
      return FALSE;
    }
    g_array_append_vals (session->tokens, ids + done, chunk);
    if (session->tried == 0 &&
        !observe (session, ids + done, chunk, session->tokens->len - chunk, cancellable, error)) {
      ox_session_truncate (session, held);
      return FALSE;
    }
    if (wanted == OX_LOGITS_ALL)
      logits_out += (gsize) chunk * vocab_size;
    done += chunk;
  }
  return TRUE;
}

/* ---- Speculation ---- */

const GArray *
ox_session_get_tokens (OxSession *session)
{
  return session->tokens;
}

OxState *
ox_session_get_state (OxSession *session)
{
  return session->state;
}

void
ox_session_take_draft_state (OxSession *session, OxDraftState *draft)
{
  session->draft = draft;
  session->state->options.keep_hidden = TRUE;
}

/* Tells the drafter which tokens at @position have been run for good; their rows are still in the working tensors. */
static gboolean
observe (OxSession *session, const guint32 *ids, guint n, guint position, GCancellable *cancellable, GError **error)
{
  return session->draft == NULL || n == 0 ||
         session->draft->drafter->drafter_class->observe (session->draft, ids, n, position, cancellable, error);
}

gboolean
ox_session_try (
  OxSession *session, const guint32 *ids, guint n, float *logits_out, GCancellable *cancellable, GError **error)
{
  OxState *state = session->state;

  for (guint i = 0; i < state->config->num_hidden_layers; i++)
    if (state->recurrent[i] != NULL && !session->ops->recurrent_mark (session->ops, state->recurrent[i], n, error))
      return FALSE;
  session->tried = n;
  if (!ox_session_eval (session, ids, n, OX_LOGITS_ALL, logits_out, cancellable, error)) {
    session->tried = 0;
    return FALSE;
  }
  return TRUE;
}

gboolean
ox_session_keep (OxSession *session, guint n, GError **error)
{
  OxState *state = session->state;
  guint begin = session->tokens->len - session->tried;

  for (guint i = 0; i < state->config->num_hidden_layers; i++)
    if (state->recurrent[i] != NULL)
      session->ops->recurrent_rewind (session->ops, state->recurrent[i], n);
  session->tried = 0;
  g_array_set_size (session->tokens, begin + n);
  return observe (session, &g_array_index (session->tokens, guint32, begin), n, begin, NULL, error);
}

/* ---- Answering ---- */

typedef struct {
  OxSession *session;
  OxEventFunc on_event;
  gpointer user_data;
  GCancellable *cancellable;
  OxEvent event; /* carries the statistics along */
  gint64 start;
  gint64 decode_start;
} Answer;

static void
emit (Answer *answer, OxEventType type)
{
  answer->event.type = type;
  if (answer->on_event != NULL)
    answer->on_event (&answer->event, answer->user_data);
}

static double
seconds_since (gint64 start)
{
  return (double) (ox_clock_now () - start) / G_USEC_PER_SEC;
}

static void
replace_nuls (GString *text)
{
  g_autoptr (GString) whole = g_string_sized_new (text->len);

  for (gsize i = 0; i < text->len; i++)
    if (text->str[i] == '\0')
      g_string_append (whole, "\357\277\275");
    else
      g_string_append_c (whole, text->str[i]);
  g_string_assign (text, whole->str);
}

static void
emit_text (Answer *answer, GString *text)
{
  OxStatistics *statistics = &answer->event.statistics;

  if (text->len == 0)
    return;
  /* A string for the callback ends at a NUL, which a model may well write. */
  if (memchr (text->str, '\0', text->len) != NULL)
    replace_nuls (text);
  if (statistics->first_token_seconds == 0)
    statistics->first_token_seconds = seconds_since (answer->start);
  answer->event.text = text->str;
  emit (answer, OX_EVENT_TEXT);
  answer->event.text = NULL;
  g_string_truncate (text, 0);
}

/* Reads the prompt: all but what the session holds already. Leaves the logits of its last token in the session. */
static gboolean
prefill (Answer *answer, const GArray *ids, GError **error)
{
  OxSession *session = answer->session;
  OxStatistics *statistics = &answer->event.statistics;
  guint chunk = session->state->options.chunk;
  guint common = 0;

  if (ids->len == 0) {
    g_set_error_literal (error, OX_ERROR, OX_ERROR_INVALID, "There is nothing to answer");
    return FALSE;
  }
  if (ids->len >= statistics->context_length) {
    g_set_error (error, OX_ERROR, OX_ERROR_CONTEXT_FULL, "The conversation has %u tokens, and this model can hold %u",
                 ids->len, statistics->context_length);
    return FALSE;
  }
  while (common < MIN (ids->len, session->tokens->len) &&
         g_array_index (ids, guint32, common) == g_array_index (session->tokens, guint32, common))
    common++;
  /* The last token is always run again, since its logits are wanted. */
  ox_session_truncate (session, MIN (common, ids->len - 1));
  statistics->prompt_tokens = ids->len;
  statistics->reused_tokens = session->tokens->len;

  answer->event.total = ids->len;
  answer->event.done = session->tokens->len;
  emit (answer, OX_EVENT_PREFILL);
  while (session->tokens->len < ids->len) {
    guint done = session->tokens->len;
    guint n = MIN (ids->len - done, chunk);

    if (!ox_session_eval (session, &g_array_index (ids, guint32, done), n,
                          done + n == ids->len ? OX_LOGITS_LAST : OX_LOGITS_NONE, session->logits, answer->cancellable,
                          error))
      return FALSE;
    statistics->prefill_seconds = seconds_since (answer->start);
    answer->event.done = session->tokens->len;
    emit (answer, OX_EVENT_PREFILL);
  }
  return TRUE;
}

static gboolean
is_stop_id (OxModel *model, guint32 id)
{
  for (guint i = 0; i < model->stop_ids->len; i++)
    if (g_array_index (model->stop_ids, guint32, i) == id)
      return TRUE;
  return FALSE;
}

static gboolean
decode (Answer *answer, OxSampler *sampler, guint max_tokens, GError **error)
{
  OxSession *session = answer->session;
  OxStatistics *statistics = &answer->event.statistics;
  g_autoptr (OxDetokenizer) detokenizer = ox_detokenizer_new (session->model->tokenizer, FALSE);
  g_autoptr (GString) text = g_string_new (NULL);

  answer->decode_start = ox_clock_now ();
  answer->event.reason = OX_END_STOP;
  for (;;) {
    guint32 id;

    if (g_cancellable_set_error_if_cancelled (answer->cancellable, error) ||
        !ox_sampler_sample (sampler, session->logits, &id, error))
      break;
    if (is_stop_id (session->model, id)) {
      ox_detokenizer_finish (detokenizer, text);
      emit_text (answer, text);
      return TRUE;
    }
    ox_sampler_accept (sampler, id, TRUE);
    statistics->answer_tokens++;
    statistics->decode_seconds = seconds_since (answer->decode_start);
    ox_detokenizer_push (detokenizer, id, text);
    emit_text (answer, text);

    if (max_tokens > 0 && statistics->answer_tokens >= max_tokens)
      answer->event.reason = OX_END_LENGTH;
    else if (session->tokens->len >= statistics->context_length)
      answer->event.reason = OX_END_CONTEXT;
    if (answer->event.reason != OX_END_STOP) {
      ox_detokenizer_finish (detokenizer, text);
      emit_text (answer, text);
      return TRUE;
    }
    if (!ox_session_eval (session, &id, 1, OX_LOGITS_LAST, session->logits, answer->cancellable, error))
      break;
    statistics->decode_seconds = seconds_since (answer->decode_start);
  }
  /* Stopped or failed: what was decoded so far still counts, half a character too. */
  ox_detokenizer_finish (detokenizer, text);
  emit_text (answer, text);
  return FALSE;
}

static gboolean
run (Answer *answer, const GArray *ids, const OxSampling *sampling, GError **error)
{
  OxModel *model = answer->session->model;
  g_autoptr (OxSampler) sampler = NULL;

  if (sampling == NULL)
    sampling = &model->default_sampling;
  sampler = ox_sampler_new (sampling, model->config->vocab_size, NULL, 0, error);
  if (sampler == NULL || !prefill (answer, ids, error))
    return FALSE;
  for (guint i = 0; i < ids->len; i++)
    ox_sampler_accept (sampler, g_array_index (ids, guint32, i), FALSE);
  return decode (answer, sampler, sampling->max_tokens, error);
}

/* Takes @ids and @local_error: one of them is NULL. */
static gboolean
answer_ids (OxSession *session,
            GArray *ids,
            GError *local_error,
            gint64 start,
            const OxSampling *sampling,
            OxEventFunc on_event,
            gpointer user_data,
            GCancellable *cancellable,
            GError **error)
{
  Answer answer = {
    .session = session, .on_event = on_event, .user_data = user_data, .cancellable = cancellable, .start = start
  };
  gboolean ok = FALSE;

  answer.event.statistics.context_length = session->state->options.context_length;
  if (ids != NULL) {
    ok = run (&answer, ids, sampling, &local_error);
    g_array_unref (ids);
  }
  if (!ok)
    answer.event.reason =
      g_error_matches (local_error, G_IO_ERROR, G_IO_ERROR_CANCELLED) ? OX_END_CANCELLED : OX_END_ERROR;
  emit (&answer, OX_EVENT_END);
  if (local_error != NULL)
    g_propagate_error (error, local_error);
  return ok;
}

gboolean
ox_session_generate (OxSession *session,
                     const OxChat *chat,
                     const OxSampling *sampling,
                     OxEventFunc on_event,
                     gpointer user_data,
                     GCancellable *cancellable,
                     GError **error)
{
  gint64 start = ox_clock_now ();
  GError *local_error = NULL;
  GArray *ids = ox_model_encode_chat (session->model, chat, cancellable, &local_error);

  return answer_ids (session, ids, local_error, start, sampling, on_event, user_data, cancellable, error);
}

gboolean
ox_session_complete (OxSession *session,
                     const char *text,
                     const OxSampling *sampling,
                     OxEventFunc on_event,
                     gpointer user_data,
                     GCancellable *cancellable,
                     GError **error)
{
  OxTokenizer *tokenizer = session->model->tokenizer;
  GArray *ids = g_array_new (FALSE, FALSE, sizeof (guint32));
  gint64 bos = ox_tokenizer_get_bos (tokenizer);
  gint64 start = ox_clock_now ();
  GError *local_error = NULL;

  if (ox_tokenizer_get_add_bos (tokenizer) && bos >= 0) {
    guint32 id = (guint32) bos;
    g_array_append_val (ids, id);
  }
  if (!ox_tokenizer_encode_text (tokenizer, text, strlen (text), TRUE, ids, cancellable, &local_error))
    g_clear_pointer (&ids, g_array_unref);
  return answer_ids (session, ids, local_error, start, sampling, on_event, user_data, cancellable, error);
}

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
