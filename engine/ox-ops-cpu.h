/* What the parts of the CPU table share: weights, attention, linear attention, experts (ox-ops-cpu-*.c) and the rest (ox-ops-cpu.c).
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-ops.h"

typedef struct {
  OxOps base;
  const OxKernels *kernels;
  OxPool *pool;
  OxPrecision precision;
  OxQuantize quantize;
  OxPackedCache *cache; /* borrowed, or NULL */

  GCancellable *cancellable; /* of the running computation, borrowed */
  gint failed;               /* atomic: operations do nothing any more */
  GMutex error_lock;
  GError *error; /* the first one */

  /* Scratch that grows to what the largest call needs. */
  guint8 *coded; /* activation rows in the forms that kernels read */
  gsize coded_bytes;
  float *attention_scratch; /* one part a worker */
  gsize attention_bytes;
  guint8 *rows_scratch; /* keys and values that were rows, as attention reads them */
  gsize rows_bytes;
  float *delta_scratch; /* rows made ready for the delta rule */
  gsize delta_bytes;
  guint8 *moe_scratch;
  gsize moe_bytes;
  guint8 *centroid_scratch;
  gsize centroid_bytes;
} OxOpsCpu;

struct _OxMatrix {
  OxPackedMatrix packed;
};

struct _OxVector {
  float *data;
  gsize n;
  float *by_tap; /* of a convolution, once it has run: [taps, channels] */
};

/* Activation rows in every form that a kernel may ask for, one after the other; those that nobody asked for are NULL. */
typedef struct {
  const guint8 *rows[OX_N_ACTIVATIONS];
} OxCpuInput;

/* y[i] = x[i] · wᵀ for @m rows. */
typedef struct {
  const OxPackedMatrix *w;
  const void *x; /* in the form that the kernel of @w reads */
  gsize m;
  float *y;
  gsize y_stride;
  gsize first_step; /* row steps of the products before this one; set by ox_ops_cpu_products() */
} OxCpuProduct;

struct _OxEmbedding {
  OxTensorInfo tensor; /* name and file kept alive below */
  OxFile *file;
  guint64 row_bytes;
};

/* 64-byte aligned; OX_ERROR_NO_MEMORY naming @what when there is not enough. Freed with free(). */
gpointer ox_cpu_alloc (gsize bytes, const char *what, GError **error);
/* Keeps the first error and makes the rest of the computation a no-op. Takes @error. Any thread. */
void ox_ops_cpu_fail (OxOpsCpu *self, GError *error);

/* Whether to go on. Asked by every operation and by every chunk of a long one, so that a cancel is obeyed within a fraction of a
 * layer. */
gboolean ox_ops_cpu_running (OxOpsCpu *self);
/* At the beginning of an operation, whose time belongs to @category: FALSE when it is to do nothing. */
static inline gboolean
ox_ops_cpu_enter (OxOpsCpu *self, OxProfileCategory category)
{
  ox_profile_lap (&self->base.profile, category);
  return ox_ops_cpu_running (self);
}

/* Grows a scratch buffer without keeping its content; FALSE when there is no memory, which the computation then fails with. */
gboolean ox_ops_cpu_reserve (OxOpsCpu *self, void **buffer, gsize *size, gsize needed);

/* All of @products, their work shared out over the pool as one. */
void ox_ops_cpu_products (OxOpsCpu *self, OxCpuProduct *products, guint n);
/* The forms of @form_mask other than floats, a bit each, that @rows activations of @cols take, in whole cache lines. */
gsize ox_ops_cpu_coded_bytes (guint form_mask, gsize rows, gsize cols);
/* Writes @rows rows of @x in the forms of @form_mask to @memory, of that many bytes. */
OxCpuInput ox_ops_cpu_code (OxOpsCpu *self, guint form_mask, const float *x, gsize rows, gsize cols, guint8 *memory);
/* y = act(gate) · up over @n elements, spread over the pool. */
void ox_ops_cpu_gate (OxOpsCpu *self, float *y, const float *gate, const float *up, gsize n, OxGate gate_kind);
/* The numbers of the @k ≤ @n greatest of @n scores, in ascending order; ties go to the lower number, NaN is below all others. */
void ox_ops_cpu_choose (const float *scores, guint n, guint k, guint32 *chosen);

/* The form of activations that a product with @matrix reads, as a bit. */
static inline guint
ox_cpu_form (const OxMatrix *matrix)
{
  return 1u << matrix->packed.kernel->activation;
}

/* What a product with @matrix reads of row @row of @input. */
static inline gconstpointer
ox_cpu_input (const OxCpuInput *input, const OxMatrix *matrix, gsize row)
{
  OxActivation form = matrix->packed.kernel->activation;

  return input->rows[form] + row * ox_activation_row_bytes (form, matrix->packed.cols);
}

static inline float *
ox_cpu_rows (const OxTensor *t)
{
  return (float *) t->data + (gsize) t->row * t->cols;
}

/* Each fills its part of the table. */
void ox_ops_cpu_init_weights (OxOpsCpu *self);
void ox_ops_cpu_init_attention (OxOpsCpu *self);
void ox_ops_cpu_init_recurrent (OxOpsCpu *self);
void ox_ops_cpu_init_moe (OxOpsCpu *self);
