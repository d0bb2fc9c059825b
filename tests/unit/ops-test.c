/* What tests of the operations share.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ops-test.h"

#include <math.h>
#include <string.h>

static const guint32 levels[] = {
  0,
  OX_CPU_AVX2,
  OX_CPU_ALL,
};

static OxPool *pool;

/* ---- Weights in memory ---- */

float
random_float (GRand *rand)
{
  return (float) g_rand_double_range (rand, -1, 1);
}

float *
random_floats (GRand *rand, gsize n)
{
  float *values = g_new (float, n);

  for (gsize i = 0; i < n; i++)
    values[i] = random_float (rand);
  return values;
}

void
toy_init (Toy *toy)
{
  toy->header = g_string_new ("{");
  toy->data = g_byte_array_new ();
  toy->weights = NULL;
}

/* @rows 0: a vector. */
void
toy_add (Toy *toy, const char *name, guint rows, guint cols, const float *values)
{
  guint begin = toy->data->len;
  g_autofree char *shape = rows > 0 ? g_strdup_printf ("%u,%u", rows, cols) : g_strdup_printf ("%u", cols);

  g_byte_array_append (toy->data, (const guint8 *) values, (guint) (MAX (rows, 1) * cols * sizeof (float)));
  g_string_append_printf (toy->header, "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%s],\"data_offsets\":[%u,%u]}",
                          toy->header->len > 1 ? "," : "", name, shape, begin, toy->data->len);
}

void
toy_open (Toy *toy)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (OxFile) file = NULL;
  g_autoptr (GBytes) bytes = NULL;
  GByteArray *content = g_byte_array_new ();
  guint64 len;

  g_string_append_c (toy->header, '}');
  len = GUINT64_TO_LE ((guint64) toy->header->len);
  g_byte_array_append (content, (const guint8 *) &len, sizeof len);
  g_byte_array_append (content, (const guint8 *) toy->header->str, (guint) toy->header->len);
  g_byte_array_append (content, toy->data->data, toy->data->len);
  bytes = g_byte_array_free_to_bytes (content);
  file = ox_file_new_for_bytes (bytes, "toy");
  toy->weights = ox_weights_open_safetensors (file, &error);
  g_assert_no_error (error);
}

void
toy_clear (Toy *toy)
{
  g_clear_pointer (&toy->weights, ox_weights_free);
  g_string_free (toy->header, TRUE);
  g_byte_array_unref (toy->data);
}

OxMatrix *
toy_matrix (Toy *toy, OxOps *ops, const char *name)
{
  g_autoptr (GError) error = NULL;
  OxMatrix *matrix =
    ops->matrix_load (ops, ox_weights_find (toy->weights, name), NULL, OX_MATRIX_LINEAR, NULL, NULL, &error);

  g_assert_no_error (error);
  return matrix;
}

OxVector *
toy_vector (Toy *toy, OxOps *ops, const char *name)
{
  g_autoptr (GError) error = NULL;
  OxVector *vector = ops->vector_load (ops, ox_weights_find (toy->weights, name), OX_VECTOR_AS_STORED, &error);

  g_assert_no_error (error);
  return vector;
}

/* ---- A table and its tensors ---- */

OxOps *
ops_new (guint level, OxPrecision precision, OxQuantize quantize)
{
  static OxKernels kernels[G_N_ELEMENTS (levels)];
  OxOpsCpuOptions options = { .kernels = &kernels[level], .pool = pool, .precision = precision, .quantize = quantize };

  ox_kernels_init (&kernels[level], levels[level]);
  return ox_ops_cpu_new (&options);
}

OxTensor
tensor_new (OxOps *ops, guint rows, guint cols, const float *values)
{
  g_autoptr (GError) error = NULL;
  OxTensor t;

  ops->tensor_init (ops, &t, rows, cols, &error);
  g_assert_no_error (error);
  if (values != NULL)
    memcpy (t.data, values, (gsize) rows * cols * sizeof (float));
  return t;
}

void
finish (OxOps *ops)
{
  g_autoptr (GError) error = NULL;

  ops->finish (ops, &error);
  g_assert_no_error (error);
}

void
assert_close (const char *what, gsize i, double got, double expected, double tolerance)
{
  if (!(fabs (got - expected) <= tolerance))
    g_error ("%s: element %zu is %.9g, expected %.9g ± %.3g", what, i, got, expected, tolerance);
}

/* Ways to cut rows into calls: the i-th call takes cuts[way][i % 3]; 0: all that is left. */
static const guint cuts[][3] = { { 0, 0, 0 }, { 1, 1, 1 }, { 2, 1, 5 }, { 17, 1, 3 } };

guint
next_cut (guint way, guint call, guint left)
{
  guint n = cuts[way][call % 3];

  return n == 0 ? left : MIN (n, left);
}

/* ---- Cancelling ---- */

/* Kernels that cancel when they run for the second time, and count how often they run after that. */
static GCancellable *cancellable;
static gint kernel_calls;
static OxKernels plain;

static void
count_call (void)
{
  if (g_atomic_int_add (&kernel_calls, 1) == 1)
    g_cancellable_cancel (cancellable);
}

static void
counting_delta_rule (const OxDeltaRule *d)
{
  count_call ();
  plain.delta_rule (d);
}

static void
counting_conv_silu (float *y, const float *const *x, const float *w, size_t w_stride, size_t taps, size_t n)
{
  count_call ();
  plain.conv_silu (y, x, w, w_stride, taps, n);
}

static void
counting_add_scaled (float *y, const float *x, float s, size_t n)
{
  count_call ();
  plain.add_scaled (y, x, s, n);
}

void
cancel_begin (OxOps *ops)
{
  cancellable = g_cancellable_new ();
  g_atomic_int_set (&kernel_calls, 0);
  ops->begin (ops, cancellable);
}

/* Each thread of the pool may have been in a call when the cancel came. */
void
cancel_end (OxOps *ops, guint all_calls)
{
  g_autoptr (GError) error = NULL;

  g_assert_false (ops->finish (ops, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_assert_cmpint (g_atomic_int_get (&kernel_calls), <=, 2 + (gint) ox_pool_threads (pool));
  g_assert_cmpuint (all_calls, >, 2 + ox_pool_threads (pool));
  g_clear_object (&cancellable);
}

OxOps *
cancel_ops_new (void)
{
  static OxKernels counting;
  OxOpsCpuOptions options = { .kernels = &counting, .pool = pool, .precision = OX_PRECISION_EXACT };

  ox_kernels_init (&plain, OX_CPU_ALL);
  counting = plain;
  counting.delta_rule = counting_delta_rule;
  counting.conv_silu = counting_conv_silu;
  counting.add_scaled = counting_add_scaled;
  return ox_ops_cpu_new (&options);
}

/* ---- Running ---- */

void
ops_test_add (const OpsTest *tests, gsize n)
{
  for (guint l = 0; l < G_N_ELEMENTS (levels); l++)
    for (gsize t = 0; t < n; t++) {
      g_autofree char *path =
        g_strdup_printf ("/ops-cpu/%s/%s", ox_cpu_level_name (ox_cpu_flags () & levels[l]), tests[t].name);
      /* A processor may have no more than the level before. */
      if (l == 0 || (ox_cpu_flags () & levels[l]) != (ox_cpu_flags () & levels[l - 1]))
        g_test_add_data_func (path, GUINT_TO_POINTER (l), tests[t].func);
    }
}

void
ops_test_begin (void)
{
  pool = ox_pool_new (3);
}

int
ops_test_run (void)
{
  int result = g_test_run ();

  ox_pool_free (pool);
  return result;
}
