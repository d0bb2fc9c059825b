/* Loops of multiplications of x86, SSE2 to AVX-512 with BF16. Each is one block of assembly: in C the compiler would move sums to the stack
 * or, seeing that a second run gives the same, leave it out. Sums are as many as registers allow, so that none waits for another.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-peak-internal.h"

#if defined(__x86_64__)

/* Reads as two small bf16, as one small float and as bytes of both signs: nothing that is slow or saves power. */
#define PATTERN 0x3f813f81u

/* Only a compiler that has these registers may keep something in them, and only then may they be named. */
#ifdef __AVX512F__
#define MORE_REGISTERS                                                                                                 \
  , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27",        \
    "xmm28", "xmm29", "xmm30", "xmm31"
#else
#define MORE_REGISTERS
#endif

#define SUMS_8 "0,1,2,3,4,5,6,7"
#define SUMS_12 "0,1,2,3,4,5,6,7,8,9,10,11"
#define SUMS_24 "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23"

/* The body stands four times in the loop, for each sum \i. */
#define LOOP(name, sums, setup, zero, body, end)                                                                       \
  static void name (uint64_t rounds)                                                                                   \
  {                                                                                                                    \
    if (rounds == 0)                                                                                                   \
      return;                                                                                                          \
    __asm__ volatile (setup "\n"                                                                                       \
                            ".irp i," sums "\n" zero "\n.endr\n"                                                       \
                            ".p2align 5\n"                                                                             \
                            "1:\n"                                                                                     \
                            ".rept 4\n"                                                                                \
                            ".irp i," sums "\n" body "\n.endr\n"                                                       \
                            ".endr\n"                                                                                  \
                            "dec %0\n"                                                                                 \
                            "jnz 1b\n" end                                                                             \
                      : "+r"(rounds)                                                                                   \
                      : "r"(PATTERN)                                                                                   \
                      : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", \
                        "xmm11", "xmm12", "xmm13", "xmm14", "xmm15" MORE_REGISTERS);                                   \
  }

/* Two operands that never change, and where products lie for a moment are 12 to 15 and 24 to 31. */
#define SETUP_SSE "movd %1, %%xmm15\npshufd $0, %%xmm15, %%xmm15\nmovaps %%xmm15, %%xmm14"
#define SETUP_YMM "vmovd %1, %%xmm15\nvpbroadcastd %%xmm15, %%ymm15\nvmovaps %%ymm15, %%ymm14"
#define SETUP_ZMM "vpbroadcastd %1, %%zmm31\nvmovaps %%zmm31, %%zmm30"
#define ZERO_SSE "xorps %%xmm\\i, %%xmm\\i"
#define ZERO_YMM "vxorps %%ymm\\i, %%ymm\\i, %%ymm\\i"
#define ZERO_ZMM "vpxord %%zmm\\i, %%zmm\\i, %%zmm\\i"

/* Without FMA a product needs a register of its own. */
LOOP (
  f32_sse2, SUMS_8, SETUP_SSE, ZERO_SSE, "movaps %%xmm15, %%xmm12\nmulps %%xmm14, %%xmm12\naddps %%xmm12, %%xmm\\i", "")
LOOP (int8_sse2,
      SUMS_8,
      SETUP_SSE,
      ZERO_SSE,
      "movaps %%xmm15, %%xmm12\npmaddwd %%xmm14, %%xmm12\npaddd %%xmm12, %%xmm\\i",
      "")

LOOP (f32_avx2, SUMS_12, SETUP_YMM, ZERO_YMM, "vfmadd231ps %%ymm14, %%ymm15, %%ymm\\i", "vzeroupper")
/* Four products of bytes to a sum: to pairs in 16 bits, to 32 bits, added. */
LOOP (int8_avx2,
      SUMS_8,
      SETUP_YMM,
      ZERO_YMM,
      "vpmaddubsw %%ymm14, %%ymm15, %%ymm12\nvpmaddwd %%ymm14, %%ymm12, %%ymm13\nvpaddd %%ymm13, %%ymm\\i, %%ymm\\i",
      "vzeroupper")
LOOP (int8_avx_vnni, SUMS_12, SETUP_YMM, ZERO_YMM, "%{vex%} vpdpbusd %%ymm14, %%ymm15, %%ymm\\i", "vzeroupper")

LOOP (f32_avx512, SUMS_24, SETUP_ZMM, ZERO_ZMM, "vfmadd231ps %%zmm30, %%zmm31, %%zmm\\i", "vzeroupper")
LOOP (int8_avx512,
      SUMS_12,
      SETUP_ZMM,
      ZERO_ZMM,
      "vpmaddubsw %%zmm30, %%zmm31, %%zmm28\nvpmaddwd %%zmm30, %%zmm28, %%zmm29\nvpaddd %%zmm29, %%zmm\\i, %%zmm\\i",
      "vzeroupper")
LOOP (int8_avx512_vnni, SUMS_24, SETUP_ZMM, ZERO_ZMM, "vpdpbusd %%zmm30, %%zmm31, %%zmm\\i", "vzeroupper")
LOOP (int8_avx512_vnni_ymm, SUMS_24, SETUP_ZMM, ZERO_ZMM, "vpdpbusd %%ymm30, %%ymm31, %%ymm\\i", "vzeroupper")
LOOP (bf16_avx512, SUMS_24, SETUP_ZMM, ZERO_ZMM, "vdpbf16ps %%zmm30, %%zmm31, %%zmm\\i", "vzeroupper")

/* Multiplications and additions of a round: lanes, products a lane, sums, repetitions. */
#define OPERATIONS(bits, products, sums) (2u * (bits) / 32 * (products) * (sums) * 4)
#define AVX512 (OX_CPU_AVX2 | OX_CPU_AVX512)

const OxPeak ox_peaks_x86[] = {
  { "mulps addps xmm", OX_PEAK_F32, 0, OPERATIONS (128, 1, 8), f32_sse2, NULL },
  { "pmaddwd paddd xmm", OX_PEAK_INT8, 0, OPERATIONS (128, 2, 8), int8_sse2, NULL },
  { "vfmadd231ps ymm", OX_PEAK_F32, OX_CPU_AVX2, OPERATIONS (256, 1, 12), f32_avx2, NULL },
  { "vpmaddubsw vpmaddwd vpaddd ymm", OX_PEAK_INT8, OX_CPU_AVX2, OPERATIONS (256, 4, 8), int8_avx2, NULL },
  { "vpdpbusd ymm (VEX)", OX_PEAK_INT8, OX_CPU_AVX2 | OX_CPU_AVX_VNNI, OPERATIONS (256, 4, 12), int8_avx_vnni, NULL },
  { "vfmadd231ps zmm", OX_PEAK_F32, AVX512, OPERATIONS (512, 1, 24), f32_avx512, NULL },
  { "vpmaddubsw vpmaddwd vpaddd zmm", OX_PEAK_INT8, AVX512, OPERATIONS (512, 4, 12), int8_avx512, NULL },
  { "vpdpbusd ymm", OX_PEAK_INT8, AVX512 | OX_CPU_AVX512_VNNI, OPERATIONS (256, 4, 24), int8_avx512_vnni_ymm, NULL },
  { "vpdpbusd zmm", OX_PEAK_INT8, AVX512 | OX_CPU_AVX512_VNNI, OPERATIONS (512, 4, 24), int8_avx512_vnni, NULL },
  { "vdpbf16ps zmm", OX_PEAK_BF16, AVX512 | OX_CPU_AVX512_BF16, OPERATIONS (512, 2, 24), bf16_avx512, NULL },
  { NULL },
};

#else

const OxPeak ox_peaks_x86[] = { { NULL } };

#endif
