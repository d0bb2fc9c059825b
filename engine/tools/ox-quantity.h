/* Numbers with units.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "tools/ox-units.h"

/* @value: in base units; NULL after an error, which the calculation holds. @units: how it is shown. @is_point: a temperature on a scale
 * whose zero is somewhere, not a difference of temperatures. */
typedef struct {
  const OxNumber *value;
  OxUnitProduct units;
  gboolean is_point;
  gboolean is_percent; /* written as such just now: "20 %" */
} OxQuantity;

OxQuantity ox_quantity_plain (const OxNumber *value);
/* @value of @units. */
OxQuantity ox_quantity_new (OxCalculation *calculation, const OxNumber *value, const OxUnitProduct *units);
gboolean ox_quantity_is_plain (const OxQuantity *a);
/* A percentage is taken of @a: 200 + 10 % = 220. */
OxQuantity ox_quantity_add (OxCalculation *calculation, const OxQuantity *a, const OxQuantity *b, gboolean subtract);
OxQuantity ox_quantity_multiply (OxCalculation *calculation, const OxQuantity *a, const OxQuantity *b, gboolean divide);
OxQuantity ox_quantity_negate (OxCalculation *calculation, const OxQuantity *a);
OxQuantity ox_quantity_power (OxCalculation *calculation, const OxQuantity *a, const OxQuantity *b);
OxQuantity ox_quantity_root (OxCalculation *calculation, const OxQuantity *a, gulong n);
/* The same, shown in other units, which have to be alike. */
OxQuantity ox_quantity_convert (OxCalculation *calculation, const OxQuantity *a, const OxUnitProduct *units);
/* @a, as a plain number when it is in radians. */
OxQuantity ox_quantity_drop_radians (OxCalculation *calculation, const OxQuantity *a);
/* The number in front of the unit. */
const OxNumber *ox_quantity_get_shown (OxCalculation *calculation, const OxQuantity *a);
/* {"result": "3.2 km", "exact": …, "note": …} */
char *ox_quantity_to_json (OxCalculation *calculation, const OxQuantity *a);
