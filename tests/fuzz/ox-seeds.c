/* Small valid files that fuzzing starts from.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-seeds.h"

#include <string.h>

#include "ox-pieces.h"

static const char llama_json[] =
  "{\"model_type\":\"llama\",\"bos_token_id\":1,\"eos_token_id\":[2,3],\"head_dim\":64,\"hidden_act\":\"silu\","
  "\"hidden_size\":2048,"
  "\"intermediate_size\":8192,\"max_position_embeddings\":131072,\"num_attention_heads\":32,\"num_hidden_layers\":16,"
  "\"num_key_value_heads\":8,\"rms_norm_eps\":1e-05,\"rope_scaling\":{\"factor\":32.0,\"high_freq_factor\":4.0,"
  "\"low_freq_factor\":1.0,\"original_max_position_embeddings\":8192,\"rope_type\":\"llama3\"},\"rope_theta\":500000.0,"
  "\"tie_word_embeddings\":true,\"vocab_size\":128256}";
static const char gemma_json[] =
  "{\"model_type\":\"gemma3\",\"eos_token_id\":1,\"text_config\":{\"head_dim\":32,\"hidden_size\":64,\"intermediate_"
  "size\":96,"
  "\"num_attention_heads\":4,\"num_hidden_layers\":3,\"num_key_value_heads\":2,\"layer_types\":[\"sliding_attention\","
  "\"full_attention\",\"sliding_attention\"],\"rope_parameters\":{\"full_attention\":{\"factor\":8.0,\"rope_type\":"
  "\"linear\","
  "\"rope_theta\":1e6},\"sliding_attention\":{\"rope_theta\":10000,\"rope_type\":\"default\"}},\"sliding_window\":512,"
  "\"vocab_size\":320,\"query_pre_attn_scalar\":24}}";
static const char qwen_json[] = "{\"model_type\":\"qwen2\",\"hidden_size\":896,\"intermediate_size\":4864,\"max_window_"
                                "layers\":2,\"num_attention_heads\":14,"
                                "\"num_hidden_layers\":4,\"num_key_value_heads\":2,\"rms_norm_eps\":1e-06,\"sliding_"
                                "window\":64,\"use_sliding_window\":true,"
                                "\"vocab_size\":1000,\"_name_or_path\":\"a/b\"}";

static const char gemma4_json[] =
  "{\"model_type\":\"gemma4\",\"boi_token_id\":9,\"eos_token_id\":[1,106],\"text_config\":{\"model_type\":\"gemma4_"
  "text\","
  "\"attention_k_eq_v\":true,\"bos_token_id\":2,\"enable_moe_block\":true,\"final_logit_softcapping\":30.0,"
  "\"global_head_dim\":32,\"head_dim\":16,\"hidden_size\":64,\"hidden_size_per_layer_input\":32,"
  "\"intermediate_size\":64,\"layer_types\":[\"sliding_attention\",\"full_attention\",\"sliding_attention\","
  "\"full_attention\"],\"max_position_embeddings\":131072,\"moe_intermediate_size\":32,\"num_attention_heads\":4,"
  "\"num_experts\":8,\"num_global_key_value_heads\":1,\"num_hidden_layers\":4,\"num_key_value_heads\":2,"
  "\"num_kv_shared_layers\":2,\"rope_parameters\":{\"full_attention\":{\"partial_rotary_factor\":0.25,\"rope_theta\":"
  "1e6,\"rope_type\":\"proportional\"},\"sliding_attention\":{\"rope_theta\":1e4,\"rope_type\":\"default\"}},"
  "\"sliding_window\":12,\"top_k_experts\":2,\"use_bidirectional_attention\":\"vision\",\"use_double_wide_mlp\":true,"
  "\"vocab_size\":320,\"vocab_size_per_layer_input\":320}}";
static const char assistant_json[] =
  "{\"model_type\":\"gemma4_assistant\",\"backbone_hidden_size\":64,\"centroid_intermediate_top_k\":8,"
  "\"num_centroids\":32,\"use_ordered_embeddings\":true,\"text_config\":{\"head_dim\":16,\"hidden_size\":64,"
  "\"hidden_size_per_layer_input\":0,\"intermediate_size\":64,\"num_attention_heads\":4,\"num_hidden_layers\":4,"
  "\"num_key_value_heads\":1,\"num_kv_shared_layers\":4,\"per_layer_config\":{\"3\":{\"head_dim\":32}},"
  "\"vocab_size\":384}}";
static const char qwen35_json[] =
  "{\"model_type\":\"qwen3_5\",\"tie_word_embeddings\":true,\"text_config\":{\"attn_output_gate\":true,"
  "\"eos_token_id\":248044,\"full_attention_interval\":4,\"head_dim\":32,\"hidden_act\":\"silu\",\"hidden_size\":64,"
  "\"intermediate_size\":96,\"linear_conv_kernel_dim\":4,\"linear_key_head_dim\":32,\"linear_num_key_heads\":2,"
  "\"linear_num_value_heads\":4,\"linear_value_head_dim\":32,\"mtp_num_hidden_layers\":1,\"num_attention_heads\":6,"
  "\"num_hidden_layers\":8,\"num_key_value_heads\":2,\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":"
  "1e7,\"partial_rotary_factor\":0.25,\"mrope_section\":[2,1,1]},\"vocab_size\":320}}";

static const char tensors_header[] =
  "{\"__metadata__\":{\"format\":\"pt\"},\"model.a\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[4,16]},"
  "\"b\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]},\"c\":{\"dtype\":\"I64\",\"shape\":[1,0],\"data_"
  "offsets\":[16,16]},"
  "\"d\":{\"dtype\":\"U8\",\"shape\":[5],\"data_offsets\":[16,21]},\"\\u00e9\":{\"dtype\":\"F64\",\"shape\":[1],"
  "\"data_offsets\":[21,29]}}  ";

static void
add_text (OxFuzzFormat *format, const char *text)
{
  g_ptr_array_add (format->seeds, g_bytes_new_static (text, strlen (text)));
}

OxFuzzFormat *
ox_fuzz_format_new (guint index)
{
  static const OxPiece scores[] = { U32 (9), U32 (6), U64 (3), F32 (0.5), F32 (-1), F32 (3) };
  static const OxPiece split[] = { U32 (2), U16 (1) };
  OxFuzzFormat *format = g_new0 (OxFuzzFormat, 1);

  format->seeds = g_ptr_array_new_with_free_func ((GDestroyNotify) g_bytes_unref);
  switch (index) {
  case 0:
    format->name = "gguf";
    format->exercise = ox_exercise_gguf;
    g_ptr_array_add (format->seeds, ox_build_llama_gguf ("tokenizer.ggml.scores", scores, G_N_ELEMENTS (scores)));
    g_ptr_array_add (format->seeds, ox_build_llama_gguf ("split.count", split, G_N_ELEMENTS (split)));
    g_ptr_array_add (format->seeds, ox_build_gemma3_gguf (8, NULL, NULL, 0));
    g_ptr_array_add (format->seeds, ox_build_gemma4_gguf (NULL, NULL, 0));
    g_ptr_array_add (format->seeds, ox_build_qwen35_gguf (NULL, NULL, 0));
    break;
  case 1:
    format->name = "safetensors";
    format->exercise = ox_exercise_safetensors;
    g_ptr_array_add (format->seeds, ox_build_safetensors (tensors_header, -1, 29));
    g_ptr_array_add (format->seeds, ox_build_safetensors ("{}", -1, 0));
    break;
  case 2:
    format->name = "config";
    format->exercise = ox_exercise_config;
    format->is_text = TRUE;
    add_text (format, llama_json);
    add_text (format, gemma_json);
    add_text (format, qwen_json);
    add_text (format, gemma4_json);
    add_text (format, assistant_json);
    add_text (format, qwen35_json);
    break;
  default:
    g_ptr_array_unref (format->seeds);
    g_free (format);
    return NULL;
  }
  return format;
}

void
ox_fuzz_format_free (OxFuzzFormat *format)
{
  if (!format)
    return;
  g_ptr_array_unref (format->seeds);
  g_free (format);
}
