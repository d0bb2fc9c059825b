/* What was measured: results, their table and their JSON.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-cli-bench.h"

#include <math.h>
#include <string.h>

gboolean
ox_bench_wants (const OxBench *bench, const char *name)
{
  if (bench->only == NULL)
    return TRUE;
  for (char **glob = bench->only; *glob != NULL; glob++)
    if (g_pattern_match_simple (*glob, name))
      return TRUE;
  return FALSE;
}

gboolean
ox_bench_goes_on (const OxBench *bench)
{
  return !g_cancellable_is_cancelled (bench->cli->cancellable);
}

void
ox_bench_say (OxBench *bench, const char *format, ...)
{
  g_autofree char *text = NULL;
  va_list args;

  if (bench->cli->quiet)
    return;
  va_start (args, format);
  text = g_strdup_vprintf (format, args);
  va_end (args);
  fprintf (stderr, "%s\n", text);
}

void
ox_bench_result_free (gpointer data)
{
  OxBenchResult *result = data;

  g_free (result->name);
  g_free (result);
}

OxBenchResult *
ox_bench_add (OxBench *bench,
              const char *name,
              const char *unit,
              double value,
              const OxBenchWork *work,
              guint threads,
              const char *level)
{
  OxBenchResult *result = g_new0 (OxBenchResult, 1);

  result->name = g_strdup (name);
  result->unit = unit;
  result->value = value;
  result->limit = result->peer = NAN;
  result->threads = threads;
  result->level = level;
  if (work != NULL) {
    result->work = *work;
    result->has_work = TRUE;
  }
  g_ptr_array_add (bench->results, result);
  ox_bench_say (bench, "  %-42s %u %-11s %10.2f %s", name, threads, level, value, unit);
  return result;
}

double
ox_bench_result_fraction (const OxBenchResult *result)
{
  return result->less ? result->limit / result->value : result->value / result->limit;
}

/* ---- Writing ---- */

/* Small numbers with more digits. */
static char *
write_number (double value)
{
  return g_strdup_printf ("%.*f", value < 1 ? 4 : 2, value);
}

static void
write_profile (OxBench *bench, const OxProfile *profile)
{
  double total = (double) ox_profile_get_total (profile);
  g_autoptr (GString) line = g_string_new ("    ");

  for (guint c = 0; c < OX_PROFILE_N_CATEGORIES; c++)
    if (profile->nanoseconds[c] > 0)
      g_string_append_printf (line, "%s %.1f %%  ", ox_profile_category_get_name (c),
                              100 * (double) profile->nanoseconds[c] / total);
  g_string_append (line, "\n");
  ox_cli_write (bench->cli, line->str);
}

void
ox_bench_write_text (OxBench *bench)
{
  for (guint i = 0; i < bench->results->len; i++) {
    const OxBenchResult *result = g_ptr_array_index (bench->results, i);
    g_autoptr (GString) line = g_string_new (NULL);
    g_autofree char *value = write_number (result->value);
    g_autofree char *limit = write_number (result->limit);

    g_string_append_printf (line, "%-42s %2u %-11s %10s %-6s", result->name, result->threads, result->level, value,
                            result->unit);
    if (!isnan (result->limit))
      g_string_append_printf (line, " %5.1f %% of %s", 100 * ox_bench_result_fraction (result), limit);
    if (!isnan (result->peer))
      g_string_append_printf (line, "  peer %.2f, ratio %.2f", result->peer, result->value / result->peer);
    g_string_append (line, "\n");
    ox_cli_write (bench->cli, line->str);
    if (ox_profile_get_total (&result->profile) > 0)
      write_profile (bench, &result->profile);
  }
}

static void
add_profile (yyjson_mut_doc *doc, yyjson_mut_val *object, const OxProfile *profile)
{
  yyjson_mut_val *seconds = yyjson_mut_obj_add_obj (doc, object, "profile");

  for (guint c = 0; c < OX_PROFILE_N_CATEGORIES; c++)
    yyjson_mut_obj_add_real (doc, seconds, ox_profile_category_get_name (c), (double) profile->nanoseconds[c] / 1e9);
}

yyjson_mut_doc *
ox_bench_to_json (OxBench *bench)
{
  yyjson_mut_doc *doc = yyjson_mut_doc_new (NULL);
  yyjson_mut_val *root = yyjson_mut_arr (doc);

  yyjson_mut_doc_set_root (doc, root);
  for (guint i = 0; i < bench->results->len; i++) {
    const OxBenchResult *result = g_ptr_array_index (bench->results, i);
    g_autofree char *name = g_utf8_make_valid (result->name, -1);
    yyjson_mut_val *object = yyjson_mut_arr_add_obj (doc, root);

    yyjson_mut_obj_add_strcpy (doc, object, "name", name);
    ox_cli_json_real (doc, object, "value", result->value);
    yyjson_mut_obj_add_str (doc, object, "unit", result->unit);
    ox_cli_json_real (doc, object, "limit", result->limit);
    ox_cli_json_real (doc, object, "fraction", ox_bench_result_fraction (result));
    yyjson_mut_obj_add_uint (doc, object, "threads", result->threads);
    yyjson_mut_obj_add_strcpy (doc, object, "level", result->level);
    if (!isnan (result->peer)) {
      ox_cli_json_real (doc, object, "peer", result->peer);
      ox_cli_json_real (doc, object, "ratio", result->value / result->peer);
    }
    if (ox_profile_get_total (&result->profile) > 0)
      add_profile (doc, object, &result->profile);
  }
  return doc;
}
