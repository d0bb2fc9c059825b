/* Tensors by name: one name in the networks, two spellings in the files.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "models/ox-network.h"

#include <string.h>

typedef struct {
  const char *hf;
  const char *gguf;
} Spelling;

static const Spelling spellings[] = {
  { "embed_tokens.weight", "token_embd.weight" },
  { "norm.weight", "output_norm.weight" },
  { "lm_head.weight", "output.weight" },
  { "layers.%u.input_layernorm.weight", "blk.%u.attn_norm.weight" },
  { "layers.%u.self_attn.q_proj.weight", "blk.%u.attn_q.weight" },
  { "layers.%u.self_attn.k_proj.weight", "blk.%u.attn_k.weight" },
  { "layers.%u.self_attn.v_proj.weight", "blk.%u.attn_v.weight" },
  { "layers.%u.self_attn.o_proj.weight", "blk.%u.attn_output.weight" },
  { "layers.%u.self_attn.q_proj.bias", "blk.%u.attn_q.bias" },
  { "layers.%u.self_attn.k_proj.bias", "blk.%u.attn_k.bias" },
  { "layers.%u.self_attn.v_proj.bias", "blk.%u.attn_v.bias" },
  { "layers.%u.self_attn.q_norm.weight", "blk.%u.attn_q_norm.weight" },
  { "layers.%u.self_attn.k_norm.weight", "blk.%u.attn_k_norm.weight" },
  { "layers.%u.mlp.gate_proj.weight", "blk.%u.ffn_gate.weight" },
  { "layers.%u.mlp.up_proj.weight", "blk.%u.ffn_up.weight" },
  { "layers.%u.mlp.down_proj.weight", "blk.%u.ffn_down.weight" },
  { "layers.%u.pre_feedforward_layernorm.weight", "blk.%u.ffn_norm.weight" },
  { "layers.%u.post_feedforward_layernorm.weight", "blk.%u.post_ffw_norm.weight" },
};

/* GGUF calls Llama's norm before the MLP "ffn_norm", and Gemma's norm after attention "post_attention_norm"; Hugging Face calls both
 * post_attention_layernorm. */
static const char *
gguf_spelling (const OxConfig *config, const char *hf)
{
  if (strcmp (hf, "layers.%u.post_attention_layernorm.weight") == 0)
    return config->family == OX_FAMILY_GEMMA3 ? "blk.%u.post_attention_norm.weight" : "blk.%u.ffn_norm.weight";
  for (gsize i = 0; i < G_N_ELEMENTS (spellings); i++)
    if (strcmp (spellings[i].hf, hf) == 0)
      return spellings[i].gguf;
  return hf;
}

/* What may stand before a name in safetensors files: plain, inside a causal model, inside a multimodal one (two generations). */
static const char *const prefixes[] = { "model.", "", "language_model.model.", "model.language_model.",
                                        "language_model." };

/* "layers.%u.x" for a layer. The only format that names here ever hold. */
static char *
with_layer (const char *prefix, const char *name, guint layer)
{
  const char *percent = strstr (name, "%u");

  if (percent == NULL)
    return g_strconcat (prefix, name, NULL);
  return g_strdup_printf ("%s%.*s%u%s", prefix, (int) (percent - name), name, layer, percent + 2);
}

static const OxTensorInfo *
find (OxLoader *loader, const char *name, guint layer)
{
  if (loader->config->from_gguf) {
    g_autofree char *full = with_layer ("", gguf_spelling (loader->config, name), layer);
    return ox_weights_find (loader->weights, full);
  }
  for (gsize i = 0; i < G_N_ELEMENTS (prefixes); i++) {
    g_autofree char *full = with_layer (prefixes[i], name, layer);
    const OxTensorInfo *tensor = ox_weights_find (loader->weights, full);
    if (tensor != NULL)
      return tensor;
  }
  return NULL;
}

static const OxTensorInfo *
require (OxLoader *loader, const char *name, guint layer, GError **error)
{
  const OxTensorInfo *tensor = find (loader, name, layer);
  const char *file = "model";

  if (tensor != NULL)
    return tensor;
  if (ox_weights_get_n_tensors (loader->weights) > 0)
    file = ox_file_get_name (ox_weights_get_tensor (loader->weights, 0)->file);
  if (loader->config->from_gguf) {
    g_autofree char *full = with_layer ("", gguf_spelling (loader->config, name), layer);
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: tensor “%s” is missing", file, full);
  } else {
    g_autofree char *full = with_layer ("model.", name, layer);
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: tensor “%s” is missing", file, full);
  }
  return NULL;
}

static OxMatrix *
load_matrix (OxLoader *loader, const char *name, guint layer, guint rows, guint cols, OxRowOrder order, GError **error)
{
  const OxTensorInfo *tensor = require (loader, name, layer, error);

  if (tensor == NULL || !ox_tensor_check_shape (tensor, error, 2, (guint64) rows, (guint64) cols))
    return NULL;
  return loader->ops->matrix_load (loader->ops, tensor, order, loader->config->head_dim, loader->progress,
                                   loader->user_data, error);
}

OxMatrix *
ox_loader_matrix (OxLoader *loader, const char *name, guint layer, guint rows, guint cols, GError **error)
{
  return load_matrix (loader, name, layer, rows, cols, OX_ROWS_AS_STORED, error);
}

OxMatrix *
ox_loader_qk_matrix (OxLoader *loader, const char *name, guint layer, guint rows, guint cols, GError **error)
{
  return load_matrix (loader, name, layer, rows, cols,
                      loader->config->permuted_qk ? OX_ROWS_INTERLEAVED_HEADS : OX_ROWS_AS_STORED, error);
}

OxVector *
ox_loader_bias (OxLoader *loader, const char *name, guint layer, guint n, GError **error)
{
  const OxTensorInfo *tensor = require (loader, name, layer, error);

  if (tensor == NULL || !ox_tensor_check_shape (tensor, error, 1, (guint64) n))
    return NULL;
  return loader->ops->vector_load (loader->ops, tensor, 0, error);
}

OxVector *
ox_loader_norm (OxLoader *loader, const char *name, guint layer, guint n, GError **error)
{
  const OxTensorInfo *tensor = require (loader, name, layer, error);

  if (tensor == NULL || !ox_tensor_check_shape (tensor, error, 1, (guint64) n))
    return NULL;
  return loader->ops->vector_load (loader->ops, tensor, loader->config->norm_plus_one ? 1 : 0, error);
}

OxEmbedding *
ox_loader_embedding (OxLoader *loader, GError **error)
{
  const OxTensorInfo *tensor = require (loader, "embed_tokens.weight", 0, error);

  if (tensor == NULL || !ox_tensor_check_shape (tensor, error, 2, (guint64) loader->config->vocab_size,
                                                (guint64) loader->config->hidden_size))
    return NULL;
  return loader->ops->embedding_open (loader->ops, tensor, error);
}

OxMatrix *
ox_loader_head (OxLoader *loader, GError **error)
{
  const char *name = "lm_head.weight";

  if (loader->config->tie_word_embeddings || find (loader, name, 0) == NULL)
    name = "embed_tokens.weight";
  return ox_loader_matrix (loader, name, 0, loader->config->vocab_size, loader->config->hidden_size, error);
}
