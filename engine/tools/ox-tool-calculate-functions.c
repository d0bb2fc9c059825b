/* Functions and constants of the calculator.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "tools/ox-tool-calculate-private.h"

#include <math.h>
#include <string.h>

#define PI 3.141592653589793238462643383279502884L
#define E 2.718281828459045235360287471352662498L
#define MAX_ROUND_DIGITS 1000

static const OxQuantity nothing = { 0 };

/* ---- Arguments ---- */

/* The number of an argument that may not have a unit; NULL with an error. */
static const OxNumber *
plain (OxCalculation *calculation, const OxQuantity *a)
{
  OxQuantity without = ox_quantity_drop_radians (calculation, a);

  if (without.value && !ox_quantity_is_plain (&without)) {
    g_autofree char *unit = ox_unit_product_to_text (&a->units);

    ox_calculation_fail (calculation, "this function takes plain numbers, not “%s”", unit);
    return NULL;
  }
  return without.value;
}

/* A number with the unit of @like. */
static OxQuantity
with_units (OxCalculation *calculation, const OxNumber *shown, const OxQuantity *like)
{
  return ox_quantity_is_plain (like) ? ox_quantity_plain (shown) : ox_quantity_new (calculation, shown, &like->units);
}

static OxQuantity
integer (OxCalculation *calculation, long value)
{
  return ox_quantity_plain (ox_number_from_integer (calculation, value));
}

/* ---- Roots and powers ---- */

static OxQuantity
run_sqrt (OxCalculation *calculation, const OxQuantity *arguments, guint n)
{
  return ox_quantity_root (calculation, &arguments[0], 2);
}

static OxQuantity
run_cbrt (OxCalculation *calculation, const OxQuantity *arguments, guint n)
{
  return ox_quantity_root (calculation, &arguments[0], 3);
}

static OxQuantity
run_root (OxCalculation *calculation, const OxQuantity *arguments, guint n)
{
  const OxNumber *degree = plain (calculation, &arguments[1]);
  long value;

  if (!degree)
    return nothing;
  if (!ox_number_get_long (degree, &value) || value < 1 || value > 1000) {
    ox_calculation_fail (calculation, "root (x, n) takes a whole number from 1 to 1000 as n");
    return nothing;
  }
  return ox_quantity_root (calculation, &arguments[0], (gulong) value);
}

static OxQuantity
run_pow (OxCalculation *calculation, const OxQuantity *arguments, guint n)
{
  return ox_quantity_power (calculation, &arguments[0], &arguments[1]);
}

static OxQuantity
run_exp (OxCalculation *calculation, const OxQuantity *arguments, guint n)
{
  const OxNumber *x = plain (calculation, &arguments[0]);

  if (!x)
    return nothing;
  if (x->is_exact && ox_number_sign (x) == 0)
    return integer (calculation, 1);
  return ox_quantity_plain (ox_number_from_double (calculation, expl (ox_number_get_double (x))));
}

static OxQuantity
run_ln (OxCalculation *calculation, const OxQuantity *arguments, guint n)
{
  return ox_quantity_plain (ox_number_ln (calculation, plain (calculation, &arguments[0])));
}

static OxQuantity
log_to_base (OxCalculation *calculation, const OxQuantity *a, const OxNumber *base)
{
  return ox_quantity_plain (ox_number_log (calculation, plain (calculation, a), base));
}

static OxQuantity
run_log (OxCalculation *calculation, const OxQuantity *arguments, guint n)
{
  return log_to_base (calculation, &arguments[0],
                      n > 1 ? plain (calculation, &arguments[1]) : ox_number_from_integer (calculation, 10));
}

static OxQuantity
run_log2 (OxCalculation *calculation, const OxQuantity *arguments, guint n)
{
  return log_to_base (calculation, &arguments[0], ox_number_from_integer (calculation, 2));
}

/* ---- Rounding ---- */

static OxQuantity
round_shown (OxCalculation *calculation, const OxQuantity *a, OxRound how)
{
  if (!a->value)
    return nothing;
  return with_units (calculation, ox_number_round (calculation, ox_quantity_get_shown (calculation, a), how), a);
}

static OxQuantity
run_floor (OxCalculation *calculation, const OxQuantity *arguments, guint n)
{
  return round_shown (calculation, &arguments[0], OX_ROUND_DOWN);
}

static OxQuantity
run_ceil (OxCalculation *calculation, const OxQuantity *arguments, guint n)
{
  return round_shown (calculation, &arguments[0], OX_ROUND_UP);
}

static OxQuantity
run_trunc (OxCalculation *calculation, const OxQuantity *arguments, guint n)
{
  return round_shown (calculation, &arguments[0], OX_ROUND_TO_ZERO);
}

/* round (x, digits behind the point) */
static OxQuantity
run_round (OxCalculation *calculation, const OxQuantity *arguments, guint n)
{
  const OxNumber *digits, *scale, *shown;
  long value;

  if (n < 2)
    return round_shown (calculation, &arguments[0], OX_ROUND_NEAREST);
  digits = plain (calculation, &arguments[1]);
  if (!digits || !arguments[0].value)
    return nothing;
  if (!ox_number_get_long (digits, &value) || value < -MAX_ROUND_DIGITS || value > MAX_ROUND_DIGITS) {
    ox_calculation_fail (calculation, "round (x, n) takes a whole number from %d to %d as n", -MAX_ROUND_DIGITS,
                         MAX_ROUND_DIGITS);
    return nothing;
  }
  scale = ox_number_power (calculation, ox_number_from_integer (calculation, 10), digits);
  shown = ox_number_multiply (calculation, ox_quantity_get_shown (calculation, &arguments[0]), scale);
  shown = ox_number_round (calculation, shown, OX_ROUND_NEAREST);
  return with_units (calculation, ox_number_divide (calculation, shown, scale), &arguments[0]);
}

static OxQuantity
run_abs (OxCalculation *calculation, const OxQuantity *arguments, guint n)
{
  const OxNumber *shown = arguments[0].value ? ox_quantity_get_shown (calculation, &arguments[0]) : NULL;

  if (!shown)
    return nothing;
  return ox_number_sign (shown) < 0 ? ox_quantity_negate (calculation, &arguments[0]) : arguments[0];
}

static OxQuantity
run_sign (OxCalculation *calculation, const OxQuantity *arguments, guint n)
{
  return arguments[0].value ? integer (calculation, ox_number_sign (arguments[0].value)) : nothing;
}

/* ---- Of several ---- */

static OxQuantity
extreme (OxCalculation *calculation, const OxQuantity *arguments, guint n, int sign)
{
  OxQuantity best = arguments[0];

  for (guint i = 1; i < n; i++) {
    if (!best.value || !arguments[i].value)
      return nothing;
    if (!ox_unit_product_is_alike (&best.units, &arguments[i].units)) {
      ox_calculation_fail (calculation, "only quantities of one kind can be compared");
      return nothing;
    }
    if (ox_number_compare (calculation, arguments[i].value, best.value) * sign > 0)
      best = arguments[i];
  }
  return best;
}

static OxQuantity
run_min (OxCalculation *calculation, const OxQuantity *arguments, guint n)
{
  return extreme (calculation, arguments, n, -1);
}

static OxQuantity
run_max (OxCalculation *calculation, const OxQuantity *arguments, guint n)
{
  return extreme (calculation, arguments, n, 1);
}

static OxQuantity
run_sum (OxCalculation *calculation, const OxQuantity *arguments, guint n)
{
  OxQuantity sum = arguments[0];

  for (guint i = 1; i < n; i++)
    sum = ox_quantity_add (calculation, &sum, &arguments[i], FALSE);
  return sum;
}

static OxQuantity
run_mean (OxCalculation *calculation, const OxQuantity *arguments, guint n)
{
  OxQuantity sum = run_sum (calculation, arguments, n);
  OxQuantity count = integer (calculation, (long) n);

  return ox_quantity_multiply (calculation, &sum, &count, TRUE);
}

static OxQuantity
run_gcd (OxCalculation *calculation, const OxQuantity *arguments, guint n)
{
  const OxNumber *result = plain (calculation, &arguments[0]);

  for (guint i = 1; i < n; i++)
    result = ox_number_gcd (calculation, result, plain (calculation, &arguments[i]));
  return ox_quantity_plain (result);
}

static OxQuantity
run_lcm (OxCalculation *calculation, const OxQuantity *arguments, guint n)
{
  const OxNumber *result = plain (calculation, &arguments[0]);

  for (guint i = 1; i < n; i++)
    result = ox_number_lcm (calculation, result, plain (calculation, &arguments[i]));
  return ox_quantity_plain (result);
}

static OxQuantity
run_choose (OxCalculation *calculation, const OxQuantity *arguments, guint n)
{
  return ox_quantity_plain (
    ox_number_choose (calculation, plain (calculation, &arguments[0]), plain (calculation, &arguments[1]), FALSE));
}

static OxQuantity
run_permute (OxCalculation *calculation, const OxQuantity *arguments, guint n)
{
  return ox_quantity_plain (
    ox_number_choose (calculation, plain (calculation, &arguments[0]), plain (calculation, &arguments[1]), TRUE));
}

static OxQuantity
run_factorial (OxCalculation *calculation, const OxQuantity *arguments, guint n)
{
  return ox_quantity_plain (ox_number_factorial (calculation, plain (calculation, &arguments[0])));
}

static OxQuantity
run_mod (OxCalculation *calculation, const OxQuantity *arguments, guint n)
{
  return ox_quantity_plain (
    ox_number_modulo (calculation, plain (calculation, &arguments[0]), plain (calculation, &arguments[1])));
}

static OxQuantity
run_hypot (OxCalculation *calculation, const OxQuantity *arguments, guint n)
{
  OxQuantity a = ox_quantity_multiply (calculation, &arguments[0], &arguments[0], FALSE);
  OxQuantity b = ox_quantity_multiply (calculation, &arguments[1], &arguments[1], FALSE);
  OxQuantity sum = ox_quantity_add (calculation, &a, &b, FALSE);

  return ox_quantity_root (calculation, &sum, 2);
}

/* ---- Angles ---- */

/* @a as radians: a plain number is that already. With @parts the angle's 24th parts of a turn, 0…23, or -1 when it is not a whole
 * number of them: there some values are exact. FALSE with an error. */
static gboolean
get_angle (OxCalculation *calculation, const OxQuantity *a, long double *radians, int *parts)
{
  OxUnitProduct turn;

  *parts = -1;
  ox_unit_product_parse ("turn", &turn);
  if (!a->value)
    return FALSE;
  if (ox_unit_product_is_alike (&a->units, &turn)) {
    const OxNumber *rest = ox_number_modulo (calculation, a->value, ox_number_from_integer (calculation, 1));
    const OxNumber *part = ox_number_multiply (calculation, rest, ox_number_from_integer (calculation, 24));
    long value;

    if (!part)
      return FALSE;
    if (ox_number_get_long (part, &value))
      *parts = (int) value;
    *radians = ox_number_get_double (rest) * 2 * PI;
    return TRUE;
  }
  {
    const OxNumber *number = plain (calculation, a);

    if (!number)
      return FALSE;
    *radians = ox_number_get_double (number);
    if (number->is_exact && ox_number_sign (number) == 0)
      *parts = 0;
    if (!isfinite (*radians)) {
      ox_calculation_fail (calculation, "the angle is too large");
      return FALSE;
    }
    return TRUE;
  }
}

/* The sine where it is a half or whole: at 24th parts of a turn. */
static gboolean
get_exact_sine (int parts, int *halves)
{
  static const int sines[24] = { [2] = 1, [6] = 2, [10] = 1, [14] = -1, [18] = -2, [22] = -1 };

  if (parts < 0)
    return FALSE;
  parts %= 24;
  *halves = sines[parts];
  return *halves != 0 || parts % 12 == 0;
}

static OxQuantity
from_halves (OxCalculation *calculation, int halves)
{
  return ox_quantity_plain (ox_number_divide (calculation, ox_number_from_integer (calculation, halves),
                                              ox_number_from_integer (calculation, 2)));
}

static OxQuantity
run_sin (OxCalculation *calculation, const OxQuantity *arguments, guint n)
{
  long double angle;
  int parts, halves;

  if (!get_angle (calculation, &arguments[0], &angle, &parts))
    return nothing;
  if (get_exact_sine (parts, &halves))
    return from_halves (calculation, halves);
  return ox_quantity_plain (ox_number_from_double (calculation, sinl (angle)));
}

static OxQuantity
run_cos (OxCalculation *calculation, const OxQuantity *arguments, guint n)
{
  long double angle;
  int parts, halves;

  if (!get_angle (calculation, &arguments[0], &angle, &parts))
    return nothing;
  if (parts >= 0 && get_exact_sine (parts + 6, &halves))
    return from_halves (calculation, halves);
  return ox_quantity_plain (ox_number_from_double (calculation, cosl (angle)));
}

static OxQuantity
run_tan (OxCalculation *calculation, const OxQuantity *arguments, guint n)
{
  long double angle;
  int parts;

  if (!get_angle (calculation, &arguments[0], &angle, &parts))
    return nothing;
  if (parts >= 0 && parts % 12 == 6) {
    ox_calculation_fail (calculation, "the tangent of a right angle is not a number");
    return nothing;
  }
  if (parts >= 0 && parts % 3 == 0)
    return integer (calculation, parts % 12 == 0 ? 0 : parts % 12 == 3 ? 1 : -1);
  return ox_quantity_plain (ox_number_from_double (calculation, tanl (angle)));
}

/* An angle of @radians, which can be asked for in degrees. */
static OxQuantity
from_radians (OxCalculation *calculation, long double radians)
{
  OxUnitProduct unit;

  if (isnan (radians)) {
    ox_calculation_fail (calculation, "asin and acos take numbers from -1 to 1");
    return nothing;
  }
  ox_unit_product_parse ("rad", &unit);
  return ox_quantity_new (calculation, ox_number_from_double (calculation, radians), &unit);
}

#define INVERSE(name)                                                                                                  \
  static OxQuantity run_##name (OxCalculation *calculation, const OxQuantity *arguments, guint n)                      \
  {                                                                                                                    \
    const OxNumber *x = plain (calculation, &arguments[0]);                                                            \
                                                                                                                       \
    return x ? from_radians (calculation, name##l (ox_number_get_double (x))) : nothing;                               \
  }

INVERSE (asin)
INVERSE (acos)
INVERSE (atan)

static OxQuantity
run_atan2 (OxCalculation *calculation, const OxQuantity *arguments, guint n)
{
  const OxNumber *y = plain (calculation, &arguments[0]), *x = plain (calculation, &arguments[1]);

  if (!x || !y)
    return nothing;
  return from_radians (calculation, atan2l (ox_number_get_double (y), ox_number_get_double (x)));
}

#define HYPERBOLIC(name)                                                                                               \
  static OxQuantity run_##name (OxCalculation *calculation, const OxQuantity *arguments, guint n)                      \
  {                                                                                                                    \
    const OxNumber *x = plain (calculation, &arguments[0]);                                                            \
                                                                                                                       \
    if (!x)                                                                                                            \
      return nothing;                                                                                                  \
    return ox_quantity_plain (ox_number_from_double (calculation, name##l (ox_number_get_double (x))));                \
  }

HYPERBOLIC (sinh)
HYPERBOLIC (cosh)
HYPERBOLIC (tanh)

/* degrees (x): a plain number of radians in degrees, as Python has it. */
static OxQuantity
run_degrees (OxCalculation *calculation, const OxQuantity *arguments, guint n)
{
  const OxNumber *x = plain (calculation, &arguments[0]);

  if (!x)
    return nothing;
  return ox_quantity_plain (ox_number_from_double (calculation, ox_number_get_double (x) * (180 / PI)));
}

static OxQuantity
run_radians (OxCalculation *calculation, const OxQuantity *arguments, guint n)
{
  const OxNumber *x = plain (calculation, &arguments[0]);

  if (!x)
    return nothing;
  return ox_quantity_plain (ox_number_from_double (calculation, ox_number_get_double (x) * (PI / 180)));
}

/* ---- Names ---- */

static const OxCalculateFunction functions[] = {
  { "|sqrt|", 1, 1, run_sqrt },
  { "|cbrt|", 1, 1, run_cbrt },
  { "|root|", 2, 2, run_root },
  { "|pow|power|", 2, 2, run_pow },
  { "|exp|", 1, 1, run_exp },
  { "|ln|", 1, 1, run_ln },
  { "|log|", 1, 2, run_log },
  { "|log10|lg|", 1, 1, run_log },
  { "|log2|lb|ld|", 1, 1, run_log2 },
  { "|floor|", 1, 1, run_floor },
  { "|ceil|ceiling|", 1, 1, run_ceil },
  { "|trunc|int|", 1, 1, run_trunc },
  { "|round|", 1, 2, run_round },
  { "|abs|", 1, 1, run_abs },
  { "|sign|sgn|", 1, 1, run_sign },
  { "|min|", 1, OX_CALCULATE_MAX_ARGUMENTS, run_min },
  { "|max|", 1, OX_CALCULATE_MAX_ARGUMENTS, run_max },
  { "|sum|", 1, OX_CALCULATE_MAX_ARGUMENTS, run_sum },
  { "|mean|avg|average|", 1, OX_CALCULATE_MAX_ARGUMENTS, run_mean },
  { "|gcd|", 1, OX_CALCULATE_MAX_ARGUMENTS, run_gcd },
  { "|lcm|", 1, OX_CALCULATE_MAX_ARGUMENTS, run_lcm },
  { "|ncr|comb|binomial|binom|choose|", 2, 2, run_choose },
  { "|npr|perm|", 2, 2, run_permute },
  { "|factorial|fact|", 1, 1, run_factorial },
  { "|mod|", 2, 2, run_mod },
  { "|hypot|", 2, 2, run_hypot },
  { "|sin|", 1, 1, run_sin },
  { "|cos|", 1, 1, run_cos },
  { "|tan|", 1, 1, run_tan },
  { "|asin|arcsin|", 1, 1, run_asin },
  { "|acos|arccos|", 1, 1, run_acos },
  { "|atan|arctan|", 1, 1, run_atan },
  { "|atan2|", 2, 2, run_atan2 },
  { "|sinh|", 1, 1, run_sinh },
  { "|cosh|", 1, 1, run_cosh },
  { "|tanh|", 1, 1, run_tanh },
  { "|degrees|deg|", 1, 1, run_degrees },
  { "|radians|rad|", 1, 1, run_radians },
};

const OxCalculateFunction *
ox_calculate_find_function (const char *name, gsize len)
{
  g_autofree char *lower = g_ascii_strdown (name, (gssize) len);
  g_autofree char *key = g_strdup_printf ("|%s|", lower);

  for (gsize i = 0; i < G_N_ELEMENTS (functions); i++)
    if (strstr (functions[i].names, key))
      return &functions[i];
  return NULL;
}

gboolean
ox_calculate_find_constant (OxCalculation *calculation, const char *name, gsize len, OxQuantity *value)
{
  static const struct {
    const char *name;
    long double value;
  } constants[] = {
    { "pi", PI }, { "π", PI }, { "e", E }, { "tau", 2 * PI }, { "phi", 1.618033988749894848204586834365638118L },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (constants); i++) {
    if (strlen (constants[i].name) == len && g_ascii_strncasecmp (constants[i].name, name, len) == 0) {
      *value = ox_quantity_plain (ox_number_from_double (calculation, constants[i].value));
      return TRUE;
    }
  }
  return FALSE;
}
