/* Measures what the arithmetic units do at most: loops of one instruction, in as many threads as are asked for.
 *
 * The threads are the measurement's own, since the pool may do with fewer on a busy machine.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-peak-internal.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

/* Rounds that a loop is first tried with, to learn how many fill the time: a few microseconds. */
#define FIRST_ROUNDS 1000

static const OxPeak *const families[] = { ox_peaks_x86, ox_peaks_amx, ox_peaks_arm };

const OxPeak *
ox_peak (size_t i)
{
  for (size_t f = 0; f < sizeof families / sizeof families[0]; f++)
    for (const OxPeak *peak = families[f]; peak->name != NULL; peak++)
      if (i-- == 0)
        return peak;
  return NULL;
}

bool
ox_peak_runs (const OxPeak *peak, uint32_t flags)
{
  flags &= ox_cpu_flags ();
  return (peak->flags & ~flags) == 0 && (peak->prepare == NULL || peak->prepare ());
}

/* ---- Threads ---------------------------------------------------------------------------------------------------- */

static uint64_t
now_ns (void)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC, &t);
  return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}

typedef struct {
  void (*func) (void *data, unsigned thread);
  void *data;
  unsigned threads;
  atomic_uint here;
  atomic_bool given_up;
} Crew;

typedef struct {
  Crew *crew;
  unsigned index;
  pthread_t handle;
  uint64_t begin, end;
} Member;

/* Waiting is done awake, so that all begin within a microsecond; on a machine without a free core it makes room. */
static void
work (Member *member)
{
  Crew *crew = member->crew;

  atomic_fetch_add (&crew->here, 1);
  for (unsigned spins = 0; atomic_load (&crew->here) < crew->threads; spins++) {
    if (atomic_load (&crew->given_up))
      return;
    if (spins >= 1000)
      sched_yield ();
  }
  member->begin = now_ns ();
  crew->func (crew->data, member->index);
  member->end = now_ns ();
}

static void *
member_main (void *data)
{
  work (data);
  return NULL;
}

uint64_t
ox_peak_together (void (*func) (void *data, unsigned thread), void *data, unsigned threads)
{
  Crew crew = { .func = func, .data = data, .threads = threads };
  Member members[OX_PEAK_MAX_THREADS];
  uint64_t begin = UINT64_MAX, end = 0;
  unsigned n = 1;

  if (threads < 1 || threads > OX_PEAK_MAX_THREADS)
    return 0;
  /* The caller is the first of them. */
  members[0] = (Member) { .crew = &crew };
  for (; n < threads; n++) {
    members[n] = (Member) { .crew = &crew, .index = n };
    if (pthread_create (&members[n].handle, NULL, member_main, &members[n]) != 0)
      break;
  }
  if (n == threads)
    work (&members[0]);
  else
    atomic_store (&crew.given_up, true);
  for (unsigned i = 1; i < n; i++)
    pthread_join (members[i].handle, NULL);
  if (n < threads)
    return 0;
  for (unsigned i = 0; i < n; i++) {
    begin = members[i].begin < begin ? members[i].begin : begin;
    end = members[i].end > end ? members[i].end : end;
  }
  return end > begin ? end - begin : 1;
}

/* ---- Arithmetic ------------------------------------------------------------------------------------------------- */

typedef struct {
  const OxPeak *peak;
  uint64_t rounds;
} PeakJob;

static void
run_rounds (void *data, unsigned thread)
{
  const PeakJob *job = data;

  job->peak->run (job->rounds);
}

double
ox_peak_measure (const OxPeak *peak, unsigned threads, double seconds)
{
  PeakJob job = { peak, FIRST_ROUNDS };
  uint64_t ns;

  if (!ox_peak_runs (peak, OX_CPU_ALL))
    return 0;
  /* The first run brings the units up to their speed; the second says how fast they are. */
  for (unsigned i = 0; i < 2; i++) {
    uint64_t begin = now_ns ();

    run_rounds (&job, 0);
    ns = now_ns () - begin;
  }
  job.rounds = (uint64_t) (seconds * 1e9 / (double) (ns > 0 ? ns : 1) * FIRST_ROUNDS) + 1;
  ns = ox_peak_together (run_rounds, &job, threads);
  return ns > 0 ? (double) job.rounds * peak->operations * threads / ((double) ns * 1e-9) : 0;
}

double
ox_peak_best (OxPeakKind kind, uint32_t flags, unsigned threads, double seconds, unsigned repeats, const char **name)
{
  const OxPeak *peak;
  double best = 0;

  for (size_t i = 0; (peak = ox_peak (i)) != NULL; i++) {
    if (peak->kind != kind && !(kind == OX_PEAK_BF16 && peak->kind == OX_PEAK_F32))
      continue;
    if (!ox_peak_runs (peak, flags))
      continue;
    for (unsigned r = 0; r < repeats; r++) {
      double speed = ox_peak_measure (peak, threads, seconds);

      if (speed > best) {
        best = speed;
        if (name != NULL)
          *name = peak->name;
      }
    }
  }
  return best;
}

/* ---- Between threads -------------------------------------------------------------------------------------------- */

typedef struct {
  _Alignas (64) atomic_uint word; /* odd: the second thread's turn */
  unsigned rounds;
} RoundTrip;

static void
pass_word (void *data, unsigned thread)
{
  RoundTrip *trip = data;

  for (unsigned i = 0; i < trip->rounds; i++) {
    for (unsigned spins = 0; atomic_load_explicit (&trip->word, memory_order_acquire) != 2 * i + thread; spins++)
      if (spins >= 100000)
        sched_yield ();
    atomic_store_explicit (&trip->word, 2 * i + thread + 1, memory_order_release);
  }
}

double
ox_peak_round_trip (unsigned rounds)
{
  RoundTrip trip = { .rounds = rounds };

  return rounds > 0 ? (double) ox_peak_together (pass_word, &trip, 2) * 1e-9 / rounds : 0;
}
