/* The runner of golden cases itself: that it finds what is wrong. Cases are made from the Gemma 3 one by changing something, and from
 * what a small model computes.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-golden-check.h"
#include "ox-toy-model.h"
#include "golden/ox-golden-case.h"
#include "ox-session-private.h"

#include <string.h>
#include <glib/gstdio.h>

#define GEMMA3_RESULTS 37
#define GEMMA3_INPUTS 3

/* ---- Folders ---- */

static char *
new_folder (void)
{
  g_autoptr (GError) error = NULL;
  char *folder = g_dir_make_tmp ("golden-XXXXXX", &error);

  g_assert_no_error (error);
  return folder;
}

static void
remove_folder (const char *folder)
{
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  const char *name;

  while (dir != NULL && (name = g_dir_read_name (dir)) != NULL) {
    g_autofree char *path = g_build_filename (folder, name, NULL);

    if (g_file_test (path, G_FILE_TEST_IS_DIR))
      remove_folder (path);
    else
      g_unlink (path);
  }
  g_rmdir (folder);
}

static void
write_file (const char *folder, const char *name, const void *data, gsize len)
{
  g_autofree char *path = g_build_filename (folder, name, NULL);
  g_autoptr (GError) error = NULL;

  g_assert_true (g_file_set_contents (path, data, (gssize) len, &error));
}

/* A copy of the Gemma 3 case in which the first @from of file @name has become @to, which is as long. */
static char *
changed_case (const char *name, const char *from, const char *to)
{
  static const char *const files[] = { "case.json", "expected.safetensors", "model/config.json",
                                       "model/generation_config.json", "model/model.safetensors" };
  char *folder = new_folder ();
  g_autofree char *model = g_build_filename (folder, "model", NULL);

  g_assert_no_errno (g_mkdir (model, 0700));
  for (gsize i = 0; i < G_N_ELEMENTS (files); i++) {
    g_autofree char *path = g_build_filename (g_getenv ("OX_TEST_DATA"), "golden/text/gemma3", files[i], NULL);
    g_autofree char *data = NULL;
    g_autoptr (GError) error = NULL;
    gsize len;

    g_assert_true (g_file_get_contents (path, &data, &len, &error));
    if (g_strcmp0 (name, files[i]) == 0) {
      char *found = memmem (data, len, from, strlen (from));

      if (to == NULL)
        continue;
      g_assert_nonnull (found);
      g_assert_cmpuint (strlen (from), ==, strlen (to));
      memcpy (found, to, strlen (to));
    }
    write_file (folder, files[i], data, len);
  }
  return folder;
}

static void
run (const char *folder, OxGoldenReport *report)
{
  g_autoptr (GError) error = NULL;

  g_assert_true (ox_golden_run (folder, NULL, report, NULL, &error));
  g_assert_no_error (error);
}

/* ---- What is wrong is found ---- */

static void
test_unchanged (void)
{
  g_autofree char *folder = changed_case (NULL, NULL, NULL);
  OxGoldenReport report = { 0 };

  run (folder, &report);
  g_assert_cmpuint (report.n_ok, ==, GEMMA3_RESULTS);
  g_assert_cmpuint (report.n_input, ==, GEMMA3_INPUTS);
  remove_folder (folder);
}

static void
test_tolerance_counts (void)
{
  g_autofree char *folder = changed_case ("case.json", "\"logits\": 0.0001", "\"logits\": 1.0e-9");
  OxGoldenReport report = { .func = ox_golden_check_message };

  run (folder, &report);
  /* Of each prompt: logits in five ways, greedy logits and margins. */
  g_assert_cmpuint (report.n_over, ==, 21);
  g_assert_cmpuint (report.n_ok, ==, GEMMA3_RESULTS - 21);
  remove_folder (folder);
}

static void
test_no_tolerance (void)
{
  g_autofree char *folder = changed_case ("case.json", "\"hidden\": 0.0001", "\"hiddem\": 0.0001");
  OxGoldenReport report = { 0 };

  run (folder, &report);
  g_assert_cmpuint (report.n_not_computed, ==, 9);
  remove_folder (folder);
}

static void
test_unknown_tensor (void)
{
  g_autofree char *folder = changed_case ("expected.safetensors", "prompt1_hidden_7", "prompt1_hidden_9");
  OxGoldenReport report = { 0 };

  run (folder, &report);
  g_assert_cmpuint (report.n_not_computed, ==, 1);
  g_assert_cmpuint (report.n_ok, ==, GEMMA3_RESULTS - 1);
  remove_folder (folder);
}

static void
test_wrong_network (void)
{
  g_autofree char *folder = changed_case ("model/config.json", "\"sliding_window\": 12", "\"sliding_window\": 11");
  OxGoldenReport report = { 0 };

  run (folder, &report);
  /* The first prompt is a single token, but its continuation outgrows the window, as the others do. */
  g_assert_cmpuint (report.n_over, >=, 10);
  g_assert_cmpuint (report.n_not_computed, ==, 0);
  remove_folder (folder);
}

static void
test_unsupported_network (void)
{
  g_autofree char *folder = changed_case ("model/config.json", "\"gemma3_text\"", "\"gemma9_text\"");
  OxGoldenReport report = { .func = ox_golden_check_message };

  run (folder, &report);
  g_assert_cmpuint (report.n_ok + report.n_over, ==, 0);
  g_assert_cmpuint (report.n_not_computed, >=, 25);
  remove_folder (folder);
}

static void
test_missing_model (void)
{
  g_autofree char *folder = changed_case ("model/model.safetensors", "", NULL);
  OxGoldenReport report = { 0 };

  run (folder, &report);
  g_assert_cmpuint (report.n_ok, ==, 0);
  g_assert_cmpuint (report.n_not_computed, >=, 25);
  remove_folder (folder);
}

static void
test_no_case (void)
{
  g_autofree char *folder = new_folder ();
  OxGoldenReport report = { 0 };
  g_autoptr (GError) error = NULL;

  g_assert_false (ox_golden_run (folder, NULL, &report, NULL, &error));
  g_assert_error (error, OX_ERROR, OX_ERROR_NOT_FOUND);
  g_clear_error (&error);
  write_file (folder, "case.json", "{", 1);
  write_file (folder, "expected.safetensors", "", 0);
  g_assert_false (ox_golden_run (folder, NULL, &report, NULL, &error));
  g_assert_error (error, OX_ERROR, OX_ERROR_DAMAGED);
  remove_folder (folder);
}

static void
test_other_kind (void)
{
  g_autofree char *folder = new_folder ();
  OxGoldenReport report = { 0 };

  write_file (folder, "case.json", "{}", 2);
  run (folder, &report);
  g_assert_cmpuint (report.n_not_computed, ==, 1);
  remove_folder (folder);
}

static void
test_numbers (void)
{
  static const float a[] = { 1, 2, 3 }, b[] = { 1, 2.5f, 2.75f };
  float not_a_number[] = { 1, 2, 0.0f / 0.0f };
  OxGoldenReport report = { 0 };

  g_assert_cmpfloat (ox_golden_difference (a, b, 3), ==, 0.5);
  g_assert_cmpfloat (ox_golden_difference (a, a, 3), ==, 0);
  ox_golden_report_difference (&report, "nan", ox_golden_difference (a, not_a_number, 3), 1, NULL);
  g_assert_cmpuint (report.n_over, ==, 1);
  ox_golden_report_difference (&report, "equal", 0.5, 0.5, NULL);
  g_assert_cmpuint (report.n_ok, ==, 1);
  g_assert_cmpuint (ox_golden_argmax (b, 3), ==, 2);
}

/* ---- GGUF files of a small checkpoint ---- */

typedef struct {
  GString *header;
  GByteArray *data;
} Tensors;

static void
add_tensor (Tensors *tensors, const char *name, const float *values, gsize rows, gsize cols)
{
  gsize bytes = rows * cols * sizeof (float);

  g_string_append_printf (tensors->header,
                          "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%" G_GSIZE_FORMAT ",%" G_GSIZE_FORMAT
                          "],\"data_offsets\":[%u,%" G_GSIZE_FORMAT "]}",
                          tensors->header->len > 1 ? "," : "", name, rows, cols, tensors->data->len,
                          tensors->data->len + bytes);
  g_byte_array_append (tensors->data, (const guint8 *) values, (guint) bytes);
}

static void
write_tensors (Tensors *tensors, const char *folder)
{
  g_autoptr (GByteArray) file = g_byte_array_new ();
  guint64 len;

  g_string_append_c (tensors->header, '}');
  len = GUINT64_TO_LE ((guint64) tensors->header->len);
  g_byte_array_append (file, (const guint8 *) &len, sizeof len);
  g_byte_array_append (file, (const guint8 *) tensors->header->str, (guint) tensors->header->len);
  g_byte_array_append (file, tensors->data->data, tensors->data->len);
  write_file (folder, "expected.safetensors", file->data, file->len);
  g_string_free (tensors->header, TRUE);
  g_byte_array_unref (tensors->data);
}

#define N_PROMPT 9
#define N_GREEDY 6

/* A case in the form of those with GGUF files, from what the engine itself computes: what is tested is that the runner finds its way. */
static void
check_gguf (float error_of_logits, guint n_over)
{
  static const char case_json[] =
    "{\"files_with_the_checkpoints_exact_weights\": [\"f32\"], \"tolerance\": \"engine with float32 "
    "activations: 1e-4 against hf.* on files with exact weights, 1e-2 against <file>.* on the "
    "others\"}";
  static const float prompt[N_PROMPT] = { 104, 101, 108, 108, 111, 32, 33, 34, 35 };
  g_autofree char *folder = new_folder ();
  g_autofree char *exact = g_build_filename (folder, "f32.gguf", NULL);
  g_autofree char *rounded = g_build_filename (folder, "f16.gguf", NULL);
  OxModelOptions options = { .precision = OX_MODEL_PRECISION_EXACT };
  const char *const names[][3] = { { exact, "hf.prompt0_logits", "hf.prompt0_greedy_logits" },
                                   { rounded, "f16.prompt0_logits", "f16.prompt0_greedy_logits" } };
  Tensors tensors = { g_string_new ("{"), g_byte_array_new () };
  OxGoldenReport report = { .func = ox_golden_check_message };
  float greedy[N_GREEDY];
  guint32 ids[N_PROMPT];

  ox_toy_model_write (&(OxToyModel) { 0 }, exact);
  ox_toy_model_write (&(OxToyModel) { .f16 = TRUE }, rounded);
  for (guint i = 0; i < N_PROMPT; i++)
    ids[i] = (guint32) prompt[i];
  for (gsize i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (OxModel) model = ox_model_load (names[i][0], &options, NULL, NULL, NULL, &error);
    g_autoptr (OxSession) session = ox_session_new (model, &error);
    g_autofree float *logits = g_new (float, N_PROMPT *OX_TOY_VOCAB);
    g_autofree float *rows = g_new (float, N_GREEDY *OX_TOY_VOCAB);

    g_assert_true (ox_session_eval (session, ids, N_PROMPT, OX_LOGITS_ALL, logits, NULL, &error));
    memcpy (rows, logits + (N_PROMPT - 1) * OX_TOY_VOCAB, OX_TOY_VOCAB * sizeof (float));
    for (guint s = 0; s < N_GREEDY; s++) {
      guint32 id = i == 0 ? ox_golden_argmax (rows + s * OX_TOY_VOCAB, OX_TOY_VOCAB) : (guint32) greedy[s];

      greedy[s] = (float) id;
      if (s + 1 < N_GREEDY)
        g_assert_true (ox_session_eval (session, &id, 1, OX_LOGITS_LAST, rows + (s + 1) * OX_TOY_VOCAB, NULL, &error));
    }
    logits[5] += error_of_logits;
    add_tensor (&tensors, names[i][1], logits, N_PROMPT, OX_TOY_VOCAB);
    add_tensor (&tensors, names[i][2], rows, N_GREEDY, OX_TOY_VOCAB);
  }
  add_tensor (&tensors, "prompt0_ids", prompt, 1, N_PROMPT);
  add_tensor (&tensors, "prompt0_greedy_ids", greedy, 1, N_GREEDY);
  add_tensor (&tensors, "f16.llama.prompt0_greedy_logits", prompt, 1, N_PROMPT);
  write_tensors (&tensors, folder);
  write_file (folder, "case.json", case_json, strlen (case_json));

  run (folder, &report);
  g_assert_cmpuint (report.n_not_computed, ==, 0);
  g_assert_cmpuint (report.n_over, ==, n_over);
  g_assert_cmpuint (report.n_ok, ==, 5 - n_over);
  remove_folder (folder);
}

static void
test_gguf (void)
{
  check_gguf (0, 0);
  /* Over the tolerance of files with exact weights, and within that of the others; then over both. */
  check_gguf (1e-3f, 1);
  check_gguf (1e-1f, 2);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/golden/runner/unchanged", test_unchanged);
  g_test_add_func ("/golden/runner/tolerance-counts", test_tolerance_counts);
  g_test_add_func ("/golden/runner/no-tolerance", test_no_tolerance);
  g_test_add_func ("/golden/runner/unknown-tensor", test_unknown_tensor);
  g_test_add_func ("/golden/runner/wrong-network", test_wrong_network);
  g_test_add_func ("/golden/runner/unsupported-network", test_unsupported_network);
  g_test_add_func ("/golden/runner/missing-model", test_missing_model);
  g_test_add_func ("/golden/runner/no-case", test_no_case);
  g_test_add_func ("/golden/runner/other-kind", test_other_kind);
  g_test_add_func ("/golden/runner/numbers", test_numbers);
  g_test_add_func ("/golden/runner/gguf", test_gguf);
  return g_test_run ();
}
