/* See ox-model-entry.h.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-model-entry.h"

#include "ox-engine.h"
#include "ox-model-scan.h"
#include "ox-thread-checks.h"

#include <glib/gi18n.h>
#include <string.h>

struct _OxModelEntry {
  GObject parent_instance;

  char *path;
  char *file_name;
  char *name;
  gboolean drafter;
  OxModelPlan *plan;
  OxModelEntryState state;
  char *reason;
  char *details;
  guint64 file_bytes;
  gboolean loaded;
  gboolean loading;
  double load_progress;
  gboolean selected;
};

G_DEFINE_ENUM_TYPE (OxModelEntryState,
                    ox_model_entry_state,
                    G_DEFINE_ENUM_VALUE (OX_MODEL_ENTRY_OK, "ok"),
                    G_DEFINE_ENUM_VALUE (OX_MODEL_ENTRY_TOO_LARGE, "too-large"),
                    G_DEFINE_ENUM_VALUE (OX_MODEL_ENTRY_DAMAGED, "damaged"),
                    G_DEFINE_ENUM_VALUE (OX_MODEL_ENTRY_UNSUPPORTED, "unsupported"))

G_DEFINE_FINAL_TYPE (OxModelEntry, ox_model_entry, G_TYPE_OBJECT)

enum {
  PROP_0,
  PROP_PATH,
  PROP_NAME,
  PROP_FORMAT,
  PROP_FILE_BYTES,
  PROP_STATE,
  PROP_REASON,
  PROP_LOADED,
  PROP_LOADING,
  PROP_LOAD_PROGRESS,
  PROP_SELECTED,
  N_PROPS
};

static GParamSpec *props[N_PROPS];

static OxModelPlan *
plan_copy (const OxModelPlan *plan)
{
  OxModelPlan *copy = g_memdup2 (plan, sizeof *plan);

  copy->path = g_strdup (plan->path);
  copy->name = g_strdup (plan->name);
  copy->architecture = g_strdup (plan->architecture);
  copy->format = g_strdup (plan->format);
  copy->note = g_strdup (plan->note);
  return copy;
}

static void
plan_copy_free (OxModelPlan *plan)
{
  g_free (plan->path);
  g_free (plan->name);
  g_free (plan->architecture);
  g_free (plan->format);
  g_free (plan->note);
  g_free (plan);
}

static void
ox_model_entry_get_property (GObject *object, guint prop_id, GValue *value, GParamSpec *pspec)
{
  OxModelEntry *self = OX_MODEL_ENTRY (object);

  switch (prop_id) {
  case PROP_PATH:
    g_value_set_string (value, self->path);
    break;
  case PROP_NAME:
    g_value_set_string (value, self->name);
    break;
  case PROP_FORMAT:
    g_value_set_string (value, ox_model_entry_get_format (self));
    break;
  case PROP_FILE_BYTES:
    g_value_set_uint64 (value, self->file_bytes);
    break;
  case PROP_STATE:
    g_value_set_enum (value, self->state);
    break;
  case PROP_REASON:
    g_value_set_string (value, self->reason);
    break;
  case PROP_LOADED:
    g_value_set_boolean (value, self->loaded);
    break;
  case PROP_LOADING:
    g_value_set_boolean (value, self->loading);
    break;
  case PROP_LOAD_PROGRESS:
    g_value_set_double (value, self->load_progress);
    break;
  case PROP_SELECTED:
    g_value_set_boolean (value, self->selected);
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, prop_id, pspec);
  }
}

static void
ox_model_entry_finalize (GObject *object)
{
  OxModelEntry *self = OX_MODEL_ENTRY (object);

  g_free (self->path);
  g_free (self->file_name);
  g_free (self->name);
  g_free (self->reason);
  g_free (self->details);
  g_clear_pointer (&self->plan, plan_copy_free);
  G_OBJECT_CLASS (ox_model_entry_parent_class)->finalize (object);
}

static void
ox_model_entry_class_init (OxModelEntryClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GParamFlags flags = G_PARAM_READABLE | G_PARAM_STATIC_STRINGS | G_PARAM_EXPLICIT_NOTIFY;

  object_class->get_property = ox_model_entry_get_property;
  object_class->finalize = ox_model_entry_finalize;

  props[PROP_PATH] = g_param_spec_string ("path", NULL, NULL, NULL, flags);
  props[PROP_NAME] = g_param_spec_string ("name", NULL, NULL, NULL, flags);
  props[PROP_FORMAT] = g_param_spec_string ("format", NULL, NULL, NULL, flags);
  props[PROP_FILE_BYTES] = g_param_spec_uint64 ("file-bytes", NULL, NULL, 0, G_MAXUINT64, 0, flags);
  props[PROP_STATE] = g_param_spec_enum ("state", NULL, NULL, OX_TYPE_MODEL_ENTRY_STATE, OX_MODEL_ENTRY_OK, flags);
  props[PROP_REASON] = g_param_spec_string ("reason", NULL, NULL, NULL, flags);
  props[PROP_LOADED] = g_param_spec_boolean ("loaded", NULL, NULL, FALSE, flags);
  props[PROP_LOADING] = g_param_spec_boolean ("loading", NULL, NULL, FALSE, flags);
  props[PROP_LOAD_PROGRESS] = g_param_spec_double ("load-progress", NULL, NULL, 0, 1, 0, flags);
  props[PROP_SELECTED] = g_param_spec_boolean ("selected", NULL, NULL, FALSE, flags);
  g_object_class_install_properties (object_class, N_PROPS, props);
}

static void
ox_model_entry_init (OxModelEntry *self)
{
}

/* The state of a usable model, and the reason that goes with it. */
static void
judge_fit (OxModelEntry *self)
{
  if (self->plan->fit == OX_FIT_NOT) {
    g_autofree char *needed = g_format_size (self->plan->memory_needed);
    g_autofree char *available = g_format_size (self->plan->memory_available);

    self->state = OX_MODEL_ENTRY_TOO_LARGE;
    g_free (self->reason);
    self->reason = g_strdup_printf (_ ("It needs %s of memory, and %s are free now."), needed, available);
  } else {
    self->state = OX_MODEL_ENTRY_OK;
    g_set_str (&self->reason, self->plan->note);
  }
}

static void
notify_finding (OxModelEntry *self)
{
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_STATE]);
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_REASON]);
}

static void
set_drafter_reason (OxModelEntry *self, const char *helped)
{
  g_free (self->reason);
  if (helped != NULL)
    /* Translators: name of a model. */
    self->reason = g_strdup_printf (_ ("Makes %s answer sooner: it guesses ahead and is used automatically."), helped);
  else
    self->reason = g_strdup (
      _ ("A helper that makes a larger model answer sooner and cannot chat itself. The model it was made for is not "
         "here."));
}

void
ox_model_entry_set_helped (OxModelEntry *self, const char *name)
{
  g_autofree char *before = g_strdup (self->reason);

  OX_ASSERT_MAIN_THREAD ();
  g_return_if_fail (self->drafter);
  set_drafter_reason (self, name);
  if (g_strcmp0 (before, self->reason) != 0)
    g_object_notify_by_pspec (G_OBJECT (self), props[PROP_REASON]);
}

void
ox_model_entry_update (OxModelEntry *self, const OxModelPlan *plan, const GError *error)
{
  OX_ASSERT_MAIN_THREAD ();
  g_clear_pointer (&self->plan, plan_copy_free);
  g_clear_pointer (&self->details, g_free);
  self->drafter = FALSE;
  g_free (self->name);
  if (plan != NULL) {
    self->plan = plan_copy (plan);
    self->name = plan->name != NULL ? g_strdup (plan->name) : g_strdup (self->file_name);
    self->file_bytes = plan->file_bytes;
    judge_fit (self);
  } else {
    self->name = g_strdup (self->file_name);
    self->drafter = g_error_matches (error, OX_ERROR, OX_ERROR_DRAFTER);
    self->state = self->drafter || g_error_matches (error, OX_ERROR, OX_ERROR_UNSUPPORTED) ? OX_MODEL_ENTRY_UNSUPPORTED
                                                                                           : OX_MODEL_ENTRY_DAMAGED;
    g_free (self->reason);
    self->reason = ox_engine_describe_error (error, self->name);
    self->details = g_strdup (error->message);
  }
  if (self->drafter)
    set_drafter_reason (self, NULL);
  g_object_freeze_notify (G_OBJECT (self));
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_NAME]);
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_FORMAT]);
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_FILE_BYTES]);
  notify_finding (self);
  g_object_thaw_notify (G_OBJECT (self));
}

OxModelEntry *
ox_model_entry_new (const char *path, const OxModelPlan *plan, const GError *error)
{
  OxModelEntry *self = g_object_new (OX_TYPE_MODEL_ENTRY, NULL);

  self->path = g_strdup (path);
  self->file_name = ox_model_scan_dup_name (path);
  ox_model_entry_update (self, plan, error);
  return self;
}

void
ox_model_entry_set_memory_available (OxModelEntry *self, guint64 available)
{
  OxFit fit;

  OX_ASSERT_MAIN_THREAD ();
  if (self->plan == NULL || available == 0)
    return;
  fit = self->plan->memory_needed > available ? OX_FIT_NOT : OX_FIT_WELL;
  self->plan->memory_available = available;
  if ((self->plan->fit == OX_FIT_NOT) == (fit == OX_FIT_NOT))
    return;
  self->plan->fit = fit;
  judge_fit (self);
  notify_finding (self);
}

const char *
ox_model_entry_get_path (OxModelEntry *self)
{
  return self->path;
}

const char *
ox_model_entry_get_name (OxModelEntry *self)
{
  return self->name;
}

const char *
ox_model_entry_get_format (OxModelEntry *self)
{
  return self->plan != NULL ? self->plan->format : NULL;
}

guint64
ox_model_entry_get_file_bytes (OxModelEntry *self)
{
  return self->file_bytes;
}

OxModelEntryState
ox_model_entry_get_state (OxModelEntry *self)
{
  return self->state;
}

gboolean
ox_model_entry_get_usable (OxModelEntry *self)
{
  return self->plan != NULL;
}

const char *
ox_model_entry_get_reason (OxModelEntry *self)
{
  return self->reason;
}

const char *
ox_model_entry_get_details (OxModelEntry *self)
{
  return self->details;
}

const OxModelPlan *
ox_model_entry_get_plan (OxModelEntry *self)
{
  return self->plan;
}

gboolean
ox_model_entry_is_drafter (OxModelEntry *self)
{
  return self->drafter;
}

const char *
ox_model_entry_get_file_name (OxModelEntry *self)
{
  return self->file_name;
}

gboolean
ox_model_entry_get_loaded (OxModelEntry *self)
{
  return self->loaded;
}

gboolean
ox_model_entry_get_loading (OxModelEntry *self)
{
  return self->loading;
}

double
ox_model_entry_get_load_progress (OxModelEntry *self)
{
  return self->load_progress;
}

gboolean
ox_model_entry_get_selected (OxModelEntry *self)
{
  return self->selected;
}

void
ox_model_entry_set_load_state (OxModelEntry *self, gboolean loaded, gboolean loading, double progress)
{
  OX_ASSERT_MAIN_THREAD ();
  g_object_freeze_notify (G_OBJECT (self));
  if (self->load_progress != progress) {
    self->load_progress = progress;
    g_object_notify_by_pspec (G_OBJECT (self), props[PROP_LOAD_PROGRESS]);
  }
  if (self->loaded != loaded) {
    self->loaded = loaded;
    g_object_notify_by_pspec (G_OBJECT (self), props[PROP_LOADED]);
  }
  if (self->loading != loading) {
    self->loading = loading;
    g_object_notify_by_pspec (G_OBJECT (self), props[PROP_LOADING]);
  }
  g_object_thaw_notify (G_OBJECT (self));
}

void
ox_model_entry_set_selected (OxModelEntry *self, gboolean selected)
{
  OX_ASSERT_MAIN_THREAD ();
  if (self->selected == selected)
    return;
  self->selected = selected;
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_SELECTED]);
}
