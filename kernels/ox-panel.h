/* Integer panels: the packed layout that every integer linear kernel reads, on any processor.
 *
 * Rows are taken 16 at a time (a panel), so that one 512-bit register holds four consecutive weights of each of 16 outputs,
 * two 256-bit registers hold eight outputs each, and four 128-bit registers four:
 *
 *     float    row_scale[16]               a power of two that keeps d and m well inside the range of a half float
 *     for each pair of groups of 32 columns:
 *       half     dm[2][values][16]         d, m of each group; or d, m, d, m of its halves (where 16 elements share a scale)
 *       uint8_t  q[2][16 or 32 bytes · 16] quants, see below
 *
 * Everything is read in the order of memory, one stream, and whole cache lines: groups go in pairs because the scales of one
 * may be half a line. When the number of groups is odd the last pair is half empty.
 *
 * 8-bit quants: byte (step·16 + row)·4 + j of a group is element 4·step + j, step 0 … 7. 4-bit quants: the low half of byte
 * (step·16 + row)·4 + j is element 4·step + j, the high half is element 16 + 4·step + j, step 0 … 3.
 *
 *     W[row, c] = row_scale · (d · (q - zero_point) + m)
 *
 * Rows beyond the matrix in its last panel have d = m = 0.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OX_PANEL_ROWS 16

typedef enum {
  OX_PANEL_U4_G32,        /* Q4_0 */
  OX_PANEL_U4_G32_AFFINE, /* Q4_1, Q4_K */
  OX_PANEL_U4_G16,        /* Q3_K */
  OX_PANEL_U4_G16_AFFINE, /* Q2_K */
  OX_PANEL_S8_G32,        /* Q8_0, IQ4_NL, IQ4_XS: the whole range of a byte */
  OX_PANEL_U5_G32,        /* Q5_0 */
  OX_PANEL_U5_G32_AFFINE, /* Q5_1, Q5_K */
  OX_PANEL_U6_G16,        /* Q6_K */
  OX_N_PANELS,
  OX_PANEL_NONE = OX_N_PANELS,
} OxPanelKind;

typedef struct {
  const char *name;
  unsigned bits;       /* 4 or 8: the room of a quant */
  unsigned max_quant;  /* the greatest quant: tells when 16-bit sums overflow */
  unsigned zero_point; /* 0 for affine */
  unsigned group;      /* 16 or 32 elements share a scale */
  bool affine;
} OxPanelFormat;

/* One initialiser for the table in ox-pack.c and for kernels that want the facts as constants. */
#define OX_PANEL_FORMAT_U4_G32 ((OxPanelFormat) { "u4-g32", 4, 15, 8, 32, false })
#define OX_PANEL_FORMAT_U4_G32_AFFINE ((OxPanelFormat) { "u4-g32-affine", 4, 15, 0, 32, true })
#define OX_PANEL_FORMAT_U4_G16 ((OxPanelFormat) { "u4-g16", 4, 7, 4, 16, false })
#define OX_PANEL_FORMAT_U4_G16_AFFINE ((OxPanelFormat) { "u4-g16-affine", 4, 3, 0, 16, true })
#define OX_PANEL_FORMAT_S8_G32 ((OxPanelFormat) { "s8-g32", 8, 255, 128, 32, false })
#define OX_PANEL_FORMAT_U5_G32 ((OxPanelFormat) { "u5-g32", 8, 31, 16, 32, false })
#define OX_PANEL_FORMAT_U5_G32_AFFINE ((OxPanelFormat) { "u5-g32-affine", 8, 31, 0, 32, true })
#define OX_PANEL_FORMAT_U6_G16 ((OxPanelFormat) { "u6-g16", 8, 63, 32, 16, false })

/* Half floats a group of 32 columns has per row. */
static inline unsigned
ox_panel_values (OxPanelFormat f)
{
  return 32 / f.group * (f.affine ? 2 : 1);
}

/* Bytes of the quants of one group of 32 columns. */
static inline size_t
ox_panel_quants_bytes (OxPanelFormat f)
{
  return OX_PANEL_ROWS * 32 * f.bits / 8;
}

/* Bytes of the scales and minima of one group. */
static inline size_t
ox_panel_scales_bytes (OxPanelFormat f)
{
  return (size_t) ox_panel_values (f) * OX_PANEL_ROWS * 2;
}

static inline size_t
ox_panel_pair_bytes (OxPanelFormat f)
{
  return 2 * (ox_panel_quants_bytes (f) + ox_panel_scales_bytes (f));
}

/* Where the scales of group @g are, as half floats, and its quants; bytes from the beginning of the panel. */
static inline size_t
ox_panel_scales_offset (OxPanelFormat f, size_t g)
{
  return OX_PANEL_ROWS * sizeof (float) + g / 2 * ox_panel_pair_bytes (f) + g % 2 * ox_panel_scales_bytes (f);
}

static inline size_t
ox_panel_quants_offset (OxPanelFormat f, size_t g)
{
  return OX_PANEL_ROWS * sizeof (float) + g / 2 * ox_panel_pair_bytes (f) + 2 * ox_panel_scales_bytes (f) +
         g % 2 * ox_panel_quants_bytes (f);
}

static inline size_t
ox_panel_bytes (OxPanelFormat f, size_t cols)
{
  return OX_PANEL_ROWS * sizeof (float) + (cols / 32 + 1) / 2 * ox_panel_pair_bytes (f);
}

/* Float panels: F32, F16 and BF16 weights in the source's format, 16 rows interleaved. F32 and F16: element c·16 + row is W[row, c].
 * BF16: element (c/2·16 + row)·2 + c%2, so that a register holds pairs of columns, as instructions that multiply BF16 want them; a panel is
 * filled up with zeros to whole 32 columns, which are a tile of AMX. */
static inline size_t
ox_float_panel_bytes (uint32_t type, size_t cols)
{
  const size_t row = OX_PANEL_ROWS;

  return type == OX_TYPE_BF16  ? (cols + 31) / 32 * 32 * row * 2
         : type == OX_TYPE_F16 ? (cols * row * 2 + 63) / 64 * 64
                               : cols * row * 4;
}

/* The panel that weights of @type are packed in; OX_PANEL_NONE for float types. */
OxPanelKind ox_panel_kind (uint32_t type);
/* The facts of each kind, for those who do not want them as constants. */
extern const OxPanelFormat ox_panel_formats[OX_N_PANELS];
