/* Stop strings, against a search in the whole text, at every way to cut it.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "text/ox-stop-strings.h"

#include <string.h>

/* What is left of @text, by definition. */
static gboolean
search (const char *text, gsize len, const char *const *stops, gsize *left)
{
  for (gsize end = 0; end <= len; end++) {
    gsize longest = 0;

    for (gsize i = 0; stops[i]; i++) {
      gsize n = strlen (stops[i]);

      if (n > longest && n <= end && memcmp (text + end - n, stops[i], n) == 0)
        longest = n;
    }
    if (longest > 0) {
      *left = end - longest;
      return TRUE;
    }
  }
  *left = len;
  return FALSE;
}

/* Whether @tail could go on to be one of the strings. */
static gboolean
may_begin (const char *tail, gsize len, const char *const *stops)
{
  for (gsize i = 0; stops[i]; i++) {
    if (strlen (stops[i]) > len && memcmp (stops[i], tail, len) == 0)
      return TRUE;
  }
  return FALSE;
}

static void
check (const char *text, const char *const *stops, GRand *rand)
{
  g_autoptr (OxStopStrings) stop = ox_stop_strings_new (stops);
  gsize len = strlen (text), left, done = 0;
  gboolean expected = search (text, len, stops, &left), found = FALSE;
  GString *out = g_string_new (NULL);

  while (done < len) {
    gsize n = rand ? (gsize) g_rand_int_range (rand, 0, 6) : 1;

    n = MIN (n, len - done);
    found = ox_stop_strings_push (stop, text + done, n, out);
    done += n;
    if (!found && out->len < done) {
      gsize held = done - out->len;

      /* No more is held back than must be. */
      g_assert_true (may_begin (text + done - held, held, stops));
    }
  }
  g_assert_cmpint (found, ==, expected);
  ox_stop_strings_finish (stop, out);
  g_assert_cmpmem (out->str, out->len, text, left);
  g_string_free (out, TRUE);
}

static void
test_simple (void)
{
  const char *const stops[] = { "\n\nUser:", "<end>", "", NULL };

  check ("Hello there.\n\nUser: more", stops, NULL);
  check ("Hello\n\n\nUser: more", stops, NULL);
  check ("a <en <end> b", stops, NULL);
  check ("nothing of it <end", stops, NULL);
  check ("", stops, NULL);
  check ("<end>", stops, NULL);
}

static void
test_overlaps (void)
{
  const char *const stops[] = { "aab", "ab", "abab", "b!", NULL };
  const char *const border[] = { "aabaaab", NULL };

  check ("aaab", stops, NULL);
  check ("caab", stops, NULL);
  check ("aabaabaaab", border, NULL);
  check ("xb!", stops, NULL);
}

static void
test_random (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (7);

  for (int round = 0; round < 20000; round++) {
    char text[33], words[3][8];
    const char *const stops[] = { words[0], words[1], words[2], NULL };
    int n = g_rand_int_range (rand, 0, 33);

    for (int w = 0; w < 3; w++) {
      int k = g_rand_int_range (rand, 0, 8);

      for (int i = 0; i < k; i++)
        words[w][i] = (char) ('a' + g_rand_int_range (rand, 0, 2));
      words[w][k] = '\0';
    }
    for (int i = 0; i < n; i++)
      text[i] = (char) ('a' + g_rand_int_range (rand, 0, round % 2 ? 2 : 3));
    text[n] = '\0';
    check (text, stops, round % 3 ? rand : NULL);
  }
}

static void
test_characters (void)
{
  /* The first bytes of è and é are the same. */
  const char *const stops[] = { "é!", NULL };
  g_autoptr (OxStopStrings) stop = ox_stop_strings_new (stops);
  GString *out = g_string_new (NULL);

  g_assert_false (ox_stop_strings_push (stop, "è", 2, out));
  g_assert_cmpstr (out->str, ==, "è");
  g_assert_false (ox_stop_strings_push (stop, "é", 2, out));
  g_assert_cmpstr (out->str, ==, "è");
  g_assert_true (ox_stop_strings_push (stop, "! and more", 10, out));
  g_assert_true (ox_stop_strings_push (stop, "dropped", 7, out));
  g_assert_cmpstr (out->str, ==, "è");
  ox_stop_strings_reset (stop);
  g_assert_false (ox_stop_strings_push (stop, "go on", 5, out));
  ox_stop_strings_finish (stop, out);
  g_assert_cmpstr (out->str, ==, "ègo on");
  g_string_free (out, TRUE);
}

static void
test_none (void)
{
  g_autoptr (OxStopStrings) stop = ox_stop_strings_new (NULL);
  GString *out = g_string_new (NULL);

  g_assert_false (ox_stop_strings_push (stop, "all of it", 9, out));
  g_assert_cmpstr (out->str, ==, "all of it");
  g_string_free (out, TRUE);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/stop-strings/simple", test_simple);
  g_test_add_func ("/stop-strings/overlaps", test_overlaps);
  g_test_add_func ("/stop-strings/random", test_random);
  g_test_add_func ("/stop-strings/characters", test_characters);
  g_test_add_func ("/stop-strings/none", test_none);
  return g_test_run ();
}
