/* See ox-message.h.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-message.h"

#include "ox-store-record.h"
#include "ox-thread-checks.h"

#include <string.h>

struct _OxMessage {
  GObject parent_instance;

  char *id;
  OxRole role;
  GString *text;
  GString *thinking;
  OxMessageState state;
  char *error;
  char *error_details;
  int error_code;
  char *model_name;
  gint64 created;
  OxEndReason end_reason;
  OxStatistics statistics;
  double load_progress;
  guint prefill_done;
  guint prefill_total;
  GPtrArray *tools; /* OxToolEntry */
  double thinking_seconds;
  gint64 thinking_since;
  guint dropped_messages;
};

G_DEFINE_ENUM_TYPE (OxMessageState,
                    ox_message_state,
                    G_DEFINE_ENUM_VALUE (OX_MESSAGE_COMPLETE, "complete"),
                    G_DEFINE_ENUM_VALUE (OX_MESSAGE_WAITING, "waiting"),
                    G_DEFINE_ENUM_VALUE (OX_MESSAGE_LOADING, "loading"),
                    G_DEFINE_ENUM_VALUE (OX_MESSAGE_READING, "reading"),
                    G_DEFINE_ENUM_VALUE (OX_MESSAGE_WRITING, "writing"),
                    G_DEFINE_ENUM_VALUE (OX_MESSAGE_STOPPED, "stopped"),
                    G_DEFINE_ENUM_VALUE (OX_MESSAGE_INTERRUPTED, "interrupted"),
                    G_DEFINE_ENUM_VALUE (OX_MESSAGE_FAILED, "failed"))

G_DEFINE_ENUM_TYPE (OxMessageRole,
                    ox_message_role,
                    G_DEFINE_ENUM_VALUE (OX_ROLE_SYSTEM, "system"),
                    G_DEFINE_ENUM_VALUE (OX_ROLE_USER, "user"),
                    G_DEFINE_ENUM_VALUE (OX_ROLE_ASSISTANT, "assistant"))

G_DEFINE_FINAL_TYPE (OxMessage, ox_message, G_TYPE_OBJECT)

enum {
  PROP_0,
  PROP_ID,
  PROP_ROLE,
  PROP_TEXT,
  PROP_THINKING,
  PROP_STATE,
  PROP_ERROR,
  PROP_ERROR_DETAILS,
  PROP_ERROR_CODE,
  PROP_MODEL_NAME,
  PROP_CREATED,
  PROP_LOAD_PROGRESS,
  PROP_PREFILL_DONE,
  PROP_PREFILL_TOTAL,
  PROP_ANSWER_TOKENS,
  PROP_DECODE_RATE,
  PROP_FIRST_TOKEN_SECONDS,
  PROP_END_REASON,
  PROP_THINKING_SECONDS,
  PROP_DROPPED_MESSAGES,
  N_PROPS
};

enum { APPENDED, THINKING_APPENDED, TOOL_CHANGED, FINISHED, N_SIGNALS };

static GParamSpec *props[N_PROPS];
static guint signals[N_SIGNALS];

static void
ox_message_get_property (GObject *object, guint prop_id, GValue *value, GParamSpec *pspec)
{
  OxMessage *self = OX_MESSAGE (object);

  switch (prop_id) {
  case PROP_ID:
    g_value_set_string (value, self->id);
    break;
  case PROP_ROLE:
    g_value_set_enum (value, self->role);
    break;
  case PROP_TEXT:
    g_value_set_string (value, self->text->str);
    break;
  case PROP_THINKING:
    g_value_set_string (value, self->thinking->str);
    break;
  case PROP_STATE:
    g_value_set_enum (value, self->state);
    break;
  case PROP_ERROR:
    g_value_set_string (value, self->error);
    break;
  case PROP_ERROR_DETAILS:
    g_value_set_string (value, self->error_details);
    break;
  case PROP_ERROR_CODE:
    g_value_set_int (value, self->error_code);
    break;
  case PROP_MODEL_NAME:
    g_value_set_string (value, self->model_name);
    break;
  case PROP_CREATED:
    g_value_set_int64 (value, self->created);
    break;
  case PROP_LOAD_PROGRESS:
    g_value_set_double (value, self->load_progress);
    break;
  case PROP_PREFILL_DONE:
    g_value_set_uint (value, self->prefill_done);
    break;
  case PROP_PREFILL_TOTAL:
    g_value_set_uint (value, self->prefill_total);
    break;
  case PROP_ANSWER_TOKENS:
    g_value_set_uint (value, self->statistics.answer_tokens);
    break;
  case PROP_DECODE_RATE:
    g_value_set_double (value, ox_message_get_decode_rate (self));
    break;
  case PROP_FIRST_TOKEN_SECONDS:
    g_value_set_double (value, self->statistics.first_token_seconds);
    break;
  case PROP_END_REASON:
    g_value_set_int (value, self->end_reason);
    break;
  case PROP_THINKING_SECONDS:
    g_value_set_double (value, ox_message_get_thinking_seconds (self));
    break;
  case PROP_DROPPED_MESSAGES:
    g_value_set_uint (value, self->dropped_messages);
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, prop_id, pspec);
  }
}

static void
ox_message_finalize (GObject *object)
{
  OxMessage *self = OX_MESSAGE (object);

  g_free (self->id);
  g_string_free (self->text, TRUE);
  g_string_free (self->thinking, TRUE);
  g_free (self->error);
  g_free (self->error_details);
  g_free (self->model_name);
  g_ptr_array_unref (self->tools);
  G_OBJECT_CLASS (ox_message_parent_class)->finalize (object);
}

static void
ox_message_class_init (OxMessageClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GParamFlags flags = G_PARAM_READABLE | G_PARAM_STATIC_STRINGS | G_PARAM_EXPLICIT_NOTIFY;

  object_class->get_property = ox_message_get_property;
  object_class->finalize = ox_message_finalize;

  props[PROP_ID] = g_param_spec_string ("id", NULL, NULL, NULL, flags);
  props[PROP_ROLE] = g_param_spec_enum ("role", NULL, NULL, OX_TYPE_MESSAGE_ROLE, OX_ROLE_USER, flags);
  props[PROP_TEXT] = g_param_spec_string ("text", NULL, NULL, "", flags);
  props[PROP_THINKING] = g_param_spec_string ("thinking", NULL, NULL, "", flags);
  props[PROP_STATE] = g_param_spec_enum ("state", NULL, NULL, OX_TYPE_MESSAGE_STATE, OX_MESSAGE_COMPLETE, flags);
  props[PROP_ERROR] = g_param_spec_string ("error", NULL, NULL, NULL, flags);
  props[PROP_ERROR_DETAILS] = g_param_spec_string ("error-details", NULL, NULL, NULL, flags);
  props[PROP_ERROR_CODE] = g_param_spec_int ("error-code", NULL, NULL, -1, G_MAXINT, -1, flags);
  props[PROP_MODEL_NAME] = g_param_spec_string ("model-name", NULL, NULL, NULL, flags);
  props[PROP_CREATED] = g_param_spec_int64 ("created", NULL, NULL, G_MININT64, G_MAXINT64, 0, flags);
  props[PROP_LOAD_PROGRESS] = g_param_spec_double ("load-progress", NULL, NULL, 0, 1, 0, flags);
  props[PROP_PREFILL_DONE] = g_param_spec_uint ("prefill-done", NULL, NULL, 0, G_MAXUINT, 0, flags);
  props[PROP_PREFILL_TOTAL] = g_param_spec_uint ("prefill-total", NULL, NULL, 0, G_MAXUINT, 0, flags);
  props[PROP_ANSWER_TOKENS] = g_param_spec_uint ("answer-tokens", NULL, NULL, 0, G_MAXUINT, 0, flags);
  props[PROP_DECODE_RATE] = g_param_spec_double ("decode-rate", NULL, NULL, 0, G_MAXDOUBLE, 0, flags);
  props[PROP_FIRST_TOKEN_SECONDS] = g_param_spec_double ("first-token-seconds", NULL, NULL, 0, G_MAXDOUBLE, 0, flags);
  props[PROP_END_REASON] = g_param_spec_int ("end-reason", NULL, NULL, 0, OX_END_ERROR, OX_END_STOP, flags);
  props[PROP_THINKING_SECONDS] = g_param_spec_double ("thinking-seconds", NULL, NULL, 0, G_MAXDOUBLE, 0, flags);
  props[PROP_DROPPED_MESSAGES] = g_param_spec_uint ("dropped-messages", NULL, NULL, 0, G_MAXUINT, 0, flags);
  g_object_class_install_properties (object_class, N_PROPS, props);

  signals[APPENDED] = g_signal_new ("appended", OX_TYPE_MESSAGE, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1,
                                    G_TYPE_STRING | G_SIGNAL_TYPE_STATIC_SCOPE);
  signals[THINKING_APPENDED] = g_signal_new ("thinking-appended", OX_TYPE_MESSAGE, G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                                             NULL, G_TYPE_NONE, 1, G_TYPE_STRING | G_SIGNAL_TYPE_STATIC_SCOPE);
  signals[TOOL_CHANGED] =
    g_signal_new ("tool-changed", OX_TYPE_MESSAGE, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1, G_TYPE_UINT);
  signals[FINISHED] =
    g_signal_new ("finished", OX_TYPE_MESSAGE, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
}

static void
ox_message_init (OxMessage *self)
{
  self->text = g_string_new (NULL);
  self->thinking = g_string_new (NULL);
  self->tools = ox_tool_entries_new ();
  self->error_code = -1;
}

OxMessage *
ox_message_new (OxRole role, const char *text)
{
  OxMessage *self = g_object_new (OX_TYPE_MESSAGE, NULL);
  g_autofree char *valid = g_utf8_make_valid (text, -1);

  OX_ASSERT_MAIN_THREAD ();
  self->id = g_uuid_string_random ();
  self->role = role;
  self->created = g_get_real_time ();
  g_string_assign (self->text, valid);
  return self;
}

OxMessage *
ox_message_new_answer (const char *model_name)
{
  OxMessage *self = ox_message_new (OX_ROLE_ASSISTANT, "");

  self->state = OX_MESSAGE_WAITING;
  self->model_name = g_strdup (model_name);
  return self;
}

OxMessage *
ox_message_new_from_record (const OxMessageRecord *record)
{
  OxMessage *self = g_object_new (OX_TYPE_MESSAGE, NULL);

  OX_ASSERT_MAIN_THREAD ();
  self->id = g_strdup (record->id);
  self->role = record->role;
  self->state = record->state;
  self->created = record->created;
  self->error_code = record->error_code;
  self->error = g_strdup (record->error);
  self->error_details = g_strdup (record->error_details);
  self->model_name = g_strdup (record->model_name);
  self->end_reason = record->end_reason;
  self->statistics = record->statistics;
  self->thinking_seconds = record->thinking_seconds;
  self->dropped_messages = record->dropped_messages;
  if (record->tools != NULL) {
    g_ptr_array_unref (self->tools);
    self->tools = ox_tool_entries_copy (record->tools);
  }
  g_string_assign (self->text, record->text != NULL ? record->text : "");
  g_string_assign (self->thinking, record->thinking != NULL ? record->thinking : "");
  return self;
}

OxMessageRecord *
ox_message_to_record (OxMessage *self, const char *conversation_id, gint64 position)
{
  OxMessageRecord *record = g_new0 (OxMessageRecord, 1);

  OX_ASSERT_MAIN_THREAD ();
  record->id = g_strdup (self->id);
  record->conversation_id = g_strdup (conversation_id);
  record->position = position;
  record->role = self->role;
  record->text = g_strndup (self->text->str, self->text->len);
  record->thinking = self->thinking->len > 0 ? g_strndup (self->thinking->str, self->thinking->len) : NULL;
  record->state = self->state;
  record->error_code = self->error_code;
  record->error = g_strdup (self->error);
  record->error_details = g_strdup (self->error_details);
  record->model_name = g_strdup (self->model_name);
  record->created = self->created;
  record->end_reason = self->end_reason;
  record->statistics = self->statistics;
  record->tools = self->tools->len > 0 ? ox_tool_entries_copy (self->tools) : NULL;
  record->thinking_seconds = ox_message_get_thinking_seconds (self);
  record->dropped_messages = self->dropped_messages;
  return record;
}

const char *
ox_message_get_id (OxMessage *self)
{
  return self->id;
}

OxRole
ox_message_get_role (OxMessage *self)
{
  return self->role;
}

const char *
ox_message_get_text (OxMessage *self)
{
  OX_ASSERT_MAIN_THREAD ();
  return self->text->str;
}

gsize
ox_message_get_text_length (OxMessage *self)
{
  return self->text->len;
}

const char *
ox_message_get_thinking (OxMessage *self)
{
  return self->thinking->str;
}

OxMessageState
ox_message_get_state (OxMessage *self)
{
  return self->state;
}

static gboolean
is_live (OxMessageState state)
{
  return state >= OX_MESSAGE_WAITING && state <= OX_MESSAGE_WRITING;
}

gboolean
ox_message_is_live (OxMessage *self)
{
  return is_live (self->state);
}

gint64
ox_message_get_created (OxMessage *self)
{
  return self->created;
}

const char *
ox_message_get_model_name (OxMessage *self)
{
  return self->model_name;
}

const char *
ox_message_get_error (OxMessage *self)
{
  return self->error;
}

const char *
ox_message_get_error_details (OxMessage *self)
{
  return self->error_details;
}

int
ox_message_get_error_code (OxMessage *self)
{
  return self->error_code;
}

double
ox_message_get_load_progress (OxMessage *self)
{
  return self->load_progress;
}

void
ox_message_get_prefill (OxMessage *self, guint *done, guint *total)
{
  *done = self->prefill_done;
  *total = self->prefill_total;
}

const OxStatistics *
ox_message_get_statistics (OxMessage *self)
{
  return &self->statistics;
}

double
ox_message_get_decode_rate (OxMessage *self)
{
  return ox_statistics_get_decode_rate (&self->statistics);
}

OxEndReason
ox_message_get_end_reason (OxMessage *self)
{
  return self->end_reason;
}

guint
ox_message_get_n_tools (OxMessage *self)
{
  return self->tools->len;
}

const OxToolEntry *
ox_message_get_tool (OxMessage *self, guint index)
{
  return index < self->tools->len ? self->tools->pdata[index] : NULL;
}

double
ox_message_get_thinking_seconds (OxMessage *self)
{
  double seconds = self->thinking_seconds;

  if (self->thinking_since != 0)
    seconds += (double) MAX (ox_clock_now () - self->thinking_since, 0) / G_USEC_PER_SEC;
  return seconds;
}

gboolean
ox_message_is_thinking (OxMessage *self)
{
  return self->thinking_since != 0;
}

guint
ox_message_get_dropped_messages (OxMessage *self)
{
  return self->dropped_messages;
}

void
ox_message_put_tool (OxMessage *self, guint index, const OxToolEntry *entry)
{
  OX_ASSERT_MAIN_THREAD ();
  g_return_if_fail (index <= self->tools->len);
  if (index == self->tools->len) {
    g_ptr_array_add (self->tools, ox_tool_entry_copy (entry));
  } else {
    if (ox_tool_entry_equal (self->tools->pdata[index], entry))
      return;
    ox_tool_entry_free (self->tools->pdata[index]);
    self->tools->pdata[index] = ox_tool_entry_copy (entry);
  }
  g_signal_emit (self, signals[TOOL_CHANGED], 0, index);
}

void
ox_message_set_thinking_time (OxMessage *self, double seconds, gint64 since)
{
  OX_ASSERT_MAIN_THREAD ();
  if (self->thinking_seconds == seconds && self->thinking_since == since)
    return;
  self->thinking_seconds = seconds;
  self->thinking_since = since;
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_THINKING_SECONDS]);
}

void
ox_message_set_dropped_messages (OxMessage *self, guint n)
{
  OX_ASSERT_MAIN_THREAD ();
  if (self->dropped_messages == n)
    return;
  self->dropped_messages = n;
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_DROPPED_MESSAGES]);
}

void
ox_message_set_text (OxMessage *self, const char *text)
{
  g_autofree char *valid = g_utf8_make_valid (text, -1);

  OX_ASSERT_MAIN_THREAD ();
  if (strcmp (self->text->str, valid) == 0)
    return;
  g_string_assign (self->text, valid);
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_TEXT]);
}

void
ox_message_append (OxMessage *self, const char *piece)
{
  OX_ASSERT_MAIN_THREAD ();
  if (*piece == '\0')
    return;
  g_string_append (self->text, piece);
  g_signal_emit (self, signals[APPENDED], 0, piece);
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_TEXT]);
}

void
ox_message_append_thinking (OxMessage *self, const char *piece)
{
  OX_ASSERT_MAIN_THREAD ();
  if (*piece == '\0')
    return;
  g_string_append (self->thinking, piece);
  g_signal_emit (self, signals[THINKING_APPENDED], 0, piece);
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_THINKING]);
}

void
ox_message_set_state (OxMessage *self, OxMessageState state)
{
  gboolean was_live = is_live (self->state);

  OX_ASSERT_MAIN_THREAD ();
  if (self->state == state)
    return;
  self->state = state;
  if (is_live (state) && self->error != NULL) {
    g_clear_pointer (&self->error, g_free);
    g_clear_pointer (&self->error_details, g_free);
    self->error_code = -1;
    g_object_notify_by_pspec (G_OBJECT (self), props[PROP_ERROR]);
  }
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_STATE]);
  if (was_live && !is_live (state))
    g_signal_emit (self, signals[FINISHED], 0);
}

void
ox_message_set_model_name (OxMessage *self, const char *model_name)
{
  OX_ASSERT_MAIN_THREAD ();
  if (g_set_str (&self->model_name, model_name))
    g_object_notify_by_pspec (G_OBJECT (self), props[PROP_MODEL_NAME]);
}

void
ox_message_set_load_progress (OxMessage *self, double fraction)
{
  OX_ASSERT_MAIN_THREAD ();
  fraction = CLAMP (fraction, 0, 1);
  if (self->load_progress == fraction)
    return;
  self->load_progress = fraction;
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_LOAD_PROGRESS]);
}

void
ox_message_set_prefill (OxMessage *self, guint done, guint total)
{
  OX_ASSERT_MAIN_THREAD ();
  g_object_freeze_notify (G_OBJECT (self));
  if (self->prefill_total != total) {
    self->prefill_total = total;
    g_object_notify_by_pspec (G_OBJECT (self), props[PROP_PREFILL_TOTAL]);
  }
  if (self->prefill_done != done) {
    self->prefill_done = done;
    g_object_notify_by_pspec (G_OBJECT (self), props[PROP_PREFILL_DONE]);
  }
  g_object_thaw_notify (G_OBJECT (self));
}

void
ox_message_set_statistics (OxMessage *self, const OxStatistics *statistics)
{
  gboolean first_token = self->statistics.first_token_seconds != statistics->first_token_seconds;
  gboolean tokens = self->statistics.answer_tokens != statistics->answer_tokens;

  OX_ASSERT_MAIN_THREAD ();
  self->statistics = *statistics;
  g_object_freeze_notify (G_OBJECT (self));
  if (first_token)
    g_object_notify_by_pspec (G_OBJECT (self), props[PROP_FIRST_TOKEN_SECONDS]);
  if (tokens)
    g_object_notify_by_pspec (G_OBJECT (self), props[PROP_ANSWER_TOKENS]);
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_DECODE_RATE]);
  g_object_thaw_notify (G_OBJECT (self));
}

void
ox_message_set_end_reason (OxMessage *self, OxEndReason reason)
{
  OX_ASSERT_MAIN_THREAD ();
  if (self->end_reason == reason)
    return;
  self->end_reason = reason;
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_END_REASON]);
}

void
ox_message_fail (OxMessage *self, int code, const char *error, const char *details)
{
  OX_ASSERT_MAIN_THREAD ();
  self->error_code = code;
  g_set_str (&self->error, error);
  g_set_str (&self->error_details, details);
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_ERROR]);
  ox_message_set_end_reason (self, OX_END_ERROR);
  ox_message_set_state (self, OX_MESSAGE_FAILED);
}
