/* Answers: events, ends, statistics, sampling, stopping.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-toy-model.h"
#include "ox-session-private.h"

#include <string.h>

typedef struct {
  GString *text;
  OxEvent last;
  guint n_events, n_ends, n_pieces, n_prefills;
  guint done; /* of the last prefill event */
  /* To be stopped from another thread, at the @stop_at-th event of a kind. */
  GCancellable *cancellable;
  OxEventType stop_type;
  guint stop_at;
  GMutex lock;
  GCond cond;
  gboolean reached;
  gint64 stopped; /* when */
} Answer;

static void
answer_init (Answer *answer)
{
  *answer = (Answer) { .text = g_string_new (NULL) };
  g_mutex_init (&answer->lock);
  g_cond_init (&answer->cond);
}

static void
answer_clear (Answer *answer)
{
  g_string_free (answer->text, TRUE);
  g_mutex_clear (&answer->lock);
  g_cond_clear (&answer->cond);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Answer, answer_clear)

static void
on_event (const OxEvent *event, gpointer user_data)
{
  Answer *answer = user_data;
  const OxStatistics *s = &event->statistics;

  /* Nothing comes after the end. */
  g_assert_cmpuint (answer->n_ends, ==, 0);
  answer->n_events++;
  answer->last = *event;
  answer->last.text = NULL;
  g_assert_cmpuint (s->reused_tokens, <=, s->prompt_tokens);
  g_assert_cmpfloat (s->prefill_seconds, >=, 0);
  switch (event->type) {
  case OX_EVENT_PREFILL:
    g_assert_cmpuint (event->done, <=, event->total);
    g_assert_cmpuint (event->done, >=, answer->done);
    answer->done = event->done;
    answer->n_prefills++;
    break;
  case OX_EVENT_TEXT:
    g_assert_nonnull (event->text);
    g_assert_true (g_utf8_validate (event->text, -1, NULL));
    g_string_append (answer->text, event->text);
    answer->n_pieces++;
    break;
  case OX_EVENT_END:
    answer->n_ends++;
    break;
  case OX_EVENT_THINKING:
  default:
    g_assert_not_reached ();
  }
  if (answer->stop_at > 0 && event->type == answer->stop_type && --answer->stop_at == 0) {
    g_mutex_lock (&answer->lock);
    answer->reached = TRUE;
    g_cond_signal (&answer->cond);
    g_mutex_unlock (&answer->lock);
  }
}

static OxModel *
load (const OxToyModel *toy, const OxModelOptions *options)
{
  char *path = ox_toy_model_make (toy);
  g_autoptr (GError) error = NULL;
  OxModel *model = ox_model_load (path, options, NULL, NULL, NULL, &error);

  g_assert_no_error (error);
  ox_toy_model_delete (path);
  return model;
}

static OxSampling
sampling_of (float temperature, guint64 seed, guint max_tokens)
{
  return (OxSampling) {
    .temperature = temperature, .top_p = 1, .repetition_penalty = 1, .seed = seed, .max_tokens = max_tokens
  };
}

static OxChat *
chat_of (const char *question)
{
  OxChat *chat = ox_chat_new ();

  ox_chat_append (chat, OX_ROLE_USER, question);
  return chat;
}

/* The answer of a new session. */
static char *
say (OxModel *model, const char *question, const OxSampling *sampling)
{
  g_autoptr (OxSession) session = ox_session_new (model, NULL);
  g_autoptr (OxChat) chat = chat_of (question);
  g_autoptr (GError) error = NULL;
  g_auto (Answer) answer;

  answer_init (&answer);
  g_assert_true (ox_session_generate (session, chat, sampling, on_event, &answer, NULL, &error));
  g_assert_no_error (error);
  g_assert_cmpuint (answer.n_ends, ==, 1);
  return g_strdup (answer.text->str);
}

/* ---- Ends ---- */

static void
test_max_tokens (void)
{
  g_autoptr (OxModel) model = load (&(OxToyModel) { 0 }, NULL);
  g_autoptr (OxSession) session = ox_session_new (model, NULL);
  g_autoptr (OxChat) chat = chat_of ("hello");
  static const guint limits[] = { 1, 2, 17 };

  for (gsize i = 0; i < G_N_ELEMENTS (limits); i++) {
    OxSampling sampling = sampling_of (0, 0, limits[i]);
    g_autoptr (GError) error = NULL;
    g_auto (Answer) answer;

    answer_init (&answer);
    g_assert_true (ox_session_generate (session, chat, &sampling, on_event, &answer, NULL, &error));
    g_assert_cmpuint (answer.n_ends, ==, 1);
    g_assert_cmpint (answer.last.type, ==, OX_EVENT_END);
    g_assert_cmpint (answer.last.reason, ==, OX_END_LENGTH);
    g_assert_cmpuint (answer.last.statistics.answer_tokens, ==, limits[i]);
  }
}

/* A model whose end of text is a token that its answer has. */
static void
test_stop (void)
{
  g_autoptr (OxModel) model = load (&(OxToyModel) { 0 }, NULL);
  OxSampling sampling = sampling_of (0, 0, 40);
  g_autofree char *text = say (model, "hello", &sampling);
  g_autofree char *until = NULL;
  g_autofree char *stopped_text = NULL;
  g_autoptr (OxModel) stopping = NULL;
  g_autoptr (OxSession) session = NULL;
  g_autoptr (OxChat) chat = chat_of ("hello");
  g_autoptr (GError) error = NULL;
  g_auto (Answer) answer;
  const char *first;

  /* Bytes are their own ids. Some character that comes first late in the answer. */
  first = text + strlen (text) / 2;
  while (*first != '\0' &&
         (memchr (text, *first, (gsize) (first - text)) != NULL || strchr ("usrhetanio", *first) != NULL))
    first++;
  g_assert_cmpint (*first, !=, '\0');
  until = g_strndup (text, (gsize) (first - text));

  stopping = load (&(OxToyModel) { .eos = (guint) *first }, NULL);
  session = ox_session_new (stopping, NULL);
  answer_init (&answer);
  g_assert_true (ox_session_generate (session, chat, &sampling, on_event, &answer, NULL, &error));
  g_assert_cmpstr (answer.text->str, ==, until);
  g_assert_cmpint (answer.last.reason, ==, OX_END_STOP);
  g_assert_cmpuint (answer.n_ends, ==, 1);
}

static void
test_context_full (void)
{
  g_autoptr (OxModel) model = load (&(OxToyModel) { 0 }, &(OxModelOptions) { .context_length = 64 });
  g_autoptr (OxSession) session = ox_session_new (model, NULL);
  g_autofree char *long_text = g_strnfill (100, 'x');
  g_autoptr (OxChat) chat = chat_of ("hello");
  g_autoptr (OxChat) long_chat = chat_of (long_text);
  OxSampling sampling = sampling_of (0, 0, 0);

  for (guint i = 0; i < 2; i++) {
    g_autoptr (GError) error = NULL;
    g_auto (Answer) answer;

    /* The answer ends when the context is full, and the next call goes on all the same. */
    answer_init (&answer);
    g_assert_true (ox_session_generate (session, chat, &sampling, on_event, &answer, NULL, &error));
    g_assert_cmpint (answer.last.reason, ==, OX_END_CONTEXT);
    g_assert_cmpuint (answer.n_ends, ==, 1);
    g_assert_cmpuint (answer.last.statistics.context_length, ==, 64);
    /* The last token needs no place: it is not run. */
    g_assert_cmpuint (answer.last.statistics.prompt_tokens + answer.last.statistics.answer_tokens, ==, 65);
  }
  for (guint i = 0; i < 2; i++) {
    g_autoptr (GError) error = NULL;
    g_auto (Answer) answer;

    answer_init (&answer);
    g_assert_false (ox_session_generate (session, long_chat, &sampling, on_event, &answer, NULL, &error));
    g_assert_error (error, OX_ERROR, OX_ERROR_CONTEXT_FULL);
    g_test_message ("%s", error->message);
    g_assert_cmpint (answer.last.reason, ==, OX_END_ERROR);
    g_assert_cmpuint (answer.n_ends, ==, 1);
    g_assert_cmpuint (answer.n_pieces, ==, 0);
  }
}

static void
test_nonsense (void)
{
  g_autoptr (OxModel) model = load (&(OxToyModel) { .gemma = TRUE }, NULL);
  g_autoptr (OxSession) session = ox_session_new (model, NULL);
  g_autoptr (OxChat) out_of_turn = chat_of ("hello");
  g_autoptr (OxChat) chat = chat_of ("hello");
  OxSampling sampling = sampling_of (-1, 0, 10);
  g_autoptr (GError) error = NULL;
  g_auto (Answer) answer;
  g_auto (Answer) second;

  ox_chat_append (out_of_turn, OX_ROLE_USER, "hello again");
  answer_init (&answer);
  g_assert_false (ox_session_generate (session, out_of_turn, NULL, on_event, &answer, NULL, &error));
  g_assert_error (error, OX_ERROR, OX_ERROR_INVALID);
  g_assert_cmpint (answer.last.reason, ==, OX_END_ERROR);
  g_assert_cmpuint (answer.n_ends, ==, 1);
  g_clear_error (&error);

  answer_init (&second);
  g_assert_false (ox_session_generate (session, chat, &sampling, on_event, &second, NULL, &error));
  g_assert_error (error, OX_ERROR, OX_ERROR_INVALID);
  g_assert_cmpuint (second.n_ends, ==, 1);
}

static void
check_nan (const char *tensor)
{
  g_autoptr (OxModel) model = load (&(OxToyModel) { .nan = tensor }, NULL);
  g_autoptr (OxSession) session = ox_session_new (model, NULL);
  g_autoptr (OxChat) chat = chat_of ("hello");
  static const float temperatures[] = { 0, 1 };

  for (guint i = 0; i < G_N_ELEMENTS (temperatures); i++) {
    OxSampling sampling = sampling_of (temperatures[i], 1, 10);
    g_autoptr (GError) error = NULL;
    g_auto (Answer) answer;

    answer_init (&answer);
    g_assert_false (ox_session_generate (session, chat, &sampling, on_event, &answer, NULL, &error));
    g_assert_error (error, OX_ERROR, OX_ERROR_NUMERIC);
    g_assert_cmpint (answer.last.reason, ==, OX_END_ERROR);
    g_assert_cmpuint (answer.n_ends, ==, 1);
    g_assert_cmpuint (answer.n_pieces, ==, 0);
  }
}

static void
test_nan_weights (void)
{
  check_nan ("blk.1.ffn_down.weight");
  check_nan ("blk.0.attn_q.weight");
  check_nan ("output_norm.weight");
}

/* ---- Statistics ---- */

static gint64
ticking (gpointer user_data)
{
  gint64 *now = user_data;

  *now += 1000;
  return *now;
}

/* With a clock that goes on by a millisecond each time it is asked, everything that is measured is known. */
static void
test_statistics (void)
{
  g_autoptr (OxModel) model = load (&(OxToyModel) { 0 }, NULL);
  g_autoptr (OxSession) session = ox_session_new_full (model, 8, NULL, NULL, NULL);
  g_autoptr (OxChat) chat = chat_of ("hello, model");
  OxSampling sampling = sampling_of (0, 0, 10);
  g_autoptr (GError) error = NULL;
  gint64 now = 5000000;
  OxStatistics first, again;
  g_auto (Answer) answer;
  g_auto (Answer) second;

  answer_init (&answer);
  answer_init (&second);
  ox_clock_set_source (ticking, &now);
  g_assert_true (ox_session_generate (session, chat, &sampling, on_event, &answer, NULL, &error));
  g_assert_true (ox_session_generate (session, chat, &sampling, on_event, &second, NULL, &error));
  ox_clock_set_source (NULL, NULL);
  first = answer.last.statistics;
  again = second.last.statistics;

  g_assert_cmpuint (first.reused_tokens, ==, 0);
  g_assert_cmpuint (answer.last.done, ==, first.prompt_tokens);
  g_assert_cmpuint (answer.last.total, ==, first.prompt_tokens);
  /* One event before, one after each chunk of 8. */
  g_assert_cmpuint (answer.n_prefills, ==, 1 + (first.prompt_tokens + 7) / 8);
  g_assert_cmpuint (first.answer_tokens, ==, 10);
  /* A look at the clock for each chunk. */
  g_assert_cmpfloat_with_epsilon (first.prefill_seconds, 0.001 * ((first.prompt_tokens + 7) / 8), 1e-9);
  g_assert_cmpfloat (first.decode_seconds, >=, 0.01);
  g_assert_cmpfloat (first.first_token_seconds, >, first.prefill_seconds);
  g_assert_cmpfloat (first.first_token_seconds, <, first.prefill_seconds + first.decode_seconds);
  g_assert_cmpfloat_with_epsilon (ox_statistics_get_prefill_rate (&first), first.prompt_tokens / first.prefill_seconds,
                                  1e-6);
  g_assert_cmpfloat_with_epsilon (ox_statistics_get_decode_rate (&first), 9 / first.decode_seconds, 1e-6);

  g_assert_cmpuint (again.prompt_tokens, ==, first.prompt_tokens);
  g_assert_cmpuint (again.reused_tokens, ==, first.prompt_tokens - 1);
  g_assert_cmpfloat_with_epsilon (ox_statistics_get_prefill_rate (&again), 1 / again.prefill_seconds, 1e-6);
  g_assert_cmpfloat (ox_statistics_get_decode_rate (&(OxStatistics) { 0 }), ==, 0);
  g_assert_cmpfloat (ox_statistics_get_prefill_rate (&(OxStatistics) { 0 }), ==, 0);
}

/* ---- Sampling ---- */

static void
test_seeds (void)
{
  g_autoptr (OxModel) model = load (&(OxToyModel) { 0 }, NULL);
  OxSampling seeded = sampling_of (1, 42, 40), other = sampling_of (1, 43, 40), random = sampling_of (1, 0, 40);
  g_autofree char *a = say (model, "hello", &seeded);
  g_autofree char *b = say (model, "hello", &seeded);
  g_autofree char *c = say (model, "hello", &other);
  g_autofree char *d = say (model, "hello", &random);
  g_autofree char *e = say (model, "hello", &random);

  g_assert_cmpstr (a, ==, b);
  g_assert_cmpstr (a, !=, c);
  g_assert_cmpstr (d, !=, e);
}

/* The default of a model is used when nothing is said. */
static void
test_default_sampling (void)
{
  g_autoptr (OxModel) model = load (&(OxToyModel) { .gemma = TRUE }, NULL);
  OxSampling sampling;

  ox_model_get_default_sampling (model, &sampling);
  g_assert_cmpfloat (sampling.temperature, ==, 1);
  g_assert_cmpuint (sampling.top_k, ==, 64);
  g_assert_cmpuint (sampling.max_tokens, ==, 0);
}

/* ---- Continuing ---- */

/* An answer that stands open is gone on with, as if it had never been cut. */
static void
check_continue (gboolean gemma)
{
  g_autoptr (OxModel) model = load (&(OxToyModel) { .gemma = gemma }, NULL);
  g_autoptr (OxSession) session = ox_session_new (model, NULL);
  OxSampling whole = sampling_of (0, 0, 30), rest = sampling_of (0, 0, 1);
  g_autofree char *text = say (model, "hello", &whole);
  g_autoptr (OxChat) chat = chat_of ("hello");
  g_autofree char *head = NULL;
  g_autoptr (GError) error = NULL;
  g_auto (Answer) answer;
  guint n;

  /* Cut after a letter that no token joins with what follows. */
  for (n = 8; strchr ("usrhetanio ", text[n - 1]) != NULL || strchr ("usrhetanio ", text[n]) != NULL; n++)
    g_assert_cmpint (text[n + 1], !=, '\0');
  head = g_strndup (text, n);
  ox_chat_append (chat, OX_ROLE_ASSISTANT, head);
  answer_init (&answer);
  g_assert_true (ox_session_generate (session, chat, &rest, on_event, &answer, NULL, &error));
  g_assert_no_error (error);
  g_assert_cmpint (answer.text->str[0], ==, text[n]);
}

static void
test_continue (void)
{
  check_continue (FALSE);
  check_continue (TRUE);
}

/* Plain text, without a chat format: what a base model does with a chat, and what complete() does with any. */
static void
test_complete (void)
{
  g_autoptr (OxModel) model = load (&(OxToyModel) { 0 }, NULL);
  g_autoptr (OxModel) base = load (&(OxToyModel) { .base = TRUE }, NULL);
  g_autoptr (OxSession) session = ox_session_new (model, NULL);
  OxSampling sampling = sampling_of (0, 0, 20);
  g_autofree char *plain = say (base, "Once upon a time", &sampling);
  g_autofree char *chat = say (model, "Once upon a time", &sampling);
  g_autoptr (GError) error = NULL;
  g_auto (Answer) answer;

  answer_init (&answer);
  g_assert_true (ox_session_complete (session, "Once upon a time", &sampling, on_event, &answer, NULL, &error));
  g_assert_cmpuint (answer.n_ends, ==, 1);
  g_assert_cmpstr (answer.text->str, ==, plain);
  g_assert_cmpstr (answer.text->str, !=, chat);
}

static void
test_complete_nothing (void)
{
  g_autoptr (OxModel) model = load (&(OxToyModel) { 0 }, NULL);
  g_autoptr (OxSession) session = ox_session_new (model, NULL);
  g_autoptr (GError) error = NULL;
  g_auto (Answer) answer;

  answer_init (&answer);
  g_assert_false (ox_session_complete (session, "", NULL, on_event, &answer, NULL, &error));
  g_assert_error (error, OX_ERROR, OX_ERROR_INVALID);
  g_assert_cmpuint (answer.n_ends, ==, 1);
}

/* ---- Stopping ---- */

static gpointer
stop_thread (gpointer user_data)
{
  Answer *answer = user_data;

  g_mutex_lock (&answer->lock);
  while (!answer->reached)
    g_cond_wait (&answer->cond, &answer->lock);
  g_mutex_unlock (&answer->lock);
  /* Into the middle of what comes after the event. */
  g_usleep (20000);
  answer->stopped = g_get_monotonic_time ();
  g_cancellable_cancel (answer->cancellable);
  return NULL;
}

/* Stopped from another thread, 20 ms after the @at-th event of a kind, in a model that has hundreds of megabytes to read for each
 * token. Other programs can take the processor away, so the best of some tries counts. */
static void
check_stop (OxEventType type, guint at, const char *question)
{
  OxToyModel large = { .sparse = TRUE, .f16 = TRUE, .layers = 4, .hidden = 2048, .feed_forward = 8192, .heads = 16 };
  char *path = ox_toy_model_make (&large);
  OxSampling sampling = sampling_of (0, 0, 0);
  g_autoptr (OxChat) chat = chat_of (question);
  g_autoptr (GError) load_error = NULL;
  g_autoptr (OxModel) model = ox_model_load (path, NULL, NULL, NULL, NULL, &load_error);
  gint64 best = G_MAXINT64;

  ox_toy_model_delete (path);
  if (g_error_matches (load_error, OX_ERROR, OX_ERROR_NO_MEMORY)) {
    g_test_skip ("half a gigabyte of memory is not free");
    return;
  }
  g_assert_no_error (load_error);
  for (guint try = 0; try < 5 && best > 100000; try++) {
    g_autoptr (GCancellable) cancellable = g_cancellable_new ();
    g_autoptr (OxSession) session = ox_session_new (model, NULL);
    g_autoptr (GError) error = NULL;
    g_auto (Answer) answer;
    GThread *thread;
    gint64 end;

    answer_init (&answer);
    answer.cancellable = cancellable;
    answer.stop_type = type;
    answer.stop_at = at;
    thread = g_thread_new ("stop", stop_thread, &answer);
    g_assert_false (ox_session_generate (session, chat, &sampling, on_event, &answer, cancellable, &error));
    end = g_get_monotonic_time ();
    g_thread_join (thread);
    g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
    g_assert_cmpuint (answer.n_ends, ==, 1);
    g_assert_cmpint (answer.last.reason, ==, OX_END_CANCELLED);
    if (type == OX_EVENT_TEXT)
      g_assert_cmpuint (answer.last.statistics.answer_tokens, >=, at);
    else
      g_assert_cmpuint (answer.n_pieces, ==, 0);
    best = MIN (best, end - answer.stopped);
  }
  g_test_message ("stopped after %.1f ms", (double) best / 1000);
  g_assert_cmpint (best, <=, 100000);
}

static void
test_stop_prefill (void)
{
  g_autofree char *question = g_strnfill (3000, 'x');

  check_stop (OX_EVENT_PREFILL, 1, question);
}

static void
test_stop_decode (void)
{
  check_stop (OX_EVENT_TEXT, 2, "hello");
}

/* A session that was stopped goes on as if nothing had been. */
static void
test_after_stop (void)
{
  g_autoptr (OxModel) model = load (&(OxToyModel) { 0 }, NULL);
  g_autoptr (OxSession) session = ox_session_new (model, NULL);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (OxChat) chat = chat_of ("hello");
  OxSampling sampling = sampling_of (0, 0, 30);
  g_autofree char *expected = say (model, "hello", &sampling);
  g_autoptr (GError) error = NULL;
  g_auto (Answer) stopped;
  g_auto (Answer) answer;

  answer_init (&stopped);
  answer_init (&answer);
  g_cancellable_cancel (cancellable);
  g_assert_false (ox_session_generate (session, chat, &sampling, on_event, &stopped, cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_assert_cmpint (stopped.last.reason, ==, OX_END_CANCELLED);
  g_clear_error (&error);
  g_assert_true (ox_session_generate (session, chat, &sampling, on_event, &answer, NULL, &error));
  g_assert_cmpstr (answer.text->str, ==, expected);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/engine/answer/max-tokens", test_max_tokens);
  g_test_add_func ("/engine/answer/stop", test_stop);
  g_test_add_func ("/engine/answer/context-full", test_context_full);
  g_test_add_func ("/engine/answer/nonsense", test_nonsense);
  g_test_add_func ("/engine/answer/nan-weights", test_nan_weights);
  g_test_add_func ("/engine/answer/statistics", test_statistics);
  g_test_add_func ("/engine/answer/seeds", test_seeds);
  g_test_add_func ("/engine/answer/default-sampling", test_default_sampling);
  g_test_add_func ("/engine/answer/continue", test_continue);
  g_test_add_func ("/engine/answer/complete", test_complete);
  g_test_add_func ("/engine/answer/complete-nothing", test_complete_nothing);
  g_test_add_func ("/engine/answer/stop/prefill", test_stop_prefill);
  g_test_add_func ("/engine/answer/stop/decode", test_stop_decode);
  g_test_add_func ("/engine/answer/after-stop", test_after_stop);
  return g_test_run ();
}
