/* Models without weights: configurations of published models, and their tensors in a file that a function makes.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-dry-model.h"

#include <math.h>
#include <string.h>

#include "models/ox-network.h"

/* Elements of the table that all random matrices are cut from, and of the pieces that are cut. */
#define TABLE 65536
#define PIECE 4096

/* ---- Configurations (facts from the model cards and configurations of the repositories) ------------------------------- */

typedef struct {
  const char *name;
  guint hidden, layers, period, heads, kv_heads, global_kv_heads; /* global_kv_heads 0: as kv_heads */
  guint intermediate, shared_layers, window, ple, positions;
  gboolean k_eq_v, double_wide;
  guint experts, top_k, moe_intermediate;
} GemmaShape;

static const GemmaShape gemma_shapes[] = {
  { "gemma-4-e2b", 1536, 35, 5, 8, 1, 0, 6144, 20, 512, 256, 131072, FALSE, TRUE, 0, 0, 0 },
  { "gemma-4-e4b", 2560, 42, 6, 8, 2, 0, 10240, 18, 512, 256, 131072, FALSE, FALSE, 0, 0, 0 },
  { "gemma-4-12b", 3840, 48, 6, 16, 8, 1, 15360, 0, 1024, 0, 262144, TRUE, FALSE, 0, 0, 0 },
  { "gemma-4-26b-a4b", 2816, 30, 6, 16, 8, 2, 2112, 0, 1024, 0, 262144, TRUE, FALSE, 128, 8, 704 },
  { "gemma-4-31b", 5376, 60, 6, 32, 16, 4, 21504, 0, 1024, 0, 262144, TRUE, FALSE, 0, 0, 0 },
};

typedef struct {
  const char *name;
  guint hidden, intermediate, layers, heads, kv_heads, key_heads, value_heads;
  gboolean tied;
} QwenShape;

static const QwenShape qwen_shapes[] = {
  { "qwen3.5-0.8b", 1024, 3584, 24, 8, 2, 16, 16, TRUE },   { "qwen3.5-2b", 2048, 6144, 24, 8, 2, 16, 16, TRUE },
  { "qwen3.5-4b", 2560, 9216, 32, 16, 4, 16, 32, TRUE },    { "qwen3.5-9b", 4096, 12288, 32, 16, 4, 16, 32, FALSE },
  { "qwen3.5-27b", 5120, 17408, 64, 24, 4, 16, 48, FALSE },
};

const char *const *
ox_dry_model_get_names (void)
{
  static const char *names[G_N_ELEMENTS (gemma_shapes) + G_N_ELEMENTS (qwen_shapes) + 1];

  for (gsize i = 0; i < G_N_ELEMENTS (gemma_shapes); i++)
    names[i] = gemma_shapes[i].name;
  for (gsize i = 0; i < G_N_ELEMENTS (qwen_shapes); i++)
    names[G_N_ELEMENTS (gemma_shapes) + i] = qwen_shapes[i].name;
  return names;
}

static void
add_uint (GString *json, const char *key, guint value)
{
  g_string_append_printf (json, "\"%s\": %u, ", key, value);
}

static void
add_bool (GString *json, const char *key, gboolean value)
{
  g_string_append_printf (json, "\"%s\": %s, ", key, value ? "true" : "false");
}

static void
add_gemma (GString *json, const GemmaShape *shape)
{
  g_string_append (json, "\"model_type\": \"gemma4_text\", ");
  add_uint (json, "hidden_size", shape->hidden);
  add_uint (json, "num_attention_heads", shape->heads);
  add_uint (json, "num_key_value_heads", shape->kv_heads);
  if (shape->global_kv_heads > 0)
    add_uint (json, "num_global_key_value_heads", shape->global_kv_heads);
  add_uint (json, "head_dim", 256);
  add_uint (json, "global_head_dim", 512);
  add_bool (json, "attention_k_eq_v", shape->k_eq_v);
  add_uint (json, "intermediate_size", shape->intermediate);
  add_bool (json, "use_double_wide_mlp", shape->double_wide);
  add_uint (json, "num_kv_shared_layers", shape->shared_layers);
  add_uint (json, "sliding_window", shape->window);
  add_uint (json, "hidden_size_per_layer_input", shape->ple);
  add_uint (json, "vocab_size", 262144);
  add_uint (json, "vocab_size_per_layer_input", 262144);
  add_uint (json, "max_position_embeddings", shape->positions);
  add_bool (json, "enable_moe_block", shape->experts > 0);
  if (shape->experts > 0) {
    add_uint (json, "num_experts", shape->experts);
    add_uint (json, "top_k_experts", shape->top_k);
    add_uint (json, "moe_intermediate_size", shape->moe_intermediate);
  }
  g_string_append (json, "\"final_logit_softcapping\": 30.0, \"bos_token_id\": 2, \"eos_token_id\": 1, "
                         "\"rope_parameters\": {\"sliding_attention\": {\"rope_type\": \"default\", "
                         "\"rope_theta\": 10000.0}, \"full_attention\": {\"rope_type\": \"proportional\", "
                         "\"partial_rotary_factor\": 0.25, \"rope_theta\": 1000000.0}}, ");
}

static void
add_qwen (GString *json, const QwenShape *shape)
{
  g_string_append (json, "\"model_type\": \"qwen3_5_text\", ");
  add_uint (json, "hidden_size", shape->hidden);
  add_uint (json, "intermediate_size", shape->intermediate);
  add_uint (json, "num_attention_heads", shape->heads);
  add_uint (json, "num_key_value_heads", shape->kv_heads);
  add_uint (json, "head_dim", 256);
  add_uint (json, "linear_num_key_heads", shape->key_heads);
  add_uint (json, "linear_num_value_heads", shape->value_heads);
  add_uint (json, "linear_key_head_dim", 128);
  add_uint (json, "linear_value_head_dim", 128);
  add_uint (json, "linear_conv_kernel_dim", 4);
  add_uint (json, "vocab_size", 248320);
  add_uint (json, "max_position_embeddings", 262144);
  add_uint (json, "eos_token_id", 248044);
  g_string_append (json, "\"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 10000000.0, "
                         "\"partial_rotary_factor\": 0.25}, ");
}

/* The last layer of every period attends to everything, and so does the last of all. */
static char *
finish_config (GString *json, guint layers, guint period, const char *kind, gboolean tied)
{
  add_uint (json, "num_hidden_layers", layers);
  add_bool (json, "tie_word_embeddings", tied);
  g_string_append (json, "\"rms_norm_eps\": 1e-6, \"layer_types\": [");
  for (guint i = 0; i < layers; i++)
    g_string_append_printf (json, "%s\"%s\"", i > 0 ? ", " : "",
                            (i + 1) % period == 0 || i + 1 == layers ? "full_attention" : kind);
  g_string_append (json, "]}");
  return g_string_free (json, FALSE);
}

char *
ox_dry_model_make_config (const char *name)
{
  GString *json = g_string_new ("{");

  for (gsize i = 0; i < G_N_ELEMENTS (gemma_shapes); i++)
    if (strcmp (gemma_shapes[i].name, name) == 0) {
      add_gemma (json, &gemma_shapes[i]);
      return finish_config (json, gemma_shapes[i].layers, gemma_shapes[i].period, "sliding_attention", TRUE);
    }
  for (gsize i = 0; i < G_N_ELEMENTS (qwen_shapes); i++)
    if (strcmp (qwen_shapes[i].name, name) == 0) {
      add_qwen (json, &qwen_shapes[i]);
      return finish_config (json, qwen_shapes[i].layers, 4, "linear_attention", qwen_shapes[i].tied);
    }
  g_string_free (json, TRUE);
  return NULL;
}

/* ---- The file -------------------------------------------------------------------------------------------------------- */

/* What the elements of a tensor are. */
typedef enum {
  FILL_RANDOM, /* times 2^-shift */
  FILL_ZERO,
  FILL_ONE,
} Fill;

typedef struct {
  guint64 begin, end; /* in the file */
  Fill fill;
  guint shift;
} Span;

typedef struct {
  GString *header;
  GArray *spans; /* Span, in order */
  guint64 data_offset, size;
  guint16 table[TABLE + PIECE]; /* BF16 of variance 1 */
} DryFile;

static void
dry_file_free (gpointer data)
{
  DryFile *self = data;

  g_string_free (self->header, TRUE);
  g_array_unref (self->spans);
  g_free (self);
}

/* Steele & Vigna 2014, splitmix64. */
static guint64
mix (guint64 x)
{
  x += G_GUINT64_CONSTANT (0x9e3779b97f4a7c15);
  x = (x ^ x >> 30) * G_GUINT64_CONSTANT (0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * G_GUINT64_CONSTANT (0x94d049bb133111eb);
  return x ^ x >> 31;
}

/* Uniform, of variance 1, and of no magnitude below 2^-6: then dividing by a power of two is a subtraction from the exponent. */
static void
fill_table (guint16 *table)
{
  for (gsize i = 0; i < TABLE + PIECE; i++) {
    guint64 random = mix (i % TABLE);
    float x = 0x1p-6f + (float) (random >> 40) * 0x1p-24f * (1.7164f - 0x1p-6f);
    guint32 bits;

    memcpy (&bits, &x, sizeof bits);
    table[i] = (guint16) (bits >> 16 | (random & 1) << 15);
  }
}

/* Elements [first, first + n) of a random tensor, all of one piece. */
static void
fill_random (const DryFile *self, const Span *span, guint64 first, guint16 *out, gsize n)
{
  const guint16 *piece = self->table + (mix (span->begin + first / PIECE * 2) & (TABLE - 1));
  guint16 less = (guint16) (span->shift << 7);

  piece += first % PIECE;
  for (gsize i = 0; i < n; i++)
    out[i] = GUINT16_TO_LE ((guint16) (piece[i] - less));
}

/* Bytes [offset, offset + len) of the tensor at @span, counted from its beginning. */
static void
fill_span (const DryFile *self, const Span *span, guint64 offset, guint8 *out, gsize len)
{
  while (len > 0) {
    guint64 first = offset / 2;
    gsize n = (gsize) MIN (PIECE - first % PIECE, (len + offset % 2 + 1) / 2);
    guint16 values[PIECE];
    gsize bytes = MIN (n * 2 - offset % 2, len);

    if (span->fill == FILL_RANDOM)
      fill_random (self, span, first, values, n);
    for (gsize i = 0; span->fill != FILL_RANDOM && i < n; i++)
      values[i] = span->fill == FILL_ONE ? GUINT16_TO_LE (0x3f80) : 0;
    memcpy (out, (const guint8 *) values + offset % 2, bytes);
    out += bytes;
    offset += bytes;
    len -= bytes;
  }
}

static int
compare_span (gconstpointer key, gconstpointer element)
{
  guint64 offset = *(const guint64 *) key;
  const Span *span = element;

  return offset < span->begin ? -1 : offset >= span->end;
}

static void
dry_file_fill (guint64 offset, guint8 *buffer, gsize len, gpointer user_data)
{
  const DryFile *self = user_data;
  guint8 length[8];
  guint64 little = GUINT64_TO_LE ((guint64) self->header->len);

  memcpy (length, &little, sizeof length);
  for (; len > 0 && offset < self->data_offset; offset++, len--)
    *buffer++ = offset < 8 ? length[offset] : (guint8) self->header->str[offset - 8];
  while (len > 0) {
    const Span *span = bsearch (&offset, self->spans->data, self->spans->len, sizeof *span, compare_span);
    gsize n = (gsize) MIN (len, span->end - offset);

    fill_span (self, span, offset - span->begin, buffer, n);
    buffer += n;
    offset += n;
    len -= n;
  }
}

/* ---- Tensors --------------------------------------------------------------------------------------------------------- */

/* @cols 0: a vector; @taps: a third dimension, [rows, 1, taps] or [rows, cols, taps], or 0. */
static void
add_tensor (DryFile *self, const char *name, guint64 rows, guint64 cols, guint64 taps, Fill fill, double fan_in)
{
  guint64 n = rows * MAX (cols, 1) * MAX (taps, 1);
  Span span = { self->size, self->size + 2 * n, fill, 0 };

  if (fill == FILL_RANDOM)
    span.shift = (guint) lround (log2 (fan_in) / 2);
  g_string_append_printf (self->header, "%s\"model.%s\":{\"dtype\":\"BF16\",\"shape\":[%" G_GUINT64_FORMAT,
                          self->spans->len > 0 ? "," : "", name, rows);
  if (cols > 0)
    g_string_append_printf (self->header, ",%" G_GUINT64_FORMAT, cols);
  if (taps > 0)
    g_string_append_printf (self->header, ",%" G_GUINT64_FORMAT, taps);
  g_string_append_printf (self->header, "],\"data_offsets\":[%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT "]}", span.begin,
                          span.end);
  g_array_append_val (self->spans, span);
  self->size = span.end;
}

static void
add_matrix (DryFile *self, int layer, const char *name, guint64 rows, guint64 cols)
{
  g_autofree char *full = layer >= 0 ? g_strdup_printf ("layers.%d.%s", layer, name) : g_strdup (name);

  add_tensor (self, full, rows, cols, 0, FILL_RANDOM, (double) cols);
}

static void
add_vector (DryFile *self, int layer, const char *name, guint64 n, Fill fill)
{
  g_autofree char *full = layer >= 0 ? g_strdup_printf ("layers.%d.%s", layer, name) : g_strdup (name);

  add_tensor (self, full, n, 0, 0, fill, 1);
}

static void
add_attention (DryFile *self, const OxConfig *c, int i)
{
  guint d = ox_config_head_dim (c, (guint) i), q = c->num_attention_heads * d,
        kv = ox_config_kv_heads (c, (guint) i) * d;
  Fill norm = c->norm_plus_one ? FILL_ZERO : FILL_ONE;

  add_matrix (self, i, "self_attn.q_proj.weight", c->family == OX_FAMILY_QWEN35 ? 2 * q : q, c->hidden_size);
  add_matrix (self, i, "self_attn.k_proj.weight", kv, c->hidden_size);
  if (!c->attention_k_eq_v || c->layer_kinds[i] != OX_LAYER_FULL)
    add_matrix (self, i, "self_attn.v_proj.weight", kv, c->hidden_size);
  add_matrix (self, i, "self_attn.o_proj.weight", c->hidden_size, q);
  if (c->qk_norm) {
    add_vector (self, i, "self_attn.q_norm.weight", d, norm);
    add_vector (self, i, "self_attn.k_norm.weight", d, norm);
  }
  if (c->attention_bias) {
    add_vector (self, i, "self_attn.q_proj.bias", q, FILL_ZERO);
    add_vector (self, i, "self_attn.k_proj.bias", kv, FILL_ZERO);
    add_vector (self, i, "self_attn.v_proj.bias", kv, FILL_ZERO);
  }
}

static void
add_delta_rule (DryFile *self, const OxConfig *c, int i)
{
  OxDeltaShape shape = ox_config_delta_shape (c);
  guint channels = ox_delta_channels (&shape), values = shape.value_heads * shape.value_dim;
  g_autofree char *conv = g_strdup_printf ("layers.%d.linear_attn.conv1d.weight", i);

  add_matrix (self, i, "linear_attn.in_proj_qkv.weight", channels, c->hidden_size);
  add_matrix (self, i, "linear_attn.in_proj_z.weight", values, c->hidden_size);
  add_matrix (self, i, "linear_attn.in_proj_b.weight", shape.value_heads, c->hidden_size);
  add_matrix (self, i, "linear_attn.in_proj_a.weight", shape.value_heads, c->hidden_size);
  add_tensor (self, conv, channels, 1, shape.conv_kernel, FILL_RANDOM, shape.conv_kernel);
  add_vector (self, i, "linear_attn.A_log", shape.value_heads, FILL_ZERO);
  add_vector (self, i, "linear_attn.dt_bias", shape.value_heads, FILL_ZERO);
  add_vector (self, i, "linear_attn.norm.weight", shape.value_dim, FILL_ONE);
  add_matrix (self, i, "linear_attn.out_proj.weight", c->hidden_size, values);
}

static void
add_experts (DryFile *self, const OxConfig *c, int i)
{
  g_autofree char *gate_up = g_strdup_printf ("layers.%d.experts.gate_up_proj", i);
  g_autofree char *down = g_strdup_printf ("layers.%d.experts.down_proj", i);

  add_matrix (self, i, "router.proj.weight", c->num_experts, c->hidden_size);
  add_vector (self, i, "router.scale", c->hidden_size, FILL_ONE);
  add_vector (self, i, "router.per_expert_scale", c->num_experts, FILL_ONE);
  add_tensor (self, gate_up, c->num_experts, 2 * (guint64) c->moe_intermediate_size, c->hidden_size, FILL_RANDOM,
              c->hidden_size);
  add_tensor (self, down, c->num_experts, c->hidden_size, c->moe_intermediate_size, FILL_RANDOM,
              c->moe_intermediate_size);
  add_vector (self, i, "pre_feedforward_layernorm_2.weight", c->hidden_size, FILL_ONE);
  add_vector (self, i, "post_feedforward_layernorm_1.weight", c->hidden_size, FILL_ONE);
  add_vector (self, i, "post_feedforward_layernorm_2.weight", c->hidden_size, FILL_ONE);
}

static void
add_layer (DryFile *self, const OxConfig *c, int i)
{
  gboolean gemma = c->family == OX_FAMILY_GEMMA3 || c->family == OX_FAMILY_GEMMA4;
  guint intermediate = ox_config_intermediate_size (c, (guint) i), ple = c->hidden_size_per_layer_input;
  Fill norm = c->norm_plus_one ? FILL_ZERO : FILL_ONE;

  add_vector (self, i, "input_layernorm.weight", c->hidden_size, norm);
  add_vector (self, i, "post_attention_layernorm.weight", c->hidden_size, norm);
  if (c->layer_kinds[i] == OX_LAYER_LINEAR)
    add_delta_rule (self, c, i);
  else
    add_attention (self, c, i);
  if (gemma) {
    add_vector (self, i, "pre_feedforward_layernorm.weight", c->hidden_size, norm);
    add_vector (self, i, "post_feedforward_layernorm.weight", c->hidden_size, norm);
  }
  add_matrix (self, i, "mlp.gate_proj.weight", intermediate, c->hidden_size);
  add_matrix (self, i, "mlp.up_proj.weight", intermediate, c->hidden_size);
  add_matrix (self, i, "mlp.down_proj.weight", c->hidden_size, intermediate);
  if (c->num_experts > 0)
    add_experts (self, c, i);
  if (c->family == OX_FAMILY_GEMMA4)
    add_vector (self, i, "layer_scalar", 1, FILL_ONE);
  if (ple > 0) {
    add_matrix (self, i, "per_layer_input_gate.weight", ple, c->hidden_size);
    add_matrix (self, i, "per_layer_projection.weight", c->hidden_size, ple);
    add_vector (self, i, "post_per_layer_input_norm.weight", c->hidden_size, FILL_ONE);
  }
}

OxWeights *
ox_dry_model_weights (const OxConfig *c, const char *name, GError **error)
{
  DryFile *self = g_new0 (DryFile, 1);
  guint64 ple = (guint64) c->num_hidden_layers * c->hidden_size_per_layer_input;
  g_autoptr (OxFile) file = NULL;

  self->header = g_string_new ("{");
  self->spans = g_array_new (FALSE, FALSE, sizeof (Span));
  fill_table (self->table);
  add_matrix (self, -1, "embed_tokens.weight", c->vocab_size, c->hidden_size);
  if (!c->tie_word_embeddings)
    add_matrix (self, -1, "lm_head.weight", c->vocab_size, c->hidden_size);
  if (ple > 0) {
    add_matrix (self, -1, "embed_tokens_per_layer.weight", c->vocab_size_per_layer_input, ple);
    add_matrix (self, -1, "per_layer_model_projection.weight", ple, c->hidden_size);
    add_vector (self, -1, "per_layer_projection_norm.weight", c->hidden_size_per_layer_input, FILL_ONE);
  }
  for (guint i = 0; i < c->num_hidden_layers; i++)
    add_layer (self, c, (int) i);
  add_vector (self, -1, "norm.weight", c->hidden_size, c->norm_plus_one ? FILL_ZERO : FILL_ONE);
  g_string_append_c (self->header, '}');
  while (self->header->len % 8 != 0)
    g_string_append_c (self->header, ' ');

  /* Until here, places were counted from the end of the header. */
  self->data_offset = 8 + self->header->len;
  self->size += self->data_offset;
  for (guint i = 0; i < self->spans->len; i++) {
    Span *span = &g_array_index (self->spans, Span, i);

    span->begin += self->data_offset;
    span->end += self->data_offset;
  }
  file = ox_file_new_generated (self->size, dry_file_fill, self, dry_file_free, name);
  return ox_weights_open_safetensors (file, error);
}
