/* What the GGUF parser leaves for the accessors.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "io/ox-gguf.h"

/* Value types, numbered as in the file format. */
typedef enum {
  GGUF_U8,
  GGUF_I8,
  GGUF_U16,
  GGUF_I16,
  GGUF_U32,
  GGUF_I32,
  GGUF_F32,
  GGUF_BOOL,
  GGUF_STRING,
  GGUF_ARRAY,
  GGUF_U64,
  GGUF_I64,
  GGUF_F64,
  GGUF_N_TYPES,
} OxGgufValueType;

/* One key. Positions are in the header buffer. Strings and keys have a NUL after them in the buffer: the parser overwrites the
 * first byte of what follows, which it has read already. Strings in arrays have none. */
typedef struct {
  const char *name;
  guint32 key;          /* where @name lies */
  guint32 type;         /* OxGgufValueType */
  guint32 value;        /* the first byte of the value; of the first element for numeric arrays */
  guint32 element_type; /* arrays */
  guint64 n;            /* arrays: elements; strings: bytes */
  guint32 *strings;     /* string arrays: [n] the first byte of each; its length lies in the 8 bytes before */
} OxGgufEntry;

struct _OxGguf {
  gatomicrefcount ref_count;
  guint8 *header;
  gsize header_size;
  OxGgufEntry *entries; /* by name */
  gsize n_entries;
  OxGgufTensor *tensors;
  gsize n_tensors;
};

/* Bytes of a number of @type; 0 for strings, arrays and unknown types. */
gsize ox_gguf_value_size (guint32 type);
guint64 ox_gguf_read_le (const guint8 *p, gsize n_bytes);
