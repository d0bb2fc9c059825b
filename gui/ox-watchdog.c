/* A watch on the main loop.
 *
 * A timer that wants to fire every 10 ms notes by how much it came late. Time that the thread spent ready to run, waiting for a
 * processor that other programs held, is not the app's doing: the scheduler's own account of it is taken off.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-watchdog.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define INTERVAL_MS 10
#define REPORT_INTERVAL_US (500 * 1000)
/* Stalls from this length on are listed one by one, with the time when they ended. */
#define LISTED_STALL_MS 20
#define MAX_LISTED_BYTES (64 * 1024)

typedef struct {
  char *path;
  int schedstat;     /* /proc/thread-self/schedstat of the main thread, or -1 */
  gint64 last;       /* µs */
  guint64 last_wait; /* ns */
  double worst_ms;
  guint64 rounds;
  gint64 reported;
  GString *listed;
} Watchdog;

/* Nanoseconds this thread has waited for a processor so far: the second number of schedstat. */
static guint64
run_queue_wait (Watchdog *self)
{
  char text[96];
  ssize_t n;
  unsigned long long on_cpu, waiting;

  if (self->schedstat < 0)
    return 0;
  n = pread (self->schedstat, text, sizeof text - 1, 0);
  if (n <= 0)
    return 0;
  text[n] = '\0';
  return sscanf (text, "%llu %llu", &on_cpu, &waiting) == 2 ? waiting : 0;
}

static void
report (Watchdog *self)
{
  g_autofree char *text =
    g_strdup_printf ("rounds %" G_GUINT64_FORMAT "\nworst %.1f\n%s", self->rounds, self->worst_ms, self->listed->str);

  g_file_set_contents (self->path, text, -1, NULL);
}

static gboolean
tick_cb (gpointer user_data)
{
  Watchdog *self = user_data;
  gint64 now = g_get_monotonic_time ();
  guint64 wait = run_queue_wait (self);
  double wall_ms = (now - self->last) / 1000.0 - INTERVAL_MS;
  double stall_ms = wall_ms - (wait - self->last_wait) / 1e6;

  self->rounds++;
  self->worst_ms = MAX (self->worst_ms, stall_ms);
  if (stall_ms >= LISTED_STALL_MS && self->listed->len < MAX_LISTED_BYTES)
    g_string_append_printf (self->listed, "stall %.3f %.1f %.1f\n", now / 1e6, stall_ms, wall_ms);
  if (now - self->reported > REPORT_INTERVAL_US) {
    report (self);
    self->reported = now;
  }
  self->last = g_get_monotonic_time ();
  self->last_wait = run_queue_wait (self);
  return G_SOURCE_CONTINUE;
}

void
ox_watchdog_start (void)
{
  const char *path = g_getenv ("OXINFER_WATCHDOG");
  Watchdog *self;

  if (path == NULL || *path == '\0')
    return;
  self = g_new0 (Watchdog, 1);
  self->path = g_strdup (path);
  self->listed = g_string_new (NULL);
  self->schedstat = open ("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  self->last = g_get_monotonic_time ();
  self->last_wait = run_queue_wait (self);
  g_timeout_add_full (G_PRIORITY_HIGH, INTERVAL_MS, tick_cb, self, NULL);
}
