/* Speculation: whatever is guessed, and however much of it comes true, the logits of an answer are those of plain decoding, to the bit,
 * and afterwards the session is as if nothing had been guessed. On full attention, sliding rings, shared keys, experts and recurrent
 * states; with guesses that are right, wrong, right for a while, from the text, from drafters.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-lookahead.h"
#include "text/ox-sampler.h"

#include <math.h>
#include <string.h>

#define STEPS 40
#define PROMPT 23

typedef struct {
  const char *name;
  const char *model;   /* below golden/text */
  const char *drafter; /* the same, or NULL: an MTP layer when the model has one */
  gboolean has_drafter;
  OxModelPrecision precision;
} Variant;

static const Variant variants[] = {
  { "gemma3", "gemma3", NULL, FALSE, OX_MODEL_PRECISION_EXACT },
  { "gemma4-e2b", "gemma4-e2b", "gemma4-drafter-centroid", TRUE, OX_MODEL_PRECISION_EXACT },
  { "gemma4-31b", "gemma4-31b", NULL, FALSE, OX_MODEL_PRECISION_FAST },
  { "gemma4-26b", "gemma4-26b", NULL, FALSE, OX_MODEL_PRECISION_EXACT },
  { "qwen35-small", "qwen35-small", NULL, FALSE, OX_MODEL_PRECISION_FAST },
  { "qwen35-large", "qwen35-large", NULL, TRUE, OX_MODEL_PRECISION_EXACT },
};

typedef struct {
  OxModel *model;
  OxWeights *drafter_weights;
  OxConfig *drafter_config;
  OxDrafter *drafter;
  guint vocab;
  guint32 prompt[PROMPT];
  guint32 path[STEPS]; /* greedy */
  float *logits;       /* [STEPS, vocab], before each token of the path */
} Fixture;

static char *
model_path (const char *name)
{
  return g_build_filename (g_getenv ("OX_TEST_DATA"), "golden/text", name, "model", NULL);
}

static guint32
argmax (const float *logits, guint n)
{
  return (guint32) ox_kernels ()->argmax (logits, n);
}

static OxSession *
new_session (Fixture *fixture, float *logits)
{
  g_autoptr (GError) error = NULL;
  OxSession *session = ox_session_new_full (fixture->model, 0, NULL, NULL, &error);

  g_assert_no_error (error);
  g_assert_true (ox_session_eval (session, fixture->prompt, PROMPT, OX_LOGITS_LAST, logits, NULL, &error));
  return session;
}

static void
set_up (Fixture *fixture, gconstpointer data)
{
  const Variant *variant = data;
  OxModelOptions options = { .precision = variant->precision, .context_length = 256, .no_packed_cache = TRUE };
  g_autofree char *path = model_path (variant->model);
  g_autoptr (GError) error = NULL;
  g_autoptr (OxSession) session = NULL;
  OxLoader loader = { 0 };

  fixture->model = ox_model_load_full (path, &options, FALSE, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  fixture->vocab = fixture->model->config->vocab_size;
  loader.ops = fixture->model->ops;
  if (variant->drafter != NULL) {
    g_autofree char *drafter = model_path (variant->drafter);

    loader.weights = fixture->drafter_weights = ox_weights_open (drafter, NULL, &error);
    g_assert_no_error (error);
    loader.config = fixture->drafter_config = ox_config_load (drafter, loader.weights, &error);
    g_assert_no_error (error);
    fixture->drafter = ox_gemma4_drafter_load (&loader, fixture->model->network, &error);
  } else if (variant->has_drafter) {
    loader.weights = fixture->model->weights;
    loader.config = fixture->model->config;
    fixture->drafter = ox_qwen35_mtp_load (&loader, fixture->model->network, &error);
  }
  g_assert_no_error (error);
  g_assert_true (variant->has_drafter == (fixture->drafter != NULL));

  for (guint i = 0; i < PROMPT; i++)
    fixture->prompt[i] = 5 + i * 37 % 200;
  fixture->logits = g_new (float, (gsize) STEPS * fixture->vocab);
  session = new_session (fixture, fixture->logits);
  for (guint i = 0; i < STEPS; i++) {
    float *row = fixture->logits + (gsize) i * fixture->vocab;

    fixture->path[i] = argmax (row, fixture->vocab);
    if (i + 1 < STEPS)
      g_assert_true (
        ox_session_eval (session, &fixture->path[i], 1, OX_LOGITS_LAST, row + fixture->vocab, NULL, &error));
  }
}

static void
tear_down (Fixture *fixture, gconstpointer data)
{
  ox_drafter_free (fixture->drafter, fixture->model->ops);
  g_clear_pointer (&fixture->drafter_config, ox_config_free);
  g_clear_pointer (&fixture->drafter_weights, ox_weights_free);
  g_clear_pointer (&fixture->model, ox_model_unref);
  g_free (fixture->logits);
}

/* ---- Guesses ---- */

typedef struct {
  Fixture *fixture;
  guint right; /* guesses in a row that are right; what follows is wrong */
} Oracle;

static guint
guess (const guint32 *tokens, guint n_tokens, guint32 newest, guint n, guint32 *ids, gpointer user_data)
{
  Oracle *oracle = user_data;
  guint at = n_tokens - PROMPT + 1;

  g_assert_cmpuint (oracle->fixture->path[at - 1], ==, newest);
  for (guint i = 0; i < n; i++) {
    guint32 truth = oracle->fixture->path[MIN (at + i, STEPS - 1)];

    ids[i] = i < oracle->right ? truth : (truth + 1) % oracle->fixture->vocab;
  }
  return n;
}

/* Walks the greedy path with guesses of @n tokens; returns how many came true. */
static guint
walk (Fixture *fixture, OxSession *session, OxLookahead *lookahead)
{
  g_autoptr (GError) error = NULL;
  const float *logits;

  ox_lookahead_begin (lookahead, NULL, 0);
  for (guint i = 0; i + 1 < STEPS; i++) {
    gboolean ok = ox_lookahead_advance (lookahead, fixture->path[i], STEPS, &logits, NULL, &error);

    g_assert_no_error (error);
    g_assert_true (ok);
    g_assert_cmpmem (logits, fixture->vocab * sizeof (float), fixture->logits + (gsize) (i + 1) * fixture->vocab,
                     fixture->vocab * sizeof (float));
  }
  g_assert_true (ox_lookahead_settle (lookahead, &error));
  g_assert_cmpuint (ox_session_get_length (session), ==, PROMPT + STEPS - 1);
  g_assert_cmpuint (ox_lookahead_get_accepted (lookahead), <=, ox_lookahead_get_drafted (lookahead));
  return ox_lookahead_get_accepted (lookahead);
}

/* After all that the session goes on like one that never guessed. */
static void
check_state (Fixture *fixture, OxSession *session)
{
  g_autofree float *a = g_new (float, fixture->vocab);
  g_autofree float *b = g_new (float, fixture->vocab);
  g_autoptr (OxSession) plain = new_session (fixture, a);
  g_autoptr (GError) error = NULL;
  guint32 id = fixture->path[STEPS - 1];

  for (guint i = 0; i + 1 < STEPS; i++)
    g_assert_true (ox_session_eval (plain, &fixture->path[i], 1, OX_LOGITS_LAST, a, NULL, &error));
  g_assert_true (ox_session_eval (plain, &id, 1, OX_LOGITS_LAST, a, NULL, &error));
  g_assert_true (ox_session_eval (session, &id, 1, OX_LOGITS_LAST, b, NULL, &error));
  g_assert_cmpmem (a, fixture->vocab * sizeof (float), b, fixture->vocab * sizeof (float));
}

static void
test_forced (Fixture *fixture, gconstpointer data)
{
  for (guint n = 1; n < OX_LOGIT_ROWS; n += 2)
    for (guint right = 0; right <= n; right += MAX (n / 2, 1)) {
      Oracle oracle = { fixture, right };
      g_autofree float *logits = g_new (float, fixture->vocab);
      g_autoptr (OxSession) session = new_session (fixture, logits);
      g_autoptr (OxLookahead) lookahead = ox_lookahead_new (session, NULL);
      guint accepted;

      ox_lookahead_force (lookahead, n, guess, &oracle);
      accepted = walk (fixture, session, lookahead);
      if (right == 0)
        g_assert_cmpuint (accepted, ==, 0);
      else /* of each n + 1 tokens, all but one at least came for nothing, except at the end */
        g_assert_cmpuint (accepted, >=, (STEPS - 1) * right / (right + 1) - n);
      check_state (fixture, session);
    }
}

static void
test_from_text (Fixture *fixture, gconstpointer data)
{
  g_autofree float *logits = g_new (float, fixture->vocab);
  g_autoptr (OxSession) session = new_session (fixture, logits);
  g_autoptr (OxLookahead) lookahead = ox_lookahead_new (session, NULL);

  ox_lookahead_force (lookahead, 5, NULL, NULL);
  walk (fixture, session, lookahead);
  check_state (fixture, session);
}

/* Left to itself, when to guess depends on the clock, and the bits must not. */
static void
test_adaptive (Fixture *fixture, gconstpointer data)
{
  for (guint i = 0; i < 3; i++) {
    g_autofree float *logits = g_new (float, fixture->vocab);
    g_autoptr (OxSession) session = new_session (fixture, logits);
    g_autoptr (OxLookahead) lookahead = ox_lookahead_new (session, NULL);

    walk (fixture, session, lookahead);
    check_state (fixture, session);
  }
}

static void
test_drafter (Fixture *fixture, gconstpointer data)
{
  g_autofree float *logits = g_new (float, fixture->vocab);
  g_autoptr (GError) error = NULL;
  g_autoptr (OxSession) session = NULL;
  g_autoptr (OxLookahead) lookahead = NULL;
  OxDraftState *draft;
  guint drafted;

  session = ox_session_new_full (fixture->model, 0, NULL, NULL, &error);
  draft = fixture->drafter->drafter_class->state_new (fixture->drafter, ox_session_get_state (session), &error);
  g_assert_no_error (error);
  ox_session_take_draft_state (session, draft);
  g_assert_true (ox_session_eval (session, fixture->prompt, PROMPT, OX_LOGITS_LAST, logits, NULL, &error));
  lookahead = ox_lookahead_new (session, draft);
  ox_lookahead_force (lookahead, 4, NULL, NULL);
  walk (fixture, session, lookahead);
  drafted = ox_lookahead_get_drafted (lookahead);
  /* It knew something to guess from the first token on. */
  g_assert_cmpuint (drafted, >=, STEPS / 5 * 4);
  check_state (fixture, session);

  /* Cut back, the drafter has nothing to go by until the network has run again. */
  ox_session_truncate (session, PROMPT);
  if (ox_session_get_length (session) == PROMPT) {
    ox_lookahead_begin (lookahead, NULL, 0);
    g_assert_true (ox_lookahead_advance (lookahead, fixture->path[0], STEPS, &(const float *) { NULL }, NULL, &error));
    g_assert_cmpuint (ox_lookahead_get_drafted (lookahead), ==, 0);
    g_assert_true (ox_lookahead_settle (lookahead, &error));
  }
}

/* Guesses end where an answer may end, and where the context does. */
static void
test_limits (Fixture *fixture, gconstpointer data)
{
  Oracle oracle = { fixture, 7 };
  g_autofree float *logits = g_new (float, fixture->vocab);
  g_autoptr (OxSession) session = new_session (fixture, logits);
  g_autoptr (OxLookahead) lookahead = ox_lookahead_new (session, NULL);
  g_autoptr (GError) error = NULL;
  const float *next;

  ox_lookahead_force (lookahead, 7, guess, &oracle);
  ox_lookahead_begin (lookahead, &fixture->path[3], 1);
  g_assert_true (ox_lookahead_advance (lookahead, fixture->path[0], STEPS, &next, NULL, &error));
  g_assert_cmpuint (ox_lookahead_get_drafted (lookahead), <=, 2);
  g_assert_true (ox_lookahead_settle (lookahead, &error));
  ox_lookahead_begin (lookahead, NULL, 0);
  g_assert_true (ox_lookahead_advance (lookahead, fixture->path[1], 3, &next, NULL, &error));
  g_assert_cmpuint (ox_lookahead_get_drafted (lookahead), ==, 3);
  g_assert_true (ox_lookahead_settle (lookahead, &error));
  g_assert_cmpuint (ox_session_get_length (session), ==, PROMPT + 2);
}

/* ---- Sampling ---- */

/* The third token of an answer, drawn with @seed. */
static guint32
draw (Fixture *fixture, OxSession *session, OxLookahead *lookahead, const float *first, guint64 seed, guint32 *tokens)
{
  OxSampling sampling = { .temperature = 1.5f, .top_p = 1, .repetition_penalty = 1, .seed = seed };
  g_autoptr (GError) error = NULL;
  g_autoptr (OxSampler) sampler = ox_sampler_new (&sampling, fixture->vocab, NULL, 0, &error);
  const float *logits = first;

  if (lookahead != NULL)
    ox_lookahead_begin (lookahead, NULL, 0);
  for (guint i = 0;; i++) {
    g_assert_true (ox_sampler_sample (sampler, logits, &tokens[i], &error));
    if (i == 2)
      break;
    ox_sampler_accept (sampler, tokens[i], TRUE);
    if (lookahead != NULL) {
      g_assert_true (ox_lookahead_advance (lookahead, tokens[i], 2, &logits, NULL, &error));
    } else {
      g_assert_true (ox_session_eval (session, &tokens[i], 1, OX_LOGITS_LAST, fixture->logits, NULL, &error));
      logits = fixture->logits;
    }
  }
  if (lookahead != NULL)
    g_assert_true (ox_lookahead_settle (lookahead, &error));
  ox_session_truncate (session, PROMPT);
  return tokens[2];
}

static guint
guess_greedily (const guint32 *tokens, guint n_tokens, guint32 newest, guint n, guint32 *ids, gpointer user_data)
{
  Fixture *fixture = user_data;

  /* Right often enough, and never for sure. */
  for (guint i = 0; i < n; i++)
    ids[i] = fixture->path[MIN (n_tokens - PROMPT + 1 + i, STEPS - 1)];
  return n;
}

/* How often the likeliest token is drawn with these logits, at the temperature of draw(). */
static double
probability (const float *logits, guint n, guint32 id)
{
  double total = 0;

  for (guint i = 0; i < n; i++)
    total += exp ((logits[i] - logits[id]) / 1.5);
  return 1 / total;
}

static void
check_frequency (const char *what, guint found, guint of, double p)
{
  double deviation = sqrt (of * p * (1 - p));

  g_test_message ("%s: %u of %u, expected %.0f, standard deviation %.1f", what, found, of, of * p, deviation);
  g_assert_cmpfloat (fabs (found - p * of), <=, 5 * deviation + 1);
}

static void
test_sampled (Fixture *fixture, gconstpointer data)
{
  enum { DRAWS = 1500 };
  g_autofree float *first = g_new (float, fixture->vocab);
  g_autofree float *second = g_memdup2 (fixture->logits + fixture->vocab, fixture->vocab * sizeof (float));
  g_autoptr (OxSession) guessing = new_session (fixture, first);
  g_autoptr (OxSession) plain = new_session (fixture, first);
  g_autoptr (OxLookahead) lookahead = ox_lookahead_new (guessing, NULL);
  guint same_first = 0, same_second = 0;

  ox_lookahead_force (lookahead, 2, guess_greedily, fixture);
  for (guint64 seed = 1; seed <= DRAWS; seed++) {
    guint32 a[3], b[3];

    draw (fixture, guessing, lookahead, first, seed, a);
    if (seed <= 40) {
      /* The same seed draws the same tokens, guessed or not. */
      draw (fixture, plain, NULL, first, seed, b);
      g_assert_cmpmem (a, sizeof a, b, sizeof b);
    }
    if (a[0] == fixture->path[0]) {
      same_first++;
      /* Here the second token was guessed, and its logits came along with the first's. */
      same_second += a[1] == fixture->path[1];
    }
  }
  check_frequency ("the likeliest first token", same_first, DRAWS,
                   probability (first, fixture->vocab, fixture->path[0]));
  check_frequency ("the likeliest second token, which was guessed", same_second, same_first,
                   probability (second, fixture->vocab, fixture->path[1]));
}

int
main (int argc, char **argv)
{
  static const struct {
    const char *name;
    void (*func) (Fixture *fixture, gconstpointer data);
  } tests[] = {
    { "forced", test_forced },   { "from-text", test_from_text }, { "adaptive", test_adaptive },
    { "drafter", test_drafter }, { "limits", test_limits },       { "sampled", test_sampled },
  };

  g_test_init (&argc, &argv, NULL);
  for (gsize v = 0; v < G_N_ELEMENTS (variants); v++)
    for (gsize t = 0; t < G_N_ELEMENTS (tests); t++) {
      g_autofree char *path = g_strdup_printf ("/lookahead/%s/%s", variants[v].name, tests[t].name);

      if (tests[t].func == test_drafter && !variants[v].has_drafter)
        continue;
      /* Cutting a recurrent state back to the prompt for each draw would run the prompt each time. */
      if (tests[t].func == test_sampled && g_str_has_prefix (variants[v].name, "qwen35"))
        continue;
      g_test_add (path, Fixture, &variants[v], set_up, tests[t].func, tear_down);
    }
  return g_test_run ();
}
