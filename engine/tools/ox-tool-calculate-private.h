/* Functions and constants of the calculator.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "tools/ox-quantity.h"

#define OX_CALCULATE_MAX_ARGUMENTS 64

typedef struct {
  const char *names; /* between bars */
  guint min_arguments;
  guint max_arguments;
  OxQuantity (*run) (OxCalculation *calculation, const OxQuantity *arguments, guint n);
} OxCalculateFunction;

/* Without regard to case. */
const OxCalculateFunction *ox_calculate_find_function (const char *name, gsize len);
gboolean ox_calculate_find_constant (OxCalculation *calculation, const char *name, gsize len, OxQuantity *value);
