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
/* What a tokenizer takes for each of its tokens, measured on vocabularies of 49,152 and 262,144. */
#define TOKENIZER_BYTES 160
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

static OxPrecision
kernel_precision (const OxModelOptions *options)
{
  return options != NULL && options->precision == OX_MODEL_PRECISION_EXACT ? OX_PRECISION_EXACT : OX_PRECISION_FAST;
}

/* Whether every layer's keys and values can be kept in blocks of 32. */
static gboolean
heads_suit_blocks (const OxConfig *config)
{
  for (guint i = 0; i < config->num_hidden_layers; i++)
    if (ox_config_head_dim (config, i) % 32 != 0)
      return FALSE;
  return TRUE;
}

static OxType
kv_type (const OxConfig *config, const OxModelOptions *options)
{
  switch (options != NULL ? options->kv : OX_MODEL_KV_AUTO) {
  case OX_MODEL_KV_F32:
    return OX_TYPE_F32;
  case OX_MODEL_KV_F16:
    return OX_TYPE_F16;
  case OX_MODEL_KV_BF16:
    return OX_TYPE_BF16;
  case OX_MODEL_KV_Q8:
    return heads_suit_blocks (config) ? OX_TYPE_Q8_0 : OX_TYPE_F16;
  case OX_MODEL_KV_AUTO:
  default:
    if (kernel_precision (options) == OX_PRECISION_EXACT)
      return OX_TYPE_F32;
    /* As many bytes and, with what else is rounded, as good (docs/quality.md), but twice the products a second. */
    return ox_kernels ()->attention->fast_type == OX_TYPE_BF16 ? OX_TYPE_BF16 : OX_TYPE_F16;
  }
}

static OxStateOptions
state_options (const OxConfig *config, const OxModelOptions *options)
{
  guint context_length = MIN (config->max_position_embeddings, DEFAULT_CONTEXT_LENGTH);

  if (options != NULL && options->context_length > 0)
    context_length = MIN (options->context_length, config->max_position_embeddings);
  return (OxStateOptions) {
    .context_length = context_length,
    .chunk = MIN (CHUNK, context_length),
    .slack = SLACK,
    .kv_type = kv_type (config, options),
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

/* The type that most of the bytes have. */
static guint32
main_type (OxWeights *weights)
{
  g_autoptr (GHashTable) bytes_by_type = g_hash_table_new_full (NULL, NULL, NULL, g_free);
  guint64 best_bytes = 0;
  guint32 best = OX_TYPE_F32;

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
  return best;
}

/* "BF16", "Q4_K_M", "BF16 as Q8" */
static char *
format_name (OxWeights *weights, OxQuantize quantize)
{
  OxGguf *gguf = ox_weights_get_gguf (weights);
  const OxTypeInfo *info = ox_type_info (main_type (weights));
  const char *name = info != NULL ? info->name : "mixed";
  guint64 file_type;

  if (gguf != NULL && ox_gguf_get_uint (gguf, "general.file_type", &file_type) && file_type_name (file_type) != NULL)
    name = file_type_name (file_type);
  if (quantize == OX_QUANTIZE_NONE)
    return g_strdup (name);
  return g_strdup_printf ("%s as %s", name, quantize == OX_QUANTIZE_Q8 ? "Q8" : "Q4");
}

/* Files that are quantised stay as they are, even where some of their tensors are floats. */
static gboolean
may_quantize (OxWeights *weights)
{
  guint32 type = main_type (weights);

  return type == OX_TYPE_F32 || type == OX_TYPE_F16 || type == OX_TYPE_BF16;
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

/* Rows of activations in the form that kernels read, for the widest layer; bf16 is the largest. */
static guint64
activation_scratch (const OxConfig *config, const OxStateOptions *state)
{
  guint64 widest = config->hidden_size;

  for (guint i = 0; i < config->num_hidden_layers; i++) {
    widest = MAX (widest, ox_config_intermediate_size (config, i));
    widest = MAX (widest, (guint64) config->num_attention_heads * ox_config_head_dim (config, i));
  }
  return (guint64) ox_activation_row_bytes (OX_ACTIVATION_BF16, widest) * state->chunk;
}

static OxFit
judge (guint64 needed, guint64 available)
{
  if (needed > available)
    return OX_FIT_NOT;
  return available - needed < COMFORTABLE_FREE_BYTES ? OX_FIT_TIGHT : OX_FIT_WELL;
}

/* What loading with these weights would take. */
static OxModelPlan *
plan_setup (const char *path, OxWeights *weights, const OxConfig *config, OxModelSetup *setup, GError **error)
{
  OxModelPlan *plan;
  OxPlanCount count = { 0 };
  OxOps *ops = ox_ops_plan_new (ox_kernels (), setup->precision, setup->quantize, &count);
  OxLoader loader = { .ops = ops, .weights = weights, .config = config };
  guint64 memory_total, mtp_bytes = 0;
  OxNetwork *network;
  gboolean ok;

  /* Loading on the planning table checks every tensor that loading would need, and adds up what it would take. */
  network = ox_network_load (&loader, error);
  ok = network != NULL && ox_model_plan_mtp (&loader, &count, &setup->state, &mtp_bytes, error);
  ox_network_free (network, ops);
  ops->free (ops);
  if (!ok)
    return NULL;

  setup->packed_bytes = count.packed_bytes;
  plan = g_new0 (OxModelPlan, 1);
  plan->path = g_strdup (path);
  plan->name = name_from_path (path);
  plan->architecture = g_strdup (config->architecture);
  plan->format = format_name (weights, setup->quantize);
  plan->parameters = count.parameters;
  plan->file_bytes = ox_weights_get_file_bytes (weights);
  plan->weight_bytes = count.weight_bytes;
  plan->kv_bytes_per_token = ox_state_bytes_per_token (config, setup->state.kv_type);
  plan->context_length = setup->state.context_length;
  plan->context_length_max = config->max_position_embeddings;
  plan->state_bytes =
    ox_state_fixed_bytes (config, &setup->state) + plan->kv_bytes_per_token * setup->state.context_length + mtp_bytes;
  plan->memory_needed = plan->weight_bytes + plan->state_bytes + activation_scratch (config, &setup->state) +
                        (guint64) TOKENIZER_BYTES * config->vocab_size;
  ox_platform_get_memory (&memory_total, &plan->memory_available);
  plan->fit = judge (plan->memory_needed, plan->memory_available);
  return plan;
}

OxModelPlan *
ox_model_plan_weights (const char *path,
                       OxWeights *weights,
                       const OxConfig *config,
                       const OxModelOptions *options,
                       OxModelSetup *setup_out,
                       GError **error)
{
  OxModelWeights wanted = options != NULL ? options->weights : OX_MODEL_WEIGHTS_AUTO;
  OxModelSetup setup = { .precision = kernel_precision (options), .state = state_options (config, options) };
  gboolean automatic = wanted == OX_MODEL_WEIGHTS_AUTO && setup.precision == OX_PRECISION_FAST;
  g_autoptr (OxModelPlan) plan = NULL;

  if (!may_quantize (weights))
    automatic = FALSE;
  else if (automatic || wanted == OX_MODEL_WEIGHTS_Q8)
    setup.quantize = OX_QUANTIZE_Q8;
  else if (wanted == OX_MODEL_WEIGHTS_Q4)
    setup.quantize = OX_QUANTIZE_Q4;
  plan = plan_setup (path, weights, config, &setup, error);
  if (plan != NULL && automatic && plan->fit == OX_FIT_NOT) {
    setup.quantize = OX_QUANTIZE_Q4;
    ox_model_plan_free (plan);
    plan = plan_setup (path, weights, config, &setup, error);
    if (plan != NULL)
      plan->note =
        g_strdup ("Its weights are rounded to 4 bits: with 8 bits it would not fit in the memory that is free now.");
  }
  if (setup_out != NULL)
    *setup_out = setup;
  return g_steal_pointer (&plan);
}

const OxChatFormat *
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
  return format;
}

OxModelPlan *
ox_model_plan (const char *path, const OxModelOptions *options, GCancellable *cancellable, GError **error)
{
  g_autoptr (OxWeights) weights = ox_weights_open (path, cancellable, error);
  g_autoptr (OxConfig) config = NULL;
  g_autoptr (OxModelPlan) plan = NULL;
  g_autoptr (OxTokenizer) tokenizer = NULL;

  if (weights == NULL || (config = ox_config_load (path, weights, error)) == NULL ||
      (plan = ox_model_plan_weights (path, weights, config, options, NULL, error)) == NULL ||
      (tokenizer = ox_tokenizer_load_names (path, cancellable, error)) == NULL)
    return NULL;
  ox_model_plan_set_tokenizer (plan, tokenizer, config);
  return g_steal_pointer (&plan);
}
