/* The float64 table's linear attention.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "golden/ox-ops-reference-private.h"

#include <math.h>
#include <string.h>

struct _OxRecurrent {
  OxDeltaShape shape;
  gsize channels, keys, values;
  double *state;  /* [value_heads, key_dim, value_dim] */
  double *inputs; /* [conv_kernel - 1, channels], the oldest first */

  /* Since a mark: what the two were, and the rows that came in. */
  gboolean marked;
  double *marked_state, *marked_inputs;
  GArray *conv_rows, *rule_rows; /* double */
};

/* A row that the delta rule takes in, by offsets: q and k after their norms, v, beta and decay. */
typedef struct {
  gsize q, k, v, beta, decay, size;
} RuleRow;

static void
ref_recurrent_free (OxOps *ops, OxRecurrent *recurrent)
{
  if (recurrent == NULL)
    return;
  g_free (recurrent->state);
  g_free (recurrent->inputs);
  g_free (recurrent->marked_state);
  g_free (recurrent->marked_inputs);
  g_array_unref (recurrent->conv_rows);
  g_array_unref (recurrent->rule_rows);
  g_free (recurrent);
}

static gsize
state_size (const OxRecurrent *recurrent)
{
  return recurrent->values * recurrent->shape.key_dim;
}

static gsize
inputs_size (const OxRecurrent *recurrent)
{
  return (recurrent->shape.conv_kernel - 1) * recurrent->channels;
}

static OxRecurrent *
ref_recurrent_new (OxOps *ops, const OxDeltaShape *shape, GError **error)
{
  OxRecurrent *recurrent;

  if (shape->conv_kernel == 0 || shape->key_heads == 0 || shape->value_heads % shape->key_heads != 0) {
    g_set_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED, "A linear attention of %u key heads and %u value heads",
                 shape->key_heads, shape->value_heads);
    return NULL;
  }
  recurrent = g_new0 (OxRecurrent, 1);
  recurrent->shape = *shape;
  recurrent->keys = (gsize) shape->key_heads * shape->key_dim;
  recurrent->values = (gsize) shape->value_heads * shape->value_dim;
  recurrent->channels = 2 * recurrent->keys + recurrent->values;
  recurrent->conv_rows = g_array_new (FALSE, FALSE, sizeof (double));
  recurrent->rule_rows = g_array_new (FALSE, FALSE, sizeof (double));
  if ((recurrent->state = ox_reference_zeros (shape->value_heads, shape->key_dim, shape->value_dim, error)) == NULL ||
      (recurrent->inputs = ox_reference_zeros (shape->conv_kernel - 1, recurrent->channels, 1, error)) == NULL) {
    ref_recurrent_free (ops, recurrent);
    return NULL;
  }
  return recurrent;
}

static void
ref_recurrent_reset (OxOps *ops, OxRecurrent *recurrent)
{
  memset (recurrent->state, 0, state_size (recurrent) * sizeof (double));
  memset (recurrent->inputs, 0, inputs_size (recurrent) * sizeof (double));
  recurrent->marked = FALSE;
}

static void
ref_recurrent_save (OxOps *ops, OxRecurrent *recurrent, gpointer bytes)
{
  float *saved = bytes;

  for (gsize i = 0; i < state_size (recurrent); i++)
    *saved++ = (float) recurrent->state[i];
  for (gsize i = 0; i < inputs_size (recurrent); i++)
    *saved++ = (float) recurrent->inputs[i];
}

static void
ref_recurrent_restore (OxOps *ops, OxRecurrent *recurrent, gconstpointer bytes)
{
  const float *saved = bytes;

  for (gsize i = 0; i < state_size (recurrent); i++)
    recurrent->state[i] = *saved++;
  for (gsize i = 0; i < inputs_size (recurrent); i++)
    recurrent->inputs[i] = *saved++;
  recurrent->marked = FALSE;
}

static void
push_input (OxRecurrent *recurrent, const double *x)
{
  gsize history = inputs_size (recurrent), channels = recurrent->channels;

  if (history == 0)
    return;
  memmove (recurrent->inputs, recurrent->inputs + channels, (history - channels) * sizeof (double));
  memcpy (recurrent->inputs + history - channels, x, channels * sizeof (double));
}

static void
ref_causal_conv (OxOps *ops, OxTensor *y, const OxTensor *x, OxVector *w, OxRecurrent *recurrent)
{
  gsize channels = recurrent->channels, taps = recurrent->shape.conv_kernel;

  for (guint i = 0; i < x->rows && ox_reference_running (ops); i++) {
    const double *in = ox_reference_rows (x) + i * channels;

    for (gsize c = 0; c < channels; c++) {
      double sum = w->w[c * taps + taps - 1] * in[c];

      for (gsize j = 0; j + 1 < taps; j++)
        sum += w->w[c * taps + j] * recurrent->inputs[j * channels + c];
      ox_reference_rows (y)[i * channels + c] = ox_reference_activate (sum, OX_GATE_SILU);
    }
    push_input (recurrent, in);
    if (recurrent->marked)
      g_array_append_vals (recurrent->conv_rows, in, (guint) channels);
  }
}

static RuleRow
rule_row (const OxRecurrent *recurrent)
{
  gsize keys = recurrent->keys, v = 2 * keys, beta = v + recurrent->values, heads = recurrent->shape.value_heads;

  return (RuleRow) { 0, keys, v, beta, beta + heads, beta + 2 * heads };
}

/* One token: S *= decay; d = beta · (v - Sᵀ k); S += k dᵀ; y = Sᵀ q, for each value head. @y may be NULL. */
static void
apply_rule (OxRecurrent *recurrent, const double *row, double *y)
{
  const OxDeltaShape *shape = &recurrent->shape;
  RuleRow at = rule_row (recurrent);

  for (guint h = 0; h < shape->value_heads; h++) {
    guint key_head = shape->heads_tiled ? h % shape->key_heads : h / (shape->value_heads / shape->key_heads);
    double *s = recurrent->state + (gsize) h * shape->key_dim * shape->value_dim; /* [key_dim, value_dim] */
    const double *q = row + at.q + (gsize) key_head * shape->key_dim, *k = q + at.k;
    const double *v = row + at.v + (gsize) h * shape->value_dim;

    for (guint i = 0; i < shape->key_dim * shape->value_dim; i++)
      s[i] *= row[at.decay + h];
    for (guint c = 0; c < shape->value_dim; c++) {
      double recalled = 0, change, out = 0;

      for (guint i = 0; i < shape->key_dim; i++)
        recalled += s[i * shape->value_dim + c] * k[i];
      change = row[at.beta + h] * (v[c] - recalled);
      for (guint i = 0; i < shape->key_dim; i++) {
        s[i * shape->value_dim + c] += k[i] * change;
        out += s[i * shape->value_dim + c] * q[i];
      }
      if (y != NULL)
        y[(gsize) h * shape->value_dim + c] = out;
    }
  }
}

/* x / √(Σ x² + 1e-6) · factor */
static void
normalize_head (const double *x, guint dim, double factor, double *y)
{
  double sum = 0;

  for (guint i = 0; i < dim; i++)
    sum += x[i] * x[i];
  for (guint i = 0; i < dim; i++)
    y[i] = x[i] / sqrt (sum + 1e-6) * factor;
}

static void
ref_delta_rule (OxOps *ops,
                OxTensor *y,
                const OxTensor *qkv,
                const OxTensor *b,
                const OxTensor *a,
                OxVector *a_scale,
                OxVector *dt_bias,
                OxRecurrent *recurrent)
{
  const OxDeltaShape *shape = &recurrent->shape;
  RuleRow at = rule_row (recurrent);
  g_autofree double *row = g_new (double, at.size);

  for (guint i = 0; i < qkv->rows && ox_reference_running (ops); i++) {
    const double *in = ox_reference_rows (qkv) + i * recurrent->channels;

    for (guint h = 0; h < shape->key_heads; h++) {
      gsize head = (gsize) h * shape->key_dim;

      normalize_head (in + head, shape->key_dim, 1 / sqrt (shape->key_dim), row + at.q + head);
      normalize_head (in + recurrent->keys + head, shape->key_dim, 1, row + at.k + head);
    }
    memcpy (row + at.v, in + 2 * recurrent->keys, recurrent->values * sizeof (double));
    for (guint h = 0; h < shape->value_heads; h++) {
      double z = ox_reference_rows (a)[(gsize) i * a->cols + h] + dt_bias->w[h];
      double softplus = z > 0 ? z + log1p (exp (-z)) : log1p (exp (z));

      row[at.beta + h] = ox_reference_activate (ox_reference_rows (b)[(gsize) i * b->cols + h], OX_GATE_SIGMOID);
      row[at.decay + h] = exp (a_scale->w[h] * softplus);
    }
    apply_rule (recurrent, row, ox_reference_rows (y) + (gsize) i * y->cols);
    if (recurrent->marked)
      g_array_append_vals (recurrent->rule_rows, row, (guint) at.size);
  }
}

static gboolean
ref_recurrent_mark (OxOps *ops, OxRecurrent *recurrent, guint max_rows, GError **error)
{
  g_free (recurrent->marked_state);
  g_free (recurrent->marked_inputs);
  recurrent->marked_state = g_memdup2 (recurrent->state, state_size (recurrent) * sizeof (double));
  recurrent->marked_inputs = g_memdup2 (recurrent->inputs, inputs_size (recurrent) * sizeof (double));
  g_array_set_size (recurrent->conv_rows, 0);
  g_array_set_size (recurrent->rule_rows, 0);
  recurrent->marked = TRUE;
  return TRUE;
}

static void
ref_recurrent_rewind (OxOps *ops, OxRecurrent *recurrent, guint n)
{
  gsize row = rule_row (recurrent).size, channels = recurrent->channels;

  if (!recurrent->marked)
    return;
  recurrent->marked = FALSE;
  memcpy (recurrent->state, recurrent->marked_state, state_size (recurrent) * sizeof (double));
  if (inputs_size (recurrent) > 0)
    memcpy (recurrent->inputs, recurrent->marked_inputs, inputs_size (recurrent) * sizeof (double));
  for (gsize i = 0; i < n && (i + 1) * channels <= recurrent->conv_rows->len; i++)
    push_input (recurrent, &g_array_index (recurrent->conv_rows, double, i *channels));
  for (gsize i = 0; i < n && (i + 1) * row <= recurrent->rule_rows->len; i++)
    apply_rule (recurrent, &g_array_index (recurrent->rule_rows, double, i *row), NULL);
}

void
ox_reference_init_recurrent (OxOps *ops)
{
  ops->recurrent_new = ref_recurrent_new;
  ops->recurrent_free = ref_recurrent_free;
  ops->recurrent_reset = ref_recurrent_reset;
  ops->recurrent_save = ref_recurrent_save;
  ops->recurrent_restore = ref_recurrent_restore;
  ops->recurrent_mark = ref_recurrent_mark;
  ops->recurrent_rewind = ref_recurrent_rewind;
  ops->causal_conv = ref_causal_conv;
  ops->delta_rule = ref_delta_rule;
}
