/* Integer panels for AMX. Eight steps of a group of 32 columns are eight rows of a tile as they lie in the panel, once its quants are signed
 * bytes: a block of columns is unpacked for all activation rows.
 *
 * Scales change every 32 columns, or 16, so that is what a product of two tiles can sum up: 16 × 16 sums, half or a quarter of what the
 * instruction could do in its 16 cycles. They are stored and added to float totals just as the kernels without tiles do it, in the same
 * order, to the same bits. That is the greater part of the work: for 16 × 16 × 32 products 16 conversions, 16 multiplications and 16 fused
 * ones, 24 cycles of two units; 16 stores by the tile; and loads of 16 + 8 tile rows, 16 vectors of sums and 16 scales, 28 cycles of two.
 * So about 30 cycles where VNNI needs at least 16 · 11 / 2 = 88.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

#if defined(OX_AMX_EMULATED) || (defined(__AMX_TILE__) && defined(__AMX_INT8__) && defined(__AVX512F__))

#include "ox-amx.h"

#include "ox-quantize.h"
#include "ox-tile.h"

#define PANEL_LEVEL "amx"
/* What is unpacked at once: 8 KiB a panel, which stay in the first cache; more than one because sums of activations serve all. */
#define BLOCK_GROUPS 16
#define BLOCK_PANELS 4
/* Products whose sums wait in tiles to be stored. */
#define BATCH 4
/* Fewer activation rows are as fast without tiles, which are 16 rows whether they are used or not. */
#ifdef OX_AMX_EMULATED
#define MIN_ROWS 1
#else
#define MIN_ROWS 8
#endif

typedef struct {
  _Alignas (64) int8_t quants[BLOCK_PANELS][BLOCK_GROUPS * 32 * OX_PANEL_ROWS];
  _Alignas (64) int32_t products[2][BATCH][OX_TILE_ROWS * OX_PANEL_ROWS];
  float x_sums[BLOCK_GROUPS * 2][OX_TILE_ROWS]; /* of activations, for weights with a minimum */
  OxBlockQ8 x[OX_TILE_ROWS * BLOCK_GROUPS];     /* activation rows filled up to a whole tile */
} Scratch;

/* Some groups of columns of a tile of activation rows. */
typedef struct {
  const OxBlockQ8 *x;
  size_t stride; /* blocks from row to row */
  size_t rows;   /* of which results are wanted */
  size_t first, groups, all_groups;
} Block;

/* Where 32 columns share a scale, and where 16 do. Tiles 0 to 3: sums; 4 and 5: activations; 6 and 7: weights. */
static const OxTileConfig config_32 = {
  .palette = 1,
  .row_bytes = { 64, 64, 64, 64, 32, 32, 64, 64 },
  .rows = { 16, 16, 16, 16, 16, 16, 8, 8 },
};
static const OxTileConfig config_16 = {
  .palette = 1,
  .row_bytes = { 64, 64, 64, 64, 16, 16, 64, 64 },
  .rows = { 16, 16, 16, 16, 16, 16, 4, 4 },
};

/* @groups groups from @g on, without their zero point; byte (step·16 + row)·4 + j of a group is element 4·step + j. */
ALWAYS_INLINE void
unpack_groups (const OxPanelFormat f, const uint8_t *panel, size_t g, size_t groups, int8_t *dst)
{
  const size_t half = 16 * OX_PANEL_ROWS;

  for (size_t end = g + groups; g < end; g++, dst += 2 * half) {
    const uint8_t *q = panel + ox_panel_quants_offset (f, g);

    if (f.bits == 8)
      for (size_t i = 0; i < 2 * half; i++)
        dst[i] = (int8_t) (q[i] - f.zero_point);
    else
      for (size_t i = 0; i < half; i++) {
        dst[i] = (int8_t) ((q[i] & 15) - f.zero_point);
        dst[half + i] = (int8_t) ((q[i] >> 4) - f.zero_point);
      }
  }
}

/* Sums of the products of parts [part, part + n), n ≤ BATCH; a part is the columns that share a scale. */
ALWAYS_INLINE void
multiply_batch (const OxPanelFormat f,
                const Block *b,
                const int8_t *quants,
                size_t part,
                size_t n,
                int32_t products[BATCH][OX_TILE_ROWS * OX_PANEL_ROWS])
{
  const size_t parts = 32 / f.group;

#define MULTIPLY(C, A, B)                                                                                              \
  if (n > C) {                                                                                                         \
    size_t at = part + C;                                                                                              \
    OX_TILE_ZERO (C);                                                                                                  \
    OX_TILE_LOAD (A, b->x[at / parts].q + at % parts * 16, b->stride * sizeof (OxBlockQ8));                            \
    OX_TILE_LOAD (B, quants + at * f.group * OX_PANEL_ROWS, OX_TILE_BYTES);                                            \
    OX_TILE_DOT_S8 (C, A, B);                                                                                          \
  }
#define STORE(C)                                                                                                       \
  if (n > C)                                                                                                           \
    OX_TILE_STORE (C, products[C], OX_TILE_BYTES);

  MULTIPLY (0, 4, 6)
  MULTIPLY (1, 5, 7)
  MULTIPLY (2, 4, 6)
  MULTIPLY (3, 5, 7)
  STORE (0)
  STORE (1)
  STORE (2)
  STORE (3)
#undef MULTIPLY
#undef STORE
}

ALWAYS_INLINE void
add_batch (const OxPanelFormat f,
           const Block *b,
           const uint8_t *panel,
           const float x_sums[][OX_TILE_ROWS],
           size_t part,
           size_t n,
           int32_t products[BATCH][OX_TILE_ROWS * OX_PANEL_ROWS],
           VF totals[OX_TILE_ROWS])
{
  const size_t parts = 32 / f.group, part_bytes = (f.affine ? 2 : 1) * OX_PANEL_ROWS * sizeof (uint16_t);

  for (size_t j = 0; j < n; j++) {
    size_t at = part + j, g = at / parts;
    const uint8_t *scales = panel + ox_panel_scales_offset (f, b->first + g) + at % parts * part_bytes;
    const VF d = vf_load_f16 (scales), min = f.affine ? vf_load_f16 (scales + OX_PANEL_ROWS * sizeof (uint16_t)) : d;

    UNROLL_ROWS
    for (size_t i = 0; i < OX_TILE_ROWS; i++) {
      VF product = vf_mul (vf_load_i32 (products[j] + i * OX_PANEL_ROWS), vf_set1 (b->x[i * b->stride + g].scale));

      totals[i] = vf_fma (product, d, totals[i]);
      if (f.affine)
        totals[i] = vf_fma (min, vf_set1 (x_sums[at][i]), totals[i]);
    }
  }
}

/* One panel, of which @rows outputs are stored. While a batch is added up the next is being multiplied. */
ALWAYS_INLINE void
panel_block (const OxPanelFormat f,
             const Block *b,
             const uint8_t *panel,
             const int8_t *quants,
             Scratch *scratch,
             float *y,
             size_t y_stride,
             size_t rows)
{
  const bool complete = b->first + b->groups == b->all_groups, whole = rows >= OX_PANEL_ROWS;
  const size_t parts = b->groups * (32 / f.group);
  const VF one = vf_set1 (1), row_scale = complete ? vf_load ((const float *) (const void *) panel) : one;
  VF totals[OX_TILE_ROWS];
  size_t n = parts < BATCH ? parts : BATCH, next;

  multiply_batch (f, b, quants, 0, n, scratch->products[0]);
  UNROLL_ROWS
  for (size_t i = 0; i < OX_TILE_ROWS; i++) {
    const float *from = y + (i < b->rows ? i : 0) * y_stride;

    totals[i] = b->first == 0 ? vf_set1 (0) : whole ? vf_load (from) : vf_load_n (from, rows);
  }
  for (size_t part = 0, half = 0; part < parts; part += n, n = next, half ^= 1) {
    next = parts - part - n < BATCH ? parts - part - n : BATCH;
    multiply_batch (f, b, quants, part + n, next, scratch->products[half ^ 1]);
    add_batch (f, b, panel, scratch->x_sums, part, n, scratch->products[half], totals);
  }
  UNROLL_ROWS
  for (size_t i = 0; i < OX_TILE_ROWS; i++) {
    VF total = vf_mul (totals[i], row_scale);

    if (i < b->rows && whole)
      vf_store (y + i * y_stride, total);
    else if (i < b->rows)
      vf_store_n (y + i * y_stride, total, rows);
  }
}

/* Makes sure that there are 16 rows to load, and sums up activations. */
ALWAYS_INLINE void
prepare_rows (const OxPanelFormat f, Block *b, Scratch *scratch)
{
  if (b->rows < OX_TILE_ROWS) {
    memset (scratch->x, 0, sizeof scratch->x);
    for (size_t i = 0; i < b->rows; i++)
      memcpy (scratch->x + i * BLOCK_GROUPS, b->x + i * b->stride, b->groups * sizeof (OxBlockQ8));
    b->x = scratch->x;
    b->stride = BLOCK_GROUPS;
  }
  for (size_t g = 0; g < b->groups && f.affine; g++)
    for (size_t i = 0; i < OX_TILE_ROWS; i++) {
      const OxBlockQ8 *block = &b->x[i * b->stride + g];

      if (f.group == 32) {
        scratch->x_sums[g][i] = block->scale * (float) (block->sum[0] + block->sum[1]);
      } else {
        scratch->x_sums[g * 2][i] = block->scale * (float) block->sum[0];
        scratch->x_sums[g * 2 + 1][i] = block->scale * (float) block->sum[1];
      }
    }
}

ALWAYS_INLINE void
panel_matmul (const OxPanelFormat f,
              const OxPackedMatrix *w,
              const void *x,
              size_t m,
              float *y,
              size_t y_stride,
              size_t row_begin,
              size_t row_end)
{
  const size_t groups = w->cols / 32, bytes = ox_panel_bytes (f, w->cols);
  Scratch scratch;

  if (m < MIN_ROWS) {
    ox_panel_avx512_vnni.integer[ox_panel_kind (w->type)].matmul (w, x, m, y, y_stride, row_begin, row_end);
    return;
  }
  OX_TILE_CONFIGURE (f.group == 32 ? &config_32 : &config_16);
  for (size_t row = row_begin; row < row_end; row += BLOCK_PANELS * OX_PANEL_ROWS) {
    const uint8_t *panel = (const uint8_t *) w->data + row / OX_PANEL_ROWS * bytes;
    size_t panels = (row_end - row + OX_PANEL_ROWS - 1) / OX_PANEL_ROWS;

    panels = panels < BLOCK_PANELS ? panels : BLOCK_PANELS;
    for (size_t g = 0; g < groups; g += BLOCK_GROUPS) {
      size_t n = groups - g < BLOCK_GROUPS ? groups - g : BLOCK_GROUPS;

      for (size_t p = 0; p < panels; p++)
        unpack_groups (f, panel + p * bytes, g, n, scratch.quants[p]);
      for (size_t i = 0; i < m; i += OX_TILE_ROWS) {
        Block b = {
          .x = (const OxBlockQ8 *) x + i * groups + g,
          .stride = groups,
          .rows = m - i < OX_TILE_ROWS ? m - i : OX_TILE_ROWS,
          .first = g,
          .groups = n,
          .all_groups = groups,
        };

        prepare_rows (f, &b, &scratch);
        for (size_t p = 0; p < panels; p++)
          panel_block (f, &b, panel + p * bytes, scratch.quants[p], &scratch,
                       y + i * y_stride + row + p * OX_PANEL_ROWS, y_stride, row_end - row - p * OX_PANEL_ROWS);
      }
    }
  }
  OX_TILE_RELEASE ();
}

#include "ox-panel-kernels.h"

const OxLinearSet OX_AMX_NAME (ox_panel_amx) = { .integer = panel_kernels };

#else

const OxLinearSet ox_panel_amx = { NULL, NULL, NULL };

#endif
