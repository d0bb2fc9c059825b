/* Convolutions over pictures, as a matrix product whose left side is never laid out as a whole.
 *
 * Pictures are NHWC: float32 [images, height, width, channels], the channels of a pixel side by side. For each output pixel the
 * product runs over taps × input channels. The work is cut into items, each a rectangle of output pixels × a range of output
 * channels. An item gathers the rectangle of input that it needs, some channels at a time, into scratch memory that fits the
 * second cache: there a picture is doubled in size, normalised, sent through SiLU, rounded, and surrounded by zeros. Where a
 * pixel's taps lie in that rectangle is a constant distance from where they lie for its neighbour, so the product reads it as it
 * is.
 *
 *     OxPackedConv w = { ox_conv_kernel (ox_kernels (), type, precision), type, shape };
 *     w.kernel->packed_bytes (&w.shape, &bytes); w.data = …; w.kernel->pack (&w, weights, 0, shape.out_channels);
 *
 *     OxConv conv = { .w = &w, .x = x, .x_stride = …, .images = 1, …, .y = y, .y_stride = … };
 *     ox_conv_plan (&conv, threads);      (tells conv.n_items and conv.scratch_bytes)
 *     for each item, in any order, on any thread:  w.kernel->run (&conv, item, scratch of this thread)
 *
 * A sum is always taken in the same order, so the result does not depend on how the work is cut, to the bit.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of a weight tensor [out_channels, in_channels, kernel_height, kernel_width], PyTorch's order. */
typedef struct {
  size_t in_channels, out_channels;
  size_t kernel_height, kernel_width;
} OxConvShape;

/* A weight tensor in the layout of its kernel. */
typedef struct {
  const OxConvKernel *kernel;
  uint32_t type; /* of the source: F32, F16 or BF16; any kernel packs any of them, rounding to nearest, ties to even */
  OxConvShape shape;
  void *data; /* kernel->packed_bytes() bytes, 64-byte aligned; owned by the caller */
} OxPackedConv;

/* One convolution. Members up to `y_stride` are the caller's; the rest is filled by ox_conv_plan(). Strides are in floats. */
typedef struct {
  const OxPackedConv *w;

  /* x [images, height, width, in_channels], @x_stride ≥ in_channels from one pixel to the next. */
  const float *x;
  size_t x_stride;
  size_t images, height, width;
  /* Not 0: the picture is first enlarged to this size; pixel i of n takes the pixel ⌊i · size / n⌋ ("nearest"). Twice the size
   * for the upsampling of Stable Diffusion, or one less where the picture to be met has an odd size. */
  size_t resized_height, resized_width;
  /* Not NULL: x becomes x · scale[image, c] + shift[image, c], [images, in_channels] each (ox-image.h makes them of a group
   * norm). With @silu it then becomes x · sigmoid(x). Both before zeros are put around it. */
  const float *norm_scale, *norm_shift;
  bool silu;
  /* Zeros around the picture, and steps from one output pixel to the next. */
  size_t pad_top, pad_left, pad_bottom, pad_right;
  size_t stride;

  /* Added to the result: bias [images, out_channels] with @bias_stride from one image to the next (0: the same for all), or
   * NULL; residual [images, out_height, out_width, out_channels], which may be y itself, or NULL. */
  const float *bias;
  size_t bias_stride;
  const float *residual;
  size_t residual_stride;
  float *y;
  size_t y_stride;

  size_t out_height, out_width;     /* (padded size - kernel) / stride + 1, rounded down */
  size_t tile_height, tile_width;   /* output pixels of an item */
  size_t item_panels;               /* output channels of an item, in panels of the kernel */
  size_t tiles_y, tiles_x, tiles_c; /* items are numbered image by image, row by row of tiles; channels count fastest */
  size_t n_items;
  size_t scratch_bytes; /* that each thread needs, 64-byte aligned */
} OxConv;

/* {pack, run} of one layout on one instruction set. They travel together: packed weights are only read by the kernel that
 * packed them. */
struct OxConvKernel {
  const char *name;      /* "conv-bf16-avx512" */
  size_t panel_channels; /* output channels that are packed together */
  size_t tile_pixels;    /* output pixels that are computed together */
  size_t
    step_channels; /* input channels that one step of the product takes: 2 where it multiplies pairs of bf16, else 1 */
  size_t weight_bytes;  /* of a step and output channel */
  size_t step_multiple; /* the steps of a pixel are filled up with zeros to a multiple of that */
  bool in_rows;         /* the pixels that are computed together lie in one row */
  /* False on overflow, or when a size is 0. */
  bool (*packed_bytes) (const OxConvShape *shape, size_t *bytes);
  /* Packs output channels [begin, end), @begin a multiple of panel_channels; @src points at channel @begin of the source. */
  void (*pack) (OxPackedConv *w, const void *src, size_t begin, size_t end);
  void (*run) (const OxConv *conv, size_t item, void *scratch);
};

/* The kernel of @table for weights of @type; NULL for a type other than F32, F16 and BF16.
 *
 * With OX_PRECISION_EXACT activations stay float32. With OX_PRECISION_FAST and weights of 16 bits, both are rounded to bf16
 * where the processor multiplies that faster than float32 (OX_CPU_FAST_BF16, OX_CPU_AMX_BF16). F16 too: it loses three bits of
 * its weights, no more than rounding activations costs, and is twice as fast. Elsewhere they are expanded to float32 on their
 * way to the arithmetic. */
const OxConvKernel *ox_conv_kernel (const OxKernels *table, uint32_t type, OxPrecision precision);

/* Works out the output's size and how to cut the work, for so many threads. False when a size is 0, the kernel is larger than
 * the padded picture, or a size overflows. Needs w->kernel and w->shape, not w->data, x or y: so it also tells scratch_bytes
 * beforehand. */
bool ox_conv_plan (OxConv *conv, unsigned n_threads);

#ifdef __cplusplus
}
#endif
