/* Which code runs which golden case.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "golden/ox-golden-drafter.h"
#include "golden/ox-golden-gguf.h"
#include "golden/ox-golden-model.h"
#include "golden/ox-golden-text.h"

#include <string.h>

/* Cases lie two folders deep. */
#define MAX_DEPTH 4

static gboolean
has_file (const char *folder, const char *name)
{
  g_autofree char *path = g_build_filename (folder, name, NULL);

  return g_file_test (path, G_FILE_TEST_EXISTS);
}

static gboolean
run_case (const char *folder, const char *models, OxGoldenReport *report, GCancellable *cancellable, GError **error)
{
  const char *tensors = has_file (folder, "blocks.safetensors") ? "blocks.safetensors" : "expected.safetensors";
  g_autofree char *name = g_path_get_basename (folder);
  g_autoptr (OxGoldenCase) golden = NULL;

  if (!has_file (folder, tensors)) {
    ox_golden_report_not_computed (report, name, "this version runs no case of this kind");
    return TRUE;
  }
  golden = ox_golden_case_open (folder, tensors, report, error);
  if (golden == NULL)
    return FALSE;
  if (yyjson_is_str (yyjson_obj_get (golden->root, "gguf_sha256")))
    ox_golden_gguf_run (golden, models, cancellable);
  else if (yyjson_obj_get (golden->root, "files_with_the_checkpoints_exact_weights") != NULL)
    ox_golden_model_run_gguf (golden, cancellable);
  else if (yyjson_is_obj (yyjson_obj_get (golden->root, "types")))
    ox_golden_gguf_run_blocks (golden);
  else if (yyjson_is_str (yyjson_obj_get (golden->root, "target")))
    ox_golden_drafter_run (golden, cancellable);
  else if (has_file (folder, "model"))
    ox_golden_model_run (golden, cancellable);
  else
    ox_golden_case_finish (golden, "this version runs no case of this kind");
  return TRUE;
}

static gboolean
is_case_file (const char *name)
{
  return g_str_has_suffix (name, ".json") || g_str_has_suffix (name, ".json.xz");
}

/* Names in @folder, sorted, so that runs can be compared. */
static GPtrArray *
list_folder (const char *folder, GError **error)
{
  g_autoptr (GPtrArray) names = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GDir) dir = g_dir_open (folder, 0, error);
  const char *name;

  if (dir == NULL)
    return NULL;
  while ((name = g_dir_read_name (dir)) != NULL)
    g_ptr_array_add (names, g_strdup (name));
  g_ptr_array_sort_values (names, (GCompareFunc) strcmp);
  return g_steal_pointer (&names);
}

/* @found: how many cases there were. Inside a case folder only further case folders count: the .json files there are its own. */
static gboolean
run_folder (const char *folder,
            const char *models,
            OxGoldenReport *report,
            guint depth,
            guint *found,
            GCancellable *cancellable,
            GError **error)
{
  gboolean is_case = has_file (folder, "case.json");
  g_autoptr (GPtrArray) names = list_folder (folder, error);

  if (names == NULL || g_cancellable_set_error_if_cancelled (cancellable, error))
    return FALSE;
  if (is_case) {
    ++*found;
    if (!run_case (folder, models, report, cancellable, error))
      return FALSE;
  }
  for (guint i = 0; i < names->len; i++) {
    const char *name = g_ptr_array_index (names, i);
    g_autofree char *path = g_build_filename (folder, name, NULL);

    if (g_file_test (path, G_FILE_TEST_IS_DIR)) {
      if (depth < MAX_DEPTH && (!is_case || has_file (path, "case.json")) &&
          !run_folder (path, models, report, depth + 1, found, cancellable, error))
        return FALSE;
    } else if (!is_case && is_case_file (name)) {
      ++*found;
      if (!ox_golden_text_run (path, models, report, cancellable, error))
        return FALSE;
    }
  }
  return TRUE;
}

gboolean
ox_golden_run (const char *path, const char *models, OxGoldenReport *report, GCancellable *cancellable, GError **error)
{
  guint found = 0;

  if (!g_file_test (path, G_FILE_TEST_EXISTS)) {
    g_set_error (error, OX_ERROR, OX_ERROR_NOT_FOUND, "%s: no such file or folder", path);
    return FALSE;
  }
  if (!g_file_test (path, G_FILE_TEST_IS_DIR)) {
    g_autofree char *name = g_path_get_basename (path);
    g_autofree char *folder = g_path_get_dirname (path);

    if (strcmp (name, "case.json") == 0)
      return run_case (folder, models, report, cancellable, error);
    return ox_golden_text_run (path, models, report, cancellable, error);
  }
  if (!run_folder (path, models, report, 0, &found, cancellable, error))
    return FALSE;
  if (found == 0) {
    g_set_error (error, OX_ERROR, OX_ERROR_NOT_FOUND, "%s: no golden case here: neither a case.json nor a case file",
                 path);
    return FALSE;
  }
  return TRUE;
}
