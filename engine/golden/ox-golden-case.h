/* A case folder: case.json with what was run and the tolerances, expected.safetensors with inputs and outputs.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "golden/ox-golden.h"
#include "io/ox-json.h"
#include "io/ox-weights.h"

typedef struct {
  char *folder;
  OxJson *json;
  yyjson_val *root; /* of case.json */
  OxWeights *expected;
  GHashTable *handled; /* names of tensors that were reported on */
  OxGoldenReport *report;
} OxGoldenCase;

/* @tensors_name: "expected.safetensors" as a rule. */
OxGoldenCase *ox_golden_case_open (const char *folder,
                                   const char *tensors_name,
                                   OxGoldenReport *report,
                                   GError **error);
void ox_golden_case_free (OxGoldenCase *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (OxGoldenCase, ox_golden_case_free)

/* The tensor as float32; NULL when there is none, or when it cannot be read (which is reported). */
float *ox_golden_case_floats (OxGoldenCase *self, const char *name, gsize *n);
/* The same for ids. */
guint32 *ox_golden_case_ids (OxGoldenCase *self, const char *name, gsize *n);

/* case.json's tolerance.@group, or that of @name itself; NAN when it states none. */
double ox_golden_case_tolerance (OxGoldenCase *self, const char *name, const char *group);
/* The number that follows @phrase (and what is no number) in the sentence tolerance; NAN when there is none. */
double ox_golden_case_tolerance_after (OxGoldenCase *self, const char *phrase);

/* Compares tensor @name with @n computed values; @how: for the name shown, or NULL. Without a tolerance it counts as not computed.
 * Marks it as handled. */
void ox_golden_case_compare (
  OxGoldenCase *self, const char *name, const char *how, const float *computed, gsize n, double tolerance);
void ox_golden_case_input (OxGoldenCase *self, const char *name);
gboolean ox_golden_case_is_handled (OxGoldenCase *self, const char *name);
void ox_golden_case_set_handled (OxGoldenCase *self, const char *name);
/* Everything that nobody handled was not computed, because of @reason. */
void ox_golden_case_finish (OxGoldenCase *self, const char *reason);

/* Greatest absolute difference; NAN when there is a NaN. */
double ox_golden_difference (const float *a, const float *b, gsize n);
/* Index of the largest, the lowest on ties. */
guint32 ox_golden_argmax (const float *values, gsize n);
