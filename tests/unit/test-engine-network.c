/* Llama and its kin against the formulas of their papers, in float64 and plain loops: rotary embedding with Llama 3's bands, biases
 * (Qwen 2), norms on q and k (Qwen 3), a sliding window (Mistral), heads wider than their share, tied and untied heads. The models
 * are Hugging Face folders with random weights.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-session-private.h"

#include <math.h>
#include <string.h>
#include <glib/gstdio.h>

#define LAYERS 3
#define HIDDEN 48
#define HEADS 6
#define KV_HEADS 2
#define HEAD_DIM 16
#define FEED_FORWARD 80
#define VOCAB 90
#define N 70
#define EPS 1e-5
#define TOLERANCE 1e-4

typedef struct {
  const char *model_type;
  gboolean bias, qk_norm, tied, llama3;
  guint window; /* 0: none */
  double theta;
} Variant;

/* Weights by name, and the file that they go to. */
typedef struct {
  GHashTable *tensors; /* name → float[] */
  GString *header;
  GByteArray *data;
  GRand *random;
} Weights;

static void add (Weights *weights, guint rows, guint cols, const char *format, ...) G_GNUC_PRINTF (4, 5);

/* @rows 0: a vector around 1, or around 0 when it is a bias. */
static void
add (Weights *weights, guint rows, guint cols, const char *format, ...)
{
  guint n = MAX (rows, 1) * cols;
  float *values = g_new (float, n);
  g_autofree char *shape = rows > 0 ? g_strdup_printf ("%u,%u", rows, cols) : g_strdup_printf ("%u", cols);
  guint begin = weights->data->len;
  char *name;
  va_list args;

  va_start (args, format);
  name = g_strdup_vprintf (format, args);
  va_end (args);
  for (guint i = 0; i < n; i++) {
    double x = g_rand_double_range (weights->random, -1, 1);

    if (rows > 0)
      x *= 2.5 / sqrt (cols);
    else if (g_str_has_suffix (name, ".bias"))
      x *= 0.5;
    else
      x = 1 + 0.3 * x;
    values[i] = (float) x;
  }
  g_byte_array_append (weights->data, (const guint8 *) values, n * sizeof (float));
  g_string_append_printf (weights->header, "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%s],\"data_offsets\":[%u,%u]}",
                          weights->header->len > 1 ? "," : "", name, shape, begin, weights->data->len);
  g_hash_table_insert (weights->tensors, name, values);
}

static const float *
get (Weights *weights, guint layer, const char *name)
{
  g_autofree char *full = g_strdup_printf ("model.layers.%u.%s", layer, name);
  const float *values = g_hash_table_lookup (weights->tensors, full);

  g_assert_nonnull (values);
  return values;
}

static void
weights_init (Weights *weights, const Variant *variant)
{
  weights->tensors = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  weights->header = g_string_new ("{");
  weights->data = g_byte_array_new ();
  weights->random = g_rand_new_with_seed (11);
  add (weights, VOCAB, HIDDEN, "model.embed_tokens.weight");
  for (guint i = 0; i < LAYERS; i++) {
    add (weights, 0, HIDDEN, "model.layers.%u.input_layernorm.weight", i);
    add (weights, HEADS * HEAD_DIM, HIDDEN, "model.layers.%u.self_attn.q_proj.weight", i);
    add (weights, KV_HEADS * HEAD_DIM, HIDDEN, "model.layers.%u.self_attn.k_proj.weight", i);
    add (weights, KV_HEADS * HEAD_DIM, HIDDEN, "model.layers.%u.self_attn.v_proj.weight", i);
    add (weights, HIDDEN, HEADS * HEAD_DIM, "model.layers.%u.self_attn.o_proj.weight", i);
    if (variant->bias) {
      add (weights, 0, HEADS * HEAD_DIM, "model.layers.%u.self_attn.q_proj.bias", i);
      add (weights, 0, KV_HEADS * HEAD_DIM, "model.layers.%u.self_attn.k_proj.bias", i);
      add (weights, 0, KV_HEADS * HEAD_DIM, "model.layers.%u.self_attn.v_proj.bias", i);
    }
    if (variant->qk_norm) {
      add (weights, 0, HEAD_DIM, "model.layers.%u.self_attn.q_norm.weight", i);
      add (weights, 0, HEAD_DIM, "model.layers.%u.self_attn.k_norm.weight", i);
    }
    add (weights, 0, HIDDEN, "model.layers.%u.post_attention_layernorm.weight", i);
    add (weights, FEED_FORWARD, HIDDEN, "model.layers.%u.mlp.gate_proj.weight", i);
    add (weights, FEED_FORWARD, HIDDEN, "model.layers.%u.mlp.up_proj.weight", i);
    add (weights, HIDDEN, FEED_FORWARD, "model.layers.%u.mlp.down_proj.weight", i);
  }
  add (weights, 0, HIDDEN, "model.norm.weight");
  if (!variant->tied)
    add (weights, VOCAB, HIDDEN, "lm_head.weight");
}

static void
weights_clear (Weights *weights)
{
  g_hash_table_unref (weights->tensors);
  g_string_free (weights->header, TRUE);
  g_byte_array_unref (weights->data);
  g_rand_free (weights->random);
}

static void
write_model (const char *folder, Weights *weights, const Variant *variant)
{
  g_autofree char *config_path = g_build_filename (folder, "config.json", NULL);
  g_autofree char *weights_path = g_build_filename (folder, "model.safetensors", NULL);
  g_autoptr (GByteArray) file = g_byte_array_new ();
  g_autoptr (GString) config = g_string_new (NULL);
  guint64 len;

  g_string_append_printf (
    config,
    "{\"model_type\":\"%s\",\"hidden_size\":%u,\"intermediate_size\":%u,\"num_hidden_layers\":%u,"
    "\"num_attention_heads\":%u,\"num_key_value_heads\":%u,\"head_dim\":%u,\"vocab_size\":%u,"
    "\"max_position_embeddings\":512,\"rms_norm_eps\":%g,\"rope_theta\":%g,\"hidden_act\":\"silu\","
    "\"tie_word_embeddings\":%s",
    variant->model_type, HIDDEN, FEED_FORWARD, LAYERS, HEADS, KV_HEADS, HEAD_DIM, VOCAB, EPS, variant->theta,
    variant->tied ? "true" : "false");
  if (variant->window > 0)
    g_string_append_printf (config, ",\"sliding_window\":%u", variant->window);
  if (variant->llama3)
    g_string_append (config, ",\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8.0,\"low_freq_factor\":1.0,"
                             "\"high_freq_factor\":4.0,\"original_max_position_embeddings\":64}");
  g_string_append_c (config, '}');
  g_assert_true (g_file_set_contents (config_path, config->str, (gssize) config->len, NULL));

  g_string_append_c (weights->header, '}');
  len = GUINT64_TO_LE ((guint64) weights->header->len);
  g_byte_array_append (file, (const guint8 *) &len, sizeof len);
  g_byte_array_append (file, (const guint8 *) weights->header->str, (guint) weights->header->len);
  g_byte_array_append (file, weights->data->data, weights->data->len);
  g_assert_true (g_file_set_contents (weights_path, (const char *) file->data, file->len, NULL));
}

/* ---- The reference ---- */

static void
linear (double *y, const double *x, const float *w, const float *bias, guint rows, guint cols)
{
  for (guint r = 0; r < rows; r++) {
    y[r] = bias != NULL ? (double) bias[r] : 0;
    for (guint c = 0; c < cols; c++)
      y[r] += (double) w[r * cols + c] * x[c];
  }
}

static void
rms_norm (double *y, const double *x, const float *w, guint n)
{
  double sum = 0, scale;

  for (guint i = 0; i < n; i++)
    sum += x[i] * x[i];
  scale = 1 / sqrt (sum / n + EPS);
  for (guint i = 0; i < n; i++)
    y[i] = x[i] * scale * (double) w[i];
}

/* Llama 3.1: wavelengths longer than original / low are slowed by factor, those shorter than original / high stay, between them the two
 * are blended in proportion. */
static double
frequency (const Variant *variant, guint i)
{
  double f = pow (variant->theta, -2.0 * i / HEAD_DIM);
  double wavelength = 2 * G_PI / f, blend;

  if (!variant->llama3 || wavelength < 64 / 4.0)
    return f;
  if (wavelength > 64 / 1.0)
    return f / 8;
  blend = (64 / wavelength - 1) / (4 - 1);
  return (1 - blend) * f / 8 + blend * f;
}

static void
rotate (double *x, const Variant *variant, guint heads, guint position)
{
  for (guint h = 0; h < heads; h++, x += HEAD_DIM)
    for (guint i = 0; i < HEAD_DIM / 2; i++) {
      double angle = position * frequency (variant, i);
      double a = x[i], b = x[i + HEAD_DIM / 2];

      x[i] = a * cos (angle) - b * sin (angle);
      x[i + HEAD_DIM / 2] = b * cos (angle) + a * sin (angle);
    }
}

/* Query @position of one head over keys [positions, KV_HEADS · HEAD_DIM]. */
static void
attend (double *out, const double *q, const double *k, const double *v, guint kv_head, guint position, guint window)
{
  guint first = window > 0 && position + 1 > window ? position + 1 - window : 0;
  double scores[N], max = -INFINITY, sum = 0;

  for (guint p = first; p <= position; p++) {
    scores[p] = 0;
    for (guint d = 0; d < HEAD_DIM; d++)
      scores[p] += q[d] * k[p * KV_HEADS * HEAD_DIM + kv_head * HEAD_DIM + d];
    scores[p] /= sqrt (HEAD_DIM);
    max = fmax (max, scores[p]);
  }
  for (guint p = first; p <= position; p++)
    sum += scores[p] = exp (scores[p] - max);
  for (guint d = 0; d < HEAD_DIM; d++) {
    out[d] = 0;
    for (guint p = first; p <= position; p++)
      out[d] += scores[p] / sum * v[p * KV_HEADS * HEAD_DIM + kv_head * HEAD_DIM + d];
  }
}

/* @x: [N, HIDDEN], the residual stream. */
static void
run_layer (double (*x)[HIDDEN], Weights *w, const Variant *variant, guint layer)
{
  double h[HIDDEN], q[N][HEADS * HEAD_DIM], k[N][KV_HEADS * HEAD_DIM], v[N][KV_HEADS * HEAD_DIM];
  double a[HEADS * HEAD_DIM], gate[FEED_FORWARD], up[FEED_FORWARD];

  for (guint i = 0; i < N; i++) {
    rms_norm (h, x[i], get (w, layer, "input_layernorm.weight"), HIDDEN);
    linear (q[i], h, get (w, layer, "self_attn.q_proj.weight"),
            variant->bias ? get (w, layer, "self_attn.q_proj.bias") : NULL, HEADS * HEAD_DIM, HIDDEN);
    linear (k[i], h, get (w, layer, "self_attn.k_proj.weight"),
            variant->bias ? get (w, layer, "self_attn.k_proj.bias") : NULL, KV_HEADS * HEAD_DIM, HIDDEN);
    linear (v[i], h, get (w, layer, "self_attn.v_proj.weight"),
            variant->bias ? get (w, layer, "self_attn.v_proj.bias") : NULL, KV_HEADS * HEAD_DIM, HIDDEN);
    for (guint j = 0; j < HEADS && variant->qk_norm; j++)
      rms_norm (q[i] + j * HEAD_DIM, q[i] + j * HEAD_DIM, get (w, layer, "self_attn.q_norm.weight"), HEAD_DIM);
    for (guint j = 0; j < KV_HEADS && variant->qk_norm; j++)
      rms_norm (k[i] + j * HEAD_DIM, k[i] + j * HEAD_DIM, get (w, layer, "self_attn.k_norm.weight"), HEAD_DIM);
    rotate (q[i], variant, HEADS, i);
    rotate (k[i], variant, KV_HEADS, i);
  }
  for (guint i = 0; i < N; i++) {
    for (guint j = 0; j < HEADS; j++)
      attend (a + j * HEAD_DIM, q[i] + j * HEAD_DIM, k[0], v[0], j / (HEADS / KV_HEADS), i, variant->window);
    linear (h, a, get (w, layer, "self_attn.o_proj.weight"), NULL, HIDDEN, HEADS * HEAD_DIM);
    for (guint d = 0; d < HIDDEN; d++)
      x[i][d] += h[d];
    rms_norm (h, x[i], get (w, layer, "post_attention_layernorm.weight"), HIDDEN);
    linear (gate, h, get (w, layer, "mlp.gate_proj.weight"), NULL, FEED_FORWARD, HIDDEN);
    linear (up, h, get (w, layer, "mlp.up_proj.weight"), NULL, FEED_FORWARD, HIDDEN);
    for (guint f = 0; f < FEED_FORWARD; f++)
      gate[f] = gate[f] / (1 + exp (-gate[f])) * up[f];
    linear (h, gate, get (w, layer, "mlp.down_proj.weight"), NULL, HIDDEN, FEED_FORWARD);
    for (guint d = 0; d < HIDDEN; d++)
      x[i][d] += h[d];
  }
}

static void
run_reference (const guint32 *ids, Weights *w, const Variant *variant, double (*logits)[VOCAB])
{
  const float *embedding = g_hash_table_lookup (w->tensors, "model.embed_tokens.weight");
  const float *head = variant->tied ? embedding : g_hash_table_lookup (w->tensors, "lm_head.weight");
  double x[N][HIDDEN], h[HIDDEN];

  for (guint i = 0; i < N; i++)
    for (guint d = 0; d < HIDDEN; d++)
      x[i][d] = (double) embedding[ids[i] * HIDDEN + d];
  for (guint layer = 0; layer < LAYERS; layer++)
    run_layer (x, w, variant, layer);
  for (guint i = 0; i < N; i++) {
    rms_norm (h, x[i], g_hash_table_lookup (w->tensors, "model.norm.weight"), HIDDEN);
    linear (logits[i], h, head, NULL, VOCAB, HIDDEN);
  }
}

/* ---- The comparison ---- */

static void
check (OxModel *model, guint chunk, const guint32 *ids, double (*expected)[VOCAB])
{
  g_autoptr (GError) error = NULL;
  g_autoptr (OxSession) session = ox_session_new_full (model, chunk, NULL, NULL, &error);
  g_autofree float *logits = g_new (float, N *VOCAB);
  double worst = 0;

  g_assert_true (ox_session_eval (session, ids, N, OX_LOGITS_ALL, logits, NULL, &error));
  for (guint i = 0; i < N; i++)
    for (guint t = 0; t < VOCAB; t++) {
      double difference = fabs ((double) logits[i * VOCAB + t] - expected[i][t]);

      g_assert_false (isnan (difference));
      worst = fmax (worst, difference);
    }
  g_test_message ("chunks of %u: %.2g", chunk, worst);
  g_assert_cmpfloat (worst, <=, TOLERANCE);
}

static void
test_variant (gconstpointer data)
{
  const Variant *variant = data;
  g_autofree char *folder = g_dir_make_tmp ("network-XXXXXX", NULL);
  g_autofree char *config_path = g_build_filename (folder, "config.json", NULL);
  g_autofree char *weights_path = g_build_filename (folder, "model.safetensors", NULL);
  OxModelOptions options = { .precision = OX_MODEL_PRECISION_EXACT };
  g_autoptr (OxModel) model = NULL;
  g_autoptr (GError) error = NULL;
  double logits[N][VOCAB];
  double largest = 0;
  Weights weights;
  guint32 ids[N];

  weights_init (&weights, variant);
  for (guint i = 0; i < N; i++)
    ids[i] = i * i * 7 % VOCAB;
  write_model (folder, &weights, variant);
  run_reference (ids, &weights, variant, logits);
  for (guint t = 0; t < VOCAB; t++)
    largest = fmax (largest, fabs (logits[N - 1][t]));
  g_assert_cmpfloat (largest, >, 1);

  model = ox_model_load_full (folder, &options, FALSE, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  model->state_options.slack = 0;
  check (model, 0, ids, logits);
  check (model, 11, ids, logits);
  check (model, 1, ids, logits);

  weights_clear (&weights);
  g_unlink (config_path);
  g_unlink (weights_path);
  g_rmdir (folder);
}

int
main (int argc, char **argv)
{
  static const Variant llama = { .model_type = "llama", .theta = 1e4 };
  static const Variant tied = { .model_type = "llama", .tied = TRUE, .theta = 1e4 };
  static const Variant llama3 = { .model_type = "llama", .llama3 = TRUE, .theta = 1e3 };
  static const Variant qwen2 = { .model_type = "qwen2", .bias = TRUE, .tied = TRUE, .theta = 1e6 };
  static const Variant qwen3 = { .model_type = "qwen3", .qk_norm = TRUE, .theta = 1e6 };
  static const Variant mistral = { .model_type = "mistral", .window = 13, .theta = 1e4 };

  g_test_init (&argc, &argv, NULL);
  g_test_add_data_func ("/engine/network/llama", &llama, test_variant);
  g_test_add_data_func ("/engine/network/llama-tied", &tied, test_variant);
  g_test_add_data_func ("/engine/network/llama3-rope", &llama3, test_variant);
  g_test_add_data_func ("/engine/network/qwen2", &qwen2, test_variant);
  g_test_add_data_func ("/engine/network/qwen3", &qwen3, test_variant);
  g_test_add_data_func ("/engine/network/mistral", &mistral, test_variant);
  return g_test_run ();
}
