/* oxinfer-cli: what its subcommands share.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <stdio.h>
#include <yyjson.h>

#include "oxinfer.h"

/* Exit codes; documented in --help. */
typedef enum {
  OX_CLI_OK = 0,
  OX_CLI_FAILED = 1,
  OX_CLI_USAGE = 2,
  OX_CLI_INTERRUPTED = 130,
} OxCliExit;

/* What every subcommand may use; each takes the option groups that it needs. */
typedef struct {
  const char *command; /* "chat" */
  char *model_path;
  char *precision, *weights, *kv, *drafter;
  gboolean no_speculation;
  int threads;
  int context;
  gboolean ignore_memory;
  gboolean json;
  gboolean quiet;
  /* Sampling: NAN or the least integer where nothing was given. */
  double temperature, top_p, min_p, repetition_penalty, frequency_penalty, presence_penalty;
  int top_k, max_tokens;
  gint64 seed;
  gboolean greedy;
  char **stop;
  char *json_schema_path, *json_schema; /* the file and, once read, what is in it */

  GCancellable *cancellable; /* of what is going on now */
  int output_error;          /* errno of the first write that failed */
} OxCli;

typedef struct {
  const char *name;
  const char *summary;
  int (*run) (OxCli *cli, int argc, char **argv);
} OxCliCommand;

int ox_cli_chat (OxCli *cli, int argc, char **argv);
int ox_cli_generate (OxCli *cli, int argc, char **argv);
int ox_cli_tokenize (OxCli *cli, int argc, char **argv);
int ox_cli_info (OxCli *cli, int argc, char **argv);
int ox_cli_eval (OxCli *cli, int argc, char **argv);
int ox_cli_bench (OxCli *cli, int argc, char **argv);
int ox_cli_quantize (OxCli *cli, int argc, char **argv);
int ox_cli_dry_run (OxCli *cli, int argc, char **argv);

/* ---- Options ---- */

typedef enum {
  OX_CLI_OPTIONS_MODEL = 1 << 0,  /* --model */
  OX_CLI_OPTIONS_LOAD = 1 << 1,   /* --precision, --weights, --kv, --threads, --context, --ignore-memory */
  OX_CLI_OPTIONS_SAMPLE = 1 << 2, /* --temperature … */
  OX_CLI_OPTIONS_AHEAD = 1 << 3,  /* --drafter, --no-speculation */
} OxCliOptions;

/* Parses @argv (argv[0] is the subcommand) with @entries and the shared groups. What is left over is in @rest (free with
 * g_strfreev()) when that is not NULL, and refused otherwise. FALSE: @exit_code tells what to end with. */
gboolean ox_cli_parse (OxCli *cli,
                       int argc,
                       char **argv,
                       OxCliOptions groups,
                       const GOptionEntry *entries,
                       const char *parameters,
                       const char *description,
                       char ***rest,
                       int *exit_code);
/* A usage error: says so and returns OX_CLI_USAGE. */
int ox_cli_usage (OxCli *cli, const char *format, ...) G_GNUC_PRINTF (2, 3);
void ox_cli_get_model_options (OxCli *cli, OxModelOptions *options);
/* @sampling borrows from @cli. */
void ox_cli_get_sampling (OxCli *cli, OxModel *model, OxSampling *sampling);
/* "exact", "q8", "fast/q4": replaces precision and weights in @options. FALSE when it is neither. */
gboolean ox_cli_parse_variant (const char *text, OxModelOptions *options);
/* "default", "on", "off"; NULL is "default". */
gboolean ox_cli_parse_thinking (const char *text, OxThinking *thinking);
void ox_cli_clear (OxCli *cli);

/* ---- Running ---- */

/* With progress where a person sees it. */
OxModel *ox_cli_load (OxCli *cli, GError **error);
OxModel *ox_cli_load_with (OxCli *cli, const char *path, const OxModelOptions *options, GError **error);
/* A session on @model as the options want it. */
OxSession *ox_cli_open_session (OxCli *cli, OxModel *model, GError **error);
/* A file that a person named, as valid UTF-8 without NUL. */
char *ox_cli_read_file (OxCli *cli, const char *path, GError **error);
/* Says what went wrong and returns the exit code for it. */
int ox_cli_fail (OxCli *cli, const GError *error);
/* From here on SIGINT and SIGTERM cancel cli->cancellable; a second one ends the program at once. To be called before any thread is
 * started. */
void ox_cli_catch_signals (OxCli *cli);
/* Whether SIGTERM came: then the program ends, wherever it is. */
gboolean ox_cli_terminated (void);

/* Writes to standard output at once. A reader that went away cancels what is going on. */
void ox_cli_write (OxCli *cli, const char *text);
/* "Label          value" */
void ox_cli_write_line (OxCli *cli, const char *label, const char *format, ...) G_GNUC_PRINTF (3, 4);
/* One line of JSON; takes @doc. */
void ox_cli_write_json (OxCli *cli, yyjson_mut_doc *doc);
/* Reads all of standard input; NULL when interrupted or on an error. */
char *ox_cli_read_all (OxCli *cli, GError **error);
/* A line without its end; NULL at the end of input or with an error. */
char *ox_cli_read_line (OxCli *cli, GString *pending, GError **error);

/* ---- JSON ---- */

/* As yyjson_mut_obj_add_real(), but null for what JSON cannot say. @key is not copied. */
void ox_cli_json_real (yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key, double value);
void ox_cli_json_statistics (yyjson_mut_doc *doc, yyjson_mut_val *object, const OxStatistics *statistics);

/* ---- This process and this computer ---- */

/* The line of /proc/self/status that begins with @key ("VmRSS:"), in bytes; 0 when there is no such thing. */
guint64 ox_cli_process_memory (const char *key);
