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

const OxTensorInfo *
ox_loader_require (OxLoader *loader, const char *name, guint layer)
{
  const OxTensorInfo *tensor;
  const char *file = "model";
  g_autofree char *full = NULL;

  if (loader->error != NULL)
    return NULL;
  tensor = ox_loader_find (loader, name, layer);
  if (tensor != NULL)
    return tensor;
  if (ox_weights_get_n_tensors (loader->weights) > 0)
    file = ox_file_get_name (ox_weights_get_tensor (loader->weights, 0)->file);
  if (loader->config->from_gguf)
    full = with_layer ("", gguf_spelling (loader->config, name), layer);
  else
    full = with_layer ("model.", name, layer);
  g_set_error (&loader->error, OX_ERROR, OX_ERROR_DAMAGED, "%s: tensor “%s” is missing", file, full);
  return NULL;
}

/* ---- Matrices ---- */

static const OxTensorInfo *
require_matrix (OxLoader *loader, const char *name, guint layer, guint64 rows, guint64 cols)
{
  const OxTensorInfo *tensor = ox_loader_require (loader, name, layer);

  return tensor != NULL && ox_tensor_check_shape (tensor, &loader->error, 2, rows, cols) ? tensor : NULL;
}

static OxMatrix *
load_matrix (OxLoader *loader, const OxTensorInfo *tensor, const OxRowMap *map, OxMatrixRole role)
{
  OxMatrix *matrix;

  if (tensor == NULL)
    return NULL;
  matrix =
    loader->ops->matrix_load (loader->ops, tensor, map, role, loader->progress, loader->user_data, &loader->error);
  if (matrix != NULL)
    g_ptr_array_add (loader->handles.matrices, matrix);
  return matrix;
}

OxMatrix *
ox_loader_matrix_for (OxLoader *loader, const char *name, guint layer, OxMatrixRole role, guint rows, guint cols)
{
  return load_matrix (loader, require_matrix (loader, name, layer, rows, cols), NULL, role);
}

OxMatrix *
ox_loader_matrix (OxLoader *loader, const char *name, guint layer, guint rows, guint cols)
{
  return ox_loader_matrix_for (loader, name, layer, OX_MATRIX_LINEAR, rows, cols);
}

OxMatrix *
ox_loader_qk_matrix (OxLoader *loader, const char *name, guint layer, guint rows, guint cols)
{
  g_autofree guint32 *source = NULL;
  guint d = loader->config->head_dim;

  if (!loader->config->permuted_qk)
    return ox_loader_matrix (loader, name, layer, rows, cols);
  /* Rows 2j and 2j + 1 of a head in the file are rows j and j + d/2 of the original. */
  source = g_new (guint32, rows);
  for (guint r = 0; r < rows; r++) {
    guint j = r % d;

    source[r] = r - j + (j < d / 2 ? 2 * j : 2 * (j - d / 2) + 1);
  }
  return load_matrix (loader, require_matrix (loader, name, layer, rows, cols), &(OxRowMap) { rows, source },
                      OX_MATRIX_LINEAR);
}

OxMatrix *
ox_loader_paired_matrix (
  OxLoader *loader, const char *name, guint layer, gboolean second, guint group, guint rows, guint cols)
{
  g_autofree guint32 *source = g_new (guint32, rows);

  for (guint r = 0; r < rows; r++)
    source[r] = r / group * 2 * group + (second ? group : 0) + r % group;
  return load_matrix (loader, require_matrix (loader, name, layer, 2 * (guint64) rows, cols),
                      &(OxRowMap) { rows, source }, OX_MATRIX_LINEAR);
}

/* ---- Experts ---- */

/* Rows [first, first + rows) of each expert's slice of a tensor [n_experts, slice_rows, cols]. */
static void
load_slices (OxLoader *loader, const OxTensorInfo *tensor, guint first, guint rows, OxMatrix **matrices)
{
  guint64 n_experts = tensor->dims[0];
  g_autofree guint32 *source = g_new (guint32, rows);

  for (guint r = 0; r < rows; r++)
    source[r] = first + r;
  for (guint64 e = 0; e < n_experts && loader->error == NULL; e++) {
    OxTensorInfo slice = *tensor;

    slice.n_dims = 2;
    slice.dims[0] = tensor->dims[1];
    slice.dims[1] = tensor->dims[2];
    slice.n_elements = tensor->n_elements / n_experts;
    slice.n_bytes = tensor->n_bytes / n_experts;
    slice.offset = tensor->offset + e * slice.n_bytes;
    matrices[e] =
      load_matrix (loader, &slice, rows == slice.dims[0] ? NULL : &(OxRowMap) { rows, source }, OX_MATRIX_LINEAR);
  }
}

static const OxTensorInfo *
require_slices (OxLoader *loader, const char *name, guint layer, guint64 n, guint64 rows, guint64 cols)
{
  const OxTensorInfo *tensor = ox_loader_require (loader, name, layer);

  return tensor != NULL && ox_tensor_check_shape (tensor, &loader->error, 3, n, rows, cols) ? tensor : NULL;
}

void
ox_loader_experts (OxLoader *loader, guint layer, OxExperts *experts)
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
    gate = require_slices (loader, "blk.%u.ffn_gate_exps.weight", layer, n, width, hidden);
    up = require_slices (loader, "blk.%u.ffn_up_exps.weight", layer, n, width, hidden);
  } else {
    gate = up = require_slices (loader, both, layer, n, 2 * (guint64) width, hidden);
    up_first = width;
  }
  down = require_slices (loader, "layers.%u.experts.down_proj", layer, n, hidden, width);
  if (loader->error != NULL)
    return;
  load_slices (loader, gate, 0, width, experts->gate);
  load_slices (loader, up, up_first, width, experts->up);
  load_slices (loader, down, 0, hidden, experts->down);
}

void
ox_experts_clear (OxExperts *experts)
{
  g_clear_pointer (&experts->gate, g_free);
  g_clear_pointer (&experts->up, g_free);
  g_clear_pointer (&experts->down, g_free);
}

/* ---- Vectors ---- */

OxVector *
ox_loader_vector (OxLoader *loader, const char *name, guint layer, OxVectorForm form, guint n, guint cols)
{
  const OxTensorInfo *tensor = ox_loader_require (loader, name, layer);
  OxVector *vector;
  gboolean ok;

  if (tensor == NULL)
    return NULL;
  if (cols == 0)
    ok = ox_tensor_check_shape (tensor, &loader->error, 1, (guint64) n);
  else if (tensor->n_dims == 3) /* a depthwise convolution: [channels, 1, taps] */
    ok = ox_tensor_check_shape (tensor, &loader->error, 3, (guint64) n, (guint64) 1, (guint64) cols);
  else
    ok = ox_tensor_check_shape (tensor, &loader->error, 2, (guint64) n, (guint64) cols);
  vector = ok ? loader->ops->vector_load (loader->ops, tensor, form, &loader->error) : NULL;
  if (vector != NULL)
    g_ptr_array_add (loader->handles.vectors, vector);
  return vector;
}

OxVector *
ox_loader_norm (OxLoader *loader, const char *name, guint layer, guint n)
{
  OxVectorForm form = loader->config->norm_plus_one ? OX_VECTOR_PLUS_ONE : OX_VECTOR_AS_STORED;

  return ox_loader_vector (loader, name, layer, form, n, 0);
}

float
ox_loader_scalar (OxLoader *loader, const char *name, guint layer)
{
  OxVector *vector = ox_loader_vector (loader, name, layer, OX_VECTOR_AS_STORED, 1, 0);

  return vector != NULL ? loader->ops->vector_get (loader->ops, vector, 0) : 0;
}

/* ---- Embedding and head ---- */

OxEmbedding *
ox_loader_embedding (OxLoader *loader, const char *name, guint rows, guint cols)
{
  const OxTensorInfo *tensor = require_matrix (loader, name, 0, rows, cols);
  OxEmbedding *embedding;

  if (tensor == NULL)
    return NULL;
  embedding = loader->ops->embedding_open (loader->ops, tensor, &loader->error);
  if (embedding != NULL)
    g_ptr_array_add (loader->handles.embeddings, embedding);
  return embedding;
}

OxMatrix *
ox_loader_head (OxLoader *loader)
{
  const char *name = "lm_head.weight";

  /* GGUF says that head and embedding are one by leaving the head out. */
  if (loader->config->tie_word_embeddings || (loader->config->from_gguf && ox_loader_find (loader, name, 0) == NULL))
    name = "embed_tokens.weight";
  return ox_loader_matrix_for (loader, name, 0, OX_MATRIX_HEAD, loader->config->vocab_size,
                               loader->config->hidden_size);
}

OxMatrix *
ox_loader_ordered_head (OxLoader *loader, const guint32 *source_rows)
{
  guint rows = loader->config->vocab_size;

  return load_matrix (loader, require_matrix (loader, "embed_tokens.weight", 0, rows, loader->config->hidden_size),
                      &(OxRowMap) { rows, source_rows }, OX_MATRIX_HEAD);
}
