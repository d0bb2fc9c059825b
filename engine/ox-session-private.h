/* A session from inside: tokens in, logits out. For tests, goldens and benchmarks.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "models/ox-drafter.h"
#include "ox-model-private.h"

/* As ox_session_new(), with a trace and another chunk: @chunk tokens at most go through the network at once (0: the usual). */
OxSession *ox_session_new_full (OxModel *model, guint chunk, OxTraceFunc trace, gpointer trace_data, GError **error);
/* Forgets every token. */
void ox_session_reset (OxSession *session);
guint ox_session_get_length (OxSession *session);
/* Runs @n more tokens behind those held. @logits_out: [n, vocab], [vocab] or nothing, as @logits says. On an error the session holds
 * what it held before. */
gboolean ox_session_eval (OxSession *session,
                          const guint32 *ids,
                          gsize n,
                          OxLogits logits,
                          float *logits_out,
                          GCancellable *cancellable,
                          GError **error);
/* Cuts back to the first @length tokens, or to nothing when a sliding window has already forgotten what it would need. */
void ox_session_truncate (OxSession *session, guint length);

/* ---- For speculation ---- */

/* What the session holds, guint32; owned by it. */
const GArray *ox_session_get_tokens (OxSession *session);
OxState *ox_session_get_state (OxSession *session);
/* The drafter's state follows the session's from now on: it sees what is run, and forgets when the session is cut back. The session
 * takes it. */
void ox_session_take_draft_state (OxSession *session, OxDraftState *draft);
/* As ox_session_eval() with OX_LOGITS_ALL, for at most OX_LOGIT_ROWS tokens that may be taken back: ox_session_keep() has to follow
 * before anything else is run. */
gboolean ox_session_try (
  OxSession *session, const guint32 *ids, guint n, float *logits_out, GCancellable *cancellable, GError **error);
/* Keeps the first @n of the tokens tried last, to the same bits as if the others had never been run. */
gboolean ox_session_keep (OxSession *session, guint n, GError **error);
