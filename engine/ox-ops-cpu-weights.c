/* Weights on the CPU: read in strips, rounded where that is wanted, packed for their kernel by all cores, and freed.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-ops-cpu.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "ox-packed-cache.h"
#include "ox-quantize-weights.h"

/* Source bytes read at once: small enough that a cancel takes effect quickly and that the peak stays near the packed size. */
#define STRIP_BYTES (1u << 20)

/* Large memory in large pages, where the system has them to give: reading weights then misses fewer translations. Only whole pages inside
 * of the block are asked for, which are used in full, so that nothing is taken beyond it. */
static void
ask_for_huge_pages (void *memory, gsize bytes)
{
  const guintptr page = 2 << 20;
  guintptr begin = ((guintptr) memory + page - 1) & ~(page - 1), end = ((guintptr) memory + bytes) & ~(page - 1);

  if (end > begin)
    madvise ((void *) begin, end - begin, MADV_HUGEPAGE);
}

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
  ask_for_huge_pages (memory, bytes);
  return memory;
}

typedef struct {
  const OxKernels *kernels;
  OxMatrix *matrix;
  const OxTensorInfo *tensor;
  const OxRowMap *map;  /* or NULL */
  gsize strip_rows;     /* a multiple of row_step */
  gsize row_bytes;      /* of the source */
  gsize held_row_bytes; /* the same when nothing is rounded */
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

/* Rows [begin, end) of the matrix, in pieces that lie together in the file. */
static gboolean
read_rows (const LoadWork *work, gsize begin, gsize end, guint8 *rows, GError **error)
{
  const guint32 *source = work->map != NULL ? work->map->source : NULL;

  if (source == NULL)
    return ox_tensor_read_rows (work->tensor, begin, end, rows, error);
  for (gsize i = begin; i < end;) {
    gsize next = i + 1;

    while (next < end && source[next] == source[next - 1] + 1)
      next++;
    if (!ox_tensor_read_rows (work->tensor, source[i], (guint64) source[i] + (next - i),
                              rows + (i - begin) * work->row_bytes, error))
      return FALSE;
    i = next;
  }
  return TRUE;
}

/* Rounds @n rows of floats to blocks of the type that the matrix is held in. @floats: room for one row. */
static void
round_rows (const LoadWork *work, const guint8 *rows, gsize n, float *floats, guint8 *blocks)
{
  const OxPackedMatrix *packed = &work->matrix->packed;

  for (gsize r = 0; r < n; r++) {
    work->kernels->dequantize (work->tensor->type, rows + r * work->row_bytes, floats, packed->cols);
    ox_quantize_weights (work->kernels->flags, packed->type, floats, blocks + r * work->held_row_bytes, packed->cols);
  }
}

static void
load_strips (void *data, size_t begin, size_t end, unsigned worker)
{
  LoadWork *work = data;
  OxPackedMatrix *packed = &work->matrix->packed;
  gboolean rounds = packed->type != work->tensor->type;
  g_autofree guint8 *strip = NULL, *blocks = NULL;
  g_autofree float *floats = NULL;

  if (g_atomic_int_get (&work->stopped))
    return;
  strip = g_try_malloc (work->strip_rows * work->row_bytes);
  if (rounds) {
    blocks = g_try_malloc (work->strip_rows * work->held_row_bytes);
    floats = g_try_new (float, packed->cols);
  }
  if (strip == NULL || (rounds && (blocks == NULL || floats == NULL))) {
    stop_loading (work, g_error_new_literal (OX_ERROR, OX_ERROR_NO_MEMORY, "Not enough memory to read the model"));
    return;
  }

  for (gsize i = begin; i < end && !g_atomic_int_get (&work->stopped); i++) {
    gsize row_begin = i * work->strip_rows;
    gsize row_end = MIN (row_begin + work->strip_rows, packed->rows);
    GError *error = NULL;

    if (!read_rows (work, row_begin, row_end, strip, &error)) {
      stop_loading (work, error);
      return;
    }
    if (rounds)
      round_rows (work, strip, row_end - row_begin, floats, blocks);
    packed->kernel->pack (packed, rounds ? blocks : strip, row_begin, row_end);
    if (work->progress != NULL && !work->progress ((row_end - row_begin) * work->row_bytes, work->user_data))
      g_atomic_int_set (&work->stopped, 1);
  }
}

/* Fills the matrix: from what was kept on disk, else from the model's file. FALSE when that failed or was stopped; then work->error
 * tells, or is NULL. */
static gboolean
fill_matrix (OxOpsCpu *self, LoadWork *work, gsize bytes)
{
  OxPackedMatrix *packed = &work->matrix->packed;
  OxPackedCache *cache = self->cache;

  if (cache != NULL && !ox_packed_cache_wants (packed->kernel, work->tensor->type, packed->type))
    cache = NULL;
  if (cache != NULL) {
    OxPackedResult result =
      ox_packed_cache_read (cache, self->pool, work->tensor, work->map, packed, bytes, work->progress, work->user_data);

    if (result != OX_PACKED_ABSENT)
      return result == OX_PACKED_FOUND;
  }
  ox_pool_run (self->pool, load_strips, work, (packed->rows + work->strip_rows - 1) / work->strip_rows, 1);
  if (g_atomic_int_get (&work->stopped))
    return FALSE;
  return cache == NULL || ox_packed_cache_store (cache, self->pool, work->tensor, work->map, packed, bytes,
                                                 work->progress, work->user_data);
}

static OxMatrix *
cpu_matrix_load (OxOps *ops,
                 const OxTensorInfo *tensor,
                 const OxRowMap *map,
                 OxMatrixRole role,
                 OxLoadFunc progress,
                 gpointer user_data,
                 GError **error)
{
  OxOpsCpu *self = (OxOpsCpu *) ops;
  LoadWork work = {
    .kernels = self->kernels, .tensor = tensor, .map = map, .progress = progress, .user_data = user_data
  };
  const OxLinearKernel *kernel;
  guint64 row_bytes, held_row_bytes, rows, cols;
  guint32 type;
  size_t bytes;
  gboolean filled;

  if (!ox_ops_check_matrix (tensor, map, error))
    return NULL;
  rows = map != NULL ? map->n_rows : tensor->dims[0];
  cols = tensor->dims[1];
  type = ox_ops_held_type (tensor->type, cols, role, self->quantize);
  kernel = ox_linear_kernel (self->kernels, type, self->precision, rows, cols);
  if (!ox_type_row_bytes (tensor->type, cols, &row_bytes) || !ox_type_row_bytes (type, cols, &held_row_bytes) ||
      !kernel->packed_bytes (type, rows, cols, &bytes)) {
    g_autofree char *what = ox_tensor_describe (tensor);
    g_set_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED,
                 "%s: tensor “%s” (%s) has a shape that its format does not allow", ox_file_get_name (tensor->file),
                 tensor->name, what);
    return NULL;
  }

  work.matrix = g_new0 (OxMatrix, 1);
  work.matrix->packed = (OxPackedMatrix) { .kernel = kernel, .type = type, .rows = rows, .cols = cols };
  work.matrix->packed.data = ox_cpu_alloc (bytes, tensor->name, error);
  if (work.matrix->packed.data == NULL) {
    g_free (work.matrix);
    return NULL;
  }
  work.row_bytes = row_bytes;
  work.held_row_bytes = held_row_bytes;
  work.strip_rows = MAX (STRIP_BYTES / (row_bytes * kernel->row_step), 1) * kernel->row_step;
  g_mutex_init (&work.lock);
  filled = fill_matrix (self, &work, bytes);
  g_mutex_clear (&work.lock);
  if (filled)
    return work.matrix;
  if (work.error != NULL)
    g_propagate_error (error, work.error);
  else
    g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_CANCELLED, "Loading was stopped");
  free (work.matrix->packed.data);
  g_free (work.matrix);
  return NULL;
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
cpu_vector_load (OxOps *ops, const OxTensorInfo *tensor, OxVectorForm form, GError **error)
{
  OxVector *vector;
  float *values;

  if (!ox_ops_check_vector (tensor, error))
    return NULL;
  values = ox_tensor_read_f32 (tensor, error);
  if (values == NULL)
    return NULL;
  for (gsize i = 0; i < tensor->n_elements && form != OX_VECTOR_AS_STORED; i++)
    values[i] = form == OX_VECTOR_PLUS_ONE ? 1 + values[i] : (float) -exp ((double) values[i]);
  vector = g_new0 (OxVector, 1);
  vector->data = values;
  vector->n = tensor->n_elements;
  return vector;
}

static float
cpu_vector_get (OxOps *ops, OxVector *vector, guint index)
{
  return index < vector->n ? vector->data[index] : 0;
}

static void
cpu_vector_free (OxOps *ops, OxVector *vector)
{
  if (vector == NULL)
    return;
  g_free (vector->data);
  free (vector->by_tap);
  g_free (vector);
}

static OxEmbedding *
cpu_embedding_open (OxOps *ops, const OxTensorInfo *tensor, GError **error)
{
  OxEmbedding *embedding;
  guint64 row_bytes;

  if (!ox_ops_check_matrix (tensor, NULL, error))
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
  self->base.vector_get = cpu_vector_get;
  self->base.vector_free = cpu_vector_free;
  self->base.embedding_open = cpu_embedding_open;
  self->base.embedding_free = cpu_embedding_free;
}
