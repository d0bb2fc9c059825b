/* How well a model predicts a text, and how far its predictions are from another's.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "oxinfer.h"

/**
 * OxEvalOptions: zero is a good value for each
 * @window: tokens that are looked at together, BOS included; 0: 512. Each window begins anew.
 * @max_positions: predictions to look at, at most; 0: all of the text
 */
typedef struct {
  guint window;
  guint max_positions;
} OxEvalOptions;

/**
 * OxEvalResult:
 * @positions: predictions looked at: every token of a window but the first
 * @nll: mean of -ln p(next token)
 * @perplexity: exp (@nll)
 * @reference_perplexity: the same of the reference, or 0
 * @kl_mean: mean of KL(reference ‖ model) over the whole vocabulary, in nats; of other fields of the reference 0 without one
 * @kl_max: the largest of these
 * @kl_99: 99 of 100 are at most this
 * @top1: share of positions where both hold the same token likeliest, 0…1
 */
typedef struct {
  guint positions;
  double nll, perplexity;
  double reference_perplexity;
  double kl_mean, kl_max, kl_99;
  double top1;
} OxEvalResult;

/* Evaluates @model on @len bytes of @text (-1: up to NUL), against @reference unless that is NULL; both must cut the text into the same
 * tokens. OX_ERROR_INVALID when the text is shorter than two tokens or the vocabularies differ. */
gboolean ox_eval_text (OxModel *model,
                       OxModel *reference,
                       const char *text,
                       gssize len,
                       const OxEvalOptions *options,
                       OxEvalResult *result,
                       OxProgressFunc progress,
                       gpointer user_data,
                       GCancellable *cancellable,
                       GError **error);
/* The same on @n ids, for models without a tokenizer. @bos: what each window begins with; -1: nothing. */
gboolean ox_eval_ids (OxModel *model,
                      OxModel *reference,
                      const guint32 *ids,
                      gsize n,
                      gint64 bos,
                      const OxEvalOptions *options,
                      OxEvalResult *result,
                      OxProgressFunc progress,
                      gpointer user_data,
                      GCancellable *cancellable,
                      GError **error);
