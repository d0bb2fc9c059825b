/* Loading, signals, input and output of oxinfer-cli.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-cli.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* The longest text that is read as a prompt. */
#define MAX_INPUT_BYTES (64u << 20)

/* ---- Signals ---- */

static int terminated;

/* Waits for signals in a thread, since a cancellable cannot be touched from a handler. */
static gpointer
signal_thread (gpointer data)
{
  OxCli *cli = data;
  sigset_t set;
  int signal_number;

  sigemptyset (&set);
  sigaddset (&set, SIGINT);
  sigaddset (&set, SIGTERM);
  for (;;) {
    if (sigwait (&set, &signal_number) != 0)
      continue;
    /* Asked twice: the program hangs in a write, or in something that should have stopped. */
    if (g_cancellable_is_cancelled (cli->cancellable))
      _exit (OX_CLI_INTERRUPTED);
    if (signal_number == SIGTERM)
      g_atomic_int_set (&terminated, 1);
    g_cancellable_cancel (cli->cancellable);
  }
  return NULL;
}

void
ox_cli_catch_signals (OxCli *cli)
{
  sigset_t set;

  sigemptyset (&set);
  sigaddset (&set, SIGINT);
  sigaddset (&set, SIGTERM);
  pthread_sigmask (SIG_BLOCK, &set, NULL);
  /* A reader that goes away shows as EPIPE. */
  signal (SIGPIPE, SIG_IGN);
  g_thread_unref (g_thread_new ("signals", signal_thread, cli));
}

gboolean
ox_cli_terminated (void)
{
  return g_atomic_int_get (&terminated);
}

/* ---- Loading and failing ---- */

static void
on_progress (double fraction, gpointer user_data)
{
  fprintf (stderr, "\rLoading … %3d %%", (int) (fraction * 100));
  fflush (stderr);
}

OxModel *
ox_cli_load_with (OxCli *cli, const char *path, const OxModelOptions *options, GError **error)
{
  gboolean shows = isatty (STDERR_FILENO) && !cli->quiet;
  OxModel *model = ox_model_load (path, options, shows ? on_progress : NULL, cli, cli->cancellable, error);

  if (shows)
    fputs ("\r                \r", stderr);
  return model;
}

OxModel *
ox_cli_load (OxCli *cli, GError **error)
{
  OxModelOptions options;

  /* A schema that cannot be read is told before a model is loaded for nothing. */
  if (cli->json_schema_path != NULL &&
      (cli->json_schema = ox_cli_read_file (cli, cli->json_schema_path, error)) == NULL)
    return NULL;
  ox_cli_get_model_options (cli, &options);
  return ox_cli_load_with (cli, cli->model_path, &options, error);
}

OxSession *
ox_cli_open_session (OxCli *cli, OxModel *model, GError **error)
{
  OxSession *session = ox_session_new (model, error);

  if (session != NULL && cli->no_speculation)
    ox_session_set_speculation (session, OX_SPECULATION_OFF);
  return session;
}

int
ox_cli_fail (OxCli *cli, const GError *error)
{
  if (cli->output_error == EPIPE)
    return OX_CLI_FAILED;
  if (cli->output_error != 0) {
    fprintf (stderr, "oxinfer-cli: cannot write to standard output: %s\n", g_strerror (cli->output_error));
    return OX_CLI_FAILED;
  }
  if (error == NULL)
    return OX_CLI_FAILED;
  if (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
    return OX_CLI_INTERRUPTED;
  fprintf (stderr, "oxinfer-cli: %s\n", error->message);
  return g_error_matches (error, OX_ERROR, OX_ERROR_INVALID) ? OX_CLI_USAGE : OX_CLI_FAILED;
}

/* ---- Output ---- */

void
ox_cli_write (OxCli *cli, const char *text)
{
  if (cli->output_error != 0)
    return;
  if (fputs (text, stdout) == EOF || fflush (stdout) != 0) {
    cli->output_error = errno != 0 ? errno : EIO;
    g_cancellable_cancel (cli->cancellable);
  }
}

void
ox_cli_write_line (OxCli *cli, const char *label, const char *format, ...)
{
  g_autofree char *value = NULL;
  g_autofree char *line = NULL;
  va_list args;

  va_start (args, format);
  value = g_strdup_vprintf (format, args);
  va_end (args);
  line = g_strdup_printf ("%-14s %s\n", label, value);
  ox_cli_write (cli, line);
}

void
ox_cli_write_json (OxCli *cli, yyjson_mut_doc *doc)
{
  char *text = yyjson_mut_write (doc, 0, NULL);
  g_autofree char *line = text != NULL ? g_strconcat (text, "\n", NULL) : NULL;

  if (line != NULL)
    ox_cli_write (cli, line);
  free (text);
  yyjson_mut_doc_free (doc);
}

/* ---- Input ---- */

/* Reads some more of @fd, which is called @name, behind @text. @n_read counts what came, NULs too. FALSE at its end, or with an error. */
static gboolean
read_more (OxCli *cli, int fd, const char *name, GString *text, gsize *n_read, GError **error)
{
  GPollFD cancel;
  struct pollfd fds[2] = { { .fd = fd, .events = POLLIN } };
  nfds_t n_fds = 1;
  char buffer[4096];
  gssize n;

  if (g_cancellable_make_pollfd (cli->cancellable, &cancel)) {
    fds[1] = (struct pollfd) { .fd = cancel.fd, .events = POLLIN };
    n_fds = 2;
  }
  do
    n = poll (fds, n_fds, -1);
  while (n < 0 && errno == EINTR);
  if (n_fds == 2)
    g_cancellable_release_fd (cli->cancellable);
  if (g_cancellable_set_error_if_cancelled (cli->cancellable, error))
    return FALSE;

  n = read (fd, buffer, sizeof buffer);
  if (n < 0 && (errno == EINTR || errno == EAGAIN))
    return TRUE;
  if (n < 0) {
    g_set_error (error, OX_ERROR, OX_ERROR_IO, "cannot read %s: %s", name, g_strerror (errno));
    return FALSE;
  }
  *n_read += (gsize) n;
  if (*n_read > MAX_INPUT_BYTES) {
    g_set_error (error, OX_ERROR, OX_ERROR_INVALID, "%s has more than %u MB", name, MAX_INPUT_BYTES >> 20);
    return FALSE;
  }
  /* A NUL would end the text early; nobody means one. */
  for (gssize i = 0; i < n; i++)
    if (buffer[i] != '\0')
      g_string_append_c (text, buffer[i]);
  return n > 0;
}

static char *
read_to_end (OxCli *cli, int fd, const char *name, GError **error)
{
  g_autoptr (GString) text = g_string_new (NULL);
  g_autoptr (GError) local_error = NULL;
  gsize n_read = 0;

  while (read_more (cli, fd, name, text, &n_read, &local_error))
    ;
  if (local_error != NULL) {
    g_propagate_error (error, g_steal_pointer (&local_error));
    return NULL;
  }
  return g_string_free (g_steal_pointer (&text), FALSE);
}

char *
ox_cli_read_all (OxCli *cli, GError **error)
{
  return read_to_end (cli, STDIN_FILENO, "standard input", error);
}

char *
ox_cli_read_file (OxCli *cli, const char *path, GError **error)
{
  g_autoptr (GFile) file = g_file_new_for_commandline_arg (path);
  g_autofree char *shown = g_filename_display_name (path);
  g_autofree char *bytes = NULL;
  int fd = -1;

  /* A pipe that nobody writes to yet would hold up the opening, where nothing stops it. */
  if (g_file_peek_path (file) != NULL)
    fd = open (g_file_peek_path (file), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  else
    errno = ENOENT;
  if (fd < 0) {
    g_set_error (error, OX_ERROR, errno == ENOENT ? OX_ERROR_NOT_FOUND : OX_ERROR_IO, "cannot open %s: %s", shown,
                 g_strerror (errno));
    return NULL;
  }
  bytes = read_to_end (cli, fd, shown, error);
  close (fd);
  return bytes != NULL ? g_utf8_make_valid (bytes, -1) : NULL;
}

char *
ox_cli_read_line (OxCli *cli, GString *pending, GError **error)
{
  gboolean more = TRUE;
  gsize searched = 0, n_read = pending->len;

  for (;;) {
    const char *end = memchr (pending->str + searched, '\n', pending->len - searched);
    g_autoptr (GError) local_error = NULL;
    char *line;

    if (end != NULL || (!more && pending->len > 0)) {
      gsize len = end != NULL ? (gsize) (end - pending->str) : pending->len;

      line = g_strndup (pending->str, len);
      g_string_erase (pending, 0, (gssize) MIN (len + 1, pending->len));
      return line;
    }
    if (!more)
      return NULL;
    searched = pending->len;
    more = read_more (cli, STDIN_FILENO, "standard input", pending, &n_read, &local_error);
    if (local_error != NULL) {
      g_propagate_error (error, g_steal_pointer (&local_error));
      return NULL;
    }
  }
}

/* ---- JSON ---- */

void
ox_cli_json_real (yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key, double value)
{
  if (isfinite (value))
    yyjson_mut_obj_add_real (doc, object, key, value);
  else
    yyjson_mut_obj_add_null (doc, object, key);
}

void
ox_cli_json_statistics (yyjson_mut_doc *doc, yyjson_mut_val *object, const OxStatistics *statistics)
{
  yyjson_mut_obj_add_uint (doc, object, "prompt_tokens", statistics->prompt_tokens);
  yyjson_mut_obj_add_uint (doc, object, "reused_tokens", statistics->reused_tokens);
  yyjson_mut_obj_add_uint (doc, object, "answer_tokens", statistics->answer_tokens);
  yyjson_mut_obj_add_uint (doc, object, "drafted_tokens", statistics->drafted_tokens);
  yyjson_mut_obj_add_uint (doc, object, "accepted_tokens", statistics->accepted_tokens);
  yyjson_mut_obj_add_uint (doc, object, "context_length", statistics->context_length);
  ox_cli_json_real (doc, object, "prefill_seconds", statistics->prefill_seconds);
  ox_cli_json_real (doc, object, "decode_seconds", statistics->decode_seconds);
  ox_cli_json_real (doc, object, "first_token_seconds", statistics->first_token_seconds);
  ox_cli_json_real (doc, object, "prefill_rate", ox_statistics_get_prefill_rate (statistics));
  ox_cli_json_real (doc, object, "decode_rate", ox_statistics_get_decode_rate (statistics));
}
