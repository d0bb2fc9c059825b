/* exp in float64, in a loop that compilers turn into vector code of the including file's instruction set, which has FMA.
 *
 * exp(x) = 2^k · exp(r), k the whole number nearest to x / ln 2, |r| ≤ ln 2 / 2: the Taylor polynomial of degree 13 is good to 2^-57. 2^k
 * comes in two factors, so that results below the normal numbers are right, too.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Added to a double of moderate size it leaves the nearest whole number in the lowest bits. */
#define OX_ROUND_DOUBLE 0x1.8p52

/* 2^n for the whole number n of @shifted = n + OX_ROUND_DOUBLE. */
static inline double
ox_power_of_two (double shifted)
{
  uint64_t bits;

  __builtin_memcpy (&bits, &shifted, sizeof bits);
  bits = (bits + 1023) << 52;
  __builtin_memcpy (&shifted, &bits, sizeof bits);
  return shifted;
}

static void
exp_double (double *x, size_t n)
{
  const double ln2_high = 0x1.62e42fefa3800p-1, ln2_low = 0x1.ef35793c76730p-45;

  for (size_t i = 0; i < n; i++) {
    /* Below that everything is 0. NaN goes through. */
    double v = x[i] < -746 ? -746 : x[i];
    double k = (v * 0x1.71547652b82fep+0 + OX_ROUND_DOUBLE) - OX_ROUND_DOUBLE;
    double half = k * 0.5 + OX_ROUND_DOUBLE, rest = (k - (half - OX_ROUND_DOUBLE)) + OX_ROUND_DOUBLE;
    double r = __builtin_fma (-k, ln2_low, __builtin_fma (-k, ln2_high, v));
    double p = 1.0 / 6227020800;

    p = __builtin_fma (p, r, 1.0 / 479001600);
    p = __builtin_fma (p, r, 1.0 / 39916800);
    p = __builtin_fma (p, r, 1.0 / 3628800);
    p = __builtin_fma (p, r, 1.0 / 362880);
    p = __builtin_fma (p, r, 1.0 / 40320);
    p = __builtin_fma (p, r, 1.0 / 5040);
    p = __builtin_fma (p, r, 1.0 / 720);
    p = __builtin_fma (p, r, 1.0 / 120);
    p = __builtin_fma (p, r, 1.0 / 24);
    p = __builtin_fma (p, r, 1.0 / 6);
    p = __builtin_fma (p, r, 0.5);
    p = __builtin_fma (p, r, 1.0);
    p = __builtin_fma (p, r, 1.0);
    x[i] = p * ox_power_of_two (half) * ox_power_of_two (rest);
  }
}
