/* Numbers for the calculator: rationals of any size, exact as long as they can be, else long double.
 *
 * A calculation owns all numbers made in it, so that formulas read as formulas, and bounds their size and the work: a model may write
 * 9^9^9^9. What cannot be done sets the calculation's error, once, and gives NULL; every operation takes NULL and gives it on.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <gio/gio.h>
#include <gmp.h>

typedef struct {
  gboolean is_exact;
  mpq_t q;       /* canonical; for an exact number */
  long double d; /* finite; for one that is not */
} OxNumber;

typedef struct _OxCalculation OxCalculation;

OxCalculation *ox_calculation_new (GCancellable *cancellable);
void ox_calculation_free (OxCalculation *calculation);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (OxCalculation, ox_calculation_free)
/* Keeps the first error. */
void ox_calculation_fail (OxCalculation *calculation, const char *format, ...) G_GNUC_PRINTF (2, 3);
/* Hands the error out; FALSE when there was none. */
gboolean ox_calculation_take_error (OxCalculation *calculation, GError **error);

const OxNumber *ox_number_from_integer (OxCalculation *calculation, long integer);
const OxNumber *ox_number_from_double (OxCalculation *calculation, long double d);
/* "12", "0.1", "1e-3", "25/9": exact. */
const OxNumber *ox_number_parse (OxCalculation *calculation, const char *text, gsize len);
/* @base 2, 8 or 16. */
const OxNumber *ox_number_parse_digits (OxCalculation *calculation, const char *digits, gsize len, int base);

const OxNumber *ox_number_add (OxCalculation *calculation, const OxNumber *a, const OxNumber *b);
const OxNumber *ox_number_subtract (OxCalculation *calculation, const OxNumber *a, const OxNumber *b);
const OxNumber *ox_number_multiply (OxCalculation *calculation, const OxNumber *a, const OxNumber *b);
const OxNumber *ox_number_divide (OxCalculation *calculation, const OxNumber *a, const OxNumber *b);
const OxNumber *ox_number_negate (OxCalculation *calculation, const OxNumber *a);
/* Exact for whole exponents, and for roots that are. */
const OxNumber *ox_number_power (OxCalculation *calculation, const OxNumber *a, const OxNumber *b);
/* The real root of degree @n. */
const OxNumber *ox_number_root (OxCalculation *calculation, const OxNumber *a, gulong n);

typedef enum {
  OX_ROUND_DOWN, /* floor */
  OX_ROUND_UP,
  OX_ROUND_TO_ZERO,
  OX_ROUND_NEAREST, /* half: away from zero */
} OxRound;

const OxNumber *ox_number_round (OxCalculation *calculation, const OxNumber *a, OxRound how);
/* floor (a / b) and a - b floor (a / b), as in Python. */
const OxNumber *ox_number_floor_divide (OxCalculation *calculation, const OxNumber *a, const OxNumber *b);
const OxNumber *ox_number_modulo (OxCalculation *calculation, const OxNumber *a, const OxNumber *b);
const OxNumber *ox_number_factorial (OxCalculation *calculation, const OxNumber *a);
/* n! / ((n - k)! k!), and with @ordered n! / (n - k)! */
const OxNumber *ox_number_choose (OxCalculation *calculation, const OxNumber *n, const OxNumber *k, gboolean ordered);
const OxNumber *ox_number_gcd (OxCalculation *calculation, const OxNumber *a, const OxNumber *b);
const OxNumber *ox_number_lcm (OxCalculation *calculation, const OxNumber *a, const OxNumber *b);
/* Logarithm of @a to base @base; exact when it is a whole number. */
const OxNumber *ox_number_log (OxCalculation *calculation, const OxNumber *a, const OxNumber *base);
const OxNumber *ox_number_ln (OxCalculation *calculation, const OxNumber *a);

int ox_number_compare (OxCalculation *calculation, const OxNumber *a, const OxNumber *b);
int ox_number_sign (const OxNumber *a);
gboolean ox_number_is_integer (const OxNumber *a);
/* FALSE when it is not a whole number of this range. */
gboolean ox_number_get_long (const OxNumber *a, long *value);
/* Infinite when out of range. */
long double ox_number_get_double (const OxNumber *a);

/* @decimal: up to OX_NUMBER_DIGITS significant digits, or all when they are few enough; @is_rounded says whether that is not the whole
 * number. @exact: the number as a fraction, or an integer as 2.5e+1000 cannot show it; NULL when @decimal says all or nothing short does. */
#define OX_NUMBER_DIGITS 15
void ox_number_format (const OxNumber *a, char **decimal, char **exact, gboolean *is_rounded);
