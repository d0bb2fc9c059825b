/* The same tokenizer from tokenizer.json and from GGUF metadata: the file is written here, as converters write it, from the content of
 * tokenizer.json, and has to give the reference's ids.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <string.h>

#include <glib/gstdio.h>

#include "golden/ox-golden-text.h"
#include "io/ox-json.h"
#include "ox-pieces.h"
#include "text/ox-tokenizer.h"

enum {
  GGUF_INT32 = 5,
  GGUF_FLOAT = 6,
  GGUF_BOOL = 7,
  GGUF_STRING = 8,
  GGUF_ARRAY = 9,
};
enum {
  TYPE_NORMAL = 1,
  TYPE_CONTROL = 3,
  TYPE_USER_DEFINED = 4,
  TYPE_UNUSED = 5,
  TYPE_BYTE = 6,
};

typedef struct {
  const char *name;  /* of the golden files */
  const char *model; /* tokenizer.ggml.model */
  const char *pre;   /* NULL: left out */
  guint size;        /* tokens of the model, some of which have no name */
  gboolean add_bos;
} Kind;

static const Kind kinds[] = {
  { "gemma4", "gemma4", NULL, 262144, TRUE },
  { "gemma4", "gemma4", "gemma4", 262144, FALSE },
  { "qwen3", "gpt2", "qwen2", 151936, FALSE },
  { "qwen3_5", "gpt2", "qwen35", 248320, FALSE },
};

static void
put (GByteArray *out, OxPiece piece)
{
  ox_pieces_append (out, &piece, 1);
}

static void
put_string (GByteArray *out, const char *text, gsize len)
{
  put (out, (OxPiece) { OX_PIECE_STRING, len, text, 0 });
}

static void
put_key (GByteArray *out, const char *key, guint32 type)
{
  put_string (out, key, strlen (key));
  put (out, (OxPiece) U32 (type));
}

static void
put_array (GByteArray *out, const char *key, guint32 type, gsize n)
{
  put_key (out, key, GGUF_ARRAY);
  put (out, (OxPiece) U32 (type));
  put (out, (OxPiece) U64 (n));
}

static gboolean
is_byte_name (const char *name)
{
  return strlen (name) == 6 && g_str_has_prefix (name, "<0x") && name[5] == '>';
}

/* What llama.cpp's converter calls an added token. */
static guint32
type_of_added (const Kind *kind, yyjson_val *entry, const char *name)
{
  static const char *const visible[] = { "<|channel>",       "<channel|>",       "<|tool_call>", "<tool_call|>",
                                         "<|tool_response>", "<tool_response|>", "<|\"|>",       NULL };
  gboolean special = yyjson_is_true (yyjson_obj_get (entry, "special"));

  if (strcmp (kind->model, "gemma4") == 0)
    return g_strv_contains (visible, name)         ? TYPE_USER_DEFINED
           : special && strcmp (name, "<|video|>") ? TYPE_CONTROL
                                                   : TYPE_NORMAL;
  return special || (g_str_has_prefix (name, "<|") && g_str_has_suffix (name, "|>")) ? TYPE_CONTROL : TYPE_USER_DEFINED;
}

static void
put_merges (GByteArray *out, yyjson_val *merges)
{
  yyjson_val *merge;
  gsize i, max;

  put_array (out, "tokenizer.ggml.merges", GGUF_STRING, yyjson_arr_size (merges));
  ox_json_foreach_item (merges, i, max, merge) {
    if (yyjson_is_str (merge)) {
      put_string (out, yyjson_get_str (merge), yyjson_get_len (merge));
    } else {
      g_autofree char *both = g_strdup_printf ("%s %s", yyjson_get_str (yyjson_arr_get (merge, 0)),
                                               yyjson_get_str (yyjson_arr_get (merge, 1)));

      put_string (out, both, strlen (both));
    }
  }
}

static GByteArray *
make_gguf (const Kind *kind, yyjson_val *root)
{
  yyjson_val *model = yyjson_obj_get (root, "model"), *added = yyjson_obj_get (root, "added_tokens"), *key, *entry;
  yyjson_obj_iter iter = yyjson_obj_iter_with (yyjson_obj_get (model, "vocab"));
  g_autofree const char **names = g_new0 (const char *, kind->size);
  g_autofree guint32 *types = g_new0 (guint32, kind->size);
  GByteArray *out = g_byte_array_new ();
  const OxPiece head[] = { GGUF (3, 0, kind->pre ? 8 : 7) };
  gsize i, max;

  while ((key = yyjson_obj_iter_next (&iter))) {
    guint64 id = yyjson_get_uint (yyjson_obj_iter_get_val (key));

    g_assert_cmpuint (id, <, kind->size);
    names[id] = yyjson_get_str (key);
    types[id] = strcmp (kind->model, "gemma4") == 0 && is_byte_name (names[id]) ? TYPE_BYTE : TYPE_NORMAL;
  }
  ox_json_foreach_item (added, i, max, entry) {
    guint64 id = yyjson_get_uint (yyjson_obj_get (entry, "id"));

    g_assert_cmpuint (id, <, kind->size);
    names[id] = yyjson_get_str (yyjson_obj_get (entry, "content"));
    types[id] = type_of_added (kind, entry, names[id]);
  }

  ox_pieces_append (out, head, G_N_ELEMENTS (head));
  put_key (out, "general.architecture", GGUF_STRING);
  put_string (out, "llama", 5);
  put_key (out, "tokenizer.ggml.model", GGUF_STRING);
  put_string (out, kind->model, strlen (kind->model));
  if (kind->pre) {
    put_key (out, "tokenizer.ggml.pre", GGUF_STRING);
    put_string (out, kind->pre, strlen (kind->pre));
  }
  put_array (out, "tokenizer.ggml.tokens", GGUF_STRING, kind->size);
  for (i = 0; i < kind->size; i++) {
    g_autofree char *pad = names[i] ? NULL : g_strdup_printf ("[PAD%" G_GSIZE_FORMAT "]", i);
    const char *name = pad ? pad : names[i];

    types[i] = pad ? TYPE_UNUSED : types[i];
    put_string (out, name, strlen (name));
  }
  put_array (out, "tokenizer.ggml.token_type", GGUF_INT32, kind->size);
  for (i = 0; i < kind->size; i++)
    put (out, (OxPiece) U32 (types[i]));
  put_array (out, "tokenizer.ggml.scores", GGUF_FLOAT, kind->size);
  for (i = 0; i < kind->size; i++)
    put (out, (OxPiece) F32 (types[i] == TYPE_CONTROL ? -1000 : -(double) i));
  put_merges (out, yyjson_obj_get (model, "merges"));
  put_key (out, "tokenizer.ggml.add_bos_token", GGUF_BOOL);
  put (out, (OxPiece) U8 (kind->add_bos));
  return out;
}

static void
on_result (const OxGoldenResult *result, gpointer user_data)
{
  g_test_message ("%s: %s", result->name, result->note ? result->note : "");
}

static char *
golden_path (const char *folder, const char *name, const char *end)
{
  g_autofree char *file = g_strconcat (name, end, NULL);

  return g_build_filename (g_getenv ("OX_TEST_DATA"), "golden", folder, file, NULL);
}

static void
test_kind (gconstpointer data)
{
  const Kind *kind = data;
  g_autofree char *json_path = golden_path ("tokenizers", kind->name, ".tokenizer.json.xz");
  g_autofree char *case_path = golden_path ("tokenizer", kind->name, ".json.xz");
  g_autofree char *folder = g_dir_make_tmp ("oxinfer-test-XXXXXX", NULL);
  g_autofree char *path = g_build_filename (folder, "tokenizer.gguf", NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) bytes = ox_golden_read_file (json_path, &error);
  g_autoptr (GByteArray) gguf = NULL;
  g_autoptr (OxJson) json = NULL;
  g_autoptr (OxTokenizer) tokenizer = NULL;
  OxGoldenReport report = { .func = on_result };

  g_assert_no_error (error);
  json = ox_json_parse (g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes), json_path, &error);
  g_assert_no_error (error);
  gguf = make_gguf (kind, ox_json_get_root (json));
  g_assert_true (g_file_set_contents (path, (const char *) gguf->data, (gssize) gguf->len, &error));

  g_assert_true (ox_golden_tokenizer (case_path, path, &report, NULL, &error));
  g_assert_no_error (error);
  g_assert_cmpuint (report.n_ok, ==, 8);
  g_assert_cmpuint (report.n_over + report.n_not_computed, ==, 0);

  tokenizer = ox_tokenizer_load (path, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (ox_tokenizer_get_size (tokenizer), ==, kind->size);
  if (strcmp (kind->model, "gemma4") == 0) {
    guint32 id = (guint32) ox_tokenizer_find (tokenizer, "<|video|>");

    g_assert_true (ox_tokenizer_is_control (tokenizer, id));
  }
  g_unlink (path);
  g_rmdir (folder);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (kinds); i++) {
    g_autofree char *path =
      g_strdup_printf ("/tokenizer-gguf/%s/%s", kinds[i].name, kinds[i].pre ? kinds[i].pre : "no-pre");

    g_test_add_data_func (path, kinds + i, test_kind);
  }
  return g_test_run ();
}
