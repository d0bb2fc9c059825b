/* The thread pool: workers that spin briefly, then park on a futex, and never hold up a caller that has no work left for
 * them.
 *
 * A job is open while its caller is in ox_pool_run(). A worker enters it by counting itself in `inside`; when the CLOSED
 * bit is set there, it leaves at once. The caller closes the job when no items are left and waits only for those inside, so
 * a worker that the system has not woken yet costs nothing. The fields of a job are written only while it is closed and
 * nobody is inside.
 *
 * Three numbers say how many threads work. `n_threads` were made. `cap` is what the setting and the allowed cores leave of them;
 * workers from that index on sleep until it rises. `limit` is what a busy machine leaves of the cap: two threads may be slower than
 * one there, because a worker loses its core in the middle of a chunk and everybody waits for milliseconds, or it shares the caller's
 * core and takes time from it by spinning. When a caller had to wait for long, or its workers did next to nothing, the pool lets
 * fewer workers in, those that come first, and tries more again after a while (lower_limit(), raise_limit()).
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
#define RECOUNT_NS 1000000000u
/* A caller that waits longer than this, and longer than three chunks take, waits for a worker that is not running. */
#define STALL_NS 200000
/* Jobs over which the workers' share of the chunks is judged. */
#define WINDOW_JOBS 32
/* A job that was over sooner says nothing about the workers: they may just have been on their way. */
#define TELLING_NS 5000
/* Workers that do on average less than 3 chunks for 7 of the caller's are not worth what they cost. With the slow cores of a hybrid
 * processor, which do about half of what the fast ones do, and some fast ones besides, they do more than that. */
#define LEAST_CHUNKS 3
#define CALLER_CHUNKS 7
/* The limit stays low for so long, twice as long each time that trying more fails at once, and so many times longer than the caller
 * had to wait: on a machine with much to do that may be tens of milliseconds a time. */
#define FIRST_REST_NS 4000000
#define LONGEST_REST_NS 512000000
#define REST_PER_WAIT 8
/* A worker that was woken is on its way for so long. */
#define WAKING_NS 30000

typedef struct {
  OxPool *pool;
  pthread_t thread;
  unsigned index;
} Worker;

struct OxPool {
  unsigned n_threads; /* the caller counted */
  Worker *workers;    /* [n_threads - 1] */

  /* Settings: the lock is for those who write the cap. */
  pthread_mutex_t settings;
  unsigned asked; /* what ox_pool_set_limit() said */
  unsigned cores; /* as counted last */
  OxCoreSource core_source;
  void *core_data;
  OxCoreCount core_count;
  bool use_siblings; /* there were more threads than cores from the beginning: hyper-threads count */

  /* The job, and what is known about jobs: of the caller that has `busy`. */
  OxPoolFunc func;
  void *data;
  size_t n, chunk;
  unsigned job_limit; /* threads that may work on it, the caller counted */
  unsigned limit;     /* of all jobs now */
  unsigned known_cap; /* that the limit was made for */
  uint64_t recount_at;
  uint64_t rest_ns;  /* how long the limit stays low */
  uint64_t raise_at; /* when to try one more, or when that was */
  unsigned window_jobs;
  size_t window_chunks, window_done; /* all chunks of those jobs, and those that the caller did */
  uint64_t woken_at;
  uint32_t woken; /* workers, then */

  /* Apart, so that handing out chunks does not disturb those who wait. */
  _Alignas (64) atomic_size_t next;
  _Alignas (64) _Atomic uint32_t inside; /* workers in the job, and CLOSED */
  _Atomic uint32_t caller_waits;
  _Alignas (64) _Atomic uint32_t generation; /* grows with every job; workers park here */
  _Atomic uint32_t parked;                   /* of those below the cap */
  _Atomic uint32_t cap;                      /* workers from this index on park here */
  atomic_bool quit;
  _Alignas (64) atomic_bool busy; /* a caller has the workers */
  _Atomic unsigned callers;       /* threads in ox_pool_run() */
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

/* ---- Workers ---- */

/* Waits until *word is another than @value, for at most SPIN_NS. Returns the value read last. */
static uint32_t
spin_while_equal (_Atomic uint32_t *word, uint32_t value)
{
  uint64_t deadline = now_ns () + SPIN_NS;
  uint32_t seen = atomic_load (word);

  for (unsigned i = 1; seen == value; i++) {
    relax ();
    if (i % 32 == 0 && now_ns () > deadline)
      break;
    seen = atomic_load (word);
  }
  return seen;
}

/* Does chunks of [0, n), handed out by @next, until there are no more. Returns how many it did. */
static size_t
work (const OxPool *pool, OxPoolFunc func, void *data, size_t n, size_t chunk, atomic_size_t *next, unsigned worker)
{
  const OxPool *outer_pool = current_pool;
  unsigned outer_worker = current_worker;
  size_t done = 0;

  current_pool = pool;
  current_worker = worker;
  while (true) {
    size_t begin = atomic_fetch_add_explicit (next, chunk, memory_order_relaxed);
    if (begin >= n)
      break;
    func (data, begin, n - begin < chunk ? n : begin + chunk, worker);
    done++;
  }
  current_pool = outer_pool;
  current_worker = outer_worker;
  return done;
}

/* Enters the job if it is open and not full. Returns false when it was full. */
static bool
join_job (OxPool *pool, unsigned worker)
{
  uint32_t inside = atomic_fetch_add (&pool->inside, 1);
  bool full = false;

  if (!(inside & CLOSED)) {
    full = inside + 1 >= pool->job_limit;
    if (!full)
      work (pool, pool->func, pool->data, pool->n, pool->chunk, &pool->next, worker);
  }
  if (atomic_fetch_sub (&pool->inside, 1) == (CLOSED | 1) && atomic_load (&pool->caller_waits))
    futex_wake (&pool->inside, 1);
  return !full;
}

static void *
worker_main (void *data)
{
  Worker *worker = data;
  OxPool *pool = worker->pool;
  uint32_t seen = 0;
  bool wanted = true; /* else there are enough without this one, which then need not be in a hurry */

  while (true) {
    uint32_t generation, cap;

    while ((cap = atomic_load (&pool->cap)) <= worker->index && !atomic_load (&pool->quit))
      futex_wait (&pool->cap, cap);
    generation = wanted ? spin_while_equal (&pool->generation, seen) : atomic_load (&pool->generation);
    while (generation == seen) {
      atomic_fetch_add (&pool->parked, 1);
      futex_wait (&pool->generation, seen);
      atomic_fetch_sub (&pool->parked, 1);
      generation = atomic_load (&pool->generation);
    }
    seen = generation;
    if (atomic_load (&pool->quit))
      return NULL;
    wanted = join_job (pool, worker->index);
  }
}

/* ---- Settings ---- */

/* Everybody looks again: at the cap, and whether there is a job. */
static void
wake_all (OxPool *pool)
{
  atomic_fetch_add (&pool->generation, 1);
  futex_wake (&pool->generation, INT_MAX);
  futex_wake (&pool->cap, INT_MAX);
}

/* With the settings locked. */
static void
update_cap (OxPool *pool)
{
  unsigned cap = pool->n_threads < pool->cores ? pool->n_threads : pool->cores;

  if (pool->asked != 0 && pool->asked < cap)
    cap = pool->asked;
  if (cap == 0)
    cap = 1;
  if (cap != atomic_load (&pool->cap)) {
    atomic_store (&pool->cap, cap);
    wake_all (pool);
  }
}

static void
count_cores (OxPool *pool)
{
  pthread_mutex_lock (&pool->settings);
  if (pool->core_source != NULL) {
    pool->cores = pool->core_source (pool->core_data);
  } else {
    ox_cpu_count_cores (&pool->core_count);
    pool->cores = pool->use_siblings ? pool->core_count.cpus : pool->core_count.cores;
  }
  update_cap (pool);
  pthread_mutex_unlock (&pool->settings);
}

void
ox_pool_set_limit (OxPool *pool, unsigned n_threads)
{
  pthread_mutex_lock (&pool->settings);
  pool->asked = n_threads;
  update_cap (pool);
  pthread_mutex_unlock (&pool->settings);
}

void
ox_pool_set_core_source (OxPool *pool, OxCoreSource source, void *data)
{
  pthread_mutex_lock (&pool->settings);
  pool->core_source = source;
  pool->core_data = data;
  pthread_mutex_unlock (&pool->settings);
  count_cores (pool);
}

unsigned
ox_pool_get_limit (const OxPool *pool)
{
  return atomic_load (&pool->cap);
}

unsigned
ox_pool_threads (const OxPool *pool)
{
  return pool->n_threads;
}

OxPool *
ox_pool_new (unsigned n_threads)
{
  OxPool *pool = aligned_alloc (64, sizeof (OxPool));
  sigset_t all, before;
  unsigned wanted;

  if (pool == NULL)
    return NULL;
  *pool = (OxPool) { .n_threads = 1, .inside = CLOSED };
  ox_cpu_count_cores (&pool->core_count);
  wanted = n_threads != 0 ? n_threads : pool->core_count.cores;
  if (wanted > MAX_THREADS)
    wanted = MAX_THREADS;
  pool->use_siblings = wanted > pool->core_count.cores;
  pool->recount_at = now_ns () + RECOUNT_NS;
  pool->workers = calloc (wanted, sizeof (Worker));
  if (pool->workers == NULL || pthread_mutex_init (&pool->settings, NULL) != 0) {
    free (pool->workers);
    free (pool);
    return NULL;
  }

  /* Signals are for the program's own threads. */
  sigfillset (&all);
  pthread_sigmask (SIG_SETMASK, &all, &before);
  for (unsigned i = 1; i < wanted; i++) {
    Worker *worker = &pool->workers[i - 1];
    worker->pool = pool;
    worker->index = i;
    if (pthread_create (&worker->thread, NULL, worker_main, worker) != 0)
      break;
    pool->n_threads++;
  }
  pthread_sigmask (SIG_SETMASK, &before, NULL);
  pool->cores = pool->use_siblings ? pool->core_count.cpus : pool->core_count.cores;
  update_cap (pool);
  pool->limit = pool->known_cap = atomic_load (&pool->cap);
  return pool;
}

void
ox_pool_free (OxPool *pool)
{
  if (pool == NULL)
    return;
  atomic_store (&pool->quit, true);
  /* Who sleeps at the cap must find it changed, whatever it was. */
  atomic_store (&pool->cap, UINT_MAX);
  wake_all (pool);
  for (unsigned i = 0; i + 1 < pool->n_threads; i++)
    pthread_join (pool->workers[i].thread, NULL);
  pthread_mutex_destroy (&pool->settings);
  free (pool->workers);
  free (pool);
}

/* ---- On a busy machine ---- */

/* After a job whose caller had done its part at @closed and went on at @now. */
static void
lower_limit (OxPool *pool, uint64_t closed, uint64_t now)
{
  uint64_t wait = REST_PER_WAIT * (now - closed);
  bool again = closed - pool->raise_at < pool->rest_ns + FIRST_REST_NS;

  pool->rest_ns = again ? pool->rest_ns * 2 : FIRST_REST_NS;
  if (pool->rest_ns < wait)
    pool->rest_ns = wait;
  if (pool->rest_ns > LONGEST_REST_NS)
    pool->rest_ns = LONGEST_REST_NS;
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
  if (done > 0 && now - closed > STALL_NS + 3 * (closed - begin) / done) {
    lower_limit (pool, closed, now);
    return;
  }
  if (closed - begin < TELLING_NS)
    return;
  if (pool->window_jobs == 0)
    pool->window_chunks = pool->window_done = 0;
  pool->window_chunks += chunks;
  pool->window_done += done;
  if (++pool->window_jobs == WINDOW_JOBS) {
    if (CALLER_CHUNKS * (pool->window_chunks - pool->window_done) <
        LEAST_CHUNKS * (pool->job_limit - 1) * pool->window_done)
      lower_limit (pool, closed, now);
    pool->window_jobs = 0;
  }
}

/* ---- Jobs ---- */

/* How many threads may work on a job that begins at @now. */
static unsigned
choose_limit (OxPool *pool, uint64_t now)
{
  unsigned callers = atomic_load (&pool->callers), cap;

  if (now >= pool->recount_at) {
    count_cores (pool);
    pool->recount_at = now + RECOUNT_NS;
  }
  cap = atomic_load (&pool->cap);
  if (cap != pool->known_cap) {
    pool->limit = pool->known_cap = cap;
    pool->window_jobs = 0;
  } else if (pool->limit < cap) {
    raise_limit (pool, now);
  }
  /* Other callers need cores, too. */
  return pool->limit > callers ? pool->limit - callers + 1 : 1;
}

/* Waits until the last worker has left the closed job. */
static void
wait_for_workers (OxPool *pool)
{
  uint64_t deadline = now_ns () + SPIN_NS;
  uint32_t inside = atomic_load (&pool->inside);

  for (unsigned i = 1; inside != CLOSED; i++) {
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

/* Wakes as many parked workers as a job of @chunks that begins at @now lacks. */
static void
wake_workers (OxPool *pool, size_t chunks, uint64_t now)
{
  uint32_t parked = atomic_load (&pool->parked), cap = atomic_load (&pool->cap);
  uint32_t awake = cap - 1 > parked ? cap - 1 - parked : 0;
  uint32_t wanted = (chunks < pool->job_limit ? (uint32_t) chunks : pool->job_limit) - 1;

  /* Those woken just now count as parked until the system runs them; waking them again would cost every short job a system call. */
  if (now - pool->woken_at < WAKING_NS)
    awake += pool->woken < parked ? pool->woken : parked;
  if (parked == 0 || awake >= wanted)
    return;
  futex_wake (&pool->generation, (int) (wanted - awake));
  pool->woken = wanted - awake;
  pool->woken_at = now;
}

/* Runs the job with the workers, which this caller has. */
static void
run_shared (OxPool *pool, OxPoolFunc func, void *data, size_t n, size_t chunk, size_t chunks, uint64_t begin)
{
  uint64_t closed;
  size_t done;

  pool->func = func;
  pool->data = data;
  pool->n = n;
  pool->chunk = chunk;
  atomic_store_explicit (&pool->next, 0, memory_order_relaxed);
  atomic_fetch_and (&pool->inside, ~CLOSED);
  atomic_fetch_add (&pool->generation, 1);
  wake_workers (pool, chunks, begin);
  done = work (pool, func, data, n, chunk, &pool->next, 0);
  closed = now_ns ();
  if (atomic_fetch_or (&pool->inside, CLOSED) != 0)
    wait_for_workers (pool);
  judge (pool, chunks, done, begin, closed, now_ns ());
}

void
ox_pool_run (OxPool *pool, OxPoolFunc func, void *data, size_t n, size_t grain)
{
  size_t chunk, chunks;
  bool shared = false;

  if (n == 0)
    return;
  if (current_pool == pool) {
    func (data, 0, n, current_worker);
    return;
  }
  if (grain == 0)
    grain = 1;
  /* A whole number of grains, so that chunks begin where the caller's steps do. */
  chunk = n / grain / (pool->n_threads * CHUNKS_PER_THREAD);
  chunk = grain * (chunk > 0 ? chunk : 1);
  chunks = n / chunk + (n % chunk != 0);

  atomic_fetch_add (&pool->callers, 1);
  if (chunks > 1 && pool->n_threads > 1 && !atomic_exchange (&pool->busy, true)) {
    uint64_t begin = now_ns ();

    pool->job_limit = choose_limit (pool, begin);
    shared = pool->job_limit > 1;
    if (shared)
      run_shared (pool, func, data, n, chunk, chunks, begin);
    atomic_store (&pool->busy, false);
  }
  if (!shared) {
    atomic_size_t next = 0;
    work (pool, func, data, n, chunk, &next, 0);
  }
  atomic_fetch_sub (&pool->callers, 1);
}
