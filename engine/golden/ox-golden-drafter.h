/* Golden cases of drafters: a tiny drafter beside the tiny checkpoint that it drafts for.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "golden/ox-golden-case.h"

/* A case folder with model/ and a target in case.json: the keys and values that the drafter reads, its logits and hidden states step by
 * step, rounds of drafting and checking, and the answer that comes of it. */
void ox_golden_drafter_run (OxGoldenCase *self, GCancellable *cancellable);
