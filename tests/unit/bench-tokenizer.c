/* Speed of tokenizers: loading, encoding of mixed text and of texts that are hard on an encoder, decoding.
 *
 *   bench-tokenizer TEXT TOKENIZER…
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <stdio.h>
#include <string.h>

#include "golden/ox-golden-text.h"
#include "text/ox-tokenizer.h"

#include <glib/gstdio.h>

/* Each figure is the best of runs that take this long together. */
#define SECONDS 0.6

static double
now (void)
{
  return (double) g_get_monotonic_time () / 1e6;
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

static void
bench (const char *path, const char *text, gsize len)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *unpacked = g_str_has_suffix (path, ".xz") ? ox_golden_unpack (path, &error) : g_strdup (path);
  g_autoptr (GArray) ids = g_array_new (FALSE, FALSE, sizeof (guint32));
  g_autoptr (OxTokenizer) tokenizer = NULL;
  double begin = now (), best = G_MAXDOUBLE, rate;

  tokenizer = unpacked ? ox_tokenizer_load (unpacked, NULL, &error) : NULL;
  if (!tokenizer) {
    printf ("%s: %s\n", path, error->message);
    return;
  }
  printf ("%s\n  loaded in %.3f s\n", path, now () - begin);
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
