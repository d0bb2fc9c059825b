/* Packed matrices kept on disk, so that the next start reads them instead of rounding and packing the source again.
 *
 * A file a model, precision, rounding and instruction set, in $XDG_CACHE_HOME/oxinfer/packed. It is written beside its final name while
 * the model loads and renamed when that is complete. Nothing here fails: what cannot be kept or is damaged is packed from the source.
 *
 * Kept files are read, not mapped. A mapping of what is in the page cache is there at once, where copying it takes a second or two for
 * some gigabytes; from a disk both wait for the disk. But a file that another program cuts short turns a mapped read into SIGBUS, and
 * under pressure pages of a mapping are dropped, so that a token waits for the disk. And every block is compared with its checksum
 * when it comes in, which a mapping does not keep true afterwards.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-ops.h"

/* What a kept matrix was made for; a file holds matrices of one. */
typedef struct {
  const OxKernels *kernels;
  OxPrecision precision;
  OxQuantize quantize;
} OxPackedLayout;

typedef enum {
  OX_PACKED_FOUND,   /* the matrix holds what was kept */
  OX_PACKED_ABSENT,  /* nothing usable was kept: to be packed */
  OX_PACKED_STOPPED, /* the progress callback said so */
} OxPackedResult;

/* The cache of the model in @weights. @expected_bytes: what its kept matrices will take. NULL when there is nothing kept and nothing
 * can be: no folder, no space, over the limit. */
OxPackedCache *ox_packed_cache_open (OxWeights *weights, const OxPackedLayout *layout, guint64 expected_bytes);
/* Ends it. With @complete what was stored is there for the next start, else it is dropped. NULL is fine. Returns the path of the file
 * that is kept now, or NULL; free with g_free(). */
char *ox_packed_cache_close (OxPackedCache *cache, gboolean complete);

/* Whether it takes work to pack a matrix of @type with @kernel into @held_type; reading a copy from disk is no better than the rest. */
gboolean ox_packed_cache_wants (const OxLinearKernel *kernel, guint32 type, guint32 held_type);
/* Reads @bytes of @matrix, which was made of @map's rows of @tensor, into its memory. @progress is told all bytes of the source. */
OxPackedResult ox_packed_cache_read (OxPackedCache *cache,
                                     OxPool *pool,
                                     const OxTensorInfo *tensor,
                                     const OxRowMap *map,
                                     OxPackedMatrix *matrix,
                                     gsize bytes,
                                     OxLoadFunc progress,
                                     gpointer user_data);
/* Keeps it. FALSE when @progress, which is told of 0 bytes, said to stop. Matrices of other files than the cache was opened for, such
 * as a drafter's, are left alone here and above. */
gboolean ox_packed_cache_store (OxPackedCache *cache,
                                OxPool *pool,
                                const OxTensorInfo *tensor,
                                const OxRowMap *map,
                                const OxPackedMatrix *matrix,
                                gsize bytes,
                                OxLoadFunc progress,
                                gpointer user_data);

/* Models whose kept matrices would take less are packed each time: it takes no time to speak of. Tests lower it. */
guint64 ox_packed_cache_get_least_bytes (void);
void ox_packed_cache_set_least_bytes (guint64 bytes);
