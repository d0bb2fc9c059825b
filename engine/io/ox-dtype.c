/* Element types of tensors in files: names, sizes, conversion.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "io/ox-dtype.h"

#include <math.h>
#include <string.h>

#include "io/ox-weights.h"

/* Types beyond OxType. */
static const struct {
  guint32 dtype;
  const char *name;
  guint size;
  guint32 gguf; /* G_MAXUINT32: GGUF has none */
} plain_types[] = {
  { OX_DTYPE_I8, "I8", 1, 24 },
  { OX_DTYPE_I16, "I16", 2, 25 },
  { OX_DTYPE_I32, "I32", 4, 26 },
  { OX_DTYPE_I64, "I64", 8, 27 },
  { OX_DTYPE_F64, "F64", 8, 28 },
  { OX_DTYPE_U8, "U8", 1, G_MAXUINT32 },
  { OX_DTYPE_BOOL, "BOOL", 1, G_MAXUINT32 },
};

/* Names that the safetensors format defines and that we have no use for. */
static const char *const unread_types[] = { "U16",         "U32",         "U64",     "F8_E4M3", "F8_E5M2", "F8_E8M0",
                                            "F8_E4M3FNUZ", "F8_E5M2FNUZ", "F6_E2M3", "F6_E3M2", "F4",      "C64" };

guint32
ox_dtype_from_gguf (guint32 type)
{
  for (guint i = 0; i < G_N_ELEMENTS (plain_types); i++) {
    if (type == plain_types[i].gguf && type != G_MAXUINT32)
      return plain_types[i].dtype;
  }
  return type < OX_DTYPE_I64 && ox_type_info (type) ? type : OX_DTYPE_UNKNOWN;
}

guint32
ox_dtype_from_safetensors (const char *name, gboolean *known)
{
  *known = TRUE;
  if (strcmp (name, "F32") == 0)
    return OX_TYPE_F32;
  if (strcmp (name, "F16") == 0)
    return OX_TYPE_F16;
  if (strcmp (name, "BF16") == 0)
    return OX_TYPE_BF16;
  for (guint i = 0; i < G_N_ELEMENTS (plain_types); i++) {
    if (strcmp (name, plain_types[i].name) == 0)
      return plain_types[i].dtype;
  }
  *known = FALSE;
  for (guint i = 0; i < G_N_ELEMENTS (unread_types); i++) {
    if (strcmp (name, unread_types[i]) == 0)
      *known = TRUE;
  }
  return OX_DTYPE_UNKNOWN;
}

const char *
ox_dtype_name (guint32 dtype)
{
  const OxTypeInfo *info;

  for (guint i = 0; i < G_N_ELEMENTS (plain_types); i++) {
    if (dtype == plain_types[i].dtype)
      return plain_types[i].name;
  }
  info = ox_type_info (dtype);
  return info ? info->name : "unknown";
}

gboolean
ox_dtype_row_bytes (guint32 dtype, guint64 n, guint64 *bytes)
{
  for (guint i = 0; i < G_N_ELEMENTS (plain_types); i++) {
    if (dtype == plain_types[i].dtype)
      return g_uint64_checked_mul (bytes, n, plain_types[i].size);
  }
  if (!ox_type_info (dtype))
    return FALSE;
  if (n == 0) {
    *bytes = 0;
    return TRUE;
  }
  return ox_type_row_bytes (dtype, n, bytes);
}

/* Elements may lie at any address, so each is copied out. */
#define CONVERT(type)                                                                                                  \
  for (gsize i = 0; i < n; i++) {                                                                                      \
    type value;                                                                                                        \
    memcpy (&value, p + i * sizeof value, sizeof value);                                                               \
    dst[i] = (float) value;                                                                                            \
  }                                                                                                                    \
  break

void
ox_dtype_to_f32 (guint32 dtype, const void *src, float *dst, gsize n)
{
  const guint8 *p = src;

  switch (dtype) {
  case OX_DTYPE_I8:
    CONVERT (gint8);
  case OX_DTYPE_I16:
    CONVERT (gint16);
  case OX_DTYPE_I32:
    CONVERT (gint32);
  case OX_DTYPE_I64:
    CONVERT (gint64);
  case OX_DTYPE_U8:
  case OX_DTYPE_BOOL:
    CONVERT (guint8);
  case OX_DTYPE_F64:
    for (gsize i = 0; i < n; i++) {
      double value;

      memcpy (&value, p + i * sizeof value, sizeof value);
      /* A double beyond float's range becomes an infinity, not undefined behaviour. */
      dst[i] = value > G_MAXFLOAT ? INFINITY : value < -G_MAXFLOAT ? -INFINITY : (float) value;
    }
    break;
  default:
    ox_kernels ()->dequantize (dtype, src, dst, n);
    break;
  }
}
