/* How tiles are compiled: loops over constant bounds are unrolled so that sums live in registers. Under sanitizers, which make
 * every load a branch, they stay loops and one tile serves any number of activation rows: the same results from code that compiles in
 * reasonable time.
 *
 * Tiles of few activation rows wait for memory. What they compute fills the processor's window sooner than the lines asked for are
 * there, so they ask for them ahead of their work, by PREFETCH_BYTES.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define ALWAYS_INLINE __attribute__ ((always_inline)) static inline

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TILES_ARE_LOOPS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define TILES_ARE_LOOPS 1
#endif
#endif

#ifdef TILES_ARE_LOOPS
#define UNROLL
#define UNROLL_ROWS
#else
#define TILES_ARE_LOOPS 0
#define UNROLL _Pragma ("GCC unroll 8")
#define UNROLL_ROWS _Pragma ("GCC unroll 16")
#endif

/* Less leaves memory idle; more is no better and leaves more behind at the end of the rows. */
#define PREFETCH_BYTES 12288
#define LINE_BYTES 64

/* Asks for the lines of the @n bytes that begin @ahead bytes after @p, which may be beyond the end of the weights. */
ALWAYS_INLINE void
prefetch_lines (const uint8_t *p, size_t ahead, const size_t n)
{
  UNROLL_ROWS
  for (size_t i = 0; i < n; i += LINE_BYTES)
    __builtin_prefetch ((const void *) ((uintptr_t) p + ahead + i));
}
