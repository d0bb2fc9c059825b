/* Random damage to small valid files, from fixed seeds: every result is an accepted file whose content can be read, or a proper
 * error. The libFuzzer targets beside this go further; this runs everywhere.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-seeds.h"

#include <stdlib.h>
#include <string.h>

#define N_MUTATIONS 3000
/* Headers of the starting files end about here; damage to the numbers behind them is of little interest. */
#define HEADER 2200

static const guint64 numbers[] = {
  0,
  1,
  2,
  7,
  8,
  12,
  31,
  32,
  33,
  64,
  127,
  128,
  255,
  256,
  65535,
  65536,
  0x7fffffff,
  0x80000000,
  0xffffffff,
  1ull << 32,
  1ull << 61,
  1ull << 62,
  0x7fffffffffffffff,
  1ull << 63,
  G_MAXUINT64 - 31,
  G_MAXUINT64,
};
static const char *const words[] = {
  "0",
  "-1",
  "1e999",
  "1.5",
  "18446744073709551615",
  "18446744073709551616",
  "null",
  "true",
  "[",
  "]",
  "{",
  "}",
  "\"",
  ",",
  ":",
  "\"\"",
  "\\u0000",
  "\\ud800",
  "[[[[[[[[",
  "\\",
  "NaN",
  "4294967296",
  "\xff",
  "\xc3",
  "[0,0]",
  "0,",
  "\"F32\"",
  "\"data_offsets\"",
  "\"shape\"",
  "\"dtype\"",
  " ",
  "[-1]",
  "9223372036854775808",
};

/* Overwrites, inserts or removes a little at a random place. */
static void
damage (GRand *random, GByteArray *data, gboolean is_text)
{
  guint reach = g_rand_int_range (random, 0, 8) > 0 ? MIN (data->len, HEADER) : data->len;
  guint at = data->len > 0 ? (guint) g_rand_int_range (random, 0, (gint32) reach) : 0;
  guint64 number = numbers[g_rand_int_range (random, 0, G_N_ELEMENTS (numbers))];
  const char *word = words[g_rand_int_range (random, 0, G_N_ELEMENTS (words))];
  guint len, width;

  if (data->len == 0)
    return;
  switch (g_rand_int_range (random, 0, is_text ? 9 : 7)) {
  case 0:
    data->data[at] ^= (guint8) (1u << g_rand_int_range (random, 0, 8));
    break;
  case 1:
    data->data[at] = (guint8) g_rand_int_range (random, 0, 256);
    break;
  case 2:
  case 3:
    width = g_rand_boolean (random) ? 8 : 4;
    number = GUINT64_TO_LE (number);
    memcpy (data->data + at, &number, MIN (width, data->len - at));
    break;
  case 4:
    g_byte_array_set_size (data, at);
    break;
  case 5:
    len = (guint) g_rand_int_range (random, 1, 17);
    g_byte_array_remove_range (data, at, MIN (len, data->len - at));
    break;
  case 6: {
    guint from = (guint) g_rand_int_range (random, 0, (gint32) data->len);
    g_autofree guint8 *rest = g_memdup2 (data->data + from, data->len - from);
    guint n = data->len - from;

    g_byte_array_set_size (data, at);
    g_byte_array_append (data, rest, n);
    break;
  }
  default: {
    g_autofree guint8 *rest = g_memdup2 (data->data + at, data->len - at);
    guint n = data->len - at;
    guint skip = (guint) g_rand_int_range (random, 0, (gint32) MIN (n, 6) + 1);

    g_byte_array_set_size (data, at);
    g_byte_array_append (data, (const guint8 *) word, (guint) strlen (word));
    g_byte_array_append (data, rest + skip, n - skip);
    break;
  }
  }
}

/* A safetensors file's header length, put right after damage to its text, so that the text is looked at. */
static void
mend_length (GByteArray *data, gsize old_len, gsize n_data)
{
  guint64 len = GUINT64_TO_LE ((guint64) data->len - 8 - n_data);

  if (data->len >= 8 + n_data && data->len != old_len)
    memcpy (data->data, &len, 8);
}

static void
test_format (gconstpointer user_data)
{
  g_autoptr (OxFuzzFormat) format = ox_fuzz_format_new (GPOINTER_TO_UINT (user_data));
  g_autoptr (GRand) random = g_rand_new_with_seed (20261130);
  gboolean is_safetensors = strcmp (format->name, "safetensors") == 0;
  guint n_accepted = 0;

  for (guint i = 0; i < format->seeds->len; i++)
    g_assert_true (format->exercise (g_ptr_array_index (format->seeds, i)));
  for (guint i = 0; i < N_MUTATIONS; i++) {
    GBytes *seed = g_ptr_array_index (format->seeds, i % format->seeds->len);
    gsize seed_len = g_bytes_get_size (seed);
    GByteArray *data = g_byte_array_new ();
    g_autoptr (GBytes) bytes = NULL;
    guint times = (guint) g_rand_int_range (random, 1, 4);

    g_byte_array_append (data, g_bytes_get_data (seed, NULL), (guint) seed_len);
    for (guint j = 0; j < times; j++)
      damage (random, data, format->is_text || is_safetensors);
    if (is_safetensors && g_rand_int_range (random, 0, 8) > 0)
      mend_length (data, seed_len, seed_len > 10 ? 29 : 0);
    bytes = g_byte_array_free_to_bytes (data);
    n_accepted += format->exercise (bytes) ? 1 : 0;
  }
  g_test_message ("%s: %u of %u damaged files accepted", format->name, n_accepted, N_MUTATIONS);
  /* Some damage is harmless (a name, a number), most is not: else the test would not reach what it is for. */
  g_assert_cmpuint (n_accepted, >, N_MUTATIONS / 100);
  g_assert_cmpuint (n_accepted, <, N_MUTATIONS * 9 / 10);
}

/* With --write-seeds FOLDER, writes the starting files for the libFuzzer targets instead. */
static int
write_seeds (const char *folder)
{
  OxFuzzFormat *format;

  for (guint i = 0; (format = ox_fuzz_format_new (i)) != NULL; i++) {
    g_autofree char *sub = g_build_filename (folder, format->name, NULL);

    if (g_mkdir_with_parents (sub, 0777) != 0)
      return EXIT_FAILURE;
    for (guint j = 0; j < format->seeds->len; j++) {
      g_autofree char *name = g_strdup_printf ("seed-%u", j);
      g_autofree char *path = g_build_filename (sub, name, NULL);
      gsize len;
      const char *data = g_bytes_get_data (g_ptr_array_index (format->seeds, j), &len);

      if (!g_file_set_contents (path, data, (gssize) len, NULL))
        return EXIT_FAILURE;
    }
    ox_fuzz_format_free (format);
  }
  return EXIT_SUCCESS;
}

int
main (int argc, char **argv)
{
  OxFuzzFormat *format;

  if (argc == 3 && strcmp (argv[1], "--write-seeds") == 0)
    return write_seeds (argv[2]);
  g_test_init (&argc, &argv, NULL);
  for (guint i = 0; (format = ox_fuzz_format_new (i)) != NULL; i++) {
    g_autofree char *path = g_strconcat ("/fuzz/mutations/", format->name, NULL);

    g_test_add_data_func (path, GUINT_TO_POINTER (i), test_format);
    ox_fuzz_format_free (format);
  }
  return g_test_run ();
}
