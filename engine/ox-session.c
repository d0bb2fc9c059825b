/* A session: the tokens of one conversation that are held, and running and taking back some.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-lookahead.h"

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
  session->turns = g_array_new (FALSE, FALSE, sizeof (guint));
  session->ops = ox_ops_cpu_new (&model->ops_options);
  session->state = ox_state_new (session->ops, model->config, &options, error);
  session->logits = g_try_new (float, model->config->vocab_size);
  if (session->state != NULL && session->logits == NULL)
    g_set_error_literal (error, OX_ERROR, OX_ERROR_NO_MEMORY, "Not enough memory for the working state of the model");
  if (session->state == NULL || session->logits == NULL) {
    ox_session_free (session);
    return NULL;
  }
  session->snapshots = ox_snapshots_new (session->state, OX_SESSION_SNAPSHOT_BYTES);
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
  g_clear_pointer (&session->lookahead, ox_lookahead_free);
  if (session->draft != NULL)
    session->draft->drafter->drafter_class->state_free (session->draft);
  if (session->toolbox != NULL)
    ox_toolbox_unref (session->toolbox);
  ox_snapshots_free (session->snapshots);
  if (session->state != NULL)
    ox_state_free (session->state);
  session->ops->free (session->ops);
  g_array_unref (session->tokens);
  g_array_unref (session->turns);
  g_free (session->logits);
  ox_model_unref (session->model);
  g_free (session);
}

OxModel *
ox_session_get_model (OxSession *session)
{
  return session->model;
}

guint
ox_session_get_length (OxSession *session)
{
  return session->tokens->len;
}

void
ox_session_set_speculation (OxSession *session, OxSpeculation speculation)
{
  session->speculation = speculation;
}

/* ---- Going back ---- */

static gboolean
has_rings (OxSession *session)
{
  return ox_state_get_slack (session->model->config, &session->state->options) != G_MAXUINT;
}

/* The first position that a token at @length looks at through a sliding window. */
static guint
window_begin (OxSession *session, guint length)
{
  guint window = session->model->config->sliding_window;

  return length > window ? length - window : 0;
}

/* The first position that rings still hold once they have been written up to @end. */
static guint
ring_begin (OxSession *session, guint end)
{
  guint slack = ox_state_get_slack (session->model->config, &session->state->options);

  return slack != G_MAXUINT && window_begin (session, end) > slack ? window_begin (session, end) - slack : 0;
}

/* Whether everything that the token after @length needs is in place without a snapshot. */
static gboolean
reaches (OxSession *session, guint length)
{
  return length >= session->tokens->len ||
         (!ox_config_is_recurrent (session->model->config) && window_begin (session, length) >= session->ring_low);
}

guint
ox_session_get_reusable (OxSession *session, guint length)
{
  length = MIN (length, session->tokens->len);
  return reaches (session, length) ? length : ox_snapshots_find (session->snapshots, length);
}

static void
forget_turns_after (OxSession *session, guint length)
{
  for (guint i = session->turns->len; i > 0; i--)
    if (g_array_index (session->turns, guint, i - 1) > length)
      g_array_remove_index (session->turns, i - 1);
}

void
ox_session_truncate (OxSession *session, guint length)
{
  if (length >= session->tokens->len)
    return;
  if (session->draft != NULL)
    session->draft->drafter->drafter_class->forget (session->draft);
  ox_snapshots_forget_after (session->snapshots, length);
  if (!reaches (session, length)) {
    length = ox_snapshots_restore (session->snapshots, length);
    session->ring_low = has_rings (session) ? window_begin (session, length) : 0;
  }
  g_array_set_size (session->tokens, length);
  forget_turns_after (session, length);
}

void
ox_session_reset (OxSession *session)
{
  if (session->draft != NULL)
    session->draft->drafter->drafter_class->forget (session->draft);
  ox_snapshots_forget_after (session->snapshots, 0);
  ox_state_reset (session->state);
  g_array_set_size (session->tokens, 0);
  g_array_set_size (session->turns, 0);
  session->ring_low = 0;
}

void
ox_session_note_turn (OxSession *session, guint length)
{
  if (length == 0)
    return;
  if (!ox_config_is_recurrent (session->model->config))
    g_array_append_val (session->turns, length);
  else if (length == session->tokens->len && session->tried == 0)
    ox_snapshots_take (session->snapshots, length);
}

void
ox_session_set_ring_low (OxSession *session, guint position)
{
  session->ring_low = MAX (position, ring_begin (session, session->tokens->len));
}

void
ox_session_set_snapshot_limit (OxSession *session, guint64 max_bytes)
{
  ox_snapshots_set_limit (session->snapshots, max_bytes);
}

/* Rings are about to be written up to @end: what turns need of the positions that go is copied. */
static void
save_rings (OxSession *session, guint end)
{
  guint low = ring_begin (session, end);

  for (guint i = session->turns->len; i > 0 && low > session->ring_low; i--) {
    guint turn = g_array_index (session->turns, guint, i - 1);
    guint begin = window_begin (session, turn);

    if (begin >= low || turn > session->tokens->len)
      continue;
    if (begin >= session->ring_low)
      ox_snapshots_take (session->snapshots, turn);
    g_array_remove_index (session->turns, i - 1);
  }
  session->ring_low = MAX (session->ring_low, low);
}

/* ---- Running ---- */

static gboolean
mark_recurrent (OxSession *session, guint max_rows, GError **error)
{
  OxState *state = session->state;

  for (guint i = 0; i < state->config->num_hidden_layers; i++)
    if (state->recurrent[i] != NULL &&
        !session->ops->recurrent_mark (session->ops, state->recurrent[i], max_rows, error))
      return FALSE;
  return TRUE;
}

static void
rewind_recurrent (OxSession *session, guint n)
{
  OxState *state = session->state;

  for (guint i = 0; i < state->config->num_hidden_layers; i++)
    if (state->recurrent[i] != NULL)
      session->ops->recurrent_rewind (session->ops, state->recurrent[i], n);
}

/* Tells the drafter which tokens at @position have been run for good; their rows are still in the working tensors. */
static gboolean
observe (OxSession *session, const guint32 *ids, guint n, guint position, GCancellable *cancellable, GError **error)
{
  return session->draft == NULL || n == 0 ||
         session->draft->drafter->drafter_class->observe (session->draft, ids, n, position, cancellable, error);
}

/* One forward pass. Recurrent states that an error or a cancel leaves half advanced are put back as they were. */
static gboolean
run_chunk (OxSession *session,
           const guint32 *ids,
           guint n,
           OxLogits logits,
           float *logits_out,
           GCancellable *cancellable,
           GError **error)
{
  OxNetwork *network = session->model->network;
  guint position = session->tokens->len;
  gboolean ok;

  ox_profile_lap (&session->ops->profile, OX_PROFILE_IO);
  save_rings (session, position + n);
  ox_profile_lap (&session->ops->profile, OX_PROFILE_OTHER);
  /* Nothing is tried here: the mark is for going back to it alone, and needs to remember no more than a row. */
  if (session->tried == 0 && !mark_recurrent (session, 1, error))
    return FALSE;
  ok =
    network->network_class->forward (network, session->state, ids, n, position, logits, logits_out, cancellable, error);
  ox_profile_lap (&session->ops->profile, OX_PROFILE_OTHER);
  ok = ok && (session->tried > 0 || observe (session, ids, n, position, cancellable, error));
  if (!ok)
    rewind_recurrent (session, 0);
  else if (session->tried == 0)
    rewind_recurrent (session, n);
  if (ok)
    g_array_append_vals (session->tokens, ids, n);
  return ok;
}

/* Long texts without turns, answers among them, get places to go back to as well. */
static void
take_now_and_then (OxSession *session)
{
  guint length = session->tokens->len;

  if (session->tried == 0 && ox_config_is_recurrent (session->model->config) &&
      length - ox_snapshots_find (session->snapshots, length) >= OX_SESSION_SNAPSHOT_TOKENS) {
    ox_profile_lap (&session->ops->profile, OX_PROFILE_IO);
    ox_snapshots_take (session->snapshots, length);
    ox_profile_lap (&session->ops->profile, OX_PROFILE_OTHER);
  }
}

static gboolean
eval_chunks (OxSession *session,
             const guint32 *ids,
             gsize n,
             OxLogits logits,
             float *logits_out,
             GCancellable *cancellable,
             GError **error)
{
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

    if (!run_chunk (session, ids + done, chunk, wanted, logits_out, cancellable, error))
      return FALSE;
    take_now_and_then (session);
    if (wanted == OX_LOGITS_ALL)
      logits_out += (gsize) chunk * vocab_size;
    done += chunk;
  }
  return TRUE;
}

gboolean
ox_session_eval (OxSession *session,
                 const guint32 *ids,
                 gsize n,
                 OxLogits logits,
                 float *logits_out,
                 GCancellable *cancellable,
                 GError **error)
{
  gboolean ok;

  ox_profile_start (&session->ops->profile, OX_PROFILE_OTHER);
  ok = eval_chunks (session, ids, n, logits, logits_out, cancellable, error);
  ox_profile_stop (&session->ops->profile);
  return ok;
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

gboolean
ox_session_get_lookahead (OxSession *session, OxLookahead **lookahead, GError **error)
{
  OxDrafter *drafter = session->model->drafter;

  *lookahead = NULL;
  if (session->speculation == OX_SPECULATION_OFF)
    return TRUE;
  if (session->lookahead == NULL) {
    if (drafter != NULL && session->draft == NULL) {
      OxDraftState *draft = drafter->drafter_class->state_new (drafter, session->state, error);

      if (draft == NULL)
        return FALSE;
      ox_session_take_draft_state (session, draft);
    }
    session->lookahead = ox_lookahead_new (session, session->draft);
  }
  *lookahead = session->lookahead;
  return TRUE;
}

gboolean
ox_session_try (
  OxSession *session, const guint32 *ids, guint n, float *logits_out, GCancellable *cancellable, GError **error)
{
  /* What is tried has to be taken back whole, and shown to a drafter whole. */
  if (n > session->state->options.chunk) {
    g_set_error (error, OX_ERROR, OX_ERROR_INVALID, "%u tokens cannot be tried at once, at most %u can be", n,
                 session->state->options.chunk);
    return FALSE;
  }
  if (!mark_recurrent (session, n, error))
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
  guint begin = session->tokens->len - session->tried;
  gboolean ok;

  ox_profile_start (&session->ops->profile, OX_PROFILE_RECURRENT);
  rewind_recurrent (session, n);
  session->tried = 0;
  g_array_set_size (session->tokens, begin + n);
  take_now_and_then (session);
  ok = observe (session, &g_array_index (session->tokens, guint32, begin), n, begin, NULL, error);
  ox_profile_stop (&session->ops->profile);
  return ok;
}
