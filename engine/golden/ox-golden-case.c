/* A case folder, and comparing with what it holds.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "golden/ox-golden-case.h"

#include <math.h>
#include <string.h>

#define MAX_CASE_JSON_BYTES (64u << 20)
/* Ids are read through float32, which is exact up to here. */
#define MAX_ID (1 << 24)

OxGoldenCase *
ox_golden_case_open (const char *folder, const char *tensors_name, OxGoldenReport *report, GError **error)
{
  g_autoptr (OxGoldenCase) self = g_new0 (OxGoldenCase, 1);
  g_autofree char *json_path = g_build_filename (folder, "case.json", NULL);
  g_autofree char *tensors_path = g_build_filename (folder, tensors_name, NULL);
  g_autoptr (OxFile) file = ox_file_open (json_path, error);

  self->folder = g_strdup (folder);
  self->report = report;
  self->handled = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  if (file == NULL || (self->json = ox_json_read_all (file, MAX_CASE_JSON_BYTES, error)) == NULL ||
      (self->expected = ox_weights_open (tensors_path, NULL, error)) == NULL)
    return NULL;
  self->root = ox_json_get_root (self->json);
  return g_steal_pointer (&self);
}

void
ox_golden_case_free (OxGoldenCase *self)
{
  if (self == NULL)
    return;
  g_free (self->folder);
  g_clear_pointer (&self->json, ox_json_free);
  g_clear_pointer (&self->expected, ox_weights_free);
  g_hash_table_unref (self->handled);
  g_free (self);
}

float *
ox_golden_case_floats (OxGoldenCase *self, const char *name, gsize *n)
{
  const OxTensorInfo *tensor = ox_weights_find (self->expected, name);
  g_autoptr (GError) error = NULL;
  float *values;

  *n = 0;
  if (tensor == NULL)
    return NULL;
  values = ox_tensor_read_f32 (tensor, &error);
  if (values == NULL) {
    ox_golden_case_set_handled (self, name);
    ox_golden_report_not_computed (self->report, name, "%s", error->message);
    return NULL;
  }
  *n = tensor->n_elements;
  return values;
}

guint32 *
ox_golden_case_ids (OxGoldenCase *self, const char *name, gsize *n)
{
  g_autofree float *values = ox_golden_case_floats (self, name, n);
  g_autofree guint32 *ids = NULL;

  if (values == NULL)
    return NULL;
  ids = g_new (guint32, *n + 1);
  for (gsize i = 0; i < *n; i++) {
    if (!(values[i] >= 0 && values[i] < MAX_ID)) {
      ox_golden_case_set_handled (self, name);
      ox_golden_report_not_computed (self->report, name, "element %" G_GSIZE_FORMAT " is no token id: %g", i,
                                     (double) values[i]);
      return NULL;
    }
    ids[i] = (guint32) values[i];
  }
  return g_steal_pointer (&ids);
}

double
ox_golden_case_tolerance (OxGoldenCase *self, const char *name, const char *group)
{
  yyjson_val *tolerance = yyjson_obj_get (self->root, "tolerance");
  yyjson_val *val;

  if (yyjson_is_num (tolerance))
    return yyjson_get_num (tolerance);
  val = yyjson_obj_get (tolerance, name);
  if (val == NULL)
    val = yyjson_obj_get (tolerance, group);
  return yyjson_is_num (val) ? yyjson_get_num (val) : NAN;
}

double
ox_golden_case_tolerance_after (OxGoldenCase *self, const char *phrase)
{
  const char *text = yyjson_get_str (yyjson_obj_get (self->root, "tolerance"));
  const char *p = text != NULL ? strstr (text, phrase) : NULL;

  if (p == NULL)
    return NAN;
  p += strlen (phrase);
  while (*p != '\0' && !g_ascii_isdigit (*p))
    p++;
  return *p != '\0' ? g_ascii_strtod (p, NULL) : NAN;
}

void
ox_golden_case_compare (
  OxGoldenCase *self, const char *name, const char *how, const float *computed, gsize n, double tolerance)
{
  g_autofree char *shown = how != NULL ? g_strdup_printf ("%s (%s)", name, how) : g_strdup (name);
  g_autofree float *expected = NULL;
  gsize n_expected;

  expected = ox_golden_case_floats (self, name, &n_expected);
  if (expected == NULL)
    return;
  ox_golden_case_set_handled (self, name);
  if (n_expected != n)
    ox_golden_report_not_computed (self->report, shown,
                                   "%" G_GSIZE_FORMAT " values expected, %" G_GSIZE_FORMAT " computed", n_expected, n);
  else if (isnan (tolerance))
    ox_golden_report_not_computed (self->report, shown, "case.json states no tolerance for it");
  else
    ox_golden_report_difference (self->report, shown, ox_golden_difference (expected, computed, n), tolerance, NULL);
}

void
ox_golden_case_input (OxGoldenCase *self, const char *name)
{
  if (ox_weights_find (self->expected, name) == NULL || ox_golden_case_is_handled (self, name))
    return;
  ox_golden_case_set_handled (self, name);
  ox_golden_report_input (self->report, name);
}

gboolean
ox_golden_case_is_handled (OxGoldenCase *self, const char *name)
{
  return g_hash_table_contains (self->handled, name);
}

void
ox_golden_case_set_handled (OxGoldenCase *self, const char *name)
{
  g_hash_table_add (self->handled, g_strdup (name));
}

void
ox_golden_case_finish (OxGoldenCase *self, const char *reason)
{
  for (guint i = 0; i < ox_weights_get_n_tensors (self->expected); i++) {
    const char *name = ox_weights_get_tensor (self->expected, i)->name;

    if (!ox_golden_case_is_handled (self, name))
      ox_golden_report_not_computed (self->report, name, "%s", reason);
  }
}

double
ox_golden_difference (const float *a, const float *b, gsize n)
{
  double greatest = 0;

  for (gsize i = 0; i < n; i++) {
    /* Equal infinities differ by nothing; a NaN never passes. */
    double difference = a[i] == b[i] ? 0 : fabs ((double) a[i] - (double) b[i]);

    if (isnan (difference))
      return NAN;
    greatest = MAX (greatest, difference);
  }
  return greatest;
}

guint32
ox_golden_argmax (const float *values, gsize n)
{
  gsize best = 0;

  for (gsize i = 1; i < n; i++)
    if (values[i] > values[best])
      best = i;
  return (guint32) best;
}
