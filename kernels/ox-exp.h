/* exp() of a vector, over the vocabulary of ox-simd-*.h.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

/* exp(x) = 2^n · exp(r) with r = x - n·ln 2 in [-ln 2 / 2, ln 2 / 2]; the polynomial is that of Cephes' expf() (Moshier).
 * Relative error below 2e-7 while the result is normal; 0 below -104, infinity above 88.8, NaN stays NaN. */
static inline VF
vf_exp (VF x)
{
  VF n, r, p;

  /* In this order so that a NaN in @x survives. */
  x = vf_max (vf_set1 (-104.0f), vf_min (vf_set1 (89.0f), x));
  n = vf_round (vf_mul (x, vf_set1 (1.44269504088896341f)));
  /* ln 2 in two parts, the first with few enough bits that its product with n is exact (Cody & Waite). */
  r = vf_fma (n, vf_set1 (-0.693359375f), x);
  r = vf_fma (n, vf_set1 (2.12194440e-4f), r);
  p = vf_set1 (1.9875691500e-4f);
  p = vf_fma (p, r, vf_set1 (1.3981999507e-3f));
  p = vf_fma (p, r, vf_set1 (8.3334519073e-3f));
  p = vf_fma (p, r, vf_set1 (4.1665795894e-2f));
  p = vf_fma (p, r, vf_set1 (1.6666665459e-1f));
  p = vf_fma (p, r, vf_set1 (5.0000001201e-1f));
  p = vf_add (vf_fma (vf_mul (r, r), p, r), vf_set1 (1));
  return vf_scale_exponent (p, n);
}
