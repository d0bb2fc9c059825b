/* Numbers with units.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "tools/ox-quantity.h"

#include <stdlib.h>
#include <string.h>

#include "tools/ox-tool-json.h"

static const OxQuantity nothing = { 0 };

OxQuantity
ox_quantity_plain (const OxNumber *value)
{
  return (OxQuantity) { .value = value };
}

gboolean
ox_quantity_is_plain (const OxQuantity *a)
{
  return a->units.n_terms == 0;
}

OxQuantity
ox_quantity_new (OxCalculation *calculation, const OxNumber *value, const OxUnitProduct *units)
{
  const char *offset = ox_unit_product_get_offset (units);
  OxQuantity quantity = { .units = *units, .is_point = offset != NULL };

  quantity.value = ox_number_multiply (calculation, value, ox_unit_product_get_factor (calculation, units));
  if (offset)
    quantity.value =
      ox_number_add (calculation, quantity.value, ox_number_parse (calculation, offset, strlen (offset)));
  if (ox_unit_product_reduce (&quantity.units))
    quantity.is_point = FALSE;
  return quantity;
}

const OxNumber *
ox_quantity_get_shown (OxCalculation *calculation, const OxQuantity *a)
{
  const OxNumber *value = a->value;

  if (a->is_point) {
    const char *offset = ox_unit_product_get_offset (&a->units);

    value = ox_number_subtract (calculation, value, ox_number_parse (calculation, offset, strlen (offset)));
  }
  return ox_number_divide (calculation, value, ox_unit_product_get_factor (calculation, &a->units));
}

/* What a message calls it. */
static char *
describe (const OxQuantity *a)
{
  g_autofree char *text = ox_unit_product_to_text (&a->units);

  return text[0] != '\0' ? g_strdup_printf ("“%s”", text) : g_strdup ("a plain number");
}

static OxQuantity
refuse_point (OxCalculation *calculation)
{
  ox_calculation_fail (calculation,
                       "temperatures in °C and °F can be converted, compared and moved by differences in K; "
                       "convert them to K for anything else");
  return nothing;
}

OxQuantity
ox_quantity_negate (OxCalculation *calculation, const OxQuantity *a)
{
  OxQuantity result = *a;

  if (!a->value)
    return nothing;
  /* -5 °C is below zero, not the opposite of a temperature. */
  if (a->is_point)
    return ox_quantity_new (calculation, ox_number_negate (calculation, ox_quantity_get_shown (calculation, a)),
                            &a->units);
  result.value = ox_number_negate (calculation, a->value);
  return result;
}

/* Radians are both a unit and none. */
static gboolean
is_in_radians (const OxQuantity *a)
{
  return a->units.n_terms == 1 && a->units.terms[0].exponent == 1 && !a->units.terms[0].prefix &&
         a->units.terms[0].unit->flags & OX_UNIT_IRRATIONAL;
}

OxQuantity
ox_quantity_drop_radians (OxCalculation *calculation, const OxQuantity *a)
{
  if (!a->value || !is_in_radians (a))
    return *a;
  return ox_quantity_plain (ox_quantity_get_shown (calculation, a));
}

OxQuantity
ox_quantity_add (OxCalculation *calculation, const OxQuantity *a, const OxQuantity *b, gboolean subtract)
{
  OxQuantity first = *a, other = *b, result;
  const OxNumber *second;

  if (ox_quantity_is_plain (a) != ox_quantity_is_plain (b)) {
    first = ox_quantity_drop_radians (calculation, a);
    other = ox_quantity_drop_radians (calculation, b);
    a = &first;
    b = &other;
  }
  result = *a;
  second = b->value;
  if (!a->value || !b->value)
    return nothing;
  if (b->is_percent && !a->is_percent) {
    if (a->is_point)
      return refuse_point (calculation);
    second = ox_number_multiply (calculation, a->value, b->value);
  } else if (!ox_unit_product_is_alike (&a->units, &b->units)) {
    g_autofree char *left = describe (a);
    g_autofree char *right = describe (b);

    ox_calculation_fail (calculation, "%s and %s cannot be %s", left, right, subtract ? "subtracted" : "added");
    return nothing;
  } else if (b->is_point) {
    if (!subtract)
      return refuse_point (calculation);
    /* Of two temperatures comes a difference. */
    if (a->is_point) {
      result.is_point = FALSE;
      result.units.n_terms = 0;
      ox_unit_product_parse ("K", &result.units);
    } else {
      return refuse_point (calculation);
    }
  }
  result.value =
    subtract ? ox_number_subtract (calculation, a->value, second) : ox_number_add (calculation, a->value, second);
  return result;
}

OxQuantity
ox_quantity_multiply (OxCalculation *calculation, const OxQuantity *a, const OxQuantity *b, gboolean divide)
{
  OxQuantity result = { .units = a->units };

  if (!a->value || !b->value)
    return nothing;
  if (a->is_point || b->is_point)
    return refuse_point (calculation);
  if (!ox_unit_product_multiply (&result.units, &b->units, divide ? -1 : 1)) {
    ox_calculation_fail (calculation, "there are too many units in a product");
    return nothing;
  }
  ox_unit_product_reduce (&result.units);
  result.value =
    divide ? ox_number_divide (calculation, a->value, b->value) : ox_number_multiply (calculation, a->value, b->value);
  return result;
}

OxQuantity
ox_quantity_power (OxCalculation *calculation, const OxQuantity *a, const OxQuantity *b)
{
  OxQuantity result = { 0 };
  const OxUnitProduct none = { 0 };
  OxUnitProduct base = a->units;
  long exponent = 0;

  if (!a->value || !b->value)
    return nothing;
  if (!ox_quantity_is_plain (b)) {
    ox_calculation_fail (calculation, "an exponent cannot have a unit");
    return nothing;
  }
  if (a->is_point)
    return refuse_point (calculation);
  result.value = ox_number_power (calculation, a->value, b->value);
  if (ox_quantity_is_plain (a))
    return result;
  if (!ox_number_get_long (b->value, &exponent) || exponent < -20 || exponent > 20) {
    ox_calculation_fail (calculation, "a number with a unit can be raised to whole powers from -20 to 20");
    return nothing;
  }
  result.units = none;
  for (long i = 0; i < labs (exponent); i++) {
    if (!ox_unit_product_multiply (&result.units, &base, exponent < 0 ? -1 : 1)) {
      ox_calculation_fail (calculation, "there are too many units in a product");
      return nothing;
    }
  }
  return result;
}

OxQuantity
ox_quantity_root (OxCalculation *calculation, const OxQuantity *a, gulong n)
{
  OxQuantity result = *a;

  if (!a->value)
    return nothing;
  if (a->is_point)
    return refuse_point (calculation);
  for (guint i = 0; i < a->units.n_terms; i++) {
    if (a->units.terms[i].exponent % (int) n != 0) {
      g_autofree char *text = describe (a);

      ox_calculation_fail (calculation, "%s has no root", text);
      return nothing;
    }
    result.units.terms[i].exponent /= (int) n;
  }
  result.is_percent = FALSE;
  result.value = ox_number_root (calculation, a->value, n);
  return result;
}

OxQuantity
ox_quantity_convert (OxCalculation *calculation, const OxQuantity *a, const OxUnitProduct *units)
{
  OxQuantity result = *a;

  if (!a->value)
    return nothing;
  result.units = *units;
  result.is_percent = FALSE;
  if (ox_unit_product_is_alike (&a->units, units)) {
    /* A difference of temperatures stays one; 300 K is both. */
    result.is_point = ox_unit_product_get_offset (units) != NULL;
    return result;
  }
  {
    OxUnitProduct turned = { 0 };

    ox_unit_product_multiply (&turned, units, -1);
    if (ox_unit_product_is_fuel (units) && ox_unit_product_is_alike (&a->units, &turned)) {
      result.value = ox_number_divide (calculation, ox_number_from_integer (calculation, 1), a->value);
      return result;
    }
  }
  {
    g_autofree char *from = describe (a);
    g_autofree char *to = ox_unit_product_to_text (units);

    ox_calculation_fail (calculation, "%s cannot be converted to “%s”: they do not measure the same", from, to);
    return nothing;
  }
}

char *
ox_quantity_to_json (OxCalculation *calculation, const OxQuantity *a)
{
  const OxNumber *shown = a->value ? ox_quantity_get_shown (calculation, a) : NULL;
  g_autofree char *unit = ox_unit_product_to_text (&a->units);
  g_autofree char *decimal = NULL;
  g_autofree char *exact = NULL;
  g_autofree char *result = NULL;
  const char *space = unit[0] != '\0' && strcmp (unit, "°") != 0 ? " " : "";
  gboolean is_rounded;
  yyjson_mut_doc *doc;
  yyjson_mut_val *root;

  if (!shown)
    return NULL;
  ox_number_format (shown, &decimal, &exact, &is_rounded);
  result = g_strconcat (decimal, space, unit, NULL);
  doc = yyjson_mut_doc_new (NULL);
  root = yyjson_mut_obj (doc);
  yyjson_mut_doc_set_root (doc, root);
  yyjson_mut_obj_add_strcpy (doc, root, "result", result);
  if (exact) {
    g_autofree char *fraction = g_strconcat (exact, space, unit, NULL);

    yyjson_mut_obj_add_strcpy (doc, root, "exact", fraction);
  }
  if (is_rounded) {
    g_autofree char *note = g_strdup_printf ("rounded to %d significant digits", OX_NUMBER_DIGITS);

    yyjson_mut_obj_add_strcpy (doc, root, "note", note);
  }
  return ox_tool_write_json (doc);
}
