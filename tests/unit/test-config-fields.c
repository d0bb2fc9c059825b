/* Every field of a configuration and every metadata key given every kind of senseless value: what comes out is a configuration
 * that fits together or an error that names the field.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "io/ox-json.h"
#include "ox-io-check.h"
#include "ox-pieces.h"

#include <string.h>
#include <yyjson.h>

/* One configuration a family, with every field that is looked at. */
static const struct {
  const char *name;
  const char *json;
} families[] = {
  { "llama",
    "{\"model_type\":\"llama\",\"attention_bias\":false,\"bos_token_id\":1,\"eos_token_id\":[2,3],\"head_dim\":64,"
    "\"hidden_act\":\"silu\",\"hidden_size\":2048,\"intermediate_size\":8192,\"max_position_embeddings\":131072,"
    "\"mlp_bias\":false,\"num_attention_heads\":32,\"num_hidden_layers\":16,\"num_key_value_heads\":8,\"rms_norm_eps\":"
    "1e-05,\"rope_scaling\":{\"factor\":32.0,\"high_freq_factor\":4.0,\"low_freq_factor\":1.0,"
    "\"original_max_position_embeddings\":8192,\"rope_type\":\"llama3\"},\"rope_theta\":500000.0,"
    "\"tie_word_embeddings\":true,\"vocab_size\":128256,\"partial_rotary_factor\":1,\"use_bidirectional_attention\":"
    "false}" },
  { "qwen2",
    "{\"model_type\":\"qwen2\",\"hidden_act\":\"silu\",\"hidden_size\":896,\"intermediate_size\":4864,"
    "\"max_position_embeddings\":32768,\"max_window_layers\":2,\"num_attention_heads\":14,\"num_hidden_layers\":4,"
    "\"num_key_value_heads\":2,\"rms_norm_eps\":1e-06,\"rope_theta\":1000000.0,\"sliding_window\":64,"
    "\"tie_word_embeddings\":true,\"use_sliding_window\":true,\"vocab_size\":1000}" },
  { "gemma3",
    "{\"model_type\":\"gemma3\",\"eos_token_id\":1,\"text_config\":{\"model_type\":\"gemma3_text\",\"head_dim\":32,"
    "\"hidden_activation\":\"gelu_pytorch_tanh\",\"hidden_size\":64,\"intermediate_size\":96,\"num_attention_heads\":4,"
    "\"num_hidden_layers\":3,\"num_key_value_heads\":2,\"layer_types\":[\"sliding_attention\",\"full_attention\","
    "\"sliding_attention\"],\"query_pre_attn_scalar\":24,\"rope_parameters\":{\"full_attention\":{\"factor\":8.0,"
    "\"rope_theta\":1e6,\"rope_type\":\"linear\"},\"sliding_attention\":{\"rope_theta\":1e4,\"rope_type\":\"default\"}}"
    ",\"sliding_window\":512,\"vocab_size\":320}}" },
  { "gemma3-old",
    "{\"model_type\":\"gemma3_text\",\"hidden_size\":64,\"num_hidden_layers\":7,\"rope_local_base_freq\":20000,"
    "\"rope_scaling\":{\"factor\":8.0,\"rope_type\":\"linear\"},\"rope_theta\":2000000,\"sliding_window\":12,"
    "\"sliding_window_pattern\":6}" },
  { "gemma4",
    "{\"model_type\":\"gemma4\",\"boi_token_id\":9,\"boa_token_id\":9,\"eoi_token_id\":9,\"eoa_token_index\":9,"
    "\"image_token_id\":9,\"audio_token_id\":9,\"video_token_id\":9,\"eos_token_id\":[1,106],\"tie_word_embeddings\":"
    "true,\"text_config\":{\"model_type\":\"gemma4_text\",\"attention_bias\":false,\"attention_k_eq_v\":true,"
    "\"bos_token_id\":2,\"enable_moe_block\":true,\"final_logit_softcapping\":30.0,\"global_head_dim\":32,"
    "\"head_dim\":16,\"hidden_activation\":\"gelu_pytorch_tanh\",\"hidden_size\":64,\"hidden_size_per_layer_input\":32,"
    "\"intermediate_size\":64,\"layer_types\":[\"sliding_attention\",\"full_attention\",\"sliding_attention\","
    "\"full_attention\"],\"max_position_embeddings\":131072,\"moe_intermediate_size\":32,\"num_attention_heads\":4,"
    "\"num_experts\":8,\"num_global_key_value_heads\":1,\"num_hidden_layers\":4,\"num_key_value_heads\":2,"
    "\"num_kv_shared_layers\":2,\"rms_norm_eps\":1e-6,\"rope_parameters\":{\"full_attention\":"
    "{\"partial_rotary_factor\":0.25,\"rope_theta\":1e6,\"rope_type\":\"proportional\"},\"sliding_attention\":"
    "{\"rope_theta\":1e4,\"rope_type\":\"default\"}},\"sliding_window\":12,\"top_k_experts\":2,"
    "\"use_bidirectional_attention\":\"vision\",\"use_double_wide_mlp\":true,\"vocab_size\":320,"
    "\"vocab_size_per_layer_input\":320}}" },
  { "gemma4-by-layer",
    "{\"model_type\":\"gemma4_text\",\"head_dim\":16,\"hidden_size\":64,\"hidden_size_per_layer_input\":0,"
    "\"num_attention_heads\":4,\"num_hidden_layers\":8,\"num_key_value_heads\":2,\"per_layer_config\":{\"5\":"
    "{\"head_dim\":32,\"num_key_value_heads\":1},\"7\":{\"head_dim\":32,\"num_key_value_heads\":1}}}" },
  { "gemma4-assistant",
    "{\"model_type\":\"gemma4_assistant\",\"backbone_hidden_size\":64,\"centroid_intermediate_top_k\":8,"
    "\"num_centroids\":32,\"use_ordered_embeddings\":true,\"text_config\":{\"model_type\":\"gemma4_text\",\"head_dim\":"
    "16,\"global_head_dim\":32,\"hidden_size\":64,\"hidden_size_per_layer_input\":0,\"intermediate_size\":64,"
    "\"num_attention_heads\":4,\"num_hidden_layers\":4,\"num_key_value_heads\":1,\"num_kv_shared_layers\":4,"
    "\"vocab_size\":384}}" },
  { "qwen35",
    "{\"model_type\":\"qwen3_5\",\"tie_word_embeddings\":true,\"text_config\":{\"model_type\":\"qwen3_5_text\","
    "\"attention_bias\":false,\"attn_output_gate\":true,\"eos_token_id\":3,\"head_dim\":32,"
    "\"hidden_act\":\"silu\",\"hidden_size\":64,\"intermediate_size\":96,\"layer_types\":[\"linear_attention\","
    "\"full_attention\",\"linear_attention\",\"full_attention\"],\"linear_conv_kernel_dim\":4,\"linear_key_head_dim\":"
    "32,\"linear_num_key_heads\":2,\"linear_num_value_heads\":4,\"linear_value_head_dim\":32,"
    "\"max_position_embeddings\":262144,\"mtp_num_hidden_layers\":1,\"mtp_use_dedicated_embeddings\":false,"
    "\"num_attention_heads\":6,\"num_hidden_layers\":4,\"num_key_value_heads\":2,\"rms_norm_eps\":1e-6,"
    "\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":1e7,\"partial_rotary_factor\":0.25},"
    "\"vocab_size\":320}}" },
  { "qwen35-old",
    "{\"model_type\":\"qwen3_5_text\",\"full_attention_interval\":4,\"num_experts\":0,\"num_hidden_layers\":8,"
    "\"partial_rotary_factor\":0.25,\"rope_theta\":1e7}" },
};

/* NULL: the field is taken away. The last one is of a kind that no field with a single value has. */
static const char *const values[] = {
  NULL,
  "null",
  "\"x\"",
  "\"\"",
  "-1",
  "0",
  "1",
  "2",
  "3",
  "7",
  "1000000000000000000",
  "18446744073709551615",
  "-9223372036854775808",
  "0.5",
  "2.5",
  "1e300",
  "-1e-300",
  "true",
  "false",
  "[]",
  "[1]",
  "[null,null]",
  "{}",
  "{\"rope_type\":5}",
};

typedef struct {
  const char *json;
  guint n_accepted, n_refused;
} Walk;

/* The field of @path (names from the root on) of @json given @value, as text. */
static char *
with_value (const char *json, const char *const *path, const char *value)
{
  yyjson_doc *base = yyjson_read (json, strlen (json), 0);
  yyjson_mut_doc *doc = yyjson_doc_mut_copy (base, NULL);
  yyjson_doc *parsed = value ? yyjson_read (value, strlen (value), 0) : NULL;
  yyjson_mut_val *object = yyjson_mut_doc_get_root (doc);
  char *written, *text;

  for (; path[1]; path++)
    object = yyjson_mut_obj_get (object, path[0]);
  if (value)
    yyjson_mut_obj_replace (object, yyjson_mut_str (doc, path[0]),
                            yyjson_val_mut_copy (doc, yyjson_doc_get_root (parsed)));
  else
    yyjson_mut_obj_remove_key (object, path[0]);
  written = yyjson_mut_write (doc, 0, NULL);
  text = g_strdup (written);
  free (written);
  yyjson_doc_free (parsed);
  yyjson_mut_doc_free (doc);
  yyjson_doc_free (base);
  return text;
}

static void
try_value (Walk *walk, const char *const *path, guint depth, gboolean is_object, const char *value)
{
  g_autofree char *text = with_value (walk->json, path, value);
  g_autoptr (GBytes) bytes = g_bytes_new (text, strlen (text));
  g_autoptr (GError) error = NULL;
  g_autoptr (OxConfig) config = ox_config_parse_json (text, strlen (text), OX_CHECK_FILE_NAME, &error);

  /* The invariants of an accepted one. */
  ox_exercise_config (bytes);
  if (config) {
    walk->n_accepted++;
    if (value == values[G_N_ELEMENTS (values) - 1] && !is_object)
      g_test_fail_printf ("an object is accepted as “%s”: %s", path[depth - 1], text);
    return;
  }
  walk->n_refused++;
  /* A kind that is not known is told without its field. */
  if (!strstr (error->message, path[depth - 1]) && !strstr (error->message, "is a model of kind"))
    g_test_fail_printf ("%s: expected “%s” in: %s", value ? value : "(absent)", path[depth - 1], error->message);
}

static void
walk_object (Walk *walk, yyjson_val *object, const char **path, guint depth)
{
  yyjson_val *key, *val;
  size_t idx, max;

  g_assert_cmpuint (depth, <, 6);
  ox_json_foreach_member (object, idx, max, key, val) {
    path[depth] = yyjson_get_str (key);
    path[depth + 1] = NULL;
    for (guint i = 0; i < G_N_ELEMENTS (values); i++)
      try_value (walk, path, depth + 1, yyjson_is_obj (val), values[i]);
    if (yyjson_is_obj (val))
      walk_object (walk, val, path, depth + 1);
  }
}

static void
test_json (gconstpointer data)
{
  Walk walk = { data, 0, 0 };
  g_autoptr (GError) error = NULL;
  g_autoptr (OxConfig) config = ox_config_parse_json (walk.json, strlen (walk.json), OX_CHECK_FILE_NAME, &error);
  yyjson_doc *doc = yyjson_read (walk.json, strlen (walk.json), 0);
  const char *path[8];

  g_assert_no_error (error);
  walk_object (&walk, yyjson_doc_get_root (doc), path, 0);
  yyjson_doc_free (doc);
  g_test_message ("%u changes accepted, %u refused", walk.n_accepted, walk.n_refused);
  g_assert_cmpuint (walk.n_accepted, >, 0);
  g_assert_cmpuint (walk.n_refused, >, walk.n_accepted);
}

/* ---- generation_config.json ---- */

static void
test_generation (void)
{
  static const char *const fields[] = { "eos_token_id", "suppress_tokens" };
  static const char base[] = "{\"model_type\":\"gemma4_text\",\"hidden_size_per_layer_input\":0}";

  for (guint i = 0; i < G_N_ELEMENTS (fields); i++)
    for (guint j = 0; j < G_N_ELEMENTS (values); j++) {
      g_autoptr (GError) error = NULL;
      g_autoptr (OxConfig) config = ox_config_parse_json (base, strlen (base), OX_CHECK_FILE_NAME, &error);
      g_autofree char *text = values[j] ? g_strdup_printf ("{\"%s\":%s}", fields[i], values[j]) : g_strdup ("{}");

      g_assert_no_error (error);
      if (ox_config_add_generation_json (config, text, strlen (text), OX_CHECK_FILE_NAME, &error)) {
        for (guint k = 0; k < config->suppress_token_ids->len; k++)
          g_assert_cmpuint (g_array_index (config->suppress_token_ids, guint32, k), <, config->vocab_size);
        continue;
      }
      ox_check_error (&error, OX_ERROR_DAMAGED, OX_CHECK_FILE_NAME, fields[i]);
    }
}

/* ---- GGUF ---- */

typedef GBytes *(*Build) (const char *key, const OxPiece *pieces, gsize n);

static GBytes *
build_gemma3 (const char *key, const OxPiece *pieces, gsize n)
{
  return ox_build_gemma3_gguf (8, key, pieces, n);
}

typedef struct {
  const char *name;
  Build build;
  const char *keys[32];
} Gguf;

static const Gguf ggufs[] = {
  { "llama",
    ox_build_llama_gguf,
    { "block_count", "context_length", "embedding_length", "feed_forward_length", "attention.head_count",
      "attention.head_count_kv", "attention.key_length", "attention.value_length", "attention.layer_norm_rms_epsilon",
      "rope.freq_base", "rope.dimension_count", "rope.scale_linear", "vocab_size", "expert_count" } },
  { "gemma3",
    build_gemma3,
    { "block_count", "context_length", "embedding_length", "feed_forward_length", "attention.head_count",
      "attention.head_count_kv", "attention.key_length", "attention.value_length", "attention.layer_norm_rms_epsilon",
      "attention.sliding_window", "attention.sliding_window_pattern", "rope.freq_base", "rope.freq_base_swa",
      "rope.scaling.factor" } },
  { "gemma4",
    ox_build_gemma4_gguf,
    { "block_count",
      "context_length",
      "embedding_length",
      "feed_forward_length",
      "attention.head_count",
      "attention.head_count_kv",
      "attention.key_length",
      "attention.key_length_swa",
      "attention.value_length",
      "attention.value_length_swa",
      "attention.layer_norm_rms_epsilon",
      "attention.sliding_window",
      "attention.sliding_window_pattern",
      "attention.shared_kv_layers",
      "embedding_length_per_layer_input",
      "expert_count",
      "expert_used_count",
      "expert_feed_forward_length",
      "final_logit_softcapping",
      "rope.freq_base",
      "rope.freq_base_swa",
      "rope.dimension_count",
      "rope.dimension_count_swa",
      "rope.scaling.type",
      "vocab_size" } },
  { "qwen35",
    ox_build_qwen35_gguf,
    { "block_count",
      "nextn_predict_layers",
      "context_length",
      "embedding_length",
      "feed_forward_length",
      "attention.head_count",
      "attention.head_count_kv",
      "attention.key_length",
      "attention.value_length",
      "attention.layer_norm_rms_epsilon",
      "attention.recurrent_layers",
      "full_attention_interval",
      "expert_count",
      "rope.freq_base",
      "rope.dimension_count",
      "rope.scaling.type",
      "ssm.conv_kernel",
      "ssm.state_size",
      "ssm.group_count",
      "ssm.time_step_rank",
      "ssm.inner_size",
      "vocab_size" } },
};

/* A type and a value; none: the key is taken away. The last one is of a type that no key here has. */
static const OxPiece pieces[][8] = {
  { { OX_PIECE_END, 0, NULL, 0 } },
  { U32 (4), U32 (0) },
  { U32 (4), U32 (1) },
  { U32 (4), U32 (3) },
  { U32 (4), U32 (7) },
  { U32 (4), U32 (G_MAXUINT32) },
  { U32 (10), U64 (1ull << 40) },
  { U32 (10), U64 (G_MAXUINT64) },
  { U32 (5), U32 (0xffffffff) },
  { U32 (6), F32 (2.5) },
  { U32 (6), F32 (-1) },
  { U32 (6), F32 (1e38) },
  { U32 (12), F64 (1e300) },
  { U32 (7), U8 (1) },
  { U32 (9), U32 (4), U64 (0) },
  { U32 (9), U32 (4), U64 (2), U32 (1), U32 (2) },
  { U32 (9), U32 (5), U64 (4), U32 (0xffffffff), U32 (1), U32 (2), U32 (3) },
  { U32 (9), U32 (7), U64 (5), U8 (0), U8 (0), U8 (0), U8 (0), U8 (0) },
  { U32 (9), U32 (6), U64 (2), F32 (1), F32 (2) },
  { U32 (8), STR ("x") },
};

static void
test_gguf (gconstpointer data)
{
  const Gguf *gguf = data;
  guint n_accepted = 0, n_refused = 0;

  for (guint i = 0; i < G_N_ELEMENTS (gguf->keys) && gguf->keys[i]; i++) {
    g_autofree char *key = g_strconcat (gguf->name, ".", gguf->keys[i], NULL);

    for (guint j = 0; j < G_N_ELEMENTS (pieces); j++) {
      gsize n = 0;
      g_autoptr (GBytes) bytes = NULL;
      g_autoptr (OxFile) file = NULL;
      g_autoptr (OxWeights) weights = NULL;
      g_autoptr (OxConfig) config = NULL;
      g_autoptr (GError) error = NULL;

      while (n < G_N_ELEMENTS (pieces[j]) && pieces[j][n].kind != OX_PIECE_END)
        n++;
      bytes = gguf->build (key, pieces[j], n);
      ox_exercise_gguf (bytes);
      file = ox_file_new_for_bytes (bytes, OX_CHECK_FILE_NAME);
      weights = ox_weights_open_gguf (file, &error);
      g_assert_no_error (error);
      config = ox_config_from_gguf (ox_weights_get_gguf (weights), weights, OX_CHECK_FILE_NAME, &error);
      if (config) {
        n_accepted++;
        if (j == G_N_ELEMENTS (pieces) - 1)
          g_test_fail_printf ("a string is accepted as “%s”", key);
        continue;
      }
      n_refused++;
      if (!strstr (error->message, key) || !strstr (error->message, OX_CHECK_FILE_NAME))
        g_test_fail_printf ("change %u: expected “%s” in: %s", j, key, error->message);
    }
  }
  g_test_message ("%u changes accepted, %u refused", n_accepted, n_refused);
  g_assert_cmpuint (n_accepted, >, 0);
  g_assert_cmpuint (n_refused, >, n_accepted);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (families); i++) {
    g_autofree char *path = g_strconcat ("/config/fields/json/", families[i].name, NULL);

    g_test_add_data_func (path, families[i].json, test_json);
  }
  g_test_add_func ("/config/fields/generation", test_generation);
  for (gsize i = 0; i < G_N_ELEMENTS (ggufs); i++) {
    g_autofree char *path = g_strconcat ("/config/fields/gguf/", ggufs[i].name, NULL);

    g_test_add_data_func (path, &ggufs[i], test_gguf);
  }
  return g_test_run ();
}
