/* Linear attention of the CPU table against plain loops in float64, at every instruction set; rows cut into calls in every way, and
 * state taken back, to the bit; cancelling in the middle.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ops-test.h"

#include <math.h>
#include <string.h>

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
    for (guint way = 1; way < N_WAYS; way++) {
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
    for (guint way = 0; way < N_WAYS; way++) {
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

static void
test_cancel (void)
{
  Layer layer;
  OxRecurrent *recurrent, *fresh;
  OxTensor x, u, y, b, a;

  layer_init (&layer, &shapes[4], 0, 24);
  layer.ops->free (layer.ops);
  layer.ops = cancel_ops_new ();
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
}

int
main (int argc, char **argv)
{
  static const OpsTest tests[] = {
    { "recurrent", test_recurrent },
    { "save", test_save },
    { "rewind", test_rewind },
    { "mark", test_mark_forgotten },
  };

  g_test_init (&argc, &argv, NULL);
  ops_test_begin ();
  ops_test_add (tests, G_N_ELEMENTS (tests));
  g_test_add_func ("/ops-cpu/bad-shapes", test_bad_shapes);
  g_test_add_func ("/ops-cpu/cancel-recurrent", test_cancel);
  return ops_test_run ();
}
