/* The thread pool: workers that spin briefly, then park on a futex, and never hold up a caller that has no work left for
 * them.
 *
 * A job is open while its caller is in ox_pool_run(). A worker enters it by counting itself in `inside`; when the OX_CLOSED
 * bit is set there, it leaves at once. The caller closes the job when no items are left and waits only for those inside, so
 * a worker that the system has not woken yet costs nothing. The fields of a job are written only while it is closed and
 * nobody is inside.
 *
 * On a busy machine two threads may be slower than one: a worker loses its core in the middle of a chunk and everybody waits
 * for milliseconds, or it shares the caller's core and takes time from it by spinning. When a caller had to wait for long, or
 * did far more than its share of the chunks itself, the pool lets fewer workers in, those that come first, and tries more
 * again after a while (lower_limit(), raise_limit()).
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CLOSED 0x80000000u
#define SPIN_NS 50000
#define CHUNKS_PER_THREAD 8
/* More would only cost stacks and scratch, whatever a caller asks for. */
#define MAX_THREADS 1024u
/* A caller that waits longer than this, and longer than three chunks take, waits for a worker that is not running. */
#define STALL_NS 200000
/* Jobs over which the caller's share of the chunks is judged. */
#define WINDOW_JOBS 32
#define FIRST_REST_NS 4000000
#define LONGEST_REST_NS 64000000

typedef struct {
  OxPool *pool;
  pthread_t thread;
  unsigned index;
} Worker;

struct OxPool {
  unsigned n_threads;     /* the caller counted */
  unsigned spin_ns;       /* 0 when there are more threads than cores: spinning would keep the others from working */
  pthread_mutex_t caller; /* held by the thread whose job runs */
  Worker *workers;        /* [n_threads - 1] */

  OxPoolFunc func;
  void *data;
  size_t n, chunk;
  unsigned limit;    /* threads that may work now, the caller counted */
  uint64_t rest_ns;  /* how long the limit stays low */
  uint64_t raise_at; /* when to try one more, or when that was */
  unsigned window_jobs;
  size_t window_chunks, window_done; /* all chunks of those jobs, and those that the caller did */

  /* Apart, so that handing out chunks does not disturb those who wait. */
  _Alignas (64) atomic_size_t next;
  _Alignas (64) _Atomic uint32_t inside; /* workers in the job, and CLOSED */
  _Atomic uint32_t caller_waits;
  _Alignas (64) _Atomic uint32_t generation; /* grows with every job; workers park here */
  _Atomic uint32_t parked;
  atomic_bool quit;
};

/* The pool and worker that this thread is working for: a nested call runs in place. */
static _Thread_local const OxPool *current_pool;
static _Thread_local unsigned current_worker;

static void
futex_wait (_Atomic uint32_t *word, uint32_t value)
{
  syscall (SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void
futex_wake (_Atomic uint32_t *word, int count)
{
  syscall (SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

static inline void
relax (void)
{
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause ();
#elif defined(__aarch64__)
  __asm__ volatile ("isb" ::: "memory");
#endif
}

static uint64_t
now_ns (void)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC, &t);
  return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}

/* Spins while *word == value, for at most spin_ns. Returns the value read last. */
static uint32_t
spin_while_equal (_Atomic uint32_t *word, uint32_t value, unsigned spin_ns)
{
  uint64_t deadline = spin_ns != 0 ? now_ns () + spin_ns : 0;
  uint32_t seen = atomic_load (word);

  for (unsigned i = 1; seen == value && spin_ns != 0; i++) {
    relax ();
    if (i % 32 == 0 && now_ns () > deadline)
      break;
    seen = atomic_load (word);
  }
  return seen;
}

/* Returns how many chunks it did. */
static size_t
work (OxPool *pool, unsigned worker)
{
  const OxPool *outer_pool = current_pool;
  unsigned outer_worker = current_worker;
  size_t done = 0;

  current_pool = pool;
  current_worker = worker;
  while (true) {
    size_t begin = atomic_fetch_add_explicit (&pool->next, pool->chunk, memory_order_relaxed);
    if (begin >= pool->n)
      break;
    pool->func (pool->data, begin, pool->n - begin < pool->chunk ? pool->n : begin + pool->chunk, worker);
    done++;
  }
  current_pool = outer_pool;
  current_worker = outer_worker;
  return done;
}

static void *
worker_main (void *data)
{
  Worker *worker = data;
  OxPool *pool = worker->pool;
  uint32_t seen = 0, inside;

  while (true) {
    uint32_t generation = spin_while_equal (&pool->generation, seen, pool->spin_ns);

    while (generation == seen) {
      atomic_fetch_add (&pool->parked, 1);
      futex_wait (&pool->generation, seen);
      atomic_fetch_sub (&pool->parked, 1);
      generation = atomic_load (&pool->generation);
    }
    seen = generation;
    if (atomic_load (&pool->quit))
      return NULL;

    inside = atomic_fetch_add (&pool->inside, 1);
    if (!(inside & CLOSED) && inside + 1 < pool->limit)
      work (pool, worker->index);
    if (atomic_fetch_sub (&pool->inside, 1) == (CLOSED | 1) && atomic_load (&pool->caller_waits))
      futex_wake (&pool->inside, 1);
  }
}

OxPool *
ox_pool_new (unsigned n_threads)
{
  unsigned cores = ox_cpu_allowed_cores ();
  OxPool *pool = aligned_alloc (64, sizeof (OxPool));
  sigset_t all, before;

  if (pool == NULL)
    return NULL;
  *pool = (OxPool) { .n_threads = 1, .inside = CLOSED };
  if (n_threads == 0)
    n_threads = cores;
  if (n_threads > MAX_THREADS)
    n_threads = MAX_THREADS;
  pool->spin_ns = n_threads <= cores ? SPIN_NS : 0;
  pool->workers = calloc (n_threads, sizeof (Worker));
  if (pool->workers == NULL || pthread_mutex_init (&pool->caller, NULL) != 0) {
    free (pool->workers);
    free (pool);
    return NULL;
  }

  /* Signals are for the program's own threads. */
  sigfillset (&all);
  pthread_sigmask (SIG_SETMASK, &all, &before);
  for (unsigned i = 1; i < n_threads; i++) {
    Worker *worker = &pool->workers[i - 1];
    worker->pool = pool;
    worker->index = i;
    if (pthread_create (&worker->thread, NULL, worker_main, worker) != 0)
      break;
    pool->n_threads++;
  }
  pthread_sigmask (SIG_SETMASK, &before, NULL);
  pool->limit = pool->n_threads;
  return pool;
}

void
ox_pool_free (OxPool *pool)
{
  if (pool == NULL)
    return;
  atomic_store (&pool->quit, true);
  atomic_fetch_add (&pool->generation, 1);
  futex_wake (&pool->generation, INT_MAX);
  for (unsigned i = 0; i + 1 < pool->n_threads; i++)
    pthread_join (pool->workers[i].thread, NULL);
  pthread_mutex_destroy (&pool->caller);
  free (pool->workers);
  free (pool);
}

unsigned
ox_pool_threads (const OxPool *pool)
{
  return pool->n_threads;
}

static void
lower_limit (OxPool *pool, uint64_t now)
{
  /* Soon after the last try: wait twice as long before the next. */
  bool again = now - pool->raise_at < pool->rest_ns + FIRST_REST_NS;

  pool->rest_ns = !again ? FIRST_REST_NS : pool->rest_ns < LONGEST_REST_NS ? pool->rest_ns * 2 : LONGEST_REST_NS;
  pool->limit = pool->limit > 1 ? pool->limit - 1 : 1;
  pool->raise_at = now + pool->rest_ns;
  pool->window_jobs = 0;
}

static void
raise_limit (OxPool *pool, uint64_t now)
{
  if (now >= pool->raise_at) {
    pool->limit++;
    pool->raise_at = now;
    pool->window_jobs = 0;
  }
}

/* After a job in which the caller did @done of @chunks in the time from @begin to @closed and then waited until @now. */
static void
judge (OxPool *pool, size_t chunks, size_t done, uint64_t begin, uint64_t closed, uint64_t now)
{
  if (pool->window_jobs == 0)
    pool->window_chunks = pool->window_done = 0;
  pool->window_chunks += chunks;
  pool->window_done += done;
  pool->window_jobs++;

  if (done > 0 && now - closed > STALL_NS + 3 * (closed - begin) / done) {
    lower_limit (pool, now);
  } else if (pool->window_jobs == WINDOW_JOBS) {
    /* More than 1.4 times its share: with two threads, when the other does less than three chunks in ten. */
    if (10 * pool->window_done * pool->limit > 14 * pool->window_chunks)
      lower_limit (pool, now);
    pool->window_jobs = 0;
  }
}

/* Waits until the last worker has left the closed job. */
static void
wait_for_workers (OxPool *pool)
{
  uint64_t deadline = pool->spin_ns != 0 ? now_ns () + pool->spin_ns : 0;
  uint32_t inside = atomic_load (&pool->inside);

  for (unsigned i = 1; inside != CLOSED && deadline != 0; i++) {
    relax ();
    if (i % 32 == 0 && now_ns () > deadline)
      break;
    inside = atomic_load (&pool->inside);
  }
  if (inside == CLOSED)
    return;
  atomic_store (&pool->caller_waits, 1);
  while ((inside = atomic_load (&pool->inside)) != CLOSED)
    futex_wait (&pool->inside, inside);
  atomic_store (&pool->caller_waits, 0);
}

void
ox_pool_run (OxPool *pool, OxPoolFunc func, void *data, size_t n, size_t grain)
{
  size_t chunks, done;
  uint64_t begin, closed;

  if (n == 0)
    return;
  if (current_pool == pool) {
    func (data, 0, n, current_worker);
    return;
  }
  if (grain == 0)
    grain = 1;

  pthread_mutex_lock (&pool->caller);
  pool->func = func;
  pool->data = data;
  pool->n = n;
  /* A whole number of grains, so that chunks begin where the caller's steps do. */
  pool->chunk = n / grain / (pool->n_threads * CHUNKS_PER_THREAD);
  pool->chunk = grain * (pool->chunk > 0 ? pool->chunk : 1);
  chunks = n / pool->chunk + (n % pool->chunk != 0);
  atomic_store (&pool->next, 0);

  begin = chunks > 1 && pool->n_threads > 1 ? now_ns () : 0;
  if (pool->limit < pool->n_threads)
    raise_limit (pool, begin);
  if (chunks == 1 || pool->limit == 1) {
    work (pool, 0);
  } else {
    atomic_fetch_and (&pool->inside, ~CLOSED);
    atomic_fetch_add (&pool->generation, 1);
    if (atomic_load (&pool->parked) != 0)
      futex_wake (&pool->generation, (int) (chunks < pool->limit ? chunks : pool->limit) - 1);
    done = work (pool, 0);
    closed = now_ns ();
    if (atomic_fetch_or (&pool->inside, CLOSED) != 0)
      wait_for_workers (pool);
    judge (pool, chunks, done, begin, closed, now_ns ());
  }
  pthread_mutex_unlock (&pool->caller);
}
