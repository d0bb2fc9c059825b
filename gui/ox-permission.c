/* See ox-permission.h.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-permission.h"

#include "ox-thread-checks.h"

struct _OxPermission {
  GObject parent_instance;

  char *tool_name;
  char *arguments;

  GMutex mutex;
  GCond cond;
  gboolean answered;
  gboolean allowed;
};

G_DEFINE_FINAL_TYPE (OxPermission, ox_permission, G_TYPE_OBJECT)

enum { WITHDRAWN, N_SIGNALS };

static guint signals[N_SIGNALS];

static void
ox_permission_finalize (GObject *object)
{
  OxPermission *self = OX_PERMISSION (object);

  g_free (self->tool_name);
  g_free (self->arguments);
  g_mutex_clear (&self->mutex);
  g_cond_clear (&self->cond);
  G_OBJECT_CLASS (ox_permission_parent_class)->finalize (object);
}

static void
ox_permission_class_init (OxPermissionClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = ox_permission_finalize;
  signals[WITHDRAWN] =
    g_signal_new ("withdrawn", OX_TYPE_PERMISSION, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
}

static void
ox_permission_init (OxPermission *self)
{
  g_mutex_init (&self->mutex);
  g_cond_init (&self->cond);
}

OxPermission *
ox_permission_new (const char *tool_name, const char *arguments)
{
  OxPermission *self = g_object_new (OX_TYPE_PERMISSION, NULL);

  self->tool_name = g_strdup (tool_name);
  self->arguments = g_strdup (arguments);
  return self;
}

const char *
ox_permission_get_tool_name (OxPermission *self)
{
  return self->tool_name;
}

const char *
ox_permission_get_arguments (OxPermission *self)
{
  return self->arguments;
}

void
ox_permission_answer (OxPermission *self, gboolean allow)
{
  OX_ASSERT_MAIN_THREAD ();
  g_mutex_lock (&self->mutex);
  if (!self->answered) {
    self->answered = TRUE;
    self->allowed = allow;
    g_cond_broadcast (&self->cond);
  }
  g_mutex_unlock (&self->mutex);
}

gboolean
ox_permission_is_allowed (OxPermission *self)
{
  gboolean allowed;

  g_mutex_lock (&self->mutex);
  allowed = self->allowed;
  g_mutex_unlock (&self->mutex);
  return allowed;
}

static void
cancelled_cb (GCancellable *cancellable, gpointer user_data)
{
  OxPermission *self = user_data;

  g_mutex_lock (&self->mutex);
  g_cond_broadcast (&self->cond);
  g_mutex_unlock (&self->mutex);
}

static gboolean
withdraw_cb (gpointer self)
{
  g_signal_emit (self, signals[WITHDRAWN], 0);
  return G_SOURCE_REMOVE;
}

gboolean
ox_permission_wait (OxPermission *self, GCancellable *cancellable)
{
  gulong id = g_cancellable_connect (cancellable, G_CALLBACK (cancelled_cb), self, NULL);
  gboolean withdrawn;
  gboolean allowed;

  OX_ASSERT_ENGINE_THREAD ();
  g_mutex_lock (&self->mutex);
  while (!self->answered && !g_cancellable_is_cancelled (cancellable))
    g_cond_wait (&self->cond, &self->mutex);
  withdrawn = !self->answered;
  self->answered = TRUE;
  allowed = self->allowed;
  g_mutex_unlock (&self->mutex);
  g_cancellable_disconnect (cancellable, id);
  if (withdrawn)
    g_idle_add_full (G_PRIORITY_DEFAULT, withdraw_cb, g_object_ref (self), g_object_unref);
  return allowed;
}
