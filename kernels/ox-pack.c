/* Packing of weight matrices: the copy for exact precision and integer panels for fast precision.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

#include <math.h>

#include "ox-decode.h"

const OxPanelFormat ox_panel_formats[OX_N_PANELS] = {
  [OX_PANEL_U4_G32] = OX_PANEL_FORMAT_U4_G32,
  [OX_PANEL_U4_G32_AFFINE] = OX_PANEL_FORMAT_U4_G32_AFFINE,
  [OX_PANEL_U4_G16] = OX_PANEL_FORMAT_U4_G16,
  [OX_PANEL_U4_G16_AFFINE] = OX_PANEL_FORMAT_U4_G16_AFFINE,
  [OX_PANEL_S8_G32] = OX_PANEL_FORMAT_S8_G32,
  [OX_PANEL_U5_G32] = OX_PANEL_FORMAT_U5_G32,
  [OX_PANEL_U5_G32_AFFINE] = OX_PANEL_FORMAT_U5_G32_AFFINE,
  [OX_PANEL_U6_G16] = OX_PANEL_FORMAT_U6_G16,
};

OxPanelKind
ox_panel_kind (uint32_t type)
{
  switch (type) {
  case OX_TYPE_Q4_0:
    return OX_PANEL_U4_G32;
  case OX_TYPE_Q4_1:
  case OX_TYPE_Q4_K:
    return OX_PANEL_U4_G32_AFFINE;
  case OX_TYPE_Q3_K:
    return OX_PANEL_U4_G16;
  case OX_TYPE_Q2_K:
    return OX_PANEL_U4_G16_AFFINE;
  case OX_TYPE_Q8_0:
  case OX_TYPE_IQ4_NL:
  case OX_TYPE_IQ4_XS:
    return OX_PANEL_S8_G32;
  case OX_TYPE_Q5_0:
    return OX_PANEL_U5_G32;
  case OX_TYPE_Q5_1:
  case OX_TYPE_Q5_K:
    return OX_PANEL_U5_G32_AFFINE;
  case OX_TYPE_Q6_K:
    return OX_PANEL_U6_G16;
  default:
    return OX_PANEL_NONE;
  }
}

/* ---- Exact: the source as it is ---------------------------------------------------------------------------------- */

bool
ox_exact_packed_bytes (uint32_t type, size_t rows, size_t cols, size_t *bytes)
{
  uint64_t row_bytes;

  return ox_type_row_bytes (type, cols, &row_bytes) && !__builtin_mul_overflow (row_bytes, (uint64_t) rows, bytes);
}

void
ox_exact_pack (OxPackedMatrix *w, const void *src, size_t row_begin, size_t row_end)
{
  uint64_t row_bytes;

  if (ox_type_row_bytes (w->type, w->cols, &row_bytes))
    memcpy ((uint8_t *) w->data + row_begin * row_bytes, src, (row_end - row_begin) * row_bytes);
}

/* ---- Integer panels ----------------------------------------------------------------------------------------------- */

/* Panels times bytes of a panel, with room to spare so that no sum inside a panel can overflow either. */
static bool
panels_bytes (
  size_t rows, size_t cols, size_t (*panel_bytes) (const void *format, size_t cols), const void *format, size_t *bytes)
{
  size_t panels = rows / OX_PANEL_ROWS + (rows % OX_PANEL_ROWS != 0);

  if (cols > SIZE_MAX / 256)
    return false;
  return !__builtin_mul_overflow (panels, panel_bytes (format, cols), bytes);
}

static size_t
integer_panel_bytes (const void *format, size_t cols)
{
  return ox_panel_bytes (*(const OxPanelFormat *) format, cols);
}

bool
ox_panel_packed_bytes (uint32_t type, size_t rows, size_t cols, size_t *bytes)
{
  OxPanelKind kind = ox_panel_kind (type);
  uint64_t row_bytes;

  if (kind == OX_PANEL_NONE || !ox_type_row_bytes (type, cols, &row_bytes))
    return false;
  return panels_bytes (rows, cols, integer_panel_bytes, &ox_panel_formats[kind], bytes);
}

/* The power of two that brings the largest scale or minimum of a row just under 2^15, so that half floats neither overflow
 * nor lose bits in products such as Q4_K's d · scale. */
static float
row_scale (uint32_t type, OxPanelFormat f, const uint8_t *row, unsigned block_bytes, size_t n_blocks, unsigned groups)
{
  float largest = 0;
  int exponent;

  for (size_t b = 0; b < n_blocks; b++) {
    float d[16], m[16];
    ox_decode_scales (type, row + b * block_bytes, d, m);
    for (unsigned g = 0; g < groups; g++) {
      largest = fmaxf (largest, fabsf (d[g]));
      if (f.affine)
        largest = fmaxf (largest, fabsf (m[g]));
    }
  }
  if (!(largest > 0) || isinf (largest))
    return 1;
  frexpf (largest, &exponent);
  return ldexpf (1, exponent - 15);
}

/* Spreads the quants of 32 columns of one row. @q: 32 quants; @dst: the row's place in step 0 of the group. */
static inline void
put_quants (uint8_t *restrict dst, const uint8_t *restrict q, unsigned bits)
{
  if (bits == 4) {
    for (unsigned step = 0; step < 4; step++)
      for (unsigned j = 0; j < 4; j++)
        dst[step * 64 + j] = (uint8_t) (q[step * 4 + j] | q[16 + step * 4 + j] << 4);
  } else {
    for (unsigned step = 0; step < 8; step++)
      memcpy (dst + step * 64, q + step * 4, 4);
  }
}

static void
pack_row (OxPanelFormat f,
          uint32_t type,
          const OxTypeInfo *info,
          const uint8_t *row,
          uint8_t *panel,
          unsigned lane,
          size_t cols)
{
  size_t n_blocks = cols / info->block_elements;
  unsigned groups = info->block_elements / f.group, per_32 = 32 / f.group, stride = f.affine ? 2 : 1;
  float scale = row_scale (type, f, row, info->block_bytes, n_blocks, groups);
  size_t g = 0;

  ((float *) (void *) panel)[lane] = scale;
  for (size_t b = 0; b < n_blocks; b++) {
    const uint8_t *block = row + b * info->block_bytes;
    uint8_t q[OX_BLOCK_MAX];
    float d[16], m[16];

    ox_decode_scales (type, block, d, m);
    ox_decode_quants (type, block, q);
    for (unsigned i = 0; i < info->block_elements / 32; i++, g++) {
      uint16_t *dm = (uint16_t *) (void *) (panel + ox_panel_scales_offset (f, g)) + lane;

      put_quants (panel + ox_panel_quants_offset (f, g) + lane * 4, q + i * 32, f.bits);
      for (unsigned h = 0; h < per_32; h++) {
        dm[h * stride * OX_PANEL_ROWS] = ox_f32_to_f16 (d[i * per_32 + h] / scale);
        if (f.affine)
          dm[(h * 2 + 1) * OX_PANEL_ROWS] = ox_f32_to_f16 (m[i * per_32 + h] / scale);
      }
    }
  }
}

void
ox_panel_pack (OxPackedMatrix *w, const void *src, size_t row_begin, size_t row_end)
{
  const OxTypeInfo *info = ox_type_info (w->type);
  OxPanelFormat f = ox_panel_formats[ox_panel_kind (w->type)];
  size_t bytes = ox_panel_bytes (f, w->cols);
  size_t row_bytes = w->cols / info->block_elements * info->block_bytes;

  for (size_t r = row_begin; r < row_end; r += OX_PANEL_ROWS) {
    uint8_t *panel = (uint8_t *) w->data + r / OX_PANEL_ROWS * bytes;
    unsigned n = (unsigned) (row_end - r < OX_PANEL_ROWS ? row_end - r : OX_PANEL_ROWS);

    if (n < OX_PANEL_ROWS)
      memset (panel, 0, bytes);
    for (unsigned lane = 0; lane < n; lane++)
      pack_row (f, w->type, info, (const uint8_t *) src + (r - row_begin + lane) * row_bytes, panel, lane, w->cols);
  }
}
