/* A read-only source of bytes: a file on disk, a block of memory, or a function. Every read is checked against the size.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "oxinfer.h"

typedef struct _OxFile OxFile;

/* Regular files only. Reads use pread, so a file cut short after opening is an error and never a SIGBUS. */
OxFile *ox_file_open (const char *path, GError **error);
OxFile *ox_file_new_for_bytes (GBytes *bytes, const char *name);
/* A file of @size bytes that nobody has written: @fill makes any part of it, always the same, on any thread. */
typedef void (*OxFileFillFunc) (guint64 offset, guint8 *buffer, gsize len, gpointer user_data);
OxFile *ox_file_new_generated (
  guint64 size, OxFileFillFunc fill, gpointer user_data, GDestroyNotify destroy, const char *name);
OxFile *ox_file_ref (OxFile *file);
void ox_file_unref (OxFile *file);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (OxFile, ox_file_unref)

/* For messages: the path, or the name given. */
const char *ox_file_get_name (OxFile *file);
guint64 ox_file_get_size (OxFile *file);
/* Nanoseconds since 1970 of the last change when it was opened; 0 for what is not on disk. */
gint64 ox_file_get_mtime (OxFile *file);
/* Exactly @len bytes from @offset, or an error. Safe from several threads. */
gboolean ox_file_read (OxFile *file, guint64 offset, void *buffer, gsize len, GError **error);
/* The whole content with a NUL after it; refused when larger than @max_bytes. */
GBytes *ox_file_read_all (OxFile *file, guint64 max_bytes, GError **error);
