/* Packed matrices kept on disk: the file and its use.
 *
 * A file: Header, matrices from PAYLOAD_OFFSET on, then the index: Entry for each, then a checksum for each BLOCK of each. It is only
 * ever replaced or removed by name, never changed or cut, so whoever has it open keeps reading what it was.
 *
 * There is no fsync: that would hold up the start of a model by seconds, and what it protects against, a file that lost its content
 * in a power failure, is found by the checksums like any other damage.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-packed-cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ox-packed-folder.h"
#include "ox-quantize-weights.h"

/* Counts up with every change of a layout, of rounding or of this file. */
#define VERSION 1
#define BYTE_ORDER_MARK 0x01020304u
#define PAYLOAD_OFFSET 4096
#define ALIGNMENT 4096
/* Read, written and checked as one. */
#define BLOCK ((gsize) 4 << 20)
#define ID_BYTES 32
#define MAX_INDEX_BYTES ((guint64) 256 << 20)
/* Parts of the source files that their key is made from, beside their headers: so many of all, and at least so many of each. */
#define SAMPLES 512
#define LEAST_SAMPLES 4
#define MOST_SAMPLES 64
#define SAMPLE_BYTES 16384

static const char magic[8] = { 'O', 'X', 'P', 'A', 'C', 'K', 'E', 'D' };

typedef struct {
  char magic[8];
  guint32 version, byte_order;
  guint8 key[ID_BYTES];
  guint64 file_bytes, index_offset, index_bytes, n_entries, n_blocks;
  guint64 index_hash;
  guint64 hash; /* of all before it */
} Header;

typedef struct {
  guint8 id[ID_BYTES];
  guint64 offset, bytes;
  guint64 first_block; /* its checksums begin there */
} Entry;

struct _OxPackedCache {
  char *path;
  guint8 key[ID_BYTES];
  GHashTable *files; /* those that the key is made from: only their tensors are known here */
  gboolean spoiled;  /* what was found is not what it should be */

  /* Reading */
  int fd;              /* -1: nothing kept */
  GHashTable *entries; /* id → Entry, both in the index below */
  Entry *index;
  const guint64 *hashes; /* [n_blocks], in the index */

  /* Writing */
  int out; /* -1: not, or no longer */
  char *temporary;
  guint64 end;
  GArray *out_index;  /* Entry */
  GArray *out_hashes; /* guint64 */
};

/* ---- Checksums ------------------------------------------------------------------------------------------------------- */

/* Eight independent chains over 64-bit words, as fast as memory is read. Each step is a bijection of its chain, so that a change of any
 * one word always shows; not made against intent. Multiplier: Steele & Vigna 2021. */
static guint64
hash_bytes (const void *data, gsize n)
{
  const guint64 multiplier = G_GUINT64_CONSTANT (0xd1342543de82ef95);
  const guint8 *bytes = data;
  guint64 lanes[8], tail[8] = { 0 }, sum = n;
  gsize whole = n / sizeof lanes;

  for (guint i = 0; i < 8; i++)
    lanes[i] = i + 1;
  for (gsize b = 0; b <= whole; b++) {
    guint64 words[8];

    if (b == whole) {
      memcpy (tail, bytes + b * sizeof words, n % sizeof words);
      memcpy (words, tail, sizeof words);
    } else {
      memcpy (words, bytes + b * sizeof words, sizeof words);
    }
    for (guint i = 0; i < 8; i++)
      lanes[i] = (lanes[i] ^ words[i]) * multiplier;
  }
  for (guint i = 0; i < 8; i++) {
    sum = (sum ^ lanes[i]) * multiplier;
    sum ^= sum >> 29;
  }
  return sum;
}

static void
checksum_u64 (GChecksum *checksum, guint64 value)
{
  g_checksum_update (checksum, (const guchar *) &value, sizeof value);
}

static void
checksum_string (GChecksum *checksum, const char *text)
{
  g_checksum_update (checksum, (const guchar *) text, (gssize) strlen (text) + 1);
}

static void
checksum_finish (GChecksum *checksum, guint8 digest[ID_BYTES])
{
  gsize len = ID_BYTES;

  g_checksum_get_digest (checksum, digest, &len);
}

/* What a matrix is: whose rows, in which order, packed how. */
static void
matrix_id (const OxTensorInfo *tensor, const OxRowMap *map, const OxPackedMatrix *matrix, guint8 id[ID_BYTES])
{
  g_autoptr (GChecksum) checksum = g_checksum_new (G_CHECKSUM_SHA256);

  checksum_string (checksum, tensor->name);
  checksum_u64 (checksum, tensor->offset);
  checksum_u64 (checksum, tensor->type);
  checksum_u64 (checksum, tensor->dims[0]);
  checksum_u64 (checksum, tensor->dims[1]);
  checksum_u64 (checksum, map != NULL ? map->n_rows : 0);
  if (map != NULL)
    g_checksum_update (checksum, (const guchar *) map->source, (gssize) (map->n_rows * sizeof *map->source));
  checksum_string (checksum, matrix->kernel->name);
  checksum_u64 (checksum, matrix->type);
  checksum_u64 (checksum, matrix->rows);
  checksum_u64 (checksum, matrix->cols);
  checksum_finish (checksum, id);
}

/* Header, size, time of the last change, and samples of the content; not the name, so that a moved model is known again. */
static gboolean
checksum_file (GChecksum *checksum, OxFile *file, guint64 header_bytes, guint n_samples)
{
  guint64 size = ox_file_get_size (file);
  g_autofree guint8 *buffer = g_malloc (MAX (SAMPLE_BYTES, 1 << 16));

  checksum_u64 (checksum, size);
  checksum_u64 (checksum, (guint64) ox_file_get_mtime (file));
  for (guint64 done = 0; done < header_bytes;) {
    gsize n = (gsize) MIN (header_bytes - done, 1 << 16);

    if (!ox_file_read (file, done, buffer, n, NULL))
      return FALSE;
    g_checksum_update (checksum, buffer, (gssize) n);
    done += n;
  }
  for (guint i = 0; i < n_samples && size > header_bytes; i++) {
    guint64 offset = header_bytes + (guint64) ((double) (size - header_bytes) * i / n_samples);
    gsize n = (gsize) MIN (size - offset, SAMPLE_BYTES);

    if (!ox_file_read (file, offset, buffer, n, NULL))
      return FALSE;
    g_checksum_update (checksum, buffer, (gssize) n);
  }
  return TRUE;
}

/* What rounding and packing make of a small matrix of each type: so whoever changes a layout or the rounding and forgets to count VERSION
 * up does no harm. */
static void
checksum_layout (GChecksum *checksum, const OxPackedLayout *layout)
{
  static const guint32 types[] = { OX_TYPE_F32,  OX_TYPE_F16,  OX_TYPE_BF16, OX_TYPE_Q4_0,   OX_TYPE_Q4_1,
                                   OX_TYPE_Q5_0, OX_TYPE_Q5_1, OX_TYPE_Q8_0, OX_TYPE_Q2_K,   OX_TYPE_Q3_K,
                                   OX_TYPE_Q4_K, OX_TYPE_Q5_K, OX_TYPE_Q6_K, OX_TYPE_IQ4_NL, OX_TYPE_IQ4_XS };
  enum { ROWS = 16, COLS = 256 };
  float values[COLS];
  guint8 source[ROWS * COLS * sizeof (float)], blocks[COLS / 32 * 34];

  /* No two bytes that could be a scale make one that is not finite. */
  for (gsize i = 0; i < sizeof source; i++)
    source[i] = (guint8) ((guint32) i * 2654435761u >> 26);
  for (guint i = 0; i < COLS; i++)
    values[i] = (float) (int) (source[i] - 31) / (float) (1 + i % 7);
  for (gsize t = 0; t < G_N_ELEMENTS (types); t++) {
    OxPackedMatrix matrix = { .kernel = ox_linear_kernel (layout->kernels, types[t], layout->precision, ROWS, COLS),
                              .type = types[t],
                              .rows = ROWS,
                              .cols = COLS };
    size_t bytes;

    if (!matrix.kernel->packed_bytes (types[t], ROWS, COLS, &bytes))
      continue;
    matrix.data = g_aligned_alloc0 (1, bytes, 64);
    matrix.kernel->pack (&matrix, source, 0, ROWS);
    g_checksum_update (checksum, matrix.data, (gssize) bytes);
    g_aligned_free (matrix.data);
  }
  for (guint t = 0; t < 2; t++) {
    memset (blocks, 0, sizeof blocks);
    ox_quantize_weights (layout->kernels->flags, t == 0 ? OX_TYPE_Q8_0 : OX_TYPE_Q4_0, values, blocks, COLS);
    g_checksum_update (checksum, blocks, sizeof blocks);
  }
}

/* @headers: OxFile → where its tensors begin (guint64) */
static gboolean
model_key (OxWeights *weights, const OxPackedLayout *layout, GHashTable *headers, guint8 key[ID_BYTES])
{
  g_autoptr (GChecksum) checksum = g_checksum_new (G_CHECKSUM_SHA256);
  g_autoptr (GPtrArray) files = g_ptr_array_new ();
  guint n_samples;

  /* In the order of the names of tensors, which is the same every time. */
  for (guint i = 0; i < ox_weights_get_n_tensors (weights); i++) {
    const OxTensorInfo *tensor = ox_weights_get_tensor (weights, i);
    guint64 *header = g_hash_table_lookup (headers, tensor->file);

    if (header == NULL) {
      g_ptr_array_add (files, tensor->file);
      header = g_new (guint64, 1);
      *header = tensor->offset;
      g_hash_table_insert (headers, tensor->file, header);
    }
    *header = MIN (*header, tensor->offset);
  }
  n_samples = CLAMP (SAMPLES / MAX (files->len, 1), LEAST_SAMPLES, MOST_SAMPLES);
  checksum_u64 (checksum, VERSION);
  checksum_string (checksum, ox_cpu_level_name (layout->kernels->flags));
  checksum_u64 (checksum, layout->precision);
  checksum_u64 (checksum, layout->quantize);
  checksum_layout (checksum, layout);
  for (guint i = 0; i < files->len; i++) {
    OxFile *file = g_ptr_array_index (files, i);

    if (!checksum_file (checksum, file, *(guint64 *) g_hash_table_lookup (headers, file), n_samples))
      return FALSE;
  }
  checksum_finish (checksum, key);
  return TRUE;
}

/* ---- The kept file --------------------------------------------------------------------------------------------------- */

static guint
id_hash (gconstpointer id)
{
  guint hash;

  memcpy (&hash, id, sizeof hash);
  return hash;
}

static gboolean
id_equal (gconstpointer a, gconstpointer b)
{
  return memcmp (a, b, ID_BYTES) == 0;
}

static gboolean
read_at (int fd, guint64 offset, void *buffer, gsize n)
{
  guint8 *out = buffer;

  while (n > 0) {
    ssize_t got = pread (fd, out, n, (off_t) offset);

    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return FALSE;
    out += got;
    offset += (guint64) got;
    n -= (gsize) got;
  }
  return TRUE;
}

static gboolean
write_at (int fd, guint64 offset, const void *buffer, gsize n)
{
  const guint8 *in = buffer;

  while (n > 0) {
    ssize_t put = pwrite (fd, in, n, (off_t) offset);

    if (put < 0 && errno == EINTR)
      continue;
    if (put <= 0)
      return FALSE;
    in += put;
    offset += (guint64) put;
    n -= (gsize) put;
  }
  return TRUE;
}

static guint64
count_blocks (guint64 bytes)
{
  return bytes / BLOCK + (bytes % BLOCK != 0);
}

/* Whether all that the header says is possible and meant for @key. */
static gboolean
check_header (const Header *header, const guint8 key[ID_BYTES], guint64 file_bytes)
{
  return memcmp (header->magic, magic, sizeof magic) == 0 && header->version == VERSION &&
         header->byte_order == BYTE_ORDER_MARK && header->hash == hash_bytes (header, G_STRUCT_OFFSET (Header, hash)) &&
         memcmp (header->key, key, ID_BYTES) == 0 && header->file_bytes == file_bytes &&
         header->index_bytes <= MAX_INDEX_BYTES && header->index_offset <= file_bytes &&
         header->index_bytes == file_bytes - header->index_offset && header->n_entries <= OX_WEIGHTS_MAX_TENSORS &&
         header->n_blocks <= MAX_INDEX_BYTES / sizeof (guint64) &&
         header->index_bytes == header->n_entries * sizeof (Entry) + header->n_blocks * sizeof (guint64);
}

static gboolean
read_index (OxPackedCache *cache)
{
  Header header;
  struct stat st;

  if (fstat (cache->fd, &st) != 0 || !S_ISREG (st.st_mode) || !read_at (cache->fd, 0, &header, sizeof header) ||
      !check_header (&header, cache->key, (guint64) st.st_size))
    return FALSE;
  cache->index = g_try_malloc (MAX ((gsize) header.index_bytes, 1));
  if (cache->index == NULL || !read_at (cache->fd, header.index_offset, cache->index, (gsize) header.index_bytes) ||
      hash_bytes (cache->index, (gsize) header.index_bytes) != header.index_hash)
    return FALSE;
  cache->hashes = (const guint64 *) (const void *) (cache->index + header.n_entries);
  for (guint64 i = 0; i < header.n_entries; i++) {
    Entry *entry = &cache->index[i];

    if (entry->offset > header.index_offset || entry->bytes > header.index_offset - entry->offset ||
        entry->first_block > header.n_blocks || count_blocks (entry->bytes) > header.n_blocks - entry->first_block)
      return FALSE;
    g_hash_table_insert (cache->entries, entry->id, entry);
  }
  return TRUE;
}

static void
stop_reading (OxPackedCache *cache)
{
  if (cache->fd >= 0)
    close (cache->fd);
  cache->fd = -1;
  g_hash_table_remove_all (cache->entries);
  g_clear_pointer (&cache->index, g_free);
}

static void
stop_writing (OxPackedCache *cache)
{
  if (cache->out < 0)
    return;
  unlink (cache->temporary);
  close (cache->out);
  cache->out = -1;
}

OxPackedCache *
ox_packed_cache_open (OxWeights *weights, const OxPackedLayout *layout, guint64 expected_bytes)
{
  OxPackedCache *cache;
  g_autofree char *name = NULL;
  GString *hex;
  g_autoptr (GHashTable) files = g_hash_table_new_full (NULL, NULL, NULL, g_free);
  guint8 key[ID_BYTES];

  if (!model_key (weights, layout, files, key))
    return NULL;
  cache = g_new0 (OxPackedCache, 1);
  cache->files = g_steal_pointer (&files);
  cache->fd = cache->out = -1;
  cache->entries = g_hash_table_new (id_hash, id_equal);
  cache->out_index = g_array_new (FALSE, FALSE, sizeof (Entry));
  cache->out_hashes = g_array_new (FALSE, FALSE, sizeof (guint64));
  cache->end = PAYLOAD_OFFSET;
  memcpy (cache->key, key, sizeof key);
  hex = g_string_new (NULL);
  for (guint i = 0; i < 20; i++)
    g_string_append_printf (hex, "%02x", key[i]);
  g_string_append (hex, OX_PACKED_SUFFIX);
  name = g_string_free (hex, FALSE);
  cache->path = ox_packed_folder_get_path (name);

  cache->fd = open (cache->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (cache->fd >= 0 && read_index (cache)) {
    /* Marks it as used just now. */
    futimens (cache->fd, NULL);
    return cache;
  }
  stop_reading (cache);
  cache->temporary = ox_packed_folder_create (expected_bytes, &cache->out);
  if (cache->temporary == NULL) {
    g_free (ox_packed_cache_close (cache, FALSE));
    return NULL;
  }
  return cache;
}

/* ---- One matrix ------------------------------------------------------------------------------------------------------ */

typedef struct {
  int fd;
  guint8 *data;
  gsize bytes;
  guint64 offset;
  const guint64 *expected; /* reading: checksums of the blocks */
  guint64 *found;          /* writing: the same */
  OxLoadFunc progress;
  gpointer user_data;
  guint64 source_bytes; /* told in all */
  gint stopped, failed; /* atomic */
} BlockWork;

static void
work_blocks (void *data, size_t begin, size_t end, unsigned worker)
{
  BlockWork *work = data;

  for (gsize i = begin; i < end && !g_atomic_int_get (&work->stopped) && !g_atomic_int_get (&work->failed); i++) {
    gsize first = i * BLOCK, last = MIN (first + BLOCK, work->bytes);
    guint8 *block = work->data + first;
    guint64 told = (guint64) ((double) work->source_bytes * last / work->bytes) -
                   (guint64) ((double) work->source_bytes * first / work->bytes);
    gboolean ok;

    if (work->expected != NULL) {
      ok = read_at (work->fd, work->offset + first, block, last - first) &&
           hash_bytes (block, last - first) == work->expected[i];
    } else {
      work->found[i] = hash_bytes (block, last - first);
      ok = write_at (work->fd, work->offset + first, block, last - first);
    }
    if (!ok)
      g_atomic_int_set (&work->failed, 1);
    else if (work->progress != NULL && !work->progress (told, work->user_data))
      g_atomic_int_set (&work->stopped, 1);
  }
}

gboolean
ox_packed_cache_wants (const OxLinearKernel *kernel, guint32 type, guint32 held_type)
{
  return type != held_type || kernel->activation == OX_ACTIVATION_Q8;
}

OxPackedResult
ox_packed_cache_read (OxPackedCache *cache,
                      OxPool *pool,
                      const OxTensorInfo *tensor,
                      const OxRowMap *map,
                      OxPackedMatrix *matrix,
                      gsize bytes,
                      OxLoadFunc progress,
                      gpointer user_data)
{
  BlockWork work = {
    .fd = cache->fd, .data = matrix->data, .bytes = bytes, .progress = progress, .user_data = user_data
  };
  guint64 n_rows = map != NULL ? map->n_rows : tensor->dims[0];
  const Entry *entry;
  guint8 id[ID_BYTES];

  if (cache->fd < 0 || !g_hash_table_contains (cache->files, tensor->file))
    return OX_PACKED_ABSENT;
  matrix_id (tensor, map, matrix, id);
  entry = g_hash_table_lookup (cache->entries, id);
  if (entry == NULL || entry->bytes != bytes) {
    cache->spoiled = TRUE;
    return OX_PACKED_ABSENT;
  }
  work.offset = entry->offset;
  work.expected = cache->hashes + entry->first_block;
  work.source_bytes = tensor->n_bytes / tensor->dims[0] * n_rows;
  ox_pool_run (pool, work_blocks, &work, count_blocks (bytes), 1);
  if (g_atomic_int_get (&work.stopped))
    return OX_PACKED_STOPPED;
  if (g_atomic_int_get (&work.failed)) {
    cache->spoiled = TRUE;
    return OX_PACKED_ABSENT;
  }
  return OX_PACKED_FOUND;
}

gboolean
ox_packed_cache_store (OxPackedCache *cache,
                       OxPool *pool,
                       const OxTensorInfo *tensor,
                       const OxRowMap *map,
                       const OxPackedMatrix *matrix,
                       gsize bytes,
                       OxLoadFunc progress,
                       gpointer user_data)
{
  BlockWork work = { .fd = cache->out,
                     .data = matrix->data,
                     .bytes = bytes,
                     .offset = cache->end,
                     .progress = progress,
                     .user_data = user_data };
  Entry entry = { .offset = cache->end, .bytes = bytes, .first_block = cache->out_hashes->len };

  if (cache->out < 0 || !g_hash_table_contains (cache->files, tensor->file))
    return TRUE;
  matrix_id (tensor, map, matrix, entry.id);
  g_array_set_size (cache->out_hashes, (guint) (entry.first_block + count_blocks (bytes)));
  work.found = &g_array_index (cache->out_hashes, guint64, entry.first_block);
  ox_pool_run (pool, work_blocks, &work, count_blocks (bytes), 1);
  if (g_atomic_int_get (&work.failed))
    stop_writing (cache);
  g_array_append_val (cache->out_index, entry);
  cache->end = (cache->end + bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  return !g_atomic_int_get (&work.stopped);
}

/* ---- The end --------------------------------------------------------------------------------------------------------- */

/* Index and header. */
static gboolean
write_index (OxPackedCache *cache)
{
  gsize entries_bytes = cache->out_index->len * sizeof (Entry);
  gsize hashes_bytes = cache->out_hashes->len * sizeof (guint64);
  g_autofree guint8 *index = g_malloc (MAX (entries_bytes + hashes_bytes, 1));
  Header header = {
    .version = VERSION,
    .byte_order = BYTE_ORDER_MARK,
    .index_offset = cache->end,
    .index_bytes = entries_bytes + hashes_bytes,
    .n_entries = cache->out_index->len,
    .n_blocks = cache->out_hashes->len,
  };

  memcpy (header.magic, magic, sizeof magic);
  memcpy (header.key, cache->key, ID_BYTES);
  memcpy (index, cache->out_index->data, entries_bytes);
  memcpy (index + entries_bytes, cache->out_hashes->data, hashes_bytes);
  header.file_bytes = header.index_offset + header.index_bytes;
  header.index_hash = hash_bytes (index, (gsize) header.index_bytes);
  header.hash = hash_bytes (&header, G_STRUCT_OFFSET (Header, hash));
  return header.index_bytes <= MAX_INDEX_BYTES &&
         write_at (cache->out, header.index_offset, index, (gsize) header.index_bytes) &&
         write_at (cache->out, 0, &header, sizeof header);
}

/* Removes the kept file, unless another process has put a new one there. */
static void
remove_spoiled (OxPackedCache *cache)
{
  struct stat ours, there;

  if (fstat (cache->fd, &ours) == 0 && lstat (cache->path, &there) == 0 && ours.st_dev == there.st_dev &&
      ours.st_ino == there.st_ino)
    unlink (cache->path);
}

char *
ox_packed_cache_close (OxPackedCache *cache, gboolean complete)
{
  char *path = NULL;
  gboolean kept;

  if (cache == NULL)
    return NULL;
  kept = cache->fd >= 0 && !cache->spoiled;
  if (cache->spoiled)
    remove_spoiled (cache);
  if (cache->out >= 0 && complete && cache->out_index->len > 0 && write_index (cache) &&
      rename (cache->temporary, cache->path) == 0) {
    close (cache->out);
    cache->out = -1;
    ox_packed_folder_trim (cache->path);
    kept = TRUE;
  }
  stop_writing (cache);
  stop_reading (cache);
  if (kept)
    path = g_steal_pointer (&cache->path);
  g_hash_table_unref (cache->files);
  g_hash_table_unref (cache->entries);
  g_array_unref (cache->out_index);
  g_array_unref (cache->out_hashes);
  g_free (cache->temporary);
  g_free (cache->path);
  g_free (cache);
  return path;
}
