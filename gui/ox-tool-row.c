/* A call of a tool, as a row that opens: what was done in plain words, and what was asked and came of it behind that.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-tool-row.h"

#include <adwaita.h>
#include <glib/gi18n.h>
#include <string.h>

/* What is longer is cut: rows are for a look, and a text that a tool read may be as long as a book. */
#define MAX_SHOWN 1000
#define MAX_TITLE 80

/* How a tool is told of: %s is what it was called with. */
typedef struct {
  const char *name;
  const char *icon_name;
  const char *key; /* of the argument that is shown; NULL: none */
  const char *running;
  const char *done;
  const char *failed;
} Words;

static const Words all_words[] = {
  { "calculate", "accessories-calculator-symbolic", "expression", N_ ("Calculating %s"), N_ ("Calculated %s"),
    N_ ("Could not calculate %s") },
  { "get_date_time", "x-office-calendar-symbolic", NULL, N_ ("Looking up the time"), N_ ("Looked up the time"),
    N_ ("Could not look up the time") },
  { "convert_units", "ox-ruler-symbolic", NULL, N_ ("Converting units"), N_ ("Converted units"),
    N_ ("Could not convert units") },
  { "read_attachment", "text-x-generic-symbolic", "name", N_ ("Reading %s"), N_ ("Read %s"), N_ ("Could not read %s") },
};

static char *
shorten (const char *text, glong max)
{
  const char *end = text;
  for (glong i = 0; i < max && *end != '\0'; i++)
    end = g_utf8_next_char (end);
  g_autofree char *start = g_strndup (text, (gsize) (end - text));
  return *end != '\0' ? g_strconcat (start, "…", NULL) : g_steal_pointer (&start);
}

/* "37*12" as people write it. */
static char *
prettify (const char *expression)
{
  g_autoptr (GString) text = g_string_new (NULL);
  for (const char *at = expression; *at != '\0'; at++) {
    if (*at == '\n' || *at == '\t') {
      g_string_append_c (text, ' ');
    } else if (*at == '*' && at[1] != '*' && (at == expression || at[-1] != '*')) {
      if (text->len > 0 && text->str[text->len - 1] != ' ')
        g_string_append_c (text, ' ');
      g_string_append (text, "×");
      if (at[1] != ' ')
        g_string_append_c (text, ' ');
    } else {
      g_string_append_c (text, *at);
    }
  }
  return shorten (text->str, MAX_TITLE);
}

static char *
lookup (const char *json, const char *key)
{
  return json != NULL ? ox_tool_json_lookup (json, key) : NULL;
}

static char *
dup_title (const OxToolEntry *entry, const Words *words, gboolean running)
{
  if (entry->name == NULL)
    return g_strdup (_ ("A tool call could not be read"));
  if (!running && entry->result == NULL) {
    /* Stopped before it began, or tools are switched off and the model asked all the same. */
    g_autofree char *name = shorten (entry->name, MAX_TITLE);
    /* Translators: name of a tool. */
    return g_strdup_printf (_ ("%s was not run"), name);
  }
  if (words == NULL) {
    g_autofree char *name = shorten (entry->name, MAX_TITLE);
    /* Translators: name of a tool. */
    return g_strdup_printf (running ? _ ("Using %s") : entry->failed ? _ ("%s failed") : _ ("Used %s"), name);
  }
  const char *format = _ (running ? words->running : entry->failed ? words->failed : words->done);
  if (words->key == NULL)
    return g_strdup (format);
  g_autofree char *value = lookup (entry->arguments, words->key);
  g_autofree char *shown = value != NULL ? prettify (value) : g_strdup ("…");
  g_autoptr (GString) title = g_string_new (format);
  g_string_replace (title, "%s", shown, 1);
  return g_string_free (g_steal_pointer (&title), FALSE);
}

/* What came of it, short enough to stand in the row. */
static char *
dup_detail (const OxToolEntry *entry)
{
  if (entry->result == NULL || entry->failed || entry->name == NULL || strlen (entry->result) > MAX_SHOWN)
    return NULL;
  g_autofree char *result = lookup (entry->result, "result");
  if (result == NULL || strchr (result, '\n') != NULL)
    return NULL;
  g_autofree char *shown = shorten (result, MAX_TITLE);
  if (g_str_equal (entry->name, "calculate"))
    return g_strdup_printf ("= %s", shown);
  if (g_str_equal (entry->name, "convert_units")) {
    g_autofree char *value = lookup (entry->arguments, "value");
    g_autofree char *from = lookup (entry->arguments, "from");
    return value != NULL && from != NULL ? g_strdup_printf ("%s %s = %s", value, from, shown) : NULL;
  }
  return NULL;
}

/**
 * ox_tool_row_dup_call:
 * @name: of the tool
 * @arguments: a JSON object
 *
 * Returns: (transfer full): the call as a program would write it
 */
char *
ox_tool_row_dup_call (const char *name, const char *arguments)
{
  g_autofree char *list = ox_tool_json_to_list (arguments);
  g_autofree char *shown = shorten (list != NULL ? list : arguments, MAX_SHOWN);
  return g_strdup_printf ("%s(%s)", name, shown);
}

static GtkWidget *
cell_new (const char *text, gboolean head)
{
  GtkWidget *label = g_object_new (GTK_TYPE_LABEL, "label", text, "xalign", 0.0f, "yalign", 0.0f, NULL);
  if (head) {
    gtk_widget_add_css_class (label, "caption");
    gtk_widget_add_css_class (label, "dimmed");
    gtk_widget_set_valign (label, GTK_ALIGN_BASELINE_FILL);
  } else {
    g_object_set (label, "wrap", TRUE, "wrap-mode", PANGO_WRAP_WORD_CHAR, "selectable", TRUE, "hexpand", TRUE,
                  "focusable", FALSE, NULL);
    gtk_widget_add_css_class (label, "monospace");
    gtk_widget_set_valign (label, GTK_ALIGN_BASELINE_FILL);
    /* Code reads from left to right in every language. */
    gtk_widget_set_direction (label, GTK_TEXT_DIR_LTR);
  }
  return label;
}

static GtkWidget *
details_new (const OxToolEntry *entry)
{
  GtkWidget *grid = g_object_new (GTK_TYPE_GRID, "column-spacing", 12, "row-spacing", 6, NULL);
  gtk_widget_add_css_class (grid, "ox-details");

  if (entry->name == NULL) {
    g_autofree char *wrote = shorten (entry->arguments, MAX_SHOWN);
    GtkWidget *why = g_object_new (GTK_TYPE_LABEL, "label",
                                   _ ("The model asked for a tool in a form that cannot be read. Nothing was run."),
                                   "xalign", 0.0f, "wrap", TRUE, NULL);
    gtk_grid_attach (GTK_GRID (grid), why, 0, 0, 2, 1);
    gtk_grid_attach (GTK_GRID (grid), cell_new (_ ("It wrote"), TRUE), 0, 1, 1, 1);
    gtk_grid_attach (GTK_GRID (grid), cell_new (wrote, FALSE), 1, 1, 1, 1);
    return grid;
  }
  g_autofree char *call = ox_tool_row_dup_call (entry->name, entry->arguments);
  gtk_grid_attach (GTK_GRID (grid), cell_new (_ ("Asked for"), TRUE), 0, 0, 1, 1);
  gtk_grid_attach (GTK_GRID (grid), cell_new (call, FALSE), 1, 0, 1, 1);
  if (entry->result != NULL) {
    g_autofree char *list = strlen (entry->result) <= MAX_SHOWN ? ox_tool_json_to_list (entry->result) : NULL;
    g_autofree char *shown = shorten (list != NULL ? list : entry->result, MAX_SHOWN);
    gtk_grid_attach (GTK_GRID (grid), cell_new (entry->failed ? _ ("Failed") : _ ("Result"), TRUE), 0, 1, 1, 1);
    gtk_grid_attach (GTK_GRID (grid), cell_new (shown, FALSE), 1, 1, 1, 1);
  }
  return grid;
}

/* Details are made for those who open the row. */
static void
opened_cb (OxDisclosure *row)
{
  const OxToolEntry *entry = g_object_get_data (G_OBJECT (row), "ox-entry");
  if (ox_disclosure_get_open (row) && entry != NULL)
    ox_disclosure_set_child (row, details_new (entry));
}

/**
 * ox_tool_row_new:
 *
 * Returns: a row for ox_tool_row_update()
 */
GtkWidget *
ox_tool_row_new (void)
{
  GtkWidget *row = ox_disclosure_new ();
  g_signal_connect (row, "notify::open", G_CALLBACK (opened_cb), NULL);
  return row;
}

/**
 * ox_tool_row_update:
 * @row: a row
 * @entry: the call
 * @live: whether the answer is still being written, so that a call without a result is running
 */
void
ox_tool_row_update (OxDisclosure *row, const OxToolEntry *entry, gboolean live)
{
  const OxToolEntry *shown = g_object_get_data (G_OBJECT (row), "ox-entry");
  gboolean changed = shown == NULL || !ox_tool_entry_equal (shown, entry);
  const Words *words = NULL;
  for (guint i = 0; i < G_N_ELEMENTS (all_words); i++)
    if (g_strcmp0 (all_words[i].name, entry->name) == 0)
      words = &all_words[i];

  gboolean running = live && entry->result == NULL && !entry->failed;
  g_autofree char *title = dup_title (entry, words, running);
  g_autofree char *detail = dup_detail (entry);
  ox_disclosure_set_icon_name (row, entry->name == NULL ? "dialog-warning-symbolic"
                                    : words != NULL     ? words->icon_name
                                                        : "ox-tool-symbolic");
  ox_disclosure_set_title (row, title, detail);
  ox_disclosure_set_busy (row, running);
  ox_disclosure_set_failed (row, entry->failed);
  if (changed) {
    g_object_set_data_full (G_OBJECT (row), "ox-entry", ox_tool_entry_copy (entry),
                            (GDestroyNotify) ox_tool_entry_free);
    opened_cb (row);
  }
}
