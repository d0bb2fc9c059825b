/* The planning table: walks the same loading code as a real device and counts instead of reading.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-ops.h"

typedef struct {
  OxOps base;
  const OxKernels *kernels;
  OxPrecision precision;
  OxPlanCount *count;
  GHashTable *seen; /* names already counted: a tied head is the embedding's own weights */
} PlanOps;

/* Handles carry nothing; any non-NULL address will do. */
static char handle;

gboolean
ox_ops_check_matrix (const OxTensorInfo *tensor, GError **error)
{
  if (tensor->n_dims != 2 || ox_type_info (tensor->type) == NULL || tensor->dims[0] > G_MAXUINT32 ||
      tensor->dims[1] > G_MAXUINT32 || tensor->n_elements == 0) {
    g_autofree char *what = ox_tensor_describe (tensor);
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: tensor “%s” is %s, expected a matrix of weights",
                 ox_file_get_name (tensor->file), tensor->name, what);
    return FALSE;
  }
  return TRUE;
}

gboolean
ox_ops_check_vector (const OxTensorInfo *tensor, GError **error)
{
  if (tensor->n_dims != 1 || tensor->n_elements == 0 || tensor->n_elements > G_MAXUINT32) {
    g_autofree char *what = ox_tensor_describe (tensor);
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: tensor “%s” is %s, expected a vector of weights",
                 ox_file_get_name (tensor->file), tensor->name, what);
    return FALSE;
  }
  return TRUE;
}

static void
count_parameters (PlanOps *self, const OxTensorInfo *tensor)
{
  if (g_hash_table_add (self->seen, g_strdup (tensor->name)))
    self->count->parameters += tensor->n_elements;
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
                  OxRowOrder order,
                  guint head_dim,
                  OxLoadFunc progress,
                  gpointer user_data,
                  GError **error)
{
  PlanOps *self = (PlanOps *) ops;
  const OxLinearKernel *kernel;
  size_t bytes;

  if (!ox_ops_check_matrix (tensor, error))
    return NULL;
  kernel = self->kernels->linear (tensor->type, self->precision, tensor->dims[0], tensor->dims[1]);
  if (!kernel->packed_bytes (tensor->type, tensor->dims[0], tensor->dims[1], &bytes)) {
    g_autofree char *what = ox_tensor_describe (tensor);
    g_set_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED,
                 "%s: tensor “%s” (%s) has a shape that its format does not allow", ox_file_get_name (tensor->file),
                 tensor->name, what);
    return NULL;
  }
  count_parameters (self, tensor);
  self->count->weight_bytes += bytes;
  return (OxMatrix *) &handle;
}

static OxVector *
plan_vector_load (OxOps *ops, const OxTensorInfo *tensor, float add, GError **error)
{
  PlanOps *self = (PlanOps *) ops;

  if (!ox_ops_check_vector (tensor, error))
    return NULL;
  count_parameters (self, tensor);
  self->count->weight_bytes += tensor->n_elements * sizeof (float);
  return (OxVector *) &handle;
}

static OxEmbedding *
plan_embedding_open (OxOps *ops, const OxTensorInfo *tensor, GError **error)
{
  PlanOps *self = (PlanOps *) ops;

  if (!ox_ops_check_matrix (tensor, error))
    return NULL;
  count_parameters (self, tensor);
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
ox_ops_plan_new (const OxKernels *kernels, OxPrecision precision, OxPlanCount *count)
{
  PlanOps *self = g_new0 (PlanOps, 1);

  self->base.free = plan_free;
  self->base.matrix_load = plan_matrix_load;
  self->base.matrix_free = plan_matrix_free;
  self->base.vector_load = plan_vector_load;
  self->base.vector_free = plan_vector_free;
  self->base.embedding_open = plan_embedding_open;
  self->base.embedding_free = plan_embedding_free;
  self->kernels = kernels;
  self->precision = precision;
  self->count = count;
  self->seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  return &self->base;
}
