/* oxinfer-cli quantize: rounding and packing a model's weights ahead of time.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-cli.h"

#include <sys/stat.h>
#include <unistd.h>

#include "ox-model-private.h"
#include "ox-packed-folder.h"

static void
on_progress (double fraction, gpointer user_data)
{
  fprintf (stderr, "\rPacking… %3.0f %%", 100 * fraction);
}

static void
write_result (OxCli *cli, const OxModel *model)
{
  const OxModelPlan *plan = model->plan;
  struct stat st = { 0 };
  g_autofree char *in_memory = g_format_size (plan->weight_bytes);
  g_autofree char *text = NULL;

  if (model->packed_path != NULL && stat (model->packed_path, &st) == 0) {
    g_autofree char *shown = g_filename_display_name (model->packed_path);
    g_autofree char *on_disk = g_format_size ((guint64) st.st_size);

    text = g_strdup_printf ("%s, %s: kept in %s (%s); takes %s of memory\n", plan->name, plan->format, shown, on_disk,
                            in_memory);
  } else {
    text = g_strdup_printf ("%s, %s: nothing is kept, since it loads as quickly without; takes %s of memory\n",
                            plan->name, plan->format, in_memory);
  }
  ox_cli_write (cli, text);
}

static void
write_result_json (OxCli *cli, const OxModel *model)
{
  yyjson_mut_doc *doc = yyjson_mut_doc_new (NULL);
  yyjson_mut_val *root = yyjson_mut_obj (doc);
  g_autofree char *path = model->packed_path != NULL ? g_utf8_make_valid (model->packed_path, -1) : NULL;
  struct stat st = { 0 };

  yyjson_mut_doc_set_root (doc, root);
  yyjson_mut_obj_add_strcpy (doc, root, "format", model->plan->format);
  yyjson_mut_obj_add_uint (doc, root, "weight_bytes", model->plan->weight_bytes);
  if (path != NULL && stat (model->packed_path, &st) == 0)
    yyjson_mut_obj_add_strcpy (doc, root, "path", path);
  else
    yyjson_mut_obj_add_null (doc, root, "path");
  yyjson_mut_obj_add_uint (doc, root, "file_bytes", (guint64) st.st_size);
  ox_cli_write_json (cli, doc);
}

/* Everything that is kept, of all models. */
static int
clear_kept (OxCli *cli)
{
  g_autofree char *bytes = g_format_size (ox_packed_cache_get_bytes ());
  g_autofree char *text = g_strdup_printf ("Removed: %s\n", bytes);
  g_autoptr (GError) error = NULL;

  if (!ox_packed_cache_clear (&error))
    return ox_cli_fail (cli, error);
  ox_cli_write (cli, text);
  return cli->output_error != 0 ? ox_cli_fail (cli, NULL) : OX_CLI_OK;
}

int
ox_cli_quantize (OxCli *cli, int argc, char **argv)
{
  gboolean clear = FALSE;
  const GOptionEntry entries[] = {
    { "clear", 0, 0, G_OPTION_ARG_NONE, &clear, "Remove what is kept of all models, and do nothing else", NULL },
    { "json", 0, 0, G_OPTION_ARG_NONE, &cli->json, "One JSON object", NULL },
    { NULL },
  };
  g_auto (GStrv) rest = NULL;
  gboolean shows = isatty (STDERR_FILENO);
  OxModelOptions options;
  g_autoptr (OxModel) model = NULL;
  g_autoptr (GError) error = NULL;
  const char *path;
  int exit_code;

  if (!ox_cli_parse (
        cli, argc, argv, OX_CLI_OPTIONS_MODEL | OX_CLI_OPTIONS_LOAD, entries, "[MODEL]",
        "Rounds and packs the weights now, so that the next start of the model, in the app or here, only\n"
        "reads them. The result is kept in the cache folder, where the first start would put it. The model\n"
        "may be named without --model.\n\n"
        "Examples:\n"
        "  oxinfer-cli quantize Qwen3.5-2B\n"
        "  oxinfer-cli quantize gemma-4-12b-it --weights q4\n"
        "  oxinfer-cli quantize --clear",
        &rest, &exit_code))
    return exit_code;
  if (clear && cli->model_path == NULL && rest == NULL)
    return clear_kept (cli);
  path = clear ? NULL : cli->model_path != NULL ? cli->model_path : rest != NULL ? rest[0] : NULL;
  if (path == NULL || (rest != NULL && g_strv_length (rest) + (cli->model_path != NULL) > 1))
    return ox_cli_usage (cli, "which model? One is to be named, or --clear alone");
  ox_cli_get_model_options (cli, &options);
  ox_cli_catch_signals (cli);
  model = ox_model_load_full (path, &options, FALSE, shows ? on_progress : NULL, NULL, cli->cancellable, &error);
  if (shows)
    fputs ("\r                \r", stderr);
  if (model == NULL)
    return ox_cli_fail (cli, error);
  if (model->packed_path == NULL && !ox_packed_folder_check (model->plan->weight_bytes, &error))
    return ox_cli_fail (cli, error);
  if (cli->json)
    write_result_json (cli, model);
  else
    write_result (cli, model);
  return cli->output_error != 0 ? ox_cli_fail (cli, NULL) : OX_CLI_OK;
}
