/* Speculation: guesses, checks them with the model, and stops when that does not pay.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-lookahead.h"

#include <string.h>

/* One row of logits belongs to the newest token, the others to guesses. */
#define MOST_GUESSES (OX_LOGIT_ROWS - 1)
#define FIRST_GUESSES 4
/* Tokens that a guess from the text has to share with the place it comes from, at least and at most looked for. */
#define LEAST_MATCH 3
#define MOST_MATCH 8
/* How far back text is searched. */
#define SEARCH_TOKENS 16384
/* Passes over which it is judged whether guessing pays, and tokens that go by before it is tried again. */
#define TRIAL_PASSES 8
#define PAUSE_TOKENS 64

struct _OxLookahead {
  OxSession *session;
  OxDraftState *draft; /* of the session, or NULL */
  guint vocab_size;
  GArray *stop_ids; /* guint32 */

  float *rows; /* [OX_LOGIT_ROWS, vocab]: after the newest token and after each guess */
  guint32 guesses[MOST_GUESSES];
  guint n_guesses; /* behind the newest token */
  guint confirmed; /* of these, told by the answer */
  gboolean trying; /* the session holds guesses that are not decided about */

  guint drafted, accepted;
  guint length;         /* guesses to make next time */
  double plain_seconds; /* of a pass without guesses, smoothed; 0: not known */
  guint passes;         /* with guesses, since the last judgement */
  double seconds;       /* these took */
  guint gained;         /* tokens that came out of them */
  guint pause;          /* tokens to go without guessing */

  gboolean off;
  guint forced;
  OxGuessFunc guess_func;
  gpointer guess_data;
};

OxLookahead *
ox_lookahead_new (OxSession *session, OxDraftState *draft)
{
  OxLookahead *self = g_new0 (OxLookahead, 1);

  self->session = session;
  self->draft = draft;
  self->vocab_size = ox_session_get_state (session)->config->vocab_size;
  self->stop_ids = g_array_new (FALSE, FALSE, sizeof (guint32));
  self->rows = g_new (float, (gsize) OX_LOGIT_ROWS * self->vocab_size);
  self->length = FIRST_GUESSES;
  return self;
}

void
ox_lookahead_free (OxLookahead *self)
{
  if (self == NULL)
    return;
  g_array_unref (self->stop_ids);
  g_free (self->rows);
  g_free (self);
}

void
ox_lookahead_begin (OxLookahead *self, const guint32 *stop_ids, guint n_stop_ids)
{
  g_array_set_size (self->stop_ids, 0);
  g_array_append_vals (self->stop_ids, stop_ids, n_stop_ids);
  self->drafted = self->accepted = 0;
  self->length = FIRST_GUESSES;
  self->passes = self->gained = 0;
  self->seconds = 0;
  self->pause = 0;
}

void
ox_lookahead_force (OxLookahead *self, guint n, OxGuessFunc func, gpointer user_data)
{
  self->forced = MIN (n, MOST_GUESSES);
  self->guess_func = func;
  self->guess_data = user_data;
}

void
ox_lookahead_off (OxLookahead *self)
{
  self->off = TRUE;
}

guint
ox_lookahead_get_pending (const OxLookahead *self)
{
  return self->trying ? self->n_guesses - self->confirmed : 0;
}

guint
ox_lookahead_get_drafted (const OxLookahead *self)
{
  return self->drafted;
}

guint
ox_lookahead_get_accepted (const OxLookahead *self)
{
  return self->accepted;
}

/* ---- Guessing ---- */

/* What followed the last time the newest tokens stood in the text, preferring the place that shares most with what stands before. */
static guint
guess_from_text (const guint32 *tokens, guint n_tokens, guint32 newest, guint n, guint32 *ids)
{
  guint first = n_tokens > SEARCH_TOKENS ? n_tokens - SEARCH_TOKENS : 0;
  guint best = 0, best_match = LEAST_MATCH - 1;

  /* The text is tokens[0 … n_tokens), and then the newest. `end` is a place where the newest stood before. */
  for (guint end = n_tokens; end-- > first;) {
    guint match = 1;

    if (tokens[end] != newest)
      continue;
    while (match < MOST_MATCH && match <= end && tokens[end - match] == tokens[n_tokens - match])
      match++;
    if (match > best_match && end + 1 < n_tokens) {
      best_match = match;
      best = end + 1;
      if (match == MOST_MATCH)
        break;
    }
  }
  if (best == 0)
    return 0;
  n = MIN (n, n_tokens - best);
  memcpy (ids, tokens + best, n * sizeof (guint32));
  return n;
}

/* Fills in the guesses behind @newest. */
static gboolean
guess (OxLookahead *self, guint32 newest, guint n, GCancellable *cancellable, GError **error)
{
  const GArray *tokens = ox_session_get_tokens (self->session);
  const guint32 *ids = (const guint32 *) (gpointer) tokens->data;
  GError *local_error = NULL;

  self->n_guesses = 0;
  if (n == 0)
    return TRUE;
  if (self->guess_func != NULL)
    self->n_guesses = self->guess_func (ids, tokens->len, newest, n, self->guesses, self->guess_data);
  else if (self->draft != NULL)
    self->n_guesses = self->draft->drafter->drafter_class->draft (self->draft, newest, tokens->len, n, self->guesses,
                                                                  cancellable, &local_error);
  else
    self->n_guesses = guess_from_text (ids, tokens->len, newest, n, self->guesses);
  if (local_error != NULL) {
    g_propagate_error (error, local_error);
    return FALSE;
  }
  /* Nothing comes after the end of a turn. */
  for (guint i = 0; i < self->n_guesses; i++)
    for (guint j = 0; j < self->stop_ids->len; j++)
      if (self->guesses[i] == g_array_index (self->stop_ids, guint32, j))
        self->n_guesses = i;
  return TRUE;
}

/* ---- Whether it pays ---- */

static guint
wanted_guesses (OxLookahead *self, guint most)
{
  const OxState *state = ox_session_get_state (self->session);
  guint room = state->options.context_length - ox_session_get_length (self->session) - 1;

  if (self->off)
    return 0;
  most = MIN (MIN (most, room), MIN (MOST_GUESSES, state->options.chunk - 1));
  if (self->forced > 0)
    return MIN (self->forced, most);
  if (self->pause > 0) {
    self->pause--;
    return 0;
  }
  /* A plain pass now and then is the yardstick. */
  return self->plain_seconds == 0 ? 0 : MIN (self->length, most);
}

/* A pass over the newest token and @n_guesses guesses took @seconds, and @kept tokens of it were used. */
static void
judge (OxLookahead *self, guint kept)
{
  if (kept == self->n_guesses + 1)
    self->length = MIN (self->length + 2, MOST_GUESSES);
  else if (self->length > 1)
    self->length--;
  self->gained += kept;
  if (++self->passes < TRIAL_PASSES)
    return;
  if (self->seconds > self->gained * self->plain_seconds) {
    self->pause = PAUSE_TOKENS;
    self->plain_seconds = 0;
    self->length = FIRST_GUESSES;
  }
  self->passes = self->gained = 0;
  self->seconds = 0;
}

/* ---- The answer goes on ---- */

gboolean
ox_lookahead_settle (OxLookahead *self, GError **error)
{
  guint kept = 1 + self->confirmed;

  if (!self->trying)
    return TRUE;
  self->trying = FALSE;
  self->accepted += self->confirmed;
  judge (self, kept);
  return ox_session_keep (self->session, kept, error);
}

gboolean
ox_lookahead_advance (
  OxLookahead *self, guint32 id, guint most, const float **logits, GCancellable *cancellable, GError **error)
{
  guint32 batch[OX_LOGIT_ROWS];
  gint64 start;
  double seconds;

  if (self->trying && self->confirmed < self->n_guesses && self->guesses[self->confirmed] == id) {
    self->confirmed++;
    *logits = self->rows + (gsize) self->confirmed * self->vocab_size;
    return TRUE;
  }
  if (!ox_lookahead_settle (self, error))
    return FALSE;

  start = ox_clock_now ();
  if (!guess (self, id, wanted_guesses (self, most), cancellable, error))
    return FALSE;
  batch[0] = id;
  memcpy (batch + 1, self->guesses, self->n_guesses * sizeof (guint32));
  if (self->n_guesses == 0) {
    if (!ox_session_eval (self->session, &id, 1, OX_LOGITS_LAST, self->rows, cancellable, error))
      return FALSE;
  } else {
    if (!ox_session_try (self->session, batch, self->n_guesses + 1, self->rows, cancellable, error))
      return FALSE;
    self->trying = TRUE;
    self->confirmed = 0;
    self->drafted += self->n_guesses;
  }
  seconds = (double) (ox_clock_now () - start) / G_USEC_PER_SEC;
  if (self->n_guesses > 0)
    self->seconds += seconds;
  else
    self->plain_seconds = self->plain_seconds == 0 ? seconds : 0.8 * self->plain_seconds + 0.2 * seconds;
  *logits = self->rows;
  return TRUE;
}
