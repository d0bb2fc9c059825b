/* Loops of tile multiplications of AMX: six sums, two operands, of 16 rows of 64 bytes each.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-peak-internal.h"

#if defined(__x86_64__) && defined(__linux__)

#include <sys/syscall.h>
#include <unistd.h>

/* arch/x86/include/uapi/asm/prctl.h; the number of the state of tile data (Intel SDM vol. 1, 13.1) */
#define REQUEST_PERMISSION 0x1023
#define XFEATURE_TILE_DATA 18

/* Tiles are saved only for processes that have asked; asking again does no harm. */
static bool
prepare (void)
{
  return syscall (SYS_arch_prctl, REQUEST_PERMISSION, XFEATURE_TILE_DATA) == 0;
}

typedef struct {
  uint8_t palette, start_row, reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
} __attribute__ ((aligned (64))) TileConfig;

static const TileConfig config = {
  .palette = 1,
  .row_bytes = { 64, 64, 64, 64, 64, 64, 64, 64 },
  .rows = { 16, 16, 16, 16, 16, 16, 16, 16 },
};

/* A tile of bytes of both signs, which are small bf16, too. */
static const uint32_t pattern[16] = {
  0x3f813f81, 0x3f813f82, 0x3f813f83, 0x3f813f84, 0x3f813f85, 0x3f813f86, 0x3f813f87, 0x3f813f88,
  0xbf813f81, 0xbf813f82, 0xbf813f83, 0xbf813f84, 0xbf813f85, 0xbf813f86, 0xbf813f87, 0xbf813f88,
};

#define LOOP(name, instruction)                                                                                        \
  static void name (uint64_t rounds)                                                                                   \
  {                                                                                                                    \
    if (rounds == 0)                                                                                                   \
      return;                                                                                                          \
    __asm__ volatile ("ldtilecfg %1\n"                                                                                 \
                      "tileloadd (%2,%3,1), %%tmm6\n"                                                                  \
                      "tileloadd (%2,%3,1), %%tmm7\n"                                                                  \
                      ".irp i,0,1,2,3,4,5\ntilezero %%tmm\\i\n.endr\n"                                                 \
                      "1:\n"                                                                                           \
                      ".irp i,0,1,2,3,4,5\n" instruction " %%tmm7, %%tmm6, %%tmm\\i\n.endr\n"                          \
                      "dec %0\n"                                                                                       \
                      "jnz 1b\n"                                                                                       \
                      "tilerelease"                                                                                    \
                      : "+r"(rounds)                                                                                   \
                      : "m"(config), "r"(pattern), "r"((uint64_t) 0)                                                   \
                      : "cc", "memory");                                                                               \
  }

LOOP (int8_amx, "tdpbusd")
LOOP (bf16_amx, "tdpbf16ps")

#define AVX512 (OX_CPU_AVX2 | OX_CPU_AVX512)

const OxPeak ox_peaks_amx[] = {
  { "tdpbusd", OX_PEAK_INT8, AVX512 | OX_CPU_AMX_INT8, 2u * 16 * 16 * 64 * 6, int8_amx, prepare },
  { "tdpbf16ps", OX_PEAK_BF16, AVX512 | OX_CPU_AMX_BF16, 2u * 16 * 16 * 32 * 6, bf16_amx, prepare },
  { NULL },
};

#else

const OxPeak ox_peaks_amx[] = { { NULL } };

#endif
