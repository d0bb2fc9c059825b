/* The safetensors reader against files that break the rules, and odd ones that do not.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-io-check.h"
#include "ox-pieces.h"

#include <string.h>

typedef struct {
  const char *name;
  int code;
  const char *text; /* expected in the message */
  const char *header;
  gsize n_data;
} Case;

/* A tensor of 8 bytes. */
#define A "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}"
/* Beginnings and ends of one with something else in it. */
#define SHAPE(x) "{\"a\":{\"dtype\":\"F32\",\"shape\":" x ",\"data_offsets\":[0,8]}}"
#define OFFSETS(x) "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":" x "}}"
#define DTYPE(x) "{\"a\":{\"dtype\":" x ",\"shape\":[2],\"data_offsets\":[0,8]}}"
#define NAMED(x) "{\"" x "\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}"
#define B(begin, end) ",\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[" #begin "," #end "]}"

static const Case bad[] = {
  /* the header as JSON */
  { "header-space-first", OX_ERROR_DAMAGED, "begin with “{”", " {" A "}", 8 },
  { "header-bom", OX_ERROR_DAMAGED, "begin with “{”", "\xef\xbb\xbf{" A "}", 8 },
  { "header-array", OX_ERROR_DAMAGED, "begin with “{”", "[]", 0 },
  { "header-not-json", OX_ERROR_DAMAGED, "JSON", "{a:1}", 0 },
  { "header-unclosed", OX_ERROR_DAMAGED, "JSON", "{" A, 8 },
  { "header-trailing-garbage", OX_ERROR_DAMAGED, "JSON", "{" A "}x", 8 },
  { "header-two-objects", OX_ERROR_DAMAGED, "JSON", "{" A "}{}", 8 },
  { "header-trailing-comma", OX_ERROR_DAMAGED, "JSON", "{" A ",}", 8 },
  { "header-comment", OX_ERROR_DAMAGED, "JSON", "{" A "/**/}", 8 },
  { "header-nan", OX_ERROR_DAMAGED, "JSON", SHAPE ("[NaN]"), 8 },
  { "header-infinity", OX_ERROR_DAMAGED, "JSON", SHAPE ("[Infinity]"), 8 },
  { "header-unterminated-string", OX_ERROR_DAMAGED, "JSON", "{\"a", 0 },
  { "header-bad-escape", OX_ERROR_DAMAGED, "JSON", NAMED ("\\x41"), 8 },
  { "header-control-character", OX_ERROR_DAMAGED, "JSON", NAMED ("a\nb"), 8 },
  { "header-not-utf8", OX_ERROR_DAMAGED, "JSON", NAMED ("a\xff"), 8 },
  { "header-overlong-utf8", OX_ERROR_DAMAGED, "JSON", NAMED ("\xc0\xaf"), 8 },
  { "header-lone-high-surrogate", OX_ERROR_DAMAGED, "JSON", NAMED ("\\ud800"), 8 },
  { "header-lone-low-surrogate", OX_ERROR_DAMAGED, "JSON", NAMED ("\\udc00"), 8 },
  { "header-surrogate-in-utf8", OX_ERROR_DAMAGED, "JSON", NAMED ("\xed\xa0\x80"), 8 },
  { "header-leading-zero", OX_ERROR_DAMAGED, "JSON", SHAPE ("[02]"), 8 },

  /* names */
  { "name-empty", OX_ERROR_DAMAGED, "tensor name", NAMED (""), 8 },
  { "name-nul", OX_ERROR_DAMAGED, "NUL", NAMED ("a\\u0000b"), 8 },
  { "name-twice", OX_ERROR_DAMAGED, "“a” appears twice", "{" A "," A "}", 8 },
  { "name-twice-escaped", OX_ERROR_DAMAGED, "“a” appears twice",
    "{" A ",\"\\u0061\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,16]}}", 16 },

  /* a tensor's members */
  { "tensor-null", OX_ERROR_DAMAGED, "“a” is null", "{\"a\":null}", 0 },
  { "tensor-array", OX_ERROR_DAMAGED, "“a” is an array", "{\"a\":[]}", 0 },
  { "tensor-empty", OX_ERROR_DAMAGED, "“dtype” is missing", "{\"a\":{}}", 0 },
  { "no-shape", OX_ERROR_DAMAGED, "“shape” is missing", "{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", 8 },
  { "no-offsets", OX_ERROR_DAMAGED, "“data_offsets” is missing", "{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8 },
  { "dtype-twice", OX_ERROR_DAMAGED, "“dtype” twice",
    "{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8 },
  { "shape-twice", OX_ERROR_DAMAGED, "“shape” twice",
    "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"shape\":[2],\"data_offsets\":[0,8]}}", 8 },
  { "offsets-twice", OX_ERROR_DAMAGED, "“data_offsets” twice",
    "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4],\"data_offsets\":[0,8]}}", 8 },
  { "dtype-number", OX_ERROR_DAMAGED, "“dtype” is a non-negative integer", DTYPE ("32"), 8 },
  { "dtype-unknown", OX_ERROR_DAMAGED, "“F33”", DTYPE ("\"F33\""), 8 },
  { "dtype-lower-case", OX_ERROR_DAMAGED, "“f32”", DTYPE ("\"f32\""), 8 },
  { "dtype-nul", OX_ERROR_DAMAGED, "no type of the format", DTYPE ("\"F32\\u0000\""), 8 },
  { "dtype-f8", OX_ERROR_UNSUPPORTED, "“a” is stored as F8_E4M3", DTYPE ("\"F8_E4M3\""), 2 },
  { "dtype-f4", OX_ERROR_UNSUPPORTED, "F4", DTYPE ("\"F4\""), 1 },

  /* dimensions */
  { "shape-string", OX_ERROR_DAMAGED, "“shape” is a string", SHAPE ("\"2\""), 8 },
  { "shape-of-strings", OX_ERROR_DAMAGED, "dimension 0 is a string", SHAPE ("[\"2\"]"), 8 },
  { "dim-negative", OX_ERROR_DAMAGED, "dimension 0 is a negative integer", SHAPE ("[-1]"), 8 },
  { "dims-negative-twice", OX_ERROR_DAMAGED, "dimension 0 is a negative integer", SHAPE ("[-1,-2]"), 8 },
  { "dim-1.5", OX_ERROR_DAMAGED, "dimension 0", SHAPE ("[1.5]"), 8 },
  { "dim-2.0", OX_ERROR_DAMAGED, "dimension 0", SHAPE ("[2.0]"), 8 },
  { "dim-1e3", OX_ERROR_DAMAGED, "dimension 0", SHAPE ("[1e3]"), 8 },
  { "dim-1e999", OX_ERROR_DAMAGED, "JSON", SHAPE ("[1e999]"), 8 },
  { "dim-null", OX_ERROR_DAMAGED, "dimension 1 is null", SHAPE ("[2,null]"), 8 },
  { "dim-2^64", OX_ERROR_DAMAGED, "dimension 0", SHAPE ("[18446744073709551616]"), 8 },
  { "dim-2^64-1", OX_ERROR_DAMAGED, "impossibly large", SHAPE ("[18446744073709551615]"), 8 },
  { "dim-2^63", OX_ERROR_DAMAGED, "impossibly large", SHAPE ("[9223372036854775808]"), 8 },
  { "dim-50-digits", OX_ERROR_DAMAGED, "dimension 0", SHAPE ("[99999999999999999999999999999999999999999999999999]"),
    8 },
  { "product-wraps-to-0", OX_ERROR_DAMAGED, "impossibly large", SHAPE ("[4294967296,4294967296]"), 0 },
  { "product-wraps-to-true-size", OX_ERROR_DAMAGED, "impossibly large", SHAPE ("[2,9223372036854775809]"), 8 },
  { "bytes-wrap-to-0", OX_ERROR_DAMAGED, "does not fit", SHAPE ("[4611686018427387904]"), 8 },
  { "bytes-wrap-to-true-size", OX_ERROR_DAMAGED, "does not fit", SHAPE ("[4611686018427387906]"), 8 },
  { "product-hidden-by-0", OX_ERROR_DAMAGED, "impossibly large", SHAPE ("[0,4294967296,4294967296]"), 0 },
  { "nine-dims", OX_ERROR_UNSUPPORTED, "9 dimensions", SHAPE ("[2,1,1,1,1,1,1,1,1]"), 8 },
  { "shape-too-small", OX_ERROR_DAMAGED, "F32 [1], which does not fit", SHAPE ("[1]"), 8 },
  { "shape-too-large", OX_ERROR_DAMAGED, "F32 [3], which does not fit", SHAPE ("[3]"), 8 },
  { "shape-nested", OX_ERROR_DAMAGED, "dimension 0 is an array", SHAPE ("[[2]]"), 8 },

  /* places */
  { "offsets-object", OX_ERROR_DAMAGED, "“data_offsets” is an object", OFFSETS ("{}"), 8 },
  { "offsets-one", OX_ERROR_DAMAGED, "“data_offsets”", OFFSETS ("[8]"), 8 },
  { "offsets-three", OX_ERROR_DAMAGED, "“data_offsets”", OFFSETS ("[0,8,8]"), 8 },
  { "offsets-negative", OX_ERROR_DAMAGED, "“data_offsets”", OFFSETS ("[-8,0]"), 8 },
  { "offsets-float", OX_ERROR_DAMAGED, "“data_offsets”", OFFSETS ("[0,8.0]"), 8 },
  { "begin-after-end", OX_ERROR_DAMAGED, "lies at 8…0", OFFSETS ("[8,0]"), 8 },
  { "end-past-file", OX_ERROR_DAMAGED, "incomplete", OFFSETS ("[0,8]"), 7 },
  { "end-2^63", OX_ERROR_DAMAGED, "incomplete", OFFSETS ("[0,9223372036854775808]"), 8 },
  { "end-2^64-1", OX_ERROR_DAMAGED, "incomplete", OFFSETS ("[0,18446744073709551615]"), 8 },
  { "range-wraps", OX_ERROR_DAMAGED, "lies at", OFFSETS ("[18446744073709551612,4]"), 8 },
  { "gap-first", OX_ERROR_DAMAGED, "gap", OFFSETS ("[4,12]"), 12 },
  { "gap", OX_ERROR_DAMAGED, "gap", "{" A B (12, 16) "}", 16 },
  { "gap-before-empty", OX_ERROR_DAMAGED, "gap",
    "{" A ",\"b\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[12,12]}}", 12 },
  { "overlap", OX_ERROR_DAMAGED, "overlap", "{" A B (4, 8) "}", 8 },
  { "overlap-whole", OX_ERROR_DAMAGED, "overlap",
    "{" A ",\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8 },
  { "trailing-byte", OX_ERROR_DAMAGED, "its tensors take 8", "{" A "}", 9 },
  { "data-without-tensors", OX_ERROR_DAMAGED, "its tensors take 0", "{}", 1 },

  /* metadata */
  { "metadata-array", OX_ERROR_DAMAGED, "__metadata__", "{\"__metadata__\":[]," A "}", 8 },
  { "metadata-number", OX_ERROR_DAMAGED, "“format” is a non-negative integer",
    "{\"__metadata__\":{\"format\":1}," A "}", 8 },
  { "metadata-nested", OX_ERROR_DAMAGED, "“x” is an object", "{\"__metadata__\":{\"x\":{}}," A "}", 8 },
  { "metadata-twice", OX_ERROR_DAMAGED, "twice", "{\"__metadata__\":{},\"__metadata__\":{}," A "}", 8 },
};

static OxWeights *
open_bytes (GBytes *bytes, GError **error)
{
  g_autoptr (OxFile) file = ox_file_new_for_bytes (bytes, OX_CHECK_FILE_NAME);

  return ox_weights_open_safetensors (file, error);
}

static void
test_bad (gconstpointer data)
{
  const Case *c = data;
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) bytes = ox_build_safetensors (c->header, -1, c->n_data);
  g_autoptr (OxWeights) weights = open_bytes (bytes, &error);

  g_assert_null (weights);
  ox_check_error (&error, c->code, OX_CHECK_FILE_NAME, c->text);
}

/* The length at the start of the file. */
static void
test_bad_length (void)
{
  const char *header = "{" A "}";
  gsize header_len = strlen (header);
  const guint64 lengths[] = {
    0,        1,         7,          header_len - 1, header_len + 1, header_len + 8, header_len + 9,
    1u << 31, 100000001, 1ull << 63, G_MAXUINT64,
  };

  for (gsize i = 0; i < G_N_ELEMENTS (lengths); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (GBytes) valid = ox_build_safetensors (header, -1, 8);
    g_autoptr (GBytes) bytes = NULL;
    g_autofree guint8 *data = g_memdup2 (g_bytes_get_data (valid, NULL), g_bytes_get_size (valid));
    guint64 le = GUINT64_TO_LE (lengths[i]);

    memcpy (data, &le, 8);
    bytes = g_bytes_new (data, g_bytes_get_size (valid));
    g_assert_null (open_bytes (bytes, &error));
    ox_check_error (&error, OX_ERROR_DAMAGED, OX_CHECK_FILE_NAME, "");
  }
}

static void
test_cut_anywhere (void)
{
  g_autoptr (GBytes) whole = ox_build_safetensors ("{" A B (8, 12) "}", -1, 12);
  gsize size = g_bytes_get_size (whole);

  g_assert_true (ox_exercise_safetensors (whole));
  for (gsize n = 0; n < size; n++) {
    /* Copies, so that the sanitizer sees any read beyond; the second has the header's length put right. */
    g_autoptr (GBytes) cut = g_bytes_new (g_bytes_get_data (whole, NULL), n);
    g_autoptr (GBytes) adjusted = NULL;

    g_assert_false (ox_exercise_safetensors (cut));
    if (n < 8)
      continue;
    adjusted = ox_build_safetensors ((const char *) g_bytes_get_data (whole, NULL) + 8,
                                     (gssize) MIN (n, size - 12 - 8 - 1) - 8, 12);
    g_assert_false (ox_exercise_safetensors (adjusted));
  }
}

/* Nested deeper than any stack: the parser must not recurse. */
static void
test_deep (void)
{
  static const char *const openings[] = { "[", "{\"a\":" };

  for (guint i = 0; i < G_N_ELEMENTS (openings); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (GString) header = g_string_new ("{\"a\":");
    g_autoptr (GBytes) bytes = NULL;

    for (guint j = 0; j < 100000; j++)
      g_string_append (header, openings[i]);
    bytes = ox_build_safetensors (header->str, -1, 0);
    g_assert_null (open_bytes (bytes, &error));
    ox_check_error (&error, OX_ERROR_DAMAGED, OX_CHECK_FILE_NAME, "JSON");

    g_string_append (header, "1");
    for (guint j = 0; j < 100000; j++)
      g_string_append_c (header, i == 0 ? ']' : '}');
    g_string_append_c (header, '}');
    g_clear_pointer (&bytes, g_bytes_unref);
    bytes = ox_build_safetensors (header->str, -1, 0);
    g_assert_null (open_bytes (bytes, &error));
    ox_check_error (&error, OX_ERROR_DAMAGED, OX_CHECK_FILE_NAME, "“a”");
  }
}

static void
test_long_name (void)
{
  g_autofree char *fits = g_strnfill (1024, 'n');
  g_autofree char *longer = g_strnfill (1025, 'n');
  const char *const names[] = { fits, longer };

  for (guint i = 0; i < 2; i++) {
    g_autoptr (GError) error = NULL;
    g_autofree char *header =
      g_strdup_printf ("{\"%s\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}", names[i]);
    g_autoptr (GBytes) bytes = ox_build_safetensors (header, -1, 1);
    g_autoptr (OxWeights) weights = open_bytes (bytes, &error);

    if (i == 0)
      g_assert_no_error (error);
    else
      ox_check_error (&error, OX_ERROR_DAMAGED, OX_CHECK_FILE_NAME, "tensor name");
  }
}

/* Unusual but within the rules. */
static void
test_odd (void)
{
  static const char header[] =
    "{\"__metadata__\":{\"format\":\"pt\",\"\\u0000\":\"\"},"
    "\"z\":{\"dtype\":\"F32\",\"shape\":[2,1,1,1,1,1,1,1],\"data_offsets\":[2,10]},"
    "\"scalar\":{\"shape\":[],\"data_offsets\":[0,2],\"dtype\":\"BF16\",\"extra\":[1,{\"dtype\":0}]},"
    "\"empty\":{\"dtype\":\"I64\",\"shape\":[3,0],\"data_offsets\":[10,10]},"
    "\"empty2\":{\"dtype\":\"F16\",\"shape\":[0],\"data_offsets\":[2,2]},"
    "\"gr\\u00fcn \\ud83d\\ude00\":{\"dtype\":\"BOOL\",\"shape\":[1],\"data_offsets\":[10,11]},"
    "\"i64\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[11,19]}}  \n\t ";
  static const char data[] = "\x80\x3f\0\0\x80\x3f\0\0\0\xc0\1\xfe\xff\xff\xff\xff\xff\xff\xff";
  g_autoptr (GError) error = NULL;
  g_autoptr (GByteArray) array = g_byte_array_new ();
  g_autoptr (GBytes) bytes = NULL;
  g_autoptr (OxWeights) weights = NULL;
  g_autofree float *scalar = NULL, *z = NULL, *flag = NULL, *i64 = NULL, *empty = NULL;
  g_autofree char *text = NULL;
  OxPiece pieces[] = { U64 (sizeof header - 1), BYTES (header), BYTES (data) };

  ox_pieces_append (array, pieces, G_N_ELEMENTS (pieces));
  bytes = g_byte_array_free_to_bytes (g_steal_pointer (&array));
  weights = open_bytes (bytes, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (ox_weights_get_n_tensors (weights), ==, 6);
  g_assert_null (ox_weights_get_gguf (weights));
  g_assert_cmpstr (ox_weights_get_tensor (weights, 0)->name, ==, "empty");
  g_assert_cmpstr (ox_weights_get_tensor (weights, 5)->name, ==, "z");
  scalar = ox_tensor_read_f32 (ox_weights_find (weights, "scalar"), &error);
  z = ox_tensor_read_f32 (ox_weights_find (weights, "z"), &error);
  flag = ox_tensor_read_f32 (ox_weights_find (weights, "grün 😀"), &error);
  i64 = ox_tensor_read_f32 (ox_weights_find (weights, "i64"), &error);
  empty = ox_tensor_read_f32 (ox_weights_find (weights, "empty"), &error);
  g_assert_no_error (error);
  g_assert_true (scalar[0] == 1 && z[0] == 1 && z[1] == -2 && flag[0] == 1 && i64[0] == -2 && empty != NULL);
  text = ox_tensor_describe (ox_weights_find (weights, "scalar"));
  g_assert_cmpstr (text, ==, "BF16 []");
  g_assert_true (ox_tensor_check_shape (ox_weights_find (weights, "scalar"), &error, 0));
}

static void
test_no_tensors (void)
{
  g_autoptr (GBytes) bytes = ox_build_safetensors ("{}", -1, 0);

  g_assert_true (ox_exercise_safetensors (bytes));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (bad); i++) {
    g_autofree char *path = g_strconcat ("/io/safetensors/bad/", bad[i].name, NULL);

    g_test_add_data_func (path, &bad[i], test_bad);
  }
  g_test_add_func ("/io/safetensors/bad-length", test_bad_length);
  g_test_add_func ("/io/safetensors/cut-anywhere", test_cut_anywhere);
  g_test_add_func ("/io/safetensors/deep", test_deep);
  g_test_add_func ("/io/safetensors/long-name", test_long_name);
  g_test_add_func ("/io/safetensors/odd", test_odd);
  g_test_add_func ("/io/safetensors/no-tensors", test_no_tensors);
  return g_test_run ();
}
