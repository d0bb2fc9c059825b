/* Convolutions, written once over the vectors of ox-simd-*.h; see ox-conv.h. The including file has included one of those, and
 * defined CONV_TILE_VECTORS and CONV_TILE_PIXELS: the sums that stay in registers, vectors of output channels × output pixels.
 * For pairs of bf16 it has defined CONV_PAIRS, too, and
 *   vf_dot_bf16 (a, b, sum)      sum + the products of both bf16 numbers in each lane of a and b (not with CONV_MULTIPLY)
 *   vf_store_bf16_n (p, v, n)    the first n ≤ VF_LANES lanes rounded to nearest, ties to even
 * Where it multiplies in its own way, it has defined CONV_MULTIPLY as the names of its functions, for panels of 1, 2 … vectors,
 * and CONV_STEP_MULTIPLE.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <string.h>

#include "ox-attention-convert.h"
#include "ox-blocks.h"
#include "ox-conv-layout.h"
#include "ox-exp.h"
#include "ox-internal.h"
#include "ox-quantize.h"
#include "ox-tile.h"

/* How weights lie in a step, and with them what the gathered input is. */
enum {
  KIND_F32, /* all three: weights of their type, input in float32 */
  KIND_F16,
  KIND_BF16,
  KIND_PAIRS /* pairs of bf16, both */
};

#define PANEL_CHANNELS (CONV_TILE_VECTORS * VF_LANES)
#define KIND_STEP_CHANNELS(KIND) ((KIND) == KIND_PAIRS ? 2 : 1)
#define KIND_WEIGHT_BYTES(KIND) ((KIND) == KIND_F32 || (KIND) == KIND_PAIRS ? 4 : 2)

#ifndef CONV_STEP_MULTIPLE
#define CONV_STEP_MULTIPLE 1
#endif

/* ---- Packing: [panel][block][tap][step][output channel of the panel] ---------------------------------------------------- */

/* Vectors of output channels in panel @p of @out channels. */
static inline size_t
panel_vectors (size_t out, size_t p)
{
  size_t rest = (out - p * PANEL_CHANNELS + VF_LANES - 1) / VF_LANES;

  return rest < CONV_TILE_VECTORS ? rest : CONV_TILE_VECTORS;
}

static bool
packed_bytes (const int kind, const OxConvShape *shape, size_t *bytes)
{
  size_t n = shape->in_channels, lanes = VF_LANES;

  if (n == 0 || shape->out_channels == 0 || shape->kernel_height == 0 || shape->kernel_width == 0)
    return false;
  n = ((n - 1) / KIND_STEP_CHANNELS (kind) / CONV_STEP_MULTIPLE + 1) * CONV_STEP_MULTIPLE;
  lanes *= (shape->out_channels - 1) / VF_LANES + 1;
  if (__builtin_mul_overflow (n, shape->kernel_height, &n) || __builtin_mul_overflow (n, shape->kernel_width, &n) ||
      __builtin_mul_overflow (n, lanes, &n) || __builtin_mul_overflow (n, KIND_WEIGHT_BYTES (kind), &n) ||
      n > PTRDIFF_MAX)
    return false;
  *bytes = n;
  return true;
}

/* Weights that are converted at a time. */
#define PACK_CHUNK 512

/* @n elements of @type from element @first on. */
static void
expand (uint32_t type, const void *src, size_t first, size_t n, float dst[PACK_CHUNK])
{
  const uint8_t *from = (const uint8_t *) src + first * (type == OX_TYPE_F32 ? 4 : 2);
  size_t i = 0;

  if (type == OX_TYPE_F32) {
    memcpy (dst, from, n * sizeof (float));
    return;
  }
  for (; i + VF_LANES <= n; i += VF_LANES)
    vf_store (dst + i, type == OX_TYPE_F16 ? vf_load_f16 (from + 2 * i) : vf_load_bf16 (from + 2 * i));
  for (; i < n; i++) {
    uint16_t half = ox_u16 (((const OxU16 *) from)[i]);
    dst[i] = type == OX_TYPE_F16 ? ox_f16_to_f32 (half) : ox_bf16_to_f32 (half);
  }
}

ALWAYS_INLINE void
put_weight (const int kind, uint8_t *dst, size_t i, float value)
{
  uint16_t half;

  if (kind == KIND_F32) {
    memcpy (dst + i * 4, &value, 4);
    return;
  }
  half = kind == KIND_F16 ? ox_f32_to_f16 (value) : ox_f32_to_bf16 (value);
  memcpy (dst + i * 2, &half, 2);
}

/* One output channel, lane @lane of @width, of a block that begins with channel @first. @row: its [in_channels, taps]. */
ALWAYS_INLINE void
pack_row (const int kind,
          const OxPackedConv *w,
          const void *src,
          size_t row,
          size_t first,
          size_t channels,
          size_t steps,
          size_t taps,
          uint8_t *dst,
          size_t lane,
          size_t width)
{
  const size_t pair = KIND_STEP_CHANNELS (kind);
  size_t tap = 0, c = 0, n;

  for (size_t i = 0; i < channels * taps; i += n) {
    float values[PACK_CHUNK];

    n = channels * taps - i < PACK_CHUNK ? channels * taps - i : PACK_CHUNK;
    expand (w->type, src, (row * w->shape.in_channels + first) * taps + i, n, values);
    for (size_t j = 0; j < n; j++) {
      put_weight (kind, dst, ((tap * steps + c / pair) * width + lane) * pair + c % pair, values[j]);
      if (++tap == taps) {
        tap = 0;
        c++;
      }
    }
  }
}

ALWAYS_INLINE void
pack (const int kind, OxPackedConv *w, const void *src, size_t begin, size_t end)
{
  const OxConvLayout layout = ox_conv_layout (w->kernel, &w->shape);
  const size_t pair = KIND_STEP_CHANNELS (kind), bytes = KIND_WEIGHT_BYTES (kind);

  for (size_t o = begin; o < end; o += PANEL_CHANNELS) {
    size_t width = panel_vectors (w->shape.out_channels, o / PANEL_CHANNELS) * VF_LANES;
    size_t rows = end - o < PANEL_CHANNELS ? end - o : PANEL_CHANNELS;
    uint8_t *dst = (uint8_t *) w->data + o / PANEL_CHANNELS * ox_conv_panel_bytes (w->kernel, &layout);

    if (rows < width || w->shape.in_channels % (pair * CONV_STEP_MULTIPLE) != 0)
      memset (dst, 0, layout.taps * layout.steps * width * bytes);
    for (size_t b = 0; b < layout.n_blocks; b++) {
      size_t steps = ox_conv_block_steps (&layout, b), first = b * layout.block_steps * pair;
      size_t channels = w->shape.in_channels - first;

      channels = channels < steps * pair ? channels : steps * pair;
      for (size_t r = 0; r < rows; r++)
        pack_row (kind, w, src, o - begin + r, first, channels, steps, layout.taps, dst, r, width);
      dst += layout.taps * steps * width * bytes;
    }
  }
}

/* ---- Gathering ------------------------------------------------------------------------------------------------------------ */

ALWAYS_INLINE VF
activate (VF v, VF scale, VF shift, const bool norm, const bool silu)
{
  if (norm)
    v = vf_fma (v, scale, shift);
  if (silu)
    v = vf_div (v, vf_add (vf_set1 (1), vf_exp (vf_sub (vf_set1 (0), v))));
  return v;
}

/* @n channels of one pixel. For pairs, @n rounded up to even is written. */
ALWAYS_INLINE void
gather_pixel (const int kind,
              float *dst,
              const float *x,
              const float *scale,
              const float *shift,
              size_t n,
              const bool norm,
              const bool silu)
{
  const VF none = vf_set1 (0);
  size_t c = 0;

  for (; c + VF_LANES <= n; c += VF_LANES) {
    VF v = activate (vf_load (x + c), norm ? vf_load (scale + c) : none, norm ? vf_load (shift + c) : none, norm, silu);
#ifdef CONV_PAIRS
    if (kind == KIND_PAIRS) {
      vf_store_bf16_n ((uint16_t *) (void *) dst + c, v, VF_LANES);
      continue;
    }
#endif
    vf_store (dst + c, v);
  }
  if (c < n) {
    VF v = activate (vf_load_n (x + c, n - c), norm ? vf_load_n (scale + c, n - c) : none,
                     norm ? vf_load_n (shift + c, n - c) : none, norm, silu);
#ifdef CONV_PAIRS
    if (kind == KIND_PAIRS) {
      /* The second half of the last pair, too, so that it is a number: its weight is 0. */
      vf_store_bf16_n ((uint16_t *) (void *) dst + c, v, (n - c + 1) & ~(size_t) 1);
      return;
    }
#endif
    vf_store_n (dst + c, v, n - c);
  }
}

/* The columns of a row that exist, @n of them, the first of which is column @column of the enlarged picture. */
ALWAYS_INLINE void
gather_row (const int kind,
            const OxConv *conv,
            float *dst,
            const float *row,
            size_t column,
            size_t n,
            size_t steps,
            size_t channels,
            const float *scale,
            const float *shift,
            const bool norm,
            const bool silu)
{
  size_t next_row;

  /* Small pixels without gaps are one. */
  if (!norm && !silu && kind != KIND_PAIRS && conv->resized_width == 0 && conv->x_stride == channels) {
    memcpy (dst, row + column * channels, n * channels * sizeof (float));
    return;
  }
  /* The next row is far away. */
  next_row = conv->width * conv->x_stride * sizeof (float);
  for (size_t i = 0; i < n; i++) {
    const float *x = row + ox_conv_source (column + i, conv->width, conv->resized_width) * conv->x_stride;
    prefetch_lines ((const uint8_t *) x, next_row, channels * sizeof (float));
    gather_pixel (kind, dst + i * steps, x, scale, shift, channels, norm, silu);
    if (CONV_STEP_MULTIPLE > 1)
      for (size_t s = (channels + 1) / KIND_STEP_CHANNELS (kind); s < steps; s++)
        dst[i * steps + s] = 0;
  }
}

/* The input that an item needs, channels of block @b: [rows, columns, steps], zeros around the picture. */
ALWAYS_INLINE void
gather (const int kind, const OxConv *conv, const OxConvItem *it, const OxConvLayout *layout, size_t b, float *dst)
{
  const OxConvShape *shape = &conv->w->shape;
  size_t rows = ox_conv_reach (it->height, conv->stride, shape->kernel_height);
  size_t columns = ox_conv_reach (it->width, conv->stride, shape->kernel_width);
  size_t height = conv->resized_height != 0 ? conv->resized_height : conv->height;
  size_t width = conv->resized_width != 0 ? conv->resized_width : conv->width;
  size_t steps = ox_conv_block_steps (layout, b), first = b * layout->block_steps * KIND_STEP_CHANNELS (kind);
  size_t channels = shape->in_channels - first, left = it->x * conv->stride, begin, end;
  const float *picture = conv->x + it->image * conv->height * conv->width * conv->x_stride + first;
  const float *scale = NULL, *shift = NULL;

  if (channels > steps * KIND_STEP_CHANNELS (kind))
    channels = steps * KIND_STEP_CHANNELS (kind);
  if (conv->norm_scale != NULL) {
    scale = conv->norm_scale + it->image * shape->in_channels + first;
    shift = conv->norm_shift + it->image * shape->in_channels + first;
  }
  /* Columns [begin, end) of the rectangle lie within the picture. */
  begin = left < conv->pad_left ? conv->pad_left - left : 0;
  begin = begin < columns ? begin : columns;
  end = left < conv->pad_left + width ? conv->pad_left + width - left : 0;
  end = end < columns ? end : columns;
  end = end > begin ? end : begin;

  for (size_t r = 0; r < rows; r++, dst += columns * steps) {
    size_t y = it->y * conv->stride + r, column = left + begin - conv->pad_left;
    const float *row;

    if (y < conv->pad_top || y - conv->pad_top >= height || begin == end) {
      memset (dst, 0, columns * steps * sizeof (float));
      continue;
    }
    row =
      picture + ox_conv_source (y - conv->pad_top, conv->height, conv->resized_height) * conv->width * conv->x_stride;
    memset (dst, 0, begin * steps * sizeof (float));
    memset (dst + end * steps, 0, (columns - end) * steps * sizeof (float));
    if (scale != NULL && conv->silu)
      gather_row (kind, conv, dst + begin * steps, row, column, end - begin, steps, channels, scale, shift, true, true);
    else if (scale != NULL)
      gather_row (kind, conv, dst + begin * steps, row, column, end - begin, steps, channels, scale, shift, true,
                  false);
    else if (conv->silu)
      gather_row (kind, conv, dst + begin * steps, row, column, end - begin, steps, channels, NULL, NULL, false, true);
    else
      gather_row (kind, conv, dst + begin * steps, row, column, end - begin, steps, channels, NULL, NULL, false, false);
  }
}

/* ---- The product ---------------------------------------------------------------------------------------------------------- */

/* One panel of outputs for all pixels of an item, one block of input channels. */
typedef struct {
  const OxConv *conv;
  const OxConvItem *it;
  const float *input;   /* what was gathered */
  size_t steps;         /* of a pixel */
  const uint8_t *w;     /* of this panel and block */
  const uint8_t *ahead; /* the weights that are read next */
  float *sums;          /* unfinished: [tiles][vectors][pixels of a tile][VF_LANES] */
  size_t channel;       /* the first of the panel */
  bool first, last;     /* block */
} Part;

#ifndef CONV_MULTIPLY

/* Where the pixels of a tile have their input, and the result. A tile that is not full repeats its last pixel. */
typedef struct {
  const float *input[CONV_TILE_PIXELS];
  size_t pixel[CONV_TILE_PIXELS];
} Pixels;

static inline void
next_pixels (const Part *part, size_t columns, size_t *y, size_t *x, size_t n, Pixels *pixels)
{
  const OxConv *conv = part->conv;
  const OxConvItem *it = part->it;

  for (size_t i = 0; i < CONV_TILE_PIXELS; i++) {
    pixels->input[i] = part->input + (*y * columns + *x) * conv->stride * part->steps;
    pixels->pixel[i] = (it->image * conv->out_height + it->y + *y) * conv->out_width + it->x + *x;
    if (i + 1 < n && ++*x == it->width) {
      *x = 0;
      ++*y;
    }
  }
  if (++*x == it->width) {
    *x = 0;
    ++*y;
  }
}

ALWAYS_INLINE VF
load_weights (const int kind, const uint8_t *p)
{
  return kind == KIND_F16    ? vf_load_f16 (p)
         : kind == KIND_BF16 ? vf_load_bf16 (p)
                             : vf_load ((const float *) (const void *) p);
}

ALWAYS_INLINE VF
add_product (const int kind, VF weights, VF x, VF sum)
{
#ifdef CONV_PAIRS
  if (kind == KIND_PAIRS)
    return vf_dot_bf16 (weights, x, sum);
#endif
  return vf_fma (weights, x, sum);
}

/* Outer products: @V vectors of output channels × the pixels of a tile, tile by tile. */
ALWAYS_INLINE void
multiply (const int kind, const Part *part, const size_t V)
{
  const size_t vector_bytes = VF_LANES * KIND_WEIGHT_BYTES (kind);
  const OxConv *conv = part->conv;
  const OxConvShape *shape = &conv->w->shape;
  const size_t n_pixels = part->it->height * part->it->width, rest = shape->out_channels - part->channel;
  const size_t columns = ox_conv_reach (part->it->width, conv->stride, shape->kernel_width);
  const size_t row_steps = shape->kernel_width * part->steps, all_steps = shape->kernel_height * row_steps;
  const size_t all_bytes = all_steps * V * vector_bytes;
  size_t y = 0, x = 0, ahead = 0;
  float *unfinished = part->sums;

  for (size_t p = 0; p < n_pixels; p += CONV_TILE_PIXELS, unfinished += V * CONV_TILE_PIXELS * VF_LANES) {
    const size_t n = n_pixels - p < CONV_TILE_PIXELS ? n_pixels - p : CONV_TILE_PIXELS;
    const uint8_t *w = part->w, *next = ahead < all_bytes ? part->ahead + ahead : part->w;
    VF sums[CONV_TILE_VECTORS][CONV_TILE_PIXELS];
    Pixels pixels;
    size_t from = 0;

    next_pixels (part, columns, &y, &x, n, &pixels);
    UNROLL
    for (size_t v = 0; v < V; v++) {
      VF bias = vf_set1 (0);

      if (part->first && conv->bias != NULL) {
        const float *at = conv->bias + part->it->image * conv->bias_stride + part->channel + v * VF_LANES;
        bias = rest >= (v + 1) * VF_LANES ? vf_load (at) : vf_load_n (at, rest - v * VF_LANES);
      }
      UNROLL
      for (size_t i = 0; i < CONV_TILE_PIXELS; i++)
        sums[v][i] = part->first ? bias : vf_load (unfinished + (v * CONV_TILE_PIXELS + i) * VF_LANES);
    }

    for (size_t row = 0; row < shape->kernel_height; row++, from += columns * part->steps)
      for (size_t s = from; s < from + row_steps; s++, w += V * vector_bytes, next += LINE_BYTES) {
        VF weights[CONV_TILE_VECTORS];

        __builtin_prefetch (next, 0, 2);
        UNROLL
        for (size_t v = 0; v < V; v++)
          weights[v] = load_weights (kind, w + v * vector_bytes);
        UNROLL
        for (size_t i = 0; i < CONV_TILE_PIXELS; i++) {
          VF in = vf_set1 (pixels.input[i][s]);
          UNROLL
          for (size_t v = 0; v < V; v++)
            sums[v][i] = add_product (kind, weights[v], in, sums[v][i]);
        }
      }
    ahead += all_steps * LINE_BYTES;

    if (!part->last) {
      UNROLL
      for (size_t v = 0; v < V; v++) {
        UNROLL
        for (size_t i = 0; i < CONV_TILE_PIXELS; i++)
          vf_store (unfinished + (v * CONV_TILE_PIXELS + i) * VF_LANES, sums[v][i]);
      }
      continue;
    }
    UNROLL
    for (size_t i = 0; i < CONV_TILE_PIXELS; i++) {
      float *to = conv->y + pixels.pixel[i] * conv->y_stride + part->channel;
      const float *residual =
        conv->residual != NULL ? conv->residual + pixels.pixel[i] * conv->residual_stride + part->channel : NULL;

      UNROLL
      for (size_t v = 0; v < V; v++) {
        const size_t at = v * VF_LANES;

        if (i >= n)
          continue;
        if (rest >= at + VF_LANES)
          vf_store (to + at, residual != NULL ? vf_add (sums[v][i], vf_load (residual + at)) : sums[v][i]);
        else
          vf_store_n (to + at,
                      residual != NULL ? vf_add (sums[v][i], vf_load_n (residual + at, rest - at)) : sums[v][i],
                      rest - at);
      }
    }
  }
}

#endif

/* ---- Items ------------------------------------------------------------------------------------------------------------------ */

/* The weights of panel @p, block @b. */
static inline const uint8_t *
weights_at (const OxPackedConv *w, const OxConvLayout *layout, size_t p, size_t b)
{
  return (const uint8_t *) w->data + p * ox_conv_panel_bytes (w->kernel, layout) +
         layout->taps * b * layout->block_steps * panel_vectors (w->shape.out_channels, p) * VF_LANES *
           w->kernel->weight_bytes;
}

ALWAYS_INLINE void
run (const int kind, void (*const multiply_vectors[]) (const Part *), const OxConv *conv, size_t item, void *scratch)
{
  const OxPackedConv *w = conv->w;
  const OxConvItem it = ox_conv_item (conv, item);
  const OxConvLayout layout = ox_conv_layout (w->kernel, &w->shape);
  const size_t n_sums = ox_conv_sums (conv) / conv->item_panels;
  float *sums = (float *) scratch + conv->scratch_bytes / sizeof (float) - n_sums * conv->item_panels;

  for (size_t b = 0; b < layout.n_blocks; b++) {
    gather (kind, conv, &it, &layout, b, scratch);
    for (size_t p = it.panel_begin; p < it.panel_end; p++) {
      bool wraps = p + 1 == it.panel_end;
      Part part = { .conv = conv,
                    .it = &it,
                    .input = scratch,
                    .steps = ox_conv_block_steps (&layout, b),
                    .w = weights_at (w, &layout, p, b),
                    .sums = sums + (p - it.panel_begin) * n_sums,
                    .channel = p * PANEL_CHANNELS,
                    .first = b == 0,
                    .last = b + 1 == layout.n_blocks };

      part.ahead = wraps && part.last ? part.w : weights_at (w, &layout, wraps ? it.panel_begin : p + 1, b + wraps);
      multiply_vectors[panel_vectors (w->shape.out_channels, p) - 1](&part);
    }
  }
}

#define MULTIPLY(KIND, V)                                                                                              \
  static void multiply_##KIND##_##V (const Part *part)                                                                 \
  {                                                                                                                    \
    multiply (KIND_##KIND, part, V);                                                                                   \
  }

#if defined(CONV_MULTIPLY)
#define MULTIPLY_ALL(KIND)
#define MULTIPLY_LIST(KIND) CONV_MULTIPLY
#elif CONV_TILE_VECTORS == 4
#define MULTIPLY_ALL(KIND) MULTIPLY (KIND, 1) MULTIPLY (KIND, 2) MULTIPLY (KIND, 3) MULTIPLY (KIND, 4)
#define MULTIPLY_LIST(KIND) multiply_##KIND##_1, multiply_##KIND##_2, multiply_##KIND##_3, multiply_##KIND##_4
#else
#define MULTIPLY_ALL(KIND) MULTIPLY (KIND, 1) MULTIPLY (KIND, 2)
#define MULTIPLY_LIST(KIND) multiply_##KIND##_1, multiply_##KIND##_2
#endif

/* The kernel of a kind: `FUNCTIONS` once for each, then `ENTRY` where it is listed. */
#define CONV_FUNCTIONS(KIND)                                                                                           \
  MULTIPLY_ALL (KIND)                                                                                                  \
  static bool packed_bytes_##KIND (const OxConvShape *shape, size_t *bytes)                                            \
  {                                                                                                                    \
    return packed_bytes (KIND_##KIND, shape, bytes);                                                                   \
  }                                                                                                                    \
  static void pack_##KIND (OxPackedConv *w, const void *src, size_t begin, size_t end)                                 \
  {                                                                                                                    \
    pack (KIND_##KIND, w, src, begin, end);                                                                            \
  }                                                                                                                    \
  static void run_##KIND (const OxConv *conv, size_t item, void *scratch)                                              \
  {                                                                                                                    \
    static void (*const multiply_vectors[]) (const Part *) = { MULTIPLY_LIST (KIND) };                                 \
    run (KIND_##KIND, multiply_vectors, conv, item, scratch);                                                          \
  }

#define CONV_ENTRY(KIND, NAME)                                                                                         \
  { .name = NAME,                                                                                                      \
    .panel_channels = PANEL_CHANNELS,                                                                                  \
    .tile_pixels = CONV_TILE_PIXELS,                                                                                   \
    .step_channels = KIND_STEP_CHANNELS (KIND_##KIND),                                                                 \
    .weight_bytes = KIND_WEIGHT_BYTES (KIND_##KIND),                                                                   \
    .step_multiple = CONV_STEP_MULTIPLE,                                                                               \
    .in_rows = CONV_STEP_MULTIPLE > 1,                                                                                 \
    .packed_bytes = packed_bytes_##KIND,                                                                               \
    .pack = pack_##KIND,                                                                                               \
    .run = run_##KIND }
