/* Measures how fast memory is read: the limit of decoding, which reads every weight for each token.
 *
 * Only reads count (a copy also measures writes), over a buffer that caches do not help with. The loops only load: what is loaded is not
 * looked at, so nothing waits for an addition. What counts is how many lines are asked for at once, and which loop is best at
 * that is for each machine to say; on a Zen 5, four streams are 2 % better than one, and large pages 5 % better than small ones.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-peak-internal.h"

#include <sys/mman.h>
#include <unistd.h>

#define MIN_BYTES ((size_t) 256 << 20)
#define CACHES 8
#define LARGE_PAGE ((size_t) 2 << 20)
/* What a loop reads at a time, so the buffer of each thread is a whole number of them. */
#define GROUP ((size_t) 4 << 20)
#define NEAR ((size_t) 64 << 10)
#define FAR ((size_t) 1 << 20)

/* ---- Loops ------------------------------------------------------------------------------------------------------ */

typedef struct {
  uint32_t flags; /* OxCpuFlags */
  void (*read) (const uint8_t *data, size_t bytes);
} Way;

#if defined(__x86_64__)

/* One stream, 512 bytes a round. @line: how a cache line at \i is read. */
#define ONE_STREAM(name, line)                                                                                         \
  static void name (const uint8_t *data, size_t bytes)                                                                 \
  {                                                                                                                    \
    __asm__ volatile ("1:\n"                                                                                           \
                      ".irp i,0,64,128,192,256,320,384,448\n" line ".endr\n"                                           \
                      "add $512, %0\n"                                                                                 \
                      "sub $512, %1\n"                                                                                 \
                      "jnz 1b"                                                                                         \
                      : "+r"(data), "+r"(bytes)                                                                        \
                      :                                                                                                \
                      : "cc", "memory", "xmm0", "xmm1");                                                               \
  }

/* Four streams, @distance bytes apart. @line reads a line of each at (%0), (%0,%2), (%0,%2,2) and (%0,%3). */
#define FOUR_STREAMS(name, distance, line)                                                                             \
  static void name (const uint8_t *data, size_t bytes)                                                                 \
  {                                                                                                                    \
    for (const uint8_t *end = data + bytes; data < end; data += 4 * (distance)) {                                      \
      const uint8_t *first = data;                                                                                     \
      size_t left = (distance);                                                                                        \
      __asm__ volatile ("1:\n"                                                                                         \
                        ".irp i,0,64\n" line ".endr\n"                                                                 \
                        "add $128, %0\n"                                                                               \
                        "sub $128, %1\n"                                                                               \
                        "jnz 1b"                                                                                       \
                        : "+&r"(first), "+&r"(left)                                                                    \
                        : "r"((distance)), "r"(3 * (distance))                                                         \
                        : "cc", "memory", "xmm0", "xmm1");                                                             \
    }                                                                                                                  \
  }

#define XMM "movaps \\i(%0), %%xmm0\nmovaps 16+\\i(%0), %%xmm0\nmovaps 32+\\i(%0), %%xmm0\nmovaps 48+\\i(%0), %%xmm0\n"
#define YMM "vmovaps \\i(%0), %%ymm0\nvmovaps 32+\\i(%0), %%ymm1\n"
#define YMM_OF(base) "vmovaps \\i" base ", %%ymm0\nvmovaps 32+\\i" base ", %%ymm1\n"
#define YMM_4 YMM_OF ("(%0)") YMM_OF ("(%0,%2)") YMM_OF ("(%0,%2,2)") YMM_OF ("(%0,%3)")
#define ZMM "vmovaps \\i(%0), %%zmm0\n"
#define ZMM_4                                                                                                          \
  "vmovaps \\i(%0), %%zmm0\nvmovaps \\i(%0,%2), %%zmm0\nvmovaps \\i(%0,%2,2), %%zmm0\nvmovaps \\i(%0,%3), %%zmm0\n"
#define AHEAD "prefetcht0 12288+\\i(%0)\n"

ONE_STREAM (xmm, XMM)
ONE_STREAM (xmm_ahead, AHEAD XMM)
ONE_STREAM (ymm, YMM)
ONE_STREAM (ymm_ahead, AHEAD YMM)
FOUR_STREAMS (ymm_4, NEAR, YMM_4)
ONE_STREAM (zmm, ZMM)
ONE_STREAM (zmm_ahead, AHEAD ZMM)
FOUR_STREAMS (zmm_4_near, NEAR, ZMM_4)
FOUR_STREAMS (zmm_4_far, FAR, ZMM_4)

static const Way ways[] = {
  { 0, xmm },
  { 0, xmm_ahead },
  { OX_CPU_AVX2, ymm },
  { OX_CPU_AVX2, ymm_ahead },
  { OX_CPU_AVX2, ymm_4 },
  { OX_CPU_AVX2 | OX_CPU_AVX512, zmm },
  { OX_CPU_AVX2 | OX_CPU_AVX512, zmm_ahead },
  { OX_CPU_AVX2 | OX_CPU_AVX512, zmm_4_near },
  { OX_CPU_AVX2 | OX_CPU_AVX512, zmm_4_far },
};

#elif defined(__aarch64__)

#define LOOP(name, ahead)                                                                                              \
  static void name (const uint8_t *data, size_t bytes)                                                                 \
  {                                                                                                                    \
    __asm__ volatile ("1:\n" ahead "ldp q0, q1, [%0]\n"                                                                \
                      "ldp q2, q3, [%0, #32]\n"                                                                        \
                      "ldp q0, q1, [%0, #64]\n"                                                                        \
                      "ldp q2, q3, [%0, #96]\n"                                                                        \
                      "add %0, %0, #128\n"                                                                             \
                      "subs %1, %1, #128\n"                                                                            \
                      "b.ne 1b"                                                                                        \
                      : "+r"(data), "+r"(bytes)                                                                        \
                      :                                                                                                \
                      : "cc", "memory", "v0", "v1", "v2", "v3");                                                       \
  }

LOOP (one, "")
LOOP (one_ahead, "prfm pldl1keep, [%0, #4096]\nprfm pldl1keep, [%0, #4160]\n")

static const Way ways[] = { { 0, one }, { 0, one_ahead } };

#else

static void
one (const uint8_t *data, size_t bytes)
{
  const volatile uint64_t *words = (const volatile uint64_t *) (const void *) data;

  for (size_t i = 0; i < bytes / sizeof *words; i += 4) {
    (void) words[i];
    (void) words[i + 1];
    (void) words[i + 2];
    (void) words[i + 3];
  }
}

static const Way ways[] = { { 0, one } };

#endif

/* ---- The buffer ------------------------------------------------------------------------------------------------- */

size_t
ox_read_probe_bytes (void)
{
  long cache = -1;
  size_t bytes;

#ifdef _SC_LEVEL3_CACHE_SIZE
  cache = sysconf (_SC_LEVEL3_CACHE_SIZE);
#endif
  bytes = cache > 0 ? CACHES * (size_t) cache : 0;
  return bytes > MIN_BYTES ? bytes : MIN_BYTES;
}

static size_t
part_bytes (const OxReadProbe *probe)
{
  return probe->bytes / probe->threads;
}

static void
fill_part (void *data, unsigned thread)
{
  const OxReadProbe *probe = data;
  size_t n = part_bytes (probe) / sizeof (uint64_t);
  uint64_t *words = (uint64_t *) (void *) (probe->data + thread * part_bytes (probe));

  for (size_t i = 0; i < n; i++)
    words[i] = (i + thread * n + 1) * 0x9e3779b97f4a7c15u;
}

bool
ox_read_probe_init (OxReadProbe *probe, size_t bytes, unsigned threads)
{
  size_t part, whole;
  void *memory;

  *probe = (OxReadProbe) { .threads = threads };
  if (threads < 1 || threads > OX_PEAK_MAX_THREADS)
    return false;
  part = bytes / threads / GROUP * GROUP;
  if (part < GROUP)
    part = GROUP;
  if (__builtin_mul_overflow (part, (size_t) threads, &whole) || whole > SIZE_MAX - LARGE_PAGE)
    return false;
  memory = mmap (NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return false;
#ifdef MADV_HUGEPAGE
  madvise (memory, whole, MADV_HUGEPAGE);
#endif
  probe->data = memory;
  probe->bytes = whole;
  if (ox_peak_together (fill_part, probe, threads) == 0) {
    ox_read_probe_clear (probe);
    return false;
  }
  return true;
}

void
ox_read_probe_clear (OxReadProbe *probe)
{
  if (probe->data != NULL)
    munmap (probe->data, probe->bytes);
  *probe = (OxReadProbe) { .threads = probe->threads };
}

/* ---- Passes ----------------------------------------------------------------------------------------------------- */

typedef struct {
  const OxReadProbe *probe;
  const Way *way;
} ReadJob;

static void
read_part (void *data, unsigned thread)
{
  const ReadJob *job = data;

  job->way->read (job->probe->data + thread * part_bytes (job->probe), part_bytes (job->probe));
}

size_t
ox_read_probe_ways (void)
{
  return sizeof ways / sizeof ways[0];
}

double
ox_read_probe_pass (const OxReadProbe *probe, size_t way)
{
  ReadJob job = { probe, &ways[way] };
  uint64_t ns;

  if (probe->data == NULL || way >= ox_read_probe_ways () || (ways[way].flags & ~ox_cpu_flags ()) != 0)
    return 0;
  ns = ox_peak_together (read_part, &job, probe->threads);
  return ns > 0 ? (double) probe->bytes / ((double) ns * 1e-9) : 0;
}

double
ox_read_probe_best (const OxReadProbe *probe, unsigned passes, double *mean)
{
  double best = 0, best_mean = 0;

  for (size_t way = 0; way < ox_read_probe_ways (); way++) {
    double way_best = 0, sum = 0;

    for (unsigned i = 0; i < passes; i++) {
      double speed = ox_read_probe_pass (probe, way);

      way_best = speed > way_best ? speed : way_best;
      sum += speed;
    }
    if (way_best > best) {
      best = way_best;
      best_mean = sum / passes;
    }
  }
  if (mean != NULL)
    *mean = best_mean;
  return best;
}
