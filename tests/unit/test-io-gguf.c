/* The GGUF reader against files that break the rules in every way that the format offers, and odd ones that do not.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-io-check.h"
#include "ox-pieces.h"

#include <glib/gstdio.h>
#include <string.h>
#include <time.h>

#define MAX_PIECES 40

typedef struct {
  const char *name;
  int code;
  const char *text; /* expected in the message */
  OxPiece pieces[MAX_PIECES];
} Case;

/* A file without metadata whose one tensor is described by the pieces that follow. */
#define ONE_TENSOR GGUF (3, 1, 0)
/* The end of a one-tensor file with @n bytes of data. */
#define DATA(n) ALIGN (32), ZEROS (n)
/* A file without tensors whose one key is described by the pieces that follow. */
#define ONE_KEY GGUF (3, 0, 1)

static const Case bad[] = {
  { "empty", OX_ERROR_DAMAGED, "magic", { { OX_PIECE_END } } },
  { "three-bytes", OX_ERROR_DAMAGED, "magic", { BYTES ("GGU") } },
  { "wrong-magic", OX_ERROR_DAMAGED, "no GGUF file", { BYTES ("GGML"), U32 (3), U64 (0), U64 (0) } },
  { "magic-only", OX_ERROR_DAMAGED, "version", { BYTES ("GGUF") } },
  { "version-0", OX_ERROR_UNSUPPORTED, "version 0", { GGUF (0, 0, 0) } },
  { "version-1", OX_ERROR_UNSUPPORTED, "version 1", { GGUF (1, 0, 0) } },
  { "version-4", OX_ERROR_UNSUPPORTED, "version 4", { GGUF (4, 0, 0) } },
  { "big-endian", OX_ERROR_UNSUPPORTED, "big-endian", { GGUF (0x03000000, 0, 0) } },
  { "big-endian-magic", OX_ERROR_UNSUPPORTED, "big-endian", { BYTES ("FUGG"), U32 (3), U64 (0), U64 (0) } },
  { "no-counts", OX_ERROR_DAMAGED, "tensor count", { BYTES ("GGUF"), U32 (3) } },
  { "half-count", OX_ERROR_DAMAGED, "metadata count", { BYTES ("GGUF"), U32 (3), U64 (0), U32 (0) } },

  { "keys-2^31", OX_ERROR_DAMAGED, "metadata keys", { GGUF (3, 0, 1u << 31), ZEROS (64) } },
  { "keys-2^63", OX_ERROR_DAMAGED, "metadata keys", { GGUF (3, 0, 1ull << 63), ZEROS (64) } },
  { "keys-2^64-1", OX_ERROR_DAMAGED, "metadata keys", { GGUF (3, 0, G_MAXUINT64), ZEROS (64) } },
  { "tensors-2^31", OX_ERROR_DAMAGED, "tensors", { GGUF (3, 1u << 31, 0), ZEROS (64) } },
  { "tensors-2^63", OX_ERROR_DAMAGED, "tensors", { GGUF (3, 1ull << 63, 0), ZEROS (64) } },
  { "tensors-2^64-1", OX_ERROR_DAMAGED, "tensors", { GGUF (3, G_MAXUINT64, 0), ZEROS (64) } },
  { "one-key-too-many",
    OX_ERROR_DAMAGED,
    "metadata key",
    { GGUF (3, 0, 2), STR ("abcdefghijklmnop"), U32 (4), U32 (1) } },
  { "one-tensor-too-many",
    OX_ERROR_DAMAGED,
    "tensor",
    { GGUF (3, 2, 0), STR ("abcdefghijklmnopqrstuvwxyz"), U32 (1), U64 (0), U32 (0), U64 (0) } },

  { "key-empty", OX_ERROR_DAMAGED, "metadata key 0", { ONE_KEY, STR (""), U32 (4), U32 (1) } },
  { "key-length-2^64-1", OX_ERROR_DAMAGED, "metadata key 0", { ONE_KEY, U64 (G_MAXUINT64), U32 (4), U32 (1) } },
  { "key-length-65536", OX_ERROR_DAMAGED, "65536", { ONE_KEY, U64 (65536), ZEROS (70000) } },
  { "key-past-end", OX_ERROR_DAMAGED, "ends inside", { ONE_KEY, U64 (100), U32 (4), U32 (1) } },
  { "key-not-utf8", OX_ERROR_DAMAGED, "UTF-8", { ONE_KEY, STR ("a\xff"), U32 (4), U32 (1) } },
  { "key-surrogate", OX_ERROR_DAMAGED, "UTF-8", { ONE_KEY, STR ("\xed\xa0\x80"), U32 (4), U32 (1) } },
  { "key-nul", OX_ERROR_DAMAGED, "UTF-8", { ONE_KEY, STR ("a\0b"), U32 (4), U32 (1) } },
  { "key-twice",
    OX_ERROR_DAMAGED,
    "“a” appears twice",
    { GGUF (3, 0, 2), STR ("a"), U32 (4), U32 (1), STR ("a"), U32 (4), U32 (1) } },
  { "type-13", OX_ERROR_DAMAGED, "unknown type 13", { ONE_KEY, STR ("a"), U32 (13), ZEROS (8) } },
  { "type-2^32-1", OX_ERROR_DAMAGED, "unknown type 4294967295", { ONE_KEY, STR ("a"), U32 (G_MAXUINT32), ZEROS (8) } },
  { "value-cut", OX_ERROR_DAMAGED, "“a”", { ONE_KEY, STR ("a"), U32 (10), U32 (1) } },
  { "bool-2", OX_ERROR_DAMAGED, "boolean", { ONE_KEY, STR ("a"), U32 (7), U8 (2) } },
  { "string-past-end", OX_ERROR_DAMAGED, "“a”", { ONE_KEY, STR ("a"), U32 (8), U64 (9), ZEROS (8) } },
  { "string-2^64-1", OX_ERROR_DAMAGED, "“a”", { ONE_KEY, STR ("a"), U32 (8), U64 (G_MAXUINT64), ZEROS (8) } },
  { "string-not-utf8", OX_ERROR_DAMAGED, "“a” is not valid UTF-8", { ONE_KEY, STR ("a"), U32 (8), STR ("\xc3") } },
  { "string-nul", OX_ERROR_DAMAGED, "“a” is not valid UTF-8", { ONE_KEY, STR ("a"), U32 (8), STR ("x\0y") } },

  { "array-nested",
    OX_ERROR_UNSUPPORTED,
    "array of arrays",
    { ONE_KEY, STR ("a"), U32 (9), U32 (9), U64 (1), U32 (4), U64 (1), U32 (0) } },
  { "array-type-99",
    OX_ERROR_DAMAGED,
    "unknown type 99",
    { ONE_KEY, STR ("a"), U32 (9), U32 (99), U64 (1), ZEROS (8) } },
  { "array-cut", OX_ERROR_DAMAGED, "“a”", { ONE_KEY, STR ("a"), U32 (9), U32 (4), U64 (3), U32 (1), U32 (1) } },
  { "array-wraps",
    OX_ERROR_DAMAGED,
    "impossible",
    { ONE_KEY, STR ("a"), U32 (9), U32 (10), U64 (1ull << 61), ZEROS (8) } },
  { "array-2^64-1", OX_ERROR_DAMAGED, "“a”", { ONE_KEY, STR ("a"), U32 (9), U32 (0), U64 (G_MAXUINT64), ZEROS (8) } },
  { "array-2^31", OX_ERROR_DAMAGED, "“a”", { ONE_KEY, STR ("a"), U32 (9), U32 (0), U64 (1u << 31), ZEROS (8) } },
  { "array-bool-2", OX_ERROR_DAMAGED, "booleans", { ONE_KEY, STR ("a"), U32 (9), U32 (7), U64 (2), U8 (1), U8 (2) } },
  { "strings-2^61",
    OX_ERROR_DAMAGED,
    "impossible",
    { ONE_KEY, STR ("a"), U32 (9), U32 (8), U64 (1ull << 61), ZEROS (8) } },
  { "strings-too-many",
    OX_ERROR_DAMAGED,
    "“a”",
    { ONE_KEY, STR ("a"), U32 (9), U32 (8), U64 (3), STR ("x"), STR ("y") } },
  { "strings-length-past-end",
    OX_ERROR_DAMAGED,
    "“a”",
    { ONE_KEY, STR ("a"), U32 (9), U32 (8), U64 (2), STR ("x"), U64 (5), ZEROS (4) } },
  { "strings-length-2^64-1",
    OX_ERROR_DAMAGED,
    "“a”",
    { ONE_KEY, STR ("a"), U32 (9), U32 (8), U64 (2), STR ("x"), U64 (G_MAXUINT64), ZEROS (4) } },

  { "alignment-0", OX_ERROR_DAMAGED, "general.alignment", { ONE_KEY, STR ("general.alignment"), U32 (4), U32 (0) } },
  { "alignment-48", OX_ERROR_DAMAGED, "general.alignment", { ONE_KEY, STR ("general.alignment"), U32 (4), U32 (48) } },
  { "alignment-2^31",
    OX_ERROR_DAMAGED,
    "general.alignment",
    { ONE_KEY, STR ("general.alignment"), U32 (4), U32 (1u << 31) } },
  { "alignment-2^63",
    OX_ERROR_DAMAGED,
    "general.alignment",
    { ONE_KEY, STR ("general.alignment"), U32 (10), U64 (1ull << 63) } },
  { "alignment-string",
    OX_ERROR_DAMAGED,
    "general.alignment",
    { ONE_KEY, STR ("general.alignment"), U32 (8), STR ("32") } },
  { "split", OX_ERROR_UNSUPPORTED, "split over 3 files", { ONE_KEY, STR ("split.count"), U32 (2), U16 (3) } },

  { "name-empty",
    OX_ERROR_DAMAGED,
    "tensor name 0",
    { ONE_TENSOR, STR (""), U32 (1), U64 (8), U32 (0), U64 (0), DATA (32) } },
  { "name-1025", OX_ERROR_DAMAGED, "1025", { ONE_TENSOR, U64 (1025), ZEROS (2000) } },
  { "name-2^63", OX_ERROR_DAMAGED, "tensor name 0", { ONE_TENSOR, U64 (1ull << 63), ZEROS (2000) } },
  { "name-not-utf8",
    OX_ERROR_DAMAGED,
    "UTF-8",
    { ONE_TENSOR, STR ("\x80"), U32 (1), U64 (8), U32 (0), U64 (0), DATA (32) } },
  { "name-nul", OX_ERROR_DAMAGED, "UTF-8", { ONE_TENSOR, STR ("t\0"), U32 (1), U64 (8), U32 (0), U64 (0), DATA (32) } },
  { "name-twice",
    OX_ERROR_DAMAGED,
    "“t” appears twice",
    { GGUF (3, 2, 0), STR ("t"), U32 (1), U64 (8), U32 (0), U64 (0), STR ("t"), U32 (1), U64 (8), U32 (0), U64 (32),
      DATA (64) } },
  { "dims-5",
    OX_ERROR_DAMAGED,
    "5 dimensions",
    { ONE_TENSOR, STR ("t"), U32 (5), U64 (1), U64 (1), U64 (1), U64 (1), U64 (8), U32 (0), U64 (0), DATA (32) } },
  { "dims-2^32-1", OX_ERROR_DAMAGED, "dimensions", { ONE_TENSOR, STR ("t"), U32 (G_MAXUINT32), ZEROS (100) } },
  { "dims-cut", OX_ERROR_DAMAGED, "“t”", { ONE_TENSOR, STR ("t"), U32 (4), U64 (1), U64 (1) } },
  { "product-wraps-to-0",
    OX_ERROR_DAMAGED,
    "impossibly large",
    { ONE_TENSOR, STR ("t"), U32 (2), U64 (1ull << 32), U64 (1ull << 32), U32 (0), U64 (0), DATA (32) } },
  { "product-wraps-to-8",
    OX_ERROR_DAMAGED,
    "impossibly large",
    { ONE_TENSOR, STR ("t"), U32 (2), U64 (8), U64 ((1ull << 61) + 1), U32 (24), U64 (0), DATA (32) } },
  { "product-2^63",
    OX_ERROR_DAMAGED,
    "impossibly large",
    { ONE_TENSOR, STR ("t"), U32 (1), U64 (1ull << 63), U32 (24), U64 (0), DATA (32) } },
  { "product-hidden-by-0",
    OX_ERROR_DAMAGED,
    "impossibly large",
    { ONE_TENSOR, STR ("t"), U32 (3), U64 (0), U64 (1ull << 40), U64 (1ull << 40), U32 (0), U64 (0), DATA (32) } },
  { "bytes-wrap-in-row",
    OX_ERROR_DAMAGED,
    "“t”",
    { ONE_TENSOR, STR ("t"), U32 (1), U64 (1ull << 62), U32 (0), U64 (0), DATA (32) } },
  { "bytes-wrap-over-rows",
    OX_ERROR_DAMAGED,
    "impossibly large",
    { ONE_TENSOR, STR ("t"), U32 (2), U64 (4), U64 (1ull << 60), U32 (0), U64 (0), DATA (32) } },
  { "type-4",
    OX_ERROR_UNSUPPORTED,
    "“t” is stored in format number 4",
    { ONE_TENSOR, STR ("t"), U32 (1), U64 (32), U32 (4), U64 (0), DATA (32) } },
  { "type-255",
    OX_ERROR_UNSUPPORTED,
    "format number 255",
    { ONE_TENSOR, STR ("t"), U32 (1), U64 (32), U32 (255), U64 (0), DATA (32) } },
  { "type-1000",
    OX_ERROR_UNSUPPORTED,
    "format number 1000",
    { ONE_TENSOR, STR ("t"), U32 (1), U64 (32), U32 (1000), U64 (0), DATA (32) } },
  { "type-all-ones",
    OX_ERROR_UNSUPPORTED,
    "format number 4294967295",
    { ONE_TENSOR, STR ("t"), U32 (1), U64 (32), U32 (G_MAXUINT32), U64 (0), DATA (32) } },
  { "broken-block",
    OX_ERROR_DAMAGED,
    "blocks",
    { ONE_TENSOR, STR ("t"), U32 (1), U64 (33), U32 (2), U64 (0), DATA (64) } },
  { "row-not-block",
    OX_ERROR_DAMAGED,
    "blocks",
    { ONE_TENSOR, STR ("t"), U32 (2), U64 (16), U64 (2), U32 (2), U64 (0), DATA (64) } },
  { "offset-unaligned",
    OX_ERROR_DAMAGED,
    "multiple of 32",
    { ONE_TENSOR, STR ("t"), U32 (1), U64 (8), U32 (0), U64 (8), DATA (64) } },
  { "offset-past-end",
    OX_ERROR_DAMAGED,
    "past the end",
    { ONE_TENSOR, STR ("t"), U32 (1), U64 (8), U32 (0), U64 (64), DATA (64) } },
  { "offset-wraps",
    OX_ERROR_DAMAGED,
    "past the end",
    { ONE_TENSOR, STR ("t"), U32 (1), U64 (8), U32 (0), U64 (G_MAXUINT64 - 31), DATA (64) } },
  { "offset-2^63",
    OX_ERROR_DAMAGED,
    "past the end",
    { ONE_TENSOR, STR ("t"), U32 (1), U64 (8), U32 (0), U64 (1ull << 63), DATA (64) } },
  { "data-short",
    OX_ERROR_DAMAGED,
    "past the end",
    { ONE_TENSOR, STR ("t"), U32 (1), U64 (8), U32 (0), U64 (0), DATA (31) } },
  { "data-missing", OX_ERROR_DAMAGED, "past the end", { ONE_TENSOR, STR ("t"), U32 (1), U64 (8), U32 (0), U64 (0) } },
  { "same-place",
    OX_ERROR_DAMAGED,
    "overlap",
    { GGUF (3, 2, 0), STR ("t"), U32 (1), U64 (8), U32 (0), U64 (0), STR ("u"), U32 (1), U64 (8), U32 (0), U64 (0),
      DATA (64) } },
  { "overlap",
    OX_ERROR_DAMAGED,
    "overlap",
    { GGUF (3, 2, 0), STR ("t"), U32 (1), U64 (8), U32 (0), U64 (32), STR ("u"), U32 (1), U64 (9), U32 (0), U64 (0),
      DATA (64) } },
};

static OxGguf *
parse (const OxPiece *pieces, gsize n, GError **error)
{
  g_autoptr (GByteArray) array = g_byte_array_new ();
  g_autoptr (GBytes) bytes = NULL;
  g_autoptr (OxFile) file = NULL;

  ox_pieces_append (array, pieces, n);
  bytes = g_byte_array_free_to_bytes (g_steal_pointer (&array));
  file = ox_file_new_for_bytes (bytes, OX_CHECK_FILE_NAME);
  return ox_gguf_parse (file, error);
}

static void
test_bad (gconstpointer data)
{
  const Case *c = data;
  g_autoptr (GError) error = NULL;
  g_autoptr (OxGguf) gguf = parse (c->pieces, MAX_PIECES, &error);

  g_assert_null (gguf);
  ox_check_error (&error, c->code, OX_CHECK_FILE_NAME, c->text);
}

/* However a file is cut short, it is refused. */
static void
test_cut_anywhere (void)
{
  g_autoptr (GBytes) whole = ox_build_llama_gguf (NULL, NULL, 0);
  gsize size = g_bytes_get_size (whole);

  g_assert_true (ox_exercise_gguf (whole));
  for (gsize n = 0; n < size; n++) {
    /* A copy of just these bytes, so that the sanitizer sees any read beyond. */
    g_autoptr (GBytes) cut = g_bytes_new (g_bytes_get_data (whole, NULL), n);

    g_assert_false (ox_exercise_gguf (cut));
  }
}

static void
test_all_values (void)
{
  static const OxPiece pieces[] = {
    GGUF (2, 0, 17),  STR ("u8"),        U32 (0),           U8 (200),    STR ("i8"),       U32 (1),      U8 (0xff),
    STR ("u16"),      U32 (2),           U16 (60000),       STR ("i16"), U32 (3),          U16 (0xfffe), STR ("u32"),
    U32 (4),          U32 (4000000000u), STR ("i32"),       U32 (5),     U32 (0xfffffffd), STR ("f32"),  U32 (6),
    F32 (0.5),        STR ("yes"),       U32 (7),           U8 (1),      STR ("s"),        U32 (8),      STR ("grün"),
    STR ("u64"),      U32 (10),          U64 (G_MAXUINT64), STR ("i64"), U32 (11),         U64 (7),      STR ("f64"),
    U32 (12),         F64 (1e300),       STR ("ints"),      U32 (9),     U32 (3),          U64 (2),      U16 (0xffff),
    U16 (5),          STR ("strings"),   U32 (9),           U32 (8),     U64 (3),          STR ("x"),    STR (""),
    STR ("a\xff\0z"), STR ("doubles"),   U32 (9),           U32 (12),    U64 (2),          F64 (1e300),  F64 (-0.25),
    STR ("none"),     U32 (9),           U32 (8),           U64 (0),     STR ("end"),      U32 (8),      STR (""),
  };
  g_autoptr (GError) error = NULL;
  g_autoptr (OxGguf) gguf = parse (pieces, G_N_ELEMENTS (pieces), &error);
  gint64 ints[2];
  float floats[2];
  guint64 u = 0;
  double d = 0;
  gboolean b = FALSE;
  const char *text;
  gsize len;

  g_assert_no_error (error);
  g_assert_true (ox_gguf_get_uint (gguf, "u8", &u) && u == 200);
  g_assert_false (ox_gguf_get_uint (gguf, "i8", &u));
  g_assert_true (ox_gguf_get_float (gguf, "i8", &d) && d == -1);
  g_assert_true (ox_gguf_get_uint (gguf, "u16", &u) && u == 60000);
  g_assert_true (ox_gguf_get_float (gguf, "i16", &d) && d == -2);
  g_assert_true (ox_gguf_get_uint (gguf, "u32", &u) && u == 4000000000u);
  g_assert_true (ox_gguf_get_float (gguf, "i32", &d) && d == -3);
  g_assert_true (ox_gguf_get_float (gguf, "f32", &d) && d == 0.5);
  g_assert_false (ox_gguf_get_uint (gguf, "f32", &u));
  g_assert_true (ox_gguf_get_bool (gguf, "yes", &b) && b);
  g_assert_false (ox_gguf_get_uint (gguf, "yes", &u));
  g_assert_false (ox_gguf_get_bool (gguf, "u8", &b));
  g_assert_cmpstr (ox_gguf_get_string (gguf, "s"), ==, "grün");
  g_assert_null (ox_gguf_get_string (gguf, "u8"));
  g_assert_null (ox_gguf_get_string (gguf, "nothing"));
  g_assert_true (ox_gguf_get_uint (gguf, "u64", &u) && u == G_MAXUINT64);
  g_assert_true (ox_gguf_get_uint (gguf, "i64", &u) && u == 7);
  g_assert_true (ox_gguf_get_float (gguf, "f64", &d) && d == 1e300);
  g_assert_cmpstr (ox_gguf_get_string (gguf, "end"), ==, "");
  g_assert_true (ox_gguf_has (gguf, "none"));
  g_assert_false (ox_gguf_has (gguf, "nothing"));

  g_assert_true (ox_gguf_get_array_int (gguf, "ints", ints, 2) && ints[0] == -1 && ints[1] == 5);
  g_assert_false (ox_gguf_get_array_int (gguf, "ints", ints, 1));
  g_assert_true (ox_gguf_get_array_float (gguf, "ints", floats, 2) && floats[0] == -1);
  g_assert_false (ox_gguf_get_array_int (gguf, "doubles", ints, 2));
  g_assert_true (ox_gguf_get_array_float (gguf, "doubles", floats, 2) && floats[1] == -0.25f && floats[0] > G_MAXFLOAT);
  g_assert_false (ox_gguf_get_array_float (gguf, "strings", floats, 2));

  g_assert_cmpuint (ox_gguf_get_array_length (gguf, "strings"), ==, 3);
  g_assert_cmpuint (ox_gguf_get_array_length (gguf, "none"), ==, 0);
  g_assert_cmpuint (ox_gguf_get_array_length (gguf, "u8"), ==, 0);
  text = ox_gguf_get_array_string (gguf, "strings", 0, &len);
  g_assert_cmpmem (text, len, "x", 1);
  text = ox_gguf_get_array_string (gguf, "strings", 1, &len);
  g_assert_cmpmem (text, len, "", 0);
  /* Tokens may be any bytes. */
  text = ox_gguf_get_array_string (gguf, "strings", 2, &len);
  g_assert_cmpmem (text, len, "a\xff\0z", 4);
  g_assert_null (ox_gguf_get_array_string (gguf, "strings", 3, &len));
  g_assert_null (ox_gguf_get_array_string (gguf, "ints", 0, &len));
}

/* Unusual but within the rules. */
static void
test_odd_tensors (void)
{
  static const OxPiece pieces[] = {
    GGUF (3, 7, 1),
    STR ("general.alignment"),
    U32 (4),
    U32 (8),
    /* after the next one, with a gap between them */
    STR ("late"),
    U32 (1),
    U64 (2),
    U32 (0),
    U64 (32),
    STR ("early"),
    U32 (2),
    U64 (2),
    U64 (3),
    U32 (24),
    U64 (0),
    STR ("empty"),
    U32 (2),
    U64 (0),
    U64 (5),
    U32 (0),
    U64 (0),
    STR ("empty-blocks"),
    U32 (2),
    U64 (32),
    U64 (0),
    U32 (8),
    U64 (40),
    STR ("scalar"),
    U32 (0),
    U32 (28),
    U64 (40),
    STR ("wide"),
    U32 (4),
    U64 (32),
    U64 (1),
    U64 (1),
    U64 (1),
    U32 (8),
    U64 (48),
    STR ("bf16"),
    U32 (1),
    U64 (1),
    U32 (30),
    U64 (8),
    ALIGN (8),
    BYTES ("\1\2\3\4\5\xff"),
    ZEROS (2),
    BYTES ("\x80\x3f"),
    ZEROS (22),
    F32 (1),
    F32 (2),
    F64 (0.125),
    ZEROS (34),
    BYTES ("and more"),
  };
  g_autoptr (GError) error = NULL;
  g_autoptr (GByteArray) array = g_byte_array_new ();
  g_autoptr (GBytes) bytes = NULL;
  g_autoptr (OxFile) file = NULL;
  g_autoptr (OxWeights) weights = NULL;
  g_autofree char *text = NULL;
  g_autofree float *early = NULL, *scalar = NULL, *late = NULL, *bf16 = NULL;
  const OxTensorInfo *tensor;
  gint8 row[2];

  ox_pieces_append (array, pieces, G_N_ELEMENTS (pieces));
  bytes = g_byte_array_free_to_bytes (g_steal_pointer (&array));
  file = ox_file_new_for_bytes (bytes, OX_CHECK_FILE_NAME);
  weights = ox_weights_open_gguf (file, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (ox_weights_get_n_tensors (weights), ==, 7);
  g_assert_cmpuint (ox_weights_get_file_bytes (weights), ==, g_bytes_get_size (bytes));
  g_assert_null (ox_weights_find (weights, "absent"));
  g_assert_null (ox_weights_get_tensor (weights, 7));

  tensor = ox_weights_find (weights, "early");
  text = ox_tensor_describe (tensor);
  g_assert_cmpstr (text, ==, "I8 [3, 2]");
  early = ox_tensor_read_f32 (tensor, &error);
  g_assert_no_error (error);
  g_assert_true (early[0] == 1 && early[4] == 5 && early[5] == -1);
  g_assert_true (ox_tensor_read_rows (tensor, 2, 3, row, &error));
  g_assert_true (row[0] == 5 && row[1] == -1);
  g_assert_true (ox_tensor_read_rows (tensor, 3, 3, row, &error));
  g_assert_false (ox_tensor_read_rows (tensor, 2, 4, row, &error));
  ox_check_error (&error, OX_ERROR_INVALID, OX_CHECK_FILE_NAME, "early");
  g_assert_false (ox_tensor_read_rows (tensor, 2, 1, row, &error));
  ox_check_error (&error, OX_ERROR_INVALID, OX_CHECK_FILE_NAME, "early");
  g_assert_true (ox_tensor_check_shape (tensor, &error, 2, (guint64) 3, (guint64) 2));
  g_assert_false (ox_tensor_check_shape (tensor, &error, 2, (guint64) 2, (guint64) 3));
  ox_check_error (&error, OX_ERROR_DAMAGED, OX_CHECK_FILE_NAME, "I8 [3, 2], the shape [2, 3] was expected");
  g_assert_false (ox_tensor_check_shape (tensor, &error, 1, (guint64) 3));
  ox_check_error (&error, OX_ERROR_DAMAGED, OX_CHECK_FILE_NAME, "[3] was expected");

  g_assert_cmpuint (ox_weights_find (weights, "empty")->n_elements, ==, 0);
  g_assert_cmpuint (ox_weights_find (weights, "empty-blocks")->n_bytes, ==, 0);
  g_assert_cmpuint (ox_weights_find (weights, "scalar")->n_dims, ==, 0);
  scalar = ox_tensor_read_f32 (ox_weights_find (weights, "scalar"), &error);
  g_assert_no_error (error);
  g_assert_true (scalar[0] == 0.125f);
  late = ox_tensor_read_f32 (ox_weights_find (weights, "late"), &error);
  g_assert_no_error (error);
  g_assert_true (late[0] == 1 && late[1] == 2);
  bf16 = ox_tensor_read_f32 (ox_weights_find (weights, "bf16"), &error);
  g_assert_no_error (error);
  g_assert_true (bf16[0] == 1);
}

/* A vocabulary of Gemma's size is read in a moment, and from disk in pieces. */
static void
test_large_vocabulary (void)
{
  enum { N = 262144 };
  static const OxPiece head[] = { ONE_KEY, STR ("tokenizer.ggml.tokens"), U32 (9), U32 (8), U64 (N) };
  g_autoptr (GError) error = NULL;
  g_autoptr (GByteArray) array = g_byte_array_new ();
  g_autoptr (OxGguf) gguf = NULL;
  g_autoptr (OxFile) file = NULL;
  g_autofree char *path = NULL;
  clock_t start;
  int fd = g_file_open_tmp ("ox-vocabulary-XXXXXX", &path, &error);

  g_assert_no_error (error);
  ox_pieces_append (array, head, G_N_ELEMENTS (head));
  for (guint i = 0; i < N; i++) {
    char text[16];
    guint64 len = GUINT64_TO_LE (g_snprintf (text, sizeof text, "token%u", i));

    g_byte_array_append (array, (guint8 *) &len, 8);
    g_byte_array_append (array, (guint8 *) text, (guint) strlen (text));
  }
  g_file_set_contents (path, (char *) array->data, array->len, &error);
  g_assert_no_error (error);
  file = ox_file_open (path, &error);
  g_assert_no_error (error);
  start = clock ();
  gguf = ox_gguf_parse (file, &error);
  g_assert_no_error (error);
  g_assert_cmpfloat ((double) (clock () - start) / CLOCKS_PER_SEC, <, 0.3);
  for (guint i = 0; i < N; i += 4369) {
    g_autofree char *expected = g_strdup_printf ("token%u", i);
    gsize len;
    const char *text = ox_gguf_get_array_string (gguf, "tokenizer.ggml.tokens", i, &len);

    g_assert_cmpmem (text, len, expected, strlen (expected));
  }
  g_unlink (path);
  g_close (fd, NULL);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (bad); i++) {
    g_autofree char *path = g_strconcat ("/io/gguf/bad/", bad[i].name, NULL);

    g_test_add_data_func (path, &bad[i], test_bad);
  }
  g_test_add_func ("/io/gguf/cut-anywhere", test_cut_anywhere);
  g_test_add_func ("/io/gguf/all-values", test_all_values);
  g_test_add_func ("/io/gguf/odd-tensors", test_odd_tensors);
  g_test_add_func ("/io/gguf/large-vocabulary", test_large_vocabulary);
  return g_test_run ();
}
