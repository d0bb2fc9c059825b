/* What the files of this library share and nobody else sees.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-kernels.h"
#include "ox-panel.h"

/* The linear kernels of one instruction set. A member is NULL where the set has none of its own, or was not compiled; so is the
 * matmul of an entry. */
struct OxLinearSet {
  const OxLinearKernel *exact;    /* one kernel for all types */
  const OxLinearKernel *integer;  /* [OX_N_PANELS] */
  const OxLinearKernel *floating; /* F32, F16, BF16 */
};

extern const OxLinearSet ox_linear_c;
extern const OxLinearSet ox_linear_avx2;
extern const OxLinearSet ox_panel_avx2;
extern const OxLinearSet ox_panel_avx_vnni;
extern const OxLinearSet ox_linear_avx512;
extern const OxLinearSet ox_panel_avx512;
extern const OxLinearSet ox_panel_avx512_vnni;
extern const OxLinearSet ox_linear_avx512_bf16;
extern const OxLinearSet ox_panel_amx;
extern const OxLinearSet ox_linear_amx;
extern const OxLinearSet ox_linear_neon;
extern const OxLinearSet ox_linear_neon_bf16;
extern const OxLinearSet ox_panel_neon;
extern const OxLinearSet ox_panel_dotprod;
extern const OxLinearSet ox_panel_i8mm;

/* Packing is the same for every instruction set (ox-pack.c). */
bool ox_exact_packed_bytes (uint32_t type, size_t rows, size_t cols, size_t *bytes);
void ox_exact_pack (OxPackedMatrix *w, const void *src, size_t row_begin, size_t row_end);
bool ox_panel_packed_bytes (uint32_t type, size_t rows, size_t cols, size_t *bytes);
void ox_panel_pack (OxPackedMatrix *w, const void *src, size_t row_begin, size_t row_end);
bool ox_float_panel_packed_bytes (uint32_t type, size_t rows, size_t cols, size_t *bytes);
void ox_float_panel_pack (OxPackedMatrix *w, const void *src, size_t row_begin, size_t row_end);

/* Whether the instructions of AMX compute on this processor what the kernels rely on. Only after the process was given permission. */
bool ox_amx_int8_works (void);
bool ox_amx_bf16_works (void);

/* Attention of each instruction set. */
extern const OxAttentionKernel ox_attention_c;
extern const OxAttentionKernel ox_attention_avx2;
extern const OxAttentionKernel ox_attention_avx512;
extern const OxAttentionKernel ox_attention_neon;

/* Everything of the table that is not a linear layer. */
void ox_reference_init (OxKernels *table);
void ox_vector_init_avx2 (OxKernels *table);
void ox_vector_init_avx512 (OxKernels *table);
void ox_attention_init_avx512bf16 (OxKernels *table);
void ox_vector_init_neon (OxKernels *table);
void ox_attention_init_neon_bf16 (OxKernels *table);

/* Convolutions and what else networks for pictures need, for the instruction sets in @flags (ox-image.c). */
void ox_image_init (OxKernels *table, uint32_t flags);
void ox_conv_init_c (OxKernels *table);
void ox_image_init_avx2 (OxKernels *table);
void ox_image_init_avx512 (OxKernels *table);
void ox_image_init_avx512bf16 (OxKernels *table);
void ox_image_init_neon (OxKernels *table);
extern const OxConvKernel ox_conv_amx; /* on pairs */

/* The cgroup CPU limit in cores, rounded up, 0 when there is none; the two paths are arguments so that it can be tested. */
unsigned ox_cpu_quota (const char *proc_self_cgroup, const char *cgroup_root);

/* Cores of which @mask (a cpu_set_t of @set_bytes) has a processor, hyper-threads counted once; what is siblings stands below
 * @cpu_root. */
unsigned ox_cpu_count_mask (const char *cpu_root, const void *mask, size_t set_bytes);

/* What the calling thread may use: whole cores, and processors with hyper-threads counted one by one; cgroup limits hold for both. All
 * zeros before the first call; later ones are quick as long as the affinity mask is the same. */
typedef struct {
  unsigned cores, cpus;
  uint64_t mask; /* a hash of it */
  unsigned mask_cores, mask_cpus;
} OxCoreCount;

void ox_cpu_count_cores (OxCoreCount *count);

/* For tests: @source stands in for the system's word on how many cores there are; it is asked now and once a second. */
typedef unsigned (*OxCoreSource) (void *data);
void ox_pool_set_core_source (OxPool *pool, OxCoreSource source, void *data);
