/* The text of a message as widgets, one a block.
 *
 * While an answer is written only the text behind the last finished top-level block is parsed again, and only widgets
 * whose block changed are touched. Long texts are built in slices, so that no frame is late.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-markdown-view.h"

#include "ox-markdown-widgets.h"
#include "ox-markdown.h"

#include <adwaita.h>
#include <glib/gi18n.h>
#include <string.h>

/* What is built in one frame, in time and in weight, for it has to be laid out in that frame as well. */
#define FRAME_MS 16
#define SLICE_US 4000
#define SLICE_WEIGHT 8000
/* So much text is shown at first, and more with each click on Show More. A block counts its bytes and its labels. */
#define PAGE_WEIGHT 60000

struct _OxMarkdownView {
  GtkWidget parent_instance;

  gboolean plain;
  int max_width_chars;

  char *text;
  gsize stable;      /* bytes of text whose blocks will not change any more */
  guint n_stable;    /* blocks of those bytes */
  GPtrArray *blocks; /* of OxMdBlock */
  GPtrArray *shown;  /* of GtkWidget, borrowed: for the first blocks */
  gsize weight;      /* of the shown blocks */
  gsize max_weight;
  GtkWidget *more_button;
  guint slice_id;
};

G_DEFINE_FINAL_TYPE (OxMarkdownView, ox_markdown_view, GTK_TYPE_WIDGET)

/* How long a block takes to lay out, in bytes of ordinary text. A word that is wrapped inside costs by the square of its length;
 * beyond ASCII lines may mostly end between any two characters. */
static gsize
block_weight (const OxMdBlock *block)
{
  gsize weight = 40 + (block->text != NULL ? strlen (block->text) : 0);
  if (block->text != NULL && block->kind != OX_MD_CODE)
    for (const char *p = block->text; *p != '\0';) {
      gsize word = 0;
      while (g_ascii_isgraph (p[word]) && p[word] != '-' && p[word] != '/')
        word++;
      weight += word * word / 16;
      p += word + (p[word] != '\0');
    }
  if (block->children != NULL)
    for (guint i = 0; i < block->children->len; i++)
      weight += block_weight (block->children->pdata[i]);
  return weight;
}

static void show_blocks (OxMarkdownView *self, gint64 deadline);

static gboolean
slice_cb (gpointer user_data)
{
  OxMarkdownView *self = user_data;
  self->slice_id = 0;
  show_blocks (self, g_get_monotonic_time () + SLICE_US);
  return G_SOURCE_REMOVE;
}

static void
more_cb (OxMarkdownView *self)
{
  self->max_weight += PAGE_WEIGHT;
  g_clear_pointer (&self->more_button, gtk_widget_unparent);
  show_blocks (self, g_get_monotonic_time () + SLICE_US);
}

/* Builds widgets for blocks that have none yet, until the deadline or the end of the page. */
static void
show_blocks (OxMarkdownView *self, gint64 deadline)
{
  gboolean full = FALSE;
  gsize max_weight = self->weight + SLICE_WEIGHT;

  while (self->shown->len < self->blocks->len) {
    const OxMdBlock *block = self->blocks->pdata[self->shown->len];
    if (self->weight >= self->max_weight) {
      full = TRUE;
      break;
    }
    if (self->weight >= max_weight || g_get_monotonic_time () >= deadline) {
      if (self->slice_id == 0)
        self->slice_id = g_timeout_add (FRAME_MS, slice_cb, self);
      return;
    }
    GtkWidget *widget = ox_markdown_widget_new (block, self->max_width_chars);
    gtk_widget_insert_before (widget, GTK_WIDGET (self), self->more_button);
    g_ptr_array_add (self->shown, widget);
    self->weight += block_weight (block);
  }

  if (full && self->more_button == NULL) {
    self->more_button = gtk_button_new_with_mnemonic (_ ("_Show More"));
    gtk_widget_set_halign (self->more_button, GTK_ALIGN_START);
    gtk_widget_add_css_class (self->more_button, "pill-small");
    g_signal_connect_swapped (self->more_button, "clicked", G_CALLBACK (more_cb), self);
    gtk_widget_insert_before (self->more_button, GTK_WIDGET (self), NULL);
  } else if (!full && self->more_button != NULL) {
    g_clear_pointer (&self->more_button, gtk_widget_unparent);
  }
}

/* Puts new blocks in place of those from index first on. */
static void
replace_blocks (OxMarkdownView *self, guint first, GPtrArray *fresh)
{
  for (guint i = first; i < self->shown->len; i++) {
    OxMdBlock *old = self->blocks->pdata[i];
    self->weight -= block_weight (old);
    if (i - first >= fresh->len) {
      gtk_widget_unparent (self->shown->pdata[i]);
      continue;
    }
    const OxMdBlock *block = fresh->pdata[i - first];
    self->weight += block_weight (block);
    if (!ox_markdown_widget_update (self->shown->pdata[i], old, block, self->max_width_chars)) {
      GtkWidget *widget = ox_markdown_widget_new (block, self->max_width_chars);
      gtk_widget_insert_after (widget, GTK_WIDGET (self), self->shown->pdata[i]);
      gtk_widget_unparent (self->shown->pdata[i]);
      self->shown->pdata[i] = widget;
    }
  }
  if (self->shown->len > first + fresh->len)
    g_ptr_array_set_size (self->shown, first + fresh->len);
  g_ptr_array_set_size (self->blocks, first);
  g_ptr_array_extend_and_steal (self->blocks, fresh);
}

static void
ox_markdown_view_dispose (GObject *object)
{
  OxMarkdownView *self = OX_MARKDOWN_VIEW (object);
  GtkWidget *child;

  g_clear_handle_id (&self->slice_id, g_source_remove);
  while ((child = gtk_widget_get_first_child (GTK_WIDGET (self))) != NULL)
    gtk_widget_unparent (child);
  self->more_button = NULL;
  g_ptr_array_set_size (self->shown, 0);
  G_OBJECT_CLASS (ox_markdown_view_parent_class)->dispose (object);
}

static void
ox_markdown_view_finalize (GObject *object)
{
  OxMarkdownView *self = OX_MARKDOWN_VIEW (object);
  g_free (self->text);
  g_ptr_array_unref (self->blocks);
  g_ptr_array_unref (self->shown);
  G_OBJECT_CLASS (ox_markdown_view_parent_class)->finalize (object);
}

static void
ox_markdown_view_class_init (OxMarkdownViewClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);

  object_class->dispose = ox_markdown_view_dispose;
  object_class->finalize = ox_markdown_view_finalize;
  gtk_widget_class_set_layout_manager_type (widget_class, GTK_TYPE_BOX_LAYOUT);
  gtk_widget_class_set_css_name (widget_class, "oxmarkdown");
  gtk_widget_class_set_accessible_role (widget_class, GTK_ACCESSIBLE_ROLE_GROUP);
}

static void
ox_markdown_view_init (OxMarkdownView *self)
{
  GtkBoxLayout *layout = GTK_BOX_LAYOUT (gtk_widget_get_layout_manager (GTK_WIDGET (self)));
  gtk_orientable_set_orientation (GTK_ORIENTABLE (layout), GTK_ORIENTATION_VERTICAL);
  gtk_box_layout_set_spacing (layout, 8);
  self->blocks = g_ptr_array_new_with_free_func ((GDestroyNotify) ox_md_block_free);
  self->shown = g_ptr_array_new ();
  self->max_weight = PAGE_WEIGHT;
  self->text = g_strdup ("");
}

/**
 * ox_markdown_view_new:
 * @plain: whether the text is shown as it is, without Markdown
 * @max_width_chars: width at which paragraphs wrap, in characters, or -1
 *
 * Returns: an empty view
 */
GtkWidget *
ox_markdown_view_new (gboolean plain, int max_width_chars)
{
  OxMarkdownView *self = g_object_new (OX_TYPE_MARKDOWN_VIEW, NULL);
  self->plain = plain;
  self->max_width_chars = max_width_chars;
  return GTK_WIDGET (self);
}

/**
 * ox_markdown_view_set_text:
 * @self: a view
 * @text: the whole text
 * @writing: whether more is to come
 *
 * Shows @text. While it is being written only its end is looked at again; the last call, with @writing unset, parses
 * all of it once, for link addresses that are given at the end of a text.
 */
void
ox_markdown_view_set_text (OxMarkdownView *self, const char *text, gboolean writing)
{
  g_autofree char *valid = g_utf8_make_valid (text, -1);
  gsize length = strlen (valid);

  if (!writing || self->plain || length < self->stable || memcmp (valid, self->text, self->stable) != 0) {
    self->stable = 0;
    self->n_stable = 0;
  }
  g_free (self->text);
  self->text = g_steal_pointer (&valid);

  guint first = self->n_stable;
  const char *tail = self->text + self->stable;
  gsize tail_length = length - self->stable;
  GPtrArray *fresh;
  if (self->plain) {
    fresh = ox_markdown_parse_plain (tail, tail_length);
  } else {
    gsize split = writing ? ox_markdown_find_split (tail, tail_length) : 0;
    if (split > 0) {
      fresh = ox_markdown_parse (tail, split);
      self->stable += split;
      self->n_stable += fresh->len;
      g_ptr_array_extend_and_steal (fresh, ox_markdown_parse (tail + split, tail_length - split));
    } else {
      fresh = ox_markdown_parse (tail, tail_length);
    }
  }
  replace_blocks (self, first, fresh);
  show_blocks (self, g_get_monotonic_time () + SLICE_US);
}

/**
 * ox_markdown_view_is_settled:
 * @self: a view
 *
 * Returns: whether no more widgets are about to be built
 */
gboolean
ox_markdown_view_is_settled (OxMarkdownView *self)
{
  return self->slice_id == 0;
}
