/* How fast this computer reads memory: the ceiling of decoding, which reads every weight once a token.
 *
 * Only reads count (a copy also measures writes), over a buffer so large that caches do not help, by as many threads as compute.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-cli.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#define MIN_BUFFER_BYTES (256ull << 20)
#define MAX_BUFFER_BYTES (4ull << 30)
#define CACHES 8
/* A round of the loop below. */
#define STEP_WORDS 32

typedef guint64 Words __attribute__ ((vector_size (64)));

typedef struct {
  pthread_barrier_t barrier;
  guint passes;
  guint8 *buffer;
  gsize slice;
  GCancellable *cancellable;
} Shared;

typedef struct {
  Shared *shared;
  guint index;
  gint64 *begin, *end; /* [passes], of this thread */
} Reader;

/* Four independent sums, so that no addition waits for another. Not inlined and opaque, or the compiler would see that a second pass
 * gives the same sum and leave it out. */
static guint64 __attribute__ ((noinline))
read_once (const guint8 *data, gsize bytes)
{
  const Words *words = (const Words *) data;
  Words a = { 0 }, b = { 0 }, c = { 0 }, d = { 0 };

  __asm__ volatile ("" : "+r"(words) : : "memory");
  for (gsize i = 0; i < bytes / sizeof (Words); i += 4) {
    a += words[i];
    b += words[i + 1];
    c += words[i + 2];
    d += words[i + 3];
  }
  a += b + c + d;
  return a[0] + a[1] + a[2] + a[3] + a[4] + a[5] + a[6] + a[7];
}

static gpointer
reader_thread (gpointer data)
{
  Reader *reader = data;
  Shared *shared = reader->shared;
  guint8 *slice = shared->buffer + reader->index * shared->slice;
  guint64 *words = (guint64 *) slice;

  /* Distinct values: pages of zeros might be one page. */
  for (gsize i = 0; i < shared->slice / sizeof *words; i++)
    words[i] = (i + 1) * G_GUINT64_CONSTANT (0x9e3779b97f4a7c15) + reader->index;
  for (guint pass = 0; pass < shared->passes; pass++) {
    guint64 sum;

    pthread_barrier_wait (&shared->barrier);
    reader->begin[pass] = g_get_monotonic_time ();
    sum = g_cancellable_is_cancelled (shared->cancellable) ? 0 : read_once (slice, shared->slice);
    __asm__ volatile ("" : : "r"(sum) : "memory");
    reader->end[pass] = g_get_monotonic_time ();
  }
  return NULL;
}

/* Large against the last cache, and small against what is free. */
static gsize
buffer_bytes (void)
{
  g_autoptr (OxPlatform) platform = ox_platform_query ();
  long cache = sysconf (_SC_LEVEL3_CACHE_SIZE);
  guint64 bytes = CACHES * (guint64) MAX (cache, 0);

  bytes = CLAMP (bytes, MIN_BUFFER_BYTES, MAX_BUFFER_BYTES);
  return (gsize) MIN (bytes, MAX (platform->memory_available / 4, MIN_BUFFER_BYTES / 4));
}

double
ox_cli_read_bandwidth (guint threads, guint passes, GCancellable *cancellable)
{
  gsize step = STEP_WORDS * sizeof (guint64) * 16;
  gsize total = buffer_bytes ();
  Shared shared = { .passes = passes, .slice = total / threads / step * step, .cancellable = cancellable };
  g_autofree Reader *readers = g_new0 (Reader, threads);
  g_autofree GThread **handles = g_new0 (GThread *, threads);
  g_autofree gint64 *times = g_new0 (gint64, (gsize) threads * passes * 2);
  double best = 0;

  total = shared.slice * threads;
  shared.buffer = mmap (NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (shared.buffer == MAP_FAILED)
    return 0;
  pthread_barrier_init (&shared.barrier, NULL, threads);
  for (guint i = 0; i < threads; i++) {
    readers[i] = (Reader) { &shared, i, times + (gsize) i * 2 * passes, times + ((gsize) i * 2 + 1) * passes };
    handles[i] = g_thread_new ("bandwidth", reader_thread, &readers[i]);
  }
  for (guint i = 0; i < threads; i++)
    g_thread_join (handles[i]);
  pthread_barrier_destroy (&shared.barrier);
  munmap (shared.buffer, total);

  for (guint pass = 0; pass < passes && !g_cancellable_is_cancelled (cancellable); pass++) {
    gint64 begin = readers[0].begin[pass], end = readers[0].end[pass];

    for (guint i = 1; i < threads; i++) {
      begin = MIN (begin, readers[i].begin[pass]);
      end = MAX (end, readers[i].end[pass]);
    }
    if (end > begin)
      best = MAX (best, (double) total / ((double) (end - begin) / G_USEC_PER_SEC));
  }
  return best;
}
