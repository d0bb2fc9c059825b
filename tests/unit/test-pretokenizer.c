/* Pre-tokenizers: those matched by hand cut as the regular expressions do that they stand for, on text made to sit on the edges of
 * their rules.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <string.h>

#include "text/ox-pretokenizer.h"
#include "text/ox-unicode.h"

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define TAIL "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

typedef struct {
  const char *name;
  OxSplit split;
  const char *pattern;
} Rule;

static const Rule rules[] = {
  { "gpt2", OX_SPLIT_GPT2, "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+" },
  { "llama3", OX_SPLIT_LLAMA3,
    CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" TAIL },
  { "qwen2", OX_SPLIT_QWEN2, CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" TAIL },
  { "qwen35", OX_SPLIT_QWEN35,
    CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*" TAIL },
  { "digits", OX_SPLIT_DIGITS, "\\p{N}" },
  { "digit-runs", OX_SPLIT_DIGIT_RUNS, "\\p{N}+" },
};

static void
add_cut (const char *piece, gsize len, gpointer cuts)
{
  gsize end = (gsize) (piece - *(const char **) ((GArray *) cuts)->data) + len;

  g_array_append_val (cuts, end);
}

/* Where @text is cut; the first entry is the text itself, for add_cut(). */
static GArray *
cuts_of (OxPreTokenizer *pre, const char *text, gsize len)
{
  GArray *cuts = g_array_new (FALSE, FALSE, sizeof (gsize));
  gsize begin = GPOINTER_TO_SIZE (text);

  g_array_append_val (cuts, begin);
  ox_pre_tokenizer_run (pre, text, len, add_cut, cuts);
  return cuts;
}

/* Not in it: U+180E, which PCRE2 counts as white space and Unicode (and so the reference) no longer does. */
static void
test_rule (gconstpointer data)
{
  static const char *const bits[] = { "a",
                                      "B",
                                      "\303\251",
                                      "\344\270\255",
                                      "1",
                                      "\331\243",
                                      "\302\275",
                                      " ",
                                      " ",
                                      "\n",
                                      "\r",
                                      "\t",
                                      "\v",
                                      "\302\205",
                                      "\302\240",
                                      "\343\200\200",
                                      "'",
                                      "s",
                                      "S",
                                      "'re",
                                      "'LL",
                                      "'ve",
                                      "\305\277",
                                      "!",
                                      "_",
                                      "-",
                                      ".",
                                      "\314\201",
                                      "\340\244\276",
                                      "\360\237\230\200",
                                      "\342\200\215",
                                      "\343\200\200",
                                      "\342\200\250",
                                      "\357\273\277" };
  const Rule *rule = data;
  g_autoptr (OxPreTokenizer) by_hand = ox_pre_tokenizer_new ();
  g_autoptr (OxPreTokenizer) by_regex = ox_pre_tokenizer_new ();
  g_autoptr (GError) error = NULL;
  /* A group around it, so that it is not recognised. */
  g_autofree char *pattern = g_strdup_printf ("(?:%s)", rule->pattern);

  ox_pre_tokenizer_add (by_hand, rule->split);
  g_assert_true (ox_pre_tokenizer_add_regex (by_regex, pattern, OX_SPLIT_ISOLATED, &error));
  g_assert_no_error (error);
  for (guint round = 0; round < 20000; round++) {
    GString *text = g_string_new (NULL);

    for (gint32 n = g_test_rand_int_range (1, 14); n > 0; n--)
      g_string_append (text, bits[g_test_rand_int_range (0, G_N_ELEMENTS (bits))]);
    {
      g_autoptr (GArray) a = cuts_of (by_hand, text->str, text->len);
      g_autoptr (GArray) b = cuts_of (by_regex, text->str, text->len);

      if (a->len != b->len || memcmp (a->data, b->data, a->len * sizeof (gsize)) != 0) {
        g_autofree char *escaped = g_strescape (text->str, NULL);

        g_test_message ("“%s”", escaped);
        g_test_fail ();
        round = G_MAXUINT - 1;
      }
    }
    g_string_free (text, TRUE);
  }
}

/* A pattern in a file is recognised, and cuts the same. */
static void
test_behaviors (void)
{
  static const struct {
    OxSplitBehavior behavior;
    const char *expected;
  } cases[] = {
    { OX_SPLIT_ISOLATED, "a|-|b|-|-|c" },
    { OX_SPLIT_REMOVED, "a|b|c" },
    { OX_SPLIT_MERGED_WITH_PREVIOUS, "a-|b-|-|c" },
    { OX_SPLIT_MERGED_WITH_NEXT, "a|-b|-|-c" },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    static const char text[] = "a-b--c";
    g_autoptr (OxPreTokenizer) pre = ox_pre_tokenizer_new ();
    g_autoptr (GArray) cuts = NULL;
    GString *joined = g_string_new (NULL);
    gsize end = 0;

    g_assert_true (ox_pre_tokenizer_add_regex (pre, "-", cases[i].behavior, NULL));
    cuts = cuts_of (pre, text, strlen (text));
    for (guint k = 1; k < cuts->len; k++) {
      gsize begin = cases[i].behavior == OX_SPLIT_REMOVED && end > 0 ? end + strspn (text + end, "-") : end;

      end = g_array_index (cuts, gsize, k);
      g_string_append_printf (joined, "%s%.*s", k > 1 ? "|" : "", (int) (end - begin), text + begin);
    }
    g_assert_cmpstr (joined->str, ==, cases[i].expected);
    g_string_free (joined, TRUE);
  }
}

/* Form C by parts is form C of the whole; characters taken for inert really are. */
static void
test_nfc (void)
{
  GString *all = g_string_new (NULL);

  for (gunichar c = 1; c < 0x30000; c++) {
    char text[16];
    int n = 0;
    GString *ours;
    g_autofree char *theirs = NULL;

    if (c >= 0xd800 && c < 0xe000)
      continue;
    /* With a letter that joins with many a mark before it, and one behind. */
    text[n++] = 'e';
    n += g_unichar_to_utf8 (c, text + n);
    n += g_unichar_to_utf8 (0x301, text + n);
    text[n] = '\0';
    ours = ox_unicode_nfc (text, (gsize) n);
    theirs = g_utf8_normalize (text, n, G_NORMALIZE_NFC);
    g_assert_cmpstr (ours ? ours->str : text, ==, theirs);
    if (ours)
      g_string_free (ours, TRUE);
    n = 0;
    n += g_unichar_to_utf8 (c, text + n);
    text[n] = '\0';
    ours = ox_unicode_nfc (text, (gsize) n);
    g_free (theirs);
    theirs = g_utf8_normalize (text, n, G_NORMALIZE_NFC);
    g_assert_cmpstr (ours ? ours->str : text, ==, theirs);
    if (ours)
      g_string_free (ours, TRUE);
    if (c % 7 == 0)
      g_string_append (all, text);
  }
  {
    GString *ours = ox_unicode_nfc (all->str, all->len);
    g_autofree char *theirs = g_utf8_normalize (all->str, (gssize) all->len, G_NORMALIZE_NFC);

    g_assert_nonnull (ours);
    g_assert_true (strcmp (ours->str, theirs) == 0);
    g_string_free (ours, TRUE);
  }
  g_string_free (all, TRUE);
}

/* U+0000 joins with nothing, and ends nothing. */
static void
test_nfc_nul (void)
{
  static const char text[] = "a\0\314\201e\314\201\0b";
  GString *ours = ox_unicode_nfc (text, sizeof text - 1);

  g_assert_nonnull (ours);
  g_assert_cmpmem (ours->str, ours->len, "a\0\314\201\303\251\0b", 8);
  g_string_free (ours, TRUE);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (rules); i++) {
    g_autofree char *path = g_strconcat ("/pretokenizer/", rules[i].name, NULL);

    g_test_add_data_func (path, rules + i, test_rule);
  }
  g_test_add_func ("/pretokenizer/behaviors", test_behaviors);
  g_test_add_func ("/pretokenizer/nfc", test_nfc);
  g_test_add_func ("/pretokenizer/nfc-nul", test_nfc_nul);
  return g_test_run ();
}
