/* How the calculator writes its numbers.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "tools/ox-exact.h"

#include <stdlib.h>
#include <string.h>

/* Digits of a number that is written out whole. */
#define MAX_DIGITS 1000
/* Of a finite decimal fraction; longer ones are rounded. */
#define MAX_DECIMALS 30
/* Of a numerator and a denominator. */
#define MAX_FRACTION 60
/* From here on a rounded number is written with an exponent. */
#define MIN_EXPONENT (-7)
#define MAX_EXPONENT 21

static void
append_integer (GString *out, mpz_srcptr z)
{
  char *text = mpz_get_str (NULL, 10, z);
  void (*free_func) (void *, size_t);

  g_string_append (out, text);
  mp_get_memory_functions (NULL, NULL, &free_func);
  free_func (text, strlen (text) + 1);
}

/* Digits behind the point of a finite decimal fraction; -1 when it is none, or too long to be shown. */
static int
count_decimals (mpq_srcptr q)
{
  gulong twos, fives;
  int decimals;
  mpz_t rest, two, five;

  if (mpz_sizeinbase (mpq_denref (q), 10) > 4 * MAX_DECIMALS)
    return -1;
  mpz_inits (rest, NULL);
  mpz_init_set_ui (two, 2);
  mpz_init_set_ui (five, 5);
  twos = mpz_remove (rest, mpq_denref (q), two);
  fives = mpz_remove (rest, rest, five);
  decimals = mpz_cmp_ui (rest, 1) == 0 && MAX (twos, fives) <= MAX_DECIMALS ? (int) MAX (twos, fives) : -1;
  mpz_clears (rest, two, five, NULL);
  return decimals;
}

/* @digits of a number between 0 and 10, times 10^exponent. */
static void
append_digits (GString *out, const char *digits, long exponent)
{
  gsize len = strlen (digits);

  while (len > 1 && digits[len - 1] == '0')
    len--;
  if (exponent <= MIN_EXPONENT || exponent >= MAX_EXPONENT) {
    g_string_append_c (out, digits[0]);
    if (len > 1)
      g_string_append_printf (out, ".%.*s", (int) len - 1, digits + 1);
    g_string_append_printf (out, "e%+ld", exponent);
  } else if (exponent < 0) {
    g_string_append (out, "0.");
    for (long i = -1; i > exponent; i--)
      g_string_append_c (out, '0');
    g_string_append_len (out, digits, (gssize) len);
  } else {
    for (long i = 0; i <= exponent || (gsize) i < len; i++) {
      if (i == exponent + 1)
        g_string_append_c (out, '.');
      g_string_append_c (out, (gsize) i < len ? digits[i] : '0');
    }
  }
}

/* OX_NUMBER_DIGITS significant digits; a half is rounded away from zero. */
static void
append_rounded (GString *out, mpq_srcptr q)
{
  long exponent = (long) mpz_sizeinbase (mpq_numref (q), 10) - (long) mpz_sizeinbase (mpq_denref (q), 10);
  g_autoptr (GString) digits = g_string_new (NULL);
  mpz_t top, bottom, scale;

  mpz_inits (top, bottom, scale, NULL);
  /* sizeinbase may be one too large on either side, so the first guess may be off by one or two. */
  for (exponent += 2; digits->len < OX_NUMBER_DIGITS; exponent--) {
    long shift = OX_NUMBER_DIGITS - 1 - exponent;

    mpz_ui_pow_ui (scale, 10, (gulong) labs (shift));
    mpz_abs (top, mpq_numref (q));
    mpz_set (bottom, mpq_denref (q));
    if (shift >= 0)
      mpz_mul (top, top, scale);
    else
      mpz_mul (bottom, bottom, scale);
    /* floor (x + 1/2) */
    mpz_mul_2exp (top, top, 1);
    mpz_add (top, top, bottom);
    mpz_mul_2exp (bottom, bottom, 1);
    mpz_fdiv_q (top, top, bottom);
    g_string_truncate (digits, 0);
    append_integer (digits, top);
  }
  exponent++;
  mpz_clears (top, bottom, scale, NULL);
  if (mpq_sgn (q) < 0)
    g_string_append_c (out, '-');
  append_digits (out, digits->str, exponent);
}

static void
append_decimal (GString *out, mpq_srcptr q, int decimals)
{
  g_autoptr (GString) digits = g_string_new (NULL);
  mpz_t scaled;

  mpz_init (scaled);
  mpz_ui_pow_ui (scaled, 10, (gulong) decimals);
  mpz_mul (scaled, scaled, mpq_numref (q));
  mpz_divexact (scaled, scaled, mpq_denref (q));
  mpz_abs (scaled, scaled);
  append_integer (digits, scaled);
  mpz_clear (scaled);
  if (mpq_sgn (q) < 0)
    g_string_append_c (out, '-');
  if ((long) digits->len - 1 - decimals <= MIN_EXPONENT) {
    append_digits (out, digits->str, (long) digits->len - 1 - decimals);
    return;
  }
  while (digits->len <= (gsize) decimals)
    g_string_prepend_c (digits, '0');
  g_string_insert_c (digits, (gssize) digits->len - decimals, '.');
  g_string_append (out, digits->str);
}

void
ox_number_format (const OxNumber *a, char **decimal, char **exact, gboolean *is_rounded)
{
  g_autoptr (GString) out = g_string_new (NULL);
  g_autoptr (GString) fraction = NULL;
  int decimals;

  *exact = NULL;
  *is_rounded = !a->is_exact;
  if (!a->is_exact) {
    char text[64];
    char *mark;

    /* As the exact ones: digits, then where the point belongs. */
    g_snprintf (text, sizeof text, "%.*Le", OX_NUMBER_DIGITS - 1, a->d);
    mark = strchr (text, 'e');
    if (a->d == 0) {
      g_string_append_c (out, '0');
    } else {
      long exponent = strtol (mark + 1, NULL, 10);
      char *digits = text[0] == '-' ? text + 1 : text;

      *mark = '\0';
      memmove (digits + 1, digits + 2, strlen (digits + 2) + 1);
      if (text[0] == '-')
        g_string_append_c (out, '-');
      append_digits (out, digits, exponent);
    }
  } else if (mpz_sizeinbase (mpq_numref (a->q), 10) > MAX_DIGITS) {
    append_rounded (out, a->q);
    *is_rounded = TRUE;
  } else if (ox_number_is_integer (a)) {
    append_integer (out, mpq_numref (a->q));
  } else if ((decimals = count_decimals (a->q)) >= 0) {
    append_decimal (out, a->q, decimals);
  } else {
    append_rounded (out, a->q);
    *is_rounded = TRUE;
    if (mpz_sizeinbase (mpq_numref (a->q), 10) <= MAX_FRACTION &&
        mpz_sizeinbase (mpq_denref (a->q), 10) <= MAX_FRACTION) {
      fraction = g_string_new (NULL);
      append_integer (fraction, mpq_numref (a->q));
      g_string_append_c (fraction, '/');
      append_integer (fraction, mpq_denref (a->q));
      *exact = g_string_free (g_steal_pointer (&fraction), FALSE);
    }
  }
  *decimal = g_string_free (g_steal_pointer (&out), FALSE);
}
