/* The folder of packed matrices.
 *
 * Finished files end in OX_PACKED_SUFFIX; the time of their last change is when they were last used. Files that are being written have
 * another name and are locked by their writer: one that nobody has locked is what a dead process left.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-packed-folder.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "ox-packed-cache.h"

#define TEMPORARY_PREFIX "writing-"
#define DEFAULT_LIMIT G_GUINT64_CONSTANT (20000000000)
/* Space on the disk that is left for everybody else. */
#define RESERVE_BYTES ((guint64) 1 << 30)
#define DEFAULT_LEAST_BYTES ((guint64) 64 << 20)

G_LOCK_DEFINE_STATIC (settings);
static guint64 limit = DEFAULT_LIMIT;
static guint64 least_bytes = DEFAULT_LEAST_BYTES;

typedef struct {
  char *path;
  guint64 bytes;
  struct timespec used;
} Kept;

static void
kept_clear (gpointer data)
{
  g_free (((Kept *) data)->path);
}

static int
compare_use (gconstpointer a, gconstpointer b)
{
  const struct timespec *x = &((const Kept *) a)->used, *y = &((const Kept *) b)->used;

  if (x->tv_sec != y->tv_sec)
    return x->tv_sec < y->tv_sec ? -1 : 1;
  return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

char *
ox_packed_folder_get_path (const char *name)
{
  return g_build_filename (g_get_user_cache_dir (), "oxinfer", "packed", name, NULL);
}

/* Regular files of the folder whose name begins and ends so, the longest unused first. */
static GArray *
list (const char *prefix, const char *suffix)
{
  GArray *files = g_array_new (FALSE, FALSE, sizeof (Kept));
  g_autofree char *folder = ox_packed_folder_get_path (NULL);
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  const char *name;

  g_array_set_clear_func (files, kept_clear);
  while (dir != NULL && (name = g_dir_read_name (dir)) != NULL) {
    g_autofree char *path = g_build_filename (folder, name, NULL);
    struct stat st;

    if (g_str_has_prefix (name, prefix) && g_str_has_suffix (name, suffix) && lstat (path, &st) == 0 &&
        S_ISREG (st.st_mode)) {
      Kept kept = { g_steal_pointer (&path), (guint64) st.st_size, st.st_mtim };
      g_array_append_val (files, kept);
    }
  }
  g_array_sort (files, compare_use);
  return files;
}

/* What processes left that died while they wrote. */
static void
remove_abandoned (void)
{
  g_autoptr (GArray) files = list (TEMPORARY_PREFIX, "");

  for (guint i = 0; i < files->len; i++) {
    const char *path = g_array_index (files, Kept, i).path;
    int fd = open (path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (fd < 0)
      continue;
    if (flock (fd, LOCK_EX | LOCK_NB) == 0)
      unlink (path);
    close (fd);
  }
}

gboolean
ox_packed_folder_check (guint64 bytes, GError **error)
{
  g_autofree char *folder = ox_packed_folder_get_path (NULL);
  g_autofree char *shown = g_filename_display_name (folder);
  g_autofree char *needed = g_format_size (bytes);
  g_autofree char *limit_text = g_format_size (ox_packed_folder_get_limit ());
  struct statvfs fs;

  if (bytes > ox_packed_folder_get_limit ()) {
    g_set_error (error, OX_ERROR, OX_ERROR_IO, "%s: may take %s, and %s are needed", shown, limit_text, needed);
    return FALSE;
  }
  if (g_mkdir_with_parents (folder, 0700) != 0 || access (folder, W_OK | X_OK) != 0 || statvfs (folder, &fs) != 0) {
    g_set_error (error, OX_ERROR, OX_ERROR_IO, "%s: cannot be written to: %s", shown, g_strerror (errno));
    return FALSE;
  }
  if ((guint64) fs.f_bavail * fs.f_frsize < bytes + RESERVE_BYTES) {
    g_autofree char *room = g_format_size ((guint64) fs.f_bavail * fs.f_frsize);
    g_autofree char *reserve = g_format_size (RESERVE_BYTES);

    g_set_error (error, OX_ERROR, OX_ERROR_IO, "%s: the disk has room for %s; %s are needed, and %s that stay free",
                 shown, room, needed, reserve);
    return FALSE;
  }
  return TRUE;
}

char *
ox_packed_folder_create (guint64 bytes, int *fd)
{
  g_autofree char *path = ox_packed_folder_get_path (TEMPORARY_PREFIX "XXXXXX");

  if (!ox_packed_folder_check (bytes, NULL))
    return NULL;
  remove_abandoned ();
  *fd = g_mkstemp_full (path, O_RDWR | O_CLOEXEC, 0600);
  if (*fd < 0)
    return NULL;
  /* Without a lock, or taken for an abandoned file before it was locked: then the rename at the end fails, and nothing is kept. */
  flock (*fd, LOCK_EX | LOCK_NB);
  return g_steal_pointer (&path);
}

void
ox_packed_folder_trim (const char *keep)
{
  g_autoptr (GArray) files = list ("", OX_PACKED_SUFFIX);
  guint64 most = ox_packed_folder_get_limit (), bytes = 0, kept = 0;

  for (guint i = 0; i < files->len; i++) {
    const Kept *file = &g_array_index (files, Kept, i);

    bytes += file->bytes;
    if (g_strcmp0 (file->path, keep) == 0)
      kept = file->bytes;
  }
  for (guint i = 0; i < files->len && bytes > most; i++) {
    const Kept *file = &g_array_index (files, Kept, i);

    if (g_strcmp0 (file->path, keep) != 0 && unlink (file->path) == 0)
      bytes -= file->bytes;
  }
  if (bytes > most && kept > 0)
    unlink (keep);
}

guint64
ox_packed_folder_get_limit (void)
{
  guint64 bytes;

  G_LOCK (settings);
  bytes = limit;
  G_UNLOCK (settings);
  return bytes;
}

void
ox_packed_cache_set_limit (guint64 bytes)
{
  G_LOCK (settings);
  limit = bytes;
  G_UNLOCK (settings);
  ox_packed_folder_trim (NULL);
}

guint64
ox_packed_cache_get_least_bytes (void)
{
  guint64 bytes;

  G_LOCK (settings);
  bytes = least_bytes;
  G_UNLOCK (settings);
  return bytes;
}

void
ox_packed_cache_set_least_bytes (guint64 bytes)
{
  G_LOCK (settings);
  least_bytes = bytes;
  G_UNLOCK (settings);
}

guint64
ox_packed_cache_get_bytes (void)
{
  g_autoptr (GArray) files = list ("", OX_PACKED_SUFFIX);
  guint64 bytes = 0;

  for (guint i = 0; i < files->len; i++)
    bytes += g_array_index (files, Kept, i).bytes;
  return bytes;
}

gboolean
ox_packed_cache_clear (GError **error)
{
  g_autoptr (GArray) files = list ("", OX_PACKED_SUFFIX);

  remove_abandoned ();
  for (guint i = 0; i < files->len; i++) {
    const char *path = g_array_index (files, Kept, i).path;

    if (unlink (path) != 0 && errno != ENOENT) {
      int code = errno;
      g_autofree char *shown = g_filename_display_name (path);

      g_set_error (error, OX_ERROR, OX_ERROR_IO, "%s: cannot be removed: %s", shown, g_strerror (code));
      return FALSE;
    }
  }
  return TRUE;
}
