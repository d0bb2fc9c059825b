/* Configurations of Gemma 4, its drafters and Qwen 3.5: those of the golden checkpoints come out right from config.json and from
 * GGUF metadata, and both agree; what does not fit together is refused with the field's name.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-io-check.h"
#include "ox-pieces.h"

#include <string.h>

/* A golden checkpoint's folder or file; NULL after skipping the test where there is none. */
static char *
golden_path (const char *name)
{
  const char *data = g_getenv ("OX_TEST_DATA");
  g_autofree char *path = data ? g_build_filename (data, "golden", name, NULL) : NULL;

  if (path && g_file_test (path, G_FILE_TEST_EXISTS))
    return g_steal_pointer (&path);
  g_test_skip_printf ("%s is not there", name);
  return NULL;
}

static OxConfig *
load (const char *name)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = golden_path (name);
  g_autoptr (OxWeights) weights = NULL;
  OxConfig *config;

  if (!path)
    return NULL;
  weights = ox_weights_open (path, NULL, &error);
  g_assert_no_error (error);
  config = ox_config_load (path, weights, &error);
  g_assert_no_error (error);
  return config;
}

static void
check_ids (GArray *ids, guint n, ...)
{
  va_list args;

  va_start (args, n);
  g_assert_cmpuint (ids->len, ==, n);
  for (guint i = 0; i < n; i++)
    g_assert_cmpuint (g_array_index (ids, guint32, i), ==, va_arg (args, guint));
  va_end (args);
}

/* @expected: 's' sliding, 'f' full, 'l' linear. */
static void
check_layers (const OxConfig *config, const char *expected)
{
  g_assert_cmpuint (config->num_hidden_layers, ==, strlen (expected));
  for (guint i = 0; i < config->num_hidden_layers; i++)
    g_assert_cmpint ("fsl"[config->layer_kinds[i]], ==, expected[i]);
}

static void
check_gemma4 (const OxConfig *config, const char *layers, guint hidden, guint heads)
{
  g_assert_cmpint (config->family, ==, OX_FAMILY_GEMMA4);
  g_assert_cmpstr (config->architecture, ==, "gemma4");
  check_layers (config, layers);
  g_assert_cmpuint (config->hidden_size, ==, hidden);
  g_assert_cmpuint (config->num_attention_heads, ==, heads);
  g_assert_cmpuint (config->head_dim, ==, 16);
  g_assert_cmpuint (config->global_head_dim, ==, 32);
  g_assert_cmpuint (config->max_position_embeddings, ==, 131072);
  g_assert_cmpfloat_with_epsilon (config->rms_norm_eps, 1e-6, 1e-12);
  g_assert_cmpfloat (config->query_pre_attn_scalar, ==, 1);
  g_assert_cmpfloat (config->final_logit_softcapping, ==, 30);
  g_assert_true (config->tie_word_embeddings && config->qk_norm);
  g_assert_false (config->norm_plus_one || config->attention_bias || config->permuted_qk);
  g_assert_cmpfloat (config->rope.theta, ==, 1e6);
  g_assert_cmpfloat (config->rope_sliding.theta, ==, 1e4);
  g_assert_cmpint (config->rope_sliding.type, ==, OX_ROPE_DEFAULT);
  g_assert_cmpfloat (config->rope_sliding.partial_rotary_factor, ==, 1);
  if (config->from_gguf) {
    g_assert_cmpint (config->rope.type, ==, OX_ROPE_DEFAULT);
    g_assert_nonnull (config->rope.freq_factors);
    for (guint i = 0; i < 16; i++)
      g_assert_true (i < 4 ? config->rope.freq_factors[i] == 1 : config->rope.freq_factors[i] > 1e29f);
  } else {
    g_assert_cmpint (config->rope.type, ==, OX_ROPE_PROPORTIONAL);
    g_assert_cmpfloat (config->rope.partial_rotary_factor, ==, 0.25);
    g_assert_cmpfloat (config->rope.factor, ==, 1);
  }
  g_assert_null (config->rope_sliding.freq_factors);
  g_assert_cmpint (config->bos_token_id, ==, 2);
  g_assert_cmpuint (config->suppress_token_ids->len, ==, 0);
}

static void
test_gemma4_e2b (void)
{
  g_autoptr (OxConfig) config = load ("text/gemma4-e2b/model");

  if (!config)
    return;
  check_gemma4 (config, "ssfsssf", 64, 4);
  g_assert_cmpuint (config->vocab_size, ==, 384);
  g_assert_cmpuint (config->num_key_value_heads, ==, 1);
  g_assert_cmpuint (config->num_global_key_value_heads, ==, 1);
  g_assert_false (config->attention_k_eq_v);
  g_assert_cmpuint (config->sliding_window, ==, 12);
  g_assert_cmpuint (config->hidden_size_per_layer_input, ==, 32);
  g_assert_cmpuint (config->vocab_size_per_layer_input, ==, 384);
  g_assert_cmpuint (config->num_kv_shared_layers, ==, 3);
  g_assert_true (config->use_double_wide_mlp);
  g_assert_cmpuint (ox_config_intermediate_size (config, 3), ==, 64);
  g_assert_cmpuint (ox_config_intermediate_size (config, 4), ==, 128);
  g_assert_cmpuint (ox_config_kv_layer (config, 3), ==, 3);
  g_assert_cmpuint (ox_config_kv_layer (config, 4), ==, 3);
  g_assert_cmpuint (ox_config_kv_layer (config, 6), ==, 2);
  check_ids (config->eos_token_ids, 2, 1u, 106u);
}

/* The same model from config.json (flat, heads by layer) and from GGUF. */
static void
test_gemma4_e4b (void)
{
  static const char *const names[] = { "text/gemma4-e4b/model", "gguf/gemma4-e4b/bf16.gguf" };

  for (guint i = 0; i < 2; i++) {
    g_autoptr (OxConfig) config = load (names[i]);

    if (!config)
      return;
    g_assert_cmpint (config->from_gguf, ==, i);
    check_gemma4 (config, "sssssfsf", 64, 4);
    g_assert_cmpuint (config->vocab_size, ==, 320);
    g_assert_cmpuint (config->num_key_value_heads, ==, 2);
    g_assert_cmpuint (config->num_global_key_value_heads, ==, 2);
    g_assert_false (config->attention_k_eq_v || config->use_double_wide_mlp);
    g_assert_cmpuint (config->intermediate_size, ==, 64);
    g_assert_cmpuint (config->sliding_window, ==, 10);
    g_assert_cmpuint (config->hidden_size_per_layer_input, ==, 32);
    g_assert_cmpuint (config->vocab_size_per_layer_input, ==, 320);
    g_assert_cmpuint (config->num_kv_shared_layers, ==, 2);
    g_assert_cmpuint (ox_config_kv_layer (config, 6), ==, 4);
    g_assert_cmpuint (ox_config_kv_layer (config, 7), ==, 5);
    g_assert_cmpuint (config->num_experts, ==, 0);
  }
}

static void
test_gemma4_26b (void)
{
  static const char *const names[] = { "text/gemma4-26b/model", "gguf/gemma4-26b/bf16.gguf" };

  for (guint i = 0; i < 2; i++) {
    g_autoptr (OxConfig) config = load (names[i]);

    if (!config)
      return;
    check_gemma4 (config, "ssfsf", 64, 4);
    g_assert_cmpuint (config->num_key_value_heads, ==, 2);
    g_assert_cmpuint (config->num_global_key_value_heads, ==, 1);
    g_assert_true (config->attention_k_eq_v);
    g_assert_cmpuint (config->hidden_size_per_layer_input, ==, 0);
    g_assert_cmpuint (config->num_kv_shared_layers, ==, 0);
    g_assert_cmpuint (config->num_experts, ==, 8);
    g_assert_cmpuint (config->top_k_experts, ==, 2);
    g_assert_cmpuint (config->moe_intermediate_size, ==, 32);
    g_assert_cmpuint (config->intermediate_size, ==, 64);
  }
}

/* 12B (unified) and 31B. */
static void
test_gemma4_large (void)
{
  g_autoptr (OxConfig) a = load ("text/gemma4-12b/model");
  g_autoptr (OxConfig) b = load ("text/gemma4-31b/model");

  if (!a || !b)
    return;
  check_gemma4 (a, "sssssf", 64, 4);
  g_assert_true (a->attention_k_eq_v);
  g_assert_cmpuint (a->num_key_value_heads, ==, 2);
  g_assert_cmpuint (a->num_global_key_value_heads, ==, 1);
  g_assert_cmpuint (a->hidden_size_per_layer_input, ==, 0);
  check_gemma4 (b, "ssfssf", 96, 8);
  g_assert_true (b->attention_k_eq_v);
  g_assert_cmpuint (b->num_key_value_heads, ==, 4);
  g_assert_cmpuint (b->num_global_key_value_heads, ==, 2);
  g_assert_cmpuint (ox_config_kv_heads (b, 1), ==, 4);
  g_assert_cmpuint (ox_config_kv_heads (b, 2), ==, 2);
  g_assert_cmpuint (ox_config_head_dim (b, 1), ==, 16);
  g_assert_cmpuint (ox_config_head_dim (b, 2), ==, 32);
}

static void
test_drafter (void)
{
  g_autoptr (OxConfig) a = load ("text/gemma4-drafter/model");
  g_autoptr (OxConfig) b = load ("text/gemma4-drafter-centroid/model");

  if (!a || !b)
    return;
  g_assert_cmpint (a->family, ==, OX_FAMILY_GEMMA4_ASSISTANT);
  g_assert_cmpstr (a->architecture, ==, "gemma4-assistant");
  check_layers (a, "sssf");
  g_assert_cmpuint (a->num_kv_shared_layers, ==, 4);
  g_assert_cmpuint (a->backbone_hidden_size, ==, 64);
  g_assert_cmpfloat (a->final_logit_softcapping, ==, 0);
  g_assert_cmpfloat (a->query_pre_attn_scalar, ==, 1);
  g_assert_cmpuint (a->num_key_value_heads, ==, 1);
  g_assert_cmpuint (a->num_global_key_value_heads, ==, 1);
  g_assert_cmpuint (a->hidden_size_per_layer_input, ==, 0);
  g_assert_true (a->tie_word_embeddings);
  g_assert_false (a->use_ordered_embeddings || a->norm_plus_one);
  g_assert_true (b->use_ordered_embeddings);
  g_assert_cmpuint (b->num_centroids, ==, 32);
  g_assert_cmpuint (b->centroid_intermediate_top_k, ==, 8);
}

static void
check_qwen35 (const OxConfig *config, const char *layers, guint heads, guint value_heads, gboolean tied)
{
  g_assert_cmpint (config->family, ==, OX_FAMILY_QWEN35);
  g_assert_cmpstr (config->architecture, ==, "qwen35");
  check_layers (config, layers);
  g_assert_cmpuint (config->hidden_size, ==, 64);
  g_assert_cmpuint (config->intermediate_size, ==, 96);
  g_assert_cmpuint (config->num_attention_heads, ==, heads);
  g_assert_cmpuint (config->num_key_value_heads, ==, 2);
  g_assert_cmpuint (config->head_dim, ==, 32);
  g_assert_cmpuint (config->vocab_size, ==, 320);
  g_assert_cmpuint (config->max_position_embeddings, ==, 262144);
  g_assert_cmpfloat (config->query_pre_attn_scalar, ==, 32);
  g_assert_cmpfloat (config->rope.theta, ==, 1e7);
  g_assert_cmpint (config->rope.type, ==, OX_ROPE_DEFAULT);
  g_assert_cmpfloat (config->rope.partial_rotary_factor, ==, 0.25);
  g_assert_cmpuint (config->linear_num_key_heads, ==, 2);
  g_assert_cmpuint (config->linear_num_value_heads, ==, value_heads);
  g_assert_cmpuint (config->linear_key_head_dim, ==, 32);
  g_assert_cmpuint (config->linear_value_head_dim, ==, 32);
  g_assert_cmpuint (config->linear_conv_kernel_dim, ==, 4);
  g_assert_cmpint (config->tie_word_embeddings, ==, tied);
  g_assert_cmpint (config->norm_plus_one, ==, !config->from_gguf);
  g_assert_cmpint (config->linear_heads_tiled, ==, config->from_gguf);
  g_assert_cmpint (config->bos_token_id, ==, -1);
  g_assert_cmpuint (config->sliding_window, ==, 0);
}

static void
test_qwen35 (void)
{
  g_autoptr (OxConfig) small = load ("text/qwen35-small/model");
  g_autoptr (OxConfig) large = load ("text/qwen35-large/model");
  g_autoptr (OxConfig) gguf = load ("gguf/qwen35-large/bf16.gguf");

  if (!small || !large || !gguf)
    return;
  check_qwen35 (small, "lllf", 4, 2, TRUE);
  check_qwen35 (large, "lllflllf", 6, 4, FALSE);
  check_qwen35 (gguf, "lllflllf", 6, 4, FALSE);
  g_assert_cmpuint (small->mtp_num_hidden_layers, ==, 1);
  g_assert_cmpuint (gguf->mtp_num_hidden_layers, ==, 0);
  /* All of the file's ids lie outside of its tiny vocabulary. */
  g_assert_cmpuint (small->eos_token_ids->len, ==, 0);
  check_ids (gguf->eos_token_ids, 1, 319u);
}

/* @extra in the text's part of a full-size configuration. */
static OxConfig *
parse (const char *format, const char *extra, GError **error)
{
  g_autoptr (GString) json = g_string_new (format);

  g_assert_cmpuint (g_string_replace (json, "@", extra, 1), ==, 1);
  return ox_config_parse_json (json->str, json->len, OX_CHECK_FILE_NAME, error);
}

static const char e2b[] = "{\"model_type\":\"gemma4\",\"text_config\":{@\"num_hidden_layers\":35,\"hidden_size\":1536,"
                          "\"num_key_value_heads\":1,\"num_kv_shared_layers\":20,\"layer_types\":null}}";
static const char qwen[] = "{\"model_type\":\"qwen3_5_text\",@\"num_hidden_layers\":24}";

/* What a file leaves out is what the library's classes say, and null is the same as leaving out. */
static void
test_defaults (void)
{
  static const char generation[] = "{\"eos_token_id\":[1,106,50],\"suppress_tokens\":[258883,7,262144]}";
  g_autoptr (GError) error = NULL;
  g_autoptr (OxConfig) a = parse (e2b, "\"num_experts\":null,", &error);
  g_autoptr (OxConfig) b = NULL;
  g_autoptr (OxConfig) unified = NULL;

  g_assert_no_error (error);
  g_assert_cmpuint (a->head_dim, ==, 256);
  g_assert_cmpuint (a->global_head_dim, ==, 512);
  g_assert_cmpuint (a->vocab_size, ==, 262144);
  g_assert_cmpuint (a->hidden_size_per_layer_input, ==, 256);
  g_assert_cmpuint (a->sliding_window, ==, 512);
  g_assert_cmpint (a->rope.type, ==, OX_ROPE_PROPORTIONAL);
  g_assert_cmpfloat (a->rope.partial_rotary_factor, ==, 0.25);
  check_layers (a, "sssssfsssssfsssssfsssssfsssssfssssf");
  check_ids (a->suppress_token_ids, 7, 255999u, 256000u, 258880u, 258881u, 258882u, 258883u, 258884u);
  g_assert_true (ox_config_add_generation_json (a, generation, strlen (generation), OX_CHECK_FILE_NAME, &error));
  g_assert_no_error (error);
  check_ids (a->eos_token_ids, 3, 1u, 106u, 50u);
  check_ids (a->suppress_token_ids, 8, 255999u, 256000u, 258880u, 258881u, 258882u, 258883u, 258884u, 7u);

  b = parse (qwen, "\"rope_parameters\":{\"rope_theta\":1e7,\"mrope_section\":[11,11,10]},\"eos_token_id\":7,", &error);
  g_assert_no_error (error);
  g_assert_cmpfloat (b->rope.partial_rotary_factor, ==, 0.25);
  g_assert_cmpfloat (b->rope.theta, ==, 1e7);
  g_assert_false (b->tie_word_embeddings);
  check_ids (b->eos_token_ids, 3, 7u, 248046u, 248044u);

  unified = ox_config_parse_json ("{\"model_type\":\"gemma4_unified_text\"}", 36, OX_CHECK_FILE_NAME, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (unified->hidden_size_per_layer_input, ==, 0);
  g_assert_cmpuint (unified->sliding_window, ==, 1024);
  g_assert_cmpuint (unified->max_position_embeddings, ==, 262144);
}

/* ---- What does not fit together ---- */

static const char large[] =
  "{\"model_type\":\"gemma4\",\"text_config\":{@\"attention_k_eq_v\":true,\"enable_moe_block\":true,\"num_experts\":"
  "128,"
  "\"top_k_experts\":8,\"moe_intermediate_size\":704,\"num_attention_heads\":16,\"num_key_value_heads\":8,"
  "\"num_global_key_value_heads\":2}}";
static const char drafter[] =
  "{\"model_type\":\"gemma4_assistant\",\"use_ordered_embeddings\":true,\"num_centroids\":2048,"
  "\"text_config\":{@\"num_hidden_layers\":4}}";
/* @extra takes the place of fields of the same name behind it: the first of two counts. */
static const struct {
  const char *name;
  const char *base;
  const char *extra;
  int code;
  const char *text;
} misfits[] = {
  { "heads", large, "\"num_attention_heads\":12,", OX_ERROR_DAMAGED,
    "“text_config.num_attention_heads” is 12, a multiple of “text_config.num_key_value_heads” (8) was expected" },
  { "global-heads", large, "\"num_global_key_value_heads\":3,", OX_ERROR_DAMAGED,
    "“text_config.num_attention_heads” is 16, a multiple of “text_config.num_global_key_value_heads” (3)" },
  { "global-head-dim", large, "\"global_head_dim\":33,", OX_ERROR_DAMAGED, "“text_config.global_head_dim” is 33" },
  { "wide-heads", large, "\"num_attention_heads\":4096,\"head_dim\":4096,", OX_ERROR_DAMAGED,
    "“text_config.num_attention_heads” is 4096, at most 256 heads of “text_config.head_dim” (4096) was expected" },
  { "top-k", large, "\"top_k_experts\":129,", OX_ERROR_DAMAGED,
    "“text_config.top_k_experts” is 129, at most “text_config.num_experts” (128) was expected" },
  { "experts-missing", large, "\"num_experts\":null,", OX_ERROR_DAMAGED, "“text_config.num_experts” is missing" },
  { "expert-width", large, "\"num_experts\":4096,\"moe_intermediate_size\":4097,", OX_ERROR_DAMAGED,
    "“text_config.moe_intermediate_size” is 4097" },
  { "per-layer-input", e2b, "\"hidden_size_per_layer_input\":30000,", OX_ERROR_DAMAGED,
    "“text_config.hidden_size_per_layer_input” is 30000" },
  { "per-layer-vocab", e2b, "\"vocab_size_per_layer_input\":262143,", OX_ERROR_DAMAGED,
    "“text_config.vocab_size_per_layer_input” is 262143, at least “text_config.vocab_size” (262144) was expected" },
  { "all-shared", e2b, "\"num_kv_shared_layers\":35,", OX_ERROR_DAMAGED,
    "“text_config.num_kv_shared_layers” is 35, less than “text_config.num_hidden_layers” (35) was expected" },
  { "shared-full", e2b, "\"num_kv_shared_layers\":30,", OX_ERROR_DAMAGED, "finds an earlier one of its kind" },
  { "flat-rope", e2b, "\"rope_parameters\":{\"rope_theta\":1e6},", OX_ERROR_DAMAGED,
    "“text_config.rope_parameters.full_attention” is missing" },
  { "part-of-default", e2b,
    "\"rope_parameters\":{\"full_attention\":{\"rope_type\":\"default\",\"partial_rotary_factor\":0.25}},",
    OX_ERROR_UNSUPPORTED, "“text_config.rope_parameters.full_attention.partial_rotary_factor” is 0.25" },
  { "rope-type", e2b, "\"rope_parameters\":{\"full_attention\":{\"rope_type\":\"yarn\",\"factor\":4}},",
    OX_ERROR_UNSUPPORTED, "“text_config.rope_parameters.full_attention.rope_type” is “yarn”" },
  { "linear-layer", e2b, "\"num_hidden_layers\":1,\"layer_types\":[\"linear_attention\"],", OX_ERROR_UNSUPPORTED,
    "“text_config.layer_types” has “linear_attention” for layer 0" },
  { "direction", e2b, "\"use_bidirectional_attention\":\"all\",", OX_ERROR_UNSUPPORTED,
    "“text_config.use_bidirectional_attention” is “all”" },
  { "override", e2b, "\"per_layer_config\":{\"4\":{\"sliding_window\":8}},", OX_ERROR_UNSUPPORTED,
    "“text_config.per_layer_config.4.sliding_window”" },
  { "override-sliding", e2b, "\"per_layer_config\":{\"0\":{\"head_dim\":64}},", OX_ERROR_UNSUPPORTED,
    "“text_config.per_layer_config.0”" },
  { "inner-kind", e2b, "\"model_type\":\"qwen3_5_text\",", OX_ERROR_UNSUPPORTED,
    "“text_config.model_type” is “qwen3_5_text” in a model of kind “gemma4”" },
  { "inner-unknown", e2b, "\"model_type\":\"gemma5_text\",", OX_ERROR_UNSUPPORTED, "“gemma5_text”" },
  { "drafter-shared", drafter, "\"num_kv_shared_layers\":2,", OX_ERROR_DAMAGED,
    "“text_config.num_kv_shared_layers” is 2, “num_hidden_layers” (4), as in every drafter, was expected" },
  { "drafter-experts", drafter,
    "\"enable_moe_block\":true,\"num_experts\":8,\"top_k_experts\":2,\"moe_intermediate_size\":8,",
    OX_ERROR_UNSUPPORTED, "“text_config.enable_moe_block” is true in a drafter" },
  { "centroids", drafter, "\"vocab_size\":262145,", OX_ERROR_DAMAGED, "num_centroids" },
  { "qwen-heads", qwen, "\"linear_num_value_heads\":40,", OX_ERROR_DAMAGED,
    "“linear_num_value_heads” is 40, a multiple of “linear_num_key_heads” (16) was expected" },
  { "qwen-odd-part", qwen, "\"partial_rotary_factor\":0.254,", OX_ERROR_DAMAGED,
    "“rope_parameters” says that 0.254 of “head_dim” (256) is rotated, an even number of values was expected" },
  { "qwen-gate", qwen, "\"attn_output_gate\":false,", OX_ERROR_UNSUPPORTED, "“attn_output_gate” is false" },
  { "qwen-experts", qwen, "\"num_experts\":256,", OX_ERROR_UNSUPPORTED, "mixture of experts" },
  { "qwen-sliding", qwen, "\"layer_types\":[\"sliding_attention\"],\"num_hidden_layers\":1,", OX_ERROR_UNSUPPORTED,
    "“sliding_attention” for layer 0" },
  { "qwen-eos", qwen, "\"eos_token_id\":\"x\",", OX_ERROR_DAMAGED, "“eos_token_id” is “x”" },
};

static void
test_misfit (gconstpointer data)
{
  guint i = GPOINTER_TO_UINT (data);
  g_autoptr (GError) error = NULL;

  g_assert_null (parse (misfits[i].base, misfits[i].extra, &error));
  ox_check_error (&error, misfits[i].code, OX_CHECK_FILE_NAME, misfits[i].text);
}

static const struct {
  const char *key;
  int code;
  const char *text;
  OxPiece pieces[8];
} gguf_misfits[] = {
  { "gemma4.attention.head_count_kv",
    OX_ERROR_UNSUPPORTED,
    "differs between layers of one kind",
    { U32 (9), U32 (4), U64 (4), U32 (2), U32 (1), U32 (1), U32 (1) } },
  { "gemma4.attention.head_count_kv",
    OX_ERROR_DAMAGED,
    "a multiple of “gemma4.attention.head_count_kv” (3)",
    { U32 (9), U32 (4), U64 (4), U32 (2), U32 (3), U32 (2), U32 (3) } },
  { "gemma4.feed_forward_length",
    OX_ERROR_UNSUPPORTED,
    "gemma4.attention.shared_kv_layers",
    { U32 (9), U32 (4), U64 (4), U32 (32), U32 (64), U32 (64), U32 (64) } },
  { "gemma4.attention.shared_kv_layers", OX_ERROR_DAMAGED, "less than “gemma4.block_count” (4)", { U32 (4), U32 (4) } },
  { "gemma4.attention.value_length_swa",
    OX_ERROR_UNSUPPORTED,
    "differs from “gemma4.attention.key_length_swa”",
    { U32 (4), U32 (16) } },
  { "gemma4.rope.dimension_count",
    OX_ERROR_UNSUPPORTED,
    "differs from “gemma4.attention.key_length”",
    { U32 (4), U32 (4) } },
  { "gemma4.expert_used_count", OX_ERROR_DAMAGED, "at most “gemma4.expert_count” (8)", { U32 (4), U32 (9) } },
  { "gemma4.rope.scaling.type", OX_ERROR_UNSUPPORTED, "positions are scaled by “yarn”", { U32 (8), STR ("yarn") } },
  { "gemma4.attn_logit_softcapping", OX_ERROR_UNSUPPORTED, "scores are capped", { U32 (6), F32 (50) } },
  { "qwen35.nextn_predict_layers", OX_ERROR_DAMAGED, "less than “qwen35.block_count” (5)", { U32 (4), U32 (5) } },
  { "qwen35.rope.dimension_count", OX_ERROR_DAMAGED, "“qwen35.attention.key_length” (16)", { U32 (4), U32 (3) } },
  { "qwen35.ssm.inner_size", OX_ERROR_DAMAGED, "a multiple of “qwen35.ssm.time_step_rank” (4)", { U32 (4), U32 (33) } },
  { "qwen35.ssm.time_step_rank", OX_ERROR_DAMAGED, "a multiple of “qwen35.ssm.group_count” (2)", { U32 (4), U32 (1) } },
  { "qwen35.expert_count", OX_ERROR_UNSUPPORTED, "mixture of experts", { U32 (4), U32 (64) } },
};

static void
test_gguf_misfits (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (gguf_misfits); i++) {
    gboolean gemma = g_str_has_prefix (gguf_misfits[i].key, "gemma4");
    gsize n = 0;
    g_autoptr (GError) error = NULL;
    g_autoptr (GBytes) bytes = NULL;
    g_autoptr (OxFile) file = NULL;
    g_autoptr (OxWeights) weights = NULL;

    while (n < G_N_ELEMENTS (gguf_misfits[i].pieces) && gguf_misfits[i].pieces[n].kind != OX_PIECE_END)
      n++;
    bytes = gemma ? ox_build_gemma4_gguf (gguf_misfits[i].key, gguf_misfits[i].pieces, n)
                  : ox_build_qwen35_gguf (gguf_misfits[i].key, gguf_misfits[i].pieces, n);
    file = ox_file_new_for_bytes (bytes, OX_CHECK_FILE_NAME);
    weights = ox_weights_open_gguf (file, &error);
    g_assert_no_error (error);
    g_assert_null (ox_config_from_gguf (ox_weights_get_gguf (weights), weights, OX_CHECK_FILE_NAME, &error));
    ox_check_error (&error, gguf_misfits[i].code, OX_CHECK_FILE_NAME, gguf_misfits[i].text);
  }
}

/* Numbers by layer, layers that share, and layers that predict further tokens. */
static void
test_gguf (void)
{
  static const OxPiece by_layer[] = { U32 (9), U32 (4), U64 (5), U32 (0), U32 (0), U32 (0), U32 (2), U32 (2) };
  static const OxPiece recurrent[] = { U32 (9), U32 (7), U64 (4), U8 (0), U8 (1), U8 (1), U8 (0) };
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) gemma_bytes = ox_build_gemma4_gguf (NULL, NULL, 0);
  g_autoptr (GBytes) qwen_bytes = ox_build_qwen35_gguf ("qwen35.attention.head_count_kv", by_layer, 8);
  g_autoptr (GBytes) listed_bytes = ox_build_qwen35_gguf ("qwen35.attention.recurrent_layers", recurrent, 7);
  GBytes *all[] = { gemma_bytes, qwen_bytes, listed_bytes };
  OxConfig *configs[3];

  for (guint i = 0; i < 3; i++) {
    g_autoptr (OxFile) file = ox_file_new_for_bytes (all[i], OX_CHECK_FILE_NAME);
    g_autoptr (OxWeights) weights = ox_weights_open_gguf (file, &error);

    g_assert_no_error (error);
    configs[i] = ox_config_from_gguf (ox_weights_get_gguf (weights), weights, OX_CHECK_FILE_NAME, &error);
    g_assert_no_error (error);
  }
  check_layers (configs[0], "sfsf");
  g_assert_true (configs[0]->use_double_wide_mlp && configs[0]->attention_k_eq_v);
  g_assert_cmpuint (configs[0]->intermediate_size, ==, 32);
  g_assert_cmpuint (ox_config_intermediate_size (configs[0], 2), ==, 64);
  g_assert_cmpuint (configs[0]->num_key_value_heads, ==, 2);
  g_assert_cmpuint (configs[0]->num_global_key_value_heads, ==, 1);
  g_assert_cmpuint (configs[0]->num_kv_shared_layers, ==, 2);
  g_assert_cmpint (configs[0]->rope.type, ==, OX_ROPE_PROPORTIONAL);
  check_ids (configs[0]->eos_token_ids, 2, 0u, 2u);

  check_layers (configs[1], "lllf");
  g_assert_cmpuint (configs[1]->mtp_num_hidden_layers, ==, 1);
  g_assert_cmpuint (configs[1]->num_key_value_heads, ==, 2);
  g_assert_cmpuint (configs[1]->linear_value_head_dim, ==, 8);
  g_assert_true (configs[1]->linear_heads_tiled);
  g_assert_false (configs[1]->norm_plus_one || configs[1]->tie_word_embeddings);
  check_layers (configs[2], "fllf");
  for (guint i = 0; i < 3; i++)
    ox_config_free (configs[i]);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/config/families/gemma4-e2b", test_gemma4_e2b);
  g_test_add_func ("/config/families/gemma4-e4b", test_gemma4_e4b);
  g_test_add_func ("/config/families/gemma4-26b", test_gemma4_26b);
  g_test_add_func ("/config/families/gemma4-large", test_gemma4_large);
  g_test_add_func ("/config/families/drafter", test_drafter);
  g_test_add_func ("/config/families/qwen35", test_qwen35);
  g_test_add_func ("/config/families/defaults", test_defaults);
  for (guint i = 0; i < G_N_ELEMENTS (misfits); i++) {
    g_autofree char *path = g_strconcat ("/config/families/misfit/", misfits[i].name, NULL);

    g_test_add_data_func (path, GUINT_TO_POINTER (i), test_misfit);
  }
  g_test_add_func ("/config/families/gguf", test_gguf);
  g_test_add_func ("/config/families/gguf-misfits", test_gguf_misfits);
  return g_test_run ();
}
