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
  /* Gemma 4 */
  { "layers.%u.layer_scalar", "blk.%u.layer_output_scale.weight" },
  { "embed_tokens_per_layer.weight", "per_layer_token_embd.weight" },
  { "per_layer_model_projection.weight", "per_layer_model_proj.weight" },
  { "per_layer_projection_norm.weight", "per_layer_proj_norm.weight" },
  { "layers.%u.per_layer_input_gate.weight", "blk.%u.inp_gate.weight" },
  { "layers.%u.per_layer_projection.weight", "blk.%u.proj.weight" },
  { "layers.%u.post_per_layer_input_norm.weight", "blk.%u.post_norm.weight" },
  { "layers.%u.router.proj.weight", "blk.%u.ffn_gate_inp.weight" },
  { "layers.%u.router.scale", "blk.%u.ffn_gate_inp.scale" },
  { "layers.%u.router.per_expert_scale", "blk.%u.ffn_down_exps.scale" },
  { "layers.%u.experts.gate_up_proj", "blk.%u.ffn_gate_up_exps.weight" },
  { "layers.%u.experts.down_proj", "blk.%u.ffn_down_exps.weight" },
  { "layers.%u.pre_feedforward_layernorm_2.weight", "blk.%u.pre_ffw_norm_2.weight" },
  { "layers.%u.post_feedforward_layernorm_1.weight", "blk.%u.post_ffw_norm_1.weight" },
  { "layers.%u.post_feedforward_layernorm_2.weight", "blk.%u.post_ffw_norm_2.weight" },
  /* Qwen 3.5 */
  { "layers.%u.linear_attn.in_proj_qkv.weight", "blk.%u.attn_qkv.weight" },
  { "layers.%u.linear_attn.in_proj_z.weight", "blk.%u.attn_gate.weight" },
  { "layers.%u.linear_attn.in_proj_b.weight", "blk.%u.ssm_beta.weight" },
  { "layers.%u.linear_attn.in_proj_a.weight", "blk.%u.ssm_alpha.weight" },
  { "layers.%u.linear_attn.out_proj.weight", "blk.%u.ssm_out.weight" },
  { "layers.%u.linear_attn.conv1d.weight", "blk.%u.ssm_conv1d.weight" },
  { "layers.%u.linear_attn.A_log", "blk.%u.ssm_a" },
  { "layers.%u.linear_attn.dt_bias", "blk.%u.ssm_dt.bias" },
  { "layers.%u.linear_attn.norm.weight", "blk.%u.ssm_norm.weight" },
};

/* GGUF calls Llama's norm before the MLP "ffn_norm", and the others' norm after attention "post_attention_norm"; Hugging Face calls both
 * post_attention_layernorm. */
static const char *
gguf_spelling (const OxConfig *config, const char *hf)
{
  if (strcmp (hf, "layers.%u.post_attention_layernorm.weight") == 0)
    return config->family == OX_FAMILY_LLAMA ? "blk.%u.ffn_norm.weight" : "blk.%u.post_attention_norm.weight";
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

const OxTensorInfo *
ox_loader_find (OxLoader *loader, const char *name, guint layer)
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
  const OxTensorInfo *tensor = ox_loader_find (loader, name, layer);
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
load_matrix (OxLoader *loader, const OxTensorInfo *tensor, const OxRowMap *map, OxMatrixRole role, GError **error)
{
  return loader->ops->matrix_load (loader->ops, tensor, map, role, loader->progress, loader->user_data, error);
}

OxMatrix *
ox_loader_matrix_for (
  OxLoader *loader, const char *name, guint layer, OxMatrixRole role, guint rows, guint cols, GError **error)
{
  const OxTensorInfo *tensor = require (loader, name, layer, error);

  if (tensor == NULL || !ox_tensor_check_shape (tensor, error, 2, (guint64) rows, (guint64) cols))
    return NULL;
  return load_matrix (loader, tensor, NULL, role, error);
}

OxMatrix *
ox_loader_matrix (OxLoader *loader, const char *name, guint layer, guint rows, guint cols, GError **error)
{
  return ox_loader_matrix_for (loader, name, layer, OX_MATRIX_LINEAR, rows, cols, error);
}

OxMatrix *
ox_loader_qk_matrix (OxLoader *loader, const char *name, guint layer, guint rows, guint cols, GError **error)
{
  const OxTensorInfo *tensor;
  g_autofree guint32 *source = NULL;
  guint d = loader->config->head_dim;

  if (!loader->config->permuted_qk)
    return ox_loader_matrix (loader, name, layer, rows, cols, error);
  tensor = require (loader, name, layer, error);
  if (tensor == NULL || !ox_tensor_check_shape (tensor, error, 2, (guint64) rows, (guint64) cols))
    return NULL;
  /* Rows 2j and 2j + 1 of a head in the file are rows j and j + d/2 of the original. */
  source = g_new (guint32, rows);
  for (guint r = 0; r < rows; r++) {
    guint j = r % d;

    source[r] = r - j + (j < d / 2 ? 2 * j : 2 * (j - d / 2) + 1);
  }
  return load_matrix (loader, tensor, &(OxRowMap) { rows, source }, OX_MATRIX_LINEAR, error);
}

OxMatrix *
ox_loader_paired_matrix (
  OxLoader *loader, const char *name, guint layer, gboolean second, guint group, guint rows, guint cols, GError **error)
{
  const OxTensorInfo *tensor = require (loader, name, layer, error);
  g_autofree guint32 *source = NULL;

  if (tensor == NULL || !ox_tensor_check_shape (tensor, error, 2, 2 * (guint64) rows, (guint64) cols))
    return NULL;
  source = g_new (guint32, rows);
  for (guint r = 0; r < rows; r++)
    source[r] = r / group * 2 * group + (second ? group : 0) + r % group;
  return load_matrix (loader, tensor, &(OxRowMap) { rows, source }, OX_MATRIX_LINEAR, error);
}

/* ---- Experts ---- */

/* Rows [first, first + rows) of each expert's slice of a tensor [n_experts, slice_rows, cols]. */
static gboolean
load_slices (OxLoader *loader, const OxTensorInfo *tensor, guint first, guint rows, OxMatrix **matrices, GError **error)
{
  guint64 n_experts = tensor->dims[0];
  g_autofree guint32 *source = g_new (guint32, rows);

  for (guint r = 0; r < rows; r++)
    source[r] = first + r;
  for (guint64 e = 0; e < n_experts; e++) {
    OxTensorInfo slice = *tensor;

    slice.n_dims = 2;
    slice.dims[0] = tensor->dims[1];
    slice.dims[1] = tensor->dims[2];
    slice.n_elements = tensor->n_elements / n_experts;
    slice.n_bytes = tensor->n_bytes / n_experts;
    slice.offset = tensor->offset + e * slice.n_bytes;
    matrices[e] = load_matrix (loader, &slice, rows == slice.dims[0] ? NULL : &(OxRowMap) { rows, source },
                               OX_MATRIX_LINEAR, error);
    if (matrices[e] == NULL)
      return FALSE;
  }
  return TRUE;
}

static const OxTensorInfo *
require_slices (OxLoader *loader, const char *name, guint layer, guint n, guint rows, guint cols, GError **error)
{
  const OxTensorInfo *tensor = require (loader, name, layer, error);

  if (tensor == NULL || !ox_tensor_check_shape (tensor, error, 3, (guint64) n, (guint64) rows, (guint64) cols))
    return NULL;
  return tensor;
}

gboolean
ox_loader_experts (OxLoader *loader, guint layer, OxExperts *experts, GError **error)
{
  static const char both[] = "layers.%u.experts.gate_up_proj";
  guint n = experts->n_experts, width = experts->width, hidden = loader->config->hidden_size;
  const OxTensorInfo *gate, *up, *down;
  guint up_first = 0;

  experts->gate = g_new0 (OxMatrix *, n);
  experts->up = g_new0 (OxMatrix *, n);
  experts->down = g_new0 (OxMatrix *, n);
  if (loader->config->from_gguf && ox_loader_find (loader, both, layer) == NULL) {
    /* Older files hold them apart. */
    gate = require_slices (loader, "blk.%u.ffn_gate_exps.weight", layer, n, width, hidden, error);
    up = gate != NULL ? require_slices (loader, "blk.%u.ffn_up_exps.weight", layer, n, width, hidden, error) : NULL;
  } else {
    gate = up = require_slices (loader, both, layer, n, 2 * width, hidden, error);
    up_first = width;
  }
  return gate != NULL && up != NULL &&
         (down = require_slices (loader, "layers.%u.experts.down_proj", layer, n, hidden, width, error)) != NULL &&
         load_slices (loader, gate, 0, width, experts->gate, error) &&
         load_slices (loader, up, up_first, width, experts->up, error) &&
         load_slices (loader, down, 0, hidden, experts->down, error);
}

void
ox_experts_clear (OxExperts *experts, OxOps *ops)
{
  for (guint e = 0; e < experts->n_experts && experts->down != NULL; e++) {
    ops->matrix_free (ops, experts->gate[e]);
    ops->matrix_free (ops, experts->up[e]);
    ops->matrix_free (ops, experts->down[e]);
  }
  g_clear_pointer (&experts->gate, g_free);
  g_clear_pointer (&experts->up, g_free);
  g_clear_pointer (&experts->down, g_free);
  if (experts->scale != NULL)
    ops->vector_free (ops, g_steal_pointer (&experts->scale));
}

/* ---- Vectors ---- */

OxVector *
ox_loader_vector (
  OxLoader *loader, const char *name, guint layer, OxVectorForm form, guint n, guint cols, GError **error)
{
  const OxTensorInfo *tensor = require (loader, name, layer, error);
  gboolean ok;

  if (tensor == NULL)
    return NULL;
  if (cols == 0)
    ok = ox_tensor_check_shape (tensor, error, 1, (guint64) n);
  else if (tensor->n_dims == 3) /* a depthwise convolution: [channels, 1, taps] */
    ok = ox_tensor_check_shape (tensor, error, 3, (guint64) n, (guint64) 1, (guint64) cols);
  else
    ok = ox_tensor_check_shape (tensor, error, 2, (guint64) n, (guint64) cols);
  return ok ? loader->ops->vector_load (loader->ops, tensor, form, error) : NULL;
}

OxVector *
ox_loader_bias (OxLoader *loader, const char *name, guint layer, guint n, GError **error)
{
  return ox_loader_vector (loader, name, layer, OX_VECTOR_AS_STORED, n, 0, error);
}

OxVector *
ox_loader_plain_norm (OxLoader *loader, const char *name, guint layer, guint n, GError **error)
{
  return ox_loader_vector (loader, name, layer, OX_VECTOR_AS_STORED, n, 0, error);
}

OxVector *
ox_loader_norm (OxLoader *loader, const char *name, guint layer, guint n, GError **error)
{
  OxVectorForm form = loader->config->norm_plus_one ? OX_VECTOR_PLUS_ONE : OX_VECTOR_AS_STORED;

  return ox_loader_vector (loader, name, layer, form, n, 0, error);
}

gboolean
ox_loader_scalar (OxLoader *loader, const char *name, guint layer, float *value, GError **error)
{
  OxVector *vector = ox_loader_vector (loader, name, layer, OX_VECTOR_AS_STORED, 1, 0, error);

  if (vector == NULL)
    return FALSE;
  *value = loader->ops->vector_get (loader->ops, vector, 0);
  loader->ops->vector_free (loader->ops, vector);
  return TRUE;
}

/* ---- Embedding and head ---- */

OxEmbedding *
ox_loader_embedding_named (OxLoader *loader, const char *name, guint rows, guint cols, GError **error)
{
  const OxTensorInfo *tensor = require (loader, name, 0, error);

  if (tensor == NULL || !ox_tensor_check_shape (tensor, error, 2, (guint64) rows, (guint64) cols))
    return NULL;
  return loader->ops->embedding_open (loader->ops, tensor, error);
}

OxEmbedding *
ox_loader_embedding (OxLoader *loader, GError **error)
{
  return ox_loader_embedding_named (loader, "embed_tokens.weight", loader->config->vocab_size,
                                    loader->config->hidden_size, error);
}

OxMatrix *
ox_loader_head (OxLoader *loader, GError **error)
{
  const char *name = "lm_head.weight";

  if (loader->config->tie_word_embeddings || ox_loader_find (loader, name, 0) == NULL)
    name = "embed_tokens.weight";
  return ox_loader_matrix_for (loader, name, 0, OX_MATRIX_HEAD, loader->config->vocab_size, loader->config->hidden_size,
                               error);
}

OxMatrix *
ox_loader_ordered_head (OxLoader *loader, const guint32 *source_rows, GError **error)
{
  const OxTensorInfo *tensor = require (loader, "embed_tokens.weight", 0, error);
  guint rows = loader->config->vocab_size;

  if (tensor == NULL ||
      !ox_tensor_check_shape (tensor, error, 2, (guint64) rows, (guint64) loader->config->hidden_size))
    return NULL;
  return load_matrix (loader, tensor, &(OxRowMap) { rows, source_rows }, OX_MATRIX_HEAD, error);
}
