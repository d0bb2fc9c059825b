/* The units, with the factors that define them: SI brochure (9th edition), NIST Special Publication 811 (appendix B), IEC 80000-13.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "tools/ox-units.h"

#define D(...) { __VA_ARGS__ }
/*                      m   kg   s  K  A bit turn */
#define LENGTH D (1)
#define AREA D (2)
#define VOLUME D (3)
#define MASS D (0, 1)
#define TIME D (0, 0, 1)
#define FREQUENCY D (0, 0, -1)
#define TEMPERATURE D (0, 0, 0, 1)
#define SPEED D (1, 0, -1)
#define FORCE D (1, 1, -2)
#define PRESSURE D (-1, 1, -2)
#define ENERGY D (2, 1, -2)
#define POWER D (2, 1, -3)
#define CURRENT D (0, 0, 0, 0, 1)
#define VOLTAGE D (2, 1, -3, 0, -1)
#define RESISTANCE D (2, 1, -3, 0, -2)
#define DATA D (0, 0, 0, 0, 0, 1)
#define DATA_RATE D (0, 0, -1, 0, 0, 1)
#define ANGLE D (0, 0, 0, 0, 0, 0, 1)
#define DISTANCE_FOR_FUEL D (-2)
#define FUEL_FOR_DISTANCE D (2)
#define SI OX_UNIT_PREFIXES
#define IEC (OX_UNIT_PREFIXES | OX_UNIT_BINARY_PREFIXES)

const OxUnit ox_units[] = {
  /* Length */
  { "|m|", "|metre|meter|metres|meters|", "1", NULL, LENGTH, SI },
  { "|in|″|", "|inch|inches|", "0.0254", NULL, LENGTH },
  { "|ft|′|", "|foot|feet|", "0.3048", NULL, LENGTH },
  { "|yd|yds|", "|yard|yards|", "0.9144", NULL, LENGTH },
  { "|mi|", "|mile|miles|", "1609.344", NULL, LENGTH },
  { "|nmi|NM|", "|nautical mile|nautical miles|", "1852", NULL, LENGTH },
  { "|mil|", "|thou|", "0.0000254", NULL, LENGTH },
  { "|fur|", "|furlong|furlongs|", "201.168", NULL, LENGTH },
  { "|ftm|", "|fathom|fathoms|", "1.8288", NULL, LENGTH },
  { "|au|AU|ua|", "|astronomical unit|astronomical units|", "149597870700", NULL, LENGTH },
  { "|ly|", "|light year|light years|lightyear|lightyears|light-year|light-years|", "9460730472580800", NULL, LENGTH },
  { "|Å|", "|angstrom|angstroms|ångström|", "1e-10", NULL, LENGTH },
  { "|µ|", "|micron|microns|", "1e-6", NULL, LENGTH },
  /* Area */
  { "|a|", "|are|ares|", "100", NULL, AREA },
  { "|ha|", "|hectare|hectares|", "10000", NULL, AREA },
  { "|ac|", "|acre|acres|", "4046.8564224", NULL, AREA },
  { "|sqm|", NULL, "1", NULL, AREA },
  { "|sqft|sq ft|", NULL, "0.09290304", NULL, AREA },
  { "|sqin|sq in|", NULL, "0.00064516", NULL, AREA },
  { "|sqkm|sq km|", NULL, "1000000", NULL, AREA },
  { "|sqmi|sq mi|", NULL, "2589988.110336", NULL, AREA },
  /* Volume */
  { "|L|l|ℓ|", "|litre|liter|litres|liters|", "0.001", NULL, VOLUME, SI },
  { "|cc|ccm|", NULL, "0.000001", NULL, VOLUME },
  { "|gal|US gal|", "|gallon|gallons|US gallon|US gallons|", "0.003785411784", NULL, VOLUME },
  { "|qt|", "|quart|quarts|US quart|US quarts|", "0.000946352946", NULL, VOLUME },
  { "|pt|", "|pint|pints|US pint|US pints|", "0.000473176473", NULL, VOLUME },
  { "|cup|", "|cups|US cup|US cups|", "0.0002365882365", NULL, VOLUME },
  { "|fl oz|floz|fl_oz|US fl oz|", "|fluid ounce|fluid ounces|US fluid ounce|US fluid ounces|", "0.0000295735295625",
    NULL, VOLUME },
  { "|tbsp|", "|tablespoon|tablespoons|", "0.00001478676478125", NULL, VOLUME },
  { "|tsp|", "|teaspoon|teaspoons|", "0.00000492892159375", NULL, VOLUME },
  { "|imp gal|gal_uk|UK gal|", "|imperial gallon|imperial gallons|UK gallon|UK gallons|", "0.00454609", NULL, VOLUME },
  { "|imp pt|pt_uk|UK pt|", "|imperial pint|imperial pints|UK pint|UK pints|", "0.00056826125", NULL, VOLUME },
  { "|imp fl oz|floz_uk|UK fl oz|", "|imperial fluid ounce|imperial fluid ounces|UK fluid ounce|UK fluid ounces|",
    "0.0000284130625", NULL, VOLUME },
  { "|bbl|", "|barrel|barrels|", "0.158987294928", NULL, VOLUME },
  /* Mass */
  { "|g|", "|gram|gramme|grams|grammes|", "0.001", NULL, MASS, SI },
  { "|t|", "|tonne|tonnes|metric ton|metric tons|", "1000", NULL, MASS, SI },
  { "|lb|lbs|lbm|", "|pound|pounds|", "0.45359237", NULL, MASS },
  { "|oz|", "|ounce|ounces|", "0.028349523125", NULL, MASS },
  { "|st|", "|stone|stones|", "6.35029318", NULL, MASS },
  { "|gr|", "|grain|grains|", "0.00006479891", NULL, MASS },
  { "|ct|", "|carat|carats|", "0.0002", NULL, MASS },
  { "|oz t|ozt|", "|troy ounce|troy ounces|", "0.0311034768", NULL, MASS },
  { "|short ton|short_ton|US ton|", "|short tons|US tons|", "907.18474", NULL, MASS },
  { "|long ton|long_ton|UK ton|imperial ton|", "|long tons|UK tons|imperial tons|", "1016.0469088", NULL, MASS },
  /* Time: a year and a month are the Gregorian calendar's on average */
  { "|s|sec|secs|", "|second|seconds|", "1", NULL, TIME, SI },
  { "|min|mins|", "|minute|minutes|", "60", NULL, TIME },
  { "|h|hr|hrs|", "|hour|hours|", "3600", NULL, TIME },
  { "|d|", "|day|days|", "86400", NULL, TIME },
  { "|wk|", "|week|weeks|", "604800", NULL, TIME },
  { "|mo|", "|month|months|", "2629746", NULL, TIME },
  { "|yr|", "|year|years|", "31556952", NULL, TIME },
  { "|Hz|", "|hertz|", "1", NULL, FREQUENCY, SI },
  /* Temperature */
  { "|K|", "|kelvin|kelvins|", "1", NULL, TEMPERATURE, SI },
  { "|°C|℃|degC|C|deg C|", "|celsius|degree celsius|degrees celsius|centigrade|", "1", "273.15", TEMPERATURE },
  { "|°F|℉|degF|F|deg F|", "|fahrenheit|degree fahrenheit|degrees fahrenheit|", "5/9", "45967/180", TEMPERATURE },
  { "|°R|degR|", "|rankine|", "5/9", NULL, TEMPERATURE },
  /* Speed */
  { "|mph|", NULL, "0.44704", NULL, SPEED },
  { "|kph|kmh|kmph|", NULL, "5/18", NULL, SPEED },
  { "|kn|kt|", "|knot|knots|", "463/900", NULL, SPEED },
  { "|fps|", NULL, "0.3048", NULL, SPEED },
  { "|mps|", NULL, "1", NULL, SPEED },
  { "|lightspeed|", "|speed of light|", "299792458", NULL, SPEED },
  /* Force and pressure */
  { "|N|", "|newton|newtons|", "1", NULL, FORCE, SI },
  { "|lbf|", "|pound-force|pound force|", "4.4482216152605", NULL, FORCE },
  { "|kgf|kp|", "|kilogram-force|kilogram force|", "9.80665", NULL, FORCE },
  { "|dyn|", "|dyne|dynes|", "0.00001", NULL, FORCE },
  { "|Pa|", "|pascal|pascals|", "1", NULL, PRESSURE, SI },
  { "|bar|", "|bars|", "100000", NULL, PRESSURE, SI },
  { "|atm|", "|atmosphere|atmospheres|", "101325", NULL, PRESSURE },
  { "|mmHg|", "|millimetre of mercury|millimeters of mercury|", "133.322387415", NULL, PRESSURE },
  { "|inHg|", "|inch of mercury|inches of mercury|", "3386.388640341", NULL, PRESSURE },
  { "|Torr|torr|", NULL, "101325/760", NULL, PRESSURE },
  { "|psi|", NULL, "8896443230521/1290320000", NULL, PRESSURE },
  /* Energy and power */
  { "|J|", "|joule|joules|", "1", NULL, ENERGY, SI },
  { "|Wh|", "|watt hour|watt hours|watt-hour|watt-hours|watthour|watthours|", "3600", NULL, ENERGY, SI },
  { "|cal|", "|calorie|calories|", "4.184", NULL, ENERGY, SI },
  { "|eV|", "|electronvolt|electronvolts|electron volt|", "1.602176634e-19", NULL, ENERGY, SI },
  { "|BTU|Btu|", "|british thermal unit|british thermal units|", "1055.05585262", NULL, ENERGY },
  { "|erg|", "|ergs|", "1e-7", NULL, ENERGY },
  { "|ft lb|ftlb|ft lbf|ft-lb|", "|foot-pound|foot-pounds|foot pound|foot pounds|", "1.3558179483314004", NULL,
    ENERGY },
  { "|W|", "|watt|watts|", "1", NULL, POWER, SI },
  { "|hp|HP|", "|horsepower|", "745.69987158227022", NULL, POWER },
  { "|PS|", "|metric horsepower|", "735.49875", NULL, POWER },
  /* Electricity */
  { "|A|", "|ampere|amperes|amp|amps|", "1", NULL, CURRENT, SI },
  { "|V|", "|volt|volts|", "1", NULL, VOLTAGE, SI },
  { "|Ω|ohm|", "|ohms|", "1", NULL, RESISTANCE, SI },
  /* Data */
  { "|bit|b|", "|bits|", "1", NULL, DATA, IEC },
  { "|B|", "|byte|bytes|octet|octets|", "8", NULL, DATA, IEC },
  { "|bps|", NULL, "1", NULL, DATA_RATE, IEC },
  { "|Bps|", NULL, "8", NULL, DATA_RATE, IEC },
  /* Angle */
  { "|turn|rev|", "|turns|revolution|revolutions|", "1", NULL, ANGLE },
  { "|°|deg|", "|degree|degrees|", "1/360", NULL, ANGLE },
  { "|arcmin|", "|arcminute|arcminutes|", "1/21600", NULL, ANGLE },
  { "|arcsec|", "|arcsecond|arcseconds|", "1/1296000", NULL, ANGLE },
  { "|gon|grad|", "|gradian|gradians|", "1/400", NULL, ANGLE },
  { "|rad|", "|radian|radians|", NULL, NULL, ANGLE, SI | OX_UNIT_IRRATIONAL },
  { "|rpm|", NULL, "1/60", NULL, D (0, 0, -1, 0, 0, 0, 1) },
  /* Fuel: a length for a volume, and a volume for a length */
  { "|mpg|US mpg|mpg_us|", "|miles per gallon|", "1609.344/0.003785411784", NULL, DISTANCE_FOR_FUEL, OX_UNIT_FUEL },
  { "|imp mpg|mpg_uk|UK mpg|mpg imp|mpg uk|", "|miles per imperial gallon|", "1609.344/0.00454609", NULL,
    DISTANCE_FOR_FUEL, OX_UNIT_FUEL },
  { "|km/L|km/l|kmpl|", NULL, "1000000", NULL, DISTANCE_FOR_FUEL, OX_UNIT_FUEL },
  { "|L/100km|l/100km|L/100 km|l/100 km|", "|litres per 100 km|liters per 100 km|", "1e-8", NULL, FUEL_FOR_DISTANCE,
    OX_UNIT_FUEL },
};
const gsize ox_n_units = G_N_ELEMENTS (ox_units);

/* Longer symbols before those that they begin with. */
const OxUnitPrefix ox_unit_prefixes[] = {
  { "da", "deca", 10, 1 },  { "k", "kilo", 10, 3 },   { "h", "hecto", 10, 2 },  { "d", "deci", 10, -1 },
  { "c", "centi", 10, -2 }, { "m", "milli", 10, -3 }, { "µ", "micro", 10, -6 }, { "μ", "micro", 10, -6 },
  { "u", "micro", 10, -6 }, { "n", "nano", 10, -9 },  { "p", "pico", 10, -12 }, { "f", "femto", 10, -15 },
  { "M", "mega", 10, 6 },   { "G", "giga", 10, 9 },   { "T", "tera", 10, 12 },  { "P", "peta", 10, 15 },
  { "E", "exa", 10, 18 },   { "Z", "zetta", 10, 21 }, { "Y", "yotta", 10, 24 }, { "Ki", "kibi", 2, 10 },
  { "Mi", "mebi", 2, 20 },  { "Gi", "gibi", 2, 30 },  { "Ti", "tebi", 2, 40 },  { "Pi", "pebi", 2, 50 },
  { "Ei", "exbi", 2, 60 },
};
const gsize ox_n_unit_prefixes = G_N_ELEMENTS (ox_unit_prefixes);
