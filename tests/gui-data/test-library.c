/* The library of models: what is found where, what is said of it, which one is chosen.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-model-library.h"
#include "support.h"

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

typedef struct {
  char *folder;
  OxEngine *engine;
  GSettings *settings;
  OxModelLibrary *library;
} Fixture;

static void
set_up (Fixture *fixture, gconstpointer unused)
{
  g_autofree char *hub = NULL;

  fake_engine_set_script (&(FakeScript) { .n_pieces = 1 });
  fixture->folder = make_temporary_folder ();
  hub = g_build_filename (fixture->folder, "hub", NULL);
  g_setenv ("OXINFER_MODELS", fixture->folder, TRUE);
  g_setenv ("HF_HUB_CACHE", hub, TRUE);
  fixture->engine = ox_engine_new (fake_engine_get_backend ());
  fixture->settings = g_settings_new ("org.oxinfer.App");
  g_settings_reset (fixture->settings, "model-path");
  g_settings_reset (fixture->settings, "model-folders");
  fixture->library = ox_model_library_new (fixture->engine, fixture->settings);
}

static void
tear_down (Fixture *fixture, gconstpointer unused)
{
  run_until (!ox_model_library_get_scanning (fixture->library));
  settle ();
  g_assert_finalize_object (fixture->library);
  g_assert_true (ox_engine_shutdown (fixture->engine, 5 * G_USEC_PER_SEC));
  run_for (40);
  g_assert_finalize_object (fixture->engine);
  g_object_unref (fixture->settings);
  remove_folder (fixture->folder);
  g_free (fixture->folder);
}

static void
make_file (Fixture *fixture, const char *name, const char *content)
{
  g_autofree char *path = g_build_filename (fixture->folder, name, NULL);
  g_autofree char *folder = g_path_get_dirname (path);

  g_mkdir_with_parents (folder, 0700);
  g_assert_true (g_file_set_contents (path, content, -1, NULL));
}

static void
make_link (Fixture *fixture, const char *name, const char *target)
{
  g_autofree char *path = g_build_filename (fixture->folder, name, NULL);
  g_autofree char *folder = g_path_get_dirname (path);

  g_mkdir_with_parents (folder, 0700);
  g_assert_cmpint (symlink (target, path), ==, 0);
}

static void
scan (Fixture *fixture)
{
  ox_model_library_scan (fixture->library);
  run_until (!ox_model_library_get_scanning (fixture->library));
  g_assert_true (ox_model_library_get_ready (fixture->library));
}

static guint
length (Fixture *fixture)
{
  return g_list_model_get_n_items (G_LIST_MODEL (fixture->library));
}

static OxModelEntry *
find (Fixture *fixture, const char *name)
{
  g_autofree char *path = g_build_filename (fixture->folder, name, NULL);

  return ox_model_library_find (fixture->library, path);
}

static const char *
selected_name (Fixture *fixture)
{
  OxModelEntry *entry = ox_model_library_get_selected (fixture->library);

  return entry != NULL ? ox_model_entry_get_name (entry) : NULL;
}

static void
test_empty (Fixture *fixture, gconstpointer unused)
{
  g_assert_false (ox_model_library_get_ready (fixture->library));
  scan (fixture);
  g_assert_cmpuint (length (fixture), ==, 0);
  g_assert_null (ox_model_library_get_selected (fixture->library));
}

static void
test_states (Fixture *fixture, gconstpointer unused)
{
  OxModelEntry *entry;

  make_file (fixture, "good.gguf", "ok 500");
  make_file (fixture, "broken.gguf", "GARBAGE");
  make_file (fixture, "odd.gguf", "unsupported");
  make_file (fixture, "huge.gguf", "ok 5000");
  make_file (fixture, "notes.txt", "ok");
  make_file (fixture, "model-00001-of-00002.gguf", "ok 50");
  make_file (fixture, "model-00002-of-00002.gguf", "more of it");
  make_file (fixture, "mmproj-good.gguf", "ok");
  make_link (fixture, "gone.gguf", "nowhere");
  make_link (fixture, "loop", ".");
  scan (fixture);
  g_assert_cmpuint (length (fixture), ==, 6);

  entry = find (fixture, "good.gguf");
  g_assert_cmpint (ox_model_entry_get_state (entry), ==, OX_MODEL_ENTRY_OK);
  g_assert_true (ox_model_entry_get_usable (entry));
  g_assert_cmpstr (ox_model_entry_get_format (entry), ==, "Q8_0");
  g_assert_cmpuint (ox_model_entry_get_plan (entry)->weight_bytes, ==, 500);
  entry = find (fixture, "broken.gguf");
  g_assert_cmpint (ox_model_entry_get_state (entry), ==, OX_MODEL_ENTRY_DAMAGED);
  g_assert_false (ox_model_entry_get_usable (entry));
  g_assert_nonnull (strstr (ox_model_entry_get_reason (entry), "damaged"));
  g_assert_nonnull (strstr (ox_model_entry_get_details (entry), "magic"));
  g_assert_cmpstr (ox_model_entry_get_name (entry), ==, "broken");
  entry = find (fixture, "odd.gguf");
  g_assert_cmpint (ox_model_entry_get_state (entry), ==, OX_MODEL_ENTRY_UNSUPPORTED);
  entry = find (fixture, "huge.gguf");
  g_assert_cmpint (ox_model_entry_get_state (entry), ==, OX_MODEL_ENTRY_TOO_LARGE);
  g_assert_true (ox_model_entry_get_usable (entry));
  g_assert_nonnull (strstr (ox_model_entry_get_reason (entry), "memory"));
  entry = find (fixture, "gone.gguf");
  g_assert_cmpint (ox_model_entry_get_state (entry), ==, OX_MODEL_ENTRY_DAMAGED);
  g_assert_nonnull (strstr (ox_model_entry_get_reason (entry), "missing"));
  g_assert_nonnull (find (fixture, "model-00001-of-00002.gguf"));
}

static void
test_hugging_face (Fixture *fixture, gconstpointer unused)
{
  g_autoptr (OxModelEntry) entry = NULL;

  make_file (fixture, "hub/models--org--a/blobs/1111", "ok 10");
  make_link (fixture, "hub/models--org--a/snapshots/r1/a.gguf", "../../blobs/1111");
  make_link (fixture, "hub/models--org--a/snapshots/r2/a.gguf", "../../blobs/1111");
  make_file (fixture, "hub/models--org--b/snapshots/old/config.json", "ok 20");
  make_file (fixture, "hub/models--org--b/snapshots/old/model.safetensors", "weights");
  make_file (fixture, "hub/models--org--b/snapshots/new/config.json", "ok 21");
  make_file (fixture, "hub/models--org--b/snapshots/new/model-00001-of-00002.safetensors", "weights");
  make_file (fixture, "hub/models--org--b/snapshots/new/model-00002-of-00002.safetensors", "weights");
  make_file (fixture, "hub/models--org--b/refs/main", "new");
  make_file (fixture, "hub/models--org--c/snapshots/r/config.json", "ok but no weights");
  make_file (fixture, "hub/models--org--d/snapshots/r/sub/d.gguf", "ok 5");
  make_file (fixture, "hub/models--org--e/blobs/2222.incomplete", "ok");
  g_unsetenv ("OXINFER_MODELS");
  scan (fixture);
  g_assert_cmpuint (length (fixture), ==, 3);
  g_assert_nonnull (find (fixture, "hub/models--org--b/snapshots/new"));
  g_assert_null (find (fixture, "hub/models--org--b/snapshots/old"));
  g_assert_nonnull (find (fixture, "hub/models--org--d/snapshots/r/sub/d.gguf"));

  /* By HF_HOME. */
  g_autofree char *home = g_build_filename (fixture->folder, "home", NULL);
  g_autofree char *from = g_build_filename (fixture->folder, "hub", NULL);
  g_autofree char *to = g_build_filename (home, "hub", NULL);
  g_mkdir (home, 0700);
  g_assert_cmpint (g_rename (from, to), ==, 0);
  g_unsetenv ("HF_HUB_CACHE");
  g_setenv ("HF_HOME", home, TRUE);
  scan (fixture);
  g_assert_cmpuint (length (fixture), ==, 3);
  g_assert_nonnull (find (fixture, "home/hub/models--org--b/snapshots/new"));
  g_unsetenv ("HF_HOME");
}

static void
test_default (Fixture *fixture, gconstpointer unused)
{
  make_file (fixture, "base.gguf", "base 900");
  scan (fixture);
  g_assert_cmpstr (selected_name (fixture), ==, "base.gguf");
  g_assert_true (ox_model_entry_get_selected (find (fixture, "base.gguf")));
  /* What was selected for want of better is not moved from under the user, only a new start looks anew. */
  make_file (fixture, "small.gguf", "ok 100");
  make_file (fixture, "large.gguf", "ok 800");
  make_file (fixture, "huge.gguf", "ok 9000");
  scan (fixture);
  g_assert_cmpstr (selected_name (fixture), ==, "base.gguf");
  g_object_unref (fixture->library);
  fixture->library = ox_model_library_new (fixture->engine, fixture->settings);
  scan (fixture);
  g_assert_cmpstr (selected_name (fixture), ==, "large.gguf");
  g_autofree char *not_remembered = g_settings_get_string (fixture->settings, "model-path");
  g_assert_cmpstr (not_remembered, ==, "");

  ox_model_library_set_selected (fixture->library, find (fixture, "small.gguf"));
  g_assert_false (ox_model_entry_get_selected (find (fixture, "large.gguf")));
  g_object_unref (fixture->library);
  fixture->library = ox_model_library_new (fixture->engine, fixture->settings);
  scan (fixture);
  g_assert_cmpstr (selected_name (fixture), ==, "small.gguf");

  /* The chosen one goes away: the next best. */
  g_autofree char *path = g_build_filename (fixture->folder, "small.gguf", NULL);
  g_unlink (path);
  scan (fixture);
  g_assert_cmpuint (length (fixture), ==, 3);
  g_assert_cmpstr (selected_name (fixture), ==, "large.gguf");
}

/* A second look reads only what has changed. */
static void
test_rescan (Fixture *fixture, gconstpointer unused)
{
  OxModelEntry *entry;

  make_file (fixture, "a.gguf", "ok 10");
  make_file (fixture, "b.gguf", "GARBAGE");
  scan (fixture);
  g_assert_cmpuint (fake_engine_count_plans (), ==, 2);
  entry = find (fixture, "b.gguf");
  make_file (fixture, "b.gguf", "ok 1234");
  scan (fixture);
  g_assert_cmpuint (fake_engine_count_plans (), ==, 3);
  g_assert_true (find (fixture, "b.gguf") == entry);
  g_assert_cmpint (ox_model_entry_get_state (entry), ==, OX_MODEL_ENTRY_TOO_LARGE);
  scan (fixture);
  g_assert_cmpuint (fake_engine_count_plans (), ==, 3);
}

static void
test_watching (Fixture *fixture, gconstpointer unused)
{
  make_file (fixture, "sub/a.gguf", "ok 10");
  scan (fixture);
  make_file (fixture, "sub/b.gguf", "ok 10");
  run_until (length (fixture) == 2);
  g_autofree char *path = g_build_filename (fixture->folder, "sub", "a.gguf", NULL);
  g_unlink (path);
  run_until (length (fixture) == 1);
}

static void
test_add (Fixture *fixture, gconstpointer unused)
{
  g_autofree char *elsewhere = make_temporary_folder ();
  g_autofree char *path = g_build_filename (elsewhere, "mine.gguf", NULL);
  g_autoptr (GFile) file = g_file_new_for_path (path);
  g_autofree char *remembered = NULL;

  make_file (fixture, "a.gguf", "ok 900");
  scan (fixture);
  g_assert_true (g_file_set_contents (path, "ok 10", -1, NULL));
  ox_model_library_add (fixture->library, file);
  run_until (length (fixture) == 2);
  g_assert_cmpstr (selected_name (fixture), ==, "mine.gguf");
  g_assert_true (ox_model_library_is_added (fixture->library, path));
  remembered = g_settings_get_string (fixture->settings, "model-path");
  g_assert_cmpstr (remembered, ==, path);
  run_until (!ox_model_library_get_scanning (fixture->library));
  ox_model_library_add (fixture->library, file);
  ox_model_library_remove (fixture->library, path);
  run_until (length (fixture) == 1);
  g_assert_true (g_file_test (path, G_FILE_TEST_EXISTS));
  g_assert_cmpstr (selected_name (fixture), ==, "a.gguf");
  remove_folder (elsewhere);
}

/* File names are bytes; settings and names for people are UTF-8. */
static void
test_odd_names (Fixture *fixture, gconstpointer unused)
{
  g_autofree char *elsewhere = make_temporary_folder ();
  g_autofree char *path = g_build_filename (elsewhere, "\xff.gguf", NULL);
  g_autoptr (GFile) file = g_file_new_for_path (path);

  make_file (fixture, "\xff.gguf", "damaged");
  make_file (fixture, "\xfe.gguf", "damaged");
  scan (fixture);
  g_assert_cmpuint (length (fixture), ==, 2);
  for (guint i = 0; i < 2; i++) {
    g_autoptr (OxModelEntry) entry = g_list_model_get_item (G_LIST_MODEL (fixture->library), i);
    g_assert_true (g_utf8_validate (ox_model_entry_get_name (entry), -1, NULL));
  }
  g_assert_true (g_file_set_contents (path, "damaged", -1, NULL));
  ox_model_library_add (fixture->library, file);
  run_until (length (fixture) == 3);
  g_assert_true (ox_model_library_is_added (fixture->library, path));
  run_until (!ox_model_library_get_scanning (fixture->library));
  ox_model_library_remove (fixture->library, path);
  run_until (length (fixture) == 2);
  remove_folder (elsewhere);
}

/* The entry shows what the engine does with it. */
static void
test_loaded (Fixture *fixture, gconstpointer unused)
{
  OxModelEntry *entry;

  make_file (fixture, "a.gguf", "ok 10");
  make_file (fixture, "b.gguf", "ok 5000");
  scan (fixture);
  entry = find (fixture, "a.gguf");
  fake_engine_set_script (&(FakeScript) { .endless = STAGE_LOAD });
  g_autoptr (OxJob) job = ox_engine_load (fixture->engine, ox_model_entry_get_path (entry));
  run_until (ox_model_entry_get_loading (entry) && ox_model_entry_get_load_progress (entry) == 0.25);
  ox_job_cancel (job);
  run_until (!ox_model_entry_get_loading (entry));
  g_assert_false (ox_model_entry_get_loaded (entry));
  fake_engine_set_script (&(FakeScript) { .n_pieces = 1 });
  g_object_unref (ox_engine_load (fixture->engine, ox_model_entry_get_path (entry)));
  run_until (ox_model_entry_get_loaded (entry));
  /* The fake says 1000 bytes are free and 12345 in use: with that model gone the large one fits. */
  run_until (ox_model_entry_get_state (find (fixture, "b.gguf")) == OX_MODEL_ENTRY_OK);
  g_object_unref (ox_engine_unload (fixture->engine));
  run_until (!ox_model_entry_get_loaded (entry));
  run_until (ox_model_entry_get_state (find (fixture, "b.gguf")) == OX_MODEL_ENTRY_TOO_LARGE);
}

/* Drafters are told from what is broken, and go along with the model that they were made for. */
static void
test_drafters (Fixture *fixture, gconstpointer unused)
{
  OxModelEntry *drafter;
  g_autofree char *used = NULL;
  g_autofree char *none = NULL;

  make_file (fixture, "gemma/config.json", "ok 50");
  make_file (fixture, "gemma/model.safetensors", "w");
  make_file (fixture, "gemma-assistant/config.json", "drafter");
  make_file (fixture, "gemma-assistant/model.safetensors", "w");
  make_file (fixture, "other-assistant.gguf", "drafter");
  make_file (fixture, "hub/models--x--tiny-it/snapshots/abc/config.json", "ok 40");
  make_file (fixture, "hub/models--x--tiny-it/snapshots/abc/model.safetensors", "w");
  make_file (fixture, "hub/models--x--tiny-it-assistant/snapshots/def/config.json", "drafter");
  make_file (fixture, "hub/models--x--tiny-it-assistant/snapshots/def/model.safetensors", "w");
  scan (fixture);
  g_assert_cmpuint (length (fixture), ==, 5);
  drafter = find (fixture, "gemma-assistant");
  g_assert_true (ox_model_entry_is_drafter (drafter));
  g_assert_false (ox_model_entry_get_usable (drafter));
  g_assert_nonnull (strstr (ox_model_entry_get_reason (drafter), "Makes gemma answer sooner"));
  drafter = find (fixture, "other-assistant.gguf");
  g_assert_nonnull (strstr (ox_model_entry_get_reason (drafter), "cannot chat"));
  drafter = find (fixture, "hub/models--x--tiny-it-assistant/snapshots/def");
  g_assert_cmpstr (ox_model_entry_get_name (drafter), ==, "tiny-it-assistant");
  g_assert_nonnull (strstr (ox_model_entry_get_reason (drafter), "answer sooner"));
  g_assert_cmpstr (selected_name (fixture), ==, "gemma");

  g_object_unref (ox_engine_load (fixture->engine, ox_model_entry_get_path (find (fixture, "gemma"))));
  run_until (ox_engine_get_state (fixture->engine) == OX_ENGINE_READY);
  used = fake_engine_dup_drafter ();
  g_assert_cmpstr (used, ==, ox_model_entry_get_path (find (fixture, "gemma-assistant")));

  /* Not when nothing is to be guessed. */
  g_object_unref (ox_engine_unload (fixture->engine));
  ox_engine_set_speculation (fixture->engine, OX_SPECULATION_OFF);
  g_object_unref (ox_engine_load (fixture->engine, ox_model_entry_get_path (find (fixture, "gemma"))));
  run_until (fake_engine_count_loads () == 2);
  none = fake_engine_dup_drafter ();
  g_assert_cmpstr (none, ==, "");
}

/* A drafter that cannot be used is no reason to go without the model. */
static void
test_bad_drafter (Fixture *fixture, gconstpointer unused)
{
  OxModelEntry *entry;

  make_file (fixture, "gemma.gguf", "ok 50");
  make_file (fixture, "gemma-assistant.gguf", "drafter");
  scan (fixture);
  entry = find (fixture, "gemma.gguf");
  fake_engine_set_script (&(FakeScript) { .bad_drafter = TRUE });
  g_object_unref (ox_engine_load (fixture->engine, ox_model_entry_get_path (entry)));
  run_until (ox_model_entry_get_loaded (entry));
  g_assert_cmpuint (fake_engine_count_loads (), ==, 2);
}

/* How weights are held says what fits: all are looked at again. */
static void
test_options (Fixture *fixture, gconstpointer unused)
{
  OxModelOptions options = { .weights = OX_MODEL_WEIGHTS_Q4, .threads = 3 };

  make_file (fixture, "a.gguf", "ok 50");
  make_file (fixture, "b.gguf", "ok 60");
  scan (fixture);
  g_assert_cmpuint (fake_engine_count_plans (), ==, 2);
  scan (fixture);
  g_assert_cmpuint (fake_engine_count_plans (), ==, 2);
  ox_engine_set_options (fixture->engine, &options);
  ox_model_library_scan_anew (fixture->library);
  run_until (!ox_model_library_get_scanning (fixture->library));
  g_assert_cmpuint (fake_engine_count_plans (), ==, 4);
  g_assert_cmpint (fake_engine_get_options ().weights, ==, OX_MODEL_WEIGHTS_Q4);
  g_assert_cmpuint (fake_engine_get_options ().threads, ==, 3);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, G_TEST_OPTION_ISOLATE_DIRS, NULL);
#define ADD(name, function) g_test_add ("/library/" name, Fixture, NULL, set_up, function, tear_down)
  ADD ("empty", test_empty);
  ADD ("states", test_states);
  ADD ("hugging-face", test_hugging_face);
  ADD ("default", test_default);
  ADD ("rescan", test_rescan);
  ADD ("watching", test_watching);
  ADD ("add", test_add);
  ADD ("odd-names", test_odd_names);
  ADD ("loaded", test_loaded);
  ADD ("drafters", test_drafters);
  ADD ("bad-drafter", test_bad_drafter);
  ADD ("options", test_options);
  return g_test_run ();
}
