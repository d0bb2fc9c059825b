/* Weights on the CPU: read in strips, packed for their kernel by all cores, and freed.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-ops-cpu.h"

#include <stdlib.h>
#include <string.h>

/* Source bytes read at once: small enough that a cancel takes effect quickly and that the peak stays near the packed size. */
#define STRIP_BYTES (1u << 20)

gpointer
ox_cpu_alloc (gsize bytes, const char *what, GError **error)
{
  void *memory = NULL;
  gsize rounded;

  if (!g_size_checked_add (&rounded, bytes, 63) || posix_memalign (&memory, 64, MAX (rounded & ~(gsize) 63, 64)) != 0) {
    g_autofree char *size = g_format_size (bytes);
    g_set_error (error, OX_ERROR, OX_ERROR_NO_MEMORY, "Not enough memory for %s (%s)", what, size);
    return NULL;
  }
  return memory;
}

typedef struct {
  OxMatrix *matrix;
  const OxTensorInfo *tensor;
  OxRowOrder order;
  guint head_dim;
  gsize strip_rows; /* a multiple of row_step and, for interleaved heads, of head_dim */
  gsize row_bytes;
  OxLoadFunc progress;
  gpointer user_data;
  GMutex lock;
  GError *error;
  gint stopped;
} LoadWork;

static void
stop_loading (LoadWork *work, GError *error)
{
  g_mutex_lock (&work->lock);
  if (work->error == NULL)
    work->error = error;
  else
    g_clear_error (&error);
  g_mutex_unlock (&work->lock);
  g_atomic_int_set (&work->stopped, 1);
}

/* Rows of each head from GGUF's order (0, d/2, 1, d/2 + 1, …) to the original (0, 1, 2, …). @rows is a multiple of @head_dim. */
static void
deinterleave_heads (guint8 *dst, const guint8 *src, gsize rows, gsize row_bytes, guint head_dim)
{
  guint half = head_dim / 2;

  for (gsize head = 0; head < rows; head += head_dim)
    for (guint j = 0; j < half; j++) {
      memcpy (dst + (head + j) * row_bytes, src + (head + 2 * j) * row_bytes, row_bytes);
      memcpy (dst + (head + half + j) * row_bytes, src + (head + 2 * j + 1) * row_bytes, row_bytes);
    }
}

static void
load_strips (void *data, size_t begin, size_t end, unsigned worker)
{
  LoadWork *work = data;
  gsize rows = work->matrix->packed.rows;
  gsize buffer_bytes = work->strip_rows * work->row_bytes;
  g_autofree guint8 *strip = NULL;
  g_autofree guint8 *ordered = NULL;

  if (g_atomic_int_get (&work->stopped))
    return;
  strip = g_try_malloc (buffer_bytes);
  if (work->order == OX_ROWS_INTERLEAVED_HEADS)
    ordered = g_try_malloc (buffer_bytes);
  if (strip == NULL || (work->order == OX_ROWS_INTERLEAVED_HEADS && ordered == NULL)) {
    stop_loading (work, g_error_new_literal (OX_ERROR, OX_ERROR_NO_MEMORY, "Not enough memory to read the model"));
    return;
  }

  for (gsize i = begin; i < end && !g_atomic_int_get (&work->stopped); i++) {
    gsize row_begin = i * work->strip_rows;
    gsize row_end = MIN (row_begin + work->strip_rows, rows);
    const guint8 *source = strip;
    GError *error = NULL;

    if (!ox_tensor_read_rows (work->tensor, row_begin, row_end, strip, &error)) {
      stop_loading (work, error);
      return;
    }
    if (work->order == OX_ROWS_INTERLEAVED_HEADS) {
      deinterleave_heads (ordered, strip, row_end - row_begin, work->row_bytes, work->head_dim);
      source = ordered;
    }
    work->matrix->packed.kernel->pack (&work->matrix->packed, source, row_begin, row_end);
    if (work->progress != NULL && !work->progress ((row_end - row_begin) * work->row_bytes, work->user_data))
      g_atomic_int_set (&work->stopped, 1);
  }
}

static OxMatrix *
cpu_matrix_load (OxOps *ops,
                 const OxTensorInfo *tensor,
                 OxRowOrder order,
                 guint head_dim,
                 OxLoadFunc progress,
                 gpointer user_data,
                 GError **error)
{
  OxOpsCpu *self = (OxOpsCpu *) ops;
  const OxLinearKernel *kernel;
  OxMatrix *matrix;
  LoadWork work = {
    .tensor = tensor, .order = order, .head_dim = head_dim, .progress = progress, .user_data = user_data
  };
  guint64 row_bytes;
  size_t bytes;
  gsize unit;

  if (!ox_ops_check_matrix (tensor, error))
    return NULL;
  kernel = self->kernels->linear (tensor->type, self->precision, tensor->dims[0], tensor->dims[1]);
  if (!ox_type_row_bytes (tensor->type, tensor->dims[1], &row_bytes) ||
      !kernel->packed_bytes (tensor->type, tensor->dims[0], tensor->dims[1], &bytes)) {
    g_autofree char *what = ox_tensor_describe (tensor);
    g_set_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED,
                 "%s: tensor “%s” (%s) has a shape that its format does not allow", ox_file_get_name (tensor->file),
                 tensor->name, what);
    return NULL;
  }
  if (order == OX_ROWS_INTERLEAVED_HEADS && (head_dim == 0 || head_dim % 2 != 0 || tensor->dims[0] % head_dim != 0)) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED,
                 "%s: tensor “%s” has %" G_GUINT64_FORMAT " rows, expected a multiple of the head size %u",
                 ox_file_get_name (tensor->file), tensor->name, tensor->dims[0], head_dim);
    return NULL;
  }

  matrix = g_new0 (OxMatrix, 1);
  matrix->packed.kernel = kernel;
  matrix->packed.type = tensor->type;
  matrix->packed.rows = tensor->dims[0];
  matrix->packed.cols = tensor->dims[1];
  matrix->packed.data = ox_cpu_alloc (bytes, tensor->name, error);
  if (matrix->packed.data == NULL) {
    g_free (matrix);
    return NULL;
  }

  /* Strips start at whole row steps and, where rows change places, at whole heads. */
  unit = kernel->row_step;
  if (order == OX_ROWS_INTERLEAVED_HEADS)
    while (unit % head_dim != 0)
      unit += kernel->row_step;
  work.matrix = matrix;
  work.row_bytes = row_bytes;
  work.strip_rows = MAX (STRIP_BYTES / (row_bytes * unit), 1) * unit;
  g_mutex_init (&work.lock);
  ox_pool_run (self->pool, load_strips, &work, (matrix->packed.rows + work.strip_rows - 1) / work.strip_rows, 1);
  g_mutex_clear (&work.lock);

  if (g_atomic_int_get (&work.stopped)) {
    if (work.error != NULL)
      g_propagate_error (error, work.error);
    else
      g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_CANCELLED, "Loading was stopped");
    free (matrix->packed.data);
    g_free (matrix);
    return NULL;
  }
  return matrix;
}

static void
cpu_matrix_free (OxOps *ops, OxMatrix *matrix)
{
  if (matrix == NULL)
    return;
  free (matrix->packed.data);
  g_free (matrix);
}

static OxVector *
cpu_vector_load (OxOps *ops, const OxTensorInfo *tensor, float add, GError **error)
{
  OxVector *vector;
  float *values;

  if (!ox_ops_check_vector (tensor, error))
    return NULL;
  values = ox_tensor_read_f32 (tensor, error);
  if (values == NULL)
    return NULL;
  for (gsize i = 0; i < tensor->n_elements; i++)
    values[i] += add;
  vector = g_new0 (OxVector, 1);
  vector->data = values;
  vector->n = tensor->n_elements;
  return vector;
}

static void
cpu_vector_free (OxOps *ops, OxVector *vector)
{
  if (vector == NULL)
    return;
  g_free (vector->data);
  g_free (vector);
}

static OxEmbedding *
cpu_embedding_open (OxOps *ops, const OxTensorInfo *tensor, GError **error)
{
  OxEmbedding *embedding;
  guint64 row_bytes;

  if (!ox_ops_check_matrix (tensor, error))
    return NULL;
  if (!ox_type_row_bytes (tensor->type, tensor->dims[1], &row_bytes)) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: tensor “%s” has rows that are no whole number of blocks",
                 ox_file_get_name (tensor->file), tensor->name);
    return NULL;
  }
  embedding = g_new0 (OxEmbedding, 1);
  embedding->tensor = *tensor;
  embedding->tensor.name = g_strdup (tensor->name);
  embedding->file = ox_file_ref (tensor->file);
  embedding->row_bytes = row_bytes;
  return embedding;
}

static void
cpu_embedding_free (OxOps *ops, OxEmbedding *embedding)
{
  if (embedding == NULL)
    return;
  g_free ((char *) embedding->tensor.name);
  ox_file_unref (embedding->file);
  g_free (embedding);
}

void
ox_ops_cpu_init_weights (OxOpsCpu *self)
{
  self->base.matrix_load = cpu_matrix_load;
  self->base.matrix_free = cpu_matrix_free;
  self->base.vector_load = cpu_vector_load;
  self->base.vector_free = cpu_vector_free;
  self->base.embedding_open = cpu_embedding_open;
  self->base.embedding_free = cpu_embedding_free;
}
