/* See ox-power-saver.h.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-power-saver.h"

static void
changed_cb (OxEngine *engine, GParamSpec *pspec, GPowerProfileMonitor *monitor)
{
  ox_engine_set_power_saving (engine, g_power_profile_monitor_get_power_saver_enabled (monitor));
}

void
ox_power_saver_follow (OxEngine *engine, GPowerProfileMonitor *monitor)
{
  g_signal_connect_object (monitor, "notify::power-saver-enabled", G_CALLBACK (changed_cb), engine, G_CONNECT_SWAPPED);
  changed_cb (engine, NULL, monitor);
  /* Nobody else need hold the monitor. */
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
