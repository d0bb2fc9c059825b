/* Golden cases of real GGUF models and of GGUF's block formats.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "golden/ox-golden-gguf.h"
#include "ox-session-private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Tokens of a known path that are run at once. */
#define PATH_CHUNK 16
#define TOP 10
#define MAX_PROMPTS_BYTES (16u << 20)

typedef struct {
  OxGoldenCase *golden;
  GCancellable *cancellable;
  OxModel *exact;
  OxModel *fast;
  yyjson_val *prompts; /* array of objects with "name", or object by name */
  guint32 *sample_ids;
  gsize n_samples;
  double tolerance;
  /* Over all prompts: how far fast precision is from exact, and from the reference; how far llama.cpp is from the reference. */
  double kl_sum, fast_sum, llama_sum;
  gsize n_rows, n_fast, n_llama;
} Run;

/* ---- Finding the model ---- */

typedef struct {
  char *path;
  guint64 size;
} Candidate;

static void
candidate_clear (gpointer data)
{
  g_free (((Candidate *) data)->path);
}

static int
compare_sizes (gconstpointer a, gconstpointer b)
{
  guint64 x = ((const Candidate *) a)->size, y = ((const Candidate *) b)->size;

  return x < y ? -1 : x > y;
}

static char *
file_sha256 (OxFile *file)
{
  g_autoptr (GChecksum) checksum = g_checksum_new (G_CHECKSUM_SHA256);
  g_autofree guint8 *buffer = g_malloc (1 << 20);
  guint64 size = ox_file_get_size (file);

  for (guint64 offset = 0; offset < size;) {
    gsize n = (gsize) MIN (size - offset, 1 << 20);

    if (!ox_file_read (file, offset, buffer, n, NULL))
      return NULL;
    g_checksum_update (checksum, buffer, (gssize) n);
    offset += n;
  }
  return g_strdup (g_checksum_get_string (checksum));
}

char *
ox_golden_gguf_find_model (const char *models, const char *sha256)
{
  g_autoptr (GArray) candidates = g_array_new (FALSE, FALSE, sizeof (Candidate));
  g_auto (GStrv) folders = g_strsplit (models != NULL ? models : "", G_SEARCHPATH_SEPARATOR_S, -1);

  g_array_set_clear_func (candidates, candidate_clear);
  for (char **folder = folders; *folder != NULL; folder++) {
    g_autoptr (GDir) dir = **folder != '\0' ? g_dir_open (*folder, 0, NULL) : NULL;
    const char *name;

    while (dir != NULL && (name = g_dir_read_name (dir)) != NULL) {
      g_autofree char *path = g_build_filename (*folder, name, NULL);
      g_autoptr (OxFile) file = g_str_has_suffix (name, ".gguf") ? ox_file_open (path, NULL) : NULL;

      if (file != NULL)
        g_array_append_val (candidates, ((Candidate) { g_steal_pointer (&path), ox_file_get_size (file) }));
    }
  }
  g_array_sort (candidates, compare_sizes);
  for (guint i = 0; i < candidates->len; i++) {
    Candidate *candidate = &g_array_index (candidates, Candidate, i);
    g_autoptr (OxFile) file = ox_file_open (candidate->path, NULL);
    g_autofree char *found = file != NULL ? file_sha256 (file) : NULL;

    if (g_strcmp0 (found, sha256) == 0)
      return g_strdup (candidate->path);
  }
  return NULL;
}

/* ---- Prompts ---- */

static yyjson_val *
find_prompt (Run *run, const char *name)
{
  yyjson_val *val;
  gsize i, n;

  if (yyjson_is_obj (run->prompts))
    return yyjson_obj_get (run->prompts, name);
  ox_json_foreach_item (run->prompts, i, n, val) {
    if (yyjson_equals_str (yyjson_obj_get (val, "name"), name))
      return val;
  }
  return NULL;
}

static gboolean
same_ids (const GArray *ids, const guint32 *expected, gsize n)
{
  return ids->len == n && memcmp (ids->data, expected, n * sizeof (guint32)) == 0;
}

static OxChat *
chat_from_json (yyjson_val *messages)
{
  static const char *const roles[] = { "system", "user", "assistant" };
  OxChat *chat = ox_chat_new ();
  yyjson_val *val;
  gsize i, n;

  ox_json_foreach_item (messages, i, n, val) {
    for (guint role = 0; role < G_N_ELEMENTS (roles); role++)
      if (yyjson_equals_str (yyjson_obj_get (val, "role"), roles[role]))
        ox_chat_append (chat, (OxRole) role, yyjson_get_str (yyjson_obj_get (val, "content")));
  }
  return chat;
}

/* The prompt's ids from its text, and from its messages through our chat format. */
static void
check_prompt_ids (Run *run, const char *prompt, const char *ids_name, const guint32 *expected, gsize n)
{
  OxGoldenReport *report = run->golden->report;
  OxTokenizer *tokenizer = run->exact->tokenizer;
  yyjson_val *val = find_prompt (run, prompt);
  yyjson_val *text = yyjson_obj_get (val, "rendered");
  yyjson_val *messages = yyjson_obj_get (val, "messages");
  g_autoptr (GArray) ids = g_array_new (FALSE, FALSE, sizeof (guint32));
  gint64 bos = ox_tokenizer_get_bos (tokenizer);

  ox_golden_case_set_handled (run->golden, ids_name);
  if (text == NULL)
    text = yyjson_obj_get (val, "text");
  if (!yyjson_is_str (text)) {
    ox_golden_report_not_computed (report, ids_name, "the case does not tell the prompt's text");
    return;
  }
  if (ox_tokenizer_get_add_bos (tokenizer) && bos >= 0) {
    guint32 id = (guint32) bos;
    g_array_append_val (ids, id);
  }
  ox_tokenizer_encode (tokenizer, yyjson_get_str (text), (gssize) yyjson_get_len (text), TRUE, ids);
  ox_golden_report_same (report, ids_name, same_ids (ids, expected, n), "%" G_GSIZE_FORMAT " ids of the text", n);

  if (yyjson_is_arr (messages)) {
    g_autofree char *shown = g_strconcat (ids_name, " (from messages)", NULL);
    g_autoptr (OxChat) chat = chat_from_json (messages);
    g_autoptr (GError) error = NULL;
    g_autoptr (GArray) chat_ids = ox_model_encode_chat (run->exact, chat, NULL, NULL, &error);

    if (chat_ids == NULL)
      ox_golden_report_not_computed (report, shown, "%s", error->message);
    else
      ox_golden_report_same (report, shown, same_ids (chat_ids, expected, n), NULL);
  }
}

/* ---- Logits along a path ---- */

/* Logits that would choose each id of @path after @ids: row s comes from ids + path[:s]. @step: tokens at once. */
static float *
run_path (
  Run *run, OxModel *model, const guint32 *ids, gsize n, const guint32 *path, gsize n_steps, gsize step, GError **error)
{
  gsize vocab = model->config->vocab_size;
  g_autofree float *logits = g_try_new (float, n_steps *vocab);
  g_autoptr (OxSession) session = logits != NULL ? ox_session_new (model, error) : NULL;

  if (logits == NULL)
    g_set_error_literal (error, OX_ERROR, OX_ERROR_NO_MEMORY, "Not enough memory for the logits");
  if (session == NULL || !ox_session_eval (session, ids, n, OX_LOGITS_LAST, logits, run->cancellable, error))
    return NULL;
  for (gsize i = 1; i < n_steps; i += step)
    if (!ox_session_eval (session, path + i - 1, MIN (step, n_steps - i), OX_LOGITS_ALL, logits + i * vocab,
                          run->cancellable, error))
      return NULL;
  return g_steal_pointer (&logits);
}

typedef struct {
  guint32 id;
  float logit;
} Entry;

/* The TOP largest of a row, largest first, lower ids first on ties. */
static void
find_top (const float *row, gsize vocab, Entry *top)
{
  gsize held = 0;

  for (gsize id = 0; id < vocab; id++) {
    gsize at = held;

    if (held == TOP && !(row[id] > top[TOP - 1].logit))
      continue;
    if (held < TOP)
      held++;
    else
      at = TOP - 1;
    for (; at > 0 && row[id] > top[at - 1].logit; at--)
      top[at] = top[at - 1];
    top[at] = (Entry) { (guint32) id, row[id] };
  }
}

static void
check_top (Run *run, const char *group, const float *logits, gsize n_steps)
{
  OxGoldenCase *golden = run->golden;
  gsize vocab = run->exact->config->vocab_size;
  g_autofree char *ids_name = g_strconcat (group, "top10_ids", NULL);
  g_autofree char *logits_name = g_strconcat (group, "top10_logits", NULL);
  g_autofree guint32 *ids = NULL;
  g_autofree float *at_ids = NULL;
  gsize n, wrong = 0, ties = 0;

  ids = ox_golden_case_ids (golden, ids_name, &n);
  if (ids == NULL || n != n_steps * TOP || vocab < TOP)
    return;
  at_ids = g_new (float, n);
  for (gsize s = 0; s < n_steps; s++) {
    const float *row = logits + s * vocab;
    Entry top[TOP];

    find_top (row, vocab, top);
    for (gsize k = 0; k < TOP; k++) {
      guint32 id = ids[s * TOP + k];

      if (id >= vocab) {
        wrong++;
        at_ids[s * TOP + k] = NAN;
        continue;
      }
      at_ids[s * TOP + k] = row[id];
      /* Places may change only between logits that the tolerance cannot tell apart. */
      if (top[k].id != id && fabs ((double) row[id] - top[k].logit) > 2 * run->tolerance)
        wrong++;
      else if (top[k].id != id)
        ties++;
    }
  }
  ox_golden_case_set_handled (golden, ids_name);
  ox_golden_report_same (golden->report, ids_name, wrong == 0,
                         "%" G_GSIZE_FORMAT " of %" G_GSIZE_FORMAT " places differ, %" G_GSIZE_FORMAT
                         " more where the tolerance cannot tell",
                         wrong, n, ties);
  ox_golden_case_compare (golden, logits_name, NULL, at_ids, n, run->tolerance);
}

/* Logits of the sampled ids: [n_steps, n_samples]. */
static float *
take_samples (Run *run, const float *logits, gsize n_steps)
{
  gsize vocab = run->exact->config->vocab_size;
  float *samples = g_new (float, n_steps * run->n_samples);

  for (gsize s = 0; s < n_steps; s++)
    for (gsize j = 0; j < run->n_samples; j++)
      samples[s * run->n_samples + j] = run->sample_ids[j] < vocab ? logits[s * vocab + run->sample_ids[j]] : NAN;
  return samples;
}

/* Greedy ids: the engine's own choice along the path has to be the path, unless the reference itself is within tolerance of choosing
 * otherwise. */
static void
check_greedy (Run *run, const char *name, const char *group, const float *logits, const guint32 *path, gsize n_steps)
{
  OxGoldenCase *golden = run->golden;
  gsize vocab = run->exact->config->vocab_size;
  g_autofree char *top_name = g_strconcat (group, "top10_logits", NULL);
  g_autofree float *top = NULL;
  gsize n, wrong = 0, close = 0;

  top = ox_golden_case_floats (golden, top_name, &n);
  for (gsize s = 0; s < n_steps; s++) {
    double margin = n == n_steps * TOP ? (double) top[s * TOP] - top[s * TOP + 1] : INFINITY;

    if (ox_golden_argmax (logits + s * vocab, vocab) == path[s])
      continue;
    if (margin > run->tolerance)
      wrong++;
    else
      close++;
  }
  ox_golden_case_set_handled (golden, name);
  ox_golden_report_same (golden->report, name, wrong == 0,
                         "%" G_GSIZE_FORMAT " of %" G_GSIZE_FORMAT " differ, %" G_GSIZE_FORMAT
                         " more within tolerance of a tie",
                         wrong, n_steps, close);
}

/* One group of tensors along its path, with exact precision. Returns the logits, for comparison with fast precision. */
static float *
check_group (Run *run, const char *group, const guint32 *ids, gsize n, const char *path_name, gsize step)
{
  OxGoldenCase *golden = run->golden;
  g_autofree char *greedy_name = g_strconcat (group, "greedy", NULL);
  g_autofree char *samples_name = g_strconcat (group, "sampled_logits", NULL);
  g_autofree char *top_name = g_strconcat (group, "top10_logits", NULL);
  g_autofree guint32 *path = NULL;
  g_autofree float *logits = NULL;
  g_autofree float *samples = NULL;
  g_autoptr (GError) error = NULL;
  gsize n_steps;

  if (ox_weights_find (golden->expected, top_name) == NULL && ox_weights_find (golden->expected, samples_name) == NULL)
    return NULL;
  path = ox_golden_case_ids (golden, path_name, &n_steps);
  if (path == NULL || n_steps == 0)
    return NULL;
  logits = run_path (run, run->exact, ids, n, path, n_steps, step, &error);
  if (logits == NULL) {
    ox_golden_report_not_computed (golden->report, group, "%s", error->message);
    return NULL;
  }
  if (strcmp (greedy_name, path_name) == 0)
    check_greedy (run, greedy_name, group, logits, path, n_steps);
  check_top (run, group, logits, n_steps);
  if (run->sample_ids != NULL) {
    samples = take_samples (run, logits, n_steps);
    ox_golden_case_compare (golden, samples_name, NULL, samples, n_steps * run->n_samples, run->tolerance);
  }
  return g_steal_pointer (&logits);
}

/* ---- Fast precision ---- */

static double
log_sum_exp (const float *row, gsize n)
{
  double max = row[ox_golden_argmax (row, n)];
  double sum = 0;

  for (gsize i = 0; i < n; i++)
    sum += exp (row[i] - max);
  return max + log (sum);
}

/* KL(softmax(p) ‖ softmax(q)) in nats. */
static double
kl_divergence (const float *p, const float *q, gsize n)
{
  double log_p = log_sum_exp (p, n);
  double log_q = log_sum_exp (q, n);
  double kl = 0;

  for (gsize i = 0; i < n; i++)
    kl += exp (p[i] - log_p) * ((p[i] - log_p) - (q[i] - log_q));
  return kl;
}

static double
sum_of_differences (const float *a, const float *b, gsize n)
{
  double sum = 0;

  for (gsize i = 0; i < n; i++)
    sum += fabs ((double) a[i] - (double) b[i]);
  return sum;
}

/* Runs the same path with fast precision. The reference's whole distribution is not in the case (ten logits and a sample are), so the
 * divergence is measured against our own exact run, which those logits have just verified. */
static void
add_fast (Run *run,
          const char *prompt,
          const char *group,
          const guint32 *ids,
          gsize n,
          const char *path_name,
          const float *exact)
{
  OxGoldenCase *golden = run->golden;
  gsize vocab = run->exact->config->vocab_size;
  g_autofree char *shown = g_strconcat (prompt, " (fast precision)", NULL);
  g_autofree char *reference_name = g_strconcat (group, "sampled_logits", NULL);
  g_autofree char *llama_name = g_strconcat (prompt, ".llama.sampled_logits", NULL);
  g_autofree guint32 *path = NULL;
  g_autofree float *logits = NULL;
  g_autofree float *samples = NULL;
  g_autofree float *reference = NULL;
  g_autofree float *llama = NULL;
  g_autoptr (GError) error = NULL;
  gsize n_steps, n_reference, n_llama;

  path = ox_golden_case_ids (golden, path_name, &n_steps);
  logits = run_path (run, run->fast, ids, n, path, n_steps, PATH_CHUNK, &error);
  if (logits == NULL) {
    ox_golden_report_not_computed (golden->report, shown, "%s", error->message);
    return;
  }
  for (gsize s = 0; s < n_steps; s++)
    run->kl_sum += kl_divergence (exact + s * vocab, logits + s * vocab, vocab);
  run->n_rows += n_steps;

  reference = ox_golden_case_floats (golden, reference_name, &n_reference);
  llama = ox_golden_case_floats (golden, llama_name, &n_llama);
  if (run->sample_ids == NULL || reference == NULL || n_reference != n_steps * run->n_samples)
    return;
  samples = take_samples (run, logits, n_steps);
  run->fast_sum += sum_of_differences (samples, reference, n_reference);
  run->n_fast += n_reference;
  if (llama != NULL && n_llama == n_reference) {
    run->llama_sum += sum_of_differences (llama, reference, n_reference);
    run->n_llama += n_reference;
  }
}

/* Compares with another engine where the case has one; otherwise there is no limit, and the number is only told. */
static void
report_against (Run *run, const char *name, double value, double limit, const char *what)
{
  if (isnan (limit) && isfinite (value))
    ox_golden_report_info (run->golden->report, name, value, "%s", what);
  else if (isnan (limit))
    ox_golden_report_difference (run->golden->report, name, value, 0, "%s", what);
  else
    ox_golden_report_difference (run->golden->report, name, value, limit, "%s; the limit is llama.cpp's", what);
}

static void
report_fast (Run *run)
{
  yyjson_val *limit = yyjson_obj_get (yyjson_obj_get (run->golden->root, "summary_llama_vs_f32"), "mean_KL");
  g_autofree char *rows = g_strdup_printf (
    "whole vocabulary, %" G_GSIZE_FORMAT " rows, against our exact run as verified above", run->n_rows);

  report_against (run, "mean KL, exact ‖ fast precision", run->n_rows > 0 ? run->kl_sum / run->n_rows : INFINITY,
                  yyjson_is_num (limit) ? yyjson_get_num (limit) : NAN, rows);
  if (run->n_fast > 0)
    report_against (run, "mean difference of sampled logits, fast precision", run->fast_sum / run->n_fast,
                    run->n_llama == run->n_fast ? run->llama_sum / run->n_llama : NAN, "against the reference's");
}

/* ---- The case ---- */

static void
check_prompt (Run *run, const char *ids_name)
{
  OxGoldenCase *golden = run->golden;
  g_autofree char *prompt = g_strndup (ids_name, strlen (ids_name) - strlen (".ids"));
  g_autofree char *own = g_strconcat (prompt, ".", NULL);
  g_autofree char *own_path = g_strconcat (prompt, ".greedy", NULL);
  g_autofree char *f32 = g_strconcat (prompt, ".f32.", NULL);
  g_autofree char *f32_path = g_strconcat (prompt, ".f32.greedy", NULL);
  g_autofree char *on_llama = g_strconcat (prompt, ".f32_on_llama_path.", NULL);
  g_autofree char *llama_path = g_strconcat (prompt, ".llama.greedy", NULL);
  g_autofree guint32 *ids = NULL;
  g_autofree float *own_logits = NULL;
  g_autofree float *f32_logits = NULL;
  g_autofree float *llama_logits = NULL;
  gsize n;

  ids = ox_golden_case_ids (golden, ids_name, &n);
  if (ids == NULL || n == 0)
    return;
  check_prompt_ids (run, prompt, ids_name, ids, n);
  /* Own greedy paths token by token, as an answer is written; the foreign one in chunks, as a prompt is read. */
  own_logits = check_group (run, own, ids, n, own_path, 1);
  f32_logits = check_group (run, f32, ids, n, f32_path, 1);
  llama_logits = check_group (run, on_llama, ids, n, llama_path, PATH_CHUNK);
  if (llama_logits != NULL)
    add_fast (run, prompt, on_llama, ids, n, llama_path, llama_logits);
  else if (f32_logits != NULL)
    add_fast (run, prompt, f32, ids, n, f32_path, f32_logits);
  else if (own_logits != NULL)
    add_fast (run, prompt, own, ids, n, own_path, own_logits);
}

void
ox_golden_gguf_run (OxGoldenCase *self, const char *models, GCancellable *cancellable)
{
  const char *sha256 = yyjson_get_str (yyjson_obj_get (self->root, "gguf_sha256"));
  OxModelOptions exact = { .precision = OX_MODEL_PRECISION_EXACT };
  OxModelOptions fast = { .precision = OX_MODEL_PRECISION_FAST };
  g_autofree char *path = ox_golden_gguf_find_model (models, sha256);
  g_autofree char *prompts_path = g_build_filename (self->folder, "prompts.json", NULL);
  g_autoptr (OxFile) prompts_file = NULL;
  g_autoptr (OxJson) prompts = NULL;
  g_autoptr (OxModel) exact_model = NULL;
  g_autoptr (OxModel) fast_model = NULL;
  g_autofree guint32 *sample_ids = NULL;
  g_autofree char *reason = NULL;
  g_autoptr (GError) error = NULL;
  Run run = { .golden = self, .cancellable = cancellable };

  if (path == NULL) {
    reason = g_strdup_printf ("no model file with SHA-256 %s in %s", sha256,
                              models != NULL ? models : "OX_TEST_MODELS, which is not set");
    ox_golden_case_finish (self, reason);
    return;
  }
  run.prompts = yyjson_obj_get (self->root, "prompts");
  if (run.prompts == NULL && (prompts_file = ox_file_open (prompts_path, &error)) != NULL &&
      (prompts = ox_json_read_all (prompts_file, MAX_PROMPTS_BYTES, &error)) != NULL)
    run.prompts = ox_json_get_root (prompts);
  if (run.prompts != NULL && (exact_model = ox_model_load (path, &exact, NULL, NULL, cancellable, &error)) != NULL)
    fast_model = ox_model_load (path, &fast, NULL, NULL, cancellable, &error);
  if (fast_model == NULL) {
    ox_golden_case_finish (self, error->message);
    return;
  }
  run.exact = exact_model;
  run.fast = fast_model;
  run.tolerance = ox_golden_case_tolerance (self, "logits", "logits");
  if (isnan (run.tolerance))
    run.tolerance = ox_golden_case_tolerance_after (self, "an engine with float32 activations");
  run.sample_ids = sample_ids = ox_golden_case_ids (self, "sample_ids", &run.n_samples);
  ox_golden_case_input (self, "sample_ids");

  for (guint i = 0; i < ox_weights_get_n_tensors (self->expected); i++) {
    const char *name = ox_weights_get_tensor (self->expected, i)->name;

    if (g_str_has_suffix (name, ".ids"))
      check_prompt (&run, name);
    else if (strstr (name, ".llama.") != NULL)
      ox_golden_case_input (self, name);
  }
  report_fast (&run);
  ox_golden_case_finish (self, "this version computes no such value");
}

/* ---- Blocks ---- */

static void
check_blocks (OxGoldenCase *self, const char *type_name, guint32 type, const char *kind)
{
  const OxTypeInfo *info = ox_type_info (type);
  g_autofree char *raw_name = g_strdup_printf ("%s.%s_raw", type_name, kind);
  g_autofree char *values_name = g_strdup_printf ("%s.%s_f32", type_name, kind);
  const OxTensorInfo *raw = ox_weights_find (self->expected, raw_name);
  g_autofree guint8 *bytes = NULL;
  g_autofree float *expected = NULL;
  g_autofree float *computed = NULL;
  g_autoptr (GError) error = NULL;
  double worst = 0;
  gsize n;

  if (raw == NULL)
    return;
  ox_golden_case_input (self, raw_name);
  expected = ox_golden_case_floats (self, values_name, &n);
  if (expected == NULL || info == NULL)
    return;
  ox_golden_case_set_handled (self, values_name);
  bytes = g_malloc (raw->n_bytes + 1);
  if (raw->n_bytes / info->block_bytes * info->block_elements != n || raw->n_dims == 0 ||
      !ox_tensor_read_rows (raw, 0, raw->dims[0], bytes, &error)) {
    ox_golden_report_not_computed (self->report, values_name, "%s",
                                   error != NULL ? error->message : "sizes do not match");
    return;
  }
  computed = g_new (float, n);
  if (type == OX_TYPE_F32)
    memcpy (computed, bytes, n * sizeof (float));
  else
    ox_kernels ()->dequantize (type, bytes, computed, n);
  /* Relative to 1e-6, or absolute below 1e-30; infinities and NaNs have to be the same ones. */
  for (gsize i = 0; i < n; i++) {
    double difference = fabs ((double) computed[i] - expected[i]);

    if (computed[i] == expected[i] || (isnan (computed[i]) && isnan (expected[i])) || difference <= 1e-30)
      continue;
    worst = isnan (difference) ? INFINITY : MAX (worst, difference / fabs ((double) expected[i]));
  }
  ox_golden_report_difference (self->report, values_name, worst, ox_golden_case_tolerance_after (self, "relative"),
                               "relative; %" G_GSIZE_FORMAT " values", n);
}

void
ox_golden_gguf_run_blocks (OxGoldenCase *self)
{
  yyjson_obj_iter iter = yyjson_obj_iter_with (yyjson_obj_get (self->root, "types"));
  yyjson_val *key;

  while ((key = yyjson_obj_iter_next (&iter)) != NULL) {
    const char *type_name = yyjson_get_str (key);
    g_autofree char *input = g_strconcat (type_name, ".quantize_in", NULL);
    guint32 type = (guint32) yyjson_get_uint (yyjson_obj_get (yyjson_obj_iter_get_val (key), "ggml_type"));

    check_blocks (self, type_name, type, "random");
    check_blocks (self, type_name, type, "edge");
    ox_golden_case_input (self, input);
  }
  ox_golden_case_finish (self, "this version neither reads nor writes this");
}
