/* Speed of tokenizers: loading, encoding of mixed text and of texts that are hard on an encoder, decoding, and the steps of answers
 * that are held to a JSON schema.
 *
 *   bench-tokenizer TEXT TOKENIZER…
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "golden/ox-golden-text.h"
#include "text/ox-grammar.h"
#include "text/ox-tokenizer.h"

#include <glib/gstdio.h>

/* Each figure is the best of runs that take this long together. */
#define SECONDS 0.6

/* Seconds of this thread: what other programs do meanwhile does not count. */
static double
now (void)
{
  struct timespec time;

  clock_gettime (CLOCK_THREAD_CPUTIME_ID, &time);
  return (double) time.tv_sec + (double) time.tv_nsec * 1e-9;
}

static double
encode_rate (OxTokenizer *tokenizer, const char *text, gsize len, GArray *ids)
{
  double best = G_MAXDOUBLE;

  for (double end = now () + SECONDS; now () < end;) {
    double begin = now ();

    g_array_set_size (ids, 0);
    ox_tokenizer_encode (tokenizer, text, (gssize) len, FALSE, ids);
    best = MIN (best, now () - begin);
  }
  return (double) len / best / 1e6;
}

static void
bench_runs (OxTokenizer *tokenizer)
{
  static const struct {
    const char *name, *unit;
  } runs[] = { { "one letter", "a" },   { "a pair", "ab" },
               { "spaces", " " },       { "newlines", "\n" },
               { "marks", "\314\201" }, { "emoji", "\360\237\230\200" },
               { "digits", "7" },       { "ideographs", "\344\270\255" },
               { "punctuation", "=" } };
  g_autoptr (GArray) ids = g_array_new (FALSE, FALSE, sizeof (guint32));

  for (gsize i = 0; i < G_N_ELEMENTS (runs); i++) {
    GString *text = g_string_new (NULL);
    double rate;

    while (text->len < 1 << 20)
      g_string_append (text, runs[i].unit);
    rate = encode_rate (tokenizer, text->str, text->len, ids);
    printf ("  1 MB of %-12s %8.1f MB/s  %u ids\n", runs[i].name, rate, ids->len);
    g_string_free (text, TRUE);
  }
}

/* An answer, token by token: what finding the tokens that may come next takes at each. */
static void
bench_grammar (OxTokenizer *tokenizer, const char *name, const char *schema, const char *answer)
{
  g_autoptr (GError) error = NULL;
  double begin = now (), made, most = 0, all = 0;
  g_autoptr (OxGrammar) grammar = ox_grammar_new (tokenizer, schema, &error);
  g_autoptr (GArray) ids = g_array_new (FALSE, FALSE, sizeof (guint32));
  g_autofree guint32 *bits = g_new0 (guint32, ox_tokenizer_get_size (tokenizer) / 32 + 1);
  guint worst = 0;

  made = now () - begin;
  if (!grammar) {
    printf ("  %s: %s\n", name, error->message);
    return;
  }
  ox_tokenizer_encode (tokenizer, answer, -1, FALSE, ids);
  for (guint i = 0; i < ids->len; i++) {
    double took;

    begin = now ();
    ox_grammar_mask (grammar, bits);
    took = now () - begin;
    if (took > most) {
      most = took;
      worst = i;
    }
    all += took;
    if (!ox_grammar_accept (grammar, g_array_index (ids, guint32, i))) {
      printf ("  %s: token %u is not allowed\n", name, i);
      return;
    }
  }
  printf ("  schema %-12s ready in %.3f s; a step %.3f ms, at most %.3f (before “%s”)\n", name, made,
          all / ids->len * 1e3, most * 1e3, ox_tokenizer_get_token (tokenizer, g_array_index (ids, guint32, worst)));
}

static void
bench_schemas (OxTokenizer *tokenizer)
{
  const char *answer =
    "{\n  \"name\": \"Ada \\u00e9 \\\"Lovelace\\\"\",\n  \"age\": 36,\n  \"score\": -12.5e3,\n  \"tags\": "
    "[\"mathematics\", \"poetry\", \"流体\"],\n  \"kind\": \"person\",\n  \"more\": {\"a\": [1, true, null, "
    "{\"b\": {}}]}\n}";

  bench_grammar (tokenizer, "any (first)", "{}", answer);
  bench_grammar (tokenizer, "any", "{}", answer);
  bench_grammar (
    tokenizer, "object",
    "{\"properties\": {\"name\": {\"type\": \"string\"}, \"age\": {\"type\": \"integer\"}, \"score\": {\"type\": "
    "\"number\"}, \"tags\": {\"type\": \"array\", \"items\": {\"type\": \"string\"}}, \"kind\": {\"enum\": "
    "[\"animal\", "
    "\"person\"]}, \"more\": {}}, \"required\": [\"name\"]}",
    answer);
  bench_grammar (
    tokenizer, "with limits",
    "{\"properties\": {\"name\": {\"type\": \"string\", \"minLength\": 3, \"maxLength\": 100}, \"age\": {\"type\": "
    "\"integer\"}, \"score\": {}, \"tags\": {\"type\": \"array\", \"items\": {\"type\": \"string\", \"maxLength\": "
    "20}, "
    "\"maxItems\": 9}}, \"required\": [\"name\"], \"additionalProperties\": true}",
    answer);
}

static void
bench (const char *path, const char *text, gsize len)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *unpacked = g_str_has_suffix (path, ".xz") ? ox_golden_unpack (path, &error) : g_strdup (path);
  g_autoptr (GArray) ids = g_array_new (FALSE, FALSE, sizeof (guint32));
  g_autoptr (OxTokenizer) tokenizer = NULL;
  g_autoptr (OxTokenizer) names = NULL;
  double begin = now (), best = G_MAXDOUBLE, rate;

  tokenizer = unpacked ? ox_tokenizer_load (unpacked, NULL, &error) : NULL;
  if (!tokenizer) {
    printf ("%s: %s\n", path, error->message);
    return;
  }
  printf ("%s\n  loaded in %.3f s\n", path, now () - begin);
  begin = now ();
  names = ox_tokenizer_load_names (unpacked, NULL, NULL);
  printf ("  names alone in %.3f s\n", now () - begin);
  begin = now ();
  ox_tokenizer_encode (tokenizer, text, (gssize) len, FALSE, ids);
  printf ("  mixed text, first time %4.1f MB/s\n", (double) len / (now () - begin) / 1e6);
  rate = encode_rate (tokenizer, text, len, ids);
  printf ("  mixed text           %8.1f MB/s  %u ids\n", rate, ids->len);
  for (double end = now () + SECONDS; now () < end;) {
    g_autofree char *back = NULL;

    begin = now ();
    back = ox_tokenizer_decode (tokenizer, (const guint32 *) (gpointer) ids->data, ids->len, FALSE);
    best = MIN (best, now () - begin);
  }
  printf ("  decoding             %8.1f MB/s\n", (double) len / best / 1e6);
  bench_schemas (tokenizer);
  bench_runs (tokenizer);
  if (strcmp (unpacked, path) != 0)
    g_unlink (unpacked);
}

int
main (int argc, char **argv)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) bytes = argc > 1 ? ox_golden_read_file (argv[1], &error) : NULL;
  gsize len;
  const char *text;

  if (!bytes || argc < 3) {
    fprintf (stderr, "Usage: %s TEXT TOKENIZER… (each may end in .xz)\n%s\n", argv[0], error ? error->message : "");
    return 1;
  }
  text = g_bytes_get_data (bytes, &len);
  for (int i = 2; i < argc; i++)
    bench (argv[i], text, len);
  return 0;
}
