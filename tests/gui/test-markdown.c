/* Markdown as blocks: what is understood, what is left alone, and that no text makes it slow or deep.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-markdown.h"

#include <string.h>

/* Blocks as one line: "h1(Title) p(text) ul(li(p(a)))". */
static void
describe (GPtrArray *blocks, GString *out)
{
  static const char *const names[] = { "p", "h", "list", "li", "quote", "code", "table", "row", "cell", "rule" };

  for (guint i = 0; blocks != NULL && i < blocks->len; i++) {
    const OxMdBlock *block = blocks->pdata[i];
    if (i > 0)
      g_string_append_c (out, ' ');
    g_string_append (out, names[block->kind]);
    if (block->level != 0)
      g_string_append_printf (out, "%d", block->level);
    if (block->task != 0)
      g_string_append_c (out, block->task);
    g_string_append_c (out, '(');
    if (block->info != NULL)
      g_string_append_printf (out, "%s:", block->info);
    if (block->text != NULL)
      g_string_append (out, block->text);
    describe (block->children, out);
    g_string_append_c (out, ')');
  }
}

static char *
dup_description (GPtrArray *blocks)
{
  GString *out = g_string_new (NULL);
  describe (blocks, out);
  return g_string_free (out, FALSE);
}

static void
assert_blocks (const char *text, const char *expected)
{
  g_autoptr (GPtrArray) blocks = ox_markdown_parse (text, strlen (text));
  g_autofree char *found = dup_description (blocks);
  g_assert_cmpstr (found, ==, expected);
}

static void
test_blocks (void)
{
  assert_blocks ("# One\n\n### Three\n", "h1(One) h3(Three)");
  assert_blocks ("a\nb\n\nc  \nd", "p(a b) p(c\nd)");
  assert_blocks ("- a\n- b", "list-1(li(p(a)) li(p(b)))");
  assert_blocks ("3. a\n4. b", "list3(li(p(a)) li(p(b)))");
  assert_blocks ("- a\n  - b\n\n    c", "list-1(li(p(a) list-1(li(p(b) p(c)))))");
  assert_blocks ("- [x] a\n- [ ] b", "list-1(lix(p(a)) li (p(b)))");
  assert_blocks ("> a\n>\n> b", "quote(p(a) p(b))");
  assert_blocks ("---", "rule()");
  assert_blocks ("```py\nx < 1\n\ny\n```", "code(py:x < 1\n\ny)");
  assert_blocks ("```\nnever closed", "code(never closed)");
  assert_blocks ("|a|b|\n|-|-|\n|1<br>2|**3**|", "table(row(cell(a) cell(b)) row(cell(1\n2) cell(<b>3</b>)))");
}

static void
test_spans (void)
{
  assert_blocks ("**b** *i* ~~s~~", "p(<b>b</b> <i>i</i> <s>s</s>)");
  assert_blocks ("[t](https://a.b/?x=1&y=\"2\")", "p(<a href=\"https://a.b/?x=1&amp;y=&quot;2&quot;\">t</a>)");
  assert_blocks ("[t](javascript:alert(1)) [f](file:///etc/passwd)", "p(t f)");
  assert_blocks ("![cat](https://a.b/cat.png)", "p(<a href=\"https://a.b/cat.png\">cat</a>)");
  assert_blocks ("&amp; &lt; &#233; &nosuch;", "p(&amp; &lt; é &amp;nosuch;)");
}

/* What only looks like markup stays text. */
static void
test_prose (void)
{
  assert_blocks ("It costs $5 to $10, or 5 $ each.", "p(It costs $5 to $10, or 5 $ each.)");
  assert_blocks ("a | b | c", "p(a | b | c)");
  assert_blocks ("x_1 and y_2, 2 * 3 * 4", "p(x_1 and y_2, 2 * 3 * 4)");
  assert_blocks ("<script>alert('x')</script>", "p(&lt;script&gt;alert('x')&lt;/script&gt;)");
  assert_blocks ("a <b>not bold</b> & c", "p(a &lt;b&gt;not bold&lt;/b&gt; &amp; c)");
  assert_blocks ("bell\x07 and nul", "p(bell\xef\xbf\xbd and nul)");
}

static void
test_direction (void)
{
  g_autoptr (GPtrArray) blocks = ox_markdown_parse ("hello\n\nשלום hello\n\n123\n\n**مرحبا**",
                                                    -1 + sizeof "hello\n\nשלום hello\n\n123\n\n**مرحبا**");
  const GtkTextDirection expected[] = { GTK_TEXT_DIR_LTR, GTK_TEXT_DIR_RTL, GTK_TEXT_DIR_NONE, GTK_TEXT_DIR_RTL };
  g_assert_cmpuint (blocks->len, ==, G_N_ELEMENTS (expected));
  for (guint i = 0; i < blocks->len; i++)
    g_assert_cmpint (((OxMdBlock *) blocks->pdata[i])->direction, ==, expected[i]);
}

static void
test_plain (void)
{
  const char *text = "*not* `markup` <b>\nsecond line\n\n";
  g_autoptr (GPtrArray) blocks = ox_markdown_parse_plain (text, strlen (text));
  g_autofree char *found = dup_description (blocks);
  g_assert_cmpstr (found, ==, "p(*not* `markup` &lt;b&gt;\nsecond line)");
}

/* Cut at the place that is found, both parts give the same blocks as the whole, at every moment of writing. */
static void
test_split (void)
{
  static const char text[] =
    "# Title\n\nOne *two*\nthree.\n\n- a\n\n- b\n\n  c\n\nfour\n\n```c\nint x;\n\nint y;\n```\n\n"
    "1. x\n2. y\n\n   > q\n\n> quote\n\n|a|b|\n|-|-|\n|1|2|\n\nfive\n\n~~~\n```\n\n~~~\nsix\n\nend\n";
  guint n_splits = 0;

  for (gsize length = 1; length < sizeof text; length++) {
    gsize split = ox_markdown_find_split (text, length);
    g_assert_cmpuint (split, <=, length);
    n_splits += split > 0;
    g_autoptr (GPtrArray) whole = ox_markdown_parse (text, length);
    g_autoptr (GPtrArray) parts = ox_markdown_parse (text, split);
    g_ptr_array_extend_and_steal (parts, ox_markdown_parse (text + split, length - split));
    g_autofree char *expected = dup_description (whole);
    g_autofree char *found = dup_description (parts);
    g_assert_cmpstr (found, ==, expected);
  }
  g_assert_cmpuint (n_splits, >, sizeof text / 2);
}

static guint
depth_of (GPtrArray *blocks)
{
  guint depth = 0;
  for (guint i = 0; blocks != NULL && i < blocks->len; i++)
    depth = MAX (depth, 1 + depth_of (((OxMdBlock *) blocks->pdata[i])->children));
  return depth;
}

/* The longest label, and the number of labels below one top-level block. */
static void
measure (const OxMdBlock *block, gsize *longest, guint *labels)
{
  if (block->text != NULL && block->kind != OX_MD_CODE) {
    *longest = MAX (*longest, strlen (block->text));
    *labels += 1;
  }
  for (guint i = 0; block->children != NULL && i < block->children->len; i++)
    measure (block->children->pdata[i], longest, labels);
}

static void
test_hostile (void)
{
  static const struct {
    const char *name;
    const char *head;
    const char *unit;
    guint n;
  } cases[] = {
    { "nested quotes", "", "> ", 10000 },
    { "one line", "", "a", 1000000 },
    { "one line of words", "", "word ", 200000 },
    { "one line of Arabic", "", "مرحبا", 100000 },
    { "open brackets", "", "[", 100000 },
    { "open links", "", "[a](", 50000 },
    { "open emphasis", "", "*a_ ", 50000 },
    { "nested emphasis", "", "**a *b ", 20000 },
    { "list", "", "- x\n", 50000 },
    { "nested list markers", "", "- ", 10000 },
    { "table", "|a|b|\n|-|-|\n", "|1|2|\n", 20000 },
    { "wide table", "|a|b|\n|-|-|\n", "|x", 100000 },
    { "backticks", "", "`", 100000 },
    { "fences", "", "```\n", 50000 },
    { "entities", "", "&amp;", 100000 },
    { "headings", "", "# x\n", 50000 },
    { "invalid markup", "", "<a <b & ]]> ", 50000 },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GString) text = g_string_new (cases[i].head);
    for (guint n = 0; n < cases[i].n; n++)
      g_string_append (text, cases[i].unit);

    gint64 start = g_get_monotonic_time ();
    g_autoptr (GPtrArray) blocks = ox_markdown_parse (text->str, text->len);
    ox_markdown_find_split (text->str, text->len);
    double ms = (double) (g_get_monotonic_time () - start) / 1000;
    g_test_message ("%s: %" G_GSIZE_FORMAT " bytes, %u blocks, %.1f ms", cases[i].name, text->len, blocks->len, ms);

    /* About a hundred times what it takes on an idle computer: what is quadratic takes minutes. */
    g_assert_cmpfloat (ms, <, 5000);
    g_assert_cmpuint (depth_of (blocks), <=, 12);
    for (guint b = 0; b < blocks->len; b++) {
      gsize longest = 0;
      guint labels = 0;
      measure (blocks->pdata[b], &longest, &labels);
      /* 4,000 bytes as written, of which each may be escaped to six, with the tags of the spans that are open. */
      g_assert_cmpuint (longest, <, 30000);
      g_assert_cmpuint (labels, <, 1000);
    }
  }
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/markdown/blocks", test_blocks);
  g_test_add_func ("/markdown/spans", test_spans);
  g_test_add_func ("/markdown/prose", test_prose);
  g_test_add_func ("/markdown/direction", test_direction);
  g_test_add_func ("/markdown/plain", test_plain);
  g_test_add_func ("/markdown/split", test_split);
  g_test_add_func ("/markdown/hostile", test_hostile);
  return g_test_run ();
}
