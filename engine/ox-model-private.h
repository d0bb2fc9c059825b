/* A loaded model from inside.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "models/ox-network.h"
#include "text/ox-chat-format.h"

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
  OxPrecision precision;
  OxOpsCpuOptions ops_options;
  OxOps *ops; /* owns the weights; sessions compute with ops of their own */
  OxNetwork *network;
  OxStateOptions state_options;
};

/* As ox_model_load(). Without tokenizer the model takes ids only, by ox_session_eval(): golden checkpoints have no text. */
OxModel *ox_model_load_full (const char *path,
                             const OxModelOptions *options,
                             gboolean with_tokenizer,
                             OxProgressFunc progress,
                             gpointer user_data,
                             GCancellable *cancellable,
                             GError **error);

/* Plan and configuration from already opened weights. @config_out may be NULL. */
OxModelPlan *ox_model_plan_weights (
  const char *path, OxWeights *weights, const OxConfig *config, const OxModelOptions *options, GError **error);
/* The state options that @options and @config lead to. */
void ox_model_state_options (const OxConfig *config, const OxModelOptions *options, OxStateOptions *state_options);
OxPrecision ox_model_kernel_precision (const OxModelOptions *options);
/* Fills in what the tokenizer tells: chat format, capabilities, note. */
void ox_model_plan_set_tokenizer (OxModelPlan *plan, OxTokenizer *tokenizer, const OxConfig *config);

/* generation_config.json beside the weights, else the family's recommendation. */
void ox_model_read_sampling (const char *path, const OxConfig *config, OxSampling *sampling);
/* Replaces what a GGUF file has under general.sampling. */
void ox_model_read_gguf_sampling (OxGguf *gguf, OxSampling *sampling);
/* Families that are to be sampled in one way while they think and in another while they do not: where @sampling is the family's
 * recommendation for the other mode, it becomes the one for this. For an answer whose caller left the sampling to the model. */
void ox_model_adapt_sampling (const OxConfig *config, gboolean thinks, OxSampling *sampling);

/* The ids that @chat takes, ready for an answer; NULL with an error. Free with g_array_unref(). */
GArray *ox_model_encode_chat (OxModel *model, const OxChat *chat, GCancellable *cancellable, GError **error);
