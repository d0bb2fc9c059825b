/* The state of a session: keys and values of each layer, recurrent states, and the working tensors of a forward pass.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "models/ox-network.h"

/* Whether @layer keeps keys and values of its own. */
static gboolean
has_kv (const OxConfig *config, guint layer)
{
  return config->layer_kinds[layer] != OX_LAYER_LINEAR && ox_config_kv_layer (config, layer) == layer;
}

/* Positions that a layer's ring holds: all of the context, or window, one chunk that is written before it is read, and slack. */
static guint
layer_capacity (const OxConfig *config, const OxStateOptions *options, guint layer)
{
  guint64 ring;

  if (!ox_config_is_sliding (config, layer))
    return options->context_length;
  ring = (guint64) config->sliding_window + options->chunk + options->slack;
  return (guint) MIN (ring, options->context_length);
}

guint
ox_state_get_slack (const OxConfig *config, const OxStateOptions *options)
{
  for (guint i = 0; i < config->num_hidden_layers; i++)
    if (has_kv (config, i) && ox_config_is_sliding (config, i) &&
        layer_capacity (config, options, i) < options->context_length)
      return layer_capacity (config, options, i) - config->sliding_window;
  return G_MAXUINT;
}

gboolean
ox_config_is_recurrent (const OxConfig *config)
{
  for (guint i = 0; i < config->num_hidden_layers; i++)
    if (config->layer_kinds[i] == OX_LAYER_LINEAR)
      return TRUE;
  return FALSE;
}

OxDeltaShape
ox_config_delta_shape (const OxConfig *config)
{
  return (OxDeltaShape) {
    .key_heads = config->linear_num_key_heads,
    .value_heads = config->linear_num_value_heads,
    .key_dim = config->linear_key_head_dim,
    .value_dim = config->linear_value_head_dim,
    .conv_kernel = config->linear_conv_kernel_dim,
    .heads_tiled = config->linear_heads_tiled,
  };
}

static guint64
layer_kv_bytes (const OxConfig *config, OxType kv_type, guint layer, guint n)
{
  return ox_kv_bytes (ox_config_kv_heads (config, layer), ox_config_head_dim (config, layer), kv_type, n);
}

guint64
ox_state_bytes_per_token (const OxConfig *config, OxType kv_type)
{
  guint64 bytes = 0;

  for (guint i = 0; i < config->num_hidden_layers; i++)
    if (has_kv (config, i) && !ox_config_is_sliding (config, i))
      bytes += layer_kv_bytes (config, kv_type, i, 1);
  return bytes;
}

/* ---- Working tensors ---- */

typedef struct {
  gsize offset; /* of the tensor in OxWork */
  guint rows, cols;
} WorkShape;

#define N_WORK (sizeof (OxWork) / sizeof (OxTensor))

/* The shapes of all working tensors; cols 0: not needed. */
static void
work_shapes (const OxConfig *c, const OxStateOptions *options, WorkShape shapes[N_WORK])
{
  guint chunk = options->chunk;
  guint ple = c->hidden_size_per_layer_input * c->num_hidden_layers;
  OxDeltaShape delta = ox_config_delta_shape (c);
  guint channels = ox_config_is_recurrent (c) ? ox_delta_channels (&delta) : 0;
  guint values = delta.value_heads * delta.value_dim;
  guint q = values, kv = 0, intermediate = 0, gate;

  for (guint i = 0; i < c->num_hidden_layers; i++) {
    q = MAX (q, c->num_attention_heads * ox_config_head_dim (c, i));
    kv = MAX (kv, ox_config_kv_heads (c, i) * ox_config_head_dim (c, i));
    intermediate = MAX (intermediate, ox_config_intermediate_size (c, i));
  }
  gate = channels > 0 ? q : 0;
  WorkShape all[N_WORK] = {
    { G_STRUCT_OFFSET (OxWork, x), chunk, c->hidden_size },
    { G_STRUCT_OFFSET (OxWork, h), chunk, c->hidden_size },
    { G_STRUCT_OFFSET (OxWork, q), chunk, q },
    { G_STRUCT_OFFSET (OxWork, a), chunk, q },
    { G_STRUCT_OFFSET (OxWork, k), chunk, kv },
    { G_STRUCT_OFFSET (OxWork, v), chunk, kv },
    { G_STRUCT_OFFSET (OxWork, gate), chunk, intermediate },
    { G_STRUCT_OFFSET (OxWork, up), chunk, intermediate },
    { G_STRUCT_OFFSET (OxWork, ple), chunk, ple },
    { G_STRUCT_OFFSET (OxWork, ple_table), chunk, ple },
    { G_STRUCT_OFFSET (OxWork, ple_gate), chunk, c->hidden_size_per_layer_input },
    { G_STRUCT_OFFSET (OxWork, moe), chunk, c->num_experts > 0 ? c->hidden_size : 0 },
    { G_STRUCT_OFFSET (OxWork, moe_input), chunk, c->num_experts > 0 ? c->hidden_size : 0 },
    { G_STRUCT_OFFSET (OxWork, router), chunk, c->num_experts },
    { G_STRUCT_OFFSET (OxWork, qkv), chunk, channels },
    { G_STRUCT_OFFSET (OxWork, conv), chunk, channels },
    { G_STRUCT_OFFSET (OxWork, z), chunk, gate },
    { G_STRUCT_OFFSET (OxWork, beta), chunk, delta.value_heads },
    { G_STRUCT_OFFSET (OxWork, alpha), chunk, delta.value_heads },
  };
  for (gsize i = 0; i < N_WORK; i++)
    shapes[i] = all[i];
}

guint64
ox_state_fixed_bytes (const OxConfig *config, const OxStateOptions *options)
{
  OxDeltaShape delta = ox_config_delta_shape (config);
  WorkShape shapes[N_WORK];
  guint64 bytes = 0;

  for (guint i = 0; i < config->num_hidden_layers; i++)
    if (config->layer_kinds[i] == OX_LAYER_LINEAR)
      bytes += 2 * ox_recurrent_bytes (&delta); /* and the one at the last mark */
    else if (has_kv (config, i) && ox_config_is_sliding (config, i))
      bytes += layer_kv_bytes (config, options->kv_type, i, layer_capacity (config, options, i));
  work_shapes (config, options, shapes);
  for (gsize i = 0; i < N_WORK; i++)
    bytes += (guint64) shapes[i].rows * shapes[i].cols * sizeof (float);
  return bytes;
}

/* ---- Making and freeing ---- */

static guint
widest_head (const OxConfig *config)
{
  guint widest = 0;

  for (guint i = 0; i < config->num_hidden_layers; i++)
    widest = MAX (widest, ox_config_head_dim (config, i));
  return widest;
}

OxState *
ox_state_new (OxOps *ops, const OxConfig *config, const OxStateOptions *options, GError **error)
{
  OxState *state = g_new0 (OxState, 1);
  OxDeltaShape delta = ox_config_delta_shape (config);
  gsize angles = (gsize) widest_head (config) / 2 * options->chunk;
  WorkShape shapes[N_WORK];
  gboolean ok = TRUE;

  state->ops = ops;
  state->config = config;
  state->options = *options;
  state->kv = g_new0 (OxKv *, config->num_hidden_layers);
  state->recurrent = g_new0 (OxRecurrent *, config->num_hidden_layers);
  for (guint i = 0; i < config->num_hidden_layers && ok; i++)
    if (config->layer_kinds[i] == OX_LAYER_LINEAR)
      ok = (state->recurrent[i] = ops->recurrent_new (ops, &delta, error)) != NULL;
    else if (has_kv (config, i))
      ok = (state->kv[i] = ops->kv_new (ops, ox_config_kv_heads (config, i), ox_config_head_dim (config, i),
                                        layer_capacity (config, options, i), options->kv_type, error)) != NULL;
  work_shapes (config, options, shapes);
  for (gsize i = 0; i < N_WORK && ok; i++)
    if (shapes[i].cols > 0)
      ok = ops->tensor_init (ops, &G_STRUCT_MEMBER (OxTensor, &state->work, shapes[i].offset), shapes[i].rows,
                             shapes[i].cols, error);
  state->cos = g_new0 (float, angles);
  state->sin = g_new0 (float, angles);
  state->cos_sliding = g_new0 (float, angles);
  state->sin_sliding = g_new0 (float, angles);
  if (!ok) {
    ox_state_free (state);
    return NULL;
  }
  return state;
}

void
ox_state_free (OxState *state)
{
  OxTensor *tensors = (OxTensor *) &state->work;

  for (guint i = 0; i < state->config->num_hidden_layers; i++) {
    if (state->kv[i] != NULL)
      state->ops->kv_free (state->ops, state->kv[i]);
    if (state->recurrent[i] != NULL)
      state->ops->recurrent_free (state->ops, state->recurrent[i]);
  }
  for (gsize i = 0; i < N_WORK; i++)
    state->ops->tensor_clear (state->ops, &tensors[i]);
  g_free (state->kv);
  g_free (state->recurrent);
  g_free (state->cos);
  g_free (state->sin);
  g_free (state->cos_sliding);
  g_free (state->sin_sliding);
  g_free (state);
}

void
ox_state_reset (OxState *state)
{
  for (guint i = 0; i < state->config->num_hidden_layers; i++)
    if (state->recurrent[i] != NULL)
      state->ops->recurrent_reset (state->ops, state->recurrent[i]);
}

/* ---- What every network does at the end ---- */

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

gboolean
ox_state_wants_final_norm (const OxState *state, OxLogits logits)
{
  return logits != OX_LOGITS_NONE || state->options.keep_hidden || state->options.trace != NULL;
}

void
ox_state_logits (OxState *state, OxMatrix *head, const OxTensor *x, OxLogits logits, float *logits_out)
{
  guint n = logits == OX_LOGITS_LAST ? 1 : x->rows;
  OxTensor rows = ox_tensor_view (x, x->rows - n, n);

  if (logits != OX_LOGITS_NONE)
    state->ops->linear_read (state->ops, &rows, head, (float) state->config->final_logit_softcapping, logits_out);
}
