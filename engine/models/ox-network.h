/* What every network looks like from outside: loaded once through OxOps, run with the state of a session.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "io/ox-config.h"
#include "ox-ops.h"

/* ---- Loading ---- */

/* Finds tensors by their Hugging Face names (without the "model." before them), in safetensors and in GGUF. */
typedef struct {
  OxOps *ops;
  OxWeights *weights;
  const OxConfig *config;
  OxLoadFunc progress;
  gpointer user_data;
} OxLoader;

/* Shapes are checked against what the configuration says. All return NULL with an error that names file and tensor. @name may hold
 * "%u" for the layer. */
OxMatrix *ox_loader_matrix (OxLoader *loader, const char *name, guint layer, guint rows, guint cols, GError **error);
/* As above, a q or k projection, whose rows may be interleaved in the file. */
OxMatrix *ox_loader_qk_matrix (OxLoader *loader, const char *name, guint layer, guint rows, guint cols, GError **error);
/* A norm's gain: 1 is added where the family multiplies by 1 + w and the file holds w. */
OxVector *ox_loader_norm (OxLoader *loader, const char *name, guint layer, guint n, GError **error);
OxVector *ox_loader_bias (OxLoader *loader, const char *name, guint layer, guint n, GError **error);
OxEmbedding *ox_loader_embedding (OxLoader *loader, GError **error);
/* The output head: lm_head, or the embedding when they are one. */
OxMatrix *ox_loader_head (OxLoader *loader, GError **error);

/* ---- State of a session ---- */

/* Called with activations that a test wants to see: "hidden" of layer 0 is the embedding, of layer L what follows layer L - 1;
 * "final_norm". @values: [rows, cols]. */
typedef void (*OxTraceFunc) (
  const char *name, guint layer, const float *values, guint rows, guint cols, gpointer user_data);

typedef struct {
  guint context_length; /* positions that can be held */
  guint chunk;          /* most tokens of one forward pass */
  guint slack; /* positions beyond the window that a sliding layer keeps, so that a conversation can be cut back */
  OxTraceFunc trace; /* or NULL */
  gpointer trace_data;
} OxStateOptions;

/* Keys, values and working tensors: one a session. */
typedef struct {
  OxOps *ops;
  OxStateOptions options;
  guint n_layers;
  OxKv **kv; /* [n_layers] */
  /* Working tensors of at most `chunk` rows. */
  OxTensor x, h, q, k, v, a, gate, up, logits;
  float *cos, *sin;                 /* [chunk, head_dim/2] */
  float *cos_sliding, *sin_sliding; /* the same for sliding layers, where they differ */
} OxState;

OxState *ox_state_new (OxOps *ops, const OxConfig *config, const OxStateOptions *options, GError **error);
void ox_state_free (OxState *state);
/* Most positions that @state may be cut back by once the context is longer than the window; G_MAXUINT when all are kept. */
guint ox_state_get_slack (const OxConfig *config, const OxStateOptions *options);
/* Bytes a new position takes (full layers), and bytes that sliding layers and working tensors take at most. */
guint64 ox_state_bytes_per_token (const OxConfig *config);
guint64 ox_state_fixed_bytes (const OxConfig *config, const OxStateOptions *options);

/* ---- Networks ---- */

typedef struct _OxNetwork OxNetwork;

typedef enum {
  OX_LOGITS_NONE,
  OX_LOGITS_LAST, /* of the last token: [vocab] */
  OX_LOGITS_ALL,  /* of every token: [n, vocab] */
} OxLogits;

typedef struct {
  const char *name;
  OxNetwork *(*load) (OxLoader *loader, GError **error);
  void (*free) (OxNetwork *network, OxOps *ops);
  /* Runs @n tokens (at most the state's chunk) that come at @position. @logits_out: host memory as @logits says. */
  gboolean (*forward) (OxNetwork *network,
                       OxState *state,
                       const guint32 *ids,
                       guint n,
                       guint position,
                       OxLogits logits,
                       float *logits_out,
                       GCancellable *cancellable,
                       GError **error);
} OxNetworkClass;

/* The class for a family, never NULL. */
const OxNetworkClass *ox_network_class (OxFamily family);
extern const OxNetworkClass ox_llama_class;
extern const OxNetworkClass ox_gemma3_class;

/* Gives the trace, if there is one, a marked read-back of @x. */
void ox_state_trace (OxState *state, const char *name, guint layer, const OxTensor *x);
/* Final step of every network here: logits = x · headᵀ of the wanted rows. @x: after the final norm. */
void ox_state_logits (OxState *state, OxMatrix *head, const OxTensor *x, OxLogits logits, float *logits_out);
