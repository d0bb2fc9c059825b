/* Markdown as a tree of blocks with their text as Pango markup, made with md4c.
 *
 * What a model writes is not to be trusted: nesting, the size of one label and the number of labels below one
 * top-level block are bounded, so that no text can make the window hang or overflow the stack.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-markdown.h"

#include "ox-text-direction.h"

#include <md4c.h>
#include <string.h>

/* Deeper containers are flattened into the last one. */
#define MAX_DEPTH 10
/* Deeper spans are shown without their style. */
#define MAX_SPANS 16
/* A longer paragraph becomes several, because one label is laid out as a whole. */
#define MAX_LABEL_BYTES 4000
/* So does a longer word: for every line that it fills, Pango shapes all that is left of it again. */
#define MAX_WORD_BYTES 160
/* After so many labels a top-level block is cut, and the rest follows as plain paragraphs. */
#define MAX_LEAVES 600

typedef struct {
  const char *open; /* owned */
  const char *close;
} Span;

typedef struct {
  GPtrArray *top;
  GPtrArray *stack; /* of OxMdBlock, borrowed; the containers now open */
  guint ignored;    /* containers that were entered beyond MAX_DEPTH or after the cut */
  guint leaves;
  gboolean cut;
  OxMdBlock *leaf; /* the paragraph, heading, cell or code block now being filled; owned until closed */
  GString *text;
  gboolean has_text;
  gsize word; /* bytes of the leaf's text since the last place where a line may end */
  GArray *spans;
  guint ignored_spans;
} Parser;

static OxMdBlock *
block_new (OxMdKind kind)
{
  OxMdBlock *block = g_new0 (OxMdBlock, 1);
  block->kind = kind;
  block->direction = GTK_TEXT_DIR_NONE;
  return block;
}

/**
 * ox_md_block_free:
 * @block: a block
 *
 * Frees @block and all below it.
 */
void
ox_md_block_free (OxMdBlock *block)
{
  g_free (block->text);
  g_free (block->info);
  g_clear_pointer (&block->children, g_ptr_array_unref);
  g_free (block);
}

/**
 * ox_md_block_equal:
 * @a: a block
 * @b: another block
 *
 * Returns: whether both look the same
 */
gboolean
ox_md_block_equal (const OxMdBlock *a, const OxMdBlock *b)
{
  if (a->kind != b->kind || a->level != b->level || a->align != b->align || a->header != b->header ||
      a->task != b->task || a->direction != b->direction || g_strcmp0 (a->text, b->text) != 0 ||
      g_strcmp0 (a->info, b->info) != 0)
    return FALSE;

  guint n_a = a->children != NULL ? a->children->len : 0;
  guint n_b = b->children != NULL ? b->children->len : 0;
  if (n_a != n_b)
    return FALSE;
  for (guint i = 0; i < n_a; i++)
    if (!ox_md_block_equal (a->children->pdata[i], b->children->pdata[i]))
      return FALSE;
  return TRUE;
}

static void
parser_add_block (Parser *parser, OxMdBlock *block)
{
  if (parser->stack->len == 0 || parser->cut) {
    g_ptr_array_add (parser->top, block);
    return;
  }
  OxMdBlock *parent = parser->stack->pdata[parser->stack->len - 1];
  if (parent->children == NULL)
    parent->children = g_ptr_array_new_with_free_func ((GDestroyNotify) ox_md_block_free);
  g_ptr_array_add (parent->children, block);
}

static void
parser_open_leaf (Parser *parser, OxMdKind kind)
{
  parser->leaf = block_new (kind);
  parser->has_text = FALSE;
  parser->word = 0;
  g_string_set_size (parser->text, 0);
}

static void
parser_close_leaf (Parser *parser)
{
  if (parser->leaf == NULL)
    return;
  OxMdBlock *leaf = g_steal_pointer (&parser->leaf);
  if (leaf->kind == OX_MD_CODE && g_str_has_suffix (parser->text->str, "\n"))
    g_string_set_size (parser->text, parser->text->len - 1);
  leaf->text = g_strndup (parser->text->str, parser->text->len);
  if (leaf->kind == OX_MD_PARAGRAPH && !parser->has_text) {
    ox_md_block_free (leaf);
    return;
  }
  if (parser->cut && leaf->kind == OX_MD_CELL)
    leaf->kind = OX_MD_PARAGRAPH;
  parser_add_block (parser, leaf);

  if (parser->stack->len > 0 && ++parser->leaves > MAX_LEAVES && leaf->kind != OX_MD_CELL)
    parser->cut = TRUE;
}

/* Text straight in a list item, as tight lists have it, is a paragraph of its own. */
static void
parser_need_leaf (Parser *parser)
{
  if (parser->leaf == NULL)
    parser_open_leaf (parser, OX_MD_PARAGRAPH);
}

/* Ends a paragraph that is long enough for a label and goes on in a new one, with the same spans open. */
static void
parser_break_label (Parser *parser)
{
  for (guint i = parser->spans->len; i > 0; i--)
    g_string_append (parser->text, g_array_index (parser->spans, Span, i - 1).close);
  parser_close_leaf (parser);
  parser_open_leaf (parser, OX_MD_PARAGRAPH);
  for (guint i = 0; i < parser->spans->len; i++)
    g_string_append (parser->text, g_array_index (parser->spans, Span, i).open);
}

static gboolean
is_control (char c)
{
  return ((guchar) c < 0x20 && c != '\n' && c != '\t') || c == 0x7f;
}

static void
append_escaped (GString *out, const char *text, gsize length)
{
  for (gsize i = 0; i < length; i++) {
    char c = text[i];
    if (c == '<')
      g_string_append (out, "&lt;");
    else if (c == '>')
      g_string_append (out, "&gt;");
    else if (c == '&')
      g_string_append (out, "&amp;");
    else if (c == '"')
      g_string_append (out, "&quot;");
    else if (is_control (c))
      g_string_append (out, "\xef\xbf\xbd");
    else
      g_string_append_c (out, c);
  }
}

/* How much of @text the label takes before a word in it becomes too long. Lines end at white space, after a hyphen or a slash, and between
 * the wide characters of East Asia. */
static gsize
parser_measure_word (Parser *parser, const char *text, gsize length)
{
  const char *end = text + length;

  for (const char *p = text; p < end;) {
    const char *next = MIN (g_utf8_next_char (p), end);
    gunichar c = (guchar) *p < 0x80 ? (gunichar) *p : g_utf8_get_char_validated (p, end - p);

    if (c == ' ' || c == '\t' || c == '\n' || c == '-' || c == '/' ||
        (c >= 0x1100 && c < 0x110000 && g_unichar_iswide (c)))
      parser->word = 0;
    else if (parser->word + (gsize) (next - p) > MAX_WORD_BYTES)
      return (gsize) (p - text);
    else
      parser->word += (gsize) (next - p);
    p = next;
  }
  return length;
}

static void
parser_append_text (Parser *parser, const char *text, gsize length)
{
  parser_need_leaf (parser);
  if (parser->leaf->kind == OX_MD_CODE) {
    g_string_append_len (parser->text, text, length);
    return;
  }
  if (length > 0)
    parser->has_text = TRUE;

  while (length > 0) {
    gsize room = parser->text->len < MAX_LABEL_BYTES ? MAX_LABEL_BYTES - parser->text->len : 0;
    gsize take = length;
    if (length > room) {
      /* Cut behind a space where there is one, else between two characters. */
      take = room;
      while (take > 0 && text[take - 1] != ' ')
        take--;
      if (take == 0) {
        take = room;
        while (take > 0 && ((guchar) text[take] & 0xc0) == 0x80)
          take--;
      }
    }
    take = parser_measure_word (parser, text, take);
    if (parser->leaf->direction == GTK_TEXT_DIR_NONE)
      parser->leaf->direction = ox_text_direction (text, take);
    append_escaped (parser->text, text, take);
    text += take;
    length -= take;
    if (length > 0) {
      if (parser->leaf->kind != OX_MD_PARAGRAPH) {
        if (!g_str_has_suffix (parser->text->str, "…"))
          g_string_append (parser->text, "…");
        return;
      }
      parser_break_label (parser);
      parser->has_text = TRUE;
    }
  }
}

static const struct {
  const char *name;
  gunichar c;
} entities[] = {
  { "&amp;", '&' },     { "&lt;", '<' },      { "&gt;", '>' },       { "&quot;", '"' },     { "&apos;", '\'' },
  { "&nbsp;", 0xa0 },   { "&copy;", 0xa9 },   { "&reg;", 0xae },     { "&deg;", 0xb0 },     { "&plusmn;", 0xb1 },
  { "&times;", 0xd7 },  { "&divide;", 0xf7 }, { "&ndash;", 0x2013 }, { "&mdash;", 0x2014 }, { "&hellip;", 0x2026 },
  { "&bull;", 0x2022 }, { "&euro;", 0x20ac }, { "&larr;", 0x2190 },  { "&rarr;", 0x2192 },  { "&le;", 0x2264 },
  { "&ge;", 0x2265 },   { "&ne;", 0x2260 },   { "&infin;", 0x221e },
};

static void
parser_append_entity (Parser *parser, const char *text, gsize length)
{
  g_autofree char *name = g_strndup (text, length);
  gunichar c = 0;
  if (g_str_has_prefix (name, "&#x") || g_str_has_prefix (name, "&#X"))
    c = (gunichar) g_ascii_strtoull (name + 3, NULL, 16);
  else if (g_str_has_prefix (name, "&#"))
    c = (gunichar) g_ascii_strtoull (name + 2, NULL, 10);
  else
    for (guint i = 0; i < G_N_ELEMENTS (entities); i++)
      if (g_str_equal (entities[i].name, name))
        c = entities[i].c;

  if (c == 0 || !g_unichar_validate (c)) {
    parser_append_text (parser, text, length);
    return;
  }
  char utf8[6];
  int n = g_unichar_to_utf8 (c, utf8);
  parser_append_text (parser, utf8, n);
}

static void
parser_open_container (Parser *parser, OxMdBlock *block)
{
  /* A list or a table needs room for its items or rows, too, for nothing else may be its child. */
  guint levels = block->kind == OX_MD_LIST || block->kind == OX_MD_TABLE ? 2 : 1;
  if (parser->cut || parser->ignored > 0 || parser->stack->len + levels > MAX_DEPTH) {
    parser->ignored++;
    ox_md_block_free (block);
    return;
  }
  parser_add_block (parser, block);
  g_ptr_array_add (parser->stack, block);
  /* Cells end their row before a table is cut, so that no row is half filled. */
  if (block->kind == OX_MD_ROW && parser->leaves > MAX_LEAVES)
    parser->cut = TRUE;
}

static void
parser_close_container (Parser *parser)
{
  parser_close_leaf (parser);
  if (parser->ignored > 0) {
    parser->ignored--;
    return;
  }
  g_ptr_array_set_size (parser->stack, parser->stack->len - 1);
  if (parser->stack->len == 0) {
    parser->leaves = 0;
    parser->cut = FALSE;
  }
}

static char *
attribute_dup (const MD_ATTRIBUTE *attribute)
{
  return attribute->text != NULL ? g_strndup (attribute->text, attribute->size) : NULL;
}

static int
enter_block_cb (MD_BLOCKTYPE type, void *detail, void *user_data)
{
  Parser *parser = user_data;
  OxMdBlock *block;

  switch (type) {
  case MD_BLOCK_DOC:
  case MD_BLOCK_THEAD:
  case MD_BLOCK_TBODY:
  case MD_BLOCK_HTML:
    break;
  case MD_BLOCK_QUOTE:
    parser_close_leaf (parser);
    parser_open_container (parser, block_new (OX_MD_QUOTE));
    break;
  case MD_BLOCK_UL:
    parser_close_leaf (parser);
    block = block_new (OX_MD_LIST);
    block->level = -1;
    parser_open_container (parser, block);
    break;
  case MD_BLOCK_OL:
    parser_close_leaf (parser);
    block = block_new (OX_MD_LIST);
    block->level = MIN (((MD_BLOCK_OL_DETAIL *) detail)->start, 999999999);
    parser_open_container (parser, block);
    break;
  case MD_BLOCK_LI: {
    MD_BLOCK_LI_DETAIL *item = detail;
    block = block_new (OX_MD_ITEM);
    if (item->is_task)
      block->task = item->task_mark == ' ' ? ' ' : 'x';
    parser_open_container (parser, block);
    break;
  }
  case MD_BLOCK_TABLE:
    parser_close_leaf (parser);
    parser_open_container (parser, block_new (OX_MD_TABLE));
    break;
  case MD_BLOCK_TR:
    parser_open_container (parser, block_new (OX_MD_ROW));
    break;
  case MD_BLOCK_TH:
  case MD_BLOCK_TD: {
    MD_BLOCK_TD_DETAIL *cell = detail;
    parser_open_leaf (parser, parser->ignored > 0 ? OX_MD_PARAGRAPH : OX_MD_CELL);
    parser->leaf->header = type == MD_BLOCK_TH;
    parser->leaf->align = cell->align == MD_ALIGN_CENTER ? 1 : cell->align == MD_ALIGN_RIGHT ? 2 : 0;
    break;
  }
  case MD_BLOCK_HR:
    parser_close_leaf (parser);
    parser_add_block (parser, block_new (OX_MD_RULE));
    break;
  case MD_BLOCK_H:
    parser_close_leaf (parser);
    parser_open_leaf (parser, OX_MD_HEADING);
    parser->leaf->level = ((MD_BLOCK_H_DETAIL *) detail)->level;
    break;
  case MD_BLOCK_CODE:
    parser_close_leaf (parser);
    parser_open_leaf (parser, OX_MD_CODE);
    parser->leaf->info = attribute_dup (&((MD_BLOCK_CODE_DETAIL *) detail)->lang);
    break;
  case MD_BLOCK_P:
    parser_close_leaf (parser);
    parser_open_leaf (parser, OX_MD_PARAGRAPH);
    break;
  }
  return 0;
}

static int
leave_block_cb (MD_BLOCKTYPE type, void *detail, void *user_data)
{
  Parser *parser = user_data;

  switch (type) {
  case MD_BLOCK_QUOTE:
  case MD_BLOCK_UL:
  case MD_BLOCK_OL:
  case MD_BLOCK_LI:
  case MD_BLOCK_TABLE:
  case MD_BLOCK_TR:
    parser_close_container (parser);
    break;
  case MD_BLOCK_TH:
  case MD_BLOCK_TD:
  case MD_BLOCK_H:
  case MD_BLOCK_CODE:
  case MD_BLOCK_P:
    parser_close_leaf (parser);
    break;
  case MD_BLOCK_DOC:
  case MD_BLOCK_THEAD:
  case MD_BLOCK_TBODY:
  case MD_BLOCK_HTML:
  case MD_BLOCK_HR:
    break;
  }
  return 0;
}

/* Only addresses that a browser or a mail program opens become links; "file:" and "javascript:" stay text. */
static gboolean
is_safe_address (const char *address)
{
  return g_ascii_strncasecmp (address, "https://", 8) == 0 || g_ascii_strncasecmp (address, "http://", 7) == 0 ||
         g_ascii_strncasecmp (address, "mailto:", 7) == 0;
}

static int
enter_span_cb (MD_SPANTYPE type, void *detail, void *user_data)
{
  Parser *parser = user_data;
  g_autofree char *open = NULL;
  const char *close = "";

  parser_need_leaf (parser);
  if (parser->ignored_spans > 0 || parser->spans->len >= MAX_SPANS) {
    parser->ignored_spans++;
    return 0;
  }

  switch (type) {
  case MD_SPAN_EM:
    open = g_strdup ("<i>");
    close = "</i>";
    break;
  case MD_SPAN_STRONG:
    open = g_strdup ("<b>");
    close = "</b>";
    break;
  case MD_SPAN_DEL:
    open = g_strdup ("<s>");
    close = "</s>";
    break;
  case MD_SPAN_U:
    open = g_strdup ("<u>");
    close = "</u>";
    break;
  case MD_SPAN_CODE:
    open = g_strdup ("<span font_family=\"monospace\" size=\"94%\" background=\"#808080\" bgalpha=\"12%\">");
    close = "</span>";
    break;
  case MD_SPAN_A:
  case MD_SPAN_IMG: {
    const MD_ATTRIBUTE *attribute =
      type == MD_SPAN_A ? &((MD_SPAN_A_DETAIL *) detail)->href : &((MD_SPAN_IMG_DETAIL *) detail)->src;
    g_autofree char *address = attribute_dup (attribute);
    if (address != NULL && strlen (address) < 2000 && is_safe_address (address)) {
      GString *markup = g_string_new ("<a href=\"");
      append_escaped (markup, address, strlen (address));
      g_string_append (markup, "\">");
      open = g_string_free (markup, FALSE);
      close = "</a>";
    }
    break;
  }
  case MD_SPAN_LATEXMATH:
  case MD_SPAN_LATEXMATH_DISPLAY:
  case MD_SPAN_WIKILINK:
    break;
  }

  Span span = { open != NULL ? g_steal_pointer (&open) : g_strdup (""), close };
  g_string_append (parser->text, span.open);
  g_array_append_val (parser->spans, span);
  return 0;
}

static int
leave_span_cb (MD_SPANTYPE type, void *detail, void *user_data)
{
  Parser *parser = user_data;

  if (parser->ignored_spans > 0) {
    parser->ignored_spans--;
    return 0;
  }
  Span *span = &g_array_index (parser->spans, Span, parser->spans->len - 1);
  g_string_append (parser->text, span->close);
  g_free ((char *) span->open);
  g_array_set_size (parser->spans, parser->spans->len - 1);
  return 0;
}

static int
text_cb (MD_TEXTTYPE type, const MD_CHAR *text, MD_SIZE size, void *user_data)
{
  Parser *parser = user_data;

  switch (type) {
  case MD_TEXT_NULLCHAR:
    parser_append_text (parser, "\xef\xbf\xbd", 3);
    break;
  case MD_TEXT_BR:
    parser_append_text (parser, "\n", 1);
    break;
  case MD_TEXT_SOFTBR:
    parser_append_text (parser, " ", 1);
    break;
  case MD_TEXT_ENTITY:
    parser_append_entity (parser, text, size);
    break;
  case MD_TEXT_NORMAL: {
    /* Models write <br> where Markdown has no line break, as in table cells. */
    const char *rest = text;
    gsize left = size;
    for (;;) {
      const char *br = memmem (rest, left, "<br", 3);
      if (br == NULL)
        break;
      gsize at = br - rest;
      const char *end = memchr (br, '>', left - at);
      if (end == NULL || end - br > 5)
        break;
      parser_append_text (parser, rest, at);
      parser_append_text (parser, "\n", 1);
      left -= end + 1 - rest;
      rest = end + 1;
    }
    parser_append_text (parser, rest, left);
    break;
  }
  case MD_TEXT_CODE:
  case MD_TEXT_HTML:
  case MD_TEXT_LATEXMATH:
    parser_append_text (parser, text, size);
    break;
  }
  return 0;
}

static void
parser_init (Parser *parser)
{
  memset (parser, 0, sizeof *parser);
  parser->top = g_ptr_array_new_with_free_func ((GDestroyNotify) ox_md_block_free);
  parser->stack = g_ptr_array_new ();
  parser->text = g_string_new (NULL);
  parser->spans = g_array_new (FALSE, FALSE, sizeof (Span));
}

static GPtrArray *
parser_finish (Parser *parser)
{
  parser_close_leaf (parser);
  for (guint i = 0; i < parser->spans->len; i++)
    g_free ((char *) g_array_index (parser->spans, Span, i).open);
  g_array_unref (parser->spans);
  g_string_free (parser->text, TRUE);
  g_ptr_array_unref (parser->stack);
  return parser->top;
}

/**
 * ox_markdown_parse:
 * @text: valid UTF-8
 * @length: bytes of @text
 *
 * Returns: (transfer full) (element-type OxMdBlock): the top-level blocks
 */
GPtrArray *
ox_markdown_parse (const char *text, gsize length)
{
  static const MD_PARSER md4c = {
    .flags = MD_FLAG_TABLES | MD_FLAG_STRIKETHROUGH | MD_FLAG_TASKLISTS | MD_FLAG_PERMISSIVEURLAUTOLINKS |
             MD_FLAG_NOHTML | MD_FLAG_NOINDENTEDCODEBLOCKS,
    .enter_block = enter_block_cb,
    .leave_block = leave_block_cb,
    .enter_span = enter_span_cb,
    .leave_span = leave_span_cb,
    .text = text_cb,
  };
  Parser parser;

  if (length > G_MAXUINT32)
    return ox_markdown_parse_plain (text, length);
  parser_init (&parser);
  if (md_parse (text, (MD_SIZE) length, &md4c, &parser) != 0) {
    g_ptr_array_unref (parser_finish (&parser));
    return ox_markdown_parse_plain (text, length);
  }
  return parser_finish (&parser);
}

/**
 * ox_markdown_parse_plain:
 * @text: valid UTF-8
 * @length: bytes of @text
 *
 * Text as a person typed it: line breaks stay, nothing is markup.
 *
 * Returns: (transfer full) (element-type OxMdBlock): paragraphs of a size that a label can show
 */
GPtrArray *
ox_markdown_parse_plain (const char *text, gsize length)
{
  Parser parser;
  parser_init (&parser);

  while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == ' '))
    length--;
  while (length > 0) {
    /* Whole lines into one label while there is room, so that most messages are one. */
    const char *newline = memchr (text, '\n', length);
    gsize line = newline != NULL ? (gsize) (newline - text) : length;
    if (parser.leaf != NULL && parser.text->len + line > MAX_LABEL_BYTES)
      parser_close_leaf (&parser);
    else if (parser.leaf != NULL)
      parser_append_text (&parser, "\n", 1);
    parser_append_text (&parser, text, line);
    if (newline == NULL)
      break;
    text += line + 1;
    length -= line + 1;
  }
  return parser_finish (&parser);
}

static gboolean
is_list_marker (const char *line, gsize length)
{
  gsize i = 0;
  if (length > 0 && strchr ("-*+", line[0]) != NULL)
    return length == 1 || line[1] == ' ' || line[1] == '\t';
  while (i < length && i < 9 && g_ascii_isdigit (line[i]))
    i++;
  return i > 0 && i < length && (line[i] == '.' || line[i] == ')');
}

/**
 * ox_markdown_find_split:
 * @text: Markdown that starts at a top-level block
 * @length: bytes of @text
 *
 * Finds where the text can be cut so that both parts, parsed alone, give the same blocks as the whole: behind an
 * empty line, outside a fenced code block, before a line that cannot belong to a list above it.
 *
 * Returns: bytes before the last such place, 0 if there is none
 */
gsize
ox_markdown_find_split (const char *text, gsize length)
{
  gsize split = 0;
  gboolean blank = FALSE;
  char fence = 0;
  gsize fence_length = 0;

  for (gsize at = 0; at < length;) {
    const char *line = text + at;
    const char *newline = memchr (line, '\n', length - at);
    gsize n = newline != NULL ? (gsize) (newline - line) : length - at;
    gsize indent = 0;
    while (indent < n && (line[indent] == ' ' || line[indent] == '\t'))
      indent++;
    gsize run = 0;
    char c = indent < n ? line[indent] : 0;
    if (c == '`' || c == '~')
      while (indent + run < n && line[indent + run] == c)
        run++;

    /* A line that is still being written may yet become a list item. */
    if (fence == 0 && blank && indent == 0 && n > 0 && newline != NULL && !is_list_marker (line, n))
      split = at;
    blank = indent == n || (n == indent + 1 && line[indent] == '\r');

    if (fence == 0 && run >= 3) {
      fence = c;
      fence_length = run;
    } else if (fence != 0 && c == fence && run >= fence_length) {
      fence = 0;
    }
    at += n + 1;
  }
  return split;
}
