/* Conversations that are longer than the context: told beforehand, and shortened by whole turns.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-talk.h"

#include <string.h>

#define CONTEXT 512

static OxModel *
load (gboolean gemma)
{
  return ox_talk_model (gemma ? OX_TALK_SLIDING : OX_TALK_FULL, &(OxModelOptions) { .context_length = CONTEXT });
}

/* A system message and @n_turns questions with answers, and a last question. Turn 1 comes with a call and its result. */
static OxChat *
long_chat (guint n_turns, guint n_last)
{
  OxChat *chat = ox_chat_new ();
  g_autofree char *last = g_strnfill (n_last, 'z');

  ox_chat_append (chat, OX_ROLE_SYSTEM, "Speak briefly");
  for (guint i = 0; i < n_turns; i++) {
    g_autofree char *question = g_strdup_printf ("Question %u: what about the cats and dogs?", i);

    ox_chat_append (chat, OX_ROLE_USER, question);
    if (i == 1) {
      ox_chat_append (chat, OX_ROLE_ASSISTANT, "Let me look.");
      g_assert_true (ox_chat_add_tool_call (chat, "call_1", "look", "{}", NULL));
      ox_chat_append_tool_result (chat, "call_1", "look", "They sleep.");
    }
    ox_chat_append (chat, OX_ROLE_ASSISTANT, "They are well, thank you.");
  }
  ox_chat_append (chat, OX_ROLE_USER, last);
  return chat;
}

static guint
count (OxModel *model, const OxChat *chat)
{
  guint n = 0;

  g_assert_true (ox_model_count_tokens (model, chat, &n, NULL, NULL));
  return n;
}

static const OxSampling short_answer = { .top_p = 1, .repetition_penalty = 1, .max_tokens = 8 };

/* Numbers before sending; the default refuses. */
static void
test_stop (void)
{
  g_autoptr (OxModel) model = load (FALSE);
  g_autoptr (OxSession) session = ox_session_new (model, NULL);
  g_autoptr (OxChat) chat = long_chat (12, 20);
  g_autofree char *needed = g_strdup_printf ("%u tokens", count (model, chat));
  g_autoptr (GError) error = NULL;
  g_auto (OxTalk) talk;
  OxContextUse use;

  g_assert_true (ox_session_measure (session, chat, &use, NULL, &error));
  g_assert_cmpuint (use.prompt_tokens, ==, count (model, chat));
  g_assert_cmpuint (use.prompt_tokens, >, CONTEXT);
  g_assert_cmpuint (use.context_length, ==, CONTEXT);
  g_assert_cmpuint (use.dropped_messages, ==, 0);
  g_assert_cmpuint (use.dropped_tokens, ==, 0);
  ox_talk_init (&talk);
  g_assert_false (ox_session_generate (session, chat, &short_answer, ox_talk_on_event, &talk, NULL, &error));
  g_assert_error (error, OX_ERROR, OX_ERROR_CONTEXT_FULL);
  g_assert_nonnull (strstr (error->message, needed));
  g_assert_nonnull (strstr (error->message, "512"));
  g_assert_cmpint (talk.reason, ==, OX_END_ERROR);
  g_assert_cmpuint (talk.n_rounds, ==, 0);
}

/* What is left out is told, is what was told beforehand, and leaves room for an answer; the system message and whole turns stay. */
static void
test_drop (void)
{
  g_autoptr (OxModel) model = load (FALSE);
  g_autoptr (OxSession) session = ox_session_new (model, NULL);
  guint longest = 0;

  ox_session_set_context_policy (session, OX_CONTEXT_DROP_OLDEST);
  for (guint n_turns = 1; n_turns < 30; n_turns++) {
    g_autoptr (OxChat) chat = long_chat (n_turns, 20);
    g_autofree char *told = NULL;
    g_autofree char *text = NULL;
    g_auto (OxTalk) talk;
    OxContextUse use;

    ox_talk_init (&talk);
    g_assert_true (ox_session_measure (session, chat, &use, NULL, NULL));
    g_assert_cmpuint (use.prompt_tokens, ==, count (model, chat));
    ox_talk_answer (&talk, session, chat, 8);
    g_assert_cmpuint (talk.statistics.prompt_tokens, ==, use.prompt_tokens - use.dropped_tokens);
    g_assert_cmpuint (talk.statistics.reused_tokens, ==, use.reused_tokens);
    g_assert_cmpuint (talk.statistics.prompt_tokens, <=, CONTEXT - 8);
    g_assert_cmpint (talk.reason, ==, OX_END_LENGTH);
    longest = MAX (longest, talk.statistics.prompt_tokens);
    if (use.dropped_messages > 0) {
      told = g_strdup_printf ("dropped %u of %u\n", use.dropped_messages, ox_chat_get_length (chat));
      /* Turns have two messages, but for the second with four. */
      g_assert_cmpuint (use.dropped_messages % 2, ==, 0);
      g_assert_cmpuint (use.dropped_messages, !=, 4);
    }
    g_assert_cmpstr (talk.log->str, ==, told != NULL ? told : "");
    text = ox_tokenizer_decode (model->tokenizer, (const guint32 *) (gpointer) session->tokens->data,
                                session->tokens->len, TRUE);
    g_assert_nonnull (strstr (text, "Speak briefly"));
    g_assert_nonnull (strstr (text, "zzzzzzzzzzzzzzzzzzzz"));
    g_assert_cmpint (strstr (text, "Let me look.") != NULL, ==, n_turns > 1 && strstr (text, "Question 1:") != NULL);
    g_assert_cmpint (strstr (text, "They sleep.") != NULL, ==, n_turns > 1 && strstr (text, "Question 1:") != NULL);
  }
  g_assert_cmpuint (longest, >, CONTEXT / 2);
}

/* A conversation that grows is not read anew for every turn, once it is too long. */
static void
test_growing (void)
{
  g_autoptr (OxModel) model = load (FALSE);
  g_autoptr (OxSession) session = ox_session_new (model, NULL);
  g_autoptr (OxChat) chat = ox_chat_new ();
  guint anew = 0, n_turns = 40;

  ox_session_set_context_policy (session, OX_CONTEXT_DROP_OLDEST);
  for (guint i = 0; i < n_turns; i++) {
    g_autofree char *question = g_strdup_printf ("Question number %u?", i);
    g_auto (OxTalk) talk;

    ox_talk_init (&talk);
    ox_chat_append (chat, OX_ROLE_USER, question);
    ox_talk_answer (&talk, session, chat, 8);
    ox_chat_append (chat, OX_ROLE_ASSISTANT, talk.text->str);
    if (i > 0 && talk.statistics.reused_tokens < talk.statistics.prompt_tokens / 2)
      anew++;
  }
  g_test_message ("read anew %u times in %u turns", anew, n_turns);
  g_assert_cmpuint (anew, >, 0);
  g_assert_cmpuint (anew, <=, n_turns / 3);
}

/* A long last question still gets as much before it as fits, and one that is too long by itself is refused with numbers. */
static void
check_last_question (gboolean gemma)
{
  g_autoptr (OxModel) model = load (gemma);
  g_autoptr (OxSession) session = ox_session_new (model, NULL);
  g_autoptr (OxChat) fitting =
    gemma ? ox_talk_chat ((const char *[]) { "a", "b", "c", "d", NULL }) : long_chat (20, 300);
  g_autoptr (OxChat) full = NULL;
  g_autofree char *many = g_strnfill (480, 'z');
  g_autofree char *too_many = g_strnfill (600, 'z');
  g_autoptr (GError) error = NULL;
  g_auto (OxTalk) talk;
  g_auto (OxTalk) refused;

  ox_session_set_context_policy (session, OX_CONTEXT_DROP_OLDEST);
  if (gemma)
    ox_chat_append (fitting, OX_ROLE_USER, many);
  full = ox_chat_copy (fitting);
  ox_talk_init (&talk);
  ox_talk_init (&refused);
  ox_talk_answer (&talk, session, fitting, 4);
  g_assert_cmpuint (talk.statistics.prompt_tokens, >, 300);
  g_assert_cmpuint (talk.statistics.prompt_tokens, <, CONTEXT);

  ox_chat_append (full, OX_ROLE_ASSISTANT, "x");
  ox_chat_append (full, OX_ROLE_USER, too_many);
  g_assert_false (ox_session_generate (session, full, &short_answer, ox_talk_on_event, &refused, NULL, &error));
  g_assert_error (error, OX_ERROR, OX_ERROR_CONTEXT_FULL);
  g_test_message ("%s", error->message);
  g_assert_nonnull (strstr (error->message, "512"));
  g_assert_cmpuint (refused.n_rounds, ==, 0);
  g_assert_cmpuint (refused.n_ends, ==, 1);
}

static void
test_last_question (void)
{
  check_last_question (FALSE);
  check_last_question (TRUE);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/session/context/stop", test_stop);
  g_test_add_func ("/session/context/drop", test_drop);
  g_test_add_func ("/session/context/growing", test_growing);
  g_test_add_func ("/session/context/last-question", test_last_question);
  return g_test_run ();
}
