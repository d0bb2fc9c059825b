/* Compute kernels: one table of function pointers, filled with the C reference and then, for each instruction set
 * that this processor and this operating system have, overwritten by something faster.
 *
 * Plain C11: nothing here allocates (pools excepted), prints, exits or asserts on input. Sizes are checked by the caller.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ox-attention.h"
#include "ox-delta-rule.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Weight formats ------------------------------------------------------------------------------------------- */

/* Element formats. The numbers are those of GGUF's tensor types, so that a reader needs no table of its own. */
typedef enum {
  OX_TYPE_F32 = 0,
  OX_TYPE_F16 = 1,
  OX_TYPE_Q4_0 = 2,
  OX_TYPE_Q4_1 = 3,
  OX_TYPE_Q5_0 = 6,
  OX_TYPE_Q5_1 = 7,
  OX_TYPE_Q8_0 = 8,
  OX_TYPE_Q2_K = 10,
  OX_TYPE_Q3_K = 11,
  OX_TYPE_Q4_K = 12,
  OX_TYPE_Q5_K = 13,
  OX_TYPE_Q6_K = 14,
  OX_TYPE_IQ4_NL = 20,
  OX_TYPE_IQ4_XS = 23,
  OX_TYPE_BF16 = 30,
} OxType;

typedef struct {
  OxType type;
  const char *name;        /* "Q4_K" */
  uint32_t block_elements; /* elements that share a scale; 1 for floats */
  uint32_t block_bytes;
} OxTypeInfo;

/* Facts of a format, or NULL when @type is none that we can read. */
const OxTypeInfo *ox_type_info (uint32_t type);

/* Bytes of a row of @n elements. False when @n is not a whole number of blocks or the product overflows. */
bool ox_type_row_bytes (uint32_t type, uint64_t n, uint64_t *bytes);

/* ---- Processor ------------------------------------------------------------------------------------------------ */

/* Instruction sets that kernels are written for. A flag is set when both CPUID and the operating system (XCR0) allow it. */
typedef enum {
  OX_CPU_AVX2 = 1u << 0, /* AVX2 with FMA and F16C */
  OX_CPU_AVX_VNNI = 1u << 1,
  OX_CPU_AVX512 = 1u << 2, /* F, BW, DQ, VL */
  OX_CPU_AVX512_VNNI = 1u << 3,
  OX_CPU_AVX512_BF16 = 1u << 4,
  OX_CPU_AMX_INT8 = 1u << 5,
  OX_CPU_AMX_BF16 = 1u << 6,
  OX_CPU_AVX512_VBMI = 1u << 7,
  /* vdpbf16ps does more in a cycle than float32 FMA. On some processors it is half as fast. */
  OX_CPU_FAST_BF16 = 1u << 8,
  OX_CPU_NEON = 1u << 16,
  OX_CPU_DOTPROD = 1u << 17,
  OX_CPU_I8MM = 1u << 18,
  OX_CPU_ARM_BF16 = 1u << 19,
  OX_CPU_ALL = 0xffffffffu,
} OxCpuFlags;

uint32_t ox_cpu_flags (void);
/* The processor's own name, "AMD EPYC 9R45"; "unknown" when it does not tell. */
const char *ox_cpu_name (void);
/* "avx512vnni", "avx2", "c": the best level among @flags. */
const char *ox_cpu_level_name (uint32_t flags);
/* The levels that this processor has, the lowest ("c") first: the name of level @i and in @mask what to give ox_kernels_init(). NULL
 * beyond the last. */
const char *ox_cpu_level (size_t i, uint32_t *mask);
/* Cores that this process may use now: affinity mask and cgroup CPU quota (rounded up), hyper-threads counted once. At least 1. */
unsigned ox_cpu_allowed_cores (void);

/* ---- Linear layers -------------------------------------------------------------------------------------------- */

/* What a linear kernel reads as activations. */
typedef enum {
  OX_ACTIVATION_F32,  /* float rows as they are */
  OX_ACTIVATION_Q8,   /* int8 in blocks of 32, one float scale and two sums a block (kernels/ox-quantize.h) */
  OX_ACTIVATION_BF16, /* rounded to nearest, ties to even; a row is filled up with zeros to a whole cache line */
  OX_N_ACTIVATIONS,
} OxActivation;

/* How exactly a product is computed. */
typedef enum {
  OX_PRECISION_EXACT, /* float32 activations, weights expanded to float32: what golden tests compare */
  OX_PRECISION_FAST,  /* activations quantised where the weights are */
} OxPrecision;

typedef struct OxLinearKernel OxLinearKernel;

/* A weight matrix W [rows = outputs, cols = inputs] in the layout of its kernel. */
typedef struct {
  const OxLinearKernel *kernel;
  uint32_t type; /* the source format, OxType */
  size_t rows, cols;
  void *data; /* kernel->packed_bytes() bytes, 64-byte aligned; owned by the caller */
} OxPackedMatrix;

/* {pack, matvec, matmul} of one layout on one instruction set. They travel together: a packed matrix is only ever read by
 * the kernel that packed it. Row ranges start at a multiple of row_step. */
struct OxLinearKernel {
  const char *name; /* "q4x16-avx512vnni" */
  OxActivation activation;
  size_t row_step;
  /* Bytes of the packed matrix; false on overflow or when the shape does not suit the format. */
  bool (*packed_bytes) (uint32_t type, size_t rows, size_t cols, size_t *bytes);
  /* Packs rows [row_begin, row_end): @src points at row row_begin of the source, row_begin is a multiple of row_step. */
  void (*pack) (OxPackedMatrix *w, const void *src, size_t row_begin, size_t row_end);
  /* y[r] = Σ_c W[r,c]·x[c] for r in [row_begin, row_end); y is indexed by absolute row. @x: one activation row. */
  void (*matvec) (const OxPackedMatrix *w, const void *x, float *y, size_t row_begin, size_t row_end);
  /* y[i·y_stride + r] for i < m. @x: m activation rows, ox_activation_row_bytes() apart. Same sums as matvec, bit for bit. */
  void (*matmul) (
    const OxPackedMatrix *w, const void *x, size_t m, float *y, size_t y_stride, size_t row_begin, size_t row_end);
};

/* Bytes of one activation row of @n elements (@n a multiple of 32 for OX_ACTIVATION_Q8). */
size_t ox_activation_row_bytes (OxActivation activation, size_t n);

/* ---- Pictures ------------------------------------------------------------------------------------------------- */

/* A convolution kernel: see ox-conv.h. */
typedef struct OxConvKernel OxConvKernel;

/* Of some numbers: their mean, and the sum of the squares of their distances from it. */
typedef struct {
  double mean, squares;
} OxMoments;

/* ---- The table ------------------------------------------------------------------------------------------------ */

/* The linear kernels of an instruction set (ox-internal.h). */
typedef struct OxLinearSet OxLinearSet;
#define OX_MAX_LINEAR_SETS 16

/* Values that group_greatest() sums up in one. */
#define OX_GREATEST_GROUP 64

typedef struct {
  uint32_t flags; /* the instruction sets in use */

  /* Where ox_linear_kernel() looks, the best first; ends with NULL. */
  const OxLinearSet *linear_sets[OX_MAX_LINEAR_SETS];

  /* @n elements of whole blocks to float. */
  void (*dequantize) (uint32_t type, const void *src, float *dst, size_t n);
  /* One row of float activations to OX_ACTIVATION_Q8; @n a multiple of 32. */
  void (*quantize_q8) (const float *x, void *dst, size_t n);
  /* One row of float activations to OX_ACTIVATION_BF16, its zeros at the end included. */
  void (*round_bf16) (const float *x, void *dst, size_t n);

  /* y = x · rsqrt(mean(x²) + eps) · (w + weight_offset); w NULL: no weight. y may be x. (Zhang & Sennrich 2019) */
  void (*rms_norm) (float *y, const float *x, const float *w, float weight_offset, float eps, size_t n);
  /* Rotates pairs (i, i + rotary_dim/2) of each head in place: @cos and @sin [rotary_dim/2]. (Su et al. 2021, "rotate half") */
  void (*rope) (float *x, const float *cos, const float *sin, size_t n_heads, size_t head_dim, size_t rotary_dim);
  /* y = silu(gate) · up and y = gelu_tanh(gate) · up; y may be gate or up. */
  void (*silu_mul) (float *y, const float *gate, const float *up, size_t n);
  void (*gelu_tanh_mul) (float *y, const float *gate, const float *up, size_t n);
  /* y = sigmoid(gate) · up; likewise. */
  void (*sigmoid_mul) (float *y, const float *gate, const float *up, size_t n);
  /* x = cap · tanh(x / cap) */
  void (*softcap) (float *x, float cap, size_t n);
  /* y = exp(x - max(x)) / Σ exp(x - max(x)); y may be x. */
  void (*softmax) (float *y, const float *x, size_t n);
  /* y += x */
  void (*add) (float *y, const float *x, size_t n);
  /* y += s · x */
  void (*add_scaled) (float *y, const float *x, float s, size_t n);
  /* y *= s */
  void (*scale) (float *y, float s, size_t n);
  float (*dot) (const float *a, const float *b, size_t n);
  /* Index of the largest of @n values, the lowest on ties; NaN never wins. */
  size_t (*argmax) (const float *x, size_t n);
  /* The greatest of each group of OX_GREATEST_GROUP values, NaN not counted, to greatest[⌈n / OX_GREATEST_GROUP⌉]. False when one of
   * the values is NaN or +infinity. For choices among many that look only where they have to. */
  bool (*group_greatest) (const float *x, size_t n, float *greatest);
  /* x = exp(x) in float64, for x ≤ 709; within two units in the last place. Sampling takes it of a whole vocabulary. */
  void (*exp_double) (double *x, size_t n);
  /* y[c] = silu(Σ_j w[j · w_stride + c] · x[j][c]) for c < n: one row of a depthwise convolution over the rows x[0] … x[taps - 1]. */
  void (*conv_silu) (float *y, const float *const *x, const float *w, size_t w_stride, size_t taps, size_t n);
  void (*delta_rule) (const OxDeltaRule *d);
  const OxAttentionKernel *attention;

  /* Convolutions: ox_conv_kernel() chooses. For weights in F32, F16 and BF16, [3]; and on pairs of bf16, NULL where nothing is
   * gained by it. */
  const OxConvKernel *conv, *conv_pairs;
  /* The moments of each group of channels, of all @pixels together, to moments[groups]. x [pixels, channels], @x_stride floats from
   * one pixel to the next; @channels a multiple of @groups. See ox-image.h. */
  void (*moments) (const float *x, size_t x_stride, size_t pixels, size_t channels, size_t groups, OxMoments *moments);
  /* y = x · scale + shift, element by element, and with @silu that times its sigmoid. y may be x. */
  void (*scale_shift) (float *y, const float *x, const float *scale, const float *shift, bool silu, size_t n);
  /* y = (x - mean(x)) · rsqrt(variance(x) + eps) · w + b; w, b NULL: without. y may be x. (Ba, Kiros & Hinton 2016) */
  void (*layer_norm) (float *y, const float *x, const float *w, const float *b, float eps, size_t n);
  /* y = x · sigmoid(x); x · Φ(x) with the normal distribution Φ; its approximation with tanh; and x · sigmoid(1.702 x). y may be x. */
  void (*silu) (float *y, const float *x, size_t n);
  void (*gelu_erf) (float *y, const float *x, size_t n);
  void (*gelu_tanh) (float *y, const float *x, size_t n);
  void (*gelu_quick) (float *y, const float *x, size_t n);
  /* y = gate · Φ(gate) · up; y may be gate or up. */
  void (*gelu_erf_mul) (float *y, const float *gate, const float *up, size_t n);
} OxKernels;

/* The kernel of @table for weights of @type [rows, cols]; NULL only for a type that ox_type_info() does not know. */
const OxLinearKernel *ox_linear_kernel (
  const OxKernels *table, uint32_t type, OxPrecision precision, size_t rows, size_t cols);

/* Fills @table with the best kernels among ox_cpu_flags() & @mask; mask 0 leaves the C reference. */
void ox_kernels_init (OxKernels *table, uint32_t mask);
/* The process-wide table: all flags, or those named by the environment variable OXINFER_CPU ("c", "avx2", "avx512", …). */
const OxKernels *ox_kernels (void);

/* ---- Thread pool ---------------------------------------------------------------------------------------------- */

typedef struct OxPool OxPool;

/* Works on items [begin, end). @worker < ox_pool_threads() and is never in two calls of one job at once: an index for scratch. */
typedef void (*OxPoolFunc) (void *data, size_t begin, size_t end, unsigned worker);

/* @n_threads counts the caller; 0: ox_cpu_allowed_cores(). NULL only when out of memory; with fewer threads than asked for
 * when the system gives no more, and never with over 1024. */
OxPool *ox_pool_new (unsigned n_threads);
void ox_pool_free (OxPool *pool);
/* The threads that the pool has. Fewer work while there are fewer cores, see ox_pool_get_limit(). */
unsigned ox_pool_threads (const OxPool *pool);
/* At most @n_threads work from the next job on, the caller counted; 0: all. Any thread, at any time. */
void ox_pool_set_limit (OxPool *pool, unsigned n_threads);
/* Threads that may work now: not more than the limit, than the pool has, and than the cores that this process may use, which are counted
 * again once a second (affinity masks and cgroup limits change). A pool that was asked for more threads than there are cores may use
 * hyper-threads, too, but never has more threads at work than processors. Any thread. */
unsigned ox_pool_get_limit (const OxPool *pool);
/* Runs @func over [0, n) in chunks of at least @grain items, each beginning at a multiple of @grain, handed out by an atomic
 * counter, the caller working too, and returns when all are done. Workers spin for at most 50 µs between calls and then park on a
 * futex. A call from inside a worker runs its items in place, in one piece. While a job of one thread runs, a call from another
 * thread does its own items alone, so neither waits, and the first does with one worker less. On a busy machine the pool may do with
 * fewer threads for some milliseconds.
 *
 * Starting and joining costs 0.2 to 0.5 µs while workers spin and some 5 to 50 µs when they have parked; handing out a chunk some
 * 50 ns. So choose @grain for chunks of at least 1 µs, better 10, and so that there are 4 to 8 chunks a thread: a slow core or one
 * that something else runs on then takes fewer. Work of less than 5 µs in all is done sooner without the pool. */
void ox_pool_run (OxPool *pool, OxPoolFunc func, void *data, size_t n, size_t grain);

#ifdef __cplusplus
}
#endif
