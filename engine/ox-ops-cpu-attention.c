/* The CPU table's keys, values and attention.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-ops-cpu.h"

#include <string.h>
#include <sys/mman.h>

struct _OxKv {
  float *k; /* [n_kv_heads][capacity][head_dim], and the values behind the keys; pages appear when written */
  float *v;
  gsize bytes; /* of both */
  guint n_kv_heads, head_dim, capacity;
};

static OxKv *
cpu_kv_new (OxOps *ops, guint n_kv_heads, guint head_dim, guint capacity, OxType type, GError **error)
{
  OxKv *kv;
  gsize bytes;
  void *memory;

  if (!g_size_checked_mul (&bytes, n_kv_heads, head_dim) || !g_size_checked_mul (&bytes, bytes, capacity) ||
      !g_size_checked_mul (&bytes, bytes, 2 * sizeof (float))) {
    g_set_error_literal (error, OX_ERROR, OX_ERROR_NO_MEMORY, "The context is too long for this computer's memory");
    return NULL;
  }
  memory = mmap (NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    g_autofree char *size = g_format_size (bytes);
    g_set_error (error, OX_ERROR, OX_ERROR_NO_MEMORY, "Not enough memory for the conversation's state (%s a layer)",
                 size);
    return NULL;
  }
  kv = g_new0 (OxKv, 1);
  kv->k = memory;
  kv->v = kv->k + (gsize) n_kv_heads * capacity * head_dim;
  kv->bytes = bytes;
  kv->n_kv_heads = n_kv_heads;
  kv->head_dim = head_dim;
  kv->capacity = capacity;
  return kv;
}

static void
cpu_kv_free (OxOps *ops, OxKv *kv)
{
  if (kv == NULL)
    return;
  munmap (kv->k, kv->bytes);
  g_free (kv);
}

static void
cpu_kv_write (OxOps *ops, OxKv *kv, const OxTensor *k, const OxTensor *v, guint position)
{
  OxOpsCpu *self = (OxOpsCpu *) ops;
  gsize d = kv->head_dim;

  if (!ox_ops_cpu_running (self))
    return;
  for (guint i = 0; i < k->rows; i++) {
    const float *k_row = ox_cpu_rows (k) + (gsize) i * k->cols;
    const float *v_row = ox_cpu_rows (v) + (gsize) i * v->cols;
    gsize slot = ((gsize) position + i) % kv->capacity;

    for (guint h = 0; h < kv->n_kv_heads; h++) {
      memcpy (kv->k + ((gsize) h * kv->capacity + slot) * d, k_row + h * d, d * sizeof (float));
      memcpy (kv->v + ((gsize) h * kv->capacity + slot) * d, v_row + h * d, d * sizeof (float));
    }
  }
}

typedef struct {
  OxOpsCpu *self;
  OxAttention args;
  gsize scratch;
} AttentionWork;

static void
attention_items (void *data, size_t begin, size_t end, unsigned worker)
{
  AttentionWork *work = data;

  for (gsize i = begin; i < end && ox_ops_cpu_running (work->self); i++)
    work->self->kernels->attention (&work->args, i / work->args.n_kv_heads, i % work->args.n_kv_heads,
                                    work->self->attention_scratch + worker * work->scratch);
}

static void
cpu_attention (OxOps *ops, OxTensor *y, const OxTensor *q, OxKv *kv, guint position, guint window, float scale)
{
  OxOpsCpu *self = (OxOpsCpu *) ops;
  AttentionWork work = { .self = self };
  gsize scratch_bytes = self->attention_floats * sizeof (float);

  if (!ox_ops_cpu_running (self))
    return;
  work.args = (OxAttention) {
    .q = ox_cpu_rows (q),
    .k = kv->k,
    .v = kv->v,
    .out = ox_cpu_rows (y),
    .m = q->rows,
    .n_heads = q->cols / kv->head_dim,
    .n_kv_heads = kv->n_kv_heads,
    .head_dim = kv->head_dim,
    .capacity = kv->capacity,
    .position = position,
    .window = window,
    .scale = scale,
  };
  /* Parts start at whole cache lines, so that workers do not write to each other's. */
  work.scratch = (ox_attention_scratch (&work.args) + 15) & ~(gsize) 15;
  if (!ox_ops_cpu_reserve (self, (void **) &self->attention_scratch, &scratch_bytes,
                           work.scratch * ox_pool_threads (self->pool) * sizeof (float)))
    return;
  self->attention_floats = scratch_bytes / sizeof (float);
  ox_pool_run (self->pool, attention_items, &work, work.args.m * work.args.n_kv_heads, 1);
}

void
ox_ops_cpu_init_attention (OxOpsCpu *self)
{
  self->base.kv_new = cpu_kv_new;
  self->base.kv_free = cpu_kv_free;
  self->base.kv_write = cpu_kv_write;
  self->base.attention = cpu_attention;
}
