/* A conversation: its messages, and the composer below them.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-chat-view.h"

#include "ox-chat-job.h"
#include "ox-context-meter.h"
#include "ox-message-list.h"
#include "ox-model-chooser.h"
#include "ox-rename-popover.h"
#include "ox-widget.h"

#include <glib/gi18n.h>

struct _OxChatView {
  AdwBin parent_instance;

  AdwWindowTitle *title;
  GtkMenuButton *menu_button;
  AdwBanner *banner;
  AdwToastOverlay *toasts;
  GtkRevealer *jump_revealer;
  GtkStack *stack;
  GtkLabel *empty_label;
  GtkFlowBox *cards;
  OxMessageList *messages;
  OxComposer *composer;
  OxModelChooser *chooser;

  OxEngine *engine;
  OxModelLibrary *library;
  OxStore *store;
  GSettings *settings;
  OxContextMeter *meter;
  GSimpleAction *tools_action;

  OxConversation *conversation;
  gboolean narrow;
  gboolean setting_draft;
  gboolean send_when_ready; /* sent before the models were known */
};

G_DEFINE_FINAL_TYPE (OxChatView, ox_chat_view, ADW_TYPE_BIN)

enum { PROP_0, PROP_TITLE, PROP_NARROW, N_PROPS };

static GParamSpec *properties[N_PROPS];

/* What a new chat offers to those who want to see how it is done. */
static const struct {
  const char *icon_name;
  const char *title;
  const char *subtitle;
  const char *prompt;
} examples[] = {
  { "ox-think-symbolic", N_ ("Explain Something"), N_ ("In plain words, step by step"),
    N_ ("Explain in plain words how a heat pump works.") },
  { "document-edit-symbolic", N_ ("Write a Letter"), N_ ("Friendly, formal or short"),
    N_ ("Write a short, friendly letter to my neighbours about the summer party.") },
  { "view-list-bullet-symbolic", N_ ("Sum Up a Text"), N_ ("Paste it behind the request"),
    N_ ("Sum up the following text in three sentences:\n\n") },
  { "ox-chat-symbolic", N_ ("Collect Ideas"), N_ ("For names, plans and presents"),
    N_ ("Give me five ideas for a rainy afternoon with children.") },
};

/* Model */

static gboolean
can_think (OxModelEntry *entry)
{
  const OxModelPlan *plan = entry != NULL ? ox_model_entry_get_plan (entry) : NULL;
  return plan != NULL && (plan->capabilities & OX_CAPABILITY_THINK) != 0;
}

/* Who answers the next message: the conversation's own model while it is there, else the one chosen in the app. */
static OxModelEntry *
get_entry (OxChatView *self)
{
  if (self->library == NULL)
    return NULL;
  const char *path = self->conversation != NULL ? ox_conversation_get_model_path (self->conversation) : NULL;
  OxModelEntry *entry = path != NULL ? ox_model_library_find (self->library, path) : NULL;
  if (entry == NULL || !ox_model_entry_get_usable (entry))
    entry = ox_model_library_get_selected (self->library);
  return entry;
}

static gboolean
can_call_tools (OxModelEntry *entry)
{
  const OxModelPlan *plan = entry != NULL ? ox_model_entry_get_plan (entry) : NULL;
  return plan != NULL && (plan->capabilities & OX_CAPABILITY_TOOLS) != 0;
}

static void
update_tools (OxChatView *self)
{
  gboolean wanted = self->settings != NULL && g_settings_get_boolean (self->settings, "tools");
  gboolean on = self->conversation != NULL && ox_conversation_get_flag (self->conversation, "tools", TRUE);
  g_simple_action_set_enabled (self->tools_action, wanted && can_call_tools (get_entry (self)));
  g_simple_action_set_state (self->tools_action, g_variant_new_boolean (on));
}

static void
tools_change_cb (GSimpleAction *action, GVariant *value, gpointer user_data)
{
  OxChatView *self = user_data;
  if (self->conversation != NULL)
    ox_conversation_set_flag (self->conversation, "tools", g_variant_get_boolean (value));
}

/* As this conversation has it, or else as it was chosen last. */
static void
update_think (OxChatView *self)
{
  gboolean think = self->settings != NULL && g_settings_get_boolean (self->settings, "think");
  if (self->conversation != NULL)
    think = ox_conversation_get_flag (self->conversation, "thinking", think);
  ox_composer_set_think (self->composer, can_think (get_entry (self)), think);
}

static void
think_toggled_cb (OxChatView *self, gboolean think)
{
  g_settings_set_boolean (self->settings, "think", think);
  if (self->conversation != NULL)
    ox_conversation_set_flag (self->conversation, "thinking", think);
}

static void
update_banner (OxChatView *self, OxModelEntry *entry)
{
  const char *notice = self->store != NULL ? ox_store_get_notice (self->store) : NULL;
  const char *path = self->conversation != NULL ? ox_conversation_get_model_path (self->conversation) : NULL;
  g_autofree char *text = NULL;
  const char *button = NULL;

  if (notice != NULL) {
    text = g_strdup (notice);
  } else if (self->conversation != NULL && !ox_conversation_get_saved (self->conversation)) {
    text = g_strdup (_ ("This chat could not be saved. It is tried again with the next message."));
  } else if (entry != NULL && path != NULL && ox_model_library_get_ready (self->library) &&
             g_strcmp0 (path, ox_model_entry_get_path (entry)) != 0) {
    g_autofree char *name = g_filename_display_basename (path);
    /* Translators: a file name, then the name of a model. */
    text =
      g_strdup_printf (_ ("%s cannot be used any more, so this chat uses %s."), name, ox_model_entry_get_name (entry));
    button = _ ("Choose _Model");
  }
  if (text != NULL) {
    g_autofree char *escaped = g_markup_escape_text (text, -1);
    adw_banner_set_title (self->banner, escaped);
    adw_banner_set_button_label (self->banner, button);
    if (!adw_banner_get_revealed (self->banner))
      gtk_accessible_announce (GTK_ACCESSIBLE (self->banner), text, GTK_ACCESSIBLE_ANNOUNCEMENT_PRIORITY_HIGH);
  }
  adw_banner_set_revealed (self->banner, text != NULL);
}

static void
update_model (OxChatView *self)
{
  OxModelEntry *entry = get_entry (self);
  g_autofree char *placeholder = NULL;
  g_autofree char *ready = NULL;

  if (entry != NULL) {
    const char *name = ox_model_entry_get_name (entry);
    /* Translators: what stands in the empty text field; name of a model. */
    placeholder = g_strdup_printf (_ ("Message %s"), name);
    ready = g_strdup_printf (_ ("%s is ready. It runs on this computer and needs no network."), name);
  } else {
    gboolean looking = !ox_model_library_get_ready (self->library);
    placeholder = g_strdup (looking ? _ ("Message") : _ ("Choose a model first"));
    ready =
      g_strdup (looking ? _ ("Looking for models") : _ ("No model can be used at present. Choose or import one."));
  }
  ox_composer_set_placeholder (self->composer, placeholder);
  ox_composer_set_can_send (self->composer, entry != NULL || !ox_model_library_get_ready (self->library));
  gtk_label_set_label (self->empty_label, ready);
  ox_model_chooser_set_entry (self->chooser, entry);
  ox_context_meter_set_model_path (self->meter, entry != NULL ? ox_model_entry_get_path (entry) : NULL);
  update_think (self);
  update_tools (self);
  update_banner (self, entry);

  if (entry != NULL && self->send_when_ready) {
    self->send_when_ready = FALSE;
    ox_composer_activate (self->composer);
  }
}

static void
model_chosen_cb (OxChatView *self, OxModelEntry *entry)
{
  if (self->conversation != NULL)
    ox_conversation_set_model_path (self->conversation, ox_model_entry_get_path (entry));
  ox_model_library_set_selected (self->library, entry);
  update_model (self);
  gtk_widget_grab_focus (GTK_WIDGET (self->composer));
}

/* Conversation */

static void
update_usage (OxChatView *self)
{
  OxContextUse use;
  gboolean known = ox_context_meter_get_use (self->meter, &use);
  gboolean drop = self->conversation != NULL && ox_conversation_get_flag (self->conversation, "drop-oldest", FALSE);
  ox_composer_set_usage (self->composer, known ? &use : NULL, drop);
}

static void
drop_oldest_cb (OxChatView *self, gboolean drop)
{
  if (self->conversation == NULL)
    return;
  ox_conversation_set_flag (self->conversation, "drop-oldest", drop);
  update_usage (self);
}

static void
conversation_settings_cb (OxChatView *self)
{
  update_think (self);
  update_tools (self);
  update_usage (self);
}

static OxMessage *
get_last_answer (OxChatView *self)
{
  guint n = self->conversation != NULL ? ox_conversation_get_length (self->conversation) : 0;
  OxMessage *message = n > 0 ? ox_conversation_get_message (self->conversation, n - 1) : NULL;
  return message != NULL && ox_message_get_role (message) == OX_ROLE_ASSISTANT ? message : NULL;
}

static void
answering_cb (OxChatView *self)
{
  gboolean answering = self->conversation != NULL && ox_conversation_get_answering (self->conversation);
  OxMessage *answer = get_last_answer (self);

  /* What comes next would fail likewise. */
  if (!answering && answer != NULL && ox_message_get_state (answer) == OX_MESSAGE_FAILED)
    ox_composer_unqueue (self->composer);
  ox_composer_set_busy (self->composer, answering);
  if (!answering)
    update_usage (self);
}

static void
title_cb (OxChatView *self)
{
  adw_window_title_set_title (self->title,
                              self->conversation != NULL ? ox_conversation_get_title (self->conversation) : "");
  g_object_notify_by_pspec (G_OBJECT (self), properties[PROP_TITLE]);
}

static void
update_page (OxChatView *self)
{
  gboolean empty = self->conversation == NULL || ox_conversation_get_length (self->conversation) == 0;
  /* One that is being fetched is not empty; it just shows nothing yet. */
  if (self->conversation != NULL && !ox_conversation_get_loaded (self->conversation))
    empty = FALSE;
  gtk_stack_set_visible_child_name (self->stack, empty ? "empty" : "messages");
  gtk_widget_set_visible (GTK_WIDGET (self->menu_button), !empty);
}

static void
saved_cb (OxChatView *self)
{
  update_banner (self, get_entry (self));
}

static void
loaded_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr (OxChatView) self = user_data;
  g_autoptr (GError) error = NULL;

  if (!ox_conversation_load_finish (OX_CONVERSATION (source), result, &error)) {
    if (source == G_OBJECT (self->conversation) && !g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED)) {
      AdwToast *toast = adw_toast_new_format (_ ("This chat could not be read: %s"), error->message);
      adw_toast_set_use_markup (toast, FALSE);
      ox_chat_view_add_toast (self, toast);
    }
    return;
  }
  if (source != G_OBJECT (self->conversation))
    return;
  update_page (self);
  update_usage (self);
}

static void
draft_changed_cb (OxChatView *self)
{
  if (self->setting_draft || self->conversation == NULL)
    return;
  g_autofree char *text = ox_composer_dup_text (self->composer);
  ox_conversation_set_draft (self->conversation, text);
}

static void
show_draft (OxChatView *self, const char *draft)
{
  self->setting_draft = TRUE;
  ox_composer_set_text (self->composer, draft);
  self->setting_draft = FALSE;
}

/* Answers */

static void
send_cb (OxChatView *self)
{
  g_autofree char *text = ox_composer_dup_text (self->composer);
  ox_chat_view_send (self, text);
}

static void
retry_cb (OxChatView *self, OxMessage *message)
{
  OxModelEntry *entry = get_entry (self);
  if (entry == NULL)
    return;
  g_autoptr (OxChatJob) job = ox_chat_job_retry (self->engine, self->conversation, message,
                                                 ox_model_entry_get_path (entry), ox_model_entry_get_name (entry));
  if (job != NULL)
    ox_message_list_jump (self->messages);
}

static void
continue_cb (OxChatView *self, OxMessage *message)
{
  OxModelEntry *entry = get_entry (self);
  if (entry == NULL)
    return;
  g_autoptr (OxChatJob) job = ox_chat_job_continue (self->engine, self->conversation, message,
                                                    ox_model_entry_get_path (entry), ox_model_entry_get_name (entry));
  if (job != NULL)
    ox_message_list_jump (self->messages);
}

/* Widgets */

static void
following_cb (OxChatView *self)
{
  gtk_revealer_set_reveal_child (self->jump_revealer, !ox_message_list_get_following (self->messages));
}

static void
jump_cb (OxChatView *self)
{
  ox_message_list_jump (self->messages);
}

static void
banner_clicked_cb (OxChatView *self)
{
  ox_chat_view_choose_model (self);
}

static void
title_pressed_cb (GtkGestureClick *gesture, int n_press, double x, double y, gpointer user_data)
{
  GtkWidget *title = gtk_event_controller_get_widget (GTK_EVENT_CONTROLLER (gesture));
  if (n_press == 2)
    ox_chat_view_rename (OX_CHAT_VIEW (gtk_widget_get_ancestor (title, OX_TYPE_CHAT_VIEW)));
}

static void
example_cb (GtkButton *button, OxChatView *self)
{
  ox_composer_set_text (self->composer, g_object_get_data (G_OBJECT (button), "ox-prompt"));
  gtk_widget_grab_focus (GTK_WIDGET (self->composer));
}

static GtkWidget *
example_new (OxChatView *self, guint i)
{
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 16);
  GtkWidget *icon = gtk_image_new_from_icon_name (examples[i].icon_name);
  gtk_image_set_pixel_size (GTK_IMAGE (icon), 20);
  gtk_widget_add_css_class (icon, "accent");
  gtk_box_append (GTK_BOX (box), icon);

  GtkWidget *labels = gtk_box_new (GTK_ORIENTATION_VERTICAL, 2);
  GtkWidget *title = g_object_new (GTK_TYPE_LABEL, "label", _ (examples[i].title), "xalign", 0.0f, "wrap", TRUE, NULL);
  gtk_widget_add_css_class (title, "heading");
  GtkWidget *subtitle =
    g_object_new (GTK_TYPE_LABEL, "label", _ (examples[i].subtitle), "xalign", 0.0f, "wrap", TRUE, NULL);
  gtk_widget_add_css_class (subtitle, "caption");
  gtk_widget_add_css_class (subtitle, "dimmed");
  gtk_widget_set_valign (labels, GTK_ALIGN_CENTER);
  gtk_box_append (GTK_BOX (labels), title);
  gtk_box_append (GTK_BOX (labels), subtitle);
  gtk_box_append (GTK_BOX (box), labels);

  GtkWidget *button = gtk_button_new ();
  gtk_button_set_child (GTK_BUTTON (button), box);
  gtk_widget_add_css_class (button, "card");
  gtk_widget_add_css_class (button, "ox-bigcard");
  gtk_accessible_update_property (GTK_ACCESSIBLE (button), GTK_ACCESSIBLE_PROPERTY_LABEL, _ (examples[i].title),
                                  GTK_ACCESSIBLE_PROPERTY_DESCRIPTION, _ (examples[i].subtitle), -1);
  g_object_set_data (G_OBJECT (button), "ox-prompt", (gpointer) _ (examples[i].prompt));
  g_signal_connect_object (button, "clicked", G_CALLBACK (example_cb), self, G_CONNECT_DEFAULT);

  GtkWidget *child = gtk_flow_box_child_new ();
  gtk_flow_box_child_set_child (GTK_FLOW_BOX_CHILD (child), button);
  gtk_widget_set_focusable (child, FALSE);
  return child;
}

static void
set_narrow (OxChatView *self, gboolean narrow)
{
  self->narrow = narrow;
  ox_composer_set_narrow (self->composer, narrow);
  ox_message_list_set_narrow (self->messages, narrow);
  ox_model_chooser_set_narrow (self->chooser, narrow);
}

static void
settings_changed_cb (OxChatView *self)
{
  ox_composer_set_enter_sends (self->composer, g_settings_get_boolean (self->settings, "enter-sends"));
  ox_message_list_set_show_statistics (self->messages, g_settings_get_boolean (self->settings, "show-statistics"));
}

static void
ox_chat_view_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  OxChatView *self = OX_CHAT_VIEW (object);

  switch (id) {
  case PROP_TITLE:
    g_value_set_string (value, adw_window_title_get_title (self->title));
    break;
  case PROP_NARROW:
    g_value_set_boolean (value, self->narrow);
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
  }
}

static void
ox_chat_view_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  if (id == PROP_NARROW)
    set_narrow (OX_CHAT_VIEW (object), g_value_get_boolean (value));
  else
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
}

static void
ox_chat_view_dispose (GObject *object)
{
  OxChatView *self = OX_CHAT_VIEW (object);

  if (self->conversation != NULL)
    g_signal_handlers_disconnect_by_data (self->conversation, self);
  g_clear_object (&self->conversation);
  g_clear_object (&self->meter);
  g_clear_object (&self->tools_action);
  g_clear_object (&self->engine);
  g_clear_object (&self->library);
  g_clear_object (&self->store);
  g_clear_object (&self->settings);
  gtk_widget_dispose_template (GTK_WIDGET (object), OX_TYPE_CHAT_VIEW);
  G_OBJECT_CLASS (ox_chat_view_parent_class)->dispose (object);
}

static void
ox_chat_view_class_init (OxChatViewClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);

  object_class->get_property = ox_chat_view_get_property;
  object_class->set_property = ox_chat_view_set_property;
  object_class->dispose = ox_chat_view_dispose;

  properties[PROP_TITLE] = g_param_spec_string ("title", NULL, NULL, NULL, G_PARAM_READABLE | G_PARAM_STATIC_STRINGS);
  properties[PROP_NARROW] =
    g_param_spec_boolean ("narrow", NULL, NULL, FALSE, G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS);
  g_object_class_install_properties (object_class, N_PROPS, properties);

  g_type_ensure (OX_TYPE_COMPOSER);
  g_type_ensure (OX_TYPE_MESSAGE_LIST);
  gtk_widget_class_set_template_from_resource (widget_class, "/org/oxinfer/App/ui/ox-chat-view.ui");
  gtk_widget_class_bind_template_child (widget_class, OxChatView, title);
  gtk_widget_class_bind_template_child (widget_class, OxChatView, menu_button);
  gtk_widget_class_bind_template_child (widget_class, OxChatView, banner);
  gtk_widget_class_bind_template_child (widget_class, OxChatView, toasts);
  gtk_widget_class_bind_template_child (widget_class, OxChatView, jump_revealer);
  gtk_widget_class_bind_template_child (widget_class, OxChatView, stack);
  gtk_widget_class_bind_template_child (widget_class, OxChatView, empty_label);
  gtk_widget_class_bind_template_child (widget_class, OxChatView, cards);
  gtk_widget_class_bind_template_child (widget_class, OxChatView, messages);
  gtk_widget_class_bind_template_child (widget_class, OxChatView, composer);
  gtk_widget_class_bind_template_callback (widget_class, send_cb);
  gtk_widget_class_bind_template_callback (widget_class, ox_chat_view_stop);
  gtk_widget_class_bind_template_callback (widget_class, draft_changed_cb);
  gtk_widget_class_bind_template_callback (widget_class, think_toggled_cb);
  gtk_widget_class_bind_template_callback (widget_class, drop_oldest_cb);
  gtk_widget_class_bind_template_callback (widget_class, retry_cb);
  gtk_widget_class_bind_template_callback (widget_class, continue_cb);
  gtk_widget_class_bind_template_callback (widget_class, following_cb);
  gtk_widget_class_bind_template_callback (widget_class, jump_cb);
  gtk_widget_class_bind_template_callback (widget_class, banner_clicked_cb);
  gtk_widget_class_bind_template_callback (widget_class, title_pressed_cb);
}

static void
ox_chat_view_init (OxChatView *self)
{
  g_autoptr (GSimpleActionGroup) group = g_simple_action_group_new ();

  gtk_widget_init_template (GTK_WIDGET (self));
  self->tools_action = g_simple_action_new_stateful ("tools", NULL, g_variant_new_boolean (TRUE));
  g_signal_connect_object (self->tools_action, "change-state", G_CALLBACK (tools_change_cb), self, G_CONNECT_DEFAULT);
  g_action_map_add_action (G_ACTION_MAP (group), G_ACTION (self->tools_action));
  gtk_widget_insert_action_group (GTK_WIDGET (self), "chat", G_ACTION_GROUP (group));
  ox_menu_button_set_name (self->menu_button, _ ("Chat Menu"));
  for (guint i = 0; i < G_N_ELEMENTS (examples); i++)
    gtk_flow_box_append (self->cards, example_new (self, i));
  self->chooser = OX_MODEL_CHOOSER (ox_model_chooser_new ());
  g_signal_connect_object (self->chooser, "chosen", G_CALLBACK (model_chosen_cb), self, G_CONNECT_SWAPPED);
  ox_composer_add_tool (self->composer, GTK_WIDGET (self->chooser));
}

/**
 * ox_chat_view_set_context:
 * @self: a view
 * @engine: who answers
 * @library: the models there are
 * @store: where messages are kept
 * @settings: the app's settings
 *
 * To be called once, before the first conversation is shown.
 */
void
ox_chat_view_set_context (
  OxChatView *self, OxEngine *engine, OxModelLibrary *library, OxStore *store, GSettings *settings)
{
  self->engine = g_object_ref (engine);
  self->library = g_object_ref (library);
  self->store = g_object_ref (store);
  self->settings = g_object_ref (settings);
  self->meter = ox_context_meter_new (engine);
  ox_model_chooser_set_library (self->chooser, library, engine);
  g_signal_connect_object (self->meter, "changed", G_CALLBACK (update_usage), self, G_CONNECT_SWAPPED);

  g_signal_connect_object (library, "notify::selected", G_CALLBACK (update_model), self, G_CONNECT_SWAPPED);
  g_signal_connect_object (library, "notify::ready", G_CALLBACK (update_model), self, G_CONNECT_SWAPPED);
  g_signal_connect_object (library, "items-changed", G_CALLBACK (update_model), self, G_CONNECT_SWAPPED);
  g_signal_connect_object (store, "notify::notice", G_CALLBACK (saved_cb), self, G_CONNECT_SWAPPED);
  g_signal_connect_object (settings, "changed::enter-sends", G_CALLBACK (settings_changed_cb), self, G_CONNECT_SWAPPED);
  g_signal_connect_object (settings, "changed::show-statistics", G_CALLBACK (settings_changed_cb), self,
                           G_CONNECT_SWAPPED);
  g_signal_connect_object (settings, "changed::tools", G_CALLBACK (update_tools), self, G_CONNECT_SWAPPED);
  settings_changed_cb (self);
  update_model (self);
}

OxConversation *
ox_chat_view_get_conversation (OxChatView *self)
{
  return self->conversation;
}

/**
 * ox_chat_view_set_conversation:
 * @self: a view
 * @conversation: what is shown from now on
 *
 * Answers that are being made in the conversation shown before go on.
 */
void
ox_chat_view_set_conversation (OxChatView *self, OxConversation *conversation)
{
  if (self->conversation == conversation)
    return;
  if (self->conversation != NULL)
    g_signal_handlers_disconnect_by_data (self->conversation, self);
  ox_composer_unqueue (self->composer);
  self->send_when_ready = FALSE;
  g_set_object (&self->conversation, conversation);

  show_draft (self, ox_conversation_get_draft (conversation));
  g_signal_connect_swapped (conversation, "notify::title", G_CALLBACK (title_cb), self);
  g_signal_connect_swapped (conversation, "notify::answering", G_CALLBACK (answering_cb), self);
  g_signal_connect_swapped (conversation, "notify::saved", G_CALLBACK (saved_cb), self);
  g_signal_connect_swapped (conversation, "notify::settings", G_CALLBACK (conversation_settings_cb), self);
  g_signal_connect_swapped (conversation, "items-changed", G_CALLBACK (update_page), self);
  ox_context_meter_set_conversation (self->meter, conversation);
  ox_message_list_set_conversation (self->messages, conversation);
  title_cb (self);
  answering_cb (self);
  update_page (self);
  update_model (self);
  update_usage (self);
  if (!ox_conversation_get_loaded (conversation))
    ox_conversation_load (conversation, NULL, loaded_cb, g_object_ref (self));
}

/**
 * ox_chat_view_send:
 * @self: a view
 * @text: a message
 *
 * Sends @text, if there is a model and no answer is being made.
 */
void
ox_chat_view_send (OxChatView *self, const char *text)
{
  OxModelEntry *entry = get_entry (self);
  if (self->conversation == NULL)
    return;
  if (entry == NULL) {
    /* In the first moments the models are still being looked for: the message stays and is sent then. */
    self->send_when_ready = !ox_model_library_get_ready (self->library);
    return;
  }
  g_autofree char *stripped = g_strstrip (g_strdup (text));
  if (stripped[0] == '\0')
    return;
  if (can_think (entry) && !ox_conversation_get_answering (self->conversation))
    ox_conversation_set_flag (
      self->conversation, "thinking",
      ox_conversation_get_flag (self->conversation, "thinking", g_settings_get_boolean (self->settings, "think")));
  g_autoptr (OxChatJob) job = ox_chat_job_send (self->engine, self->conversation, stripped,
                                                ox_model_entry_get_path (entry), ox_model_entry_get_name (entry));
  if (job == NULL)
    return;
  show_draft (self, "");
  ox_message_list_jump (self->messages);
}

/**
 * ox_chat_view_stop:
 * @self: a view
 *
 * Stops the answer that is being made here. A message that waits for its end is not sent.
 */
void
ox_chat_view_stop (OxChatView *self)
{
  ox_composer_unqueue (self->composer);
  if (self->conversation != NULL)
    ox_conversation_stop (self->conversation);
}

/**
 * ox_chat_view_regenerate:
 * @self: a view
 *
 * Has the last message answered anew.
 */
void
ox_chat_view_regenerate (OxChatView *self)
{
  if (self->conversation != NULL && ox_conversation_get_length (self->conversation) > 0 &&
      !ox_conversation_get_answering (self->conversation))
    retry_cb (self, get_last_answer (self));
}

/**
 * ox_chat_view_copy_answer:
 * @self: a view
 *
 * Puts the last answer on the clipboard.
 */
void
ox_chat_view_copy_answer (OxChatView *self)
{
  OxMessage *answer = get_last_answer (self);
  if (answer == NULL)
    return;
  gdk_clipboard_set_text (gtk_widget_get_clipboard (GTK_WIDGET (self)), ox_message_get_text (answer));
  ox_chat_view_add_toast (self, adw_toast_new (_ ("Copied")));
}

/**
 * ox_chat_view_choose_model:
 * @self: a view
 *
 * Opens the model chooser.
 */
void
ox_chat_view_choose_model (OxChatView *self)
{
  ox_model_chooser_popup (self->chooser);
}

static void
rename_cb (GObject *target, const char *title)
{
  ox_conversation_rename (OX_CONVERSATION (target), title);
}

/**
 * ox_chat_view_rename:
 * @self: a view
 *
 * Lets the person give the conversation another title.
 */
void
ox_chat_view_rename (OxChatView *self)
{
  if (self->conversation != NULL && ox_conversation_get_length (self->conversation) > 0)
    ox_rename_popover_show (GTK_WIDGET (self->title), NULL, G_OBJECT (self->conversation),
                            ox_conversation_get_title (self->conversation), rename_cb);
}

/**
 * ox_chat_view_move_focus:
 * @self: a view
 * @direction: -1 for the message before, 1 for the one after
 */
void
ox_chat_view_move_focus (OxChatView *self, int direction)
{
  ox_message_list_move_focus (self->messages, direction);
}

/**
 * ox_chat_view_add_toast:
 * @self: a view
 * @toast: (transfer full): a toast, which is shown above the composer
 */
void
ox_chat_view_add_toast (OxChatView *self, AdwToast *toast)
{
  adw_toast_overlay_add_toast (self->toasts, toast);
}

OxComposer *
ox_chat_view_get_composer (OxChatView *self)
{
  return self->composer;
}

/**
 * ox_chat_view_is_settled:
 * @self: a view
 *
 * Returns: whether all widgets that are wanted now have been built
 */
gboolean
ox_chat_view_is_settled (OxChatView *self)
{
  return (self->conversation == NULL || ox_conversation_get_loaded (self->conversation)) &&
         ox_message_list_is_settled (self->messages);
}
