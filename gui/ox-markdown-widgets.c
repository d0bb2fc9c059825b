/* Widgets for the blocks of Markdown text, and how they change while the text is written.
 *
 * Paragraphs and headings are labels; lists and tables are grids; code has a class of its own.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-markdown-widgets.h"

#include "ox-code-block.h"

#include <glib/gi18n.h>

#define CELL_WIDTH_CHARS 36

static guint
n_children (const OxMdBlock *block)
{
  return block->children != NULL ? block->children->len : 0;
}

static const OxMdBlock *
child (const OxMdBlock *block, guint i)
{
  return block->children->pdata[i];
}

/* Labels: paragraphs, headings, cells */

static void
label_set_block (GtkLabel *label, const OxMdBlock *block)
{
  if (block->direction != GTK_TEXT_DIR_NONE)
    gtk_widget_set_direction (GTK_WIDGET (label), block->direction);
  gtk_label_set_markup (label, block->text);
}

static GtkWidget *
label_new (const OxMdBlock *block, int max_width_chars)
{
  static const char *const heading_classes[] = { "title-2", "title-3", "title-4", "heading" };
  GtkWidget *label = g_object_new (GTK_TYPE_LABEL, "wrap", TRUE, "wrap-mode", PANGO_WRAP_WORD_CHAR, "xalign", 0.0f,
                                   "selectable", TRUE, "max-width-chars", max_width_chars, NULL);
  if (block->kind == OX_MD_HEADING) {
    gtk_widget_add_css_class (label, heading_classes[CLAMP (block->level, 1, 4) - 1]);
    gtk_widget_add_css_class (label, "ox-heading");
  }
  label_set_block (GTK_LABEL (label), block);
  return label;
}

/* Children in a box: items, quotes */

static void
box_update (GtkWidget *box, const OxMdBlock *old, const OxMdBlock *block, int max_width_chars)
{
  GtkWidget *widget = gtk_widget_get_first_child (box);
  guint n_old = old != NULL ? n_children (old) : 0;

  for (guint i = 0; i < MAX (n_old, n_children (block)); i++) {
    if (i >= n_old) {
      gtk_box_append (GTK_BOX (box), ox_markdown_widget_new (child (block, i), max_width_chars));
      continue;
    }
    GtkWidget *next = gtk_widget_get_next_sibling (widget);
    if (i >= n_children (block)) {
      gtk_box_remove (GTK_BOX (box), widget);
    } else if (!ox_markdown_widget_update (widget, child (old, i), child (block, i), max_width_chars)) {
      gtk_box_insert_child_after (GTK_BOX (box), ox_markdown_widget_new (child (block, i), max_width_chars), widget);
      gtk_box_remove (GTK_BOX (box), widget);
    }
    widget = next;
  }
}

/* The direction of the first text in a list, a quote or a table: its markers and columns stand on the side where that begins. */
static GtkTextDirection
block_direction (const OxMdBlock *block)
{
  if (block->direction != GTK_TEXT_DIR_NONE)
    return block->direction;
  for (guint i = 0; i < n_children (block); i++) {
    GtkTextDirection direction = block_direction (child (block, i));
    if (direction != GTK_TEXT_DIR_NONE)
      return direction;
  }
  return GTK_TEXT_DIR_NONE;
}

static void
set_direction (GtkWidget *widget, const OxMdBlock *block)
{
  GtkTextDirection direction = block_direction (block);
  if (direction != GTK_TEXT_DIR_NONE)
    gtk_widget_set_direction (widget, direction);
}

/* Lists: a grid of markers and boxes */

static char *
marker_text (const OxMdBlock *list, guint i)
{
  const OxMdBlock *item = child (list, i);
  if (item->task != 0)
    return g_strdup (item->task == 'x' ? "☑" : "☐");
  if (list->level < 0)
    return g_strdup ("•");
  return g_strdup_printf ("%u.", list->level + i);
}

static void
list_update (GtkWidget *grid, const OxMdBlock *old, const OxMdBlock *list, int max_width_chars)
{
  guint n_old = old != NULL ? n_children (old) : 0;

  for (guint i = n_old; i > n_children (list); i--)
    gtk_grid_remove_row (GTK_GRID (grid), (int) i - 1);
  for (guint i = 0; i < n_children (list); i++) {
    g_autofree char *text = marker_text (list, i);
    if (i < n_old) {
      gtk_label_set_label (GTK_LABEL (gtk_grid_get_child_at (GTK_GRID (grid), 0, (int) i)), text);
      if (!ox_md_block_equal (child (old, i), child (list, i)))
        box_update (gtk_grid_get_child_at (GTK_GRID (grid), 1, (int) i), child (old, i), child (list, i),
                    max_width_chars);
      continue;
    }
    GtkWidget *marker = gtk_label_new (text);
    gtk_widget_set_valign (marker, GTK_ALIGN_START);
    gtk_label_set_xalign (GTK_LABEL (marker), 1);
    gtk_widget_add_css_class (marker, "dimmed");
    gtk_widget_add_css_class (marker, "numeric");
    gtk_grid_attach (GTK_GRID (grid), marker, 0, (int) i, 1, 1);

    GtkWidget *box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 6);
    gtk_widget_set_hexpand (box, TRUE);
    box_update (box, NULL, child (list, i), max_width_chars);
    gtk_grid_attach (GTK_GRID (grid), box, 1, (int) i, 1, 1);
  }
  set_direction (grid, list);
}

static GtkWidget *
list_new (const OxMdBlock *list, int max_width_chars)
{
  GtkWidget *grid = gtk_grid_new ();
  gtk_widget_set_margin_start (grid, 6);
  gtk_grid_set_row_spacing (GTK_GRID (grid), 6);
  gtk_grid_set_column_spacing (GTK_GRID (grid), 10);
  list_update (grid, NULL, list, max_width_chars);
  return grid;
}

/* Quotes: a rule and a box */

static GtkWidget *
quote_new (const OxMdBlock *quote, int max_width_chars)
{
  GtkWidget *row = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 12);
  GtkWidget *rule = gtk_separator_new (GTK_ORIENTATION_VERTICAL);
  gtk_widget_add_css_class (rule, "ox-rule");
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 8);
  gtk_widget_set_hexpand (box, TRUE);
  gtk_widget_add_css_class (box, "ox-quote");
  box_update (box, NULL, quote, max_width_chars);
  gtk_box_append (GTK_BOX (row), rule);
  gtk_box_append (GTK_BOX (row), box);
  set_direction (row, quote);
  return row;
}

/* Tables: a grid of labels that scrolls sideways */

/* A cell has one width, whatever room there is, for a scrolled window does not ask its child for the height that goes with
 * a narrower width: short text stays on its line, long text wraps at a fixed place. */
static void
cell_set_block (GtkLabel *label, const OxMdBlock *cell)
{
  label_set_block (label, cell);
  gboolean wrap = g_utf8_strlen (gtk_label_get_text (label), -1) > CELL_WIDTH_CHARS;
  gtk_label_set_wrap (label, wrap);
  gtk_label_set_width_chars (label, wrap ? CELL_WIDTH_CHARS : -1);
  gtk_label_set_max_width_chars (label, wrap ? CELL_WIDTH_CHARS : -1);
}

static GtkWidget *
cell_new (const OxMdBlock *cell)
{
  GtkWidget *label = label_new (cell, CELL_WIDTH_CHARS);
  cell_set_block (GTK_LABEL (label), cell);
  return label;
}

static void
table_update (GtkWidget *grid, const OxMdBlock *old, const OxMdBlock *table)
{
  for (guint r = 0; r < n_children (table); r++) {
    const OxMdBlock *row = child (table, r);
    const OxMdBlock *old_row = old != NULL && r < n_children (old) ? child (old, r) : NULL;
    for (guint c = 0; c < n_children (row); c++) {
      const OxMdBlock *cell = child (row, c);
      if (cell->kind != OX_MD_CELL)
        continue;
      if (old_row != NULL && c < n_children (old_row)) {
        if (!ox_md_block_equal (child (old_row, c), cell))
          cell_set_block (GTK_LABEL (gtk_grid_get_child_at (GTK_GRID (grid), (int) c, (int) r)), cell);
        continue;
      }
      GtkWidget *label = cell_new (cell);
      gtk_label_set_xalign (GTK_LABEL (label), (float) cell->align / 2);
      gtk_widget_add_css_class (label, "cell");
      if (cell->header)
        gtk_widget_add_css_class (label, "heading");
      if (r > 0)
        gtk_widget_add_css_class (label, "line");
      gtk_grid_attach (GTK_GRID (grid), label, (int) c, (int) r, 1, 1);
    }
  }
}

static GtkWidget *
table_new (const OxMdBlock *table)
{
  GtkWidget *grid = gtk_grid_new ();
  gtk_widget_add_css_class (grid, "ox-mdtable");
  gtk_widget_set_overflow (grid, GTK_OVERFLOW_HIDDEN);
  table_update (grid, NULL, table);

  GtkWidget *viewport = gtk_viewport_new (NULL, NULL);
  gtk_scrollable_set_hscroll_policy (GTK_SCROLLABLE (viewport), GTK_SCROLL_NATURAL);
  gtk_viewport_set_child (GTK_VIEWPORT (viewport), grid);
  GtkWidget *scroller = gtk_scrolled_window_new ();
  gtk_scrolled_window_set_child (GTK_SCROLLED_WINDOW (scroller), viewport);
  gtk_scrolled_window_set_policy (GTK_SCROLLED_WINDOW (scroller), GTK_POLICY_AUTOMATIC, GTK_POLICY_NEVER);
  gtk_scrolled_window_set_propagate_natural_width (GTK_SCROLLED_WINDOW (scroller), TRUE);
  gtk_scrolled_window_set_propagate_natural_height (GTK_SCROLLED_WINDOW (scroller), TRUE);
  gtk_widget_set_halign (scroller, GTK_ALIGN_START);
  gtk_widget_set_focusable (scroller, FALSE);
  set_direction (grid, table);
  set_direction (scroller, table);
  return scroller;
}

static GtkWidget *
table_grid (GtkWidget *scroller)
{
  GtkWidget *viewport = gtk_scrolled_window_get_child (GTK_SCROLLED_WINDOW (scroller));
  return gtk_viewport_get_child (GTK_VIEWPORT (viewport));
}

static gboolean
table_can_update (const OxMdBlock *old, const OxMdBlock *table)
{
  if (n_children (old) > n_children (table))
    return FALSE;
  for (guint r = 0; r < n_children (old); r++) {
    const OxMdBlock *a = child (old, r);
    const OxMdBlock *b = child (table, r);
    if (n_children (a) != n_children (b))
      return FALSE;
    for (guint c = 0; c < n_children (a); c++)
      if (child (a, c)->align != child (b, c)->align || child (a, c)->kind != child (b, c)->kind)
        return FALSE;
  }
  return TRUE;
}

/**
 * ox_markdown_widget_new:
 * @block: a block that can stand at the top level
 * @max_width_chars: width at which text wraps, in characters, or -1
 *
 * Returns: (transfer floating): a widget that shows @block
 */
GtkWidget *
ox_markdown_widget_new (const OxMdBlock *block, int max_width_chars)
{
  GtkWidget *widget;

  switch (block->kind) {
  case OX_MD_LIST:
    return list_new (block, max_width_chars);
  case OX_MD_QUOTE:
    return quote_new (block, max_width_chars);
  case OX_MD_TABLE:
    return table_new (block);
  case OX_MD_CODE:
    widget = ox_code_block_new ();
    ox_code_block_set_code (OX_CODE_BLOCK (widget), block->info, block->text);
    return widget;
  case OX_MD_RULE:
    widget = gtk_separator_new (GTK_ORIENTATION_HORIZONTAL);
    gtk_widget_add_css_class (widget, "ox-hr");
    return widget;
  case OX_MD_PARAGRAPH:
  case OX_MD_HEADING:
  case OX_MD_CELL:
    return label_new (block, max_width_chars);
  case OX_MD_ITEM:
  case OX_MD_ROW:
    break;
  }
  return gtk_box_new (GTK_ORIENTATION_VERTICAL, 0);
}

/**
 * ox_markdown_widget_update:
 * @widget: what ox_markdown_widget_new() made for @old
 * @old: the block that @widget shows
 * @block: the block it is to show
 * @max_width_chars: width at which text wraps, in characters, or -1
 *
 * Changes @widget in place.
 *
 * Returns: %FALSE if a new widget is needed
 */
gboolean
ox_markdown_widget_update (GtkWidget *widget, const OxMdBlock *old, const OxMdBlock *block, int max_width_chars)
{
  if (old->kind != block->kind || old->level != block->level)
    return FALSE;
  if (ox_md_block_equal (old, block))
    return TRUE;

  switch (block->kind) {
  case OX_MD_LIST:
    list_update (widget, old, block, max_width_chars);
    return TRUE;
  case OX_MD_QUOTE:
    box_update (gtk_widget_get_last_child (widget), old, block, max_width_chars);
    return TRUE;
  case OX_MD_TABLE:
    if (!table_can_update (old, block))
      return FALSE;
    table_update (table_grid (widget), old, block);
    return TRUE;
  case OX_MD_CODE:
    ox_code_block_set_code (OX_CODE_BLOCK (widget), block->info, block->text);
    return TRUE;
  case OX_MD_PARAGRAPH:
  case OX_MD_HEADING:
    label_set_block (GTK_LABEL (widget), block);
    return TRUE;
  case OX_MD_CELL:
  case OX_MD_ITEM:
  case OX_MD_ROW:
  case OX_MD_RULE:
    break;
  }
  return FALSE;
}
