/* oxinfer-cli in a hostile shell: standard streams that are closed or full.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-toy-model.h"

#include <string.h>
#include <sys/wait.h>

static char *toy_path;

typedef struct {
  const char *name;
  const char *line; /* of the shell; $0 is oxinfer-cli, $1 a small model */
  int exit_code;
  const char *out, *err; /* what is found in the output */
} Case;

/* What hangs is ended, and fails by its exit code. */
static const Case cases[] = {
  { "stdin-closed", "timeout 20 \"$0\" generate -m \"$1\" -n 5 <&-", 2, "", "prompt is empty" },
  { "stdin-closed-for-nothing", "timeout 20 \"$0\" generate -m \"$1\" -n 5 --json hello <&-", 0, "\"answer_tokens\":5",
    "" },
  { "stdin-closed-chat", "timeout 20 \"$0\" chat -m \"$1\" -n 5 <&-", 0, "", "" },
  { "stdout-closed", "timeout 20 \"$0\" generate -m \"$1\" -n 5 hello >&-", 1, "", "cannot write to standard output" },
  { "stderr-closed", "timeout 20 \"$0\" generate -m \"$1.not\" -n 5 hello 2>&-", 1, "", "" },
  { "all-closed", "timeout 20 \"$0\" generate -m \"$1\" -n 5 hello <&- >&- 2>&-", 1, "", "" },
  { "full", "timeout 20 \"$0\" generate -m \"$1\" -n 5 hello >/dev/full", 1, "", "No space left" },
  { "help-full", "timeout 20 \"$0\" --help >/dev/full", 1, "", "No space left" },
  { "help-of-command-full", "timeout 20 \"$0\" generate --help >/dev/full", 1, "", "No space left" },
  { "endless", "timeout 20 \"$0\" generate -m \"$1\" </dev/zero", 2, "", "standard input has more than" },
  { "chat-endless", "timeout 20 \"$0\" chat -m \"$1\" </dev/zero", 2, "", "standard input has more than" },
  { "schema-endless", "timeout 20 \"$0\" generate -m \"$1\" --json-schema /dev/zero hello", 2, "",
    "/dev/zero has more than" },
  { "attach-endless", "echo hello | timeout 20 \"$0\" chat -m \"$1\" --attach /dev/zero", 2, "",
    "/dev/zero has more than" },
  { "attach-folder", "echo hello | timeout 20 \"$0\" chat -m \"$1\" --attach /", 1, "", "cannot read /" },
  { "attach-pipe", "printf abc | timeout 20 \"$0\" chat -m \"$1\" -n 3 --attach /dev/stdin", 0, "", "" },
  /* A pipe without a writer is given up at the first Ctrl+C. */
  { "attach-silent-pipe",
    "d=$(mktemp -d); mkfifo $d/p; timeout -s INT 2 \"$0\" chat -m \"$1\" --attach $d/p; r=$?; rm -r $d; exit $r", 124,
    "", "" },
  { "logits-full",
    "d=$(mktemp -d); (ulimit -f 1; trap '' XFSZ; timeout 20 \"$0\" generate -m \"$1\" -n 60 --logits $d/x.npy hello); "
    "r=$?; "
    "ls $d; rm -r $d; exit $r",
    1, "", "x.npy: " },
  { "temperature-nan", "\"$0\" generate -m \"$1\" --temperature nan hello", 2, "", "--temperature is" },
  { "temperature-inf", "\"$0\" generate -m \"$1\" --temperature inf hello", 2, "", "--temperature is" },
  { "top-p-nan", "\"$0\" generate -m \"$1\" --top-p nan hello", 2, "", "--top-p is" },
  { "min-p-nan", "\"$0\" generate -m \"$1\" --min-p nan hello", 2, "", "--min-p is" },
  { "repetition-nan", "\"$0\" generate -m \"$1\" --repetition-penalty nan hello", 2, "", "--repetition-penalty is" },
  { "presence-nan", "\"$0\" generate -m \"$1\" --presence-penalty nan hello", 2, "", "presence-penalty are finite" },
  { "no-room", "\"$0\" generate -m \"$1\" -c 1 hello", 1, "", "tokens of a context of 1, which leaves no room" },
  { "drafter-of-gemma3",
    "\"$0\" generate -m \"$OX_TEST_DATA/golden/text/gemma3/model\" --ids 2 -n 1 --drafter "
    "\"$OX_TEST_DATA/golden/text/gemma4-drafter/model\"",
    1, "", "only Gemma 4 takes a drafter" },
  { "drafter-that-is-none",
    "\"$0\" generate -m \"$OX_TEST_DATA/golden/text/gemma4-e2b/model\" --ids 2 -n 1 --drafter "
    "\"$OX_TEST_DATA/golden/text/gemma3/model\"",
    1, "", "gemma3/model is no drafter" },
  { "drafter-of-another",
    "\"$0\" generate -m \"$OX_TEST_DATA/golden/text/gemma4-31b/model\" --ids 2 -n 1 --drafter "
    "\"$OX_TEST_DATA/golden/text/gemma4-drafter/model\"",
    1, "",
    "gemma4-drafter/model: The drafter was made for another model: its “backbone_hidden_size” is 64, and this model "
    "needs 96" },
  { "parts-without-index",
    "d=$(mktemp -d); cp \"$OX_TEST_DATA\"/golden/text/gemma4-31b/model/*-of-*.safetensors $d; \"$0\" info -m $d; r=$?; "
    "rm -r $d; exit $r",
    1, "", "but no model.safetensors.index.json" },
  { "quantize-nowhere", "XDG_CACHE_HOME=/dev/null \"$0\" quantize \"$1\"", 1, "",
    "/dev/null/oxinfer/packed: cannot be written to: Not a directory" },
  { "version-full", "timeout 20 \"$0\" --version >/dev/full", 1, "", "No space left" },
};

static void
test_case (gconstpointer data)
{
  const Case *c = data;
  const char *argv[] = { "sh", "-c", c->line, g_getenv ("OX_TEST_CLI"), toy_path, NULL };
  g_autofree char *out = NULL;
  g_autofree char *err = NULL;
  g_autoptr (GError) error = NULL;
  int status;

  g_assert_nonnull (argv[3]);
  g_assert_true (
    g_spawn_sync (NULL, (char **) argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, &out, &err, &status, &error));
  g_assert_no_error (error);
  g_assert_true (WIFEXITED (status));
  g_test_message ("%s%s", out, err);
  g_assert_cmpint (WEXITSTATUS (status), ==, c->exit_code);
  g_assert_nonnull (strstr (out, c->out));
  g_assert_nonnull (strstr (err, c->err));
}

int
main (int argc, char **argv)
{
  int result;

  g_test_init (&argc, &argv, NULL);
  /* Programs that end by a signal are not searched for leaks: LeakSanitizer has hung while it stopped their threads for that. The other
   * tests of the program are. Read by the children alone: this process has started already. */
  g_setenv ("LSAN_OPTIONS", "detect_leaks=0", TRUE);
  toy_path = ox_toy_model_make (&(OxToyModel) { 0 });
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *path = g_strconcat ("/break-cli/", cases[i].name, NULL);
    g_test_add_data_func (path, &cases[i], test_case);
  }
  result = g_test_run ();
  ox_toy_model_delete (toy_path);
  return result;
}
