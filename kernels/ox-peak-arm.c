/* Loops of multiplications of Arm: NEON, dotprod, i8mm and bf16, 24 sums each (see ox-peak-x86.c).
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-peak-internal.h"

#if defined(__aarch64__)

/* Reads as two small bf16, as one small float and as bytes of both signs. */
#define PATTERN 0x3f813f81u

#define SUMS "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23"
#define N_SUMS 24u

#define LOOP(name, extension, body)                                                                                    \
  static void name (uint64_t rounds)                                                                                   \
  {                                                                                                                    \
    if (rounds == 0)                                                                                                   \
      return;                                                                                                          \
    __asm__ volatile (extension "dup v30.4s, %w1\n"                                                                    \
                                "dup v31.4s, %w1\n"                                                                    \
                                ".irp i," SUMS "\nmovi v\\i\\().4s, #0\n.endr\n"                                       \
                                "1:\n"                                                                                 \
                                ".irp i," SUMS "\n" body "\n.endr\n"                                                   \
                                "subs %0, %0, #1\n"                                                                    \
                                "b.ne 1b"                                                                              \
                      : "+r"(rounds)                                                                                   \
                      : "r"(PATTERN)                                                                                   \
                      : "cc", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13",  \
                        "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v28", "v29", "v30",     \
                        "v31");                                                                                        \
  }

LOOP (f32_neon, "", "fmla v\\i\\().4s, v30.4s, v31.4s")
/* 16 products of bytes: two halves to 16 bits, pairs added to sums of 32. */
LOOP (int8_neon, "", "smull v28.8h, v30.8b, v31.8b\nsmlal2 v28.8h, v30.16b, v31.16b\nsadalp v\\i\\().4s, v28.8h")
LOOP (int8_dotprod, ".arch_extension dotprod\n", "sdot v\\i\\().4s, v30.16b, v31.16b")
LOOP (int8_i8mm, ".arch_extension i8mm\n", "smmla v\\i\\().4s, v30.16b, v31.16b")
LOOP (bf16_dot, ".arch_extension bf16\n", "bfdot v\\i\\().4s, v30.8h, v31.8h")
LOOP (bf16_matrix, ".arch_extension bf16\n", "bfmmla v\\i\\().4s, v30.8h, v31.8h")

const OxPeak ox_peaks_arm[] = {
  { "fmla", OX_PEAK_F32, 0, 2 * 4 * N_SUMS, f32_neon, NULL },
  { "smull smlal2 sadalp", OX_PEAK_INT8, 0, 2 * 16 * N_SUMS, int8_neon, NULL },
  { "sdot", OX_PEAK_INT8, OX_CPU_DOTPROD, 2 * 16 * N_SUMS, int8_dotprod, NULL },
  { "smmla", OX_PEAK_INT8, OX_CPU_I8MM, 2 * 32 * N_SUMS, int8_i8mm, NULL },
  { "bfdot", OX_PEAK_BF16, OX_CPU_ARM_BF16, 2 * 8 * N_SUMS, bf16_dot, NULL },
  { "bfmmla", OX_PEAK_BF16, OX_CPU_ARM_BF16, 2 * 16 * N_SUMS, bf16_matrix, NULL },
  { NULL },
};

#else

const OxPeak ox_peaks_arm[] = { { NULL } };

#endif
