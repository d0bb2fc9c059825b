/* See ox-model-scan.h.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-model-scan.h"

#include "ox-log.h"
#include "ox-thread-checks.h"

#include <glib/gstdio.h>
#include <string.h>

/* A Hugging Face cache needs three (repository, snapshots, revision), and repositories have folders of their own. The limits keep a
 * walk through somebody's whole home short. */
#define MAX_DEPTH 6
#define MAX_FOLDERS 2000
#define MAX_MODELS 1000
#define MAX_WATCHED 100

typedef struct {
  const OxEngineBackend *backend;
  GHashTable *known;
  const OxModelOptions *options;
  OxModelFindingFunc found;
  gpointer user_data;
  GCancellable *cancellable;
  GHashTable *seen; /* "device:inode": the same file may have many names */
  GPtrArray *folders;
  guint n_folders;
  guint n_models;
} Scan;

GStrv
ox_model_scan_get_roots (const char *const *added)
{
  g_autoptr (GStrvBuilder) roots = g_strv_builder_new ();
  g_auto (GStrv) from_environment = NULL;
  const char *list = g_getenv ("OXINFER_MODELS");
  const char *hub_cache = g_getenv ("HF_HUB_CACHE");
  const char *hf_home = g_getenv ("HF_HOME");

  from_environment = g_strsplit (list != NULL ? list : "", ":", -1);
  for (guint i = 0; from_environment[i] != NULL; i++)
    if (*from_environment[i] != '\0')
      g_strv_builder_add (roots, from_environment[i]);
  if (hub_cache != NULL && *hub_cache != '\0')
    g_strv_builder_add (roots, hub_cache);
  else if (hf_home != NULL && *hf_home != '\0')
    g_strv_builder_take (roots, g_build_filename (hf_home, "hub", NULL));
  else
    g_strv_builder_take (roots, g_build_filename (g_get_home_dir (), ".cache", "huggingface", "hub", NULL));
  if (g_file_test ("/.flatpak-info", G_FILE_TEST_EXISTS))
    g_strv_builder_take (roots, g_build_filename (g_get_user_data_dir (), "models", NULL));
  if (added != NULL)
    g_strv_builder_addv (roots, (const char **) added);
  return g_strv_builder_end (roots);
}

char *
ox_model_scan_dup_name (const char *path)
{
  g_autofree char *folder = g_path_get_dirname (path);
  char *name;
  char *dot;

  if (g_str_has_suffix (folder, G_DIR_SEPARATOR_S "snapshots")) {
    g_autofree char *repository = g_path_get_dirname (folder);
    g_autofree char *base = g_filename_display_basename (repository);
    const char *last = g_strrstr (base, "--");

    if (g_str_has_prefix (base, "models--") && last[2] != '\0')
      return g_strdup (last + 2);
  }
  name = g_filename_display_basename (path);
  dot = strrchr (name, '.');
  if (dot != NULL && dot != name && g_str_equal (dot, ".gguf"))
    *dot = '\0';
  return name;
}

static gboolean
first_time (Scan *scan, const char *path)
{
  GStatBuf info;

  /* What cannot be looked at is told apart by its name. */
  if (g_stat (path, &info) != 0)
    return g_hash_table_add (scan->seen, g_strdup (path));
  return g_hash_table_add (scan->seen, g_strdup_printf ("%" G_GUINT64_FORMAT ":%" G_GUINT64_FORMAT,
                                                        (guint64) info.st_dev, (guint64) info.st_ino));
}

static void
append_stamp (GString *stamp, const char *path)
{
  GStatBuf info;

  if (g_stat (path, &info) == 0)
    g_string_append_printf (stamp, "%" G_GINT64_FORMAT ":%" G_GINT64_FORMAT ".%09ld;", (gint64) info.st_size,
                            (gint64) info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
}

/* @files: what a folder's model is made of, or NULL for a single file. A folder has been seen already, as a folder. */
static void
report (Scan *scan, const char *path, GPtrArray *files)
{
  GString *stamp;
  OxModelFinding *finding;

  if (scan->n_models >= MAX_MODELS || (files == NULL && !first_time (scan, path)))
    return;
  scan->n_models++;
  stamp = g_string_new (NULL);
  append_stamp (stamp, path);
  for (guint i = 0; files != NULL && i < files->len; i++)
    append_stamp (stamp, files->pdata[i]);

  finding = g_new0 (OxModelFinding, 1);
  finding->path = g_strdup (path);
  finding->stamp = g_string_free (stamp, FALSE);
  if (g_strcmp0 (g_hash_table_lookup (scan->known, path), finding->stamp) != 0) {
    finding->plan = scan->backend->plan (path, scan->options, scan->cancellable, &finding->error);
    ox_debug ("models", "%s: %s", path, finding->plan != NULL ? "usable" : finding->error->message);
  }
  scan->found (finding, scan->user_data);
}

/* "name-00002-of-00005.gguf" belongs to its first part; "mmproj-…" is a model's eye, not a model. */
static gboolean
is_companion (const char *name)
{
  const char *of = g_strrstr (name, "-of-");

  if (g_str_has_prefix (name, "mmproj"))
    return TRUE;
  return of != NULL && of - name >= 6 && of[-6] == '-' && strspn (of - 5, "0123456789") == 5 &&
         strncmp (of - 5, "00001", 5) != 0;
}

/* The revision that refs/main of a cached repository names; NULL: all of them. */
static char *
main_revision (const char *snapshots)
{
  g_autofree char *repository = g_path_get_dirname (snapshots);
  g_autofree char *ref = g_build_filename (repository, "refs", "main", NULL);
  g_autofree char *revision = NULL;
  g_autofree char *folder = NULL;

  if (!g_file_get_contents (ref, &revision, NULL, NULL))
    return NULL;
  g_strstrip (revision);
  folder = g_build_filename (snapshots, revision, NULL);
  return *revision != '\0' && strchr (revision, '/') == NULL && g_file_test (folder, G_FILE_TEST_IS_DIR)
           ? g_steal_pointer (&revision)
           : NULL;
}

static void
scan_folder (Scan *scan, const char *path, guint depth)
{
  g_autoptr (GDir) dir = NULL;
  g_autoptr (GPtrArray) parts = NULL;
  g_autofree char *only = NULL;
  g_autofree char *base = NULL;
  gboolean has_config = FALSE;
  gboolean has_weights = FALSE;
  const char *name;

  if (depth > MAX_DEPTH || scan->n_folders >= MAX_FOLDERS || g_cancellable_is_cancelled (scan->cancellable) ||
      !first_time (scan, path) || (dir = g_dir_open (path, 0, NULL)) == NULL)
    return;
  scan->n_folders++;
  if (scan->folders->len < MAX_WATCHED)
    g_ptr_array_add (scan->folders, g_strdup (path));

  base = g_path_get_basename (path);
  if (g_str_equal (base, "snapshots"))
    only = main_revision (path);
  parts = g_ptr_array_new_with_free_func (g_free);
  while ((name = g_dir_read_name (dir)) != NULL && !g_cancellable_is_cancelled (scan->cancellable)) {
    g_autofree char *child = NULL;

    if (name[0] == '.' || (only != NULL && !g_str_equal (name, only)))
      continue;
    child = g_build_filename (path, name, NULL);
    if (g_str_has_suffix (name, ".gguf")) {
      if (!is_companion (name))
        report (scan, child, NULL);
    } else if (g_str_equal (name, "config.json") || g_str_has_suffix (name, ".safetensors")) {
      has_config |= g_str_equal (name, "config.json");
      has_weights |= g_str_has_suffix (name, ".safetensors");
      g_ptr_array_add (parts, g_steal_pointer (&child));
    } else if (!g_str_equal (name, "blobs") && !g_str_equal (name, "refs") && g_file_test (child, G_FILE_TEST_IS_DIR)) {
      scan_folder (scan, child, depth + 1);
    }
  }
  if (has_config && has_weights) {
    g_ptr_array_sort_values (parts, (GCompareFunc) strcmp);
    report (scan, path, parts);
  }
}

GStrv
ox_model_scan (const OxEngineBackend *backend,
               const char *const *roots,
               GHashTable *known,
               const OxModelOptions *options,
               OxModelFindingFunc found,
               gpointer user_data,
               GCancellable *cancellable)
{
  Scan scan = { .backend = backend,
                .known = known,
                .options = options,
                .found = found,
                .user_data = user_data,
                .cancellable = cancellable,
                .seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL),
                .folders = g_ptr_array_new () };

  OX_ASSERT_ENGINE_THREAD ();
  for (guint i = 0; roots[i] != NULL; i++) {
    if (g_file_test (roots[i], G_FILE_TEST_IS_DIR)) {
      scan_folder (&scan, roots[i], 0);
    } else if (g_str_has_suffix (roots[i], ".gguf")) {
      g_autofree char *folder = g_path_get_dirname (roots[i]);

      report (&scan, roots[i], NULL);
      if (scan.folders->len < MAX_WATCHED)
        g_ptr_array_add (scan.folders, g_steal_pointer (&folder));
    }
  }
  g_hash_table_unref (scan.seen);
  g_ptr_array_add (scan.folders, NULL);
  return (GStrv) g_ptr_array_free (scan.folders, FALSE);
}
