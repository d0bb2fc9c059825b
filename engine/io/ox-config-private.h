/* What the two readers of configurations share.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "io/ox-config.h"
#include "io/ox-json.h"

/* Bounds of what a configuration may say, well above every model in use. They keep products of two of them within 64 bits. */
#define OX_CONFIG_MAX_LAYERS 1024
#define OX_CONFIG_MAX_WIDTH (1u << 20) /* hidden_size, intermediate_size, heads · head_dim */
#define OX_CONFIG_MAX_HEADS 4096
#define OX_CONFIG_MAX_HEAD_DIM 4096
#define OX_CONFIG_MAX_LINEAR_HEAD_DIM 1024 /* of the delta rule, whose state is a square of it a head */
#define OX_CONFIG_MAX_CONV_KERNEL 64
#define OX_CONFIG_MAX_EXPERTS 4096
#define OX_CONFIG_MAX_EXPERT_ROWS (1u << 24) /* num_experts · moe_intermediate_size */
#define OX_CONFIG_MAX_VOCAB (1u << 24)
#define OX_CONFIG_MAX_POSITIONS (1u << 30)

OxConfig *ox_config_new (void);
void ox_config_add_eos (OxConfig *config, guint32 id);
/* Nothing for an id outside the vocabulary, which could not be sampled anyway. */
void ox_config_add_suppressed (OxConfig *config, guint64 id);
/* Ids that end a turn in every model of the family, whatever its files say. */
void ox_config_add_family_eos (OxConfig *config);
/* Tiny models of the newer families keep the ids of their large siblings, which lie outside their vocabularies: these are
 * left out and not refused. */
gboolean ox_config_has_distant_ids (const OxConfig *config);

/* Sets OX_ERROR_UNSUPPORTED for a kind of model that is not known. */
void ox_config_set_unknown_kind (GError **error, const char *file_name, const char *kind);

/* What a kind of file calls the fields, without what stands before them all ("text_config.", "gemma4."). */
typedef struct {
  const char *prefix;
  const char *vocab;
  const char *n_layers, *layers; /* their number and their kinds */
  const char *heads, *kv_heads, *head_dim;
  const char *global_kv_heads, *global_head_dim;
  const char *rotated, *rotated_sliding; /* what tells how much of a head is rotated */
  const char *shared_layers;
  const char *experts, *top_k_experts, *expert_width;
  const char *ple_size, *ple_vocab;
  const char *linear_key_heads, *linear_value_heads, *linear_key_dim, *linear_value_dim;
} OxConfigNames;

/* Checks between fields, for every family. */
gboolean ox_config_check (const OxConfig *config, const char *file_name, const OxConfigNames *names, GError **error);
/* Whether ids lie in the vocabulary; @field names the place. */
gboolean ox_config_check_id (
  const OxConfig *config, guint64 id, const char *file_name, const char *field, GError **error);

/* From a parsed document. */
OxConfig *ox_config_from_json (OxJson *json, const char *file_name, GError **error);
gboolean ox_config_add_generation (OxConfig *config, OxJson *json, const char *file_name, GError **error);
