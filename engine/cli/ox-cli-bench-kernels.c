/* Matrix products at each level of instruction sets, through the operations that networks call: rounding of activations and the pool's
 * share of the time are in the figures.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-cli-bench-place.h"

#include <string.h>

/* Rows that go through a network at once, on a layer of a small model: some milliseconds. */
#define GEMM_ROWS 256
#define GEMM_INPUTS 2048
#define GEMM_OUTPUTS 2048

/* ---- Weights ---------------------------------------------------------------------------------------------------- */

typedef struct {
  const char *name;
  OxType type;
  guint n_scales;
  guint scales[2]; /* where in a block its half floats lie */
  gboolean quick;
} Format;

static const Format formats[] = {
  { "f32", OX_TYPE_F32, 0, { 0 }, TRUE },       { "f16", OX_TYPE_F16, 0, { 0 }, FALSE },
  { "bf16", OX_TYPE_BF16, 0, { 0 }, TRUE },     { "q8", OX_TYPE_Q8_0, 1, { 0 }, TRUE },
  { "q4", OX_TYPE_Q4_0, 1, { 0 }, TRUE },       { "q4_1", OX_TYPE_Q4_1, 2, { 0, 2 }, FALSE },
  { "q5_0", OX_TYPE_Q5_0, 1, { 0 }, FALSE },    { "q4_k", OX_TYPE_Q4_K, 2, { 0, 2 }, TRUE },
  { "q5_k", OX_TYPE_Q5_K, 2, { 0, 2 }, FALSE }, { "q6_k", OX_TYPE_Q6_K, 1, { 208 }, FALSE },
};

/* Weights repeat every so many blocks; where they lie in memory they do not. */
#define PATTERN_BLOCKS 1024

typedef struct {
  gsize bytes;
  guint8 *data;
} Pattern;

static void
pattern_free (gpointer data)
{
  Pattern *pattern = data;

  g_free (pattern->data);
  g_free (pattern);
}

/* Random bytes, but numbers that stay between 1/32 and 1/8: nothing that is slow or infinite. */
static Pattern *
make_pattern (const Format *format)
{
  const OxTypeInfo *info = ox_type_info (format->type);
  Pattern *pattern = g_new0 (Pattern, 1);
  g_autoptr (GRand) random = g_rand_new_with_seed (1);

  pattern->bytes = (gsize) info->block_bytes * PATTERN_BLOCKS;
  pattern->data = g_malloc (pattern->bytes);
  for (gsize i = 0; i < pattern->bytes; i++)
    pattern->data[i] = (guint8) (g_rand_int (random) >> 24);
  for (gsize i = 0; i < PATTERN_BLOCKS; i++) {
    guint8 *block = pattern->data + i * info->block_bytes;

    if (format->n_scales == 0)
      block[info->block_bytes - 1] = (guint8) ((block[0] & 0x80) | (format->type == OX_TYPE_F16 ? 0x2c : 0x3d));
    for (guint s = 0; s < format->n_scales; s++)
      block[format->scales[s] + 1] = 0x2c;
  }
  return pattern;
}

static void
fill (guint64 offset, guint8 *buffer, gsize len, gpointer user_data)
{
  const Pattern *pattern = user_data;

  while (len > 0) {
    gsize begin = (gsize) (offset % pattern->bytes), n = MIN (len, pattern->bytes - begin);

    memcpy (buffer, pattern->data + begin, n);
    buffer += n;
    offset += n;
    len -= n;
  }
}

static OxMatrix *
load_matrix (OxBenchPlace *place, const Format *format, gsize rows, gsize cols, GError **error)
{
  guint64 row_bytes = 0;
  OxTensorInfo tensor = { .name = format->name, .type = format->type, .n_dims = 2, .dims = { rows, cols } };
  g_autoptr (OxFile) file = NULL;

  ox_type_row_bytes (format->type, cols, &row_bytes);
  tensor.n_elements = (guint64) rows * cols;
  tensor.n_bytes = rows * row_bytes;
  file = ox_file_new_generated (tensor.n_bytes, fill, make_pattern (format), pattern_free, "weights");
  tensor.file = file;
  return place->ops->matrix_load (place->ops, &tensor, NULL, OX_MATRIX_LINEAR, NULL, NULL, error);
}

/* ---- Products --------------------------------------------------------------------------------------------------- */

typedef struct {
  OxOps *ops;
  OxMatrix *w;
  OxTensor x, y;
} Product;

static void
run_product (gpointer data)
{
  Product *product = data;

  product->ops->begin (product->ops, NULL);
  product->ops->linear (product->ops, &product->x, 1, &product->w, (OxTensor *[]) { &product->y });
  product->ops->finish (product->ops, NULL);
}

/* Seconds of the best product of @m rows with @w, whose limits are @what. 0 with an error. */
static double
time_product (OxBenchPlace *place, OxMatrix *w, guint m, guint what, GError **error)
{
  Product product = { .ops = place->ops, .w = w };
  double seconds = 0;

  if (place->ops->tensor_init (place->ops, &product.x, m, (guint) w->packed.cols, error)) {
    if (place->ops->tensor_init (place->ops, &product.y, m, (guint) w->packed.rows, error)) {
      ox_bench_fill (&product.x);
      seconds = ox_bench_place_best_of (place, run_product, &product, what);
      place->ops->tensor_clear (place->ops, &product.y);
    }
    place->ops->tensor_clear (place->ops, &product.x);
  }
  return seconds;
}

/* Many rows: arithmetic is the limit. */
static gboolean
bench_gemm (OxBenchPlace *place, const Format *format, GError **error)
{
  g_autofree char *name = g_strconcat ("gemm/", format->name, NULL);
  OxMatrix *w;
  OxPeakKind kind;
  OxBenchWork work = { 0 };
  double seconds;

  if (!ox_bench_wants (place->bench, name))
    return TRUE;
  w = load_matrix (place, format, GEMM_OUTPUTS, GEMM_INPUTS, error);
  if (w == NULL)
    return FALSE;
  kind = ox_bench_kind (&w->packed);
  seconds = time_product (place, w, GEMM_ROWS, 1u << kind, error);
  place->ops->matrix_free (place->ops, w);
  work.operations[kind] = 1e9;
  if (seconds > 0)
    ox_bench_place_add (place, name, "GOPS", 2.0 * GEMM_ROWS * GEMM_INPUTS * GEMM_OUTPUTS / seconds * 1e-9, &work);
  return seconds > 0;
}

/* One row: reading the weights is the limit. They are far more than the caches hold. */
static gboolean
bench_matvec (OxBenchPlace *place, const Format *format, GError **error)
{
  g_autofree char *name = g_strconcat ("matvec/", format->name, NULL);
  const OxLinearKernel *kernel =
    ox_linear_kernel (&place->kernels, format->type, OX_PRECISION_FAST, GEMM_OUTPUTS, GEMM_INPUTS);
  OxBenchWork work = { .bytes = 1e9 };
  size_t sample = 0, bytes = 0, rows;
  OxMatrix *w;
  double seconds;

  if (!ox_bench_wants (place->bench, name))
    return TRUE;
  kernel->packed_bytes (format->type, GEMM_OUTPUTS, GEMM_INPUTS, &sample);
  rows = MAX (place->read_bytes / MAX (sample, 1), 1) * GEMM_OUTPUTS;
  kernel->packed_bytes (format->type, rows, GEMM_INPUTS, &bytes);
  w = load_matrix (place, format, rows, GEMM_INPUTS, error);
  if (w == NULL)
    return FALSE;
  seconds = time_product (place, w, 1, OX_BENCH_READ, error);
  place->ops->matrix_free (place->ops, w);
  if (seconds > 0)
    ox_bench_place_add (place, name, "GB/s", (double) bytes / seconds * 1e-9, &work);
  return seconds > 0;
}

gboolean
ox_bench_products (OxBenchPlace *place, GError **error)
{
  for (gsize i = 0; i < G_N_ELEMENTS (formats) && ox_bench_goes_on (place->bench); i++) {
    if (place->brief && !formats[i].quick)
      continue;
    if (!bench_gemm (place, &formats[i], error) || !bench_matvec (place, &formats[i], error))
      return FALSE;
  }
  return TRUE;
}
