/* Units of measurement, with exact factors.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "tools/ox-units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of the longest name. */
#define MAX_NAME 48
#define MAX_UNIT_EXPONENT 99
#define MAX_DEPTH 3
#define N_SUGGESTIONS 3

/* ---- Names ---- */

/* Two units whose names differ by case alone. */
#define AMBIGUOUS G_MAXUINT

/* From names to units' numbers plus one: [1] without regard to case. */
typedef struct {
  GHashTable *symbols[2];
  GHashTable *names[2];
} Index;

static void
index_list (GHashTable *tables[2], const char *list, guint number)
{
  while (list && list[1] != '\0') {
    const char *end = strchr (++list, '|');
    char *name = g_strndup (list, (gsize) (end - list));
    char *folded = g_ascii_strdown (name, -1);
    guint other = GPOINTER_TO_UINT (g_hash_table_lookup (tables[1], folded));

    g_hash_table_insert (tables[0], name, GUINT_TO_POINTER (number));
    g_hash_table_insert (tables[1], folded, GUINT_TO_POINTER (other == 0 || other == number ? number : AMBIGUOUS));
    list = end;
  }
}

static const Index *
get_index (void)
{
  static Index *index;

  if (g_once_init_enter_pointer (&index)) {
    Index *made = g_new0 (Index, 1);

    for (int fold = 0; fold < 2; fold++) {
      made->symbols[fold] = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
      made->names[fold] = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
    }
    for (guint i = 0; i < ox_n_units; i++) {
      index_list (made->symbols, ox_units[i].symbols, i + 1);
      index_list (made->names, ox_units[i].names, i + 1);
    }
    g_once_init_leave_pointer (&index, made);
  }
  return index;
}

/* 0, a unit's number plus one, or AMBIGUOUS. */
static guint
look_up (GHashTable *const tables[2], const char *name, gsize len, gboolean fold)
{
  char key[MAX_NAME + 1];

  for (gsize i = 0; i < len; i++)
    key[i] = fold ? g_ascii_tolower (name[i]) : name[i];
  key[len] = '\0';
  return GPOINTER_TO_UINT (g_hash_table_lookup (tables[fold], key));
}

static gboolean
prefix_suits (const OxUnitPrefix *prefix, const OxUnit *unit)
{
  gboolean is_data = (unit->flags & OX_UNIT_BINARY_PREFIXES) != 0;

  /* "mb" is no thousandth of a bit. */
  return (unit->flags & OX_UNIT_PREFIXES) != 0 && (is_data ? prefix->exponent > 0 : prefix->base == 10);
}

static gboolean
begins (const char *name, gsize len, const char *prefix, gboolean fold)
{
  gsize n = strlen (prefix);

  return n < len && (fold ? g_ascii_strncasecmp (name, prefix, n) : strncmp (name, prefix, n)) == 0;
}

/* Adds a unit that a name may mean; the same once. */
static void
add_meaning (guint number, const OxUnitPrefix *prefix, guint *n, OxUnitTerm *term)
{
  if (number == AMBIGUOUS) {
    *n += 2;
  } else if (number > 0 && (!prefix || prefix_suits (prefix, &ox_units[number - 1]))) {
    const OxUnit *unit = &ox_units[number - 1];

    if (*n == 0 || term->unit != unit || (prefix && term->prefix->exponent != prefix->exponent))
      (*n)++;
    *term = (OxUnitTerm) { unit, prefix, 1 };
  }
}

static guint
count_plain (const char *name, gsize len, gboolean fold, OxUnitTerm *term)
{
  const Index *index = get_index ();
  guint n = 0;

  add_meaning (look_up (index->symbols, name, len, fold), NULL, &n, term);
  add_meaning (look_up (index->names, name, len, fold), NULL, &n, term);
  return n;
}

static guint
count_prefixed (const char *name, gsize len, gboolean fold, OxUnitTerm *term)
{
  const Index *index = get_index ();
  guint n = 0;

  for (gsize i = 0; i < ox_n_unit_prefixes; i++) {
    const OxUnitPrefix *prefix = &ox_unit_prefixes[i];
    gsize a = strlen (prefix->symbol), b = strlen (prefix->name);

    if (begins (name, len, prefix->symbol, fold)) {
      add_meaning (look_up (index->symbols, name + a, len - a, fold), prefix, &n, term);
    } else if (name[0] == 'K' && len > 1 && strcmp (prefix->symbol, "k") == 0) {
      guint number = look_up (index->symbols, name + 1, len - 1, FALSE);

      /* Kilobytes are often written so. */
      if (number > 0 && ox_units[number - 1].flags & OX_UNIT_BINARY_PREFIXES)
        add_meaning (number, prefix, &n, term);
    }
    if (begins (name, len, prefix->name, fold))
      add_meaning (look_up (index->names, name + b, len - b, fold), prefix, &n, term);
  }
  return n;
}

gboolean
ox_unit_find (const char *name, gsize len, OxUnitTerm *term)
{
  guint n;

  if (len == 0 || len > MAX_NAME)
    return FALSE;
  if (count_plain (name, len, FALSE, term) > 0 || count_prefixed (name, len, FALSE, term) > 0)
    return TRUE;
  n = count_plain (name, len, TRUE, term);
  if (n == 0)
    n = count_prefixed (name, len, TRUE, term);
  return n == 1;
}

/* Levenshtein distance without regard to case. Both at most MAX_NAME bytes. */
static guint
distance (const char *a, gsize a_len, const char *b, gsize b_len)
{
  guint row[MAX_NAME + 1];

  for (gsize j = 0; j <= b_len; j++)
    row[j] = (guint) j;
  for (gsize i = 1; i <= a_len; i++) {
    guint diagonal = row[0];

    row[0] = (guint) i;
    for (gsize j = 1; j <= b_len; j++) {
      guint change = diagonal + (g_ascii_tolower (a[i - 1]) != g_ascii_tolower (b[j - 1]));

      diagonal = row[j];
      row[j] = MIN (MIN (row[j], row[j - 1]) + 1, change);
    }
  }
  return row[b_len];
}

typedef struct {
  char *name;
  guint distance;
} Suggestion;

static void
suggestion_clear (gpointer data)
{
  g_free (((Suggestion *) data)->name);
}

static int
compare_suggestions (gconstpointer a, gconstpointer b)
{
  return (int) ((const Suggestion *) a)->distance - (int) ((const Suggestion *) b)->distance;
}

static void
consider (GArray *suggestions, const char *name, gsize len, const char *prefix, const char *list)
{
  while (list && list[1] != '\0') {
    const char *end = strchr (++list, '|');
    g_autofree char *candidate = g_strdup_printf ("%s%.*s", prefix, (int) (end - list), list);
    Suggestion one = { NULL, 0 };

    if (strlen (candidate) <= MAX_NAME) {
      one.distance = distance (name, len, candidate, strlen (candidate));
      if (one.distance <= (len < 3 ? 0 : 1 + len / 5)) {
        one.name = g_steal_pointer (&candidate);
        g_array_append_val (suggestions, one);
      }
    }
    list = end;
  }
}

char *
ox_unit_suggest (const char *name, gsize len)
{
  g_autoptr (GArray) suggestions = g_array_new (FALSE, FALSE, sizeof (Suggestion));
  g_autoptr (GString) out = g_string_new (NULL);

  /* Three weights have that name. */
  if ((len == 3 && g_ascii_strncasecmp (name, "ton", 3) == 0) ||
      (len == 4 && g_ascii_strncasecmp (name, "tons", 4) == 0))
    return g_strdup ("tonne, short ton, long ton");
  g_array_set_clear_func (suggestions, suggestion_clear);
  len = MIN (len, MAX_NAME);
  for (gsize i = 0; i < ox_n_units; i++) {
    consider (suggestions, name, len, "", ox_units[i].symbols);
    consider (suggestions, name, len, "", ox_units[i].names);
    for (gsize j = 0; j < ox_n_unit_prefixes; j++) {
      if (!prefix_suits (&ox_unit_prefixes[j], &ox_units[i]))
        continue;
      consider (suggestions, name, len, ox_unit_prefixes[j].symbol, ox_units[i].symbols);
      consider (suggestions, name, len, ox_unit_prefixes[j].name, ox_units[i].names);
    }
  }
  g_array_sort (suggestions, compare_suggestions);
  for (guint i = 0; i < MIN (suggestions->len, N_SUGGESTIONS); i++)
    g_string_append_printf (out, "%s%s", i > 0 ? ", " : "", g_array_index (suggestions, Suggestion, i).name);
  return out->len > 0 ? g_string_free (g_steal_pointer (&out), FALSE) : NULL;
}

/* ---- Products ---- */

static gboolean
is_letter (const char *p)
{
  return g_ascii_isalpha (*p) || *p == '_' ||
         ((guint8) *p >= 0x80 && !g_str_has_prefix (p, "×") && !g_str_has_prefix (p, "÷") &&
          !g_str_has_prefix (p, "−") && !g_str_has_prefix (p, "·") && !g_str_has_prefix (p, "⋅") &&
          !g_str_has_prefix (p, "²") && !g_str_has_prefix (p, "³") && !g_str_has_prefix (p, "→") &&
          !g_str_has_prefix (p, "√") && !g_str_has_prefix (p, "π"));
}

static const char *
skip_space (const char *p)
{
  while (g_ascii_isspace (*p))
    p++;
  return p;
}

static gboolean
skip_word (const char **p, const char *word)
{
  gsize len = strlen (word);

  if (g_ascii_strncasecmp (*p, word, len) != 0 || is_letter (*p + len) || g_ascii_isdigit ((*p)[len]))
    return FALSE;
  *p = skip_space (*p + len);
  return TRUE;
}

/* The longest name at @p that is a unit: "nautical miles" is more than "n". Returns its end. */
static const char *
find_longest (const char *p, OxUnitTerm *term)
{
  gsize longest = 0;

  while (longest < MAX_NAME &&
         (is_letter (p + longest) ||
          (longest > 0 && (g_ascii_isalnum (p[longest]) || strchr (" -/", p[longest])) && p[longest] != '\0')))
    longest++;
  for (gsize len = longest; len > 0; len--) {
    const char *end = p + len;

    /* Not within a word; a digit behind is an exponent: "m2". */
    if (is_letter (end - 1) && is_letter (end))
      continue;
    if (g_ascii_isspace (end[-1]) || ((guint8) *end & 0xc0) == 0x80)
      continue;
    if (g_ascii_isdigit (*end) && ((*end != '2' && *end != '3') || g_ascii_isalnum (end[1]) || end[1] == '.'))
      continue;
    if (ox_unit_find (p, len, term) && *skip_space (end) != '(')
      return end;
  }
  return NULL;
}

static const char *
parse_exponent (const char *p, int *exponent)
{
  const char *q = skip_space (p);
  char *end;
  long value;

  *exponent = 1;
  if (*p == '2' || *p == '3') {
    *exponent = *p - '0';
    return p + 1;
  }
  if (g_str_has_prefix (p, "²") || g_str_has_prefix (p, "³")) {
    *exponent = g_str_has_prefix (p, "²") ? 2 : 3;
    return p + strlen ("²");
  }
  if (*q == '^')
    q++;
  else if (q[0] == '*' && q[1] == '*')
    q += 2;
  else
    return p;
  q = skip_space (q);
  if (!g_ascii_isdigit (*q) && !(*q == '-' && g_ascii_isdigit (q[1])))
    return p;
  value = strtol (q, &end, 10);
  /* "m^0.5" is not for a unit. */
  if (*end == '.' || value < -MAX_UNIT_EXPONENT || value > MAX_UNIT_EXPONENT)
    return p;
  *exponent = (int) value;
  return end;
}

static const char *
parse_term (const char *p, OxUnitProduct *product)
{
  OxUnitTerm term;
  const char *end = find_longest (p, &term);
  int power = 1, exponent;

  if (!end) {
    if (skip_word (&p, "square") || skip_word (&p, "sq"))
      power = 2;
    else if (skip_word (&p, "cubic") || skip_word (&p, "cu"))
      power = 3;
    else
      return NULL;
    end = find_longest (p, &term);
    if (!end)
      return NULL;
  }
  end = parse_exponent (end, &exponent);
  term.exponent = exponent * power;
  *product = (OxUnitProduct) { { term }, 1 };
  return end;
}

static const char *parse_product (const char *p, OxUnitProduct *product, guint depth);

static const char *
parse_factor (const char *p, OxUnitProduct *product, guint depth)
{
  if (*p == '(' && depth < MAX_DEPTH) {
    const char *end = parse_product (skip_space (p + 1), product, depth + 1);

    end = end ? skip_space (end) : NULL;
    return end && *end == ')' ? end + 1 : NULL;
  }
  return parse_term (p, product);
}

static const char *
parse_product (const char *p, OxUnitProduct *product, guint depth)
{
  const char *end = parse_factor (p, product, depth);

  while (end) {
    static const char *const operators[] = { "*", "·", "⋅" };
    /* These follow a quantity and mean something else there. */
    static const char *const words[] = { "in", "to", "as", "of", "mod", "and" };
    const char *q = skip_space (end), *next;
    OxUnitProduct other;
    int sign = 1;

    if (*q == '\0')
      break;
    if (q[0] == '/' && q[1] != '/') {
      sign = -1;
      q = skip_space (q + 1);
    } else if (skip_word (&q, "per")) {
      sign = -1;
    } else {
      gboolean found = FALSE;

      for (gsize i = 0; i < G_N_ELEMENTS (operators) && !found; i++) {
        if (g_str_has_prefix (q, operators[i]) && q[1] != '*') {
          q = skip_space (q + strlen (operators[i]));
          found = TRUE;
        }
      }
      for (gsize i = 0; i < G_N_ELEMENTS (words) && !found; i++) {
        const char *word = q;

        if (skip_word (&word, words[i]))
          return end;
      }
      if (!found && *q == '(')
        break;
    }
    next = parse_factor (q, &other, depth);
    if (!next || !ox_unit_product_multiply (product, &other, sign))
      break;
    end = next;
  }
  return end;
}

gsize
ox_unit_product_parse (const char *text, OxUnitProduct *product)
{
  const char *end;

  *product = (OxUnitProduct) { 0 };
  end = parse_product (text, product, 0);
  return end ? (gsize) (end - text) : 0;
}

void
ox_unit_product_get_dimensions (const OxUnitProduct *product, int dimensions[OX_N_DIMENSIONS])
{
  memset (dimensions, 0, OX_N_DIMENSIONS * sizeof *dimensions);
  for (guint i = 0; i < product->n_terms; i++)
    for (int j = 0; j < OX_N_DIMENSIONS; j++)
      dimensions[j] += product->terms[i].unit->dimensions[j] * product->terms[i].exponent;
}

gboolean
ox_unit_product_is_alike (const OxUnitProduct *a, const OxUnitProduct *b)
{
  int x[OX_N_DIMENSIONS], y[OX_N_DIMENSIONS];

  ox_unit_product_get_dimensions (a, x);
  ox_unit_product_get_dimensions (b, y);
  return memcmp (x, y, sizeof x) == 0;
}

const OxNumber *
ox_unit_product_get_factor (OxCalculation *calculation, const OxUnitProduct *product)
{
  const OxNumber *factor = ox_number_from_integer (calculation, 1);

  for (guint i = 0; i < product->n_terms && factor; i++) {
    const OxUnitTerm *term = &product->terms[i];
    const OxNumber *one = term->unit->flags & OX_UNIT_IRRATIONAL
                            ? ox_number_from_double (calculation, 1 / (2 * 3.141592653589793238462643383279502884L))
                            : ox_number_parse (calculation, term->unit->factor, strlen (term->unit->factor));

    if (term->prefix)
      one = ox_number_multiply (calculation, one,
                                ox_number_power (calculation, ox_number_from_integer (calculation, term->prefix->base),
                                                 ox_number_from_integer (calculation, term->prefix->exponent)));
    one = ox_number_power (calculation, one, ox_number_from_integer (calculation, term->exponent));
    factor = ox_number_multiply (calculation, factor, one);
  }
  return factor;
}

const char *
ox_unit_product_get_offset (const OxUnitProduct *product)
{
  return product->n_terms == 1 && product->terms[0].exponent == 1 ? product->terms[0].unit->offset : NULL;
}

gboolean
ox_unit_product_is_fuel (const OxUnitProduct *product)
{
  return product->n_terms == 1 && product->terms[0].exponent == 1 && product->terms[0].unit->flags & OX_UNIT_FUEL;
}

static gboolean
same_kind (const OxUnitTerm *a, const OxUnitTerm *b)
{
  return memcmp (a->unit->dimensions, b->unit->dimensions, sizeof a->unit->dimensions) == 0;
}

gboolean
ox_unit_product_multiply (OxUnitProduct *product, const OxUnitProduct *other, int sign)
{
  for (guint i = 0; i < other->n_terms; i++) {
    OxUnitTerm term = other->terms[i];
    guint j = 0;

    term.exponent *= sign;
    while (j < product->n_terms && !same_kind (&product->terms[j], &term))
      j++;
    if (j == OX_MAX_UNIT_TERMS)
      return FALSE;
    if (j == product->n_terms) {
      product->terms[product->n_terms++] = term;
      continue;
    }
    product->terms[j].exponent += term.exponent;
    if (product->terms[j].exponent > MAX_UNIT_EXPONENT || product->terms[j].exponent < -MAX_UNIT_EXPONENT)
      return FALSE;
    if (product->terms[j].exponent == 0) {
      memmove (product->terms + j, product->terms + j + 1, (product->n_terms - j - 1) * sizeof *product->terms);
      product->n_terms--;
    }
  }
  return TRUE;
}

gboolean
ox_unit_product_reduce (OxUnitProduct *product)
{
  int dimensions[OX_N_DIMENSIONS];

  ox_unit_product_get_dimensions (product, dimensions);
  for (int i = 0; i < OX_N_DIMENSIONS; i++)
    if (dimensions[i] != 0)
      return FALSE;
  product->n_terms = 0;
  return TRUE;
}

static void
append_term (GString *out, const OxUnitTerm *term, int exponent)
{
  const char *list = term->unit->symbols;

  if (term->prefix)
    g_string_append (out, term->prefix->symbol);
  g_string_append_len (out, list + 1, strchr (list + 1, '|') - list - 1);
  if (exponent != 1)
    g_string_append_printf (out, "^%d", exponent);
}

char *
ox_unit_product_to_text (const OxUnitProduct *product)
{
  g_autoptr (GString) out = g_string_new (NULL);

  for (guint i = 0; i < product->n_terms; i++) {
    if (product->terms[i].exponent > 0) {
      if (out->len > 0)
        g_string_append (out, "·");
      append_term (out, &product->terms[i], product->terms[i].exponent);
    }
  }
  if (out->len == 0 && product->n_terms > 0)
    g_string_append (out, "1");
  for (guint i = 0; i < product->n_terms; i++) {
    if (product->terms[i].exponent < 0) {
      g_string_append (out, "/");
      append_term (out, &product->terms[i], -product->terms[i].exponent);
    }
  }
  return g_string_free (g_steal_pointer (&out), FALSE);
}
