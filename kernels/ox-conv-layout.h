/* How convolutions order their sums: what packing, the tiles and the plan must agree on.
 *
 * A step is what one instruction of the product takes from the input for each output: a channel in float32, or a pair of channels
 * in bf16; four bytes of gathered input either way. The steps of a pixel are cut into blocks. A sum runs over blocks, in each
 * over the rows of the kernel, and in each row over pixels and steps, which lie side by side in the gathered block.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-conv.h"

/* Steps of a block × taps: weights of that many steps and a panel of outputs fit well in the second cache, and are enough that
 * adding to unfinished sums costs little. */
#define OX_CONV_BLOCK_STEPS 576
/* The least steps of a block, where a kernel has many taps. */
#define OX_CONV_LEAST_STEPS 16

typedef struct {
  size_t steps;       /* of a pixel */
  size_t block_steps; /* of a pixel, in every block but the last */
  size_t n_blocks;
  size_t taps;
} OxConvLayout;

static inline OxConvLayout
ox_conv_layout (const OxConvKernel *kernel, const OxConvShape *shape)
{
  OxConvLayout layout = { .taps = shape->kernel_height * shape->kernel_width };
  size_t most = OX_CONV_BLOCK_STEPS / layout.taps / OX_CONV_LEAST_STEPS * OX_CONV_LEAST_STEPS;

  if (most < OX_CONV_LEAST_STEPS)
    most = OX_CONV_LEAST_STEPS;
  layout.steps = (shape->in_channels - 1) / kernel->step_channels + 1;
  layout.steps = (layout.steps + kernel->step_multiple - 1) / kernel->step_multiple * kernel->step_multiple;
  layout.n_blocks = (layout.steps + most - 1) / most;
  layout.block_steps = (layout.steps + layout.n_blocks - 1) / layout.n_blocks;
  if (layout.n_blocks > 1)
    layout.block_steps = (layout.block_steps + OX_CONV_LEAST_STEPS - 1) / OX_CONV_LEAST_STEPS * OX_CONV_LEAST_STEPS;
  layout.n_blocks = (layout.steps + layout.block_steps - 1) / layout.block_steps;
  return layout;
}

/* Steps of a pixel in block @b. */
static inline size_t
ox_conv_block_steps (const OxConvLayout *layout, size_t b)
{
  size_t rest = layout->steps - b * layout->block_steps;

  return rest < layout->block_steps ? rest : layout->block_steps;
}

/* Bytes from one panel to the next, but for the last, which may be narrower. */
static inline size_t
ox_conv_panel_bytes (const OxConvKernel *kernel, const OxConvLayout *layout)
{
  return layout->taps * layout->steps * kernel->panel_channels * kernel->weight_bytes;
}

/* Rows and columns of input that @n output pixels in a row need. */
static inline size_t
ox_conv_reach (size_t n, size_t stride, size_t kernel)
{
  return (n - 1) * stride + kernel;
}

/* Pixels that are computed for a tile of @height × @width: those left over in the last that are computed together count, too. */
static inline size_t
ox_conv_computed (const OxConvKernel *kernel, size_t height, size_t width)
{
  size_t n = kernel->tile_pixels;

  return kernel->in_rows ? height * ((width + n - 1) / n * n) : (height * width + n - 1) / n * n;
}

/* Floats that hold the unfinished sums of an item. */
static inline size_t
ox_conv_sums (const OxConv *conv)
{
  const OxConvKernel *kernel = conv->w->kernel;

  return ox_conv_computed (kernel, conv->tile_height, conv->tile_width) * conv->item_panels * kernel->panel_channels;
}

/* What an item computes. */
typedef struct {
  size_t image, y, x, height, width; /* output pixels */
  size_t panel_begin, panel_end;
} OxConvItem;

static inline OxConvItem
ox_conv_item (const OxConv *conv, size_t item)
{
  size_t panels = (conv->w->shape.out_channels + conv->w->kernel->panel_channels - 1) / conv->w->kernel->panel_channels;
  size_t c = item % conv->tiles_c, x = item / conv->tiles_c % conv->tiles_x,
         rest = item / conv->tiles_c / conv->tiles_x;
  OxConvItem it = { .image = rest / conv->tiles_y,
                    .y = rest % conv->tiles_y * conv->tile_height,
                    .x = x * conv->tile_width,
                    .panel_begin = c * conv->item_panels };

  it.height = conv->out_height - it.y < conv->tile_height ? conv->out_height - it.y : conv->tile_height;
  it.width = conv->out_width - it.x < conv->tile_width ? conv->out_width - it.x : conv->tile_width;
  it.panel_end = panels - it.panel_begin < conv->item_panels ? panels : it.panel_begin + conv->item_panels;
  return it;
}

/* The source pixel of coordinate @i of the enlarged picture. @size: the source's; @resized: 0 or the size that it is enlarged
 * to. */
static inline size_t
ox_conv_source (size_t i, size_t size, size_t resized)
{
  return resized == 0 ? i : (size_t) ((uint64_t) i * size / resized);
}
