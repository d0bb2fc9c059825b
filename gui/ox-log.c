/* See ox-log.h.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-log.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Written once, before other threads exist; read by all. */
static GHashTable *category_levels; /* category → greatest GLogLevelFlags shown */
static GLogLevelFlags default_level = G_LOG_LEVEL_WARNING;
static gint64 start_time;

static const struct {
  const char *name;
  GLogLevelFlags level;
} levels[] = {
  { "none", G_LOG_LEVEL_ERROR },      { "error", G_LOG_LEVEL_CRITICAL }, { "warning", G_LOG_LEVEL_WARNING },
  { "message", G_LOG_LEVEL_MESSAGE }, { "info", G_LOG_LEVEL_INFO },      { "debug", G_LOG_LEVEL_DEBUG },
};

static GLogLevelFlags
find_level (const char *name)
{
  for (guint i = 0; i < G_N_ELEMENTS (levels); i++)
    if (strcmp (levels[i].name, name) == 0)
      return levels[i].level;
  return 0;
}

static const char *
level_name (GLogLevelFlags level)
{
  for (guint i = 1; i < G_N_ELEMENTS (levels); i++)
    if (levels[i].level == (level & G_LOG_LEVEL_MASK))
      return levels[i].name;
  return "fatal";
}

gboolean
ox_log_enabled (const char *category, GLogLevelFlags level)
{
  GLogLevelFlags limit = default_level;

  if (category != NULL && category_levels != NULL)
    limit = GPOINTER_TO_UINT (g_hash_table_lookup (category_levels, category)) ?: default_level;
  /* GLib's flags grow as the matter gets lighter. */
  return (level & G_LOG_LEVEL_MASK) <= limit;
}

static GLogWriterOutput
write_line (GLogLevelFlags level, const GLogField *fields, gsize n_fields, gpointer user_data)
{
  const char *domain = NULL;
  const char *category = NULL;
  g_autofree char *message = NULL;

  for (gsize i = 0; i < n_fields; i++) {
    const char *value = fields[i].value;

    if (strcmp (fields[i].key, "MESSAGE") == 0)
      message = fields[i].length < 0 ? g_strdup (value) : g_strndup (value, fields[i].length);
    else if (strcmp (fields[i].key, "OXINFER_CATEGORY") == 0)
      category = value;
    else if (strcmp (fields[i].key, "GLIB_DOMAIN") == 0)
      domain = value;
  }
  if (message == NULL || !ox_log_enabled (category, level))
    return G_LOG_WRITER_HANDLED;
  fprintf (stderr, "%9.3f %-7s %s: %s\n", (double) (g_get_monotonic_time () - start_time) / G_USEC_PER_SEC,
           level_name (level),
           category != NULL ? category
           : domain != NULL ? domain
                            : "app",
           message);
  fflush (stderr);
  return G_LOG_WRITER_HANDLED;
}

void
ox_log_init (void)
{
  const char *text = g_getenv ("OXINFER_LOG");
  g_auto (GStrv) parts = g_strsplit (text != NULL ? text : "", ",", -1);

  start_time = g_get_monotonic_time ();
  category_levels = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  for (guint i = 0; parts[i] != NULL; i++) {
    char *part = g_strstrip (parts[i]);
    char *colon = strchr (part, ':');
    GLogLevelFlags level = find_level (colon != NULL ? colon + 1 : part);

    if (*part == '\0')
      continue;
    if (level == 0)
      fprintf (stderr, "OXINFER_LOG: “%s” is not a level; use error, warning, message, info, debug or none\n",
               colon != NULL ? colon + 1 : part);
    else if (colon != NULL)
      g_hash_table_insert (category_levels, g_strndup (part, colon - part), GUINT_TO_POINTER (level));
    else
      default_level = level;
  }
  /* GLib drops debug lines of domains that nobody asked for before a writer sees them. */
  if (text != NULL)
    g_log_writer_default_set_debug_domains ((const char *const[]) { "all", NULL });
  g_log_set_writer_func (write_line, NULL, NULL);
}
