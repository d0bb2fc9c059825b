/* What oxinfer-cli keeps of an answer in which tools were called: the conversation goes on with it.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "cli/ox-cli-answer.h"

#include <errno.h>

#include "text/ox-chat-private.h"

/* Whose reader has gone away, so that nothing is written between the test's own lines. */
static const OxCli silent_cli = { .quiet = TRUE, .output_error = EPIPE };

static void
tell (OxCliAnswer *answer, OxEventType type, const char *text)
{
  OxEvent event = { .type = type, .text = text };

  ox_cli_answer_on_event (&event, answer);
}

static void
tell_call (OxCliAnswer *answer, const char *id, const char *name, const char *arguments)
{
  OxEvent event = { .type = OX_EVENT_TOOL_CALL, .tool_id = id, .tool_name = name, .tool_arguments = arguments };

  ox_cli_answer_on_event (&event, answer);
}

static void
tell_result (OxCliAnswer *answer, const char *id, const char *name, const char *text)
{
  OxEvent event = { .type = OX_EVENT_TOOL_RESULT, .tool_id = id, .tool_name = name, .text = text };

  ox_cli_answer_on_event (&event, answer);
}

static void
assert_message (OxChat *chat, guint index, OxRole role, const char *text, const char *reasoning, guint n_calls)
{
  const OxMessage *message = ox_chat_get_message (chat, index);

  g_assert_cmpint (message->role, ==, role);
  g_assert_cmpstr (message->text, ==, text);
  g_assert_cmpstr (message->reasoning, ==, reasoning);
  g_assert_cmpuint (message->tool_calls ? message->tool_calls->len : 0, ==, n_calls);
}

static void
test_rounds (void)
{
  OxCli cli = silent_cli;
  g_auto (OxCliAnswer) answer = { 0 };
  g_autoptr (OxChat) chat = ox_chat_new ();
  g_autoptr (GError) error = NULL;

  ox_cli_answer_init (&answer, &cli);
  ox_chat_append (chat, OX_ROLE_USER, "question");
  tell (&answer, OX_EVENT_THINKING, "first ");
  tell (&answer, OX_EVENT_THINKING, "thought");
  tell (&answer, OX_EVENT_TEXT, "Let me ");
  tell (&answer, OX_EVENT_TEXT, "see.");
  tell_call (&answer, "call_1", "calculate", "{\"expression\":\"1+1\"}");
  tell_result (&answer, "call_1", "calculate", "{\"result\":\"2\"}");
  tell_call (&answer, "call_2", "calculate", "{\"expression\":\"2+2\"}");
  tell_result (&answer, "call_2", "calculate", "{\"result\":\"4\"}");
  tell (&answer, OX_EVENT_THINKING, "second thought");
  tell (&answer, OX_EVENT_TEXT, "Four.");
  tell (&answer, OX_EVENT_TOOL_MALFORMED, "calculate(");
  g_assert_cmpstr (answer.text->str, ==, "Let me see.Four.");
  g_assert_true (ox_cli_answer_append (&answer, chat, &error));
  g_assert_no_error (error);
  g_assert_cmpuint (ox_chat_get_length (chat), ==, 6);
  assert_message (chat, 1, OX_ROLE_ASSISTANT, "Let me see.", "first thought", 1);
  assert_message (chat, 2, OX_ROLE_TOOL, "{\"result\":\"2\"}", NULL, 0);
  assert_message (chat, 3, OX_ROLE_ASSISTANT, "", NULL, 1);
  assert_message (chat, 4, OX_ROLE_TOOL, "{\"result\":\"4\"}", NULL, 0);
  assert_message (chat, 5, OX_ROLE_ASSISTANT, "Four.", "second thought", 0);
  g_assert_cmpstr (ox_chat_get_message (chat, 2)->tool_call_id, ==, "call_1");
  g_assert_cmpstr (ox_chat_get_message (chat, 4)->tool_name, ==, "calculate");
}

/* A call that was stopped did not happen, and turns alternate whatever came. */
static void
test_stopped (void)
{
  OxCli cli = silent_cli;
  g_auto (OxCliAnswer) stopped = { 0 };
  g_auto (OxCliAnswer) silent = { 0 };
  g_autoptr (OxChat) chat = ox_chat_new ();

  ox_cli_answer_init (&stopped, &cli);
  tell (&stopped, OX_EVENT_TEXT, "One moment.");
  tell_call (&stopped, "call_1", "slow", "{}");
  g_assert_true (ox_cli_answer_append (&stopped, chat, NULL));
  g_assert_cmpuint (ox_chat_get_length (chat), ==, 1);
  assert_message (chat, 0, OX_ROLE_ASSISTANT, "One moment.", NULL, 0);

  ox_chat_append (chat, OX_ROLE_USER, "and?");
  ox_cli_answer_init (&silent, &cli);
  g_assert_true (ox_cli_answer_append (&silent, chat, NULL));
  g_assert_cmpuint (ox_chat_get_length (chat), ==, 3);
  assert_message (chat, 2, OX_ROLE_ASSISTANT, "", NULL, 0);
}

static void
tell_all (gboolean json)
{
  OxCli cli = { .json = json };
  g_auto (OxCliAnswer) answer = { 0 };
  OxEvent context = { .type = OX_EVENT_CONTEXT, .done = 2, .total = 9 };
  OxEvent end = { .type = OX_EVENT_END, .reason = OX_END_TOOL_ROUNDS, .statistics = { .drafted_tokens = 5 } };

  ox_cli_answer_init (&answer, &cli);
  ox_cli_answer_on_event (&context, &answer);
  tell (&answer, OX_EVENT_THINKING, "Hm.");
  tell (&answer, OX_EVENT_TEXT, "I'll see.");
  tell_call (&answer, "call_1", "calculate", "{\"expression\":\"1+1\"}");
  tell_result (&answer, "call_1", "calculate", "{\"result\":\n\"2\"}");
  tell (&answer, OX_EVENT_TOOL_MALFORMED, "what(");
  ox_cli_answer_on_event (&end, &answer);
  ox_cli_answer_finish (&answer);
}

static void
test_json (void)
{
  if (g_test_subprocess ()) {
    tell_all (TRUE);
    return;
  }
  g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_DEFAULT);
  g_test_trap_assert_passed ();
  g_test_trap_assert_stdout (
    "*{\"event\":\"context\",\"done\":2,\"total\":9}\n"
    "{\"event\":\"thinking\",\"text\":\"Hm.\"}\n"
    "{\"event\":\"text\",\"text\":\"I'll see.\"}\n"
    "{\"event\":\"tool_call\",\"id\":\"call_1\",\"name\":\"calculate\",\"arguments\":{\"expression\":\"1+1\"}}\n"
    "{\"event\":\"tool_result\",\"id\":\"call_1\",\"name\":\"calculate\",\"failed\":false,\"text\":*}\n"
    "{\"event\":\"tool_malformed\",\"text\":\"what(\"}\n"
    "{\"event\":\"end\",\"reason\":\"tool_rounds\",\"text\":\"I'll see.\",*\"drafted_tokens\":5,*}\n*");
}

/* A pipe gets the answer alone; what tools do is told beside it. */
static void
test_text (void)
{
  if (g_test_subprocess ()) {
    tell_all (FALSE);
    return;
  }
  g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_DEFAULT);
  g_test_trap_assert_passed ();
  g_test_trap_assert_stdout ("*I'll see.\n*");
  g_test_trap_assert_stdout_unmatched ("*Hm.*");
  g_test_trap_assert_stdout_unmatched ("*calculate*");
  g_test_trap_assert_stderr ("*the first 2 of 9 messages are left out]\n"
                             "[calculate {\"expression\":\"1+1\"}]\n"
                             "[* {\"result\": \"2\"}]\n"
                             "[a call that cannot be read: what(]\n*");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/cli-rounds/rounds", test_rounds);
  g_test_add_func ("/cli-rounds/stopped", test_stopped);
  g_test_add_func ("/cli-rounds/json", test_json);
  g_test_add_func ("/cli-rounds/text", test_text);
  return g_test_run ();
}
