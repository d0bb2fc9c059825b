/* The tensors of a model, wherever they lie: one safetensors file, a sharded folder, or a GGUF file.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "io/ox-file.h"
#include "io/ox-gguf.h"
#include "ox-kernels.h"

#define OX_WEIGHTS_MAX_DIMS 8
/* The largest mixture-of-experts checkpoints have some 150,000. */
#define OX_WEIGHTS_MAX_TENSORS 1000000

/* Element types that safetensors files carry beside the weight formats of OxType; kept apart from GGUF's numbers. */
enum {
  OX_DTYPE_I64 = 1000,
  OX_DTYPE_I32,
  OX_DTYPE_I16,
  OX_DTYPE_I8,
  OX_DTYPE_U8,
  OX_DTYPE_BOOL,
  OX_DTYPE_F64,
};

/* A tensor's place. Dimensions are outermost first: [out, in] for a matrix, whatever the file's own order. */
typedef struct {
  const char *name;
  guint32 type; /* OxType or OX_DTYPE_* */
  guint n_dims; /* 0: a scalar */
  guint64 dims[OX_WEIGHTS_MAX_DIMS];
  guint64 n_elements;
  OxFile *file; /* borrowed */
  guint64 offset;
  guint64 n_bytes;
} OxTensorInfo;

typedef struct _OxWeights OxWeights;

/* @path: a .gguf file, a .safetensors file, a model.safetensors.index.json, or a folder with one of the latter two. Every size,
 * offset and name is checked before this returns. */
OxWeights *ox_weights_open (const char *path, GCancellable *cancellable, GError **error);
/* From an already opened source, for tests and fuzzing. */
OxWeights *ox_weights_open_safetensors (OxFile *file, GError **error);
OxWeights *ox_weights_open_gguf (OxFile *file, GError **error);
void ox_weights_free (OxWeights *weights);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (OxWeights, ox_weights_free)

guint ox_weights_get_n_tensors (OxWeights *weights);
/* In name order. */
const OxTensorInfo *ox_weights_get_tensor (OxWeights *weights, guint index);
/* NULL when there is none. */
const OxTensorInfo *ox_weights_find (OxWeights *weights, const char *name);
/* The GGUF header, or NULL for safetensors. */
OxGguf *ox_weights_get_gguf (OxWeights *weights);
guint64 ox_weights_get_file_bytes (OxWeights *weights);

/* Rows [row_begin, row_end) of a tensor seen as [dims[0], rest], raw bytes into @buffer (as large as they are). */
gboolean ox_tensor_read_rows (
  const OxTensorInfo *tensor, guint64 row_begin, guint64 row_end, void *buffer, GError **error);
/* The whole tensor as float32 (integer types converted too); free with g_free(). */
float *ox_tensor_read_f32 (const OxTensorInfo *tensor, GError **error);
/* "F32 [320, 64]", for messages. */
char *ox_tensor_describe (const OxTensorInfo *tensor);
/* Whether @tensor has @n_dims dimensions of these sizes (guint64 each); the error tells what it has and what was expected. */
gboolean ox_tensor_check_shape (const OxTensorInfo *tensor, GError **error, guint n_dims, ...);
