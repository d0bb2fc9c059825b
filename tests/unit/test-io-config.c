/* Configurations: those of well-known models come out right, senseless ones are refused with the field's name.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-io-check.h"
#include "ox-pieces.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>
#include <yyjson.h>

/* The fields that matter of config.json files in use. */
static const char smollm2[] =
  "{\"architectures\":[\"LlamaForCausalLM\"],\"attention_bias\":false,\"bos_token_id\":1,\"eos_token_id\":2,\"hidden_"
  "act\":\"silu\","
  "\"hidden_size\":576,\"intermediate_size\":1536,\"is_llama_config\":true,\"max_position_embeddings\":8192,\"mlp_"
  "bias\":false,"
  "\"model_type\":\"llama\",\"num_attention_heads\":9,\"num_hidden_layers\":30,\"num_key_value_heads\":3,\"pad_token_"
  "id\":2,"
  "\"pretraining_tp\":1,\"rms_norm_eps\":1e-05,\"rope_interleaved\":false,\"rope_scaling\":null,\"rope_theta\":100000,"
  "\"tie_word_embeddings\":true,\"torch_dtype\":\"bfloat16\",\"vocab_size\":49152,\"_name_or_path\":\"/home/x/"
  "SmolLM2-135M\"}";
static const char llama32[] =
  "{\"model_type\":\"llama\",\"bos_token_id\":128000,\"eos_token_id\":[128001,128008,128009],\"head_dim\":64,\"hidden_"
  "act\":\"silu\","
  "\"hidden_size\":2048,\"intermediate_size\":8192,\"max_position_embeddings\":131072,\"num_attention_heads\":32,"
  "\"num_hidden_layers\":16,\"num_key_value_heads\":8,\"rms_norm_eps\":1e-05,\"rope_scaling\":{\"factor\":32.0,"
  "\"high_freq_factor\":4.0,\"low_freq_factor\":1.0,\"original_max_position_embeddings\":8192,\"rope_type\":\"llama3\"}"
  ","
  "\"rope_theta\":500000.0,\"tie_word_embeddings\":true,\"vocab_size\":128256}";
static const char mistral[] =
  "{\"model_type\":\"mistral\",\"bos_token_id\":1,\"eos_token_id\":2,\"hidden_act\":\"silu\",\"hidden_size\":4096,"
  "\"intermediate_size\":14336,\"max_position_embeddings\":32768,\"num_attention_heads\":32,\"num_hidden_layers\":3,"
  "\"num_key_value_heads\":8,\"rms_norm_eps\":1e-05,\"rope_theta\":10000.0,\"sliding_window\":4096,\"vocab_size\":"
  "32000}";
static const char qwen2[] =
  "{\"model_type\":\"qwen2\",\"bos_token_id\":151643,\"eos_token_id\":151645,\"hidden_act\":\"silu\",\"hidden_size\":"
  "896,"
  "\"intermediate_size\":4864,\"max_position_embeddings\":32768,\"max_window_layers\":2,\"num_attention_heads\":14,"
  "\"num_hidden_layers\":4,\"num_key_value_heads\":2,\"rms_norm_eps\":1e-06,\"rope_theta\":1000000.0,\"sliding_"
  "window\":32768,"
  "\"tie_word_embeddings\":true,\"use_sliding_window\":false,\"vocab_size\":151936}";
static const char qwen3[] =
  "{\"model_type\":\"qwen3\",\"attention_bias\":false,\"bos_token_id\":151643,\"eos_token_id\":151645,\"head_dim\":128,"
  "\"hidden_act\":\"silu\",\"hidden_size\":1024,\"intermediate_size\":3072,\"layer_types\":[\"full_attention\","
  "\"full_attention\"],\"max_position_embeddings\":40960,\"num_attention_heads\":16,\"num_hidden_layers\":2,"
  "\"num_key_value_heads\":8,\"rms_norm_eps\":1e-06,\"rope_parameters\":{\"rope_theta\":1000000,\"rope_type\":"
  "\"default\"},"
  "\"sliding_window\":null,\"tie_word_embeddings\":true,\"vocab_size\":151936}";
static const char gemma3_old[] =
  "{\"model_type\":\"gemma3_text\",\"bos_token_id\":2,\"eos_token_id\":[1,106],\"head_dim\":32,\"hidden_activation\":"
  "\"gelu_pytorch_tanh\",\"hidden_size\":64,\"intermediate_size\":96,\"max_position_embeddings\":131072,"
  "\"num_attention_heads\":4,\"num_hidden_layers\":7,\"num_key_value_heads\":2,\"query_pre_attn_scalar\":24,\"rms_norm_"
  "eps\":1e-06,"
  "\"rope_local_base_freq\":20000,\"rope_scaling\":{\"factor\":8.0,\"rope_type\":\"linear\"},\"rope_theta\":2000000,"
  "\"sliding_window\":12,\"sliding_window_pattern\":6,\"vocab_size\":320,\"attn_logit_softcapping\":null}";
static const char gemma3_new[] =
  "{\"model_type\":\"gemma3_text\",\"bos_token_id\":2,\"eos_token_id\":1,\"head_dim\":32,\"hidden_size\":64,"
  "\"intermediate_size\":96,\"max_position_embeddings\":131072,\"num_attention_heads\":4,\"num_hidden_layers\":3,"
  "\"num_key_value_heads\":2,\"query_pre_attn_scalar\":24,\"layer_types\":[\"sliding_attention\",\"full_attention\","
  "\"sliding_attention\"],\"rope_parameters\":{\"full_attention\":{\"factor\":8.0,\"rope_type\":\"linear\",\"rope_"
  "theta\":1e6},"
  "\"sliding_attention\":{\"rope_theta\":10000,\"rope_type\":\"default\"}},\"sliding_window\":512,\"vocab_size\":320}";
/* The 4B's: everything usual is left out. */
static const char gemma3_nested[] =
  "{\"architectures\":[\"Gemma3ForConditionalGeneration\"],\"model_type\":\"gemma3\",\"eos_token_id\":[1,106],\"text_"
  "config\":{"
  "\"hidden_size\":2560,\"intermediate_size\":10240,\"model_type\":\"gemma3_text\",\"num_hidden_layers\":34,"
  "\"rope_scaling\":{\"factor\":8.0,\"rope_type\":\"linear\"},\"sliding_window\":1024},\"vision_config\":{\"hidden_"
  "size\":1152}}";

static OxConfig *
parse (const char *json)
{
  g_autoptr (GError) error = NULL;
  OxConfig *config = ox_config_parse_json (json, strlen (json), OX_CHECK_FILE_NAME, &error);

  g_assert_no_error (error);
  return config;
}

static void
check_eos (const OxConfig *config, guint n, ...)
{
  va_list args;

  va_start (args, n);
  g_assert_cmpuint (config->eos_token_ids->len, ==, n);
  for (guint i = 0; i < n; i++)
    g_assert_cmpuint (g_array_index (config->eos_token_ids, guint32, i), ==, va_arg (args, guint));
  va_end (args);
}

/* @expected: 's' for each sliding layer, 'f' for each full one. */
static void
check_layers (const OxConfig *config, const char *expected)
{
  g_assert_cmpuint (config->num_hidden_layers, ==, strlen (expected));
  g_assert_nonnull (config->layer_kinds);
  for (guint i = 0; i < config->num_hidden_layers; i++)
    g_assert_cmpint (ox_config_is_sliding (config, i), ==, expected[i] == 's');
}

static void
test_llama (void)
{
  g_autoptr (OxConfig) a = parse (smollm2);
  g_autoptr (OxConfig) b = parse (llama32);

  g_assert_cmpint (a->family, ==, OX_FAMILY_LLAMA);
  g_assert_cmpstr (a->architecture, ==, "llama");
  g_assert_cmpstr (a->name, ==, "SmolLM2-135M");
  g_assert_cmpuint (a->hidden_size, ==, 576);
  g_assert_cmpuint (a->intermediate_size, ==, 1536);
  g_assert_cmpuint (a->num_hidden_layers, ==, 30);
  g_assert_cmpuint (a->num_attention_heads, ==, 9);
  g_assert_cmpuint (a->num_key_value_heads, ==, 3);
  g_assert_cmpuint (a->head_dim, ==, 64);
  g_assert_cmpuint (a->vocab_size, ==, 49152);
  g_assert_cmpuint (a->max_position_embeddings, ==, 8192);
  g_assert_cmpfloat (a->rms_norm_eps, ==, 1e-5);
  g_assert_cmpfloat (a->query_pre_attn_scalar, ==, 64);
  g_assert_true (a->tie_word_embeddings);
  g_assert_false (a->attention_bias || a->qk_norm || a->norm_plus_one || a->permuted_qk || a->from_gguf);
  g_assert_false (ox_config_is_sliding (a, 0));
  g_assert_cmpuint (a->sliding_window, ==, 0);
  g_assert_cmpint (a->rope.type, ==, OX_ROPE_DEFAULT);
  g_assert_cmpfloat (a->rope.theta, ==, 100000);
  g_assert_cmpint (a->bos_token_id, ==, 1);
  check_eos (a, 1, 2u);

  g_assert_cmpint (b->rope.type, ==, OX_ROPE_LLAMA3);
  g_assert_cmpfloat (b->rope.theta, ==, 500000);
  g_assert_cmpfloat (b->rope.factor, ==, 32);
  g_assert_cmpfloat (b->rope.low_freq_factor, ==, 1);
  g_assert_cmpfloat (b->rope.high_freq_factor, ==, 4);
  g_assert_cmpuint (b->rope.original_max_position_embeddings, ==, 8192);
  check_eos (b, 3, 128001u, 128008u, 128009u);
}

static void
test_mistral (void)
{
  g_autoptr (OxConfig) config = parse (mistral);

  g_assert_cmpint (config->family, ==, OX_FAMILY_LLAMA);
  g_assert_cmpstr (config->architecture, ==, "mistral");
  g_assert_cmpuint (config->head_dim, ==, 128);
  g_assert_cmpuint (config->sliding_window, ==, 4096);
  check_layers (config, "sss");
  g_assert_cmpfloat (config->rope_sliding.theta, ==, 10000);
  g_assert_false (config->tie_word_embeddings);
}

static void
test_qwen (void)
{
  g_autoptr (OxConfig) a = parse (qwen2);
  g_autoptr (OxConfig) b = parse (qwen3);
  g_autoptr (GString) windowed = g_string_new (qwen2);
  g_autoptr (OxConfig) c = NULL;

  g_assert_cmpint (a->family, ==, OX_FAMILY_LLAMA);
  g_assert_true (a->attention_bias);
  g_assert_false (a->qk_norm);
  g_assert_cmpuint (a->head_dim, ==, 64);
  g_assert_false (ox_config_is_sliding (a, 0));

  g_assert_cmpint (b->family, ==, OX_FAMILY_LLAMA);
  g_assert_false (b->attention_bias);
  g_assert_true (b->qk_norm);
  g_assert_false (b->norm_plus_one);
  g_assert_cmpuint (b->head_dim, ==, 128);
  g_assert_cmpfloat (b->rope.theta, ==, 1e6);
  g_assert_false (ox_config_is_sliding (b, 0));

  g_assert_cmpuint (g_string_replace (windowed, "\"use_sliding_window\":false", "\"use_sliding_window\":true", 0), ==,
                    1);
  c = parse (windowed->str);
  check_layers (c, "ffss");
  g_assert_cmpuint (c->sliding_window, ==, 32768);
}

static void
test_gemma3 (void)
{
  g_autoptr (OxConfig) a = parse (gemma3_old);
  g_autoptr (OxConfig) b = parse (gemma3_new);
  g_autoptr (OxConfig) c = parse (gemma3_nested);

  g_assert_cmpint (a->family, ==, OX_FAMILY_GEMMA3);
  g_assert_cmpstr (a->architecture, ==, "gemma3");
  g_assert_true (a->tie_word_embeddings && a->qk_norm && a->norm_plus_one);
  g_assert_cmpfloat (a->query_pre_attn_scalar, ==, 24);
  g_assert_cmpuint (a->sliding_window, ==, 12);
  check_layers (a, "sssssfs");
  g_assert_cmpint (a->rope.type, ==, OX_ROPE_LINEAR);
  g_assert_cmpfloat (a->rope.theta, ==, 2e6);
  g_assert_cmpfloat (a->rope.factor, ==, 8);
  g_assert_cmpint (a->rope_sliding.type, ==, OX_ROPE_DEFAULT);
  g_assert_cmpfloat (a->rope_sliding.theta, ==, 20000);
  check_eos (a, 2, 1u, 106u);

  check_layers (b, "sfs");
  g_assert_cmpint (b->rope.type, ==, OX_ROPE_LINEAR);
  g_assert_cmpfloat (b->rope.theta, ==, 1e6);
  g_assert_cmpfloat (b->rope.factor, ==, 8);
  g_assert_cmpint (b->rope_sliding.type, ==, OX_ROPE_DEFAULT);
  g_assert_cmpfloat (b->rope_sliding.theta, ==, 1e4);

  g_assert_cmpuint (c->hidden_size, ==, 2560);
  g_assert_cmpuint (c->num_attention_heads, ==, 8);
  g_assert_cmpuint (c->num_key_value_heads, ==, 4);
  g_assert_cmpuint (c->head_dim, ==, 256);
  g_assert_cmpuint (c->vocab_size, ==, 262208);
  g_assert_cmpfloat (c->query_pre_attn_scalar, ==, 256);
  g_assert_cmpfloat (c->rope.theta, ==, 1e6);
  g_assert_cmpfloat (c->rope_sliding.theta, ==, 1e4);
  g_assert_true (c->tie_word_embeddings);
  check_eos (c, 2, 1u, 106u);
}

static void
test_generation (void)
{
  static const char good[] = "{\"eos_token_id\":[2,7,0],\"temperature\":0.6}";
  static const char outside[] = "{\"eos_token_id\":49152}";
  static const char words[] = "{\"eos_token_id\":\"</s>\"}";
  g_autoptr (GError) error = NULL;
  g_autoptr (OxConfig) config = parse (smollm2);

  g_assert_true (ox_config_add_generation_json (config, good, strlen (good), OX_CHECK_FILE_NAME, &error));
  check_eos (config, 3, 2u, 7u, 0u);
  g_assert_false (ox_config_add_generation_json (config, outside, strlen (outside), OX_CHECK_FILE_NAME, &error));
  ox_check_error (&error, OX_ERROR_DAMAGED, OX_CHECK_FILE_NAME, "eos_token_id");
  g_assert_false (ox_config_add_generation_json (config, words, strlen (words), OX_CHECK_FILE_NAME, &error));
  ox_check_error (&error, OX_ERROR_DAMAGED, OX_CHECK_FILE_NAME, "eos_token_id");
  g_assert_false (ox_config_add_generation_json (config, "[]", 2, OX_CHECK_FILE_NAME, &error));
  ox_check_error (&error, OX_ERROR_DAMAGED, OX_CHECK_FILE_NAME, "object");
  g_assert_false (ox_config_add_generation_json (config, "{", 1, OX_CHECK_FILE_NAME, &error));
  ox_check_error (&error, OX_ERROR_DAMAGED, OX_CHECK_FILE_NAME, "JSON");
  check_eos (config, 3, 2u, 7u, 0u);
}

/* A field of a good configuration given another value; a value of NULL takes it away. */
typedef struct {
  const char *name;
  const char *base;
  const char *field;
  const char *value;
  int code;
  const char *text;
} Change;

#define D OX_ERROR_DAMAGED
#define U OX_ERROR_UNSUPPORTED

static const Change bad_json[] = {
  { "no-model-type", smollm2, "model_type", NULL, D, "model_type" },
  { "model-type-number", smollm2, "model_type", "5", D, "model_type" },
  { "model-type-other", smollm2, "model_type", "\"mamba\"", U,
    "is a model of kind “mamba”, which this version cannot run; it can run Llama-style, Gemma 3, Gemma 4 and dense "
    "Qwen "
    "3.5 models" },
  { "model-type-moe", smollm2, "model_type", "\"qwen3_5_moe\"", U, "“qwen3_5_moe”" },
  { "model-type-nul", smollm2, "model_type", "\"llama\\u0000\"", U, "kind" },
  { "layers-0", smollm2, "num_hidden_layers", "0", D, "“num_hidden_layers” is 0" },
  { "layers-10^9", smollm2, "num_hidden_layers", "1000000000", D, "num_hidden_layers" },
  { "layers-negative", smollm2, "num_hidden_layers", "-30", D, "“num_hidden_layers” is -30" },
  { "layers-float", smollm2, "num_hidden_layers", "30.0", D, "num_hidden_layers" },
  { "layers-string", smollm2, "num_hidden_layers", "\"30\"", D, "“num_hidden_layers” is “30”" },
  { "layers-missing", smollm2, "num_hidden_layers", NULL, D, "“num_hidden_layers” is missing" },
  { "layers-null", smollm2, "num_hidden_layers", "null", D, "num_hidden_layers" },
  { "hidden-0", smollm2, "hidden_size", "0", D, "hidden_size" },
  { "hidden-2^32", smollm2, "hidden_size", "4294967296", D, "hidden_size" },
  { "hidden-2^64", smollm2, "hidden_size", "18446744073709551616", D, "hidden_size" },
  { "hidden-not-by-heads", smollm2, "hidden_size", "577", D, "hidden_size" },
  { "intermediate-0", smollm2, "intermediate_size", "0", D, "intermediate_size" },
  { "intermediate-array", smollm2, "intermediate_size", "[1]", D, "intermediate_size" },
  { "heads-0", smollm2, "num_attention_heads", "0", D, "num_attention_heads" },
  { "heads-10^6", smollm2, "num_attention_heads", "1000000", D, "num_attention_heads" },
  { "kv-heads-0", smollm2, "num_key_value_heads", "0", D, "num_key_value_heads" },
  { "kv-heads-2", smollm2, "num_key_value_heads", "2", D, "num_attention_heads" },
  { "kv-heads-more", smollm2, "num_key_value_heads", "18", D, "num_attention_heads" },
  { "head-dim-0", smollm2, "head_dim", "0", D, "head_dim" },
  { "head-dim-odd", smollm2, "head_dim", "63", D, "“head_dim” is 63" },
  { "head-dim-huge", smollm2, "head_dim", "1000000", D, "head_dim" },
  { "vocab-0", smollm2, "vocab_size", "0", D, "vocab_size" },
  { "vocab-2^31", smollm2, "vocab_size", "2147483648", D, "vocab_size" },
  { "positions-0", smollm2, "max_position_embeddings", "0", D, "max_position_embeddings" },
  { "eps-0", smollm2, "rms_norm_eps", "0", D, "rms_norm_eps" },
  { "eps-negative", smollm2, "rms_norm_eps", "-1e-5", D, "rms_norm_eps" },
  { "eps-huge", smollm2, "rms_norm_eps", "1e300", D, "rms_norm_eps" },
  { "eps-string", smollm2, "rms_norm_eps", "\"nan\"", D, "rms_norm_eps" },
  { "theta-0", smollm2, "rope_theta", "0", D, "rope_theta" },
  { "theta-negative", smollm2, "rope_theta", "-10000", D, "rope_theta" },
  { "tie-number", smollm2, "tie_word_embeddings", "1", D, "tie_word_embeddings" },
  { "attention-bias", smollm2, "attention_bias", "true", U, "attention_bias" },
  { "mlp-bias", smollm2, "mlp_bias", "true", U, "mlp_bias" },
  { "activation", smollm2, "hidden_act", "\"relu\"", U, "“relu”" },
  { "quantised", smollm2, "quantization_config", "{\"quant_method\":\"gptq\"}", U, "“gptq”" },
  { "eos-outside", smollm2, "eos_token_id", "49152", D, "eos_token_id" },
  { "eos-negative", smollm2, "eos_token_id", "-1", D, "eos_token_id" },
  { "eos-string", smollm2, "eos_token_id", "[2,\"x\"]", D, "eos_token_id" },
  { "bos-outside", smollm2, "bos_token_id", "49152", D, "bos_token_id" },
  { "bos-list", smollm2, "bos_token_id", "[1]", D, "bos_token_id" },
  { "partial-rotary", smollm2, "partial_rotary_factor", "0.5", U, "partial_rotary_factor" },
  { "scaling-string", smollm2, "rope_scaling", "\"linear\"", D, "rope_scaling" },
  { "scaling-yarn", smollm2, "rope_scaling", "{\"rope_type\":\"yarn\",\"factor\":4.0}", U, "“yarn”" },
  { "scaling-dynamic", smollm2, "rope_scaling", "{\"type\":\"dynamic\",\"factor\":4.0}", U, "“dynamic”" },
  { "scaling-number", smollm2, "rope_scaling", "{\"rope_type\":3}", D, "rope_scaling.rope_type" },
  { "scaling-no-factor", smollm2, "rope_scaling", "{\"rope_type\":\"linear\"}", D, "rope_scaling.factor" },
  { "scaling-factor-0", smollm2, "rope_scaling", "{\"rope_type\":\"linear\",\"factor\":0}", D, "rope_scaling.factor" },
  { "llama3-no-low", llama32, "rope_scaling",
    "{\"rope_type\":\"llama3\",\"factor\":8,\"high_freq_factor\":4,\"original_max_position_embeddings\":8192}", D,
    "rope_scaling.low_freq_factor" },
  { "llama3-same-bands", llama32, "rope_scaling",
    "{\"rope_type\":\"llama3\",\"factor\":8,\"high_freq_factor\":4,\"low_freq_factor\":4,"
    "\"original_max_position_embeddings\":8192}",
    D, "rope_scaling.high_freq_factor" },
  { "llama3-original-0", llama32, "rope_scaling",
    "{\"rope_type\":\"llama3\",\"factor\":8,\"high_freq_factor\":4,\"low_freq_factor\":1,\"original_max_position_"
    "embeddings\":0}",
    D, "original_max_position_embeddings" },
  { "parameters-array", qwen3, "rope_parameters", "[]", D, "rope_parameters" },
  { "parameters-theta-0", qwen3, "rope_parameters", "{\"rope_theta\":0}", D, "rope_parameters.rope_theta" },
  { "parameters-partial", qwen3, "rope_parameters", "{\"rope_theta\":10,\"partial_rotary_factor\":0.25}", U,
    "partial" },
  { "parameters-inner", gemma3_new, "rope_parameters", "{\"full_attention\":5}", D, "rope_parameters.full_attention" },
  { "layer-types-object", qwen3, "layer_types", "{}", D, "layer_types" },
  { "layer-types-short", qwen3, "layer_types", "[\"full_attention\"]", D, "layer_types" },
  { "layer-types-long", qwen3, "layer_types", "[\"full_attention\",\"full_attention\",\"full_attention\"]", D,
    "layer_types" },
  { "layer-types-number", qwen3, "layer_types", "[\"full_attention\",7]", D, "layer_types" },
  { "layer-types-other", qwen3, "layer_types", "[\"full_attention\",\"linear_attention\"]", U,
    "“linear_attention” for layer 1" },
  { "window-missing", qwen3, "layer_types", "[\"full_attention\",\"sliding_attention\"]", D, "sliding_window" },
  { "window-0", mistral, "sliding_window", "0", D, "sliding_window" },
  { "window-negative", mistral, "sliding_window", "-1", D, "sliding_window" },
  { "use-window-string", qwen2, "use_sliding_window", "\"no\"", D, "use_sliding_window" },
  { "pattern-0", gemma3_old, "sliding_window_pattern", "0", D, "sliding_window_pattern" },
  { "scalar-0", gemma3_old, "query_pre_attn_scalar", "0", D, "query_pre_attn_scalar" },
  { "local-theta-0", gemma3_old, "rope_local_base_freq", "0", D, "rope_local_base_freq" },
  { "softcap", gemma3_old, "attn_logit_softcapping", "50.0", U, "attn_logit_softcapping" },
  { "final-softcap", gemma3_old, "final_logit_softcapping", "30.0", U, "final_logit_softcapping" },
  { "bidirectional", gemma3_old, "use_bidirectional_attention", "true", U, "use_bidirectional_attention" },
  { "gemma-activation", gemma3_old, "hidden_activation", "\"silu\"", U, "hidden_activation" },
  { "text-config-list", gemma3_nested, "text_config", "[]", D, "text_config" },
  { "text-config-layers", gemma3_nested, "text_config", "{\"num_hidden_layers\":0}", D,
    "“text_config.num_hidden_layers” is 0" },
};

static void
test_bad_json (gconstpointer data)
{
  const Change *change = data;
  g_autoptr (GError) error = NULL;
  yyjson_doc *base = yyjson_read (change->base, strlen (change->base), 0);
  yyjson_mut_doc *doc = yyjson_doc_mut_copy (base, NULL);
  yyjson_mut_val *root = yyjson_mut_doc_get_root (doc);
  yyjson_doc *value =
    change->value ? yyjson_read (change->value, strlen (change->value), YYJSON_READ_BIGNUM_AS_RAW) : NULL;
  char *text;

  yyjson_mut_obj_remove_key (root, change->field);
  if (change->value)
    yyjson_mut_obj_add_val (doc, root, change->field, yyjson_val_mut_copy (doc, yyjson_doc_get_root (value)));
  text = yyjson_mut_write (doc, 0, NULL);
  g_assert_null (ox_config_parse_json (text, strlen (text), OX_CHECK_FILE_NAME, &error));
  ox_check_error (&error, change->code, OX_CHECK_FILE_NAME, change->text);
  free (text);
  yyjson_doc_free (value);
  yyjson_doc_free (base);
  yyjson_mut_doc_free (doc);
}

static void
test_not_json (void)
{
  static const char *const texts[] = {
    "", "{", "[]", "\"llama\"", "null", "{\"model_type\":NaN}", "\xef\xbb\xbf{}", "{}x", "\xff"
  };
  g_autoptr (GError) error = NULL;
  g_autofree char *deep = g_strnfill (100000, '[');

  for (guint i = 0; i < G_N_ELEMENTS (texts); i++) {
    g_assert_null (ox_config_parse_json (texts[i], strlen (texts[i]), OX_CHECK_FILE_NAME, &error));
    ox_check_error (&error, OX_ERROR_DAMAGED, OX_CHECK_FILE_NAME, "");
  }
  g_assert_null (ox_config_parse_json (deep, strlen (deep), OX_CHECK_FILE_NAME, &error));
  ox_check_error (&error, OX_ERROR_DAMAGED, OX_CHECK_FILE_NAME, "JSON");
  for (gsize n = 0; n < strlen (gemma3_nested); n++) {
    g_assert_null (ox_config_parse_json (gemma3_nested, n, OX_CHECK_FILE_NAME, &error));
    ox_check_error (&error, OX_ERROR_DAMAGED, OX_CHECK_FILE_NAME, "");
  }
}

static OxConfig *
from_gguf (GBytes *bytes, GError **error)
{
  g_autoptr (OxFile) file = ox_file_new_for_bytes (bytes, OX_CHECK_FILE_NAME);
  g_autoptr (OxWeights) weights = ox_weights_open_gguf (file, error);

  return weights ? ox_config_from_gguf (ox_weights_get_gguf (weights), weights, OX_CHECK_FILE_NAME, error) : NULL;
}

static void
test_gguf_llama (void)
{
  static const OxPiece linear[] = { U32 (6), F32 (4) };
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) bytes = ox_build_llama_gguf (NULL, NULL, 0);
  g_autoptr (GBytes) scaled = ox_build_llama_gguf ("llama.rope.scale_linear", linear, 2);
  g_autoptr (OxConfig) config = from_gguf (bytes, &error);
  g_autoptr (OxConfig) with_scale = NULL;

  g_assert_no_error (error);
  g_assert_cmpint (config->family, ==, OX_FAMILY_LLAMA);
  g_assert_cmpstr (config->name, ==, "Tiny Llama");
  g_assert_cmpuint (config->hidden_size, ==, 16);
  g_assert_cmpuint (config->intermediate_size, ==, 24);
  g_assert_cmpuint (config->num_hidden_layers, ==, 2);
  g_assert_cmpuint (config->head_dim, ==, 4);
  g_assert_cmpuint (config->vocab_size, ==, 12);
  g_assert_cmpuint (config->max_position_embeddings, ==, 128);
  g_assert_true (config->from_gguf && config->permuted_qk && config->tie_word_embeddings);
  g_assert_false (config->norm_plus_one || config->qk_norm || config->attention_bias);
  g_assert_cmpfloat (config->rope.theta, ==, 50000);
  g_assert_cmpint (config->bos_token_id, ==, 1);
  check_eos (config, 2, 0u, 2u);
  with_scale = from_gguf (scaled, &error);
  g_assert_no_error (error);
  g_assert_cmpint (with_scale->rope.type, ==, OX_ROPE_LINEAR);
  g_assert_cmpfloat (with_scale->rope.factor, ==, 4);
}

static void
test_gguf_gemma3 (void)
{
  static const OxPiece list[] = { U32 (9), U32 (7), U64 (8), U8 (0), U8 (1), U8 (1),
                                  U8 (0),  U8 (1),  U8 (1),  U8 (1), U8 (1) };
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) bytes = ox_build_gemma3_gguf (8, NULL, NULL, 0);
  g_autoptr (GBytes) large = ox_build_gemma3_gguf (62, NULL, NULL, 0);
  g_autoptr (GBytes) listed =
    ox_build_gemma3_gguf (8, "gemma3.attention.sliding_window_pattern", list, G_N_ELEMENTS (list));
  g_autoptr (OxConfig) config = from_gguf (bytes, &error);
  g_autoptr (OxConfig) config_large = NULL;
  g_autoptr (OxConfig) config_listed = NULL;

  g_assert_no_error (error);
  g_assert_cmpint (config->family, ==, OX_FAMILY_GEMMA3);
  g_assert_cmpuint (config->head_dim, ==, 8);
  g_assert_false (config->permuted_qk || config->norm_plus_one);
  g_assert_true (config->qk_norm && config->tie_word_embeddings);
  check_layers (config, "sssssfss");
  g_assert_cmpuint (config->sliding_window, ==, 16);
  g_assert_cmpint (config->rope.type, ==, OX_ROPE_LINEAR);
  g_assert_cmpfloat (config->rope.factor, ==, 8);
  g_assert_cmpfloat (config->rope_sliding.theta, ==, 1e4);
  g_assert_cmpint (config->rope_sliding.type, ==, OX_ROPE_DEFAULT);
  g_assert_cmpfloat (config->query_pre_attn_scalar, ==, 8);
  check_eos (config, 2, 0u, 2u);

  config_large = from_gguf (large, &error);
  g_assert_no_error (error);
  g_assert_cmpfloat (config_large->query_pre_attn_scalar, ==, 12);
  config_listed = from_gguf (listed, &error);
  g_assert_no_error (error);
  check_layers (config_listed, "fssfssss");
}

typedef struct {
  const char *name;
  const char *key; /* "llama." or "gemma3." tells the model */
  int code;
  const char *text;
  OxPiece pieces[8];
} KeyChange;

#define NO_PIECES { OX_PIECE_END }

static const KeyChange bad_gguf[] = {
  { "no-architecture", "general.architecture", D, "general.architecture", { NO_PIECES } },
  { "architecture-number", "general.architecture", D, "general.architecture", { U32 (4), U32 (1) } },
  { "architecture-other", "general.architecture", U, "is a model of kind “mamba”", { U32 (8), STR ("mamba") } },
  { "layers-missing", "llama.block_count", D, "“llama.block_count” is missing", { NO_PIECES } },
  { "layers-0", "llama.block_count", D, "“llama.block_count” is 0", { U32 (4), U32 (0) } },
  { "layers-2^32-1", "llama.block_count", D, "llama.block_count", { U32 (4), U32 (G_MAXUINT32) } },
  { "layers-2^40", "llama.block_count", D, "llama.block_count", { U32 (10), U64 (1ull << 40) } },
  { "layers-negative", "llama.block_count", D, "llama.block_count", { U32 (5), U32 (0xffffffff) } },
  { "layers-float", "llama.block_count", D, "llama.block_count", { U32 (6), F32 (2) } },
  { "layers-string", "llama.block_count", D, "llama.block_count", { U32 (8), STR ("2") } },
  { "hidden-0", "llama.embedding_length", D, "llama.embedding_length", { U32 (4), U32 (0) } },
  { "hidden-not-embedding", "llama.embedding_length", D, "token_embd.weight", { U32 (4), U32 (32) } },
  { "hidden-not-by-heads", "llama.embedding_length", D, "llama.embedding_length", { U32 (4), U32 (17) } },
  { "ffn-0", "llama.feed_forward_length", D, "llama.feed_forward_length", { U32 (4), U32 (0) } },
  { "ffn-array", "llama.feed_forward_length", U, "layer to layer", { U32 (9), U32 (4), U64 (2), U32 (24), U32 (24) } },
  { "heads-0", "llama.attention.head_count", D, "llama.attention.head_count", { U32 (4), U32 (0) } },
  { "kv-heads-3", "llama.attention.head_count_kv", D, "a multiple of", { U32 (4), U32 (3) } },
  { "kv-heads-array",
    "llama.attention.head_count_kv",
    U,
    "layer to layer",
    { U32 (9), U32 (4), U64 (2), U32 (2), U32 (1) } },
  { "head-dim-odd", "llama.attention.key_length", D, "llama.attention.key_length", { U32 (4), U32 (5) } },
  { "value-length", "llama.attention.value_length", U, "llama.attention.value_length", { U32 (4), U32 (8) } },
  { "rope-part", "llama.rope.dimension_count", U, "llama.rope.dimension_count", { U32 (4), U32 (2) } },
  { "context-missing", "llama.context_length", D, "llama.context_length", { NO_PIECES } },
  { "eps-nan", "llama.attention.layer_norm_rms_epsilon", D, "is nan", { U32 (6), F32 (NAN) } },
  { "eps-negative", "llama.attention.layer_norm_rms_epsilon", D, "epsilon", { U32 (6), F32 (-1e-5) } },
  { "eps-string", "llama.attention.layer_norm_rms_epsilon", D, "not a number", { U32 (8), STR ("1e-5") } },
  { "theta-0", "llama.rope.freq_base", D, "llama.rope.freq_base", { U32 (6), F32 (0) } },
  { "theta-infinite", "llama.rope.freq_base", D, "llama.rope.freq_base", { U32 (6), F32 (INFINITY) } },
  { "scaling-yarn", "llama.rope.scaling.type", U, "“yarn”", { U32 (8), STR ("yarn") } },
  { "scaling-no-factor", "llama.rope.scaling.type", D, "llama.rope.scaling.factor", { U32 (8), STR ("linear") } },
  { "experts", "llama.expert_count", U, "mixture", { U32 (4), U32 (8) } },
  { "vocab-not-embedding", "llama.vocab_size", D, "token_embd.weight", { U32 (4), U32 (11) } },
  { "tokens-more", "tokenizer.ggml.tokens", D, "tokenizer.ggml.tokens", { U32 (9), U32 (0), U64 (13), ZEROS (13) } },
  { "eos-outside", "tokenizer.ggml.eos_token_id", D, "tokenizer.ggml.eos_token_id", { U32 (4), U32 (12) } },
  { "eos-string", "tokenizer.ggml.eos_token_id", D, "tokenizer.ggml.eos_token_id", { U32 (8), STR ("x") } },
  { "bos-outside", "tokenizer.ggml.bos_token_id", D, "tokenizer.ggml.bos_token_id", { U32 (4), U32 (G_MAXUINT32) } },
  { "gemma-no-window", "gemma3.attention.sliding_window", D, "gemma3.attention.sliding_window", { NO_PIECES } },
  { "gemma-pattern-0", "gemma3.attention.sliding_window_pattern", D, "sliding_window_pattern", { U32 (4), U32 (0) } },
  { "gemma-pattern-short",
    "gemma3.attention.sliding_window_pattern",
    D,
    "list of 8",
    { U32 (9), U32 (7), U64 (2), U8 (1), U8 (0) } },
  { "gemma-factor-0", "gemma3.rope.scaling.factor", D, "gemma3.rope.scaling.factor", { U32 (6), F32 (0) } },
  { "gemma-softcap", "gemma3.final_logit_softcapping", U, "final_logit_softcapping", { U32 (6), F32 (30) } },
};

static void
test_bad_gguf (gconstpointer data)
{
  const KeyChange *change = data;
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) bytes = NULL;
  gsize n = 0;

  while (n < G_N_ELEMENTS (change->pieces) && change->pieces[n].kind != OX_PIECE_END)
    n++;
  if (g_str_has_prefix (change->key, "gemma3."))
    bytes = ox_build_gemma3_gguf (8, change->key, change->pieces, n);
  else
    bytes = ox_build_llama_gguf (change->key, change->pieces, n);
  g_assert_null (from_gguf (bytes, &error));
  ox_check_error (&error, change->code, OX_CHECK_FILE_NAME, change->text);
}

/* Llama 3's divisors of frequencies, as a tensor. */
static void
test_rope_factors (void)
{
  static const OxPiece arch[] = { U32 (8), STR ("llama") };
  static const struct {
    guint n;
    float values[2];
    const char *error;
  } cases[] = { { 2, { 1, 8 }, NULL },
                { 1, { 1 }, "shape [2]" },
                { 2, { 1, 0 }, "number above 0" },
                { 2, { NAN, 1 }, "number above 0" } };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (GByteArray) array = g_byte_array_new ();
    g_autoptr (GBytes) bytes = NULL;
    g_autoptr (OxConfig) config = NULL;
    const OxPiece pieces[] = {
      GGUF (3, 2, 8),
      STR ("general.architecture"),
      arch[0],
      arch[1],
      STR ("llama.block_count"),
      U32 (4),
      U32 (1),
      STR ("llama.context_length"),
      U32 (4),
      U32 (8),
      STR ("llama.embedding_length"),
      U32 (4),
      U32 (8),
      STR ("llama.feed_forward_length"),
      U32 (4),
      U32 (8),
      STR ("llama.attention.head_count"),
      U32 (4),
      U32 (2),
      STR ("llama.attention.layer_norm_rms_epsilon"),
      U32 (6),
      F32 (1e-5),
      STR ("llama.vocab_size"),
      U32 (4),
      U32 (1),
      STR ("token_embd.weight"),
      U32 (2),
      U64 (8),
      U64 (1),
      U32 (0),
      U64 (32),
      STR ("rope_freqs.weight"),
      U32 (1),
      U64 (cases[i].n),
      U32 (0),
      U64 (0),
      ALIGN (32),
      F32 (cases[i].values[0]),
      F32 (cases[i].values[1]),
      ZEROS (56),
    };

    ox_pieces_append (array, pieces, G_N_ELEMENTS (pieces));
    bytes = g_byte_array_free_to_bytes (g_steal_pointer (&array));
    config = from_gguf (bytes, &error);
    if (cases[i].error) {
      g_assert_null (config);
      ox_check_error (&error, OX_ERROR_DAMAGED, OX_CHECK_FILE_NAME, cases[i].error);
      continue;
    }
    g_assert_no_error (error);
    g_assert_nonnull (config->rope.freq_factors);
    g_assert_true (config->rope.freq_factors[0] == 1 && config->rope.freq_factors[1] == 8);
  }
}

/* config.json and generation_config.json beside the weights, and the embedding's shape. */
static void
test_load (void)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *folder = g_dir_make_tmp ("ox-config-XXXXXX", &error);
  g_autofree char *weights_path = g_build_filename (folder, "model.safetensors", NULL);
  g_autofree char *config_path = g_build_filename (folder, "config.json", NULL);
  g_autofree char *generation_path = g_build_filename (folder, "generation_config.json", NULL);
  g_autoptr (GBytes) bytes = NULL;
  g_autoptr (OxWeights) weights = NULL;
  g_autoptr (OxConfig) config = NULL;
  g_autoptr (OxConfig) by_folder = NULL;
  g_autoptr (GString) other = g_string_new (gemma3_old);

  g_assert_no_error (error);
  bytes = ox_build_safetensors (
    "{\"model.embed_tokens.weight\":{\"dtype\":\"U8\",\"shape\":[320,64],\"data_offsets\":[0,20480]}}", -1, 20480);
  g_file_set_contents (weights_path, g_bytes_get_data (bytes, NULL), (gssize) g_bytes_get_size (bytes), &error);
  weights = ox_weights_open (folder, NULL, &error);
  g_assert_no_error (error);

  g_assert_null (ox_config_load (folder, weights, &error));
  ox_check_error (&error, OX_ERROR_NOT_FOUND, config_path, "missing");
  g_file_set_contents (config_path, gemma3_old, -1, &error);
  config = ox_config_load (weights_path, weights, &error);
  g_assert_no_error (error);
  check_eos (config, 2, 1u, 106u);
  g_file_set_contents (generation_path, "{\"eos_token_id\":[106,3]}", -1, &error);
  by_folder = ox_config_load (folder, weights, &error);
  g_assert_no_error (error);
  check_eos (by_folder, 3, 1u, 106u, 3u);
  g_file_set_contents (generation_path, "{\"eos_token_id\":", -1, &error);
  g_assert_null (ox_config_load (folder, weights, &error));
  ox_check_error (&error, OX_ERROR_DAMAGED, generation_path, "JSON");
  g_unlink (generation_path);

  g_string_replace (other, "\"vocab_size\":320", "\"vocab_size\":321", 0);
  g_file_set_contents (config_path, other->str, -1, &error);
  g_assert_null (ox_config_load (folder, weights, &error));
  ox_check_error (&error, OX_ERROR_DAMAGED, config_path, "“vocab_size” is 321");
  g_string_assign (other, gemma3_old);
  g_string_replace (other, "\"hidden_size\":64", "\"hidden_size\":65", 0);
  g_file_set_contents (config_path, other->str, -1, &error);
  g_assert_null (ox_config_load (folder, weights, &error));
  ox_check_error (&error, OX_ERROR_DAMAGED, config_path, "“hidden_size” is 65");

  g_unlink (config_path);
  g_unlink (weights_path);
  g_rmdir (folder);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/io/config/llama", test_llama);
  g_test_add_func ("/io/config/mistral", test_mistral);
  g_test_add_func ("/io/config/qwen", test_qwen);
  g_test_add_func ("/io/config/gemma3", test_gemma3);
  g_test_add_func ("/io/config/generation", test_generation);
  for (gsize i = 0; i < G_N_ELEMENTS (bad_json); i++) {
    g_autofree char *path = g_strconcat ("/io/config/bad-json/", bad_json[i].name, NULL);

    g_test_add_data_func (path, &bad_json[i], test_bad_json);
  }
  g_test_add_func ("/io/config/not-json", test_not_json);
  g_test_add_func ("/io/config/gguf-llama", test_gguf_llama);
  g_test_add_func ("/io/config/gguf-gemma3", test_gguf_gemma3);
  for (gsize i = 0; i < G_N_ELEMENTS (bad_gguf); i++) {
    g_autofree char *path = g_strconcat ("/io/config/bad-gguf/", bad_gguf[i].name, NULL);

    g_test_add_data_func (path, &bad_gguf[i], test_bad_gguf);
  }
  g_test_add_func ("/io/config/rope-factors", test_rope_factors);
  g_test_add_func ("/io/config/load", test_load);
  return g_test_run ();
}
