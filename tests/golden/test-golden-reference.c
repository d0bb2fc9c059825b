/* Every network on a second table of operations, in float64: what the goldens say, as far as their float32 goes; and what the kernels
 * give, layer by layer, so that the first one to differ is named.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "golden/ox-golden-case.h"
#include "golden/ox-ops-reference.h"
#include "models/ox-drafter.h"
#include "ox-golden-check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Logits of goldens are float32 sums; they are a few units large. */
#define GOLDEN_TOLERANCE 2e-5
/* What the kernels' float32 may differ by in any layer. */
#define KERNEL_TOLERANCE 1e-4
/* Whose drafters the cases have. */
#define DRAFTER_TARGET "gemma4-e2b"

/* Weights and a network on one table. */
typedef struct {
  OxPool *pool;
  OxOps *ops;
  OxWeights *weights;
  OxConfig *config;
  OxNetwork *network;
} Loaded;

static char *
model_path (const char *name)
{
  return g_build_filename (g_getenv ("OX_TEST_DATA"), "golden", "text", name, "model", NULL);
}

static void
open_model (const char *name, OxWeights **weights, OxConfig **config)
{
  g_autofree char *path = model_path (name);
  g_autoptr (GError) error = NULL;

  *weights = ox_weights_open (path, NULL, &error);
  g_assert_no_error (error);
  *config = ox_config_load (path, *weights, &error);
  g_assert_no_error (error);
}

static Loaded
load (const char *name, gboolean reference)
{
  Loaded l = { 0 };
  OxLoader loader = { 0 };
  g_autoptr (GError) error = NULL;

  open_model (name, &l.weights, &l.config);
  if (reference)
    l.ops = ox_ops_reference_new ();
  else {
    OxOpsCpuOptions options = { .kernels = ox_kernels (), .precision = OX_PRECISION_EXACT };

    options.pool = l.pool = ox_pool_new (2);
    l.ops = ox_ops_cpu_new (&options);
  }
  loader.ops = l.ops;
  loader.weights = l.weights;
  loader.config = l.config;
  l.network = ox_network_load (&loader, &error);
  g_assert_no_error (error);
  return l;
}

static void
unload (Loaded *l)
{
  ox_network_free (l->network, l->ops);
  l->ops->free (l->ops);
  g_clear_pointer (&l->pool, ox_pool_free);
  ox_config_free (l->config);
  ox_weights_free (l->weights);
}

static OxState *
state_new (Loaded *l, guint context, guint chunk, OxTraceFunc trace, gpointer trace_data)
{
  OxStateOptions options = { .context_length = context, .chunk = chunk, .kv_type = OX_TYPE_F32 };
  g_autoptr (GError) error = NULL;
  OxState *state;

  options.trace = trace;
  options.trace_data = trace_data;
  state = ox_state_new (l->ops, l->config, &options, &error);
  g_assert_no_error (error);
  return state;
}

static void
forward (Loaded *l, OxState *state, const guint32 *ids, guint n, guint position, float *logits)
{
  g_autoptr (GError) error = NULL;

  l->network->network_class->forward (l->network, state, ids, n, position, OX_LOGITS_ALL, logits, NULL, &error);
  g_assert_no_error (error);
}

/* Every position's logits from chunks of @chunk tokens, with rings that are no longer than that takes. */
static float *
run (Loaded *l, const guint32 *ids, guint n, guint chunk, OxTraceFunc trace, gpointer trace_data)
{
  OxState *state = state_new (l, n, MIN (chunk, n), trace, trace_data);
  float *logits = g_new (float, (gsize) n * l->config->vocab_size);

  for (guint i = 0; i < n; i += chunk)
    forward (l, state, ids + i, MIN (chunk, n - i), i, logits + (gsize) i * l->config->vocab_size);
  ox_state_free (state);
  return logits;
}

/* ---- Against the goldens ---- */

static void
check_prompts (Loaded *l, OxGoldenCase *golden)
{
  for (guint i = 0; i < ox_weights_get_n_tensors (golden->expected); i++) {
    const char *name = ox_weights_get_tensor (golden->expected, i)->name;
    g_autofree guint32 *ids = NULL;
    unsigned prompt;
    int end = 0;
    gsize n;

    if (sscanf (name, "prompt%u_ids%n", &prompt, &end) != 1 || end == 0 || name[end] != '\0')
      continue;
    ids = ox_golden_case_ids (golden, name, &n);
    g_assert_cmpuint (n, >, 0);
    for (guint pass = 0; pass < 2; pass++) {
      g_autofree char *logits_name = g_strdup_printf ("prompt%u_logits", prompt);
      g_autofree float *logits = run (l, ids, (guint) n, pass == 0 ? (guint) n : 5, NULL, NULL);

      ox_golden_case_compare (golden, logits_name, pass == 0 ? "float64" : "float64, in chunks of 5", logits,
                              n * l->config->vocab_size, GOLDEN_TOLERANCE);
    }
  }
}

static OxGoldenCase *
open_case (const char *name, OxGoldenReport *report)
{
  g_autofree char *path = g_build_filename (g_getenv ("OX_TEST_DATA"), "golden", "text", name, NULL);
  g_autoptr (GError) error = NULL;
  OxGoldenCase *golden = ox_golden_case_open (path, "expected.safetensors", report, &error);

  g_assert_no_error (error);
  return golden;
}

static void
test_golden (gconstpointer data)
{
  OxGoldenReport report = { .func = ox_golden_check_message };
  g_autoptr (OxGoldenCase) golden = open_case (data, &report);
  Loaded l = load (data, TRUE);

  check_prompts (&l, golden);
  g_assert_cmpuint (report.n_over, ==, 0);
  g_assert_cmpuint (report.n_not_computed, ==, 0);
  g_assert_cmpuint (report.n_ok, >=, 2);
  unload (&l);
}

/* ---- Against the kernels ---- */

typedef struct {
  char *name;
  GArray *values; /* float */
} Layer;

static void
layer_free (gpointer data)
{
  Layer *layer = data;

  g_free (layer->name);
  g_array_unref (layer->values);
  g_free (layer);
}

static void
on_trace (const char *name, guint layer, const float *values, guint rows, guint cols, gpointer user_data)
{
  Layer *traced = g_new (Layer, 1);

  traced->name = g_strdup_printf ("%s %u", name, layer);
  traced->values = g_array_new (FALSE, FALSE, sizeof (float));
  g_array_append_vals (traced->values, values, rows * cols);
  g_ptr_array_add (user_data, traced);
}

static void
test_kernels (gconstpointer data)
{
  g_autoptr (GPtrArray) expected = g_ptr_array_new_with_free_func (layer_free);
  g_autoptr (GPtrArray) computed = g_ptr_array_new_with_free_func (layer_free);
  Loaded slow = load (data, TRUE), fast = load (data, FALSE);
  guint32 ids[40];
  g_autofree float *a = NULL, *b = NULL;

  for (guint i = 0; i < G_N_ELEMENTS (ids); i++)
    ids[i] = (i * 37 + 11) % slow.config->vocab_size;
  a = run (&slow, ids, G_N_ELEMENTS (ids), 40, on_trace, expected);
  b = run (&fast, ids, G_N_ELEMENTS (ids), 40, on_trace, computed);
  g_assert_cmpuint (expected->len, ==, computed->len);
  g_assert_cmpuint (expected->len, >=, 3);
  for (guint i = 0; i < expected->len; i++) {
    Layer *x = g_ptr_array_index (expected, i), *y = g_ptr_array_index (computed, i);
    double difference;

    g_assert_cmpstr (x->name, ==, y->name);
    g_assert_cmpuint (x->values->len, ==, y->values->len);
    difference =
      ox_golden_difference ((const float *) x->values->data, (const float *) y->values->data, x->values->len);
    g_test_message ("%s: %g", x->name, difference);
    if (!(difference <= KERNEL_TOLERANCE))
      g_error ("%s: the kernels differ by %g from %s on", (const char *) data, difference, x->name);
  }
  g_assert_cmpfloat (ox_golden_difference (a, b, G_N_ELEMENTS (ids) * slow.config->vocab_size), <=, KERNEL_TOLERANCE);
  unload (&slow);
  unload (&fast);
}

/* ---- Going back ---- */

/* Tokens that are taken back leave no trace: to the last bit, as float64 sums come in the same order. Rows of keys are written over; only
 * a recurrent state has to be told. */
static void
test_rewind (gconstpointer data)
{
  Loaded l = load (data, TRUE);
  OxState *state = state_new (&l, 16, 4, NULL, NULL);
  const guint32 ids[] = { 5, 9, 17, 3 }, wrong[] = { 8, 21, 4 }, next[] = { 8, 30 };
  guint vocab = l.config->vocab_size;
  g_autofree float *logits = g_new (float, 4 * vocab), *straight = g_new (float, 2 * vocab),
                   *again = g_new (float, 2 * vocab);

  forward (&l, state, ids, 4, 0, logits);
  forward (&l, state, next, 2, 4, straight);

  ox_state_reset (state);
  forward (&l, state, ids, 4, 0, logits);
  for (guint i = 0; i < l.config->num_hidden_layers; i++)
    if (state->recurrent[i] != NULL)
      g_assert_true (l.ops->recurrent_mark (l.ops, state->recurrent[i], 3, NULL));
  forward (&l, state, wrong, 3, 4, logits);
  for (guint i = 0; i < l.config->num_hidden_layers; i++)
    if (state->recurrent[i] != NULL)
      l.ops->recurrent_rewind (l.ops, state->recurrent[i], 1);
  /* The first of the three was right. */
  memcpy (again, logits, vocab * sizeof (float));
  forward (&l, state, next + 1, 1, 5, again + vocab);
  g_assert_cmpmem (straight, 2 * vocab * sizeof (float), again, 2 * vocab * sizeof (float));
  ox_state_free (state);
  unload (&l);
}

/* ---- Drafters ---- */

static void
check_draft (Loaded *l, OxDrafter *drafter, OxGoldenCase *golden, unsigned prompt)
{
  g_autofree char *ids_name = g_strdup_printf ("prompt%u_ids", prompt);
  g_autofree char *newest_name = g_strdup_printf ("prompt%u_newest_id", prompt);
  g_autofree char *drafts_name = g_strdup_printf ("prompt%u_draft_ids", prompt);
  g_autofree char *logits_name = g_strdup_printf ("prompt%u_draft_logits", prompt);
  gsize n, n_newest, n_drafts;
  g_autofree guint32 *ids = ox_golden_case_ids (golden, ids_name, &n);
  g_autofree guint32 *newest = ox_golden_case_ids (golden, newest_name, &n_newest);
  g_autofree guint32 *expected = ox_golden_case_ids (golden, drafts_name, &n_drafts);
  guint vocab = l->config->vocab_size;
  g_autofree guint32 *drafts = NULL;
  g_autofree float *logits = NULL, *draft_logits = NULL;
  g_autoptr (GError) error = NULL;
  OxState *state;
  OxDraftState *draft;

  if (newest == NULL || expected == NULL)
    return;
  state = state_new (l, (guint) n + 16, (guint) n, NULL, NULL);
  logits = g_new (float, n *vocab);
  drafts = g_new (guint32, n_drafts);
  draft_logits = g_new (float, n_drafts *vocab);
  draft = drafter->drafter_class->state_new (drafter, state, &error);
  g_assert_no_error (error);
  forward (l, state, ids, (guint) n, 0, logits);
  g_assert_cmpuint (ox_golden_argmax (logits + (n - 1) * vocab, vocab), ==, newest[0]);
  g_assert_true (drafter->drafter_class->observe (draft, ids, (guint) n, 0, NULL, &error));
  for (guint i = 0; i < n_drafts; i++) {
    g_assert_cmpuint (drafter->drafter_class->draft (draft, newest[0], (guint) n, i + 1, drafts, NULL, &error), ==,
                      i + 1);
    memcpy (draft_logits + (gsize) i * vocab, draft->logits, vocab * sizeof (float));
  }
  g_assert_cmpmem (drafts, n_drafts * sizeof *drafts, expected, n_drafts * sizeof *expected);
  ox_golden_case_compare (golden, logits_name, "float64", draft_logits, n_drafts * vocab, GOLDEN_TOLERANCE);
  drafter->drafter_class->state_free (draft);
  ox_state_free (state);
}

static void
test_drafter (gconstpointer data)
{
  OxGoldenReport report = { .func = ox_golden_check_message };
  g_autoptr (OxGoldenCase) golden = open_case (data, &report);
  Loaded l = load (DRAFTER_TARGET, TRUE);
  OxLoader loader = { .ops = l.ops };
  g_autoptr (GError) error = NULL;
  OxWeights *weights;
  OxConfig *config;
  OxDrafter *drafter;

  open_model (data, &weights, &config);
  loader.weights = weights;
  loader.config = config;
  drafter = ox_gemma4_drafter_load (&loader, l.network, &error);
  g_assert_no_error (error);
  for (unsigned prompt = 0; prompt < 4; prompt++)
    check_draft (&l, drafter, golden, prompt);
  g_assert_cmpuint (report.n_over, ==, 0);
  g_assert_cmpuint (report.n_not_computed, ==, 0);
  g_assert_cmpuint (report.n_ok, >=, 1);
  ox_drafter_free (drafter, l.ops);
  ox_config_free (config);
  ox_weights_free (weights);
  unload (&l);
}

int
main (int argc, char **argv)
{
  static const char *const networks[] = { "gemma3",     "gemma4-e2b", "gemma4-e4b",   "gemma4-12b",
                                          "gemma4-26b", "gemma4-31b", "qwen35-small", "qwen35-large" };
  static const char *const drafters[] = { "gemma4-drafter", "gemma4-drafter-centroid" };

  g_test_init (&argc, &argv, NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (networks); i++) {
    g_autofree char *golden = g_strconcat ("/reference/golden/", networks[i], NULL);
    g_autofree char *kernels = g_strconcat ("/reference/kernels/", networks[i], NULL);
    g_autofree char *rewind = g_strconcat ("/reference/rewind/", networks[i], NULL);

    g_test_add_data_func (golden, networks[i], test_golden);
    g_test_add_data_func (kernels, networks[i], test_kernels);
    g_test_add_data_func (rewind, networks[i], test_rewind);
  }
  for (gsize i = 0; i < G_N_ELEMENTS (drafters); i++) {
    g_autofree char *name = g_strconcat ("/reference/drafter/", drafters[i], NULL);

    g_test_add_data_func (name, drafters[i], test_drafter);
  }
  return g_test_run ();
}
