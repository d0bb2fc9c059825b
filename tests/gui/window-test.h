/* The whole window with a scripted engine and a library of its own, for one test after another.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "gui-test.h"

#include "ox-application.h"
#include "ox-scene-engine.h"
#include "ox-window.h"

#include <glib/gstdio.h>

G_BEGIN_DECLS

typedef struct {
  OxApplication *application;
  OxWindow *window;
  OxChatView *chat;
  OxComposer *composer;
} Test;

typedef void (*TestFunc) (Test *test);

typedef struct {
  const char *path;
  TestFunc func;
  gboolean no_model;
  const char *model; /* its file, if it is to be another one */
} Case;

typedef struct {
  const Case *test_case;
  Test test;
} Run;

static inline gboolean
body_cb (gpointer user_data)
{
  Run *run = user_data;
  Test *test = &run->test;
  GList *windows = gtk_application_get_windows (GTK_APPLICATION (test->application));

  test->window = OX_WINDOW (windows->data);
  test->chat = ox_window_get_chat_view (test->window);
  test->composer = ox_chat_view_get_composer (test->chat);
  gui_test_wait (g_str_equal (ox_window_get_page (test->window), run->test_case->no_model ? "welcome" : "main"), 10);
  gui_test_wait (ox_chat_view_get_conversation (test->chat) != NULL, 10);
  gui_test_wait (gtk_widget_get_mapped (GTK_WIDGET (test->composer)) || run->test_case->no_model, 10);
  run->test_case->func (test);
  g_action_group_activate_action (G_ACTION_GROUP (test->application), "quit", NULL);
  return G_SOURCE_REMOVE;
}

static inline void
activate_cb (GApplication *application, Run *run)
{
  g_idle_add (body_cb, run);
}

static inline void
remove_models (const char *folder)
{
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  const char *name;
  while ((name = g_dir_read_name (dir)) != NULL) {
    g_autofree char *path = g_build_filename (folder, name, NULL);
    g_unlink (path);
  }
}

/* Each test is a whole life of the app, from an empty library on. */
static inline void
run_case (gconstpointer data)
{
  Run run = { .test_case = data };
  g_autofree char *models = g_build_filename (g_get_user_data_dir (), "test-models", NULL);
  const char *name = run.test_case->model != NULL ? run.test_case->model : "Test 1B.gguf";
  g_autofree char *model = g_build_filename (models, name, NULL);
  g_autofree char *library = g_build_filename (g_get_user_data_dir (), "oxinfer", "library.db", NULL);

  g_unlink (library);
  g_assert_cmpint (g_mkdir_with_parents (models, 0700), ==, 0);
  remove_models (models);
  if (!run.test_case->no_model)
    g_assert_true (g_file_set_contents (model, "GGUF", 4, NULL));
  g_setenv ("OXINFER_MODELS", models, TRUE);
  g_setenv ("HF_HUB_CACHE", models, TRUE);

  ox_scene_engine_set_script (OX_SCENE_ANSWER, "An **answer** in words.");
  run.test.application = ox_application_new (ox_scene_engine_get_backend ());
  g_application_set_flags (G_APPLICATION (run.test.application), G_APPLICATION_NON_UNIQUE);
  g_signal_connect_after (run.test.application, "activate", G_CALLBACK (activate_cb), &run);
  g_assert_cmpint (g_application_run (G_APPLICATION (run.test.application), 0, NULL), ==, 0);
  g_object_unref (run.test.application);
}

static inline OxMessage *
last_message (Test *test)
{
  OxConversation *conversation = ox_chat_view_get_conversation (test->chat);
  guint n = ox_conversation_get_length (conversation);
  return n > 0 ? ox_conversation_get_message (conversation, n - 1) : NULL;
}

static inline gboolean
is_answering (Test *test)
{
  return ox_conversation_get_answering (ox_chat_view_get_conversation (test->chat));
}

static inline void
send (Test *test, const char *text)
{
  ox_composer_set_text (test->composer, text);
  ox_composer_activate (test->composer);
  g_assert_true (is_answering (test));
}

static inline GtkWidget *
find (Test *test, GType type, const char *property, const char *value)
{
  return gui_test_find (GTK_WIDGET (test->window), type, property, value);
}

G_END_DECLS
