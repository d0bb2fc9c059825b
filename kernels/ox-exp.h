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

/* 2^x = 2^n · p(x - n) with n = round(x) and 1 + r·Q(r) for p, Q the minimax polynomial for the relative error on [-1/2, 1/2].
 * Relative error below 2e-7 while the result is normal; exactly 1 at 0; 0 below -151. @x at most 126. */
static inline VF
vf_exp2 (VF x)
{
  VF n, r, p;

  /* In this order so that a NaN in @x survives. */
  x = vf_max (vf_set1 (-160.0f), x);
  n = vf_round (x);
  r = vf_sub (x, n);
  p = vf_set1 (1.326472731e-03f);
  p = vf_fma (p, r, vf_set1 (9.671512991e-03f));
  p = vf_fma (p, r, vf_set1 (5.550733581e-02f));
  p = vf_fma (p, r, vf_set1 (2.402224243e-01f));
  p = vf_fma (p, r, vf_set1 (6.931470037e-01f));
  p = vf_fma (p, r, vf_set1 (1));
  return vf_scale_exponent (p, n);
}

/* tanh(x) = 1 - 2 / (exp(2x) + 1), but near 0 x + x³·P(x²) with the polynomial of Cephes' tanhf() (Moshier). */
static inline VF
vf_tanh (VF x)
{
  VF one = vf_set1 (1), square = vf_mul (x, x), p, far;

  far = vf_sub (one, vf_div (vf_set1 (2), vf_add (vf_exp (vf_add (x, x)), one)));
  p = vf_set1 (-5.70498872745e-3f);
  p = vf_fma (p, square, vf_set1 (2.06390887954e-2f));
  p = vf_fma (p, square, vf_set1 (-5.37397155531e-2f));
  p = vf_fma (p, square, vf_set1 (1.33314422036e-1f));
  p = vf_fma (p, square, vf_set1 (-3.33332819422e-1f));
  return vf_less (vf_abs (x), vf_set1 (0.625f), vf_fma (vf_mul (p, square), x, x), far);
}
