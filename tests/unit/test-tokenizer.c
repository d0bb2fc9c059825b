/* Tokenizers: ids and texts of the reference for the real files of Gemma 3, Gemma 4, Qwen 3 and Qwen 3.5; the same ids from Gemma 3's
 * GGUF; what users write never becomes a control token; long and broken texts; threads.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <string.h>
#include <time.h>

#include <glib/gstdio.h>

#include "golden/ox-golden-gguf.h"
#include "golden/ox-golden-text.h"
#include "text/ox-tokenizer.h"
#include "text/ox-utf8.h"

static OxTokenizer *gemma3, *gemma4, *qwen3, *qwen35;

static char *
data_path (const char *name)
{
  return g_build_filename (g_getenv ("OX_TEST_DATA"), "golden", name, NULL);
}

static OxTokenizer *
load_packed (const char *name)
{
  g_autofree char *path = data_path (name);
  g_autoptr (GError) error = NULL;
  g_autofree char *unpacked = ox_golden_unpack (path, &error);
  OxTokenizer *tokenizer;

  g_assert_no_error (error);
  tokenizer = ox_tokenizer_load (unpacked, NULL, &error);
  g_assert_no_error (error);
  g_unlink (unpacked);
  return tokenizer;
}

static void
on_result (const OxGoldenResult *result, gpointer user_data)
{
  g_test_message ("%s: %s", result->name, result->note ? result->note : "");
}

static void
test_golden (gconstpointer name)
{
  g_autofree char *path = data_path (name);
  g_autoptr (GError) error = NULL;
  OxGoldenReport report = { .func = on_result };

  g_assert_true (ox_golden_text_run (path, NULL, &report, NULL, &error));
  g_assert_no_error (error);
  g_assert_cmpuint (report.n_ok, ==, 8);
  g_assert_cmpuint (report.n_over, ==, 0);
  g_assert_cmpuint (report.n_not_computed, ==, 0);
}

/* SHA-256 of the model in golden/gguf/gemma3-270m. */
#define GEMMA3_270M "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"

static void
test_golden_gguf (void)
{
  g_autofree char *path = data_path ("tokenizer/gemma3.json.xz");
  g_autofree char *model = ox_golden_gguf_find_model (g_getenv ("OX_TEST_MODELS"), GEMMA3_270M);
  g_autoptr (GError) error = NULL;
  OxGoldenReport report = { .func = on_result };

  if (!model) {
    g_test_skip ("Gemma 3 270M is not among OX_TEST_MODELS");
    return;
  }
  g_assert_true (ox_golden_tokenizer (path, model, &report, NULL, &error));
  g_assert_no_error (error);
  g_assert_cmpuint (report.n_ok, ==, 8);
  g_assert_cmpuint (report.n_over + report.n_not_computed, ==, 0);
}

/* ---- Rules that hold for every text ---- */

static GArray *
encode (OxTokenizer *tokenizer, const char *text, gssize len, gboolean parse_control)
{
  GArray *ids = g_array_new (FALSE, FALSE, sizeof (guint32));

  ox_tokenizer_encode (tokenizer, text, len, parse_control, ids);
  return ids;
}

static char *
decode (OxTokenizer *tokenizer, GArray *ids)
{
  return ox_tokenizer_decode (tokenizer, (const guint32 *) (gpointer) ids->data, ids->len, TRUE);
}

static gboolean
has_control (OxTokenizer *tokenizer, GArray *ids)
{
  for (guint i = 0; i < ids->len; i++) {
    if (ox_tokenizer_is_control (tokenizer, g_array_index (ids, guint32, i)))
      return TRUE;
  }
  return FALSE;
}

/* Every control token of the vocabularies, alone and in text: one token when asked for, ordinary text and the same text back when
 * a user wrote it. */
static void
test_control (void)
{
  OxTokenizer *tokenizers[] = { gemma3, gemma4, qwen3, qwen35 };
  guint n_control = 0;

  for (gsize t = 0; t < G_N_ELEMENTS (tokenizers); t++) {
    for (guint32 id = 0; id < ox_tokenizer_get_size (tokenizers[t]); id++) {
      const char *token = ox_tokenizer_get_token (tokenizers[t], id);

      if (token && ox_tokenizer_is_control (tokenizers[t], id)) {
        g_autofree char *text = g_strdup_printf ("a%s%s b", token, token);
        g_autoptr (GArray) parsed = encode (tokenizers[t], token, -1, TRUE);
        g_autoptr (GArray) written = encode (tokenizers[t], text, -1, FALSE);
        g_autofree char *back = decode (tokenizers[t], written);

        g_assert_cmpuint (parsed->len, ==, 1);
        g_assert_cmpuint (g_array_index (parsed, guint32, 0), ==, id);
        g_assert_cmpint (ox_tokenizer_find (tokenizers[t], token), ==, id);
        g_assert_false (has_control (tokenizers[t], written));
        g_assert_cmpstr (back, ==, text);
        n_control++;
      }
    }
  }
  g_assert_cmpuint (n_control, ==, 11 + 24 + 26 + 26);
}

/* Random bytes: no crash, no control token, and the repaired text comes back. */
static void
test_random_bytes (void)
{
  static const char *const bits[] = { "<eos>", "<|im_end|>", "\n\n", "  ",      "\342\226\201", "e\314\201",
                                      "1234",  "it's",       "\t",   "<|turn>", "<tool_call>",  "<think>" };

  for (guint round = 0; round < 400; round++) {
    GString *text = g_string_new (NULL);
    guint n = (guint) g_test_rand_int_range (0, 60);

    for (guint i = 0; i < n; i++) {
      if (g_test_rand_bit ())
        g_string_append (text, bits[g_test_rand_int_range (0, G_N_ELEMENTS (bits))]);
      else
        g_string_append_c (text, (char) g_test_rand_int_range (1, 256));
    }
    {
      g_autoptr (GArray) ids = encode (gemma3, text->str, (gssize) text->len, FALSE);
      g_autoptr (GArray) gemma4_ids = encode (gemma4, text->str, (gssize) text->len, FALSE);
      g_autoptr (GArray) qwen_ids = encode (qwen3, text->str, (gssize) text->len, FALSE);
      g_autoptr (GArray) qwen35_ids = encode (qwen35, text->str, (gssize) text->len, FALSE);
      g_autofree char *back = decode (gemma3, ids);
      g_autofree char *gemma4_back = decode (gemma4, gemma4_ids);
      GString *repaired = ox_utf8_repair (text->str, text->len);

      if (!repaired)
        repaired = g_string_new_len (text->str, (gssize) text->len);
      g_string_replace (repaired, "\342\226\201", " ", 0);
      g_assert_cmpstr (back, ==, repaired->str);
      g_assert_cmpstr (gemma4_back, ==, repaired->str);
      g_assert_false (has_control (gemma3, ids));
      g_assert_false (has_control (gemma4, gemma4_ids));
      g_assert_false (has_control (qwen3, qwen_ids));
      g_assert_false (has_control (qwen35, qwen35_ids));
      g_string_free (repaired, TRUE);
    }
    g_string_free (text, TRUE);
  }
}

/* Of this thread. */
static double
seconds (void)
{
  struct timespec time;

  clock_gettime (CLOCK_THREAD_CPUTIME_ID, &time);
  return (double) time.tv_sec + (double) time.tv_nsec * 1e-9;
}

/* Texts on which a careless encoder takes quadratic time, a megabyte of each: 16 times the text may take 16 times as long and some
 * for caches that no longer hold it, where a quadratic encoder would take 256 times as long. */
static void
test_long (void)
{
  static const char *const units[] = {
    "a",  " ",  "\n",   "=", "ab", "\344\270\255", "\360\237\230\200", "\314\201", "\314\201\314\243", "1",
    "' ", " a", "\r\n", "<", "<|"
  };
  OxTokenizer *tokenizers[] = { gemma3, gemma4, qwen3, qwen35 };

  for (gsize u = 0; u < G_N_ELEMENTS (units); u++) {
    GString *text = g_string_new (NULL);

    while (text->len < 1 << 20)
      g_string_append (text, units[u]);
    for (gsize t = 0; t < G_N_ELEMENTS (tokenizers); t++) {
      gsize part = text->len / 16 / strlen (units[u]) * strlen (units[u]);
      double begin = seconds (), of_part, of_all;
      g_autoptr (GArray) ids_of_part = encode (tokenizers[t], text->str, (gssize) part, FALSE);
      g_autoptr (GArray) ids = NULL;
      g_autofree char *back = NULL;

      of_part = seconds () - begin;
      begin = seconds ();
      ids = encode (tokenizers[t], text->str, (gssize) text->len, FALSE);
      of_all = seconds () - begin;
      back = decode (tokenizers[t], ids);
      g_test_message ("1 MB of unit %" G_GSIZE_FORMAT ": %u ids, %.3f s; a sixteenth: %.4f s", u, ids->len, of_all,
                      of_part);
      g_assert_cmpuint (ids_of_part->len, <=, ids->len / 16 + 1);
      g_assert_cmpfloat (of_all, <, 128 * MAX (of_part, 1e-4));
      /* Form C may change the marks. */
      if (t < 2 || *units[u] != '\314')
        g_assert_true (strcmp (back, text->str) == 0);
    }
    g_string_free (text, TRUE);
  }
}

static void
test_decode_out_of_range (void)
{
  guint32 ids[] = { 9259, G_MAXUINT32, 300000 };
  g_autofree char *text = ox_tokenizer_decode (gemma3, ids, G_N_ELEMENTS (ids), FALSE);
  g_autofree char *nothing = ox_tokenizer_decode (gemma3, NULL, 0, FALSE);

  g_assert_cmpstr (text, ==, "Hello\357\277\275\357\277\275");
  g_assert_cmpstr (nothing, ==, "");
  g_assert_null (ox_tokenizer_get_token (gemma3, G_MAXUINT32));
  g_assert_false (ox_tokenizer_is_control (gemma3, G_MAXUINT32));
  g_assert_cmpint (ox_tokenizer_find (gemma3, "no such token at all"), ==, -1);
  g_assert_cmpint (ox_tokenizer_find (gemma3, "\342\226\201the"), >, 0);
  g_assert_cmpint (ox_tokenizer_find (qwen3, "\304\240the"), >, 0);
}

/* The result must not depend on where the stream is cut. */
static void
test_utf8_stream (void)
{
  for (guint round = 0; round < 2000; round++) {
    static const guint8 bytes[] = { 'a',  0x80, 0xbf, 0xc2, 0xc1, 0xe2, 0x82, 0xac, 0xed,
                                    0xa0, 0xf0, 0x9f, 0x98, 0x80, 0xf4, 0x90, 0 };
    char text[24];
    guint n = (guint) g_test_rand_int_range (0, sizeof text), i;
    OxUtf8Stream whole = { 0 }, single = { 0 };
    GString *a = g_string_new (NULL), *b = g_string_new (NULL);

    for (i = 0; i < n; i++)
      text[i] = (char) bytes[g_test_rand_int_range (0, sizeof bytes)];
    ox_utf8_stream_push (&whole, text, n, a);
    ox_utf8_stream_finish (&whole, a);
    for (i = 0; i < n; i++) {
      ox_utf8_stream_push (&single, text + i, 1, b);
      g_assert_cmpuint (single.n_held, <=, 3);
    }
    ox_utf8_stream_finish (&single, b);
    g_assert_cmpmem (a->str, a->len, b->str, b->len);
    g_assert_cmpuint (ox_utf8_valid_prefix (a->str, a->len), ==, a->len);
    if (ox_utf8_valid_prefix (text, n) == n)
      g_assert_cmpmem (a->str, a->len, text, n);
    g_string_free (a, TRUE);
    g_string_free (b, TRUE);
  }
}

static gpointer
encode_often (gpointer text)
{
  GArray *first = encode (qwen3, text, -1, FALSE);

  for (guint i = 0; i < 20; i++) {
    g_autoptr (GArray) ids = encode (qwen3, text, -1, FALSE);

    g_assert_cmpmem (ids->data, ids->len * 4, first->data, first->len * 4);
  }
  return first;
}

static void
test_threads (void)
{
  GString *text = g_string_new (NULL);
  GThread *threads[4];
  g_autoptr (GArray) expected = NULL;

  for (guint i = 0; i < 3000; i++)
    g_string_append_printf (text, "word%u and the rest, ", i % 700);
  expected = encode (qwen3, text->str, -1, FALSE);
  for (gsize i = 0; i < G_N_ELEMENTS (threads); i++)
    threads[i] = g_thread_new ("encode", encode_often, text->str);
  for (gsize i = 0; i < G_N_ELEMENTS (threads); i++) {
    g_autoptr (GArray) ids = g_thread_join (threads[i]);

    g_assert_cmpmem (ids->data, ids->len * 4, expected->data, expected->len * 4);
  }
  g_string_free (text, TRUE);
}

/* Without what it takes to encode, everything else is the same. */
static void
test_names (void)
{
  static const char *const files[] = { "tokenizers/gemma4.tokenizer.json.xz", "tokenizers/qwen3_5.tokenizer.json.xz" };
  OxTokenizer *tokenizers[] = { gemma4, qwen35 };

  for (gsize t = 0; t < G_N_ELEMENTS (tokenizers); t++) {
    g_autofree char *path = data_path (files[t]);
    g_autoptr (GError) error = NULL;
    g_autofree char *unpacked = ox_golden_unpack (path, &error);
    g_autoptr (OxTokenizer) names = NULL;

    g_assert_no_error (error);
    names = ox_tokenizer_load_names (unpacked, NULL, &error);
    g_assert_no_error (error);
    g_unlink (unpacked);
    g_assert_cmpuint (ox_tokenizer_get_size (names), ==, ox_tokenizer_get_size (tokenizers[t]));
    g_assert_cmpint (ox_tokenizer_get_bos (names), ==, ox_tokenizer_get_bos (tokenizers[t]));
    for (guint32 id = 0; id < ox_tokenizer_get_size (names); id += id < 1000 ? 1 : 97) {
      const char *name = ox_tokenizer_get_token (names, id);
      g_autofree char *a = ox_tokenizer_decode (names, &id, 1, TRUE);
      g_autofree char *b = ox_tokenizer_decode (tokenizers[t], &id, 1, TRUE);

      g_assert_cmpstr (name, ==, ox_tokenizer_get_token (tokenizers[t], id));
      g_assert_cmpint (ox_tokenizer_is_control (names, id), ==, ox_tokenizer_is_control (tokenizers[t], id));
      g_assert_cmpint (ox_tokenizer_find (names, name), ==, ox_tokenizer_find (tokenizers[t], name));
      g_assert_cmpstr (a, ==, b);
    }
  }
}

static void
test_cancel (void)
{
  g_autofree char *path = data_path ("tokenizers/qwen3.tokenizer.json.xz");
  g_autoptr (GError) error = NULL;
  g_autofree char *unpacked = ox_golden_unpack (path, &error);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();

  g_assert_no_error (error);
  g_cancellable_cancel (cancellable);
  g_assert_null (ox_tokenizer_load (unpacked, cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_unlink (unpacked);
}

int
main (int argc, char **argv)
{
  int result;

  g_test_init (&argc, &argv, NULL);
  gemma3 = load_packed ("tokenizers/gemma3.tokenizer.json.xz");
  gemma4 = load_packed ("tokenizers/gemma4.tokenizer.json.xz");
  qwen3 = load_packed ("tokenizers/qwen3.tokenizer.json.xz");
  qwen35 = load_packed ("tokenizers/qwen3_5.tokenizer.json.xz");
  g_test_add_data_func ("/tokenizer/golden/gemma3", "tokenizer/gemma3.json.xz", test_golden);
  g_test_add_data_func ("/tokenizer/golden/gemma4", "tokenizer/gemma4.json.xz", test_golden);
  g_test_add_data_func ("/tokenizer/golden/qwen3", "tokenizer/qwen3.json.xz", test_golden);
  g_test_add_data_func ("/tokenizer/golden/qwen3.5", "tokenizer/qwen3_5.json.xz", test_golden);
  g_test_add_func ("/tokenizer/golden/gemma3-gguf", test_golden_gguf);
  g_test_add_func ("/tokenizer/control", test_control);
  g_test_add_func ("/tokenizer/random-bytes", test_random_bytes);
  g_test_add_func ("/tokenizer/long", test_long);
  g_test_add_func ("/tokenizer/decode-out-of-range", test_decode_out_of_range);
  g_test_add_func ("/tokenizer/utf8-stream", test_utf8_stream);
  g_test_add_func ("/tokenizer/threads", test_threads);
  g_test_add_func ("/tokenizer/names", test_names);
  g_test_add_func ("/tokenizer/cancel", test_cancel);
  result = g_test_run ();
  ox_tokenizer_unref (gemma3);
  ox_tokenizer_unref (gemma4);
  ox_tokenizer_unref (qwen3);
  ox_tokenizer_unref (qwen35);
  return result;
}
