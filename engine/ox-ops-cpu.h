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
  guint8 *quantized; /* activation rows in OX_ACTIVATION_Q8 */
  gsize quantized_bytes;
  float *attention_scratch; /* one part a worker */
  gsize attention_floats;
} OxOpsCpu;

struct _OxMatrix {
  OxPackedMatrix packed;
};

struct _OxVector {
  float *data;
  gsize n;
};

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
/* Grows a scratch buffer without keeping its content; FALSE when there is no memory, which the computation then fails with. */
gboolean ox_ops_cpu_reserve (OxOpsCpu *self, void **buffer, gsize *size, gsize needed);

static inline float *
ox_cpu_rows (const OxTensor *t)
{
  return (float *) t->data + (gsize) t->row * t->cols;
}

/* Each fills its part of the table. */
void ox_ops_cpu_init_weights (OxOpsCpu *self);
void ox_ops_cpu_init_attention (OxOpsCpu *self);
