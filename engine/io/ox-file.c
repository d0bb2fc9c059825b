/* A read-only source of bytes: a file on disk, a block of memory, or a function.
 *
 * Files are read with pread and never mapped: a file that another program cuts short while it is open would turn a mapped
 * read into SIGBUS, but makes a pread come back short, which is an ordinary error.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "io/ox-file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Linux moves at most 0x7ffff000 bytes in one read. */
#define MAX_READ ((gsize) 1 << 30)

struct _OxFile {
  gatomicrefcount ref_count;
  char *name;
  int fd;              /* -1 when not on disk */
  GBytes *bytes;       /* NULL when not in memory */
  OxFileFillFunc fill; /* NULL when not generated */
  gpointer user_data;
  GDestroyNotify destroy;
  guint64 size;
  gint64 mtime;
};

static OxFile *
file_new (char *name, int fd, GBytes *bytes, guint64 size)
{
  OxFile *file = g_new0 (OxFile, 1);

  g_atomic_ref_count_init (&file->ref_count);
  file->name = name;
  file->fd = fd;
  file->bytes = bytes;
  file->size = size;
  return file;
}

OxFile *
ox_file_open (const char *path, GError **error)
{
  g_autofree char *name = g_filename_display_name (path);
  struct stat st;
  OxFile *file;
  int fd;

  /* O_NONBLOCK: opening a named pipe must not wait for a writer. */
  do
    fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  while (fd < 0 && errno == EINTR);
  if (fd < 0) {
    int code = errno;

    if (code == ENOENT || code == ENOTDIR)
      g_set_error (error, OX_ERROR, OX_ERROR_NOT_FOUND, "%s: there is no such file", name);
    else
      g_set_error (error, OX_ERROR, OX_ERROR_IO, "%s: cannot be opened: %s", name, g_strerror (code));
    return NULL;
  }
  if (fstat (fd, &st) != 0) {
    g_set_error (error, OX_ERROR, OX_ERROR_IO, "%s: cannot be examined: %s", name, g_strerror (errno));
    close (fd);
    return NULL;
  }
  if (!S_ISREG (st.st_mode) || st.st_size < 0) {
    g_set_error (error, OX_ERROR, OX_ERROR_INVALID, "%s: is %s, a regular file was expected", name,
                 S_ISDIR (st.st_mode) ? "a folder" : "a device or pipe");
    close (fd);
    return NULL;
  }
  file = file_new (g_steal_pointer (&name), fd, NULL, (guint64) st.st_size);
  file->mtime = (gint64) st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
  return file;
}

OxFile *
ox_file_new_for_bytes (GBytes *bytes, const char *name)
{
  return file_new (g_strdup (name), -1, g_bytes_ref (bytes), g_bytes_get_size (bytes));
}

OxFile *
ox_file_new_generated (guint64 size, OxFileFillFunc fill, gpointer user_data, GDestroyNotify destroy, const char *name)
{
  OxFile *file = file_new (g_strdup (name), -1, NULL, size);

  file->fill = fill;
  file->user_data = user_data;
  file->destroy = destroy;
  return file;
}

OxFile *
ox_file_ref (OxFile *file)
{
  g_atomic_ref_count_inc (&file->ref_count);
  return file;
}

void
ox_file_unref (OxFile *file)
{
  if (!g_atomic_ref_count_dec (&file->ref_count))
    return;
  if (file->fd >= 0)
    close (file->fd);
  g_clear_pointer (&file->bytes, g_bytes_unref);
  if (file->destroy != NULL)
    file->destroy (file->user_data);
  g_free (file->name);
  g_free (file);
}

const char *
ox_file_get_name (OxFile *file)
{
  return file->name;
}

guint64
ox_file_get_size (OxFile *file)
{
  return file->size;
}

gint64
ox_file_get_mtime (OxFile *file)
{
  return file->mtime;
}

gboolean
ox_file_read (OxFile *file, guint64 offset, void *buffer, gsize len, GError **error)
{
  guint8 *out = buffer;
  gsize done = 0;

  if (offset > file->size || len > file->size - offset) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED,
                 "%s: ends too early: %" G_GSIZE_FORMAT " bytes at offset %" G_GUINT64_FORMAT
                 " are needed, the file has %" G_GUINT64_FORMAT,
                 file->name, len, offset, file->size);
    return FALSE;
  }
  if (len == 0)
    return TRUE;
  if (file->bytes) {
    memcpy (buffer, (const guint8 *) g_bytes_get_data (file->bytes, NULL) + offset, len);
    return TRUE;
  }
  if (file->fill != NULL) {
    file->fill (offset, buffer, len, file->user_data);
    return TRUE;
  }
  while (done < len) {
    ssize_t n = pread (file->fd, out + done, MIN (len - done, MAX_READ), (off_t) (offset + done));

    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0) {
      g_set_error (error, OX_ERROR, OX_ERROR_IO, "%s: cannot be read at offset %" G_GUINT64_FORMAT ": %s", file->name,
                   offset + done, g_strerror (errno));
      return FALSE;
    }
    if (n == 0) {
      g_set_error (error, OX_ERROR, OX_ERROR_IO,
                   "%s: was cut short while in use: it had %" G_GUINT64_FORMAT
                   " bytes when opened and ends at %" G_GUINT64_FORMAT " now",
                   file->name, file->size, offset + done);
      return FALSE;
    }
    done += (gsize) n;
  }
  return TRUE;
}

GBytes *
ox_file_read_all (OxFile *file, guint64 max_bytes, GError **error)
{
  g_autofree char *data = NULL;
  gsize size;

  if (file->size > max_bytes || file->size >= G_MAXSIZE) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED,
                 "%s: has %" G_GUINT64_FORMAT " bytes, at most %" G_GUINT64_FORMAT " were expected", file->name,
                 file->size, max_bytes);
    return NULL;
  }
  size = (gsize) file->size;
  data = g_try_malloc (size + 1);
  if (!data) {
    g_set_error (error, OX_ERROR, OX_ERROR_NO_MEMORY, "%s: no memory for its %" G_GSIZE_FORMAT " bytes", file->name,
                 size);
    return NULL;
  }
  if (!ox_file_read (file, 0, data, size, error))
    return NULL;
  data[size] = '\0';
  return g_bytes_new_take (g_steal_pointer (&data), size);
}
