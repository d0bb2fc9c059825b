/* Power Saver: half the threads at once, and for the models that are loaded later.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-power-saver.h"
#include "support.h"

/* ---- A monitor that says what it is told ---- */

#define TYPE_FAKE_MONITOR (fake_monitor_get_type ())
G_DECLARE_FINAL_TYPE (FakeMonitor, fake_monitor, FAKE, MONITOR, GObject)

struct _FakeMonitor {
  GObject parent_instance;
  gboolean enabled;
};

G_DEFINE_FINAL_TYPE_WITH_CODE (FakeMonitor,
                               fake_monitor,
                               G_TYPE_OBJECT,
                               G_IMPLEMENT_INTERFACE (G_TYPE_INITABLE, NULL)
                                 G_IMPLEMENT_INTERFACE (G_TYPE_POWER_PROFILE_MONITOR, NULL))

static void
fake_monitor_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  g_value_set_boolean (value, FAKE_MONITOR (object)->enabled);
}

static void
fake_monitor_class_init (FakeMonitorClass *klass)
{
  G_OBJECT_CLASS (klass)->get_property = fake_monitor_get_property;
  g_object_class_override_property (G_OBJECT_CLASS (klass), 1, "power-saver-enabled");
}

static void
fake_monitor_init (FakeMonitor *self)
{
}

static void
switch_power_saver (FakeMonitor *monitor, gboolean enabled)
{
  monitor->enabled = enabled;
  g_object_notify (G_OBJECT (monitor), "power-saver-enabled");
}

/* ---- Tests ---- */

typedef struct {
  OxEngine *engine;
  FakeMonitor *monitor;
  char *folder, *model;
} Fixture;

static void
set_up (Fixture *fixture, gconstpointer unused)
{
  fixture->folder = make_temporary_folder ();
  fixture->model = g_build_filename (fixture->folder, "model.gguf", NULL);
  g_assert_true (g_file_set_contents (fixture->model, "ok", -1, NULL));
  fake_engine_set_script (&(FakeScript) { 0 });
  fixture->engine = ox_engine_new (fake_engine_get_backend ());
  fixture->monitor = g_object_new (TYPE_FAKE_MONITOR, NULL);
}

static void
tear_down (Fixture *fixture, gconstpointer unused)
{
  g_assert_true (ox_engine_shutdown (fixture->engine, 5 * G_USEC_PER_SEC));
  run_for (40);
  g_assert_finalize_object (fixture->engine);
  g_assert_finalize_object (fixture->monitor);
  remove_folder (fixture->folder);
  g_free (fixture->folder);
  g_free (fixture->model);
}

static void
load (Fixture *fixture)
{
  g_object_unref (ox_engine_load (fixture->engine, fixture->model));
  run_until (ox_engine_get_state (fixture->engine) == OX_ENGINE_READY && !ox_engine_get_busy (fixture->engine));
}

static void
test_at_once (Fixture *fixture, gconstpointer unused)
{
  load (fixture);
  ox_power_saver_follow (fixture->engine, G_POWER_PROFILE_MONITOR (fixture->monitor));
  g_assert_false (fake_engine_get_power_saving ());
  switch_power_saver (fixture->monitor, TRUE);
  g_assert_true (fake_engine_get_power_saving ());
  switch_power_saver (fixture->monitor, FALSE);
  g_assert_false (fake_engine_get_power_saving ());
}

static void
test_models_come_and_go (Fixture *fixture, gconstpointer unused)
{
  load (fixture);
  ox_power_saver_follow (fixture->engine, G_POWER_PROFILE_MONITOR (fixture->monitor));
  g_object_unref (ox_engine_unload (fixture->engine));
  run_until (ox_engine_get_state (fixture->engine) == OX_ENGINE_EMPTY);
  /* No model: nobody is told. */
  switch_power_saver (fixture->monitor, TRUE);
  g_assert_false (fake_engine_get_power_saving ());
  load (fixture);
  g_assert_true (fake_engine_get_power_saving ());
}

/* It may be on from the beginning. */
static void
test_on_before (Fixture *fixture, gconstpointer unused)
{
  fixture->monitor->enabled = TRUE;
  ox_power_saver_follow (fixture->engine, G_POWER_PROFILE_MONITOR (fixture->monitor));
  load (fixture);
  g_assert_true (fake_engine_get_power_saving ());
}

/* The system's monitor is there or not; either way the app goes on. */
static void
test_system (Fixture *fixture, gconstpointer unused)
{
  ox_power_saver_follow_system (fixture->engine);
  run_until (g_object_get_data (G_OBJECT (fixture->engine), "ox-power-profile-monitor") != NULL);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add ("/power/at-once", Fixture, NULL, set_up, test_at_once, tear_down);
  g_test_add ("/power/models-come-and-go", Fixture, NULL, set_up, test_models_come_and_go, tear_down);
  g_test_add ("/power/on-before", Fixture, NULL, set_up, test_on_before, tear_down);
  g_test_add ("/power/system", Fixture, NULL, set_up, test_system, tear_down);
  return g_test_run ();
}
