/* The toolbox: declarations, arguments as models write them, permission, results; dates and attached files.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "oxinfer.h"

#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

/* ---- A tool for tests ---- */

#define DECLARE(name, parameters)                                                                                      \
  "{\"type\":\"function\",\"function\":{\"name\":\"" name "\",\"description\":\"A test\",\"parameters\":" parameters   \
  "}}"

static const char plain_declaration[] =
  DECLARE ("echo",
           "{\"type\":\"object\",\"properties\":{"
           "\"count\":{\"type\":\"integer\"},\"size\":{\"type\":\"number\"},\"word\":{\"type\":\"string\"},"
           "\"flag\":{\"type\":\"boolean\"},\"mode\":{\"type\":\"string\",\"enum\":[\"fast\",\"Slow\"]},"
           "\"list\":{\"type\":\"array\",\"items\":{\"type\":\"integer\"}},"
           "\"place\":{\"type\":\"object\",\"properties\":{\"x\":{\"type\":\"number\"}},\"required\":[\"x\"]},"
           "\"maybe\":{\"type\":[\"number\",\"null\"]},\"any\":{}},\"required\":[\"count\"]}");

typedef struct {
  guint calls;
  char *arguments; /* of the last call */
} Echo;

static char *
echo (const char *arguments, gpointer user_data, GCancellable *cancellable, GError **error)
{
  Echo *state = user_data;

  state->calls++;
  g_free (state->arguments);
  state->arguments = g_strdup (arguments);
  return g_strdup (arguments);
}

static void
echo_clear (Echo *state)
{
  g_free (state->arguments);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Echo, echo_clear)

static OxToolbox *
new_toolbox (Echo *state, OxToolFlags flags)
{
  g_autoptr (GError) error = NULL;
  OxToolbox *toolbox = ox_toolbox_new ();

  g_assert_true (ox_toolbox_add (toolbox, plain_declaration, flags, echo, state, NULL, &error));
  g_assert_no_error (error);
  return toolbox;
}

/* The result; the call must go well or fail as @fails says. */
static char *
call (OxToolbox *toolbox, const char *name, const char *arguments, gboolean fails)
{
  g_autoptr (GError) error = NULL;
  gboolean failed = !fails;
  char *result = ox_toolbox_call (toolbox, name, arguments, &failed, NULL, &error);

  g_assert_no_error (error);
  g_assert_nonnull (result);
  g_test_message ("%s %.200s: %.300s", name, arguments ? arguments : "NULL", result);
  g_assert_cmpint (failed, ==, fails);
  g_assert_true (g_utf8_validate (result, -1, NULL));
  if (fails) {
    yyjson_doc *doc = yyjson_read (result, strlen (result), 0);

    g_assert_nonnull (yyjson_get_str (yyjson_obj_get (yyjson_doc_get_root (doc), "error")));
    yyjson_doc_free (doc);
  }
  return result;
}

static void
assert_contains (const char *text, const char *part)
{
  if (!strstr (text, part))
    g_error ("“%s” is not in “%s”", part, text);
}

/* ---- Declarations ---- */

static void
test_declarations (void)
{
  static const char *const bad[] = {
    "",
    "{",
    "[]",
    "{\"type\":\"function\"}",
    "{\"function\":{\"name\":\"a\"}}",
    "{\"type\":\"function\",\"function\":{}}",
    "{\"type\":\"function\",\"function\":{\"name\":7}}",
    "{\"type\":\"function\",\"function\":{\"name\":\"\"}}",
    "{\"type\":\"function\",\"function\":{\"name\":\"a b\"}}",
    "{\"type\":\"function\",\"function\":{\"name\":\"a\\u0000b\"}}",
    "{\"type\":\"function\",\"function\":{\"name\":\"a\",\"description\":7}}",
    DECLARE ("a", "7"),
    DECLARE ("a", "{}"),
    DECLARE ("a", "{\"type\":\"array\"}"),
    DECLARE ("a", "{\"type\":\"object\",\"properties\":[]}"),
    DECLARE ("a", "{\"type\":\"object\",\"properties\":{\"b\":7}}"),
    DECLARE ("a", "{\"type\":\"object\",\"required\":7}"),
    DECLARE ("a", "{\"type\":\"object\",\"required\":[7]}"),
    DECLARE ("a", "{\"type\":\"object\",\"required\":[\"b\"]}"),
  };
  g_autoptr (OxToolbox) toolbox = ox_toolbox_new ();
  g_autoptr (GError) twice = NULL;
  Echo state = { 0 };

  for (gsize i = 0; i < G_N_ELEMENTS (bad); i++) {
    g_autoptr (GError) error = NULL;

    g_assert_false (ox_toolbox_add (toolbox, bad[i], OX_TOOL_PLAIN, echo, &state, NULL, &error));
    g_assert_error (error, OX_ERROR, OX_ERROR_INVALID);
    g_test_message ("%s", error->message);
  }
  g_assert_cmpuint (ox_toolbox_get_length (toolbox), ==, 0);
  g_assert_true (ox_toolbox_add (toolbox, plain_declaration, OX_TOOL_PLAIN, echo, &state, NULL, NULL));
  g_assert_false (ox_toolbox_add (toolbox, plain_declaration, OX_TOOL_PLAIN, echo, &state, NULL, &twice));
  g_assert_error (twice, OX_ERROR, OX_ERROR_INVALID);
  g_assert_cmpuint (ox_toolbox_get_length (toolbox), ==, 1);
  g_assert_cmpstr (ox_toolbox_get_name (toolbox, 0), ==, "echo");
  g_assert_cmpstr (ox_toolbox_get_declaration (toolbox, 0), ==, plain_declaration);
}

/* The built-in tools' declarations are what chats take, and models are told of each once. */
static void
test_builtin (void)
{
  g_autoptr (OxToolbox) toolbox = ox_toolbox_new ();
  g_autoptr (OxChat) chat = ox_chat_new ();

  ox_toolbox_add_builtin (toolbox);
  ox_toolbox_add_builtin (toolbox);
  ox_toolbox_add_attachment (toolbox, "a.txt", "a");
  ox_toolbox_add_attachment (toolbox, "b.txt", "b");
  g_assert_cmpuint (ox_toolbox_get_length (toolbox), ==, 4);
  for (guint i = 0; i < ox_toolbox_get_length (toolbox); i++) {
    g_autoptr (GError) error = NULL;

    g_assert_true (ox_chat_add_tool (chat, ox_toolbox_get_declaration (toolbox, i), &error));
    g_assert_no_error (error);
    /* Small models read them. */
    g_assert_cmpuint (strlen (ox_toolbox_get_declaration (toolbox, i)), <, 1000);
  }
}

/* ---- Arguments ---- */

static void
test_arguments (void)
{
  /* As a model writes them, as the tool gets them. */
  static const struct {
    const char *given, *seen;
  } good[] = {
    { "{\"count\":3}", "{\"count\":3}" },
    { "{\"count\":\"3\"}", "{\"count\":3}" },
    { " {\"count\" : \" -3 \"} ", "{\"count\":-3}" },
    { "{\"count\":3.0}", "{\"count\":3}" },
    { "{\"count\":\"7.00\"}", "{\"count\":7}" },
    { "{\"count\":123456789012345678901234567890}", "{\"count\":123456789012345678901234567890}" },
    { "{\"count\":1,\"size\":\"0.1\"}", "{\"count\":1,\"size\":0.1}" },
    { "{\"count\":1,\"size\":1e999}", "{\"count\":1,\"size\":1e999}" },
    { "{\"count\":1,\"word\":5.50}", "{\"count\":1,\"word\":\"5.50\"}" },
    { "{\"count\":1,\"word\":\"a\\u0000b\"}", "{\"count\":1,\"word\":\"a\357\277\275b\"}" },
    { "{\"count\":1,\"word\":\"\\ud83d\\ude00\"}", "{\"count\":1,\"word\":\"\360\237\230\200\"}" },
    { "{\"count\":1,\"word\":\"\xff\"}", "{\"count\":1,\"word\":\"\357\277\275\"}" },
    { "{\"count\":1,\"flag\":true}", "{\"count\":1,\"flag\":true}" },
    { "{\"count\":1,\"flag\":\"False\"}", "{\"count\":1,\"flag\":false}" },
    { "{\"count\":1,\"mode\":\"FAST\"}", "{\"count\":1,\"mode\":\"fast\"}" },
    { "{\"count\":1,\"mode\":\"slow\"}", "{\"count\":1,\"mode\":\"Slow\"}" },
    { "{\"count\":1,\"word\":null}", "{\"count\":1}" },
    { "{\"count\":1,\"maybe\":null}", "{\"count\":1,\"maybe\":null}" },
    { "{\"count\":1,\"list\":[1,\"2\"]}", "{\"count\":1,\"list\":[1,2]}" },
    { "{\"count\":1,\"place\":{\"x\":\"2\"}}", "{\"count\":1,\"place\":{\"x\":2}}" },
    { "{\"count\":1,\"any\":{\"deep\":[null,true,\"x\",1.5]}}",
      "{\"count\":1,\"any\":{\"deep\":[null,true,\"x\",1.5]}}" },
    { "{\"count\":1,\"count\":2}", "{\"count\":2}" },
  };
  static const struct {
    const char *given, *told;
  } bad[] = {
    { NULL, "“count” is missing" },
    { "", "“count” is missing" },
    { "null", "“count” is missing" },
    { "{}", "“count” is missing" },
    { "{\"count\":null}", "\\\"count\\\" has to be of type integer, not null" },
    { "{\"count\":1.5}", "not 1.5" },
    { "{\"count\":\"three\"}", "type integer, not \\\"three\\\"" },
    { "{\"count\":\"\"}", "type integer" },
    { "{\"count\":\"0x10\"}", "type integer" },
    { "{\"count\":\"1e3\"}", "type integer" },
    { "{\"count\":true}", "type integer" },
    { "{\"count\":[]}", "type integer" },
    { "{\"count\":{}}", "type integer" },
    { "{\"count\":1,\"colour\":2}", "there is no \\\"colour\\\". There is: “count”, “size”" },
    { "{\"count\":1,\"Count\":2}", "there is no \\\"Count\\\"" },
    { "{\"count\":1,\"mode\":\"middle\"}", "one of [\\\"fast\\\", \\\"Slow\\\"], not \\\"middle\\\"" },
    { "{\"count\":1,\"flag\":\"yes\"}", "type boolean" },
    { "{\"count\":1,\"word\":true}", "type string" },
    { "{\"count\":1,\"word\":[\"x\"]}", "type string" },
    { "{\"count\":1,\"list\":7}", "type array" },
    { "{\"count\":1,\"list\":[1,\"x\"]}", "\\\"list\\\"[1] has to be" },
    { "{\"count\":1,\"place\":{}}", "“x” is missing" },
    { "{\"count\":1,\"place\":{\"x\":1,\"y\":2}}", "there is no \\\"y\\\"" },
    { "{\"count\":1,\"maybe\":\"x\"}", "type number or null" },
    { "[1]", "a JSON object" },
    { "7", "a JSON object" },
    { "{\"count\":1", "JSON" },
    { "{count:1}", "JSON" },
    { "\xff\xfe", "JSON" },
  };
  g_auto (Echo) state = { 0 };
  g_autoptr (OxToolbox) toolbox = new_toolbox (&state, OX_TOOL_PLAIN);

  for (gsize i = 0; i < G_N_ELEMENTS (good); i++) {
    g_autofree char *result = call (toolbox, "echo", good[i].given, FALSE);

    g_assert_cmpstr (state.arguments, ==, good[i].seen);
  }
  state.calls = 0;
  for (gsize i = 0; i < G_N_ELEMENTS (bad); i++) {
    g_autofree char *result = call (toolbox, "echo", bad[i].given, TRUE);

    assert_contains (result, bad[i].told);
  }
  g_assert_cmpuint (state.calls, ==, 0);
}

static void
test_abuse (void)
{
  g_auto (Echo) state = { 0 };
  g_autoptr (OxToolbox) toolbox = new_toolbox (&state, OX_TOOL_PLAIN);
  g_autoptr (GString) deep = g_string_new ("{\"count\":1,\"any\":");
  g_autoptr (GString) wide = g_string_new ("{\"count\":1");
  g_autoptr (GString) digits = g_string_new ("{\"count\":1");
  g_autofree char *long_name = g_strnfill (100000, 'x');
  g_autofree char *unknown = call (toolbox, long_name, "{}", TRUE);
  g_autofree char *broken_name = call (toolbox, "\xff\x80", "{}", TRUE);
  g_autofree char *empty_name = call (toolbox, "", "{}", TRUE);

  assert_contains (unknown, "There is: echo");
  g_assert_cmpuint (strlen (unknown), <, 200);
  for (guint i = 0; i < 100000; i++)
    g_string_append_c (deep, '[');
  g_free (call (toolbox, "echo", deep->str, TRUE));
  for (guint i = 0; i < 100000; i++)
    g_string_append_c (deep, ']');
  g_string_append_c (deep, '}');
  g_free (call (toolbox, "echo", deep->str, TRUE));
  for (guint i = 0; i < 100000; i++)
    g_string_append_printf (wide, ",\"k%u\":1", i);
  g_string_append_c (wide, '}');
  g_free (call (toolbox, "echo", wide->str, TRUE));
  for (guint i = 0; i < 100000; i++)
    g_string_append_c (digits, '0');
  g_string_append_c (digits, '}');
  g_free (call (toolbox, "echo", digits->str, FALSE));
}

/* Damaged calls of every kind: none may end the program, and whatever comes through keeps to the declaration. */
static void
test_mutations (void)
{
  static const char seed[] =
    "{\"count\":\"12\",\"size\":1.5e3,\"word\":\"a\\u0041\xc3\xa9\",\"flag\":true,\"list\":[1,2],"
    "\"place\":{\"x\":-0.5},\"maybe\":null,\"mode\":\"fast\"}";
  static const char alphabet[] = "\"\\{}[]:,.-+eE0123456789ntfu \xff\xc3\xa9";
  g_auto (Echo) state = { 0 };
  g_autoptr (OxToolbox) toolbox = new_toolbox (&state, OX_TOOL_PLAIN);
  g_autoptr (GRand) random = g_rand_new_with_seed (4711);

  for (guint i = 0; i < 20000; i++) {
    char text[sizeof seed];
    gboolean failed;
    g_autofree char *result = NULL;

    memcpy (text, seed, sizeof seed);
    for (gint32 n = g_rand_int_range (random, 1, 4); n > 0; n--)
      text[g_rand_int_range (random, 0, sizeof seed - 1)] = alphabet[g_rand_int_range (random, 0, sizeof alphabet - 1)];
    if (g_rand_int_range (random, 0, 8) == 0)
      text[g_rand_int_range (random, 0, sizeof seed - 1)] = '\0';
    result = ox_toolbox_call (toolbox, "echo", text, &failed, NULL, NULL);
    g_assert_nonnull (result);
    g_assert_true (g_utf8_validate (result, -1, NULL));
    if (!failed)
      g_assert_true (g_str_has_prefix (state.arguments, "{\"count\":"));
  }
  /* The test would prove little if nothing came through. */
  g_assert_cmpuint (state.calls, >, 100);
}

/* ---- Permission, results, cancelling ---- */

typedef struct {
  gboolean answer;
  guint asked;
  GCancellable *cancel;
} Permission;

static gboolean
permit (const char *name, const char *arguments, gpointer user_data, GCancellable *cancellable)
{
  Permission *permission = user_data;

  permission->asked++;
  g_assert_cmpstr (name, ==, "echo");
  g_assert_cmpstr (arguments, ==, "{\"count\":3}");
  if (permission->cancel)
    g_cancellable_cancel (permission->cancel);
  return permission->answer;
}

static void
test_permission (void)
{
  g_auto (Echo) state = { 0 };
  g_autoptr (OxToolbox) toolbox = new_toolbox (&state, OX_TOOL_HAS_EFFECTS);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;
  Permission permission = { 0 };
  gboolean failed;

  g_free (call (toolbox, "echo", "{\"count\":\"3\"}", TRUE));
  ox_toolbox_set_permission (toolbox, permit, &permission);
  g_free (call (toolbox, "echo", "{\"count\":\"3\"}", TRUE));
  g_assert_cmpuint (permission.asked, ==, 1);
  /* Nobody is asked about a call that cannot run. */
  g_free (call (toolbox, "echo", "{}", TRUE));
  g_assert_cmpuint (permission.asked, ==, 1);
  g_assert_cmpuint (state.calls, ==, 0);
  permission.answer = TRUE;
  g_free (call (toolbox, "echo", "{\"count\":\"3\"}", FALSE));
  g_assert_cmpuint (permission.asked, ==, 2);
  g_assert_cmpuint (state.calls, ==, 1);
  permission.cancel = cancellable;
  g_assert_null (ox_toolbox_call (toolbox, "echo", "{\"count\":3}", &failed, cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_assert_true (failed);
  g_assert_cmpuint (state.calls, ==, 1);
}

static char *
give (const char *arguments, gpointer user_data, GCancellable *cancellable, GError **error)
{
  const char *text = user_data;

  if (!text)
    return NULL;
  if (g_str_has_prefix (text, "error:")) {
    g_set_error_literal (error, OX_ERROR, OX_ERROR_IO, text);
    return NULL;
  }
  if (strcmp (text, "cancel") == 0)
    g_cancellable_cancel (cancellable);
  return g_strdup (text);
}

static guint n_destroyed;

static void
count_destroyed (gpointer data)
{
  n_destroyed++;
}

static void
test_results (void)
{
  g_autoptr (GString) huge = g_string_new (NULL);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;
  OxToolbox *toolbox = ox_toolbox_new ();

  for (guint i = 0; i < 20000; i++)
    g_string_append (huge, "é");
#define ADD(name, text)                                                                                                \
  g_assert_true (ox_toolbox_add (toolbox, "{\"type\":\"function\",\"function\":{\"name\":\"" name "\"}}",              \
                                 OX_TOOL_PLAIN, give, (gpointer) (text), count_destroyed, NULL))
  ADD ("text", "fine");
  ADD ("nothing", NULL);
  ADD ("error", "error: \"the disk\"\n is full");
  ADD ("broken", "a\xff");
  ADD ("huge", huge->str);
  ADD ("cancel", "cancel");
#undef ADD
  {
    g_autofree char *text = call (toolbox, "text", "{}", FALSE);
    g_autofree char *text2 = call (toolbox, "text", NULL, FALSE);
    g_autofree char *extra = call (toolbox, "text", "{\"a\":1}", TRUE);
    g_autofree char *nothing = call (toolbox, "nothing", "{}", TRUE);
    g_autofree char *failure = call (toolbox, "error", "{}", TRUE);
    g_autofree char *broken = call (toolbox, "broken", "{}", FALSE);
    g_autofree char *cut = call (toolbox, "huge", "{}", FALSE);

    g_assert_cmpstr (text, ==, "fine");
    g_assert_cmpstr (text2, ==, "fine");
    assert_contains (nothing, "no result");
    g_assert_cmpstr (failure, ==, "{\"error\":\"error: \\\"the disk\\\"\\n is full\"}");
    g_assert_cmpstr (broken, ==, "a\357\277\275");
    assert_contains (cut, "[4000 of 20000 characters were left out here]");
    g_assert_cmpint (g_utf8_strlen (cut, -1), <, 16100);
  }
  g_assert_null (ox_toolbox_call (toolbox, "cancel", "{}", NULL, cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (&error);
  g_assert_null (ox_toolbox_call (toolbox, "text", "{}", NULL, cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  ox_toolbox_ref (toolbox);
  ox_toolbox_unref (toolbox);
  g_assert_cmpuint (n_destroyed, ==, 0);
  ox_toolbox_unref (toolbox);
  g_assert_cmpuint (n_destroyed, ==, 6);
}

/* ---- Dates ---- */

static void
test_dates (void)
{
  static const struct {
    const char *arguments, *told;
  } good[] = {
    { "{\"date\":\"2026-11-30\",\"zone\":\"UTC\"}", "\"date_time\":\"2026-11-30 00:00:00\",\"weekday\":\"Monday\"" },
    { "{\"date\":\"2024-02-29 13:05\",\"zone\":\"Europe/Paris\"}", "2024-02-29 13:05:00\",\"weekday\":\"Thursday\"" },
    { "{\"date\":\"2024-02-29 13:05\",\"zone\":\"paris\"}", "\"utc_offset\":\"+01:00\"" },
    { "{\"date\":\"2024-07-01 13:05\",\"zone\":\"new york\"}", "\"utc_offset\":\"-04:00\"" },
    { "{\"date\":\"2024-07-01T12:00:00Z\",\"zone\":\"Asia/Tokyo\"}", "2024-07-01 21:00:00" },
    { "{\"date\":\"2024-07-01t12:00:00+02:00\",\"zone\":\"UTC\"}", "2024-07-01 10:00:00" },
    { "{\"date\":\"1970-01-01\",\"zone\":\"UTC\",\"add\":\"1 day\"}", "\"unix\":86400" },
    { "{\"date\":\"2024-01-31\",\"zone\":\"UTC\",\"add\":\"1 month\"}", "2024-02-29 00:00:00" },
    { "{\"date\":\"2024-02-29\",\"zone\":\"UTC\",\"add\":\"1 year\"}", "2025-02-28 00:00:00" },
    { "{\"date\":\"2024-03-01\",\"zone\":\"UTC\",\"add\":\"-1 day 4 hours\"}", "2024-02-28 20:00:00" },
    { "{\"date\":\"2024-03-01\",\"zone\":\"UTC\",\"add\":\"2 weeks ago\"}", "2024-02-16 00:00:00" },
    { "{\"date\":\"2024-03-01\",\"zone\":\"UTC\",\"add\":\"1.5 hours and 30 min\"}", "2024-03-01 02:00:00" },
    { "{\"date\":\"2024-03-01\",\"zone\":\"UTC\",\"add\":\"1 working day\"}", "2024-03-04 00:00:00" },
    { "{\"date\":\"2024-03-04\",\"zone\":\"UTC\",\"add\":\"-11 business days\"}", "2024-02-16 00:00:00" },
    /* A day that has 23 hours. */
    { "{\"date\":\"2024-03-30 12:00\",\"zone\":\"Europe/Paris\",\"add\":\"1 day\"}", "2024-03-31 12:00:00" },
    { "{\"date\":\"2024-03-30 12:00\",\"zone\":\"Europe/Paris\",\"add\":\"24 hours\"}", "2024-03-31 13:00:00" },
    { "{\"date\":\"2024-03-30\",\"until\":\"2024-04-01\",\"zone\":\"Europe/Paris\"}",
      "\"days\":2,\"working_days\":0,\"seconds\":169200" },
    { "{\"date\":\"2000-01-01\",\"until\":\"2026-11-30\",\"zone\":\"UTC\"}",
      "\"text\":\"26 years, 10 months, 29 days\",\"days\":9830,\"working_days\":7020,\"seconds\":849312000" },
    { "{\"date\":\"2024-02-01\",\"until\":\"2024-01-31\",\"zone\":\"UTC\"}", "\"text\":\"1 day back\",\"days\":-1" },
    { "{\"date\":\"2024-01-31\",\"until\":\"2024-01-31\",\"zone\":\"UTC\"}", "\"text\":\"no time\",\"days\":0" },
    { "{\"date\":\"2024-01-31 10:00\",\"until\":\"2024-03-01 09:59\",\"zone\":\"UTC\"}",
      "\"text\":\"1 month, 23 hours, 59 minutes\",\"days\":29" },
    { "{\"date\":\"today\",\"until\":\"tomorrow\",\"zone\":\"UTC\"}", "\"days\":1," },
    { "{\"date\":\"yesterday\",\"until\":\"now\",\"zone\":\"UTC\"}", "\"text\":\"1 day" },
    { "{\"date\":\"10:30\",\"zone\":\"UTC\"}", " 10:30:00" },
  };
  static const struct {
    const char *arguments, *told;
  } bad[] = {
    { "{\"zone\":\"Atlantis\"}", "no time zone “Atlantis”" },
    { "{\"zone\":\"../../etc/passwd\"}", "no time zone" },
    { "{\"zone\":\"/etc/localtime\"}", "no time zone" },
    { "{\"date\":\"2024-02-30\"}", "which is no date" },
    { "{\"date\":\"soon\"}", "“date” is “soon”" },
    { "{\"until\":\"soon\"}", "“until” is “soon”" },
    { "{\"add\":\"3\"}", "Expected numbers with" },
    { "{\"add\":\"3 moons\"}", "Expected numbers with" },
    { "{\"add\":\"days\"}", "Expected numbers with" },
    { "{\"add\":\"1.5 months\"}", "whole numbers" },
    { "{\"add\":\"9999999999999999999999 days\"}", "years 1 to 9999" },
    { "{\"add\":\"99999999 years\"}", "years 1 to 9999" },
    { "{\"add\":\"1e308 seconds\"}", "years 1 to 9999" },
    { "{\"add\":\"120000000 working days\"}", "years 1 to 9999" },
  };
  g_autoptr (OxToolbox) toolbox = ox_toolbox_new ();
  g_autoptr (GTimeZone) paris = g_time_zone_new_identifier ("Europe/Paris");

  if (!paris) {
    g_test_skip ("this system has no list of time zones");
    return;
  }
  ox_toolbox_add_builtin (toolbox);
  for (gsize i = 0; i < G_N_ELEMENTS (good); i++) {
    g_autofree char *result = call (toolbox, "get_date_time", good[i].arguments, FALSE);

    assert_contains (result, good[i].told);
  }
  for (gsize i = 0; i < G_N_ELEMENTS (bad); i++) {
    g_autofree char *result = call (toolbox, "get_date_time", bad[i].arguments, TRUE);

    assert_contains (result, bad[i].told);
  }
}

static void
test_now (void)
{
  g_autoptr (OxToolbox) toolbox = ox_toolbox_new ();
  g_autofree char *result = NULL;
  gint64 before = g_get_real_time () / G_USEC_PER_SEC, after, told;

  ox_toolbox_add_builtin (toolbox);
  result = call (toolbox, "get_date_time", "{}", FALSE);
  after = g_get_real_time () / G_USEC_PER_SEC;
  assert_contains (result, "\"unix\":");
  told = g_ascii_strtoll (strstr (result, "\"unix\":") + strlen ("\"unix\":"), NULL, 10);
  g_assert_cmpint (told, >=, before);
  g_assert_cmpint (told, <=, after);
}

/* Adding a span and taking it away leads back, for spans of fixed length. */
static void
test_date_properties (void)
{
  g_autoptr (OxToolbox) toolbox = ox_toolbox_new ();
  g_autoptr (GRand) random = g_rand_new_with_seed (11);

  ox_toolbox_add_builtin (toolbox);
  for (guint i = 0; i < 500; i++) {
    int year = g_rand_int_range (random, 1900, 2200), month = g_rand_int_range (random, 1, 13);
    int day = g_rand_int_range (random, 1, 29), days = g_rand_int_range (random, 0, 100000);
    g_autofree char *there =
      g_strdup_printf ("{\"zone\":\"UTC\",\"date\":\"%04d-%02d-%02d\",\"add\":\"%d days\"}", year, month, day, days);
    g_autofree char *moved = call (toolbox, "get_date_time", there, FALSE);
    g_autofree char *date = g_strndup (moved + strlen ("{\"date_time\":\""), strlen ("0000-00-00"));
    g_autofree char *back =
      g_strdup_printf ("{\"zone\":\"UTC\",\"date\":\"%04d-%02d-%02d\",\"until\":\"%s\"}", year, month, day, date);
    g_autofree char *difference = call (toolbox, "get_date_time", back, FALSE);
    g_autofree char *wanted = g_strdup_printf ("\"days\":%d,", days);

    assert_contains (difference, wanted);
  }
}

/* ---- Attachments ---- */

static void
test_attachments (void)
{
  g_autoptr (OxToolbox) toolbox = ox_toolbox_new ();
  g_autoptr (GString) many = g_string_new (NULL);
  g_autoptr (GString) wide = g_string_new (NULL);

  for (guint i = 1; i <= 5000; i++)
    g_string_append_printf (many, "This is line %u of them\n", i);
  for (guint i = 0; i < 20000; i++)
    g_string_append (wide, "é");
  g_string_append (wide, "NEEDLE");
  ox_toolbox_add_attachment (toolbox, "notes.txt", "first\r\nsecond Ä\n\nlast");
  {
    g_autofree char *list = call (toolbox, "read_attachment", "{}", FALSE);
    g_autofree char *only = call (toolbox, "read_attachment", "{\"from\":2,\"to\":\"3\"}", FALSE);

    g_assert_cmpstr (list, ==, "notes.txt: 4 lines, 21 characters\n");
    g_assert_cmpstr (only, ==, "notes.txt has 4 lines.\n2: second Ä\n3: \n");
  }
  ox_toolbox_add_attachment (toolbox, "notes.txt", "other");
  ox_toolbox_add_attachment (toolbox, "many", many->str);
  ox_toolbox_add_attachment (toolbox, "wide", wide->str);
  ox_toolbox_add_attachment (toolbox, "empty", "");
  ox_toolbox_add_attachment (toolbox, "broken\xff", "a\xff");
  {
    g_autofree char *list = call (toolbox, "read_attachment", "{}", FALSE);
    g_autofree char *which = call (toolbox, "read_attachment", "{\"from\":1}", TRUE);
    g_autofree char *unknown = call (toolbox, "read_attachment", "{\"name\":\"nope\"}", TRUE);
    g_autofree char *folded = call (toolbox, "read_attachment", "{\"name\":\"/home/me/Notes.TXT\"}", FALSE);
    g_autofree char *second = call (toolbox, "read_attachment", "{\"name\":\"notes.txt (2)\"}", FALSE);
    g_autofree char *first_piece = call (toolbox, "read_attachment", "{\"name\":\"many\"}", FALSE);
    g_autofree char *end = call (toolbox, "read_attachment", "{\"name\":\"many\",\"from\":4999,\"to\":999999}", FALSE);
    g_autofree char *past = call (toolbox, "read_attachment", "{\"name\":\"many\",\"from\":1e30}", TRUE);
    g_autofree char *turned = call (toolbox, "read_attachment", "{\"name\":\"many\",\"from\":7,\"to\":3}", TRUE);
    g_autofree char *cut = call (toolbox, "read_attachment", "{\"name\":\"wide\"}", FALSE);
    g_autofree char *needle = call (toolbox, "read_attachment", "{\"name\":\"wide\",\"search\":\"needle\"}", FALSE);
    g_autofree char *found =
      call (toolbox, "read_attachment", "{\"name\":\"notes.txt\",\"search\":\"SECOND ä\"}", FALSE);
    g_autofree char *none = call (toolbox, "read_attachment", "{\"name\":\"notes.txt\",\"search\":\"x\"}", FALSE);
    g_autofree char *all = call (toolbox, "read_attachment", "{\"name\":\"many\",\"search\":\"line\"}", FALSE);
    g_autofree char *empty = call (toolbox, "read_attachment", "{\"name\":\"empty\"}", FALSE);

    assert_contains (list, "many: 5000 lines");
    assert_contains (list, "broken\357\277\275: 1 line, 2 characters");
    assert_contains (which, "“name” is missing");
    assert_contains (unknown, "notes.txt (2): 1 line");
    assert_contains (folded, "4: last\n");
    g_assert_cmpstr (second, ==, "notes.txt (2) has 1 line.\n1: other\n");
    assert_contains (first_piece, "1: This is line 1 of them\n2: ");
    assert_contains (first_piece, " to 5000 were left out; go on with from = ");
    g_assert_cmpstr (end, ==,
                     "many has 5000 lines.\n4999: This is line 4999 of them\n5000: This is line 5000 of them\n");
    assert_contains (past, "integer");
    assert_contains (turned, "at most “to”");
    assert_contains (cut, "[14006 more characters in this line]");
    assert_contains (needle, "1 line contains the text.\n1: … é");
    assert_contains (needle, "éNEEDLE\n");
    g_assert_cmpstr (found, ==, "1 line contains the text.\n2: second Ä\n");
    g_assert_cmpstr (none, ==, "0 lines contain the text.\n");
    assert_contains (all, "5000 lines contain the text.\n1: This is line 1 of them\n");
    assert_contains (all, "[only the first are shown]");
    g_assert_cmpstr (empty, ==, "empty is empty.\n");
  }
}

/* Read by pieces, a file is whole. */
static void
test_attachment_pieces (void)
{
  g_autoptr (OxToolbox) toolbox = ox_toolbox_new ();
  g_autoptr (GString) text = g_string_new (NULL);
  guint next = 1, expected = 1, rounds = 0;

  for (guint i = 1; i <= 3000; i++)
    g_string_append_printf (text, "line %u\n", i);
  ox_toolbox_add_attachment (toolbox, "f", text->str);
  while (next > 0) {
    g_autofree char *arguments = g_strdup_printf ("{\"from\":%u}", next);
    g_autofree char *piece = call (toolbox, "read_attachment", arguments, FALSE);
    g_auto (GStrv) lines = g_strsplit (piece, "\n", -1);

    next = 0;
    for (char **line = lines + 1; *line != NULL && **line != '\0'; line++) {
      g_autofree char *wanted = g_strdup_printf ("%u: line %u", expected, expected);

      if (**line == '[') {
        next = (guint) g_ascii_strtoull (strstr (*line, "from = ") + strlen ("from = "), NULL, 10);
        break;
      }
      g_assert_cmpstr (*line, ==, wanted);
      expected++;
    }
    g_assert_cmpuint (++rounds, <, 100);
  }
  g_assert_cmpuint (expected, ==, 3001);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/toolbox/declarations", test_declarations);
  g_test_add_func ("/toolbox/builtin", test_builtin);
  g_test_add_func ("/toolbox/arguments", test_arguments);
  g_test_add_func ("/toolbox/abuse", test_abuse);
  g_test_add_func ("/toolbox/mutations", test_mutations);
  g_test_add_func ("/toolbox/permission", test_permission);
  g_test_add_func ("/toolbox/results", test_results);
  g_test_add_func ("/toolbox/dates", test_dates);
  g_test_add_func ("/toolbox/now", test_now);
  g_test_add_func ("/toolbox/date-properties", test_date_properties);
  g_test_add_func ("/toolbox/attachments", test_attachments);
  g_test_add_func ("/toolbox/attachment-pieces", test_attachment_pieces);
  return g_test_run ();
}
