/* The readers on real model files, when OX_TEST_MODELS names a folder that has them.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-io-check.h"

#include <math.h>
#include <string.h>

/* The weights and configuration of @name, or FALSE after g_test_skip(). */
static gboolean
open_model (const char *name, OxWeights **weights, OxConfig **config)
{
  const char *folder = g_getenv ("OX_TEST_MODELS");
  g_autofree char *path = folder ? g_build_filename (folder, name, NULL) : NULL;
  g_autoptr (GError) error = NULL;

  if (!path || !g_file_test (path, G_FILE_TEST_EXISTS)) {
    g_autofree char *reason = g_strdup_printf ("OX_TEST_MODELS names no folder with %s", name);

    g_test_skip (reason);
    return FALSE;
  }
  *weights = ox_weights_open (path, NULL, &error);
  g_assert_no_error (error);
  *config = ox_config_load (path, *weights, &error);
  g_assert_no_error (error);
  return TRUE;
}

static void
check_tensor (OxWeights *weights, const char *name, const char *expected)
{
  const OxTensorInfo *tensor = ox_weights_find (weights, name);
  g_autofree char *text = NULL;

  g_assert_nonnull (tensor);
  text = ox_tensor_describe (tensor);
  g_assert_cmpstr (text, ==, expected);
}

static void
check_token (OxWeights *weights, gsize index, const char *expected)
{
  gsize len;
  const char *text = ox_gguf_get_array_string (ox_weights_get_gguf (weights), "tokenizer.ggml.tokens", index, &len);

  g_assert_nonnull (text);
  g_assert_cmpmem (text, len, expected, strlen (expected));
}

/* All values of the last norm are finite and not all alike. */
static void
check_values (OxWeights *weights)
{
  g_autoptr (GError) error = NULL;
  g_autofree float *norm = ox_tensor_read_f32 (ox_weights_find (weights, "output_norm.weight"), &error);
  gsize n = ox_weights_find (weights, "output_norm.weight")->n_elements;
  gboolean varied = FALSE;

  g_assert_no_error (error);
  for (gsize i = 0; i < n; i++) {
    g_assert_true (isfinite (norm[i]));
    varied = varied || norm[i] != norm[0];
  }
  g_assert_true (varied);
}

static void
test_smollm2 (void)
{
  g_autoptr (OxWeights) weights = NULL;
  g_autoptr (OxConfig) config = NULL;

  if (!open_model ("SmolLM2-135M-Instruct.Q4_1.gguf", &weights, &config))
    return;
  g_assert_cmpuint (ox_weights_get_n_tensors (weights), ==, 272);
  g_assert_cmpuint (ox_weights_get_file_bytes (weights), ==, 98362432);
  check_tensor (weights, "token_embd.weight", "Q8_0 [49152, 576]");
  check_tensor (weights, "blk.0.attn_k.weight", "Q4_1 [192, 576]");
  check_tensor (weights, "blk.29.ffn_down.weight", "Q4_1 [576, 1536]");
  check_tensor (weights, "output_norm.weight", "F32 [576]");
  check_token (weights, 2, "<|im_end|>");
  check_values (weights);
  g_assert_cmpint (config->family, ==, OX_FAMILY_LLAMA);
  g_assert_cmpuint (config->hidden_size, ==, 576);
  g_assert_cmpuint (config->intermediate_size, ==, 1536);
  g_assert_cmpuint (config->num_hidden_layers, ==, 30);
  g_assert_cmpuint (config->num_attention_heads, ==, 9);
  g_assert_cmpuint (config->num_key_value_heads, ==, 3);
  g_assert_cmpuint (config->head_dim, ==, 64);
  g_assert_cmpuint (config->vocab_size, ==, 49152);
  g_assert_cmpuint (config->max_position_embeddings, ==, 8192);
  g_assert_cmpfloat (config->rope.theta, ==, 100000);
  g_assert_true (config->permuted_qk && config->tie_word_embeddings);
  g_assert_cmpint (config->bos_token_id, ==, 1);
  g_assert_cmpuint (g_array_index (config->eos_token_ids, guint32, 0), ==, 2);
}

static void
test_gemma3 (void)
{
  g_autoptr (OxWeights) weights = NULL;
  g_autoptr (OxConfig) config = NULL;

  if (!open_model ("gemma-3-270m-q4_k_m.gguf", &weights, &config))
    return;
  g_assert_cmpuint (ox_weights_get_n_tensors (weights), ==, 236);
  check_tensor (weights, "token_embd.weight", "Q8_0 [262144, 640]");
  check_tensor (weights, "blk.0.attn_q.weight", "Q5_0 [1024, 640]");
  check_tensor (weights, "blk.0.ffn_down.weight", "Q6_K [640, 2048]");
  check_tensor (weights, "blk.17.attn_k_norm.weight", "F32 [256]");
  check_token (weights, 106, "<end_of_turn>");
  check_values (weights);
  g_assert_cmpint (config->family, ==, OX_FAMILY_GEMMA3);
  g_assert_cmpuint (config->hidden_size, ==, 640);
  g_assert_cmpuint (config->num_hidden_layers, ==, 18);
  g_assert_cmpuint (config->num_attention_heads, ==, 4);
  g_assert_cmpuint (config->num_key_value_heads, ==, 1);
  g_assert_cmpuint (config->head_dim, ==, 256);
  g_assert_cmpuint (config->vocab_size, ==, 262144);
  g_assert_cmpuint (config->sliding_window, ==, 512);
  g_assert_true (ox_config_is_sliding (config, 0) && !ox_config_is_sliding (config, 5) &&
                 !ox_config_is_sliding (config, 17));
  g_assert_cmpfloat (config->rope.theta, ==, 1e6);
  g_assert_cmpfloat (config->rope_sliding.theta, ==, 1e4);
  g_assert_cmpfloat (config->query_pre_attn_scalar, ==, 256);
  g_assert_true (config->tie_word_embeddings && !config->permuted_qk && !config->norm_plus_one);
  g_assert_cmpuint (g_array_index (config->eos_token_ids, guint32, 0), ==, 1);
  g_assert_cmpuint (g_array_index (config->eos_token_ids, guint32, 1), ==, 106);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/io/real/smollm2", test_smollm2);
  g_test_add_func ("/io/real/gemma3", test_gemma3);
  return g_test_run ();
}
