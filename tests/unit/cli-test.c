/* Running oxinfer-cli as a shell would, and reading what it says.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "cli-test.h"

#include <string.h>
#include <unistd.h>

char *toy_path;

void
cli_test_init (int *argc, char ***argv)
{
  g_test_init (argc, argv, NULL);
  /* Graphics drivers, which are asked about this computer's devices, are not ours to keep from leaking. */
  g_setenv ("ASAN_OPTIONS", "detect_leaks=0", TRUE);
  toy_path = ox_toy_model_make (&(OxToyModel) { 0 });
}

void
cli_test_clear (void)
{
  ox_toy_model_delete (toy_path);
}

void
result_clear (Result *result)
{
  g_free (result->out);
  g_free (result->err);
}

const char *
program (const char *variable)
{
  const char *path = g_getenv (variable);

  g_assert_nonnull (path);
  return path;
}

void
finish (GSubprocess *process, Result *result)
{
  g_assert_true (g_subprocess_wait (process, NULL, NULL));
  result->exit_code = g_subprocess_get_if_exited (process) ? g_subprocess_get_exit_status (process) : -1;
}

void
run_argv (Result *result, const char *input, const char *const *argv)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GSubprocess) process = g_subprocess_newv (
    argv, G_SUBPROCESS_FLAGS_STDIN_PIPE | G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_PIPE, &error);

  *result = (Result) { 0 };
  g_assert_no_error (error);
  g_assert_true (
    g_subprocess_communicate_utf8 (process, input != NULL ? input : "", NULL, &result->out, &result->err, &error));
  g_assert_no_error (error);
  finish (process, result);
}

void
cli (Result *result, const char *input, const char *line)
{
  g_auto (GStrv) words = g_strsplit (line, " ", -1);
  g_autoptr (GPtrArray) argv = g_ptr_array_new ();

  g_ptr_array_add (argv, (gpointer) program ("OX_TEST_CLI"));
  for (char **word = words; *word != NULL; word++)
    g_ptr_array_add (argv, strcmp (*word, "MODEL") == 0 ? toy_path : *word);
  g_ptr_array_add (argv, NULL);
  run_argv (result, input, (const char *const *) argv->pdata);
}

void
assert_ok (const Result *result)
{
  g_assert_cmpstr (result->err, ==, "");
  g_assert_cmpint (result->exit_code, ==, 0);
}

GPtrArray *
parse_lines (const char *text)
{
  GPtrArray *lines = g_ptr_array_new_with_free_func ((GDestroyNotify) ox_json_free);
  g_auto (GStrv) split = g_strsplit (text, "\n", -1);

  g_assert_true (g_str_has_suffix (text, "\n"));
  for (char **line = split; *line != NULL && line[1] != NULL; line++) {
    g_autoptr (GError) error = NULL;
    OxJson *json = ox_json_parse (*line, strlen (*line), "output", &error);

    g_assert_no_error (error);
    g_ptr_array_add (lines, json);
  }
  return lines;
}

yyjson_val *
root_of (GPtrArray *lines, guint index)
{
  g_assert_cmpuint (index, <, lines->len);
  return ox_json_get_root (g_ptr_array_index (lines, index));
}

const char *
string_of (yyjson_val *object, const char *key)
{
  const char *text = yyjson_get_str (yyjson_obj_get (object, key));

  g_assert_nonnull (text);
  return text;
}

char *
make_path (const char *name)
{
  g_autofree char *folder = g_dir_make_tmp ("oxinfer-cli-XXXXXX", NULL);

  return g_build_filename (folder, name, NULL);
}

void
delete_path (const char *path)
{
  g_autofree char *folder = g_path_get_dirname (path);

  unlink (path);
  g_assert_cmpint (rmdir (folder), ==, 0);
}
