/* JSON values that models see and write, through yyjson with numbers left as they are written.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "text/ox-value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oxinfer.h"
#include "text/ox-unicode.h"
#include "text/ox-utf8.h"

/* ---- Reading ---- */

/* Whether no bracket outside of strings lies deeper than allowed. The text need not be JSON. */
static gboolean
is_shallow (const char *text, gsize len)
{
  gsize depth = 0;
  gboolean in_string = FALSE;

  for (gsize i = 0; i < len; i++) {
    if (in_string) {
      if (text[i] == '\\')
        i++;
      else if (text[i] == '"')
        in_string = FALSE;
    } else if (text[i] == '"') {
      in_string = TRUE;
    } else if (text[i] == '[' || text[i] == '{') {
      if (++depth > OX_VALUE_MAX_DEPTH)
        return FALSE;
    } else if ((text[i] == ']' || text[i] == '}') && depth > 0) {
      depth--;
    }
  }
  return TRUE;
}

static guint
string_hash (gconstpointer key)
{
  yyjson_val *val = (yyjson_val *) key;
  const char *text = yyjson_get_str (val);
  guint hash = 5381;

  for (gsize i = 0; i < yyjson_get_len (val); i++)
    hash = hash * 33 + (guint8) text[i];
  return hash;
}

static gboolean
string_equal (gconstpointer a, gconstpointer b)
{
  return yyjson_equals_strn ((yyjson_val *) a, yyjson_get_str ((yyjson_val *) b), yyjson_get_len ((yyjson_val *) b));
}

/* From a key to its value. */
static GHashTable *
last_values (yyjson_val *object)
{
  GHashTable *last = g_hash_table_new (string_hash, string_equal);
  yyjson_val *key, *val;
  gsize i, max;

  /* The first of equal keys stays the table's key. */
  ox_json_foreach_member (object, i, max, key, val) {
    g_hash_table_insert (last, key, val);
  }
  return last;
}

static gboolean
has_repeated_keys (yyjson_val *val)
{
  yyjson_val *key, *child;
  gsize i, max;

  if (yyjson_is_arr (val)) {
    ox_json_foreach_item (val, i, max, child) {
      if (has_repeated_keys (child))
        return TRUE;
    }
  } else if (yyjson_is_obj (val)) {
    if (yyjson_obj_size (val) > 1) {
      g_autoptr (GHashTable) last = last_values (val);

      if (g_hash_table_size (last) < yyjson_obj_size (val))
        return TRUE;
    }
    ox_json_foreach_member (val, i, max, key, child) {
      if (has_repeated_keys (child))
        return TRUE;
    }
  }
  return FALSE;
}

static yyjson_mut_val *
copy_unique (yyjson_mut_doc *doc, yyjson_val *val)
{
  yyjson_mut_val *copy;
  yyjson_val *key, *child;
  gsize i, max;

  if (yyjson_is_arr (val)) {
    copy = yyjson_mut_arr (doc);
    ox_json_foreach_item (val, i, max, child) {
      yyjson_mut_arr_append (copy, copy_unique (doc, child));
    }
  } else if (yyjson_is_obj (val)) {
    g_autoptr (GHashTable) last = last_values (val);

    copy = yyjson_mut_obj (doc);
    ox_json_foreach_member (val, i, max, key, child) {
      gpointer first, value;

      if (g_hash_table_lookup_extended (last, key, &first, &value) && first == key)
        yyjson_mut_obj_add (copy, yyjson_val_mut_copy (doc, key), copy_unique (doc, value));
    }
  } else {
    copy = yyjson_val_mut_copy (doc, val);
  }
  return copy;
}

OxValue *
ox_value_parse (const char *text, gsize len, const char *what, GError **error)
{
  yyjson_read_err err = { 0 };
  yyjson_doc *doc = NULL;
  OxValue *value;

  if (!is_shallow (text, len)) {
    g_set_error (error, OX_ERROR, OX_ERROR_INVALID, "%s: the JSON is nested deeper than %d levels", what,
                 OX_VALUE_MAX_DEPTH);
    return NULL;
  }
  doc = yyjson_read_opts ((char *) text, len, YYJSON_READ_NUMBER_AS_RAW, NULL, &err);
  if (doc && has_repeated_keys (yyjson_doc_get_root (doc))) {
    yyjson_mut_doc *unique = yyjson_mut_doc_new (NULL);

    yyjson_mut_doc_set_root (unique, copy_unique (unique, yyjson_doc_get_root (doc)));
    yyjson_doc_free (doc);
    doc = yyjson_mut_doc_imut_copy (unique, NULL);
    yyjson_mut_doc_free (unique);
  }
  if (!doc) {
    g_set_error (error, OX_ERROR, OX_ERROR_INVALID, "%s: not valid JSON: %s at byte %" G_GSIZE_FORMAT, what,
                 err.msg ? err.msg : "error", (gsize) err.pos);
    return NULL;
  }
  value = g_atomic_rc_box_new (OxValue);
  value->text = g_strndup (text, len);
  value->doc = doc;
  return value;
}

OxValue *
ox_value_ref (const OxValue *value)
{
  return g_atomic_rc_box_acquire ((OxValue *) value);
}

static void
value_clear (gpointer value)
{
  yyjson_doc_free (((OxValue *) value)->doc);
  g_free (((OxValue *) value)->text);
}

void
ox_value_unref (OxValue *value)
{
  if (value)
    g_atomic_rc_box_release_full (value, value_clear);
}

yyjson_val *
ox_value_get_root (const OxValue *value)
{
  return yyjson_doc_get_root (value->doc);
}

/* ---- Numbers ---- */

/* The shortest digits that read back as the same number; an exponent below 1e-4 and from 1e16 on. */
void
ox_value_append_double (GString *out, double number)
{
  char digits[G_ASCII_DTOSTR_BUF_SIZE], *mark;
  int exponent, n;

  if (!isfinite (number)) {
    g_string_append (out, isnan (number) ? "NaN" : number > 0 ? "Infinity" : "-Infinity");
    return;
  }
  for (int precision = 0; precision <= 17; precision++) {
    char format[16];

    snprintf (format, sizeof format, "%%.%de", precision);
    g_ascii_formatd (digits, sizeof digits, format, number);
    if (g_ascii_strtod (digits, NULL) == number)
      break;
  }
  mark = strchr (digits, 'e');
  exponent = atoi (mark + 1);
  *mark = '\0';
  mark = digits;
  if (*mark == '-') {
    g_string_append_c (out, '-');
    mark++;
  }
  /* "d" or "d.ddd": the point goes. */
  if (mark[1] == '.')
    memmove (mark + 1, mark + 2, strlen (mark + 2) + 1);
  n = (int) strlen (mark);
  if (exponent < -4 || exponent >= 16) {
    g_string_append_c (out, mark[0]);
    if (n > 1)
      g_string_append_printf (out, ".%s", mark + 1);
    g_string_append_printf (out, "e%c%02d", exponent < 0 ? '-' : '+', abs (exponent));
  } else if (exponent < 0) {
    g_string_append (out, "0.");
    for (int i = -1; i > exponent; i--)
      g_string_append_c (out, '0');
    g_string_append (out, mark);
  } else {
    for (int i = 0; i <= exponent || i < n; i++) {
      if (i == exponent + 1)
        g_string_append_c (out, '.');
      g_string_append_c (out, i < n ? mark[i] : '0');
    }
    if (n <= exponent + 1)
      g_string_append (out, ".0");
  }
}

void
ox_value_append_number (GString *out, yyjson_val *number)
{
  const char *text = yyjson_get_raw (number);

  if (strpbrk (text, ".eE"))
    ox_value_append_double (out, g_ascii_strtod (text, NULL));
  else
    g_string_append (out, strcmp (text, "-0") == 0 ? "0" : text);
}

gboolean
ox_value_is_finite (yyjson_val *val)
{
  yyjson_val *key, *child;
  gsize i, max;

  if (yyjson_is_raw (val)) {
    double number = g_ascii_strtod (yyjson_get_raw (val), NULL);

    return isfinite (number);
  }
  if (yyjson_is_arr (val)) {
    ox_json_foreach_item (val, i, max, child) {
      if (!ox_value_is_finite (child))
        return FALSE;
    }
  } else if (yyjson_is_obj (val)) {
    ox_json_foreach_member (val, i, max, key, child) {
      if (!ox_value_is_finite (child))
        return FALSE;
    }
  }
  return TRUE;
}

/* ---- Printing ---- */

void
ox_value_append_json_string (GString *out, const char *text, gsize len)
{
  g_string_append_c (out, '"');
  for (gsize i = 0; i < len; i++) {
    static const char escaped[] = "\"\\\n\r\t\b\f", letters[] = "\"\\nrtbf";
    guint8 c = (guint8) text[i];
    const char *at = c ? strchr (escaped, c) : NULL;

    if (at)
      g_string_append_printf (out, "\\%c", letters[at - escaped]);
    else if (c < 0x20)
      g_string_append_printf (out, "\\u%04x", c);
    else
      g_string_append_c (out, text[i]);
  }
  g_string_append_c (out, '"');
}

/* A string as Python's repr() has it: in single quotes, or in double ones when it has single ones only. */
static void
append_repr (GString *out, const char *text, gsize len)
{
  char quote = memchr (text, '\'', len) && !memchr (text, '"', len) ? '"' : '\'';

  g_string_append_c (out, quote);
  for (gsize i = 0; i < len; i++) {
    guint8 c = (guint8) text[i];

    if (c == '\\' || c == (guint8) quote)
      g_string_append_printf (out, "\\%c", c);
    else if (c == '\n' || c == '\r' || c == '\t')
      g_string_append_printf (out, "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
    else if (c < 0x20 || c == 0x7f)
      g_string_append_printf (out, "\\x%02x", c);
    else
      g_string_append_c (out, text[i]);
  }
  g_string_append_c (out, quote);
}

/* How JSON and Python write what they have in common. */
typedef struct {
  void (*append_string) (GString *out, const char *text, gsize len);
  const char *yes, *no, *nothing;
} Notation;

static const Notation json_notation = { ox_value_append_json_string, "true", "false", "null" };
static const Notation python_notation = { append_repr, "True", "False", "None" };

static void
append_value (GString *out, yyjson_val *val, const Notation *notation)
{
  yyjson_val *key, *child;
  gsize i, max;

  switch (yyjson_get_type (val)) {
  case YYJSON_TYPE_ARR:
    g_string_append_c (out, '[');
    ox_json_foreach_item (val, i, max, child) {
      if (i > 0)
        g_string_append (out, ", ");
      append_value (out, child, notation);
    }
    g_string_append_c (out, ']');
    break;
  case YYJSON_TYPE_OBJ:
    g_string_append_c (out, '{');
    ox_json_foreach_member (val, i, max, key, child) {
      if (i > 0)
        g_string_append (out, ", ");
      notation->append_string (out, yyjson_get_str (key), yyjson_get_len (key));
      g_string_append (out, ": ");
      append_value (out, child, notation);
    }
    g_string_append_c (out, '}');
    break;
  case YYJSON_TYPE_STR:
    notation->append_string (out, yyjson_get_str (val), yyjson_get_len (val));
    break;
  case YYJSON_TYPE_RAW:
    ox_value_append_number (out, val);
    break;
  case YYJSON_TYPE_BOOL:
    g_string_append (out, yyjson_get_bool (val) ? notation->yes : notation->no);
    break;
  default:
    g_string_append (out, notation->nothing);
  }
}

void
ox_value_append_json (GString *out, yyjson_val *val)
{
  append_value (out, val, &json_notation);
}

void
ox_value_append_python (GString *out, yyjson_val *val)
{
  if (yyjson_is_str (val))
    g_string_append_len (out, yyjson_get_str (val), (gssize) yyjson_get_len (val));
  else
    append_value (out, val, &python_notation);
}

/* ---- Order ---- */

typedef struct {
  yyjson_val *key;
  char *folded;
  gsize index;
} SortKey;

static int
compare_keys (gconstpointer a, gconstpointer b)
{
  const SortKey *one = a, *other = b;
  int order = strcmp (one->folded, other->folded);

  return order ? order : one->index < other->index ? -1 : one->index > other->index;
}

GPtrArray *
ox_value_sorted_keys (yyjson_val *object)
{
  gsize n = yyjson_obj_size (object), i, max;
  g_autofree SortKey *keys = g_new0 (SortKey, n);
  GPtrArray *sorted = g_ptr_array_sized_new ((guint) n);
  yyjson_val *key, *val;

  ox_json_foreach_member (object, i, max, key, val) {
    keys[i] = (SortKey) { key, g_utf8_strdown (yyjson_get_str (key), (gssize) yyjson_get_len (key)), i };
  }
  if (n > 1)
    qsort (keys, n, sizeof *keys, compare_keys);
  for (i = 0; i < n; i++) {
    g_ptr_array_add (sorted, keys[i].key);
    g_free (keys[i].folded);
  }
  return sorted;
}
