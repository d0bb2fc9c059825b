/* Element types of tensors in files: OxType and OX_DTYPE_* under one roof.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <glib.h>

/* What a function here answers for a type that we cannot read. */
#define OX_DTYPE_UNKNOWN G_MAXUINT32

/* From GGUF's tensor type number. */
guint32 ox_dtype_from_gguf (guint32 type);
/* From the name in a safetensors header. @known: whether it is a name of the format at all. */
guint32 ox_dtype_from_safetensors (const char *name, gboolean *known);
/* "BF16", "Q4_K", "I64"; "unknown". */
const char *ox_dtype_name (guint32 dtype);
/* Bytes of a row of @n elements; FALSE when @n is not a whole number of blocks, on overflow, or for an unknown type. */
gboolean ox_dtype_row_bytes (guint32 dtype, guint64 n, guint64 *bytes);
/* @n elements as float32. For block formats @n is a whole number of blocks. */
void ox_dtype_to_f32 (guint32 dtype, const void *src, float *dst, gsize n);
