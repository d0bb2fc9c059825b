/* Running oxinfer-cli as a shell would, and reading what it says.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <gio/gio.h>

#include "io/ox-json.h"
#include "ox-toy-model.h"

/* A small model; there from cli_test_init() to cli_test_clear(). */
extern char *toy_path;

typedef struct {
  int exit_code; /* -1: ended by a signal */
  char *out;
  char *err;
} Result;

void result_clear (Result *result);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Result, result_clear)

void cli_test_init (int *argc, char ***argv);
void cli_test_clear (void);

/* The path of a program, from the environment. */
const char *program (const char *variable);
/* Waits for the end of @process. */
void finish (GSubprocess *process, Result *result);
/* Runs argv, whose first entry is the program, with @input on standard input (NULL: nothing to read). */
void run_argv (Result *result, const char *input, const char *const *argv);
/* Runs oxinfer-cli with what is in @line, cut at spaces. MODEL stands for a small model. */
void cli (Result *result, const char *input, const char *line);
void assert_ok (const Result *result);

/* Each line of @text as JSON. */
GPtrArray *parse_lines (const char *text);
yyjson_val *root_of (GPtrArray *lines, guint index);
const char *string_of (yyjson_val *object, const char *key);

/* A name in a new folder, of which nothing is there; delete_path() removes both. */
char *make_path (const char *name);
void delete_path (const char *path);
