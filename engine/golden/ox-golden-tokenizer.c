/* Golden cases of tokenizers.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "golden/ox-golden-text.h"

#include <string.h>

#include <glib/gstdio.h>

#include "golden/ox-golden-text-private.h"
#include "text/ox-tokenizer.h"

/* How many cases of a kind there were, how many were right, and the first that was not. */
typedef struct {
  const char *kind;
  guint n, n_right, n_left_out;
  char *first_wrong;
} Tally;

typedef struct {
  const char *case_path;
  const char *name;
  yyjson_val *root;
  OxTokenizer *tokenizer;
  gboolean is_gguf;
  GHashTable *skipped; /* ids that the reference hides */
} Run;

static void
count (Tally *tally, gboolean right, char *what)
{
  tally->n++;
  tally->n_right += right ? 1 : 0;
  if (!right && !tally->first_wrong)
    tally->first_wrong = what;
  else
    g_free (what);
}

static void
report_tally (Run *run, Tally *tally, OxGoldenReport *report)
{
  g_autofree char *name = g_strdup_printf ("tokenizer %s%s %s", run->name, run->is_gguf ? " (GGUF)" : "", tally->kind);
  g_autofree char *left_out =
    tally->n_left_out > 0 ? g_strdup_printf (", %u left out", tally->n_left_out) : g_strdup ("");

  if (tally->n == 0)
    ox_golden_report_not_computed (report, name, "the file has no such cases%s", left_out);
  else
    ox_golden_report_same (report, name, tally->n_right == tally->n, "%u of %u right%s%s%s", tally->n_right, tally->n,
                           left_out, tally->first_wrong ? "; the first wrong: " : "",
                           tally->first_wrong ? tally->first_wrong : "");
  g_clear_pointer (&tally->first_wrong, g_free);
}

/* ---- Encoding ---- */

static GString *
read_text (yyjson_val *one)
{
  yyjson_val *text = yyjson_obj_get (one, "text"), *repeat = yyjson_obj_get (one, "text_repeat");
  const char *hex = yyjson_get_str (yyjson_obj_get (one, "bytes_hex"));
  GString *out = g_string_new (NULL);

  if (yyjson_is_str (text))
    g_string_append_len (out, yyjson_get_str (text), (gssize) yyjson_get_len (text));
  for (guint64 i = 0; repeat && i < yyjson_get_uint (yyjson_arr_get (repeat, 1)); i++)
    g_string_append (out, yyjson_get_str (yyjson_arr_get (repeat, 0)));
  for (; hex && hex[0] && hex[1]; hex += 2)
    g_string_append_c (out, (char) (g_ascii_xdigit_value (hex[0]) * 16 + g_ascii_xdigit_value (hex[1])));
  return out;
}

static GArray *
read_ids (yyjson_val *list)
{
  GArray *ids = g_array_new (FALSE, FALSE, sizeof (guint32));
  yyjson_val *val;
  gsize i, max;

  ox_json_foreach_item (list, i, max, val) {
    /* Runs are [id, count]. */
    guint32 id = (guint32) yyjson_get_uint (yyjson_is_arr (val) ? yyjson_arr_get (val, 0) : val);
    guint64 times = yyjson_is_arr (val) ? yyjson_get_uint (yyjson_arr_get (val, 1)) : 1;

    while (times-- > 0)
      g_array_append_val (ids, id);
  }
  return ids;
}

static gboolean
same_ids (GArray *a, GArray *b)
{
  return a->len == b->len && (a->len == 0 || memcmp (a->data, b->data, a->len * sizeof (guint32)) == 0);
}

static gboolean
encodes_to (Run *run, const GString *text, gboolean parse_control, GArray *expected)
{
  g_autoptr (GArray) ids = g_array_new (FALSE, FALSE, sizeof (guint32));

  ox_tokenizer_encode (run->tokenizer, text->str, (gssize) text->len, parse_control, ids);
  return same_ids (ids, expected);
}

/* Strings that the GGUF format's own token types make other tokens of: Gemma 3's unused tokens are control tokens there, and its
 * image markers are not; the image's soft token is not in the file. */
static gboolean
is_other_in_gguf (Run *run, const GString *text)
{
  return run->is_gguf && g_strcmp0 (run->name, "gemma3") == 0 &&
         (strstr (text->str, "<unused") || strstr (text->str, "_of_image>") || strstr (text->str, "image_soft"));
}

/* ---- Decoding ---- */

/* @text as the tokenizer decodes it, NULs and all. */
static GString *
decode (Run *run, GArray *ids, gboolean show_control)
{
  g_autoptr (OxDetokenizer) detokenizer = ox_detokenizer_new (run->tokenizer, show_control);
  GString *out = g_string_new (NULL);

  for (guint i = 0; i < ids->len; i++)
    ox_detokenizer_push (detokenizer, g_array_index (ids, guint32, i), out);
  ox_detokenizer_finish (detokenizer, out);
  return out;
}

static gboolean
decodes_to (Run *run, GArray *ids, gboolean show_control, const char *text, gsize len)
{
  GString *streamed = decode (run, ids, show_control);
  g_autofree char *at_once =
    ox_tokenizer_decode (run->tokenizer, (const guint32 *) (gpointer) ids->data, ids->len, show_control);
  gboolean same = streamed->len == len && memcmp (streamed->str, text, len) == 0 &&
                  g_utf8_validate (at_once, -1, NULL) && (memchr (text, '\0', len) || strcmp (at_once, text) == 0);

  g_string_free (streamed, TRUE);
  return same;
}

/* Whether the two files agree on what to hide. */
static gboolean
hides_as_reference (Run *run, GArray *ids)
{
  for (guint i = 0; i < ids->len && run->is_gguf; i++) {
    guint32 id = g_array_index (ids, guint32, i);
    g_autofree char *text = ox_tokenizer_decode (run->tokenizer, &id, 1, FALSE);

    if ((*text == '\0') != g_hash_table_contains (run->skipped, GUINT_TO_POINTER (id)) ||
        id >= ox_tokenizer_get_size (run->tokenizer))
      return FALSE;
  }
  return TRUE;
}

static const char *
string_or (yyjson_val *val, const char *otherwise, gsize *len)
{
  if (yyjson_is_str (val)) {
    *len = yyjson_get_len (val);
    return yyjson_get_str (val);
  }
  return otherwise;
}

static void
run_strings (Run *run, OxGoldenReport *report)
{
  Tally ids = { "ids" }, user = { "ids of user text" }, shown = { "decoded" },
        hidden = { "decoded without control tokens" };
  yyjson_val *one;
  gsize i, max;

  ox_json_foreach_item (yyjson_obj_get (run->root, "cases"), i, max, one) {
    GString *text = read_text (one);
    yyjson_val *list = yyjson_obj_get (one, "ids"), *user_list = yyjson_obj_get (one, "ids_user");
    g_autoptr (GArray) expected = read_ids (list ? list : yyjson_obj_get (one, "ids_rle"));
    g_autoptr (GArray) expected_user = read_ids (user_list ? user_list : list ? list : yyjson_obj_get (one, "ids_rle"));
    const char *name = yyjson_get_str (yyjson_obj_get (one, "name"));
    const char *decoded;
    gsize len = text->len, len_hidden;
    gboolean is_bytes = yyjson_obj_get (one, "bytes_hex") != NULL;

    if (is_other_in_gguf (run, text)) {
      ids.n_left_out++;
      g_string_free (text, TRUE);
      continue;
    }
    count (&ids, encodes_to (run, text, TRUE, expected), g_strdup_printf ("%s #%" G_GSIZE_FORMAT, name, i));
    count (&user, encodes_to (run, text, FALSE, expected_user), g_strdup_printf ("%s #%" G_GSIZE_FORMAT, name, i));
    decoded = string_or (yyjson_obj_get (one, "decoded"), text->str, &len);
    /* Broken bytes come back repaired; what to, "decoded" leaves to the text that the maker repaired. */
    if (!is_bytes || yyjson_obj_get (one, "decoded"))
      count (&shown, decodes_to (run, expected, TRUE, decoded, len), g_strdup_printf ("%s #%" G_GSIZE_FORMAT, name, i));
    len_hidden = len;
    decoded = string_or (yyjson_obj_get (one, "decoded_skip"), decoded, &len_hidden);
    if ((!is_bytes || yyjson_obj_get (one, "decoded_skip")) && hides_as_reference (run, expected))
      count (&hidden, decodes_to (run, expected, FALSE, decoded, len_hidden),
             g_strdup_printf ("%s #%" G_GSIZE_FORMAT, name, i));
    g_string_free (text, TRUE);
  }
  report_tally (run, &ids, report);
  report_tally (run, &user, report);
  report_tally (run, &shown, report);
  report_tally (run, &hidden, report);
}

static void
run_id_lists (Run *run, OxGoldenReport *report)
{
  Tally shown = { "id lists decoded" }, hidden = { "id lists decoded without control tokens" };
  yyjson_val *one;
  gsize i, max;

  ox_json_foreach_item (yyjson_obj_get (run->root, "decode"), i, max, one) {
    g_autoptr (GArray) ids = read_ids (yyjson_obj_get (one, "ids"));
    yyjson_val *text = yyjson_obj_get (one, "text"), *skip = yyjson_obj_get (one, "text_skip");

    if (!hides_as_reference (run, ids)) {
      hidden.n_left_out++;
      shown.n_left_out++;
      continue;
    }
    skip = skip ? skip : text;
    count (&shown, decodes_to (run, ids, TRUE, yyjson_get_str (text), yyjson_get_len (text)),
           g_strdup_printf ("#%" G_GSIZE_FORMAT, i));
    count (&hidden, decodes_to (run, ids, FALSE, yyjson_get_str (skip), yyjson_get_len (skip)),
           g_strdup_printf ("#%" G_GSIZE_FORMAT, i));
  }
  report_tally (run, &shown, report);
  report_tally (run, &hidden, report);
}

static void
run_streams (Run *run, OxGoldenReport *report)
{
  Tally tally = { "streamed" };
  yyjson_val *one;
  gsize i, max;

  ox_json_foreach_item (yyjson_obj_get (run->root, "streaming"), i, max, one) {
    g_autoptr (GArray) ids = read_ids (yyjson_obj_get (one, "ids"));
    g_autoptr (OxDetokenizer) detokenizer = ox_detokenizer_new (run->tokenizer, TRUE);
    GString *piece = g_string_new (NULL);
    gsize len = 0;
    const char *end = string_or (yyjson_obj_get (one, "end"), "", &len);
    gboolean right = TRUE;

    if (!hides_as_reference (run, ids)) {
      tally.n_left_out++;
      g_string_free (piece, TRUE);
      continue;
    }
    for (guint k = 0; k < ids->len; k++) {
      yyjson_val *expected = yyjson_arr_get (yyjson_obj_get (one, "pieces"), k);

      g_string_truncate (piece, 0);
      ox_detokenizer_push (detokenizer, g_array_index (ids, guint32, k), piece);
      right &=
        piece->len == yyjson_get_len (expected) && memcmp (piece->str, yyjson_get_str (expected), piece->len) == 0;
    }
    g_string_truncate (piece, 0);
    ox_detokenizer_finish (detokenizer, piece);
    right &= piece->len == len && memcmp (piece->str, end, len) == 0;
    count (&tally, right, g_strdup_printf ("#%" G_GSIZE_FORMAT, i));
    g_string_free (piece, TRUE);
  }
  report_tally (run, &tally, report);
}

/* ---- The long text ---- */

static gboolean
run_mixed (Run *run, OxGoldenReport *report, GError **error)
{
  yyjson_val *mixed = yyjson_obj_get (run->root, "mixed");
  const char *file = yyjson_get_str (yyjson_obj_get (mixed, "file"));
  g_autofree char *folder = g_path_get_dirname (run->case_path);
  g_autofree char *path = file ? g_build_filename (folder, file, NULL) : NULL;
  g_autofree char *sum = NULL;
  g_autoptr (GBytes) bytes = NULL;
  g_autoptr (GArray) ids = g_array_new (FALSE, FALSE, sizeof (guint32));
  Tally tally = { "long text" };
  gsize len;
  const char *text;
  guint n;

  if (!path)
    return TRUE;
  bytes = ox_golden_read_file (path, error);
  if (!bytes)
    return FALSE;
  text = g_bytes_get_data (bytes, &len);
  ox_tokenizer_encode (run->tokenizer, text, (gssize) len,
                       g_strcmp0 (yyjson_get_str (yyjson_obj_get (mixed, "mode")), "ids_user") != 0, ids);
  n = ids->len;
  for (guint i = 0; i < n; i++)
    g_array_index (ids, guint32, i) = GUINT32_TO_LE (g_array_index (ids, guint32, i));
  sum = g_compute_checksum_for_data (G_CHECKSUM_SHA256, (const guchar *) ids->data, n * sizeof (guint32));
  count (&tally, g_strcmp0 (sum, yyjson_get_str (yyjson_obj_get (mixed, "sha256_ids"))) == 0,
         g_strdup_printf ("%u ids", n));
  report_tally (run, &tally, report);
  return TRUE;
}

gboolean
ox_golden_tokenizer (
  const char *case_path, const char *tokenizer_path, OxGoldenReport *report, GCancellable *cancellable, GError **error)
{
  g_autoptr (OxJson) json = ox_golden_read_json (case_path, error);
  g_autofree char *unpacked = NULL;
  g_autoptr (OxTokenizer) tokenizer = NULL;
  g_autoptr (GHashTable) skipped = g_hash_table_new (NULL, NULL);
  Run run = { .case_path = case_path, .skipped = skipped, .is_gguf = g_str_has_suffix (tokenizer_path, ".gguf") };
  yyjson_val *id;
  gsize i, max;

  if (!json)
    return FALSE;
  if (g_str_has_suffix (tokenizer_path, ".xz")) {
    unpacked = ox_golden_unpack (tokenizer_path, error);
    if (!unpacked)
      return FALSE;
  }
  tokenizer = ox_tokenizer_load (unpacked ? unpacked : tokenizer_path, cancellable, error);
  if (unpacked)
    g_unlink (unpacked);
  if (!tokenizer)
    return FALSE;
  run.root = ox_json_get_root (json);
  run.name = yyjson_get_str (yyjson_obj_get (run.root, "tokenizer"));
  run.tokenizer = tokenizer;
  ox_json_foreach_item (yyjson_obj_get (run.root, "skipped_tokens"), i, max, id) {
    g_hash_table_add (skipped, GUINT_TO_POINTER ((guint) yyjson_get_uint (id)));
  }
  run_strings (&run, report);
  run_id_lists (&run, report);
  run_streams (&run, report);
  return run_mixed (&run, report, error);
}
