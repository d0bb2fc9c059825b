/* How models want to be sampled: files first, then what the makers recommend for the family, size and mode.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-model-private.h"

#include <glib/gstdio.h>

#include "ox-pieces.h"

static void
check (const OxSampling *sampling, float temperature, guint top_k, float top_p, float presence)
{
  g_assert_cmpfloat (sampling->temperature, ==, temperature);
  g_assert_cmpuint (sampling->top_k, ==, top_k);
  g_assert_cmpfloat (sampling->top_p, ==, top_p);
  g_assert_cmpfloat (sampling->min_p, ==, 0);
  g_assert_cmpfloat (sampling->repetition_penalty, ==, 1);
  g_assert_cmpfloat (sampling->frequency_penalty, ==, 0);
  g_assert_cmpfloat (sampling->presence_penalty, ==, presence);
}

static void
test_families (void)
{
  OxConfig gemma4 = { .family = OX_FAMILY_GEMMA4 }, llama = { .family = OX_FAMILY_LLAMA };
  OxConfig small = { .family = OX_FAMILY_QWEN35, .hidden_size = 2048 };
  OxConfig large = { .family = OX_FAMILY_QWEN35, .hidden_size = 2560 };
  OxSampling sampling;

  ox_model_read_sampling ("/nowhere", &gemma4, &sampling);
  check (&sampling, 1, 64, 0.95f, 0);
  ox_model_adapt_sampling (&gemma4, TRUE, &sampling);
  check (&sampling, 1, 64, 0.95f, 0);
  ox_model_read_sampling ("/nowhere", &llama, &sampling);
  check (&sampling, 0.6f, 0, 0.9f, 0);

  ox_model_read_sampling ("/nowhere", &small, &sampling);
  check (&sampling, 1, 20, 1, 2);
  sampling.max_tokens = 7;
  ox_model_adapt_sampling (&small, TRUE, &sampling);
  check (&sampling, 1, 20, 0.95f, 1.5f);
  g_assert_cmpuint (sampling.max_tokens, ==, 7);
  ox_model_adapt_sampling (&small, FALSE, &sampling);
  check (&sampling, 1, 20, 1, 2);

  ox_model_read_sampling ("/nowhere", &large, &sampling);
  check (&sampling, 1, 20, 0.95f, 1.5f);
  ox_model_adapt_sampling (&large, FALSE, &sampling);
  check (&sampling, 0.7f, 20, 0.8f, 1.5f);
  /* What a user chose stays. */
  sampling.temperature = 0.3f;
  ox_model_adapt_sampling (&large, TRUE, &sampling);
  check (&sampling, 0.3f, 20, 0.8f, 1.5f);
}

static void
test_file (void)
{
  g_autofree char *folder = g_dir_make_tmp ("oxinfer-test-XXXXXX", NULL);
  g_autofree char *path = g_build_filename (folder, "generation_config.json", NULL);
  OxConfig config = { .family = OX_FAMILY_QWEN35, .hidden_size = 5120 };
  OxSampling sampling;

  g_assert_true (g_file_set_contents (
    path, "{\"temperature\": 1.0, \"top_k\": 20, \"top_p\": 0.95, \"do_sample\": true, \"eos_token_id\": [1]}", -1,
    NULL));
  ox_model_read_sampling (folder, &config, &sampling);
  check (&sampling, 1, 20, 0.95f, 0);
  ox_model_adapt_sampling (&config, FALSE, &sampling);
  check (&sampling, 1, 20, 0.95f, 0);

  g_assert_true (g_file_set_contents (
    path, "{\"temperature\": 0.5, \"top_k\": -3, \"top_p\": 7, \"presence_penalty\": 1}", -1, NULL));
  ox_model_read_sampling (folder, &config, &sampling);
  check (&sampling, 0.5f, 20, 0.95f, 1);

  /* Without settings the family's stay; so they do when it is no JSON. */
  g_assert_true (g_file_set_contents (path, "{\"eos_token_id\": 1}", -1, NULL));
  ox_model_read_sampling (folder, &config, &sampling);
  check (&sampling, 1, 20, 0.95f, 1.5f);
  g_assert_true (g_file_set_contents (path, "nothing", -1, NULL));
  ox_model_read_sampling (folder, &config, &sampling);
  check (&sampling, 1, 20, 0.95f, 1.5f);

  /* It is not about a GGUF file that lies beside it. */
  g_assert_true (g_file_set_contents (path, "{\"temperature\": 0.1}", -1, NULL));
  config.from_gguf = TRUE;
  ox_model_read_sampling (folder, &config, &sampling);
  check (&sampling, 1, 20, 0.95f, 1.5f);
  g_unlink (path);
  g_rmdir (folder);
}

static void
test_gguf (void)
{
  const OxPiece pieces[] = { GGUF (3, 0, 4), STR ("general.sampling.temp"),  U32 (6),
                             F32 (0.25),     STR ("general.sampling.top_k"), U32 (5),
                             U32 (12),       STR ("general.sampling.top_p"), U32 (6),
                             F32 (0.5),      STR ("general.sampling.min_p"), U32 (6),
                             F32 (2) };
  g_autoptr (GByteArray) bytes = g_byte_array_new ();
  g_autoptr (GBytes) data = NULL;
  g_autoptr (OxFile) file = NULL;
  g_autoptr (OxGguf) gguf = NULL;
  g_autoptr (GError) error = NULL;
  OxSampling sampling = { .temperature = 1, .top_p = 1, .repetition_penalty = 1, .presence_penalty = 1.5f };

  ox_pieces_append (bytes, pieces, G_N_ELEMENTS (pieces));
  data = g_byte_array_free_to_bytes (g_steal_pointer (&bytes));
  file = ox_file_new_for_bytes (data, "a.gguf");
  gguf = ox_gguf_parse (file, &error);
  g_assert_no_error (error);
  ox_model_read_gguf_sampling (gguf, &sampling);
  check (&sampling, 0.25f, 12, 0.5f, 0);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/sampling-defaults/families", test_families);
  g_test_add_func ("/sampling-defaults/file", test_file);
  g_test_add_func ("/sampling-defaults/gguf", test_gguf);
  return g_test_run ();
}
