/* Networks and drafters against transformers' float32: logits of every position, every layer, greedy continuation, rotary angles.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-golden-check.h"

typedef struct {
  const char *path;
  guint n_least; /* results that have to be there: a case that lost its tensors must not pass */
} Case;

static const Case cases[] = {
  { "text/gemma3", 37 },         { "text/gemma4-e2b", 38 },
  { "text/gemma4-e4b", 39 },     { "text/gemma4-12b", 36 },
  { "text/gemma4-26b", 35 },     { "text/gemma4-31b", 36 },
  { "text/gemma4-drafter", 39 }, { "text/gemma4-drafter-centroid", 39 },
  { "text/qwen35-small", 34 },   { "text/qwen35-large", 38 },
  { "gguf/gemma4-e4b", 24 },     { "gguf/gemma4-26b", 24 },
  { "gguf/qwen35-large", 24 },
};

static void
test_case (gconstpointer data)
{
  const Case *test = data;

  ox_golden_check (test->path, test->n_least);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *name = g_strconcat ("/golden/", cases[i].path, NULL);

    g_test_add_data_func (name, &cases[i], test_case);
  }
  return g_test_run ();
}
