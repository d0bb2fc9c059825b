/* The table of kernels: what is chosen for which processor.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "ox-quantize.h"

/* What an instruction set brings. */
typedef struct {
  uint32_t flags; /* all that it needs */
  const OxLinearSet *linear;
  void (*init_vector) (OxKernels *table); /* the rest of the table, or NULL */
} Level;

/* Later ones are better, and replace what they have of their own. */
static const Level levels[] = {
  { 0, &ox_linear_c, ox_reference_init },
#if defined(__x86_64__)
  { OX_CPU_AVX2, &ox_linear_avx2, ox_vector_init_avx2 },
  { OX_CPU_AVX2, &ox_panel_avx2, NULL },
  { OX_CPU_AVX2 | OX_CPU_AVX_VNNI, &ox_panel_avx_vnni, NULL },
  { OX_CPU_AVX2 | OX_CPU_AVX512, &ox_linear_avx512, ox_vector_init_avx512 },
  { OX_CPU_AVX2 | OX_CPU_AVX512, &ox_panel_avx512, NULL },
  { OX_CPU_AVX2 | OX_CPU_AVX512 | OX_CPU_AVX512_VNNI, &ox_panel_avx512_vnni, NULL },
  { OX_CPU_AVX2 | OX_CPU_AVX512 | OX_CPU_AVX512_BF16 | OX_CPU_FAST_BF16, &ox_linear_avx512_bf16,
    ox_attention_init_avx512bf16 },
  { OX_CPU_AVX2 | OX_CPU_AVX512 | OX_CPU_AVX512_VNNI | OX_CPU_AMX_INT8, &ox_panel_amx, NULL },
  { OX_CPU_AVX2 | OX_CPU_AVX512 | OX_CPU_AMX_BF16, &ox_linear_amx, NULL },
#endif
#if defined(__aarch64__)
  { OX_CPU_NEON, &ox_linear_neon, ox_vector_init_neon },
  { OX_CPU_NEON, &ox_panel_neon, NULL },
  { OX_CPU_NEON | OX_CPU_DOTPROD, &ox_panel_dotprod, NULL },
  { OX_CPU_NEON | OX_CPU_DOTPROD | OX_CPU_I8MM, &ox_panel_i8mm, NULL },
  { OX_CPU_NEON | OX_CPU_ARM_BF16, &ox_linear_neon_bf16, ox_attention_init_neon_bf16 },
#endif
};
_Static_assert (sizeof levels / sizeof levels[0] < OX_MAX_LINEAR_SETS, "room for all sets");

void
ox_kernels_init (OxKernels *table, uint32_t mask)
{
  uint32_t flags = ox_cpu_flags () & mask;
  size_t n = 0;

  *table = (OxKernels) { .flags = 0 };
  for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
    if ((flags & levels[i].flags) != levels[i].flags)
      continue;
    table->flags |= levels[i].flags;
    if (levels[i].init_vector != NULL)
      levels[i].init_vector (table);
    memmove (table->linear_sets + 1, table->linear_sets, n++ * sizeof table->linear_sets[0]);
    table->linear_sets[0] = levels[i].linear;
  }
  ox_image_init (table, flags);
}

const OxLinearKernel *
ox_linear_kernel (const OxKernels *table, uint32_t type, OxPrecision precision, size_t rows, size_t cols)
{
  OxPanelKind kind = ox_panel_kind (type);

  if (ox_type_info (type) == NULL)
    return NULL;
  for (const OxLinearSet *const *set = table->linear_sets; *set != NULL; set++) {
    const OxLinearKernel *kernels = precision == OX_PRECISION_EXACT ? (*set)->exact
                                    : kind == OX_PANEL_NONE         ? (*set)->floating
                                                                    : (*set)->integer;
    size_t i = precision == OX_PRECISION_EXACT ? 0
               : kind != OX_PANEL_NONE         ? (size_t) kind
               : type == OX_TYPE_F32           ? 0
               : type == OX_TYPE_F16           ? 1
                                               : 2;

    if (kernels != NULL && kernels[i].matmul != NULL)
      return &kernels[i];
  }
  return NULL;
}

/* ---- The process-wide table ------------------------------------------------------------------------------------------ */

/* What OXINFER_CPU may say. A level allows everything below it too. */
#define X86_VNNI (OX_CPU_AVX2 | OX_CPU_AVX_VNNI | OX_CPU_AVX512 | OX_CPU_AVX512_VNNI | OX_CPU_AVX512_VBMI)
#define X86_BF16 (X86_VNNI | OX_CPU_AVX512_BF16 | OX_CPU_FAST_BF16)
static const struct {
  const char *name;
  uint32_t needs; /* a table with these flags is of this level; the first that fits counts */
  uint32_t mask;
} names[] = {
  { "amx", OX_CPU_AMX_INT8, X86_BF16 | OX_CPU_AMX_INT8 | OX_CPU_AMX_BF16 },
  { "avx512bf16", OX_CPU_AVX512_BF16, X86_BF16 },
  { "avx512vnni", OX_CPU_AVX512_VNNI, X86_VNNI },
  { "avx512", OX_CPU_AVX512, OX_CPU_AVX2 | OX_CPU_AVX512 },
  { "avxvnni", OX_CPU_AVX_VNNI, OX_CPU_AVX2 | OX_CPU_AVX_VNNI },
  { "avx2", OX_CPU_AVX2, OX_CPU_AVX2 },
  { "i8mm", OX_CPU_I8MM, OX_CPU_NEON | OX_CPU_DOTPROD | OX_CPU_I8MM | OX_CPU_ARM_BF16 },
  { "dotprod", OX_CPU_DOTPROD, OX_CPU_NEON | OX_CPU_DOTPROD },
  { "neon", OX_CPU_NEON, OX_CPU_NEON },
  { "c", 0, 0 },
};
#define N_NAMES (sizeof names / sizeof names[0])

const char *
ox_cpu_level_name (uint32_t flags)
{
  size_t i = 0;

  while ((flags & names[i].needs) != names[i].needs)
    i++;
  return names[i].name;
}

const char *
ox_cpu_level (size_t i, uint32_t *mask)
{
  for (size_t n = N_NAMES; n-- > 0;) {
    OxKernels table;

    ox_kernels_init (&table, names[n].mask);
    if ((table.flags & names[n].needs) == names[n].needs && i-- == 0) {
      *mask = names[n].mask;
      return names[n].name;
    }
  }
  return NULL;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static OxKernels process_table;

static void
init_process_table (void)
{
  const char *name = getenv ("OXINFER_CPU");
  uint32_t mask = OX_CPU_ALL;

  for (size_t i = 0; name != NULL && i < N_NAMES; i++)
    if (strcmp (name, names[i].name) == 0)
      mask = names[i].mask;
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
  switch (activation) {
  case OX_ACTIVATION_Q8:
    return n / 32 * sizeof (OxBlockQ8);
  case OX_ACTIVATION_BF16:
    return (n * sizeof (uint16_t) + 63) & ~(size_t) 63;
  default:
    return n * sizeof (float);
  }
}
