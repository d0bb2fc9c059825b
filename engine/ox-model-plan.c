/* What loading a model would mean, told from its headers.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-model-private.h"

#include <string.h>

/* The most positions that a session holds unless asked for more: its state grows as it is used, its promise is made here. */
#define DEFAULT_CONTEXT_LENGTH 8192
#define CHUNK 256
#define SLACK 1024
/* Memory that should stay free for everything else. */
#define COMFORTABLE_FREE_BYTES (2ull * 1000 * 1000 * 1000)

void
ox_model_plan_free (OxModelPlan *plan)
{
  if (plan == NULL)
    return;
  g_free (plan->path);
  g_free (plan->name);
  g_free (plan->architecture);
  g_free (plan->format);
  g_free (plan->note);
  g_free (plan);
}

OxPrecision
ox_model_kernel_precision (const OxModelOptions *options)
{
  return options != NULL && options->precision == OX_MODEL_PRECISION_EXACT ? OX_PRECISION_EXACT : OX_PRECISION_FAST;
}

void
ox_model_state_options (const OxConfig *config, const OxModelOptions *options, OxStateOptions *state_options)
{
  guint context_length = MIN (config->max_position_embeddings, DEFAULT_CONTEXT_LENGTH);

  if (options != NULL && options->context_length > 0)
    context_length = MIN (options->context_length, config->max_position_embeddings);
  *state_options = (OxStateOptions) {
    .context_length = context_length,
    .chunk = MIN (CHUNK, context_length),
    .slack = SLACK,
    .kv_type = OX_TYPE_F32,
  };
}

/* GGUF's general.file_type, by number. */
static const char *
file_type_name (guint64 file_type)
{
  static const struct {
    guint64 number;
    const char *name;
  } names[] = {
    { 0, "F32" },     { 1, "F16" },     { 2, "Q4_0" },    { 3, "Q4_1" },    { 7, "Q8_0" },
    { 8, "Q5_0" },    { 9, "Q5_1" },    { 10, "Q2_K" },   { 11, "Q3_K_S" }, { 12, "Q3_K_M" },
    { 13, "Q3_K_L" }, { 14, "Q4_K_S" }, { 15, "Q4_K_M" }, { 16, "Q5_K_S" }, { 17, "Q5_K_M" },
    { 18, "Q6_K" },   { 25, "IQ4_NL" }, { 30, "IQ4_XS" }, { 32, "BF16" },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (names); i++)
    if (names[i].number == file_type)
      return names[i].name;
  return NULL;
}

static char *
format_name (OxWeights *weights)
{
  g_autoptr (GHashTable) bytes_by_type = g_hash_table_new_full (NULL, NULL, NULL, g_free);
  OxGguf *gguf = ox_weights_get_gguf (weights);
  const OxTypeInfo *info;
  guint64 file_type, best_bytes = 0;
  guint32 best = OX_TYPE_F32;

  if (gguf != NULL && ox_gguf_get_uint (gguf, "general.file_type", &file_type) && file_type_name (file_type) != NULL)
    return g_strdup (file_type_name (file_type));
  for (guint i = 0; i < ox_weights_get_n_tensors (weights); i++) {
    const OxTensorInfo *tensor = ox_weights_get_tensor (weights, i);
    guint64 *bytes = g_hash_table_lookup (bytes_by_type, GUINT_TO_POINTER (tensor->type));

    if (bytes == NULL) {
      bytes = g_new0 (guint64, 1);
      g_hash_table_insert (bytes_by_type, GUINT_TO_POINTER (tensor->type), bytes);
    }
    *bytes += tensor->n_bytes;
    if (*bytes > best_bytes) {
      best_bytes = *bytes;
      best = tensor->type;
    }
  }
  info = ox_type_info (best);
  return g_strdup (info != NULL ? info->name : "mixed");
}

/* Whether the @len characters at @word name a weight format: "Q4_K_M", "f16", "IQ4_XS". */
static gboolean
is_format_word (const char *word, gsize len)
{
  static const char *const floats[] = { "f32", "f16", "bf16", "fp16", "fp32" };

  for (gsize i = 0; i < G_N_ELEMENTS (floats); i++)
    if (strlen (floats[i]) == len && g_ascii_strncasecmp (word, floats[i], len) == 0)
      return TRUE;
  if (len >= 2 && g_ascii_toupper (word[0]) == 'I') {
    word++;
    len--;
  }
  return len >= 4 && g_ascii_toupper (word[0]) == 'Q' && g_ascii_isdigit (word[1]) && word[2] == '_';
}

/* A name for people from the file's: "SmolLM2-135M-Instruct.Q4_1.gguf" → "SmolLM2 135M Instruct". File names are what people chose
 * and recognise; the name inside is often the name of a training run. */
static char *
name_from_path (const char *path)
{
  /* Names of files are bytes; a name for people is UTF-8. */
  g_autofree char *shown = g_filename_display_basename (path);
  g_autofree char *base = g_strdup (shown);
  g_autofree char *parent = g_path_get_dirname (path);
  g_autofree char *snapshots = g_path_get_dirname (parent);
  GString *name = g_string_new (NULL);
  const char *repository;
  const char *word;

  /* …/models--org--name/snapshots/revision */
  if (g_str_has_suffix (parent, "/snapshots") && (repository = strstr (snapshots, "/models--")) != NULL &&
      strchr (repository + 1, '/') == NULL) {
    const char *last = g_strrstr (repository, "--");
    g_free (base);
    base = g_utf8_make_valid (last + 2, -1);
  } else if (g_str_has_suffix (base, ".gguf")) {
    base[strlen (base) - strlen (".gguf")] = '\0';
  } else if (g_str_has_suffix (base, ".safetensors")) {
    base[strlen (base) - strlen (".safetensors")] = '\0';
  }

  for (word = base; *word != '\0';) {
    gsize len = strcspn (word, "-. ");

    /* A dot inside a number is no separator: "Llama-3.2-1B". */
    while (word[len] == '.' && len > 0 && g_ascii_isdigit (word[len - 1]) && g_ascii_isdigit (word[len + 1]))
      len += 1 + strcspn (word + len + 1, "-. ");
    if (len > 0 && !is_format_word (word, len)) {
      if (name->len > 0)
        g_string_append_c (name, ' ');
      g_string_append_len (name, word, len);
    }
    word += len;
    if (*word != '\0')
      word++;
  }
  if (name->len == 0)
    g_string_append (name, *base != '\0' ? base : shown);
  if (g_ascii_islower (name->str[0]))
    name->str[0] = g_ascii_toupper (name->str[0]);
  return g_string_free (name, FALSE);
}

OxModelPlan *
ox_model_plan_weights (
  const char *path, OxWeights *weights, const OxConfig *config, const OxModelOptions *options, GError **error)
{
  g_autoptr (OxModelPlan) plan = g_new0 (OxModelPlan, 1);
  guint64 memory_total;
  OxPlanCount count = { 0 };
  OxOps *ops = ox_ops_plan_new (ox_kernels (), ox_model_kernel_precision (options), OX_QUANTIZE_NONE, &count);
  OxLoader loader = { .ops = ops, .weights = weights, .config = config };
  OxStateOptions state;
  OxNetwork *network;

  /* Loading on the planning table checks every tensor that loading would need, and adds up what it would take. */
  network = ox_network_load (&loader, error);
  ox_network_free (network, ops);
  ops->free (ops);
  if (network == NULL)
    return NULL;

  ox_model_state_options (config, options, &state);
  plan->path = g_strdup (path);
  plan->name = name_from_path (path);
  plan->architecture = g_strdup (config->architecture);
  plan->format = format_name (weights);
  plan->parameters = count.parameters;
  plan->file_bytes = ox_weights_get_file_bytes (weights);
  plan->weight_bytes = count.weight_bytes;
  plan->kv_bytes_per_token = ox_state_bytes_per_token (config, state.kv_type);
  plan->context_length = state.context_length;
  plan->context_length_max = config->max_position_embeddings;
  plan->state_bytes = ox_state_fixed_bytes (config, &state) + plan->kv_bytes_per_token * state.context_length;
  plan->memory_needed = plan->weight_bytes + plan->state_bytes;
  ox_platform_get_memory (&memory_total, &plan->memory_available);
  if (plan->memory_needed > plan->memory_available)
    plan->fit = OX_FIT_NOT;
  else if (plan->memory_available - plan->memory_needed < COMFORTABLE_FREE_BYTES)
    plan->fit = OX_FIT_TIGHT;
  else
    plan->fit = OX_FIT_WELL;
  return g_steal_pointer (&plan);
}

void
ox_model_plan_set_tokenizer (OxModelPlan *plan, OxTokenizer *tokenizer, const OxConfig *config)
{
  g_autofree char *note = NULL;
  const OxChatFormat *format = ox_chat_format_detect (tokenizer, config, &note);

  if (format != NULL) {
    plan->chat_format = ox_chat_format_get_name (format);
    plan->capabilities |= ox_chat_format_get_capabilities (format, tokenizer);
  } else {
    note = g_strdup ("This model continues text; it was not made for conversation.");
  }
  if (note != NULL) {
    char *both = plan->note != NULL ? g_strconcat (note, " ", plan->note, NULL) : g_strdup (note);

    g_free (plan->note);
    plan->note = both;
  }
}

OxModelPlan *
ox_model_plan (const char *path, const OxModelOptions *options, GCancellable *cancellable, GError **error)
{
  g_autoptr (OxWeights) weights = ox_weights_open (path, cancellable, error);
  g_autoptr (OxConfig) config = NULL;
  g_autoptr (OxModelPlan) plan = NULL;
  g_autoptr (OxTokenizer) tokenizer = NULL;

  if (weights == NULL || (config = ox_config_load (path, weights, error)) == NULL ||
      (plan = ox_model_plan_weights (path, weights, config, options, error)) == NULL ||
      (tokenizer = ox_tokenizer_load (path, cancellable, error)) == NULL)
    return NULL;
  ox_model_plan_set_tokenizer (plan, tokenizer, config);
  return g_steal_pointer (&plan);
}
