/* Golden cases of whole networks: tiny checkpoints in a Hugging Face folder or in GGUF files.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "golden/ox-golden-case.h"

/* A case folder with model/ and tensors promptN_*: logits of every position, layer by layer, greedy continuation from cached decoding,
 * the same in uneven chunks with rings as short as can be, rotary angles. */
void ox_golden_model_run (OxGoldenCase *self, GCancellable *cancellable);
/* A case folder with GGUF files made from such a checkpoint. */
void ox_golden_model_run_gguf (OxGoldenCase *self, GCancellable *cancellable);
