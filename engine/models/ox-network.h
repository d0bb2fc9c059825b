/* What every network looks like from outside: loaded once through OxOps, run with the state of a session.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "io/ox-config.h"
#include "ox-ops.h"

/* ---- Loading ---- */

/* Everything that a network loaded through its OxOps, so that it can be freed in one go. */
typedef struct {
  GPtrArray *matrices;   /* OxMatrix */
  GPtrArray *vectors;    /* OxVector */
  GPtrArray *embeddings; /* OxEmbedding */
} OxHandles;

void ox_handles_clear (OxHandles *handles, OxOps *ops);

/* Finds tensors by their Hugging Face names (without the "model." before them), in safetensors and in GGUF, checks their shapes and
 * loads them. The first error is kept and everything after it gives NULL, so that loading reads like the list of tensors it is. */
typedef struct {
  OxOps *ops;
  OxWeights *weights;
  const OxConfig *config;
  OxLoadFunc progress;
  gpointer user_data;
  OxHandles handles; /* of ox_network_load() */
  GError *error;
} OxLoader;

/* Around everything that is loaded with @loader: end hands over what was loaded and tells whether all of it was. */
void ox_loader_begin (OxLoader *loader);
gboolean ox_loader_end (OxLoader *loader, OxHandles *handles, GError **error);
/* @name may hold "%u" for the layer. Errors name file and tensor. */
OxMatrix *ox_loader_matrix (OxLoader *loader, const char *name, guint layer, guint rows, guint cols);
/* As above, for a matrix that @role says is to be rounded less than others. */
OxMatrix *ox_loader_matrix_for (
  OxLoader *loader, const char *name, guint layer, OxMatrixRole role, guint rows, guint cols);
/* As above, a q or k projection, whose rows may be interleaved in the file. */
OxMatrix *ox_loader_qk_matrix (OxLoader *loader, const char *name, guint layer, guint rows, guint cols);
/* One of two matrices of @rows rows each that lie in one tensor, @group rows of the first and @group of the second in turn. */
OxMatrix *ox_loader_paired_matrix (
  OxLoader *loader, const char *name, guint layer, gboolean second, guint group, guint rows, guint cols);
/* The matrices of every expert of a layer: gate_up_proj [n_experts, 2 · width, hidden] and down_proj [n_experts, hidden, width], or
 * GGUF's apart. Free the arrays with ox_experts_clear(). */
void ox_loader_experts (OxLoader *loader, guint layer, OxExperts *experts);
void ox_experts_clear (OxExperts *experts);
/* A norm's gain: 1 is added where the family multiplies by 1 + w and the file holds w. */
OxVector *ox_loader_norm (OxLoader *loader, const char *name, guint layer, guint n);
/* [n, cols] as one vector of n · cols elements; cols 0: a vector of n. */
OxVector *ox_loader_vector (OxLoader *loader, const char *name, guint layer, OxVectorForm form, guint n, guint cols);
/* A tensor of one element; 0 after an error. */
float ox_loader_scalar (OxLoader *loader, const char *name, guint layer);
OxEmbedding *ox_loader_embedding (OxLoader *loader, const char *name, guint rows, guint cols);
/* The output head: lm_head, or the embedding when they are one. */
OxMatrix *ox_loader_head (OxLoader *loader);
/* The embedding as a head with its rows in another order. */
OxMatrix *ox_loader_ordered_head (OxLoader *loader, const guint32 *source_rows);
/* NULL when there is none. */
const OxTensorInfo *ox_loader_find (OxLoader *loader, const char *name, guint layer);
/* As ox_loader_find(), but a missing one is an error. */
const OxTensorInfo *ox_loader_require (OxLoader *loader, const char *name, guint layer);

/* ---- State of a session ---- */

typedef enum {
  OX_LOGITS_NONE,
  OX_LOGITS_LAST, /* of the last token: [vocab] */
  OX_LOGITS_ALL,  /* of every token: [n, vocab] */
} OxLogits;

/* Called with activations that a test wants to see: "hidden" of layer 0 is the embedding, of layer L what follows layer L - 1;
 * "final_norm". @values: [rows, cols]. */
typedef void (*OxTraceFunc) (
  const char *name, guint layer, const float *values, guint rows, guint cols, gpointer user_data);

typedef struct {
  guint context_length; /* positions that can be held */
  guint chunk;          /* most tokens of one forward pass */
  guint slack;    /* positions beyond the window that a sliding layer keeps, so that a conversation can be cut back */
  OxType kv_type; /* F32, F16, BF16 or Q8_0 */
  gboolean keep_hidden; /* the final norm of every row, also where no logits are wanted: a drafter reads them */
  OxTraceFunc trace;    /* or NULL */
  gpointer trace_data;
} OxStateOptions;

/* Working tensors, of at most `chunk` rows each. Those that a network has no use for take no memory. */
typedef struct {
  OxTensor x;              /* [hidden], the residual stream */
  OxTensor h;              /* [hidden]; after a forward pass with logits: the rows after the final norm */
  OxTensor q, a;           /* [heads · head_dim] of the widest layer */
  OxTensor k, v;           /* [kv_heads · head_dim] of the widest layer */
  OxTensor gate, up;       /* [intermediate] of the widest layer */
  OxTensor ple;            /* [layers · PLE size] */
  OxTensor ple_table;      /* [layers · PLE size] */
  OxTensor ple_gate;       /* [PLE size] */
  OxTensor moe, moe_input; /* [hidden] */
  OxTensor router;         /* [experts] */
  OxTensor qkv, conv;      /* [channels of the delta rule] */
  OxTensor z;              /* [value_heads · value_dim], or a gate of attention [heads · head_dim] */
  OxTensor beta, alpha;    /* [value_heads] */
} OxWork;

/* Most tokens that speculation asks the head about at once: the newest and the guesses. */
#define OX_LOGIT_ROWS 8

/* Keys, values, recurrent states and working tensors: one a session. */
typedef struct {
  OxOps *ops;
  const OxConfig *config;
  OxStateOptions options;
  OxKv **kv;               /* [layers]; NULL for layers that have none of their own */
  OxRecurrent **recurrent; /* [layers]; NULL for layers with attention */
  OxWork work;
  float *cos, *sin;                 /* [chunk, head_dim/2] */
  float *cos_sliding, *sin_sliding; /* the same for sliding layers, where they differ */
} OxState;

/* @t seen as [rows, cols]: not more elements than it has. */
static inline OxTensor
ox_tensor_shaped (const OxTensor *t, guint rows, guint cols)
{
  return (OxTensor) { t->data, 0, rows, cols };
}

/* @config must outlive the state. */
OxState *ox_state_new (OxOps *ops, const OxConfig *config, const OxStateOptions *options, GError **error);
void ox_state_free (OxState *state);
/* Forgets recurrent states. Keys and values need no such thing: they are written before they are read. */
void ox_state_reset (OxState *state);
/* The sizes of the delta rule of Qwen 3.5's layers. */
OxDeltaShape ox_config_delta_shape (const OxConfig *config);
gboolean ox_config_is_recurrent (const OxConfig *config);
/* Most positions that @state may be cut back by once the context is longer than the window; G_MAXUINT when all are kept. */
guint ox_state_get_slack (const OxConfig *config, const OxStateOptions *options);
/* Bytes a new position takes (full layers), and bytes that sliding layers and working tensors take at most. */
guint64 ox_state_bytes_per_token (const OxConfig *config, OxType kv_type);
guint64 ox_state_fixed_bytes (const OxConfig *config, const OxStateOptions *options);

/* ---- Networks ---- */

typedef struct _OxNetworkClass OxNetworkClass;

/* The beginning of every network. */
typedef struct {
  const OxNetworkClass *network_class;
  OxHandles handles;
} OxNetwork;

struct _OxNetworkClass {
  /* Never NULL: what went wrong is in the loader. */
  OxNetwork *(*load) (OxLoader *loader);
  /* Frees what is not in the handles. */
  void (*free) (OxNetwork *network);
  /* Runs @n tokens (at most the state's chunk) that come at @position. @logits_out: host memory as @logits says. After an error or a
   * cancel, recurrent states are half advanced and good for nothing. */
  gboolean (*forward) (OxNetwork *network,
                       OxState *state,
                       const guint32 *ids,
                       guint n,
                       guint position,
                       OxLogits logits,
                       float *logits_out,
                       GCancellable *cancellable,
                       GError **error);
};

/* The class for a family, never NULL. */
const OxNetworkClass *ox_network_class (OxFamily family);
extern const OxNetworkClass ox_llama_class;
extern const OxNetworkClass ox_gemma3_class;
extern const OxNetworkClass ox_gemma4_class;
extern const OxNetworkClass ox_qwen35_class;

/* The network that @loader's configuration describes. @loader: its first five fields set. */
OxNetwork *ox_network_load (OxLoader *loader, GError **error);
/* @ops: those it was loaded with. */
void ox_network_free (OxNetwork *network, OxOps *ops);

/* Gives the trace, if there is one, a marked read-back of @x. */
void ox_state_trace (OxState *state, const char *name, guint layer, const OxTensor *x);
/* Whether the final norm is to run at all. */
gboolean ox_state_wants_final_norm (const OxState *state, OxLogits logits);
/* Final step of every network here: logits = x · headᵀ of the wanted rows. @x: after the final norm. */
void ox_state_logits (OxState *state, OxMatrix *head, const OxTensor *x, OxLogits logits, float *logits_out);
