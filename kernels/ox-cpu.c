/* The processor: its instruction sets, as far as the operating system lets us use them, and its name.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

#include <pthread.h>
#include <string.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__)
#include <stdio.h>
#include <sys/auxv.h>
#endif

/* ---- Instruction sets ---------------------------------------------------------------------------------------------- */

#if defined(__x86_64__) || defined(__i386__)

/* Register states that the operating system saves for us (Intel SDM vol. 1, 13.3). */
#define XCR0_AVX 0x6u     /* xmm, ymm */
#define XCR0_AVX512 0xe6u /* and opmask, zmm */
#define XCR0_AMX 0x60006u /* tile configuration, tile data */

static uint64_t
read_xcr0 (void)
{
  uint32_t low, high;

  __asm__ volatile ("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t) high << 32 | low;
}

/* AMD's cores (Zen 4 and 5) do as many vdpbf16ps in a cycle as float32 FMA, so twice the work. Intel's do one where they do two FMA, and
 * no less to prepare for it: on Sapphire and Emerald Rapids 177 beside 350 GFLOPS were measured. */
static bool
is_amd (void)
{
  uint32_t a, b, c, d;

  return __get_cpuid (0, &a, &b, &c, &d) && b == signature_AMD_ebx && c == signature_AMD_ecx && d == signature_AMD_edx;
}

/* The 8 KiB of tiles are kept only for processes that have asked, once and for all threads (Linux, Documentation/arch/x86/xstate.rst). */
static bool
request_tiles (void)
{
#if defined(__linux__) && defined(SYS_arch_prctl)
  const long request_permission = 0x1023, tile_data = 18; /* ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA */

  return syscall (SYS_arch_prctl, request_permission, tile_data) == 0;
#else
  return false;
#endif
}

static uint32_t
detect_flags (void)
{
  uint32_t a, b, c, d, b7, c7, d7, a71 = 0, max_subleaf, flags = 0;
  uint64_t xcr0;

  if (!__get_cpuid (1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
    return 0;
  xcr0 = read_xcr0 ();
  if ((xcr0 & XCR0_AVX) != XCR0_AVX || !(c & bit_AVX))
    return 0;
  if (!__get_cpuid_count (7, 0, &max_subleaf, &b7, &c7, &d7))
    return 0;
  if (max_subleaf >= 1) {
    uint32_t b71, c71, d71;
    __get_cpuid_count (7, 1, &a71, &b71, &c71, &d71);
  }

  if ((b7 & 1u << 5) && (c & bit_FMA) && (c & bit_F16C))
    flags |= OX_CPU_AVX2;
  if ((flags & OX_CPU_AVX2) && (a71 & 1u << 4))
    flags |= OX_CPU_AVX_VNNI;
  if ((flags & OX_CPU_AVX2) && (xcr0 & XCR0_AVX512) == XCR0_AVX512) {
    const uint32_t f = 1u << 16, dq = 1u << 17, bw = 1u << 30, vl = 1u << 31;
    if ((b7 & (f | dq | bw | vl)) == (f | dq | bw | vl)) {
      flags |= OX_CPU_AVX512;
      if (c7 & 1u << 11)
        flags |= OX_CPU_AVX512_VNNI;
      if (a71 & 1u << 5)
        flags |= OX_CPU_AVX512_BF16 | (is_amd () ? OX_CPU_FAST_BF16 : 0);
    }
  }
  if ((flags & OX_CPU_AVX512_VNNI) && (xcr0 & XCR0_AMX) == XCR0_AMX && (d7 & 1u << 24) && request_tiles ()) {
    if ((d7 & 1u << 25) && ox_amx_int8_works ())
      flags |= OX_CPU_AMX_INT8;
    if ((d7 & 1u << 22) && ox_amx_bf16_works ())
      flags |= OX_CPU_AMX_BF16;
  }
  return flags;
}

static void
detect_name (char name[64])
{
  uint32_t words[12], highest = __get_cpuid_max (0x80000000, NULL);
  char text[49];
  char *begin = text, *end;

  if (highest < 0x80000004)
    return;
  for (uint32_t i = 0; i < 3; i++)
    __get_cpuid (0x80000002 + i, &words[i * 4], &words[i * 4 + 1], &words[i * 4 + 2], &words[i * 4 + 3]);
  memcpy (text, words, 48);
  text[48] = 0;
  while (*begin == ' ')
    begin++;
  end = begin + strlen (begin);
  while (end > begin && end[-1] == ' ')
    *--end = 0;
  if (*begin != 0)
    memcpy (name, begin, (size_t) (end - begin) + 1);
}

#elif defined(__aarch64__)

/* Bits of AT_HWCAP and AT_HWCAP2 (Linux, asm/hwcap.h). */
#define CAP_ASIMD (1ul << 1)
#define CAP_CPUID (1ul << 11)
#define CAP_ASIMDDP (1ul << 20)
#define CAP2_I8MM (1ul << 13)
#define CAP2_BF16 (1ul << 14)

static uint32_t
detect_flags (void)
{
  unsigned long caps = getauxval (AT_HWCAP), caps2 = getauxval (AT_HWCAP2);
  uint32_t flags = 0;

  if (caps & CAP_ASIMD)
    flags |= OX_CPU_NEON;
  if (caps & CAP_ASIMDDP)
    flags |= OX_CPU_DOTPROD;
  if (caps2 & CAP2_I8MM)
    flags |= OX_CPU_I8MM;
  if (caps2 & CAP2_BF16)
    flags |= OX_CPU_ARM_BF16;
  return flags;
}

/* The cores that people have, by the implementer and the part number of MIDR_EL1. */
static const struct {
  uint16_t implementer, part;
  const char *name;
} cores[] = {
  { 0x41, 0xd03, "Arm Cortex-A53" },       { 0x41, 0xd04, "Arm Cortex-A35" },   { 0x41, 0xd05, "Arm Cortex-A55" },
  { 0x41, 0xd07, "Arm Cortex-A57" },       { 0x41, 0xd08, "Arm Cortex-A72" },   { 0x41, 0xd09, "Arm Cortex-A73" },
  { 0x41, 0xd0a, "Arm Cortex-A75" },       { 0x41, 0xd0b, "Arm Cortex-A76" },   { 0x41, 0xd0c, "Arm Neoverse-N1" },
  { 0x41, 0xd0d, "Arm Cortex-A77" },       { 0x41, 0xd0e, "Arm Cortex-A76AE" }, { 0x41, 0xd40, "Arm Neoverse-V1" },
  { 0x41, 0xd41, "Arm Cortex-A78" },       { 0x41, 0xd42, "Arm Cortex-A78AE" }, { 0x41, 0xd44, "Arm Cortex-X1" },
  { 0x41, 0xd46, "Arm Cortex-A510" },      { 0x41, 0xd47, "Arm Cortex-A710" },  { 0x41, 0xd48, "Arm Cortex-X2" },
  { 0x41, 0xd49, "Arm Neoverse-N2" },      { 0x41, 0xd4b, "Arm Cortex-A78C" },  { 0x41, 0xd4c, "Arm Cortex-X1C" },
  { 0x41, 0xd4d, "Arm Cortex-A715" },      { 0x41, 0xd4e, "Arm Cortex-X3" },    { 0x41, 0xd4f, "Arm Neoverse-V2" },
  { 0x41, 0xd80, "Arm Cortex-A520" },      { 0x41, 0xd81, "Arm Cortex-A720" },  { 0x41, 0xd82, "Arm Cortex-X4" },
  { 0x41, 0xd84, "Arm Neoverse-V3" },      { 0x41, 0xd85, "Arm Cortex-X925" },  { 0x41, 0xd87, "Arm Cortex-A725" },
  { 0x41, 0xd8e, "Arm Neoverse-N3" },      { 0x46, 0x001, "Fujitsu A64FX" },    { 0x48, 0xd01, "HiSilicon TSV110" },
  { 0x4e, 0x004, "NVIDIA Carmel" },        { 0x51, 0x001, "Qualcomm Oryon" },   { 0x61, 0x022, "Apple M1 (Icestorm)" },
  { 0x61, 0x023, "Apple M1 (Firestorm)" }, { 0xc0, 0xac3, "Ampere-1" },         { 0xc0, 0xac4, "Ampere-1A" },
};

/* Linux answers for this register where it says so; where cores differ, for the one that we are on. */
static void
detect_name (char name[64])
{
  uint64_t midr;
  unsigned implementer, part;

  if (!(getauxval (AT_HWCAP) & CAP_CPUID))
    return;
  __asm__ ("mrs %0, midr_el1" : "=r"(midr));
  implementer = midr >> 24 & 0xff;
  part = midr >> 4 & 0xfff;
  snprintf (name, 64, "Arm processor, implementer 0x%02x, part 0x%03x", implementer, part);
  for (size_t i = 0; i < sizeof cores / sizeof cores[0]; i++)
    if (cores[i].implementer == implementer && cores[i].part == part)
      snprintf (name, 64, "%s", cores[i].name);
}

#else

static uint32_t
detect_flags (void)
{
  return 0;
}

static void
detect_name (char name[64])
{
}

#endif

static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint32_t cpu_flags;
static char cpu_name[64] = "unknown";

static void
detect (void)
{
  cpu_flags = detect_flags ();
  detect_name (cpu_name);
}

uint32_t
ox_cpu_flags (void)
{
  pthread_once (&once, detect);
  return cpu_flags;
}

const char *
ox_cpu_name (void)
{
  pthread_once (&once, detect);
  return cpu_name;
}
