/* A session from inside: tokens in, logits out. For tests, goldens and benchmarks; and what the parts of a session share.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "models/ox-drafter.h"
#include "models/ox-snapshot.h"
#include "ox-model-private.h"

struct _OxSession {
  OxModel *model;
  OxOps *ops;
  OxState *state;
  GArray *tokens; /* guint32: those whose keys, values and recurrent states are held */
  float *logits;  /* [vocab] of the last token of a prompt */

  /* Going back */
  OxSnapshots *snapshots;
  GArray *turns;  /* guint: places to go back to that rings still reach without a snapshot */
  guint ring_low; /* the first position that sliding rings hold for sure */

  /* Speculation */
  struct _OxLookahead *lookahead; /* or NULL */
  OxDraftState *draft;            /* or NULL */
  guint tried;                    /* tokens at the end that ox_session_keep() is to decide about */
  OxSpeculation speculation;

  /* Answering */
  OxContextPolicy policy;
  guint n_dropped; /* messages that the last prompt went without */
  OxToolbox *toolbox;
  guint max_rounds;
};

/* ---- Tokens ---- */

/* As ox_session_new(), with a trace and another chunk: @chunk tokens at most go through the network at once (0: the usual). */
OxSession *ox_session_new_full (OxModel *model, guint chunk, OxTraceFunc trace, gpointer trace_data, GError **error);
/* Forgets every token. */
void ox_session_reset (OxSession *session);
guint ox_session_get_length (OxSession *session);
/* Runs @n more tokens behind those held. @logits_out: [n, vocab], [vocab] or nothing, as @logits says. On an error the session holds
 * what it held before, and of the new tokens those whose chunk was done. */
gboolean ox_session_eval (OxSession *session,
                          const guint32 *ids,
                          gsize n,
                          OxLogits logits,
                          float *logits_out,
                          GCancellable *cancellable,
                          GError **error);
/* Cuts back to the first @length tokens; where a recurrent state or a sliding window stands in the way, further, to the last snapshot
 * before, or to nothing. */
void ox_session_truncate (OxSession *session, guint length);
/* The length that ox_session_truncate() would leave. */
guint ox_session_get_reusable (OxSession *session, guint length);

/* ---- Going back ---- */

/* Bytes that snapshots may take unless told otherwise. */
#define OX_SESSION_SNAPSHOT_BYTES (512ull << 20)
/* Recurrent states are copied every so many tokens, whatever the text. */
#define OX_SESSION_SNAPSHOT_TOKENS 512

/* A place to come back to: @length tokens are or will be held there. Recurrent states are copied at once, and only when @length is
 * what is held now; rings when they are about to forget. */
void ox_session_note_turn (OxSession *session, guint length);
/* Rings have been filled from outside: up to the last token held, from @position on. */
void ox_session_set_ring_low (OxSession *session, guint position);
void ox_session_set_snapshot_limit (OxSession *session, guint64 max_bytes);

/* ---- For speculation ---- */

/* What the session holds, guint32; owned by it. */
const GArray *ox_session_get_tokens (OxSession *session);
OxState *ox_session_get_state (OxSession *session);
/* The drafter's state follows the session's from now on: it sees what is run, and forgets when the session is cut back. The session
 * takes it. */
void ox_session_take_draft_state (OxSession *session, OxDraftState *draft);
/* What guesses ahead in this session; NULL when speculation is off. To be asked for before the prompt is read: a drafter follows from
 * there. */
gboolean ox_session_get_lookahead (OxSession *session, struct _OxLookahead **lookahead, GError **error);
/* As ox_session_eval() with OX_LOGITS_ALL, for at most OX_LOGIT_ROWS tokens, and no more than a chunk has, that may be taken back:
 * ox_session_keep() has to follow before anything else is run. */
gboolean ox_session_try (
  OxSession *session, const guint32 *ids, guint n, float *logits_out, GCancellable *cancellable, GError **error);
/* Keeps the first @n of the tokens tried last, to the same bits as if the others had never been run. */
gboolean ox_session_keep (OxSession *session, guint n, GError **error);

/* ---- Prompts ---- */

typedef struct {
  GArray *ids;          /* guint32 */
  gboolean in_thinking; /* the prompt ends inside a thought */
  guint n_dropped;      /* messages left out */
  guint n_whole;        /* tokens of the whole chat */
} OxSessionPrompt;

void ox_session_prompt_clear (OxSessionPrompt *prompt);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (OxSessionPrompt, ox_session_prompt_clear)

/* The tokens of @chat as the context policy allows. Never fails for being too long: ids->len tells. */
gboolean ox_session_make_prompt (
  OxSession *session, const OxChat *chat, OxSessionPrompt *prompt, GCancellable *cancellable, GError **error);
/* @chat with the declarations of the session's tools added. */
OxChat *ox_session_add_tools (OxSession *session, const OxChat *chat);
/* Tokens at the beginning of @ids that the session holds, too. */
guint ox_session_common (OxSession *session, const GArray *ids);
