/* Sessions: what they hold and reuse, whatever is done to the conversation.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-toy-model.h"
#include "ox-session-private.h"

#include <math.h>
#include <string.h>

/* Slack that makes rings as long as the context. */
#define NO_WRAP 4096

static const OxSampling greedy = { .top_p = 1, .repetition_penalty = 1, .max_tokens = 24 };

typedef struct {
  GString *text;
  OxStatistics statistics;
  OxEndReason reason;
  guint ends;
} Answer;

static void
on_event (const OxEvent *event, gpointer user_data)
{
  Answer *answer = user_data;

  g_assert_cmpuint (answer->ends, ==, 0);
  if (event->type == OX_EVENT_TEXT)
    g_string_append (answer->text, event->text);
  if (event->type == OX_EVENT_END) {
    answer->ends++;
    answer->reason = event->reason;
    answer->statistics = event->statistics;
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

/* The greedy answer to messages (user's and assistant's in turn, up to NULL). */
static char *
answer_of (OxSession *session, OxStatistics *statistics, const char *const *messages)
{
  g_autoptr (OxChat) chat = ox_chat_new ();
  g_autoptr (GString) text = g_string_new (NULL);
  g_autoptr (GError) error = NULL;
  Answer answer = { .text = text };

  for (guint i = 0; messages[i] != NULL; i++)
    ox_chat_append (chat, i % 2 == 0 ? OX_ROLE_USER : OX_ROLE_ASSISTANT, messages[i]);
  g_assert_true (ox_session_generate (session, chat, &greedy, on_event, &answer, NULL, &error));
  g_assert_no_error (error);
  g_assert_cmpuint (answer.ends, ==, 1);
  if (statistics != NULL)
    *statistics = answer.statistics;
  return g_string_free (g_steal_pointer (&text), FALSE);
}

/* The same from a session that knows nothing. */
static char *
fresh_answer_of (OxModel *model, const char *const *messages)
{
  g_autoptr (OxSession) session = ox_session_new (model, NULL);

  return answer_of (session, NULL, messages);
}

static void
assert_as_fresh (OxSession *session, OxStatistics *statistics, const char *const *messages)
{
  g_autofree char *reused = answer_of (session, statistics, messages);
  g_autofree char *fresh = fresh_answer_of (ox_session_get_model (session), messages);

  g_assert_cmpstr (reused, ==, fresh);
  g_assert_cmpuint (statistics->answer_tokens, ==, greedy.max_tokens);
}

static void
check_conversation (gboolean gemma)
{
  g_autoptr (OxModel) model = load (&(OxToyModel) { .gemma = gemma }, NULL);
  g_autoptr (OxSession) session = ox_session_new (model, NULL);
  g_autofree char *first = NULL;
  OxStatistics s;
  guint first_prompt;

  first = answer_of (session, &s, (const char *[]) { "My name is Ada.", NULL });
  first_prompt = s.prompt_tokens;
  g_assert_cmpuint (s.reused_tokens, ==, 0);

  /* The next turn: question and answer are known, and need not be read again. */
  assert_as_fresh (session, &s, (const char *[]) { "My name is Ada.", first, "What is my name?", NULL });
  g_assert_cmpuint (s.reused_tokens, >=, first_prompt);
  g_assert_cmpuint (s.reused_tokens, <, s.prompt_tokens);

  /* Regenerate: all is known but the last token, whose logits are wanted. */
  assert_as_fresh (session, &s, (const char *[]) { "My name is Ada.", first, "What is my name?", NULL });
  g_assert_cmpuint (s.reused_tokens, ==, s.prompt_tokens - 1);

  /* Edit an earlier message: known up to the edit. */
  assert_as_fresh (session, &s, (const char *[]) { "My name is Eve.", first, "What is my name?", NULL });
  g_assert_cmpuint (s.reused_tokens, >, 0);
  g_assert_cmpuint (s.reused_tokens, <, first_prompt);

  /* Back to the beginning, which is a prefix. */
  assert_as_fresh (session, &s, (const char *[]) { "My name is Eve.", NULL });
  g_assert_cmpuint (s.reused_tokens, >, 0);

  /* Another conversation altogether. */
  assert_as_fresh (session, &s, (const char *[]) { "zzz", NULL });
}

static void
test_conversation_llama (void)
{
  check_conversation (FALSE);
}

static void
test_conversation_gemma (void)
{
  check_conversation (TRUE);
}

/* A session with another chunk, and another slack of its sliding windows. */
static OxSession *
new_session (OxModel *model, guint chunk, guint slack)
{
  guint usual = model->state_options.slack;
  OxSession *session;

  model->state_options.slack = slack;
  session = ox_session_new_full (model, chunk, NULL, NULL, NULL);
  model->state_options.slack = usual;
  g_assert_nonnull (session);
  return session;
}

/* Logits after @ids from such a session, which knows nothing yet. */
static void
fresh_logits (OxModel *model, guint chunk, guint slack, const GArray *ids, float *logits)
{
  g_autoptr (OxSession) session = new_session (model, chunk, slack);
  g_autoptr (GError) error = NULL;

  g_assert_true (
    ox_session_eval (session, (const guint32 *) ids->data, ids->len, OX_LOGITS_LAST, logits, NULL, &error));
  g_assert_no_error (error);
}

static double
difference (const float *a, const float *b)
{
  double greatest = 0;

  for (guint i = 0; i < OX_TOY_VOCAB; i++)
    greatest = MAX (greatest, fabs ((double) a[i] - (double) b[i]));
  return greatest;
}

/* Any order of cutting back and going on gives the numbers of a fresh start, also where a sliding window's ring has wrapped and
 * where it has forgotten. */
static void
check_random_cuts (gboolean gemma)
{
  g_autoptr (OxModel) model = load (&(OxToyModel) { .gemma = gemma, .layers = 3 }, NULL);
  g_autoptr (GRand) random = g_rand_new_with_seed (7);
  g_autoptr (GArray) held = g_array_new (FALSE, FALSE, sizeof (guint32));
  g_autoptr (OxSession) session = new_session (model, 8, 24);
  float logits[OX_TOY_VOCAB], expected[OX_TOY_VOCAB];
  guint kept = 0, forgotten = 0;

  for (guint round = 0; round < 150; round++) {
    guint length = (guint) g_rand_int_range (random, 0, (gint32) held->len + 1);
    guint back = (guint) g_rand_int_range (random, 0, 30);
    guint n = (guint) g_rand_int_range (random, 1, 40);
    g_autoptr (GError) error = NULL;
    guint32 ids[40];

    /* Mostly small steps back, sometimes anywhere. */
    if (round % 5 != 0)
      length = held->len - MIN (held->len, back);
    ox_session_truncate (session, length);
    if (ox_session_get_length (session) == 0 && length > 0) {
      forgotten++;
      length = 0;
    } else {
      kept += length < held->len;
    }
    g_assert_cmpuint (ox_session_get_length (session), ==, length);
    g_array_set_size (held, length);

    for (guint i = 0; i < n; i++)
      ids[i] = (guint32) g_rand_int_range (random, 0, OX_TOY_VOCAB);
    g_array_append_vals (held, ids, n);
    g_assert_true (ox_session_eval (session, ids, n, OX_LOGITS_LAST, logits, NULL, &error));
    g_assert_no_error (error);
    /* A ring that never wraps sums in another order; the same ring gives the very numbers. */
    fresh_logits (model, 0, NO_WRAP, held, expected);
    g_assert_cmpfloat (difference (logits, expected), <=, 1e-4);
    fresh_logits (model, 8, 24, held, expected);
    g_assert_cmpmem (logits, sizeof logits, expected, sizeof expected);
  }
  g_test_message ("%u cuts kept, %u forgotten", kept, forgotten);
  g_assert_cmpuint (kept, >, 20);
  g_assert_cmpint (forgotten > 0, ==, gemma);
}

static void
test_random_cuts_llama (void)
{
  check_random_cuts (FALSE);
}

static void
test_random_cuts_gemma (void)
{
  check_random_cuts (TRUE);
}

/* A conversation that has outgrown the window and its slack: an early edit starts over, a late one does not. */
static void
test_beyond_slack (void)
{
  g_autoptr (OxModel) model = load (&(OxToyModel) { .gemma = TRUE }, NULL);
  g_autofree char *text = g_strnfill (300, 'x');
  g_autofree char *edited = g_strdup (text);
  g_autofree char *start_over = g_strdup (text);
  g_autoptr (OxSession) session = new_session (model, 16, 64);
  g_autofree char *first = NULL;
  OxStatistics s;

  first = answer_of (session, &s, (const char *[]) { text, NULL });
  g_assert_cmpuint (s.prompt_tokens, >, 300);
  edited[295] = 'y';
  assert_as_fresh (session, &s, (const char *[]) { edited, NULL });
  g_assert_cmpuint (s.reused_tokens, >, 290);
  start_over[5] = 'y';
  assert_as_fresh (session, &s, (const char *[]) { start_over, NULL });
  g_assert_cmpuint (s.reused_tokens, ==, 0);
}

/* An eval that is stopped leaves the session as it was. */
static void
test_failed_eval_changes_nothing (void)
{
  g_autoptr (OxModel) model = load (&(OxToyModel) { .gemma = TRUE }, &(OxModelOptions) { .context_length = 64 });
  g_autoptr (OxSession) session = ox_session_new (model, NULL);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GArray) held = g_array_new (FALSE, FALSE, sizeof (guint32));
  g_autoptr (GError) error = NULL;
  float logits[OX_TOY_VOCAB], expected[OX_TOY_VOCAB];
  guint32 ids[65], more = 100;

  for (guint i = 0; i < G_N_ELEMENTS (ids); i++)
    ids[i] = 40 + i;
  g_assert_true (ox_session_eval (session, ids, 20, OX_LOGITS_NONE, NULL, NULL, &error));

  g_cancellable_cancel (cancellable);
  g_assert_false (ox_session_eval (session, ids, 20, OX_LOGITS_LAST, logits, cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (&error);
  g_assert_false (ox_session_eval (session, ids, 45, OX_LOGITS_LAST, logits, NULL, &error));
  g_assert_error (error, OX_ERROR, OX_ERROR_CONTEXT_FULL);
  g_clear_error (&error);
  ids[30] = OX_TOY_VOCAB;
  g_assert_false (ox_session_eval (session, ids, 40, OX_LOGITS_LAST, logits, NULL, &error));
  g_assert_error (error, OX_ERROR, OX_ERROR_INVALID);
  g_clear_error (&error);

  g_assert_cmpuint (ox_session_get_length (session), ==, 20);
  g_assert_true (ox_session_eval (session, &more, 1, OX_LOGITS_LAST, logits, NULL, &error));
  g_array_append_vals (held, ids, 20);
  g_array_append_val (held, more);
  fresh_logits (model, 0, NO_WRAP, held, expected);
  g_assert_cmpmem (logits, sizeof logits, expected, sizeof expected);
}

/* ---- Threads ---- */

typedef struct {
  OxModel *model;
  const char *question;
  char *answers[4];
} Talk;

static gpointer
talk_thread (gpointer user_data)
{
  Talk *talk = user_data;
  g_autoptr (OxSession) session = ox_session_new (talk->model, NULL);

  for (guint i = 0; i < G_N_ELEMENTS (talk->answers); i++) {
    g_autofree char *question = g_strdup_printf ("%s %u", talk->question, i);

    talk->answers[i] = answer_of (session, NULL, (const char *[]) { question, NULL });
  }
  return NULL;
}

/* Sessions of one model in two threads say what they would say alone. */
static void
test_two_threads (void)
{
  g_autoptr (OxModel) model = load (&(OxToyModel) { .hidden = 256, .feed_forward = 1024 }, NULL);
  Talk talks[2] = { { .model = model, .question = "one" }, { .model = model, .question = "two" } };
  GThread *threads[2];

  for (guint i = 0; i < 2; i++)
    threads[i] = g_thread_new ("talk", talk_thread, &talks[i]);
  for (guint i = 0; i < 2; i++)
    g_thread_join (threads[i]);
  for (guint i = 0; i < 2; i++) {
    Talk alone = { .model = model, .question = talks[i].question };

    talk_thread (&alone);
    for (guint j = 0; j < G_N_ELEMENTS (alone.answers); j++) {
      g_assert_cmpstr (talks[i].answers[j], ==, alone.answers[j]);
      g_free (talks[i].answers[j]);
      g_free (alone.answers[j]);
    }
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/engine/session/conversation/llama", test_conversation_llama);
  g_test_add_func ("/engine/session/conversation/gemma", test_conversation_gemma);
  g_test_add_func ("/engine/session/random-cuts/llama", test_random_cuts_llama);
  g_test_add_func ("/engine/session/random-cuts/gemma", test_random_cuts_gemma);
  g_test_add_func ("/engine/session/beyond-slack", test_beyond_slack);
  g_test_add_func ("/engine/session/failed-eval-changes-nothing", test_failed_eval_changes_nothing);
  g_test_add_func ("/engine/session/two-threads", test_two_threads);
  return g_test_run ();
}
