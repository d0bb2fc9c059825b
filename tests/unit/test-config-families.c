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
  return g_test_run ();
}
