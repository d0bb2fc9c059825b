/* Sessions of every kind of model go back for little: repeated, edited and stopped turns cost what is new, and give the numbers of a
 * fresh start.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-talk.h"

#include <string.h>
#include <unistd.h>

#define N_MESSAGES 21

typedef struct {
  char *messages[N_MESSAGES + 3];
} Conversation;

/* Questions and answers of about 95 tokens each. */
static void
conversation_init (Conversation *conversation)
{
  memset (conversation, 0, sizeof *conversation);
  for (guint i = 0; i < N_MESSAGES; i++)
    conversation->messages[i] =
      g_strdup_printf ("%u: a few words about ships, shoes, sealing wax, of cabbages and kings, and why %u pigs "
                       "want wings %u times",
                       i, i * 7 % 5, i * 13 % 11);
}

static void
conversation_clear (Conversation *conversation)
{
  for (guint i = 0; i < G_N_ELEMENTS (conversation->messages); i++)
    g_free (conversation->messages[i]);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Conversation, conversation_clear)

static void
set_message (Conversation *conversation, guint index, const char *text)
{
  g_free (conversation->messages[index]);
  conversation->messages[index] = g_strdup (text);
}

static guint
count_tokens (OxModel *model, const Conversation *conversation, guint n_messages)
{
  const char *part[N_MESSAGES + 3] = { NULL };
  g_autoptr (OxChat) chat = NULL;
  guint n = 0;

  for (guint i = 0; i < n_messages; i++)
    part[i] = conversation->messages[i];
  chat = ox_talk_chat (part);
  g_assert_true (ox_model_count_tokens (model, chat, &n, NULL, NULL));
  return n;
}

/* The answer to the conversation is that of a new session, and so are the logits after its prompt, to the bit. Leaves the session with
 * an answer of 24 tokens. */
static void
check_as_fresh (OxSession *session, const Conversation *conversation, OxStatistics *statistics)
{
  OxModel *model = ox_session_get_model (session);
  g_autoptr (OxSession) fresh = ox_session_new (model, NULL);
  g_autoptr (OxChat) chat = ox_talk_chat ((const char *const *) conversation->messages);
  gsize n_bytes = model->config->vocab_size * sizeof (float);
  g_auto (OxTalk) talk;
  g_auto (OxTalk) expected;
  g_auto (OxTalk) whole;
  g_auto (OxTalk) whole_expected;

  ox_talk_init (&talk);
  ox_talk_init (&expected);
  ox_talk_init (&whole);
  ox_talk_init (&whole_expected);
  /* One token: the logits that it is drawn from are still there. */
  ox_talk_answer (&talk, session, chat, 1);
  ox_talk_answer (&expected, fresh, chat, 1);
  g_assert_cmpmem (session->logits, n_bytes, fresh->logits, n_bytes);
  ox_talk_answer (&whole, session, chat, 24);
  ox_talk_answer (&whole_expected, fresh, chat, 24);
  g_assert_cmpstr (whole.text->str, ==, whole_expected.text->str);
  *statistics = talk.statistics;
}

/* A conversation of 2,000 tokens is read, repeated, gone on with and edited. */
static void
test_conversation (gconstpointer data)
{
  OxTalkKind kind = (OxTalkKind) GPOINTER_TO_INT (data);
  g_autoptr (OxModel) model = ox_talk_model (kind, NULL);
  g_autoptr (OxSession) session = NULL;
  g_auto (Conversation) conversation;
  OxStatistics s;
  guint before, n;

  conversation_init (&conversation);
  if (model == NULL)
    return;
  session = ox_session_new (model, NULL);

  check_as_fresh (session, &conversation, &s);
  g_assert_cmpuint (s.prompt_tokens, >=, 2000);
  g_assert_cmpuint (s.reused_tokens, ==, 0);

  /* Regenerate: all is known but the beginning of the answer. */
  check_as_fresh (session, &conversation, &s);
  g_test_message ("regenerate: %u of %u reused", s.reused_tokens, s.prompt_tokens);
  g_assert_cmpuint (s.prompt_tokens - s.reused_tokens, <=, 32);

  /* Edit the last question. */
  before = count_tokens (model, &conversation, N_MESSAGES - 1);
  set_message (&conversation, N_MESSAGES - 1, "Another question altogether");
  check_as_fresh (session, &conversation, &s);
  g_test_message ("edit of the last: %u of %u reused", s.reused_tokens, s.prompt_tokens);
  g_assert_cmpuint (s.reused_tokens, >=, before - 8);

  /* Go on with what was answered, and with an answer that the session has not seen. */
  n = s.prompt_tokens;
  set_message (&conversation, N_MESSAGES, "I never said that");
  set_message (&conversation, N_MESSAGES + 1, "But why?");
  check_as_fresh (session, &conversation, &s);
  g_test_message ("next turn: %u of %u reused", s.reused_tokens, s.prompt_tokens);
  g_assert_cmpuint (s.reused_tokens, >=, n - 32);

  /* Edit a question in the middle: places to go back to are a few hundred tokens apart. */
  before = count_tokens (model, &conversation, 14);
  set_message (&conversation, 14, "Something else in the middle");
  check_as_fresh (session, &conversation, &s);
  g_test_message ("edit in the middle: %u of %u reused", s.reused_tokens, s.prompt_tokens);
  g_assert_cmpuint (s.reused_tokens + (kind == OX_TALK_FULL ? 8 : 600), >=, before);

  /* And again: that was a branch of its own. */
  check_as_fresh (session, &conversation, &s);
  g_assert_cmpuint (s.prompt_tokens - s.reused_tokens, <=, 32);

  /* Near the beginning, where sliding windows have long forgotten everything. */
  before = count_tokens (model, &conversation, 4);
  set_message (&conversation, 4, "Something else near the beginning");
  check_as_fresh (session, &conversation, &s);
  g_test_message ("edit near the beginning: %u of %u reused", s.reused_tokens, s.prompt_tokens);
  g_assert_cmpuint (s.reused_tokens, >=, before - (kind == OX_TALK_FULL ? 8 : 350));

  /* Edit the first question. */
  set_message (&conversation, 0, "zzz");
  check_as_fresh (session, &conversation, &s);
  g_assert_cmpuint (s.reused_tokens, <=, 32);
}

/* Without room for snapshots everything still comes out right, and nothing is kept. */
static void
test_no_room (gconstpointer data)
{
  OxTalkKind kind = (OxTalkKind) GPOINTER_TO_INT (data);
  g_autoptr (OxModel) model = ox_talk_model (kind, NULL);
  g_autoptr (OxSession) session = NULL;
  g_auto (Conversation) conversation;
  OxStatistics s;

  conversation_init (&conversation);
  if (model == NULL)
    return;
  session = ox_session_new (model, NULL);
  ox_session_set_snapshot_limit (session, 0);
  check_as_fresh (session, &conversation, &s);
  set_message (&conversation, 3, "Something else");
  check_as_fresh (session, &conversation, &s);
  g_assert_cmpuint (ox_snapshots_get_length (session->snapshots), ==, 0);
  if (kind != OX_TALK_FULL)
    g_assert_cmpuint (s.reused_tokens, ==, 0);
}

/* However little may be kept, it is not more, and the newest is among it. */
static void
test_bounded (gconstpointer data)
{
  OxTalkKind kind = (OxTalkKind) GPOINTER_TO_INT (data);
  g_autoptr (OxModel) model = ox_talk_model (kind, NULL);
  g_autoptr (OxSession) session = NULL;
  g_auto (Conversation) conversation;
  OxStatistics s;
  gsize one;

  conversation_init (&conversation);
  if (model == NULL)
    return;
  session = ox_session_new (model, NULL);
  one = ox_snapshot_bytes (session->state, 2000);
  g_assert_cmpuint (one, >, 0);
  ox_session_set_snapshot_limit (session, 3 * one);
  check_as_fresh (session, &conversation, &s);
  g_assert_cmpuint (ox_snapshots_get_length (session->snapshots), <=, 3);
  g_assert_cmpuint (ox_snapshots_get_length (session->snapshots), >, 0);
  g_assert_cmpuint (ox_snapshots_get_bytes (session->snapshots), <=, 3 * one);
  check_as_fresh (session, &conversation, &s);
  g_assert_cmpuint (s.prompt_tokens - s.reused_tokens, <=, 32);
  ox_session_set_snapshot_limit (session, one);
  g_assert_cmpuint (ox_snapshots_get_length (session->snapshots), <=, 1);
  ox_session_reset (session);
  g_assert_cmpuint (ox_snapshots_get_bytes (session->snapshots), ==, 0);
}

/* ---- Any order of going back and on ---- */

static void
fresh_logits (OxModel *model, guint chunk, const GArray *ids, float *logits)
{
  g_autoptr (OxSession) session = ox_session_new_full (model, chunk, NULL, NULL, NULL);
  g_autoptr (GError) error = NULL;

  g_assert_true (
    ox_session_eval (session, (const guint32 *) ids->data, ids->len, OX_LOGITS_LAST, logits, NULL, &error));
  g_assert_no_error (error);
}

static void
test_random (gconstpointer data)
{
  OxTalkKind kind = (OxTalkKind) GPOINTER_TO_INT (data);
  g_autoptr (OxModel) model = ox_talk_model (kind, NULL);
  g_autoptr (GRand) random = g_rand_new_with_seed (11);
  g_autoptr (GArray) held = g_array_sized_new (FALSE, FALSE, sizeof (guint32), 1);
  g_autoptr (OxSession) session = NULL;
  g_autofree float *logits = NULL;
  g_autofree float *expected = NULL;
  guint vocab, lost = 0, cut = 0;

  if (model == NULL)
    return;
  vocab = model->config->vocab_size;
  logits = g_new (float, vocab);
  expected = g_new (float, vocab);
  model->state_options.slack = 24;
  session = ox_session_new_full (model, 8, NULL, NULL, NULL);
  ox_session_set_snapshot_limit (session, 5 * ox_snapshot_bytes (session->state, 1000));

  for (guint round = 0; round < 120; round++) {
    guint length = (guint) g_rand_int_range (random, 0, (gint32) held->len + 1);
    guint back = (guint) g_rand_int_range (random, 0, 40);
    guint n = (guint) g_rand_int_range (random, 1, 50);
    g_autoptr (GError) error = NULL;
    guint reusable;
    guint32 ids[50];

    if (round % 5 != 0)
      length = held->len - MIN (held->len, back);
    length = MIN (length, 600);
    reusable = ox_session_get_reusable (session, length);
    ox_session_truncate (session, length);
    g_assert_cmpuint (ox_session_get_length (session), ==, reusable);
    g_assert_cmpuint (reusable, <=, length);
    cut += length < held->len;
    lost += length - reusable;
    /* What was lost is read again. */
    ox_session_eval (session, (const guint32 *) (gpointer) held->data + reusable, length - reusable, OX_LOGITS_NONE,
                     NULL, NULL, &error);
    g_assert_no_error (error);
    g_array_set_size (held, length);
    for (guint i = 0; i < n; i++)
      ids[i] = (guint32) g_rand_int_range (random, 0, (gint32) vocab);
    g_array_append_vals (held, ids, n);
    g_assert_true (ox_session_eval (session, ids, n / 2, OX_LOGITS_NONE, NULL, NULL, &error));
    ox_session_note_turn (session, ox_session_get_length (session));
    g_assert_true (ox_session_eval (session, ids + n / 2, n - n / 2, OX_LOGITS_LAST, logits, NULL, &error));
    g_assert_no_error (error);
    fresh_logits (model, 8, held, expected);
    g_assert_cmpmem (logits, vocab * sizeof (float), expected, vocab * sizeof (float));
  }
  g_test_message ("%u cuts, %u tokens lost", cut, lost);
  g_assert_cmpuint (cut, >, 20);
  g_assert_cmpuint (lost, <, cut * 60);
}

/* ---- Stopped and failed ---- */

/* A pass that is stopped in the middle, in whatever layer, changes nothing: not even recurrent states. */
static GCancellable *stopping;
static guint products_left;
static void (*own_linear) (OxOps *ops, const OxTensor *x, guint n, OxMatrix *const *w, OxTensor *const *y);

static void
stopping_linear (OxOps *ops, const OxTensor *x, guint n, OxMatrix *const *w, OxTensor *const *y)
{
  if (products_left-- == 0)
    g_cancellable_cancel (stopping);
  own_linear (ops, x, n, w, y);
}

static void
test_stopped_pass (gconstpointer data)
{
  OxTalkKind kind = (OxTalkKind) GPOINTER_TO_INT (data);
  g_autoptr (OxModel) model = ox_talk_model (kind, NULL);
  g_autoptr (OxSession) session = NULL;
  g_autofree float *logits = NULL;
  g_autofree float *expected = NULL;
  g_autoptr (GArray) held = g_array_new (FALSE, FALSE, sizeof (guint32));
  gsize n_bytes;
  guint stops = 0;
  gboolean done = FALSE;

  if (model == NULL)
    return;
  n_bytes = model->config->vocab_size * sizeof (float);
  logits = g_malloc (n_bytes);
  expected = g_malloc (n_bytes);
  for (guint32 i = 0; i < 60; i++)
    g_array_append_val (held, i);
  session = ox_session_new_full (model, 16, NULL, NULL, NULL);
  g_assert_true (ox_session_eval (session, (const guint32 *) held->data, 40, OX_LOGITS_NONE, NULL, NULL, NULL));
  own_linear = session->ops->linear;
  for (guint k = 0; !done; k++) {
    g_autoptr (GCancellable) cancellable = g_cancellable_new ();
    g_autoptr (GError) error = NULL;
    guint length;

    stopping = cancellable;
    products_left = k;
    session->ops->linear = stopping_linear;
    done = ox_session_eval (session, (const guint32 *) (gpointer) held->data + 40, 20, OX_LOGITS_LAST, logits,
                            cancellable, &error);
    session->ops->linear = own_linear;
    length = ox_session_get_length (session);
    if (!done) {
      g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
      /* The first chunk may be done. */
      g_assert_true (length == 40 || length == 56);
      stops++;
    }
    if (length == 56)
      ox_session_truncate (session, 40);
    length = ox_session_get_length (session);
    if (length < 40) {
      g_assert_true (ox_session_eval (session, &g_array_index (held, guint32, length), 40 - length, OX_LOGITS_NONE,
                                      NULL, NULL, NULL));
    }
  }
  g_assert_cmpuint (stops, >, 10);
  fresh_logits (model, 16, held, expected);
  g_assert_cmpmem (logits, n_bytes, expected, n_bytes);
}

/* An answer that was stopped while it was written costs the next one nothing. */
static void
test_stopped_answer (gconstpointer data)
{
  OxTalkKind kind = (OxTalkKind) GPOINTER_TO_INT (data);
  g_autoptr (OxModel) model = ox_talk_model (kind, NULL);
  g_autoptr (OxSession) session = NULL;
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (OxChat) chat = NULL;
  g_auto (Conversation) conversation;
  g_auto (OxTalk) talk;
  g_autoptr (GError) error = NULL;
  OxStatistics s;

  conversation_init (&conversation);
  ox_talk_init (&talk);
  if (model == NULL)
    return;
  session = ox_session_new (model, NULL);
  chat = ox_talk_chat ((const char *const *) conversation.messages);
  talk.cancellable = cancellable;
  talk.cancel_at = OX_EVENT_TEXT;
  g_assert_false (ox_session_generate (session, chat, &(OxSampling) { .top_p = 1, .repetition_penalty = 1 },
                                       ox_talk_on_event, &talk, cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_assert_cmpint (talk.reason, ==, OX_END_CANCELLED);
  g_assert_cmpuint (ox_session_get_length (session), >=, talk.statistics.prompt_tokens);
  set_message (&conversation, N_MESSAGES, talk.text->str);
  set_message (&conversation, N_MESSAGES + 1, "Go on");
  check_as_fresh (session, &conversation, &s);
  g_assert_cmpuint (s.reused_tokens, >=, talk.statistics.prompt_tokens - 32);
}

/* A long answer has places to go back to within itself, with guesses ahead and without. */
static void
test_long_answer (gconstpointer data)
{
  OxTalkKind kind = (OxTalkKind) GPOINTER_TO_INT (data);
  g_autoptr (OxModel) model = ox_talk_model (kind, NULL);
  g_autoptr (OxChat) chat = ox_talk_chat ((const char *[]) { "Speak!", NULL });

  if (model == NULL)
    return;
  for (guint speculation = 0; speculation < 2; speculation++) {
    g_autoptr (OxSession) session = ox_session_new (model, NULL);
    guint length, back;
    g_auto (OxTalk) talk;

    ox_talk_init (&talk);
    ox_session_set_speculation (session, speculation == 0 ? OX_SPECULATION_OFF : OX_SPECULATION_AUTO);
    ox_talk_answer (&talk, session, chat, 1800);
    length = ox_session_get_length (session);
    back = ox_session_get_reusable (session, length - 600);
    g_assert_cmpuint (back, >=, length - 1200);
    ox_session_truncate (session, back);
    g_assert_cmpuint (ox_session_get_length (session), ==, back);
  }
}

/* ---- Threads ---- */

typedef struct {
  OxModel *model;
  guint last; /* messages of the conversation */
  char *answers[3];
} Speaker;

static gpointer
speak (gpointer user_data)
{
  Speaker *speaker = user_data;
  g_autoptr (OxSession) session = ox_session_new (speaker->model, NULL);
  g_auto (Conversation) conversation;

  conversation_init (&conversation);
  g_clear_pointer (&conversation.messages[speaker->last], g_free);
  for (guint i = 0; i < G_N_ELEMENTS (speaker->answers); i++) {
    g_autoptr (OxChat) chat = NULL;
    g_auto (OxTalk) talk;

    if (i == 1)
      set_message (&conversation, speaker->last - 1, "Something else");
    chat = ox_talk_chat ((const char *const *) conversation.messages);
    ox_talk_init (&talk);
    ox_talk_answer (&talk, session, chat, 16);
    speaker->answers[i] = g_strdup (talk.text->str);
  }
  return NULL;
}

/* Sessions of one model that answer at the same time say what they say alone. */
static void
test_threads (gconstpointer data)
{
  OxTalkKind kind = (OxTalkKind) GPOINTER_TO_INT (data);
  g_autoptr (OxModel) model = ox_talk_model (kind, NULL);
  Speaker speakers[3];
  GThread *threads[3];

  if (model == NULL)
    return;
  for (guint i = 0; i < G_N_ELEMENTS (speakers); i++) {
    speakers[i] = (Speaker) { .model = model, .last = 3 + 2 * i };
    threads[i] = g_thread_new ("speak", speak, &speakers[i]);
  }
  for (guint i = 0; i < G_N_ELEMENTS (speakers); i++) {
    Speaker alone = { .model = model, .last = 3 + 2 * i };

    g_thread_join (threads[i]);
    speak (&alone);
    for (guint j = 0; j < G_N_ELEMENTS (alone.answers); j++) {
      g_assert_cmpstr (speakers[i].answers[j], ==, alone.answers[j]);
      g_free (speakers[i].answers[j]);
      g_free (alone.answers[j]);
    }
  }
}

/* ---- Memory ---- */

/* Bytes of this process that are in memory now. */
static gint64
resident_bytes (void)
{
  g_autofree char *text = NULL;
  g_auto (GStrv) numbers = NULL;

  g_assert_true (g_file_get_contents ("/proc/self/statm", &text, NULL, NULL));
  numbers = g_strsplit (text, " ", 3);
  return g_ascii_strtoll (numbers[1], NULL, 10) * getpagesize ();
}

/* Resetting again and again does not make a session larger. */
static void
test_resets (gconstpointer data)
{
  OxTalkKind kind = (OxTalkKind) GPOINTER_TO_INT (data);
  g_autoptr (OxModel) model = NULL;
  g_autoptr (OxSession) session = NULL;
  g_auto (Conversation) conversation;
  g_autoptr (OxChat) chat = NULL;
  gint64 early = 0, late;

  conversation_init (&conversation);
#if defined(__SANITIZE_ADDRESS__)
  g_test_skip ("a sanitizer keeps what is freed");
  return;
#endif
  model = ox_talk_model (kind, NULL);
  if (model == NULL)
    return;
  session = ox_session_new (model, NULL);
  chat = ox_talk_chat ((const char *const *) conversation.messages);
  for (guint i = 0; i < 24; i++) {
    g_auto (OxTalk) talk;

    ox_talk_init (&talk);
    ox_talk_answer (&talk, session, chat, 2);
    g_assert_cmpuint (talk.statistics.reused_tokens, ==, 0);
    ox_session_reset (session);
    g_assert_cmpuint (ox_session_get_length (session), ==, 0);
    g_assert_cmpuint (ox_snapshots_get_bytes (session->snapshots), ==, 0);
    if (i == 3)
      early = resident_bytes ();
  }
  late = resident_bytes ();
  g_test_message ("%" G_GINT64_FORMAT " and %" G_GINT64_FORMAT " bytes", early, late);
  /* Much less than the snapshots of all these rounds, or their keys and values. */
  g_assert_cmpint (late - early, <, 1 << 20);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  for (int kind = 0; kind < OX_TALK_N_KINDS; kind++) {
    static const struct {
      const char *name;
      void (*func) (gconstpointer data);
      gboolean with_full;
    } tests[] = {
      { "conversation", test_conversation, TRUE }, { "no-room", test_no_room, TRUE },
      { "bounded", test_bounded, FALSE },          { "random", test_random, TRUE },
      { "stopped-pass", test_stopped_pass, TRUE }, { "stopped-answer", test_stopped_answer, TRUE },
      { "long-answer", test_long_answer, TRUE },   { "resets", test_resets, TRUE },
      { "threads", test_threads, TRUE },
    };

    for (gsize i = 0; i < G_N_ELEMENTS (tests); i++)
      if (kind != OX_TALK_FULL || tests[i].with_full) {
        g_autofree char *name = g_strdup_printf ("/session/%s/%s", tests[i].name, ox_talk_kind_names[kind]);

        g_test_add_data_func (name, GINT_TO_POINTER (kind), tests[i].func);
      }
  }
  return g_test_run ();
}
