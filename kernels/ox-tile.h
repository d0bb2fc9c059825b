/* How tiles are compiled: loops over constant bounds are unrolled so that sums live in registers. Under sanitizers, which make
 * every load a branch, they stay loops: the same results from code that compiles in reasonable time.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#define ALWAYS_INLINE __attribute__ ((always_inline)) static inline

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UNROLL
#define UNROLL_ROWS
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define UNROLL
#define UNROLL_ROWS
#endif
#endif

#ifndef UNROLL
#define UNROLL _Pragma ("GCC unroll 8")
#define UNROLL_ROWS _Pragma ("GCC unroll 16")
#endif
