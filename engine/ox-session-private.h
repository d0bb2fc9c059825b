/* A session from inside: tokens in, logits out. For tests, goldens and benchmarks.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

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
