/* Tiles of AMX: registers of up to 16 rows of 64 bytes, and products of two that are added to a third (Intel SDM vol. 1, chapter 18). As
 * assembly rather than intrinsics: gcc's read only 8 bytes of a configuration as far as the optimiser knows, and name no memory at all when
 * they load and store.
 *
 * Tiles are the state of a thread. A kernel configures them when it is called and releases them before it returns: nothing is left for the
 * operating system to save. The process must have asked for permission before (ox-cpu.c).
 *
 * With OX_AMX_EMULATED all this, and the vectors that go with it, is plain C: the same kernels can be tested on any processor.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define OX_TILE_ROWS 16
#define OX_TILE_BYTES 64 /* a row */

/* What ldtilecfg reads. */
typedef struct {
  uint8_t palette; /* 1 */
  uint8_t start_row, reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
} OxTileConfig;

_Static_assert (sizeof (OxTileConfig) == 64, "tile configuration");

#ifdef OX_AMX_EMULATED

#include "ox-amx-emulated.h"

#define OX_AMX_NAME(NAME) NAME##_emulated

#else

#include "ox-simd-avx512.h"

#define OX_AMX_NAME(NAME) NAME

/* All tiles become zero. */
#define OX_TILE_CONFIGURE(CONFIG) __asm__ volatile ("ldtilecfg %0" : : "m"(*(CONFIG)) : "memory")
#define OX_TILE_RELEASE() __asm__ volatile ("tilerelease" : : : "memory")
#define OX_TILE_ZERO(T) __asm__ volatile ("tilezero %%tmm" #T : : : "memory")
/* Rows @STRIDE bytes apart. */
#define OX_TILE_LOAD(T, P, STRIDE)                                                                                     \
  __asm__ volatile ("tileloadd (%0,%1,1), %%tmm" #T : : "r"(P), "r"((size_t) (STRIDE)) : "memory")
#define OX_TILE_STORE(T, P, STRIDE)                                                                                    \
  __asm__ volatile ("tilestored %%tmm" #T ", (%0,%1,1)" : : "r"(P), "r"((size_t) (STRIDE)) : "memory")
/* C[i][j] += Σ_k Σ_b A[i][4·k + b] · B[k][4·j + b], both of signed bytes, in int32. */
#define OX_TILE_DOT_S8(C, A, B) __asm__ volatile ("tdpbssd %%tmm" #B ", %%tmm" #A ", %%tmm" #C : : : "memory")
/* C[i][j] += Σ_k A[i][2·k] · B[k][2·j] + Σ_k A[i][2·k + 1] · B[k][2·j + 1]; see ox_emulated_dot_bf16() for what is rounded. */
#define OX_TILE_DOT_BF16(C, A, B) __asm__ volatile ("tdpbf16ps %%tmm" #B ", %%tmm" #A ", %%tmm" #C : : : "memory")

static inline VF
vf_load_i32 (const int32_t *p)
{
  return _mm512_cvtepi32_ps (_mm512_loadu_si512 (p));
}

#endif
