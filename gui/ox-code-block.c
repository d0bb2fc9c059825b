/* A block of code in an answer: language, Copy, highlighted text.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-code-block.h"

#include "ox-widget.h"

#include <adwaita.h>
#include <glib/gi18n.h>
#include <gtksourceview/gtksource.h>
#include <string.h>

/* GtkTextView lays out a line as a whole, so longer lines are shown in parts; Copy gives them unchanged. */
#define MAX_LINE_BYTES 2000
/* More lines scroll inside the block. */
#define MAX_LINES 200
#define MAX_HIGHLIGHTED_BYTES (100 * 1024)

struct _OxCodeBlock {
  GtkWidget parent_instance;

  GtkLabel *language_label;
  GtkButton *copy_button;
  GtkScrolledWindow *scroller;
  GtkSourceView *view;

  char *code;
  char *language;
  GString *shown; /* what the buffer holds */
};

G_DEFINE_FINAL_TYPE (OxCodeBlock, ox_code_block, GTK_TYPE_WIDGET)

/* What models write after the fence, and GtkSourceView's name for it. */
static const struct {
  const char *written;
  const char *id;
} aliases[] = {
  { "bash", "sh" },
  { "shell", "sh" },
  { "zsh", "sh" },
  { "console", "sh" },
  { "py", "python3" },
  { "python", "python3" },
  { "javascript", "js" },
  { "ts", "typescript" },
  { "c++", "cpp" },
  { "h", "chdr" },
  { "rs", "rust" },
  { "rb", "ruby" },
  { "cs", "c-sharp" },
  { "csharp", "c-sharp" },
  { "golang", "go" },
  { "yml", "yaml" },
  { "md", "markdown" },
  { "tex", "latex" },
  { "dockerfile", "docker" },
  { "make", "makefile" },
  { "ps1", "powershell" },
  { "kt", "kotlin" },
  { "jsonc", "json" },
  { "svg", "xml" },
  { "ini", "ini" },
};

static GtkSourceLanguage *
find_language (const char *written)
{
  GtkSourceLanguageManager *manager = gtk_source_language_manager_get_default ();
  g_autofree char *lower = g_ascii_strdown (written, -1);
  for (guint i = 0; i < G_N_ELEMENTS (aliases); i++)
    if (g_str_equal (aliases[i].written, lower))
      return gtk_source_language_manager_get_language (manager, aliases[i].id);
  return gtk_source_language_manager_get_language (manager, lower);
}

static void
update_scheme (OxCodeBlock *self)
{
  gboolean dark = adw_style_manager_get_dark (adw_style_manager_get_default ());
  GtkSourceStyleScheme *scheme = gtk_source_style_scheme_manager_get_scheme (
    gtk_source_style_scheme_manager_get_default (), dark ? "Adwaita-dark" : "Adwaita");
  GtkSourceBuffer *buffer = GTK_SOURCE_BUFFER (gtk_text_view_get_buffer (GTK_TEXT_VIEW (self->view)));
  gtk_source_buffer_set_style_scheme (buffer, scheme);
}

static void
copy_cb (OxCodeBlock *self)
{
  gdk_clipboard_set_text (gtk_widget_get_clipboard (GTK_WIDGET (self)), self->code != NULL ? self->code : "");
  gtk_accessible_announce (GTK_ACCESSIBLE (self), _ ("Code copied"), GTK_ACCESSIBLE_ANNOUNCEMENT_PRIORITY_MEDIUM);
}

/* Breaks lines that are too long to be laid out at once. */
static GString *
make_shown (const char *code)
{
  GString *shown = g_string_sized_new (strlen (code) + 16);
  while (*code != '\0') {
    const char *newline = strchr (code, '\n');
    gsize n = newline != NULL ? (gsize) (newline - code) : strlen (code);
    while (n > MAX_LINE_BYTES) {
      gsize take = MAX_LINE_BYTES;
      while (((guchar) code[take] & 0xc0) == 0x80)
        take--;
      g_string_append_len (shown, code, take);
      g_string_append_c (shown, '\n');
      code += take;
      n -= take;
    }
    g_string_append_len (shown, code, n);
    code += n;
    if (newline != NULL) {
      g_string_append_c (shown, '\n');
      code++;
    }
  }
  return shown;
}

static void
ox_code_block_dispose (GObject *object)
{
  ox_widget_dispose_children (GTK_WIDGET (object), OX_TYPE_CODE_BLOCK);
  G_OBJECT_CLASS (ox_code_block_parent_class)->dispose (object);
}

static void
ox_code_block_finalize (GObject *object)
{
  OxCodeBlock *self = OX_CODE_BLOCK (object);
  g_free (self->code);
  g_free (self->language);
  g_string_free (self->shown, TRUE);
  G_OBJECT_CLASS (ox_code_block_parent_class)->finalize (object);
}

static void
ox_code_block_class_init (OxCodeBlockClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);

  object_class->dispose = ox_code_block_dispose;
  object_class->finalize = ox_code_block_finalize;

  g_type_ensure (GTK_SOURCE_TYPE_VIEW);
  gtk_widget_class_set_template_from_resource (widget_class, "/org/oxinfer/App/ui/ox-code-block.ui");
  gtk_widget_class_bind_template_child (widget_class, OxCodeBlock, language_label);
  gtk_widget_class_bind_template_child (widget_class, OxCodeBlock, copy_button);
  gtk_widget_class_bind_template_child (widget_class, OxCodeBlock, scroller);
  gtk_widget_class_bind_template_child (widget_class, OxCodeBlock, view);
  gtk_widget_class_bind_template_callback (widget_class, copy_cb);
}

static void
ox_code_block_init (OxCodeBlock *self)
{
  self->shown = g_string_new (NULL);
  gtk_widget_init_template (GTK_WIDGET (self));

  /* Code reads from left to right in every language. */
  gtk_widget_set_direction (GTK_WIDGET (self->scroller), GTK_TEXT_DIR_LTR);
  gtk_widget_set_direction (GTK_WIDGET (self->view), GTK_TEXT_DIR_LTR);
  gtk_source_buffer_set_highlight_matching_brackets (
    GTK_SOURCE_BUFFER (gtk_text_view_get_buffer (GTK_TEXT_VIEW (self->view))), FALSE);
  g_signal_connect_object (adw_style_manager_get_default (), "notify::dark", G_CALLBACK (update_scheme), self,
                           G_CONNECT_SWAPPED);
  update_scheme (self);
}

/**
 * ox_code_block_new:
 *
 * Returns: an empty code block
 */
GtkWidget *
ox_code_block_new (void)
{
  return g_object_new (OX_TYPE_CODE_BLOCK, NULL);
}

static void
set_language (OxCodeBlock *self, const char *written)
{
  if (self->language != NULL && g_strcmp0 (self->language, written) == 0)
    return;
  g_free (self->language);
  self->language = g_strdup (written != NULL ? written : "");

  GtkSourceLanguage *language = self->language[0] != '\0' ? find_language (self->language) : NULL;
  const char *name = self->language[0] == '\0' ? _ ("Code")
                     : language != NULL        ? gtk_source_language_get_name (language)
                                               : self->language;
  /* "Python 3" is only GtkSourceView's distinction. */
  if (g_str_equal (name, "Python 3"))
    name = "Python";
  gtk_label_set_label (self->language_label, name);
  gtk_source_buffer_set_language (GTK_SOURCE_BUFFER (gtk_text_view_get_buffer (GTK_TEXT_VIEW (self->view))), language);
}

/**
 * ox_code_block_set_code:
 * @self: a code block
 * @language: (nullable): the language as written behind the fence
 * @code: the code
 *
 * Shows @code. When it goes on from what was shown, only what is new is added.
 */
void
ox_code_block_set_code (OxCodeBlock *self, const char *language, const char *code)
{
  GtkTextBuffer *buffer = gtk_text_view_get_buffer (GTK_TEXT_VIEW (self->view));
  GString *shown = make_shown (code);

  set_language (self, language);
  gtk_source_buffer_set_highlight_syntax (GTK_SOURCE_BUFFER (buffer), shown->len <= MAX_HIGHLIGHTED_BYTES);
  if (shown->len >= self->shown->len && memcmp (shown->str, self->shown->str, self->shown->len) == 0) {
    GtkTextIter end;
    gtk_text_buffer_get_end_iter (buffer, &end);
    gtk_text_buffer_insert (buffer, &end, shown->str + self->shown->len, (int) (shown->len - self->shown->len));
  } else {
    gtk_text_buffer_set_text (buffer, shown->str, (int) shown->len);
  }
  g_string_free (self->shown, TRUE);
  self->shown = shown;
  g_free (self->code);
  self->code = g_strdup (code);

  int lines = gtk_text_buffer_get_line_count (buffer);
  gtk_scrolled_window_set_policy (self->scroller, GTK_POLICY_AUTOMATIC,
                                  lines > MAX_LINES ? GTK_POLICY_AUTOMATIC : GTK_POLICY_NEVER);
  /* Translators: name of a code block for screen readers; language, then number of lines. */
  g_autofree char *name = g_strdup_printf (ngettext ("Code, %s, %d line", "Code, %s, %d lines", lines),
                                           gtk_label_get_label (self->language_label), lines);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self), GTK_ACCESSIBLE_PROPERTY_LABEL, name, -1);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->view), GTK_ACCESSIBLE_PROPERTY_LABEL, name, -1);
}

/**
 * ox_code_block_get_code:
 * @self: a code block
 *
 * Returns: (nullable): the code as Copy gives it
 */
const char *
ox_code_block_get_code (OxCodeBlock *self)
{
  return self->code;
}
