/* From logits to the next token: suppress → penalties → temperature → top-k → top-p → min-p → softmax → draw.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "oxinfer.h"

typedef struct _OxSampler OxSampler;

/* OX_ERROR_INVALID when a setting is out of its range. */
OxSampler *ox_sampler_new (
  const OxSampling *sampling, guint vocab_size, const guint32 *suppress, gsize n_suppress, GError **error);
void ox_sampler_free (OxSampler *sampler);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (OxSampler, ox_sampler_free)

/* Tells the penalties about tokens of the prompt or of the answer. */
void ox_sampler_accept (OxSampler *sampler, guint32 id, gboolean is_generated);
void ox_sampler_reset (OxSampler *sampler);

/* Limits what may come next to the ids whose bit is set in @bits (bit id % 32 of word id / 32), of which there are @n_bits; ids beyond are
 * not allowed. Holds until the next call. NULL: all are allowed. */
void ox_sampler_set_allowed (OxSampler *sampler, const guint32 *bits, guint n_bits);

/* One candidate with its probability. */
typedef struct {
  guint32 id;
  double p;
} OxCandidate;

/* The distribution that is drawn from, in no stated order: a GArray of OxCandidate, p > 0, sum 1. OX_ERROR_NUMERIC for NaN, +inf or no
 * finite logit. Logits are not changed. */
GArray *ox_sampler_distribution (OxSampler *sampler, const float *logits, GError **error);
/* Draws one. FALSE as above. */
gboolean ox_sampler_sample (OxSampler *sampler, const float *logits, guint32 *id, GError **error);
