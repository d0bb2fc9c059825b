/* The table of kernels: what is chosen for which processor.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "ox-quantize.h"

/* The kernel of @sets for weights of @type; later sets are for better instruction sets. */
static const OxLinearKernel *
pick (const OxLinearSet *const *sets, size_t n_sets, uint32_t type, OxPrecision precision)
{
  OxPanelKind kind = ox_panel_kind (type);

  if (ox_type_info (type) == NULL)
    return NULL;
  for (size_t i = n_sets; i-- > 0;) {
    const OxLinearSet *set = sets[i];
    if (precision == OX_PRECISION_EXACT && set->exact != NULL)
      return set->exact;
    if (precision == OX_PRECISION_FAST && kind != OX_PANEL_NONE && set->integer != NULL)
      return &set->integer[kind];
    if (precision == OX_PRECISION_FAST && kind == OX_PANEL_NONE && set->floating != NULL)
      return &set->floating[type == OX_TYPE_F32 ? 0 : type == OX_TYPE_F16 ? 1 : 2];
  }
  return NULL;
}

static const OxLinearKernel *
linear_c (uint32_t type, OxPrecision precision, size_t rows, size_t cols)
{
  static const OxLinearSet *const sets[] = { &ox_linear_c };
  return pick (sets, 1, type, precision);
}

#if defined(__x86_64__)

static const OxLinearKernel *
linear_avx2 (uint32_t type, OxPrecision precision, size_t rows, size_t cols)
{
  static const OxLinearSet *const sets[] = { &ox_linear_c, &ox_linear_avx2, &ox_panel_avx2 };
  return pick (sets, 3, type, precision);
}

static const OxLinearKernel *
linear_avx_vnni (uint32_t type, OxPrecision precision, size_t rows, size_t cols)
{
  static const OxLinearSet *const sets[] = { &ox_linear_c, &ox_linear_avx2, &ox_panel_avx2, &ox_panel_avx_vnni };
  return pick (sets, 4, type, precision);
}

static const OxLinearKernel *
linear_avx512 (uint32_t type, OxPrecision precision, size_t rows, size_t cols)
{
  static const OxLinearSet *const sets[] = { &ox_linear_c, &ox_linear_avx2, &ox_panel_avx2, &ox_linear_avx512 };
  return pick (sets, 4, type, precision);
}

static const OxLinearKernel *
linear_avx512_vnni (uint32_t type, OxPrecision precision, size_t rows, size_t cols)
{
  static const OxLinearSet *const sets[] = { &ox_linear_c, &ox_linear_avx2, &ox_panel_avx2, &ox_linear_avx512,
                                             &ox_panel_avx512_vnni };
  return pick (sets, 5, type, precision);
}

#endif

void
ox_kernels_init (OxKernels *table, uint32_t mask)
{
#if defined(__x86_64__)
  uint32_t flags = ox_cpu_flags () & mask;
#endif

  *table = (OxKernels) { .flags = 0, .linear = linear_c };
  ox_reference_init (table);

#if defined(__x86_64__)
  if (!(flags & OX_CPU_AVX2))
    return;
  table->flags = OX_CPU_AVX2;
  table->linear = linear_avx2;
  ox_vector_init_avx2 (table);
  table->attention = &ox_attention_avx2;
  if (flags & OX_CPU_AVX_VNNI) {
    table->flags |= OX_CPU_AVX_VNNI;
    table->linear = linear_avx_vnni;
  }
  if (flags & OX_CPU_AVX512) {
    table->flags |= OX_CPU_AVX512;
    table->linear = linear_avx512;
    ox_vector_init_avx512 (table);
    table->attention = &ox_attention_avx512;
    if (flags & OX_CPU_AVX512_VNNI) {
      table->flags |= OX_CPU_AVX512_VNNI;
      table->linear = linear_avx512_vnni;
    }
  }
#endif
}

/* ---- The process-wide table ------------------------------------------------------------------------------------------ */

static const struct {
  const char *name;
  uint32_t flags;
} levels[] = {
  /* A level allows everything below it too. */
  { "avx512vnni", OX_CPU_AVX2 | OX_CPU_AVX_VNNI | OX_CPU_AVX512 | OX_CPU_AVX512_VNNI },
  { "avx512", OX_CPU_AVX2 | OX_CPU_AVX512 },
  { "avxvnni", OX_CPU_AVX2 | OX_CPU_AVX_VNNI },
  { "avx2", OX_CPU_AVX2 },
  { "c", 0 },
};

const char *
ox_cpu_level_name (uint32_t flags)
{
  return flags & OX_CPU_AVX512_VNNI ? "avx512vnni"
         : flags & OX_CPU_AVX512    ? "avx512"
         : flags & OX_CPU_AVX_VNNI  ? "avxvnni"
         : flags & OX_CPU_AVX2      ? "avx2"
         : flags & OX_CPU_I8MM      ? "i8mm"
         : flags & OX_CPU_DOTPROD   ? "dotprod"
         : flags & OX_CPU_NEON      ? "neon"
                                    : "c";
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static OxKernels process_table;

static void
init_process_table (void)
{
  const char *name = getenv ("OXINFER_CPU");
  uint32_t mask = OX_CPU_ALL;

  for (size_t i = 0; name != NULL && i < sizeof levels / sizeof levels[0]; i++)
    if (strcmp (name, levels[i].name) == 0)
      mask = levels[i].flags;
  ox_kernels_init (&process_table, mask);
}

const OxKernels *
ox_kernels (void)
{
  pthread_once (&once, init_process_table);
  return &process_table;
}

size_t
ox_activation_row_bytes (OxActivation activation, size_t n)
{
  return activation == OX_ACTIVATION_Q8 ? n / 32 * sizeof (OxBlockQ8) : n * sizeof (float);
}
