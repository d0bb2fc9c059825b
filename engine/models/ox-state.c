/* The state of a session: keys and values of each layer, and the working tensors of a forward pass.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "models/ox-network.h"

static gboolean
is_sliding (const OxConfig *config, guint layer)
{
  return config->is_sliding != NULL && config->is_sliding[layer] && config->sliding_window > 0;
}

/* Positions that a layer's ring holds: all of the context, or window, one chunk that is written before it is read, and slack. */
static guint
layer_capacity (const OxConfig *config, const OxStateOptions *options, guint layer)
{
  guint64 ring;

  if (!is_sliding (config, layer))
    return options->context_length;
  ring = (guint64) config->sliding_window + options->chunk + options->slack;
  return (guint) MIN (ring, options->context_length);
}

guint
ox_state_get_slack (const OxConfig *config, const OxStateOptions *options)
{
  for (guint i = 0; i < config->num_hidden_layers; i++)
    if (is_sliding (config, i) && layer_capacity (config, options, i) < options->context_length)
      return layer_capacity (config, options, i) - config->sliding_window;
  return G_MAXUINT;
}

static guint64
layer_bytes_per_position (const OxConfig *config)
{
  return (guint64) config->num_key_value_heads * config->head_dim * 2 * sizeof (float);
}

guint64
ox_state_bytes_per_token (const OxConfig *config)
{
  guint64 bytes = 0;

  for (guint i = 0; i < config->num_hidden_layers; i++)
    if (!is_sliding (config, i))
      bytes += layer_bytes_per_position (config);
  return bytes;
}

guint64
ox_state_fixed_bytes (const OxConfig *config, const OxStateOptions *options)
{
  guint64 bytes = 0;
  guint64 row;

  for (guint i = 0; i < config->num_hidden_layers; i++)
    if (is_sliding (config, i))
      bytes += layer_bytes_per_position (config) * layer_capacity (config, options, i);
  row = 2 * (guint64) config->hidden_size + 2 * (guint64) config->num_attention_heads * config->head_dim +
        2 * (guint64) config->num_key_value_heads * config->head_dim + 2 * (guint64) config->intermediate_size;
  return bytes + (row * options->chunk + config->vocab_size) * sizeof (float);
}

OxState *
ox_state_new (OxOps *ops, const OxConfig *config, const OxStateOptions *options, GError **error)
{
  g_autofree OxState *state = g_new0 (OxState, 1);
  guint chunk = options->chunk;
  guint q_cols = config->num_attention_heads * config->head_dim;
  guint kv_cols = config->num_key_value_heads * config->head_dim;
  gsize half = config->head_dim / 2;
  gboolean ok = TRUE;

  state->ops = ops;
  state->options = *options;
  state->n_layers = config->num_hidden_layers;
  state->kv = g_new0 (OxKv *, state->n_layers);
  for (guint i = 0; i < state->n_layers && ok; i++) {
    state->kv[i] =
      ops->kv_new (ops, config->num_key_value_heads, config->head_dim, layer_capacity (config, options, i), error);
    ok = state->kv[i] != NULL;
  }
  ok = ok && ops->tensor_init (ops, &state->x, chunk, config->hidden_size, error) &&
       ops->tensor_init (ops, &state->h, chunk, config->hidden_size, error) &&
       ops->tensor_init (ops, &state->q, chunk, q_cols, error) &&
       ops->tensor_init (ops, &state->a, chunk, q_cols, error) &&
       ops->tensor_init (ops, &state->k, chunk, kv_cols, error) &&
       ops->tensor_init (ops, &state->v, chunk, kv_cols, error) &&
       ops->tensor_init (ops, &state->gate, chunk, config->intermediate_size, error) &&
       ops->tensor_init (ops, &state->up, chunk, config->intermediate_size, error) &&
       ops->tensor_init (ops, &state->logits, 1, config->vocab_size, error);
  state->cos = g_new0 (float, half *chunk);
  state->sin = g_new0 (float, half *chunk);
  state->cos_sliding = g_new0 (float, half *chunk);
  state->sin_sliding = g_new0 (float, half *chunk);
  if (!ok) {
    ox_state_free (g_steal_pointer (&state));
    return NULL;
  }
  return g_steal_pointer (&state);
}

void
ox_state_free (OxState *state)
{
  OxTensor *tensors[] = { &state->x, &state->h,    &state->q,  &state->k,     &state->v,
                          &state->a, &state->gate, &state->up, &state->logits };

  for (guint i = 0; i < state->n_layers; i++)
    state->ops->kv_free (state->ops, state->kv[i]);
  for (gsize i = 0; i < G_N_ELEMENTS (tensors); i++)
    state->ops->tensor_clear (state->ops, tensors[i]);
  g_free (state->kv);
  g_free (state->cos);
  g_free (state->sin);
  g_free (state->cos_sliding);
  g_free (state->sin_sliding);
  g_free (state);
}

void
ox_state_trace (OxState *state, const char *name, guint layer, const OxTensor *x)
{
  g_autofree float *values = NULL;

  if (state->options.trace == NULL)
    return;
  values = g_new0 (float, (gsize) x->rows * x->cols);
  state->ops->read (state->ops, x, values);
  state->options.trace (name, layer, values, x->rows, x->cols, state->options.trace_data);
}

void
ox_state_logits (OxState *state, OxMatrix *head, const OxTensor *x, OxLogits logits, float *logits_out)
{
  OxOps *ops = state->ops;
  OxTensor *out[] = { &state->logits };

  if (logits == OX_LOGITS_NONE)
    return;
  for (guint i = logits == OX_LOGITS_LAST ? x->rows - 1 : 0; i < x->rows; i++) {
    OxTensor row = ox_tensor_view (x, i, 1);

    ops->linear (ops, &row, 1, &head, out);
    ops->read (ops, &state->logits, logits_out);
    logits_out += state->logits.cols;
  }
}
