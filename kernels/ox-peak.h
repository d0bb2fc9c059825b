/* What this machine can do at most: arithmetic by instruction, and reads from memory. A kernel's speed says little without these limits, measured
 * in the same run. Unlike the rest of this library, what measures starts threads, and the buffer that reads go through is allocated.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Arithmetic ------------------------------------------------------------------------------------------------- */

/* What is multiplied; sums are int32 or float32. */
typedef enum {
  OX_PEAK_F32,
  OX_PEAK_BF16,
  OX_PEAK_INT8,
  OX_N_PEAK_KINDS,
} OxPeakKind;

/* A loop of one instruction, or of the few that do the same work, over independent sums that stay in registers. */
typedef struct {
  const char *name; /* "vpdpbusd zmm" */
  OxPeakKind kind;
  uint32_t flags;      /* OxCpuFlags: all that it needs */
  uint32_t operations; /* of a round; a multiplication and an addition are two */
  void (*run) (uint64_t rounds);
  bool (*prepare) (
    void); /* asks the system for what it needs, once a process; false: refused. NULL: nothing to ask for */
} OxPeak;

/* The loops of this architecture, whether this processor has them or not; NULL beyond the last. */
const OxPeak *ox_peak (size_t i);
/* Whether the loop may be run with the instruction sets @flags, as far as this processor has them. */
bool ox_peak_runs (const OxPeak *peak, uint32_t flags);
/* Operations a second of @threads threads (at least 1) that run the loop at the same time for about @seconds: from when all are there until the
 * last is done. 0 where the loop cannot run here or the threads cannot be started. */
double ox_peak_measure (const OxPeak *peak, unsigned threads, double seconds);
/* The best of @repeats measurements of each loop of @kind that runs with @flags. BF16 also counts float32's loops, since its values can be
 * expanded: on some processors that is the faster way. @name: set to the name of the best loop; may be NULL. 0: there is no loop. */
double ox_peak_best (
  OxPeakKind kind, uint32_t flags, unsigned threads, double seconds, unsigned repeats, const char **name);

/* Seconds that a word takes from one thread to another and back, the mean of @rounds: nothing that starts and joins a second thread is
 * faster. 0: the second thread could not be started. */
double ox_peak_round_trip (unsigned rounds);

/* ---- Reads from memory ------------------------------------------------------------------------------------------ */

/* A buffer far larger than the caches, filled with words that differ. */
typedef struct {
  uint8_t *data;
  size_t bytes;
  unsigned threads; /* that filled it, each its own part, and that read it */
} OxReadProbe;

/* What the buffer should have: 8 times the last cache, and at least 256 MiB. */
size_t ox_read_probe_bytes (void);
/* Allocates and fills about @bytes bytes. False: out of memory, or the threads could not be started. */
bool ox_read_probe_init (OxReadProbe *probe, size_t bytes, unsigned threads);
void ox_read_probe_clear (OxReadProbe *probe);
/* How a pass may read: with so many streams, asking so far ahead. Which is best depends on the machine, so all are tried. */
size_t ox_read_probe_ways (void);
/* Bytes a second of one pass in way @way over the whole buffer, from when all threads are there until the last is done; 0: failed. */
double ox_read_probe_pass (const OxReadProbe *probe, size_t way);
/* Bytes a second: the best of @passes passes in each way; @mean: of the way that was best, may be NULL. */
double ox_read_probe_best (const OxReadProbe *probe, unsigned passes, double *mean);

#ifdef __cplusplus
}
#endif
