/* Golden cases: what a reference implementation computed, compared with what the engine computes. Used by the ox-golden program and
 * by the golden tests alike.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "oxinfer.h"

/**
 * OxGoldenVerdict:
 * @OX_GOLDEN_INPUT: was given to the engine, or only tells about another program: nothing to compare
 * @OX_GOLDEN_OK: computed, within tolerance
 * @OX_GOLDEN_OVER: computed, and off
 * @OX_GOLDEN_NOT_COMPUTED: the engine did not compute it; as bad as off
 */
typedef enum {
  OX_GOLDEN_INPUT,
  OX_GOLDEN_OK,
  OX_GOLDEN_OVER,
  OX_GOLDEN_NOT_COMPUTED,
} OxGoldenVerdict;

/**
 * OxGoldenResult: about one tensor, or one group of text cases
 * @name: of the tensor in expected.safetensors, perhaps with how it was computed: "prompt1_logits (chunks)"
 * @difference: greatest absolute difference; NAN where the comparison is not about numbers
 * @tolerance: of case.json; 0: exact
 * @note: what to add for people, or NULL
 */
typedef struct {
  OxGoldenVerdict verdict;
  const char *name;
  double difference;
  double tolerance;
  const char *note;
} OxGoldenResult;

typedef void (*OxGoldenFunc) (const OxGoldenResult *result, gpointer user_data);

/* Where results go, and how many of each there were. */
typedef struct {
  OxGoldenFunc func; /* or NULL */
  gpointer user_data;
  guint n_input, n_ok, n_over, n_not_computed;
} OxGoldenReport;

/* Numbers: fine when @difference <= @tolerance; a NaN is not. @note_format may be NULL. */
void ox_golden_report_difference (
  OxGoldenReport *report, const char *name, double difference, double tolerance, const char *note_format, ...)
  G_GNUC_PRINTF (5, 6);
/* Anything that has to be the same. */
void ox_golden_report_same (OxGoldenReport *report, const char *name, gboolean same, const char *note_format, ...)
  G_GNUC_PRINTF (4, 5);
void ox_golden_report_not_computed (OxGoldenReport *report, const char *name, const char *reason_format, ...)
  G_GNUC_PRINTF (3, 4);
void ox_golden_report_input (OxGoldenReport *report, const char *name);
/* A number for people, without a limit. */
void ox_golden_report_info (OxGoldenReport *report, const char *name, double value, const char *note_format, ...)
  G_GNUC_PRINTF (4, 5);

/* Runs the case or cases at @path: a case folder, a folder of case folders, or a case file of the text groups. @models: folders with
 * model files that are too large to lie in a case, in the form of PATH; may be NULL. FALSE with an error when there is nothing that
 * can be read as a case; results are in @report. */
gboolean ox_golden_run (
  const char *path, const char *models, OxGoldenReport *report, GCancellable *cancellable, GError **error);
