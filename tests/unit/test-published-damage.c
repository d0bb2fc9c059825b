/* Repositories of every family with a tensor missing, of another shape or type, or too many: the plan, which looks at all that
 * loading would read, names the tensor, or does not mind where no text needs it.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-published.h"

#include <glib/gstdio.h>
#include <string.h>

#include "ox-model-private.h"

static const OxGemma4Size small = { 64, 10, 5, 8, 1, 1, FALSE, 96, TRUE, 4, 512, 32, 131072, 0, 0, 0, OX_TOWERS_SMALL };
static const OxGemma4Size unified = {
  64, 6, 6, 16, 8, 1, TRUE, 96, FALSE, 0, 1024, 0, 262144, 0, 0, 0, OX_TOWERS_UNIFIED
};
static const OxGemma4Size experts = {
  64, 3, 3, 16, 8, 2, TRUE, 96, FALSE, 0, 1024, 0, 262144, 8, 2, 32, OX_TOWERS_LARGE
};
static const OxQwen35Size qwen35 = { 64, 96, 4, 8, 2, 32, TRUE, 64, 96, 1 };
static const OxPlainSize llama = { "llama", 64, 96, 2, 4, 2, 16, 320, TRUE, FALSE, "" };
static const OxPlainSize qwen2 = { "qwen2", 64, 96, 2, 4, 2, 16, 320, TRUE, FALSE, "" };
static const OxPlainSize gemma3 = { "gemma3", 64, 96, 2, 4, 2, 16, 320, TRUE, FALSE, "\"sliding_window\":512," };

typedef struct {
  const char *name;
  gconstpointer size;
  enum { GEMMA4, QWEN35, PLAIN } kind;
} Model;

static const Model models[] = {
  { "gemma4-small", &small, GEMMA4 },
  { "gemma4-unified", &unified, GEMMA4 },
  { "gemma4-experts", &experts, GEMMA4 },
  { "qwen35", &qwen35, QWEN35 },
  { "llama", &llama, PLAIN },
  { "qwen2", &qwen2, PLAIN },
  { "gemma3", &gemma3, PLAIN },
};

/* Parameters of the plan, or 0 and an error. */
static guint64
plan_folder (const char *folder, GError **error)
{
  g_autoptr (OxWeights) weights = ox_weights_open (folder, NULL, error);
  g_autoptr (OxConfig) config = weights ? ox_config_load (folder, weights, error) : NULL;
  g_autoptr (OxModelPlan) plan = config ? ox_model_plan_weights (folder, weights, config, NULL, NULL, error) : NULL;

  return plan ? plan->parameters : 0;
}

/* The name without what differs between repositories. */
static const char *
bare_name (const char *name)
{
  static const char *const prefixes[] = { "model.language_model.", "language_model.model.", "model." };

  for (guint i = 0; i < G_N_ELEMENTS (prefixes); i++)
    if (g_str_has_prefix (name, prefixes[i]))
      return name + strlen (prefixes[i]);
  return name;
}

static void
check_refused (GPtrArray *tensors, const char *folder, const OxPublishedTensor *tensor, const char *damage)
{
  g_autoptr (GError) error = NULL;
  guint64 parameters;

  g_assert_true (ox_published_write (tensors, folder, 1));
  parameters = plan_folder (folder, &error);
  if (parameters > 0)
    g_error ("“%s” %s, and nobody minds", tensor->name, damage);
  if (error->domain != OX_ERROR || error->code != OX_ERROR_DAMAGED ||
      !strstr (error->message, bare_name (tensor->name)) || !strstr (error->message, "model.safetensors"))
    g_error ("“%s” %s: improper error %d: %s", tensor->name, damage, error->code, error->message);
}

/* What the text needs. */
static void
damage_needed (GPtrArray *tensors, const char *folder)
{
  for (guint i = 0; i < tensors->len; i++) {
    OxPublishedTensor *tensor = g_ptr_array_index (tensors, i);

    if (tensor->part != OX_PART_TEXT && tensor->part != OX_PART_TABLE)
      continue;
    for (guint j = 0; j < tensor->n_dims; j++) {
      tensor->dims[j]++;
      check_refused (tensors, folder, tensor, "is larger");
      tensor->dims[j] -= 2;
      if (tensor->dims[j] > 0)
        check_refused (tensors, folder, tensor, "is smaller");
      tensor->dims[j]++;
    }
    tensor->dims[tensor->n_dims++] = 1;
    check_refused (tensors, folder, tensor, "has a dimension more");
    tensor->n_dims--;
    if (tensor->n_dims == 2) {
      tensor->dtype = "I64";
      check_refused (tensors, folder, tensor, "is of integers");
      tensor->dtype = "BF16";
    }
    g_ptr_array_steal_index (tensors, i);
    check_refused (tensors, folder, tensor, "is missing");
    g_ptr_array_insert (tensors, (gint) i, tensor);
  }
}

/* A few tensors of the towers are enough here. */
static void
thin_out (GPtrArray *tensors)
{
  guint n_towers = 0;

  for (guint i = 0; i < tensors->len;)
    if (((OxPublishedTensor *) g_ptr_array_index (tensors, i))->part == OX_PART_TOWER && ++n_towers > 20)
      g_ptr_array_remove_index (tensors, i);
    else
      i++;
}

static void
test_damage (gconstpointer data)
{
  const Model *model = data;
  g_autoptr (GError) error = NULL;
  g_autofree char *folder = g_dir_make_tmp ("ox-damage-XXXXXX", &error);
  g_autofree char *config_path = g_build_filename (folder, "config.json", NULL);
  g_autofree char *weights_path = g_build_filename (folder, "model.safetensors", NULL);
  g_autoptr (GPtrArray) tensors = model->kind == GEMMA4   ? ox_published_gemma4 (model->size)
                                  : model->kind == QWEN35 ? ox_published_qwen35 (model->size)
                                                          : ox_published_plain (model->size);
  g_autofree char *json = model->kind == GEMMA4   ? ox_published_gemma4_config (model->size)
                          : model->kind == QWEN35 ? ox_published_qwen35_config (model->size)
                                                  : ox_published_plain_config (model->size);
  guint64 parameters;

  g_assert_no_error (error);
  thin_out (tensors);
  g_file_set_contents (config_path, json, -1, &error);
  g_assert_no_error (error);
  if (ox_published_write (tensors, folder, 1)) {
    parameters = plan_folder (folder, &error);
    g_assert_no_error (error);
    damage_needed (tensors, folder);
    /* Towers, and what the network leaves out, may be of any shape, or not there at all. */
    for (guint i = tensors->len; i-- > 0;) {
      OxPublishedTensor *tensor = g_ptr_array_index (tensors, i);

      if (tensor->part != OX_PART_TEXT && tensor->part != OX_PART_TABLE && i % 2 == 0)
        g_ptr_array_remove_index (tensors, i);
      else if (tensor->part != OX_PART_TEXT && tensor->part != OX_PART_TABLE)
        tensor->n_dims = 0;
    }
    g_assert_true (ox_published_write (tensors, folder, 1));
    g_assert_cmpuint (plan_folder (folder, &error), ==, parameters);
    g_assert_no_error (error);
  } else {
    g_test_skip ("this file system holds no files with large holes");
  }
  g_unlink (weights_path);
  g_unlink (config_path);
  g_rmdir (folder);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (models); i++) {
    g_autofree char *path = g_strconcat ("/published/damage/", models[i].name, NULL);

    g_test_add_data_func (path, &models[i], test_damage);
  }
  return g_test_run ();
}
