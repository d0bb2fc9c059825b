/* Every published model, by its tensors' shapes: parameters, bytes and what a conversation takes are the published numbers.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-published.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "models/ox-drafter.h"
#include "ox-model-private.h"

#define KIB 1024ull
#define MIB (1024ull * 1024)

typedef struct {
  const char *name;
  guint n_shards;
  /* Of the whole repository, as published; 0: not known. */
  guint n_tensors;
  guint64 parameters;
  guint64 payload;
  /* Of what is read for text; 0: by the shapes here only. */
  guint64 text_parameters;
  /* In 16 bits: by token, and what the windows hold. */
  guint64 kv_per_token, window_bytes;
  /* In 32 bits: states of the delta rule. */
  guint64 recurrent_bytes;
} Facts;

typedef struct {
  Facts facts;
  OxGemma4Size size;
} Gemma4Case;

static const Gemma4Case gemma4_cases[] = {
  { { "gemma-4-E2B-it", 1, 2011, 5123178051 + 928, 10246357958, 0, 6 * KIB, 6 * MIB, 0 },
    { 1536, 35, 5, 8, 1, 1, FALSE, 6144, TRUE, 20, 512, 256, 131072, 0, 0, 0, OX_TOWERS_SMALL } },
  { { "gemma-4-E4B-it", 1, 0, 0, 0, 0, 16 * KIB, 20 * MIB, 0 },
    { 2560, 42, 6, 8, 2, 2, FALSE, 10240, FALSE, 18, 512, 256, 131072, 0, 0, 0, OX_TOWERS_SMALL } },
  { { "gemma-4-12B-it", 1, 677, 11959730224, 23919460448, 0, 16 * KIB, 320 * MIB, 0 },
    { 3840, 48, 6, 16, 8, 1, TRUE, 15360, FALSE, 0, 1024, 0, 262144, 0, 0, 0, OX_TOWERS_UNIFIED } },
  { { "gemma-4-26B-A4B-it", 2, 1013, 25805936206, 51611872412, 0, 20 * KIB, 200 * MIB, 0 },
    { 2816, 30, 6, 16, 8, 2, TRUE, 2112, FALSE, 0, 1024, 0, 262144, 128, 8, 704, OX_TOWERS_LARGE } },
  { { "gemma-4-31B-it", 2, 1188, 31273088876, 62546177752, 0, 80 * KIB, 800 * MIB, 0 },
    { 5376, 60, 6, 32, 16, 4, TRUE, 21504, FALSE, 0, 1024, 0, 262144, 0, 0, 0, OX_TOWERS_LARGE } },
};

typedef struct {
  Facts facts;
  OxQwen35Size size;
} Qwen35Case;

static const Qwen35Case qwen35_cases[] = {
  { { "Qwen3.5-0.8B", 1, 0, 873438784, 0, 752393024, 12 * KIB, 0, 18 * MIB + 18 * 3 * 6144 * 4 },
    { 1024, 3584, 24, 8, 2, 16, TRUE, 768, 3072, 12 } },
  { { "Qwen3.5-2B", 1, 0, 2274069824, 0, 1881825088, 12 * KIB, 0, 18 * MIB + 18 * 3 * 6144 * 4 },
    { 2048, 6144, 24, 8, 2, 16, TRUE, 1024, 4096, 24 } },
  { { "Qwen3.5-4B", 2, 0, 4659865088, 0, 4205751296, 32 * KIB, 0, 48 * MIB + 24 * 3 * 8192 * 4 },
    { 2560, 9216, 32, 16, 4, 32, TRUE, 1024, 4096, 24 } },
  { { "Qwen3.5-9B", 4, 0, 9653104368, 0, 8953803264, 32 * KIB, 0, 48 * MIB + 24 * 3 * 8192 * 4 },
    { 4096, 12288, 32, 16, 4, 32, FALSE, 1152, 4304, 27 } },
  { { "Qwen3.8-27B", 18, 1199, 27781427952, 55562855904, 26895998464, 64 * KIB, 0, 144 * MIB + 48 * 3 * 10240 * 4 },
    { 5120, 17408, 64, 24, 4, 48, FALSE, 1152, 4304, 27 } },
};

typedef struct {
  Facts facts;
  OxPlainSize size;
} PlainCase;

#define GEMMA3_ROPE "\"rope_scaling\":{\"factor\":8.0,\"rope_type\":\"linear\"},"

static const PlainCase plain_cases[] = {
  { { "gemma-3-270m-it", 1, 236, 268098176, 536196352, 268098176, 3 * KIB, 15 * 512 * KIB, 0 },
    { "gemma3_text", 640, 2048, 18, 4, 1, 256, 262144, TRUE, FALSE, "\"sliding_window\":512," } },
  { { "gemma-3-1b-it", 1, 340, 999885952, 1999771904, 999885952, 4 * KIB, 22 * 512 * KIB, 0 },
    { "gemma3_text", 1152, 6912, 26, 4, 1, 256, 262144, TRUE, FALSE, "\"sliding_window\":512," } },
  { { "gemma-3-4b-it", 2, 883, 4300079472, 8600158944, 3880263168, 20 * KIB, 29 * 1024 * 4 * KIB, 0 },
    { "gemma3", 2560, 10240, 34, 8, 4, 256, 262208, TRUE, FALSE, GEMMA3_ROPE "\"sliding_window\":1024," } },
  { { "gemma-3-12b-it", 5, 1065, 12187325040, 24374650080, 0, 64 * KIB, 40 * 1024 * 8 * KIB, 0 },
    { "gemma3", 3840, 15360, 48, 16, 8, 256, 262208, TRUE, FALSE, GEMMA3_ROPE "\"sliding_window\":1024," } },
  { { "gemma-3-27b-it", 12, 1247, 27432406640, 54864813280, 0, 80 * KIB, 52 * 1024 * 8 * KIB, 0 },
    { "gemma3", 5376, 21504, 62, 32, 16, 128, 262208, TRUE, FALSE,
      GEMMA3_ROPE "\"query_pre_attn_scalar\":168,\"sliding_window\":1024," } },
  { { "SmolLM2-135M-Instruct", 1, 272, 134515008, 269030016, 134515008, 30 * 3 * 64 * 4, 0, 0 },
    { "llama", 576, 1536, 30, 9, 3, 64, 49152, TRUE, FALSE, "\"rope_theta\":100000," } },
  { { "Llama-3.2-1B-Instruct", 1, 146, 1235814400, 2471628800, 1235814400, 16 * 8 * 64 * 4, 0, 0 },
    { "llama", 2048, 8192, 16, 32, 8, 64, 128256, TRUE, FALSE,
      "\"rope_theta\":500000.0,\"rope_scaling\":{\"factor\":32.0,\"high_freq_factor\":4.0,\"low_freq_factor\":1.0,"
      "\"original_max_position_embeddings\":8192,\"rope_type\":\"llama3\"}," } },
  { { "Qwen2.5-0.5B-Instruct", 1, 290, 494032768, 988065536, 494032768, 24 * 2 * 64 * 4, 0, 0 },
    { "qwen2", 896, 4864, 24, 14, 2, 64, 151936, TRUE, FALSE, "\"rope_theta\":1000000.0," } },
  { { "Qwen3-0.6B", 1, 311, 751632384, 1503264768, 596049920, 28 * 8 * 128 * 4, 0, 0 },
    { "qwen3", 1024, 3072, 28, 16, 8, 128, 151936, TRUE, TRUE, "\"rope_theta\":1000000," } },
};

/* ---- Repositories on disk ---- */

typedef struct {
  char *folder;
  OxWeights *weights;
  OxConfig *config;
} Repository;

static void
remove_folder (const char *folder)
{
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  const char *name;

  while (dir && (name = g_dir_read_name (dir)) != NULL) {
    g_autofree char *path = g_build_filename (folder, name, NULL);

    g_unlink (path);
  }
  g_rmdir (folder);
}

static void
repository_clear (Repository *repository)
{
  g_clear_pointer (&repository->weights, ox_weights_free);
  g_clear_pointer (&repository->config, ox_config_free);
  if (repository->folder)
    remove_folder (repository->folder);
  g_clear_pointer (&repository->folder, g_free);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Repository, repository_clear)

/* FALSE after skipping the test. */
static gboolean
repository_open (Repository *repository, GPtrArray *tensors, const char *json, guint n_shards)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = NULL;

  repository->folder = g_dir_make_tmp ("ox-published-XXXXXX", &error);
  g_assert_no_error (error);
  if (!ox_published_write (tensors, repository->folder, n_shards)) {
    g_test_skip ("this file system holds no files with large holes");
    return FALSE;
  }
  path = g_build_filename (repository->folder, "config.json", NULL);
  g_file_set_contents (path, json, -1, &error);
  g_assert_no_error (error);
  repository->weights = ox_weights_open (repository->folder, NULL, &error);
  g_assert_no_error (error);
  repository->config = ox_config_load (repository->folder, repository->weights, &error);
  g_assert_no_error (error);
  return TRUE;
}

/* ---- Checks ---- */

/* Elements of all tensors of @parts (a mask). */
static guint64
count (GPtrArray *tensors, guint parts)
{
  guint64 n = 0;

  for (guint i = 0; i < tensors->len; i++) {
    const OxPublishedTensor *tensor = g_ptr_array_index (tensors, i);

    if (parts & (1u << tensor->part))
      n += ox_published_elements (tensor);
  }
  return n;
}

/* What weights of @part take in memory: matrices as stored, everything else in 32 bits. */
static guint64
resident_bytes (GPtrArray *tensors, OxPart part)
{
  guint64 n = 0;

  for (guint i = 0; i < tensors->len; i++) {
    const OxPublishedTensor *tensor = g_ptr_array_index (tensors, i);
    /* A convolution's [channels, 1, taps] is a vector; experts' [n, rows, columns] are matrices. */
    gboolean matrix = tensor->n_dims > 1 && !strstr (tensor->name, "conv1d");

    if (tensor->part == part)
      n += ox_published_elements (tensor) * (matrix ? 2 : 4);
  }
  return n;
}

/* @bytes is @expected and at most a hundredth more: kernels round rows up to whole panels. */
static void
check_resident (guint64 bytes, guint64 expected, guint64 optional)
{
  g_assert_cmpuint (bytes, >=, expected);
  g_assert_cmpuint (bytes, <=, expected + optional + (expected + optional) / 100);
}

/* The published numbers of the file, from this test's shapes and from what the reader found in the files. */
static void
check_file (const Facts *facts, GPtrArray *tensors, OxWeights *weights)
{
  guint64 elements = 0, bytes = 0;

  for (guint i = 0; i < ox_weights_get_n_tensors (weights); i++) {
    elements += ox_weights_get_tensor (weights, i)->n_elements;
    bytes += ox_weights_get_tensor (weights, i)->n_bytes;
  }
  g_test_message ("%s: %u tensors, %" G_GUINT64_FORMAT " parameters, %" G_GUINT64_FORMAT " bytes", facts->name,
                  ox_weights_get_n_tensors (weights), elements, bytes);
  g_assert_cmpuint (ox_weights_get_n_tensors (weights), ==, tensors->len);
  if (facts->n_tensors > 0)
    g_assert_cmpuint (tensors->len, ==, facts->n_tensors);
  if (facts->parameters > 0)
    g_assert_cmpuint (elements, ==, facts->parameters);
  if (facts->payload > 0)
    g_assert_cmpuint (bytes, ==, facts->payload);
  g_assert_cmpuint (ox_weights_get_file_bytes (weights), >, bytes);
}

/* Bytes that one position of all sliding layers takes, told by making the slack larger by one. */
static guint64
window_bytes_per_position (const OxConfig *config)
{
  OxStateOptions options = {
    .context_length = config->max_position_embeddings, .chunk = 1, .slack = 0, .kv_type = OX_TYPE_F16
  };
  guint64 less = ox_state_fixed_bytes (config, &options);

  options.slack = 1;
  return ox_state_fixed_bytes (config, &options) - less;
}

static guint64
recurrent_bytes (const OxConfig *config)
{
  OxDeltaShape shape = ox_config_delta_shape (config);
  guint64 bytes = 0;

  for (guint i = 0; i < config->num_hidden_layers; i++)
    if (config->layer_kinds[i] == OX_LAYER_LINEAR)
      bytes += ox_recurrent_bytes (&shape);
  return bytes;
}

static void
check_model (const Facts *facts, GPtrArray *tensors, const char *json)
{
  const OxModelOptions options = { .precision = OX_MODEL_PRECISION_EXACT,
                                   .weights = OX_MODEL_WEIGHTS_STORED,
                                   .kv = OX_MODEL_KV_F16 };
  guint64 expected = count (tensors, (1u << OX_PART_TEXT) | (1u << OX_PART_TABLE));
  guint64 resident = resident_bytes (tensors, OX_PART_TEXT);
  g_autoptr (GError) error = NULL;
  g_auto (Repository) repository = { NULL, NULL, NULL };
  g_autoptr (OxModelPlan) plan = NULL;

  if (!repository_open (&repository, tensors, json, facts->n_shards))
    return;
  check_file (facts, tensors, repository.weights);
  plan = ox_model_plan_weights (repository.folder, repository.weights, repository.config, &options, NULL, &error);
  g_assert_no_error (error);
  g_test_message ("text: %" G_GUINT64_FORMAT " parameters, %" G_GUINT64_FORMAT
                  " bytes in memory (by shapes %" G_GUINT64_FORMAT "), %" G_GUINT64_FORMAT " by token",
                  plan->parameters, plan->weight_bytes, resident, plan->kv_bytes_per_token);
  g_assert_cmpuint (plan->parameters, ==, expected);
  if (facts->text_parameters > 0)
    g_assert_cmpuint (plan->parameters, ==, facts->text_parameters);
  /* With or without the layer that predicts further tokens. */
  check_resident (plan->weight_bytes, resident, resident_bytes (tensors, OX_PART_AHEAD));
  g_assert_cmpuint (plan->kv_bytes_per_token, ==, facts->kv_per_token);
  g_assert_cmpuint (window_bytes_per_position (repository.config) * repository.config->sliding_window, ==,
                    facts->window_bytes);
  g_assert_cmpuint (recurrent_bytes (repository.config), ==, facts->recurrent_bytes);
}

static void
test_gemma4 (gconstpointer data)
{
  const Gemma4Case *c = data;
  g_autoptr (GPtrArray) tensors = ox_published_gemma4 (&c->size);
  g_autofree char *json = ox_published_gemma4_config (&c->size);

  check_model (&c->facts, tensors, json);
}

static void
test_qwen35 (gconstpointer data)
{
  const Qwen35Case *c = data;
  g_autoptr (GPtrArray) tensors = ox_published_qwen35 (&c->size);
  g_autofree char *json = ox_published_qwen35_config (&c->size);

  check_model (&c->facts, tensors, json);
}

static void
test_plain (gconstpointer data)
{
  const PlainCase *c = data;
  g_autoptr (GPtrArray) tensors = ox_published_plain (&c->size);
  g_autofree char *json = ox_published_plain_config (&c->size);

  check_model (&c->facts, tensors, json);
}

/* ---- Parts of Gemma 4 that are told apart ---- */

/* Millions of parameters: of what the files hold for nothing, and of the towers. */
static void
test_gemma4_parts (void)
{
  g_autoptr (GPtrArray) e2b = ox_published_gemma4 (&gemma4_cases[0].size);
  g_autoptr (GPtrArray) e4b = ox_published_gemma4 (&gemma4_cases[1].size);
  g_autoptr (GPtrArray) large = ox_published_gemma4 (&gemma4_cases[3].size);
  g_autoptr (GPtrArray) largest = ox_published_gemma4 (&gemma4_cases[4].size);
  const struct {
    GPtrArray *tensors;
    OxPart part;
    double millions;
  } parts[] = {
    { e2b, OX_PART_UNUSED, 18.9 },         { e4b, OX_PART_UNUSED, 55.1 },   { e2b, OX_PART_TOWER, 168.5 + 307.2 },
    { e4b, OX_PART_TOWER, 169.3 + 308.8 }, { large, OX_PART_TOWER, 572.8 }, { largest, OX_PART_TOWER, 575.7 },
    { e2b, OX_PART_TABLE, 2348.81024 },
  };

  for (guint i = 0; i < G_N_ELEMENTS (parts); i++)
    g_assert_cmpfloat_with_epsilon ((double) count (parts[i].tensors, 1u << parts[i].part) / 1e6, parts[i].millions,
                                    0.11);
  /* The published number leaves out the 928 bounds of clipped matrices. */
  g_assert_cmpuint (count (e4b, 0xff) - 928, ==, 7996156490);
}

/* ---- Drafters ---- */

typedef struct {
  const char *name;
  guint n_tensors;
  double millions, megabytes;
  OxAssistantSize size;
} AssistantCase;

static const AssistantCase assistant_cases[] = {
  { "gemma-4-E2B-it-assistant", 50, 77.7, 157.6, { 256, 2048, 4, 1, 1, 1536, TRUE, FALSE } },
  { "gemma-4-E4B-it-assistant", 50, 78.5, 159.1, { 256, 2048, 4, 2, 2, 2560, TRUE, FALSE } },
  { "gemma-4-12B-it-assistant", 48, 422.9, 846, { 1024, 8192, 16, 8, 1, 3840, FALSE, TRUE } },
  { "gemma-4-26B-A4B-it-assistant", 48, 419.7, 839, { 1024, 8192, 16, 8, 2, 2816, FALSE, FALSE } },
  { "gemma-4-31B-it-assistant", 48, 469.5, 939, { 1024, 8192, 32, 16, 4, 5376, FALSE, FALSE } },
};

static void
test_assistant (gconstpointer data)
{
  const AssistantCase *c = data;
  g_autoptr (GPtrArray) tensors = ox_published_assistant (&c->size);
  g_autofree char *json = ox_published_assistant_config (&c->size);
  guint64 expected = count (tensors, 1u << OX_PART_TEXT);
  g_autoptr (GError) error = NULL;
  g_auto (Repository) repository = { NULL, NULL, NULL };
  OxPlanCount plan = { 0 };
  OxDrafter *drafter;
  OxOps *ops;

  if (!repository_open (&repository, tensors, json, 1))
    return;
  g_assert_cmpuint (tensors->len, ==, c->n_tensors);
  g_assert_cmpfloat_with_epsilon ((double) expected / 1e6, c->millions, 0.06);
  g_assert_cmpfloat_with_epsilon ((double) ox_weights_get_file_bytes (repository.weights) / 1e6, c->megabytes, 0.6);
  g_assert_cmpuint (repository.config->num_global_key_value_heads, ==, c->size.global_kv_heads);

  ops = ox_ops_plan_new (ox_kernels (), OX_PRECISION_EXACT, OX_QUANTIZE_NONE, &plan);
  drafter = ox_gemma4_drafter_load (
    &(OxLoader) { .ops = ops, .weights = repository.weights, .config = repository.config }, NULL, &error);
  g_assert_no_error (error);
  g_assert_nonnull (drafter);
  ox_drafter_free (drafter, ops);
  ops->free (ops);
  g_test_message ("%s: %" G_GUINT64_FORMAT " parameters", c->name, plan.parameters);
  g_assert_cmpuint (plan.parameters, ==, expected);
  check_resident (plan.weight_bytes, resident_bytes (tensors, OX_PART_TEXT), 0);
}

static void
add_cases (const char *group, gconstpointer cases, gsize size, gsize n, GTestDataFunc func)
{
  for (gsize i = 0; i < n; i++) {
    const char *c = (const char *) cases + i * size;
    /* All kinds of cases begin with their name. */
    g_autofree char *path = g_strconcat ("/published/", group, "/", *(const char *const *) c, NULL);

    g_test_add_data_func (path, c, func);
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  add_cases ("gemma4", gemma4_cases, sizeof *gemma4_cases, G_N_ELEMENTS (gemma4_cases), test_gemma4);
  g_test_add_func ("/published/gemma4-parts", test_gemma4_parts);
  add_cases ("assistant", assistant_cases, sizeof *assistant_cases, G_N_ELEMENTS (assistant_cases), test_assistant);
  add_cases ("qwen35", qwen35_cases, sizeof *qwen35_cases, G_N_ELEMENTS (qwen35_cases), test_qwen35);
  add_cases ("plain", plain_cases, sizeof *plain_cases, G_N_ELEMENTS (plain_cases), test_plain);
  return g_test_run ();
}
