/* oxinfer-cli info and tokenize: facts about a model, its tokens, this computer.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-cli.h"

#include <string.h>
#include <unistd.h>

#include "ox-model-private.h"

static const char *
fit_name (OxFit fit)
{
  static const char *const names[] = { "well", "tight", "not" };

  return names[fit];
}

static const struct {
  OxCapabilities flag;
  const char *name;
} capability_names[] = {
  { OX_CAPABILITY_CHAT, "chat" },   { OX_CAPABILITY_SEE, "see" },     { OX_CAPABILITY_HEAR, "hear" },
  { OX_CAPABILITY_THINK, "think" }, { OX_CAPABILITY_TOOLS, "tools" },
};

static void
add_platform (yyjson_mut_doc *doc, yyjson_mut_val *root, const OxPlatform *platform)
{
  yyjson_mut_val *object = yyjson_mut_obj (doc);
  yyjson_mut_val *gpus = yyjson_mut_arr (doc);
  g_auto (GStrv) gpu_names = ox_platform_find_gpus ();

  yyjson_mut_obj_add_strcpy (doc, object, "cpu", platform->cpu);
  yyjson_mut_obj_add_strcpy (doc, object, "level", platform->cpu_level);
  yyjson_mut_obj_add_uint (doc, object, "cores", platform->cores);
  yyjson_mut_obj_add_uint (doc, object, "memory_total", platform->memory_total);
  yyjson_mut_obj_add_uint (doc, object, "memory_available", platform->memory_available);
  for (char **gpu = gpu_names; *gpu != NULL; gpu++)
    yyjson_mut_arr_add_strcpy (doc, gpus, *gpu);
  yyjson_mut_obj_add_val (doc, object, "gpus", gpus);
  yyjson_mut_obj_add_val (doc, root, "platform", object);
}

static void
add_string (yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key, const char *value)
{
  /* Paths are bytes; JSON is UTF-8. */
  g_autofree char *valid = value != NULL ? g_utf8_make_valid (value, -1) : NULL;

  if (valid != NULL)
    yyjson_mut_obj_add_strcpy (doc, object, key, valid);
  else
    yyjson_mut_obj_add_null (doc, object, key);
}

/* As ox_model_plan(), and what the options came to. */
static OxModelPlan *
make_plan (OxCli *cli, OxModelSetup *setup, GError **error)
{
  g_autoptr (OxWeights) weights = ox_weights_open (cli->model_path, cli->cancellable, error);
  g_autoptr (OxConfig) config = NULL;
  g_autoptr (OxModelPlan) plan = NULL;
  g_autoptr (OxTokenizer) tokenizer = NULL;
  OxModelOptions options;

  ox_cli_get_model_options (cli, &options);
  if (weights == NULL || (config = ox_config_load (cli->model_path, weights, error)) == NULL ||
      (plan = ox_model_plan_weights (cli->model_path, weights, config, &options, setup, error)) == NULL ||
      (tokenizer = ox_tokenizer_load (cli->model_path, cli->cancellable, error)) == NULL)
    return NULL;
  ox_model_plan_set_tokenizer (plan, tokenizer, config);
  return g_steal_pointer (&plan);
}

static const char *
kv_name (const OxModelSetup *setup)
{
  switch (setup->state.kv_type) {
  case OX_TYPE_F16:
    return "F16";
  case OX_TYPE_BF16:
    return "BF16";
  case OX_TYPE_Q8_0:
    return "Q8";
  case OX_TYPE_F32:
  default:
    return "F32";
  }
}

static const char *
precision_name (const OxModelSetup *setup)
{
  return setup->precision == OX_PRECISION_EXACT ? "exact" : "fast";
}

static void
add_plan (yyjson_mut_doc *doc, yyjson_mut_val *root, const OxModelPlan *plan, const OxModelSetup *setup)
{
  yyjson_mut_val *object = yyjson_mut_obj (doc);
  yyjson_mut_val *capabilities = yyjson_mut_arr (doc);

  add_string (doc, object, "path", plan->path);
  add_string (doc, object, "name", plan->name);
  add_string (doc, object, "architecture", plan->architecture);
  add_string (doc, object, "format", plan->format);
  add_string (doc, object, "chat_format", plan->chat_format);
  for (gsize i = 0; i < G_N_ELEMENTS (capability_names); i++)
    if (plan->capabilities & capability_names[i].flag)
      yyjson_mut_arr_add_str (doc, capabilities, capability_names[i].name);
  yyjson_mut_obj_add_val (doc, object, "capabilities", capabilities);
  yyjson_mut_obj_add_uint (doc, object, "parameters", plan->parameters);
  yyjson_mut_obj_add_uint (doc, object, "file_bytes", plan->file_bytes);
  yyjson_mut_obj_add_uint (doc, object, "weight_bytes", plan->weight_bytes);
  yyjson_mut_obj_add_str (doc, object, "precision", precision_name (setup));
  yyjson_mut_obj_add_str (doc, object, "kv", kv_name (setup));
  yyjson_mut_obj_add_uint (doc, object, "kv_bytes_per_token", plan->kv_bytes_per_token);
  yyjson_mut_obj_add_uint (doc, object, "state_bytes", plan->state_bytes);
  yyjson_mut_obj_add_uint (doc, object, "context_length", plan->context_length);
  yyjson_mut_obj_add_uint (doc, object, "context_length_max", plan->context_length_max);
  yyjson_mut_obj_add_uint (doc, object, "memory_needed", plan->memory_needed);
  yyjson_mut_obj_add_uint (doc, object, "memory_available", plan->memory_available);
  yyjson_mut_obj_add_str (doc, object, "fit", fit_name (plan->fit));
  add_string (doc, object, "note", plan->note);
  yyjson_mut_obj_add_val (doc, root, "model", object);
}

static void
write_plan (OxCli *cli, const OxModelPlan *plan, const OxModelSetup *setup)
{
  g_autofree char *file = g_format_size (plan->file_bytes);
  g_autofree char *weights = g_format_size (plan->weight_bytes);
  g_autofree char *state = g_format_size (plan->state_bytes);
  g_autofree char *per_token = g_format_size (plan->kv_bytes_per_token);
  g_autofree char *needed = g_format_size (plan->memory_needed);
  g_autofree char *available = g_format_size (plan->memory_available);
  g_autoptr (GString) capabilities = g_string_new (NULL);

  for (gsize i = 0; i < G_N_ELEMENTS (capability_names); i++)
    if (plan->capabilities & capability_names[i].flag)
      g_string_append_printf (capabilities, "%s%s", capabilities->len > 0 ? ", " : "", capability_names[i].name);
  ox_cli_write_line (cli, "Name", "%s", plan->name);
  ox_cli_write_line (cli, "Architecture", "%s, %.1f million parameters, %s", plan->architecture,
                     (double) plan->parameters / 1e6, plan->format);
  ox_cli_write_line (cli, "Chat format", "%s", plan->chat_format != NULL ? plan->chat_format : "none");
  ox_cli_write_line (cli, "Can", "%s", capabilities->len > 0 ? capabilities->str : "continue text");
  ox_cli_write_line (cli, "Context", "%u tokens, made for %u", plan->context_length, plan->context_length_max);
  ox_cli_write_line (cli, "Computes", "%s, keys and values in %s", precision_name (setup), kv_name (setup));
  ox_cli_write_line (cli, "Memory", "%s: weights %s, conversation %s at most, %s a token", needed, weights, state,
                     per_token);
  ox_cli_write_line (cli, "Fits", "%s, %s available",
                     plan->fit == OX_FIT_WELL    ? "well"
                     : plan->fit == OX_FIT_TIGHT ? "tightly"
                                                 : "no",
                     available);
  ox_cli_write_line (cli, "File", "%s, %s", file, plan->path);
  if (plan->note != NULL)
    ox_cli_write_line (cli, "Note", "%s", plan->note);
}

static void
write_platform (OxCli *cli, const OxPlatform *platform)
{
  g_autofree char *total = g_format_size (platform->memory_total);
  g_autofree char *available = g_format_size (platform->memory_available);
  g_auto (GStrv) gpu_names = ox_platform_find_gpus ();
  g_autofree char *gpus = g_strjoinv (", ", gpu_names);

  ox_cli_write_line (cli, "Processor", "%s, %s, %u cores", platform->cpu, platform->cpu_level, platform->cores);
  ox_cli_write_line (cli, "Memory", "%s, %s available", total, available);
  ox_cli_write_line (cli, "GPUs", "%s", *gpus != '\0' ? gpus : "none");
}

int
ox_cli_info (OxCli *cli, int argc, char **argv)
{
  const GOptionEntry entries[] = {
    { "json", 0, 0, G_OPTION_ARG_NONE, &cli->json, "One JSON object", NULL },
    { NULL },
  };
  g_autoptr (OxModelPlan) plan = NULL;
  OxModelSetup setup = { 0 };
  g_autoptr (OxPlatform) platform = NULL;
  g_autoptr (GError) error = NULL;
  int exit_code;

  if (!ox_cli_parse (cli, argc, argv, OX_CLI_OPTIONS_MODEL | OX_CLI_OPTIONS_LOAD, entries, NULL,
                     "Only the model's headers are read. Without a model: about this computer alone.\n\n"
                     "Examples:\n"
                     "  oxinfer-cli info\n"
                     "  oxinfer-cli info --model model.gguf --context 4096\n"
                     "  oxinfer-cli info --model model.gguf --json | jq .model.memory_needed",
                     NULL, &exit_code))
    return exit_code;
  ox_cli_catch_signals (cli);
  if (cli->model_path != NULL) {
    plan = make_plan (cli, &setup, &error);
    if (plan == NULL)
      return ox_cli_fail (cli, error);
  }
  platform = ox_platform_query ();
  if (cli->json) {
    yyjson_mut_doc *doc = yyjson_mut_doc_new (NULL);
    yyjson_mut_val *root = yyjson_mut_obj (doc);

    yyjson_mut_doc_set_root (doc, root);
    if (plan != NULL)
      add_plan (doc, root, plan, &setup);
    add_platform (doc, root, platform);
    ox_cli_write_json (cli, doc);
  } else {
    if (plan != NULL) {
      write_plan (cli, plan, &setup);
      ox_cli_write (cli, "\n");
    }
    write_platform (cli, platform);
  }
  return cli->output_error != 0 ? ox_cli_fail (cli, NULL) : OX_CLI_OK;
}

/* ---- tokenize ---- */

static int
decode_ids (OxCli *cli, OxTokenizer *tokenizer, const char *text)
{
  g_autoptr (GArray) ids = g_array_new (FALSE, FALSE, sizeof (guint32));
  g_autofree char *decoded = NULL;

  for (const char *p = text; *p != '\0';) {
    char *end;
    guint64 id;
    guint32 id32;

    if (!g_ascii_isdigit (*p)) {
      if (strchr (" \t\r\n,[]", *p) == NULL)
        return ox_cli_usage (cli, "ids are numbers, and “%.20s” is none", p);
      p++;
      continue;
    }
    id = g_ascii_strtoull (p, &end, 10);
    id32 = (guint32) MIN (id, G_MAXUINT32);
    g_array_append_val (ids, id32);
    p = end;
  }
  decoded = ox_tokenizer_decode (tokenizer, (const guint32 *) ids->data, ids->len, TRUE);
  ox_cli_write (cli, decoded);
  ox_cli_write (cli, "\n");
  return cli->output_error != 0 ? ox_cli_fail (cli, NULL) : OX_CLI_OK;
}

static void
write_ids_json (OxCli *cli, OxTokenizer *tokenizer, const GArray *ids)
{
  yyjson_mut_doc *doc = yyjson_mut_doc_new (NULL);
  yyjson_mut_val *root = yyjson_mut_obj (doc);
  yyjson_mut_val *numbers = yyjson_mut_arr (doc);
  yyjson_mut_val *pieces = yyjson_mut_arr (doc);

  yyjson_mut_doc_set_root (doc, root);
  for (guint i = 0; i < ids->len; i++) {
    const guint32 *id = &g_array_index (ids, guint32, i);
    g_autofree char *piece = ox_tokenizer_decode (tokenizer, id, 1, TRUE);

    yyjson_mut_arr_add_uint (doc, numbers, *id);
    yyjson_mut_arr_add_strcpy (doc, pieces, piece);
  }
  yyjson_mut_obj_add_uint (doc, root, "count", ids->len);
  yyjson_mut_obj_add_val (doc, root, "ids", numbers);
  yyjson_mut_obj_add_val (doc, root, "pieces", pieces);
  ox_cli_write_json (cli, doc);
}

int
ox_cli_tokenize (OxCli *cli, int argc, char **argv)
{
  g_auto (GStrv) rest = NULL;
  gboolean control = FALSE, decode = FALSE;
  const GOptionEntry entries[] = {
    { "control", 0, 0, G_OPTION_ARG_NONE, &control, "Strings of control tokens (“<|im_end|>”) become those tokens",
      NULL },
    { "decode", 'd', 0, G_OPTION_ARG_NONE, &decode, "The other way: ids to text", NULL },
    { "json", 0, 0, G_OPTION_ARG_NONE, &cli->json, "One JSON object: count, ids, pieces", NULL },
    { NULL },
  };
  g_autoptr (OxTokenizer) tokenizer = NULL;
  g_autoptr (GArray) ids = g_array_new (FALSE, FALSE, sizeof (guint32));
  g_autoptr (GString) line = g_string_new (NULL);
  g_autofree char *text = NULL;
  g_autoptr (GError) error = NULL;
  int exit_code;

  if (!ox_cli_parse (
        cli, argc, argv, OX_CLI_OPTIONS_MODEL, entries, "--model PATH [TEXT]",
        "The text is the argument, or standard input when there is none; every byte of it counts. No BOS is added.\n"
        "The model may be a tokenizer.json, too.\n\n"
        "Examples:\n"
        "  oxinfer-cli tokenize --model model.gguf \"Hello, world\"\n"
        "  oxinfer-cli tokenize --model tokenizer.json --json < text.txt | jq .count\n"
        "  oxinfer-cli tokenize --model model.gguf --decode 19556 28 905",
        &rest, &exit_code))
    return exit_code;
  if (cli->model_path == NULL)
    return ox_cli_usage (cli, "which model? --model is missing");
  ox_cli_catch_signals (cli);
  text = rest != NULL ? g_strjoinv (" ", rest) : ox_cli_read_all (cli, &error);
  if (text != NULL)
    tokenizer = ox_tokenizer_load (cli->model_path, cli->cancellable, &error);
  if (tokenizer == NULL)
    return ox_cli_fail (cli, error);
  if (decode)
    return decode_ids (cli, tokenizer, text);

  ox_tokenizer_encode (tokenizer, text, -1, control, ids);
  if (cli->json) {
    write_ids_json (cli, tokenizer, ids);
  } else {
    for (guint i = 0; i < ids->len; i++)
      g_string_append_printf (line, "%s%u", i > 0 ? " " : "", g_array_index (ids, guint32, i));
    g_string_append_c (line, '\n');
    ox_cli_write (cli, line->str);
  }
  return cli->output_error != 0 ? ox_cli_fail (cli, NULL) : OX_CLI_OK;
}
