/* The planning table: walks the same loading code as a real device and counts instead of reading.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-ops.h"

#include "ox-packed-cache.h"

typedef struct {
  OxOps base;
  const OxKernels *kernels;
  OxPrecision precision;
  OxQuantize quantize;
  OxPlanCount *count;
  GHashTable *seen; /* names already counted: a tied head is the embedding's own weights */
} PlanOps;

/* Handles carry nothing; any non-NULL address will do. */
static char handle;

gsize
ox_kv_bytes (guint n_kv_heads, guint head_dim, OxType type, guint n)
{
  guint64 row = 0;

  ox_type_row_bytes (type, head_dim, &row);
  return 2 * (gsize) n_kv_heads * row * n;
}

gsize
ox_recurrent_bytes (const OxDeltaShape *shape)
{
  gsize states = (gsize) shape->value_heads * shape->key_dim * shape->value_dim;
  gsize inputs = (gsize) ox_delta_channels (shape) * (shape->conv_kernel - 1);

  return (states + inputs) * sizeof (float);
}

guint32
ox_ops_held_type (guint32 type, guint64 cols, OxMatrixRole role, OxQuantize quantize)
{
  if (quantize == OX_QUANTIZE_NONE || role == OX_MATRIX_SMALL || cols % 32 != 0 ||
      (type != OX_TYPE_F32 && type != OX_TYPE_F16 && type != OX_TYPE_BF16))
    return type;
  return quantize == OX_QUANTIZE_Q4 && role != OX_MATRIX_HEAD ? OX_TYPE_Q4_0 : OX_TYPE_Q8_0;
}

gboolean
ox_ops_check_matrix (const OxTensorInfo *tensor, const OxRowMap *map, GError **error)
{
  if (tensor->n_dims != 2 || ox_type_info (tensor->type) == NULL || tensor->dims[0] > G_MAXUINT32 ||
      tensor->dims[1] > G_MAXUINT32 || tensor->n_elements == 0) {
    g_autofree char *what = ox_tensor_describe (tensor);
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: tensor “%s” is %s, expected a matrix of weights",
                 ox_file_get_name (tensor->file), tensor->name, what);
    return FALSE;
  }
  for (guint i = 0; map != NULL && i < map->n_rows; i++)
    if (map->source[i] >= tensor->dims[0]) {
      g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED,
                   "%s: tensor “%s” has %" G_GUINT64_FORMAT " rows, and row %u of it is asked for",
                   ox_file_get_name (tensor->file), tensor->name, tensor->dims[0], map->source[i]);
      return FALSE;
    }
  return TRUE;
}

gboolean
ox_ops_check_vector (const OxTensorInfo *tensor, GError **error)
{
  if (tensor->n_elements == 0 || tensor->n_elements > G_MAXUINT32) {
    g_autofree char *what = ox_tensor_describe (tensor);
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: tensor “%s” is %s, expected a vector of weights",
                 ox_file_get_name (tensor->file), tensor->name, what);
    return FALSE;
  }
  return TRUE;
}

/* Parts of a tensor are told apart by where they begin. */
static void
count_parameters (PlanOps *self, const OxTensorInfo *tensor, const OxRowMap *map)
{
  guint64 n = map != NULL ? map->n_rows * tensor->dims[1] : tensor->n_elements;
  guint32 first = map != NULL && map->n_rows > 0 ? map->source[0] : 0;
  char *key = g_strdup_printf ("%s@%" G_GUINT64_FORMAT "@%u", tensor->name, tensor->offset, first);

  if (g_hash_table_add (self->seen, key))
    self->count->parameters += n;
}

static void
plan_free (OxOps *ops)
{
  PlanOps *self = (PlanOps *) ops;

  g_hash_table_unref (self->seen);
  g_free (self);
}

static OxMatrix *
plan_matrix_load (OxOps *ops,
                  const OxTensorInfo *tensor,
                  const OxRowMap *map,
                  OxMatrixRole role,
                  OxLoadFunc progress,
                  gpointer user_data,
                  GError **error)
{
  PlanOps *self = (PlanOps *) ops;
  const OxLinearKernel *kernel;
  guint64 rows;
  guint32 type;
  size_t bytes;

  if (!ox_ops_check_matrix (tensor, map, error))
    return NULL;
  rows = map != NULL ? map->n_rows : tensor->dims[0];
  type = ox_ops_held_type (tensor->type, tensor->dims[1], role, self->quantize);
  kernel = ox_linear_kernel (self->kernels, type, self->precision, rows, tensor->dims[1]);
  if (!kernel->packed_bytes (type, rows, tensor->dims[1], &bytes)) {
    g_autofree char *what = ox_tensor_describe (tensor);
    g_set_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED,
                 "%s: tensor “%s” (%s) has a shape that its format does not allow", ox_file_get_name (tensor->file),
                 tensor->name, what);
    return NULL;
  }
  count_parameters (self, tensor, map);
  self->count->weight_bytes += bytes;
  if (ox_packed_cache_wants (kernel, tensor->type, type))
    self->count->packed_bytes += bytes;
  return (OxMatrix *) &handle;
}

static OxVector *
plan_vector_load (OxOps *ops, const OxTensorInfo *tensor, OxVectorForm form, GError **error)
{
  PlanOps *self = (PlanOps *) ops;

  if (!ox_ops_check_vector (tensor, error))
    return NULL;
  count_parameters (self, tensor, NULL);
  self->count->weight_bytes += tensor->n_elements * sizeof (float);
  return (OxVector *) &handle;
}

static float
plan_vector_get (OxOps *ops, OxVector *vector, guint index)
{
  return 1;
}

static OxEmbedding *
plan_embedding_open (OxOps *ops, const OxTensorInfo *tensor, GError **error)
{
  PlanOps *self = (PlanOps *) ops;

  if (!ox_ops_check_matrix (tensor, NULL, error))
    return NULL;
  count_parameters (self, tensor, NULL);
  return (OxEmbedding *) &handle;
}

static void
plan_matrix_free (OxOps *ops, OxMatrix *matrix)
{
}

static void
plan_vector_free (OxOps *ops, OxVector *vector)
{
}

static void
plan_embedding_free (OxOps *ops, OxEmbedding *embedding)
{
}

OxOps *
ox_ops_plan_new (const OxKernels *kernels, OxPrecision precision, OxQuantize quantize, OxPlanCount *count)
{
  PlanOps *self = g_new0 (PlanOps, 1);

  self->base.free = plan_free;
  self->base.matrix_load = plan_matrix_load;
  self->base.matrix_free = plan_matrix_free;
  self->base.vector_load = plan_vector_load;
  self->base.vector_get = plan_vector_get;
  self->base.vector_free = plan_vector_free;
  self->base.embedding_open = plan_embedding_open;
  self->base.embedding_free = plan_embedding_free;
  self->kernels = kernels;
  self->precision = precision;
  self->quantize = quantize;
  self->count = count;
  self->seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  return &self->base;
}
