/* See ox-power-saver.h.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-power-saver.h"

void
ox_power_saver_follow (OxEngine *engine, GPowerProfileMonitor *monitor)
{
  g_object_bind_property (monitor, "power-saver-enabled", engine, "power-saving", G_BINDING_SYNC_CREATE);
  /* The binding ends with the monitor, which nobody else need hold. */
  g_object_set_data_full (G_OBJECT (engine), "ox-power-profile-monitor", g_object_ref (monitor), g_object_unref);
}

static void
find_in_thread (GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
  g_task_return_pointer (task, g_power_profile_monitor_dup_default (), g_object_unref);
}

static void
found_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr (OxEngine) engine = user_data;
  g_autoptr (GPowerProfileMonitor) monitor = g_task_propagate_pointer (G_TASK (result), NULL);

  if (monitor != NULL)
    ox_power_saver_follow (engine, monitor);
}

void
ox_power_saver_follow_system (OxEngine *engine)
{
  /* Without a source: the engine may not be finalized on another thread. */
  g_autoptr (GTask) task = g_task_new (NULL, NULL, found_cb, g_object_ref (engine));

  g_task_set_source_tag (task, ox_power_saver_follow_system);
  g_task_run_in_thread (task, find_in_thread);
}
