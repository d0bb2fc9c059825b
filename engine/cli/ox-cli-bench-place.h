/* Where kernels are measured: a level of instruction sets and a number of threads.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-cli-bench.h"
#include "ox-ops-cpu.h"

typedef struct {
  OxBench *bench;
  const OxBenchLevel *level;
  guint threads;
  OxKernels kernels;
  OxPool *pool;
  OxOps *ops;
  OxBenchLimits limits;
  gsize read_bytes; /* what is read from memory and not from caches */
  gboolean brief;   /* the most important formats only */
} OxBenchPlace;

/* Seconds of the best of some runs: a tenth of a second's worth in a quick run, three tenths else, and at least three. */
double ox_bench_place_best (OxBenchPlace *place, void (*run) (gpointer data), gpointer data);
/* The same, and the limits in @what before and after it. */
double ox_bench_place_best_of (OxBenchPlace *place, void (*run) (gpointer data), gpointer data, guint what);
/* The limit of a result with @work is what was measured last. */
OxBenchResult *ox_bench_place_add (
  OxBenchPlace *place, const char *name, const char *unit, double value, const OxBenchWork *work);
/* Numbers between -1 and 1 for a tensor of the CPU table. */
void ox_bench_fill (OxTensor *tensor);
/* Which arithmetic limits a product with @w. */
OxPeakKind ox_bench_kind (const OxPackedMatrix *w);

gboolean ox_bench_products (OxBenchPlace *place, GError **error);
gboolean ox_bench_convolutions (OxBenchPlace *place, GError **error);
gboolean ox_bench_operations (OxBenchPlace *place, GError **error);
