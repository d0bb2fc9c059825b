/* calculate: arithmetic with whole numbers and fractions of any size, and with units.
 *
 *   conversion = sum {("in" | "to" | "as" | "→") units}
 *   sum        = product {("+" | "-") product}
 *   product    = sign {("*" | "/" | "//" | "%" | "mod" | "of" | nothing) sign}
 *   sign       = {"-" | "+"} power
 *   power      = postfix [("^" | "**") sign]
 *   postfix    = primary {"!" | "%" | "²" | "³"}
 *   primary    = number ["/" number] [units {number units}] | "(" conversion ")" | "√" primary | constant | function "(" … ")" | units
 *
 * "%" is a percentage, unless an operand follows: then it is the remainder. A percentage that is added is one of the left side.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "tools/ox-tools-private.h"

#include <stdlib.h>
#include <string.h>

#include "tools/ox-tool-calculate-private.h"
#include "tools/ox-tool-json.h"

#define MAX_LENGTH 10000
#define MAX_DEPTH 100
/* Characters of the expression that a message shows. */
#define SHOWN 20

const char ox_tool_calculate_declaration[] =
  "{\"type\":\"function\",\"function\":{\"name\":\"calculate\","
  "\"description\":\"Calculates exactly. Knows + - * / // % ^ ! ( ), sqrt, sin, log (base 10), ln, round, min, max, "
  "gcd, nCr, "
  "pi, percent, and units.\","
  "\"parameters\":{\"type\":\"object\",\"properties\":{"
  "\"expression\":{\"type\":\"string\",\"description\":\"Like 2*(3+4)^2, 15% of 80, 60 mph in km/h, sin(30 deg)\"}"
  "},\"required\":[\"expression\"]}}}";

typedef struct {
  OxCalculation *calculation;
  const char *text;
  const char *p;
  const char *failed_at; /* or NULL */
  guint depth;
  guint call_depth; /* function calls around: there a comma parts arguments */
} Parser;

static const OxQuantity nothing = { 0 };

static OxQuantity parse_conversion (Parser *parser);
static OxQuantity parse_sign (Parser *parser);

/* ---- Text ---- */

static void
skip_space (Parser *parser)
{
  while (g_ascii_isspace (*parser->p) || g_str_has_prefix (parser->p, "\302\240"))
    parser->p += *parser->p == '\302' ? 2 : 1;
}

static gboolean
skip_text (Parser *parser, const char *text)
{
  if (!g_str_has_prefix (parser->p, text))
    return FALSE;
  parser->p += strlen (text);
  skip_space (parser);
  return TRUE;
}

static gboolean
is_word_byte (char c)
{
  return g_ascii_isalnum (c) || c == '_' || (guint8) c >= 0x80;
}

static gboolean
at_word (const char *p, const char *word)
{
  gsize len = strlen (word);

  return g_ascii_strncasecmp (p, word, len) == 0 && !is_word_byte (p[len]);
}

static gboolean
skip_word (Parser *parser, const char *word)
{
  if (!at_word (parser->p, word))
    return FALSE;
  parser->p += strlen (word);
  skip_space (parser);
  return TRUE;
}

static gboolean
at_any_word (const char *p, const char *const *words, gsize n)
{
  for (gsize i = 0; i < n; i++)
    if (at_word (p, words[i]))
      return TRUE;
  return FALSE;
}

/* Words that stand between operands. */
static gboolean
at_keyword (const char *p)
{
  static const char *const words[] = { "in", "to", "as", "into", "of", "mod" };

  return at_any_word (p, words, G_N_ELEMENTS (words));
}

static const char *
end_of_name (const char *p)
{
  static const char *const signs[] = { "×", "÷", "−", "·", "⋅", "²", "³", "→", "√" };

  while (is_word_byte (*p)) {
    for (gsize i = 0; i < G_N_ELEMENTS (signs); i++)
      if (g_str_has_prefix (p, signs[i]))
        return p;
    /* π is a whole name, whatever follows. */
    if (g_str_has_prefix (p, "π"))
      return p + strlen ("π");
    p = (guint8) *p >= 0x80 ? g_utf8_next_char (p) : p + 1;
  }
  return p;
}

static gboolean
begins_operand (const char *p)
{
  return g_ascii_isdigit (*p) || *p == '.' || *p == '(' || g_str_has_prefix (p, "√") ||
         (end_of_name (p) > p && !at_keyword (p));
}

static OxQuantity
fail_at (Parser *parser, const char *where, const char *message)
{
  ox_calculation_fail (parser->calculation, "%s", message);
  if (!parser->failed_at)
    parser->failed_at = where;
  return nothing;
}

/* Remembers where the first thing failed. */
static OxQuantity
check (Parser *parser, const char *where, OxQuantity result)
{
  if (!result.value && !parser->failed_at)
    parser->failed_at = where;
  return result;
}

/* ---- Primaries ---- */

/* The end of "1,000,000" at @p; NULL when the commas are none of thousands. */
static const char *
end_of_thousands (const char *p)
{
  const char *q = p;

  while (g_ascii_isdigit (*q))
    q++;
  if (q - p > 3 || *q != ',')
    return NULL;
  while (*q == ',' && g_ascii_isdigit (q[1]) && g_ascii_isdigit (q[2]) && g_ascii_isdigit (q[3]))
    q += 4;
  return *q == ',' || g_ascii_isdigit (*q) ? NULL : q;
}

static const OxNumber *
parse_number (Parser *parser)
{
  static const struct {
    const char *prefix, *digits;
    int base;
  } bases[] = { { "0x", "0123456789abcdefABCDEF", 16 }, { "0o", "01234567", 8 }, { "0b", "01", 2 } };
  g_autoptr (GString) digits = g_string_new (NULL);
  const char *begin = parser->p;
  const char *thousands = parser->call_depth == 0 ? end_of_thousands (begin) : NULL;
  const OxNumber *number;
  gboolean has_point = FALSE;

  for (gsize i = 0; i < G_N_ELEMENTS (bases); i++) {
    if (g_ascii_strncasecmp (begin, bases[i].prefix, 2) == 0) {
      gsize len = strspn (begin + 2, bases[i].digits);

      if (len == 0 || is_word_byte (begin[2 + len]))
        continue;
      parser->p = begin + 2 + len;
      return ox_number_parse_digits (parser->calculation, begin + 2, len, bases[i].base);
    }
  }
  for (; g_ascii_isdigit (*parser->p) || (*parser->p == '.' && !has_point) ||
         ((*parser->p == '_' || (thousands && parser->p < thousands && *parser->p == ',')) &&
          g_ascii_isdigit (parser->p[1]));
       parser->p++) {
    has_point |= *parser->p == '.';
    if (*parser->p != '_' && *parser->p != ',')
      g_string_append_c (digits, *parser->p);
  }
  if (strcmp (digits->str, ".") == 0)
    return fail_at (parser, begin, "expected a number").value;
  if (*parser->p == 'e' || *parser->p == 'E') {
    const char *q = parser->p + 1;

    if (*q == '+' || *q == '-')
      q++;
    if (g_ascii_isdigit (*q)) {
      while (g_ascii_isdigit (*q))
        q++;
      g_string_append_len (digits, parser->p, q - parser->p);
      parser->p = q;
    }
  }
  number = ox_number_parse (parser->calculation, digits->str, digits->len);
  if (!number)
    check (parser, begin, nothing);
  return number;
}

/* After a number: whether "in" is the inch, and not the beginning of a conversion. */
static gboolean
in_is_inch (const char *p)
{
  OxUnitProduct units;

  p += strlen ("in");
  while (g_ascii_isspace (*p))
    p++;
  return at_keyword (p) || ox_unit_product_parse (p, &units) == 0;
}

/* Units behind a number. */
static gboolean
parse_units (Parser *parser, OxUnitProduct *units)
{
  OxQuantity constant;
  const char *end = end_of_name (parser->p);
  gsize len;

  if (at_word (parser->p, "in") ? !in_is_inch (parser->p) : at_keyword (parser->p))
    return FALSE;
  if (ox_calculate_find_constant (parser->calculation, parser->p, (gsize) (end - parser->p), &constant))
    return FALSE;
  len = ox_unit_product_parse (parser->p, units);
  parser->p += len;
  skip_space (parser);
  return len > 0;
}

/* "/3 km" behind a whole number, in one piece: "1/3 km" is a third of a kilometre, and not one in three kilometres. */
static gboolean
parse_fraction (Parser *parser, const OxNumber **number, OxUnitProduct *units)
{
  const char *back = parser->p;
  const OxNumber *below;

  if (parser->p[0] != '/' || !g_ascii_isdigit (parser->p[1]) || !ox_number_is_integer (*number))
    return FALSE;
  parser->p++;
  below = parse_number (parser);
  skip_space (parser);
  if (below && ox_number_is_integer (below) && ox_number_sign (below) != 0 && parse_units (parser, units)) {
    *number = ox_number_divide (parser->calculation, *number, below);
    return TRUE;
  }
  parser->p = back;
  return FALSE;
}

/* "5", "5 km/h", "5 ft 11 in" */
static OxQuantity
parse_measure (Parser *parser)
{
  const char *begin = parser->p;
  const OxNumber *number = parse_number (parser);
  OxUnitProduct units;
  OxQuantity sum;

  if (!number)
    return nothing;
  if (!parse_fraction (parser, &number, &units)) {
    skip_space (parser);
    if (!parse_units (parser, &units))
      return ox_quantity_plain (number);
  }
  sum = check (parser, begin, ox_quantity_new (parser->calculation, number, &units));
  while (sum.value && !sum.is_point && g_ascii_isdigit (*parser->p)) {
    const char *back = parser->p;
    OxQuantity more;

    number = parse_number (parser);
    skip_space (parser);
    if (!number)
      return nothing;
    if (!parse_units (parser, &units) || !ox_unit_product_is_alike (&sum.units, &units)) {
      parser->p = back;
      break;
    }
    more = ox_quantity_new (parser->calculation, number, &units);
    sum = check (parser, back, ox_quantity_add (parser->calculation, &sum, &more, FALSE));
  }
  return sum;
}

static OxQuantity
parse_call (Parser *parser, const OxCalculateFunction *function, const char *name)
{
  OxQuantity arguments[OX_CALCULATE_MAX_ARGUMENTS];
  guint n = 0;

  parser->call_depth++;
  skip_text (parser, "(");
  while (*parser->p != ')') {
    if (n == OX_CALCULATE_MAX_ARGUMENTS)
      return fail_at (parser, parser->p, "too many arguments");
    arguments[n] = parse_conversion (parser);
    if (!arguments[n++].value)
      return nothing;
    if (!skip_text (parser, ",") && !skip_text (parser, ";") && *parser->p != ')')
      return fail_at (parser, parser->p, "expected “,” or “)”");
  }
  skip_text (parser, ")");
  parser->call_depth--;
  if (n < function->min_arguments || n > function->max_arguments) {
    g_autofree char *message = function->min_arguments == function->max_arguments
                                 ? g_strdup_printf ("this function takes %u argument%s, not %u",
                                                    function->min_arguments, function->min_arguments == 1 ? "" : "s", n)
                                 : g_strdup_printf ("this function takes %u to %u arguments, not %u",
                                                    function->min_arguments, function->max_arguments, n);

    return fail_at (parser, name, message);
  }
  return check (parser, name, function->run (parser->calculation, arguments, n));
}

/* A constant, a function or a unit alone. */
static OxQuantity
parse_name (Parser *parser)
{
  const char *begin = parser->p, *end = end_of_name (begin), *after = end;
  const OxCalculateFunction *function = ox_calculate_find_function (begin, (gsize) (end - begin));
  g_autofree char *suggestion = NULL;
  g_autofree char *message = NULL;
  OxUnitProduct units;
  OxQuantity value;

  while (g_ascii_isspace (*after))
    after++;
  if (function && *after == '(') {
    parser->p = after;
    return parse_call (parser, function, begin);
  }
  if (ox_calculate_find_constant (parser->calculation, begin, (gsize) (end - begin), &value)) {
    parser->p = end;
    skip_space (parser);
    return check (parser, begin, value);
  }
  if (parse_units (parser, &units))
    return check (parser, begin,
                  ox_quantity_new (parser->calculation, ox_number_from_integer (parser->calculation, 1), &units));
  if (function)
    return fail_at (parser, begin, "this function takes its arguments in parentheses");
  suggestion = ox_unit_suggest (begin, (gsize) (end - begin));
  message =
    g_strdup_printf ("“%.*s” is no function, constant or unit that is known here%s%s", (int) MIN (end - begin, 60),
                     begin, suggestion ? "; similar: " : "", suggestion ? suggestion : "");
  return fail_at (parser, begin, message);
}

static OxQuantity
parse_primary (Parser *parser)
{
  const char *begin = parser->p;
  OxQuantity value;

  if (g_ascii_isdigit (*parser->p) || *parser->p == '.')
    return parse_measure (parser);
  if (skip_text (parser, "√")) {
    if (++parser->depth > MAX_DEPTH)
      return fail_at (parser, begin, "this is nested too deeply");
    value = parse_primary (parser);
    parser->depth--;
    return check (parser, begin, ox_quantity_root (parser->calculation, &value, 2));
  }
  if (*parser->p == '(') {
    guint calls = parser->call_depth;

    skip_text (parser, "(");
    parser->call_depth = 0;
    value = parse_conversion (parser);
    parser->call_depth = calls;
    if (!value.value)
      return nothing;
    if (!skip_text (parser, ")"))
      return fail_at (parser, parser->p, "expected “)”");
    value.is_percent = FALSE;
    return value;
  }
  if (end_of_name (parser->p) > parser->p && !at_keyword (parser->p))
    return parse_name (parser);
  return fail_at (parser, begin, "expected a number");
}

/* ---- Operators ---- */

/* "7 % -3" is a remainder, "7% - 3" and "7% -3" are differences. @percent: the sign, behind which the parser is. */
static gboolean
is_remainder_of_negative (const Parser *parser, const char *percent)
{
  return percent > parser->text && g_ascii_isspace (percent[-1]) && parser->p[0] == '-' &&
         begins_operand (parser->p + 1);
}

static OxQuantity
parse_postfix (Parser *parser)
{
  OxQuantity value = parse_primary (parser);

  while (value.value) {
    const char *begin = parser->p;

    if (*begin == '!' && begin[1] != '=') {
      OxQuantity plain = ox_quantity_drop_radians (parser->calculation, &value);

      skip_text (parser, "!");
      if (!ox_quantity_is_plain (&plain))
        return fail_at (parser, begin, "the factorial of a number with a unit is not known");
      value = check (parser, begin, ox_quantity_plain (ox_number_factorial (parser->calculation, plain.value)));
    } else if (*begin == '%') {
      OxQuantity hundred = ox_quantity_plain (ox_number_from_integer (parser->calculation, 100));

      skip_text (parser, "%");
      if (begins_operand (parser->p) || is_remainder_of_negative (parser, begin)) {
        parser->p = begin;
        return value;
      }
      value = check (parser, begin, ox_quantity_multiply (parser->calculation, &value, &hundred, TRUE));
      value.is_percent = ox_quantity_is_plain (&value);
    } else if (skip_text (parser, "²") || skip_text (parser, "³")) {
      OxQuantity exponent =
        ox_quantity_plain (ox_number_from_integer (parser->calculation, g_str_has_prefix (begin, "²") ? 2 : 3));

      value = check (parser, begin, ox_quantity_power (parser->calculation, &value, &exponent));
    } else {
      return value;
    }
  }
  return value;
}

static OxQuantity
parse_power (Parser *parser)
{
  OxQuantity base = parse_postfix (parser), exponent;
  const char *begin = parser->p;

  if (!base.value || (!skip_text (parser, "^") && !skip_text (parser, "**")))
    return base;
  exponent = parse_sign (parser);
  if (!exponent.value)
    return nothing;
  return check (parser, begin, ox_quantity_power (parser->calculation, &base, &exponent));
}

static OxQuantity
parse_sign (Parser *parser)
{
  const char *begin = parser->p;
  OxQuantity value;
  gboolean negative = FALSE;

  if (++parser->depth > MAX_DEPTH)
    return fail_at (parser, begin, "this is nested too deeply");
  for (;;) {
    if (skip_text (parser, "-") || skip_text (parser, "−"))
      negative = !negative;
    else if (!skip_text (parser, "+"))
      break;
  }
  value = parse_power (parser);
  parser->depth--;
  return negative ? check (parser, begin, ox_quantity_negate (parser->calculation, &value)) : value;
}

/* floor (a / b) or a - b floor (a / b), for plain numbers and quantities of one kind. */
static OxQuantity
divide_whole (Parser *parser, const OxQuantity *a, const OxQuantity *b, gboolean rest)
{
  OxQuantity result = *a;

  if (!ox_unit_product_is_alike (&a->units, &b->units) || a->is_point || b->is_point) {
    ox_calculation_fail (parser->calculation, "whole division takes quantities of one kind");
    return nothing;
  }
  result.is_percent = FALSE;
  if (rest) {
    result.value = ox_number_modulo (parser->calculation, a->value, b->value);
    return result;
  }
  return ox_quantity_plain (ox_number_floor_divide (parser->calculation, a->value, b->value));
}

static OxQuantity
parse_product (Parser *parser)
{
  OxQuantity left = parse_sign (parser), right;

  while (left.value) {
    const char *begin = parser->p;
    enum { TIMES, OVER, WHOLE, REST } operation;
    OxUnitProduct units;

    if (g_str_has_prefix (begin, "**"))
      return left;
    /* "(3 + 4) km", "(-5) °C": no product, which a temperature does not have. */
    if (ox_quantity_is_plain (&left) && end_of_name (begin) > begin && parse_units (parser, &units)) {
      left = check (parser, begin, ox_quantity_new (parser->calculation, left.value, &units));
      continue;
    }
    if (skip_text (parser, "*") || skip_text (parser, "×") || skip_text (parser, "·") || skip_text (parser, "⋅") ||
        skip_word (parser, "of") || skip_word (parser, "x"))
      operation = TIMES;
    else if (skip_text (parser, "//"))
      operation = WHOLE;
    else if (skip_text (parser, "/") || skip_text (parser, "÷"))
      operation = OVER;
    else if (skip_text (parser, "%") || skip_word (parser, "mod"))
      operation = REST;
    else if (begins_operand (begin) && !g_ascii_isdigit (*begin) && *begin != '.')
      operation = TIMES;
    else
      return left;
    right = parse_sign (parser);
    if (!right.value)
      return nothing;
    left = check (parser, begin,
                  operation == WHOLE || operation == REST
                    ? divide_whole (parser, &left, &right, operation == REST)
                    : ox_quantity_multiply (parser->calculation, &left, &right, operation == OVER));
  }
  return left;
}

static OxQuantity
parse_sum (Parser *parser)
{
  OxQuantity left = parse_product (parser), right;

  while (left.value) {
    const char *begin = parser->p;
    gboolean subtract;

    if (g_str_has_prefix (begin, "->"))
      return left;
    if (skip_text (parser, "+"))
      subtract = FALSE;
    else if (skip_text (parser, "-") || skip_text (parser, "−"))
      subtract = TRUE;
    else
      return left;
    right = parse_product (parser);
    if (!right.value)
      return nothing;
    left = check (parser, begin, ox_quantity_add (parser->calculation, &left, &right, subtract));
  }
  return left;
}

static OxQuantity
parse_conversion (Parser *parser)
{
  OxQuantity value;

  if (++parser->depth > MAX_DEPTH)
    return fail_at (parser, parser->p, "this is nested too deeply");
  value = parse_sum (parser);
  while (value.value) {
    const char *begin = parser->p;
    OxUnitProduct units;
    gsize len;

    if (!skip_word (parser, "in") && !skip_word (parser, "to") && !skip_word (parser, "as") &&
        !skip_word (parser, "into") && !skip_text (parser, "->") && !skip_text (parser, "→"))
      break;
    len = ox_unit_product_parse (parser->p, &units);
    if (len == 0) {
      const char *end = end_of_name (parser->p);
      g_autofree char *suggestion = ox_unit_suggest (parser->p, (gsize) (end - parser->p));
      g_autofree char *message =
        g_strdup_printf ("expected a unit%s%s", suggestion ? "; similar: " : "", suggestion ? suggestion : "");

      return fail_at (parser, parser->p, message);
    }
    parser->p += len;
    skip_space (parser);
    value = check (parser, begin, ox_quantity_convert (parser->calculation, &value, &units));
  }
  parser->depth--;
  return value;
}

/* ---- The tool ---- */

/* "division by zero (at character 5: “/ 0”)" */
static void
set_error (Parser *parser, GError **error)
{
  g_autoptr (GError) found = NULL;
  const char *at = parser->failed_at ? parser->failed_at : parser->p;
  const char *end = at;

  ox_calculation_take_error (parser->calculation, &found);
  if (!found || g_error_matches (found, G_IO_ERROR, G_IO_ERROR_CANCELLED)) {
    g_propagate_error (error, g_steal_pointer (&found));
    return;
  }
  for (int i = 0; i < SHOWN && *end != '\0'; i++)
    end = g_utf8_next_char (end);
  if (*at == '\0')
    g_set_error (error, OX_ERROR, OX_ERROR_INVALID, "%s (at the end)", found->message);
  else
    g_set_error (error, OX_ERROR, OX_ERROR_INVALID, "%s (at character %ld: “%.*s%s”)", found->message,
                 g_utf8_pointer_to_offset (parser->text, at) + 1, (int) (end - at), at, *end != '\0' ? "…" : "");
}

char *
ox_tool_calculate (const char *arguments, gpointer user_data, GCancellable *cancellable, GError **error)
{
  g_autoptr (OxValue) value = ox_value_parse (arguments, strlen (arguments), "arguments", error);
  g_autoptr (OxCalculation) calculation = NULL;
  g_autofree char *text = NULL;
  const char *expression;
  OxQuantity result;
  Parser parser;
  char *json;
  gsize len;

  if (!value)
    return NULL;
  expression = ox_tool_get_text (value, "expression");
  if (!expression || strlen (expression) > MAX_LENGTH) {
    g_set_error (error, OX_ERROR, OX_ERROR_INVALID, "the expression is longer than %d bytes", MAX_LENGTH);
    return NULL;
  }
  text = g_strdup (expression);
  /* "2 + 2 = ?" */
  for (len = strlen (text); len > 0 && (g_ascii_isspace (text[len - 1]) || strchr ("=?", text[len - 1])); len--)
    text[len - 1] = '\0';
  calculation = ox_calculation_new (cancellable);
  parser = (Parser) { calculation, text, text };
  skip_space (&parser);
  result = parse_conversion (&parser);
  if (result.value && *parser.p != '\0')
    result = fail_at (&parser, parser.p,
                      *parser.p == ','   ? "a comma does not belong here; the decimal point is “.”"
                      : *parser.p == ')' ? "there is no “(” to this “)”"
                                         : "expected an operator");
  json = result.value ? ox_quantity_to_json (calculation, &result) : NULL;
  if (!json)
    set_error (&parser, error);
  return json;
}
