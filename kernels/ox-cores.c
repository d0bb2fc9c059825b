/* How many cores this process may use: affinity mask, cgroup limits, hyper-threads counted once.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Reads the first line of a small file without its newline. */
static bool
read_line (const char *path, char *line, size_t size)
{
  FILE *file = fopen (path, "re");
  bool ok;

  if (file == NULL)
    return false;
  ok = fgets (line, (int) size, file) != NULL;
  fclose (file);
  if (ok)
    line[strcspn (line, "\n")] = 0;
  return ok;
}

static unsigned
whole_cores (long long quota, long long period)
{
  if (quota <= 0 || period <= 0)
    return 0;
  return (unsigned) ((quota + period - 1) / period < 65536 ? (quota + period - 1) / period : 65536);
}

static unsigned
smaller_limit (unsigned a, unsigned b)
{
  return a == 0 ? b : b == 0 ? a : a < b ? a : b;
}

/* Version 2: "max 100000" or "150000 100000" in cpu.max. */
static unsigned
quota_v2 (const char *folder)
{
  char path[1200], line[64];
  long long quota, period;

  snprintf (path, sizeof path, "%s/cpu.max", folder);
  if (!read_line (path, line, sizeof line) || sscanf (line, "%lld %lld", &quota, &period) != 2)
    return 0;
  return whole_cores (quota, period);
}

static unsigned
quota_v1 (const char *folder)
{
  char path[1200], line[64];
  long long quota, period;

  snprintf (path, sizeof path, "%s/cpu.cfs_quota_us", folder);
  if (!read_line (path, line, sizeof line) || sscanf (line, "%lld", &quota) != 1)
    return 0;
  snprintf (path, sizeof path, "%s/cpu.cfs_period_us", folder);
  if (!read_line (path, line, sizeof line) || sscanf (line, "%lld", &period) != 1)
    return 0;
  return whole_cores (quota, period);
}

/* A limit holds for all groups below the one that has it: the smallest on the way from @group up to the root counts. Inside
 * a container the path may not exist, but the container's own root does. */
static unsigned
quota_upwards (const char *root, const char *group, unsigned (*read_quota) (const char *folder))
{
  char folder[1100];
  size_t root_length = strlen (root);
  unsigned limit = 0;

  if (snprintf (folder, sizeof folder, "%s%s", root, group) >= (int) sizeof folder)
    return 0;
  while (true) {
    char *slash;
    limit = smaller_limit (limit, read_quota (folder));
    slash = strrchr (folder, '/');
    if (strlen (folder) <= root_length || slash == NULL)
      return limit;
    *slash = 0;
    if (strlen (folder) < root_length)
      return limit;
  }
}

/* True when the comma-separated @list has the controller "cpu". */
static bool
has_cpu_controller (const char *list)
{
  while (*list != 0) {
    size_t length = strcspn (list, ",");
    if (length == 3 && strncmp (list, "cpu", 3) == 0)
      return true;
    list += length + (list[length] == ',');
  }
  return false;
}

unsigned
ox_cpu_quota (const char *proc_self_cgroup, const char *cgroup_root)
{
  FILE *file = fopen (proc_self_cgroup, "re");
  char line[1024];
  unsigned limit = 0;

  if (file == NULL)
    return 0;
  while (fgets (line, sizeof line, file) != NULL) {
    char *controllers = strchr (line, ':'), *group;

    line[strcspn (line, "\n")] = 0;
    if (controllers == NULL || (group = strchr (controllers + 1, ':')) == NULL)
      continue;
    *group++ = 0;
    controllers++;
    if (strcmp (group, "/") == 0)
      *group = 0;
    if (*controllers == 0) {
      limit = smaller_limit (limit, quota_upwards (cgroup_root, group, quota_v2));
    } else if (has_cpu_controller (controllers)) {
      char root[1024];
      if (snprintf (root, sizeof root, "%s/cpu", cgroup_root) >= (int) sizeof root)
        continue;
      limit = smaller_limit (limit, quota_upwards (root, group, quota_v1));
    }
  }
  fclose (file);
  return limit;
}

/* Whether @cpu is the first allowed thread of its core. @siblings: "0,64" or "0-1", as the kernel writes it. */
static bool
first_of_core (const char *siblings, unsigned cpu, const cpu_set_t *allowed, size_t set_bytes)
{
  while (*siblings != 0) {
    char *end;
    unsigned long first = strtoul (siblings, &end, 10), last = first;

    if (end == siblings)
      return true;
    if (*end == '-')
      last = strtoul (end + 1, &end, 10);
    for (unsigned long other = first; other <= last && other < cpu; other++)
      if (CPU_ISSET_S (other, set_bytes, allowed))
        return false;
    siblings = end + (*end == ',');
    if (*end != ',' && *end != 0)
      return true;
  }
  return true;
}

unsigned
ox_cpu_count_mask (const char *cpu_root, const void *mask, size_t set_bytes)
{
  const cpu_set_t *allowed = mask;
  unsigned cores = 0;

  for (unsigned cpu = 0; cpu < set_bytes * 8; cpu++) {
    char path[1200], siblings[256];

    if (!CPU_ISSET_S (cpu, set_bytes, allowed))
      continue;
    snprintf (path, sizeof path, "%s/cpu%u/topology/thread_siblings_list", cpu_root, cpu);
    if (!read_line (path, siblings, sizeof siblings) || first_of_core (siblings, cpu, allowed, set_bytes))
      cores++;
  }
  return cores;
}

/* FNV-1a */
static uint64_t
hash_mask (const cpu_set_t *mask, size_t bytes)
{
  const unsigned char *byte = (const unsigned char *) mask;
  uint64_t hash = 0xcbf29ce484222325u;

  for (size_t i = 0; i < bytes; i++)
    hash = (hash ^ byte[i]) * 0x100000001b3u;
  return hash;
}

static void
count_mask (OxCoreCount *count)
{
  /* The mask of a machine may be larger than cpu_set_t; the kernel says EINVAL until it fits. */
  for (size_t cpus = CPU_SETSIZE; cpus <= 1u << 20; cpus *= 4) {
    size_t set_bytes = CPU_ALLOC_SIZE (cpus);
    cpu_set_t *allowed = CPU_ALLOC (cpus);
    bool done = false;

    if (allowed == NULL)
      break;
    CPU_ZERO_S (set_bytes, allowed);
    if (sched_getaffinity (0, set_bytes, allowed) == 0) {
      uint64_t hash = hash_mask (allowed, set_bytes);

      /* Asking for each processor's siblings is slow where there are hundreds. */
      if (count->mask_cores == 0 || hash != count->mask) {
        count->mask = hash;
        count->mask_cores = ox_cpu_count_mask ("/sys/devices/system/cpu", allowed, set_bytes);
        count->mask_cpus = (unsigned) CPU_COUNT_S (set_bytes, allowed);
      }
      done = count->mask_cores > 0;
    }
    CPU_FREE (allowed);
    if (done)
      return;
  }
  count->mask_cores = 0;
}

void
ox_cpu_count_cores (OxCoreCount *count)
{
  unsigned quota = ox_cpu_quota ("/proc/self/cgroup", "/sys/fs/cgroup");

  count_mask (count);
  if (count->mask_cores == 0) {
    long online = sysconf (_SC_NPROCESSORS_ONLN);
    count->cores = count->cpus = online > 0 ? (unsigned) online : 1;
  } else {
    count->cores = count->mask_cores;
    count->cpus = count->mask_cpus;
  }
  count->cores = smaller_limit (count->cores, quota);
  count->cpus = smaller_limit (count->cpus, quota);
}

unsigned
ox_cpu_allowed_cores (void)
{
  OxCoreCount count = { 0 };

  ox_cpu_count_cores (&count);
  return count.cores;
}
