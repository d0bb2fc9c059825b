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

float *
ox_rope_frequencies (const OxRopeConfig *config, guint head_dim)
{
  guint half = head_dim / 2;
  float *frequencies = g_new (float, half);

  for (guint i = 0; i < half; i++) {
    /* Rounded to float32 where the reference rounds: at position 100,000 a last bit here is a hundredth of a radian. */
    float power = (float) pow (config->theta, (double) ((float) (2 * i) / (float) head_dim));
    float frequency = 1.0f / power;

    if (config->type == OX_ROPE_LINEAR)
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
