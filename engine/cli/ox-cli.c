/* oxinfer-cli: every job of the app without a window.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-cli.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <string.h>
#include <unistd.h>

static const OxCliCommand commands[] = {
  { "chat", "talk with a model; the conversation goes on until the end of input", ox_cli_chat },
  { "generate", "one prompt, one answer", ox_cli_generate },
  { "tokenize", "text to token ids, and back", ox_cli_tokenize },
  { "info", "what a model is and needs, and what this computer has", ox_cli_info },
  { "eval", "how well a model predicts a text, and what rounding it costs", ox_cli_eval },
  { "bench", "how fast a model runs here, and how fast it could", ox_cli_bench },
  { "quantize", "round and pack a model ahead of time", ox_cli_quantize },
  { "dry-run", "what a published model would take here", ox_cli_dry_run },
};

static void
print_help (FILE *stream)
{
  fputs ("Usage:\n"
         "  oxinfer-cli COMMAND [OPTION…]\n"
         "\n"
         "Runs language models on this computer.\n"
         "\n"
         "Commands:\n",
         stream);
  for (gsize i = 0; i < G_N_ELEMENTS (commands); i++)
    fprintf (stream, "  %-10s %s\n", commands[i].name, commands[i].summary);
  fputs ("\n"
         "Options:\n"
         "  -h, --help     This text; after a command, its own\n"
         "  --version      Version\n"
         "\n"
         "Examples:\n"
         "  oxinfer-cli chat --model SmolLM2-135M-Instruct.Q4_1.gguf\n"
         "  oxinfer-cli generate --model model.gguf \"Why is the sky blue?\"\n"
         "  git diff | oxinfer-cli generate --model model.gguf --system \"Describe this change in one sentence.\"\n"
         "  oxinfer-cli tokenize --model model.gguf --json \"some text\"\n"
         "  oxinfer-cli info --model model.gguf\n"
         "  oxinfer-cli eval --model model --weights q4 --against exact/stored text.txt\n"
         "  oxinfer-cli bench --model model.gguf --json\n"
         "  oxinfer-cli quantize Qwen3.5-2B\n"
         "  oxinfer-cli dry-run gemma-4-12b --weights q4\n"
         "\n"
         "Exit codes:\n"
         "  0  fine\n"
         "  1  failed: the message is on standard error\n"
         "  2  wrong usage\n"
         "  130  interrupted (Ctrl+C, or SIGTERM)\n",
         stream);
}

/* A program can be started with its standard streams closed. The next file that it opens would get their numbers, and be read as the
 * prompt or written to. So they are opened: for reading, where input is empty and output fails. */
static void
open_standard_streams (void)
{
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
    if (fcntl (fd, F_GETFD) < 0 && errno == EBADF && open ("/dev/null", O_RDONLY) != fd)
      _exit (OX_CLI_FAILED);
}

static int
run (int argc, char **argv)
{
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  OxCli cli = { .cancellable = cancellable };
  int exit_code = OX_CLI_USAGE;

  if (argc < 2) {
    print_help (stderr);
    return OX_CLI_USAGE;
  }
  if (strcmp (argv[1], "--help") == 0 || strcmp (argv[1], "-h") == 0 || strcmp (argv[1], "help") == 0) {
    print_help (stdout);
    return OX_CLI_OK;
  }
  if (strcmp (argv[1], "--version") == 0) {
    puts ("oxinfer-cli " OX_VERSION);
    return OX_CLI_OK;
  }
  for (gsize i = 0; i < G_N_ELEMENTS (commands); i++)
    if (strcmp (argv[1], commands[i].name) == 0) {
      cli.command = commands[i].name;
      exit_code = commands[i].run (&cli, argc - 1, argv + 1);
      ox_cli_clear (&cli);
      return exit_code;
    }
  return ox_cli_usage (&cli, "there is no command “%s”", argv[1]);
}

guint64
ox_cli_process_memory (const char *key)
{
  g_autofree char *status = NULL;
  const char *line;

  if (!g_file_get_contents ("/proc/self/status", &status, NULL, NULL))
    return 0;
  line = strstr (status, key);
  return line != NULL ? g_ascii_strtoull (line + strlen (key), NULL, 10) * 1024 : 0;
}

int
main (int argc, char **argv)
{
  int exit_code;

  open_standard_streams ();
  setlocale (LC_ALL, "");
  /* Numbers are written and read with a point, wherever this runs. */
  setlocale (LC_NUMERIC, "C");
  exit_code = run (argc, argv);
  /* What no subcommand has written with an eye on errors: help, version. */
  if (fflush (stdout) != 0 && exit_code == OX_CLI_OK) {
    fprintf (stderr, "oxinfer-cli: cannot write to standard output: %s\n", g_strerror (errno));
    return OX_CLI_FAILED;
  }
  return exit_code;
}
