/* Prepared scenes for screenshots and tests: the real app with an invented library and a scripted engine.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-scene.h"

#include "ox-disclosure.h"
#include "ox-permission-dialog.h"
#include "ox-scene-engine.h"
#include "ox-scene-texts.h"

#include <glib/gstdio.h>
#include <math.h>

/* The window has settled when nothing changed for so long; scenes in mid-work wait until their progress is told. */
#define CHECK_MS 100
#define QUIET_CHECKS 5
#define PROGRESS_CHECKS 16
#define SLOW_CHECKS 300

typedef struct {
  const char *name;
  OxSceneScript script;
  const char *open;  /* title of the conversation that is shown */
  gboolean send;     /* a message is sent */
  gboolean no_model; /* there is none */
} Scene;

static const Scene scenes[] = {
  { "welcome", OX_SCENE_ANSWER, NULL, FALSE, TRUE },
  { "chat", OX_SCENE_ANSWER, "River gauge spike", FALSE, FALSE },
  { "new-chat", OX_SCENE_ANSWER, NULL, FALSE, FALSE },
  { "streaming", OX_SCENE_WRITING, NULL, TRUE, FALSE },
  { "prefill", OX_SCENE_READING, "Letter to the water board", TRUE, FALSE },
  { "loading", OX_SCENE_LOADING, NULL, TRUE, FALSE },
  { "error", OX_SCENE_FAILING, "Übersetzung Mietvertrag", TRUE, FALSE },
  { "chooser", OX_SCENE_ANSWER, "River gauge spike", FALSE, FALSE },
  { "rtl-chat", OX_SCENE_ANSWER, "מתכון לחלה", FALSE, FALSE },
  { "undo", OX_SCENE_ANSWER, "Letter to the water board", FALSE, FALSE },
  { "narrow-home", OX_SCENE_ANSWER, "River gauge spike", FALSE, FALSE },
  { "models", OX_SCENE_ANSWER, "River gauge spike", FALSE, FALSE },
  { "preferences", OX_SCENE_ANSWER, "River gauge spike", FALSE, FALSE },
  { "preferences-performance", OX_SCENE_ANSWER, "River gauge spike", FALSE, FALSE },
  { "shortcuts", OX_SCENE_ANSWER, "River gauge spike", FALSE, FALSE },
  { "thinking", OX_SCENE_THINKING, NULL, TRUE, FALSE },
  { "tools", OX_SCENE_TOOLS, NULL, TRUE, FALSE },
  { "tools-open", OX_SCENE_TOOLS, NULL, TRUE, FALSE },
  { "full", OX_SCENE_FULL, "River gauge spike", FALSE, FALSE },
  { "dropped", OX_SCENE_FULL, "Sourdough timing for 24 °C", TRUE, FALSE },
  { "usage", OX_SCENE_ANSWER, "River gauge spike", FALSE, FALSE },
  { "permission", OX_SCENE_ANSWER, "River gauge spike", FALSE, FALSE },
};

typedef struct {
  const Scene *scene;
  OxApplication *application;
  OxWindow *window;
  gboolean staged;
  gboolean staged_again;
  gboolean loading;
  guint checks;
} Play;

static char *folder;

static const Scene *
get_scene (void)
{
  const char *name = g_getenv ("OXINFER_SCENE");
  if (name == NULL || name[0] == '\0')
    return NULL;
  for (guint i = 0; i < G_N_ELEMENTS (scenes); i++)
    if (g_str_equal (scenes[i].name, name))
      return &scenes[i];
  g_error ("There is no scene “%s”", name);
}

/**
 * ox_scene_prepare_data:
 *
 * Puts a fresh, temporary folder in the place of the person's own data. To be called before anything asks where data is.
 */
void
ox_scene_prepare_data (void)
{
  const Scene *scene = get_scene ();
  if (scene == NULL)
    return;

  g_autoptr (GError) error = NULL;
  folder = g_dir_make_tmp ("oxinfer-scene-XXXXXX", &error);
  if (folder == NULL)
    g_error ("No folder for the scene: %s", error->message);
  g_autofree char *models = g_build_filename (folder, "scene-models", NULL);
  g_mkdir (models, 0700);
  g_setenv ("XDG_DATA_HOME", folder, TRUE);
  g_setenv ("HF_HUB_CACHE", folder, TRUE);
  g_setenv ("OXINFER_MODELS", models, TRUE);
  g_setenv ("GSETTINGS_BACKEND", "memory", FALSE);
  if (scene->no_model)
    return;

  gboolean many = g_str_equal (scene->name, "models") || g_str_equal (scene->name, "chooser");
  const char *const names[] = { "Gemma 3 1B.gguf", "Gemma 4 E4B.gguf", many ? "Gemma 4 E4B-assistant.gguf" : NULL,
                                many ? "Gemma 3 27B.gguf" : NULL, "Falcon (damaged).gguf" };
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    if (names[i] == NULL)
      continue;
    g_autofree char *path = g_build_filename (models, names[i], NULL);
    g_file_set_contents (path, "GGUF", 4, NULL);
  }
}

/**
 * ox_scene_prepare_display:
 *
 * Direction and text size of the scene. To be called once GTK has started.
 */
void
ox_scene_prepare_display (void)
{
  if (get_scene () == NULL)
    return;
  if (g_strcmp0 (g_getenv ("OXINFER_SCENE_RTL"), "1") == 0)
    gtk_widget_set_default_direction (GTK_TEXT_DIR_RTL);
  const char *scale = g_getenv ("OXINFER_SCENE_TEXT_SCALE");
  if (scale != NULL)
    g_object_set (gtk_settings_get_default (), "gtk-xft-dpi", (int) lround (96 * 1024 * g_ascii_strtod (scale, NULL)),
                  NULL);
}

/**
 * ox_scene_get_backend:
 *
 * Returns: (nullable): the scripted engine, if there is a scene
 */
const OxEngineBackend *
ox_scene_get_backend (void)
{
  return get_scene () != NULL ? ox_scene_engine_get_backend () : NULL;
}

/**
 * ox_scene_fill_store:
 * @store: a store that is being opened
 *
 * Puts the invented library in.
 */
void
ox_scene_fill_store (OxStore *store)
{
  const Scene *scene = get_scene ();
  if (scene == NULL || scene->no_model)
    return;

  guint n;
  const OxSceneChat *chats = ox_scene_get_chats (&n);
  gint64 now = g_get_real_time ();
  for (guint i = 0; i < n; i++) {
    g_autofree char *id = g_strdup_printf ("scene-%u", i);
    /* A minute apart, so that the order stays; noon-ish days ago never fall on the day before. */
    gint64 time = now - chats[i].days * G_TIME_SPAN_DAY - i * G_TIME_SPAN_SECOND;
    OxConversationRecord record = { .id = id,
                                    .title = (char *) chats[i].title,
                                    .title_is_custom = TRUE,
                                    .pinned = chats[i].pinned,
                                    .created = time,
                                    .updated = time };
    GPtrArray *messages = g_ptr_array_new_with_free_func ((GDestroyNotify) ox_message_record_free);
    for (guint m = 0; chats[i].messages[m] != NULL; m++) {
      OxMessageRecord *message = g_new0 (OxMessageRecord, 1);
      gboolean answer = m % 2 == 1;
      message->id = g_strdup_printf ("scene-%u-%u", i, m);
      message->conversation_id = g_strdup (id);
      message->position = m;
      message->role = answer ? OX_ROLE_ASSISTANT : OX_ROLE_USER;
      message->text = g_strdup (chats[i].messages[m]);
      message->created = time;
      if (answer) {
        message->model_name = g_strdup ("Gemma 4 E4B");
        message->statistics = (OxStatistics) { .prompt_tokens = 570,
                                               .answer_tokens = 412,
                                               .context_length = 8192,
                                               .prefill_seconds = 2.3,
                                               .decode_seconds = 22.15,
                                               .first_token_seconds = 2.4 };
        if (i == 0) {
          OxToolEntry entry = { .id = (char *) "call_1",
                                .name = (char *) "calculate",
                                .arguments = (char *) "{\"expression\": \"1.09 - (0.47 + 0.46) / 2\"}",
                                .result = (char *) "{\"result\": \"0.625\"}" };
          message->thinking = g_strdup (ox_scene_thinking);
          message->thinking_seconds = 12;
          message->tools = ox_tool_entries_new ();
          g_ptr_array_add (message->tools, ox_tool_entry_copy (&entry));
        }
        if (g_str_equal (chats[i].title, "Übersetzung Mietvertrag")) {
          message->state = OX_MESSAGE_STOPPED;
          message->statistics.answer_tokens = 31;
          message->statistics.decode_seconds = 1.7;
        }
      }
      g_ptr_array_add (messages, message);
    }
    ox_store_add_messages (store, &record, messages, NULL, NULL);
  }
}

/* Brings the window into the state that the scene is about. */
static void
stage (Play *play)
{
  const Scene *scene = play->scene;
  GtkWidget *window = GTK_WIDGET (play->window);
  OxChatView *chat = ox_window_get_chat_view (play->window);

  OxConversation *shown = ox_chat_view_get_conversation (chat);
  if (g_str_equal (scene->name, "dropped"))
    ox_conversation_set_flag (shown, "drop-oldest", TRUE);
  if (scene->script == OX_SCENE_WRITING || scene->script == OX_SCENE_THINKING || scene->script == OX_SCENE_TOOLS)
    ox_conversation_set_flag (shown, "thinking", TRUE);

  if (g_str_equal (scene->name, "streaming") || scene->script == OX_SCENE_THINKING || scene->script == OX_SCENE_TOOLS)
    ox_chat_view_send (chat, ox_scene_streaming_question);
  else if (scene->send)
    ox_chat_view_send (chat, ox_scene_long_question);
  if (g_str_equal (scene->name, "undo")) {
    GListModel *conversations = G_LIST_MODEL (ox_application_get_conversations (play->application));
    g_autoptr (OxConversation) first = g_list_model_get_item (conversations, 0);
    ox_window_delete_conversation (play->window, first);
  }
  if (g_str_equal (scene->name, "prefill"))
    ox_composer_set_text (ox_chat_view_get_composer (chat), "And keep the tone friendly");
  if (g_str_equal (scene->name, "narrow-home"))
    ox_window_show_library (play->window);
  if (g_str_equal (scene->name, "chooser"))
    gtk_widget_activate_action (window, "win.choose-model", NULL);
  if (g_str_equal (scene->name, "models"))
    gtk_widget_activate_action (window, "win.models", NULL);
  if (g_str_equal (scene->name, "full"))
    ox_composer_set_text (ox_chat_view_get_composer (chat), "And what about gauge 5?");
  if (g_str_equal (scene->name, "permission")) {
    g_autoptr (OxPermission) permission =
      ox_permission_new ("send_mail", "{\"to\": \"board@example.org\", \"subject\": \"Gauge 4\", \"text\": "
                                      "\"The reading of 21 November is wrong.\"}");
    adw_dialog_present (ox_permission_dialog_new (permission), window);
  }
  if (g_str_equal (scene->name, "preferences-performance"))
    g_action_group_activate_action (G_ACTION_GROUP (play->application), "preferences", NULL);
  if (g_str_equal (scene->name, "preferences") || g_str_equal (scene->name, "shortcuts"))
    g_action_group_activate_action (G_ACTION_GROUP (play->application), scene->name, NULL);
}

static gboolean
can_stage (Play *play)
{
  OxModelLibrary *library = ox_application_get_library (play->application);
  OxConversationList *conversations = ox_application_get_conversations (play->application);
  OxEngine *engine = ox_application_get_engine (play->application);

  if (play->scene->no_model)
    return g_str_equal (ox_window_get_page (play->window), "welcome");
  if (!ox_model_library_get_ready (library) || !ox_conversation_list_get_loaded (conversations))
    return FALSE;
  if (play->scene->script == OX_SCENE_LOADING || ox_engine_get_state (engine) == OX_ENGINE_READY)
    return TRUE;
  if (!play->loading && ox_model_library_get_selected (library) != NULL) {
    g_autoptr (OxJob) job = ox_engine_load (engine, ox_model_entry_get_path (ox_model_library_get_selected (library)));
    play->loading = TRUE;
  }
  return FALSE;
}

static void
open_conversation (Play *play)
{
  GListModel *conversations = G_LIST_MODEL (ox_application_get_conversations (play->application));
  for (guint i = 0; i < g_list_model_get_n_items (conversations); i++) {
    g_autoptr (OxConversation) conversation = g_list_model_get_item (conversations, i);
    if (g_strcmp0 (ox_conversation_get_title (conversation), play->scene->open) == 0)
      ox_window_open_conversation (play->window, conversation);
  }
}

static GtkWidget *
find_widget (GtkWidget *widget, GType type)
{
  if (G_TYPE_CHECK_INSTANCE_TYPE (widget, type))
    return widget;
  for (GtkWidget *child = gtk_widget_get_first_child (widget); child != NULL;
       child = gtk_widget_get_next_sibling (child)) {
    GtkWidget *found = find_widget (child, type);
    if (found != NULL)
      return found;
  }
  return NULL;
}

static void
open_rows (GtkWidget *widget)
{
  if (OX_IS_DISCLOSURE (widget))
    ox_disclosure_set_open (OX_DISCLOSURE (widget), TRUE);
  else
    for (GtkWidget *child = gtk_widget_get_first_child (widget); child != NULL;
         child = gtk_widget_get_next_sibling (child))
      open_rows (child);
}

/* What can be done only once the first stage has come to rest. */
static void
stage_again (Play *play)
{
  const char *name = play->scene->name;
  GtkWidget *chat = GTK_WIDGET (ox_window_get_chat_view (play->window));

  if (g_str_equal (name, "tools-open"))
    open_rows (chat);
  if (g_str_equal (name, "usage"))
    gtk_menu_button_popup (GTK_MENU_BUTTON (find_widget (
      GTK_WIDGET (ox_chat_view_get_composer (ox_window_get_chat_view (play->window))), GTK_TYPE_MENU_BUTTON)));
  if (g_str_equal (name, "preferences-performance"))
    adw_preferences_dialog_set_visible_page_name (
      ADW_PREFERENCES_DIALOG (adw_application_window_get_visible_dialog (ADW_APPLICATION_WINDOW (play->window))),
      "performance");
}

static gboolean
check_cb (gpointer user_data)
{
  Play *play = user_data;
  OxChatView *chat = ox_window_get_chat_view (play->window);
  OxConversation *shown = ox_chat_view_get_conversation (chat);

  play->checks++;
  if (play->checks > SLOW_CHECKS)
    g_error ("The scene does not settle");
  if (!play->staged) {
    if (!can_stage (play))
      return G_SOURCE_CONTINUE;
    if (play->scene->open != NULL &&
        (shown == NULL || g_strcmp0 (ox_conversation_get_title (shown), play->scene->open) != 0)) {
      open_conversation (play);
      return G_SOURCE_CONTINUE;
    }
    if (!ox_chat_view_is_settled (chat))
      return G_SOURCE_CONTINUE;
    play->staged = TRUE;
    play->checks = 0;
    stage (play);
    return G_SOURCE_CONTINUE;
  }
  if (play->checks < (play->scene->send ? PROGRESS_CHECKS : QUIET_CHECKS) || !ox_chat_view_is_settled (chat))
    return G_SOURCE_CONTINUE;

  if (!play->staged_again) {
    play->staged_again = TRUE;
    play->checks = 0;
    stage_again (play);
    return G_SOURCE_CONTINUE;
  }

  const char *ready = g_getenv ("OXINFER_SCENE_READY");
  if (ready != NULL)
    g_file_set_contents (ready, "ready\n", -1, NULL);
  g_object_unref (play->window);
  g_free (play);
  return G_SOURCE_REMOVE;
}

/**
 * ox_scene_play:
 * @application: the app
 * @window: its window
 *
 * Brings @window into the state that the scene is about, and tells when that is done.
 */
void
ox_scene_play (OxApplication *application, OxWindow *window)
{
  const Scene *scene = get_scene ();
  if (scene == NULL)
    return;

  ox_scene_engine_set_script (scene->script, ox_scene_streaming_answer);
  Play *play = g_new0 (Play, 1);
  play->scene = scene;
  play->application = application;
  play->window = g_object_ref (window);
  g_timeout_add (CHECK_MS, check_cb, play);
}

static void
remove_folder (const char *path)
{
  g_autoptr (GDir) dir = g_dir_open (path, 0, NULL);
  const char *name;
  while (dir != NULL && (name = g_dir_read_name (dir)) != NULL) {
    g_autofree char *child = g_build_filename (path, name, NULL);
    if (g_file_test (child, G_FILE_TEST_IS_DIR) && !g_file_test (child, G_FILE_TEST_IS_SYMLINK))
      remove_folder (child);
    else
      g_unlink (child);
  }
  g_rmdir (path);
}

/**
 * ox_scene_clean_up:
 *
 * Removes the temporary folder, at the end of the app.
 */
void
ox_scene_clean_up (void)
{
  if (folder != NULL)
    remove_folder (folder);
  g_clear_pointer (&folder, g_free);
}
