/* Where the time of a model goes: wall time and calls by category, always measured.
 *
 * A thread that computes has a clock (each table of operations carries one, OxOps.profile). A lap ends what the clock was timing and
 * begins the next category, so between start and stop no time is lost or counted twice, and an operation needs one line:
 *
 *   ox_profile_start (&ops->profile, OX_PROFILE_OTHER);
 *   ox_profile_lap (&ops->profile, OX_PROFILE_NORM);      at the beginning of an operation
 *   ox_profile_lap (&ops->profile, OX_PROFILE_MATMUL);    at the beginning of the next one
 *   ox_profile_stop (&ops->profile);
 *
 * Starts nest: a stop goes back to the category that was timed before. A lap costs one reading of the system's clock and two
 * additions, some 30 ns; a token takes some hundred laps, which is far below 0.5 % of the smallest model's token.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "oxinfer.h"

/* The sums of a model. Written by the clocks of all its sessions, read at any time: atomically, number by number. */
typedef struct {
  guint64 nanoseconds[OX_PROFILE_N_CATEGORIES];
  guint64 calls[OX_PROFILE_N_CATEGORIES];
} OxProfiler;

/* Starts inside one another beyond this count to the innermost category that is kept. */
#define OX_PROFILE_DEPTH 4

/* Of one thread at a time. All zeros: a clock that measures nothing. */
typedef struct {
  OxProfiler *profiler; /* borrowed; NULL: nothing is measured */
  guint64 since;        /* when the running category began */
  guint depth;          /* starts without their stop; 0: the clock stands */
  OxProfileCategory categories[OX_PROFILE_DEPTH];
} OxProfileClock;

void ox_profile_start (OxProfileClock *clock, OxProfileCategory category);
/* What follows belongs to @category. Nothing happens on a clock that stands. */
void ox_profile_lap (OxProfileClock *clock, OxProfileCategory category);
void ox_profile_stop (OxProfileClock *clock);

void ox_profiler_read (const OxProfiler *profiler, OxProfile *profile);
void ox_profiler_reset (OxProfiler *profiler);
