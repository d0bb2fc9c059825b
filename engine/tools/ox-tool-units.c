/* convert_units: a quantity in another unit, exactly.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "tools/ox-tools-private.h"

#include <stdlib.h>
#include <string.h>

#include "tools/ox-quantity.h"
#include "tools/ox-tool-json.h"

const char ox_tool_units_declaration[] =
  "{\"type\":\"function\",\"function\":{\"name\":\"convert_units\","
  "\"description\":\"Converts between units of length, mass, temperature, area, volume, time, speed, pressure, energy, "
  "power, "
  "data, angle and fuel consumption.\","
  "\"parameters\":{\"type\":\"object\",\"properties\":{"
  "\"value\":{\"type\":\"number\"},"
  "\"from\":{\"type\":\"string\",\"description\":\"Like mph, kg, °F, GiB, L/100km\"},"
  "\"to\":{\"type\":\"string\",\"description\":\"Like km/h, lb, °C, MB, mpg\"}"
  "},\"required\":[\"value\",\"from\",\"to\"]}}}";

static gboolean
parse_unit (const char *what, const char *text, OxUnitProduct *units, GError **error)
{
  g_autofree char *plain = g_strstrip (g_strdup (text));
  g_autofree char *suggestion = NULL;

  if (plain[0] != '\0' && ox_unit_product_parse (plain, units) == strlen (plain))
    return TRUE;
  suggestion = ox_unit_suggest (plain, strlen (plain));
  g_set_error (error, OX_ERROR, OX_ERROR_INVALID, "“%s” is “%.60s”, which is no unit that is known here. %s: %s", what,
               text, suggestion ? "Similar" : "There are, for example",
               suggestion ? suggestion
                          : "km, mi, kg, lb, °C, °F, m^2, L, gal, km/h, mph, bar, kWh, W, GiB, deg, L/100km");
  return FALSE;
}

char *
ox_tool_units (const char *arguments, gpointer user_data, GCancellable *cancellable, GError **error)
{
  g_autoptr (OxValue) value = ox_value_parse (arguments, strlen (arguments), "arguments", error);
  g_autoptr (OxCalculation) calculation = ox_calculation_new (cancellable);
  OxUnitProduct from, to;
  OxQuantity quantity;
  const char *number;
  char *json;

  if (!value)
    return NULL;
  if (!parse_unit ("from", ox_tool_get_text (value, "from"), &from, error) ||
      !parse_unit ("to", ox_tool_get_text (value, "to"), &to, error))
    return NULL;
  number = ox_tool_get_text (value, "value");
  quantity = ox_quantity_new (calculation, ox_number_parse (calculation, number, strlen (number)), &from);
  quantity = ox_quantity_convert (calculation, &quantity, &to);
  json = ox_quantity_to_json (calculation, &quantity);
  if (!json)
    ox_calculation_take_error (calculation, error);
  return json;
}
