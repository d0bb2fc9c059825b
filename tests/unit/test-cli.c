/* oxinfer-cli, ox-golden and the example program, as a shell would run them.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "cli-test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <gio/gunixinputstream.h>

/* ---- Help and usage ---- */

static void
test_help (void)
{
  static const char *const lines[] = { "--help",      "-h",          "chat --help",  "generate --help",
                                       "tokenize -h", "info --help", "bench --help", "eval --help" };

  for (gsize i = 0; i < G_N_ELEMENTS (lines); i++) {
    g_auto (Result) result;

    cli (&result, NULL, lines[i]);
    assert_ok (&result);
    g_assert_nonnull (strstr (result.out, "Usage:\n  oxinfer-cli "));
    g_assert_nonnull (strstr (result.out, "Examples:\n  "));
    g_assert_nonnull (strstr (result.out, "Exit codes:\n  0 "));
    g_assert_nonnull (strstr (result.out, "130  interrupted"));
  }
}

static void
test_version (void)
{
  g_auto (Result) result;

  cli (&result, NULL, "--version");
  assert_ok (&result);
  g_assert_true (g_str_has_prefix (result.out, "oxinfer-cli "));
}

static void
test_usage (void)
{
  static const char *const lines[] = {
    "nonsense",
    "chat",
    "chat --model MODEL --nonsense",
    "chat --model MODEL too much",
    "generate hello",
    "generate --model MODEL --temperature -1 hello",
    "generate --model MODEL --temperature hot hello",
    "generate --model MODEL --top-p 0 hello",
    "generate --model MODEL --min-p 2 hello",
    "generate --model MODEL --repetition-penalty 0 hello",
    "generate --model MODEL --seed -1 hello",
    "generate --model MODEL --max-tokens -1 hello",
    "generate --model MODEL --precision lax hello",
    "generate --model MODEL --weights q5 hello",
    "generate --model MODEL --kv q4 hello",
    "generate --model MODEL --thinking hard hello",
    "generate --model MODEL --greedy --temperature 1 hello",
    "generate --model MODEL --ids 1,2 hello",
    "generate --model MODEL --ids 1,2 --raw",
    "generate --model MODEL --ids 1,2 --stop x",
    "generate --model MODEL --logits out.txt hello",
    "chat --model MODEL --thinking hard",
    "eval --model MODEL",
    "eval --model MODEL a b",
    "eval text.txt",
    "eval --model MODEL --window 1 text.txt",
    "eval --model MODEL --positions -1 text.txt",
    "eval --model MODEL --against lax text.txt",
    "eval --model MODEL --against exact/exact text.txt",
    "generate --model MODEL --threads -1 hello",
    "generate --model MODEL --raw --system x hello",
    "generate --model MODEL",
    "tokenize hello",
    "tokenize --model MODEL --decode x1",
    "info --model MODEL too much",
    "bench",
    "bench --model MODEL --repeat 0",
  };

  for (gsize i = 0; i < G_N_ELEMENTS (lines); i++) {
    g_auto (Result) result;

    cli (&result, NULL, lines[i]);
    g_test_message ("%s: %s", lines[i], result.err);
    g_assert_cmpint (result.exit_code, ==, 2);
    g_assert_cmpstr (result.out, ==, "");
    g_assert_true (g_str_has_prefix (result.err, "oxinfer-cli: "));
    g_assert_true (g_str_has_suffix (result.err, ".\n"));
  }
}

static void
test_no_command (void)
{
  g_auto (Result) result;

  run_argv (&result, NULL, (const char *[]) { program ("OX_TEST_CLI"), NULL });
  g_assert_cmpint (result.exit_code, ==, 2);
  g_assert_cmpstr (result.out, ==, "");
  g_assert_nonnull (strstr (result.err, "Commands:"));
}

static void
test_failures (void)
{
  static const char *const lines[] = {
    "chat --model /nonexistent.gguf",
    "generate --model /nonexistent.gguf hello",
    "tokenize --model /nonexistent.gguf hello",
    "info --model /nonexistent.gguf",
    "bench --model /nonexistent.gguf",
    "info --model /",
    "generate --model MODEL --context 8 hello",
    "generate --model MODEL --json-schema /nonexistent.json hello",
    "generate --model MODEL --logits /nonexistent/a.npy hello",
    "generate --model MODEL --context 8 --ids 1,2,3,4,5,6,7,8",
    "chat --model MODEL --attach /nonexistent.txt",
    "chat --model MODEL --tools",
    "eval --model MODEL /nonexistent.txt",
    "eval --model /nonexistent.gguf /dev/null",
  };

  for (gsize i = 0; i < G_N_ELEMENTS (lines); i++) {
    g_auto (Result) result;

    cli (&result, NULL, lines[i]);
    g_test_message ("%s: %s", lines[i], result.err);
    g_assert_cmpint (result.exit_code, ==, 1);
    g_assert_cmpstr (result.out, ==, "");
    g_assert_true (g_str_has_prefix (result.err, "oxinfer-cli: "));
    g_assert_true (strchr (result.err, '\n') == result.err + strlen (result.err) - 1);
  }
}

/* ---- info, tokenize ---- */

static void
test_info (void)
{
  g_auto (Result) text;
  g_auto (Result) json;
  g_auto (Result) bare;
  g_autoptr (GPtrArray) lines = NULL;
  g_autoptr (GPtrArray) bare_lines = NULL;
  yyjson_val *model, *platform;

  cli (&text, NULL, "info --model MODEL");
  assert_ok (&text);
  g_assert_nonnull (strstr (text.out, "llama"));
  cli (&json, NULL, "info --model MODEL --context 100 --precision exact --json");
  assert_ok (&json);
  lines = parse_lines (json.out);
  g_assert_cmpuint (lines->len, ==, 1);
  model = yyjson_obj_get (root_of (lines, 0), "model");
  platform = yyjson_obj_get (root_of (lines, 0), "platform");
  g_assert_cmpstr (string_of (model, "path"), ==, toy_path);
  g_assert_cmpstr (string_of (model, "architecture"), ==, "llama");
  g_assert_cmpstr (string_of (model, "chat_format"), ==, "chatml");
  g_assert_cmpuint (yyjson_get_uint (yyjson_obj_get (model, "context_length")), ==, 100);
  g_assert_cmpstr (string_of (model, "kv"), ==, "F32");
  g_assert_cmpstr (string_of (model, "precision"), ==, "exact");
  g_assert_cmpuint (yyjson_get_uint (yyjson_obj_get (model, "weight_bytes")), >, 0);
  g_assert_cmpuint (yyjson_get_uint (yyjson_obj_get (platform, "cores")), >, 0);

  cli (&bare, NULL, "info --json");
  assert_ok (&bare);
  bare_lines = parse_lines (bare.out);
  g_assert_null (yyjson_obj_get (root_of (bare_lines, 0), "model"));
  g_assert_nonnull (yyjson_obj_get (root_of (bare_lines, 0), "platform"));
}

static void
test_tokenize (void)
{
  g_auto (Result) argument;
  g_auto (Result) input;
  g_auto (Result) control;
  g_auto (Result) json;
  g_auto (Result) decoded;
  g_autoptr (GPtrArray) lines = NULL;
  yyjson_val *ids;

  /* Bytes are their own ids; "user" is a word. */
  cli (&argument, NULL, "tokenize --model MODEL user A");
  assert_ok (&argument);
  g_assert_cmpstr (argument.out, ==, "257 32 65\n");
  cli (&input, "user A\n", "tokenize --model MODEL");
  g_assert_cmpstr (input.out, ==, "257 32 65 10\n");
  cli (&control, "<|im_end|>", "tokenize --model MODEL --control");
  g_assert_cmpstr (control.out, ==, "266\n");

  cli (&json, "<|im_end|>é", "tokenize --model MODEL --json");
  assert_ok (&json);
  lines = parse_lines (json.out);
  ids = yyjson_obj_get (root_of (lines, 0), "ids");
  g_assert_cmpuint (yyjson_arr_size (ids), ==, 12);
  g_assert_cmpuint (yyjson_get_uint (yyjson_obj_get (root_of (lines, 0), "count")), ==, 12);
  g_assert_cmpuint (yyjson_arr_size (yyjson_obj_get (root_of (lines, 0), "pieces")), ==, 12);

  cli (&decoded, "[257, 32, 195, 169, 266]", "tokenize --model MODEL --decode");
  assert_ok (&decoded);
  g_assert_cmpstr (decoded.out, ==, "user é<|im_end|>\n");
}

/* ---- Signals and pipes ---- */

/* Weights zero and not on disk: slow enough to be stopped in the middle. */
static char *
slow_model (void)
{
  OxToyModel toy = { .sparse = TRUE, .f16 = TRUE, .layers = 4, .hidden = 1024, .feed_forward = 4096, .heads = 8 };

  return ox_toy_model_make (&toy);
}

static GSubprocess *
spawn (GSubprocessFlags flags, const char *const *argv)
{
  g_autoptr (GError) error = NULL;
  GSubprocess *process = g_subprocess_newv (argv, flags, &error);

  g_assert_no_error (error);
  return process;
}

/* Reads lines until one holds @word. */
static void
read_until (GDataInputStream *stream, const char *word)
{
  for (;;) {
    g_autofree char *line = g_data_input_stream_read_line (stream, NULL, NULL, NULL);

    g_assert_nonnull (line);
    if (strstr (line, word) != NULL)
      return;
  }
}

static void
check_signal (int signal_number)
{
  char *path = slow_model ();
  g_autoptr (GSubprocess) process =
    spawn (G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_PIPE,
           (const char *[]) { program ("OX_TEST_CLI"), "generate", "--model", path, "--json", "hello", NULL });
  g_autoptr (GDataInputStream) out = g_data_input_stream_new (g_subprocess_get_stdout_pipe (process));
  g_autoptr (GDataInputStream) err = g_data_input_stream_new (g_subprocess_get_stderr_pipe (process));
  g_autofree char *message = NULL;
  Result result = { 0 };
  gint64 start;

  read_until (out, "\"text\"");
  read_until (out, "\"text\"");
  start = g_get_monotonic_time ();
  g_subprocess_send_signal (process, signal_number);
  read_until (out, "\"reason\":\"cancelled\"");
  finish (process, &result);
  g_test_message ("gone after %.1f ms", (double) (g_get_monotonic_time () - start) / 1000);
  g_assert_cmpint (g_get_monotonic_time () - start, <, 2 * G_USEC_PER_SEC);
  g_assert_cmpint (result.exit_code, ==, 130);
  message = g_data_input_stream_read_line (err, NULL, NULL, NULL);
  g_assert_null (message);
  ox_toy_model_delete (path);
}

static void
test_interrupt (void)
{
  check_signal (SIGINT);
  check_signal (SIGTERM);
}

/* While waiting for a message. */
static void
test_interrupt_at_prompt (void)
{
  g_autoptr (GSubprocess) process =
    spawn (G_SUBPROCESS_FLAGS_STDIN_PIPE | G_SUBPROCESS_FLAGS_STDOUT_PIPE,
           (const char *[]) { program ("OX_TEST_CLI"), "chat", "--model", toy_path, "-n", "5", "--json", NULL });
  g_autoptr (GDataInputStream) out = g_data_input_stream_new (g_subprocess_get_stdout_pipe (process));
  Result result = { 0 };

  g_assert_true (g_output_stream_write_all (g_subprocess_get_stdin_pipe (process), "hello\n", 6, NULL, NULL, NULL));
  read_until (out, "\"end\"");
  g_usleep (50000);
  g_subprocess_send_signal (process, SIGINT);
  finish (process, &result);
  g_assert_cmpint (result.exit_code, ==, 130);
}

/* At a terminal Ctrl+C stops the answer, and the conversation goes on. */
static void
test_interrupt_in_terminal (void)
{
  char *path = slow_model ();
  g_autoptr (GSubprocessLauncher) launcher =
    g_subprocess_launcher_new (G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_SILENCE);
  g_autoptr (GSubprocess) process = NULL;
  g_autoptr (GDataInputStream) out = NULL;
  g_autoptr (GError) error = NULL;
  Result result = { 0 };
  int master = posix_openpt (O_RDWR | O_NOCTTY | O_CLOEXEC);
  int slave;

  if (master < 0 || grantpt (master) != 0 || unlockpt (master) != 0 ||
      (slave = open (ptsname (master), O_RDWR | O_NOCTTY | O_CLOEXEC)) < 0) {
    g_test_skip ("this system gives no pseudo-terminals");
    ox_toy_model_delete (path);
    return;
  }
  g_subprocess_launcher_take_stdin_fd (launcher, slave);
  process = g_subprocess_launcher_spawnv (
    launcher, (const char *[]) { program ("OX_TEST_CLI"), "chat", "--model", path, "--json", NULL }, &error);
  g_assert_no_error (error);
  out = g_data_input_stream_new (g_subprocess_get_stdout_pipe (process));
  for (guint i = 0; i < 2; i++) {
    g_assert_cmpint (write (master, "hello\n", 6), ==, 6);
    read_until (out, "\"text\"");
    g_subprocess_send_signal (process, SIGINT);
    read_until (out, "\"reason\":\"cancelled\"");
  }
  g_assert_cmpint (write (master, "/quit\n", 6), ==, 6);
  finish (process, &result);
  g_assert_cmpint (result.exit_code, ==, 0);
  close (master);
  ox_toy_model_delete (path);
}

/* A reader that goes away ends the program soon and without a word. */
static void
test_broken_pipe (void)
{
  char *path = slow_model ();
  g_autoptr (GSubprocess) process =
    spawn (G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_PIPE,
           (const char *[]) { program ("OX_TEST_CLI"), "generate", "--model", path, "--json", "hello", NULL });
  g_autoptr (GDataInputStream) err = g_data_input_stream_new (g_subprocess_get_stderr_pipe (process));
  g_autofree char *message = NULL;
  Result result = { 0 };
  gint64 start;
  char byte;

  g_assert_cmpint (g_input_stream_read (g_subprocess_get_stdout_pipe (process), &byte, 1, NULL, NULL), ==, 1);
  start = g_get_monotonic_time ();
  g_assert_true (g_input_stream_close (g_subprocess_get_stdout_pipe (process), NULL, NULL));
  finish (process, &result);
  g_assert_cmpint (g_get_monotonic_time () - start, <, 5 * G_USEC_PER_SEC);
  g_assert_cmpint (result.exit_code, ==, 1);
  message = g_data_input_stream_read_line (err, NULL, NULL, NULL);
  g_assert_null (message);
  ox_toy_model_delete (path);
}

static void
test_full_disk (void)
{
  g_autoptr (GSubprocessLauncher) launcher = g_subprocess_launcher_new (G_SUBPROCESS_FLAGS_STDERR_PIPE);
  g_autoptr (GSubprocess) process = NULL;
  g_autoptr (GDataInputStream) err = NULL;
  g_autofree char *message = NULL;
  g_autoptr (GError) error = NULL;
  Result result = { 0 };
  int full = open ("/dev/full", O_WRONLY | O_CLOEXEC);

  if (full < 0) {
    g_test_skip ("this system has no /dev/full");
    return;
  }
  g_subprocess_launcher_take_stdout_fd (launcher, full);
  process = g_subprocess_launcher_spawnv (
    launcher, (const char *[]) { program ("OX_TEST_CLI"), "generate", "--model", toy_path, "hello", NULL }, &error);
  g_assert_no_error (error);
  err = g_data_input_stream_new (g_subprocess_get_stderr_pipe (process));
  finish (process, &result);
  g_assert_cmpint (result.exit_code, ==, 1);
  message = g_data_input_stream_read_line (err, NULL, NULL, NULL);
  g_assert_nonnull (message);
  g_assert_nonnull (strstr (message, g_strerror (ENOSPC)));
}

/* ---- Other programs ---- */

static void
test_hello (void)
{
  g_auto (Result) result;
  g_auto (Result) usage;

  run_argv (&result, NULL, (const char *[]) { program ("OX_TEST_HELLO"), toy_path, "hello", NULL });
  assert_ok (&result);
  g_assert_nonnull (strstr (result.out, " a second]\n"));
  run_argv (&usage, NULL, (const char *[]) { program ("OX_TEST_HELLO"), NULL });
  g_assert_cmpint (usage.exit_code, ==, 2);
}

static void
test_golden (void)
{
  g_autofree char *golden = g_build_filename (g_getenv ("OX_TEST_DATA"), "golden/text/gemma3", NULL);
  g_auto (Result) fine;
  g_auto (Result) missing;
  g_auto (Result) usage;

  run_argv (&fine, NULL, (const char *[]) { program ("OX_TEST_GOLDEN"), golden, NULL });
  assert_ok (&fine);
  g_assert_nonnull (strstr (fine.out, "prompt1_hidden_7"));
  g_assert_nonnull (strstr (fine.out, " fine, 0 over, 0 not computed\n"));
  run_argv (&missing, NULL, (const char *[]) { program ("OX_TEST_GOLDEN"), "/nonexistent", NULL });
  g_assert_cmpint (missing.exit_code, ==, 1);
  g_assert_true (g_str_has_prefix (missing.err, "ox-golden: "));
  run_argv (&usage, NULL, (const char *[]) { program ("OX_TEST_GOLDEN"), NULL });
  g_assert_cmpint (usage.exit_code, ==, 2);
}

int
main (int argc, char **argv)
{
  int status;

  cli_test_init (&argc, &argv);
  g_test_add_func ("/cli/help", test_help);
  g_test_add_func ("/cli/version", test_version);
  g_test_add_func ("/cli/usage", test_usage);
  g_test_add_func ("/cli/no-command", test_no_command);
  g_test_add_func ("/cli/failures", test_failures);
  g_test_add_func ("/cli/info", test_info);
  g_test_add_func ("/cli/tokenize", test_tokenize);
  g_test_add_func ("/cli/interrupt", test_interrupt);
  g_test_add_func ("/cli/interrupt/at-prompt", test_interrupt_at_prompt);
  g_test_add_func ("/cli/interrupt/in-terminal", test_interrupt_in_terminal);
  g_test_add_func ("/cli/broken-pipe", test_broken_pipe);
  g_test_add_func ("/cli/full-disk", test_full_disk);
  g_test_add_func ("/example/hello", test_hello);
  g_test_add_func ("/golden/program", test_golden);
  status = g_test_run ();
  cli_test_clear ();
  return status;
}
