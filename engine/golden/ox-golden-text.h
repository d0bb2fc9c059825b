/* Golden case files of the text groups: tokenizers, chat formats, the sampler. What kind a file is, its content tells.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "golden/ox-golden.h"

/* A file as it is, or unpacked (by the xz program) when its name ends in ".xz". */
GBytes *ox_golden_read_file (const char *path, GError **error);
/* Unpacks an .xz file into a new temporary file, for readers that want a path; delete it after use. */
char *ox_golden_unpack (const char *path, GError **error);

/* Runs the case file at @path, whichever group it is of. Tokenizers are looked for as NAME.tokenizer.json[.xz] in the folders
 * "tokenizers" beside the file's folder and one up, and in those of @models. */
gboolean ox_golden_text_run (
  const char *path, const char *models, OxGoldenReport *report, GCancellable *cancellable, GError **error);

/* A file of the tokenizer group with a tokenizer of the caller's choice: tokenizer.json (packed or not), or a GGUF file. One result for
 * each kind of case. Files differ in what they call a control token; GGUF's tokenizers are not asked about strings and ids on which
 * the two disagree, and how many these are is noted. */
gboolean ox_golden_tokenizer (
  const char *case_path, const char *tokenizer_path, OxGoldenReport *report, GCancellable *cancellable, GError **error);
/* A file of the chat group: one result for each conversation. Those that the engine cannot express yet are not computed. */
gboolean ox_golden_chat (const char *case_path, OxGoldenReport *report, GError **error);
/* A file of the sampler group: one result for each case. */
gboolean ox_golden_sampler (const char *case_path, OxGoldenReport *report, GError **error);
