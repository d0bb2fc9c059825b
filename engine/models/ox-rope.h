/* Rotary position embedding: the angles. (Su et al. 2021; scaling as in Hugging Face's modeling_rope_utils)
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "io/ox-config.h"

/* Elements of a head that take part in the rotation. */
guint ox_rope_rotary_dim (const OxRopeConfig *config, guint head_dim);
/* Frequencies of the ox_rope_rotary_dim()/2 pairs, in float32 as the reference computes them. Free with g_free(). */
float *ox_rope_frequencies (const OxRopeConfig *config, guint head_dim);
/* cos and sin of position · frequency for @n positions from @position: each [n, half]. */
void ox_rope_angles (const float *frequencies, guint half, guint64 position, guint n, float *cos_out, float *sin_out);
