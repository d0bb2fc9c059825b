/* Where the time of a model goes: clocks and sums.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-profile.h"

#include <time.h>

static guint64
now_ns (void)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC, &t);
  return (guint64) t.tv_sec * 1000000000u + (guint64) t.tv_nsec;
}

static OxProfileCategory *
current (OxProfileClock *clock)
{
  return &clock->categories[MIN (clock->depth, OX_PROFILE_DEPTH) - 1];
}

/* The time since the last lap goes to the running category. */
static void
settle (OxProfileClock *clock, guint64 now)
{
  __atomic_add_fetch (&clock->profiler->nanoseconds[*current (clock)], now - clock->since, __ATOMIC_RELAXED);
  clock->since = now;
}

static void
begin (OxProfileClock *clock, OxProfileCategory category)
{
  *current (clock) = category;
  __atomic_add_fetch (&clock->profiler->calls[category], 1, __ATOMIC_RELAXED);
}

void
ox_profile_start (OxProfileClock *clock, OxProfileCategory category)
{
  if (clock->profiler == NULL)
    return;
  if (clock->depth == 0)
    clock->since = now_ns ();
  else
    settle (clock, now_ns ());
  clock->depth++;
  begin (clock, category);
}

void
ox_profile_lap (OxProfileClock *clock, OxProfileCategory category)
{
  if (clock->depth == 0)
    return;
  settle (clock, now_ns ());
  begin (clock, category);
}

void
ox_profile_stop (OxProfileClock *clock)
{
  if (clock->depth == 0)
    return;
  settle (clock, now_ns ());
  clock->depth--;
}

/* ---- Sums ---- */

void
ox_profiler_read (const OxProfiler *profiler, OxProfile *profile)
{
  for (guint c = 0; c < OX_PROFILE_N_CATEGORIES; c++) {
    profile->nanoseconds[c] = __atomic_load_n (&profiler->nanoseconds[c], __ATOMIC_RELAXED);
    profile->calls[c] = __atomic_load_n (&profiler->calls[c], __ATOMIC_RELAXED);
  }
}

void
ox_profiler_reset (OxProfiler *profiler)
{
  for (guint c = 0; c < OX_PROFILE_N_CATEGORIES; c++) {
    __atomic_store_n (&profiler->nanoseconds[c], 0, __ATOMIC_RELAXED);
    __atomic_store_n (&profiler->calls[c], 0, __ATOMIC_RELAXED);
  }
}

void
ox_profile_subtract (OxProfile *profile, const OxProfile *earlier)
{
  for (guint c = 0; c < OX_PROFILE_N_CATEGORIES; c++) {
    profile->nanoseconds[c] -= MIN (profile->nanoseconds[c], earlier->nanoseconds[c]);
    profile->calls[c] -= MIN (profile->calls[c], earlier->calls[c]);
  }
}

guint64
ox_profile_get_total (const OxProfile *profile)
{
  guint64 total = 0;

  for (guint c = 0; c < OX_PROFILE_N_CATEGORIES; c++)
    total += profile->nanoseconds[c];
  return total;
}

const char *
ox_profile_category_get_name (OxProfileCategory category)
{
  static const char *const names[OX_PROFILE_N_CATEGORIES] = {
    [OX_PROFILE_MATMUL] = "matmul",       [OX_PROFILE_ATTENTION] = "attention",
    [OX_PROFILE_NORM] = "norm",           [OX_PROFILE_ELEMENTWISE] = "elementwise",
    [OX_PROFILE_RECURRENT] = "recurrent", [OX_PROFILE_IO] = "io",
    [OX_PROFILE_SAMPLING] = "sampling",   [OX_PROFILE_TOKENIZER] = "tokenizer",
    [OX_PROFILE_IMAGE] = "image",         [OX_PROFILE_LOAD] = "load",
    [OX_PROFILE_OTHER] = "other",
  };

  g_return_val_if_fail ((guint) category < OX_PROFILE_N_CATEGORIES, NULL);
  return names[category];
}
