/* Golden case files of the text groups.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "golden/ox-golden-text.h"

#include <math.h>
#include <string.h>

#include <glib/gstdio.h>

#include "golden/ox-golden-text-private.h"
#include "text/ox-chat-format.h"
#include "text/ox-chat-private.h"
#include "text/ox-sampler.h"

/* ---- Files ---- */

GBytes *
ox_golden_read_file (const char *path, GError **error)
{
  g_autoptr (GSubprocess) process = NULL;
  g_autoptr (GBytes) bytes = NULL;
  char *data;
  gsize len;

  if (!g_str_has_suffix (path, ".xz"))
    return g_file_get_contents (path, &data, &len, error) ? g_bytes_new_take (data, len) : NULL;
  process = g_subprocess_new (G_SUBPROCESS_FLAGS_STDOUT_PIPE, error, "xz", "-dc", path, NULL);
  if (!process || !g_subprocess_communicate (process, NULL, NULL, &bytes, NULL, error) ||
      !g_subprocess_wait_check (process, NULL, error))
    return NULL;
  return g_steal_pointer (&bytes);
}

char *
ox_golden_unpack (const char *path, GError **error)
{
  g_autoptr (GBytes) bytes = ox_golden_read_file (path, error);
  g_autofree char *name = NULL;
  gsize len;
  const char *data;
  int fd;

  if (!bytes)
    return NULL;
  fd = g_file_open_tmp ("oxinfer-golden-XXXXXX", &name, error);
  if (fd < 0)
    return NULL;
  g_close (fd, NULL);
  data = g_bytes_get_data (bytes, &len);
  if (!g_file_set_contents (name, data, (gssize) len, error)) {
    g_unlink (name);
    return NULL;
  }
  return g_steal_pointer (&name);
}

OxJson *
ox_golden_read_json (const char *path, GError **error)
{
  g_autoptr (GBytes) bytes = ox_golden_read_file (path, error);
  gsize len;
  const char *data;

  if (!bytes)
    return NULL;
  data = g_bytes_get_data (bytes, &len);
  return ox_json_parse (data, len, path, error);
}

static gboolean
no_cases (const char *path, GError **error)
{
  g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: has no array “cases”", path);
  return FALSE;
}

/* ---- Chat ---- */

/* The format that a variant of a family's templates stands for. */
static const OxChatFormat *
find_format (const char *family, const char *variant)
{
  g_autofree char *name = NULL;

  if (strcmp (family, "gemma4") == 0)
    name = g_strconcat ("gemma4-", variant, NULL);
  else if (strcmp (family, "qwen3_5") == 0)
    name = g_strconcat ("qwen", variant, NULL);
  return ox_chat_format_find (name ? name : family);
}

/* @expected: the reference's text, or an object when it refuses. */
static void
check_prompt (const OxChat *chat,
              const OxChatFormat *format,
              gboolean generate,
              yyjson_val *expected,
              const char *name,
              OxGoldenReport *report)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (OxPrompt) prompt = ox_chat_format_render (format, chat, NULL, generate, FALSE, &error);
  g_autofree char *text = prompt ? ox_prompt_to_text (prompt) : NULL;
  g_autofree char *quoted = text ? g_strescape (text, NULL) : NULL;

  if (yyjson_is_obj (expected))
    ox_golden_report_same (report, name, !prompt && g_error_matches (error, OX_ERROR, OX_ERROR_INVALID),
                           prompt ? "the reference refuses, we print %s" : NULL, quoted);
  else
    ox_golden_report_same (report, name, g_strcmp0 (text, yyjson_get_str (expected)) == 0,
                           g_strcmp0 (text, yyjson_get_str (expected)) == 0 ? NULL : "is %s",
                           quoted  ? quoted
                           : error ? error->message
                                   : "nothing");
}

static gboolean
run_chat_case (yyjson_val *one, const char *family, yyjson_val *variants, OxGoldenReport *report, GError **error)
{
  yyjson_val *prompts = yyjson_obj_get (one, "prompts"), *key, *variant;
  gboolean generate = yyjson_is_true (yyjson_obj_get (yyjson_obj_get (one, "options"), "add_generation_prompt"));
  g_autoptr (GString) json = g_string_new (NULL);
  g_autoptr (OxChat) chat = NULL;
  gsize i, max;

  ox_value_append_json (json, one);
  chat = ox_chat_new_from_json (json->str, json->len, error);
  if (!chat)
    return FALSE;
  ox_json_foreach_member (variants, i, max, key, variant) {
    const OxChatFormat *format = find_format (family, yyjson_get_str (key));
    yyjson_val *expected = yyjson_obj_get (prompts, yyjson_get_str (key));
    g_autofree char *name =
      g_strdup_printf ("chat %s %s %s", family, yyjson_get_str (key), yyjson_get_str (yyjson_obj_get (one, "name")));

    if (format)
      check_prompt (chat, format, generate, expected ? expected : yyjson_obj_get (prompts, "*"), name, report);
    else
      ox_golden_report_not_computed (report, name, "this version has no such chat format");
  }
  return TRUE;
}

gboolean
ox_golden_chat (const char *case_path, OxGoldenReport *report, GError **error)
{
  g_autoptr (GBytes) bytes = ox_golden_read_file (case_path, error);
  g_autoptr (OxValue) json = NULL;
  yyjson_val *root, *cases, *one;
  const char *family, *data;
  gsize i, max, len;

  if (!bytes)
    return FALSE;
  /* Numbers are told apart as they are written. */
  data = g_bytes_get_data (bytes, &len);
  json = ox_value_parse (data, len, case_path, error);
  if (!json)
    return FALSE;
  root = ox_value_get_root (json);
  cases = yyjson_obj_get (root, "cases");
  family = yyjson_get_str (yyjson_obj_get (root, "family"));
  if (!yyjson_is_arr (cases) || !family)
    return no_cases (case_path, error);
  ox_json_foreach_item (cases, i, max, one) {
    if (!run_chat_case (one, family, yyjson_obj_get (root, "variants"), report, error))
      return FALSE;
  }
  return TRUE;
}

/* ---- Sampler ---- */

/* A number, or "nan", "inf", "-inf". */
static double
read_number (yyjson_val *val)
{
  const char *text = yyjson_get_str (val);

  if (!text)
    return yyjson_get_num (val);
  return strcmp (text, "nan") == 0 ? NAN : *text == '-' ? -INFINITY : INFINITY;
}

static double
setting (yyjson_val *settings, const char *name, double otherwise)
{
  yyjson_val *val = yyjson_obj_get (settings, name);

  return val ? read_number (val) : otherwise;
}

static void
accept_all (OxSampler *sampler, yyjson_val *ids, gboolean is_generated)
{
  yyjson_val *id;
  gsize i, max;

  ox_json_foreach_item (ids, i, max, id) {
    ox_sampler_accept (sampler, (guint32) yyjson_get_uint (id), is_generated);
  }
}

/* NULL: refused. */
static GArray *
compute_distribution (yyjson_val *settings, const float *logits, guint n)
{
  OxSampling sampling = {
    .temperature = (float) setting (settings, "temperature", 1),
    .top_k = (guint) setting (settings, "top_k", 0),
    .top_p = (float) setting (settings, "top_p", 1),
    .min_p = (float) setting (settings, "min_p", 0),
    .repetition_penalty = (float) setting (settings, "repetition_penalty", 1),
    .frequency_penalty = (float) setting (settings, "frequency_penalty", 0),
    .presence_penalty = (float) setting (settings, "presence_penalty", 0),
    .seed = 1,
  };
  g_autoptr (GArray) suppress = g_array_new (FALSE, FALSE, sizeof (guint32));
  g_autoptr (OxSampler) sampler = NULL;
  yyjson_val *id;
  gsize i, max;

  ox_json_foreach_item (yyjson_obj_get (settings, "suppress"), i, max, id) {
    g_array_append_val (suppress, ((guint32[]) { (guint32) yyjson_get_uint (id) })[0]);
  }
  sampler = ox_sampler_new (&sampling, n, (const guint32 *) (gpointer) suppress->data, suppress->len, NULL);
  if (!sampler)
    return NULL;
  accept_all (sampler, yyjson_obj_get (settings, "prompt"), FALSE);
  accept_all (sampler, yyjson_obj_get (settings, "generated"), TRUE);
  return ox_sampler_distribution (sampler, logits, NULL);
}

/* Greatest difference of the two distributions; infinite when they are not over the same ids. */
static double
distribution_difference (GArray *computed, yyjson_val *expected)
{
  double most = 0;
  gsize i, max;
  yyjson_val *pair;

  if (computed->len != yyjson_arr_size (expected))
    return INFINITY;
  ox_json_foreach_item (expected, i, max, pair) {
    guint32 id = (guint32) yyjson_get_uint (yyjson_arr_get (pair, 0));
    double found = INFINITY;

    for (guint k = 0; k < computed->len; k++) {
      const OxCandidate *candidate = &g_array_index (computed, OxCandidate, k);

      if (candidate->id == id)
        found = fabs (candidate->p - yyjson_get_num (yyjson_arr_get (pair, 1)));
    }
    most = MAX (most, found);
  }
  return most;
}

gboolean
ox_golden_sampler (const char *case_path, OxGoldenReport *report, GError **error)
{
  g_autoptr (OxJson) json = ox_golden_read_json (case_path, error);
  yyjson_val *cases, *one, *val;
  gsize i, max, k, n;

  if (!json)
    return FALSE;
  cases = yyjson_obj_get (ox_json_get_root (json), "cases");
  if (!yyjson_is_arr (cases))
    return no_cases (case_path, error);
  ox_json_foreach_item (cases, i, max, one) {
    g_autofree char *name = g_strdup_printf ("sampler %s", yyjson_get_str (yyjson_obj_get (one, "name")));
    yyjson_val *vector = yyjson_obj_get (yyjson_obj_get (ox_json_get_root (json), "logits"),
                                         yyjson_get_str (yyjson_obj_get (one, "logits")));
    g_autofree float *logits = g_new0 (float, MAX (yyjson_arr_size (vector), 1));
    g_autoptr (GArray) computed = NULL;

    ox_json_foreach_item (vector, k, n, val) {
      logits[k] = (float) read_number (val);
    }
    computed = compute_distribution (yyjson_obj_get (one, "settings"), logits, (guint) yyjson_arr_size (vector));
    if (yyjson_obj_get (one, "error"))
      ox_golden_report_same (report, name, computed == NULL, "the reference refuses");
    else if (!computed)
      ox_golden_report_same (report, name, FALSE, "refused, the reference does not");
    else
      ox_golden_report_difference (report, name, distribution_difference (computed, yyjson_obj_get (one, "p")), 1e-12,
                                   NULL);
  }
  return TRUE;
}

/* ---- By content ---- */

/* NAME.tokenizer.json or .xz, or NULL. */
static char *
find_tokenizer (const char *case_path, const char *name, const char *models)
{
  g_autofree char *folder = g_path_get_dirname (case_path);
  g_autoptr (GPtrArray) folders = g_ptr_array_new_with_free_func (g_free);
  g_auto (GStrv) more = g_strsplit (models ? models : "", G_SEARCHPATH_SEPARATOR_S, -1);

  g_ptr_array_add (folders, g_build_filename (folder, "..", "tokenizers", NULL));
  g_ptr_array_add (folders, g_build_filename (folder, "..", "..", "tokenizers", NULL));
  for (gsize i = 0; more[i]; i++)
    g_ptr_array_add (folders, g_strdup (more[i]));
  for (guint i = 0; i < folders->len; i++) {
    static const char *const endings[] = { ".tokenizer.json", ".tokenizer.json.xz" };

    for (gsize k = 0; k < G_N_ELEMENTS (endings); k++) {
      g_autofree char *file = g_strconcat (name, endings[k], NULL);
      g_autofree char *path = g_build_filename (g_ptr_array_index (folders, i), file, NULL);

      if (g_file_test (path, G_FILE_TEST_EXISTS))
        return g_steal_pointer (&path);
    }
  }
  return NULL;
}

gboolean
ox_golden_text_run (
  const char *path, const char *models, OxGoldenReport *report, GCancellable *cancellable, GError **error)
{
  g_autofree char *name = g_path_get_basename (path);
  g_autofree char *tokenizer_path = NULL;
  g_autoptr (OxJson) json = ox_golden_read_json (path, error);
  yyjson_val *root, *first;
  const char *tokenizer;

  if (!json)
    return FALSE;
  root = ox_json_get_root (json);
  first = yyjson_arr_get_first (yyjson_obj_get (root, "cases"));
  tokenizer = yyjson_get_str (yyjson_obj_get (root, "tokenizer"));
  if (tokenizer) {
    tokenizer_path = find_tokenizer (path, tokenizer, models);
    if (tokenizer_path)
      return ox_golden_tokenizer (path, tokenizer_path, report, cancellable, error);
    ox_golden_report_not_computed (report, name, "%s.tokenizer.json was not found", tokenizer);
    return TRUE;
  }
  if (yyjson_obj_get (root, "family") && yyjson_obj_get (first, "prompts"))
    return ox_golden_chat (path, report, error);
  if (yyjson_obj_get (root, "logits") && first)
    return ox_golden_sampler (path, report, error);
  ox_golden_report_not_computed (report, name, "this version runs no case of this kind");
  return TRUE;
}
