/* Convolutions: which kernel, how the work is cut, and the C reference.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-conv.h"

#include <math.h>
#include <string.h>

#include "ox-blocks.h"
#include "ox-conv-layout.h"
#include "ox-internal.h"

const OxConvKernel *
ox_conv_kernel (const OxKernels *table, uint32_t type, OxPrecision precision)
{
  if (precision == OX_PRECISION_FAST && table->conv_pairs != NULL && (type == OX_TYPE_F16 || type == OX_TYPE_BF16))
    return table->conv_pairs;
  switch (type) {
  case OX_TYPE_F32:
    return &table->conv[0];
  case OX_TYPE_F16:
    return &table->conv[1];
  case OX_TYPE_BF16:
    return &table->conv[2];
  default:
    return NULL;
  }
}

/* ---- How the work is cut --------------------------------------------------------------------------------------------- */

/* Limits of what an item keeps in the second cache beside its weights, and of its work: 4 ms at 100 GFLOPS. */
#define MOST_SUMS (96u << 10)      /* floats */
#define MOST_GATHERED (256u << 10) /* bytes */
#define MOST_PRODUCTS 200e6        /* multiplications */
/* What things cost, in multiplications of one output lane. Measured with AVX-512 on Zen 5, only to choose between ways. */
#define COST_GATHER 8 /* a step of gathered input */
#define COST_NORM 40  /* the same, normalised and through SiLU */
#define COST_WEIGHT 6 /* a byte of weights */
#define COST_ITEM 20000

/* Output pixels from (0, 0) on of an axis of @n, in @parts parts. */
static size_t
part (size_t n, size_t parts)
{
  return (n + parts - 1) / parts;
}

/* The cost of the whole convolution on the thread that works longest, when it is cut as @conv says; infinite where a limit is
 * exceeded that smaller tiles would keep. */
static double
cost (const OxConv *conv, const OxConvLayout *layout, unsigned n_threads)
{
  const OxConvKernel *kernel = conv->w->kernel;
  const OxConvShape *shape = &conv->w->shape;
  size_t height = ox_conv_reach (conv->tile_height, conv->stride, shape->kernel_height);
  size_t width = ox_conv_reach (conv->tile_width, conv->stride, shape->kernel_width);
  size_t pixels = conv->tile_height * conv->tile_width;
  double outputs = (double) (conv->item_panels * kernel->panel_channels);
  double steps = (double) (layout->taps * layout->steps);
  double computed = (double) ox_conv_computed (kernel, conv->tile_height, conv->tile_width) * outputs * steps;
  double gathered = (double) height * (double) width;
  double items = (double) (conv->tiles_y * conv->tiles_x * conv->tiles_c) * (double) conv->images;
  double one;

  if (pixels > 1 &&
      (gathered * (double) layout->block_steps * 4 > MOST_GATHERED || (double) ox_conv_sums (conv) > MOST_SUMS))
    return INFINITY;
  if ((pixels > kernel->tile_pixels || conv->item_panels > 1) && computed > MOST_PRODUCTS)
    return INFINITY;
  one = computed +
        gathered * (double) (layout->steps * kernel->step_channels) * (conv->silu ? COST_NORM : COST_GATHER) +
        steps * outputs * (double) kernel->weight_bytes * COST_WEIGHT + COST_ITEM;
  return one * ceil (items / n_threads);
}

static void
set_tiles (OxConv *conv, size_t tiles_y, size_t tiles_x, size_t tiles_c)
{
  const OxConvKernel *kernel = conv->w->kernel;
  size_t panels = part (conv->w->shape.out_channels, kernel->panel_channels);

  conv->tile_height = part (conv->out_height, tiles_y);
  conv->tile_width = part (conv->out_width, tiles_x);
  conv->item_panels = part (panels, tiles_c);
  conv->tiles_y = part (conv->out_height, conv->tile_height);
  conv->tiles_x = part (conv->out_width, conv->tile_width);
  conv->tiles_c = part (panels, conv->item_panels);
}

/* The next number of parts to try: 1, 2, 3, 4, 6, 8, 12, 16 …, at last @n itself, and then more than that. */
static size_t
next_parts (size_t parts, size_t n)
{
  size_t next = parts < 2 ? parts + 1 : (parts & (parts - 1)) == 0 ? parts + parts / 2 : parts / 3 * 4;

  return parts >= n ? n + 1 : next < n ? next : n;
}

/* Tries all numbers of tiles, fewer first, and keeps the cheapest way. */
static void
cut (OxConv *conv, const OxConvLayout *layout, unsigned n_threads)
{
  size_t panels = part (conv->w->shape.out_channels, conv->w->kernel->panel_channels);
  size_t best_y = conv->out_height, best_x = conv->out_width, best_c = panels;
  double least = INFINITY;

  for (size_t c = 1; c <= panels; c = next_parts (c, panels))
    for (size_t y = 1; y <= conv->out_height; y = next_parts (y, conv->out_height))
      for (size_t x = 1; x <= conv->out_width; x = next_parts (x, conv->out_width)) {
        double now;

        set_tiles (conv, y, x, c);
        now = cost (conv, layout, n_threads);
        if (now < least) {
          least = now;
          best_y = y;
          best_x = x;
          best_c = c;
        }
      }
  set_tiles (conv, best_y, best_x, best_c);
}

/* Output pixels along an axis. */
static bool
out_size (size_t size, size_t resized, size_t before, size_t after, size_t kernel, size_t stride, size_t *out)
{
  size_t padded = resized != 0 ? resized : size;

  if (size == 0 || kernel == 0 || stride == 0 || __builtin_add_overflow (padded, before, &padded) ||
      __builtin_add_overflow (padded, after, &padded) || padded < kernel || padded > UINT32_MAX || size > UINT32_MAX)
    return false;
  *out = (padded - kernel) / stride + 1;
  return true;
}

/* Whether [images, height, width, stride] floats can be addressed. */
static bool
picture_fits (size_t images, size_t height, size_t width, size_t stride)
{
  size_t n;

  return !__builtin_mul_overflow (images, height, &n) && !__builtin_mul_overflow (n, width, &n) &&
         !__builtin_mul_overflow (n, stride, &n) && n <= PTRDIFF_MAX / sizeof (float);
}

bool
ox_conv_plan (OxConv *conv, unsigned n_threads)
{
  const OxConvKernel *kernel = conv->w->kernel;
  const OxConvShape *shape = &conv->w->shape;
  OxConvLayout layout;
  size_t packed, gathered, bytes;

  if (conv->images == 0 || n_threads == 0 || !kernel->packed_bytes (shape, &packed) ||
      !out_size (conv->height, conv->resized_height, conv->pad_top, conv->pad_bottom, shape->kernel_height,
                 conv->stride, &conv->out_height) ||
      !out_size (conv->width, conv->resized_width, conv->pad_left, conv->pad_right, shape->kernel_width, conv->stride,
                 &conv->out_width) ||
      conv->x_stride < shape->in_channels || conv->y_stride < shape->out_channels ||
      !picture_fits (conv->images, conv->height, conv->width, conv->x_stride) ||
      !picture_fits (conv->images, conv->out_height, conv->out_width, conv->y_stride) ||
      (conv->residual != NULL &&
       (conv->residual_stride < shape->out_channels ||
        !picture_fits (conv->images, conv->out_height, conv->out_width, conv->residual_stride))))
    return false;
  layout = ox_conv_layout (kernel, shape);
  cut (conv, &layout, n_threads);
  conv->n_items = conv->images * conv->tiles_y * conv->tiles_x * conv->tiles_c;

  /* Gathered input, what lies beyond it when the last of its rows counts as a full one, whole cache lines of it, and
   * unfinished sums behind. */
  gathered = ox_conv_reach (conv->tile_height, conv->stride, shape->kernel_height);
  if (__builtin_mul_overflow (gathered, ox_conv_reach (conv->tile_width, conv->stride, shape->kernel_width),
                              &gathered) ||
      (kernel->in_rows && __builtin_add_overflow (gathered, kernel->tile_pixels * conv->stride, &gathered)) ||
      __builtin_mul_overflow (gathered, layout.block_steps * sizeof (float), &gathered) ||
      __builtin_add_overflow (gathered, 63, &gathered) ||
      __builtin_add_overflow (gathered & ~(size_t) 63, ox_conv_sums (conv) * sizeof (float), &bytes))
    return false;
  conv->scratch_bytes = bytes;
  return true;
}

/* ---- C reference ------------------------------------------------------------------------------------------------------ */

#define PANEL 16

/* Packed as float32 [out_channels / 16 rounded up, kernel_height, kernel_width, in_channels, 16]; what is left of the last
 * panel is zero. */
static bool
packed_bytes_c (const OxConvShape *shape, size_t *bytes)
{
  size_t n = (shape->out_channels - 1) / PANEL + 1;

  return shape->in_channels != 0 && shape->out_channels != 0 && shape->kernel_height != 0 && shape->kernel_width != 0 &&
         !__builtin_mul_overflow (n, PANEL * sizeof (float), &n) &&
         !__builtin_mul_overflow (n, shape->in_channels, &n) && !__builtin_mul_overflow (n, shape->kernel_height, &n) &&
         !__builtin_mul_overflow (n, shape->kernel_width, &n) && (*bytes = n) <= PTRDIFF_MAX;
}

static void
pack_c (OxPackedConv *w, const void *src, size_t begin, size_t end)
{
  size_t channels = w->shape.in_channels, taps = w->shape.kernel_height * w->shape.kernel_width;

  for (size_t o = begin; o < (end + PANEL - 1) / PANEL * PANEL; o++) {
    float *dst = (float *) w->data + o / PANEL * PANEL * taps * channels + o % PANEL;

    for (size_t c = 0; c < channels; c++)
      for (size_t t = 0; t < taps; t++) {
        size_t from = ((o - begin) * channels + c) * taps + t;
        float *to = &dst[(t * channels + c) * PANEL];

        if (o >= end)
          *to = 0;
        else if (w->type == OX_TYPE_F32)
          *to = ((const float *) src)[from];
        else if (w->type == OX_TYPE_F16)
          *to = ox_f16_to_f32 (ox_u16 (((const OxU16 *) src)[from]));
        else
          *to = ox_bf16_to_f32 (ox_u16 (((const OxU16 *) src)[from]));
      }
  }
}

/* Channel @c of the pixel (y, x) of the enlarged picture @image, normalised and activated. */
static double
input (const OxConv *conv, size_t image, size_t y, size_t x, size_t c)
{
  size_t row = ox_conv_source (y, conv->height, conv->resized_height);
  size_t column = ox_conv_source (x, conv->width, conv->resized_width);
  double value = conv->x[((image * conv->height + row) * conv->width + column) * conv->x_stride + c];

  if (conv->norm_scale != NULL) {
    size_t i = image * conv->w->shape.in_channels + c;
    value = value * conv->norm_scale[i] + conv->norm_shift[i];
  }
  return conv->silu ? value / (1 + exp (-value)) : value;
}

/* The 16 outputs of panel @p at output pixel (y, x), without bias and residual. */
static void
products (const OxConv *conv, size_t image, size_t y, size_t x, size_t p, double sums[PANEL])
{
  const OxConvShape *shape = &conv->w->shape;
  size_t height = conv->resized_height != 0 ? conv->resized_height : conv->height;
  size_t width = conv->resized_width != 0 ? conv->resized_width : conv->width;
  size_t taps = shape->kernel_height * shape->kernel_width;

  memset (sums, 0, PANEL * sizeof sums[0]);
  for (size_t t = 0; t < taps; t++) {
    size_t in_y = y * conv->stride + t / shape->kernel_width, in_x = x * conv->stride + t % shape->kernel_width;
    const float *weights = (const float *) conv->w->data + (p * taps + t) * shape->in_channels * PANEL;

    if (in_y < conv->pad_top || in_y - conv->pad_top >= height || in_x < conv->pad_left ||
        in_x - conv->pad_left >= width)
      continue;
    for (size_t c = 0; c < shape->in_channels; c++) {
      double value = input (conv, image, in_y - conv->pad_top, in_x - conv->pad_left, c);

      for (size_t o = 0; o < PANEL; o++)
        sums[o] += value * weights[c * PANEL + o];
    }
  }
}

static void
run_c (const OxConv *conv, size_t item, void *scratch)
{
  OxConvItem it = ox_conv_item (conv, item);

  for (size_t y = it.y; y < it.y + it.height; y++)
    for (size_t x = it.x; x < it.x + it.width; x++) {
      size_t pixel = (it.image * conv->out_height + y) * conv->out_width + x;

      for (size_t p = it.panel_begin; p < it.panel_end; p++) {
        double sums[PANEL];

        products (conv, it.image, y, x, p, sums);
        for (size_t o = p * PANEL; o < (p + 1) * PANEL && o < conv->w->shape.out_channels; o++) {
          double sum = sums[o % PANEL];

          if (conv->bias != NULL)
            sum += conv->bias[it.image * conv->bias_stride + o];
          if (conv->residual != NULL)
            sum += conv->residual[pixel * conv->residual_stride + o];
          conv->y[pixel * conv->y_stride + o] = (float) sum;
        }
      }
    }
}

#define KERNEL_C(NAME)                                                                                                 \
  { .name = NAME,                                                                                                      \
    .panel_channels = PANEL,                                                                                           \
    .tile_pixels = 1,                                                                                                  \
    .step_channels = 1,                                                                                                \
    .step_multiple = 1,                                                                                                \
    .weight_bytes = sizeof (float),                                                                                    \
    .packed_bytes = packed_bytes_c,                                                                                    \
    .pack = pack_c,                                                                                                    \
    .run = run_c }

static const OxConvKernel kernels_c[] = { KERNEL_C ("conv-f32-c"), KERNEL_C ("conv-f16-c"), KERNEL_C ("conv-bf16-c") };

void
ox_conv_init_c (OxKernels *table)
{
  table->conv = kernels_c;
}
