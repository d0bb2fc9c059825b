/* Speculation: tokens are guessed ahead and checked several at once, since a pass over four tokens costs hardly more than over one.
 *
 * The answer's loop stays as it is: it samples a token, tells it here, and gets the logits that follow. Whether these come from a pass of
 * their own or were computed along with a guess that came true makes no difference to their bits, so the answer is the same to the
 * letter: every token is drawn from the model's own distribution, and a guess only decides whether the next draw can be had for nothing.
 * (For a guess that is certain of itself this is what Leviathan, Kalman & Matias 2023 accept and reject, too.)
 *
 * Guesses come from a drafter, or from the text: what followed the last time the newest tokens stood there.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-session-private.h"

typedef struct _OxLookahead OxLookahead;

/* Of @session; @draft: the drafter's state there, or NULL: guess from the text. */
OxLookahead *ox_lookahead_new (OxSession *session, OxDraftState *draft);
void ox_lookahead_free (OxLookahead *lookahead);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (OxLookahead, ox_lookahead_free)

/* An answer begins: guesses that came to nothing in the last one count no more. @stop_ids: no guess goes beyond one of these. */
void ox_lookahead_begin (OxLookahead *lookahead, const guint32 *stop_ids, guint n_stop_ids);
/* The answer goes on with @id. @logits: [vocab] of the token after it, valid until the next call. @most: tokens the answer may still
 * have; more are not guessed. */
gboolean ox_lookahead_advance (
  OxLookahead *lookahead, guint32 id, guint most, const float **logits, GCancellable *cancellable, GError **error);
/* Takes guesses back that the answer has not confirmed: from then on the session holds what was told here and nothing else. */
gboolean ox_lookahead_settle (OxLookahead *lookahead, GError **error);
/* Guesses that the session holds and the answer has not confirmed. */
guint ox_lookahead_get_pending (const OxLookahead *lookahead);
/* Tokens guessed, and guesses that came true, since ox_lookahead_begin(). */
guint ox_lookahead_get_drafted (const OxLookahead *lookahead);
guint ox_lookahead_get_accepted (const OxLookahead *lookahead);
/* No guesses at all. */
void ox_lookahead_off (OxLookahead *lookahead);
/* For tests: always guess so many tokens, however that pays; 0: as it pays. And replace the guesses: @func writes at most @n. */
typedef guint (*OxGuessFunc) (
  const guint32 *tokens, guint n_tokens, guint32 newest, guint n, guint32 *ids, gpointer user_data);
void ox_lookahead_force (OxLookahead *lookahead, guint n, OxGuessFunc func, gpointer user_data);
