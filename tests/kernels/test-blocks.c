/* Decoding of GGUF blocks against the values of the reference implementation (tests/golden/gguf/blocks.safetensors).
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "kernel-test.h"

#include <math.h>
#include <string.h>
#include <yyjson.h>

typedef struct {
  char *contents;
  size_t length;
  yyjson_doc *header;
  const char *data;
  size_t data_bytes;
} Golden;

static void
golden_open (Golden *golden)
{
  const char *folder = g_getenv ("OX_TEST_DATA");
  g_autofree char *path =
    g_build_filename (folder != NULL ? folder : ".", "golden", "gguf", "blocks.safetensors", NULL);
  g_autoptr (GError) error = NULL;
  uint64_t header_bytes;

  g_file_get_contents (path, &golden->contents, &golden->length, &error);
  g_assert_no_error (error);
  memcpy (&header_bytes, golden->contents, 8);
  g_assert_cmpuint (GUINT64_FROM_LE (header_bytes), <, golden->length - 8);
  golden->header = yyjson_read (golden->contents + 8, header_bytes, 0);
  g_assert_nonnull (golden->header);
  golden->data = golden->contents + 8 + header_bytes;
  golden->data_bytes = golden->length - 8 - header_bytes;
}

static void
golden_close (Golden *golden)
{
  yyjson_doc_free (golden->header);
  g_free (golden->contents);
}

static const void *
golden_tensor (const Golden *golden, const char *type, const char *suffix, size_t *bytes)
{
  g_autofree char *name = g_strdup_printf ("%s.%s", type, suffix);
  yyjson_val *tensor = yyjson_obj_get (yyjson_doc_get_root (golden->header), name);
  yyjson_val *offsets = yyjson_obj_get (tensor, "data_offsets");
  uint64_t begin = yyjson_get_uint (yyjson_arr_get (offsets, 0)), end = yyjson_get_uint (yyjson_arr_get (offsets, 1));

  if (tensor == NULL)
    return NULL;
  g_assert_cmpuint (begin, <=, end);
  g_assert_cmpuint (end, <=, golden->data_bytes);
  *bytes = end - begin;
  return golden->data + begin;
}

/* case.json: relative 1e-6 or absolute 1e-30; signed zeros may differ. */
static void
compare (const char *level, const char *type, const char *what, const float *got, const float *expected, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    float e;
    memcpy (&e, expected + i, sizeof e);
    if (isnan (e) ? isnan (got[i]) : got[i] == e || fabsf (got[i] - e) <= fmaxf (1e-6f * fabsf (e), 1e-30f))
      continue;
    g_error ("%s %s %s: element %zu is %.9g, expected %.9g", level, type, what, i, got[i], e);
  }
}

static void
test_type (gconstpointer data)
{
  const OxTypeInfo *info = data;
  const char *const sets[][2] = { { "random_raw", "random_f32" }, { "edge_raw", "edge_f32" } };
  size_t n_levels;
  const KernelLevel *levels = kernel_levels (&n_levels);
  Golden golden;

  golden_open (&golden);
  for (size_t s = 0; s < G_N_ELEMENTS (sets); s++) {
    size_t raw_bytes = 0, value_bytes = 0;
    const void *raw = golden_tensor (&golden, info->name, sets[s][0], &raw_bytes);
    const float *values = golden_tensor (&golden, info->name, sets[s][1], &value_bytes);
    size_t n = value_bytes / sizeof (float);

    g_assert_nonnull (raw);
    g_assert_nonnull (values);
    g_assert_cmpuint (n, >, 0);
    g_assert_cmpuint (n / info->block_elements * info->block_bytes, ==, raw_bytes);
    for (size_t l = 0; l < n_levels; l++) {
      float *got = guarded_new (value_bytes, sizeof (float));
      void *source = guarded_new (raw_bytes, 1);

      memcpy (source, raw, raw_bytes);
      levels[l].kernels.dequantize (info->type, source, got, n);
      compare (levels[l].name, info->name, sets[s][0], got, values, n);
      guarded_free (got);
      guarded_free (source);
    }
  }
  golden_close (&golden);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  for (size_t t = 0; t < kernel_n_types; t++) {
    const OxTypeInfo *info = ox_type_info (kernel_types[t]);
    g_autofree char *path = g_strdup_printf ("/blocks/%s", info->name);

    /* The file has no plain floats. */
    if (info->type != OX_TYPE_F32)
      g_test_add_data_func (path, info, test_type);
  }
  return g_test_run ();
}
