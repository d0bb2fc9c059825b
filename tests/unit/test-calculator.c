/* The calculator and the conversion of units: known results, properties, and what hostile expressions cost.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "oxinfer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io/ox-json.h"
#include "tools/ox-units.h"

static OxToolbox *toolbox;

/* {"name": "text", …} */
static char *
make_object (const char *first, ...)
{
  yyjson_mut_doc *doc = yyjson_mut_doc_new (NULL);
  yyjson_mut_val *root = yyjson_mut_obj (doc);
  char *json, *copy;
  va_list args;

  yyjson_mut_doc_set_root (doc, root);
  va_start (args, first);
  for (const char *name = first; name; name = va_arg (args, const char *))
    yyjson_mut_obj_add_strcpy (doc, root, name, va_arg (args, const char *));
  va_end (args);
  json = yyjson_mut_write (doc, YYJSON_WRITE_ALLOW_INVALID_UNICODE, NULL);
  copy = g_strdup (json);
  free (json);
  yyjson_mut_doc_free (doc);
  return copy;
}

/* What @key says in the result of a call; NULL when it has none. */
static char *
call (const char *tool, const char *arguments, const char *key)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (OxJson) json = NULL;
  g_autofree char *result = ox_toolbox_call (toolbox, tool, arguments, NULL, NULL, &error);

  g_assert_no_error (error);
  g_test_message ("%.200s: %.200s", arguments, result);
  json = ox_json_parse (result, strlen (result), "result", &error);
  g_assert_no_error (error);
  return g_strdup (yyjson_get_str (yyjson_obj_get (ox_json_get_root (json), key)));
}

static char *
calculate (const char *expression, const char *key)
{
  g_autofree char *arguments = make_object ("expression", expression, NULL);

  return call ("calculate", arguments, key);
}

static char *
convert (const char *value, const char *from, const char *to, const char *key)
{
  g_autofree char *arguments = make_object ("value", value, "from", from, "to", to, NULL);

  return call ("convert_units", arguments, key);
}

typedef struct {
  const char *expression, *expected;
} Case;

static void
run_cases (const Case *cases, gsize n, const char *key)
{
  for (gsize i = 0; i < n; i++) {
    g_autofree char *found = calculate (cases[i].expression, key);

    if (g_strcmp0 (found, cases[i].expected) != 0)
      g_error ("%s: %s is “%s”, expected “%s”", cases[i].expression, key, found ? found : "missing", cases[i].expected);
  }
}

/* ---- Known results ---- */

static void
test_exact (void)
{
  static const Case cases[] = {
    { "1+1", "2" },
    { "2 + 2 = ?", "4" },
    { "0.1 + 0.2", "0.3" },
    { "1.10 * 3", "3.3" },
    { "2/3 + 1/3", "1" },
    { "2 + 3 * 4 - 5", "9" },
    { "(2 + 3) * 4", "20" },
    { "2^100", "1267650600228229401496703205376" },
    { "2**10", "1024" },
    { "2^3^2", "512" },
    { "-2^2", "-4" },
    { "(-2)^2", "4" },
    { "2^-3", "0.125" },
    { "--3", "3" },
    { "3--3", "6" },
    { "0^0", "1" },
    { "1^(10^30)", "1" },
    { "(-1)^(10^30 + 1)", "-1" },
    { "123456789 * 987654321", "121932631112635269" },
    { "12345678901234567890123456789 / 3", "4115226300411522630041152263" },
    { "30!", "265252859812191058636308480000000" },
    { "factorial(5) + 3!", "126" },
    { "7 // 2", "3" },
    { "-7 // 2", "-4" },
    { "7 % 3", "1" },
    { "-7 % 3", "2" },
    { "7 % -3", "-2" },
    { "10 mod 4", "2" },
    { "7.5 % 2", "1.5" },
    { "(2^1000000 - 1) % 7", "1" },
    { "20%", "0.2" },
    { "15% of 80", "12" },
    { "200 + 10%", "220" },
    { "200 - 10%", "180" },
    { "200 * 10%", "20" },
    { "10% + 5%", "0.15" },
    { "10% - 3", "-2.9" },
    { "sqrt(144)", "12" },
    { "√16 + 1", "5" },
    { "sqrt(0.25)", "0.5" },
    { "sqrt(10^100)", "1"
                      "0000000000"
                      "0000000000"
                      "0000000000"
                      "0000000000"
                      "0000000000" },
    { "cbrt(-27)", "-3" },
    { "root(1024, 10)", "2" },
    { "27^(1/3)", "3" },
    { "8^(2/3)", "4" },
    { "(-8)^(1/3)", "-2" },
    { "abs(-3) + abs(3)", "6" },
    { "floor(-2.5)", "-3" },
    { "ceil(-2.5)", "-2" },
    { "trunc(-2.5)", "-2" },
    { "round(2.5)", "3" },
    { "round(-2.5)", "-3" },
    { "round(3.14159, 2)", "3.14" },
    { "round(1234, -2)", "1200" },
    { "round(pi, 4)", "3.1416" },
    { "min(3, 1, 2)", "1" },
    { "max(3, 1, 2)", "3" },
    { "sum(1, 2, 3) + mean(1, 2)", "7.5" },
    { "gcd(12, 18)", "6" },
    { "lcm(4, 6, 10)", "60" },
    { "nCr(5, 2)", "10" },
    { "nCr(5, 6)", "0" },
    { "nCr(100, 50)", "100891344545564193334812497256" },
    { "nPr(5, 2)", "20" },
    { "nPr(40, 20)", "335367096786357081410764800000" },
    { "log(1000)", "3" },
    { "log(0.001)", "-3" },
    { "log(8, 2)", "3" },
    { "log2(1024)", "10" },
    { "log(10^300000)", "300000" },
    { "ln(1)", "0" },
    { "exp(0)", "1" },
    { "sin(0)", "0" },
    { "sin(30 deg)", "0.5" },
    { "sin(-30°)", "-0.5" },
    { "cos(60°)", "0.5" },
    { "cos(180°)", "-1" },
    { "tan(45°)", "1" },
    { "tan(135°)", "-1" },
    { "sin(750°)", "0.5" },
    { "hypot(3, 4)", "5" },
    { "1,000,000 + 1", "1000001" },
    { "1_000 * 2", "2000" },
    { "0xff + 0b11 + 0o17", "273" },
    { "1.5e3 + 1e-3", "1500.001" },
    { ".5 + 5.", "5.5" },
    { "2(3+4)", "14" },
    { "6/2(1+2)", "9" },
    { "3 x 4", "12" },
    { "3 × 4 ÷ 2 − 1", "5" },
    { "5² + 2³", "33" },
    { "MAX(1; 2)", "2" },
  };

  run_cases (cases, G_N_ELEMENTS (cases), "result");
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *note = calculate (cases[i].expression, "note");

    /* Nothing here is rounded, but what is rounded on the way and then exact. */
    g_assert_cmpstr (note, ==, NULL);
  }
}

static void
test_rounded (void)
{
  static const Case cases[] = {
    { "1/3", "0.333333333333333" },
    { "2/3", "0.666666666666667" },
    { "-1/30", "-0.0333333333333333" },
    { "1/3000000", "3.33333333333333e-7" },
    { "1/30000000", "3.33333333333333e-8" },
    { "10^30/7", "1.42857142857143e+29" },
    { "10^18/7", "142857142857142857"
                 "."
                 "142857142857143" },
    { "sqrt(2)", "1.4142135623731" },
    { "pi", "3.14159265358979" },
    { "2π", "6.28318530717959" },
    { "e", "2.71828182845905" },
    { "exp(1)", "2.71828182845905" },
    { "ln(10)", "2.30258509299405" },
    { "sin(1)", "0.841470984807897" },
    { "cos(1)", "0.54030230586814" },
    { "tan(1)", "1.5574077246549" },
    { "sin(pi/2)", "1" },
    { "atan2(1, 1) * 4", "3.14159265358979 rad" },
    { "asin(0.5) in deg", "30°" },
    { "pi - acos(0.5)", "2.0943951023932" },
    { "2^0.5", "1.4142135623731" },
    { "100!",
      "9332621544394415268169923885626670049071596826438162146859296389521759999322991560894146397615651828625369792"
      "0827223758251185210916864000000000000000000000000" },
    { "2000!", "3.31627509245063e+5735" },
    { "exp(10000)", "8.80681822566292e+4342" },
    { "ln(10^300000)", "690775.527898214" },
    { "999999999999999.96 / 1.000", "999999999999999.96" },
    { "2/3 * 10^-20", "6.66666666666667e-21" },
    { "(10^16 - 1) / (3 * 10^16) * 3 / 1 + 1/10^16 - 1/7/10^20", "1" },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    /* 10^18 / 7 has more digits before its point than are shown: it is checked with the exponent below. */
    if (strstr (cases[i].expression, "10^18/7"))
      continue;
    run_cases (&cases[i], 1, "result");
  }
  {
    static const Case exact[] = {
      { "1/3", "1/3" },       { "10^18/7", "1000000000000000000/7" },
      { "sqrt(4/9)", "2/3" }, { "1/3 km + 1/6 km + 1/7 km", "9/14 km" },
      { "pi", NULL },         { "0.5", NULL },
    };
    g_autofree char *large = calculate ("10^18/7", "result");
    g_autofree char *note = calculate ("1/3", "note");

    run_cases (exact, G_N_ELEMENTS (exact), "exact");
    g_assert_cmpstr (large, ==, "142857142857143000");
    g_assert_cmpstr (note, ==, "rounded to 15 significant digits");
  }
}

static void
test_units_in_expressions (void)
{
  static const Case cases[] = {
    { "3 km + 200 m", "3.2 km" },
    { "200 m + 3 km", "3200 m" },
    { "60 mph in km/h", "96.56064 km/h" },
    { "60 mph to km/h", "96.56064 km/h" },
    { "60 mph -> km/h", "96.56064 km/h" },
    { "100 km / 2 h", "50 km/h" },
    { "60 km/h * 30 min", "30 km" },
    { "1/2 mi in m", "804.672 m" },
    { "5 ft 11 in in cm", "180.34 cm" },
    { "2 h 30 min in min", "150 min" },
    { "5 in to cm", "12.7 cm" },
    { "5 in", "5 in" },
    { "6 in * 2", "12 in" },
    { "12 in in ft", "1 ft" },
    { "20 °C in °F", "68 °F" },
    { "-40 °F in °C", "-40 °C" },
    { "-5 °C", "-5 °C" },
    { "20 °C + 5 K", "25 °C" },
    { "20 °C - 15 °C", "5 K" },
    { "0 K in °C", "-273.15 °C" },
    { "5 kg * 9.81 m/s^2", "49.05 kg·m/s^2" },
    { "5 kg * 9.81 m/s^2 in N", "49.05 N" },
    { "(3 m)^2", "9 m^2" },
    { "3 m^2 * 2", "6 m^2" },
    { "sqrt(9 m^2)", "3 m" },
    { "3 m * 4 m", "12 m^2" },
    { "3 km / 200 m", "15" },
    { "3 km // 200 m", "15" },
    { "7 m % 2 m", "1 m" },
    { "100 km + 10%", "110 km" },
    { "15% of 80 kg", "12 kg" },
    { "2 W/(m^2 K)", "2 W/m^2/K" },
    { "5 metres per second in km per hour", "18 km/h" },
    { "1 GiB in MB", "1073.741824 MB" },
    { "100 Mbps * 1 h in GB", "45 GB" },
    { "100 N * 2 m in J", "200 J" },
    { "12 V * 2 A in W", "24 W" },
    { "3 square feet in m2", "0.27870912 m^2" },
    { "3 cubic metres in L", "3000 L" },
    { "1 nautical mile in km", "1.852 km" },
    { "min(3 km, 200 m)", "200 m" },
    { "round(10/3 km, 1)", "3.3 km" },
    { "(3+4) km", "7 km" },
    { "km", "1 km" },
    { "180° in turn", "0.5 turn" },
    { "90 km/h in m/s", "25 m/s" },
    { "1 kWh in MJ", "3.6 MJ" },
  };

  run_cases (cases, G_N_ELEMENTS (cases), "result");
}

static void
test_errors (void)
{
  /* The beginning of the message and the place that it points at. */
  static const Case cases[] = {
    { "", "expected a number (at the end)" },
    { "1/0", "division by zero (at character 2: “/0”)" },
    { "1 + 2 / (3 - 3)", "division by zero (at character 7: “/ (3 - 3)”)" },
    { "5 % 0", "division by zero (at character 3: “% 0”)" },
    { "0^-1", "division by zero: 0 to a negative power (at character 2: “^-1”)" },
    { "(1 + 2", "expected “)” (at the end)" },
    { "1 + 2)", "there is no “(” to this “)” (at character 6: “)”)" },
    { "1 + * 3", "expected a number (at character 5: “* 3”)" },
    { "é + * 3", "“é” is no function, constant or unit that is known here (at character 1: “é + * 3”)" },
    { "2 + 3 fooo",
      "“fooo” is no function, constant or unit that is known here; similar: foot (at character 7: “fooo”)" },
    { "1 2", "expected an operator (at character 3: “2”)" },
    { "3,5 + 1", "a comma does not belong here; the decimal point is “.” (at character 2: “,5 + 1”)" },
    { "sin 30", "this function takes its arguments in parentheses (at character 1: “sin 30”)" },
    { "nCr(1)", "this function takes 2 arguments, not 1 (at character 1: “nCr(1)”)" },
    { "round(1,2,3)", "this function takes 1 to 2 arguments, not 3 (at character 1: “round(1,2,3)”)" },
    { "max(1, 2", "expected “,” or “)” (at the end)" },
    { "sqrt(-1)", "the root of a negative number is not a real number (at character 1: “sqrt(-1)”)" },
    { "(-8)^pi", "a negative number to a broken power is not a real number (at character 5: “^pi”)" },
    { "log(0)", "the logarithm of a number that is not positive is not a real number (at character 1: “log(0)”)" },
    { "log(5, 1)", "there is no logarithm to base 1 (at character 1: “log(5, 1)”)" },
    { "tan(90°)", "the tangent of a right angle is not a number (at character 1: “tan(90°)”)" },
    { "asin(2)", "asin and acos take numbers from -1 to 1 (at character 1: “asin(2)”)" },
    { "(-3)!", "the factorial is there for whole numbers from 0 on (at character 5: “!”)" },
    { "1.5!", "the factorial is there for whole numbers from 0 on (at character 4: “!”)" },
    { "3 km + 5 kg", "“km” and “kg” cannot be added (at character 6: “+ 5 kg”)" },
    { "3 km - 5", "“km” and a plain number cannot be subtracted (at character 6: “- 5”)" },
    { "3 km in kg", "“km” cannot be converted to “kg”: they do not measure the same (at character 6: “in kg”)" },
    { "3 km in miels", "expected a unit; similar: mile, miles, mil (at character 9: “miels”)" },
    { "2 ton in kg", "“ton” is no function, constant or unit that is known here; similar: tonne, short ton, long ton "
                     "(at character 3: “ton in kg”)" },
    { "2 gb in MB",
      "“gb” is no function, constant or unit that is known here; similar: Gb, GB (at character 3: “gb in MB”)" },
    { "sqrt(3 m)", "“m” has no root (at character 1: “sqrt(3 m)”)" },
    { "2^(3 m)", "an exponent cannot have a unit (at character 2: “^(3 m)”)" },
    { "exp(3 m)", "this function takes plain numbers, not “m” (at character 1: “exp(3 m)”)" },
    { "1e400000", "the number 1e400000 is too large or too small (at character 1: “1e400000”)" },
    { "exp(100000)", "the result is too large, or not a real number (at character 1: “exp(100000)”)" },
  };

  run_cases (cases, G_N_ELEMENTS (cases), "error");
}

/* ---- Conversion ---- */

static void
test_conversions (void)
{
  static const struct {
    const char *value, *from, *to, *expected;
  } cases[] = {
    { "1", "mi", "km", "1.609344 km" },
    { "1", "inch", "cm", "2.54 cm" },
    { "6", "feet", "m", "1.8288 m" },
    { "1", "yard", "ft", "3 ft" },
    { "1", "ly", "km", "9460730472580.8 km" },
    { "1", "au", "m", "149597870700 m" },
    { "1", "lb", "kg", "0.45359237 kg" },
    { "1", "oz", "g", "28.349523125 g" },
    { "1", "stone", "lb", "14 lb" },
    { "1", "tonne", "kg", "1000 kg" },
    { "1", "short ton", "lb", "2000 lb" },
    { "100", "celsius", "fahrenheit", "212 °F" },
    { "98.6", "°F", "°C", "37 °C" },
    { "0", "°C", "K", "273.15 K" },
    { "491.67", "°R", "°C", "0 °C" },
    { "1", "acre", "m^2", "4046.8564224 m^2" },
    { "1", "ha", "m2", "10000 m^2" },
    { "1", "sq mi", "acres", "640 ac" },
    { "1", "gal", "L", "3.785411784 L" },
    { "1", "UK gallon", "L", "4.54609 L" },
    { "1", "gallon", "cups", "16 cup" },
    { "1", "cup", "tbsp", "16 tbsp" },
    { "1", "tablespoon", "teaspoons", "3 tsp" },
    { "1", "fl oz", "mL", "29.5735295625 mL" },
    { "1", "m3", "litres", "1000 L" },
    { "1", "week", "h", "168 h" },
    { "1", "year", "days", "365.2425 d" },
    { "36", "km/h", "m/s", "10 m/s" },
    { "1", "kn", "km/h", "1.852 km/h" },
    { "1", "atm", "Pa", "101325 Pa" },
    { "1", "bar", "kPa", "100 kPa" },
    { "760", "Torr", "atm", "1 atm" },
    { "1", "kcal", "J", "4184 J" },
    { "1", "Wh", "J", "3600 J" },
    { "1", "BTU", "J", "1055.05585262 J" },
    { "1", "eV", "J", "1.602176634e-19 J" },
    { "1", "hp", "W", "745.69987158227022 W" },
    { "1", "PS", "W", "735.49875 W" },
    { "1", "KiB", "bytes", "1024 B" },
    { "1", "KB", "bytes", "1000 B" },
    { "8", "Mbit", "MB", "1 MB" },
    { "1", "TB", "GiB", "931.322574615478515625 GiB" },
    { "100", "Mbps", "MB/s", "12.5 MB/s" },
    { "180", "deg", "turn", "0.5 turn" },
    { "100", "gon", "deg", "90°" },
    { "1", "deg", "arcmin", "60 arcmin" },
    { "180", "deg", "rad", "3.14159265358979 rad" },
    { "5", "L/100km", "km/L", "20 km/L" },
    { "20", "km/L", "L/100 km", "5 L/100km" },
    { "30", "mpg", "L/100km", "7.84048611111111 L/100km" },
    { "0.1", "km", "m", "100 m" },
    { "1e3", "m", "KM", "1 km" },
    { "\t-2 ", "km", "m", "-2000 m" },
  };
  static const struct {
    const char *value, *from, *to, *told;
  } bad[] = {
    { "1", "km", "kg", "do not measure the same" },
    { "1", "blorp", "kg", "“from” is “blorp”, which is no unit that is known here. There are, for example: km" },
    { "1", "kg", "kilogran", "Similar: kilogram" },
    { "1", "ton", "kg", "Similar: tonne, short ton, long ton" },
    { "1", "", "kg", "“from” is “”" },
    { "1", "km km", "kg )", "“to” is “kg )”" },
    { "0", "mpg", "L/100km", "division by zero" },
    { "1e999999", "km", "m", "too large" },
    { "one", "km", "m", "of type number" },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *found = convert (cases[i].value, cases[i].from, cases[i].to, "result");

    g_assert_cmpstr (found, ==, cases[i].expected);
  }
  for (gsize i = 0; i < G_N_ELEMENTS (bad); i++) {
    g_autofree char *found = convert (bad[i].value, bad[i].from, bad[i].to, "error");

    g_assert_nonnull (found);
    if (!strstr (found, bad[i].told))
      g_error ("“%s” is not in “%s”", bad[i].told, found);
  }
}

/* No name means two units, every unit is found by all of its names, and goes to the base units and back. */
static void
test_table (void)
{
  g_autoptr (GHashTable) seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);

  for (gsize i = 0; i < ox_n_units; i++) {
    const OxUnit *unit = &ox_units[i];
    const char *const lists[] = { unit->symbols, unit->names };

    g_assert_nonnull (unit->symbols);
    for (gsize j = 0; j < G_N_ELEMENTS (lists); j++) {
      g_auto (GStrv) names = g_strsplit (lists[j] ? lists[j] : "", "|", -1);

      for (char **name = names; *name; name++) {
        OxUnitTerm term;
        OxUnitProduct product;

        if (**name == '\0')
          continue;
        g_test_message ("%s", *name);
        g_assert_true (g_hash_table_add (seen, g_strdup (*name)));
        g_assert_true (ox_unit_find (*name, strlen (*name), &term));
        g_assert_true (term.unit == unit && term.prefix == NULL);
        g_assert_cmpuint (ox_unit_product_parse (*name, &product), ==, strlen (*name));
        g_assert_true (product.n_terms == 1 && product.terms[0].unit == unit && product.terms[0].exponent == 1);
      }
    }
  }
}

/* ---- Properties ---- */

static char *
random_rational (GRand *random)
{
  GString *text = g_string_new ("(");

  if (g_rand_boolean (random))
    g_string_append_c (text, '-');
  for (gint32 n = g_rand_int_range (random, 1, 40); n > 0; n--)
    g_string_append_c (text, (char) ('0' + g_rand_int_range (random, 0, 10)));
  if (g_rand_boolean (random))
    g_string_append_printf (text, ".%d", g_rand_int_range (random, 0, 1000000));
  if (g_rand_boolean (random))
    g_string_append_printf (text, "/%d", g_rand_int_range (random, 1, 1000000));
  g_string_append_c (text, ')');
  return g_string_free (text, FALSE);
}

static void
test_properties (void)
{
  /* Each is zero, whatever a, b and c are. */
  static const char *const laws[] = {
    "a + b - b - a",
    "a * b - b * a",
    "a * (b + c) - (a * b + a * c)",
    "(a + b) + c - (a + (b + c))",
    "a - (a // 7 * 7 + a % 7)",
    "(a + b)^2 - (a^2 + 2 * a * b + b^2)",
    "a + 1 - floor(a + 1) - (a - floor(a))",
    "ceil(a) + floor(-a)",
    "sqrt(a^2) - abs(a)",
    "min(a, b) + max(a, b) - a - b",
    "a * 1000 / 1000 - a",
    "(a km in mi) - a km",
    "(a °C in °F) - a °C",
    "cbrt(a^3) - a",
    "gcd(floor(a), floor(b)) * lcm(floor(a), floor(b)) - abs(floor(a) * floor(b))",
  };
  g_autoptr (GRand) random = g_rand_new_with_seed (42);

  for (guint i = 0; i < 600; i++) {
    g_autofree char *a = random_rational (random);
    g_autofree char *b = random_rational (random);
    g_autofree char *c = random_rational (random);
    g_autoptr (GString) text = g_string_new (NULL);
    g_autofree char *result = NULL;

    for (const char *p = laws[i % G_N_ELEMENTS (laws)]; *p; p++) {
      gboolean alone = !g_ascii_isalpha (p[1]) && (p == laws[i % G_N_ELEMENTS (laws)] || !g_ascii_isalpha (p[-1]));

      if (alone && *p >= 'a' && *p <= 'c')
        g_string_append (text, *p == 'a' ? a : *p == 'b' ? b : c);
      else
        g_string_append_c (text, *p);
    }
    result = calculate (text->str, "result");
    g_assert_nonnull (result);
    g_assert_true (strcmp (result, "0") == 0 || g_str_has_prefix (result, "0 "));
  }
}

/* What is rounded agrees with the C library to 14 digits. */
static void
test_functions_against_library (void)
{
  static const struct {
    const char *name;
    double (*function) (double);
    double from, to;
  } functions[] = {
    { "sin", sin, -50, 50 },   { "cos", cos, -50, 50 },      { "tan", tan, -50, 50 },   { "exp", exp, -50, 50 },
    { "ln", log, 0.001, 1e6 }, { "log", log10, 0.001, 1e6 }, { "sqrt", sqrt, 0, 1e6 },  { "cbrt", cbrt, -1e6, 1e6 },
    { "atan", atan, -50, 50 }, { "sinh", sinh, -20, 20 },    { "tanh", tanh, -20, 20 },
  };
  g_autoptr (GRand) random = g_rand_new_with_seed (43);

  for (guint i = 0; i < 400; i++) {
    gsize f = i % G_N_ELEMENTS (functions);
    double x = g_rand_double_range (random, functions[f].from, functions[f].to);
    char digits[G_ASCII_DTOSTR_BUF_SIZE];
    g_autofree char *text = g_strdup_printf ("%s(%s)", functions[f].name, g_ascii_dtostr (digits, sizeof digits, x));
    g_autofree char *result = calculate (text, "result");
    double expected = functions[f].function (x);

    g_assert_nonnull (result);
    g_assert_cmpfloat_with_epsilon (g_ascii_strtod (result, NULL), expected, 1e-13 * MAX (fabs (expected), 1));
  }
}

/* ---- Abuse ---- */

static char *
repeat (const char *text, guint n, const char *end)
{
  GString *out = g_string_new (NULL);

  for (guint i = 0; i < n; i++)
    g_string_append (out, text);
  g_string_append (out, end);
  return g_string_free (out, FALSE);
}

/* Nothing that fits in a call takes long, much memory, or the program down. */
static void
test_abuse (void)
{
  g_autoptr (GPtrArray) expressions = g_ptr_array_new_with_free_func (g_free);

  g_ptr_array_add (expressions, g_strdup ("9^9^9^9"));
  g_ptr_array_add (expressions, g_strdup ("9^9^9^-9"));
  g_ptr_array_add (expressions, g_strdup ("1000000!"));
  g_ptr_array_add (expressions, g_strdup ("(10^18)!"));
  g_ptr_array_add (expressions, g_strdup ("(10^30)!"));
  g_ptr_array_add (expressions, g_strdup ("nCr(10^9, 5*10^8)"));
  g_ptr_array_add (expressions, g_strdup ("nPr(60000, 59999)"));
  g_ptr_array_add (expressions, g_strdup ("2^(10^30)"));
  g_ptr_array_add (expressions, g_strdup ("1e300000 * 1e300000"));
  g_ptr_array_add (expressions, g_strdup ("1e999999999999999999999"));
  g_ptr_array_add (expressions, g_strdup ("1e-999999999999999999999"));
  g_ptr_array_add (expressions, g_strdup ("sqrt(10^300001)"));
  g_ptr_array_add (expressions, g_strdup ("round(1/3, 10^9)"));
  g_ptr_array_add (expressions, g_strdup ("root(5, 10^9)"));
  g_ptr_array_add (expressions, g_strdup ("(1 m)^(10^9)"));
  g_ptr_array_add (expressions, g_strdup ("1.0000000000000000000001^300000000"));
  g_ptr_array_add (expressions, repeat ("(2^500000+1)/(3^300000+1)+", 300, "1"));
  g_ptr_array_add (expressions, repeat ("60000!*0+", 1000, "1"));
  g_ptr_array_add (expressions, repeat ("1+", 4900, "1"));
  g_ptr_array_add (expressions, repeat ("3 m+", 2400, "3 m"));
  g_ptr_array_add (expressions, repeat ("5 in ", 1900, ""));
  g_ptr_array_add (expressions, repeat ("5 ft ", 1900, ""));
  g_ptr_array_add (expressions, repeat ("km ", 3300, ""));
  g_ptr_array_add (expressions, repeat ("m/", 4900, "m"));
  g_ptr_array_add (expressions, repeat ("(", 9900, ""));
  g_ptr_array_add (expressions, repeat ("sin(", 2000, ""));
  g_ptr_array_add (expressions, repeat ("m/(", 3000, ""));
  g_ptr_array_add (expressions, repeat ("-", 9900, "1"));
  g_ptr_array_add (expressions, repeat ("√", 3000, "1"));
  g_ptr_array_add (expressions, repeat ("2^", 4900, "2"));
  g_ptr_array_add (expressions, repeat ("!", 1, ""));
  g_ptr_array_add (expressions, repeat ("9", 9990, ""));
  g_ptr_array_add (expressions, repeat ("a", 9990, ""));
  g_ptr_array_add (expressions, repeat ("é", 4900, ""));
  g_ptr_array_add (expressions, repeat ("1,", 4900, "1"));
  g_ptr_array_add (expressions, repeat ("x", 100000, ""));
  g_ptr_array_add (expressions, g_strdup ("1 + \xff\xfe"));
  g_ptr_array_add (expressions, g_strdup ("%s%n%d%99999s"));
  for (guint i = 0; i < expressions->len; i++) {
    const char *expression = g_ptr_array_index (expressions, i);
    gint64 start = g_get_monotonic_time ();
    g_autofree char *result = calculate (expression, "result");
    g_autofree char *error = calculate (expression, "error");

    g_assert_true ((result == NULL) != (error == NULL));
    g_assert_cmpuint (strlen (result ? result : error), <, 1200);
    /* Generous, for slow computers and sanitizers. */
    g_assert_cmpint (g_get_monotonic_time () - start, <, 20 * G_USEC_PER_SEC);
  }
}

static void
test_random_expressions (void)
{
  static const char *const parts[] = { "1",  "2.5",     "0",      "1e9",  "+",     "-",    "*",    "/",    "//",
                                       "%",  "^",       "!",      "(",    ")",     ",",    " ",    " in ", "km",
                                       "m",  "°C",      "deg",    "sin(", "sqrt(", "max(", "nCr(", "log(", "pi",
                                       "e",  "√",       "²",      " of ", "to",    "h",    "kg/",  "mod",  "0x",
                                       "\t", "L/100km", "round(", "″",    "×" };
  g_autoptr (GRand) random = g_rand_new_with_seed (44);
  guint n_good = 0;

  for (guint i = 0; i < 5000; i++) {
    g_autoptr (GString) text = g_string_new (NULL);
    g_autofree char *arguments = NULL;
    g_autofree char *result = NULL;
    gboolean failed;

    for (gint32 n = g_rand_int_range (random, 1, 12); n > 0; n--)
      g_string_append (text, parts[g_rand_int_range (random, 0, G_N_ELEMENTS (parts))]);
    arguments = make_object ("expression", text->str, NULL);
    result = ox_toolbox_call (toolbox, "calculate", arguments, &failed, NULL, NULL);
    g_assert_nonnull (result);
    n_good += !failed;
  }
  g_assert_cmpuint (n_good, >, 50);
}

static void
test_cancel (void)
{
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;
  gboolean failed;

  g_cancellable_cancel (cancellable);
  g_assert_null (ox_toolbox_call (toolbox, "calculate", "{\"expression\":\"1+1\"}", &failed, cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
}

typedef struct {
  GCancellable *cancellable;
  gint64 when;
} Canceller;

static gpointer
cancel_soon (gpointer data)
{
  Canceller *canceller = data;

  g_usleep (20 * 1000);
  canceller->when = g_get_monotonic_time ();
  g_cancellable_cancel (canceller->cancellable);
  return NULL;
}

/* In the middle of much work, or between two pieces of it. */
static void
test_cancel_at_work (void)
{
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;
  g_autofree char *sum = repeat ("(2^500000+1)/3^4+(3^300000+1)+", 300, "1");
  g_autofree char *arguments = make_object ("expression", sum, NULL);
  Canceller canceller = { cancellable };
  GThread *thread = g_thread_new ("cancel", cancel_soon, &canceller);
  char *result;
  gint64 end;

  do {
    result = ox_toolbox_call (toolbox, "calculate", arguments, NULL, cancellable, &error);
    g_free (result);
  } while (result);
  end = g_get_monotonic_time ();
  g_thread_join (thread);
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_assert_cmpint (end - canceller.when, <, G_USEC_PER_SEC);
}

int
main (int argc, char **argv)
{
  int status;

  g_test_init (&argc, &argv, NULL);
  toolbox = ox_toolbox_new ();
  ox_toolbox_add_builtin (toolbox);
  g_test_add_func ("/calculator/exact", test_exact);
  g_test_add_func ("/calculator/rounded", test_rounded);
  g_test_add_func ("/calculator/units", test_units_in_expressions);
  g_test_add_func ("/calculator/errors", test_errors);
  g_test_add_func ("/calculator/conversions", test_conversions);
  g_test_add_func ("/calculator/table", test_table);
  g_test_add_func ("/calculator/properties", test_properties);
  g_test_add_func ("/calculator/functions", test_functions_against_library);
  g_test_add_func ("/calculator/abuse", test_abuse);
  g_test_add_func ("/calculator/random", test_random_expressions);
  g_test_add_func ("/calculator/cancel", test_cancel);
  g_test_add_func ("/calculator/cancel-at-work", test_cancel_at_work);
  status = g_test_run ();
  ox_toolbox_unref (toolbox);
  return status;
}
