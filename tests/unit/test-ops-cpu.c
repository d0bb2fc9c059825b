/* The operations of the CPU table against plain loops in float64, at every instruction set; rows cut into calls in every way, and
 * state taken back, to the bit; cancelling in the middle.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-ops.h"

#include <math.h>
#include <string.h>

/* What float32 sums of some hundred products of normal size may be off by. */
#define TOLERANCE 2e-5

static const guint32 levels[] = {
  0,
  OX_CPU_AVX2,
  OX_CPU_ALL,
};

static OxPool *pool;

/* ---- Weights in memory ---- */

typedef struct {
  GString *header;
  GByteArray *data;
  OxWeights *weights;
} Toy;

static float
random_float (GRand *rand)
{
  return (float) g_rand_double_range (rand, -1, 1);
}

static float *
random_floats (GRand *rand, gsize n)
{
  float *values = g_new (float, n);

  for (gsize i = 0; i < n; i++)
    values[i] = random_float (rand);
  return values;
}

static void
toy_init (Toy *toy)
{
  toy->header = g_string_new ("{");
  toy->data = g_byte_array_new ();
  toy->weights = NULL;
}

/* @rows 0: a vector. */
static void
toy_add (Toy *toy, const char *name, guint rows, guint cols, const float *values)
{
  guint begin = toy->data->len;
  g_autofree char *shape = rows > 0 ? g_strdup_printf ("%u,%u", rows, cols) : g_strdup_printf ("%u", cols);

  g_byte_array_append (toy->data, (const guint8 *) values, (guint) (MAX (rows, 1) * cols * sizeof (float)));
  g_string_append_printf (toy->header, "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%s],\"data_offsets\":[%u,%u]}",
                          toy->header->len > 1 ? "," : "", name, shape, begin, toy->data->len);
}

static void
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

static void
toy_clear (Toy *toy)
{
  g_clear_pointer (&toy->weights, ox_weights_free);
  g_string_free (toy->header, TRUE);
  g_byte_array_unref (toy->data);
}

static OxMatrix *
toy_matrix (Toy *toy, OxOps *ops, const char *name)
{
  g_autoptr (GError) error = NULL;
  OxMatrix *matrix =
    ops->matrix_load (ops, ox_weights_find (toy->weights, name), NULL, OX_MATRIX_LINEAR, NULL, NULL, &error);

  g_assert_no_error (error);
  return matrix;
}

static OxVector *
toy_vector (Toy *toy, OxOps *ops, const char *name)
{
  g_autoptr (GError) error = NULL;
  OxVector *vector = ops->vector_load (ops, ox_weights_find (toy->weights, name), OX_VECTOR_AS_STORED, &error);

  g_assert_no_error (error);
  return vector;
}

/* ---- A table and its tensors ---- */

static OxOps *
ops_new (guint level, OxPrecision precision, OxQuantize quantize)
{
  static OxKernels kernels[G_N_ELEMENTS (levels)];
  OxOpsCpuOptions options = { .kernels = &kernels[level], .pool = pool, .precision = precision, .quantize = quantize };

  ox_kernels_init (&kernels[level], levels[level]);
  return ox_ops_cpu_new (&options);
}

static OxTensor
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

static void
finish (OxOps *ops)
{
  g_autoptr (GError) error = NULL;

  ops->finish (ops, &error);
  g_assert_no_error (error);
}

static void
assert_close (const char *what, gsize i, double got, double expected, double tolerance)
{
  if (!(fabs (got - expected) <= tolerance))
    g_error ("%s: element %zu is %.9g, expected %.9g ± %.3g", what, i, got, expected, tolerance);
}

/* Ways to cut rows into calls: the i-th call takes cuts[way][i % 3]; 0: all that is left. */
static const guint cuts[][3] = { { 0, 0, 0 }, { 1, 1, 1 }, { 2, 1, 5 }, { 17, 1, 3 } };

static guint
next_cut (guint way, guint call, guint left)
{
  guint n = cuts[way][call % 3];

  return n == 0 ? left : MIN (n, left);
}

/* ---- Elements ---- */

static void
test_elements (gconstpointer data)
{
  OxOps *ops = ops_new (GPOINTER_TO_UINT (data), OX_PRECISION_EXACT, OX_QUANTIZE_NONE);
  g_autoptr (GRand) rand = g_rand_new_with_seed (1);

  for (guint size = 0; size < 2; size++) {
    /* Below and above what is shared out. */
    guint rows = size == 0 ? 3 : 7, cols = size == 0 ? 37 : 5003, wide = cols + 91;
    gsize n = (gsize) rows * cols;
    g_autofree float *a = random_floats (rand, n), *b = random_floats (rand, (gsize) rows * wide), *copy = NULL;
    OxTensor x = tensor_new (ops, rows, cols, a), up = tensor_new (ops, rows, wide, b);
    OxTensor y = tensor_new (ops, rows, cols, NULL), both = tensor_new (ops, rows, cols + wide, NULL);
    float *out = y.data;

    for (gsize i = 0; i < n; i++)
      ((float *) x.data)[i] = a[i] *= 9;
    ops->begin (ops, NULL);
    ops->gated_columns (ops, &y, &x, &up, 50, OX_GATE_SIGMOID);
    for (gsize i = 0; i < n; i++)
      assert_close ("sigmoid, columns", i, out[i], b[i / cols * wide + 50 + i % cols] / (1 + exp (-(double) a[i])),
                    1e-6);
    ops->gated_columns (ops, &y, &x, &up, 91, OX_GATE_SILU);
    for (gsize i = 0; i < n; i++)
      assert_close ("silu, columns", i, out[i], b[i / cols * wide + 91 + i % cols] * a[i] / (1 + exp (-(double) a[i])),
                    1e-5);
    ops->gated (ops, &y, &x, &x, OX_GATE_SIGMOID);
    for (gsize i = 0; i < n; i++)
      assert_close ("sigmoid", i, out[i], a[i] / (1 + exp (-(double) a[i])), 1e-5);
    ops->concat (ops, &both, &x, &up);
    for (guint i = 0; i < rows; i++) {
      const float *row = (const float *) both.data + (gsize) i * both.cols;
      g_assert_cmpmem (row, cols * sizeof (float), a + (gsize) i * cols, cols * sizeof (float));
      g_assert_cmpmem (row + cols, wide * sizeof (float), b + (gsize) i * wide, wide * sizeof (float));
    }
    ops->copy (ops, &y, &x);
    g_assert_cmpmem (out, n * sizeof (float), a, n * sizeof (float));
    ops->scale (ops, &y, 0.75f);
    ops->add (ops, &y, &x);
    for (gsize i = 0; i < n; i++)
      g_assert_cmpfloat (out[i], ==, a[i] * 0.75f + a[i]);
    ops->softcap (ops, &y, 3);
    for (gsize i = 0; i < n; i++)
      assert_close ("softcap", i, out[i], 3 * tanh ((double) (a[i] * 0.75f + a[i]) / 3), 1e-6);
    /* A view changes its rows and no others. */
    copy = g_memdup2 (out, n * sizeof (float));
    {
      OxTensor middle = ox_tensor_view (&y, 1, 1);
      ops->scale (ops, &middle, 2);
    }
    for (gsize i = 0; i < n; i++)
      g_assert_cmpfloat (out[i], ==, i / cols == 1 ? copy[i] * 2 : copy[i]);
    finish (ops);
    ops->tensor_clear (ops, &x);
    ops->tensor_clear (ops, &up);
    ops->tensor_clear (ops, &y);
    ops->tensor_clear (ops, &both);
  }
  ops->free (ops);
}

/* ---- Linear attention ---- */

static const OxDeltaShape shapes[] = {
  { 2, 4, 16, 40, 4, FALSE }, /* a strip and a part of one */
  { 2, 4, 16, 40, 4, TRUE },  { 1, 3, 7, 5, 2, FALSE },
  { 3, 3, 33, 32, 1, FALSE }, { 4, 8, 128, 128, 4, FALSE }, /* shared out */
};

/* Everything of a layer but its projections: what comes in, and what should come out. */
typedef struct {
  OxDeltaShape shape;
  guint rows, channels, values;
  Toy toy;
  OxOps *ops;
  OxVector *conv_w, *a_scale, *dt_bias;
  float *x, *b, *a; /* [rows, channels], [rows, value_heads] */
  double *conv, *y; /* expected */
  float *w, *scale, *bias;
} Layer;

static double
sigmoid (double x)
{
  return 1 / (1 + exp (-x));
}

static void
normalize (double *y, const double *x, guint n, double factor)
{
  double sum = 1e-6;

  for (guint i = 0; i < n; i++)
    sum += x[i] * x[i];
  for (guint i = 0; i < n; i++)
    y[i] = x[i] / sqrt (sum) * factor;
}

static void
layer_expect (Layer *layer)
{
  const OxDeltaShape *s = &layer->shape;
  guint channels = layer->channels, keys = s->key_heads * s->key_dim, taps = s->conv_kernel;
  g_autofree double *state = g_new0 (double, (gsize) layer->values * s->key_dim);
  g_autofree double *q = g_new (double, s->key_dim), *k = g_new (double, s->key_dim);

  for (guint t = 0; t < layer->rows; t++)
    for (guint c = 0; c < channels; c++) {
      double sum = 0;
      for (guint j = 0; j < taps; j++)
        if (t + j + 1 >= taps)
          sum += (double) layer->w[c * taps + j] * layer->x[(gsize) (t + j + 1 - taps) * channels + c];
      layer->conv[(gsize) t * channels + c] = sum * sigmoid (sum);
    }
  for (guint t = 0; t < layer->rows; t++)
    for (guint h = 0; h < s->value_heads; h++) {
      guint from = s->heads_tiled ? h % s->key_heads : h / (s->value_heads / s->key_heads);
      const double *u = layer->conv + (gsize) t * channels;
      double beta = sigmoid (layer->b[t * s->value_heads + h]);
      double decay = exp (layer->scale[h] * log1p (exp ((double) layer->a[t * s->value_heads + h] + layer->bias[h])));
      double *S = state + (gsize) h * s->key_dim * s->value_dim;

      normalize (q, u + from * s->key_dim, s->key_dim, 1 / sqrt (s->key_dim));
      normalize (k, u + keys + from * s->key_dim, s->key_dim, 1);
      for (guint j = 0; j < s->value_dim; j++) {
        double recalled = 0, change, y = 0;
        for (guint i = 0; i < s->key_dim; i++)
          recalled += (S[i * s->value_dim + j] *= decay) * k[i];
        change = beta * (u[2 * keys + h * s->value_dim + j] - recalled);
        for (guint i = 0; i < s->key_dim; i++)
          y += (S[i * s->value_dim + j] += k[i] * change) * q[i];
        layer->y[(gsize) t * layer->values + h * s->value_dim + j] = y;
      }
    }
}

static void
layer_init (Layer *layer, const OxDeltaShape *shape, guint level, guint rows)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (shape->key_dim);
  guint heads = shape->value_heads;

  layer->shape = *shape;
  layer->rows = rows;
  layer->channels = ox_delta_channels (shape);
  layer->values = heads * shape->value_dim;
  layer->ops = ops_new (level, OX_PRECISION_EXACT, OX_QUANTIZE_NONE);
  layer->w = random_floats (rand, (gsize) layer->channels * shape->conv_kernel);
  layer->scale = random_floats (rand, heads);
  layer->bias = random_floats (rand, heads);
  layer->x = random_floats (rand, (gsize) rows * layer->channels);
  layer->b = random_floats (rand, (gsize) rows * heads);
  layer->a = random_floats (rand, (gsize) rows * heads);
  layer->conv = g_new (double, (gsize) rows * layer->channels);
  layer->y = g_new (double, (gsize) rows * layer->values);
  for (guint i = 0; i < heads; i++)
    layer->scale[i] = -fabsf (layer->scale[i]) * 0.3f;
  for (guint i = 0; i < rows * heads; i++) {
    layer->b[i] *= 4;
    /* Far into both ends of softplus, too. */
    layer->a[i] *= i % 13 == 0 ? 60.0f : 3.0f;
  }
  toy_init (&layer->toy);
  toy_add (&layer->toy, "conv", layer->channels, shape->conv_kernel, layer->w);
  toy_add (&layer->toy, "scale", 0, heads, layer->scale);
  toy_add (&layer->toy, "bias", 0, heads, layer->bias);
  toy_open (&layer->toy);
  layer->conv_w = toy_vector (&layer->toy, layer->ops, "conv");
  layer->a_scale = toy_vector (&layer->toy, layer->ops, "scale");
  layer->dt_bias = toy_vector (&layer->toy, layer->ops, "bias");
  layer_expect (layer);
}

static void
layer_clear (Layer *layer)
{
  OxOps *ops = layer->ops;

  ops->vector_free (ops, layer->conv_w);
  ops->vector_free (ops, layer->a_scale);
  ops->vector_free (ops, layer->dt_bias);
  ops->free (ops);
  toy_clear (&layer->toy);
  g_free (layer->w);
  g_free (layer->scale);
  g_free (layer->bias);
  g_free (layer->x);
  g_free (layer->b);
  g_free (layer->a);
  g_free (layer->conv);
  g_free (layer->y);
}

static OxRecurrent *
recurrent_new (Layer *layer)
{
  g_autoptr (GError) error = NULL;
  OxRecurrent *recurrent = layer->ops->recurrent_new (layer->ops, &layer->shape, &error);

  g_assert_no_error (error);
  return recurrent;
}

static void
recurrent_mark (Layer *layer, OxRecurrent *recurrent, guint max_rows)
{
  g_autoptr (GError) error = NULL;

  layer->ops->recurrent_mark (layer->ops, recurrent, max_rows, &error);
  g_assert_no_error (error);
}

/* Rows [first, first + n) through both operations, in one call each. @conv and @y, may be NULL: the whole layer's. */
static void
layer_run (Layer *layer, OxRecurrent *recurrent, guint first, guint n, float *conv, float *y)
{
  OxOps *ops = layer->ops;
  guint channels = layer->channels, heads = layer->shape.value_heads;
  OxTensor x = tensor_new (ops, n, channels, layer->x + (gsize) first * channels);
  OxTensor u = tensor_new (ops, n, channels, NULL), out = tensor_new (ops, n, layer->values, NULL);
  OxTensor b = tensor_new (ops, n, heads, layer->b + (gsize) first * heads);
  OxTensor a = tensor_new (ops, n, heads, layer->a + (gsize) first * heads);

  ops->begin (ops, NULL);
  ops->causal_conv (ops, &u, &x, layer->conv_w, recurrent);
  ops->delta_rule (ops, &out, &u, &b, &a, layer->a_scale, layer->dt_bias, recurrent);
  if (conv != NULL)
    ops->read (ops, &u, conv + (gsize) first * channels);
  if (y != NULL)
    ops->read (ops, &out, y + (gsize) first * layer->values);
  finish (ops);
  ops->tensor_clear (ops, &x);
  ops->tensor_clear (ops, &u);
  ops->tensor_clear (ops, &out);
  ops->tensor_clear (ops, &b);
  ops->tensor_clear (ops, &a);
}

static void
layer_run_cut (Layer *layer, OxRecurrent *recurrent, guint first, guint n, guint way, float *conv, float *y)
{
  for (guint call = 0, done = 0; done < n; call++) {
    guint take = next_cut (way, call, n - done);

    layer_run (layer, recurrent, first + done, take, conv, y);
    done += take;
  }
}

static guint8 *
recurrent_bytes (Layer *layer, OxRecurrent *recurrent)
{
  guint8 *bytes = g_malloc (ox_recurrent_bytes (&layer->shape));

  layer->ops->recurrent_save (layer->ops, recurrent, bytes);
  return bytes;
}

static void
assert_same_state (Layer *layer, OxRecurrent *a, OxRecurrent *b)
{
  g_autofree guint8 *x = recurrent_bytes (layer, a), *y = recurrent_bytes (layer, b);

  g_assert_cmpmem (x, ox_recurrent_bytes (&layer->shape), y, ox_recurrent_bytes (&layer->shape));
}

static void
test_recurrent (gconstpointer data)
{
  for (guint s = 0; s < G_N_ELEMENTS (shapes); s++) {
    Layer layer;
    g_autofree float *whole_conv = NULL, *whole = NULL, *conv = NULL, *y = NULL;
    gsize n_conv, n_y;
    OxRecurrent *one, *other;

    layer_init (&layer, &shapes[s], GPOINTER_TO_UINT (data), 75);
    n_conv = (gsize) layer.rows * layer.channels;
    n_y = (gsize) layer.rows * layer.values;
    whole_conv = g_new (float, n_conv);
    conv = g_new (float, n_conv);
    whole = g_new (float, n_y);
    y = g_new (float, n_y);
    one = recurrent_new (&layer);
    other = recurrent_new (&layer);
    layer_run (&layer, one, 0, layer.rows, whole_conv, whole);
    for (gsize i = 0; i < n_conv; i++)
      assert_close ("causal_conv", i, whole_conv[i], layer.conv[i], 2e-6);
    for (gsize i = 0; i < n_y; i++)
      assert_close ("delta_rule", i, whole[i], layer.y[i], TOLERANCE);
    for (guint way = 1; way < G_N_ELEMENTS (cuts); way++) {
      layer.ops->recurrent_reset (layer.ops, other);
      layer_run_cut (&layer, other, 0, layer.rows, way, conv, y);
      g_assert_cmpmem (conv, n_conv * sizeof (float), whole_conv, n_conv * sizeof (float));
      g_assert_cmpmem (y, n_y * sizeof (float), whole, n_y * sizeof (float));
      assert_same_state (&layer, one, other);
    }
    layer.ops->recurrent_free (layer.ops, one);
    layer.ops->recurrent_free (layer.ops, other);
    layer_clear (&layer);
  }
}

static void
test_save (gconstpointer data)
{
  Layer layer;
  g_autofree guint8 *saved = NULL;
  g_autofree float *expected = NULL, *y = NULL;
  OxRecurrent *one, *other;
  gsize rest;

  layer_init (&layer, &shapes[0], GPOINTER_TO_UINT (data), 20);
  expected = g_new0 (float, layer.rows *layer.values);
  y = g_new0 (float, layer.rows *layer.values);
  rest = 9 * layer.values * sizeof (float);
  one = recurrent_new (&layer);
  other = recurrent_new (&layer);
  layer_run (&layer, one, 0, 11, NULL, NULL);
  saved = recurrent_bytes (&layer, one);
  layer_run (&layer, one, 11, 9, NULL, expected);
  layer_run (&layer, other, 3, 9, NULL, NULL);
  layer.ops->recurrent_restore (layer.ops, other, saved);
  layer_run (&layer, other, 11, 9, NULL, y);
  g_assert_cmpmem (y + 11 * layer.values, rest, expected + 11 * layer.values, rest);
  assert_same_state (&layer, one, other);
  layer.ops->recurrent_free (layer.ops, one);
  layer.ops->recurrent_free (layer.ops, other);
  layer_clear (&layer);
}

/* After @before rows, a mark, and @tried rows cut some way, going back to @kept of them must be as if only those had come. */
static void
check_rewind (Layer *layer, guint before, guint tried, guint kept, guint max_rows, guint way)
{
  g_autofree float *expected = g_new0 (float, layer->rows * layer->values),
                   *y = g_new0 (float, layer->rows * layer->values);
  OxRecurrent *straight = recurrent_new (layer), *tries = recurrent_new (layer);

  layer_run_cut (layer, straight, 0, before + kept, 3, NULL, expected);
  layer_run (layer, tries, 0, before, NULL, y);
  /* A mark that was forgotten, and one that is set anew, leave no trace. */
  recurrent_mark (layer, tries, 1);
  recurrent_mark (layer, tries, max_rows);
  layer_run_cut (layer, tries, before, tried, way, NULL, y);
  layer->ops->recurrent_rewind (layer->ops, tries, kept);
  assert_same_state (layer, straight, tries);
  /* With no mark set there is nothing to go back to. */
  layer->ops->recurrent_rewind (layer->ops, tries, 0);
  assert_same_state (layer, straight, tries);
  layer_run (layer, straight, before + kept, 5, NULL, expected);
  recurrent_mark (layer, tries, 5);
  layer_run (layer, tries, before + kept, 5, NULL, y);
  layer->ops->recurrent_rewind (layer->ops, tries, 5);
  assert_same_state (layer, straight, tries);
  g_assert_cmpmem (y, (before + kept + 5) * layer->values * sizeof (float), expected,
                   (before + kept + 5) * layer->values * sizeof (float));
  layer->ops->recurrent_free (layer->ops, straight);
  layer->ops->recurrent_free (layer->ops, tries);
}

static void
test_rewind (gconstpointer data)
{
  for (guint s = 0; s < G_N_ELEMENTS (shapes); s++) {
    Layer layer;

    layer_init (&layer, &shapes[s], GPOINTER_TO_UINT (data), 84);
    check_rewind (&layer, 3, 76, 70, 76, 0);
    check_rewind (&layer, 3, 76, 66, 76, 3);
    for (guint way = 0; way < G_N_ELEMENTS (cuts); way++) {
      for (guint kept = 0; kept <= 8; kept++)
        check_rewind (&layer, 7, 8, kept, 8, way);
      check_rewind (&layer, 0, 3, 1, 3, way);
      check_rewind (&layer, 1, 2, 2, 16, way);
      check_rewind (&layer, 2, 0, 0, 4, way);
      /* More rows than are remembered: those that are can still be gone back to, and all of them can stay. */
      check_rewind (&layer, 5, 12, 4, 4, way);
      check_rewind (&layer, 5, 12, 12, 4, way);
    }
    layer_clear (&layer);
  }
}

static void
test_mark_forgotten (gconstpointer data)
{
  Layer layer;
  OxRecurrent *one, *other;
  g_autofree guint8 *saved = NULL;

  layer_init (&layer, &shapes[0], GPOINTER_TO_UINT (data), 12);
  one = recurrent_new (&layer);
  other = recurrent_new (&layer);
  layer_run (&layer, one, 0, 4, NULL, NULL);
  saved = recurrent_bytes (&layer, one);
  recurrent_mark (&layer, one, 4);
  layer_run (&layer, one, 4, 4, NULL, NULL);
  layer.ops->recurrent_restore (layer.ops, one, saved);
  layer.ops->recurrent_rewind (layer.ops, one, 2);
  layer_run (&layer, other, 0, 4, NULL, NULL);
  assert_same_state (&layer, one, other);
  recurrent_mark (&layer, one, 4);
  layer_run (&layer, one, 4, 4, NULL, NULL);
  layer.ops->recurrent_reset (layer.ops, one);
  layer.ops->recurrent_rewind (layer.ops, one, 2);
  layer.ops->recurrent_reset (layer.ops, other);
  assert_same_state (&layer, one, other);
  layer.ops->recurrent_free (layer.ops, one);
  layer.ops->recurrent_free (layer.ops, other);
  layer_clear (&layer);
}

static void
test_bad_shapes (void)
{
  static const OxDeltaShape bad[] = {
    { 0, 4, 16, 16, 4, FALSE },  { 2, 0, 16, 16, 4, FALSE },
    { 2, 3, 16, 16, 4, FALSE },  { 2, 4, 0, 16, 4, FALSE },
    { 2, 4, 16, 0, 4, FALSE },   { 2, 4, 16, 16, 0, FALSE },
    { 2, 4, 16, 16, 99, FALSE }, { 1u << 31, 1u << 31, 1u << 31, 1u << 31, 4, FALSE },
  };
  OxOps *ops = ops_new (0, OX_PRECISION_EXACT, OX_QUANTIZE_NONE);

  for (guint i = 0; i < G_N_ELEMENTS (bad); i++) {
    g_autoptr (GError) error = NULL;

    g_assert_null (ops->recurrent_new (ops, &bad[i], &error));
    g_assert_nonnull (error);
    g_assert_true (error->domain == OX_ERROR);
  }
  ops->free (ops);
}

/* ---- Mixture of experts ---- */

typedef struct {
  guint n_experts, top_k, hidden, width, rows;
  gboolean scaled;
  OxGate gate;
} MoeCase;

typedef struct {
  const MoeCase *c;
  Toy toy;
  OxOps *ops;
  OxExperts experts;
  float *gate, *up, *down, *scale; /* of all experts, one after the other */
  float *x, *router;
  double *y; /* expected */
} Moe;

static OxMatrix **
moe_matrices (Moe *moe, const char *kind)
{
  OxMatrix **matrices = g_new (OxMatrix *, moe->c->n_experts);

  for (guint e = 0; e < moe->c->n_experts; e++) {
    g_autofree char *name = g_strdup_printf ("%s%u", kind, e);
    matrices[e] = toy_matrix (&moe->toy, moe->ops, name);
  }
  return matrices;
}

static double
activate (double g, OxGate gate)
{
  if (gate == OX_GATE_GELU_TANH)
    return 0.5 * g * (1 + tanh (sqrt (2 / G_PI) * (g + 0.044715 * g * g * g)));
  return gate == OX_GATE_SILU ? g * sigmoid (g) : sigmoid (g);
}

/* Expert @e's answer to @x, times @weight, added to @y. */
static void
expect_expert (Moe *moe, guint e, const float *x, double weight, double *y)
{
  const MoeCase *c = moe->c;
  gsize at = (gsize) e * c->width * c->hidden;
  g_autofree double *h = g_new (double, c->width);

  for (guint i = 0; i < c->width; i++) {
    double gate = 0, up = 0;
    for (guint d = 0; d < c->hidden; d++) {
      gate += (double) moe->gate[at + i * c->hidden + d] * x[d];
      up += (double) moe->up[at + i * c->hidden + d] * x[d];
    }
    h[i] = activate (gate, c->gate) * up;
  }
  for (guint d = 0; d < c->hidden; d++)
    for (guint i = 0; i < c->width; i++)
      y[d] += weight * moe->down[at + d * c->width + i] * h[i];
}

static void
moe_expect (Moe *moe)
{
  const MoeCase *c = moe->c;
  g_autofree double *p = g_new (double, c->n_experts);
  g_autofree gboolean *taken = g_new (gboolean, c->n_experts);

  for (guint t = 0; t < c->rows; t++) {
    const float *router = moe->router + (gsize) t * c->n_experts;
    double all = 0, total = 0;

    for (guint e = 0; e < c->n_experts; e++) {
      all += p[e] = exp ((double) router[e]);
      taken[e] = FALSE;
    }
    for (guint k = 0; k < c->top_k; k++) {
      guint best = c->n_experts;
      for (guint e = 0; e < c->n_experts; e++)
        if (!taken[e] && (best == c->n_experts || router[e] > router[best]))
          best = e;
      taken[best] = TRUE;
      total += p[best] / all;
    }
    for (guint e = 0; e < c->n_experts; e++)
      if (taken[e])
        expect_expert (moe, e, moe->x + (gsize) t * c->hidden,
                       p[e] / all / total * (c->scaled ? (double) moe->scale[e] : 1), moe->y + (gsize) t * c->hidden);
  }
}

static void
moe_init (Moe *moe, const MoeCase *c, guint level, OxPrecision precision, OxQuantize quantize)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (c->n_experts);
  gsize size = (gsize) c->width * c->hidden;

  moe->c = c;
  moe->ops = ops_new (level, precision, quantize);
  moe->gate = random_floats (rand, c->n_experts * size);
  moe->up = random_floats (rand, c->n_experts * size);
  moe->down = random_floats (rand, c->n_experts * size);
  moe->scale = random_floats (rand, c->n_experts);
  moe->x = random_floats (rand, (gsize) c->rows * c->hidden);
  moe->router = random_floats (rand, (gsize) c->rows * c->n_experts);
  moe->y = g_new0 (double, (gsize) c->rows * c->hidden);
  /* The last expert is never chosen, and answers nothing but NaN. */
  for (gsize i = 0; i < size; i++)
    moe->gate[(c->n_experts - 1) * size + i] = moe->up[(c->n_experts - 1) * size + i] = NAN;
  for (guint t = 0; t < c->rows; t++) {
    float *router = moe->router + (gsize) t * c->n_experts;

    for (guint e = 0; e < c->n_experts; e++)
      /* Every third row has many equal scores. */
      router[e] = t % 3 == 1 ? roundf (router[e] * 1.5f) : router[e] * 4;
    router[c->n_experts - 1] = -30;
  }
  for (gsize i = 0; i < c->n_experts * size; i++) {
    moe->gate[i] /= sqrtf ((float) c->hidden) / 3;
    moe->up[i] /= sqrtf ((float) c->hidden) / 3;
    moe->down[i] /= sqrtf ((float) c->width);
  }

  toy_init (&moe->toy);
  for (guint e = 0; e < c->n_experts; e++) {
    g_autofree char *gate = g_strdup_printf ("gate%u", e), *up = g_strdup_printf ("up%u", e);
    g_autofree char *down = g_strdup_printf ("down%u", e);

    toy_add (&moe->toy, gate, c->width, c->hidden, moe->gate + e * size);
    toy_add (&moe->toy, up, c->width, c->hidden, moe->up + e * size);
    toy_add (&moe->toy, down, c->hidden, c->width, moe->down + e * size);
  }
  toy_add (&moe->toy, "scale", 0, c->n_experts, moe->scale);
  toy_open (&moe->toy);
  moe->experts = (OxExperts) {
    .n_experts = c->n_experts,
    .top_k = c->top_k,
    .gate = moe_matrices (moe, "gate"),
    .up = moe_matrices (moe, "up"),
    .down = moe_matrices (moe, "down"),
    .scale = c->scaled ? toy_vector (&moe->toy, moe->ops, "scale") : NULL,
    .gate_kind = c->gate,
    .width = c->width,
  };
  moe_expect (moe);
}

static void
moe_clear (Moe *moe)
{
  OxOps *ops = moe->ops;

  for (guint e = 0; e < moe->c->n_experts; e++) {
    ops->matrix_free (ops, moe->experts.gate[e]);
    ops->matrix_free (ops, moe->experts.up[e]);
    ops->matrix_free (ops, moe->experts.down[e]);
  }
  ops->vector_free (ops, moe->experts.scale);
  g_free (moe->experts.gate);
  g_free (moe->experts.up);
  g_free (moe->experts.down);
  ops->free (ops);
  toy_clear (&moe->toy);
  g_free (moe->gate);
  g_free (moe->up);
  g_free (moe->down);
  g_free (moe->scale);
  g_free (moe->x);
  g_free (moe->router);
  g_free (moe->y);
}

static void
moe_run (Moe *moe, guint way, float *y)
{
  const MoeCase *c = moe->c;
  OxOps *ops = moe->ops;
  OxTensor x = tensor_new (ops, c->rows, c->hidden, moe->x), out = tensor_new (ops, c->rows, c->hidden, NULL);
  OxTensor router = tensor_new (ops, c->rows, c->n_experts, moe->router);

  ops->begin (ops, NULL);
  for (guint call = 0, done = 0; done < c->rows; call++) {
    guint n = next_cut (way, call, c->rows - done);
    OxTensor x_part = ox_tensor_view (&x, done, n), out_part = ox_tensor_view (&out, done, n);
    OxTensor router_part = ox_tensor_view (&router, done, n);

    ops->moe (ops, &out_part, &x_part, &router_part, &moe->experts);
    done += n;
  }
  ops->read (ops, &out, y);
  finish (ops);
  ops->tensor_clear (ops, &x);
  ops->tensor_clear (ops, &out);
  ops->tensor_clear (ops, &router);
}

static const MoeCase moe_cases[] = {
  { 7, 3, 64, 32, 29, TRUE, OX_GATE_GELU_TANH },
  { 5, 1, 37, 19, 8, FALSE, OX_GATE_SILU },
  { 9, 8, 300, 64, 1, TRUE, OX_GATE_GELU_TANH },
  { 4, 3, 64, 96, 230, FALSE, OX_GATE_SILU }, /* more than a batch */
};

static void
test_moe (gconstpointer data)
{
  for (guint i = 0; i < G_N_ELEMENTS (moe_cases); i++) {
    const MoeCase *c = &moe_cases[i];
    gsize n = (gsize) c->rows * c->hidden;
    g_autofree float *whole = g_new (float, n), *y = g_new (float, n);
    Moe moe;

    moe_init (&moe, c, GPOINTER_TO_UINT (data), OX_PRECISION_EXACT, OX_QUANTIZE_NONE);
    moe_run (&moe, 0, whole);
    for (gsize j = 0; j < n; j++)
      assert_close ("moe", j, whole[j], moe.y[j], TOLERANCE);
    for (guint way = 1; way < G_N_ELEMENTS (cuts); way++) {
      moe_run (&moe, way, y);
      g_assert_cmpmem (y, n * sizeof (float), whole, n * sizeof (float));
    }
    moe_clear (&moe);
  }
}

/* With everything rounded to 8 bits: near enough, and still the same however it is cut. */
static void
test_moe_quantized (gconstpointer data)
{
  const MoeCase *c = &moe_cases[0];
  gsize n = (gsize) c->rows * c->hidden;
  g_autofree float *whole = g_new (float, n), *y = g_new (float, n);
  Moe moe;

  moe_init (&moe, c, GPOINTER_TO_UINT (data), OX_PRECISION_FAST, OX_QUANTIZE_Q8);
  moe_run (&moe, 0, whole);
  for (gsize j = 0; j < n; j++)
    assert_close ("moe", j, whole[j], moe.y[j], 0.05);
  for (guint way = 1; way < G_N_ELEMENTS (cuts); way++) {
    moe_run (&moe, way, y);
    g_assert_cmpmem (y, n * sizeof (float), whole, n * sizeof (float));
  }
  moe_clear (&moe);
}

static void
test_moe_nan (void)
{
  const MoeCase *c = &moe_cases[0];
  g_autofree float *y = g_new (float, c->rows * c->hidden);
  Moe moe;

  moe_init (&moe, c, 0, OX_PRECISION_EXACT, OX_QUANTIZE_NONE);
  for (guint e = 0; e < c->n_experts; e++)
    moe.router[2 * c->n_experts + e] = NAN;
  moe.router[4 * c->n_experts + 1] = NAN;
  moe_run (&moe, 0, y);
  for (guint t = 0; t < c->rows; t++)
    for (guint d = 0; d < c->hidden; d++)
      g_assert_cmpint (isnan (y[t * c->hidden + d]) != 0, ==, t == 2 || t == 4);
  moe_clear (&moe);
}

/* ---- The head of a drafter ---- */

static void
test_centroids (gconstpointer data)
{
  /* Clusters that end where the kernels' steps do, and such that do not. */
  static const guint sizes[] = { 64, 7, 1 };

  for (guint s = 0; s < G_N_ELEMENTS (sizes); s++)
    for (guint fast = 0; fast < 2; fast++) {
      OxOps *ops = ops_new (GPOINTER_TO_UINT (data), fast ? OX_PRECISION_FAST : OX_PRECISION_EXACT,
                            fast ? OX_QUANTIZE_Q8 : OX_QUANTIZE_NONE);
      guint n = 21, top_k = 5, size = sizes[s], vocab = n * size, hidden = 64, rows = 3;
      double tolerance = fast ? 0.1 : TOLERANCE;
      g_autoptr (GRand) rand = g_rand_new_with_seed (s);
      g_autofree float *w = random_floats (rand, (gsize) vocab * hidden), *in = random_floats (rand, rows * hidden);
      g_autofree float *scores = random_floats (rand, rows * n), *y = g_new (float, rows *vocab);
      g_autofree float *single = g_new (float, vocab);
      g_autofree guint32 *ordering = g_new (guint32, vocab);
      OxTensor x, centroids, out;
      OxMatrix *head;
      Toy toy;

      for (guint i = 0; i < vocab; i++)
        ordering[i] = i;
      for (guint i = vocab - 1; i > 0; i--) {
        guint j = (guint) g_rand_int_range (rand, 0, (gint32) i + 1);
        guint32 t = ordering[i];
        ordering[i] = ordering[j];
        ordering[j] = t;
      }
      /* Row 1: the first two of the best, and of the many that are equal the first three. */
      for (guint i = 0; i < n; i++)
        scores[n + i] = i == 9 || i == 20 ? 2 : i < 3 ? -1 : 1;
      toy_init (&toy);
      toy_add (&toy, "head", vocab, hidden, w);
      toy_open (&toy);
      head = toy_matrix (&toy, ops, "head");
      x = tensor_new (ops, rows, hidden, in);
      centroids = tensor_new (ops, rows, n, scores);
      out = tensor_new (ops, rows, vocab, NULL);
      ops->begin (ops, NULL);
      ops->centroid_logits (ops, &out, &x, &centroids, top_k, head, ordering);
      ops->read (ops, &out, y);
      finish (ops);

      for (guint t = 0; t < rows; t++) {
        double least = INFINITY;
        guint chosen = 0;

        for (guint pass = 0; pass < 2; pass++)
          for (guint c = 0; c < n; c++) {
            guint better = 0;
            for (guint o = 0; o < n; o++)
              better += scores[t * n + o] > scores[t * n + c] || (scores[t * n + o] == scores[t * n + c] && o < c);
            chosen += pass == 0 && better < top_k;
            for (guint i = c * size; i < (c + 1) * size; i++) {
              double logit = 0;
              for (guint d = 0; d < hidden; d++)
                logit += (double) w[i * hidden + d] * in[t * hidden + d];
              if (better >= top_k)
                logit = least - 1;
              else if (pass == 0)
                least = MIN (least, logit);
              if (pass == 1)
                assert_close ("centroid_logits", i, y[t * vocab + ordering[i]], logit, tolerance);
            }
          }
        g_assert_cmpuint (chosen, ==, top_k);
      }
      /* A row alone. */
      for (guint t = 0; t < rows; t++) {
        OxTensor x_row = ox_tensor_view (&x, t, 1), c_row = ox_tensor_view (&centroids, t, 1);
        OxTensor out_row = ox_tensor_view (&out, 0, 1);
        ops->begin (ops, NULL);
        ops->centroid_logits (ops, &out_row, &x_row, &c_row, top_k, head, ordering);
        ops->read (ops, &out_row, single);
        finish (ops);
        g_assert_cmpmem (single, vocab * sizeof (float), y + t * vocab, vocab * sizeof (float));
      }
      ops->tensor_clear (ops, &x);
      ops->tensor_clear (ops, &centroids);
      ops->tensor_clear (ops, &out);
      ops->matrix_free (ops, head);
      ops->free (ops);
      toy_clear (&toy);
    }
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

static void
cancel_begin (OxOps *ops)
{
  cancellable = g_cancellable_new ();
  g_atomic_int_set (&kernel_calls, 0);
  ops->begin (ops, cancellable);
}

/* Each thread of the pool may have been in a call when the cancel came. */
static void
cancel_end (OxOps *ops, guint all_calls)
{
  g_autoptr (GError) error = NULL;

  g_assert_false (ops->finish (ops, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_assert_cmpint (g_atomic_int_get (&kernel_calls), <=, 2 + (gint) ox_pool_threads (pool));
  g_assert_cmpuint (all_calls, >, 2 + ox_pool_threads (pool));
  g_clear_object (&cancellable);
}

static void
test_cancel (void)
{
  OxKernels counting;
  Layer layer;
  Moe moe;
  OxRecurrent *recurrent, *fresh;
  OxTensor x, u, y, b, a;
  OxOpsCpuOptions options = { .kernels = &counting, .pool = pool, .precision = OX_PRECISION_EXACT };

  ox_kernels_init (&plain, OX_CPU_ALL);
  counting = plain;
  counting.delta_rule = counting_delta_rule;
  counting.conv_silu = counting_conv_silu;
  counting.add_scaled = counting_add_scaled;

  layer_init (&layer, &shapes[4], 0, 24);
  layer.ops->free (layer.ops);
  layer.ops = ox_ops_cpu_new (&options);
  recurrent = recurrent_new (&layer);
  fresh = recurrent_new (&layer);
  x = tensor_new (layer.ops, 24, layer.channels, layer.x);
  u = tensor_new (layer.ops, 24, layer.channels, NULL);
  y = tensor_new (layer.ops, 24, layer.values, NULL);
  b = tensor_new (layer.ops, 24, layer.shape.value_heads, layer.b);
  a = tensor_new (layer.ops, 24, layer.shape.value_heads, layer.a);

  cancel_begin (layer.ops);
  layer.ops->causal_conv (layer.ops, &u, &x, layer.conv_w, recurrent);
  layer.ops->delta_rule (layer.ops, &y, &u, &b, &a, layer.a_scale, layer.dt_bias, recurrent);
  cancel_end (layer.ops, 24 * 2);

  layer.ops->recurrent_reset (layer.ops, recurrent);
  recurrent_mark (&layer, recurrent, 24);
  cancel_begin (layer.ops);
  layer.ops->delta_rule (layer.ops, &y, &u, &b, &a, layer.a_scale, layer.dt_bias, recurrent);
  cancel_end (layer.ops, 8 * 4);
  /* A rule that was stopped half-way leaves what was there at the mark. */
  layer.ops->recurrent_rewind (layer.ops, recurrent, 0);
  assert_same_state (&layer, recurrent, fresh);

  layer.ops->tensor_clear (layer.ops, &x);
  layer.ops->tensor_clear (layer.ops, &u);
  layer.ops->tensor_clear (layer.ops, &y);
  layer.ops->tensor_clear (layer.ops, &b);
  layer.ops->tensor_clear (layer.ops, &a);
  layer.ops->recurrent_free (layer.ops, recurrent);
  layer.ops->recurrent_free (layer.ops, fresh);
  layer_clear (&layer);

  moe_init (&moe, &moe_cases[3], 0, OX_PRECISION_EXACT, OX_QUANTIZE_NONE);
  moe.ops->free (moe.ops);
  moe.ops = ox_ops_cpu_new (&options);
  x = tensor_new (moe.ops, moe.c->rows, moe.c->hidden, moe.x);
  y = tensor_new (moe.ops, moe.c->rows, moe.c->hidden, NULL);
  b = tensor_new (moe.ops, moe.c->rows, moe.c->n_experts, moe.router);
  cancel_begin (moe.ops);
  moe.ops->moe (moe.ops, &y, &x, &b, &moe.experts);
  cancel_end (moe.ops, moe.c->rows * moe.c->top_k);
  moe.ops->tensor_clear (moe.ops, &x);
  moe.ops->tensor_clear (moe.ops, &y);
  moe.ops->tensor_clear (moe.ops, &b);
  moe_clear (&moe);
}

/* Nothing is done, and nothing is touched, once a computation has been stopped. */
static void
test_stopped (void)
{
  OxOps *ops = ops_new (0, OX_PRECISION_EXACT, OX_QUANTIZE_NONE);
  g_autoptr (GCancellable) stopped = g_cancellable_new ();
  g_autoptr (GError) error = NULL;
  OxTensor x = tensor_new (ops, 2, 3, NULL), y = tensor_new (ops, 2, 3, NULL), both = tensor_new (ops, 2, 6, NULL);

  for (guint i = 0; i < 6; i++) {
    ((float *) x.data)[i] = 1;
    ((float *) y.data)[i] = 5;
  }
  g_cancellable_cancel (stopped);
  ops->begin (ops, stopped);
  ops->copy (ops, &y, &x);
  ops->scale (ops, &y, 3);
  ops->softcap (ops, &y, 1);
  ops->gated (ops, &y, &x, &x, OX_GATE_SIGMOID);
  ops->gated_columns (ops, &y, &x, &x, 0, OX_GATE_SIGMOID);
  ops->concat (ops, &both, &x, &x);
  g_assert_false (ops->finish (ops, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  for (guint i = 0; i < 6; i++)
    g_assert_cmpfloat (((float *) y.data)[i], ==, 5);
  for (guint i = 0; i < 12; i++)
    g_assert_cmpfloat (((float *) both.data)[i], ==, 0);
  ops->tensor_clear (ops, &x);
  ops->tensor_clear (ops, &y);
  ops->tensor_clear (ops, &both);
  ops->free (ops);
}

int
main (int argc, char **argv)
{
  static const struct {
    const char *name;
    void (*func) (gconstpointer level);
  } tests[] = {
    { "elements", test_elements },
    { "recurrent", test_recurrent },
    { "save", test_save },
    { "rewind", test_rewind },
    { "mark", test_mark_forgotten },
    { "moe", test_moe },
    { "moe-quantized", test_moe_quantized },
    { "centroids", test_centroids },
  };
  int result;

  g_test_init (&argc, &argv, NULL);
  pool = ox_pool_new (3);
  for (guint l = 0; l < G_N_ELEMENTS (levels); l++)
    for (guint t = 0; t < G_N_ELEMENTS (tests); t++) {
      g_autofree char *path =
        g_strdup_printf ("/ops-cpu/%s/%s", ox_cpu_level_name (ox_cpu_flags () & levels[l]), tests[t].name);
      /* A processor may have no more than the level before. */
      if (l == 0 || (ox_cpu_flags () & levels[l]) != (ox_cpu_flags () & levels[l - 1]))
        g_test_add_data_func (path, GUINT_TO_POINTER (l), tests[t].func);
    }
  g_test_add_func ("/ops-cpu/bad-shapes", test_bad_shapes);
  g_test_add_func ("/ops-cpu/moe-nan", test_moe_nan);
  g_test_add_func ("/ops-cpu/cancel", test_cancel);
  g_test_add_func ("/ops-cpu/stopped", test_stopped);
  result = g_test_run ();
  ox_pool_free (pool);
  return result;
}
