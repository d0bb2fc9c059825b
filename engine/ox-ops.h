/* The coarse operations that a network is written in.
 *
 * A forward pass is written once against this table, over handles whose memory it never touches, except at the marked read-backs.
 * The CPU table (ox-ops-cpu.c) runs each operation at once on the kernels; the planning table (ox-ops-plan.c) runs nothing and counts
 * what loading would take; a GPU table records into a command buffer.
 *
 * A computation stands between begin() and finish(). Operations do not fail one by one: the first error (a read that failed, the
 * cancellable) is kept, the rest become no-ops, and finish() returns it. So a forward pass reads like the paper.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "io/ox-weights.h"

typedef struct _OxOps OxOps;

/* A weight matrix [out, in], packed for its device. */
typedef struct _OxMatrix OxMatrix;
/* A weight vector in float32: a norm's gain, a bias. */
typedef struct _OxVector OxVector;
/* An embedding table that stays on disk: rows are read as tokens need them. */
typedef struct _OxEmbedding OxEmbedding;
/* Keys and values of one layer: a ring of `capacity` positions. */
typedef struct _OxKv OxKv;

/* Activations: float32 [rows, cols]. A view of other rows of the same memory is just another value of this struct. */
typedef struct {
  gpointer data; /* the device's own handle */
  guint row;     /* first row */
  guint rows;
  guint cols;
} OxTensor;

/* Rows [row, row + rows) of @t. */
static inline OxTensor
ox_tensor_view (const OxTensor *t, guint row, guint rows)
{
  return (OxTensor) { t->data, t->row + row, rows, t->cols };
}

/* In which order a matrix's rows lie in the file. */
typedef enum {
  OX_ROWS_AS_STORED,
  OX_ROWS_INTERLEAVED_HEADS, /* GGUF's Llama: rows 2j and 2j+1 of a head are rows j and j + head_dim/2 of the original */
} OxRowOrder;

/* Called while a matrix is read and packed, with the source bytes done since the last call; FALSE stops. Any thread. */
typedef gboolean (*OxLoadFunc) (guint64 bytes, gpointer user_data);

typedef enum {
  OX_GATE_SILU,      /* silu(gate) · up */
  OX_GATE_GELU_TANH, /* gelu_tanh(gate) · up */
} OxGate;

struct _OxOps {
  void (*free) (OxOps *ops);

  /* ---- Weights: loaded once, read by all ---- */
  OxMatrix *(*matrix_load) (OxOps *ops,
                            const OxTensorInfo *tensor,
                            OxRowOrder order,
                            guint head_dim,
                            OxLoadFunc progress,
                            gpointer user_data,
                            GError **error);
  void (*matrix_free) (OxOps *ops, OxMatrix *matrix);
  /* @add is added to every element: 1 for norms that multiply by 1 + w. */
  OxVector *(*vector_load) (OxOps *ops, const OxTensorInfo *tensor, float add, GError **error);
  void (*vector_free) (OxOps *ops, OxVector *vector);
  OxEmbedding *(*embedding_open) (OxOps *ops, const OxTensorInfo *tensor, GError **error);
  void (*embedding_free) (OxOps *ops, OxEmbedding *embedding);

  /* ---- Activations and state: one set a session ---- */
  gboolean (*tensor_init) (OxOps *ops, OxTensor *tensor, guint rows, guint cols, GError **error);
  void (*tensor_clear) (OxOps *ops, OxTensor *tensor);
  /* Memory is taken as positions are written. */
  OxKv *(*kv_new) (OxOps *ops, guint n_kv_heads, guint head_dim, guint capacity, GError **error);
  void (*kv_free) (OxOps *ops, OxKv *kv);

  /* ---- Computing ---- */
  void (*begin) (OxOps *ops, GCancellable *cancellable);
  gboolean (*finish) (OxOps *ops, GError **error);

  /* y[i] = embedding[ids[i]] · scale */
  void (*embed) (OxOps *ops, OxTensor *y, OxEmbedding *embedding, const guint32 *ids, float scale);
  /* y[j] = x · w[j]ᵀ for @n matrices that share their input */
  void (*linear) (OxOps *ops, const OxTensor *x, guint n, OxMatrix *const *w, OxTensor *const *y);
  /* y = rms_norm(x) · w, over groups of @group elements of a row: cols for a whole row, head_dim for a norm per head. y may be x. */
  void (*rms_norm) (OxOps *ops, OxTensor *y, const OxTensor *x, OxVector *w, guint group, float eps);
  /* x += bias, row by row */
  void (*add_bias) (OxOps *ops, OxTensor *x, OxVector *bias);
  /* Rotates every head of row i by the angles of row i of @cos and @sin (host memory, [rows, head_dim/2]). */
  void (*rope) (OxOps *ops, OxTensor *x, const float *cos, const float *sin, guint head_dim);
  /* Row i of @k and @v becomes position @position + i. */
  void (*kv_write) (OxOps *ops, OxKv *kv, const OxTensor *k, const OxTensor *v, guint position);
  /* Causal attention of the rows of @q, at @position …, over @kv; @window 0: all positions. */
  void (*attention) (OxOps *ops, OxTensor *y, const OxTensor *q, OxKv *kv, guint position, guint window, float scale);
  /* y = act(gate) · up; y may be either. */
  void (*gated) (OxOps *ops, OxTensor *y, const OxTensor *gate, const OxTensor *up, OxGate gate_kind);
  /* y += x */
  void (*add) (OxOps *ops, OxTensor *y, const OxTensor *x);
  /* READ-BACK: rows of @x to host memory, [rows, cols]. */
  void (*read) (OxOps *ops, const OxTensor *x, float *values);
};

/* @pool must outlive the ops. */
OxOps *ox_ops_cpu_new (const OxKernels *kernels, OxPool *pool, OxPrecision precision);

/* What the planning table counted. */
typedef struct {
  guint64 parameters;
  guint64 weight_bytes;
} OxPlanCount;

OxOps *ox_ops_plan_new (const OxKernels *kernels, OxPrecision precision, OxPlanCount *count);

/* Shared by the tables: whether @tensor can be a matrix or a vector at all. */
gboolean ox_ops_check_matrix (const OxTensorInfo *tensor, GError **error);
gboolean ox_ops_check_vector (const OxTensorInfo *tensor, GError **error);
