/* What the parts of the float64 table share.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "golden/ox-ops-reference.h"

struct _OxVector {
  guint n;
  double *w;
};

/* Activations: float64. */
static inline double *
ox_reference_rows (const OxTensor *t)
{
  return (double *) t->data + (gsize) t->row * t->cols;
}

/* Whether to go on: neither an error nor a cancel so far. */
gboolean ox_reference_running (OxOps *ops);
/* [a, b, c] zeros, at least one; free with g_free(). */
double *ox_reference_zeros (guint64 a, guint64 b, guint64 c, GError **error);
double ox_reference_activate (double x, OxGate kind);

/* Fills its part of the table. */
void ox_reference_init_recurrent (OxOps *ops);
