/* oxinfer-cli bench: what its parts share. A part measures, and adds results; a limit belongs to each, measured beside it.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-cli.h"
#include "ox-kernels.h"
#include "ox-model-private.h"
#include "ox-peak.h"

/* What a unit of a result takes at least. */
typedef struct {
  double operations[OX_N_PEAK_KINDS];
  double bytes; /* read from memory */
} OxBenchWork;

/* The best that was seen of this machine right before, between and after the runs of a result, with so many threads and these instruction sets. */
typedef struct {
  guint threads;
  guint32 mask;                       /* OxCpuFlags */
  double peaks[OX_N_PEAK_KINDS];      /* operations a second */
  const char *names[OX_N_PEAK_KINDS]; /* of the loops that were best */
  double read, read_mean;             /* bytes a second; 0: not measured */
} OxBenchLimits;

typedef struct {
  char *name; /* "gemm/q8" */
  const char *unit;
  double value;
  double limit;  /* NAN: none is known */
  gboolean less; /* less is better: then the fraction is limit / value */
  guint threads;
  const char *level;
  double peer;       /* of the program that is compared with; NAN: none */
  OxProfile profile; /* of one run; all zeros: none */
  gboolean has_work;
  OxBenchWork work; /* becomes the limit */
} OxBenchResult;

typedef struct {
  const char *name;
  guint32 mask; /* for ox_kernels_init() */
} OxBenchLevel;

typedef struct {
  OxCli *cli;
  gboolean quick, profile;
  int repeat; /* runs of which the best counts */
  int decode_tokens;
  char **only;
  char **models;      /* paths, or NULL */
  gboolean all;       /* kernels and shapes, too */
  char *peer;         /* a llama-bench to take turns with, or NULL */
  GPtrArray *results; /* OxBenchResult */
  GArray *levels;     /* OxBenchLevel, the lowest first; the last is that of models */
  GArray *threads;    /* guint, ascending */
  gboolean timed_out;

  OxReadProbe probe;
  guint limited; /* results before this one have their limits */
} OxBench;

/* ---- Results (ox-cli-bench-results.c) ---- */

/* Whether a result of that name is wanted. */
gboolean ox_bench_wants (const OxBench *bench, const char *name);
gboolean ox_bench_goes_on (const OxBench *bench);
/* @work: of one unit; NULL: the limit is not one of arithmetic or memory, see result->limit. Told on stderr. Owned by @bench. */
OxBenchResult *ox_bench_add (OxBench *bench,
                             const char *name,
                             const char *unit,
                             double value,
                             const OxBenchWork *work,
                             guint threads,
                             const char *level);
/* value / limit, or the other way round where less is better; NAN without a limit. */
double ox_bench_result_fraction (const OxBenchResult *result);
void ox_bench_result_free (gpointer result);
void ox_bench_write_text (OxBench *bench);
yyjson_mut_doc *ox_bench_to_json (OxBench *bench);
/* A line about what comes next, on stderr. */
void ox_bench_say (OxBench *bench, const char *format, ...) G_GNUC_PRINTF (2, 3);

/* ---- Limits (ox-cli-bench-limits.c) ---- */

typedef enum {
  OX_BENCH_READ = 1 << OX_N_PEAK_KINDS, /* beside 1 << OxPeakKind */
  OX_BENCH_ALL_LIMITS = (1 << (OX_N_PEAK_KINDS + 1)) - 1,
} OxBenchMeasured;

void ox_bench_limits_init (OxBenchLimits *limits, guint threads, guint32 mask);
/* Measures those in @what, some milliseconds each, and keeps the best. */
void ox_bench_limits_measure (OxBench *bench, OxBenchLimits *limits, guint what);
/* The results since the last call get their limits of what was measured. */
void ox_bench_limits_apply (OxBench *bench, const OxBenchLimits *limits);
/* The memory that reads are measured in, given back. */
void ox_bench_limits_release (OxBench *bench);

/* ---- Parts ---- */

/* Peaks, matrix products, attention and the rest, with each number of threads: at the best level, or at all others. */
gboolean ox_bench_kernels (OxBench *bench, gboolean best, GError **error);

/* A model to measure: a file, or a published shape with random weights. */
typedef struct {
  char *name;        /* "e2b/q8" */
  const char *path;  /* NULL: a shape */
  const char *shape; /* "gemma-4-e2b" */
  OxModelWeights weights;
  gboolean whole; /* in a quick run, too: with thousands of tokens, speculation, starts */
} OxBenchSubject;

GPtrArray *ox_bench_find_subjects (OxBench *bench, GError **error);
/* @most_tokens: that a session will hold. @keeps: whether packed weights are kept on disk. */
OxModel *ox_bench_load (
  OxBench *bench, const OxBenchSubject *subject, guint threads, guint most_tokens, gboolean keeps, GError **error);
/* Prompts read and answers written. */
gboolean ox_bench_text (OxBench *bench, const OxBenchSubject *subject, GError **error);
/* First and second start, and memory. */
gboolean ox_bench_starts (OxBench *bench, const OxBenchSubject *subject, GError **error);

/* Tokens a second of the peer program: @prompt tokens read or @written tokens written, behind @depth others. NAN with an error. */
double ox_bench_peer_run (
  OxBench *bench, const char *model, guint threads, guint prompt, guint written, guint depth, GError **error);
