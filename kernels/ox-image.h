/* Group norm over NHWC pictures, and enlarging one.
 *
 * A group norm is taken in two passes. The first finds mean and variance of each group: moments of blocks of pixels, on any
 * threads, then merged in the order of the blocks. Blocks depend on the number of channels alone, so the result does not depend
 * on threads, to the bit. The second pass is y = x · scale + shift with a pair for each channel, which a convolution applies as
 * it gathers its input (OxConv.norm_scale), and OxKernels.scale_shift where none follows.
 *
 *     n = ox_group_norm_blocks (pixels, channels);  OxMoments moments[n · groups]
 *     for each block b, on any thread:
 *       ox_kernels ()->moments (x + b · block · x_stride, x_stride, pixels of this block, channels, groups, moments + b · groups);
 *     ox_group_norm_merge (moments, pixels, channels, groups, gain, bias, eps, scale, shift);
 *
 * with block = ox_group_norm_block (channels).
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Pixels of a block: what fits the second cache for channels of that number, at most 256. The last block may have fewer. */
size_t ox_group_norm_block (size_t channels);
size_t ox_group_norm_blocks (size_t pixels, size_t channels);

/* Merges the moments of all blocks of one picture (Chan, Golub & LeVeque 1979), @channels a multiple of @groups: of channel c
 * in group g, scale[c] = gain[c] / √(variance[g] + eps), shift[c] = bias[c] - mean[g] · scale[c]; @gain and @bias may be NULL
 * (1, 0). The first @groups of @moments hold the whole picture's afterwards. The variance is that of all pixels (divided by n)
 * (Wu & He 2018). */
void ox_group_norm_merge (OxMoments *moments,
                          size_t pixels,
                          size_t channels,
                          size_t groups,
                          const float *gain,
                          const float *bias,
                          float eps,
                          float *scale,
                          float *shift);

/* Rows [row_begin, row_end) of y [y_height, y_width, channels], nearest as in OxConv.resized_height: pixel i of n is pixel ⌊i
 * · size / n⌋ of x [height, width, channels]. Both without gaps. */
void ox_image_resize_nearest (float *y,
                              size_t y_height,
                              size_t y_width,
                              const float *x,
                              size_t height,
                              size_t width,
                              size_t channels,
                              size_t row_begin,
                              size_t row_end);

#ifdef __cplusplus
}
#endif
