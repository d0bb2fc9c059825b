/* GGUF v2 and v3 headers: metadata by key, and where the tensors lie. Written against hostile files: counts, lengths, offsets
 * and types are checked before use, and an error names the key.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "io/ox-file.h"

typedef struct _OxGguf OxGguf;

OxGguf *ox_gguf_parse (OxFile *file, GError **error);
OxGguf *ox_gguf_ref (OxGguf *gguf);
void ox_gguf_unref (OxGguf *gguf);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (OxGguf, ox_gguf_unref)

gboolean ox_gguf_has (OxGguf *gguf, const char *key);
/* NULL when missing or no string. Valid UTF-8. */
const char *ox_gguf_get_string (OxGguf *gguf, const char *key);
/* Any integer type that fits; FALSE when missing, of another type, or out of range. */
gboolean ox_gguf_get_uint (OxGguf *gguf, const char *key, guint64 *value);
/* Any number, integers converted; it may be infinite or NaN. */
gboolean ox_gguf_get_float (OxGguf *gguf, const char *key, double *value);
gboolean ox_gguf_get_bool (OxGguf *gguf, const char *key, gboolean *value);

/* Arrays are kept as views into the header, so a vocabulary of 262,144 strings costs no copies. */
gsize ox_gguf_get_array_length (OxGguf *gguf, const char *key);
/* The @index-th string; not NUL-terminated. NULL when there is none. O(1). */
const char *ox_gguf_get_array_string (OxGguf *gguf, const char *key, gsize index, gsize *len);
/* Numeric arrays converted; FALSE when missing, of another kind, or of another length than @n. */
gboolean ox_gguf_get_array_float (OxGguf *gguf, const char *key, float *values, gsize n);
gboolean ox_gguf_get_array_int (OxGguf *gguf, const char *key, gint64 *values, gsize n);

typedef struct {
  const char *name;
  guint32 type;
  guint n_dims;
  guint64 dims[4]; /* in the file's order: innermost first */
  guint64 offset;  /* absolute, in the file */
  guint64 n_bytes;
} OxGgufTensor;

gsize ox_gguf_get_n_tensors (OxGguf *gguf);
const OxGgufTensor *ox_gguf_get_tensor (OxGguf *gguf, gsize index);
