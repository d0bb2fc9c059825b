/* The CPU table's keys, values and attention.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-ops-cpu.h"

#include <sys/mman.h>

/* Blocks of keys between two looks at the cancellable. */
#define BLOCKS_PER_LOOK 8
/* States of blocks that are kept at once, in floats, when blocks are spread over threads. */
#define MAX_PART_FLOATS (2u << 20)
/* Elements below which handing work to other threads costs more than it saves. */
#define MIN_PARALLEL_ELEMENTS 16384

struct _OxKv {
  OxKvRing ring;
  gpointer memory; /* keys, then values; pages appear when written */
  gsize bytes;
};

static OxKv *
cpu_kv_new (OxOps *ops, guint n_kv_heads, guint head_dim, guint capacity, OxType type, GError **error)
{
  g_autofree OxKv *kv = g_new0 (OxKv, 1);

  if (type == OX_TYPE_Q8_0 && head_dim % 32 != 0) {
    g_set_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED,
                 "Keys and values of %u elements cannot be kept in Q8_0, whose blocks have 32", head_dim);
    return NULL;
  }
  if (!ox_kv_ring_init (&kv->ring, type, n_kv_heads, head_dim, capacity)) {
    g_set_error_literal (error, OX_ERROR, OX_ERROR_NO_MEMORY, "The context is too long for this computer's memory");
    return NULL;
  }
  kv->bytes = kv->ring.k_bytes + kv->ring.v_bytes;
  kv->memory = mmap (NULL, kv->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (kv->memory == MAP_FAILED) {
    g_autofree char *size = g_format_size (kv->bytes);
    g_set_error (error, OX_ERROR, OX_ERROR_NO_MEMORY, "Not enough memory for the conversation's state (%s a layer)",
                 size);
    return NULL;
  }
  kv->ring.k = kv->memory;
  kv->ring.v = kv->ring.k + kv->ring.k_bytes;
  return g_steal_pointer (&kv);
}

static void
cpu_kv_free (OxOps *ops, OxKv *kv)
{
  if (kv == NULL)
    return;
  munmap (kv->memory, kv->bytes);
  g_free (kv);
}

/* ---- Saving and restoring: [head][position][row] of the keys, then of the values ---- */

static void
cpu_kv_save (OxOps *ops, OxKv *kv, guint position, guint n, gpointer bytes)
{
  gsize row = kv->ring.row_bytes;
  guint8 *k = bytes, *v = k + kv->ring.n_heads * n * row;

  for (gsize h = 0; h < kv->ring.n_heads; h++)
    for (guint i = 0; i < n; i++, k += row, v += row)
      ox_kv_ring_get (&kv->ring, h, (gsize) position + i, k, v);
}

static void
cpu_kv_restore (OxOps *ops, OxKv *kv, guint position, guint n, gconstpointer bytes)
{
  gsize row = kv->ring.row_bytes;
  const guint8 *k = bytes, *v = k + kv->ring.n_heads * n * row;

  for (gsize h = 0; h < kv->ring.n_heads; h++)
    for (guint i = 0; i < n; i++, k += row, v += row)
      ox_kv_ring_put (&kv->ring, h, (gsize) position + i, k, v);
}

/* ---- Writing ---- */

typedef struct {
  OxOpsCpu *self;
  const OxKvRing *ring;
  const OxTensor *k, *v;
  gsize position;
} WriteWork;

/* Items are the positions of one head, then of the next. */
static void
write_items (void *data, size_t begin, size_t end, unsigned worker)
{
  WriteWork *work = data;
  gsize d = work->ring->head_dim;

  for (gsize i = begin; i < end; i++) {
    gsize head = i / work->k->rows, row = i % work->k->rows;
    ox_kv_ring_store (work->ring, work->self->kernels->attention, head, work->position + row,
                      ox_cpu_rows (work->k) + row * work->k->cols + head * d,
                      ox_cpu_rows (work->v) + row * work->v->cols + head * d);
  }
}

static void
write_rows (OxOpsCpu *self, const OxKvRing *ring, const OxTensor *k, const OxTensor *v, gsize position)
{
  WriteWork work = { self, ring, k, v, position };
  gsize items = ring->n_heads * k->rows;

  if (items * ring->head_dim < MIN_PARALLEL_ELEMENTS)
    write_items (&work, 0, items, 0);
  else
    ox_pool_run (self->pool, write_items, &work, items, 64);
}

static void
cpu_kv_write (OxOps *ops, OxKv *kv, const OxTensor *k, const OxTensor *v, guint position)
{
  OxOpsCpu *self = (OxOpsCpu *) ops;

  if (ox_ops_cpu_enter (self, OX_PROFILE_ATTENTION))
    write_rows (self, &kv->ring, k, v, position);
}

/* ---- Attention ---- */

typedef struct {
  OxOpsCpu *self;
  const OxAttentionKernel *kernel;
  OxAttention args;
  gsize queries;               /* of an item, except for the last */
  gsize query_items;           /* items that the queries of a head make */
  gsize block_begin, n_blocks; /* that this round spreads over threads */
  gsize rows;                  /* of an item at most */
  gsize state_floats;
  float *states;  /* one a worker, or one for every item */
  float *parts;   /* [items][n_blocks] states */
  float *scratch; /* one a worker */
  gsize scratch_floats;
} AttentionWork;

/* Item @i of heads × queries. Items of a head follow each other, so that its keys stay in the cache that cores share; the last queries
 * come first: they have most keys to see, and what takes long is to begin early. */
static OxAttentionRows
item_rows (const AttentionWork *work, gsize i)
{
  gsize begin = (work->query_items - 1 - i % work->query_items) * work->queries;

  return (OxAttentionRows) {
    .kv_head = i / work->query_items,
    .query_begin = begin,
    .query_end = MIN (begin + work->queries, work->args.m),
  };
}

/* All that an item's rows see, by one thread. */
static void
whole_items (void *data, size_t begin, size_t end, unsigned worker)
{
  AttentionWork *work = data;
  float *state = work->states + worker * work->state_floats;

  for (gsize i = begin; i < end; i++) {
    OxAttentionRows rows = item_rows (work, i);
    gsize block, last;

    ox_attention_clear (&work->args, ox_attention_n_rows (&work->args, &rows), state);
    ox_attention_blocks (&work->args, &rows, &block, &last);
    for (; block < last; block += BLOCKS_PER_LOOK) {
      if (!ox_ops_cpu_running (work->self))
        return;
      work->kernel->add_blocks (&work->args, &rows, block, MIN (block + BLOCKS_PER_LOOK, last), state,
                                work->scratch + worker * work->scratch_floats);
    }
    work->kernel->finish (&work->args, &rows, state);
  }
}

/* One block of one item each, into its part. */
static void
part_items (void *data, size_t begin, size_t end, unsigned worker)
{
  AttentionWork *work = data;

  for (gsize i = begin; i < end && ox_ops_cpu_running (work->self); i++) {
    OxAttentionRows rows = item_rows (work, i / work->n_blocks);
    gsize block = work->block_begin + i % work->n_blocks;
    float *part = work->parts + i * work->state_floats;

    ox_attention_clear (&work->args, ox_attention_n_rows (&work->args, &rows), part);
    work->kernel->add_blocks (&work->args, &rows, block, block + 1, part,
                              work->scratch + worker * work->scratch_floats);
  }
}

/* The parts of a round, in the order of their blocks. An item here is a row: @rows for each of part_items(). */
static void
merge_items (void *data, size_t begin, size_t end, unsigned worker)
{
  AttentionWork *work = data;

  for (gsize i = begin; i < end; i++) {
    OxAttentionRows rows = item_rows (work, i / work->rows);
    gsize n = ox_attention_n_rows (&work->args, &rows), row = i % work->rows;
    const float *part = work->parts + i / work->rows * work->n_blocks * work->state_floats;

    for (gsize b = 0; b < work->n_blocks && row < n; b++, part += work->state_floats)
      work->kernel->merge (&work->args, n, row, row + 1, work->states + i / work->rows * work->state_floats, part);
  }
}

static void
spread_blocks (AttentionWork *work, gsize items, gsize first, gsize last, gsize at_once)
{
  OxOpsCpu *self = work->self;

  for (gsize i = 0; i < items; i++) {
    OxAttentionRows rows = item_rows (work, i);
    ox_attention_clear (&work->args, ox_attention_n_rows (&work->args, &rows), work->states + i * work->state_floats);
  }
  for (gsize block = first; block < last && ox_ops_cpu_running (self); block += at_once) {
    gsize elements;

    work->block_begin = block;
    work->n_blocks = MIN (at_once, last - block);
    ox_pool_run (self->pool, part_items, work, items * work->n_blocks, 1);
    elements = items * work->n_blocks * work->state_floats;
    if (elements < MIN_PARALLEL_ELEMENTS)
      merge_items (work, 0, items * work->rows, 0);
    else
      ox_pool_run (self->pool, merge_items, work, items * work->rows, 1);
  }
  for (gsize i = 0; i < items && ox_ops_cpu_running (self); i++) {
    OxAttentionRows rows = item_rows (work, i);
    work->kernel->finish (&work->args, &rows, work->states + i * work->state_floats);
  }
}

/* The rows of @q over all that they see of @ring. */
static void
attend (OxOpsCpu *self, OxTensor *y, const OxTensor *q, const OxKvRing *ring, const OxAttentionParams *params)
{
  AttentionWork work = { .self = self, .kernel = self->kernels->attention };
  gsize threads = ox_pool_threads (self->pool), items, states, n_parts = 0, at_once = 0, first, last;
  OxAttentionRows all = { 0, 0, q->rows };

  if (q->rows == 0)
    return;
  work.args = (OxAttention) {
    .kv = ring,
    .q = ox_cpu_rows (q),
    .out = ox_cpu_rows (y),
    .m = q->rows,
    .n_heads = q->cols / ring->head_dim,
    .position = params->position,
    .window = params->window,
    .visible = params->n_visible > 0 ? params->visible : NULL,
    .visible_step = params->n_visible > 1 ? 1 : 0,
    .scale = params->scale,
    .softcap = params->softcap,
    .fast = self->precision == OX_PRECISION_FAST,
  };
  work.queries = MIN (MAX (OX_ATTENTION_ROWS / ox_attention_group (&work.args), 1), work.args.m);
  work.query_items = (work.args.m + work.queries - 1) / work.queries;
  work.rows = work.queries * ox_attention_group (&work.args);
  work.state_floats = ox_attention_state_floats (&work.args, work.rows);
  work.scratch_floats = ox_attention_scratch_floats (&work.args, work.rows);
  items = work.query_items * ring->n_heads;
  states = threads;
  ox_attention_blocks (&work.args, &all, &first, &last);
  /* Too few items to keep all threads busy to the end: blocks of keys are spread instead. */
  if (threads > 1 && items % threads != 0 && items < 4 * threads && last - first > 1) {
    at_once = MIN (MAX (MAX_PART_FLOATS / (items * work.state_floats), 4), last - first);
    n_parts = items * at_once;
    states = items;
  }

  /* Parts of workers are whole cache lines. */
  if (!ox_ops_cpu_reserve (self, (void **) &self->attention_scratch, &self->attention_bytes,
                           ((states + n_parts) * work.state_floats + threads * work.scratch_floats) * sizeof (float)))
    return;
  work.scratch = self->attention_scratch;
  work.states = work.scratch + threads * work.scratch_floats;
  work.parts = work.states + states * work.state_floats;
  if (n_parts > 0)
    spread_blocks (&work, items, first, last, at_once);
  else
    ox_pool_run (self->pool, whole_items, &work, items, 1);
}

static void
cpu_attention_with (OxOps *ops, OxTensor *y, const OxTensor *q, OxKv *kv, const OxAttentionParams *params)
{
  OxOpsCpu *self = (OxOpsCpu *) ops;

  if (ox_ops_cpu_enter (self, OX_PROFILE_ATTENTION))
    attend (self, y, q, &kv->ring, params);
}

static void
cpu_attention (OxOps *ops, OxTensor *y, const OxTensor *q, OxKv *kv, guint position, guint window, float scale)
{
  cpu_attention_with (ops, y, q, kv, &(OxAttentionParams) { .position = position, .window = window, .scale = scale });
}

/* Keys and values are copied into a ring of their own: a few hundredths of the time of a long attention, and memory as large as they
 * are. */
static void
cpu_attention_rows (OxOps *ops,
                    OxTensor *y,
                    const OxTensor *q,
                    const OxTensor *k,
                    const OxTensor *v,
                    guint head_dim,
                    const OxAttentionParams *params)
{
  OxOpsCpu *self = (OxOpsCpu *) ops;
  OxType type = self->precision == OX_PRECISION_FAST ? (OxType) self->kernels->attention->fast_type : OX_TYPE_F32;
  g_autofree float *zeros = NULL;
  OxKvRing ring;

  if (!ox_ops_cpu_enter (self, OX_PROFILE_ATTENTION) || k->rows == 0)
    return;
  if (!ox_kv_ring_init (&ring, type, k->cols / head_dim, head_dim, k->rows) ||
      !ox_ops_cpu_reserve (self, (void **) &self->rows_scratch, &self->rows_bytes, ring.k_bytes + ring.v_bytes)) {
    ox_ops_cpu_fail (self, g_error_new_literal (OX_ERROR, OX_ERROR_NO_MEMORY, "Not enough memory for attention"));
    return;
  }
  ring.k = self->rows_scratch;
  ring.v = ring.k + ring.k_bytes;
  write_rows (self, &ring, k, v, 0);
  /* The positions that a group is filled up with are multiplied by 0, so they must be finite. */
  zeros = g_new0 (float, head_dim);
  for (gsize position = k->rows; position < ring.capacity; position++)
    for (gsize head = 0; head < ring.n_heads; head++)
      ox_kv_ring_store (&ring, self->kernels->attention, head, position, zeros, zeros);
  attend (self, y, q, &ring, params);
}

void
ox_ops_cpu_init_attention (OxOpsCpu *self)
{
  self->base.kv_new = cpu_kv_new;
  self->base.kv_free = cpu_kv_free;
  self->base.kv_save = cpu_kv_save;
  self->base.kv_restore = cpu_kv_restore;
  self->base.kv_write = cpu_kv_write;
  self->base.attention = cpu_attention;
  self->base.attention_with = cpu_attention_with;
  self->base.attention_rows = cpu_attention_rows;
}
