/* How well a model predicts a text: perplexity, and the Kullback-Leibler divergence from a reference.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-eval.h"

#include <math.h>
#include <string.h>

#include "ox-session-private.h"
#include "text/ox-tokenizer.h"

#define WINDOW 512
/* Rows of logits held at a time: 16 MiB with the largest vocabularies. */
#define ROWS 16

typedef struct {
  OxModel *models[2]; /* the model, the reference */
  OxSession *sessions[2];
  float *logits[2]; /* [ROWS, vocab] */
  guint n_models;
  guint vocab;
  double nll[2];
  GArray *kl; /* double, one a position */
  guint positions, same;
} Evaluation;

/* Logits that far below the largest add nothing that a float64 would notice. */
#define NEGLIGIBLE (-60.0)

typedef struct {
  double ln_sum; /* ln Σ exp(logit) */
  guint best;    /* index of the largest, the lowest on ties */
} RowSum;

static RowSum
sum_row (const float *row, guint n)
{
  RowSum sum = { 0 };
  double total = 0;

  for (guint i = 1; i < n; i++)
    if (row[i] > row[sum.best])
      sum.best = i;
  for (guint i = 0; i < n; i++) {
    double x = (double) row[i] - row[sum.best];

    if (!(x < NEGLIGIBLE)) /* NaN goes into the sum */
      total += exp (x);
  }
  sum.ln_sum = row[sum.best] + log (total);
  return sum;
}

/* Σ p (ln p - ln q), p = softmax(@p) and q = softmax(@q) */
static double
divergence (const float *p, RowSum p_sum, const float *q, RowSum q_sum, guint n)
{
  double sum = 0;

  for (guint i = 0; i < n; i++) {
    double ln_p = p[i] - p_sum.ln_sum;

    if (ln_p > NEGLIGIBLE)
      sum += exp (ln_p) * (ln_p - (q[i] - q_sum.ln_sum));
  }
  return sum;
}

/* One position: what each model says comes next, and what does. */
static gboolean
compare_rows (Evaluation *self, guint row, guint32 next, GError **error)
{
  const float *logits[2] = { NULL, NULL };
  RowSum sums[2] = { 0 };

  for (guint m = 0; m < self->n_models; m++) {
    logits[m] = self->logits[m] + (gsize) row * self->vocab;
    sums[m] = sum_row (logits[m], self->vocab);
    if (!isfinite (sums[m].ln_sum)) {
      g_set_error (error, OX_ERROR, OX_ERROR_NUMERIC, "%s gives logits that are not finite",
                   self->models[m]->plan->name);
      return FALSE;
    }
    self->nll[m] += sums[m].ln_sum - logits[m][next];
  }
  self->positions++;
  if (self->n_models == 2) {
    double kl = divergence (logits[1], sums[1], logits[0], sums[0], self->vocab);

    g_array_append_val (self->kl, kl);
    self->same += sums[0].best == sums[1].best;
  }
  return TRUE;
}

/* One window of @n tokens: predictions of all but the first. */
static gboolean
eval_window (Evaluation *self, const guint32 *ids, gsize n, GCancellable *cancellable, GError **error)
{
  for (guint m = 0; m < self->n_models; m++)
    ox_session_reset (self->sessions[m]);
  for (gsize i = 0; i + 1 < n;) {
    gsize rows = MIN (n - 1 - i, ROWS);

    for (guint m = 0; m < self->n_models; m++)
      if (!ox_session_eval (self->sessions[m], ids + i, rows, OX_LOGITS_ALL, self->logits[m], cancellable, error))
        return FALSE;
    for (gsize r = 0; r < rows; r++)
      if (!compare_rows (self, (guint) r, ids[i + r + 1], error))
        return FALSE;
    i += rows;
  }
  return TRUE;
}

static int
compare_doubles (gconstpointer a, gconstpointer b)
{
  double x = *(const double *) a, y = *(const double *) b;

  return (x > y) - (x < y);
}

static void
finish (Evaluation *self, OxEvalResult *result)
{
  double n = self->positions;

  *result = (OxEvalResult) { .positions = self->positions, .nll = self->nll[0] / n };
  result->perplexity = exp (result->nll);
  if (self->n_models < 2)
    return;
  result->reference_perplexity = exp (self->nll[1] / n);
  g_array_sort (self->kl, compare_doubles);
  for (guint i = 0; i < self->kl->len; i++)
    result->kl_mean += g_array_index (self->kl, double, i) / n;
  result->kl_max = g_array_index (self->kl, double, self->kl->len - 1);
  result->kl_99 = g_array_index (self->kl, double, (self->kl->len - 1) * 99 / 100);
  result->top1 = self->same / n;
}

static gboolean
check_ids (OxModel *model, const guint32 *ids, gsize n, GError **error)
{
  for (gsize i = 0; i < n; i++)
    if (ids[i] >= model->config->vocab_size) {
      g_set_error (error, OX_ERROR, OX_ERROR_INVALID, "Token %u is outside of the vocabulary of %u", ids[i],
                   model->config->vocab_size);
      return FALSE;
    }
  return TRUE;
}

static gboolean
prepare (Evaluation *self, OxModel *model, OxModel *reference, GError **error)
{
  self->models[0] = model;
  self->models[1] = reference;
  self->n_models = reference != NULL ? 2 : 1;
  self->vocab = model->config->vocab_size;
  if (reference != NULL && reference->config->vocab_size != self->vocab) {
    g_set_error (error, OX_ERROR, OX_ERROR_INVALID, "%s has %u tokens and %s %u: they cannot be compared",
                 model->plan->name, self->vocab, reference->plan->name, reference->config->vocab_size);
    return FALSE;
  }
  for (guint m = 0; m < self->n_models; m++) {
    self->sessions[m] = ox_session_new_full (self->models[m], 0, NULL, NULL, error);
    if (self->sessions[m] == NULL)
      return FALSE;
    self->logits[m] = g_try_new (float, (gsize) self->vocab *ROWS);
    if (self->logits[m] == NULL) {
      g_set_error_literal (error, OX_ERROR, OX_ERROR_NO_MEMORY, "Not enough memory for logits");
      return FALSE;
    }
  }
  return TRUE;
}

gboolean
ox_eval_ids (OxModel *model,
             OxModel *reference,
             const guint32 *ids,
             gsize n,
             gint64 bos,
             const OxEvalOptions *options,
             OxEvalResult *result,
             OxProgressFunc progress,
             gpointer user_data,
             GCancellable *cancellable,
             GError **error)
{
  Evaluation self = { .kl = g_array_new (FALSE, FALSE, sizeof (double)) };
  gsize has_bos = bos >= 0 ? 1 : 0;
  gsize window = options != NULL && options->window > 0 ? options->window : WINDOW;
  gsize wanted = options != NULL && options->max_positions > 0 ? options->max_positions : n;
  g_autofree guint32 *tokens = NULL;
  gboolean ok = check_ids (model, ids, n, error) && prepare (&self, model, reference, error);

  window = MIN (window, model->plan->context_length);
  if (reference != NULL)
    window = MIN (window, reference->plan->context_length);
  window = MAX (window, has_bos + 1);
  tokens = g_new (guint32, window);
  for (gsize i = 0; ok && i < n && self.positions < wanted;) {
    gsize take = MIN (MIN (window - has_bos, n - i), wanted - self.positions + 1 - has_bos);

    if (has_bos)
      tokens[0] = (guint32) bos;
    for (gsize j = 0; j < take; j++)
      tokens[has_bos + j] = ids[i + j];
    ok = eval_window (&self, tokens, has_bos + take, cancellable, error);
    i += take;
    if (ok && progress != NULL)
      progress (MIN ((double) self.positions / MIN (n, wanted), 1.0), user_data);
  }
  if (ok && self.positions == 0) {
    g_set_error_literal (error, OX_ERROR, OX_ERROR_INVALID, "The text is too short: it has nothing to predict");
    ok = FALSE;
  }
  if (ok)
    finish (&self, result);
  for (guint m = 0; m < 2; m++) {
    g_clear_pointer (&self.sessions[m], ox_session_free);
    g_free (self.logits[m]);
  }
  g_array_unref (self.kl);
  return ok;
}

gboolean
ox_eval_text (OxModel *model,
              OxModel *reference,
              const char *text,
              gssize len,
              const OxEvalOptions *options,
              OxEvalResult *result,
              OxProgressFunc progress,
              gpointer user_data,
              GCancellable *cancellable,
              GError **error)
{
  g_autoptr (GArray) ids = g_array_new (FALSE, FALSE, sizeof (guint32));
  OxTokenizer *tokenizer = ox_model_get_tokenizer (model);
  gint64 bos;

  if (tokenizer == NULL) {
    g_set_error (error, OX_ERROR, OX_ERROR_INVALID, "%s was loaded without a tokenizer", model->plan->name);
    return FALSE;
  }
  if (!ox_tokenizer_encode_text (tokenizer, text, len < 0 ? strlen (text) : (gsize) len, FALSE, ids, cancellable,
                                 error))
    return FALSE;
  bos = ox_tokenizer_get_add_bos (tokenizer) ? ox_tokenizer_get_bos (tokenizer) : -1;
  return ox_eval_ids (model, reference, (const guint32 *) ids->data, ids->len, bos, options, result, progress,
                      user_data, cancellable, error);
}
