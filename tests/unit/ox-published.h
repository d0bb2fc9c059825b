/* Repositories as they are published, without their weights: every tensor's name, type and shape, in safetensors files that are a
 * header and a hole.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <glib.h>

typedef enum {
  OX_PART_TEXT,   /* read and held in memory */
  OX_PART_TABLE,  /* read row by row */
  OX_PART_UNUSED, /* of the text, but no network reads it */
  OX_PART_AHEAD,  /* layers that predict further tokens */
  OX_PART_TOWER,  /* pictures and sound */
} OxPart;

typedef struct {
  char *name;
  const char *dtype;
  guint n_dims;
  guint64 dims[5];
  OxPart part;
} OxPublishedTensor;

typedef struct {
  guint hidden, layers, period, heads, kv_heads, global_kv_heads;
  gboolean k_eq_v;
  guint intermediate;
  gboolean double_wide;
  guint shared, window, ple, positions;
  guint experts, top_k, expert_width;
  enum { OX_TOWERS_SMALL, OX_TOWERS_UNIFIED, OX_TOWERS_LARGE } towers;
} OxGemma4Size;

typedef struct {
  guint hidden, intermediate, heads, kv_heads, global_kv_heads, backbone;
  gboolean centroids, unified;
} OxAssistantSize;

typedef struct {
  guint hidden, intermediate, layers, heads, kv_heads, value_heads;
  gboolean tied;
  guint vision_hidden, vision_intermediate, vision_depth;
} OxQwen35Size;

typedef struct {
  const char *model_type; /* "llama", "qwen2", "qwen3", "gemma3_text", "gemma3" */
  guint hidden, intermediate, layers, heads, kv_heads, head_dim, vocab;
  gboolean tied, stored_head; /* some repositories have the head twice */
  const char *rope;           /* further fields of config.json, each followed by a comma */
} OxPlainSize;

/* The tensors (OxPublishedTensor) of a repository, and its config.json. */
GPtrArray *ox_published_gemma4 (const OxGemma4Size *size);
char *ox_published_gemma4_config (const OxGemma4Size *size);
GPtrArray *ox_published_assistant (const OxAssistantSize *size);
char *ox_published_assistant_config (const OxAssistantSize *size);
GPtrArray *ox_published_qwen35 (const OxQwen35Size *size);
char *ox_published_qwen35_config (const OxQwen35Size *size);
GPtrArray *ox_published_plain (const OxPlainSize *size);
char *ox_published_plain_config (const OxPlainSize *size);

guint64 ox_published_elements (const OxPublishedTensor *tensor);
guint64 ox_published_bytes (const OxPublishedTensor *tensor);
/* model.safetensors, or @n_shards of them and their index, in @folder. FALSE where the file system cannot hold such large holes.
 * masked_embedding.token_ordering is written for real. */
gboolean ox_published_write (GPtrArray *tensors, const char *folder, guint n_shards);
