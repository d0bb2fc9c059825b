/* A file of logits: what the network said before each token of an answer.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <gio/gio.h>

typedef struct _OxCliLogits OxCliLogits;

/* Whether @path ends in .npy, for an array float32 [steps, vocab], or in .safetensors, for "logits" F32 [steps, vocab], "prompt" and
 * "ids" I64. */
gboolean ox_cli_logits_knows (const char *path);
/* The file appears when it is complete. */
OxCliLogits *ox_cli_logits_new (const char *path, guint vocab_size, GError **error);
gboolean ox_cli_logits_add (OxCliLogits *logits, const float *row, GError **error);
/* @prompt, @ids: GArrays of guint32. */
gboolean ox_cli_logits_finish (OxCliLogits *logits, const GArray *prompt, const GArray *ids, GError **error);
/* Without ox_cli_logits_finish() nothing is left. */
void ox_cli_logits_free (OxCliLogits *logits);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (OxCliLogits, ox_cli_logits_free)
