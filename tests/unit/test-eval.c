/* Perplexity and divergence: the sums of their definitions.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-eval.h"
#include "ox-session-private.h"
#include "ox-toy-model.h"

#include <math.h>
#include <string.h>

#define N 40

static OxModel *
load (const OxToyModel *toy, OxModelWeights weights)
{
  char *path = ox_toy_model_make (toy);
  OxModelOptions options = { .precision = OX_MODEL_PRECISION_EXACT, .weights = weights, .threads = 1 };
  g_autoptr (GError) error = NULL;
  OxModel *model = ox_model_load (path, &options, NULL, NULL, NULL, &error);

  g_assert_no_error (error);
  ox_toy_model_delete (path);
  return model;
}

static void
fill (guint32 *ids)
{
  for (guint i = 0; i < N; i++)
    ids[i] = (i * 41 + 7) % 256;
}

/* ln p of every token after each of @ids. */
static void
log_probabilities (OxModel *model, const guint32 *ids, guint n, double *ln_p)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (OxSession) session = ox_session_new (model, &error);
  g_autofree float *logits = g_new (float, (gsize) n *OX_TOY_VOCAB);

  g_assert_no_error (error);
  ox_session_eval (session, ids, n, OX_LOGITS_ALL, logits, NULL, &error);
  g_assert_no_error (error);
  for (guint r = 0; r < n; r++) {
    double sum = 0;

    for (guint i = 0; i < OX_TOY_VOCAB; i++)
      sum += exp ((double) logits[r * OX_TOY_VOCAB + i]);
    for (guint i = 0; i < OX_TOY_VOCAB; i++)
      ln_p[r * OX_TOY_VOCAB + i] = logits[r * OX_TOY_VOCAB + i] - log (sum);
  }
}

static void
test_definition (void)
{
  OxToyModel toy = { .seed = 3, .hidden = 128 };
  g_autoptr (OxModel) model = load (&toy, OX_MODEL_WEIGHTS_Q4);
  g_autoptr (OxModel) reference = load (&toy, OX_MODEL_WEIGHTS_STORED);
  g_autofree double *q = g_new (double, N *OX_TOY_VOCAB);
  g_autofree double *p = g_new (double, N *OX_TOY_VOCAB);
  g_autoptr (GError) error = NULL;
  OxEvalResult result;
  guint32 ids[N];
  double nll = 0, reference_nll = 0, kl = 0, most = 0;
  guint same = 0;

  fill (ids);
  log_probabilities (model, ids, N, q);
  log_probabilities (reference, ids, N, p);
  for (guint r = 0; r + 1 < N; r++) {
    guint best_p = 0, best_q = 0;
    double one = 0;

    for (guint i = 0; i < OX_TOY_VOCAB; i++) {
      double ln_p = p[r * OX_TOY_VOCAB + i], ln_q = q[r * OX_TOY_VOCAB + i];

      one += exp (ln_p) * (ln_p - ln_q);
      best_p = ln_p > p[r * OX_TOY_VOCAB + best_p] ? i : best_p;
      best_q = ln_q > q[r * OX_TOY_VOCAB + best_q] ? i : best_q;
    }
    nll -= q[r * OX_TOY_VOCAB + ids[r + 1]] / (N - 1);
    reference_nll -= p[r * OX_TOY_VOCAB + ids[r + 1]] / (N - 1);
    kl += one / (N - 1);
    most = MAX (most, one);
    same += best_p == best_q;
  }
  g_assert_true (ox_eval_ids (model, reference, ids, N, -1, NULL, &result, NULL, NULL, NULL, &error));
  g_assert_cmpuint (result.positions, ==, N - 1);
  g_assert_cmpfloat_with_epsilon (result.nll, nll, 1e-6);
  g_assert_cmpfloat_with_epsilon (result.perplexity, exp (nll), 1e-4 * exp (nll));
  g_assert_cmpfloat_with_epsilon (result.reference_perplexity, exp (reference_nll), 1e-4 * exp (reference_nll));
  g_assert_cmpfloat_with_epsilon (result.kl_mean, kl, 1e-6);
  g_assert_cmpfloat_with_epsilon (result.kl_max, most, 1e-5);
  g_assert_cmpfloat (result.kl_99, <=, result.kl_max);
  g_assert_cmpfloat_with_epsilon (result.top1, (double) same / (N - 1), 1e-9);
  g_assert_cmpfloat (kl, >, 0.001);
}

static void
on_progress (double fraction, gpointer user_data)
{
  double *last = user_data;

  g_assert_cmpfloat (fraction, >=, *last);
  g_assert_cmpfloat (fraction, <=, 1);
  *last = fraction;
}

/* Windows begin anew, with the token that every text begins with; positions can be limited. */
static void
test_windows (void)
{
  g_autoptr (OxModel) model = load (&(OxToyModel) { .seed = 3 }, OX_MODEL_WEIGHTS_STORED);
  g_autofree double *ln_p = g_new (double, N *OX_TOY_VOCAB);
  g_autoptr (GError) error = NULL;
  OxEvalOptions options = { .window = 10 };
  OxEvalResult result;
  guint32 ids[N], window[10] = { 1 };
  double nll = 0, last = 0;

  fill (ids);
  for (guint i = 0; i < N; i += 9) {
    guint n = MIN (9, N - i);

    memcpy (window + 1, ids + i, n * sizeof *ids);
    log_probabilities (model, window, n, ln_p);
    for (guint r = 0; r < n; r++)
      nll -= ln_p[r * OX_TOY_VOCAB + window[r + 1]] / N;
  }
  g_assert_true (ox_eval_ids (model, NULL, ids, N, 1, &options, &result, on_progress, &last, NULL, &error));
  g_assert_cmpuint (result.positions, ==, N);
  g_assert_cmpfloat_with_epsilon (result.nll, nll, 1e-5);
  g_assert_cmpfloat (result.kl_mean, ==, 0);
  g_assert_cmpfloat (last, ==, 1);

  for (guint most = 1; most < 30; most += 7) {
    options.max_positions = most;
    g_assert_true (ox_eval_ids (model, NULL, ids, N, most % 2 ? 1 : -1, &options, &result, NULL, NULL, NULL, &error));
    g_assert_cmpuint (result.positions, ==, most);
  }
}

/* A model is as near to itself as can be. */
static void
test_itself (void)
{
  g_autoptr (OxModel) model = load (&(OxToyModel) { 0 }, OX_MODEL_WEIGHTS_STORED);
  g_autoptr (GError) error = NULL;
  OxEvalResult result;

  g_assert_true (ox_eval_text (model, model, "A text that is cut into tokens, a good many of them.", -1, NULL, &result,
                               NULL, NULL, NULL, &error));
  g_assert_cmpfloat (result.kl_max, <, 1e-9);
  g_assert_cmpfloat (result.kl_max, >, -1e-9);
  g_assert_cmpfloat (result.top1, ==, 1);
  g_assert_cmpfloat_with_epsilon (result.perplexity, result.reference_perplexity, 1e-9);
}

static void
test_errors (void)
{
  g_autoptr (OxModel) model = load (&(OxToyModel) { 0 }, OX_MODEL_WEIGHTS_STORED);
  g_autoptr (OxModel) nan = load (&(OxToyModel) { .nan = "blk.0.ffn_up.weight" }, OX_MODEL_WEIGHTS_STORED);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;
  guint32 ids[N];
  OxEvalResult result;

  fill (ids);
  g_assert_false (ox_eval_text (model, NULL, "", 0, NULL, &result, NULL, NULL, NULL, &error));
  g_assert_error (error, OX_ERROR, OX_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_false (ox_eval_ids (model, NULL, ids, 1, -1, NULL, &result, NULL, NULL, NULL, &error));
  g_assert_error (error, OX_ERROR, OX_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_false (ox_eval_ids (nan, NULL, ids, N, -1, NULL, &result, NULL, NULL, NULL, &error));
  g_assert_error (error, OX_ERROR, OX_ERROR_NUMERIC);
  g_clear_error (&error);
  for (guint i = 5; i < N; i += N - 6) {
    fill (ids);
    ids[i] = OX_TOY_VOCAB;
    g_assert_false (ox_eval_ids (model, NULL, ids, N, -1, NULL, &result, NULL, NULL, NULL, &error));
    g_assert_error (error, OX_ERROR, OX_ERROR_INVALID);
    g_clear_error (&error);
  }
  fill (ids);
  g_cancellable_cancel (cancellable);
  g_assert_false (ox_eval_ids (model, NULL, ids, N, -1, NULL, &result, NULL, NULL, cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/eval/definition", test_definition);
  g_test_add_func ("/eval/windows", test_windows);
  g_test_add_func ("/eval/itself", test_itself);
  g_test_add_func ("/eval/errors", test_errors);
  return g_test_run ();
}
