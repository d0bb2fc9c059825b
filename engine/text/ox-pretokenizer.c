/* Pre-tokenizers.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "text/ox-pretokenizer.h"

#include <string.h>

#include "text/ox-unicode.h"
#include "text/ox-utf8.h"

typedef struct {
  OxSplit split;
  GRegex *regex; /* or NULL: @split */
  OxSplitBehavior behavior;
} Step;

struct _OxPreTokenizer {
  GArray *steps;
};

static void
step_clear (gpointer step)
{
  g_clear_pointer (&((Step *) step)->regex, g_regex_unref);
}

OxPreTokenizer *
ox_pre_tokenizer_new (void)
{
  OxPreTokenizer *pre = g_new0 (OxPreTokenizer, 1);

  pre->steps = g_array_new (FALSE, TRUE, sizeof (Step));
  g_array_set_clear_func (pre->steps, step_clear);
  return pre;
}

void
ox_pre_tokenizer_free (OxPreTokenizer *pre)
{
  if (!pre)
    return;
  g_array_unref (pre->steps);
  g_free (pre);
}

void
ox_pre_tokenizer_add (OxPreTokenizer *pre, OxSplit split)
{
  Step step = { .split = split };

  g_array_append_val (pre->steps, step);
}

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define TAIL "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

gboolean
ox_pre_tokenizer_add_regex (OxPreTokenizer *pre, const char *pattern, OxSplitBehavior behavior, GError **error)
{
  static const struct {
    const char *pattern;
    OxSplit split;
  } known[] = {
    { CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" TAIL, OX_SPLIT_QWEN2 },
    { CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*" TAIL,
      OX_SPLIT_QWEN35 },
    { CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" TAIL, OX_SPLIT_LLAMA3 },
    { "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+", OX_SPLIT_GPT2 },
    { "'(?:[sdmt]|ll|ve|re)| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+", OX_SPLIT_GPT2 },
  };
  g_autoptr (GError) local = NULL;
  Step step = { .behavior = behavior };

  for (gsize i = 0; i < G_N_ELEMENTS (known); i++) {
    /* These match every character, so nothing lies between the pieces that a behaviour other than removal could touch. */
    if (strcmp (pattern, known[i].pattern) == 0 && behavior == OX_SPLIT_ISOLATED) {
      ox_pre_tokenizer_add (pre, known[i].split);
      return TRUE;
    }
  }
  step.regex = g_regex_new (pattern, G_REGEX_OPTIMIZE, 0, &local);
  if (!step.regex) {
    g_set_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED, "%s", local->message);
    return FALSE;
  }
  g_array_append_val (pre->steps, step);
  return TRUE;
}

/* ---- By hand ---- */

/* Class and length of the character at @i, or OX_CLASS_END. */
enum { OX_CLASS_END = 100 };

static inline guint
class_at (const char *s, gsize i, gsize n, gsize *length)
{
  guint8 lead;

  if (i >= n) {
    *length = 0;
    return OX_CLASS_END;
  }
  lead = (guint8) s[i];
  *length = ox_utf8_length (lead);
  return ox_unicode_class (ox_utf8_get (s + i));
}

/* End of the run of characters from @i on whose class is in the bit set @classes, at most @max of them. */
static inline gsize
run_of (const char *s, gsize i, gsize n, guint classes, gsize max)
{
  gsize length;

  for (; max > 0; max--) {
    guint class = class_at (s, i, n, &length);

    if (class == OX_CLASS_END || !(classes & 1u << class))
      break;
    i += length;
  }
  return i;
}

static inline gboolean
is_in (guint class, guint classes)
{
  return class != OX_CLASS_END && classes & 1u << class;
}

/* 's, 't, 're, 've, 'm, 'll, 'd: the length, or 0. */
static gsize
contraction (const char *s, gsize i, gsize n, gboolean any_case)
{
  gsize left = n - i;
  char a, b;

  if (s[i] != '\'' || left < 2)
    return 0;
  a = any_case ? g_ascii_tolower (s[i + 1]) : s[i + 1];
  if (a == 's' || a == 't' || a == 'm' || a == 'd')
    return 2;
  /* U+017F, the long s, is an "s" to a pattern that ignores case. */
  if (any_case && left >= 3 && memcmp (s + i + 1, "\305\277", 2) == 0)
    return 3;
  if (left < 3)
    return 0;
  b = any_case ? g_ascii_tolower (s[i + 2]) : s[i + 2];
  if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l'))
    return 3;
  return 0;
}

#define LETTER (1u << OX_CLASS_LETTER)
#define MARK (1u << OX_CLASS_MARK)
#define NUMBER (1u << OX_CLASS_NUMBER)
#define SPACE (1u << OX_CLASS_SPACE)
#define OTHER (1u << OX_CLASS_OTHER)

/* \s+(?!\S)|\s+ : white space before a word leaves its last character to the word. */
static gsize
spaces_end (const char *s, gsize i, gsize n)
{
  gsize end = i, last = i, length;

  while (class_at (s, end, n, &length) == OX_CLASS_SPACE) {
    last = end;
    end += length;
  }
  return end < n && last > i ? last : end;
}

static gsize
next_gpt2 (const char *s, gsize i, gsize n)
{
  gsize length, after, skip = contraction (s, i, n, FALSE);
  guint class, next;

  if (skip > 0)
    return i + skip;
  class = class_at (s, i, n, &length);
  after = i;
  next = class;
  if (s[i] == ' ' && i + 1 < n) {
    after = i + 1;
    next = class_at (s, after, n, &length);
  }
  if (is_in (next, LETTER))
    return run_of (s, after, n, LETTER, G_MAXSIZE);
  if (is_in (next, NUMBER))
    return run_of (s, after, n, NUMBER, G_MAXSIZE);
  if (is_in (next, OTHER | MARK))
    return run_of (s, after, n, OTHER | MARK, G_MAXSIZE);
  return spaces_end (s, i, n);
}

static gsize
next_llama3 (const char *s, gsize i, gsize n, guint letters, gsize max_digits)
{
  gsize length, next_length, skip = contraction (s, i, n, TRUE), end, newline = 0;
  guint class, next, others = (OTHER | MARK) & ~letters;

  if (skip > 0)
    return i + skip;
  class = class_at (s, i, n, &length);
  if (is_in (class, SPACE | OTHER | MARK) && s[i] != '\r' && s[i] != '\n') {
    next = class_at (s, i + length, n, &next_length);
    if (is_in (next, letters))
      return run_of (s, i + length, n, letters, G_MAXSIZE);
  }
  if (is_in (class, letters))
    return run_of (s, i, n, letters, G_MAXSIZE);
  if (class == OX_CLASS_NUMBER)
    return run_of (s, i, n, NUMBER, max_digits);

  end = i;
  if (s[i] == ' ' && is_in (class_at (s, i + 1, n, &next_length), others))
    end = run_of (s, i + 1, n, others, G_MAXSIZE);
  else if (is_in (class, others))
    end = run_of (s, i, n, others, G_MAXSIZE);
  if (end > i) {
    while (end < n && (s[end] == '\r' || s[end] == '\n'))
      end++;
    return end;
  }

  /* Only white space is left: up to its last line break, if it has one. */
  for (end = i; class_at (s, end, n, &length) == OX_CLASS_SPACE; end += length) {
    if (s[end] == '\r' || s[end] == '\n')
      newline = end + 1;
  }
  return newline > 0 ? newline : spaces_end (s, i, n);
}

static gsize
next_digits (const char *s, gsize i, gsize n, gsize max)
{
  gsize end = run_of (s, i, n, NUMBER, max);

  return end > i ? end : run_of (s, i, n, LETTER | MARK | SPACE | OTHER, G_MAXSIZE);
}

static inline gsize
next_piece (OxSplit split, const char *s, gsize i, gsize n)
{
  switch (split) {
  case OX_SPLIT_GPT2:
    return next_gpt2 (s, i, n);
  case OX_SPLIT_LLAMA3:
    return next_llama3 (s, i, n, LETTER, 3);
  case OX_SPLIT_QWEN2:
    return next_llama3 (s, i, n, LETTER, 1);
  case OX_SPLIT_QWEN35:
    return next_llama3 (s, i, n, LETTER | MARK, 1);
  case OX_SPLIT_DIGITS:
    return next_digits (s, i, n, 1);
  case OX_SPLIT_DIGIT_RUNS:
    return next_digits (s, i, n, G_MAXSIZE);
  }
  return n;
}

/* ---- Running ---- */

static void run_step (
  const OxPreTokenizer *pre, guint index, const char *text, gsize len, OxPieceFunc func, gpointer user_data);

static void
run_regex (const OxPreTokenizer *pre, guint index, const char *text, gsize len, OxPieceFunc func, gpointer user_data)
{
  const Step *step = &g_array_index (pre->steps, Step, index);
  g_autoptr (GMatchInfo) match = NULL;
  gsize done = 0;

  /* A pattern that runs into the engine's limits stops cutting: the rest is one piece. */
  g_regex_match_full (step->regex, text, (gssize) len, 0, 0, &match, NULL);
  for (; g_match_info_matches (match) && done < len; g_match_info_next (match, NULL)) {
    int begin, end;

    if (!g_match_info_fetch_pos (match, 0, &begin, &end) || end <= begin || (gsize) begin < done)
      continue;
    switch (step->behavior) {
    case OX_SPLIT_ISOLATED:
    case OX_SPLIT_REMOVED:
      run_step (pre, index + 1, text + done, (gsize) begin - done, func, user_data);
      if (step->behavior == OX_SPLIT_ISOLATED)
        run_step (pre, index + 1, text + begin, (gsize) (end - begin), func, user_data);
      done = (gsize) end;
      break;
    case OX_SPLIT_MERGED_WITH_PREVIOUS:
      run_step (pre, index + 1, text + done, (gsize) end - done, func, user_data);
      done = (gsize) end;
      break;
    case OX_SPLIT_MERGED_WITH_NEXT:
      run_step (pre, index + 1, text + done, (gsize) begin - done, func, user_data);
      done = (gsize) begin;
      break;
    }
  }
  run_step (pre, index + 1, text + done, len - done, func, user_data);
}

static void
run_step (const OxPreTokenizer *pre, guint index, const char *text, gsize len, OxPieceFunc func, gpointer user_data)
{
  const Step *step;

  if (len == 0)
    return;
  if (index == pre->steps->len) {
    func (text, len, user_data);
    return;
  }
  step = &g_array_index (pre->steps, Step, index);
  if (step->regex) {
    run_regex (pre, index, text, len, func, user_data);
    return;
  }
  for (gsize i = 0; i < len;) {
    gsize end = next_piece (step->split, text, i, len);

    run_step (pre, index + 1, text + i, end - i, func, user_data);
    i = end;
  }
}

void
ox_pre_tokenizer_run (const OxPreTokenizer *pre, const char *text, gsize len, OxPieceFunc func, gpointer user_data)
{
  run_step (pre, 0, text, len, func, user_data);
}
