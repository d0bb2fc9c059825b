/* Everything of a network that is no matrix product, at each level: attention, the delta rule, norms, and starting threads.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-cli-bench-place.h"

#include <math.h>

/* Rows that go through a network at once. */
#define ROWS 256

/* ---- Attention -------------------------------------------------------------------------------------------------- */

typedef struct {
  const char *name;
  guint n_heads, n_kv_heads, head_dim, window;
  OxType type; /* of keys and values */
  OxPeakKind kind;
  gboolean quick;
} AttentionShape;

/* Of Gemma 4 E2B's full and sliding layers, of Qwen3.5 0.8B and 2B, and of small models. */
static const AttentionShape attention_shapes[] = {
  { "d512", 8, 1, 512, 0, OX_TYPE_F16, OX_PEAK_F32, TRUE },
  { "d512-bf16", 8, 1, 512, 0, OX_TYPE_BF16, OX_PEAK_BF16, FALSE },
  { "d256-w512", 8, 1, 256, 512, OX_TYPE_F16, OX_PEAK_F32, FALSE },
  { "d256", 8, 2, 256, 0, OX_TYPE_F16, OX_PEAK_F32, TRUE },
  { "d64", 9, 3, 64, 0, OX_TYPE_F16, OX_PEAK_F32, FALSE },
};

typedef struct {
  OxOps *ops;
  const AttentionShape *shape;
  GPtrArray *kvs; /* OxKv; more than one where each has to come from memory */
  guint next;
  OxTensor q, k, v, y;
  guint rows, position;
} Attention;

static void
run_attention (gpointer data)
{
  Attention *a = data;
  OxTensor q = ox_tensor_view (&a->q, 0, a->rows), y = ox_tensor_view (&a->y, 0, a->rows);
  OxKv *kv = g_ptr_array_index (a->kvs, a->next);

  /* With a single row, which reads everything once, those take turns. */
  if (a->rows == 1)
    a->next = (a->next + 1) % a->kvs->len;
  a->ops->begin (a->ops, NULL);
  a->ops->attention (a->ops, &y, &q, kv, a->position, a->shape->window, 1 / sqrtf ((float) a->shape->head_dim));
  a->ops->finish (a->ops, NULL);
}

static guint
keys_seen (const AttentionShape *shape, guint position)
{
  return shape->window != 0 ? MIN (position + 1, shape->window) : position + 1;
}

/* Prompt tokens @from … @to in pieces: a product with each key and one with each value, of those that a causal window lets through. */
static void
bench_attention_prefill (OxBenchPlace *place, Attention *a, const char *name, guint from, guint to)
{
  OxBenchWork work = { 0 };
  double keys = 0, seconds = 0;

  work.operations[a->shape->kind] = 1e9;
  ox_bench_limits_init (&place->limits, place->threads, place->level->mask);
  ox_bench_limits_measure (place->bench, &place->limits, 1u << a->shape->kind);
  a->rows = ROWS;
  for (a->position = from; a->position < to && ox_bench_goes_on (place->bench); a->position += ROWS) {
    seconds += ox_bench_place_best (place, run_attention, a);
    for (guint i = 0; i < ROWS; i++)
      keys += keys_seen (a->shape, a->position + i);
  }
  ox_bench_limits_measure (place->bench, &place->limits, 1u << a->shape->kind);
  if (a->position >= to)
    ox_bench_place_add (place, name, "GOPS", keys * a->shape->n_heads * a->shape->head_dim * 4 / seconds * 1e-9, &work);
}

/* One query behind @depth tokens: keys and values are read once. */
static void
bench_attention_decode (OxBenchPlace *place, Attention *a, const char *name, guint depth)
{
  OxBenchWork work = { .bytes = 1e9 };
  gsize bytes = ox_kv_bytes (a->shape->n_kv_heads, a->shape->head_dim, a->shape->type, keys_seen (a->shape, depth));
  double seconds;

  a->rows = 1;
  a->position = depth;
  seconds = ox_bench_place_best_of (place, run_attention, a, OX_BENCH_READ);
  ox_bench_place_add (place, name, "GB/s", (double) bytes / seconds * 1e-9, &work);
}

/* Keys and values of @context positions. */
static gboolean
add_kv (Attention *a, guint context, GError **error)
{
  OxOps *ops = a->ops;
  OxKv *kv = ops->kv_new (ops, a->shape->n_kv_heads, a->shape->head_dim, context, a->shape->type, error);

  if (kv == NULL)
    return FALSE;
  g_ptr_array_add (a->kvs, kv);
  ops->begin (ops, NULL);
  for (guint position = 0; position < context; position += ROWS)
    ops->kv_write (ops, kv, &a->k, &a->v, position);
  return ops->finish (ops, error);
}

static gboolean
bench_attention (OxBenchPlace *place, const AttentionShape *shape, GError **error)
{
  OxOps *ops = place->ops;
  guint context = 8192 + ROWS, q_cols = shape->n_heads * shape->head_dim, kv_cols = shape->n_kv_heads * shape->head_dim;
  gsize kv_bytes = ox_kv_bytes (shape->n_kv_heads, shape->head_dim, shape->type, keys_seen (shape, 8192));
  g_autofree char *prefill = g_strconcat ("attention/prefill2048/", shape->name, NULL);
  g_autofree char *deep = g_strconcat ("attention/prefill256@8k/", shape->name, NULL);
  g_autofree char *decode = g_strconcat ("attention/decode@8k/", shape->name, NULL);
  /* A window is read from the caches. */
  gboolean decodes = shape->window == 0 && ox_bench_wants (place->bench, decode);
  gsize n_kv = decodes ? place->read_bytes / kv_bytes + 1 : 1;
  g_autoptr (GPtrArray) kvs = g_ptr_array_new ();
  Attention a = { .ops = ops, .shape = shape, .kvs = kvs };
  gboolean ok;

  if (!ox_bench_wants (place->bench, prefill) && !ox_bench_wants (place->bench, deep) && !decodes)
    return TRUE;
  ok = ops->tensor_init (ops, &a.q, ROWS, q_cols, error) && ops->tensor_init (ops, &a.y, ROWS, q_cols, error) &&
       ops->tensor_init (ops, &a.k, ROWS, kv_cols, error) && ops->tensor_init (ops, &a.v, ROWS, kv_cols, error);
  if (ok) {
    ox_bench_fill (&a.q);
    ox_bench_fill (&a.k);
    ox_bench_fill (&a.v);
  }
  for (gsize i = 0; i < n_kv && ok; i++)
    ok = add_kv (&a, context, error);
  if (ok && ox_bench_wants (place->bench, prefill))
    bench_attention_prefill (place, &a, prefill, 0, 2048);
  if (ok && ox_bench_wants (place->bench, deep))
    bench_attention_prefill (place, &a, deep, 8192, 8192 + ROWS);
  if (ok && decodes)
    bench_attention_decode (place, &a, decode, 8192);
  ops->tensor_clear (ops, &a.q);
  ops->tensor_clear (ops, &a.y);
  ops->tensor_clear (ops, &a.k);
  ops->tensor_clear (ops, &a.v);
  for (guint i = 0; i < kvs->len; i++)
    ops->kv_free (ops, g_ptr_array_index (kvs, i));
  return ok;
}

/* ---- Delta rule ------------------------------------------------------------------------------------------------- */

typedef struct {
  OxOps *ops;
  OxRecurrent *recurrent;
  OxVector *scale, *bias;
  OxTensor y, qkv, b, a;
} Delta;

static void
run_delta (gpointer data)
{
  Delta *d = data;

  d->ops->begin (d->ops, NULL);
  d->ops->delta_rule (d->ops, &d->y, &d->qkv, &d->b, &d->a, d->scale, d->bias, d->recurrent);
  d->ops->finish (d->ops, NULL);
}

static void
fill_minus_one (guint64 offset, guint8 *buffer, gsize len, gpointer user_data)
{
  static const guint8 minus_one[4] = { 0, 0, 0x80, 0xbf };

  for (gsize i = 0; i < len; i++)
    buffer[i] = minus_one[(offset + i) % 4];
}

static OxVector *
load_vector (OxOps *ops, guint n, GError **error)
{
  g_autoptr (OxFile) file = ox_file_new_generated (n * sizeof (float), fill_minus_one, NULL, NULL, "vector");
  OxTensorInfo tensor = { "vector", OX_TYPE_F32, 1, { n }, n, file, 0, n * sizeof (float) };

  return ops->vector_load (ops, &tensor, OX_VECTOR_AS_STORED, error);
}

/* Of Qwen3.5 0.8B and 2B. A token decays the state, takes Sᵀ k, adds k dᵀ and takes Sᵀ q: seven operations an element. */
static gboolean
bench_delta (OxBenchPlace *place, GError **error)
{
  const OxDeltaShape shape = { 16, 16, 128, 128, 4, FALSE };
  double operations = 7.0 * ROWS * shape.value_heads * shape.key_dim * shape.value_dim;
  OxBenchWork work = { .operations = { [OX_PEAK_F32] = 1e9 } };
  OxOps *ops = place->ops;
  Delta d = { .ops = ops };
  gboolean ok;

  if (!ox_bench_wants (place->bench, "delta_rule"))
    return TRUE;
  d.recurrent = ops->recurrent_new (ops, &shape, error);
  ok = d.recurrent != NULL && (d.scale = load_vector (ops, shape.value_heads, error)) != NULL &&
       (d.bias = load_vector (ops, shape.value_heads, error)) != NULL &&
       ops->tensor_init (ops, &d.qkv, ROWS, ox_delta_channels (&shape), error) &&
       ops->tensor_init (ops, &d.y, ROWS, shape.value_heads * shape.value_dim, error) &&
       ops->tensor_init (ops, &d.b, ROWS, shape.value_heads, error) &&
       ops->tensor_init (ops, &d.a, ROWS, shape.value_heads, error);
  if (ok) {
    double seconds;

    ox_bench_fill (&d.qkv);
    ox_bench_fill (&d.b);
    ox_bench_fill (&d.a);
    seconds = ox_bench_place_best_of (place, run_delta, &d, 1u << OX_PEAK_F32);
    ox_bench_place_add (place, "delta_rule", "GOPS", operations / seconds * 1e-9, &work);
  }
  ops->tensor_clear (ops, &d.qkv);
  ops->tensor_clear (ops, &d.y);
  ops->tensor_clear (ops, &d.b);
  ops->tensor_clear (ops, &d.a);
  if (d.scale != NULL)
    ops->vector_free (ops, d.scale);
  if (d.bias != NULL)
    ops->vector_free (ops, d.bias);
  if (d.recurrent != NULL)
    ops->recurrent_free (ops, d.recurrent);
  return ok;
}

/* ---- Norms ------------------------------------------------------------------------------------------------------ */

#define NORM_COLS 2048

typedef struct {
  OxOps *ops;
  OxVector *w;
  OxTensor x;
} Norm;

static void
run_norm (gpointer data)
{
  Norm *norm = data;

  norm->ops->begin (norm->ops, NULL);
  norm->ops->rms_norm (norm->ops, &norm->x, &norm->x, norm->w, NORM_COLS, 1e-6f);
  norm->ops->finish (norm->ops, NULL);
}

/* In place, over rows that lie in the caches. The limit is reading as many bytes that lie there. */
static gboolean
bench_norm (OxBenchPlace *place, GError **error)
{
  OxOps *ops = place->ops;
  Norm norm = { .ops = ops };
  OxReadProbe probe;
  gboolean ok;

  if (!ox_bench_wants (place->bench, "norm"))
    return TRUE;
  norm.w = load_vector (ops, NORM_COLS, error);
  ok = norm.w != NULL && ox_read_probe_init (&probe, 1, place->threads);
  if (ok) {
    ok = ops->tensor_init (ops, &norm.x, (guint) (probe.bytes / (NORM_COLS * sizeof (float))), NORM_COLS, error);
    if (ok) {
      double seconds;
      OxBenchResult *result;

      ox_bench_fill (&norm.x);
      seconds = ox_bench_place_best (place, run_norm, &norm);
      result = ox_bench_place_add (place, "norm", "GB/s", (double) probe.bytes / seconds * 1e-9, NULL);
      result->limit = ox_read_probe_best (&probe, 20, NULL) * 1e-9;
      ops->tensor_clear (ops, &norm.x);
    }
    ox_read_probe_clear (&probe);
  }
  if (norm.w != NULL)
    ops->vector_free (ops, norm.w);
  return ok;
}

/* ---- Threads ---------------------------------------------------------------------------------------------------- */

#define DISPATCHES 2000

static void
run_nothing (void *data, size_t begin, size_t end, unsigned worker)
{
}

static void
run_dispatches (gpointer data)
{
  OxPool *pool = data;

  for (guint i = 0; i < DISPATCHES; i++)
    ox_pool_run (pool, run_nothing, NULL, ox_pool_threads (pool), 1);
}

/* To start and join an empty job on threads that are awake. The limit is what a word takes from one thread to another and back. */
static void
bench_dispatch (OxBenchPlace *place)
{
  OxBenchResult *result;
  double trip = 0;

  if (!ox_bench_wants (place->bench, "pool/dispatch"))
    return;
  result = ox_bench_place_add (place, "pool/dispatch", "µs",
                               ox_bench_place_best (place, run_dispatches, place->pool) / DISPATCHES * 1e6, NULL);
  result->less = TRUE;
  for (guint i = 0; i < 20 && place->threads > 1; i++) {
    double seconds = ox_peak_round_trip (DISPATCHES);

    trip = trip > 0 ? MIN (trip, seconds) : seconds;
  }
  if (trip > 0)
    result->limit = trip * 1e6;
}

gboolean
ox_bench_operations (OxBenchPlace *place, GError **error)
{
  for (gsize i = 0; i < G_N_ELEMENTS (attention_shapes) && ox_bench_goes_on (place->bench); i++)
    if ((!place->brief || attention_shapes[i].quick) && !bench_attention (place, &attention_shapes[i], error))
      return FALSE;
  if (!ox_bench_goes_on (place->bench))
    return TRUE;
  if (!bench_delta (place, error) || !bench_norm (place, error))
    return FALSE;
  bench_dispatch (place);
  return TRUE;
}
