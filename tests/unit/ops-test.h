/* What tests of the operations share: weights in memory, tables at every instruction set, ways to cut rows into calls, kernels that
 * cancel.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-ops.h"

/* What float32 sums of some hundred products of normal size may be off by. */
#define TOLERANCE 2e-5

/* Ways to cut rows into calls that next_cut() knows. */
#define N_WAYS 4

typedef struct {
  GString *header;
  GByteArray *data;
  OxWeights *weights;
} Toy;

/* A test that runs at each level; its data is the level's number. */
typedef struct {
  const char *name;
  void (*func) (gconstpointer level);
} OpsTest;

float random_float (GRand *rand);
float *random_floats (GRand *rand, gsize n);
void toy_init (Toy *toy);
/* @rows 0: a vector. */
void toy_add (Toy *toy, const char *name, guint rows, guint cols, const float *values);
void toy_open (Toy *toy);
void toy_clear (Toy *toy);
OxMatrix *toy_matrix (Toy *toy, OxOps *ops, const char *name);
OxVector *toy_vector (Toy *toy, OxOps *ops, const char *name);
OxOps *ops_new (guint level, OxPrecision precision, OxQuantize quantize);
OxTensor tensor_new (OxOps *ops, guint rows, guint cols, const float *values);
void finish (OxOps *ops);
void assert_close (const char *what, gsize i, double got, double expected, double tolerance);
guint next_cut (guint way, guint call, guint left);
void cancel_begin (OxOps *ops);
/* Each thread of the pool may have been in a call when the cancel came. */
void cancel_end (OxOps *ops, guint all_calls);
/* A table whose kernels cancel what cancel_begin() began when they run for the second time. */
OxOps *cancel_ops_new (void);

/* Between g_test_init() and the adding of tests; and in place of g_test_run(). */
void ops_test_begin (void);
void ops_test_add (const OpsTest *tests, gsize n);
int ops_test_run (void);
