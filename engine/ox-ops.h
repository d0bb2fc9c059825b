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
#include "ox-profile.h"

typedef struct _OxOps OxOps;

/* A weight matrix [out, in], packed for its device. */
typedef struct _OxMatrix OxMatrix;
/* A weight vector in float32: a norm's gain, a bias. */
typedef struct _OxVector OxVector;
/* An embedding table that stays on disk: rows are read as tokens need them. */
typedef struct _OxEmbedding OxEmbedding;
/* Keys and values of one layer: a ring of `capacity` positions. */
typedef struct _OxKv OxKv;
/* What a linear-attention layer remembers: the last inputs of its convolution and the matrices of the delta rule. */
typedef struct _OxRecurrent OxRecurrent;

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

/* Which rows of the file make up a matrix, for those that lie in another order or hold two matrices. */
typedef struct {
  guint n_rows;
  const guint32 *source; /* [n_rows] */
} OxRowMap;

/* What a vector's elements become when they are read. */
typedef enum {
  OX_VECTOR_AS_STORED,
  OX_VECTOR_PLUS_ONE,  /* 1 + w: gains of norms that multiply by that */
  OX_VECTOR_MINUS_EXP, /* -exp(w): decay rates that are stored as logarithms */
} OxVectorForm;

/* Called while a matrix is read and packed, with the source bytes done since the last call; FALSE stops. Any thread. */
typedef gboolean (*OxLoadFunc) (guint64 bytes, gpointer user_data);

/* Which matrices run-time quantisation may round, and how far. */
typedef enum {
  OX_MATRIX_LINEAR, /* as the options say */
  OX_MATRIX_HEAD,   /* the output head: Q8 at least */
  OX_MATRIX_SMALL,  /* a router, a gate of a head: few weights that decide much, never rounded */
} OxMatrixRole;

typedef enum {
  OX_GATE_SILU,      /* silu(gate) · up */
  OX_GATE_GELU_TANH, /* gelu_tanh(gate) · up */
  OX_GATE_SIGMOID,   /* sigmoid(gate) · up */
} OxGate;

/* The experts of a layer: each has a gated MLP of its own, of which @top_k run for a token. Matrices: [n_experts] handles. */
typedef struct {
  guint n_experts, top_k;
  OxMatrix **gate, **up; /* [width, hidden] each */
  OxMatrix **down;       /* [hidden, width] each */
  OxVector *scale;       /* [n_experts], multiplies the weight of a chosen expert; or NULL */
  OxGate gate_kind;
  guint width;
} OxExperts;

/* Sizes of a gated delta rule. Channels of its convolution: queries and keys [key_heads · key_dim] each, then values. */
typedef struct {
  guint key_heads, value_heads; /* a multiple of key_heads */
  guint key_dim, value_dim;     /* of a head */
  guint conv_kernel;            /* taps */
  gboolean heads_tiled;         /* value head j uses key head j % key_heads, else j / (value_heads / key_heads) */
} OxDeltaShape;

static inline guint
ox_delta_channels (const OxDeltaShape *shape)
{
  return 2 * shape->key_heads * shape->key_dim + shape->value_heads * shape->value_dim;
}

/* Which keys the rows of an attention see, and what becomes of their scores. */
typedef struct {
  guint position; /* of the first row: row i sees the positions up to position + i */
  guint window;   /* row at p sees p - window + 1 … p; 0: all from 0 */
  /* Host memory. What row i sees instead: [begin, end) of positions that are there, at least one. A block whose rows see each other,
   * later ones too, is written as a whole before its first row asks. */
  const OxKeySpan *visible;
  guint n_visible; /* 0: causal, as above; 1: all rows see the same; else one for each row */
  float scale;     /* multiplies the scores */
  float softcap;   /* scores become softcap · tanh(score / softcap); 0: they stay as they are */
} OxAttentionParams;

struct _OxOps {
  OxProfileClock profile; /* of the thread that computes; operations lap it */

  void (*free) (OxOps *ops);

  /* ---- Weights: loaded once, read by all ---- */
  /* @tensor: [rows, cols]. @map NULL: all rows as they are stored. @role: what it is for, see OxMatrixRole. */
  OxMatrix *(*matrix_load) (OxOps *ops,
                            const OxTensorInfo *tensor,
                            const OxRowMap *map,
                            OxMatrixRole role,
                            OxLoadFunc progress,
                            gpointer user_data,
                            GError **error);
  void (*matrix_free) (OxOps *ops, OxMatrix *matrix);
  /* All elements of @tensor, whatever its shape. */
  OxVector *(*vector_load) (OxOps *ops, const OxTensorInfo *tensor, OxVectorForm form, GError **error);
  /* READ-BACK: one element of a vector. */
  float (*vector_get) (OxOps *ops, OxVector *vector, guint index);
  void (*vector_free) (OxOps *ops, OxVector *vector);
  OxEmbedding *(*embedding_open) (OxOps *ops, const OxTensorInfo *tensor, GError **error);
  void (*embedding_free) (OxOps *ops, OxEmbedding *embedding);

  /* ---- Activations and state: one set a session ---- */
  gboolean (*tensor_init) (OxOps *ops, OxTensor *tensor, guint rows, guint cols, GError **error);
  void (*tensor_clear) (OxOps *ops, OxTensor *tensor);
  /* Memory is taken as positions are written. @type: F32, F16, BF16 or Q8_0; for the last head_dim is a multiple of 32. */
  OxKv *(*kv_new) (OxOps *ops, guint n_kv_heads, guint head_dim, guint capacity, OxType type, GError **error);
  void (*kv_free) (OxOps *ops, OxKv *kv);
  /* READ-BACK: keys and values of @n positions from @position, ox_kv_bytes() of them, to host memory; and from there. */
  void (*kv_save) (OxOps *ops, OxKv *kv, guint position, guint n, gpointer bytes);
  void (*kv_restore) (OxOps *ops, OxKv *kv, guint position, guint n, gconstpointer bytes);

  /* Begins empty: zero state, zero inputs. */
  OxRecurrent *(*recurrent_new) (OxOps *ops, const OxDeltaShape *shape, GError **error);
  void (*recurrent_free) (OxOps *ops, OxRecurrent *recurrent);
  void (*recurrent_reset) (OxOps *ops, OxRecurrent *recurrent);
  /* READ-BACK: the whole state, ox_recurrent_bytes() of it, to host memory; and from there. */
  void (*recurrent_save) (OxOps *ops, OxRecurrent *recurrent, gpointer bytes);
  void (*recurrent_restore) (OxOps *ops, OxRecurrent *recurrent, gconstpointer bytes);
  /* Trying tokens that may be taken back: mark remembers the state as it is and the first @max_rows rows that come in from then on;
   * rewind goes back to it and forward again over the first @n of the rows that came in since, without any matrix product, to the
   * same bits. More than @max_rows rows may come in; then @n is at most @max_rows, or all of them. Either ends with no mark set. */
  gboolean (*recurrent_mark) (OxOps *ops, OxRecurrent *recurrent, guint max_rows, GError **error);
  void (*recurrent_rewind) (OxOps *ops, OxRecurrent *recurrent, guint n);

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
  /* Rotates the first @rotary_dim elements of every head of row i, in pairs half of that apart, by the angles of row i of @cos and
   * @sin (host memory, [rows, rotary_dim/2]). */
  void (*rope) (OxOps *ops, OxTensor *x, const float *cos, const float *sin, guint head_dim, guint rotary_dim);
  /* Row i of @k and @v becomes position @position + i. */
  void (*kv_write) (OxOps *ops, OxKv *kv, const OxTensor *k, const OxTensor *v, guint position);
  /* Causal attention of the rows of @q, at @position …, over @kv; @window 0: all positions. A row's result does not depend on the
   * rows beside it, to the bit. */
  void (*attention) (OxOps *ops, OxTensor *y, const OxTensor *q, OxKv *kv, guint position, guint window, float scale);
  /* The same with more to say. */
  void (*attention_with) (OxOps *ops, OxTensor *y, const OxTensor *q, OxKv *kv, const OxAttentionParams *params);
  /* Attention over keys and values that are rows like the queries, positions 0 …: of towers and UNets. @q, @y: [rows, n_heads ·
   * head_dim]; @k, @v: [any rows, n_kv_heads · head_dim]. */
  void (*attention_rows) (OxOps *ops,
                          OxTensor *y,
                          const OxTensor *q,
                          const OxTensor *k,
                          const OxTensor *v,
                          guint head_dim,
                          const OxAttentionParams *params);
  /* y = act(gate) · up; y may be either. */
  void (*gated) (OxOps *ops, OxTensor *y, const OxTensor *gate, const OxTensor *up, OxGate gate_kind);
  /* y = act(gate) · the columns [first, first + y.cols) of @up; y may be gate. */
  void (*gated_columns) (
    OxOps *ops, OxTensor *y, const OxTensor *gate, const OxTensor *up, guint first, OxGate gate_kind);
  /* y += x */
  void (*add) (OxOps *ops, OxTensor *y, const OxTensor *x);
  /* y = x; and [a | b] side by side. */
  void (*copy) (OxOps *ops, OxTensor *y, const OxTensor *x);
  void (*concat) (OxOps *ops, OxTensor *y, const OxTensor *a, const OxTensor *b);
  /* x *= s */
  void (*scale) (OxOps *ops, OxTensor *x, float s);
  /* x = cap · tanh(x / cap) */
  void (*softcap) (OxOps *ops, OxTensor *x, float cap);
  /* Mixture of experts: p = softmax(router) over all, the top_k of them made to sum to 1, times their scale;
   * y = Σ p_e · down_e(act(gate_e · x) · (up_e · x)), in the order of the experts' numbers. @router: [rows, n_experts]. Ties go to the
   * lower number. Only the matrices of chosen experts are touched. */
  void (*moe) (OxOps *ops, OxTensor *y, const OxTensor *x, const OxTensor *router, const OxExperts *experts);
  /* y[t, c] = silu(Σ_j w[c, j] · x[t - kernel + 1 + j, c]), depthwise and causal; inputs before the first row come from @recurrent,
   * which takes the last ones along. @w: [channels, kernel]. y and x: [rows, channels], not the same. */
  void (*causal_conv) (OxOps *ops, OxTensor *y, const OxTensor *x, OxVector *w, OxRecurrent *recurrent);
  /* The gated delta rule (Yang, Kautz & Hatamizadeh 2024), token by token. @qkv: [rows, channels], after the convolution; queries and
   * keys are L2-normalised here (eps 1e-6), queries also times key_dim^-0.5. beta = sigmoid(b), g = a_scale · softplus(a + dt_bias),
   * [rows, value_heads] each before. For each value head: S *= exp(g); d = beta · (v - Sᵀ k); S += k dᵀ; y = Sᵀ q.
   * @y: [rows, value_heads · value_dim]. A row's result does not depend on how rows are cut into calls, to the bit. */
  void (*delta_rule) (OxOps *ops,
                      OxTensor *y,
                      const OxTensor *qkv,
                      const OxTensor *b,
                      const OxTensor *a,
                      OxVector *a_scale,
                      OxVector *dt_bias,
                      OxRecurrent *recurrent);
  /* The head of a drafter that scores clusters of tokens first: for the @top_k best of @centroids ([rows, n_centroids], ties to the lower
   * number), y = x · head rows of their tokens; every other logit is the least of these - 1. Row i of @head (centroid i / (vocab /
   * n_centroids)) is the token @ordering[i]; @y: [rows, vocab] by token. */
  void (*centroid_logits) (OxOps *ops,
                           OxTensor *y,
                           const OxTensor *x,
                           const OxTensor *centroids,
                           guint top_k,
                           OxMatrix *head,
                           const guint32 *ordering);
  /* READ-BACK: values = x · wᵀ, [x.rows, rows of @w], in host memory; then cap · tanh(values / cap) unless @cap is 0. */
  void (*linear_read) (OxOps *ops, const OxTensor *x, OxMatrix *w, float cap, float *values);
  /* READ-BACK: rows of @x to host memory, [rows, cols]. */
  void (*read) (OxOps *ops, const OxTensor *x, float *values);
};

/* How float weights are held: the options of the model, worked out. */
typedef enum {
  OX_QUANTIZE_NONE,
  OX_QUANTIZE_Q8,
  OX_QUANTIZE_Q4,
} OxQuantize;

/* Keeps packed matrices on disk (ox-packed-cache.c). */
typedef struct _OxPackedCache OxPackedCache;

typedef struct {
  const OxKernels *kernels;
  OxPool *pool; /* must outlive the ops */
  OxPrecision precision;
  OxQuantize quantize;
  OxPackedCache *cache; /* borrowed, or NULL */
  OxProfiler *profiler; /* what the operations' time is added to; borrowed, or NULL */
} OxOpsCpuOptions;

OxOps *ox_ops_cpu_new (const OxOpsCpuOptions *options);

/* What the planning table counted. */
typedef struct {
  guint64 parameters;
  guint64 weight_bytes;
  guint64 packed_bytes; /* of these: matrices that take work to round or to pack */
} OxPlanCount;

OxOps *ox_ops_plan_new (const OxKernels *kernels, OxPrecision precision, OxQuantize quantize, OxPlanCount *count);

/* Bytes of keys and values of @n positions, and of a recurrent state, as saved to host memory. */
gsize ox_kv_bytes (guint n_kv_heads, guint head_dim, OxType type, guint n);
gsize ox_recurrent_bytes (const OxDeltaShape *shape);

/* The format a matrix of @type comes to be held in: @type unless run-time quantisation applies to its role and shape. */
guint32 ox_ops_held_type (guint32 type, guint64 cols, OxMatrixRole role, OxQuantize quantize);

/* Shared by the tables: whether @tensor can be a matrix or a vector at all, and whether @map (may be NULL) lies within it. */
gboolean ox_ops_check_matrix (const OxTensorInfo *tensor, const OxRowMap *map, GError **error);
gboolean ox_ops_check_vector (const OxTensorInfo *tensor, GError **error);
