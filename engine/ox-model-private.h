/* A loaded model from inside.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "models/ox-drafter.h"
#include "text/ox-chat-format.h"

/* The options of a model, worked out for what it is and for the memory that is free. */
typedef struct {
  OxPrecision precision;
  OxQuantize quantize;
  OxStateOptions state;
  guint64 packed_bytes; /* of matrices that take work to round or to pack */
} OxModelSetup;

struct _OxModel {
  gatomicrefcount ref_count;
  OxModelPlan *plan;
  OxConfig *config;
  OxWeights *weights;
  OxTokenizer *tokenizer;          /* NULL: loaded without one */
  const OxChatFormat *chat_format; /* NULL: a base model */
  GArray *stop_ids;                /* guint32 */
  OxSampling default_sampling;

  const OxKernels *kernels;
  OxPool *pool;
  OxProfiler profiler;
  OxOpsCpuOptions ops_options;
  OxOps *ops; /* owns the weights; sessions compute with ops of their own */
  OxNetwork *network;
  OxDrafter *drafter; /* or NULL */
  OxWeights *drafter_weights;
  OxConfig *drafter_config;
  OxStateOptions state_options;
  char *packed_path; /* what is kept of it on disk for the next start, or NULL */
};

/* As ox_model_load(). Without tokenizer the model takes ids only, by ox_session_eval(): golden checkpoints have no text. */
OxModel *ox_model_load_full (const char *path,
                             const OxModelOptions *options,
                             gboolean with_tokenizer,
                             OxProgressFunc progress,
                             gpointer user_data,
                             GCancellable *cancellable,
                             GError **error);

/* The same from weights and configuration that are there already; takes both. @path: for the plan and for what lies beside the
 * weights. */
OxModel *ox_model_load_opened (const char *path,
                               OxWeights *weights,
                               OxConfig *config,
                               const OxModelOptions *options,
                               gboolean with_tokenizer,
                               OxProgressFunc progress,
                               gpointer user_data,
                               GCancellable *cancellable,
                               GError **error);

/* The plan of already opened weights, and what the options come to; @setup may be NULL. */
OxModelPlan *ox_model_plan_weights (const char *path,
                                    OxWeights *weights,
                                    const OxConfig *config,
                                    const OxModelOptions *options,
                                    OxModelSetup *setup,
                                    GError **error);
/* Fills in what the tokenizer tells: chat format, capabilities, note. Returns the format; NULL: a base model. */
const OxChatFormat *ox_model_plan_set_tokenizer (OxModelPlan *plan, OxTokenizer *tokenizer, const OxConfig *config);

/* generation_config.json beside the weights, else the family's recommendation. */
void ox_model_read_sampling (const char *path, const OxConfig *config, OxSampling *sampling);
/* Replaces what a GGUF file has under general.sampling. */
void ox_model_read_gguf_sampling (OxGguf *gguf, OxSampling *sampling);
/* Families that are to be sampled in one way while they think and in another while they do not: where @sampling is the family's
 * recommendation for the other mode, it becomes the one for this. For an answer whose caller left the sampling to the model. */
void ox_model_adapt_sampling (const OxConfig *config, gboolean thinks, OxSampling *sampling);

/* The ids that @chat takes, ready for an answer; NULL with an error. Free with g_array_unref(). @in_thinking: whether they end inside a thought;
 * may be NULL. */
GArray *ox_model_encode_chat (
  OxModel *model, const OxChat *chat, gboolean *in_thinking, GCancellable *cancellable, GError **error);
/* The ids of plain text, behind a BOS where the tokenizer wants one. */
GArray *ox_model_encode_text (
  OxModel *model, const char *text, gsize len, gboolean parse_control, GCancellable *cancellable, GError **error);

/* The drafter at @path, or with NULL the one in the model's own files if there is one. @target: the loader of the model's network. */
gboolean ox_model_load_drafter (
  OxModel *model, const OxLoader *target, const char *path, GCancellable *cancellable, GError **error);
void ox_model_free_drafter (OxModel *model);
/* Adds to @count what an MTP layer takes, and tells what it takes in each session. @target: a loader on the planning table. */
gboolean ox_model_plan_mtp (
  const OxLoader *target, OxPlanCount *count, const OxStateOptions *options, guint64 *state_bytes, GError **error);
