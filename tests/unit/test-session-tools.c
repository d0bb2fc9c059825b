/* Answers that think, call tools, stop at strings and keep to a schema. The words of the model are written here, so that all else is the engine's.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "io/ox-json.h"
#include "ox-talk.h"

#include <string.h>

static const char weather_declaration[] =
  "{\"type\": \"function\", \"function\": {\"name\": \"get_weather\", \"description\": \"Weather of a place\", "
  "\"parameters\": {\"type\": \"object\", \"properties\": {\"location\": {\"type\": \"string\"}}, \"required\": "
  "[\"location\"]}}}";
static const char wait_declaration[] =
  "{\"type\": \"function\", \"function\": {\"name\": \"wait\", \"description\": \"Waits\", \"parameters\": {\"type\": "
  "\"object\", \"properties\": {}}}}";
static const char long_declaration[] =
  "{\"type\": \"function\", \"function\": {\"name\": \"read_all\", \"description\": \"Reads a lot\", \"parameters\": "
  "{\"type\": \"object\", \"properties\": {}}}}";

#define QWEN_CALL(name, arguments) "<tool_call>\n<function=" name ">\n" arguments "</function>\n</tool_call>"
#define QWEN_WEATHER(place) QWEN_CALL ("get_weather", "<parameter=location>\n" place "\n</parameter>\n")
#define GEMMA_WEATHER(place) "<|tool_call>call:get_weather{location:<|\"|>" place "<|\"|>}<tool_call|>"

/* ---- Tools ---- */

static char *
get_weather (const char *arguments, gpointer user_data, GCancellable *cancellable, GError **error)
{
  guint *calls = user_data;

  (*calls)++;
  if (strstr (arguments, "Nowhere") != NULL) {
    g_set_error_literal (error, OX_ERROR, OX_ERROR_NOT_FOUND, "There is no such place");
    return NULL;
  }
  return g_strdup ("snow");
}

/* Until it is stopped. */
static char *
wait_forever (const char *arguments, gpointer user_data, GCancellable *cancellable, GError **error)
{
  while (!g_cancellable_set_error_if_cancelled (cancellable, error))
    g_usleep (1000);
  return NULL;
}

static char *
read_all (const char *arguments, gpointer user_data, GCancellable *cancellable, GError **error)
{
  return g_strnfill (5000, 'x');
}

/* ---- A scene ---- */

typedef struct {
  OxModel *model;
  OxSession *session;
  OxToolbox *toolbox;
  OxScript script;
  OxTalk talk;
  guint calls;
} Scene;

static void
scene_init (Scene *scene, const char *format, guint max_rounds, const char *const *replies)
{
  gboolean gemma = g_str_has_prefix (format, "gemma");
  g_autoptr (GError) error = NULL;

  memset (scene, 0, sizeof *scene);
  scene->model = ox_talk_model (gemma ? OX_TALK_SLIDING : OX_TALK_FULL, NULL);
  scene->model->chat_format = ox_chat_format_find (format);
  g_assert_nonnull (scene->model->chat_format);
  scene->session = ox_session_new (scene->model, &error);
  g_assert_no_error (error);
  ox_talk_init (&scene->talk);
  ox_script_install (&scene->script, scene->model, &scene->talk, replies);
  scene->toolbox = ox_toolbox_new ();
  g_assert_true (
    ox_toolbox_add (scene->toolbox, weather_declaration, OX_TOOL_PLAIN, get_weather, &scene->calls, NULL, &error));
  g_assert_true (ox_toolbox_add (scene->toolbox, wait_declaration, OX_TOOL_PLAIN, wait_forever, NULL, NULL, &error));
  g_assert_true (ox_toolbox_add (scene->toolbox, long_declaration, OX_TOOL_PLAIN, read_all, NULL, NULL, &error));
  g_assert_no_error (error);
  ox_session_set_toolbox (scene->session, scene->toolbox, max_rounds);
}

static void
scene_clear (Scene *scene)
{
  ox_script_remove (&scene->script);
  ox_session_free (scene->session);
  ox_toolbox_unref (scene->toolbox);
  ox_talk_clear (&scene->talk);
  ox_model_unref (scene->model);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Scene, scene_clear)

static void
ask (Scene *scene, const char *question)
{
  g_autoptr (OxChat) chat = ox_talk_chat ((const char *[]) { question, NULL });

  ox_talk_answer (&scene->talk, scene->session, chat, 0);
}

/* What the session holds, control tokens and all. */
static char *
held_text (Scene *scene)
{
  return ox_tokenizer_decode (scene->model->tokenizer, (const guint32 *) (gpointer) scene->session->tokens->data,
                              scene->session->tokens->len, TRUE);
}

/* ---- Thinking ---- */

static void
test_thinking (void)
{
  static const char *const replies[] = { "Hm. Let me see.\n</think>\n\nIt is blue.", NULL };
  g_auto (Scene) scene;

  scene_init (&scene, "qwen3.5-think", 3, replies);
  ask (&scene, "What colour is the sky?");
  g_assert_cmpstr (scene.talk.thinking->str, ==, "Hm. Let me see.");
  g_assert_cmpstr (scene.talk.text->str, ==, "It is blue.");
  g_assert_cmpstr (scene.talk.log->str, ==, "");
  g_assert_cmpint (scene.talk.reason, ==, OX_END_STOP);
  g_assert_cmpfloat (scene.talk.statistics.first_token_seconds, >, 0);
}

/* Thoughts are not shown to the model again, so the next turn goes back to before them, and no further. */
static void
test_thinking_history (void)
{
  static const char *const replies[] = { "Hm. Let me see.\n</think>\n\nIt is blue.", NULL };
  g_auto (Scene) scene;
  g_autoptr (OxChat) chat = ox_talk_chat ((const char *[]) { "What colour is the sky?", NULL });
  g_autofree char *held = NULL;
  guint first;

  scene_init (&scene, "qwen3.5-think", 3, replies);
  ox_talk_answer (&scene.talk, scene.session, chat, 0);
  first = scene.talk.statistics.prompt_tokens;
  ox_chat_append (chat, OX_ROLE_ASSISTANT, scene.talk.text->str);
  ox_chat_set_reasoning (chat, scene.talk.thinking->str);
  ox_chat_append (chat, OX_ROLE_USER, "And the sea?");
  ox_talk_clear (&scene.talk);
  ox_talk_init (&scene.talk);
  ox_talk_answer (&scene.talk, scene.session, chat, 0);
  g_assert_cmpuint (scene.talk.statistics.reused_tokens, <=, first);
  g_assert_cmpuint (scene.talk.statistics.reused_tokens, >=, first - 16);
}

/* ---- Calls ---- */

static void
check_call (const char *format, const char *const *replies, const char *thinking)
{
  g_auto (Scene) scene;
  g_autofree char *held = NULL;

  scene_init (&scene, format, 3, replies);
  ask (&scene, "Weather in Oslo?");
  g_assert_cmpstr (scene.talk.log->str, ==,
                   "call call_1 get_weather {\"location\": \"Oslo\"}\nresult call_1 get_weather snow\n");
  g_assert_cmpstr (scene.talk.thinking->str, ==, thinking);
  g_assert_cmpstr (scene.talk.text->str, ==, "One moment.It snows in Oslo.");
  g_assert_cmpint (scene.talk.reason, ==, OX_END_STOP);
  g_assert_cmpuint (scene.talk.n_rounds, ==, 2);
  g_assert_cmpuint (scene.calls, ==, 1);
  /* The model was shown the tools, its own call and the result. */
  held = held_text (&scene);
  g_assert_nonnull (strstr (held, "Weather of a place"));
  g_assert_nonnull (strstr (held, "One moment."));
  g_assert_nonnull (strstr (held, "snow"));
  g_assert_nonnull (strstr (strstr (held, "snow"), "It snows in Oslo."));
  /* The second round read little more than the result. */
  g_test_message ("%u tokens read of %u", scene.talk.n_read, scene.talk.statistics.prompt_tokens);
  g_assert_cmpuint (scene.talk.n_read, <, scene.talk.statistics.prompt_tokens + 100);
  g_assert_cmpuint (scene.talk.statistics.reused_tokens, ==, 0);
  g_assert_cmpuint (scene.talk.statistics.prompt_tokens + scene.talk.statistics.answer_tokens, <=,
                    ox_session_get_length (scene.session) + 4);
}

static void
test_call_qwen (void)
{
  static const char *const replies[] = { "I should look.\n</think>\n\nOne moment.\n\n" QWEN_WEATHER ("Oslo"),
                                         "Cold.\n</think>\n\nIt snows in Oslo.", NULL };
  static const char *const plain[] = { "One moment.\n\n" QWEN_WEATHER ("Oslo"), "It snows in Oslo.", NULL };

  check_call ("qwen3.5-think", replies, "I should look.Cold.");
  check_call ("qwen3.5-nothink", plain, "");
}

static void
test_call_gemma (void)
{
  static const char *const replies[] = { "One moment." GEMMA_WEATHER ("Oslo"), "It snows in Oslo.", NULL };

  check_call ("gemma4-small", replies, "");
}

static void
test_several_calls (void)
{
  static const char *const replies[] = { QWEN_WEATHER ("Oslo") "\n" QWEN_WEATHER ("Nowhere"), QWEN_WEATHER ("Rome"),
                                         QWEN_CALL ("no_such_tool", ""), "Done.", NULL };
  g_auto (Scene) scene;
  g_auto (GStrv) lines = NULL;

  scene_init (&scene, "qwen3.5-nothink", 3, replies);
  ask (&scene, "Weather everywhere?");
  g_assert_cmpstr (scene.talk.text->str, ==, "Done.");
  g_assert_cmpint (scene.talk.reason, ==, OX_END_STOP);
  g_assert_cmpuint (scene.calls, ==, 3);
  g_assert_cmpuint (scene.talk.n_rounds, ==, 4);
  lines = g_strsplit (scene.talk.log->str, "\n", -1);
  g_assert_cmpuint (g_strv_length (lines), ==, 9);
  g_assert_cmpstr (lines[0], ==, "call call_1 get_weather {\"location\": \"Oslo\"}");
  g_assert_cmpstr (lines[1], ==, "result call_1 get_weather snow");
  g_assert_cmpstr (lines[2], ==, "call call_2 get_weather {\"location\": \"Nowhere\"}");
  g_assert_true (g_str_has_prefix (lines[3], "failed call_2 get_weather "));
  g_assert_nonnull (strstr (lines[3], "There is no such place"));
  g_assert_cmpstr (lines[4], ==, "call call_3 get_weather {\"location\": \"Rome\"}");
  g_assert_cmpstr (lines[5], ==, "result call_3 get_weather snow");
  g_assert_cmpstr (lines[6], ==, "call call_4 no_such_tool {}");
  g_assert_true (g_str_has_prefix (lines[7], "failed call_4 no_such_tool "));
}

static void
test_too_many_rounds (void)
{
  static const char *const replies[] = { QWEN_WEATHER ("Oslo"), QWEN_WEATHER ("Oslo"), QWEN_WEATHER ("Oslo"), NULL };

  for (guint max_rounds = 0; max_rounds < 3; max_rounds++) {
    g_auto (Scene) scene;

    scene_init (&scene, "qwen3.5-nothink", max_rounds, replies);
    ask (&scene, "Weather in Oslo?");
    g_assert_cmpint (scene.talk.reason, ==, OX_END_TOOL_ROUNDS);
    g_assert_cmpuint (scene.calls, ==, max_rounds);
    g_assert_cmpuint (scene.talk.n_rounds, ==, max_rounds + 1);
  }
}

/* The caller declares a tool and runs it: the call is told, and the answer ends. */
static void
test_own_tools (void)
{
  static const char *const replies[] = { "Look: " QWEN_WEATHER ("Oslo"), NULL };
  g_auto (Scene) scene;
  g_autoptr (OxChat) chat = ox_talk_chat ((const char *[]) { "Weather?", NULL });
  g_autofree char *held = NULL;

  scene_init (&scene, "qwen3.5-nothink", 3, replies);
  ox_session_set_toolbox (scene.session, NULL, 0);
  g_assert_true (ox_chat_add_tool (chat, weather_declaration, NULL));
  ox_talk_answer (&scene.talk, scene.session, chat, 0);
  g_assert_cmpstr (scene.talk.text->str, ==, "Look:");
  g_assert_cmpstr (scene.talk.log->str, ==, "call call_1 get_weather {\"location\": \"Oslo\"}\n");
  g_assert_cmpint (scene.talk.reason, ==, OX_END_STOP);
  g_assert_cmpuint (scene.calls, ==, 0);

  /* Declared by both, a tool is shown once. */
  ox_session_set_toolbox (scene.session, scene.toolbox, 0);
  ox_talk_clear (&scene.talk);
  ox_talk_init (&scene.talk);
  ox_talk_answer (&scene.talk, scene.session, chat, 0);
  held = held_text (&scene);
  g_assert_nonnull (strstr (held, "Weather of a place"));
  g_assert_null (strstr (strstr (held, "Weather of a place") + 1, "Weather of a place"));
}

static void
test_malformed (void)
{
  static const char *const replies[] = { "So: <tool_call>\nnonsense\n</tool_call>\nOr not.", NULL };
  g_auto (Scene) scene;

  scene_init (&scene, "qwen3.5-nothink", 3, replies);
  ask (&scene, "Weather?");
  g_assert_true (g_str_has_prefix (scene.talk.log->str, "malformed"));
  g_assert_nonnull (strstr (scene.talk.log->str, "nonsense"));
  g_assert_true (g_str_has_prefix (scene.talk.text->str, "So:"));
  g_assert_true (g_str_has_suffix (scene.talk.text->str, "Or not."));
  g_assert_cmpint (scene.talk.reason, ==, OX_END_STOP);
  g_assert_cmpuint (scene.talk.n_rounds, ==, 1);
}

/* An answer that stands open is gone on with, calls a tool, and is one message for the model. */
static void
test_continued (void)
{
  static const char *const replies[] = { " let me look. " QWEN_WEATHER ("Oslo"), "Snow.", NULL };
  g_auto (Scene) scene;
  g_autoptr (OxChat) chat = ox_talk_chat ((const char *[]) { "Weather?", "Wait,", NULL });
  g_autofree char *held = NULL;

  scene_init (&scene, "qwen3.5-nothink", 3, replies);
  ox_talk_answer (&scene.talk, scene.session, chat, 0);
  g_assert_cmpstr (scene.talk.text->str, ==, "let me look.Snow.");
  g_assert_cmpuint (scene.calls, ==, 1);
  held = held_text (&scene);
  g_assert_nonnull (strstr (held, "Wait,"));
  g_assert_null (strstr (strstr (held, "Wait,") + 1, "Wait,"));
}

/* ---- Ends ---- */

static gpointer
cancel_soon (gpointer cancellable)
{
  g_usleep (30000);
  g_cancellable_cancel (cancellable);
  return NULL;
}

/* A slow tool is stopped along with the answer, and the next answer does not suffer. */
static void
test_cancel_tool (void)
{
  static const char *const replies[] = { QWEN_CALL ("wait", ""), NULL };
  static const char *const after[] = { "Fine.", NULL };
  g_auto (Scene) scene;
  g_autoptr (OxChat) chat = ox_talk_chat ((const char *[]) { "Wait!", NULL });
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;
  GThread *thread;

  scene_init (&scene, "qwen3.5-nothink", 3, replies);
  thread = g_thread_new ("cancel", cancel_soon, cancellable);
  g_assert_false (ox_session_generate (scene.session, chat, NULL, ox_talk_on_event, &scene.talk, cancellable, &error));
  g_thread_join (thread);
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_assert_cmpint (scene.talk.reason, ==, OX_END_CANCELLED);
  g_assert_cmpuint (scene.talk.n_ends, ==, 1);
  g_assert_cmpstr (scene.talk.log->str, ==, "call call_1 wait {}\n");

  ox_talk_clear (&scene.talk);
  ox_talk_init (&scene.talk);
  scene.script.replies = after;
  ask (&scene, "Wait!");
  g_assert_cmpstr (scene.talk.text->str, ==, "Fine.");
  g_assert_cmpuint (scene.talk.statistics.reused_tokens, >=, scene.talk.statistics.prompt_tokens - 8);
}

/* Stopped at whatever event, there is one end, and it says so. */
static void
test_cancel_anywhere (void)
{
  static const char *const replies[] = { "Hm.\n</think>\n\nOne moment.\n" QWEN_WEATHER ("Oslo"),
                                         "So.\n</think>\n\nSnow.", NULL };
  static const OxEventType types[] = { OX_EVENT_PREFILL, OX_EVENT_THINKING, OX_EVENT_TEXT, OX_EVENT_TOOL_CALL,
                                       OX_EVENT_TOOL_RESULT };

  for (guint i = 0; i < G_N_ELEMENTS (types); i++) {
    g_autoptr (GCancellable) cancellable = g_cancellable_new ();
    g_autoptr (OxChat) chat = ox_talk_chat ((const char *[]) { "Weather in Oslo?", NULL });
    g_autoptr (GError) error = NULL;
    g_auto (Scene) scene;

    scene_init (&scene, "qwen3.5-think", 3, replies);
    scene.talk.cancellable = cancellable;
    scene.talk.cancel_at = types[i];
    g_assert_false (
      ox_session_generate (scene.session, chat, NULL, ox_talk_on_event, &scene.talk, cancellable, &error));
    g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
    g_assert_cmpint (scene.talk.reason, ==, OX_END_CANCELLED);
    g_assert_cmpuint (scene.talk.n_ends, ==, 1);
    g_clear_error (&error);

    ox_talk_clear (&scene.talk);
    ox_talk_init (&scene.talk);
    ask (&scene, "Weather in Oslo?");
    g_assert_cmpstr (scene.talk.text->str, ==, "One moment.Snow.");
  }
}

/* max_tokens is of the whole answer, however many rounds it takes. */
static void
test_max_tokens (void)
{
  static const char *const replies[] = { "Well. " QWEN_WEATHER ("Oslo"), "It snows in Oslo, and it is very cold.",
                                         NULL };
  g_auto (Scene) whole;
  guint first, all;

  scene_init (&whole, "qwen3.5-nothink", 3, replies);
  ask (&whole, "Weather?");
  all = whole.talk.statistics.answer_tokens;
  first = (guint) strlen (replies[0]);
  g_assert_cmpuint (all, >, first / 2);
  for (guint max_tokens = 1; max_tokens < all; max_tokens += 7) {
    g_autoptr (OxChat) chat = ox_talk_chat ((const char *[]) { "Weather?", NULL });
    g_auto (Scene) scene;

    scene_init (&scene, "qwen3.5-nothink", 3, replies);
    ox_talk_answer (&scene.talk, scene.session, chat, max_tokens);
    g_assert_cmpint (scene.talk.reason, ==, OX_END_LENGTH);
    g_assert_cmpuint (scene.talk.statistics.answer_tokens, ==, max_tokens);
  }
}

/* A result that does not fit ends the answer; what was said so far stands. */
static void
test_long_result (void)
{
  static const char *const replies[] = { "Reading. " QWEN_CALL ("read_all", ""), NULL };
  g_auto (Scene) scene;

  scene_init (&scene, "qwen3.5-nothink", 3, replies);
  ask (&scene, "Read all!");
  g_assert_cmpint (scene.talk.reason, ==, OX_END_CONTEXT);
  g_assert_cmpstr (scene.talk.text->str, ==, "Reading.");
}

/* Stop strings end the answer, not the thinking, and nothing of them is told. */
static void
test_stop_strings (void)
{
  static const char *const replies[] = {
    "END is near.\n</think>\n\nA long sentence. EN. END of it. " QWEN_WEATHER ("Oslo"), NULL
  };
  static const char *const stop[] = { "never", "END", NULL };
  OxSampling sampling = { .top_p = 1, .repetition_penalty = 1, .stop = stop };
  g_auto (Scene) scene;
  g_autoptr (OxChat) chat = ox_talk_chat ((const char *[]) { "Speak!", NULL });
  g_autoptr (GError) error = NULL;

  scene_init (&scene, "qwen3.5-think", 3, replies);
  g_assert_true (ox_session_generate (scene.session, chat, &sampling, ox_talk_on_event, &scene.talk, NULL, &error));
  g_assert_cmpstr (scene.talk.thinking->str, ==, "END is near.");
  g_assert_cmpstr (scene.talk.text->str, ==, "A long sentence. EN. ");
  g_assert_cmpint (scene.talk.reason, ==, OX_END_STOP);
  g_assert_cmpstr (scene.talk.log->str, ==, "");

  /* What may begin one comes when it does not. */
  scene.script.replies = (const char *const[]) { "\n</think>\n\nThis is not the EN", NULL };
  ox_talk_clear (&scene.talk);
  ox_talk_init (&scene.talk);
  g_assert_true (ox_session_generate (scene.session, chat, &sampling, ox_talk_on_event, &scene.talk, NULL, &error));
  g_assert_cmpstr (scene.talk.text->str, ==, "This is not the EN");
}

/* ---- JSON ---- */

static const char pet_schema[] =
  "{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\", \"maxLength\": 5}, \"legs\": {\"type\": "
  "\"integer\"}, \"kind\": {\"enum\": [\"cat\", \"dog\"]}}, \"required\": [\"name\", \"legs\", \"kind\"], "
  "\"additionalProperties\": false}";

static void
assert_pet (const char *text)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (OxJson) json = ox_json_parse (text, strlen (text), "the answer", &error);
  yyjson_val *root;

  g_test_message ("%s", text);
  g_assert_no_error (error);
  root = ox_json_get_root (json);
  g_assert_true (yyjson_is_str (yyjson_obj_get (root, "name")));
  g_assert_true (yyjson_is_int (yyjson_obj_get (root, "legs")));
  g_assert_true (yyjson_equals_str (yyjson_obj_get (root, "kind"), "cat") ||
                 yyjson_equals_str (yyjson_obj_get (root, "kind"), "dog"));
  g_assert_cmpuint (yyjson_obj_size (root), ==, 3);
}

/* Whatever a model of random weights would rather say, it is what the schema allows. */
static void
test_schema (void)
{
  g_autoptr (OxChat) chat = ox_talk_chat ((const char *[]) { "Which pet?", NULL });

  for (guint kind = 0; kind < 2; kind++) {
    g_autoptr (OxModel) model = ox_talk_model (kind == 0 ? OX_TALK_FULL : OX_TALK_SLIDING, NULL);
    g_autoptr (OxSession) session = ox_session_new (model, NULL);

    for (guint64 seed = 1; seed < 8; seed++) {
      OxSampling sampling = {
        .temperature = 1.5f, .top_p = 1, .repetition_penalty = 1, .seed = seed, .json_schema = pet_schema
      };
      g_autoptr (GError) error = NULL;
      g_auto (OxTalk) talk;

      ox_talk_init (&talk);
      g_assert_true (ox_session_generate (session, chat, &sampling, ox_talk_on_event, &talk, NULL, &error));
      g_assert_no_error (error);
      g_assert_cmpint (talk.reason, ==, OX_END_STOP);
      assert_pet (talk.text->str);
    }
  }
}

/* A model that thinks is told not to; where it is to think all the same, the schema is for what comes after. */
static void
test_schema_thinking (void)
{
  static const char *const replies[] = { "{\"name\": \"Rex\", \"legs\": 4, \"kind\": \"dog\"}", NULL };
  OxSampling sampling = { .top_p = 1, .repetition_penalty = 1, .json_schema = pet_schema };
  g_autoptr (OxChat) chat = ox_talk_chat ((const char *[]) { "Which pet?", NULL });
  g_autoptr (GError) error = NULL;
  g_auto (Scene) scene;

  scene_init (&scene, "qwen3.5-think", 3, replies);
  g_assert_true (ox_session_generate (scene.session, chat, &sampling, ox_talk_on_event, &scene.talk, NULL, &error));
  g_assert_no_error (error);
  g_assert_cmpstr (scene.talk.thinking->str, ==, "");
  assert_pet (scene.talk.text->str);
}

static void
test_bad_schema (void)
{
  OxSampling sampling = { .top_p = 1, .repetition_penalty = 1, .json_schema = "{\"type\": 7}" };
  g_autoptr (OxChat) chat = ox_talk_chat ((const char *[]) { "Which pet?", NULL });
  g_autoptr (OxModel) model = ox_talk_model (OX_TALK_FULL, NULL);
  g_autoptr (OxSession) session = ox_session_new (model, NULL);
  g_autoptr (GError) error = NULL;
  g_auto (OxTalk) talk;

  ox_talk_init (&talk);
  g_assert_false (ox_session_generate (session, chat, &sampling, ox_talk_on_event, &talk, NULL, &error));
  g_assert_error (error, OX_ERROR, OX_ERROR_INVALID);
  g_assert_cmpint (talk.reason, ==, OX_END_ERROR);
  g_assert_cmpuint (talk.n_ends, ==, 1);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/session/tools/thinking", test_thinking);
  g_test_add_func ("/session/tools/thinking-history", test_thinking_history);
  g_test_add_func ("/session/tools/call/qwen", test_call_qwen);
  g_test_add_func ("/session/tools/call/gemma", test_call_gemma);
  g_test_add_func ("/session/tools/several-calls", test_several_calls);
  g_test_add_func ("/session/tools/too-many-rounds", test_too_many_rounds);
  g_test_add_func ("/session/tools/own-tools", test_own_tools);
  g_test_add_func ("/session/tools/malformed", test_malformed);
  g_test_add_func ("/session/tools/continued", test_continued);
  g_test_add_func ("/session/tools/cancel-tool", test_cancel_tool);
  g_test_add_func ("/session/tools/cancel-anywhere", test_cancel_anywhere);
  g_test_add_func ("/session/tools/max-tokens", test_max_tokens);
  g_test_add_func ("/session/tools/long-result", test_long_result);
  g_test_add_func ("/session/tools/stop-strings", test_stop_strings);
  g_test_add_func ("/session/tools/schema", test_schema);
  g_test_add_func ("/session/tools/schema-thinking", test_schema_thinking);
  g_test_add_func ("/session/tools/bad-schema", test_bad_schema);
  return g_test_run ();
}
