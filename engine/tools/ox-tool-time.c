/* get_date_time: now, here or elsewhere; moving a date by a span; how far two dates are apart.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "tools/ox-tools-private.h"

#include <stdlib.h>
#include <string.h>

#include "tools/ox-tool-json.h"

/* What GDateTime holds is years 1 to 9999; spans beyond that are refused before they are added. */
#define MAX_YEARS 9999
#define SECONDS_PER_DAY 86400.0

const char ox_tool_time_declaration[] =
  "{\"type\":\"function\",\"function\":{\"name\":\"get_date_time\","
  "\"description\":\"The current date, time and weekday; or those of another date. Can add a span, or tell the time "
  "between two dates.\","
  "\"parameters\":{\"type\":\"object\",\"properties\":{"
  "\"zone\":{\"type\":\"string\",\"description\":\"Time zone like Europe/Paris. Left out: the user's\"},"
  "\"date\":{\"type\":\"string\",\"description\":\"Begin here: YYYY-MM-DD or YYYY-MM-DD HH:MM. Left out: now\"},"
  "\"add\":{\"type\":\"string\",\"description\":\"Span to add, like 3 days, -2 weeks, 1 month 4 hours\"},"
  "\"until\":{\"type\":\"string\",\"description\":\"Second date: also tells the time from the first to it\"}"
  "},\"required\":[]}}}";

/* ---- Zones ---- */

static gboolean
zone_name_is_plain (const char *name)
{
  for (const char *p = name; *p != '\0'; p++)
    if (!g_ascii_isalnum (*p) && !strchr ("/_+-:", *p))
      return FALSE;
  return name[0] != '\0' && name[0] != '/' && strlen (name) < 64;
}

/* "Europe/Paris", "UTC", "+02:00", "Paris", "new york". */
static GTimeZone *
find_zone (const char *name, GError **error)
{
  static const char *const areas[] = { "",         "Europe/",    "America/",  "Asia/",   "Africa/",
                                       "Pacific/", "Australia/", "Atlantic/", "Indian/", "America/Argentina/" };
  g_autofree char *plain = g_strstrip (g_strdup (name));

  g_strdelimit (plain, " ", '_');
  if (zone_name_is_plain (plain)) {
    for (gsize i = 0; i < G_N_ELEMENTS (areas); i++) {
      g_autofree char *path = g_strconcat (areas[i], plain, NULL);
      GTimeZone *zone;

      /* A place's name as it is written in the list of zones: each word with a capital. */
      for (char *p = path + strlen (areas[i]); i > 0 && *p != '\0'; p++)
        *p = p == path + strlen (areas[i]) || p[-1] == '_' ? g_ascii_toupper (*p) : g_ascii_tolower (*p);
      zone = g_time_zone_new_identifier (path);
      if (zone)
        return zone;
    }
  }
  g_set_error (
    error, OX_ERROR, OX_ERROR_INVALID,
    "there is no time zone “%s”. Expected a name like Europe/Paris or Asia/Tokyo, UTC, or a distance like +02:00",
    name);
  return NULL;
}

/* ---- Dates ---- */

static GDateTime *
start_of_day (GDateTime *date)
{
  g_autoptr (GTimeZone) zone = g_time_zone_ref (g_date_time_get_timezone (date));

  return g_date_time_new (zone, g_date_time_get_year (date), g_date_time_get_month (date),
                          g_date_time_get_day_of_month (date), 0, 0, 0);
}

static gboolean
matches (const char *text, const char *pattern)
{
  for (; *pattern != '\0'; text++, pattern++)
    if (*pattern == '0' ? !g_ascii_isdigit (*text) : *text != *pattern)
      return FALSE;
  return *text == '\0';
}

/* ISO 8601 and what people and models make of it. */
static GDateTime *
parse_date (const char *text, GTimeZone *zone, const char *what, GError **error)
{
  g_autoptr (GDateTime) now = g_date_time_new_now (zone);
  g_autofree char *plain = g_strstrip (g_ascii_strup (text, -1));
  g_autofree char *iso = NULL;
  GDateTime *date = NULL;

  if (strcmp (plain, "NOW") == 0)
    return g_steal_pointer (&now);
  if (strcmp (plain, "TODAY") == 0 || strcmp (plain, "TOMORROW") == 0 || strcmp (plain, "YESTERDAY") == 0) {
    g_autoptr (GDateTime) today = start_of_day (now);

    date = today ? g_date_time_add_days (today, plain[0] == 'Y' ? -1 : plain[2] == 'M' ? 1 : 0) : NULL;
  } else {
    if (matches (plain, "0000-00-00"))
      iso = g_strconcat (plain, "T00:00:00", NULL);
    else if (matches (plain, "0000-00-00 00:00") || matches (plain, "0000-00-00T00:00"))
      iso = g_strconcat (plain, ":00", NULL);
    else if (matches (plain, "00:00"))
      iso = g_date_time_format (now, "%Y-%m-%dT00:00:00");
    else
      iso = g_strdup (plain);
    if (matches (plain, "00:00"))
      memcpy (iso + strlen ("0000-00-00T"), plain, strlen ("00:00"));
    date = g_date_time_new_from_iso8601 (iso, zone);
  }
  if (!date)
    g_set_error (error, OX_ERROR, OX_ERROR_INVALID,
                 "“%s” is “%s”, which is no date. Expected YYYY-MM-DD, YYYY-MM-DD HH:MM, or now", what, text);
  return date;
}

/* ---- Spans ---- */

typedef enum {
  UNIT_SECONDS,
  UNIT_MINUTES,
  UNIT_HOURS,
  UNIT_DAYS,
  UNIT_WEEKS,
  UNIT_MONTHS,
  UNIT_YEARS,
  UNIT_WORKING_DAYS,
  N_UNITS,
} Unit;

static const struct {
  const char *names; /* between bars */
  double seconds;    /* 0: not a fixed length */
} units[N_UNITS] = {
  [UNIT_SECONDS] = { "|s|sec|secs|second|seconds|", 1 },
  [UNIT_MINUTES] = { "|m|min|mins|minute|minutes|", 60 },
  [UNIT_HOURS] = { "|h|hr|hrs|hour|hours|", 3600 },
  [UNIT_DAYS] = { "|d|day|days|", SECONDS_PER_DAY },
  [UNIT_WEEKS] = { "|w|wk|week|weeks|", 7 * SECONDS_PER_DAY },
  [UNIT_MONTHS] = { "|mo|month|months|", 0 },
  [UNIT_YEARS] = { "|y|yr|year|years|", 0 },
  [UNIT_WORKING_DAYS] = { "|weekday|weekdays|workday|workdays|", 0 },
};

static GDateTime *
add_working_days (GDateTime *date, int days)
{
  int step = days < 0 ? -1 : 1;
  /* Whole weeks at once, so that a large number costs nothing. */
  GDateTime *at = g_date_time_add_weeks (date, days / 5);

  for (int left = days % 5; at && left != 0;) {
    GDateTime *next = g_date_time_add_days (at, step);

    g_date_time_unref (at);
    at = next;
    if (at && g_date_time_get_day_of_week (at) <= 5)
      left -= step;
  }
  return at;
}

static GDateTime *
add_one (GDateTime *date, double number, Unit unit)
{
  gboolean whole = number == (int) number;

  switch (unit) {
  case UNIT_DAYS:
    if (whole)
      return g_date_time_add_days (date, (int) number);
    break;
  case UNIT_WEEKS:
    if (whole)
      return g_date_time_add_weeks (date, (int) number);
    break;
  case UNIT_MONTHS:
    return g_date_time_add_months (date, (int) number);
  case UNIT_YEARS:
    return g_date_time_add_years (date, (int) number);
  case UNIT_WORKING_DAYS:
    return add_working_days (date, (int) number);
  case UNIT_SECONDS:
  case UNIT_MINUTES:
  case UNIT_HOURS:
  case N_UNITS:
  default:
    break;
  }
  return g_date_time_add (date, (GTimeSpan) (number * units[unit].seconds * G_TIME_SPAN_SECOND));
}

static gboolean
parse_unit (const char *begin, gsize len, Unit *unit)
{
  g_autofree char *lower = g_ascii_strdown (begin, (gssize) len);
  g_autofree char *key = g_strdup_printf ("|%s|", lower);

  for (Unit i = 0; i < N_UNITS; i++) {
    if (strstr (units[i].names, key)) {
      *unit = i;
      return TRUE;
    }
  }
  return FALSE;
}

static gboolean
skip_word (const char **p, const char *word)
{
  gsize len = strlen (word);

  if (g_ascii_strncasecmp (*p, word, len) != 0 || g_ascii_isalnum ((*p)[len]))
    return FALSE;
  *p += len;
  return TRUE;
}

static void
skip_space (const char **p)
{
  while (g_ascii_isspace (**p) || **p == ',')
    (*p)++;
}

/* Adds "1 month 4 hours" to @date. */
static GDateTime *
add_span (GDateTime *date, const char *text, GError **error)
{
  g_autoptr (GDateTime) at = g_date_time_ref (date);
  g_autofree char *lower = g_ascii_strdown (text, -1);
  double sign = g_str_has_suffix (g_strchomp (lower), " ago") ? -1 : 1, last_sign = 1;
  const char *p = lower;
  guint n = 0;

  for (skip_space (&p); *p != '\0'; skip_space (&p)) {
    const char *begin;
    GDateTime *next;
    double number;
    char *end;
    Unit unit;

    if (n > 0 && (skip_word (&p, "and") || skip_word (&p, "ago")))
      continue;
    /* A sign stands for what follows, too: "-1 day 4 hours" is 28 hours back. */
    if (*p == '+' || *p == '-') {
      last_sign = *p++ == '-' ? -1 : 1;
      skip_space (&p);
    }
    number = g_ascii_isdigit (*p) || *p == '.' ? g_ascii_strtod (p, &end) : 0;
    if (!g_ascii_isdigit (*p) && *p != '.')
      break;
    p = end;
    skip_space (&p);
    if (!skip_word (&p, "working") && !skip_word (&p, "business")) {
      for (begin = p; g_ascii_isalpha (*p); p++)
        ;
      if (!parse_unit (begin, (gsize) (p - begin), &unit))
        break;
    } else {
      skip_space (&p);
      if (!skip_word (&p, "days") && !skip_word (&p, "day"))
        break;
      unit = UNIT_WORKING_DAYS;
    }
    if (units[unit].seconds == 0 && number != (int) CLAMP (number, 0, G_MAXINT / 16)) {
      g_set_error (error, OX_ERROR, OX_ERROR_INVALID,
                   "“add” is “%s”: months, years and working days have to be whole numbers", text);
      return NULL;
    }
    number *= sign * last_sign;
    next = number * MAX (units[unit].seconds, 1) > MAX_YEARS * 366 * SECONDS_PER_DAY ||
               number * MAX (units[unit].seconds, 1) < -MAX_YEARS * 366 * SECONDS_PER_DAY
             ? NULL
             : add_one (at, number, unit);
    if (!next) {
      g_set_error (error, OX_ERROR, OX_ERROR_INVALID, "“add” is “%s”, which leads out of the years 1 to %d", text,
                   MAX_YEARS);
      return NULL;
    }
    g_date_time_unref (at);
    at = next;
    n++;
  }
  if (*p != '\0' || n == 0) {
    g_set_error (
      error, OX_ERROR, OX_ERROR_INVALID,
      "“add” is “%s”. Expected numbers with seconds, minutes, hours, days, weeks, months, years or working days, "
      "like 3 days or -1 month 2 hours",
      text);
    return NULL;
  }
  return g_steal_pointer (&at);
}

/* ---- Differences ---- */

static void
append_part (GString *out, gint64 number, const char *name)
{
  if (number != 0)
    g_string_append_printf (out, "%s%" G_GINT64_FORMAT " %s%s", out->len > 0 ? ", " : "", number, name,
                            number == 1 ? "" : "s");
}

/* "1 year, 2 months, 3 days": as the calendar has them, from the earlier date on. */
static char *
describe_difference (GDateTime *early, GDateTime *late)
{
  g_autoptr (GString) out = g_string_new (NULL);
  g_autoptr (GDateTime) local = g_date_time_to_timezone (late, g_date_time_get_timezone (early));
  g_autoptr (GDateTime) at = NULL;
  int months = (g_date_time_get_year (local) - g_date_time_get_year (early)) * 12 + g_date_time_get_month (local) -
               g_date_time_get_month (early);
  int days = 0;
  gint64 seconds;

  for (at = g_date_time_add_months (early, months); at && months > 0 && g_date_time_compare (at, local) > 0;) {
    g_date_time_unref (at);
    at = g_date_time_add_months (early, --months);
  }
  if (!at)
    at = g_date_time_ref (early);
  for (;;) {
    g_autoptr (GDateTime) next = g_date_time_add_days (at, days + 1);

    if (!next || g_date_time_compare (next, local) > 0)
      break;
    days++;
  }
  {
    g_autoptr (GDateTime) day = g_date_time_add_days (at, days);

    seconds = day ? g_date_time_difference (local, day) / G_TIME_SPAN_SECOND : 0;
  }
  append_part (out, months / 12, "year");
  append_part (out, months % 12, "month");
  append_part (out, days, "day");
  append_part (out, seconds / 3600, "hour");
  append_part (out, seconds / 60 % 60, "minute");
  append_part (out, seconds % 60, "second");
  if (out->len == 0)
    g_string_append (out, "no time");
  return g_string_free (g_steal_pointer (&out), FALSE);
}

/* Mondays to Fridays from @early on, @late not counted. */
static gint64
count_working_days (GDateTime *early, gint64 days)
{
  gint64 count = days / 7 * 5;
  int day = g_date_time_get_day_of_week (early);

  for (gint64 i = 0; i < days % 7; i++)
    count += (day - 1 + i) % 7 < 5;
  return count;
}

/* ---- The tool ---- */

static void
add_date (yyjson_mut_doc *doc, yyjson_mut_val *object, GDateTime *date)
{
  static const char *const weekdays[] = {
    "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"
  };
  g_autofree char *iso = g_date_time_format (date, "%Y-%m-%d %H:%M:%S");
  g_autofree char *offset = g_date_time_format (date, "%:z");

  yyjson_mut_obj_add_strcpy (doc, object, "date_time", iso);
  yyjson_mut_obj_add_str (doc, object, "weekday", weekdays[g_date_time_get_day_of_week (date) - 1]);
  yyjson_mut_obj_add_strcpy (doc, object, "zone", g_time_zone_get_identifier (g_date_time_get_timezone (date)));
  yyjson_mut_obj_add_strcpy (doc, object, "utc_offset", offset);
  yyjson_mut_obj_add_int (doc, object, "week", g_date_time_get_week_of_year (date));
  yyjson_mut_obj_add_int (doc, object, "day_of_year", g_date_time_get_day_of_year (date));
  yyjson_mut_obj_add_sint (doc, object, "unix", g_date_time_to_unix (date));
}

static void
add_difference (yyjson_mut_doc *doc, yyjson_mut_val *object, GDateTime *from, GDateTime *to)
{
  yyjson_mut_val *difference = yyjson_mut_obj_add_obj (doc, object, "difference");
  gboolean back = g_date_time_compare (from, to) > 0;
  GDateTime *early = back ? to : from, *late = back ? from : to;
  g_autofree char *text = describe_difference (early, late);
  g_autofree char *signed_text = g_strdup_printf ("%s%s", text, back ? " back" : "");
  GTimeSpan span = g_date_time_difference (late, early);
  /* Days of the calendar: a day of 23 hours is one, too. */
  gint64 days = (span + (g_date_time_get_utc_offset (late) - g_date_time_get_utc_offset (early))) / G_TIME_SPAN_DAY;

  yyjson_mut_obj_add_strcpy (doc, difference, "text", signed_text);
  yyjson_mut_obj_add_sint (doc, difference, "days", back ? -days : days);
  yyjson_mut_obj_add_sint (doc, difference, "working_days", count_working_days (early, days) * (back ? -1 : 1));
  yyjson_mut_obj_add_sint (doc, difference, "seconds", span / G_TIME_SPAN_SECOND * (back ? -1 : 1));
}

char *
ox_tool_time (const char *arguments, gpointer user_data, GCancellable *cancellable, GError **error)
{
  g_autoptr (OxValue) value = ox_value_parse (arguments, strlen (arguments), "arguments", error);
  g_autoptr (GTimeZone) zone = NULL;
  g_autoptr (GDateTime) date = NULL;
  g_autoptr (GDateTime) until = NULL;
  const char *zone_name, *text;
  yyjson_mut_doc *doc;
  yyjson_mut_val *root;

  if (!value)
    return NULL;
  /* Models fill in what they could leave out. */
  zone_name = ox_tool_get_text (value, "zone");
  zone = zone_name && zone_name[0] != '\0' && g_ascii_strcasecmp (zone_name, "local") != 0
           ? find_zone (zone_name, error)
           : g_time_zone_new_local ();
  if (!zone)
    return NULL;
  text = ox_tool_get_text (value, "date");
  date = parse_date (text && text[0] != '\0' ? text : "now", zone, "date", error);
  if (!date)
    return NULL;
  {
    /* A date given with a zone of its own is shown in the one asked for. */
    GDateTime *local = g_date_time_to_timezone (date, zone);

    g_date_time_unref (date);
    date = local;
  }
  text = ox_tool_get_text (value, "add");
  if (text && text[0] != '\0') {
    GDateTime *moved = add_span (date, text, error);

    if (!moved)
      return NULL;
    g_date_time_unref (date);
    date = moved;
  }
  text = ox_tool_get_text (value, "until");
  if (text && text[0] != '\0') {
    until = parse_date (text, zone, "until", error);
    if (!until)
      return NULL;
  }
  doc = yyjson_mut_doc_new (NULL);
  root = yyjson_mut_obj (doc);
  yyjson_mut_doc_set_root (doc, root);
  add_date (doc, root, date);
  if (until)
    add_difference (doc, root, date, until);
  return ox_tool_write_json (doc);
}
