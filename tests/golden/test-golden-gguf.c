/* Real GGUF models against float32 references on the same weights: prompt ids, logits and greedy ids with exact precision, and how far
 * fast precision is from it.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-golden-check.h"
#include "golden/ox-golden-gguf.h"

static void
check_model (const char *case_path, const char *sha256, guint n_least)
{
  const char *models = g_getenv ("OX_TEST_MODELS");
  g_autofree char *path = NULL;

  if (models == NULL) {
    g_test_skip ("OX_TEST_MODELS does not say where the model files are");
    return;
  }
  path = ox_golden_gguf_find_model (models, sha256);
  if (path == NULL) {
    g_autofree char *reason = g_strdup_printf ("no file with SHA-256 %s in %s", sha256, models);
    g_test_skip (reason);
    return;
  }
  ox_golden_check (case_path, n_least);
}

static void
test_smollm2 (void)
{
  check_model ("gguf/smollm2-135m", "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53", 47);
}

static void
test_gemma3 (void)
{
  check_model ("gguf/gemma3-270m", "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818", 66);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/golden/gguf/smollm2-135m", test_smollm2);
  g_test_add_func ("/golden/gguf/gemma3-270m", test_gemma3);
  return g_test_run ();
}
