/* What the files of the measured limits share.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-kernels.h"
#include "ox-peak.h"

#define OX_PEAK_MAX_THREADS 1024

/* The loops of each family, lowest level first; end with a NULL name. */
extern const OxPeak ox_peaks_x86[];
extern const OxPeak ox_peaks_amx[];
extern const OxPeak ox_peaks_arm[];

/* Runs @func (data, thread) in @threads threads at once. Returns nanoseconds from when all are there until the last is done; 0: the
 * threads could not be started, and nothing was run. */
uint64_t ox_peak_together (void (*func) (void *data, unsigned thread), void *data, unsigned threads);
