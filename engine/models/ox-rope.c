/* Rotary position embedding: the angles.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "models/ox-rope.h"

#include <math.h>

/* Llama 3.1's bands: long wavelengths are slowed by `factor`, short ones kept, those between blended. */
static float
llama3_scale (const OxRopeConfig *config, float frequency)
{
  double wavelength = 2 * G_PI / frequency;
  double original = (double) config->original_max_position_embeddings;
  double smooth;

  if (wavelength > original / config->low_freq_factor)
    return (float) (frequency / config->factor);
  if (wavelength < original / config->high_freq_factor)
    return frequency;
  smooth = (original / wavelength - config->low_freq_factor) / (config->high_freq_factor - config->low_freq_factor);
  return (float) ((1 - smooth) * frequency / config->factor + smooth * frequency);
}

guint
ox_rope_rotary_dim (const OxRopeConfig *config, guint head_dim)
{
  if (config->type == OX_ROPE_PROPORTIONAL)
    return head_dim;
  return (guint) (head_dim * config->partial_rotary_factor);
}

float *
ox_rope_frequencies (const OxRopeConfig *config, guint head_dim)
{
  guint dim = ox_rope_rotary_dim (config, head_dim);
  guint half = dim / 2;
  guint rotated = config->type == OX_ROPE_PROPORTIONAL ? (guint) (half * config->partial_rotary_factor) : half;
  float *frequencies = g_new (float, half);

  for (guint i = 0; i < half; i++) {
    /* Rounded to float32 where the reference rounds: at position 100,000 a last bit here is a hundredth of a radian. */
    float power = (float) pow (config->theta, (double) ((float) (2 * i) / (float) dim));
    float frequency = i < rotated ? 1.0f / power : 0;

    if (config->type == OX_ROPE_LINEAR || config->type == OX_ROPE_PROPORTIONAL)
      frequency /= (float) config->factor;
    else if (config->type == OX_ROPE_LLAMA3)
      frequency = llama3_scale (config, frequency);
    if (config->freq_factors != NULL)
      frequency /= config->freq_factors[i];
    frequencies[i] = frequency;
  }
  return frequencies;
}

void
ox_rope_angles (const float *frequencies, guint half, guint64 position, guint n, float *cos_out, float *sin_out)
{
  for (guint i = 0; i < n; i++)
    for (guint j = 0; j < half; j++) {
      float angle = (float) (position + i) * frequencies[j];

      cos_out[(gsize) i * half + j] = (float) cos ((double) angle);
      sin_out[(gsize) i * half + j] = (float) sin ((double) angle);
    }
}
