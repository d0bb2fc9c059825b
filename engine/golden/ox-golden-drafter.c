/* Golden cases of drafters.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "golden/ox-golden-drafter.h"
#include "models/ox-drafter.h"
#include "ox-lookahead.h"
#include "ox-session-private.h"

#include <stdio.h>
#include <string.h>

typedef struct {
  OxGoldenCase *golden;
  OxModel *model; /* the target */
  OxDrafter *drafter;
  const OxConfig *config; /* of the drafter */
  GCancellable *cancellable;
  guint prompt;
} Run;

static char *
name_of (const Run *run, const char *what)
{
  return g_strdup_printf ("prompt%u_%s", run->prompt, what);
}

static void
compare (Run *run, const char *what, const float *computed, gsize n, const char *group)
{
  g_autofree char *name = name_of (run, what);

  ox_golden_case_compare (run->golden, name, NULL, computed, n, ox_golden_case_tolerance (run->golden, name, group));
}

static void
compare_ids (Run *run, const char *what, const guint32 *computed, gsize n)
{
  g_autofree char *name = name_of (run, what);
  gsize n_expected;
  g_autofree guint32 *expected = ox_golden_case_ids (run->golden, name, &n_expected);

  if (expected == NULL)
    return;
  ox_golden_report_same (run->golden->report, name,
                         n == n_expected && memcmp (expected, computed, n * sizeof *computed) == 0,
                         "%" G_GSIZE_FORMAT " ids", n_expected);
  ox_golden_case_set_handled (run->golden, name);
}

/* ---- What the drafter reads ---- */

static void
check_keys (Run *run, OxState *state, OxLayerKind kind, const char *what, guint n)
{
  const OxConfig *c = state->config;
  g_autofree char *k_name = g_strdup_printf ("%s_k", what);
  g_autofree char *v_name = g_strdup_printf ("%s_v", what);
  g_autofree float *values = NULL;
  gsize half;

  for (guint i = c->num_hidden_layers; i-- > 0;)
    if (c->layer_kinds[i] == kind && state->kv[i] != NULL) {
      half = (gsize) ox_config_kv_heads (c, i) * ox_config_head_dim (c, i) * n;
      values = g_malloc (ox_kv_bytes (ox_config_kv_heads (c, i), ox_config_head_dim (c, i), OX_TYPE_F32, n));
      state->ops->kv_save (state->ops, state->kv[i], 0, n, values);
      compare (run, k_name, values, half, "hidden");
      compare (run, v_name, values + half, half, "hidden");
      return;
    }
}

/* ---- Drafts and rounds ---- */

static gboolean
draft (Run *run, OxDraftState *state, guint32 newest, guint position, guint n, guint32 *ids, GError **error)
{
  return run->drafter->drafter_class->draft (state, newest, position, n, ids, run->cancellable, error) == n;
}

/* Step by step: the logits and the hidden state after each token of the first draft. */
static gboolean
check_draft (Run *run, OxDraftState *state, guint32 newest, guint position, GError **error)
{
  OxOps *ops = state->target->ops;
  guint vocab = run->config->vocab_size, backbone = state->hidden.cols;
  g_autofree char *ids_name = name_of (run, "draft_ids");
  gsize n;
  g_autofree guint32 *expected = ox_golden_case_ids (run->golden, ids_name, &n);
  g_autofree guint32 *ids = NULL;
  g_autofree float *logits = NULL;
  g_autofree float *hidden = NULL;

  if (expected == NULL)
    return TRUE;
  ids = g_new (guint32, n);
  logits = g_new (float, n *vocab);
  hidden = g_new (float, n *backbone);
  for (guint i = 0; i < n; i++) {
    if (!draft (run, state, newest, position, i + 1, ids, error))
      return FALSE;
    memcpy (logits + (gsize) i * vocab, state->logits, vocab * sizeof (float));
    ops->read (ops, &state->hidden, hidden + (gsize) i * backbone);
  }
  compare_ids (run, "draft_ids", ids, n);
  compare (run, "draft_logits", logits, n * vocab, "logits");
  compare (run, "draft_hidden", hidden, n * backbone, "hidden");
  return TRUE;
}

/* Greedy speculation in rounds, as the reference counts them. */
static gboolean
check_rounds (Run *run, OxSession *session, OxDraftState *state, guint32 newest, GError **error)
{
  g_autofree char *newest_name = name_of (run, "round_newest");
  g_autofree char *drafts_name = name_of (run, "round_drafts");
  gsize n_rounds, n_drafts;
  g_autofree guint32 *expected = ox_golden_case_ids (run->golden, newest_name, &n_rounds);
  g_autofree guint32 *expected_drafts = ox_golden_case_ids (run->golden, drafts_name, &n_drafts);
  guint vocab = run->config->vocab_size;
  g_autofree guint32 *newest_ids = NULL;
  g_autofree guint32 *drafts = NULL;
  g_autofree guint32 *accepted = NULL;
  g_autofree guint32 *batch = NULL;
  g_autofree float *logits = NULL;
  guint k;

  if (expected == NULL || expected_drafts == NULL || n_rounds == 0)
    return TRUE;
  k = (guint) (n_drafts / n_rounds);
  newest_ids = g_new (guint32, n_rounds);
  drafts = g_new (guint32, n_drafts);
  accepted = g_new (guint32, n_rounds);
  batch = g_new (guint32, k + 1);
  logits = g_new (float, (gsize) (k + 1) * vocab);
  for (gsize r = 0; r < n_rounds; r++) {
    guint n = 0;

    batch[0] = newest_ids[r] = newest;
    if (!draft (run, state, newest, ox_session_get_length (session), k, batch + 1, error) ||
        !ox_session_try (session, batch, k + 1, logits, run->cancellable, error))
      return FALSE;
    memcpy (drafts + r * k, batch + 1, k * sizeof *drafts);
    while (n < k && ox_golden_argmax (logits + (gsize) n * vocab, vocab) == batch[n + 1])
      n++;
    accepted[r] = n;
    newest = ox_golden_argmax (logits + (gsize) n * vocab, vocab);
    if (!ox_session_keep (session, n + 1, error))
      return FALSE;
  }
  compare_ids (run, "round_newest", newest_ids, n_rounds);
  compare_ids (run, "round_drafts", drafts, n_drafts);
  compare_ids (run, "round_accepted", accepted, n_rounds);
  return TRUE;
}

/* The whole answer through the engine's own loop. */
static gboolean
check_answer (Run *run, const guint32 *prompt, gsize n, GError **error)
{
  g_autofree char *name = name_of (run, "greedy_ids");
  gsize n_steps;
  g_autofree guint32 *expected = ox_golden_case_ids (run->golden, name, &n_steps);
  guint vocab = run->config->vocab_size;
  g_autofree float *first = g_new (float, vocab);
  g_autofree guint32 *ids = NULL;
  g_autoptr (OxSession) session = NULL;
  g_autoptr (OxLookahead) lookahead = NULL;
  OxDraftState *state;
  const float *logits = first;

  if (expected == NULL)
    return TRUE;
  session = ox_session_new_full (run->model, 0, NULL, NULL, error);
  state = session != NULL ? run->drafter->drafter_class->state_new (run->drafter, ox_session_get_state (session), error)
                          : NULL;
  if (state == NULL)
    return FALSE;
  ox_session_take_draft_state (session, state);
  lookahead = ox_lookahead_new (session, state);
  ox_lookahead_force (lookahead, 4, NULL, NULL);
  ids = g_new (guint32, n_steps);
  if (!ox_session_eval (session, prompt, n, OX_LOGITS_LAST, first, run->cancellable, error))
    return FALSE;
  for (gsize i = 0; i < n_steps; i++) {
    ids[i] = ox_golden_argmax (logits, vocab);
    if (!ox_lookahead_advance (lookahead, ids[i], G_MAXUINT, &logits, run->cancellable, error))
      return FALSE;
  }
  compare_ids (run, "greedy_ids", ids, n_steps);
  return ox_lookahead_settle (lookahead, error);
}

/* ---- A case ---- */

static gboolean
check_prompt (Run *run, GError **error)
{
  g_autofree char *ids_name = name_of (run, "ids");
  g_autofree char *newest_name = name_of (run, "newest_id");
  gsize n, n_newest;
  g_autofree guint32 *ids = ox_golden_case_ids (run->golden, ids_name, &n);
  g_autofree guint32 *newest = ox_golden_case_ids (run->golden, newest_name, &n_newest);
  g_autofree float *logits = g_new (float, run->config->vocab_size);
  g_autofree float *hidden = NULL;
  g_autoptr (OxSession) session = NULL;
  OxDraftState *state;
  OxState *target;
  OxTensor last;
  guint32 first;

  if (ids == NULL || n == 0 || newest == NULL || n_newest != 1)
    return TRUE;
  ox_golden_case_input (run->golden, ids_name);
  session = ox_session_new_full (run->model, 0, NULL, NULL, error);
  if (session == NULL)
    return FALSE;
  target = ox_session_get_state (session);
  state = run->drafter->drafter_class->state_new (run->drafter, target, error);
  if (state == NULL)
    return FALSE;
  ox_session_take_draft_state (session, state);
  if (!ox_session_eval (session, ids, n, OX_LOGITS_LAST, logits, run->cancellable, error))
    return FALSE;
  last = ox_tensor_view (&target->work.h, (guint) n - 1, 1);
  hidden = g_new (float, last.cols);
  target->ops->read (target->ops, &last, hidden);
  compare (run, "hidden", hidden, last.cols, "hidden");
  first = ox_golden_argmax (logits, run->config->vocab_size);
  compare_ids (run, "newest_id", &first, 1);
  check_keys (run, target, OX_LAYER_SLIDING, "sliding", (guint) n);
  check_keys (run, target, OX_LAYER_FULL, "full", (guint) n);
  return check_draft (run, state, newest[0], (guint) n, error) &&
         check_rounds (run, session, state, newest[0], error) && check_answer (run, ids, n, error);
}

/* "../gemma4-e2b/model (same group)" */
static char *
target_path (OxGoldenCase *self)
{
  g_autofree char *relative = g_strdup (yyjson_get_str (yyjson_obj_get (self->root, "target")));

  relative[strcspn (relative, " ")] = '\0';
  return g_build_filename (self->folder, relative, NULL);
}

void
ox_golden_drafter_run (OxGoldenCase *self, GCancellable *cancellable)
{
  OxModelOptions options = { .precision = OX_MODEL_PRECISION_EXACT };
  g_autofree char *target = target_path (self);
  g_autofree char *path = g_build_filename (self->folder, "model", NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (OxModel) model = ox_model_load_full (target, &options, FALSE, NULL, NULL, cancellable, &error);
  g_autoptr (OxWeights) weights = model != NULL ? ox_weights_open (path, cancellable, &error) : NULL;
  g_autoptr (OxConfig) config = weights != NULL ? ox_config_load (path, weights, &error) : NULL;
  OxLoader loader = { .weights = weights, .config = config };
  Run run = { .golden = self, .model = model, .config = config, .cancellable = cancellable };

  if (config != NULL) {
    loader.ops = model->ops;
    run.drafter = ox_gemma4_drafter_load (&loader, model->network, &error);
  }
  if (run.drafter == NULL) {
    ox_golden_case_finish (self, error->message);
    return;
  }
  for (guint i = 0; i < ox_weights_get_n_tensors (self->expected); i++) {
    const char *name = ox_weights_get_tensor (self->expected, i)->name;
    g_autofree char *ids_name = NULL;
    g_autofree char *strict_name = NULL;

    if (sscanf (name, "prompt%u_", &run.prompt) != 1)
      continue;
    ids_name = name_of (&run, "ids");
    strict_name = name_of (&run, "draft_logits_strict_window");
    if (strcmp (name, ids_name) != 0)
      continue;
    /* What another reading of the window would give: the reference's own is the other tensor. */
    ox_golden_case_input (self, strict_name);
    if (!check_prompt (&run, &error)) {
      ox_golden_report_not_computed (self->report, name, "%s", error->message);
      g_clear_error (&error);
    }
  }
  ox_golden_case_finish (self, "this version computes no such value");
  ox_drafter_free (run.drafter, model->ops);
}
