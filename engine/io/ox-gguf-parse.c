/* The GGUF parser: every count, length, type and offset is checked before it is used.
 *
 * Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. The header has no length of its own, so the file is read
 * in growing pieces up to where the header turns out to end; the tensor data is not touched.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "io/ox-gguf-private.h"

#include <stdlib.h>
#include <string.h>

#include "io/ox-dtype.h"
#include "io/ox-quote.h"
#include "io/ox-weights.h"

/* The largest headers in use (a 262,144-token vocabulary with merges) take some 16 MB. */
#define MAX_HEADER ((guint64) 256 << 20)
#define MAX_KEYS 100000
#define MAX_KEY_LENGTH 65535
#define MAX_NAME_LENGTH 1024
#define MAX_ALIGNMENT 65536
#define FIRST_READ ((gsize) 256 << 10)

typedef struct {
  OxFile *file;
  const char *name;
  guint8 *data;
  gsize capacity;
  gsize have;
  gsize pos;
} Reader;

/* Makes the next @n bytes present at reader->data + reader->pos. @what: for the message when the file ends before. */
static gboolean
reader_need (Reader *reader, guint64 n, const char *what, GError **error)
{
  guint64 size = ox_file_get_size (reader->file);
  guint64 end, target;

  if (n <= reader->have - reader->pos)
    return TRUE;
  if (n > size - reader->pos) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED,
                 "%s: ends inside %s: %" G_GUINT64_FORMAT " bytes are needed at offset %" G_GSIZE_FORMAT
                 ", the file has %" G_GUINT64_FORMAT,
                 reader->name, what, n, reader->pos, size);
    return FALSE;
  }
  end = reader->pos + n;
  if (end > MAX_HEADER) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED,
                 "%s: its GGUF header is larger than %" G_GUINT64_FORMAT " bytes (in %s)", reader->name, MAX_HEADER,
                 what);
    return FALSE;
  }
  target = MAX (end, MAX (FIRST_READ, (guint64) reader->have * 2));
  target = MIN (target, MIN (size, MAX_HEADER));
  if (target > reader->capacity) {
    guint8 *data = g_try_realloc (reader->data, target + 1);

    if (!data) {
      g_set_error (error, OX_ERROR, OX_ERROR_NO_MEMORY, "%s: no memory for its header", reader->name);
      return FALSE;
    }
    reader->data = data;
    reader->capacity = target;
  }
  if (!ox_file_read (reader->file, reader->have, reader->data + reader->have, target - reader->have, error))
    return FALSE;
  reader->have = target;
  return TRUE;
}

static gboolean
reader_u32 (Reader *reader, guint32 *value, const char *what, GError **error)
{
  if (!reader_need (reader, 4, what, error))
    return FALSE;
  *value = (guint32) ox_gguf_read_le (reader->data + reader->pos, 4);
  reader->pos += 4;
  return TRUE;
}

static gboolean
reader_u64 (Reader *reader, guint64 *value, const char *what, GError **error)
{
  if (!reader_need (reader, 8, what, error))
    return FALSE;
  *value = ox_gguf_read_le (reader->data + reader->pos, 8);
  reader->pos += 8;
  return TRUE;
}

/* A length and as many bytes: @start is where the bytes begin. */
static gboolean
reader_string (Reader *reader, guint32 *start, guint64 *len, const char *what, GError **error)
{
  if (!reader_u64 (reader, len, what, error) || !reader_need (reader, *len, what, error))
    return FALSE;
  *start = (guint32) reader->pos;
  reader->pos += *len;
  return TRUE;
}

/* As reader_string(), for keys and names: valid UTF-8 of 1 to @max bytes, no NUL. @kind and @index tell which one it is. */
static gboolean
reader_name (Reader *reader, guint32 *start, guint64 *len, guint64 max, const char *kind, guint64 index, GError **error)
{
  if (!reader_u64 (reader, len, kind, error))
    return FALSE;
  if (*len == 0 || *len > max) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED,
                 "%s: %s %" G_GUINT64_FORMAT " is %" G_GUINT64_FORMAT " bytes long, 1 to %" G_GUINT64_FORMAT
                 " were expected",
                 reader->name, kind, index, *len, max);
    return FALSE;
  }
  if (!reader_need (reader, *len, kind, error))
    return FALSE;
  if (!g_utf8_validate_len ((const char *) reader->data + reader->pos, *len, NULL)) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED,
                 "%s: %s %" G_GUINT64_FORMAT " at offset %" G_GSIZE_FORMAT " is not valid UTF-8", reader->name, kind,
                 index, reader->pos);
    return FALSE;
  }
  *start = (guint32) reader->pos;
  reader->pos += *len;
  return TRUE;
}

/* FALSE for bytes other than 0 and 1, the only booleans that the format allows. */
static gboolean
check_bools (const guint8 *p, guint64 n)
{
  for (guint64 i = 0; i < n; i++) {
    if (p[i] > 1)
      return FALSE;
  }
  return TRUE;
}

static gboolean
read_array (Reader *reader, OxGgufEntry *entry, const char *what, GError **error)
{
  guint64 size, bytes;

  if (!reader_u32 (reader, &entry->element_type, what, error) || !reader_u64 (reader, &entry->n, what, error))
    return FALSE;
  if (entry->element_type == GGUF_ARRAY) {
    g_set_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED, "%s: %s is an array of arrays, which this version cannot read",
                 reader->name, what);
    return FALSE;
  }
  if (entry->element_type >= GGUF_N_TYPES) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: %s is an array of the unknown type %u", reader->name, what,
                 entry->element_type);
    return FALSE;
  }
  size = entry->element_type == GGUF_STRING ? 8 : ox_gguf_value_size (entry->element_type);
  if (!g_uint64_checked_mul (&bytes, entry->n, size)) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED,
                 "%s: %s has an impossible number of elements (%" G_GUINT64_FORMAT ")", reader->name, what, entry->n);
    return FALSE;
  }
  /* For strings these are only their lengths, but it bounds the index by what the file holds. */
  if (!reader_need (reader, bytes, what, error))
    return FALSE;
  entry->value = (guint32) reader->pos;
  if (entry->element_type != GGUF_STRING) {
    if (entry->element_type == GGUF_BOOL && !check_bools (reader->data + reader->pos, entry->n)) {
      g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: %s has elements other than 0 and 1, booleans were expected",
                   reader->name, what);
      return FALSE;
    }
    reader->pos += bytes;
    return TRUE;
  }
  entry->strings = g_try_new (guint32, MAX (entry->n, 1));
  if (!entry->strings) {
    g_set_error (error, OX_ERROR, OX_ERROR_NO_MEMORY, "%s: no memory for the %" G_GUINT64_FORMAT " strings of %s",
                 reader->name, entry->n, what);
    return FALSE;
  }
  for (guint64 i = 0; i < entry->n; i++) {
    guint64 len;

    if (!reader_string (reader, &entry->strings[i], &len, what, error))
      return FALSE;
  }
  return TRUE;
}

static gboolean
read_value (Reader *reader, OxGgufEntry *entry, const char *what, GError **error)
{
  if (entry->type == GGUF_ARRAY)
    return read_array (reader, entry, what, error);
  if (entry->type == GGUF_STRING) {
    if (!reader_string (reader, &entry->value, &entry->n, what, error))
      return FALSE;
    if (!g_utf8_validate_len ((const char *) reader->data + entry->value, entry->n, NULL)) {
      g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: %s is not valid UTF-8", reader->name, what);
      return FALSE;
    }
    return TRUE;
  }
  if (ox_gguf_value_size (entry->type) == 0) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: %s is of the unknown type %u", reader->name, what,
                 entry->type);
    return FALSE;
  }
  if (!reader_need (reader, ox_gguf_value_size (entry->type), what, error))
    return FALSE;
  if (entry->type == GGUF_BOOL && !check_bools (reader->data + reader->pos, 1)) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: %s is %u, a boolean (0 or 1) was expected", reader->name, what,
                 reader->data[reader->pos]);
    return FALSE;
  }
  entry->value = (guint32) reader->pos;
  reader->pos += ox_gguf_value_size (entry->type);
  return TRUE;
}

static gboolean
read_entries (Reader *reader, OxGguf *gguf, GError **error)
{
  for (gsize i = 0; i < gguf->n_entries; i++) {
    OxGgufEntry *entry = &gguf->entries[i];
    g_autofree char *quoted = NULL;
    g_autofree char *what = NULL;
    guint64 len;

    if (!reader_name (reader, &entry->key, &len, MAX_KEY_LENGTH, "metadata key", i, error))
      return FALSE;
    quoted = ox_quote ((const char *) reader->data + entry->key, (gssize) len);
    what = g_strdup_printf ("metadata key “%s”", quoted);
    if (!reader_u32 (reader, &entry->type, what, error))
      return FALSE;
    /* What the key's NUL falls on has just been read. */
    reader->data[entry->key + len] = '\0';
    if (!read_value (reader, entry, what, error))
      return FALSE;
  }
  return TRUE;
}

static int
compare_entries (const void *a, const void *b)
{
  return strcmp (((const OxGgufEntry *) a)->name, ((const OxGgufEntry *) b)->name);
}

/* The buffer stays where it is from here on, so pointers into it are good. Sorted, and not hashed: names made to collide would
 * cost a hash table quadratic time. */
static gboolean
index_entries (Reader *reader, OxGguf *gguf, GError **error)
{
  for (gsize i = 0; i < gguf->n_entries; i++) {
    OxGgufEntry *entry = &gguf->entries[i];

    entry->name = (const char *) gguf->header + entry->key;
    if (entry->type == GGUF_STRING)
      gguf->header[entry->value + entry->n] = '\0';
  }
  qsort (gguf->entries, gguf->n_entries, sizeof *gguf->entries, compare_entries);
  for (gsize i = 1; i < gguf->n_entries; i++) {
    if (compare_entries (&gguf->entries[i - 1], &gguf->entries[i]) == 0) {
      g_autofree char *quoted = ox_quote (gguf->entries[i].name, -1);

      g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: metadata key “%s” appears twice", reader->name, quoted);
      return FALSE;
    }
  }
  return TRUE;
}

/* The fields of one tensor; ->name is set later, @name_start and @name_len tell where it lies. */
static gboolean
read_tensor (Reader *reader, OxGgufTensor *tensor, gsize index, guint32 *name_start, guint64 *name_len, GError **error)
{
  guint64 n_rows = 1, n_elements = 1, row_bytes = 0;
  gboolean empty = FALSE;
  g_autofree char *quoted = NULL;
  g_autofree char *what = NULL;

  if (!reader_name (reader, name_start, name_len, MAX_NAME_LENGTH, "tensor name", index, error))
    return FALSE;
  quoted = ox_quote ((const char *) reader->data + *name_start, (gssize) *name_len);
  what = g_strdup_printf ("tensor “%s”", quoted);
  if (!reader_u32 (reader, &tensor->n_dims, what, error))
    return FALSE;
  reader->data[*name_start + *name_len] = '\0';
  if (tensor->n_dims > G_N_ELEMENTS (tensor->dims)) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: %s has %u dimensions, at most 4 were expected", reader->name,
                 what, tensor->n_dims);
    return FALSE;
  }
  for (guint d = 0; d < 4; d++) {
    tensor->dims[d] = 1;
    if (d < tensor->n_dims && !reader_u64 (reader, &tensor->dims[d], what, error))
      return FALSE;
    if (tensor->dims[d] == 0) {
      empty = TRUE;
      continue;
    }
    if (!g_uint64_checked_mul (&n_elements, n_elements, tensor->dims[d]) || n_elements > G_MAXINT64) {
      g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: the dimensions of %s are impossibly large", reader->name,
                   what);
      return FALSE;
    }
    if (d > 0)
      n_rows *= tensor->dims[d];
  }
  if (!reader_u32 (reader, &tensor->type, what, error) || !reader_u64 (reader, &tensor->offset, what, error))
    return FALSE;
  if (ox_dtype_from_gguf (tensor->type) == OX_DTYPE_UNKNOWN) {
    g_set_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED,
                 "%s: %s is stored in format number %u, which this version cannot read", reader->name, what,
                 tensor->type);
    return FALSE;
  }
  if (!ox_dtype_row_bytes (ox_dtype_from_gguf (tensor->type), tensor->dims[0], &row_bytes)) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED,
                 "%s: %s has rows of %" G_GUINT64_FORMAT " elements, which is no whole number of blocks of its format",
                 reader->name, what, tensor->dims[0]);
    return FALSE;
  }
  if (empty)
    tensor->n_bytes = 0;
  else if (!g_uint64_checked_mul (&tensor->n_bytes, row_bytes, n_rows)) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: %s is impossibly large", reader->name, what);
    return FALSE;
  }
  return TRUE;
}

static int
compare_offsets (const void *a, const void *b)
{
  const OxGgufTensor *x = *(const OxGgufTensor *const *) a;
  const OxGgufTensor *y = *(const OxGgufTensor *const *) b;

  return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static int
compare_tensor_names (const void *a, const void *b)
{
  return strcmp ((*(const OxGgufTensor *const *) a)->name, (*(const OxGgufTensor *const *) b)->name);
}

/* No two tensors of one name or in one place. */
static gboolean
check_distinct (Reader *reader, OxGguf *gguf, GError **error)
{
  g_autofree const OxGgufTensor **sorted = g_new (const OxGgufTensor *, MAX (gguf->n_tensors, 1));
  gsize n = 0;

  for (gsize i = 0; i < gguf->n_tensors; i++)
    sorted[i] = &gguf->tensors[i];
  qsort (sorted, gguf->n_tensors, sizeof *sorted, compare_tensor_names);
  for (gsize i = 1; i < gguf->n_tensors; i++) {
    if (compare_tensor_names (&sorted[i - 1], &sorted[i]) == 0) {
      g_autofree char *quoted = ox_quote (sorted[i]->name, -1);

      g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: tensor “%s” appears twice", reader->name, quoted);
      return FALSE;
    }
  }
  for (gsize i = 0; i < gguf->n_tensors; i++) {
    if (gguf->tensors[i].n_bytes > 0)
      sorted[n++] = &gguf->tensors[i];
  }
  qsort (sorted, n, sizeof *sorted, compare_offsets);
  for (gsize i = 1; i < n; i++) {
    if (sorted[i]->offset < sorted[i - 1]->offset + sorted[i - 1]->n_bytes) {
      g_autofree char *a = ox_quote (sorted[i - 1]->name, -1);
      g_autofree char *b = ox_quote (sorted[i]->name, -1);

      g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: tensors “%s” and “%s” overlap", reader->name, a, b);
      return FALSE;
    }
  }
  return TRUE;
}

/* general.alignment, checked. */
static gboolean
get_alignment (Reader *reader, OxGguf *gguf, guint64 *alignment, GError **error)
{
  *alignment = 32;
  if (!ox_gguf_has (gguf, "general.alignment"))
    return TRUE;
  if (!ox_gguf_get_uint (gguf, "general.alignment", alignment) || *alignment == 0 || *alignment > MAX_ALIGNMENT ||
      (*alignment & (*alignment - 1)) != 0) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED,
                 "%s: metadata key “general.alignment” must be a power of two of at most %u", reader->name,
                 MAX_ALIGNMENT);
    return FALSE;
  }
  return TRUE;
}

/* Turns the tensors' offsets, relative to the data section, into places in the file. */
static gboolean
place_tensors (Reader *reader, OxGguf *gguf, const guint32 *names, guint64 alignment, GError **error)
{
  guint64 size = ox_file_get_size (reader->file);
  guint64 data_start = (reader->pos + alignment - 1) & ~(alignment - 1);

  for (gsize i = 0; i < gguf->n_tensors; i++) {
    OxGgufTensor *tensor = &gguf->tensors[i];
    guint64 offset = tensor->offset;
    gboolean aligned = offset % alignment == 0;
    g_autofree char *quoted = NULL;

    tensor->name = (const char *) gguf->header + names[i];
    if (aligned && data_start <= size && offset <= size - data_start && tensor->n_bytes <= size - data_start - offset) {
      tensor->offset = data_start + offset;
      continue;
    }
    quoted = ox_quote (tensor->name, -1);
    if (!aligned)
      g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED,
                   "%s: tensor “%s” lies at offset %" G_GUINT64_FORMAT ", a multiple of %" G_GUINT64_FORMAT
                   " was expected",
                   reader->name, quoted, offset, alignment);
    else
      g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED,
                   "%s: tensor “%s” (%" G_GUINT64_FORMAT " bytes at offset %" G_GUINT64_FORMAT
                   " of the data) reaches past the end of the file; the file may be incomplete",
                   reader->name, quoted, tensor->n_bytes, offset);
    return FALSE;
  }
  return check_distinct (reader, gguf, error);
}

/* Magic, version and the two counts. */
static gboolean
read_preamble (Reader *reader, OxGguf *gguf, GError **error)
{
  guint64 size = ox_file_get_size (reader->file);
  guint64 n_tensors, n_entries;
  guint32 version;

  if (!reader_need (reader, 4, "the GGUF magic", error))
    return FALSE;
  if (memcmp (reader->data, "FUGG", 4) == 0) {
    g_set_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED, "%s: is a big-endian GGUF file, which this version cannot read",
                 reader->name);
    return FALSE;
  }
  if (memcmp (reader->data, "GGUF", 4) != 0) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: is no GGUF file: it does not begin with “GGUF”", reader->name);
    return FALSE;
  }
  reader->pos = 4;
  if (!reader_u32 (reader, &version, "the GGUF version", error))
    return FALSE;
  if ((version & 0xffff) == 0 && version != 0) {
    g_set_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED, "%s: is a big-endian GGUF file, which this version cannot read",
                 reader->name);
    return FALSE;
  }
  if (version != 2 && version != 3) {
    g_set_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED, "%s: is of GGUF version %u, versions 2 and 3 can be read",
                 reader->name, version);
    return FALSE;
  }
  if (!reader_u64 (reader, &n_tensors, "the GGUF tensor count", error) ||
      !reader_u64 (reader, &n_entries, "the GGUF metadata count", error))
    return FALSE;
  /* The shortest key takes 14 bytes (length, one letter, type, one byte), the shortest tensor 25. */
  if (n_entries > MAX_KEYS || n_entries > (size - reader->pos) / 14) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED,
                 "%s: claims %" G_GUINT64_FORMAT " metadata keys, more than it can hold", reader->name, n_entries);
    return FALSE;
  }
  if (n_tensors > OX_WEIGHTS_MAX_TENSORS || n_tensors > (size - reader->pos) / 25) {
    g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: claims %" G_GUINT64_FORMAT " tensors, more than it can hold",
                 reader->name, n_tensors);
    return FALSE;
  }
  gguf->n_entries = n_entries;
  gguf->n_tensors = n_tensors;
  gguf->entries = g_new0 (OxGgufEntry, MAX (n_entries, 1));
  gguf->tensors = g_new0 (OxGgufTensor, MAX (n_tensors, 1));
  return TRUE;
}

static gboolean
check_split (Reader *reader, OxGguf *gguf, GError **error)
{
  guint64 count, number = 0;

  if (!ox_gguf_get_uint (gguf, "split.count", &count) || count <= 1)
    return TRUE;
  ox_gguf_get_uint (gguf, "split.no", &number);
  g_set_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED,
               "%s: is part %" G_GUINT64_FORMAT " of a GGUF model split over %" G_GUINT64_FORMAT
               " files, which this version cannot read; join the parts into one file first",
               reader->name, number < G_MAXUINT64 ? number + 1 : number, count);
  return FALSE;
}

static gboolean
parse (Reader *reader, OxGguf *gguf, GError **error)
{
  g_autofree guint32 *names = NULL;
  guint64 alignment;

  if (!read_preamble (reader, gguf, error) || !read_entries (reader, gguf, error))
    return FALSE;
  names = g_new (guint32, MAX (gguf->n_tensors, 1));
  for (gsize i = 0; i < gguf->n_tensors; i++) {
    guint64 len;

    if (!read_tensor (reader, &gguf->tensors[i], i, &names[i], &len, error))
      return FALSE;
  }
  /* Keeps one byte past the header, for the NUL of a string that ends it. */
  gguf->header = g_realloc (g_steal_pointer (&reader->data), reader->pos + 1);
  gguf->header_size = reader->pos;
  return index_entries (reader, gguf, error) && check_split (reader, gguf, error) &&
         get_alignment (reader, gguf, &alignment, error) && place_tensors (reader, gguf, names, alignment, error);
}

OxGguf *
ox_gguf_parse (OxFile *file, GError **error)
{
  Reader reader = { .file = file, .name = ox_file_get_name (file) };
  g_autoptr (OxGguf) gguf = g_new0 (OxGguf, 1);
  gboolean ok;

  g_atomic_ref_count_init (&gguf->ref_count);
  ok = parse (&reader, gguf, error);
  g_free (reader.data);
  return ok ? g_steal_pointer (&gguf) : NULL;
}
