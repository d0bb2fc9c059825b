/* Results of golden cases: judged, counted and handed on.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "golden/ox-golden.h"

#include <math.h>

static void
deliver (OxGoldenReport *report, const OxGoldenResult *result)
{
  guint *counts[] = { &report->n_input, &report->n_ok, &report->n_over, &report->n_not_computed };

  ++*counts[result->verdict];
  if (report->func != NULL)
    report->func (result, report->user_data);
}

void
ox_golden_report_difference (
  OxGoldenReport *report, const char *name, double difference, double tolerance, const char *note_format, ...)
{
  g_autofree char *note = NULL;
  va_list args;

  if (note_format != NULL) {
    va_start (args, note_format);
    note = g_strdup_vprintf (note_format, args);
    va_end (args);
  }
  deliver (report, &(OxGoldenResult) { difference <= tolerance ? OX_GOLDEN_OK : OX_GOLDEN_OVER, name, difference,
                                       tolerance, note });
}

void
ox_golden_report_same (OxGoldenReport *report, const char *name, gboolean same, const char *note_format, ...)
{
  g_autofree char *note = NULL;
  va_list args;

  if (note_format != NULL) {
    va_start (args, note_format);
    note = g_strdup_vprintf (note_format, args);
    va_end (args);
  }
  deliver (report, &(OxGoldenResult) { same ? OX_GOLDEN_OK : OX_GOLDEN_OVER, name, NAN, 0, note });
}

void
ox_golden_report_not_computed (OxGoldenReport *report, const char *name, const char *reason_format, ...)
{
  g_autofree char *reason = NULL;
  va_list args;

  va_start (args, reason_format);
  reason = g_strdup_vprintf (reason_format, args);
  va_end (args);
  deliver (report, &(OxGoldenResult) { OX_GOLDEN_NOT_COMPUTED, name, NAN, NAN, reason });
}

void
ox_golden_report_input (OxGoldenReport *report, const char *name)
{
  deliver (report, &(OxGoldenResult) { OX_GOLDEN_INPUT, name, NAN, NAN, NULL });
}

void
ox_golden_report_info (OxGoldenReport *report, const char *name, double value, const char *note_format, ...)
{
  g_autofree char *note = NULL;
  va_list args;

  va_start (args, note_format);
  note = g_strdup_vprintf (note_format, args);
  va_end (args);
  deliver (report, &(OxGoldenResult) { OX_GOLDEN_INPUT, name, value, NAN, note });
}
