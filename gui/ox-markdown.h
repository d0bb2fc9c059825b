/* Markdown as a tree of blocks with their text as Pango markup, made with md4c.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <gtk/gtk.h>

G_BEGIN_DECLS

typedef enum {
  OX_MD_PARAGRAPH,
  OX_MD_HEADING,
  OX_MD_LIST,
  OX_MD_ITEM,
  OX_MD_QUOTE,
  OX_MD_CODE,
  OX_MD_TABLE,
  OX_MD_ROW,
  OX_MD_CELL,
  OX_MD_RULE,
} OxMdKind;

typedef struct _OxMdBlock OxMdBlock;

/**
 * OxMdBlock:
 * @kind: what the block is
 * @level: heading: 1 to 6; ordered list: number of its first item; bullet list: -1
 * @align: table cell: 0 start, 1 centre, 2 end
 * @header: table cell of the head row
 * @task: list item: ' ' open, 'x' done, 0 not a task
 * @direction: direction of the first letter of @text
 * @text: (nullable): Pango markup of a paragraph, heading or cell; the plain text of a code block
 * @info: (nullable): code block: its language as written
 * @children: (nullable): blocks of a list, item, quote, table or row
 */
struct _OxMdBlock {
  OxMdKind kind;
  int level;
  int align;
  gboolean header;
  char task;
  GtkTextDirection direction;
  char *text;
  char *info;
  GPtrArray *children;
};

void ox_md_block_free (OxMdBlock *block);

gboolean ox_md_block_equal (const OxMdBlock *a, const OxMdBlock *b);

GPtrArray *ox_markdown_parse (const char *text, gsize length);

GPtrArray *ox_markdown_parse_plain (const char *text, gsize length);

gsize ox_markdown_find_split (const char *text, gsize length);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (OxMdBlock, ox_md_block_free)

G_END_DECLS
