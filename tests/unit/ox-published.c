/* The tensors of published repositories.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-published.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#define GEMMA_VOCAB 262144u
#define QWEN_VOCAB 248320u

static void
tensor_free (gpointer data)
{
  OxPublishedTensor *tensor = data;

  g_free (tensor->name);
  g_free (tensor);
}

static GPtrArray *
list_new (void)
{
  return g_ptr_array_new_with_free_func (tensor_free);
}

/* Up to four dimensions, outermost first; the first 0 ends them. */
static OxPublishedTensor *
add (GPtrArray *list, OxPart part, char *name, guint64 a, guint64 b, guint64 c, guint64 d)
{
  OxPublishedTensor *tensor = g_new0 (OxPublishedTensor, 1);
  guint64 dims[] = { a, b, c, d };

  tensor->name = name;
  tensor->dtype = "BF16";
  tensor->part = part;
  for (guint i = 0; i < 4 && dims[i] > 0; i++)
    tensor->dims[tensor->n_dims++] = dims[i];
  g_ptr_array_add (list, tensor);
  return tensor;
}

#define NAME(...) g_strdup_printf (__VA_ARGS__)

static void
add_matrix (GPtrArray *list, OxPart part, const char *prefix, const char *name, guint64 rows, guint64 cols)
{
  add (list, part, NAME ("%s%s.weight", prefix, name), rows, cols, 0, 0);
}

static void
add_norm (GPtrArray *list, OxPart part, const char *prefix, const char *name, guint64 n)
{
  add (list, part, NAME ("%s%s.weight", prefix, name), n, 0, 0, 0);
}

/* A matrix and a bias. */
static void
add_linear (GPtrArray *list, const char *prefix, const char *name, guint64 rows, guint64 cols)
{
  add_matrix (list, OX_PART_TOWER, prefix, name, rows, cols);
  add (list, OX_PART_TOWER, NAME ("%s%s.bias", prefix, name), rows, 0, 0, 0);
}

/* A matrix of a tower, with the bounds of its input and output where it has them. */
static void
add_clipped (GPtrArray *list, gboolean clipped, const char *prefix, const char *name, guint64 rows, guint64 cols)
{
  static const char *const bounds[] = { "input_min", "input_max", "output_min", "output_max" };

  add (list, OX_PART_TOWER, NAME ("%s%s.linear.weight", prefix, name), rows, cols, 0, 0);
  for (guint i = 0; clipped && i < G_N_ELEMENTS (bounds); i++)
    add (list, OX_PART_TOWER, NAME ("%s%s.%s", prefix, name, bounds[i]), 0, 0, 0, 0);
}

static void
add_gated_mlp (GPtrArray *list, OxPart part, const char *prefix, guint64 hidden, guint64 intermediate)
{
  add_matrix (list, part, prefix, "mlp.gate_proj", intermediate, hidden);
  add_matrix (list, part, prefix, "mlp.up_proj", intermediate, hidden);
  add_matrix (list, part, prefix, "mlp.down_proj", hidden, intermediate);
}

static const char *const four_norms[] = { "input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm",
                                          "post_feedforward_layernorm" };

/* ---- Gemma 4 ---- */

static void
gemma4_vision (GPtrArray *list, guint64 text_hidden, gboolean small)
{
  static const char root[] = "model.vision_tower.";
  guint64 hidden = small ? 768 : 1152;
  guint64 intermediate = small ? 3072 : 4304;
  guint64 head_dim = small ? 64 : 72;
  guint n = small ? 16 : 27;

  add_matrix (list, OX_PART_TOWER, root, "patch_embedder.input_proj", hidden, 768);
  add (list, OX_PART_TOWER, NAME ("%spatch_embedder.position_embedding_table", root), 2, 10240, hidden, 0);
  for (guint i = 0; i < n; i++) {
    g_autofree char *prefix = NAME ("%sencoder.layers.%u.", root, i);

    for (guint j = 0; j < 4; j++) {
      static const char *const projections[] = { "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                                                 "self_attn.o_proj" };

      add_clipped (list, small, prefix, projections[j], hidden, hidden);
      add_norm (list, OX_PART_TOWER, prefix, four_norms[j], hidden);
    }
    add_norm (list, OX_PART_TOWER, prefix, "self_attn.q_norm", head_dim);
    add_norm (list, OX_PART_TOWER, prefix, "self_attn.k_norm", head_dim);
    add_clipped (list, small, prefix, "mlp.gate_proj", intermediate, hidden);
    add_clipped (list, small, prefix, "mlp.up_proj", intermediate, hidden);
    add_clipped (list, small, prefix, "mlp.down_proj", hidden, intermediate);
  }
  if (!small) {
    add (list, OX_PART_TOWER, NAME ("%sstd_bias", root), hidden, 0, 0, 0);
    add (list, OX_PART_TOWER, NAME ("%sstd_scale", root), hidden, 0, 0, 0);
  }
  add_matrix (list, OX_PART_TOWER, "model.embed_vision.", "embedding_projection", text_hidden, hidden);
}

static void
gemma4_audio (GPtrArray *list, guint64 text_hidden)
{
  static const char root[] = "model.audio_tower.";
  static const char *const ffn[] = { "feed_forward1.", "feed_forward2." };
  static const char *const attention[] = { "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                                           "self_attn.post" };
  static const char *const norms[] = { "norm_pre_attn", "norm_post_attn", "norm_out", "lconv1d.pre_layer_norm",
                                       "lconv1d.conv_norm" };

  add (list, OX_PART_TOWER, NAME ("%ssubsample_conv_projection.layer0.conv.weight", root), 128, 1, 3, 3);
  add_norm (list, OX_PART_TOWER, root, "subsample_conv_projection.layer0.norm", 128);
  add (list, OX_PART_TOWER, NAME ("%ssubsample_conv_projection.layer1.conv.weight", root), 32, 128, 3, 3);
  add_norm (list, OX_PART_TOWER, root, "subsample_conv_projection.layer1.norm", 32);
  add_matrix (list, OX_PART_TOWER, root, "subsample_conv_projection.input_proj_linear", 1024, 1024);
  for (guint i = 0; i < 12; i++) {
    g_autofree char *prefix = NAME ("%slayers.%u.", root, i);

    for (guint j = 0; j < 2; j++) {
      g_autofree char *inner = g_strconcat (prefix, ffn[j], NULL);

      add_clipped (list, TRUE, inner, "ffw_layer_1", 4096, 1024);
      add_clipped (list, TRUE, inner, "ffw_layer_2", 1024, 4096);
      add_norm (list, OX_PART_TOWER, inner, "pre_layer_norm", 1024);
      add_norm (list, OX_PART_TOWER, inner, "post_layer_norm", 1024);
    }
    for (guint j = 0; j < G_N_ELEMENTS (attention); j++)
      add_clipped (list, TRUE, prefix, attention[j], 1024, 1024);
    add_matrix (list, OX_PART_TOWER, prefix, "self_attn.relative_k_proj", 1024, 1024);
    add (list, OX_PART_TOWER, NAME ("%sself_attn.per_dim_scale", prefix), 128, 0, 0, 0);
    add_clipped (list, TRUE, prefix, "lconv1d.linear_start", 2048, 1024);
    add_clipped (list, TRUE, prefix, "lconv1d.linear_end", 1024, 1024);
    add (list, OX_PART_TOWER, NAME ("%slconv1d.depthwise_conv1d.weight", prefix), 1024, 1, 5, 0);
    for (guint j = 0; j < G_N_ELEMENTS (norms); j++)
      add_norm (list, OX_PART_TOWER, prefix, norms[j], 1024);
  }
  add_linear (list, root, "output_proj", 1536, 1024);
  add_matrix (list, OX_PART_TOWER, "model.embed_audio.", "embedding_projection", text_hidden, 1536);
}

/* The 12B has no towers: pictures and sound are projected at once. */
static void
gemma4_unified (GPtrArray *list, guint64 hidden)
{
  static const char root[] = "model.vision_embedder.";
  static const char *const norms[] = { "patch_ln1", "patch_ln2", "pos_norm" };

  for (guint i = 0; i < G_N_ELEMENTS (norms); i++) {
    add_norm (list, OX_PART_TOWER, root, norms[i], i == 0 ? 6912 : hidden);
    add (list, OX_PART_TOWER, NAME ("%s%s.bias", root, norms[i]), i == 0 ? 6912 : hidden, 0, 0, 0);
  }
  add_linear (list, root, "patch_dense", hidden, 6912);
  add (list, OX_PART_TOWER, NAME ("%spos_embedding", root), 1120, 2, hidden, 0);
  add_matrix (list, OX_PART_TOWER, "model.embed_vision.", "embedding_projection", hidden, hidden);
  add_matrix (list, OX_PART_TOWER, "model.embed_audio.", "embedding_projection", hidden, 640);
}

static void
gemma4_layer (GPtrArray *list, const OxGemma4Size *size, guint i)
{
  g_autofree char *prefix = NAME ("model.language_model.layers.%u.", i);
  gboolean full = (i + 1) % size->period == 0;
  gboolean shared = i >= size->layers - size->shared;
  guint64 hidden = size->hidden;
  guint64 head_dim = full ? 512 : 256;
  guint64 q = size->heads * head_dim;
  guint64 kv = (full ? size->global_kv_heads : size->kv_heads) * head_dim;
  OxPart kv_part = shared ? OX_PART_UNUSED : OX_PART_TEXT;

  for (guint j = 0; j < G_N_ELEMENTS (four_norms); j++)
    add_norm (list, OX_PART_TEXT, prefix, four_norms[j], hidden);
  add_matrix (list, OX_PART_TEXT, prefix, "self_attn.q_proj", q, hidden);
  add_matrix (list, kv_part, prefix, "self_attn.k_proj", kv, hidden);
  if (!size->k_eq_v || !full)
    add_matrix (list, kv_part, prefix, "self_attn.v_proj", kv, hidden);
  add_matrix (list, OX_PART_TEXT, prefix, "self_attn.o_proj", hidden, q);
  add_norm (list, OX_PART_TEXT, prefix, "self_attn.q_norm", head_dim);
  add_norm (list, kv_part, prefix, "self_attn.k_norm", head_dim);
  add_gated_mlp (list, OX_PART_TEXT, prefix, hidden, size->intermediate * (shared && size->double_wide ? 2 : 1));
  add (list, OX_PART_TEXT, NAME ("%slayer_scalar", prefix), 1, 0, 0, 0);
  if (size->ple > 0) {
    add_matrix (list, OX_PART_TEXT, prefix, "per_layer_input_gate", size->ple, hidden);
    add_matrix (list, OX_PART_TEXT, prefix, "per_layer_projection", hidden, size->ple);
    add_norm (list, OX_PART_TEXT, prefix, "post_per_layer_input_norm", hidden);
  }
  if (size->experts == 0)
    return;
  add_matrix (list, OX_PART_TEXT, prefix, "router.proj", size->experts, hidden);
  add (list, OX_PART_TEXT, NAME ("%srouter.scale", prefix), hidden, 0, 0, 0);
  add (list, OX_PART_TEXT, NAME ("%srouter.per_expert_scale", prefix), size->experts, 0, 0, 0);
  add (list, OX_PART_TEXT, NAME ("%sexperts.gate_up_proj", prefix), size->experts, 2 * (guint64) size->expert_width,
       hidden, 0);
  add (list, OX_PART_TEXT, NAME ("%sexperts.down_proj", prefix), size->experts, hidden, size->expert_width, 0);
  add_norm (list, OX_PART_TEXT, prefix, "pre_feedforward_layernorm_2", hidden);
  add_norm (list, OX_PART_TEXT, prefix, "post_feedforward_layernorm_1", hidden);
  add_norm (list, OX_PART_TEXT, prefix, "post_feedforward_layernorm_2", hidden);
}

GPtrArray *
ox_published_gemma4 (const OxGemma4Size *size)
{
  static const char root[] = "model.language_model.";
  GPtrArray *list = list_new ();
  guint64 ple = (guint64) size->ple * size->layers;

  add_matrix (list, OX_PART_TEXT, root, "embed_tokens", GEMMA_VOCAB, size->hidden);
  add_norm (list, OX_PART_TEXT, root, "norm", size->hidden);
  if (ple > 0) {
    add_matrix (list, OX_PART_TABLE, root, "embed_tokens_per_layer", GEMMA_VOCAB, ple);
    add_matrix (list, OX_PART_TEXT, root, "per_layer_model_projection", ple, size->hidden);
    add_norm (list, OX_PART_TEXT, root, "per_layer_projection_norm", size->ple);
  }
  for (guint i = 0; i < size->layers; i++)
    gemma4_layer (list, size, i);
  if (size->towers == OX_TOWERS_UNIFIED) {
    gemma4_unified (list, size->hidden);
  } else {
    gemma4_vision (list, size->hidden, size->towers == OX_TOWERS_SMALL);
    if (size->towers == OX_TOWERS_SMALL)
      gemma4_audio (list, size->hidden);
  }
  return list;
}

/* "layer_types" of sliding layers and a full one in turn. */
static void
append_layer_types (GString *json, const char *other, guint layers, guint period)
{
  g_string_append (json, "\"layer_types\":[");
  for (guint i = 0; i < layers; i++)
    g_string_append_printf (json, "%s\"%s\"", i > 0 ? "," : "", (i + 1) % period == 0 ? "full_attention" : other);
  g_string_append (json, "],");
}

static const char gemma4_ropes[] =
  "\"rope_parameters\":{\"full_attention\":{\"partial_rotary_factor\":0.25,\"rope_theta\":1000000.0,\"rope_type\":"
  "\"proportional\"},\"sliding_attention\":{\"rope_theta\":10000.0,\"rope_type\":\"default\"}},";

char *
ox_published_gemma4_config (const OxGemma4Size *size)
{
  gboolean unified = size->towers == OX_TOWERS_UNIFIED;
  gboolean small = size->towers == OX_TOWERS_SMALL;
  g_autofree char *global = size->k_eq_v ? g_strdup_printf ("%u", size->global_kv_heads) : g_strdup ("null");
  g_autofree char *experts =
    g_strdup_printf ("\"enable_moe_block\":true,\"num_experts\":%u,\"top_k_experts\":%u,\"moe_intermediate_size\":%u,",
                     size->experts, size->top_k, size->expert_width);
  GString *json = g_string_new (NULL);

  g_string_append_printf (
    json,
    "{\"architectures\":[\"Gemma4ForConditionalGeneration\"],\"model_type\":\"%s\",\"dtype\":\"bfloat16\",\"eos_token_"
    "id\":[1,106],"
    "\"image_token_id\":258880,\"audio_token_id\":258881,\"eoa_token_index\":258883,\"tie_word_embeddings\":true,"
    "\"vision_soft_tokens_per_image\":280,\"vision_config\":{},\"audio_config\":%s,\"text_config\":{\"model_type\":\"%"
    "s\",",
    unified ? "gemma4_unified" : "gemma4", size->towers == OX_TOWERS_LARGE ? "null" : "{}",
    unified ? "gemma4_unified_text" : "gemma4_text");
  append_layer_types (json, "sliding_attention", size->layers, size->period);
  g_string_append (json, gemma4_ropes);
  g_string_append (json, size->experts > 0 ? experts
                                           : "\"enable_moe_block\":false,\"num_experts\":null,\"top_k_experts\":null,"
                                             "\"moe_intermediate_size\":null,");
  g_string_append_printf (
    json,
    "\"hidden_size\":%u,\"num_hidden_layers\":%u,\"num_attention_heads\":%u,\"num_key_value_heads\":%u,"
    "\"num_global_key_value_heads\":%s,\"head_dim\":256,\"global_head_dim\":512,\"attention_k_eq_v\":%s,"
    "\"intermediate_size\":%u,\"use_double_wide_mlp\":%s,\"num_kv_shared_layers\":%u,\"sliding_window\":%u,"
    "\"hidden_size_per_layer_input\":%u,\"vocab_size_per_layer_input\":262144,\"max_position_embeddings\":%u,"
    "\"use_bidirectional_attention\":%s,\"vocab_size\":262144,\"rms_norm_eps\":1e-06,\"hidden_activation\":"
    "\"gelu_pytorch_tanh\",\"final_logit_softcapping\":30.0,\"tie_word_embeddings\":true,\"attention_bias\":false,"
    "\"pad_token_id\":0,\"eos_token_id\":1,\"bos_token_id\":2}}",
    size->hidden, size->layers, size->heads, size->kv_heads, global, size->k_eq_v ? "true" : "false",
    size->intermediate, size->double_wide ? "true" : "false", size->shared, size->window, size->ple, size->positions,
    small ? "null" : "\"vision\"");
  return g_string_free (json, FALSE);
}

/* ---- Gemma 4's drafters ---- */

GPtrArray *
ox_published_assistant (const OxAssistantSize *size)
{
  GPtrArray *list = list_new ();
  guint64 hidden = size->hidden;

  add_matrix (list, OX_PART_TEXT, "", "pre_projection", hidden, 2 * (guint64) size->backbone);
  add_matrix (list, OX_PART_TEXT, "", "post_projection", size->backbone, hidden);
  add_matrix (list, OX_PART_TEXT, "model.", "embed_tokens", GEMMA_VOCAB, hidden);
  add_norm (list, OX_PART_TEXT, "model.", "norm", hidden);
  for (guint i = 0; i < 4; i++) {
    g_autofree char *prefix = NAME ("model.layers.%u.", i);
    guint64 head_dim = i == 3 ? 512 : 256;

    for (guint j = 0; j < G_N_ELEMENTS (four_norms); j++)
      add_norm (list, OX_PART_TEXT, prefix, four_norms[j], hidden);
    add_matrix (list, OX_PART_TEXT, prefix, "self_attn.q_proj", size->heads * head_dim, hidden);
    add_matrix (list, OX_PART_TEXT, prefix, "self_attn.o_proj", hidden, size->heads * head_dim);
    add_norm (list, OX_PART_TEXT, prefix, "self_attn.q_norm", head_dim);
    add_gated_mlp (list, OX_PART_TEXT, prefix, hidden, size->intermediate);
    add (list, OX_PART_TEXT, NAME ("%slayer_scalar", prefix), 1, 0, 0, 0);
  }
  if (size->centroids) {
    add_matrix (list, OX_PART_TEXT, "", "masked_embedding.centroids", 2048, hidden);
    add (list, OX_PART_TABLE, g_strdup ("masked_embedding.token_ordering"), GEMMA_VOCAB, 0, 0, 0)->dtype = "I64";
  }
  return list;
}

char *
ox_published_assistant_config (const OxAssistantSize *size)
{
  GString *json = g_string_new (NULL);
  gboolean k_eq_v = size->global_kv_heads != size->kv_heads;

  g_string_append_printf (
    json,
    "{\"model_type\":\"%s\",\"backbone_hidden_size\":%u,\"use_ordered_embeddings\":%s,\"num_centroids\":2048,"
    "\"centroid_intermediate_top_k\":32,\"tie_word_embeddings\":true,\"dtype\":\"bfloat16\",\"text_config\":{"
    "\"model_type\":\"%s\",",
    size->unified ? "gemma4_unified_assistant" : "gemma4_assistant", size->backbone, size->centroids ? "true" : "false",
    size->unified ? "gemma4_unified_text" : "gemma4_text");
  append_layer_types (json, "sliding_attention", 4, 4);
  g_string_append (json, gemma4_ropes);
  g_string_append_printf (
    json,
    "\"hidden_size\":%u,\"intermediate_size\":%u,\"num_hidden_layers\":4,\"num_attention_heads\":%u,"
    "\"num_key_value_heads\":%u,\"num_global_key_value_heads\":%u,\"attention_k_eq_v\":%s,\"head_dim\":256,"
    "\"global_head_dim\":512,\"num_kv_shared_layers\":4,\"sliding_window\":%u,\"hidden_size_per_layer_input\":0,"
    "\"vocab_size_per_layer_input\":0,\"enable_moe_block\":false,\"final_logit_softcapping\":null,\"vocab_size\":"
    "262144,"
    "\"max_position_embeddings\":131072,\"rms_norm_eps\":1e-06}}",
    size->hidden, size->intermediate, size->heads, size->kv_heads, size->global_kv_heads, k_eq_v ? "true" : "false",
    size->centroids ? 512 : 1024);
  return g_string_free (json, FALSE);
}

/* ---- Qwen 3.5 ---- */

static void
qwen35_attention (GPtrArray *list, OxPart part, const char *prefix, const OxQwen35Size *size)
{
  guint64 hidden = size->hidden;

  add_matrix (list, part, prefix, "self_attn.q_proj", size->heads * 512ull, hidden);
  add_matrix (list, part, prefix, "self_attn.k_proj", size->kv_heads * 256ull, hidden);
  add_matrix (list, part, prefix, "self_attn.v_proj", size->kv_heads * 256ull, hidden);
  add_matrix (list, part, prefix, "self_attn.o_proj", hidden, size->heads * 256ull);
  add_norm (list, part, prefix, "self_attn.q_norm", 256);
  add_norm (list, part, prefix, "self_attn.k_norm", 256);
}

static void
qwen35_delta_rule (GPtrArray *list, const char *prefix, const OxQwen35Size *size)
{
  guint64 hidden = size->hidden;
  guint64 values = size->value_heads * 128ull;
  guint64 channels = 2 * 16 * 128 + values;

  add_matrix (list, OX_PART_TEXT, prefix, "linear_attn.in_proj_qkv", channels, hidden);
  add_matrix (list, OX_PART_TEXT, prefix, "linear_attn.in_proj_z", values, hidden);
  add_matrix (list, OX_PART_TEXT, prefix, "linear_attn.in_proj_b", size->value_heads, hidden);
  add_matrix (list, OX_PART_TEXT, prefix, "linear_attn.in_proj_a", size->value_heads, hidden);
  add_matrix (list, OX_PART_TEXT, prefix, "linear_attn.out_proj", hidden, values);
  add (list, OX_PART_TEXT, NAME ("%slinear_attn.conv1d.weight", prefix), channels, 1, 4, 0);
  add (list, OX_PART_TEXT, NAME ("%slinear_attn.A_log", prefix), size->value_heads, 0, 0, 0);
  add (list, OX_PART_TEXT, NAME ("%slinear_attn.dt_bias", prefix), size->value_heads, 0, 0, 0);
  add_norm (list, OX_PART_TEXT, prefix, "linear_attn.norm", 128);
}

static void
qwen35_layer (GPtrArray *list, OxPart part, const char *prefix, gboolean linear, const OxQwen35Size *size)
{
  add_norm (list, part, prefix, "input_layernorm", size->hidden);
  add_norm (list, part, prefix, "post_attention_layernorm", size->hidden);
  if (linear)
    qwen35_delta_rule (list, prefix, size);
  else
    qwen35_attention (list, part, prefix, size);
  add_gated_mlp (list, part, prefix, size->hidden, size->intermediate);
}

static void
qwen35_vision (GPtrArray *list, const OxQwen35Size *size)
{
  static const char root[] = "model.visual.";
  guint64 hidden = size->vision_hidden;
  OxPublishedTensor *patch;

  patch = add (list, OX_PART_TOWER, NAME ("%spatch_embed.proj.weight", root), hidden, 3, 2, 16);
  patch->dims[patch->n_dims++] = 16;
  add (list, OX_PART_TOWER, NAME ("%spatch_embed.proj.bias", root), hidden, 0, 0, 0);
  add_matrix (list, OX_PART_TOWER, root, "pos_embed", 2304, hidden);
  for (guint i = 0; i < size->vision_depth; i++) {
    g_autofree char *prefix = NAME ("%sblocks.%u.", root, i);

    for (guint j = 1; j <= 2; j++) {
      add (list, OX_PART_TOWER, NAME ("%snorm%u.weight", prefix, j), hidden, 0, 0, 0);
      add (list, OX_PART_TOWER, NAME ("%snorm%u.bias", prefix, j), hidden, 0, 0, 0);
    }
    add_linear (list, prefix, "attn.qkv", 3 * hidden, hidden);
    add_linear (list, prefix, "attn.proj", hidden, hidden);
    add_linear (list, prefix, "mlp.linear_fc1", size->vision_intermediate, hidden);
    add_linear (list, prefix, "mlp.linear_fc2", hidden, size->vision_intermediate);
  }
  add_norm (list, OX_PART_TOWER, root, "merger.norm", hidden);
  add (list, OX_PART_TOWER, NAME ("%smerger.norm.bias", root), hidden, 0, 0, 0);
  add_linear (list, root, "merger.linear_fc1", 4 * hidden, 4 * hidden);
  add_linear (list, root, "merger.linear_fc2", size->hidden, 4 * hidden);
}

GPtrArray *
ox_published_qwen35 (const OxQwen35Size *size)
{
  static const char root[] = "model.language_model.";
  GPtrArray *list = list_new ();

  add_matrix (list, size->tied ? OX_PART_TEXT : OX_PART_TABLE, root, "embed_tokens", QWEN_VOCAB, size->hidden);
  add_norm (list, OX_PART_TEXT, root, "norm", size->hidden);
  if (!size->tied)
    add_matrix (list, OX_PART_TEXT, "", "lm_head", QWEN_VOCAB, size->hidden);
  for (guint i = 0; i < size->layers; i++) {
    g_autofree char *prefix = NAME ("%slayers.%u.", root, i);

    qwen35_layer (list, OX_PART_TEXT, prefix, (i + 1) % 4 != 0, size);
  }
  qwen35_layer (list, OX_PART_AHEAD, "mtp.layers.0.", FALSE, size);
  add_matrix (list, OX_PART_AHEAD, "mtp.", "fc", size->hidden, 2 * (guint64) size->hidden);
  add_norm (list, OX_PART_AHEAD, "mtp.", "norm", size->hidden);
  add_norm (list, OX_PART_AHEAD, "mtp.", "pre_fc_norm_embedding", size->hidden);
  add_norm (list, OX_PART_AHEAD, "mtp.", "pre_fc_norm_hidden", size->hidden);
  qwen35_vision (list, size);
  return list;
}

char *
ox_published_qwen35_config (const OxQwen35Size *size)
{
  GString *json = g_string_new ("{\"architectures\":[\"Qwen3_5ForConditionalGeneration\"],\"model_type\":\"qwen3_5\","
                                "\"image_token_id\":248056,\"vision_config\":{},\"text_config\":{\"model_type\":"
                                "\"qwen3_5_text\",");

  append_layer_types (json, "linear_attention", size->layers, 4);
  g_string_append_printf (
    json,
    "\"attention_bias\":false,\"attn_output_gate\":true,\"bos_token_id\":null,\"eos_token_id\":248044,"
    "\"full_attention_interval\":4,\"head_dim\":256,\"hidden_act\":\"silu\",\"hidden_size\":%u,\"intermediate_size\":%"
    "u,"
    "\"linear_conv_kernel_dim\":4,\"linear_key_head_dim\":128,\"linear_num_key_heads\":16,\"linear_num_value_heads\":%"
    "u,"
    "\"linear_value_head_dim\":128,\"mamba_ssm_dtype\":\"float32\",\"max_position_embeddings\":262144,"
    "\"mtp_num_hidden_layers\":1,\"mtp_use_dedicated_embeddings\":false,\"num_attention_heads\":%u,"
    "\"num_hidden_layers\":%u,\"num_key_value_heads\":%u,\"rms_norm_eps\":1e-06,\"tie_word_embeddings\":%s,"
    "\"vocab_size\":248320,\"rope_parameters\":{\"mrope_interleaved\":true,\"mrope_section\":[11,11,10],\"rope_type\":"
    "\"default\",\"rope_theta\":10000000,\"partial_rotary_factor\":0.25}},\"tie_word_embeddings\":%s}",
    size->hidden, size->intermediate, size->value_heads, size->heads, size->layers, size->kv_heads,
    size->tied ? "true" : "false", size->tied ? "true" : "false");
  return g_string_free (json, FALSE);
}

/* ---- Llama and its like, Gemma 3 ---- */

/* The tower of Gemma 3's larger models (SigLIP) and its projection. */
static void
gemma3_vision (GPtrArray *list, guint64 text_hidden)
{
  static const char root[] = "vision_tower.vision_model.";
  static const char *const projections[] = { "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                                             "self_attn.out_proj" };

  add (list, OX_PART_TOWER, NAME ("%sembeddings.patch_embedding.weight", root), 1152, 3, 14, 14);
  add (list, OX_PART_TOWER, NAME ("%sembeddings.patch_embedding.bias", root), 1152, 0, 0, 0);
  add_matrix (list, OX_PART_TOWER, root, "embeddings.position_embedding", 4096, 1152);
  for (guint i = 0; i < 27; i++) {
    g_autofree char *prefix = NAME ("%sencoder.layers.%u.", root, i);

    for (guint j = 1; j <= 2; j++) {
      add (list, OX_PART_TOWER, NAME ("%slayer_norm%u.weight", prefix, j), 1152, 0, 0, 0);
      add (list, OX_PART_TOWER, NAME ("%slayer_norm%u.bias", prefix, j), 1152, 0, 0, 0);
    }
    for (guint j = 0; j < G_N_ELEMENTS (projections); j++)
      add_linear (list, prefix, projections[j], 1152, 1152);
    add_linear (list, prefix, "mlp.fc1", 4304, 1152);
    add_linear (list, prefix, "mlp.fc2", 1152, 4304);
  }
  add_norm (list, OX_PART_TOWER, root, "post_layernorm", 1152);
  add (list, OX_PART_TOWER, NAME ("%spost_layernorm.bias", root), 1152, 0, 0, 0);
  add (list, OX_PART_TOWER, g_strdup ("multi_modal_projector.mm_input_projection_weight"), 1152, text_hidden, 0, 0);
  add_norm (list, OX_PART_TOWER, "multi_modal_projector.", "mm_soft_emb_norm", 1152);
}

GPtrArray *
ox_published_plain (const OxPlainSize *size)
{
  gboolean nested = strcmp (size->model_type, "gemma3") == 0;
  gboolean gemma = g_str_has_prefix (size->model_type, "gemma3");
  gboolean qk_norm = gemma || strcmp (size->model_type, "qwen3") == 0;
  const char *root = nested ? "language_model.model." : "model.";
  GPtrArray *list = list_new ();
  guint64 q = (guint64) size->heads * size->head_dim, kv = (guint64) size->kv_heads * size->head_dim;

  add_matrix (list, size->tied ? OX_PART_TEXT : OX_PART_TABLE, root, "embed_tokens", size->vocab, size->hidden);
  add_norm (list, OX_PART_TEXT, root, "norm", size->hidden);
  if (!size->tied || size->stored_head)
    add_matrix (list, size->tied ? OX_PART_UNUSED : OX_PART_TEXT, "", "lm_head", size->vocab, size->hidden);
  for (guint i = 0; i < size->layers; i++) {
    g_autofree char *prefix = NAME ("%slayers.%u.", root, i);

    for (guint j = 0; j < (gemma ? 4 : 2); j++)
      add_norm (list, OX_PART_TEXT, prefix, four_norms[j], size->hidden);
    add_matrix (list, OX_PART_TEXT, prefix, "self_attn.q_proj", q, size->hidden);
    add_matrix (list, OX_PART_TEXT, prefix, "self_attn.k_proj", kv, size->hidden);
    add_matrix (list, OX_PART_TEXT, prefix, "self_attn.v_proj", kv, size->hidden);
    add_matrix (list, OX_PART_TEXT, prefix, "self_attn.o_proj", size->hidden, q);
    if (strcmp (size->model_type, "qwen2") == 0) {
      add (list, OX_PART_TEXT, NAME ("%sself_attn.q_proj.bias", prefix), q, 0, 0, 0);
      add (list, OX_PART_TEXT, NAME ("%sself_attn.k_proj.bias", prefix), kv, 0, 0, 0);
      add (list, OX_PART_TEXT, NAME ("%sself_attn.v_proj.bias", prefix), kv, 0, 0, 0);
    }
    if (qk_norm) {
      add_norm (list, OX_PART_TEXT, prefix, "self_attn.q_norm", size->head_dim);
      add_norm (list, OX_PART_TEXT, prefix, "self_attn.k_norm", size->head_dim);
    }
    add_gated_mlp (list, OX_PART_TEXT, prefix, size->hidden, size->intermediate);
  }
  if (nested)
    gemma3_vision (list, size->hidden);
  return list;
}

char *
ox_published_plain_config (const OxPlainSize *size)
{
  gboolean nested = strcmp (size->model_type, "gemma3") == 0;
  gboolean gemma = g_str_has_prefix (size->model_type, "gemma3");

  return g_strdup_printf (
    "{\"model_type\":\"%s\",%s%s\"hidden_size\":%u,\"intermediate_size\":%u,\"num_hidden_layers\":%u,"
    "\"num_attention_heads\":%u,\"num_key_value_heads\":%u,\"head_dim\":%u,\"vocab_size\":%u,\"tie_word_embeddings\":%"
    "s,"
    "%s\"rms_norm_eps\":1e-06%s}",
    size->model_type, nested ? "\"vision_config\":{},\"text_config\":{\"model_type\":\"gemma3_text\"," : "", size->rope,
    size->hidden, size->intermediate, size->layers, size->heads, size->kv_heads, size->head_dim, size->vocab,
    size->tied ? "true" : "false", gemma ? "\"hidden_activation\":\"gelu_pytorch_tanh\"," : "\"hidden_act\":\"silu\",",
    nested ? "}" : "");
}

/* ---- Files ---- */

guint64
ox_published_elements (const OxPublishedTensor *tensor)
{
  guint64 n = 1;

  for (guint i = 0; i < tensor->n_dims; i++)
    n *= tensor->dims[i];
  return n;
}

guint64
ox_published_bytes (const OxPublishedTensor *tensor)
{
  return ox_published_elements (tensor) * (strcmp (tensor->dtype, "I64") == 0 ? 8 : 2);
}

static gboolean
write_all (int fd, const void *data, gsize len, guint64 offset)
{
  const guint8 *bytes = data;

  while (len > 0) {
    gssize n = pwrite (fd, bytes, len, (off_t) offset);

    if (n <= 0)
      return FALSE;
    bytes += n;
    offset += (guint64) n;
    len -= (gsize) n;
  }
  return TRUE;
}

/* Tensors [begin, end) into one file. */
static gboolean
write_file (GPtrArray *tensors, guint begin, guint end, const char *path)
{
  g_autoptr (GString) header = g_string_new ("{\"__metadata__\":{\"format\":\"pt\"}");
  guint64 offset = 0, len;
  int fd = g_open (path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  gboolean ok = fd >= 0;

  for (guint i = begin; i < end; i++) {
    const OxPublishedTensor *tensor = g_ptr_array_index (tensors, i);
    guint64 bytes = ox_published_bytes (tensor);

    g_string_append_printf (header, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[", tensor->name, tensor->dtype);
    for (guint j = 0; j < tensor->n_dims; j++)
      g_string_append_printf (header, "%s%" G_GUINT64_FORMAT, j > 0 ? "," : "", tensor->dims[j]);
    g_string_append_printf (header, "],\"data_offsets\":[%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT "]}", offset,
                            offset + bytes);
    offset += bytes;
  }
  g_string_append_c (header, '}');
  while (header->len % 8 != 0)
    g_string_append_c (header, ' ');
  len = GUINT64_TO_LE ((guint64) header->len);
  ok = ok && write_all (fd, &len, 8, 0) && write_all (fd, header->str, header->len, 8) &&
       ftruncate (fd, (off_t) (8 + header->len + offset)) == 0;
  offset = 8 + header->len;
  for (guint i = begin; i < end && ok; i++) {
    const OxPublishedTensor *tensor = g_ptr_array_index (tensors, i);

    if (strcmp (tensor->dtype, "I64") == 0) {
      g_autofree gint64 *order = g_new (gint64, tensor->dims[0]);

      for (guint64 j = 0; j < tensor->dims[0]; j++)
        order[j] = GINT64_TO_LE ((gint64) j);
      ok = write_all (fd, order, tensor->dims[0] * 8, offset);
    }
    offset += ox_published_bytes (tensor);
  }
  if (fd >= 0)
    close (fd);
  return ok;
}

gboolean
ox_published_write (GPtrArray *tensors, const char *folder, guint n_shards)
{
  g_autoptr (GString) index = g_string_new ("{\"metadata\":{},\"weight_map\":{");
  g_autofree char *index_path = g_build_filename (folder, "model.safetensors.index.json", NULL);

  for (guint i = 0; i < n_shards; i++) {
    guint begin = (guint) ((guint64) tensors->len * i / n_shards);
    guint end = (guint) ((guint64) tensors->len * (i + 1) / n_shards);
    g_autofree char *name = n_shards == 1 ? g_strdup ("model.safetensors")
                                          : g_strdup_printf ("model-%05u-of-%05u.safetensors", i + 1, n_shards);
    g_autofree char *path = g_build_filename (folder, name, NULL);

    if (!write_file (tensors, begin, end, path))
      return FALSE;
    for (guint j = begin; j < end; j++)
      g_string_append_printf (index, "%s\"%s\":\"%s\"", j > 0 ? "," : "",
                              ((OxPublishedTensor *) g_ptr_array_index (tensors, j))->name, name);
  }
  g_string_append (index, "}}");
  return n_shards == 1 || g_file_set_contents (index_path, index->str, (gssize) index->len, NULL);
}
