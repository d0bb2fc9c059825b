/* Convolutions for AMX: 16 output pixels of a row × 16 output channels are a tile, and 32 input channels that lie side by side in
 * the gathered input are a step of it; see ox-conv-template.h.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

#include "ox-conv.h"

#if defined(OX_AMX_EMULATED) || (defined(__AMX_TILE__) && defined(__AMX_BF16__) && defined(__AVX512BF16__))

#include "ox-amx.h"

#include "ox-attention-convert.h"

/* Four tiles are sums: two groups of 16 pixels × two of 16 channels. */
#define CONV_TILE_VECTORS 2
#define CONV_TILE_PIXELS OX_TILE_ROWS
#define CONV_STEP_MULTIPLE OX_TILE_ROWS
#define CONV_PAIRS
#define CONV_MULTIPLY multiply_1, multiply_2

static inline void
vf_store_bf16_n (uint16_t *p, VF v, size_t n)
{
#ifdef OX_AMX_EMULATED
  for (size_t i = 0; i < n; i++)
    p[i] = ox_f32_to_bf16 (v.lane[i]);
#else
  _mm256_mask_storeu_epi16 (p, (__mmask16) ((1u << n) - 1), (__m256i) _mm512_cvtneps_pbh (v));
#endif
}

#include "ox-conv-template.h"

#define TILE_FLOATS (OX_TILE_ROWS * VF_LANES)

/* 16 pixels of a row, of which @n are wanted: their input, where their unfinished sums are ([vectors][16][16]), and which the
 * first is. */
typedef struct {
  const float *input;
  float *sums;
  size_t pixel, n;
} Group;

static inline Group
group_at (const Part *part, size_t columns, size_t i, const size_t V)
{
  const OxConv *conv = part->conv;
  const OxConvItem *it = part->it;
  size_t in_row = (it->width + OX_TILE_ROWS - 1) / OX_TILE_ROWS, y = i / in_row, x = i % in_row * OX_TILE_ROWS;

  return (Group) { part->input + (y * columns + x) * conv->stride * part->steps, part->sums + i * V * TILE_FLOATS,
                   (it->image * conv->out_height + it->y + y) * conv->out_width + it->x + x,
                   it->width - x < OX_TILE_ROWS ? it->width - x : OX_TILE_ROWS };
}

/* @G groups × @V vectors. Tiles 0 to 3: sums; 4 and 5: input; 6 and 7: weights. @ahead: where to begin to ask for the next
 * weights. */
ALWAYS_INLINE void
multiply_groups (
  const Part *part, const Group groups[2], size_t columns, const uint8_t *ahead, const size_t G, const size_t V)
{
  const OxConvShape *shape = &part->conv->w->shape;
  const size_t stride = part->conv->stride * part->steps * sizeof (float), w_stride = V * OX_TILE_BYTES;
  const size_t tiles = shape->kernel_width * part->steps / OX_TILE_ROWS;
  const uint8_t *w = part->w;
  float *sums0 = groups[0].sums, *sums1 = groups[1].sums;

  if (part->first) {
    OX_TILE_ZERO (0);
    if (V > 1)
      OX_TILE_ZERO (1);
    if (G > 1)
      OX_TILE_ZERO (2);
    if (G > 1 && V > 1)
      OX_TILE_ZERO (3);
  } else {
    OX_TILE_LOAD (0, sums0, OX_TILE_BYTES);
    if (V > 1)
      OX_TILE_LOAD (1, sums0 + TILE_FLOATS, OX_TILE_BYTES);
    if (G > 1)
      OX_TILE_LOAD (2, sums1, OX_TILE_BYTES);
    if (G > 1 && V > 1)
      OX_TILE_LOAD (3, sums1 + TILE_FLOATS, OX_TILE_BYTES);
  }
  for (size_t row = 0; row < shape->kernel_height; row++)
    for (size_t t = 0; t < tiles; t++, w += OX_TILE_ROWS * w_stride, ahead += 8 * LINE_BYTES) {
      const size_t at = row * columns * part->steps + t * OX_TILE_ROWS;

      prefetch_lines (ahead, 0, 8 * LINE_BYTES);
      OX_TILE_LOAD (6, w, w_stride);
      OX_TILE_LOAD (4, groups[0].input + at, stride);
      OX_TILE_DOT_BF16 (0, 4, 6);
      if (V > 1) {
        OX_TILE_LOAD (7, w + OX_TILE_BYTES, w_stride);
        OX_TILE_DOT_BF16 (1, 4, 7);
      }
      if (G > 1) {
        OX_TILE_LOAD (5, groups[1].input + at, stride);
        OX_TILE_DOT_BF16 (2, 5, 6);
      }
      if (G > 1 && V > 1)
        OX_TILE_DOT_BF16 (3, 5, 7);
    }
  OX_TILE_STORE (0, sums0, OX_TILE_BYTES);
  if (V > 1)
    OX_TILE_STORE (1, sums0 + TILE_FLOATS, OX_TILE_BYTES);
  if (G > 1)
    OX_TILE_STORE (2, sums1, OX_TILE_BYTES);
  if (G > 1 && V > 1)
    OX_TILE_STORE (3, sums1 + TILE_FLOATS, OX_TILE_BYTES);
}

/* Sums, bias and residual to y. */
ALWAYS_INLINE void
finish_group (const Part *part, const Group *group, const size_t V)
{
  const OxConv *conv = part->conv;
  const size_t left = conv->w->shape.out_channels - part->channel;

  for (size_t v = 0; v < V; v++) {
    const size_t at = v * VF_LANES, n = left - at < VF_LANES ? left - at : VF_LANES;
    VF bias = vf_set1 (0);

    if (conv->bias != NULL)
      bias = vf_load_n (conv->bias + part->it->image * conv->bias_stride + part->channel + at, n);
    for (size_t i = 0; i < group->n; i++) {
      size_t pixel = group->pixel + i;
      VF sum = vf_add (vf_load (group->sums + v * TILE_FLOATS + i * VF_LANES), bias);

      if (conv->residual != NULL)
        sum = vf_add (sum, vf_load_n (conv->residual + pixel * conv->residual_stride + part->channel + at, n));
      vf_store_n (conv->y + pixel * conv->y_stride + part->channel + at, sum, n);
    }
  }
}

ALWAYS_INLINE void
multiply_tiles (const Part *part, const size_t V)
{
  static const OxTileConfig config = {
    .palette = 1,
    .row_bytes = { 64, 64, 64, 64, 64, 64, 64, 64 },
    .rows = { 16, 16, 16, 16, 16, 16, 16, 16 },
  };
  const OxConvShape *shape = &part->conv->w->shape;
  const size_t columns = ox_conv_reach (part->it->width, part->conv->stride, shape->kernel_width);
  const size_t n = ox_conv_computed (part->conv->w->kernel, part->it->height, part->it->width) / OX_TILE_ROWS;
  const size_t all_tiles = shape->kernel_height * shape->kernel_width * part->steps / OX_TILE_ROWS;
  const size_t all_bytes = all_tiles * OX_TILE_ROWS * V * OX_TILE_BYTES;

  OX_TILE_CONFIGURE (&config);
  for (size_t i = 0; i < n; i += 2) {
    const Group groups[2] = { group_at (part, columns, i, V), group_at (part, columns, i + 1 < n ? i + 1 : i, V) };
    const size_t asked = i / 2 * all_tiles * 8 * LINE_BYTES;
    const uint8_t *ahead = asked < all_bytes ? part->ahead + asked : part->w;

    if (i + 1 < n)
      multiply_groups (part, groups, columns, ahead, 2, V);
    else
      multiply_groups (part, groups, columns, ahead, 1, V);
  }
  OX_TILE_RELEASE ();
  for (size_t i = 0; i < n && part->last; i++) {
    const Group group = group_at (part, columns, i, V);
    finish_group (part, &group, V);
  }
}

static void
multiply_1 (const Part *part)
{
  multiply_tiles (part, 1);
}

static void
multiply_2 (const Part *part)
{
  multiply_tiles (part, 2);
}

CONV_FUNCTIONS (PAIRS)

const OxConvKernel OX_AMX_NAME (ox_conv_amx) = CONV_ENTRY (PAIRS, "conv-bf16-amx");

#else

const OxConvKernel ox_conv_amx = { .name = NULL };

#endif
