/* Facts about this computer, and the clock.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "oxinfer.h"

#include <string.h>

#include "ox-backend.h"
#include "ox-kernels.h"

#define MAX_GPUS 16

#define MAX_DEVICES 16

/* A line "Name:   123 kB" of /proc/meminfo, in bytes; 0 when it is not there. */
static guint64
meminfo_bytes (const char *text, const char *name)
{
  const char *line = strstr (text, name);

  return line != NULL ? g_ascii_strtoull (line + strlen (name), NULL, 10) * 1024 : 0;
}

/* A number in a file of the control group; FALSE when it is missing or "max". */
static gboolean
read_cgroup (const char *path, guint64 *value)
{
  g_autofree char *text = NULL;
  char *end;

  if (!g_file_get_contents (path, &text, NULL, NULL) || !g_ascii_isdigit (text[0]))
    return FALSE;
  *value = g_ascii_strtoull (text, &end, 10);
  return end != text;
}

/* The limit of the control group that we are in, and what is used of it. A sandbox sees its own group at the top. */
static gboolean
cgroup_memory (guint64 *limit, guint64 *used)
{
  g_autofree char *self = NULL;
  g_autofree char *folder = NULL;
  g_autofree char *limit_path = NULL;
  g_autofree char *used_path = NULL;

  if (g_file_get_contents ("/proc/self/cgroup", &self, NULL, NULL) && g_str_has_prefix (self, "0::")) {
    g_strchomp (self);
    folder = g_build_filename ("/sys/fs/cgroup", self + strlen ("0::"), NULL);
    limit_path = g_build_filename (folder, "memory.max", NULL);
    used_path = g_build_filename (folder, "memory.current", NULL);
    if (read_cgroup (limit_path, limit) && read_cgroup (used_path, used))
      return TRUE;
  }
  return read_cgroup ("/sys/fs/cgroup/memory/memory.limit_in_bytes", limit) &&
         read_cgroup ("/sys/fs/cgroup/memory/memory.usage_in_bytes", used);
}

void
ox_platform_get_memory (guint64 *total, guint64 *available)
{
  g_autofree char *meminfo = NULL;
  guint64 limit, used;

  *total = *available = 0;
  if (g_file_get_contents ("/proc/meminfo", &meminfo, NULL, NULL)) {
    *total = meminfo_bytes (meminfo, "MemTotal:");
    *available = meminfo_bytes (meminfo, "MemAvailable:");
  }
  if (cgroup_memory (&limit, &used) && limit < *total) {
    *total = limit;
    *available = MIN (*available, limit > used ? limit - used : 0);
  }
}

/* Drivers are asked once: that can take a tenth of a second. */
static gpointer
probe_gpus (gpointer unused)
{
  OxDevice devices[MAX_GPUS];
  gsize n = ox_backend_probe (devices, G_N_ELEMENTS (devices));
  g_autoptr (GStrvBuilder) names = g_strv_builder_new ();
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);

  /* One that two drivers offer is still one. */
  for (gsize i = 0; i < MIN (n, G_N_ELEMENTS (devices)); i++)
    if (!devices[i].is_software && g_hash_table_add (seen, devices[i].name))
      g_strv_builder_add (names, devices[i].name);
  return g_strv_builder_end (names);
}

char **
ox_platform_find_gpus (void)
{
  static GOnce once = G_ONCE_INIT;

  return g_strdupv (g_once (&once, probe_gpus, NULL));
}

OxPlatform *
ox_platform_query (void)
{
  OxPlatform *platform = g_new0 (OxPlatform, 1);

  platform->cpu = g_strdup (ox_cpu_name ());
  platform->cpu_level = ox_cpu_level_name (ox_kernels ()->flags);
  platform->cores = ox_cpu_allowed_cores ();
  ox_platform_get_memory (&platform->memory_total, &platform->memory_available);
  return platform;
}

void
ox_platform_free (OxPlatform *platform)
{
  if (platform == NULL)
    return;
  g_free (platform->cpu);
  g_free (platform);
}

static OxClockFunc clock_func;
static gpointer clock_data;

gint64
ox_clock_now (void)
{
  return clock_func != NULL ? clock_func (clock_data) : g_get_monotonic_time ();
}

void
ox_clock_set_source (OxClockFunc func, gpointer user_data)
{
  clock_data = user_data;
  clock_func = func;
}
