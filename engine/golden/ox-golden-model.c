/* Golden cases of whole networks.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "golden/ox-golden-model.h"
#include "models/ox-rope.h"
#include "ox-session-private.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Chunks of the uneven prefill; the last repeats. Rings are no longer than these need. */
static const guint chunk_sizes[] = { 7, 1, 1, 5 };
#define LARGEST_CHUNK 7
static const guint even_sizes[] = { 1, 7, 64 };

/* One model against the tensors of one prefix. */
typedef struct {
  OxGoldenCase *golden;
  OxModel *model;
  GCancellable *cancellable;
  const char *prefix; /* before the names of outputs: "", "hf.", "q8_0." */
  const char *how;    /* the file that was run, for names shown; or NULL */
  double tolerance;   /* of logits */
  gboolean exact_ids; /* whether greedy ids have to be those of the case */
  GPtrArray *traced;  /* Traced, in the order in which the layers gave them */
} Run;

typedef struct {
  char *name;     /* "hidden_3" */
  GArray *values; /* float, of all rows so far */
} Traced;

static void
traced_free (gpointer data)
{
  Traced *traced = data;

  g_free (traced->name);
  g_array_unref (traced->values);
  g_free (traced);
}

static void
on_trace (const char *name, guint layer, const float *values, guint rows, guint cols, gpointer user_data)
{
  Run *run = user_data;
  g_autofree char *key = strcmp (name, "hidden") == 0 ? g_strdup_printf ("hidden_%u", layer) : g_strdup (name);
  Traced *traced;

  for (guint i = 0; i < run->traced->len; i++) {
    traced = g_ptr_array_index (run->traced, i);
    if (strcmp (traced->name, key) == 0) {
      g_array_append_vals (traced->values, values, rows * cols);
      return;
    }
  }
  traced = g_new (Traced, 1);
  traced->name = g_steal_pointer (&key);
  traced->values = g_array_new (FALSE, FALSE, sizeof (float));
  g_array_append_vals (traced->values, values, rows * cols);
  g_ptr_array_add (run->traced, traced);
}

static char *
how (Run *run, const char *what)
{
  if (run->how == NULL)
    return g_strdup (what);
  return what != NULL ? g_strdup_printf ("%s, %s", run->how, what) : g_strdup (run->how);
}

/* What the first layer with a recurrent state remembers after the prompt. The reference keeps one input of the convolution more than is
 * ever used again; what can be compared are the others. */
static void
check_linear_state (Run *run, guint prompt, OxSession *session)
{
  OxGoldenCase *golden = run->golden;
  OxState *state = ox_session_get_state (session);
  g_autofree char *state_name = g_strdup_printf ("%sprompt%u_linear0_recurrent_state", run->prefix, prompt);
  g_autofree char *conv_name = g_strdup_printf ("%sprompt%u_linear0_conv_state", run->prefix, prompt);
  OxDeltaShape shape = ox_config_delta_shape (state->config);
  gsize matrices = (gsize) shape.value_heads * shape.key_dim * shape.value_dim;
  guint channels, taps;
  g_autofree float *values = NULL;
  g_autofree float *expected = NULL;
  gsize n_expected;
  double difference = 0;

  if (state->recurrent[0] == NULL || ox_weights_find (golden->expected, state_name) == NULL)
    return;
  channels = ox_delta_channels (&shape);
  taps = shape.conv_kernel;
  values = g_malloc (ox_recurrent_bytes (&shape));
  state->ops->recurrent_save (state->ops, state->recurrent[0], values);
  ox_golden_case_compare (golden, state_name, NULL, values, matrices,
                          ox_golden_case_tolerance (golden, state_name, "states"));
  expected = ox_golden_case_floats (golden, conv_name, &n_expected);
  if (expected == NULL || n_expected != (gsize) channels * taps)
    return;
  for (guint c = 0; c < channels; c++)
    for (guint j = 1; j < taps; j++) {
      float ours = values[matrices + (gsize) (j - 1) * channels + c];

      difference = MAX (difference, ABS (ours - expected[(gsize) c * taps + j]));
    }
  ox_golden_report_difference (golden->report, conv_name, difference,
                               ox_golden_case_tolerance (golden, conv_name, "states"), NULL);
  ox_golden_case_set_handled (golden, conv_name);
}

/* One full prefill: logits of every position, and what the layers gave. */
static void
check_prefill (Run *run, guint prompt, const guint32 *ids, gsize n)
{
  OxGoldenCase *golden = run->golden;
  gsize vocab = run->model->config->vocab_size;
  g_autofree char *logits_name = g_strdup_printf ("%sprompt%u_logits", run->prefix, prompt);
  g_autofree char *shown = how (run, NULL);
  g_autofree float *logits = g_new (float, n *vocab);
  g_autoptr (OxSession) session = NULL;
  g_autoptr (GError) error = NULL;

  g_ptr_array_set_size (run->traced, 0);
  session = ox_session_new_full (run->model, 0, on_trace, run, &error);
  if (session == NULL || !ox_session_eval (session, ids, n, OX_LOGITS_ALL, logits, run->cancellable, &error)) {
    ox_golden_case_set_handled (golden, logits_name);
    ox_golden_report_not_computed (golden->report, logits_name, "%s", error->message);
    return;
  }
  ox_golden_case_compare (golden, logits_name, shown, logits, n * vocab, run->tolerance);

  check_linear_state (run, prompt, session);
  for (guint i = 0; i < run->traced->len; i++) {
    Traced *traced = g_ptr_array_index (run->traced, i);
    g_autofree char *name = g_strdup_printf ("%sprompt%u_%s", run->prefix, prompt, traced->name);

    ox_golden_case_compare (golden, name, shown, (const float *) traced->values->data, traced->values->len,
                            ox_golden_case_tolerance (golden, name, "hidden"));
  }
}

/* The same logits from several calls, with rings so short that they wrap. */
static void
check_chunks (Run *run, guint prompt, const guint32 *ids, gsize n, const guint *sizes, gsize n_sizes, const char *what)
{
  OxGoldenCase *golden = run->golden;
  gsize vocab = run->model->config->vocab_size;
  guint slack = run->model->state_options.slack;
  g_autofree char *name = g_strdup_printf ("%sprompt%u_logits", run->prefix, prompt);
  g_autofree char *shown = how (run, what);
  g_autofree float *logits = g_new (float, n *vocab);
  g_autoptr (OxSession) session = NULL;
  g_autoptr (GError) error = NULL;
  gboolean ok;

  run->model->state_options.slack = 0;
  session = ox_session_new_full (run->model, MAX (sizes[0], LARGEST_CHUNK), NULL, NULL, &error);
  run->model->state_options.slack = slack;
  ok = session != NULL;
  for (gsize done = 0, i = 0; ok && done < n; i++) {
    gsize size = MIN (sizes[MIN (i, n_sizes - 1)], n - done);

    ok = ox_session_eval (session, ids + done, size, OX_LOGITS_ALL, logits + done * vocab, run->cancellable, &error);
    done += size;
  }
  if (ok)
    ox_golden_case_compare (golden, name, shown, logits, n * vocab, run->tolerance);
  else
    ox_golden_report_not_computed (golden->report, name, "%s: %s", what, error->message);
}

static void
check_greedy (Run *run, guint prompt, const guint32 *ids, gsize n)
{
  OxGoldenCase *golden = run->golden;
  gsize vocab = run->model->config->vocab_size;
  g_autofree char *ids_name = g_strdup_printf ("prompt%u_greedy_ids", prompt);
  g_autofree char *logits_name = g_strdup_printf ("%sprompt%u_greedy_logits", run->prefix, prompt);
  g_autofree char *margin_name = g_strdup_printf ("%sprompt%u_greedy_margin", run->prefix, prompt);
  g_autofree char *shown = how (run, NULL);
  g_autofree guint32 *path = NULL;
  g_autofree float *logits = NULL;
  g_autofree float *margins = NULL;
  g_autoptr (OxSession) session = NULL;
  g_autoptr (GError) error = NULL;
  gsize n_steps, first_difference;
  gboolean ok;

  path = ox_golden_case_ids (golden, ids_name, &n_steps);
  if (path == NULL || n_steps == 0)
    return;
  logits = g_new (float, n_steps *vocab);
  margins = g_new (float, n_steps);
  session = ox_session_new_full (run->model, 0, NULL, NULL, &error);
  ok = session != NULL && ox_session_eval (session, ids, n, OX_LOGITS_LAST, logits, run->cancellable, &error);
  /* The expected id is fed whatever the engine would choose, so that every step can be compared. As long as the choices agree this is
   * the engine's own greedy decoding. */
  for (gsize i = 1; ok && i < n_steps; i++)
    ok = ox_session_eval (session, &path[i - 1], 1, OX_LOGITS_LAST, logits + i * vocab, run->cancellable, &error);
  if (!ok) {
    ox_golden_case_set_handled (golden, logits_name);
    ox_golden_report_not_computed (golden->report, logits_name, "%s", error->message);
    return;
  }

  first_difference = n_steps;
  for (gsize i = 0; i < n_steps; i++) {
    const float *row = logits + i * vocab;
    guint32 best = ox_golden_argmax (row, vocab);
    float second = -INFINITY;

    if (best != path[i] && first_difference == n_steps)
      first_difference = i;
    for (gsize j = 0; j < vocab; j++)
      if (j != best)
        second = MAX (second, row[j]);
    margins[i] = row[best] - second;
  }
  ox_golden_case_set_handled (golden, ids_name);
  if (run->exact_ids) {
    g_autofree char *name = shown != NULL ? g_strdup_printf ("%s (%s)", ids_name, shown) : g_strdup (ids_name);

    if (first_difference == n_steps)
      ox_golden_report_same (golden->report, name, TRUE, "%" G_GSIZE_FORMAT " ids", n_steps);
    else
      ox_golden_report_same (golden->report, name, FALSE, "other from step %" G_GSIZE_FORMAT " of %" G_GSIZE_FORMAT,
                             first_difference, n_steps);
  }
  ox_golden_case_compare (golden, logits_name, shown, logits, n_steps * vocab, run->tolerance);
  ox_golden_case_compare (golden, margin_name, shown, margins, n_steps, run->tolerance);
}

/* The positions of the rope tensors, from what case.json says of them: "[5, head dim], positions 0, 1, 2, 3, 100003; second …". */
static GArray *
rope_positions (OxGoldenCase *golden)
{
  GArray *positions = g_array_new (FALSE, FALSE, sizeof (guint64));
  yyjson_obj_iter iter = yyjson_obj_iter_with (yyjson_obj_get (golden->root, "tensors"));
  yyjson_val *key;

  while (positions->len == 0 && (key = yyjson_obj_iter_next (&iter)) != NULL) {
    const char *text = yyjson_get_str (yyjson_obj_iter_get_val (key));
    const char *p =
      text != NULL && g_str_has_prefix (yyjson_get_str (key), "rope_") ? strstr (text, "positions ") : NULL;
    char *end;

    for (p = p != NULL ? p + strlen ("positions ") : ""; g_ascii_isdigit (*p);) {
      guint64 position = g_ascii_strtoull (p, &end, 10);

      g_array_append_val (positions, position);
      p = *end == ',' && end[1] == ' ' ? end + 2 : "";
    }
  }
  return positions;
}

static void
check_rope_table (Run *run, const char *kind, const OxRopeConfig *rope, guint head_dim)
{
  OxGoldenCase *golden = run->golden;
  guint rotary_dim = ox_rope_rotary_dim (rope, head_dim);
  guint half = rotary_dim / 2;
  g_autofree char *cos_name = g_strdup_printf ("rope_%scos", kind);
  g_autofree char *sin_name = g_strdup_printf ("rope_%ssin", kind);
  g_autoptr (GArray) positions = NULL;
  g_autofree float *frequencies = NULL;
  g_autofree float *cos_table = NULL;
  g_autofree float *sin_table = NULL;
  double tolerance = ox_golden_case_tolerance (golden, cos_name, "rope");

  if (ox_weights_find (golden->expected, cos_name) == NULL && ox_weights_find (golden->expected, sin_name) == NULL)
    return;
  positions = rope_positions (golden);
  frequencies = ox_rope_frequencies (rope, head_dim);
  cos_table = g_new (float, (gsize) positions->len *rotary_dim);
  sin_table = g_new (float, (gsize) positions->len *rotary_dim);
  for (guint i = 0; i < positions->len; i++) {
    float *c = cos_table + (gsize) i * rotary_dim;
    float *s = sin_table + (gsize) i * rotary_dim;

    ox_rope_angles (frequencies, half, g_array_index (positions, guint64, i), 1, c, s);
    memcpy (c + half, c, half * sizeof (float));
    memcpy (s + half, s, half * sizeof (float));
  }
  ox_golden_case_compare (golden, cos_name, NULL, cos_table, (gsize) positions->len * rotary_dim, tolerance);
  ox_golden_case_compare (golden, sin_name, NULL, sin_table, (gsize) positions->len * rotary_dim, tolerance);
}

/* Runs every prompt of the case. */
static void
check_prompts (Run *run, gboolean in_chunks)
{
  static const char *const even_names[] = { "token by token", "in chunks of 7", "in chunks of 64" };
  OxGoldenCase *golden = run->golden;

  run->traced = g_ptr_array_new_with_free_func (traced_free);
  for (guint i = 0; i < ox_weights_get_n_tensors (golden->expected); i++) {
    const char *name = ox_weights_get_tensor (golden->expected, i)->name;
    g_autofree guint32 *ids = NULL;
    unsigned prompt;
    int end = 0;
    gsize n;

    if (sscanf (name, "prompt%u_ids%n", &prompt, &end) != 1 || end == 0 || name[end] != '\0')
      continue;
    ids = ox_golden_case_ids (golden, name, &n);
    if (ids == NULL || n == 0)
      continue;
    ox_golden_case_input (golden, name);
    check_prefill (run, prompt, ids, n);
    if (in_chunks) {
      check_chunks (run, prompt, ids, n, chunk_sizes, G_N_ELEMENTS (chunk_sizes), "in chunks");
      for (gsize k = 0; k < G_N_ELEMENTS (even_sizes); k++)
        check_chunks (run, prompt, ids, n, &even_sizes[k], 1, even_names[k]);
    }
    check_greedy (run, prompt, ids, n);
  }
  g_clear_pointer (&run->traced, g_ptr_array_unref);
}

void
ox_golden_model_run (OxGoldenCase *self, GCancellable *cancellable)
{
  OxModelOptions options = { .precision = OX_MODEL_PRECISION_EXACT };
  g_autofree char *path = g_build_filename (self->folder, "model", NULL);
  yyjson_val *chunked = yyjson_obj_get (self->root, "chunked");
  g_autoptr (GError) error = NULL;
  g_autoptr (OxModel) model = ox_model_load_full (path, &options, FALSE, NULL, NULL, cancellable, &error);
  Run run = { .golden = self, .model = model, .cancellable = cancellable, .prefix = "", .exact_ids = TRUE };
  guint full;

  if (model == NULL) {
    ox_golden_case_finish (self, error->message);
    return;
  }
  run.tolerance = ox_golden_case_tolerance (self, "logits", "logits");
  check_prompts (&run, yyjson_is_true (yyjson_obj_get (chunked, "verified")));
  full = model->config->global_head_dim > 0 ? model->config->global_head_dim : model->config->head_dim;
  check_rope_table (&run, "full_", &model->config->rope, full);
  check_rope_table (&run, "", &model->config->rope, full);
  if (model->config->sliding_window > 0)
    check_rope_table (&run, "sliding_", &model->config->rope_sliding, model->config->head_dim);
  ox_golden_case_finish (self, "this version computes no such value");
}

/* Whether @stem is among the files that hold the checkpoint's weights unrounded. */
static gboolean
has_exact_weights (OxGoldenCase *self, const char *stem)
{
  yyjson_val *list = yyjson_obj_get (self->root, "files_with_the_checkpoints_exact_weights");
  yyjson_val *val;
  gsize i, n;

  ox_json_foreach_item (list, i, n, val) {
    if (yyjson_equals_str (val, stem))
      return TRUE;
  }
  return FALSE;
}

static void
run_gguf_file (OxGoldenCase *self, const char *stem, GCancellable *cancellable)
{
  OxModelOptions options = { .precision = OX_MODEL_PRECISION_EXACT };
  g_autofree char *name = g_strconcat (stem, ".gguf", NULL);
  g_autofree char *path = g_build_filename (self->folder, name, NULL);
  g_autofree char *prefix = g_strconcat (stem, ".", NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (OxModel) model = ox_model_load_full (path, &options, FALSE, NULL, NULL, cancellable, &error);
  Run run = { .golden = self, .model = model, .cancellable = cancellable, .prefix = prefix, .how = name };

  if (model == NULL) {
    ox_golden_report_not_computed (self->report, name, "%s", error->message);
    return;
  }
  run.tolerance = ox_golden_case_tolerance_after (self, "on files with exact weights");
  if (has_exact_weights (self, stem)) {
    run.prefix = "hf.";
    run.exact_ids = TRUE;
    run.tolerance = ox_golden_case_tolerance_after (self, "float32 activations");
  }
  check_prompts (&run, FALSE);
}

void
ox_golden_model_run_gguf (OxGoldenCase *self, GCancellable *cancellable)
{
  g_autoptr (GDir) dir = g_dir_open (self->folder, 0, NULL);
  const char *name;

  while (dir != NULL && (name = g_dir_read_name (dir)) != NULL) {
    g_autofree char *stem = g_strdup (name);

    if (!g_str_has_suffix (name, ".gguf"))
      continue;
    stem[strlen (stem) - strlen (".gguf")] = '\0';
    run_gguf_file (self, stem, cancellable);
  }
  /* What llama.cpp made of the files tells about llama.cpp. */
  for (guint i = 0; i < ox_weights_get_n_tensors (self->expected); i++) {
    const char *tensor = ox_weights_get_tensor (self->expected, i)->name;

    if (strstr (tensor, ".llama.") != NULL)
      ox_golden_case_input (self, tensor);
  }
  ox_golden_case_finish (self, "this version computes no such value");
}
