/* Numbers for the calculator: rationals of any size, exact as long as they can be, else long double.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "tools/ox-exact.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "oxinfer.h"

/* Bits of a numerator or denominator: some 300,000 digits, which GMP multiplies and divides in milliseconds. */
#define MAX_BITS (1u << 20)
/* Bits of all numbers of a calculation together: bounds memory, and time to about a second. */
#define MAX_WORK (1u << 25)
#define MAX_EXPONENT 300000
#define MAX_ROOT 1000
#define LN2 0.693147180559945309417232121458176568L

struct _OxCalculation {
  GPtrArray *numbers;
  GCancellable *cancellable;
  gsize work;
  GError *error;
};

static void
number_free (gpointer data)
{
  OxNumber *number = data;

  mpq_clear (number->q);
  g_free (number);
}

OxCalculation *
ox_calculation_new (GCancellable *cancellable)
{
  OxCalculation *calculation = g_new0 (OxCalculation, 1);

  calculation->numbers = g_ptr_array_new_with_free_func (number_free);
  calculation->cancellable = cancellable;
  return calculation;
}

void
ox_calculation_free (OxCalculation *calculation)
{
  if (!calculation)
    return;
  g_ptr_array_unref (calculation->numbers);
  g_clear_error (&calculation->error);
  g_free (calculation);
}

void
ox_calculation_fail (OxCalculation *calculation, const char *format, ...)
{
  va_list args;

  if (calculation->error)
    return;
  va_start (args, format);
  calculation->error = g_error_new_valist (OX_ERROR, OX_ERROR_INVALID, format, args);
  va_end (args);
}

gboolean
ox_calculation_take_error (OxCalculation *calculation, GError **error)
{
  if (!calculation->error)
    return FALSE;
  g_propagate_error (error, g_steal_pointer (&calculation->error));
  return TRUE;
}

/* ---- Making numbers ---- */

static gsize
bits (const OxNumber *a)
{
  return MAX (mpz_sizeinbase (mpq_numref (a->q), 2), mpz_sizeinbase (mpq_denref (a->q), 2));
}

/* Whether a result of @n_bits may be computed. */
static gboolean
allow (OxCalculation *calculation, double n_bits)
{
  if (calculation->error)
    return FALSE;
  if (g_cancellable_set_error_if_cancelled (calculation->cancellable, &calculation->error))
    return FALSE;
  if (!(n_bits <= MAX_BITS)) {
    ox_calculation_fail (calculation, "the result would be too large: it would have more than %.0f digits",
                         MAX_BITS * 0.30103);
    return FALSE;
  }
  calculation->work += (gsize) n_bits + 64;
  if (calculation->work > MAX_WORK) {
    ox_calculation_fail (calculation, "this is too much to compute: the numbers are too large or too many");
    return FALSE;
  }
  return TRUE;
}

static OxNumber *
number_new (OxCalculation *calculation)
{
  OxNumber *number = g_new0 (OxNumber, 1);

  number->is_exact = TRUE;
  mpq_init (number->q);
  g_ptr_array_add (calculation->numbers, number);
  return number;
}

const OxNumber *
ox_number_from_integer (OxCalculation *calculation, long integer)
{
  OxNumber *number = number_new (calculation);

  mpq_set_si (number->q, integer, 1);
  return number;
}

const OxNumber *
ox_number_from_double (OxCalculation *calculation, long double d)
{
  OxNumber *number;

  if (!isfinite (d)) {
    ox_calculation_fail (calculation, "the result is too large, or not a real number");
    return NULL;
  }
  if (!allow (calculation, 64))
    return NULL;
  number = number_new (calculation);
  number->is_exact = FALSE;
  number->d = d;
  return number;
}

/* @digits without signs; zeros in front are none of GMP's octal. */
static void
set_digits (mpz_t z, const char *digits, gsize len, int base)
{
  g_autofree char *copy = g_strndup (digits, len);

  if (len == 0 || mpz_set_str (z, copy, base) != 0)
    mpz_set_ui (z, 0);
}

/* A decimal number without a fraction bar. */
static gboolean
parse_decimal (OxCalculation *calculation, mpq_t q, const char *text, gsize len)
{
  g_autoptr (GString) digits = g_string_new (NULL);
  gboolean negative = len > 0 && text[0] == '-';
  double exponent = 0;
  gsize i = negative;

  for (; i < len && g_ascii_isdigit (text[i]); i++)
    g_string_append_c (digits, text[i]);
  if (i < len && text[i] == '.') {
    for (i++; i < len && g_ascii_isdigit (text[i]); i++, exponent--)
      g_string_append_c (digits, text[i]);
  }
  if (i < len && (text[i] == 'e' || text[i] == 'E')) {
    g_autofree char *rest = g_strndup (text + i + 1, len - i - 1);

    exponent += g_ascii_strtod (rest, NULL);
  }
  if (fabs (exponent) > MAX_EXPONENT || !allow (calculation, digits->len * 3.33 + fabs (exponent) * 3.33)) {
    ox_calculation_fail (calculation, "the number %.*s is too large or too small", (int) MIN (len, 40), text);
    return FALSE;
  }
  set_digits (mpq_numref (q), digits->str, digits->len, 10);
  mpz_ui_pow_ui (mpq_denref (q), 10, (gulong) fabs (exponent));
  if (exponent > 0) {
    mpz_mul (mpq_numref (q), mpq_numref (q), mpq_denref (q));
    mpz_set_ui (mpq_denref (q), 1);
  }
  mpq_canonicalize (q);
  if (negative)
    mpq_neg (q, q);
  return TRUE;
}

const OxNumber *
ox_number_parse (OxCalculation *calculation, const char *text, gsize len)
{
  const char *bar = memchr (text, '/', len);
  gsize first = bar ? (gsize) (bar - text) : len;
  OxNumber *number = number_new (calculation);

  if (!parse_decimal (calculation, number->q, text, first))
    return NULL;
  if (bar) {
    OxNumber *below = number_new (calculation);

    if (!parse_decimal (calculation, below->q, bar + 1, len - first - 1))
      return NULL;
    return ox_number_divide (calculation, number, below);
  }
  return number;
}

const OxNumber *
ox_number_parse_digits (OxCalculation *calculation, const char *digits, gsize len, int base)
{
  OxNumber *number;

  if (!allow (calculation, len * 4.0))
    return NULL;
  number = number_new (calculation);
  set_digits (mpq_numref (number->q), digits, len, base);
  return number;
}

/* ---- What a number is ---- */

long double
ox_number_get_double (const OxNumber *a)
{
  long shift;
  long double value;
  mpz_t z;

  if (!a->is_exact)
    return a->d;
  if (mpq_sgn (a->q) == 0)
    return 0;
  /* The quotient with 66 to 67 bits, of which long double keeps what it can. */
  shift = 66 - ((long) mpz_sizeinbase (mpq_numref (a->q), 2) - (long) mpz_sizeinbase (mpq_denref (a->q), 2));
  mpz_init (z);
  if (shift >= 0) {
    mpz_mul_2exp (z, mpq_numref (a->q), (gulong) shift);
    mpz_tdiv_q (z, z, mpq_denref (a->q));
  } else {
    mpz_mul_2exp (z, mpq_denref (a->q), (gulong) -shift);
    mpz_tdiv_q (z, mpq_numref (a->q), z);
  }
  {
    gulong low = mpz_get_ui (z) & 0xffffffff;
    mpz_t high;

    mpz_init (high);
    mpz_tdiv_q_2exp (high, z, 32);
    /* The upper part has at most 36 bits. */
    value = (long double) mpz_get_d (high) * 4294967296.0L + (mpz_sgn (z) < 0 ? -(long double) low : (long double) low);
    mpz_clear (high);
  }
  mpz_clear (z);
  return ldexpl (value, (int) -shift);
}

int
ox_number_sign (const OxNumber *a)
{
  return a->is_exact ? mpq_sgn (a->q) : (a->d > 0) - (a->d < 0);
}

gboolean
ox_number_is_integer (const OxNumber *a)
{
  return a->is_exact && mpz_cmp_ui (mpq_denref (a->q), 1) == 0;
}

gboolean
ox_number_get_long (const OxNumber *a, long *value)
{
  if (!ox_number_is_integer (a) || !mpz_fits_slong_p (mpq_numref (a->q)))
    return FALSE;
  *value = mpz_get_si (mpq_numref (a->q));
  return TRUE;
}

int
ox_number_compare (OxCalculation *calculation, const OxNumber *a, const OxNumber *b)
{
  if (a->is_exact && b->is_exact)
    return mpq_cmp (a->q, b->q);
  {
    long double x = ox_number_get_double (a), y = ox_number_get_double (b);

    return (x > y) - (x < y);
  }
}

/* ---- The four operations ---- */

const OxNumber *
ox_number_add (OxCalculation *calculation, const OxNumber *a, const OxNumber *b)
{
  OxNumber *sum;

  if (!a || !b)
    return NULL;
  if (!a->is_exact || !b->is_exact)
    return ox_number_from_double (calculation, ox_number_get_double (a) + ox_number_get_double (b));
  if (!allow (calculation, ox_number_is_integer (a) && ox_number_is_integer (b) ? (double) MAX (bits (a), bits (b)) + 1
                                                                                : (double) bits (a) + bits (b) + 1))
    return NULL;
  sum = number_new (calculation);
  mpq_add (sum->q, a->q, b->q);
  return sum;
}

const OxNumber *
ox_number_negate (OxCalculation *calculation, const OxNumber *a)
{
  OxNumber *result;

  if (!a)
    return NULL;
  if (!a->is_exact)
    return ox_number_from_double (calculation, -a->d);
  if (!allow (calculation, (double) bits (a)))
    return NULL;
  result = number_new (calculation);
  mpq_neg (result->q, a->q);
  return result;
}

const OxNumber *
ox_number_subtract (OxCalculation *calculation, const OxNumber *a, const OxNumber *b)
{
  return ox_number_add (calculation, a, ox_number_negate (calculation, b));
}

const OxNumber *
ox_number_multiply (OxCalculation *calculation, const OxNumber *a, const OxNumber *b)
{
  OxNumber *product;

  if (!a || !b)
    return NULL;
  if (!a->is_exact || !b->is_exact)
    return ox_number_from_double (calculation, ox_number_get_double (a) * ox_number_get_double (b));
  if (!allow (calculation, (double) bits (a) + bits (b)))
    return NULL;
  product = number_new (calculation);
  mpq_mul (product->q, a->q, b->q);
  return product;
}

const OxNumber *
ox_number_divide (OxCalculation *calculation, const OxNumber *a, const OxNumber *b)
{
  OxNumber *quotient;

  if (!a || !b)
    return NULL;
  if (ox_number_sign (b) == 0) {
    ox_calculation_fail (calculation, "division by zero");
    return NULL;
  }
  if (!a->is_exact || !b->is_exact)
    return ox_number_from_double (calculation, ox_number_get_double (a) / ox_number_get_double (b));
  if (!allow (calculation, (double) bits (a) + bits (b)))
    return NULL;
  quotient = number_new (calculation);
  mpq_div (quotient->q, a->q, b->q);
  return quotient;
}

/* ---- Rounding ---- */

const OxNumber *
ox_number_round (OxCalculation *calculation, const OxNumber *a, OxRound how)
{
  OxNumber *result;

  if (!a)
    return NULL;
  if (!a->is_exact) {
    long double d = how == OX_ROUND_DOWN      ? floorl (a->d)
                    : how == OX_ROUND_UP      ? ceill (a->d)
                    : how == OX_ROUND_TO_ZERO ? truncl (a->d)
                                              : roundl (a->d);

    /* A whole number is exact again, unless it is beyond what the digits tell. */
    if (fabsl (d) < 1e15L) {
      result = number_new (calculation);
      mpz_set_d (mpq_numref (result->q), (double) d);
      return result;
    }
    return ox_number_from_double (calculation, d);
  }
  if (!allow (calculation, (double) bits (a)))
    return NULL;
  result = number_new (calculation);
  if (how == OX_ROUND_NEAREST) {
    /* sign * floor (|a| + 1/2) */
    mpz_mul_2exp (mpq_numref (result->q), mpq_numref (a->q), 1);
    mpz_abs (mpq_numref (result->q), mpq_numref (result->q));
    mpz_add (mpq_numref (result->q), mpq_numref (result->q), mpq_denref (a->q));
    mpz_fdiv_q (mpq_numref (result->q), mpq_numref (result->q), mpq_denref (a->q));
    mpz_fdiv_q_2exp (mpq_numref (result->q), mpq_numref (result->q), 1);
    if (mpq_sgn (a->q) < 0)
      mpz_neg (mpq_numref (result->q), mpq_numref (result->q));
  } else if (how == OX_ROUND_DOWN) {
    mpz_fdiv_q (mpq_numref (result->q), mpq_numref (a->q), mpq_denref (a->q));
  } else if (how == OX_ROUND_UP) {
    mpz_cdiv_q (mpq_numref (result->q), mpq_numref (a->q), mpq_denref (a->q));
  } else {
    mpz_tdiv_q (mpq_numref (result->q), mpq_numref (a->q), mpq_denref (a->q));
  }
  return result;
}

const OxNumber *
ox_number_floor_divide (OxCalculation *calculation, const OxNumber *a, const OxNumber *b)
{
  return ox_number_round (calculation, ox_number_divide (calculation, a, b), OX_ROUND_DOWN);
}

const OxNumber *
ox_number_modulo (OxCalculation *calculation, const OxNumber *a, const OxNumber *b)
{
  const OxNumber *whole = ox_number_floor_divide (calculation, a, b);

  return ox_number_subtract (calculation, a, ox_number_multiply (calculation, b, whole));
}

/* ---- Powers, roots, logarithms ---- */

static const OxNumber *
power_whole (OxCalculation *calculation, const OxNumber *a, const OxNumber *b)
{
  gulong exponent;
  OxNumber *result;
  gboolean is_small = bits (a) == 1; /* 0, 1, -1 */

  if (mpq_sgn (b->q) < 0 && mpq_sgn (a->q) == 0) {
    ox_calculation_fail (calculation, "division by zero: 0 to a negative power");
    return NULL;
  }
  if (is_small) {
    gboolean odd = mpz_odd_p (mpq_numref (b->q));

    if (mpq_sgn (b->q) == 0 || (mpq_sgn (a->q) < 0 && !odd))
      return ox_number_from_integer (calculation, 1);
    return a;
  }
  if (!allow (calculation, (double) (bits (a) - 1) * fabs (mpz_get_d (mpq_numref (b->q)))))
    return NULL;
  /* It fits, since @a has at least 2 bits. */
  exponent = mpz_get_ui (mpq_numref (b->q));
  result = number_new (calculation);
  mpz_pow_ui (mpq_numref (result->q), mpq_numref (a->q), exponent);
  mpz_pow_ui (mpq_denref (result->q), mpq_denref (a->q), exponent);
  if (mpq_sgn (b->q) < 0)
    mpq_inv (result->q, result->q);
  return result;
}

const OxNumber *
ox_number_root (OxCalculation *calculation, const OxNumber *a, gulong n)
{
  long double d;

  if (!a)
    return NULL;
  if (n == 0 || n > MAX_ROOT) {
    ox_calculation_fail (calculation, "a root is of degree 1 to %d", MAX_ROOT);
    return NULL;
  }
  if (ox_number_sign (a) < 0 && n % 2 == 0) {
    ox_calculation_fail (calculation, "the root of a negative number is not a real number");
    return NULL;
  }
  if (a->is_exact) {
    OxNumber *root;
    gboolean is_exact;

    if (!allow (calculation, (double) bits (a)))
      return NULL;
    root = number_new (calculation);
    is_exact = mpz_root (mpq_numref (root->q), mpq_numref (a->q), n) != 0;
    is_exact = mpz_root (mpq_denref (root->q), mpq_denref (a->q), n) != 0 && is_exact;
    if (is_exact)
      return root;
  }
  d = ox_number_get_double (a);
  if (n == 2)
    d = sqrtl (d);
  else if (n == 3)
    d = cbrtl (d);
  else
    d = copysignl (powl (fabsl (d), 1.0L / n), d);
  return ox_number_from_double (calculation, d);
}

const OxNumber *
ox_number_power (OxCalculation *calculation, const OxNumber *a, const OxNumber *b)
{
  if (!a || !b)
    return NULL;
  if (a->is_exact && ox_number_is_integer (b))
    return power_whole (calculation, a, b);
  if (ox_number_sign (a) == 0 && ox_number_sign (b) < 0) {
    ox_calculation_fail (calculation, "division by zero: 0 to a negative power");
    return NULL;
  }
  if (a->is_exact && b->is_exact && mpz_cmp_ui (mpq_denref (b->q), MAX_ROOT) <= 0) {
    const OxNumber *root = ox_number_root (calculation, a, mpz_get_ui (mpq_denref (b->q)));

    if (!root)
      return NULL;
    if (root->is_exact) {
      OxNumber *whole = number_new (calculation);

      mpz_set (mpq_numref (whole->q), mpq_numref (b->q));
      return power_whole (calculation, root, whole);
    }
  }
  if (ox_number_sign (a) < 0 && !ox_number_is_integer (b)) {
    ox_calculation_fail (calculation, "a negative number to a broken power is not a real number");
    return NULL;
  }
  return ox_number_from_double (calculation, powl (ox_number_get_double (a), ox_number_get_double (b)));
}

/* The natural logarithm of a positive number of any size. */
static long double
natural_log (const OxNumber *a)
{
  long top, bottom;
  long double mantissa;

  if (!a->is_exact)
    return logl (a->d);
  top = (long) mpz_sizeinbase (mpq_numref (a->q), 2);
  bottom = (long) mpz_sizeinbase (mpq_denref (a->q), 2);
  if (labs (top - bottom) < LDBL_MAX_EXP - 8)
    return logl (ox_number_get_double (a));
  mantissa = (long double) mpz_get_d_2exp (&top, mpq_numref (a->q));
  mantissa /= (long double) mpz_get_d_2exp (&bottom, mpq_denref (a->q));
  return logl (mantissa) + (long double) (top - bottom) * LN2;
}

static gboolean
check_log (OxCalculation *calculation, const OxNumber *a)
{
  if (ox_number_sign (a) > 0)
    return TRUE;
  ox_calculation_fail (calculation, "the logarithm of a number that is not positive is not a real number");
  return FALSE;
}

const OxNumber *
ox_number_ln (OxCalculation *calculation, const OxNumber *a)
{
  if (!a || !check_log (calculation, a))
    return NULL;
  if (a->is_exact && mpq_cmp_ui (a->q, 1, 1) == 0)
    return ox_number_from_integer (calculation, 0);
  return ox_number_from_double (calculation, natural_log (a));
}

const OxNumber *
ox_number_log (OxCalculation *calculation, const OxNumber *a, const OxNumber *base)
{
  long double value;

  if (!a || !base || !check_log (calculation, a) || !check_log (calculation, base))
    return NULL;
  value = natural_log (base);
  if (value == 0) {
    ox_calculation_fail (calculation, "there is no logarithm to base 1");
    return NULL;
  }
  value = natural_log (a) / value;
  if (a->is_exact && base->is_exact && fabsl (value) < MAX_BITS) {
    long double whole = roundl (value);
    const OxNumber *exponent = ox_number_from_integer (calculation, (long) whole);

    /* Only then is the power of a size that is worth trying. */
    if (fabsl (value - whole) < 1e-9L) {
      const OxNumber *power = ox_number_power (calculation, base, exponent);

      if (!power)
        return NULL;
      if (mpq_equal (power->q, a->q))
        return exponent;
    }
  }
  return ox_number_from_double (calculation, value);
}

/* ---- Whole numbers ---- */

const OxNumber *
ox_number_factorial (OxCalculation *calculation, const OxNumber *a)
{
  OxNumber *result;
  long n;

  if (!a)
    return NULL;
  if (!ox_number_is_integer (a) || ox_number_sign (a) < 0) {
    ox_calculation_fail (calculation, "the factorial is there for whole numbers from 0 on");
    return NULL;
  }
  /* log2 n!, by way of the gamma function. */
  if (!allow (calculation, ox_number_get_long (a, &n) ? lgamma ((double) n + 1) / (double) LN2 : INFINITY))
    return NULL;
  result = number_new (calculation);
  mpz_fac_ui (mpq_numref (result->q), (gulong) n);
  return result;
}

/* (low + 1) … high: by halves, so that large numbers meet large ones. */
static void
multiply_range (mpz_t product, gulong low, gulong high)
{
  mpz_t second;

  if (high - low < 16) {
    mpz_set_ui (product, 1);
    for (gulong i = low + 1; i <= high; i++)
      mpz_mul_ui (product, product, i);
    return;
  }
  mpz_init (second);
  multiply_range (product, low, low + (high - low) / 2);
  multiply_range (second, low + (high - low) / 2, high);
  mpz_mul (product, product, second);
  mpz_clear (second);
}

const OxNumber *
ox_number_choose (OxCalculation *calculation, const OxNumber *n, const OxNumber *k, gboolean ordered)
{
  OxNumber *result;
  long top, count;
  double size;

  if (!n || !k)
    return NULL;
  if (!ox_number_get_long (n, &top) || !ox_number_get_long (k, &count) || top < 0 || count < 0) {
    ox_calculation_fail (calculation, "nCr and nPr take whole numbers from 0 on");
    return NULL;
  }
  if (count > top)
    return ox_number_from_integer (calculation, 0);
  if (!ordered)
    count = MIN (count, top - count);
  size = (double) count * log2 ((double) top + 1) + 1;
  if (!allow (calculation, size))
    return NULL;
  result = number_new (calculation);
  if (ordered) {
    multiply_range (mpq_numref (result->q), (gulong) (top - count), (gulong) top);
  } else {
    mpz_bin_uiui (mpq_numref (result->q), (gulong) top, (gulong) count);
  }
  return result;
}

static gboolean
check_whole (OxCalculation *calculation, const OxNumber *a, const OxNumber *b)
{
  if (ox_number_is_integer (a) && ox_number_is_integer (b))
    return TRUE;
  ox_calculation_fail (calculation, "gcd and lcm take whole numbers");
  return FALSE;
}

const OxNumber *
ox_number_gcd (OxCalculation *calculation, const OxNumber *a, const OxNumber *b)
{
  OxNumber *result;

  if (!a || !b || !check_whole (calculation, a, b) || !allow (calculation, (double) MAX (bits (a), bits (b))))
    return NULL;
  result = number_new (calculation);
  mpz_gcd (mpq_numref (result->q), mpq_numref (a->q), mpq_numref (b->q));
  return result;
}

const OxNumber *
ox_number_lcm (OxCalculation *calculation, const OxNumber *a, const OxNumber *b)
{
  OxNumber *result;

  if (!a || !b || !check_whole (calculation, a, b) || !allow (calculation, (double) bits (a) + bits (b)))
    return NULL;
  result = number_new (calculation);
  mpz_lcm (mpq_numref (result->q), mpq_numref (a->q), mpq_numref (b->q));
  return result;
}
