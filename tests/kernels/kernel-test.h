/* What the kernel tests share: levels, reproducible random input, buffers with guard zones.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <glib.h>

#include "ox-kernels.h"

/* Instruction sets that the tests walk through: those of this processor, the C reference first. With OX_TEST_LEVELS=best only the
 * reference and the best. */
typedef struct {
  const char *name;
  uint32_t mask;
  OxKernels kernels;
} KernelLevel;

const KernelLevel *kernel_levels (size_t *n);

/* Whether tests that combine many things do with a third of the pairs: OX_TEST_QUICK, for emulators. */
gboolean kernel_quick (void);

/* All weight formats. */
extern const uint32_t kernel_types[];
extern const size_t kernel_n_types;

/* A buffer whose last byte lies just before a page that may not be touched, as far as @alignment allows; what precedes it
 * and what fills the gap is checked by guarded_free(). */
void *guarded_new (size_t size, size_t alignment);
void guarded_free (void *data);

/* xorshift64*: the same numbers everywhere. */
typedef struct {
  uint64_t state;
} KernelRandom;

uint32_t kernel_random (KernelRandom *random);
/* In [-1, 1). */
float kernel_random_float (KernelRandom *random);
/* Roughly normal, unit variance. */
float kernel_random_normal (KernelRandom *random);

/* Kinds of input. Every one is finite. */
typedef enum {
  INPUT_NORMAL,
  INPUT_ZERO,
  INPUT_HUGE,      /* scales and values as large as the formats allow without overflow of a float32 sum */
  INPUT_SUBNORMAL, /* half-float scales below 2^-14 */
  INPUT_EXTREME,   /* every quant at the end of its range, every activation ±1 */
  N_INPUTS,
} KernelInput;

extern const char *const kernel_input_names[N_INPUTS];

/* @n elements of random blocks of @type. */
void kernel_fill_weights (KernelRandom *random, uint32_t type, KernelInput input, void *dst, size_t n);
void kernel_fill_floats (KernelRandom *random, KernelInput input, float *dst, size_t n);

/* @got is within @bound of @expected; else the test ends and says which element of which row. */
void kernel_check (const char *level, const char *what, size_t n, size_t i, double got, double expected, double bound);

typedef struct {
  const char *name;
  GTestDataFunc func; /* of a const KernelLevel * */
} KernelLevelTest;

/* /@group/LEVEL/NAME for each level and each test. */
void kernel_add_tests (
  const char *group, const KernelLevel *levels, size_t n_levels, const KernelLevelTest *tests, size_t n_tests);
