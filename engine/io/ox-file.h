/* A read-only source of bytes: a file on disk or a block of memory. Every read is checked against the size.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "oxinfer.h"

typedef struct _OxFile OxFile;

/* Regular files only. Reads use pread, so a file cut short after opening is an error and never a SIGBUS. */
OxFile *ox_file_open (const char *path, GError **error);
OxFile *ox_file_new_for_bytes (GBytes *bytes, const char *name);
OxFile *ox_file_ref (OxFile *file);
void ox_file_unref (OxFile *file);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (OxFile, ox_file_unref)

/* For messages: the path, or the name given. */
const char *ox_file_get_name (OxFile *file);
guint64 ox_file_get_size (OxFile *file);
/* Exactly @len bytes from @offset, or an error. Safe from several threads. */
gboolean ox_file_read (OxFile *file, guint64 offset, void *buffer, gsize len, GError **error);
/* The whole content with a NUL after it; refused when larger than @max_bytes. */
GBytes *ox_file_read_all (OxFile *file, guint64 max_bytes, GError **error);
