/* Golden cases of real GGUF models and of GGUF's block formats.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "golden/ox-golden-case.h"

/* A case with "gguf_sha256": the model file is looked for in @models. Prompt ids by our tokenizer and chat format, logits with exact
 * precision, greedy ids, and how far fast precision is from exact. */
void ox_golden_gguf_run (OxGoldenCase *self, const char *models, GCancellable *cancellable);
/* A case with "types": raw blocks and their values. */
void ox_golden_gguf_run_blocks (OxGoldenCase *self);
/* The file with this SHA-256 among the .gguf files of the folders in @models (in the form of PATH), small files first. */
char *ox_golden_gguf_find_model (const char *models, const char *sha256);
