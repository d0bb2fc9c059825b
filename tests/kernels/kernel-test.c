/* What the kernel tests share.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "kernel-test.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ox-blocks.h"

const uint32_t kernel_types[] = {
  OX_TYPE_F32,  OX_TYPE_F16,  OX_TYPE_BF16, OX_TYPE_Q4_0, OX_TYPE_Q4_1, OX_TYPE_Q5_0,   OX_TYPE_Q5_1,   OX_TYPE_Q8_0,
  OX_TYPE_Q2_K, OX_TYPE_Q3_K, OX_TYPE_Q4_K, OX_TYPE_Q5_K, OX_TYPE_Q6_K, OX_TYPE_IQ4_NL, OX_TYPE_IQ4_XS,
};
const size_t kernel_n_types = G_N_ELEMENTS (kernel_types);

const char *const kernel_input_names[N_INPUTS] = { "normal", "zero", "huge", "subnormal", "extreme" };

const KernelLevel *
kernel_levels (size_t *n)
{
  static KernelLevel levels[16];
  static size_t n_levels = 0;

  if (n_levels > 0) {
    *n = n_levels;
    return levels;
  }
  while (n_levels < G_N_ELEMENTS (levels)) {
    KernelLevel *level = &levels[n_levels];
    level->name = ox_cpu_level (n_levels, &level->mask);
    if (level->name == NULL)
      break;
    ox_kernels_init (&level->kernels, level->mask);
    n_levels++;
  }
  /* Of several processors that are emulated, each tests what is its own. */
  if (n_levels > 2 && g_strcmp0 (g_getenv ("OX_TEST_LEVELS"), "best") == 0) {
    levels[1] = levels[n_levels - 1];
    n_levels = 2;
  }
  *n = n_levels;
  return levels;
}

gboolean
kernel_quick (void)
{
  return g_getenv ("OX_TEST_QUICK") != NULL;
}

/* ---- Guarded buffers ---------------------------------------------------------------------------------------------------- */

#define CANARY 0xa5

typedef struct {
  void *map;
  size_t map_bytes, size;
} Guard;

static GHashTable *guards;

static size_t
writable_bytes (const Guard *guard)
{
  return guard->map_bytes - (size_t) sysconf (_SC_PAGESIZE);
}

void *
guarded_new (size_t size, size_t alignment)
{
  size_t page = (size_t) sysconf (_SC_PAGESIZE);
  Guard *guard = g_new (Guard, 1);
  uint8_t *data;

  guard->size = size;
  guard->map_bytes = (size + 256 + page - 1) / page * page + page;
  guard->map = mmap (NULL, guard->map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  g_assert_true (guard->map != MAP_FAILED);
  memset (guard->map, CANARY, writable_bytes (guard));
  g_assert_cmpint (mprotect ((uint8_t *) guard->map + writable_bytes (guard), page, PROT_NONE), ==, 0);
  data = (uint8_t *) guard->map + (writable_bytes (guard) - size) / alignment * alignment;
  if (guards == NULL)
    guards = g_hash_table_new_full (NULL, NULL, NULL, g_free);
  g_hash_table_insert (guards, data, guard);
  return data;
}

void
guarded_free (void *data)
{
  Guard *guard = g_hash_table_lookup (guards, data);
  const uint8_t *begin = guard->map, *end = begin + writable_bytes (guard);

  for (const uint8_t *p = begin; p < (uint8_t *) data; p++)
    g_assert_cmphex (*p, ==, CANARY);
  for (const uint8_t *p = (uint8_t *) data + guard->size; p < end; p++)
    g_assert_cmphex (*p, ==, CANARY);
  munmap (guard->map, guard->map_bytes);
  g_hash_table_remove (guards, data);
  if (g_hash_table_size (guards) == 0)
    g_clear_pointer (&guards, g_hash_table_unref);
}

/* ---- Random input --------------------------------------------------------------------------------------------------------- */

uint32_t
kernel_random (KernelRandom *random)
{
  random->state ^= random->state >> 12;
  random->state ^= random->state << 25;
  random->state ^= random->state >> 27;
  return (uint32_t) (random->state * 0x2545f4914f6cdd1du >> 32);
}

float
kernel_random_float (KernelRandom *random)
{
  return (float) ((int32_t) kernel_random (random) >> 8) * 0x1p-23f;
}

float
kernel_random_normal (KernelRandom *random)
{
  float sum = 0;

  for (unsigned i = 0; i < 12; i++)
    sum += kernel_random_float (random);
  return sum * 0.5f;
}

void
kernel_fill_floats (KernelRandom *random, KernelInput input, float *dst, size_t n)
{
  for (size_t i = 0; i < n; i++)
    switch (input) {
    case INPUT_ZERO:
      dst[i] = 0;
      break;
    case INPUT_HUGE:
      dst[i] = kernel_random_float (random) * 1e18f;
      break;
    case INPUT_SUBNORMAL:
      dst[i] = kernel_random_float (random) * 1e-20f;
      break;
    case INPUT_EXTREME:
      dst[i] = kernel_random (random) & 1 ? 1 : -1;
      break;
    default:
      dst[i] = kernel_random_normal (random);
    }
}

/* A half float for a scale or a minimum. */
static void
put_scale (KernelRandom *random, KernelInput input, OxU16 *dst)
{
  uint16_t bits;

  switch (input) {
  case INPUT_ZERO:
    bits = 0;
    break;
  case INPUT_HUGE:
    bits = 0x7bff; /* 65504 */
    break;
  case INPUT_SUBNORMAL:
    bits = (uint16_t) (kernel_random (random) & 0x3ff);
    break;
  default:
    bits = ox_f32_to_f16 (0.001f + 0.01f * fabsf (kernel_random_float (random)));
  }
  if (kernel_random (random) & 1)
    bits |= 0x8000;
  *dst = (OxU16) { { (uint8_t) bits, (uint8_t) (bits >> 8) } };
}

/* Where the half floats of a block are. */
static unsigned
scale_offsets (uint32_t type, unsigned offsets[2])
{
  switch (type) {
  case OX_TYPE_Q4_1:
  case OX_TYPE_Q5_1:
  case OX_TYPE_Q4_K:
  case OX_TYPE_Q5_K:
    offsets[0] = 0;
    offsets[1] = 2;
    return 2;
  case OX_TYPE_Q2_K:
    offsets[0] = offsetof (OxBlockQ2_K, d);
    offsets[1] = offsetof (OxBlockQ2_K, dmin);
    return 2;
  case OX_TYPE_Q3_K:
    offsets[0] = offsetof (OxBlockQ3_K, d);
    return 1;
  case OX_TYPE_Q6_K:
    offsets[0] = offsetof (OxBlockQ6_K, d);
    return 1;
  default:
    offsets[0] = 0;
    return 1;
  }
}

void
kernel_fill_weights (KernelRandom *random, uint32_t type, KernelInput input, void *dst, size_t n)
{
  const OxTypeInfo *info = ox_type_info (type);
  uint8_t *bytes = dst;

  if (type == OX_TYPE_F32) {
    kernel_fill_floats (random, input, dst, n);
    return;
  }
  if (type == OX_TYPE_F16 || type == OX_TYPE_BF16) {
    for (size_t i = 0; i < n; i++) {
      float value;
      uint16_t half;
      kernel_fill_floats (random, input, &value, 1);
      if (type == OX_TYPE_F16)
        value = fmaxf (fminf (value, 65504), -65504);
      half = type == OX_TYPE_F16 ? ox_f32_to_f16 (value) : (uint16_t) (ox_f32_to_bits (value) >> 16);
      memcpy (bytes + 2 * i, &half, 2);
    }
    return;
  }
  for (size_t b = 0; b < n / info->block_elements; b++, bytes += info->block_bytes) {
    unsigned offsets[2], n_scales = scale_offsets (type, offsets);
    uint8_t extreme = kernel_random (random) & 1 ? 0xff : 0;

    for (unsigned i = 0; i < info->block_bytes; i++)
      bytes[i] = input == INPUT_EXTREME ? extreme : (uint8_t) (kernel_random (random) >> 24);
    /* The greatest magnitude of a signed byte is -128. */
    if (type == OX_TYPE_Q8_0 && input == INPUT_EXTREME && extreme == 0xff)
      memset (bytes, 0x80, info->block_bytes);
    for (unsigned i = 0; i < n_scales; i++)
      put_scale (random, input, (OxU16 *) (bytes + offsets[i]));
  }
}

/* ---- Tests --------------------------------------------------------------------------------------------------------------- */

void
kernel_check (const char *level, const char *what, size_t n, size_t i, double got, double expected, double bound)
{
  if (!(fabs (got - expected) <= bound))
    g_error ("%s %s of %zu: element %zu is %.9g, expected %.9g ± %.3g", level, what, n, i, got, expected, bound);
}

void
kernel_add_tests (
  const char *group, const KernelLevel *levels, size_t n_levels, const KernelLevelTest *tests, size_t n_tests)
{
  for (size_t l = 0; l < n_levels; l++)
    for (size_t t = 0; t < n_tests; t++) {
      g_autofree char *path = g_strdup_printf ("/%s/%s/%s", group, levels[l].name, tests[t].name);
      g_test_add_data_func (path, &levels[l], tests[t].func);
    }
}
